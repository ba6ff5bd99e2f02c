//! The English of the help: how its texts begin, how long a sentence may be, and that what they quote can be typed.

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

/// Verbs of people. Programs print, need, end, contain, search and compare.
const OF_PEOPLE: &[&str] = &[
    "tell", "tells", "told", "say", "says", "said", "take", "takes", "took", "taken", "stand", "stands", "stood",
    "know", "knows", "knew", "go", "goes", "close", "closes", "closed", "ask", "asks", "asked", "wants", "lends",
];

/// Where one of these words is right.
const RIGHT: &[&str] =
    &["pages that come and go", "regions as they come and go", "ask (pmdb stops", "otherwise ask)", "method ask"];

/// `behind` is a place in memory.
const PLACES: &[&str] = &["the memory behind a Linux process"];

/// The longest sentence, in words.
const WORDS: usize = 30;
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

fn meaning(line: &str) -> &str {
    if !line.starts_with(' ') {
        return line;
    }
    line.trim().rsplit_once("  ").map_or(line.trim(), |(_, meaning)| meaning)
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

/// Without the parts in backticks: those are typed.
fn unquoted(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

fn sentences(line: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    for word in unquoted(line).split_whitespace() {
        let last = sentences.last_mut().expect("one");
        last.push_str(word);
        last.push(' ');
        if word.ends_with(['.', '?', '!']) && !word.ends_with("..") {
            sentences.push(String::new());
        }
    }
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

fn is_word(line: &str, wanted: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').any(|word| word.eq_ignore_ascii_case(wanted))
}

/// The faults of a line, by the rules of our English.
fn faults(line: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let first = line.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    if ["what", "whose", "where", "which", "how"].contains(&first.as_str()) {
        faults.push(format!("begins with `{first}`"));
    }
    let mut rest = unquoted(line);
    RIGHT.iter().chain(PLACES).for_each(|right| rest = rest.replace(right, ""));
    if is_word(&rest, "behind") {
        faults.push("`behind` is a place: after?".to_owned());
    }
    let of_people = OF_PEOPLE.iter().filter(|verb| is_word(&rest, verb));
    faults.extend(of_people.map(|verb| format!("things do not `{verb}`")));
    if unquoted(line).matches("; ").count() > 1 {
        faults.push("two semicolons".to_owned());
    }
    for sentence in sentences(line) {
        let words = sentence.split_whitespace().count();
        if words > WORDS {
            faults.push(format!("{words} words: {sentence}"));
        }
        if sentence.matches(": ").count() > 1 {
            faults.push(format!("two colons: {sentence}"));
        }
    }
    faults
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
fn the_rules_find_faults() {
    for line in [
        "what a page is",
        "Where it lies.",
        "the bytes behind the slash",
        "The answer says so.",
        "one; two; three",
        "One: two: three.",
        "a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e",
    ] {
        assert_eq!(faults(line).len(), 1, "{line}");
    }
    for line in ["a pager: `pager asks`; `behind`", "the memory behind a Linux process", "Prints it. Ends."] {
        assert!(faults(line).is_empty(), "{line}");
    }
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
    let overview = Home::new().run(&["--json", "help"]).is_fine().objects();
    for group in overview[0]["groups"].as_array().expect("groups") {
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

/// A line in which each placeholder has a value.
fn filled(line: &str) -> String {
    const VALUES: [(&str, &str); 12] = [
        ("RANGE", "heap"),
        ("ADDRESS", "0x1000"),
        ("FILTER", "dirty"),
        ("VALUE", "1"),
        ("COMMAND", "walk"),
        ("GROUP", "look"),
        ("SUBJECT", "filters"),
        ("WORD", "dirty"),
        ("NAME", "width"),
        ("FILE", "./f"),
        ("ROW", "0x1000"),
        ("N", "1"),
    ];
    let words = line.split(' ').filter(|word| *word != "…");
    let words = words.map(|word| {
        let value = VALUES.iter().find(|(name, _)| *name == word);
        value.map_or(word, |(_, value)| value)
    });
    words.collect::<Vec<_>>().join(" ")
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
    assert!(overview.starts_with("target "), "{overview}");
    assert!(overview.lines().all(|line| line.chars().count() <= 80), "{overview}");
    let joined = overview.split_whitespace().collect::<Vec<_>>().join(" ");
    for record in records("all") {
        let name = text(&record, "name");
        let is_named = [format!(" {name},"), format!(" {name} ")].iter().any(|named| joined.contains(named));
        assert!(is_named, "{name}");
    }
    for group in ["target", "look", "memory", "time", "scripts", "language"] {
        let listed = home.run(&["help", group]).is_fine().out.clone();
        assert!(listed.starts_with(group) && listed.lines().count() > 5, "{listed}");
    }
}
