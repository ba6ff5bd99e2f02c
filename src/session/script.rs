//! Runs command files, including built-in ones. A regular file is read whole before its first line runs, so that a
//! block without `end` is reported at once. A pipe may be endless, so its lines run as they arrive.

use super::base::{RunningFile, Session, settings_directory};
use super::interrupt::Interrupts;
use super::lines::{self, BinaryLine, LineReader, NoLine};
use super::outcome::{Input, LineOutcome, LineTally, words};
use super::pager;
use super::parameters::{Caller, Parameters};
use crate::command::LANGUAGE;
pub use crate::command::SCRIPTS;
use crate::kernel::Name;
use crate::lang::script::{BlockFault, Builder, Node, ScriptStatement, first_word};
use crate::lang::{Span, SyntaxError};
use crate::own::own_file::{self, Links};
use crate::render::{Role, printable};
use crate::report::{EchoedText, ErrorCode, ErrorPlace, ErrorReport};
use rustix::io::Errno;
use std::io::IsTerminal;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use unicode_width::UnicodeWidthStr;

/// The text of the prompt.
pub const PROMPT: &str = "(pmdb) ";

/// The deepest nesting of `source`. Only a chain of generated files could be deeper.
const DEEPEST: usize = 100;

/// The most bytes of lines that are kept in memory to run together.
pub(super) const LARGEST: usize = 4 << 20;

impl Session {
    /// Runs a command file. `place` is that of the `source` command, if there is one.
    pub fn run_file(&mut self, path: &Path, place: Option<ErrorPlace>) -> LineOutcome {
        let name = Name::new(path.as_os_str().as_bytes());
        let outcome = match built_in(path) {
            Some(built_in) => {
                built_in.map(|text| self.called_from(place.clone(), |session| session.run_text(text, &name)))
            }
            None => open(path, &name).and_then(|file| {
                let identity = self.identity_if_not_running(&name, &file)?;
                let running = RunningFile { name, identity };
                Ok(self.called_from(place.clone(), |session| session.run_lines(file, running)))
            }),
        };
        outcome.unwrap_or_else(|message| {
            let hint = built_in_of_name(path);
            let report = ErrorReport { place, hint, code: ErrorCode::Io, ..ErrorReport::of(message) };
            self.fail(report)
        })
    }

    /// Runs a built-in command file.
    fn run_text(&mut self, text: &str, name: &Name) -> LineOutcome {
        let mut builder = Builder::new(LANGUAGE);
        let mut steps = Vec::new();
        for (index, line) in text.lines().enumerate() {
            match builder.push(index + 1, line) {
                Ok(statement) => steps.extend(statement.map(FileStep::Statement)),
                Err(fault) => return self.fail_with(name, fault),
            }
        }
        let running = RunningFile { name: name.clone(), identity: None };
        self.files.push(running);
        let outcome = self.check_and_run(steps, name, LineTally::new(self.options.keep_going));
        self.files.pop();
        outcome
    }

    /// Runs standard input as a command file.
    pub fn run_input(&mut self) -> LineOutcome {
        match std::io::stdin().as_fd().try_clone_to_owned() {
            Ok(input) => {
                let (name, identity) = ("<stdin>".into(), None);
                self.run_lines(input, RunningFile { name, identity })
            }
            Err(error) => self.input_failed(&words(error)),
        }
    }

    fn identity_if_not_running(&self, name: &Name, file: &OwnedFd) -> Result<Option<(u64, u64)>, String> {
        let stat = rustix::fs::fstat(file).map_err(words)?;
        let identity = Some((stat.st_dev, stat.st_ino));
        let mut files = self.files.iter();
        if let Some(first) = files.position(|running| running.identity == identity) {
            let again = self.files.iter().skip(first);
            let chain: Vec<String> = again.map(|running| running.name.to_string()).collect();
            return Err(format!("{name} would run itself without end: {} \u{2192} {name}", chain.join(" \u{2192} ")));
        }
        if self.files.len() >= DEEPEST {
            return Err(format!(
                "{name} is not run: {DEEPEST} command files are running already, each started by the one before"
            ));
        }
        Ok(identity)
    }

