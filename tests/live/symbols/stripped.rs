//! Programs with separate debug files, and debug files that were moved or replaced.

use super::super::support::{at, skip};
use super::super::target::Target;
use super::programs::{compile, is_installed};
use super::with_names;
use pmdb::symbol::{NamesFrom, NoSeparate, NoSymbols, Symbols};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = r#"
#include <stdio.h>
#include <unistd.h>
extern char **environ;
__attribute__((noinline)) static int hidden(int x) { return x + getpid(); }
int main(void) {
    printf("%p %p\n", (void *)hidden, (void *)&environ);
    fflush(stdout);
    return getchar() == hidden(1);
}
"#;

fn run(command: &str, arguments: &[&str], folder: &Path) -> bool {
    let done = Command::new(command)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    done.is_ok_and(|status| status.success())
}

/// A stripped program with its debug file beside it.
fn stripped(test: &str, folder: &Path) -> Option<PathBuf> {
    if !is_installed("gcc") || !is_installed("objcopy") {
        skip(test, "there is no C compiler, or no objcopy here");
        return None;
    }
    // Without a build-id the checksum has to tell; and the address of `environ` has to be a constant.
    let flags = ["-no-pie", "-fno-pic", "-g", "-Wl,--build-id=none"];
    let program = compile(folder, "program", PROGRAM, &flags);
    let program = program.expect("to compile");
    for (command, arguments) in [
        ("objcopy", &["--only-keep-debug", "program", "program.debug"][..]),
        ("strip", &["program"]),
        ("objcopy", &["--add-gnu-debuglink=program.debug", "program"]),
    ] {
        assert!(run(command, arguments, folder), "{command} {arguments:?}");
    }
    Some(program)
}

/// The file that gives the names of `program` in a target, and whether the static function at `hidden` has its name.
fn answers(target: &Target, hidden: u64) -> (Result<NamesFrom, NoSymbols>, Result<String, NoSeparate>, bool) {
    let symbols = Symbols::default();
    with_names(&symbols, &target.attach(), |names, _| {
        let mut surveys = names.surveys().map(|survey| survey.expect("nobody stops it"));
        let program = surveys.find(|survey| survey.module.is_called(b"program"));
        let program = program.expect("the program among its modules");
        let answers = program.answers.map(|(answers, count)| {
            assert!(count > 0);
            answers
        });
        let separate = program.separate.map(|path| path.to_string());
        let symbol = names.at(at(hidden));
        let is_named = symbol.is_some_and(|one| one.name().as_bytes() == b"hidden");
        (answers, separate, is_named)
    })
}

pub(super) fn what_was_stripped_is_found_by_name_and_checksum() {
    let test = "symbols::what_was_stripped_is_found_by_name_and_checksum";
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = stripped(test, folder.path()) else {
        return;
    };
    let mut target = Target::spawn(&mut Command::new(&program));
    let hidden = target.numbers()[0];
    let debug = folder.path().join("program.debug");
    let (by, separate, is_named) = answers(&target, hidden);
    assert_eq!(by.expect("symbols"), NamesFrom::DebugFile);
    assert_eq!(separate.expect("its path"), debug.to_str().expect("plain"));
    assert!(is_named);

    // Another file of that name.
    let bytes = std::fs::read(&debug).expect("the debug file");
    let mut other = bytes.clone();
    *other.last_mut().expect("bytes") ^= 1;
    std::fs::write(&debug, other).expect("to overwrite");
    let (by, separate, is_named) = answers(&target, hidden);
    assert_eq!(by.expect("symbols"), NamesFrom::DynamicTable);
    assert!(matches!(separate, Err(NoSeparate::OfAnotherBuild { .. })));
    assert!(!is_named);

    // A FIFO, which would wait for a writer, and other things that are no regular files.
    std::fs::remove_file(&debug).expect("to remove it");
    for make in [
        &["mkfifo", "program.debug"][..],
        &["mkdir", "program.debug"],
        &["ln", "-s", "/dev/zero", "program.debug"],
        // If this were read, so would /proc/kmsg be, and the kernel's messages would be lost.
        &["ln", "-s", "/proc/version", "program.debug"],
        &["ln", "-s", "/proc/self/mem", "program.debug"],
        &["touch", "program.debug"],
    ] {
        assert!(run(make[0], &make[1..], folder.path()), "{make:?}");
        let (_, separate, _) = answers(&target, hidden);
        assert!(matches!(separate, Err(NoSeparate::Unreadable(_))), "{make:?}: {separate:?}");
        assert!(run("rm", &["-rf", "program.debug"], folder.path()));
    }

    // A link to the right one, in the folder that gdb looks into next.
    let hidden_folder = folder.path().join(".debug");
    std::fs::create_dir(&hidden_folder).expect("a folder");
    std::fs::write(folder.path().join("kept"), bytes).expect("to write");
    let link = hidden_folder.join("program.debug");
    std::os::unix::fs::symlink("../kept", &link).expect("a link");
    let (_, separate, is_named) = answers(&target, hidden);
    assert_eq!(separate.expect("its path"), link.to_str().expect("plain"));
    assert!(is_named);
    target.send("");
}

