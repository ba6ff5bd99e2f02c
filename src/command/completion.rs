//! What could be typed next: the parser says which kinds, the target and the system say which names.

use super::compiler_names::is_made;
use super::floor::Commands;
use super::floor::Group;
use super::help::TOPICS;
use super::subjects::SUBJECTS;
use super::subjects::questions::{QUESTIONS, Question};
use crate::budget::Budget;
use crate::command::source::{SCRIPTS, expand_home};
use crate::eval::UNBRACKETED;
use crate::kernel::page_flags::FLAGS;
use crate::kernel::physical::Zones;
use crate::kernel::text::is_plain;
use crate::kernel::{Key, Name as Bytes};
use crate::lang::complete::Expectation;
use crate::lang::field::ValueType;
use crate::lang::{Expected, ForeignName, ProcessNeed, Resolved, fixed_variables};
use crate::state::DebugState;
use crate::symbol::{NamesIn, SourcesOf, TargetSymbols};
use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

/// The most offered names of one kind.
const MOST: usize = 200;

/// The most variables of the program that are offered where nothing is typed.
const MOST_VARIABLES: usize = 40;

/// The time limit of a search for names between two keys.
pub const BETWEEN_KEYS: Duration = Duration::from_millis(250);

/// Where the word at the cursor begins, and what it could become.
pub(super) fn complete(
    commands: Commands,
    state: &DebugState,
    line: &str,
    cursor: usize,
    patience: Duration,
) -> (usize, Vec<Offer>) {
    let expected = commands.language.expectation(line, cursor);
    let typed = line.get(expected.start..cursor).unwrap_or_default();
    let mut offers = Offers {
        commands,
        state,
        before: line.get(..expected.start).unwrap_or_default(),
        typed,
        patience,
        rank: Rank::Word,
        found: BTreeSet::new(),
    };
    for &kind in &expected.kinds {
        offers.of(kind, &expected);
    }
    let is_value = |kind: &Expected| matches!(kind, Expected::Range | Expected::Expression | Expected::Symbol);
    if offers.found.is_empty() && expected.kinds.iter().any(is_value) {
        offers.symbols_in(NamesIn::Libraries);
    }
    (expected.start, offers.listed())
}

/// The order of offers in a list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Rank {
    /// Words of the language: commands, clauses, fields.
    Word,
    /// Flags among the keys of `by`.
    Flag,
    /// Only where one is begun.
    Function,
    Option,
    /// Names of the program.
    Symbol,
    /// Regions, processes, files.
    Name,
    Variable,
}

/// Where a value can stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Where a range is wanted.
    Range,
    /// Where an address or a number is wanted.
    Value,
    /// Where the name of a symbol is wanted.
    Symbol,
    /// Where a line of the source is wanted, or a place in code.
    Code,
}

/// A way in which the line could go on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Offer {
    rank: Rank,
    /// As it is shown in a list.
    pub shown: String,
    /// The text that replaces the word in the line.
    pub typed: String,
}

impl Offer {
    /// Returns whether it is a name, and not a word of the language.
    pub fn is_name(&self) -> bool {
        self.rank >= Rank::Symbol
    }
}

struct Offers<'a> {
    commands: Commands,
    state: &'a DebugState,
    /// The line before the word.
    before: &'a str,
    /// The word as far as it is typed, its quote included.
    typed: &'a str,
    /// The time limit of a search for names.
    patience: Duration,
    /// Of what is added now.
    rank: Rank,
    found: BTreeSet<Offer>,
}

