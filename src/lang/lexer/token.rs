//! Tokens, and the rules that make them: names, variables, brackets and marks; 'names' and "texts" in quotes; comments,
//! shell lines, pipes and redirections; numbers, and the faults of words that only resemble numbers. The rules of
//! pasted text are in `pasted`.

use crate::kernel::words::Worded;
use crate::lang::ctype::CType;
use crate::lang::error::Span;
use crate::lang::expression::HistoryReference;
use crate::lang::syntax::{Format, Unit, ValueFormat};
use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while, take_while_m_n, take_while1};
use nom::character::complete::{char, one_of, satisfy};
use nom::combinator::{eof, map_opt, map_res, not, opt, peek, recognize, rest, value};
use nom::multi::{many0_count, many1};
use nom::sequence::{delimited, pair, preceded, terminated};
use std::time::Duration;

/// The kind of a token, with its value. The names are those of the grammar's rules.
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
    /// `[4]`: an element, or the dimension of an array.
    Dimension(u64),
    Variable,
    History(HistoryReference),
    Number(u64),
    Pages(u64),
    Duration(Duration),
    /// `1.5`
    Fraction(f64),
    BadNumber(NumberFault),
    PastedValue(u64),
    PastedAddress(u64),
    /// `(int *) 0x5555555592a0`; in braces, the value at the address.
    PastedCast {
        to: CType,
        reads: bool,
        address: u64,
    },
    PastedRow(PastedText),
    /// `hex"de ad"`
    HexBytes(Vec<u8>),
    /// `/8xg`, glued to the name of a command.
    Format(ValueFormat),
    /// One of [`OPTIONS`], such as `--how`.
    Option,
    /// `--WORD` that is none of [`OPTIONS`].
    OtherOption,
    /// An operator or punctuation mark of the syntax.
    Mark,
    /// A `|` outside parentheses without a shell command after it.
    LonePipe,
    Other,
}

impl TokenKind {
    /// Returns the time that the token means. A number alone is none: it may be meant in seconds or in milliseconds.
    pub fn duration(&self) -> Option<Duration> {
        match self {
            TokenKind::Duration(duration) => Some(*duration),
            _ => None,
        }
    }
}

/// The contents of a pasted row.
#[derive(Clone, Debug, PartialEq)]
pub enum PastedText {
    Address(u64),
    /// The range from the first address up to the second, which is excluded.
    Span(u64, u64),
    Length {
        start: u64,
        length: u64,
    },
    /// An offset from the first byte of a symbol.
    Symbol {
        /// The name of the symbol's file.
        module: Option<String>,
        name: String,
        offset: u64,
    },
}

/// A token, its place, and whether it follows the one before it without a blank.
#[derive(Clone, Debug, PartialEq)]
pub struct Token<'a> {
    pub kind: TokenKind,
    pub text: &'a str,
    pub at: Span,
    pub is_glued: bool,
}

/// Why a word that begins with a digit is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberFault {
    /// Larger than 2^64-1.
    TooLarge,
    /// A leading zero, which means octal in C, decimal in other languages, and hexadecimal in the output of pmap.
    LeadingZero,
    /// Hexadecimal digits without a `0x`.
    LooksHexadecimal,
    /// An unknown suffix.
    Suffix,
    /// Anything else.
    Malformed,
}

/// The result of a lexer: the rest of the text, and the value.
pub(super) type Lexed<'a, T> = nom::IResult<&'a str, T>;

pub(crate) fn is_blank(character: char) -> bool {
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

/// Returns the first `longest` bytes of the text, or fewer, so that no character is split.
pub(super) fn beginning(text: &str, longest: usize) -> &str {
    let end = (0..=longest.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}

/// Returns the error that a rule does not match.
pub(super) fn no_match<T>(text: &str) -> Lexed<'_, T> {
    Err(nom::Err::Error(nom::error::Error::new(text, nom::error::ErrorKind::Verify)))
}

/// The marks of the syntax, each before its prefixes.
const MARKS: &[&str] = &[
    "..", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+", "-", "*", "/", "%", "<", ">", "=", "!", "~", "&", "^",
    "|", "(", ")", "{", "}", ",", ":",
];

/// Lexes `main`, `libc.so.6`, `a::b`, `malloc@plt`: dots and `::` only between word characters.
fn name_text(text: &str) -> Lexed<'_, &str> {
    recognize((
        satisfy(is_letter),
        take_while(is_word_character),
        many0_count((alt((tag("::"), tag("."))), take_while1(is_word_character))),
        opt(version),
    ))
    .parse(text)
}

