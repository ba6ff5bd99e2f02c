//! `attach PID|NAME`, `detach`: chooses the process to look at.

use crate::command::floor::{About, Command, CommandName, Context, Error, Flow, Group, Nature, Outcome, example};
use crate::command::ps;
use crate::eval::{Scope, Value};
use crate::hint::habits::{self, Does};
use crate::inspect;
use crate::kernel::Name;
use crate::lang::parser::{Parsed, Raw, Tokens, raw};
use crate::lang::{Expected, Language, ProcessNeed, Spanned, escape, near, spelling_anywhere};
use crate::own::users::UserNames;
use crate::process::{self, Machine, Target};
use crate::report::{TargetEvent, TargetReport};
use nom::Parser;
use std::fmt::{self, Formatter};

/// The process to attach to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetName {
    /// A process or thread id.
    Id(u32),
    /// Part of a name; always a name when it is written in quotes.
    Name(String),
    /// `self`: pmdb itself.
    Itself,
    /// `$x`, without the `$`: a PID or a name.
    Variable(String),
}

impl TargetName {
    /// A PID if it is a plain number, else a name: a process called 007 is one.
    pub fn of(text: &str) -> Self {
        match text.parse::<u32>() {
            Ok(id) if id.to_string() == text => TargetName::Id(id),
            _ if text == "self" => TargetName::Itself,
            _ => TargetName::Name(text.to_owned()),
        }
    }
}

impl fmt::Display for TargetName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TargetName::Id(id) => write!(f, "{id}"),
            TargetName::Name(name) => f.write_str(&escape('"', name)),
            TargetName::Itself => f.write_str("self"),
            TargetName::Variable(name) => write!(f, "${name}"),
        }
    }
}

/// The process that an argument of `attach` names.
fn target(raw: Spanned<Raw>) -> Spanned<TargetName> {
    raw.map(|raw| match raw.is_quoted {
        true => TargetName::Name(raw.text),
        false if is_variable(&raw.text) => TargetName::Variable(raw.text.trim_start_matches('$').to_owned()),
        false => TargetName::of(&raw.text),
    })
}

/// Whether a text is `$name` and nothing more.
fn is_variable(text: &str) -> bool {
    let name = text.strip_prefix('$').unwrap_or_default();
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// `attach PID|NAME`
#[derive(Debug)]
pub struct Attach(pub Spanned<TargetName>);

impl Command for Attach {
    const ABOUT: About = About {
        name: CommandName::new("attach").of_session().detached(),
        group: Group::Target,
        summary: "choose the process to examine",
        text: "\
Attaches to a process by its id, by the id of one of its threads, or by its name. A name is the one that `ps` shows, \
or the name of the executable. `self` is pmdb itself. Does not stop the process: gdb can be attached to it at the \
same time.

The executable counts where no process has the name itself. If several have it, lists them and attaches to none. Follows the process, not its PID: a reused PID \
is noticed. Reports when the process exits or executes another program.",
        examples: &[example("attach self", "attach to pmdb itself")],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (input, name) = raw(Expected::Process).parse(input)?;
        Ok((input, Attach(target(name))))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.0.node)
    }

    fn nature(&self) -> Nature {
        Nature { chooses_target: true, ..Nature::default() }
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let asked = match &self.0.node {
            TargetName::Id(id) => id.to_string(),
            TargetName::Name(name) => name.clone(),
            TargetName::Itself => "self".to_owned(),
            TargetName::Variable(name) => match context.state.variable(name) {
                Some(Value::Text(text)) => text,
                value => match value.and_then(|value| value.integer()) {
                    Some(number) => number.to_string(),
                    None => {
                        return Err(Error::refused(
                            format!("${name} is not a process: expected a PID or a name"),
                            "`ps` lists the processes",
                        ));
                    }
                },
            },
        };
        let resolved = resolve(&asked, context)?;
        let target = Target::attach(resolved.pid)?;
        target.process.set_scan(context.state.settings.scan);
        let target = context.state.attach(target);
        context.state.apply_kernel_records();
        let identity = target.process.identity();
        let remarks = match resolved.by {
            process::ResolvedBy::Thread(thread) => {
                vec![format!("{thread} is a thread of it: $pc and $sp are those of its main thread")]
            }
            process::ResolvedBy::Itself => {
                vec!["it is pmdb itself: its memory changes while it runs".to_owned()]
            }
            process::ResolvedBy::Process | process::ResolvedBy::Name => Vec::new(),
        };
        if remarks.is_empty() && !context.sink.is_greeting() {
            return Ok(Flow::Done);
        }
        context.sink.emit(&TargetReport {
            event: TargetEvent::Attached,
            pid: identity.pid,
            name: identity.name,
            executable: target.process.status().ok().and_then(|status| status.executable),
            regions: target.process.regions().ok().map(|regions| regions.len() as u64),
            remarks,
        })?;
        Ok(Flow::Done)
    }
}

