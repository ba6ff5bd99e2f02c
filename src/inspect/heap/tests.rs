//! Walks over constructed heaps: sound ones, and ones with a single wrong word.

use super::pieces::PieceKind;
use super::walk::{Broken, ChunkLayout, ChunkRun, Stretch, StretchEnd};
use super::words::Words;
use crate::budget::Budget;
use crate::inspect::Result;
use crate::kernel::PageSize;
use crate::process::WordLayout;
use std::collections::BTreeMap;

const LAYOUT: ChunkLayout = ChunkLayout { pointer_bytes: 8, alignment: 16, page: PageSize::FOUR_KIB };

#[derive(Default)]
struct Made {
    words: BTreeMap<u64, u64>,
    budget: Budget,
    /// The bytes from 0x1000 on that [`Words::known`] returns.
    known: Vec<u8>,
}

const WORDS: WordLayout =
    WordLayout { page: PageSize::FOUR_KIB, pointer_bytes: 8, is_little_endian: true, is_char_signed: true };

impl Made {
    /// Makes the bytes up to `end`, or to the first head that is missing, known before they are read.
    fn know(&mut self, end: u64) {
        let there = (0x1000..end).step_by(8).map_while(|at| self.words.get(&at));
        self.known = there.flat_map(|word| word.to_le_bytes()).collect();
    }
}

impl Words for Made {
    fn pointer_bytes(&self) -> u64 {
        8
    }

    fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    fn word(&mut self, address: u64) -> Result<Option<u64>> {
        Ok(self.words.get(&address).copied())
    }

    fn known(&self, address: u64) -> Option<(&[u8], WordLayout)> {
        let offset = usize::try_from(address.checked_sub(0x1000)?).ok()?;
        Some((self.known.get(offset..)?, WORDS))
    }
}

/// The words of user data.
const DATA: u64 = 0x6161_6161;

/// Returns a heap at 0x1000 of chunks with these sizes, in use or free, and a top of 0x100 bytes.
fn made(chunks: &[(u64, bool)]) -> (Made, Stretch) {
    let mut made = Made::default();
    let mut at = 0x1000;
    let mut before = (0, true);
    for &(size, is_in_use) in chunks.iter().chain(&[(0x100, true)]) {
        made.words.extend((at..at + size).step_by(8).map(|at| (at, DATA)));
        made.words.insert(at, if before.1 { DATA } else { before.0 });
        made.words.insert(at + 8, size | u64::from(before.1));
        (at, before) = (at + size, (size, is_in_use));
    }
    (made, Stretch { layout: LAYOUT, top: at - 0x100, end: at, is_of_threads: false })
}

/// Returns the addresses of the heads of its chunks, and of the top.
fn heads(chunks: &[(u64, bool)]) -> Vec<u64> {
    let sizes = chunks.iter().map(|(size, _)| *size);
    let next = sizes.scan(0x1008, |at, size| Some(std::mem::replace(at, *at + size) + size));
    std::iter::once(0x1008).chain(next).collect()
}

/// Walks a heap with every amount of known bytes: the results must be equal.
fn walk(words: &mut Made, stretch: &Stretch) -> (std::result::Result<StretchEnd, Broken>, [u64; 2]) {
    let mut walked = Vec::new();
    for end in (0x1000..=stretch.end).step_by(8) {
        words.know(end);
        let (mut bytes, mut at) = ([0; 2], 0x1000);
        let take = &mut |runs: &[ChunkRun], _: &mut Budget| {
            for piece in runs.iter().flat_map(|run| run.pieces()) {
                assert_eq!(piece.start.get(), at);
                at += piece.bytes;
                bytes[usize::from(piece.kind == PieceKind::InUse)] += piece.bytes;
            }
            Ok(())
        };
        walked.push((stretch.walk(words, 0x1000, take).expect("no limit"), bytes));
    }
    assert!(walked.windows(2).all(|pair| pair[0] == pair[1]));
    walked[0]
}

