//! `--generate`: manual pages, shell completions and the schema of the records, made from the tables of the program;
//! and the plugin for gdb.

mod roff;
mod schema;
pub mod tree;

use clap::{Arg, Command, ValueEnum};
use pmdb::command::subjects::questions::QUESTIONS;
use pmdb::command::subjects::{SUBJECTS, Subject};
use pmdb::command::{COMMANDS, Group, RECORDS};
use pmdb::lang::grammar;
use pmdb::report::EXIT_STATUSES;
use roff::ManPage;

/// The forms of the command line.
pub const USAGE: &str = "pmdb [OPTIONS] [PID | NAME | demo] [COMMAND …]
       pmdb help [TOPIC]
       pmdb ps | who phys:ADDRESS | account cgroup PATH | decode | show | info capabilities …";

/// Examples of command lines, each with its effect.
pub const EXAMPLES: &str = "  pmdb 812                                   open the prompt on process 812
  pmdb demo                                  attach to a demonstration process
  pmdb 812 translate 0x7ffe1000              print one answer
  pmdb 812 'walk *buf, +1M'                  quote * $ > | ( ) for the shell
  pmdb help walk                             explain a command or a topic
  pmdb -p sshd -x look.pmdb -batch           run a command file
  pmdb --json -p 812 -batch -ex 'walk heap'  print one JSON object a line
  pmdb -batch -x :hugepages 812 80           run a built-in command file";

/// A text that `--generate` prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum GeneratedFile {
    /// pmdb(1)
    Man,
    /// pmdb-language(7)
    ManLanguage,
    /// pmdb-json(7)
    ManJson,
    /// All of the help in one file, for a language model or a search.
    Help,
    /// For bash.
    CompleteBash,
    /// For zsh.
    CompleteZsh,
    /// For fish.
    CompleteFish,
    /// The JSON schema of the records.
    JsonSchema,
    /// The commands of pmdb in gdb.
    Gdb,
}

/// Returns a generated text.
pub fn text(what: GeneratedFile, command: &Command) -> String {
    match what {
        GeneratedFile::Man => manual(command),
        GeneratedFile::ManLanguage => language(),
        GeneratedFile::ManJson => json(),
        GeneratedFile::Help => whole_help(command),
        GeneratedFile::CompleteBash => include_str!("complete.bash").to_owned(),
        GeneratedFile::CompleteZsh => include_str!("complete.zsh").to_owned(),
        GeneratedFile::CompleteFish => include_str!("complete.fish").to_owned(),
        GeneratedFile::JsonSchema => schema::text(),
        GeneratedFile::Gdb => include_str!("../../../scripts/pmdb-gdb.py").to_owned(),
    }
}

/// Adds a topic of the help as a section of the same name.
fn subject(page: &mut ManPage, name: &str) {
    page.section(name);
    subject_text(page, name);
}

fn subject_text(page: &mut ManPage, name: &str) {
    if let Some(subject) = Subject::find(name) {
        match name {
            "faq" => page.answers(&subject.text(&RECORDS)),
            _ => page.text(&subject.text(&RECORDS)),
        };
    }
}

fn manual(command: &Command) -> String {
    let mut page = ManPage::new("PMDB", 1, "User Commands");
    page.section("name").text("pmdb - debug the memory behind a Linux process");
    page.section("synopsis");
    USAGE.lines().for_each(|line| _ = page.line(line.trim_start()));
    let about = command.get_long_about().map(ToString::to_string);
    page.section("description")
        .text(&about.unwrap_or_default())
        .text("`pmdb help` lists the commands and the topics, and `pmdb help NAME` explains one.");
    page.section("options");
    for argument in options(command) {
        page.row(&format!("{}{}", names(argument).join(", "), values(argument)), &help(argument));
    }
    page.text("Long options also work with one dash, as in gdb.");
    page.section("commands");
    for group in Group::ALL {
        page.subsection(&format!("{}: {}", group.name(), group.about()));
        for about in COMMANDS.abouts().filter(|about| about.group == *group) {
            page.row(about.name.name, about.summary);
        }
    }
    page.section("examples").text(EXAMPLES);
    subject_text(&mut page, "cookbook");
    page.section("exit status");
    for (status, meaning) in EXIT_STATUSES {
        page.row(status, meaning);
    }
    for name in ["environment", "files", "scripts", "gdb", "keys", "rights", "traces", "faq"] {
        subject(&mut page, name);
    }
    page.section("see also")
        .text("pmdb-language(7), pmdb-json(7), gdb(1), pmap(1), proc_pid_pagemap(5), proc_kpageflags(5)");
    page.finish()
}

