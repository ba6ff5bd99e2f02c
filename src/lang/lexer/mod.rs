//! Level 1 of the grammar: a line cut into tokens, the longest first.
//!
//! Nothing is an error here: text that no rule matches becomes [`TokenKind::Other`], and the parser says what could have
//! stood there. Each token rule is a nom parser over the text. The longest match wins; among equals, the earlier rule.

mod format;
mod line;
mod number;
mod pasted;
mod pasted_row;
mod quoted;
mod rule;
mod token;
mod word;

use super::span::Span;
pub(super) use pasted_row::{is_pasted_row, only_address};
pub use quoted::escape;
pub(super) use quoted::unescape;
use rule::Lexed;
pub(super) use rule::is_blank;
pub(super) use token::{NumberFault, Pasted, Token, TokenKind};
pub(super) use word::is_plain_name;

/// The line as tokens.
pub(super) fn tokens(line: &str) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut open_parentheses = 0_usize;
    let mut text = skip_blanks(line);
    while !text.is_empty() {
        let start = line.len() - text.len();
        let context = LexContext {
            first: tokens.is_empty(),
            begins_command: begins_command(&tokens),
            inside_parentheses: open_parentheses > 0,
            behind_command: is_command(&tokens, start),
            begins_arguments: begins_arguments(&tokens),
        };
        let (kind, length) = longest(text, context);
        let (taken, remaining) = text.split_at(length);
        match taken {
            "(" => open_parentheses += 1,
            ")" => open_parentheses = open_parentheses.saturating_sub(1),
            _ => {}
        }
        // gdb takes a blank before a format, and so do fingers.
        let is_format = matches!(kind, TokenKind::Format(_));
        let glued = is_format || tokens.last().is_some_and(|before| before.at.end == start);
        tokens.push(Token {
            kind,
            text: taken,
            at: Span::new(start, start + length),
            glued,
        });
        text = skip_blanks(remaining);
    }
    tokens
}

/// What decides which rules may match here.
#[derive(Clone, Copy)]
struct LexContext {
    first: bool,
    /// Where the name of a command may stand.
    begins_command: bool,
    inside_parentheses: bool,
    /// Directly behind the name of a command.
    behind_command: bool,
    /// Where a pasted row may stand.
    begins_arguments: bool,
}

/// The longest token at the start of `text`, which is not empty.
fn longest(text: &str, context: LexContext) -> (TokenKind, usize) {
    let rules: &[fn(&str) -> Lexed<'_, TokenKind>] = &[
        line::comment,
        word::name,
        quoted::name,
        quoted::text,
        word::indexed,
        word::bracketed,
        word::variable,
        word::history,
        number::number,
        pasted::value,
        pasted::address,
        pasted::cast_address,
        word::option,
        format::bytes,
        word::mark,
        word::other,
    ];
    let at_line_start: &[fn(&str) -> Lexed<'_, TokenKind>] = if context.first {
        &[line::comment_line, line::shell]
    } else {
        &[]
    };
    let begins_command: &[fn(&str) -> Lexed<'_, TokenKind>] = if context.begins_command {
        &[word::command_name]
    } else {
        &[]
    };
    let at_top: &[fn(&str) -> Lexed<'_, TokenKind>] = if context.inside_parentheses {
        &[]
    } else {
        &[line::pipe, line::lone_pipe, line::redirect]
    };
    let behind_command: &[fn(&str) -> Lexed<'_, TokenKind>] = if context.behind_command {
        &[format::format]
    } else {
        &[]
    };
    let begins_arguments: &[fn(&str) -> Lexed<'_, TokenKind>] = if context.begins_arguments {
        &[pasted_row::row]
    } else {
        &[]
    };

    let mut best = (TokenKind::Other, 0);
    let by_place = at_line_start.iter().chain(begins_command).chain(at_top);
    let by_place = by_place.chain(behind_command);
    for rule in by_place.chain(rules).chain(begins_arguments) {
        if let Ok((remaining, kind)) = rule(text) {
            let length = text.len() - remaining.len();
            if length > best.1 {
                best = (kind, length);
            }
        }
    }
    best
}

/// Whether a command begins behind these tokens.
fn begins_command(tokens: &[Token<'_>]) -> bool {
    match tokens {
        [] => true,
        [pipe] => matches!(pipe.text, "pi" | "pip" | "pipe"),
        _ => false,
    }
}

/// Whether the last token is the name of a command, so that a format may stand at `start`: the first word, the word behind `pipe`, or
/// the word behind `display` if the format is glued to it.
fn is_command(tokens: &[Token<'_>], start: usize) -> bool {
    let name = match tokens {
        [name] => name,
        [pipe, name] if matches!(pipe.text, "pi" | "pip" | "pipe") => name,
        [display, name] if display.text == "display" && name.at.end == start => name,
        _ => return false,
    };
    name.kind == TokenKind::Name
}

/// Whether the arguments of a command begin behind these tokens: the words of a command and its options, `set $name =`, or `… in`.
fn begins_arguments(tokens: &[Token<'_>]) -> bool {
    let is_option = |token: &Token<'_>| {
        matches!(
            token.kind,
            TokenKind::How | TokenKind::Fault | TokenKind::Yes | TokenKind::Format(_)
        )
    };
    let words = tokens.len()
        - tokens
            .iter()
            .rev()
            .take_while(|token| is_option(token))
            .count();
    let words = tokens.get(..words).unwrap_or_default();
    let is_name =
        |token: &Token<'_>| matches!(token.kind, TokenKind::Name | TokenKind::CommandName);
    match words {
        [_, .., last] if last.text == "in" => true,
        [_, variable, equals] if variable.kind == TokenKind::Variable => equals.text == "=",
        [first, second] => {
            let has_two = matches!(
                first.text,
                "i" | "in" | "inf" | "info" | "pi" | "pip" | "pipe" | "display"
            );
            has_two && is_name(second)
        }
        [first] => is_name(first),
        _ => false,
    }
}

fn skip_blanks(text: &str) -> &str {
    text.trim_start_matches(is_blank)
}
