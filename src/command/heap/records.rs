//! The sums of `heap` and how they are written: the sentence that answers, and a row for each of several processes.

use crate::command::heap_sentence::{HeapSentence, LARGE, NOT_RESIDENT};
use crate::inspect::heap::{HeapArena, HeapSums, MappedChunks, Trimmable};
use crate::kernel::words::Worded;
use crate::kernel::{Name, VirtualAddress};
use crate::render::Record;
use crate::render::columns::{Cell, Column, PID, Table};
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::theme::Role;
use crate::render::units::{counted, size};
use crate::report::Fact;
use crate::report::record::record;
use std::collections::BTreeMap;

use super::others::OtherAllocator;
use super::rows::{class, known, no_page_map, resident_unknown};

record! {
    /// The sums of `heap`. Chunks are counted in arenas that were walked to their ends.
    pub struct HeapSummary as "heap-summary" with why if any {
        /// Process id.
        pid: u32,
        /// The name of the process.
        process: Name,
        /// The number of the arena, if the command names one: these are its sums.
        [optional] arena: Option<u64>,
        /// Arenas of glibc's malloc that have memory.
        arenas: u64,
        /// Arenas that were not walked to their ends: their chunks are in no sum.
        incomplete: u64,
        /// Resident bytes of the arenas.
        resident: Fact<u64>,
        /// Bytes that they have from the kernel.
        system: u64,
        /// Bytes of chunks in use.
        in_use: Fact<u64>,
        /// Bytes of free chunks, without the free chunk at the end of each arena.
        free: Fact<u64>,
        /// Bytes of free chunks that no trim gives back.
        between: Fact<u64>,
        /// Of these, bytes on pages with one or two chunks in use.
        kept: u64,
        /// The smallest size of the class that has these chunks most often.
        [optional] kept_size: Option<u64>,
        /// Bytes of the free chunks at the ends of the arenas.
        top: Fact<u64>,
        /// Heaps of threads that have no chunk in use.
        empty_heaps: u64,
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
        /// Large chunks that are mappings of their own; `null` for one arena.
        mapped_chunks: Option<u64>,
        /// Their bytes.
        mapped: Option<u64>,
        /// Resident bytes of anonymous memory outside of these heaps: of the program itself, of stacks, or of another
        /// allocator.
        other: Fact<u64>,
        /// The region with most of it.
        [optional] other_region: Option<VirtualAddress>,
        /// Its resident bytes outside of these heaps.
        [optional] of_region: Option<u64>,
        /// Bytes of variables that were not searched for an arena, because they are in swap or too many; `null` for one
        /// arena.
        unsearched: Option<u64>,
        /// Other allocators that the names of libraries or symbols show; `null` for one arena.
        allocators: Option<Vec<&'static str>>,
    }

    /// The sums of `heap` of several processes. All are of arenas that were walked to their ends.
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
        /// Processes that were not read because of an interruption.
        not_read: u64,
        /// Resident bytes of their arenas. What processes share since a fork counts in each.
        resident: u64,
        /// Bytes of chunks in use; `null` if no arena was walked to its end.
        in_use: Option<u64>,
        /// Bytes of free chunks that no trim gives back; `null` as before.
        between: Option<u64>,
        /// Resident bytes that `malloc_trim(0)` in each would give back; `null` as before.
        trim: Option<u64>,
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
        in_use: Fact<u64>,
        /// Bytes of free chunks that no trim gives back.
        between: Fact<u64>,
        /// Resident bytes that `malloc_trim(0)` would give back.
        trim: Fact<u64>,
        /// Bytes of large chunks that are mappings of their own.
        mapped: u64,
        /// Resident bytes of other anonymous memory.
        other: Fact<u64>,
        /// Other allocators that the names of libraries or symbols show.
        allocators: Vec<&'static str>,
    }
}

