//! Records about the session, its target, and values.

use super::{RegionBrief, SymbolBrief};
use crate::kernel::{Name, VirtualAddress};
use crate::report::json::{AsText, Form, leaf};
use crate::report::record::record;
use crate::report::shapes::shapes;
use crate::report::{ErrorCode, Why};
use serde::Serialize;

/// A number that every reader of JSON reads exactly.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum JsonNumber {
    /// A whole number, at most 2^53 in size.
    Integer(i64),
    /// A finite number with a fraction.
    Float(f64),
}

leaf!(JsonNumber => Form::Number);

impl JsonNumber {
    /// The number, if it is not too large.
    pub fn of_integer(number: i128) -> Option<Self> {
        let number = i64::try_from(number).ok()?;
        (number.unsigned_abs() <= 1 << 53).then_some(JsonNumber::Integer(number))
    }

    /// The number, if it is one.
    pub fn of_float(number: f64) -> Option<Self> {
        number.is_finite().then_some(JsonNumber::Float(number))
    }
}

record! {
    /// `print`
    pub struct ValueReport as "value" {
        /// The number in the value history: 1 for `$1`; `null` for values that are not kept.
        number: Option<usize>,
        /// The name of a variable, without the dollar.
        [optional] name: Option<String>,
        /// The type: `address`, `physical`, `frame`, `integer`, `float`, `array`, `range`, `text`.
        kind: &'static str,
        /// The value in its usual form (hexadecimal for addresses, decimal for integers).
        value: String,
        /// The value as a number, if it is one that JSON can hold: integers up to 2^53 in size, frame numbers, floats.
        as_number: Option<JsonNumber>,
        /// The same in another base or unit, if that helps a reader.
        [optional] also: Option<String>,
        /// The elements of an array, each as `value` would show it.
        [optional] elements: Option<Vec<String>>,
        /// The symbol of an address; in JSON as `main+16`.
        symbol: Option<AsText<SymbolBrief>>,
        /// Name of the region, for an address in one.
        region: Option<Name>,
    }

    /// `info symbol`, `info address`
    pub struct SymbolReport as "symbol" {
        /// Demangled name.
        name: Name,
        /// The name as the file has it, if that differs.
        mangled: Option<Name>,
        /// Its first address in the process.
        address: VirtualAddress,
        /// Bytes, 0 when the file gives none.
        size: u64,
        /// Bytes from the start of the symbol to the requested address.
        offset: u64,
        /// The kind of symbol: `function`, `object`, `tls`, `section`, `untyped`.
        kind: &'static str,
        /// ELF section.
        section: Option<Name>,
        /// The module that defines it.
        module: Name,
        /// The address that it is linked at, as objdump shows it.
        file_address: VirtualAddress,
    }

    /// A row of `info symbols`.
    pub struct SymbolRow as "symbol" {
        /// The symbol.
        [flat] symbol: SymbolReport,
    }

    /// A row of `info modules`.
    pub struct ModuleReport as "module" with why if noted {
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
        /// The source of its names: `file`, `debug-file`, `debugdata`, `dynamic`, `image`, `perf-map`.
        answers: Option<&'static str>,
        /// The separate debug file, in the target's root.
        debug_file: Option<Name>,
        /// Symbols in it.
        symbols: Option<u64>,
        /// Why fields are `null`; under `answers`, why the compressed table in the file could not be used.
        [flat] why: Why,
    }

    /// The totals of `info symbols`.
    pub struct SymbolsSummary as "symbols-summary" {
        /// Symbols that matched and were shown.
        symbols: u64,
        /// Whether there are more: the limit was reached.
        cut_short: bool,
        /// Modules that gave no symbols.
        silent: Vec<SilentModule>,
    }

    /// A module that gave no symbols.
    pub struct SilentModule {
        /// Its file name.
        module: Name,
        /// Why.
        reason: String,
    }

    /// `info process`
    pub struct ProcessReport as "process" {
        /// Process id.
        pid: u32,
        /// Parent.
        parent: u32,
        /// Short name (`comm`).
        name: Name,
        /// State of the process: `S (sleeping)`.
        state: String,
        /// Threads.
        threads: u32,
        /// User id.
        user: u32,
        /// The process that traces it.
        tracer: Option<u32>,
        /// Program file.
        executable: Option<Name>,
        /// Command line.
        command_line: Option<Name>,
        /// Seconds since it started.
        age: Option<f64>,
        /// Bytes in a page.
        page_size: u64,
        /// Bytes in a pointer.
        pointer_bytes: u8,
        /// The memory fields of status, with their meaning.
        memory: Vec<MemoryField>,
        /// Whether frame numbers are hidden.
        frames_hidden: bool,
    }

