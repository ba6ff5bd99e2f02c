//! The descriptions of commands, for `help`, `apropos` and completion.

use crate::kernel::words::worded;
use crate::lang::CommandName;
use crate::report::HelpExample;

/// The description of a command.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Its name, the same as in the grammar: `walk`, `info process`.
    pub name: CommandName,
    /// Its group in `help`.
    pub group: Group,
    /// One line without a full stop.
    pub summary: &'static str,
    /// Paragraphs, separated by empty lines.
    pub text: &'static str,
    /// Lines that work on the demonstration process as they are; a test runs each.
    pub examples: &'static [HelpExample],
}

/// An example: a line and what it does.
pub(in crate::command) const fn example(line: &'static str, does: &'static str) -> HelpExample {
    HelpExample { line, does }
}

worded! {
    /// The groups of `help`, in its order, each with the name that `help NAME` takes.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Group, name {
        /// Choosing what to examine.
        Target = "target",
        /// Looking at pages, frames and regions.
        Look = "look",
        /// Names and values.
        Memory = "memory",
        /// What changes.
        Time = "time",
        /// Command files: blocks and assertions.
        Scripts = "scripts",
        /// The prompt itself.
        Language = "language",
    }
}

impl Group {
    /// What its commands are for.
    pub const fn about(self) -> &'static str {
        match self {
            Group::Target => "choose the process to examine",
            Group::Look => "examine pages, frames and regions",
            Group::Memory => "read memory, values and symbols",
            Group::Time => "report and compare changes",
            Group::Scripts => "write command files, with blocks and assertions",
            Group::Language => "control pmdb and its prompt",
        }
    }
}
