//! Command files that decide: blocks, arguments, assertions, and the exit statuses that follow.

use crate::executable;
use crate::run::{Home, Run};
use crate::sample::sample;
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
    assert_eq!(run.is_fine().out, "$1 = 1\n$2 = 3\nyes\n$3 = 2\n$4 = two\n$5 = 0x10..0x20  (16 bytes)\n");
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
        ("define walk\nend", "f.pmdb:1:8: error: `walk` is already a pmdb command"),
        ("define w\nend", "f.pmdb:1:8: error: `w` is already a pmdb command"),
        ("alias xx = echo a\nalias p = xx", "f.pmdb:2:7: error: `p` is already a pmdb command"),
        ("document mine\nend", "f.pmdb:1:10: error: you have defined no command"),
        ("define again\nagain\nend\nagain", "100 levels deep"),
        ("alias again = again\nagain", "is an alias for itself"),
        (
            "alias aa = echo a\nalias bb = aa\nalias aa = bb x",
            "f.pmdb:3:12: error: the alias `aa` is an alias for itself",
        ),
        ("alias forever = while", "f.pmdb:1:17: error: `while` is a line of a block"),
        ("alias last = end", "f.pmdb:1:14: error: `end` is a line of a block"),
        ("alias pw = walk all wher present", "f.pmdb:1:21: error: unexpected `wher`"),
        ("alias pw = frobnicate heap", "f.pmdb:1:12: error: there is no command"),
        ("print $arg0", "$arg0 has no value: there were fewer arguments"),
        ("print $arg0", "arguments follow the name of your command"),
        ("define mine\nprint $arg1\nend\nmine 1", "f.pmdb:2:7: error: $arg1"),
        ("define mine\nend\nmine 1 1/0", "f.pmdb:3:"),
        ("define mine\nend\nmine 1 &", "f.pmdb:3:8: error: a lone `&`"),
        (
            "define mine\nprint $arg0\nend\nmine 1 2",
            "f.pmdb:4:8: error: unexpected argument `2`: `mine` reads only $arg0",
        ),
    ] {
        run_file(text, &[]).failed(1, says);
    }
    let chain: String = (1..100).map(|number| format!("alias a{number} = a{} x\n", number - 1)).collect();
    let run = run_file(&format!("alias a0 = echo\n{chain}alias pw = print (\na99 \\n\npw 1)\n"), &[]);
    assert_eq!(run.is_fine().out, format!("{}\n$1 = 1\n", "x ".repeat(99)));
    // The name of a user's command may be an abbreviation. A command that is not defined yet does not exist.
    assert_eq!(run_file("define wh\necho mine\nend\nwh", &[]).is_fine().out, "mine\n");
    run_file("later\ndefine later\nend", &[]).failed(1, "f.pmdb:1:1: error: there is no command");
}

#[test]
fn a_block_that_is_not_closed_is_an_error_before_anything_runs() {
    for (text, says) in [
        ("echo a\n  while 1\necho b\n", "f.pmdb:2:3: error: this `while` has no `end`"),
        ("echo a\nend\n", "f.pmdb:2:1: error: there is no block"),
        ("echo a\nloop_break\n", "f.pmdb:2:1: error: there is no loop"),
        ("echo a\nif\nend\n", "f.pmdb:2:3: error: incomplete command"),
    ] {
        assert_eq!(run_file(text, &[]).failed(1, says).out, "", "{text}");
    }
    // A line without a value is reported when it runs, and a wrong line outside of blocks too.
    for line in ["if 1\nprint nowhere\nend", "frobnicate"] {
        let run = run_file(&format!("echo a\n{line}\n"), &[]);
        assert_eq!(run.failed(1, "f.pmdb:").out, "a\n");
    }
    // Lines from a pipe run as they come, a block as soon as it is complete.
    let run = Home::new().run_with(&[], "echo a\nif 1\necho b\nend\nwhile 1\n");
    assert_eq!(run.failed(1, "<stdin>:5:1: error: this `while`").out, "a\nb\n");
}

