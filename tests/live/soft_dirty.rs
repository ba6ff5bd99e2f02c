//! Which pages were written to since soft-dirty bits were cleared.

use super::Test;
use super::answers::program;
use super::puppet::Puppet;
use super::snapshots::value;
use super::support::{has_scan, is_root, page_bytes, range, skip};
use pmdb::budget::Budget;
use pmdb::eval::{Keep, NamedSnapshot, Origin, Spans};
use pmdb::inspect::{AddressSpace, Change};
use pmdb::report::EventKind;
use pmdb::state::DebugState;
use serde_json::Value;

pub const TESTS: &[Test] = &[
    ("soft_dirty::pages_written_to", pages_written_to),
    ("soft_dirty::cleared_by_the_command", cleared_by_the_command),
    ("soft_dirty::a_huge_page", a_huge_page),
    ("soft_dirty::refused", refused),
    ("soft_dirty::only_writes_are_changes", only_writes_are_changes),
];

fn records(pid: u32, line: String) -> Vec<Value> {
    let json = program(&[], pid, true, &[line]);
    json.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

/// New regions have the bits on all of their pages, also on holes.
fn pages_written_to() {
    const NAME: &str = "soft_dirty::pages_written_to";
    const PAGES: u64 = 16;
    const WRITTEN: u64 = 5;
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 2 * PAGES);
    puppet.writes(memory, PAGES);
    let pid = puppet.0.pid();
    let range = format!("{memory:#x},+{:#x}", 2 * PAGES * page_bytes());
    let written = || {
        let rows = records(pid, format!("walk {range} where soft_dirty and present"));
        rows.last().expect("a summary")["pages"].as_u64()
    };
    if puppet.0.attach().machine.has_soft_dirty() != Some(true) {
        let said = records(pid, format!("walk {range} where soft_dirty"));
        assert_eq!(said[0]["type"], "error", "{said:?}");
        return skip(NAME, "this kernel does not track soft-dirty pages");
    }
    assert_eq!(written(), Some(PAGES));
    let cleared = std::fs::write(format!("/proc/{pid}/clear_refs"), "4");
    cleared.expect("to clear its soft-dirty bits");
    assert_eq!(written(), Some(0));
    puppet.writes(memory + WRITTEN * page_bytes(), 1);
    puppet.reads(memory, PAGES);
    assert_eq!(written(), Some(1));
    for page in [WRITTEN, WRITTEN + 1] {
        let said = records(pid, format!("translate {:#x}", memory + page * page_bytes()));
        assert_eq!(said[0]["soft_dirty"], page == WRITTEN, "{said:?}");
    }
}

/// The soft-dirty bit of a page-map entry, read without pmdb.
fn is_marked(pid: u32, address: u64) -> bool {
    use std::os::unix::fs::FileExt;
    let mut entry = [0; 8];
    let map = std::fs::File::open(format!("/proc/{pid}/pagemap")).expect("its page map");
    map.read_exact_at(&mut entry, address / page_bytes() * 8).expect("an entry");
    u64::from_ne_bytes(entry) & 1 << 55 != 0
}

fn of_type<'a>(records: &'a [Value], wanted: &str) -> Vec<&'a Value> {
    let of_it = records.iter().filter(|record| record["type"] == wanted);
    of_it.collect()
}

/// Without `--yes` nothing is cleared if there is no user to confirm it. With it all bits are cleared; then only pages
/// that are written are shown.
fn cleared_by_the_command() {
    const NAME: &str = "soft_dirty::cleared_by_the_command";
    const PAGES: u64 = 16;
    const WRITTEN: u64 = 5;
    let mut puppet = Puppet::start();
    if puppet.0.attach().machine.has_soft_dirty() != Some(true) {
        return skip(NAME, "this kernel does not track soft-dirty pages");
    }
    let memory = puppet.maps("anonymous", 2 * PAGES);
    puppet.writes(memory, PAGES);
    let pid = puppet.0.pid();
    let page = |index: u64| memory + index * page_bytes();

    let said = records(pid, "soft-dirty clear".to_owned());
    let errors = of_type(&said, "error");
    assert_eq!(errors[0]["hint"], "use --yes to skip the confirmation", "{said:?}");
    assert!((0..PAGES).all(|index| is_marked(pid, page(index))));

    let said = records(pid, "soft-dirty --how clear --yes".to_owned());
    let before = of_type(&said, "soft-dirty")[0]["pages"].as_u64();
    assert!(before >= Some(PAGES), "{said:?}");
    assert_eq!(of_type(&said, "soft-dirty-cleared").len(), 1, "{said:?}");
    let writes = of_type(&said, "read");
    let file = format!("/proc/{pid}/clear_refs");
    assert!(writes.iter().any(|read| read["file"] == *file), "{said:?}");
    assert!(!(0..PAGES).any(|index| is_marked(pid, page(index))));

    puppet.writes(page(WRITTEN), 2);
    puppet.reads(memory, PAGES);
    let range = format!("{memory:#x},+{:#x}", 2 * PAGES * page_bytes());
    let said = records(pid, format!("soft-dirty {range}"));
    let rows = of_type(&said, "pages");
    let first = rows[0]["start"].as_str();
    assert_eq!(first, Some(&*format!("{:#x}", page(WRITTEN))), "{said:?}");
    assert_eq!(said.last().expect("totals")["pages"], 2, "{said:?}");
}

