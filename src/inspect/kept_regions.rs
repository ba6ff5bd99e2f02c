//! The regions that a question keeps, one after the other, with the memory of each, and their sums.

use super::classify::Backing;
use super::kept::Step;
use super::page::Evidence;
use super::region::ViewedRegion;
use super::region_amount::RegionAmount;
use super::states::StateSet;
use super::stats::{RegionStats, RegionSweep};
use super::{AddressSpace, Result};
use crate::budget::Budget;
use crate::kernel::AddressRange;
use crate::kernel::smaps::Smaps;
use crate::report::Reason;

type Keeps<'q> = dyn Fn(&ViewedRegion, Option<&RegionStats>) -> Option<bool> + 'q;

/// Which regions are asked for, and which amounts of their memory.
#[must_use]
pub struct RegionQuestion<'q> {
    keeps: Box<Keeps<'q>>,
    asked: Vec<RegionAmount>,
    rank: Option<RegionAmount>,
    swapped_by_smaps: bool,
}

impl<'q> RegionQuestion<'q> {
    /// The regions for which `keeps` is true; those for which it is `None` are undecided. It uses the amounts `asked`.
    /// It is called without them first, and a region for which it is false then is not looked at.
    pub fn new(
        asked: &[RegionAmount],
        keeps: impl Fn(&ViewedRegion, Option<&RegionStats>) -> Option<bool> + 'q,
    ) -> Self {
        RegionQuestion { keeps: Box::new(keeps), asked: asked.to_vec(), rank: None, swapped_by_smaps: false }
    }

    /// The same, to be sorted by an amount: it is asked for too.
    pub fn ranked(self, by: Option<RegionAmount>) -> Self {
        RegionQuestion { rank: by, ..self }
    }

    /// The same. Whether the sum of swapped bytes has those of smaps where they cannot be counted, if it can be read.
    pub fn swapped_by_smaps(self, swapped_by_smaps: bool) -> Self {
        RegionQuestion { swapped_by_smaps, ..self }
    }

    /// Whether smaps may have an amount that is asked for and could not be counted. It does not need further rights.
    fn wants_smaps(&self, viewed: &ViewedRegion, stats: &RegionStats) -> bool {
        let is_unknown = |&amount: &RegionAmount| stats.certain_amount(amount).is_err();
        let wanted = self.asked.iter().chain(&self.rank);
        stats.why_hidden().is_none()
            && viewed.is_in_rss().is_ok()
            && wanted.filter(|&&amount| amount != RegionAmount::Huge).any(is_unknown)
    }

    /// Why there is no answer for a region: an amount that is asked for is unknown.
    fn why_undecided(&self, stats: &RegionStats) -> Option<Reason> {
        let unknown = self.asked.iter().filter_map(|&amount| Some((amount, stats.certain_amount(amount).err()?)));
        unknown.min_by_key(|(amount, _)| *amount).map(|(_, reason)| reason)
    }
}

/// The sums of the regions that were kept, and the counts of others.
#[derive(Clone, Default, Debug)]
#[non_exhaustive]
pub struct RegionSums {
    /// Regions that were kept.
    pub regions: u64,
    /// Bytes that they span.
    pub size: u64,
    /// Present bytes; `None` if the page map does not have all of them.
    pub present: Option<u64>,
    /// Swapped bytes; `None` if shared memory may be in swap.
    pub swapped: Option<u64>,
    /// The possible states of pages, if `swapped` is only the most likely number.
    pub uncertain: Option<StateSet>,
    /// Regions without an answer because states of their pages are uncertain, and why those of the first are.
    pub of_uncertain_states: Option<(u64, Reason)>,
    /// Regions without an answer because a fact is unknown, and why that of the first is.
    pub undecided: Option<(u64, Reason)>,
    /// Regions of the kernel itself without an answer: the page map shows their pages in no process.
    pub of_kernel: u64,
    /// Kept regions whose rank is unknown.
    pub unranked: u64,
    /// Whether regions changed during the read.
    pub changed: bool,
}

impl RegionSums {
    fn add_undecided(&mut self, viewed: &ViewedRegion, stats: &RegionStats, question: &RegionQuestion<'_>) {
        let count = match (stats.uncertain.and_then(StateSet::uncertainty), question.why_undecided(stats)) {
            (Some(reason), _) => self.of_uncertain_states.get_or_insert((0, reason.of("states are"))),
            (None, Some(_)) if viewed.backing == Backing::Kernel => return self.of_kernel += 1,
            (None, Some(reason)) => self.undecided.get_or_insert((0, reason)),
            (None, None) => {
                let reason = if viewed.region.permissions.is_unknown {
                    Reason::NotInFile("their rights are not in this core".to_owned())
                } else {
                    Reason::NotApplicable("the question has no answer for them")
                };
                self.undecided.get_or_insert((0, reason))
            }
        };
        count.0 += 1;
    }
}

