//! Records about the session, its target, and values.

use super::wire::optional_text;
use super::{RegionBrief, SymbolBrief};
use crate::kernel::{Name, VirtualAddress};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// `print`, and anything with a value.
#[derive(Clone, Debug, Serialize)]
pub struct ValueReport {
    /// `$1`, without the dollar; `None` for values that are not kept.
    pub number: Option<usize>,
    /// `$name`, without the dollar, for a variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `address`, `physical`, `frame`, `integer`, `range`, `text`
    pub kind: &'static str,
    /// The value in its usual form (hexadecimal for addresses, decimal for integers).
    pub value: String,
    /// The same in another base or unit, in words, when that helps a reader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub also: Option<String>,
    /// For an address in a symbol; in JSON as `main+16`.
    #[serde(serialize_with = "optional_text")]
    pub symbol: Option<SymbolBrief>,
    /// Name of the region, for an address in one.
    pub region: Option<Name>,
}

/// `info symbol`, `info address`
#[derive(Clone, Debug, Serialize)]
pub struct SymbolReport {
    /// Demangled name.
    pub name: Name,
    /// As the file spells it, if that differs.
    pub mangled: Option<Name>,
    /// Where it starts in the process.
    pub address: VirtualAddress,
    /// Bytes, 0 when the file gives none.
    pub size: u64,
    /// How far into it the address asked for lies.
    pub offset: u64,
    /// `function`, `object`, `tls`, `section`, `untyped`
    pub kind: &'static str,
    /// ELF section.
    pub section: Option<Name>,
    /// The module that defines it.
    pub module: Name,
    /// The address that it is linked at, as objdump shows it.
    pub file_address: VirtualAddress,
}

/// A row of `info modules`: a program or library, or the vdso.
#[derive(Clone, Debug, Serialize)]
pub struct ModuleReport {
    /// First address.
    pub start: VirtualAddress,
    /// The address after the last one, `.bss` included.
    pub end: VirtualAddress,
    /// As `maps` names it.
    pub name: Name,
    /// Whether its file was deleted or replaced since it was mapped.
    pub deleted: bool,
    /// What tells this build from all others, in hexadecimal digits.
    pub build_id: Option<String>,
    /// `file`, `debug-file`, `debugdata`, `dynamic`, `image`, `perf-map`: what answers for its names.
    pub answers: Option<&'static str>,
    /// The separate debug file, in the target's root.
    pub debug_file: Option<Name>,
    /// Symbols in it.
    pub symbols: Option<u64>,
    /// Why fields are `null`; of `answers`, why not the small table that is compressed within the file.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub why: BTreeMap<&'static str, String>,
}

/// What closes `info symbols`.
#[derive(Clone, Debug, Serialize)]
pub struct SymbolsSummary {
    /// Symbols that matched and were shown.
    pub symbols: u64,
    /// Whether there are more: the limit was reached.
    pub cut_short: bool,
    /// Modules that gave no symbols.
    pub silent: Vec<SilentModule>,
}

/// A module that gave no symbols.
#[derive(Clone, Debug, Serialize)]
pub struct SilentModule {
    /// Its file name.
    pub module: Name,
    /// Why.
    pub reason: String,
}

/// `info process`
#[derive(Clone, Debug, Serialize)]
pub struct ProcessReport {
    /// Process id.
    pub pid: u32,
    /// Parent.
    pub parent: u32,
    /// `comm`
    pub name: Name,
    /// `S (sleeping)`
    pub state: String,
    /// Threads.
    pub threads: u32,
    /// User id.
    pub user: u32,
    /// Who traces it.
    pub tracer: Option<u32>,
    /// Program file.
    pub executable: Option<Name>,
    /// Command line.
    pub command_line: Option<Name>,
    /// Seconds since it started.
    pub age: Option<f64>,
    /// Bytes in a page.
    pub page_size: u64,
    /// Bytes in a pointer.
    pub pointer_bytes: u8,
    /// The memory fields of status, with their meaning.
    pub memory: Vec<MemoryField>,
    /// Why frames are hidden, if they are.
    pub frames_hidden: bool,
}

/// A memory field of `/proc/PID/status`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MemoryField {
    /// As the kernel spells it: `VmRSS`.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
    /// In words.
    pub meaning: &'static str,
}

/// A row of `ps`.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessRow {
    /// Process id.
    pub pid: u32,
    /// User id.
    pub user: u32,
    /// One letter.
    pub state: char,
    /// Resident bytes.
    pub resident: Option<u64>,
    /// `comm`
    pub name: Name,
    /// Command line.
    pub command_line: Option<Name>,
}

