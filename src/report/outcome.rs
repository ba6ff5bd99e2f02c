//! Whose page it is, and what the next access will do.

/// Whose page it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
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
    #[cfg_attr(feature = "serde", serde(rename = "SIGSEGV"))]
    Segv,
    /// The signal SIGBUS.
    #[cfg_attr(feature = "serde", serde(rename = "SIGBUS"))]
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
