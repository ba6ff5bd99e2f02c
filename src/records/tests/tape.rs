//! What was read of a kernel while its layout was proved, and replays it.
//!
//! Memory changes while pmdb takes references and pins. So each look at it is a moment with a number, and what was read
//! is kept for that moment. Moment 0 is everything that is no experiment.

use super::super::layout::{Member, PageLayout};
use super::super::{Ground, OwnFile, RandomBytes, Records};
use crate::kernel::{Device, PageFlags, WordFile};
use crate::records::image::ReadCore;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::sync::{Arc, Mutex};

const BLOCK: u64 = 64;

#[derive(Clone, Default)]
pub(crate) struct Tape(Arc<Mutex<Recorded>>);

#[derive(Default)]
struct Recorded {
    moment: u32,
    page_bytes: u64,
    sample: (u64, u64, Vec<u8>),
    layout: Option<PageLayout>,
    blocks: BTreeMap<(u64, u32), Vec<u8>>,
    words: BTreeMap<(WordFile, u64, u32), u64>,
    own_frames: Vec<u64>,
    looks: Vec<Look>,
}

/// A look within an experiment: which, with how many to take, and the numbers that it gave.
#[derive(Clone, PartialEq, Eq)]
struct Look {
    experiment: u32,
    taken: u32,
    moment: u32,
    numbers: Vec<u64>,
}

const REFERENCES: u32 = 0;
const FILES: u32 = 1;
const HUGE: u32 = 2;
const PINS: u32 = 3;

impl Tape {
    fn with<T>(&self, look: impl FnOnce(&mut Recorded) -> T) -> T {
        look(&mut self.0.lock().expect("a lock"))
    }

    /// Keeps what is read through the result.
    pub(crate) fn recording(&self, core: ReadCore) -> ReadCore {
        let tape = self.clone();
        Box::new(move |offset, into| {
            let read = core(offset, into);
            let first = offset / BLOCK;
            for block in first..(offset + into.len() as u64).div_ceil(BLOCK) {
                let mut bytes = vec![0; BLOCK as usize];
                if !core(block * BLOCK, &mut bytes) {
                    // A segment begins or ends in it.
                    bytes.fill(0);
                    for (at, byte) in (offset..).zip(into.iter()).filter(|(at, _)| at / BLOCK == block) {
                        bytes[(at % BLOCK) as usize] = *byte;
                    }
                }
                if read {
                    tape.with(|tape| tape.blocks.insert((block, tape.moment), bytes));
                }
            }
            read
        })
    }

    /// What was read.
    pub(super) fn core(&self) -> ReadCore {
        let tape = self.clone();
        Box::new(move |offset, into| {
            tape.with(|tape| {
                let mut at = offset;
                let mut left = into;
                while !left.is_empty() {
                    let (block, inside) = (at / BLOCK, (at % BLOCK) as usize);
                    let found = tape.blocks.get(&(block, tape.moment)).or_else(|| tape.blocks.get(&(block, 0)));
                    let Some(found) = found.and_then(|bytes| bytes.get(inside..)).filter(|bytes| !bytes.is_empty())
                    else {
                        return false;
                    };
                    let (now, later) = left.split_at_mut(found.len().min(left.len()));
                    now.copy_from_slice(&found[..now.len()]);
                    at += now.len() as u64;
                    left = later;
                }
                true
            })
        })
    }

    /// Keeps the layout that was proved.
    pub(crate) fn keep_layout(&self, records: &Records) {
        self.with(|tape| tape.layout = Some(records.pages.layout.clone()));
    }

    pub(super) fn layout(&self) -> PageLayout {
        self.with(|tape| tape.layout.clone()).expect("a layout")
    }

    /// What pmdb found out at that time.
    pub(super) fn ground(&self) -> impl Ground + use<> {
        Replayed(self.clone())
    }

