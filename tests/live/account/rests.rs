//! The rest of huge pages that were given back in part.

use super::command::{of_type, records};
use super::*;
use crate::support::plain_entries;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Frames of these that are in a large anonymous folio and mapped nowhere, read without pmdb.
fn plain_unmapped(frames: &[u64]) -> u64 {
    let [flags, counts] = ["/proc/kpageflags", "/proc/kpagecount"].map(|path| File::open(path).expect("words"));
    let word = |file: &File, frame: u64| {
        let mut word = [0; 8];
        file.read_exact_at(&mut word, frame * 8).map_or(0, |()| u64::from_ne_bytes(word))
    };
    let is_in_folio = |frame: u64| word(&flags, frame) & (1 << 15 | 1 << 16) != 0;
    frames.iter().filter(|&&frame| is_in_folio(frame) && word(&counts, frame) == 0).count() as u64
}

/// The pages of rests that `account` and `account children` show.
fn shown(pid: u32) -> [u64; 2] {
    [("account", "account-summary"), ("account children", "account-family")].map(|(command, kind)| {
        let all = records(pid, command);
        let rests = of_type(&all, "account-rest");
        let sum: u64 = rests.iter().map(|rest| rest["unmapped"].as_u64().expect("bytes")).sum();
        let of = of_type(&all, kind)[0];
        assert_eq!(of["folio_rests"], sum, "{of}");
        sum / page_bytes()
    })
}

pub fn a_huge_page_given_back_in_part() {
    const NAME: &str = "account::a_huge_page_given_back_in_part";
    if !support::shows_frames() {
        return skip(NAME, "families need frame numbers");
    }
    let (mut puppet, memory, pages) = match Puppet::with_huge_page() {
        Ok(made) => made,
        Err(reason) => return skip(NAME, reason),
    };
    let pid = puppet.0.pid();
    if puppet.0.attach().machine.has_exact_map_counts() != Some(true) {
        return skip(NAME, "map counts of large folios may be averages");
    }
    let words = plain_entries(pid, memory, memory + pages * page_bytes());
    let frames: Vec<u64> = words.into_iter().map(|(_, word)| word & ((1 << 55) - 1)).collect();
    assert_eq!((plain_unmapped(&frames), shown(pid)), (0, [0, 0]));
    // A child that has all of it keeps it in use.
    let child = puppet.does("fork", &[memory, 0]);
    let half = pages / 2;
    puppet.advises(memory + half * page_bytes(), half, libc::MADV_DONTNEED).expect("to give it back");
    assert_eq!((plain_unmapped(&frames), shown(pid)), (0, [0, 0]));
    puppet.does("kill", &[child]);
    // The kernel may split it when memory is short.
    let before = plain_unmapped(&frames);
    let found = shown(pid);
    if plain_unmapped(&frames) != half {
        return skip(NAME, "the kernel has split the huge page");
    }
    assert_eq!((before, found), (half, [half; 2]));
    // A child that has the mapped half does not change it, and holes inside count as well.
    let child = puppet.does("fork", &[memory, 0]);
    puppet.advises(memory + 3 * page_bytes(), 2, libc::MADV_DONTNEED).expect("to give it back");
    assert_eq!(shown(pid), [half; 2]);
    puppet.does("kill", &[child]);
    let (before, found) = (plain_unmapped(&frames), shown(pid));
    if plain_unmapped(&frames) == before {
        assert_eq!((before, found), (half + 2, [half + 2; 2]));
    }
}
