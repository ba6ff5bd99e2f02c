//! The syntax tree of a line: plain data, with the place of everything that an error may point at.
//!
//! Nothing here knows a target: `eval` finds out what names stand for. Nothing here knows a command: each has its own
//! arguments and their parser, in `command`. Here is only how commands are named, and how a shortened name finds its
//! command.

use crate::kernel::words::worded;
use std::any::Any;
use std::fmt::{self, Debug, Display, Formatter};
use std::rc::Rc;
use std::time::Duration;

pub use super::ctype::{CType, KNOWN_TYPES, Width, type_words, unknown_type};
pub use super::error::{Span, Spanned};
pub use super::expression::{
    BinaryOperator, ChangeFunction, Changes, Expression, FilterExpression, Function, HistoryReference, NOW, NumberType,
    Range, Register, SymbolName, UnaryOperator, WrittenName, fixed_variables,
};
pub use super::field::{FilterField, FilterSubject, PageField, RegionField, ValueType};

/// A command with its arguments, as its own parser made it.
pub trait ParsedCommand: Any + Tree {
    /// Writes it as a line that parses to the same.
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result;

    /// What running it may change.
    fn reach(&self) -> Reach;
}

/// What `{:?}` prints of a command: its tree, which tests compare.
#[cfg(debug_assertions)]
pub trait Tree: Debug {}

#[cfg(debug_assertions)]
impl<T: Debug> Tree for T {}

/// What `{:?}` prints of a command: its line. The trees of all commands would take 300 KB of a release.
#[cfg(not(debug_assertions))]
pub trait Tree {}

#[cfg(not(debug_assertions))]
impl<T> Tree for T {}

#[cfg(not(debug_assertions))]
impl Debug for dyn ParsedCommand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write(f)
    }
}

impl Display for dyn ParsedCommand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write(f)
    }
}

impl dyn ParsedCommand {
    /// The command, if it is this one.
    pub fn downcast_ref<T: Any>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

impl PartialEq for dyn ParsedCommand {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

/// `COMMAND --how …`: a command that looks at pages, and the reads behind its answer.
#[derive(Clone, Debug)]
pub struct How(pub Rc<dyn ParsedCommand>);

impl ParsedCommand for How {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        match text.split_once(' ') {
            Some((name, arguments)) => write!(f, "{name} --how {arguments}"),
            None => write!(f, "{text} --how"),
        }
    }

    fn reach(&self) -> Reach {
        self.0.reach()
    }
}

/// What follows the name of a command makes a command, or a line of a block.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// A command.
    Command(Rc<dyn ParsedCommand>),
    /// A line of a block.
    Control(Control),
}

/// One line of input.
#[derive(Clone, Debug, PartialEq)]
pub enum ParsedLine {
    /// Nothing, or only blanks: at a prompt this repeats the last command.
    Empty,
    /// A line that holds only a comment.
    Comment,
    /// `!TEXT` or `shell TEXT`: the text goes to the shell as it stands.
    Shell(String),
    /// A command of pmdb and where its output goes.
    Command {
        /// What to do.
        command: Spanned<Rc<dyn ParsedCommand>>,
        /// Where the records are printed to.
        output: Output,
    },
    /// A line that opens, parts or closes a block, or leaves a loop.
    Control(Box<Control>),
}

/// The lines that blocks are made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Control {
    /// The line that opens a block.
    Open(Opening),
    /// `else`
    Else,
    /// `end`
    End,
    /// `loop_break`
    Break,
    /// `loop_continue`
    Continue,
}

/// A line that opens a block.
#[derive(Clone, Debug, PartialEq)]
pub enum Opening {
    /// `if E`
    If(Spanned<Expression>),
    /// `while E`
    While(Spanned<Expression>),
    /// `foreach $NAME in ROWS`
    Foreach {
        /// Without the `$`.
        variable: Spanned<String>,
        /// The values that it takes, one after the other.
        rows: Rows,
    },
    /// `define NAME`
    Define(Spanned<String>),
    /// `document NAME`
    Document(Spanned<String>),
}

