//! The same answers where no other thread can be started.

use super::super::Test;
use super::super::puppet::Puppet;
use super::super::support::{self, page_bytes, skip};
use super::super::target::command_by;
use super::program;
use serde_json::Value;
use std::process::Command;

pub const TESTS: &[Test] = &[("answers::without_another_thread", without_another_thread)];

/// The capabilities that override the limit of processes, as root's do.
const NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

fn without_another_thread() {
    const NAME: &str = "answers::without_another_thread";
    let plain = if support::is_root() { NOBODY.to_vec() } else { vec!["env"] };
    let alone = [&plain[..], &["prlimit", "--nproc=1"]].concat();
    let runs = |before: &[&str], more: &[&str]| {
        let mut command = Command::new(before[0]);
        let output = command.args(&before[1..]).args(more).output();
        output.is_ok_and(|output| output.status.success())
    };
    if !runs(&alone, &[env!("CARGO_BIN_EXE_pmdb"), "--version"]) {
        return skip(NAME, "no setpriv, no prlimit, or a folder that is closed");
    }
    if runs(&alone, &["sh", "-c", "true & wait"]) {
        return skip(NAME, "this user may have any number of processes");
    }
    let mut puppet = Puppet::run(&mut command_by(&plain, "puppet"));
    // Enough for several cores each: pages, and regions.
    let memory = puppet.maps("anonymous", 50_000);
    puppet.writes(memory, 40_000);
    let many = puppet.maps("anonymous", 3000);
    for page in (0..3000).step_by(2) {
        let read_only = [many + page * page_bytes(), page_bytes(), 1];
        puppet.does("protect", &read_only);
    }
    puppet.0.stop();
    let lines = ["walk all by state", "regions", "info modules", "who pfn:1"];
    let said = |before: &[&str]| -> Vec<Vec<Value>> {
        let text = program(before, puppet.0.pid(), true, &lines.map(str::to_owned));
        let records = text.lines().map(|line| {
            let record: Value = serde_json::from_str(line).expect("a record");
            // Other processes map and unmap pages of files.
            let steady = ["type", "start", "end", "perms", "key", "pages", "name", "message"];
            steady.map(|field| record[field].clone()).to_vec()
        });
        records.collect()
    };
    let (together, alone) = (said(&plain), said(&alone));
    assert!(together.len() > 3000, "{}", together.len());
    let differing = alone.iter().zip(&together).find(|(one, other)| one != other);
    assert_eq!((differing, alone.len()), (None, together.len()));
}
