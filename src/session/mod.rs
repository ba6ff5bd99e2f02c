//! A debugging session: runs lines from the prompt, files, and programs.
//!
//! Only this module decides where the records of a command are printed (screen and pager, pipe, file, JSON), and only
//! this module handles Ctrl-C.
//!
//! * `base`: the data of a session, its own messages, and the paths of its files
//! * `run`: parses and runs lines; `job`: runs one command
//! * `block`: blocks, user-defined commands, and the values of `foreach`
//! * `script`, `lines`: command files, and their reader
//! * `serve`, `mcp`: the protocols for programs; `requests`: their queue; `reply`: an answer in memory
//! * `check`: the faults in the blocks of a command file, before it runs; `parameters`: the arguments that it takes
//! * `outcome`: the outcome of a line, and of several; failures as records
//! * `pasted`: the meaning of pasted text in the process
//! * `view`: the renderer of a command's records
//! * `printer`, `pager`, `shell`: the destinations of output, and the log; `progress`: the progress line
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
mod parameters;
mod pasted;
mod printer;
mod progress;
mod reply;
mod requests;
mod run;
mod script;
mod serve;
mod shell;
mod view;

pub use base::{Session, SessionOptions, init_file};
pub use outcome::{Assertions, Input, LineOutcome, LineTally};
pub use parameters::{Parameters, check_arguments};
pub use script::{PROMPT, SCRIPTS, check_file, help_of_file, is_built_in, list_of_scripts};
pub use shell::{Permits, ShellIo};
pub use view::{is_coloured, terminal_width};
