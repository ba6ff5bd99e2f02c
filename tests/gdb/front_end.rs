//! gdb as front ends run it: its machine interface.

use super::session::{PLUGIN, Program, compiled};
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// gdb in its machine interface.
struct FrontEnd {
    gdb: Child,
    commands: ChildStdin,
    records: Lines<BufReader<ChildStdout>>,
}

impl FrontEnd {
    fn of(program: &Program) -> FrontEnd {
        let mut gdb = program.gdb();
        gdb.arg("--interpreter=mi").arg(&program.path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut gdb = gdb.spawn().expect("gdb starts");
        let commands = gdb.stdin.take().expect("its input");
        let records = BufReader::new(gdb.stdout.take().expect("its output")).lines();
        FrontEnd { gdb, commands, records }
    }

    /// The records after a command, up to the first that begins so.
    fn until(&mut self, command: &str, end: &str) -> Vec<String> {
        writeln!(self.commands, "{command}").expect("gdb reads");
        let mut records = Vec::new();
        for record in self.records.by_ref().map_while(Result::ok) {
            let is_last = record.starts_with(end);
            records.push(record);
            if is_last {
                return records;
            }
        }
        panic!("{command}: gdb ended before {end}: {records:#?}");
    }

    fn console(&mut self, line: &str, end: &str) -> Vec<String> {
        self.until(&format!("-interpreter-exec console \"{line}\""), end)
    }
}

#[test]
fn steps_are_one_run_that_can_be_interrupted() {
    let Some(program) = compiled("steps_are_one_run", "zeros.c") else {
        return;
    };
    let mut front = FrontEnd::of(&program);
    front.console(&format!("source {PLUGIN}"), "^done");
    front.until("-break-insert ready", "^done");
    front.until("-exec-run", "*stopped");
    front.until("-break-delete", "^done");
    let said = front.console("pmdb until-change pool[4], +4096", "~\"changed after");
    let count = |start: &str| said.iter().filter(|record| record.starts_with(start)).count();
    assert_eq!((count("*running"), count("*stopped")), (1, 1), "{said:#?}");
    let stopped = said.iter().find(|record| record.starts_with("*stopped")).expect("a record");
    assert!(stopped.contains("frame=") && stopped.contains("thread-id=\"1\""), "{stopped}");
    // It spins, and nothing changes.
    front.console("pmdb until-change pool[4], +4096", "^running");
    let refused = front.console("pmdb until-change pool[4], +4096", "^error");
    assert!(refused.iter().any(|record| record.contains("until-change is running")), "{refused:#?}");
    front.until("-exec-interrupt", "^done");
    let ended = front.until("-gdb-show confirm", "~\"stopped without a change");
    assert!(ended.iter().any(|record| record.starts_with("*stopped,reason=\"signal-received\"")), "{ended:#?}");
    front.until("-gdb-exit", "^exit");
    front.gdb.wait().expect("gdb ends");
}
