//! Tests of owners and outcomes for given facts.

mod room;

use super::*;
use crate::kernel::PageFlags;
use Access::{Read, Write};
use Effect::*;

const RW: Permissions =
    Permissions { read: true, write: true, execute: false, shared: false, sharing_unknown: false, is_unknown: false };
const SHARED: Permissions = Permissions { shared: true, ..RW };
const OWN: PageFlags = PageFlags::ANON.union(PageFlags::OWNER_2);
const HEAD: PageFlags = PageFlags::ANON.union(PageFlags::COMPOUND_HEAD);
const TAIL: PageFlags = PageFlags::ANON.union(PageFlags::COMPOUND_TAIL);

/// Returns the facts of a page of a private mapping, of which nothing else is known.
fn page(state: State, kind: Kind) -> AccessFacts {
    let backing = match kind {
        Kind::Anonymous | Kind::Zero | Kind::HugeZero | Kind::Ksm => Backing::Anonymous,
        Kind::Hugetlb => Backing::Hugetlb,
        Kind::Shmem | Kind::MaybeSwapped => Backing::Shmem,
        Kind::Vdso => Backing::Kernel,
        Kind::DriverMemory => Backing::Driver,
        Kind::Secret => Backing::Secret,
        _ => Backing::File,
    };
    AccessFacts {
        state,
        is_state_certain: true,
        kind: Some(kind),
        permissions: Some(RW),
        backing: Some(backing),
        is_of_object: false,
        uffd_wp: false,
        is_writable: Some(true),
        is_dirty: None,
        has_key: false,
        reads_code: None,
        may_lack_page: false,
        kernel: (6, 18),
        flags: None,
        head_flags: None,
        exclusive: None,
        huge: Some(false),
        content: None,
        write_tracked: Some(false),
        uffd_missing: Some(false),
        uffd_minor: Some(false),
        pool_has_spare: Some(true),
        pool_may_be_reserved: Some(true),
        is_folio_shared: false,
        huge_may_come: Some(false),
        stack_grows: None,
        room: Room::Enough,
        charge: Charge::Passes,
        pool_limit_is_reached: false,
        driver_fills: None,
    }
}

fn present(flags: PageFlags, map_count: u64) -> AccessFacts {
    AccessFacts { flags: Some(flags), exclusive: Some(map_count == 1), ..page(State::Present, Kind::Anonymous) }
}

fn untouched(kind: Kind) -> AccessFacts {
    page(State::Untouched, kind)
}

#[track_caller]
fn check(facts: AccessFacts, read: &[Effect], write: &[Effect]) {
    assert_eq!(outcome(&facts, Read).effects, read, "read of {facts:?}");
    assert_eq!(outcome(&facts, Write).effects, write, "write of {facts:?}");
}

#[test]
fn where_nothing_is_mapped() {
    let registered = AccessFacts { uffd_missing: Some(true), ..untouched(Kind::Anonymous) };
    let hole = AccessFacts { content: Some(BackingContent::Hole), ..untouched(Kind::Shmem) };
    // The backing is unknown.
    let pooled = untouched(Kind::Hugetlb);
    let without = |content, reserved| AccessFacts {
        content,
        pool_has_spare: Some(false),
        pool_may_be_reserved: Some(reserved),
        ..pooled
    };
    let of_pool = |content| AccessFacts { content: Some(content), ..pooled };
    let is_there = BackingContent::Contents { cached: true };
    for (facts, effects) in [
        (untouched(Kind::Anonymous), &[Zeros][..]),
        (registered, &[Notify]),
        (of_pool(BackingContent::Hole), &[Zeros]),
        (of_pool(is_there), &[MapCached]),
        (of_pool(BackingContent::PastEnd), &[PastEnd]),
        (pooled, &[Zeros, MapCached]),
        (without(Some(BackingContent::Hole), true), &[Zeros, PoolEmpty]),
        (without(Some(BackingContent::Hole), false), &[PoolEmpty, Zeros]),
        (without(Some(is_there), false), &[MapCached]),
        (without(None, true), &[Zeros, MapCached, PoolEmpty]),
        (without(None, false), &[PoolEmpty, MapCached, Zeros]),
        (untouched(Kind::Cached), &[MapCached]),
        (untouched(Kind::NotCached), &[ReadFile]),
        (untouched(Kind::File), &[MapCached, ReadFile]),
        (untouched(Kind::PastEnd), &[PastEnd]),
        (untouched(Kind::MaybeSwapped), &[SwapIn]),
        (hole, &[Zeros]),
        (untouched(Kind::Shmem), &[MapCached, Zeros, SwapIn]),
    ] {
        check(facts, effects, effects);
    }
}

