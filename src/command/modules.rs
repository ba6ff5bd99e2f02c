//! `info modules`

use super::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use crate::kernel::AddressRange;
use crate::lang::parser::{Parsed, Tokens};
use crate::report::{ModuleReport, Reason, Why};
use crate::symbol::{Answers, JitSurvey, Survey};

/// `info modules`: programs and libraries, and where their symbols come from.
#[derive(Debug)]
pub struct InfoModules;

impl Command for InfoModules {
    const ABOUT: About = About {
        name: CommandName::new("info modules").displayed(),
        group: Group::Memory,
        summary: "list programs and libraries, and the source of their symbols",
        text: "\
Lists each program and library, and the vdso, with its range, its number of symbols, and their source:

  file        the file itself
  debug-file  a separate file, from a package with debug information
  debugdata   a small compressed table in the file
  dynamic     only exported and imported symbols
  image       memory: the vdso
  perf-map    the program's own list of JIT-compiled code, only after `set perf maps on`

A module without symbols shows the reason. A mark follows the name of a file that was deleted or replaced since.

pmdb searches for debug files in the root of the process, which may be in a container. It also searches by build ID \
in its own root.",
        examples: &[example("info modules", "list all modules")],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        Ok((input, InfoModules))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let target = context.target()?;
        let regions = context.state.symbols.regions(&target)?;
        let symbols = context.state.symbols.over(&target, &*regions);
        for survey in symbols.surveys() {
            reports(&survey?).into_iter().try_for_each(|report| context.sink.emit(&report))?;
        }
        if let Some(jit) = symbols.jit_survey()? {
            context.sink.emit(&jit_report(jit))?;
        }
        Ok(Flow::Done)
    }
}

/// The row of JIT-compiled code.
fn jit_report(jit: JitSurvey) -> ModuleReport {
    let mut why = Why::default();
    for field in ["build_id", "debug_file"] {
        note(&mut why, field, "JIT-compiled code has no file");
    }
    if let Err(reason) = &jit.functions {
        note(&mut why, "answers", reason);
        note(&mut why, "symbols", reason);
    }
    if jit.is_cut {
        note(&mut why, "answers", "the list is so long that only its end is read");
    }
    ModuleReport {
        start: jit.start,
        end: jit.end,
        name: jit.name,
        build_id: None,
        deleted: false,
        answers: jit.functions.is_ok().then_some("perf-map"),
        debug_file: None,
        symbols: jit.functions.ok(),
        why,
    }
}

/// A row for each copy of a module.
fn reports(survey: &Survey<'_>) -> Vec<ModuleReport> {
    let mut why = Why::default();
    match (&survey.answers, &survey.no_debugdata) {
        (Err(reason), _) => {
            note(&mut why, "answers", reason);
            note(&mut why, "symbols", reason);
        }
        // There are symbols, but a better source failed.
        (Ok(_), Some(reason)) => {
            note(&mut why, "answers", format!(".gnu_debugdata: {reason}"));
        }
        (Ok(_), None) => {}
    }
    if let Err(reason) = &survey.build_id {
        note(&mut why, "build_id", reason);
    }
    if let Err(reason) = &survey.separate {
        note(&mut why, "debug_file", reason);
    }
    let answers = survey.answers.as_ref().ok();
    let report = |range: &AddressRange| ModuleReport {
        start: range.start(),
        end: range.end(),
        name: survey.module.name.clone(),
        build_id: survey.build_id.as_ref().ok().cloned(),
        deleted: survey.module.regions.iter().any(|region| region.deleted),
        answers: answers.map(|(answers, _)| word(*answers, survey.module.is_vdso())),
        debug_file: survey.separate.as_ref().ok().cloned(),
        symbols: answers.map(|(_, symbols)| *symbols),
        why: why.clone(),
    };
    survey.copies.iter().map(report).collect()
}

/// Notes that the files of the target do not show a field.
fn note(why: &mut Why, field: &'static str, reason: impl ToString) {
    why.note(field, &Reason::NotInFile(reason.to_string()));
}

fn word(answers: Answers, is_vdso: bool) -> &'static str {
    match answers {
        Answers::DebugFile => "debug-file",
        Answers::DebugData => "debugdata",
        Answers::Itself | Answers::DynamicTable if is_vdso => "image",
        Answers::Itself => "file",
        Answers::DynamicTable => "dynamic",
    }
}
