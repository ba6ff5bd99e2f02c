//! The records of the account of several processes, and how they are written.

use super::records::{bytes, of_which_most, share, write_group};
use super::summary_text::{beside_objects, unmapped_folios};
use crate::command::named_pages::named_object;
use crate::command::ps;
use crate::kernel::{Name, PageSize};
use crate::render::Record;
use crate::render::bar::{BAR, bar};
use crate::render::columns::{Cell, Column, MakeCell, Table, mapping_key, region_key};
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::text::words::group_heading;
use crate::render::theme::Role;
use crate::render::units::{counted, percent, size};
use crate::report::record::record;
use crate::report::{Fact, FamilyClass, Why};

record! {
    /// A row of `account children` and the like: memory of several processes, each frame once.
    pub struct AccountFamilyClass as "account-family-class" with why if any {
        /// The class.
        class: FamilyClass,
        /// Bytes of different frames.
        bytes: u64,
        /// All bytes, for the share of this class.
        of: u64,
        /// Bytes of all mappings of these frames, as the Rss of the processes counts them.
        mapped: u64,
        /// Of the frames, bytes that other processes map too.
        outside: Fact<u64>,
        /// The action that frees the memory.
        freed_by: &'static str,
    }

    /// A row of `account children by KEY` and the like.
    pub struct AccountFamilyGroup as "account-family-group" with why if any {
        /// The key: `mapping`, `node`, …
        by: String,
        /// Its value for this group.
        key: String,
        /// The process of a region.
        [optional] pid: Option<u32>,
        /// The device of the file or object; absent for a System V segment.
        [optional] device: Option<String>,
        /// Its inode there, or the number of the segment: two objects may have one name.
        [optional] inode: Option<u64>,
        /// Bytes of different frames.
        bytes: u64,
        /// All bytes, for the share of this group.
        of: u64,
        /// Bytes of all mappings of these frames, as the Rss of the processes counts them.
        mapped: u64,
        /// Of the frames, bytes that only one of the processes maps.
        in_one: u64,
        /// Of the frames, bytes that other processes map too.
        outside: Fact<u64>,
        /// The number of processes that map some of it, by mapping.
        [optional] processes: Option<u64>,
        /// These processes, if they are few.
        [optional] pids: Option<Vec<u32>>,
        /// Its NUMA nodes, by mapping, those with the most first; frames of an unknown node are left out.
        nodes: Vec<BytesOnNode>,
    }

    /// Memory on a NUMA node.
    #[derive(Eq)]
    pub struct BytesOnNode {
        /// The node.
        node: u32,
        /// Bytes on it.
        bytes: u64,
    }

    /// A process of `account children` and the like.
    pub struct AccountMember as "account-process" with why if any {
        /// The process.
        pid: u32,
        /// Its name.
        process: Name,
        /// Its command line, if several of the processes have this name.
        [optional] command_line: Option<Name>,
        /// Bytes that it maps, as Rss counts them.
        rss: u64,
        /// Bytes that no other process maps.
        alone: Fact<u64>,
        /// Of these, private memory, which ends with the process.
        ends: Fact<u64>,
        /// Its proportional share, if frame numbers are hidden.
        [optional] pss: Option<u64>,
        /// Other processes with the same address space.
        same_memory: Vec<u32>,
    }

    /// The sums of `account children` and the like.
    pub struct AccountFamily as "account-family" with why {
        /// Processes that were counted.
        processes: u64,
        /// Their address spaces, each counted once.
        address_spaces: u64,
        /// Bytes of their memory, each frame once. If frame numbers are hidden, the sum of Pss.
        bytes: u64,
        /// Whether `bytes` is only a lower bound.
        lower_bound: bool,
        /// The sum of their Rss.
        rss: u64,
        /// Of `bytes`, memory that other processes map too.
        outside: Fact<u64>,
        /// Memory of the hugetlb pool, which is not in `bytes` and not in `rss`; shared pages count for each process.
        hugetlb: u64,
        /// Bytes of objects in memory (memfds, tmpfs and the like) that are in no page table of the processes. They map
        /// these objects, or have descriptors of them.
        unmapped: Fact<u64>,
        /// Set if that is not exact: `at least`, `at most` or `about`.
        [optional] unmapped_bound: Option<&'static str>,
        /// Why there may be more.
        [flat] why: Why,
        /// Of deleted files that are open, bytes in the page cache that are in no page table of the processes, with
        /// `full`.
        [optional] deleted_files: Option<u64>,
        /// Bytes of large anonymous folios that nobody maps, while another part of the folio is mapped: of huge pages
        /// that were given back in part.
        folio_rests: Fact<u64>,
        /// Whether frame numbers are hidden.
        hidden: bool,
        /// Processes that may not be examined.
        refused: u64,
        /// Processes that ended before or during the count.
        ended: u64,
        /// Kernel threads: they have no memory of their own.
        kernel_threads: u64,
        /// Whether the kernel shows which processes share one address space.
        compared: bool,
        /// Processes that were not counted to their end because of an interruption.
        not_counted: u64,
    }

