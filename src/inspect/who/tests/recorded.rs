//! Tests of the search by the kernel's own records.

use super::*;

/// Returns twenty relatives that share a page; the records name those in `recorded`.
fn recorded(count: u64, recorded: impl Iterator<Item = (u32, u64)>) -> Town {
    let relative = |pid: u32| process(pid, vec![region(0x100, 4)], &[(0x101, FRAME)]);
    let town = (10..30).fold(Town::new(ANONYMOUS, count), |town, pid| town.with(relative(pid), 1));
    let stranger = process(40, vec![region(0x100, 4)], &[(0x101, 0x77)]);
    let recorded = recorded.map(|(pid, page)| (pid, vec![page])).collect();
    Town { recorded: Some(recorded), ..town.with(stranger, 1) }
}

fn relatives() -> Vec<(u32, u64, u64)> {
    (10..30).map(|pid| (pid, 0x101, 1)).collect()
}

#[test]
fn records_name_the_processes_to_be_read() {
    // One of the processes has copied the page since, and does not count.
    let all = (10..30).map(|pid| (pid, 0x101)).chain([(40, 0x101)]);
    for seen in [None, Some((10, 0x101))] {
        let town = recorded(20, all.clone());
        let (found, summary) = town.who(seen);
        assert_eq!(found, relatives());
        assert_eq!((summary.end_cause, summary.by_records), (EndCause::Counted, true));
        assert_eq!((summary.counts.listed, summary.counts.processes), (21, 20));
        assert!(!summary.has_moved);
        // No region was listed and nothing was scanned: one entry of each process was read, and once more at the end.
        assert!((10..30).all(|pid| town.read_of(pid) == (2, 0)));
    }
    // The target is first.
    let (found, _) = recorded(20, all).who(Some((15, 0x101)));
    assert_eq!(found.first(), Some(&(15, 0x101, 1)));
}

#[test]
fn of_many_mappings_that_are_alike_one_is_read() {
    let all = || (10..30).map(|pid| (pid, 0x101));
    let kinds = |town: Town| Town { kinds: true, ..town };
    let read = |town: &Town| (10..30).map(|pid| town.read_of(pid).0).sum::<u64>();
    for seen in [None, Some((15, 0x101))] {
        let town = kinds(recorded(20, all()));
        let (mut found, summary) = town.who(seen);
        assert_eq!(found.first().map(|one| one.0), Some(seen.map_or(10, |seen| seen.0)));
        found.sort_unstable();
        assert_eq!(found, relatives());
        assert_eq!((summary.end_cause, summary.by_records), (EndCause::Counted, true));
        assert_eq!((summary.counts.mappings, summary.counts.processes, summary.counts.looked_at), (20, 20, 20));
        assert_eq!((read(&town), summary.has_moved), (1, false));
    }
    // The region is that of the process that was read, with the range of this one.
    let mut town = Town::new(CACHED, 20);
    for pid in 10..30 {
        let first = 0x100 * u64::from(pid);
        let entries = [(first + 1, FILE | FRAME)];
        town = town.with(process(pid, vec![file_region(first, 3, 9, 4)], &entries), 1);
    }
    let recorded_at = (10..30).map(|pid: u32| (pid, vec![0x100 * u64::from(pid) + 1]));
    let town = kinds(Town { recorded: Some(recorded_at.collect()), ..town });
    let mut search = who(&town.machine(), &town.asked(None)).expect("a search");
    let mut found = 0;
    while let Some(SearchEvent::Found(mapper)) = search.next().expect("a step") {
        let pid = mapper.process.pid;
        assert_eq!(mapper.region, Some(file_region(0x100 * u64::from(pid), 3, 9, 4)));
        let target = mapper.target().expect("an open process").expect("a process");
        assert_eq!(target.process.identity(), mapper.process);
        found += 1;
    }
    assert_eq!((found, read(&town)), (20, 1));
}

