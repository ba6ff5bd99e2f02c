//! The syntax tree of a line: plain data, with the place of everything that an error may point at.
//!
//! Nothing here knows a target: `eval` finds out what names stand for. Nothing here knows a command: each has its own
//! arguments and their parser, in `command`.

use std::any::Any;
use std::fmt::{self, Debug, Display, Formatter};
use std::rc::Rc;

pub use super::ctype::{CType, UNKNOWN_TYPE_HINT, Width, type_words, unknown_type};
pub use super::expression::{
    BinaryOperator, ChangeFunction, Changes, Expression, Filter, Function, HistoryReference, NOW, Name, NumberType,
    Range, Register, SymbolName, UnaryOperator, fixed_variables,
};
pub use super::field::{FilterField, PageField, RegionField, Subject, ValueType};
pub use super::layout::{Count, Cut, Time, Which};
pub use super::layout::{Format, Layout, Unit};
pub use super::setting::{ColorChoice, Editing, PagerChoice, Setting, SettingValue, StyleChoice};
pub use super::span::{Span, Spanned};

/// A command with its arguments, as its own parser made it.
pub trait ParsedCommand: Any + Debug {
    /// Writes it as a line that parses to the same.
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result;
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
pub enum Line {
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
pub enum Displayed {
    /// A value, or memory in the form of `x`.
    Value {
        /// As for `print`; with a count, a size or `s`, as for `x`.
        layout: Layout,
        /// Whether it begins with a name that is in quotes because a command has it.
        is_quoted: bool,
        /// Evaluated each time.
        value: Spanned<Range>,
    },
    /// The answer of a command.
    Command {
        /// As it was typed.
        text: Typed,
        /// The command.
        command: Spanned<Rc<dyn ParsedCommand>>,
    },
}

/// A text as it was typed. Any two are equal: the tree beside it holds the meaning.
#[derive(Clone)]
pub struct Typed(pub String);

impl Debug for Typed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Typed")
    }
}

impl PartialEq for Typed {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
