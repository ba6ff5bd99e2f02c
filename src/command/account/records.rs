//! The records of `account`, and how they are written.

use crate::kernel::{Name, PageSize};
use crate::render::Record;
use crate::render::bar::{BAR, bar};
use crate::render::columns::{Cell, Column, MakeCell, Table, amount, mapping_key, region_key};
use crate::render::text::lines::Lines;
use crate::render::text::words::group_heading;
use crate::render::text::{Text, pages};
use crate::render::theme::Role;
use crate::render::units::{percent, size};
use crate::report::AccountClass::{
    Anonymous, Driver, Elsewhere, FileHere, FileOthers, FileUnclear, Forked, HeapFree, HeapInUse, HeapUnclear, Kernel,
    Merged, PrivateCopies, PrivateUnclear, Secret, ShmemHere, ShmemOthers, ShmemUnclear, Unclear,
};
use crate::report::record::record;
use crate::report::{AccountClass, BesideRss, Fact, Numbers, Reason};

/// What gives shared memory back, of one process or of several.
pub(super) const FREES_SHARED_MEMORY: &str = "munmap everywhere, and delete the file if it has one";
/// The same of pages of files.
pub(super) const FREES_FILE_PAGES: &str = "reclaim, if clean";
/// The same of pages of the kernel.
pub(super) const FREES_KERNEL_PAGES: &str = "never (kernel memory)";
/// A driver keeps its pages as long as its object is open or mapped, and so does secret memory, which is always locked
/// (secretmem_mmap in mm/secretmem.c): no reclaim frees them.
pub(super) const FREES_KEPT_MEMORY: &str = "the end of all mappings and descriptors";

record! {
    /// A row of `account`.
    pub struct AccountRow as "account" with why if any {
        /// The class.
        class: AccountClass,
        /// Bytes that are mapped: a frame that is mapped twice counts twice, as in Rss.
        bytes: u64,
        /// All bytes of the account, for the share of this class.
        of: u64,
        /// Of these, bytes mapped as huge pages, by one PMD each.
        huge: Fact<u64>,
        /// Bytes that the next write of this process copies.
        to_copy: Fact<u64>,
        /// Bytes freed with MADV_FREE. The mark stays if they are written again.
        lazily_freed: Fact<u64>,
        /// Bytes of droppable memory (MAP_DROPPABLE).
        droppable: Fact<u64>,
        /// Bytes that this process has locked into memory, in regions with the flag `lo` of smaps.
        locked: Fact<u64>,
        /// Bytes of files that are not on disk yet.
        dirty: Fact<u64>,
        /// Bytes of frames that this process maps several times.
        several: Fact<u64>,
        /// Bytes that only this process and pmdb itself map.
        with_pmdb: Fact<u64>,
        /// Bytes of zero-filled subpages of huge pages, with `with content`.
        zeros: Fact<u64>,
        /// The action that frees the memory.
        freed_by: &'static str,
    }

    /// A row of `account … by KEY`.
    pub struct AccountGroup as "account-group" {
        /// The key: `region`, `mapping`, …
        by: String,
        /// Its value for this group.
        key: String,
        /// Bytes that are mapped.
        bytes: u64,
        /// All bytes of the account.
        of: u64,
        /// The bytes in each class that has any.
        classes: Numbers<AccountClass>,
    }

