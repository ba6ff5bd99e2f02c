//! Reading the target's memory and page map for an expression, without making the target fault.

use super::error::{Error, Result};
use super::evaluator::Evaluator;
use super::{Integer, Value};
use crate::inspect::{self, AddressSpace, Evidence, Page, PageDetail, ReadEnd};
use crate::kernel::{AddressRange, FrameNumber, Kind, PageMapEntry, State, VirtualAddress};
use crate::lang::{Function, Span};
use crate::process::Target;
use crate::report::Reason;
use std::fmt;

impl Evaluator<'_> {
    /// Evaluates `*A`: reads the pointer at an address, in the target's width and byte order.
    pub(super) fn pointer(&self, address: VirtualAddress, at: Span) -> Result<Value> {
        let layout = self.target(at, "reading memory")?.process.layout();
        let bytes = self.bytes_at(address, layout.pointer_bytes.into(), at)?;
        Ok(Value::Address(VirtualAddress::new(layout.number(&bytes))))
    }

    /// Reads `count` bytes at `address`.
    pub(super) fn bytes_at(&self, address: VirtualAddress, count: usize, at: Span) -> Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.read(self.target(at, "reading memory")?, address, &mut bytes, at)?;
        Ok(bytes)
    }

    /// Reads memory, only where frames are mapped before and after the read.
    fn read(&self, target: &Target, address: VirtualAddress, into: &mut [u8], at: Span) -> Result<()> {
        let range = AddressRange::of_length(address, into.len() as u64)
            .ok_or_else(|| Error::new(at, format!("a read at {address} would pass 2^64-1")))?;
        let page = target.process.page_size();
        let failed = |cause| Error::inspection(at, "reading memory", cause);
        let absent = inspect::first_absent(target, range).map_err(failed)?;
        if let Some(stop) = absent {
            let state = self.state(target, stop, at)?;
            return Err(not_resident(stop, state, at));
        }
        let read = inspect::read_resident(target, range.start(), into).map_err(failed)?;
        let stop = VirtualAddress::new(address.get().saturating_add(read.bytes as u64));
        let Some(why) = read.ended else {
            return Ok(());
        };
        let not_there = || {
            // The page that is missing, or the requested address if that is in it.
            let stop = page.floor(stop).max(range.start());
            let state = self.state(target, stop, at)?;
            Ok(not_resident(stop, state, at))
        };
        match why {
            ReadEnd::NotResident => Err(not_there()?),
            ReadEnd::NotCaptured => Err(Error::new(at, format!("memory at {stop} is not in this capture"))
                .hint("`capture FILE with memory` keeps memory; without it, write the address itself")),
            ReadEnd::Unreadable => Err(Error::new(at, format!("cannot read {stop}, although a frame is mapped there"))),
            ReadEnd::Changed => {
                let error = not_there()?;
                let message = format!("the page changed during the read: {}", error.message);
                Err(Error::new(error.at, message))
            }
        }
    }

    /// Returns the frame of an address. The error has the state of a page without a frame, or why the frame is hidden.
    pub(super) fn frame(&self, address: VirtualAddress, at: Span) -> Result<FrameNumber> {
        let target = self.target(at, "finding the frame of an address")?;
        let Some(entry) = entry_at(target, address, at)?.filter(|entry| entry.is_present()) else {
            let state = self.state(target, address, at)?;
            return Err(no_frame(address, state, at));
        };
        entry.frame().ok_or_else(|| {
            let what = format!("the frame of {address} is unknown");
            Error::unknown(at, what, &Reason::FrameHidden)
        })
    }

    /// Evaluates `mapcount(A)`, `exclusive(A)` and `pmd_mapped(A)`. A page without a frame has no map count, but
    /// `pmd_mapped` is certainly 0.
    pub(super) fn page_number(&self, function: Function, address: VirtualAddress, at: Span) -> Result<Value> {
        let what = format!("{}() of {address}", function.name());
        let target = self.target(at, &what)?;
        let failed = |cause| Error::inspection(at, &what, cause);
        if let Some(number) = page_number_alone(target, function, address).map_err(failed)? {
            return Ok(Integer::from(number).into());
        }
        let (space, detail) = AddressSpace::detail_at(target, address).map_err(failed)?;
        let number = match (function, &detail.huge) {
            (Function::Mapcount, _) => detail.map_count.clone(),
            (Function::Exclusive, _) => detail.exclusive.clone().map(u64::from),
            (_, Err(Reason::NotApplicable(_))) if detail.region.is_some() => Ok(0),
            (_, huge) => huge.clone().map(|_| u64::from(detail.page.is_pmd_mapped() == Some(true))),
        };
        match number {
            Ok(number) => Ok(Integer::from(number).into()),
            Err(Reason::NotApplicable(_)) => {
                let state = found_state(&space, &detail).map_err(failed)?;
                Err(no_frame(address, state, at))
            }
            Err(reason) => {
                let what = format!("{what} is unknown");
                Err(Error::unknown(at, what, &reason))
            }
        }
    }

    fn state(&self, target: &Target, address: VirtualAddress, at: Span) -> Result<FoundState> {
        AddressSpace::detail_at(target, address)
            .and_then(|(space, detail)| found_state(&space, &detail))
            .map_err(|cause| Error::inspection(at, "the state of a page", cause))
    }
}

