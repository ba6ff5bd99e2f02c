//! Functions that are described in other files: split (`.dwo`, `.dwp`), or shared by several programs (dwz).

use super::super::Test;
use super::super::support::skip;
use super::super::symbols::programs::{compile_with, is_installed};
use super::super::symbols::with_names;
use super::super::target::Target;
use super::programs::C_PROGRAM;
use pmdb::budget::Budget;
use pmdb::kernel::{Name, VirtualAddress};
use pmdb::symbol::{Frame, LineAt, Symbols};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub const TESTS: &[Test] = &[
    ("lines::split_off", split_off),
    ("lines::in_a_package", in_a_package),
    ("lines::shared_by_several", shared_by_several),
];

/// The answer for the first place of the line that is inlined into `work`, in a new process.
fn inlined(program: &Path) -> LineAt {
    let mut known = None;
    while_it_runs(program, |ask| known = Some(ask()));
    known.expect("an answer")
}

/// Lets `steps` repeat this query, in one session. The program's folder has only its own source.
fn while_it_runs(program: &Path, steps: impl FnOnce(&dyn Fn() -> LineAt)) {
    let mut target = Target::spawn(&mut Command::new(program));
    target.line();
    let symbols = Symbols::default();
    let attached = target.attach();
    let file = ending(program.parent().expect("a folder"), "c");
    let file = file.to_str().expect("a path of text");
    let line = C_PROGRAM.split("sink += x;").next();
    let line = line.expect("a line").lines().count() as u64;
    steps(&|| {
        with_names(&symbols, &attached, |names, _| {
            let found = names.find_line(file, line, 1);
            let found = found.expect("an answer");
            assert_eq!(found.line, Some(line), "{found:?}");
            let place = found.places.first().expect("a place");
            assert!(place.start < place.end, "{place:?}");
            // The other direction gives the same.
            let at = names.line_at(place.start).expect("an answer");
            let known = place.known.clone().expect("its functions");
            assert_eq!(at.frames, known.frames);
            assert!(holds(at.row, place.start), "{at:?}");
            known
        })
    });
    target.send("");
}

/// Asks for the line and its functions with a budget of n steps for growing n. Each answer is the whole one, or says
/// that it was given up.
fn is_whole_or_given_up(program: &Path) {
    let mut target = Target::spawn(&mut Command::new(program));
    target.line();
    let attached = target.attach();
    let file = ending(program.parent().expect("a folder"), "c");
    let line = C_PROGRAM.split("sink += x;").next().expect("a line").lines().count() as u64;
    let mut regions = attached.process.regions().expect("its regions");
    regions.retain(|region| region.name.as_bytes() == program.as_os_str().as_bytes());
    let ask = |budget| {
        let symbols = Symbols::with_budget(budget);
        let found = symbols.over(&attached, &regions).find_line(file.to_str().expect("a path of text"), line, 1);
        format!("{:?}", found.expect("no Ctrl-C"))
    };
    let is_given_up = |answer: &str| answer.contains("TooCostly");
    let whole = ask(Budget::unlimited());
    assert!(!is_given_up(&whole) && whole.contains("twice"), "{whole}");
    let (mut steps, mut given_up) = (0, 0);
    loop {
        let answer = ask(Budget::unlimited().at_most(steps));
        if is_given_up(&answer) {
            given_up += 1;
        } else {
            assert_eq!(answer, whole, "{steps} steps");
            break;
        }
        steps += 1 + steps / 16;
    }
    assert!(given_up > 50, "{given_up}");
    // Nor is it cut short with more steps.
    assert_eq!(ask(Budget::unlimited().at_most(2 * steps)), whole);
    target.send("");
}

fn holds(row: Option<(VirtualAddress, VirtualAddress)>, address: VirtualAddress) -> bool {
    row.is_some_and(|(start, end)| start <= address && address < end)
}

fn names(known: &LineAt) -> Vec<Option<Name>> {
    known.frames.iter().map(|frame| frame.name()).collect()
}

/// All functions, each by its name.
fn all_names() -> Vec<Option<Name>> {
    let names = ["square", "twice", "work"];
    names.map(|name| Some(Name::from(name))).into()
}

/// Checks the reason, which has to name the file and `why`. Without the file no function has a name, except the
/// outermost if it has a symbol.
fn reason(known: &LineAt, file: &Path, why: &str) {
    let reason = known.missing.as_ref().map(ToString::to_string);
    let reason = reason.unwrap_or_default();
    let file = file.file_name().expect("a name").to_string_lossy();
    assert!(reason.contains(&*file) && reason.contains(why), "{reason}");
    let frame = |frame: &Frame| (frame.name(), frame.is_named_by_symbol);
    let told: Vec<_> = known.frames.iter().map(frame).collect();
    let expected = if file.ends_with(".dwo") {
        // Inlined functions are unknown too.
        vec![(None, false)]
    } else {
        vec![(None, false), (None, false), (Some(Name::from("work")), true)]
    };
    assert_eq!(told, expected);
    assert!(known.frames.iter().all(|frame| frame.line.is_some()));
}

/// The one file in `folder` whose name ends so.
fn ending(folder: &Path, end: &str) -> PathBuf {
    let files = fs::read_dir(folder).expect("a folder");
    let mut files = files.map(|file| file.expect("a file").path());
    let found = files.find(|path| path.extension().is_some_and(|is| is == end));
    found.unwrap_or_else(|| panic!("no .{end} in {}", folder.display()))
}

