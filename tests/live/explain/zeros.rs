//! `explain huge`: the huge zero page, and huge pages with zero-filled subpages.

use super::super::Test;
use super::super::account::command::{of_type, records};
use super::super::puppet::Puppet;
use super::super::states::MADV_COLLAPSE;
use super::super::support::{self, huge_page_bytes, page_bytes, skip};
use super::not_huge::set;
use serde_json::Value;

pub const TESTS: &[Test] = &[
    ("explain::huge_page_of_zeros", huge_page_of_zeros),
    ("explain::huge_with_zeros", huge_with_zeros),
    ("explain::huge_with_one_byte", huge_with_one_byte),
];

/// Memory that was only read, where huge pages are wanted: it maps the huge zero page.
fn huge_page_of_zeros() {
    const NAME: &str = "explain::huge_page_of_zeros";
    let _changed = match set("madvise", &[]) {
        Ok(changed) => changed,
        Err(reason) => return skip(NAME, &reason),
    };
    let mut puppet = Puppet::start();
    let bytes = huge_page_bytes().expect("a size");
    let pages = 4 * bytes / page_bytes();
    let memory = puppet.maps("huge", pages);
    puppet.reads(memory, pages);
    let pid = puppet.0.pid();
    // The kernel marks the huge zero page as a file page (bit 61), and counts it in no AnonHugePages.
    let is_huge_zero = |page| {
        let entry = support::plain_entry(pid, memory + page * page_bytes()).expect("an entry");
        entry >> 63 == 1 && entry >> 61 & 1 == 1
    };
    if !support::has_scan() || !(0..pages).all(is_huge_zero) {
        return skip(NAME, "the kernel gave no huge zero page, or no PAGEMAP_SCAN");
    }
    let all = records(pid, &format!("explain huge {memory:#x}, +{:#x}", 4 * bytes));
    let [sums] = of_type(&all, "huge-summary")[..] else { panic!("{all:?}") };
    assert_eq!((&sums["huge_zeros"], &sums["huge"]), (&(4 * bytes).into(), &0.into()), "{sums}");
    let sizes = of_type(&all, "huge-size");
    let size = sizes.iter().find(|row| row["size"] == bytes).expect("the size of a PMD");
    assert_eq!(size["allowed"], 4 * bytes, "{size}");
}

fn huge_with_zeros() {
    const NAME: &str = "explain::huge_with_zeros";
    let Some(bytes) = huge_page_bytes() else {
        return skip(NAME, "no transparent huge pages");
    };
    let (page, mut puppet) = (page_bytes(), Puppet::start());
    let pages = bytes / page;
    let memory = puppet.maps("aligned", pages);
    let used = [0, 5, 6, pages - 1];
    for index in used {
        puppet.writes(memory + index * page, 1);
    }
    _ = puppet.advises(memory, pages, MADV_COLLAPSE);
    let pid = puppet.0.pid();
    let all = records(pid, &format!("explain huge {memory:#x}, +{bytes:#x} with content"));
    let [summary] = of_type(&all, "huge-summary")[..] else { panic!("{all:?}") };
    if summary["huge"] != bytes {
        return skip(NAME, "the kernel gave no huge page, or cannot say");
    }
    let zeros = bytes - used.len() as u64 * page;
    assert_eq!((&summary["zeros"], &summary["unread"]), (&zeros.into(), &0.into()));
    let [row] = of_type(&all, "huge-zeros")[..] else { panic!("{all:?}") };
    assert_eq!((&row["start"], &row["zeros"]), (&format!("{memory:#x}").into(), &zeros.into()));
    let hex = |index: u64| format!("{:#x}", memory + index * page);
    let pieces = [(1, 5), (7, pages - 1)];
    let expected: Vec<Value> =
        pieces.iter().map(|&(start, end)| serde_json::json!({ "start": hex(start), "end": hex(end) })).collect();
    assert_eq!(row["pieces"], Value::from(expected));
    // Without the words nothing is read.
    let all = records(pid, &format!("explain huge {memory:#x}, +{bytes:#x}"));
    assert!(of_type(&all, "huge-zeros").is_empty());
    assert!(of_type(&all, "huge-summary")[0]["zeros"].is_null());
}

/// A huge page of one fault has the marks of a written page on its first page only. It counts once.
fn huge_with_one_byte() {
    const NAME: &str = "explain::huge_with_one_byte";
    let _changed = match set("madvise", &[]) {
        Ok(changed) => changed,
        Err(reason) => return skip(NAME, &reason),
    };
    let bytes = huge_page_bytes().expect("a size");
    let (page, mut puppet) = (page_bytes(), Puppet::start());
    let pages = bytes / page;
    let memory = puppet.maps("huge", 2 * pages);
    for place in [memory, memory + bytes] {
        puppet.does("store", &[place]);
    }
    let all = records(puppet.0.pid(), &format!("explain huge {memory:#x}, +{:#x} with content", 2 * bytes));
    let [summary] = of_type(&all, "huge-summary")[..] else { panic!("{all:?}") };
    if summary["huge"] != 2 * bytes {
        return skip(NAME, "the kernel gave no huge page, or cannot say");
    }
    let zeros = 2 * (bytes - page);
    assert_eq!((&summary["zeros"], &summary["unread"]), (&zeros.into(), &0.into()), "{all:?}");
    let starts: Vec<&Value> = of_type(&all, "huge-zeros").iter().map(|row| &row["start"]).collect();
    assert_eq!(starts, [&format!("{memory:#x}"), &format!("{:#x}", memory + bytes)], "{all:?}");
}
