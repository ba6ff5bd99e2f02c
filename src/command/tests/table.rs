//! The table of commands, held to the language.

use super::super::COMMANDS;
use super::super::floor::Error;
use super::super::help::command_help;
use super::{Kept, run_line};
use crate::lang::script::BlockLines;
use crate::lang::{ParsedLine, ProcessNeed, grammar};
use crate::process::fake::World;
use crate::render::text::region::headings;
use crate::render::{Renderer, Text, Theme};
use crate::state::DebugState;

#[test]
fn every_command_has_a_usage_that_begins_with_its_name() {
    for name in COMMANDS.language.names().map(|name| name.name) {
        let usage = grammar::usage(name).unwrap_or_else(|| panic!("{name} has no rule"));
        assert!(usage.starts_with(name), "{usage}");
    }
}

/// Help on a command fits two screens of a small terminal. What is longer is a subject of its own.
#[test]
fn the_help_of_a_command_has_at_most_60_lines() {
    const MOST: usize = 60;
    let mut long = Vec::new();
    for about in COMMANDS.abouts() {
        let (mut text, mut out) = (Text::new(Theme::PLAIN, Some(80)), Vec::new());
        text.record(&command_help(about), &mut out).unwrap();
        text.finish(&mut out).unwrap();
        let lines = String::from_utf8(out).unwrap().lines().count();
        if lines > MOST {
            long.push(format!("{}: {lines}", about.name.name));
        }
    }
    assert!(long.is_empty(), "move a part into a subject: {long:?}");
}

#[test]
fn a_family_of_the_usage_is_explained() {
    let takes = |name: &str| grammar::usage(name).is_some_and(|usage| usage.contains("FAMILY"));
    for about in COMMANDS.abouts().filter(|about| takes(about.name.name)) {
        assert!(about.text.contains("\n  FAMILY  "), "{}", about.name.name);
    }
}

#[test]
fn every_heading_can_be_typed() {
    let parses = |line: String| COMMANDS.language.parse_line(&line).is_ok();
    for title in crate::command::ps::headings() {
        assert!(parses(format!("ps by {title}")), "ps by {title}");
    }
    for title in headings() {
        assert!(parses(format!("regions by {title}")), "regions by {title}");
        let conditions = [format!("{title} > 1M"), format!("{title} == \"text\"")];
        assert!(conditions.into_iter().any(|one| parses(format!("regions where {one}"))), "where {title}");
    }
}

#[test]
fn every_command_is_described_and_every_example_is_in_the_language() {
    for about in COMMANDS.abouts() {
        assert!(!about.examples.is_empty(), "{} has no example", about.name.name);
        assert!(!about.summary.ends_with('.'), "{}", about.summary);
        assert!(about.text.len() > about.summary.len(), "{}", about.name.name);
        for example in about.examples {
            // One of several lines is put together to blocks; the lines of one are parsed by themselves.
            if example.line.contains('\n') {
                let mut block = BlockLines::new(COMMANDS.language);
                example.line.lines().for_each(|line| drop(block.push(line)));
                assert!(block.is_empty(), "{}", example.line);
                continue;
            }
            let parsed = COMMANDS.language.parse_line(example.line);
            let parsed = parsed.unwrap_or_else(|error| panic!("{}", error.draw(example.line)));
            assert!(!matches!(parsed, ParsedLine::Empty | ParsedLine::Comment), "{}", example.line);
        }
    }
}

#[test]
fn a_command_fails_without_a_process_exactly_if_its_name_says_so() {
    let (_, target) = World::new([]).target();
    let outcome = |line: &str| {
        let mut state = DebugState::new(target.machine.clone());
        let mut sink = Kept { records: Vec::new(), stop_at: usize::MAX };
        run_line(&mut state, line, None, &mut sink)
    };
    for about in COMMANDS.abouts() {
        let line = about.examples[0].line;
        match about.name.process {
            ProcessNeed::Required => assert!(outcome(line).is_err(), "{line}"),
            // What `print` does without a process depends on its arguments.
            ProcessNeed::Optional => {}
            ProcessNeed::Unused => assert!(outcome(line).is_ok(), "{line}"),
            ProcessNeed::UnusedBefore(words) | ProcessNeed::UnusedBehind(words) => {
                let file =
                    if matches!(about.name.process, ProcessNeed::UnusedBehind(_)) { " ./absent/file" } else { "" };
                let name = about.name.name;
                // Where there is an argument, its name may be what is not found.
                let is_refused = match outcome(line) {
                    Err(Error::NoTarget) => true,
                    Err(_) => line != name,
                    Ok(_) => false,
                };
                assert!(is_refused, "{line}");
                for word in words {
                    let line = match *word {
                        "\"" => format!("{name}{file} \"no program is called so\""),
                        "cgroup" => format!("{name}{file} cgroup /x"),
                        "of" => format!("{name}{file} of nobody"),
                        "pfn:" | "phys:" => format!("{name} {word}1"),
                        word => format!("{name} {word}"),
                    };
                    // This machine has neither memory nor other processes: it fails, but not for want of a process.
                    assert!(!matches!(outcome(&line), Err(Error::NoTarget)), "{line}");
                }
            }
        }
    }
}

#[test]
fn topics_are_found_by_name_short_form_and_beginning() {
    let names = |words| COMMANDS.matching(words).iter().map(|about| about.name.name).collect::<Vec<_>>();
    assert_eq!(names("walk"), ["walk"]);
    assert_eq!(names("r"), ["region"]);
    assert_eq!(names("regions"), ["regions"]);
    assert_eq!(
        names("info"),
        COMMANDS.language.second_words("info").map(|second| format!("info {second}")).collect::<Vec<_>>()
    );
    assert_eq!(names("info s"), ["info symbol", "info symbols", "info snapshots"]);
    assert!(names("nothing").is_empty());
}
