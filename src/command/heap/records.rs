//! The records of `heap`, and how they are written: first the sentence that answers, then a row for each arena or size.

use crate::inspect::heap::{ArenaOutcome, ChunkSum, HeapArena, HeapSums, MappedChunks, SizeClass, Trimmable};
use crate::kernel::words::Worded;
use crate::kernel::{Name, VirtualAddress};
use crate::render::Record;
use crate::render::columns::{Cell, Column, PID, Table, amount, unknown};
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::theme::Role;
use crate::render::units::{counted, size};
use crate::report::record::record;
use crate::report::{Fact, Reason};
use std::collections::BTreeMap;

use super::others::OtherAllocator;

record! {
    /// The sums of `heap`. Chunks are counted in arenas that were walked to their ends.
    pub struct HeapSummary as "heap-summary" with why if any {
        /// Process id.
        pid: u32,
        /// The name of the process.
        process: Name,
        /// Arenas of glibc's malloc that have memory.
        arenas: u64,
        /// Arenas that were not walked to their ends: their chunks are in no sum.
        incomplete: u64,
        /// Resident bytes of the arenas.
        resident: Fact<u64>,
        /// Bytes that they have from the kernel.
        system: u64,
        /// Bytes of chunks in use.
        in_use: u64,
        /// Bytes of free chunks, without the free chunk at the end of each arena.
        free: u64,
        /// Bytes of free chunks that no trim gives back.
        between: u64,
        /// Bytes of the free chunks at the ends of the arenas.
        top: u64,
        /// Bytes between chunks that the program itself got with `sbrk`.
        foreign: u64,
        /// Resident bytes that `malloc_trim(0)` would give back.
        trim: Fact<u64>,
        /// The same on huge pages: the memory is free only once the kernel splits them.
        trim_huge: Fact<u64>,
        /// The same on pages that are mapped elsewhere too.
        trim_shared: Fact<u64>,
        /// The same in locked memory, which the kernel refuses to give back.
        trim_locked: Fact<u64>,
        /// The same on pages of which it is unknown whether they are mapped elsewhere.
        trim_unclear: Fact<u64>,
        /// Large chunks that are mappings of their own.
        mapped_chunks: u64,
        /// Their bytes.
        mapped: u64,
        /// Resident bytes of anonymous memory outside of these heaps: of the program itself, of stacks, or of another
        /// allocator.
        other: Fact<u64>,
        /// Bytes of variables that were not searched for an arena, because they are in swap or too many.
        unsearched: u64,
        /// Other allocators that the names of libraries or symbols show.
        allocators: Vec<&'static str>,
    }

    /// The sums of `heap` of several processes.
    #[derive(Default)]
    pub struct HeapFamily as "heap-family" {
        /// Processes whose heaps were added up.
        processes: u64,
        /// Processes with a heap of glibc.
        with_heap: u64,
        /// Processes that may not be examined.
        refused: u64,
        /// Processes that ended before they were read.
        ended: u64,
        /// Kernel threads: they have no memory of their own.
        kernel_threads: u64,
        /// Processes with an arena that was not walked to its end: its chunks are in no sum.
        incomplete: u64,
        /// Processes whose memory their capture does not have.
        without_memory: u64,
        /// Resident bytes of their arenas. What processes share since a fork counts in each.
        resident: u64,
        /// Bytes of chunks in use.
        in_use: u64,
        /// Bytes of free chunks that no trim gives back.
        between: u64,
        /// Resident bytes that `malloc_trim(0)` in each would give back.
        trim: u64,
    }

    /// A row of `heap` of several processes.
    pub struct ProcessRow as "heap-process" with why if any {
        /// Process id.
        pid: u32,
        /// The name of the process.
        process: Name,
        /// Its arenas of glibc's malloc that have memory.
        arenas: u64,
        /// Arenas that were not walked to their ends.
        incomplete: u64,
        /// Resident bytes of the arenas.
        resident: Fact<u64>,
        /// Bytes of chunks in use.
        in_use: u64,
        /// Bytes of free chunks that no trim gives back.
        between: u64,
        /// Resident bytes that `malloc_trim(0)` would give back.
        trim: Fact<u64>,
        /// Bytes of large chunks that are mappings of their own.
        mapped: u64,
        /// Resident bytes of other anonymous memory.
        other: Fact<u64>,
        /// Other allocators that the names of libraries or symbols show.
        allocators: Vec<&'static str>,
    }