impl HeapSummary {
    pub(super) fn of(arenas: &[HeapArena], mapped: &MappedChunks) -> Self {
        let resident: Fact<u64> =
            arenas.iter().map(|arena| arena.resident).sum::<Option<u64>>().ok_or_else(|| resident_unknown(arenas));
        let sums = || arenas.iter().filter_map(|arena| arena.sums.as_ref());
        let sum = |of: fn(&HeapSums) -> u64| sums().map(of).fold(0, u64::saturating_add);
        // Nothing is known of the chunks of arenas of which none was walked.
        let is_unknown = !arenas.is_empty() && sums().next().is_none();
        let chunks = |of: fn(&HeapSums) -> u64| if is_unknown { Err(resident_unknown(arenas)) } else { Ok(sum(of)) };
        let trim = |of: fn(&Trimmable) -> u64| -> Fact<u64> {
            if is_unknown {
                return Err(resident_unknown(arenas));
            }
            let all = sums().map(|sums| sums.trimmable.as_ref().map(of)).sum::<Option<u64>>();
            all.ok_or_else(no_page_map)
        };
        // Pages with one chunk in use, and with two.
        let few = || sums().flat_map(|sums| &sums.kept).filter(|kept| kept.least <= 2);
        let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
        few().flat_map(|kept| &kept.sizes).for_each(|(size, pages)| *sizes.entry(*size).or_default() += pages);
        let of_threads = arenas.iter().filter(|arena| arena.number > 0).filter_map(|arena| arena.sums.as_ref());
        let empty = of_threads.flat_map(|sums| &sums.parts).filter(|part| part.in_use.chunks == 0);
        let known = HeapSentence::of(arenas);
        HeapSummary {
            pid: 0,
            process: Name::default(),
            arena: None,
            kept: few().map(|kept| kept.free).sum(),
            kept_size: sizes.into_iter().max_by_key(|(_, pages)| *pages).map(|(size, _)| size),
            empty_heaps: empty.count() as u64,
            arenas: known.arenas,
            incomplete: known.incomplete,
            system: known.system,
            in_use: known.in_use.ok_or_else(|| resident_unknown(arenas)),
            free: chunks(|sums| sums.free.bytes),
            between: known.between.ok_or_else(|| resident_unknown(arenas)),
            top: chunks(|sums| sums.top),
            foreign: sum(|sums| sums.foreign),
            trim: trim(|trim| trim.now),
            trim_huge: trim(|trim| trim.huge),
            trim_shared: trim(|trim| trim.shared),
            trim_locked: trim(|trim| trim.locked),
            trim_unclear: trim(|trim| trim.unclear),
            mapped_chunks: Some(mapped.sum.chunks),
            mapped: Some(mapped.sum.bytes),
            other: Err(resident.as_ref().err().cloned().unwrap_or_else(no_page_map)),
            resident,
            other_region: None,
            of_region: None,
            unsearched: None,
            allocators: None,
        }
    }
}

impl HeapFamily {
    pub(super) fn add(&mut self, one: &HeapSummary, arenas: &[HeapArena]) {
        self.processes += 1;
        self.with_heap += u64::from(one.arenas > 0);
        self.incomplete += u64::from(one.incomplete > 0);
        self.resident += arenas.iter().filter_map(|arena| arena.resident).sum::<u64>();
        for (all, one) in
            [(&mut self.in_use, &one.in_use), (&mut self.between, &one.between), (&mut self.trim, &one.trim)]
        {
            if let Ok(bytes) = one {
                *all = Some(all.unwrap_or_default().saturating_add(*bytes));
            }
        }
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
            mapped: one.mapped.unwrap_or_default(),
            other: one.other,
            allocators: one.allocators.unwrap_or_default(),
        }
    }
}

impl Record for HeapSummary {
    fn write(&self, text: &mut Text) {
        text.line(summary, self);
    }
}

/// The answer, and what stands beside it.
fn summary(lines: &mut Lines, summary: &HeapSummary) {
    let line = lines.line().indent(2);
    let known = |bytes: &Fact<u64>| bytes.as_ref().ok().copied();
    let sentence = HeapSentence {
        arena: summary.arena,
        arenas: summary.arenas,
        incomplete: summary.incomplete,
        resident: known(&summary.resident),
        system: summary.system,
        in_use: known(&summary.in_use),
        trim: known(&summary.trim),
        between: known(&summary.between),
    };
    sentence.parts().into_iter().for_each(|(role, part)| _ = line.push(role, part));
    keepers(lines, summary);
    if let Some(unsearched @ 1..) = summary.unsearched {
        let text = format!("{} of variables were not searched: they are in swap, or too many", size(unsearched));
        lines.line().indent(2).push(Role::Warn, text);
    }
    if summary.incomplete > 0 {
        let what = counted(summary.incomplete, "arena");
        let whose = if summary.incomplete == 1 { "its" } else { "their" };
        lines.line().indent(2).push(Role::Warn, format!("{what} could not be walked: {whose} chunks are in no sum"));
    }
    beside(lines, summary);
}

