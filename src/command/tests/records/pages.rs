//! Samples of records about pages, frames and regions.

use crate::kernel::*;
use crate::report::*;
use std::collections::BTreeMap;

pub const HIDDEN: Reason = Reason::FrameHidden;
const NO_FRAME: Reason = Reason::NotApplicable("the page has no frame");
const NOT_SWAPPED: Reason = Reason::NotApplicable("the page is not in swap");

pub fn va(raw: u64) -> VirtualAddress {
    VirtualAddress::new(raw)
}
pub fn pa(raw: u64) -> PhysicalAddress {
    PhysicalAddress::new(raw)
}
pub fn pfn(raw: u64) -> FrameNumber {
    FrameNumber::new(raw)
}
pub fn why(pairs: &[(&'static str, Reason)]) -> Why {
    let mut why = Why::default();
    for (field, reason) in pairs {
        why.note(field, reason);
    }
    why
}

/// Of a private region.
pub fn permissions(letters: &str) -> Permissions {
    Permissions {
        read: letters.contains('r'),
        write: letters.contains('w'),
        execute: letters.contains('x'),
        shared: false,
        sharing_unknown: false,
        is_unknown: false,
    }
}

pub fn libc() -> RegionBrief {
    RegionBrief {
        start: va(0x7ffff7dc0000),
        end: va(0x7ffff7de8000),
        perms: permissions("r"),
        offset: Hex(0),
        name: Name::from("/usr/lib/x86_64-linux-gnu/libc.so.6"),
        deleted: false,
        without_path: false,
    }
}

pub fn data() -> RegionBrief {
    RegionBrief {
        start: va(0x555555558000),
        end: va(0x555555559000),
        perms: permissions("rw"),
        offset: Hex(0x3000),
        name: Name::from("/usr/bin/demo"),
        deleted: false,
        without_path: false,
    }
}

/// A row of 64 KiB of the heap, the last ones of a file.
pub fn timeline_row(row: u64) -> TimelineRow {
    let region = if row < 6 { "[heap]" } else { "/usr/bin/demo" };
    TimelineRow {
        after: None,
        row,
        start: va(0x5555_5555_0000 + row * 0x1_0000),
        end: va(0x5555_5556_0000 + row * 0x1_0000),
        pages: 16,
        bytes: 0x1_0000,
        populated: None,
        region: Some(Name::from(region)),
        symbol: None,
        regions: 1,
    }
}

/// So many rows with such marks, all of them changed or none.
pub fn timeline_sample(rows: &[(u64, Mark, bool)]) -> TimelineSample {
    let cells = rows.iter().map(|&(cells, mark, changed)| TimelineCells {
        cells,
        mark,
        mixed: mark == Mark::Swapped,
        pages: None,
        of: None,
        changed,
    });
    TimelineSample { time: 1_700_000_000.25, cells: cells.collect(), came: Vec::new(), went: Vec::new() }
}

pub fn counter() -> SymbolBrief {
    SymbolBrief { name: Name::from("counter"), offset: 16, module: Name::from("demo") }
}

/// A frame of the kernel's own, charged to a cgroup.
pub fn place() -> FramePlace {
    FramePlace {
        zone: Ok("Normal".into()),
        node: Ok(0),
        iomem: Ok(vec!["System RAM".into(), "Kernel data".into()]),
        cgroup: Ok(5051),
        cgroup_path: Ok(CgroupPath::Path("/user.slice/build\n1".into())),
    }
}

pub fn present() -> Translation {
    Translation {
        pid: 812,
        address: va(0x555555558010),
        physical: Ok(pa(0x1a4eac010)),
        pfn: Ok(pfn(0x1a4eac)),
        pfn_hidden: Ok(false),
        state: Ok(State::Present),
        kind: Some(Kind::PrivateCopy),
        entry: Ok(Hex(0x81000000001a4eac)),
        page_offset: 0x10,
        page_size: 4096,
        soft_dirty: Err(Reason::NotOnThisKernel("this kernel has no soft-dirty tracking".into())),
        exclusive: Ok(true),
        uffd_wp: Ok(false),
        guard: Ok(false),
        file_mapped: Ok(false),
        huge: Ok(false),
        swap: Err(NOT_SWAPPED),
        words: FrameWords {
            flags: Ok(PageFlags::from_bits_retain(0x400005868)),
            map_count: Ok(1),
            map_count_average: false,
            own_mappings: None,
        },
        folio: Ok(FolioReport {
            order: 4,
            bytes: 64 << 10,
            head: pfn(0x1a4ea0),
            index: 12,
            mapped: Some(FolioMapping { mapped_pages: 15, aligned: false }),
        }),
        kernel_record: Some(KernelRecord {
            references: Ok(17),
            holders: Ok(Holders { mappings: 15, page_cache: 0, swap_cache: 0, filesystem: 0, pins: 1, others: 1 }),
            pins: Ok(1),
            pins_at_most: None,
            owner: Ok(RecordedOwner::Anonymous),
            file_page: None,
            free_block: None,
            slab: None,
        }),
        table_entry: Some(TableEntryReport {
            level: 1,
            present: true,
            write: true,
            user: true,
            accessed: true,
            dirty: false,
            no_execute: true,
            protection_key: Some(5),
        }),
        place: place(),
        region: Some(data()),
        symbol: Some(counter()),
        nearest: None,
        why: Why::default(),
    }
}

/// What follows from a translation, as far as the renderer cares.
pub fn explained(page: Translation) -> Explanation {
    let outcome = AccessOutcome::of;
    let copied = |effect, copies| AccessOutcome { copies, ..AccessOutcome::of(&[effect]) };
    let (owner, next_read, next_write) = match (page.state.clone().unwrap_or(State::Unmapped), &page.pfn_hidden) {
        (State::Present, Ok(false)) => (Some(Owner::LeftOver), outcome(&[Effect::Nothing]), outcome(&[Effect::Reuse])),
        (State::Present, Ok(true)) => {
            (Some(Owner::Sole), outcome(&[Effect::Nothing]), outcome(&[Effect::Nothing, Effect::Reuse, Effect::Copy]))
        }
        (State::Swapped, _) => (None, outcome(&[Effect::SwapIn, Effect::OutOfMemory]), copied(Effect::SwapIn, None)),
        _ => (None, outcome(&[Effect::NoRegion]), outcome(&[Effect::StackGrows])),
    };
    let file = page.region.as_ref().map(|region| FilePlace {
        name: region.name.clone(),
        offset: Hex(region.offset.0 + page.page_offset),
        deleted: owner.is_none(),
    });
    let movable = page.kernel_record.is_some().then_some(Movable::Pinned);
    // Without the page, nothing follows.
    let known = page.state.clone().map(|_| ());
    let discardable = known.clone().map(|()| false);
    let (next_read, next_write) = (known.clone().map(|()| next_read), known.map(|()| next_write));
    let (protection_key, region_locked) = (None, None);
    let reclaimable = match page.state {
        Ok(State::Swapped) => Some(0),
        Ok(State::Unmapped) => Some(2048),
        _ => None,
    };
    let group_limit = reclaimable.map(|bytes| ReachedLimit {
        cgroup: "/db.service".into(),
        bytes: 64 << 20,
        left: 0,
        reclaimable: Some(bytes),
    });
    Explanation {
        range_pages: None,
        page,
        owner,
        movable,
        file,
        discardable,
        droppable: false,
        room: None,
        group_limit,
        protection_key,
        region_locked,
        advice: Some(Vec::new()),
        next_read,
        next_write,
    }
}

pub fn hidden() -> Translation {
    Translation {
        physical: Err(HIDDEN),
        pfn: Err(HIDDEN),
        pfn_hidden: Ok(true),
        entry: Ok(Hex(0x8100000000000000)),
        words: FrameWords::unknown(&denied()),
        folio: Err(HIDDEN),
        place: FramePlace::unknown(&HIDDEN),
        ..present()
    }
}

/// Of a core file without a page map.
pub fn of_core() -> Translation {
    let reason = Reason::NotOnThisKernel("states and frames of pages are not in this core".into());
    Translation {
        physical: Err(reason.clone()),
        pfn: Err(reason.clone()),
        pfn_hidden: Err(reason.clone()),
        state: Err(reason.clone()),
        kind: None,
        entry: Err(reason.clone()),
        soft_dirty: Err(reason.clone()),
        exclusive: Err(reason.clone()),
        uffd_wp: Err(reason.clone()),
        guard: Err(reason.clone()),
        file_mapped: Err(reason.clone()),
        huge: Err(reason.clone()),
        swap: Err(reason.clone()),
        words: FrameWords::unknown(&reason),
        folio: Err(reason.clone()),
        place: FramePlace::unknown(&reason),
        kernel_record: None,
        table_entry: None,
        ..present()
    }
}

fn denied() -> Reason {
    Reason::not_permitted("/proc/kpageflags may be read by root alone")
}

/// A page without a frame.
pub fn absent(state: State, kind: Option<Kind>, entry: u64) -> Translation {
    Translation {
        physical: Err(NO_FRAME),
        pfn: Err(NO_FRAME),
        state: Ok(state),
        kind,
        entry: Ok(Hex(entry)),
        exclusive: Err(NO_FRAME),
        huge: Err(NO_FRAME),
        words: FrameWords::unknown(&NO_FRAME),
        folio: Err(NO_FRAME),
        place: FramePlace::unknown(&NO_FRAME),
        symbol: None,
        ..present()
    }
}

pub fn swapped() -> Translation {
    Translation {
        swap: Ok(SwapSlot {
            kind: 0,
            offset: 0x12,
            byte_offset: Some(Hex(0x12 * 4096)),
            device: Ok(Name::from("/dev/zram0")),
        }),
        ..absent(State::Swapped, Some(Kind::Anonymous), 0x4000000000000240)
    }
}

pub fn untouched() -> Translation {
    absent(State::Untouched, Some(Kind::Anonymous), 0)
}

pub fn unmapped() -> Translation {
    Translation {
        address: va(0x7ffff7d00010),
        region: None,
        nearest: Some(NearestRegions { below: Some(data()), above: Some(libc()) }),
        ..absent(State::Unmapped, None, 0)
    }
}

pub fn pages() -> PagesRow {
    let flags = Ok(PageFlags::from_bits_retain(0x86c));
    PagesRow {
        start: va(0x7ffff7dc0000),
        end: va(0x7ffff7de8000),
        pages: 40,
        state: State::Present,
        kind: Ok(Kind::File),
        pfn: Ok(pfn(0x1a4eac)),
        frames: None,
        words: FrameWords { flags, map_count: Ok(31), map_count_average: false, own_mappings: None },
        order: Ok(0),
        huge: Ok(false),
        region: Some(Name::from("/usr/lib/x86_64-linux-gnu/libc.so.6")),
        why: Why::default(),
    }
}

pub fn untouched_pages() -> PagesRow {
    PagesRow {
        start: va(0x555555579000),
        end: va(0x555555679000),
        pages: 256,
        state: State::Untouched,
        kind: Ok(Kind::Anonymous),
        pfn: Err(NO_FRAME),
        frames: None,
        words: FrameWords::unknown(&NO_FRAME),
        order: Err(NO_FRAME),
        huge: Err(NO_FRAME),
        region: Some(Name::from("[heap]")),
        why: Why::default(),
    }
}

pub fn huge_pages() -> PagesRow {
    let flags = Ok(PageFlags::from_bits_retain(0x40040d868));
    PagesRow {
        start: va(0x7fffe0000000),
        end: va(0x7fffe0200000),
        pages: 512,
        kind: Ok(Kind::Anonymous),
        pfn: Ok(pfn(0x13d400)),
        words: FrameWords { flags, map_count: Ok(1), map_count_average: true, own_mappings: None },
        order: Ok(9),
        huge: Ok(true),
        region: Some(Name::default()),
        ..pages()
    }
}

pub fn hidden_pages() -> PagesRow {
    PagesRow {
        start: va(0x7ffff7de8000),
        end: va(0x7ffff7de9000),
        pages: 1,
        pfn: Err(HIDDEN),
        words: FrameWords::unknown(&denied()),
        order: Err(denied()),
        ..pages()
    }
}

pub fn frames() -> Frames {
    Frames {
        pfn: pfn(0x1a4eac),
        physical: Some(pa(0x1a4eac000)),
        frames: 8,
        bytes: Some(8 * 4096),
        words: FrameWords {
            flags: Ok(PageFlags::from_bits_retain(0x86c)),
            map_count: Ok(31),
            map_count_average: true,
            own_mappings: None,
        },
        zone: Ok("Normal".into()),
        node: Ok(0),
    }
}

pub fn frames_summary() -> FramesSummary {
    FramesSummary {
        frames: 12,
        bytes: 12 << 12,
        cut_short: true,
        memory_ends: Some(FrameNumber::new(0x640000)),
        undecided: 0,
        why: Why::default(),
    }
}

pub fn walk_summary() -> WalkSummary {
    WalkSummary {
        pages: 40_512,
        bytes: 40_512 * 4096,
        runs: Some(1201),
        longest_run_bytes: Some(2 << 20),
        longest_run_start: Some(VirtualAddress::new(0x5555_5555_8000)),
        physical: Some(PhysicalExtent {
            lowest: PhysicalAddress::new(0xffff_f000),
            highest: PhysicalAddress::new(0x4_eb04_ffff),
            zeros: 4,
        }),
        changed: true,
        cut_short: true,
        undecided: 0,
        states: EveryState(BTreeMap::from([(State::Present, 40_000), (State::Swapped, 2), (State::Untouched, 510)])),
        why: Why::default(),
    }
}

/// The totals of a walk whose filter keeps no page, and has no answer for some.
pub fn undecided_summary() -> WalkSummary {
    let mut why = Why::default();
    why.note("undecided", &Reason::not_permitted("cannot open /proc/kpagecount: permission denied"));
    WalkSummary {
        pages: 0,
        bytes: 0,
        undecided: 8192,
        states: EveryState(BTreeMap::new()),
        physical: None,
        runs: None,
        longest_run_bytes: None,
        longest_run_start: None,
        changed: false,
        cut_short: false,
        why,
    }
}

pub fn group(key: &str, pages: u64) -> PageGroup {
    PageGroup {
        second_by: None,
        second_key: None,
        by: "state".into(),
        key: key.into(),
        pages,
        bytes: pages * 4096,
        why: Why::default(),
    }
}