    /// The memory that is charged to the cgroup of `account cgroup`.
    pub struct AccountCgroup as "account-cgroup" with why {
        /// Its path.
        path: Name,
        /// memory.current, or memory.usage_in_bytes of cgroup v1.
        current: Fact<u64>,
        /// Its limit; `null` without a reason if it has none.
        limit: Fact<Option<u64>>,
        /// Its peak.
        peak: Fact<u64>,
        /// Number of its processes that the OOM killer has killed.
        killed: Fact<u64>,
        /// Anonymous memory (memory.stat).
        anon: Fact<u64>,
        /// The page cache, with shared memory.
        file: Fact<u64>,
        /// Of this, shared memory.
        shmem: Fact<u64>,
        /// Of the page cache, what some process maps.
        file_mapped: Fact<u64>,
        /// The page cache that no process maps.
        unmapped_file: Fact<u64>,
        /// Memory of the kernel: stacks, page tables, slabs.
        kernel: Fact<u64>,
        /// Memory in swap that zswap holds, in bytes as it was (Linux 5.19 and later).
        zswapped: Fact<u64>,
        /// The compressed size of this, in bytes.
        zswap: Fact<u64>,
        /// The sum of the rows `account-charge`: what was found of the charged memory.
        found: Fact<u64>,
        /// Of what its processes map, bytes that are charged to other groups, or to none.
        charged_elsewhere: Fact<u64>,
        /// Processes of the group in another PID namespace, which are not among those that are counted.
        outside: Fact<u64>,
        /// Whether it is the root of the hierarchy, of which the kernel does not count all.
        is_root: bool,
    }
}

impl Record for AccountFamilyClass {
    fn write(&self, text: &mut Text) {
        text.row_of_share(&CLASSES, self, Some(words(self.class)), (self.bytes, self.of));
    }
}

static CLASSES: Table<AccountFamilyClass> = Table::of(&[
    bytes("bytes").cell(|_, row| Cell::size(row.bytes)),
    Column::number("share", 6, Role::Plain).cell(|_, row| share(row.bytes, row.of)),
    BAR.cell(|_, row| bar(row.bytes, row.of)),
    bytes("in rss").cell(|_, row| Cell::size(row.mapped)),
    Column::word("class", 29, Role::Plain).cell(|_, row| Cell::new(words(row.class))),
    Column::word("freed by", 34, Role::Plain).cell(|_, row| freed_in_parts(row)),
]);

impl Record for AccountFamilyGroup {
    fn write(&self, text: &mut Text) {
        let without = if self.processes.is_none() { Some(PROCESSES) } else { None };
        let node: MakeCell<AccountFamilyGroup> = |_, row| Cell::new(nodes(row));
        let node = self.processes.map(|_| Column::word("node", 4, Role::Plain).rank(1).cell(node));
        let key: MakeCell<AccountFamilyGroup> = |_, row| group_key(row);
        let heading = Column::word(group_heading(&self.by), 26, Role::Name).cell(key);
        let table = GROUPS.without(without).by([node, Some(heading)]);
        write_group(text, &table, self, &self.by, (self.bytes, self.of));
    }
}

const PROCESSES: &str = "processes";

static GROUPS: Table<AccountFamilyGroup> = Table::of(&[
    bytes("bytes").cell(|_, row| Cell::size(row.bytes)),
    // It follows from the bytes.
    Column::number("share", 6, Role::Plain).rank(3).repeats().cell(|_, row| share(row.bytes, row.of)),
    BAR.cell(|_, row| bar(row.bytes, row.of)),
    bytes("in rss").cell(|_, row| Cell::size(row.mapped)),
    Column::number("in one", 8, Role::Size).cell(|_, row| Cell::size(row.in_one)),
    Column::number("outside", 8, Role::Size).rank(2).cell(|_, row| size_cell(&row.outside)),
    Column::word(PROCESSES, 9, Role::Plain).uncut(27).cell(|style, row| processes(row, style.is_narrow())),
]);

