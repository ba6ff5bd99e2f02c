//! Help while typing: completion, hints, colours.

use super::offer_list;
use crate::command::{self, LANGUAGE, Offer};
use crate::kernel::text::is_plain;
use crate::lang::highlight::Class;
use crate::lang::{Expected, Resolved, Span, grammar, script};
use crate::render::{Role, Theme, cut};
use crate::session::{self, PROMPT, Session};
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hint, Hinter};
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::rc::Rc;
use unicode_width::UnicodeWidthStr;

/// The session, shared by the prompt, which runs lines, and the assistant, which reads it while they are typed.
pub(super) type SharedSession<'a> = Rc<RefCell<&'a mut Session>>;

/// Looks at the session while its user types.
pub(super) struct Assistant<'a> {
    session: SharedSession<'a>,
    /// The columns before the hint that is shown.
    before_hint: Cell<Option<usize>>,
}

impl<'a> Assistant<'a> {
    pub(super) fn new(session: &SharedSession<'a>) -> Self {
        Assistant { session: Rc::clone(session), before_hint: Cell::new(None) }
    }

    /// Erases the hint in the row above the cursor: the editor erases it at the end of a line, and not at Ctrl-C.
    pub(super) fn erase_hint(&self) {
        if let Some(before) = self.before_hint.take() {
            let mut screen = io::stdout();
            _ = writeln!(screen, "\x1b[A\x1b[{}G\x1b[K", before + 1).and_then(|()| screen.flush());
        }
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
        let (start, offers) = command::complete(session.state(), line, pos, command::BETWEEN_KEYS);
        let (names, words): (Vec<Offer>, Vec<Offer>) = offers.into_iter().partition(Offer::is_name);
        let pair = |offer: Offer| Pair { display: offer.shown, replacement: offer.typed };
        let groups = [words, names].map(|group| group.into_iter().map(pair).collect());
        // The editor assumes as much of a terminal that does not report it.
        Ok((start, offer_list::of_groups(groups, session::terminal_width().unwrap_or(80))))
    }
}

impl Hinter for Assistant<'_> {
    type Hint = Usage;

    fn hint(&self, line: &str, pos: usize, _: &Context<'_>) -> Option<Usage> {
        let hint = self.hint_after(line, pos);
        self.before_hint.set(hint.as_ref().map(|_| PROMPT.len() + line.width()));
        hint
    }
}

impl Assistant<'_> {
    fn hint_after(&self, line: &str, pos: usize) -> Option<Usage> {
        if pos < line.len() || is_long(line) {
            return None;
        }
        if let Some(hidden) = hidden_characters(line) {
            return Some(Usage(format!("   not shown: {hidden}")));
        }
        let room = match self.session.borrow().width() {
            // The last column stays free, where a terminal would wrap.
            Some(width) => width.checked_sub(PROMPT.len() + line.width() + 1)?,
            None => usize::MAX,
        };
        // A line that wraps jumps while it is typed.
        usage(line).map(|usage| Usage(cut_at_blank(&usage, room)))
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
        let shown = without_hidden(line);
        if self.theme().is_coloured() && !is_long(line) {
            let session = self.session.borrow();
            let commands = &session.state().commands;
            let own = script::first_word(&shown).filter(|(word, _)| commands.contains_key(*word));
            Cow::Owned(match own {
                Some((_, at)) => paint_user_command(&shown, at, session.theme()),
                None => paint_line(&shown, session.theme()),
            })
        } else {
            shown
        }
    }

    fn highlight_char(&self, line: &str, pos: usize, kind: CmdKind) -> bool {
        if is_long(line) {
            // Drawn anew at each key, a pasted line would take a time that grows with its square.
            let typed = line.get(..pos).and_then(|before| before.chars().next_back());
            return typed.is_some_and(is_hidden) && kind != CmdKind::MoveCursor;
        }
        (self.theme().is_coloured() || hidden_characters(line).is_some()) && kind != CmdKind::MoveCursor
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _default: bool) -> Cow<'b, str> {
        Cow::Owned(self.theme().paint(Role::Prompt, prompt))
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(self.theme().paint(Role::Dim, hint))
    }
}

