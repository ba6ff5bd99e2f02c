//! The shipped command files run to their end on the demonstration process.

use crate::run::Home;
use crate::skips::skip;
use pmdb::command::subjects::questions::{FIRST, QUESTIONS};
use pmdb::command::{About, COMMANDS, Group};
use pmdb::demo;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const PMDB: &str = env!("CARGO_BIN_EXE_pmdb");

fn run(arguments: &[&str]) -> Output {
    run_in(Path::new(env!("CARGO_MANIFEST_DIR")), arguments)
}

fn run_in(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(PMDB)
        .current_dir(folder)
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
    let (output, errors) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && errors.is_empty(), "{output}\n{errors}");
    output.into_owned()
}

const FRAMES_ARE_HIDDEN: &str = "frame numbers are hidden from this user";

/// Whether the kernel shows frame numbers to this user: whether this process's own page map has one for the first page
/// of its stack.
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
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"))
        .filter(|name| name.ends_with(".pmdb"))
        .collect();
    scripts.sort();
    assert_eq!(
        scripts,
        [
            "dma.pmdb",
            "fork-cost.pmdb",
            "guard-stacks.pmdb",
            "hugepages.pmdb",
            "leak.pmdb",
            "oom.pmdb",
            "same-page.pmdb",
            "swapped.pmdb",
            "tour.pmdb"
        ]
    );
}

/// What the texts of a picture say that the first word of is in `words`: each kind of memory with its size.
fn kinds(svg: &str, words: &[&str]) -> Vec<String> {
    let document = roxmltree::Document::parse(svg).expect("well-formed");
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    let texts = texts.filter_map(|node| node.text().map(str::to_owned));
    texts.filter(|text| text.split_once(' ').is_some_and(|(first, _)| words.contains(&first))).collect()
}

