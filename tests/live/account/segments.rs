//! System V segments that nobody has attached are charged to a cgroup.

use super::command::of_type;
use super::objects::writes;
use super::*;
use crate::Scenario;
use crate::cgroup::Cgroup;
use crate::puppet::mapped;
use crate::target::{announce, enter_namespace, wait};
use serde_json::Value;

pub const SCENARIOS: &[Scenario] = &[("charged-segments", |_| charged_segments())];

/// Bytes of the segment of the process, and of that of its child, which has ended.
const BYTES: [u64; 2] = [3 << 20, 5 << 20];

/// Makes a segment that nobody has attached, in an IPC namespace of its own, with which it ends.
fn segment(bytes: usize) -> i32 {
    // SAFETY: a new segment of our own, and its memory, of which nobody else knows.
    let (number, start) = unsafe {
        let number = libc::shmget(libc::IPC_PRIVATE, bytes, libc::IPC_CREAT | 0o600);
        (number, libc::shmat(number, std::ptr::null(), 0))
    };
    let address = usize::try_from(mapped(start)).expect("memory");
    writes(address, bytes / page_bytes() as usize);
    // SAFETY: nobody refers to it.
    assert_eq!(unsafe { libc::shmdt(start) }, 0);
    number
}

/// Announces the numbers of two segments, and the child that made the second.
fn charged_segments() {
    announce("here");
    wait();
    // SAFETY: a namespace of this program alone.
    if unsafe { libc::unshare(libc::CLONE_NEWIPC) } != 0 {
        return announce("");
    }
    let first = segment(BYTES[0] as usize);
    // SAFETY: the child has one thread, as this process has.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let number = segment(BYTES[1] as usize);
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(number) };
    }
    let mut status = 0;
    // SAFETY: a child of our own.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    announce(format!("{first} {} {child}", libc::WEXITSTATUS(status)));
    wait();
}

/// The first segment of a namespace has the number 0.
pub fn segments_have_their_number_and_remedy() {
    const NAME: &str = "account::segments_have_their_number_and_remedy";
    let name = format!("pmdb-segments-{}", std::process::id());
    let cgroup = match Cgroup::called(name.as_bytes()) {
        Ok(cgroup) => cgroup,
        Err(reason) => return skip(NAME, &reason),
    };
    let mut target = Target::start("charged-segments", &[]);
    assert_eq!(target.line(), "here");
    cgroup.takes(target.pid());
    target.send("go");
    let [first, second, child] = target.numbers()[..] else {
        return skip(NAME, "the kernel gives no System V segment of a namespace");
    };
    assert_eq!([first, second], [0, 1]);
    let output = |format: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pmdb"));
        command.args(["-nx", "-q", "-batch", "-p", &target.pid().to_string()]).args(format);
        command.args(["-ex", &format!("account cgroup /{name}")]);
        enter_namespace(&mut command, target.pid(), "ipc");
        let output = command.output().expect("pmdb runs");
        String::from_utf8(output.stdout).expect("text")
    };
    let text = output(&["--json"]);
    let all: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    let charged = of_type(&all, "account-charge").into_iter().find(|row| row["class"] == "shared_memory");
    let charged = charged.unwrap_or_else(|| panic!("{text}"));
    assert!(charged["bytes"].as_u64().is_some_and(|bytes| bytes >= BYTES[0] + BYTES[1]), "{charged}");
    let rows = of_type(&all, "account-object");
    for (number, bytes, creator, runs) in
        [(first, BYTES[0], u64::from(target.pid()), true), (second, BYTES[1], child, false)]
    {
        let one = rows.iter().filter(|row| row["kind"] == "system_v" && row["inode"] == number);
        let [row] = one.collect::<Vec<_>>()[..] else { panic!("{text}") };
        assert_eq!([&row["bytes"], &row["unmapped"]], [&Value::from(bytes); 2], "{row}");
        assert_eq!([&row["creator"], &row["creator_runs"]], [&Value::from(creator), &Value::from(runs)], "{row}");
        assert_eq!(row["freed_by"], format!("ipcrm -m {number}"), "{row}");
        assert_eq!(row["may_be_of_another_group"] == true, !runs, "{row}");
        assert_eq!(row["device"], Value::Null, "{row}");
    }
    let text = output(&[]);
    for (number, size) in [(first, "3 MiB"), (second, "5 MiB")] {
        let words = [format!("shmid {number} "), format!("ipcrm -m {number}"), size.to_owned()];
        let is_row = |line: &str| words.iter().all(|words| line.contains(words));
        assert_eq!(text.lines().filter(|line| is_row(line)).count(), 1, "{number}: {text}");
    }
}
