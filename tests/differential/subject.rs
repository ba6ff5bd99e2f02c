//! The target process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Pages that have to be in one state, as the process that made them says.
pub struct Area {
    pub name: String,
    pub start: u64,
    pub pages: u64,
    pub state: String,
    /// `None`: the subject says nothing of it.
    pub kind: Option<String>,
}

/// A running `subject`; dropping it ends it.
pub struct Subject {
    child: Child,
    pub areas: Vec<Area>,
    /// What it could not make here, each with the reason.
    pub impossible: Vec<String>,
}

impl Subject {
    /// Starts it, and waits until its memory is made.
    pub fn start(program: &Path, folder: &Path) -> Self {
        let mut child = Command::new(program)
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("subject starts");
        let output = child.stdout.take().expect("its output");
        let mut subject = Subject { child, areas: Vec::new(), impossible: Vec::new() };
        for line in BufReader::new(output).lines() {
            let line = line.expect("a line");
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["area", name, start, pages, state, kind] => subject.areas.push(Area {
                    name: name.to_owned(),
                    start: u64::from_str_radix(start, 16).expect("an address"),
                    pages: pages.parse().expect("a number of pages"),
                    state: state.to_owned(),
                    kind: (kind != "-").then(|| kind.to_owned()),
                }),
                ["cannot", ..] => subject.impossible.push(line[7..].to_owned()),
                ["ready"] => return subject,
                _ => panic!("subject says: {line}"),
            }
        }
        let last = subject.areas.last().map(|area| &area.name);
        let status = subject.child.wait();
        panic!("subject ended before it was ready, after {last:?}: {status:?}");
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
