//! Runs the statements and blocks of command files and of the prompt. Makes values of the rows of a command, for
//! `foreach`.

use super::base::Session;
use super::interrupt::Interrupts;
use super::outcome::{Input, LineOutcome, LineTally};
use super::parameters::{self, Parameters};
use crate::budget::Budget;
use crate::command::{self, LANGUAGE};
use crate::eval::{self, Integer, Origin, Spans, Value};
use crate::kernel::Name;
use crate::lang::script::{Block, Node, ScriptStatement, first_word};
use crate::lang::{self, Expression, ParsedLine, Rows, Spanned, SyntaxError};
use crate::render::{Record, RowRange, Sink};
use crate::report::{ErrorReport, Note, Stopped};
use crate::state::UserCommand;
use std::rc::Rc;
use std::time::Duration;

/// The deepest nesting of calls of user-defined commands.
const DEEPEST_CALLS: usize = 100;

/// The outcome of a statement or of a block, and where the run continues.
pub(super) struct StatementEnd {
    pub(super) outcome: LineOutcome,
    /// The jump, if there is one. Otherwise the next statement runs, if the outcome allows.
    jump: Option<Jump>,
}

/// An iteration of `foreach`.
struct ForeachRow {
    /// The value of its variable.
    value: Value,
    /// The id of the thread, for `foreach … in threads`.
    thread: Option<u32>,
}

