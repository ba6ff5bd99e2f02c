//! Every command by name.

use super::about::About;
use super::{
    apropos, attach, capabilities, decode, detach, echo, explain, flags, help, history, print,
    process, ps, quit, region, regions, set, shell, show, source, summary, symbol, translate, walk,
    watch, who,
};

/// Every command, in the order of `help`.
pub static TABLE: &[About] = &[
    attach::ABOUT,
    detach::ABOUT,
    process::ABOUT,
    capabilities::ABOUT,
    ps::ABOUT,
    translate::ABOUT,
    region::ABOUT,
    regions::ABOUT,
    walk::ABOUT,
    flags::ABOUT,
    who::ABOUT,
    summary::ABOUT,
    explain::ABOUT,
    decode::ABOUT,
    print::ABOUT,
    symbol::ABOUT_SYMBOL,
    symbol::ABOUT_ADDRESS,
    watch::ABOUT,
    set::ABOUT,
    show::ABOUT,
    echo::ABOUT,
    source::ABOUT,
    history::ABOUT,
    shell::ABOUT_SHELL,
    shell::ABOUT_PIPE,
    help::ABOUT,
    apropos::ABOUT,
    quit::ABOUT,
];

/// The command of that full name.
pub fn find(name: &str) -> Option<&'static About> {
    TABLE.iter().find(|about| about.name == name)
}

#[cfg(test)]
mod tests {
    use super::super::about::matching;
    use super::*;
    use crate::lang::{self, COMMANDS, Line};

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
                let parsed = lang::parse_line(example.line);
                let parsed = parsed.unwrap_or_else(|error| panic!("{}", error.draw(example.line)));
                assert!(
                    !matches!(parsed, Line::Empty | Line::Comment),
                    "{}",
                    example.line
                );
            }
        }
    }

    #[test]
    fn topics_are_found_by_name_short_form_and_beginning() {
        let names = |words| {
            matching(TABLE, words)
                .iter()
                .map(|about| about.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(names("walk"), ["walk"]);
        assert_eq!(names("r"), ["region"]);
        assert_eq!(names("regions"), ["regions"]);
        assert_eq!(
            names("info"),
            [
                "info process",
                "info capabilities",
                "info symbol",
                "info address"
            ]
        );
        assert_eq!(names("info s"), ["info symbol"]);
        assert!(names("nothing").is_empty());
    }
}
