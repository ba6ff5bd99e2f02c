//! pmdb in gdb: the real gdb on real programs.

#[path = "../program/capabilities.rs"]
mod capabilities;
mod casts;
mod circumstances;
mod commands;
mod conditions;
#[path = "../program/executable.rs"]
mod executable;
mod front_end;
mod refused;
mod rights;
mod session;
#[path = "../skips/mod.rs"]
mod skips;
mod stops;
mod terminal;
