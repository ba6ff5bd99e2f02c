//! `patched`: code that a process has modified, compared with its file.

use super::answers::program;
use super::support::page_bytes;
use super::target::{Target, announce, command, wait};
use super::{Scenario, Test};
use serde_json::Value;
use std::fs::{File, FileTimes};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

pub const TESTS: &[Test] =
    &[("patched::what_a_process_writes_into_its_code_is_found", what_a_process_writes_into_its_code_is_found)];

/// Maps three pages of the file that its argument names as code, writes into the second, and writes into the third and
/// takes it back.
pub const SCENARIOS: &[Scenario] = &[("patched", |arguments| {
    let file = File::open(&arguments[0]).expect("the file");
    let page = page_bytes() as usize;
    let writable = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    // SAFETY: a new mapping at a place that the kernel chooses, and writes into it alone.
    let start = unsafe {
        let start = libc::mmap(std::ptr::null_mut(), 3 * page, writable, libc::MAP_PRIVATE, file.as_raw_fd(), 0);
        assert_ne!(start, libc::MAP_FAILED);
        let code = start.cast::<u8>();
        code.add(page + 16).write_volatile(0xcc);
        for offset in 100..103 {
            code.add(page + offset).write_volatile(0x90);
        }
        let before = code.add(2 * page).read_volatile();
        code.add(2 * page).write_volatile(!before);
        code.add(2 * page).write_volatile(before);
        let is_code = libc::PROT_READ | libc::PROT_EXEC;
        assert_eq!(libc::mprotect(start, 3 * page, is_code), 0);
        start
    };
    announce(format_args!("{:#x}", start.addr()));
    wait();
})];

fn what_a_process_writes_into_its_code_is_found() {
    let page = page_bytes();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("code");
    // The header of a program for x86-64, so that a breakpoint has its name on every machine.
    let mut bytes = vec![0x5a; 3 * page as usize];
    bytes[..20].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0");
    std::fs::write(&path, &bytes).expect("a file");
    let mut target = Target::spawn(&mut command("patched", &[path.to_str().expect("a name")]));
    let start = target.numbers()[0];
    let file = File::options().write(true).open(&path).expect("the file");
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let times = FileTimes::new().set_accessed(long_ago);
    file.set_times(times).expect("to set its times");

    let lines = [format!("patched {start:#x}, +{:#x}", 3 * page)];
    let said = program(&[], target.pid(), true, &lines);
    let records = said.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let (rows, rest): (Vec<Value>, Vec<Value>) = records
        .filter(|record| record["type"] == "patch" || record["type"] == "patched-summary")
        .partition(|record| record["type"] == "patch");
    let told: Vec<_> = rows
        .iter()
        .map(|row| {
            let text = |field: &str| row[field].as_str().unwrap_or("-").to_owned();
            let fields = ["address", "memory", "file", "breakpoint"].map(text);
            (fields, row["length"].as_u64().expect("a length"))
        })
        .collect();
    let wanted = |offset: u64, memory: &str, file: &str, breakpoint: &str| {
        let address = format!("{:#x}", start + offset);
        [address.as_str(), memory, file, breakpoint].map(str::to_owned)
    };
    assert_eq!(
        told,
        [
            (wanted(page + 16, "cc", "5a", "int3"), 1),
            (wanted(page + 100, "909090", "5a5a5a", "-"), 3),
            (wanted(2 * page, "-", "-", "-"), page),
        ]
    );
    let [summary] = &rest[..] else {
        panic!("{said}");
    };
    for (field, number) in
        [("private_copies", 2), ("equal", 1), ("stretches", 2), ("bytes", 4), ("breakpoints", 1), ("uncompared", 0)]
    {
        assert_eq!(summary[field], number, "{field}");
    }
    // The file was read, but does not tell.
    let accessed = std::fs::metadata(&path).expect("its times").atime();
    assert_eq!(accessed, 1_000_000_000);
    // Only the requested range is reported.
    let lines = [format!("patched {:#x}, +16", start + page + 100)];
    let said = program(&[], target.pid(), true, &lines);
    assert_eq!(said.matches("\"type\":\"patch\"").count(), 1, "{said}");
    assert!(said.contains("\"private_copies\":1,\"equal\":0,\"outside\":0,\"stretches\":1"), "{said}");
    // On its page, other bytes than those of the range differ.
    let lines = [format!("patched {:#x}, +16", start + page + 200)];
    let said = program(&[], target.pid(), true, &lines);
    assert!(said.contains("\"private_copies\":1,\"equal\":0,\"outside\":1,\"stretches\":0"), "{said}");
    let said = program(&[], target.pid(), false, &lines);
    assert!(said.contains("1 code page is a private copy; nothing in the range differs from the file"), "{said}");
}