#[test]
fn a_write_to_a_private_mapping_copies_the_page_that_it_faults_in() {
    for (kind, copies) in [
        (Kind::Cached, true),
        (Kind::NotCached, true),
        (Kind::MaybeSwapped, true),
        (Kind::PastEnd, false),
        (Kind::Anonymous, false),
    ] {
        let private = untouched(kind);
        assert_eq!(outcome(&private, Write).copies, Some(copies), "{kind:?}");
        assert_eq!(outcome(&private, Read).copies, Some(false), "{kind:?}");
        let shared = AccessFacts { permissions: Some(SHARED), ..private };
        assert_eq!(outcome(&shared, Write).copies, Some(false), "{kind:?}");
    }
}

/// Whether a huge page is mapped depends on free memory; without the right to read smaps, on unknown settings too.
#[test]
fn a_huge_page_may_come() {
    let hole = AccessFacts { content: Some(BackingContent::Hole), ..untouched(Kind::Shmem) };
    for (huge_may_come, effects) in
        [(Some(false), &[Zeros][..]), (Some(true), &[HugeZeros, Zeros]), (None, &[Zeros, HugeZeros])]
    {
        for facts in [untouched(Kind::Anonymous), hole] {
            let facts = AccessFacts { huge_may_come, ..facts };
            check(facts, effects, effects);
        }
    }
    let before = AccessFacts { kernel: (6, 11), ..page(State::Present, Kind::HugeZero) };
    check(before, &[Nothing], &[Zeros]);
}

#[test]
fn anonymous_pages() {
    let folio = |flags, huge, count| AccessFacts { huge: Some(huge), ..present(flags, count) };
    for (facts, write, owner) in [
        (present(OWN, 1), &[Nothing][..], Some(Owner::Sole)),
        (present(PageFlags::ANON, 2), &[Copy], Some(Owner::CopyOnWrite)),
        (present(PageFlags::ANON, 1), &[Reuse], Some(Owner::LeftOver)),
        (present(PageFlags::ANON | PageFlags::SWAPCACHE, 1), &[Reuse, Copy], None),
        // One entry maps all pages: the mark of the first page holds for all.
        (folio(TAIL | OWN, true, 1), &[Nothing], Some(Owner::Sole)),
        (folio(TAIL, true, 2), &[Copy], Some(Owner::CopyOnWrite)),
        (folio(TAIL, true, 1), &[Reuse, Copy], Some(Owner::LeftOver)),
        // Many entries: the mark of the first page says nothing about the others.
        (folio(HEAD | OWN, false, 1), &[Nothing], Some(Owner::Sole)),
        (folio(HEAD, false, 1), &[Reuse, Copy], Some(Owner::LeftOver)),
        (folio(TAIL | OWN, false, 1), &[Nothing, Reuse, Copy], Some(Owner::Sole)),
        (folio(TAIL, false, 1), &[Reuse, Copy, Nothing], None),
        (folio(TAIL, false, 3), &[Copy], Some(Owner::CopyOnWrite)),
    ] {
        check(facts, &[Nothing], write);
        assert_eq!(super::owner(&facts).ok(), owner, "{facts:?}");
    }
    let cached = present(PageFlags::ANON | PageFlags::SWAPCACHE, 1);
    assert_eq!(super::owner(&cached), Err(OwnerUnknown::SwapCache));
    let tail = folio(TAIL, false, 1);
    assert_eq!(super::owner(&tail), Err(OwnerUnknown::MarkOfFolio));
}