    fn run_lines(&mut self, file: OwnedFd, running: RunningFile) -> LineOutcome {
        let name = running.name.clone();
        self.files.push(running);
        let outcome = self.run_each_line(LineReader::new(file), &name);
        self.files.pop();
        outcome
    }

    fn run_each_line(&mut self, mut lines: LineReader, name: &Name) -> LineOutcome {
        let mut tally = LineTally::new(self.options.keep_going);
        // All of a binary file is refused, even with --keep-going, because a line of it could be a shell command.
        match lines.are_binary(&self.interrupts) {
            Ok(false) => {}
            Ok(true) => {
                let message = format!(
                    "{name} is not run: there are zero bytes in it, so it is a binary file, not a command file"
                );
                return self.fail(ErrorReport::of(message));
            }
            Err(none) => return self.fail_to_read(name, none),
        }
        let is_file = lines.are_of_a_file();
        let mut builder = Builder::new(LANGUAGE);
        let mut steps = Vec::new();
        let mut bytes = 0;
        loop {
            let line = match lines.next(&self.interrupts) {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(none) => return self.fail_to_read(name, none),
            };
            let step = match line.text {
                Err(bad) if !builder.is_open() => FileStep::Bad(line.number, bad),
                Err(bad) => return self.fail(bad.report(at_line(name, line.number, &bad.text))),
                Ok(text) => {
                    bytes += text.len() + 1;
                    let pushed = if bytes > LARGEST && (is_file || builder.is_open()) {
                        Err(too_large(line.number, &text))
                    } else {
                        builder.push(line.number, &text)
                    };
                    match pushed {
                        Ok(Some(statement)) => FileStep::Statement(statement),
                        Ok(None) => continue,
                        Err(fault) => return self.fail_with(name, fault),
                    }
                }
            };
            match is_file {
                // Empty lines and comments need not wait.
                true if step.is_idle() => {}
                true => steps.push(step),
                false => {
                    bytes = 0;
                    let checked = self.check_blocks(step.statement().as_slice(), name, true);
                    if tally.add(checked).is_break() || tally.add(self.run_step(step, name)).is_break() {
                        return tally.outcome();
                    }
                }
            }
        }
        if let Err(fault) = builder.finish() {
            let _ = tally.add(self.fail_with(name, fault));
            return tally.outcome();
        }
        self.check_and_run(steps, name, tally)
    }

    fn check_and_run(&mut self, steps: Vec<FileStep>, name: &Name, mut tally: LineTally) -> LineOutcome {
        let statements: Vec<&ScriptStatement> = steps.iter().filter_map(FileStep::statement).collect();
        if tally.add(self.check_blocks(&statements, name, false)).is_break() {
            return tally.outcome();
        }
        for step in steps {
            // Ctrl-C between two lines is meant for the file.
            let outcome = match self.interrupts.check() {
                Ok(()) => self.run_step(step, name),
                Err(_) => LineOutcome::Interrupted,
            };
            if tally.add(outcome).is_break() {
                break;
            }
        }
        tally.outcome()
    }

    fn run_step(&mut self, step: FileStep, name: &Name) -> LineOutcome {
        match step {
            FileStep::Bad(line, bad) => self.fail(bad.report(at_line(name, line, &bad.text))),
            FileStep::Statement(statement) if self.is_traced(&statement) => self.run_traced(&statement, Some(name)),
            FileStep::Statement(statement) => self.run_statement(&statement, Some(name)).outcome,
        }
    }

    /// Returns whether a line is printed before it runs. `echo` and `set` are not, because they only prepare other
    /// lines. In a block only lines that run are printed.
    pub(super) fn is_traced(&self, statement: &ScriptStatement) -> bool {
        if !self.state.settings.trace_commands || self.is_json() {
            return false;
        }
        let is_line = matches!(statement.node, Node::Text | Node::ParsedLine(_));
        let word = first_word(&statement.text).map(|(word, _)| word);
        is_line && !matches!(word, None | Some("echo" | "set"))
    }

