//! Tokens, and the rules that make them.

use crate::lang::ctype::CType;
use crate::lang::error::Span;
use crate::lang::expression::HistoryReference;
use crate::lang::syntax::Layout;
use nom::bytes::complete::{take_while, take_while1};
use std::time::Duration;

/// What a token is, with its value where it has one. The names are those of the grammar's rules.
#[derive(Clone, Debug, PartialEq)]
pub enum TokenKind {
    CommentLine,
    Shell(String),
    Comment,
    Pipe {
        text: String,
        offset: usize,
    },
    Redirect {
        append: bool,
        path: String,
        offset: usize,
    },
    Name,
    /// The name of a command that is not a [`Name`](TokenKind::Name).
    CommandName,
    Quoted(String),
    Text(String),
    Indexed {
        module: String,
        module_length: usize,
        index: u64,
    },
    Bracketed,
    /// `[4]`: elements of an array.
    Dimension(u64),
    Variable,
    History(HistoryReference),
    Number(u64),
    Pages(u64),
    Duration(Duration),
    /// `1.5`: a number, or a time in seconds.
    Fraction {
        value: f64,
        seconds: Duration,
    },
    BadNumber(NumberFault),
    PastedValue(u64),
    PastedAddress(u64),
    /// `(int *) 0x5555555592a0`; in braces, the value there.
    PastedCast {
        to: CType,
        reads: bool,
        address: u64,
    },
    PastedRow(Pasted),
    /// `hex"de ad"`
    HexBytes(Vec<u8>),
    /// `/8xg`, glued to the name of a command.
    Format(Layout),
    /// `--how` and the like.
    Option,
    /// An operator or punctuation mark of the syntax.
    Mark,
    /// A `|` outside parentheses with no shell command behind it.
    LonePipe,
    Other,
}

impl TokenKind {
    /// The time that it stands for; a number alone is in seconds.
    pub fn duration(&self) -> Option<Duration> {
        match self {
            TokenKind::Duration(duration) | TokenKind::Fraction { seconds: duration, .. } => Some(*duration),
            TokenKind::Number(seconds) => Some(Duration::from_secs(*seconds)),
            _ => None,
        }
    }
}

/// What a pasted row shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Pasted {
    Address(u64),
    /// From the first address to the second, which is not included.
    Span(u64, u64),
    Length {
        start: u64,
        length: u64,
    },
    /// A symbol, and an offset from its first byte.
    Symbol {
        /// The name of its file.
        module: Option<String>,
        name: String,
        offset: u64,
    },
}

/// A token, its place, and whether it follows the one before without a blank.
#[derive(Clone, Debug, PartialEq)]
pub struct Token<'a> {
    pub kind: TokenKind,
    pub text: &'a str,
    pub at: Span,
    pub glued: bool,
}

/// Why a word that begins with a digit is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberFault {
    /// Larger than 2^64-1.
    TooLarge,
    /// A leading zero: it means octal in C, decimal in other languages, and hexadecimal in the output of pmap.
    LeadingZero,
    /// Hexadecimal digits without a `0x`.
    LooksHexadecimal,
    /// An unknown suffix.
    Suffix,
    /// Anything else.
    Malformed,
}

/// What nom's parsers return here: the rest, and what was found.
pub(super) type Lexed<'a, T> = nom::IResult<&'a str, T>;

pub(in crate::lang) fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

pub(super) fn is_letter(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '_'
}

pub(super) fn is_word_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

pub(super) fn blanks0(text: &str) -> Lexed<'_, &str> {
    take_while(is_blank)(text)
}

pub(super) fn digits1(text: &str) -> Lexed<'_, &str> {
    take_while1(|c: char| c.is_ascii_digit())(text)
}

/// The first `longest` bytes of the text, or some fewer, so that no character is cut.
pub(super) fn beginning(text: &str, longest: usize) -> &str {
    let end = (0..=longest.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}

/// The rule does not match here.
pub(super) fn no_match<T>(text: &str) -> Lexed<'_, T> {
    Err(nom::Err::Error(nom::error::Error::new(text, nom::error::ErrorKind::Verify)))
}
