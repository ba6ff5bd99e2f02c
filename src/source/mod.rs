//! Sources of bytes: one trait, [`Source`], whose answers are the bytes and words of the kernel.
//!
//! A source decodes nothing: `process` does that for all sources alike. The live source reads `/proc`, some settings in
//! `/sys`, and the files that regions map. It never ptraces, and never makes the target fault. Only
//! [`Source::clear_soft_dirty`] changes how the target runs, and only one command calls it.
//!
//! # A new source
//!
//! A source that wraps another returns that one from [`Source::inner`]. A source without another, such as a remote
//! machine or a dump of another tool, must have:
//!
//! - [`Source::identity`] and [`Source::origin`]. A dump is a new kind of [`Origin`] if anything above depends on it.
//! - [`Source::maps`], the text that `/proc/PID/maps` would be, and [`Source::words`] for the page map, in the form of
//!   the kernel. For a page about which a dump has nothing, a word of zero is right only if the kernel would return it;
//!   otherwise the origin reports which entries are missing ([`Origin::require_entries`]).
//! - [`Source::ask`] for [`Probe::PageBytes`], without which pages have 4 KiB, for [`Probe::LittleEndian`], without
//!   which words in memory have the byte order of pmdb's machine, and for each [`File`] whose text it has. It passes
//!   each other question to [`Question::unanswered`]. The budget is for long work: each read or query of the kernel
//!   costs one step.
//!
//! The next useful methods are [`Source::bytes`] for memory, [`Source::words`] for the files with a word for each
//! frame, and [`Source::list`] with [`Source::open`] for the other processes of its machine.
//!
//! All other methods have defaults for missing answers: an error ([`Error::NotAvailable`]), or `None` if that is an
//! answer. Facts that need them are then unknown, for that reason. In `process`, `Target::new` accepts any source;
//! `attach` and `of_capture` choose one.

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

/// Appends as much of a text from `offset` on as `into` has room for, and at least a byte. Returns the number of bytes.
#[cfg(feature = "cli")]
fn add_piece(text: &[u8], offset: u64, into: &mut Vec<u8>) -> usize {
    let rest = text.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default();
    let length = rest.len().min((into.capacity() - into.len()).max(1));
    into.extend_from_slice(rest.get(..length).unwrap_or_default());
    length
}

/// The bytes of one process, of its machine, and of the files that its regions map; or of a machine alone.
///
/// Each answer is that of the kernel. If a source lacks something, that is an error ([`Error::NotAvailable`]), and not
/// an empty answer. Several threads may call any method at once.
pub trait Source: Send + Sync {
    /// Returns the source that this one wraps, if there is one. The default of each other method calls that source: a
    /// wrapper has only the methods that change, record or refuse an answer.
    fn inner(&self) -> Option<&dyn Source> {
        None
    }

    /// Returns the identity of the process: its PID and its name, which changes with exec. A source of a machine alone
    /// has the PID 0.
    fn identity(&self) -> Identity {
        self.inner().map_or_else(Identity::default, |inner| inner.identity())
    }

    /// Returns whether the process still exists, and runs the same program. A source that finds another program
    /// ([`Liveness::Executed`]) has already opened the files of the new address space.
    fn liveness(&self) -> Result<Liveness> {
        self.inner().map_or(Ok(Liveness::Alive), |inner| inner.liveness())
    }

    /// Returns the kind of source: a running process, a core file, or a capture.
    fn origin(&self) -> Origin {
        self.inner().map_or(Origin::Live(None), |inner| inner.origin())
    }

    /// Answers a question of the closed table (`asked.rs`) with [`Asked::reply`], or with [`Question::unanswered`].
    /// `get` calls it and returns the type of the answer.
    fn ask(&self, question: Question<'_>, budget: &mut Budget) -> Result<Reply> {
        match self.inner() {
            Some(inner) => inner.ask(question, budget),
            None => question.unanswered(),
        }
    }

    /// Appends bytes of `/proc/PID/maps` from `offset` on, as many as one read returns and as `into` has room for.
    /// Returns their number; 0 is the end of the file.
    fn maps(&self, offset: u64, into: &mut Vec<u8>) -> Result<usize> {
        inner_or_lacks(self.inner(), "the regions of a process")?.maps(offset, into)
    }

