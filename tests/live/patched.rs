//! `patched`: code that a process has modified, compared with its file.

use super::answers::program;
use super::support::{page_bytes, skip};
use super::symbols::programs::{compile, is_installed};
use super::target::{Target, announce, command, wait};
use super::{Scenario, Test};
use serde_json::Value;
use std::fs::{File, FileTimes};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::time::{Duration, SystemTime};

pub const TESTS: &[Test] = &[
    ("patched::what_a_process_writes_into_its_code_is_found", what_a_process_writes_into_its_code_is_found),
    ("patched::code_that_was_replaced_is_compared_with_its_file", code_that_was_replaced_is_compared_with_its_file),
];

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

/// Puts anonymous memory with the same code in the place of two pages of its own, and changes one byte in the first.
const REPLACING: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#define CODE __attribute__((noinline, aligned(4096), section(".hot")))
CODE int hot(int x) { __asm__ volatile("" : "+r"(x)); return x + 1; }
CODE int next(int x) { __asm__ volatile("" : "+r"(x)); return x + 2; }
CODE int last(int x) { __asm__ volatile("" : "+r"(x)); return x + 3; }
int main(void) {
    static char keep[8192];
    char *code = (char *)hot;
    memcpy(keep, code, 8192);
    keep[64] ^= 1;
    if (mmap(code, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != code)
        return 1;
    memcpy(code, keep, 8192);
    mprotect(code, 8192, PROT_READ | PROT_EXEC);
    printf("%p %d\n", (void *)code, keep[64] & 255);
    fflush(stdout);
    return getchar() == 3;
}
"#;

fn code_that_was_replaced_is_compared_with_its_file() {
    let test = "patched::code_that_was_replaced_is_compared_with_its_file";
    let folder = tempfile::tempdir().expect("a folder");
    if !is_installed("gcc") || page_bytes() != 4096 {
        return skip(test, "there is no C compiler, or pages are not of 4 KiB");
    }
    let file = compile(folder.path(), "program", REPLACING, &["-O1"]).expect("to compile");
    let mut target = Target::spawn(&mut Command::new(&file));
    let [start, changed] = target.numbers()[..] else { panic!("an address and a byte") };
    for lines in ["patched", "patched program"] {
        let said = program(&[], target.pid(), true, &[lines.to_owned()]);
        let records: Vec<Value> = said.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")).collect();
        let rows: Vec<&Value> = records.iter().filter(|record| record["type"] == "patch").collect();
        let differs = rows.iter().find(|row| row["memory"] != Value::Null).unwrap_or_else(|| panic!("{said}"));
        assert_eq!(differs["replaced"], true, "{said}");
        let summary = records.iter().find(|record| record["type"] == "patched-summary").expect("the totals");
        assert_eq!(differs["address"], format!("{:#x}", start + 64), "{said}");
        assert_eq!(differs["memory"], format!("{changed:02x}"));
        assert_eq!(differs["file"], format!("{:02x}", changed ^ 1));
        let same = rows.iter().find(|row| row["memory"] == Value::Null).expect("the other page");
        assert_eq!((&same["address"], &same["replaced"]), (&format!("{:#x}", start + 4096).into(), &true.into()));
        let counts = ["replaced", "private_copies", "stretches", "bytes", "equal", "uncompared"];
        assert_eq!(counts.map(|field| summary[field].as_u64()), [2, 0, 1, 1, 1, 0].map(Some), "{said}");
    }
    let text = program(&[], target.pid(), false, &["patched".to_owned()]);
    assert!(text.contains("2 code pages are not mapped from their file"), "{text}");
    target.send("");
}
