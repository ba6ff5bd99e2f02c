//! The subjects of `help`: hand-written texts that contain tables from the code.

pub mod questions;
mod tables;

use super::floor::About;
use crate::lang::Setting;
use crate::report::{Help, HelpEntry, HelpSubject, Shape, term_and_meaning};

/// A topic of `help` that is no command.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// As it is typed.
    pub name: &'static str,
    /// One line without a full stop.
    pub summary: &'static str,
    /// Paragraphs, separated by empty lines; `{name}` alone in a line is a table.
    text: &'static str,
}

macro_rules! subjects {
    ($($name:literal: $summary:literal,)*) => {
        /// Every subject, in the order of the help.
        pub static SUBJECTS: &[Subject] = &[$(Subject {
            name: $name,
            summary: $summary,
            text: include_str!(concat!($name, ".txt")),
        },)*];
    };
}

subjects! {
    "cookbook": "commands for common questions",
    "faq": "frequent questions",
    "terms": "PFN, folio, RSS and other terms, in a line each",
    "language": "the form of a line, with clauses, names and operators",
    "values": "numbers, addresses, names and functions",
    "ranges": "parts of the address space",
    "filters": "the fields of `where`, and their needs",
    "states": "the states of a page",
    "kinds": "the kinds of a page",
    "classes": "the classes of `account`, and the words of its answer",
    "chunks": "the chunks that `heap` reads, and its checks",
    "copies": "the rules by which `compare` counts pages after a fork",
    "flags": "the flags of page frames",
    "events": "the changes that watch reports",
    "units": "sizes, times and formats",
    "settings": "the settings of `set` and `show`",
    "gdb": "similarities to gdb, differences, and a plugin",
    "keys": "the keys of the prompt",
    "scripts": "command files, blocks and assertions",
    "json": "rules for all records of the JSON output",
    "records": "every record of the JSON output, field by field",
    "serve": "pmdb as a server of another program",
    "mcp": "pmdb as a server of a language model",
    "codes": "the codes of errors, and the exit statuses",
    "python": "a client in Python",
    "jq": "filters of jq for JSON output",
    "rights": "use without root, and with more rights",
    "kernels": "the features of each Linux version",
    "captures": "the contents of a capture, and what others see in it",
    "capture-format": "the format of a capture, field by field",
    "traces": "the effects of pmdb on the target",
    "files": "the files that pmdb reads and writes",
    "environment": "the environment variables that pmdb reads",
}

impl Subject {
    /// The subject of this name, or of the name that other programs give it.
    pub fn find(name: &str) -> Option<&'static Subject> {
        let name = match name {
            "glossary" => TERMS,
            "functions" | "expressions" => "values",
            name => name,
        };
        SUBJECTS.iter().find(|subject| subject.name == name)
    }

    /// The text with its tables. One of them describes these records.
    pub fn text(&self, records: &[Shape]) -> String {
        let line = |line: &str| match line.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(table) => tables::rows(table, records),
            None => format!("{line}\n"),
        };
        self.text.lines().map(line).collect()
    }

    /// As `help` shows it.
    pub fn help(&self, records: &[Shape]) -> Help {
        Help::Subject(HelpSubject { name: self.name, summary: self.summary, text: self.text(records) })
    }

    /// The table rows about a word of the language, each under the name of its subject, and under the paragraph that
    /// introduces the table, if there is one.
    pub fn rows_about(word: &str) -> impl Iterator<Item = Help> {
        Subject::of_the_language().chain(Subject::find(TERMS)).filter_map(move |subject| {
            let text = subject.text_about_words();
            let mut lead = "";
            let mut shown = String::new();
            for line in text.lines() {
                let is_about = match subject.name {
                    TERMS => explained_words(line).split(", ").any(|term| letters(term).eq(letters(word))),
                    _ => explained_words(line) == word || terms(line).any(|term| term == word),
                };
                if is_about {
                    let above = std::mem::take(&mut lead);
                    if above.ends_with(':') {
                        let gap = if shown.is_empty() { "" } else { "\n" };
                        shown.push_str(&format!("{gap}{above}\n\n"));
                    }
                    shown.push_str(&format!("{line}\n"));
                } else if !line.starts_with(' ') && !line.is_empty() {
                    lead = line;
                }
            }
            (!shown.is_empty()).then(|| {
                Help::Subject(HelpSubject {
                    name: subject.name,
                    summary: subject.summary,
                    text: shown.trim_end().to_owned(),
                })
            })
        })
    }

    /// The row about a setting, named as in `set`: a value may follow.
    pub fn setting(typed: &str) -> Option<Help> {
        let is_typed = |name: &str| format!("{typed} ").starts_with(&format!("{name} "));
        let named = Setting::ALL.iter().find(|setting| is_typed(setting.name()))?;
        let is_setting = |rows: &Help| matches!(rows, Help::Subject(of) if of.name == "settings");
        Subject::rows_about(named.name()).find(is_setting)
    }

    /// The subjects whose tables explain words of the language.
    fn of_the_language() -> impl Iterator<Item = &'static Subject> {
        let subjects = SUBJECTS.iter();
        subjects.filter(|subject| OF_THE_LANGUAGE.contains(&subject.name))
    }

    /// The text of such a subject, in which no records are described.
    fn text_about_words(&self) -> String {
        self.text(&[])
    }

    /// Every word that these tables explain.
    pub fn words() -> Vec<String> {
        let texts = Subject::of_the_language().map(Subject::text_about_words);
        let words = texts.flat_map(|text| {
            let terms = text.lines().flat_map(terms).map(str::to_owned);
            terms.collect::<Vec<_>>()
        });
        words.collect()
    }

    /// As lists show it.
    pub fn entry(&self) -> HelpEntry {
        HelpEntry { name: self.name, short: Vec::new(), summary: self.summary }
    }
}

