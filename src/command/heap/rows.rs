//! The rows of `heap`: arenas, the parts of their memory, the sizes of chunks, and the pages that chunks keep.

use crate::command::floor::{Context, Flow, Outcome};
use crate::command::rows::{RowLimit, keep_shown, note_hidden_rows};
use crate::inspect::heap::{ArenaOutcome, ChunkSum, HeapArena, HeapPart, HeapSums, KeptPages, SizeClass, Trimmable};
use crate::kernel::VirtualAddress;
use crate::kernel::words::worded;
use crate::render::Record;
use crate::render::columns::{Cell, Column, PID, Table, amount, optional, unknown};
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::theme::Role;
use crate::render::units::{counted, size};
use crate::report::json::words;
use crate::report::record::record;
use crate::report::{Fact, Reason};
use std::collections::BTreeMap;

worded! {
    /// What `heap by KEY` has rows of.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum HeapKey, word {
        /// The arena.
        Arena = "arena",
        /// The size of chunks, in powers of two.
        Size = "size",
        /// The parts of the memory of each arena.
        Region = "region",
    }
}

record! {
    /// A row of `heap`: an arena.
    pub struct ArenaRow as "heap-arena" with why if any {
        /// The process, if there are several.
        [optional] pid: Option<u32>,
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
        walked: WalkResult,
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

    /// A row of `heap by region`: a part of the memory of an arena.
    pub struct PartRow as "heap-part" with why if any {
        /// The process, if there are several.
        [optional] pid: Option<u32>,
        /// The number of its arena; 0 is the main one.
        arena: u64,
        /// Its first address.
        start: VirtualAddress,
        /// The first address after it.
        end: VirtualAddress,
        /// Resident bytes.
        resident: Fact<u64>,
        /// Bytes of chunks in use.
        in_use: u64,
        /// Chunks in use.
        chunks: u64,
        /// Bytes of free chunks, without the one at the end of the arena.
        free: u64,
        /// Resident bytes that `malloc_trim(0)` would give back.
        trim: Fact<u64>,
    }

    /// A row of `heap by size`: pages with free memory that so many chunks in use keep.
    pub struct KeptRow as "heap-kept" {
        /// The fewest chunks in use on such a page.
        least: u64,
        /// The most; absent if there is no limit.
        [optional] most: Option<u64>,
        /// Their number.
        pages: u64,
        /// Free bytes on them.
        free: u64,
        /// The smallest size of the class that has chunks in use on the most of these pages.
        smallest: u64,
        /// The number of pages with such a chunk.
        with_smallest: u64,
    }
}

/// A core file shows no page map.
pub(super) fn no_page_map() -> Reason {
    Reason::NotInFile("a core file has no page map".into())
}

/// Why the resident bytes of some arenas are unknown.
pub(super) fn resident_unknown(arenas: &[HeapArena]) -> Reason {
    match arenas.iter().find(|arena| arena.sums.is_none()) {
        Some(arena) => {
            Reason::NotInFile(format!("an arena was not read to its end: {}", why_incomplete(arena.outcome)))
        }
        None => no_page_map(),
    }
}

worded! {
    /// The result of a walk of an arena.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum WalkResult, word {
        /// All of it.
        Complete = "complete",
        /// Bytes were not found.
        Part = "part",
        /// A chunk contradicts its neighbours.
        Broken = "broken",
        /// The head of a chunk is not resident.
        Absent = "absent",
        /// The heap is not in one piece.
        Scattered = "scattered",
    }
}

