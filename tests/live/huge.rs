//! Folios of every size, mapped whole and in part, against heads and tails counted by hand.

use super::Test;
use super::answers::program;
use super::puppet::Puppet;
use super::states::{detail, pages};
use super::support::{self, at, huge_page_bytes, page, page_bytes, plain_entry, pool_page_bytes, skip};
use pmdb::inspect::{AddressSpace, Evidence, FolioFit, RegionStats, Step, machine_frames};
use pmdb::kernel::{FrameNumber, FrameRange, Kind, State};
use pmdb::process::{Categories, Target};
use pmdb::report::{HowMapped, LargeFolios, Reason};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

pub const TESTS: &[Test] = &[
    ("huge::whole_and_partly_unmapped", whole_and_partly_unmapped),
    ("huge::mapped_page_by_page", mapped_page_by_page),
    ("huge::moved_where_it_cannot_be_huge", moved_where_it_cannot_be_huge),
    ("huge::half_unmapped", half_unmapped),
    ("huge::folios_of_files", folios_of_files),
    ("huge::folios_of_many_sizes", folios_of_many_sizes),
    ("huge::pages_of_the_pool", pages_of_the_pool),
    ("huge::files_of_the_mounted_pool", files_of_the_mounted_pool),
    ("huge::copied_in_part_by_a_child", copied_in_part_by_a_child),
    ("huge::zones_nodes_and_cgroups", zones_nodes_and_cgroups),
];

const MADV_DONTNEED: i32 = 4;
const MADV_POPULATE_WRITE: i32 = 23;
const MADV_COLLAPSE: i32 = 25;
const FRAME: u64 = (1 << 55) - 1;
const HEAD: u64 = 1 << 15;
const TAIL: u64 = 1 << 16;

pub fn word(file: &str, frame: u64) -> u64 {
    let mut bytes = [0; 8];
    let read = File::open(file).and_then(|file| file.read_at(&mut bytes, frame * 8));
    assert_eq!(read.expect("a word of root's"), 8);
    u64::from_ne_bytes(bytes)
}

/// The first frame of the folio of `frame` and how many frames it has, a word at a time in both directions.
fn plain_folio(frame: u64) -> (u64, u64) {
    let flags = |frame| word("/proc/kpageflags", frame);
    if flags(frame) & (HEAD | TAIL) == 0 {
        return (frame, 1);
    }
    let mut head = frame;
    while flags(head) & HEAD == 0 {
        head -= 1;
    }
    let mut end = frame.max(head) + 1;
    while flags(end) & TAIL != 0 {
        end += 1;
    }
    (head, end - head)
}

/// Memory of `count` huge pages, each mapped by one entry; `None` if the kernel gave none.
fn huge_memory(puppet: &mut Puppet, name: &str, count: u64) -> Option<(u64, u64)> {
    let Some(bytes) = huge_page_bytes() else {
        skip(name, "no transparent huge pages");
        return None;
    };
    if !support::is_root() {
        skip(name, "page flags are for root");
        return None;
    }
    let pages = bytes / page_bytes();
    let memory = puppet.maps("huge", count * pages);
    puppet.writes(memory, count * pages);
    for index in 0..count {
        _ = puppet.advises(memory + index * bytes, pages, MADV_COLLAPSE);
    }
    let target = puppet.0.attach();
    if !target.process.categories().contains(Categories::HUGE) {
        skip(name, "no PAGEMAP_SCAN");
        return None;
    }
    for index in 0..count {
        if detail(&target, memory + index * bytes).huge != Ok(true) {
            skip(name, "the kernel gave no huge page");
            return None;
        }
    }
    Some((memory, bytes))
}

/// How the folio from the frame `head` on is mapped around `address`, whose frame is `frame`. Its entries are read one
/// by one.
fn plain_fit(pid: u32, address: u64, frame: u64, head: u64, frames: u64) -> FolioFit {
    let begin = address - (frame - head) * page_bytes();
    let is_mapped = |index: u64| {
        let entry = plain_entry(pid, begin + index * page_bytes());
        entry.is_some_and(|entry| entry >> 63 == 1 && entry & FRAME == head + index)
    };
    match (begin / page_bytes()).is_multiple_of(frames) {
        _ if !(0..frames).all(is_mapped) => FolioFit::Part,
        true => FolioFit::Aligned,
        false => FolioFit::Unaligned,
    }
}

