//! How large swapped memory is compressed.

use super::command::{of_type, records};
use super::*;
use crate::system;
use std::fs::read_to_string;

/// All that is in swap, and what the zram devices hold of it: as it was, and the memory that it takes.
fn plain_swap() -> [u64; 3] {
    let areas = read_to_string("/proc/swaps").expect("the list");
    let mut sums = [0; 3];
    for area in areas.lines().skip(1) {
        let fields: Vec<&str> = area.split_whitespace().collect();
        sums[0] += fields[3].parse::<u64>().expect("KiB") << 10;
        let Some(device) = fields[0].strip_prefix("/dev/zram") else {
            continue;
        };
        let text = read_to_string(format!("/sys/block/zram{device}/mm_stat")).expect("its numbers");
        let numbers: Vec<u64> = text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        sums[1] += numbers[0];
        sums[2] += numbers[2];
    }
    sums
}

/// The memory of zswap is beside zram, where the kernel has it.
fn is_in_zswap() -> bool {
    let counters = read_to_string("/proc/meminfo").expect("counters");
    counters.lines().any(|line| line.starts_with("Zswapped:") && !line.ends_with(" 0 kB"))
}

pub fn is_compressed() {
    const NAME: &str = "account::swap_is_compressed";
    const PAGES: u64 = 256;
    const TRIES: usize = 5;
    let swap = match system::swap_on_zram() {
        Ok(swap) => swap,
        Err(reason) => return skip(NAME, &reason),
    };
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", PAGES);
    puppet.writes(memory, PAGES);
    if !puppet.pages_out(memory, PAGES) {
        return skip(NAME, "the kernel kept the page");
    }
    let pid = puppet.0.pid();
    // Other processes may be swapped out and in meanwhile.
    let answers = (0..TRIES).find_map(|_| {
        let before = plain_swap();
        let answers = ["account", "account frames"].map(|command| records(pid, command));
        (plain_swap() == before && !is_in_zswap()).then_some((before, answers))
    });
    let Some((before, [one, frames])) = answers else {
        return skip(NAME, "what is in swap changes");
    };
    let [used, bytes, taken] = before;
    assert!(bytes >= PAGES * page_bytes() && taken < bytes, "{before:?}");
    let machine = of_type(&frames, "account-machine").into_iter().next().map(|machine| &machine["swap"]);
    if let Some(shown) = machine {
        assert_eq!([&shown["used"], &shown["compressed"], &shown["memory"]], [used, bytes, taken], "{shown}");
    }
    let summary = of_type(&one, "account-summary")[0];
    let swapped = summary["beside"]["swapped"].as_u64().expect("bytes");
    assert!(swapped >= PAGES * page_bytes(), "{summary}");
    let expected = (bytes >= used / 10 * 9).then(|| swapped * taken / bytes);
    assert_eq!(summary["swap_compressed"].as_u64(), expected, "{summary}");
    assert_eq!(summary["why"]["swap_compressed"].is_string(), expected.is_none());
    drop(puppet);
    drop(swap);
}
