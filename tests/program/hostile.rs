//! Input of every bad kind: each gets a clear error, and nothing hangs or panics.

use crate::run::{Home, PMDB, feed_without_end, read_some};
use crate::skips::skip;
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

#[test]
fn command_files_that_are_none() {
    let home = Home::new();
    home.run(&["-batch", "-x", "missing"]).failed(2, "cannot read missing: no such file");
    // A command before it may make the file.
    home.run(&["-batch", "-ex", "echo a", "-x", "missing"]).failed(1, "cannot read missing: no such file");
    home.run(&["-batch", "-x", "/"]).failed(1, "cannot read /: it is a directory");
    home.run(&["-batch", "-x", PMDB]).failed(1, "binary file");
    home.run(&["-batch", "-x", "/dev/zero"]).failed(1, "binary file");
    // Whole, even of somebody who wants to carry on: a line of it could happen to be one for the shell.
    home.file("binary", b"\x7fELF\n!touch trap\necho never\n\0\n");
    let run = home.run(&["-batch", "--keep-going", "-x", "binary"]);
    assert_eq!(run.failed(1, "binary is not run: ").out, "");
    let input = home.run_with(&["--keep-going"], b"!touch trap\n\0\n");
    assert_eq!(input.failed(1, "<stdin> is not run: ").out, "");
    assert!(!home.path("trap").exists());
    home.file("latin1", b"echo caf\xe9\n");
    home.run(&["-batch", "-x", "latin1"]).failed(1, "latin1:1:9: error: ").failed(1, "UTF-8");
}

#[test]
fn the_name_of_a_process_is_taken_as_it_is_printed() {
    let home = Home::new();
    let unique = std::process::id() % 1000;
    let script = format!("printf 'q{unique}\\033\\377' > /proc/self/comm; echo ready; read line");
    let mut shell = std::process::Command::new("/bin/sh");
    let mut shell = shell.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(read_some(shell.stdout.as_mut().unwrap(), 6), b"ready\n");
    let listed = home.run(&["-batch", "-ex", &format!("ps {}", shell.id())]);
    let name = format!("q{unique}\\x1b\\xff");
    assert!(listed.is_fine().out.contains(&name), "{listed:?}");
    for line in [format!("attach '{name}'"), format!("attach \"{name}\""), format!("account of '{name}' top 1")] {
        home.run(&["-batch", "-ex", &line]).is_fine();
    }
    let offered = home.run(&["-batch", "-ex", &format!("complete \"attach q{unique}\"")]);
    assert_eq!(offered.is_fine().out, format!("attach '{name}'\n"));
    shell.kill().unwrap();
    shell.wait().unwrap();
}

#[test]
fn a_command_file_that_may_not_be_read() {
    let home = Home::new();
    let secret = home.file("secret", "echo never\n");
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o000)).unwrap();
    if std::fs::File::open(&secret).is_ok() {
        return skip("a_command_file_that_may_not_be_read", "this user may read every file");
    }
    home.run(&["-batch", "-x", "secret"]).failed(1, "cannot read secret: permission denied");
}

#[test]
fn a_line_without_end_and_what_follows_it() {
    let home = Home::new();
    let mut long = vec![b'('; 3 << 20];
    long.extend(b"\necho on\n");
    home.file("long", long);
    let run = home.run(&["-batch", "--keep-going", "-x", "long"]);
    assert_eq!(run.failed(1, "long:1:1: error: ").failed(1, "longer than").out, "on\n");
}

#[test]
fn two_hundred_thousand_parentheses() {
    let home = Home::new();
    home.file("deep", format!("print {}\n", "(".repeat(200_000)));
    let run = home.run(&["-batch", "-x", "deep"]);
    run.failed(1, "deep:1:");
    assert!(run.err.len() < 2000, "an error is for reading: {} bytes", run.err.len());
}

#[test]
fn an_endless_file_ends_at_ctrl_c() {
    let home = Home::new();
    let mut child = home.command(&[]).stdin(Stdio::piped()).spawn().unwrap();
    let feeding = feed_without_end(&mut child, b"echo line\n");
    let mut out = child.stdout.take().unwrap();
    assert_eq!(read_some(&mut out, 5), b"line\n");
    let reading = std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let status = child.wait().unwrap();
    feeding.join().unwrap();
    reading.join().unwrap().unwrap();
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "as a shell expects of it");
}

#[test]
fn a_pipe_that_nobody_writes_to_ends_at_ctrl_c() {
    let home = Home::new();
    let made = std::process::Command::new("mkfifo").arg(home.path("pipe")).status().unwrap();
    assert!(made.success());
    let mut child = home.command(&["-batch", "-ex", "echo ready", "-x", "pipe"]).spawn().unwrap();
    assert_eq!(read_some(child.stdout.as_mut().unwrap(), 6), b"ready\n");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(Signal::INT.as_raw()));
}

#[test]
fn nothing_raw_comes_back() {
    let run = Home::new().run_with(&[], "frobnicate \x1b[31m\u{202e}\u{7}\n");
    assert!(!run.failed(1, "frobnicate").err.contains(['\x1b', '\u{202e}', '\u{7}']), "{run:?}");
}

#[test]
fn an_init_file_that_others_may_write_is_not_run() {
    let home = Home::new();
    let init = home.file(".config/pmdb/init", "echo ran\n");
    let run = || home.run(&["-batch", "-ex", "echo on"]);
    assert!(run().is_fine().out.contains("ran"));
    std::fs::set_permissions(&init, PermissionsExt::from_mode(0o666)).unwrap();
    let refused = run();
    assert!(!refused.out.contains("ran") && refused.out.contains("on"), "{refused:?}");
    let said = format!("{}{}", refused.out, refused.err);
    assert!(said.contains("is not run: it can be written by every user"), "{said}");
    // The same beside it, wherever it is named.
    let named = home.run(&["-batch", "-nx", "-x", init.to_str().unwrap()]);
    named.failed(1, "is not run: it can be written by every user");
    std::fs::remove_file(&init).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &init, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    let said = run();
    assert!(format!("{}{}", said.out, said.err).contains("is not run: it is a named pipe"), "{said:?}");
}

#[test]
fn a_time_zone_that_is_no_file_is_not_waited_for() {
    let home = Home::new();
    let pipe = home.path("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    let mut command =
        home.command(&["-batch", "-p", "self", "-ex", "info process", "-ex", "watch $sp every 1ms for 5ms"]);
    let output = command.env("TZ", format!(":{}", pipe.display())).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("times are in UTC: TZ is"), "{said}");
}