/// A command as lists show it.
pub(super) fn entry(about: &About) -> HelpEntry {
    HelpEntry { name: about.name.name, short: about.name.short.to_vec(), summary: about.summary }
}

/// The letters of a term, in which blanks, hyphens and capitals do not matter.
fn letters(term: &str) -> impl Iterator<Item = char> {
    term.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase())
}

/// The words that a table row explains: those before the two blanks, without brackets and arguments.
fn terms(line: &str) -> impl Iterator<Item = &str> {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    explained_words(line).split_whitespace().map(move |term| {
        let bare = term.trim_start_matches(|c| !is_of_name(c));
        let end = bare.find(|c| !is_of_name(c)).unwrap_or(bare.len());
        match bare.get(..end) {
            Some(name) if !name.is_empty() => name,
            _ => term,
        }
    })
}

/// What a row explains.
fn explained_words(line: &str) -> &str {
    term_and_meaning(line).map_or("", |(term, _)| term)
}

/// The subject whose rows explain terms of several words.
const TERMS: &str = "terms";

/// The names of the subjects whose tables explain words of the language.
const OF_THE_LANGUAGE: [&str; 10] =
    ["language", "values", "ranges", "filters", "states", "kinds", "flags", "events", "units", "settings"];

/// Words for tasks that the help of a command need not contain, after the command.
static PURPOSES: &[(&str, &str)] = &[
    (
        "walk",
        "fork, copy on write, cow, numa, node, ksm, merged, zero page, swap, swapped, mlock, locked, \
         huge, hugepage, thp, transparent, dirty, resident, memory usage",
    ),
    ("translate", "dma, contiguous, physical, bus address, iommu, device, virtual to physical, vtop"),
    ("regions", "leak, memory usage, rss, pss, mappings, vmmap, pmap, largest, bloat"),
    ("watch", "leak, growth, migration, compaction, move, page fault, swapping"),
    ("region", "smaps, huge, folio, pss, file offset"),
    ("explain", "fault, segfault, sigsegv, sigbus, guard, copy on write, cow, not resident"),
    ("who", "shared, sharing, reverse map, rmap, fork"),
    ("summary", "page-types, census, free memory"),
    ("flags", "kpageflags, mlock, dirty, huge"),
    ("set", "json, colour, color, width, pager"),
    ("attach", "container, pid, process"),
    ("info capabilities", "permission, root, setcap, hidden, rights"),
];

