//! Tests of the search on fake processes, which count the words that are read of them.

mod recorded;

use super::*;
use crate::budget::tests::whole_or_given_up;
use crate::budget::{Budget, OutOfBudget};
use crate::inspect::Error;
use crate::kernel::{Device, FrameNumber, PageFlags, Region, VirtualAddress};
use crate::process::fake::{FILE, PAGE, PRESENT, World, region};
use crate::process::{FrameOwner, FrameRecord, Liveness, ProcessHandle};
use crate::report::Reason;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// The frame that is searched for.
const FRAME: u64 = 0x1000;

/// Returns a mapping of a file, from one of its pages on.
fn file_region(start_page: u64, pages: u64, inode: u64, first_page_of_file: u64) -> Region {
    Region {
        device: Device { major: 8, minor: 1 },
        inode,
        offset: first_page_of_file * PAGE,
        ..region(start_page, pages)
    }
}

/// Returns a process with these regions, which maps frames at pages.
fn process(pid: u32, regions: Vec<Region>, mapped: &[(u64, u64)]) -> World {
    let mut world = World::new(regions);
    world.pid = pid;
    world.space = pid;
    for &(page, frame) in mapped {
        world.entries.insert(page, PRESENT | frame);
    }
    world
}

/// A machine with processes, each a child of process 1 unless `parents` says otherwise.
struct Town {
    flags: PageFlags,
    count: u64,
    /// The mappings in the kernel's records of the frame: processes and pages.
    recorded: Option<Vec<(u32, Vec<u64>)>>,
    /// Whether the records contain the kinds of regions too.
    kinds: bool,
    /// The owner of the frame in the records.
    owner: Option<FrameOwner>,
    processes: Vec<(ProcessHandle, Option<Arc<World>>)>,
}

impl Town {
    fn new(flags: PageFlags, count: u64) -> Self {
        Town { flags, count, recorded: None, kinds: false, owner: None, processes: Vec::new() }
    }

    fn with(mut self, world: World, parent: u32) -> Self {
        let handle = ProcessHandle::of_numbers(world.pid, parent);
        self.processes.push((handle, Some(Arc::new(world))));
        self
    }

    fn with_closed(mut self, pid: u32) -> Self {
        self.processes.push((ProcessHandle::of_numbers(pid, 1), None));
        self
    }

    fn world(&self, pid: u32) -> &World {
        let mut all = self.processes.iter();
        let (_, world) = all.find(|(one, _)| one.pid == pid).expect("a process");
        world.as_ref().expect("an open process")
    }

    /// Returns the number of page-map words read of a process, and of pages that were scanned.
    fn read_of(&self, pid: u32) -> (u64, u64) {
        let world = self.world(pid);
        (world.entries_read.load(Ordering::Relaxed), world.scanned.load(Ordering::Relaxed))
    }

    fn asked(&self, seen: Option<(u32, u64)>) -> FrameQuestion {
        FrameQuestion {
            frame: FrameNumber::new(FRAME),
            seen: seen.map(|(pid, page)| {
                let address = VirtualAddress::new(page * PAGE);
                let regions = self.world(pid).regions.lock().expect("a lock");
                let mut regions = regions.iter();
                KnownMapping { pid, address, region: regions.find(|one| one.range.contains(address)).cloned() }
            }),
            near: seen.map(|(pid, _)| pid),
            scan: true,
            limit: None,
        }
    }

    fn who(&self, seen: Option<(u32, u64)>) -> (Vec<(u32, u64, u64)>, SearchSummary) {
        self.who_until(seen, usize::MAX)
    }

    /// Ends the search when `most` mappings were found.
    fn who_until(&self, seen: Option<(u32, u64)>, most: usize) -> (Vec<(u32, u64, u64)>, SearchSummary) {
        self.who_while(seen, most, &|_| ())
    }

