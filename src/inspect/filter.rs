//! What a sweep has to find out, and of which pages: a filter on pages, compiled so that it can be applied to millions,
//! and the facts that it and the caller need, as far as they can be known here.

use super::address_space::AddressSpace;
use super::classify::{Backing, KernelBehaviour, RegionFacts, absent_kind};
use super::error::no_scan;
use super::kernel_record;
use super::page::{Evidence, Page};
use super::region::ViewedRegion;
use super::sweep::probed;
use super::table_entry;
use super::{Error, Result};
use crate::kernel::{AddressRange, PageField};
use crate::process::{self, Categories, Machine};
use crate::report::{Fact, Reason};
use std::ops::Range;
use std::sync::Arc;

type Test = dyn Fn(&Page, Option<&ViewedRegion>) -> Option<bool> + Send + Sync;
type WhyUnknown = dyn Fn(&Page, Option<&ViewedRegion>) -> Option<Reason> + Send + Sync;
type IsKnown = dyn Fn(PageField, &Page, Option<&ViewedRegion>) -> Option<bool> + Send + Sync;

/// A field that a filter asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AskedField {
    /// The field.
    pub field: PageField,
    /// Where its text asks for it, in bytes of its line: errors about the field repeat them. `None` without a text.
    pub at: Option<Range<usize>>,
}

/// A predicate over pages, and what has to be read to answer it. Check
/// [`AddressSpace::require`](super::AddressSpace::require) with [`Filter::need`] before a walk.
#[derive(Clone)]
pub struct Filter {
    need: Evidence,
    test: Arc<Test>,
    why_unknown: Option<Arc<WhyUnknown>>,
    /// What it asks of pages and where, and whether that is known of one.
    fields: Option<(Arc<[AskedField]>, Arc<IsKnown>)>,
}

impl Filter {
    /// From a test and what it needs. The test gets a page and its region. Neighbours that are the same come as one
    /// page, unless `need` has [`Evidence::EACH`].
    pub fn new(need: Evidence, test: impl Fn(&Page, Option<&ViewedRegion>) -> bool + Send + Sync + 'static) -> Self {
        Filter { need, test: Arc::new(move |page, region| Some(test(page, region))), why_unknown: None, fields: None }
    }

    /// The same with a test that may have no answer. For such a page, `why_unknown` gives the reason if a fact is
    /// unknown, and `None` if the page has no such fact.
    pub fn with_unknown(
        need: Evidence,
        test: impl Fn(&Page, Option<&ViewedRegion>) -> Option<bool> + Send + Sync + 'static,
        why_unknown: impl Fn(&Page, Option<&ViewedRegion>) -> Option<Reason> + Send + Sync + 'static,
    ) -> Self {
        Filter { need, test: Arc::new(test), why_unknown: Some(Arc::new(why_unknown)), fields: None }
    }

    /// The same, which asks these fields. `is_known` is whether the value of one is known of a page. `None` means that
    /// the page has no such fact, or that the next read may show it.
    pub fn asking(
        self,
        fields: &[AskedField],
        is_known: impl Fn(PageField, &Page, Option<&ViewedRegion>) -> Option<bool> + Send + Sync + 'static,
    ) -> Self {
        Filter { fields: Some((fields.into(), Arc::new(is_known))), ..self }
    }

    /// What a sweep has to find out.
    pub fn need(&self) -> Evidence {
        self.need
    }

    /// Whether it holds for the page.
    #[inline]
    pub fn matches(&self, page: &Page, region: Option<&ViewedRegion>) -> bool {
        (self.test)(page, region) == Some(true)
    }

    /// Whether it keeps the page. The error is why it can neither keep it nor leave it out: the state of the page or
    /// another fact is unknown.
    pub fn answer(&self, page: &Page, region: Option<&ViewedRegion>) -> Fact<bool> {
        let answer = (self.test)(page, region);
        if answer == Some(true) {
            return Ok(true);
        }
        let unknown = if self.keeps_in_another_state(page, region) {
            page.states.uncertainty().map(|reason| reason.of("states are"))
        } else if answer.is_none() {
            self.why_unknown.as_ref().and_then(|why_unknown| why_unknown(page, region))
        } else {
            None
        };
        unknown.map_or(Ok(false), Err)
    }

    /// Whether the state of the page is uncertain, and the filter would keep it in one of its possible states.
    fn keeps_in_another_state(&self, page: &Page, region: Option<&ViewedRegion>) -> bool {
        if page.states.is_certain() {
            return false;
        }
        let place = region.map(|viewed| RegionFacts::plain(viewed.backing, viewed.region.permissions.shared));
        page.states.iter().any(|state| {
            let as_if =
                Page { states: state.into(), kind: absent_kind(state, page.entry, place, page.content), ..*page };
            self.matches(&as_if, region)
        })
    }
}

/// Which fields of a filter were known of some page so far, and which were unknown of some.
#[derive(Clone, Debug, Default)]
pub(super) struct FieldsSeen {
    known: Vec<PageField>,
    unknown: Vec<AskedField>,
}

