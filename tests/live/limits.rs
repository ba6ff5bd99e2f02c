//! Limits of cgroups: what `explain` says of an access where a group is at its limit, and what then happens.

use super::Test;
use super::access::Felt;
use super::account::command::records;
use super::cgroup::Cgroup;
use super::explain::said;
use super::puppet::Puppet;
use super::support::{self, page_bytes, pool_page_bytes, skip};
use super::system;
use pmdb::inspect::Access::{Read, Write};
use pmdb::report::Effect;
use rustix::event::{EventfdFlags, eventfd};
use serde_json::Value;
use std::fs;
use std::os::fd::AsRawFd;
use std::path::Path;

pub const TESTS: &[Test] = &[
    ("limits::reclaim_comes_first", reclaim_comes_first),
    ("limits::nothing_to_reclaim_kills", nothing_to_reclaim_kills),
    ("limits::a_thread_waits_without_a_killer", a_thread_waits_without_a_killer),
    ("limits::of_the_pool", of_the_pool),
];

/// Bytes that the kernel may have charged ahead for each processor (MEMCG_CHARGE_BATCH in mm/memcontrol.c).
fn charged_ahead() -> u64 {
    64 * page_bytes() * std::thread::available_parallelism().map_or(1, |count| count.get() as u64)
}

fn read(group: &Path, name: &str) -> Option<String> {
    fs::read_to_string(group.join(name)).ok()
}

fn used(group: &Path) -> u64 {
    let text = ["memory.current", "memory.usage_in_bytes"].into_iter().find_map(|name| read(group, name));
    text.expect("one of them").trim().parse().expect("a number")
}

/// Limits a group, and keeps it out of swap.
fn limit(group: &Path, bytes: u64) {
    let [new, old] = ["memory.max", "memory.limit_in_bytes"].map(|name| group.join(name));
    fs::write(if new.exists() { new } else { old }, bytes.to_string()).expect("a limit");
    for (name, bytes) in [("memory.swap.max", 0), ("memory.memsw.limit_in_bytes", bytes)] {
        if group.join(name).exists() {
            fs::write(group.join(name), bytes.to_string()).expect("no swap");
        }
    }
}

/// A puppet in a group below one of the test's own, which is to have the limit.
fn made() -> Result<(Cgroup, Puppet), String> {
    let group = Cgroup::make()?;
    let inner = group.path.join("inner");
    fs::create_dir(&inner).map_err(|error| error.to_string())?;
    let puppet = Puppet::start();
    fs::write(inner.join("cgroup.procs"), puppet.0.pid().to_string()).expect("to move into it");
    Ok((group, puppet))
}

/// The group that `explain` names as one at its limit.
fn named(puppet: &Puppet, address: u64) -> Value {
    records(puppet.0.pid(), &format!("explain {address:#x}"))[0]["group_limit"].clone()
}

/// Page cache fills a group up to its limit, as in each container that reads files: the next page only drops some.
fn reclaim_comes_first() {
    let (group, mut puppet) = match made() {
        Ok(made) => made,
        Err(reason) => return skip("limits::reclaim_comes_first", &reason),
    };
    const BYTES: u64 = 16 << 20;
    let pages = BYTES / page_bytes();
    let disk = super::behind::DiskFile::of(2 * BYTES);
    super::behind::drop_cached(&disk, 0, 2 * pages);
    let file = puppet.maps_file(&disk, 2 * pages, libc::PROT_READ, libc::MAP_SHARED);
    puppet.reads(file, 2 * pages);
    let memory = puppet.maps_far();
    limit(&group.path, BYTES);
    // Reading goes on at the limit.
    puppet.advises(file, 2 * pages, libc::MADV_DONTNEED).expect("to unmap it");
    puppet.reads(file, 2 * pages);
    limit(&group.path, used(&group.path));
    let told = named(&puppet, memory);
    assert!(told["reclaimable"].as_u64() > Some(BYTES / 4), "{told}");
    assert!(told["cgroup"].as_str().is_some_and(|path| path.starts_with("/pmdb live")), "{told}");
    for page in 0..64 {
        let address = memory + page * page_bytes();
        let (outcome, _) = said(&puppet.0.attach(), address, Write);
        assert_eq!(support::certain(&outcome.effects, &[Effect::Zeros]), [Effect::Zeros]);
        let felt = Felt::from_answer(puppet.asks("store", &[address]));
        assert_eq!(felt, Felt::Faults { minor: 1, major: 0 });
    }
}

/// Writes page after page until the puppet says no more, and returns what pmdb said of the last write.
fn fill(puppet: &mut Puppet, group: &Path, before: impl Fn(&mut Puppet)) -> (Vec<Effect>, Value) {
    const AHEAD: u64 = 1 << 20;
    let memory = puppet.maps_far();
    puppet.writes(memory, AHEAD / page_bytes());
    let from = memory + AHEAD;
    limit(group, used(group));
    let most = 4 * charged_ahead() / page_bytes();
    for page in 0..most {
        let address = from + page * page_bytes();
        let (read, _) = said(&puppet.0.attach(), address, Read);
        assert!(!read.effects.contains(&Effect::OutOfMemory), "the zero page is charged to nobody: {read:?}");
        let (outcome, _) = said(&puppet.0.attach(), address, Write);
        let told = named(puppet, address);
        puppet.0.send(&format!("store {address}"));
        before(puppet);
        if puppet.0.line_if_alive().is_none() {
            return (outcome.effects, told);
        }
    }
    panic!("{most} pages fit in what is left: {:?}", read(group, "memory.stat"));
}

