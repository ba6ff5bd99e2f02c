//! What a command is, what it gets and returns, and its entry in the list of all commands.

use super::about::About;
use super::error::Error;
use crate::eval::Value;
use crate::kernel::{FrameNumber, VirtualAddress};
use crate::lang::parser::{Parsed, Tokens};
use crate::lang::{How, Language, ParsedCommand, Reach, Statement, Syntax};
use crate::process::Target;
#[cfg(test)]
use crate::render::Record;
use crate::render::Sink;
use crate::report::{AssertionReport, Shape};
use crate::state::DebugState;
use std::fmt::{self, Debug, Formatter};
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

/// A command: its arguments, and all that is known of it.
pub trait Command: Debug + Sized + 'static {
    /// Its name and its help.
    const ABOUT: About;

    /// The records that are declared with it.
    const RECORDS: &'static [Shape] = &[];

    /// Samples of these records.
    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        Vec::new()
    }

    /// Parses what follows the name.
    fn parse(input: Tokens<'_>) -> Parsed<'_, Self>;

    /// The same as a statement. A command with something before its `--how` parses that itself.
    fn statement(input: Tokens<'_>) -> Parsed<'_, Statement> {
        let (behind, command) = Self::parse(input)?;
        Ok((behind, Statement::Command(Rc::new(command))))
    }

    /// Writes what follows the name, with the blank before it, so that it parses to the same.
    fn write(&self, _f: &mut Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    /// Reads the state, asks `inspect`, emits records.
    ///
    /// # Errors
    /// What was tried, why it failed, and the remedy.
    fn run(&self, context: &mut Context) -> Outcome;

    /// What the session must know of it.
    fn nature(&self) -> Nature {
        Nature::default()
    }

    /// What it may change. Arguments may widen what its name says.
    fn reach(&self) -> Reach {
        Self::ABOUT.name.reach
    }
}

/// What the session must know of a command.
#[derive(Clone, Copy, Default)]
pub struct Nature {
    /// Can draw a picture into an SVG file.
    pub draws: bool,
    /// Changes how the process runs.
    pub changes_process: bool,
    /// Writes a file, which `--no-shell` refuses.
    pub writes_file: bool,
    /// Attaches to a process, or detaches from it.
    pub chooses_target: bool,
    /// Has to do with displays, so that the next prompt need not show them.
    pub concerns_displays: bool,
    /// Ctrl-C is its normal end.
    pub ends_by_interrupt: bool,
}

impl<C: Command> ParsedCommand for C {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(C::ABOUT.name.name)?;
        Command::write(self, f)
    }

    fn reach(&self) -> Reach {
        Command::reach(self)
    }
}

/// A command behind a pointer.
pub trait RunCommand {
    /// As [`Command::run`].
    ///
    /// # Errors
    /// As [`Command::run`].
    fn run(&self, context: &mut Context) -> Outcome;

    /// As [`Command::nature`].
    fn nature(&self) -> Nature;
}

impl<C: Command> RunCommand for C {
    fn run(&self, context: &mut Context) -> Outcome {
        Command::run(self, context)
    }

    fn nature(&self) -> Nature {
        Command::nature(self)
    }
}

/// A command in the list of all.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its name and its help.
    pub about: About,
    /// The records that are declared with it.
    pub(in crate::command) records: &'static [Shape],
    #[cfg(test)]
    pub(in crate::command) samples: fn() -> Vec<Box<dyn Record>>,
    pub(in crate::command) parse: for<'a> fn(Tokens<'a>) -> Parsed<'a, Statement>,
    pub(in crate::command) of: fn(&dyn ParsedCommand) -> Option<&dyn RunCommand>,
}

impl Entry {
    /// The entry of a command.
    pub(in crate::command) const fn of<C: Command>() -> Self {
        Entry {
            about: C::ABOUT,
            records: C::RECORDS,
            #[cfg(test)]
            samples: C::samples,
            parse: C::statement,
            of: of::<C>,
        }
    }

