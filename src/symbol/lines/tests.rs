//! Hostile debug information: no panic, no hang, no unbounded memory, and as much of an answer as there is.

use super::table::{LineInfo, LineQuery, Places};
use super::{Frame, NoLines};
use crate::budget::Budget;
use crate::kernel::Name;
use crate::process::fake::Fake;
use crate::symbol::files::Sources;
use crate::symbol::tests::builder::{Builder, Extra};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The start and the length of the functions here.
const CODE: u64 = 0x1000;
const SIZE: u64 = 0x100;

// Numbers of the abbreviations.
const UNIT: u8 = 1;
const FUNCTION: u8 = 2;
const INLINED: u8 = 3;
const ABSTRACT: u8 = 4;
const BLOCK: u8 = 5;
const UNIT_OF_RANGES: u8 = 6;
const INLINED_ELSEWHERE: u8 = 7;
const INLINED_OF_OTHERS: u8 = 8;

/// Number, tag, whether it has children, attributes with their forms.
fn abbreviations() -> Vec<u8> {
    // low_pc (addr), high_pc (data8), and what else there is.
    let place = [0x11, 1, 0x12, 7];
    let mut bytes = Vec::new();
    let mut add = |number: u8, tag: u8, children: u8, first: &[u8], then: &[u8]| {
        bytes.extend([number, tag, children]);
        bytes.extend([first, then, &[0, 0]].concat());
    };
    add(UNIT, 0x11, 1, &place, &[0x10, 0x17]);
    add(FUNCTION, 0x2e, 1, &[0x03, 8], &place);
    // abstract_origin (ref4), call_line (data1).
    add(INLINED, 0x1d, 1, &[0x31, 0x13, 0x59, 0x0b], &place);
    add(ABSTRACT, 0x2e, 0, &[0x31, 0x13], &[]);
    add(BLOCK, 0x0b, 1, &[], &[]);
    add(UNIT_OF_RANGES, 0x11, 1, &[0x55, 0x17, 0x11, 1], &[0x10, 0x17]);
    // abstract_origin (ref_addr); abstract_origin (GNU_ref_alt).
    add(INLINED_ELSEWHERE, 0x1d, 1, &[0x31, 0x10, 0x59, 0x0b], &place);
    add(INLINED_OF_OTHERS, 0x1d, 1, &[0x31, 0xa0, 0x3e, 0x59, 0x0b], &place);
    bytes.push(0);
    bytes
}

fn place(begin: u64, size: u64) -> Vec<u8> {
    [begin, size].map(u64::to_le_bytes).concat()
}

/// A length of four bytes, version 4, and `rest`.
fn measured(rest: &[u8]) -> Vec<u8> {
    let length = (rest.len() as u32 + 2).to_le_bytes();
    [&length[..], &4u16.to_le_bytes(), rest].concat()
}

/// Bytes of a unit in front of its first entry.
const HEAD: u32 = 11;
/// Bytes of the first entry of a unit.
const ROOT: u32 = 1 + 16 + 4;

/// A unit of [`CODE`] and what is in it.
fn unit(entries: &[u8]) -> Vec<u8> {
    let root = [&[UNIT][..], &place(CODE, SIZE), &[0; 4]].concat();
    measured(&[&[0, 0, 0, 0, 8][..], &root, entries, &[0]].concat())
}

fn function(entries: &[u8]) -> Vec<u8> {
    [&[FUNCTION][..], b"main\0", &place(CODE, SIZE), entries, &[0]].concat()
}

/// Bytes of the entry of `main`.
const MAIN: u32 = 1 + 5 + 16;

/// A line program: the sizes of its operations with `line_range`, one file, then `operations`.
fn rows(line_range: u8, operations: &[u8]) -> Vec<u8> {
    let mut header = vec![1, 1, 1, 0xfb, line_range, 13];
    header.extend([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]);
    header.extend(b"\0a.c\0\0\0\0\0");
    let length = (header.len() as u32).to_le_bytes();
    measured(&[&length[..], &header, operations].concat())
}

/// An address, a row.
fn begun() -> Vec<u8> {
    [&[0, 9, 2][..], &CODE.to_le_bytes(), &[1]].concat()
}

