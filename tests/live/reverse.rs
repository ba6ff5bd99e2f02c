//! The mappings of a frame by the kernel's own records: they are those that a search through all processes finds.

use super::puppet::{each_page, fork, memfd};
use super::support::{Numbers, page_bytes, plain_entry, plain_present_entries, skip};
use super::target::{Target, announce, wait};
use super::{Scenario, Test};
use pmdb::budget::Budget;
use pmdb::inspect::who::{EndCause, FrameQuestion, SearchEvent, SearchSummary, who};
use pmdb::kernel::{FrameNumber, Region};
use pmdb::process::{FrameOwner, FrameRecord, Identity, Machine, RecordParts};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    ("reverse::several_threads_read_records", several_threads_read_records),
    ("reverse::many_processes_map_a_page", many_processes_map_a_page),
    ("reverse::while_processes_come_and_go", while_processes_come_and_go),
];

pub const SCENARIOS: &[Scenario] =
    &[("has-many-children", has_many_children), ("forks-all-the-time", forks_all_the_time)];

/// Pages of its own, and pages of shared memory.
fn some_memory(pages: usize) -> [usize; 2] {
    let bytes = pages * page_bytes() as usize;
    let file = memfd(bytes);
    [(-1, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS), (file.as_raw_fd(), libc::MAP_SHARED)].map(|(fd, flags)| {
        // SAFETY: a new mapping.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0) };
        // SAFETY: memory that was just mapped.
        each_page(start.addr(), pages, |byte| unsafe { byte.write_volatile(7) });
        start.addr()
    })
}

fn has_many_children(arguments: &[String]) {
    let children: usize = arguments[0].parse().expect("a number");
    let [own, shared] = some_memory(1);
    for _ in 0..children {
        // It writes to the shared page, and so maps it.
        assert!(fork(shared, 1) > 0, "a child");
    }
    // The last one has a copy of the other page.
    announce(format!("{own} {shared} {}", fork(own, 1)));
    wait();
}

fn forks_all_the_time(_: &[String]) {
    const PAGES: usize = 32;
    let [own, shared] = some_memory(PAGES);
    // SAFETY: this program has one thread here, and the children call nothing that takes a lock.
    if unsafe { libc::fork() } == 0 {
        // SAFETY: as above.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        let mut alive = std::collections::VecDeque::new();
        loop {
            // They have copies of some pages.
            alive.push_back(fork(own, alive.len() % 8) as i32);
            if alive.len() > 24 {
                let oldest = alive.pop_front().expect("a child");
                // SAFETY: a child of our own.
                unsafe {
                    libc::kill(oldest, libc::SIGKILL);
                    libc::waitpid(oldest, std::ptr::null_mut(), 0);
                }
            }
        }
    }
    announce(format!("{own} {shared}"));
    wait();
}

type Place = (u32, u64);

fn machine(records: bool) -> Arc<Machine> {
    let machine = pmdb::process::machine();
    machine.set_records(records);
    machine
}

/// Why records cannot be read here.
fn refusal() -> Option<String> {
    machine(true).require_records(RecordParts::OWNER).err().map(|error| error.to_string())
}

/// Each place, with its process and its region.
type Mappings = BTreeMap<Place, (Identity, Option<Region>)>;

fn search(machine: &Arc<Machine>, frame: u64) -> (Mappings, SearchSummary, Duration) {
    let began = Instant::now();
    let mut search = who(machine, &FrameQuestion::of(FrameNumber::new(frame))).expect("a search");
    let mut mappings = Mappings::new();
    while let Some(step) = search.next().expect("a step") {
        if let SearchEvent::Found(mapper) = step {
            let place = (mapper.process.pid, mapper.address.get());
            let before = mappings.insert(place, (mapper.process, mapper.region));
            assert_eq!(before, None, "{place:x?} twice");
        }
    }
    let summary = search.summary();
    (mappings, summary, began.elapsed())
}

const FRAME: u64 = (1 << 55) - 1;

