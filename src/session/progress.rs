//! The progress line of a long command, on standard error if that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// A command that ends sooner shows no progress line.
const PATIENCE: Duration = Duration::from_millis(500);

/// How often the line may change in a second.
const REDRAWS: u8 = 8;
/// What stands in it.
const LINE: &str = "[{bar:30}] {percent:>3} %  {human_pos} of {human_len} {msg}";

/// The line, once there is one.
#[derive(Debug)]
pub struct Progress {
    /// The time of the last output.
    silent_since: Instant,
    bar: Option<ProgressBar>,
    wanted: bool,
}

impl Progress {
    /// Without a line so far. It stays so if `wanted` is false or standard error is no terminal.
    pub fn new(wanted: bool) -> Self {
        Progress { silent_since: Instant::now(), bar: None, wanted: wanted && io::stderr().is_terminal() }
    }

    /// Whether there was no output for long enough.
    pub fn is_due(&self) -> bool {
        self.wanted && (self.bar.is_some() || self.silent_since.elapsed() >= PATIENCE)
    }

    /// Shows that `done` of `total` are done.
    pub fn show(&mut self, done: u64, total: u64, what: &'static str) {
        let bar = self.bar.get_or_insert_with(|| {
            let target = ProgressDrawTarget::stderr_with_hz(REDRAWS);
            let bar = ProgressBar::with_draw_target(Some(total), target).with_message(what);
            let style = ProgressStyle::with_template(LINE).map(|style| style.progress_chars("#>-"));
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        // Each of these draws the line anew, up to the limit.
        if bar.length() != Some(total) {
            bar.set_length(total);
        }
        bar.set_position(done.min(total));
    }

    /// Removes the line before other output.
    pub fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if self.wanted {
            self.silent_since = Instant::now();
        }
    }
}
