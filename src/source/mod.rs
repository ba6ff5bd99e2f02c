//! Where bytes come from: one trait, [`Source`], which gives bytes and words as the kernel gave them.
//!
//! A source decodes nothing: `process` does that for all sources alike. The live source reads `/proc`, some settings in
//! `/sys`, and the files behind regions. It never ptraces, and never makes the target fault. One operation changes how
//! the target runs, [`Source::clear_soft_dirty`], and one command calls it.

mod asked;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod capture;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod core;
mod feature;
mod kernel_records;
pub mod live;
mod origin;
mod partial_image;
mod place;
mod question;
pub mod recorded;
mod sys;

pub use asked::{Asked, Backing, Cgroup, CgroupQuery, FileMappings, GroupText, Question, Reply, Rights};
pub use feature::{Credentials, Feature, Finding, SourceAccess};
pub(crate) use feature::{available, by_trying, unavailable, undetermined};
pub use kernel_records::{KernelRecords, RecordsOf};
pub use origin::{CaptureOrigin, CoreOrigin, MissingProcess, Origin, PassedOver};
pub(crate) use partial_image::PartialImage;
pub use place::Place;
pub use question::{
    Answer, BackingContent, BackingRun, Categories, ConfigPlace, File, FileLocation, Held, KernelSetting, List, Listed,
    Mapping, PageRegion, Probe, Query, Scan, covered_pages,
};
pub use sys::{Word, as_words};

use crate::access::{Error, Identity, Liveness, ReadAt, Result};
use crate::budget::{Budget, until_interrupted};
use crate::kernel::{PageSize, Region, VirtualAddress, WordFile};
use std::sync::Arc;

/// Adds the piece of a text from `offset` on that there is room for, at least a byte of it. Returns its length.
#[cfg(feature = "cli")]
fn add_piece(text: &[u8], offset: u64, into: &mut Vec<u8>) -> usize {
    let rest = text.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default();
    let length = rest.len().min((into.capacity() - into.len()).max(1));
    into.extend_from_slice(rest.get(..length).unwrap_or_default());
    length
}

/// Gives the bytes of one process, of the machine that it runs on, and of the files behind its regions; or of a machine
/// alone.
///
/// Each answer is what the kernel gave. If a source lacks something, that is an error ([`Error::NotAvailable`]), and
/// not an empty answer.
pub trait Source: Send + Sync {
    /// The source that this one is around, if it is around one. That answers whatever is not answered here: a wrapper
    /// has a method only where it changes, records or refuses an answer.
    fn inner(&self) -> Option<&dyn Source> {
        None
    }

    /// The identity of its process. The name changes when the process runs another program. A source of a machine alone
    /// has the number 0.
    fn identity(&self) -> Identity {
        self.inner().map_or_else(Identity::default, |inner| inner.identity())
    }

    /// Whether the process is still there and still the same. After [`Liveness::Executed`] its files have been
    /// reopened.
    fn liveness(&self) -> Result<Liveness> {
        self.inner().map_or(Ok(Liveness::Alive), |inner| inner.liveness())
    }

    /// What it reads: something that runs, a core file, or a capture.
    fn origin(&self) -> Origin {
        self.inner().map_or(Origin::Live(None), |inner| inner.origin())
    }

    /// Answers a question of the closed table. `get` asks it with the type of its answer.
    fn ask(&self, question: Question<'_>, budget: &mut Budget) -> Result<Reply> {
        match self.inner() {
            Some(inner) => inner.ask(question, budget),
            None => question.unanswered(),
        }
    }

    /// Appends bytes of `/proc/PID/maps` from `offset` on, as many as one read gives and as `into` has room for. 0: the
    /// file ends there.
    fn maps(&self, offset: u64, into: &mut Vec<u8>) -> Result<usize> {
        inner_or_lacks(self.inner(), "the regions of a process")?.maps(offset, into)
    }

    /// Reads words from word `first` on. Fewer than asked for: the file ends there. A process that is gone is an error,
    /// not an end.
    fn words(&self, file: WordFile, first: u64, into: &mut [u64]) -> Result<usize> {
        inner_or_lacks(self.inner(), file.name())?.words(file, first, into)
    }

    /// The kernel's own records, if they can be read here.
    fn kernel_records(&self) -> Result<&dyn KernelRecords> {
        inner_or_lacks(self.inner(), "the kernel's own records")?.kernel_records()
    }

    /// Reads bytes from the place of `address`, and returns how many there are before the first that cannot be read.
    fn bytes(&self, place: Place<'_>, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        inner_or_lacks(self.inner(), &place.what())?.bytes(place, address, into)
    }

    /// Clears the soft-dirty bits of the process (`/proc/PID/clear_refs`). This changes how it runs, and is the one
    /// operation that writes.
    fn clear_soft_dirty(&self) -> Result<()> {
        inner_or_lacks(self.inner(), "soft-dirty bits that can be cleared")?.clear_soft_dirty()
    }

    /// PAGEMAP_SCAN (Linux 6.7). Returns the number of stretches in `into`, and the address where the scan stopped: its
    /// start where no scan reaches.
    fn scan(&self, question: Scan, into: &mut [PageRegion]) -> Result<(usize, u64)> {
        inner_or_lacks(self.inner(), "a scan of the page map")?.scan(question, into)
    }

    /// The processes of the machine, in no order.
    fn list(&self, which: List) -> Result<Vec<Listed>> {
        inner_or_lacks(self.inner(), "a list of processes")?.list(which)
    }

    /// A source of another process of the same machine. Refused if its page map may not be opened.
    fn open(&self, pid: u32, held: &Held) -> Result<Arc<dyn Source>> {
        inner_or_lacks(self.inner(), &format!("process {pid}"))?.open(pid, held)
    }

    /// Opens a file that the process uses; `None` if nothing is there.
    fn file(&self, place: FileLocation<'_>) -> Result<Option<Box<dyn ReadAt>>> {
        self.inner().map_or(Ok(None), |inner| inner.file(place))
    }

    /// Keeps the file behind `region` open while the result lives: what is asked about it meanwhile does not open it
    /// again.
    fn hold(&self, region: &Region) -> Held {
        self.inner().map_or_else(Held::default, |inner| inner.hold(region))
    }
}

impl dyn Source + '_ {
    /// The answer to a question.
    pub(crate) fn get<'a, Q: Asked<'a>>(&self, asked: Q, budget: &mut Budget) -> Result<Q::Answer> {
        let reply = self.ask(asked.into(), budget)?;
        Q::answer(reply).ok_or_else(|| Error::not_available("this target answers another question"))
    }

    /// The answer to a question. Only Ctrl-C ends it.
    pub(crate) fn fetch<'a, Q: Asked<'a>>(&self, asked: Q) -> Result<Q::Answer> {
        self.get(asked, &mut until_interrupted())
    }

    /// The first word that a probe gives; `None` if it fails.
    pub(crate) fn word(&self, probe: Probe<'_>) -> Option<u64> {
        self.fetch(probe).ok()?.first().copied()
    }

    /// The size of the pages of the machine.
    pub(crate) fn page_size(&self) -> PageSize {
        let bytes = self.word(Probe::PageBytes);
        bytes.and_then(PageSize::from_bytes).unwrap_or(PageSize::FOUR_KIB)
    }
}

fn inner_or_lacks<'s>(inner: Option<&'s dyn Source>, what: &str) -> Result<&'s dyn Source> {
    inner.ok_or_else(|| Error::not_available(format!("this target does not hold {what}")))
}
