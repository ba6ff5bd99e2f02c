//! Help while typing: completion, hints, colours.

use super::shared::{PROMPT, Shared};
use super::{colours, hidden, hint};
use crate::command;
use crate::lang::script;
use crate::render::{Role, Theme, cut};
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hint, Hinter};
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use std::borrow::Cow;
use std::rc::Rc;
use unicode_width::UnicodeWidthStr;

/// Looks at the session while its user types.
pub(super) struct Assistant<'a> {
    session: Shared<'a>,
}

impl<'a> Assistant<'a> {
    pub(super) fn new(session: &Shared<'a>) -> Self {
        Assistant { session: Rc::clone(session) }
    }

    /// The colours as they are set now.
    fn theme(&self) -> Theme {
        self.session.borrow().theme()
    }
}

impl Helper for Assistant<'_> {}
impl Validator for Assistant<'_> {}

impl Completer for Assistant<'_> {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let session = self.session.borrow();
        let (start, offers) = command::complete(session.state(), line, pos);
        let pairs = offers.into_iter().map(|offer| Pair { display: offer.shown, replacement: offer.typed });
        Ok((start, pairs.collect()))
    }
}

impl Hinter for Assistant<'_> {
    type Hint = Usage;

    fn hint(&self, line: &str, pos: usize, _: &Context<'_>) -> Option<Usage> {
        if pos < line.len() {
            return None;
        }
        if let Some(hidden) = hidden::named(line) {
            return Some(Usage(format!("   not shown: {hidden}")));
        }
        let room = match self.session.borrow().width() {
            // The last column stays free, where a terminal would wrap.
            Some(width) => width.checked_sub(PROMPT.len() + line.width() + 1)?,
            None => usize::MAX,
        };
        // A line that wraps jumps while it is typed.
        hint::usage(line).map(|usage| Usage(cut(&usage, room).into_owned()))
    }
}

/// What may follow in the line: shown, but never inserted.
pub(super) struct Usage(String);

impl Hint for Usage {
    fn display(&self) -> &str {
        &self.0
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Highlighter for Assistant<'_> {
    fn highlight<'l>(&self, line: &'l str, _pos: usize) -> Cow<'l, str> {
        let shown = hidden::without(line);
        if self.theme().is_coloured() {
            let session = self.session.borrow();
            let commands = &session.state().commands;
            let own = script::first_word(&shown).filter(|(word, _)| commands.contains_key(*word));
            Cow::Owned(match own {
                Some((_, at)) => colours::painted_own(&shown, at, session.theme()),
                None => colours::painted(&shown, session.theme()),
            })
        } else {
            shown
        }
    }

    fn highlight_char(&self, line: &str, _pos: usize, kind: CmdKind) -> bool {
        (self.theme().is_coloured() || hidden::named(line).is_some()) && kind != CmdKind::MoveCursor
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _default: bool) -> Cow<'b, str> {
        Cow::Owned(self.theme().paint(Role::Prompt, prompt))
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(self.theme().paint(Role::Dim, hint))
    }
}
