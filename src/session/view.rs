//! How output is to look: the settings, as far as they and the terminal have a say.

use super::base::Session;
use crate::lang::ColorChoice;
use crate::render::{self, Renderer, Theme};
use std::io::{self, IsTerminal};

impl Session {
    /// The colours of standard output.
    pub fn theme(&self) -> Theme {
        self.theme_of(io::stdout().is_terminal())
    }

    /// Whether output is JSON.
    pub fn is_json(&self) -> bool {
        self.state().settings.json
    }

    /// How many lines of input are kept.
    pub fn history_size(&self) -> usize {
        count(self.state().settings.history_size)
    }

    pub(super) fn theme_of(&self, is_terminal: bool) -> Theme {
        let no_color = std::env::var("NO_COLOR").ok();
        let term = std::env::var("TERM").ok();
        let surroundings = render::Surroundings {
            is_terminal,
            no_color: no_color.as_deref(),
            term: term.as_deref(),
        };
        let choice = match self.state().settings.color {
            ColorChoice::Auto => render::ColorChoice::Auto,
            ColorChoice::Always => render::ColorChoice::Always,
            ColorChoice::Never => render::ColorChoice::Never,
        };
        Theme::new(choice.decide(surroundings))
    }

    /// The renderer for standard output, or for a pipe or file, which get no colours.
    pub(super) fn renderer(&self, screen: bool) -> Box<dyn Renderer> {
        if self.is_json() {
            return Box::new(render::Json);
        }
        let theme = if screen { self.theme() } else { Theme::PLAIN };
        let terminal = screen && io::stdout().is_terminal();
        Box::new(render::Text::new(theme, self.width().filter(|_| terminal)))
    }

    /// The renderer for standard error.
    pub(super) fn error_renderer(&self) -> Box<dyn Renderer> {
        let terminal = io::stderr().is_terminal();
        Box::new(render::Text::new(
            self.theme_of(terminal),
            self.width().filter(|_| terminal),
        ))
    }

    /// Rows and columns of a screen, if long output is to stop at each.
    pub(super) fn pager_size(&self) -> Option<(usize, usize)> {
        let paging = self.manner.interactive && !self.is_json() && self.state().settings.pagination;
        if !paging || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return None;
        }
        let screen = screen_size();
        let rows = match count(self.state().settings.height) {
            0 => screen?.0,
            height => height,
        };
        // The terminal wraps at its own width, whatever was set to write in. One that does not tell its width is taken not to wrap.
        let columns = screen.map(|(_, columns)| columns).or(self.width());
        Some((rows, columns.unwrap_or(usize::MAX)))
    }

    /// The columns to write in, if the user or the terminal says.
    pub fn width(&self) -> Option<usize> {
        match count(self.state().settings.width) {
            0 => screen_size().map(|(_, columns)| columns),
            width => Some(width),
        }
    }
}

fn count(setting: u64) -> usize {
    usize::try_from(setting).unwrap_or(usize::MAX)
}

/// Rows and columns of the terminal that standard output or standard error is, if it is one that says.
fn screen_size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(io::stdout())
        .or_else(|_| rustix::termios::tcgetwinsize(io::stderr()))
        .ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then(|| (size.ws_row.into(), size.ws_col.into()))
}
