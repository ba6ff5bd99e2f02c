//! The owner of a page and the outcome of the next access, decided without I/O from the known facts.

mod facts;

use super::classify::Backing;
use crate::kernel::{Kind, Permissions, State};
use crate::process::BackingContent;
use crate::report::{AccessOutcome, Effect, Owner};
use facts::AnonExclusive;
pub use facts::{AccessFacts, Charge, Room};

/// An access by a thread of the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
}

/// The reasons why the owner of a page is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OwnerUnknown {
    /// No page is mapped.
    NoPage,
    /// The kind of the page is unknown.
    Kind,
    /// It is unknown whether the page has other mappings.
    Exclusive,
    /// The page is in the swap cache, and another process may share its swap slot.
    SwapCache,
    /// Only the mark of the first page of the folio is visible (PG_anon_exclusive), and it is not set.
    MarkOfFolio,
}

/// Returns the owner of a page, or why it is unknown.
pub fn owner(facts: &AccessFacts) -> Result<Owner, OwnerUnknown> {
    if facts.state != State::Present {
        return Err(OwnerUnknown::NoPage);
    }
    Ok(match facts.kind.ok_or(OwnerUnknown::Kind)? {
        Kind::Zero | Kind::HugeZero | Kind::Vdso => Owner::Kernel,
        Kind::Ksm => Owner::Merged,
        Kind::DeviceMemory => Owner::Device,
        Kind::DriverMemory => Owner::Driver,
        Kind::Hugetlb if facts.is_of_object => Owner::Object,
        Kind::Anonymous | Kind::PrivateCopy | Kind::Hugetlb => {
            let exclusive = facts.exclusive.ok_or(OwnerUnknown::Exclusive)?;
            match (exclusive, facts.anon_exclusive()) {
                (false, _) => Owner::CopyOnWrite,
                (true, AnonExclusive::No | AnonExclusive::Unknown) if facts.is_in_swap_cache() => {
                    return Err(OwnerUnknown::SwapCache);
                }
                // The page itself may be exclusive or not.
                (true, AnonExclusive::OfFolio(false)) => return Err(OwnerUnknown::MarkOfFolio),
                (true, AnonExclusive::No) => Owner::LeftOver,
                (true, AnonExclusive::Yes | AnonExclusive::OfFolio(true) | AnonExclusive::Unknown) => Owner::Sole,
            }
        }
        _ => Owner::Object,
    })
}

fn is_permitted(permissions: Permissions, access: Access) -> bool {
    match access {
        Access::Write => permissions.write,
        // A page-table entry that permits writes permits reads.
        Access::Read => permissions.read || permissions.write,
    }
}

/// Returns the outcome of an access to an address in no region.
fn outside(stack_grows: Option<bool>) -> AccessOutcome {
    AccessOutcome::of(match stack_grows {
        Some(true) => &[Effect::StackGrows],
        Some(false) => &[Effect::NoRegion],
        None => &[Effect::NoRegion, Effect::StackGrows],
    })
}

/// Returns the outcome of an access if the permissions alone decide it.
pub fn without_page(permissions: Option<Permissions>, access: Access) -> Option<AccessOutcome> {
    let Some(permissions) = permissions else {
        return Some(outside(None));
    };
    let may_pass =
        permissions.is_unknown || is_permitted(permissions, access) || access == Access::Read && permissions.execute;
    (!may_pass).then(|| AccessOutcome::of(&[Effect::Protection]))
}

/// Returns the outcome of an access.
pub fn outcome(facts: &AccessFacts, access: Access) -> AccessOutcome {
    let Some(permissions) = facts.permissions else {
        return outside(facts.stack_grows);
    };
    if is_permitted(permissions, access) {
        let mut outcome = permitted_outcome(facts, permissions, access);
        if access == Access::Write && !permissions.shared {
            outcome = perhaps_copied(outcome);
        }
        if is_charged(&outcome, access, facts.kind) {
            outcome.effects.extend(match facts.charge {
                Charge::Passes => None,
                Charge::MayKill => Some(Effect::OutOfMemory),
                Charge::MayWait => Some(Effect::WaitForMemory),
            });
        }
        // The processor checks the key before the kernel looks for the page (access_error in arch/x86/mm/fault.c).
        if facts.has_key {
            outcome.effects.push(Effect::ProtectionKey);
        }
        return outcome;
    }
    // Memory that is only executable. With protection keys, or on arm64, the processor refuses a load; x86-64 without
    // such keys permits it. A [vsyscall] that is only executable has no page: the kernel emulates jumps to it, and
    // nothing else.
    if access == Access::Read && permissions.execute && facts.state != State::Outside {
        let mut outcome = permitted_outcome(facts, permissions, access);
        if facts.reads_code != Some(true) {
            outcome.effects.insert(0, Effect::Protection);
        }
        return outcome;
    }
    AccessOutcome::of(&[Effect::Protection])
}

