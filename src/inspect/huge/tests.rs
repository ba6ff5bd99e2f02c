//! The rules on regions and places of huge pages that were written down, for several kernels.

use super::rules::{HugeRegion, HugeRules};
use super::stretch::Stretch;
use crate::inspect::classify::Backing;
use crate::kernel::huge::HugeChoice;
use crate::kernel::smaps::Smaps;
use crate::kernel::{AddressRange, Permissions, VirtualAddress};
use crate::process::{HugeSettings, HugeSize};
use crate::report::HugeRefusal::{self, *};

const HUGE: u64 = 2 << 20;
const PAGES: u64 = 512;

fn settings(memory: HugeChoice) -> HugeSettings {
    HugeSettings {
        memory: Some(memory),
        shared: Some(HugeChoice::Never),
        max_empty: Some(511),
        max_swapped: Some(64),
        max_shared: Some(256),
        ..HugeSettings::default()
    }
}

fn rules(kernel: (u32, u32), settings: HugeSettings) -> HugeRules {
    HugeRules { kernel, settings, bytes: HUGE, pages: PAGES, process: Some(true), files: Some(false) }
}

fn range(start: u64, end: u64) -> AddressRange {
    AddressRange::new(VirtualAddress::new(start), VirtualAddress::new(end)).expect("a range")
}

fn smaps(range: AddressRange, flags: &[&str]) -> Smaps {
    Smaps { vm_flags: flags.iter().map(|&flag| flag.to_owned()).collect(), ..Smaps::of(range) }
}

fn facts<'a>(smaps: &'a Smaps, backing: Backing) -> HugeRegion<'a> {
    let permissions = Permissions { read: true, write: true, ..Permissions::default() };
    HugeRegion { range: smaps.range, permissions, offset: 0, backing, mount: None, smaps }
}

/// A private region of `bytes` bytes at an aligned address, with these VmFlags: why a fault in it refuses, and why
/// khugepaged does.
fn of_memory(rules: &HugeRules, bytes: u64, flags: &[&str]) -> (Vec<HugeRefusal>, Vec<HugeRefusal>) {
    let smaps = smaps(range(4 * HUGE, 4 * HUGE + bytes), flags);
    let of = rules.of_region(&facts(&smaps, Backing::Anonymous));
    (of.fault, of.khugepaged)
}

#[test]
fn settings_advice_and_length_decide_of_a_region() {
    let both = |reasons: &[HugeRefusal]| (reasons.to_vec(), reasons.to_vec());
    let madvise = rules((6, 18), settings(HugeChoice::Madvise));
    assert_eq!(of_memory(&madvise, HUGE, &["hg"]), both(&[]));
    assert_eq!(of_memory(&madvise, HUGE, &[]), both(&[NotAdvised]));
    assert_eq!(of_memory(&madvise, HUGE - 4096, &["nh"]), both(&[AdvisedAgainst, Alignment]));
    let always = rules((6, 18), settings(HugeChoice::Always));
    assert_eq!(of_memory(&always, HUGE, &[]), both(&[]));
    assert_eq!(of_memory(&always, HUGE, &["io"]), both(&[Driver]));
    let never = rules((6, 18), settings(HugeChoice::Never));
    assert_eq!(of_memory(&never, HUGE, &["hg"]), both(&[Never]));
    let off = HugeRules { process: Some(false), ..always.clone() };
    assert_eq!(of_memory(&off, HUGE, &["hg"]), both(&[Process]));
    let none = rules((6, 18), HugeSettings::default());
    assert_eq!(of_memory(&none, HUGE, &["hg"]), both(&[NotBuilt]));
    // A mapping that cannot grow is refused only later.
    assert_eq!(of_memory(&always, HUGE, &["de"]), (vec![], vec![Driver]));
}

