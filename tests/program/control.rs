//! Command files that decide: blocks, arguments, assertions, and the exit statuses that follow.

use crate::run::{Home, Run};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

fn run_file(text: &str, arguments: &[&str]) -> Run {
    let home = Home::new();
    home.file("f.pmdb", text);
    home.run(&[&["-batch", "-x", "f.pmdb"][..], arguments].concat())
}

#[test]
fn blocks_run_as_in_gdb() {
    let text = "set $i = 0\nwhile $i < 5\nset $i = $i + 1\nif $i == 2\nloop_continue\nelse\nif $i == 4\nloop_break\nend\nend\nprint $i\nend\nif 0\necho no\nelse\necho yes\nend\nforeach $s in 1 + 1, \"two\", 0x10..0x20\nprint $s\nend\n";
    let run = run_file(text, &[]);
    assert_eq!(
        run.is_fine().out,
        "$1 = 1\n$2 = 3\nyes\n$3 = 2\n$4 = two\n$5 = 0x10..0x20  (16 bytes)\n"
    );
}

#[test]
fn commands_of_your_own_take_values() {
    let text = "define twice\nprint $argc\nprint $arg0 * 2\nprint $arg1\nend\ndocument twice\nDoubles it.\nMore of it.\nend\ntwice (1 + 2) \"a b\" word\nhelp twice\nhelp user-defined\nalias three = twice 3\nthree x\n";
    let run = run_file(text, &[]);
    assert_eq!(
        run.is_fine().out,
        "$1 = 3\n$2 = 6\n$3 = a b\ntwice\n  Doubles it.\n  More of it.\nuser-defined: commands that you made\n  twice               Doubles it.\n$4 = 2\n$5 = 6\n$6 = x\n"
    );
    for (text, says) in [
        ("define walk\nend", "f.pmdb:1:8: error: `walk` is a command"),
        ("define w\nend", "f.pmdb:1:8: error: `w` is a command"),
        (
            "alias xx = echo a\nalias p = xx",
            "f.pmdb:2:7: error: `p` is a command",
        ),
        (
            "document mine\nend",
            "f.pmdb:1:10: error: no command of yours",
        ),
        ("define again\nagain\nend\nagain", "100 levels deep"),
        ("alias again = again\nagain", "stands for itself"),
        ("print $arg0", "$arg0 has not been set"),
        (
            "define mine\nprint $arg1\nend\nmine 1",
            "f.pmdb:2:7: error: $arg1",
        ),
        ("define mine\nend\nmine 1 1/0", "f.pmdb:3:"),
    ] {
        run_file(text, &[]).failed(1, says);
    }
    // An abbreviation may be taken, and a command that is not made yet is none.
    assert_eq!(
        run_file("define wh\necho mine\nend\nwh", &[]).is_fine().out,
        "mine\n"
    );
    run_file("later\ndefine later\nend", &[]).failed(1, "f.pmdb:1:1: error: there is no command");
}

#[test]
fn a_block_that_is_not_closed_is_an_error_before_anything_runs() {
    for (text, says) in [
        (
            "echo a\n  while 1\necho b\n",
            "f.pmdb:2:3: error: this `while` has no `end`",
        ),
        ("echo a\nend\n", "f.pmdb:2:1: error: there is no block"),
        (
            "echo a\nloop_break\n",
            "f.pmdb:2:1: error: there is no loop",
        ),
        (
            "echo a\nif\nend\n",
            "f.pmdb:2:3: error: something is missing",
        ),
    ] {
        assert_eq!(run_file(text, &[]).failed(1, says).out, "", "{text}");
    }
    // What is wrong with a line by itself is said when it is its turn, as ever.
    let run = run_file("echo a\nif 1\necho b\nfrobnicate\nend\n", &[]);
    assert_eq!(
        run.failed(1, "f.pmdb:4:1: error: there is no command").out,
        "a\nb\n"
    );
    // What comes through a pipe runs as it comes, a block as soon as it is whole.
    let run = Home::new().run_with(&[], "echo a\nif 1\necho b\nend\nwhile 1\n");
    assert_eq!(
        run.failed(1, "<stdin>:5:1: error: this `while`").out,
        "a\nb\n"
    );
}

#[test]
fn a_large_file_is_refused_at_a_line_and_runs_no_command() {
    let run = run_file(&"echo hello\n".repeat(1 << 20), &[]);
    assert_eq!(
        run.failed(1, "f.pmdb:381301:1: error: more than 4 MiB").out,
        ""
    );
}

