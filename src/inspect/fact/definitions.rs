//! The definition of each fact: its evidence, its value, and the text that shows a value.

use super::super::filter::require_known;
use super::super::frames::cgroup_path;
use super::super::heap::HeapUse;
use super::super::page::{Evidence, FolioFit, InZone, Page};
use super::answer::{Answer, Definition, Here, Sampled, of_frame, of_frame_or};
use super::{Gap, words};
use crate::kernel::{FrameNumber, Kind, PageFact, PageFlags, Permissions, State, TableBits, VirtualAddress};
use crate::process::Machine;
use crate::report::{EventKind, Fact, Reason};
use std::collections::BTreeSet;

impl PageFact {
    /// Returns the definition of the fact.
    pub(super) const fn definition(self) -> &'static Definition {
        match self {
            PageFact::State => &STATE,
            PageFact::Kind => &KIND,
            PageFact::Flags => &FLAGS,
            PageFact::SoftDirty => &SOFT_DIRTY,
            PageFact::Exclusive => &EXCLUSIVE,
            PageFact::PmdMapped => &PMD_MAPPED,
            PageFact::Huge => &HUGE,
            PageFact::Readable => &READABLE,
            PageFact::Writable => &WRITABLE,
            PageFact::Executable => &EXECUTABLE,
            PageFact::Private => &PRIVATE,
            PageFact::Shared => &SHARED,
            PageFact::MapCount => &MAP_COUNT,
            PageFact::RefCount => &REF_COUNT,
            PageFact::Pinned => &PINNED,
            PageFact::Accessed => &ACCESSED,
            PageFact::TableDirty => &TABLE_DIRTY,
            PageFact::Order => &ORDER,
            PageFact::Folio => &FOLIO,
            PageFact::Node => &NODE,
            PageFact::Zone => &ZONE,
            PageFact::Cgroup => &CGROUP,
            PageFact::Heap => &HEAP,
            PageFact::Region => &REGION,
            PageFact::Pfn => &PFN,
            PageFact::Phys => &PHYS,
            PageFact::Address => &ADDRESS,
        }
    }
}

/// The definition that most others begin with: a number that needs no evidence of frames.
const PLAIN: Definition = Definition {
    need: |_| Evidence::empty(),
    need_of_frames: |_| Evidence::empty(),
    of: |_, _| Answer::NotAsked,
    shown: |value, _| (value.to_string(), None),
    texts: |_, _| Ok(Vec::new()),
    require_texts: |_| Ok(()),
    all_texts: |_| None,
    absent: "no frame",
    most_groups: None,
    sampled: None,
};

const STATE: Definition = Definition {
    of: words::state,
    shown: |value, _| (word_of(State::ALL, value, State::word), None),
    sampled: Some(Sampled { need: Evidence::empty(), change: None, of: Some(|facts| Answer::Is(facts.state as u64)) }),
    ..PLAIN
};

const KIND: Definition = Definition {
    need: |_| Evidence::KINDS,
    of: |page, _| words::kind(page),
    shown: |value, _| (word_of(Kind::ALL, value, Kind::word), None),
    absent: "in no region",
    ..PLAIN
};

const FLAGS: Definition = Definition {
    need: |_| Evidence::FLAGS,
    need_of_frames: |_| Evidence::FLAGS,
    of: |page, _| of_frame_or(page, page.flags.map(|flags| flags.bits()), Gap::Hidden),
    shown: |bits, _| {
        let names = PageFlags::from_bits_retain(bits).names();
        (if names.is_empty() { "none set".to_owned() } else { names.join(",") }, None)
    },
    sampled: Some(Sampled {
        need: Evidence::FLAGS,
        change: Some(EventKind::FlagsChanged),
        of: Some(|facts| facts.flags.map_or(Answer::None, |flags| Answer::Is(flags.0.bits()))),
    }),
    ..PLAIN
};

const SOFT_DIRTY: Definition = Definition {
    need: |_| Evidence::SOFT_DIRTY,
    of: |page, _| match page.state() {
        State::Outside => Answer::None,
        _ => Answer::Is(page.entry.is_soft_dirty().into()),
    },
    absent: "outside of the page map",
    sampled: Some(Sampled { need: Evidence::SOFT_DIRTY, change: Some(EventKind::SoftDirty), of: None }),
    ..PLAIN
};

