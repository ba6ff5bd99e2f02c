//! Failed memory. It is lost until the kernel restarts, so these tests run only where they are allowed to, as by
//! `scripts/guests`.

use super::Test;
use super::answers::{Truth, says};
use super::explain::not_huge::why;
use super::puppet::Puppet;
use super::support::{huge_page_bytes, page_bytes, plain_entry, pool_page_bytes, skip};
use super::system;
use std::fs::File;
use std::os::unix::fs::FileExt;

pub const TESTS: &[Test] = &[
    ("failing::a_page", a_page),
    ("failing::a_page_of_a_huge_page", a_page_of_a_huge_page),
    ("failing::a_page_of_the_pool", a_page_of_the_pool),
    ("failing::taken_out_of_use", taken_out_of_use),
];

const MADV_HWPOISON: i32 = 100;
const MADV_SOFT_OFFLINE: i32 = 101;

/// Set where memory may be taken away for good.
const ALLOWED: &str = "PMDB_POISONS_MEMORY";

const FAILED: Truth = Truth::absent("MADV_HWPOISON", "hwpoison", "hwpoison").of_kind("anonymous");

/// Has the kernel treat a page as failed, or skips.
fn fails(name: &str, puppet: &mut Puppet, address: u64, advice: i32) -> bool {
    let reason = match puppet.advises(address, 1, advice) {
        Ok(()) => return true,
        Err(libc::EINVAL) => "this kernel does not handle memory failure (CONFIG_MEMORY_FAILURE)",
        Err(libc::EPERM) => "only root may poison memory",
        Err(error) => panic!("madvise({advice}): errno {error}"),
    };
    skip(name, reason);
    false
}

/// Whether it may be done here.
fn is_allowed(name: &str) -> bool {
    let allowed = std::env::var_os(ALLOWED).is_some();
    if !allowed {
        skip(name, "memory that fails is lost until the next start: scripts/guests runs this");
    }
    allowed
}

fn frame(pid: u32, address: u64) -> u64 {
    plain_entry(pid, address).expect("an entry") & ((1 << 55) - 1)
}

fn flags(frame: u64) -> u64 {
    let mut word = [0; 8];
    let flags = File::open("/proc/kpageflags").expect("flags of frames");
    flags.read_exact_at(&mut word, frame * 8).expect("a word");
    u64::from_ne_bytes(word)
}

/// A page that was split off or moved. The kernel marks it dirty, as it does at the end of a swap area, which leaves
/// entries write-protected: a write may fault, for all that is known.
fn mapped_anew(what: &'static str, pid: u32, address: u64) -> Truth {
    const KPF_DIRTY: u64 = 1 << 4;
    let is_marked = flags(frame(pid, address)) & KPF_DIRTY != 0;
    let write = if is_marked { "nothing|reuse" } else { "nothing" };
    Truth { write, ..Truth::present(what, "anonymous") }
}

fn a_page() {
    const NAME: &str = "failing::a_page";
    if !is_allowed(NAME) {
        return;
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 3);
    puppet.writes(memory, 3);
    if !fails(NAME, &mut puppet, memory + page_bytes(), MADV_HWPOISON) {
        return;
    }
    let pid = puppet.0.pid();
    says(pid, memory + page_bytes() + 9, &FAILED);
    says(pid, memory, &Truth::present("the page before it", "anonymous"));
    if huge_page_bytes().is_some() {
        let told = why(pid, (memory, 3 * page_bytes()), "khugepaged");
        assert!(told.iter().any(|reason| reason == "elsewhere"), "{told:?}");
    }
}

/// The huge page is split first: only the one page is lost.
fn a_page_of_a_huge_page() {
    const NAME: &str = "failing::a_page_of_a_huge_page";
    if !is_allowed(NAME) {
        return;
    }
    let (mut puppet, memory, pages) = match Puppet::with_huge_page() {
        Ok(made) => made,
        Err(reason) => return skip(NAME, reason),
    };
    let failed = memory + 5 * page_bytes();
    if !fails(NAME, &mut puppet, failed, MADV_HWPOISON) {
        return;
    }
    let pid = puppet.0.pid();
    says(pid, failed, &FAILED);
    let other = memory + (pages - 1) * page_bytes();
    says(pid, other, &mapped_anew("another page of the huge page", pid, other));
}

/// The page map does not show it. PAGEMAP_SCAN tells only that something is there.
fn a_page_of_the_pool() {
    const NAME: &str = "failing::a_page_of_the_pool";
    if !is_allowed(NAME) {
        return;
    }
    let pool = match system::huge_pages() {
        Ok(pool) => pool,
        Err(reason) => return skip(NAME, &reason),
    };
    let mut puppet = Puppet::start();
    let memory = puppet.maps("hugetlb", pool_page_bytes() / page_bytes());
    puppet.writes(memory, 1);
    if fails(NAME, &mut puppet, memory, MADV_HWPOISON) {
        let said = super::answers::program(&[], puppet.0.pid(), true, &[format!("translate {memory:#x}")]);
        let said: serde_json::Value = serde_json::from_str(&said).expect("an object");
        let state = said["state"].as_str().expect("a state");
        let is_certain = said["why"]["state"].is_null();
        assert!(state != "present" && state != "untouched" || !is_certain, "{said}");
        assert!(said["pfn"].is_null(), "{said}");
    }
    drop(puppet);
    drop(pool);
}

/// Soft offline: what is in the page moves to another frame, and the old one is used no more.
fn taken_out_of_use() {
    const NAME: &str = "failing::taken_out_of_use";
    const KPF_HWPOISON: u64 = 1 << 19;
    if !is_allowed(NAME) {
        return;
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 1);
    puppet.writes(memory, 1);
    let pid = puppet.0.pid();
    let before = frame(pid, memory);
    if !fails(NAME, &mut puppet, memory, MADV_SOFT_OFFLINE) {
        return;
    }
    assert_ne!(frame(pid, memory), before);
    says(pid, memory, &mapped_anew("moved by soft offline", pid, memory));
    assert_ne!(flags(before) & KPF_HWPOISON, 0);
    let lines = [format!("flags pfn:{before:#x}")];
    let said = super::answers::program(&[], pid, true, &lines);
    assert!(said.contains("\"hwpoison\""), "{said}");
}
