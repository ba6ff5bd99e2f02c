//! Where bytes stand in memory, on a target made of tables.

use super::*;
use crate::process::fake::{PAGE, World, region};

#[test]
fn find_looks_through_what_is_resident_and_counts_the_rest() {
    let fake = heap();
    let watched = fake.watched.clone();
    let mut session = Session::on(fake);
    let rest = "; not resident, not searched: 1 swapped page, 1 guard page, 3 untouched pages";
    for (line, said) in [
        // Across two pages.
        ("find [heap], hex\"fe ff 01\"", format!("0x500ffe  [heap] rw-p\n1 match in 12 KiB{rest}")),
        ("find [heap], \"cross\"", format!("0x505ffa  [heap] rw-p\n1 match in 12 KiB{rest}")),
        ("find/h 0x500000, +256, 0x0302", "0x500002  [heap] rw-p\n1 match in 256 B".to_owned()),
        ("find/b 0x500010..0x500020, 0x10, 0x11", "0x500010  [heap] rw-p\n1 match in 16 B".to_owned()),
        // What begins before the range, or ends behind it, is not in it.
        ("find/b 0x500011..0x500020, 0x10, 0x11", "0 matches in 15 B".to_owned()),
        ("find/b 0x500000..0x500011, 0x10, 0x11", "0 matches in 17 B".to_owned()),
        (
            "find 0x500000, +4p, -1",
            "0 matches in 8 KiB; not resident, not searched: 1 swapped page, 1 guard page".to_owned(),
        ),
        (
            "find/b2 0x505010..0x505020, 0x78, 0x78",
            "0x505010  [heap] rw-p\n0x505011  [heap] rw-p\n2 matches in 16 B; stopped early".to_owned(),
        ),
    ] {
        assert_eq!(session.says(line), said, "{line}");
    }
    assert_eq!(session.says("print $numfound"), "$1 = 2");
    assert_eq!(session.says("print $_ - 0"), "$2 = 0x505011  in [heap]");
    session.says("find [heap], \"not there\"");
    assert_eq!(session.says("print $numfound"), "$3 = 0");
    // There was no row: what was found before is not taken for an answer.
    assert!(matches!(session.refuses("print $_"), Error::Evaluation(error) if error.message.contains("no value")));
    // Pages that are not resident were never read: the fake has no bytes for them, and would have said so.
    assert!(watched.memory_reads.load(Ordering::Relaxed) > 0);
}

#[test]
fn find_writes_numbers_as_the_target_does_and_refuses_what_does_not_fit() {
    let mut fake = heap();
    fake.layout.is_little_endian = false;
    fake.layout.pointer_bytes = 4;
    let mut session = Session::on(fake);
    for (line, found) in [
        ("find/h [heap], 0x0203", true),
        ("find/h1 [heap], 0x0302", false),
        ("find [heap], 0x80818283", true),
        ("find [heap], 0x8081828384858687", true),
        // An address has the size of a pointer.
        ("find [heap], page(0) + 0x80818283 - page(0) + page(0)", true),
    ] {
        let said = session.says(line);
        assert_eq!(said.starts_with("0x500"), found, "{line}: {said}");
    }
    for line in [
        "find/b [heap], 256",
        "find/b [heap], -129",
        "find [heap], +5",
        "find 0x500000, 5",
        "find/0 [heap], 5",
        "find [heap], \"\"",
    ] {
        session.refuses(line);
    }
    let Error::Evaluation(error) = session.refuses("find/b [heap], 256") else {
        panic!("a number that is too large");
    };
    assert_eq!(error.message, "256 does not fit 1 byte");
    assert_eq!(error.hint.as_deref(), Some("for 2 bytes, put h after the slash"));
    // Not the next larger size, which does not fit either.
    let Error::Evaluation(error) = session.refuses("find/b [heap], 0x500000000") else {
        panic!("a number that is too large");
    };
    assert_eq!(error.hint.as_deref(), Some("for 8 bytes, put g after the slash"));
}

