//! The floor that all commands use: the description of a command, what it is given, and what it returns.
//!
//! A command uses this and parts of other commands, never the list of all in `command/mod.rs`.

mod about;
mod entry;
mod error;

pub(super) use about::example;
pub use about::{About, Group};
pub(super) use entry::{Command, Entry, RunCommand};
pub use entry::{Commands, Context, Flow, Nature, Outcome, Resume};
pub use error::Error;

pub use crate::lang::CommandName;