/// Lexes `@plt`, `@got.plt`, `@GLIBC_2.2.5`, `@@GLIBC_2.34`: the version or table of a symbol.
fn version(text: &str) -> Lexed<'_, &str> {
    recognize((
        alt((tag("@@"), tag("@"))),
        satisfy(is_letter),
        take_while(is_word_character),
        many0_count((char('.'), take_while1(is_word_character))),
    ))
    .parse(text)
}

/// Returns whether a name needs no quotes.
pub(crate) fn is_plain_name(text: &str) -> bool {
    matches!(name_text(text), Ok(("", _)))
}

pub(super) fn name(text: &str) -> Lexed<'_, TokenKind> {
    value(TokenKind::Name, name_text).parse(text)
}

pub(super) fn indexed(text: &str) -> Lexed<'_, TokenKind> {
    let (bracket, module) = alt((name_text.map(str::to_owned), name_content)).parse(text)?;
    let (remaining, (_, digits, _)) = (char('['), digits1, char(']')).parse(bracket)?;
    match digits.parse() {
        Ok(index) => Ok((remaining, TokenKind::Indexed { module, module_length: text.len() - bracket.len(), index })),
        Err(_) => no_match(text),
    }
}

/// Lexes `[4]` in the type of an array, or after a value.
pub(super) fn dimension(text: &str) -> Lexed<'_, TokenKind> {
    let (remaining, (_, digits, _)) = (char('['), digits1, char(']')).parse(text)?;
    match digits.parse() {
        Ok(number) => Ok((remaining, TokenKind::Dimension(number))),
        Err(_) => no_match(text),
    }
}

pub(super) fn bracketed(text: &str) -> Lexed<'_, TokenKind> {
    value(TokenKind::Bracketed, (char('['), take_while1(|c| c != '[' && c != ']'), char(']'))).parse(text)
}

pub(super) fn variable(text: &str) -> Lexed<'_, TokenKind> {
    value(TokenKind::Variable, (char('$'), satisfy(is_letter), take_while(is_word_character))).parse(text)
}

pub(super) fn history(text: &str) -> Lexed<'_, TokenKind> {
    let (remaining, (_, second, digits)) =
        (char('$'), opt(char('$')), take_while(|c: char| c.is_ascii_digit())).parse(text)?;
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

/// The options, which begin with two minus signs.
pub(crate) const OPTIONS: [&str; 4] = ["--how", "--fault", "--yes", "--overwrite"];

pub(super) fn option(text: &str) -> Lexed<'_, TokenKind> {
    match OPTIONS.iter().find(|option| text.starts_with(**option)) {
        Some(option) => value(TokenKind::Option, terminated(tag(*option), word_ends)).parse(text),
        None => no_match(text),
    }
}

/// Lexes an unknown option. It must follow a blank, so that `1--x` subtracts a negative number.
pub(super) fn other_option(text: &str) -> Lexed<'_, TokenKind> {
    let word = |c: char| is_word_character(c) || c == '-';
    value(TokenKind::OtherOption, (tag("--"), satisfy(is_letter), take_while(word))).parse(text)
}

/// Matches at the end of a word.
pub(super) fn word_ends(text: &str) -> Lexed<'_, ()> {
    not(satisfy(|c| is_word_character(c) || matches!(c, '.' | ':'))).parse(text)
}

pub(super) fn mark(text: &str) -> Lexed<'_, TokenKind> {
    match MARKS.iter().find(|mark| text.starts_with(**mark)) {
        Some(mark) => value(TokenKind::Mark, tag(*mark)).parse(text),
        None => no_match(text),
    }
}

pub(super) fn other(text: &str) -> Lexed<'_, TokenKind> {
    value(TokenKind::Other, satisfy(|c| !is_blank(c))).parse(text)
}

