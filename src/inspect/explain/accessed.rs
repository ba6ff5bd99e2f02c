//! The facts about a page that decide the outcome of the next access.

use super::super::address_space::AddressSpace;
use super::super::detail::PageDetail;
use super::super::limits::{AccessLimits, PoolRoom};
use super::super::outcome::{AccessFacts, Charge};
use super::super::region::ViewedRegion;
use crate::budget::Budget;
use crate::kernel::smaps::Smaps;
use crate::kernel::{Kind, PageFlags, State};

/// A page whose next access is predicted.
pub(super) struct AccessedPage<'a> {
    space: &'a AddressSpace,
    detail: &'a PageDetail,
    pub(super) viewed: Option<&'a ViewedRegion>,
    /// The kind of the page. If the entry may be only a marker, it is the kind of a new page there.
    pub(super) kind: Option<Kind>,
    /// Whether an access fills the page.
    pub(super) is_missing: bool,
    /// Whether the page is of a file, and a write would make it dirty.
    pub(super) is_clean: bool,
}

/// The parts of smaps that decide something, each of the region of the page.
pub(super) struct DecidingSmaps<'a> {
    pub(super) protection_key: Option<u64>,
    of_missing: Option<&'a Smaps>,
    of_pool: Option<&'a Smaps>,
    of_file: Option<&'a Smaps>,
    pub(super) of_locked: Option<&'a Smaps>,
}

impl DecidingSmaps<'_> {
    /// Returns the size in bytes of the pages of the hugetlb pool.
    pub(super) fn pool_bytes(&self) -> Option<u64> {
        self.of_pool?.field("KernelPageSize")
    }
}

/// Returns whether a region has this code in `VmFlags`; `None` without smaps.
pub(super) fn vm_flag(smaps: Option<&Smaps>, code: &str) -> Option<bool> {
    Some(smaps?.has_flag(code))
}

impl<'a> AccessedPage<'a> {
    pub(super) fn of(space: &'a AddressSpace, detail: &'a PageDetail) -> Self {
        let viewed = space.viewed_region(detail.address);
        let page = &detail.page;
        let kind = page.kind.or(viewed.filter(|_| !page.states.is_certain()).map(|viewed| viewed.backing.kind()));
        let permissions = viewed.map(|viewed| viewed.region.permissions);
        AccessedPage {
            space,
            detail,
            viewed,
            kind,
            is_missing: matches!(page.state(), State::Untouched | State::UffdWp) || page.slot.is_some(),
            is_clean: page.state() == State::Present
                && kind == Some(Kind::File)
                && permissions.is_some_and(|permissions| permissions.shared && permissions.write)
                && !page.flags.is_some_and(|flags| flags.contains(PageFlags::DIRTY)),
        }
    }

    /// Reads the parts of smaps that decide something.
    pub(super) fn smaps(&self, budget: &mut Budget) -> DecidingSmaps<'a> {
        let (space, detail) = (self.space, self.detail);
        let mut smaps_if = |decides: bool| if decides { space.smaps_at(detail.address, budget) } else { None };
        let has_keys = space.target().machine.has_protection_keys() != Some(false);
        let is_present = detail.page.state() == State::Present;
        let has_locked = || space.target().process.locked_bytes().is_some_and(|bytes| bytes > 0);
        let may_be_locked = detail.page.flags.map_or_else(has_locked, |flags| flags.contains(PageFlags::MLOCKED));
        DecidingSmaps {
            protection_key: smaps_if(has_keys).and_then(|smaps| smaps.protection_key),
            of_missing: smaps_if(self.is_missing),
            of_pool: smaps_if(self.kind == Some(Kind::Hugetlb)),
            of_file: smaps_if(self.is_clean),
            of_locked: smaps_if(is_present && may_be_locked),
        }
    }

    /// Returns the facts that decide the next access. Those on limits, and whether the page is writable, are still
    /// unknown.
    pub(super) fn facts(&self, smaps: &DecidingSmaps, budget: &mut Budget) -> AccessFacts {
        let AccessedPage { space, detail, viewed, kind, .. } = *self;
        let page = &detail.page;
        let pool = viewed.zip(smaps.pool_bytes()).map(|(viewed, bytes)| PoolRoom::of(space, viewed, bytes));
        AccessFacts {
            state: page.state(),
            kind,
            permissions: viewed.map(|viewed| viewed.region.permissions),
            backing: viewed.map(|viewed| viewed.backing),
            is_of_object: page.entry.is_file_or_shared(),
            is_state_certain: page.states.is_certain(),
            uffd_wp: page.entry.is_uffd_wp(),
            is_writable: None,
            is_dirty: is_dirty(page.flags, smaps.of_file),
            has_key: smaps.protection_key.is_some_and(|key| key != 0),
            reads_code: space.reads_code(smaps.protection_key),
            may_lack_page: viewed.is_some_and(|viewed| space.may_lack_page(&viewed.region, detail.address)),
            flags: page.flags,
            head_flags: space.head_flags(detail),
            kernel: space.kernel(),
            exclusive: detail.exclusive.clone().ok(),
            huge: page.huge,
            content: page.content,
            write_tracked: detail.write_tracked,
            uffd_missing: vm_flag(smaps.of_missing, "um"),
            uffd_minor: vm_flag(smaps.of_missing, "ui"),
            pool_has_spare: pool.filter(|_| page.kind.is_some()).and_then(|pool| pool.has_spare),
            // A reserved page on a node that the thread may not use is of no use.
            pool_may_be_reserved: vm_flag(smaps.of_pool, "nr")
                .map(|without| !without && pool.is_none_or(|pool| pool.is_reserve_in_reach)),
            is_folio_shared: space.is_folio_shared(detail),
            huge_may_come: space.huge_may_come(detail, budget),
            stack_grows: space.stack_grows(detail, budget),
            room: AccessLimits::default().room(space.page_size()),
            charge: Charge::Passes,
            pool_limit_is_reached: false,
            driver_fills: viewed.and_then(ViewedRegion::fills_at_fault),
        }
    }
}

/// The fields of smaps that sum up to the clean bytes. A page is dirty if its entry or its frame is marked dirty.
pub(super) const CLEAN: [&str; 2] = ["Private_Clean", "Shared_Clean"];
const DIRTY: [&str; 2] = ["Private_Dirty", "Shared_Dirty"];

pub(super) fn bytes(smaps: &Smaps, fields: [&str; 2]) -> Option<u64> {
    let [one, other] = fields.map(|field| smaps.field(field));
    Some(one?.saturating_add(other?))
}

/// Returns whether a page of a file is dirty, by the flags of its frame, or if all or no pages of its region are. Only
/// the entries of memory that is never written back (memfd_secret) show that it is dirty.
fn is_dirty(flags: Option<PageFlags>, of_region: Option<&Smaps>) -> Option<bool> {
    let counts = of_region.and_then(|region| Some((bytes(region, CLEAN)?, bytes(region, DIRTY)?)));
    let of_region = match counts {
        Some((_, 0)) => Some(false),
        Some((0, _)) => Some(true),
        _ => None,
    };
    match flags.map(|flags| flags.contains(PageFlags::DIRTY)) {
        Some(false) if of_region != Some(true) => Some(false),
        Some(true) => Some(true),
        _ => of_region,
    }
}
