//! The heaps of the C libraries of other suites, which `scripts/guests --libcs` unpacks: a program is linked with each,
//! and started by its own `ld.so`.

use super::Test;
use super::heap::{arenas, hold, resident, said, sums};
use super::support::skip;
use super::target::Target;
use std::path::{Path, PathBuf};
use std::process::Command;

pub const TESTS: &[Test] = &[("heap_libcs::counts_and_trims_of_each_suite", counts_and_trims_of_each_suite)];

const SUITES: [&str; 4] = ["bullseye", "bookworm", "trixie", "sid"];

/// A machine whose programs run here: its name in Debian, its folder of libraries, its `ld.so`, the option of the
/// compiler.
type Machine = (&'static str, &'static str, &'static str, &'static str);

const MACHINES: [Machine; 2] = [
    ("amd64", "lib/x86_64-linux-gnu", "ld-linux-x86-64.so.2", "-m64"),
    ("i386", "lib/i386-linux-gnu", "ld-linux.so.2", "-m32"),
];

/// Where `scripts/guests` keeps what it fetches.
fn cache() -> Option<PathBuf> {
    let folder = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    folder("PMDB_GUESTS").or_else(|| {
        let caches = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
        Some(caches?.join("pmdb-guests"))
    })
}

fn counts_and_trims_of_each_suite() {
    for suite in SUITES {
        for machine in MACHINES {
            let name = format!("{suite}-{}", machine.0);
            let test = format!("heap_libcs::counts_and_trims_of_each_suite ({name})");
            let root = cache().map(|cache| cache.join("libcs").join(&name)).filter(|root| root.join("ready").exists());
            // Programs for x86 run on no other machine.
            let Some(root) = root.filter(|_| cfg!(target_arch = "x86_64")) else {
                skip(&test, "its C library is not here (scripts/guests --libcs)");
                continue;
            };
            // Before `/usr` was merged, the libraries were outside of it.
            let library = ["", "usr"].map(|usr| root.join(usr).join(machine.1)).into_iter().find(|it| it.exists());
            let library = library.expect("a folder of libraries");
            let folder = tempfile::tempdir().expect("a directory");
            let program = folder.path().join("program");
            if let Err(reason) = link(&library, machine, &program) {
                skip(&test, &reason);
                continue;
            }
            for threads in ["0", "5"] {
                println!("{name}, {threads} threads");
                let mut command = Command::new(library.join(machine.2));
                command.arg("--library-path").arg(&library).arg(&program);
                command.env_remove("MALLOC_ARENA_MAX").env_remove("GLIBC_TUNABLES").env_remove("LD_PRELOAD");
                agrees(&mut Target::spawn(&mut command), threads);
            }
        }
    }
}

/// Links the program with the library.
fn link(library: &Path, (.., loader, option): Machine, program: &Path) -> Result<(), String> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/heap_libcs.c");
    let mut command = Command::new("cc");
    command.args([option, "-O1", "-w", "-fPIE", "-pie", "-ffreestanding", "-fno-stack-protector", "-nostdlib", "-o"]);
    command.arg(program).arg(source).arg(library.join("libc.so.6")).arg(library.join(loader));
    // Threads are in the C library since 2.34.
    command.args(std::iter::once(library.join("libpthread.so.0")).filter(|threads| threads.exists()));
    let output = command.output().map_err(|error| format!("there is no compiler: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("cc cannot link for it: {said}")) }
}

/// Compares with what malloc counts, and with what a trim gives back.
fn agrees(target: &mut Target, threads: &str) {
    target.send(&format!("{threads} 20000"));
    said(target);
    target.send("");
    let counted = said(target);
    let found = arenas(target);
    assert_eq!(found.len() > 2, threads != "0", "{found:?}");
    hold(&found, counted);
    let foretold: u64 = found.iter().map(|arena| sums(arena).trimmable.expect("a page map").now).sum();
    let before = resident(target);
    target.send("");
    said(target);
    let given = before.saturating_sub(resident(target));
    println!("foretold {foretold}, given {given}");
    assert!(foretold > 4 << 20 && foretold.abs_diff(given) <= given / 50, "foretold {foretold}, given {given}");
}