/// What else is free, and what is not in the arenas.
fn beside(lines: &mut Lines, summary: &HeapSummary) {
    let more = if matches!(summary.trim, Ok(1..)) { " more" } else { "" };
    for (bytes, more, what) in [
        (&summary.trim_huge, more, "is free on huge pages: a trim gives it back once the kernel splits them"),
        (&summary.trim_shared, more, "is free on pages that are mapped elsewhere too: only RSS would fall"),
        (&summary.trim_locked, more, "is free and locked in memory: no trim frees it"),
        (&summary.trim_unclear, more, "is free on pages that may be mapped elsewhere too"),
        (&Ok(summary.foreign), "", "lies between chunks: the program itself got it with sbrk"),
        (&Ok(summary.mapped.unwrap_or_default()), "", LARGE),
    ] {
        if let Ok(bytes @ 1..) = bytes {
            lines.line().indent(2).plain(format!("{}{more} {what}", size(*bytes)));
        }
    }
    if let Ok(other @ 1..) = summary.other {
        let line = lines.line().indent(2);
        let whose = "of anonymous memory belongs to the program itself, to stacks, or to another allocator";
        line.plain(format!("{} {whose}", size(other)));
        if let (Some(region), Some(bytes)) = (summary.other_region, summary.of_region) {
            line.plain(format!(": {} of it to the region at {region}", size(bytes)));
        }
    }
    if summary.empty_heaps > 0 {
        let heaps = counted(summary.empty_heaps, "heap");
        let have = if summary.empty_heaps == 1 { "has" } else { "have" };
        lines.line().indent(2).plain(format!("{heaps} of threads {have} no chunk in use (`heap by region`)"));
    }
    for allocator in summary.allocators.iter().flatten().filter_map(|word| OtherAllocator::from_word(word)) {
        let text = format!("{} is in this program, and its heap is not read", allocator.word());
        let line = lines.line();
        line.indent(2).push(Role::Note, text);
        if let Some((_, ask)) = allocator.about().split_once(": ") {
            line.plain(format!(": {}", ask.trim_end_matches('.')));
        }
    }
}

/// Which chunks keep free memory, if few of them keep much.
fn keepers(lines: &mut Lines, summary: &HeapSummary) {
    let whole = summary.resident.as_ref().copied().unwrap_or(summary.system);
    if let Some(smallest) = summary.kept_size
        && summary.between.as_ref().is_ok_and(|between| 2 * summary.kept >= *between)
        && 20 * summary.kept >= whole
    {
        let text = format!(
            "{} of the free memory is on pages with only one or two chunks in use, most often of {}",
            size(summary.kept),
            class(smallest)
        );
        lines.line().indent(2).plain(text);
    }
}

impl Record for HeapFamily {
    fn write(&self, text: &mut Text) {
        text.line(family, self);
    }
}

