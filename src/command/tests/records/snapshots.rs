//! Samples of records of `snapshot`, `diff` and `compare`.

use super::pages::va;
use crate::kernel::*;
use crate::report::*;

pub fn snapshot() -> SnapshotRow {
    SnapshotRow {
        name: "before".into(),
        pid: 4242,
        process: Name::from("demo"),
        time: 1_700_000_000.25,
        pages: 1_048_576,
        swapped: 12,
        with: vec!["counts", "content"],
        unread: 3,
        memory: 9 << 20,
    }
}

pub fn diff_summary() -> DiffSummary {
    DiffSummary {
        from: "before".into(),
        to: "now".into(),
        seconds: 12.5,
        changes: Numbers(vec![(EventKind::Came, 512), (EventKind::CopiedOnWrite, 1), (EventKind::RegionGrew, 1)]),
        effect: NetEffect { came: 2 << 20, swap_went: 128 << 10, ..NetEffect::default() },
        cut: 2,
        uncompared: 3,
        blind: vec![Blind { kind: EventKind::SoftDirty, reason: "this kernel does not track soft-dirty pages".into() }],
    }
}

fn facts(state: State, frame: Option<u64>) -> PageFacts {
    PageFacts {
        state,
        pfn: frame.map(FrameNumber::new),
        flags: None,
        map_count: None,
        map_count_average: false,
        why: Why::default(),
    }
}

pub fn change_of_pages() -> ChangeRow {
    ChangeRow {
        change: EventKind::CopiedOnWrite,
        start: va(0x5555_5555_8000),
        end: va(0x5555_5555_9000),
        pages: 1,
        before: Some(facts(State::Present, Some(0x1a4eac))),
        after: Some(facts(State::Present, Some(0x22))),
        region: Some(Name::from("/usr/bin/demo")),
        symbol: Some(SymbolBrief { name: Name::from("counter"), offset: 0, module: Name::from("demo") }),
        last_symbol: Some(SymbolBrief { name: Name::from("table"), offset: 31, module: Name::from("demo") }),
        detail: None,
    }
}

pub fn change_of_region() -> ChangeRow {
    ChangeRow {
        change: EventKind::RegionGrew,
        start: va(0x5555_5557_a000),
        end: va(0x5555_5559_b000),
        pages: 0,
        before: None,
        after: None,
        region: Some(Name::from("[heap]")),
        symbol: None,
        last_symbol: None,
        detail: Some("0x55555557a000..0x55555559b000 of 0x555555559000..0x55555559b000 is new".into()),
    }
}

pub fn change_group() -> ChangeGroup {
    let effect = NetEffect { came: 1 << 20, went: 176 << 10, ..NetEffect::default() };
    ChangeGroup {
        by: "region",
        key: "0x555555559000..0x55555557a000 rw-p [heap]".into(),
        region: Some("[heap]".into()),
        pages: 300,
        regions: 1,
        changes: Numbers(vec![(EventKind::Came, 256), (EventKind::Went, 44), (EventKind::RegionGrew, 1)]),
        effect,
    }
}

pub fn comparison() -> Comparison {
    Comparison {
        other: 4243,
        start: va(0x5555_5555_9000),
        end: va(0x5555_5557_a000),
        region: Name::from("[heap]"),
        counts: SharedCounts {
            shared: 20,
            shared_elsewhere: 0,
            copied: 3,
            only_here: 0,
            only_there: 1,
            about_to_copy: 18,
        },
    }
}

pub fn comparison_group() -> ComparisonGroup {
    ComparisonGroup {
        other: 4243,
        symbol: "cache of demo".into(),
        counts: SharedCounts {
            shared: 1_024,
            shared_elsewhere: 0,
            copied: 3,
            only_here: 0,
            only_there: 0,
            about_to_copy: 1_020,
        },
    }
}

pub fn comparison_summary() -> ComparisonSummary {
    ComparisonSummary {
        pid: 4242,
        other: 4243,
        process: Name::from("demo"),
        page_size: 4096,
        memory: Some(ProcessMemory {
            rss: Some(3 << 20),
            pss: Some(2 << 20),
            uss: Some(160 << 10),
            swapped: Some(0),
            huge: Some(0),
            hidden: false,
        }),
        counts: SharedCounts {
            shared: 700,
            shared_elsewhere: 400,
            copied: 30,
            only_here: 12,
            only_there: 1,
            about_to_copy: 300,
        },
    }
}

pub fn soft_dirty() -> SoftDirtyReport {
    SoftDirtyReport { pid: 4242, process: Name::from("demo"), pages: 1_234, huge: Ok(512), hugetlb: 1_024 }
}

pub fn soft_dirty_cleared() -> SoftDirtyCleared {
    SoftDirtyCleared { pid: 4242, process: Name::from("demo"), seconds: 0.0012, pages: 3 }
}