    /// Prints a line as it would be typed, runs it, and waits for Enter if there is a prompt.
    pub(super) fn run_traced(&mut self, statement: &ScriptStatement, file: Option<&Name>) -> LineOutcome {
        let theme = self.theme();
        let line = theme.paint(Role::Command, printable(statement.text.trim()));
        self.print(&EchoedText { text: format!("{}{line}\n", theme.paint(Role::Prompt, PROMPT)) });
        let outcome = self.run_statement(statement, file).outcome;
        let is_stopping = self.is_interactive() && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        if outcome != LineOutcome::Done || !is_stopping {
            return outcome;
        }
        match pager::wait_for_enter(&self.interrupts) {
            Ok(true) => LineOutcome::Done,
            Ok(false) | Err(_) => LineOutcome::Interrupted,
        }
    }

    pub(super) fn fail_with(&mut self, name: &Name, fault: BlockFault) -> LineOutcome {
        let report = self.syntax(&at_line(name, fault.line, &fault.text), fault.error);
        self.fail(report)
    }

    fn fail_to_read(&mut self, name: &Name, why: NoLine) -> LineOutcome {
        match why {
            NoLine::Stopped(_) => LineOutcome::Interrupted,
            NoLine::Failed(error) => {
                let message = format!("cannot read {name}: {}", words(error));
                self.fail(ErrorReport::of(message).with_code(ErrorCode::Io))
            }
        }
    }
}

/// The next part of a file.
enum FileStep {
    Statement(ScriptStatement),
    /// A line that is not text, and its number.
    Bad(usize, BinaryLine),
}

impl FileStep {
    fn statement(&self) -> Option<&ScriptStatement> {
        match self {
            FileStep::Statement(statement) => Some(statement),
            FileStep::Bad(..) => None,
        }
    }

    /// Returns whether it is an empty line or a comment.
    fn is_idle(&self) -> bool {
        self.statement().is_some_and(|statement| {
            let text = statement.text.trim();
            statement.node == Node::Text && (text.is_empty() || text.starts_with('#'))
        })
    }
}

fn at_line<'a>(name: &'a Name, line: usize, text: &'a str) -> Input<'a> {
    Input { text, file: Some((name, line)) }
}

/// Makes the fault of a file or block that is too large for memory.
fn too_large(line: usize, text: &str) -> BlockFault {
    BlockFault {
        line,
        text: text.into(),
        error: SyntaxError {
            at: Span::new(0, text.len()),
            message: format!(
                "the command file, or the block, is larger than {} MiB: nothing of it is run",
                LARGEST >> 20
            ),
            expected: vec!["its end before this line".to_owned()],
            hint: Some("lines from a pipe run one by one, whatever their number: `pmdb -x <(cat FILE)`".to_owned()),
            pasted: None,
        },
    }
}

impl lines::BinaryLine {
    /// Makes the report of the line.
    pub(super) fn report(&self, input: Input) -> ErrorReport {
        let mut place = input.place(None);
        place.column = Some(self.column + 1);
        place.width = 1;
        ErrorReport { place: Some(place), code: ErrorCode::Syntax, ..ErrorReport::of(self.message) }
    }
}

/// Opens a command file. A file in the directory of the init file must belong to the user or to root.
pub(super) fn open(path: &Path, name: &Name) -> Result<OwnedFd, String> {
    if !settings_directory().is_some_and(|settings| path.starts_with(settings)) {
        return lines::open(path).map_err(|why| format!("cannot read {name}: {why}"));
    }
    match own_file::open(path, Links::Followed) {
        Ok(Some(file)) => Ok(file),
        Ok(None) => Err(format!("cannot read {name}: {}", words(Errno::NOENT))),
        Err(why) => Err(format!("{name} is not run: {why}")),
    }
}

/// Returns whether a path is the name of a built-in file, such as `:dma`.
pub fn is_built_in(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().starts_with(b":")
}

/// Returns the hint for the name of a built-in file without its colon.
fn built_in_of_name(path: &Path) -> Option<String> {
    let name = path.file_stem()?.to_str()?;
    SCRIPTS.iter().any(|(script, _)| *script == name).then(|| format!("the built-in command file: `source :{name}`"))
}

/// Returns the text of a built-in file by a path like `:dma`. `Err` lists the built-in files.
pub(super) fn built_in(path: &Path) -> Option<Result<&'static str, String>> {
    let name = path.to_str()?.strip_prefix(':')?;
    let found = SCRIPTS.iter().find(|(script, _)| *script == name);
    Some(found.map(|(_, text)| *text).ok_or_else(|| {
        let names: Vec<&str> = SCRIPTS.iter().map(|(name, _)| *name).collect();
        format!("no built-in command file is called :{name}, expected one of: :{}", names.join(", :"))
    }))
}

