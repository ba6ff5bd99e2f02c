//! `explain huge`: each reason is provoked and named, and what it says of the next fault is compared with the fault.

use super::super::Test;
use super::super::account::command::{of_type, records};
use super::super::behind::DiskFile;
use super::super::puppet::Puppet;
use super::super::states::MADV_GUARD_INSTALL;
use super::super::support::{self, huge_page_bytes, page_bytes, skip};
use super::super::system::{self, Changed};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    ("explain::not_huge_by_settings_and_advice", by_settings_and_advice),
    ("explain::not_huge_by_choice_of_the_process", by_choice_of_the_process),
    ("explain::not_huge_for_lack_of_room", for_lack_of_room),
    ("explain::not_huge_of_files_and_the_kernel", of_files_and_the_kernel),
    ("explain::not_huge_of_open_files", of_open_files),
    ("explain::not_huge_of_drivers", of_drivers),
    ("explain::not_huge_of_shared_memory", of_shared_memory),
    ("explain::not_huge_by_holes_and_sharing", by_holes_and_sharing),
    ("explain::not_huge_by_swap", by_swap),
    ("explain::not_huge_by_guards", by_guards),
    ("explain::not_huge_by_userfaults", by_userfaults),
    ("explain::not_huge_if_unused_or_read_only", if_unused_or_read_only),
    ("explain::not_huge_as_smaps_says", as_smaps_says),
];

const MADV_HUGEPAGE: i32 = libc::MADV_HUGEPAGE;
const MADV_NOHUGEPAGE: i32 = libc::MADV_NOHUGEPAGE;

/// The reasons of a range, each with who has it; one that is none is "nothing".
fn reasons(pid: u32, start: u64, bytes: u64) -> BTreeSet<(String, String)> {
    let all = records(pid, &format!("explain huge {start:#x}, +{bytes:#x}"));
    let text = |value: &Value| value.as_str().unwrap_or("nothing").to_owned();
    of_type(&all, "huge-reason").iter().map(|row| (text(&row["by"]), text(&row["reason"]))).collect()
}

/// The same, of a fault or of khugepaged.
pub fn why(pid: u32, (start, bytes): (u64, u64), who: &str) -> Vec<String> {
    reasons(pid, start, bytes).into_iter().filter(|(by, _)| by == who).map(|(_, reason)| reason).collect()
}

/// The settings of the machine for the time of a test, and a khugepaged that waits.
pub struct Quiet {
    _changed: Changed,
    _listed: Puppet,
}

/// The settings, that of the size of a PMD among them; or why there are none.
///
/// khugepaged looks at a process at once if no other one is in its list (`__khugepaged_enter` in mm/khugepaged.c).
/// Here one is, with memory, and has been looked at, before the test has its own.
pub fn set(memory: &str, more: &[&str]) -> Result<Quiet, String> {
    let bytes = huge_page_bytes().ok_or("no transparent huge pages")?;
    let is_on = memory != "never";
    let memory = format!("enabled={memory}");
    let of_size = format!("hugepages-{}kB/enabled=inherit", bytes >> 10);
    let changed = system::transparent(&[&[memory.as_str(), of_size.as_str()], more].concat())?;
    let mut listed = Puppet::start();
    let before = passes();
    let (place, bytes) = places(&mut listed, 1);
    listed.advises(place, bytes / page_bytes(), MADV_HUGEPAGE).expect("to advise");
    // If the list was not empty, khugepaged waits already, for ten seconds. A long list takes it several turns.
    let deadline = Instant::now() + Duration::from_secs(2);
    let mut woken: Option<Instant> = None;
    while is_on && passes() == before && Instant::now() < deadline {
        if woken.is_none_or(|woken| woken.elapsed() > Duration::from_millis(100)) {
            wake();
            woken = Some(Instant::now());
        }
        std::thread::yield_now();
    }
    Ok(Quiet { _changed: changed, _listed: listed })
}

