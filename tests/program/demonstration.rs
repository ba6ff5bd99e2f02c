//! The demonstration process: what it sets up is as it says, and it never outlives its parent.
use pmdb::demo::{self, Area, Demonstration};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const PMDB: &str = env!("CARGO_BIN_EXE_pmdb");

/// A deadline for something immediate: reached only if it does not happen.
const DEADLINE: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };

fn started() -> Demonstration {
    demo::start_program(Path::new(PMDB)).expect("the demonstration starts")
}

fn handle(pid: u32) -> OwnedFd {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    pidfd_open(pid, PidfdFlags::empty()).expect("the process is there")
}

fn ends(handle: &OwnedFd) -> bool {
    let mut ends = [PollFd::new(handle, PollFlags::IN)];
    poll(&mut ends, Some(&DEADLINE)).expect("poll") == 1
}

/// The page-map entries of an area, read plainly.
fn entries(pid: u32, area: &Area) -> Vec<u64> {
    let page = rustix::param::page_size() as u64;
    let first = area.range.start().get() / page;
    let last = (area.range.end().get() - 1) / page;
    let mut bytes = vec![0; 8 * (last - first + 1) as usize];
    File::open(format!("/proc/{pid}/pagemap"))
        .and_then(|map| map.read_exact_at(&mut bytes, first * 8))
        .expect("the page map");
    bytes.chunks_exact(8).map(|entry| u64::from_ne_bytes(entry.try_into().expect("8 bytes"))).collect()
}

fn present(entry: u64) -> bool {
    entry >> 63 == 1
}

fn of_file(entry: u64) -> bool {
    entry >> 61 & 1 == 1
}

fn exclusive(entry: u64) -> bool {
    entry >> 56 & 1 == 1
}

#[test]
fn it_sets_up_what_it_says() {
    let demonstration = started();
    let pid = demonstration.pid;
    let names: Vec<&str> = demonstration.areas.iter().map(|area| area.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "buffer",
            "zeroed",
            "counter",
            "heap_block",
            "private_file",
            "shared",
            "anonymous",
            "zero",
            "untouched",
            "huge",
            "guard",
            "busy"
        ]
    );
    let of = |name: &str| entries(pid, demonstration.area(name).expect(name));

    let buffer = of("buffer");
    let (written, read) = buffer.split_at(buffer.len().div_ceil(2));
    assert!(written.iter().all(|&entry| present(entry) && !of_file(entry)));
    assert!(read.iter().all(|&entry| present(entry) && of_file(entry)));
    // The child has copied the first two; the others are still shared with it.
    assert!(written.iter().take(2).all(|&entry| exclusive(entry)));
    assert!(written.iter().skip(2).all(|&entry| !exclusive(entry)));

    let zeroed = of("zeroed");
    assert!(zeroed.iter().take(4).all(|&entry| present(entry)));
    assert!(zeroed.iter().skip(4).all(|&entry| entry & 1 << 63 == 0));

    assert!(of("heap_block").into_iter().all(present));

    let private = of("private_file");
    assert!(private.iter().all(|&entry| present(entry)));
    assert!(private.iter().enumerate().all(|(index, &entry)| of_file(entry) == (index != 1)));

    let shared = of("shared");
    assert!(shared.iter().take(8).all(|&entry| present(entry) && of_file(entry) && !exclusive(entry)));
    assert!(shared.iter().skip(8).all(|&entry| !present(entry)));

    let anonymous = of("anonymous");
    assert!(anonymous.iter().take(4).all(|&entry| present(entry) && exclusive(entry)));
    assert!(anonymous.iter().take(16).skip(4).all(|&entry| present(entry) && !exclusive(entry)));
    assert!(anonymous.iter().skip(16).all(|&entry| !present(entry)));

    let zero = of("zero");
    assert!(zero.iter().all(|&entry| present(entry) && entry == zero[0]));
    assert!(of("untouched").into_iter().all(|entry| !present(entry)));
    assert!(of("huge").into_iter().all(present));

    let guard = of("guard");
    let sentence = &demonstration.area("guard").expect("guard").sentence;
    assert_eq!(guard.len(), 1);
    // A guard page is a marker of its own kind in an entry that is not present; without it the page was written to.
    assert_eq!(present(guard[0]), sentence.contains("no guard pages"));
    assert_eq!(guard[0] >> 62 & 1 == 1, sentence.starts_with("a guard page"));
}