/// One row for all of [`CODE`].
fn sound_rows() -> Vec<u8> {
    rows(14, &[&begun()[..], &[2, 0x80, 2, 0, 1, 1]].concat())
}

struct File {
    information: Vec<u8>,
    rows: Vec<u8>,
    ranges: Vec<u8>,
}

impl Default for File {
    fn default() -> Self {
        File { information: unit(&function(&[])), rows: sound_rows(), ranges: Vec::new() }
    }
}

type Answer = Result<(Vec<Frame>, Option<NoLines>), NoLines>;

impl File {
    fn sources(&self) -> Sources {
        let sections = vec![
            Extra::new(".debug_abbrev", abbreviations()),
            Extra::new(".debug_info", self.information.clone()),
            Extra::new(".debug_line", self.rows.clone()),
            Extra::new(".debug_ranges", self.ranges.clone()),
        ];
        Builder { sections, ..Builder::default() }.sources()
    }

    fn read(&self, budget: &mut Budget) -> LineInfo {
        let lines = LineInfo::read(&self.sources().image, &Name::from("/m"), budget);
        let lines = lines.expect("sections that can be read");
        lines.expect("debug information")
    }

    /// The answer for an address; it searches for a line, too.
    fn ask(&self, address: u64) -> Answer {
        let mut budget = Budget::unlimited();
        let lines = self.read(&mut budget);
        let query = LineQuery { file: b"a.c", line: 1, with_frames: 10 };
        let places = lines.of_line(query, &|_| None, &Fake::new().modules(), &mut budget);
        let is_bounded = |places: &Places| {
            let with_frames = places.places.iter().filter(|(_, found)| found.is_some());
            places.places.len() <= 1 << 16 && with_frames.count() <= 10
        };
        assert!(places.is_ok_and(|places| is_bounded(&places)));
        let found = lines.at(address, None, &Fake::new().modules(), &mut budget)?;
        Ok((found.frames, found.missing))
    }

    /// Frames of the middle of [`CODE`], where all of its line is known.
    fn frames(&self) -> Vec<Frame> {
        let (frames, _) = self.ask(CODE + 0x80).expect("an answer");
        assert!(frames.first().is_some_and(|frame| frame.line == Some(1)));
        frames
    }
}

fn names(frames: &[Frame]) -> Vec<Option<String>> {
    let name = |frame: &Frame| frame.function.as_ref().map(Name::to_string);
    frames.iter().map(name).collect()
}

#[test]
fn an_intact_file_is_read() {
    assert_eq!(names(&File::default().frames()), [Some("main".into())]);
}

#[test]
fn entries_nested_without_end() {
    let one = [&[INLINED][..], &[0; 4], &[7], &place(CODE, SIZE)].concat();
    for (entry, most) in [(&[BLOCK][..], 1), (&one, 256)] {
        // The entries, and those around them, have no ends.
        let information = unit(&function(&entry.repeat(200_000)));
        let file = File { information, ..File::default() };
        assert_eq!(file.frames().len(), most);
    }
}

#[test]
fn a_line_that_is_deep_in_too_many_places() {
    let one = [&[INLINED][..], &[0; 4], &[7], &place(CODE, SIZE)].concat();
    let file = File {
        information: unit(&function(&one.repeat(300))),
        rows: rows(14, &[begun(), [1].repeat(60_000)].concat()),
        ..File::default()
    };
    let mut budget = Budget::unlimited();
    let query = LineQuery { file: b"a.c", line: 1, with_frames: 1 };
    let places = file.read(&mut budget).of_line(query, &|_| None, &Fake::new().modules(), &mut budget);
    let places = places.expect("an answer").places;
    let first = places.first().expect("a place").1.as_ref();
    let missing = &first.expect("its functions").missing;
    assert!(matches!(missing, Some(NoLines::TooLarge)), "{missing:?}");
}

