//! The sums of pmdb for a stopped process equal those of smaps, region by region and to the byte.

use super::Test;
use super::puppet::Puppet;
use super::support::{self, huge_page_bytes, page_bytes, pool_page_bytes, skip};
use super::target::Target;
use pmdb::inspect::{AddressSpace, Backing, Evidence, RegionStats};
use pmdb::report::HowMapped;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

pub const TESTS: &[Test] = &[
    ("reconcile::a_shell", a_shell),
    ("reconcile::python3", python3),
    ("reconcile::huge_pages", huge_pages),
    ("reconcile::the_pool", the_pool),
    ("reconcile::swapped_memory", swapped_memory),
];

/// The fields of each region in bytes, by its start address, decoded without pmdb.
fn plain_smaps(pid: u32) -> BTreeMap<u64, BTreeMap<String, u64>> {
    let text = std::fs::read(format!("/proc/{pid}/smaps")).expect("its smaps");
    let mut regions = BTreeMap::new();
    let mut current: Option<&mut BTreeMap<String, u64>> = None;
    for line in String::from_utf8_lossy(&text).lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(value)) = (words.next(), words.next()) else {
            continue;
        };
        match (name.strip_suffix(':'), value.parse::<u64>()) {
            (Some(name), Ok(kib)) => {
                let region = current.as_mut().expect("a region before its fields");
                region.insert(name.to_owned(), kib << 10);
            }
            (None, _) => {
                let start = name.split('-').next().expect("a range");
                let start = u64::from_str_radix(start, 16).expect("an address");
                current = Some(regions.entry(start).or_default());
            }
            _ => {}
        }
    }
    regions
}

