//! Every command by name.

use super::about::About;

/// Every command, in the order of `help`.
pub static TABLE: &[About] = &[
    super::attach::ABOUT,
    super::detach::ABOUT,
    super::process::ABOUT,
    super::capabilities::ABOUT,
    super::ps::ABOUT,
    super::translate::ABOUT,
    super::region::ABOUT,
    super::regions::ABOUT,
    super::walk::ABOUT,
    super::flags::ABOUT,
    super::who::ABOUT,
    super::summary::ABOUT,
    super::explain::ABOUT,
    super::decode::ABOUT,
    super::examine::ABOUT,
    super::telescope::ABOUT,
    super::find::ABOUT,
    super::print::ABOUT,
    super::symbol::ABOUT_SYMBOL,
    super::symbol::ABOUT_ADDRESS,
    super::symbols::ABOUT,
    super::modules::ABOUT,
    super::line::ABOUT,
    super::watch::ABOUT,
    super::assert::ABOUT,
    super::control::IF,
    super::control::ELSE,
    super::control::END,
    super::control::WHILE,
    super::control::LOOP_BREAK,
    super::control::LOOP_CONTINUE,
    super::control::FOREACH,
    super::control::DEFINE,
    super::control::DOCUMENT,
    super::alias::ABOUT,
    super::set::ABOUT,
    super::show::ABOUT,
    super::echo::ABOUT,
    super::source::ABOUT,
    super::history::ABOUT,
    super::shell::ABOUT_SHELL,
    super::shell::ABOUT_PIPE,
    super::help::ABOUT,
    super::apropos::ABOUT,
    super::quit::ABOUT,
];

/// The command of that full name.
pub fn find(name: &str) -> Option<&'static About> {
    TABLE.iter().find(|about| about.name == name)
}

#[cfg(test)]
mod tests {
    use super::super::about::matching;
    use super::*;
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
                "info address",
                "info symbols",
                "info modules",
                "info line"
            ]
        );
        assert_eq!(names("info s"), ["info symbol", "info symbols"]);
        assert!(names("nothing").is_empty());
    }
}
