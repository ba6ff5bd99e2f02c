//! A session of gdb at a terminal.

use super::session::{PLUGIN, Program, compiled};
use crate::terminal::Session;
use std::time::Duration;

/// Reached only if the expected output does not come.
const PATIENCE: Duration = Duration::from_secs(60);
/// Printed after the answer to a line.
const DONE: &str = "it is done";

/// What gdb prints for a line.
fn answer(session: &mut Session, line: &str) -> String {
    session.send_line(line);
    session.send_line(&format!("echo {}\\n", DONE.replace(' ', "\\ ")));
    session.expect(&format!("{DONE}\r\n")).expect("an answer")
}

/// gdb at a terminal, with the program stopped at a breakpoint.
fn stopped_at(program: &Program, place: &str) -> Session {
    let mut gdb = program.gdb();
    gdb.env("TERM", "dumb")
        .args(["-ex", &format!("source {PLUGIN}"), "-ex", &format!("break {place}"), "-ex", "run"])
        .arg(&program.path);
    let mut session = Session::start(gdb, PATIENCE);
    session.expect("Breakpoint 1, ").expect("it stops");
    answer(&mut session, "delete");
    session
}

/// Has gdb print a text each time when it calls this function of the plugin, if this holds.
fn announce(session: &mut Session, function: &str, text: &str, when: &str) {
    let name = function.replace('.', "_");
    answer(session, &format!("python import os, pmdb_gdb; {name} = pmdb_gdb.{function}"));
    let said = format!("({when}) and os.write(1, b'{text}\\n')");
    answer(session, &format!("python pmdb_gdb.{function} = lambda *given: ({said}, {name}(*given))[1]"));
}

#[test]
fn one_ctrl_c_ends_steps_and_questions() {
    let Some(program) = compiled("one_ctrl_c_ends", "zeros.c") else {
        return;
    };
    let mut session = stopped_at(&program, "ready");
    announce(&mut session, "Steps.sample", "it steps", "given[0].count == 20");
    for _ in 0..5 {
        // It spins, and nothing changes.
        session.send_line("pmdb until-change pool[3], +4096");
        session.expect("it steps").expect("it steps");
        session.send_interrupt();
        session.expect("stopped without a change after").expect("one Ctrl-C ends it");
    }
    // While it waits for a pmdb that hangs.
    answer(
        &mut session,
        "python import signal; os.kill(pmdb_gdb.server().child.pid, signal.SIGSTOP); pmdb_gdb.PATIENCE = 0.1",
    );
    announce(&mut session, "Server.record", "it waits", "True");
    session.send_line("print $_resident(pool, 4096)");
    session.expect("it waits").expect("it waits");
    session.send_interrupt();
    session.expect("Quit").expect("an error as for gdb's own");
    answer(&mut session, "python pmdb_gdb.PATIENCE = 60; pmdb_gdb.Server.record = Server_record");
    let alive = answer(&mut session, "print $_resident(pool, 4096)");
    assert!(alive.contains("= 1"), "{alive}");
    end(session);
}

#[test]
fn enter_goes_on_where_a_command_stopped() {
    let Some(program) = compiled("enter_goes_on", "zeros.c") else {
        return;
    };
    let mut session = stopped_at(&program, "ready");
    for (line, address) in [("pmdb x/2xb pool", "000: "), ("", "002: "), ("", "004: "), ("pmdb x/2xb pool", "000: ")] {
        session.send_line(line);
        session.expect(address).expect("the bytes from there on");
    }
    end(session);
}

fn end(mut session: Session) {
    session.send_line("kill");
    session.send_line("quit");
    session.expect_end().expect("gdb ends");
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
    let mut session = Session::start(gdb, PATIENCE);
    let counted = "7 present";
    let walk = "pmdb walk *pool@16 by state";
    session.expect("Breakpoint 1, ").expect("it stops");
    answer(&mut session, "set width 120");
    let shown = answer(&mut session, walk);
    assert!(shown.contains("\u{1b}[") && shown.contains("untouched"), "{shown}");
    // Output that goes elsewhere has no colours; cat -v would show them.
    let piped = answer(&mut session, &format!("pipe {walk} | cat -v"));
    assert!(piped.contains(counted) && !piped.contains("^["), "{piped}");
    // Tab completes, and the completed line runs.
    session.send("pmdb expl\t$sp\n");
    session.expect("[stack]").expect("the command was completed");
    // Ctrl-C ends the watch alone.
    session.send_line("pmdb watch *pool@16 every 1h");
    session.expect("Ctrl-C ends it").expect("it watches");
    session.send_interrupt();
    session.expect("watched for").expect("its last words");
    let alive = answer(&mut session, walk);
    assert!(alive.contains("untouched"), "{alive}");
    end(session);
}