    /// A row of `heap`: an arena.
    pub struct ArenaRow as "heap-arena" with why if any {
        /// Its number; 0 is the main one.
        arena: u64,
        /// The address of its head (`malloc_state`).
        address: VirtualAddress,
        /// Stretches of memory that it has.
        parts: u64,
        /// Resident bytes.
        resident: Fact<u64>,
        /// Bytes that it has from the kernel.
        system: u64,
        /// Bytes of chunks in use.
        in_use: Fact<u64>,
        /// Chunks in use.
        chunks: Fact<u64>,
        /// Bytes of free chunks, without the one at its end.
        free: Fact<u64>,
        /// Free chunks.
        free_chunks: Fact<u64>,
        /// Bytes of free chunks that no trim gives back.
        between: Fact<u64>,
        /// Bytes of the free chunk at its end.
        top: Fact<u64>,
        /// Resident bytes that `malloc_trim(0)` would give back.
        trim: Fact<u64>,
        /// The same on huge pages.
        trim_huge: Fact<u64>,
        /// The same on pages that are mapped elsewhere too.
        trim_shared: Fact<u64>,
        /// The same in locked memory.
        trim_locked: Fact<u64>,
        /// Bytes between its stretches that the program itself got with `sbrk`.
        foreign: Fact<u64>,
        /// The result of the walk. `complete`: all of it. `part`: bytes were not found. `broken`: a chunk contradicts
        /// its neighbours. `absent`: the head of a chunk is not resident. `scattered`: the heap is not in one piece.
        walked: &'static str,
        /// Bytes that were not found.
        [optional] missing: Option<u64>,
        /// The chunk at which the walk ended.
        [optional] chunk: Option<VirtualAddress>,
    }

