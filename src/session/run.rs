//! Parses lines and runs them as jobs.

use super::base::{Repeatable, Session};
use super::block::fault_in_foreach;
use super::job::Job;
use super::outcome::{Input, LineOutcome, LineTally};
use crate::command::LANGUAGE;
use crate::command::{self, Attach, Resume, TargetCapture, TargetName};
use crate::command::{Display, Set};
use crate::eval::{self, Value};
use crate::lang::script::Builder;
use crate::lang::{Argument, Output, ParsedCommand, ParsedLine, Span, Spanned};
use std::rc::Rc;

impl Session {
    /// Attaches to a process, as `attach` does.
    pub fn attach(&mut self, target: TargetName) -> LineOutcome {
        self.choose_target(boxed_command(Attach(Spanned::new(target, Span::default()))))
    }

    /// Opens a capture, as `target capture` does.
    pub fn open_capture(&mut self, path: String) -> LineOutcome {
        self.choose_target(boxed_command(TargetCapture { path: Spanned::new(path, Span::default()), pid: None }))
    }

    fn choose_target(&mut self, command: Rc<dyn ParsedCommand>) -> LineOutcome {
        let command = Spanned::new(command, Span::default());
        let mut job = Job::new(Input::typed_line(""), &command);
        job.is_quiet = self.options.is_quiet;
        self.run_job(&job).0
    }

    /// Runs a command that was not typed.
    pub(super) fn run_command(&mut self, command: impl ParsedCommand) -> LineOutcome {
        let command = Spanned::new(boxed_command(command), Span::default());
        self.run_job(&Job::new(Input::typed_line(""), &command)).0
    }

    /// Shows the displays, unless they were shown after the last line.
    pub fn show_displays(&mut self) {
        if self.state.displays.is_empty() || std::mem::take(&mut self.has_shown_displays) {
            return;
        }
        let nowhere = Span::default();
        let all = boxed_command(Display::default());
        let command = Spanned::new(all, nowhere);
        self.run_job(&Job::new(Input::typed_line("display"), &command));
        self.has_shown_displays = false;
    }

    /// Sets `$arg0`, `$arg1` … from the command line. Each text is one value.
    pub fn give_arguments(&mut self, texts: &[String]) -> LineOutcome {
        let mut values = Vec::with_capacity(texts.len());
        for text in texts {
            let is_text = |argument: &Spanned<Argument>| argument.node.value.is_none() && text.contains(' ');
            let value = match LANGUAGE.parse_argument(text).filter(|argument| !is_text(argument)) {
                Some(one) => eval::argument(&one, &self.state),
                None => Ok(Value::Text(text.clone())),
            };
            match value {
                Ok(value) => values.push(value),
                Err(error) => return self.evaluation_failed(Input::typed_line(text), error),
            }
        }
        self.state.arguments.push(values);
        LineOutcome::Done
    }

    /// Runs one line.
    pub fn run_line(&mut self, input: Input) -> LineOutcome {
        self.run_line_or_user_command(input).0
    }

    /// Runs one line: a user-defined command, or otherwise one of pmdb. The latter is returned, with the place where it
    /// stopped.
    fn run_line_or_user_command(&mut self, input: Input) -> (LineOutcome, Option<(ParsedLine, Option<Resume>)>) {
        if let Some(command) = self.user_command(input.text) {
            return (self.run_user(input, &command), None);
        }
        match LANGUAGE.parse_line(input.text) {
            Ok(line) => {
                let (outcome, resume) = self.run_parsed(input, &line);
                (outcome, Some((line, resume)))
            }
            Err(error) => (self.fail(self.syntax(&input, error)), None),
        }
    }

    /// Runs an entry of the prompt: a line, or the lines of a block. An empty line repeats or continues the last
    /// command.
    pub fn run_typed(&mut self, text: &str) -> LineOutcome {
        // Only here: Ctrl-C between the lines of a file is meant for the file.
        self.interrupts.forget();
        self.is_line_typed = true;
        self.has_shown_displays = false;
        let outcome = self.run_entry(text);
        self.is_line_typed = false;
        outcome
    }

