//! The convenience functions, in conditions and elsewhere.

use super::session::compiled;
use crate::standing::is_root;

const STOP: &str = "break turn if $_resident(pool, 16*4096) == 5";

#[test]
fn a_condition_stops_where_a_page_became_resident() {
    let Some(program) = compiled("a_condition_stops", "pages.c") else {
        return;
    };
    program.check(
        &[STOP, "run"],
        &[
            ("print number", "= 5"),
            ("print turns", "= 5"),
            ("tbreak turn if $_streq($_page_state(bytes + 6*page), \"present\")", "Temporary"),
            ("continue", "number=7"),
            ("display $_resident(pool, 16*4096)", ""),
            ("printf \"%d of %d\\n\", $_resident(pool, 8*page), 8", "7 of 8"),
            ("output $_page_state(pool)", "\"present\""),
            ("output $_page_state(pool[9])", "\"untouched\""),
            ("set $state = $_page_state(pool)", ""),
            ("printf \"it is %s\\n\", $state", "it is present"),
            // Nothing of this has called malloc in the program.
            ("pmdb -- print size(heap)", "no region is called `[heap]`"),
            ("print $_swapped(pool, 16*4096)", "= 0"),
            ("print $_resident(0, 4096) + $_resident(0, 1 << 30) + $_swapped(0, 4096)", "= 0"),
            ("print $_resident(pool, 0)", "= 0"),
            ("print $_huge(pool[9])", "= 0"),
            ("print $_resident(*pool)", "an address and a length"),
            ("print $_resident(pool, -1)", "a length of -1 bytes"),
            ("print $_page_state(1.5)", "is not an address"),
            ("next", "1: $_resident(pool, 16*4096) = 8"),
            ("help function _page_state", "printf \"%s\\n\", $state"),
        ],
    );
}

#[test]
fn frames_are_numbers_or_errors_with_the_reason() {
    let Some(program) = compiled("frames_are_numbers", "pages.c") else {
        return;
    };
    let lines = [
        STOP,
        "run",
        "printf \"pfn:0x%lx\\n\", $_pfn(pool[2])",
        "pmdb -- output pfn({pool[2]})",
        "printf \"phys:0x%lx\\n\", $_phys(&pool[2][16])",
        "pmdb -- output phys({&pool[2][16]})",
        "print $_map_count(pool[2])",
        "print $_exclusive(pool[2])",
        "print $_pfn(pool[9])",
        "print $_map_count(pool[9])",
        "print $_map_count(0)",
    ];
    let answers = program.answers(&lines);
    let [pfn, same, physical, too, count, exclusive, none, uncounted, nowhere] = &answers[2..] else {
        panic!("{answers:#?}");
    };
    if is_root() {
        assert_eq!((pfn.trim(), physical.trim()), (same.trim(), too.trim()));
        assert!(count.contains("= 1") && exclusive.contains("= 1"), "{answers:#?}");
    } else {
        assert!(
            [pfn, physical, count].iter().all(|said| said.contains("hidden") || said.contains("root")),
            "{answers:#?}"
        )
    }
    for (said, state) in [(none, "untouched"), (uncounted, "untouched"), (nowhere, "unmapped")] {
        let why = format!("has no page frame: its page is {state}");
        assert!(said.contains(&why), "{answers:#?}");
    }
}
