//! The records of `account`, and how they are written.

use crate::command::named_pages::named_object;
use crate::kernel::Name;
use crate::render::Record;
use crate::render::bar::{BAR, bar};
use crate::render::columns::{Cell, Column, MakeCell, Table, amount, mapping_key, region_key};
use crate::render::text::Text;
use crate::render::text::block::after_file;
use crate::render::text::words::group_heading;
use crate::render::theme::Role;
use crate::render::units::{percent, size};
use crate::report::AccountClass::{
    Anonymous, Driver, Elsewhere, FileHere, FileOthers, FileUnclear, Forked, HeapFree, HeapInUse, HeapUnclear, Kernel,
    Merged, PrivateCopies, PrivateUnclear, Secret, ShmemHere, ShmemOthers, ShmemUnclear, Unclear,
};
use crate::report::record::record;
use crate::report::{AccountClass, BesideRss, Fact, Field, Numbers, Why};

/// What gives shared memory back, of one process or of several.
pub(super) const FREES_SHARED_MEMORY: &str = "munmap everywhere, and delete the file if it has one";
/// The same of pages of files.
pub(super) const FREES_FILE_PAGES: &str = "reclaim, if clean";
/// The same of pages of the kernel.
pub(super) const FREES_KERNEL_PAGES: &str = "never (kernel memory)";
/// A driver keeps its pages as long as its object is open or mapped, and so does secret memory, which is always locked
/// (secretmem_mmap in mm/secretmem.c): no reclaim frees them.
pub(super) const FREES_KEPT_MEMORY: &str = "munmap, closing";

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
        /// The device of the file or object, by mapping; absent for a System V segment.
        [optional] device: Option<String>,
        /// Its inode there, or the number of the segment: two objects may have one name.
        [optional] inode: Option<u64>,
        /// By region: the file after whose writable private mapping it lies, if it has no name itself.
        [optional] after: Option<Name>,
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
        /// Bytes that its memory in swap is compressed to, by the ratio of all that is in swap on the machine.
        swap_compressed: Fact<u64>,
        /// Bytes of page tables, for a whole process.
        page_tables: Fact<u64>,
        /// Bytes of objects in memory (memfds, tmpfs and the like) that are in no page table of the process, for a
        /// whole process. It maps these objects, or has descriptors of them.
        unmapped: Fact<u64>,
        /// Set if that is not exact: `at least`, `at most` or `about`.
        [optional] unmapped_bound: Option<&'static str>,
        /// Why there may be more.
        [flat] why: Why,
        /// Of deleted files that are open, bytes in the page cache that are in no page table of the process, with
        /// `full`.
        [optional] deleted_files: Option<u64>,
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
        text.row_of_share(&CLASSES, self, Some(words(self.class)), (self.bytes, self.of));
    }
}

impl Record for AccountGroup {
    fn write(&self, text: &mut Text) {
        write_group(text, &groups(self), self, &self.by, (self.bytes, self.of));
    }
}

/// A row of a group. Of regions, files and symbols many are small.
pub(super) fn write_group<T: Field>(text: &mut Text, table: &Table<T>, row: &T, by: &str, bytes: (u64, u64)) {
    match by {
        "region" | "mapping" | "symbol" => text.row_of_share(table, row, None, bytes),
        _ => text.row_with_notes(table, row),
    }
}

/// `account`
static CLASSES: Table<AccountRow> = Table::of(&[
    bytes("bytes").cell(|_, row| Cell::size(row.bytes)),
    SHARE.cell(|_, row| share(row.bytes, row.of)),
    BAR.cell(|_, row| bar(row.bytes, row.of)),
    Column::word("class", 27, Role::Plain).cell(|_, row| Cell::new(words(row.class))),
    Column::word("freed by", 34, Role::Plain).cell(|_, row| freed_in_parts(row)),
]);

/// `account … by KEY`
static GROUPS: Table<AccountGroup> = Table::of(&[
    bytes("bytes").cell(|_, row| Cell::size(row.bytes)),
    SHARE.rank(1).cell(|_, row| share(row.bytes, row.of)),
    BAR.cell(|_, row| bar(row.bytes, row.of)),
    bytes("anon").cell(|_, row| sum(row, ANON)),
    bytes("forked").cell(|_, row| sum(row, FORKED)),
    bytes("shmem").cell(|_, row| sum(row, SHMEM)),
    bytes("file").cell(|_, row| sum(row, FILE)),
    bytes("other").rank(2).cell(|_, row| sum(row, OTHER)),
]);