/// Other words that `pmdb` takes in the place of a process.
const SPECIAL_TARGETS: [&str; 2] = ["demo", "self"];

/// The process of that number or name. Lists the processes if several have the name.
pub(super) fn resolve(asked: &str, context: &mut Context) -> Result<process::ResolvedProcess, Error> {
    let language = context.commands.language;
    match process::resolve(asked) {
        Err(process::Error::Ambiguous { name, candidates }) => {
            let users = Ok(UserNames::of_this_machine());
            for entry in &candidates {
                context.sink.emit(&ps::row(entry, &users))?;
            }
            Err(process::Error::Ambiguous { name, candidates }.into())
        }
        Err(process::Error::Gone { what, .. }) if let Some(command) = command_alone(asked, language) => {
            Err(process::Error::no_such_process(format!("{what}; {command}")).into())
        }
        Err(process::Error::Gone { what, .. }) if std::path::Path::new(asked).is_file() => {
            let what = format!("{what}; for a capture or a core file: `pmdb -c {asked}`");
            Err(process::Error::no_such_process(what).into())
        }
        Err(process::Error::Gone { what, .. }) => {
            let what = match cgroup_called(asked, &process::machine()) {
                Some(path) => format!("{what}; a cgroup is called so: `account cgroup {path}`"),
                None => what_is_meant(asked, what, language),
            };
            Err(process::Error::no_such_process(what).into())
        }
        resolved => Ok(resolved?),
    }
}

/// Returns what is wrong with `pmdb regions`, which takes the name of a command for that of a process. `None` if no
/// command has the name.
pub fn command_alone(asked: &str, language: Language) -> Option<String> {
    let command = language.command(asked);
    let second = if language.second_words(asked).next().is_some() { " \u{2026}" } else { "" };
    if command.is_none() && second.is_empty() {
        return None;
    }
    if asked == "target" {
        return Some("`target` is a command: `pmdb -c FILE` opens a capture".to_owned());
    }
    let alone = match command.map(|command| command.name.process) {
        Some(ProcessNeed::Optional) => format!(", without a process `pmdb -batch -ex {asked}`"),
        Some(ProcessNeed::UnusedBefore(words)) if words.contains(&"of") => {
            format!(", for all processes of a name `pmdb {asked} of NAME`")
        }
        Some(ProcessNeed::UnusedBefore(_)) => format!(", without a process `pmdb {asked} pfn:N`"),
        Some(ProcessNeed::UnusedBehind(_)) => format!(", without a process `pmdb {asked} FILE of NAME`"),
        _ => String::new(),
    };
    Some(format!("`{asked}` is a command: `pmdb PID {asked}{second}`{alone}"))
}

/// Returns the path of the first cgroup of this name, with or without the kind of its unit, that may be typed as it is.
pub(super) fn cgroup_called(name: &str, machine: &Machine) -> Option<String> {
    const UNITS: [&str; 4] = ["", ".service", ".slice", ".scope"];
    let is_called = |path: &String| {
        let behind = path.rsplit('/').next().and_then(|last| last.strip_prefix(name));
        behind.is_some_and(|unit| UNITS.contains(&unit)) && path_in_line(path) == *path
    };
    machine.cgroup_paths().ok()?.into_iter().map(|path| path.to_string()).find(is_called)
}

/// How a capture gets the charges of a cgroup.
pub(super) const KEPT_WITH_GROUP: &str = "`capture FILE cgroup PATH with frames` keeps it, except `without names`";

/// The error for a cgroup that there is not, with the paths that are spelled like it, and for one that a capture lacks.
pub(super) fn similar_cgroup(asked: &Name, error: inspect::Error, machine: &Machine) -> Error {
    if !matches!(error, inspect::Error::Target(process::Error::NotAvailable { .. })) {
        return error.into();
    }
    let paths: Vec<String> = machine.cgroup_paths().unwrap_or_default().iter().map(ToString::to_string).collect();
    let asked = format!("/{}", asked.to_string().trim_start_matches('/'));
    let is_there = paths.contains(&asked);
    if machine.is_captured() && (paths.is_empty() || is_there) {
        return Error::refused(format!("the memory of cgroup {asked} is not in this capture"), KEPT_WITH_GROUP);
    }
    let similar = near(&asked, paths.iter().map(String::as_str)).into_iter().filter(|path| *path != "/");
    let similar: Vec<String> = similar.map(|path| format!("`{}`", path_in_line(path))).collect();
    if similar.is_empty() || is_there {
        return error.into();
    }
    Error::refused(error.to_string(), format!("did you mean {}?", similar.join(" or ")))
}