/// `line` with its parts in their colours, of the same width.
pub(super) fn paint_line(line: &str, theme: Theme) -> String {
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
pub(super) fn paint_user_command(line: &str, name: Span, theme: Theme) -> String {
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

/// Whether a line is neither coloured nor explained while it is typed.
fn is_long(line: &str) -> bool {
    const LONGEST: usize = 1024;
    line.len() > LONGEST
}

fn is_hidden(c: char) -> bool {
    // The editor itself shows tabs and line ends.
    !is_plain(c) && !matches!(c, '\t' | '\n')
}

/// The line without these characters. They take no columns in the editor's own count either.
pub(super) fn without_hidden(line: &str) -> Cow<'_, str> {
    if line.contains(is_hidden) { Cow::Owned(line.replace(is_hidden, "")) } else { Cow::Borrowed(line) }
}

/// The numbers of these characters in the line: `U+009B U+202E`.
pub(super) fn hidden_characters(line: &str) -> Option<String> {
    let hidden = line.chars().filter(|&c| is_hidden(c));
    let names: Vec<String> = hidden.map(|c| format!("U+{:04X}", u32::from(c))).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

/// What may follow `line`, if no next word has begun.
pub(super) fn usage(line: &str) -> Option<String> {
    let words = line.trim();
    if words.is_empty() || !line.ends_with(' ') {
        return None;
    }
    if let Some(name) = command_name(words) {
        let usage = grammar::usage(&name)?;
        return usage.strip_prefix(name.as_str()).map(|rest| rest.trim_start().to_owned());
    }
    let kinds = LANGUAGE.expectation(line, line.len()).kinds;
    let may_end = kinds.contains(&Expected::End);
    // The word for one of these is that of the whole.
    let has_wider = kinds.iter().any(|kind| matches!(kind, Expected::Range | Expected::Pattern));
    let kinds = kinds.into_iter().filter(|kind| !(has_wider && *kind == Expected::Expression));
    let mut words: Vec<&str> = Vec::new();
    for word in kinds.filter_map(Expected::in_usage) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    let words = Some(words.join(" | ")).filter(|words| !words.is_empty())?;
    Some(if may_end { format!("[{words}]") } else { words })
}

/// A text of at most `room` columns: a longer one ends after a word, with `…`.
fn cut_at_blank(text: &str, room: usize) -> String {
    let cut = cut(text, room);
    if cut == text {
        return cut.into_owned();
    }
    let kept = cut.rsplit_once(' ').map_or("", |(kept, _)| kept.trim_end_matches(['|', ' ']));
    if kept.is_empty() { cut.into_owned() } else { format!("{kept} \u{2026}") }
}

/// The full name of the command, if `words` are a command and nothing more.
fn command_name(words: &str) -> Option<String> {
    let mut words = words.split_whitespace();
    let Resolved::One(first) = LANGUAGE.resolve_first(words.next()?) else {
        return None;
    };
    let name = match words.next() {
        None if LANGUAGE.second_words(first).next().is_none() => first.to_owned(),
        None => return None,
        Some(second) => match LANGUAGE.resolve_second(first, second) {
            Resolved::One(second) => format!("{first} {second}"),
            _ => return None,
        },
    };
    words.next().is_none().then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::Background;

    /// The text without its colours.
    fn without_colours(painted: &str) -> String {
        let mut parts = painted.split('\x1b');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, text)| text))
    }

    #[test]
    fn colours_change_nothing_that_is_shown() {
        for line in
            ["walk heap where mapcount > 1", "t [heap] \u{e4}\u{4e2d} 'x", "foo bar", "", "print \"", "| | |", "t 0x 5"]
        {
            assert_eq!(paint_line(line, Theme::PLAIN), line);
            assert_eq!(without_colours(&paint_line(line, Theme::new(Some(Background::Any)))), line);
        }
    }

    #[test]
    fn what_is_wrong_is_shown_once_more_is_typed() {
        let error = Theme::new(Some(Background::Any)).paint(Role::Error, "nonsense");
        assert!(!paint_line("nonsense", Theme::new(Some(Background::Any))).contains(&error));
        assert!(paint_line("nonsense x", Theme::new(Some(Background::Any))).contains(&error));
    }

    #[test]
    fn what_could_steer_a_terminal_is_left_out_and_named() {
        let line = "echo \u{9b}31m \u{202e}abc é 漢";
        assert_eq!(without_hidden(line), "echo 31m abc é 漢");
        assert_eq!(hidden_characters(line).as_deref(), Some("U+009B U+202E"));
        assert_eq!(hidden_characters("walk heap"), None);
    }

    #[test]
    fn the_usage_shows_until_arguments_come() {
        assert!(usage("walk ").is_some_and(|usage| usage.contains("where")));
        assert_eq!(usage("w "), usage("walk "));
        assert!(usage("info symbol ").is_some());
        assert_eq!(usage("walk"), None);
        assert_eq!(usage("nonsense "), None);
    }

    #[test]
    fn behind_arguments_the_clauses_that_are_left_show() {
        let left = usage("walk all by state ").unwrap();
        assert!(left.contains("limit") && !left.contains("by"), "{left}");
        for (line, left) in [
            ("account cgroup ", "[PATH | by | with | limit | top | full]"),
            ("account of ", "PID|NAME"),
            ("region heap ", "[full]"),
            ("find heap, ", "VALUE"),
            ("compare children in ", "RANGE"),
        ] {
            assert_eq!(usage(line).as_deref(), Some(left), "{line}");
        }
    }

    #[test]
    fn a_usage_is_cut_after_a_word() {
        assert_eq!(cut_at_blank("RANGE [with PART]", 17), "RANGE [with PART]");
        assert_eq!(cut_at_blank("RANGE [with PART]", 16), "RANGE [with \u{2026}");
        assert_eq!(cut_at_blank("PATH | by | with", 9), "PATH \u{2026}");
        assert_eq!(cut_at_blank("PATH", 3), "PA\u{2026}");
    }
}