impl FieldsSeen {
    /// Adds a page. Only pages without an answer show what is unknown.
    #[inline]
    pub fn add(&mut self, filter: &Filter, page: &Page, region: Option<&ViewedRegion>, has_answer: bool) {
        if let Some((fields, is_known)) = &filter.fields
            && (!has_answer || self.known.len() < fields.len())
        {
            for asked in fields.iter() {
                match is_known(asked.field, page, region) {
                    Some(true) if !self.known.contains(&asked.field) => self.known.push(asked.field),
                    Some(false) if !has_answer && !self.unknown.contains(asked) => self.unknown.push(asked.clone()),
                    _ => {}
                }
            }
        }
    }

    /// A field that some pages have, and that is known of none.
    pub fn never_known(&self) -> Option<&AskedField> {
        self.unknown.iter().find(|asked| !self.known.contains(&asked.field))
    }
}

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Filter").field("need", &self.need).finish()
    }
}

/// What a sweep has to find out, and of which pages. A [`Evidence`] alone means all pages.
#[derive(Clone, Debug)]
#[must_use]
pub struct Question {
    /// What is needed of pages that the filter keeps.
    pub(super) need: Evidence,
    /// The pages for which `need` is read. All pages come, and the caller filters them. A page that the filter
    /// does not keep may have only what the filter needs.
    pub(super) filter: Option<Filter>,
    /// What is not needed of plain memory: see [`ViewedRegion::is_plain_memory`].
    pub(super) spared: Evidence,
}

impl Question {
    /// Reads what `filter` needs of all pages, and `need` of the pages that it keeps.
    pub fn of_kept(filter: &Filter, need: Evidence) -> Self {
        Question { need: need | filter.need(), filter: Some(filter.clone()), spared: Evidence::empty() }
    }

    /// The same with an optional filter: without one, `need` is of all pages.
    pub fn new(filter: Option<&Filter>, need: Evidence) -> Self {
        match filter {
            Some(filter) => Question::of_kept(filter, need),
            None => need.into(),
        }
    }

    /// The same, which needs no `spared` of memory without a file that only this process has.
    pub(super) fn sparing(self, spared: Evidence) -> Self {
        Question { spared, ..self }
    }

    /// Whether something is not needed of the pages of a region.
    pub(super) fn spares(&self, viewed: Option<&ViewedRegion>) -> bool {
        !self.spared.is_empty() && viewed.is_some_and(ViewedRegion::is_plain_memory)
    }

    /// What is needed of pages that the filter keeps: never less than the filter needs.
    pub fn need(&self) -> Evidence {
        self.need
    }

    /// Adds all that has to be read for it in `space`.
    pub(super) fn with_implied(self, space: &AddressSpace) -> Self {
        Question { need: space.with_implied(self.need), ..self }
    }

    /// What is needed of every page.
    pub(super) fn needed_of_all(&self, space: &AddressSpace) -> Evidence {
        match &self.filter {
            Some(filter) => self.need.difference(Evidence::WORDS) | space.with_implied(filter.need()),
            None => self.need,
        }
    }

    /// Whether the scan, and not flags, has to distinguish the zero page from anonymous memory of a region.
    pub(super) fn scans_for_zero(&self, first: Evidence, viewed: Option<&ViewedRegion>) -> bool {
        if self.spares(viewed) && self.need.contains(Evidence::KINDS) && self.spared.contains(Evidence::FLAGS) {
            return true;
        }
        let scans = |need: Evidence| need.contains(Evidence::KINDS) && !need.contains(Evidence::FLAGS);
        let by_filter = |filter: &Filter| filter.need().contains(Evidence::KINDS);
        scans(self.need) || scans(first) && self.filter.as_ref().is_some_and(by_filter)
    }
}

impl From<Evidence> for Question {
    fn from(need: Evidence) -> Self {
        Question { need, filter: None, spared: Evidence::empty() }
    }
}

/// How errors name [`Evidence::ZONES`].
const ZONES: &str = "zones and nodes of frames";
/// Those that the kernel's own records give.
const REFERENCES: &str = "references of frames";
const PINS: &str = "pins of frames";