/// An entry may be write-protected for other reasons than sharing: soft-dirty bits were cleared, or the page was in
/// swap.
#[test]
fn entries_that_may_be_write_protected() {
    let shared = |kind| AccessFacts { permissions: Some(SHARED), ..page(State::Present, kind) };
    let unknown = AccessFacts { exclusive: Some(true), ..page(State::Present, Kind::Anonymous) };
    for (facts, protected, perhaps) in [
        (present(OWN, 1), &[Reuse][..], &[Nothing, Reuse][..]),
        (shared(Kind::Shmem), &[Reuse], &[Nothing, Reuse]),
        (shared(Kind::File), &[Reuse], &[Reuse, Nothing]),
        (unknown, &[Reuse, Copy], &[Nothing, Reuse, Copy]),
        (present(PageFlags::ANON, 2), &[Copy], &[Copy]),
    ] {
        check(AccessFacts { is_writable: Some(false), ..facts }, &[Nothing], protected);
        check(AccessFacts { is_writable: None, ..facts }, &[Nothing], perhaps);
    }
}

/// A file system gets a fault at the first write to a clean page.
#[test]
fn a_write_to_a_shared_file() {
    let file = AccessFacts { permissions: Some(SHARED), is_of_object: true, ..page(State::Present, Kind::File) };
    for (dirty, write) in [(Some(true), &[Nothing, Reuse]), (Some(false), &[Reuse, Nothing]), (None, &[Reuse, Nothing])]
    {
        check(AccessFacts { is_dirty: dirty, ..file }, &[Nothing], write);
    }
}

/// The rights for a protection key are in a register of each thread.
#[test]
fn protection_keys() {
    let keyed = |facts| AccessFacts { has_key: true, ..facts };
    check(keyed(present(OWN, 1)), &[Nothing, ProtectionKey], &[Nothing, ProtectionKey]);
    check(keyed(untouched(Kind::Anonymous)), &[Zeros, ProtectionKey], &[Zeros, ProtectionKey]);
    let read_only = Permissions { write: false, ..RW };
    let facts = AccessFacts { permissions: Some(read_only), ..keyed(present(OWN, 1)) };
    check(facts, &[Nothing, ProtectionKey], &[Protection]);
    assert_eq!(outcome(&keyed(present(PageFlags::ANON, 2)), Write).copies, Some(true));
}

/// The kernel has some pages of `[vvar]` on some machines only. Since Linux 7.0 the page map shows them as untouched.
#[test]
fn pages_that_the_kernel_may_lack() {
    let lacking = |state| AccessFacts { may_lack_page: true, ..page(state, Kind::Vdso) };
    let hidden: &[Effect] = &[Nothing, Map, NoKernelPage];
    check(lacking(State::PfnMapped), hidden, hidden);
    check(lacking(State::Untouched), &[Map, NoKernelPage], &[Map, NoKernelPage]);
}

#[test]
fn without_the_rights_to_flags_and_counts() {
    let seen = |exclusive| AccessFacts { exclusive, ..page(State::Present, Kind::Anonymous) };
    for (exclusive, write, owner) in [
        (Some(true), &[Nothing, Reuse, Copy][..], Some(Owner::Sole)),
        (Some(false), &[Copy], Some(Owner::CopyOnWrite)),
        (None, &[Nothing, Reuse, Copy], None),
    ] {
        check(seen(exclusive), &[Nothing], write);
        assert_eq!(super::owner(&seen(exclusive)).ok(), owner);
    }
    // The zero page, or one shared by a fork.
    let either = AccessFacts { kind: None, ..seen(Some(false)) };
    check(either, &[Nothing], &[Copy, Zeros]);
    assert_eq!(super::owner(&either), Err(OwnerUnknown::Kind));
    assert_eq!(super::owner(&seen(None)), Err(OwnerUnknown::Exclusive));
}

