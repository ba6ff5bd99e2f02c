//! The records of `heap`, and how they are written: first the sentence that answers, then a row for each arena or size.

use crate::inspect::heap::{ArenaOutcome, ChunkSum, HeapArena, MappedChunks};
use crate::kernel::words::Worded;
use crate::kernel::{Name, VirtualAddress};
use crate::render::Record;
use crate::render::columns::{Cell, Column, PID, Table, amount};
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::theme::Role;
use crate::render::units::{counted, size};
use crate::report::record::record;
use crate::report::{Declared, Shape};

use super::others::OtherAllocator;

/// The records that no other command emits.
pub(super) const RECORDS: &[Shape] =
    &[ArenaRow::SHAPE, SizeRow::SHAPE, HeapSummary::SHAPE, ProcessRow::SHAPE, HeapFamily::SHAPE];

record! {
    /// The sums of `heap`.
    #[derive(Default)]
    pub struct HeapSummary as "heap-summary" {
        /// Process id.
        pid: u32,
        /// The name of the process.
        process: Name,
        /// Arenas of glibc's malloc that have memory.
        arenas: u64,
        /// Those of them whose sums are not of all of their memory.
        incomplete: u64,
        /// Resident bytes of the arenas.
        resident: u64,
        /// Bytes that they have from the kernel.
        system: u64,
        /// Bytes of chunks in use.
        in_use: u64,
        /// Bytes of free chunks, without the free chunk at the end of each arena.
        free: u64,
        /// Bytes of free chunks on pages that chunks in use need too.
        between: u64,
        /// Bytes of the free chunks at the ends of the arenas.
        top: u64,
        /// Resident bytes that `malloc_trim(0)` would give back.
        trim: u64,
        /// The same on huge pages: the memory is free only once the kernel splits them.
        trim_huge: u64,
        /// The same on pages that another process has too, since a fork.
        trim_shared: u64,
        /// The same in locked memory, which the kernel refuses to give back.
        trim_locked: u64,
        /// Large chunks that are mappings of their own.
        mapped_chunks: u64,
        /// Their bytes.
        mapped: u64,
        /// Resident bytes of anonymous memory outside of these heaps: of the program itself, of stacks, or of another
        /// allocator.
        other: u64,
        /// Other allocators that the names of libraries or symbols show.
        allocators: Vec<&'static str>,
    }

    /// The sums of `heap` of several processes.
    #[derive(Default)]
    pub struct HeapFamily as "heap-family" {
        /// Processes whose heaps were added up.
        processes: u64,
        /// Those of them with a heap of glibc.
        with_heap: u64,
        /// Processes that may not be examined.
        refused: u64,
        /// Processes that ended before they were read.
        ended: u64,
        /// Resident bytes of their arenas. What processes share since a fork counts in each.
        resident: u64,
        /// Bytes of chunks in use.
        in_use: u64,
        /// Bytes of free chunks on pages that chunks in use need too.
        between: u64,
        /// Resident bytes that `malloc_trim(0)` in each would give back.
        trim: u64,
    }

    /// A row of `heap` of several processes.
    pub struct ProcessRow as "heap-process" {
        /// Process id.
        pid: u32,
        /// The name of the process.
        process: Name,
        /// Its arenas of glibc's malloc that have memory.
        arenas: u64,
        /// Those of them whose sums are not of all of their memory.
        incomplete: u64,
        /// Resident bytes of the arenas.
        resident: u64,
        /// Bytes of chunks in use.
        in_use: u64,
        /// Bytes of free chunks on pages that chunks in use need too.
        between: u64,
        /// Resident bytes that `malloc_trim(0)` would give back.
        trim: u64,
        /// Bytes of large chunks that are mappings of their own.
        mapped: u64,
        /// Resident bytes of other anonymous memory.
        other: u64,
        /// Other allocators that the names of libraries or symbols show.
        allocators: Vec<&'static str>,
    }

