//! Running the program as a user's shell or script would.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use tempfile::TempDir;

pub const PMDB: &str = env!("CARGO_BIN_EXE_pmdb");

/// No process can have this id: the kernel's largest is 2^22.
pub const NOBODY: &str = "2147483647";

/// A user's empty home, to run the program in.
pub struct Home {
    folder: TempDir,
}

/// The result of a run.
#[derive(Debug)]
pub struct Run {
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Home {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Home { folder }
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file in it.
    pub fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        let parent = path.parent().expect("a parent");
        fs::create_dir_all(parent).expect("a folder");
        fs::write(&path, contents).expect("a file");
        path
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("a file")
    }

    /// The program with these arguments, without the environment of the tests.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PMDB);
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it with no input.
    pub fn run(&self, arguments: &[&str]) -> Run {
        self.command(arguments).output().expect("it runs").into()
    }

    /// Runs it with this standard input.
    pub fn run_with(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Run {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().expect("it starts");
        let mut keys = child.stdin.take().expect("its input");
        let input = input.as_ref().to_vec();
        let typing = thread::spawn(move || keys.write_all(&input));
        let run = child.wait_with_output().expect("it runs").into();
        // It may leave before it has read everything.
        let _ = typing.join().expect("no panic");
        run
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Run {
            status: output.status.code(),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

impl Run {
    /// It succeeded without errors or warnings.
    pub fn is_fine(&self) -> &Self {
        assert_eq!((self.status, self.err.as_str()), (Some(0), ""), "{self:?}");
        self
    }

    /// It ended with this status and said this on standard error.
    pub fn failed(&self, status: i32, says: &str) -> &Self {
        assert_eq!(self.status, Some(status), "{self:?}");
        assert!(self.err.contains(says), "expected {says:?} in {:?}", self.err);
        self
    }

    /// Standard output as JSON, an object a line.
    pub fn objects(&self) -> Vec<serde_json::Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.out.lines().map(parse).collect()
    }
}

/// Feeds the same line to a child without end, until the child does not read any more.
pub fn feed_without_end(child: &mut Child, line: &'static [u8]) -> thread::JoinHandle<()> {
    let mut keys = child.stdin.take().expect("its input");
    thread::spawn(move || {
        let lines = line.repeat(1000);
        while keys.write_all(&lines).is_ok() {}
    })
}

/// Reads from `from` until `wanted` bytes have come or it ends.
pub fn read_some(from: &mut impl Read, wanted: usize) -> Vec<u8> {
    let mut bytes = vec![0; wanted];
    let mut read = 0;
    while read < wanted {
        match from.read(&mut bytes[read..]).expect("it can be read") {
            0 => break,
            count => read += count,
        }
    }
    bytes.truncate(read);
    bytes
}
