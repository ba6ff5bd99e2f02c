//! `explain`: the facts that decide the next access, beyond those of [`PageDetail`].

mod accessed;

use super::address_space::AddressSpace;
use super::classify::KernelBehaviour as _;
use super::detail::PageDetail;
use super::frames::flags_of;
use super::limits::AccessLimits;
use super::outcome::{self, Access, AccessFacts, OwnerUnknown};
use super::page::{Evidence, Page};
use crate::budget::{Budget, OutOfBudget};
use crate::kernel::smaps::Smaps;
use crate::kernel::status::ResourceLimit;
use crate::kernel::{FrameNumber, Kind, PageFlags, PageMapEntry, Region, State, VirtualAddress};
use crate::report::{AccessOutcome, Effect, Fact, Owner, Reason};
use accessed::{AccessedPage, CLEAN, bytes, vm_flag};

/// The owner of a page and the outcome of its next access, with what limits it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Consequences {
    /// The owner of the page.
    pub owner: Result<Owner, OwnerUnknown>,
    /// The outcome of a read.
    pub read: AccessOutcome,
    /// The outcome of a write.
    pub write: AccessOutcome,
    /// Whether the kernel may discard the contents: the program has freed the page with MADV_FREE and has not written
    /// to it since, or the memory is droppable.
    pub discardable: Fact<bool>,
    /// Whether the memory is droppable (MAP_DROPPABLE, Linux 6.11).
    pub is_droppable: bool,
    /// The limits that may refuse an access for lack of room.
    pub limits: AccessLimits,
    /// The protection key of the region, if the machine has such keys.
    pub protection_key: Option<u64>,
    /// Whether the region is locked, if its frame is or may be. If it is not, another mapping of the frame is locked,
    /// for example that of the parent: children do not inherit locks.
    pub region_locked: Option<bool>,
}

impl AddressSpace {
    /// Returns the owner of the page of `detail` and the outcomes of the next accesses by the target. Reads `smaps`
    /// where it decides something.
    ///
    /// # Errors
    /// Fails if the budget is used up.
    pub fn predict_access(&self, detail: &PageDetail, budget: &mut Budget) -> Result<Consequences, OutOfBudget> {
        let accessed = AccessedPage::of(self, detail);
        let (page, is_present) = (&detail.page, detail.page.state() == State::Present);
        let mut limits = AccessLimits::default();
        if let Some(viewed) = accessed.viewed.filter(|_| accessed.is_missing || accessed.is_clean) {
            limits.find_room(self, viewed);
        }
        let smaps = accessed.smaps(budget);
        let mut facts = AccessFacts { room: limits.room(self.page_size()), ..accessed.facts(&smaps, budget) };
        if page.slot.is_some() && page.state() == State::Swapped {
            // The page is not mapped, and the shared memory has it in swap.
            (facts.state, facts.kind) = (State::Untouched, Some(Kind::MaybeSwapped));
        }
        if is_present && outcome::outcome(&facts, Access::Write).effects.contains(&Effect::Nothing) {
            facts.is_writable = self.is_writable(detail, budget);
        }
        let is_droppable = is_present && self.is_droppable(detail, budget);
        let outcomes = [Access::Read, Access::Write].map(|access| (outcome::outcome(&facts, access), access));
        if accessed.kind == Some(Kind::Hugetlb) {
            let bytes = smaps.pool_bytes();
            facts.pool_limit_is_reached = bytes.is_some_and(|bytes| limits.find_pool_limit(self, bytes));
        } else if outcomes.iter().any(|(outcome, access)| outcome::is_charged(outcome, *access, facts.kind)) {
            facts.charge = limits.find_memory_limit(self);
        }
        let [read, write] = [Access::Read, Access::Write].map(|access| outcome::outcome(&facts, access));
        // A page that needs no room does not depend on the room of the file system.
        if ![&read, &write].iter().any(|outcome| outcome.effects.contains(&Effect::NoSpace)) {
            limits.room = Ok(None);
        }
        let consequences = Consequences {
            owner: outcome::owner(&facts),
            read,
            write,
            discardable: if is_droppable { Ok(true) } else { self.discardable(detail, facts.head_flags, budget) },
            is_droppable,
            limits,
            protection_key: smaps.protection_key,
            region_locked: vm_flag(smaps.of_locked, "lo"),
        };
        // Facts are missing if the budget was used up.
        budget.look().map(|()| consequences)
    }