/// Regions with the memory of each. Dropping it ends what is under way.
///
/// ```
/// use pmdb::inspect::{RegionAmount, RegionQuestion, RegionStats, Step, ViewedRegion};
/// use pmdb::{AddressSpace, Evidence, Target};
///
/// let space = AddressSpace::of(&Target::attach(std::process::id())?)?;
/// let is_resident = |viewed: &ViewedRegion, stats: Option<&RegionStats>| match viewed.region.permissions.write {
///     true => Some(stats?.certain_amount(RegionAmount::Present).ok()? > 0),
///     false => Some(false),
/// };
/// let question = RegionQuestion::new(&[RegionAmount::Present], is_resident);
/// let mut regions = space.kept_regions(question, Evidence::empty())?;
/// while let Some(step) = regions.next()? {
///     if let Step::Found((viewed, stats)) = step {
///         println!("{} {}: {} bytes", viewed.range().start(), viewed.region.name, stats.present);
///     }
/// }
/// let sums = regions.finish();
/// println!("{:?} resident bytes in {} writable regions", sums.present, sums.regions);
/// # assert!(sums.regions > 0 && sums.present > Some(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct KeptRegions<'q> {
    space: &'q AddressSpace,
    question: RegionQuestion<'q>,
    regions: RegionSweep,
    /// The last region that was counted, until it is looked at.
    counted: Option<(usize, RegionStats)>,
    done: u64,
    total: u64,
    sums: RegionSums,
    budget: Budget,
}

impl AddressSpace {
    /// The regions that a question keeps, with what [`region_stats`](AddressSpace::region_stats) gives for `need`. What
    /// it asks for and that does not show comes from smaps, if that can be read.
    ///
    /// # Errors
    /// The question asks for amounts, and the target is a core, which has no page map.
    pub fn kept_regions<'q>(&'q self, question: RegionQuestion<'q>, need: Evidence) -> Result<KeptRegions<'q>> {
        let process = &self.target().process;
        if !question.asked.is_empty() || question.rank.is_some() {
            process.require_page_map()?;
        }
        let known = process.has_page_map().then_some(0);
        let sums = RegionSums { present: known, swapped: known, ..RegionSums::default() };
        let wanted = self.viewed_regions().iter().filter(|viewed| (question.keeps)(viewed, None) != Some(false));
        let wanted: Vec<AddressRange> = wanted.map(ViewedRegion::range).collect();
        Ok(KeptRegions {
            space: self,
            question,
            regions: self.region_stats(&wanted, need),
            counted: None,
            done: 0,
            total: wanted.len() as u64,
            sums,
            budget: Budget::unlimited(),
        })
    }
}

impl<'q> KeptRegions<'q> {
    /// The same, with what it may take.
    pub fn with_budget(self, budget: Budget) -> Self {
        KeptRegions { regions: self.regions.with_budget(budget.clone()), budget, ..self }
    }

    /// The next step; `None` after the last.
    ///
    /// # Errors
    /// Those of [`Sweep::next`](super::Sweep::next).
    pub fn next(&mut self) -> Result<Option<Step<(&'q ViewedRegion, RegionStats)>>> {
        if let Some((index, stats)) = self.counted.take()
            && let Some(viewed) = self.space.viewed_regions().get(index)
            && let Some(stats) = self.keep(viewed, stats)?
        {
            return Ok(Some(Step::Found((viewed, stats))));
        }
        self.counted = self.regions.next_index(&mut |_| {})?;
        let visited = Step::Visited { done: self.done, total: self.total };
        self.done += 1;
        Ok(self.counted.as_ref().map(|_| visited))
    }

    /// What was counted.
    pub fn finish(self) -> RegionSums {
        RegionSums { changed: !self.regions.changed_ranges().is_empty(), ..self.sums }
    }

    /// The memory of a region that is kept, after it was added to the sums.
    fn keep(&mut self, viewed: &ViewedRegion, mut stats: RegionStats) -> Result<Option<RegionStats>> {
        if self.question.wants_smaps(viewed, &stats)
            && let Some(smaps) = Smaps::at(self.space.smaps_if_readable(&mut self.budget)?, viewed.range().start())
        {
            stats.take_from_smaps(smaps);
        }
        let answer = (self.question.keeps)(viewed, Some(&stats));
        match answer {
            Some(true) => self.add(viewed, &stats)?,
            Some(false) => {}
            None => self.sums.add_undecided(viewed, &stats, &self.question),
        }
        Ok(Some(stats).filter(|_| answer == Some(true)))
    }