#[test]
fn the_pictures_of_the_readme_are_what_their_script_draws() {
    const NAME: &str = "the_pictures_of_the_readme_are_what_their_script_draws";
    if Command::new("python3").arg("--version").output().is_err() {
        return skip(NAME, "there is no python3 here");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/picture");
    let run = Command::new(script).arg(folder.path()).env("PMDB", PMDB).output().expect("the script runs");
    assert!(run.status.success(), "{run:?}");
    let drawn = |name: &str| std::fs::read_to_string(folder.path().join(name)).ok();
    let kept = [
        ("map.svg", include_str!("../../scripts/pictures/map.svg")),
        ("fork.svg", include_str!("../../scripts/pictures/fork.svg")),
        ("tour.svg", include_str!("../../scripts/pictures/tour.svg")),
    ];
    for (name, kept) in kept {
        let drawn = drawn(name);
        // Only root sees what a fork shares.
        assert!(drawn.is_some() || (name == "fork.svg" && !rustix::process::geteuid().is_root()), "{name}");
        for svg in [Some(kept), drawn.as_deref()].into_iter().flatten() {
            assert!(roxmltree::Document::parse(svg).is_ok() && svg.len() <= 300 << 10, "{name}");
            assert!(["/home/", "/tmp/", "target/"].iter().all(|path| !svg.contains(path)), "{name}");
        }
        assert!(include_str!("../../README.md").contains(&format!("(scripts/pictures/{name})")), "{name}");
    }
    // What does not depend on the kernel and its settings.
    let words = ["private_copy", "shmem", "zero"];
    let (_, map) = kept[0];
    assert_eq!(kinds(&drawn("map.svg").expect("a map"), &words), kinds(map, &words));
    assert_eq!(kinds(map, &["guard", "huge"]).len(), 2);
}

#[test]
fn the_tour_shows_each_command_before_its_answer() {
    let tour = answer(&["-x", "scripts/tour.pmdb"]);
    // What only the answers of translate, region, walk, map, flags and watch hold.
    for words in [
        "<demo_buffer+291>",
        "section .data",
        "private_copy",
        "256 untouched",
        "a guard page",
        "AAAA",
        "memfd:demo_shared",
        "mapped at",
        "ended by `for`",
    ] {
        assert!(tour.contains(words), "'{words}' is missing in\n{tour}");
    }
    let script = include_str!("../../scripts/tour.pmdb").lines();
    let left_out = ["#", "assert", "echo", "set", "if", "else", "end"];
    let commands = script.map(str::trim).filter(|line| !left_out.iter().any(|word| line.starts_with(word)));
    // One of these two.
    let (asked, instead) =
        if frames_are_shown() { ("who $shared", "region $shared") } else { ("region $shared", "who $shared") };
    assert!(tour.contains(&format!("\n(pmdb) {asked}\n")), "{tour}");
    for command in commands.filter(|line| !line.is_empty() && *line != instead) {
        assert!(tour.contains(&format!("\n(pmdb) {command}\n")), "'{command}' is missing in\n{tour}");
    }
    assert!(tour.lines().count() <= 180, "{tour}");
    let hidden = tour.contains("hidden");
    assert_eq!(hidden, !frames_are_shown(), "{tour}");
}

/// What `scripts/guests` runs takes half an hour to fail there, so it runs here as well.
#[test]
fn the_guests_run_the_scripts_with_the_arguments_that_they_take() {
    if !frames_are_shown() {
        return skip("the_guests_run_the_scripts_with_the_arguments_that_they_take", FRAMES_ARE_HIDDEN);
    }
    let guest = tempfile::tempdir().expect("a folder");
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::os::unix::fs::symlink(project.join("scripts"), guest.path().join("scripts")).expect("a link");
    std::fs::write(guest.path().join("settings"), format!("PMDB='{PMDB}'\n")).expect("the settings");
    let check = project.join("tests/guests/check");
    let run = Command::new("sh").arg(check).arg("tour").env("GUEST", guest.path()).output().expect("sh runs");
    assert!(run.status.success() && run.stderr.is_empty(), "{run:?}");
    assert!(run.stdout.ends_with(b"mlock does not prevent that.\n"), "{run:?}");
}

/// The same for the capture that each guest prints: with the questions it is read here as in the guest.
#[test]
fn the_guests_print_a_capture_that_is_read_elsewhere() {
    const NAME: &str = "the_guests_print_a_capture_that_is_read_elsewhere";
    if !frames_are_shown() {
        return skip(NAME, FRAMES_ARE_HIDDEN);
    }
    let guest = tempfile::tempdir().expect("a folder");
    let inside = |name: &str| guest.path().join(name);
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::create_dir(inside("programs")).expect("a folder");
    std::fs::write(inside("settings"), format!("PMDB='{PMDB}'\n")).expect("the settings");
    let (program, source) = (inside("programs/subject"), project.join("tests/guests/subject.c"));
    match Command::new("cc").args(["-static", "-O1", "-o"]).args([program, source]).status() {
        Ok(status) => assert!(status.success(), "subject.c does not build"),
        Err(error) => return skip(NAME, &format!("cc: {error}")),
    }
    let check = project.join("tests/guests/check");
    let run = Command::new("sh").arg(check).arg("hand_over").env("GUEST", guest.path()).output().expect("sh runs");
    let printed = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{printed} {}", String::from_utf8_lossy(&run.stderr));
    let written = |kind: &str| {
        let lines = printed.lines().filter_map(|line| line.strip_prefix(&format!("guest: {kind} ")));
        std::fs::write(inside(kind), lines.map(|line| format!("{line}\n")).collect::<String>()).expect("a file");
        inside(kind)
    };
    let capture = Command::new("base64").arg("-d").arg(written("data")).output().expect("base64 runs");
    std::fs::write(inside("capture"), capture.stdout).expect("a file");
    let mut read = Command::new(PMDB);
    read.args(["-nx", "-batch", "--json", "-c"]).arg(inside("capture")).arg("-x").arg(written("question"));
    let records = |text: &str| {
        let record = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("a record");
        let mut records: Vec<_> = text.lines().map(record).collect();
        for fields in records.iter_mut().filter_map(|record| record.as_object_mut()) {
            ["capture", "flags_raw"].into_iter().for_each(|field| _ = fields.remove(field));
            let flags = fields.get_mut("flags").and_then(|flags| flags.as_array_mut());
            flags.into_iter().for_each(|flags| flags.retain(|flag| flag != "idle"));
        }
        records
    };
    let read = records(&String::from_utf8_lossy(&read.output().expect("pmdb runs").stdout));
    assert!(read.len() > 50, "{read:?}");
    assert_eq!(read, records(&std::fs::read_to_string(written("answer")).expect("the answers")));
}

#[test]
fn copy_on_write_tells_shared_from_copied() {
    let run = run(&["demo", "-x", "scripts/fork-cost.pmdb", "--args", "1G", "200ms"]);
    let (report, errors) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    // It compares frames.
    assert_eq!(run.status.code(), Some(if frames_are_shown() { 0 } else { 4 }), "{errors}");
    if frames_are_shown() {
        let (_, lists) = report.split_once("Still shared:").expect("its part");
        let (shared, own) = lists.split_once("Exclusive:").expect("two parts");
        assert!(shared.contains("[heap]") && own.contains("libc.so"), "{report}");
    }
    // Of the 16 pages there, the child has copied 4.
    let own = answer(&["-ex", "walk $anonymous where present and exclusive"]);
    assert!(own.starts_with("4 pages, "), "{own}");
    let shared = answer(&["-ex", "walk $anonymous where present and not exclusive"]);
    assert!(shared.starts_with("12 pages, "), "{shared}");
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
        assert!(errors.contains("walk all where present by order"), "{errors}");
        String::from_utf8_lossy(&run.stdout).into_owned()
    };
    let (_, mapped) = report.split_once("Mapped as huge pages:\n").expect("its part");
    assert_eq!(!mapped.starts_with("0 pages"), given, "{report}");
}

