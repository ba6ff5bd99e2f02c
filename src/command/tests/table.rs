//! The table of commands, held to the language.

use super::super::TABLE;
use super::super::about::matching;
use crate::lang::{self, COMMANDS, Line, script};

#[test]
fn the_table_is_the_grammar_s() {
    let mut described: Vec<_> = TABLE.iter().map(|about| about.name).collect();
    let mut written: Vec<_> = COMMANDS.iter().map(|command| command.name).collect();
    described.sort_unstable();
    written.sort_unstable();
    assert_eq!(described, written);
}

#[test]
fn every_command_is_described_and_every_example_is_in_the_language() {
    for about in TABLE {
        assert!(!about.examples.is_empty(), "{} has no example", about.name);
        assert!(!about.summary.ends_with('.'), "{}", about.summary);
        assert!(about.text.len() > about.summary.len(), "{}", about.name);
        for example in about.examples {
            // One of several lines is put together to blocks; the lines of one are parsed by themselves.
            if example.line.contains('\n') {
                assert!(!script::is_open(example.line), "{}", example.line);
                continue;
            }
            let parsed = lang::parse_line(example.line);
            let parsed = parsed.unwrap_or_else(|error| panic!("{}", error.draw(example.line)));
            assert!(!matches!(parsed, Line::Empty | Line::Comment), "{}", example.line);
        }
    }
}

#[test]
fn topics_are_found_by_name_short_form_and_beginning() {
    let names = |words| matching(TABLE, words).iter().map(|about| about.name).collect::<Vec<_>>();
    assert_eq!(names("walk"), ["walk"]);
    assert_eq!(names("r"), ["region"]);
    assert_eq!(names("regions"), ["regions"]);
    assert_eq!(
        names("info"),
        lang::commands::second_words("info").map(|second| format!("info {second}")).collect::<Vec<_>>()
    );
    assert_eq!(names("info s"), ["info symbol", "info symbols", "info snapshots"]);
    assert!(names("nothing").is_empty());
}