impl From<Value> for ForeachRow {
    fn from(value: Value) -> Self {
        ForeachRow { value, thread: None }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Jump {
    /// To the end of the loop.
    Break,
    /// To the next iteration of the loop.
    Continue,
}

impl From<LineOutcome> for StatementEnd {
    fn from(outcome: LineOutcome) -> Self {
        let jump = None;
        StatementEnd { outcome, jump }
    }
}

impl From<Jump> for StatementEnd {
    fn from(jump: Jump) -> Self {
        let (outcome, jump) = (LineOutcome::Done, Some(jump));
        StatementEnd { outcome, jump }
    }
}

impl Session {
    /// Runs the statements of a block.
    pub(super) fn run_block(&mut self, block: &Block, file: Option<&Name>) -> StatementEnd {
        let mut tally = LineTally::new(self.options.keep_going);
        for statement in &block.0 {
            let StatementEnd { outcome, jump } = match file {
                Some(_) if self.is_traced(statement) => self.run_traced(statement, file).into(),
                _ => self.run_statement(statement, file),
            };
            if tally.add(outcome).is_break() || jump.is_some() {
                // With --keep-going a failure must not be lost if a jump ends the iteration.
                let outcome = tally.outcome();
                return StatementEnd { outcome, jump };
            }
        }
        tally.outcome().into()
    }

    /// Runs one statement.
    pub(super) fn run_statement(&mut self, statement: &ScriptStatement, file: Option<&Name>) -> StatementEnd {
        let input = Input { text: &statement.text, file: file.map(|name| (name, statement.line)) };
        let outcome = match &statement.node {
            Node::Text => self.run_line(input),
            Node::ParsedLine(line) => match self.user_command(input.text) {
                Some(command) => self.run_user(input, &command),
                None => self.run_parsed(input, line).0,
            },
            Node::If { condition, then, otherwise } => match self.truth(condition) {
                Ok(true) => return self.run_block(then, file),
                Ok(false) => return self.run_block(otherwise, file),
                Err(error) => self.evaluation_failed(input, error),
            },
            Node::While { condition, body } => self.run_loop(file, body, |session| match session.truth(condition) {
                Ok(goes_on) => Ok(goes_on),
                Err(error) => Err(session.evaluation_failed(input, error)),
            }),
            Node::Foreach { variable, rows, body } => match self.foreach_rows(rows, input) {
                Ok(rows) => {
                    let mut rows = rows.into_iter();
                    self.foreach_depth += 1;
                    let thread_around = self.state.thread;
                    let outcome = self.run_loop(file, body, |session| {
                        let Some(ForeachRow { value, thread }) = rows.next() else {
                            return Ok(false);
                        };
                        let variables = &mut session.state.variables;
                        variables.insert(variable.clone(), value);
                        if let Some(thread) = thread {
                            session.state.thread = Some(thread);
                            variables.insert("_thread".to_owned(), Value::Integer(Integer::from(u64::from(thread))));
                        }
                        Ok(true)
                    });
                    self.foreach_depth -= 1;
                    self.state.thread = thread_around;
                    outcome
                }
                Err(outcome) => outcome,
            },
            Node::Define { name, body } => match command::refuse_taken(name) {
                Ok(()) => {
                    let command = self.state.commands.entry(name.node.clone()).or_default();
                    *command = UserCommand {
                        body: Rc::clone(body),
                        file: file.cloned(),
                        alias: None,
                        document: command.document.take(),
                    };
                    LineOutcome::Done
                }
                Err(error) => self.evaluation_failed(input, error),
            },
            Node::Document { name, text: document } => match self.state.commands.get_mut(&name.node) {
                Some(command) => {
                    command.document = Some(document.clone());
                    LineOutcome::Done
                }
                None => {
                    let message = format!("you have defined no command `{}`", name.node);
                    let error = eval::Error::new(name.at, message).hint(format!("`define {}` defines one", name.node));
                    self.evaluation_failed(input, error)
                }
            },
            Node::Break => return Jump::Break.into(),
            Node::Continue => return Jump::Continue.into(),
        };
        outcome.into()
    }

    /// Returns whether a condition is true now.
    fn truth(&mut self, condition: &Spanned<Expression>) -> Result<bool, eval::Error> {
        let truth = eval::truth(condition, &self.state);
        self.print_notes();
        truth
    }

    /// Runs `body` while `next` returns true. Ctrl-C is checked in every iteration.
    fn run_loop(
        &mut self,
        file: Option<&Name>,
        body: &Block,
        mut next: impl FnMut(&mut Session) -> Result<bool, LineOutcome>,
    ) -> LineOutcome {
        let mut tally = LineTally::new(self.options.keep_going);
        loop {
            if self.interrupts.check().is_err() {
                return LineOutcome::Interrupted;
            }
            match next(self) {
                Ok(true) => {}
                Ok(false) => return tally.outcome(),
                // A condition without a value ends the loop, even with --keep-going.
                Err(outcome) => {
                    let _ = tally.add(outcome);
                    return tally.outcome();
                }
            }
            let StatementEnd { outcome, jump } = self.run_block(body, file);
            if tally.add(outcome).is_break() || jump == Some(Jump::Break) {
                return tally.outcome();
            }
        }
    }

    /// Returns the values of `foreach`, from one sweep.
    fn foreach_rows(&mut self, rows: &Rows, input: Input) -> Result<Vec<ForeachRow>, LineOutcome> {
        match rows {
            Rows::Values(values) => {
                if let [only] = values.as_slice()
                    && let Some(note) = numbers_as_range(only)
                {
                    self.note(note);
                }
                values
                    .iter()
                    .map(|value| eval::value(value, &self.state).map(ForeachRow::from))
                    .collect::<Result<_, _>>()
                    .map_err(|error| self.evaluation_failed(input, error))
            }
            Rows::Threads => self.thread_rows().map_err(|error| self.command_failed(input, error)),
            Rows::Of(command) => {
                let mut collector = Collector::new(&self.interrupts);
                let ran = command::run(&*command.node, &mut self.state, &mut collector, None);
                let (rows, notes) = collector.finish();
                for note in notes {
                    self.print(&note);
                }
                match ran {
                    Ok(_) => Ok(rows.into_iter().map(ForeachRow::from).collect()),
                    Err(error) => Err(self.command_failed(input, error)),
                }
            }
        }
    }

    /// Returns the stack pointer of each thread. A thread that runs all the time has none: it is left out, named, and
    /// counted in `$_running`.
    fn thread_rows(&mut self) -> Result<Vec<ForeachRow>, command::Error> {
        let target = self.state.target().ok_or_else(command::Error::no_target)?;
        let (mut rows, mut running) = (Vec::new(), Vec::new());
        for (thread, pointer) in target.process.stack_pointers()? {
            match pointer {
                Some(pointer) => rows.push(ForeachRow { value: Value::Address(pointer), thread: Some(thread.id) }),
                None => running.push(thread),
            }
        }
        for thread in &running {
            self.note(format!("thread {} ({}) is running: its stack pointer is not known", thread.id, thread.name));
        }
        let running = Value::Integer(Integer::from(running.len() as u64));
        self.state.variables.insert("_running".to_owned(), running);
        Ok(rows)
    }

    /// Reports that an expression has no value.
    pub(super) fn evaluation_failed(&mut self, input: Input, error: eval::Error) -> LineOutcome {
        self.command_failed(input, error.into())
    }

    /// Reports why a command failed, unless it was only stopped.
    fn command_failed(&mut self, input: Input, error: command::Error) -> LineOutcome {
        match input.command(error) {
            Some(report) => self.fail(report),
            None => LineOutcome::Interrupted,
        }
    }

    /// Returns the user-defined command with which a line begins.
    pub(super) fn user_command(&self, text: &str) -> Option<UserCommand> {
        if self.state.commands.is_empty() {
            return None;
        }
        let (word, _) = first_word(text)?;
        self.state.commands.get(word).cloned()
    }

    /// Replaces the alias at the beginning of a line. An alias never leads to itself, because `alias` refuses that.
    fn without_aliases(&self, line: &str) -> String {
        let mut line = line.to_owned();
        while let Some((word, at)) = first_word(&line)
            && let Some(alias) = self.state.commands.get(word).and_then(|command| command.alias.as_deref())
        {
            line = alias.to_owned() + line.get(at.end..).unwrap_or_default();
        }
        line
    }

    /// Runs a line that begins with a user-defined command.
    pub(super) fn run_user(&mut self, input: Input, command: &UserCommand) -> LineOutcome {
        let Some((name, word)) = first_word(input.text) else {
            return LineOutcome::Done;
        };
        let rest = input.text.get(word.end..).unwrap_or_default();
        if command.alias.is_some() {
            let text = &*self.without_aliases(input.text);
            return self.run_line(Input { text, ..input });
        }
        if self.state.arguments.len() >= DEEPEST_CALLS {
            let message = format!("`{name}` is not run: commands call one another {DEEPEST_CALLS} levels deep");
            return self.fail(input.about_line(message));
        }
        // Blanks in place of the name keep the places of errors.
        let blank = " ".repeat(word.end);
        let (arguments, output) = match LANGUAGE.parse_call(&format!("{blank}{rest}")) {
            Ok(call) => call,
            Err(error) => return self.fail(self.syntax(&input, error)),
        };
        let values: Result<Vec<Value>, _> =
            arguments.iter().map(|argument| eval::argument(argument, &self.state)).collect();
        let values = match values {
            Ok(values) => values,
            Err(error) => return self.evaluation_failed(input, error),
        };
        self.print_notes();
        let taken = Parameters::of_command(name, &command.body);
        if let Some((at, message)) = parameters::surplus_in_line(&taken, &arguments, input.text) {
            return self.evaluation_failed(input, eval::Error::new(at, message));
        }
        let call = input.place(Some(word));
        self.run_into(input, &output, |session| {
            session.state.arguments.push(values);
            let end =
                session.called_from(Some(call), |session| session.run_block(&command.body, command.file.as_ref()));
            session.state.arguments.pop();
            end.outcome
        })
    }

    /// Reports a line that is allowed only in a block.
    pub(super) fn fail_outside_a_block(&mut self, input: Input) -> LineOutcome {
        let (word, at) = first_word(input.text).unwrap_or_default();
        let (message, hint) = match word {
            "end" | "else" => (
                format!("this `{word}` belongs to no block"),
                "a block begins with if, while, foreach, define or document",
            ),
            _ => (
                format!("`{word}` needs a block of several lines"),
                if self.state.is_serving || self.reply.is_some() {
                    "send the whole block in one request: \"line\":\"if …\\nend\""
                } else {
                    "-ex is one line: write the block into a command file for -x or `source`"
                },
            ),
        };
        let report =
            ErrorReport { place: Some(input.place(Some(at))), hint: Some(hint.to_owned()), ..ErrorReport::of(message) };
        self.fail(report)
    }
}

/// Returns why a line may not run inside `foreach`: its rows are of the attached process.
pub(super) fn fault_in_foreach(line: &ParsedLine) -> Option<SyntaxError> {
    let ParsedLine::Command { command, .. } = line else {
        return None;
    };
    let line = line.to_string();
    let name = line.split(' ').next().unwrap_or_default();
    command::nature(&*command.node).chooses_target.then(|| SyntaxError {
        at: command.at,
        message: format!("`{name}` is not allowed inside `foreach`"),
        expected: Vec::new(),
        hint: None,
        pasted: None,
    })
}

/// Returns the hint for `1..3` as the only value of `foreach`, which is one range of addresses.
fn numbers_as_range(value: &Spanned<lang::Range>) -> Option<String> {
    let lang::Range::Span { start: Spanned { node: Expression::Integer(start), .. }, end } = &value.node else {
        return None;
    };
    // The first page is never mapped.
    let is_count = matches!(end.node, Expression::Integer(end) if end < 0x1000);
    is_count
        .then(|| format!("`{}` is one range: for numbers, write `foreach $x in {start}, {}`", value.node, start + 1))
}

/// Collects the range of each row, and the remarks.
pub(super) struct Collector<'a> {
    interrupts: &'a Interrupts,
    rows: Vec<Value>,
    notes: Vec<Note>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(interrupts: &'a Interrupts) -> Self {
        Collector { interrupts, rows: Vec::new(), notes: Vec::new() }
    }

    /// Returns the rows, and the remarks.
    pub(super) fn finish(self) -> (Vec<Value>, Vec<Note>) {
        (self.rows, self.notes)
    }
}

impl Sink for Collector<'_> {
    fn emit(&mut self, record: &dyn Record) -> Result<(), Stopped> {
        self.rows.extend(record.range().map(|range| match range {
            RowRange::Addresses(range) => Value::Range(Spans::one(range, Origin::Written)),
            RowRange::Frames(frames) => Value::Frames(frames),
        }));
        // A loop needs no totals, and its `limit` was intended.
        let note = record.downcast_ref::<Note>();
        self.notes.extend(note.filter(|note| !note.message.ends_with(command::CUT)).cloned());
        self.check()
    }

    fn check(&mut self) -> Result<(), Stopped> {
        self.interrupts.check()
    }

    fn budget(&self) -> Budget {
        Budget::until(self.interrupts.flag())
    }

    fn wait(&mut self, duration: Duration) -> Result<(), Stopped> {
        self.interrupts.wait_for(duration, None)
    }
}
