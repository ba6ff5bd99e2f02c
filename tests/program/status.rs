//! Exit statuses, and what stops a run.

use crate::executable::{self, Running};
use crate::run::{Home, NOBODY, PMDB};
use crate::skips::skip;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

#[test]
fn success_is_0() {
    let run = Home::new().run(&["-batch", "-ex", "echo one", "-ex", "echo two"]);
    assert_eq!(run.is_fine().out, "one\ntwo\n");
}

#[test]
fn an_error_is_1_and_ends_the_run() {
    let run = Home::new().run(&["-batch", "-ex", "echo one", "-ex", "frobnicate", "-ex", "echo two"]);
    assert_eq!(run.failed(1, "error: ").out, "one\n");
    assert!(run.err.contains("frobnicate\n") && run.err.contains('^'), "{run:?}");
}

#[test]
fn a_wrong_command_line_is_2() {
    let home = Home::new();
    home.run(&["--frobnicate"]).failed(2, "--frobnicate");
    home.run(&["1", "2"]).failed(2, "2");
    home.run(&["self", "snapshot"]).failed(2, "`snapshot` ends with pmdb: write `capture FILE`");
    home.run(&["-ex"]).failed(2, "--ex");
    home.run(&["self", "regions", "--json"]).failed(2, "options precede the process: `pmdb --json self regions`");
    home.run(&["translate"]).failed(2, "`translate` is a command: `pmdb PID translate`\n");
    home.run(&["heap"]).failed(2, "for all processes of a name `pmdb heap of NAME`");
    home.run(&["-batch", "-x", ":nope", NOBODY]).failed(2, "no built-in command file is called :nope");
    home.run(&["-batch", "-x", ":dma", NOBODY]).failed(2, "`:dma` needs BUFFER: pmdb -batch -x :dma PID BUFFER [");
    let surplus = home.run(&["-batch", "-x", ":oom", NOBODY, "3500M", "1", "junk"]);
    surplus.failed(2, "unexpected argument `junk`: pmdb -batch -x :oom PID LIMIT [SECONDS]\n");
    home.run(&["-batch", "-x", ":tour", "demo", "x"]).failed(2, "unexpected argument `x`: pmdb demo -x :tour\n");
    home.run(&["-batch", "-ex", "print 1", "self", "by"]).failed(2, "argument `by`: `-ex` reads no arguments\n");
    home.run(&["-batch", "-x", "no-file", NOBODY]).failed(2, "cannot read no-file: no such file or directory\n");
    home.run(&["translate", "phys:0x1000"]).failed(2, "`pmdb who phys:0x1000` lists those that map the frame\n");
    home.run(&["who", "0x1000"]).failed(2, "`pmdb who phys:0x1000` or `pmdb PID who 0x1000`\n");
}

#[test]
fn no_such_target_is_3() {
    let home = Home::new();
    home.run(&["-p", NOBODY, "-batch"]).failed(3, NOBODY);
    home.run(&["no-such-process", "-batch"]).failed(3, "no-such-process");
    home.run(&["-p", "regions", "-batch"]).failed(3, "no process is called `regions`; `regions` is a command");
    home.run(&["-batch", "-ex", "attach 2147483647"]).failed(3, NOBODY);
}