#[test]
fn a_large_file_is_refused_at_a_line_and_runs_no_command() {
    // Every line is parsed before the first one runs.
    for words in sample([10, 30, 200, 1000], 4) {
        let line = format!("echo {}\n", "hello".repeat(words));
        let too_many = (4 << 20) / line.len() + 1;
        let run = run_file(&line.repeat(2 * too_many), &[]);
        let error = format!("f.pmdb:{too_many}:1: error: the command file, or the block, is larger than 4 MiB");
        assert_eq!(run.failed(1, &error).out, "");
    }
}

#[test]
fn ex_cannot_hold_a_block_and_says_so() {
    Home::new().run(&["-batch", "-ex", "if 1", "-ex", "end"]).failed(1, "-ex is one line");
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
    let file = home.path("f.pmdb");
    executable::write(&file, text);
    let run = home.run(&["-batch", "-x", "f.pmdb", "self", "80", "a b"]);
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(run.out.ends_with("$1 = 2\n$2 = 81  (0x51)\n$3 = a b\n"), "{run:?}");
    let run = home.run(&["-batch", "-x", "f.pmdb", "--args", "0x10", "-7"]);
    assert_eq!(run.is_fine().out, "$1 = 2\n$2 = 17  (0x11)\n$3 = -7  (0xfffffffffffffff9)\n");
    home.run(&["-batch", "-x", "f.pmdb", "--args"])
        .failed(2, "`f.pmdb` needs NUMBER: pmdb -batch -x f.pmdb PID NUMBER");
    home.run(&["-batch", "-x", "f.pmdb", "self", "1", "2", "3"])
        .failed(2, "unexpected argument `3`: pmdb -batch -x f.pmdb");
    let run = home.run(&["-batch", "-x", "f.pmdb", "--help"]);
    assert_eq!(run.is_fine().out, "Adds one.\n\n    f.pmdb PID NUMBER\n");
    // As the kernel starts it.
    let mut path = std::path::PathBuf::from(crate::run::PMDB);
    path.pop();
    let mut command = std::process::Command::new(&file);
    command.args(["--args", "1", "2"]).env_clear().env("PATH", format!("{}:/usr/bin:/bin", path.display()));
    let output = command.env("HOME", home.path("")).stdin(Stdio::null()).output().expect("it runs");
    assert_eq!(Run::from(output).is_fine().out, "$1 = 2\n$2 = 2\n$3 = 2\n");
    // Files give one another arguments, and get their own back.
    home.file("outer", "source inner 7 \"x y\"\nprint $arg0\n");
    home.file("inner", "print $arg0\nprint $arg1\n");
    let run = home.run(&["-batch", "-x", "outer", "--args", "5"]);
    assert_eq!(run.is_fine().out, "$1 = 7\n$2 = x y\n$3 = 5\n");
    home.run(&["-batch", "-x", "outer", "--args", "5", "6"]).failed(2, "argument `6`: `outer` reads only $arg0\n");
    home.file("more", "source inner 1 2 3\n");
    home.run(&["-batch", "-x", "more"]).failed(1, "more:1:18: error: unexpected argument `3`: `inner` reads only");
}

#[test]
fn an_assertion_that_fails_shows_the_values_that_decided() {
    assert_eq!(run_file("assert 1\nassert 2 > 1, \"never\"\necho on\n", &[]).is_fine().out, "on\n");
    let run = run_file("set $n = 412\nassert $n == 512, \"all of them\"\necho no\n", &[]);
    let says = "f.pmdb:2:8: error: all of them: $n = 412, expected 512";
    assert_eq!(run.failed(1, says).out, "");
    for (condition, says) in [
        ("$n >= 512", "$n = 412, expected at least 512"),
        ("$n == $m", "$n = 412; $m = 3"),
        ("$n == 412 && $m == 4", "fails: $m = 3, expected 4"),
        ("$n == 1 || $m == 4", "$n = 412, expected 1; $m = 3, expected 4"),
        ("!$n", "$n = 412"),
        ("$n - 412", "$n - 412 = 0; $n = 412"),
        ("$n - $m == $n - 400", "$n - $m = 409; $n = 412; $m = 3; $n - 400 = 12"),
    ] {
        let text = format!("set $n = 412\nset $m = 3\nassert {condition}\n");
        run_file(&text, &[]).failed(1, says);
    }
}

