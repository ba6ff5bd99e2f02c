//! `capture FILE with heap`: the sizes of chunks are in the file, and no other word of memory.

use super::answers::program;
use super::heap::{has_glibc, say_and_wait};
use super::support::{skip, write_core};
use super::target::{Target, command};
use super::{Scenario, Test};
use flate2::read::{GzDecoder, MultiGzDecoder};
use serde_json::Value;
use std::io::Read;
use std::process::Command;

pub const TESTS: &[Test] = &[
    ("heap_capture::sizes_and_nothing_else", sizes_and_nothing_else),
    ("heap_capture::a_core_of_gdb_has_the_same_heap", a_core_of_gdb_has_the_same_heap),
];

pub const SCENARIOS: &[Scenario] = &[("heap_secrets", secrets)];

/// Blocks of this size, which fill their chunks: their last word is where the next chunk has the size of a free one.
const BLOCK: usize = 3000;
const CHUNK: u64 = 3008;
const BLOCKS: usize = 2000;

/// A word that nothing else contains.
fn secret() -> u64 {
    std::hint::black_box(0x1234_5677_u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 0x8100_0000_0000_0081
}

/// Fills blocks with the secret, and frees every third and the one after it.
fn secrets(_: &[String]) {
    let mut all = Vec::with_capacity(BLOCKS);
    for _ in 0..BLOCKS {
        // SAFETY: the block is written within its size.
        unsafe {
            let block = libc::malloc(BLOCK).cast::<u64>();
            (0..BLOCK / 8).for_each(|word| block.add(word).write_volatile(secret()));
            all.push(block);
        }
    }
    for (number, &block) in all.iter().enumerate() {
        if number % 3 != 0 {
            // SAFETY: it is freed once.
            unsafe { libc::free(block.cast()) };
        }
    }
    say_and_wait(true);
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    _ = GzDecoder::new(packed).read_to_end(&mut bytes);
    bytes
}

/// The words of the heap, read as `help capture-format` describes them.
fn heap_words(file: &[u8], index: &Value) -> Vec<u64> {
    let mut all = Vec::new();
    let heap = &index["processes"][0]["heap"];
    for block in heap["blocks"].as_array().expect("blocks") {
        let number = |at: usize| block[2][at].as_u64().expect("a number") as usize;
        let bytes = unpacked(&file[number(0)..number(0) + number(1)]);
        assert_eq!(bytes.len(), number(2));
        let count = bytes.len() / 8;
        let words: Vec<u64> =
            (0..count).map(|at| (0..8).map(|byte| u64::from(bytes[byte * count + at]) << (8 * byte)).sum()).collect();
        // One run without a gap, of which each word is there.
        assert_eq!((words[0], words[1], words[2]), (1, all.len() as u64, words[3]));
        let mut before = 0_u64;
        all.extend(words[4..].iter().map(|word| {
            before = before.wrapping_add(*word);
            before
        }));
    }
    assert_eq!(heap["end"], all.len());
    all
}

fn sizes_and_nothing_else() {
    if !has_glibc("heap_capture::sizes_and_nothing_else") || cfg!(target_pointer_width = "32") {
        return;
    }
    let mut target =
        Target::spawn(command("heap_secrets", &[]).env_remove("MALLOC_ARENA_MAX").env_remove("GLIBC_TUNABLES"));
    target.line();
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("heap.capture");
    let name = path.to_str().expect("a plain path");
    let lines = [
        "heap".to_owned(),
        "heap by size".into(),
        format!("capture {name} with heap"),
        format!("target capture {name}"),
        "heap".into(),
        "heap by size".into(),
        "account by heap".into(),
    ];
    let said = program(&[], target.pid(), true, &lines);
    let records: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let of = |word: &'static str| records.iter().filter(move |record| record["type"] == word);
    let summaries: Vec<&Value> = of("heap-summary").collect();
    let [live, first, ..] = summaries[..] else { panic!("{said}") };
    for field in ["resident", "in_use", "free", "between", "top", "mapped", "arenas", "incomplete", "trim"] {
        assert_eq!(first[field], live[field], "{field}");
    }
    let sizes: Vec<_> = of("heap-size")
        .map(|row| ["smallest", "in_use", "chunks", "free", "free_chunks"].map(|field| &row[field]))
        .collect();
    let (before, after) = sizes.split_at(sizes.len() / 2);
    assert_eq!(before, after, "{said}");
    assert!(of("account-group").any(|row| row["key"] == "both"), "{said}");

    let file = std::fs::read(&path).expect("the capture");
    let index = Command::new("tar").args(["xOf", name, "index.json.gz"]).output().expect("tar").stdout;
    let index: Value = serde_json::from_reader(MultiGzDecoder::new(&index[..])).expect("the index");
    let words = heap_words(&file, &index);
    // Nothing in the file is the secret: neither among these words, nor in anything that is compressed on its own.
    assert!(words.iter().all(|&word| word != secret() && word.to_be() != secret()));
    let pattern = secret().to_ne_bytes();
    let begins = |at: &usize| file[*at..].starts_with(&[0x1f, 0x8b, 0x08]);
    let members = (0..file.len()).filter(begins).map(|at| unpacked(&file[at..(at + (1 << 20)).min(file.len())]));
    assert!(members.chain([file.clone()]).all(|bytes| !bytes.windows(8).any(|at| at == pattern)));
    // It is memory of the process, where a capture with memory has it.
    let is_chunk = |word: &&u64| **word == CHUNK;
    assert!(words.iter().filter(is_chunk).count() >= BLOCKS / 3 - 2, "{words:x?}");
    assert!(words.iter().filter(|word| **word == (2 * CHUNK) | 1).count() >= BLOCKS / 3 - 2, "{words:x?}");
    // The sizes and states are all: pieces follow each other up to the end of the arena.
    let at = 2 + 2 * words[1] as usize;
    assert_eq!(words[at], live["arenas"].as_u64().expect("a number"));
    let [_, system, outcome, _, parts, start, end, first, pieces, rest @ ..] = &words[at + 1..] else {
        panic!("{words:x?}")
    };
    assert_eq!((outcome, parts, end - start), (&0, &1, *system), "{words:x?}");
    assert_eq!(rest.len() as u64, *pieces);
    assert_eq!(first + rest.iter().map(|word| word & !7).sum::<u64>(), *end);
    let report = of("capture").next().expect("a report");
    let heap = report["heap"].as_u64().expect("its bytes");
    assert!(heap > 0 && heap < words.len() as u64 * 8, "{report}");
    assert_eq!(report["heap_chunks"], rest.iter().filter(|word| **word & 7 < 2).count(), "{report}");
}

fn a_core_of_gdb_has_the_same_heap() {
    const NAME: &str = "heap_capture::a_core_of_gdb_has_the_same_heap";
    if !has_glibc(NAME) {
        return;
    }
    let mut target =
        Target::spawn(command("heap_secrets", &[]).env_remove("MALLOC_ARENA_MAX").env_remove("GLIBC_TUNABLES"));
    target.line();
    let pid = target.pid().to_string();
    let folder = tempfile::tempdir().expect("a directory");
    let core = folder.path().join("core");
    let gcore = write_core(&pid, &core);
    if !core.exists() {
        return skip(NAME, "gdb cannot write a core file here");
    }
    let path = core.to_str().expect("a plain path");
    let rows = |of: [&str; 2]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pmdb"));
        let lines = ["-ex", "heap", "-ex", "heap by size", "-ex", "heap 0"];
        let output = command.args(["-nx", "-batch", "--json"]).args(of).args(lines).output().expect("pmdb runs");
        assert!(output.status.success(), "{output:?} {gcore:?}");
        let text = String::from_utf8(output.stdout).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect::<Vec<Value>>()
    };
    let [live, read] = [rows(["-p", &pid]), rows(["-c", path])];
    let fields = [
        "type",
        "arena",
        "address",
        "parts",
        "system",
        "in_use",
        "chunks",
        "free",
        "free_chunks",
        "between",
        "top",
        "mapped",
        "mapped_chunks",
        "arenas",
        "incomplete",
        "walked",
        "smallest",
        "unsearched",
    ];
    let of = |rows: &[Value]| {
        let known = |row: &Value| fields.map(|field| row[field].clone());
        rows.iter().map(known).collect::<Vec<_>>()
    };
    assert_eq!(of(&read), of(&live));
    assert!(live.iter().any(|row| row["type"] == "heap-size" && row["free_chunks"].as_u64() > Some(0)), "{live:?}");
    // A core does not tell what is resident.
    let summary = read.iter().find(|row| row["type"] == "heap-summary").expect("a sum");
    assert!(summary["resident"].is_null() && summary["trim"].is_null(), "{summary}");
}