/// The differences in words; `None` if there are none.
fn difference(stats: &RegionStats, backing: Backing, smaps: &BTreeMap<String, u64>) -> Option<String> {
    let kernel = |names: &[&str]| -> u64 { names.iter().filter_map(|name| smaps.get(*name)).sum() };
    let by_pmd: u64 = stats.folios.as_ref().map_or(0, |folios| {
        let by_pmd = folios.iter().filter(|one| one.mapped == HowMapped::Pmd);
        by_pmd.map(|one| one.bytes).sum()
    });
    let shared = stats.shared.clone().expect("what is shared");
    let private = stats.private.clone().expect("what is private");
    let zero = stats.zero.clone().expect("what is the zero page");
    // The kernel writes whole KiB, cut off. Its Pss of the hugetlb pool is 0, which is no share.
    let pss = match backing {
        Backing::Hugetlb => stats.pss.clone().map_or(0, |pss| panic!("{pss} bytes are the share of the pool")),
        _ => stats.pss.clone().expect("its share") >> 10 << 10,
    };
    let rss = kernel(&["Rss", "Shared_Hugetlb", "Private_Hugetlb"]);
    // Shared memory in swap has empty entries, so the number may be unknown. If it is known it is right.
    let swapped = match (&stats.swapped, backing) {
        (Err(_), Backing::Shmem) => kernel(&["Swap"]),
        (swapped, _) => swapped.clone().expect("what is swapped"),
    };
    let pairs = [
        ("shared", shared, kernel(&["Shared_Clean", "Shared_Dirty", "Shared_Hugetlb"])),
        ("private", private, kernel(&["Private_Clean", "Private_Dirty", "Private_Hugetlb"])),
        ("rss", shared + private, rss),
        ("present", stats.rss.clone().unwrap_or(stats.present - zero), rss),
        ("pss", pss, kernel(&["Pss"])),
        ("swap", swapped, kernel(&["Swap"])),
        ("pmd", by_pmd, kernel(&["AnonHugePages", "ShmemPmdMapped", "FilePmdMapped"])),
    ];
    let differing = pairs.iter().filter(|(_, ours, theirs)| ours != theirs);
    let words: Vec<String> =
        differing.map(|(name, ours, theirs)| format!("{name}: {ours} here, {theirs} in smaps")).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// Every region of a stopped process agrees. Other processes map and unmap the same files meanwhile, so each region has
/// to agree once.
fn agrees(name: &str, process: &Target) {
    const TRIES: u32 = 300;
    if !support::is_root() {
        return skip(name, "map counts are for root");
    }
    process.stop();
    let target = process.attach();
    if !target.process.categories().contains(pmdb::process::Categories::HUGE) {
        return skip(name, "no PAGEMAP_SCAN");
    }
    let need = Evidence::COUNTS | Evidence::HUGE | Evidence::ORDER;
    let space = AddressSpace::of(&target).expect("a space");
    let mut left: BTreeSet<u64> = space.viewed_regions().iter().map(|one| one.range().start().get()).collect();
    assert!(left.len() > 3);
    let mut differing = Vec::new();
    for _ in 0..TRIES {
        differing.clear();
        let smaps = plain_smaps(process.pid());
        let ranges = space.spans().into_iter().filter(|range| left.contains(&range.start().get()));
        let mut counts = space.region_stats(&ranges.collect::<Vec<_>>(), need);
        while let Some((viewed, stats)) = counts.next().expect("to count") {
            let start = viewed.range().start().get();
            match difference(&stats, viewed.backing, &smaps[&start]) {
                None => _ = left.remove(&start),
                Some(words) => differing.push(format!("{start:#x} {}: {words}", viewed.region.name)),
            }
        }
        if left.is_empty() {
            return;
        }
    }
    panic!("{}", differing.join("\n"));
}

fn ready(command: &mut Command) -> Target {
    let mut target = Target::spawn(command);
    assert_eq!(target.line(), "ready");
    target
}

fn a_shell() {
    let shell = ready(Command::new("sh").args(["-c", "echo ready; read line"]));
    agrees("reconcile::a_shell", &shell);
}

fn python3() {
    const NAME: &str = "reconcile::python3";
    if Command::new("python3").arg("--version").output().is_err() {
        return skip(NAME, "no python3");
    }
    let program = "import json, re, threading; print('ready', flush=True); input()";
    let python = ready(Command::new("python3").args(["-c", program]));
    agrees(NAME, &python);
}

/// Whole, torn, with a copied page, the small and the huge zero page, shared memory and copies of files.
fn huge_pages() {
    const NAME: &str = "reconcile::huge_pages";
    const MADV_DONTNEED: i32 = 4;
    const MADV_COLLAPSE: i32 = 25;
    let Some(bytes) = huge_page_bytes() else {
        return skip(NAME, "no transparent huge pages");
    };
    let pages = bytes / page_bytes();
    let mut puppet = Puppet::start();
    let memory = puppet.maps("huge", 4 * pages);
    puppet.writes(memory, 4 * pages);
    for index in 0..4 {
        _ = puppet.advises(memory + index * bytes, pages, MADV_COLLAPSE);
    }
    puppet.advises(memory + bytes, 9, MADV_DONTNEED).expect("to drop pages");
    let zero = puppet.maps("huge", 2 * pages);
    puppet.reads(zero, 1);
    let small = puppet.maps("anonymous", 40);
    puppet.reads(small, 20);
    puppet.writes(small + 10 * page_bytes(), 20);
    let shared = puppet.maps("shared", 50);
    puppet.writes(shared, 33);
    let copies = puppet.maps("copied", 12);
    puppet.reads(copies, 6);
    puppet.writes(copies + 3 * page_bytes(), 6);
    let child = puppet.does("fork", &[memory, 5]);
    agrees(NAME, &puppet.0);
    use rustix::process::{Pid, Signal, kill_process};
    kill_process(Pid::from_raw(child as i32).expect("its number"), Signal::KILL).expect("to end it");
}

fn the_pool() {
    const NAME: &str = "reconcile::the_pool";
    let pool = match super::system::huge_pages() {
        Ok(pool) => pool,
        Err(reason) => return skip(NAME, &reason),
    };
    let mut puppet = Puppet::start();
    let memory = puppet.maps("hugetlb", 2 * pool_page_bytes() / page_bytes());
    puppet.writes(memory, 1);
    agrees(NAME, &puppet.0);
    drop(puppet);
    drop(pool);
}

fn swapped_memory() {
    const NAME: &str = "reconcile::swapped_memory";
    const MADV_PAGEOUT: i32 = 21;
    let swap = match super::system::swap() {
        Ok(swap) => swap,
        Err(reason) => return skip(NAME, &reason),
    };
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 64);
    puppet.writes(memory, 64);
    puppet.advises(memory, 32, MADV_PAGEOUT).expect("to page out");
    let shared = puppet.maps("shared", 16);
    puppet.writes(shared, 16);
    puppet.advises(shared, 16, MADV_PAGEOUT).expect("to page out");
    agrees(NAME, &puppet.0);
    drop(puppet);
    drop(swap);
}
