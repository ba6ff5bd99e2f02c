//! Programs that have lost names, or whose names mean something else than it seems.

use super::super::answers::program;
use super::super::support::skip;
use super::super::target::{Target, announce, wait};
use super::programs::{compile, is_installed};
use serde_json::Value;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The records of lines, of one kind, and all that was printed.
pub(super) fn records(pid: u32, kind: &str, lines: &[String]) -> (Vec<Value>, String) {
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
    for stripped in [None, Some("-x"), Some("-s")] {
        if let Some(flag) = stripped {
            strip(&file, &[flag]);
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
            if let Some(flag) = stripped {
                assert_eq!(names, [of_mark], "{said}");
                // `-x` leaves a table without local symbols.
                let lost = match flag {
                    "-x" => "no symbol at",
                    _ => "program has no symbol table (stripped), and none of its exported symbols covers it",
                };
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

const DESCRIBED: &str = r#"
#include <stdio.h>
__attribute__((noinline)) static int described(int x) {
    __asm__ volatile("");
    return x * 3;
}
int main(int count, char **words) {
    printf("%p %p\n", (void *)described, (void *)main);
    fflush(stdout);
    return described(count) == getchar();
}
"#;

pub(super) fn functions_of_a_program_with_debug_information_alone() {
    let test = "symbols::functions_of_a_program_with_debug_information_alone";
    let folder = tempfile::tempdir().expect("a folder");
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let Some(file) = compiled(test, folder.path(), DESCRIBED, &["-O1", version]) else {
            continue;
        };
        strip(&file, &["--strip-all", "--keep-section=.debug_*"]);
        let mut target = Target::spawn(&mut Command::new(&file));
        let [described, main] = target.numbers()[..] else { panic!("two addresses") };
        let lines = [
            format!("info symbol {:#x}", described + 1),
            "info address program!described".to_owned(),
            "info address main".to_owned(),
            "info modules".to_owned(),
        ];
        let (found, said) = records(target.pid(), "symbol", &lines);
        let shown: Vec<_> =
            found.iter().map(|one| ["name", "address", "section"].map(|field| one[field].as_str())).collect();
        let [described, main] = [described, main].map(|address| format!("{address:#x}"));
        let of_described = [Some("described"), Some(described.as_str()), Some(".text")];
        assert_eq!(shown[..2], [of_described, of_described], "{said}");
        assert_eq!(shown[2][..2], [Some("main"), Some(main.as_str())], "{said}");
        let (modules, said) = records(target.pid(), "module", &lines[3..]);
        let module = modules.iter().find(|one| one["name"].as_str().is_some_and(|name| name.ends_with("/program")));
        assert_eq!(module.expect("the program")["answers"], "debug-info", "{said}");
        target.send("");
    }
}

/// Maps the load segments of the program that its argument names as a loader would, without execute rights.
pub(super) fn unexecutable(arguments: &[String]) {
    let file = File::open(&arguments[0]).expect("the file");
    announce(format!("{:#x}", map_segments(&file, 0, 0)));
    wait();
}

/// Maps the load segments of the program that begins at `start` of a file as a loader would: executable only if
/// `rights` have that. Returns how far its addresses are moved.
pub(super) fn map_segments(file: &File, start: u64, rights: i32) -> u64 {
    let mut bytes = vec![0; 4096];
    file.read_exact_at(&mut bytes, start).expect("its headers");
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let short = |at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"));
    let (table, count) = (word(32) as usize, usize::from(short(56)));
    let page = super::page_bytes();
    let loaded = (0..count).map(|number| table + 56 * number).filter(|at| bytes[*at..*at + 4] == 1u32.to_le_bytes());
    let mut first = None;
    for at in loaded.filter(|at| word(at + 32) > 0) {
        let (offset, address, size) = (word(at + 8), word(at + 16), word(at + 32));
        let into = address % page;
        let is = |flag: u8, right: i32| if bytes[at + 4] & flag == 0 { 0 } else { right };
        let rights = libc::PROT_READ | is(2, libc::PROT_WRITE) | is(1, libc::PROT_EXEC) & rights;
        let fixed = if first.is_none() { 0 } else { libc::MAP_FIXED };
        // All are placed relative to the first, within room that was reserved for all of them.
        let base = *first.get_or_insert_with(|| {
            // SAFETY: a new mapping at a place that the kernel chooses.
            let room = unsafe {
                let (anonymous, none) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_NONE);
                libc::mmap(std::ptr::null_mut(), 64 << 20, none, anonymous, -1, 0)
            };
            assert_ne!(room, libc::MAP_FAILED);
            (room as u64).wrapping_sub(address - into)
        });
        let place = base.wrapping_add(address - into) as *mut libc::c_void;
        let length = (into + size).next_multiple_of(page) as usize;
        // SAFETY: within the room that was reserved.
        let mapped = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_FIXED | fixed;
            libc::mmap(place, length, rights, flags, file.as_raw_fd(), (start + offset - into) as i64)
        };
        assert_eq!(mapped, place);
    }
    first.expect("a segment")
}

const GUEST: &str = r#"
int filled[9000] = {1};
int guest(int x) { return x * 3 + filled[x]; }
void _start(void) { for (;;) guest(1); }
"#;

/// As emulators map the programs that they run.
pub(super) fn a_program_that_is_not_executable_has_symbols() {
    let test = "symbols::a_program_that_is_not_executable_has_symbols";
    let folder = tempfile::tempdir().expect("a folder");
    if !cfg!(all(target_endian = "little", target_pointer_width = "64")) {
        return skip(test, "it reads headers of 64 bits in this order");
    }
    let Some(file) = compiled(test, folder.path(), GUEST, &["-O1", "-static", "-nostdlib", "-no-pie"]) else {
        return;
    };
    let listed = super::nm(file.to_str().expect("a path")).expect("nm");
    let guest = listed.iter().find(|one| one.name == "guest").expect("nm lists it").address;
    let mut target = Target::start("unexecutable", &[file.to_str().expect("a path")]);
    let address = target.numbers()[0].wrapping_add(guest);
    let lines = [format!("info symbol {:#x}", address + 1), "info address program!guest".to_owned()];
    let (found, said) = records(target.pid(), "symbol", &lines);
    let shown: Vec<_> = found.iter().map(|one| (one["name"].as_str(), one["address"].as_str())).collect();
    let address = format!("{address:#x}");
    let expected = (Some("guest"), Some(address.as_str()));
    assert_eq!(shown, [expected, expected], "{said}");
    let (modules, said) = records(target.pid(), "module", &["info modules".to_owned()]);
    let is_it = |one: &&Value| one["name"].as_str().is_some_and(|name| name.ends_with("/program"));
    assert_eq!(modules.iter().filter(is_it).count(), 1, "{said}");
    target.send("");
}