/// Returns the whole help in Markdown: the questions, then the topics, then the commands.
fn whole_help(command: &Command) -> String {
    let about = command.get_long_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!("# pmdb {}\n\n{about}\n\n## Questions\n\n", env!("CARGO_PKG_VERSION"));
    for question in QUESTIONS {
        text.push_str(&format!("- {} `{}`\n", question.shown.asks, question.shown.line));
    }
    for subject in SUBJECTS {
        let about = subject.summary;
        text.push_str(&format!("\n## help {}: {about}\n\n{}\n", subject.name, subject.text(&RECORDS)));
    }
    for about in COMMANDS.abouts() {
        let usage = grammar::forms(&grammar::usage(about.name.name).unwrap_or_default()).join("\n    ");
        text.push_str(&format!(
            "\n## {}: {}\n\n    {}\n",
            about.name.name,
            about.summary,
            usage.replace('\n', "\n    ")
        ));
        text.push_str(&format!("\n{}\n\nExamples:\n\n", about.text));
        for example in about.examples {
            text.push_str(&format!("    {}\n        {}\n", example.line.replace('\n', "\n    "), example.does));
        }
    }
    text
}

fn language() -> String {
    let mut page = ManPage::new("PMDB-LANGUAGE", 7, "Miscellaneous");
    page.section("name").text("pmdb-language - the commands, values and filters of pmdb");
    let names = ["language", "values", "ranges", "filters", "states", "kinds", "flags", "units", "settings", "terms"];
    for name in names {
        subject(&mut page, name);
    }
    page.section("commands");
    for about in COMMANDS.abouts() {
        page.subsection(about.name.name);
        page.usage(&grammar::forms(&grammar::usage(about.name.name).unwrap_or_default()).join("\n"));
        page.text(about.text);
        page.text("Examples:");
        for example in about.examples {
            page.row(example.line, example.does);
        }
    }
    page.section("grammar").text(
        "The whole grammar is the file language.ebnf: grammar/language.ebnf in the source, share/doc/pmdb/language.ebnf.gz in \
         packages.",
    );
    page.section("see also").text("pmdb(1)");
    page.finish()
}

fn json() -> String {
    let mut page = ManPage::new("PMDB-JSON", 7, "Miscellaneous");
    page.section("name").text("pmdb-json - the records of pmdb --json and pmdb --serve");
    for name in ["json", "records", "serve", "mcp", "codes", "python", "jq"] {
        subject(&mut page, name);
    }
    page.section("see also").text("pmdb(1), jq(1)");
    page.finish()
}

/// Returns the options that are not hidden.
pub(super) fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    let all = command.get_arguments();
    all.filter(|argument| !argument.is_positional() && !argument.is_hide_set())
}

/// Returns the names of an option: `-p`, `--pid`.
pub(super) fn names(argument: &Arg) -> Vec<String> {
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    short.into_iter().chain(long).collect()
}

fn help(argument: &Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help());
    help.map(ToString::to_string).unwrap_or_default()
}

/// Returns the values of an option as in a synopsis: ` WHAT [DIR]`, `[=DIR]`, ` [ARGUMENT ...]`.
fn values(argument: &Arg) -> String {
    let names = argument.get_value_names().filter(|_| takes_values(argument)).unwrap_or_default();
    let number = argument.get_num_args().unwrap_or_default();
    let before = if argument.is_require_equals_set() { "=" } else { "" };
    let written = names.iter().enumerate().map(|(index, name)| {
        let more = if index + 1 == names.len() && number.max_values() > names.len() { " ..." } else { "" };
        match (index < number.min_values(), before) {
            (true, "") => format!(" {name}{more}"),
            (true, _) => format!("{before}{name}"),
            (false, "") => format!(" [{name}{more}]"),
            (false, _) => format!("[{before}{name}]"),
        }
    });
    written.collect()
}

pub(super) fn takes_values(option: &Arg) -> bool {
    option.get_action().takes_values()
}

/// Returns the names of an option, and its long name with one dash as in gdb.
pub(super) fn spellings(option: &Arg) -> Vec<String> {
    let with_one_dash = option.get_long().map(|long| format!("-{long}"));
    names(option).into_iter().chain(with_one_dash).collect()
}