const EXCLUSIVE: Definition = Definition {
    need: |space| match &space.availability().counts {
        // Bit 56 is wrong inside huge mappings; a map count never is.
        Ok(()) => counts(space.has_exact_counts()),
        // Without map counts, the huge mappings have to be found. The huge zero page is one of them, and belongs to no
        // process.
        Err(_) if space.viewed_regions().iter().any(|viewed| space.may_be_huge(viewed)) => {
            Evidence::HUGE | space.obtainable(Evidence::KINDS)
        }
        Err(_) => Evidence::ENTRIES,
    },
    of: |page, _| of_frame_or(page, page.exclusive().map(u64::from), why_not_exclusive(page)),
    ..PLAIN
};

const PMD_MAPPED: Definition =
    Definition { need: |_| Evidence::HUGE, of: |page, _| mapped_huge(page, page.is_pmd_mapped()), ..PLAIN };

const HUGE: Definition = Definition {
    need: |_| Evidence::HUGE,
    of: |page, _| mapped_huge(page, page.huge.map(|huge| huge || page.kind == Some(Kind::Hugetlb))),
    ..PLAIN
};

const READABLE: Definition = Definition { of: |_, here| right(here, |rights| rights.read), ..OF_REGION };
const WRITABLE: Definition = Definition { of: |_, here| right(here, |rights| rights.write), ..OF_REGION };
const EXECUTABLE: Definition = Definition { of: |_, here| right(here, |rights| rights.execute), ..OF_REGION };
const PRIVATE: Definition = Definition { of: |_, here| sharing(here, |shared| !shared), ..OF_REGION };
const SHARED: Definition = Definition { of: |_, here| sharing(here, |shared| shared), ..OF_REGION };
const OF_REGION: Definition = Definition { absent: "in no region", ..PLAIN };

const MAP_COUNT: Definition = Definition {
    need: |space| counts(space.has_exact_counts()),
    need_of_frames: |machine| counts(machine.has_exact_map_counts() == Some(true)),
    of: |page, _| match page.map_count {
        // An average is not the count of any page.
        Some(_) if page.count_is_average => Answer::Unknown(Gap::Average),
        count => of_frame_or(page, count, Gap::Hidden),
    },
    sampled: Some(Sampled {
        need: Evidence::COUNTS,
        change: Some(EventKind::MapCountChanged),
        of: Some(|facts| match facts.map_count {
            Some(_) if facts.map_count_average => Answer::Unknown(Gap::Average),
            count => count.map_or(Answer::None, Answer::Is),
        }),
    }),
    ..PLAIN
};

const REF_COUNT: Definition = Definition {
    need: |_| Evidence::REFERENCES,
    need_of_frames: |_| Evidence::REFERENCES,
    of: |page, _| match page.holders {
        // The zero page is in no record.
        None if page.is_zero() => Answer::None,
        holders => of_frame(page, holders.map(|holders| holders.references.into())),
    },
    absent: "no record",
    // Large folios may each have another number.
    most_groups: Some(20),
    ..PLAIN
};

const PINNED: Definition = Definition {
    need: |_| Evidence::PINS,
    need_of_frames: |_| Evidence::PINS,
    of: |page, _| match page.holders {
        None if page.is_zero() => Answer::None,
        None => of_frame(page, None),
        Some(holders) => Answer::of(holders.is_pinned(), Answer::Unknown(Gap::Record)),
    },
    absent: "no record",
    ..PLAIN
};

const ACCESSED: Definition = Definition {
    need: |_| Evidence::TABLES,
    of: |page, _| of_frame(page, page.table.map(|bits| bits.contains(TableBits::ACCESSED).into())),
    ..PLAIN
};

const TABLE_DIRTY: Definition = Definition {
    need: |_| Evidence::TABLES,
    of: |page, _| of_frame(page, page.table.map(|bits| bits.contains(TableBits::DIRTY).into())),
    ..PLAIN
};

