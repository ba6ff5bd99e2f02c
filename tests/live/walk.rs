//! Sweeps over whole processes, against plain reads of everything.

use super::Test;
use super::puppet::Puppet;
use super::states::pages;
use super::support::{self, Numbers, at, page_bytes, plain_maps, skip};
use pmdb::budget::{Budget, OutOfBudget};
use pmdb::inspect::{
    AddressSpace, Error, Evidence, FrameRow, Neighbours, PageRow, PageRows, PhysicalRun, PhysicalRuns, RegionStats,
    Step, Totals, ViewedRegion, machine_frames,
};
use pmdb::kernel::{FrameNumber, FrameRange, Kind, PageFlags, State};
use pmdb::process::{Categories, Target};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

pub const TESTS: &[Test] = &[
    ("walk::every_entry_is_what_pread_says", every_entry_is_what_pread_says),
    ("walk::totals_are_what_pread_says", totals_are_what_pread_says),
    ("walk::runs_are_consecutive_frames", runs_are_consecutive_frames),
    ("walk::rows_are_the_same_with_and_without_scan", rows_are_the_same_with_and_without_scan),
    ("walk::frames_are_joined_to_their_pages", frames_are_joined_to_their_pages),
    ("walk::long_sweeps_are_complete_and_in_order", long_sweeps_are_complete_and_in_order),
    ("walk::reservations_cost_nothing", reservations_cost_nothing),
    ("walk::regions_add_up_to_smaps", regions_add_up_to_smaps),
    ("walk::a_region_that_went_is_said", a_region_that_went_is_said),
    ("walk::a_region_among_very_many_that_changes_is_said", a_region_among_very_many_that_changes_is_said),
    ("walk::an_exit_half_way_is_said", an_exit_half_way_is_said),
    ("walk::an_exec_half_way_is_said", an_exec_half_way_is_said),
    ("walk::it_stops_when_told", it_stops_when_told),
    ("walk::frames_of_the_machine", frames_of_the_machine),
];

const HAS_32_BITS: bool = cfg!(target_pointer_width = "32");
/// Pages of memory that is nearly empty.
const SPARSE: u64 = if HAS_32_BITS { 1 << 16 } else { 1 << 20 };
/// Bytes that no pages are promised for: 16 TiB, or what an address space of 32 bits has room for.
const RESERVED: u64 = if HAS_32_BITS { 1 << 30 } else { 16 << 40 };

/// A process that stands still, with every kind of memory that the plan of a sweep distinguishes: dense and sparse,
/// small and large, huge pages, holes, shared memory.
fn still() -> Puppet {
    let mut puppet = Puppet::start();
    let mut numbers = Numbers(7);
    let dense = puppet.maps("anonymous", 9000);
    puppet.writes(dense, 9000);
    puppet.unmaps(dense + 4321 * page_bytes(), 3);
    let sparse = puppet.maps("anonymous", SPARSE);
    for _ in 0..200 {
        let page = sparse + numbers.below(SPARSE) * page_bytes();
        let some = 1 + numbers.below(3);
        let left = (sparse + SPARSE * page_bytes() - page) / page_bytes();
        puppet.writes(page, some.min(left));
    }
    let late = puppet.maps("anonymous", 40_000);
    puppet.reads(late + 20_000 * page_bytes(), 6000);
    puppet.writes(late + 30_000 * page_bytes(), 10_000);
    let shared = puppet.maps("shared", 500);
    puppet.writes(shared, 300);
    if let Some(bytes) = support::huge_page_bytes() {
        let huge = puppet.maps("huge", 4 * bytes / page_bytes());
        puppet.writes(huge, 3 * bytes / page_bytes());
        puppet.does("fork", &[huge + bytes + 5 * page_bytes(), 2]);
    }
    puppet.0.stop();
    puppet
}

/// Every page-map entry of every region, in order, as [`support::plain_entries`] gives them.
fn plain_entries(pid: u32) -> Vec<(u64, u64)> {
    plain_maps(pid).into_iter().flat_map(|(start, end, _)| support::plain_entries(pid, start, end)).collect()
}

/// All bits except 56, which in a huge mapping is that of its first page.
const SURE: u64 = !(1 << 56);

