//! Who maps a frame, compared with a reading of every page map; and pages counted by flags, compared with a plain
//! reading.

use super::puppet::Puppet;
use super::support::{is_root, page, page_bytes, plain_entry, plain_maps, skip};
use super::target::{Target, announce, wait};
use super::{Scenario, Test};
use crate::executable;
use pmdb::inspect::who::{EndCause, FrameQuestion, KnownMapping, Mapper, SearchEvent, SearchSummary, who};
use pmdb::kernel::{FrameNumber, VirtualAddress};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::process::Command;

pub const TESTS: &[Test] = &[
    ("who::shared_memory", shared_memory),
    ("who::a_fork_before_and_after_a_write", a_fork_before_and_after_a_write),
    ("who::a_page_of_a_file_at_different_offsets", a_page_of_a_file_at_different_offsets),
    ("who::the_page_of_zeros", the_page_of_zeros),
    ("who::memory_that_is_shared_whole", memory_that_is_shared_whole),
    ("who::a_process_that_ends_meanwhile", a_process_that_ends_meanwhile),
    ("who::a_page_that_moves_meanwhile", a_page_that_moves_meanwhile),
    ("who::a_limit_and_few_files", a_limit_and_few_files),
    ("who::processes_of_others_are_counted", processes_of_others_are_counted),
    ("who::a_mapping_outside_of_the_pid_namespace", a_mapping_outside_of_the_pid_namespace),
    ("who::mappings_by_pmdb_itself", mappings_by_pmdb_itself),
    ("who::without_frame_numbers", without_frame_numbers),
    ("who::summary_counts_every_page_once", summary_counts_every_page_once),
    ("who::summary_of_frames", summary_of_frames),
];

pub const SCENARIOS: &[Scenario] = &[
    ("maps-file", |arguments| {
        let [path, offset, pages, more @ ..] = arguments else {
            panic!("a path and two numbers");
        };
        let number = |text: &String| text.parse::<usize>().expect("a number") * page_bytes() as usize;
        let (offset, length) = (number(offset), number(pages));
        let file = File::open(path).expect("the file");
        let flags = match more {
            [privately] if privately == "privately" => libc::MAP_PRIVATE,
            _ => libc::MAP_SHARED,
        };
        // SAFETY: a new mapping of a file that nobody cuts short.
        let start = unsafe {
            let fd = file.as_raw_fd();
            libc::mmap64(std::ptr::null_mut(), length, libc::PROT_READ, flags, fd, offset as i64)
        };
        for page in 0..length / page_bytes() as usize {
            // SAFETY: within the mapping.
            unsafe { start.cast::<u8>().add(page * page_bytes() as usize).read_volatile() };
        }
        announce(start.addr());
        wait();
    }),
    ("shares-its-memory", |_| {
        let page = vec![7u8; 3 * page_bytes() as usize];
        let mut stack = vec![0u128; 4096];
        let top = stack.as_mut_ptr_range().end;
        extern "C" fn idle(_: *mut libc::c_void) -> libc::c_int {
            loop {
                // SAFETY: it only waits.
                unsafe { libc::pause() };
            }
        }
        // SAFETY: the child has a stack of its own, touches nothing, and ends with this process.
        let child = unsafe { libc::clone(idle, top.cast(), libc::CLONE_VM | libc::SIGCHLD, std::ptr::null_mut()) };
        announce(format!("{child} {}", page.as_ptr().addr() + page_bytes() as usize));
        wait();
        // SAFETY: a child of our own.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
    }),
];

/// A process and an address.
type Place = (u32, u64);

/// The results of a search.
#[derive(Default)]
struct Heard<'a> {
    places: BTreeSet<Place>,
    pages: u64,
    /// What to do when the first mapping is found.
    at_first: Option<Box<dyn FnOnce() + 'a>>,
}

