//! Where output goes: pipes, files, and readers that leave.

use crate::run::{Home, feed_without_end, read_some};
use std::fs::File;
use std::process::{Command, Stdio};

#[test]
fn a_command_can_be_piped_through_the_shell() {
    let home = Home::new();
    let run = home.run(&["-batch", "-ex", "echo abc", "-ex", "show pagination | tr a-z A-Z"]);
    assert!(run.is_fine().out.starts_with("abc\n") && run.out.contains("PAGINATION"), "{run:?}");
}

#[test]
fn how_the_shell_command_ended_is_said_if_it_did_not_end_well() {
    let home = Home::new();
    let run = home.run(&["-batch", "-ex", "show | sh -c 'cat >/dev/null; exit 3'", "-ex", "echo on"]);
    assert!(!run.failed(6, "status 3").out.contains("on\n"), "{run:?}");
    let run = home.run(&["-batch", "-ex", "!kill -9 $$"]);
    run.failed(6, "SIGKILL");
    let off = ["-batch", "-ex", "set shell errors off", "-ex", "!exit 3"];
    assert!(home.run(&off).is_fine().out.contains("status 3"));
}

#[test]
fn a_pipe_whose_reader_leaves_is_no_failure() {
    let home = Home::new();
    let run = home.run(&["-batch", "-ex", "help | true", "-ex", "echo on"]);
    assert_eq!(run.is_fine().out, "on\n");
}

#[test]
fn output_can_go_to_a_file_and_be_added_to_one() {
    let home = Home::new();
    let file = home.file("out", "old");
    home.run(&["-batch", "-ex", "show width > ./out"]).is_fine();
    let once = home.read("out");
    assert!(once.contains("width") && !once.contains("old"), "{once}");
    home.run(&["-batch", "-ex", "show width >> ~/out"]).is_fine();
    assert_eq!(home.read("out"), once.repeat(2));
    drop(file);
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_at_its_place() {
    let home = Home::new();
    let run = home.run(&["-batch", "-ex", "show width > /nowhere/out"]);
    run.failed(1, "/nowhere/out cannot be written: no such file or directory").failed(1, "^");
    home.run(&["-batch", "-ex", "show width > /dev/full"]).failed(1, "no space left");
}

#[test]
fn what_cannot_be_written_or_read_is_named_at_its_place() {
    let home = Home::new();
    let full = home.run(&["-batch", "-ex", "show width > /dev/full"]);
    full.failed(1, "/dev/full cannot be written: ");
    let missing = home.run(&["-batch", "-ex", "source ./missing"]);
    missing.failed(1, "cannot read ./missing: ");
    let place = |what: &str| missing.err.lines().find_map(|line| line.find(what));
    let underlined = place("source ./missing").zip(place("^"));
    let (line, mark) = underlined.expect("the line and a mark below it");
    assert_eq!(line + "source ".len(), mark, "{missing:?}");
}

#[test]
fn a_named_pipe_that_nobody_reads_is_an_error_and_no_trap() {
    let home = Home::new();
    let made = Command::new("mkfifo").arg(home.path("pipe")).status().unwrap();
    assert!(made.success());
    home.run(&["-batch", "-ex", "show > ./pipe"]).failed(1, "no program reads this pipe");
}

#[test]
fn json_errors_that_nobody_reads_end_the_run() {
    let home = Home::new();
    let mut child = home.command(&["--json", "--keep-going"]).stdin(Stdio::piped()).spawn().unwrap();
    let feeding = feed_without_end(&mut child, b"frobnicate\n");
    let mut out = child.stdout.take().unwrap();
    assert_eq!(read_some(&mut out, 10).len(), 10);
    drop(out);
    let output = child.wait_with_output().unwrap();
    feeding.join().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(1), "what failed is not forgotten");
}

