//! Level 1 of the grammar: a line cut into tokens, the longest first.
//!
//! Nothing is an error here: what no rule knows becomes [`TokenKind::Other`], and the parser says what could have
//! stood there. Each token rule is a nom parser over the text; the longest match wins, the earlier rule among equals.

mod line;
mod number;
mod pasted;
mod quoted;

use std::time::Duration;

use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while, take_while1};
use nom::character::complete::{char, one_of, satisfy};
use nom::combinator::{opt, recognize, value};
use nom::multi::many0_count;

use super::expression::HistoryReference;
use super::place::Place;
pub(super) use number::NumberFault;
pub(super) use quoted::{escape, unescape};

/// What nom's parsers return here: the rest, and what was found.
type Lexed<'a, T> = nom::IResult<&'a str, T>;

/// What a token is, with its value where it has one. The names are those of the grammar's rules.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
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
    Quoted(String),
    Text(String),
    Indexed {
        module: String,
        module_length: usize,
        index: u64,
    },
    Bracketed,
    Variable,
    History(HistoryReference),
    Number(u64),
    Pages(u64),
    Duration(Duration),
    BadNumber(NumberFault),
    PastedValue(u64),
    PastedAddress(u64),
    PastedFrame(u64),
    MapsLine {
        start: u64,
        end: u64,
    },
    PmapLine {
        start: u64,
        length: u64,
    },
    /// An operator or punctuation mark of the syntax.
    Mark,
    /// A `|` outside parentheses with no shell command behind it.
    LonePipe,
    Other,
}

/// A token, where it stands, and whether it follows the one before with nothing between.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token<'a> {
    pub kind: TokenKind,
    pub text: &'a str,
    pub at: Place,
    pub glued: bool,
}

/// The marks of the syntax, longer ones before their beginnings.
const MARKS: &[&str] = &[
    "..", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+", "-", "*", "/", "%", "<", ">", "=",
    "!", "~", "&", "^", "|", "(", ")", ",", ":",
];

/// The line as tokens.
pub(super) fn tokens(line: &str) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut open_parentheses = 0_usize;
    let mut text = skip_blanks(line);
    while !text.is_empty() {
        let start = line.len() - text.len();
        let surroundings = Surroundings {
            first: tokens.is_empty(),
            inside_parentheses: open_parentheses > 0,
        };
        let (kind, length) = longest(text, surroundings);
        let (taken, remaining) = text.split_at(length);
        match taken {
            "(" => open_parentheses += 1,
            ")" => open_parentheses = open_parentheses.saturating_sub(1),
            _ => {}
        }
        let glued = tokens.last().is_some_and(|before| before.at.end == start);
        tokens.push(Token {
            kind,
            text: taken,
            at: Place::new(start, start + length),
            glued,
        });
        text = skip_blanks(remaining);
    }
    tokens
}

/// What decides which rules may match at a place.
#[derive(Clone, Copy)]
struct Surroundings {
    first: bool,
    inside_parentheses: bool,
}

/// The longest token at the start of `text`, which is not empty.
fn longest(text: &str, surroundings: Surroundings) -> (TokenKind, usize) {
    let rules: &[fn(&str) -> Lexed<'_, TokenKind>] = &[
        line::comment,
        name,
        quoted::name,
        quoted::text,
        indexed,
        bracketed,
        variable,
        history,
        number::number,
        pasted::value,
        pasted::address,
        pasted::frame,
        pasted::maps_line,
        pasted::pmap_line,
        pasted::mapping_line,
        mark,
        other,
    ];
    let at_line_start: &[fn(&str) -> Lexed<'_, TokenKind>] = if surroundings.first {
        &[line::comment_line, line::shell]
    } else {
        &[]
    };
    let at_top: &[fn(&str) -> Lexed<'_, TokenKind>] = if surroundings.inside_parentheses {
        &[]
    } else {
        &[line::pipe, line::lone_pipe, line::redirect]
    };

    let mut best = (TokenKind::Other, 0);
    for rule in at_line_start.iter().chain(at_top).chain(rules) {
        if let Ok((remaining, kind)) = rule(text) {
            let length = text.len() - remaining.len();
            if length > best.1 {
                best = (kind, length);
            }
        }
    }
    best
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

fn is_letter(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '_'
}

fn is_word_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

fn skip_blanks(text: &str) -> &str {
    text.trim_start_matches(is_blank)
}

fn blanks0(text: &str) -> Lexed<'_, &str> {
    take_while(is_blank)(text)
}