words!(WalkResult => "heap_walk");

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
    pub(super) fn of(pid: Option<u32>, arena: &HeapArena) -> Self {
        let why = why_incomplete(arena.outcome);
        let (walked, missing, chunk) = match arena.outcome {
            ArenaOutcome::Complete => (WalkResult::Complete, None, None),
            ArenaOutcome::Part { missing } => (WalkResult::Part, Some(missing), None),
            ArenaOutcome::Broken(chunk) => (WalkResult::Broken, None, Some(chunk)),
            ArenaOutcome::Absent(chunk) => (WalkResult::Absent, None, Some(chunk)),
            ArenaOutcome::Scattered => (WalkResult::Scattered, None, None),
        };
        let unknown = || if arena.sums.is_none() { Reason::NotInFile(why.into()) } else { no_page_map() };
        let sum = |of: fn(&HeapSums) -> u64| arena.sums.as_ref().map(of).ok_or_else(unknown);
        let trimmable = arena.sums.as_ref().and_then(|sums| sums.trimmable.as_ref());
        let trim = |of: fn(&Trimmable) -> u64| trimmable.map(of).ok_or_else(unknown);
        ArenaRow {
            pid,
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
    pub(super) fn all<'a>(arenas: impl Iterator<Item = &'a HeapArena>) -> BTreeMap<u64, SizeRow> {
        let mut classes: BTreeMap<u64, SizeRow> = BTreeMap::new();
        for SizeClass { smallest, in_use, free, .. } in
            arenas.filter_map(|arena| arena.sums.as_ref()).flat_map(|sums| sums.sizes.iter().copied())
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

/// A number of bytes, if it is known.
pub(super) fn known<'a>(bytes: &Fact<u64>) -> Cell<'a> {
    bytes.as_ref().map_or_else(|_| unknown(), |bytes| amount(*bytes))
}

/// The title of the column that only several processes have.
fn without_pid(pid: Option<u32>) -> Option<&'static str> {
    if pid.is_none() { Some(PID.title) } else { None }
}

impl Record for ArenaRow {
    fn write(&self, text: &mut Text) {
        text.row(&ARENAS.without(without_pid(self.pid)), self);
        if self.walked != WalkResult::Complete {
            text.line(incomplete, self);
        }
    }
}

/// `heap`
static ARENAS: Table<ArenaRow> = Table::of(&[
    PID.cell(|_, row| optional(&row.pid)),
    Column::word("arena", 18, Role::Address).cell(|_, row| match row.arena {
        0 => Cell::new("0 main"),
        number => Cell::new(format!("{number} {}", row.address)),
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
    Column::word("walked", 8, Role::Plain).cell(|_, row| Cell::new(row.walked.word())),
]);

/// Why the sums of an arena are not of all of its memory.
fn incomplete(lines: &mut Lines, row: &ArenaRow) {
    let text = match (row.missing, row.chunk) {
        (Some(missing), _) => format!("{} of it were not found", size(missing)),
        (_, Some(chunk)) if row.walked == WalkResult::Absent => {
            format!("the head of the chunk at {chunk} is not resident: what comes after it is unknown")
        }
        (_, Some(chunk)) => {
            format!("the chunk at {chunk} contradicts its neighbours: the heap changed during the walk, or is damaged")
        }
        (None, None) if row.walked == WalkResult::Scattered => {
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

impl PartRow {
    pub(super) fn of(pid: Option<u32>, arena: &HeapArena, part: &HeapPart) -> Self {
        PartRow {
            pid,
            arena: arena.number as u64,
            start: part.range.start(),
            end: part.range.end(),
            resident: part.resident.ok_or_else(no_page_map),
            in_use: part.in_use.bytes,
            chunks: part.in_use.chunks,
            free: part.free.bytes,
            trim: part.trimmable.map(|trim| trim.now).ok_or_else(no_page_map),
        }
    }
}

impl Record for PartRow {
    fn write(&self, text: &mut Text) {
        text.row(&PARTS.without(without_pid(self.pid)), self);
    }
}

/// `heap by region`
static PARTS: Table<PartRow> = Table::of(&[
    PID.cell(|_, row| optional(&row.pid)),
    Column::word("start", 18, Role::Address).cell(|_, row| Cell::new(&row.start)),
    Column::number("arena", 5, Role::Size).cell(|_, row| Cell::of(Role::Size, row.arena.to_string())),
    Column::number("resident", 8, Role::Size).cell(|_, row| known(&row.resident)),
    Column::number("in use", 8, Role::Size).cell(|_, row| amount(row.in_use)),
    Column::number("chunks", 9, Role::Size).cell(|_, row| Cell::count(row.chunks)),
    Column::number("free", 8, Role::Size).cell(|_, row| amount(row.free)),
    Column::number("trim", 8, Role::Size).cell(|_, row| known(&row.trim)),
]);

impl KeptRow {
    /// Of all these arenas, the fewest chunks first.
    pub(super) fn all<'a>(arenas: impl Iterator<Item = &'a HeapArena>) -> Vec<KeptRow> {
        let mut rows: BTreeMap<u64, (KeptRow, BTreeMap<u64, u64>)> = BTreeMap::new();
        let sums = arenas.filter_map(|arena| arena.sums.as_ref());
        for &KeptPages { least, most, pages, free, ref sizes, .. } in sums.flat_map(|sums| &sums.kept) {
            let none = KeptRow { least, most, pages: 0, free: 0, smallest: 0, with_smallest: 0 };
            let (row, all) = rows.entry(least).or_insert_with(|| (none, BTreeMap::new()));
            row.pages += pages;
            row.free += free;
            sizes.iter().for_each(|(smallest, pages)| *all.entry(*smallest).or_default() += pages);
        }
        let named = |(row, sizes): (KeptRow, BTreeMap<u64, u64>)| {
            let (smallest, with_smallest) = sizes.into_iter().max_by_key(|(_, pages)| *pages).unwrap_or_default();
            KeptRow { smallest, with_smallest, ..row }
        };
        rows.into_values().map(named).collect()
    }

    /// `1`, `3 to 4`, `9 or more`
    fn chunks(&self) -> String {
        match self.most {
            Some(most) if most == self.least => most.to_string(),
            Some(most) => format!("{} to {most}", self.least),
            None => format!("{} or more", self.least),
        }
    }
}

impl Record for KeptRow {
    fn write(&self, text: &mut Text) {
        text.row(&KEPT, self);
    }
}

/// `heap by size`, below the sizes
static KEPT: Table<KeptRow> = Table::of(&[
    Column::word("kept by chunks", 14, Role::Plain).cell(|_, row| Cell::new(row.chunks())),
    Column::number("pages", 9, Role::Size).cell(|_, row| Cell::count(row.pages)),
    Column::number("free", 8, Role::Size).cell(|_, row| amount(row.free)),
    Column::word("most often of", 30, Role::Plain)
        .cell(|_, row| Cell::new(format!("{} on {}", class(row.smallest), counted(row.with_smallest, "page")))),
]);

/// `32 to 63 bytes`
pub(super) fn class(smallest: u64) -> String {
    match smallest {
        ..1024 => format!("{smallest} to {} bytes", 2 * smallest - 1),
        _ => format!("{} to {}", size(smallest), size(smallest.saturating_mul(2))),
    }
}

/// An arena, with its process if there are several.
pub(super) type Found = (Option<u32>, HeapArena);

/// The rows of arenas.
pub(super) fn emit(by: HeapKey, mut arenas: Vec<Found>, cut: Option<RowLimit>, context: &mut Context) -> Outcome {
    let sink = &mut *context.sink;
    match by {
        HeapKey::Arena => {
            // An arena that no thread has used yet has nothing to show.
            arenas.retain(|(_, arena)| arena.system_bytes > 0 || arena.outcome != ArenaOutcome::Complete);
            let more = keep_shown(&mut arenas, cut, |(_, arena)| arena.resident.unwrap_or(arena.system_bytes));
            arenas.iter().try_for_each(|(pid, arena)| sink.emit(&ArenaRow::of(*pid, arena)))?;
            note_hidden_rows(more, "arena", sink)?;
        }
        HeapKey::Size => {
            let mut rows: Vec<SizeRow> = SizeRow::all(arenas.iter().map(|(_, arena)| arena)).into_values().collect();
            let more = keep_shown(&mut rows, cut, |row| row.in_use + row.free);
            rows.iter().try_for_each(|row| sink.emit(row))?;
            note_hidden_rows(more, "size", sink)?;
            let kept = KeptRow::all(arenas.iter().map(|(_, arena)| arena));
            kept.iter().try_for_each(|row| sink.emit(row))?;
        }
        HeapKey::Region => {
            let mut rows = Vec::new();
            for (pid, arena) in &arenas {
                let parts = arena.sums.iter().flat_map(|sums| &sums.parts);
                rows.extend(parts.map(|part| PartRow::of(*pid, arena, part)));
            }
            let more = keep_shown(&mut rows, cut, |row| row.resident.clone().unwrap_or(row.in_use));
            rows.iter().try_for_each(|row| sink.emit(row))?;
            note_hidden_rows(more, "region", sink)?;
        }
    }
    Ok(Flow::Done)
}
