//! Pages in swap, on zram and in a file; in the swap cache; shared memory that is; and the machine after a test was
//! killed.

use super::super::puppet::Puppet;
use super::super::slots;
use super::super::support::{is_hole, page_bytes, plain_entry, release, skip};
use super::super::system::{self, Changed};
use super::super::target::{Target, announce, wait};
use super::super::{Scenario, Test};
use super::{Truth, program, says};
use std::fs::{File, read_to_string};
use std::path::Path;
use std::process::Command;

pub const TESTS: &[Test] = &[
    ("answers::swap_on_zram", swap_on_zram),
    ("answers::swap_in_a_file", swap_in_a_file),
    ("answers::swap_goes_with_a_killed_test", swap_goes_with_a_killed_test),
];

pub const SCENARIOS: &[Scenario] = &[("swap-file", |_| {
    let swap = system::swap_file();
    match &swap {
        Ok(_) => announce(our_file().expect("it is on")),
        Err(reason) => announce(reason),
    }
    wait();
})];

/// The swap file of this run of the tests, from the kernel's list.
fn our_file() -> Option<String> {
    let below = system::swap_files_below().join("swap-");
    let below = below.to_str()?;
    let list = read_to_string("/proc/swaps").ok()?;
    // The kernel writes a blank in a path as \040.
    let rows = list.lines().filter_map(|row| row.split_whitespace().next());
    let mut names = rows.map(|path| path.replace("\\040", " "));
    names.find(|name| name.starts_with(below))
}

fn swap_on_zram() {
    in_swap(
        "answers::swap_on_zram",
        system::swap_on_zram,
        "zram",
        &["MADV_PAGEOUT, zram", "shared memory, MADV_PAGEOUT, zram", "swap cache, zram"],
    );
}

fn swap_in_a_file() {
    in_swap(
        "answers::swap_in_a_file",
        system::swap_file,
        "/swap",
        &["MADV_PAGEOUT, swap file", "shared memory, MADV_PAGEOUT, swap file", "swap cache, swap file"],
    );
}

fn in_swap(
    name: &str,
    area: fn() -> Result<Changed, String>,
    called: &str,
    [anonymous, shared, cached]: &[&'static str; 3],
) {
    const SWAPCACHE: u64 = 1 << 13;
    let swap = match area() {
        Ok(swap) => swap,
        Err(reason) => return skip(name, &reason),
    };
    let mut puppet = Puppet::start();
    let pid = puppet.0.pid();
    let memory = puppet.maps("anonymous", 2);
    puppet.writes(memory, 2);
    if !puppet.pages_out(memory, 2) {
        return skip(name, "the kernel kept the page");
    }
    let entry = plain_entry(pid, memory).expect("an entry");
    let truth = Truth::absent(anonymous, "swapped", "swap_in").of_kind("anonymous");
    let said = says(pid, memory, &truth);
    let slot = &said.translation["swap"];
    assert_eq!(slot["type"], entry & 31, "{slot}");
    assert_eq!(slot["offset"], entry >> 5 & ((1 << 50) - 1), "{slot}");
    let untold = &said.translation["why"]["swap.device"];
    match slot["device"].as_str() {
        Some(device) => {
            assert!(device.contains(called), "{slot}");
            assert!(said.text.contains(called), "{}", said.text);
        }
        // With several areas /proc/swaps does not tell which it is.
        None => assert!(untold.is_string(), "{}", said.translation),
    }

    let object = puppet.maps("memfd", 2);
    puppet.writes(object, 1);
    match puppet.pages_out(object, 1) && is_hole(pid, object) {
        // Older kernels keep what is being written to a slow disk, and mincore(2) counts that as cached.
        true if release() < (6, 7) && is_in_swap_cache(pid, object) => {
            skip(name, "the swap cache keeps shared memory that was paged out");
        }
        true => {
            let are_slots_read = slots::are_read(&puppet.0.attach());
            let truth = if are_slots_read {
                Truth::absent(shared, "swapped", "swap_in").of_kind("shmem")
            } else {
                Truth::absent(shared, "untouched", "swap_in").behind("maybe_swapped", "shmem")
            };
            let said = says(pid, object, &truth);
            let slot = &said.translation["swap"];
            if are_slots_read {
                assert!(slot["offset"].as_u64() > Some(0), "{slot}");
            } else {
                assert!(slot.is_null(), "{}", said.translation);
                let why = said.translation["why"]["swap"].as_str().expect("why");
                assert!(!why.contains("not in swap"), "{why}");
            }
            assert!(said.explanation["next_read"]["fault"].is_null());
            in_the_region(pid, object, are_slots_read);
        }
        false => skip(name, "the kernel kept the page"),
    }

    // A child has the slot too, so that it is kept when the page comes back.
    puppet.does("fork", &[memory, 0]);
    puppet.reads(memory, 1);
    let entry = plain_entry(pid, memory).expect("an entry");
    let flags = super::of_frame("kpageflags", entry & ((1 << 55) - 1)).expect("its flags");
    if entry >> 63 == 0 || flags & SWAPCACHE == 0 {
        return skip(name, "the page that came back is not in the swap cache");
    }
    let truth = Truth::present(cached, "anonymous").when_written("reuse|copy");
    let said = says(pid, memory, &truth);
    assert!(said.text.contains("swapcache"), "{}", said.text);
    assert!(said.explanation["owner"].is_null(), "{}", said.explanation);
    // The child keeps its slot, so that this is a copy.
    puppet.writes(memory, 1);
    assert_ne!(plain_entry(pid, memory), Some(entry));
    drop(puppet);
    drop(swap);
}

/// Whether a page of shared memory is in swap, as smaps says, and cached, as pmdb says.
fn is_in_swap_cache(pid: u32, object: u64) -> bool {
    let lines = [format!("translate {object:#x}"), format!("region {object:#x} full")];
    let text = program(&[], pid, true, &lines);
    let mut objects = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("an object"));
    let mut next = || objects.next().expect("an answer");
    next()["kind"] == "cached" && next()["smaps"]["Swap"] == page_bytes()
}