    /// As text, packed.
    pub(crate) fn pack(&self) -> Vec<u8> {
        let mut text = String::new();
        self.with(|tape| {
            let layout = tape.layout.as_ref().expect("a layout");
            let mut line = |words: &[String]| writeln!(text, "{}", words.join(" ")).expect("text");
            let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            let (frame, offset, bytes) = &tape.sample;
            line(&["sample".into(), tape.page_bytes.to_string(), frame.to_string(), offset.to_string(), hex(bytes)]);
            let number = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
            let double_map = layout.double_map.map(u64::from);
            line(&["layout".into(), layout.page.to_string(), number(layout.section), number(double_map)]);
            line(&[vec!["offsets".into()], layout.offsets.iter().copied().map(number).collect()].concat());
            for (flag, bit) in &layout.flags {
                line(&["flag".into(), flag.bits().to_string(), bit.to_string()]);
            }
            for frame in &tape.own_frames {
                line(&["own".into(), frame.to_string()]);
            }
            for look in &tape.looks {
                let numbers = look.numbers.iter().map(u64::to_string).collect();
                let head = [look.experiment, look.taken, look.moment].map(|number| number.to_string());
                line(&[vec!["look".into()], head.to_vec(), numbers].concat());
            }
            // Neighbours with the same word share a line.
            let mut words: Vec<_> =
                tape.words.iter().map(|(&(file, frame, moment), &word)| (file, moment, frame, word)).collect();
            words.sort_unstable();
            let is_next = |one: &(_, _, u64, u64), next: &(_, _, u64, u64)| {
                (one.0, one.1, one.2 + 1, one.3) == (next.0, next.1, next.2, next.3)
            };
            for run in words.chunk_by(is_next) {
                let (file, moment, frame, word): (WordFile, u32, _, _) = run[0];
                let file = u64::from(file == WordFile::FrameCounts);
                let numbers = [file, frame, moment.into(), word, run.len() as u64].map(|number| number.to_string());
                line(&[vec!["word".into()], numbers.to_vec()].concat());
            }
            for ((block, moment), bytes) in &tape.blocks {
                line(&["block".into(), block.to_string(), moment.to_string(), hex(bytes)]);
            }
        });
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(text.as_bytes()).expect("memory");
        packed.finish().expect("memory")
    }

