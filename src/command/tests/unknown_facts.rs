//! Filters on facts that are known of some pages, or of none.

use super::{last, notes, outcome, records};
use crate::process::Target;
use crate::process::fake::{World, region};
use crate::report::WalkSummary;

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
