//! `info modules`

use super::floor::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use crate::kernel::words::worded;
use crate::kernel::{AddressRange, Name, VirtualAddress};
use crate::lang::parser::{Parsed, Tokens};
use crate::render::Record;
use crate::render::columns::{Cell, Column, END, START, Table, none, optional, region as name};
use crate::render::text::Text;
use crate::render::theme::Role;
use crate::report::json::words;
use crate::report::record::record;
use crate::report::{Declared, Reason, Shape, Why};
use crate::symbol::{JitSurvey, NamesFrom, Survey};

/// `info modules`: programs and libraries, and where their symbols come from.
#[derive(Debug)]
pub struct InfoModules;

impl Command for InfoModules {
    const RECORDS: &'static [Shape] = &[ModuleReport::SHAPE];
    const ABOUT: About = About {
        name: CommandName::new("info modules").displayed(),
        group: Group::Memory,
        summary: "list programs and libraries, and the source of their symbols",
        text: "\
Lists each program and library, and the vdso, with its range, its number of symbols, and their source:

  file        the file itself
  debug-file  a separate file, from a package with debug information
  debugdata   a small compressed table in the file
  debug-info  the functions in its debug information, if its symbol table was stripped
  dynamic     only exported and imported symbols
  image       memory: the vdso
  perf-map    the program's own list of JIT-compiled code, only after `set perf maps on`

A library that is mapped straight out of an archive (.apk, .zip, .jar) is a module named by both: \
`base.apk!/lib/x86_64/libmain.so`. Without a directory in the archive its name is its place there: `base.apk+0x4000`. \
`libmain.so!NAME` is a symbol of it, and `base.apk!NAME` one of all that is mapped from the archive.

A module without symbols shows the reason. A mark follows the name of a file that was deleted or replaced since.

pmdb searches for debug files in the root of the process, which may be in a container. It also searches by build ID \
in its own root.",
        examples: &[example("info modules", "list all modules")],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        Ok((input, InfoModules))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let target = context.target()?;
        let regions = context.state.symbols.naming_regions(&target)?;
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
        answers: jit.functions.is_ok().then_some(AnswersFrom::PerfMap),
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
        answers: answers.map(|(answers, _)| AnswersFrom::of(*answers, survey.module.is_vdso())),
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

worded! {
    /// What the names of a module come from.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum AnswersFrom, word {
        /// The symbol table of the file.
        File = "file",
        /// A separate debug file.
        DebugFile = "debug-file",
        /// The compressed table in the file.
        DebugData = "debugdata",
        /// The debug information in the file.
        DebugInformation = "debug-info",
        /// The table of the dynamic linker.
        Dynamic = "dynamic",
        /// The image of the vdso in memory.
        Image = "image",
        /// The perf map of JIT-compiled code.
        PerfMap = "perf-map",
    }
}

words!(AnswersFrom => "answers_from");

impl AnswersFrom {
    fn of(answers: NamesFrom, is_vdso: bool) -> Self {
        match answers {
            NamesFrom::DebugFile => AnswersFrom::DebugFile,
            NamesFrom::DebugData => AnswersFrom::DebugData,
            NamesFrom::DebugInformation => AnswersFrom::DebugInformation,
            NamesFrom::Itself | NamesFrom::DynamicTable if is_vdso => AnswersFrom::Image,
            NamesFrom::Itself => AnswersFrom::File,
            NamesFrom::DynamicTable => AnswersFrom::Dynamic,
        }
    }
}

record! {
    /// A row of `info modules`.
    pub struct ModuleReport as "module" with why {
        /// First address.
        start: VirtualAddress,
        /// The address after the last one, `.bss` included.
        end: VirtualAddress,
        /// Name, as in `maps`.
        name: Name,
        /// Whether its file was deleted or replaced since it was mapped.
        deleted: bool,
        /// The build ID, in hexadecimal digits.
        build_id: Option<String>,
        /// The source of its names: `file`, `debug-file`, `debugdata`, `debug-info`, `dynamic`, `image`, `perf-map`.
        answers: Option<AnswersFrom>,
        /// The separate debug file, in the target's root.
        debug_file: Option<Name>,
        /// Symbols in it.
        symbols: Option<u64>,
        /// Why fields are `null`; under `answers`, why the compressed table in the file could not be used.
        [flat] why: Why,
    }
}

impl Record for ModuleReport {
    fn write(&self, text: &mut Text) {
        text.row(&MODULES, self);
    }
}

/// `info modules`
static MODULES: Table<ModuleReport> = Table::of(&[
    START.cell(|_, module| Cell::new(&module.start)),
    END.rank(2).cell(|_, module| Cell::new(&module.end)),
    Column::number("symbols", 7, Role::Size).cell(|_, module| module.symbols.map_or_else(none, Cell::count)),
    Column::word("from", 10, Role::Plain)
        .cell(|_, module| module.answers.map_or_else(none, |answers| Cell::new(answers.word()))),
    // As most linkers make it: twenty bytes.
    Column::name("build-id", 12, Role::Raw).rank(1).uncut(40).cell(|_, module| optional(&module.build_id)),
    Column::name("name", 18, Role::Name)
        .uncut(40)
        .cell(|style, module| name(style, &module.name, module.deleted, None, false)),
    Column::name("debug file, or why none", 24, Role::Plain).cell(|_, module| debug_file(module)),
]);

fn debug_file(module: &ModuleReport) -> Cell<'_> {
    let of = |field| module.why.of(field);
    match (&module.debug_file, of("symbols")) {
        (Some(path), _) => Cell::of(Role::Name, path),
        (None, Some(reason)) => Cell::of(Role::Warn, reason.cause()),
        // A module with only exported symbols shows why.
        (None, None) if module.answers == Some(AnswersFrom::Dynamic) => match (of("answers"), of("debug_file")) {
            (Some(reason), _) => Cell::of(Role::Warn, reason.cause()),
            (None, Some(reason)) => Cell::of(Role::Dim, reason.cause()),
            (None, None) => none(),
        },
        _ => none(),
    }
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;
    use crate::command::tests::records::pages::{va, why};

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![Box::new(module()), Box::new(module_of_exports()), Box::new(module_unread())]
    }

    pub fn module() -> ModuleReport {
        ModuleReport {
            start: va(0x555555554000),
            end: va(0x55555555a000),
            name: Name::from("/usr/bin/demo"),
            deleted: false,
            build_id: Some("abcdef0123456789".into()),
            answers: Some(AnswersFrom::DebugFile),
            debug_file: Some(Name::from("/usr/lib/debug/.build-id/ab/cdef0123456789.debug")),
            symbols: Some(1234),
            why: Why::default(),
        }
    }

    pub fn module_of_exports() -> ModuleReport {
        ModuleReport {
            deleted: true,
            answers: Some(AnswersFrom::Dynamic),
            debug_file: None,
            why: why(&[("debug_file", Reason::NotInFile("no separate debug file is installed".into()))]),
            ..module()
        }
    }

    pub fn module_unread() -> ModuleReport {
        ModuleReport {
            build_id: None,
            answers: None,
            symbols: None,
            why: why(&[("symbols", Reason::NotInFile("not an ELF file".into()))]),
            ..module_of_exports()
        }
    }
}
