//! The command files that people are given run to their end on the demonstration process.

use pmdb::demo;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const PMDB: &str = env!("CARGO_BIN_EXE_pmdb");

fn run(arguments: &[&str]) -> Output {
    Command::new(PMDB)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["-nx", "-batch"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("pmdb runs")
}

/// Runs commands on a demonstration process.
#[track_caller]
fn answer(arguments: &[&str]) -> String {
    succeed(&[&["demo"], arguments].concat())
}

#[track_caller]
fn succeed(arguments: &[&str]) -> String {
    let run = run(arguments);
    let (output, errors) = (
        String::from_utf8_lossy(&run.stdout),
        String::from_utf8_lossy(&run.stderr),
    );
    assert!(
        run.status.success() && errors.is_empty(),
        "{output}\n{errors}"
    );
    output.into_owned()
}

/// Whether this user is shown frame numbers: whether the first page of the stack has one in this process's own page map.
fn frames_are_shown() -> bool {
    use std::os::unix::fs::FileExt;
    let local = 1_u8;
    let page = std::ptr::from_ref(&local).addr() / rustix::param::page_size();
    let mut entry = [0; 8];
    std::fs::File::open("/proc/self/pagemap")
        .and_then(|map| map.read_exact_at(&mut entry, page as u64 * 8))
        .expect("the page map of this process");
    u64::from_ne_bytes(entry) & ((1 << 55) - 1) != 0
}

#[test]
fn each_script_is_known_here() {
    let mut scripts: Vec<String> = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("scripts")
        .read_dir()
        .expect("scripts")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a plain name")
        })
        .filter(|name| name.ends_with(".pmdb"))
        .collect();
    scripts.sort();
    assert_eq!(
        scripts,
        [
            "cow.pmdb",
            "dma.pmdb",
            "huge-coverage.pmdb",
            "hugepages.pmdb",
            "swapped.pmdb",
            "tour.pmdb"
        ]
    );
}

#[test]
fn the_tour_shows_the_five_verbs() {
    let tour = answer(&["-x", "scripts/tour.pmdb"]);
    // translate, region, walk, flags, watch: what only their answers hold.
    for words in [
        "<demo_buffer+291>",
        "section .data",
        "private_copy",
        "256 untouched",
        "1 guard",
        "mapped at",
        "ended after the time asked for",
    ] {
        assert!(tour.contains(words), "'{words}' is missing in\n{tour}");
    }
    let hidden = tour.contains("hidden");
    assert_eq!(hidden, !frames_are_shown(), "{tour}");
}

#[test]
fn copy_on_write_tells_shared_from_copied() {
    let report = answer(&["-x", "scripts/cow.pmdb"]);
    let (shared, own) = report.split_once("Its own:").expect("two parts");
    assert!(
        shared.contains("[heap]") && own.contains("libc.so"),
        "{report}"
    );
    // Of the 16 pages there, the child has copied 4.
    let own = answer(&["-ex", "walk $anonymous where present and exclusive"]);
    assert!(own.contains("\n4 pages, "), "{own}");
    let shared = answer(&["-ex", "walk $anonymous where present and not exclusive"]);
    assert!(shared.contains("\n12 pages, "), "{shared}");
}

#[test]
fn huge_pages_are_found_where_there_are_any() {
    let demonstration = demo::start_program(Path::new(PMDB)).expect("the demonstration starts");
    let huge = demonstration.area("huge").expect("huge");
    let given = huge.sentence.contains("in one huge page");
    let process = demonstration.pid.to_string();
    let arguments = ["-p", &process, "-x", "scripts/hugepages.pmdb"];
    let report = if frames_are_shown() {
        succeed(&arguments)
    } else {
        // Its last question is about folios, which only flags of frames tell.
        let run = run(&arguments);
        let errors = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(4), "{errors}");
        assert!(
            errors.contains("walk all where present by order"),
            "{errors}"
        );
        String::from_utf8_lossy(&run.stdout).into_owned()
    };
    let (_, mapped) = report
        .split_once("Mapped as huge pages:\n")
        .expect("its part");
    assert_eq!(!mapped.starts_with("0 pages"), given, "{report}");
}

#[test]
fn a_buffer_is_judged_for_a_device_where_frames_are_shown() {
    let arguments = ["-ex", "set $dma = $huge", "-x", "scripts/dma.pmdb"];
    if frames_are_shown() {
        let report = answer(&arguments);
        assert!(report.contains("nothing changed"), "{report}");
    } else {
        // A filter on what is hidden is an error that says so.
        let run = run(&[&["demo"][..], &arguments].concat());
        let errors = String::from_utf8_lossy(&run.stderr);
        assert_ne!(run.status.code(), Some(0));
        assert!(errors.contains("hidden without CAP_SYS_ADMIN"), "{errors}");
    }
}