/// Wakes khugepaged: it does not wait for the rest of a time that has been set anew (`scan_sleep_millisecs_store` in
/// mm/khugepaged.c). The time stays the same.
fn wake() {
    const TIME: &str = "/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs";
    let written = std::fs::read_to_string(TIME).and_then(|time| std::fs::write(TIME, time.trim()));
    written.expect("the time between its turns");
}

/// How often khugepaged has looked at all processes in its list.
fn passes() -> String {
    std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/khugepaged/full_scans").unwrap_or_default()
}

/// A place for `count` huge pages; the first of them has small pages.
fn places(puppet: &mut Puppet, count: u64) -> (u64, u64) {
    let bytes = huge_page_bytes().expect("a size");
    let pages = bytes / page_bytes();
    let memory = puppet.maps("aligned", count * pages);
    puppet.advises(memory, pages, MADV_NOHUGEPAGE).expect("to refuse huge pages");
    puppet.writes(memory, pages);
    (memory, bytes)
}

/// Whether a write to an untouched place gets a huge page. Only a write: after a read it would be a copy of the huge
/// zero page, which is small before Linux 6.13.
fn gets_huge_page(puppet: &mut Puppet, address: u64) -> bool {
    let anonymous = |puppet: &Puppet| super::super::account::rollup(puppet.0.pid())["AnonHugePages"];
    let before = anonymous(puppet);
    puppet.does("store", &[address]);
    anonymous(puppet) > before
}

/// For settings and advice of each kind: what it says, and what the next fault does.
fn by_settings_and_advice() {
    const NAME: &str = "explain::not_huge_by_settings_and_advice";
    let nothing: &[&str] = &["nothing"];
    for (setting, advice, refused) in [
        ("never", None, &["never"][..]),
        ("never", Some(MADV_HUGEPAGE), &["never"]),
        ("madvise", None, &["not_advised"]),
        ("madvise", Some(MADV_HUGEPAGE), nothing),
        ("always", None, nothing),
        ("always", Some(MADV_NOHUGEPAGE), &["advised_against"]),
        ("madvise", Some(MADV_NOHUGEPAGE), &["advised_against"]),
    ] {
        let changed = match set(setting, &[]) {
            Ok(changed) => changed,
            Err(reason) => return skip(NAME, &reason),
        };
        let case = format!("{setting}, {advice:?}");
        let mut puppet = Puppet::start();
        let (first, bytes) = places(&mut puppet, 3);
        let (second, pages) = (first + bytes, bytes / page_bytes());
        let pid = puppet.0.pid();
        if let Some(advice) = advice {
            puppet.advises(first, 3 * pages, advice).expect("to advise");
            assert_eq!(why(pid, (first, bytes), "khugepaged"), refused, "{case}");
        }
        assert_eq!(why(pid, (second, 2 * bytes), "fault"), refused, "{case}");
        // One byte stands for the huge page around it.
        assert_eq!(why(pid, (second + 9, 1), "fault"), refused, "{case}");
        let expected = refused == nothing;
        let is_huge = gets_huge_page(&mut puppet, second + bytes / 2);
        // A huge page may be lacking even where it is allowed.
        assert!(expected || !is_huge, "{case}");
        if expected && !is_huge {
            return skip(NAME, "the kernel gave no huge page");
        }
        if expected {
            assert_eq!(reasons(pid, second, bytes), BTreeSet::new(), "{case}");
        } else {
            let both: BTreeSet<&str> = refused.iter().copied().chain(["occupied"]).collect();
            assert_eq!(why(pid, (second, bytes), "fault"), Vec::from_iter(both), "{case}");
        }
        // Where two reasons refuse, a change of one alone has no effect.
        let all = records(pid, &format!("explain huge {:#x}, +{bytes:#x}", second + bytes));
        for row in of_type(&all, "huge-reason") {
            let only = if refused.len() == 1 { row["bytes"].clone() } else { 0.into() };
            assert_eq!(row["only"], only, "{case}: {row}");
        }
        drop(changed);
    }
}