#[test]
fn a_name_of_several_processes_is_no_process_and_those_that_have_exited_do_not_count() {
    let home = Home::new();
    let name = format!("pmdb-{}", std::process::id());
    let program = home.path(&name);
    executable::copy("/bin/sleep", &program);
    // Once it has become the program, which is when spawn returns, it bears the name.
    let (mut one, mut two) = (Running::sleep(&program), Running::sleep(&program));
    let (first, second) = (one.id().to_string(), two.id().to_string());
    home.run(&["-p", &name, "-batch"]).failed(2, &format!("2 processes are called `{name}`: choose a PID\n"));
    let all = home.run(&[&name, "account", "by", "mapping"]);
    let line = format!("note: for all of them: `pmdb account of {name} by mapping`\n");
    assert!(all.failed(2, "choose a PID\n").out.ends_with(&line), "{all:?}");
    assert!(!home.run(&[&name, "regions"]).failed(2, "choose a PID\n").out.contains("note:"));
    home.run(&[&name, "account", "of", &name]).is_fine();
    let line = format!("compare \"{name}\"");
    home.run(&["demo", "-q", "-batch", "-ex", &line]).failed(1, "`compare PID` compares with one of them\n");
    two.kill().unwrap();
    // It stays a zombie: kill only sends the signal, so wait until it has ended without reaping it.
    let ended = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
    let id = rustix::process::Pid::from_child(&two);
    rustix::process::waitid(rustix::process::WaitId::Pid(id), ended).unwrap();
    let run = home.run(&["-p", &name, "-batch", "--json", "-ex", "info process"]);
    assert!(run.is_fine().out.contains(&first), "{run:?}");
    one.kill().unwrap();
    one.wait().unwrap();
    home.run(&["-p", &name, "-batch"]).failed(3, &format!("process {second} (")).failed(3, "has exited");
    two.wait().unwrap();
    home.run(&["-p", &name, "-batch"]).failed(3, "no process is called `");
    for command in ["compare", "account"] {
        let line = format!("{command} \"{name}\"");
        home.run(&["demo", "-q", "-batch", "-ex", &line]).failed(3, "no process is called `");
    }
    // A name that is only part of others is none of theirs, and they are named. No file has it.
    std::fs::remove_file(&program).unwrap();
    let longer = format!("{name}-worker");
    executable::copy("/bin/sleep", home.path(&longer));
    let worker = Running::sleep(home.path(&longer));
    let similar = format!("no process is called `{name}`; similar names: ");
    home.run(&["-p", &name, "-batch"]).failed(3, &similar).failed(3, &longer);
    let line = format!("account \"{name}\"");
    home.run(&["-batch", "-ex", &line]).failed(3, &similar).failed(3, &longer);
    drop(worker);
    home.run(&["-p", "regions", "-batch"]).failed(3, "`regions` is a command: `pmdb PID regions`\n");
    home.run(&["-p", "print", "-batch"]).failed(3, "`pmdb PID print`, without a process `pmdb -batch -ex print`");
    home.run(&["-p", "info", "-batch"]).failed(3, "`pmdb PID info \u{2026}`\n");
    home.run(&["-p", "account", "-batch"]).failed(3, "for all processes of a name `pmdb account of NAME`");
    home.run(&["-p", "walk", "-batch"]).failed(3, "without a process `pmdb walk pfn:N`");
    // A whole command in one word of the shell runs too.
    home.run(&["-batch", "account \"x\""]).failed(3, "no process is called `x`");
    assert!(home.run(&["-batch", "help dma"]).out.contains("dma"));
    // A frame needs no process.
    for command in ["flags", "summary", "who", "walk"] {
        let run = home.run(&["-batch", command, "pfn:1"]);
        assert!(!run.err.contains("process is called"), "{command}: {run:?}");
    }
    home.run(&["-batch", "-ex", "explain pfn:1"]).failed(1, "is not an address of the process");
    let run = home.run(&["-batch", "self", "translate", "--how", "$nothing"]);
    assert!(!run.failed(1, "`show areas` those of `pmdb demo`").out.contains("0 reads"), "{run:?}");
    let by = home.run(&["-batch", "account", "frames", "by", "node"]);
    by.failed(1, "`account frames` has a row for each class, and no `by`").failed(1, "by node` divides frames");
    home.run(&["-batch", "vmmap"]).failed(3, "as a command it is regions: pmdb PID regions");
    home.run(&["-batch", "tour"])
        .failed(3, "no process is called `tour`; the tour needs the demonstration: `pmdb demo tour`\n");
    home.run(&["-p", "demo", "-batch"]).failed(3, "no process is called `demo`; in a shell, `pmdb demo` starts");
    home.run(&["-batch", "man"]).failed(3, "as a command it is help: pmdb help");
    home.run(&["-batch", "track"]).failed(3, "is a command of the gdb plugin");
}

#[test]
fn a_name_is_that_of_the_process_before_that_of_its_executable() {
    let home = Home::new();
    let name = format!("sh-{}", std::process::id());
    let program = home.path(&name);
    executable::copy("/bin/sh", &program);
    let start = |line: &str| {
        let mut shell = Command::new(&program)
            .args(["-c", &format!("{line}; echo; read end")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0];
        shell.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        shell
    };
    let mut own = start(":");
    let mut renamed = start("echo another > /proc/$$/comm");
    let run = home.run(&["-p", &name, "-batch", "--json", "-ex", "info process"]);
    assert!(run.is_fine().out.contains(&format!("\"pid\":{}", own.id())), "{run:?}");
    // All processes of a name include those of its executable.
    let both = home.run(&["-batch", &format!("account of {name}")]);
    assert!(both.is_fine().out.contains("2 processes"), "{both:?}");
    home.run(&["-batch", "account", &name]).failed(2, "the process comes first: `pmdb sh-");
    home.run(&["-batch", "account", "no-such-process", "by", "mapping"]).failed(
        2,
        "no process is called `no-such-process`, and the process comes first: `pmdb PID account by mapping`",
    );
    own.kill().unwrap();
    own.wait().unwrap();
    home.run(&["-p", &name, "-batch", "-ex", "info process"]).is_fine();
    renamed.kill().unwrap();
    renamed.wait().unwrap();
}

#[test]
fn a_target_that_may_not_be_looked_at_is_4() {
    let home = Home::new();
    let pid = std::process::id().to_string();
    let (mut command, denied) = if rustix::process::geteuid().is_root() {
        // As a user who may not read this test's memory, and perhaps not the folder of the build.
        let program = home.path("pmdb");
        executable::copy(PMDB, &program);
        std::fs::set_permissions(home.path(""), PermissionsExt::from_mode(0o755)).unwrap();
        let mut command = Command::new(program);
        command.uid(65534).gid(65534).args(["-p", &pid, "-batch"]);
        (command, &*pid)
    } else if std::fs::metadata("/proc/1")
        .is_ok_and(|init| std::os::unix::fs::MetadataExt::uid(&init) != rustix::process::geteuid().as_raw())
    {
        (home.command(&["-p", "1", "-batch"]), "1")
    } else {
        return skip("a_target_that_may_not_be_looked_at_is_4", "process 1 is ours, so it may be looked at");
    };
    let also = format!("account of {denied}");
    command.args(["--keep-going", "-ex", &also]);
    let output = command.env("HOME", home.path("")).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("sudo"), "the remedy: {said}");
    // A sum of nothing is no answer.
    assert_eq!((said.matches("may not open").count(), output.stdout.len()), (2, 0), "{said}");
}