impl Heard<'_> {
    fn found(&mut self, mapper: &Mapper) {
        let pid = mapper.process.pid;
        for nth in 0..mapper.pages {
            let place = (pid, mapper.address.get() + nth * page_bytes());
            assert!(self.places.insert(place), "{place:x?} twice");
        }
        self.pages += mapper.pages;
        if let Some(act) = self.at_first.take() {
            act();
        }
    }
}

/// The frame of an address, read without pmdb.
fn frame_at((pid, address): Place) -> u64 {
    let entry = plain_entry(pid, address).expect("an entry");
    assert!(entry >> 63 == 1, "{address:#x} is present");
    entry & ((1 << 55) - 1)
}

fn asked(frame: u64, seen: Option<Place>) -> FrameQuestion {
    let region = |(pid, address): Place| {
        let target = pmdb::process::Target::attach(pid).expect("to attach");
        let address = VirtualAddress::new(address);
        target.process.region_at(address).expect("a region")
    };
    FrameQuestion {
        frame: FrameNumber::new(frame),
        seen: seen.map(|place| KnownMapping {
            pid: place.0,
            address: VirtualAddress::new(place.1),
            region: region(place),
        }),
        near: seen.map(|(pid, _)| pid),
        scan: true,
        limit: None,
    }
}

fn search(question: &FrameQuestion, heard: &mut Heard) -> SearchSummary {
    let mut search = who(&pmdb::process::machine(), question).expect("a search");
    while let Some(step) = search.next().expect("a step") {
        if let SearchEvent::Found(mapper) = step {
            heard.found(&mapper);
        }
    }
    search.summary()
}

/// Where the frame of an address is mapped: the answer is the same by address, by number, and without the newer calls.
fn mappers(place: Place) -> (BTreeSet<Place>, SearchSummary) {
    let frame = frame_at(place);
    let mut first = Heard::default();
    let answer = search(&asked(frame, Some(place)), &mut first);
    assert_eq!(answer.counts.mappings, first.pages);
    for question in [asked(frame, None), FrameQuestion { scan: false, ..asked(frame, Some(place)) }] {
        let mut again = Heard::default();
        search(&question, &mut again);
        assert_eq!(again.places, first.places, "{question:?}");
    }
    (first.places, answer)
}

/// Every place that maps one of `frames`, from a reading of all page maps, entry by entry. Regions larger than those of
/// these tests are left out: reading whole reservations takes minutes.
fn brute_force(frames: &[u64]) -> BTreeMap<u64, BTreeSet<Place>> {
    const LARGEST: u64 = 4 << 30;
    const STEP: u64 = 32 << 10;
    let mut found: BTreeMap<u64, BTreeSet<Place>> = frames.iter().map(|&frame| (frame, BTreeSet::new())).collect();
    let listed = std::fs::read_dir("/proc").expect("processes");
    let numbers = listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    for pid in numbers {
        let (Ok(map), Ok(maps)) =
            (File::open(format!("/proc/{pid}/pagemap")), std::fs::read(format!("/proc/{pid}/maps")))
        else {
            continue;
        };
        for line in maps.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let line = String::from_utf8_lossy(line);
            let (start, rest) = line.split_once('-').expect("a range");
            let (end, _) = rest.split_once(' ').expect("a range");
            let number = |text: &str| u64::from_str_radix(text, 16).expect("an address");
            let (start, end) = (number(start), number(end));
            if end - start > LARGEST {
                continue;
            }
            let mut address = start;
            while address < end {
                let pages = ((end - address) / page_bytes()).min(STEP);
                let mut bytes = vec![0; pages as usize * 8];
                let read = map.read_at(&mut bytes, address / page_bytes() * 8).unwrap_or(0);
                for (nth, word) in (0u64..).zip(bytes[..read].chunks_exact(8)) {
                    let entry = u64::from_ne_bytes(word.try_into().expect("8 bytes"));
                    if entry >> 63 == 1
                        && let Some(places) = found.get_mut(&(entry & ((1 << 55) - 1)))
                    {
                        places.insert((pid, address + nth * page_bytes()));
                    }
                }
                address += pages * page_bytes();
            }
        }
    }
    found
}