fn every_entry_is_what_pread_says() {
    let puppet = still();
    let target = puppet.0.attach();
    let plain = plain_entries(puppet.0.pid());
    for need in
        [Evidence::ENTRIES, Evidence::KINDS, Evidence::HUGE, Evidence::FLAGS | Evidence::COUNTS | Evidence::HUGE]
    {
        let space = AddressSpace::of(&target).expect("a space");
        let mut expected = plain.iter();
        let mut swept = space.pages(&space.spans(), space.obtainable(need));
        while let Some(chunk) = swept.next().expect("a sweep") {
            for page in chunk.pages() {
                if page.state() == State::Outside {
                    continue;
                }
                let region = chunk.region.expect("a region");
                for one in page.each(space.page_size()) {
                    let &(index, word) = expected.next().expect("no page twice");
                    assert_eq!(one.address.get() / page_bytes(), index);
                    assert!(region.range().contains(one.address));
                    let found = one.entry.raw() & SURE;
                    // A scan does not report the soft-dirty bits of empty entries.
                    let soft_dirty = if word >> 62 == 0 { 1 << 55 } else { 0 };
                    assert_eq!(found | soft_dirty, word & SURE | soft_dirty, "{page:?}");
                }
            }
        }
        assert_eq!(expected.next(), None, "no page is left out");
    }
}

/// So long that several cores read; mostly zero pages, which cost the machine nothing.
fn long_sweeps_are_complete_and_in_order() {
    let mut puppet = Puppet::start();
    let pages_in = 400_000;
    let memory = puppet.maps("anonymous", pages_in);
    puppet.reads(memory, pages_in - 70);
    for part in 0..40 {
        puppet.writes(memory + part * 9_999 * page_bytes(), 2);
    }
    puppet.0.stop();
    let target = puppet.0.attach();
    let space = AddressSpace::of(&target).expect("a space");
    let span = support::range(memory, pages_in * page_bytes());
    let plain = plain_entries(puppet.0.pid());
    let first = memory / page_bytes();
    let mut expected = plain.iter().filter(|(index, _)| (first..first + pages_in).contains(index));
    let mut swept = space.pages(&[span], Evidence::KINDS);
    while let Some(chunk) = swept.next().expect("a sweep") {
        for page in chunk.pages().flat_map(|page| page.each(space.page_size())) {
            let &(index, word) = expected.next().expect("no page twice");
            assert_eq!(page.address.get() / page_bytes(), index);
            assert_eq!(page.entry.raw() & !(1 << 55), word & !(1 << 55));
        }
    }
    assert_eq!(expected.next(), None);
}

fn totals_are_what_pread_says() {
    let puppet = still();
    let target = puppet.0.attach();
    let space = AddressSpace::of(&target).expect("a space");
    let mut totals = Totals::new(space.page_size(), Evidence::ENTRIES);
    let mut swept = space.pages(&space.spans(), Evidence::ENTRIES);
    while let Some(chunk) = swept.next().expect("a sweep") {
        chunk.pages().for_each(|page| totals.add(&page));
    }
    let plain = plain_entries(puppet.0.pid());
    let present: Vec<&(u64, u64)> = plain.iter().filter(|(_, word)| word >> 63 == 1).collect();
    assert_eq!(totals.state(State::Present), present.len() as u64);
    let other = plain.iter().filter(|(_, word)| word >> 62 == 1).count();
    assert_eq!(totals.state(State::Swapped), other as u64);
    if support::shows_frames() {
        const FRAME: u64 = (1 << 55) - 1;
        let (mut runs, mut longest, mut length) = (0u64, 0u64, 0u64);
        let mut before: Option<(u64, u64)> = None;
        for &&(index, word) in &present {
            let goes_on = before == Some((index.wrapping_sub(1), (word & FRAME).wrapping_sub(1)));
            length = if goes_on { length + 1 } else { 1 };
            runs += u64::from(!goes_on);
            longest = longest.max(length);
            before = Some((index, word & FRAME));
        }
        assert_eq!(totals.runs(), Some(runs));
        assert_eq!(totals.longest_run_bytes(), Some(longest * page_bytes()));
    } else {
        assert_eq!(totals.runs(), None);
    }
}

