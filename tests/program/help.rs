//! The English of the help: how its texts begin, how long a sentence may be, and that what they quote can be typed.

use crate::english::{faults, filled, meaning};
use crate::run::Home;
use pmdb::command::LANGUAGE;
use pmdb::lang;
use serde_json::Value;
use std::collections::BTreeSet;

/// Verbs that begin the summaries of commands, and the descriptions of examples.
const VERBS: &[&str] = &[
    "add",
    "attach",
    "begin",
    "change",
    "check",
    "choose",
    "clear",
    "compare",
    "control",
    "convert",
    "count",
    "define",
    "delete",
    "describe",
    "detach",
    "draw",
    "end",
    "evaluate",
    "examine",
    "explain",
    "find",
    "follow",
    "keep",
    "leave",
    "list",
    "look",
    "name",
    "print",
    "read",
    "remove",
    "report",
    "run",
    "save",
    "search",
    "send",
    "show",
    "stop",
    "translate",
    "wait",
    "watch",
    "write",
];

/// The longest summary, in characters.
const SUMMARY: usize = 60;
/// The rows of a small terminal, without that of the prompt.
const SCREEN: usize = 23;

fn records(topic: &str) -> Vec<Value> {
    Home::new().run(&["--json", "help", topic]).is_fine().objects()
}

fn text<'a>(record: &'a Value, field: &str) -> &'a str {
    record[field].as_str().unwrap_or_default()
}

/// A line of a text: a paragraph, a row's meaning, a summary or an example's description, with its topic.
struct Prose {
    topic: String,
    line: String,
}

/// Lines to be typed, which are not English.
fn is_typed(topic: &str, line: &str) -> bool {
    let is_row = line.trim().contains("  ");
    line.starts_with(' ') && (["jq", "python"].contains(&topic) || (topic != "faq" && !is_row))
}

/// All of the help that a person reads.
fn prose() -> Vec<Prose> {
    let mut all = Vec::new();
    for record in records("all") {
        let topic = text(&record, "name").to_owned();
        let mut push = |line: &str| all.push(Prose { topic: topic.clone(), line: line.to_owned() });
        push(text(&record, "summary"));
        let lines = text(&record, "text").lines().filter(|line| !line.is_empty() && !is_typed(&topic, line));
        // `pfn  number: Page frame number.`
        let without_form = |line| match topic.as_str() {
            "records" => str::split_once(line, ": ").map_or(line, |(_, about)| about),
            _ => line,
        };
        lines.map(meaning).map(without_form).for_each(&mut push);
        let examples = record["examples"].as_array().into_iter().flatten();
        examples.for_each(|example| push(text(example, "does")));
    }
    let options = Home::new().run(&["--help"]).is_fine().out.clone();
    let (options, _) = options.split_once("Examples:").expect("examples");
    for (index, paragraph) in options.split("\n\n").enumerate() {
        // Below the name of an option.
        let lines = paragraph.lines().filter(|line| index == 0 || line.starts_with("          "));
        let line = lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
        all.push(Prose { topic: "--help".to_owned(), line });
    }
    all
}

#[test]
fn the_help_is_written_by_the_rules() {
    let all = prose();
    assert!(all.len() > 800, "{}", all.len());
    let faults: Vec<String> = all
        .iter()
        .flat_map(|prose| faults(&prose.line).into_iter().map(move |fault| format!("{}: {fault}", prose.topic)))
        .collect();
    assert_eq!(faults.join("\n"), "");
}

#[test]
fn summaries_and_examples_begin_with_a_verb() {
    let mut used = BTreeSet::new();
    let mut check = |line: &str| {
        let first = line.split(' ').next().unwrap_or_default();
        assert!(VERBS.contains(&first), "{line}");
        assert!(!line.ends_with('.'), "{line}");
        used.insert(first.to_owned());
    };
    for record in records("all").iter().filter(|record| record["topic"] == "command") {
        let summary = text(record, "summary");
        assert!(summary.chars().count() <= SUMMARY, "{summary}");
        check(summary);
        for example in record["examples"].as_array().expect("examples") {
            check(text(example, "does"));
        }
    }
    let home = Home::new();
    let overview = home.run(&["--json", "help"]).is_fine().objects();
    let subjects = home.run(&["--json", "help", "topics"]).is_fine().objects();
    for group in overview[0]["groups"].as_array().expect("groups").iter().chain(&subjects) {
        check(text(group, "about"));
    }
    let unused: Vec<_> = VERBS.iter().filter(|verb| !used.contains(**verb)).collect();
    assert!(unused.is_empty(), "{unused:?}");
}