/// Checks that a search finds what a reading of everything finds. Compaction may move a page meanwhile: then both are
/// repeated.
fn is_what_brute_force_finds(places: &[Place]) -> Vec<SearchSummary> {
    const TRIES: usize = 5;
    let frames = || places.iter().map(|&place| frame_at(place)).collect::<Vec<u64>>();
    for _ in 0..TRIES {
        let before = frames();
        let expected = brute_force(&before);
        let found: Vec<_> = places.iter().map(|&place| mappers(place)).collect();
        if frames() != before {
            continue;
        }
        for ((place, frame), (found, _)) in places.iter().zip(&before).zip(&found) {
            assert_eq!(*found, expected[frame], "{place:x?}");
            assert!(found.contains(place));
        }
        return found.into_iter().map(|(_, answer)| answer).collect();
    }
    panic!("{places:x?} never stay where they are");
}

fn shared_memory() {
    if !is_root() {
        return skip("who::shared_memory", "frame numbers are hidden");
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("shared", 4);
    puppet.writes(memory, 4);
    let alone = puppet.maps("memfd", 2);
    puppet.writes(alone, 2);
    let child = puppet.does("fork", &[memory, 4]) as u32;
    let pid = puppet.0.pid();
    let second = memory + page_bytes();
    let answers = is_what_brute_force_finds(&[(pid, second), (child, memory), (pid, alone)]);
    assert_eq!(mappers((pid, second)).0, BTreeSet::from([(pid, second), (child, second)]));
    for (answer, count) in answers.iter().zip([2, 2, 1]) {
        assert_eq!(answer.counts.mappings, count);
        assert_eq!(answer.map_count, Ok(count));
        assert_eq!(answer.end_cause, EndCause::Counted);
    }
    puppet.does("kill", &[child.into()]);
}

fn a_fork_before_and_after_a_write() {
    if !is_root() {
        return skip("who::a_fork_before_and_after_a_write", "frame numbers are hidden");
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 4);
    puppet.writes(memory, 4);
    // The child writes the first page.
    let child = puppet.does("fork", &[memory, 1]) as u32;
    let pid = puppet.0.pid();
    let kept = memory + page_bytes();
    is_what_brute_force_finds(&[(pid, memory), (child, memory), (pid, kept), (child, kept)]);
    assert_eq!(mappers((pid, memory)).0, BTreeSet::from([(pid, memory)]));
    assert_eq!(mappers((child, memory)).0, BTreeSet::from([(child, memory)]));
    let both = BTreeSet::from([(pid, kept), (child, kept)]);
    assert_eq!(mappers((child, kept)).0, both);
    // Now the parent writes one that both still have.
    puppet.writes(kept, 1);
    assert_eq!(mappers((pid, kept)).0, BTreeSet::from([(pid, kept)]));
    assert_eq!(mappers((child, kept)).0, BTreeSet::from([(child, kept)]));
    puppet.does("kill", &[child.into()]);
}

fn a_page_of_a_file_at_different_offsets() {
    if !is_root() {
        return skip("who::a_page_of_a_file_at_different_offsets", "frame numbers are hidden");
    }
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(&vec![3; 16 * page_bytes() as usize]).expect("its contents");
    let path = file.path().to_str().expect("a path").to_owned();
    let maps = |offset: &str, pages: &str| {
        let mut target = Target::start("maps-file", &[&path, offset, pages]);
        let start = target.numbers()[0];
        (target, start)
    };
    let (one, one_start) = maps("0", "8");
    let (other, other_start) = maps("5", "4");
    // Page 6 of the file; page 2 is mapped by one of them only.
    let page = |start: u64, nth: u64| start + nth * page_bytes();
    let in_both = [(one.pid(), page(one_start, 6)), (other.pid(), page(other_start, 1))];
    let in_one = (one.pid(), page(one_start, 2));
    is_what_brute_force_finds(&[in_both[0], in_both[1], in_one]);
    assert_eq!(mappers(in_both[1]).0, BTreeSet::from(in_both));
    assert_eq!(mappers(in_one).0, BTreeSet::from([in_one]));
}

fn the_page_of_zeros() {
    if !is_root() {
        return skip("who::the_page_of_zeros", "frame numbers are hidden");
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 40);
    puppet.reads(memory, 20);
    puppet.reads(memory + 30 * page_bytes(), 1);
    let pid = puppet.0.pid();
    let place = (pid, memory);
    let mut heard = Heard::default();
    let answer = search(&asked(frame_at(place), Some(place)), &mut heard);
    assert_eq!(answer.end_cause, EndCause::Searched);
    assert!(answer.uncounted.is_some());
    let own = heard.places.range((pid, memory)..(pid, memory + 40 * page_bytes()));
    // s390x has several zero pages.
    let expected = (0..20)
        .chain([30])
        .map(|nth| (pid, memory + nth * page_bytes()))
        .filter(|&(_, address)| frame_at((pid, address)) == frame_at(place));
    assert_eq!(own.copied().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

fn memory_that_is_shared_whole() {
    if !is_root() {
        return skip("who::memory_that_is_shared_whole", "frame numbers are hidden");
    }
    let mut target = Target::start("shares-its-memory", &[]);
    let numbers = target.numbers();
    let address = page().floor(VirtualAddress::new(numbers[1])).get();
    let place = (target.pid(), address);
    let (found, answer) = mappers(place);
    assert_eq!(found, BTreeSet::from([place]));
    assert_eq!((answer.counts.mappings, answer.map_count), (1, Ok(1)));
    // Both processes have it, and a reading of every page map finds both, but the kernel counts one mapping.
    let frame = frame_at(place);
    let child = (numbers[0] as u32, address);
    assert_eq!(brute_force(&[frame])[&frame], BTreeSet::from([place, child]));
    target.end();
}

fn a_process_that_ends_meanwhile() {
    if !is_root() {
        return skip("who::a_process_that_ends_meanwhile", "frame numbers are hidden");
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 1);
    puppet.writes(memory, 1);
    let child = puppet.does("fork", &[memory, 0]);
    let place = (puppet.0.pid(), memory);
    let question = asked(frame_at(place), Some(place));
    let mut heard = Heard {
        at_first: Some(Box::new(|| {
            puppet.does("kill", &[child]);
        })),
        ..Heard::default()
    };
    let answer = search(&question, &mut heard);
    assert_eq!(heard.places, BTreeSet::from([place]));
    // The count went down with the child: all remaining mappings were found.
    assert_eq!((answer.map_count, answer.end_cause), (Ok(1), EndCause::Counted));
}

fn a_page_that_moves_meanwhile() {
    if !is_root() {
        return skip("who::a_page_that_moves_meanwhile", "frame numbers are hidden");
    }
    // Parent and child share a page. When it is found in one of them, that one writes to it, or exits: then only the
    // other has it.
    for exits in [false, true] {
        let mut puppet = Puppet::start();
        let memory = puppet.maps("anonymous", 1);
        puppet.writes(memory, 1);
        let child = puppet.does("fork", &[memory, 0]);
        let (parent, child) = ((puppet.0.pid(), memory), (child as u32, memory));
        let seen = if exits { child } else { parent };
        let frame = frame_at(seen);
        let mut heard = Heard {
            at_first: Some(Box::new(|| {
                if exits {
                    puppet.does("kill", &[child.0.into()]);
                } else {
                    puppet.writes(memory, 1)
                }
            })),
            ..Heard::default()
        };
        let answer = search(&asked(frame, Some(seen)), &mut heard);
        assert_eq!(heard.places, BTreeSet::from([parent, child]));
        drop(heard);
        let stays = if exits { parent } else { child };
        assert_eq!(frame_at(stays), frame);
        assert_eq!((answer.map_count, answer.end_cause), (Ok(1), EndCause::Counted));
        assert_eq!((answer.counts.mappings, answer.counts.left), (1, 1));
        assert_eq!(answer.counts.processes, 1);
        assert!(answer.has_moved);
        if !exits {
            puppet.does("kill", &[child.0.into()]);
        }
    }
}

fn a_limit_and_few_files() {
    const NAME: &str = "who::a_limit_and_few_files";
    if !is_root() {
        return skip(NAME, "frame numbers are hidden");
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 1);
    puppet.writes(memory, 1);
    let child = puppet.does("fork", &[memory, 0]);
    let pid = puppet.0.pid();
    // Fewer files than processes, so that processes are not held open after the listing.
    let said = |files: &str, line: &str| {
        let command = format!("ulimit -n {files} && exec \"$0\" \"$@\"");
        let mut shell = Command::new("sh");
        shell.args(["-c", &command, env!("CARGO_BIN_EXE_pmdb")]);
        shell.args(["-nx", "--json", "-batch", "-p", &pid.to_string()]);
        let output = shell.args(["-ex", line]).output().expect("a shell");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("JSON");
        let objects = text.lines().map(serde_json::from_str);
        objects.collect::<Result<Vec<Value>, _>>().expect("objects")
    };
    for files in ["4096", "64"] {
        let all = said(files, &format!("who {memory:#x}"));
        let mappers = of_type(&all, "mapper");
        let pids: BTreeSet<u64> = mappers.iter().filter_map(|row| row["pid"].as_u64()).collect();
        assert_eq!(pids, BTreeSet::from([pid.into(), child]), "{files}");
        let summary = of_type(&all, "who-summary")[0];
        assert_eq!(summary["ended"], "counted", "{files}: {summary}");
        let first = said(files, &format!("who {memory:#x} limit 1"));
        assert_eq!(of_type(&first, "mapper").len(), 1);
        let summary = of_type(&first, "who-summary")[0];
        assert_eq!(summary["ended"], "limit", "{files}: {summary}");
        assert_eq!((&summary["mappings"], &summary["map_count"]), (&1.into(), &2.into()));
        // As many as the kernel counts: the search knows that there are no more.
        let both = said(files, &format!("who {memory:#x} limit 2"));
        assert_eq!(of_type(&both, "who-summary")[0]["ended"], "counted");
    }
    puppet.does("kill", &[child]);
}

/// The output of `pmdb` run by nobody with some capabilities; `None` if that is not possible here.
fn as_nobody(rights: &str, line: &str) -> Option<(Vec<Value>, Option<i32>)> {
    // Where nobody may execute it.
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("pmdb");
    executable::copy(env!("CARGO_BIN_EXE_pmdb"), &program);
    let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), everyone).expect("a folder for everyone");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    if !rights.is_empty() {
        command.args([format!("--inh-caps={rights}"), format!("--ambient-caps={rights}")]);
    }
    command.arg(&program).args(["-nx", "--json", "-batch"]);
    let output = command.args(["-ex", line]).output().ok()?;
    let text = String::from_utf8(output.stdout).expect("JSON");
    let objects = text.lines().map(|line| serde_json::from_str(line).expect("an object"));
    Some((objects.collect(), output.status.code()))
}

fn of_type<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["type"] == kind).collect()
}

