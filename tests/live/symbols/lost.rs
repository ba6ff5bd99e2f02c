//! Programs that have lost names, or whose names mean something else than it seems.

use super::super::answers::program;
use super::super::support::skip;
use super::super::target::Target;
use super::programs::{compile, is_installed};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The records of lines, of one kind, and all that was printed.
fn records(pid: u32, kind: &str, lines: &[String]) -> (Vec<Value>, String) {
    let said = program(&[], pid, true, lines);
    let all = said.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
    (all.filter(|record| record["type"] == kind).collect(), said)
}

/// A compiled program; `None` if that is not possible here.
fn compiled(test: &str, folder: &Path, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let program = if is_installed("gcc") { compile(folder, "program", source, flags) } else { None };
    if program.is_none() {
        skip(test, &format!("gcc {} does not work here", flags.join(" ")));
    }
    program
}

fn strip(file: &Path, flags: &[&str]) {
    let done = Command::new("strip").args(flags).arg(file).status().expect("strip");
    assert!(done.success());
}

const WITHOUT_SIZE: &str = r#"
#include <stdio.h>
__asm__(".globl mark\n.type mark,@function\nmark: ret\n");
void mark(void);
__attribute__((noinline)) static int hidden(int x) {
    __asm__ volatile(".skip 60000, 0x90");
    return x + 2;
}
int main(int count, char **words) {
    printf("%p %p\n", (void *)mark, (void *)hidden);
    fflush(stdout);
    return count > 5 ? hidden(count) : getchar() == 3;
}
"#;

/// What follows such a symbol may be a function whose name was stripped.
pub(super) fn a_symbol_without_a_size_reaches_no_code_that_lost_its_names() {
    let test = "symbols::a_symbol_without_a_size_reaches_no_code_that_lost_its_names";
    let folder = tempfile::tempdir().expect("a folder");
    if !cfg!(target_arch = "x86_64") {
        return skip(test, "its code is that of x86");
    }
    let Some(file) = compiled(test, folder.path(), WITHOUT_SIZE, &["-O1", "-rdynamic"]) else {
        return;
    };
    for is_stripped in [false, true] {
        if is_stripped {
            strip(&file, &[]);
        }
        let mut target = Target::spawn(&mut Command::new(&file));
        let [mark, hidden] = target.numbers()[..] else { panic!("two addresses") };
        // Often enough for an index.
        for _ in 0..2 {
            let lines: Vec<String> = [mark, hidden, hidden + 50_000, mark + 1, hidden + 50_000]
                .map(|address| format!("info symbol {address:#x}"))
                .into();
            let (found, said) = records(target.pid(), "symbol", &lines);
            let names: Vec<_> = found.iter().map(|one| (one["name"].as_str(), one["offset"].as_u64())).collect();
            let [of_mark, of_hidden] = [("mark", 0), ("hidden", 0)].map(|(name, offset)| (Some(name), Some(offset)));
            if is_stripped {
                assert_eq!(names, [of_mark], "{said}");
                let lost = "program has no symbol table (stripped), and none of its exported symbols covers it";
                assert_eq!(said.matches(lost).count(), 4, "{said}");
            } else {
                let inside = (Some("hidden"), Some(50_000));
                assert_eq!(names[..3], [of_mark, of_hidden, inside], "{said}");
            }
        }
        target.send("");
    }
}

const INDIRECT: &str = r#"
#include <stdio.h>
__attribute__((noinline)) static int chosen(int x) { return x + 7; }
static int (*choose(void))(int) { return chosen; }
int pick(int x) __attribute__((ifunc("choose")));
int main(void) {
    printf("%p %p %d\n", (void *)choose, (void *)chosen, pick(1));
    fflush(stdout);
    return getchar() == 3;
}
"#;

pub(super) fn an_indirect_function_is_its_resolver() {
    let test = "symbols::an_indirect_function_is_its_resolver";
    let folder = tempfile::tempdir().expect("a folder");
    for flags in [&["-O1", "-pie", "-fpie"][..], &["-O1", "-no-pie", "-fno-pic"], &["-O1", "-static"]] {
        let Some(file) = compiled(test, folder.path(), INDIRECT, flags) else {
            continue;
        };
        let mut target = Target::spawn(&mut Command::new(&file));
        let numbers = target.numbers();
        let lines = ["info address program!pick".to_owned(), format!("info symbol {:#x}", numbers[1] + 1)];
        let (found, said) = records(target.pid(), "symbol", &lines);
        let pick = found.iter().find(|one| one["name"] == "pick").unwrap_or_else(|| panic!("{flags:?}: {said}"));
        assert_eq!(pick["kind"], "ifunc", "{said}");
        assert_eq!(pick["address"], format!("{:#x}", numbers[0]));
        let implementation = &pick["implementation"];
        assert_eq!(implementation["address"], format!("{:#x}", numbers[1]), "{flags:?}: {said}");
        assert_eq!(implementation["name"], "chosen");
        let chosen = found.last().expect("a symbol");
        assert_eq!((&chosen["kind"], &chosen["implementation"]), (&"function".into(), &Value::Null), "{said}");
        let text = program(&[], target.pid(), false, &lines[..1]);
        let resolver = "the resolver of an indirect function";
        let by = format!("implemented by chosen at {:#x}", numbers[1]);
        assert!(text.contains(resolver) && text.contains(&by), "{text}");
        target.send("");
    }
}
