//! The whole program: exit statuses, command files, output, JSON, and input of every bad kind.

mod absent;
mod capabilities;
mod captures;
mod codes;
mod completion;
mod control;
#[path = "../english/mod.rs"]
mod english;
mod executable;
mod facts;
mod generated;
mod golden;
mod help;
mod hostile;
mod language;
#[path = "../captures/mod.rs"]
mod made;
mod output;
mod outside;
mod programs;
mod rights;
mod run;
mod scripts;
mod shell;
mod skip_lists;
#[path = "../skips/mod.rs"]
mod skips;
mod standing;
mod status;
mod unseen;
mod watching;