#[test]
fn a_buffer_is_judged_for_a_device_where_frames_are_shown() {
    let arguments = ["-x", "scripts/dma.pmdb", "--args", "$huge"];
    if frames_are_shown() {
        let report = answer(&arguments);
        assert!(report.contains("\nPassed: in memory, not moved in 2s. Not tested: limit, pieces"), "{report}");
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
    for name in ["buffer", "zeroed", "counter", "private_file", "shared", "anonymous", "huge", "guard", "busy"] {
        assert!(values.contains(&format!("${name} ")), "${name} is missing in\n{values}");
    }
}

#[test]
fn every_example_of_the_help_runs() {
    let shown = frames_are_shown();
    let of_command = |about: &'static About| about.examples.iter().map(|example| (about.group, example));
    let mut examples: Vec<_> = COMMANDS.abouts().flat_map(of_command).collect();
    // Some write files, which others read.
    examples.sort_by_key(|(_, example)| example.line.starts_with("target capture "));
    let folder = tempfile::tempdir().expect("a folder");
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts");
    std::os::unix::fs::symlink(scripts, folder.path().join("scripts")).expect("a link");
    let run = |arguments: &[&str]| run_in(folder.path(), arguments);
    // Those that only look run in one process, which reads the symbols once. Each says by itself what is wrong with it.
    let (looking, others) = examples.into_iter().partition::<Vec<_>, _>(|(group, example)| {
        matches!(group, Group::Look | Group::Memory) && !example.line.contains(['\n', '$', '>'])
    });
    assert!(looking.len() > 60 && others.len() > 40, "{} {}", looking.len(), others.len());
    let lines: Vec<_> =
        looking.iter().flat_map(|(_, example)| ["-ex", example.line, "-ex", "echo \\nnext\\n"]).collect();
    let together = run(&[&["demo"][..], &lines].concat());
    let output = String::from_utf8_lossy(&together.stdout);
    let outputs = output.split("\nnext\n").filter(|output| !output.is_empty()).count();
    let alone =
        if together.stderr.is_empty() && outputs == looking.len() { others } else { [looking, others].concat() };
    for (_, example) in alone {
        let run = if example.line.contains('\n') {
            let file = tempfile::NamedTempFile::new().expect("a file");
            std::fs::write(file.path(), example.line).expect("a file");
            run(&["demo", "-x", file.path().to_str().expect("a plain path")])
        } else {
            run(&["demo", "-ex", example.line])
        };
        let errors = String::from_utf8_lossy(&run.stderr);
        let lacks_feature = ["CONFIG_MEM_SOFT_DIRTY", "/proc/kcore"].iter().any(|feature| errors.contains(feature));
        let lacks_rights = !shown && errors.contains("CAP_") || lacks_feature;
        // Where the file is the output, what is said of it stands beside.
        let is_beside = example.line.starts_with("capture - ") && errors.starts_with("captured process ");
        assert!(
            run.status.success() && (errors.is_empty() || is_beside) || lacks_rights,
            "{}\n{}\n{errors}",
            example.line,
            String::from_utf8_lossy(&run.stdout),
        );
        // Settings, variables and leaving print nothing, and nothing was typed yet.
        let is_silent = ["set $start", "set $all", "set k", "set p", "set l", "quit", "history", "assert", "alias"]
            .iter()
            .any(|word| example.line.starts_with(word));
        let is_silent = is_silent || is_beside || example.line.contains("> ./");
        assert!(is_silent || lacks_rights || !run.stdout.is_empty(), "{}", example.line);
    }
}

/// Each line runs as it stands, with something of the demonstration for the words in capitals.
#[test]
fn every_question_has_a_line_that_runs() {
    let shown = frames_are_shown();
    let folder = tempfile::tempdir().expect("a folder");
    for question in QUESTIONS {
        let line = question.shown.line;
        let place = if line.contains("phys:") { "0x1000" } else { "demo_buffer" };
        let mut typed =
            line.replace("RANGE", "demo_buffer").replace("ADDRESS", place).replace("NAME", "pmdb").replace("PATH", "/");
        typed = typed.replace("FILE", "./kept").replace("every 1s for 10s", "every 10ms for 30ms");
        let limits: &[&str] = if line.starts_with("watch ") { &["for", "50ms"] } else { &[] };
        typed = [&[typed.as_str()], limits].concat().join(" ");
        let run = run_in(folder.path(), &["demo", "-ex", &typed]);
        let errors = String::from_utf8_lossy(&run.stderr);
        let lacks_rights = !shown && errors.contains("CAP_") || errors.contains("/proc/kcore");
        // The frames of this run may all be above the limit, which is an answer too.
        let is_judged = line.contains(":dma") && errors.contains("the device cannot use the buffer as it is\n");
        let is_fine = run.status.success() && errors.is_empty();
        assert!(is_fine || is_judged || lacks_rights, "{typed}\n{errors}");
        assert!(lacks_rights || !run.stdout.is_empty(), "{typed}");
    }
}

/// The questions and the groups fit one screen, and each word leads to a question.
#[test]
fn the_help_begins_with_questions() {
    let help = answer(&["-ex", "help"]);
    assert!(help.lines().count() <= 24, "{help}");
    for question in QUESTIONS.iter().take(FIRST) {
        assert!(help.contains(question.shown.asks), "{}", question.shown.asks);
    }
    assert_eq!(help.matches("*,").count() + help.matches("*\n").count(), 12, "{help}");
    for word in ["dma", "numa", "cache", "oom", "leak", "rss", "malloc", "thp", "fork", "cow", "growth", "pinned"] {
        let about = answer(&["-ex", &format!("help {word}")]);
        assert!(about.starts_with(&format!("questions about {word}\n")), "{about}");
    }
}

/// A program with a filled array of 64 MiB, which says when it is ready and ends with this.
struct Array {
    child: std::process::Child,
    _folder: tempfile::TempDir,
}

impl Array {
    fn start() -> Array {
        let buffer = "char buffer[64 << 20] __attribute__((aligned(1 << 16)));\n";
        Array::of(&format!(
            "#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n{buffer}\
             int main(void) {{ memset(buffer, 1, sizeof buffer); puts(\"ready\"); fflush(stdout); getchar(); return 0; }}\n"
        ))
    }

    /// A program in C that says when it is ready.
    fn of(text: &str) -> Array {
        use std::io::BufRead;
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("array.c");
        let program = folder.path().join("array");
        std::fs::write(&source, text).expect("a file");
        let compiled = Command::new("cc").arg(&source).arg("-pthread").arg("-o").arg(&program).status();
        assert!(compiled.expect("a compiler").success());
        let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let out = child.stdout.as_mut().expect("its output");
        std::io::BufReader::new(out).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        Array { child, _folder: folder }
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
    let run = run(&["-x", ":dma", &pid, "buffer", "1T"]);
    let output = String::from_utf8_lossy(&run.stdout);
    assert!(output.contains(&format!(": {pages} pages, 64 MiB\n")), "{output}");
    if frames_are_shown() {
        assert!(run.status.success(), "{run:?}");
        // The first MiB is not memory for programs.
        let refused = self::run(&["-x", ":dma", &pid, "buffer", "1M"]);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        let found = String::from_utf8_lossy(&refused.stdout);
        assert!(
            found.contains(&format!(
                "FAILED: {pages} of {pages} pages are at or above 1 MiB. Passed: in memory, not moved in 2s. Not tested: pieces (there are "
            )),
            "{found}"
        );
    }
    for (limit, why) in
        [("1", "such as 4G"), ("32bit", "such as 4G"), ("4.5G", "such as 4G"), ("18446744073709551616", "larger than")]
    {
        let refused = self::run(&["-x", ":dma", &pid, "buffer", limit]);
        let errors = String::from_utf8_lossy(&refused.stderr);
        assert!(errors.contains(why) && refused.stdout.is_empty(), "{refused:?}");
    }
}

#[test]
fn a_buffer_that_is_not_in_memory_or_moves_is_refused() {
    let untouched = run(&["demo", "-x", ":dma", "--args", "$untouched"]);
    let errors = String::from_utf8_lossy(&untouched.stderr);
    assert_eq!(untouched.status.code(), Some(1), "{untouched:?}");
    assert!(errors.contains("pages are not in memory: "), "{errors}");
    if !frames_are_shown() {
        return skip("a_buffer_that_is_not_in_memory_or_moves_is_refused", FRAMES_ARE_HIDDEN);
    }
    // Each time, another page takes the frame that the buffer gives back.
    let moving = program(
        "#define PAGE 65536\nchar buffer[PAGE] __attribute__((aligned(PAGE))), others[64 * PAGE] __attribute__((aligned(PAGE)));\n\
         int main(void) {\n\
         puts(\"ready\"); fflush(stdout);\n\
         for (unsigned i = 0;; i++) {\n\
         madvise(buffer, PAGE, MADV_DONTNEED);\n\
         if (i % 64 == 0) madvise(others, sizeof others, MADV_DONTNEED);\n\
         others[i % 64 * PAGE] = 1; buffer[0] = 1; usleep(500); } }\n",
    );
    let pid = moving.child.id().to_string();
    // Between the two there is no page at all: then it tries again.
    let is_absent =
        |run: &std::process::Output| String::from_utf8_lossy(&run.stderr).contains("pages are not in memory");
    let mut runs = (0..50).map(|_| run(&["-x", ":dma", &pid, "buffer, +1p"]));
    let moved = runs.find(|run| !is_absent(run)).expect("a page");
    let found = String::from_utf8_lossy(&moved.stdout);
    assert_eq!(moved.status.code(), Some(1), "{moved:?}");
    assert!(found.contains(" changed in 2s (pages that came, went or moved: "), "{found}");
}

/// A program of these lines of C, ready when it says so.
fn program(lines: &str) -> Array {
    Array::of(&format!(
        "#define _GNU_SOURCE\n#include <pthread.h>\n#include <stdio.h>\n#include <sys/mman.h>\n#include <unistd.h>\n{lines}"
    ))
}

#[test]
fn stacks_without_a_guard_are_found() {
    let report = succeed(&["-x", ":guard-stacks", "self"]);
    assert!(report.contains("The stack of each ends at a guard"), "{report}");
    assert!(answer(&["-x", ":guard-stacks"]).contains("Threads: 1."));
    let thread = |stack: &str| {
        program(&format!(
            "static void *wait(void *none) {{ sleep(600); return none; }}\n\
             static void *work(void *none) {{ for (volatile long turns = 0;; turns++); return none; }}\n\
             int main(void) {{\n\
             pthread_attr_t attributes; pthread_t thread;\n\
             pthread_attr_init(&attributes);\n{stack}\n\
             pthread_create(&thread, &attributes, wait, NULL);\n\
             puts(\"ready\"); fflush(stdout); getchar(); return 0; }}\n"
        ))
    };
    let guarded = thread("");
    let pid = guarded.child.id().to_string();
    let report = succeed(&["-x", ":guard-stacks", &pid]);
    assert!(report.contains("Threads: 2."), "{report}");
    // Within a mapping of its own, with memory below.
    let bare = "char *memory = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n\
                pthread_attr_setstack(&attributes, memory + (2 << 20), 2 << 20);";
    let found = |thread: &Array, options: &[&str]| {
        let pid = thread.child.id().to_string();
        let run = run(&[options, &["-x", ":guard-stacks", &pid]].concat());
        assert_eq!(run.status.code(), Some(1), "{run:?}");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (output, errors) = (text(&run.stdout), text(&run.stderr));
        let others = threads(thread).into_iter().filter(|id| *id != thread.child.id()).collect::<Vec<_>>();
        assert!(errors.contains("the stack of a thread has no guard"), "{errors}");
        assert!(!output.contains("ends at a guard"), "{output}");
        let named = others
            .iter()
            .filter(|id| output.contains(&format!("Thread {id}: no guard below its stack pointer ")))
            .count();
        (named, output, errors)
    };
    let waiting = thread(bare);
    let (named, output, _) = found(&waiting, &[]);
    assert_eq!(named, 1, "{output}");
    assert!(output.contains("Threads examined: 2. Without a guard: 1. Running, and so not examined: 0."), "{output}");
    // A thread that runs all the time hides no other one.
    let busy = thread(&format!("pthread_t worker; pthread_create(&worker, NULL, work, NULL);\n{bare}\n"));
    let (named, output, errors) = found(&busy, &["--keep-going"]);
    assert_eq!(named, 1, "{output}");
    assert!(output.contains("is running: its stack pointer is not known"), "{output}");
    assert!(output.contains("Threads examined: 2. Without a guard: 1. Running, and so not examined: 1."), "{output}");
    assert!(errors.contains("the stack of a running thread could not be examined"), "{errors}");
}

/// In a loop over threads the registers are those of the thread, and after it those of the main thread again.
#[test]
fn registers_are_those_of_the_thread_in_a_loop_over_threads() {
    let two = program(
        "static void *wait(void *none) { sleep(600); return none; }\n\
         int main(void) { pthread_t thread; pthread_create(&thread, NULL, wait, NULL);\n\
         puts(\"ready\"); fflush(stdout); getchar(); return 0; }\n",
    );
    let pid = two.child.id();
    let home = Home::new();
    home.file(
        "f",
        "foreach $top in threads\n  printf \"%d %p %p\\n\", $_thread, $sp, $pc\nend\nprintf \"%p\\n\", $sp\n",
    );
    let run = home.run(&["-batch", "-p", &pid.to_string(), "-x", "f"]);
    // The last two words of this file are both registers, read without pmdb.
    let plain = |thread: u32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/syscall")).expect("its registers");
        let words: Vec<&str> = text.split_whitespace().rev().take(2).collect();
        (words[1].to_owned(), words[0].to_owned())
    };
    let mut expected = String::new();
    for thread in threads(&two) {
        let (stack, program) = plain(thread);
        expected += &format!("{thread} {stack} {program}\n");
    }
    expected += &format!("{}\n", plain(pid).0);
    assert_eq!(run.is_fine().out, expected);
}

/// The ids of the threads of a program.
fn threads(of: &Array) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", of.child.id())).expect("its threads");
    let name = |task: std::io::Result<std::fs::DirEntry>| task.expect("a thread").file_name();
    tasks.map(|task| name(task).to_str().and_then(|id| id.parse().ok()).expect("a number")).collect()
}

