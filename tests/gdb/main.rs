//! pmdb in gdb: the real gdb on real programs.

mod circumstances;
mod commands;
mod conditions;
mod session;
#[path = "../skips/mod.rs"]
mod skips;
mod stops;