    /// A row of `heap`: an arena.
    pub struct ArenaRow as "heap-arena" {
        /// Its number; 0 is the main one.
        arena: u64,
        /// The address of its head (`malloc_state`).
        address: VirtualAddress,
        /// Stretches of memory that it has.
        parts: u64,
        /// Resident bytes.
        resident: u64,
        /// Bytes that it has from the kernel.
        system: u64,
        /// Bytes of chunks in use.
        in_use: u64,
        /// Chunks in use.
        chunks: u64,
        /// Bytes of free chunks, without the one at its end.
        free: u64,
        /// Free chunks.
        free_chunks: u64,
        /// Bytes of free chunks on pages that chunks in use need too.
        between: u64,
        /// Bytes of the free chunk at its end.
        top: u64,
        /// Resident bytes that `malloc_trim(0)` would give back.
        trim: u64,
        /// The same on huge pages.
        trim_huge: u64,
        /// The same on pages that another process has too.
        trim_shared: u64,
        /// The same in locked memory.
        trim_locked: u64,
        /// Bytes between its stretches that the program itself got with `sbrk`.
        foreign: u64,
        /// The result of the walk: `complete`, `part` if bytes were not found, `broken` where a chunk contradicts its
        /// neighbours, `absent` where the head of a chunk is not resident.
        walked: &'static str,
        /// Bytes that were not found.
        [optional] missing: Option<u64>,
        /// The chunk at which the walk ended.
        [optional] chunk: Option<VirtualAddress>,
    }

    /// A row of `heap by size`: chunks from this size on, to less than twice of it.
    pub struct SizeRow as "heap-size" {
        /// The smallest size of the class.
        smallest: u64,
        /// Bytes of chunks in use.
        in_use: u64,
        /// Chunks in use.
        chunks: u64,
        /// Bytes of free chunks.
        free: u64,
        /// Free chunks.
        free_chunks: u64,
    }
}

impl HeapSummary {
    pub(super) fn of(arenas: &[HeapArena], mapped: &MappedChunks) -> Self {
        let sum = |of: fn(&HeapArena) -> u64| arenas.iter().map(of).sum();
        let with_memory = arenas.iter().filter(|arena| arena.system_bytes > 0);
        HeapSummary {
            arenas: with_memory.count() as u64,
            incomplete: arenas.iter().filter(|arena| arena.outcome != ArenaOutcome::Complete).count() as u64,
            resident: sum(|arena| arena.resident),
            system: sum(|arena| arena.system_bytes),
            in_use: sum(|arena| arena.in_use.bytes),
            free: sum(|arena| arena.free.bytes),
            between: sum(|arena| arena.between),
            top: sum(|arena| arena.top),
            trim: sum(|arena| arena.trimmable.now),
            trim_huge: sum(|arena| arena.trimmable.huge),
            trim_shared: sum(|arena| arena.trimmable.shared),
            trim_locked: sum(|arena| arena.trimmable.locked),
            mapped_chunks: mapped.sum.chunks,
            mapped: mapped.sum.bytes,
            ..HeapSummary::default()
        }
    }
}

impl HeapFamily {
    pub(super) fn add(&mut self, one: &HeapSummary) {
        self.processes += 1;
        self.with_heap += u64::from(one.arenas > 0);
        self.resident += one.resident;
        self.in_use += one.in_use;
        self.between += one.between;
        self.trim += one.trim;
    }
}

impl ProcessRow {
    pub(super) fn of(one: HeapSummary) -> Self {
        ProcessRow {
            pid: one.pid,
            process: one.process,
            arenas: one.arenas,
            incomplete: one.incomplete,
            resident: one.resident,
            in_use: one.in_use,
            between: one.between,
            trim: one.trim,
            mapped: one.mapped,
            other: one.other,
            allocators: one.allocators,
        }
    }
}

impl ArenaRow {
    pub(super) fn of(arena: &HeapArena) -> Self {
        let (walked, missing, chunk) = match arena.outcome {
            ArenaOutcome::Complete => ("complete", None, None),
            ArenaOutcome::Part { missing } => ("part", Some(missing), None),
            ArenaOutcome::Broken(chunk) => ("broken", None, Some(chunk)),
            ArenaOutcome::Absent(chunk) => ("absent", None, Some(chunk)),
        };
        ArenaRow {
            arena: arena.number as u64,
            address: arena.address,
            parts: arena.parts.len() as u64,
            resident: arena.resident,
            system: arena.system_bytes,
            in_use: arena.in_use.bytes,
            chunks: arena.in_use.chunks,
            free: arena.free.bytes,
            free_chunks: arena.free.chunks,
            between: arena.between,
            top: arena.top,
            trim: arena.trimmable.now,
            trim_huge: arena.trimmable.huge,
            trim_shared: arena.trimmable.shared,
            trim_locked: arena.trimmable.locked,
            foreign: arena.foreign,
            walked,
            missing,
            chunk,
        }
    }
}

impl SizeRow {
    pub(super) fn new(smallest: u64) -> Self {
        SizeRow { smallest, in_use: 0, chunks: 0, free: 0, free_chunks: 0 }
    }

    pub(super) fn add(&mut self, in_use: ChunkSum, free: ChunkSum) {
        self.in_use += in_use.bytes;
        self.chunks += in_use.chunks;
        self.free += free.bytes;
        self.free_chunks += free.chunks;
    }
}