    /// Calls a function whenever a mapping of a process was found.
    fn who_while(
        &self,
        seen: Option<(u32, u64)>,
        most: usize,
        meanwhile: &dyn Fn(u32),
    ) -> (Vec<(u32, u64, u64)>, SearchSummary) {
        self.who_is_told(&self.asked(seen), most, meanwhile)
    }

    fn who_is_told(
        &self,
        question: &FrameQuestion,
        most: usize,
        meanwhile: &dyn Fn(u32),
    ) -> (Vec<(u32, u64, u64)>, SearchSummary) {
        let mut search = who(&self.machine(), question).expect("a search");
        // The process, the first page and the pages of each mapping.
        let mut mappers = Vec::new();
        while mappers.len() < most
            && let Some(event) = search.next().expect("a step")
        {
            match event {
                SearchEvent::Found(mapper) => {
                    let pid = mapper.process.pid;
                    let region = mapper.region.expect("a region");
                    assert!(region.range.contains(mapper.address));
                    mappers.push((pid, mapper.address.get() / PAGE, mapper.pages));
                    meanwhile(pid);
                }
                SearchEvent::Visited { done, total } => assert!(done < total),
            }
        }
        (mappers, search.summary())
    }

    fn machine(&self) -> Arc<Machine> {
        let mut machine = World::new([]);
        machine.average_counts = true;
        machine.flags.insert(FRAME, self.flags.bits());
        machine.counts.insert(FRAME, self.count);
        if let Some(recorded) = &self.recorded {
            let record = FrameRecord { owner: self.owner, ..FrameRecord::default() };
            machine.records = Some(HashMap::from([(FRAME, record)]));
            machine.mappers = Some(HashMap::from([(FRAME, recorded.clone())]));
            machine.mapper_kinds = self.kinds;
        }
        machine.processes = self.processes.clone();
        machine.target().1.machine
    }
}

const CACHED: PageFlags = PageFlags::UPTODATE.union(PageFlags::MMAP);
const ANONYMOUS: PageFlags = CACHED.union(PageFlags::ANON);

#[test]
fn a_page_of_a_file_is_searched_for_where_the_file_is_mapped() {
    let mapped = |page| [(page, FILE | FRAME), (page + 1, FILE | 7)];
    let town = Town::new(CACHED, 3)
        .with(process(10, vec![file_region(100, 4, 9, 4)], &mapped(101)), 1)
        .with(process(11, vec![file_region(200, 4, 8, 4)], &[(201, 3)]), 1)
        .with(process(12, vec![region(300, 4)], &[(301, 4)]), 1)
        .with(process(13, vec![file_region(400, 9, 9, 0), file_region(500, 2, 9, 5)], &[(405, FRAME), (500, FRAME)]), 1)
        .with(process(14, vec![file_region(600, 4, 9, 4)], &mapped(601)), 1);
    let (found, answer) = town.who(Some((10, 101)));
    assert_eq!(found, [(10, 101, 1), (13, 405, 1), (13, 500, 1)]);
    assert_eq!(answer.end_cause, EndCause::Counted);
    assert_eq!((answer.counts.mappings, answer.counts.processes), (3, 2));
    assert_eq!((answer.counts.looked_at, answer.counts.listed), (4, 5));
    // No entry was read of processes that do not map that file, nor of those after the last mapping. Entries of the
    // others are read again at the end.
    assert_eq!(town.read_of(10), (2, 0));
    for other in [11, 12, 14] {
        assert_eq!(town.read_of(other), (0, 0), "{other}");
    }
}

#[test]
fn a_file_may_have_another_number_elsewhere() {
    // Two containers on one overlay show different numbers for one file.
    let town = Town::new(CACHED, 2)
        .with(process(10, vec![file_region(100, 4, 9, 4)], &[(101, FRAME)]), 1)
        .with(process(11, vec![file_region(200, 4, 77, 0), file_region(300, 4, 77, 4)], &[(301, FRAME), (201, 5)]), 1)
        .with(process(12, vec![region(300, 8)], &[(301, 4)]), 1);
    let (found, answer) = town.who(Some((10, 101)));
    assert_eq!(found, [(10, 101, 1), (11, 301, 1)]);
    assert_eq!(answer.end_cause, EndCause::Counted);
    assert_eq!(town.read_of(11), (2, 0));
    assert_eq!(town.read_of(12), (0, 0));
}

