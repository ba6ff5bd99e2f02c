//! The rows of `heap`: one arena, the parts of arenas, and the pages that few chunks keep.

use super::answers::program;
use super::heap::{has_glibc, say_and_wait};
use super::support::page_bytes;
use super::target::{Target, command};
use super::{Scenario, Test};
use serde_json::Value;
use std::hint::black_box;

pub const TESTS: &[Test] = &[
    ("heap_rows::an_arena_and_its_parts", an_arena_and_its_parts),
    ("heap_rows::rows_of_several_processes", rows_of_several_processes),
    ("heap_rows::few_chunks_keep_many_pages", few_chunks_keep_many_pages),
];

pub const SCENARIOS: &[Scenario] = &[("heap_kept", kept)];

/// The size of a large block: between two of them lies one small block, so that pages have one or two of these.
fn large_block() -> usize {
    page_bytes() as usize * 3 / 4
}

/// How many small blocks stay.
fn blocks() -> usize {
    (60 << 20) / large_block()
}

/// Frees all large blocks, between which small ones stay.
fn kept(_: &[String]) {
    // SAFETY: each block is written within its size, and freed once.
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
        let all: Vec<_> = (0..blocks())
            .map(|_| {
                // An optimizing compiler leaves out blocks that nobody reads.
                let large = black_box(libc::malloc(large_block()));
                large.cast::<u8>().write_bytes(7, large_block());
                black_box(libc::malloc(40)).cast::<u8>().write_bytes(7, 40);
                large
            })
            .collect();
        all.into_iter().for_each(|block| libc::free(block));
    }
    say_and_wait(true);
}

fn start(scenario: &str, arguments: &[&str]) -> Target {
    let mut command = command(scenario, arguments);
    let mut target = Target::spawn(command.env_remove("MALLOC_ARENA_MAX").env_remove("GLIBC_TUNABLES"));
    target.line();
    if scenario == "heap" {
        // From the second line on nothing is allocated any more.
        target.send("");
        target.line();
    }
    target
}

/// The records of each of these lines.
fn records(pid: u32, lines: &[String]) -> Vec<Vec<Value>> {
    let one = |line: &String| {
        let text = program(&[], pid, true, std::slice::from_ref(line));
        text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
    };
    lines.iter().map(one).collect()
}

fn of<'a>(records: &'a [Value], word: &'static str) -> Vec<&'a Value> {
    records.iter().filter(|record| record["type"] == word).collect()
}

fn number(record: &Value, name: &str) -> u64 {
    record[name].as_u64().unwrap_or_else(|| panic!("{name}: {record}"))
}

fn sum(rows: &[&Value], name: &str) -> u64 {
    rows.iter().map(|row| number(row, name)).sum()
}

