//! Captures that are written here field by field, from the description of the format alone: of machines that the tests
//! do not run on, and as seeds of hostile ones.

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::Write;

const RECORD: usize = 512;

/// A machine, and a process on it with one region of 16 pages.
#[derive(Clone, Copy)]
pub struct Machine {
    pub is_big: bool,
    pub page: u64,
    pub pointer: usize,
}

pub const BASE: u64 = 0x1000_0000;
pub const PID: u32 = 77;
/// The frame of the first page. Pages 0 to 3 have frames that follow each other, page 5 has another one.
pub const FRAME: u64 = 0x5000;
const PRESENT: u64 = 1 << 63;
/// `/proc/kpageflags`: a page of anonymous memory on an LRU list.
const FLAGS: u64 = 1 << 12 | 1 << 5;

/// A capture with its members, before its index is written.
pub struct Made {
    file: Vec<u8>,
    /// The index, to be changed.
    pub index: Value,
}

/// Compressed as a member is.
pub fn packed(bytes: &[u8]) -> Vec<u8> {
    packed_as(bytes, Compression::fast())
}

fn packed_as(bytes: &[u8], compression: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), compression);
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// A block of words: runs, each with its first index, how many words it stands for, and its words.
pub fn block(runs: &[(u64, u64, Vec<u64>)]) -> Vec<u8> {
    let mut numbers = vec![runs.len() as u64];
    let ends = std::iter::once(0).chain(runs.iter().map(|(first, count, _)| first + count));
    numbers.extend(runs.iter().zip(ends).map(|((first, ..), end)| first - end));
    numbers.extend(runs.iter().map(|(_, count, _)| count));
    numbers.extend(runs.iter().map(|(.., words)| words.len() as u64));
    let words: Vec<u64> = runs.iter().flat_map(|(.., words)| words).copied().collect();
    numbers.extend(words.iter().zip([0].iter().chain(&words)).map(|(word, before)| word.wrapping_sub(*before)));
    let bytes: Vec<[u8; 8]> = numbers.into_iter().map(u64::to_le_bytes).collect();
    (0..8).flat_map(|place| bytes.iter().map(move |word| word[place])).collect()
}

/// Appends a member of a tar, and returns where its bytes begin.
fn member(file: &mut Vec<u8>, name: &str, bytes: &[u8]) -> usize {
    special(file, name, "0", bytes)
}

/// A member of this type.
fn special(file: &mut Vec<u8>, name: &str, kind: &str, bytes: &[u8]) -> usize {
    let mut header = [0; RECORD];
    let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000600");
    put(124, &format!("{:011o}", bytes.len()));
    put(136, "00000000000");
    put(148, "        ");
    put(156, kind);
    put(257, "ustar\x0000");
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    file.extend(header);
    let start = file.len();
    file.extend(bytes);
    file.resize(file.len().next_multiple_of(RECORD), 0);
    start
}

impl Machine {
    fn pointers(self, words: &[u64]) -> Vec<u8> {
        let cut = |bytes: [u8; 8], from: usize| bytes[from..from + self.pointer].to_vec();
        let one = |&word: &u64| {
            if self.is_big { cut(word.to_be_bytes(), 8 - self.pointer) } else { cut(word.to_le_bytes(), 0) }
        };
        words.iter().flat_map(one).collect()
    }

    /// A capture of the process.
    pub fn capture(self) -> Made {
        let mut file = Vec::new();
        let order = if self.is_big { "big" } else { "little" };
        let head = format!("pmdb capture 2\npage-bytes {}\nbyte-order {order}\n", self.page);
        member(&mut file, "capture", head.as_bytes());
        let mut text = |name: &str, bytes: &[u8]| {
            let packed = packed(bytes);
            let at = member(&mut file, &format!("{PID}/{name}.gz"), &packed);
            json!([[at, packed.len(), bytes.len()]])
        };
        let end = BASE + 16 * self.page;
        let maps = text("maps", format!("{BASE:08x}-{end:08x} rw-p 00000000 00:00 0 \n").as_bytes());
        // AT_PHENT and AT_PAGESZ.
        let header = if self.pointer == 8 { 56 } else { 32 };
        let vector = text("auxv", &self.pointers(&[4, header, 6, self.page, 0, 0]));
        let status = text(
            "status",
            format!("Name:\tmade\nState:\tT (stopped)\nTgid:\t{PID}\nPid:\t{PID}\nPPid:\t1\nTracerPid:\t0\n")
                .as_bytes(),
        );
        let memory = text("mem", &[&self.pointers(&[0x1122_3344, BASE]), &[7; 100][..]].concat());
        let first = BASE / self.page;
        let frame = |index: u64| PRESENT | (FRAME + index);
        let present = (first, 4, [0, 1, 2, 3].map(frame).to_vec());
        let entries = text("pagemap", &block(&[present, (first + 5, 1, vec![frame(9)])]));
        let of_frames = |word| block(&[(0, 2, vec![0]), (FRAME, 10, vec![word])]);
        let flags = text("kpageflags", &of_frames(FLAGS));
        let counts = text("kpagecount", &of_frames(1));
        let stretch = |from: u64, to: u64| [BASE + from * self.page, BASE + to * self.page, 1 << 3];
        let populated = [stretch(0, 4), stretch(5, 6)].concat();
        let populated = text("populated", &populated.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<u8>>());
        let blocks = |block: &Value, first: u64, last: u64| json!([[first, last, block[0]]]);
        let words = |blocks: Value, end: u64| json!({ "end": end, "blocks": blocks });
        let index = json!({
            "times": [1_700_000_000, 1_700_000_001],
            "processes": [{
                "pid": PID,
                "start_time": 1,
                "name": "made",
                "maps": maps,
                "page_map": words(blocks(&entries, first, first + 5), 1 << 36),
                "scannable": 0x7f,
                "populated": populated,
                "answers": { "texts": { "text auxv": vector, "text main-status": status } },
                "memory": { BASE.to_string(): memory },
            }],
            "flags": words(blocks(&flags, 0, FRAME + 9), 1 << 20),
            "counts": words(blocks(&counts, 0, FRAME + 9), 1 << 20),
            "cgroups": { "failure": { "not-available": "no kpagecgroup" } },
        });
        Made { file, index }
    }
}

impl Made {
    /// Adds a member of this type, and returns where its bytes begin.
    #[allow(dead_code, reason = "a test program that has only sound captures does not need it")]
    pub fn add(&mut self, name: &str, kind: &str, bytes: &[u8]) -> usize {
        special(&mut self.file, name, kind, bytes)
    }

    /// The whole file.
    pub fn whole(&self) -> Vec<u8> {
        self.with_index(self.index.to_string().as_bytes())
    }

    /// The file with these bytes as its index.
    pub fn with_index(&self, index: &[u8]) -> Vec<u8> {
        self.with_packed_index(&packed(index), index.len())
    }

    /// The same, without compression.
    #[allow(dead_code, reason = "a test program that has only sound captures does not need it")]
    pub fn with_stored_index(&self, index: &[u8]) -> Vec<u8> {
        self.with_packed_index(&packed_as(index, Compression::none()), index.len())
    }

    fn with_packed_index(&self, packed: &[u8], length: usize) -> Vec<u8> {
        let mut file = self.file.clone();
        let at = member(&mut file, "index.json.gz", packed);
        let end = format!("pmdb capture 2\nindex {at} {} {length}\n", packed.len());
        member(&mut file, "end", end.as_bytes());
        file.resize(file.len() + 2 * RECORD, 0);
        file
    }
}
