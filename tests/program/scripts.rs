//! Command files: where their lines come from, and where their errors are.

use crate::run::Home;
use std::os::unix::fs::symlink;

#[test]
fn x_and_ex_run_in_the_order_in_which_they_stand() {
    let home = Home::new();
    home.file("f", "echo file\n");
    let run = home.run(&["-batch", "-ex", "echo one", "-x", "f", "-ex", "echo two"]);
    assert_eq!(run.is_fine().out, "one\nfile\ntwo\n");
}

#[test]
fn standard_input_that_is_no_terminal_is_a_command_file() {
    let home = Home::new();
    let run = home.run_with(&[], "# a comment\n\necho one\r\necho two");
    assert_eq!(run.is_fine().out, "one\ntwo\n");
    let run = home.run_with(&[], "echo one\n  frobnicate\necho two\n");
    assert_eq!(run.failed(1, "<stdin>:2:3: error: ").out, "one\n");
    let run = home.run_with(&["-batch", "-ex", "echo only"], "echo never\n");
    assert_eq!(run.is_fine().out, "only\n");
}

#[test]
fn an_empty_line_repeats_nothing_in_a_file() {
    let run = Home::new().run_with(&[], "echo one\n\n\n");
    assert_eq!(run.is_fine().out, "one\n");
}

#[test]
fn an_error_shows_file_line_column_and_a_caret_under_the_place() {
    let home = Home::new();
    home.file("f.pmdb", "echo \u{e4}\nprint \"\u{e4}\u{e4}\" 12\n");
    let run = home.run(&["-batch", "-x", "f.pmdb"]);
    run.failed(1, "f.pmdb:2:12: error: ");
    let lines: Vec<&str> = run.err.lines().collect();
    let shown = lines.iter().position(|line| line.ends_with("print \"\u{e4}\u{e4}\" 12")).expect("the line");
    let text = lines[shown];
    let place = text.chars().count() - "12".len();
    let caret = lines[shown + 1];
    assert_eq!(caret.find('^'), Some(place), "{}", run.err);
}

#[test]
fn errors_are_placed_in_the_file_in_which_they_are() {
    let home = Home::new();
    home.file("outer", "echo outer\nsource inner\necho after\n");
    home.file("inner", "\nfrobnicate\n");
    let run = home.run(&["-batch", "-x", "outer"]);
    assert_eq!(run.failed(1, "inner:2:1: error: ").out, "outer\n");
    assert_eq!(run.err.matches("error: ").count(), 1, "said once: {}", run.err);
}

#[test]
fn a_file_that_cannot_be_sourced_is_an_error_of_the_line_that_asks() {
    let home = Home::new();
    home.file("f", "echo one\nsource missing\n");
    let run = home.run(&["-batch", "-x", "f"]);
    run.failed(1, "f:2").failed(1, "cannot read missing: no such file or directory");
}

#[test]
fn the_home_folder_is_known_as_a_tilde() {
    let home = Home::new();
    home.file("f", "echo home\n");
    assert_eq!(home.run(&["-batch", "-ex", "source ~/f"]).is_fine().out, "home\n");
}

#[test]
fn the_init_file_runs_first_unless_nx() {
    let home = Home::new();
    home.file(".config/pmdb/init", "echo init\n");
    let line = ["-batch", "-ex", "echo line"];
    assert_eq!(home.run(&line).is_fine().out, "init\nline\n");
    assert_eq!(home.run(&[&["-nx"][..], &line].concat()).is_fine().out, "line\n");
    home.file("xdg/pmdb/init", "echo elsewhere\n");
    let mut command = home.command(&line);
    command.env("XDG_CONFIG_HOME", home.path("xdg"));
    assert_eq!(command.output().unwrap().stdout, b"elsewhere\nline\n");
}

#[test]
fn nothing_is_run_from_the_current_folder() {
    let home = Home::new();
    for name in ["init", ".pmdbinit", ".gdbinit", "pmdb/init", "work/pmdb/init"] {
        home.file(name, "echo never\n");
    }
    let mut command = home.command(&["-batch", "-ex", "echo line"]);
    // A relative path is not one that the XDG specification allows.
    command.env("XDG_CONFIG_HOME", "work").env("HOME", "relative");
    assert_eq!(command.output().unwrap().stdout, b"line\n");
}

#[test]
fn files_that_run_themselves_are_stopped_and_the_chain_is_named() {
    let home = Home::new();
    home.file("alone", "source alone\n");
    home.run(&["-batch", "-x", "alone"]).failed(1, "alone:1").failed(1, "alone \u{2192} alone");
    home.file("a", "source b\n");
    home.file("b", "echo b\nsource c\n");
    symlink("a", home.path("c")).unwrap();
    let run = home.run(&["-batch", "-x", "a"]);
    assert_eq!(run.failed(1, "b:2").failed(1, "a \u{2192} b \u{2192} c").out, "b\n");
    // Twice in a row is not a circle.
    home.file("twice", "source leaf\nsource leaf\n");
    home.file("leaf", "echo leaf\n");
    assert_eq!(home.run(&["-batch", "-x", "twice"]).is_fine().out, "leaf\nleaf\n");
}