#[test]
fn anonymous_memory_is_searched_for_at_the_same_address_of_relatives_first() {
    let here = |pid, frame| process(pid, vec![region(100, 4)], &[(101, frame), (102, 9)]);
    let town = Town::new(ANONYMOUS, 3)
        .with(here(3, 77), 1)
        .with(here(10, FRAME), 1)
        .with(here(20, FRAME), 50)
        .with(here(50, FRAME), 1);
    let (found, answer) = town.who(Some((20, 101)));
    // The process itself and its parent come first, then the others by number.
    assert_eq!(found, [(20, 101, 1), (50, 101, 1), (10, 101, 1)]);
    assert_eq!(answer.end_cause, EndCause::Counted);
    assert_eq!(town.read_of(3), (1, 0));
    for pid in [10, 20, 50] {
        assert_eq!(town.read_of(pid), (2, 0), "{pid}");
    }
}

#[test]
fn very_many_processes_are_reported_in_order_until_all_mappings_are_found() {
    let pids = 10..1010;
    let mut town = Town::new(ANONYMOUS, 300);
    for pid in pids.clone() {
        let frame = if pid < 700 && pid % 2 == 0 { FRAME } else { 5 };
        let world = process(pid, vec![region(100, 4)], &[(101, frame)]);
        town = town.with(world, 1);
    }
    let mut expected: Vec<u32> = pids.filter(|pid| pid % 2 == 0).take(300).collect();
    let (found, answer) = town.who(Some((10, 101)));
    let pids = |found: &[(u32, u64, u64)]| Vec::from_iter(found.iter().map(|one| one.0));
    assert_eq!(pids(&found), expected);
    assert_eq!(answer.end_cause, EndCause::Counted);
    assert_eq!((answer.counts.mappings, answer.counts.looked_at), (300, 599));
    // The search did not wait for processes after the last mapping, and did not open the last of them.
    assert_eq!(town.read_of(1009), (0, 0));
    expected.truncate(200);
    let (found, answer) = town.who_until(Some((10, 101)), 200);
    assert_eq!(pids(&found), expected);
    assert_eq!(answer.end_cause, EndCause::Stopped);
}

#[test]
fn a_mapping_at_an_unlikely_place_is_found_by_the_full_search() {
    let town = Town::new(ANONYMOUS, 3)
        .with(process(10, vec![region(100, 4)], &[(101, FRAME)]), 1)
        .with(process(11, vec![region(100, 4)], &[(101, 5), (102, FRAME)]), 1)
        .with(process(12, vec![region(900, 40)], &[(931, FRAME)]), 1)
        .with(process(13, vec![region(900, 40)], &[(931, FRAME)]), 1);
    let (found, answer) = town.who(Some((10, 101)));
    assert_eq!(found, [(10, 101, 1), (11, 102, 1), (12, 931, 1)]);
    assert_eq!(answer.end_cause, EndCause::Counted);
    assert_eq!(town.read_of(13).1, 0);
}

#[test]
fn an_unreadable_process_leaves_the_search_unfinished() {
    let town = Town::new(ANONYMOUS, 2)
        .with(process(10, vec![region(100, 4)], &[(101, FRAME)]), 1)
        .with_closed(11)
        .with(process(12, vec![region(100, 4)], &[(101, 3)]), 1);
    let (found, answer) = town.who(Some((10, 101)));
    assert_eq!(found, [(10, 101, 1)]);
    assert_eq!(answer.end_cause, EndCause::Searched);
    assert_eq!(answer.uncounted, None);
    assert_eq!((answer.counts.looked_at, answer.counts.unreadable, answer.counts.listed), (2, 1, 3));
    assert!(!answer.has_moved);
}