    /// The sum of `account`, and its comparison with the kernel's.
    pub struct AccountSummary as "account-summary" with why {
        /// The process.
        pid: u32,
        /// Its name.
        process: Name,
        /// The bytes of all classes.
        bytes: u64,
        /// Of these, bytes of an unknown kind that may be zero pages, which Rss does not count.
        [optional] may_be_zeros: Option<u64>,
        /// Bytes of the different frames among them.
        distinct: Fact<u64>,
        /// Bytes that Rss does not count. Those of drivers and of kernel data are the addresses that they span.
        beside: Numbers<BesideRss>,
        /// Bytes of page tables, for a whole process.
        page_tables: Fact<u64>,
        /// Bytes of objects in memory (memfds, tmpfs and the like) that are in no page table of the process, for a
        /// whole process. It maps these objects, or has descriptors of them.
        unmapped: Fact<u64>,
        /// Set if that is not exact: `at least`, `at most` or `about`.
        [optional] unmapped_bound: Option<&'static str>,
        /// Bytes of large anonymous folios that nobody maps, while another part of the folio is mapped: of huge pages
        /// that were given back in part.
        folio_rests: Fact<u64>,
        /// Bytes that are marked as freed with MADV_FREE.
        lazily_freed: Fact<u64>,
        /// Of these, bytes that other processes map too: the kernel keeps what one of them has written.
        lazily_freed_elsewhere: Fact<u64>,
        /// Of those that are marked, bytes that this process has not written since (LazyFree of smaps_rollup), for a
        /// whole process.
        lazy_free: Fact<u64>,
        /// Bytes of droppable memory (MAP_DROPPABLE), which the kernel may discard at any time.
        droppable: Fact<u64>,
        /// Bytes of zero-filled subpages of huge pages, with `with content`.
        zeros: Fact<u64>,
        /// The comparison with smaps_rollup, for a whole process.
        kernel: Fact<AccountProof>,
        /// Whether some sharing rests on map counts that are averages over large folios.
        map_count_average: bool,
        /// Whether regions changed during the command.
        changed: bool,
        /// Whether the command was interrupted: the account is then of the first part.
        cut_short: bool,
    }

    /// The account of a process compared with smaps_rollup.
    pub struct AccountProof within "kernel" {
        /// Rss before the count.
        before: u64,
        /// Rss after it.
        after: u64,
        /// VmRSS of status, whose counters the kernel updates in batches.
        vm_rss: Option<u64>,
        /// Whether the process was stopped.
        stopped: bool,
        /// The fields that were compared.
        compared: Vec<&'static str>,
        /// Sums that differ.
        differing: Vec<AccountCheck>,
        /// Known causes of a difference.
        causes: Vec<String>,
    }

    /// An amount that differs from the kernel's.
    #[derive(Eq)]
    pub struct AccountCheck {
        /// The field of smaps, or the sum of several.
        field: &'static str,
        /// Bytes counted.
        counted: u64,
        /// Bytes of the kernel.
        kernel: u64,
    }
}

impl Record for AccountRow {
    fn write(&self, text: &mut Text) {
        text.row_of_share(&CLASSES, self, words(self.class), self.bytes, self.of);
    }
}

impl Record for AccountGroup {
    fn write(&self, text: &mut Text) {
        text.row(&groups(self), self);
    }
}

impl Record for AccountSummary {
    fn write(&self, text: &mut Text) {
        text.line(summary, self);
        text.notes();
    }

    fn totals(&self, page: PageSize) -> Vec<(&'static str, u64)> {
        vec![("_pages", page.pages_in(self.bytes)), ("_bytes", self.bytes)]
    }
}

/// `account`
static CLASSES: Table<AccountRow> = Table::of(&[
    bytes("bytes").cell(|_, row| Cell::size(row.bytes)),
    SHARE.cell(|_, row| share(row.bytes, row.of)),
    BAR.cell(|_, row| bar(row.bytes, row.of)),
    Column::word("class", 27, Role::Plain).cell(|_, row| Cell::new(words(row.class))),
    Column::word("of which; freed by", 34, Role::Plain).cell(|_, row| of_which(row)),
]);

/// `account … by KEY`
static GROUPS: Table<AccountGroup> = Table::of(&[
    bytes("bytes").cell(|_, row| Cell::size(row.bytes)),
    SHARE.rank(1).cell(|_, row| share(row.bytes, row.of)),
    BAR.cell(|_, row| bar(row.bytes, row.of)),
    bytes("own").cell(|_, row| sum(row, OWN)),
    bytes("forked").cell(|_, row| sum(row, FORKED)),
    bytes("shmem").cell(|_, row| sum(row, SHMEM)),
    bytes("file").cell(|_, row| sum(row, FILE)),
    bytes("other").rank(2).cell(|_, row| sum(row, OTHER)),
]);

