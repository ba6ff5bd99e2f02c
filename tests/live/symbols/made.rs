//! Names of JIT-compiled code, from the target's perf map.

use super::super::answers::program;
use super::super::support::skip;
use super::super::target::Target;
use super::programs::is_installed;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Maps memory for code, writes a perf map for it, and adds to the map when it is told to.
const PROGRAM: &str = r#"
import ctypes, mmap, os
code = mmap.mmap(-1, 65536, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
at = ctypes.addressof(ctypes.c_char.from_buffer(code))
code[0] = 0x90
code[8192] = 0x90
path = f"/tmp/perf-{os.getpid()}.map"
with open(path, "wb") as file:
    file.write(b"garbage\n\xff\xfe zz\n%x 40 jit_first\n%x 20 py::second:/a b.py\n%x 10 hostile\x1b[31m\xff\n%x 40 jit_third\n" % (at, at + 0x80, at + 0x100, at + 8192))
print(hex(at), flush=True)
input()
with open(path, "ab") as file:
    file.write(b"%x 40 jit_newer\n" % at)
print(hex(at), flush=True)
input()
"#;

/// The file goes with the test.
struct Written(PathBuf);

impl Drop for Written {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

/// The answers to some lines, with perf maps or without.
fn answers(pid: u32, first: &str, lines: &[String]) -> Vec<Value> {
    let lines: Vec<String> = std::iter::once(first.to_owned()).chain(lines.iter().cloned()).collect();
    let said = program(&[], pid, true, &lines);
    said.lines().map(|line| serde_json::from_str(line).expect("a record")).collect()
}

pub(super) fn code_that_a_program_made() {
    let test = "symbols::code_that_a_program_made";
    if !is_installed("python3") {
        return skip(test, "there is no python3 here");
    }
    let mut target = Target::spawn(Command::new("python3").args(["-c", PROGRAM]));
    let at = target.numbers()[0];
    let pid = target.pid();
    let written = Written(format!("/tmp/perf-{pid}.map").into());
    let lines = [
        format!("info symbol {:#x}", at + 4),
        "info address jit_first".to_owned(),
        "info address 'py::second:/a b.py'".to_owned(),
        format!("info symbol {:#x}", at + 0x104),
        format!("translate {:#x}", at + 8),
    ];
    let names = |first: &str| -> Vec<(String, u64)> {
        let records = answers(pid, first, &lines);
        let symbols = records.iter().filter(|one| one["type"] == "symbol");
        symbols.filter_map(|one| Some((one["name"].as_str()?.to_owned(), one["offset"].as_u64()?))).collect()
    };
    let named = |list: &[(&str, u64)]| -> Vec<(String, u64)> {
        list.iter().map(|&(name, offset)| (name.to_owned(), offset)).collect()
    };
    assert_eq!(names("set perf maps off"), [], "only where it is asked for");
    let hostile = ("hostile\\x1b[31m\\xff", 4);
    let second = ("py::second:/a b.py", 0);
    let first = ("jit_first", 4);
    assert_eq!(names("set perf maps on"), named(&[first, ("jit_first", 0), second, hostile]));
    let translated = answers(pid, "set perf maps on", &lines[4..]);
    let translation = translated.iter().find(|one| one["type"] == "translation");
    let symbol = &translation.expect("a translation")["symbol"];
    assert_eq!(symbol["name"], "jit_first", "{symbol}");

    // A page is counted for the function that it begins in.
    let by_symbol = |first: &str| {
        let lines = [format!("walk {at:#x}, +4p where present by symbol")];
        let groups = answers(pid, first, &lines).into_iter().filter(|one| one["type"] == "group");
        let name = |group: &Value| (group["key"].as_str().expect("a key").to_owned(), group["pages"].clone());
        groups.map(|group| name(&group)).collect::<Vec<_>>()
    };
    assert_eq!(by_symbol("set perf maps off"), [("no symbol".to_owned(), 2.into())]);
    let file = format!("perf-{pid}.map");
    let expected = [format!("jit_first of {file}"), format!("jit_third of {file}")].map(|name| (name, 1.into()));
    assert_eq!(by_symbol("set perf maps on"), expected);

    // It is a row among those of the files.
    let modules = "info modules".to_owned();
    let listed = |first: &str| {
        let records = answers(pid, first, std::slice::from_ref(&modules));
        let mut rows = records.into_iter().filter(|one| one["answers"] == "perf-map");
        rows.next()
    };
    assert_eq!(listed("set perf maps off"), None);
    let row = listed("set perf maps on").expect("its row");
    assert_eq!(row["name"], written.0.to_str().expect("plain"));
    assert_eq!(row["start"], format!("{at:#x}"));
    assert_eq!(row["end"], format!("{:#x}", at + 8192 + 0x40));
    assert_eq!(row["symbols"], 4);

    // `who` names the code too.
    let who = answers(pid, "set perf maps on", &[format!("who {at:#x}")]);
    let mapper = who.iter().find(|one| one["type"] == "mapper");
    match mapper {
        Some(mapper) => assert_eq!(mapper["symbol"]["name"], "jit_first", "{mapper}"),
        None => skip(test, "frame numbers are hidden here"),
    }

    // Later lines are read, and replace earlier ones.
    target.send("");
    target.line();
    let newer = ("jit_newer", 4);
    assert_eq!(names("set perf maps on"), named(&[newer, second, hostile]));

    // A link to another file under that name is not trusted.
    let other = written.0.with_extension("other");
    std::fs::rename(&written.0, &other).expect("to be moved");
    let other = Written(other);
    std::os::unix::fs::symlink(&other.0, &written.0).expect("a link");
    assert_eq!(names("set perf maps on"), []);
    assert_eq!(listed("set perf maps on"), None);
    let records = answers(pid, "set perf maps on", &[modules]);
    let row = records.iter().find(|one| one["name"] == row["name"]);
    let row = row.expect("a row that says so");
    assert!(row["symbols"].is_null() && row["answers"].is_null());
    for field in ["symbols", "answers"] {
        let why = row["why"][field].as_str().expect("a reason");
        assert!(why.contains("is not a regular file"), "{why}");
    }
    target.send("");
}