/// Returns the arguments that a command file takes, after a check that the file is there and gets those that it needs.
///
/// # Errors
/// Fails with what is wrong, in words.
pub fn check_file(path: &Path, given: usize) -> Result<Parameters, String> {
    if !is_built_in(path) {
        let name = Name::new(path.as_os_str().as_bytes());
        match std::fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let built_in = built_in_of_name(path).map_or_else(String::new, |hint| format!("; {hint}"));
                return Err(format!("cannot read {name}: {}{built_in}", crate::access::words(error)));
            }
            // The lines of a pipe can be read only once.
            Ok(found) if found.is_file() => {}
            Ok(_) | Err(_) => return Ok(Parameters::unknown(path)),
        }
    }
    let parameters = match Interrupts::without_signal() {
        Ok(interrupts) => parameters_of(path, &interrupts)?,
        Err(error) => return Err(words(error)),
    };
    parameters.fault_of_missing(given, Caller::Shell).map_or(Ok(parameters), Err)
}

/// Returns the statements of a file; `None` if it cannot be read before it runs.
pub(super) fn statements_of(path: &Path, name: &Name, interrupts: &Interrupts) -> Option<Vec<ScriptStatement>> {
    let mut builder = Builder::new(LANGUAGE);
    let mut statements = Vec::new();
    if let Some(text) = built_in(path) {
        for (index, line) in text.ok()?.lines().enumerate() {
            statements.extend(builder.push(index + 1, line).ok()?);
        }
        return Some(statements);
    }
    let mut lines = LineReader::new(open(path, name).ok()?);
    if !lines.are_of_a_file() || lines.are_binary(interrupts).ok()? {
        return None;
    }
    let mut bytes = 0;
    while let Some(line) = lines.next(interrupts).ok()? {
        let text = line.text.ok()?;
        bytes += text.len() + 1;
        if bytes > LARGEST {
            return None;
        }
        statements.extend(builder.push(line.number, &text).ok()?);
    }
    Some(statements)
}

/// Returns the arguments that a command file takes, as far as it can be read before it runs.
///
/// # Errors
/// Fails if there is no such built-in file.
pub(super) fn parameters_of(path: &Path, interrupts: &Interrupts) -> Result<Parameters, String> {
    built_in(path).transpose()?;
    let name = Name::new(path.as_os_str().as_bytes());
    let statements = statements_of(path, &name, interrupts);
    Ok(statements.map_or_else(|| Parameters::unknown(path), |statements| Parameters::of_file(path, &statements)))
}

/// Returns a line for each built-in file: its name and the first line of its help.
pub fn list_of_scripts() -> String {
    let line = |(name, text): &(&str, &str)| {
        let help = help_of(text.lines());
        let first = help.lines().next().unwrap_or_default();
        format!(":{name:<13} {first}\n")
    };
    SCRIPTS.iter().map(line).collect()
}

/// Returns the comments at the beginning of a command file, which are its help, for a terminal of `width` columns.
///
/// # Errors
/// Fails with the reason in words, if the file cannot be read.
pub fn help_of_file(path: &Path, width: Option<usize>) -> Result<String, String> {
    let help = comments_of_file(path)?;
    Ok(match width {
        Some(width) if help.lines().any(|line| line.width() > width) => wrapped(&help, width),
        _ => help,
    })
}

fn comments_of_file(path: &Path) -> Result<String, String> {
    if let Some(built_in) = built_in(path) {
        return built_in.map(|text| help_of(text.lines()));
    }
    let said = |why: String| format!("cannot read {}: {why}", path.display());
    let file = lines::open(path).map_err(said)?;
    let interrupts = Interrupts::listen().map_err(|error| said(words(error)))?;
    let mut lines = LineReader::new(file);
    let mut comments = Vec::new();
    while let Ok(Some(line)) = lines.next(&interrupts) {
        match line.text {
            Ok(text) if text.starts_with('#') => comments.push(text),
            _ => break,
        }
    }
    match help_of(comments.iter().map(String::as_str)) {
        help if help.is_empty() => Err(format!("{} begins with no comment", path.display())),
        help => Ok(help),
    }
}