#[test]
fn a_process_may_exit_during_its_visit() {
    let gone = process(11, vec![file_region(200, 4, 9, 4)], &[(201, FRAME)]);
    *gone.watched.liveness.lock().expect("a lock") = Some(Liveness::Exited(None));
    let town =
        Town::new(CACHED, 2).with(process(10, vec![file_region(100, 4, 9, 4)], &[(101, FRAME)]), 1).with(gone, 1);
    let (found, answer) = town.who(Some((10, 101)));
    assert_eq!(found, [(10, 101, 1)]);
    assert_eq!((answer.counts.gone, answer.counts.unreadable), (1, 0));
    assert_eq!(answer.end_cause, EndCause::Searched);
}

#[test]
fn a_frame_by_number_is_searched_for_until_the_first_mapping_gives_a_clue() {
    let town = Town::new(CACHED, 2)
        .with(process(10, vec![region(50, 9)], &[(51, 5), (52, 6)]), 1)
        .with(process(11, vec![file_region(100, 8, 9, 4)], &[(101, FRAME), (102, 8)]), 1)
        .with(
            process(
                12,
                vec![file_region(200, 8, 7, 0), file_region(300, 8, 9, 4)],
                &[(201, 5), (202, 8), (301, FRAME)],
            ),
            1,
        );
    let (found, answer) = town.who(None);
    assert_eq!(found, [(11, 101, 1), (12, 301, 1)]);
    assert_eq!(answer.end_cause, EndCause::Counted);
    // Memory without a file is not even scanned.
    assert_eq!(town.read_of(10), (0, 0));
    assert_eq!(town.read_of(12), (2, 0));
}

#[test]
fn the_page_of_zeros_has_no_count_and_is_everywhere() {
    let zeros = |pages: std::ops::Range<u64>| pages.map(|page| (page, FRAME)).collect::<Vec<_>>();
    let many = 20_000;
    let town = Town::new(PageFlags::ZERO_PAGE | PageFlags::RESERVED, 0)
        .with(process(10, vec![region(100, 4)], &zeros(101..103)), 1)
        .with(process(11, vec![region(500, many)], &zeros(500..500 + many)), 1);
    let (found, answer) = town.who(Some((10, 101)));
    assert_eq!(found, [(10, 101, 2), (11, 500, many)]);
    assert_eq!(answer.counts.mappings, 2 + many);
    assert_eq!(answer.end_cause, EndCause::Searched);
    assert!(answer.uncounted.is_some());
}

#[test]
fn average_map_counts_do_not_end_a_search() {
    let in_folio = ANONYMOUS | PageFlags::COMPOUND_TAIL | PageFlags::THP;
    let town = Town::new(in_folio, 1)
        .with(process(10, vec![region(100, 4)], &[(101, FRAME)]), 1)
        .with(process(11, vec![region(100, 4)], &[(103, FRAME)]), 1);
    let (found, answer) = town.who(Some((10, 101)));
    assert_eq!(found, [(10, 101, 1), (11, 103, 1)]);
    assert_eq!(answer.end_cause, EndCause::Searched);
    assert!(matches!(answer.uncounted, Some(Reason::NotOnThisKernel(_))));
}

#[test]
fn memory_that_is_shared_whole_counts_once() {
    let mut child = process(11, vec![region(100, 4)], &[(101, FRAME)]);
    child.space = 10;
    let town = Town::new(ANONYMOUS, 2)
        .with(process(10, vec![region(100, 4)], &[(101, FRAME)]), 1)
        .with(child, 10)
        .with(process(12, vec![region(100, 4)], &[(101, FRAME)]), 1);
    let (found, answer) = town.who(Some((10, 101)));
    assert_eq!(found, [(10, 101, 1), (12, 101, 1)]);
    assert_eq!((answer.counts.mappings, answer.counts.same_memory), (2, 1));
    assert_eq!(answer.end_cause, EndCause::Counted);
}