#[test]
fn ex_cannot_hold_a_block_and_says_so() {
    Home::new()
        .run(&["-batch", "-ex", "if 1", "-ex", "end"])
        .failed(1, "-ex has it");
}

#[test]
fn ctrl_c_leaves_an_endless_loop() {
    let home = Home::new();
    home.file("f", "echo ready\nwhile 1\nset $i = 1\nend\n");
    let mut command = home.command(&["-batch", "-x", "f"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut ready = [0; 6];
    let out = child.stdout.as_mut().expect("its output");
    std::io::Read::read_exact(out, &mut ready).expect("it says when");
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("a signal");
    let status = child.wait().expect("it ends");
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(2),
        "as a shell expects of what Ctrl-C has ended"
    );
}

#[test]
fn a_file_is_a_program_with_arguments_and_a_help() {
    let home = Home::new();
    let text = "#!/usr/bin/env -S pmdb -batch -x\n# Adds one.\n#\n#     f.pmdb PID NUMBER\n\nprint $argc\nprint $arg0 + 1\nprint $arg1\n";
    let file = home.file("f.pmdb", text);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).expect("its rights");
    let run = home.run(&["-batch", "-x", "f.pmdb", "self", "80", "a b"]);
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(
        run.out.ends_with("$1 = 2\n$2 = 81  (0x51)\n$3 = a b\n"),
        "{run:?}"
    );
    let run = home.run(&["-batch", "-x", "f.pmdb", "--args", "0x10", "-7"]);
    assert_eq!(
        run.is_fine().out,
        "$1 = 2\n$2 = 17  (0x11)\n$3 = -7  (0xfffffffffffffff9)\n"
    );
    let run = home.run(&["-batch", "-x", "f.pmdb", "--help"]);
    assert_eq!(run.is_fine().out, "Adds one.\n\n    f.pmdb PID NUMBER\n");
    // As the kernel starts it.
    let mut path = std::path::PathBuf::from(crate::run::PMDB);
    path.pop();
    let mut command = std::process::Command::new(&file);
    command
        .args(["--args", "1", "2"])
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", path.display()));
    let output = command
        .env("HOME", home.path(""))
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    assert_eq!(Run::from(output).is_fine().out, "$1 = 2\n$2 = 2\n$3 = 2\n");
    // Files give one another arguments, and get their own back.
    home.file("outer", "source inner 7 \"x y\"\nprint $arg0\n");
    home.file("inner", "print $arg0\nprint $arg1\n");
    let run = home.run(&["-batch", "-x", "outer", "--args", "5"]);
    assert_eq!(run.is_fine().out, "$1 = 7\n$2 = x y\n$3 = 5\n");
}

#[test]
fn an_assertion_that_fails_shows_the_values_that_decided() {
    assert_eq!(
        run_file("assert 1\nassert 2 > 1, \"never\"\necho on\n", &[])
            .is_fine()
            .out,
        "on\n"
    );
    let run = run_file(
        "set $n = 412\nassert $n == 512, \"all of them\"\necho no\n",
        &[],
    );
    let says = "f.pmdb:2:8: error: all of them: $n = 412, 512 wanted";
    assert_eq!(run.failed(1, says).out, "");
    for (condition, says) in [
        ("$n >= 512", "$n = 412, at least 512 wanted"),
        ("$n == $m", "$n = 412; $m = 3"),
        ("$n == 412 && $m == 4", "fails: $m = 3, 4 wanted"),
        ("$n == 1 || $m == 4", "$n = 412, 1 wanted; $m = 3, 4 wanted"),
        ("!$n", "$n = 412"),
        ("$n - 412", "$n - 412 = 0"),
    ] {
        let text = format!("set $n = 412\nset $m = 3\nassert {condition}\n");
        run_file(&text, &[]).failed(1, says);
    }
}