fn many_processes_map_a_page() {
    const NAME: &str = "reverse::many_processes_map_a_page";
    const CHILDREN: u64 = 2000;
    if let Some(reason) = refusal() {
        return skip(NAME, &reason);
    }
    let mut target = Target::start("has-many-children", &[&CHILDREN.to_string()]);
    let numbers = target.numbers();
    let (own, copier) = (target.pid(), numbers[2] as u32);
    let places = [
        ("anonymous", own, numbers[0], CHILDREN + 1),
        ("shared", own, numbers[1], CHILDREN + 1),
        ("copied", copier, numbers[0], 1),
    ];
    for (kind, pid, address, mappers) in places {
        let frame = plain_entry(pid, address).expect("an entry") & FRAME;
        let mut fastest = [Duration::MAX; 2];
        for _ in 0..3 {
            let [(by_records, answer, fast), (by_search, searched, slow)] =
                [true, false].map(|records| search(&machine(records), frame));
            assert_eq!(by_records, by_search, "{kind}");
            assert_eq!(by_records.len() as u64, mappers, "{kind}");
            let named = machine(true).mappers(FrameNumber::new(frame), &mut |_| false, &mut Budget::unlimited());
            let named = named.map(|named| named.len());
            let counts = &answer.counts;
            assert_eq!(
                (answer.by_records, answer.end_cause),
                (true, EndCause::Counted),
                "{kind}: {named:?}, {counts:?}"
            );
            assert_eq!((searched.by_records, searched.end_cause), (false, EndCause::Counted), "{kind}");
            fastest = [fastest[0].min(fast), fastest[1].min(slow)];
        }
        let [fast, slow] = fastest;
        println!("{kind}: {mappers} mappers by records in {fast:?}, by a search in {slow:?}");
        assert!(fast * 5 < slow, "{kind}: {fast:?} by records, {slow:?} by a search");
    }
    target.end();
}

/// The kernel has one buffer for all reads of an open file.
fn several_threads_read_records() {
    const NAME: &str = "reverse::several_threads_read_records";
    const PAGES: usize = 256;
    if let Some(reason) = refusal() {
        return skip(NAME, &reason);
    }
    let [_, shared] = some_memory(PAGES);
    let frame_of = |nth: usize| {
        let address = shared as u64 + nth as u64 * page_bytes();
        plain_entry(std::process::id(), address).expect("an entry") & FRAME
    };
    let machine = machine(true);
    let read = |thread: usize| {
        for nth in (0..10 * PAGES).map(|step| (step * (2 * thread + 1)) % PAGES) {
            let frame = frame_of(nth);
            let mut record = [FrameRecord::default()];
            machine.frame_records(FrameNumber::new(frame), RecordParts::OWNER, &mut record).expect("a record");
            let index = match record[0].owner {
                Some(FrameOwner::File(page)) => Some(page.index),
                _ => None,
            };
            // The page may move meanwhile.
            assert!(index == Some(nth as u64) || frame_of(nth) != frame, "{nth}: {record:?}");
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || read(thread));
        }
    });
}

/// Frames that processes map, each as often as it was found.
fn mapped_frames(pids: &[u32]) -> Vec<u64> {
    const MOST: u64 = 1 << 12;
    let entries = pids.iter().flat_map(|&pid| plain_present_entries(pid, MOST));
    entries.map(|(_, word)| word & FRAME).collect()
}

fn while_processes_come_and_go() {
    const NAME: &str = "reverse::while_processes_come_and_go";
    const FRAMES: usize = 1000;
    const TRIES: usize = 12;
    if let Some(reason) = refusal() {
        return skip(NAME, &reason);
    }
    let mut forking = Target::start("forks-all-the-time", &[]);
    forking.numbers();
    let mut idle = Target::start("idle", &[]);
    idle.line();
    let frames = mapped_frames(&[forking.pid(), idle.pid(), std::process::id()]);
    let counts = File::open("/proc/kpagecount").expect("map counts");
    let count = |frame: u64| {
        let mut word = [0; 8];
        counts.read_exact_at(&mut word, frame * 8).expect("a count");
        u64::from_ne_bytes(word)
    };
    let mut random = Numbers(7);
    let (mut compared, mut by_records) = (0, 0);
    for _ in 0..FRAMES {
        let frame = frames[random.below(frames.len() as u64) as usize];
        // Both may be right and differ, if a process came or went in between.
        let agree = (0..TRIES).any(|_| {
            let before = count(frame);
            let (recorded, answer, _) = search(&machine(true), frame);
            let (searched, _, _) = search(&machine(false), frame);
            let (again, ..) = search(&machine(true), frame);
            by_records += usize::from(answer.by_records);
            count(frame) != before || recorded != again || recorded == searched
        });
        assert!(agree, "frame {frame:#x}");
        compared += 1;
    }
    println!("compared {compared} frames; records named the processes {by_records} times");
    assert!(by_records > compared / 2, "{by_records} of {compared}");
}