#[test]
fn each_area_has_a_variable() {
    let values = answer(&["-ex", "show convenience"]);
    for name in [
        "buffer",
        "zeroed",
        "counter",
        "private_file",
        "shared",
        "anonymous",
        "huge",
        "guard",
        "busy",
    ] {
        assert!(
            values.contains(&format!("${name} ")),
            "${name} is missing in\n{values}"
        );
    }
}

#[test]
fn every_example_of_the_help_runs() {
    let shown = frames_are_shown();
    let examples = pmdb::command::TABLE.iter().flat_map(|about| about.examples);
    let mut count = 0;
    for example in examples {
        let run = match example.line.contains('\n') {
            // A block needs a file.
            true => {
                let file = tempfile::NamedTempFile::new().expect("a file");
                std::fs::write(file.path(), example.line).expect("a file");
                run(&["demo", "-x", file.path().to_str().expect("a plain path")])
            }
            false => run(&["demo", "-ex", example.line]),
        };
        let errors = String::from_utf8_lossy(&run.stderr);
        let lacks_rights = !shown && errors.contains("CAP_");
        assert!(
            run.status.success() && errors.is_empty() || lacks_rights,
            "{}\n{}\n{errors}",
            example.line,
            String::from_utf8_lossy(&run.stdout),
        );
        // Settings, variables and leaving are done without a word, and nothing was typed yet.
        let is_silent = [
            "set $start",
            "set $all",
            "set p",
            "quit",
            "history",
            "assert",
            "alias",
        ]
        .iter()
        .any(|word| example.line.starts_with(word));
        assert!(
            is_silent || lacks_rights || !run.stdout.is_empty(),
            "{}",
            example.line
        );
        count += 1;
    }
    assert!(count > 40, "{count} examples");
}

/// A program with a filled array of 64 MiB, which says when it is ready and ends with this.
struct Array {
    child: std::process::Child,
    _folder: tempfile::TempDir,
}

impl Array {
    fn start() -> Array {
        use std::io::BufRead;
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("array.c");
        let program = folder.path().join("array");
        let text = "#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\nchar buffer[64 << 20] __attribute__((aligned(1 << 16)));\n\
            int main(void) { memset(buffer, 1, sizeof buffer); puts(\"ready\"); fflush(stdout); getchar(); return 0; }\n";
        std::fs::write(&source, text).expect("a file");
        let compiled = Command::new("cc")
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .status();
        assert!(compiled.expect("a compiler").success());
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let out = child.stdout.as_mut().expect("its output");
        std::io::BufReader::new(out)
            .read_line(&mut line)
            .expect("a line");
        assert_eq!(line, "ready\n");
        Array {
            child,
            _folder: folder,
        }
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn all_pages_of_an_array_are_checked() {
    let array = Array::start();
    let pid = array.child.id().to_string();
    let pages = (64 << 20) / rustix::param::page_size();
    let set = ["-p", &pid, "-ex", "set $dma = buffer"];
    let run = run(&[&set[..], &["-x", ":dma", "--args", "1T"]].concat());
    let output = String::from_utf8_lossy(&run.stdout);
    assert!(output.contains(&format!("$2 = {pages}  ")), "{output}");
    if frames_are_shown() {
        assert!(run.status.success(), "{run:?}");
        // One byte of room is too little for all of it.
        let refused = self::run(&[&set[..], &["-x", ":dma", "--args", "1"]].concat());
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        let errors = String::from_utf8_lossy(&refused.stderr);
        assert!(errors.contains(&format!("= {pages}, 0 wanted")), "{errors}");
    }
}

#[test]
fn coverage_by_huge_pages_is_decided_by_an_argument() {
    let array = Array::start();
    let pid = array.child.id().to_string();
    let coverage = |percent| run(&["-x", ":huge-coverage", &pid, percent, "buffer"]);
    let passed = coverage("0");
    assert!(passed.status.success(), "{passed:?}");
    let failed = coverage("101");
    let errors = String::from_utf8_lossy(&failed.stderr);
    assert_eq!(failed.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("too little is on huge pages: $percent = "),
        "{errors}"
    );
    assert!(errors.contains("$arg0 = 101"), "{errors}");
}

#[test]
fn what_is_swapped_is_listed_or_none_is() {
    let run = run(&["-x", ":swapped", "self"]);
    let output = String::from_utf8_lossy(&run.stdout);
    let is_none = output.contains("No page of the process is in swap");
    assert_eq!(run.status.success(), is_none, "{run:?}");
}
