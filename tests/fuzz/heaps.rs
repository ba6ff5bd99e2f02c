//! Heaps of glibc: the memory of two made arenas, and the words that a capture `with heap` has of them. A heap reads the
//! same in both, and what is said to be complete is as many bytes as the arena has from the kernel.

use crate::made::{Machine, block, packed};
use pmdb::budget::Budget;
use pmdb::inspect::heap::{ArenaOutcome, HeapArena, HeapPlace, HeapSearch, HeapSums, LiveChunks, MappedChunks, record};
use pmdb::kernel::{AddressRange, VirtualAddress};
use pmdb::process::{InMemory, Target};
use pmdb::{AddressSpace, Evidence};
use serde_json::{Value, json};
use std::sync::Arc;

const PAGE: u64 = 0x1000;
/// Variables of the library, the break, a newer heap of the second arena and its first one, and a chunk that is a
/// mapping: where each begins, its pages, and the end of its row in `/proc/PID/maps`.
const ROWS: [(u64, u64, &str); 5] = [
    (0x1000_0000, 1, "08:01 77 /usr/lib/libc.so.6"),
    (0x2000_0000, 3, "00:00 0 [heap]"),
    (0x7f00_0400_0000, 1, "00:00 0"),
    (0x7f00_0800_0000, 2, "00:00 0"),
    (0x7f10_0000_0000, 1, "00:00 0"),
];
const BREAK: u64 = ROWS[1].0;
const NEWER: u64 = ROWS[2].0;
const FIRST: u64 = ROWS[3].0;
const MAPPED: u64 = ROWS[4].0;
/// The head of the main arena, and that of the other one after the head of its first heap (glibc 2.36, amd64).
const MAIN: u64 = ROWS[0].0 + 0x100;
const OTHER: u64 = FIRST + HEAP_INFO;
const HEAP_INFO: u64 = 0x30;
/// Bytes of a head, and where it has `top`, the bins, `next` and `system_mem`.
const STATE: u64 = 0x898;
const TOP: u64 = 0x60;
const BINS: u64 = 0x70;
const NEXT: u64 = 0x870;
const SYSTEM: u64 = 0x888;

const IN_USE_BEFORE: u64 = 1;
const OF_THREADS: u64 = 4;
/// More than any of them takes.
const MOST_STEPS: u64 = 1 << 22;

/// Memory of the rows, one after the other.
struct Image(Vec<u8>);