fn runs_are_consecutive_frames() {
    const FRAME: u64 = (1 << 55) - 1;
    if !support::shows_frames() {
        return skip("walk::runs_are_consecutive_frames", "frames are for root");
    }
    let puppet = still();
    let target = puppet.0.attach();
    let plain: BTreeMap<u64, u64> = plain_entries(puppet.0.pid()).into_iter().collect();
    let space = AddressSpace::of(&target).expect("a space");
    let mut runs = PhysicalRuns::new(space.page_size());
    let mut zeros = 0;
    let mut check = |run: PhysicalRun| {
        let first = run.start.get() / page_bytes();
        let Some(frame) = run.frame else { return };
        for page in 0..run.pages {
            let word = plain[&(first + page)];
            let wanted = match run.kind {
                Some(Kind::Zero) => frame.get(),
                Some(Kind::HugeZero) => word & FRAME,
                _ => frame.get() + page,
            };
            assert_eq!((word >> 63, word & FRAME), (1, wanted), "page {page} of {run:?}");
        }
        zeros += if run.kind == Some(Kind::Zero) { run.pages } else { 0 };
    };
    let need = space.obtainable(Evidence::KINDS) | Evidence::ENTRIES;
    let mut swept = space.pages(&space.spans(), need);
    while let Some(chunk) = swept.next().expect("a sweep") {
        chunk.pages().filter_map(|page| runs.push(&page, None)).for_each(&mut check);
    }
    runs.finish().into_iter().for_each(&mut check);
    assert!(zeros >= 6000 || !space.availability().categories.contains(Categories::ZERO), "{zeros} zero pages");
}

fn rows(target: &Target, need: Evidence) -> Vec<PageRow> {
    let space = AddressSpace::of(target).expect("a space");
    let mut rows = PageRows::new(space.page_size());
    let mut all = Vec::new();
    let mut swept = space.pages(&space.spans(), space.obtainable(need));
    while let Some(chunk) = swept.next().expect("a sweep") {
        for page in chunk.pages() {
            all.extend(rows.push(&page, chunk.region_index));
        }
    }
    all.extend(rows.finish());
    all
}

fn rows_are_the_same_with_and_without_scan() {
    let puppet = still();
    let target = puppet.0.attach();
    let space = AddressSpace::of(&target).expect("a space");
    // Other processes map pages of files and the vdso too, and their number changes during the test.
    let is_own = |row: &PageRow| {
        let region = row.region.and_then(|index| space.viewed_regions().get(index));
        region.is_some_and(|viewed| viewed.region.inode == 0 && viewed.backing != pmdb::inspect::Backing::Kernel)
    };
    // Bits of a row's first entry that may differ from page to page.
    let plain = |rows: Vec<PageRow>| -> Vec<PageRow> {
        let bare = |mut row: PageRow| {
            let soft_dirty = 1 << 55;
            row.page.entry = pmdb::kernel::PageMapEntry::new(row.page.entry.raw() & SURE & !soft_dirty);
            row
        };
        rows.into_iter().filter(is_own).map(bare).collect()
    };
    for need in [Evidence::empty(), Evidence::ENTRIES, Evidence::COUNTS] {
        target.process.set_scan(true);
        let scanned = plain(rows(&target, need));
        target.process.set_scan(false);
        let read = plain(rows(&target, need));
        assert_eq!(scanned.len(), read.len());
        for (scanned, read) in scanned.iter().zip(&read) {
            assert_eq!(scanned, read);
        }
    }
}