#[test]
fn who_shares_a_library_is_shown_and_that_nobody_does_is_refused() {
    if !frames_are_shown() {
        return skip("who_shares_a_library_is_shown_and_that_nobody_does_is_refused", FRAMES_ARE_HIDDEN);
    }
    let report = answer(&["-x", ":same-page", "--args", "libc.so.6"]);
    assert!(report.contains("Mapped by others too: "), "{report}");
    let alone = Array::start();
    let pid = alone.child.id().to_string();
    let run = run(&["-x", ":same-page", &pid, "array"]);
    let errors = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    assert!(errors.contains("nobody else maps a page of it"), "{errors}");
}

#[test]
fn what_a_fork_has_copied_is_added_up_and_bounded() {
    if !frames_are_shown() {
        return skip("what_a_fork_has_copied_is_added_up_and_bounded", FRAMES_ARE_HIDDEN);
    }
    // Writes an eighth of the array after a fork, of which the child knows nothing.
    let parent = program(
        "#include <string.h>\n#include <signal.h>\n#include <sys/prctl.h>\n\
         char buffer[16 << 20] __attribute__((aligned(1 << 16)));\n\
         int main(void) {\n\
         memset(buffer, 1, sizeof buffer);\n\
         if (fork() == 0) { prctl(PR_SET_PDEATHSIG, SIGKILL); for (;;) pause(); }\n\
         memset(buffer, 2, 2 << 20);\n\
         puts(\"ready\"); fflush(stdout); getchar(); return 0; }\n",
    );
    let pid = parent.child.id().to_string();
    let passed = run(&["-x", ":fork-cost", &pid, "1G", "200ms"]);
    let output = String::from_utf8_lossy(&passed.stdout);
    assert!(passed.status.success(), "{passed:?}");
    assert!(output.contains("buffer of array"), "{output}");
    let failed = run(&["-x", ":fork-cost", &pid, "1M", "200ms"]);
    let errors = String::from_utf8_lossy(&failed.stderr);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    assert!(errors.contains("copy-on-write has cost too much\n"), "{errors}");
    // In JSON: exactly what was written, and exactly what is left to write.
    let json = succeed(&["--json", "-p", &pid, "-ex", "compare children in buffer by symbol"]);
    let page = rustix::param::page_size();
    let (copied, shared) = ((2 << 20) / page, (14 << 20) / page);
    let all = copied + shared;
    let wanted = format!(
        "\"symbol\":\"buffer of array\",\"of\":{all},\"page_size\":{page},\"shared\":{shared},\"shared_elsewhere\":0,\"copied\":{copied},\"only_here\":0,\"only_there\":0,\"about_to_copy\":{shared}"
    );
    assert!(json.contains(&wanted), "{wanted}\n{json}");
}

