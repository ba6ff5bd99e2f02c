//! Anonymous memory has the name of the variable that points to it.

use super::answers::program;
use super::heap::has_glibc;
use super::support::{page_bytes, shows_frames};
use super::target::{Target, announce, command, wait};
use super::{Scenario, Test};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

pub const TESTS: &[Test] = &[
    ("pointers::name_what_a_child_has_copied", name_what_a_child_has_copied),
    ("pointers::name_the_pages_of_a_walk", name_the_pages_of_a_walk),
];

pub const SCENARIOS: &[Scenario] = &[("pointers", pointers)];

/// More than `malloc` ever takes from the heap (DEFAULT_MMAP_THRESHOLD_MAX).
const BYTES: usize = 40 << 20;
/// Pages of each that are written.
const PAGES: usize = 16;
/// Pages that the child writes again.
const COPIED: usize = 5;

/// Two blocks that lie side by side, and a third that only a field points to.
#[unsafe(no_mangle)]
static POINTED_FIRST: AtomicUsize = AtomicUsize::new(0);
#[unsafe(no_mangle)]
static POINTED_SECOND: AtomicUsize = AtomicUsize::new(0);
#[unsafe(no_mangle)]
static POINTED_STATE: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];
/// Two mappings of the program's own, which the kernel joins to one region.
#[unsafe(no_mangle)]
static POINTED_MAPPED: AtomicUsize = AtomicUsize::new(0);
#[unsafe(no_mangle)]
static POINTED_JOINED: AtomicUsize = AtomicUsize::new(0);
/// An array of pointers to pages of their own.
#[unsafe(no_mangle)]
static POINTED_MANY: [AtomicUsize; 6] = [const { AtomicUsize::new(0) }; 6];
/// A page in the middle of the first block.
#[unsafe(no_mangle)]
static POINTED_MIDDLE: AtomicUsize = AtomicUsize::new(0);

/// Returns a mapping between two pages without access, so that the kernel joins it to no other.
fn map_alone(bytes: usize) -> usize {
    let page = page_bytes() as usize;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at a place that the kernel chooses, of which a part becomes writable.
    unsafe {
        let all = libc::mmap(std::ptr::null_mut(), bytes + 2 * page, libc::PROT_NONE, flags, -1, 0);
        assert_ne!(all, libc::MAP_FAILED);
        let start = all.byte_add(page);
        assert_eq!(libc::mprotect(start, bytes, libc::PROT_READ | libc::PROT_WRITE), 0);
        start.addr()
    }
}

/// Takes memory, and forks a child that writes some of the second block.
fn pointers(_: &[String]) {
    let page = page_bytes() as usize;
    // SAFETY: it sets a flag of this process, and its child.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    // SAFETY: a block of memory, or 0.
    let take = || unsafe { libc::malloc(BYTES) }.addr();
    let blocks = [(&POINTED_FIRST, take()), (&POINTED_SECOND, take()), (&POINTED_STATE[2], take())];
    let mapped = map_alone(2 * BYTES);
    let mapped = [(&POINTED_MAPPED, mapped), (&POINTED_JOINED, mapped + BYTES)];
    for (variable, address) in blocks.into_iter().chain(mapped) {
        assert_ne!(address, 0);
        variable.store(address, Ordering::Relaxed);
        // SAFETY: the memory is longer.
        unsafe { libc::memset(address as *mut libc::c_void, 1, PAGES * page) };
    }
    let many = map_alone(POINTED_MANY.len() * page);
    for (number, word) in POINTED_MANY.iter().enumerate() {
        word.store(many + number * page, Ordering::Relaxed);
        // SAFETY: a page of the mapping.
        unsafe { (word.load(Ordering::Relaxed) as *mut u8).write(1) };
    }
    POINTED_MIDDLE.store(blocks[0].1.next_multiple_of(page) + page, Ordering::Relaxed);
    // SAFETY: there is one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: it writes its own block, sets a signal, and waits.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::memset(blocks[1].1 as *mut libc::c_void, 2, (COPIED - 1) * page);
            announce("written");
            loop {
                libc::pause();
            }
        }
    }
    wait();
    announce(child);
    wait();
}