fn processes_of_others_are_counted() {
    const NAME: &str = "who::processes_of_others_are_counted";
    if !is_root() {
        return skip(NAME, "frame numbers are hidden");
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("shared", 1);
    puppet.writes(memory, 1);
    let frame = frame_at((puppet.0.pid(), memory));
    let line = format!("who pfn:{frame:#x}");
    // Frame numbers are shown, but the files of others stay closed, and those of frames too.
    let Some((objects, status)) = as_nobody("+sys_admin", &line) else {
        return skip(NAME, "there is no setpriv");
    };
    let summary = of_type(&objects, "who-summary");
    let [summary] = summary.as_slice() else {
        panic!("{objects:?}");
    };
    assert_eq!(status, Some(0));
    assert_eq!(of_type(&objects, "mapper"), Vec::<&Value>::new());
    assert_eq!((&summary["mappings"], &summary["map_count"]), (&0.into(), &Value::Null));
    assert!(summary["why"]["map_count"].is_string() && summary["because"].is_string());
    assert_eq!(summary["ended"], "searched");
    assert!(summary["unreadable"].as_u64() >= Some(1), "{summary}");
}

/// The kernel counts mappings of processes that `/proc` does not list.
fn a_mapping_outside_of_the_pid_namespace() {
    const NAME: &str = "who::a_mapping_outside_of_the_pid_namespace";
    if !is_root() {
        return skip(NAME, "frame numbers are hidden");
    }
    let inside = ["--pid", "--fork", "--mount-proc"];
    if !Command::new("unshare").args(inside).arg("true").status().is_ok_and(|status| status.success()) {
        return skip(NAME, "no pid namespaces");
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("shared", 1);
    puppet.writes(memory, 1);
    let line = format!("who pfn:{:#x}", frame_at((puppet.0.pid(), memory)));
    let within = |json: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(inside).arg(env!("CARGO_BIN_EXE_pmdb")).args(json);
        let output = command.args(["-nx", "-batch", "-ex", &line]).output().expect("pmdb runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let told = within(&["--json"]);
    let summary: Value = serde_json::from_str(told.trim()).expect("an object");
    assert_eq!((&summary["mappings"], &summary["map_count"]), (&0.into(), &1.into()), "{told}");
    assert_eq!(summary["lists_all"], false);
    let told = within(&[]);
    assert!(told.contains("1 mapping not found; it may be in a process outside of this pid namespace"), "{told}");
    // Outside everything is listed.
    let outside = as_root(None, &[&line]);
    let [summary] = of_type(&outside, "who-summary")[..] else { panic!("{outside:?}") };
    assert_eq!((&summary["mappings"], &summary["lists_all"]), (&1.into(), &true.into()));
}

/// A process that maps the file of the program that examines it: each page is mapped once, and once more meanwhile.
fn mappings_by_pmdb_itself() {
    const NAME: &str = "who::mappings_by_pmdb_itself";
    const PAGES: u64 = 64;
    if !is_root() {
        return skip(NAME, "frame numbers are hidden");
    }
    // A copy, which nobody else runs.
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("pmdb");
    executable::copy(env!("CARGO_BIN_EXE_pmdb"), &program);
    let path = program.to_str().expect("a path");
    let mut target = Target::start("maps-file", &[path, "0", &PAGES.to_string(), "privately"]);
    let start = target.numbers()[0];
    let counts = || {
        let file = File::open("/proc/kpagecount").expect("map counts");
        let count = |page| {
            let mut word = [0; 8];
            let frame = frame_at((target.pid(), start + page * page_bytes()));
            file.read_exact_at(&mut word, frame * 8).expect("a word");
            u64::from_ne_bytes(word)
        };
        (0..PAGES).map(count).collect::<Vec<u64>>()
    };
    let alone = vec![1; PAGES as usize];
    assert_eq!(counts(), alone);
    let lines = |lines: &[String], json: &[&str]| {
        let mut command = Command::new(&program);
        command.args(["-nx", "-batch", "--color", "never", "-p", &target.pid().to_string()]).args(json);
        let output = command.args(lines.iter().flat_map(|line| ["-ex", line])).output().expect("pmdb runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let asked = [
        format!("translate {start:#x}"),
        format!("flags {start:#x}"),
        format!("who {start:#x}"),
        format!("region {start:#x}"),
        format!("walk {start:#x}, +{PAGES}p"),
    ];
    let told = lines(&asked, &["--json"]);
    let objects: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    for kind in ["translation", "page-flags", "who-summary"] {
        let [one] = of_type(&objects, kind)[..] else { panic!("{told}") };
        // The kernel's words stay what they are.
        assert_eq!((&one["map_count"], &one["own_mappings"]), (&2.into(), &1.into()), "{one}");
    }
    assert_eq!(of_type(&objects, "translation")[0]["exclusive"], false);
    let [region] = of_type(&objects, "region")[..] else { panic!("{told}") };
    let bytes = |field: &str| region[field].as_u64().unwrap_or_default();
    assert!(bytes("shared_with_pmdb") > 0 && bytes("shared_with_pmdb") == bytes("shared"), "{region}");
    assert_eq!(bytes("private") + bytes("shared"), PAGES * page_bytes(), "{region}");
    let rows = of_type(&objects, "pages");
    assert!(rows.iter().any(|row| row["own_mappings"] == 1), "{told}");
    for row in rows {
        let own = row["own_mappings"].as_u64().unwrap_or_default();
        assert_eq!(row["map_count"].as_u64(), Some(1 + own), "{row}");
    }
    let text = lines(&asked, &[]);
    for says in [
        "2 times, once by pmdb itself",
        "not exclusive only because of pmdb itself",
        "2 mappings in 2 processes, 1 of them by pmdb itself",
        "only by pmdb itself",
        "pmdb itself maps",
    ] {
        assert!(text.contains(says), "{says}: {text}");
    }
    assert_eq!(counts(), alone);
}

fn without_frame_numbers() {
    const NAME: &str = "who::without_frame_numbers";
    if !is_root() {
        return skip(NAME, "only root can become another user");
    }
    let Some((objects, status)) = as_nobody("", "who pfn:0x1000") else {
        return skip(NAME, "there is no setpriv");
    };
    let errors = of_type(&objects, "error");
    assert_eq!(errors.len(), 1, "{objects:?}");
    assert!(errors[0]["message"].as_str().is_some_and(|said| said.contains("CAP_SYS_ADMIN")));
    assert_ne!(status, Some(0));
}

fn as_root(pid: Option<u32>, lines: &[&str]) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pmdb"));
    command.args(["-nx", "--json", "-batch"]);
    if let Some(pid) = pid {
        command.args(["-p", &pid.to_string()]);
    }
    for line in lines {
        command.args(["-ex", line]);
    }
    let output = command.output().expect("pmdb runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("JSON");
    let objects = text.lines().map(|line| serde_json::from_str(line).expect("an object"));
    objects.collect()
}

/// Flags that change by themselves: by reclaim, batches of the LRU, and idle page tracking.
pub const RESTLESS: u64 = 1 << 2 | 1 << 5 | 1 << 6 | 1 << 8 | 1 << 9 | 1 << 25 | DCACHE_CLEAN;

/// PG_arch_1: on arm64 it is set when a page is mapped to be executed for the first time (`sync_icache_dcache`).
const DCACHE_CLEAN: u64 = 1 << 38;

fn flags_of(row: &Value) -> Option<u64> {
    let text = row["flags_raw"].as_str()?;
    let digits = text.strip_prefix("0x").expect("hexadecimal");
    Some(u64::from_str_radix(digits, 16).expect("a number") & !RESTLESS)
}

fn summary_counts_every_page_once() {
    if !is_root() {
        return skip("who::summary_counts_every_page_once", "flags are not readable");
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 50);
    puppet.writes(memory, 20);
    puppet.reads(memory + 30 * page_bytes(), 10);
    puppet.0.stop();
    let pid = puppet.0.pid();
    // Without pmdb: the flags of the frames of all entries.
    let (map, flags_file) = (
        File::open(format!("/proc/{pid}/pagemap")).expect("its page map"),
        File::open("/proc/kpageflags").expect("flags"),
    );
    let word = |file: &File, index: u64| {
        let mut bytes = [0; 8];
        let read = file.read_at(&mut bytes, index * 8).expect("a read");
        (read == 8).then(|| u64::from_ne_bytes(bytes))
    };
    let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
    for (start, end, _) in plain_maps(pid) {
        for index in start / page_bytes()..end / page_bytes() {
            if let Some(entry) = word(&map, index)
                && entry >> 63 == 1
            {
                let flags = word(&flags_file, entry & ((1 << 55) - 1)).expect("flags");
                *expected.entry(flags & !RESTLESS).or_default() += 1;
            }
        }
    }
    let objects = as_root(Some(pid), &["summary", "walk all by flags"]);
    let pages = |row: &&Value| row["pages"].as_u64().expect("pages");
    let mut found: BTreeMap<u64, u64> = BTreeMap::new();
    let rows = of_type(&objects, "summary");
    for row in &rows {
        if let Some(flags) = flags_of(row) {
            *found.entry(flags).or_default() += pages(row);
        } else {
            assert_ne!(row["state"], "present");
        }
        let letters = row["letters"].as_str().unwrap_or_default();
        let names = row["flags"].as_array().map_or(0, Vec::len);
        assert_eq!(letters.replace('_', "").len(), names, "{row}");
    }
    assert_eq!(found, expected);
    // The totals are those of `walk … by flags`, which has one row for all pages without a frame.
    let groups = of_type(&objects, "group");
    let sum = |rows: &[&Value]| rows.iter().map(pages).sum::<u64>();
    assert_eq!(sum(&rows), sum(&groups));
    let without = |rows: &[&Value]| {
        let rows = rows.iter().filter(|row| row["flags_raw"].is_null());
        rows.map(pages).sum::<u64>()
    };
    // Those of device mappings are there, but not shown.
    let no_frame: Vec<&Value> =
        groups.iter().filter(|row| row["key"] == "no frame" || row["key"] == "hidden").copied().collect();
    assert_eq!(without(&rows), sum(&no_frame));
    let closing = of_type(&objects, "walk-summary");
    assert_eq!(closing[0]["pages"], closing[1]["pages"]);
    assert_eq!(closing[0]["pages"].as_u64(), Some(sum(&rows)));
}

fn meminfo() -> String {
    std::fs::read_to_string("/proc/meminfo").expect("the counters")
}

fn summary_of_frames() {
    if !is_root() {
        return skip("who::summary_of_frames", "flags are not readable");
    }
    let objects = as_root(None, &["summary frames full", "summary pfn:0..pfn:0x400"]);
    let closing = of_type(&objects, "frames-summary");
    let rows: u64 = of_type(&objects, "summary")
        .iter()
        .map(|row| {
            assert!(row["state"].is_null());
            row["pages"].as_u64().expect("pages")
        })
        .sum();
    let classes = of_type(&objects, "summary-class");
    let bytes: u64 = classes.iter().map(|row| row["bytes"].as_u64().expect("bytes")).sum();
    assert!(bytes >= super::account::plain_fields(&format!("0-0 r\n{}", meminfo()))[&0]["MemTotal"], "{bytes}");
    assert!(classes.iter().is_sorted_by(|a, b| a["pages"].as_u64() >= b["pages"].as_u64()));
    // Combinations of flags are shown only in full.
    let brief = as_root(None, &["summary frames"]);
    assert_eq!((of_type(&brief, "summary").len(), of_type(&brief, "summary-class").len()), (0, classes.len()));
    let frames = |closing: &Value| closing["frames"].as_u64().expect("frames");
    assert_eq!(rows, frames(closing[0]) + frames(closing[1]));
    assert_eq!(frames(closing[1]), 0x400);
    // Free blocks are no folios: the kernel marks none of their frames as the first.
    let free = format!("walk pfn:0..pfn:{:#x} where flags(buddy) by order", frames(closing[0]));
    let free = as_root(None, &[&free]);
    let orders: Vec<&str> = of_type(&free, "group").iter().filter_map(|group| group["key"].as_str()).collect();
    assert_eq!(orders, ["no folio"]);
    // Up to the last frame of the last zone, or to the end of the file.
    let file = File::open("/proc/kpageflags").expect("flags");
    let has = |frame: u64| {
        let read = file.read_at(&mut [0; 8], frame * 8);
        read.is_ok_and(|read| read == 8)
    };
    assert!(has(frames(closing[0]) - 1));
    let installed = rustix::system::sysinfo();
    let bytes = u128::from(installed.totalram) * u128::from(installed.mem_unit);
    assert!(u128::from(frames(closing[0])) >= bytes / u128::from(page_bytes()));
}
