//! A debugging session: it runs lines, one after the other, wherever they come from.
//!
//! It alone decides where the records of a command go (screen and pager, pipe, file, JSON), and it alone listens to Ctrl-C.
//!
//! * `base`: what a session holds, and how it speaks for itself
//! * `run`: lines, typed or from elsewhere
//! * `lines`: the reader of command files
//! * `block`, `collector`: blocks of lines, commands that the user made, and what `foreach` goes through
//! * `assertions`: what came of `assert`
//! * `script`, `running`, `serve`: lines of files, and of programs
//! * `outcome`, `tally`: how a line went, and several
//! * `job`: one command, from where its records go to what follows from how it went
//! * `printer`, `destination`, `pager`, `held_rows`, `log`, `logging`, `shell`: records on their way out
//! * `interrupt`: Ctrl-C
//! * `failure`: errors as records

mod assertions;
mod base;
mod block;
mod collector;
mod destination;
mod failure;
mod folders;
mod held_rows;
mod interrupt;
mod job;
mod lines;
mod log;
mod logging;
mod outcome;
mod pager;
mod picture;
mod printer;
mod progress;
mod requests;
mod run;
mod running;
mod script;
mod scripts;
mod serve;
mod shell;
mod tally;
mod view;

pub use assertions::Assertions;
pub use base::{Session, SessionOptions};
pub use failure::Origin;
pub use folders::{history_file, init_file};
pub use outcome::Outcome;
pub use scripts::{help_of_file, list_of_scripts};
pub use shell::ShellIo;
pub use tally::Tally;
pub use view::is_coloured;