    /// A memory field of `/proc/PID/status`.
    #[derive(Eq)]
    pub struct MemoryField {
        /// As the kernel spells it: `VmRSS`.
        name: String,
        /// Bytes.
        bytes: u64,
        /// In words.
        meaning: &'static str,
    }

    /// A row of `ps`, and of an ambiguous name.
    pub struct ProcessRow as "process-entry" {
        /// Process id.
        pid: u32,
        /// User id.
        user: u32,
        /// State of the process, one letter.
        state: char,
        /// Resident bytes.
        resident: Option<u64>,
        /// With `by pss`, `uss`, `swapped` or `huge`: what the kernel counts of its memory.
        [optional] memory: Option<ProcessMemory>,
        /// Short name (`comm`).
        name: Name,
        /// Command line.
        command_line: Option<Name>,
    }

    /// What the kernel counts of the memory of a process, in bytes.
    #[derive(Eq)]
    pub struct ProcessMemory {
        /// Resident bytes at the moment when the others were counted. Without the hugetlb pool.
        rss: Option<u64>,
        /// The proportional share: each page divided by how often it is mapped. Without the hugetlb pool.
        pss: Option<u64>,
        /// Bytes that nobody else maps, without the hugetlb pool.
        uss: Option<u64>,
        /// Bytes in swap.
        swapped: Option<u64>,
        /// Bytes mapped as huge pages, the hugetlb pool included.
        huge: Option<u64>,
        /// Whether they are `null` because the process may not be examined; otherwise it has no memory, or has ended.
        hidden: bool,
    }

    /// An answer that is shown at each prompt.
    pub struct DisplayReport as "display" {
        /// The number for `undisplay`; `null` if it is not kept.
        number: Option<u64>,
        /// The expression or command.
        expression: String,
        /// Its value; `null` for a command, and if there is none.
        value: Option<String>,
        /// Why it has no value now.
        [optional] reason: Option<String>,
    }

    /// `attach`, `detach`: the session's new target.
    pub struct TargetReport as "target" {
        /// The event: `attached`, `detached`, `executed`, `exited`.
        event: &'static str,
        /// Process id.
        pid: u32,
        /// Short name (`comm`).
        name: Name,
        /// Program file.
        executable: Option<Name>,
        /// Regions it has.
        regions: Option<u64>,
        /// Remarks: it is a thread of …, it is pmdb itself.
        [optional] remarks: Vec<String>,
    }

    /// `show`
    pub struct SettingReport as "setting" {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
        /// Its effect.
        meaning: String,
    }

    /// `history`
    pub struct HistoryEntry as "history" {
        /// Number.
        number: usize,
        /// The line.
        line: Name,
    }

    /// `echo`
    pub struct Text as "text" {
        /// The text, its own line ends included.
        text: String,
    }
}

shapes! {
    /// `help`, `apropos`
    pub enum Help as "help" by "topic" {
        /// Every command, by group.
        "overview" Overview(HelpOverview),
        /// A heading with commands under it.
        "group" Group(HelpGroup),
        /// One command in full.
        "command" Command(HelpCommand),
        /// A subject that is no command.
        "subject" Subject(HelpSubject),
        /// The user-defined commands.
        "user-defined" UserDefined(UserCommands),
        /// One of them.
        "user-command" UserCommand(UserHelp),
    }
}

record! {
    /// Every command, by group.
    #[derive(Eq)]
    pub struct HelpOverview {
        /// The groups of commands, and the subjects.
        groups: Vec<HelpGroup>,
    }

    /// A heading with commands under it.
    #[derive(Eq)]
    pub struct HelpGroup {
        /// Its name.
        name: &'static str,
        /// Its purpose.
        about: &'static str,
        /// Commands: usage name, short forms, summary.
        commands: Vec<HelpEntry>,
    }

    /// One command in full.
    pub struct HelpCommand {
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
        /// Examples.
        examples: Vec<HelpExample>,
    }