/// The values of `foreach`.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// `regions …`, `walk …`: the ranges of the rows that the command shows.
    Of(Spanned<Rc<dyn ParsedCommand>>),
    /// `threads`: the stack pointer of each thread.
    Threads,
    /// `V, V`
    Values(Vec<Spanned<Range>>),
}

/// An argument of a command file, or of a command that `define` made.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// As it was typed.
    pub text: String,
    /// The range or expression that it is; text otherwise.
    pub value: Option<Spanned<Range>>,
}

/// Where the output of a command goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The terminal, or whatever standard output is.
    Screen,
    /// `CMD | TEXT` or `pipe CMD | TEXT`: the raw text of a shell command.
    Pipe(Spanned<String>),
    /// `CMD > PATH` (`append` is false) or `CMD >> PATH`. A leading `~/` is still as typed.
    File {
        /// The path, unquoted.
        path: Spanned<String>,
        /// Whether to append to the file instead of replacing it.
        append: bool,
    },
}

/// What `display` shows.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there are few at a time")]
pub enum DisplayContent {
    /// A value, or memory in the form of `x`.
    Value {
        /// As for `print`; with a count, a size or `s`, as for `x`.
        layout: ValueFormat,
        /// Whether it begins with a name that is in quotes because a command has it.
        is_quoted: bool,
        /// Evaluated each time.
        value: Spanned<Range>,
    },
    /// The answer of a command.
    Command {
        /// As it was typed.
        text: TypedText,
        /// The command.
        command: Spanned<Rc<dyn ParsedCommand>>,
    },
}

/// A text as it was typed. Any two are equal: the tree beside it holds the meaning.
#[derive(Clone)]
pub struct TypedText(pub String);

impl Debug for TypedText {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Typed")
    }
}

impl PartialEq for TypedText {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The format after `/`. Each part is optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueFormat {
    /// How many units; for `find` the most matches.
    pub count: Option<u64>,
    /// A `-` before the count: the units before the address. Only for `x`.
    pub backward: bool,
    /// The format of each unit.
    pub format: Option<Format>,
    /// The size of a unit.
    pub unit: Option<Unit>,
}

worded! {
    /// The letter of a form, as in gdb.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Format, letter {
        /// `x`
        Hexadecimal = "x",
        /// `d`
        Signed = "d",
        /// `u`
        Unsigned = "u",
        /// `o`
        Octal = "o",
        /// `t`
        Binary = "t",
        /// `a`: an address with its symbol.
        Address = "a",
        /// `c`
        Character = "c",
        /// `z`: hexadecimal, padded with zeros to the size of the value.
        PaddedHexadecimal = "z",
        /// `s`: text that ends with a zero.
        Text = "s",
        /// `f`: the bits of a floating-point number.
        Float = "f",
    }
}

worded! {
    /// The letter of a size, as in gdb.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Unit, letter {
        /// `b`
        Byte = "b",
        /// `h`: two bytes.
        HalfWord = "h",
        /// `w`: four bytes.
        Word = "w",
        /// `g`: eight bytes.
        GiantWord = "g",
    }
}

impl Format {
    /// What it is, for the help.
    pub const fn doc(self) -> &'static str {
        match self {
            Format::Hexadecimal => "hexadecimal",
            Format::Signed => "decimal, signed",
            Format::Unsigned => "decimal, unsigned",
            Format::Octal => "octal",
            Format::Binary => "binary",
            Format::Address => "an address with its symbol",
            Format::Character => "a character",
            Format::PaddedHexadecimal => "hexadecimal, padded with zeros",
            Format::Text => "text up to a zero",
            Format::Float => "a floating-point number",
        }
    }
}

impl Unit {
    /// Bytes in it.
    pub const fn bytes(self) -> u8 {
        match self {
            Unit::Byte => 1,
            Unit::HalfWord => 2,
            Unit::Word => 4,
            Unit::GiantWord => 8,
        }
    }
}

/// How many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Count {
    /// `20`
    Number(u64),
    /// `$n`, without the `$`.
    Variable(String),
}

/// A length of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Time {
    /// `100ms`
    Duration(Duration),
    /// `$t`, without the `$`: seconds, or a text such as `100ms`.
    Variable(String),
}

