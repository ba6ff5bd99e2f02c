//! Records about the session and its target, for help, notes and errors, and for `--serve`.

use crate::kernel::Name;
use crate::kernel::words::worded;
use crate::report::ErrorCode;
use crate::report::json::{JsonForm, leaf, words};
use crate::report::record::{record, shapes};
use crate::report::records::RegionBrief;
use serde::{Deserialize, Serialize};

worded! {
    /// What became of the target.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum TargetEvent, word {
        /// The session is attached to the process.
        Attached = "attached",
        /// A capture of it was opened.
        Opened = "opened",
        /// The session has left it.
        Detached = "detached",
        /// It executed another program.
        Executed = "executed",
        /// It exited.
        Exited = "exited",
    }
}

words!(TargetEvent => "target_event");

record! {
    /// `attach`, `detach`: the session's new target.
    pub struct TargetReport as "target" {
        /// The event: `attached`, `opened` (of a capture), `detached`, `executed`, `exited`.
        event: TargetEvent,
        /// Process id.
        pid: u32,
        /// Short name (`comm`).
        name: Name,
        /// Executable.
        executable: Option<Name>,
        /// Regions it has.
        regions: Option<u64>,
        /// Remarks: it is a thread of …, it is pmdb itself.
        [optional] remarks: Vec<String>,
    }

    /// `echo`
    pub struct EchoedText as "text" {
        /// The text, its own line ends included.
        text: String,
    }
}

shapes! {
    /// `help`, `apropos`
    pub enum Help as "help" by "topic" {
        /// Questions, and every command by group.
        "overview" Overview(HelpOverview),
        /// Questions about a word.
        "questions" Questions(HelpQuestions),
        /// A heading with commands under it.
        "group" Group(HelpGroup),
        /// One command in full.
        "command" Command(HelpCommand),
        /// A subject that is no command.
        "subject" Subject(HelpSubject),
        /// The user-defined commands.
        "user-defined" UserDefined(UserCommands),
        /// One of them.
        "user-command" UserCommand(UserHelp),
    }
}

record! {
    /// Questions, and every command by group.
    #[derive(Eq)]
    pub struct HelpOverview {
        /// The most frequent questions.
        questions: Vec<HelpQuestion>,
        /// The commands to begin with.
        core: Vec<&'static str>,
        /// The groups of commands.
        groups: Vec<HelpGroup>,
    }

    /// Questions about a word.
    #[derive(Eq)]
    pub struct HelpQuestions {
        /// The word.
        about: String,
        /// The questions.
        questions: Vec<HelpQuestion>,
    }

    /// A question.
    #[derive(Copy, Eq)]
    pub struct HelpQuestion {
        /// The line that answers it. Words in capitals are placeholders.
        line: &'static str,
        /// The question.
        asks: &'static str,
    }

    /// A heading with commands under it.
    #[derive(Eq)]
    pub struct HelpGroup {
        /// Its name.
        name: &'static str,
        /// Its purpose.
        about: &'static str,
        /// Commands: usage name, short forms, summary.
        commands: Vec<HelpEntry>,
    }

    /// One command in full.
    pub struct HelpCommand {
        /// Its name.
        name: &'static str,
        /// Short forms.
        short: Vec<&'static str>,
        /// Usage lines, from the grammar.
        usage: Vec<String>,
        /// One line.
        summary: &'static str,
        /// Paragraphs.
        text: &'static str,
        /// Examples.
        examples: Vec<HelpExample>,
    }

    /// A subject that is no command.
    #[derive(Eq)]
    pub struct HelpSubject {
        /// Its name.
        name: &'static str,
        /// One line.
        summary: &'static str,
        /// Paragraphs, separated by empty lines. A line that begins with blanks is not filled; two blanks in it
        /// separate a term from its meaning.
        text: String,
    }

    /// A line, and what it does.
    #[derive(Eq)]
    pub struct HelpExample {
        /// The line.
        line: &'static str,
        /// Its effect.
        does: &'static str,
    }

    /// The user-defined commands.
    pub struct UserCommands {
        /// Their names, and the first line of the text of `document`.
        commands: Vec<UserHelp>,
    }

    /// A user-defined command.
    #[derive(Eq)]
    pub struct UserHelp {
        /// Its name.
        name: String,
        /// The text of `document`, or the command of an alias.
        text: String,
    }

    /// A command in a list.
    #[derive(Eq)]
    pub struct HelpEntry {
        /// Its name.
        name: &'static str,
        /// Short forms.
        short: Vec<&'static str>,
        /// One line.
        summary: &'static str,
    }

    /// A remark beside the answer: a remedy, a caution.
    #[derive(Eq)]
    pub struct Note as "note" {
        /// One sentence.
        message: String,
    }

    /// The sentence that answers, before the rows of a long answer.
    #[derive(Eq)]
    pub struct Answer as "answer" {
        /// The sentence.
        message: String,
    }

