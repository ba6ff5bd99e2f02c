//! The files behind regions, with what is asked about them written down.

use super::log::{Log, Read, told};
use crate::kernel::{AddressRange, Name, Region, VirtualAddress};
use crate::target::{Behind, BehindRun, Modules, OpenedFile, ReadAt, Result};
use std::ops::Deref;
use std::sync::Arc;

/// [`Modules`] around others.
pub(super) struct RecordedModules<M> {
    pid: u32,
    modules: M,
    log: Arc<Log>,
}

impl<M> RecordedModules<M> {
    pub(super) fn new(pid: u32, modules: M, log: Arc<Log>) -> Self {
        RecordedModules { pid, modules, log }
    }
}

// What is not handed on would be answered by a default, and otherwise than without the record.
#[deny(clippy::missing_trait_methods)]
impl<M> Modules for RecordedModules<M>
where
    M: Deref<Target = dyn Modules> + Send + Sync,
{
    fn open(&self, region: &Region) -> Result<Box<dyn ReadAt>> {
        self.modules.open(region)
    }

    fn at_path(&self, path: &[u8]) -> Result<Option<Box<dyn ReadAt>>> {
        self.modules.at_path(path)
    }

    fn at_own_path(&self, path: &[u8]) -> Result<Option<Box<dyn ReadAt>>> {
        self.modules.at_own_path(path)
    }

    fn perf_map(&self) -> Result<Option<(Name, OpenedFile)>> {
        self.modules.perf_map()
    }

    fn behind(&self, region: &Region, range: AddressRange) -> Result<Vec<BehindRun>> {
        let answer = self.modules.behind(region, range);
        let (start, end) = (region.range.start().get(), region.range.end().get());
        self.log.add(
            "map_files",
            Read {
                file: format!("/proc/{}/map_files/{start:x}-{end:x}", self.pid),
                offset: region.file_offset(range.start()),
                length: Some(range.len()),
                what: format!("what is behind {range} (SEEK_DATA, cachestat)"),
                found: Some(told(&answer, |runs| runs_told(runs))),
                ..Read::default()
            },
        );
        answer
    }

    fn cached(&self, region: &Region, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        let answer = self.modules.cached(region, address, into);
        let (start, end) = (region.range.start().get(), region.range.end().get());
        self.log.add(
            "map_files",
            Read {
                file: format!("/proc/{}/map_files/{start:x}-{end:x}", self.pid),
                offset: region.file_offset(address),
                length: Some(into.len() as u64),
                what: format!("bytes of the page cache behind {address}"),
                found: Some(told(&answer, |read| format!("{read} bytes"))),
                ..Read::default()
            },
        );
        answer
    }

    fn image(&self, region: &Region) -> Result<Box<dyn ReadAt>> {
        self.modules.image(region)
    }
}

/// The first of the runs, and how many more there are.
fn runs_told(runs: &[BehindRun]) -> String {
    let Some((first, more)) = runs.split_first() else {
        return "nothing".to_owned();
    };
    let behind = told(&first.behind, |behind| word(*behind).to_owned());
    match more.len() {
        0 => behind,
        more => format!("{} {behind}; and {more} more", first.range),
    }
}

fn word(behind: Behind) -> &'static str {
    match behind {
        Behind::PastEnd => "past the end",
        Behind::Hole => "a hole",
        Behind::Contents { cached: true } => "contents, cached",
        Behind::Contents { cached: false } => "contents, not cached",
    }
}