/// Checks that `file` is needed, and that nothing else is used in its place: a missing file, one of another build, or a
/// folder.
fn is_needed(program: &Path, file: &Path, others: &Path) {
    assert_eq!(names(&inlined(program)), all_names());
    is_whole_or_given_up(program);
    let kept = file.with_extension("kept");
    fs::rename(file, &kept).expect("to move");
    reason(&inlined(program), file, "no such debug file");
    fs::copy(others, file).expect("to copy");
    reason(&inlined(program), file, "of another build");
    fs::remove_file(file).expect("to remove");
    let made = Command::new("mkfifo").arg(file).status();
    if made.is_ok_and(|status| status.success()) {
        reason(&inlined(program), file, "not a regular file");
        fs::remove_file(file).expect("to remove");
    }
    // A file that is installed while pmdb runs is found. Once read, it stays known even if it is removed.
    while_it_runs(program, |ask| {
        reason(&ask(), file, "no such debug file");
        fs::rename(&kept, file).expect("to move back");
        assert_eq!(names(&ask()), all_names());
        fs::rename(file, &kept).expect("to move");
        assert_eq!(names(&ask()), all_names());
    });
    fs::rename(&kept, file).expect("to move back");
    assert_eq!(names(&inlined(program)), all_names());
}

fn split_off() {
    let test = "lines::split_off";
    if !is_installed("gcc") {
        return skip(test, "there is no C compiler here");
    }
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let flags = &["-O2", version, "-gsplit-dwarf"];
        let folder = tempfile::tempdir().expect("a folder");
        let program = compile_with("gcc", folder.path(), "split", C_PROGRAM, flags);
        let Some(program) = program else {
            skip(test, &format!("gcc {} does not work here", flags.join(" ")));
            continue;
        };
        let other = tempfile::tempdir().expect("a folder");
        let changed = C_PROGRAM.replace("first + ", "first - ");
        let of_other = compile_with("gcc", other.path(), "split", &changed, flags);
        of_other.expect("to compile too");
        let file = ending(folder.path(), "dwo");
        let others = ending(other.path(), "dwo");
        is_needed(&program, &file, &others);
        while_it_runs(&program, |ask| {
            assert_eq!(names(&ask()), all_names());
            // Written over, it is another file.
            let right = fs::read(&file).expect("a file");
            let wrong = fs::read(&others).expect("a file");
            fs::write(&file, wrong).expect("to write");
            reason(&ask(), &file, "of another build");
            fs::write(&file, right).expect("to write");
            assert_eq!(names(&ask()), all_names());
        });
    }
}

/// Whether a command did what it was started for.
fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn in_a_package() {
    let test = "lines::in_a_package";
    if !is_installed("gcc") || !is_installed("dwp") {
        return skip(test, "there is no gcc or no dwp here");
    }
    let folder = tempfile::tempdir().expect("a folder");
    // The packer of binutils 2.40 reads DWARF 4 at most.
    let flags = &["-O2", "-gdwarf-4", "-gsplit-dwarf"];
    let program = compile_with("gcc", folder.path(), "packed", C_PROGRAM, flags);
    let program = program.expect("to compile");
    let package = folder.path().join("packed.dwp");
    let mut pack = Command::new("dwp");
    pack.arg("-e").arg(&program).arg("-o").arg(&package);
    if !succeeds(&mut pack) {
        return skip(test, "dwp does not work here");
    }
    fs::remove_file(ending(folder.path(), "dwo")).expect("to remove");
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(&package, &elsewhere).expect("to move");
    while_it_runs(&program, |ask| {
        reason(&ask(), Path::new("packed.dwo"), "no such debug file");
        fs::rename(&elsewhere, &package).expect("to move back");
        assert_eq!(names(&ask()), all_names());
    });
    assert_eq!(names(&inlined(&program)), all_names());
    is_whole_or_given_up(&program);
    // A file that is no package is ignored; then the unit's own file is missing.
    fs::write(&package, b"not an ELF file").expect("to write");
    reason(&inlined(&program), Path::new("packed.dwo"), "no such debug file");
}

fn shared_by_several() {
    let test = "lines::shared_by_several";
    if !is_installed("gcc") || !is_installed("dwz") {
        return skip(test, "there is no gcc or no dwz here");
    }
    // Those of another folder have a file of another build-id.
    let made = ["", "static int more(int x) { return square(x) + twice(x); }"].map(|more| {
        let folder = tempfile::tempdir().expect("a folder");
        let source = C_PROGRAM.replace("int main", &format!("{more}\nint main"));
        let text = folder.path().join("program.c");
        fs::write(&text, source).expect("a source file");
        let programs = ["-O2", "-O1"].map(|level| {
            let program = folder.path().join(format!("with{level}"));
            let mut compile = Command::new("gcc");
            compile.args([level, "-g", "-w", "-o"]).arg(&program).arg(&text);
            assert!(succeeds(&mut compile), "the program does not compile");
            program
        });
        let shared = folder.path().join("shared.debug");
        let mut dwz = Command::new("dwz");
        dwz.arg("-m").arg(&shared).args(&programs);
        (succeeds(&mut dwz) && shared.exists()).then_some((folder, programs, shared))
    });
    let [Some((_folder, programs, shared)), Some((_other, _, others))] = made else {
        return skip(test, "dwz shares nothing here");
    };
    for program in programs {
        is_needed(&program, &shared, &others);
    }
}
