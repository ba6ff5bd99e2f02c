//! The progress line of a long command, on standard error.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use rustix::termios::tcgetwinsize;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// The duration after which a command shows a progress line.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);

/// The most updates of the line in a second.
const REDRAWS: u8 = 8;
/// The template of the line.
const LINE: &str = "[{bar:30}] {percent:>3} %  {human_pos} of {human_len} {msg}";

/// The progress line, if it is shown.
#[derive(Debug)]
pub struct Progress {
    /// The time of the last output.
    silent_since: Instant,
    bar: Option<ProgressBar>,
    is_wanted: bool,
}

impl Progress {
    /// Makes a hidden line. It remains hidden if `is_wanted` is false or standard error is no terminal.
    pub fn new(is_wanted: bool) -> Self {
        Progress { silent_since: Instant::now(), bar: None, is_wanted: is_wanted && io::stderr().is_terminal() }
    }

    /// Returns whether there was no output for long enough.
    pub fn is_due(&self) -> bool {
        self.is_wanted && (self.bar.is_some() || self.silent_since.elapsed() >= PATIENCE)
    }

    /// Shows the progress, if that is due.
    pub fn show(&mut self, done: u64, total: u64, what: &'static str) {
        if !self.is_due() {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let target = ProgressDrawTarget::term_like_with_hz(Box::new(Terminal), REDRAWS);
            let bar = ProgressBar::with_draw_target(Some(total), target).with_message(what);
            let style = ProgressStyle::with_template(LINE).map(|style| style.progress_chars("#>-"));
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        // Each of these calls redraws the line, up to the limit.
        if bar.length() != Some(total) {
            bar.set_length(total);
            bar.set_message(what);
        }
        bar.set_position(done.min(total));
    }

    /// Removes the line before other output.
    pub fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if self.is_wanted {
            self.silent_since = Instant::now();
        }
    }
}

/// The terminal, less the columns of the `^C` that it shows for Ctrl-C: a line that reaches to its edge would stay
/// above them, because only the row of the cursor is cleared.
#[derive(Debug)]
struct Terminal;

impl Terminal {
    /// Moves the cursor in the direction of a letter (ECMA-48). A terminal would take 0 for 1.
    fn move_cursor(&self, steps: usize, letter: char) -> io::Result<()> {
        if steps == 0 { Ok(()) } else { self.write_str(&format!("\x1b[{steps}{letter}")) }
    }
}

/// The columns of `^C`.
const CTRL_C: u16 = 2;

impl TermLike for Terminal {
    fn width(&self) -> u16 {
        let columns = tcgetwinsize(io::stderr()).map_or(0, |size| size.ws_col);
        // A terminal without a size has the usual one.
        if columns == 0 { 80 - CTRL_C } else { columns.saturating_sub(CTRL_C).max(1) }
    }

    fn move_cursor_up(&self, rows: usize) -> io::Result<()> {
        self.move_cursor(rows, 'A')
    }

    fn move_cursor_down(&self, rows: usize) -> io::Result<()> {
        self.move_cursor(rows, 'B')
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.move_cursor(columns, 'C')
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        self.move_cursor(columns, 'D')
    }

    fn write_line(&self, line: &str) -> io::Result<()> {
        self.write_str(&format!("{line}\n"))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        io::stderr().write_all(text.as_bytes())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.write_str("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        io::stderr().flush()
    }
}
