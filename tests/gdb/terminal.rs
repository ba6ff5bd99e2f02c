//! A session of gdb at a terminal.

use crate::session::{PLUGIN, compiled};
use rexpect::session::{PtySession, spawn_command};

/// Reached only if the expected output does not come.
const PATIENCE: Option<u64> = Some(60_000);
/// Printed after the answer to a line.
const DONE: &str = "it is done";

/// What gdb prints for a line.
fn answer(session: &mut PtySession, line: &str) -> String {
    session.send_line(line).expect("gdb reads");
    session.send_line(&format!("echo {}\\n", DONE.replace(' ', "\\ "))).expect("gdb reads");
    session.exp_string(&format!("{DONE}\r\n")).expect("an answer")
}

#[test]
fn colours_tab_and_ctrl_c_work_at_a_terminal() {
    let Some(program) = compiled("colours_tab_and_ctrl_c", "pages.c") else {
        return;
    };
    let mut gdb = program.gdb();
    gdb.env("TERM", "xterm-256color")
        .args(["-ex", &format!("source {PLUGIN}")])
        .args(["-ex", "break turn if number == 7", "-ex", "run"])
        .arg(&program.path);
    let mut session = spawn_command(gdb, PATIENCE).expect("gdb starts");
    let counted = "7 present";
    let walk = "pmdb walk *pool@16 by state";
    session.exp_string("Breakpoint 1, ").expect("it stops");
    answer(&mut session, "set width 120");
    let shown = answer(&mut session, walk);
    assert!(shown.contains("\u{1b}[") && shown.contains("untouched"), "{shown}");
    // Output that goes elsewhere has no colours; cat -v would show them.
    let piped = answer(&mut session, &format!("pipe {walk} | cat -v"));
    assert!(piped.contains(counted) && !piped.contains("^["), "{piped}");
    // Tab completes, and the completed line runs.
    session.send("pmdb expl\t$sp\n").expect("gdb reads");
    session.exp_string("[stack]").expect("the command was completed");
    // Ctrl-C ends the watch alone.
    session.send_line("pmdb watch *pool@16 every 1h").expect("gdb reads");
    session.exp_string("Ctrl-C ends it").expect("it watches");
    session.send_control('c').expect("gdb reads");
    session.exp_string("watched for").expect("its last words");
    let alive = answer(&mut session, walk);
    assert!(alive.contains("untouched"), "{alive}");
    session.send_line("kill").expect("gdb reads");
    session.send_line("quit").expect("gdb reads");
    session.exp_eof().expect("gdb ends");
}
