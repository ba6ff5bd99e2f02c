//! What `explain` says that the next access will do, and then the access.

use super::Test;
use super::access::Felt;
use super::behind::{DiskFile, Held, drop_cached};
use super::puppet::Puppet;
use super::states::{MADV_GUARD_INSTALL, merged};
use super::support::{self, at, page_bytes, plain_entry, skip};
use Access::{Read, Write};
use pmdb::budget::Budget;
use pmdb::inspect::{Access, AddressSpace};
use pmdb::process::Target;
use pmdb::report::{AccessOutcome, Effect, Fault, Owner};

pub mod entries;
pub mod large;
pub mod not_huge;
pub mod userfaults;
pub mod zeros;

pub const TESTS: &[Test] = &[
    ("explain::anonymous_memory", anonymous_memory),
    ("explain::files", files),
    ("explain::past_the_end", past_the_end),
    ("explain::shared_memory", shared_memory),
    ("explain::what_is_not_permitted", what_is_not_permitted),
    ("explain::guards_and_poison", guards_and_poison),
    ("explain::both_sides_of_a_fork", both_sides_of_a_fork),
    ("explain::merged_pages", merged_pages),
    ("explain::swap", swap),
    ("explain::shared_memory_in_swap", shared_memory_in_swap),
    ("explain::huge_pages", huge_pages),
    ("explain::stacks_grow", stacks_grow),
    ("explain::above_user_space", above_user_space),
];

/// The process that makes an access.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Itself,
    Child(u32),
}

/// What pmdb says about an access to a page, and whose the page is.
pub fn said(target: &Target, address: u64, access: Access) -> (AccessOutcome, Option<Owner>) {
    let space = AddressSpace::at(target, at(address)).expect("a space");
    let detail = space.detail(at(address)).expect("its detail");
    let consequences = space.predict_access(&detail, &mut Budget::unlimited()).expect("an answer");
    let outcome = match access {
        Read => consequences.read,
        Write => consequences.write,
    };
    (outcome, consequences.owner.ok())
}

/// Has the puppet make an access that should have `effect`, and compares what pmdb says, and what then happens.
pub fn makes(puppet: &mut Puppet, what: &str, address: u64, access: Access, effect: Effect) -> Option<Owner> {
    makes_one(puppet, Who::Itself, what, address, access, effect)
}

/// The same where the child of the puppet makes the access, and where pmdb may say that other effects are possible too.
pub fn may_make_in_child(puppet: &mut Puppet, child: u32, what: &str, address: u64, access: Access, effect: Effect) {
    may_make(puppet, Who::Child(child), what, address, access, effect);
}

/// The same where pmdb may say that other effects are possible too.
pub fn may_make_itself(puppet: &mut Puppet, what: &str, address: u64, access: Access, effect: Effect) {
    may_make(puppet, Who::Itself, what, address, access, effect);
}

fn makes_one(puppet: &mut Puppet, who: Who, what: &str, address: u64, access: Access, effect: Effect) -> Option<Owner> {
    let (told, owner) = may_make(puppet, who, what, address, access, effect);
    if support::is_root() {
        assert_eq!(support::certain(&told, &[effect]), [effect], "{what}");
    }
    owner
}

