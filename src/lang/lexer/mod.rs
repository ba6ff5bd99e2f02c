//! Level 1 of the grammar: splits a line into tokens, the longest first.
//!
//! The lexer has no errors: text that no rule matches becomes [`TokenKind::Other`], and the parser lists the
//! alternatives. Each token rule is a nom parser over the text. The longest match wins; among equals, the earlier rule.

mod pasted;
pub(super) mod token;

use super::error::Span;
use super::expression::is_fixed;
use super::parser::input::Language;
use super::syntax::Resolved;

pub use pasted::joined_rows;
pub(crate) use pasted::pasted_row;

use nom::Parser;
use nom::bytes::complete::tag;
use nom::sequence::terminated;
pub use token::escape;
use token::{Lexed, word_ends};
pub(crate) use token::{NumberFault, OPTIONS, PastedText, is_blank, is_plain_name};
pub(crate) use token::{Token, TokenKind, unescape};

/// Splits a line into tokens.
pub(super) fn tokens(language: Language, line: &str) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let (mut open_parentheses, mut open_braces) = (0_usize, 0_usize);
    let mut text = skip_blanks(line);
    while !text.is_empty() {
        let start = line.len() - text.len();
        let context = LexContext {
            is_first: tokens.is_empty(),
            begins_command: begins_command(language, &tokens),
            is_in_parentheses: open_parentheses > 0,
            is_in_braces: open_braces > 0,
            is_after_value: tokens.last().is_some_and(|before| before.at.end == start && may_have_elements(before)),
            is_after_command: is_command(language, &tokens, start),
            begins_arguments: begins_arguments(language, &tokens),
            is_apart: tokens.last().is_none_or(|before| before.at.end < start),
        };
        let (kind, length) = longest(language, text, context);
        let (taken, remaining) = text.split_at(length);
        match taken {
            "(" => open_parentheses += 1,
            ")" => open_parentheses = open_parentheses.saturating_sub(1),
            "{" => open_braces += 1,
            "}" => open_braces = open_braces.saturating_sub(1),
            _ => {}
        }
        // gdb accepts a blank before a format, and users type one.
        let is_format = matches!(kind, TokenKind::Format(_));
        let glued = is_format || tokens.last().is_some_and(|before| before.at.end == start);
        tokens.push(Token { kind, text: taken, at: Span::new(start, start + length), is_glued: glued });
        text = skip_blanks(remaining);
    }
    tokens
}

/// The context that decides which rules may match.
#[derive(Clone, Copy)]
struct LexContext {
    is_first: bool,
    /// Whether the name of a command is possible.
    begins_command: bool,
    is_in_parentheses: bool,
    /// Whether the place is between `{` and `}`, where a type is possible.
    is_in_braces: bool,
    /// Whether a value with elements precedes directly.
    is_after_value: bool,
    /// Whether the name of a command precedes directly.
    is_after_command: bool,
    /// Whether a pasted row is possible.
    begins_arguments: bool,
    /// Whether the place is the beginning of the line, or follows a blank.
    is_apart: bool,
}

/// Returns the longest token at the start of `text`, which is not empty.
fn longest(language: Language, text: &str, context: LexContext) -> (TokenKind, usize) {
    type Rule = fn(&str) -> Lexed<'_, TokenKind>;
    let rules: [(bool, &[Rule]); 8] = [
        (context.is_first, &[token::comment_line, token::shell]),
        (!context.is_in_parentheses, &[token::pipe, token::lone_pipe, token::redirect]),
        (context.is_after_command, &[token::format]),
        (!context.is_in_braces, &[token::indexed]),
        (context.is_in_braces || context.is_after_value, &[token::dimension]),
        (
            true,
            &[
                token::comment,
                token::name,
                token::quoted_name,
                token::text,
                token::bracketed,
                token::variable,
                token::history,
                token::number,
                pasted::value,
                pasted::address,
                pasted::cast_address,
                token::option,
                token::bytes,
                token::mark,
                token::other,
            ],
        ),
        (context.is_apart, &[token::other_option]),
        (context.begins_arguments, &[pasted::row]),
    ];
    let mut best = (TokenKind::Other, 0);
    if context.begins_command
        && let Some(name) = command_name(language, text)
    {
        best = (TokenKind::CommandName, name.len());
    }
    let here = rules.into_iter().filter(|(may_match, _)| *may_match);
    for rule in here.flat_map(|(_, rules)| rules) {
        if let Ok((remaining, kind)) = rule(text) {
            let length = text.len() - remaining.len();
            if length > best.1 {
                best = (kind, length);
            }
        }
    }
    best
}

/// Returns a name such as `soft-dirty`, which is read only where a command begins; elsewhere it is a subtraction.
fn command_name(language: Language, text: &str) -> Option<&'static str> {
    let mut hyphenated = language.first_words().filter(|word| word.contains('-'));
    hyphenated.find(|name| terminated(tag(*name), word_ends).parse(text).is_ok())
}

/// Returns whether a command begins after these tokens.
fn begins_command(language: Language, tokens: &[Token<'_>]) -> bool {
    match tokens {
        [] => true,
        [first] => is_first(language, first, "pipe") || first.text == "display",
        _ => false,
    }
}

/// Returns whether the last token is the name of a command, so that a format is possible at `start`: the first word,
/// the word after `pipe`, or the word after `display` if the format follows directly.
fn is_command(language: Language, tokens: &[Token<'_>], start: usize) -> bool {
    let name = match tokens {
        [name] => name,
        [pipe, name] if is_first(language, pipe, "pipe") => name,
        [display, name] if display.text == "display" && name.at.end == start => name,
        _ => return false,
    };
    name.kind == TokenKind::Name
}

/// Returns whether the arguments of a command begin after these tokens: the words of a command and its options, `set
/// $name =`, or `… in`.
fn begins_arguments(language: Language, tokens: &[Token<'_>]) -> bool {
    let is_option = |token: &Token<'_>| matches!(token.kind, TokenKind::Option | TokenKind::Format(_));
    let words = tokens.len() - tokens.iter().rev().take_while(|token| is_option(token)).count();
    let words = tokens.get(..words).unwrap_or_default();
    let is_name = |token: &Token<'_>| matches!(token.kind, TokenKind::Name | TokenKind::CommandName);
    match words {
        [_, .., last] if last.text == "in" => true,
        [_, variable, equals] if variable.kind == TokenKind::Variable => equals.text == "=",
        [first, second] => {
            let two = ["info", "pipe", "display"];
            two.iter().any(|word| is_first(language, first, word)) && is_name(second)
        }
        [first] => is_name(first),
        _ => false,
    }
}

/// Returns whether `[2]` directly after a token is an element.
fn may_have_elements(token: &Token<'_>) -> bool {
    match token.kind {
        TokenKind::Variable => !is_fixed(token.text),
        TokenKind::History(_) | TokenKind::Dimension(_) => true,
        _ => token.text == ")",
    }
}

/// Returns whether a token is this first word of a command, or its abbreviation.
fn is_first(language: Language, token: &Token<'_>, word: &'static str) -> bool {
    language.resolve_first(token.text) == Resolved::One(word)
}

fn skip_blanks(text: &str) -> &str {
    text.trim_start_matches(is_blank)
}
