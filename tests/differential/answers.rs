//! The answers of pmdb, from its JSON.

use serde_json::Value;
use std::fmt::Write;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// The offset in a page of the translated address, so that the offset in the frame is checked as well.
pub const BYTE: u64 = 0x123;

/// All records of one run.
pub struct Answers {
    records: Vec<Value>,
}

impl Answers {
    /// Runs pmdb on the whole process, and on one byte in each page of the sample.
    pub fn ask(program: &str, pid: u32, sample: &[u64]) -> Self {
        let mut commands = String::from("walk all\nregions\nwalk all where present by node\n");
        for address in sample {
            writeln!(commands, "translate {:#x}", address + BYTE).expect("a string grows");
        }
        let mut pmdb = Command::new(program)
            .args(["-nx", "-q", "--json", "-p", &pid.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("pmdb starts");
        let mut input = pmdb.stdin.take().expect("its input");
        // All of it fits into the pipe.
        input.write_all(commands.as_bytes()).expect("to be heard");
        drop(input);
        let output = pmdb.wait_with_output().expect("its answers");
        let text = String::from_utf8(output.stdout).expect("JSON");
        let record = |line: &str| serde_json::from_str(line).expect("JSON");
        let records: Vec<Value> = text.lines().map(record).collect();
        assert!(output.status.success(), "pmdb fails: {:?}", records.last());
        Answers { records }
    }

    pub fn of_type<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        self.records.iter().filter(move |one| one["type"] == name)
    }
}

/// The value of a number field: a JSON number, or hexadecimal text.
pub fn number(record: &Value, field: &str) -> Option<u64> {
    match &record[field] {
        Value::String(text) => u64::from_str_radix(text.strip_prefix("0x")?, 16).ok(),
        value => value.as_u64(),
    }
}
