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
}

const fn plain(name: &'static str) -> CommandName {
    short(name, &[])
}

const fn short(name: &'static str, short: &'static [&'static str]) -> CommandName {
    CommandName {
        name,
        short,
        whole: false,
        how: false,
    }
}

/// A command that counts only when it is typed whole.
const fn whole(name: &'static str) -> CommandName {
    CommandName {
        name,
        short: &[],
        whole: true,
        how: false,
    }
}

/// A command that takes `--how`.
const fn with_how(command: CommandName) -> CommandName {
    CommandName {
        how: true,
        ..command
    }
}

/// Every command, in the order of the help; tested equal to the command words of `grammar/language.ebnf`.
pub static COMMANDS: &[CommandName] = &[
    plain("attach"),
    plain("detach"),
    plain("ps"),
    plain("info process"),
    whole("info threads"),
    whole("info registers"),
    plain("info capabilities"),
    with_how(short("translate", &["t"])),
    with_how(short("region", &["r"])),
    with_how(plain("regions")),
    with_how(short("walk", &["w"])),
    with_how(short("flags", &["f"])),
    whole("map"),
    with_how(plain("who")),
    with_how(plain("summary")),
    with_how(short("explain", &["e"])),
    with_how(whole("patched")),
    plain("decode"),
    with_how(plain("x")),
    with_how(plain("telescope")),
    plain("find"),
    short("print", &["p"]),
    plain("info symbol"),
    plain("info address"),
    plain("info symbols"),
    plain("info modules"),
    plain("info line"),
    plain("watch"),
    whole("snapshot"),
    whole("info snapshots"),
    whole("diff"),
    whole("compare"),
    with_how(whole("soft-dirty")),
    whole("assert"),
    whole("if"),
    whole("else"),
    whole("end"),
    whole("while"),
    whole("loop_break"),
    whole("loop_continue"),
    whole("foreach"),
    whole("define"),
    whole("document"),
    whole("alias"),
    whole("display"),
    whole("undisplay"),
    whole("info display"),
    whole("printf"),
    whole("output"),
    plain("set"),
    plain("show"),
    plain("echo"),
    plain("source"),
    plain("history"),
    whole("complete"),
    short("help", &["h"]),
    plain("apropos"),
    short("quit", &["q"]),
    plain("pipe"),
    short("shell", &["!"]),
];

/// Whether the command of this name takes `--how`.
pub fn takes_how(name: &str) -> bool {
    COMMANDS.iter().any(|row| row.how && row.name == name)
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
    let first = |command: &CommandName| command.name.split(' ').next().unwrap_or(command.name);
    let mut before = Vec::new();
    COMMANDS.iter().map(first).filter(move |word| {
        let new = !before.contains(word);
        before.push(*word);
        new
    })
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
    match COMMANDS
        .iter()
        .find(|command| command.short.contains(&word))
    {
        Some(command) => Resolved::One(command.name),
        None => resolve(word, first_words(), first_is_whole),
    }
}

/// Whether a first word has no abbreviations: no command with a subcommand begins with it, nor one that may be shortened.
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
        COMMANDS
            .iter()
            .find(is_it)
            .is_some_and(|command| command.whole)
    })
}

fn resolve(
    word: &str,
    words: impl Iterator<Item = &'static str>,
    is_whole: impl Fn(&str) -> bool,
) -> Resolved {
    let candidates: Vec<&'static str> = words
        .filter(|candidate| candidate.starts_with(word))
        .collect();
    if let Some(exact) = candidates.iter().find(|candidate| **candidate == word) {
        return Resolved::One(exact);
    }
    let candidates: Vec<&'static str> = candidates
        .into_iter()
        .filter(|candidate| !is_whole(candidate))
        .collect();
    match candidates.as_slice() {
        [] => Resolved::Unknown,
        [one] => Resolved::One(one),
        _ => Resolved::Ambiguous(candidates),
    }
}