/// PR_SET_THP_DISABLE, whole and with the exception that came with Linux 6.18.
fn by_choice_of_the_process() {
    const NAME: &str = "explain::not_huge_by_choice_of_the_process";
    const SET_THP_DISABLE: u64 = 41;
    const EXCEPT_ADVISED: u64 = 2;
    let _changed = match set("always", &[]) {
        Ok(changed) => changed,
        Err(reason) => return skip(NAME, &reason),
    };
    for (flags, reason) in [(0, "process"), (EXCEPT_ADVISED, "only_advised")] {
        let mut puppet = Puppet::start();
        let (first, bytes) = places(&mut puppet, 2);
        let second = first + bytes;
        if puppet.asks("prctl", &[SET_THP_DISABLE, 1, flags]) < 0 {
            assert_ne!(flags, 0);
            assert!(support::release() < (6, 18), "{:?}", support::release());
            continue;
        }
        assert_eq!(why(puppet.0.pid(), (second, bytes), "fault"), [reason]);
        assert!(!gets_huge_page(&mut puppet, second));
        puppet.advises(first, bytes / page_bytes(), MADV_HUGEPAGE).expect("to advise");
        let expected = if flags == 0 { "process" } else { "nothing" };
        assert_eq!(why(puppet.0.pid(), (first, bytes), "khugepaged"), [expected]);
    }
}

fn for_lack_of_room() {
    const NAME: &str = "explain::not_huge_for_lack_of_room";
    let _changed = match set("always", &[]) {
        Ok(changed) => changed,
        Err(reason) => return skip(NAME, &reason),
    };
    let mut puppet = Puppet::start();
    let (memory, bytes) = places(&mut puppet, 3);
    let (page, pid) = (page_bytes(), puppet.0.pid());
    puppet.advises(memory, 3 * bytes / page, MADV_HUGEPAGE).expect("to advise");
    // The ends are cut off: one whole place is left.
    puppet.unmaps(memory, 1);
    puppet.unmaps(memory + 3 * bytes - page, 1);
    let (start, length) = (memory + page, 3 * bytes - 2 * page);
    let all = records(pid, &format!("explain huge {start:#x}, +{length:#x}"));
    let rows: BTreeSet<(&str, Option<&str>, u64)> = of_type(&all, "huge-reason")
        .iter()
        .map(|row| {
            let number = row["bytes"].as_u64().expect("a number");
            (row["by"].as_str().expect("a word"), row["reason"].as_str(), number)
        })
        .collect();
    let expected = [
        ("khugepaged", Some("alignment"), bytes - page),
        ("fault", Some("alignment"), bytes - page),
        ("fault", None, bytes),
    ];
    assert_eq!(rows, expected.into());
    // A region that is too short.
    puppet.unmaps(memory + bytes / 2, (2 * bytes) / page);
    let rest = bytes / 2 - page;
    assert_eq!(why(pid, (memory + page, rest), "khugepaged"), ["alignment"]);
}

fn of_files_and_the_kernel() {
    const NAME: &str = "explain::not_huge_of_files_and_the_kernel";
    let _changed = match set("never", &[]) {
        Ok(changed) => changed,
        Err(reason) => return skip(NAME, &reason),
    };
    let mut puppet = Puppet::start();
    let (pages, pid) = (8, puppet.0.pid());
    let program = puppet.maps("program", pages);
    puppet.reads(program, pages);
    puppet.writes(program, 2);
    let why = |who| why(pid, (program, pages * page_bytes()), who);
    assert_eq!(why("fault"), Vec::<String>::new());
    let khugepaged = why("khugepaged");
    for reason in ["alignment", "copies", "never"] {
        assert!(khugepaged.iter().any(|one| one == reason), "{reason}: {khugepaged:?}");
    }
    let untouched = puppet.maps("program", pages);
    assert_eq!(self::why(pid, (untouched, pages * page_bytes()), "fault"), ["page_cache"]);
    let maps = support::plain_maps(pid);
    let vdso = maps.iter().find(|(_, _, rest)| rest.windows(6).any(|part| part == b"[vdso]"));
    let &(start, end, _) = vdso.expect("a vdso");
    let of_kernel = self::why(pid, (start, end - start), "khugepaged");
    assert!(of_kernel.iter().any(|reason| reason == "kernel"), "{of_kernel:?}");
}

