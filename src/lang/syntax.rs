//! The syntax tree of a line: plain data, with the place of each part that an error may refer to.
//!
//! The tree does not depend on a target: `eval` finds what names mean. Nor does it depend on commands: each has its
//! arguments and their parser in `command`. This file has only the names of commands, and how an abbreviation is
//! resolved.

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

/// A command with its arguments, made by the command's parser.
pub trait ParsedCommand: Any + Tree {
    /// Writes the command as a line that parses to the same.
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result;

    /// Returns what the command may change.
    fn reach(&self) -> Reach;
}

/// What `{:?}` prints for a command: its tree, which tests compare.
#[cfg(debug_assertions)]
pub trait Tree: Debug {}

#[cfg(debug_assertions)]
impl<T: Debug> Tree for T {}

/// What `{:?}` prints for a command: its line. Code for the trees of all commands would add 300 KB to a release.
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
    /// Returns the command, if it is of type `T`.
    pub fn downcast_ref<T: Any>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

impl PartialEq for dyn ParsedCommand {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

/// `COMMAND --how …`: a command on pages, with the reads for its answer.
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

/// The result of parsing a line after its first word: a command, or a line of a block.
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
    /// Nothing, or only blanks. At a prompt this repeats the last command.
    Empty,
    /// A line with only a comment.
    Comment,
    /// `!TEXT` or `shell TEXT`: the unchanged text is passed to the shell.
    Shell(String),
    /// A command of pmdb, with its output.
    Command {
        /// The command.
        command: Spanned<Rc<dyn ParsedCommand>>,
        /// The place to which the records are printed.
        output: Output,
    },
    /// A line that opens, divides or closes a block, or leaves a loop.
    Control(Box<Control>),
}

/// A line that is a part of a block.
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
        /// The name of the variable, without the `$`.
        variable: Spanned<String>,
        /// The values of the variable, one for each iteration.
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
    /// `regions …`, `walk …`: the ranges of the rows that the command prints.
    Of(Spanned<Rc<dyn ParsedCommand>>),
    /// `threads`: the stack pointer of each thread.
    Threads,
    /// `V, V`
    Values(Vec<Spanned<Range>>),
}

/// An argument of a command file, or of a command that `define` made.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// The argument as it was typed.
    pub text: String,
    /// The range or expression, if the argument is one; otherwise it is text.
    pub value: Option<Spanned<Range>>,
}

/// The output of a command.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The terminal, or whatever standard output is.
    Screen,
    /// `CMD | TEXT` or `pipe CMD | TEXT`: the raw text of a shell command.
    Pipe(Spanned<String>),
    /// `CMD > PATH` (`append` is false) or `CMD >> PATH`. A leading `~/` is not expanded yet.
    File {
        /// The path, unquoted.
        path: Spanned<String>,
        /// Whether to append to the file instead of replacing it.
        append: bool,
    },
}

/// The content of a `display`.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there are few at a time")]
pub enum DisplayContent {
    /// A value, or memory in the form of `x`.
    Value {
        /// The format, as for `print`; with a count, a size or `s`, as for `x`.
        layout: ValueFormat,
        /// Whether the value begins with a quoted name that without quotes would be a command.
        is_quoted: bool,
        /// The value, evaluated each time.
        value: Spanned<Range>,
    },
    /// The answer of a command.
    Command {
        /// The command as it was typed.
        text: TypedText,
        /// The command.
        command: Spanned<Rc<dyn ParsedCommand>>,
    },
}

/// A text as it was typed. Any two are equal, because the tree next to it has the meaning.
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
    /// The number of units; for `find` the most matches.
    pub count: Option<u64>,
    /// Whether a `-` precedes the count: the units before the address. Only for `x`.
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
    /// Returns the meaning of the letter, for the help.
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
    /// Returns the number of bytes in the unit.
    pub const fn bytes(self) -> u8 {
        match self {
            Unit::Byte => 1,
            Unit::HalfWord => 2,
            Unit::Word => 4,
            Unit::GiantWord => 8,
        }
    }
}

