//! Lines of running programs, compared with those of `addr2line` for the same addresses.

use super::super::Test;
use super::super::sample::{self, sample};
use super::super::support::skip;
use super::super::symbols::programs::{compile_with, is_installed};
use super::super::symbols::with_names;
use super::super::target::Target;
use super::programs::{C_PROGRAM, CPP_PROGRAM, RUST_PROGRAM};
use pmdb::kernel::{Name, Region, VirtualAddress};
use pmdb::symbol::{Frame, Symbols, TargetSymbols};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

pub const TESTS: &[Test] = &[
    ("lines::of_c_as_addr2line_says", of_c_as_addr2line_says),
    ("lines::of_cpp_as_addr2line_says", of_cpp_as_addr2line_says),
    ("lines::of_rust_as_addr2line_says", of_rust_as_addr2line_says),
    ("lines::of_the_c_library_as_addr2line_says", of_the_c_library_as_addr2line_says),
];

/// One program's answer for an address: function and `file:line` for each frame.
type Frames = Vec<(String, String)>;

/// The answers of `addr2line` for file addresses.
fn addr2line(program: &Path, addresses: &[u64]) -> Vec<Frames> {
    let mut child = Command::new("addr2line")
        .args(["-f", "-i", "-a", "-e"])
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("addr2line");
    let mut input = child.stdin.take().expect("its input");
    let text: String = addresses.iter().map(|one| format!("{one:#x}\n")).collect();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("its output");
    writer.join().expect("a writer").expect("to write");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut all: Vec<Frames> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            all.push(Vec::new());
            continue;
        }
        let place = lines.next().expect("a place behind each function");
        let place = place.split(" (discriminator").next().expect("a place");
        let frames = all.last_mut().expect("an address first");
        frames.push((line.to_owned(), place.to_owned()));
    }
    assert_eq!(all.len(), addresses.len());
    all
}

/// pmdb's answers, in the spelling of `addr2line`.
fn ours(names: &TargetSymbols, address: VirtualAddress) -> Frames {
    let found = names.line_at(address).expect("an answer");
    let frames = found.frames.iter().map(|frame: &Frame| {
        let function = frame.function.as_ref().map(Name::to_string);
        let file = frame.file.as_ref().map(Name::to_string);
        let line = frame.line.map_or("?".to_owned(), |line| line.to_string());
        let place = format!("{}:{line}", file.as_deref().unwrap_or("??"));
        (function.unwrap_or("??".into()), place)
    });
    frames.collect()
}

/// A row of a line table, as `readelf` prints it.
pub struct Row {
    pub range: std::ops::Range<u64>,
    pub file: String,
    pub line: String,
}

/// All rows of a file's line tables.
pub fn readelf_rows(debug: &Path) -> Vec<Row> {
    let output = Command::new("readelf")
        .args(["-W", "--debug-dump=decodedline"])
        .arg(debug)
        .stderr(Stdio::null())
        .output()
        .expect("readelf");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut rows = Vec::new();
    let mut before: Option<(u64, String, String)> = None;
    for words in text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()) {
        let [file, line, address, ..] = words[..] else {
            continue;
        };
        let Some(address) = address.strip_prefix("0x") else {
            continue;
        };
        let address = u64::from_str_radix(address, 16).expect("an address");
        if let Some((begin, file, line)) = before.take() {
            rows.push(Row { range: begin..address, file, line });
        }
        // The end of a sequence has no line.
        before = (line != "-").then(|| (address, file.to_owned(), line.to_owned()));
    }
    rows
}