fn an_arena_and_its_parts() {
    if !has_glibc("heap_rows::an_arena_and_its_parts") {
        return;
    }
    let target = start("heap", &["3", "50000"]);
    let pid = target.pid();
    let read = || records(pid, &["heap".to_owned(), "heap by region".into(), "heap by size".into()]);
    // A page that the kernel moves is in no sum for a moment.
    let total = |all: &[Vec<Value>], which: usize, word| sum(&of(&all[which], word), "trim");
    let agree = |all: &Vec<Vec<Value>>| total(all, 0, "heap-arena") == total(all, 1, "heap-part");
    let all = (0..4).map(|_| read()).find(agree).unwrap_or_else(read);
    let arenas = of(&all[0], "heap-arena");
    assert!(arenas.len() > 2, "{arenas:?}");
    let whole = of(&all[0], "heap-summary")[0];
    for &arena in &arenas {
        let parts: Vec<&Value> =
            of(&all[1], "heap-part").into_iter().filter(|part| part["arena"] == arena["arena"]).collect();
        assert_eq!(parts.len() as u64, number(arena, "parts"), "{arena}");
        for name in ["resident", "in_use", "chunks", "free", "trim"] {
            assert_eq!(sum(&parts, name), number(arena, name), "{name}: {arena}");
        }
        // By its number, by an address in it, and by its head.
        let inside = u64::from_str_radix(parts[0]["start"].as_str().expect("an address").trim_start_matches("0x"), 16);
        let inside = inside.expect("an address") + 0x1234;
        let head = arena["address"].as_str().expect("an address");
        let said =
            records(pid, &[format!("heap {}", arena["arena"]), format!("heap {inside:#x}"), format!("heap {head}")]);
        assert!(said.iter().all(|one| *one == said[0]), "{said:?}");
        let sums = of(&said[0], "heap-summary")[0];
        assert_eq!(sums["arena"], arena["arena"]);
        assert_eq!(of(&said[0], "heap-arena"), [arena]);
        for name in ["resident", "in_use", "free", "between", "top", "trim"] {
            assert_eq!(sums[name], arena[name], "{name}");
        }
        let sizes = of(&said[0], "heap-size");
        assert_eq!([sum(&sizes, "in_use"), sum(&sizes, "free")], [number(arena, "in_use"), number(arena, "free")]);
        assert!(sum(&of(&said[0], "heap-kept"), "free") <= number(arena, "between"));
    }
    assert!(whole["arena"].is_null() && number(whole, "kept") <= number(whole, "between"), "{whole}");
    let few: Vec<&Value> = of(&all[2], "heap-kept").into_iter().filter(|row| number(row, "least") <= 2).collect();
    assert_eq!(sum(&few, "free"), number(whole, "kept"));
    let wrong = program(&[], pid, false, &["heap 77".to_owned(), "heap 0x123456".into(), "heap 0 every 1s".into()]);
    for text in ["there is no arena 77", "0x123456 is in no arena of glibc", "leave the arena out"] {
        assert!(wrong.contains(text), "{wrong}");
    }
}

fn rows_of_several_processes() {
    if !has_glibc("heap_rows::rows_of_several_processes") {
        return;
    }
    let targets = [start("heap", &["0", "20000"]), start("heap", &["2", "20000"])];
    let pids = targets.each_ref().map(Target::pid);
    let line = |by: &str| format!("heap of {}, {}{by}", pids[0], pids[1]);
    let all = records(pids[0], &[line(""), line(" by size"), line(" by arena"), line(" by region")]);
    let family = of(&all[0], "heap-family")[0];
    let processes = of(&all[0], "heap-process");
    assert_eq!(sum(&of(&all[1], "heap-size"), "in_use"), number(family, "in_use"));
    for (rows, word) in [(&all[2], "heap-arena"), (&all[3], "heap-part")] {
        assert!(of(rows, "heap-process").is_empty() && of(rows, "heap-family") == [family], "{rows:?}");
        for process in &processes {
            let own: Vec<&Value> = of(rows, word).into_iter().filter(|row| row["pid"] == process["pid"]).collect();
            for name in ["resident", "in_use", "trim"] {
                assert_eq!(sum(&own, name), number(process, name), "{word} {name}");
            }
        }
    }
}

/// Small blocks lie on most pages: one or two of them keep what was freed.
fn few_chunks_keep_many_pages() {
    if !has_glibc("heap_rows::few_chunks_keep_many_pages") {
        return;
    }
    let target = start("heap_kept", &[]);
    let lines = ["heap".to_owned(), "heap by size".into()];
    let [summary, sizes] = &records(target.pid(), &lines)[..] else { panic!("two answers") };
    let summary = of(summary, "heap-summary")[0];
    // Two pages of three hold a small block.
    let freed = (large_block() * blocks()) as u64;
    assert!(number(summary, "kept") > freed / 2 && number(summary, "kept") <= number(summary, "between"), "{summary}");
    let small = 32;
    assert_eq!(number(summary, "kept_size"), small, "{summary}");
    let kept = of(sizes, "heap-kept");
    assert_eq!((number(kept[0], "least"), number(kept[0], "smallest")), (1, small), "{kept:?}");
    assert!(sum(&kept, "with_smallest") > blocks() as u64 * 2 / 3, "{kept:?}");
    let text = program(&[], target.pid(), false, &lines);
    assert!(text.contains("most often of 32 to 63 bytes"), "{text}");
}
