//! The words of other programs and the options of commands, held to the language.

use crate::command::LANGUAGE;
use crate::command::subjects::questions::Question;
use crate::hint::OF_COMMANDS;
use crate::hint::habits::{Does, HABITS, of};
use crate::lang::grammar::usage;
use crate::lang::{CommandName, Resolved, Span};

fn each() -> impl Iterator<Item = (&'static str, Does)> {
    HABITS.iter().flat_map(|habit| {
        let words = habit.words.iter();
        words.map(move |words| (*words, habit.does))
    })
}

#[test]
fn each_is_there_once_and_none_is_a_command_or_an_abbreviation_of_one() {
    let mut seen = std::collections::BTreeSet::new();
    for (words, _) in each() {
        assert!(seen.insert(words), "`{words}` twice");
        let mut typed = words.split(' ');
        let first = typed.next().unwrap_or_default();
        let meaning = match (LANGUAGE.resolve_first(first), typed.next()) {
            (Resolved::One(first), Some(second)) if LANGUAGE.second_words(first).next().is_some() => {
                LANGUAGE.resolve_second(first, second)
            }
            (first, None) => first,
            _ => Resolved::Unknown,
        };
        let is_command = matches!(meaning, Resolved::One(one) if LANGUAGE.second_words(one).next().is_none());
        let longer = words.split(' ').count() > 2;
        assert!(!is_command || longer, "`{words}` means {meaning:?} already");
    }
}

#[test]
fn what_runs_is_a_line_of_ours_and_its_words_are_found_whole_only() {
    for (words, does) in each() {
        let found = of(words).map(|found| found.words);
        assert_eq!(found, Some(words));
        assert_eq!(of(&format!("{words}x")).filter(|one| one.words == words), None);
        match does {
            Does::Nothing => assert_eq!(LANGUAGE.parse_line(&format!("{words} on")), LANGUAGE.parse_line("#")),
            Does::Refuse(hint) | Does::Point { hint, .. } => {
                for line in [words.to_owned(), format!("{words} something 0x10")] {
                    let error = LANGUAGE.parse_line(&line).expect_err(&line);
                    assert_eq!(error.hint, Some(hint.replace("{}", words)), "{line}");
                }
            }
            Does::Run(command, _) => {
                // Enough for any of them: an address, a name, or nothing.
                let ours = ["", " 0x10", " main", " $x = 1", " \"text\""];
                let runs = ours.iter().any(|rest| {
                    let parses = |words: &str| LANGUAGE.parse_line(&format!("{words}{rest}")).is_ok();
                    parses(words) && parses(command)
                });
                assert!(runs, "`{words}` does not run `{command}`");
                let printed = |line| LANGUAGE.parse_line(line).ok().map(|parsed| parsed.to_string());
                if let (Some(typed), Some(ours)) = (printed(words), printed(command)) {
                    assert_eq!(typed, ours, "`{words}`");
                }
            }
        }
    }
}

#[test]
fn a_word_for_a_task_leads_to_a_command_that_help_has_for_it() {
    for (word, does) in each() {
        let Does::Point { to, hint } = does else { continue };
        let lines: Vec<&str> = Question::about(word).map(|question| question.shown.line).collect();
        let is_answered = |line: &&str| line.split(' ').next() == Some(to) || hint.contains(&format!("`{line}`"));
        assert!(
            lines.is_empty() || lines.iter().any(is_answered),
            "`{word}` leads to `{to}`, and in help to {lines:?}"
        );
    }
}

#[test]
fn a_line_of_the_language_is_not_touched() {
    for line in ["info process", "region 0x10", "watch heap", "find 0x10, +8, 1"] {
        assert!(LANGUAGE.parse_line(line).is_ok(), "{line}");
    }
    let error = LANGUAGE.parse_line("hexdump 0x10 64").expect_err("two arguments");
    assert_eq!(error.at, Span::new(13, 15));
    assert!(error.hint.is_some_and(|hint| hint.contains("x/64xb")));
}

/// The hint for an option at a wrong place has a line of each command that takes it, as the grammar has them.
#[test]
fn an_option_is_offered_with_the_commands_that_take_it() {
    let names = |is_it: &dyn Fn(&CommandName) -> bool| {
        let names = LANGUAGE.names().filter(|name| is_it(name));
        names.map(|name| name.name).collect::<Vec<_>>()
    };
    for (option, offered) in OF_COMMANDS {
        let mark = format!("[{option}]");
        let commands = names(&|name| usage(name.name).is_some_and(|usage| usage.contains(&mark)));
        let lines: Vec<&str> = offered.split('`').skip(1).step_by(2).collect();
        for line in &lines {
            assert!(LANGUAGE.accepts(&line.replace("ADDRESS", "1")), "{line}");
        }
        if *option == "--how" {
            // They are too many to be listed.
            assert_eq!(commands, names(&|name| name.takes_how));
        } else {
            let is_offered = |command: &&str| lines.iter().any(|line| line.starts_with(&format!("{command} ")));
            assert!(commands.iter().all(is_offered), "{option}: {commands:?}");
            assert_eq!(commands.len(), lines.len(), "{option}");
        }
    }
}
