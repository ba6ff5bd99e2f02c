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
    /// `scan`
    Scan,
    /// `height`
    Height,
    /// `width`
    Width,
    /// `json`
    Json,
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
    row(
        Setting::Color,
        "color",
        SettingType::Color,
        "when output is coloured",
    ),
    row(
        Setting::Height,
        "height",
        SettingType::Number,
        "rows of a screen for the pager; 0: as the terminal says",
    ),
    row(
        Setting::HistorySize,
        "history size",
        SettingType::Number,
        "lines of input that are kept",
    ),
    row(
        Setting::Json,
        "json",
        SettingType::Switch,
        "whether output is one JSON object a line",
    ),
    row(
        Setting::Pagination,
        "pagination",
        SettingType::Switch,
        "whether long output goes through a pager",
    ),
    row(
        Setting::Scan,
        "scan",
        SettingType::Switch,
        "whether PAGEMAP_SCAN is used where the kernel has it",
    ),
    row(
        Setting::Width,
        "width",
        SettingType::Number,
        "columns of a screen; 0: as the terminal says",
    ),
];

const fn row(
    setting: Setting,
    name: &'static str,
    takes: SettingType,
    doc: &'static str,
) -> SettingInfo {
    SettingInfo {
        setting,
        name,
        takes,
        doc,
    }
}

impl Setting {
    /// Its row of [`SETTINGS`]; the rows are tested to be complete.
    pub fn info(self) -> &'static SettingInfo {
        SETTINGS
            .iter()
            .find(|row| row.setting == self)
            .unwrap_or(&SETTINGS[0])
    }

    /// As it is written.
    pub fn name(self) -> &'static str {
        self.info().name
    }
}