fn frames_are_joined_to_their_pages() {
    if !support::is_root() {
        return skip("walk::frames_are_joined_to_their_pages", "frames are for root");
    }
    let puppet = still();
    let target = puppet.0.attach();
    let [flags, counts] =
        ["kpageflags", "kpagecount"].map(|name| File::open(format!("/proc/{name}")).expect("it opens for root"));
    let word = |file: &File, frame: u64| {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, frame * 8).expect("a word");
        u64::from_ne_bytes(bytes)
    };
    // Those that do not change by themselves.
    let steady = PageFlags::ANON
        | PageFlags::SWAPBACKED
        | PageFlags::COMPOUND_HEAD
        | PageFlags::COMPOUND_TAIL
        | PageFlags::THP
        | PageFlags::ZERO_PAGE
        | PageFlags::MMAP;
    let maps = plain_maps(puppet.0.pid());
    // Only its own memory: pages shared with other processes change during the test.
    let own: Vec<(u64, u64)> = maps
        .iter()
        .filter(|(_, _, line)| line.ends_with(b" 0 ") || line.ends_with(b"00:00 0"))
        .map(|&(start, end, _)| (start, (end - start) / page_bytes()))
        .collect();
    assert!(!own.is_empty());
    for need in [Evidence::FLAGS, Evidence::COUNTS, Evidence::FLAGS | Evidence::COUNTS | Evidence::HUGE] {
        let mut checked = 0;
        for page in pages(&target, &own, need) {
            let Some(frame) = page.frame() else { continue };
            checked += 1;
            if need.contains(Evidence::FLAGS) {
                let expected = word(&flags, frame.get()) & steady.bits();
                let found = page.flags.expect("its flags").bits() & steady.bits();
                assert_eq!(found, expected, "{page:?}");
            }
            if need.contains(Evidence::COUNTS) {
                assert_eq!(page.map_count, Some(word(&counts, frame.get())), "{page:?}");
            }
        }
        assert!(checked > 15_000, "{checked} pages checked");
    }
}

fn reservations_cost_nothing() {
    // One region; and one for each page and each gap. Kernels before about 6.15 always have the latter: they do not
    // merge touched regions with untouched ones.
    for protection in [libc::PROT_NONE, libc::PROT_READ] {
        reservation_costs_nothing(protection);
    }
}

/// `protection` is that of the pages in it that were written.
fn reservation_costs_nothing(protection: i32) {
    let mut puppet = Puppet::start();
    let reserved = puppet.does("reserved", &[RESERVED]);
    let inside = 100;
    for part in 0..inside {
        let page = reserved + part * (RESERVED / inside) / page_bytes() * page_bytes();
        puppet.does("protect", &[page, page_bytes(), 3]);
        puppet.writes(page, 1);
        // If this makes it one region again, the regions do not help to find populated pages.
        puppet.does("protect", &[page, page_bytes(), protection as u64]);
    }
    let target = puppet.0.attach();
    let space = AddressSpace::of(&target).expect("a space");
    if !space.availability().categories.contains(pmdb::process::Categories::HUGE) {
        return skip("walk::reservations_cost_nothing", "no PAGEMAP_SCAN");
    }
    let (mut chunks, mut present, mut all) = (0, 0, 0);
    let range = support::range(reserved, RESERVED);
    let started = std::time::Instant::now();
    let mut swept = space.pages(&[range], Evidence::ENTRIES);
    while let Some(chunk) = swept.next().expect("a sweep") {
        chunks += 1;
        for page in chunk.pages() {
            all += page.pages;
            present += if page.state() == State::Present { page.pages } else { 0 };
        }
    }
    assert_eq!((present, all), (inside, RESERVED / page_bytes()));
    let inside_it = space.viewed_regions().iter();
    let regions = inside_it.filter(|viewed| range.intersection(viewed.range()).is_some()).count();
    // In each region the scans begin small and double.
    let most = 1000 + 20 * (regions - 1);
    assert!(chunks < most, "{chunks} chunks in {regions} regions");
    // Reading every entry takes six seconds on a fast machine.
    assert!(started.elapsed().as_secs() < 3, "{:?}", started.elapsed());
}

/// The fields of smaps in bytes, for each region by its start.
fn smaps(pid: u32) -> BTreeMap<u64, BTreeMap<String, u64>> {
    let text = std::fs::read(format!("/proc/{pid}/smaps")).expect("its smaps");
    let mut all = BTreeMap::new();
    let mut start = 0;
    for line in String::from_utf8_lossy(&text).lines() {
        let first = line.split_whitespace().next().unwrap_or_default();
        if let Some(field) = first.strip_suffix(':') {
            let number = line.split_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok());
            let fields: &mut BTreeMap<String, u64> = all.entry(start).or_default();
            fields.extend(number.map(|kib| (field.to_owned(), kib * 1024)));
        } else if let Some((begin, _)) = first.split_once('-') {
            start = u64::from_str_radix(begin, 16).expect("an address");
        }
    }
    all
}