#[test]
fn the_huge_page_is_as_huge_as_it_says() {
    let demonstration = started();
    let huge = demonstration.area("huge").expect("huge");
    assert_eq!(huge.range.start().get() % huge.range.len(), 0);
    let smaps = File::open(format!("/proc/{}/smaps", demonstration.pid)).expect("smaps");
    let holds_it = |line: &String| {
        let number = |text| u64::from_str_radix(text, 16).unwrap_or_default();
        line.split(' ').next().and_then(|range| range.split_once('-')).is_some_and(|(start, end)| {
            number(start) <= huge.range.start().get() && huge.range.end().get() <= number(end)
        })
    };
    let huge_kib = BufReader::new(smaps)
        .lines()
        .map(|line| line.expect("a line"))
        .skip_while(|line| !holds_it(line))
        .find(|line| line.starts_with("AnonHugePages:"))
        .expect("its region says how much is huge");
    let is_huge = !huge_kib.ends_with(" 0 kB");
    assert_eq!(is_huge, huge.sentence.contains("in one huge page"), "{}: {huge_kib}", huge.sentence);
}

#[test]
fn the_child_has_its_own_copies() {
    let demonstration = started();
    let buffer = demonstration.area("buffer").expect("buffer");
    let child = entries(demonstration.child_pid, buffer);
    assert!(child.iter().take(2).all(|&entry| present(entry) && exclusive(entry)));
    let status = std::fs::read_to_string(format!("/proc/{}/status", demonstration.child_pid)).expect("status");
    assert!(status.contains(&format!("PPid:\t{}\n", demonstration.pid)), "{status}");
    for pid in [demonstration.pid, demonstration.child_pid] {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).expect("comm");
        assert_eq!(name, "pmdb-demo\n");
    }
}

#[test]
fn the_busy_pages_change() {
    let demonstration = started();
    let busy = demonstration.area("busy").expect("busy");
    let before = entries(demonstration.pid, busy);
    let started = std::time::Instant::now();
    while entries(demonstration.pid, busy) == before {
        assert!(started.elapsed().as_secs() < 20, "nothing has changed");
        std::thread::yield_now();
    }
}

#[test]
fn dropping_it_ends_both_processes() {
    let mut demonstration = started();
    assert!(demonstration.is_running());
    let (process, child) = (handle(demonstration.pid), handle(demonstration.child_pid));
    drop(demonstration);
    assert!(ends(&process) && ends(&child));
}

#[test]
fn a_stopped_one_is_ended_too() {
    let demonstration = started();
    let (process, child) = (handle(demonstration.pid), handle(demonstration.child_pid));
    rustix::process::pidfd_send_signal(&process, rustix::process::Signal::STOP).expect("stopped");
    drop(demonstration);
    assert!(ends(&process) && ends(&child));
}

/// Reads what a demonstration process says until it is ready; returns its child.
fn child_of(process: &mut Child) -> u32 {
    let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
    let mut child = None;
    for line in lines.map(|line| line.expect("a line")) {
        if let Some(pid) = line.strip_prefix("child ") {
            child = pid.parse().ok();
        } else if line == "ready" {
            break;
        }
    }
    child.expect("it is ready and has a child")
}

#[test]
fn the_end_of_the_pipe_alone_ends_both() {
    let mut process = Command::new(PMDB)
        .arg("__demo")
        .arg(std::process::id().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let child = handle(child_of(&mut process));
    drop(process.stdin.take());
    assert!(process.wait().expect("it ends").success());
    assert!(ends(&child));
}

#[test]
fn the_death_of_the_parent_alone_ends_both() {
    // The shell takes the place of pmdb; the pipe stays open in this process.
    let mut parent = Command::new("sh")
        .args(["-c", "exec 3<&0; \"$0\" __demo $$ <&3 & echo process $! >&2; wait", PMDB])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the shell starts");
    let pipe = parent.stdin.take();
    let mut line = String::new();
    BufReader::new(parent.stderr.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let pid = line.trim().strip_prefix("process ").and_then(|pid| pid.parse().ok());
    let process = handle(pid.expect("a pid"));
    let child = handle(child_of(&mut parent));
    parent.kill().expect("the shell is killed");
    assert!(ends(&process) && ends(&child));
    parent.wait().expect("the shell is reaped");
    drop(pipe);
}

#[test]
fn asked_for_by_somebody_else_it_refuses() {
    let without_parent = Command::new(PMDB).arg("__demo").output().expect("it runs");
    assert_eq!(without_parent.status.code(), Some(2));
    // Process 1 is the parent of no test.
    let orphan = Command::new(PMDB).args(["__demo", "1"]).output().expect("it runs");
    assert_eq!(orphan.status.code(), Some(1));
    assert!(orphan.stdout.starts_with(b"failed "));
}

#[test]
fn a_program_that_is_none_is_an_error() {
    let missing = demo::start_program(Path::new("/nonexistent/pmdb")).expect_err("no such program");
    assert!(missing.to_string().contains("demonstration process"), "{missing}");
    let other = demo::start_program(Path::new("/bin/true")).expect_err("it says nothing");
    assert!(other.to_string().contains("before it was ready"), "{other}");
}