    fn run_entry(&mut self, text: &str) -> LineOutcome {
        let last = self.repeatable.take();
        let input = Input::typed_line(text);
        if opens_block(text) {
            return self.run_typed_lines(text);
        }
        if text.trim().is_empty() {
            return match last {
                Some(last) => self.repeat(last),
                None => LineOutcome::Done,
            };
        }
        let (outcome, parsed) = self.run_line_or_user_command(input);
        self.repeatable = match parsed {
            // An empty line never repeats a shell command, a redirection, a change of the process or a written file.
            Some((ParsedLine::Command { command, output: Output::Screen }, resume)) if !has_effects(&*command.node) => {
                Some(Repeatable { text: text.to_owned(), command, resume })
            }
            _ => None,
        };
        outcome
    }

    /// Runs a line of a program, from the place where the same line stopped before if it `continues`. Unlike at the
    /// prompt, other lines may have run in between.
    pub(super) fn run_request(&mut self, text: &str, continues: bool) -> LineOutcome {
        // A line that runs from its beginning gets a new place to continue.
        if let Some(last) = self.repeatable.take_if(|last| last.text == text)
            && continues
        {
            return self.repeat(last);
        }
        let (outcome, parsed) = self.run_line_or_user_command(Input::typed_line(text));
        if let Some((ParsedLine::Command { command, output: Output::Screen }, resume @ Some(_))) = parsed {
            self.repeatable = Some(Repeatable { text: text.to_owned(), command, resume });
        }
        outcome
    }

    /// Runs several lines that are not from a file, such as a block. An error ends them.
    pub(super) fn run_typed_lines(&mut self, text: &str) -> LineOutcome {
        let mut builder = Builder::new(LANGUAGE);
        let mut statements = Vec::new();
        let mut numbered = text.lines().enumerate();
        let read = numbered.try_for_each(|(index, line)| {
            statements.extend(builder.push(index + 1, line)?);
            Ok(())
        });
        if let Err(fault) = read.and_then(|()| builder.finish()) {
            return self.fail(self.syntax(&Input::typed_line(&fault.text), fault.error));
        }
        let mut tally = LineTally::new(false);
        for statement in statements {
            let end = self.run_statement(&statement, None);
            if tally.add(end.outcome).is_break() {
                break;
            }
        }
        tally.outcome()
    }

    fn repeat(&mut self, last: Repeatable) -> LineOutcome {
        let mut job = Job::new(Input::typed_line(&last.text), &last.command);
        job.resume = last.resume;
        let (outcome, resume) = self.run_job(&job);
        self.repeatable = Some(Repeatable { resume, ..last });
        outcome
    }

    pub(super) fn run_parsed(&mut self, input: Input, line: &ParsedLine) -> (LineOutcome, Option<Resume>) {
        if self.foreach_depth > 0
            && let Some(error) = fault_in_foreach(line)
        {
            return (self.fail(input.syntax(error)), None);
        }
        if input.file.is_none()
            && let Some(report) = self.refuse_row(&input)
        {
            return (self.fail(report), None);
        }
        if input.file.is_none()
            && let Some(note) = self.meant_otherwise(input.text)
            && self.state.noted.insert(note.clone())
        {
            self.note(note);
        }
        match line {
            ParsedLine::Control(_) => (self.fail_outside_a_block(input), None),
            ParsedLine::Empty | ParsedLine::Comment => (LineOutcome::Done, None),
            ParsedLine::Shell(shell_text) => (self.run_shell(input, shell_text), None),
            ParsedLine::Command { command, output } => {
                // An assignment prints nothing, so no destination is opened, which makes loops faster.
                if let (Some(Set::Variable { name, value }), Output::Screen) = (command.node.downcast_ref(), output) {
                    return match command::assign(&mut self.state, name, value) {
                        Ok(()) => {
                            self.print_notes();
                            (LineOutcome::Done, None)
                        }
                        Err(error) => (self.evaluation_failed(input, error), None),
                    };
                }
                let mut job = Job::new(input, command);
                job.output = output;
                self.run_job(&job)
            }
        }
    }
}

/// Makes a command that was not typed.
fn boxed_command(command: impl ParsedCommand) -> Rc<dyn ParsedCommand> {
    Rc::new(command)
}

/// Returns whether the first line opens a block.
fn opens_block(text: &str) -> bool {
    let mut builder = Builder::new(LANGUAGE);
    let first = builder.push(1, text.lines().next().unwrap_or_default());
    first.is_ok() && builder.is_open()
}

/// Returns whether a command changes more than pmdb: the process, or a file.
fn has_effects(command: &dyn ParsedCommand) -> bool {
    let nature = command::nature(command);
    nature.changes_process || nature.writes_file
}
