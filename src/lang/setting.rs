//! The settings of `set` and `show`: each is declared once, with its type, initial value and meaning.

use super::parser::{Failed, Parsed, Tokens, number, one_of, word};
use crate::kernel::words::{Worded, worded};
use nom::Parser;
use nom::branch::alt;
use nom::combinator::{cut, map};
use std::fmt::{self, Display, Formatter};

/// The value of a switch.
impl Worded for bool {
    const ALL: &'static [Self] = &[true, false];

    fn word(self) -> &'static str {
        if self { "on" } else { "off" }
    }

    fn about(self) -> &'static str {
        if self { "The setting is on." } else { "The setting is off." }
    }
}

worded! {
    /// The choice of colours.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ColorChoice, word {
        /// On a terminal, unless `NO_COLOR` is set.
        Auto = "auto",
        /// Always.
        Always = "always",
        /// Never.
        Never = "never",
    }
}

worded! {
    /// The background that colours are read on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum StyleChoice, word {
        /// As the terminal reports (COLORFGBG), otherwise colours for both.
        Auto = "auto",
        /// A dark one.
        Dark = "dark",
        /// A light one.
        Light = "light",
    }
}

worded! {
    /// The keys of the prompt.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Editing, word {
        /// As in `editing-mode` of ~/.inputrc, otherwise those of emacs.
        Auto = "auto",
        /// The keys of emacs, as in bash and gdb.
        Emacs = "emacs",
        /// The keys of vi.
        Vi = "vi",
    }
}

worded! {
    /// The display of output that does not fit the screen.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PagerChoice, word {
        /// The program if `PAGER` names one, otherwise pmdb itself.
        Auto = "auto",
        /// pmdb itself: it asks at each screen, as gdb does.
        Ask = "ask",
        /// The program that `PAGER` names, otherwise less.
        Program = "program",
    }
}

/// A type of settings: one of a few words, or a number.
trait SettingType: Copy + 'static {
    fn parse(input: Tokens<'_>) -> Parsed<'_, Self>;

    fn write(self, f: &mut Formatter<'_>) -> fmt::Result;
}

impl<T: Worded> SettingType for T {
    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        one_of(input)
    }

    fn write(self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl SettingType for u64 {
    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        number(input)
    }

    fn write(self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Rows or columns of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScreenSize {
    /// As the terminal reports.
    Auto,
    /// No limit: 0, as in gdb.
    Unlimited,
    /// This many.
    Of(u64),
}

impl SettingType for ScreenSize {
    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let number = map(number, |number| if number == 0 { ScreenSize::Unlimited } else { ScreenSize::Of(number) });
        let words = [("auto", ScreenSize::Auto), ("unlimited", ScreenSize::Unlimited)];
        let [auto, unlimited] = words.map(|(name, size)| map(word(name), move |_| size));
        alt((auto, unlimited, number)).parse(input)
    }

    fn write(self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ScreenSize::Auto => f.write_str("auto"),
            ScreenSize::Unlimited => f.write_str("unlimited"),
            ScreenSize::Of(number) => write!(f, "{number}"),
        }
    }
}

macro_rules! settings {
    ($($setting:ident $field:ident: $type:ident = $first:expr, $name:literal, $doc:literal;)*) => {
        /// A setting, by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Setting {
            $(#[doc = concat!("`", $name, "`: ", $doc, ".")] $setting,)*
        }

        /// A setting with a value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum SettingValue {
            $(#[doc = concat!("`", $name, "`: ", $doc, ".")] $setting($type),)*
        }

        /// The values of all settings.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct Settings {
            $(#[doc = concat!("`", $name, "`: ", $doc, ".")] pub $field: $type,)*
        }

        impl Default for Settings {
            fn default() -> Self {
                Settings { $($field: $first,)* }
            }
        }

        impl Settings {
            /// Returns a setting with its current value.
            pub fn get(&self, setting: Setting) -> SettingValue {
                match setting {
                    $(Setting::$setting => SettingValue::$setting(self.$field),)*
                }
            }

            /// Sets the value of a setting.
            pub fn set(&mut self, value: SettingValue) {
                match value {
                    $(SettingValue::$setting(value) => self.$field = value,)*
                }
            }
        }

        impl Setting {
            /// All settings, in the order of `show`.
            pub const ALL: &[Setting] = &[$(Setting::$setting,)*];

            /// Returns the name of the setting, of one word or two.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Setting::$setting => $name,)*
                }
            }

            /// Returns one line for the help.
            pub const fn about(self) -> &'static str {
                match self {
                    $(Setting::$setting => $doc,)*
                }
            }

            fn parse_value(self, input: Tokens<'_>) -> Parsed<'_, SettingValue> {
                match self {
                    $(Setting::$setting => map(cut(<$type>::parse), SettingValue::$setting).parse(input),)*
                }
            }
        }

        impl SettingValue {
            /// Returns the setting.
            pub const fn setting(self) -> Setting {
                match self {
                    $(SettingValue::$setting(_) => Setting::$setting,)*
                }
            }
        }

        /// Printed without the name of the setting.
        impl Display for SettingValue {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                match self {
                    $(SettingValue::$setting(value) => value.write(f),)*
                }
            }
        }
    };
}