/// The pages of `range` by the word of each group of `walk RANGE by folio`, which `where folio == WORD` counts too.
fn by_folio(puppet: &Puppet, memory: u64, pages: u64) -> BTreeMap<String, u64> {
    let range = format!("{memory:#x}, +{:#x}", pages * page_bytes());
    let words = FolioFit::ALL.iter().map(|fit| fit.word());
    let counted = words.clone().map(|word| format!("print count({range} where folio == \"{word}\")"));
    let lines: Vec<String> = std::iter::once(format!("walk {range} where present by folio")).chain(counted).collect();
    let said = program(&[], puppet.0.pid(), true, &lines);
    let said: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let groups = said.iter().filter(|row| row["type"] == "group");
    let number = |value: &Value| value.as_u64().expect("a number");
    let groups: BTreeMap<String, u64> =
        groups.map(|row| (row["key"].as_str().expect("a key").to_owned(), number(&row["pages"]))).collect();
    let counted = said.iter().filter(|row| row["type"] == "value").map(|row| number(&row["as_number"]));
    for (word, pages) in words.zip(counted) {
        assert_eq!(groups.get(word).copied().unwrap_or_default(), pages, "{word}: {groups:?}");
    }
    groups
}

/// Each page that is mapped in `count` pages from `memory` on has the order that is counted by hand, alone and in a
/// sweep, and its folio is mapped as its entries show.
fn check_orders(puppet: &Puppet, target: &Target, memory: u64, count: u64) {
    let swept = pages(target, &[(memory, count)], Evidence::FOLIOS);
    let mut last: Option<(u64, u64)> = None;
    let mut fit: Option<((u64, u64), FolioFit)> = None;
    let mut fits = BTreeMap::new();
    for (index, swept) in swept.iter().enumerate() {
        let address = memory + index as u64 * page_bytes();
        assert_eq!(swept.address, at(address));
        let entry = plain_entry(puppet.0.pid(), address).expect("an entry");
        if entry >> 63 == 0 {
            assert_eq!((swept.order, swept.folio), (None, None));
            continue;
        }
        let frame = entry & FRAME;
        let (head, frames) = match last {
            Some((head, frames)) if (head..head + frames).contains(&frame) => (head, frames),
            _ => plain_folio(frame),
        };
        last = Some((head, frames));
        assert_eq!(swept.order.map(|order| 1 << order), Some(frames), "{address:#x}");
        // It is the same for all pages that are mapped at their places.
        let place = (head, address.wrapping_sub(frame * page_bytes()));
        let expected = match fit {
            Some((same, fit)) if same == place => fit,
            _ => plain_fit(puppet.0.pid(), address, frame, head, frames),
        };
        fit = Some((place, expected));
        assert_eq!(swept.folio, (frames > 1).then_some(expected), "{address:#x}");
        let word = if frames > 1 { expected.word() } else { "no large folio" };
        *fits.entry(word.to_owned()).or_default() += 1;
        if index % 97 == 0 {
            let (folio, mapping) = detail(target, address).folio.expect("its folio");
            assert_eq!((folio.head.get(), folio.frames()), (head, frames));
            assert_eq!(mapping.aligned, (address / page_bytes()) % frames == frame - head);
        }
    }
    assert_eq!(by_folio(puppet, memory, count), fits);
}

fn stats(target: &Target, address: u64) -> RegionStats {
    let space = AddressSpace::of(target).expect("a space");
    let region = space.viewed_region(at(address)).expect("its region");
    let mut found = None;
    let need = Evidence::COUNTS | Evidence::HUGE | Evidence::ORDER;
    let mut counts = space.region_stats(&[region.range()], need);
    while let Some((_, stats)) = counts.next().expect("to count") {
        found = Some(stats);
    }
    found.expect("what is in it")
}

/// The folios of the region at `address` that have `size` bytes and are mapped so.
fn folios(target: &Target, address: u64, size: u64, how: HowMapped) -> Option<LargeFolios> {
    let folios = stats(target, address).folios.expect("its folios");
    folios.into_iter().find(|one| one.size == size && one.mapped == how)
}

