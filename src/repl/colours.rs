//! The colours of a line while it is being typed.

use crate::lang::pieces::{Piece, pieces};
use crate::lang::{self, Place};
use crate::render::{Role, Theme};

/// `line` with its pieces in their colours, of the same width.
pub(super) fn painted(line: &str, theme: Theme) -> String {
    let mut parts: Vec<(Place, Role)> = pieces(line)
        .into_iter()
        .map(|(at, piece)| (at, role(piece)))
        .collect();
    if let Some(fault) = fault(line) {
        parts.retain(|(at, _)| at.end <= fault.start || at.start >= fault.end);
        parts.push((fault, Role::Error));
        parts.sort_by_key(|(at, _)| at.start);
    }
    let mut text = String::with_capacity(2 * line.len());
    let mut done = 0;
    for (at, role) in parts {
        text.push_str(line.get(done..at.start).unwrap_or_default());
        text.push_str(&theme.paint(role, line.get(at.start..at.end).unwrap_or_default()));
        done = at.end;
    }
    text.push_str(line.get(done..).unwrap_or_default());
    text
}

/// What is wrong, if more has been typed since: what stands at the end may still become right.
fn fault(line: &str) -> Option<Place> {
    let at = lang::parse_line(line).err()?.at;
    (at.start < at.end && line.get(at.end..)?.starts_with(' ')).then_some(at)
}

fn role(piece: Piece) -> Role {
    match piece {
        Piece::Command => Role::Command,
        Piece::Keyword => Role::Keyword,
        Piece::Number => Role::Address,
        Piece::Quoted => Role::Quoted,
        Piece::Variable => Role::Symbol,
        Piece::Comment => Role::Dim,
        Piece::Outside => Role::Note,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text without its colours.
    fn bare(painted: &str) -> String {
        let mut parts = painted.split('\x1b');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| {
            text + part.split_once('m').map_or("", |(_, text)| text)
        })
    }

    #[test]
    fn colours_change_nothing_that_is_shown() {
        for line in [
            "walk heap where mapcount > 1",
            "t [heap] \u{e4}\u{4e2d} 'x",
            "foo bar",
            "",
            "print \"",
            "| | |",
            "t 0x 5",
        ] {
            assert_eq!(painted(line, Theme::PLAIN), line);
            assert_eq!(bare(&painted(line, Theme::new(true))), line);
        }
    }

    #[test]
    fn what_is_wrong_is_shown_once_more_is_typed() {
        let error = Theme::new(true).paint(Role::Error, "nonsense");
        assert!(!painted("nonsense", Theme::new(true)).contains(&error));
        assert!(painted("nonsense x", Theme::new(true)).contains(&error));
    }
}
