//! `explain`: gathers the facts that decide the next access, beyond those of [`PageDetail`].

use super::detail::PageDetail;
use super::frames::flags_of;
use super::outcome::{self, Access, AccessFacts, OwnerUnknown};
use super::view::View;
use crate::kernel::smaps::Smaps;
use crate::kernel::{Kind, PageFlags, PageMapEntry, Region, State, VirtualAddress};
use crate::report::{Outcome, Owner};

/// What follows from all that is known of a page.
#[derive(Clone, Debug)]
pub struct Consequences {
    /// Whose it is.
    pub owner: Result<Owner, OwnerUnknown>,
    /// What a read will do.
    pub read: Outcome,
    /// What a write will do.
    pub write: Outcome,
}

impl View<'_> {
    /// What follows from `detail`: whose the page is, and what the target's next accesses will do. Where nothing is
    /// mapped, it reads `smaps`, unless `go_on` says no: then the result is incomplete, and must be dropped.
    pub fn consequences(&self, detail: &PageDetail, go_on: &mut dyn FnMut() -> bool) -> Consequences {
        let viewed = self.region(detail.address);
        let page = &detail.page;
        // The facts in smaps matter only there.
        let smaps = match (page.state(), page.kind) {
            (State::Untouched | State::UffdWp | State::Unmapped, _) | (_, Some(Kind::Hugetlb)) => {
                self.target().process.smaps(go_on).ok()
            }
            _ => None,
        };
        let of_region = viewed.zip(smaps.as_deref());
        let vm_flag = |code: &str| of_region.and_then(|(viewed, smaps)| has_flag(smaps, &viewed.region, code));
        let machine = &self.target().machine;
        let facts = AccessFacts {
            state: page.state(),
            // If the entry may be only a marker: the kind that a page would have there.
            kind: page.kind.or(viewed.filter(|_| !page.states.is_certain()).map(|viewed| viewed.backing.kind())),
            permissions: viewed.map(|viewed| viewed.region.permissions),
            backing: viewed.map(|viewed| viewed.backing),
            of_object: page.entry.is_file_or_shared(),
            state_certain: page.states.is_certain(),
            uffd_wp: page.entry.is_uffd_wp(),
            soft_clean: detail.soft_dirty == Ok(false),
            flags: page.flags,
            head_flags: self.head_flags(detail),
            kernel: self.kernel(),
            exclusive: detail.exclusive.clone().ok(),
            huge: page.huge,
            content: page.content,
            write_tracked: detail.write_tracked,
            uffd_missing: vm_flag("um"),
            uffd_minor: vm_flag("ui"),
            pool_has_spare: match page.kind {
                Some(Kind::Hugetlb) => of_region
                    .and_then(|(viewed, smaps)| Smaps::at(smaps, viewed.range().start()))
                    .and_then(|smaps| smaps.field("KernelPageSize"))
                    .and_then(|bytes| machine.huge_pages_to_spare(bytes)),
                _ => None,
            },
            pool_may_be_reserved: vm_flag("nr").map(|without| !without),
            folio_shared: self.folio_shared(detail),
            huge_may_come: self.huge_may_come(detail, smaps.as_deref()),
            stack_grows: self.stack_grows(detail, smaps.as_deref()),
        };
        Consequences {
            owner: outcome::owner(&facts),
            read: outcome::outcome(&facts, Access::Read),
            write: outcome::outcome(&facts, Access::Write),
        }
    }

    /// The flags of the first page of the folio, if the page's own flags do not include those of its folio (before
    /// Linux 6.10).
    fn head_flags(&self, detail: &PageDetail) -> Option<PageFlags> {
        let machine = &self.target().machine;
        let (folio, _) = detail.folio.as_ref().ok()?;
        let is_asked = detail.page.flags?.contains(PageFlags::COMPOUND_TAIL) && self.kernel() < (6, 10);
        is_asked.then(|| flags_of(machine, folio.head).ok())?
    }

    /// Whether a page of the large folio at `detail` is known to be mapped more than once.
    fn folio_shared(&self, detail: &PageDetail) -> bool {
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

    /// Whether the first access may map a transparent huge page. That takes an empty, aligned stretch of the region
    /// (do_huge_pmd_anonymous_page in mm/huge_memory.c), and settings that smaps sums up.
    fn huge_may_come(&self, detail: &PageDetail, smaps: Option<&[Smaps]>) -> Option<bool> {
        let viewed = self.region(detail.address);
        let stretch = viewed.and_then(|viewed| self.huge_stretch(viewed, detail.address));
        let Some(stretch) = stretch.filter(|_| detail.page.state() == State::Untouched) else {
            return Some(false);
        };
        let pages = usize::try_from(stretch.pages(self.page())).ok()?;
        let mut entries = vec![PageMapEntry::default(); pages];
        let first = self.page().index(stretch.start());
        let read = self.target().process.entries(first, &mut entries).ok()?;
        let is_empty = |entry: &PageMapEntry| !entry.is_present() && entry.swap().is_none();
        if !entries.iter().take(read).all(is_empty) {
            return Some(false);
        }
        Smaps::at(smaps?, stretch.start())?.may_be_huge
    }

    /// Whether a region that grows down would grow to an address in no region (expand_downwards in mm/mmap.c).
    fn stack_grows(&self, detail: &PageDetail, smaps: Option<&[Smaps]>) -> Option<bool> {
        /// Pages that the kernel keeps free below a stack, unless it was started with `stack_guard_gap=`.
        const GAP_PAGES: u64 = 256;
        // The page map ends where user space does.
        if detail.page.state() == State::Outside {
            return Some(false);
        }
        let (below, above) = detail.nearest.as_ref()?;
        let Some(above) = above else {
            return Some(false);
        };
        let smaps = smaps?;
        if !has_flag(smaps, above, "gd")? {
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
            let grows = has_flag(smaps, below, "gd") == Some(true);
            let gap = GAP_PAGES << self.page().shift();
            accessible && !grows && to.get().saturating_sub(below.range.end().get()) < gap
        });
        Some(fits && !in_the_way && to > VirtualAddress::new(0))
    }
}

/// Whether smaps gives `region` this flag; `None` when it does not know the region.
fn has_flag(smaps: &[Smaps], region: &Region, code: &str) -> Option<bool> {
    Some(Smaps::at(smaps, region.range.start())?.has_flag(code))
}
