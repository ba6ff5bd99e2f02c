//! Level 1 of the grammar: a line cut into tokens, the longest first.
//!
//! Nothing is an error here: what no rule knows becomes [`TokenKind::Other`], and the parser says what could have
//! stood there. Each token rule is a nom parser over the text; the longest match wins, the earlier rule among equals.

mod format;
mod line;
mod number;
mod pasted;
mod quoted;
mod rule;
mod token;
mod word;

use super::place::Place;
pub(super) use quoted::{escape, unescape};
use rule::Lexed;
pub(super) use rule::is_blank;
pub(super) use token::{NumberFault, Token, TokenKind};
pub(super) use word::is_plain_name;

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
            behind_command: is_command(&tokens, start),
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
    /// Glued to the name of a command.
    behind_command: bool,
}

/// The longest token at the start of `text`, which is not empty.
fn longest(text: &str, surroundings: Surroundings) -> (TokenKind, usize) {
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
        pasted::frame,
        pasted::maps_line,
        pasted::pmap_line,
        pasted::mapping_line,
        word::option,
        format::bytes,
        word::mark,
        word::other,
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
    let behind_command: &[fn(&str) -> Lexed<'_, TokenKind>] = if surroundings.behind_command {
        &[format::format]
    } else {
        &[]
    };

    let mut best = (TokenKind::Other, 0);
    let by_place = at_line_start.iter().chain(at_top).chain(behind_command);
    for rule in by_place.chain(rules) {
        if let Ok((remaining, kind)) = rule(text) {
            let length = text.len() - remaining.len();
            if length > best.1 {
                best = (kind, length);
            }
        }
    }
    best
}

/// Whether what is glued to the last token, at `start`, is glued to the name of a command: the first word, or the one behind `pipe`.
fn is_command(tokens: &[Token<'_>], start: usize) -> bool {
    let name = match tokens {
        [name] => name,
        [pipe, name] if matches!(pipe.text, "pi" | "pip" | "pipe") => name,
        _ => return false,
    };
    name.kind == TokenKind::Name && name.at.end == start
}

fn skip_blanks(text: &str) -> &str {
    text.trim_start_matches(is_blank)
}