#[test]
fn kept_going_all_assertions_are_made_and_reported() {
    let home = Home::new();
    home.file("f", "assert 1\nassert 1 == 2\nassert nothing == 1\nassert 1\n");
    let run = home.run(&["-batch", "--keep-going", "--report", "r.xml", "-x", "f"]);
    let last = "2 assertions held, 1 failed, 1 could not be evaluated\n";
    assert_eq!(run.failed(1, "f:2:8: error: ").out, last);
    let report = home.read("r.xml");
    for part in [
        "tests=\"4\" failures=\"1\" errors=\"1\"",
        "name=\"1 == 2\" file=\"f\" line=\"2\"",
        "<failure message=\"the assertion fails: 1 == 2\">f:2:8: assert 1 == 2</failure>",
    ] {
        assert!(report.contains(part), "{part} in {report}");
    }
    // A line that is no assertion, and fails, does not leave the report green.
    home.file("g", "assert 1\nfrobnicate\n");
    home.run(&["-batch", "--report", "r.xml", "-x", "g"]).failed(1, "g:2:1: error: ");
    let report = home.read("r.xml");
    for part in ["tests=\"2\" failures=\"0\" errors=\"1\"", "name=\"frobnicate\" file=\"g\" line=\"2\""] {
        assert!(report.contains(part), "{part} in {report}");
    }
    // Names are what was typed, evaluated or not.
    home.file("h", "assert 1K  <  8MiB and 1, \"no\"\nassert 8K == nowhere\nassert nowhere(1) == 8K, \"no\"\n");
    home.run(&["-batch", "--keep-going", "--report", "r.xml", "-x", "h"]).failed(1, "h:2:");
    let report = home.read("r.xml");
    for name in ["1K  &lt;  8MiB and 1", "8K == nowhere", "nowhere(1) == 8K"] {
        assert!(report.contains(&format!("name=\"{name}\"")), "{name} in {report}");
    }
    let run = home.run(&["-batch", "--json", "-ex", "assert 4096 == 4K"]);
    assert_eq!(run.objects()[0]["expression"], "4096 == 4K");
    let run = home.run(&["-batch", "--json", "--keep-going", "-x", "f"]);
    let objects = run.objects();
    let holds: Vec<_> =
        objects.iter().filter(|one| one["type"] == "assertion").map(|one| one["holds"].clone()).collect();
    assert_eq!(holds, [true, false, true]);
    let last = objects.last().expect("a summary");
    assert_eq!((&last["type"], &last["failed"]), (&"assertions-summary".into(), &1.into()));
    home.run(&["-batch", "--report", "no/such/folder", "-ex", "assert 1"]).failed(1, "cannot write no/such/folder: ");
}