    /// The entry of words that the language itself gives a meaning: lines of blocks, `pipe`, `shell`.
    pub(in crate::command) const fn of_language(
        about: About,
        parse: for<'a> fn(Tokens<'a>) -> Parsed<'a, Statement>,
    ) -> Self {
        Entry {
            about,
            records: &[],
            #[cfg(test)]
            samples: Vec::new,
            parse,
            of: |_| None,
        }
    }

    /// The entries as the parser sees them.
    pub(in crate::command) const fn syntax<const N: usize>(entries: &[Entry; N]) -> [Syntax; N] {
        let mut all = [Syntax { name: entries[0].about.name, parse: entries[0].parse }; N];
        let mut at = 1;
        while at < N {
            all[at] = Syntax { name: entries[at].about.name, parse: entries[at].parse };
            at += 1;
        }
        all
    }
}

pub(in crate::command) fn of<C: RunCommand + 'static>(command: &dyn ParsedCommand) -> Option<&dyn RunCommand> {
    command.downcast_ref::<C>().map(|command| command as &dyn RunCommand)
}

/// All commands, and the language that they make.
#[derive(Clone, Copy)]
pub struct Commands {
    pub(in crate::command) entries: &'static [Entry],
    /// Every record, sorted by the word that JSON has as its `type`.
    pub records: &'static LazyLock<Vec<Shape>>,
    /// The language of these commands.
    pub language: Language,
}

impl Commands {
    /// Their descriptions, in the order of the help.
    pub fn abouts(self) -> impl Iterator<Item = &'static About> {
        self.entries.iter().map(|entry| &entry.about)
    }

    /// The commands that `words` mean: by full name or short form, otherwise those whose words begin with them.
    pub(in crate::command) fn matching(self, words: &str) -> Vec<&'static About> {
        let is_meant = |about: &&About| about.name.name == words || about.name.short.contains(&words);
        if let Some(about) = self.abouts().find(is_meant) {
            return vec![about];
        }
        let begins = |about: &&About| {
            let mut name = about.name.name.split(' ');
            words.split(' ').all(|word| name.next().is_some_and(|part| part.starts_with(word)))
        };
        self.abouts().filter(begins).collect()
    }

    /// What runs a command.
    pub(in crate::command) fn find(self, command: &dyn ParsedCommand) -> Option<&dyn RunCommand> {
        let command = command.downcast_ref::<How>().map_or(command, |How(inner)| &**inner);
        self.entries.iter().find_map(|entry| (entry.of)(command))
    }
}

/// The input of a command.
pub struct Context<'a> {
    /// All commands.
    pub commands: Commands,
    /// The debugging session: target, variables, settings.
    pub state: &'a mut DebugState,
    /// Where its records go.
    pub sink: &'a mut dyn Sink,
    /// Where the same command stopped before, when an empty line asks for more of it.
    pub resume: Option<Resume>,
}

impl Context<'_> {
    /// The target.
    pub(in crate::command) fn target(&self) -> Result<Arc<Target>, Error> {
        self.state.target().cloned().ok_or_else(Error::no_target)
    }
}

/// Where a command that stopped early continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resume {
    /// From this address.
    Address(VirtualAddress),
    /// From this frame.
    Frame(FrameNumber),
    /// With the action that the user has agreed to.
    Agreed,
}

/// What happens after a command.
#[derive(Clone, PartialEq, Debug)]
pub enum Flow {
    /// The next line.
    Done,
    /// The next line; an empty one continues from here.
    More(Resume),
    /// The lines of a file with these arguments, then the next line.
    Source(std::path::PathBuf, Vec<Value>),
    /// The next line if it holds; otherwise an error.
    Asserted(Box<AssertionReport>),
    /// The same command again, if the user says yes to this question.
    Ask(String),
    /// Leave, with this exit status.
    Quit(u8),
}

/// What every command returns.
pub type Outcome = Result<Flow, Error>;