/// The answer for several processes.
fn family(lines: &mut Lines, family: &HeapFamily) {
    let at_least = if family.incomplete + family.not_read > 0 { "at least " } else { "" };
    // Before an interruption perhaps none was read.
    if family.processes > 0 {
        let line = lines.line().indent(2);
        line.plain(counted(family.with_heap, "process"))
            .plain(format!(" with {at_least}{} resident in glibc heaps: ", size(family.resident)));
        match family.in_use {
            Some(in_use) => line
                .push(Role::Good, format!("{at_least}{} of chunks in use", size(in_use)))
                .plain(if in_use > family.resident { NOT_RESIDENT } else { "" }),
            None => line.push(Role::Warn, "the bytes in use are unknown"),
        };
        for (bytes, what) in
            [(family.trim, "that malloc_trim(0) in each would free"), (family.between, "free between chunks in use")]
        {
            if let Some(bytes) = bytes {
                line.plain(format!(", {} {what}", size(bytes)));
            }
        }
    }
    for (processes, what) in [
        (family.processes - family.with_heap, "without a heap of glibc"),
        (family.incomplete, "with an arena that could not be walked"),
        (family.without_memory, "left out: the capture has no memory of them"),
        (family.refused, "left out: permission denied"),
        (family.ended, "ended before the read"),
        (family.kernel_threads, "left out: a kernel thread has no memory of its own"),
        (family.not_read, "not read: interrupted"),
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
    Column::number("resident", 8, Role::Size).cell(|_, row| known(&row.resident)),
    Column::number("in use", 8, Role::Size).cell(|_, row| known(&row.in_use)),
    Column::number("between", 8, Role::Size).cell(|_, row| known(&row.between)),
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

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::super::rows::{ArenaRow, KeptRow, PartRow, SizeRow};
    use super::*;
    use crate::inspect::heap::{ArenaOutcome, ChunkSum, HeapPart, KeptPages};
    use crate::kernel::AddressRange;

    pub fn all() -> Vec<Box<dyn Record>> {
        let at = VirtualAddress::new(0x7f00_0010);
        let row = |number, outcome, sums| ArenaRow::of(None, &HeapArena { number, outcome, sums, ..arena() });
        let arenas = [arena(), HeapArena { outcome: ArenaOutcome::Scattered, sums: None, ..arena() }];
        let mut mapped = MappedChunks::default();
        mapped.sum.add(42 << 20);
        let summary = HeapSummary {
            pid: 812,
            process: Name::new("app"),
            other: Ok(1 << 20),
            allocators: Some(vec![OtherAllocator::Jemalloc.word()]),
            ..HeapSummary::of(&arenas, &mapped)
        };
        let none = HeapSummary {
            pid: 812,
            process: Name::new("app"),
            other: Ok(300 << 20),
            unsearched: Some(8192),
            allocators: Some(OtherAllocator::words().collect()),
            ..HeapSummary::of(&[], &MappedChunks::default())
        };
        let of_core = HeapArena {
            resident: None,
            sums: Some(HeapSums { trimmable: None, ..arena().sums.unwrap_or_default() }),
            ..arena()
        };
        let mut family = HeapFamily { refused: 1, ended: 1, without_memory: 1, not_read: 2, ..HeapFamily::default() };
        for (one, arenas) in [(&summary, &arenas[..]), (&summary, &arenas), (&none, &[])] {
            family.add(one, arenas);
        }
        let unwalked = HeapArena { outcome: ArenaOutcome::Scattered, sums: None, ..arena() };
        let mut not_walked = HeapFamily::default();
        let one = HeapSummary::of(std::slice::from_ref(&unwalked), &MappedChunks::default());
        not_walked.add(&one, std::slice::from_ref(&unwalked));
        let part = arena().sums.unwrap_or_default().parts.remove(0);
        let kept = KeptRow::all([arena()].iter());
        let nothing_free = HeapArena {
            sums: Some(HeapSums {
                in_use: arena().sums.unwrap_or_default().in_use,
                trimmable: Some(Trimmable { locked: 8192, ..Trimmable::default() }),
                ..HeapSums::default()
            }),
            ..arena()
        };
        let all: Vec<Box<dyn Record>> = vec![
            Box::new(HeapSummary {
                other: Ok(41 << 20),
                other_region: Some(VirtualAddress::new(0x7f00_0000_0000)),
                of_region: Some(40 << 20),
                ..HeapSummary::of(&[arena()], &MappedChunks::default())
            }),
            Box::new(HeapSummary::of(std::slice::from_ref(&of_core), &MappedChunks::default())),
            Box::new(family),
            Box::new(not_walked),
            Box::new(HeapSummary::of(&[unwalked], &MappedChunks::default())),
            Box::new(ProcessRow::of(summary)),
            Box::new(ProcessRow::of(none)),
            Box::new(ArenaRow::of(None, &arena())),
            Box::new(ArenaRow::of(Some(812), &arena())),
            Box::new(ArenaRow::of(None, &of_core)),
            Box::new(row(1, ArenaOutcome::Part { missing: 2 << 20 }, None)),
            Box::new(row(2, ArenaOutcome::Broken(at), None)),
            Box::new(row(3, ArenaOutcome::Absent(at), None)),
            Box::new(row(0, ArenaOutcome::Scattered, None)),
            Box::new(PartRow::of(None, &arena(), &part)),
            Box::new(PartRow::of(Some(812), &of_core, &HeapPart { resident: None, trimmable: None, ..part })),
            Box::new(HeapSummary { arena: Some(0), ..HeapSummary::of(&[nothing_free], &MappedChunks::default()) }),
            Box::new(SizeRow { smallest: 64, in_use: 12 << 20, chunks: 131_072, free: 640, free_chunks: 10 }),
        ];
        all.into_iter().chain(kept.into_iter().map(|row| Box::new(row) as Box<dyn Record>)).collect()
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
                kept: vec![
                    KeptPages {
                        least: 1,
                        most: Some(1),
                        pages: 9000,
                        free: 30 << 20,
                        sizes: vec![(32, 8000), (64, 1000)],
                    },
                    KeptPages {
                        least: 9,
                        most: None,
                        pages: 100,
                        free: 100 << 10,
                        sizes: vec![(1024, 90), (2048, 40)],
                    },
                ],
                trimmable: Some(trimmable),
                parts: vec![HeapPart {
                    range: AddressRange::of_length(VirtualAddress::new(0x5555_0000_0000), 320 << 20).expect("a range"),
                    resident: Some(300 << 20),
                    in_use,
                    free,
                    trimmable: Some(trimmable),
                }],
            }),
        }
    }
}
