//! `account … with heap` of several processes: what they share since a fork counts once.

use super::answers::program;
use super::heap::{allocate, has_glibc, say_and_wait};
use super::support::{page_bytes, shows_frames};
use super::target::{Target, command};
use super::{Scenario, Test};
use pmdb::budget::Budget;
use pmdb::inspect::heap::{HeapSearch, HeapUse, MappedChunks};
use pmdb::{AddressSpace, Evidence};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

pub const TESTS: &[Test] = &[("heap_family::what_is_shared_counts_once", what_is_shared_counts_once)];

pub const SCENARIOS: &[Scenario] = &[("heap_family", family)];

/// Bytes of a block that the child frees: nothing is written to most of its pages then.
const BLOCK: usize = 100_000;
const BLOCKS: usize = 20;

/// Allocates at random, and forks a child that frees large blocks, and allocates and frees more.
fn family(_: &[String]) {
    // SAFETY: it sets a flag of this process, and its child.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    allocate(1, 10_000);
    let mut blocks = Vec::new();
    for _ in 0..BLOCKS {
        blocks.push(vec![7_u8; BLOCK]);
        // It keeps the blocks apart.
        std::mem::forget(vec![7_u8; 100]);
    }
    // SAFETY: there is one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        allocate(2, 5_000);
        drop(blocks);
        println!("ready");
        // It ends with its parent.
        // SAFETY: it sets a signal, and waits.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            loop {
                libc::pause();
            }
        }
    }
    println!("{child}");
    say_and_wait(true);
    std::mem::forget(blocks);
}

/// Each frame of the heaps of a process, and what it is for them.
fn frames(pid: u32) -> BTreeMap<u64, HeapUse> {
    let target = pmdb::Target::attach(pid).expect("to attach");
    let space = AddressSpace::of(&target).expect("its regions");
    let mut search = HeapSearch::new(&space, Budget::unlimited()).expect("its memory");
    let mut parts = MappedChunks::of(&space, Budget::unlimited()).expect("its memory").ranges;
    while let Some(arena) = search.next().expect("its memory") {
        assert!(arena.sums.is_some(), "{arena:?}");
        parts.extend(arena.parts);
    }
    let mut found = BTreeMap::new();
    let mut pages = space.pages(&space.spans(), Evidence::FRAMES | Evidence::HEAP);
    while let Some(chunk) = pages.next().expect("pages") {
        for page in chunk.pages().filter(|page| page.heap != Some(HeapUse::None)) {
            let (first, heap) = (page.frame(), page.heap.expect("asked for"));
            for number in first.iter().flat_map(|first| first.get()..first.get() + page.pages) {
                found.insert(number, heap);
            }
        }
    }
    // The page map alone, for the memory of the arenas.
    let plain: BTreeSet<u64> = parts
        .iter()
        .flat_map(|part| super::support::plain_entries(pid, part.start().get() & !(page_bytes() - 1), part.end().get()))
        .filter(|(_, entry)| entry >> 63 == 1)
        .map(|(_, entry)| entry & ((1 << 55) - 1))
        .collect();
    assert_eq!(found.keys().copied().collect::<BTreeSet<u64>>(), plain);
    found
}

/// The bytes of classes of an account, and how much of them the processes map.
fn classes(records: &[Value], words: &[&str]) -> (u64, u64) {
    let rows = records.iter().filter(|row| words.iter().any(|word| row["class"] == *word));
    let number = |row: &Value, name: &str| row[name].as_u64().expect("bytes");
    rows.fold((0, 0), |(bytes, mapped), row| (bytes + number(row, "bytes"), mapped + number(row, "mapped")))
}

const PRIVATE: &[&str] = &["private_one", "private_several", "heap_in_use", "heap_free", "heap_unclear"];

fn what_is_shared_counts_once() {
    if !has_glibc("heap_family::what_is_shared_counts_once") {
        return;
    }
    let mut target =
        Target::spawn(command("heap_family", &[]).env_remove("MALLOC_ARENA_MAX").env_remove("GLIBC_TUNABLES"));
    // The child says that it is ready, and the parent its number and its sums.
    let lines = [target.line(), target.line(), target.line()];
    let child: u32 = lines.iter().find_map(|line| line.parse().ok()).expect("the child");
    let parent = target.pid();
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("family.capture");
    let path = path.to_str().expect("a plain path");
    let lines = [
        "account children".to_owned(),
        "account children with heap".into(),
        format!("account of {parent}, {child} with heap"),
        "account children by region with heap".into(),
        "account children with content".into(),
        format!("capture {path} children with heap, frames"),
    ];
    let said = program(&[], parent, true, &lines);
    if !shows_frames() {
        assert!(said.contains("the frames of several processes cannot") && !said.contains("heap_in_use"), "{said}");
        return;
    }
    for refused in ["groups of several processes have no classes", "zero-filled subpages are searched only in one"] {
        assert!(said.contains(refused), "{said}");
    }
    let records: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let ends = |record: &Value| record["type"] == "account-family";
    let mut answers = records.split_inclusive(ends);
    let [plain, with, again] = std::array::from_fn(|_| answers.next().expect("an account"));
    let of = |answer, words: &[&str]| classes(answer, words);
    assert_eq!(of(plain, PRIVATE), of(with, PRIVATE));
    assert_eq!(of(plain, &["heap_in_use", "heap_free", "heap_unclear"]), (0, 0));
    assert_eq!(of(with, PRIVATE), of(again, PRIVATE));
    let sum = |answer: &[Value]| answer.last().expect("a sum")["bytes"].clone();
    assert_eq!(sum(plain), sum(with));
    // Each frame of the heaps once: it is in use if one of the two uses it.
    let (one, two) = (frames(parent), frames(child));
    let is_used = |is: Option<&HeapUse>| matches!(is, Some(HeapUse::Live | HeapUse::Both));
    let all: BTreeSet<u64> = one.keys().chain(two.keys()).copied().collect();
    let (used, free): (Vec<u64>, Vec<u64>) =
        all.iter().partition(|frame| is_used(one.get(frame)) || is_used(two.get(frame)));
    let mapped = |frames: &[u64]| {
        let times = |frame: &u64| u64::from(one.contains_key(frame)) + u64::from(two.contains_key(frame));
        (frames.len() as u64 * page_bytes(), frames.iter().map(times).sum::<u64>() * page_bytes())
    };
    assert_eq!(of(with, &["heap_in_use"]), mapped(&used));
    assert_eq!(of(with, &["heap_free"]), mapped(&free));
    // What the child has freed and not written is still in use in the parent.
    let kept =
        used.iter().filter(|frame| one.contains_key(frame) && two.contains_key(frame) && !is_used(two.get(frame)));
    assert!(kept.count() as u64 >= (BLOCK * BLOCKS / 2) as u64 / page_bytes());
    let opened = Command::new(env!("CARGO_BIN_EXE_pmdb"))
        .args(["-nx", "-q", "-batch", "--json", "-c", path, "-ex", "account children with heap"])
        .output()
        .expect("pmdb runs");
    let text = String::from_utf8(opened.stdout).expect("text");
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    for word in PRIVATE {
        assert_eq!(of(&records, &[word]), of(with, &[word]), "{word}: {text}");
    }
}
