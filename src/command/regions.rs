//! `regions [where FILTER] [by KEY] [full]`: all regions.

use super::{About, Context, Example, Flow, Group, Outcome, region};
use crate::eval;
use crate::inspect::{View, ViewedRegion};
use crate::lang::{Filter, RegionField, RegionOrder, Spanned};
use crate::report::{Record, RegionReport, RegionsSummary};
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
    let smaps = if full {
        target.process.smaps()?
    } else {
        Vec::new()
    };
    let mut summary = RegionsSummary {
        regions: 0,
        size: 0,
        present: Some(0),
        swapped: Some(0),
    };
    let mut sorted: Vec<RegionReport> = Vec::new();
    // What needs no counting is asked first: most regions are then never looked into.
    let is_wanted = |viewed: &&ViewedRegion| {
        filter
            .as_ref()
            .is_none_or(|filter| filter.needs_stats() || filter.matches(viewed, None))
    };
    let wanted: Vec<&ViewedRegion> = view.regions().iter().filter(is_wanted).collect();
    region::stats(
        &view,
        &wanted,
        region::SHOWN,
        context.sink,
        |viewed, stats, sink| {
            if let Some(filter) = &filter
                && filter.needs_stats()
                && !filter.matches(viewed, Some(&stats))
            {
                return Ok(());
            }
            let mut report = region::report(viewed, Some(&stats));
            if full {
                region::add_smaps(&mut report, viewed.range(), &smaps);
            }
            summary.regions += 1;
            summary.size = summary.size.saturating_add(report.size);
            summary.present = summary.present.map(|sum| sum + stats.present);
            summary.swapped = summary.swapped.map(|sum| sum + stats.swapped);
            match order {
                None => sink.emit(Record::Region(Box::new(report)))?,
                Some(_) => sorted.push(report),
            }
            Ok(())
        },
    )?;
    match order {
        None => {}
        Some(RegionOrder::Size) => sorted.sort_by_key(|report| Reverse(report.size)),
        Some(RegionOrder::Rss) => sorted.sort_by_key(|report| Reverse(report.present)),
        Some(RegionOrder::Name) => sorted.sort_by(|a, b| a.name.cmp(&b.name)),
    }
    for report in sorted {
        context.sink.emit(Record::Region(Box::new(report)))?;
    }
    context.sink.emit(Record::RegionsSummary(summary))?;
    Ok(Flow::Done)
}