/// The same where pmdb may say that other effects are possible too. Returns all that it says.
fn may_make(
    puppet: &mut Puppet,
    who: Who,
    what: &str,
    address: u64,
    access: Access,
    effect: Effect,
) -> (Vec<Effect>, Option<Owner>) {
    let (pid, verb) = match (who, access) {
        (Who::Itself, Read) => (puppet.0.pid(), "load"),
        (Who::Itself, Write) => (puppet.0.pid(), "store"),
        (Who::Child(pid), Read) => (pid, "child_load"),
        (Who::Child(pid), Write) => (pid, "child_store"),
    };
    let target = pmdb::process::Target::attach(pid).expect("to attach");
    let before = plain_entry(pid, address).unwrap_or_default();
    let (outcome, owner) = said(&target, address, access);
    assert_eq!(plain_entry(pid, address).unwrap_or_default(), before, "looking changes nothing");
    let told = puppet.does("told", &[]);
    let felt = Felt::from_answer(puppet.asks(verb, &[address]));
    println!(
        "{what}: {access:?} entry {before:#018x}: said {:?}{}, felt {felt:?}, {owner:?}",
        outcome.effects,
        match outcome.copies {
            Some(true) => " + copy",
            Some(false) => "",
            None => " + copy?",
        },
    );
    assert!(outcome.effects.contains(&effect), "{what}: {outcome:?}");
    let told_of = (outcome.effects.clone(), owner);
    let expected = match effect.fault() {
        // s390x and 32-bit Arm keep young and dirty bits by faults of their own.
        Fault::None if cfg!(any(target_arch = "s390x", target_arch = "arm")) && felt == TOUCHED => felt,
        Fault::None => Felt::Faults { minor: 0, major: 0 },
        // Before Linux 6.0 a write that dirties a page of a shared mapping is retried, which counts as a major fault.
        Fault::Minor if access == Write && has_dirty_retries() && support::is_shared(pid, address) => match felt {
            Felt::Faults { minor, major } if minor + major == 1 => felt,
            _ => Felt::Faults { minor: 1, major: 0 },
        },
        Fault::Minor => Felt::Faults { minor: 1, major: 0 },
        // The swap cache of a disk may still have it.
        Fault::Major if effect == Effect::SwapIn && felt == Felt::Faults { minor: 1, major: 0 } => felt,
        Fault::Major => Felt::Faults { minor: 0, major: 1 },
        Fault::Segv => return assert_signal(what, felt, libc::SIGSEGV, told_of),
        Fault::Bus => return assert_signal(what, felt, libc::SIGBUS, told_of),
        Fault::Kill => panic!("{what}: it is dead"),
        Fault::Userfault => {
            assert_eq!(puppet.does("told", &[]), told + 1, "{what}: the handler was told");
            return told_of;
        }
    };
    assert_eq!(felt, expected, "{what}");
    assert_eq!(puppet.does("told", &[]), told, "{what}: no handler was told");
    let after = plain_entry(pid, address).expect("an entry");
    assert_eq!(after >> 63, 1, "{what}: it is there now");
    let frame = |entry: u64| entry & ((1 << 55) - 1);
    let of_object = after >> 61 & 1 == 1;
    if support::shows_frames() {
        match effect {
            Effect::Nothing | Effect::Reuse | Effect::Unprotect if outcome.copies == Some(false) => {
                assert_eq!(frame(after), frame(before), "{what}: the same frame")
            }
            Effect::Copy => assert_ne!(frame(after), frame(before), "{what}: another frame"),
            _ => {}
        }
    }
    if outcome.copies == Some(true) || effect == Effect::Copy {
        assert!(!of_object, "{what}: a page of its own");
    }
    told_of
}

/// One minor fault.
const TOUCHED: Felt = Felt::Faults { minor: 1, major: 0 };

/// `fault_dirty_shared_page` returned VM_FAULT_RETRY until VM_FAULT_COMPLETED was added.
fn has_dirty_retries() -> bool {
    support::release() < (6, 0)
}

fn assert_signal<T>(what: &str, felt: Felt, signal: i32, told_of: T) -> T {
    assert_eq!(felt, Felt::Signal(signal), "{what}");
    told_of
}

fn anonymous_memory() {
    let mut puppet = Puppet::start();
    let page = page_bytes();
    let memory = puppet.maps("anonymous", 4);
    let mut does = |what, page, access, effect| makes(&mut puppet, what, memory + page, access, effect);
    does("untouched", 0, Read, Effect::Zeros);
    assert_eq!(does("zero page", 0, Read, Effect::Nothing), Some(Owner::Kernel));
    does("zero page", 0, Write, Effect::Zeros);
    assert_eq!(does("written", 0, Write, Effect::Nothing), Some(Owner::Sole));
    does("untouched", page, Write, Effect::Zeros);
    does("written", page, Read, Effect::Nothing);
}