#[test]
fn other_pages_that_are_mapped() {
    let mapped = |kind| AccessFacts { is_of_object: true, exclusive: Some(false), ..page(State::Present, kind) };
    let shared = |kind| AccessFacts { permissions: Some(SHARED), ..mapped(kind) };
    let no_spare = AccessFacts { is_of_object: false, pool_has_spare: None, ..mapped(Kind::Hugetlb) };
    for (facts, write, owner) in [
        (mapped(Kind::Zero), &[Zeros][..], Owner::Kernel),
        (mapped(Kind::HugeZero), &[HugeZeros, Zeros], Owner::Kernel),
        (mapped(Kind::Ksm), &[Copy], Owner::Merged),
        (mapped(Kind::File), &[Copy], Owner::Object),
        (shared(Kind::File), &[Reuse, Nothing], Owner::Object),
        (mapped(Kind::Shmem), &[Copy], Owner::Object),
        (shared(Kind::Shmem), &[Nothing], Owner::Object),
        (shared(Kind::Hugetlb), &[Nothing], Owner::Object),
        (mapped(Kind::Hugetlb), &[Copy], Owner::Object),
        (no_spare, &[Copy, Reuse, PoolEmpty], Owner::CopyOnWrite),
        (mapped(Kind::Vdso), &[Copy], Owner::Kernel),
        (shared(Kind::DeviceMemory), &[Nothing], Owner::Device),
    ] {
        check(facts, &[Nothing], write);
        assert_eq!(super::owner(&facts), Ok(owner), "{facts:?}");
    }
}

#[test]
fn userfaultfd_effects_come_first() {
    let protected = |write_tracked| AccessFacts { uffd_wp: true, write_tracked, ..present(OWN, 1) };
    check(protected(Some(true)), &[Nothing], &[Unprotect]);
    check(protected(Some(false)), &[Nothing], &[Notify]);
    check(protected(None), &[Nothing], &[Unprotect, Notify]);
    let shared = AccessFacts { uffd_wp: true, write_tracked: Some(true), ..present(PageFlags::ANON, 2) };
    assert_eq!(outcome(&shared, Write).copies, Some(true), "and copy-on-write after it");
    let zeros = |write_tracked| AccessFacts { uffd_wp: true, write_tracked, ..page(State::Present, Kind::Zero) };
    check(zeros(Some(true)), &[Nothing], &[Zeros]);
    check(zeros(Some(false)), &[Nothing], &[Notify]);
    check(zeros(None), &[Nothing], &[Zeros, Notify]);
    let marker = |write_tracked| AccessFacts { uffd_wp: true, write_tracked, ..page(State::UffdWp, Kind::Anonymous) };
    check(marker(Some(true)), &[Zeros], &[Zeros]);
    check(marker(Some(false)), &[Zeros], &[Notify]);
    check(marker(None), &[Zeros], &[Notify, Zeros]);
    let swapped = |write_tracked| AccessFacts { uffd_wp: true, write_tracked, ..page(State::Swapped, Kind::Anonymous) };
    check(swapped(Some(true)), &[SwapIn], &[SwapIn]);
    check(swapped(Some(false)), &[SwapIn], &[Notify]);
    check(swapped(None), &[SwapIn], &[Notify, SwapIn]);
}