/// What is in backticks, in all texts.
fn quoted() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for record in records("all").iter().filter(|record| record["name"] != "records") {
        for line in text(record, "text").lines() {
            // A command of gdb's own.
            let line = line.replace("gdb's `", "").replace("In gdb, `", "");
            all.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    all
}

#[test]
fn quoted_commands_can_be_typed() {
    let mut seen = 0;
    for line in quoted() {
        let is_command = |command: &lang::CommandName| line.starts_with(&format!("{} ", command.name));
        if LANGUAGE.names().any(is_command) {
            let filled = filled(&line);
            let parsed = LANGUAGE.parse_line(&filled);
            assert!(parsed.is_ok(), "{line}: {}", parsed.map_or_else(|error| error.draw(&filled), |_| String::new()));
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn topics_that_the_help_names_exist() {
    let home = Home::new();
    let topics: Vec<String> =
        quoted().iter().filter(|line| line.starts_with("help ")).map(|line| filled(line)).collect();
    assert!(topics.len() > 10, "{topics:?}");
    let lines: Vec<&str> = topics.iter().flat_map(|topic| ["-ex", topic]).collect();
    home.run(&[&["-batch"][..], &lines].concat()).is_fine();
}

#[test]
fn the_overview_fits_a_screen_and_names_everything() {
    let home = Home::new();
    let overview = home.run(&["-batch", "-ex", "set width 80", "-ex", "help"]).is_fine().out.clone();
    assert!(overview.lines().count() <= SCREEN, "{}\n{overview}", overview.lines().count());
    let is_question = |line: &str| line.starts_with("  ") && line.ends_with('?');
    assert!(overview.lines().take_while(|line| is_question(line)).count() >= 8, "{overview}");
    assert!(overview.lines().all(|line| line.chars().count() <= 80), "{overview}");
    let joined = overview.split_whitespace().collect::<Vec<_>>().join(" ");
    let subjects = home.run(&["help", "topics"]).is_fine().out.clone();
    for record in records("all") {
        let name = text(&record, "name");
        let is_named = match text(&record, "topic") {
            "command" => ["", "*"]
                .iter()
                .any(|star| joined.contains(&format!(" {name}{star},")) || joined.contains(&format!(" {name}{star} "))),
            _ => subjects.contains(&format!("\n  {name} ")),
        };
        assert!(is_named, "{name}");
    }
    for group in ["target", "look", "memory", "time", "scripts", "language"] {
        let listed = home.run(&["help", group]).is_fine().out.clone();
        assert!(listed.starts_with(group) && listed.lines().count() > 5, "{listed}");
    }
}

#[test]
fn an_error_lists_six_alternatives_and_names_the_help_with_the_others() {
    let home = Home::new();
    for (line, topic) in [("walk all by", "walk"), ("set", "set")] {
        let run = home.run(&["-batch", "-ex", line]);
        let expected =
            run.failed(1, "expected ").err.lines().filter(|line| !line.contains("error: ")).collect::<Vec<_>>();
        let expected = expected.join(" ");
        let (_, expected) = expected.split_once("expected ").expect("alternatives");
        assert_eq!(expected.matches(", ").count(), 5, "{line}: {expected}");
        assert!(expected.contains(&format!(" or … (help {topic})")), "{line}: {expected}");
        home.run(&["help", topic]).is_fine();
    }
}

#[test]
fn a_word_for_a_task_names_the_command_first() {
    let home = Home::new();
    for (words, note, shown) in [
        ("fork", "questions about fork\n  compare children ", "compare: compare the memory of two processes"),
        ("huge pages", "questions about huge pages\n  huge ", "why is memory not on huge pages?"),
        ("thp", "questions about thp\n  huge ", "the same as pmd_mapped"),
        ("slab", "note: `walk pfn:A..pfn:B where flags(slab)` ", "flags: the flags of page frames"),
    ] {
        let help = home.run(&["help", words]).is_fine().out.clone();
        assert!(help.starts_with(note) && help.contains(shown), "{words}: {help}");
    }
}
