//! A program under gdb, with the plugin.

use crate::skips::skip;
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

pub const PMDB: &str = env!("CARGO_BIN_EXE_pmdb");
pub const PLUGIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/pmdb-gdb.py");

/// The compilers of test programs, by the suffix of a source file.
const COMPILERS: &[(&str, &str, &[&str])] =
    &[("c", "gcc", &["-g", "-O0", "-pthread"]), ("cc", "g++", &["-g", "-O0"]), ("rs", "rustc", &["-g"])];

/// A compiled program.
pub struct Program {
    pub folder: TempDir,
    pub path: PathBuf,
}

/// Whether a program is installed.
pub fn is_there(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null());
    let status = command.stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Compiles a program of `tests/gdb/programs`; `None` where this machine cannot, or has no gdb.
pub fn compiled(test: &str, source: &str) -> Option<Program> {
    let kind = source.rsplit('.').next();
    let (_, compiler, options) = COMPILERS.iter().find(|row| Some(row.0) == kind)?;
    for needed in ["gdb", compiler] {
        if !is_there(needed) {
            skip(test, &format!("there is no {needed} here"));
            return None;
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("program");
    let mut command = Command::new(compiler);
    command
        .args(*options)
        .arg("-o")
        .arg(&path)
        .arg(format!("{}/tests/gdb/programs/{source}", env!("CARGO_MANIFEST_DIR")))
        .current_dir(folder.path());
    let output = command.output().expect("it compiles");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    Some(Program { folder, path })
}

impl Program {
    /// gdb without the user's settings, and with pmdb in its PATH.
    pub fn gdb(&self) -> Command {
        let beside = PathBuf::from(PMDB);
        let beside = beside.parent().expect("a folder");
        let mut command = Command::new("gdb");
        command
            .args(["-nx", "-q", "-iex", "set auto-load off"])
            .args(["-ex", "set confirm off", "-ex", "set width 0"])
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", beside.display()))
            .env("SHELL", "/bin/sh")
            .env("LC_ALL", "C.UTF-8")
            .env("HOME", self.folder.path());
        command
    }

    /// The same with the plugin, and with the program stopped once its pages are as announced.
    pub fn gdb_at_work(&self) -> Command {
        let mut command = self.gdb();
        let source = format!("source {PLUGIN}");
        for line in [&source, "break done", "run"] {
            command.args(["-ex", line]);
        }
        command
    }

    /// gdb's answers to each of these lines, with errors.
    pub fn answers(&self, lines: &[&str]) -> Vec<String> {
        self.answers_from(self.gdb(), PLUGIN, lines)
    }

    /// The answers of this gdb with this plugin to each of these lines.
    pub fn answers_from(&self, command: Command, plugin: &str, lines: &[&str]) -> Vec<String> {
        self.answers_after(command, plugin, "", lines)
    }

    /// The same with a plugin that says `greeting` when it is loaded.
    pub fn answers_after(&self, mut command: Command, plugin: &str, greeting: &str, lines: &[&str]) -> Vec<String> {
        command.args(["-batch", "-ex", &format!("source {plugin}")]);
        for line in lines {
            command.args(["-ex", "echo \\n@@@\\n", "-ex", line]);
        }
        let (mut output, errors) = std::io::pipe().expect("a pipe");
        command.arg(&self.path).stdin(Stdio::null()).stdout(errors.try_clone().expect("a pipe")).stderr(errors);
        let mut child = command.spawn().expect("gdb starts");
        drop(command);
        let mut text = Vec::new();
        output.read_to_end(&mut text).expect("its output");
        child.wait().expect("it ends");
        let text = String::from_utf8_lossy(&text);
        let answers: Vec<String> = text.split("\n@@@\n").map(str::to_owned).collect();
        assert_eq!(answers.len(), lines.len() + 1, "{text}");
        let said = answers[0].trim();
        assert!(said.is_empty() == greeting.is_empty() && said.contains(greeting), "at first: {said}");
        assert!(!text.contains("Traceback") && !text.contains("Python Exception"), "{text}");
        answers[1..].to_vec()
    }

    /// Checks that the answers to lines contain what they must. The lines `before` bring the program to the right
    /// place.
    #[track_caller]
    pub fn check(&self, before: &[&str], table: &[(&str, &str)]) {
        let asked = table.iter().map(|(line, _)| *line);
        let lines: Vec<&str> = before.iter().copied().chain(asked).collect();
        let answers = self.answers(&lines);
        for ((line, expected), answer) in table.iter().zip(&answers[before.len()..]) {
            assert!(answer.contains(expected), "{line}: expected {expected:?} in {answer}\n{answers:#?}");
        }
    }
}

/// The source of the plugin.
pub fn plugin() -> String {
    fs::read_to_string(PLUGIN).expect("the plugin")
}