#[test]
fn origins_that_lead_in_circles() {
    let at = HEAD + ROOT;
    // Itself, two that lead to each other, and out of the unit.
    for (first, second) in [(at, at), (at + 5, at), (u32::MAX, 0)] {
        let abstracts = [first, second].map(|to| [&[ABSTRACT][..], &to.to_le_bytes()].concat());
        let inlined = [&[INLINED][..], &at.to_le_bytes(), &[7], &place(CODE, SIZE), &[0]].concat();
        let information = unit(&[abstracts.concat(), function(&inlined)].concat());
        let file = File { information, ..File::default() };
        assert_eq!(names(&file.frames()), [None, Some("main".into())]);
    }
    // The same by the place in the whole section: itself, another unit, its header, nowhere.
    let entry = HEAD + ROOT + MAIN;
    let length = unit(&function(&[&[INLINED_ELSEWHERE][..], &[0; 4], &[7], &place(0, 0), &[0]].concat())).len() as u32;
    for to in [entry, length + entry, length + 3, 2 * length + 1, u32::MAX] {
        let inlined = [&[INLINED_ELSEWHERE][..], &to.to_le_bytes(), &[7], &place(CODE, SIZE), &[0]];
        let information = unit(&function(&inlined.concat())).repeat(2);
        let file = File { information, ..File::default() };
        assert_eq!(names(&file.frames()), [None, Some("main".into())], "{to:#x}");
    }
}

#[test]
fn names_in_a_file_that_nothing_names() {
    let inlined = [&[INLINED_OF_OTHERS][..], &[9, 0, 0, 0, 7], &place(CODE, SIZE), &[0]].concat();
    let information = unit(&function(&inlined));
    let (frames, missing) = File { information, ..File::default() }.ask(CODE).expect("an answer");
    assert_eq!(names(&frames), [None, Some("main".into())]);
    assert_eq!((frames[0].line, frames[1].line), (Some(1), Some(7)));
    assert!(matches!(missing, Some(NoLines::NotNamed)), "{missing:?}");
}

#[test]
fn implausible_lengths_and_counts() {
    let sound = File::default();
    for at in 0..sound.information.len() - 8 {
        for word in [0, u64::MAX, i64::MAX as u64, 0x8000_0000, 0xffff_fff0_ffff_ffff] {
            let mut information = sound.information.clone();
            information[at..at + 8].copy_from_slice(&word.to_le_bytes());
            _ = File { information, ..File::default() }.ask(CODE);
        }
    }
    for at in 0..sound.rows.len() - 8 {
        for word in [0, u64::MAX, i64::MAX as u64, 0x8000_0000, 0x7fff_ffff_ffff_ffff] {
            let mut rows = sound.rows.clone();
            rows[at..at + 8].copy_from_slice(&word.to_le_bytes());
            _ = File { rows, ..File::default() }.ask(CODE);
        }
    }
    for end in 0..sound.information.len() {
        let information = sound.information[..end].to_vec();
        let file = File { information, ..File::default() };
        assert!(end == 0 || file.ask(CODE).is_err(), "{end}");
    }
}

#[test]
fn ranges_of_every_address() {
    let root = [&[UNIT_OF_RANGES][..], &[0; 4], &CODE.to_le_bytes(), &[0; 4]].concat();
    let information = measured(&[&[0, 0, 0, 0, 8][..], &root, &function(&[]), &[0]].concat());
    let list = |pairs: &[(u64, u64)]| -> Vec<u8> { pairs.iter().flat_map(|&(begin, end)| place(begin, end)).collect() };
    // Ends before their starts, bases that overflow, and no end of the list.
    for pairs in [
        &[(0, u64::MAX - CODE)][..],
        &[(u64::MAX, u64::MAX - 1), (0x80, 0x40), (0, SIZE)],
        &[(u64::MAX, CODE), (0, SIZE), (0, SIZE), (0, SIZE)],
        &[(u64::MAX, 1), (u64::MAX - 1, 0x1fff)],
    ] {
        for copies in [1, 5000] {
            let file = File { information: information.clone(), ranges: list(pairs).repeat(copies), ..File::default() };
            match file.ask(CODE + 0x80) {
                Ok((frames, _)) => assert_eq!(names(&frames), [Some("main".into())]),
                Err(why) => assert!(matches!(why, NoLines::NotCovered | NoLines::Damaged(_)), "{why}"),
            }
        }
    }
    // Units that all claim the same address: not all of them are searched.
    let file = File { information: unit(&[]).repeat(3000), ..File::default() };
    assert_eq!(names(&file.frames()), [None]);
}