fn files() {
    const NAME: &str = "explain::files";
    let page = page_bytes();
    let file = DiskFile::of(4 * page);
    let mut puppet = Puppet::start();
    let rw = libc::PROT_READ | libc::PROT_WRITE;
    let shared = puppet.maps_file(&file, 4, libc::PROT_READ, libc::MAP_SHARED);
    let private = puppet.maps_file(&file, 4, rw, libc::MAP_PRIVATE);
    let third = puppet.maps_file(&file, 4, rw, libc::MAP_PRIVATE);
    for memory in [shared, private, third] {
        // One page at a time.
        puppet.advises(memory, 4, libc::MADV_RANDOM).expect("advice");
    }
    drop_cached(&file, 0, 4);
    {
        let _held = Held::of(&file, 0, 1);
        makes(&mut puppet, "cached, shared", shared, Read, Effect::MapCached);
        let owner = makes(&mut puppet, "mapped file", shared, Read, Effect::Nothing);
        assert_eq!(owner, Some(Owner::Object));
        makes(&mut puppet, "cached, private", private, Write, Effect::MapCached);
        makes(&mut puppet, "private copy", private, Write, Effect::Nothing);
        makes(&mut puppet, "cached, private", third, Read, Effect::MapCached);
        makes(&mut puppet, "mapped file, private", third, Write, Effect::Copy);
    }
    let cached = |page| super::behind::is_cached(&file, page);
    if cached(1) || cached(2) {
        return skip(NAME, "the filesystem keeps what it should drop");
    }
    makes(&mut puppet, "not cached, shared", shared + page, Read, Effect::ReadFile);
    makes(&mut puppet, "not cached, private", private + 2 * page, Write, Effect::ReadFile);
}

fn past_the_end() {
    let file = DiskFile::of(1);
    let rw = libc::PROT_READ | libc::PROT_WRITE;
    for (access, flags) in [(Read, libc::MAP_SHARED), (Write, libc::MAP_PRIVATE)] {
        let mut puppet = Puppet::start();
        let memory = puppet.maps_file(&file, 2, rw, flags);
        makes(&mut puppet, "past the end", memory + page_bytes(), access, Effect::PastEnd);
    }
}

fn shared_memory() {
    for verb in ["shared", "memfd"] {
        let mut puppet = Puppet::start();
        let memory = puppet.maps(verb, 2);
        let page = page_bytes();
        makes(&mut puppet, verb, memory, Read, Effect::Zeros);
        makes(&mut puppet, verb, memory, Write, Effect::Nothing);
        makes(&mut puppet, verb, memory + page, Write, Effect::Zeros);
        puppet.advises(memory, 2, libc::MADV_DONTNEED).expect("to unmap");
        makes(&mut puppet, verb, memory + page, Write, Effect::MapCached);
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("copied", 1);
    makes(&mut puppet, "private memfd", memory, Write, Effect::Zeros);
}

fn what_is_not_permitted() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("reserved", 1);
    makes(&mut puppet, "PROT_NONE", memory, Read, Effect::Protection);
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 1);
    puppet.writes(memory, 1);
    puppet.does("protect", &[memory, page_bytes(), libc::PROT_READ as u64]);
    makes(&mut puppet, "read-only", memory, Read, Effect::Nothing);
    makes(&mut puppet, "read-only", memory, Write, Effect::Protection);
    // On x86-64 only a protection key refuses reads of memory that can be executed.
    let has_keys = std::fs::read_to_string("/proc/self/smaps").is_ok_and(|smaps| smaps.contains("ProtectionKey:"));
    if cfg!(target_arch = "x86_64") && !has_keys {
        let mut puppet = Puppet::start();
        let memory = puppet.maps("anonymous", 2);
        puppet.writes(memory, 1);
        puppet.does("protect", &[memory, 2 * page_bytes(), libc::PROT_EXEC as u64]);
        makes(&mut puppet, "execute-only", memory, Read, Effect::Nothing);
        makes(&mut puppet, "execute-only, untouched", memory + page_bytes(), Read, Effect::Zeros);
        makes(&mut puppet, "execute-only", memory, Write, Effect::Protection);
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 3);
    puppet.unmaps(memory + page_bytes(), 1);
    makes(&mut puppet, "no region", memory + page_bytes(), Read, Effect::NoRegion);
}

