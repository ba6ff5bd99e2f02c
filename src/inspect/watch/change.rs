//! A change between two samples.

use crate::kernel::{AddressRange, Region, State, VirtualAddress};
use crate::report::{EventKind, NetEffect, PageFacts};

/// What happened between two samples.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The kind of change.
    pub kind: EventKind,
    /// Where it starts; `None` for what happened to the whole process.
    pub address: Option<VirtualAddress>,
    /// The number of neighbouring pages; 0 for the whole process. Their frames, before and after, follow each other
    /// too. For a region that went or shrank: its pages that were in memory or in swap.
    pub pages: u64,
    /// What it did to the memory of the process.
    pub effect: NetEffect,
    /// For changes of a region: the addresses that changed.
    pub range: Option<AddressRange>,
    /// The first page as it was.
    pub before: Option<PageFacts>,
    /// The first page as it is.
    pub after: Option<PageFacts>,
    /// The region. For a change of the region: as it was, unless it is new.
    pub region: Option<Region>,
    /// The region as it is, for a change of a region that is still there.
    pub region_after: Option<Region>,
}

impl Change {
    pub(crate) fn of_process(kind: EventKind) -> Change {
        Change {
            kind,
            address: None,
            pages: 0,
            effect: NetEffect::default(),
            range: None,
            before: None,
            after: None,
            region: None,
            region_after: None,
        }
    }
}

/// Where the contents of a page are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Residence {
    Memory,
    Swap,
    Nowhere,
}

impl Residence {
    pub fn of(state: State) -> Residence {
        match state {
            // The frame that a migrating page leaves, or the one that it gets, is its own.
            State::Present | State::Migrating => Residence::Memory,
            State::Swapped => Residence::Swap,
            _ => Residence::Nowhere,
        }
    }
}

/// What it does to the memory of the process that pages of `bytes` bytes change from one state to another.
pub(super) fn effect(before: State, after: State, bytes: u64) -> NetEffect {
    let (before, after) = (Residence::of(before), Residence::of(after));
    let bytes_if = |residence| {
        let is_there = |one| one == residence;
        match (is_there(before), is_there(after)) {
            (false, true) => (bytes, 0),
            (true, false) => (0, bytes),
            _ => (0, 0),
        }
    };
    let ((came, went), (swap_came, swap_went)) = (bytes_if(Residence::Memory), bytes_if(Residence::Swap));
    NetEffect { came, went, swap_came, swap_went }
}
