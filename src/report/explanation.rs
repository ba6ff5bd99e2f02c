//! `explain`: what a page is, whose it is, and what the next access will do.

use super::description::{FieldDescription, Form};
use super::field::{Hex, leaf};
use super::record::record;
use super::{Fact, Translation};
use crate::kernel::Name;
use serde::{Serialize, Serializer};

record! {
    /// `explain ADDR`: the facts of `translate`, and what follows from them.
    pub struct Explanation with why {
        /// What is known of the address.
        [flat] page: Translation,
        /// Whose page it is; `null` if no frame is mapped, or if the owner is unknown.
        owner: Option<Owner>,
        /// The file or shared memory that its region maps.
        file: Option<FilePlace>,
        /// Whether the kernel may discard its contents: the program freed it (MADV_FREE) and has not written to it
        /// since.
        discardable: Fact<bool>,
        /// The protection key of its region, where the machine has such keys: 0 is that of all memory without one of
        /// its own.
        [optional] protection_key: Option<u64>,
        /// What happens when the target next reads here.
        next_read: Outcome,
        /// What happens when the target next writes here.
        next_write: Outcome,
    }

    /// A place in a file.
    #[derive(Eq)]
    pub struct FilePlace {
        /// As `maps` names it.
        name: Name,
        /// Offset of the byte asked for.
        offset: Hex,
        /// Whether the file was deleted.
        deleted: bool,
    }
}

leaf! {
    Owner => Form::Text,
    Outcome => Form::Object(OUTCOME),
}

/// The fields of an [`Outcome`].
const OUTCOME: &[FieldDescription] = &[
    FieldDescription::new("effects", "What may happen, one word each.", Form::List(&Form::Text)),
    FieldDescription::new(
        "copies",
        "Whether the process has a private copy afterwards, made by this access.",
        Form::OrNull(&Form::Bool),
    ),
    FieldDescription::new("fault", "How the target notices: a fault, or a signal.", Form::OrNull(&Form::Text)),
];

/// Whose page it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Owner {
    /// Of this mapping alone.
    Sole,
    /// Private, and shared since a fork: the first process to write gets a copy.
    CopyOnWrite,
    /// Private and shared by a fork before; nobody else maps it any more.
    LeftOver,
    /// Merged by the kernel with equal pages.
    Merged,
    /// Of a file or of shared memory, for whoever maps it.
    Object,
    /// The kernel's own: pages of zeros, vdso.
    Kernel,
    /// A device's.
    Device,
}

/// What an access will do. If there are several possible effects, the likeliest comes first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// One of these.
    pub effects: Vec<Effect>,
    /// Whether this access makes a private copy, of the present page or of the one that is faulted in. `None` if that
    /// is unknown.
    pub copies: Option<bool>,
}

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effect {
    /// Nothing beyond the access.
    Nothing,
    /// Zeros are mapped: the shared page of zeros for a read, a page of its own otherwise.
    Zeros,
    /// The same for a whole huge page at once: the huge page of zeros for a read, one of its own otherwise.
    HugeZeros,
    /// A copy of the page is made for this process.
    Copy,
    /// The page is made writable where it is.
    Reuse,
    /// Maps the page of the page cache.
    MapCached,
    /// Reads the file.
    ReadFile,
    /// Brings it back from swap.
    SwapIn,
    /// Brings it back from the memory of a device.
    FromDevice,
    /// A driver or the kernel maps a page of its own.
    Map,
    /// Removes a write protection of userfaultfd that only records writes.
    Unprotect,
    /// Stops the thread until the userfaultfd handler has resolved the fault.
    Notify,
    /// Waits until the page has moved.
    Wait,
    /// The stack grows to here.
    StackGrows,
    /// SIGSEGV: nothing is mapped here.
    NoRegion,
    /// SIGSEGV: the region does not permit it.
    Protection,
    /// SIGSEGV: the thread has no such right for the protection key of the region.
    ProtectionKey,
    /// SIGSEGV: a guard page.
    Guard,
    /// SIGBUS: the file ends before this page.
    PastEnd,
    /// SIGBUS: the kernel has no page for this part of `[vvar]` on this machine.
    NoKernelPage,
    /// SIGBUS: no page is left in the hugetlb pool.
    PoolEmpty,
    /// SIGBUS: poisoned.
    Poisoned,
    /// SIGBUS: the memory is broken.
    Hwpoison,
}

/// The fault or signal of an effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// No page fault.
    None,
    /// A page fault without I/O.
    Minor,
    /// A page fault with I/O.
    Major,
    /// A page fault that a userfaultfd handler resolves, at any time.
    Userfault,
    /// The signal SIGSEGV.
    #[serde(rename = "SIGSEGV")]
    Segv,
    /// The signal SIGBUS.
    #[serde(rename = "SIGBUS")]
    Bus,
}

impl Effect {
    /// Its fault; the most likely one if several are possible.
    pub const fn fault(self) -> Fault {
        match self {
            Effect::Nothing => Fault::None,
            Effect::Zeros
            | Effect::HugeZeros
            | Effect::Copy
            | Effect::Reuse
            | Effect::MapCached
            | Effect::Map
            | Effect::Unprotect
            | Effect::Wait
            | Effect::FromDevice
            | Effect::StackGrows => Fault::Minor,
            Effect::ReadFile | Effect::SwapIn => Fault::Major,
            Effect::Notify => Fault::Userfault,
            Effect::NoRegion | Effect::Protection | Effect::ProtectionKey | Effect::Guard => Fault::Segv,
            Effect::PastEnd | Effect::NoKernelPage | Effect::PoolEmpty | Effect::Poisoned | Effect::Hwpoison => {
                Fault::Bus
            }
        }
    }
}

impl Outcome {
    /// One of `effects`, which make no copy beyond their own.
    pub fn of(effects: &[Effect]) -> Self {
        let copy = |effect: &Effect| *effect == Effect::Copy;
        Outcome {
            effects: effects.to_vec(),
            copies: match (effects.iter().any(copy), effects.iter().all(copy)) {
                (false, _) => Some(false),
                (true, true) => Some(true),
                (true, false) => None,
            },
        }
    }

    /// The fault; `None` if it is unknown.
    pub fn fault(&self) -> Option<Fault> {
        // If the swap cache still has the page, no I/O is needed.
        if self.effects.contains(&Effect::SwapIn) {
            return None;
        }
        let mut faults = self.effects.iter().map(|effect| effect.fault());
        let first = faults.next()?;
        faults.all(|fault| fault == first).then_some(first)
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut outcome = serializer.serialize_struct("Outcome", 3)?;
        outcome.serialize_field("effects", &self.effects)?;
        outcome.serialize_field("copies", &self.copies)?;
        outcome.serialize_field("fault", &self.fault())?;
        outcome.end()
    }
}