/// `812, 815`, or their number
fn processes(row: &AccountFamilyGroup, is_narrow: bool) -> Cell<'static> {
    let Some(number) = row.processes else {
        return Cell::of(Role::Dim, "-");
    };
    match &row.pids {
        Some(pids) if !is_narrow => Cell::new(pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
        _ if is_narrow => Cell::count(number),
        _ => Cell::new(counted(number, "process")),
    }
}

/// `0`, or `0 (60 %), 1`
fn nodes(row: &AccountFamilyGroup) -> String {
    let words = row.nodes.iter().map(|one| match (&row.nodes[..], one.bytes) {
        ([_], _) => one.node.to_string(),
        (_, bytes) => format!("{} ({})", one.node, percent(bytes, row.bytes).unwrap_or_default()),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The name, with the process of a region, or the inode of an object.
fn group_key(row: &AccountFamilyGroup) -> Cell<'_> {
    match row.pid {
        Some(pid) => region_key(format!("{pid} {}", row.key)).into_owned(),
        None => mapping_key(named_object(&row.key, row.inode)),
    }
}

fn words(class: FamilyClass) -> &'static str {
    match class {
        FamilyClass::PrivateOne => "private memory of one process",
        FamilyClass::PrivateSeveral => "private memory of several",
        FamilyClass::HeapInUse => "pages with chunks in use",
        FamilyClass::HeapFree => "heap pages, all free",
        FamilyClass::HeapUnclear => "anonymous, heap or not",
        FamilyClass::Merged => "merged (KSM)",
        FamilyClass::ShmemOne => "shared memory of one process",
        FamilyClass::ShmemSeveral => "shared memory of several",
        FamilyClass::FileOne => "file pages of one process",
        FamilyClass::FileSeveral => "file pages of several",
        FamilyClass::Kernel => "of the kernel (vdso)",
        FamilyClass::Driver => "of drivers",
        FamilyClass::Secret => "secret memory",
        FamilyClass::Elsewhere => "migrating, device, failed",
        _ => "of unknown kind",
    }
}

/// Whether the end of all processes that map it frees the memory.
fn is_freed_by_exit(class: FamilyClass) -> bool {
    use FamilyClass::{HeapFree, HeapInUse, HeapUnclear, Merged, PrivateOne, PrivateSeveral};
    matches!(class, PrivateOne | PrivateSeveral | HeapInUse | HeapFree | HeapUnclear | Merged)
}

/// What frees it, and how much of it others keep or map.
fn freed_in_parts(row: &AccountFamilyClass) -> Cell<'static> {
    Cell::new(match row.outside {
        // The end of the counted processes alone does not free it.
        Ok(outside) if outside > 0 && is_freed_by_exit(row.class) => {
            format!("{}, but for {} that other processes keep", row.freed_by, size(outside))
        }
        Ok(outside) if outside > 0 && row.class != FamilyClass::Kernel => {
            format!("{} (others map {} of it too)", row.freed_by, size(outside))
        }
        _ => row.freed_by.to_owned(),
    })
}

impl Record for AccountMember {
    fn write(&self, text: &mut Text) {
        // Pss is shown where frames are hidden: nothing is known of the end then.
        let without = if self.pss.is_some() { FREED_AT_EXIT } else { PSS };
        text.row_with_notes(&MEMBERS.without(Some(without)), self);
    }
}

const PID: Column = Column::number("pid", 8, Role::Plain);
const PSS: &str = "pss";
const FREED_AT_EXIT: &str = "freed at exit";

static MEMBERS: Table<AccountMember> = Table::of(&[
    PID.cell(|_, row| Cell::of(Role::Plain, row.pid.to_string())),
    bytes("rss").cell(|_, row| Cell::size(row.rss)),
    bytes(PSS).cell(|_, row| row.pss.map_or_else(|| Cell::of(Role::Dim, "-"), Cell::size)),
    bytes("uss").cell(|_, row| size_cell(&row.alone)),
    Column::number(FREED_AT_EXIT, 13, Role::Size).cell(|_, row| size_cell(&row.ends)),
    Column::word("process", 16, Role::Name).cell(|_, row| process(row)),
]);

fn size_cell(bytes: &Fact<u64>) -> Cell<'static> {
    match bytes {
        Ok(bytes) => Cell::size(*bytes),
        Err(_) => Cell::of(Role::Dim, "?"),
    }
}