impl Record for HeapSummary {
    fn write(&self, text: &mut Text) {
        text.line(summary, self);
    }
}

/// The answer, and what stands beside it.
fn summary(lines: &mut Lines, summary: &HeapSummary) {
    let line = lines.line();
    if summary.arenas == 0 {
        line.plain("no heap of glibc was found");
    } else {
        line.plain(format!("{} resident in {}: ", size(summary.resident), counted(summary.arenas, "glibc arena")))
            .push(Role::Good, format!("{} in use", size(summary.in_use)))
            .plain(format!("; malloc_trim(0) would free {}", size(summary.trim)))
            .plain(format!("; {} is free between chunks in use", size(summary.between)));
    }
    if summary.incomplete > 0 {
        let what = format!("{} incomplete: the sums are of a part", counted(summary.incomplete, "arena"));
        lines.line().indent(2).push(Role::Warn, what);
    }
    for (bytes, what) in [
        (summary.trim_huge, "more is free on huge pages: a trim gives it back once the kernel splits them"),
        (summary.trim_shared, "more is free on pages that another process shares since a fork: only RSS would fall"),
        (summary.trim_locked, "more is free and locked in memory: no trim frees it"),
        (summary.mapped, "is in large chunks that are mappings of their own"),
    ] {
        if bytes > 0 {
            lines.line().indent(2).plain(format!("{} {what}", size(bytes)));
        }
    }
    if summary.other > 0 {
        let text = "of anonymous memory belongs to the program itself, to stacks, or to another allocator";
        lines.line().indent(2).plain(format!("{} {text}", size(summary.other)));
    }
    for allocator in summary.allocators.iter().filter_map(|word| OtherAllocator::from_word(word)) {
        let text = format!("{} is in this program, and its heap is not read", allocator.word());
        let line = lines.line();
        line.indent(2).push(Role::Note, text);
        if let Some((_, ask)) = allocator.about().split_once(": ") {
            line.plain(format!(": {}", ask.trim_end_matches('.')));
        }
    }
}

impl Record for HeapFamily {
    fn write(&self, text: &mut Text) {
        text.line(family, self);
    }
}

/// The answer for several processes.
fn family(lines: &mut Lines, family: &HeapFamily) {
    let of =
        format!("{} resident in the glibc heaps of {}: ", size(family.resident), counted(family.with_heap, "process"));
    lines
        .line()
        .plain(of)
        .push(Role::Good, format!("{} in use", size(family.in_use)))
        .plain(format!("; malloc_trim(0) in each would free {}", size(family.trim)))
        .plain(format!("; {} is free between chunks in use", size(family.between)));
    for (processes, what) in [
        (family.processes - family.with_heap, "without a heap of glibc"),
        (family.refused, "left out: permission denied"),
        (family.ended, "ended before the read"),
    ] {
        if processes > 0 {
            lines.line().indent(2).push(Role::Note, format!("{} {what}", counted(processes, "process")));
        }
    }
}

impl Record for ProcessRow {
    fn write(&self, text: &mut Text) {
        text.row(&PROCESSES, self);
    }
}

/// `heap children`
static PROCESSES: Table<ProcessRow> = Table::of(&[
    PID.cell(|_, row| Cell::new(&row.pid)),
    Column::name("name", 15, Role::Name).cell(|_, row| Cell::new(&row.process)),
    Column::number("resident", 8, Role::Size).cell(|_, row| amount(row.resident)),
    Column::number("in use", 8, Role::Size).cell(|_, row| amount(row.in_use)),
    Column::number("between", 8, Role::Size).cell(|_, row| amount(row.between)),
    Column::number("trim", 8, Role::Size).cell(|_, row| amount(row.trim)),
    Column::number("other", 8, Role::Size).rank(1).cell(|_, row| amount(row.other)),
    Column::word("walked", 8, Role::Plain).rank(2).cell(|_, row| {
        Cell::new(match (row.arenas, row.incomplete) {
            (0, _) => "no heap",
            (_, 0) => "complete",
            (_, _) => "part",
        })
    }),
]);

impl Record for ArenaRow {
    fn write(&self, text: &mut Text) {
        text.row(&ARENAS, self);
        text.line(incomplete, self);
    }
}