#[test]
fn states_that_decide_alone() {
    for (state, effects) in [
        (State::Swapped, &[SwapIn][..]),
        (State::Guard, &[Guard]),
        (State::Poisoned, &[Poisoned]),
        (State::Hwpoison, &[Hwpoison]),
        (State::Migrating, &[Wait]),
        (State::Device, &[FromDevice]),
        (State::PfnMapped, &[Nothing, Map, DriverRefuses]),
        (State::Outside, &[Nothing]),
    ] {
        check(page(state, Kind::Anonymous), effects, effects);
        assert_eq!(super::owner(&page(state, Kind::Anonymous)), Err(OwnerUnknown::NoPage));
    }
}

#[test]
fn accesses_that_the_region_does_not_permit() {
    let rights = |read, write, execute| AccessFacts {
        permissions: Some(Permissions { read, write, execute, ..Permissions::default() }),
        ..present(OWN, 1)
    };
    check(rights(false, false, false), &[Protection], &[Protection]);
    check(rights(true, false, false), &[Nothing], &[Protection]);
    check(rights(false, true, false), &[Nothing], &[Nothing]);
    check(rights(false, false, true), &[Protection, Nothing], &[Protection]);
    let without_keys = AccessFacts { reads_code: Some(true), ..rights(false, false, true) };
    check(without_keys, &[Nothing], &[Protection]);
    // The region's permissions are checked before the page.
    let guard = AccessFacts { state: State::Poisoned, ..rights(false, false, false) };
    check(guard, &[Protection], &[Protection]);
}

#[test]
fn in_no_region() {
    let unmapped = |stack_grows| AccessFacts {
        permissions: None,
        backing: None,
        kind: None,
        stack_grows,
        ..page(State::Unmapped, Kind::Anonymous)
    };
    check(unmapped(Some(true)), &[StackGrows], &[StackGrows]);
    check(unmapped(Some(false)), &[NoRegion], &[NoRegion]);
    check(unmapped(None), &[NoRegion, Effect::StackGrows], &[NoRegion, StackGrows]);
}

#[test]
fn how_it_is_felt() {
    let felt = |effects: &[Effect]| AccessOutcome::of(effects).fault();
    assert_eq!(felt(&[Nothing]), Some(crate::report::Fault::None));
    assert_eq!(felt(&[Reuse, Copy]), Some(crate::report::Fault::Minor));
    assert_eq!(felt(&[MapCached, ReadFile]), None);
}

#[test]
fn an_uncertain_state_has_several_outcomes() {
    for state in [State::Swapped, State::Poisoned, State::UffdWp, State::Migrating] {
        let facts = AccessFacts { is_state_certain: false, ..page(state, Kind::Anonymous) };
        for access in [Read, Write] {
            let effects = outcome(&facts, access).effects;
            assert!(effects.len() > 1, "{state:?} {access:?} {effects:?}");
        }
    }
}

#[test]
fn a_hidden_marker_may_be_only_a_marker() {
    let certain = page(State::UffdWp, Kind::Anonymous);
    let hidden = AccessFacts { is_state_certain: false, ..certain };
    for access in [Read, Write] {
        let mut expected = outcome(&certain, access).effects;
        expected.extend([SwapIn, Wait]);
        assert_eq!(outcome(&hidden, access).effects, expected, "{access:?}");
    }
}