const SOUND: &[(u64, bool)] =
    &[(0x290, true), (0x40, true), (0x1000, false), (0x20, true), (0x30, false), (0x50, true)];

#[test]
fn a_sound_heap_is_added_up() {
    let (mut words, stretch) = made(SOUND);
    assert_eq!(walk(&mut words, &stretch), (Ok(StretchEnd::Top(stretch.top)), [0x1030, 0x290 + 0x40 + 0x20 + 0x50]));
}

#[test]
fn chunks_of_one_size_are_added_up_as_others_are() {
    // More than a page, and more than a run has.
    let chunks: Vec<_> = (0..200).map(|index| (0x20, index % 3 != 1)).chain([(0x40, true), (0x40, true)]).collect();
    let (mut words, stretch) = made(&chunks);
    let free = chunks.iter().filter(|(_, is_in_use)| !is_in_use).count() as u64;
    let sums = [free * 0x20, (200 - free) * 0x20 + 0x80];
    assert_eq!(walk(&mut words, &stretch), (Ok(StretchEnd::Top(stretch.top)), sums));
}

#[test]
fn one_wrong_head_breaks_the_walk() {
    let (_, stretch) = made(SOUND);
    let heads = heads(SOUND);
    for &head in &heads {
        // Another state of the chunk before, another size, a size of 2^63, a mapping, a chunk of threads, nothing.
        for change in [1, 0x10, 0x20, 1 << 63, 2, 4] {
            let (mut words, _) = made(SOUND);
            *words.words.get_mut(&head).expect("a head") ^= change;
            // The size of the top is not checked, and only chunks in use contain whether their arena is one of threads.
            let is_top = head == stretch.top + 8;
            let is_free = head == 0x1000 + 0x290 + 0x40 + 8 || head == 0x1000 + 0x290 + 0x40 + 0x1000 + 0x20 + 8;
            // A size that leads to another chunk skips some: nothing contradicts that.
            let leads_on = change >= 0x10 && heads.contains(&head.wrapping_add(words.words[&head] & !7));
            // If a free chunk is marked as in use, its neighbours do not contradict that.
            let hides_free = change == 1 && words.words[&head] & 1 == 1;
            if hides_free
                || (is_top && change & 7 == 0 && change >> 63 == 0)
                || (change == 4 && (is_free || is_top))
                || leads_on
            {
                continue;
            }
            let (ended, _) = walk(&mut words, &stretch);
            assert!(ended.is_err(), "{head:#x} ^ {change:#x}: {ended:?}");
        }
        let (mut words, _) = made(SOUND);
        words.words.remove(&head);
        assert!(matches!(walk(&mut words, &stretch).0, Err(Broken::Absent(_))), "{head:#x}");
    }
}

#[test]
fn the_size_at_the_end_of_a_free_chunk_is_compared() {
    let (mut words, stretch) = made(SOUND);
    let end = 0x1000 + 0x290 + 0x40 + 0x1000;
    words.words.insert(end, 0x1010);
    assert_eq!(walk(&mut words, &stretch).0, Err(Broken::Chunk(end - 0x1000)));
}

#[test]
fn a_stretch_ends_at_two_heads() {
    let (mut words, stretch) = made(SOUND);
    let top = stretch.top;
    // The top became a free chunk, and two chunks of the size of a head follow it (sysmalloc).
    words.words.insert(top + 0xe0, 0xe0);
    words.words.insert(top + 8, 0xe1);
    words.words.insert(top + 0xe8, 0x10);
    words.words.insert(top + 0xf8, 0x11);
    let stretch = Stretch { top: top + 0x4000, end: top + 0x5000, ..stretch };
    assert_eq!(walk(&mut words, &stretch), (Ok(StretchEnd::Fence(top + 0x100)), [0x1110, 0x340]));
}

#[test]
fn a_walk_has_a_budget() {
    let (mut words, stretch) = made(SOUND);
    words.budget = Budget::unlimited().at_most(3);
    assert!(stretch.walk(&mut words, 0x1000, &mut |_, _| Ok(())).is_err());
}