const ORDER: Definition = Definition {
    need: |_| Evidence::ORDER,
    need_of_frames: |_| Evidence::ORDER.union(Evidence::FLAGS),
    // Free memory is in no folio, and the kernel marks no free block's first frame.
    of: |page, _| match page.flags {
        Some(flags) if flags.contains(PageFlags::BUDDY) => Answer::None,
        _ => of_frame(page, page.order.map(u64::from)),
    },
    absent: "no folio",
    ..PLAIN
};

const FOLIO: Definition = Definition {
    need: |_| Evidence::FOLIOS,
    of: |page, _| match page.folio {
        // The huge zero page is in a large folio that belongs to no process.
        _ if page.is_zero() || page.order == Some(0) => Answer::None,
        fit => of_frame(page, fit.map(|fit| fit as u64)),
    },
    shown: |value, _| (word_of(FolioFit::ALL, value, FolioFit::word), None),
    texts: |value, _| Ok(vec![word_of(FolioFit::ALL, value, FolioFit::word).into_bytes()]),
    all_texts: |_| Some(FolioFit::ALL.iter().map(|fit| fit.word().to_owned()).collect()),
    absent: "no large folio",
    ..PLAIN
};

const NODE: Definition = Definition {
    need: |_| Evidence::ZONES,
    need_of_frames: |_| Evidence::ZONES,
    of: |page, _| of_frame_or(page, page.zone.map(|zone| zone.node.into()), Gap::NoZone),
    all_texts: |machine| {
        let nodes = machine.nodes();
        (!nodes.is_empty()).then(|| nodes.iter().map(u32::to_string).collect())
    },
    sampled: Some(Sampled {
        need: Evidence::ZONES,
        change: None,
        of: Some(|facts| match (facts.node, facts.pfn, facts.state) {
            (Some(node), ..) => Answer::Is(node.into()),
            (None, Some(_), _) => Answer::Unknown(Gap::NoZone),
            (None, None, State::Present) => Answer::Unknown(Gap::Hidden),
            (None, None, _) => Answer::None,
        }),
    }),
    ..PLAIN
};

const ZONE: Definition = Definition {
    need: |_| Evidence::ZONES,
    need_of_frames: |_| Evidence::ZONES,
    of: |page, _| of_frame_or(page, page.zone.map(pack_zone), Gap::NoZone),
    shown: |value, machine| match zone_name(value, machine) {
        Ok((name, true)) => (name, None),
        Ok((name, false)) => (format!("{name} of node {}", value >> 32), None),
        Err(reason) => (String::new(), Some(reason)),
    },
    texts: |value, subject| Ok(vec![zone_name(value, &subject.machine)?.0.into_bytes()]),
    all_texts: |machine| {
        let zones = machine.zones().ok()?;
        let names: BTreeSet<String> = zones.iter().map(|zone| zone.name.to_string()).collect();
        Some(names.into_iter().collect())
    },
    ..PLAIN
};

const CGROUP: Definition = Definition {
    need: |_| Evidence::CGROUPS,
    need_of_frames: |_| Evidence::CGROUPS,
    of: |page, _| of_frame_or(page, page.cgroup, Gap::Hidden),
    shown: |inode, machine| match inode {
        0 => ("charged to none".to_owned(), None),
        inode => match cgroup_path(machine, inode) {
            Ok(path) => (path.to_string(), None),
            Err(reason) => (format!("inode {inode}"), Some(reason)),
        },
    },
    texts: |inode, subject| match inode {
        // Charged to no cgroup: no name matches.
        0 => Ok(Vec::new()),
        inode => Ok(vec![cgroup_path(&subject.machine, inode)?.to_string().into_bytes()]),
    },
    require_texts: |machine| {
        // No cgroup has this inode: the kernel counts them from 1.
        require_known("the paths of memory cgroups", machine.cgroup_path(0))
    },
    ..PLAIN
};

const HEAP: Definition = Definition {
    need: |_| Evidence::HEAP,
    of: |page, _| match page.heap {
        None => Answer::NotAsked,
        Some(HeapUse::Unknown) => Answer::Unknown(Gap::Heap),
        Some(is) => Answer::Is(is as u64),
    },
    shown: |value, _| (word_of(HeapUse::ALL, value, HeapUse::word), None),
    texts: |value, _| Ok(vec![word_of(HeapUse::ALL, value, HeapUse::word).into_bytes()]),
    all_texts: |_| {
        Some(HeapUse::ALL.iter().filter(|is| **is != HeapUse::Unknown).map(|is| is.word().to_owned()).collect())
    },
    ..PLAIN
};

