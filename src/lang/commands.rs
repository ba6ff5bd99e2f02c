//! The one table of command names, and how a shortened name finds its command.

/// A row of [`COMMANDS`].
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

const fn row(name: &'static str) -> CommandName {
    CommandName { name, short: &[], whole: false, how: false, block: None }
}

impl CommandName {
    const fn short(self, short: &'static [&'static str]) -> Self {
        CommandName { short, ..self }
    }

    const fn whole(self) -> Self {
        CommandName { whole: true, ..self }
    }

    const fn how(self) -> Self {
        CommandName { how: true, ..self }
    }

    const fn block(self, line: BlockLine) -> Self {
        CommandName { block: Some(line), ..self.whole() }
    }
}

/// Every command, in the order of the help; tested equal to the command words of `grammar/language.ebnf`.
pub static COMMANDS: &[CommandName] = &[
    row("attach"),
    row("detach"),
    row("ps"),
    row("info process"),
    row("info threads").whole(),
    row("info registers").whole(),
    row("info capabilities"),
    row("translate").short(&["t"]).how(),
    row("region").short(&["r"]).how(),
    row("regions").how(),
    row("walk").short(&["w"]).how(),
    row("flags").short(&["f"]).how(),
    row("map").whole(),
    row("who").how(),
    row("summary").how(),
    row("account").whole(),
    row("explain").short(&["e"]).how(),
    row("patched").whole().how(),
    row("decode"),
    row("x").how(),
    row("telescope").how(),
    row("find"),
    row("print").short(&["p"]),
    row("info symbol"),
    row("info address"),
    row("info symbols"),
    row("info modules"),
    row("info line"),
    row("watch"),
    row("snapshot").whole(),
    row("info snapshots").whole(),
    row("diff").whole(),
    row("compare").whole(),
    row("soft-dirty").whole().how(),
    row("assert").whole(),
    row("if").block(BlockLine::Opens),
    row("else").block(BlockLine::Inside),
    row("end").block(BlockLine::Inside),
    row("while").block(BlockLine::Opens),
    row("loop_break").block(BlockLine::Inside),
    row("loop_continue").block(BlockLine::Inside),
    row("foreach").block(BlockLine::Opens),
    row("define").block(BlockLine::Opens),
    row("document").block(BlockLine::Opens),
    row("alias").whole(),
    row("display").whole(),
    row("undisplay").whole(),
    row("info display").whole(),
    row("printf").whole(),
    row("output").whole(),
    row("set"),
    row("show"),
    row("echo"),
    row("source"),
    row("history"),
    row("complete").whole(),
    row("help").short(&["h"]),
    row("apropos"),
    row("quit").short(&["q"]),
    row("pipe"),
    row("shell").short(&["!"]),
];

/// Whether the command of this name takes `--how`.
pub fn takes_how(name: &str) -> bool {
    COMMANDS.iter().any(|row| row.how && row.name == name)
}

/// What a line does that begins with this unabbreviated word, if blocks are made of such lines.
pub fn block_line(word: &str) -> Option<BlockLine> {
    let row = COMMANDS.iter().find(|row| row.name == word)?;
    row.block
}

/// The words that open a block.
pub fn opening_words() -> impl Iterator<Item = &'static str> {
    let opens = |row: &&CommandName| row.block == Some(BlockLine::Opens);
    COMMANDS.iter().filter(opens).map(|row| row.name)
}

/// Whether `display` may run the command that begins with this unabbreviated word: one that changes nothing.
pub fn is_displayed(word: &str) -> bool {
    takes_how(word)
        || ["find", "decode", "ps", "printf", "echo"].contains(&word)
        || resolve_first(word) == Resolved::One("info")
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

/// The words that a line may begin with, each once.
pub fn first_words() -> impl Iterator<Item = &'static str> {
    let split = |command: &'static CommandName| command.name.split_once(' ');
    let words = COMMANDS.iter().enumerate().map(move |(at, command)| match split(command) {
        None => Some(command.name),
        // Only commands of two words share the first.
        Some((first, _)) => {
            let mut before = COMMANDS.iter().take(at).filter_map(split);
            before.all(|(other, _)| other != first).then_some(first)
        }
    });
    words.flatten()
}

/// The second words of a command whose first word is `first`; none for a command of one word.
pub fn second_words(first: &str) -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().filter_map(move |command| {
        let (before, second) = command.name.split_once(' ')?;
        (before == first).then_some(second)
    })
}

/// Resolves the first word of a command, or its abbreviation.
pub fn resolve_first(word: &str) -> Resolved {
    match COMMANDS.iter().find(|command| command.short.contains(&word)) {
        Some(command) => Resolved::One(command.name),
        None => resolve(word, first_words(), first_is_whole),
    }
}

/// Whether a first word has no abbreviations: no command with a subcommand begins with it, nor one that may be
/// shortened.
fn first_is_whole(first: &str) -> bool {
    COMMANDS
        .iter()
        .filter(|command| command.name.split(' ').next() == Some(first))
        .all(|command| command.whole && command.name == first)
}

/// Resolves the subcommand of `first`, or its abbreviation.
pub fn resolve_second(first: &str, word: &str) -> Resolved {
    resolve(word, second_words(first), |second| {
        let is_it = |command: &&CommandName| command.name.split_once(' ') == Some((first, second));
        COMMANDS.iter().find(is_it).is_some_and(|command| command.whole)
    })
}

fn resolve(word: &str, words: impl Iterator<Item = &'static str>, is_whole: impl Fn(&str) -> bool) -> Resolved {
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