#[test]
fn a_limit_ends_a_search_unless_all_mappings_were_found() {
    let here = |pid| process(pid, vec![region(100, 4)], &[(101, FRAME)]);
    let town = |count| {
        let town = Town::new(ANONYMOUS, count);
        town.with(here(10), 1).with(here(11), 1).with(here(12), 1)
    };
    let limited = |town: &Town, limit| {
        let question = FrameQuestion { limit: Some(limit), ..town.asked(Some((10, 101))) };
        town.who_is_told(&question, usize::MAX, &|_| ())
    };
    let three = town(3);
    let (found, answer) = limited(&three, 2);
    assert_eq!(found, [(10, 101, 1), (11, 101, 1)]);
    assert_eq!(answer.end_cause, EndCause::Limit);
    assert_eq!((answer.counts.mappings, answer.counts.looked_at), (2, 2));
    // The process was not read at all.
    assert_eq!(three.read_of(12), (0, 0));
    let (found, answer) = limited(&three, 3);
    assert_eq!((found.len(), answer.end_cause), (3, EndCause::Counted));
    // The other mappings that the kernel counts could be anywhere.
    let (found, answer) = limited(&town(4), 3);
    assert_eq!((found.len(), answer.end_cause), (3, EndCause::Limit));
    // The limit counts rows, of however many pages: here two in one process.
    let zeros = [(100, FRAME), (101, FRAME), (103, FRAME)];
    let town =
        Town::new(PageFlags::ZERO_PAGE | PageFlags::RESERVED, 0).with(process(10, vec![region(100, 4)], &zeros), 1);
    let (found, answer) = limited(&town, 1);
    assert_eq!(found, [(10, 100, 2)]);
    assert_eq!((answer.counts.mappings, answer.end_cause), (2, EndCause::Limit));
}

#[test]
fn frames_that_no_process_can_map() {
    for flag in [PageFlags::BUDDY, PageFlags::SLAB | ANONYMOUS, PageFlags::PGTABLE] {
        let town = Town::new(flag, 0).with(process(10, vec![region(100, 4)], &[(101, 5)]), 1);
        let (found, answer) = town.who(None);
        assert_eq!(found, []);
        assert!(matches!(answer.end_cause, EndCause::Nobody(_)));
        assert_eq!(town.read_of(10), (0, 0));
    }
}

#[test]
fn a_stopped_search_reports_what_it_has_found() {
    let here = |pid| process(pid, vec![region(100, 4)], &[(101, FRAME)]);
    let town = Town::new(ANONYMOUS, 3).with(here(10), 1).with(here(11), 1).with(here(12), 1);
    let (found, answer) = town.who_until(Some((10, 101)), 2);
    assert_eq!(found, [(10, 101, 1), (11, 101, 1)]);
    assert_eq!(answer.end_cause, EndCause::Stopped);
    assert_eq!((answer.counts.mappings, answer.counts.processes), (2, 2));
}

#[test]
fn a_page_that_has_left_its_frame_is_reported_as_moved() {
    let town = Town::new(ANONYMOUS, 1).with(process(10, vec![region(100, 4)], &[(101, 77)]), 1);
    let (found, answer) = town.who(Some((10, 101)));
    assert_eq!(found, []);
    assert!(answer.has_moved);
}

#[test]
fn a_reported_mapping_that_has_left_is_not_counted() {
    for (shares_memory, instead) in [(false, 12), (true, 10)] {
        let here = |pid, frame| process(pid, vec![region(100, 4)], &[(101, frame)]);
        let mut child = here(9, FRAME);
        let mut parent = here(10, 5);
        if shares_memory {
            // A vforked process has the memory of its parent, which was skipped for it.
            child.space = 10;
            parent = here(10, FRAME);
        }
        let town =
            Town::new(ANONYMOUS, 2).with(child, 10).with(parent, 1).with(here(11, FRAME), 1).with(here(12, FRAME), 1);
        let ends = |found| {
            if found == 11 {
                *town.world(9).watched.liveness.lock().expect("a lock") = Some(Liveness::Exited(None));
            }
        };
        let (found, answer) = town.who_while(Some((9, 101)), usize::MAX, &ends);
        assert_eq!(found, [(9, 101, 1), (11, 101, 1), (instead, 101, 1)]);
        assert_eq!((answer.counts.mappings, answer.counts.left, answer.counts.processes), (2, 1, 2));
        assert_eq!((answer.counts.gone, answer.counts.same_memory), (1, 0));
        assert_eq!(answer.end_cause, EndCause::Counted);
        assert!(answer.has_moved);
    }
}

