//! Blocks that lie side by side in a heap, in use and free: what their pages are, which chunk has an address, and what is
//! found in them.

use super::answers::program;
use super::heap::{has_glibc, say_and_wait};
use super::support::{self, page_bytes, range};
use super::target::{Target, command};
use super::{Scenario, Test};
use pmdb::inspect::heap::HeapUse;
use pmdb::{AddressSpace, Evidence};
use serde_json::Value;

pub const TESTS: &[Test] = &[
    ("heap_blocks::pages_and_chunks_of_known_blocks", pages_and_chunks_of_known_blocks),
    ("heap_blocks::a_search_of_chunks_in_use", a_search_of_chunks_in_use),
];

pub const SCENARIOS: &[Scenario] = &[("heap_blocks", blocks)];

/// Blocks of [`BLOCK`] bytes that lie side by side: this many in use, then as many free ones, then as many in use.
const BLOCKS: usize = 1000;
/// Larger than what threads keep for themselves.
const BLOCK: usize = 3000;
/// What stands in some of them.
const MARK: [u8; 8] = *b"mark:\x01\x02\x03";
/// In which block, and where in it: at the end of the last one before those that are free, so that the mark lies in the
/// first word of a free chunk; in a free one; and at the beginning of one in use.
const MARKS: [(usize, usize); 3] = [(BLOCKS - 1, BLOCK - MARK.len()), (BLOCKS + 5, 100), (2 * BLOCKS + 3, 0)];
/// Its chunk: with a head, and rounded.
const CHUNK: u64 = 3008;

/// Takes blocks and frees some. Announces where the first is.
fn blocks(_: &[String]) {
    /// Before so many, what earlier blocks have left is filled up.
    const MOST: usize = 40 * BLOCKS;
    // SAFETY: it sets a flag of this process.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    let mut all: Vec<u64> = Vec::with_capacity(MOST);
    let row = loop {
        assert!(all.len() < MOST, "the blocks do not lie side by side");
        // SAFETY: the block is written within its size.
        let block = unsafe { libc::memset(libc::malloc(BLOCK), 7, BLOCK) };
        all.push(block as u64);
        let row = all.len().saturating_sub(3 * BLOCKS);
        if row > 0 && all[row..].windows(2).all(|two| two[1] - two[0] == CHUNK) {
            break row;
        }
    };
    for (block, at) in MARKS {
        // SAFETY: it lies in the block.
        unsafe { ((all[row + block] + at as u64) as *mut [u8; 8]).write_unaligned(MARK) };
    }
    // What is printed first takes the buffer of the output.
    println!("{}", all[row]);
    for &block in &all[row + BLOCKS..row + 2 * BLOCKS] {
        // SAFETY: it is freed once.
        unsafe { libc::free(block as *mut libc::c_void) };
    }
    // From here on nothing is allocated.
    say_and_wait(true);
}

/// A process with blocks, and the address of the first.
fn known_blocks() -> (Target, u64) {
    let mut target =
        Target::spawn(command("heap_blocks", &[]).env_remove("MALLOC_ARENA_MAX").env_remove("GLIBC_TUNABLES"));
    let first = target.line().parse().expect("an address");
    target.line();
    (target, first)
}