/// The page map does not show which shared memory is in swap; smaps does, and the kernel's own records.
fn in_the_region(pid: u32, object: u64, are_slots_read: bool) {
    let region = |full: &str| -> serde_json::Value {
        let text = program(&[], pid, true, &[format!("region {object:#x} {full}")]);
        serde_json::from_str(text.trim()).expect("an object")
    };
    let said = region("");
    if are_slots_read {
        assert_eq!(said["swapped"], page_bytes(), "{said}");
    } else {
        assert!(said["swapped"].is_null(), "{said}");
        assert!(said["why"]["swapped"].is_string(), "{said}");
    }
    let full = region("full");
    assert_eq!(full["swapped"], page_bytes(), "{full}");
    assert_eq!(full["swapped"], full["smaps"]["Swap"], "{full}");
    // Asked for, it comes from smaps in the list too.
    let lines = ["regions where swapped > 0", "account"].map(str::to_owned);
    let text = program(&[], pid, true, &lines);
    let said: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let listed = said.iter().find(|one| one["start"] == full["start"]).expect("the region");
    assert_eq!(listed["swapped"], full["swapped"], "{listed}");
    assert!(listed["why"]["swapped"].is_null(), "{listed}");
    let rollup = read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("smaps_rollup");
    let swap = rollup.lines().find_map(|line| line.strip_prefix("Swap:")?.trim().strip_suffix(" kB"));
    let swap = swap.and_then(|swap| swap.parse::<u64>().ok()).expect("Swap") * 1024;
    let account = said.iter().find(|one| one["type"] == "account-summary").expect("a summary");
    assert_eq!(account["beside"]["swapped"], swap, "{account}");
    let check = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/swapped.pmdb");
    let run = Command::new(env!("CARGO_BIN_EXE_pmdb"))
        .args(["-nx", "-batch", "-p", &pid.to_string(), "-x", check])
        .output()
        .expect("pmdb runs");
    assert_eq!(run.status.code(), Some(1), "{run:?}");
}

fn swap_goes_with_a_killed_test() {
    const NAME: &str = "answers::swap_goes_with_a_killed_test";
    let mut test = Target::start("swap-file", &[]);
    let said = test.line();
    if !Path::new(&said).exists() {
        return skip(NAME, &said);
    }
    // SIGKILL, as the value ends.
    drop(test);
    // The process that restores the settings holds this until it is done.
    let lock = File::open(system::SWAP_LOCK).expect("the list");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("its lock");
    let list = read_to_string("/proc/swaps").expect("the list");
    assert!(!list.contains(&said.replace(' ', "\\040")), "{list}");
    let folder = Path::new(&said).parent().expect("its folder");
    assert!(!folder.exists(), "{said}");
}