#[test]
fn kept_going_the_first_failure_gives_the_status() {
    let home = Home::new();
    let lines = ["-ex", "attach 2147483647", "-ex", "frobnicate", "-ex", "echo end"];
    let run = home.run(&[&["-batch", "--keep-going"][..], &lines].concat());
    assert_eq!(run.failed(3, "frobnicate").out, "end\n");
    let file = home.file("f", "frobnicate\necho on\n");
    let run = home.run(&["-batch", "--keep-going", "-x", file.to_str().unwrap(), "-ex", "echo end"]);
    assert_eq!(run.failed(1, "f:1:1: error: ").out, "on\nend\n");
    // Also where a jump ends the turn of the loop.
    let turns = "set $i = 0\nwhile $i < 2\nset $i = $i + 1\nif 1\nattach 2147483647\nloop_continue\nend\necho no\nend\nfrobnicate\necho end\n";
    let run = home.run_with(&["--keep-going"], turns);
    assert_eq!(run.failed(3, "2147483647").out, "end\n");
}

#[test]
fn quit_ends_with_the_status_it_is_given() {
    let home = Home::new();
    let run = home.run(&["-batch", "-ex", "quit 7", "-ex", "echo no"]);
    assert_eq!((run.status, run.out.as_str()), (Some(7), ""));
    home.run_with(&[], "quit\nfrobnicate\n").is_fine();
}

#[test]
fn help_and_version_are_no_failures() {
    let home = Home::new();
    let all = ["--keep-going", "--serve", "--report", "Exit status"];
    for option in ["--help", "-help", "-h"] {
        let run = home.run(&[option]);
        for word in ["-ex", "--batch", "--json"] {
            assert!(run.is_fine().out.contains(word), "{word} in {option}");
        }
        let is_short = option == "-h";
        for word in all {
            assert_eq!(run.out.contains(word), !is_short, "{word} in {option}");
        }
        assert!(!is_short || run.out.lines().count() < 30, "{}", run.out);
    }
    let version = concat!("pmdb ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(home.run(&["-V"]).is_fine().out, version);
    let long = home.run(&["--version"]).is_fine().out.clone();
    assert!(long.starts_with(version) && long.contains("target"), "{long}");
}

/// An existing process is not reported as absent when pmdb lacks files or rights to inspect it.
#[test]
fn too_few_files_are_the_reason_and_not_an_absent_process() {
    let home = Home::new();
    for files in 4..12 {
        let script = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
        let pid = std::process::id().to_string();
        let output = Command::new("sh")
            .args(["-c", &script, PMDB, "-nx", "-batch", "-p", &pid, "-ex", "info process"])
            .current_dir(home.path("."))
            .stdin(Stdio::null())
            .output()
            .expect("a shell");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("no such process"), "{files}: {said}");
        // Files that other threads of the tests have open may reach the shell: then not even pmdb's libraries can be
        // opened.
        let is_started = !said.contains("error while loading shared libraries");
        assert!(
            output.status.success() || !is_started || said.to_lowercase().contains("open files"),
            "{files}: {said}"
        );
    }
}

#[test]
fn an_absent_proc_is_the_reason_and_not_an_absent_process() {
    const NAME: &str = "an_absent_proc_is_the_reason_and_not_an_absent_process";
    let home = Home::new();
    let run = |what: &str| -> crate::run::Run {
        let script = "mount -t tmpfs none /proc && exec \"$0\" \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, PMDB, "-nx", "-batch", "-p", what, "-ex", "info process"]);
        command.current_dir(home.path(".")).stdin(Stdio::null());
        command.output().expect("unshare").into()
    };
    if !rustix::process::geteuid().is_root() {
        return skip(NAME, "only root may mount");
    }
    for what in [std::process::id().to_string(), "some-name".to_owned()] {
        run(&what).failed(1, "/proc is not mounted");
    }
}