/// Returns whether an access with this outcome may charge a page to the memory cgroup of the process. Pages of the
/// hugetlb pool and zero pages are charged to no memory cgroup, and pages in the page cache were charged before.
pub fn is_charged(outcome: &AccessOutcome, access: Access, kind: Option<Kind>) -> bool {
    let is_new = |effect: &Effect| match effect {
        Effect::Zeros | Effect::HugeZeros => {
            access == Access::Write || matches!(kind, Some(Kind::Shmem | Kind::Secret))
        }
        Effect::StackGrows => access == Access::Write,
        Effect::Copy | Effect::ReadFile | Effect::SwapIn => true,
        _ => false,
    };
    kind != Some(Kind::Hugetlb) && (outcome.copies != Some(false) || outcome.effects.iter().any(is_new))
}

/// Makes it unknown whether a write copies, if the page comes back from swap: another process may share it since a
/// fork, which the page map does not show.
fn perhaps_copied(outcome: AccessOutcome) -> AccessOutcome {
    let comes_back = [Effect::SwapIn, Effect::FromDevice, Effect::Wait];
    let may = outcome.copies == Some(false) && comes_back.iter().any(|effect| outcome.effects.contains(effect));
    AccessOutcome { copies: outcome.copies.filter(|_| !may), ..outcome }
}

fn permitted_outcome(facts: &AccessFacts, permissions: Permissions, access: Access) -> AccessOutcome {
    if !facts.is_state_certain {
        return AccessOutcome::of(match facts.state {
            // Most likely this is only the marker. Otherwise the page is swapped or migrating.
            State::UffdWp => {
                let marker = AccessFacts { is_state_certain: true, ..*facts };
                let mut outcome = permitted_outcome(&marker, permissions, access);
                outcome.effects.extend([Effect::SwapIn, Effect::Wait]);
                return outcome;
            }
            // Most likely the entry is empty, but the page map shows other entries of hugetlb pages so too.
            State::Untouched => {
                let mut outcome = fill_outcome(facts, permissions, access);
                outcome.effects.extend([Effect::Poisoned, Effect::Wait]);
                return outcome;
            }
            State::Poisoned if facts.backing == Some(Backing::Hugetlb) => {
                &[Effect::Poisoned, Effect::Wait, Effect::Hwpoison]
            }
            State::Swapped => &[Effect::SwapIn, Effect::Wait, Effect::Poisoned],
            State::Migrating => &[Effect::Wait, Effect::Hwpoison, Effect::FromDevice],
            _ => &[Effect::Poisoned, Effect::Wait, Effect::FromDevice],
        });
    }
    match (facts.state, access) {
        (State::Present, Access::Read) | (State::Outside, _) => AccessOutcome::of(&[Effect::Nothing]),
        (State::Present, Access::Write) => under_write_protection(facts, write_outcome(facts, permissions)),
        (State::Untouched, _) | (State::UffdWp, Access::Read) => fill_outcome(facts, permissions, access),
        (State::UffdWp, Access::Write) => match facts.write_tracked {
            Some(true) => fill_outcome(facts, permissions, access),
            Some(false) => AccessOutcome::of(&[Effect::Notify]),
            None => {
                let mut outcome = fill_outcome(facts, permissions, access);
                outcome.effects.insert(0, Effect::Notify);
                outcome
            }
        },
        (State::Swapped, Access::Write) if facts.uffd_wp && facts.write_tracked != Some(true) => {
            AccessOutcome::of(match facts.write_tracked {
                Some(_) => &[Effect::Notify],
                None => &[Effect::Notify, Effect::SwapIn],
            })
        }
        (State::Swapped, _) => AccessOutcome::of(&[Effect::SwapIn]),
        (State::Guard, _) => AccessOutcome::of(&[Effect::Guard]),
        (State::Poisoned, _) => AccessOutcome::of(&[Effect::Poisoned]),
        (State::Hwpoison, _) => AccessOutcome::of(&[Effect::Hwpoison]),
        (State::Migrating, _) => AccessOutcome::of(&[Effect::Wait]),
        (State::Device, _) => AccessOutcome::of(&[Effect::FromDevice]),
        (State::PfnMapped, _) if facts.may_lack_page => {
            AccessOutcome::of(&[Effect::Nothing, Effect::Map, Effect::NoKernelPage])
        }
        (State::PfnMapped, _) if facts.backing == Some(Backing::Kernel) => {
            AccessOutcome::of(&[Effect::Nothing, Effect::Map])
        }
        // If an entry is missing or not yet writable, the driver decides (`fault` and `pfn_mkwrite`).
        (State::PfnMapped, _) => AccessOutcome::of(&[Effect::Nothing, Effect::Map, Effect::DriverRefuses]),
        (State::Unmapped, _) => AccessOutcome::of(&[Effect::NoRegion]),
    }
}

