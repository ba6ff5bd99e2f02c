//! `attach PID|NAME`: choose the process to examine.

use super::{About, CommandName, Context, Error, Flow, Group, Outcome, example, ps};
use crate::command::parse::TargetName;
use crate::eval::{Scope, Value};
use crate::lang::grammar;
use crate::lang::habits::{self, Does};
use crate::process::{self, Target};
use crate::render::Sink;
use crate::report::TargetReport;

pub(super) const ABOUT: About = About {
    name: CommandName::new("attach"),
    group: Group::Target,
    summary: "choose the process to examine",
    text: "\
Attaches to a process by its id, by the id of one of its threads, or by its name. `self` is pmdb itself. Does not \
stop the process: gdb can be attached to it at the same time.

If several processes have the name, lists them and attaches to none. Follows the process, not its PID: a reused PID \
is noticed. Reports when the process exits or executes another program.",
    examples: &[example("attach self", "attach to pmdb itself")],
};

/// The process of that number or name. Lists the processes if several have the name.
pub(super) fn resolve(asked: &str, sink: &mut dyn Sink) -> Result<process::Resolved, Error> {
    let is_command = || grammar::usage(asked).is_some();
    match process::resolve(asked) {
        Err(process::Error::Ambiguous { name, candidates }) => {
            for entry in &candidates {
                sink.emit(&ps::row(entry))?;
            }
            Err(process::Error::Ambiguous { name, candidates }.into())
        }
        // `pmdb regions` without a process takes `regions` for a name.
        Err(process::Error::Gone { what, .. }) if is_command() => {
            let what = format!(
                "{what}; the command {asked} is run by `pmdb PID {asked}`, or without a process by `pmdb -batch -ex {asked}`"
            );
            Err(process::Error::no_such_process(what).into())
        }
        // The same with a word of another program: `pmdb vmmap`.
        Err(process::Error::Gone { what, .. }) => {
            let habit = habits::of(asked).filter(|habit| habit.words == asked);
            let what = match habit.map(|habit| (habit, habit.does)) {
                Some((habit, Does::Refuse(hint))) => format!("{what}; {}", habit.hint(hint)),
                Some((_, Does::Run(ours, _))) => {
                    format!("{what}; as a command it is {ours}: pmdb PID {ours}")
                }
                _ => what,
            };
            Err(process::Error::no_such_process(what).into())
        }
        resolved => Ok(resolved?),
    }
}

pub(super) fn run(context: &mut Context, name: &TargetName) -> Outcome {
    let asked = match name {
        TargetName::Id(id) => id.to_string(),
        TargetName::Name(name) => name.clone(),
        TargetName::Itself => "self".to_owned(),
        TargetName::Variable(name) => match context.state.variable(name) {
            Some(value) if let Some(number) = value.integer() => number.to_string(),
            Some(Value::Text(text)) => text,
            _ => {
                return Err(Error::refused(
                    format!("${name} holds no process: a number or a name is expected"),
                    "ps lists the processes",
                ));
            }
        },
    };
    let resolved = resolve(&asked, context.sink)?;
    let target = Target::attach(resolved.pid)?;
    target.process.set_scan(context.state.settings.scan);
    let target = context.state.attach(target);
    let identity = target.process.identity();
    let remarks = match resolved.asked {
        process::Asked::Thread(thread) => {
            vec![format!("{thread} is a thread of it: $pc and $sp are those of its main thread")]
        }
        process::Asked::Itself => {
            vec!["it is pmdb itself: its memory changes while it runs".to_owned()]
        }
        process::Asked::Process | process::Asked::Name => Vec::new(),
    };
    if remarks.is_empty() && !context.sink.is_greeting() {
        return Ok(Flow::Done);
    }
    context.sink.emit(&TargetReport {
        event: "attached",
        pid: identity.pid,
        name: identity.name,
        executable: target.process.status().ok().and_then(|status| status.executable),
        regions: target.process.regions().ok().map(|regions| regions.len() as u64),
        remarks,
    })?;
    Ok(Flow::Done)
}
