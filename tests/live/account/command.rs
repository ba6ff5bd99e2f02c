//! `account` as the program shows it.

use super::*;
use crate::support::is_root;
use pmdb::kernel::words::Worded;
use serde_json::Value;

/// The records of a command.
pub fn records(pid: u32, command: &str) -> Vec<Value> {
    records_of(["-p", &pid.to_string()], command)
}

/// What `command` answers about a capture or core.
pub fn records_of_file(file: &str, command: &str) -> Vec<Value> {
    records_of(["-c", file], command)
}

fn records_of(target: [&str; 2], command: &str) -> Vec<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_pmdb"))
        .args(["-nx", "-q", "-batch", "--json"])
        .args(target)
        .args(["-ex", command])
        .output()
        .expect("pmdb runs");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{text}");
    text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect()
}

pub fn of_type<'a>(records: &'a [Value], kind: &str) -> Vec<&'a Value> {
    records.iter().filter(|record| record["type"] == kind).collect()
}

pub fn bytes(record: &Value) -> u64 {
    record["bytes"].as_u64().unwrap_or_else(|| panic!("no bytes: {record}"))
}

/// A puppet with memory of many classes, stopped.
fn varied() -> (Puppet, u64) {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 40);
    puppet.writes(memory, 30);
    let shared = puppet.maps("shared", 20);
    puppet.writes(shared, 15);
    let copies = puppet.maps("program", 8);
    puppet.writes(copies, 4);
    let child = puppet.does("fork", &[memory, 5]);
    puppet.0.stop();
    (puppet, child)
}

pub fn end(child: u64) {
    use rustix::process::{Pid, Signal, kill_process};
    kill_process(Pid::from_raw(child as i32).expect("its number"), Signal::KILL).expect("to end it");
}

/// The rows add up to the sum, which is Rss, whatever they are grouped by.
pub fn rows_add_up_to_rss() {
    let (puppet, child) = varied();
    let pid = puppet.0.pid();
    let rss = rollup(pid)["Rss"];
    let mut keys = vec![("account", "account")];
    keys.extend(["region", "mapping", "symbol"].map(|key| (key, "account-group")));
    if support::is_root() {
        keys.push(("node", "account-group"));
    }
    // It has zero pages, which the kernel does not count.
    let resident = records(pid, "print rss(all)");
    let resident: Vec<&Value> = resident.iter().map(|value| &value["value"]).collect();
    assert_eq!(resident, [&Value::from(rss.to_string())]);
    for (key, kind) in keys {
        let command = if kind == "account" { "account full".to_owned() } else { format!("account by {key} full") };
        let all = records(pid, &command);
        let rows = of_type(&all, kind);
        assert!(!rows.is_empty(), "{command}");
        assert_eq!(rows.iter().map(|row| bytes(row)).sum::<u64>(), rss, "{command}: {all:?}");
        for row in of_type(&all, "account-group") {
            let classes = row["classes"].as_object().expect("classes");
            let sum: u64 = classes.values().map(|bytes| bytes.as_u64().expect("a number")).sum();
            assert_eq!(sum, bytes(row));
        }
        let [summary] = of_type(&all, "account-summary")[..] else { panic!("{all:?}") };
        assert_eq!(bytes(summary), rss);
        let kernel = &summary["kernel"];
        assert_eq!((&kernel["before"], &kernel["after"], &kernel["stopped"]), (&rss.into(), &rss.into(), &true.into()));
        assert_eq!(kernel["compared"][0], "Rss");
    }
    let ordered = records(pid, "account by mapping top 2");
    let rows: Vec<u64> = of_type(&ordered, "account-group").iter().map(|row| bytes(row)).collect();
    assert!(rows.len() == 2 && rows[0] >= rows[1], "{rows:?}");
    assert!(of_type(&ordered, "note")[0]["message"].as_str().expect("a text").contains("more group"));
    end(child);
}

