//! What each part of a line is, for its colour: as the parser takes it, not as it looks.

pub use super::class::Class;

use super::lexer::{self, TokenKind};
use super::parser;
use super::span::{Span, Spanned};

/// The parts of a line in order, without overlaps; blanks are part of none.
pub fn classes(line: &str) -> Vec<Spanned<Class>> {
    let tokens = lexer::tokens(line);
    let (taken, wrong) = parser::classes(line, &tokens);
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

/// What a token is by itself.
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
        | TokenKind::Fraction { .. }
        | TokenKind::BadNumber(_)
        | TokenKind::PastedValue(_)
        | TokenKind::PastedAddress(_)
        | TokenKind::PastedCast { .. }
        | TokenKind::PastedRow(_) => Class::Number,
        TokenKind::Option | TokenKind::Format(_) => Class::Keyword,
        TokenKind::Mark | TokenKind::LonePipe | TokenKind::Other => Class::Operator,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Vec<(&str, Class)> {
        let part = |part: Spanned<Class>| (line.get(part.at.start..part.at.end).unwrap_or_default(), part.node);
        classes(line).into_iter().map(part).collect()
    }

    #[test]
    fn words_are_what_the_parser_takes_them_for() {
        assert_eq!(
            of("w where where dirty by state | wc"),
            [
                ("w", Class::Command),
                ("where", Class::Name),
                ("where", Class::Keyword),
                ("dirty", Class::Field),
                ("by", Class::Keyword),
                ("state", Class::Keyword),
                ("| wc", Class::Shell),
            ]
        );
        assert_eq!(
            of("p size(heap) + pfn"),
            [
                ("p", Class::Command),
                ("size", Class::Function),
                ("(", Class::Operator),
                ("heap", Class::Name),
                (")", Class::Operator),
                ("+", Class::Operator),
                ("pfn", Class::Name),
            ]
        );
        assert_eq!(of("echo 1 # x"), [("echo", Class::Command), ("1", Class::Text), ("# x", Class::Comment)]);
    }

    #[test]
    fn what_is_wrong_is_marked_unless_it_is_still_typed() {
        assert_eq!(of("wlak heap")[0], ("wlak", Class::Wrong));
        assert_ne!(of("wlak")[0].1, Class::Wrong);
    }
}
