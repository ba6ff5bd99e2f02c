//! `show [SETTING | convenience]`

use super::{About, CommandName, Context, Flow, Group, Outcome, example};
use crate::command::parse::Shown;
use crate::lang::{SETTINGS, Setting};
use crate::report::SettingReport;

pub(super) const ABOUT: About = About {
    name: CommandName::new("show"),
    group: Group::Language,
    summary: "show settings and variables",
    text: "\
Lists every setting with its value and meaning.

  SETTING      one setting
  convenience  the variables of `set` and the kept values of `print`
  version      the facts that a bug report needs",
    examples: &[
        example("show", "list all settings"),
        example("show pagination", "show one setting"),
        example("show convenience", "list variables and kept values"),
        example("show version", "show version, commit, target and build"),
    ],
};

pub(super) fn run(context: &mut Context, shown: Shown) -> Outcome {
    match shown {
        Shown::All => SETTINGS.iter().try_for_each(|info| show_setting(context, info.setting))?,
        Shown::Logging => {
            for setting in [Setting::Logging, Setting::LoggingOverwrite, Setting::LoggingRedirect] {
                show_setting(context, setting)?;
            }
            context.sink.emit(&SettingReport {
                name: "logging file".into(),
                value: context.state.settings.log_file.clone(),
                meaning: "where it is written".into(),
            })?;
        }
        Shown::Setting(setting) => show_setting(context, setting)?,
        Shown::Version => super::version::run(context)?,
        Shown::Convenience => {
            for report in super::print::kept_values(context.state) {
                context.sink.emit(&report)?;
            }
        }
    }
    Ok(Flow::Done)
}

fn show_setting(context: &mut Context, setting: Setting) -> Result<(), super::Error> {
    let meaning = SETTINGS.iter().find(|info| info.setting == setting).map_or("", |info| info.doc);
    let report = SettingReport {
        name: setting.name().into(),
        value: context.state.settings.get(setting).to_string(),
        meaning: meaning.into(),
    };
    Ok(context.sink.emit(&report)?)
}
