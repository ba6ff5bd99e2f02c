//! What every abbreviation of a command meant at commit 2465a84, before the commands that make files into programs.
//! Files and fingers rely on these: a later command may not take one of them, nor make it ambiguous.

use std::collections::BTreeMap;

use pmdb::command::LANGUAGE;
use pmdb::lang::Resolved;

/// Lines of a first word, `: `, and what it stood for; a subcommand has its command before it. With several words it
/// was ambiguous.
const THEN: &str = include_str!("abbreviations.txt");

#[test]
fn every_abbreviation_keeps_its_meaning() {
    let then: BTreeMap<&str, &str> = THEN.lines().filter_map(|line| line.split_once(": ")).collect();
    assert!(then.len() > 150, "{} abbreviations", then.len());
    for (typed, meaning) in then {
        let now = match typed.split_once(' ') {
            Some((first, second)) => LANGUAGE.resolve_second(first, second),
            None => LANGUAGE.resolve_first(typed),
        };
        let now = match now {
            Resolved::One(one) => one.to_owned(),
            Resolved::Ambiguous(several) => several.join(" "),
            Resolved::Unknown => String::new(),
        };
        assert_eq!(now, meaning, "`{typed}`");
    }
}