pub(super) fn a_debug_file_that_is_installed_later_is_found() {
    let test = "symbols::a_debug_file_that_is_installed_later_is_found";
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = stripped(test, folder.path()) else {
        return;
    };
    let debug = folder.path().join("program.debug");
    let kept = folder.path().join("kept");
    std::fs::rename(&debug, &kept).expect("to put it aside");
    let mut target = Target::spawn(&mut Command::new(&program));
    let hidden = at(target.numbers()[0]);
    let attached = target.attach();
    let symbols = Symbols::default();
    let name = || with_names(&symbols, &attached, |names, _| names.at(hidden).map(|one| one.name().to_string()));
    assert_ne!(name().as_deref(), Some("hidden"));
    assert_ne!(name().as_deref(), Some("hidden"));
    std::fs::rename(&kept, &debug).expect("to install it");
    // It is looked for again after a second.
    let deadline = Instant::now() + Duration::from_secs(20);
    while name().as_deref() != Some("hidden") {
        assert!(Instant::now() < deadline, "it is not found");
        std::thread::yield_now();
    }
    // The file is still open: removing a package takes no names from a session.
    std::fs::remove_file(&debug).expect("to remove it");
    assert_eq!(name().as_deref(), Some("hidden"));
    target.send("");
}

/// A program in another root finds the debug files that are installed where pmdb runs, by build-id only.
pub(super) fn debug_files_for_a_program_in_another_root() {
    let test = "symbols::debug_files_for_a_program_in_another_root";
    let folder = tempfile::tempdir().expect("a folder");
    let mut idle = Target::start("idle", &[]);
    idle.line();
    let is_c = |name: &[u8]| name.ends_with(b"/libc.so.6");
    let found = surveyed(&idle, is_c);
    let Some((Ok(NamesFrom::DebugFile), Ok(path))) = found else {
        return skip(test, "no debug file of the C library is installed here");
    };
    assert!(path.starts_with("/usr/lib/debug/.build-id/"), "{path}");
    let Some(_) = stripped(test, folder.path()) else {
        return;
    };
    // Another root, with a shell and what it needs, and no debug files but the program's own.
    let script = "ldd /bin/sh | grep -o '/[^ ]*' | while read -r one; do \
        mkdir -p \"root$(dirname $one)\" && cp -L $one \"root$one\" || exit 1; done; \
        mkdir -p root/bin && cp -L /bin/sh root/bin/sh && cp program program.debug root";
    if !run("sh", &["-c", script], folder.path()) {
        return skip(test, "the shell and its libraries cannot be copied");
    }
    let root = folder.path().join("root");
    let unshare = || {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--root"]).arg(&root);
        unshare.arg("/bin/sh");
        unshare
    };
    let tried = unshare().args(["-c", ":"]).stderr(Stdio::null()).status();
    if !tried.is_ok_and(|status| status.success()) {
        return skip(test, "another root cannot be entered here");
    }
    let mut target = Target::spawn(unshare().args(["-c", "echo ready; read line"]));
    target.line();
    match surveyed(&target, is_c) {
        Some((Ok(NamesFrom::DebugFile), Ok(there))) => assert_eq!(there, path),
        Some((_, Err(NoSeparate::Unreadable(reason)))) => {
            skip(test, &format!("the root of the process cannot be entered: {reason}"));
        }
        other => panic!("{other:?}"),
    }
    target.send("");
    // A file beside the program is searched for in the program's own root.
    let mut target = Target::spawn(unshare().args(["-c", "exec /program"]));
    let hidden = target.numbers()[0];
    let (by, separate, is_named) = answers(&target, hidden);
    assert_eq!(by.expect("symbols"), NamesFrom::DebugFile);
    assert!(separate.expect("its path").ends_with("/program.debug"));
    assert!(is_named);
    target.send("");
}