#[test]
fn a_process_that_passes_a_limit_is_captured_under_a_free_name() {
    let growing = program(
        "int main(void) {\n\
         char *memory = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n\
         puts(\"ready\"); fflush(stdout);\n\
         for (long at = 0; at < (64 << 20); at += 4096) { memory[at] = 1; if (at % (1 << 20) == 0) usleep(10000); }\n\
         getchar(); return 0; }\n",
    );
    let pid = growing.child.id().to_string();
    let folder = tempfile::tempdir().expect("a folder");
    for round in 1..=2 {
        let run = run_in(folder.path(), &["-x", ":oom", &pid, "40M", "0.02"]);
        let output = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success() && output.starts_with("Resident: "), "{run:?}");
        let captures = folder.path().read_dir().expect("a folder").map(|entry| entry.expect("a file").path());
        let captures: Vec<_> = captures.collect();
        assert_eq!(captures.len(), round, "{captures:?}");
        for capture in captures {
            let path = capture.to_str().expect("a plain name");
            let opened = succeed(&["-c", path, "-ex", "print rss(all) >= 40M"]);
            assert!(opened.contains("= 1"), "{opened}");
        }
    }
    drop(growing);
    let gone = run_in(folder.path(), &["-x", ":oom", "self"]);
    assert!(String::from_utf8_lossy(&gone.stderr).contains("`:oom` needs LIMIT"), "{gone:?}");
    assert_eq!(gone.status.code(), Some(2), "{gone:?}");
    for arguments in [&["lots"][..], &["0"], &["1T", "0"], &["1T", "1x"], &["1T", "0s"]] {
        let refused = run_in(folder.path(), &[&["-x", ":oom", "self"], arguments].concat());
        let errors = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(1), "{arguments:?}: {refused:?}");
        assert!(!String::from_utf8_lossy(&refused.stdout).contains("Resident"), "{refused:?}");
        assert!(errors.ends_with(", such as 3500M\n") || errors.ends_with(", such as 5 or 200ms\n"), "{errors}");
    }
    let percent = run(&["-x", ":hugepages", "self", "500"]);
    assert!(String::from_utf8_lossy(&percent.stderr).contains("PERCENT is a number from 0 to 100\n"), "{percent:?}");
}

