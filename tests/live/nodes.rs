//! Memory on several NUMA nodes.

use super::Test;
use super::answers::program;
use super::puppet::Puppet;
use super::support::{at, page_bytes, range, skip};
use pmdb::budget::Budget;
use pmdb::inspect::{Evidence, Watcher};
use pmdb::report::EventKind;
use serde_json::Value;

pub const TESTS: &[Test] = &[
    ("nodes::pages_move_between_nodes", pages_move_between_nodes),
    ("nodes::a_node_that_is_not_there_is_an_error", a_node_that_is_not_there_is_an_error),
];

/// No page would ever be on it: the error lists those that there are.
fn a_node_that_is_not_there_is_an_error() {
    const NAME: &str = "nodes::a_node_that_is_not_there_is_an_error";
    if !super::support::shows_frames() {
        return skip(NAME, "frame numbers are hidden");
    }
    let puppet = Puppet::start();
    let pid = puppet.0.pid().to_string();
    let zones = std::fs::read_to_string("/proc/zoneinfo").expect("the zones");
    let nodes: std::collections::BTreeSet<u32> =
        zones.lines().filter_map(|line| line.strip_prefix("Node ")?.split(',').next()?.parse().ok()).collect();
    let nodes: Vec<String> = nodes.iter().map(u32::to_string).collect();
    for line in ["walk all where node == 77", "print count(all where 77 != node)", "walk pfn:0..pfn:9 where node == 77"]
    {
        let run = std::process::Command::new(env!("CARGO_BIN_EXE_pmdb"))
            .args(["-nx", "-batch", "-p", &pid, "-ex", line])
            .output()
            .expect("pmdb runs");
        let said = String::from_utf8(run.stderr).expect("text");
        assert!(
            said.contains("error: no node is 77") && said.contains(&format!("here: {}", nodes.join(", "))),
            "{said}"
        );
        assert_eq!(run.status.code(), Some(1), "{line}");
    }
}

/// Has the kernel move pages of a process to a node: the node that each is on afterwards.
fn move_pages(pid: u32, address: u64, pages: u64, node: i32) -> Vec<i32> {
    const MPOL_MF_MOVE: i32 = 2;
    let addresses: Vec<u64> = (0..pages).map(|page| address + page * page_bytes()).collect();
    let pointers: Vec<*const u8> = addresses.iter().map(|&one| one as usize as *const u8).collect();
    let nodes = vec![node; pointers.len()];
    let mut status = vec![-1; pointers.len()];
    // SAFETY: as many pointers, nodes and places for an answer as are said; the pointers are of the other process.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            pid,
            pointers.len(),
            pointers.as_ptr(),
            nodes.as_ptr(),
            status.as_mut_ptr(),
            MPOL_MF_MOVE,
        )
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    status
}

fn pages_by_node(pid: u32, address: u64, pages: u64) -> Vec<(String, u64)> {
    let line = format!("walk {address:#x},+{:#x} by node", pages * page_bytes());
    let rows = program(&[], pid, true, &[line]);
    let rows = rows.lines().map(|row| serde_json::from_str::<Value>(row).expect("an object"));
    let groups = rows.filter(|row| row["type"] == "group");
    groups
        .map(|row| (row["key"].as_str().expect("a key").to_owned(), row["pages"].as_u64().expect("a number")))
        .collect()
}

fn pages_move_between_nodes() {
    const NAME: &str = "nodes::pages_move_between_nodes";
    const PAGES: u64 = 16;
    if !std::path::Path::new("/sys/devices/system/node/node1").exists() {
        return skip(NAME, "this machine has one NUMA node");
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", PAGES);
    puppet.writes(memory, PAGES);
    let pid = puppet.0.pid();
    for node in [0, 1, 0] {
        move_pages(pid, memory, PAGES, 1 - node);
        let target = puppet.0.attach();
        let span = range(memory, PAGES * page_bytes());
        let mut watcher = Watcher::new(Evidence::empty());
        let mut look = || {
            let look = watcher.sample(&target, Budget::unlimited(), |_| vec![span]).expect("a look");
            look.changes().collect::<Vec<_>>()
        };
        assert_eq!(look().len(), 0);
        let status = move_pages(pid, memory, PAGES, node);
        assert!(status.iter().all(|&one| one == node), "{status:?}");
        let changes = look();
        let moved: u64 = changes.iter().map(|change| change.pages).sum();
        assert!(changes.iter().all(|change| change.kind == EventKind::ChangedNode));
        assert_eq!(moved, PAGES);
        assert_eq!(pages_by_node(pid, memory, PAGES), [(node.to_string(), PAGES)]);
        let asked = [format!("translate {:#x}", at(memory).get() + 1)];
        let said: Value = serde_json::from_str(&program(&[], pid, true, &asked)).expect("an object");
        assert_eq!(said["node"], node, "{said}");
    }
}