/// What happened to the target.
#[derive(Clone, Debug, Serialize)]
pub struct TargetReport {
    /// `attached`, `detached`, `executed`, `exited`
    pub event: &'static str,
    /// Process id.
    pub pid: u32,
    /// `comm`
    pub name: Name,
    /// Program file.
    pub executable: Option<Name>,
    /// Regions it has.
    pub regions: Option<u64>,
    /// What else is worth saying: it is a thread of …, it is pmdb itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// `show`
#[derive(Clone, Debug, Serialize)]
pub struct SettingReport {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// What it does.
    pub meaning: String,
}

/// A line of `history`.
#[derive(Clone, Debug, Serialize)]
pub struct HistoryEntry {
    /// Number.
    pub number: usize,
    /// The line.
    pub line: Name,
}

/// `echo`: text as the user asked for it.
#[derive(Clone, Debug, Serialize)]
pub struct Text {
    /// The text, its own line ends included.
    pub text: String,
}

/// `help`
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "topic", rename_all = "kebab-case")]
pub enum Help {
    /// A heading with commands under it.
    Group {
        /// Its name.
        name: &'static str,
        /// What it is about.
        about: &'static str,
        /// Commands: usage name, short forms, summary.
        commands: Vec<HelpEntry>,
    },
    /// One command in full.
    Command {
        /// Its name.
        name: &'static str,
        /// Short forms.
        short: Vec<&'static str>,
        /// Usage lines, from the grammar.
        usage: Vec<String>,
        /// One line.
        summary: &'static str,
        /// Paragraphs.
        text: &'static str,
        /// Examples: line and what it does.
        #[serde(serialize_with = "as_examples")]
        examples: Vec<(&'static str, &'static str)>,
    },
    /// The commands that the user made.
    #[serde(rename = "user-defined")]
    UserDefined {
        /// Their names, and the first line of what `document` says.
        commands: Vec<UserHelp>,
    },
    /// One of them.
    #[serde(rename = "user-command")]
    UserCommand(UserHelp),
}

/// A command that the user made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct UserHelp {
    /// Its name.
    pub name: String,
    /// What `document` says, or what it is an alias of.
    pub text: String,
}

fn as_examples<S: Serializer>(
    examples: &[(&'static str, &'static str)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Example {
        line: &'static str,
        does: &'static str,
    }
    serializer.collect_seq(examples.iter().map(|&(line, does)| Example { line, does }))
}

/// A command in a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HelpEntry {
    /// Its name.
    pub name: &'static str,
    /// Short forms.
    pub short: Vec<&'static str>,
    /// One line.
    pub summary: &'static str,
}

/// A remark.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Note {
    /// One sentence.
    pub message: String,
}

/// `assert`
#[derive(Clone, Debug, Serialize)]
pub struct AssertionReport {
    /// The expression.
    pub expression: String,
    /// Whether it is true.
    pub holds: bool,
    /// What is said if it is not.
    pub message: Option<String>,
    /// The values that decided.
    pub values: Vec<AssertionValue>,
    /// Where it stands.
    #[serde(rename = "where")]
    pub place: Option<ErrorPlace>,
}

/// A part of an asserted expression.
#[derive(Clone, Debug, Serialize)]
pub struct AssertionValue {
    /// The part.
    pub expression: String,
    /// Its value.
    pub value: String,
    /// What it should have been.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
}

/// What closes a run with `--keep-going` that made assertions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct AssertionsSummary {
    /// Assertions that held.
    pub held: u64,
    /// Assertions that failed.
    pub failed: u64,
    /// Assertions without a value: they neither held nor failed.
    pub unknown: u64,
}

/// A failure: what was tried, why it failed, the way out.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ErrorReport {
    /// What was tried and why it failed.
    pub message: String,
    /// File, line and column, or column of the line typed.
    #[serde(rename = "where")]
    pub place: Option<ErrorPlace>,
    /// What could have stood at the place of a syntax error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<String>,
    /// The way out.
    pub hint: Option<String>,
    /// Regions near an address, or those among which a name did not decide.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<RegionBrief>,
}

impl ErrorReport {
    /// A failure that one sentence says.
    pub fn of(message: impl Into<String>) -> Self {
        ErrorReport {
            message: message.into(),
            ..ErrorReport::default()
        }
    }
}

/// Where in the input an error lies.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ErrorPlace {
    /// Command file, if it was one.
    pub file: Option<Name>,
    /// Line in it, from 1.
    pub line: Option<usize>,
    /// Column in characters, from 1; `None` when the whole line is meant.
    pub column: Option<usize>,
    /// How many characters are meant.
    pub width: usize,
    /// The line.
    pub text: String,
}

/// The end of a request.
#[derive(Clone, Debug, Serialize)]
pub struct End {
    /// Number of the request, from 1.
    pub id: u64,
    /// `ok` or `error`
    pub status: &'static str,
}