#[test]
fn what_grows_in_each_interval_is_a_leak() {
    let still = Array::start();
    let pid = still.child.id().to_string();
    let output = succeed(&["-x", ":leak", &pid, "2", "1", "64K"]);
    // Where soft-dirty pages are not tracked, not every change can be seen.
    let is_still = ["nothing changed", "no change"].map(|words| output.contains(words));
    assert!(is_still.contains(&true), "{output}");
    let closing = "Memory grew by more than 64 KiB in 0 of 2 intervals.";
    assert!(output.contains(closing), "{output}");
    let growing = program(
        "int main(void) {\n\
         const unsigned long size = 16ul << 30, step = 64 << 10;\n\
         char *leaked = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);\n\
         puts(\"ready\"); fflush(stdout);\n\
         for (unsigned long at = 0; at < 1ul << 30; at += step) {\n\
         for (unsigned long in = 0; in < step; in += 4096) leaked[at + in] = 1;\n\
         usleep(10000); }\n\
         getchar(); return 0; }\n",
    );
    let pid = growing.child.id().to_string();
    let failed = run(&["-x", ":leak", &pid, "2", "1", "64K"]);
    let output = String::from_utf8_lossy(&failed.stdout);
    let errors = String::from_utf8_lossy(&failed.stderr);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    // The region that grows, by its address: others have no name either.
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("its regions");
    let spans = maps.lines().filter_map(|line| line.split_once(' ')?.0.split_once('-'));
    let hex = |text: &str| u64::from_str_radix(text, 16).expect("an address");
    let mut spans = spans.map(|(start, end)| (hex(start), hex(end)));
    let (start, end) = spans.find(|(start, end)| end - start >= 16 << 30).expect("the region that it reserved");
    assert!(output.contains(&format!("{start:#x}..{end:#x} rw-p")), "{output}");
    assert!(errors.contains("memory grew in every interval\n"), "{errors}");
}

