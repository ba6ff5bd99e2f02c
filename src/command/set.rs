//! `set SETTING VALUE`, `set $NAME = VALUE`

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use super::symbols::pattern_text;
use crate::eval;
use crate::lang::parser::{Parsed, Tokens, mark, one_of, pattern, range, variable, word};
use crate::lang::setting::setting_value;
use crate::lang::{Expected, Range, SettingValue, Spanned, escape};
use crate::state::DebugState;
use nom::Parser;
use nom::branch::alt;
use nom::combinator::{cut, map};
use nom::sequence::preceded;
use std::fmt::{self, Formatter};

/// `set $NAME = VALUE`, `set SETTING VALUE`
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one line at a time")]
pub enum Set {
    /// `set $NAME = VALUE`
    Variable {
        /// Without the `$`.
        name: Spanned<String>,
        /// What it becomes.
        value: Spanned<Range>,
    },
    /// `set SETTING VALUE`
    Setting(SettingValue),
    /// `set logging file PATH`; a leading `~/` is still as typed, and `$x` may stand for it.
    LogFile(Spanned<String>),
}

impl Command for Set {
    const ABOUT: About = About {
        name: CommandName::new("set").of_session().detached(),
        group: Group::Language,
        summary: "change a setting or a variable",
        text: "\
Changes a setting, or keeps a value under a name.

  SETTING VALUE      change how pmdb works; `show` lists the settings with their meanings
  $NAME = VALUE      keep a value: a number, an address, a frame or a range, for use in place of such a value
  logging on         also write output to a file: pmdb.txt in the current directory, as in gdb
  logging file PATH  use another file, from the next `set logging on`
  logging overwrite on  replace the file instead of appending to it
  logging redirect on   write output only to the file

With --no-shell there is no log.",
        examples: &[
            example("set $start = demo_buffer + 4K", "keep an address"),
            example("set $all = demo_buffer, +16p", "keep a range of sixteen pages"),
            example("set kernel records off", "leave /proc/kcore alone"),
            example("set perf maps on", "read symbols of JIT-compiled code from /tmp/perf-PID.map"),
            example("set logging file /tmp/pmdb.log", "choose the file for `set logging on`"),
            example("set pager program", "show long output in less, or in the program of PAGER"),
            example("set pagination off", "print long output without stopping at each screen"),
        ],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let variable = map((variable, cut(mark("=")), cut(range)), |(name, _, value)| Set::Variable { name, value });
        let setting = map(setting_value, Set::Setting);
        alt((variable, log, setting)).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Set::Variable { name, value } => write!(f, " ${} = {}", name.node, value.node),
            Set::Setting(value) => write!(f, " {} {value}", value.setting().name()),
            Set::LogFile(path) => write!(f, " logging file {}", escape('"', &path.node)),
        }
    }

    fn run(&self, context: &mut Context) -> Outcome {
        match self {
            Set::LogFile(path) => {
                context.state.log_file = pattern_text(context, path).node;
            }
            Set::Variable { name, value } => {
                assign(context.state, name, value)?;
            }
            Set::Setting(value) => {
                if context.state.is_serving && *value == SettingValue::Json(false) {
                    return Err(Error::refused(
                        "--serve replies in JSON: `json` stays on",
                        "for text, start pmdb without --serve",
                    ));
                }
                context.state.settings.set(*value);
                match value {
                    SettingValue::PerfMaps(_) => return use_perf_maps(context),
                    SettingValue::KernelRecords(_) => context.state.apply_kernel_records(),
                    SettingValue::Scan(is_used) => {
                        if let Some(target) = context.state.target() {
                            target.process.set_scan(*is_used);
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(Flow::Done)
    }
}

/// `logging on`, `logging file PATH`, as in gdb.
fn log(input: Tokens<'_>) -> Parsed<'_, Set> {
    let (behind, _) = word("logging")(input)?;
    let enabled = map(one_of, |on| Set::Setting(SettingValue::Logging(on)));
    let file = map(preceded(word("file"), cut(pattern(Expected::File))), Set::LogFile);
    alt((enabled, file)).parse(behind)
}

/// `set $NAME = VALUE`
///
/// # Errors
/// The value has none, or pmdb itself sets the variable.
pub fn assign(state: &mut DebugState, name: &Spanned<String>, value: &Spanned<Range>) -> Result<(), eval::Error> {
    let (at, name) = (name.at, name.node.as_str());
    if eval::is_set_by_pmdb(name) {
        let error = eval::Error::new(at, format!("${name} is set by pmdb itself"));
        return Err(error.hint("choose another name (`show convenience` lists those in use)"));
    }
    let value = eval::value(value, state)?;
    // Loops set the same few again and again.
    match state.variables.get_mut(name) {
        Some(variable) => *variable = value,
        None => _ = state.variables.insert(name.to_owned(), value),
    }
    Ok(())
}

/// Switches symbols of JIT-compiled code on or off. An error is reported at once: later, missing names would not show
/// it.
fn use_perf_maps(context: &mut Context) -> Outcome {
    let is_on = context.state.settings.perf_maps;
    context.state.symbols.use_perf_maps(is_on);
    let target = context.state.target().filter(|_| is_on);
    let found = target.map(|target| target.modules.perf_map());
    if let Some(Err(refusal) | Ok(Some((_, Err(refusal))))) = found {
        context.sink.note(refusal.to_string())?;
    }
    Ok(Flow::Done)
}
