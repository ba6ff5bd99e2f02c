//! The settings of `set` and `show`.

/// A setting, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Setting {
    /// `pagination`
    Pagination,
    /// `color`
    Color,
    /// `history size`
    HistorySize,
    /// `perf maps`
    PerfMaps,
    /// `scan`
    Scan,
    /// `height`
    Height,
    /// `width`
    Width,
    /// `json`
    Json,
    /// `shell errors`
    ShellErrors,
}

/// What a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingType {
    /// `on` or `off`
    Switch,
    /// A number.
    Number,
    /// `auto`, `always` or `never`
    Color,
}

/// What a setting becomes; always of its [`SettingType`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingValue {
    /// `on` or `off`
    Switch(bool),
    /// A number.
    Number(u64),
    /// When to use colour.
    Color(ColorChoice),
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
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

/// Every setting, in the order that `show` lists them.
pub static SETTINGS: &[SettingInfo] = &[
    Setting::Color.info(),
    Setting::Height.info(),
    Setting::HistorySize.info(),
    Setting::Json.info(),
    Setting::Pagination.info(),
    Setting::PerfMaps.info(),
    Setting::Scan.info(),
    Setting::ShellErrors.info(),
    Setting::Width.info(),
];

impl Setting {
    /// Its row of [`SETTINGS`].
    pub const fn info(self) -> SettingInfo {
        use SettingType::{Color, Number, Switch};
        let (name, takes, doc) = match self {
            Setting::Color => ("color", Color, "when output is coloured"),
            Setting::Height => (
                "height",
                Number,
                "rows of a screen for the pager; 0: as the terminal says",
            ),
            Setting::HistorySize => ("history size", Number, "lines of input that are kept"),
            Setting::Json => ("json", Switch, "whether output is one JSON object a line"),
            Setting::Pagination => (
                "pagination",
                Switch,
                "whether long output goes through a pager",
            ),
            Setting::PerfMaps => (
                "perf maps",
                Switch,
                "whether names are taken from /tmp/perf-PID.map too, which the target writes for code that it makes",
            ),
            Setting::Scan => (
                "scan",
                Switch,
                "whether PAGEMAP_SCAN is used where the kernel has it",
            ),
            Setting::ShellErrors => (
                "shell errors",
                Switch,
                "whether a shell command that fails is an error, other than at the prompt",
            ),
            Setting::Width => (
                "width",
                Number,
                "columns of a screen; 0: as the terminal says",
            ),
        };
        SettingInfo {
            setting: self,
            name,
            takes,
            doc,
        }
    }

    /// As it is written.
    pub const fn name(self) -> &'static str {
        self.info().name
    }
}