#[test]
fn a_shell_command_that_fails_is_status_6() {
    let home = Home::new();
    for line in ["!false", "shell exit 3", "help | false", "pipe help | exit 4", "!kill -9 $$"] {
        let run = home.run(&["-batch", "-ex", line, "-ex", "echo no"]);
        assert!(!run.failed(6, "the shell command").out.contains("no\n"), "{line}");
        let run = home.run(&["-batch", "-ex", "set shell errors off", "-ex", line, "-ex", "echo on"]);
        assert_eq!(run.status, Some(0), "{line}: {run:?}");
        assert!(run.out.ends_with("on\n"), "{line}");
    }
    // SIGPIPE is no failure, on either side.
    for line in ["help | head -1", "!yes | head -1", "!kill -PIPE $$", "help | kill -PIPE $$"] {
        let run = home.run(&["-batch", "-ex", line, "-ex", "echo on"]);
        assert!(run.status == Some(0) && run.out.ends_with("on\n"), "{line}: {run:?}");
    }
    let run = home.run(&["-batch", "--keep-going", "-ex", "!exit 3", "-ex", "print $_shell_exitcode"]);
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
        home.run(&["demo", "-batch", "-x", "f"]).is_fine().out.lines().filter(|line| line.contains("none")).count(),
        0
    );
    // A text is one wherever texts stand.
    home.file(
        "texts",
        "define called\nforeach $r in regions where name == $arg0\nprint name($r)\nend\ninfo symbols $arg1\nend\ncalled \"[stack]\" \"^demo_counter$\"\n",
    );
    let run = home.run(&["demo", "-batch", "-x", "texts"]);
    let out = &run.is_fine().out;
    assert!(out.contains("= [stack]\n") && out.contains("demo_counter"), "{out}");
    home.file("g", "foreach $r in regions\ndetach\nend\n");
    home.run(&["demo", "-batch", "-x", "g"]).failed(1, "g:2:1: error: `detach` is not allowed inside `foreach`");
}

#[test]
fn printf_and_output_add_no_line_end() {
    let text = "set $n = 412\nprintf \"%d of %5d|%-4s|%B|%p\\n\", $n, 512, \"ab\", 4096, 0x1000\noutput $n\noutput/x 255\necho\n";
    assert_eq!(run_file(text, &[]).is_fine().out, "412 of   512|ab  |4 KiB|0x1000\n4120xff\n");
    for (text, says) in [
        ("printf \"%d\"", "f.pmdb:1:8: error: the format has 1 conversion, and the line 0 values"),
        ("printf \"%d\", 1, 2", "f.pmdb:1:17: error: the format has 1 conversion, and the line 2 values"),
        ("printf \"%q\", 1", "no conversion `%q`"),
        ("printf \"%d\", \"a\"", "f.pmdb:1:14: error: %d needs a number"),
    ] {
        run_file(text, &[]).failed(1, says);
    }
    let run = Home::new().run(&["--json", "-batch", "-ex", "printf \"a\\n\""]);
    assert_eq!(run.objects()[0]["text"], "a\n");
}

#[test]
fn the_log_takes_what_is_printed_and_errors_too() {
    let home = Home::new();
    home.file(
        "f",
        "echo before\nset logging file ./log.txt\nset logging on\necho logged\nprint 6*7\nset logging off\necho behind\n",
    );
    let run = home.run(&["-batch", "-x", "f"]);
    assert_eq!(
        run.is_fine().out,
        "before\nnote: output is also written to ./log.txt\nlogged\n$1 = 42  (0x2a)\nnote: output is no longer written to ./log.txt\nbehind\n"
    );
    assert_eq!(home.read("log.txt"), "logged\n$1 = 42  (0x2a)\n");
    // At its end, or begun anew; with the screen left out.
    home.file(
        "g",
        "set logging file ./log.txt\nset logging overwrite on\nset logging redirect on\nset logging enabled on\necho alone\nfrobnicate\n",
    );
    let run = home.run(&["-batch", "-x", "g"]);
    assert_eq!(run.failed(1, "g:6:1: error: there is no command").out, "note: output is written to ./log.txt\n");
    let log = home.read("log.txt");
    assert!(log.starts_with("alone\n") && log.contains("no command `frobnicate`") && !log.contains("logged"), "{log}");
    home.file("h", "set logging file ./no/such/folder\nset logging on\n");
    home.run(&["-batch", "-x", "h"]).failed(1, "h:2:1: error: ./no/such/folder cannot be written");
}