/// Evaluates these functions by one sweep of the page; `None` if it does not decide, or the page changes during it. A
/// full [`PageDetail`] needs three times as long, and conditions of breakpoints are evaluated very often.
fn page_number_alone(target: &Target, function: Function, address: VirtualAddress) -> inspect::Result<Option<u64>> {
    let space = AddressSpace::at(target, address)?;
    let size = space.page_size();
    let Some(range) = AddressRange::of_length(size.floor(address), size.bytes()) else {
        return Ok(None);
    };
    let asked = match function {
        Function::PmdMapped => Evidence::HUGE | Evidence::KINDS,
        _ => Evidence::HUGE | Evidence::FLAGS | Evidence::COUNTS,
    };
    let need = space.obtainable(asked) | Evidence::ENTRIES;
    let mut found = None;
    let mut pages = space.pages(&[range], need);
    while let Some(chunk) = pages.next()? {
        found = chunk.pages().next();
    }
    let again = target.process.entry(size.index(address))?;
    let frame = again.and_then(PageMapEntry::frame);
    let is_settled = |page: &Page| page.state() == State::Present && page.entry.frame() == frame;
    Ok(found.filter(is_settled).and_then(|page| match function {
        Function::Mapcount => page.map_count,
        Function::Exclusive => page.exclusive().map(u64::from),
        _ => page.is_pmd_mapped().map(u64::from),
    }))
}

fn found_state(space: &AddressSpace, detail: &PageDetail) -> inspect::Result<FoundState> {
    Ok(FoundState {
        state: detail.page.state(),
        is_certain: detail.page.states.is_certain(),
        is_cached: detail.page.kind == Some(Kind::Cached) && space.read_cached(detail.address, &mut [0])?.is_ok(),
    })
}

/// Returns one page-map entry; `None` past the end of the page map.
fn entry_at(target: &Target, address: VirtualAddress, at: Span) -> Result<Option<PageMapEntry>> {
    let index = target.process.page_size().index(address);
    let entry = target.process.entry(index);
    entry.map_err(|cause| Error::target(at, cause))
}

/// Makes the error why memory at `address` was not read, from the state of its page just now.
fn not_resident(address: VirtualAddress, found: FoundState, at: Span) -> Error {
    let error = Error::new(at, format!("cannot read {address}: its page is {found}"));
    match found.state {
        State::Unmapped => error.hint("`regions` lists the mapped regions"),
        // An expression never reads the page cache, because its value could not show that, as a row of `x` does.
        State::Untouched if found.is_cached => {
            error.hint(format!("the process has no page there; to read the page cache of the file: `x/xg {address}`"))
        }
        State::Swapped | State::Untouched | State::UffdWp | State::Migrating | State::Device => {
            error.hint("a read would fault it in, and so change the process")
        }
        State::Present => came_meanwhile(address, at),
        State::Guard | State::Poisoned | State::Hwpoison | State::PfnMapped | State::Outside => error,
    }
}

/// Makes the error why there is no frame at `address`.
fn no_frame(address: VirtualAddress, found: FoundState, at: Span) -> Error {
    match found.state {
        State::Present => came_meanwhile(address, at),
        _ => Error::new(at, format!("{address} has no page frame: its page is {found}")),
    }
}

/// The state of a page after a failed read.
#[derive(Clone, Copy)]
struct FoundState {
    state: State,
    is_certain: bool,
    /// Whether the page is not mapped, but in the page cache.
    is_cached: bool,
}

impl fmt::Display for FoundState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_certain {
            f.write_str("most likely ")?;
        }
        f.write_str(self.state.phrase())
    }
}

/// Makes the error of a page that was absent at first, and present when its state was read.
fn came_meanwhile(address: VirtualAddress, at: Span) -> Error {
    Error::new(at, format!("the page of {address} was mapped during the read")).hint("run it again")
}
