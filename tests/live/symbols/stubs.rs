//! Stubs and slots, through which programs call the functions of libraries, and which no table names.

use super::super::answers;
use super::super::support::{at, skip};
use super::super::target::Target;
use super::programs::{compile, is_installed};
use super::with_names;
use pmdb::kernel::Name;
use pmdb::symbol::{NamesIn, SymbolKind, Symbols, TargetSymbols};
use std::process::Command;
use std::time::Duration;

const PROGRAM: &str = r#"
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) static int hidden(int x) { return x + getpid(); }
int main(void) {
    printf("%p\n", (void *)hidden);
    fflush(stdout);
    return getchar() == hidden(1);
}
"#;

pub(super) fn stubs_have_the_names_of_what_they_call() {
    let test = "symbols::stubs_have_the_names_of_what_they_call";
    let folder = tempfile::tempdir().expect("a folder");
    if !is_installed("gcc") || !cfg!(target_arch = "x86_64") {
        return skip(test, "there is no C compiler, or this is not x86-64");
    }
    for flags in [&["-Wl,-z,lazy"][..], &["-Wl,-z,now"], &["-fcf-protection=full", "-Wl,-z,ibtplt"]] {
        let Some(program) = compile(folder.path(), "program", PROGRAM, flags) else {
            skip(test, &format!("gcc {} does not work here", flags.join(" ")));
            continue;
        };
        let mut target = Target::spawn(&mut Command::new(&program));
        let hidden = target.numbers()[0];
        let symbols = Symbols::default();
        let attached = target.attach();
        with_names(&symbols, &attached, |names, regions| {
            let one = |names: &TargetSymbols, name: &str| {
                let mut found = names.find(Some("program"), name).expect("a search");
                assert_eq!(found.len(), 1, "{name}: {found:?}");
                let found = found.remove(0);
                assert_eq!(names.at(found.start).as_ref(), Some(&found), "{name}");
                found
            };
            let code = regions.iter().find(|one| one.range.contains(at(hidden)));
            let code = code.expect("its code").range;
            let mut found = Vec::new();
            for address in (code.start().get()..code.end().get()).step_by(8) {
                let section = names.section_at(at(address)).unwrap_or_default();
                if section.as_bytes().starts_with(b".plt")
                    && let Some(stub) = names.at(at(address))
                {
                    assert_eq!(stub.section, Some(section));
                    found.push(stub.name().to_string());
                }
            }
            for expected in ["getpid@plt", "printf@plt"] {
                assert!(found.iter().any(|one| one == expected), "{flags:?}: {found:?}");
                let stub = one(names, expected);
                assert_eq!((stub.offset, stub.kind), (0, SymbolKind::Function));
            }
            let slot = one(names, "getpid@got.plt");
            assert_eq!((slot.offset, slot.size), (0, 8), "{slot:?}");
            let inside = names.at(slot.start.checked_add(5).expect("an address"));
            assert_eq!(inside.map(|one| (one.name(), one.offset)), Some((slot.name(), 5)));
            // Each stub jumps through its own slot, and the linker has filled this one where it does not wait for the
            // first call.
            let mut bytes = [0; 8];
            let read = attached.process.memory(slot.start, &mut bytes);
            assert_eq!(read.expect("to read it"), 8);
            let function = names.find(None, "getpid").expect("a search");
            let is_it = function.iter().any(|one| one.start == at(u64::from_le_bytes(bytes)));
            assert!(is_it || !flags.contains(&"-Wl,-z,now"), "{bytes:x?}");
            let completed = names.names(NamesIn::Module("program"), "getpid@", 9, Duration::from_secs(60));
            let expected = ["getpid@got.plt", "getpid@plt"];
            assert_eq!(completed, expected.map(Name::from));
        });
        // In an expression it is the program's own, whoever else calls it.
        let line = "print printf@plt == program!printf@plt".to_owned();
        let said = answers::program(&[], target.pid(), false, &[line]);
        assert!(said.starts_with("$1 = 1"), "{said}");
        target.send("");
    }
}
