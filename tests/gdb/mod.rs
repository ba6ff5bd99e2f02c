//! pmdb in gdb: the real gdb on real programs.

mod casts;
mod circumstances;
mod commands;
mod conditions;
mod front_end;
mod refused;
mod rights;
mod session;
mod stops;
mod terminal;
