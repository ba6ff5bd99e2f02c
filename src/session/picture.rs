//! Pictures, for files whose names end in `.svg`.

use super::base::Session;
use crate::command;
use crate::command::expand_home;
use crate::eval;
use crate::lang::ParsedCommand;
use crate::lang::{Output, Spanned};
use crate::render::{Renderer, Svg};
use std::rc::Rc;

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
pub(super) fn refuse_several(output: &Output) -> eval::Result<()> {
    let Some((path, _)) = svg(output) else {
        return Ok(());
    };
    let message = "an SVG file holds the picture of one command; here several commands write";
    let hint = "write `> FILE.svg` behind the command that draws";
    Err(eval::Error::new(path.at, message).hint(hint))
}

impl Session {
    /// The renderer of the picture, if the command writes one.
    pub(super) fn picture(
        &self,
        text: &str,
        command: &Spanned<Rc<dyn ParsedCommand>>,
        output: &Output,
    ) -> eval::Result<Option<Box<dyn Renderer>>> {
        let Some((path, append)) = svg(output) else {
            return Ok(None);
        };
        if !command::nature(&*command.node).draws {
            let message = "this command draws no picture, so it cannot write an SVG file";
            let hint = "`map … > FILE.svg` draws; for text, choose a name that does not end in .svg";
            return Err(eval::Error::new(path.at, message).hint(hint));
        }
        if append {
            let message = "an SVG file holds one picture, so >> cannot add to it";
            return Err(eval::Error::new(path.at, message).hint("write > instead of >>"));
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
