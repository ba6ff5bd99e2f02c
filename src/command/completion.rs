//! What could be typed next: the parser says which kinds, the target and the system say which names.

use super::floor::Commands;
use super::floor::Group;
use super::help::TOPICS;
use super::subjects::SUBJECTS;
use crate::command::source::{SCRIPTS, expand_home};
use crate::eval::UNBRACKETED;
use crate::kernel::Name as Bytes;
use crate::kernel::page_flags::FLAGS;
use crate::kernel::physical::Zones;
use crate::kernel::text::is_plain;
use crate::lang::complete::Expectation;
use crate::lang::{Expected, ForeignName, fixed_variables};
use crate::state::DebugState;
use crate::symbol::{SourcesOf, TargetSymbols};
use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

/// The most offered names of one kind.
const MOST: usize = 200;

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
        found: BTreeSet::new(),
    };
    for &kind in &expected.kinds {
        offers.of(kind, &expected);
    }
    (expected.start, offers.found.into_iter().collect())
}

/// A way in which the line could go on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Offer {
    /// As it is shown in a list.
    pub shown: String,
    /// The text that replaces the word in the line.
    pub typed: String,
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
    found: BTreeSet<Offer>,
}

impl Offers<'_> {
    fn of(&mut self, kind: Expected, expected: &Expectation) {
        if expected.quote.is_none() {
            // A blank follows a word that is complete.
            let blank =
                matches!(kind, Expected::Command | Expected::Word(_) | Expected::Key(_) | Expected::Option("--how"));
            for word in self.commands.language.words(kind) {
                self.word(word, blank);
            }
        }
        match kind {
            Expected::Range => {
                self.word("all", false);
                self.symbols();
                self.regions();
                self.variables();
            }
            Expected::Expression => {
                self.symbols();
                self.regions();
                self.variables();
                // Completing an address must not wait for debug information that is not loaded yet.
                if !expected.kinds.contains(&Expected::SourceFile) {
                    self.source_files(SourcesOf::Known);
                }
            }
            Expected::SourceFile => self.source_files(SourcesOf::KnownAndProgram),
            Expected::Symbol => self.symbols(),
            Expected::Variable => self.variables(),
            Expected::FlagName => FLAGS.iter().for_each(|flag| self.word(flag.name, false)),
            Expected::Process => self.processes(ForeignName::Process),
            Expected::NamedProcess => self.processes(ForeignName::Text),
            Expected::ProcessName if !self.typed.is_empty() => self.processes(ForeignName::Text),
            Expected::Snapshot => {
                for snapshot in self.state.snapshots.iter() {
                    self.word(&snapshot.name, true);
                }
            }
            Expected::File => self.files(),
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
            _ => {}
        }
    }

    /// Adds an offer, unless it contains characters that must not reach a terminal: the line editor prints names raw.
    fn add(&mut self, shown: String, typed: String) {
        if shown.chars().all(is_plain) {
            self.found.insert(Offer { shown, typed });
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
        for text in texts.iter().filter(|text| !text.is_empty()) {
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
        let written = self.commands.language.write_name(self.before, name, &format!("{mark}{rest}"), kind);
        if let Some(written) = written.filter(|written| name.starts_with(begun) || written.starts_with(self.typed)) {
            self.add(name.to_owned(), written + mark);
        }
    }

    /// The name of a mapping, escaped as in lists if it must not reach a terminal as it is.
    fn offer_mapping(&mut self, name: &Bytes) {
        let listed = name.to_string();
        let name = std::str::from_utf8(name.as_bytes()).ok().filter(|name| name.chars().all(is_plain));
        self.name(name.unwrap_or(&listed), ForeignName::Symbol);
    }

    fn symbols(&mut self) {
        let begun = self.typed.strip_prefix('\'').unwrap_or(self.typed);
        let module = module_before(self.before);
        if begun.is_empty() && module.is_none() {
            return;
        }
        let names = self.with_names(|space| space.names(module.as_deref(), begun, MOST, self.patience));
        for name in names.unwrap_or_default() {
            if let Ok(name) = std::str::from_utf8(name.as_bytes()) {
                self.name(name, ForeignName::Symbol);
            }
        }
    }

    /// What may stand before `:` and a line of the source.
    fn source_files(&mut self, of: SourcesOf) {
        let begun = self.typed.strip_prefix('\'').unwrap_or(self.typed);
        if begun.is_empty() || self.before.ends_with('!') {
            return;
        }
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

    /// Regions in brackets, and mapped files by their file names.
    fn regions(&mut self) {
        if self.before.ends_with('!') {
            return;
        }
        let regions = self.state.target().and_then(|target| target.process.regions().ok());
        for region in regions.unwrap_or_default() {
            let file_name = region.name.file_name();
            let whole = region.name.to_string();
            if let Some(rest) = whole.strip_prefix('[') {
                self.name(&whole, ForeignName::Symbol);
                let bare = rest.strip_suffix(']').filter(|bare| UNBRACKETED.contains(bare));
                bare.into_iter().for_each(|bare| self.word(bare, false));
            } else if !file_name.is_empty() {
                self.offer_mapping(&file_name);
            }
        }
    }

    fn variables(&mut self) {
        for name in self.state.variables.keys() {
            self.word(&format!("${name}"), false);
        }
        if self.typed.starts_with('$') {
            fixed_variables().for_each(|name| self.word(name, false));
        }
    }

    fn processes(&mut self, written: ForeignName) {
        let processes = self.state.machine().processes().unwrap_or_default();
        let number = self.typed.starts_with(|first: char| first.is_ascii_digit());
        // Nothing can be attached to that has no memory: kernel threads and zombies.
        for process in processes.into_iter().filter(|process| process.resident.is_some()) {
            if number {
                self.word(&process.pid.to_string(), false);
            } else if let Ok(name) = std::str::from_utf8(process.name.as_bytes()) {
                self.name(name, written);
            }
        }
        if written == ForeignName::Process {
            self.word("self", false);
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
    }

    fn files(&mut self) {
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
    use crate::command::COMMANDS;
    use crate::process;
    use crate::process::fake::Fake;

    fn replacements(line: &str) -> Vec<String> {
        let state = DebugState::new(process::machine());
        complete(COMMANDS, &state, line, line.len(), BETWEEN_KEYS).1.into_iter().map(|offer| offer.typed).collect()
    }

    #[test]
    fn comparisons_and_the_texts_of_a_field_are_completed() {
        assert_eq!(replacements("walk all where zone "), ["!= ", "== "]);
        let fake = Fake::new().region(0x40_1000, 0x40_2000, "r-xp", 7, "/bin/program");
        let mut state = DebugState::new(process::machine());
        state.attach(fake.target());
        for (line, text) in [("regions where name == ", "\"program\""), ("regions where name == \"pro", "\"program\"")]
        {
            let offers = complete(COMMANDS, &state, line, line.len(), BETWEEN_KEYS).1;
            assert!(offers.iter().any(|offer| offer.typed == text), "{line}");
        }
    }

    #[test]
    fn commands_are_completed_with_a_blank() {
        assert_eq!(replacements("wal"), ["walk "]);
        assert_eq!(replacements("info p"), ["process "]);
        assert!(replacements("").contains(&"translate ".to_owned()));
    }

    #[test]
    fn clause_words_and_fields_come_where_they_may_stand() {
        assert_eq!(replacements("walk all wh"), ["where "]);
        assert!(replacements("walk all where mapc").contains(&"mapcount".to_owned()));
        assert!(replacements("walk all by sta").contains(&"state ".to_owned()));
    }

    #[test]
    fn files_are_completed_below_folders_and_quoted_where_they_must_be() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().to_str().unwrap();
        fs::create_dir(folder.path().join("sub folder")).unwrap();
        fs::write(folder.path().join("script.pmdb"), "").unwrap();
        fs::write(folder.path().join(".hidden"), "").unwrap();
        assert_eq!(replacements(&format!("source {base}/scr")), [format!("{base}/script.pmdb")]);
        assert_eq!(replacements(&format!("source {base}/su")), [format!("'{base}/sub folder/")]);
        assert_eq!(replacements(&format!("source {base}/")).len(), 2);
        assert_eq!(replacements(&format!("show > {base}/scr")), [format!("{base}/script.pmdb")]);
    }

    #[test]
    fn names_that_could_move_the_cursor_are_not_offered() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().to_str().unwrap();
        for name in ["evil\u{1b}[2J", "evil\u{202e}", "evil\n", "evil"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(replacements(&format!("source {base}/ev")), [format!("{base}/evil")]);
    }

    #[test]
    fn hostile_names_of_what_is_mapped_are_offered_as_they_are_listed_and_mean_it() {
        use crate::command::Print;
        use crate::eval::{Value, evaluate};
        use crate::lang::{ParsedLine, Range, Spanned};
        let names: [&[u8]; 5] = [
            b"/tmp/esc\x1b[31mred",
            b"/tmp/esc\xffbytes",
            b"/tmp/esc\nnext",
            "/tmp/esc\u{202e}back\\slash's".as_bytes(),
            b"/tmp/escape room",
        ];
        let mut fake = Fake::new();
        for (index, name) in names.iter().enumerate() {
            let start = 0x10000 * (index as u64 + 1);
            fake = fake.region(start, start + 0x1000, "r--p", 7 + index as u64, "?");
            fake.regions.last_mut().unwrap().name = Bytes::new(*name);
        }
        let mut state = DebugState::new(process::machine());
        state.attach(fake.target());
        let line = "region 'esc";
        let (start, offers) = complete(COMMANDS, &state, line, line.len(), BETWEEN_KEYS);
        assert_eq!((start, offers.len()), (7, names.len()));
        let mut found = BTreeSet::new();
        for offer in offers {
            assert!(offer.shown.chars().all(is_plain), "{:?}", offer.shown);
            assert!(offer.typed.chars().all(is_plain));
            let line = COMMANDS.language.parse_line(&format!("print {}", offer.typed)).unwrap();
            let ParsedLine::Command { command, .. } = line else {
                panic!("{line:?}");
            };
            let Some(Print { value, .. }) = command.node.downcast_ref() else {
                panic!("{command:?}");
            };
            let Range::Expression(name) = &value.node else {
                panic!("{value:?}");
            };
            let name = Spanned::new(name.clone(), value.at);
            match evaluate(&name, &state).unwrap() {
                Value::Range(spans) => found.insert(spans.to_string()),
                other => panic!("{other:?}"),
            };
        }
        assert_eq!(found.len(), names.len(), "{found:?}");
        let typed = "region 'esc\\x1b";
        let offers = complete(COMMANDS, &state, typed, typed.len(), BETWEEN_KEYS).1;
        assert_eq!(offers[0].typed, "'esc\\x1b[31mred'");
    }

    #[test]
    fn behind_two_colons_come_the_names_of_the_path() {
        use crate::symbol::tests::builder::{Builder, FUNCTION, GLOBAL, entry};
        let file = Builder::with(vec![
            entry("_ZN2rs4main17h0123456789abcdefE", 0x1000, 0x10, GLOBAL, FUNCTION),
            entry("_ZN2rs5inner4work17h0123456789abcdefE", 0x1020, 0x10, GLOBAL, FUNCTION),
            entry("rsync", 0x1040, 0x10, GLOBAL, FUNCTION),
        ]);
        let fake = Fake::new().region(0x40_1000, 0x40_2000, "r-xp", 7, "/bin/rs");
        let mut state = DebugState::new(process::machine());
        state.attach(fake.file("/bin/rs", file.bytes()).target());
        let offered = |line: &str| {
            let (start, pairs) = complete(COMMANDS, &state, line, line.len(), BETWEEN_KEYS);
            let pairs = pairs.into_iter().map(|offer| offer.typed);
            (start, pairs.collect::<Vec<_>>())
        };
        let both = vec!["rs::inner::work".to_owned(), "rs::main".to_owned()];
        assert_eq!(offered("print rs::"), (6, both.clone()));
        assert_eq!(offered("info address rs!rs::"), (16, both));
        assert_eq!(offered("print 1 + rs::inner::"), (10, vec!["rs::inner::work".to_owned()]));
    }

    #[test]
    fn source_files_are_completed_before_a_line_and_read_only_where_one_is_asked_for() {
        use crate::symbol::tests::compiled::compiled_from;
        let program = compiled_from(&[b"main.c", b"man/page.c", b"my-file.c", b"main.c", b"/abs/x.c"]);
        let library = compiled_from(&[b"malloc.c"]);
        let fake = Fake::new().region(0x40_1000, 0x40_2000, "r-xp", 7, "/bin/program").region(
            0x7000_1000,
            0x7000_2000,
            "r-xp",
            8,
            "/lib/library.so",
        );
        let fake = fake.file("/bin/program", program.bytes()).file("/lib/library.so", library.bytes());
        let mut state = DebugState::new(process::machine());
        state.attach(fake.target());
        let offered = |line: &str| -> (usize, Vec<String>) {
            let (start, pairs) = complete(COMMANDS, &state, line, line.len(), BETWEEN_KEYS);
            let sources = pairs.into_iter().map(|offer| offer.typed);
            (start, sources.filter(|typed| typed.ends_with(':')).collect())
        };
        let named = |start: usize, names: &[&str]| (start, names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(offered("print ma"), named(6, &[]), "nothing was asked of a line");
        // The library was not asked before, and is not now.
        assert_eq!(offered("info line ma"), named(10, &["main.c:"]));
        assert_eq!(offered("print 1 + ma"), named(10, &["main.c:"]));
        assert_eq!(offered("info line m"), named(10, &["main.c:", "'my-file.c':"]));
        assert_eq!(offered("info line man/p"), named(10, &["'man/page.c':"]));
        assert_eq!(offered("info line 'man/p"), named(10, &["'man/page.c':"]));
        assert_eq!(
            offered("info line /"),
            named(10, &["'/abs/x.c':", "'/src/main.c':", "'/src/man/page.c':", "'/src/my-file.c':"])
        );
        assert_eq!(offered("info line src/main"), named(10, &["'src/main.c':"]));
        assert_eq!(offered("info line "), named(10, &[]));
        assert_eq!(offered("info line program!ma"), named(18, &[]));
    }

    #[test]
    fn hostile_names_of_source_files_are_offered_as_they_are_displayed_and_mean_it() {
        use crate::command::line::InfoLine;
        use crate::lang::{Expression, ParsedLine};
        use crate::symbol::tests::compiled::compiled_from;
        let names: [&[u8]; 6] = [
            b"esc\x1b[31mred.c",
            b"esc\xffbytes.c",
            b"esc\nnext.c",
            "esc\u{202e}back\\slash's.c".as_bytes(),
            b"esc ape.c",
            b"escape.c",
        ];
        let fake = Fake::new().region(0x40_1000, 0x40_2000, "r-xp", 7, "/bin/program");
        let fake = fake.file("/bin/program", compiled_from(&names).bytes());
        let mut state = DebugState::new(process::machine());
        state.attach(fake.target());
        for line in ["info line 'esc", "info line 'src/esc"] {
            let offers = complete(COMMANDS, &state, line, line.len(), BETWEEN_KEYS).1;
            assert_eq!(offers.len(), names.len());
            for offer in offers {
                assert!(offer.shown.chars().all(is_plain), "{:?}", offer.shown);
                assert!(offer.typed.chars().all(is_plain));
                let whole = format!("info line {}1", offer.typed);
                let Ok(ParsedLine::Command { command, .. }) = COMMANDS.language.parse_line(&whole) else {
                    panic!("{whole}");
                };
                let Some(InfoLine(place)) = command.node.downcast_ref() else {
                    panic!("{command:?}");
                };
                let Expression::SourceLine { file, line } = &place.node else {
                    panic!("{place:?}");
                };
                let target = state.target().unwrap();
                let regions = target.process.regions().unwrap();
                let space = state.symbols.over(target, &regions);
                let found = space.find_line(&file.node.0, line.node, 0);
                assert!(found.unwrap().has_file, "{}", offer.typed);
            }
        }
    }

    #[test]
    fn the_module_before_a_symbol_is_found() {
        assert_eq!(module_before("t libc.so.6!").as_deref(), Some("libc.so.6"));
        assert_eq!(module_before("t 'ld-linux.so.2'!").as_deref(), Some("ld-linux.so.2"));
        assert_eq!(module_before("t ").as_deref(), None);
        assert_eq!(module_before("t !").as_deref(), None);
    }
}