fn whole_and_partly_unmapped() {
    let mut puppet = Puppet::start();
    let Some((memory, bytes)) = huge_memory(&mut puppet, "huge::whole_and_partly_unmapped", 3) else {
        return;
    };
    let second = memory + bytes;
    let target = puppet.0.attach();
    let all = folios(&target, memory, bytes, HowMapped::Pmd).expect("huge pages");
    assert_eq!((all.bytes, all.partly, all.unaligned), (3 * bytes, 0, 0));
    // The same of the frames, from the middle of one on.
    let frame = plain_entry(puppet.0.pid(), second).expect("an entry") & FRAME;
    let frames = bytes / page_bytes();
    let range = FrameRange::new(FrameNumber::new(frame + 5), FrameNumber::new(frame + frames));
    let mut orders = Vec::new();
    let mut swept = machine_frames(&target.machine, range.expect("frames"), Evidence::ORDER);
    while let Some(step) = swept.next().expect("a sweep") {
        if let Step::Found(one) = step {
            orders.push((one.frames, one.facts.order));
        }
    }
    assert_eq!(orders, [(frames - 5, Some(order_of(bytes)))]);
    puppet.advises(second + 7 * page_bytes(), 1, MADV_DONTNEED).expect("to drop a page");
    check_orders(&puppet, &target, memory, 3 * bytes / page_bytes());
    let whole = folios(&target, memory, bytes, HowMapped::Pmd).expect("those left");
    assert_eq!((whole.bytes, whole.partly), (2 * bytes, 0));
    let torn = folios(&target, memory, bytes, HowMapped::Pte).expect("the torn one");
    let left = bytes - page_bytes();
    assert_eq!((torn.bytes, torn.partly, torn.unaligned), (left, left, 0));
    let (_, mapping) = detail(&target, second).folio.expect("its folio");
    assert_eq!(mapping.mapped_pages, left / page_bytes());
    assert_eq!(detail(&target, second).huge, Ok(false));
}

fn order_of(bytes: u64) -> u8 {
    (bytes / page_bytes()).trailing_zeros() as u8
}

fn mapped_page_by_page() {
    let mut puppet = Puppet::start();
    let Some((memory, bytes)) = huge_memory(&mut puppet, "huge::mapped_page_by_page", 1) else {
        return;
    };
    // Other permissions for one page split the mapping; restoring them does not join it.
    let (read, write) = (libc::PROT_READ as u64, libc::PROT_WRITE as u64);
    let middle = memory + bytes / 2;
    puppet.does("protect", &[middle, page_bytes(), read]);
    puppet.does("protect", &[middle, page_bytes(), read | write]);
    let target = puppet.0.attach();
    if detail(&target, memory).huge != Ok(false) {
        return skip("huge::mapped_page_by_page", "the kernel joined the mapping again");
    }
    check_orders(&puppet, &target, memory, bytes / page_bytes());
    let split = folios(&target, memory, bytes, HowMapped::Pte).expect("the split one");
    assert_eq!((split.bytes, split.partly, split.unaligned), (bytes, 0, 0));
    let (_, mapping) = detail(&target, middle).folio.expect("its folio");
    assert_eq!((mapping.mapped_pages, mapping.aligned), (bytes / page_bytes(), true));
}

fn moved_where_it_cannot_be_huge() {
    const NAME: &str = "huge::moved_where_it_cannot_be_huge";
    let mut puppet = Puppet::start();
    let Some((memory, bytes)) = huge_memory(&mut puppet, NAME, 1) else {
        return;
    };
    let room = puppet.maps("reserved", 3 * bytes / page_bytes());
    let askew = room.next_multiple_of(bytes) + page_bytes();
    let answer = puppet.asks("move", &[memory, bytes, askew]);
    assert_eq!(answer as u64, askew, "to move it");
    let target = puppet.0.attach();
    check_orders(&puppet, &target, askew, bytes / page_bytes());
    let moved = folios(&target, askew, bytes, HowMapped::Pte).expect("the moved one");
    assert_eq!((moved.bytes, moved.partly, moved.unaligned), (bytes, 0, bytes));
    let (_, mapping) = detail(&target, askew).folio.expect("its folio");
    assert!(!mapping.aligned);
}

