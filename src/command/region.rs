//! `region ADDRESS [full]`: the region around an address.

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use super::translate::symbol_at;
use crate::eval;
use crate::inspect::{self, AddressSpace, Backing, Evidence, RegionStats, StateSet, ViewedRegion};
use crate::kernel::smaps::{Smaps, vm_flag_meaning};
use crate::kernel::{Device, VirtualAddress};
use crate::lang::parser::{Parsed, Tokens, address, word};
use crate::lang::{Expression, Span, Spanned, display};
use crate::render::units::size;
use crate::report::{Fact, Hex, Numbers, Reason, RegionPlace, RegionReport, VmFlag, Why};
use nom::Parser;
use nom::combinator::opt;
use std::collections::BTreeMap;
use std::fmt::{self, Formatter};
use std::sync::Arc;

/// `region ADDRESS [full]`
#[derive(Debug)]
pub struct RegionAt {
    /// An address in the region, or an expression that names the region.
    address: Spanned<Expression>,
    /// Whether to add what only `smaps` knows.
    is_full: bool,
}

impl Command for RegionAt {
    const ABOUT: About = About {
        name: CommandName::new("region").short(&["r"]).how(),
        group: Group::Look,
        summary: "describe the region around an address",
        text: "\
Describes the region that contains an address, or the region of a name. The answer has these parts:

  origin        the file and the offset in it, the ELF section and the symbol
  permissions   in words
  amounts       bytes resident, shared with other mappings, mapped only here, in swap, and mapped by huge pages
  PSS           the proportional share
  large folios  by size: mapped by one entry each or page by page, whole or in part, aligned or not

Options:

  full  also the facts that only /proc/PID/smaps has: its flags in words, with those that madvise sets first \
(huge pages, forks, core dumps), its protection key, clean and dirty bytes

For `full`, and where map counts cannot be read, the kernel walks the whole process, which is slower.",
        examples: &[
            example("region demo_buffer", "describe the region of a symbol"),
            example("region [stack]", "describe a region by its name"),
            example("region demo_buffer full", "add the facts of smaps"),
        ],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (input, (address, full)) = (address, opt(word("full"))).parse(input)?;
        Ok((input, RegionAt { address, is_full: full.is_some() }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.address.node)?;
        display::word_if(f, self.is_full, "full")
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let RegionAt { address: expression, is_full: full } = self;
        let target = context.target()?;
        let address = eval::place(expression, context.state)?;
        context.state.last_address = Some(address);
        let space = AddressSpace::at(&target, address)?;
        let Some(viewed) = space.viewed_region(address) else {
            return Err(unmapped(expression.at, address, &space)?);
        };
        let (counted, changed) = space.stats_of(viewed, SHOWN | Evidence::ORDER, context.sink.budget())?;
        let mut report = RegionReport { changed, ..report(viewed, counted.as_ref()) };
        if let Some(stats) = counted {
            if stats.why_hidden().is_none() {
                report.pss = report.why.take("pss", stats.pss);
                report.folios = report.why.take("folios", stats.folios);
            }
            report.states = stats.states.map();
            if let Some(reason) = stats.uncertain.and_then(StateSet::uncertainty) {
                report.why.note("states", &reason);
            }
        }
        let regions = if context.state.symbols.may_name(&target, &viewed.region) {
            context.state.symbols.regions_for(&target, &viewed.region)?
        } else {
            Arc::default()
        };
        report.at = Some(RegionPlace {
            address,
            region_offset: address.get() - viewed.range().start().get(),
            file_offset: viewed.region.file_offset(address).map(Hex),
            section: context.state.symbols.over(&target, &*regions).section_at(address),
            symbol: symbol_at(&context.state.symbols, &target, &regions, address),
        });
        if *full {
            add_smaps(&mut report, viewed, space.read_smaps(&mut context.sink.budget())?);
        } else if report.present.is_some() && (report.private.is_none() || report.pss.is_none()) {
            // Without the right to read map counts, the kernel still tells the owner its own sums.
            let smaps = space.smaps_if_readable(&mut context.sink.budget())?;
            if let Some(smaps) = Smaps::at(smaps, viewed.range().start()) {
                add_shares(&mut report, viewed, smaps);
            }
        }
        report.advice = advice(&space, address);
        context.sink.emit(&report)?;
        // A large variable without initial values begins in the last page of the file, and continues in memory.
        if let Some((name, bytes)) = eval::variable(expression, context.state)
            && let Some(end) = address.checked_add(bytes)
            && end > viewed.range().end()
        {
            let behind = size(end.get() - viewed.range().end().get());
            let message =
                format!("`{name}` continues after this region for {behind}: `walk {name} by region` lists all of it");
            context.sink.note(message)?;
        }
        Ok(Flow::Done)
    }
}

/// What madvise has set on the region around `address`, if smaps was read.
pub(super) fn advice(space: &AddressSpace, address: VirtualAddress) -> Option<Vec<VmFlag>> {
    let flags = space.known_advice(address)?;
    Some(flags.into_iter().map(|flag| VmFlag { code: flag.code.to_owned(), meaning: flag.meaning }).collect())
}

/// An address in no region, with its neighbours.
pub(super) fn unmapped(at: Span, address: VirtualAddress, space: &AddressSpace) -> inspect::Result<Error> {
    let (below, above) = space.nearest(address)?;
    Ok(Error::Unmapped { at, address, nearest: below.iter().chain(&above).map(Into::into).collect() })
}

/// The facts that a row of `regions` shows.
pub(super) const SHOWN: Evidence = Evidence::COUNTS.union(Evidence::HUGE);

/// The record of a region, with its counts if there are any.
pub(super) fn report(viewed: &ViewedRegion, stats: Option<&RegionStats>) -> RegionReport {
    let (region, mut why) = (&viewed.region, Why::default());
    // The kernel maps pages of its own into every process.
    let hidden = stats.and_then(RegionStats::why_hidden).map(|reason| match viewed.backing {
        Backing::Kernel => Reason::NotApplicable(
            "the page map does not show the kernel's own pages, which are not memory of the process",
        ),
        _ => reason,
    });
    let mut take = |field, count: fn(&RegionStats) -> Fact<u64>| {
        let stats = stats?;
        why.take(field, hidden.clone().map_or_else(|| count(stats), Err))
    };
    let present = take("present", |stats| Ok(stats.present));
    let swapped = take("swapped", |stats| stats.swapped.clone());
    let shared = take("shared", |stats| stats.shared.clone());
    let private = take("private", |stats| stats.private.clone());
    let zero = take("zero", |stats| stats.zero.clone());
    let huge = take("huge", |stats| stats.huge.clone());
    // The number of a file in a core is made up: no file is on device 0.
    let has_identity = region.inode == 0 || region.device != Device::default();
    let identity = || if has_identity { Ok(()) } else { Err(Reason::NotInFile("not in this core".to_owned())) };
    let device = why.take("device", identity().map(|()| region.device));
    let inode = why.take("inode", identity().map(|()| region.inode));
    let uncertain = stats.and_then(RegionStats::uncertainly_swapped);
    if let Some(reason) = uncertain.and_then(StateSet::uncertainty) {
        why.note("swapped", &reason);
    }
    RegionReport {
        start: region.range.start(),
        end: region.range.end(),
        perms: region.permissions,
        offset: Hex(region.offset),
        device,
        inode,
        name: region.name.clone(),
        deleted: region.is_deleted_file(),
        object: region.object_number(),
        after: viewed.after.clone(),
        changed: false,
        size: region.range.len(),
        present,
        swapped,
        shared,
        shared_with_pmdb: stats.map(|stats| stats.shared_with_pmdb).filter(|&bytes| bytes > 0),
        private,
        zero,
        huge,
        map_count_average: stats.is_some_and(|stats| stats.average),
        folios: None,
        states: BTreeMap::new(),
        at: None,
        pss: None,
        advice: None,
        vm_flags: None,
        protection_key: None,
        smaps: None,
        why,
    }
}

/// Adds the kernel's own counts: of PSS in the place of the one from map counts, and of what is shared if map counts
/// cannot be read.
fn add_shares(report: &mut RegionReport, viewed: &ViewedRegion, smaps: &Smaps) {
    report.why.forget("pss");
    if let Some(pss) = smaps.field("Pss") {
        report.pss = report.why.take("pss", viewed.is_in_rss().map(|()| pss));
    }
    if report.private.is_some() && report.shared.is_some() || viewed.is_in_rss().is_err() {
        return;
    }
    report.why.forget("private");
    report.why.forget("shared");
    (report.private, report.shared) = (Some(smaps.uss()), Some(smaps.shared()));
}

/// Adds the fields of smaps, if it still has this region.
pub(super) fn add_smaps(report: &mut RegionReport, viewed: &ViewedRegion, smaps: &[Smaps]) {
    let Some(smaps) = Smaps::of_region(smaps, viewed.range()) else {
        report.why.note("smaps", &Reason::Changed);
        return;
    };
    add_shares(report, viewed, smaps);
    if let (None, Some(swap)) = (report.swapped, smaps.field("Swap")) {
        report.why.forget("swapped");
        report.swapped = Some(swap);
    }
    report.vm_flags =
        Some(smaps.vm_flags.iter().map(|code| VmFlag { code: code.clone(), meaning: vm_flag_meaning(code) }).collect());
    report.protection_key = smaps.protection_key;
    report.smaps = Some(Numbers(smaps.fields.clone()));
}
