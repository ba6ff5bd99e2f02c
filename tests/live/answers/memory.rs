//! Small pages of memory without a file on disk, and the vdso and its kin.

use super::super::Test;
use super::super::puppet::Puppet;
use super::super::states::{MADV_GUARD_INSTALL, merged};
use super::super::support::{self, page_bytes, plain_entry, plain_maps, skip};
use super::{Truth, program, says};

pub const TESTS: &[Test] = &[
    ("answers::anonymous_memory", anonymous_memory),
    ("answers::shared_memory", shared_memory),
    ("answers::secret_memory", secret_memory),
    ("answers::locked_memory", locked_memory),
    ("answers::guards_and_markers", guards_and_markers),
    ("answers::both_sides_of_a_fork", both_sides_of_a_fork),
    ("answers::merged_pages", merged_pages),
    ("answers::what_the_kernel_lends", what_the_kernel_lends),
];

fn anonymous_memory() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 4);
    puppet.writes(memory, 1);
    puppet.reads(memory + page_bytes(), 1);
    puppet.unmaps(memory + 3 * page_bytes(), 1);
    let pid = puppet.0.pid();
    says(pid, memory + 0x10, &Truth::present("written", "anonymous"));
    let zero = Truth::present("only read: the zero page", "zero").when_written("zeros");
    says(pid, memory + page_bytes(), &zero);
    let untouched = Truth::absent("untouched", "untouched", "zeros").of_kind("anonymous");
    says(pid, memory + 2 * page_bytes(), &untouched);
    let hole = Truth::absent("no region", "unmapped", "no_region");
    says(pid, memory + 3 * page_bytes(), &hole);
}

fn shared_memory() {
    for (verb, what) in [("shared", "MAP_SHARED | MAP_ANONYMOUS, written"), ("memfd", "memfd, written")] {
        let mut puppet = Puppet::start();
        let memory = puppet.maps(verb, 2);
        puppet.writes(memory, 1);
        let pid = puppet.0.pid();
        let said = says(pid, memory, &Truth::present(what, "shmem"));
        // It never had a directory entry, though the kernel calls it deleted.
        assert!(!said.text.contains("deleted"), "{}", said.text);
        assert_eq!(said.translation["region"]["without_path"], true);
        let untouched = Truth::absent("shared, untouched", "untouched", "zeros").of_kind("shmem");
        says(pid, memory + page_bytes(), &untouched);
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("copied", 1);
    puppet.writes(memory, 1);
    let copy = Truth::present("memfd, private mapping, written", "private_copy");
    says(puppet.0.pid(), memory, &copy);
}

fn secret_memory() {
    let mut puppet = Puppet::start();
    let Ok(memory) = u64::try_from(puppet.asks("secret", &[2 * page_bytes()])) else {
        return skip("answers::secret_memory", "no memfd_secret");
    };
    puppet.writes(memory, 1);
    let pid = puppet.0.pid();
    let truth = Truth::present("memfd_secret, written", "secret");
    says(pid, memory, &truth.when_written("nothing"));
    let entry = plain_entry(pid, memory).expect("an entry");
    assert_eq!((entry >> 63, entry >> 61 & 1), (1, 1));
}

fn locked_memory() {
    const NAME: &str = "answers::locked_memory";
    const MLOCKED: u64 = 1 << 33;
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 2);
    if puppet.asks("lock", &[memory, page_bytes()]) != 0 {
        return skip(NAME, "mlock is not permitted");
    }
    let pid = puppet.0.pid();
    let said = says(pid, memory, &Truth::present("mlock, never touched", "anonymous"));
    let flags = said.translation["flags_raw"].as_str();
    assert!(flags.is_some() || !support::is_root(), "{}", said.translation);
    if let Some(flags) = flags {
        let flags = u64::from_str_radix(&flags[2..], 16).expect("a number");
        assert_ne!(flags & MLOCKED, 0, "{flags:#x}");
        assert!(said.text.contains("mlocked"), "{}", said.text);
    }
    let beside = Truth::absent("beside what is locked", "untouched", "zeros").of_kind("anonymous");
    says(pid, memory + page_bytes(), &beside);
}