/// The classes of each column.
const ANON: &[AccountClass] = &[Anonymous, HeapInUse, HeapFree, HeapUnclear, PrivateCopies];
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
        "region" => match &group.after {
            Some(file) => region_key(format!("{} {}", group.key, after_file(file))),
            None => region_key(&*group.key),
        },
        "mapping" => mapping_key(named_object(&group.key, group.inode)),
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
        HeapInUse => "pages with chunks in use",
        HeapFree => "heap pages, all free",
        HeapUnclear => "anonymous, heap or not",
        PrivateCopies => "private copies, exclusive",
        Forked => "shared since a fork",
        Merged => "merged (KSM)",
        PrivateUnclear => "anonymous, here or shared",
        ShmemHere => "shared memory, only here",
        ShmemOthers => "shared memory, with others",
        ShmemUnclear => "shared memory, unknown",
        FileHere => "file pages, only here",
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
        Anonymous | HeapUnclear => "free (see `heap`) or munmap",
        HeapInUse => "free; malloc_trim too, but for large chunks",
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

/// `free or munmap (1.2 GiB of it on huge pages, 300 MiB lazily freed)`
fn freed_in_parts(row: &AccountRow) -> Cell<'static> {
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
    let mut of_it = " of it";
    let parts = known.filter(|(bytes, _)| *bytes > 0).map(|(bytes, what)| {
        let of_it = std::mem::take(&mut of_it);
        format!("{}{of_it} {what}", size(bytes))
    });
    Cell::new(match &*parts.collect::<Vec<_>>().join(", ") {
        "" => row.freed_by.to_owned(),
        parts => format!("{} ({parts})", row.freed_by),
    })
}

/// `redis-server (812) has 6 GiB in memory: 4 GiB (67 %) is anonymous, exclusive`; of a range `heap of redis-server …`.
pub(super) fn answer(range: Option<&str>, summary: &AccountSummary, largest: Option<(AccountClass, u64)>) -> String {
    let at_most = if summary.may_be_zeros.is_some() { "up to " } else { "" };
    let whole = summary.bytes;
    let most = largest.map(|(class, bytes)| of_which_most(bytes, whole, words(class)));
    let used = size(whole);
    let of = range.map_or_else(String::new, |range| format!("{range} of "));
    format!("{of}{} ({}) has {at_most}{used} in memory{}", summary.process, summary.pid, most.unwrap_or_default())
}

/// `: 4 GiB (67 %) is anonymous, exclusive`
pub(super) fn of_which_most(bytes: u64, whole: u64, class: &str) -> String {
    let share = percent(bytes, whole).unwrap_or_default();
    format!(": {} ({share}) is {class}", size(bytes))
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;
    use crate::report::Reason;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![
            Box::new(account_row()),
            Box::new(account_group()),
            Box::new(AccountGroup { bytes: 4096, key: "[vdso]".into(), ..account_group() }),
            Box::new(AccountGroup {
                by: "region".into(),
                key: "0x408000..0x1450000 rw-p".into(),
                after: Some("/usr/bin/redis-server".into()),
                ..account_group()
            }),
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
            device: Some("08:01".into()),
            inode: Some(1030),
            after: None,
            bytes: 1_400_000,
            of: 16 << 20,
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
            swap_compressed: Ok(1 << 20),
            page_tables: Ok(12 << 20),
            unmapped: Ok(16 << 20),
            unmapped_bound: Some("at least"),
            why: Why::default(),
            deleted_files: Some(2 << 20),
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
            swap_compressed: Err(Reason::NotApplicable("nothing is in swap")),
            page_tables: Err(Reason::NotOnThisKernel("/proc/PID/status does not show it".into())),
            unmapped: Err(Reason::NotApplicable("objects in memory are searched only for a whole process")),
            unmapped_bound: None,
            why: Why::default(),
            deleted_files: None,
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
        let columns = [ANON, FORKED, SHMEM, FILE, OTHER];
        for class in AccountClass::ALL {
            assert_eq!(columns.iter().filter(|column| column.contains(class)).count(), 1, "{class:?}");
        }
        assert_eq!(FORKED, [Forked]);
    }
}
