//! What a capture takes of memory: a multiple of its size, whatever its index says.

use crate::capture;
use crate::made::{Machine, Made, packed};
use crate::sample::sample;
use serde_json::{Value, json};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts what each thread has allocated.
pub struct Counting;

thread_local! {
    static TAKEN: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // A thread that ends has no counters any more.
    _ = TAKEN.try_with(|taken| {
        taken.set(taken.get() + bytes);
        _ = MOST.try_with(|most| most.set(most.get().max(taken.get())));
    });
}

// SAFETY: the system's allocator does the work, and counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(place, layout) }
    }
}

/// The most memory that `work` has at one time, in bytes.
pub fn peak(work: impl FnOnce()) -> u64 {
    let before = TAKEN.get();
    MOST.set(before);
    work();
    (MOST.get() - before) as u64
}

/// Bytes of memory for each byte of a file. Its text is held once, what is made of it three times, and twice while a
/// list grows.
const MULTIPLE: u64 = 6;
/// What is taken of any file: 16 MiB are asked for, to see that as much is left, and given back unused.
const ANY: u64 = 20 << 20;
/// Elements of a list.
const MANY: usize = 400_000;

/// The smallest elements of each list of an index: the path to the list, and an element by its number.
type Element = fn(usize) -> (String, Value);
const LISTS: &[(&str, Element)] = &[
    ("/processes", |_| (String::new(), json!({}))),
    ("/missing", |_| (String::new(), json!({"pid": 1, "name": [], "why": "", "in_part": false}))),
    ("/flags/blocks", |_| (String::new(), json!([0, 0, [0, 0, 0]]))),
    ("/flags/before", |_| (String::new(), json!(0))),
    ("/processes/0/maps", |_| (String::new(), json!([0, 0, 0]))),
    ("/processes/0/page_map/blocks", |_| (String::new(), json!([0, 0, [0, 0, 0]]))),
    ("/processes/0/heap/blocks", |_| (String::new(), json!([0, 0, [0, 0, 0]]))),
    ("/processes/0/parts", |_| (String::new(), json!([0, 1]))),
    ("/processes/0/left_out", |_| (String::new(), json!([0, 1]))),
    ("/processes/0/changed", |_| (String::new(), json!([0, 1]))),
    ("/processes/0/populated", |_| (String::new(), json!([0, 0, 0]))),
    ("/processes/0/looks", |number| (number.to_string(), json!([0, 0]))),
    ("/processes/0/memory", |number| (number.to_string(), json!([]))),
    ("/processes/0/answers/texts", |number| (number.to_string(), json!(""))),
    ("/processes/0/answers/words", |number| (number.to_string(), json!([]))),
    ("/processes/0/answers/groups", |number| (number.to_string(), json!([]))),
    ("/processes/0/answers/runs", |number| (number.to_string(), json!([]))),
    ("/processes/0/answers/rights", |number| {
        let none = json!({"findings": [], "user": 0, "rights": [], "in_first_user_namespace": null});
        (number.to_string(), none)
    }),
    ("/processes/0/answers/lists", |number| (number.to_string(), json!([]))),
    ("/processes/0/answers/files", |number| (number.to_string(), json!(null))),
    ("/processes/0/answers/failures", |number| (number.to_string(), json!({"gone": ""}))),
];

/// An index whose list at this path has `many` more elements.
fn with_list(made: &Made, path: &str, element: Element, many: usize) -> Value {
    let mut index = made.index.clone();
    let (parent, name) = path.rsplit_once('/').expect("a path");
    let parent = index.pointer_mut(parent).expect("the structure of the list");
    let elements = (0..many).map(element);
    let (key, _) = element(0);
    let list = if key.is_empty() {
        let old = parent[name].as_array().cloned().unwrap_or_default();
        old.into_iter().chain(elements.map(|(_, one)| one)).collect::<Vec<_>>().into()
    } else {
        let old = parent[name].as_object().cloned().unwrap_or_default();
        old.into_iter().chain(elements).collect::<serde_json::Map<_, _>>().into()
    };
    parent[name] = list;
    index
}

/// Opens captures with a long list each, and asks for all that is in them.
pub fn is_a_multiple_of_the_input() {
    let made = Machine { is_big: false, page: 4096, pointer: 8 }.capture();
    assert!(peak(|| drop(vec![1_u8; 1 << 20])) >= 1 << 20, "the allocator does not count");
    for &(path, element) in sample(LISTS, 4) {
        let index = with_list(&made, path, element, MANY).to_string();
        // Stored as it is, so that only what is made of the text can be too much.
        let file = made.with_stored_index(index.as_bytes());
        let size = file.len() as u64;
        let most = peak(|| capture::ask(file));
        assert!(most <= MULTIPLE * size + ANY, "{path}: {most} bytes for a capture of {size}");
    }
    // A block of a file that many texts name.
    let mut made = made;
    let text = made.index["processes"][0]["maps"][0].clone();
    made.index["processes"][0]["maps"] = vec![text; MANY].into();
    let file = made.whole();
    let size = file.len() as u64;
    let most = peak(|| capture::ask(file));
    assert!(most <= MULTIPLE * size + ANY, "one block, often: {most} bytes for a capture of {size}");
}

