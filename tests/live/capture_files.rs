//! What captures and cores say of mapped files, of shared memory and of contents, compared with the process.

use super::Test;
use super::puppet::Puppet;
use super::support::{page_bytes, skip};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub const TESTS: &[Test] = &[
    ("capture_files::a_name_that_ends_like_the_mark", a_name_that_ends_like_the_mark),
    ("capture_files::a_core_knows_shared_memory_and_copies", a_core_knows_shared_memory_and_copies),
    ("capture_files::a_core_is_compared_with_its_process", a_core_is_compared_with_its_process),
    ("capture_files::registers_of_a_core_are_those_of_its_machine", registers_of_a_core_are_those_of_its_machine),
    ("capture_files::contents_of_two_captures_are_compared", contents_of_two_captures_are_compared),
    ("capture_files::a_file_names_the_lists_that_it_lacks", a_file_names_the_lists_that_it_lacks),
];

const MADV_DONTDUMP: i32 = 16;

fn pmdb(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pmdb")).arg("-nx").args(words).output().expect("pmdb runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

fn done(words: &[&str]) -> String {
    let output = pmdb(words);
    assert!(output.status.success(), "{words:?}: {}", text(&output));
    text(&output)
}

/// The records of one kind.
fn records(words: &[&str], kind: &str) -> Vec<Value> {
    let output = pmdb(&[&["--json"], words].concat());
    assert!(output.status.success(), "{words:?}: {}", text(&output));
    let lines = String::from_utf8(output.stdout).expect("text");
    let all = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
    all.filter(|record| record["type"] == kind).collect()
}

/// A line that runs on a process, capture or core.
fn on<'a>(subject: &'a [String], line: &'a str) -> Vec<&'a str> {
    subject.iter().map(String::as_str).chain(["-batch", "-ex", line]).collect()
}

/// A process, its core, and a capture of it without names.
fn written(puppet: &Puppet, folder: &Path) -> [Vec<String>; 3] {
    let pid = puppet.0.pid().to_string();
    let [core, nameless] = ["core", "nameless"].map(|name| folder.join(name).to_str().expect("a path").to_owned());
    done(&[&pid, "export", "core", &core, "--overwrite"]);
    done(&[&pid, "capture", &nameless, "--overwrite", "without", "names"]);
    [vec!["-p".into(), pid], vec!["-c".into(), core], vec!["-c".into(), nameless]]
}

/// Writes a file of a page, which the process maps.
fn map(puppet: &mut Puppet, folder: &Path, name: &str) -> (PathBuf, u64) {
    let path = folder.join(name);
    std::fs::write(&path, vec![7; page_bytes() as usize]).expect("a file");
    let start = puppet.maps_file(&File::open(&path).expect("it"), 1, libc::PROT_READ, libc::MAP_PRIVATE);
    (path, start)
}

fn a_name_that_ends_like_the_mark() {
    let mut puppet = Puppet::start();
    let folder = tempfile::tempdir().expect("a directory");
    let (_, real) = map(&mut puppet, folder.path(), "real (deleted)");
    let (gone, start) = map(&mut puppet, folder.path(), "gone");
    std::fs::remove_file(gone).expect("to remove it");
    for subject in written(&puppet, folder.path()) {
        let deleted = records(&on(&subject, "regions where deleted"), "region");
        let starts: Vec<&str> = deleted.iter().filter_map(|row| row["start"].as_str()).collect();
        assert_eq!(starts, [format!("{start:#x}")], "{subject:?}");
        let shown = |start: u64| done(&on(&subject, &format!("region {start:#x}")));
        assert!(shown(start).lines().next().is_some_and(|line| line.ends_with(" (deleted)")), "{}", shown(start));
        assert!(shown(real).lines().next().is_some_and(|line| line.ends_with("\\x20(deleted)")), "{}", shown(real));
    }
    // A newline, and the same as it is printed: each has its own text.
    let [(_, newline), (_, backslash)] = ["a\nb", "a\\x0ab"].map(|name| map(&mut puppet, folder.path(), name));
    for subject in &written(&puppet, folder.path())[..2] {
        for (name, start) in [("a\\x0ab", newline), ("a\\nb", newline), ("a\\\\x0ab", backslash)] {
            let found = records(&on(subject, &format!("regions where name == \"{name}\"")), "region");
            let starts: Vec<&str> = found.iter().filter_map(|row| row["start"].as_str()).collect();
            assert_eq!(starts, [format!("{start:#x}")], "{name} {subject:?}");
        }
    }
    // The name as it is printed.
    let pid = puppet.0.pid().to_string();
    let printed = done(&["-p", &pid, "-batch", "-ex", "print 'real\\x20(deleted)'"]);
    assert!(printed.contains(&format!("{real:#x}")), "{printed}");
}

fn a_core_knows_shared_memory_and_copies() {
    let mut puppet = Puppet::start();
    let folder = tempfile::tempdir().expect("a directory");
    let page = page_bytes();
    let [anonymous, memfd] = ["shared", "memfd"].map(|verb| puppet.maps(verb, 8));
    puppet.writes(anonymous, 8);
    puppet.writes(memfd, 8);
    let path = folder.path().join("code");
    std::fs::write(&path, vec![7; 4 * page as usize]).expect("a file");
    let rights = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let code = puppet.maps_file(&File::open(&path).expect("it"), 4, rights, libc::MAP_PRIVATE);
    puppet.reads(code, 4);
    puppet.writes(code + page, 2);
    let [live, core, nameless] = written(&puppet, folder.path());
    for address in [anonymous, memfd, code, code + page] {
        let line = format!("translate {address:#x}");
        let kind = |subject: &[String]| records(&on(subject, &line), "translation").remove(0)["kind"].clone();
        assert!(kind(&live).is_string());
        assert_eq!(kind(&core), kind(&live), "{line}");
    }
    // The copies are found everywhere, and compared where the file is.
    let line = format!("patched {code:#x}, +4p");
    let patched = |subject: &[String]| {
        let summary = records(&on(subject, &line), "patched-summary").remove(0);
        ["private_copies", "uncompared"].map(|field| summary[field].as_u64())
    };
    assert_eq!(patched(&live), [Some(2), Some(0)]);
    assert_eq!(patched(&core), [Some(2), Some(2)]);
    assert_eq!(patched(&nameless), [Some(2), Some(2)]);
    // Why a name is unknown there.
    let hint = |subject: &[String]| text(&pmdb(&on(subject, "print no_such_name")));
    let of_core = hint(&core);
    assert!(of_core.contains("in this core") && !of_core.contains("[vdso]"), "{of_core}");
    let of_nameless = hint(&nameless);
    assert_eq!(of_nameless.matches("left out of this capture").count(), 1, "{of_nameless}");
}

/// The changes that `diff` shows, each with its first address and pages.
/// The same core, and one that claims to be of AArch64.
fn registers_of_a_core_are_those_of_its_machine() {
    if !cfg!(target_arch = "x86_64") {
        return skip("capture_files::registers_of_a_core_are_those_of_its_machine", "it names registers of x86-64");
    }
    let puppet = Puppet::start();
    let folder = tempfile::tempdir().expect("a directory");
    let [_, subject, _] = written(&puppet, folder.path());
    let path = &subject[1];
    let shows = |line: &str| text(&pmdb(&on(&subject, line)));
    assert!(shows("print $rsp").contains("= 0x"), "{}", shows("print $rsp"));
    let mut bytes = std::fs::read(path).expect("the core");
    bytes[18] = 183;
    std::fs::write(path, bytes).expect("to write it");
    assert!(shows("print $rsp").contains("$rsp has not been set"), "{}", shows("print $rsp"));
    // A core has no process that gdb could attach to.
    for line in ["print $rax", "x/i 0x1000", "info auxv"] {
        let said = shows(line);
        assert!(said.contains("gdb PROGRAM CORE") && !said.contains("gdb -p"), "{line}: {said}");
    }
}

fn changes(words: &[&str]) -> Vec<(String, String, u64)> {
    let rows = records(words, "change").into_iter();
    let word = |row: &Value, field: &str| row[field].as_str().expect("a word").to_owned();
    rows.map(|row| (word(&row, "change"), word(&row, "start"), row["pages"].as_u64().expect("pages"))).collect()
}

fn a_core_is_compared_with_its_process() {
    let mut puppet = Puppet::start();
    let folder = tempfile::tempdir().expect("a directory");
    let memory = puppet.maps("anonymous", 40);
    puppet.writes(memory, 8);
    let [live, core, _] = written(&puppet, folder.path());
    let since = format!("diff from {} in {memory:#x}, +40p", core[1]);
    assert_eq!(changes(&["-p", &live[1], "-batch", "-ex", &since]), []);
    puppet.writes(memory + 20 * page_bytes(), 4);
    let came = [("came".to_owned(), format!("{:#x}", memory + 20 * page_bytes()), 4)];
    assert_eq!(changes(&["-p", &live[1], "-batch", "-ex", &since]), came);
    let capture = folder.path().join("later");
    let capture = capture.to_str().expect("a path");
    done(&[&live[1], "capture", capture]);
    assert_eq!(changes(&["-c", capture, "-batch", "-ex", &since]), came);
    // Another process, and another program of the same process, are refused.
    let other = Puppet::start();
    let pid = other.0.pid().to_string();
    let refused = pmdb(&["-p", &pid, "-batch", "-ex", &format!("diff from {}", core[1])]);
    assert!(text(&refused).contains(&format!("is of process {}", live[1])), "{}", text(&refused));
}

fn contents_of_two_captures_are_compared() {
    let mut puppet = Puppet::start();
    let folder = tempfile::tempdir().expect("a directory");
    let [before, after, without] =
        ["before", "after", "without"].map(|name| folder.path().join(name).to_str().expect("a path").to_owned());
    let (pid, page) = (puppet.0.pid().to_string(), page_bytes());
    let memory = puppet.maps("anonymous", 40);
    puppet.writes(memory, 40);
    assert_eq!(puppet.advises(memory + 8 * page, 1, MADV_DONTDUMP), Ok(()));
    done(&[&pid, "capture", &before, "with", "memory"]);
    puppet.writes(memory + 20 * page, 3);
    done(&[&pid, "capture", &after, "with", "memory"]);
    done(&[&pid, "capture", &without]);
    let written = [("written".to_owned(), format!("{:#x}", memory + 20 * page), 3)];
    let within = format!("in {memory:#x}, +40p");
    let since = format!("diff from {before} {within}");
    assert_eq!(changes(&["-c", &after, "-batch", "-ex", &since]), written);
    let summary = records(&["-c", &after, "-batch", "-ex", &since], "diff-summary").remove(0);
    assert_eq!(summary["uncompared"], 1, "{summary}");
    assert_eq!(summary["seconds"].as_f64().map(f64::fract), Some(0.0), "{summary}");
    let take = format!("snapshot a from {before} {within} with content");
    assert_eq!(changes(&["-c", &after, "-batch", "-ex", &take, "-ex", "diff a"]), written);
    // What it answers cannot be read again from the files that it names.
    let line = format!("translate --how {memory:#x}");
    assert!(!done(&["-c", &after, "-batch", "-ex", &line]).contains("xxd"));
    let reads = records(&["-c", &after, "-batch", "-ex", &line], "read");
    assert!(!reads.is_empty() && reads.iter().all(|read| read["repeat"].is_null()), "{reads:?}");
    // Where no page could hide a write, nothing is said about contents.
    let fresh = puppet.maps("anonymous", 4);
    let earlier = folder.path().join("earlier");
    let earlier = earlier.to_str().expect("a path");
    done(&[&pid, "capture", earlier, "with", "memory"]);
    puppet.writes(fresh, 4);
    for (range, is_blind) in [(fresh, false), (memory, true)] {
        let line = format!("diff from {earlier} in {range:#x}, +4p");
        let summary = records(&["-p", &pid, "-batch", "-ex", &line], "diff-summary").remove(0);
        let blind = summary["blind"].as_array().expect("a list").iter();
        assert_eq!(blind.filter(|one| one["kind"] == "written").count(), usize::from(is_blind), "{summary}");
    }
    // Where contents are not compared, it says how they would be.
    let said = done(&["-c", &without, "-batch", "-ex", &since]);
    assert!(said.contains("the open capture has no memory"), "{said}");
    let said = done(&["-p", &pid, "-batch", "-ex", &since]);
    assert!(said.contains("with content`, then `diff old`"), "{said}");
    let refused = pmdb(&["-p", &pid, "-batch", "-ex", &format!("snapshot a from {without} with content")]);
    assert!(!refused.status.success() && text(&refused).contains("this capture"), "{}", text(&refused));
}

/// In place of the descriptors of the process, no list of processes is missed.
fn a_file_names_the_lists_that_it_lacks() {
    let mut puppet = Puppet::start();
    let folder = tempfile::tempdir().expect("a directory");
    let memory = puppet.maps("anonymous", 4);
    let [_, core, nameless] = written(&puppet, folder.path());
    let of_nameless = "the links of /proc/PID/fd: left out of this capture (without names)";
    for (subject, name, links) in
        [(core, "this core", "the links of /proc/PID/fd are not in this core"), (nameless, "this capture", of_nameless)]
    {
        let said = done(&on(&subject, &format!("pins {memory:#x}, +4p")));
        assert!(said.contains(links), "{said}");
        let said = text(&pmdb(&on(&subject, "ps")));
        assert!(said.contains(&format!("the processes of the machine are not in {name}")), "{said}");
    }
}
