//! The settings of `set` and `show`.

use crate::kernel::words::{Worded, worded};

/// The type of a setting's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingType {
    /// `on` or `off`
    Switch,
    /// A number.
    Number,
    /// `auto`, `always` or `never`
    Color,
    /// `auto`, `dark` or `light`
    Style,
    /// `auto`, `emacs` or `vi`
    Editing,
    /// `ask`, `auto` or `program`
    Pager,
}

/// The new value of a setting, always of its [`SettingType`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingValue {
    /// `on` or `off`
    Switch(bool),
    /// A number.
    Number(u64),
    /// The choice of colours.
    Color(ColorChoice),
    /// Which colours.
    Style(StyleChoice),
    /// Which keys edit a line.
    Editing(Editing),
    /// What shows long output.
    Pager(PagerChoice),
}

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
        /// Those of emacs, as in bash and gdb.
        Emacs = "emacs",
        /// Those of vi.
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

/// A row of [`SETTINGS`].
#[derive(Clone, Copy, Debug)]
pub struct SettingInfo {
    /// Which setting.
    pub setting: Setting,
    /// As it is written, of one word or two.
    pub name: &'static str,
    /// What it takes.
    pub takes: SettingType,
    /// One line for the help.
    pub doc: &'static str,
}

macro_rules! settings {
    ($($setting:ident $name:literal $takes:ident, $doc:literal;)*) => {
        /// A setting, by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Setting {
            $(#[doc = concat!("`", $name, "`: ", $doc, ".")] $setting,)*
        }

        /// Every setting, in the order that `show` lists them.
        pub static SETTINGS: &[SettingInfo] = &[$(Setting::$setting.info(),)*];

        impl Setting {
            /// Its row of [`SETTINGS`].
            pub const fn info(self) -> SettingInfo {
                let (name, takes, doc) = match self {
                    $(Setting::$setting => ($name, SettingType::$takes, $doc),)*
                };
                SettingInfo { setting: self, name, takes, doc }
            }

            /// As it is written.
            pub const fn name(self) -> &'static str {
                self.info().name
            }
        }
    };
}

settings! {
    Color "color" Color, "colours in the output: auto, always or never";
    Editing "editing" Editing, "keys that edit a line: emacs, vi or auto (as in ~/.inputrc)";
    Height "height" Number, "rows of a screen for the pager; 0: as the terminal reports";
    HistorySize "history size" Number, "number of input lines that are kept";
    Json "json" Switch, "output as one JSON object a line";
    KernelRecords "kernel records" Switch, "use of the kernel's own records of frames (/proc/kcore), if they can be read and are proved";
    Logging "logging enabled" Switch, "output also to the log";
    LoggingOverwrite "logging overwrite" Switch, "replacement of the log when it is opened";
    LoggingRedirect "logging redirect" Switch, "output only to the log, not to the screen";
    Pager "pager" Pager, "display of long output: ask (pmdb stops after each screen), program ($PAGER, otherwise less) or auto (program if $PAGER is set, otherwise ask)";
    Pagination "pagination" Switch, "pager for long output";
    PerfMaps "perf maps" Switch, "symbols of JIT-compiled code from /tmp/perf-PID.map, which the target writes";
    Scan "scan" Switch, "use of PAGEMAP_SCAN, if the kernel has it";
    ShellErrors "shell errors" Switch, "errors for failed shell commands, except at the prompt";
    Style "style" Style, "terminal background: auto, dark or light";
    TraceCommands "trace commands" Switch, "each line of a command file before its answer; at a prompt, a stop after each";
    Width "width" Number, "columns of a line, in pipes and files too; 0: as the terminal reports, and no limit elsewhere";
}
