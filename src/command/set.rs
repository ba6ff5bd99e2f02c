//! `set SETTING VALUE`, `set $NAME = VALUE`

use super::symbols::meant;
use super::{About, CommandName, Context, Error, Flow, Group, Outcome, example};
use crate::command::parse::Assignment;
use crate::eval;
use crate::lang::{Range, Setting, Spanned, setting::SettingValue};
use crate::state::DebugState;

pub(super) const ABOUT: About = About {
    name: CommandName::new("set"),
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
        example("set perf maps on", "read symbols of JIT-compiled code from /tmp/perf-PID.map"),
        example("set logging file /tmp/pmdb.log", "choose the file for `set logging on`"),
        example("set pager program", "show long output in less, or in the program of PAGER"),
        example("set pagination off", "print long output without stopping at each screen"),
    ],
};

pub(super) fn run(context: &mut Context, assignment: &Assignment) -> Outcome {
    match assignment {
        Assignment::LogFile(path) => {
            context.state.settings.log_file = meant(context, path).node;
        }
        Assignment::Variable { name, value } => {
            assign(context.state, name, value)?;
        }
        Assignment::Setting { setting, value } => {
            if context.state.settings.serving && (*setting, *value) == (Setting::Json, SettingValue::Switch(false)) {
                return Err(Error::refused(
                    "--serve replies in JSON: `json` stays on",
                    "for text, start pmdb without --serve",
                ));
            }
            let set = context.state.settings.set(*setting, *value);
            set.map_err(|error| Error::Refused { message: error.to_string(), hint: None })?;
            if *setting == Setting::PerfMaps {
                return use_perf_maps(context);
            }
            if let (Setting::Scan, Some(target)) = (setting, context.state.target()) {
                target.process.set_scan(context.state.settings.scan);
            }
        }
    }
    Ok(Flow::Done)
}

/// `set $NAME = VALUE`
///
/// # Errors
/// The value has none, or pmdb itself sets the variable.
pub fn assign(state: &mut DebugState, name: &Spanned<String>, value: &Spanned<Range>) -> Result<(), eval::Error> {
    let (at, name) = (name.at, name.node.as_str());
    if eval::is_set_by_pmdb(name) {
        let error = eval::Error::new(at, format!("${name} is set by pmdb itself"));
        return Err(error.hint("choose another name; show convenience lists those in use"));
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