fn blanks1(text: &str) -> Lexed<'_, &str> {
    take_while1(is_blank)(text)
}

/// `main`, `libc.so.6`, `a::b`: dots and `::` only between word characters.
fn name_text(text: &str) -> Lexed<'_, &str> {
    recognize((
        satisfy(is_letter),
        take_while(is_word_character),
        many0_count((alt((tag("::"), tag("."))), take_while1(is_word_character))),
    ))
    .parse(text)
}

/// Whether a name needs no quotes.
pub(super) fn is_plain_name(text: &str) -> bool {
    matches!(name_text(text), Ok(("", _)))
}

fn name(text: &str) -> Lexed<'_, TokenKind> {
    value(TokenKind::Name, name_text).parse(text)
}

fn indexed(text: &str) -> Lexed<'_, TokenKind> {
    let (bracket, module) =
        alt((name_text.map(str::to_owned), quoted::name_content)).parse(text)?;
    let (remaining, (_, digits, _)) = (
        char('['),
        take_while1(|c: char| c.is_ascii_digit()),
        char(']'),
    )
        .parse(bracket)?;
    match digits.parse() {
        Ok(index) => Ok((
            remaining,
            TokenKind::Indexed {
                module,
                module_length: text.len() - bracket.len(),
                index,
            },
        )),
        Err(_) => no_match(text),
    }
}

fn bracketed(text: &str) -> Lexed<'_, TokenKind> {
    value(
        TokenKind::Bracketed,
        (char('['), take_while1(|c| c != '[' && c != ']'), char(']')),
    )
    .parse(text)
}

fn variable(text: &str) -> Lexed<'_, TokenKind> {
    value(
        TokenKind::Variable,
        (char('$'), satisfy(is_letter), take_while(is_word_character)),
    )
    .parse(text)
}

fn history(text: &str) -> Lexed<'_, TokenKind> {
    let (remaining, (_, second, digits)) = (
        char('$'),
        opt(char('$')),
        take_while(|c: char| c.is_ascii_digit()),
    )
        .parse(text)?;
    let reference = match (second, digits) {
        (None, "") => Some(HistoryReference::Last),
        (Some(_), "") => Some(HistoryReference::Back(1)),
        (None, digits) => digits.parse().ok().map(HistoryReference::Number),
        (Some(_), digits) => digits.parse().ok().map(HistoryReference::Back),
    };
    let kind = match reference {
        // gdb: $$0 is $
        Some(HistoryReference::Back(0)) => TokenKind::History(HistoryReference::Last),
        Some(reference) => TokenKind::History(reference),
        None => TokenKind::BadNumber(NumberFault::TooLarge),
    };
    Ok((remaining, kind))
}

fn mark(text: &str) -> Lexed<'_, TokenKind> {
    match MARKS.iter().find(|mark| text.starts_with(**mark)) {
        Some(mark) => value(TokenKind::Mark, tag(*mark)).parse(text),
        None => no_match(text),
    }
}

fn other(text: &str) -> Lexed<'_, TokenKind> {
    value(TokenKind::Other, satisfy(|c| !is_blank(c))).parse(text)
}

/// The rule does not match here.
fn no_match<T>(text: &str) -> Lexed<'_, T> {
    Err(nom::Err::Error(nom::error::Error::new(
        text,
        nom::error::ErrorKind::Verify,
    )))
}

/// One of two characters, as the permissions of maps and pmap are made of.
fn either(letters: &'static str) -> impl Fn(&str) -> Lexed<'_, char> {
    move |text| one_of(letters)(text)
}
