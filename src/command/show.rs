//! `show [SETTING | convenience | areas]`

use super::floor::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use crate::kernel::VirtualAddress;
use crate::lang::Setting;
use crate::lang::parser::{Parsed, Tokens, end_of_text, word};
use crate::lang::setting::setting;
use crate::render::Record;
use crate::render::columns::{Cell, Column, Table};
use crate::render::text::Text;
use crate::render::theme::Role;
use crate::report::record::record;
use crate::report::{Declared, Shape};
use nom::Parser;
use nom::branch::alt;
use nom::combinator::{map, opt};
use std::fmt::{self, Formatter};

/// `show [SETTING | convenience | areas]`: what it shows.
#[derive(Debug)]
pub enum Show {
    /// All settings.
    All,
    /// One setting.
    Setting(Setting),
    /// The variables: `$name`, and the value history.
    Convenience,
    /// The areas of the demonstration process.
    Areas,
    /// Which pmdb this is.
    Version,
    /// The settings of the log, and its file.
    Logging,
}

impl Command for Show {
    const RECORDS: &'static [Shape] = &[SettingReport::SHAPE, AreaRow::SHAPE];
    const ABOUT: About = About {
        name: CommandName::new("show").of_session().alone(),
        group: Group::Language,
        summary: "show settings and variables",
        text: "\
Lists every setting with its value and meaning.

  SETTING      one setting
  convenience  the variables of `set` and the kept values of `print`
  areas        the areas of the demonstration process (`pmdb demo`)
  version      the facts that a bug report needs",
        examples: &[
            example("show", "list all settings"),
            example("show pagination", "show one setting"),
            example("show convenience", "list variables and kept values"),
            example("show areas", "list the areas of the demonstration"),
            example("show version", "show version, commit, target and build"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let shown = alt((
            map((word("logging"), end_of_text), |_| Show::Logging),
            map(setting, Show::Setting),
            map(word("convenience"), |_| Show::Convenience),
            map(word("areas"), |_| Show::Areas),
            map(word("version"), |_| Show::Version),
        ));
        map(opt(shown), |shown| shown.unwrap_or(Show::All)).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Show::All => Ok(()),
            Show::Setting(setting) => write!(f, " {}", setting.name()),
            Show::Convenience => f.write_str(" convenience"),
            Show::Areas => f.write_str(" areas"),
            Show::Version => f.write_str(" version"),
            Show::Logging => f.write_str(" logging"),
        }
    }

    fn run(&self, context: &mut Context) -> Outcome {
        match self {
            Show::All => Setting::ALL.iter().try_for_each(|setting| show_setting(context, *setting))?,
            Show::Logging => {
                for setting in [Setting::Logging, Setting::LoggingOverwrite, Setting::LoggingRedirect] {
                    show_setting(context, setting)?;
                }
                context.sink.emit(&SettingReport {
                    name: "logging file".into(),
                    value: context.state.log_file.clone(),
                    meaning: "path of the log".into(),
                })?;
            }
            Show::Setting(setting) => show_setting(context, *setting)?,
            Show::Areas => show_areas(context)?,
            Show::Version => show_version(context)?,
            Show::Convenience => {
                for report in super::print::kept_values(context.state) {
                    context.sink.emit(&report)?;
                }
            }
        }
        Ok(Flow::Done)
    }
}

fn show_setting(context: &mut Context, setting: Setting) -> Result<(), super::floor::Error> {
    let report = SettingReport {
        name: setting.name().into(),
        value: context.state.settings.get(setting).to_string(),
        meaning: setting.about().into(),
    };
    Ok(context.sink.emit(&report)?)
}

/// The facts that a bug report needs: name, value, meaning.
fn facts() -> [(&'static str, &'static str, &'static str); 4] {
    [
        ("version", env!("CARGO_PKG_VERSION"), "of pmdb"),
        ("commit", env!("PMDB_COMMIT"), "of the source, recorded in release builds"),
        ("target", env!("PMDB_TARGET"), "processor, system and C library"),
        ("build", env!("PMDB_PROFILE"), "kind of build"),
    ]
}

fn show_version(context: &mut Context) -> Result<(), super::floor::Error> {
    for (name, value, meaning) in facts() {
        context.sink.emit(&SettingReport { name: name.into(), value: value.into(), meaning: meaning.into() })?;
    }
    Ok(())
}

/// The areas of the demonstration, or a note that there is none.
fn show_areas(context: &mut Context) -> Result<(), super::floor::Error> {
    if context.state.areas.is_empty() {
        context
            .sink
            .note("pmdb did not start this process: `pmdb demo` starts one with an area for each kind of memory")?;
    }
    for area in &context.state.areas {
        let (name, about) = (area.name.clone(), area.sentence.clone());
        let row = AreaRow { name, start: area.range.start(), end: area.range.end(), size: area.range.len(), about };
        context.sink.emit(&row)?;
    }
    Ok(())
}

record! {
    /// `show`
    pub struct SettingReport as "setting" {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
        /// Its effect.
        meaning: String,
    }
}

impl Record for SettingReport {
    fn write(&self, text: &mut Text) {
        text.row(&TABLE, self);
    }
}

/// `show`
static TABLE: Table<SettingReport> = Table::of(&[
    Column::word("setting", 17, Role::Command).cell(|_, setting| Cell::new(&setting.name)),
    Column::word("value", 12, Role::Plain).cell(|_, setting| Cell::new(&setting.value)),
    Column::word("meaning", 20, Role::Dim).cell(|_, setting| Cell::new(&setting.meaning)),
]);

record! {
    /// A row of `show areas`.
    pub struct AreaRow as "area" {
        /// The variable that holds the area, without the `$`.
        name: String,
        /// Address of the first byte.
        start: VirtualAddress,
        /// Address after the last byte.
        end: VirtualAddress,
        /// Number of bytes.
        size: u64,
        /// A description of its memory.
        about: String,
    }
}

impl Record for AreaRow {
    fn write(&self, text: &mut Text) {
        text.row(&AREAS, self);
    }
}

/// `show areas`
static AREAS: Table<AreaRow> = Table::of(&[
    Column::word("area", 13, Role::Symbol).cell(|_, area| Cell::new(format!("${}", area.name))),
    Column::number("size", 8, Role::Size).cell(|_, area| Cell::size(area.size)),
    Column::word("memory", 20, Role::Plain).cell(|_, area| Cell::new(&area.about)),
]);

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![Box::new(setting()), Box::new(area())]
    }

    pub fn setting() -> SettingReport {
        SettingReport { name: "pagination".into(), value: "on".into(), meaning: "show long output in a pager".into() }
    }

    pub fn area() -> AreaRow {
        let start = VirtualAddress::new(0x7f00_0000_0000);
        let about = "the zero page, read 8 times".to_owned();
        let (end, size) = (VirtualAddress::new(start.get() + 0x8000), 0x8000);
        AreaRow { name: "zero".to_owned(), start, end, size, about }
    }
}