fn guards_and_markers() {
    const NAME: &str = "answers::guards_and_markers";
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 2);
    puppet.writes(memory, 2);
    match puppet.advises(memory, 1, MADV_GUARD_INSTALL) {
        Ok(()) => {
            let guard = Truth::absent("MADV_GUARD_INSTALL", "guard", "guard").of_kind("anonymous");
            says(puppet.0.pid(), memory, &guard);
        }
        Err(error) => skip(NAME, &format!("MADV_GUARD_INSTALL: error {error}")),
    }
    // If the kernel hides the type of an entry, and swap is in use, no marker is claimed.
    let swaps = std::fs::read_to_string("/proc/swaps").expect("the list of swap areas");
    if !support::shows_frames() && swaps.lines().count() > 1 {
        return skip(NAME, "markers are hidden from this user");
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 2);
    match puppet.asks("poison", &[memory, page_bytes()]) {
        0 => {
            let poison = Truth::absent("UFFDIO_POISON", "poisoned", "poisoned");
            says(puppet.0.pid(), memory, &poison.of_kind("anonymous"));
        }
        error => skip(NAME, &format!("UFFDIO_POISON: error {}", -error)),
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 3);
    puppet.writes(memory, 1);
    let length = 2 * page_bytes();
    match puppet.asks("uffd", &[memory, length, length]) {
        0 => {
            let pid = puppet.0.pid();
            let there = Truth::present("UFFDIO_WRITEPROTECT, present", "anonymous");
            let said = says(pid, memory, &there.when_written("unprotect"));
            assert_eq!(said.translation["uffd_wp"], true);
            let marker = Truth::absent("UFFDIO_WRITEPROTECT, unpopulated", "uffd_wp", "zeros");
            let said = says(pid, memory + page_bytes(), &marker.of_kind("anonymous"));
            assert_eq!(said.translation["uffd_wp"], true);
        }
        error => skip(NAME, &format!("userfaultfd: error {}", -error)),
    }
}

fn both_sides_of_a_fork() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 3);
    puppet.writes(memory, 3);
    let child = puppet.does("fork", &[memory, 1]) as u32;
    let parent = puppet.0.pid();
    puppet.writes(memory + page_bytes(), 1);
    let shared = Truth::present("fork, nobody has written", "anonymous").when_written("copy");
    for pid in [parent, child] {
        let said = says(pid, memory + 2 * page_bytes(), &shared);
        assert_eq!(said.translation["exclusive"], false);
        let own = says(child, memory, &Truth::present("fork, the child wrote: the child", "anonymous"));
        assert_eq!(own.translation["exclusive"], true);
    }
    let left = Truth::present("fork, the child wrote: the parent", "anonymous");
    let said = says(parent, memory, &left.when_written("reuse"));
    assert_eq!(said.translation["exclusive"], true);
    let own = Truth::present("fork, the parent wrote: the parent", "anonymous");
    says(parent, memory + page_bytes(), &own);
    let left = Truth::present("fork, the parent wrote: the child", "anonymous");
    says(child, memory + page_bytes(), &left.when_written("reuse"));
}

fn merged_pages() {
    let (merging, puppet, memory) = match merged() {
        Ok(made) => made,
        Err(reason) => return skip("answers::merged_pages", &reason),
    };
    let truth = Truth::present("MADV_MERGEABLE, 64 equal pages", "ksm").when_written("copy");
    let said = says(puppet.0.pid(), memory, &truth);
    assert_eq!(said.translation["exclusive"], false);
    assert_eq!(said.explanation["owner"], "merged");
    drop(puppet);
    drop(merging);
}

fn what_the_kernel_lends() {
    let puppet = Puppet::start();
    let pid = puppet.0.pid();
    for (start, _, line) in plain_maps(pid) {
        let is = |name: &[u8]| line.ends_with(name);
        let truth = match () {
            () if is(b"[vdso]") && plain_entry(pid, start).is_some_and(|entry| entry >> 63 == 1) => {
                Truth::present("[vdso]", "vdso").when_written("protection")
            }
            // From Linux 7.0 on it is VM_MIXEDMAP, and shows what is in it.
            () if is(b"[vvar]") && support::has_vm_flag(pid, start, "pf") => {
                Truth::absent("[vvar]", "pfn_mapped", "nothing|map").of_kind("vdso").when_written("protection")
            }
            () if is(b"[vsyscall]") => {
                // The kernel's command line decides whether it may be read. If it is execute-only, a read is SIGSEGV.
                let read = if line.starts_with(b"r") { "nothing" } else { "protection" };
                Truth::absent("[vsyscall]", "outside", read).of_kind("vdso").when_written("protection")
            }
            () => continue,
        };
        says(pid, start, &truth);
    }
    // The number of pages in them is unknown, and not 0.
    let lines = ["regions where rss == 0".to_owned()];
    let empty = program(&[], pid, true, &lines);
    for (start, _, line) in plain_maps(pid) {
        if line.ends_with(b"[vsyscall]") || support::has_vm_flag(pid, start, "pf") {
            let start = format!("\"start\":\"{start:#x}\"");
            let hidden = |row: &&str| row.contains(&start);
            assert_eq!(empty.lines().find(hidden), None);
        }
    }
}
