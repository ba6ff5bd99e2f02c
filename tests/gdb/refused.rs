//! Targets of gdb that pmdb cannot inspect.

use super::session::{compiled, is_there};
use crate::skips::skip;

#[test]
fn recordings_and_core_files_are_refused() {
    let Some(program) = compiled("recordings_and_core_files", "pages.c") else {
        return;
    };
    program.check(
        &["break turn if number == 7", "run", "record"],
        &[
            ("pmdb walk pool", "not as it was recorded"),
            ("print $_resident(pool, 1)", "not as it was recorded"),
            ("record stop", ""),
            ("pmdb walk *pool@16 by state", "7 present, 9 untouched"),
            ("generate-core-file core", "Saved corefile"),
            ("kill", "killed"),
            ("core-file core", "#0"),
            ("print $_resident(pool, 1)", "pmdb in gdb needs a process"),
        ],
    );
    // What it offers instead runs as it stands, and answers.
    let before = ["break turn if number == 7", "run", "generate-core-file core", "kill", "core-file core"];
    let asked = |line| program.answers(&[&before[..], &[line]].concat()).pop().unwrap_or_default();
    let refused = asked("pmdb region pool");
    let (_, offered) = refused.split_once("for this core file: ").expect("a command");
    let answer = asked(offered.trim());
    assert!(answer.contains("(anonymous)") && answer.contains("access"), "{refused}: {answer}");
}

#[test]
fn processes_behind_gdbserver_are_refused() {
    let test = "processes_behind_gdbserver";
    let Some(program) = compiled(test, "pages.c") else {
        return;
    };
    if !is_there("gdbserver") {
        return skip(test, "there is no gdbserver here");
    }
    let path = program.path.display();
    let target = format!("target remote | gdbserver --once - {path}");
    program.check(
        &[&target],
        &[
            ("pmdb explain $sp", "of this machine; this target is remote"),
            ("print $_resident($sp, 1)", "this target is remote"),
            ("pmdb track $sp", "this target is remote"),
            ("info pmdb track", "No range is tracked."),
            ("pmdb explain $sp", "set pmdb local on"),
            ("set pmdb local on", ""),
            ("show pmdb local", "is on."),
            ("break turn if number == 7", "Breakpoint"),
            ("continue", "turn (number=7)"),
            ("pmdb walk *pool@16 by state", "7 present, 9 untouched"),
            ("pmdb until-change *pool@16", "came            1 page"),
            ("python import pmdb_gdb; pmdb_gdb.is_traced = lambda pid: False; pmdb_gdb.forget_all()", ""),
            ("pmdb explain $sp", "is not controlled by a debugger"),
        ],
    );
}
