//! The settings and their values.

use crate::lang::{ColorChoice, Editing, PagerChoice, Setting, SettingValue, StyleChoice};
use thiserror::Error as ThisError;

/// A value of the wrong type for a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ThisError)]
#[error("'{}' cannot have such a value", .0.name())]
pub struct WrongType(pub Setting);

/// How pmdb works, setting by setting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// When output is coloured.
    pub color: ColorChoice,
    /// The keys of the prompt.
    pub editing: Editing,
    /// Rows of a screen for the pager; 0: as the terminal says.
    pub height: u64,
    /// How many lines of input are kept.
    pub history_size: u64,
    /// Whether output is one JSON object a line.
    pub json: bool,
    /// Whether the kernel's own records of frames are used where they can be read.
    pub kernel_records: bool,
    /// Whether what is printed is also written to the log.
    pub logging: bool,
    /// Whether the log is truncated when it is opened.
    pub logging_overwrite: bool,
    /// Whether what goes to the log is left out on the screen.
    pub logging_redirect: bool,
    /// The path of the log.
    pub log_file: String,
    /// The pager for long output.
    pub pager: PagerChoice,
    /// Whether long output goes through a pager.
    pub pagination: bool,
    /// Whether names are taken from `/tmp/perf-PID.map` too.
    pub perf_maps: bool,
    /// Whether PAGEMAP_SCAN is used where the kernel has it.
    pub scan: bool,
    /// Whether a program reads the replies (`--serve`): they stay JSON. `set` does not change this.
    pub serving: bool,
    /// Whether a shell command that fails is an error, other than at the prompt.
    pub shell_errors: bool,
    /// The terminal's background, which decides the colours.
    pub style: StyleChoice,
    /// Whether each line of a command file is printed before it runs.
    pub trace_commands: bool,
    /// Columns to write in, everywhere; 0: as the terminal says.
    pub width: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            color: ColorChoice::Auto,
            editing: Editing::Auto,
            height: 0,
            history_size: 10_000,
            json: false,
            kernel_records: true,
            logging: false,
            logging_overwrite: false,
            logging_redirect: false,
            log_file: "pmdb.txt".to_owned(),
            pager: PagerChoice::Auto,
            pagination: true,
            perf_maps: false,
            scan: true,
            serving: false,
            shell_errors: true,
            style: StyleChoice::Auto,
            trace_commands: false,
            width: 0,
        }
    }
}

impl Settings {
    /// The value of a setting.
    pub fn get(&self, setting: Setting) -> SettingValue {
        match setting {
            Setting::Color => SettingValue::Color(self.color),
            Setting::Editing => SettingValue::Editing(self.editing),
            Setting::Style => SettingValue::Style(self.style),
            Setting::Height => SettingValue::Number(self.height),
            Setting::HistorySize => SettingValue::Number(self.history_size),
            Setting::Json => SettingValue::Switch(self.json),
            Setting::KernelRecords => SettingValue::Switch(self.kernel_records),
            Setting::Logging => SettingValue::Switch(self.logging),
            Setting::LoggingOverwrite => SettingValue::Switch(self.logging_overwrite),
            Setting::LoggingRedirect => SettingValue::Switch(self.logging_redirect),
            Setting::Pager => SettingValue::Pager(self.pager),
            Setting::Pagination => SettingValue::Switch(self.pagination),
            Setting::PerfMaps => SettingValue::Switch(self.perf_maps),
            Setting::Scan => SettingValue::Switch(self.scan),
            Setting::ShellErrors => SettingValue::Switch(self.shell_errors),
            Setting::TraceCommands => SettingValue::Switch(self.trace_commands),
            Setting::Width => SettingValue::Number(self.width),
        }
    }

    /// Gives a setting a value.
    ///
    /// # Errors
    /// The value is not of the setting's type; nothing has changed then.
    pub fn set(&mut self, setting: Setting, value: SettingValue) -> Result<(), WrongType> {
        match (setting, value) {
            (Setting::Color, SettingValue::Color(color)) => self.color = color,
            (Setting::Editing, SettingValue::Editing(editing)) => self.editing = editing,
            (Setting::Style, SettingValue::Style(style)) => self.style = style,
            (Setting::Height, SettingValue::Number(rows)) => self.height = rows,
            (Setting::HistorySize, SettingValue::Number(lines)) => self.history_size = lines,
            (Setting::Json, SettingValue::Switch(on)) => self.json = on,
            (Setting::KernelRecords, SettingValue::Switch(on)) => self.kernel_records = on,
            (Setting::Logging, SettingValue::Switch(on)) => self.logging = on,
            (Setting::LoggingOverwrite, SettingValue::Switch(on)) => self.logging_overwrite = on,
            (Setting::LoggingRedirect, SettingValue::Switch(on)) => self.logging_redirect = on,
            (Setting::Pager, SettingValue::Pager(pager)) => self.pager = pager,
            (Setting::Pagination, SettingValue::Switch(on)) => self.pagination = on,
            (Setting::PerfMaps, SettingValue::Switch(on)) => self.perf_maps = on,
            (Setting::Scan, SettingValue::Switch(on)) => self.scan = on,
            (Setting::ShellErrors, SettingValue::Switch(on)) => self.shell_errors = on,
            (Setting::TraceCommands, SettingValue::Switch(on)) => self.trace_commands = on,
            (Setting::Width, SettingValue::Number(columns)) => self.width = columns,
            _ => return Err(WrongType(setting)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::SETTINGS;
    use crate::lang::setting::SettingType;

    #[test]
    fn every_setting_holds_what_it_takes_and_refuses_the_rest() {
        let values = [
            (SettingType::Switch, SettingValue::Switch(false)),
            (SettingType::Switch, SettingValue::Switch(true)),
            (SettingType::Number, SettingValue::Number(7)),
            (SettingType::Color, SettingValue::Color(ColorChoice::Never)),
            (SettingType::Style, SettingValue::Style(StyleChoice::Light)),
            (SettingType::Editing, SettingValue::Editing(Editing::Vi)),
            (SettingType::Pager, SettingValue::Pager(PagerChoice::Ask)),
        ];
        let mut settings = Settings::default();
        for info in SETTINGS {
            for (of_type, value) in values {
                let before = settings.get(info.setting);
                let answer = settings.set(info.setting, value);
                let fits = info.takes == of_type;
                assert_eq!(answer.is_ok(), fits, "{}", info.name);
                let expected = if fits { value } else { before };
                assert_eq!(settings.get(info.setting), expected, "{}", info.name);
            }
        }
    }
}