    /// Returns the outcome of an access if the permissions of the region alone decide it.
    pub fn outcome_of_region(&self, address: VirtualAddress, access: Access) -> Option<AccessOutcome> {
        let permissions = self.viewed_region(address).map(|viewed| viewed.region.permissions);
        outcome::without_page(permissions, access)
    }

    /// Returns the smaps of the region at `address`.
    fn smaps_at(&self, address: VirtualAddress, budget: &mut Budget) -> Option<&Smaps> {
        let viewed = self.viewed_region(address)?;
        Smaps::at(self.smaps_within(budget)?, viewed.range().start())
    }

    /// Returns whether the page of `detail` is anonymous memory of a droppable region.
    fn is_droppable(&self, detail: &PageDetail, budget: &mut Budget) -> bool {
        let may_be = detail.page.kind == Some(Kind::Anonymous)
            && detail.page.flags.is_none_or(|flags| !flags.contains(PageFlags::SWAPBACKED));
        may_be && self.smaps_at(detail.address, budget).is_some_and(|smaps| smaps.has_flag("dp"))
    }

    /// Returns whether the kernel may discard the page of `detail` instead of writing it to swap. The flags show
    /// whether the page was freed with MADV_FREE. A later write marks only its entry, until reclaim checks that. smaps
    /// checks it, but only sums it up for the whole region.
    fn discardable(&self, detail: &PageDetail, of_head: Option<PageFlags>, budget: &mut Budget) -> Fact<bool> {
        if detail.page.state() != State::Present {
            return Err(Reason::NotApplicable("no page is mapped here"));
        }
        let flags = detail.flags.clone().map(|flags| of_head.unwrap_or(flags));
        let is_of_object = detail.page.entry.is_file_or_shared();
        if is_of_object || flags.as_ref().is_ok_and(|&flags| !is_unwritten(flags)) {
            return Ok(false);
        }
        // The entries of all mappings decide (try_to_unmap_one in mm/rmap.c), and those of other processes are not
        // visible.
        if flags.is_ok() && detail.exclusive == Ok(false) {
            return Err(Reason::NotOnThisKernel(
                "another mapping of the freed page may have written to it, which the kernel does not show".into(),
            ));
        }
        let of_region = self.smaps_at(detail.address, budget);
        let counted = of_region.and_then(|smaps| smaps.field("LazyFree"));
        if counted == Some(0) {
            return Ok(false);
        }
        flags?;
        let unknown = "smaps does not show how many of the freed pages of the region were written since";
        let unknown = || Reason::NotOnThisKernel(unknown.into());
        let (smaps, counted) = of_region.zip(counted).ok_or_else(unknown)?;
        let mut freed = 0;
        let mut folio = FolioFreed { head_has_all: self.kernel() < (6, 10), last: None };
        let mut swept = self.pages(&[smaps.range], Evidence::FLAGS).with_budget(budget.clone());
        while let Some(chunk) = swept.next().map_err(|_| unknown())? {
            let pages = chunk.pages().filter(|page| folio.is_freed(page));
            freed += pages.map(|page| page.bytes(self.page_size())).sum::<u64>();
        }
        if counted < freed {
            return Err(Reason::NotOnThisKernel(format!(
                "smaps counts {counted} of the {freed} bytes that the program freed in the region as not written since"
            )));
        }
        Ok(true)
    }