/// Two regions begin and end in the middle of a huge page: what of it lies outside is mapped nowhere.
fn half_unmapped() {
    let mut puppet = Puppet::start();
    let Some((memory, bytes)) = huge_memory(&mut puppet, "huge::half_unmapped", 3) else {
        return;
    };
    let (pages, half) = (bytes / page_bytes(), bytes / 2);
    puppet.unmaps(memory, pages / 2);
    puppet.unmaps(memory + 2 * bytes + half, pages / 2);
    let target = puppet.0.attach();
    check_orders(&puppet, &target, memory + half, 2 * pages);
    let expected = [("aligned", pages), ("part", pages)].map(|(word, pages)| (word.to_owned(), pages));
    assert_eq!(by_folio(&puppet, memory + half, 2 * pages), BTreeMap::from(expected));
    // A range may begin anywhere.
    assert_eq!(by_folio(&puppet, memory + bytes + half, pages).into_values().sum::<u64>(), pages);
}

/// A file is mapped from its second page on, and not to its end: its folios are not aligned, and the first and the last
/// are mapped in part.
fn folios_of_files() {
    const NAME: &str = "huge::folios_of_files";
    const PAGES: u64 = 2048;
    if !support::is_root() {
        return skip(NAME, "page flags are for root");
    }
    let folder = std::env::current_exe().expect("this program");
    let mut file = tempfile::tempfile_in(folder.parent().expect("its folder")).expect("a file");
    file.write_all(&vec![7; (PAGES * page_bytes()) as usize]).expect("room for it");
    file.sync_all().expect("to save it");
    let mut puppet = Puppet::start();
    let mapped = PAGES - 20;
    let memory = puppet.maps_file_at(&file, page_bytes(), mapped, libc::PROT_READ, libc::MAP_SHARED);
    puppet.reads(memory, mapped);
    let target = puppet.0.attach();
    let fits: Vec<_> = pages(&target, &[(memory, mapped)], Evidence::FOLIOS).iter().map(|page| page.folio).collect();
    if fits.iter().all(Option::is_none) {
        return skip(NAME, "the file system has no large folios");
    }
    check_orders(&puppet, &target, memory, mapped);
}

fn folios_of_many_sizes() {
    const NAME: &str = "huge::folios_of_many_sizes";
    if !support::is_root() {
        return skip(NAME, "page flags are for root");
    }
    for kib in [16u64, 64, 512] {
        let setting = match super::system::folios(kib) {
            Ok(setting) => setting,
            Err(reason) => {
                skip(NAME, &reason);
                continue;
            }
        };
        let mut puppet = Puppet::start();
        let count = 512;
        let memory = puppet.maps("huge", count);
        // A page that was read first maps the zero page, and its copy is a single page.
        let populated = puppet.advises(memory, count, MADV_POPULATE_WRITE);
        drop(setting);
        if let Err(error) = populated {
            return skip(NAME, &format!("MADV_POPULATE_WRITE: error {error} (Linux 5.14)"));
        }
        let target = puppet.0.attach();
        check_orders(&puppet, &target, memory, count);
        let size = kib << 10;
        let Some(all) = folios(&target, memory, size, HowMapped::Pte) else {
            skip(NAME, &format!("the kernel gave no folio of {kib} KiB"));
            continue;
        };
        // If memory is short some folios are smaller. All are mapped whole and aligned.
        assert_eq!((all.partly, all.unaligned), (0, 0), "{all:?}");
        assert_eq!(all.bytes % size, 0);
        let swept = pages(&target, &[(memory, count)], Evidence::ORDER | Evidence::HUGE);
        let of_size = swept.iter().filter(|page| page.order == Some(all.order));
        assert_eq!(of_size.count() as u64 * page_bytes(), all.bytes);
        assert!(swept.iter().all(|page| page.huge == Some(false)));
    }
}

fn pages_of_the_pool() {
    const NAME: &str = "huge::pages_of_the_pool";
    let pool = match super::system::huge_pages() {
        Ok(pool) => pool,
        Err(reason) => return skip(NAME, &reason),
    };
    if !support::is_root() {
        return skip(NAME, "page flags are for root");
    }
    let mut puppet = Puppet::start();
    let bytes = pool_page_bytes();
    let memory = puppet.maps("hugetlb", 2 * bytes / page_bytes());
    puppet.writes(memory, 1);
    let target = puppet.0.attach();
    check_orders(&puppet, &target, memory, 2 * bytes / page_bytes());
    let pooled = folios(&target, memory, bytes, HowMapped::Hugetlb).expect("the one in use");
    assert_eq!((pooled.bytes, pooled.partly, pooled.unaligned), (bytes, 0, 0));
    let stats = stats(&target, memory);
    assert_eq!((stats.private, stats.shared), (Ok(bytes), Ok(0)));
    assert!(matches!(stats.pss, Err(Reason::NotApplicable(_))), "{:?}", stats.pss);
    drop(puppet);
    drop(pool);
}