/// One write to a huge page marks all of it: it has one entry.
fn a_huge_page() {
    const NAME: &str = "soft_dirty::a_huge_page";
    if Puppet::start().0.attach().machine.has_soft_dirty() != Some(true) {
        return skip(NAME, "this kernel does not track soft-dirty pages");
    }
    let (mut puppet, memory, pages) = match Puppet::with_huge_page() {
        Ok(made) => made,
        Err(why) => return skip(NAME, why),
    };
    let pid = puppet.0.pid();
    let said = records(pid, "soft-dirty clear --yes".to_owned());
    let report = of_type(&said, "soft-dirty")[0];
    assert!(report["huge"].is_null() || report["huge"].as_u64() >= Some(pages));
    puppet.writes(memory, 1);
    let last = memory + (pages - 1) * page_bytes();
    let said = records(pid, format!("soft-dirty {memory:#x},+{:#x}", pages * page_bytes()));
    let written = said.last().expect("totals")["pages"].as_u64();
    let marked = if is_marked(pid, last) {
        pages
    } else {
        // It was split by the write protection.
        1
    };
    assert_eq!(written, Some(marked), "{said:?}");
}

/// A kernel without such bits would accept the write and do nothing.
fn refused() {
    const NAME: &str = "soft_dirty::refused";
    let puppet = Puppet::start();
    if puppet.0.attach().machine.has_soft_dirty() == Some(true) {
        return skip(NAME, "this kernel tracks soft-dirty pages");
    }
    let said = records(puppet.0.pid(), "soft-dirty clear --yes".to_owned());
    assert_eq!(said[0]["type"], "error", "{said:?}");
    let hint = said[0]["hint"].as_str().expect("a remedy");
    assert!(hint.starts_with("`snapshot with content`"), "{hint}");
}

/// A page that comes or goes is one change, whatever its bit says; a page that was written in place is one too.
/// `changed` counts the pages of all rows.
fn only_writes_are_changes() {
    const NAME: &str = "soft_dirty::only_writes_are_changes";
    const MADV_DONTNEED: i32 = 4;
    let mut puppet = Puppet::start();
    if puppet.0.attach().machine.has_soft_dirty() != Some(true) {
        return skip(NAME, "this kernel does not track soft-dirty pages");
    }
    let memory = puppet.maps("anonymous", 40);
    puppet.writes(memory, 20);
    let pid = puppet.0.pid();
    let page = |index: u64| memory + index * page_bytes();
    std::fs::write(format!("/proc/{pid}/clear_refs"), "4").expect("to clear its soft-dirty bits");
    let target = puppet.0.attach();
    let mut state = DebugState::new(target.machine.clone());
    let spans = Some(Spans::one(range(memory, 40 * page_bytes()), Origin::Written));
    let keep = Keep::default();
    let taken = |name: &str| {
        NamedSnapshot::begin(name.to_owned(), &target, &state.symbols, spans.clone(), keep)
            .and_then(|open| open.finish())
            .expect("a snapshot")
    };
    let before = taken("before");
    puppet.advises(page(2), 3, MADV_DONTNEED).expect("to drop pages");
    puppet.writes(page(10), 5);
    puppet.reads(page(10), 10);
    puppet.writes(page(20), 7);
    let after = taken("after");
    let space = AddressSpace::of(&target).expect("a space");
    let brief = |change: Change| (change.kind, change.address.map_or(0, |address| address.get()), change.pages);
    let mut rows: Vec<_> =
        before.snapshot.changes(&after.snapshot, None, &space, &mut Budget::unlimited()).map(brief).collect();
    rows.sort_by_key(|&(_, address, _)| address);
    assert_eq!(
        rows,
        [(EventKind::Went, page(2), 3), (EventKind::SoftDirty, page(10), 5), (EventKind::Came, page(20), 7)]
    );
    drop(space);
    state.snapshots.add(before);
    state.snapshots.add(after);
    state.attach(target);
    let changed = value(&state, "changed(before, after)");
    if has_scan() && is_root() {
        assert_eq!(changed, Ok(15));
    } else {
        _ = changed.expect_err("splits, or moves, do not show");
    }
    assert_eq!(value(&state, "went(before, after)"), Ok(3));
}
