//! Entries of page tables in the kernel's memory: their frames are those of the page map, and their bits follow what a
//! process does.

use super::Test;
use super::answers::program;
use super::puppet::Puppet;
use super::support::{at, page, page_bytes, plain_entry, plain_maps, plain_present_entries, skip};
use super::{huge, system};
use pmdb::kernel::{TableBits, TableEntry};
use pmdb::process::Target;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;

pub const TESTS: &[Test] = &[
    ("tables::entries_are_those_of_the_page_map", entries_are_those_of_the_page_map),
    ("tables::bits_follow_the_process", bits_follow_the_process),
    ("tables::of_a_parent_and_its_child", of_a_parent_and_its_child),
    ("tables::of_a_process_in_swap", of_a_process_in_swap),
];

/// Why page tables cannot be read here, as an error says it.
pub fn refusal(target: &Target) -> Option<String> {
    target.process.require_table_entries().err().map(|error| error.to_string())
}

fn table_entries(target: &Target, address: u64, pages: usize) -> Vec<Option<TableEntry>> {
    let mut found = vec![None; pages];
    target.process.table_entries(page().index(at(address)), &mut found).expect("page tables");
    found
}

fn bits(target: &Target, address: u64) -> TableBits {
    table_entries(target, address, 1)[0].expect("an entry").bits
}

const PRESENT: u64 = 1 << 63;
const FRAME: u64 = (1 << 55) - 1;

fn entries_are_those_of_the_page_map() {
    const NAME: &str = "tables::entries_are_those_of_the_page_map";
    const PAGES: u64 = 12_000;
    let mut puppet = Puppet::start();
    let target = puppet.0.attach();
    if let Some(reason) = refusal(&target) {
        return skip(NAME, &reason);
    }
    // Written, only read, and not touched at all, in stretches; and huge, where the kernel gives that.
    let small = puppet.maps("anonymous", PAGES);
    for first in (0..PAGES).step_by(1000) {
        puppet.writes(small + first * page_bytes(), 600);
        puppet.reads(small + (first + 600) * page_bytes(), 300);
    }
    let huge = puppet.maps("huge", 2048);
    puppet.writes(huge, 1100);
    let shared = puppet.maps("memfd", 700);
    puppet.reads(shared + 100 * page_bytes(), 500);
    let pid = puppet.0.pid();
    let (mut compared, mut levels, mut first_difference) = (0, [0; 4], None);
    for (start, pages) in [(small, PAGES), (huge, 2048), (shared, 700)] {
        let found = table_entries(&target, start, pages as usize);
        for (entry, address) in found.iter().zip((start..).step_by(page_bytes() as usize)) {
            let word = plain_entry(pid, address).expect("a word");
            let frame = (word & PRESENT != 0).then_some(word & FRAME);
            if entry.map(|entry| entry.frame.get()) != frame {
                first_difference = first_difference.or(Some((address, word, *entry)));
            }
            compared += u64::from(frame.is_some());
            levels[entry.map_or(0, |entry| entry.level.into())] += 1;
        }
    }
    assert_eq!(first_difference, None);
    assert!(compared >= 10_000, "{compared} pages: {levels:?}");
    println!("compared {compared} entries; by level: {levels:?}");
}

fn bits_follow_the_process() {
    const NAME: &str = "tables::bits_follow_the_process";
    let mut puppet = Puppet::start();
    let target = puppet.0.attach();
    if let Some(reason) = refusal(&target) {
        return skip(NAME, &reason);
    }
    let memory = puppet.maps("anonymous", 4);
    let pid = puppet.0.pid();
    puppet.writes(memory, 2);
    let [read, written] = [TableBits::PRESENT | TableBits::USER | TableBits::ACCESSED | TableBits::NO_EXECUTE; 2];
    let written = written | TableBits::WRITE | TableBits::DIRTY;
    assert_eq!(bits(&target, memory), written);
    puppet.reads(memory + 2 * page_bytes(), 1);
    assert_eq!(bits(&target, memory + 2 * page_bytes()) - TableBits::ACCESSED, read - TableBits::ACCESSED);
    assert_eq!(table_entries(&target, memory + 3 * page_bytes(), 1), [None]);
    // Dirty stays dirty, though it is read-only now.
    puppet.does("protect", &[memory, page_bytes(), libc::PROT_READ as u64]);
    assert_eq!(bits(&target, memory), written - TableBits::WRITE);
    puppet.does("protect", &[memory, page_bytes(), (libc::PROT_READ | libc::PROT_WRITE) as u64]);
    // Before Linux 6.0 (`can_change_pte_writable`) only a fault made it writable again.
    puppet.writes(memory, 1);

    let said = |command: String| -> Value {
        let said = program(&[], pid, true, &[command]);
        serde_json::from_str(said.lines().last().expect("an answer")).expect("JSON")
    };
    let translated = said(format!("translate {memory:#x}"));
    let entry = &translated["table_entry"];
    assert_eq!((&entry["level"], &entry["accessed"], &entry["dirty"]), (&1.into(), &true.into(), &true.into()));
    let (range, second) = (format!("{memory:#x}, +4p"), memory + page_bytes());
    assert_eq!(said(format!("walk {range} where pte_dirty"))["pages"], 2);
    // CLEAR_REFS_ALL clears the accessed bits.
    std::fs::write(format!("/proc/{pid}/clear_refs"), "1").expect("cleared");
    // That of the zero page it leaves (clear_refs_pte_range in fs/proc/task_mmu.c).
    assert_eq!(said(format!("walk {range} where accessed"))["pages"], 1);
    assert_eq!(said(format!("walk {range} where not accessed"))["pages"], 2);
    // Neither that nor reading of the record of a page sets them again.
    said(format!("flags {memory:#x}"));
    assert_eq!(bits(&target, memory), written - TableBits::ACCESSED);
    puppet.writes(second, 1);
    assert_eq!(bits(&target, second), written);
    assert_eq!(said(format!("walk {range} where accessed and pte_dirty"))["pages"], 1);
    // The log names structures and members, and no address of the kernel.
    let log = program(&[], pid, false, &[format!("translate --how {memory:#x}")]);
    assert!(log.contains("mm_struct.pgd"), "{log}");
    // Those of processes reach 0xffff_ffff_ffff on arm64.
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_hexdigit).count();
    assert!(log.split("0xff").skip(1).all(|rest| digits(rest) < 14), "{log}");
}