#[test]
fn a_capture_whose_reader_leaves_has_failed() {
    let home = Home::new();
    for options in [&["-batch"][..], &["-batch", "--json"]] {
        let mut child =
            home.command(options).args(["-ex", "attach self", "-ex", "capture - with memory"]).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        assert_eq!(read_some(&mut out, 10).len(), 10);
        drop(out);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn standard_output_that_is_full_is_a_failure() {
    let home = Home::new();
    let mut command = home.command(&["-batch", "-ex", "show"]);
    command.stdout(File::options().write(true).open("/dev/full").unwrap());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("no space left"), "{said}");
}

#[test]
fn a_reader_that_leaves_ends_the_run_quietly() {
    let home = Home::new();
    let mut child = home.command(&[]).stdin(Stdio::piped()).spawn().unwrap();
    let feeding = feed_without_end(&mut child, b"echo line\n");
    let mut out = child.stdout.take().unwrap();
    assert_eq!(read_some(&mut out, 10), b"line\nline\n");
    drop(out);
    let output = child.wait_with_output().unwrap();
    feeding.join().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn shell_lines_run_and_do_not_eat_the_script() {
    let run = Home::new().run_with(&[], "!echo one\nshell cat\necho two\n");
    assert_eq!(run.is_fine().out, "one\ntwo\n");
}

#[test]
fn no_colours_unless_asked_for() {
    let home = Home::new();
    assert!(!home.run(&["-batch", "-ex", "help"]).is_fine().out.contains('\x1b'));
    assert!(home.run(&["-batch", "-color=always", "-ex", "help"]).is_fine().out.contains('\x1b'));
    let run = home.run(&["-batch", "--color", "always", "-ex", "help | cat"]);
    assert!(!run.is_fine().out.contains('\x1b'), "a shell command reads plain text");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn what_the_kernel_lends_to_a_process_is_no_device_in_a_map() {
    let home = Home::new();
    let lent = ["-batch", "-p", "self", "-ex", "map [vdso]", "-ex", "map"];
    let run = home.run(&lent);
    let shown = &run.is_fine().out;
    assert!(shown.contains("  [vdso]  V"), "{shown}");
    assert!(shown.contains(" V vdso") && !shown.contains("device"), "{shown}");
    // Where there is one: it lies beyond the page map.
    if let Some((_, vsyscall)) = shown.split_once("  [vsyscall]  ") {
        assert!(vsyscall.starts_with("V\n"), "{shown}");
    }
}

#[test]
fn a_file_whose_name_ends_in_svg_gets_a_picture_or_is_left_alone() {
    let home = Home::new();
    let run = home.run(&["-batch", "-p", "self", "-ex", "map stack > ./stack.svg"]);
    assert!(run.is_fine().out.contains("attached"), "{run:?}");
    let svg = home.read("stack.svg");
    let document = roxmltree::Document::parse(&svg).expect("well-formed");
    assert!(document.root_element().has_tag_name("svg"));
    assert!(svg.contains("[stack]") && svg.contains("): map stack</title>"));
    // The same as one command after the process, and with words that a shell has separated.
    home.run(&["self", "map stack > ./quoted.svg"]).is_fine();
    home.run(&["self", "map", "stack", ">", "./words.svg"]).is_fine();
    for file in ["quoted.svg", "words.svg"] {
        assert!(roxmltree::Document::parse(&home.read(file)).is_ok(), "{file}");
    }
    home.run(&["self", "map stack | cat"]).failed(2, "use the shell for pipes and shell commands");
    // In JSON too it is what its name says.
    let json = ["--json", "-batch", "-p", "self", "-ex", "map > './Stack.SVG'"];
    home.run(&json).is_fine();
    assert!(roxmltree::Document::parse(&home.read("Stack.SVG")).is_ok());
    for (line, says) in [
        ("regions > ./stack.svg", "draws no picture"),
        ("map >> ./stack.svg", ">> cannot add to it"),
        ("map > stack.svg", "./stack.svg"),
    ] {
        home.run(&["-batch", "-p", "self", "-ex", line]).failed(1, says).failed(1, "^");
        assert_eq!(home.read("stack.svg"), svg, "{line}");
    }
    let several = "define both\nmap stack\nmap stack\nend\nboth > ./stack.svg\n";
    home.run_with(&["-p", "self"], several).failed(1, "here several commands write");
    assert_eq!(home.read("stack.svg"), svg);
}

#[test]
fn only_a_regular_file_is_replaced() {
    let home = Home::new();
    std::os::unix::fs::symlink(home.path("nowhere"), home.path("link")).expect("a link");
    let pipe = home.path("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).expect("a pipe");
    std::fs::create_dir(home.path("folder")).expect("a folder");
    let lines =
        ["capture FILE", "capture FILE --overwrite", "export core FILE --overwrite", "snapshot a to FILE --overwrite"];
    for (name, what) in [("link", "a symbolic link"), ("folder", "a directory"), ("pipe", "a named pipe")] {
        for line in lines.iter().filter(|line| name != "pipe" || line.ends_with("--overwrite")) {
            let line = line.replace("FILE", name);
            home.run(&["-p", "self", "-batch", "-ex", &line])
                .failed(1, &format!("cannot write {name}: it is {what}\n"));
        }
        if name != "pipe" {
            let out = home.run(&["-batch", "--report", name, "-ex", "assert 1"]);
            out.failed(1, &format!("cannot write {name}: it is {what}\n"));
        }
    }
    for line in ["capture ''", "capture \"\"", "export core ''"] {
        home.run(&["-p", "self", "-batch", "-ex", line]).failed(1, "the name of the file is empty\n");
    }
    assert!(!home.path("nowhere").exists());
    assert!(std::fs::symlink_metadata(&pipe).is_ok_and(|pipe| !pipe.is_file()));
}

/// In a file it comes again: each file is read by itself.
#[test]
fn a_remark_comes_once_in_all_answers_that_go_to_the_same_place() {
    let home = Home::new();
    let lines = ["set width 80", "walk demo_buffer", "walk demo_buffer", "walk demo_buffer > ./walked"];
    let arguments = [&["demo", "-nx", "-batch"][..], &lines.map(|line| ["-ex", line]).concat()].concat();
    let run = home.run(&arguments);
    let remarks = |text: &str| {
        // An ordinary user sees no flags, and a remark why.
        let is_remark = |line: &&str| {
            line.contains("explains flags and their letters") || line.contains("frame numbers are hidden")
        };
        text.lines().filter(is_remark).count()
    };
    let walked = std::fs::read_to_string(home.path("walked")).expect("a file");
    assert_eq!((remarks(&run.is_fine().out), remarks(&walked)), (1, 1), "{run:?}\n{walked}");
}
