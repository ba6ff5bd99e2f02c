//! Reading the target's memory and page map for an expression, without making the target fault.

use super::error::{Error, Result};
use super::evaluator::Evaluator;
use super::{Integer, Value};
use crate::inspect;
use crate::kernel::{AddressRange, FrameNumber, PageMapEntry, State, VirtualAddress};
use crate::lang::{IntegerType, Place};
use crate::report::Reason;
use crate::target::{Layout, Target};

/// Bytes of the widest thing that is read.
const WIDEST: usize = 8;

impl Evaluator<'_> {
    /// `*A`: the pointer that is stored at an address, in the target's own width and byte order.
    pub(super) fn pointer(&self, address: VirtualAddress, at: Place) -> Result<Value> {
        let layout = self.target(at, "reading memory")?.process.layout();
        let as_type = match layout.pointer_bytes {
            4 => IntegerType::U32,
            _ => IntegerType::U64,
        };
        let word = self.word(address, as_type, at)?;
        Ok(Value::Address(VirtualAddress::new(word)))
    }

    /// `u8(A)` … `i64(A)`
    pub(super) fn integer_at(
        &self,
        address: VirtualAddress,
        as_type: IntegerType,
        at: Place,
    ) -> Result<Value> {
        let word = self.word(address, as_type, at)?;
        let bits = 8 * width(as_type) as u32;
        let value = match is_signed(as_type) {
            true => Integer::from((word as i64) << (64 - bits) >> (64 - bits)),
            false => Integer::from(word),
        };
        Ok(value.into())
    }

    /// So many bytes as a number, the rest zero.
    fn word(&self, address: VirtualAddress, as_type: IntegerType, at: Place) -> Result<u64> {
        let target = self.target(at, "reading memory")?;
        let mut bytes = [0; WIDEST];
        let wanted = bytes.get_mut(..width(as_type)).unwrap_or_default();
        self.read(target, address, wanted, at)?;
        Ok(number(wanted, target.process.layout()))
    }

    /// Memory is read only where the page map says that a frame is mapped, and the answer counts only if the page map
    /// still says so afterwards: a page that went away in between would have been faulted in by the read.
    fn read(
        &self,
        target: &Target,
        address: VirtualAddress,
        into: &mut [u8],
        at: Place,
    ) -> Result<()> {
        let end = address.checked_add(into.len() as u64);
        let range = end
            .and_then(|end| AddressRange::new(address, end))
            .ok_or_else(|| Error::new(at, format!("reading at {address} would pass 2^64-1")))?;
        self.check_resident(target, range, at)?;
        let read = target
            .process
            .memory(address, into)
            .map_err(|cause| Error::target(at, cause))?;
        if read < into.len() {
            let stop = VirtualAddress::new(address.get().saturating_add(read as u64));
            return Err(Error::new(
                at,
                format!("memory at {stop} cannot be read, though a frame is mapped there"),
            ));
        }
        self.check_resident(target, range, at).map_err(|error| {
            Error::new(
                error.at,
                format!(
                    "the page changed while it was being read: {}",
                    error.message
                ),
            )
        })
    }

    /// Every page of `range` has a frame mapped; otherwise an error that names the page and its state.
    fn check_resident(&self, target: &Target, range: AddressRange, at: Place) -> Result<()> {
        let page = target.process.layout().page;
        let first = page.index(range.start());
        for index in first..first + range.pages(page) {
            let start = VirtualAddress::new(index << page.shift());
            let entry = entry_at(target, start, at)?;
            if !entry.is_some_and(PageMapEntry::is_present) {
                let address = start.max(range.start());
                let state = self.state(target, address, at)?;
                return Err(not_resident(address, state, at));
            }
        }
        Ok(())
    }

    /// The frame behind an address: an error that says the state where there is none, and why where it is hidden.
    pub(super) fn frame(&self, address: VirtualAddress, at: Place) -> Result<FrameNumber> {
        let target = self.target(at, "finding the frame of an address")?;
        let Some(entry) = entry_at(target, address, at)?.filter(|entry| entry.is_present()) else {
            let state = self.state(target, address, at)?;
            return Err(no_frame(address, state, at));
        };
        entry.frame().ok_or_else(|| {
            let what = format_args!("the frame of {address} cannot be told");
            Error::unknown(at, what, &Reason::FrameHidden)
        })
    }

    fn state(&self, target: &Target, address: VirtualAddress, at: Place) -> Result<State> {
        inspect::View::at(target, address)
            .and_then(|view| view.detail(address))
            .map(|detail| detail.page.state)
            .map_err(|cause| match cause {
                inspect::Error::Target(cause) => Error::target(at, cause),
                cause => Error::new(at, cause.to_string()),
            })
    }
}

/// One page-map entry; `None` past the end of the page map.
fn entry_at(target: &Target, address: VirtualAddress, at: Place) -> Result<Option<PageMapEntry>> {
    let index = target.process.layout().page.index(address);
    let mut entry = [PageMapEntry::default()];
    let read = target
        .process
        .entries(index, &mut entry)
        .map_err(|cause| Error::target(at, cause))?;
    Ok(entry.first().copied().filter(|_| read > 0))
}

/// Why memory at `address` was not read, from the state that its page was found in just now.
fn not_resident(address: VirtualAddress, state: State, at: Place) -> Error {
    let word = state.word();
    let error = Error::new(
        at,
        format!("memory at {address} was not read: the page is {word}"),
    );
    match state {
        State::Unmapped => error.hint("regions lists what is mapped"),
        State::Swapped | State::Untouched | State::UffdWp | State::Migrating | State::Device => {
            error.hint("reading it would fault it in and so change what is looked at")
        }
        State::Present => came_meanwhile(address, at),
        State::Guard | State::Poisoned | State::Hwpoison | State::PfnMapped | State::Outside => {
            error
        }
    }
}

/// Why there is no frame at `address`.
fn no_frame(address: VirtualAddress, state: State, at: Place) -> Error {
    match state {
        State::Present => came_meanwhile(address, at),
        _ => Error::new(
            at,
            format!("{address} has no page frame: the page is {}", state.word()),
        ),
    }
}

/// It was absent at first, and present when it was asked why.
fn came_meanwhile(address: VirtualAddress, at: Place) -> Error {
    Error::new(
        at,
        format!("the page of {address} came while it was being looked at"),
    )
    .hint("ask again")
}

fn number(bytes: &[u8], layout: Layout) -> u64 {
    let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    match layout.little_endian {
        true => bytes.iter().rev().fold(0, join),
        false => bytes.iter().fold(0, join),
    }
}

const fn width(as_type: IntegerType) -> usize {
    match as_type {
        IntegerType::U8 | IntegerType::I8 => 1,
        IntegerType::U16 | IntegerType::I16 => 2,
        IntegerType::U32 | IntegerType::I32 => 4,
        IntegerType::U64 | IntegerType::I64 => 8,
    }
}

const fn is_signed(as_type: IntegerType) -> bool {
    matches!(
        as_type,
        IntegerType::I8 | IntegerType::I16 | IntegerType::I32 | IntegerType::I64
    )
}
