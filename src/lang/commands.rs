//! How commands are named, and how a shortened name finds its command.

/// The name of a command, and how it may be typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandName {
    /// In full; a blank stands between a command and its subcommand.
    pub name: &'static str,
    /// Fixed short forms, valid even where the bare prefix would be ambiguous.
    pub short: &'static [&'static str],
    /// Whether its last word must be typed in full, so that it takes no existing abbreviation.
    pub whole: bool,
    /// Whether it looks at pages, so that it can show its reads: `--how`.
    pub how: bool,
    /// Whether `display` may run it: it changes nothing.
    pub displayed: bool,
    /// What the line does, if blocks are made of such lines.
    pub block: Option<BlockLine>,
}

/// What a line of blocks does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockLine {
    /// It opens one.
    Opens,
    /// It stands in one.
    Inside,
}

impl CommandName {
    /// A name that may be shortened.
    pub const fn new(name: &'static str) -> Self {
        CommandName { name, short: &[], whole: false, how: false, displayed: false, block: None }
    }

    /// With fixed short forms.
    pub const fn short(self, short: &'static [&'static str]) -> Self {
        CommandName { short, ..self }
    }

    /// Typed in full.
    pub const fn whole(self) -> Self {
        CommandName { whole: true, ..self }
    }

    /// With `--how`; such a command changes nothing.
    pub const fn how(self) -> Self {
        CommandName { how: true, displayed: true, ..self }
    }

    /// Of a command that `display` may run.
    pub const fn displayed(self) -> Self {
        CommandName { displayed: true, ..self }
    }

    /// A line of blocks, typed in full.
    pub const fn block(self, line: BlockLine) -> Self {
        CommandName { block: Some(line), ..self.whole() }
    }

    pub(super) fn first(&self) -> &'static str {
        self.name.split_once(' ').map_or(self.name, |(first, _)| first)
    }

    pub(super) fn second(&self) -> Option<&'static str> {
        self.name.split_once(' ').map(|(_, second)| second)
    }
}

/// The command that a word means, which may be an abbreviation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// One command, in full.
    One(&'static str),
    /// An abbreviation of several.
    Ambiguous(Vec<&'static str>),
    /// No command.
    Unknown,
}

/// Finds the one of `words` that `word` begins; those that are whole must be typed in full.
pub(super) fn resolve(
    word: &str,
    words: impl Iterator<Item = &'static str>,
    is_whole: impl Fn(&str) -> bool,
) -> Resolved {
    let candidates: Vec<&'static str> = words.filter(|candidate| candidate.starts_with(word)).collect();
    if let Some(exact) = candidates.iter().find(|candidate| **candidate == word) {
        return Resolved::One(exact);
    }
    let candidates: Vec<&'static str> = candidates.into_iter().filter(|candidate| !is_whole(candidate)).collect();
    match candidates.as_slice() {
        [] => Resolved::Unknown,
        [one] => Resolved::One(one),
        _ => Resolved::Ambiguous(candidates),
    }
}
