//! `regions [where FILTER] [by KEY] [full]`: all regions.

use super::through::left_out;
use super::{About, Context, Example, Flow, Group, Outcome, region};
use crate::eval;
use crate::inspect::{self, Backing, Doubt, View, ViewedRegion};
use crate::lang::{Filter, RegionField, RegionOrder, Spanned};
use crate::report::{Note, Reason, Record, RegionReport, RegionsSummary, Stopped};
use std::cmp::Reverse;

pub(super) const ABOUT: About = About {
    name: "regions",
    group: Group::Look,
    summary: "list the regions, and what is resident in each",
    text: "A row for each region of the process: addresses, rights, size, resident, shared and swapped \
           bytes, name. `where` chooses by size, rss, swapped, name, perms and other fields of regions; \
           `by` sorts: size and rss largest first, name by the alphabet. `full` adds what only smaps knows \
           to each.",
    examples: &[
        Example {
            line: "regions",
            does: "all of them, by address",
        },
        Example {
            line: "regions by rss",
            does: "what is most resident comes first",
        },
        Example {
            line: "regions where writable and rss > 64K",
            does: "the larger ones that can be written",
        },
        Example {
            line: "regions where name == \"[heap]\"",
            does: "those of one name",
        },
    ],
};

pub(super) fn run(
    context: &mut Context,
    filter: Option<&Spanned<Filter<RegionField>>>,
    order: Option<RegionOrder>,
    full: bool,
) -> Outcome {
    let target = context.target()?;
    let view = View::of(&target)?;
    let filter = match filter {
        Some(filter) => Some(eval::region_filter(filter, context.state)?),
        None => None,
    };
    context.state.last_address = None;
    let smaps = if full {
        region::smaps(&target, context.sink)?
    } else {
        Vec::new()
    };
    let mut summary = RegionsSummary {
        regions: 0,
        size: 0,
        present: Some(0),
        swapped: Some(0),
        changed: false,
        cut_short: false,
    };
    let mut sorted: Vec<Box<RegionReport>> = Vec::new();
    let mut doubt = None;
    // Regions that the filter can neither keep nor leave out.
    let mut undecided: Option<(u64, Doubt)> = None;
    let mut unseen: Option<(u64, Reason)> = None;
    let mut of_the_kernel = 0u64;
    // What needs no counting is asked first: most regions are then never looked into.
    let is_wanted = |viewed: &&ViewedRegion| {
        filter
            .as_ref()
            .is_none_or(|filter| filter.needs_stats() || filter.holds(viewed, None) == Some(true))
    };
    let wanted: Vec<&ViewedRegion> = view.regions().iter().filter(is_wanted).collect();
    let swept = region::stats(
        &view,
        &wanted,
        region::SHOWN,
        context.sink,
        |viewed, stats, sink| {
            let holds = filter
                .as_ref()
                .filter(|filter| filter.needs_stats())
                .map_or(Some(true), |filter| filter.holds(viewed, Some(stats)));
            let hidden = stats.hidden().or_else(|| stats.swapped.clone().err());
            match (holds, stats.doubt, hidden) {
                (Some(true), ..) => {}
                (None, Some(doubt), _) => {
                    undecided.get_or_insert((0u64, doubt)).0 += 1;
                    return Ok(());
                }
                (None, None, Some(_)) if viewed.backing == Backing::Kernel => {
                    of_the_kernel += 1;
                    return Ok(());
                }
                (None, None, Some(reason)) => {
                    unseen.get_or_insert((0u64, reason)).0 += 1;
                    return Ok(());
                }
                _ => return Ok(()),
            }
            doubt = doubt.or(stats.doubt);
            let mut report = Box::new(region::report(viewed, Some(stats)));
            if full {
                region::add_smaps(&mut report, viewed, &smaps);
            }
            summary.regions += 1;
            summary.size = summary.size.saturating_add(report.size);
            summary.present = summary.present.map(|sum| sum + stats.present);
            // Of what the page map does not show at all nothing is added, as for what is present.
            let swapped = report.swapped.or(stats.swapped.clone().ok());
            summary.swapped = summary.swapped.zip(swapped).map(|(sum, one)| sum + one);
            match order {
                None => sink.emit(Record::Region(report))?,
                Some(_) => sorted.push(report),
            }
            Ok(())
        },
    );
    let mut stopped = match swept {
        Ok(sweep) => {
            summary.changed = !sweep.changed.is_empty();
            None
        }
        Err(inspect::Error::Stopped(Stopped::Interrupted)) => Some(Stopped::Interrupted),
        Err(error) => return Err(error.into()),
    };
    match order {
        None => {}
        Some(RegionOrder::Size) => sorted.sort_by_key(|report| Reverse(report.size)),
        Some(RegionOrder::Rss) => sorted.sort_by_key(|report| Reverse(report.present)),
        Some(RegionOrder::Name) => sorted.sort_by(|a, b| a.name.cmp(&b.name)),
    }
    for report in sorted {
        match context.sink.emit(Record::Region(report)) {
            Ok(()) => {}
            Err(Stopped::Closed) => return Err(Stopped::Closed.into()),
            Err(Stopped::Interrupted) => {
                stopped = Some(Stopped::Interrupted);
                break;
            }
        }
    }
    summary.cut_short = stopped.is_some();
    if let Some((regions, doubt)) = undecided {
        let message = left_out(regions, "region", doubt);
        context.sink.emit(Record::Note(Note { message }))?;
    }
    if let Some((regions, reason)) = unseen {
        let plural = if regions == 1 { "" } else { "s" };
        let message = format!(
            "left out: {regions} region{plural} of which it cannot be known whether the filter holds: {reason}"
        );
        context.sink.emit(Record::Note(Note { message }))?;
    }
    // The same for every process, and so said once.
    if of_the_kernel > 0 && !std::mem::replace(&mut context.state.kernel_regions_noted, true) {
        let message = "left out: the kernel's own regions such as [vvar], whose pages the page map does not show (not repeated in this session)";
        context.sink.emit(Record::Note(Note {
            message: message.to_owned(),
        }))?;
    }
    if let Some(doubt) = doubt {
        let message = format!("what is swapped is {}", doubt.reason());
        context.sink.emit(Record::Note(Note { message }))?;
    }
    context.sink.emit(Record::RegionsSummary(summary))?;
    stopped.map_or(Ok(Flow::Done), |stopped| Err(stopped.into()))
}
