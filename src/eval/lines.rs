//! Lines of the source in expressions: `server.c:210`.

use super::error::{Error, Result};
use super::evaluator::Evaluator;
use super::{Value, suggest};
use crate::lang::{Name, Spanned};
use crate::symbol::{LineSearch, NoLines};

impl Evaluator<'_> {
    /// The one address of a line; several are an error that lists them.
    pub(super) fn source_line(&self, file: &Spanned<Name>, line: &Spanned<u64>) -> Result<Value> {
        let at = file.at.to(line.at);
        let found = self.line_search(file, line, 0)?;
        if found.line != Some(line.node) {
            return Err(no_code(file, line, &found));
        }
        let firsts = found.firsts();
        if let [one] = firsts[..] {
            return Ok(Value::Address(one));
        }
        let names = self.names_by_address(at, "naming the places of a line")?;
        let list = suggest::list(firsts.iter().map(|&address| match names.at(address) {
            Some(symbol) => format!("{address} in {}", symbol.name()),
            None => address.to_string(),
        }));
        let place = format!("{}:{}", file.node, line.node);
        let message = format!("{place} has code at several places: {list}");
        let hint = format!("write the address itself; info line {place} says more");
        Err(Error::new(at, message).hint(hint))
    }

    /// Where a line has code: at least one place, the first `with_frames` of a module with the functions there.
    pub(super) fn line_search(
        &self,
        file: &Spanned<Name>,
        line: &Spanned<u64>,
        with_frames: usize,
    ) -> Result<LineSearch> {
        let at = file.at.to(line.at);
        let what = format!("looking up {}:{}", file.node, line.node);
        let found = self
            .names(at, &what)?
            .find_line(&file.node.0, line.node, with_frames)
            .map_err(|_| Error::new(at, format!("{what}: stopped")))?;
        if !found.places.is_empty() { Ok(found) } else { Err(no_line(file, line, &found)) }
    }
}

fn no_code(file: &Spanned<Name>, line: &Spanned<u64>, found: &LineSearch) -> Error {
    let place = file.at.to(line.at);
    let error = Error::new(place, format!("{}:{} has no code", file.node, line.node));
    match found.line {
        Some(next) => error.hint(format!("the next line that has is {}:{next}", file.node)),
        None => error,
    }
}

fn no_line(file: &Spanned<Name>, line: &Spanned<u64>, found: &LineSearch) -> Error {
    let (name, number) = (&file.node, line.node);
    let error = if found.has_file {
        let message = format!("{name} has no code at line {number} or behind it");
        Error::new(line.at, message)
    } else {
        let message = format!("no module was compiled from a file called {name}");
        Error::new(file.at, message)
    };
    Error { hint: silent(found), ..error }
}

/// Which modules could not be asked, and why.
fn silent(found: &LineSearch) -> Option<String> {
    let without = found.silent.iter().filter(|(_, why)| matches!(why, NoLines::NoDebugInformation { .. }));
    let without: Vec<String> = without.map(|(module, _)| module.to_string()).collect();
    let mut parts: Vec<String> = unasked(found).into_iter().collect();
    if !without.is_empty() {
        let list = suggest::list(without);
        parts.push(format!("without debug information: {list}"));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Which modules have debug information that could not be looked through for a line, and why.
pub fn unasked(found: &LineSearch) -> Option<String> {
    let unasked =
        found.silent.iter().filter(|(_, why)| !matches!(why, NoLines::NoDebugInformation { .. } | NoLines::NoFile(_)));
    let parts: Vec<String> = unasked.map(|(module, why)| format!("{module}: {why}")).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