#[test]
fn kept_going_all_assertions_are_made_and_reported() {
    let home = Home::new();
    home.file(
        "f",
        "assert 1\nassert 1 == 2\nassert nothing == 1\nassert 1\n",
    );
    let run = home.run(&["-batch", "--keep-going", "--report", "r.xml", "-x", "f"]);
    let last = "2 assertions held, 1 failed, 1 could not be answered\n";
    assert_eq!(run.failed(1, "f:2:8: error: ").out, last);
    let report = home.read("r.xml");
    for part in [
        "tests=\"4\" failures=\"1\" errors=\"1\"",
        "name=\"1 == 2\" file=\"f\" line=\"2\"",
        "<failure message=\"the assertion fails: 1 = 1, 2 wanted\"/>",
    ] {
        assert!(report.contains(part), "{part} in {report}");
    }
    let run = home.run(&["-batch", "--json", "--keep-going", "-x", "f"]);
    let objects = run.objects();
    let holds: Vec<_> = objects
        .iter()
        .filter(|one| one["type"] == "assertion")
        .map(|one| one["holds"].clone())
        .collect();
    assert_eq!(holds, [true, false, true]);
    let last = objects.last().expect("a summary");
    assert_eq!(
        (&last["type"], &last["failed"]),
        (&"assertions-summary".into(), &1.into())
    );
    home.run(&["-batch", "--report", "no/such/folder", "-ex", "assert 1"])
        .failed(1, "cannot be written");
}

#[test]
fn a_shell_command_that_fails_is_status_6() {
    let home = Home::new();
    for line in [
        "!false",
        "shell exit 3",
        "help | false",
        "pipe help | exit 4",
        "!kill -9 $$",
    ] {
        let run = home.run(&["-batch", "-ex", line, "-ex", "echo no"]);
        assert!(
            !run.failed(6, "the shell command").out.contains("no\n"),
            "{line}"
        );
        let run = home.run(&[
            "-batch",
            "-ex",
            "set shell errors off",
            "-ex",
            line,
            "-ex",
            "echo on",
        ]);
        assert_eq!(run.status, Some(0), "{line}: {run:?}");
        assert!(run.out.ends_with("on\n"), "{line}");
    }
    // SIGPIPE is nobody's fault, on either side.
    for line in [
        "help | head -1",
        "!yes | head -1",
        "!kill -PIPE $$",
        "help | kill -PIPE $$",
    ] {
        let run = home.run(&["-batch", "-ex", line, "-ex", "echo on"]);
        assert!(
            run.status == Some(0) && run.out.ends_with("on\n"),
            "{line}: {run:?}"
        );
    }
    let run = home.run(&[
        "-batch",
        "--keep-going",
        "-ex",
        "!exit 3",
        "-ex",
        "print $_shell_exitcode",
    ]);
    assert_eq!(run.failed(6, "status 3").out, "$1 = 3\n");
}

#[test]
fn a_watch_that_waits_in_vain_is_status_5() {
    let home = Home::new();
    for (line, status) in [
        ("watch demo_buffer for 50ms until swapped", 5),
        ("watch demo_buffer for 10s until present", 0),
        ("watch demo_buffer for 10s until none swapped", 0),
        ("watch demo_buffer for 50ms until all untouched", 5),
        ("watch $anonymous for 10s until rss($anonymous) > 1", 0),
        ("watch $anonymous for 50ms until rss($anonymous) == 1", 5),
        ("watch demo_buffer for 50ms", 0),
    ] {
        let run = home.run(&["demo", "-batch", "-ex", line]);
        assert_eq!(run.status, Some(status), "{line}: {run:?}");
    }
}

#[test]
fn rows_of_regions_and_walks_are_gone_through() {
    let home = Home::new();
    home.file(
        "f",
        "set $n = 0\nforeach $r in regions where writable\nset $n = $n + 1\nassert size($r) > 0\nend\n\
         assert $n > 3\nset $pages = 0\nforeach $p in walk demo_buffer where present\nset $pages = $pages + size($p) / 1p\nend\n\
         assert $pages == count(demo_buffer where present)\nforeach $r in regions where size > 1T\necho none\nend\n",
    );
    assert_eq!(
        home.run(&["demo", "-batch", "-x", "f"])
            .is_fine()
            .out
            .lines()
            .filter(|line| line.contains("none"))
            .count(),
        0
    );
    // A text is one wherever texts stand.
    home.file(
        "texts",
        "define called\nforeach $r in regions where name == $arg0\nprint name($r)\nend\ninfo symbols $arg1\nend\ncalled \"[stack]\" \"^demo_counter$\"\n",
    );
    let run = home.run(&["demo", "-batch", "-x", "texts"]);
    let out = &run.is_fine().out;
    assert!(
        out.contains("= [stack]\n") && out.contains("demo_counter"),
        "{out}"
    );
    home.file("g", "foreach $r in regions\ndetach\nend\n");
    home.run(&["demo", "-batch", "-x", "g"])
        .failed(1, "g:2:1: error: `detach` cannot stand in `foreach`");
}