/// After a fork both have the same mappings and nearly the same frames: each has its own tables all the same.
fn of_a_parent_and_its_child() {
    const NAME: &str = "tables::of_a_parent_and_its_child";
    let mut puppet = Puppet::start();
    if let Some(reason) = refusal(&puppet.0.attach()) {
        return skip(NAME, &reason);
    }
    let memory = puppet.maps("anonymous", 8);
    puppet.writes(memory, 8);
    // The child writes to the first two.
    let child = puppet.does("fork", &[memory, 2]) as u32;
    let pids = [puppet.0.pid(), child];
    let frames = pids.map(|pid| {
        let target = Target::attach(pid).expect("the process");
        let found = table_entries(&target, memory, 8);
        let frames: Vec<_> = found.iter().map(|entry| entry.map(|entry| entry.frame.get())).collect();
        let words = (0..8).map(|at| plain_entry(pid, memory + at * page_bytes()).expect("a word"));
        assert_eq!(frames, words.map(|word| Some(word & FRAME)).collect::<Vec<_>>(), "process {pid} of {pids:?}");
        frames
    });
    let same: Vec<bool> = frames[0].iter().zip(&frames[1]).map(|(parent, child)| parent == child).collect();
    assert_eq!(same, [false, false, true, true, true, true, true, true]);
    puppet.does("kill", &[child.into()]);
}

/// Pages out all memory of a process that stands still; on this processor, whose batch for the LRU list is then empty.
fn page_out_all(pid: u32, processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor);
    sched_setaffinity(None, &set).expect("a processor");
    let [process, no_flags] = [pid as usize, 0];
    // SAFETY: the process of a test; ranges of its memory, which stays as it is.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, process, no_flags);
        assert!(process >= 0, "a handle for process {pid}");
        for (start, end, _) in plain_maps(pid) {
            let part = libc::iovec {
                iov_base: std::ptr::without_provenance_mut(start as usize),
                iov_len: (end - start) as usize,
            };
            // The kernel refuses it for mappings of its own.
            libc::syscall(libc::SYS_process_madvise, process, &raw const part, 1, libc::MADV_PAGEOUT, no_flags);
        }
        libc::close(process as i32);
    }
}

/// The entries of present pages: of anonymous ones, and of the others.
fn present(pid: u32) -> [Vec<(u64, u64)>; 2] {
    const MOST: u64 = 1 << 16;
    const OF_FILE: u64 = 1 << 61;
    const ZERO_PAGE: u64 = 1 << 24;
    let (others, anonymous): (Vec<_>, Vec<_>) = plain_present_entries(pid, MOST)
        .partition(|(_, word)| word & OF_FILE != 0 || huge::word("/proc/kpageflags", word & FRAME) & ZERO_PAGE != 0);
    [anonymous, others]
}

/// No page of it has a reverse map that leads to the process: the list of processes does.
fn of_a_process_in_swap() {
    const NAME: &str = "tables::of_a_process_in_swap";
    let mut puppet = Puppet::start();
    if let Some(reason) = refusal(&puppet.0.attach()) {
        return skip(NAME, &reason);
    }
    let swap = match system::swap() {
        Ok(swap) => swap,
        Err(reason) => return skip(NAME, &reason),
    };
    let memory = puppet.maps("anonymous", 8);
    puppet.writes(memory, 8);
    puppet.0.stop();
    let pid = puppet.0.pid();
    let processors = sched_getaffinity(None).expect("processors");
    let mut each = (0..CpuSet::MAX_CPU).filter(|&one| processors.is_set(one)).cycle().take(20);
    let is_out = each.any(|processor| {
        std::thread::scope(|scope| _ = scope.spawn(|| page_out_all(pid, processor)));
        present(pid)[0].is_empty()
    });
    let [anonymous, others] = present(pid);
    assert!(is_out, "the kernel kept {anonymous:x?}");
    let target = puppet.0.attach();
    for &(page, word) in &others {
        let entry = table_entries(&target, page * page_bytes(), 1)[0].expect("an entry");
        assert_eq!(entry.frame.get(), word & FRAME, "page {page:#x}");
    }
    assert!(others.len() > 1, "{others:x?}");
    assert_eq!(table_entries(&target, memory, 8), [None; 8]);
    println!("compared {} entries of a process without anonymous pages in memory", others.len());
    drop(puppet);
    drop(swap);
}