    pub(super) fn unpack(packed: &[u8]) -> Tape {
        let mut text = String::new();
        GzDecoder::new(packed).read_to_string(&mut text).expect("a packed text");
        let mut tape = Recorded::default();
        let mut layout =
            PageLayout { page: 0, section: None, offsets: Vec::new(), flags: Vec::new(), double_map: None };
        let number = |word: &str| word.parse::<u64>().expect("a number");
        let small = |word: &str| word.parse::<u32>().expect("a number");
        let known = |word: &str| word.parse::<u64>().ok();
        let bytes = |hex: &str| {
            let pair = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
            (0..hex.len()).step_by(2).map(pair).collect::<Vec<u8>>()
        };
        for line in text.lines() {
            match line.split(' ').collect::<Vec<_>>().as_slice() {
                ["sample", page, frame, offset, hex] => {
                    tape.page_bytes = number(page);
                    tape.sample = (number(frame), number(offset), bytes(hex));
                }
                ["layout", page, section, double_map] => {
                    layout.page = number(page);
                    layout.section = known(section);
                    layout.double_map = known(double_map).map(|bit| bit as u32);
                }
                ["offsets", offsets @ ..] => layout.offsets = offsets.iter().map(|word| known(word)).collect(),
                ["flag", flag, bit] => layout.flags.push((PageFlags::from_bits_retain(number(flag)), small(bit))),
                ["own", frame] => tape.own_frames.push(number(frame)),
                ["look", experiment, taken, moment, numbers @ ..] => tape.looks.push(Look {
                    experiment: small(experiment),
                    taken: small(taken),
                    moment: small(moment),
                    numbers: numbers.iter().map(|word| number(word)).collect(),
                }),
                ["word", file, frame, moment, word, frames] => {
                    let file = if *file == "1" { WordFile::FrameCounts } else { WordFile::FrameFlags };
                    let first = number(frame);
                    for frame in first..first + number(frames) {
                        tape.words.insert((file, frame, small(moment)), number(word));
                    }
                }
                ["block", block, moment, hex] => {
                    tape.blocks.insert((number(block), small(moment)), bytes(hex));
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(layout.offsets.len(), Member::ALL.len(), "the tape is of another list of members");
        tape.layout = Some(layout);
        Tape(Arc::new(Mutex::new(tape)))
    }
}

/// Records what another ground says.
pub(crate) struct Recording<G> {
    pub(crate) tape: Tape,
    pub(crate) ground: G,
}

impl<G> Recording<G> {
    /// Records a look, and calls `look` in a moment of its own.
    fn look(&self, experiment: u32, taken: u32, numbers: Vec<u64>, look: impl FnOnce()) {
        self.tape.with(|tape| {
            tape.moment = tape.looks.len() as u32 + 1;
            tape.looks.push(Look { experiment, taken, moment: tape.moment, numbers });
        });
        look();
        self.tape.with(|tape| tape.moment = 0);
    }

    /// Forgets an earlier try of an experiment.
    fn forget(&self, experiment: u32, taken: u32) {
        self.tape.with(|tape| {
            for look in tape.looks.iter_mut().filter(|look| (look.experiment, look.taken) == (experiment, taken)) {
                look.experiment = u32::MAX;
            }
        });
    }
}

impl<G: Ground> Ground for Recording<G> {
    fn page_bytes(&self) -> u64 {
        let bytes = self.ground.page_bytes();
        self.tape.with(|tape| tape.page_bytes = bytes);
        bytes
    }

    fn sample(&self) -> Option<RandomBytes> {
        let sample = self.ground.sample()?;
        self.tape.with(|tape| tape.sample = (sample.frame, sample.offset, sample.bytes.clone()));
        Some(sample)
    }

    fn words(&self, file: WordFile, first: u64, into: &mut [u64]) -> Option<()> {
        self.ground.words(file, first, into)?;
        self.tape.with(|tape| {
            for (frame, word) in (first..).zip(into.iter()) {
                // The last one counts: a comparison ends with it.
                tape.words.insert((file, frame, tape.moment), *word);
            }
        });
        Some(())
    }

    fn own_frames(&self) -> Vec<u64> {
        let frames = self.ground.own_frames();
        self.tape.with(|tape| tape.own_frames = frames.clone());
        frames
    }

    fn take_references(&self, taken: u32, look: &mut dyn FnMut(u64)) {
        self.forget(REFERENCES, taken);
        self.ground.take_references(taken, &mut |frame| self.look(REFERENCES, taken, vec![frame], || look(frame)));
    }

    fn own_files(&self, look: &mut dyn FnMut(OwnFile)) {
        self.ground.own_files(&mut |own| {
            let (major, minor) = (own.device.major.into(), own.device.minor.into());
            self.look(FILES, 0, vec![own.frame, major, minor, own.inode, own.index], || look(own));
        });
    }

    fn huge_page(&self, look: &mut dyn FnMut(u64, bool)) {
        self.ground.huge_page(&mut |frame, by_two| {
            self.look(HUGE, 0, vec![frame, by_two.into()], || look(frame, by_two));
        });
    }

    fn pin_huge_page(&self, taken: u32, look: &mut dyn FnMut(u64)) {
        self.forget(PINS, taken);
        self.ground.pin_huge_page(taken, &mut |frame| self.look(PINS, taken, vec![frame], || look(frame)));
    }
}

struct Replayed(Tape);

impl Replayed {
    /// Calls `look` with the numbers of each look of an experiment, in its moment.
    fn replay(&self, experiment: u32, taken: u32, look: &mut dyn FnMut(&[u64])) {
        let is_of = |one: &&Look| (one.experiment, one.taken) == (experiment, taken);
        let looks: Vec<Look> = self.0.with(|tape| tape.looks.iter().filter(is_of).cloned().collect());
        for one in looks {
            self.0.with(|tape| tape.moment = one.moment);
            look(&one.numbers);
            self.0.with(|tape| tape.moment = 0);
        }
    }
}

impl Ground for Replayed {
    fn page_bytes(&self) -> u64 {
        self.0.with(|tape| tape.page_bytes)
    }

    fn sample(&self) -> Option<RandomBytes> {
        let (frame, offset, bytes) = self.0.with(|tape| tape.sample.clone());
        Some(RandomBytes { frame, offset, bytes, _page: Box::new(()) })
    }

    fn words(&self, file: WordFile, first: u64, into: &mut [u64]) -> Option<()> {
        self.0.with(|tape| {
            for (frame, word) in (first..).zip(into.iter_mut()) {
                let at = |moment| tape.words.get(&(file, frame, moment));
                *word = *at(tape.moment).or_else(|| at(0))?;
            }
            Some(())
        })
    }

    fn own_frames(&self) -> Vec<u64> {
        self.0.with(|tape| tape.own_frames.clone())
    }

    fn take_references(&self, taken: u32, look: &mut dyn FnMut(u64)) {
        self.replay(REFERENCES, taken, &mut |numbers| look(numbers[0]));
    }

    fn own_files(&self, look: &mut dyn FnMut(OwnFile)) {
        self.replay(FILES, 0, &mut |numbers| {
            let device = Device { major: numbers[1] as u32, minor: numbers[2] as u32 };
            look(OwnFile { frame: numbers[0], device, inode: numbers[3], index: numbers[4] });
        });
    }

    fn huge_page(&self, look: &mut dyn FnMut(u64, bool)) {
        self.replay(HUGE, 0, &mut |numbers| look(numbers[0], numbers.get(1) == Some(&1)));
    }

    fn pin_huge_page(&self, taken: u32, look: &mut dyn FnMut(u64)) {
        self.replay(PINS, taken, &mut |numbers| look(numbers[0]));
    }
}
