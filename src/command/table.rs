//! Every command by name: what help, `apropos` and completion say of it.

/// What a command says of itself.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Its full name, the same as in the grammar: `walk`, `info process`.
    pub name: &'static str,
    /// The group of `help` that it stands in.
    pub group: Group,
    /// One line without a full stop.
    pub summary: &'static str,
    /// Paragraphs, parted by empty lines.
    pub text: &'static str,
    /// Lines that can be typed as they are, at the demonstration process; each is run by a test.
    pub examples: &'static [Example],
}

/// A line and what it does.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The line.
    pub line: &'static str,
    /// What it does.
    pub does: &'static str,
}

/// The groups of `help`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// Choosing what to look at.
    Target,
    /// Looking at pages, frames and regions.
    Look,
    /// Names and values.
    Memory,
    /// What changes.
    Time,
    /// The prompt itself.
    Language,
}

impl Group {
    /// In the order of `help`.
    pub const ALL: &'static [Group] = &[
        Group::Target,
        Group::Look,
        Group::Memory,
        Group::Time,
        Group::Language,
    ];

    /// Its name, as `help NAME` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Group::Target => "target",
            Group::Look => "look",
            Group::Memory => "memory",
            Group::Time => "time",
            Group::Language => "language",
        }
    }

    /// What its commands are for.
    pub const fn about(self) -> &'static str {
        match self {
            Group::Target => "choose what to look at",
            Group::Look => "pages, frames and regions",
            Group::Memory => "names and values",
            Group::Time => "what changes",
            Group::Language => "the prompt itself",
        }
    }
}

use super::*;

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

/// The commands that `words` mean: by full name or short form, otherwise those that begin so, word by word.
pub(super) fn matching(words: &str) -> Vec<&'static About> {
    let is_short = |about: &&About| {
        let mut commands = crate::lang::COMMANDS.iter();
        commands.any(|command| command.name == about.name && command.short.contains(&words))
    };
    if let Some(about) = TABLE
        .iter()
        .find(|about| about.name == words || is_short(about))
    {
        return vec![about];
    }
    let begins = |about: &&About| {
        let mut name = about.name.split(' ');
        words
            .split(' ')
            .all(|word| name.next().is_some_and(|part| part.starts_with(word)))
    };
    TABLE.iter().filter(|about| begins(about)).collect()
}

#[cfg(test)]
mod tests {
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
            matching(words)
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