/// The classes of each column.
const OWN: &[AccountClass] = &[Anonymous, HeapInUse, HeapFree, HeapUnclear, PrivateCopies];
const FORKED: &[AccountClass] = &[Forked];
const SHMEM: &[AccountClass] = &[ShmemHere, ShmemOthers, ShmemUnclear];
const FILE: &[AccountClass] = &[FileHere, FileOthers, FileUnclear];
const OTHER: &[AccountClass] = &[Merged, PrivateUnclear, Kernel, Driver, Secret, Elsewhere, Unclear];

const SHARE: Column = Column::number("share", 6, Role::Plain);

pub(super) const fn bytes(title: &'static str) -> Column {
    Column::number(title, 8, Role::Size)
}

/// The table of a group.
fn groups(group: &AccountGroup) -> Table<AccountGroup> {
    let key: MakeCell<AccountGroup> = |_, group| match group.by.as_str() {
        "region" => region_key(&group.key),
        "mapping" => mapping_key(&group.key),
        _ => Cell::new(&group.key),
    };
    let width = if group.by == "region" { "0x7fffdeadb000 rw-p [heap]".len() } else { 20 };
    GROUPS.by([Some(Column::word(group_heading(&group.by), width, Role::Plain).cell(key)), None])
}

pub(super) fn share(part: u64, whole: u64) -> Cell<'static> {
    percent(part, whole).map_or_else(|| Cell::of(Role::Dim, "-"), Cell::new)
}

fn sum(group: &AccountGroup, classes: &[AccountClass]) -> Cell<'static> {
    let of = group.classes.iter().filter(|(class, _)| classes.contains(class));
    amount(of.map(|(_, bytes)| bytes).sum())
}

/// A class in a few words.
pub(super) fn words(class: AccountClass) -> &'static str {
    match class {
        Anonymous => "anonymous, exclusive",
        HeapInUse => "heap pages, in use",
        HeapFree => "heap pages, free",
        HeapUnclear => "anonymous, heap or not",
        PrivateCopies => "private copies, exclusive",
        Forked => "shared since a fork",
        Merged => "merged (KSM)",
        PrivateUnclear => "anonymous, here or shared",
        ShmemHere => "shared memory, exclusive",
        ShmemOthers => "shared memory, with others",
        ShmemUnclear => "shared memory, unknown",
        FileHere => "file pages, exclusive",
        FileOthers => "file pages, with others",
        FileUnclear => "file pages, unknown",
        Kernel => "of the kernel (vdso)",
        Driver => "of drivers",
        Secret => "secret memory",
        Elsewhere => "migrating, device, failed",
        _ => "of unknown kind",
    }
}

/// The note where `with heap` has found nothing.
pub(super) const NO_HEAP: &str = "no page of it is in a heap of glibc: try `heap`, which names other allocators";

/// What gives the memory of a class back.
pub(super) fn freed_by(class: AccountClass) -> &'static str {
    match class {
        Anonymous | HeapUnclear => "free or munmap",
        HeapInUse => "free, then malloc_trim",
        HeapFree => "malloc_trim",
        PrivateCopies => "munmap",
        Forked => "free or munmap by all that share it",
        Merged => "munmap by all that share it",
        ShmemHere | ShmemOthers | ShmemUnclear => FREES_SHARED_MEMORY,
        FileHere | FileOthers | FileUnclear => FREES_FILE_PAGES,
        Kernel => FREES_KERNEL_PAGES,
        Driver | Secret => FREES_KEPT_MEMORY,
        _ => "munmap",
    }
}