/// The file that gives the names of the first module with such a name.
fn surveyed(
    target: &Target,
    is_it: impl Fn(&[u8]) -> bool,
) -> Option<(Result<NamesFrom, NoSymbols>, Result<String, NoSeparate>)> {
    let symbols = Symbols::default();
    with_names(&symbols, &target.attach(), |names, _| {
        let mut surveys = names.surveys().map(|survey| survey.expect("nobody stops it"));
        let found = surveys.find(|survey| is_it(survey.module.name.as_bytes()))?;
        let answers = found.answers.map(|(answers, _)| answers);
        Some((answers, found.separate.map(|path| path.to_string())))
    })
}

/// The target chooses what a path in its root leads to: reading `trace_pipe`, `/proc/kmsg` or a device's ROM would
/// change something.
pub(super) fn files_that_the_kernel_makes_up_are_not_read() {
    let test = "symbols::files_that_the_kernel_makes_up_are_not_read";
    let mut target = Target::start("idle", &[]);
    target.line();
    let modules = target.attach().modules;
    let refused = |path: &str| match modules.at_path(path.as_bytes()) {
        Err(reason) => assert!(reason.to_string().contains("generates its contents"), "{path}: {reason}"),
        Ok(Some(_)) => panic!("{path} was opened"),
        Ok(None) => skip(test, &format!("there is no {path} here")),
    };
    refused("/proc/version");
    refused("/proc/self/maps");
    // Here the kernel names a size.
    refused("/sys/kernel/mm/transparent_hugepage/enabled");
    refused("/sys/fs/cgroup/cgroup.controllers");
    // A file that is only in memory is a file like others.
    let folder = tempfile::tempdir_in("/dev/shm");
    let Ok(folder) = folder else {
        return skip(test, "nothing can be kept in /dev/shm here");
    };
    let kept = folder.path().join("kept");
    std::fs::write(&kept, "some bytes").expect("to write");
    let opened = modules.at_path(kept.to_str().expect("plain").as_bytes());
    assert_eq!(opened.expect("a file").map(|file| file.len()), Some(10));
}

pub(super) fn a_program_in_another_mount_namespace() {
    let test = "symbols::a_program_in_another_mount_namespace";
    let folder = tempfile::tempdir().expect("a folder");
    let Some(_) = stripped(test, folder.path()) else {
        return;
    };
    // The file system is mounted where nobody else sees it, over the folder that the test sees.
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).expect("a folder");
    let script = "mount -t tmpfs none inner && cp program program.debug inner && exec inner/program";
    let mut unshare = Command::new("unshare");
    unshare.args(["--user", "--map-root-user", "--mount"]);
    let is_possible = |unshare: &mut Command| {
        let tried = unshare.args(["sh", "-c", "mount -t tmpfs none /mnt"]).stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    };
    let mut tried = Command::new("unshare");
    tried.args(["--user", "--map-root-user", "--mount"]);
    if !is_possible(&mut tried) {
        return skip(test, "mount namespaces cannot be made here");
    }
    let mut target = Target::spawn(unshare.args(["sh", "-c", script]).current_dir(folder.path()));
    let hidden = target.numbers()[0];
    assert!(!inner.join("program").exists(), "the test sees the file");
    let (by, separate, is_named) = answers(&target, hidden);
    match separate {
        Ok(path) => assert!(path.ends_with("/inner/program.debug"), "{path}"),
        // The root of a process of another user namespace takes rights.
        Err(NoSeparate::Unreadable(reason)) => {
            return skip(test, &format!("the root of the process cannot be entered: {reason}"));
        }
        Err(reason) => panic!("{reason}"),
    }
    assert_eq!(by.expect("symbols"), NamesFrom::DebugFile);
    assert!(is_named);
    target.send("");
}