/// A file that is open for writing is not collapsed; before Linux 6.8 nor is one that is not code. From 7.2 on the
/// filesystem decides.
fn of_open_files() {
    const NAME: &str = "explain::not_huge_of_open_files";
    let Some(bytes) = huge_page_bytes() else {
        return skip(NAME, "no transparent huge pages");
    };
    let (page, mut puppet) = (page_bytes(), Puppet::start());
    let file = DiskFile::of(page);
    let memory = puppet.maps_file(&file, 1, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    puppet.writes(memory, 1);
    let told = why(puppet.0.pid(), (memory, page), "khugepaged");
    assert!(told.iter().any(|reason| reason == "file") || support::release() >= (7, 2), "{told:?}");
    // Which offset of a file is where does not depend on the kernel.
    let apart = memory % bytes != 0;
    assert_eq!(told.iter().any(|reason| reason == "file_offset"), apart, "{told:?}");
}

/// The ring of asynchronous I/O is memory of the kernel that cannot grow (VM_DONTEXPAND).
fn of_drivers() {
    const NAME: &str = "explain::not_huge_of_drivers";
    if huge_page_bytes().is_none() {
        return skip(NAME, "no transparent huge pages");
    }
    let mut puppet = Puppet::start();
    let ring = puppet.does("aio", &[8]);
    puppet.reads(ring, 1);
    let told = why(puppet.0.pid(), (ring, page_bytes()), "khugepaged");
    assert!(told.iter().any(|reason| reason == "driver"), "{told:?}");
}

fn of_shared_memory() {
    const NAME: &str = "explain::not_huge_of_shared_memory";
    let kib = huge_page_bytes().unwrap_or_default() >> 10;
    let of_size = format!("hugepages-{kib}kB/shmem_enabled=inherit");
    for (setting, is_refused) in [("never", true), ("advise", true), ("always", false), ("deny", true)] {
        let shared = format!("shmem_enabled={setting}");
        let _changed = match set("never", &[&shared, &of_size]) {
            Ok(changed) => changed,
            Err(reason) => return skip(NAME, &reason),
        };
        let bytes = huge_page_bytes().expect("a size");
        let (page, mut puppet) = (page_bytes(), Puppet::start());
        let pid = puppet.0.pid();
        let memory = puppet.maps("shared", 3 * bytes / page);
        let place = memory.next_multiple_of(bytes);
        // The kernel aligns it where it may be huge; otherwise the address is as it comes.
        let is_aligned = memory.is_multiple_of(bytes);
        let told: BTreeSet<String> = why(pid, (place, bytes), "fault").into_iter().collect();
        assert_eq!(told.contains("shared_memory"), is_refused, "{setting}: {told:?}");
        assert_eq!(told.contains("file_offset"), !is_aligned, "{setting}: {told:?}");
        assert_eq!(told.contains("nothing"), !is_refused && is_aligned, "{setting}: {told:?}");
    }
}

fn by_holes_and_sharing() {
    const NAME: &str = "explain::not_huge_by_holes_and_sharing";
    let _changed = match set("madvise", &["khugepaged/max_ptes_none=10", "khugepaged/max_ptes_shared=5"]) {
        Ok(changed) => changed,
        Err(reason) => return skip(NAME, &reason),
    };
    let mut puppet = Puppet::start();
    let (memory, bytes) = places(&mut puppet, 1);
    let (page, pages, pid) = (page_bytes(), bytes / page_bytes(), puppet.0.pid());
    puppet.advises(memory, pages, MADV_HUGEPAGE).expect("to advise");
    let told = || why(pid, (memory, bytes), "khugepaged");
    assert_eq!(told(), ["nothing"]);
    puppet.advises(memory, 10, libc::MADV_DONTNEED).expect("to drop pages");
    assert_eq!(told(), ["nothing"]);
    puppet.advises(memory + 10 * page, 1, libc::MADV_DONTNEED).expect("to drop a page");
    assert_eq!(told(), ["empty"]);
    // The zero page counts as none.
    puppet.reads(memory, 11);
    assert_eq!(told(), ["empty"]);
    puppet.writes(memory, 11);
    let child = puppet.does("fork", &[memory, pages - 5]);
    if !support::is_root() {
        return;
    }
    assert_eq!(told(), ["nothing"]);
    puppet.does("kill", &[child]);
    let child = puppet.does("fork", &[memory, pages - 6]);
    assert_eq!(told(), ["shared"]);
    puppet.does("kill", &[child]);
}

fn by_swap() {
    const NAME: &str = "explain::not_huge_by_swap";
    let _swap = match system::swap() {
        Ok(swap) => swap,
        Err(reason) => return skip(NAME, &reason),
    };
    let Some(bytes) = huge_page_bytes() else {
        return skip(NAME, "no transparent huge pages");
    };
    let mut puppet = Puppet::start();
    let (memory, _) = places(&mut puppet, 1);
    let pages = bytes / page_bytes();
    // A setting may be any number up to that of all pages; the usual one is an eighth.
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_swap");
    let most: u64 = setting.expect("a setting").trim().parse().expect("a number");
    if most >= pages / 2 {
        return skip(NAME, "max_ptes_swap allows most pages");
    }
    for (count, is_refused) in [(most, false), (most + 1, true)] {
        if !puppet.pages_out(memory, count) {
            return skip(NAME, "pages stayed in memory");
        }
        let told = why(puppet.0.pid(), (memory, bytes), "khugepaged");
        assert_eq!(told.iter().any(|reason| reason == "swapped"), is_refused, "{count}: {told:?}");
    }
}

fn by_guards() {
    const NAME: &str = "explain::not_huge_by_guards";
    let _changed = match set("madvise", &[]) {
        Ok(changed) => changed,
        Err(reason) => return skip(NAME, &reason),
    };
    let mut puppet = Puppet::start();
    let (memory, bytes) = places(&mut puppet, 1);
    puppet.advises(memory, bytes / page_bytes(), MADV_HUGEPAGE).expect("to advise");
    if let Err(error) = puppet.advises(memory, 1, MADV_GUARD_INSTALL) {
        return skip(NAME, &format!("MADV_GUARD_INSTALL: error {error}"));
    }
    assert_eq!(why(puppet.0.pid(), (memory, bytes), "khugepaged"), ["guards"]);
}

fn by_userfaults() {
    const NAME: &str = "explain::not_huge_by_userfaults";
    let _changed = match set("madvise", &[]) {
        Ok(changed) => changed,
        Err(reason) => return skip(NAME, &reason),
    };
    let mut puppet = Puppet::start();
    let (memory, bytes) = places(&mut puppet, 2);
    let (pages, pid) = (bytes / page_bytes(), puppet.0.pid());
    puppet.advises(memory, 2 * pages, MADV_HUGEPAGE).expect("to advise");
    puppet.advises(memory, 1, libc::MADV_DONTNEED).expect("to drop a page");
    let answer = puppet.asks("uffd", &[memory + page_bytes(), bytes - page_bytes(), page_bytes()]);
    if answer < 0 {
        return skip(NAME, &format!("userfaultfd: error {}", -answer));
    }
    let told: BTreeSet<String> = why(pid, (memory + page_bytes(), 1), "khugepaged").into_iter().collect();
    assert!(told.contains("write_protected"), "{told:?}");
    let mut puppet = Puppet::start();
    let (memory, _) = places(&mut puppet, 2);
    puppet.advises(memory, 2 * pages, MADV_HUGEPAGE).expect("to advise");
    puppet.advises(memory, 1, libc::MADV_DONTNEED).expect("to drop a page");
    let answer = puppet.asks("handled", &[memory, 2 * bytes, 1]);
    if answer < 0 {
        return skip(NAME, &format!("userfaultfd: error {}", -answer));
    }
    let pid = puppet.0.pid();
    assert_eq!(why(pid, (memory, bytes), "khugepaged"), ["userfault"]);
    assert_eq!(why(pid, (memory + bytes, bytes), "fault"), ["userfault"]);
}

fn if_unused_or_read_only() {
    const NAME: &str = "explain::not_huge_if_unused_or_read_only";
    let _changed = match set("madvise", &[]) {
        Ok(changed) => changed,
        Err(reason) => return skip(NAME, &reason),
    };
    let mut puppet = Puppet::start();
    let (memory, bytes) = places(&mut puppet, 1);
    let pid = puppet.0.pid();
    puppet.advises(memory, bytes / page_bytes(), MADV_HUGEPAGE).expect("to advise");
    std::fs::write(format!("/proc/{pid}/clear_refs"), "1").expect("to clear the marks of use");
    assert_eq!(why(pid, (memory, bytes), "khugepaged"), ["unused"]);
    puppet.writes(memory, 1);
    assert_eq!(why(pid, (memory, bytes), "khugepaged"), ["nothing"]);
    puppet.does("protect", &[memory, bytes, libc::PROT_READ as u64]);
    let expected = if support::release() < (6, 18) { "read_only" } else { "nothing" };
    assert_eq!(why(pid, (memory, bytes), "khugepaged"), [expected]);
}

/// Where THPeligible of smaps is 1, no reason holds for the whole region.
fn as_smaps_says() {
    const NAME: &str = "explain::not_huge_as_smaps_says";
    const OF_REGION: [&str; 10] = [
        "never",
        "not_advised",
        "advised_against",
        "process",
        "only_advised",
        "kernel",
        "file_offset",
        "shared_memory",
        "file",
        "unseen",
    ];
    for setting in ["always", "madvise", "never"] {
        let shared = format!("shmem_enabled={}", if setting == "madvise" { "advise" } else { setting });
        let _changed = match set(setting, &[&shared]) {
            Ok(changed) => changed,
            Err(reason) => return skip(NAME, &reason),
        };
        let mut puppet = Puppet::start();
        let (memory, bytes) = places(&mut puppet, 3);
        let pages = bytes / page_bytes();
        puppet.advises(memory + 2 * bytes, pages, MADV_HUGEPAGE).expect("to advise");
        let shared = puppet.maps("shared", 2 * pages);
        puppet.writes(shared, 2 * pages);
        let pid = puppet.0.pid();
        let smaps = std::fs::read_to_string(format!("/proc/{pid}/smaps")).expect("smaps");
        let mut region = None;
        let mut compared = 0;
        for line in smaps.lines() {
            let mut words = line.split_whitespace();
            let first = words.next().unwrap_or_default();
            if let Some((start, end)) = first.split_once('-').filter(|_| !first.ends_with(':')) {
                let number = |text| u64::from_str_radix(text, 16).expect("an address");
                region = Some((number(start), number(end)));
            }
            let (true, Some((start, end))) = (first == "THPeligible:", region) else {
                continue;
            };
            let told = reasons(pid, start, end - start);
            let khugepaged: Vec<&str> =
                told.iter().filter(|(by, _)| by == "khugepaged").map(|(_, reason)| &**reason).collect();
            let is_refused = khugepaged.iter().any(|reason| OF_REGION.contains(reason) || *reason == "alignment");
            if words.next() == Some("1") {
                let wrong: Vec<&&str> = khugepaged.iter().filter(|reason| OF_REGION.contains(reason)).collect();
                assert!(wrong.is_empty(), "{setting}, {start:#x}-{end:#x}: {wrong:?}");
                compared += 1;
            } else if !khugepaged.is_empty() && support::release() >= (6, 0) {
                assert!(is_refused, "{setting}, {start:#x}-{end:#x}: {khugepaged:?}");
                compared += 1;
            }
        }
        assert!(compared > 0 || support::release() < (6, 0), "{smaps}");
    }
}