    /// Returns whether the page-table entry of the page is writable; `None` if that is unknown. The region must be
    /// writable. Whether the page is shared is not considered.
    fn is_writable(&self, detail: &PageDetail, budget: &mut Budget) -> Option<bool> {
        let page = &detail.page;
        // The clearing of soft-dirty bits skips hugetlb pages (clear_refs_write in fs/proc/task_mmu.c), and they are
        // never swapped.
        if page.kind == Some(Kind::Hugetlb) {
            return Some(true);
        }
        match detail.soft_dirty {
            // The clearing of soft-dirty bits write-protects all entries: the next write sets the bit.
            Ok(false) => return Some(false),
            // After a clearing, entries that are still write-protected may have bit 55 too: those that mremap has
            // moved, and all of a region that was merged with a new neighbour or grown by brk.
            Ok(true) if self.smaps_within(budget).is_none_or(is_soft_dirty_cleared) => return None,
            _ => {}
        }
        if !matches!(page.kind, Some(Kind::Anonymous | Kind::PrivateCopy)) {
            return Some(true);
        }
        // swapoff (unuse_pte in mm/swapfile.c) brings pages back write-protected and dirty. Pages that were never in
        // swap are not dirty. Before Linux 6.11, a read did the same without the dirty mark (do_swap_page in
        // mm/memory.c; changed by c18160dba5ff, "mm: swap: reuse exclusive folio directly instead of wp page faults").
        let is_marked = page.flags.is_some_and(|flags| flags.contains(PageFlags::DIRTY));
        let by_read = self.kernel() < (6, 11) && self.swap_in_use();
        // In that case, entries that are not marked dirty may be of pages that were read and not written.
        let mut is_written = || self.smaps_at(detail.address, budget).and_then(|smaps| bytes(smaps, CLEAN)) == Some(0);
        (!is_marked && (!by_read || is_written())).then_some(true)
    }

    /// Returns `Some(true)` if the processor permits a load from memory that is only executable, in a region with this
    /// key; `None` if that is unknown. x86-64 refuses such loads only by a key (execute_only_pkey in
    /// arch/x86/mm/pkeys.c).
    fn reads_code(&self, protection_key: Option<u64>) -> Option<bool> {
        let machine = &self.target().machine;
        let is_known = cfg!(target_arch = "x86_64") && !machine.is_captured();
        let has_no_key = machine.has_protection_keys() == Some(false) || protection_key == Some(0);
        (is_known && has_no_key).then_some(true)
    }

    /// Returns whether the page is one of those of `[vvar]` that the kernel has only on machines with a time namespace
    /// or the clock of a hypervisor: on others an access is SIGBUS. The first page always exists.
    fn may_lack_page(&self, region: &Region, address: VirtualAddress) -> bool {
        let is_first = self.page_size().floor(address) == region.range.start();
        match region.name.as_bytes() {
            b"[vvar]" => !is_first,
            name => name.starts_with(b"[vvar"),
        }
    }

    /// Returns the flags of the first page of the folio, if those of the page do not include them (before Linux 6.10).
    fn head_flags(&self, detail: &PageDetail) -> Option<PageFlags> {
        let machine = &self.target().machine;
        let (folio, _) = detail.folio.as_ref().ok()?;
        let is_asked = detail.page.flags?.contains(PageFlags::COMPOUND_TAIL) && self.kernel() < (6, 10);
        is_asked.then(|| flags_of(machine, folio.head).ok())?
    }

    /// Returns whether a page of the large folio is known to have several mappings.
    fn is_folio_shared(&self, detail: &PageDetail) -> bool {
        let Ok((folio, _)) = &detail.folio else {
            return false;
        };
        let pages = usize::try_from(folio.frames()).unwrap_or_default();
        if folio.order == 0 || detail.page.kind == Some(Kind::Hugetlb) || !self.has_exact_counts() {
            return false;
        }
        let mut counts = vec![0; pages];
        let machine = &self.target().machine;
        let read = machine.frame_counts(folio.head, &mut counts).unwrap_or(0);
        counts.iter().take(read).any(|&times| times > 1)
    }