impl Image {
    fn put(&mut self, address: u64, word: u64) {
        let mut at = 0;
        for (start, pages, _) in ROWS {
            if (start..start + pages * PAGE).contains(&address) {
                let at = (at + address - start) as usize;
                self.0[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
            at += pages * PAGE;
        }
    }

    fn state(&mut self, state: u64, top: u64, next: u64, system: u64) {
        for bin in (state + BINS..state + NEXT - 16).step_by(16) {
            self.put(bin, bin - 16);
            self.put(bin + 8, bin - 16);
        }
        for (offset, word) in [(TOP, top), (NEXT, next), (0x880, 1), (SYSTEM, system), (SYSTEM + 8, system)] {
            self.put(state + offset, word);
        }
    }

    /// Chunks in use and free ones up to a last free one before `end`. Returns where that begins.
    fn chunks(&mut self, start: u64, end: u64, flags: u64) -> u64 {
        let (mut at, mut before_in_use) = (start, IN_USE_BEFORE);
        for (size, is_in_use) in [(0x20, true), (0x50, true), (0x40, false), (0x90, true)].into_iter().cycle() {
            if end - at < 0x200 && before_in_use == IN_USE_BEFORE {
                break;
            }
            self.put(at + 8, size | before_in_use | if is_in_use { flags } else { 0 });
            at += size;
            before_in_use = u64::from(is_in_use);
            if !is_in_use {
                self.put(at, size);
            }
        }
        self.put(at + 8, (end - at) | IN_USE_BEFORE);
        at
    }
}

pub fn memory_seeds() -> Vec<Vec<u8>> {
    let mut image = Image(vec![7; ROWS.iter().map(|row| (row.1 * PAGE) as usize).sum()]);
    let top = image.chunks(BREAK, BREAK + 3 * PAGE, 0);
    image.state(MAIN, top, OTHER, 3 * PAGE);
    // What was left of the first heap is a free chunk, and two chunks without memory of their own end it.
    let end = FIRST + 2 * PAGE - 0x20;
    let last = image.chunks(OTHER + STATE + 8, end, OF_THREADS);
    for (at, word) in [(0, end - last), (8, 0x10), (0x10, 0x10), (0x18, IN_USE_BEFORE)] {
        image.put(end + at, word);
    }
    let top = image.chunks(NEWER + HEAP_INFO, NEWER + PAGE, OF_THREADS);
    image.state(OTHER, top, MAIN, 3 * PAGE);
    for (heap, before, bytes) in [(FIRST, 0, 2 * PAGE), (NEWER, FIRST, PAGE)] {
        for (number, word) in (0..).zip([OTHER, before, bytes, bytes]) {
            image.put(heap + 8 * number, word);
        }
    }
    image.put(MAPPED, 0);
    image.put(MAPPED + 8, PAGE | 2);
    let arenas = arenas(&space(&image.0, None)).expect("a sound seed");
    let complete = |arena: &HeapArena| arena.outcome == ArenaOutcome::Complete && arena.system_bytes == 3 * PAGE;
    assert!(arenas.len() == 2 && arenas.iter().all(complete), "{arenas:?}");
    vec![image.0]
}

pub fn word_seeds() -> Vec<Vec<u8>> {
    let [memory] = &memory_seeds()[..] else { panic!("one seed") };
    vec![recorded(&space(memory, None)).expect("a sound seed").into_iter().flat_map(u64::to_le_bytes).collect()]
}

/// A process with this memory, or without any and with these words of its heap.
fn space(memory: &[u8], words: Option<&[u64]>) -> AddressSpace {
    let mut made = Machine { is_big: false, page: PAGE, pointer: 8 }.capture();
    let mut blocks = |name: &str, bytes: &[u8]| {
        let packed = packed(bytes);
        json!([made.add(&format!("77/{name}.gz"), "0", &packed), packed.len(), bytes.len()])
    };
    let (mut maps, mut runs, mut populated, mut stored, mut at) = (String::new(), Vec::new(), Vec::new(), json!({}), 0);
    for (number, (start, pages, rest)) in (0..).zip(ROWS) {
        let end = start + pages * PAGE;
        maps += &format!("{start:x}-{end:x} rw-p 00000000 {rest}\n");
        let entries = (0..pages).map(|page| 1 << 63 | 1 << 56 | (0x100 * (number + 1) + page));
        runs.push((start / PAGE, pages, entries.collect()));
        populated.extend([start, end, 1 << 3].into_iter().flat_map(u64::to_le_bytes));
        let content = memory.get(at..).map(|rest| &rest[..rest.len().min((pages * PAGE) as usize)]).unwrap_or_default();
        if !content.is_empty() {
            stored[start.to_string()] = json!([blocks(&format!("mem{number}"), content)]);
        }
        at += (pages * PAGE) as usize;
    }
    let (first, last) = (ROWS[0].0 / PAGE, ROWS[4].0 / PAGE);
    let entries = json!({ "end": 1_u64 << 36, "blocks": [[first, last, blocks("entries", &block(&runs))]] });
    let populated = json!([blocks("rows", &populated)]);
    let heap = words.map_or(Value::Null, |words| {
        let count = words.len() as u64;
        json!({ "end": count, "blocks": [[0, count.max(1) - 1, blocks("heap", &block(&[(0, count, words.to_vec())]))]] })
    });
    let process = &mut made.index["processes"][0];
    for (name, value) in [("maps", maps.into()), ("page_map", entries), ("populated", populated), ("memory", stored)] {
        process[name] = value;
    }
    if !heap.is_null() {
        process["heap"] = heap;
    }
    let target = Target::of_capture(Box::new(InMemory::file(made.whole())), 0).expect("a sound capture");
    AddressSpace::of(&Arc::new(target)).expect("its regions")
}

fn budget() -> Budget {
    Budget::unlimited().at_most(MOST_STEPS)
}

/// The arenas; `None` where there is no answer.
fn arenas(space: &AddressSpace) -> Option<Vec<HeapArena>> {
    let mut search = HeapSearch::new(space, budget()).ok()?;
    let mut all = Vec::new();
    while let Some(arena) = search.next().ok()? {
        adds_up(&arena);
        all.push(arena);
    }
    // What else walks them.
    _ = (LiveChunks::of(space, &budget()).is_ok(), MappedChunks::of(space, budget()).is_ok());
    for address in [BREAK + 0x30, NEWER + 0x30, OTHER, MAPPED] {
        _ = HeapPlace::of(space, VirtualAddress::new(address), &budget()).is_ok();
    }
    let mut pages = space.pages(&space.spans(), Evidence::ENTRIES | Evidence::HEAP).with_budget(budget());
    while let Ok(Some(chunk)) = pages.next() {
        assert!(chunk.pages().count() < 100);
    }
    Some(all)
}

/// A complete arena is as many bytes as it has from the kernel, in its parts and in its pieces.
fn adds_up(arena: &HeapArena) {
    assert_eq!(arena.outcome == ArenaOutcome::Complete, arena.sums.is_some(), "{arena:?}");
    let Some(HeapSums { in_use, free, top, foreign, sizes, parts, .. }) = &arena.sums else {
        return;
    };
    let own: u64 = arena.parts.iter().map(|part| part.len()).sum();
    // The break may begin where no chunk can.
    assert!(own <= arena.system_bytes && arena.system_bytes - own < 16 + foreign, "{arena:?}");
    assert!(arena.parts.is_sorted_by(|one, next| one.end() <= next.start()), "{arena:?}");
    assert!(in_use.bytes + free.bytes + top + foreign <= arena.system_bytes, "{arena:?}");
    let of_sizes = sizes.iter().fold([0; 2], |[used, free], size| [used + size.in_use.bytes, free + size.free.bytes]);
    let of_parts = parts.iter().fold([0; 2], |[used, free], part| [used + part.in_use.bytes, free + part.free.bytes]);
    assert_eq!([of_sizes, of_parts], [[in_use.bytes, free.bytes]; 2], "{arena:?}");
}

/// What a capture `with heap` would have.
fn recorded(space: &AddressSpace) -> Option<Vec<u64>> {
    let mut words = Vec::new();
    let mut write = |more: &[u64]| {
        words.extend_from_slice(more);
        Ok(())
    };
    record(space, &budget(), &mut write).ok()?;
    Some(words)
}

/// Memory of the rows: what is walked, and read from what was recorded then.
pub fn feed_memory(bytes: &[u8]) {
    let space = space(bytes, None);
    let Some(walked) = arenas(&space) else {
        return;
    };
    let mapped: Vec<AddressRange> = space.spans();
    let is_mapped = |part: &AddressRange| part.outside(&mapped).next().is_none();
    let complete = walked.iter().filter(|arena| arena.sums.is_some());
    complete.for_each(|arena| assert!(arena.parts.iter().all(is_mapped), "{arena:?}"));
    if let Some(words) = recorded(&space) {
        assert_eq!(arenas(&self::space(&[], Some(&words))).expect("what was written"), walked);
    }
}

/// Words of a capture.
pub fn feed_words(bytes: &[u8]) {
    let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    _ = arenas(&space(&[], Some(&words)));
}
