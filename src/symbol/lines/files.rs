//! The names of source files, for somebody who has begun to type one.

use super::path::ends_begun;
use super::work::Work;
use crate::kernel::Name;
use crate::report::Stopped;
use crate::symbol::View;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Of which programs and libraries source files are named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SourcesOf {
    /// Those whose debug information was read before.
    Known,
    /// Those and the program itself, whose debug information is read if there is time.
    KnownAndProgram,
}

impl View<'_> {
    /// The ends of paths of source files that begin with `begun`, as they are displayed and may be typed before a line, in order: at
    /// most `limit` of them, and as many as are found in `budget`.
    pub fn source_files(
        &self,
        begun: &str,
        of: SourcesOf,
        limit: usize,
        budget: Duration,
    ) -> BTreeSet<String> {
        let end = Instant::now() + budget;
        let mut found = BTreeSet::new();
        let mut stop = || match Instant::now() < end {
            true => Ok(()),
            false => Err(Stopped::Interrupted),
        };
        let mut work = Work::new(&mut stop, self.symbols.interrupts());
        let last = begun.rsplit('/').next().unwrap_or_default();
        // What is displayed otherwise than it is begins with the same bytes, up to the first of them that is not plain.
        let plain = last.split('\\').next().unwrap_or_default();
        let wants = |name: &[u8]| begun.contains('/') || name.starts_with(plain.as_bytes());
        // A program lies below its libraries.
        for (number, (module, loaded)) in self.programs().enumerate() {
            if found.len() >= limit || work.look().is_err() {
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
            // What was found until the time was up is worth as much.
            _ = match loaded.symbols.lines.known() {
                Some(lines) => lines.each_file(&wants, &mut work, take),
                None if number == 0 && of == SourcesOf::KnownAndProgram => {
                    self.ask_lines(&loaded.symbols, module, &mut work, |lines, _, work| {
                        lines.each_file(&wants, work, take)
                    })
                }
                None => Ok(()),
            };
        }
        found
    }
}