/// Returns the outcome of an access to a page that is not mapped.
fn fill_outcome(facts: &AccessFacts, permissions: Permissions, access: Access) -> AccessOutcome {
    if let Some(effects) = userfault_effects(facts) {
        return AccessOutcome::of(effects);
    }
    let effects: &[Effect] = match (facts.kind, facts.content) {
        (Some(Kind::Anonymous), _) => zero_effects(facts),
        (Some(Kind::Hugetlb), content) => pool_effects(facts, content),
        (Some(Kind::Cached), _) => &[Effect::MapCached],
        (Some(Kind::NotCached), _) => &[Effect::ReadFile],
        (Some(Kind::MaybeSwapped), _) => &[Effect::SwapIn],
        (Some(Kind::PastEnd), _) => return AccessOutcome::of(&[Effect::PastEnd]),
        // The first access to a hole, even a read, takes a page of the file system (shmem_inode_acct_blocks in
        // mm/shmem.c).
        (Some(Kind::Shmem), Some(BackingContent::Hole)) if facts.room == Room::None => &[Effect::NoSpace],
        (Some(Kind::Shmem), None) if facts.room == Room::None => &[Effect::MapCached, Effect::NoSpace, Effect::SwapIn],
        (Some(Kind::Shmem), Some(BackingContent::Hole)) => zero_effects(facts),
        (Some(Kind::Shmem), _) => &[Effect::MapCached, Effect::Zeros, Effect::SwapIn],
        (Some(Kind::File), _) => &[Effect::MapCached, Effect::ReadFile],
        // The kernel does not show which pages secret memory has.
        (Some(Kind::Secret), _) => &[Effect::MapCached, Effect::Zeros],
        (Some(Kind::DriverMemory), _) => match facts.driver_fills {
            Some(true) => &[Effect::Map],
            Some(false) => &[Effect::NoDriverPage],
            None => &[Effect::NoDriverPage, Effect::Map],
        },
        _ if facts.may_lack_page => &[Effect::Map, Effect::NoKernelPage],
        _ => &[Effect::Map],
    };
    let of_object = match (facts.backing, facts.content) {
        (Some(Backing::File | Backing::Shmem | Backing::Driver | Backing::Secret), _) => Some(true),
        // Before the first write, a private mapping of hugetlb pages maps those of the file.
        (Some(Backing::Hugetlb), Some(BackingContent::Contents { .. })) => Some(true),
        (Some(Backing::Hugetlb), None) => None,
        _ => Some(false),
    };
    let mut effects = effects.to_vec();
    let may_be_hole = matches!(facts.content, None | Some(BackingContent::Hole));
    let may_lack_room = match facts.kind {
        Some(Kind::Shmem) => may_be_hole && facts.room == Room::Unknown,
        Some(Kind::Hugetlb) => may_be_hole && facts.room != Room::Enough,
        _ => access == Access::Write && permissions.shared && facts.backing == Some(Backing::File),
    };
    if may_lack_room && facts.room != Room::Enough && !effects.contains(&Effect::NoSpace) {
        effects.push(Effect::NoSpace);
    }
    // A refused access copies nothing.
    let may_copy = access == Access::Write && !permissions.shared && effects.iter().any(|effect| !effect.is_refusal());
    AccessOutcome { effects, copies: if may_copy { of_object } else { Some(false) } }
}

/// Returns the effects that map a zero page, or a huge one if the settings permit it and one is free.
fn zero_effects(facts: &AccessFacts) -> &'static [Effect] {
    match facts.huge_may_come {
        Some(false) => &[Effect::Zeros],
        Some(true) => &[Effect::HugeZeros, Effect::Zeros],
        None => &[Effect::Zeros, Effect::HugeZeros],
    }
}

