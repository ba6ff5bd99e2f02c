//! A debugging session: runs lines from the prompt, files, and programs.
//!
//! It alone decides where the records of a command go (screen and pager, pipe, file, JSON), and it alone listens to
//! Ctrl-C.
//!
//! * `base`: the session's data, its own messages, and the paths of its own files
//! * `run`: parses and runs lines; `job`: runs one command
//! * `block`: blocks, user-defined commands, and the values of `foreach`
//! * `script`, `lines`: command files, and their reader
//! * `serve`, `mcp`: the protocols of programs; `requests`: their queue; `reply`: an answer that is kept in memory
//! * `check`: the faults in the blocks of a command file, before it runs
//! * `outcome`: the outcome of a line, and of several; failures as records
//! * `pasted`: what pasted text means in the process
//! * `view`: the renderer of a command's records
//! * `printer`, `pager`, `shell`: where output goes, and its log
//! * `interrupt`: Ctrl-C

mod base;
mod block;
mod check;
mod interrupt;
mod job;
mod lines;
mod mcp;
mod outcome;
mod pager;
mod pasted;
mod printer;
mod reply;
mod requests;
mod run;
mod script;
mod serve;
mod shell;
mod view;

pub use base::{Session, SessionOptions, init_file};
pub use outcome::{Assertions, Input, LineOutcome, LineTally};
pub use script::{PROMPT, SCRIPTS, help_of_file, list_of_scripts};
pub use shell::{Permits, ShellIo};
pub use view::is_coloured;
