//! (s) Names of addresses in large libraries.

use super::floor::own_anonymous_bytes;
use super::measure::in_turn;
use super::table::{Required, Table};
use super::target::Target;
use super::{Size, peers};
use Required::{Bytes, Time};
use pmdb::kernel::VirtualAddress;
use pmdb::symbol::{MatchStep, NamesFrom, Symbols};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const MIB: u64 = 1 << 20;
/// Enough look-ups for an index to be built, and to pay off.
const MANY: u64 = 10_000;

/// A library, where its names have to come from, and its requirements.
struct Library {
    name: &'static str,
    missing: &'static str,
    path: Option<PathBuf>,
    answers: NamesFrom,
    first: Duration,
    memory: u64,
}

const FIRST_OF_PYTHON: Duration = Duration::from_millis(40);
const FOLDER: &str = "/usr/lib/x86_64-linux-gnu";

pub fn symbols(size: &Size, table: &mut Table) {
    let driver = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = driver.ok().and_then(|out| String::from_utf8(out.stdout).ok());
    let debug = in_folder(Path::new(FOLDER), |name| name.starts_with("libpython3.") && name.contains("d.so"));
    let folder = tempfile::tempdir().expect("a folder");
    let apart = debug.as_ref().and_then(|path| taken_apart(path, folder.path()));
    for library in [
        Library {
            name: "(s) libpython with its debug package",
            missing: "libpython3 is not installed",
            path: in_folder(Path::new(FOLDER), |name| {
                name.starts_with("libpython3.") && name.contains(".so") && !name.contains("d.so")
            }),
            answers: NamesFrom::DebugFile,
            first: FIRST_OF_PYTHON,
            memory: 100 * MIB,
        },
        Library {
            name: "(s) libpython3-dbg",
            missing: "libpython3-dbg is not installed",
            path: debug,
            answers: NamesFrom::Itself,
            first: FIRST_OF_PYTHON,
            memory: 100 * MIB,
        },
        Library {
            name: "(s) the same, stripped to a debug file",
            missing: "libpython3-dbg or objcopy is not installed",
            path: apart,
            answers: NamesFrom::DebugFile,
            first: FIRST_OF_PYTHON,
            memory: 100 * MIB,
        },
        Library {
            name: "(s) librustc_driver",
            missing: "the toolchain has none",
            path: sysroot.and_then(|root| {
                in_folder(&Path::new(root.trim()).join("lib"), |name| {
                    name.starts_with("librustc_driver-") && name.contains(".so")
                })
            }),
            answers: NamesFrom::Itself,
            first: Duration::from_millis(300),
            memory: 100 * MIB,
        },
    ] {
        ask(&library, size, table);
    }
}

/// The first file in a folder with such a name.
fn in_folder(folder: &Path, is_it: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(&is_it)
        })
        .collect();
    found.sort();
    found.into_iter().next()
}

/// A library without its symbols, and beside it the file that has them, as packages with debug information are made.
fn taken_apart(library: &Path, folder: &Path) -> Option<PathBuf> {
    let (stripped, debug) = (folder.join("libpython.so"), folder.join("libpython.debug"));
    let objcopy = |arguments: &[&str], from: &Path, to: &Path| {
        let mut command = Command::new("objcopy");
        let done = command.args(arguments).arg(from).arg(to).status();
        done.is_ok_and(|status| status.success()).then_some(())
    };
    objcopy(&["--only-keep-debug"], library, &debug)?;
    let link = format!("--add-gnu-debuglink={}", debug.to_str()?);
    objcopy(&["--strip-all", &link], library, &stripped)?;
    Some(stripped)
}

fn ask(library: &Library, size: &Size, table: &mut Table) {
    let Some(path) = library.path.as_ref().and_then(|path| path.to_str()) else {
        return table.without(library.name, library.missing);
    };
    let mut target = Target::start("library", &[path]);
    assert_eq!(target.line(), "mapped");
    let attached = target.attach();
    let regions = attached.process.regions().expect("its regions");
    let real = std::fs::canonicalize(path).expect("its path");
    let is_it = |name: &[u8]| name == real.as_os_str().as_encoded_bytes();
    let surveyed = Symbols::default();
    let view = surveyed.over(&attached, &regions);
    let mut surveys = view.surveys().map(|survey| survey.expect("nobody stops it"));
    let survey = surveys.find(|survey| is_it(survey.module.name.as_bytes()));
    let answers = survey.and_then(|survey| survey.answers.ok());
    if answers.is_none_or(|(by, _)| by != library.answers) {
        return table.without(library.name, "its symbols are not installed");
    }

    // Code that a tool has moved leaves old places without names, so only places with names are used.
    let mut places = Vec::new();
    for step in view.matching(&|_| true, u64::MAX) {
        if let MatchStep::Symbol(symbol) = step.expect("nobody stops it")
            && is_it(symbol.module.as_bytes())
            && symbol.size > 0
        {
            places.push(VirtualAddress::new(symbol.start.get() + symbol.size / 2));
        }
    }
    let place = |number: u64| {
        let step = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % places.len() as u64;
        places[step as usize]
    };

    // The addresses are computed before, so that only the look-ups are measured.
    let asked: Vec<VirtualAddress> = (0..MANY).map(place).collect();

    let kept = Symbols::default();
    let before = own_anonymous_bytes();
    let many = || {
        let view = kept.over(&attached, &regions);
        let answers = asked.iter().filter(|&&address| view.at(address).is_some());
        answers.count() as u64
    };
    assert!(many() == MANY, "names were found there before");
    let grown = own_anonymous_bytes().saturating_sub(before);
    let [first, answers, nm] = in_turn(
        size.rounds,
        [
            &mut || {
                let symbols = Symbols::default();
                black_box(symbols.over(&attached, &regions).at(place(1)));
            },
            &mut || _ = many(),
            &mut || peers::nm(path),
        ],
    );
    let name = library.name;
    let row = |what: &str| format!("{name}: {what}");
    table.row(&row("first answer"), &first, "nm", &nm, Time(library.first));
    table.row(&row("10,000 answers"), &answers, "nm", &nm, Time(Duration::from_millis(10)));
    table.bytes(&row("memory"), grown, Bytes(library.memory));
}
