//! The whole program: exit statuses, command files, output, JSON, input of every bad kind, the prompt at a real terminal,
//! the real gdb, and the packages.

mod absent;
mod agreement;
mod capabilities;
mod captures;
mod codes;
mod completion;
mod control;
mod demonstration;
#[path = "../english/mod.rs"]
mod english;
mod executable;
mod facts;
#[path = "../gdb/mod.rs"]
mod gdb;
mod generated;
mod golden;
mod help;
mod hostile;
mod language;
#[path = "../captures/mod.rs"]
mod made;
mod mcp;
mod output;
mod outside;
#[path = "../packages/mod.rs"]
mod packages;
mod programs;
#[path = "../prompt/mod.rs"]
mod prompt;
mod rights;
mod run;
#[path = "../sample/mod.rs"]
mod sample;
mod scripts;
mod shell;
mod shipped;
#[path = "../live/shown.rs"]
mod shown;
mod skip_lists;
#[path = "../skips/mod.rs"]
mod skips;
mod standing;
mod status;
#[allow(dead_code, reason = "the live tests change more settings")]
#[path = "../live/system.rs"]
mod system;
mod terminal;
mod unseen;
mod watching;