#[test]
fn line_programs_without_end() {
    // No end of the sequence: the last row has no end.
    let unended = rows(14, &[&begun()[..], &[2, 0x40, 1]].concat());
    let file = File { rows: unended, ..File::default() };
    let (frames, _) = file.ask(CODE + 0x3f).expect("an answer");
    assert_eq!(frames[0].line, Some(1));
    assert!(matches!(file.ask(CODE + 0x40), Err(NoLines::NoRow(_))));
    // Millions of rows; an advance beyond all addresses, and over and over; nothing to divide by; operations longer
    // than the program.
    let advance = [&[2][..], &[0xff; 9], &[1, 1]].concat();
    for (line_range, operations) in [
        (14, [1].repeat(2_000_000)),
        (14, advance.repeat(10_000)),
        (0, vec![0xff; 1000]),
        (14, [&[0][..], &[0xff; 9], &[1, 2]].concat()),
        (14, vec![0; 5000]),
        (14, [3, 0x80].repeat(5000)),
    ] {
        let rows = rows(line_range, &[begun(), operations].concat());
        match (File { rows, ..File::default() }).ask(CODE + 0x80) {
            Ok((frames, _)) => assert_eq!(names(&frames), [Some("main".into())]),
            Err(why) => assert!(matches!(why, NoLines::NoRow(_) | NoLines::Damaged(_)), "{why}"),
        }
    }
}

#[test]
fn a_long_line_program_can_be_interrupted() {
    let rows = rows(14, &[begun(), [1].repeat(1_000_000)].concat());
    let file = File { rows, ..File::default() };
    let flag = Arc::new(AtomicBool::new(false));
    let mut budget = Budget::until(Arc::clone(&flag));
    let lines = file.read(&mut budget);
    flag.store(true, Ordering::Relaxed);
    let found = lines.at(CODE, None, &Fake::new().modules(), &mut budget);
    assert!(matches!(found, Err(NoLines::Interrupted)));
    // A million rows take some millions of steps.
    let found = lines.at(CODE, None, &Fake::new().modules(), &mut Budget::unlimited().at_most(100_000));
    assert!(matches!(found, Err(NoLines::TooCostly)));
}

#[test]
fn an_answer_within_a_budget_is_whole() {
    let inlined = [&[INLINED][..], &[0; 4], &[7], &place(CODE, SIZE)].concat();
    let file = File {
        information: unit(&function(&inlined.repeat(20))),
        rows: rows(14, &[&begun()[..], &[1].repeat(200), &[2, 0x80, 2, 0, 1, 1]].concat()),
        ..File::default()
    };
    let sources = file.sources();
    let answers = |budget: &Budget| {
        let read = |budget: &mut Budget| -> Result<LineInfo, NoLines> {
            let lines = LineInfo::read(&sources.image, &Name::from("/m"), budget)?;
            Ok(lines.expect("debug information"))
        };
        let modules = Fake::new().modules();
        let at = || -> Result<String, NoLines> {
            let budget = &mut budget.clone();
            let found = read(budget)?.at(CODE + 0x80, None, &modules, budget)?;
            Ok(format!("{:?} {:?} {:?}", found.row, found.frames, found.missing))
        };
        let places = || -> Result<String, NoLines> {
            let budget = &mut budget.clone();
            let query = LineQuery { file: b"a.c", line: 1, with_frames: 10 };
            let found = read(budget)?.of_line(query, &|_| None, &modules, budget)?;
            let frames = found.places.iter().map(|(place, found)| (place, found.as_ref().map(|found| &found.frames)));
            Ok(format!("{:?} {:?}", found.line, Vec::from_iter(frames)))
        };
        [at(), places()]
    };
    let whole = answers(&Budget::unlimited()).map(|answer| answer.expect("a whole answer"));
    let mut given_up = [0; 2];
    let mut steps = 0;
    loop {
        let limited = answers(&Budget::unlimited().at_most(steps));
        for ((answer, whole), given_up) in limited.iter().zip(&whole).zip(&mut given_up) {
            match answer {
                Ok(answer) => assert_eq!(answer, whole, "{steps} steps"),
                Err(why) => {
                    assert!(matches!(why, NoLines::TooCostly), "{steps} steps: {why}");
                    *given_up += 1;
                }
            }
        }
        if limited.iter().all(Result::is_ok) {
            break;
        }
        steps += 1 + steps / 16;
    }
    assert!(given_up.iter().all(|&times| times > 50), "{given_up:?}");
}