    fn add(&mut self, viewed: &ViewedRegion, stats: &RegionStats) -> Result<()> {
        let swapped = match stats.swapped {
            Ok(bytes) => Some(bytes),
            Err(_) if self.question.swapped_by_smaps => {
                let smaps = self.space.smaps_if_readable(&mut self.budget)?;
                Smaps::of_region(smaps, viewed.range()).and_then(|one| one.field("Swap"))
            }
            Err(_) => None,
        };
        let present = stats.missing.is_none().then_some(stats.present);
        let sums = &mut self.sums;
        sums.regions += 1;
        sums.size = sums.size.saturating_add(viewed.range().len());
        sums.present = sums.present.zip(present).map(|(sum, more)| sum + more);
        sums.swapped = sums.swapped.zip(swapped).map(|(sum, more)| sum + more);
        sums.uncertain = sums.uncertain.or(stats.uncertainly_swapped());
        let is_unranked = self.question.rank.is_some_and(|amount| stats.amount(amount).is_err());
        sums.unranked += u64::from(is_unranked && stats.why_hidden().is_none() && viewed.is_in_rss().is_ok());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::fake::{PAGE, World, region};

    /// A region with two pages in memory, and one with none. Map counts cannot be read, nor smaps without `smaps`.
    fn world(smaps: Option<u64>) -> World {
        const PRESENT: u64 = 1 << 63;
        let (first, second) = (region(0x100, 4), region(0x200, 2));
        let rows = smaps.map(|pss| Smaps { fields: vec![("Pss".into(), pss)], ..Smaps::of(first.range) });
        let entries = [(0x100, PRESENT), (0x101, PRESENT)].into();
        World { entries, hidden: true, smaps: rows.into_iter().collect(), ..World::new([first, second]) }
    }

    /// The proportional shares of the regions that are kept, how many were counted, and the sums.
    fn kept(world: World, question: RegionQuestion<'_>) -> (Vec<Option<u64>>, u64, RegionSums) {
        let (_, target) = world.target();
        let space = AddressSpace::of(&target).expect("a space");
        let mut regions = space.kept_regions(question, Evidence::COUNTS).expect("a page map");
        let (mut shares, mut counted) = (Vec::new(), 0);
        while let Some(step) = regions.next().expect("regions") {
            match step {
                Step::Visited { total, .. } => counted = total,
                Step::Found((_, stats)) => shares.push(stats.pss.ok()),
            }
        }
        (shares, counted, regions.finish())
    }

    #[test]
    fn smaps_has_what_cannot_be_counted_and_is_asked_for() {
        let all = |_: &ViewedRegion, _: Option<&RegionStats>| Some(true);
        let (shares, counted, sums) = kept(world(Some(PAGE)), RegionQuestion::new(&[], all));
        assert_eq!((shares, counted), (vec![None, Some(0)], 2));
        assert_eq!((sums.regions, sums.size, sums.present), (2, 6 * PAGE, Some(2 * PAGE)));
        for (smaps, share, unranked) in [(Some(PAGE), Some(PAGE), 0), (None, None, 1)] {
            let question = RegionQuestion::new(&[], all).ranked(Some(RegionAmount::Pss));
            let (shares, _, sums) = kept(world(smaps), question);
            assert_eq!((shares, sums.unranked), (vec![share, Some(0)], unranked));
        }
    }

    #[test]
    fn a_question_that_names_no_amounts_may_use_them() {
        let resident = |_: &ViewedRegion, stats: Option<&RegionStats>| Some(stats?.present > 0);
        let (_, counted, sums) = kept(world(None), RegionQuestion::new(&[], resident));
        assert_eq!((counted, sums.regions, sums.undecided), (2, 1, None));
        let (_, _, sums) = kept(world(None), RegionQuestion::new(&[], |_, _| None));
        assert_eq!((sums.regions, sums.undecided.map(|(regions, _)| regions)), (0, Some(2)));
    }

    #[test]
    fn smaps_has_the_swapped_bytes_that_cannot_be_counted() {
        let mut shared = region(0x100, 4);
        (shared.inode, shared.permissions.shared) = (7, true);
        let row = Smaps { fields: vec![("Swap".into(), PAGE)], ..Smaps::of(shared.range) };
        for (by_smaps, rows, swapped) in
            [(false, vec![row.clone()], None), (true, vec![row], Some(PAGE)), (true, Vec::new(), None)]
        {
            let world = World::new([shared.clone()]);
            let world = World { tmpfs: Some(shared.device), swaps: true, smaps: rows, ..world };
            let question = RegionQuestion::new(&[], |_, _| Some(true)).swapped_by_smaps(by_smaps);
            let (_, _, sums) = kept(world, question);
            assert_eq!((sums.regions, sums.swapped), (1, swapped));
        }
    }

    #[test]
    fn regions_are_counted_only_where_that_decides() {
        let long_with_share = |viewed: &ViewedRegion, stats: Option<&RegionStats>| {
            let has_share = |stats: &RegionStats| stats.certain_amount(RegionAmount::Pss).ok().map(|share| share > 0);
            if viewed.range().len() > 2 * PAGE { stats.and_then(has_share) } else { Some(false) }
        };
        for (smaps, regions, undecided) in [(Some(PAGE), 1, None), (None, 0, Some(1))] {
            let question = RegionQuestion::new(&[RegionAmount::Pss], long_with_share);
            let (_, counted, sums) = kept(world(smaps), question);
            assert_eq!((counted, sums.regions), (1, regions));
            assert_eq!(sums.undecided.map(|(regions, _)| regions), undecided);
        }
    }
}