/// Starts it. Its child has written.
fn start() -> Target {
    let mut command = command("pointers", &[]);
    command.env_remove("MALLOC_ARENA_MAX").env_remove("GLIBC_TUNABLES").env_remove("MALLOC_MMAP_MAX_");
    let mut target = Target::spawn(&mut command);
    assert_eq!(target.line(), "written");
    target
}

/// The rows of a table by their names, without the file.
fn rows(said: &str, name: &str, number: &str) -> BTreeMap<String, u64> {
    let records = said.lines().map(|line| serde_json::from_str::<Value>(line).expect("an object"));
    let row = |record: Value| {
        let (name, _) = record[name].as_str()?.split_once(" of ")?;
        Some((name.to_owned(), record[number].as_u64()?))
    };
    records.filter_map(row).filter(|(name, _)| name.contains("POINTED")).collect()
}

/// The names of the mappings.
const MAPPED: [&str; 2] = ["*POINTED_MAPPED", "*POINTED_JOINED"];

/// What each name has: the written pages, and one more with the head of the block.
fn expected(blocks: u64, mapped: u64) -> BTreeMap<String, u64> {
    let blocks = ["*POINTED_FIRST", "*POINTED_SECOND"].map(|name| (name.to_owned(), blocks));
    let field = format!("*(POINTED_STATE+{})", 2 * size_of::<usize>());
    let mapped_pages = MAPPED.map(|name| (name.to_owned(), mapped));
    let many = ("*POINTED_MANY[..]".to_owned(), mapped.min(POINTED_MANY.len() as u64));
    blocks.clone().into_iter().chain([(field, blocks[0].1), many]).chain(mapped_pages).collect()
}

fn name_the_pages_of_a_walk() {
    if !has_glibc("pointers::name_the_pages_of_a_walk") {
        return;
    }
    let target = start();
    let said = program(&[], target.pid(), true, &["walk all where present by symbol".to_owned()]);
    let pages = rows(&said, "key", "pages");
    let pages: BTreeMap<String, u64> = pages.into_iter().filter(|(name, _)| name.starts_with('*')).collect();
    assert_eq!(pages, expected(PAGES as u64 + 1, PAGES as u64), "{said}");
    // Each name of one block can be typed.
    for name in pages.keys().filter(|name| !name.ends_with("[..]")) {
        let said = program(&[], target.pid(), true, &[format!("walk {name} where present")]);
        assert!(said.contains("\"state\":\"present\""), "{name}: {said}");
    }
    let said = program(&[], target.pid(), true, &["info symbol *POINTED_JOINED + 4097".to_owned()]);
    assert!(said.contains("\"name\":\"*POINTED_JOINED\",\"offset\":4097,"), "{said}");
}

fn name_what_a_child_has_copied() {
    let test = "pointers::name_what_a_child_has_copied";
    if !has_glibc(test) {
        return;
    }
    if !shows_frames() {
        return super::support::skip(test, "frame numbers are hidden from this user");
    }
    let mut target = start();
    target.send("child");
    let child = target.line();
    let said = program(&[], target.pid(), true, &[format!("compare {child} by symbol")]);
    let copied = rows(&said, "symbol", "copied");
    let copied: BTreeMap<String, u64> = copied.into_iter().filter(|(name, _)| name.starts_with('*')).collect();
    let second = ("*POINTED_SECOND".to_owned(), COPIED as u64);
    assert_eq!(copied, expected(0, 0).into_iter().chain([second]).collect(), "{said}");
    // The frame that both still share, with its symbol in both.
    let said = program(&[], target.pid(), true, &["who *POINTED_FIRST".to_owned()]);
    assert_eq!(said.matches("\"symbol\":{\"name\":\"*POINTED_FIRST\",\"offset\":0,").count(), 2, "{said}");
    // A picture has a row for each block.
    let line = format!("compare {child} in region(*POINTED_FIRST) by symbol every 1ms for 1ms as timeline");
    let said = program(&[], target.pid(), true, &[line]);
    for name in expected(0, 0).keys().filter(|name| !MAPPED.contains(&name.as_str()) && !name.ends_with("[..]")) {
        assert!(said.contains(&format!("\"symbol\":\"{name}\"")), "{name}: {said}");
    }
}