#[test]
fn coverage_by_huge_pages_is_decided_by_an_argument() {
    let array = Array::start();
    let pid = array.child.id().to_string();
    let coverage = |percent| run(&["-x", ":hugepages", &pid, percent, "buffer"]);
    let passed = coverage("0");
    assert!(passed.status.success(), "{passed:?}");
    // A stack is on small pages.
    let failed = run(&["-x", ":hugepages", &pid, "1", "[stack]"]);
    let errors = String::from_utf8_lossy(&failed.stderr);
    assert_eq!(failed.status.code(), Some(1), "{errors}");
    assert!(errors.contains("too little is on huge pages\n"), "{errors}");
    // However many regions the range has, the answer is one short line.
    let of_all = run(&["-x", ":hugepages", &pid, "0", "all"]);
    let text = String::from_utf8_lossy(&of_all.stdout);
    assert!(of_all.status.success() && text.lines().count() == 1 && text.len() < 80, "{text}");
}

#[test]
fn a_script_without_its_argument_says_the_command_line() {
    let failed = run(&["-x", ":same-page", "self"]);
    let errors = String::from_utf8_lossy(&failed.stderr);
    assert_eq!(failed.status.code(), Some(2), "{errors}");
    assert!(errors.contains("pmdb -batch -x :same-page PID LIBRARY"), "{errors}");
}

