//! What is in the pages of a range, as values; and what the last rows and totals were.

use super::{Kept, all, attached, first, notes, only, run_line};
use crate::command::floor::{Error, Flow};
use crate::command::print::ValueReport;
use crate::kernel::{Device, PageFlags};
use crate::process::fake::{EXCLUSIVE, PAGE, World, region};
use crate::render::{Record, Sink};
use crate::report::{PageGroup, PagesRow, RegionReport, Stopped};
use crate::state::DebugState;
use std::sync::atomic::Ordering;

struct Session(DebugState);

impl Session {
    /// Two regions, 0x1000000 and 0x3000000, of twenty pages and of four. In the first the pages 2 to 9 lie in one run
    /// of frames, 12 to 14 in another, and 16 alone; the second is empty.
    fn new(change: impl FnOnce(&mut World)) -> Session {
        let mut world = World::new([region(0x1000, 20), region(0x3000, 4)]);
        world.maps(0x1002, 8, 0x9000);
        world.maps(0x100c, 3, 0xa000);
        world.maps(0x1010, 1, 0xb000);
        change(&mut world);
        let (_, target) = world.target();
        Session(attached(target))
    }

    fn run(&mut self, line: &str) -> Result<Vec<Box<dyn Record>>, Error> {
        let mut sink = Kept { records: Vec::new(), stop_at: usize::MAX };
        self.run_into(line, &mut sink).map(|_| sink.records)
    }

    fn run_into(&mut self, line: &str, sink: &mut dyn Sink) -> Result<Flow, Error> {
        run_line(&mut self.0, line, None, sink)
    }

    #[track_caller]
    fn value(&mut self, text: &str) -> String {
        let records = self.run(&format!("print {text}")).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        only::<ValueReport>(&records).value.clone()
    }