/// `1.2 GiB huge, 300 MiB lazily freed; free or munmap`
fn of_which(row: &AccountRow) -> Cell<'static> {
    let marks: [(&Fact<u64>, &str); 9] = [
        (&row.huge, "on huge pages"),
        (&row.zeros, "zero-filled subpages of these"),
        (&row.to_copy, "to copy on write"),
        (&row.lazily_freed, "lazily freed"),
        (&row.droppable, "droppable"),
        (&row.locked, "locked"),
        (&row.dirty, "dirty"),
        (&row.several, "mapped several times here"),
        (&row.with_pmdb, "mapped only here and by pmdb"),
    ];
    let known = marks.iter().filter_map(|(bytes, what)| Some((*bytes.as_ref().ok()?, what)));
    let parts: Vec<String> =
        known.filter(|(bytes, _)| *bytes > 0).map(|(bytes, what)| format!("{} {what}", size(bytes))).collect();
    let parts = parts.join(", ");
    Cell::new(if parts.is_empty() { row.freed_by.to_owned() } else { format!("{parts}; {}", row.freed_by) })
}

/// `redis-server (812) has 6 GiB in memory: 4 GiB (67 %) is anonymous, exclusive`
pub(super) fn answer(summary: &AccountSummary, largest: Option<(AccountClass, u64)>) -> String {
    let at_most = if summary.may_be_zeros.is_some() { "at most " } else { "" };
    let whole = summary.bytes;
    let most = largest.map(|(class, bytes)| of_which_most(bytes, whole, words(class)));
    let used = size(whole);
    format!("{} ({}) has {at_most}{used} in memory{}", summary.process, summary.pid, most.unwrap_or_default())
}

/// `: 4 GiB (67 %) is anonymous, exclusive`
pub(super) fn of_which_most(bytes: u64, whole: u64, class: &str) -> String {
    let share = percent(bytes, whole).unwrap_or_default();
    format!(": {} ({share}) is {class}", size(bytes))
}