/// Returns the effects that map a page of the hugetlb pool: that of the file, or a new one.
fn pool_effects(facts: &AccessFacts, content: Option<BackingContent>) -> &'static [Effect] {
    use Effect::{MapCached, NoSpace, PastEnd, PoolEmpty, PoolLimit, Zeros};
    // Reserved pages already count as used in the mount (hugepage_subpool_get_pages in mm/hugetlb.c).
    let is_refused = facts.room == Room::None && facts.pool_may_be_reserved == Some(false);
    match content {
        Some(BackingContent::Hole) if is_refused => return &[NoSpace],
        None if is_refused => return &[NoSpace, MapCached],
        // Reserved pages are charged only when they are used (hugetlb_cgroup_charge_cgroup in mm/hugetlb_cgroup.c).
        Some(BackingContent::Hole) if facts.pool_limit_is_reached => return &[PoolLimit],
        None if facts.pool_limit_is_reached => return &[PoolLimit, MapCached],
        _ => {}
    }
    let spare = facts.pool_has_spare == Some(true);
    let may_be_reserved = facts.pool_may_be_reserved != Some(false);
    match (content, spare, may_be_reserved) {
        (Some(BackingContent::PastEnd), ..) => &[PastEnd],
        (Some(BackingContent::Contents { .. }), ..) => &[MapCached],
        (Some(BackingContent::Hole), true, _) => &[Zeros],
        // This mapping may have a reserved page, which is not visible.
        (Some(BackingContent::Hole), false, true) => &[Zeros, PoolEmpty],
        (Some(BackingContent::Hole), false, false) => &[PoolEmpty, Zeros],
        (None, true, _) => &[Zeros, MapCached],
        (None, false, true) => &[Zeros, MapCached, PoolEmpty],
        (None, false, false) => &[PoolEmpty, MapCached, Zeros],
    }
}

/// Returns the effects of a fault that a userfaultfd gets; `None` if it gets none. A fault on a page that the object
/// has, in swap or not, is "minor"; any other is "missing" (shmem_get_folio_gfp in mm/shmem.c, hugetlb_no_page in
/// mm/hugetlb.c).
fn userfault_effects(facts: &AccessFacts) -> Option<&'static [Effect]> {
    use Effect::{MapCached, Notify, SwapIn, Zeros};
    let missing = facts.uffd_missing == Some(true);
    let minor = facts.uffd_minor == Some(true);
    match (facts.kind?, facts.content) {
        (Kind::Anonymous, _) | (Kind::Shmem | Kind::Hugetlb, Some(BackingContent::Hole)) if missing => Some(&[Notify]),
        (Kind::Cached | Kind::MaybeSwapped, _) | (Kind::Hugetlb, Some(BackingContent::Contents { .. })) if minor => {
            Some(&[Notify])
        }
        // The backing content is unknown.
        (Kind::Shmem | Kind::Hugetlb, None) if missing && minor => Some(&[Notify]),
        (Kind::Shmem | Kind::Hugetlb, None) if minor => Some(&[Notify, Zeros]),
        (Kind::Shmem, None) if missing => Some(&[Notify, MapCached, SwapIn]),
        (Kind::Hugetlb, None) if missing => Some(&[Notify, MapCached]),
        _ => None,
    }
}

/// Returns the outcome of a write under userfaultfd write protection. `then` is the outcome without it.
fn under_write_protection(facts: &AccessFacts, then: AccessOutcome) -> AccessOutcome {
    if !facts.uffd_wp {
        return then;
    }
    if facts.write_tracked == Some(false) {
        return AccessOutcome::of(&[Effect::Notify]);
    }
    // The fault continues as if the page were not protected (do_wp_page in mm/memory.c): a new page replaces the zero
    // page.
    let is_zeros = |effect: &Effect| matches!(effect, Effect::Zeros | Effect::HugeZeros);
    let mut effects: Vec<Effect> = then.effects.iter().copied().filter(is_zeros).collect();
    if effects.len() < then.effects.len() {
        effects.insert(0, Effect::Unprotect);
    }
    if facts.write_tracked.is_none() {
        effects.push(Effect::Notify);
    }
    AccessOutcome { effects, copies: then.copies }
}