fn process(row: &AccountMember) -> Cell<'static> {
    let others: Vec<String> = row.same_memory.iter().map(u32::to_string).collect();
    let name = match row.command_line.as_ref().filter(|line| !line.is_empty()) {
        // The name that the process was asked for by may be one that it has given itself.
        Some(line) if !line.to_string().contains(&row.process.to_string()) => {
            format!("{}: {}", row.process, ps::short_command_line(line))
        }
        Some(line) => ps::short_command_line(line),
        None => row.process.to_string(),
    };
    Cell::new(if others.is_empty() { name } else { format!("{name} (one address space with {})", others.join(", ")) })
}

impl Record for AccountFamily {
    fn write(&self, text: &mut Text) {
        text.line(family, self);
        text.notes();
    }

    fn totals(&self, page: PageSize) -> Vec<(&'static str, u64)> {
        vec![("_pages", page.pages_in(self.bytes)), ("_bytes", self.bytes)]
    }
}

/// `2 processes use 19 MiB in all: 12 MiB (63 %) is file pages of one process`
pub(super) fn answer(sums: &AccountFamily, largest: Option<(FamilyClass, u64)>) -> String {
    let (number, used) = (counted(sums.processes, "process"), size(sums.bytes));
    let spaces = match sums.address_spaces {
        spaces if spaces < sums.processes => format!(" with {}", counted(spaces, "address space")),
        _ => String::new(),
    };
    let (use_it, in_all) = if sums.processes == 1 { ("uses", "") } else { ("use", " in all") };
    let amount = match (sums.hidden, sums.lower_bound) {
        (false, _) if sums.not_counted > 0 => format!("at least {used}{in_all}"),
        (false, _) => format!("{used}{in_all}"),
        (true, true) => format!("at least {used}: the sum of Pss, exact if no other process maps the same memory"),
        (true, false) => format!("{used}: the sum of Pss, exact because nothing is shared"),
    };
    let most = largest.map(|(class, bytes)| of_which_most(bytes, sums.bytes, words(class)));
    format!("{number}{spaces} {use_it} {amount}{}", most.unwrap_or_default())
}

fn family(lines: &mut Lines, sums: &AccountFamily) {
    if sums.rss > sums.bytes {
        let (rss, again) = (size(sums.rss), size(sums.rss - sums.bytes));
        let line = lines.line();
        line.indent(2).plain(format!("the sum of Rss is {rss}, "));
        line.word("", Role::Plain, format!("{again} more, because shared pages count in each"));
    }
    if let Ok(outside) = sums.outside
        && outside > 0
        && (lines.style.is_full || outside > sums.bytes / 100)
    {
        lines
            .line()
            .indent(2)
            .plain(format!("{} of this is also mapped by processes that are not counted here", size(outside)));
    }
    let mut beside = Vec::new();
    if sums.hugetlb > 0 {
        beside.push(format!("hugetlb {}, as each process maps it", size(sums.hugetlb)));
    }
    beside.extend(beside_objects(&sums.unmapped, sums.unmapped_bound, sums.deleted_files));
    beside.extend(unmapped_folios(&sums.folio_rests));
    if !beside.is_empty() {
        lines.line().indent(2).plain(format!("not in Rss: {}", beside.join("; ")));
    }
    if let Err(reason) = &sums.unmapped
        && sums.hidden
        && lines.style.is_full
    {
        let unsearched = "memory that no mapping shows, such as unattached segments, is not searched";
        lines.line().indent(2).word("", Role::Note, format!("{unsearched}: {}", reason.cause()));
    }
    for (count, what) in [
        (sums.refused, "left out: permission denied"),
        (sums.ended, "ended before or during the count"),
        (sums.kernel_threads, "left out: a kernel thread has no memory of its own"),
        (sums.not_counted, "not counted to the end: interrupted"),
    ] {
        if count > 0 {
            lines.line().indent(2).word("", Role::Warn, format!("{} {what}", counted(count, "process")));
        }
    }
    if !sums.compared && sums.address_spaces > 1 {
        let unknown = "the kernel does not show which processes share one address space: each is counted";
        lines.line().indent(2).word("", Role::Note, unknown);
    }
}

/// Samples of its records.
#[cfg(test)]
pub(super) mod samples {
    use super::super::records::FREES_SHARED_MEMORY;
    use super::*;
    use crate::report::Reason;