/// The most characters between quotes. Without a limit, the line would be read to its end for every opening quote.
const LONGEST: usize = 4096;

pub(super) fn quoted_name(text: &str) -> Lexed<'_, TokenKind> {
    name_content.map(TokenKind::Quoted).parse(text)
}

pub(super) fn text(text: &str) -> Lexed<'_, TokenKind> {
    text_content.map(TokenKind::Text).parse(text)
}

/// Lexes `'…'` with at least one character.
pub(super) fn name_content(text: &str) -> Lexed<'_, String> {
    let (remaining, content) = between('\'', text)?;
    if content.is_empty() { no_match(text) } else { Ok((remaining, unescape(content))) }
}

/// Lexes `"…"`.
pub(super) fn text_content(text: &str) -> Lexed<'_, String> {
    let (remaining, content) = between('"', text)?;
    Ok((remaining, unescape(content)))
}

/// Lexes the raw text from one quote to the next one without a backslash before it.
fn between(quote: char, text: &str) -> Lexed<'_, &str> {
    let Some(inside) = text.strip_prefix(quote) else {
        return no_match(text);
    };
    let mut escaped = false;
    for (offset, character) in inside.char_indices().take(LONGEST) {
        if escaped {
            escaped = false;
        } else if character == quote {
            let (content, end) = inside.split_at(offset);
            return Ok((end.strip_prefix(quote).unwrap_or(end), content));
        } else {
            escaped = character == '\\';
        }
    }
    no_match(text)
}

/// Replaces `\n \t \\ \" \'`. Any other backslash remains, so that regular expressions need no second one.
pub(crate) fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some(same @ ('\\' | '"' | '\'')) => plain.push(same),
            Some(unknown) => plain.extend(['\\', unknown]),
            None => plain.push('\\'),
        }
    }
    plain
}

/// Returns `text` between two `quote`s, as it is written in a line.
pub fn escape(quote: char, text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push(quote);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\\' => quoted.push_str(match characters.peek() {
                Some('n' | 't' | '\n' | '\t' | '\\' | '"' | '\'') | None => "\\\\",
                // The backslash remains, as in a name that is displayed with `\x1b`.
                Some(_) => "\\",
            }),
            same if same == quote => quoted.extend(['\\', same]),
            plain => quoted.push(plain),
        }
    }
    quoted.push(quote);
    quoted
}

pub(super) fn comment_line(text: &str) -> Lexed<'_, TokenKind> {
    value(TokenKind::CommentLine, pair(char('#'), rest)).parse(text)
}

pub(super) fn comment(text: &str) -> Lexed<'_, TokenKind> {
    value(TokenKind::Comment, (char('#'), alt((eof, recognize(pair(satisfy(is_blank), rest)))))).parse(text)
}

/// Lexes text for a shell: to the end of the line, and not only blanks.
fn shell_text(text: &str) -> Lexed<'_, &str> {
    preceded(blanks0, recognize(pair(satisfy(|c| !is_blank(c)), rest))).parse(text)
}

pub(super) fn shell(text: &str) -> Lexed<'_, TokenKind> {
    let word = terminated(alt((tag("shell"), tag("shel"), tag("she"))), satisfy(is_blank));
    let (remaining, command) = preceded(alt((tag("!"), word)), shell_text).parse(text)?;
    Ok((remaining, TokenKind::Shell(command.trim_end_matches(is_blank).to_owned())))
}

pub(super) fn pipe(text: &str) -> Lexed<'_, TokenKind> {
    let (behind, _) = terminated(char('|'), peek(not((blanks0, char('|'))))).parse(text)?;
    let (remaining, command) = shell_text(behind)?;
    let offset = text.len() - command.len();
    Ok((remaining, TokenKind::Pipe { text: command.trim_end_matches(is_blank).to_owned(), offset }))
}

pub(super) fn lone_pipe(text: &str) -> Lexed<'_, TokenKind> {
    value(TokenKind::LonePipe, (char('|'), peek(not(char('|'))))).parse(text)
}