fn guards_and_poison() {
    for access in [Read, Write] {
        let mut puppet = Puppet::start();
        let memory = puppet.maps("anonymous", 1);
        match puppet.advises(memory, 1, MADV_GUARD_INSTALL) {
            Ok(()) => _ = makes(&mut puppet, "guard", memory, access, Effect::Guard),
            Err(error) => skip("explain::guards_and_poison", &format!("guards: error {error}")),
        }
        let mut puppet = Puppet::start();
        let memory = puppet.maps("anonymous", 1);
        match puppet.asks("poison", &[memory, page_bytes()]) {
            0 => _ = makes(&mut puppet, "poisoned", memory, access, Effect::Poisoned),
            error => skip("explain::guards_and_poison", &format!("poison: error {}", -error)),
        }
    }
}

fn both_sides_of_a_fork() {
    let page = page_bytes();
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 3);
    puppet.writes(memory, 3);
    let child = Who::Child(puppet.does("branch", &[]) as u32);
    let cow = Some(Owner::CopyOnWrite);
    let root = support::is_root();
    // The child first; then the parent takes over what is left.
    assert_eq!(makes_one(&mut puppet, child, "child", memory, Read, Effect::Nothing), cow);
    assert_eq!(makes_one(&mut puppet, child, "child", memory, Write, Effect::Copy), cow);
    assert_eq!(makes_one(&mut puppet, child, "child, copied", memory, Write, Effect::Nothing), Some(Owner::Sole));
    let left = makes(&mut puppet, "parent, left over", memory, Write, Effect::Reuse);
    // PG_anon_exclusive, which tells, came with Linux 5.19.
    let tells = root && support::release() >= (5, 19);
    let expected = if tells { Owner::LeftOver } else { Owner::Sole };
    assert_eq!(left, Some(expected));
    makes(&mut puppet, "parent, taken over", memory, Write, Effect::Nothing);
    // The parent first.
    assert_eq!(makes(&mut puppet, "parent", memory + page, Write, Effect::Copy), cow);
    makes_one(&mut puppet, child, "child, left over", memory + page, Write, Effect::Reuse);
    // The child goes.
    assert_eq!(makes(&mut puppet, "parent", memory + 2 * page, Read, Effect::Nothing), cow);
    let Who::Child(pid) = child else { return };
    puppet.does("kill", &[pid.into()]);
    makes(&mut puppet, "parent, alone again", memory + 2 * page, Write, Effect::Reuse);
}

fn merged_pages() {
    let (merging, mut puppet, memory) = match merged() {
        Ok(made) => made,
        Err(reason) => return skip("explain::merged_pages", &reason),
    };
    let owner = makes(&mut puppet, "merged", memory, Read, Effect::Nothing);
    assert_eq!(owner, Some(Owner::Merged));
    makes(&mut puppet, "merged", memory, Write, Effect::Copy);
    drop(puppet);
    drop(merging);
}

fn swap() {
    const NAME: &str = "explain::swap";
    let swap = match super::system::swap() {
        Ok(swap) => swap,
        Err(reason) => return skip(NAME, &reason),
    };
    for access in [Read, Write] {
        let mut puppet = Puppet::start();
        let memory = puppet.maps("anonymous", 1);
        puppet.writes(memory, 1);
        if !puppet.pages_out(memory, 1) {
            skip(NAME, "the kernel kept the page");
            continue;
        }
        makes(&mut puppet, "swapped", memory, access, Effect::SwapIn);
        makes(&mut puppet, "swapped in", memory, Read, Effect::Nothing);
        // Before Linux 6.11 a read mapped it write-protected.
        let effect = if access == Read && support::release() < (6, 11) { Effect::Reuse } else { Effect::Nothing };
        // On 7.2 such pages are dirty, like those that the end of a swap area has brought back.
        may_make(&mut puppet, Who::Itself, "swapped in", memory, Write, effect);
        may_make(&mut puppet, Who::Itself, "swapped in, written", memory, Write, Effect::Nothing);
    }
    drop(swap);
}

fn shared_memory_in_swap() {
    const NAME: &str = "explain::shared_memory_in_swap";
    let swap = match super::system::swap() {
        Ok(swap) => swap,
        Err(reason) => return skip(NAME, &reason),
    };
    let mut puppet = Puppet::start();
    let memory = puppet.maps("memfd", 1);
    puppet.writes(memory, 1);
    if puppet.pages_out(memory, 1) && support::is_hole(puppet.0.pid(), memory) {
        _ = makes(&mut puppet, "swapped shared memory", memory, Read, Effect::SwapIn)
    } else {
        skip(NAME, "the kernel kept the page")
    }
    drop(puppet);
    drop(swap);
}