fn regions_add_up_to_smaps() {
    let puppet = still();
    let target = puppet.0.attach();
    let space = AddressSpace::of(&target).expect("a space");
    // The test compares little of files: other processes map and unmap their pages at any time.
    let is_steady = |viewed: &ViewedRegion| viewed.region.inode == 0 || viewed.backing == pmdb::inspect::Backing::Shmem;
    let (all, smaps) = (0..50)
        .find_map(|_| {
            let before = stats_of_all(&space);
            let smaps = smaps(puppet.0.pid());
            // smaps counts a migrating page as present; the page map shows it as migrating.
            let mut both = before.iter().zip(stats_of_all(&space));
            let is_quiet = both.all(|((viewed, one), (_, other))| *one == other || !is_steady(viewed));
            is_quiet.then_some((before, smaps))
        })
        .expect("a moment in which no page is moved");
    assert_eq!(all.len(), space.viewed_regions().len());
    let mut compared = 0;
    for (viewed, stats) in all {
        let fields = &smaps[&viewed.range().start().get()];
        let field = |name: &str| fields.get(name).copied().unwrap_or_default();
        match (stats.swapped, viewed.backing) {
            // Of shared memory it may not show.
            (Err(_), pmdb::inspect::Backing::Shmem) => {}
            (swapped, _) => assert_eq!(swapped, Ok(field("Swap")), "{viewed:?}"),
        }
        if let Ok(huge) = stats.huge {
            let pmd = field("AnonHugePages") + field("ShmemPmdMapped") + field("FilePmdMapped");
            assert_eq!(huge, pmd, "{viewed:?}");
        }
        if !is_steady(viewed) {
            continue;
        }
        if let (Ok(shared), Ok(private)) = (stats.shared, stats.private) {
            let of = |kind: &str| field(&format!("{kind}_Clean")) + field(&format!("{kind}_Dirty"));
            assert_eq!(shared + private, field("Rss"), "{viewed:?}");
            assert_eq!((shared, private), (of("Shared"), of("Private")), "{viewed:?}");
            compared += 1;
        } else {
            assert!(!support::is_root(), "{viewed:?}");
        }
    }
    assert!(compared > 3, "{compared}");
}

fn stats_of_all(space: &AddressSpace) -> Vec<(&ViewedRegion, RegionStats)> {
    let mut all = Vec::new();
    let mut counts = space.region_stats(&space.spans(), Evidence::COUNTS | Evidence::HUGE);
    while let Some((viewed, stats)) = counts.next().expect("their stats") {
        all.push((space.viewed_region(viewed.range().start()).expect("a region"), stats));
    }
    all
}

fn a_region_that_went_is_said() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 3);
    let fixed = puppet.maps("shared", 1);
    puppet.writes(memory, 3);
    let target = puppet.0.attach();
    let space = AddressSpace::of(&target).expect("a space");
    let spans = [support::range(memory, 3 * page_bytes()), support::range(fixed, page_bytes())];
    let mut spans = spans.to_vec();
    spans.sort();
    let mut asked = false;
    let mut swept = space.pages(&spans, Evidence::ENTRIES);
    while swept.next().expect("a sweep").is_some() {
        if !std::mem::replace(&mut asked, true) {
            puppet.unmaps(memory + page_bytes(), 1);
        }
    }
    let changed = swept.changed_ranges();
    let of = space.viewed_region(at(memory)).expect("its region").range();
    assert_eq!(changed, [of]);
}