impl Offers<'_> {
    /// In order of rank. A function may begin any value: where nothing is typed, they would hide what else may follow.
    /// A blank follows the only offer if all of it is typed.
    fn listed(self) -> Vec<Offer> {
        let is_wanted = !self.typed.is_empty() || self.found.iter().all(|offer| offer.rank == Rank::Function);
        let of_rank = |rank| self.found.iter().filter(move |offer| offer.rank == rank);
        // `huge` and `phys:` stand for the functions of the same names.
        let words: BTreeSet<String> =
            of_rank(Rank::Word).map(|offer| offer.shown.trim_end_matches(':').to_owned()).collect();
        let is_word = |offer: &Offer| words.contains(offer.shown.trim_end_matches('('));
        let stays = |offer: &Offer| offer.rank != Rank::Function || is_wanted && !is_word(offer);
        let mut listed: Vec<Offer> = self.found.into_iter().filter(stays).collect();
        if let [only] = listed.as_mut_slice()
            && only.typed == self.typed
            && only.typed.ends_with(|last: char| last.is_alphanumeric() || matches!(last, '\'' | '"' | ']'))
        {
            only.typed.push(' ');
        }
        listed
    }

    fn of(&mut self, kind: Expected, expected: &Expectation) {
        if expected.quote.is_none() {
            self.words(kind);
        }
        self.rank = Rank::Word;
        match kind {
            Expected::Range => {
                self.word("all", false);
                self.values(Place::Range);
            }
            Expected::Expression => self.expression(expected),
            Expected::SourceFile => self.source_files(SourcesOf::KnownAndProgram),
            Expected::Symbol => {
                self.symbols();
                if self.typed.is_empty() {
                    self.variables_of_program(Place::Symbol);
                }
            }
            // In place of a number, of which none is offered.
            Expected::Variable if !self.typed.is_empty() => self.variables(),
            Expected::FlagName => FLAGS.iter().for_each(|flag| self.word(flag.name, false)),
            Expected::Process if expected.quote == Some('"') => self.processes(ForeignName::Text),
            Expected::Process => self.processes(ForeignName::Process),
            Expected::ProcessName if !self.typed.is_empty() => self.processes(ForeignName::Text),
            Expected::Snapshot => self.state.snapshots.iter().for_each(|snapshot| self.word(&snapshot.name, true)),
            Expected::File => self.files(),
            Expected::Cgroup => self.cgroups(),
            Expected::Script => {
                self.files();
                SCRIPTS.iter().for_each(|(name, _)| self.word(&format!(":{name}"), false));
            }
            Expected::Topic => {
                self.topics();
                self.user_commands();
            }
            Expected::Command => self.user_commands(),
            Expected::RegionName => self.regions(),
            Expected::Mark(mark @ ("==" | "!=")) => self.comparison(mark),
            Expected::Comparison => {
                let comparisons = ["==", "!=", "<", "<=", ">", ">="];
                comparisons.iter().for_each(|mark| self.comparison(mark));
            }
            Expected::QuotedText => self.texts(),
            Expected::Duration => ["100ms", "1s", "30s"].iter().for_each(|time| self.word(time, true)),
            _ => {}
        }
    }

    /// The words of the language, and the functions.
    fn words(&mut self, kind: Expected) {
        let rank = if matches!(kind, Expected::Option(_)) { Rank::Option } else { Rank::Word };
        // A blank follows a word that is complete.
        let blank =
            matches!(kind, Expected::Command | Expected::Word(_) | Expected::Key(_) | Expected::Option("--how"));
        let flags: Vec<&str> = match kind {
            Expected::Key(keys) => {
                keys.all().filter(|key| key.value_type() == ValueType::Boolean).map(Key::word).collect()
            }
            _ => Vec::new(),
        };
        for word in self.commands.language.words(kind) {
            self.rank = if flags.contains(&word) { Rank::Flag } else { rank };
            self.word(word, blank);
        }
        self.rank = Rank::Function;
        if !self.is_after_frame() {
            let functions = self.commands.language.functions(kind);
            functions.iter().for_each(|word| self.word(&format!("{word}("), false));
        }
    }

    fn expression(&mut self, expected: &Expectation) {
        if self.is_after_frame() {
            // A number is wanted: names are addresses.
            return self.variables();
        }
        self.frames();
        let is_code = expected.kinds.contains(&Expected::SourceFile);
        if !expected.kinds.contains(&Expected::Range) {
            self.values(if is_code { Place::Code } else { Place::Value });
        }
        // Completing an address must not wait for debug information that is not loaded yet.
        if !is_code {
            self.source_files(SourcesOf::Known);
        }
    }

    /// Adds an offer, unless it contains characters that must not reach a terminal: the line editor prints names raw.
    fn add(&mut self, shown: String, typed: String) {
        if shown.chars().all(is_plain) {
            self.found.insert(Offer { rank: self.rank, shown, typed });
        }
    }

    fn word(&mut self, word: &str, blank: bool) {
        if word.starts_with(self.typed) {
            let typed =
                if blank && word.ends_with(char::is_alphanumeric) { format!("{word} ") } else { word.to_owned() };
            self.add(word.to_owned(), typed);
        }
    }

    fn comparison(&mut self, mark: &str) {
        if mark.starts_with(self.typed) {
            self.add(mark.to_owned(), format!("{mark} "));
        }
    }

    /// The texts that the field before a comparison can have.
    fn texts(&mut self) {
        let mut before = self.before.split_whitespace().rev();
        let field = before.nth(1).unwrap_or_default();
        let regions = || {
            let target = self.state.target();
            let regions = target.and_then(|target| target.process.regions().ok());
            regions.unwrap_or_default()
        };
        let texts: BTreeSet<String> = match field.trim_start_matches(['(', '!']) {
            "zone" => {
                let zones = self.state.machine().zones();
                let names = |zones: &Zones| zones.iter().map(|zone| zone.name.clone()).collect();
                zones.map_or_else(|_| BTreeSet::new(), |zones| names(&zones))
            }
            "name" => regions().iter().map(|region| region.name.file_name().to_string()).collect(),
            "perms" => regions().iter().map(|region| region.permissions.letters().to_owned()).collect(),
            _ => BTreeSet::new(),
        };
        let mut budget = Budget::unlimited().within(self.patience);
        for text in texts.iter().filter(|text| !text.is_empty()) {
            if self.found.len() >= MOST || budget.look().is_err() {
                return;
            }
            self.name(text, ForeignName::Text);
        }
    }

    fn user_commands(&mut self) {
        for name in self.state.commands.keys() {
            self.word(name, true);
        }
    }

    /// A name that somebody else chose: all of them go through here.
    fn name(&mut self, name: &str, kind: ForeignName) {
        self.name_before("", "", name, kind);
    }

    /// A name with `mark` behind it; what else may follow makes it a whole argument.
    fn name_before(&mut self, mark: &str, rest: &str, name: &str, kind: ForeignName) {
        let begun = self.typed.strip_prefix(['\'', '"']).unwrap_or(self.typed);
        // A name that is written is parsed, which takes long for many. After a backslash it may begin otherwise.
        if !name.starts_with(begun) && !begun.contains('\\') {
            return;
        }
        let written = self.commands.language.write_name(self.before, name, &format!("{mark}{rest}"), kind);
        if let Some(written) = written.filter(|written| name.starts_with(begun) || written.starts_with(self.typed)) {
            self.add(name.to_owned(), written + mark);
        }
    }

    /// A name, escaped as in lists if it must not reach a terminal as it is.
    fn offer_listed(&mut self, name: &Bytes, kind: ForeignName) {
        let listed = name.to_string();
        let name = std::str::from_utf8(name.as_bytes()).ok().filter(|name| name.chars().all(is_plain));
        self.name(name.unwrap_or(&listed), kind);
    }

    /// The names of the module before the word, or of the program.
    fn symbols(&mut self) {
        match module_before(self.before) {
            Some(module) => self.symbols_in(NamesIn::Module(&module)),
            None => self.symbols_in(NamesIn::Program),
        }
    }

    fn symbols_in(&mut self, within: NamesIn<'_>) {
        let begun = self.typed.strip_prefix('\'').unwrap_or(self.typed);
        if begun.is_empty() && !matches!(within, NamesIn::Module(_)) {
            return;
        }
        self.rank = Rank::Symbol;
        let names = self.with_names(|space| space.names(within, begun, MOST, self.patience)).unwrap_or_default();
        let names = names.iter().filter_map(|name| std::str::from_utf8(name.as_bytes()).ok());
        let (made, own): (Vec<&str>, Vec<&str>) = names.partition(|name| is_made(name));
        // As names of libraries, those of compilers only where nothing else begins so.
        for name in if own.is_empty() { made } else { own } {
            self.name(name, ForeignName::Symbol);
        }
    }

    /// What may stand before `:` and a line of the source.
    fn source_files(&mut self, of: SourcesOf) {
        let begun = self.typed.strip_prefix('\'').unwrap_or(self.typed);
        if begun.is_empty() || self.before.ends_with('!') {
            return;
        }
        self.rank = Rank::Name;
        let files = self.with_names(|space| space.source_files(begun, of, MOST, self.patience));
        for file in files.unwrap_or_default() {
            self.name_before(":", "1", &file, ForeignName::Symbol);
        }
    }

    /// Runs `ask` on the symbols of the target, if there is a target.
    fn with_names<T>(&self, ask: impl FnOnce(&TargetSymbols) -> T) -> Option<T> {
        let target = self.state.target()?;
        let regions = target.process.regions().ok()?;
        Some(ask(&self.state.symbols.over(target, &regions)))
    }

    fn values(&mut self, place: Place) {
        self.symbols();
        if self.typed.is_empty() && place != Place::Code {
            self.variables_of_program(place);
        }
        if self.typed.is_empty() && self.before.ends_with('*') {
            return;
        }
        self.regions();
        self.variables();
    }

    /// The variables of a program that has few. One of the size of a pointer is also offered for the memory to which it
    /// may point: its value is not read, because reads mark pages as accessed.
    fn variables_of_program(&mut self, place: Place) {
        if self.before.ends_with('!') {
            return;
        }
        let found = self.with_names(|space| space.variables(MOST_VARIABLES, self.patience)).unwrap_or_default();
        let pointer_bytes = self.state.target().map(|target| u64::from(target.process.layout().pointer_bytes));
        let is_dereferenced = self.before.ends_with('*');
        self.rank = Rank::Symbol;
        for (name, size) in found {
            let Ok(name) = std::str::from_utf8(name.as_bytes()) else {
                continue;
            };
            let may_point = Some(size) == pointer_bytes;
            if may_point || !is_dereferenced {
                self.variable_of_program(name, ("", ""));
            }
            match place {
                Place::Symbol => {}
                _ if !may_point || is_dereferenced => {}
                Place::Range if !self.before.ends_with('(') => self.variable_of_program(name, ("region(*", ")")),
                _ => self.variable_of_program(name, ("*", "")),
            }
        }
    }

    fn variable_of_program(&mut self, name: &str, (open, close): (&str, &str)) {
        let before = format!("{}{open}", self.before);
        if let Some(written) = self.commands.language.write_name(&before, name, "", ForeignName::Symbol) {
            self.add(format!("{open}{name}{close}"), format!("{open}{written}{close}"));
        }
    }

    /// Whether the number of a frame, or a physical address, is wanted.
    fn is_after_frame(&self) -> bool {
        self.before.ends_with("pfn:") || self.before.ends_with("phys:")
    }

    /// `pfn:` and `phys:` after the name of a command that takes frames.
    fn frames(&mut self) {
        let language = self.commands.language;
        let before = self.before.trim();
        let Resolved::One(command) = language.resolve_first(before.strip_suffix("--how").unwrap_or(before).trim_end())
        else {
            return;
        };
        let need = language.names().find(|name| name.name == command).map(|name| name.process);
        if let Some(ProcessNeed::UnusedBefore(words)) = need {
            self.rank = Rank::Word;
            words.iter().filter(|word| word.ends_with(':')).for_each(|word| self.word(word, false));
        }
    }

    /// Regions in brackets, and mapped files by their file names.
    fn regions(&mut self) {
        if self.before.ends_with('!') {
            return;
        }
        self.rank = Rank::Name;
        let regions = self.state.target().and_then(|target| target.process.regions().ok());
        let regions = regions.unwrap_or_default();
        let mut seen = BTreeSet::new();
        let mut budget = Budget::unlimited().within(self.patience);
        for region in regions.iter() {
            // Each name once: a name in a line is parsed, and a process may map the same files ten thousand times.
            if !seen.insert(region.name.as_bytes()) {
                continue;
            }
            if self.found.len() >= MOST || budget.look().is_err() {
                return;
            }
            let file_name = region.name.file_name();
            let whole = region.name.to_string();
            if let Some(rest) = whole.strip_prefix('[') {
                let bare = rest.strip_suffix(']').filter(|bare| UNBRACKETED.contains(bare));
                match bare {
                    Some(bare) if !self.typed.starts_with('[') => self.word(bare, false),
                    _ => self.name(&whole, ForeignName::Symbol),
                }
            } else if !file_name.is_empty() {
                self.offer_listed(&file_name, ForeignName::Symbol);
            }
        }
    }

    fn variables(&mut self) {
        self.rank = Rank::Variable;
        // Those that pmdb sets begin with an underscore.
        for name in self.state.variables.keys().filter(|name| !self.typed.is_empty() || !name.starts_with('_')) {
            self.word(&format!("${name}"), false);
        }
        if self.typed.starts_with('$') {
            fixed_variables().for_each(|name| self.word(name, false));
        }
    }

    fn processes(&mut self, written: ForeignName) {
        self.rank = Rank::Name;
        let processes = self.state.machine().processes().unwrap_or_default();
        let number = self.typed.starts_with(|first: char| first.is_ascii_digit());
        // Nothing can be attached to that has no memory: kernel threads and zombies.
        for process in processes.into_iter().filter(|process| process.resident.is_some()) {
            if number {
                self.word(&process.pid.to_string(), false);
            } else {
                self.offer_listed(&process.name, written);
            }
        }
        if written == ForeignName::Process {
            self.word("self", false);
        }
    }

    fn cgroups(&mut self) {
        self.rank = Rank::Name;
        let begun = self.typed.trim_start_matches(['\'', '"']);
        for path in self.state.machine().cgroup_paths().unwrap_or_default() {
            let path = path.to_string();
            // The slash at the beginning may be left out.
            let path = if begun.is_empty() || begun.starts_with('/') { &path } else { path.trim_start_matches('/') };
            self.name(path, ForeignName::Path('\''));
            if self.found.len() >= MOST {
                return;
            }
        }
    }

    fn topics(&mut self) {
        for about in self.commands.abouts() {
            self.word(about.name.name, false);
        }
        for subject in SUBJECTS {
            self.word(subject.name, false);
        }
        self.word(TOPICS, false);
        for group in Group::ALL {
            self.word(group.name(), false);
        }
        // Where nothing is typed, they would hide the names.
        if !self.typed.is_empty() {
            QUESTIONS.iter().flat_map(Question::words).for_each(|word| self.word(word, false));
            SCRIPTS.iter().for_each(|(name, _)| self.word(&format!(":{name}"), false));
        }
    }

    fn files(&mut self) {
        self.rank = Rank::Name;
        let quote = self.typed.chars().next().filter(|first| matches!(first, '\'' | '"'));
        let begun = quote.map_or(self.typed, |quote| self.typed.trim_start_matches(quote));
        let (folder, start) = match begun.rfind('/') {
            Some(slash) => begun.split_at(slash + 1),
            None => ("", begun),
        };
        let looked_in = if folder.is_empty() { "./".into() } else { expand_home(folder) };
        let Ok(entries) = fs::read_dir(looked_in) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            // Hidden files only when they are asked for, as in a shell.
            let Some(name) = name.to_str().filter(|name| name.starts_with(start)) else {
                continue;
            };
            if name.starts_with('.') && !start.starts_with('.') {
                continue;
            }
            let is_folder = fs::metadata(entry.path()).is_ok_and(|file| file.is_dir());
            let shown = format!("{name}{}", if is_folder { "/" } else { "" });
            // These beginnings mean a home directory, a built-in command file and an option.
            let here = if folder.is_empty() && name.starts_with(['~', ':', '-']) { "./" } else { "" };
            let path = format!("{here}{folder}{shown}");
            let kind = ForeignName::Path(quote.unwrap_or('\''));
            let Some(mut typed) = self.commands.language.write_name(self.before, &path, "", kind) else {
                continue;
            };
            if is_folder && (quote.is_some() || typed != path) {
                // The quote stays open behind a folder: the path goes on.
                typed.pop();
            }
            self.add(shown, typed);
            if self.found.len() >= MOST {
                return;
            }
        }
    }
}

/// The module of `module!` at the end of what stands before the word.
fn module_before(before: &str) -> Option<String> {
    let before = before.strip_suffix('!')?;
    if let Some(quoted) = before.strip_suffix('\'') {
        let start = quoted.rfind('\'')?;
        return quoted.get(start + 1..).map(str::to_owned);
    }
    let start = before.rfind(|c: char| !(c.is_alphanumeric() || "_.:".contains(c))).map_or(0, |at| at + 1);
    before.get(start..).filter(|module| !module.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_before_a_symbol_is_found() {
        assert_eq!(module_before("t libc.so.6!").as_deref(), Some("libc.so.6"));
        assert_eq!(module_before("t 'ld-linux.so.2'!").as_deref(), Some("ld-linux.so.2"));
        assert_eq!(module_before("t ").as_deref(), None);
        assert_eq!(module_before("t !").as_deref(), None);
    }
}