/// The region, as the address at which it starts. Its name is looked up when it is compared.
const REGION: Definition = Definition {
    of: |_, here| match here.region {
        Some(viewed) => Answer::Is(viewed.range().start().get()),
        None => Answer::None,
    },
    texts: |start, subject| {
        let space = subject.space.as_ref();
        let viewed = space.and_then(|space| space.viewed_region(VirtualAddress::new(start))).ok_or(Reason::Changed)?;
        Ok(viewed.region.names().map(|name| name.as_bytes().to_vec()).collect())
    },
    ..OF_REGION
};

const PFN: Definition = Definition {
    need: |_| Evidence::FRAMES.union(Evidence::EACH),
    need_of_frames: |_| Evidence::EACH,
    of: |page, here| of_number(page, here).map_or(Answer::None, Answer::Is),
    ..PLAIN
};

const PHYS: Definition = Definition {
    of: |page, here| {
        let physical = of_number(page, here).and_then(|frame| FrameNumber::new(frame).physical(here.of.size));
        physical.map_or(Answer::None, |physical| Answer::Is(physical.get()))
    },
    ..PFN
};

const ADDRESS: Definition =
    Definition { need: |_| Evidence::EACH, of: |page, _| Answer::Is(page.address.get()), ..PLAIN };

/// Returns the number of the frame. The entry of a frame without a process is only its number, of which 0 is a valid
/// one.
fn of_number(page: &Page, here: &Here<'_>) -> Option<u64> {
    match here.of.space {
        Some(_) => page.frame().map(|frame| frame.get()),
        None => Some(page.entry.frame_bits()),
    }
}

/// Returns whether a huge mapping maps the page. A page without a frame has no answer, and the page map does not show
/// how a device is mapped.
fn mapped_huge(page: &Page, is: Option<bool>) -> Answer {
    let is_present = page.state() == State::Present;
    of_frame_or(page, is.filter(|_| is_present).map(u64::from), Gap::NoScan)
}

/// Returns why it is unknown whether a present page is mapped only there.
pub(in crate::inspect) fn why_not_exclusive(page: &Page) -> Gap {
    match page.huge {
        _ if page.count_is_average => Gap::Average,
        Some(_) => Gap::HugeUncounted,
        None => Gap::Unscanned,
    }
}

/// Returns the evidence for map counts of single pages. If some counts are averages over large folios, the flags show
/// which are not.
const fn counts(are_exact: bool) -> Evidence {
    if are_exact { Evidence::COUNTS } else { Evidence::COUNTS.union(Evidence::FLAGS) }
}

fn right(here: &Here<'_>, is: fn(Permissions) -> bool) -> Answer {
    let Some(viewed) = here.region else {
        return Answer::None;
    };
    Answer::of(viewed.region.permissions.right(is), Answer::Unknown(Gap::Rights))
}

fn sharing(here: &Here<'_>, is: fn(bool) -> bool) -> Answer {
    let Some(viewed) = here.region else {
        return Answer::None;
    };
    Answer::of(viewed.region.permissions.sharing().map(is), Answer::Unknown(Gap::Sharing))
}

fn pack_zone(zone: InZone) -> u64 {
    u64::from(zone.node) << 32 | zone.index as u64 & u64::from(u32::MAX)
}

/// Returns the name of a zone, from its packed place, and whether all zones are of one node.
fn zone_name(packed: u64, machine: &Machine) -> Fact<(String, bool)> {
    let zones = machine.zones()?;
    let index = usize::try_from(packed & u64::from(u32::MAX)).unwrap_or(usize::MAX);
    let name = zones.get(index).map(|zone| zone.name.to_string()).ok_or(Reason::Changed)?;
    Ok((name, zones.iter().all(|other| u64::from(other.node) == packed >> 32)))
}

fn word_of<T: Copy>(all: &[T], value: u64, word: fn(T) -> &'static str) -> String {
    let one = usize::try_from(value).ok().and_then(|index| all.get(index));
    one.map_or("", |&one| word(one)).to_owned()
}