/// Of very many regions the text of maps is compared in pieces during the sweep.
fn a_region_among_very_many_that_changes_is_said() {
    const COUNT: u64 = 6000;
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", COUNT);
    for page in (0..COUNT).step_by(2) {
        let read_only = [memory + page * page_bytes(), page_bytes(), 1];
        puppet.does("protect", &read_only);
    }
    let spans = [support::range(memory, COUNT * page_bytes())];
    let target = puppet.0.attach();
    for page in [1, 1001, COUNT / 2 + 1, COUNT - 3] {
        let space = AddressSpace::of(&target).expect("a space");
        let changes = at(memory + page * page_bytes());
        let mut swept = space.pages(&spans, Evidence::ENTRIES);
        while let Some(chunk) = swept.next().expect("a sweep") {
            let is_it = chunk.region.map(|viewed| viewed.range().start()) == Some(changes);
            if is_it {
                // Without permissions it merges with no neighbour.
                puppet.does("protect", &[changes.get(), page_bytes(), 0]);
            }
        }
        let changed = swept.changed_ranges();
        assert_eq!(changed, [support::range(changes.get(), page_bytes())]);
    }
    let space = AddressSpace::of(&target).expect("a space");
    let mut quiet = space.pages(&spans, Evidence::ENTRIES);
    while quiet.next().expect("a sweep").is_some() {}
    assert_eq!(quiet.changed_ranges(), []);
}

/// Sweeps, and has the target do something when the first chunk comes.
fn interrupted_by(verb: &str) -> Error {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 20_000);
    puppet.writes(memory, 20_000);
    let target = puppet.0.attach();
    let space = AddressSpace::of(&target).expect("a space");
    let mut asked = false;
    let mut swept = space.pages(&space.spans(), Evidence::ENTRIES);
    loop {
        match swept.next() {
            Ok(chunk) => assert!(chunk.is_some(), "it is gone"),
            Err(error) => break error,
        }
        if !std::mem::replace(&mut asked, true) {
            puppet.0.send(verb);
            match verb {
                "exit" => puppet.0.end(),
                _ => assert_eq!(puppet.0.line(), "ready"),
            }
        }
    }
}

fn an_exit_half_way_is_said() {
    let error = interrupted_by("exit");
    assert!(error.to_string().contains("exited"), "{error}");
}

fn an_exec_half_way_is_said() {
    let error = interrupted_by("exec");
    assert!(error.to_string().contains("executed another program"), "{error}");
}

fn it_stops_when_told() {
    let puppet = still();
    let target = puppet.0.attach();
    let space = AddressSpace::of(&target).expect("a space");
    let mut swept = space.pages(&space.spans(), Evidence::ENTRIES).with_budget(Budget::unlimited().at_most(1));
    let mut chunks = 0;
    let stopped = loop {
        match swept.next() {
            Ok(chunk) => assert!(chunk.is_some(), "it goes on"),
            Err(error) => break error,
        }
        chunks += 1;
    };
    assert!(matches!(stopped, Error::OutOfBudget(OutOfBudget::Steps)), "{stopped:?}");
    assert!(chunks > 0);
}

fn frames_of_the_machine() {
    const NAME: &str = "walk::frames_of_the_machine";
    let machine = pmdb::process::machine();
    let range = |first: u64, frames: u64| {
        FrameRange::new(FrameNumber::new(first), FrameNumber::new(first + frames)).expect("a range")
    };
    if File::open("/proc/kpageflags").is_err() {
        let mut refused = machine_frames(&machine, range(1, 1), Evidence::FLAGS);
        assert!(matches!(refused.next(), Err(Error::Target(_))));
        return skip(NAME, "frames are for root");
    }
    let mut rows: Vec<FrameRow> = Vec::new();
    let mut frames = machine_frames(&machine, range(16, 20_000), Evidence::FLAGS | Evidence::COUNTS);
    while let Some(step) = frames.next().expect("a sweep") {
        if let Step::Found(row) = step {
            rows.push(row);
        }
    }
    assert_eq!(frames.finish().frames, 20_000);
    let mut next = 16;
    for row in &rows {
        assert_eq!(row.first.get(), next);
        next += row.frames;
        assert!(row.facts.flags.is_some() && row.facts.map_count.is_some());
    }
    assert_eq!(next, 20_016);
    let mut nothing = machine_frames(&machine, range(1 << 50, 10), Evidence::FLAGS);
    while let Some(step) = nothing.next().expect("no failure") {
        assert_eq!(step, Step::Visited { done: 0, total: 10 });
    }
    assert_eq!(nothing.finish().frames, 0);
}