/// The proof of the sum, the frames, and what stands beside.
fn summary(lines: &mut Lines, summary: &AccountSummary) {
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
    beside.extend(amounts.map(|(what, bytes)| format!("{} {}", what.word().replace('_', " "), size(*bytes))));
    beside.extend(unmapped(&summary.unmapped, summary.unmapped_bound));
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
    let (at_most, now) = match elsewhere {
        Ok(0) => ("", unwritten),
        Ok(elsewhere) => ("at most ", unwritten.min(marked.saturating_sub(elsewhere))),
        Err(_) => ("at most ", unwritten),
    };
    let line = lines.line();
    line.indent(2).plain(format!("lazily freed: the kernel reclaims {at_most}")).push(Role::Size, size(now));
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
    // A running process changes a little while it is read.
    let is_near = |one: u64, other: u64| one.abs_diff(other) <= kernel.after / 100;
    let is_near = is_near(kernel.before, kernel.after)
        && kernel.differing.iter().all(|check| is_near(check.counted, check.kernel));
    if (is_exact || is_near && kernel.causes.is_empty()) && !lines.style.is_full {
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

/// `unmapped parts of objects: at least 16 MiB`
pub(super) fn unmapped(bytes: &Fact<u64>, bound: Option<&'static str>) -> Option<String> {
    let bytes = *bytes.as_ref().ok().filter(|&&bytes| bytes > 0)?;
    let bound = bound.map_or_else(String::new, |bound| format!("{bound} "));
    Some(format!("unmapped parts of objects {bound}{}", size(bytes)))
}

/// `unmapped parts of large folios 16 MiB`
pub(super) fn unmapped_folios(bytes: &Fact<u64>) -> Option<String> {
    let bytes = *bytes.as_ref().ok().filter(|&&bytes| bytes > 0)?;
    Some(format!("unmapped parts of large folios {}", size(bytes)))
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![
            Box::new(account_row()),
            Box::new(account_group()),
            Box::new(account_summary()),
            Box::new(account_summary_differing()),
        ]
    }

    /// A row with marks.
    fn account_row() -> AccountRow {
        let unknown = Reason::not_permitted("cannot open /proc/kpageflags: permission denied");
        AccountRow {
            class: AccountClass::Forked,
            bytes: 1_610_612_736,
            of: 6 << 30,
            huge: Ok(1 << 30),
            to_copy: Ok(1_610_612_736),
            lazily_freed: Err(unknown.clone()),
            droppable: Ok(0),
            locked: Err(unknown),
            dirty: Ok(0),
            several: Ok(0),
            with_pmdb: Ok(0),
            zeros: Err(Reason::NotApplicable("contents were not looked at")),
            freed_by: "free or munmap by all that share it",
        }
    }

    /// A row of `by mapping`.
    fn account_group() -> AccountGroup {
        AccountGroup {
            by: "mapping".into(),
            key: "/usr/lib/x86_64-linux-gnu/libc.so.6".into(),
            bytes: 1_400_000,
            of: 6 << 30,
            classes: Numbers(vec![(AccountClass::PrivateCopies, 24 << 10), (AccountClass::FileOthers, 1_375_424)]),
        }
    }

    /// The sum of a stopped process.
    fn account_summary() -> AccountSummary {
        let compared = vec!["Rss", "Anonymous", "Private", "Shared", "KSM", "Huge", "Hugetlb"];
        AccountSummary {
            pid: 812,
            process: Name::from("redis-server"),
            bytes: 6 << 30,
            may_be_zeros: None,
            distinct: Ok((6 << 30) - (100 << 20)),
            beside: Numbers(vec![(BesideRss::Hugetlb, 0), (BesideRss::Swapped, 3 << 20), (BesideRss::ZeroPages, 4096)]),
            page_tables: Ok(12 << 20),
            unmapped: Ok(16 << 20),
            unmapped_bound: Some("at least"),
            folio_rests: Ok(1 << 20),
            lazily_freed: Ok(300 << 20),
            lazily_freed_elsewhere: Ok(0),
            lazy_free: Ok(280 << 20),
            droppable: Ok(16 << 10),
            zeros: Ok(90 << 20),
            kernel: Ok(AccountProof {
                before: 6 << 30,
                after: 6 << 30,
                vm_rss: Some((6 << 30) + 4096),
                stopped: true,
                compared,
                differing: Vec::new(),
                causes: Vec::new(),
            }),
            map_count_average: false,
            changed: false,
            cut_short: false,
        }
    }

    /// The sum of a process that ran meanwhile, without rights.
    fn account_summary_differing() -> AccountSummary {
        let check = |field, counted, kernel| AccountCheck { field, counted, kernel };
        AccountSummary {
            may_be_zeros: Some(164 << 10),
            distinct: Err(Reason::FrameHidden),
            beside: Numbers(Vec::new()),
            page_tables: Err(Reason::NotOnThisKernel("/proc/PID/status does not show it".into())),
            unmapped: Err(Reason::NotApplicable("objects in memory are searched only for a whole process")),
            unmapped_bound: None,
            folio_rests: Err(Reason::FrameHidden),
            lazily_freed: Err(Reason::FrameHidden),
            lazily_freed_elsewhere: Err(Reason::FrameHidden),
            lazy_free: Ok(4 << 20),
            droppable: Ok(0),
            zeros: Err(Reason::NotApplicable("contents were not looked at")),
            kernel: Ok(AccountProof {
                before: 5 << 30,
                after: 7 << 30,
                vm_rss: None,
                stopped: false,
                compared: vec!["Rss", "Anonymous"],
                differing: vec![check("Rss", 6 << 30, 7 << 30), check("Anonymous", 5 << 30, 6 << 30)],
                causes: vec!["the kernel's sums changed during the count".into()],
            }),
            map_count_average: true,
            changed: true,
            cut_short: true,
            ..account_summary()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Merged pages need no fork.
    #[test]
    fn each_class_is_in_one_column() {
        let columns = [OWN, FORKED, SHMEM, FILE, OTHER];
        for class in AccountClass::ALL {
            assert_eq!(columns.iter().filter(|column| column.contains(class)).count(), 1, "{class:?}");
        }
        assert_eq!(FORKED, [Forked]);
    }
}