/// How many rows are shown, and which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitClause {
    /// `limit` or `top`.
    pub which: Which,
    /// The number of rows.
    pub rows: Spanned<Count>,
}

worded! {
    /// Which rows are shown, where not all are.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Which, word {
        /// The first ones.
        First = "limit",
        /// The largest ones, the largest first.
        Largest = "top",
    }
}

/// The name of a command, and how it may be typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandName {
    /// In full; a blank stands between a command and its subcommand.
    pub name: &'static str,
    /// Fixed short forms, valid even where the bare prefix would be ambiguous.
    pub short: &'static [&'static str],
    /// Whether its last word must be typed in full, so that it takes no existing abbreviation.
    pub is_whole: bool,
    /// Whether it looks at pages, so that it can show its reads: `--how`.
    pub takes_how: bool,
    /// What it may change.
    pub reach: Reach,
    /// Whether it needs a process.
    pub process: ProcessNeed,
    /// What the line does, if blocks are made of such lines.
    pub block: Option<BlockLine>,
}

/// What running a command may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Nothing: `display` may run it.
    Nothing,
    /// What the session keeps, such as the target, variables and settings. A client of `--mcp` may run it.
    Session,
    /// Files, the process, or whatever other lines do.
    Outside,
}

/// Whether a command needs a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessNeed {
    /// The command needs a process.
    Required,
    /// The command needs none, but `pmdb NAME` takes the name for that of a process.
    Optional,
    /// `pmdb NAME` runs it, without a process.
    Unused,
    /// The same, if one of these words follows the name; `"` is any text in quotes, and `pfn:` any frame. Otherwise it
    /// needs a process.
    UnusedBefore(&'static [&'static str]),
    /// The same, if one of these words follows the first argument.
    UnusedBehind(&'static [&'static str]),
}

/// What a line of blocks does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockLine {
    /// Opens a block.
    Opens,
    /// Stands in a block.
    Inside,
}

impl CommandName {
    /// A name that may be shortened.
    pub const fn new(name: &'static str) -> Self {
        CommandName {
            name,
            short: &[],
            is_whole: false,
            takes_how: false,
            reach: Reach::Outside,
            process: ProcessNeed::Required,
            block: None,
        }
    }

    /// With fixed short forms.
    pub const fn short(self, short: &'static [&'static str]) -> Self {
        CommandName { short, ..self }
    }

    /// Typed in full.
    pub const fn whole(self) -> Self {
        CommandName { is_whole: true, ..self }
    }

    /// With `--how`; such a command changes nothing.
    pub const fn how(self) -> Self {
        CommandName { takes_how: true, reach: Reach::Nothing, ..self }
    }

    /// Of a command that `display` may run.
    pub const fn displayed(self) -> Self {
        CommandName { reach: Reach::Nothing, ..self }
    }

    /// Of a command that changes nothing but what the session keeps.
    pub const fn of_session(self) -> Self {
        CommandName { reach: Reach::Session, ..self }
    }

    /// Of a command that needs no process, but `pmdb NAME` takes the name for that of a process.
    pub const fn detached(self) -> Self {
        CommandName { process: ProcessNeed::Optional, ..self }
    }

    /// Of a command that `pmdb NAME` runs without a process.
    pub const fn alone(self) -> Self {
        CommandName { process: ProcessNeed::Unused, ..self }
    }

    /// Of a command that `pmdb NAME WORD` runs without a process, as [`ProcessNeed::UnusedBefore`] says.
    pub const fn alone_before(self, words: &'static [&'static str]) -> Self {
        CommandName { process: ProcessNeed::UnusedBefore(words), ..self }
    }

    /// Of a command that `pmdb NAME ARGUMENT WORD` runs without a process, as [`ProcessNeed::UnusedBehind`] says.
    pub const fn alone_behind(self, words: &'static [&'static str]) -> Self {
        CommandName { process: ProcessNeed::UnusedBehind(words), ..self }
    }

    /// A line of blocks, typed in full.
    pub const fn block(self, line: BlockLine) -> Self {
        CommandName { block: Some(line), ..self.whole().detached() }
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