settings! {
    Color color: ColorChoice = ColorChoice::Auto,
        "color", "colours in the output: auto, always or never";
    Editing editing: Editing = Editing::Auto,
        "editing", "keys that edit a line: emacs, vi or auto (as in ~/.inputrc)";
    Height height: ScreenSize = ScreenSize::Auto,
        "height", "rows of a screen for the pager: a number, auto (as the terminal reports) or 0 (unlimited)";
    HistorySize history_size: u64 = 10_000,
        "history size", "number of input lines that are kept";
    Json json: bool = false,
        "json", "output as one JSON object a line";
    KernelRecords kernel_records: bool = true,
        "kernel records", "read struct page from /proc/kcore, if its layout is proved";
    Logging logging: bool = false,
        "logging enabled", "output also to the log";
    LoggingOverwrite logging_overwrite: bool = false,
        "logging overwrite", "overwrite the log file";
    LoggingRedirect logging_redirect: bool = false,
        "logging redirect", "output only to the log, not to the screen";
    Pager pager: PagerChoice = PagerChoice::Auto,
        "pager", "display of long output: ask (pmdb stops after each screen), program ($PAGER, otherwise less) or auto (program if $PAGER is set, otherwise ask)";
    Pagination pagination: bool = true,
        "pagination", "pager for long output";
    PerfMaps perf_maps: bool = false,
        "perf maps", "symbols of JIT-compiled code from /tmp/perf-PID.map, which the target writes";
    Scan scan: bool = true,
        "scan", "use of PAGEMAP_SCAN, if the kernel has it";
    ShellErrors shell_errors: bool = true,
        "shell errors", "errors for failed shell commands, except at the prompt";
    Style style: StyleChoice = StyleChoice::Auto,
        "style", "terminal background: auto, dark or light";
    TraceCommands trace_commands: bool = false,
        "trace commands", "print each command before its output; at a prompt, pause after it";
    Width width: ScreenSize = ScreenSize::Auto,
        "width", "columns of a line, in pipes and files too: a number, auto (those of a terminal, otherwise unlimited) or 0 (unlimited)";
}

/// Parses the name of a setting.
pub(crate) fn setting(input: Tokens<'_>) -> Parsed<'_, Setting> {
    let mut is_begun = false;
    for &setting in Setting::ALL {
        let (first, second) = setting.name().split_once(' ').unwrap_or((setting.name(), ""));
        let Ok((behind, _)) = word(first)(input) else {
            continue;
        };
        if second.is_empty() {
            return Ok((behind, setting));
        }
        match word(second)(behind) {
            Ok((behind, _)) => return Ok((behind, setting)),
            Err(_) => is_begun = true,
        }
    }
    Err(if is_begun { nom::Err::Failure(Failed) } else { nom::Err::Error(Failed) })
}

/// Parses the name of a setting and a value of its type.
pub(crate) fn setting_value(input: Tokens<'_>) -> Parsed<'_, SettingValue> {
    let (behind, setting) = setting(input)?;
    setting.parse_value(behind)
}
