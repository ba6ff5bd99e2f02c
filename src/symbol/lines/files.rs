//! The names of source files, for completion.

use super::path::ends_begun;
use crate::kernel::Name;
use crate::symbol::TargetSymbols;
use std::collections::BTreeSet;
use std::time::Duration;

/// The programs and libraries whose source files are offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SourcesOf {
    /// Those whose debug information was read before.
    Known,
    /// Those and the program itself, whose debug information is read if there is time.
    KnownAndProgram,
}

impl TargetSymbols<'_> {
    /// The ends of source files' paths that begin with `begun`, in order, as they are displayed and typed: at most
    /// `limit` of them, and as many as are found in `time`.
    pub fn source_files(&self, begun: &str, of: SourcesOf, limit: usize, time: Duration) -> BTreeSet<String> {
        let mut budget = self.budget().within(time);
        let mut found = BTreeSet::new();
        let last = begun.rsplit('/').next().unwrap_or_default();
        // An escaped name shares its prefix with the raw one, up to the first escaped byte.
        let plain = last.split('\\').next().unwrap_or_default();
        let wants = |name: &[u8]| begun.contains('/') || name.starts_with(plain.as_bytes());
        // A program lies below its libraries.
        for (number, (module, loaded)) in self.programs().enumerate() {
            if found.len() >= limit || budget.look().is_err() {
                break;
            }
            let Ok(loaded) = loaded else {
                continue;
            };
            let take = &mut |path: Name| {
                let path = path.escaped();
                let room = limit.saturating_sub(found.len());
                found.extend(ends_begun(&path, begun).take(room).map(str::to_owned));
            };
            // Names found before the time was up still count.
            _ = match loaded.symbols.lines.known() {
                Some(lines) => lines.each_file(&wants, &mut budget, take),
                None if number == 0 && of == SourcesOf::KnownAndProgram => {
                    self.ask_lines(&loaded.symbols, module, &mut budget, |lines, _, budget| {
                        lines.each_file(&wants, budget, take)
                    })
                }
                None => Ok(()),
            };
        }
        found
    }
}