    #[track_caller]
    fn refusal(&mut self, text: &str) -> String {
        match self.run(&format!("print {text}")) {
            Err(Error::Evaluation(error)) => error.message,
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn pages_are_counted_as_walk_counts_them() {
    let mut session = Session::new(|_| {});
    for (text, value) in [
        ("count(all)", "24"),
        ("count(all where present)", "12"),
        ("count(0x1000000, +20p where not present)", "8"),
        ("bytes(all where present) / 1p", "12"),
        ("runs(all)", "3"),
        ("longest(all)", "0x1002000..0x100a000"),
        ("size(longest(all where address >= 0x100a000)) / 1p", "3"),
        ("first(all where present)", "0x1002000"),
        ("last(all where present)", "0x1010000"),
        ("first(0x1002123..0x1002fff)", "0x1002123"),
        ("last(0x1002123..0x1002fff)", "0x1002123"),
        ("state(0x1002000, +2p)", "present"),
        ("kind(0x1000000, +4p)", "anonymous"),
        ("rss(all) / 1p", "12"),
        ("rss(0x1000000, +4p) / 1p", "2"),
        ("rss(all where address >= 0x100a000) / 1p", "4"),
        ("rss(all where not present)", "0"),
        ("swapped(all)", "0"),
        ("swapped(all where anonymous)", "0"),
        ("state(0x1002001)", "present"),
        ("state(0x1000000)", "untouched"),
        ("state(0x2000000)", "unmapped"),
        ("kind(0x1002000)", "anonymous"),
        ("perms(0x1000000)", "rw-p"),
        // They may stand wherever a value may; within a filter they are worked out once.
        ("count(all where address > first(all where present)) > 11", "1"),
        ("count(all where present) == 12 && state(0x1002000) == \"present\"", "1"),
    ] {
        assert_eq!(session.value(text), value, "{text}");
    }
    for line in ["walk all where present", "walk 0x1000000, +30p where not present", "walk all by state"] {
        let range = line.strip_prefix("walk ").unwrap().replace(" by state", "");
        session.run(line).unwrap();
        let walked = session.value("$_pages");
        assert_eq!(session.value(&format!("count({range})")), walked, "{line}");
        let bytes = session.value("$_bytes");
        assert_eq!(session.value(&format!("bytes({range})")), bytes, "{line}");
    }
}

#[test]
fn a_count_of_a_kind_notes_its_untouched_pages() {
    let mut session = Session::new(|_| {});
    for (text, is_noted) in [
        ("count(all where anonymous)", true),
        ("bytes(0x1000000, +20p where anonymous and address > 0)", true),
        ("count(all where anonymous and present)", false),
        ("count(all where not present)", false),
        ("count(0x1002000, +4p where anonymous)", false),
        ("count(all)", false),
        ("rss(all where anonymous)", false),
    ] {
        let records = session.run(&format!("print {text}")).unwrap();
        let is_of_untouched = notes(&records).iter().any(|note| note.contains("of these are untouched"));
        assert_eq!(is_of_untouched, is_noted, "{text}");
    }
}

#[test]
fn what_cannot_be_known_is_an_error_with_its_reason() {
    let mut session = Session::new(|world| world.hidden = true);
    for text in ["runs(all)", "longest(all)", "count(all where dirty)"] {
        let message = session.refusal(text);
        assert!(message.contains("cannot be determined"), "{text}: {message}");
    }
    // What needs no frame is known all the same.
    assert_eq!(session.value("count(all where present)"), "12");
    let mut session = Session::new(|_| {});
    for (text, says) in [
        ("first(all where swapped)", "matches the filter"),
        ("longest(0x3000000, +4p)", "in the range has a frame"),
        ("state(0x1000000, +4p)", "differ, for example untouched and present"),
        ("state(0x1000000) == \"presnt\"", "\"presnt\" is not a state of a page"),
        ("\"anon\" != kind(0x1002000)", "\"anon\" is not a kind of a page"),
        ("runs(pfn:1..pfn:2)", "not on frames"),
        ("rss(pfn:1..pfn:2)", "not on frames"),
        ("kind(0x2000000)", "in no region"),
        ("name(0x2000000)", "nothing is mapped"),
    ] {
        let message = session.refusal(text);
        assert!(message.contains(says), "{text}: {message}");
    }
}

#[test]
fn shares_are_added_up_as_regions_does() {
    let mut session = Session::new(|world| {
        for page in 0x1002..0x100a {
            *world.entries.entry(page).or_default() &= !EXCLUSIVE;
        }
        world.counts.extend((0x9000..0x9008).map(|frame| (frame, 2)));
    });
    assert_eq!(session.value("uss(all)"), (4 * PAGE).to_string());
    assert_eq!(session.value("pss(all)"), (8 * PAGE).to_string());
}

/// The kernel counts it in none of them, so a part of them that consists of it is no 0.
#[test]
fn sums_with_the_kernels_names_leave_out_the_hugetlb_pool() {
    const HUGE: u64 = 512;
    let mut session = Session::new(|world| {
        let device = Device { major: 0, minor: 40 };
        let mut pool = region(0x8000, HUGE);
        (pool.name, pool.inode, pool.device) = ("/anon_hugepage".into(), 7, device);
        world.regions.get_mut().expect("a lock").push(pool);
        world.hugetlbfs = Some(device);
        world.maps(0x8000, HUGE, 0x20000);
        world.huge.push(0x8000);
        for frame in 0x20000..0x20000 + HUGE {
            world.flags.insert(frame, PageFlags::HUGE.bits());
        }
    });
    for function in ["rss", "pss", "uss"] {
        let message = session.refusal(&format!("{function}(0x8000000, +1p)"));
        assert!(message.contains("leave out the hugetlb pool"), "{message}");
        assert_eq!(session.value(&format!("{function}(all)")), (12 * PAGE).to_string());
    }
    assert_eq!(session.value("huge(all)"), (HUGE * PAGE).to_string());
    let starts = |records: &[Box<dyn Record>]| -> Vec<u64> {
        all(records).map(|row: &RegionReport| row.start.get() >> 12).collect()
    };
    for (line, shown) in [
        ("regions by rss", [0x1000, 0x3000, 0x8000].as_slice()),
        ("regions by huge top 1", &[0x8000]),
        ("regions where rss > 0", &[0x1000]),
        ("regions where pss > 0", &[0x1000]),
    ] {
        let records = session.run(line).unwrap();
        assert_eq!(starts(&records), shown, "{line}");
        let is_said = notes(&records).iter().any(|note| note.contains("hugetlb pool"));
        assert_eq!(is_said, line.contains("where"), "{line}");
    }
}

/// What an empty entry of the pool stands for is unknown without a scan, but it is never in swap.
#[test]
fn the_swapped_bytes_of_the_hugetlb_pool_are_certain() {
    let mut session = Session::new(|world| {
        let device = Device { major: 0, minor: 40 };
        let mut pool = region(0x8000, 512);
        (pool.name, pool.inode, pool.device) = ("/anon_hugepage".into(), 7, device);
        world.regions.get_mut().expect("a lock").push(pool);
        world.hugetlbfs = Some(device);
        world.scans = false;
    });
    let records = session.run("region 0x8000000").unwrap();
    let whys: Vec<_> = all(&records).map(|row: &RegionReport| (row.why.of("swapped"), row.why.of("states"))).collect();
    assert!(matches!(whys[..], [(None, Some(_))]), "{whys:?}");
    let records = session.run("regions").unwrap();
    assert!(notes(&records).iter().all(|note| !note.contains("swapped")));
}

#[test]
fn the_last_address_is_that_of_the_last_row() {
    let mut session = Session::new(|_| {});
    for (line, last) in [
        ("walk all where present", Some("0x1010000")),
        ("walk all where present limit 1", Some("0x1002000")),
        ("walk all where swapped", None),
        ("regions", Some("0x3000000")),
        ("walk all by state", None),
        ("translate 0x1000000, +4p", Some("0x1002000")),
        ("region 0x1000123", Some("0x1000123")),
        ("regions where size > 1T", None),
        ("translate 0x1000123", Some("0x1000123")),
    ] {
        session.run(line).unwrap_or_else(|error| panic!("{line}: {error:?}"));
        let shown = session.run("show convenience").unwrap();
        let kept = all(&shown).find(|value: &&ValueReport| value.name.as_deref() == Some("_"));
        assert_eq!(kept.map(|value| value.value.as_str()), Some(last.unwrap_or("void")), "{line}");
        match last {
            Some(last) => assert_eq!(session.value("$_"), last, "{line}"),
            None => assert!(session.refusal("$_").contains("no value"), "{line}"),
        }
    }
    // What is displayed again and again is not what was asked for last.
    session.run("walk all where present limit 1").unwrap();
    session.run("display regions").unwrap();
    assert_eq!(session.value("$_"), "0x1002000");
    assert!(session.refusal("$_exitcode").contains("not exited"));
}

#[test]
fn the_first_or_the_largest_rows_are_shown_and_the_totals_are_of_all() {
    let mut session = Session::new(|_| {});
    let largest = session.run("walk all top 1").unwrap();
    assert_eq!(first::<PagesRow>(&largest).pages, 8, "{largest:?}");
    assert_eq!(notes(&largest), ["7 more rows (the totals include them)"]);
    assert_eq!(session.value("$_pages"), "24");
    let groups = session.run("walk all by region, state top 2").unwrap();
    let key = |group: &PageGroup| Some((group.pages, group.second_key.clone()?));
    let keys: Vec<_> = all(&groups).filter_map(key).collect();
    assert_eq!(keys, [(12, "present".to_owned()), (8, "untouched".to_owned())]);
    assert_eq!(notes(&groups), ["1 more group with 4 pages (the totals include them)"]);
    for (line, start) in [("regions limit 1", "0x1000000"), ("regions top 1", "0x1000000")] {
        let shown = session.run(line).unwrap();
        assert_eq!(first::<RegionReport>(&shown).start.to_string(), start, "{line}: {shown:?}");
        assert_eq!(notes(&shown), ["1 more region (the totals include them)"], "{line}");
    }
    let shares = session.run("regions by pss").unwrap();
    assert_eq!(first::<RegionReport>(&shares).pss, Some(12 * PAGE), "{shares:?}");
    assert_eq!(session.value("count(0x1000000, +4p where present)"), "2");
    for (line, says) in [
        ("walk all by run, state", "cannot be combined"),
        ("walk all by state, state", "are the same"),
        ("regions by name top 2", "`name` has no size"),
        ("walk all top 0", "must be at least 1"),
    ] {
        let refused = session.run(line).map(|_| ());
        assert!(format!("{refused:?}").contains(says), "{line}: {refused:?}");
    }
}

#[test]
fn ctrl_c_ends_a_count() {
    let mut session = Session::new(|_| {});
    session.0.interrupted.store(true, Ordering::Relaxed);
    let outcome = session.run("print count(all where present)");
    assert!(matches!(outcome, Err(Error::Stopped(Stopped::Interrupted))), "{outcome:?}");
}