    /// Returns whether the first access may map a transparent huge page. It needs an aligned range of empty entries in
    /// the region (do_huge_pmd_anonymous_page in mm/huge_memory.c), and settings that smaps sums up.
    fn huge_may_come(&self, detail: &PageDetail, budget: &mut Budget) -> Option<bool> {
        let viewed = self.viewed_region(detail.address);
        let stretch = viewed.and_then(|viewed| self.huge_stretch(viewed, detail.address));
        let Some(stretch) = stretch.filter(|_| detail.page.state() == State::Untouched) else {
            return Some(false);
        };
        let pages = usize::try_from(stretch.pages(self.page_size())).ok()?;
        let mut entries = vec![PageMapEntry::default(); pages];
        let first = self.page_size().index(stretch.start());
        let read = self.target().process.entries(first, &mut entries).ok()?;
        let is_empty = |entry: &PageMapEntry| !entry.is_present() && entry.swap().is_none();
        if !entries.iter().take(read).all(is_empty) {
            return Some(false);
        }
        self.smaps_at(stretch.start(), budget)?.may_be_huge
    }

    /// Returns whether a region that grows down would grow to an address in no region (expand_downwards in mm/mmap.c).
    fn stack_grows(&self, detail: &PageDetail, budget: &mut Budget) -> Option<bool> {
        /// The pages that the kernel keeps free below a stack, unless it was booted with another `stack_guard_gap=`.
        const GAP_PAGES: u64 = 256;
        // The page map ends at the end of user space.
        if detail.page.state() == State::Outside {
            return Some(false);
        }
        let (below, above) = detail.nearest.as_ref()?;
        let Some(above) = above else {
            return Some(false);
        };
        let to = self.page_size().floor(detail.address);
        // Only private memory without a file may grow (do_mmap in mm/mmap.c). smaps of many regions take seconds.
        if above.inode != 0 || above.permissions.shared || to == VirtualAddress::new(0) {
            return Some(false);
        }
        let smaps = self.smaps_within(budget)?;
        if !Smaps::flag_at(smaps, above.range.start(), "gd")? {
            return Some(false);
        }
        let length = above.range.end().get() - to.get();
        let fits = match self.target().process.limit(ResourceLimit::Stack) {
            Ok(limit) => limit.is_none_or(|limit| length <= limit),
            Err(_) => return None,
        };
        let in_the_way = below.as_ref().is_some_and(|below| {
            let rights = below.permissions;
            let accessible = rights.read || rights.write || rights.execute;
            let grows = Smaps::flag_at(smaps, below.range.start(), "gd") == Some(true);
            let gap = GAP_PAGES << self.page_size().shift();
            accessible && !grows && to.get().saturating_sub(below.range.end().get()) < gap
        });
        Some(fits && !in_the_way)
    }
}

/// Returns whether the flags are of memory that was freed with MADV_FREE and not written to since. When reclaim finds
/// the page dirty, the kernel makes it swap-backed again (try_to_unmap_one in mm/rmap.c).
fn is_unwritten(flags: PageFlags) -> bool {
    flags.is_lazily_freed() && !flags.contains(PageFlags::DIRTY)
}

/// Finds the freed pages of a region by their flags, in address order.
struct FolioFreed {
    /// Whether only the first page of a folio has the flags of the folio (before Linux 6.10).
    head_has_all: bool,
    /// The frame number after the last page, and whether that page is freed.
    last: Option<(FrameNumber, bool)>,
}

impl FolioFreed {
    fn is_freed(&mut self, page: &Page) -> bool {
        let is_tail = |flags: &PageFlags| self.head_has_all && flags.contains(PageFlags::COMPOUND_TAIL);
        let is_freed = match page.flags {
            // A tail is freed if the page before it in the folio is, or if that page is unknown.
            Some(flags) if is_tail(&flags) => {
                self.last.is_none_or(|(end, is_freed)| is_freed || Some(end) != page.frame())
            }
            flags => flags.is_some_and(is_unwritten),
        };
        let end = page.frame().and_then(|frame| frame.checked_add(page.pages));
        self.last = end.map(|end| (end, is_freed));
        is_freed
    }
}