/// A path of a cgroup as it is typed.
fn path_in_line(path: &str) -> String {
    // Of what a prompt or a shell would read otherwise, such as `|`, nothing stays outside of quotes.
    let is_typed = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@".contains(letter);
    // Its bytes that cannot be printed are written with escapes already.
    if path.chars().all(is_typed) { path.to_owned() } else { format!("\"{}\"", path.replace('"', "\\\"")) }
}

/// That there is no such process, and what the word may mean: a command with its process in one word, a word of another
/// program (`pmdb vmmap`), or a similar name.
fn what_is_meant(asked: &str, what: String, language: Language) -> String {
    let habit = habits::of(asked).filter(|habit| habit.words == asked);
    match habit.map(|habit| (habit, habit.does)) {
        Some((habit, Does::Refuse(hint) | Does::Point { hint, .. })) => format!("{what}; {}", habit.hint(hint)),
        Some((_, Does::Run("source ':tour'", _))) => {
            format!("{what}; the tour needs the demonstration: `pmdb demo {asked}`")
        }
        Some((_, Does::Run(ours, _))) => {
            let mut words = ours.split(' ');
            let process = if words.next().is_some_and(|first| language.is_alone(first, words)) { "" } else { "PID " };
            format!("{what}; as a command it is {ours}: pmdb {process}{ours}")
        }
        Some((_, Does::Nothing)) => what,
        None => what + &guess(asked, &process::similar_names(asked), language.first_words().chain(SPECIAL_TARGETS)),
    }
}

/// The end of an error about the name of a process: the names that contain it, or the nearest, also among `words`.
pub(super) fn guess(asked: &str, similar: &[String], words: impl Iterator<Item = &'static str>) -> String {
    let similar = spelled(similar);
    if !similar.is_empty() {
        return format!("; similar names: {similar}");
    }
    if asked.starts_with(|c: char| c.is_ascii_digit()) {
        return String::new();
    }
    let words = words.map(str::to_owned).chain(names_of_processes());
    let guess = near(asked, words).into_iter().find_map(|name| spelling_anywhere(&name));
    guess.map_or_else(String::new, |guess| format!("; did you mean `{guess}`?"))
}

/// Names of processes as they may be typed.
pub(super) fn spelled(names: &[String]) -> String {
    names.iter().filter_map(|name| spelling_anywhere(name)).collect::<Vec<_>>().join(", ")
}

/// For a guess: none if they cannot be listed.
fn names_of_processes() -> Vec<String> {
    let processes = process::machine().processes().unwrap_or_default();
    processes.iter().map(|one| one.name.to_string()).collect()
}

/// `detach`
#[derive(Debug)]
pub struct Detach;

impl Command for Detach {
    const ABOUT: About = About {
        name: CommandName::new("detach").of_session(),
        group: Group::Target,
        summary: "detach from the process",
        text: "Stops examining the process. The process itself is not affected.",
        examples: &[example("detach", "detach from the process")],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        Ok((input, Detach))
    }

    fn nature(&self) -> Nature {
        Nature { chooses_target: true, ..Nature::default() }
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let Some(target) = context.state.detach() else {
            return Err(Error::no_target());
        };
        let identity = target.process.identity();
        context.sink.emit(&TargetReport {
            event: TargetEvent::Detached,
            pid: identity.pid,
            name: identity.name,
            executable: None,
            regions: None,
            remarks: Vec::new(),
        })?;
        Ok(Flow::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_a_hint_is_one_word_wherever_it_is_pasted() {
        for (path, typed) in [
            ("/system.slice/a-b_c@1:2.service", "/system.slice/a-b_c@1:2.service"),
            ("/a b", "\"/a b\""),
            ("/a|touch b", "\"/a|touch b\""),
            ("/a;b", "\"/a;b\""),
            ("/a`b$c", "\"/a`b$c\""),
            (r"/a\x1bb", r#""/a\x1bb""#),
            ("/a\"b", "\"/a\\\"b\""),
        ] {
            assert_eq!(path_in_line(path), typed);
        }
    }
}
