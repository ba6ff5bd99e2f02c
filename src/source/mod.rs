//! Where bytes come from: one trait, [`Source`], which gives bytes and words as the kernel gave them.
//!
//! A source decodes nothing: `process` does that for all sources alike. The live source reads `/proc`, some settings in
//! `/sys`, and the files behind regions. It never ptraces, and never makes the target fault. One operation changes how
//! the target runs, [`Source::clear_soft_dirty`], and one command calls it.
//!
//! # A new source
//!
//! One that stands around another names that one in [`Source::inner`]. One that stands alone, such as a remote end or a
//! dump of another tool, must have:
//!
//! - [`Source::identity`] and [`Source::origin`]. A dump is a new kind of [`Origin`] if anything above depends on it.
//! - [`Source::maps`], the text that `/proc/PID/maps` would be, and [`Source::words`] for the page map, in the form of
//!   the kernel. A page of which a dump has nothing is a word of zero only if that is what the kernel would say;
//!   otherwise the origin says which entries are missing ([`Origin::require_entries`]).
//! - [`Source::ask`] for [`Probe::PageBytes`], without which pages have 4 KiB, for [`Probe::LittleEndian`], without
//!   which words in memory have the byte order of pmdb's own machine, and for each [`File`] of which it has the text.
//!   It passes each other question to [`Question::unanswered`]. The budget is for what may take long: each read or
//!   query of the kernel is a step.
//!
//! Next come [`Source::bytes`] for memory, [`Source::words`] for the files with a word for each frame, and
//! [`Source::list`] with [`Source::open`] for the other processes of its machine.
//!
//! All else has a default that says so: an error ([`Error::NotAvailable`]), or `None` where that is an answer. Facts
//! that need it are then unknown, with that reason. In `process`, `Target::new` takes any source; `attach` and
//! `of_capture` choose one.

mod asked;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod capture;
mod class;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod core;
mod feature;
mod file;
mod group_file;
mod kernel_records;
pub mod live;
mod origin;
mod partial_image;
mod place;
mod question;
pub mod recorded;
mod sys;

#[cfg(feature = "cli")]
pub(crate) use asked::kept_under_no_key;
pub use asked::{Asked, Backing, FileMappings, GroupText, HeapWords, Notes, Question, Reply, Rights};
pub use class::{About, Class, Kept, Named, Subject};
pub use feature::{Credentials, Feature, Finding, SourceAccess};
pub(crate) use feature::{available, by_trying, unavailable, undetermined};
pub use file::{ConfigPlace, File, KernelSetting};
pub use group_file::{Cgroup, CgroupQuery, GroupFile};
pub use kernel_records::{KernelRecords, RecordsOf};
pub use origin::{CaptureOrigin, CoreOrigin, MissingProcess, Origin, PassedOver};
pub(crate) use partial_image::PartialImage;
pub use place::Place;
pub use question::{
    Answer, BackingContent, BackingRun, Categories, FileLocation, Held, List, Listed, Mapping, OnMount, PageRegion,
    Probe, Query, Scan, covered_pages,
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
/// not an empty answer. Every method may be called by several threads at once.
pub trait Source: Send + Sync {
    /// The source that this one is around, if it is around one. The default of each other method passes on to it: a
    /// wrapper has a method only where it changes, records or refuses an answer.
    fn inner(&self) -> Option<&dyn Source> {
        None
    }

    /// The identity of its process: its PID and its name, which changes when it runs another program. A source of a
    /// machine alone has the PID 0.
    fn identity(&self) -> Identity {
        self.inner().map_or_else(Identity::default, |inner| inner.identity())
    }

    /// Whether the process is still there and still the same. A source that finds that it runs another program
    /// ([`Liveness::Executed`]) has by then opened the files of the new address space.
    fn liveness(&self) -> Result<Liveness> {
        self.inner().map_or(Ok(Liveness::Alive), |inner| inner.liveness())
    }

    /// What it reads: something that runs, a core file, or a capture.
    fn origin(&self) -> Origin {
        self.inner().map_or(Origin::Live(None), |inner| inner.origin())
    }

    /// Answers a question of the closed table (`asked.rs`) with [`Asked::reply`], and others with
    /// [`Question::unanswered`]. `get` asks it with the type of its answer.
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

    /// Reads words of a file from word `first` on. Fewer than asked for: the file ends there, as physical memory does.
    /// A process that is gone is an error, and no end.
    fn words(&self, file: WordFile, first: u64, into: &mut [u64]) -> Result<usize> {
        inner_or_lacks(self.inner(), file.name())?.words(file, first, into)
    }

    /// The kernel's own records, if they can be read here.
    fn kernel_records(&self) -> Result<&dyn KernelRecords> {
        inner_or_lacks(self.inner(), "the kernel's own records")?.kernel_records()
    }

    /// Reads bytes at `address` of memory, or of the page cache behind it, and returns how many there are before the
    /// first that cannot be read. It is an error if that is the first of all.
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
    /// again. The default keeps nothing, which is slower and not wrong.
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
