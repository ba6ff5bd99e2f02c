//! Accesses through entries that differ from what the page alone suggests: write-protected ones, and those of regions
//! with rights of their own.

use super::super::Test;
use super::super::access::Felt;
use super::super::answers::{of_frame, program};
use super::super::behind::DiskFile;
use super::super::puppet::Puppet;
use super::super::support::{self, at, page_bytes, plain_entries, skip};
use super::Access::{Read, Write};
use super::{Who, makes, may_make, said};
use pmdb::budget::Budget;
use pmdb::inspect::AddressSpace;
use pmdb::report::{Effect, Fault};
use serde_json::Value;

pub const TESTS: &[Test] = &[
    ("explain::writes_to_shared_files", writes_to_shared_files),
    ("explain::the_end_of_a_swap_area", the_end_of_a_swap_area),
    ("explain::cleared_soft_dirty_bits", cleared_soft_dirty_bits),
    ("explain::protection_keys", protection_keys),
    ("explain::pages_of_the_kernel", pages_of_the_kernel),
    ("explain::freed_memory", freed_memory),
];

/// ext4 and most others want to notice the first write to a clean page.
fn writes_to_shared_files() {
    const NAME: &str = "explain::writes_to_shared_files";
    let file = DiskFile::of(page_bytes());
    file.sync_all().expect("to write the file back");
    let mut puppet = Puppet::start();
    let memory = puppet.maps_file(&file, 1, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    puppet.reads(memory, 1);
    let before = said(&puppet.0.attach(), memory, Write).0.effects;
    if support::is_root() {
        assert_eq!(before, [Effect::Reuse, Effect::Nothing], "clean");
    }
    match Felt::from_answer(puppet.asks("store", &[memory])) {
        Felt::Faults { minor: 0, major: 0 } => skip(NAME, "this filesystem does not notice writes"),
        felt => assert!(matches!(felt, Felt::Faults { .. }), "{felt:?}"),
    }
    let (effects, _) = may_make(&mut puppet, Who::Itself, "dirty", memory, Write, Effect::Nothing);
    assert_eq!(effects[0], Effect::Nothing, "dirty");
}

/// The pages that come back are write-protected.
fn the_end_of_a_swap_area() {
    const NAME: &str = "explain::the_end_of_a_swap_area";
    let (mut puppet, memory, swap) = match Puppet::in_swap(1, 1) {
        Ok(found) => found,
        Err(reason) => return skip(NAME, &reason),
    };
    drop(swap);
    may_make(&mut puppet, Who::Itself, "brought back", memory, Write, Effect::Reuse);
}

/// Bit 55 is also set on pages that are still write-protected: of regions that were moved or grown since.
fn cleared_soft_dirty_bits() {
    const NAME: &str = "explain::cleared_soft_dirty_bits";
    let page = page_bytes();
    let mut puppet = Puppet::start();
    if puppet.0.attach().machine.has_soft_dirty() != Some(true) {
        return skip(NAME, "this kernel does not track soft-dirty pages");
    }
    let shared = puppet.maps("memfd", 2);
    puppet.writes(shared, 2);
    makes(&mut puppet, "shared memory, never cleared", shared, Write, Effect::Nothing);
    let memory = puppet.maps_far();
    puppet.writes(memory, 4);
    makes(&mut puppet, "never cleared", memory, Write, Effect::Nothing);
    let heap = puppet.does("brk", &[2 * page]).next_multiple_of(page);
    puppet.writes(heap, 1);
    let place = puppet.maps("reserved", 1);
    let cleared = std::fs::write(format!("/proc/{}/clear_refs", puppet.0.pid()), "4");
    cleared.expect("to clear its soft-dirty bits");

    makes(&mut puppet, "cleared", memory, Read, Effect::Nothing);
    makes(&mut puppet, "cleared", memory, Write, Effect::Reuse);
    may_make(&mut puppet, Who::Itself, "cleared and written", memory, Write, Effect::Nothing);
    makes(&mut puppet, "shared memory, cleared", shared, Write, Effect::Reuse);
    puppet.does("move", &[memory + page, page, place]);
    may_make(&mut puppet, Who::Itself, "moved", place, Write, Effect::Reuse);
    puppet.does("brk", &[4 * page]);
    may_make(&mut puppet, Who::Itself, "grown by brk", heap, Write, Effect::Reuse);
}

fn protection_keys() {
    const NAME: &str = "explain::protection_keys";
    // Without a right denied, and with all denied (PKEY_DISABLE_ACCESS).
    for (denied, access) in [(0, Read), (0, Write), (1, Read), (1, Write)] {
        let mut puppet = Puppet::start();
        let memory = puppet.maps_far();
        puppet.writes(memory, 1);
        let key = puppet.asks("pkey", &[memory, page_bytes(), denied]);
        if key < 0 {
            return skip(NAME, &format!("no protection keys: error {}", -key));
        }
        let lines = [format!("region {memory:#x} full"), format!("explain {memory:#x}")];
        let records: Vec<Value> = program(&[], puppet.0.pid(), true, &lines)
            .lines()
            .map(|line| serde_json::from_str(line).expect("an object"))
            .collect();
        for record in &records {
            assert_eq!(record["protection_key"], key, "{record}");
        }
        let effect = if denied == 0 { Effect::Nothing } else { Effect::ProtectionKey };
        let (effects, _) = may_make(&mut puppet, Who::Itself, "with a key", memory, access, effect);
        assert!(effects.contains(&Effect::ProtectionKey), "{effects:?}");
    }
}

/// Each page of `[vvar]` and its like: some are there on some machines only.
fn pages_of_the_kernel() {
    let page = page_bytes();
    let mut signals = 0;
    let first = Puppet::start();
    let sizes = |puppet: &Puppet| -> Vec<(String, u64, u64)> {
        let view_of = puppet.0.attach();
        let space = AddressSpace::of(&view_of).expect("a space");
        let own = space.regions().filter(|region| region.name.as_bytes().starts_with(b"[vvar"));
        own.map(|region| (region.name.to_string(), region.range.start().get(), region.range.len() / page)).collect()
    };
    for (name, _, pages) in sizes(&first) {
        for nth in 0..pages {
            let mut puppet = Puppet::start();
            let (_, start, _) = sizes(&puppet).into_iter().find(|one| one.0 == name).expect("the same region");
            let address = start + nth * page;
            let (outcome, _) = said(&puppet.0.attach(), address, Read);
            let felt = Felt::from_answer(puppet.asks("load", &[address]));
            println!("{name} page {nth}: said {:?}, felt {felt:?}", outcome.effects);
            let fault = match felt {
                Felt::Signal(libc::SIGBUS) => Fault::Bus,
                Felt::Faults { minor: 0, .. } => Fault::None,
                Felt::Faults { .. } => Fault::Minor,
                Felt::Signal(other) => panic!("signal {other}"),
            };
            signals += u32::from(fault == Fault::Bus);
            assert!(outcome.effects.iter().any(|effect| effect.fault() == fault), "{name} page {nth}: {outcome:?}");
        }
    }
    if signals == 0 {
        skip("explain::pages_of_the_kernel", "this machine has all pages of [vvar]");
    }
}

/// The flags of a page that was freed with MADV_FREE do not change when it is written to, but what smaps counts does.
fn freed_memory() {
    const NAME: &str = "explain::freed_memory";
    const PAGES: u64 = 256;
    if !support::is_root() {
        return skip(NAME, "only root sees which pages were freed");
    }
    let mut puppet = Puppet::start();
    let start = puppet.maps_far();
    puppet.writes(start, PAGES);
    let of_page = |puppet: &Puppet, page: u64| {
        let target = puppet.0.attach();
        let space = AddressSpace::at(&target, at(page)).expect("a space");
        let detail = space.detail(at(page)).expect("its detail");
        space.predict_access(&detail, &mut Budget::unlimited()).expect("an answer").discardable.ok()
    };
    assert_eq!(of_page(&puppet, start), Some(false), "never freed");
    puppet.advises(start, PAGES, libc::MADV_FREE).expect("to free");
    // The kernel leaves out pages that another processor has not added to its lists yet (folio_mark_lazyfree).
    let entries = plain_entries(puppet.0.pid(), start, start + PAGES * page_bytes());
    let is_marked = |word: u64| {
        const SWAPBACKED: u64 = 1 << 14;
        of_frame("kpageflags", word & ((1 << 55) - 1)).expect("its flags") & SWAPBACKED == 0
    };
    let (number, _) = entries.into_iter().find(|&(_, word)| is_marked(word)).expect("a freed page");
    let memory = number * page_bytes();
    let discardable = |puppet: &Puppet| of_page(puppet, memory);
    assert_eq!(discardable(&puppet), Some(true), "freed");
    let told = |puppet: &Puppet| program(&[], puppet.0.pid(), false, &[format!("explain {memory:#x}")]);
    assert!(told(&puppet).contains("until the next write, the kernel may discard"), "{}", told(&puppet));
    let another = if memory == start { memory + page_bytes() } else { start };
    puppet.writes(another, 1);
    assert_eq!(discardable(&puppet), None, "another was written");
    assert!(told(&puppet).contains("if it was not written since"), "{}", told(&puppet));
    puppet.writes(start, PAGES);
    assert_eq!(discardable(&puppet), Some(false), "all were written");
    assert!(told(&puppet).contains("but written since"), "{}", told(&puppet));
}
