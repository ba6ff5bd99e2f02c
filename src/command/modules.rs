//! `info modules`

use super::{About, Context, Example, Flow, Group, Outcome};
use crate::kernel::AddressRange;
use crate::report::{ModuleReport, Record};
use crate::symbol::{Answers, MadeSurvey, Survey};
use std::cell::RefCell;
use std::collections::BTreeMap;

pub(super) const ABOUT: About = About {
    name: "info modules",
    group: Group::Memory,
    summary: "programs and libraries, and where their names come from",
    text: "A row for each program and library, and for the vdso: from where to where it goes, how many symbols it has, and \
           what they come from: `file` (itself), `debug-file` (what was stripped from it, as packages with debug information install it), \
           `debugdata` (a small table compressed within it), `dynamic` (only what it exports and imports), `image` (memory: the vdso), \
           `perf-map` (what the program itself writes down of code that it makes: only after `set perf maps on`). \
           Where there are none, the reason. A file that was deleted or replaced since says so behind its name. Debug files are looked for in the root of the process, which may be in a container, and by build-id where pmdb runs.",
    examples: &[Example {
        line: "info modules",
        does: "all of them",
    }],
};

pub(super) fn run(context: &mut Context) -> Outcome {
    let target = context.target()?;
    let regions = context.state.symbols.regions(&target)?;
    let symbols = context.state.symbols.over(&target, &*regions);
    // Both of what is asked while modules are gone through need it.
    let sink = RefCell::new(&mut *context.sink);
    symbols.survey(&mut || sink.borrow_mut().check(), &mut |survey| {
        for report in reports(&survey) {
            sink.borrow_mut().emit(Record::Module(report))?;
        }
        Ok(())
    })?;
    if let Some(made) = symbols.made_survey() {
        context.sink.emit(Record::Module(made_report(made)))?;
    }
    Ok(Flow::Done)
}

/// The row of what the program makes while it runs.
fn made_report(made: MadeSurvey) -> ModuleReport {
    let no_file = "no file is behind code that is made while the program runs".to_owned();
    let mut why = BTreeMap::from([("build_id", no_file.clone()), ("debug_file", no_file)]);
    if let Err(reason) = &made.functions {
        why.insert("answers", reason.to_string());
        why.insert("symbols", reason.to_string());
    }
    if made.is_cut {
        why.insert(
            "answers",
            "the list is so long that only its end is read".to_owned(),
        );
    }
    ModuleReport {
        start: made.start,
        end: made.end,
        name: made.name,
        build_id: None,
        deleted: false,
        answers: made.functions.is_ok().then_some("perf-map"),
        debug_file: None,
        symbols: made.functions.ok(),
        why,
    }
}

/// A row for each copy of a module.
fn reports(survey: &Survey<'_>) -> Vec<ModuleReport> {
    let mut why = BTreeMap::new();
    match (&survey.answers, &survey.no_debugdata) {
        (Err(reason), _) => {
            why.insert("answers", reason.to_string());
            why.insert("symbols", reason.to_string());
        }
        // There is an answer, which could be a better one.
        (Ok(_), Some(reason)) => {
            why.insert("answers", format!(".gnu_debugdata: {reason}"));
        }
        (Ok(_), None) => {}
    }
    if let Err(reason) = &survey.build_id {
        why.insert("build_id", reason.to_string());
    }
    if let Err(reason) = &survey.separate {
        why.insert("debug_file", reason.to_string());
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

fn word(answers: Answers, is_vdso: bool) -> &'static str {
    match answers {
        Answers::DebugFile => "debug-file",
        Answers::DebugData => "debugdata",
        Answers::Itself | Answers::DynamicTable if is_vdso => "image",
        Answers::Itself => "file",
        Answers::DynamicTable => "dynamic",
    }
}