#[test]
fn pages_that_lie_close_together_are_read_at_once() {
    let merged: Vec<_> = (0..256).map(|nth| (500 + 2 * nth, FRAME)).collect();
    let town = Town::new(ANONYMOUS | PageFlags::KSM, 256).with(process(10, vec![region(500, 512)], &merged), 1);
    let (found, answer) = town.who(Some((10, 500)));
    assert_eq!((found.len(), answer.counts.mappings, answer.counts.left), (256, 256, 0));
    assert_eq!(answer.end_cause, EndCause::Counted);
    let (read, _) = town.read_of(10);
    // Both passes read the entries between the mappings, too.
    assert_eq!(read, 2 * 511);
    // Without PROCMAP_QUERY, the list of regions is not read for each page.
    let lists = town.world(10).watched.region_reads.load(Ordering::Relaxed);
    assert!(lists < 10, "{lists}");
}

#[test]
fn a_search_is_whole_or_given_up_within_a_budget() {
    let regions = |first: u64| (0..100).map(move |nth| file_region(first + 4 * nth, 2, 9, 2 * nth)).collect();
    let of_file = |pid, first, page| process(pid, regions(first), &[(page, FILE | FRAME)]);
    let sparse = (0..100).map(|nth| region(1000 + 4 * nth, 2)).collect();
    let town = Town::new(CACHED, 3).with(of_file(10, 500, 500), 1).with(of_file(11, 900, 900), 1).with_closed(12);
    let files = town.with(World { queries: false, scans: false, ..of_file(13, 100, 100) }, 1);
    let plain = World { queries: false, scans: false, ..process(10, sparse, &[(1004, FRAME)]) };
    let anonymous = Town::new(ANONYMOUS, 2).with(plain, 1);
    for (town, seen) in [(&files, Some((10, 500))), (&files, None), (&anonymous, None)] {
        let given_up = whole_or_given_up(|budget| {
            let mut search = who(&town.machine(), &town.asked(seen)).expect("a search").with_budget(budget);
            let mut found = Vec::new();
            loop {
                match search.next() {
                    Ok(Some(SearchEvent::Found(one))) => {
                        let region = one.region.map(|region| region.range);
                        found.push((one.process.pid, one.address, one.pages, region));
                    }
                    Ok(Some(SearchEvent::Visited { .. })) => {}
                    Ok(None) => break,
                    Err(Error::OutOfBudget(why)) => return Err(why),
                    Err(other) => panic!("{other}"),
                }
            }
            Ok((found, search.summary().counts.mappings))
        });
        assert!(given_up > 20, "{given_up}");
    }
}

#[test]
fn without_a_scan_a_search_in_empty_memory_can_be_stopped() {
    let reserved = World { scans: false, ..process(10, vec![region(500, 1 << 30)], &[]) };
    let town = Town::new(ANONYMOUS, 1).with(reserved, 1);
    let asked = town.asked(None);
    let mut search = who(&town.machine(), &asked).expect("a search").with_budget(Budget::unlimited().at_most(20));
    assert!(matches!(search.next(), Err(Error::OutOfBudget(OutOfBudget::Steps))));
    assert_eq!(search.summary().end_cause, EndCause::Stopped);
    let (read, _) = town.read_of(10);
    assert!(read <= 20 * 8192, "{read}");
}