/// What each page of known blocks is, by the library and by a filter; and the chunk at an address.
fn pages_and_chunks_of_known_blocks() {
    if !has_glibc("heap_blocks::pages_and_chunks_of_known_blocks") {
        return;
    }
    let (target, first) = known_blocks();
    // Chunks begin two words before what the program has of them.
    let head = 2 * size_of::<usize>() as u64;
    let (live, free, again) =
        (first - head, first - head + BLOCKS as u64 * CHUNK, first - head + 2 * BLOCKS as u64 * CHUNK);
    let end = again + BLOCKS as u64 * CHUNK;
    let (page, floor) = (page_bytes(), |address: u64| address - address % page_bytes());
    let expected = |address: u64| {
        let has = |from: u64, to: u64| from < address + page && address < to;
        match (has(live, free) || has(again, end), has(free, again)) {
            (true, true) => HeapUse::Both,
            (true, false) => HeapUse::Live,
            (false, _) => HeapUse::Free,
        }
    };
    // The first and the last page have other chunks too.
    let (start, end) = (floor(live) + page, floor(end));
    let space = AddressSpace::of(&target.attach()).expect("its regions");
    let range = range(start, end - start);
    space.require(Evidence::HEAP).expect("its memory");
    let mut pages = space.pages(&[range], Evidence::HEAP);
    let mut found = 0;
    while let Some(chunk) = pages.next().expect("its pages") {
        for page in chunk.pages().flat_map(|page| page.each(support::page())) {
            assert_eq!(
                page.heap,
                Some(expected(page.address.get())),
                "{:?}: {live:x} {free:x} {again:x}",
                page.address
            );
            found += 1;
        }
    }
    assert_eq!(found, (end - start) / page);
    let count = |is: HeapUse| (start..end).step_by(page as usize).filter(|&at| expected(at) == is).count();
    let at = |address: u64| format!("explain {address:#x} with heap");
    let lines = [
        format!("walk {start:#x}..{end:#x} by heap"),
        format!("print count({start:#x}..{end:#x} where heap == \"free\")"),
        format!("walk {start:#x}..{end:#x} where heap == \"both\""),
        at(first + 5 * CHUNK + 7),
        at(free + 4 * page),
        "account by heap".to_owned(),
        "account with heap".to_owned(),
    ];
    let said = program(&[], target.pid(), true, &lines);
    // Both have the same words and numbers.
    let said_in_text = program(&[], target.pid(), false, &["heap".to_owned(), "account with heap".to_owned()]);
    let sentence = said_in_text.lines().find(|line| line.contains("of chunks in use")).expect("a sentence").trim();
    assert_eq!(said_in_text.matches(sentence).count(), 2, "{said_in_text}");
    // The list of blocks is so large.
    let large = said_in_text.lines().find(|line| line.contains("large chunks that are")).expect("a large chunk").trim();
    assert_eq!(said_in_text.matches(large).count(), 2, "{said_in_text}");
    let records: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let of = |word: &'static str| records.iter().filter(move |record| record["type"] == word);
    for group in of("group") {
        let word = group["key"].as_str().expect("a key");
        let is = HeapUse::ALL.iter().find(|is| is.word() == word).expect("a word");
        assert_eq!(group["pages"], count(*is), "{group}");
    }
    assert_eq!(of("group").count(), 3, "{said}");
    assert_eq!(of("value").next().expect("a value")["as_number"], count(HeapUse::Free), "{said}");
    assert_eq!(of("walk-summary").nth(1).expect("a summary")["pages"], count(HeapUse::Both), "{said}");
    let chunks: Vec<&Value> = of("heap-chunk").collect();
    let [used, unused] = chunks[..] else { panic!("{said}") };
    let hex = |address: u64| format!("{address:#x}");
    assert_eq!((&used["lies"], &used["bytes"]), (&"in use".into(), &CHUNK.into()), "{used}");
    assert_eq!(used["chunk"], hex(live + 5 * CHUNK), "{used}");
    assert_eq!((&unused["lies"], &unused["chunk"]), (&"free".into(), &hex(free).into()), "{unused}");
    assert_eq!(unused["bytes"], BLOCKS as u64 * CHUNK, "{unused}");
    for (side, bytes) in [("before", "before_bytes"), ("after", "after_bytes")] {
        assert_eq!((&unused[side], &unused[bytes]), (&"in use".into(), &CHUNK.into()), "{unused}");
    }
    let bytes = |row: &Value| row["bytes"].as_u64().expect("bytes");
    let rows: u64 = of("account-group").map(bytes).sum();
    assert_eq!(of("account-summary").next().expect("a summary")["bytes"], rows, "{said}");
    // Classes: the same pages, as far as no other process has them.
    let class = |word: &str| of("account").filter(|row| row["class"] == word).map(bytes).sum::<u64>();
    let exclusive = |words: &[&str]| -> u64 {
        let groups = of("account-group").filter(|row| words.contains(&row["key"].as_str().expect("a key")));
        groups
            .map(|row| row["classes"].as_object().expect("classes"))
            .flat_map(|classes| classes.iter())
            .filter(|(class, _)| class.starts_with("heap"))
            .map(|(_, bytes)| bytes.as_u64().expect("bytes"))
            .sum()
    };
    assert_eq!(class("heap_in_use"), exclusive(&["live", "both"]), "{said}");
    assert_eq!(class("heap_free"), exclusive(&["free", "top"]), "{said}");
    assert!(class("heap_free") >= count(HeapUse::Free) as u64 * page, "{said}");
    assert!(class("heap_in_use") >= (count(HeapUse::Both) + count(HeapUse::Live)) as u64 * page, "{said}");
    let sum: u64 = of("account").map(bytes).sum();
    assert_eq!(of("account-summary").nth(1).expect("a summary")["bytes"], sum, "{said}");
}

/// Marks in chunks in use are found, to their last bytes; those in free chunks, and the heads of chunks, are counted.
fn a_search_of_chunks_in_use() {
    if !has_glibc("heap_blocks::a_search_of_chunks_in_use") {
        return;
    }
    let (target, first) = known_blocks();
    let [live, free, again] = MARKS.map(|(block, at)| first + block as u64 * CHUNK + at as u64);
    let range = format!("{first:#x}..{:#x}", first + 3 * BLOCKS as u64 * CHUNK);
    let mark = MARK.map(|byte| format!("{byte:02x}")).concat();
    let head = CHUNK | 1;
    let word = if size_of::<usize>() == 8 { 'g' } else { 'w' };
    let found = |line: String| -> (Vec<u64>, Value) {
        let said = program(&[], target.pid(), true, &[line]);
        let records: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
        let (last, matches) = records.split_last().expect("a summary");
        let address = |found: &Value| {
            let text = found["address"].as_str().and_then(|text| text.strip_prefix("0x")).expect("an address");
            u64::from_str_radix(text, 16).expect("a number")
        };
        (matches.iter().map(address).collect(), last.clone())
    };
    for (line, expected, outside, is_cut_short) in [
        (format!("find {range}, hex\"{mark}\""), vec![live, free, again], Value::Null, false),
        (format!("find {range}, hex\"{mark}\" in heap live"), vec![live, again], 1.into(), false),
        (format!("find/2 {range}, hex\"{mark}\" in heap live where present"), vec![live, again], 1.into(), true),
        (format!("find/1 {range}, hex\"{mark}\" in heap live"), vec![live], 0.into(), true),
        // Heads of chunks: that of the first is before the range, and the first after free ones has no PREV_INUSE.
        (format!("find/{word} {range}, {head} in heap live"), vec![], (2 * BLOCKS - 2).into(), false),
    ] {
        let (addresses, summary) = found(line.clone());
        assert_eq!(addresses, expected, "{line}: {summary}");
        assert_eq!(
            (&summary["not_live"], &summary["cut_short"]),
            (&outside, &is_cut_short.into()),
            "{line}: {summary}"
        );
    }
}
