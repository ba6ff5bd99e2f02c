//! Pictures, for files whose names end in `.svg`.

use super::base::Session;
use super::failure::Origin;
use crate::command::expand_home;
use crate::lang::{Command, Output, Span, Spanned};
use crate::render::{Renderer, Svg};
use crate::report::ErrorReport;

/// Why a destination cannot be opened.
pub(super) struct NoDestination {
    /// The place of the path in the line.
    pub(super) at: Span,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl NoDestination {
    pub(super) fn new(at: Span, message: impl Into<String>) -> Self {
        NoDestination {
            at,
            message: message.into(),
            hint: None,
        }
    }

    /// The error, at its place in the line.
    pub(super) fn report(self, text: &str, origin: Origin) -> ErrorReport {
        ErrorReport {
            place: Some(origin.place(text, Some(self.at))),
            hint: self.hint,
            ..ErrorReport::of(self.message)
        }
    }
}

/// The path, if it is that of a picture.
fn svg(output: &Output) -> Option<(&Spanned<String>, bool)> {
    let Output::File { path, append } = output else {
        return None;
    };
    let extension = expand_home(&path.node).extension().map(ToOwned::to_owned);
    let is_svg = extension.is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
    is_svg.then_some((path, *append))
}

/// Refuses one picture for several commands.
pub(super) fn refuse_several(output: &Output) -> Result<(), NoDestination> {
    match svg(output) {
        None => Ok(()),
        Some((path, _)) => Err(NoDestination {
            hint: Some("write `> FILE.svg` behind the command that draws".to_owned()),
            ..NoDestination::new(
                path.at,
                "an SVG file holds the picture of one command, and here several write",
            )
        }),
    }
}

impl Session {
    /// The renderer of the picture, if the command writes one.
    pub(super) fn picture(
        &self,
        text: &str,
        command: &Spanned<Command>,
        output: &Output,
    ) -> Result<Option<Box<dyn Renderer>>, NoDestination> {
        let Some((path, append)) = svg(output) else {
            return Ok(None);
        };
        if !command.node.is_drawn() {
            let message = "this command draws no picture, and an SVG file is one";
            let hint =
                "`map … > FILE.svg` draws; for text, choose a name that does not end in .svg";
            return Err(NoDestination {
                hint: Some(hint.to_owned()),
                ..NoDestination::new(path.at, message)
            });
        }
        if append {
            let message = "an SVG file holds one picture, and nothing can be added to it";
            return Err(NoDestination {
                hint: Some("write > instead of >>".to_owned()),
                ..NoDestination::new(path.at, message)
            });
        }
        let at = command.at;
        let line = text.get(at.start..at.end).unwrap_or_default();
        let target = self.state.target().map(|target| target.process.identity());
        let title = match target {
            Some(identity) => format!("{} ({}): {line}", identity.name, identity.pid),
            None => line.to_owned(),
        };
        let columns = usize::try_from(self.state().settings.width).ok();
        let columns = columns.filter(|columns| *columns > 0);
        Ok(Some(Box::new(Svg::new(title, columns))))
    }
}
