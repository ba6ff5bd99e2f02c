//! Filters on facts that are known of some pages, or of none.

use super::{all, last, notes, outcome, records};
use crate::process::Target;
use crate::process::fake::{World, region};
use crate::report::{PagesRow, WalkSummary};

/// A huge page, of whose pages no map count is known, and a small one with a map count of 1.
fn average_counts() -> Target {
    let mut world = World { average_counts: true, ..World::new([region(0x1000, 1), region(0x2000, 512)]) };
    world.maps(0x1000, 1, 0x9000);
    world.maps_huge(0x2000, 0x10000);
    world.target().1
}

#[test]
fn a_fact_that_no_page_shows_is_an_error_that_names_it() {
    let (huge, all) = ("0x2000000..0x2200000", "all");
    for (line, fails) in [
        (format!("walk {huge} where mapcount > 1"), true),
        (format!("walk {huge} where present and not mapcount > 1 by state"), true),
        (format!("map {huge} where mapcount > 1"), true),
        (format!("find/b {huge}, 1 where mapcount > 1"), true),
        (format!("print count({huge} where mapcount > 1)"), true),
        (format!("assert rss({huge} where mapcount > 1) == 0"), true),
        (format!("watch {huge} every 10ms for 30ms until all mapcount > 1"), true),
        (format!("walk {all} where mapcount > 0"), false),
        (format!("walk {huge} where mapcount > 1 by region limit 16"), true),
        (format!("walk {huge} where huge or mapcount > 1"), false),
        (format!("walk {huge} where not present and mapcount > 1"), false),
        (format!("watch {all} every 10ms for 1s until mapcount == 1"), false),
    ] {
        let (records, outcome) = outcome(&line, average_counts(), usize::MAX);
        match outcome {
            Ok(_) => assert!(!fails, "{line}: {records:?}"),
            Err(error) => {
                let message = error.message();
                assert!(fails && message.contains("mapcount") && message.contains("averages"), "{line}: {message}");
            }
        }
    }
    let records = records("walk all where mapcount > 0", average_counts());
    assert!(notes(&records).iter().any(|note| note.starts_with("left out: 512 pages ")), "{records:?}");
    assert_eq!(last::<WalkSummary>(&records).pages, 1);
}

/// What is kept for certain is an answer, wherever it lies. The last row came too late once.
#[test]
fn pages_that_are_kept_for_certain_are_an_answer() {
    let target = || {
        let mut world = World { average_counts: true, ..World::new([region(0x2000, 512), region(0x4000, 2)]) };
        world.maps_huge(0x2000, 0x10000);
        world.target().1
    };
    for line in ["walk all where untouched or mapcount > 1", "walk all where untouched or mapcount > 1 by state"] {
        let (records, outcome) = outcome(line, target(), usize::MAX);
        assert!(outcome.is_ok(), "{line}: {outcome:?}");
        assert_eq!(last::<WalkSummary>(&records).pages, 2, "{line}");
        assert!(notes(&records).iter().any(|note| note.starts_with("left out: 512 pages ")), "{line}: {records:?}");
    }
    let rows = records("walk all where untouched or mapcount > 1", target());
    assert_eq!(all::<PagesRow>(&rows).map(|row| row.pages).sum::<u64>(), 2, "{rows:?}");
}

/// A page of which it is false decides, before the pages of which it is unknown and after them.
#[test]
fn the_order_of_pages_does_not_decide() {
    for small in [0x1000, 0x4000] {
        let mut regions = [region(small, 1), region(0x2000, 512)];
        regions.sort_by_key(|region| region.range.start());
        let mut world = World { average_counts: true, ..World::new(regions) };
        world.maps(small, 1, 0x9000);
        world.maps_huge(0x2000, 0x10000);
        let line = "watch all every 10ms for 20ms until all mapcount > 1";
        let (_, outcome) = outcome(line, world.target().1, usize::MAX);
        let message = outcome.expect_err("false to the end").message();
        assert!(message.starts_with("timed out"), "{small:#x}: {message}");
    }
}