/// The kinds of difference, each with how often it came and the first of them.
#[derive(Default)]
struct Differences(BTreeMap<&'static str, (usize, String)>);

impl Differences {
    fn note(&mut self, kind: &'static str, what: impl FnOnce() -> String) {
        self.0.entry(kind).or_insert_with(|| (0, what())).0 += 1;
    }

    /// Checks that only explained kinds of difference came, and those of the files of calls, which nothing else checks,
    /// only rarely.
    fn hold(&self, name: &str, looked_at: usize) {
        assert!(looked_at > 150, "{name}: only {looked_at} addresses");
        let count = |kind| self.0.get(kind).map_or(0, |&(count, _)| count);
        let explained = self.0.keys().all(|kind| matches!(*kind, "symbols" | "files" | "files, as readelf" | "alias"));
        assert!(explained && count("files") * 50 < looked_at, "{name}: of {looked_at}: {:#?}", self.0);
    }
}

/// Compares up to `most` addresses of the program's own code with `addr2line`. Returns their number, and the
/// differences.
fn compare(target: &Target, program: &Path, most: u64) -> (usize, Differences) {
    let symbols = Symbols::default();
    let attached = target.attach();
    with_names(&symbols, &attached, |names, regions| {
        let file = program.to_str().expect("a path of text");
        compare_module(names, regions, file, program, most)
    })
}

/// Whether two names are of one place in the program.
fn is_alias(names: &TargetSymbols, one: &str, other: &str) -> bool {
    let starts = |name: &str| -> Vec<VirtualAddress> {
        let found = names.find(None, name).unwrap_or_default();
        found.iter().map(|symbol| symbol.start).collect()
    };
    let others = starts(other);
    starts(one).iter().any(|start| others.contains(start))
}

/// The same of the module called `file`, of which `addr2line` reads `debug`.
fn compare_module(
    names: &TargetSymbols,
    regions: &[Region],
    file: &str,
    debug: &Path,
    most: u64,
) -> (usize, Differences) {
    let code = regions.iter().find(|region| region.permissions.execute && region.name.as_bytes() == file.as_bytes());
    let code = code.expect("its code").range;
    let step = (code.len() / most).max(1);
    // Small programs are compared whole.
    let group = if step > 1 { 4 } else { 1 };
    let first = code.start().get() + sample::number() % step;
    let addresses: Vec<VirtualAddress> = sample(0..code.len() / step, group)
        .map(|number| VirtualAddress::new(first + number * step))
        .filter(|&address| names.section_at(address) == Some(Name::from(".text")))
        .collect();
    let in_file: Vec<u64> =
        addresses.iter().map(|&address| names.file_address(address).expect("in the program").1.get()).collect();
    let mut differences = Differences::default();
    // readelf, which looks up files by itself, decides these.
    let mut files: Vec<(VirtualAddress, String)> = Vec::new();
    for (&address, theirs) in addresses.iter().zip(addr2line(debug, &in_file)) {
        let ours = ours(names, address);
        let both = || format!("{address}\n  ours: {ours:?}\n  addr2line: {theirs:?}");
        if ours.is_empty() {
            // addr2line names the symbol where there is no debug information.
            if theirs.iter().any(|(_, place)| !place.ends_with(":?")) {
                differences.note("nothing", both);
            }
            continue;
        }
        if ours.len() != theirs.len() {
            differences.note("frames", both);
            continue;
        }
        let outermost = ours.last().map(|(function, _)| function.clone());
        for (depth, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            let line = |place: &str| place.rsplit(':').next().map(str::to_owned);
            if ours.0 != theirs.0 {
                // The cold part of a function has a symbol of its own, which addr2line prefers.
                let cold = theirs.0.strip_suffix(".cold") == Some(&ours.0);
                // For an inlined function without a linkage name, and where no function is described, it prints the
                // symbol around.
                let symbol = ours.0 == "??" || Some(&theirs.0) == outermost.as_ref();
                differences.note(
                    match () {
                        _ if cold || symbol => "symbols",
                        // Assemblers describe each name of the same code by itself.
                        _ if is_alias(names, &ours.0, &theirs.0) => "alias",
                        _ => "names",
                    },
                    both,
                );
            } else if ours.1 != theirs.1 {
                // addr2line of binutils 2.40 looks up some files in the wrong table or by the wrong number.
                let kind = match line(&ours.1) == line(&theirs.1) {
                    true if depth == 0 => {
                        files.push((address, ours.1.clone()));
                        continue;
                    }
                    true => "files",
                    false => "lines",
                };
                differences.note(kind, both);
            }
        }
    }
    let rows = if files.is_empty() { Vec::new() } else { readelf_rows(debug) };
    for (address, place) in files {
        let (_, in_file) = names.file_address(address).expect("in the program");
        let (path, line) = place.rsplit_once(':').expect("a line");
        let file = path.rsplit('/').next().expect("a name");
        let mut around = rows.iter().filter(|row| row.range.contains(&in_file.get()));
        let agrees = around.any(|row| row.file == file && row.line == line);
        let kind = if agrees { "files, as readelf" } else { "files, not as readelf" };
        differences.note(kind, || format!("{address} ({in_file} in the file): {place}"));
    }
    (addresses.len(), differences)
}

fn of_c_as_addr2line_says() {
    let test = "lines::of_c_as_addr2line_says";
    if !is_installed("gcc") || !is_installed("addr2line") {
        return skip(test, "there is no gcc or no addr2line here");
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (name, flags) in [
        ("plain", &["-O2", "-g"][..]),
        ("unoptimised", &["-O0", "-g"]),
        ("fixed", &["-O2", "-g", "-no-pie"]),
        ("packed", &["-O2", "-g", "-gz"]),
        ("packed-gnu", &["-O2", "-gdwarf-4", "-gz=zlib-gnu"]),
        ("packed-zstd", &["-O2", "-g", "-gz=zstd"]),
        ("version-2", &["-O2", "-gdwarf-2"]),
        ("version-4", &["-O2", "-gdwarf-4"]),
        // The binutils that read -gdwarf64 with DWARF 5 are newer than those of Debian 12.
        ("large", &["-O2", "-gdwarf-4", "-gdwarf64"]),
        ("whole-program", &["-O2", "-g", "-flto"]),
        ("narrow", &["-O2", "-g", "-m32"]),
    ] {
        let Some(program) = compile_with("gcc", folder.path(), name, C_PROGRAM, flags) else {
            assert!(name != "plain", "the program does not compile");
            skip(test, &format!("gcc {} does not work here", flags.join(" ")));
            continue;
        };
        let mut target = Target::spawn(&mut Command::new(&program));
        target.line();
        let (looked_at, differences) = compare(&target, &program, 4000);
        differences.hold(name, looked_at);
        target.send("");
    }
}

fn of_cpp_as_addr2line_says() {
    let test = "lines::of_cpp_as_addr2line_says";
    if !is_installed("g++") || !is_installed("addr2line") {
        return skip(test, "there is no g++ or no addr2line here");
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (name, flags) in [("cpp", &["-O2", "-g"][..]), ("cpp-0", &["-O0", "-g"])] {
        let program = compile_with("g++", folder.path(), name, CPP_PROGRAM, flags);
        let program = program.expect("to compile");
        let mut target = Target::spawn(&mut Command::new(&program));
        target.line();
        let (looked_at, differences) = compare(&target, &program, 1500);
        differences.hold(name, looked_at);
        target.send("");
    }
}

fn of_rust_as_addr2line_says() {
    let test = "lines::of_rust_as_addr2line_says";
    if !is_installed("rustc") || !is_installed("addr2line") {
        return skip(test, "there is no rustc or no addr2line here");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile_with("rustc", folder.path(), "rust", RUST_PROGRAM, &["-O", "-g"]);
    let program = program.expect("to compile");
    let mut target = Target::spawn(&mut Command::new(&program));
    target.line();
    let (looked_at, differences) = compare(&target, &program, 1500);
    differences.hold("rust", looked_at);
    target.send("");
}

fn of_the_c_library_as_addr2line_says() {
    let test = "lines::of_the_c_library_as_addr2line_says";
    if !is_installed("addr2line") {
        return skip(test, "there is no addr2line here");
    }
    let mut target = Target::start("statics", &[]);
    target.line();
    let symbols = Symbols::default();
    with_names(&symbols, &target.attach(), |names, regions| {
        let mut surveys = names.surveys().map(|survey| survey.expect("nobody stops it"));
        let library = surveys.find(|survey| survey.module.is_called(b"libc.so.6"));
        let Some((file, Ok(debug))) = library.map(|one| (one.module.name.to_string(), one.separate)) else {
            return skip(test, "the C library has no debug file here (libc6-dbg)");
        };
        let debug = debug.to_string();
        let (looked_at, differences) = compare_module(names, regions, &file, Path::new(&debug), 4000);
        assert!(looked_at > 500, "only {looked_at} addresses");
        differences.hold("libc.so.6", looked_at);
    });
}