impl AddressSpace {
    /// Fails if part of `need` cannot be known here, and names it. Filters call this before a walk.
    pub fn require(&self, need: Evidence) -> Result<()> {
        let available = self.availability();
        let kinds = if available.categories.contains(Categories::ZERO) { Ok(()) } else { available.flags.clone() };
        // Without a scan, flags show that a page is in no large folio, so that no PMD maps it. Other pages are left out
        // and counted.
        let huge = if available.categories.contains(Categories::HUGE) || available.flags.is_ok() {
            Ok(())
        } else {
            Err(no_scan())
        };
        let folios = available.frames.clone().and_then(|()| available.flags.clone());
        let zones = if need.contains(Evidence::ZONES) {
            available.frames.clone().and_then(|()| self.zones().map(drop).map_err(Reason::from))
        } else {
            Ok(())
        };
        let records = if need.intersects(Evidence::RECORDS) {
            available.frames.clone().and_then(|()| kernel_record::require(&self.target().machine, need))
        } else {
            Ok(())
        };
        let tables = if need.intersects(Evidence::TABLES | Evidence::DEVICE_FRAMES) {
            available.frames.clone().and_then(|()| table_entry::require(self.target()))
        } else {
            Ok(())
        };
        for (_, what, read) in probed(need, &self.target().machine) {
            available
                .frames
                .clone()
                .and_then(|()| read.map_err(Reason::from))
                .map_err(|reason| Error::Unknown { what, reason })?;
        }
        let facts = [
            (Evidence::TABLES, "page-table entries", &tables),
            (Evidence::DEVICE_FRAMES, "frames of device mappings", &tables),
            (Evidence::REFERENCES, REFERENCES, &records),
            (Evidence::PINS, PINS, &records),
            (Evidence::ORDER, "the orders of folios", &available.flags),
            (Evidence::FOLIOS, "the mappings of folios", &folios),
            (Evidence::ZONES, ZONES, &zones),
            (Evidence::FRAMES, "frame numbers", &available.frames),
            (Evidence::FLAGS, "page flags", &available.flags),
            (Evidence::COUNTS, "map counts", &available.counts),
            (Evidence::OWNERS, "map counts", &available.counts),
            (Evidence::SOFT_DIRTY, "soft-dirty bits", &available.soft_dirty),
            (Evidence::KINDS, "the zero page", &kinds),
            (Evidence::HUGE, "huge mappings", &huge),
        ];
        for (asked, what, fact) in facts {
            if let (true, Err(reason)) = (need.contains(asked), fact) {
                return Err(Error::Unknown { what, reason: reason.clone() });
            }
        }
        if need.contains(Evidence::HEAP) { self.heap_uses().map(drop) } else { Ok(()) }
    }

    /// `need` with what has to be read for it. Everything but states needs entries, the mappings of folios need orders,
    /// and orders need flags. Where pages are merged, only flags tell which.
    pub(super) fn with_implied(&self, need: Evidence) -> Evidence {
        let mut need = if need.has_entries() { need | Evidence::ENTRIES } else { need };
        if need.contains(Evidence::FOLIOS) {
            need |= Evidence::ORDER;
        }
        if need.contains(Evidence::FLAGS) {
            return need;
        }
        let are_known = || self.availability().flags.is_ok();
        let has_scan = self.target().process.has_scan();
        // Without a scan, only flags identify the zero page, and without marked entries a page that a PMD maps.
        let tell_kinds = need.contains(Evidence::KINDS)
            && are_known()
            && (!has_scan || self.is_merging() || !self.huge_files_are_marked());
        let tell_huge = need.intersects(Evidence::HUGE | Evidence::OWNERS) && !has_scan && are_known();
        if tell_kinds || tell_huge || need.contains(Evidence::ORDER) { need | Evidence::FLAGS } else { need }
    }

    /// [`Evidence::DEVICE_FRAMES`], if a device is mapped in `ranges` and its frames can be known. The ranges are in
    /// order, and none overlap.
    pub fn device_frames(&self, ranges: &[AddressRange]) -> Evidence {
        let has_device = self.regions_in(ranges).any(|viewed| self.is_of_device(viewed));
        if has_device { self.obtainable(Evidence::DEVICE_FRAMES) } else { Evidence::empty() }
    }

    /// Whether `viewed` maps memory of a device, whose frames the page map hides.
    pub(super) fn is_of_device(&self, viewed: &ViewedRegion) -> bool {
        viewed.backing != Backing::Kernel && self.is_pfn_mapped(viewed)
    }

    /// As much of `need` as can be known here, for commands that show what is available.
    pub fn obtainable(&self, need: Evidence) -> Evidence {
        Evidence::all()
            .iter()
            .filter(|&one| need.contains(one))
            .filter(|&one| one == Evidence::KINDS || self.require(one).is_ok())
            .collect()
    }
}

/// Fails if a sweep of frames needs zones or cgroups, and `machine` does not show them.
pub fn require_of_frames(need: Evidence, machine: &Machine) -> Result<()> {
    if need.contains(Evidence::ZONES) {
        require_known(ZONES, machine.zones())?;
    }
    for (_, what, read) in probed(need, machine) {
        require_known(what, read)?;
    }
    if need.intersects(Evidence::RECORDS) {
        let what = if need.contains(Evidence::PINS) { PINS } else { REFERENCES };
        kernel_record::require(machine, need).map_err(|reason| Error::Unknown { what, reason })?;
    }
    Ok(())
}

/// Fails if the machine did not give the answer about `what`.
pub(super) fn require_known<T>(what: &'static str, answer: process::Result<T>) -> Result<()> {
    let unknown = |error: process::Error| Error::Unknown { what, reason: error.into() };
    answer.map(drop).map_err(unknown)
}