    pub fn all() -> Vec<Box<dyn Record>> {
        let alike = |pid, alone: Fact<u64>| AccountMember {
            pid,
            process: Name::from("postgres"),
            command_line: None,
            rss: 54 << 20,
            ends: alone.clone().map(|alone| alone / 2),
            alone,
            pss: None,
            same_memory: Vec::new(),
        };
        let family = AccountFamily {
            processes: 10,
            address_spaces: 9,
            bytes: 120 << 20,
            lower_bound: false,
            rss: 490 << 20,
            outside: Ok(2 << 20),
            hugetlb: 6 << 20,
            unmapped: Ok(16 << 20),
            unmapped_bound: None,
            why: Why::default(),
            deleted_files: None,
            folio_rests: Ok(3 << 20),
            hidden: false,
            refused: 0,
            ended: 1,
            kernel_threads: 2,
            compared: true,
            not_counted: 0,
        };
        let hidden = AccountFamily {
            lower_bound: true,
            outside: Err(Reason::FrameHidden),
            unmapped: Err(Reason::FrameHidden),
            folio_rests: Err(Reason::FrameHidden),
            hidden: true,
            refused: 2,
            compared: false,
            not_counted: 3,
            ..family.clone()
        };
        let unknown = || Reason::NotOnThisKernel("memory.stat does not show it".into());
        vec![
            Box::new(AccountFamilyClass {
                class: FamilyClass::ShmemSeveral,
                bytes: 80 << 20,
                of: 120 << 20,
                mapped: 400 << 20,
                outside: Ok(0),
                freed_by: FREES_SHARED_MEMORY,
            }),
            Box::new(AccountFamilyGroup {
                by: "mapping".to_owned(),
                key: "/memfd:ring".to_owned(),
                pid: None,
                device: Some("00:01".to_owned()),
                inode: Some(1030),
                bytes: 80 << 20,
                of: 120 << 20,
                mapped: 400 << 20,
                in_one: 4096,
                outside: Ok(0),
                processes: Some(4),
                pids: Some(vec![4711, 4712, 4715, 4716]),
                nodes: vec![BytesOnNode { node: 1, bytes: 60 << 20 }, BytesOnNode { node: 0, bytes: 20 << 20 }],
            }),
            Box::new(AccountFamilyGroup {
                by: "node".to_owned(),
                key: "1".to_owned(),
                pid: None,
                device: None,
                inode: None,
                bytes: 3 << 20,
                of: 120 << 20,
                mapped: 3 << 20,
                in_one: 3 << 20,
                outside: Err(unknown()),
                processes: None,
                pids: None,
                nodes: Vec::new(),
            }),
            Box::new(AccountFamilyGroup {
                by: "region".to_owned(),
                key: "0x7f2c00000000..0x7f2c00a00000 rw-p [heap]".to_owned(),
                pid: Some(4711),
                device: None,
                inode: None,
                bytes: 10 << 20,
                of: 120 << 20,
                mapped: 18 << 20,
                in_one: 2 << 20,
                outside: Ok(0),
                processes: None,
                pids: None,
                nodes: Vec::new(),
            }),
            Box::new(AccountFamilyClass {
                class: FamilyClass::FileOne,
                bytes: 3 << 20,
                of: 120 << 20,
                mapped: 3 << 20,
                outside: Ok(2 << 20),
                freed_by: "reclaim, if clean",
            }),
            Box::new(AccountFamilyClass {
                class: FamilyClass::HeapFree,
                bytes: 7 << 20,
                of: 120 << 20,
                mapped: 21 << 20,
                outside: Ok(0),
                freed_by: "malloc_trim in each",
            }),
            Box::new(alike(4711, Ok(3 << 20))),
            Box::new(AccountMember { same_memory: vec![4713, 4714], ..alike(4712, Ok(2 << 20)) }),
            Box::new(AccountMember { pss: Some(20 << 20), ..alike(4715, Ok(1 << 20)) }),
            Box::new(AccountMember {
                command_line: Some(Name::from("postgres: checkpointer")),
                ..alike(4716, Ok(1 << 20))
            }),
            Box::new(family),
            Box::new(hidden),
            Box::new(AccountCgroup {
                path: Name::from("/system.slice/postgresql.service"),
                current: Ok(220 << 20),
                limit: Ok(Some(256 << 20)),
                peak: Ok(256 << 20),
                killed: Ok(2),
                anon: Ok(60 << 20),
                file: Ok(150 << 20),
                shmem: Ok(80 << 20),
                file_mapped: Ok(50 << 20),
                unmapped_file: Ok(100 << 20),
                kernel: Err(unknown()),
                zswapped: Err(unknown()),
                zswap: Err(unknown()),
                found: Err(Reason::not_permitted("cannot open /proc/kpagecgroup: permission denied")),
                charged_elsewhere: Err(Reason::not_permitted("cannot open /proc/kpagecgroup: permission denied")),
                outside: Ok(0),
                is_root: false,
            }),
        ]
    }
}