/// Of anonymous memory and copies it is `Anonymous` of smaps_rollup, and a filter and its `not` add up to the whole.
pub fn amounts_of_matching_pages() {
    if !is_root() {
        return skip("account::amounts_of_matching_pages", "only root sees which pages are merged");
    }
    // With a swap area, what of shared memory is in swap is unknown.
    let _unchanged = crate::system::as_it_is();
    let (puppet, child) = varied();
    let pid = puppet.0.pid();
    let value = |text: &str| -> u64 {
        let records = records(pid, &format!("print {text}"));
        let [value] = of_type(&records, "value")[..] else { panic!("{text}: {records:?}") };
        value["value"].as_str().and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{text}: {value}"))
    };
    let kernel = rollup(pid);
    let anonymous = "anonymous or private_copy or ksm";
    assert_eq!(value(&format!("rss(all where {anonymous})")), kernel["Anonymous"]);
    for function in ["rss", "uss", "swapped", "huge"] {
        // Processes that begin or end change which pages of libraries are exclusive.
        let adds_up = || {
            let parts =
                ["where writable", "where not writable"].map(|filter| value(&format!("{function}(all {filter})")));
            let (sum, all) = (parts.iter().sum::<u64>(), value(&format!("{function}(all)")));
            if sum == all { Ok(()) } else { Err(format!("{function}: {parts:?} are not {all}")) }
        };
        let mut tries = (0..20).map(|_| adds_up());
        let last = tries.find(Result::is_ok).unwrap_or_else(adds_up);
        assert_eq!(last, Ok(()));
    }
    end(child);
}

/// Regions are told apart by address, and each has what smaps says of it.
pub fn by_region_as_smaps() {
    let (puppet, child) = varied();
    let pid = puppet.0.pid();
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps")).expect("its smaps");
    let smaps = plain_fields(&text);
    let groups = records(pid, "account by region");
    for group in of_type(&groups, "account-group") {
        let key = group["key"].as_str().expect("a key");
        let start = key.trim_start_matches("0x").split("..").next().expect("a range");
        let region = &smaps[&u64::from_str_radix(start, 16).expect("an address")];
        assert_eq!(bytes(group), region["Rss"], "{key}");
        let classes = group["classes"].as_object().expect("classes");
        let of = |words: &[&str]| words.iter().filter_map(|word| classes.get(*word)?.as_u64()).sum::<u64>();
        let anonymous = ["anonymous", "private_copies", "forked", "merged", "private_unclear"];
        assert_eq!(of(&anonymous), region["Anonymous"], "{key}");
    }
    end(child);
}

/// The table and what closes it fit a screen of 24 lines and 80 columns, also for a family.
pub fn it_fits_a_screen() {
    let (puppet, child) = varied();
    let shown = |command: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_pmdb"))
            .args(["-nx", "-q", "-batch", "-p", &puppet.0.pid().to_string(), "-ex", "set width 80", "-ex", command])
            .output()
            .expect("pmdb runs");
        let text = String::from_utf8(output.stdout).expect("text");
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{text}");
        text
    };
    for command in ["account", "account children"] {
        let text = shown(command);
        assert!(text.lines().count() <= 23, "{text}");
    }
    assert!(shown("account full").contains("smaps_rollup"));
    let text = shown("account");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("shared since a fork"), "{text}");
    if support::is_root() {
        assert!(text.contains("to copy on write"), "{text}");
    }
    assert!(shown("account by region").contains("under 1 % each: "));
    let text = shown("account by region full");
    assert!(text.lines().any(|line| line.ends_with("[heap]")), "{text}");
    end(child);
}

/// A range has no rollup to be compared with, and says so.
pub fn a_range_is_not_compared() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 10);
    puppet.writes(memory, 7);
    let all = records(puppet.0.pid(), &format!("account {memory:#x}, +{}", 10 * page_bytes()));
    let [row] = of_type(&all, "account")[..] else { panic!("{all:?}") };
    assert_eq!((row["class"].as_str(), bytes(row)), (Some(Anonymous.word()), 7 * page_bytes()));
    let [summary] = of_type(&all, "account-summary")[..] else { panic!("{all:?}") };
    assert!(summary["kernel"].is_null() && summary["page_tables"].is_null());
    assert_eq!(summary["why"]["kernel"], "only a whole process is compared");
    assert!(AccountClass::words().count() > 10);
}

/// A core has the page map, and no flags that tell the zero page.
pub fn a_core_has_pages_that_may_be_zeros() {
    let (mut puppet, zeros) = (Puppet::start(), 7);
    let memory = puppet.maps("anonymous", 12);
    puppet.reads(memory, zeros);
    puppet.0.stop();
    let rss = rollup(puppet.0.pid())["Rss"];
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("core");
    let file = file.to_str().expect("a path");
    records(puppet.0.pid(), &format!("export core {file}"));
    let records = records_of_file(file, "account");
    let [summary] = of_type(&records, "account-summary")[..] else { panic!("{records:?}") };
    let may_be_zeros = summary["may_be_zeros"].as_u64().unwrap_or_default();
    assert!(may_be_zeros >= zeros * page_bytes(), "{summary}");
    assert!((bytes(summary) - may_be_zeros..=bytes(summary) - zeros * page_bytes()).contains(&rss), "{summary}");
}
