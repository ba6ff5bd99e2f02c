//! pmdb: a gdb-style prompt for the memory *behind* a Linux process.
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod command;
pub mod demo;
pub mod eval;
pub mod inspect;
pub mod kernel;
pub mod lang;
pub mod render;
pub mod repl;
pub mod report;
pub mod session;
pub mod state;
pub mod symbol;
pub mod target;