#[test]
fn records_that_differ_from_proc_or_from_the_count_are_no_answer() {
    let all = || (10..30).map(|pid| (pid, 0x101));
    let sorted = |town: &Town| {
        let (mut found, summary) = town.who(None);
        found.sort_unstable();
        (found, summary)
    };
    // The kernel counts more.
    let (found, summary) = sorted(&Town { kinds: true, ..recorded(21, all()) });
    assert_eq!((found, summary.end_cause, summary.by_records), (relatives(), EndCause::Searched, false));
    // One of the processes has no entry for the frame: each is read.
    let town = Town { kinds: true, ..recorded(20, all().chain([(40, 0x101)])) };
    let (found, summary) = sorted(&town);
    assert_eq!((found, summary.end_cause, summary.by_records), (relatives(), EndCause::Counted, true));
    assert!((10..30).all(|pid| town.read_of(pid) == (2, 0)));
    // A few mappings are read in `/proc` too, and so are those in memory that may have JIT-compiled code.
    let few = |pid: u32| process(pid, vec![region(0x100, 4)], &[(0x101, FRAME)]);
    let town = (10..13).fold(Town::new(ANONYMOUS, 3), |town, pid| town.with(few(pid), 1));
    let pages = (10..13).map(|pid| (pid, vec![0x101]));
    let town = Town { recorded: Some(pages.collect()), kinds: true, ..town };
    assert_eq!(sorted(&town).1.end_cause, EndCause::Counted);
    assert!((10..13).all(|pid| town.read_of(pid) == (2, 0)));
    let code = |pid: u32| {
        let mut jit = region(0x100, 4);
        jit.permissions.execute = true;
        process(pid, vec![jit], &[(0x101, FRAME)])
    };
    let town = (10..30).fold(Town::new(ANONYMOUS, 20), |town, pid| town.with(code(pid), 1));
    let pages = all().map(|(pid, page)| (pid, vec![page]));
    let town = Town { recorded: Some(pages.collect()), kinds: true, ..town };
    assert_eq!(sorted(&town).0, relatives());
    assert!((11..30).all(|pid| town.read_of(pid) == (2, 0)));
}

#[test]
fn what_records_leave_out_is_searched() {
    // The records name too few processes, a page that does not map the frame, and a process that does not exist.
    let some = (10..25).map(|pid| (pid, 0x101)).chain([(25, 0x102), (99, 0x101)]);
    for seen in [None, Some((26, 0x101)), Some((10, 0x101))] {
        let (mut found, summary) = recorded(20, some.clone()).who(seen);
        found.sort_unstable();
        assert_eq!(found, relatives(), "{seen:?}");
        assert_eq!((summary.end_cause, summary.by_records), (EndCause::Counted, false), "{seen:?}");
        assert_eq!(summary.counts.listed, 21, "{seen:?}");
    }
    // The records name no process. The kernel counts the twenty mappings, or one more.
    for count in [20, 21] {
        let (mut found, summary) = recorded(count, std::iter::empty()).who(None);
        found.sort_unstable();
        assert_eq!(found, relatives());
        let ended = if count == 20 { EndCause::Counted } else { EndCause::Searched };
        assert_eq!((summary.end_cause, summary.by_records), (ended, false));
    }
}

#[test]
fn records_are_not_asked_where_the_count_says_nothing() {
    let all = || (10..30).map(|pid| (pid, 0x101));
    let ksm = ANONYMOUS | PageFlags::KSM;
    for (flags, owner) in [
        (ksm, None),
        (ksm, Some(FrameOwner::Merged)),
        (ksm, Some(FrameOwner::Unrecorded)),
        (ksm | PageFlags::ZERO_PAGE, Some(FrameOwner::Anonymous)),
    ] {
        let town = Town { flags, owner, ..recorded(20, all()) };
        let (mut found, summary) = town.who(None);
        found.sort_unstable();
        assert_eq!(found, relatives(), "{flags:?} {owner:?}");
        assert!(!summary.by_records, "{flags:?} {owner:?}");
        assert!((10..30).any(|pid| town.read_of(pid).1 > 0), "{flags:?} {owner:?}");
    }
}

/// Linux 6.12 sets KPF_KSM on every anonymous page.
#[test]
fn the_record_of_a_frame_shows_that_it_is_not_merged() {
    let all = (10..30).map(|pid| (pid, 0x101));
    let flags = ANONYMOUS | PageFlags::KSM;
    let town = Town { flags, owner: Some(FrameOwner::Anonymous), kinds: true, ..recorded(20, all) };
    let (found, summary) = town.who(None);
    assert_eq!(found, relatives());
    assert_eq!((summary.end_cause, summary.by_records), (EndCause::Counted, true));
    assert!((10..30).all(|pid| town.read_of(pid).1 == 0));
    // Without records, the frame may be merged.
    let town = Town { recorded: None, ..town };
    let (mut found, summary) = town.who(None);
    found.sort_unstable();
    assert_eq!((found, summary.by_records), (relatives(), false));
}

#[test]
fn a_search_by_records_stops_at_its_limit_and_budget() {
    let all = (10..30).map(|pid| (pid, 0x101));
    let town = recorded(20, all);
    let question = FrameQuestion { limit: Some(3), ..town.asked(None) };
    let (found, summary) = town.who_is_told(&question, usize::MAX, &|_| ());
    assert_eq!(found, relatives()[..3]);
    assert_eq!((summary.end_cause, summary.by_records), (EndCause::Limit, true));
    let mut search =
        who(&town.machine(), &town.asked(None)).expect("a search").with_budget(Budget::unlimited().at_most(5));
    assert!(matches!(search.next(), Err(Error::OutOfBudget(OutOfBudget::Steps) | Error::Target(_))));
    assert_eq!(search.summary().end_cause, EndCause::Stopped);
}
