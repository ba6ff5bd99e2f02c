//! A line in pieces, for whoever shows it while it is being typed.

use super::commands::{Resolved, resolve_first, resolve_second, second_words};
use super::lexer::{self, Token, TokenKind};
use super::place::Place;

/// What a piece of a line is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece {
    /// The name of a command.
    Command,
    /// A word that the language keeps for itself behind a command's first argument: `where`, `limit`.
    Keyword,
    /// A number, an address, a frame, a length, a time.
    Number,
    /// A name in quotes or brackets, or text.
    Quoted,
    /// `$name`, `$1`.
    Variable,
    /// A comment.
    Comment,
    /// What goes to the shell or names a file.
    Outside,
}

const KEYWORDS: &[&str] = &[
    "all", "and", "as", "by", "count", "every", "for", "full", "limit", "not", "or", "until",
    "where", "with",
];

/// The pieces of `line` that are something special, in order.
pub fn pieces(line: &str) -> Vec<(Place, Piece)> {
    let tokens = lexer::tokens(line);
    let commands = command_words(&tokens);
    tokens
        .iter()
        .enumerate()
        .filter_map(|(index, token)| {
            let piece = if index < commands {
                Piece::Command
            } else {
                piece(token)?
            };
            Some((token.at, piece))
        })
        .collect()
}

/// How many tokens name the command.
fn command_words(tokens: &[Token<'_>]) -> usize {
    let word = |index: usize| {
        tokens
            .get(index)
            .filter(|token| token.kind == TokenKind::Name)
            .map(|token| token.text)
    };
    let Some(Resolved::One(first)) = word(0).map(resolve_first) else {
        return 0;
    };
    match word(1).map(|second| resolve_second(first, second)) {
        Some(Resolved::One(_)) if second_words(first).next().is_some() => 2,
        _ => 1,
    }
}

fn piece(token: &Token<'_>) -> Option<Piece> {
    Some(match token.kind {
        TokenKind::CommentLine | TokenKind::Comment => Piece::Comment,
        TokenKind::Shell(_) | TokenKind::Pipe { .. } | TokenKind::Redirect { .. } => Piece::Outside,
        TokenKind::Quoted(_) | TokenKind::Text(_) | TokenKind::Bracketed => Piece::Quoted,
        TokenKind::Variable | TokenKind::History(_) => Piece::Variable,
        TokenKind::Number(_)
        | TokenKind::Pages(_)
        | TokenKind::Duration(_)
        | TokenKind::PastedValue(_)
        | TokenKind::PastedAddress(_)
        | TokenKind::PastedFrame(_)
        | TokenKind::MapsLine { .. }
        | TokenKind::PmapLine { .. } => Piece::Number,
        TokenKind::Name if KEYWORDS.contains(&token.text) => Piece::Keyword,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(line: &str) -> Vec<(&str, Piece)> {
        pieces(line)
            .into_iter()
            .map(|(at, piece)| (&line[at.start..at.end], piece))
            .collect()
    }

    #[test]
    fn each_piece_is_what_it_looks_like() {
        use Piece::*;
        assert_eq!(
            seen("walk heap where mapcount > 0x10 limit 5 | less"),
            [
                ("walk", Command),
                ("where", Keyword),
                ("0x10", Number),
                ("limit", Keyword),
                ("5", Number),
                ("| less", Outside)
            ]
        );
        assert_eq!(
            seen("info sym $x"),
            [("info", Command), ("sym", Command), ("$x", Variable)]
        );
        assert_eq!(
            seen("t [heap] # here"),
            [("t", Command), ("[heap]", Quoted), ("# here", Comment)]
        );
        assert_eq!(seen("!ls"), [("!ls", Outside)]);
        assert_eq!(seen("nonsense"), []);
    }
}