pub(super) fn a_program_whose_file_is_gone() {
    let test = "symbols::a_program_whose_file_is_gone";
    let folder = tempfile::tempdir().expect("a folder");
    if !is_installed("gcc") {
        return skip(test, "there is no C compiler here");
    }
    let program = compile(folder.path(), "program", PROGRAM, &[]).expect("to compile");
    let mut target = Target::spawn(&mut Command::new(&program));
    let hidden = target.numbers()[0];
    // Another file of that name must not be used.
    let other = folder.path().join("other");
    std::fs::copy("/bin/sh", &other).expect("another file");
    std::fs::rename(&other, &program).expect("to put it there");
    match answers(&target, hidden) {
        (Ok(NamesFrom::Itself), _, is_named) => assert!(is_named),
        (Err(NoSymbols::Unreadable(reason)), ..) => {
            assert!(reason.to_string().contains("was removed or replaced"), "{reason}");
            skip(test, &format!("without rights there is no way to the file: {reason}"));
        }
        other => panic!("{other:?}"),
    }
    std::fs::remove_file(&program).expect("to remove it");
    match answers(&target, hidden) {
        (Ok(NamesFrom::Itself), _, is_named) => assert!(is_named),
        (Err(NoSymbols::Unreadable(_)), ..) => {}
        other => panic!("{other:?}"),
    }
    target.send("");
}

pub(super) fn the_copy_of_a_variable_is_the_one_that_is_used() {
    let test = "symbols::the_copy_of_a_variable_is_the_one_that_is_used";
    let folder = tempfile::tempdir().expect("a folder");
    if !is_installed("gcc") {
        return skip(test, "there is no C compiler here");
    }
    // A variable of that name that only its own file sees is another one.
    let own = "__attribute__((used)) static char *environ[77];";
    let library = compile(folder.path(), "libown.so", own, &["-shared", "-fPIC"]);
    let library = library.expect("a library");
    let flags = ["-no-pie", "-fno-pic", "-Wl,--no-as-needed", library.to_str().expect("plain")];
    let program = compile(folder.path(), "program", PROGRAM, &flags).expect("to compile");
    let mut target = Target::spawn(&mut Command::new(&program));
    let words = target.numbers();
    let symbols = Symbols::default();
    with_names(&symbols, &target.attach(), |names, _| {
        let mut used = names.find(None, "environ").expect("a search");
        // The dynamic linker has one for itself too, which nobody else sees.
        used.retain(|one| !one.module.file_name().as_bytes().starts_with(b"ld-"));
        let own: Vec<_> = used.extract_if(.., |one| one.module.file_name().as_bytes() == b"libown.so").collect();
        let starts: Vec<_> = used.iter().map(|one| one.start).collect();
        let (module, _) = names.file_address(at(words[1])).expect("a module");
        if !module.is_called(b"program") {
            return skip(test, "the linker of this machine makes no copy relocations");
        }
        assert_eq!(starts, [at(words[1])], "{used:?}");
        assert_eq!(own.len(), 1, "{own:?}");
        assert_eq!(own[0].size, 77 * 8, "{own:?}");
        // A query for the library's own address gives it.
        let library = names.modules().iter().find(|one| one.is_called(b"libc.so.6"));
        if library.is_some() {
            let own = names.find(Some("libc.so.6"), "environ").expect("a search");
            assert!(own.iter().all(|one| one.start != at(words[1])), "{own:?}");
        }
    });
    target.send("");
}
