//! The colours of a line while it is being typed.

use crate::command::LANGUAGE;
use crate::lang::Span;
use crate::lang::highlight::Class;
use crate::render::{Role, Theme};

/// `line` with its parts in their colours, of the same width.
pub(super) fn painted(line: &str, theme: Theme) -> String {
    let mut text = String::with_capacity(2 * line.len());
    let mut done = 0;
    for part in LANGUAGE.classes(line) {
        let (start, end) = (part.at.start, part.at.end);
        text.push_str(line.get(done..start).unwrap_or_default());
        text.push_str(&theme.paint(role(part.node), line.get(start..end).unwrap_or_default()));
        done = end;
    }
    text.push_str(line.get(done..).unwrap_or_default());
    text
}

/// A line that begins with a user-defined command, whose name is at `name`.
pub(super) fn painted_own(line: &str, name: Span, theme: Theme) -> String {
    let (before, rest) = line.split_at(name.start.min(line.len()));
    let length = (name.end - name.start).min(rest.len());
    let (name, behind) = rest.split_at(length);
    format!("{before}{}{behind}", theme.paint(Role::Command, name))
}

fn role(class: Class) -> Role {
    match class {
        Class::Command => Role::Command,
        Class::Keyword | Class::Field | Class::Function => Role::Keyword,
        Class::Number => Role::Address,
        Class::Name => Role::Name,
        Class::Variable => Role::Symbol,
        Class::Text => Role::Quoted,
        Class::Operator => Role::Plain,
        Class::Comment => Role::Dim,
        Class::Shell => Role::Note,
        Class::Wrong => Role::Error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::Background;

    /// The text without its colours.
    fn bare(painted: &str) -> String {
        let mut parts = painted.split('\x1b');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, text)| text))
    }

    #[test]
    fn colours_change_nothing_that_is_shown() {
        for line in
            ["walk heap where mapcount > 1", "t [heap] \u{e4}\u{4e2d} 'x", "foo bar", "", "print \"", "| | |", "t 0x 5"]
        {
            assert_eq!(painted(line, Theme::PLAIN), line);
            assert_eq!(bare(&painted(line, Theme::new(Some(Background::Any)))), line);
        }
    }

    #[test]
    fn what_is_wrong_is_shown_once_more_is_typed() {
        let error = Theme::new(Some(Background::Any)).paint(Role::Error, "nonsense");
        assert!(!painted("nonsense", Theme::new(Some(Background::Any))).contains(&error));
        assert!(painted("nonsense x", Theme::new(Some(Background::Any))).contains(&error));
    }
}
