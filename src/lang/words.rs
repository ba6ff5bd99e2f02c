//! Words of the language with what they mean. The parser reads them, the printer of the tree writes them, and completion
//! offers them.

use super::expression::{Function, IntegerType};
use super::setting::ColorChoice;
use super::syntax::{Format, GroupKey, OnRequest, Reading, RegionOrder, Unit};

/// How a word of a table is written.
pub(super) fn spelled<T: PartialEq>(words: &[(&'static str, T)], meaning: &T) -> &'static str {
    words
        .iter()
        .find(|(_, one)| one == meaning)
        .map_or("", |(text, _)| text)
}

/// The functions by name.
pub(super) static FUNCTIONS: &[(&str, Function)] = &[
    ("pfn", Function::Pfn),
    ("phys", Function::Phys),
    ("page", Function::Page),
    ("region", Function::Region),
    ("start", Function::Start),
    ("end", Function::End),
    ("size", Function::Size),
    ("symbol", Function::Symbol),
    ("count", Function::Count),
    ("bytes", Function::Bytes),
    ("runs", Function::Runs),
    ("longest", Function::Longest),
    ("first", Function::First),
    ("last", Function::Last),
    ("rss", Function::Rss),
    ("pss", Function::Pss),
    ("uss", Function::Uss),
    ("swapped", Function::Swapped),
    ("huge", Function::Huge),
    ("name", Function::Name),
    ("perms", Function::Perms),
    ("state", Function::State),
    ("kind", Function::Kind),
];

/// The words that only blocks have. They count only when they are typed whole.
pub(super) static CONTROL_WORDS: &[&str] = &[
    "if",
    "else",
    "end",
    "while",
    "foreach",
    "define",
    "document",
    "loop_break",
    "loop_continue",
];

/// The types that memory is read as, by name.
pub(super) static INTEGER_TYPES: &[(&str, IntegerType)] = &[
    ("u8", IntegerType::U8),
    ("u16", IntegerType::U16),
    ("u32", IntegerType::U32),
    ("u64", IntegerType::U64),
    ("i8", IntegerType::I8),
    ("i16", IntegerType::I16),
    ("i32", IntegerType::I32),
    ("i64", IntegerType::I64),
];

pub(super) static REGION_ORDERS: &[(&str, RegionOrder)] = &[
    ("size", RegionOrder::Size),
    ("rss", RegionOrder::Rss),
    ("name", RegionOrder::Name),
];

pub(super) static GROUP_KEYS: &[(&str, GroupKey)] = &[
    ("state", GroupKey::State),
    ("kind", GroupKey::Kind),
    ("flags", GroupKey::Flags),
    ("region", GroupKey::Region),
    ("run", GroupKey::Run),
    ("order", GroupKey::Order),
    ("node", GroupKey::Node),
    ("zone", GroupKey::Zone),
    ("cgroup", GroupKey::Cgroup),
    ("pmd_mapped", GroupKey::PmdMapped),
];

pub(super) static READINGS: &[(&str, Reading)] =
    &[("entry", Reading::Entry), ("flags", Reading::Flags)];

pub(super) static ON_REQUEST: &[(&str, OnRequest)] = &[
    ("flags", OnRequest::Flags),
    ("mapcount", OnRequest::MapCount),
    ("soft_dirty", OnRequest::SoftDirty),
];

pub(super) static SWITCH: &[(&str, bool)] = &[("on", true), ("off", false)];

pub(super) static COLOR_CHOICES: &[(&str, ColorChoice)] = &[
    ("auto", ColorChoice::Auto),
    ("always", ColorChoice::Always),
    ("never", ColorChoice::Never),
];

/// The forms by letter.
pub(super) static FORMATS: &[(&str, Format)] = &[
    ("x", Format::Hexadecimal),
    ("d", Format::Signed),
    ("u", Format::Unsigned),
    ("o", Format::Octal),
    ("t", Format::Binary),
    ("a", Format::Address),
    ("c", Format::Character),
    ("z", Format::PaddedHexadecimal),
    ("s", Format::Text),
    ("f", Format::Float),
];

/// The sizes by letter.
pub(super) static UNITS: &[(&str, Unit)] = &[
    ("b", Unit::Byte),
    ("h", Unit::HalfWord),
    ("w", Unit::Word),
    ("g", Unit::GiantWord),
];

impl Function {
    /// Its name.
    pub fn name(self) -> &'static str {
        spelled(FUNCTIONS, &self)
    }
}

impl Format {
    /// Its letter, as behind a `/`.
    pub fn letter(self) -> &'static str {
        spelled(FORMATS, &self)
    }
}