/// The tasks of a command, as somebody may search for them.
pub(super) fn purposes(about: &About) -> impl Iterator<Item = &'static str> {
    let of_command = PURPOSES.iter().filter(move |(name, _)| *name == about.name.name);
    of_command.flat_map(|(_, words)| words.split(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::floor::Group;
    use crate::command::{COMMANDS, RECORDS};
    use crate::kernel::{Kind, State};

    #[test]
    fn words_of_the_language_are_explained() {
        for word in ["where", "until", "with", "present", "ksm", "mapcount", "zone", "lru"] {
            assert!(Subject::rows_about(word).count() > 0, "{word}");
        }
        for word in [
            "pager",
            "pagination",
            "run",
            "heap",
            "stack",
            "and",
            "or",
            "not",
            "&&",
            "copied",
            "unseen",
            "came",
            "longest",
        ] {
            assert!(Subject::rows_about(word).count() > 0, "{word}");
        }
        let spelled_otherwise = ["pagecache", "copy-on-write", "guard page", "zero page", "swap"];
        for term in ["PFN", "pfn", "page cache", "mapcount", "swap cache"].into_iter().chain(spelled_otherwise) {
            assert!(
                Subject::rows_about(term).any(|help| matches!(help, Help::Subject(of) if of.name == TERMS)),
                "{term}"
            );
        }
        assert_eq!(Subject::rows_about("cache").count(), 0);
        assert_eq!(Subject::rows_about("walk").count(), 0);
        assert!(Subject::words().contains(&"guard".to_owned()));
        for name in OF_THE_LANGUAGE {
            assert!(Subject::find(name).is_some(), "{name}");
        }
    }

    #[test]
    fn each_setting_has_a_row() {
        for setting in Setting::ALL {
            let Some(Help::Subject(rows)) = Subject::setting(setting.name()) else {
                panic!("{}", setting.name());
            };
            assert!(rows.text.contains(setting.about()), "{}", setting.name());
        }
    }

    #[test]
    fn a_word_of_pages_and_of_regions_says_which_is_which() {
        for word in ["swapped", "huge", "private", "shared", "writable"] {
            let texts = Subject::rows_about(word).map(|help| match help {
                Help::Subject(subject) => subject.text,
                other => panic!("{other:?}"),
            });
            let text = texts.collect::<Vec<_>>().join("\n");
            assert!(text.contains("Fields of regions"), "{text}");
            assert!(text.contains("(walk, watch, count):"), "{text}");
        }
    }

    #[test]
    fn a_row_is_about_the_words_before_its_meaning() {
        for (row, about) in [
            ("  [heap]  heap  libc.so.6    a region", &["heap", "heap", "libc"][..]),
            ("  state(A) kind(A)   words", &["state", "kind"]),
            ("  swapped out    A page went.", &["swapped", "out"]),
            ("  17 huge    from the pool", &["17", "huge"]),
            ("  && ||    between two", &["&&", "||"]),
            ("heap is a word", &[]),
        ] {
            assert_eq!(terms(row).collect::<Vec<_>>(), about, "{row}");
        }
    }

    #[test]
    fn subjects_are_read_easily_and_their_tables_are_filled() {
        for subject in SUBJECTS {
            let text = subject.text(&RECORDS);
            assert!(!text.contains("\n{"), "{}", subject.name);
            assert!(text.lines().count() > 4, "{}", subject.name);
            assert!(!subject.summary.ends_with('.'), "{}", subject.name);
            // What stands as it is has to fit an ordinary terminal.
            for line in text.lines().filter(|line| line.starts_with(' ')) {
                let is_row = line.trim().contains("  ");
                let is_prose = ["faq", "jq", "traces"].contains(&subject.name);
                assert!(is_row || line.len() < 90 || is_prose, "{line}");
            }
        }
        let text = |name| Subject::find(name).expect("a subject").text(&RECORDS);
        for state in State::ALL {
            assert!(text("states").contains(&format!("  {} ", state.word())));
        }
        for kind in Kind::ALL {
            assert!(text("kinds").contains(&format!("  {} ", kind.word())));
        }
        let filters = Subject::find("filters").expect("a subject").text(&RECORDS);
        for word in ["mapcount", "pmd_mapped", "dirty", "rss", "inode"] {
            assert!(filters.contains(&format!("  {word}")), "{word}");
        }
    }

    #[test]
    fn purposes_name_commands() {
        for (name, words) in PURPOSES {
            assert!(COMMANDS.abouts().any(|about| about.name.name == *name), "{name}");
            assert_eq!(*words, words.to_lowercase(), "{name}");
        }
        // A subject and a group may share a name: both are shown.
        let groups = Group::ALL.iter().map(|group| group.name());
        let shared = groups.filter(|name| Subject::find(name).is_some());
        assert_eq!(shared.collect::<Vec<_>>(), ["scripts", "language"]);
    }
}