/// Linux before 5.19 does not mark exclusive pages. Up to 6.9, `/proc/kpageflags` shows for each page of a folio its
/// own flags.
#[test]
fn owners_on_older_kernels() {
    let on = |kernel, huge, flags, head| AccessFacts { kernel, huge, head_flags: head, ..present(flags, 1) };
    let (mine, unmarked) = (Some(HEAD | OWN), Some(HEAD));
    let owner = Some(Owner::Sole);
    let left_over = Some(Owner::LeftOver);
    let any: &[Effect] = &[Nothing, Reuse, Copy];
    for (facts, write, owner) in [
        (on((5, 18), Some(false), PageFlags::ANON, None), any, owner),
        (on((5, 19), Some(false), PageFlags::ANON, None), &[Reuse], left_over),
        // One entry maps it: the mark is on the first page.
        (on((6, 9), Some(true), TAIL, mine), &[Nothing], owner),
        (on((6, 9), Some(true), TAIL, unmarked), &[Reuse, Copy], left_over),
        (on((6, 9), Some(true), TAIL, None), any, owner),
        // Many entries map it: each page has its own mark.
        (on((6, 9), Some(false), TAIL, mine), &[Reuse, Copy], left_over),
        (on((6, 9), Some(false), TAIL | OWN, unmarked), &[Nothing], owner),
        // It is unknown whether one entry or many map it.
        (on((6, 1), None, TAIL, mine), any, owner),
        (on((6, 1), None, TAIL, unmarked), &[Reuse, Copy], left_over),
        (on((6, 1), None, TAIL | OWN, unmarked), &[Nothing], owner),
    ] {
        check(facts, &[Nothing], write);
        assert_eq!(super::owner(&facts).ok(), owner, "{facts:?}");
    }
}

/// A fault on a page that the object does not have is missing; on a page that it has, the fault is minor.
#[test]
fn missing_and_minor_faults_of_a_userfaultfd() {
    let hole = |kind| AccessFacts { content: Some(BackingContent::Hole), ..untouched(kind) };
    let notify: &[Effect] = &[Notify];
    let [anonymous, cached, swapped] = [Kind::Anonymous, Kind::Cached, Kind::MaybeSwapped].map(untouched);
    for (facts, missing, minor, both) in [
        (anonymous, notify, &[Zeros][..], notify),
        (hole(Kind::Shmem), notify, &[Zeros], notify),
        (cached, &[MapCached], notify, notify),
        (swapped, &[SwapIn], notify, notify),
        (untouched(Kind::PastEnd), &[PastEnd], &[PastEnd], &[PastEnd]),
        (untouched(Kind::Shmem), &[Notify, MapCached, SwapIn], &[Notify, Zeros], notify),
        (untouched(Kind::Hugetlb), &[Notify, MapCached], &[Notify, Zeros], notify),
        (hole(Kind::Hugetlb), notify, &[Zeros], notify),
    ] {
        let registered = |missing, minor| AccessFacts { uffd_missing: Some(missing), uffd_minor: Some(minor), ..facts };
        check(registered(true, false), missing, missing);
        check(registered(false, true), minor, minor);
        check(registered(true, true), both, both);
    }
    // A page with a write-protection marker is missing too.
    let marker = AccessFacts {
        uffd_wp: true,
        uffd_missing: Some(true),
        write_tracked: Some(true),
        ..page(State::UffdWp, Kind::Anonymous)
    };
    check(marker, notify, notify);
}

#[test]
fn hugetlb_entries_that_the_page_map_does_not_show() {
    let uncertain = |state| AccessFacts { is_state_certain: false, ..page(state, Kind::Hugetlb) };
    let poisoned: &[Effect] = &[Poisoned, Wait, Hwpoison];
    check(uncertain(State::Poisoned), poisoned, poisoned);
    let untouched: &[Effect] = &[Zeros, MapCached, Poisoned, Wait];
    check(uncertain(State::Untouched), untouched, untouched);
}

#[test]
fn whether_an_access_makes_a_copy() {
    let copies = |facts: &AccessFacts, access| outcome(facts, access).copies;
    let shared_by_a_fork = present(PageFlags::ANON, 2);
    assert_eq!(copies(&shared_by_a_fork, Write), Some(true));
    assert_eq!(copies(&shared_by_a_fork, Read), Some(false));
    let unknown = page(State::Present, Kind::Anonymous);
    assert_eq!(copies(&unknown, Write), None);
    // A child may have the swap slot too.
    let swapped = page(State::Swapped, Kind::Anonymous);
    assert_eq!(copies(&swapped, Write), None);
    assert_eq!(copies(&swapped, Read), Some(false));
    let uncertain = AccessFacts { is_state_certain: false, ..swapped };
    assert_eq!(copies(&uncertain, Write), None);
    let moving = page(State::Migrating, Kind::Anonymous);
    assert_eq!(copies(&moving, Write), None);
    // Shared memory is never copied.
    let shared = AccessFacts { permissions: Some(SHARED), ..untouched(Kind::MaybeSwapped) };
    assert_eq!(copies(&shared, Write), Some(false));
}

