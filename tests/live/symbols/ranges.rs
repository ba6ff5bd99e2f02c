//! A symbol with a size is a range; a module is the range of all its memory.

use super::super::answers::program;
use super::super::support::{page_bytes, skip};
use super::super::target::Target;
use super::programs::{compile, is_installed};
use serde_json::Value;
use std::process::Command;

const PROGRAM: &str = r#"
#include <stdio.h>
#include <string.h>
char demo_buffer[5 * 65536] __attribute__((aligned(65536))) = {1};
char big_array[600000];
static int table[1000];
int main(void) {
    memset(big_array, 1, sizeof big_array);
    table[1] = demo_buffer[0];
    printf("%p %p %p\n", (void *)demo_buffer, (void *)big_array, (void *)table);
    fflush(stdout);
    return getchar() == table[1];
}
"#;

/// How many pages the bytes lie in.
fn pages(start: u64, len: u64) -> u64 {
    (start + len).div_ceil(page_bytes()) - start / page_bytes()
}

pub(super) fn a_symbol_with_a_size_is_a_range() {
    let test = "symbols::a_symbol_with_a_size_is_a_range";
    if !is_installed("gcc") {
        return skip(test, "there is no C compiler here");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = compile(folder.path(), "ranges", PROGRAM, &[]).expect("to compile");
    let mut target = Target::spawn(&mut Command::new(&file));
    let words = target.numbers();
    let (buffer, array, table) = (words[0], words[1], words[2]);
    let lines =
        ["walk demo_buffer", "watch big_array for 1ms", "translate table", "walk ranges", "watch ranges for 1ms"];
    let said = program(&[], target.pid(), true, &lines.map(str::to_owned));
    let records: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    let of = |kind: &str| -> Vec<u64> {
        let records = records.iter().filter(|record| record["type"] == kind);
        records.filter_map(|one| one["pages"].as_u64()).collect()
    };
    let (walks, watches) = (of("walk-summary"), of("watch-start"));
    assert_eq!(walks[0], pages(buffer, 5 * 65536), "walk demo_buffer");
    assert_eq!(walks[1], pages(table, 4000), "translate table");
    assert_eq!(watches[0], pages(array, 600_000), "watch big_array");
    assert_eq!(walks[2], watches[1], "walk ranges and watch ranges");
    assert!(
        watches[1] > pages(buffer, 5 * 65536) + pages(array, 600_000),
        "{} pages have no place for .bss",
        watches[1]
    );
    target.send("");
}