#[test]
fn commands_of_your_own_go_through_pipes_and_into_files() {
    let home = Home::new();
    home.file(
        "f",
        "define say\necho one\nprint $arg0\necho two\nend\nsay 5 | grep -n t\nsay 6 > ./out\nsay 7 >> ./out\nsay 8 | exit 3\n",
    );
    let run = home.run(&["-batch", "-x", "f"]);
    assert_eq!(run.failed(6, "f:9:1: error: the shell command").out, "3:two\n");
    assert_eq!(home.read("out"), "one\n$2 = 6\ntwo\none\n$3 = 7\ntwo\n");
}

#[test]
fn pipes_of_a_command_of_ones_own_write_where_it_writes() {
    let home = Home::new();
    home.file(
        "f",
        "define both\nprint 1\nprint 2 | sed 's/^/piped /'\nprint 3\nend\n\
         both | sed 's/^/outer /'\nboth > ./out\n",
    );
    let run = home.run(&["-batch", "-x", "f"]);
    assert_eq!(run.is_fine().out, "outer $1 = 1\nouter piped $2 = 2\nouter $3 = 3\n");
    assert_eq!(home.read("out"), "$4 = 1\npiped $5 = 2\n$6 = 3\n");
}

#[test]
fn a_range_is_no_condition() {
    let home = Home::new();
    home.file("f", "if [stack]\nprint 1\nend\n");
    home.run(&["self", "-batch", "-x", "f"]).failed(1, "a range is neither true nor false");
    home.run(&["self", "-batch", "-ex", "assert [stack]"]).failed(1, "a range is neither true nor false");
}

#[test]
fn snapshots_of_programs_are_kept_apart() {
    let home = Home::new();
    let run = |line: &str| home.run(&["demo", "-q", "-batch", "-ex", "snapshot _mine", "-ex", line]);
    for line in ["info snapshots", "diff"] {
        run(line).failed(1, "there is no snapshot");
    }
    run("diff _mine").is_fine();
}

#[test]
fn what_a_snapshot_is_not_of_has_not_stayed_as_it_was() {
    let home = Home::new();
    let diff = |line: &str| {
        home.run(&["self", "-batch", "-ex", "snapshot part in [stack]", "-ex", "snapshot whole", "-ex", line])
    };
    for line in ["diff part in [vdso]", "diff part whole in [vdso]"] {
        diff(line).failed(1, "there is nothing to compare: `part` covers 0x");
    }
    diff("diff whole in [vdso]").is_fine();
    let partly = diff("diff part in start([stack]) - 4K..end([stack])");
    assert!(partly.is_fine().out.contains("only the part that both"), "{partly:?}");
    let all = diff("diff part in all");
    assert!(!all.is_fine().out.contains("only the part"), "{all:?}");
    let earlier = diff("diff whole part");
    assert!(earlier.out.contains("from whole to part, -"), "{earlier:?}");
}

#[test]
fn what_changed_between_two_snapshots_is_a_value() {
    let home = Home::new();
    let print = |line: &str| {
        home.run(&[
            "demo",
            "-batch",
            "-ex",
            "snapshot before in demo_buffer",
            "-ex",
            "snapshot after in demo_buffer",
            "-ex",
            line,
        ])
    };
    for line in [
        "print came(before, after)",
        "print went(before, now in demo_buffer)",
        "print came(before, now in demo_buffer where present)",
        "assert went(before, after in demo_buffer) == 0",
    ] {
        let out = print(line).is_fine().out.clone();
        assert!(line.starts_with("assert") || out.ends_with("$1 = 0\n"), "{out}");
    }
    for (line, why) in [
        ("print came(before, other)", "no snapshot is called `other`"),
        ("print written(before, now)", "written() compares contents, and the snapshot `before` has none"),
        ("print came(before, now in [stack])", "there is nothing to compare: `before` covers 0x"),
        (
            "print came(before, now in start(demo_buffer) - 1p..end(demo_buffer))",
            "only a part of the range is in both snapshots",
        ),
        ("print came(before, after where present)", "`where` tests pages as they are now"),
    ] {
        print(line).failed(1, why);
    }
}

