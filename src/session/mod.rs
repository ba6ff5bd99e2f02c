//! A debugging session: runs lines from the prompt, files, and programs.
//!
//! It alone decides where the records of a command go (screen and pager, pipe, file, JSON), and it alone listens to
//! Ctrl-C.
//!
//! * `base`: the session's data, and its own messages
//! * `run`: parses and runs lines
//! * `lines`: the reader of command files
//! * `block`, `collector`: blocks, user-defined commands, and the values of `foreach`
//! * `assertions`: the results of `assert`
//! * `script`, `running`, `serve`: lines of files, and of programs
//! * `outcome`, `tally`: the outcome of a line, and of several
//! * `job`: runs one command
//! * `view`, `printer`: the renderer of a command's records; `destination`, `pager`, `held_rows`, `log`, `logging`,
//!   `shell`, `picture`, `progress`: where output goes
//! * `requests`: the queue of `serve`; `folders`: the paths of pmdb's own files; `scripts`: the built-in command files
//! * `outside`: `--no-shell`
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
mod outside;
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
pub use failure::Input;
pub use folders::init_file;
pub use outcome::Outcome;
pub use scripts::{SCRIPTS, help_of_file, list_of_scripts};
pub use shell::ShellIo;
pub use tally::Tally;
pub use view::is_coloured;