    /// `assert`
    pub struct AssertionReport as "assertion" {
        /// The expression, as it was typed.
        expression: String,
        /// Whether it is true.
        holds: bool,
        /// The message if it is not.
        message: Option<String>,
        /// The values that decided, and those of the variables in them.
        values: Vec<AssertionValue>,
        /// Its place.
        [as "where"] place: Option<ErrorPlace>,
    }

    /// A part of an asserted expression.
    pub struct AssertionValue {
        /// The part.
        expression: String,
        /// Its value.
        value: String,
        /// The value that was expected.
        [optional] wanted: Option<String>,
    }

    /// The totals of a run with assertions.
    #[derive(Copy, Eq, Default)]
    pub struct AssertionsSummary as "assertions-summary" {
        /// Assertions that held.
        held: u64,
        /// Assertions that failed.
        failed: u64,
        /// Assertions without a value: they neither held nor failed.
        unknown: u64,
    }

    /// A failure.
    #[derive(Default)]
    pub struct ErrorReport as "error" {
        /// The action and the reason for its failure.
        message: String,
        /// The kind of failure, in one word (`help codes`).
        code: ErrorCode,
        /// File, line and column, or column of the line typed.
        [as "where"] place: Option<ErrorPlace>,
        /// The lines that led there, the innermost first: calls of user-defined commands, and `source`.
        [optional] callers: Vec<ErrorPlace>,
        /// The expected words at the place of a syntax error.
        [optional] expected: Vec<String>,
        /// The remedy.
        hint: Option<String>,
        /// Regions near an address, or those that an ambiguous name could mean.
        [optional] nearest: Vec<RegionBrief>,
    }
}

impl ErrorReport {
    /// Returns an error with a message only.
    pub fn of(message: impl Into<String>) -> Self {
        ErrorReport { message: message.into(), ..ErrorReport::default() }
    }

    /// Returns the error with this code.
    pub fn with_code(self, code: ErrorCode) -> Self {
        ErrorReport { code, ..self }
    }
}

record! {
    /// The place of an error in the input.
    #[derive(Eq)]
    pub struct ErrorPlace {
        /// Command file, if it was one.
        file: Option<Name>,
        /// Line in it, from 1.
        line: Option<usize>,
        /// Column in characters, from 1; `null` for the whole line.
        column: Option<usize>,
        /// The length of the place in characters.
        width: usize,
        /// The line.
        text: String,
    }
}

impl ErrorPlace {
    /// Returns the file, line and column as a prefix, `tour.pmdb:3:11: `; empty for a typed line.
    pub fn position(&self) -> String {
        let Some(file) = &self.file else {
            return String::new();
        };
        let mut text = format!("{file}:");
        if self.is_built_in() {
            return text + " ";
        }
        for number in [self.line, self.line.and(self.column)].into_iter().flatten() {
            text.push_str(&format!("{number}:"));
        }
        text.push(' ');
        text
    }
}

impl ErrorPlace {
    /// Whether it is in a file that nobody can open, because pmdb contains it.
    pub fn is_built_in(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.as_bytes().starts_with(b":"))
    }
}

/// Writes the position and the line.
impl std::fmt::Display for ErrorPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}{}", self.position(), self.text.trim())
    }
}

/// Splits a row of a help text at its last gap of two blanks: a term may have several parts.
pub fn term_and_meaning(line: &str) -> Option<(&str, &str)> {
    let (term, meaning) = line.strip_prefix(' ')?.trim().rsplit_once("  ")?;
    Some((term.trim_end(), meaning))
}

record! {
    /// The first record of `--serve`.
    pub struct Hello as "hello" {
        /// `pmdb`
        program: &'static str,
        /// Its version.
        version: &'static str,
        /// The version of the protocol: a client for another one stops here.
        protocol: u32,
    }

    /// The end of a request (`--serve`).
    pub struct End as "end" {
        /// The request's own id, or the number of its line, from 1; 0 for the request of the command line.
        id: RequestId,
        /// `ok`, `error`, or `interrupted`
        status: EndStatus,
        /// The code of the error, as in its record; `null` for `ok`.
        code: Option<ErrorCode>,
    }
}

leaf! {
    RequestId => JsonForm::Either(&JsonForm::Integer, &JsonForm::Text),
    EndStatus => JsonForm::word::<EndStatus>("status"),
}

worded! {
    /// How a request has ended.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum EndStatus, word {
        /// Without an error.
        Ok = "ok",
        /// With an error.
        Error = "error",
        /// Stopped before its end.
        Interrupted = "interrupted",
    }
}

/// The id of a request, as the client chose it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestId {
    /// An integer.
    Number(u64),
    /// A string.
    Text(String),
}

impl RequestId {
    /// Returns the length in bytes of a string; 0 for a number.
    pub fn bytes(&self) -> usize {
        match self {
            RequestId::Number(_) => 0,
            RequestId::Text(text) => text.len(),
        }
    }
}