#[test]
fn changes_add_up_by_region() {
    let home = Home::new();
    let run = home.run(&["demo", "--json", "-batch", "-ex", "watch demo_busy every 20ms count 3 by region"]);
    let out = run.is_fine().out.clone();
    let records: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let of = |wanted: &str| -> Vec<&serde_json::Value> {
        let of_it = records.iter().filter(|record| record["type"] == wanted);
        of_it.collect()
    };
    assert!(of("event").is_empty(), "{out}");
    let [group] = of("event-group")[..] else {
        panic!("{out}");
    };
    assert_eq!(group["by"], "region");
    assert!(group["samples"].as_u64() >= Some(1), "{out}");
    assert_eq!(group["events"], of("watch-summary")[0]["events"], "{out}");
}

#[test]
fn variables_stand_for_counts_times_processes_and_texts() {
    let home = Home::new();
    home.file(
        "f",
        "watch demo_buffer every $arg0 for $arg1\nassert $_changes == 0\nforeach $p in walk all where present top $arg2\nset $last = $p\nend\n\
         regions $arg3 limit $arg2\nset $me = \"self\"\nattach $me\n",
    );
    let run = home.run(&["demo", "-batch", "-x", "f", "--args", "10ms", "0.05", "2", "[stack]"]);
    assert!(run.out.contains("no change") && run.out.contains("1 region, "), "{run:?}");
    for (line, says) in [
        ("walk all limit $x", "$x has not been set"),
        ("set $x = \"a\"", "$x is text, not an integer"),
        ("set $x = 0", "`limit` must be at least 1"),
        ("set $x = \"soon\"", "$x is \"soon\", not a time"),
        ("set $x = 0.5 - 1", "$x is -0.5, not a time"),
        ("set $x = 1.5", "$x is a floating-point number, not an integer"),
    ] {
        let text = if says.contains("time") {
            format!("{line}\nwatch demo_buffer for $x\n")
        } else {
            format!("{line}\nwalk all limit $x\n")
        };
        home.file("g", text);
        let run = home.run(&["demo", "-batch", "-x", "g"]);
        run.failed(1, says);
    }
}

#[test]
fn blocks_come_through_serve_and_each_line_is_answered() {
    let run = Home::new().run_with(
        &["--serve"],
        "if 1\nprint 5\nend\nwhile 1\nfoo bar\nend of it\nprint 6\nend\ndefine twice\nprint $arg0 * 2\nend\ntwice 4\nif 1\n",
    );
    let objects = run.objects();
    let values: Vec<_> = objects.iter().filter(|one| one["type"] == "value").map(|one| one["value"].clone()).collect();
    assert_eq!(values, ["5", "6", "8"]);
    let ends = objects.iter().filter(|one| one["type"] == "end").count();
    // One for each line, and one for the attachment, of which there is none.
    assert_eq!(ends, 14, "{run:?}");
    assert_eq!(run.status, Some(1), "{run:?}");
}

#[test]
fn what_is_displayed_is_shown_at_once_and_again_and_again() {
    let home = Home::new();
    let run = home.run(&[
        "demo",
        "-batch",
        "-ex",
        "display size(demo_buffer)",
        "-ex",
        "display/2xb demo_buffer",
        "-ex",
        "display walk demo_buffer by state",
        "-ex",
        "display 1 + 1 every 1ms count 2",
        "-ex",
        "undisplay 2",
        "-ex",
        "info display",
        "-ex",
        "display",
    ]);
    let out = &run.is_fine().out;
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with("1: size(demo_buffer) = "), "{out}");
    assert_eq!(lines[1], "2: x/2xb demo_buffer");
    assert!(out.contains("3: walk demo_buffer by state\n"), "{out}");
    assert_eq!(out.matches("1 + 1 = 2\n").count(), 2, "{out}");
    assert_eq!(out.matches("2: x/2xb").count(), 1, "{out}");
    assert_eq!(out.matches("1: size(demo_buffer)").count(), 3, "{out}");
    home.run(&["-batch", "-ex", "undisplay 5"]).failed(1, "there is no display 5");
    home.run(&["-batch", "-ex", "display rss(all)"]).failed(1, "no process is attached");
}