#[test]
fn a_setting_for_the_size_comes_before_that_for_all() {
    let with = |memory| HugeSettings {
        sizes: vec![
            HugeSize { bytes: 65536, memory: Some(HugeChoice::Inherit), shared: None },
            HugeSize { bytes: HUGE, memory: Some(memory), shared: None },
        ],
        ..settings(HugeChoice::Never)
    };
    for (choice, expected) in [
        (HugeChoice::Always, vec![]),
        (HugeChoice::Inherit, vec![Never]),
        (HugeChoice::Madvise, vec![NotAdvised]),
        (HugeChoice::Never, vec![Never]),
    ] {
        let rules = rules((6, 18), with(choice));
        assert_eq!(of_memory(&rules, HUGE, &[]).0, expected, "{choice:?}");
    }
    let rules = rules((6, 18), HugeSettings { memory: Some(HugeChoice::Madvise), ..with(HugeChoice::Never) });
    let (asked, unasked) = (smaps(range(0, HUGE), &["hg"]), smaps(range(0, HUGE), &[]));
    let allows = |smaps, bytes| rules.allows(&facts(smaps, Backing::Anonymous), bytes);
    assert!(allows(&asked, 65536) && !allows(&unasked, 65536) && !allows(&asked, HUGE) && !allows(&asked, 16384));
}

#[test]
fn the_order_is_that_of_the_kernel() {
    let khugepaged = |kernel, flags: &[&str]| of_memory(&rules(kernel, settings(HugeChoice::Never)), 4096, flags).1;
    assert_eq!(khugepaged((6, 18), &["nh", "io"]), [Never, AdvisedAgainst, Driver, Alignment]);
    assert_eq!(khugepaged((6, 1), &["nh", "io"]), [AdvisedAgainst, Driver, Alignment, Never]);
    assert_eq!(khugepaged((5, 10), &["nh", "io"]), [AdvisedAgainst, Never, Driver, Alignment]);
}

#[test]
fn the_kernel_tells_what_the_rules_do_not_see() {
    let with = |kernel, flags: &[&str], backing, may_be_huge| {
        let smaps = Smaps { may_be_huge: Some(may_be_huge), ..smaps(range(0, HUGE), flags) };
        rules(kernel, settings(HugeChoice::Always)).of_region(&facts(&smaps, backing)).khugepaged
    };
    assert_eq!(with((6, 18), &[], Backing::Anonymous, true), []);
    assert_eq!(with((6, 18), &[], Backing::Anonymous, false), [OnlyAdvised]);
    assert_eq!(with((6, 18), &["hg"], Backing::Anonymous, false), [Unseen]);
    assert_eq!(with((6, 12), &[], Backing::Anonymous, false), [Unseen]);
    assert_eq!(with((5, 10), &[], Backing::Anonymous, false), []);
    // Since Linux 7.2 only the kernel knows which filesystem can.
    assert_eq!(with((7, 2), &[], Backing::File, false), [File]);
    assert_eq!(with((7, 2), &[], Backing::File, true), []);
    // Another reason explains it.
    assert_eq!(with((6, 18), &["nh"], Backing::Anonymous, false), [AdvisedAgainst]);
}

#[test]
fn files_and_shared_memory_have_rules_of_their_own() {
    let of = |settings: &HugeSettings, backing, mount, offset, flags: &[&str]| {
        let smaps = smaps(range(4 * HUGE, 6 * HUGE), flags);
        let region = HugeRegion { offset, mount, ..facts(&smaps, backing) };
        let of = rules((6, 18), settings.clone()).of_region(&region);
        (of.fault, of.khugepaged)
    };
    let always = settings(HugeChoice::Always);
    assert_eq!(of(&always, Backing::File, None, 0, &[]), (vec![PageCache], vec![File]));
    assert_eq!(of(&always, Backing::File, None, 4096, &[]), (vec![PageCache], vec![FileOffset, File]));
    let both = |reasons: &[HugeRefusal]| (reasons.to_vec(), reasons.to_vec());
    let shared = |shared, mount, flags: &[&str]| {
        let settings = HugeSettings { shared: Some(shared), ..settings(HugeChoice::Never) };
        of(&settings, Backing::Shmem, mount, 0, flags)
    };
    assert_eq!(shared(HugeChoice::Never, None, &["hg"]), both(&[SharedMemory]));
    assert_eq!(shared(HugeChoice::Advise, None, &[]), both(&[SharedMemory]));
    assert_eq!(shared(HugeChoice::Advise, None, &["hg"]), both(&[]));
    assert_eq!(shared(HugeChoice::Always, None, &[]), both(&[]));
    // A mounted filesystem has an option of its own, over which two settings stand.
    assert_eq!(shared(HugeChoice::Always, Some(HugeChoice::Never), &[]), both(&[SharedMemory]));
    assert_eq!(shared(HugeChoice::Never, Some(HugeChoice::Always), &[]), both(&[]));
    assert_eq!(shared(HugeChoice::Deny, Some(HugeChoice::Always), &[]), both(&[SharedMemory]));
    assert_eq!(shared(HugeChoice::Force, Some(HugeChoice::Never), &[]), both(&[]));
}

