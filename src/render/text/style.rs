//! The style of text: theme, width and time zone.

use crate::render::theme::Theme;
use jiff::tz::TimeZone;
use std::cell::OnceCell;

/// The style of text.
#[derive(Clone, Debug)]
pub(crate) struct Style {
    pub(crate) theme: Theme,
    /// Of the terminal, in columns; `None` for a pipe or a file.
    pub(crate) width: Option<usize>,
    /// Looked up with the first time that is shown.
    zone: OnceCell<TimeZone>,
}

impl Style {
    /// With times in the local time zone.
    pub(crate) fn new(theme: Theme, width: Option<usize>) -> Self {
        Style { theme, width, zone: OnceCell::new() }
    }

    pub(crate) fn with_time_zone(self, zone: TimeZone) -> Self {
        Style { zone: OnceCell::from(zone), ..self }
    }

    /// The width of a picture.
    pub(crate) fn columns(&self) -> usize {
        self.width.unwrap_or(80)
    }

    /// The zone in which times are shown.
    pub(crate) fn zone(&self) -> &TimeZone {
        self.zone.get_or_init(TimeZone::system)
    }
}
