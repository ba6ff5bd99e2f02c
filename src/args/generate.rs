//! `--generate`: manual pages, shell completions and the schema of the records, from the tables of the program; and the
//! plugin for gdb.

mod roff;
mod schema;

use clap::{Arg, Command, ValueEnum};
use pmdb::command::subjects::{SUBJECTS, Subject};
use pmdb::command::{Group, TABLE};
use pmdb::lang::grammar;
use roff::Page;

/// What can be generated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Generated {
    /// pmdb(1)
    Man,
    /// pmdb-language(7)
    ManLanguage,
    /// pmdb-json(7)
    ManJson,
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

/// The text of it.
pub fn text(what: Generated, command: &Command) -> String {
    match what {
        Generated::Man => manual(command),
        Generated::ManLanguage => language(),
        Generated::ManJson => json(),
        Generated::CompleteBash => filled(include_str!("generate/complete.bash"), command, " | "),
        Generated::CompleteZsh => filled(include_str!("generate/complete.zsh"), command, " | "),
        Generated::CompleteFish => fish(command),
        Generated::JsonSchema => schema::text(),
        Generated::Gdb => include_str!("../../scripts/pmdb-gdb.py").to_owned(),
    }
}

fn subject(page: &mut Page, name: &str) {
    if let Some(subject) = Subject::find(name) {
        page.section(subject.name).text(&subject.text());
    }
}

fn manual(command: &Command) -> String {
    let mut page = Page::new("PMDB", 1, "User Commands");
    let about = command.get_about().map(ToString::to_string);
    page.section("name").text(&format!("pmdb - {}", about.unwrap_or_default()));
    page.section("synopsis");
    page.line("pmdb [OPTIONS] [PID | NAME | demo] [COMMAND …]");
    page.line("pmdb help [TOPIC]");
    let about = command.get_long_about().map(ToString::to_string);
    page.section("description")
        .text(&about.unwrap_or_default())
        .text("`pmdb help` lists the commands and the subjects, and `pmdb help NAME` explains one.");
    page.section("options");
    for argument in options(command) {
        let values = argument.get_value_names().unwrap_or_default().join(" ");
        let names = names(argument).join(", ");
        let term = if takes_values(argument) { format!("{names} {values}") } else { names };
        page.row(&term, &help(argument));
    }
    page.text("Long options also work with one dash, as in gdb.");
    page.section("commands");
    for group in Group::ALL {
        page.text(&format!("{}: {}", group.name(), group.about()));
        for about in TABLE.iter().filter(|about| about.group == *group) {
            page.row(about.name, about.summary);
        }
    }
    for name in ["cookbook", "scripts", "gdb", "keys", "rights", "traces", "files", "faq"] {
        subject(&mut page, name);
    }
    page.section("see also")
        .text("pmdb-language(7), pmdb-json(7), gdb(1), pmap(1), proc_pid_pagemap(5), proc_kpageflags(5)");
    page.finish()
}

fn language() -> String {
    let mut page = Page::new("PMDB-LANGUAGE", 7, "Miscellaneous");
    page.section("name").text("pmdb-language - the commands, values and filters of pmdb");
    let names = ["language", "values", "ranges", "filters", "states", "kinds", "flags", "units", "settings"];
    for name in names {
        subject(&mut page, name);
    }
    page.section("commands");
    for about in TABLE {
        page.subsection(about.name);
        page.line(&grammar::usage(about.name).unwrap_or_default());
        page.text(about.text);
        page.text("Examples:");
        for example in about.examples {
            page.row(example.line, example.does);
        }
    }
    page.section("grammar");
    for line in grammar::LANGUAGE.lines() {
        page.line(line);
    }
    page.section("see also").text("pmdb(1)");
    page.finish()
}

fn json() -> String {
    let mut page = Page::new("PMDB-JSON", 7, "Miscellaneous");
    page.section("name").text("pmdb-json - the records of pmdb --json and pmdb --serve");
    for name in ["json", "records", "serve", "python", "jq"] {
        subject(&mut page, name);
    }
    page.section("see also").text("pmdb(1), jq(1)");
    page.finish()
}

/// The options that are shown.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    let all = command.get_arguments();
    all.filter(|argument| !argument.is_positional() && !argument.is_hide_set())
}

/// `-p`, `--pid`
fn names(argument: &Arg) -> Vec<String> {
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    short.into_iter().chain(long).collect()
}

fn help(argument: &Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help());
    help.map(ToString::to_string).unwrap_or_default()
}

/// A script with the program's options and topics inserted; `or` stands between the alternatives of a `case`.
fn filled(script: &str, command: &Command, or: &str) -> String {
    let all: Vec<String> = options(command).flat_map(names).collect();
    let subjects = SUBJECTS.iter().map(|subject| subject.name);
    let groups = Group::ALL.iter().map(|group| group.name());
    let topics: Vec<&str> =
        TABLE.iter().map(|about| about.name).chain(groups).chain(subjects).filter(|name| !name.contains(' ')).collect();
    // `-p` also names the process, and `--args` ends the options.
    let with_values =
        options(command).filter(|option| takes_values(option) && !matches!(option.get_id().as_str(), "pid" | "args"));
    let with_values: Vec<String> = with_values.flat_map(spellings).collect();
    script
        .replace("@OPTIONS@", &all.join(" "))
        .replace("@TAKE_VALUES@", &with_values.join(or))
        .replace("@GENERATED@", &generated_words().join(" "))
        .replace("@TOPICS@", &topics.join(" "))
}

/// The values of `--generate`.
fn generated_words() -> Vec<String> {
    let all = Generated::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    all.map(|value| value.get_name().to_owned()).collect()
}

fn takes_values(option: &Arg) -> bool {
    option.get_action().takes_values()
}

/// Its names, also with one dash as in gdb.
fn spellings(option: &Arg) -> Vec<String> {
    let with_one_dash = option.get_long().map(|long| format!("-{long}"));
    names(option).into_iter().chain(with_one_dash).collect()
}

fn fish(command: &Command) -> String {
    let mut script = include_str!("generate/complete.fish").to_owned();
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
    for argument in options(command) {
        let short = argument.get_short().map(|short| format!(" -s {short}"));
        let long = argument.get_long().map(|long| format!(" -l {long}"));
        let values = match argument.get_id().as_str() {
            _ if !takes_values(argument) => "",
            "pid" => " -x -a '(__pmdb_processes)'",
            "color" => " -x -a 'auto always never'",
            "generate" => " -x -a '@GENERATED@'",
            "commands" | "args" => " -x",
            _ => " -r -F",
        };
        let help = argument.get_help().map(ToString::to_string);
        script.push_str(&format!(
            "complete -c pmdb{}{}{values} -d '{}'\n",
            short.unwrap_or_default(),
            long.unwrap_or_default(),
            quoted(&help.unwrap_or_default())
        ));
    }
    filled(&script, command, " ")
}