fn huge_pages() {
    const NAME: &str = "explain::huge_pages";
    let (mut puppet, memory, _) = match Puppet::with_huge_page() {
        Ok(made) => made,
        Err(reason) => return skip(NAME, reason),
    };
    if !support::is_root() {
        return skip(NAME, "inside huge pages it takes flags and counts to tell");
    }
    let nth = |page: u64| memory + page * page_bytes();
    let owner = makes(&mut puppet, "huge page", nth(7), Write, Effect::Nothing);
    assert_eq!(owner, Some(Owner::Sole));
    let child = Who::Child(puppet.does("branch", &[]) as u32);
    let cow = Some(Owner::CopyOnWrite);
    assert_eq!(makes(&mut puppet, "huge page after fork", nth(7), Read, Effect::Nothing), cow);
    assert_eq!(makes_one(&mut puppet, child, "huge page, child", nth(3), Write, Effect::Copy), cow);
    assert_eq!(makes(&mut puppet, "huge page, parent", nth(7), Write, Effect::Copy), cow);
    assert_eq!(makes(&mut puppet, "split huge page", nth(9), Write, Effect::Copy), cow);
    // The child has a copy of this page. Whether the page is exclusive by now is hidden, and the kernel checks the
    // whole folio.
    let (outcome, owner) = said(&puppet.0.attach(), nth(3), Write);
    assert_eq!(owner, None);
    let before = plain_entry(puppet.0.pid(), nth(3));
    let felt = Felt::from_answer(puppet.asks("store", &[nth(3)]));
    let effect = match (felt, plain_entry(puppet.0.pid(), nth(3)) == before) {
        (Felt::Faults { minor: 0, major: 0 }, true) => Effect::Nothing,
        (Felt::Faults { minor: 1, major: 0 }, true) => Effect::Reuse,
        (Felt::Faults { minor: 1, major: 0 }, false) => Effect::Copy,
        other => panic!("{other:?}"),
    };
    println!("left in a huge page: said {:?}, was {effect:?}", outcome.effects);
    assert!(outcome.effects.contains(&effect), "{outcome:?} {effect:?}");
}

fn stacks_grow() {
    let mut puppet = Puppet::start();
    let stack = |puppet: &Puppet| {
        let rows = support::plain_maps(puppet.0.pid());
        let row = rows.into_iter().find(|(_, _, rest)| rest.ends_with(b"[stack]"));
        row.expect("a stack")
    };
    let (start, end, _) = stack(&puppet);
    let target = puppet.0.attach();
    let limit = target.process.limit(pmdb::kernel::status::ResourceLimit::Stack).expect("its limits");
    makes(&mut puppet, "below the stack", start - 3 * page_bytes(), Write, Effect::StackGrows);
    assert_eq!(stack(&puppet).0, start - 3 * page_bytes());
    if let Some(limit) = limit {
        makes(&mut puppet, "beyond its limit", end - limit - page_bytes(), Read, Effect::NoRegion);
    }
}

fn above_user_space() {
    const NAME: &str = "explain::above_user_space";
    if cfg!(not(target_arch = "x86_64")) {
        return skip(NAME, "the addresses are those of x86-64");
    }
    for address in [0x7fff_ffff_f000, 0x8000_0000_0000, 0xffff_8000_0000_0000] {
        for access in [Read, Write] {
            let mut puppet = Puppet::start();
            let what = format!("{address:#x}");
            makes(&mut puppet, &what, address, access, Effect::NoRegion);
        }
    }
    let mut puppet = Puppet::start();
    let regions = puppet.0.attach().process.regions().expect("its regions");
    let vsyscall = regions.iter().find(|region| region.name.as_bytes() == b"[vsyscall]");
    let Some(vsyscall) = vsyscall else {
        return skip(NAME, "no [vsyscall]");
    };
    let effect = if vsyscall.permissions.read { Effect::Nothing } else { Effect::Protection };
    let start = vsyscall.range.start().get();
    makes(&mut puppet, "[vsyscall]", start, Read, effect);
}