    /// A subject that is no command.
    #[derive(Eq)]
    pub struct HelpSubject {
        /// Its name.
        name: &'static str,
        /// One line.
        summary: &'static str,
        /// Paragraphs, separated by empty lines. A line that begins with blanks is not filled; two blanks in it
        /// separate a term from its meaning.
        text: String,
    }

    /// A line, and what it does.
    #[derive(Eq)]
    pub struct HelpExample {
        /// The line.
        line: &'static str,
        /// Its effect.
        does: &'static str,
    }

    /// The user-defined commands.
    pub struct UserCommands {
        /// Their names, and the first line of what `document` says.
        commands: Vec<UserHelp>,
    }

    /// A user-defined command.
    #[derive(Eq)]
    pub struct UserHelp {
        /// Its name.
        name: String,
        /// The text of `document`, or the command of an alias.
        text: String,
    }

    /// A command in a list.
    #[derive(Eq)]
    pub struct HelpEntry {
        /// Its name.
        name: &'static str,
        /// Short forms.
        short: Vec<&'static str>,
        /// One line.
        summary: &'static str,
    }

    /// A remark beside the answer: a remedy, a caution.
    #[derive(Eq)]
    pub struct Note as "note" {
        /// One sentence.
        message: String,
    }

    /// `assert`
    pub struct AssertionReport as "assertion" {
        /// The expression.
        expression: String,
        /// Whether it is true.
        holds: bool,
        /// The message if it is not.
        message: Option<String>,
        /// The values that decided.
        values: Vec<AssertionValue>,
        /// Its place.
        [as "where"] place: Option<ErrorPlace>,
    }

    /// A part of an asserted expression.
    pub struct AssertionValue {
        /// The part.
        expression: String,
        /// Its value.
        value: String,
        /// What it should have been.
        [optional] wanted: Option<String>,
    }

    /// The totals of a run with assertions.
    #[derive(Copy, Eq, Default)]
    pub struct AssertionsSummary as "assertions-summary" {
        /// Assertions that held.
        held: u64,
        /// Assertions that failed.
        failed: u64,
        /// Assertions without a value: they neither held nor failed.
        unknown: u64,
    }

    /// A failure.
    #[derive(Default)]
    pub struct ErrorReport as "error" {
        /// The action and the reason for its failure.
        message: String,
        /// The kind of failure, in one word (`help codes`).
        code: ErrorCode,
        /// File, line and column, or column of the line typed.
        [as "where"] place: Option<ErrorPlace>,
        /// The lines that led there, the innermost first: calls of user-defined commands, and `source`.
        [optional] callers: Vec<ErrorPlace>,
        /// The expected words at the place of a syntax error.
        [optional] expected: Vec<String>,
        /// The remedy.
        hint: Option<String>,
        /// Regions near an address, or those that an ambiguous name could mean.
        [optional] nearest: Vec<RegionBrief>,
    }
}

impl ErrorReport {
    /// A failure with a message only.
    pub fn of(message: impl Into<String>) -> Self {
        ErrorReport { message: message.into(), ..ErrorReport::default() }
    }

    /// The same with a code of its own.
    pub fn with_code(self, code: ErrorCode) -> Self {
        ErrorReport { code, ..self }
    }
}

record! {
    /// Where in the input an error lies.
    #[derive(Eq)]
    pub struct ErrorPlace {
        /// Command file, if it was one.
        file: Option<Name>,
        /// Line in it, from 1.
        line: Option<usize>,
        /// Column in characters, from 1; `null` for the whole line.
        column: Option<usize>,
        /// How many characters the place has.
        width: usize,
        /// The line.
        text: String,
    }
}

impl ErrorPlace {
    /// `tour.pmdb:3:11: `; empty for a line that was typed.
    pub fn position(&self) -> String {
        let Some(file) = &self.file else {
            return String::new();
        };
        let mut text = format!("{file}:");
        for number in [self.line, self.line.and(self.column)].into_iter().flatten() {
            text.push_str(&format!("{number}:"));
        }
        text.push(' ');
        text
    }
}

/// The position and the line.
impl std::fmt::Display for ErrorPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}{}", self.position(), self.text.trim())
    }
}

/// The term and its meaning in a row of a help text. The last gap of two blanks separates them: a term may have several
/// parts.
pub fn term_and_meaning(line: &str) -> Option<(&str, &str)> {
    let (term, meaning) = line.strip_prefix(' ')?.trim().rsplit_once("  ")?;
    Some((term.trim_end(), meaning))
}
