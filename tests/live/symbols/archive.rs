//! Libraries that are mapped straight out of an archive, as Android's loader does.

use super::super::support::{page_bytes, skip};
use super::super::target::{Target, announce, wait};
use super::lost::{map_segments, records};
use super::programs::{compile, is_installed};
use super::{Symbols, compare_with_nm_of, with_names};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

/// Maps all of the archive that the first argument names as data, then the library at each offset of the others.
pub(super) fn stored(arguments: &[String]) {
    let file = File::open(&arguments[0]).expect("the archive");
    let length = file.metadata().expect("its length").len() as usize;
    // SAFETY: a new mapping at a place that the kernel chooses.
    let whole =
        unsafe { libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0) };
    assert_ne!(whole, libc::MAP_FAILED);
    let starts = arguments[1..].iter().map(|start| start.parse().expect("an offset"));
    let moved = starts.map(|start| format!("{:#x}", map_segments(&file, start, libc::PROT_EXEC)));
    announce(format!("{:#x} {}", whole.addr(), moved.collect::<Vec<_>>().join(" ")));
    wait();
}

/// A ZIP archive of files that are stored without compression, each at a page; and where each begins.
fn archive(path: &Path, files: &[(&str, &[u8])]) -> Vec<u64> {
    let (mut bytes, mut directory, mut starts) = (Vec::new(), Vec::new(), Vec::new());
    for (name, contents) in files {
        let header = bytes.len() as u32;
        let start = (bytes.len() + 30 + name.len()).next_multiple_of(page_bytes() as usize);
        let padding = (start - bytes.len() - 30 - name.len()) as u16;
        let size = (contents.len() as u32).to_le_bytes();
        let lengths = [(name.len() as u16).to_le_bytes(), padding.to_le_bytes()].concat();
        // Version, flags, method, time, date, checksum, sizes.
        let both = [&[10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &size, &size].concat();
        bytes.extend([b"PK\x03\x04", &*both, &lengths, name.as_bytes()].concat());
        bytes.resize(start, 0);
        bytes.extend_from_slice(contents);
        let name_length = (name.len() as u16).to_le_bytes();
        let entry = [b"PK\x01\x02\x0a\0", &*both, &name_length, &[0; 12], &header.to_le_bytes(), name.as_bytes()];
        directory.extend(entry.concat());
        starts.push(start as u64);
    }
    let count = (files.len() as u16).to_le_bytes();
    let (size, at) = ((directory.len() as u32).to_le_bytes(), (bytes.len() as u32).to_le_bytes());
    bytes.extend([&*directory, b"PK\x05\x06\0\0\0\0", &count, &count, &size, &at, &[0; 2]].concat());
    std::fs::write(path, bytes).expect("the archive");
    starts
}

const FIRST: &str = "int table[5000] = {1};\nint first(int x) {\n    return x * 3 + table[x];\n}\n";
const SECOND: &str = "\n\nint second(int x) { return x * 5; }\n";

pub(super) fn libraries_within_an_archive_have_symbols() {
    let test = "symbols::libraries_within_an_archive_have_symbols";
    let folder = tempfile::tempdir().expect("a folder");
    if !cfg!(all(target_endian = "little", target_pointer_width = "64")) {
        return skip(test, "it reads headers of 64 bits in this order");
    }
    if !is_installed("gcc") {
        return skip(test, "there is no C compiler here");
    }
    let build = |name: &str, source: &str| {
        compile(folder.path(), name, source, &["-shared", "-fPIC", "-O1", "-g"]).expect("to compile")
    };
    let libraries = [build("first.so", FIRST), build("second.so", SECOND)];
    let [first, second] = libraries.each_ref().map(|path| std::fs::read(path).expect("the library"));
    let apk = folder.path().join("base.apk");
    let files = [("lib/x/first.so", &*first), ("assets/data", &[7; 100]), ("lib/x/second.so", &*second)];
    let starts = archive(&apk, &files);
    let path = apk.to_str().expect("a plain path");
    let mut target = Target::start("stored", &[path, &starts[0].to_string(), &starts[2].to_string()]);
    let words = target.numbers();
    let members = ["first", "second"].map(|name| format!("{path}!/lib/x/{name}.so"));
    let symbols = Symbols::default();
    let attached = target.attach();
    with_names(&symbols, &attached, |names, _| {
        for (member, library) in members.iter().zip(&libraries) {
            compare_with_nm_of(test, names, member, library.to_str().expect("a plain path"), 500);
        }
        assert_eq!(names.at(super::at(words[0] + starts[0] + 64)), None, "the archive as data");
    });

    // In commands, by the name of the library, of the archive, and of neither; with its line.
    let function = |name: &str, library: usize| {
        let listed = super::nm(libraries[library].to_str().expect("a path")).expect("nm");
        let address = listed.iter().find(|one| one.name == name).expect("nm lists it").address;
        words[library + 1].wrapping_add(address)
    };
    let [one, two] = [function("first", 0), function("second", 1)].map(|address| format!("{address:#x}"));
    let asked = ["first.so!first", "base.apk!first", "first"].map(|name| format!("info address {name}"));
    let lines = [&asked[..], &[format!("info symbol {two}")]].concat();
    let (found, said) = records(target.pid(), "symbol", &lines);
    let shown: Vec<_> = found.iter().map(|one| (one["name"].as_str(), one["address"].as_str())).collect();
    let expected = (Some("first"), Some(&*one));
    assert_eq!(shown, [expected, expected, expected, (Some("second"), Some(&*two))], "{said}");
    let (lines, said) = records(target.pid(), "line", &["info line second.so!second".to_owned()]);
    assert_eq!(lines[0]["line"], 3, "{said}");

    // Changed code is found at its place in the archive.
    let memory = File::options().write(true).open(format!("/proc/{}/mem", target.pid())).expect("its memory");
    let changed = function("second", 1);
    memory.write_all_at(&[0xcc], changed).expect("to write");
    let (patches, said) = records(target.pid(), "patch", &["patched".to_owned()]);
    let expected = super::nm(libraries[1].to_str().expect("a path")).expect("nm");
    let address = expected.iter().find(|one| one.name == "second").expect("nm lists it").address;
    let patch = patches.iter().find(|one| one["address"].as_str() == Some(&*two)).unwrap_or_else(|| panic!("{said}"));
    if cfg!(target_arch = "x86_64") {
        assert_eq!(patch["breakpoint"], "int3", "{said}");
    }
    assert_eq!(patch["file_offset"], format!("{:#x}", starts[2] + address), "{said}");

    // A capture names them too, without the archive.
    let capture = folder.path().join("stored.capture");
    let asked = ["info modules".to_owned(), format!("info symbol {two}")];
    let (live, _) = records(target.pid(), "module", &asked[..1]);
    let of_archive = |all: &[serde_json::Value]| -> Vec<_> {
        let names = all.iter().filter_map(|one| one["name"].as_str().map(str::to_owned));
        let mut found: Vec<String> = names.filter(|name| name.contains("base.apk")).collect();
        found.sort();
        found
    };
    assert_eq!(of_archive(&live), members);
    records(target.pid(), "capture", &[format!("capture {}", capture.display())]);
    target.send("");
    drop(target);
    std::fs::remove_file(&apk).expect("to remove it");
    let words = ["-batch", "-ex", "set json on", "-ex", &asked[0], "-ex", &asked[1], "-c"];
    let output = Command::new(env!("CARGO_BIN_EXE_pmdb")).args(words).arg(&capture).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let all: Vec<serde_json::Value> = said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(of_archive(&all), members, "{said}");
    assert!(all.iter().any(|one| one["type"] == "symbol" && one["name"] == "second"), "{said}");

    // Cut short, the archive has no directory: places stand for the names.
    let starts = archive(&apk, &files);
    let file = File::options().write(true).open(&apk).expect("the archive");
    file.set_len(starts[2] + second.len() as u64).expect("to cut it short");
    let mut target = Target::start("stored", &[path, &starts[0].to_string(), &starts[2].to_string()]);
    target.numbers();
    let (modules, said) = records(target.pid(), "module", &asked[..1]);
    let expected = [starts[0], starts[2]].map(|start| format!("{path}+{start:#x}"));
    assert_eq!(of_archive(&modules), expected, "{said}");
    let (found, said) = records(target.pid(), "symbol", &["info address base.apk!second".to_owned()]);
    assert_eq!(found.len(), 1, "{said}");
    target.send("");
}
