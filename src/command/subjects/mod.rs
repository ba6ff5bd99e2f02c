//! The subjects of `help`: texts that are written by hand, and tables in them that are made of the tables of the code.

mod tables;

use super::about::About;
use crate::report::{Help, HelpEntry, HelpSubject};

/// What `help NAME` explains beside the commands.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// As it is typed.
    pub name: &'static str,
    /// One line without a full stop.
    pub summary: &'static str,
    /// Paragraphs, parted by empty lines; `{name}` alone in a line is a table.
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
    "cookbook": "which commands answer which question",
    "faq": "questions that are asked often",
    "language": "how a line is written",
    "values": "numbers, addresses, names, and what is made of them",
    "ranges": "parts of the address space",
    "filters": "the words of `where`, and what each needs",
    "states": "the states of a page",
    "kinds": "what a page is, or would be",
    "flags": "every flag of a page frame",
    "units": "sizes, times and formats",
    "gdb": "what is as in gdb, what is not, and other programs' words",
    "keys": "the keys of the prompt",
    "scripts": "command files, blocks, assertions",
    "json": "what all records in JSON have in common",
    "records": "every record in JSON, field by field",
    "serve": "pmdb as a server of another program",
    "python": "a client in Python",
    "jq": "filters of jq for JSON",
    "rights": "what can be seen without root, and how to give rights",
    "kernels": "what each version of Linux lets pmdb know",
    "traces": "what the target can notice",
    "files": "what pmdb reads, and exit statuses",
}

impl Subject {
    /// The subject of this name.
    pub fn find(name: &str) -> Option<&'static Subject> {
        SUBJECTS.iter().find(|subject| subject.name == name)
    }

    /// All of it, with its tables.
    pub fn text(&self) -> String {
        let line = |line: &str| match line
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'))
        {
            Some(table) => tables::rows(table),
            None => format!("{line}\n"),
        };
        self.text.lines().map(line).collect()
    }

    /// As `help` shows it.
    pub fn help(&self) -> Help {
        Help::Subject(HelpSubject {
            name: self.name,
            summary: self.summary,
            text: self.text(),
        })
    }

    /// The rows about a word of the language, under the name of the subject that explains it.
    pub fn rows_about(word: &str) -> impl Iterator<Item = Help> {
        let subjects = SUBJECTS.iter();
        let subjects = subjects.filter(|subject| OF_THE_LANGUAGE.contains(&subject.name));
        subjects.filter_map(move |subject| {
            let text = subject.text();
            let is_about = |row: &&str| {
                // Before the name of a flag stands its number.
                let mut terms = row
                    .strip_prefix("  ")
                    .unwrap_or_default()
                    .split_whitespace();
                terms.find(|term| term.parse::<u8>().is_err()) == Some(word)
            };
            let rows: Vec<&str> = text.lines().filter(is_about).collect();
            let text = (!rows.is_empty()).then(|| rows.join("\n"))?;
            Some(Help::Subject(HelpSubject {
                name: subject.name,
                summary: subject.summary,
                text,
            }))
        })
    }

    /// As lists show it.
    pub fn entry(&self) -> HelpEntry {
        HelpEntry {
            name: self.name,
            short: Vec::new(),
            summary: self.summary,
        }
    }
}

/// The subjects whose tables explain words of the language.
const OF_THE_LANGUAGE: [&str; 8] = [
    "language", "values", "ranges", "filters", "states", "kinds", "flags", "units",
];

/// What people want, in words that the help of the command need not have, and the command that does it.
static PURPOSES: &[(&str, &[&str])] = &[
    (
        "walk",
        &[
            "fork",
            "copy on write",
            "cow",
            "numa",
            "node",
            "ksm",
            "merged",
            "zero page",
            "swap",
            "swapped",
            "mlock",
            "locked",
            "huge",
            "hugepage",
            "thp",
            "transparent",
            "dirty",
            "resident",
            "memory usage",
        ],
    ),
    (
        "translate",
        &[
            "dma",
            "contiguous",
            "physical",
            "bus address",
            "iommu",
            "device",
            "virtual to physical",
            "vtop",
        ],
    ),
    (
        "regions",
        &[
            "leak",
            "memory usage",
            "rss",
            "pss",
            "mappings",
            "vmmap",
            "pmap",
            "largest",
            "bloat",
        ],
    ),
    (
        "watch",
        &[
            "leak",
            "growth",
            "migration",
            "compaction",
            "move",
            "page fault",
            "swapping",
        ],
    ),
    ("region", &["smaps", "huge", "folio", "pss", "file offset"]),
    (
        "explain",
        &[
            "fault",
            "segfault",
            "sigsegv",
            "sigbus",
            "guard",
            "copy on write",
            "cow",
            "not resident",
        ],
    ),
    ("who", &["shared", "sharing", "reverse map", "rmap", "fork"]),
    ("summary", &["page-types", "census", "free memory"]),
    ("flags", &["kpageflags", "mlock", "dirty", "huge"]),
    ("set", &["json", "colour", "color", "width", "pager"]),
    ("attach", &["container", "pid", "process"]),
    (
        "info capabilities",
        &["permission", "root", "setcap", "hidden", "rights"],
    ),
];

/// Whether somebody who looks for this means the command.
pub(super) fn is_for(about: &About, wanted: impl Fn(&str) -> bool) -> bool {
    let mut purposes = PURPOSES.iter().filter(|(name, _)| *name == about.name);
    purposes.any(|(_, words)| words.iter().any(|word| wanted(word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Group, TABLE};
    use crate::kernel::{Kind, State};

    #[test]
    fn words_of_the_language_are_explained() {
        for word in [
            "where", "until", "with", "present", "ksm", "mapcount", "zone", "lru",
        ] {
            assert!(Subject::rows_about(word).count() > 0, "{word}");
        }
        assert_eq!(Subject::rows_about("walk").count(), 0);
        for name in OF_THE_LANGUAGE {
            assert!(Subject::find(name).is_some(), "{name}");
        }
    }

    #[test]
    fn subjects_are_read_easily_and_their_tables_are_filled() {
        for subject in SUBJECTS {
            let text = subject.text();
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
        let text = |name| Subject::find(name).expect("a subject").text();
        for state in State::ALL {
            assert!(text("states").contains(&format!("  {} ", state.word())));
        }
        for kind in Kind::ALL {
            assert!(text("kinds").contains(&format!("  {} ", kind.word())));
        }
        let filters = Subject::find("filters").expect("a subject").text();
        for word in ["mapcount", "pmd_mapped", "dirty", "rss", "inode"] {
            assert!(filters.contains(&format!("  {word}")), "{word}");
        }
    }

    #[test]
    fn purposes_name_commands() {
        for (name, words) in PURPOSES {
            assert!(TABLE.iter().any(|about| about.name == *name), "{name}");
            assert!(
                words.iter().all(|word| *word == word.to_lowercase()),
                "{name}"
            );
        }
        // A subject and a group may share a name: both are shown.
        let groups = Group::ALL.iter().map(|group| group.name());
        let shared = groups.filter(|name| Subject::find(name).is_some());
        assert_eq!(shared.collect::<Vec<_>>(), ["scripts", "language"]);
    }
}
