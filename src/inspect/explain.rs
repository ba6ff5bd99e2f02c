//! `explain`: gathers what decides about the next access, beside what is known of the page anyhow.

use super::detail::PageDetail;
use super::outcome::{self, Access, Facts};
use super::view::View;
use crate::kernel::smaps::Smaps;
use crate::kernel::{Kind, Region, State, VirtualAddress};
use crate::report::{Outcome, Owner};

/// What follows from all that is known of a page.
#[derive(Clone, Debug)]
pub struct Consequences {
    /// Whose it is.
    pub owner: Option<Owner>,
    /// What a read will do.
    pub read: Outcome,
    /// What a write will do.
    pub write: Outcome,
}

impl View<'_> {
    /// What follows from `detail`: whose the page is, and what the target's next accesses will do. Where nothing is mapped,
    /// `smaps` has to be read.
    pub fn consequences(&self, detail: &PageDetail) -> Consequences {
        let viewed = self.region(detail.address);
        let page = &detail.page;
        // Only there does it matter what only smaps tells.
        let smaps = match page.state {
            State::Untouched | State::Unmapped => self.target().process.smaps().ok(),
            _ => None,
        };
        let facts = Facts {
            state: page.state,
            // Of what may be a marker alone, what would be there behind it.
            kind: page.kind.or(viewed
                .filter(|_| page.doubt.is_some())
                .map(|viewed| viewed.backing.kind())),
            permissions: viewed.map(|viewed| viewed.region.permissions),
            backing: viewed.map(|viewed| viewed.backing),
            of_object: page.entry.is_file_or_shared(),
            state_certain: page.doubt.is_none(),
            uffd_wp: page.entry.is_uffd_wp(),
            soft_clean: detail.soft_dirty == Ok(false),
            flags: page.flags,
            map_count: page.map_count,
            exclusive: detail.exclusive.clone().ok(),
            huge: page.huge,
            behind: page.behind,
            write_tracked: detail.write_tracked,
            missing_told: viewed
                .zip(smaps.as_deref())
                .and_then(|(viewed, smaps)| has_flag(smaps, &viewed.region, &["um", "ui"])),
            pool_has_spare: match page.kind {
                Some(Kind::Hugetlb) => self.target().machine.huge_pages_to_spare(),
                _ => None,
            },
            stack_grows: self.stack_grows(detail, smaps.as_deref()),
        };
        Consequences {
            owner: outcome::owner(&facts),
            read: outcome::outcome(&facts, Access::Read),
            write: outcome::outcome(&facts, Access::Write),
        }
    }

    /// Whether a region that grows down would grow to an address in no region (expand_downwards in mm/mmap.c).
    fn stack_grows(&self, detail: &PageDetail, smaps: Option<&[Smaps]>) -> Option<bool> {
        /// Pages that the kernel keeps free below a stack, unless it was started with `stack_guard_gap=`.
        const GAP_PAGES: u64 = 256;
        let (below, above) = detail.nearest.as_ref()?;
        let Some(above) = above else {
            return Some(false);
        };
        let smaps = smaps?;
        if !has_flag(smaps, above, &["gd"])? {
            return Some(false);
        }
        let to = self.page().floor(detail.address);
        let length = above.range.end().get() - to.get();
        let fits = match self.target().process.stack_limit() {
            Ok(limit) => limit.is_none_or(|limit| length <= limit),
            Err(_) => return None,
        };
        let in_the_way = below.as_ref().is_some_and(|below| {
            let rights = below.permissions;
            let accessible = rights.read || rights.write || rights.execute;
            let grows = has_flag(smaps, below, &["gd"]) == Some(true);
            let gap = GAP_PAGES << self.page().shift();
            accessible && !grows && to.get().saturating_sub(below.range.end().get()) < gap
        });
        Some(fits && !in_the_way && to > VirtualAddress::new(0))
    }
}

/// Whether smaps gives `region` one of these flags; `None` when it does not know the region.
fn has_flag(smaps: &[Smaps], region: &Region, codes: &[&str]) -> Option<bool> {
    let start = region.range.start();
    let of_region = smaps.iter().find(|one| one.range.contains(start))?;
    let has = |code: &&str| of_region.vm_flags.iter().any(|flag| flag == code);
    Some(codes.iter().any(has))
}