#[test]
fn a_wrong_line_in_a_block_is_an_error_before_the_file_runs() {
    let home = Home::new();
    for (block, error) in [
        ("if 0\n  walk heap where presnt >\nend\n", "f:3:"),
        ("if 1\n  echo yes\\n\nelse\n  print 0x\nend\n", "f:5:"),
        ("define d\n  if 0\n    print (1\n  end\nend\n", "f:4:"),
        ("while 0\n  frobnicate 1\nend\n", "f:3:3: error: there is no command `frobnicate`"),
        ("foreach $n in 1\n  if 0\n    detach\n  end\nend\n", "f:4:5: error: `detach` is not allowed inside `foreach`"),
    ] {
        home.file("f", format!("echo first\n{block}echo last\n"));
        let run = home.run(&["-batch", "-x", "f"]);
        assert_eq!(run.failed(1, error).out, "", "{block}");
        // A block of a pipe is checked when it is complete. Later lines may define a command.
        let run = home.run_with(&[], format!("echo first\n{block}echo last\n"));
        if block.contains("frobnicate") {
            run.is_fine();
        } else {
            run.failed(1, &error.replace("f:", "<stdin>:"));
        }
        // With --keep-going each fault is reported, and the other lines run.
        let run = home.run(&["--keep-going", "-batch", "-x", "f"]);
        run.failed(1, error);
        assert!(run.out.starts_with("first\n") && run.out.ends_with("last\n"), "{run:?}");
    }
}

#[test]
fn a_command_in_a_block_may_be_defined_anywhere_that_can_be_read() {
    let home = Home::new();
    let uses = "if 0\n  greet you\n  hello\nend\necho done\n";
    home.file("more/names", "define greet\n  hello\nend\nsource aliases\n");
    home.file("more/aliases", "alias hello = echo hello\n");
    for text in [
        format!("define greet\n  hello\nend\nalias hello = echo hello\n{uses}"),
        format!("{uses}define greet\n  echo late\nend\nalias hello=echo\n"),
        format!("source more/names\n{uses}"),
        format!("define load\n  source more/names\nend\n{uses}"),
    ] {
        home.file("f", &text);
        assert_eq!(home.run(&["-batch", "-x", "f"]).is_fine().out, "done\n", "{text}");
    }
    // init defines them, or a command of it does.
    home.file("f", uses);
    for init in ["define greet\nend\nalias hello = echo\n", "define load\n  source ../../more/names\nend\n"] {
        home.file(".config/pmdb/init", init);
        assert_eq!(home.run(&["-batch", "-x", "f"]).is_fine().out, "done\n", "{init}");
    }
    home.file(".config/pmdb/init", "");
    home.run(&["-batch", "-x", "f"]).failed(1, "f:2:3: error: there is no command `greet`");
    // A file that is not there yet may define them; a slip in a known command stays one.
    home.file(
        "f",
        format!("shell echo define greet > later; echo end >> later\nsource later\nalias hello = echo\n{uses}"),
    );
    let run = home.run(&["-batch", "-x", "f"]);
    assert!(run.is_fine().out.contains("line 5 of f is not checked: later may define `greet`"), "{run:?}");
    home.file("f", "source /dev/stdin\nif 0\n  print (1\nend\n");
    home.run(&["-batch", "-x", "f"]).failed(1, "f:3:");
}