pub(super) fn redirect(text: &str) -> Lexed<'_, TokenKind> {
    let (path, append) =
        (preceded(char('>'), opt(char('>'))), blanks0).parse(text).map(|(path, (again, _))| (path, again.is_some()))?;
    let plain =
        recognize((alt((tag("/"), tag("./"), tag("../"), tag("~/"))), take_while(|c| !is_blank(c) && c != '|')));
    let (remaining, unquoted) = alt((plain.map(str::to_owned), name_content, text_content)).parse(path)?;
    Ok((remaining, TokenKind::Redirect { append, path: unquoted, offset: text.len() - path.len() }))
}

/// Lexes NUMBER, PAGES, FRACTION, DURATION or BAD_NUMBER.
pub(super) fn number(text: &str) -> Lexed<'_, TokenKind> {
    let (remaining, word) =
        recognize(pair(satisfy(|c| c.is_ascii_digit()), nom::bytes::complete::take_while(is_word_character)))
            .parse(text)?;
    if decimal(word).is_some()
        && let Ok((remaining, (_, fraction, unit))) = (char('.'), digits1, opt(time_unit)).parse(remaining)
        && let Some(duration) = duration(word, fraction, unit.unwrap_or("s"))
    {
        let value = format!("{}.{fraction}", word.replace('_', "")).parse();
        return Ok(match (unit, value) {
            (None, Ok(value)) => (remaining, TokenKind::Fraction(value)),
            _ => (remaining, TokenKind::Duration(duration)),
        });
    }
    Ok((remaining, classify(word)))
}

fn time_unit(text: &str) -> Lexed<'_, &str> {
    alt((tag("ms"), tag("s"), tag("m"), tag("h"))).parse(text)
}

/// Returns the kind of a whole word that begins with a digit.
fn classify(word: &str) -> TokenKind {
    if let Some(value) = plain(word) {
        return or_too_large(value, TokenKind::Number);
    }
    // `8MiB`, as sizes are printed, is `8M`.
    let size = word.strip_suffix("iB").unwrap_or(word);
    for (suffix, shift) in [('K', 10), ('M', 20), ('G', 30), ('T', 40)] {
        if let Some(value) = size.strip_suffix(suffix).and_then(plain) {
            let value = value.and_then(|value| value.checked_mul(1 << shift));
            return or_too_large(value, TokenKind::Number);
        }
    }
    if let Some(value) = word.strip_suffix('p').and_then(plain) {
        return or_too_large(value, TokenKind::Pages);
    }
    for unit in ["ms", "s", "m", "h"] {
        if let Some(whole) = word.strip_suffix(unit)
            && decimal(whole).is_some()
        {
            return or_too_large(duration(whole, "0", unit), TokenKind::Duration);
        }
    }
    TokenKind::BadNumber(fault(word))
}

fn or_too_large<T>(value: Option<T>, kind: fn(T) -> TokenKind) -> TokenKind {
    value.map_or(TokenKind::BadNumber(NumberFault::TooLarge), kind)
}

/// Parses a number without a suffix; `Some(None)` if it is too large.
fn plain(word: &str) -> Option<Option<u64>> {
    if let Some(digits) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        return grouped(digits, 16);
    }
    if let Some(digits) = word.strip_prefix("0b") {
        return grouped(digits, 2);
    }
    decimal(word)
}

/// Parses a decimal number without a leading zero.
pub(super) fn decimal(word: &str) -> Option<Option<u64>> {
    if word.len() > 1 && word.starts_with('0') { None } else { grouped(word, 10) }
}

/// Parses digits with single `_` between them.
fn grouped(digits: &str, radix: u32) -> Option<Option<u64>> {
    let well_formed = digits.split('_').all(|group| !group.is_empty() && group.chars().all(|c| c.is_digit(radix)));
    well_formed.then(|| u64::from_str_radix(&digits.replace('_', ""), radix).ok())
}