/// Returns the outcome of a write to a mapped page in a writable region.
fn write_outcome(facts: &AccessFacts, permissions: Permissions) -> AccessOutcome {
    use Effect::{Copy, HugeZeros, Nothing, Reuse, Zeros};
    let shared = permissions.shared;
    let outcome = AccessOutcome::of(match facts.kind {
        // Since Linux 6.12, a new huge page replaces the huge zero page if one is free (do_huge_zero_wp_pmd in
        // mm/huge_memory.c).
        Some(Kind::HugeZero) if facts.kernel >= (6, 12) => &[HugeZeros, Zeros],
        Some(Kind::Zero | Kind::HugeZero) => &[Zeros],
        Some(Kind::Ksm) => &[Copy],
        // Most file systems want a fault at the first write to a clean page (page_mkwrite): its write-back has
        // write-protected it in all mappings (page_mkclean). The write that made it dirty may have been through another
        // mapping.
        Some(Kind::File) if shared && facts.is_dirty == Some(true) => &[Nothing, Reuse],
        Some(Kind::File) if shared => &[Reuse, Nothing],
        Some(Kind::Shmem | Kind::Hugetlb | Kind::DriverMemory | Kind::Secret) if shared => &[Nothing],
        Some(Kind::File | Kind::Shmem) => &[Copy],
        Some(Kind::Hugetlb) if facts.is_of_object => pool_copy_effects(facts),
        Some(Kind::Hugetlb) if facts.exclusive == Some(false) => pool_copy_effects(facts),
        Some(Kind::Anonymous | Kind::PrivateCopy | Kind::Hugetlb) => match facts.exclusive {
            Some(false) => &[Copy],
            None => &[Nothing, Reuse, Copy],
            // A read maps a hugetlb page write-protected. The first write faults and reuses the page (hugetlb_wp in
            // mm/hugetlb.c).
            Some(true) if facts.kind == Some(Kind::Hugetlb) => match facts.anon_exclusive() {
                AnonExclusive::No => &[Reuse],
                _ => &[Nothing, Reuse],
            },
            Some(true) => match facts.anon_exclusive() {
                AnonExclusive::Yes => &[Nothing],
                // The page is copied if another process maps any page of the folio (__wp_can_reuse_large_anon_folio in
                // mm/memory.c; kernels before it copy too).
                AnonExclusive::Unknown | AnonExclusive::OfFolio(true) if facts.is_folio_shared => &[Nothing, Copy],
                AnonExclusive::OfFolio(false) if facts.is_folio_shared => &[Copy, Nothing],
                AnonExclusive::No if facts.is_folio_shared => &[Copy],
                AnonExclusive::Unknown | AnonExclusive::OfFolio(true) => &[Nothing, Reuse, Copy],
                AnonExclusive::OfFolio(false) => &[Reuse, Copy, Nothing],
                // A page in the swap cache is copied if another process has its swap slot (wp_can_reuse_anon_folio in
                // mm/memory.c).
                AnonExclusive::No if facts.is_large() || facts.is_in_swap_cache() => &[Reuse, Copy],
                AnonExclusive::No => &[Reuse],
            },
        },
        Some(Kind::DeviceMemory) => &[Nothing],
        None => &[Copy, Zeros],
        Some(_) => &[Copy],
    });
    let mut outcome = unless_protected(facts, outcome);
    // The file system allocates the block of a hole at the first write (page_mkwrite).
    let notices_write = shared && facts.kind == Some(Kind::File) && outcome.effects.contains(&Reuse);
    if notices_write && facts.room != Room::Enough {
        outcome.effects.push(Effect::NoSpace);
    }
    outcome
}

/// Returns the effects of a write that copies a hugetlb page. If the pool is empty, the mapping that has reserved the
/// pages takes the page from other mappings; a write through another mapping fails (hugetlb_wp in mm/hugetlb.c).
fn pool_copy_effects(facts: &AccessFacts) -> &'static [Effect] {
    match facts.pool_has_spare {
        _ if facts.pool_limit_is_reached => &[Effect::PoolLimit, Effect::Copy, Effect::Reuse],
        Some(true) => &[Effect::Copy],
        _ => &[Effect::Copy, Effect::Reuse, Effect::PoolEmpty],
    }
}

/// Adds to the outcome that the page-table entry is write-protected, if it may be: then a write faults and makes the
/// page writable in place.
fn unless_protected(facts: &AccessFacts, mut outcome: AccessOutcome) -> AccessOutcome {
    use Effect::{Nothing, Reuse};
    let nothing = outcome.effects.iter().position(|&effect| effect == Nothing);
    let Some(at) = nothing.filter(|_| facts.is_writable != Some(true)) else {
        return outcome;
    };
    if !outcome.effects.contains(&Reuse) {
        outcome.effects.insert(at + 1, Reuse);
    }
    if facts.is_writable == Some(false) {
        outcome.effects.remove(at);
    }
    AccessOutcome::of(&outcome.effects)
}

#[cfg(test)]
mod tests;