#[test]
fn faults_from_swap_depend_on_the_swap_cache() {
    let swapped = page(State::Swapped, Kind::Anonymous);
    assert_eq!(outcome(&swapped, Read).fault(), None);
    let file = outcome(&untouched(Kind::NotCached), Read);
    assert_eq!(file.fault(), Some(crate::report::Fault::Major));
}

#[test]
fn a_write_to_a_private_mapping_of_a_file_of_the_pool() {
    let copies = |content, access| {
        let facts = AccessFacts { content, ..untouched(Kind::Hugetlb) };
        outcome(&facts, access).copies
    };
    let is_there = Some(BackingContent::Contents { cached: true });
    assert_eq!(copies(is_there, Write), Some(true));
    assert_eq!(copies(is_there, Read), Some(false));
    assert_eq!(copies(Some(BackingContent::Hole), Write), Some(false));
    assert_eq!(copies(None, Write), None);
}

/// A read of an exclusive hugetlb page does not make it writable.
#[test]
fn the_first_write_to_an_exclusive_hugetlb_page() {
    let page = |flags| AccessFacts {
        kind: Some(Kind::Hugetlb),
        backing: Some(Backing::Hugetlb),
        ..present(flags | PageFlags::HUGE, 1)
    };
    check(page(HEAD | OWN), &[Nothing], &[Nothing, Reuse]);
    check(page(TAIL | OWN), &[Nothing], &[Nothing, Reuse]);
    // After a fork, the mark is still missing, although no other process maps the page.
    check(page(HEAD), &[Nothing], &[Reuse]);
}

/// The kernel reuses no page of a large folio while another process maps any of it.
#[test]
fn a_write_to_a_large_folio_that_a_child_still_maps() {
    let left = |flags, shared| AccessFacts { is_folio_shared: shared, ..present(flags, 1) };
    check(left(HEAD, true), &[Nothing], &[Copy]);
    check(left(HEAD, false), &[Nothing], &[Reuse, Copy]);
    check(left(TAIL, true), &[Nothing], &[Copy, Nothing]);
    check(left(TAIL | OWN, true), &[Nothing], &[Nothing, Copy]);
    check(left(HEAD | OWN, true), &[Nothing], &[Nothing]);
    let by_one_entry = AccessFacts { huge: Some(true), ..left(TAIL, true) };
    check(by_one_entry, &[Nothing], &[Copy]);
}

/// Pages that a driver has inserted are not mapped again by a fault. Of some drivers it is unknown whether they map
/// pages at a fault.
#[test]
fn memory_of_drivers_and_secret_memory() {
    let of = |kind| AccessFacts { permissions: Some(SHARED), ..page(State::Present, kind) };
    for kind in [Kind::DriverMemory, Kind::Secret] {
        check(of(kind), &[Nothing], &[Nothing]);
        // A private mapping has its own copies.
        check(AccessFacts { permissions: Some(RW), ..of(kind) }, &[Nothing], &[Copy]);
    }
    let missing = |kind, driver_fills| AccessFacts { state: State::Untouched, driver_fills, ..of(kind) };
    for (fills, effects) in [(Some(true), &[Map][..]), (Some(false), &[NoDriverPage]), (None, &[NoDriverPage, Map])] {
        check(missing(Kind::DriverMemory, fills), effects, effects);
    }
    check(missing(Kind::Secret, None), &[MapCached, Zeros], &[MapCached, Zeros]);
}
