//! What a capture takes of memory: a multiple of its size, whatever its index says.

use crate::capture;
use crate::made::{Machine, Made};
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
fn peak(work: impl FnOnce()) -> u64 {
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