    /// A row of `heap by size`: chunks from this size on, to less than twice of it.
    #[derive(Copy)]
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

/// A core file shows no page map.
fn no_page_map() -> Reason {
    Reason::NotInFile("a core file has no page map".into())
}

/// Why the resident bytes of some arenas are unknown.
fn resident_unknown(arenas: &[HeapArena]) -> Reason {
    match arenas.iter().find(|arena| arena.sums.is_none()) {
        Some(arena) => {
            Reason::NotInFile(format!("an arena was not read to its end: {}", why_incomplete(arena.outcome)))
        }
        None => no_page_map(),
    }
}

impl HeapSummary {
    pub(super) fn of(arenas: &[HeapArena], mapped: &MappedChunks) -> Self {
        let resident: Fact<u64> =
            arenas.iter().map(|arena| arena.resident).sum::<Option<u64>>().ok_or_else(|| resident_unknown(arenas));
        let sums = || arenas.iter().filter_map(|arena| arena.sums.as_ref());
        let sum = |of: fn(&HeapSums) -> u64| sums().map(of).sum();
        let trim = |of: fn(&Trimmable) -> u64| -> Fact<u64> {
            let all = sums().map(|sums| sums.trimmable.as_ref().map(of)).sum::<Option<u64>>();
            all.ok_or_else(no_page_map)
        };
        HeapSummary {
            pid: 0,
            process: Name::default(),
            arenas: arenas.iter().filter(|arena| arena.system_bytes > 0).count() as u64,
            incomplete: arenas.iter().filter(|arena| arena.sums.is_none()).count() as u64,
            system: arenas.iter().map(|arena| arena.system_bytes).sum(),
            in_use: sum(|sums| sums.in_use.bytes),
            free: sum(|sums| sums.free.bytes),
            between: sum(|sums| sums.between),
            top: sum(|sums| sums.top),
            foreign: sum(|sums| sums.foreign),
            trim: trim(|trim| trim.now),
            trim_huge: trim(|trim| trim.huge),
            trim_shared: trim(|trim| trim.shared),
            trim_locked: trim(|trim| trim.locked),
            trim_unclear: trim(|trim| trim.unclear),
            mapped_chunks: mapped.sum.chunks,
            mapped: mapped.sum.bytes,
            other: Err(resident.as_ref().err().cloned().unwrap_or_else(no_page_map)),
            resident,
            unsearched: 0,
            allocators: Vec::new(),
        }
    }
}

impl HeapFamily {
    pub(super) fn add(&mut self, one: &HeapSummary) {
        self.processes += 1;
        self.with_heap += u64::from(one.arenas > 0);
        self.incomplete += u64::from(one.incomplete > 0);
        self.resident += one.resident.as_ref().copied().unwrap_or_default();
        self.in_use += one.in_use;
        self.between += one.between;
        self.trim += one.trim.as_ref().copied().unwrap_or_default();
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

/// Why an arena was not walked to its end.
pub(in crate::command) fn why_incomplete(outcome: ArenaOutcome) -> &'static str {
    match outcome {
        ArenaOutcome::Complete => "",
        ArenaOutcome::Part { .. } => "a part of the arena was not found",
        ArenaOutcome::Broken(_) => "a chunk contradicts its neighbours",
        ArenaOutcome::Absent(_) => "the head of a chunk is not resident",
        ArenaOutcome::Scattered => "the heap is not in one piece",
    }
}

impl ArenaRow {
    pub(super) fn of(arena: &HeapArena) -> Self {
        let why = why_incomplete(arena.outcome);
        let (walked, missing, chunk) = match arena.outcome {
            ArenaOutcome::Complete => ("complete", None, None),
            ArenaOutcome::Part { missing } => ("part", Some(missing), None),
            ArenaOutcome::Broken(chunk) => ("broken", None, Some(chunk)),
            ArenaOutcome::Absent(chunk) => ("absent", None, Some(chunk)),
            ArenaOutcome::Scattered => ("scattered", None, None),
        };
        let unknown = || if arena.sums.is_none() { Reason::NotInFile(why.into()) } else { no_page_map() };
        let sum = |of: fn(&HeapSums) -> u64| arena.sums.as_ref().map(of).ok_or_else(unknown);
        let trimmable = arena.sums.as_ref().and_then(|sums| sums.trimmable.as_ref());
        let trim = |of: fn(&Trimmable) -> u64| trimmable.map(of).ok_or_else(unknown);
        ArenaRow {
            arena: arena.number as u64,
            address: arena.address,
            parts: arena.parts.len() as u64,
            resident: arena.resident.ok_or_else(|| resident_unknown(std::slice::from_ref(arena))),
            system: arena.system_bytes,
            in_use: sum(|sums| sums.in_use.bytes),
            chunks: sum(|sums| sums.in_use.chunks),
            free: sum(|sums| sums.free.bytes),
            free_chunks: sum(|sums| sums.free.chunks),
            between: sum(|sums| sums.between),
            top: sum(|sums| sums.top),
            trim: trim(|trim| trim.now),
            trim_huge: trim(|trim| trim.huge),
            trim_shared: trim(|trim| trim.shared),
            trim_locked: trim(|trim| trim.locked),
            foreign: sum(|sums| sums.foreign),
            walked,
            missing,
            chunk,
        }
    }
}

impl SizeRow {
    /// Chunks of all arenas, by the smallest size of their class.
    pub(super) fn all(arenas: &[HeapArena]) -> BTreeMap<u64, SizeRow> {
        let mut classes: BTreeMap<u64, SizeRow> = BTreeMap::new();
        for SizeClass { smallest, in_use, free, .. } in
            arenas.iter().filter_map(|arena| arena.sums.as_ref()).flat_map(|sums| sums.sizes.iter().copied())
        {
            let row = classes.entry(smallest).or_insert_with(|| SizeRow::new(smallest));
            row.add(in_use, free);
        }
        classes
    }

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
    let arenas = counted(summary.arenas, "glibc arena");
    match (summary.arenas, &summary.resident) {
        (0, _) => _ = line.plain("no heap of glibc was found"),
        (_, Ok(resident)) => _ = line.plain(format!("{arenas} with {} resident: ", size(*resident))),
        (_, Err(_)) => _ = line.plain(format!("{arenas} with {}: ", size(summary.system))),
    }
    if summary.arenas > 0 && summary.incomplete >= summary.arenas {
        line.push(Role::Warn, "the bytes in use are unknown");
    } else if summary.arenas > 0 {
        let at_least = if summary.incomplete > 0 { "at least " } else { "" };
        line.push(Role::Good, format!("{at_least}{} in use", size(summary.in_use)));
        if let Ok(trim) = &summary.trim {
            line.plain(format!(", {} that malloc_trim(0) would free", size(*trim)));
        }
        line.plain(format!(", {} free between chunks in use", size(summary.between)));
    }
    if summary.unsearched > 0 {
        let text =
            format!("{} of variables were not searched: they are in swap, or too many", size(summary.unsearched));
        lines.line().indent(2).push(Role::Warn, text);
    }
    if summary.incomplete > 0 {
        let what = counted(summary.incomplete, "arena");
        lines.line().indent(2).push(Role::Warn, format!("{what} could not be walked: their chunks are in no sum"));
    }
    for (bytes, what) in [
        (&summary.trim_huge, "more is free on huge pages: a trim gives it back once the kernel splits them"),
        (&summary.trim_shared, "more is free on pages that are mapped elsewhere too: only RSS would fall"),
        (&summary.trim_locked, "more is free and locked in memory: no trim frees it"),
        (&summary.trim_unclear, "more is free on pages that may be mapped elsewhere too"),
        (&Ok(summary.foreign), "lies between chunks: the program itself got it with sbrk"),
        (&Ok(summary.mapped), "is in large chunks that are mappings of their own"),
        (&summary.other, "of anonymous memory belongs to the program itself, to stacks, or to another allocator"),
    ] {
        if let Ok(bytes @ 1..) = bytes {
            lines.line().indent(2).plain(format!("{} {what}", size(*bytes)));
        }
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
    let at_least = if family.incomplete > 0 { "at least " } else { "" };
    let processes = counted(family.with_heap, "process");
    lines
        .line()
        .plain(format!("{processes} with {at_least}{} resident in glibc heaps: ", size(family.resident)))
        .push(Role::Good, format!("{at_least}{} in use", size(family.in_use)))
        .plain(format!(", {} that malloc_trim(0) in each would free", size(family.trim)))
        .plain(format!(", {} free between chunks in use", size(family.between)));
    for (processes, what) in [
        (family.processes - family.with_heap, "without a heap of glibc"),
        (family.incomplete, "with an arena that could not be walked"),
        (family.without_memory, "left out: the capture has no memory of them"),
        (family.refused, "left out: permission denied"),
        (family.ended, "ended before the read"),
        (family.kernel_threads, "left out: a kernel thread has no memory of its own"),
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

/// A number of bytes, if it is known.
fn known<'a>(bytes: &Fact<u64>) -> Cell<'a> {
    bytes.as_ref().map_or_else(|_| unknown(), |bytes| amount(*bytes))
}

/// `heap children`
static PROCESSES: Table<ProcessRow> = Table::of(&[
    PID.cell(|_, row| Cell::new(&row.pid)),
    Column::name("name", 15, Role::Name).cell(|_, row| Cell::new(&row.process)),
    Column::number("resident", 8, Role::Size).cell(|_, row| known(&row.resident)),
    Column::number("in use", 8, Role::Size).cell(|_, row| amount(row.in_use)),
    Column::number("between", 8, Role::Size).cell(|_, row| amount(row.between)),
    Column::number("trim", 8, Role::Size).cell(|_, row| known(&row.trim)),
    Column::number("other", 8, Role::Size).rank(1).cell(|_, row| known(&row.other)),
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
        if self.walked != "complete" {
            text.line(incomplete, self);
        }
    }
}

/// `heap`
static ARENAS: Table<ArenaRow> = Table::of(&[
    Column::word("arena", 18, Role::Address).cell(|_, row| match row.arena {
        0 => Cell::new("main"),
        _ => Cell::new(&row.address),
    }),
    Column::number("resident", 8, Role::Size).cell(|_, row| known(&row.resident)),
    Column::number("in use", 8, Role::Size).cell(|_, row| known(&row.in_use)),
    Column::number("chunks", 9, Role::Size).rank(1).cell(|_, row| match &row.chunks {
        Ok(chunks) => Cell::count(*chunks),
        Err(_) => unknown(),
    }),
    Column::number("between", 8, Role::Size).cell(|_, row| known(&row.between)),
    Column::number("trim", 8, Role::Size).cell(|_, row| known(&row.trim)),
    Column::number("top", 8, Role::Size).rank(2).cell(|_, row| known(&row.top)),
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
        (None, None) if row.walked == "scattered" => {
            "its memory is not in one piece: no mark leads from one to the next".to_owned()
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
    use crate::kernel::AddressRange;

    pub fn all() -> Vec<Box<dyn Record>> {
        let at = VirtualAddress::new(0x7f00_0010);
        let row = |number, outcome, sums| ArenaRow::of(&HeapArena { number, outcome, sums, ..arena() });
        let arenas = [arena(), HeapArena { outcome: ArenaOutcome::Scattered, sums: None, ..arena() }];
        let mut mapped = MappedChunks::default();
        mapped.sum.add(42 << 20);
        let summary = HeapSummary {
            pid: 812,
            process: Name::new("app"),
            other: Ok(1 << 20),
            allocators: vec![OtherAllocator::Jemalloc.word()],
            ..HeapSummary::of(&arenas, &mapped)
        };
        let none = HeapSummary {
            pid: 812,
            process: Name::new("app"),
            other: Ok(300 << 20),
            unsearched: 8192,
            allocators: OtherAllocator::words().collect(),
            ..HeapSummary::of(&[], &MappedChunks::default())
        };
        let of_core = HeapArena {
            resident: None,
            sums: Some(HeapSums { trimmable: None, ..arena().sums.unwrap_or_default() }),
            ..arena()
        };
        let mut family = HeapFamily { refused: 1, ended: 1, without_memory: 1, ..HeapFamily::default() };
        [&summary, &summary, &none].into_iter().for_each(|one| family.add(one));
        vec![
            Box::new(HeapSummary::of(&[arena()], &MappedChunks::default())),
            Box::new(HeapSummary::of(std::slice::from_ref(&of_core), &MappedChunks::default())),
            Box::new(family),
            Box::new(ProcessRow::of(summary)),
            Box::new(ProcessRow::of(none)),
            Box::new(ArenaRow::of(&arena())),
            Box::new(ArenaRow::of(&of_core)),
            Box::new(row(1, ArenaOutcome::Part { missing: 2 << 20 }, None)),
            Box::new(row(2, ArenaOutcome::Broken(at), None)),
            Box::new(row(3, ArenaOutcome::Absent(at), None)),
            Box::new(row(0, ArenaOutcome::Scattered, None)),
            Box::new(SizeRow { smallest: 64, in_use: 12 << 20, chunks: 131_072, free: 640, free_chunks: 10 }),
        ]
    }

    fn arena() -> HeapArena {
        let mut in_use = ChunkSum::default();
        (0..60).for_each(|_| in_use.add(1 << 20));
        let mut free = ChunkSum::default();
        (0..15).for_each(|_| free.add(16 << 20));
        let trimmable = Trimmable { now: 180 << 20, huge: 12 << 20, shared: 4 << 20, locked: 8192, unclear: 4096 };
        HeapArena {
            number: 0,
            address: VirtualAddress::new(0x7f40_0000_0030),
            system_bytes: 320 << 20,
            outcome: ArenaOutcome::Complete,
            parts: AddressRange::of_length(VirtualAddress::new(0x5555_0000_0000), 320 << 20).into_iter().collect(),
            resident: Some(300 << 20),
            sums: Some(HeapSums {
                in_use,
                free,
                between: 50 << 20,
                top: 132_000,
                foreign: 0,
                sizes: Vec::new(),
                trimmable: Some(trimmable),
            }),
        }
    }
}