/// A number in a clause.
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

/// The number of rows to print, and which.
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

/// The name of a command, and the ways to type it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandName {
    /// The full name, with a space between a command and its subcommand.
    pub name: &'static str,
    /// Fixed abbreviations, valid even if they are ambiguous prefixes.
    pub short: &'static [&'static str],
    /// Whether its last word must be typed in full, so that it does not make existing abbreviations ambiguous.
    pub is_whole: bool,
    /// Whether the command reads pages, so that it accepts `--how`.
    pub takes_how: bool,
    /// The effects of the command.
    pub reach: Reach,
    /// Whether the command needs a process.
    pub process: ProcessNeed,
    /// The effect of the line, if it is a part of a block.
    pub block: Option<BlockLine>,
}

/// The effects that a command may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// No effects: `display` may run it.
    Nothing,
    /// Changes of the session, such as the target, variables and settings. A client of `--mcp` may run it.
    Session,
    /// Changes of files, the process, or others.
    Outside,
}

/// Whether a command needs a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessNeed {
    /// The command needs a process.
    Required,
    /// The command needs none, but `pmdb NAME` reads the name as that of a process.
    Optional,
    /// `pmdb NAME` runs it, without a process.
    Unused,
    /// `pmdb NAME` runs it without a process if one of these words follows the name; `"` is any text in quotes, and
    /// `pfn:` any frame. Otherwise it needs a process.
    UnusedBefore(&'static [&'static str]),
    /// `pmdb NAME` runs it without a process if one of these words follows the first argument.
    UnusedBehind(&'static [&'static str]),
}

/// The effect of a line in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockLine {
    /// Opens a block.
    Opens,
    /// Is inside a block.
    Inside,
}

impl CommandName {
    /// Makes a name that may be abbreviated.
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

    /// Adds fixed abbreviations.
    pub const fn short(self, short: &'static [&'static str]) -> Self {
        CommandName { short, ..self }
    }

    /// Makes a name that must be typed in full.
    pub const fn whole(self) -> Self {
        CommandName { is_whole: true, ..self }
    }

    /// Adds `--how`; such a command has no effects.
    pub const fn how(self) -> Self {
        CommandName { takes_how: true, reach: Reach::Nothing, ..self }
    }

    /// Declares that `display` may run the command.
    pub const fn displayed(self) -> Self {
        CommandName { reach: Reach::Nothing, ..self }
    }

    /// Declares that the command changes only the session.
    pub const fn of_session(self) -> Self {
        CommandName { reach: Reach::Session, ..self }
    }

    /// Declares that the command needs no process, but `pmdb NAME` reads the name as that of a process.
    pub const fn detached(self) -> Self {
        CommandName { process: ProcessNeed::Optional, ..self }
    }

    /// Declares that `pmdb NAME` runs the command without a process.
    pub const fn alone(self) -> Self {
        CommandName { process: ProcessNeed::Unused, ..self }
    }

    /// Declares that `pmdb NAME WORD` runs the command without a process, as [`ProcessNeed::UnusedBefore`].
    pub const fn alone_before(self, words: &'static [&'static str]) -> Self {
        CommandName { process: ProcessNeed::UnusedBefore(words), ..self }
    }

    /// Declares that `pmdb NAME ARGUMENT WORD` runs the command without a process, as [`ProcessNeed::UnusedBehind`].
    pub const fn alone_behind(self, words: &'static [&'static str]) -> Self {
        CommandName { process: ProcessNeed::UnusedBehind(words), ..self }
    }

    /// Makes a line of blocks, which must be typed in full.
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

/// The result of resolving a word, which may be an abbreviation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// One command, in full.
    One(&'static str),
    /// An abbreviation of several commands.
    Ambiguous(Vec<&'static str>),
    /// No command.
    Unknown,
}

/// Finds the one of `words` that begins with `word`. Those that are whole must be typed in full.
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
