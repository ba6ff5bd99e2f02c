//! The text of the sum of `account`.

use super::objects::AT_MOST;
use super::records::{AccountProof, AccountSummary};
use crate::kernel::PageSize;
use crate::render::Record;
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::text::pages;
use crate::render::theme::Role;
use crate::render::units::size;
use crate::report::{BesideRss, Fact, Reason};

impl Record for AccountSummary {
    fn write(&self, text: &mut Text) {
        text.line(write, self);
        text.notes();
    }

    fn totals(&self, page: PageSize) -> Vec<(&'static str, u64)> {
        vec![("_pages", page.pages_in(self.bytes)), ("_bytes", self.bytes)]
    }
}

/// The proof of the sum, the frames, and what stands beside.
fn write(lines: &mut Lines, summary: &AccountSummary) {
    if let Some(bytes) = summary.may_be_zeros {
        lines.line().indent(2).word(
            "",
            Role::Note,
            format!("{} of unknown kind may be zero pages, which Rss does not count", size(bytes)),
        );
    }
    if let Ok(kernel) = &summary.kernel {
        proof(lines, summary, kernel);
    }
    match &summary.distinct {
        Ok(distinct) if *distinct < summary.bytes && lines.style.is_full => {
            let again = size(summary.bytes - distinct);
            lines.line().indent(2).plain(format!("{again} is mapped twice"));
        }
        // Each row that it concerns has a note.
        Ok(_) | Err(Reason::FrameHidden) => {}
        Err(reason) => {
            lines.line().indent(2).word(
                "",
                Role::Note,
                format!("whether frames are mapped more than once is unknown: {}", reason.cause()),
            );
        }
    }
    lazily_freed(lines, summary);
    if let Ok(droppable @ 1..) = summary.droppable {
        let line = lines.line();
        line.indent(2).plain("droppable: the kernel may discard ").push(Role::Size, size(droppable));
        line.plain(" at any time, whatever was written there (MAP_DROPPABLE)");
    }
    if let Ok(zeros @ 1..) = summary.zeros {
        let line = lines.line();
        line.indent(2).plain("zero-filled subpages of huge pages: MADV_DONTNEED frees ").push(Role::Size, size(zeros));
        line.plain("; MADV_NOHUGEPAGE on the region prevents them");
    }
    let mut beside: Vec<String> = Vec::new();
    if let Ok(tables) = &summary.page_tables {
        beside.push(format!("page tables {}", size(*tables)));
    }
    let amounts = summary.beside.iter().filter(|(_, bytes)| *bytes > 0);
    beside.extend(amounts.map(|(what, bytes)| {
        let compressed =
            (*what == BesideRss::Swapped).then_some(&summary.swap_compressed).and_then(|fact| fact.as_ref().ok());
        let compressed = compressed.map_or_else(String::new, |bytes| format!(" (about {} compressed)", size(*bytes)));
        format!("{} {}{compressed}", what.word().replace('_', " "), size(*bytes))
    }));
    beside.extend(beside_objects(&summary.unmapped, summary.unmapped_bound, summary.deleted_files));
    beside.extend(unmapped_folios(&summary.folio_rests));
    if !beside.is_empty() {
        lines.line().indent(2).plain(format!("not in the sum: {}", beside.join(", ")));
    }
    if summary.map_count_average {
        lines.line().indent(2).word("", Role::Warn, "for large folios, sharing is estimated from average map counts");
    }
    pages::remarks(lines, summary.cut_short, summary.changed);
}