/// Anonymous memory that may not go to swap cannot be reclaimed.
fn nothing_to_reclaim_kills() {
    let (group, mut puppet) = match made() {
        Ok(made) => made,
        Err(reason) => return skip("limits::nothing_to_reclaim_kills", &reason),
    };
    let (said, told) = fill(&mut puppet, &group.path, |_| {});
    // Cgroup v1 counts it in the group that the process was in, and v2 in all above too.
    let counts = ["inner/memory.oom_control", "memory.events"].into_iter().find_map(|name| read(&group.path, name));
    let counts = counts.expect("one of them");
    assert!(counts.lines().any(|line| line == "oom_kill 1"), "{counts}");
    assert_eq!(said, [Effect::Zeros, Effect::OutOfMemory], "{told}");
    assert!(told["left"].as_u64() < Some(page_bytes()), "{told}");
    assert!(told["reclaimable"].as_u64() < Some(page_bytes()), "{told}");
}

/// Cgroup v1 can switch its OOM killer off: then the thread waits until there is room.
fn a_thread_waits_without_a_killer() {
    const NAME: &str = "limits::a_thread_waits_without_a_killer";
    let (group, mut puppet) = match made() {
        Ok(made) => made,
        Err(reason) => return skip(NAME, &reason),
    };
    if fs::write(group.path.join("memory.oom_control"), "1").is_err() {
        return skip(NAME, "only cgroup v1 can do without an OOM killer");
    }
    let memory = puppet.maps_far();
    puppet.writes(memory, (1 << 20) / page_bytes());
    let bell = eventfd(0, EventfdFlags::empty()).expect("an event");
    let control = fs::File::open(group.path.join("memory.oom_control")).expect("it was there");
    let line = format!("{} {}", bell.as_raw_fd(), control.as_raw_fd());
    fs::write(group.path.join("cgroup.event_control"), line).expect("to be told");
    let page = used(&group.path);
    limit(&group.path, page);
    let from = memory + (1 << 20);
    let pages = 4 * charged_ahead() / page_bytes();
    // It waits somewhere in these pages, and goes on once there is room.
    puppet.0.send(&format!("write {from} {pages}"));
    rustix::io::read(&bell, &mut [0u8; 8]).expect("the bell");
    let at = (0..pages).map(|page| from + page * page_bytes());
    let at =
        at.into_iter().find(|&address| support::is_hole(puppet.0.pid(), address)).expect("it waits before the end");
    let (outcome, _) = said(&puppet.0.attach(), at, Write);
    assert_eq!(outcome.effects, [Effect::Zeros, Effect::WaitForMemory], "{}", named(&puppet, at));
    let more = page + 64 * charged_ahead();
    for name in ["memory.memsw.limit_in_bytes", "memory.limit_in_bytes"] {
        if group.path.join(name).exists() {
            fs::write(group.path.join(name), more.to_string()).expect("more room");
        }
    }
    assert!(puppet.0.line_if_alive().is_some(), "it went on");
}

/// A page of the pool past the limit of the cgroup is SIGBUS, though the mapping has it reserved.
fn of_the_pool() {
    const NAME: &str = "limits::of_the_pool";
    let pool = match system::huge_pages() {
        Ok(pool) => pool,
        Err(reason) => return skip(NAME, &reason),
    };
    let bytes = pool_page_bytes();
    let name = format!("pmdb-live-pool-{}", std::process::id());
    let (group, limited) = match system::pool_group(&name, bytes, bytes) {
        Ok(made) => made,
        Err(reason) => return skip(NAME, &reason),
    };
    for access in [Read, Write] {
        let mut puppet = Puppet::start();
        fs::write(group.join("cgroup.procs"), puppet.0.pid().to_string()).expect("to move into it");
        let memory = match puppet.asks("hugetlb", &[2 * bytes]) {
            error @ ..0 => return skip(NAME, &format!("error {}", -error)),
            memory => memory as u64,
        };
        let (outcome, _) = said(&puppet.0.attach(), memory, Write);
        assert_eq!(outcome.effects.first(), Some(&Effect::Zeros), "{outcome:?}");
        assert!(named(&puppet, memory).is_null());
        puppet.writes(memory, 1);
        let (outcome, _) = said(&puppet.0.attach(), memory + bytes, access);
        assert_eq!(support::certain(&outcome.effects, &[Effect::PoolLimit]), [Effect::PoolLimit]);
        let told = named(&puppet, memory + bytes);
        assert_eq!(
            told,
            serde_json::json!({
                "cgroup": format!("/{name}"), "bytes": bytes, "left": 0, "reclaimable": 0,
            })
        );
        let verb = if access == Read { "load" } else { "store" };
        assert_eq!(Felt::from_answer(puppet.asks(verb, &[memory + bytes])), Felt::Signal(libc::SIGBUS));
    }
    drop(limited);
    drop(pool);
}