/// A page that is not mapped yet has no frame with flags: the filesystem tells.
fn files_of_the_mounted_pool() {
    const NAME: &str = "huge::files_of_the_mounted_pool";
    let folder = std::env::temp_dir().join(format!("pmdb-pool-{}", std::process::id()));
    let pool = match super::system::huge_files(&folder) {
        Ok(pool) => pool,
        Err(reason) => return skip(NAME, &reason),
    };
    let bytes = pool_page_bytes();
    let path = folder.join("file");
    let mut options = File::options();
    let file = options.read(true).write(true).create_new(true).open(&path);
    let file = file.expect("a file of the pool");
    let pages = bytes / page_bytes();
    let mut puppet = Puppet::start();
    for flags in [libc::MAP_SHARED, libc::MAP_PRIVATE] {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        file.set_len(2 * bytes).expect("room for two pages");
        let memory = puppet.maps_file(&file, 2 * pages, prot, flags);
        puppet.writes(memory, 1);
        let target = puppet.0.attach();
        for (address, state) in [(memory, State::Present), (memory + bytes, State::Untouched)] {
            let page = detail(&target, address).page;
            assert_eq!((page.state(), page.kind), (state, Some(Kind::Hugetlb)));
        }
        let swept = self::pages(&target, &[(memory, 2 * pages)], Evidence::empty());
        assert!(swept.iter().all(|page| page.kind == Some(Kind::Hugetlb)));
        puppet.unmaps(memory, 2 * pages);
        // The file's pages, and those reserved for its mapping, go back to the pool.
        file.set_len(0).expect("an empty file");
    }
    drop(puppet);
    drop(file);
    drop(pool);
    assert!(!folder.exists());
}

/// A child has copied some pages of a huge one: each page has its own count, and its own answer to whether it is
/// exclusive.
fn copied_in_part_by_a_child() {
    const NAME: &str = "huge::copied_in_part_by_a_child";
    let mut puppet = Puppet::start();
    let Some((memory, bytes)) = huge_memory(&mut puppet, NAME, 1) else {
        return;
    };
    let copied = 3;
    let child = puppet.does("fork", &[memory, copied]);
    let target = puppet.0.attach();
    if target.machine.has_exact_map_counts() != Some(true) {
        return skip(NAME, "map counts may be averages");
    }
    let need = Evidence::COUNTS | Evidence::HUGE | Evidence::ORDER;
    let swept = pages(&target, &[(memory, bytes / page_bytes())], need);
    for page in &swept {
        let frame = plain_entry(puppet.0.pid(), page.address.get()).expect("an entry") & FRAME;
        let count = word("/proc/kpagecount", frame);
        assert_eq!(page.map_count, Some(count));
        assert_eq!(page.exclusive(), Some(count == 1));
    }
    let alone = swept.iter().filter(|page| page.exclusive() == Some(true));
    assert_eq!(alone.count() as u64, copied);
    // Without map counts it is unknown where the kernel's mark is wrong.
    for page in pages(&target, &[(memory, 4)], Evidence::HUGE) {
        let said = page.exclusive();
        assert!(said.is_none() || page.huge == Some(false), "{page:?}");
    }
    puppet.does("kill", &[child]);
}

fn zones_nodes_and_cgroups() {
    const NAME: &str = "huge::zones_nodes_and_cgroups";
    if !support::is_root() {
        return skip(NAME, "frames are for root");
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 64);
    puppet.writes(memory, 64);
    let target = puppet.0.attach();
    let space = AddressSpace::of(&target).expect("a space");
    if let Err(error) = space.require(Evidence::ZONES | Evidence::CGROUPS) {
        return skip(NAME, &error.to_string());
    }
    let need = Evidence::ZONES | Evidence::CGROUPS;
    for one in pages(&target, &[(memory, 64)], need) {
        let frame = one.frame().expect("a frame");
        let zone = one.zone.expect("a zone");
        let named = space.zones().expect("zones").get(zone.index).expect("that zone");
        assert_eq!(named.node, zone.node);
        let end = named.start.get() + named.spanned;
        assert!((named.start.get()..end).contains(&frame.get()));
        assert_eq!(one.cgroup, Some(word("/proc/kpagecgroup", frame.get())));
        assert_eq!(one.bytes(page()), page_bytes());
    }
}