/// Computes a duration. Saturates at `Duration::MAX`, which is more than five hundred thousand million years.
fn duration(whole: &str, fraction: &str, unit: &str) -> Option<Duration> {
    let whole = decimal(whole)??;
    let nanoseconds: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let nanoseconds: u128 = nanoseconds.parse().ok()?;
    let unit_in_milliseconds: u128 = match unit {
        "ms" => 1,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => 1_000,
    };
    let total = (u128::from(whole) * 1_000_000_000 + nanoseconds) * unit_in_milliseconds / 1_000;
    let seconds = u64::try_from(total / 1_000_000_000);
    let below_a_second = u32::try_from(total % 1_000_000_000).ok()?;
    Some(seconds.map_or(Duration::MAX, |seconds| Duration::new(seconds, below_a_second)))
}

fn fault(word: &str) -> NumberFault {
    let digits_end = word.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(word.len());
    let (digits, letters) = word.split_at(digits_end);
    let all_hexadecimal = word.chars().all(|c| c.is_ascii_hexdigit());
    let followed_by_zero_padding = digits.len() > 1 && digits.starts_with('0');
    if followed_by_zero_padding && all_hexadecimal {
        NumberFault::LeadingZero
    } else if all_hexadecimal {
        NumberFault::LooksHexadecimal
    } else if !letters.is_empty() && decimal(digits).is_some() && letters != "x" && !word.starts_with("0x") {
        NumberFault::Suffix
    } else {
        NumberFault::Malformed
    }
}

/// Lexes count, format and unit: each at most once, and at least one of them. A `-` before them means backward.
pub(super) fn format(text: &str) -> Lexed<'_, TokenKind> {
    let size_first = (unit, count).map(|(unit, count)| layout(Some(count), None, Some(unit)));
    let backward = preceded(char('-'), parts).map(|parts| ValueFormat { backward: true, ..parts });
    delimited(char('/'), alt((size_first, backward, parts)), word_ends).map(TokenKind::Format).parse(text)
}

/// Lexes the parts in the order with the count first, if there is one.
fn parts(text: &str) -> Lexed<'_, ValueFormat> {
    alt((
        (opt(count), letter, opt(unit)).map(|(count, format, unit)| layout(count, Some(format), unit)),
        (opt(count), unit, opt(letter)).map(|(count, unit, format)| layout(count, format, Some(unit))),
        count.map(|count| layout(Some(count), None, None)),
    ))
    .parse(text)
}

fn layout(count: Option<u64>, format: Option<Format>, unit: Option<Unit>) -> ValueFormat {
    ValueFormat { count, backward: false, format, unit }
}

/// Returns the meaning of a letter.
fn meaning_of_letter<T: Worded>(letter: char) -> Option<T> {
    T::from_word(letter.encode_utf8(&mut [0; 4]))
}

fn letter(text: &str) -> Lexed<'_, Format> {
    map_opt(one_of("xduotaczsf"), meaning_of_letter).parse(text)
}

fn unit(text: &str) -> Lexed<'_, Unit> {
    map_opt(one_of("bhwg"), meaning_of_letter).parse(text)
}

fn count(text: &str) -> Lexed<'_, u64> {
    map_res(digits1, str::parse).parse(text)
}

/// Lexes `hex"de ad be ef"`.
pub(super) fn bytes(text: &str) -> Lexed<'_, TokenKind> {
    let pair = map_res(take_while_m_n(2, 2, |c: char| c.is_ascii_hexdigit()), |digits| u8::from_str_radix(digits, 16));
    let pairs = preceded(blanks0, many1(terminated(pair, blanks0)));
    delimited(tag("hex\""), pairs, char('"')).map(TokenKind::HexBytes).parse(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_backslash_that_would_mean_something_is_doubled() {
        for (text, quoted) in [
            ("esc\\x1b[31m\\xff.so", "'esc\\x1b[31m\\xff.so'"),
            ("\\d+", "'\\d+'"),
            ("a\\nb", "'a\\\\nb'"),
            ("a\nb", "'a\\nb'"),
            ("a\\\t", "'a\\\\\\t'"),
            ("a\\", "'a\\\\'"),
            ("\\\\x", "'\\\\\\x'"),
            ("\\'", "'\\\\\\''"),
        ] {
            assert_eq!(escape('\'', text), quoted);
            assert_eq!(name_content(quoted).unwrap(), ("", text.to_owned()));
        }
    }
}