#[test]
fn what_is_swapped_is_listed_or_none_is() {
    let run = run(&["-x", ":swapped", "self"]);
    let output = String::from_utf8_lossy(&run.stdout);
    let is_none = output.contains("No page of the process is in swap");
    assert_eq!(run.status.success(), is_none, "{run:?}");
}

/// What the package needs is Debian's, and cargo for the list of licences.
fn has_dpkg() -> bool {
    let has = |program| Command::new(program).arg("--version").output().is_ok();
    has("dpkg-deb") && has("gzip") && has("cargo")
}

#[test]
fn the_debian_package_is_installed_used_and_removed() {
    if !has_dpkg() {
        return skip("the_debian_package_is_installed_used_and_removed", "there is no dpkg or no cargo here");
    }
    let root = tempfile::tempdir().expect("a folder");
    let folder = root.path().to_str().expect("a plain path");
    let made = Command::new("scripts/deb")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args([PMDB, "amd64", folder])
        .output()
        .expect("scripts/deb");
    let errors = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{errors}");
    let package = String::from_utf8_lossy(&made.stdout).trim().to_owned();

    let system = root.path().join("system");
    let database = system.join("var/lib/dpkg");
    for part in ["info", "updates", "triggers"] {
        std::fs::create_dir_all(database.join(part)).expect("a folder");
    }
    // What a program of this machine needs.
    let library = "Package: libc6\nStatus: install ok installed\nArchitecture: amd64\nVersion: 99\nMaintainer: nobody\n\
        Description: the library of C\n";
    std::fs::write(database.join("status"), library).expect("a database");
    let dpkg = |arguments: &[&str]| {
        let output = Command::new("dpkg")
            .arg(format!("--root={}", system.display()))
            .args(["--force-not-root", "--force-architecture", "--log=/dev/null"])
            .args(arguments)
            // dpkg looks for these in the path.
            .env("PATH", "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin")
            .output()
            .expect("dpkg");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    dpkg(&["--install", &package]);
    let installed = |path: &str| system.join(path);
    let answer = Command::new(installed("usr/bin/pmdb"))
        .args(["-nx", "-batch", "-ex", "print 6*7"])
        .output()
        .expect("the installed program");
    assert_eq!(String::from_utf8_lossy(&answer.stdout), "$1 = 42  (0x2a)\n");
    for path in [
        "usr/share/man/man1/pmdb.1.gz",
        "usr/share/man/man7/pmdb-json.7.gz",
        "usr/share/man/man7/pmdb-language.7.gz",
        "usr/share/bash-completion/completions/pmdb",
        "usr/share/zsh/vendor-completions/_pmdb",
        "usr/share/fish/vendor_completions.d/pmdb.fish",
        "usr/share/pmdb/records.schema.json",
        "usr/share/pmdb/pmdb-gdb.py",
        "usr/share/pmdb/scripts/tour.pmdb",
        "usr/share/doc/pmdb/copyright",
    ] {
        assert!(installed(path).is_file(), "{path}");
    }
    dpkg(&["--remove", "pmdb"]);
    assert!(!installed("usr/bin/pmdb").exists() && !installed("usr/share/pmdb").exists());
}