#[test]
fn what_is_in_the_place_of_a_huge_page_counts() {
    let rules = rules((6, 18), settings(HugeChoice::Always));
    let check = |stretch: Stretch, flags: &[&str], is_whole: bool| {
        let smaps = smaps(range(0, 4 * HUGE), flags);
        let facts = facts(&smaps, Backing::Anonymous);
        let of = rules.of_region(&facts);
        (rules.fault(&of, &facts, &stretch, is_whole), rules.khugepaged(&of, &facts, &stretch, is_whole))
    };
    let with = |change: &dyn Fn(&mut Stretch)| {
        let mut stretch = Stretch { small: PAGES, ..Stretch::default() };
        change(&mut stretch);
        check(stretch, &[], true).1
    };
    assert_eq!(check(Stretch { untouched: PAGES, ..Stretch::default() }, &[], true).0, []);
    assert_eq!(check(Stretch { untouched: 5, ..Stretch::default() }, &[], false).0, [Alignment]);
    assert_eq!(check(Stretch { small: 1, untouched: 511, ..Stretch::default() }, &[], true), (vec![Occupied], vec![]));
    assert_eq!(with(&|_| {}), []);
    assert_eq!(with(&|one| (one.small, one.swapped) = (448, 64)), []);
    assert_eq!(with(&|one| (one.small, one.swapped) = (447, 65)), [HugeRefusal::Swapped]);
    assert_eq!(with(&|one| one.shared = 256), []);
    assert_eq!(with(&|one| one.shared = 257), [Shared]);
    assert_eq!(with(&|one| one.maybe_shared = 512), []);
    assert_eq!(with(&|one| one.is_held = true), [Held]);
    assert_eq!(with(&|one| one.guards = 1), [Guards]);
    assert_eq!(with(&|one| one.write_protected = 1), [WriteProtected]);
    assert_eq!(with(&|one| one.elsewhere = 1), [Elsewhere]);
    let holes = Stretch { small: 500, untouched: 10, zeros: 2, ..Stretch::default() };
    assert_eq!(check(holes, &["um"], true), (vec![Occupied, Userfault], vec![Userfault]));
    let few = HugeRules { settings: HugeSettings { max_empty: Some(11), ..rules.settings.clone() }, ..rules.clone() };
    let smaps = smaps(range(0, 4 * HUGE), &[]);
    let facts = facts(&smaps, Backing::Anonymous);
    assert_eq!(few.khugepaged(&few.of_region(&facts), &facts, &holes, true), [Empty]);
}

/// What a process maps of shared memory is not all that its object has.
#[test]
fn holes_in_shared_memory_are_those_of_the_object() {
    let settings = HugeSettings { shared: Some(HugeChoice::Always), max_empty: Some(0), ..settings(HugeChoice::Never) };
    let rules = rules((6, 18), settings);
    let smaps = smaps(range(0, 4 * HUGE), &[]);
    let facts = facts(&smaps, Backing::Shmem);
    let of = rules.of_region(&facts);
    let check = |stretch: Stretch| rules.khugepaged(&of, &facts, &stretch, true);
    let half = Stretch { small: 256, untouched: 256, ..Stretch::default() };
    assert_eq!(check(half), [Empty]);
    assert_eq!(check(Stretch { cached: 256, ..half }), []);
    assert_eq!(check(Stretch { maybe_cached: 256, ..half }), []);
    assert_eq!(check(Stretch { cached: 100, cached_in_swap: 156, ..half }), [HugeRefusal::Swapped]);
}