/// What the kernel gets back of memory that was freed with MADV_FREE. A page that another process maps too is kept if
/// that process has written to it, which shows nowhere (`try_to_unmap_one` in mm/rmap.c looks at each mapping).
fn lazily_freed(lines: &mut Lines, summary: &AccountSummary) {
    let Ok(unwritten) = summary.lazy_free else {
        return;
    };
    let marked = summary.lazily_freed.as_ref().copied().unwrap_or(0);
    if unwritten == 0 && marked == 0 {
        return;
    }
    let elsewhere = summary.lazily_freed_elsewhere.as_ref().copied();
    let (up_to, now) = match elsewhere {
        Ok(0) => ("", unwritten),
        _ => ("up to ", unwritten),
    };
    let line = lines.line();
    line.indent(2).plain(format!("lazily freed: the kernel reclaims {up_to}")).push(Role::Size, size(now));
    line.plain(" when memory is short; MADV_DONTNEED (after a fork, in each process) frees it at once");
    match elsewhere {
        Ok(0) if marked > unwritten => {
            line.word("; ", Role::Plain, format!("{} were written since they were freed", size(marked - unwritten)));
        }
        Ok(elsewhere @ 1..) => {
            line.plain("; ").push(Role::Size, size(elsewhere));
            line.plain(" are mapped by other processes too, and stay if one of them has written there");
        }
        _ => {}
    }
}

/// The sum compared with the kernel's.
fn proof(lines: &mut Lines, summary: &AccountSummary, kernel: &AccountProof) {
    let is_exact = kernel.differing.is_empty() && kernel.before == kernel.after;
    if is_exact && !lines.style.is_full {
        return;
    }
    let line = lines.line();
    line.indent(2);
    if is_exact {
        line.word("", Role::Good, "the sums equal smaps_rollup").plain(format!(": {}", kernel.compared.join(", ")));
    } else if kernel.before == kernel.after && summary.bytes == kernel.after {
        line.plain(format!("the sum equals Rss of smaps_rollup, {}", size(kernel.after)));
    } else {
        let after = match kernel.after {
            after if after == kernel.before => String::new(),
            after => format!(", and {} after the count", difference(kernel.before, after)),
        };
        line.plain(format!("Rss of smaps_rollup: {}{after}", size(kernel.before)));
    }
    for check in kernel.differing.iter().filter(|check| check.field != "Rss") {
        let difference = difference(check.counted, check.kernel);
        lines.line().indent(4).plain(format!("{}: {}, {difference} in smaps_rollup", check.field, size(check.counted)));
    }
    for cause in &kernel.causes {
        lines.line().indent(4).word("", Role::Note, cause);
    }
    if let Some(vm_rss) = kernel.vm_rss.filter(|&vm_rss| vm_rss != kernel.after) {
        lines.line().indent(2).plain(format!("VmRSS is {}: the kernel updates its counters in batches", size(vm_rss)));
    }
}

/// `8 KiB more`: how much more `other` is than `one`, also where both round to the same amount.
fn difference(one: u64, other: u64) -> String {
    let what = if other > one { "more" } else { "less" };
    format!("{} {what}", size(one.abs_diff(other)))
}

/// `unmapped parts of objects at least 16 MiB`, `page cache of deleted files 2 MiB`
pub(super) fn beside_objects(
    unmapped: &Fact<u64>,
    bound: Option<&'static str>,
    deleted: Option<u64>,
) -> impl Iterator<Item = String> {
    let bound = bound.map_or_else(String::new, |bound| format!("{} ", if bound == AT_MOST { "up to" } else { bound }));
    let unmapped = unmapped.as_ref().ok().filter(|&&bytes| bytes > 0);
    let unmapped = unmapped.map(|bytes| format!("unmapped parts of objects {bound}{}", size(*bytes)));
    let deleted = deleted.filter(|&bytes| bytes > 0);
    unmapped.into_iter().chain(deleted.map(|bytes| format!("page cache of deleted files {}", size(bytes))))
}

/// `unmapped parts of large folios 16 MiB`
pub(super) fn unmapped_folios(bytes: &Fact<u64>) -> Option<String> {
    let bytes = *bytes.as_ref().ok().filter(|&&bytes| bytes > 0)?;
    Some(format!("unmapped parts of large folios {}", size(bytes)))
}
