//! Files that ask for more memory than pmdb may have.

use super::super::answers::program;
use super::super::support::skip;
use super::super::target::Target;
use super::programs::{compile, is_installed};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

const SOURCE: &str = r#"#include <unistd.h>
int counter = 5;
int main(void) { char byte; write(1, "ready\n", 6); return read(0, &byte, 1) + counter; }"#;
/// Most of the address space that pmdb gets, and what the sections claim: sparse, so that the file takes no room.
const LIMIT: u64 = 256 << 20;
const CLAIMED: u64 = 250 << 20;

/// Gives sections of a 64-bit file a size of [`CLAIMED`] bytes, which are their own and then zeros at the end of the
/// file.
fn enlarge(path: &Path, names: &[&str]) {
    let file = File::options().read(true).write(true).open(path).expect("the file");
    let read = |at: u64, size: usize| {
        let mut bytes = vec![0; size];
        file.read_exact_at(&mut bytes, at).expect("to read it");
        bytes
    };
    let number = |at: u64, size: usize| {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&read(at, size));
        u64::from_le_bytes(bytes)
    };
    let headers = number(0x28, 8);
    let header = |section: u64| headers + 64 * section;
    let of_names = number(header(number(0x3e, 2)) + 24, 8);
    for section in 0..number(0x3c, 2) {
        let at = header(section);
        let name = read(of_names + number(at, 4), 24);
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        if !names.iter().any(|one| one.as_bytes() == name) {
            continue;
        }
        let own = read(number(at + 24, 8), number(at + 32, 8) as usize);
        let end = file.metadata().expect("its length").len().next_multiple_of(4096);
        file.write_all_at(&own, end).expect("to write it");
        file.set_len(end + CLAIMED).expect("to make it longer");
        file.write_all_at(&end.to_le_bytes(), at + 24).expect("to write it");
        file.write_all_at(&CLAIMED.to_le_bytes(), at + 32).expect("to write it");
    }
}

pub(super) fn what_does_not_fit_in_memory_is_refused() {
    let test = "symbols::what_does_not_fit_in_memory_is_refused";
    if !is_installed("gcc") || !is_installed("prlimit") {
        return skip(test, "gcc or prlimit is not installed");
    }
    if !cfg!(all(target_pointer_width = "64", target_endian = "little")) {
        return skip(test, "it changes 64-bit little-endian files");
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (name, sections, line) in [
        ("lines", [".debug_info", ".debug_str"], "info line main"),
        ("names", [".strtab", ".symtab"], "info address main"),
    ] {
        let path = compile(folder.path(), name, SOURCE, &["-g", "-gz=none"]);
        let path = path.expect("to compile");
        enlarge(&path, &sections);
        let mut target = Target::spawn(&mut Command::new(&path));
        assert_eq!(target.line(), "ready");
        let lines = [line, "translate $pc", "regions", "print 40 + 2"].map(str::to_owned);
        let limit = format!("--as={LIMIT}");
        let said = program(&["prlimit", &limit], target.pid(), false, &lines);
        assert!(said.contains("too little free memory"), "{name}: {said}");
        // It goes on.
        assert!(said.contains("$1 = 42"), "{name}: {said}");
    }
}
