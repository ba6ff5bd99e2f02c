//! Lines of running programs, each compared with something that shares no code with pmdb.

pub mod addr2line;
pub mod back;
pub mod elsewhere;
pub mod gdb;
mod programs;
pub mod reasons;
