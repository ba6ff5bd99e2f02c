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
    ps::ABOUT,
    translate::ABOUT,
    region::ABOUT,
    regions::ABOUT,
    walk::ABOUT,
    flags::ABOUT,
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
