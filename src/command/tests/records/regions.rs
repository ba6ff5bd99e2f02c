//! Samples of records about regions, and of `watch`.

use super::pages::*;
use crate::kernel::*;
use crate::report::*;
use std::collections::BTreeMap;

/// A row of `regions`.
pub fn region_row() -> RegionReport {
    RegionReport {
        start: va(0x7ffff7dc0000),
        end: va(0x7ffff7de8000),
        perms: permissions("r"),
        offset: Hex(0),
        device: Device { major: 8, minor: 2 },
        inode: 1311,
        name: Name::from("/usr/lib/x86_64-linux-gnu/libc.so.6"),
        deleted: false,
        size: 160 << 10,
        present: Some(148 << 10),
        swapped: Some(0),
        shared: Some(148 << 10),
        shared_with_pmdb: Some(4 << 10),
        private: Some(0),
        zero: Some(0),
        huge: None,
        map_count_average: false,
        folios: None,
        states: BTreeMap::new(),
        at: None,
        pss: None,
        vm_flags: None,
        protection_key: None,
        smaps: None,
        changed: false,
        why: why(&[("huge", Reason::NotOnThisKernel("Linux 6.7 and later show huge mappings".into()))]),
    }
}

/// `region ADDR full`
pub fn region_full() -> RegionReport {
    RegionReport {
        start: va(0x555555558000),
        end: va(0x555555578000),
        perms: permissions("rw"),
        offset: Hex(0x3000),
        name: Name::from("/usr/bin/demo"),
        deleted: true,
        size: 128 << 10,
        present: Some(12 << 10),
        shared: Some(4 << 10),
        private: Some(8 << 10),
        zero: Some(4 << 10),
        huge: Some(0),
        folios: Some(vec![
            LargeFolios { order: 9, size: 2 << 20, mapped: HowMapped::Pmd, bytes: 4 << 20, partly: 0, unaligned: 0 },
            LargeFolios {
                order: 4,
                size: 64 << 10,
                mapped: HowMapped::Pte,
                bytes: 100 << 10,
                partly: 36 << 10,
                unaligned: 64 << 10,
            },
        ]),
        states: BTreeMap::from([(State::Present, 3), (State::Untouched, 29)]),
        at: Some(RegionPlace {
            address: va(0x555555558010),
            region_offset: 0x10,
            file_offset: Some(Hex(0x3010)),
            section: Some(Name::from(".data")),
            symbol: Some(counter()),
        }),
        pss: Some(10 << 10),
        vm_flags: Some(vec![
            VmFlag { code: "rd".into(), meaning: "readable" },
            VmFlag { code: "wr".into(), meaning: "writable" },
            VmFlag { code: "ac".into(), meaning: "counted against the overcommit limit" },
        ]),
        protection_key: Some(1),
        smaps: Some(Numbers(vec![
            ("Size".into(), 128 << 10),
            ("Rss".into(), 12 << 10),
            ("Shared_Clean".into(), 0),
            ("Locked".into(), 0),
        ])),
        changed: true,
        why: Why::default(),
        ..region_row()
    }
}

pub fn regions_summary() -> RegionsSummary {
    RegionsSummary {
        regions: 23,
        size: 12 << 20,
        present: Some(3 << 20),
        swapped: Some(8192),
        changed: true,
        cut_short: true,
    }
}

pub fn facts(state: State, frame: Option<u64>) -> PageFacts {
    PageFacts {
        state,
        pfn: frame.map(pfn),
        flags: None,
        map_count: None,
        map_count_average: false,
        why: Default::default(),
    }
}

pub fn event() -> Event {
    Event {
        time: 1_700_000_000.125,
        address: Some(va(0x555555558000)),
        pages: 1,
        kind: EventKind::CopiedOnWrite,
        before: Some(facts(State::Present, Some(0x1a4eac))),
        after: Some(facts(State::Present, Some(0x2b3f00))),
        region: Some(Name::from("/usr/bin/demo")),
        symbol: Some(SymbolBrief { offset: 0, ..counter() }),
        last_symbol: Some(SymbolBrief { offset: 4095, ..counter() }),
        detail: None,
    }
}

pub fn flags_event() -> Event {
    let side = |flags, map_count| PageFacts {
        flags: Some(FlagNames(flags)),
        map_count: Some(map_count),
        map_count_average: map_count == 2,
        ..facts(State::Present, Some(0x2b3f00))
    };
    Event {
        kind: EventKind::FlagsChanged,
        before: Some(side(PageFlags::REFERENCED, 2)),
        after: Some(side(PageFlags::DIRTY, 1)),
        symbol: None,
        last_symbol: None,
        ..event()
    }
}

/// To one who may not see swap slots.
pub fn uncertain_event() -> Event {
    let hidden = Reason::not_permitted("hidden: swap slots need CAP_SYS_ADMIN");
    let after = PageFacts { why: why(&[("state", hidden)]), ..facts(State::Swapped, None) };
    Event {
        kind: EventKind::SwappedOut,
        before: Some(facts(State::Present, None)),
        after: Some(after),
        symbol: None,
        last_symbol: None,
        ..event()
    }
}

pub fn exit_event() -> Event {
    Event {
        address: None,
        kind: EventKind::Exited,
        before: None,
        after: None,
        region: None,
        symbol: None,
        last_symbol: None,
        detail: Some("process 812 (demo) has exited".into()),
        ..event()
    }
}

pub fn watch_start() -> WatchStart {
    let blind = |kind, reason: &str| Blind { kind, reason: reason.into() };
    WatchStart {
        pages: 512,
        every: 0.1,
        blind: vec![
            blind(EventKind::Moved, "frames are hidden without CAP_SYS_ADMIN"),
            blind(EventKind::SoftDirty, "this kernel has no soft-dirty tracking"),
            blind(EventKind::CopiedOnWrite, "frames are hidden without CAP_SYS_ADMIN"),
        ],
    }
}

pub fn watch_summary() -> WatchSummary {
    WatchSummary {
        samples: 124,
        missed: 3,
        seconds: 12.34,
        events: Numbers(vec![(EventKind::Came, 3), (EventKind::CopiedOnWrite, 1), (EventKind::RegionGrew, 1)]),
        rows: Numbers(vec![(EventKind::Came, 2), (EventKind::CopiedOnWrite, 1), (EventKind::RegionGrew, 1)]),
        effect: NetEffect { came: 12 << 10, ..NetEffect::default() },
        ended: "interrupted",
    }
}

pub fn event_group() -> EventGroup {
    EventGroup {
        by: "region",
        key: "0x555555559000..0x55555557a000 rw-p [heap]".into(),
        region: Name::from("[heap]"),
        pages: 1_536,
        samples: 12,
        events: Numbers(vec![(EventKind::Came, 1_024), (EventKind::CopiedOnWrite, 512), (EventKind::RegionGrew, 3)]),
        effect: NetEffect { came: 4 << 20, went: 64 << 10, ..NetEffect::default() },
    }
}