/// Returns whether the soft-dirty bits of the process were ever cleared. New regions have the flag `sd` and lose it
/// then. Two regions prove nothing: the stack loses it at exec (setup_arg_pages in fs/exec.c), and `[vsyscall]`, in the
/// half of the kernel, never has it.
fn is_soft_dirty_cleared(all: &[Smaps]) -> bool {
    const KERNEL_HALF: VirtualAddress = VirtualAddress::new(1 << 63);
    let tells = |one: &&Smaps| !one.has_flag("gd") && one.range.start() < KERNEL_HALF;
    all.iter().filter(tells).any(|one| !one.has_flag("sd"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::fake::{HUGE, PAGE, World, region};

    /// Where the machine has protection keys, smaps is read for the key of each page.
    #[test]
    fn a_protection_key_is_known_where_the_machine_has_them() {
        for (keys, found) in [([Some(0), Some(3)], Some(3)), ([Some(0), Some(0)], Some(0)), ([None, None], None)] {
            let regions = [region(0x100, 1), region(0x200, 1)];
            let smaps = regions.iter().zip(keys);
            let smaps = smaps.map(|(one, protection_key)| Smaps { protection_key, ..Smaps::of(one.range) }).collect();
            let mut world = World { smaps, ..World::new(regions) };
            world.maps(0x200, 1, 0x700);
            let (_, target) = world.target();
            let (space, detail) = AddressSpace::detail_at(&target, VirtualAddress::new(0x200 * PAGE)).expect("a page");
            let consequences = space.predict_access(&detail, &mut Budget::unlimited()).expect("an answer");
            assert_eq!(target.machine.has_protection_keys(), Some(found.is_some()));
            assert_eq!(consequences.protection_key, found);
            assert_eq!(
                consequences.read.effects.contains(&Effect::ProtectionKey),
                found == Some(3),
                "{consequences:?}"
            );
        }
    }

    /// Nothing leads to the file of the region: its file system may be full. The kernel's own mounts have no limit.
    #[test]
    fn room_that_is_unknown_may_be_none() {
        let device = crate::kernel::Device { major: 0, minor: 30 };
        for (mounted, may_lack_room) in [(Some(device), true), (None, false)] {
            let mut region = region(0x200, 4);
            region.permissions.shared = true;
            (region.device, region.inode, region.name) = (device, 7, "/mnt/file".into());
            let shared_memory = (mounted.is_none()).then_some(device);
            let (_, target) = World { tmpfs: mounted, shared_memory, ..World::new([region]) }.target();
            let (space, detail) = AddressSpace::detail_at(&target, VirtualAddress::new(0x201 * PAGE)).expect("a page");
            let consequences = space.predict_access(&detail, &mut Budget::unlimited()).expect("an answer");
            assert_eq!(consequences.read.effects.contains(&Effect::NoSpace), may_lack_room, "{consequences:?}");
            assert_eq!(consequences.limits.room.is_err(), may_lack_room);
        }
    }

    /// Before Linux 6.10, /proc/kpageflags shows the flags of a folio only for its head.
    #[test]
    fn a_tail_is_freed_as_its_head_is() {
        for (release, pages_counted, expected) in
            [("6.1.0", HUGE, Some(true)), ("6.1.0", 9, None), ("6.1.0", 0, Some(false)), ("6.18.0", HUGE, Some(false))]
        {
            let region = region(0x200, HUGE);
            let fields = vec![("LazyFree".to_owned(), pages_counted * PAGE)];
            let smaps = vec![Smaps { fields, ..Smaps::of(region.range) }];
            let mut world = World { smaps, release, ..World::new([region]) };
            world.maps_huge(0x200, 0x8000);
            *world.flags.get_mut(&0x8000).expect("a head") |= PageFlags::LRU.bits();
            let (_, target) = world.target();
            let (space, detail) = AddressSpace::detail_at(&target, VirtualAddress::new(0x207 * PAGE)).expect("a page");
            let consequences = space.predict_access(&detail, &mut Budget::unlimited()).expect("an answer").discardable;
            assert_eq!(consequences.clone().ok(), expected, "{release} {pages_counted}: {consequences:?}");
        }
    }
}