#[test]
fn a_chain_of_files_that_is_too_long_is_stopped() {
    let home = Home::new();
    for number in 0..200 {
        home.file(&number.to_string(), format!("source {}\n", number + 1));
    }
    home.run(&["-batch", "-x", "0"]).failed(1, "100 command files");
}

#[test]
fn an_error_names_the_lines_that_led_to_it() {
    let home = Home::new();
    home.file("all", "# one\n  source part/one\n");
    home.file("part/one", "define outer\n inner $arg0\nend\ndefine inner\n\n print $arg0 + nowhere\nend\nouter 7\n");
    let run = home.run(&["-batch", "-x", "all"]);
    run.failed(1, "part/one:6:16: error: ");
    let callers: Vec<&str> = run.err.lines().filter_map(|line| line.strip_prefix("  called from ")).collect();
    assert_eq!(callers, ["part/one:2:2: inner $arg0", "part/one:8:1: outer 7", "all:2:10: source part/one"]);
    // As JSON too, and only there where there are any.
    let run = home.run(&["--json", "-batch", "-x", "all"]);
    let objects = run.objects();
    let error = objects.last().expect("an error");
    assert_eq!(error["where"]["line"], 6);
    let lines: Vec<_> = error["callers"].as_array().expect("callers").iter().map(|place| &place["line"]).collect();
    assert_eq!(lines, [2, 8, 2]);
    assert!(home.run(&["--json", "-batch", "-ex", "print nowhere"]).objects()[0].get("callers").is_none());
    // A line that was typed has no file.
    home.file("two", "define fails\n print nowhere\nend\n");
    let run = home.run(&["-batch", "-x", "two", "-ex", "fails"]);
    run.failed(1, "two:2:8: error: ").failed(1, "  called from fails\n");
}

#[test]
fn of_a_long_chain_of_callers_both_ends_are_shown() {
    let home = Home::new();
    home.file("f", "define deeper\n deeper\nend\ndeeper\n");
    let run = home.run(&["-batch", "-x", "f"]);
    run.failed(1, "100 levels").failed(1, "\u{2026} 91 more calls").failed(1, "called from f:4:1: deeper");
    assert_eq!(run.err.matches("called from ").count(), 8, "{}", run.err);
}

#[test]
fn source_begins_in_the_folder_of_the_file() {
    let home = Home::new();
    home.file("sub/outer", "source inner\nsource deep/inner\nsource :dma\n");
    home.file("sub/inner", "define again\n source last\nend\n");
    home.file("sub/deep/inner", "source ../last\nagain\n");
    home.file("sub/last", "echo last\n");
    home.file("last", "echo wrong\n");
    let run = home.run(&["-batch", "-x", "sub/outer"]);
    assert_eq!(run.failed(1, "sub/outer:3:8: error: `:dma` needs BUFFER: source :dma BUFFER [").out, "last\nlast\n");
    // A pipe is in no folder.
    let run = home.run_with(&[], "source last\n");
    assert_eq!(run.is_fine().out, "wrong\n");
    home.file("sub/missing", "source nowhere\n");
    home.run(&["-batch", "-x", "sub/missing"]).failed(1, "cannot read sub/nowhere");
}

#[test]
fn a_report_names_the_lines_that_led_to_a_failure() {
    let home = Home::new();
    home.file("f", "define holds\n assert $arg0\nend\nholds 1\nholds 0\nholds nowhere\nprint nowhere\n");
    home.run(&["-batch", "--keep-going", "--report", "r.xml", "-x", "f"]).failed(1, "f:2:9: error: ");
    let report = home.read("r.xml");
    for part in [
        "<testcase classname=\"f\" name=\"$arg0\" file=\"f\" line=\"2\"/>",
        ">f:2:9: assert $arg0 called from f:5:1: holds 0</failure>",
        ">f:2:9: assert $arg0 called from f:6:1: holds nowhere</error>",
        ">f:7:7: print nowhere</error>",
    ] {
        assert!(report.replace('\n', " ").contains(part), "{part} in {report}");
    }
    let run = home.run(&["-batch", "--report", "/nowhere/r.xml", "-ex", "print 1"]);
    run.failed(1, "cannot write /nowhere/r.xml: no such file or directory\n");
}

#[test]
fn a_file_knows_how_many_assertions_have_failed() {
    let home = Home::new();
    home.file("f", "print $_failed\nassert 1\nassert 0\nassert nowhere\nif $_failed > 0\n echo not all held\nend\n");
    let run = home.run(&["-batch", "--keep-going", "-x", "f"]);
    assert_eq!(run.failed(1, "the assertion fails").out.lines().next(), Some("$1 = 0"));
    assert!(run.out.contains("not all held\n"), "{run:?}");
}