    /// Reads words of a file from word `first` on. Returns how many were read: fewer than `into` holds at the end of
    /// the file, as at the end of physical memory. A process that is gone is an error, and not the end.
    fn words(&self, file: WordFile, first: u64, into: &mut [u64]) -> Result<usize> {
        inner_or_lacks(self.inner(), file.name())?.words(file, first, into)
    }

    /// Returns the kernel's records, if they can be read here.
    fn kernel_records(&self) -> Result<&dyn KernelRecords> {
        inner_or_lacks(self.inner(), "the kernel's own records")?.kernel_records()
    }

    /// Reads bytes at `address` of memory, or of the page cache, and returns how many precede the first that cannot be
    /// read. Fails if that is the very first.
    fn bytes(&self, place: Place<'_>, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        inner_or_lacks(self.inner(), &place.what())?.bytes(place, address, into)
    }

    /// Clears the soft-dirty bits of the process (`/proc/PID/clear_refs`). This changes how it runs, and is the only
    /// method that writes.
    fn clear_soft_dirty(&self) -> Result<()> {
        inner_or_lacks(self.inner(), "soft-dirty bits that can be cleared")?.clear_soft_dirty()
    }

    /// Scans the page map (PAGEMAP_SCAN, Linux 6.7). Returns the number of ranges in `into`, and the address where the
    /// scan stopped: its start if no scan reaches it.
    fn scan(&self, question: Scan, into: &mut [PageRegion]) -> Result<(usize, u64)> {
        inner_or_lacks(self.inner(), "a scan of the page map")?.scan(question, into)
    }

    /// Lists processes of the machine, in no order, or other objects that `which` selects.
    fn list(&self, which: List) -> Result<Vec<Listed>> {
        inner_or_lacks(self.inner(), "a list of processes")?.list(which)
    }

    /// Opens a source of another process of the same machine. Fails if its page map may not be opened.
    fn open(&self, pid: u32, held: &Held) -> Result<Arc<dyn Source>> {
        inner_or_lacks(self.inner(), &format!("process {pid}"))?.open(pid, held)
    }

    /// Opens a file that the process uses; `None` if there is none.
    fn file(&self, place: FileLocation<'_>) -> Result<Option<Box<dyn ReadAt>>> {
        self.inner().map_or(Ok(None), |inner| inner.file(place))
    }

    /// Keeps the file that `region` maps open while the result lives, so that queries of it do not open it again. The
    /// default keeps nothing, which is slower and not wrong.
    fn hold(&self, region: &Region) -> Held {
        self.inner().map_or_else(Held::default, |inner| inner.hold(region))
    }
}

impl dyn Source + '_ {
    /// Returns the answer to a question.
    pub(crate) fn get<'a, Q: Asked<'a>>(&self, asked: Q, budget: &mut Budget) -> Result<Q::Answer> {
        let reply = self.ask(asked.into(), budget)?;
        Q::answer(reply).ok_or_else(|| Error::not_available("this target answers another question"))
    }

    /// Returns the answer to a question. Only Ctrl-C interrupts it.
    pub(crate) fn fetch<'a, Q: Asked<'a>>(&self, asked: Q) -> Result<Q::Answer> {
        self.get(asked, &mut until_interrupted())
    }

    /// Returns the first word of a probe's answer; `None` if it fails.
    pub(crate) fn word(&self, probe: Probe<'_>) -> Option<u64> {
        self.fetch(probe).ok()?.first().copied()
    }

    /// Returns the page size of the machine.
    pub(crate) fn page_size(&self) -> PageSize {
        let bytes = self.word(Probe::PageBytes);
        bytes.and_then(PageSize::from_bytes).unwrap_or(PageSize::FOUR_KIB)
    }
}

fn inner_or_lacks<'s>(inner: Option<&'s dyn Source>, what: &str) -> Result<&'s dyn Source> {
    inner.ok_or_else(|| Error::not_available(format!("this target does not hold {what}")))
}
