//! The classes of the parts of a line, for colours, as the parser reads them.

pub use super::error::Class;

use super::error::{Span, Spanned};
use super::lexer::{self, TokenKind};
use super::parser;
use super::parser::Language;

/// Returns the parts of a line in order, without overlaps and blanks.
pub(super) fn classes(language: Language, line: &str) -> Vec<Spanned<Class>> {
    let tokens = lexer::tokens(language, line);
    let (taken, wrong) = parser::classes(language, line, &tokens);
    let wrong = wrong.filter(|wrong| wrong.end < line.len() && wrong.start < wrong.end);
    let within = |inner: Span, outer: Span| outer.start <= inner.start && inner.end <= outer.end;
    tokens
        .iter()
        .map(|token| {
            let taken = taken.iter().rev().find(|part| within(token.at, part.at));
            let class = match (wrong, taken) {
                (Some(wrong), _) if within(token.at, wrong) => Class::Wrong,
                (_, Some(taken)) => taken.node,
                _ => class(&token.kind),
            };
            Spanned::new(class, token.at)
        })
        .collect()
}

/// Returns the class of a single token.
fn class(kind: &TokenKind) -> Class {
    match kind {
        TokenKind::CommentLine | TokenKind::Comment => Class::Comment,
        TokenKind::Shell(_) | TokenKind::Pipe { .. } => Class::Shell,
        TokenKind::Redirect { .. } | TokenKind::Text(_) | TokenKind::HexBytes(_) => Class::Text,
        TokenKind::Name
        | TokenKind::CommandName
        | TokenKind::Quoted(_)
        | TokenKind::Indexed { .. }
        | TokenKind::Bracketed => Class::Name,
        TokenKind::Variable | TokenKind::History(_) => Class::Variable,
        TokenKind::Number(_)
        | TokenKind::Dimension(_)
        | TokenKind::Pages(_)
        | TokenKind::Duration(_)
        | TokenKind::Fraction(_)
        | TokenKind::BadNumber(_)
        | TokenKind::PastedValue(_)
        | TokenKind::PastedAddress(_)
        | TokenKind::PastedCast { .. }
        | TokenKind::PastedRow(_) => Class::Number,
        TokenKind::Option | TokenKind::OtherOption | TokenKind::Format(_) => Class::Keyword,
        TokenKind::Mark | TokenKind::LonePipe | TokenKind::Other => Class::Operator,
    }
}
