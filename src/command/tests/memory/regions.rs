//! Which regions are listed, and what is reported about the others.

use super::*;
use crate::kernel::PageFlags;

/// A heap with a page in memory, and the kernel's own regions, whose pages the page map does not show.
fn with_regions_of_the_kernel() -> Fake {
    let gate = 0xffff_ffff_ff60_0000;
    Fake::new().region(0x50_0000, 0x50_2000, "rw-p", 0, "[heap]").page(0x50_0000, 0x1234, b"here").region(
        gate,
        gate + 0x1000,
        "--xp",
        0,
        "[vsyscall]",
    )
}

#[test]
fn a_size_that_decides_is_used_where_rss_is_not_known() {
    let mut session = Session::on(with_regions_of_the_kernel());
    for (filter, regions) in
        [("rss > 500K", 0), ("rss <= 4K", 2), ("500K < rss", 0), ("swapped > 4K or rss == 0x2000", 0)]
    {
        let (records, flow) = session.run(&format!("regions where {filter}"), None);
        flow.expect("an answer");
        assert!(notes(&records).is_empty(), "{filter}");
        assert_eq!(records.len(), regions + 1, "{filter}");
    }
}

#[test]
fn what_every_process_has_is_reported_once_a_session() {
    let mut session = Session::on(with_regions_of_the_kernel());
    assert!(!session.says("regions").contains("page map"));
    let first = session.says("regions where rss > 0");
    assert!(first.contains("left out: the kernel's own regions"), "{first}");
    let second = session.says("regions where rss > 0");
    assert!(!second.contains("left out"), "{second}");
    assert!(second.contains("[heap]"), "{second}");
}

#[test]
fn anonymous_means_for_regions_what_it_means_for_pages() {
    let mut session = Session::on(with_regions_of_the_kernel());
    let said = session.says("regions where anonymous");
    assert!(said.contains("[heap]") && !said.contains("[vsyscall]"), "{said}");
}

#[test]
fn a_heading_compares_the_bytes_under_it_and_alone_it_is_a_condition() {
    let page = 0x50_0000;
    let mut fake = Fake::new().region(page, page + 0x2000, "rw-p", 0, "[heap]").page(page, 0x1234, b"here").region(
        0x60_0000,
        0x60_1000,
        "rw-s",
        7,
        "/dev/shm/x",
    );
    fake.flags = Some([(0x1234, PageFlags::ANON)].into());
    let mut session = Session::on(fake);
    let mut names = |filter: &str| -> Vec<String> {
        let (records, flow) = session.run(&format!("regions where {filter}"), None);
        flow.unwrap_or_else(|_| panic!("{filter}"));
        all(&records).map(|region: &RegionReport| region.name.to_string()).collect()
    };
    for filter in
        ["private > 0", "(private) > 0", "0 < (private)", "private", "present == 4K", "private and not shared"]
    {
        assert_eq!(names(filter), ["[heap]"], "{filter}");
    }
    for filter in ["shared", "private == 0 and size == 4K", "not private"] {
        assert_eq!(names(filter), ["/dev/shm/x"], "{filter}");
    }
    assert!(names("shared > 0").is_empty());
}

#[test]
fn sorting_as_in_other_programs_is_an_error_with_the_way_out() {
    let mut session = Session::on(with_regions_of_the_kernel());
    for (line, way_out) in [
        ("regions sort by swapped", "regions by swapped"),
        ("regions sort", "regions by rss"),
        ("ps --sort=-%mem", "ps by rss"),
    ] {
        let refused = session.refuses(line);
        assert!(format!("{refused:?}").contains(way_out), "{line}: {refused:?}");
    }
}

#[test]
fn a_filter_that_nothing_matches_says_so() {
    let mut session = Session::on(with_regions_of_the_kernel());
    assert_eq!(session.says("walk [heap] where swapped"), "no page matches");
    assert_eq!(session.says("regions where size > 1G"), "no region matches");
}

#[test]
fn a_frame_number_in_the_place_of_an_address_comes_with_its_prefix() {
    let mut session = Session::on(with_regions_of_the_kernel());
    for (line, way_out) in [("flags 0x5c1737", "`flags pfn:0x5c1737`"), ("who 0x5c1737", "`who pfn:0x5c1737`")] {
        let refused = format!("{:?}", session.refuses(line));
        assert!(refused.contains(way_out), "{line}: {refused}");
    }
    let refused = format!("{:?}", session.refuses("flags 0x501000"));
    assert!(refused.contains("untouched") && !refused.contains("pfn:"), "{refused}");
}

#[test]
fn the_summary_shows_as_many_rows_as_are_asked_for() {
    let mut session = Session::on(heap());
    let all = session.says("summary");
    let first = session.says("summary limit 1");
    assert_eq!(first.lines().nth(1), all.lines().nth(1));
    assert!(first.contains("more row") && first.lines().count() < all.lines().count(), "{all}\n{first}");
    assert_eq!(session.says("summary [heap] top 1").lines().nth(1), session.says("summary [heap]").lines().nth(1));
    assert!(matches!(session.refuses("summary limit 0"), Error::Refused { .. }));
}

#[test]
fn translate_ends_after_its_rows_and_goes_on_there() {
    let fake = Fake::new()
        .region(0x50_0000, 0x50_4000, "rw-p", 0, "[heap]")
        .page(0x50_0000, 0x1000, b"a")
        .page(0x50_1000, 0x2000, b"b")
        .page(0x50_2000, 0x3000, b"c");
    let mut session = Session::on(fake);
    let starts =
        |records: &[Box<dyn Record>]| -> Vec<u64> { all(records).map(|run: &ContiguousRun| run.start.get()).collect() };
    let (records, flow) = session.run("translate [heap] limit 2", None);
    assert_eq!(starts(&records), [0x50_0000, 0x50_1000]);
    let Ok(Flow::More(resume)) = flow else {
        panic!("{flow:?}");
    };
    let (records, flow) = session.run("translate [heap] limit 2", Some(resume));
    assert_eq!(starts(&records), [0x50_2000, 0x50_3000]);
    assert!(matches!(flow, Ok(Flow::Done)), "{flow:?}");
    assert!(matches!(session.refuses("translate [heap] limit 0"), Error::Refused { .. }));
}

#[test]
fn an_address_with_a_digit_too_many_comes_with_the_shorter_one() {
    let fake = Fake::new().region(0x5555_5555_4000, 0x5555_5555_6000, "r--p", 0, "program");
    let mut session = Session::on(fake);
    let note = "0x555555554000, with one digit less, is mapped";
    let said = session.says("translate 0x5555555540000");
    assert!(said.contains(note), "{said}");
    let said = session.says("explain 0x5555555540000");
    assert!(said.contains(note), "{said}");
    let said = session.says("translate 0x555555554000");
    assert!(!said.contains("digit"), "{said}");
}

#[test]
fn the_kernel_s_thp_flag_is_not_taken_for_pmd_mapped() {
    let mut fake = Fake::new().region(0x50_0000, 0x50_1000, "rw-p", 0, "[heap]").page(0x50_0000, 0x1000, b"a");
    fake.flags = Some([(0x1000, PageFlags::THP)].into());
    let mut session = Session::on(fake);
    for line in ["walk [heap]", "translate 0x500000"] {
        let said = session.says(line);
        assert!(said.contains("large_folio"), "{line}: {said}");
        assert!(!said.contains("thp"), "{line}: {said}");
    }
}