#[test]
fn find_looks_through_the_page_cache_too_and_says_so() {
    let mut session = Session::on(heap_and_file());
    let rest = "; not resident, not searched: 2 untouched pages";
    for (line, said) in [
        (
            "find file, \"cdef\"",
            format!("0x600fff  file r--p  (file)\n1 match in 8 KiB, 1 page from the page cache{rest}"),
        ),
        ("find file, \"abc\"", format!("0x600ffd  file r--p\n1 match in 8 KiB, 1 page from the page cache{rest}")),
        (
            "find 0x601018..0x602000, \"a text\"",
            "0x601018  file r--p  (file)\n1 match in 4072 B, 1 page from the page cache".to_owned(),
        ),
        ("find 0x602000..0x604000, \".\"", format!("0 matches in 0 B{rest}")),
    ] {
        assert_eq!(session.says(line), said, "{line}");
    }
}

#[test]
fn find_counts_what_it_could_not_read_in_the_page_cache() {
    let fake = heap_and_file().region(0x70_0000, 0x70_3000, "rw-s", 7, "/hidden");
    let mut session = Session::on(fake);
    let said = session.says("find 0x700000, +3p, 1");
    let begins = "0 matches in 0 B; the page cache could not be searched for 3 untouched pages: ";
    assert!(said.starts_with(begins), "{said}");
    assert!(!session.says("find file, 1").contains("could not"));
}

/// 1000 pages in frames that do not follow each other; so many of them, from the first on, cannot be read.
fn scattered(unreadable: u64) -> World {
    let mut world = World::new([region(0x1000, 1000)]);
    (0..1000).for_each(|index| world.maps(0x1000 + index, 1, 0x9000 + 2 * index));
    let bytes = |index: u64| vec![index as u8; PAGE as usize];
    world.memory = Some((unreadable..1000).map(|index| (0x1000 + index, bytes(index))).collect());
    world
}

#[test]
fn neighbouring_pages_are_read_together_wherever_their_frames_are() {
    let (world, target) = scattered(0).target();
    let mut session = Session(attached(target));
    // Across the end of a page, in the middle of what is read at a time.
    let found = session.says("find all, hex\"9b 9c\"");
    assert!(found.starts_with("0x109bfff") && found.contains("\n0x119bfff"), "{found}");
    let reads = world.watched.memory_reads.load(Ordering::Relaxed);
    assert!(reads <= 1000 / 256 + 1, "{reads}");
    let entries = world.entries_read.load(Ordering::Relaxed);
    assert!(entries <= 4 * 1000, "{entries}");
}

#[test]
fn pages_that_cannot_be_read_are_checked_one_by_one() {
    let (world, target) = scattered(900).target();
    let mut session = Session(attached(target));
    let found = session.says("find all, hex\"e6 e7\"");
    assert!(found.starts_with("0x13e6fff"), "{found}");
    assert!(found.ends_with("1 match in 400 KiB; 900 pages could not be read"), "{found}");
    let entries = world.entries_read.load(Ordering::Relaxed);
    assert!(entries <= 6 * 1000, "{entries}");
}

#[test]
fn a_page_that_leaves_before_find_reads_it_is_counted() {
    let fake = heap();
    fake.watched.gone_after_read.lock().unwrap().push(0x501);
    let mut session = Session::on(fake);
    assert_eq!(session.says("find 0x500000, +2p, -1"), "0 matches in 4 KiB; 1 page could not be read");
}

#[test]
fn a_word_that_names_nothing_is_likely_to_be_text() {
    let mut session = Session::on(heap());
    let (_, Err(Error::Evaluation(error))) = session.run("find 0x500000, +2p, hunter2", None) else {
        panic!("hunter2 is nothing");
    };
    let hint = "text needs double quotes: `\"hunter2\"`";
    assert_eq!(error.hint.as_deref(), Some(hint));
}

#[test]
fn a_range_as_gdb_writes_it_is_no_value_to_search_for() {
    let mut session = Session::on(heap());
    for line in ["find/b [heap], [heap] + 64, 3", "find/b heap, heap + 0x40, 3"] {
        let Error::Evaluation(error) = session.refuses(line) else {
            panic!("{line} is gdb's");
        };
        assert!(error.message.contains("is the range to search here"), "{}", error.message);
        let hint = error.hint.unwrap_or_default();
        let name = line.split([' ', ',']).nth(1).unwrap_or_default();
        assert_eq!(hint, format!("put a plus before a length: `find/b {name}, +64, 3`"));
        // The hint is right.
        assert_eq!(session.says(&format!("find/b {name}, +0x40, 3")), "0x500003  [heap] rw-p\n1 match in 64 B");
    }
    // Two values, of which the first is any other address, are a search.
    assert!(session.says("find [heap], start([heap]), 3").contains("0 matches"));
}