/// `heap`
static ARENAS: Table<ArenaRow> = Table::of(&[
    Column::word("arena", 18, Role::Address).cell(|_, row| match row.arena {
        0 => Cell::new("main"),
        _ => Cell::new(&row.address),
    }),
    Column::number("resident", 8, Role::Size).cell(|_, row| amount(row.resident)),
    Column::number("in use", 8, Role::Size).cell(|_, row| amount(row.in_use)),
    Column::number("chunks", 9, Role::Size).rank(1).cell(|_, row| Cell::count(row.chunks)),
    Column::number("between", 8, Role::Size).cell(|_, row| amount(row.between)),
    Column::number("trim", 8, Role::Size).cell(|_, row| amount(row.trim)),
    Column::number("top", 8, Role::Size).rank(2).cell(|_, row| amount(row.top)),
    Column::word("walked", 8, Role::Plain).cell(|_, row| Cell::new(row.walked)),
]);

/// Why the sums of an arena are not of all of its memory.
fn incomplete(lines: &mut Lines, row: &ArenaRow) {
    let text = match (row.missing, row.chunk) {
        (Some(missing), _) => format!("{} of it were not found", size(missing)),
        (_, Some(chunk)) if row.walked == "absent" => {
            format!("the head of the chunk at {chunk} is not resident: what comes after it is unknown")
        }
        (_, Some(chunk)) => {
            format!("the chunk at {chunk} contradicts its neighbours: the heap changed during the walk, or is damaged")
        }
        (None, None) => return,
    };
    lines.line().indent(2).push(Role::Warn, text);
}

impl Record for SizeRow {
    fn write(&self, text: &mut Text) {
        text.row(&SIZES, self);
    }
}

/// `heap by size`
static SIZES: Table<SizeRow> = Table::of(&[
    Column::number("from", 8, Role::Size).cell(|_, row| Cell::size(row.smallest)),
    Column::number("in use", 8, Role::Size).cell(|_, row| amount(row.in_use)),
    Column::number("chunks", 9, Role::Size).cell(|_, row| Cell::count(row.chunks)),
    Column::number("free", 8, Role::Size).cell(|_, row| amount(row.free)),
    Column::number("free chunks", 11, Role::Size).cell(|_, row| Cell::count(row.free_chunks)),
]);

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![
            Box::new(summary()),
            Box::new(HeapSummary {
                arenas: 0,
                pid: 812,
                process: Name::new("app"),
                other: 300 << 20,
                allocators: OtherAllocator::words().collect(),
                ..HeapSummary::default()
            }),
            Box::new(HeapFamily {
                processes: 9,
                with_heap: 7,
                refused: 1,
                ended: 1,
                resident: 910 << 20,
                in_use: 500 << 20,
                between: 100 << 20,
                trim: 300 << 20,
            }),
            Box::new(ProcessRow::of(summary())),
            Box::new(ProcessRow { incomplete: 0, ..ProcessRow::of(summary()) }),
            Box::new(ProcessRow {
                arenas: 0,
                resident: 0,
                in_use: 0,
                between: 0,
                trim: 0,
                ..ProcessRow::of(summary())
            }),
            Box::new(arena()),
            Box::new(ArenaRow { arena: 1, walked: "part", missing: Some(2 << 20), ..arena() }),
            Box::new(ArenaRow { arena: 2, walked: "broken", chunk: Some(VirtualAddress::new(0x7f00_0010)), ..arena() }),
            Box::new(ArenaRow { arena: 3, walked: "absent", chunk: Some(VirtualAddress::new(0x7f00_0010)), ..arena() }),
            Box::new(SizeRow { smallest: 64, in_use: 12 << 20, chunks: 131_072, free: 640, free_chunks: 10 }),
        ]
    }

    fn summary() -> HeapSummary {
        HeapSummary {
            pid: 812,
            process: Name::new("app"),
            arenas: 9,
            incomplete: 2,
            resident: 610 << 20,
            system: 640 << 20,
            in_use: 110 << 20,
            free: 480 << 20,
            between: 97 << 20,
            top: 5 << 20,
            trim: 385 << 20,
            trim_huge: 12 << 20,
            trim_shared: 4 << 20,
            trim_locked: 8192,
            mapped_chunks: 3,
            mapped: 42 << 20,
            other: 1 << 20,
            allocators: vec![OtherAllocator::Jemalloc.word()],
        }
    }

    fn arena() -> ArenaRow {
        ArenaRow {
            arena: 0,
            address: VirtualAddress::new(0x7f40_0000_0030),
            parts: 1,
            resident: 300 << 20,
            system: 320 << 20,
            in_use: 60 << 20,
            chunks: 70_123,
            free: 240 << 20,
            free_chunks: 15_000,
            between: 50 << 20,
            top: 132_000,
            trim: 180 << 20,
            trim_huge: 0,
            trim_shared: 0,
            trim_locked: 0,
            foreign: 0,
            walked: "complete",
            missing: None,
            chunk: None,
        }
    }
}