/// The most memory for any file of at most [`LARGEST`] bytes.
pub const LIMIT: u64 = 256 << 20;
/// The length of these files.
pub const LARGEST: usize = 1 << 20;

/// Bytes that do not become fewer when they are packed.
fn noise(length: usize) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut text = String::with_capacity(length);
    while text.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text += &format!("{state:016x}");
    }
    text
}

/// Adds a text that becomes so many bytes, and returns its blocks.
fn long_text(made: &mut Made, name: &str, line: Line, length: usize) -> Value {
    let mut text = Vec::new();
    for number in 0.. {
        text.extend(line(number).into_bytes());
        if text.len() >= length {
            break;
        }
    }
    text.truncate(length);
    let blocks: Vec<(Vec<u8>, usize)> = text.chunks(64 << 10).map(|part| (packed(part), part.len())).collect();
    let mut at = made.add(name, "0", &blocks.iter().flat_map(|(bytes, _)| bytes).copied().collect::<Vec<u8>>());
    let place = |(bytes, length): &(Vec<u8>, usize)| {
        let place = json!([at, bytes.len(), length]);
        at += bytes.len();
        place
    };
    blocks.iter().map(place).collect()
}

/// A line of a text, by its number.
type Line = fn(u64) -> String;
/// The shortest lines of each text, of which the most is made.
const LINES: &[(&str, Line)] = &[
    ("/processes/0/maps", |number| format!("{:x}-{:x} ---p 0 0:0 0\n", number << 12, (number + 1) << 12)),
    ("/processes/0/answers/texts/text smaps", |number| {
        format!("{:x}-{:x} ---p 0 0:0 0\nA: 1 kB\n", number << 12, (number + 1) << 12)
    }),
    ("/processes/0/answers/texts/text smaps", |_| "A: 1 kB\n".to_owned()),
    ("/processes/0/answers/texts/text main-status", |_| "A:\t1\n".to_owned()),
    ("/processes/0/answers/texts/text status", |_| "VmA:\t1 kB\n".to_owned()),
    ("/processes/0/answers/texts/text mountinfo", |_| "1 1 0:1 / / rw - a b rw\n".to_owned()),
    ("/machine/texts/text own-maps", |number| format!("{:x}-{:x} ---p 0 0:0 0\n", number << 12, (number + 1) << 12)),
    ("/machine/texts/text own-mountinfo", |_| "1 1 0:1 / / rw - cgroup2 b rw\n".to_owned()),
    ("/machine/texts/text iomem", |_| "0-1 : a\n".to_owned()),
    ("/machine/texts/text swaps", |_| "/a file 1 1 1\n".to_owned()),
    ("/machine/texts/text zoneinfo", |_| "Node 0, zone A\n spanned 1\n start_pfn: 1\n".to_owned()),
];

/// A capture with a text of such lines at this path of the index.
fn with_text(path: &str, line: Line, length: usize) -> Made {
    let mut made = Machine { is_big: false, page: 4096, pointer: 8 }.capture();
    made.index["machine"] = json!({ "texts": {} });
    let blocks = long_text(&mut made, "77/long.gz", line, length);
    let (parent, name) = path.rsplit_once('/').expect("a path");
    made.index.pointer_mut(parent).expect("the structure of the text")[name] = blocks;
    made
}

/// Opens files that stand for as much as files of their length may, in each part, and asks for all that is in them.
pub fn is_bounded() {
    for &(path, line) in sample(LINES, 4) {
        // As long as a text may be in a file of this length.
        let mut length = 16 << 20;
        let mut made = with_text(path, line, length);
        while made.whole().len() > LARGEST {
            length -= length / 8;
            made = with_text(path, line, length);
        }
        let room = (LARGEST - made.whole().len()).saturating_sub(4096);
        made.add("77/noise", "0", noise(room).as_bytes());
        fits(path, made.whole());
    }
    let noise = noise(LARGEST);
    for &(path, element) in sample(LISTS, 5) {
        // As long as an index of this length may be.
        let made = Machine { is_big: false, page: 4096, pointer: 8 }.capture();
        let file = |many: usize| {
            let mut index = with_list(&made, path, element, many);
            index["noise"] = noise.clone().into();
            (index.to_string().len(), made.with_index(index.to_string().as_bytes()))
        };
        let mut many = 1 << 20;
        let (mut length, mut whole) = file(many);
        while length > 11 << 20 || whole.len() > LARGEST {
            many /= 2;
            (length, whole) = file(many);
        }
        fits(path, whole);
    }
}

fn fits(path: &str, file: Vec<u8>) {
    assert!(file.len() <= LARGEST, "{path}: {}", file.len());
    let size = file.len();
    let most = peak(|| capture::ask(file));
    println!("{path}: {} MiB for a file of {} KiB", most >> 20, size >> 10);
    assert!(most <= LIMIT, "{path}: {most} bytes for a file of {size}");
}