/// Returns the first comments without their marks, and without the `#!` line.
fn help_of<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines
        .take_while(|line| line.starts_with('#'))
        .filter(|line| !line.starts_with("#!"))
        .map(|line| line.trim_start_matches('#'))
        .map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line)))
        .collect()
}

/// Breaks paragraphs between their words. Indented lines stay as they are.
fn wrapped(text: &str, width: usize) -> String {
    let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
    let lines: Vec<&str> = text.lines().collect();
    let parts = lines.chunk_by(|one, next| is_prose(one) && is_prose(next));
    let mut out = String::new();
    for part in parts {
        let mut column = 0;
        let words: Vec<&str> = if part.iter().all(|line| is_prose(line)) {
            part.iter().flat_map(|line| line.split_whitespace()).collect()
        } else {
            part.to_vec()
        };
        for word in words {
            let needed = word.width();
            if column > 0 {
                let has_room = column + 1 + needed <= width;
                out.push(if has_room { ' ' } else { '\n' });
                column = if has_room { column + 1 } else { 0 };
            }
            out.push_str(word);
            column += needed;
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_of_a_file_wraps_between_words() {
        let text = "One two three.\nFour five six.\n\n    pmdb -batch -x :oom PID\n    pmdb 1\n";
        let wide = "One two three. Four\nfive six.\n\n    pmdb -batch -x :oom PID\n    pmdb 1\n";
        assert_eq!(wrapped(text, 19), wide);
        for (name, _) in SCRIPTS {
            let path = format!(":{name}");
            let help = |width| help_of_file(Path::new(&path), width).expect("a built-in file");
            let words = |help: String| help.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(help(Some(60))), words(help(None)), "{name}");
            let prose = |line: &&str| !line.starts_with(' ');
            assert!(help(Some(60)).lines().filter(prose).all(|line| line.width() <= 60), "{name}");
        }
    }

    #[test]
    fn the_first_comments_are_the_help() {
        let text = "#!/usr/bin/env -S pmdb -batch -x\n# One.\n#\n#     pmdb 1\necho\n# no";
        assert_eq!(help_of(text.lines()), "One.\n\n    pmdb 1\n");
    }

    #[test]
    fn built_in_files_take_the_arguments_of_their_usage() {
        let check = |name: &str, given| check_file(Path::new(name), given).err().unwrap_or_default();
        assert_eq!(check(":oom", 0), "`:oom` needs LIMIT: pmdb -batch -x :oom PID LIMIT [SECONDS]");
        assert!(check(":dma", 0).starts_with("`:dma` needs BUFFER: pmdb -batch -x :dma PID BUFFER ["));
        for (name, arguments) in [(":oom", 1), (":dma", 4), (":tour", 0), (":hugepages", 0), ("Cargo.toml", 0)] {
            assert_eq!(check(name, arguments), "", "{name}");
        }
        for (name, most) in [("tour", 0), ("swapped", 0), ("oom", 2), ("dma", 4), ("hugepages", 2)] {
            let parameters = check_file(Path::new(&format!(":{name}")), most).expect("a built-in file");
            assert_eq!(parameters.first_surplus(most + 1), Some(most), "{name}");
        }
        assert!(check(":none", 3).contains("expected one of: :"));
        assert_eq!(check("/missing", 0), "cannot read /missing: no such file or directory");
        assert!(check("/missing/dma.pmdb", 0).ends_with("; the built-in command file: `source :dma`"));
    }

    #[test]
    fn every_built_in_file_has_a_help_and_is_listed() {
        let list = list_of_scripts();
        for (name, text) in SCRIPTS {
            assert!(help_of(text.lines()).lines().count() > 2, "{name}");
            assert!(list.contains(&format!(":{name} ")), "{list}");
            assert!(!list.contains(":\n"), "{list}");
            assert!(matches!(built_in(Path::new(&format!(":{name}"))), Some(Ok(_))));
        }
        assert!(matches!(built_in(Path::new(":none")), Some(Err(message)) if message.contains(":dma")));
        assert_eq!(built_in(Path::new("dma")), None);
    }
}
