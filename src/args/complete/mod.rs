//! `--complete SHELL …`: completion in a shell, for the scripts of the shells.
//!
//! Each shell passes the words up to the cursor and reads the offers in its own format:
//!
//! * bash: `--complete bash COMP_TYPE TEXT LINE`, where TEXT is what bash replaces: it splits words at `:` and `=`. The
//!   answer has lines that replace TEXT, with a blank if the word is complete, or lines of a list if COMP_TYPE is that
//!   of a list.
//! * zsh: `--complete zsh QUOTE WORD…`. The answer begins with the number of characters of the last word that stay.
//!   Each offer is `+` if the word is complete or `-`, the text after what stays, a tab, and its line of a list.
//! * fish: `--complete fish WORD…`. Each offer is a whole word, a tab, and its meaning.

mod shell;

use super::generate::{names, options, spellings, takes_values};
use super::{Arguments, GeneratedFile};
use clap::{Arg, Command, CommandFactory, ValueEnum};
use pmdb::command::subjects::{SUBJECTS, Subject};
use pmdb::command::{self, About, COMMANDS, Group, LANGUAGE, TargetName};
use pmdb::kernel::text::is_plain;
use pmdb::lang::{ColorChoice, ProcessNeed, is_name_of_process};
use pmdb::process::{self, ProcessEntry, Target};
use pmdb::session;
use pmdb::state::DebugState;
use rustix::termios::tcgetwinsize;
use shell::{ShellWord, quote_text};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::time::Duration;

/// The time limit of a search for names. It is longer than at the prompt, as each Tab starts anew.
const PATIENCE: Duration = Duration::from_secs(1);

/// The widest term in columns with which meanings are aligned.
const WIDEST: usize = 24;

/// A word that can stand at the cursor.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct ShellOffer {
    /// The text in a list.
    shown: String,
    /// The whole word, with a blank if it is complete.
    word: String,
    /// The length in bytes of the part of `word` that the list omits, as the line has it already.
    kept_letters: usize,
    /// Whether more can follow in the same word of the shell, as in the value of `-ex`.
    goes_on: bool,
    about: String,
}

impl ShellOffer {
    /// Returns the text of the word, and whether the shell may end the word after it.
    fn split(&self, word: &ShellWord) -> (&str, bool) {
        match self.word.strip_suffix(' ') {
            Some(complete) if !self.goes_on || word.quote.is_none() => (complete, true),
            _ => (&self.word, false),
        }
    }
}

/// Returns the offers for a shell if the command line begins with `--complete`; an empty text if the rest is wrong.
pub fn completions(words: impl IntoIterator<Item = OsString>) -> Option<String> {
    let mut words = words.into_iter().skip(1).map(|word| word.to_string_lossy().into_owned());
    words.next().filter(|first| first == "--complete")?;
    Some(answer(&words.collect::<Vec<_>>()).unwrap_or_default())
}

/// Returns the answer to the words after `--complete`.
fn answer(asked: &[String]) -> Option<String> {
    let (shell, asked) = asked.split_first()?;
    let width = tcgetwinsize(io::stdin()).map_or(0, |size| usize::from(size.ws_col));
    let width = if width == 0 { 80 } else { width };
    match (shell.as_str(), asked) {
        ("bash", [kind, text, line]) => {
            let words = ShellWord::all(line);
            let (word, before) = words.split_last()?;
            let before: Vec<&str> = before.iter().map(|word| word.plain.as_str()).collect();
            let mut offers = offers(&before, &word.plain);
            Some(if kind == "63" { list_lines(&offers, width).join("\n") } else { for_bash(&mut offers, word, text) })
        }
        ("zsh", [quote, before @ .., last]) => {
            let word = ShellWord::begun_with(quote, last);
            let before: Vec<&str> = before.iter().map(String::as_str).collect();
            Some(for_zsh(&offers(&before, &word.plain), &word, width))
        }
        ("fish", [before @ .., last]) => {
            let before: Vec<&str> = before.iter().map(String::as_str).collect();
            let word = ShellWord::begun_with("", last);
            let mut offers = offers(&before, &word.plain);
            keep_open(&mut offers, &word);
            // fish adds the blank after a word.
            let lines = offers.iter().map(|offer| format!("{}\t{}\n", offer.split(&word).0, offer.about));
            Some(lines.collect())
        }
        _ => None,
    }
}

/// Adds a longer offer to a single one that may go on: bash and fish would close the quote after a single offer.
fn keep_open(offers: &mut Vec<ShellOffer>, word: &ShellWord) {
    if let [only] = offers.as_slice()
        && word.quote.is_some()
        && only.goes_on
        && only.word != word.plain
    {
        let longer = ShellOffer { word: format!("{}…", only.word), ..only.clone() };
        offers.push(longer);
    }
}

fn for_bash(offers: &mut Vec<ShellOffer>, word: &ShellWord, text: &str) -> String {
    keep_open(offers, word);
    let stays = if word.raw.ends_with(text) { word.raw.len() - text.len() } else { 0 };
    let stays = word.plain.get(..word.plain_before(stays)).unwrap_or_default();
    let replaced = |offer: &ShellOffer| {
        let (whole, ends) = offer.split(word);
        let blank = if ends { " " } else { "" };
        Some(quote_text(whole.strip_prefix(stays)?, word.quote)? + blank)
    };
    let lines: Vec<String> = offers.iter().filter_map(replaced).collect();
    lines.join("\n")
}

fn for_zsh(offers: &[ShellOffer], word: &ShellWord, width: usize) -> String {
    let kept = offers.iter().map(|offer| offer.kept_letters).min().unwrap_or_default();
    let raw = word.raw.get(..word.raw_before(kept)).unwrap_or_default();
    let mut text = format!("{}\n", raw.chars().count());
    for (offer, line) in offers.iter().zip(list_lines(offers, width)) {
        let (whole, ends) = offer.split(word);
        let (mark, rest) = (if ends { '+' } else { '-' }, whole.get(kept..).unwrap_or_default());
        text.push_str(&format!("{mark}{rest}\t{line}\n"));
    }
    text
}

/// Returns the lines of a list, with the meanings beside the words.
fn list_lines(offers: &[ShellOffer], width: usize) -> Vec<String> {
    let terms = offers.iter().map(|offer| offer.shown.chars().count());
    let widest = terms.filter(|length| *length <= WIDEST).max().unwrap_or_default();
    let line = |offer: &ShellOffer| match offer.about.as_str() {
        "" => offer.shown.clone(),
        about => format!("{:widest$}  {about}", offer.shown).chars().take(width.saturating_sub(1)).collect(),
    };
    offers.iter().map(line).collect()
}

/// Returns the words that can follow `before` and begin with `begun`. The first of `before` is the program.
fn offers(before: &[&str], begun: &str) -> Vec<ShellOffer> {
    let mut program = Arguments::command();
    program.build();
    let mut found = ShellOffers { program: &program, typed_part: begun, goes_on: false, found: Vec::new() };
    found.search(before.get(1..).unwrap_or_default());
    // A shell inserts what all offers have in common, so that those with a quote of pmdb at their beginning are
    // dropped.
    if found.found.iter().any(|offer| offer.word.starts_with(begun)) {
        found.found.retain(|offer| offer.word.starts_with(begun));
    }
    found.found
}

struct ShellOffers<'a> {
    program: &'a Command,
    typed_part: &'a str,
    goes_on: bool,
    found: Vec<ShellOffer>,
}

impl ShellOffers<'_> {
    fn add(&mut self, word: &str, about: &str) {
        self.after(0, word, true, about);
    }

    /// Adds an offer. Omits it if it does not begin like the typed word, or has characters that must not reach a
    /// terminal.
    fn after(&mut self, kept: usize, rest: &str, is_complete: bool, about: &str) {
        let word = format!("{}{rest}", &self.typed_part[..kept]);
        if word.starts_with(self.typed_part) && word.chars().all(is_plain) {
            let about = about.chars().filter(|c| is_plain(*c)).collect();
            let blank = if is_complete { " " } else { "" };
            self.found.push(ShellOffer {
                shown: rest.to_owned(),
                word: word + blank,
                kept_letters: kept,
                goes_on: false,
                about,
            });
        }
    }

    fn search(&mut self, before: &[&str]) {
        let (mut process, mut has_steps, mut options_ended) = (None, false, false);
        let mut words = before.iter().enumerate();
        while let Some((index, word)) = words.next() {
            let option = GivenOption::of(self.program, word).filter(|_| !options_ended);
            match option {
                Some(option) if option.id == "args" => return self.files(0),
                Some(option) => {
                    has_steps |= matches!(option.id.as_str(), "files" | "commands");
                    let value = match option.value {
                        Some(value) => value,
                        None if !option.takes_value => continue,
                        None => match words.next() {
                            Some((_, value)) => value,
                            None => return self.value(&option.id, 0, process),
                        },
                    };
                    if option.id == "pid" {
                        process = Some(value);
                    }
                }
                None if *word == "--" => options_ended = true,
                None if word.starts_with('-') && !options_ended => {}
                None if process.is_none() && !LANGUAGE.is_alone(word, before.iter().skip(index + 1).copied()) => {
                    process = Some(word)
                }
                None if has_steps => return self.files(0),
                None => return self.command(process, before.get(index..).unwrap_or_default(), 0),
            }
        }
        if self.typed_part.starts_with('-') && !options_ended {
            return match GivenOption::of(self.program, self.typed_part) {
                Some(GivenOption { id, value: Some(value), .. }) if self.typed_part.contains('=') => {
                    self.value(&id, self.typed_part.len() - value.len(), process)
                }
                _ => self.options(),
            };
        }
        match process {
            None => {
                self.processes(0);
                self.add("demo", "start a demonstration process");
                for command in COMMANDS.abouts().filter(|about| LANGUAGE.is_alone(about.name.name, std::iter::empty()))
                {
                    self.add(command.name.name, command.summary);
                }
            }
            Some(_) if has_steps => self.files(0),
            Some(word) if self.family_command(word) => {}
            Some(_) => self.command(process, &[], 0),
        }
    }

    /// After the name of a command in place of a process: the words after which it needs none. Returns whether the word
    /// is such a name.
    fn family_command(&mut self, word: &str) -> bool {
        let command = LANGUAGE.names().find(|name| name.name == word);
        let Some(ProcessNeed::UnusedBefore(words)) = command.map(|name| name.process) else {
            return false;
        };
        if process::resolve(word).is_ok() {
            return false;
        }
        for word in words.iter().filter(|word| **word != "\"") {
            self.after(0, word, !word.ends_with(':'), "");
        }
        true
    }

    fn options(&mut self) {
        for option in options(self.program) {
            let about = option.get_help().map(ToString::to_string).unwrap_or_default();
            // A long option with one dash is another spelling of gdb: a list has each option once.
            let all = if self.typed_part == "-" { names(option) } else { spellings(option) };
            for name in all {
                if name.len() > 2 || self.typed_part.len() < 2 || self.typed_part == name {
                    self.add(&name, &about);
                }
            }
        }
    }

    /// Adds the values of an option after the first `kept` bytes of the word.
    fn value(&mut self, option: &str, kept: usize, process: Option<&str>) {
        match option {
            "pid" => self.processes(kept),
            "commands" => {
                self.goes_on = true;
                self.command(process, &[], kept);
            }
            "files" => {
                self.files(kept);
                for line in session::list_of_scripts().lines() {
                    let (name, about) = line.split_once(' ').unwrap_or((line, ""));
                    self.after(kept, name, true, about.trim_start());
                }
            }
            "color" => ColorChoice::ALL.iter().for_each(|choice| self.after(kept, choice.word(), true, "")),
            "generate" => {
                for value in GeneratedFile::value_variants().iter().filter_map(ValueEnum::to_possible_value) {
                    let about = value.get_help().map(ToString::to_string).unwrap_or_default();
                    self.after(kept, value.get_name(), true, &about);
                }
                self.after(kept, "all", true, "all of these, into a directory");
            }
            _ => self.files(kept),
        }
    }

    /// Adds processes by name and by id. Kernel threads, which cannot be examined, are added only if nothing else
    /// begins so.
    fn processes(&mut self, kept: usize) {
        let (begun, myself) = (self.typed_part.get(kept..).unwrap_or_default(), std::process::id());
        let all = process::machine().processes().unwrap_or_default();
        let mut all: Vec<_> =
            all.into_iter().filter(|one| one.pid != myself && !matches!(one.state, 'Z' | 'X')).collect();
        let is_begun = |process: &ProcessEntry| {
            process.name.as_bytes().starts_with(begun.as_bytes()) || process.pid.to_string().starts_with(begun)
        };
        let has_memory = |process: &ProcessEntry| process.resident.is_some();
        let suits = all.iter().any(|process| has_memory(process) && is_begun(process));
        all.retain(|process| is_begun(process) && (has_memory(process) || !suits && !begun.is_empty()));
        let mut named: BTreeMap<&[u8], Vec<&ProcessEntry>> = BTreeMap::new();
        for process in &all {
            named.entry(process.name.as_bytes()).or_default().push(process);
        }
        for (name, processes) in named {
            let Some(name) = std::str::from_utf8(name).ok().filter(|name| Self::names_a_process(name)) else {
                continue;
            };
            match processes.as_slice() {
                [only] => self.after(kept, name, true, &format!("process {}", only.pid)),
                several => self.after(kept, name, true, &format!("{} processes: choose a PID", several.len())),
            }
        }
        for process in &all {
            let line =
                process.command_line.as_ref().filter(|line| !line.as_bytes().is_empty()).unwrap_or(&process.name);
            self.after(kept, &process.pid.to_string(), true, &line.to_string());
        }
        self.after(kept, "self", true, "pmdb itself");
    }

    /// Returns whether a word means the process of that name: no option, number or home of a user, and no first word of
    /// a command.
    fn names_a_process(name: &str) -> bool {
        let begins = |about: &About| about.name.name.split(' ').next() == Some(name);
        matches!(TargetName::of(name), TargetName::Name(_))
            && is_name_of_process(name)
            && !COMMANDS.abouts().any(begins)
    }

    /// Adds the words of a command that begins with `before`, or after the first `kept` bytes of the word.
    fn command(&mut self, process: Option<&str>, before: &[&str], kept: usize) {
        let mut state = DebugState::new(process::machine());
        // The demonstration is a process of this program and has the same names.
        let process = process.map(|process| if process == "demo" { "self" } else { process });
        if let Some(Ok(found)) = process.map(process::resolve)
            && let Ok(target) = Target::attach(found.pid)
        {
            state.attach(target);
        }
        let before: String = before.iter().flat_map(|word| [word, " "]).collect();
        let line = format!("{before}{}", self.typed_part.get(kept..).unwrap_or_default());
        let (start, offers) = command::complete(&state, &line, line.len(), PATIENCE);
        let given = line.get(..start).unwrap_or_default();
        let begins = start.max(before.len());
        for offer in offers {
            // Completion of `help info` may continue with a command of two words.
            let Some(rest) = format!("{given}{}", offer.typed).strip_prefix(&before).map(str::to_owned) else {
                continue;
            };
            let rest = rest.get(begins - before.len()..).unwrap_or_default();
            let (word, about) = (rest.trim_end(), about(given, offer.typed.trim_end()));
            match word.split_once(' ') {
                Some((first, _)) if !self.goes_on && !about.is_empty() => {
                    self.replace(begins - before.len() + kept, first, true, "")
                }
                _ => self.replace(begins - before.len() + kept, word, word.len() < rest.len(), about),
            }
        }
        // A line of a block is no single command.
        if before.is_empty() && !self.goes_on {
            let is_of_block = |word: &str| LANGUAGE.names().any(|name| name.name == word && name.block.is_some());
            self.found.retain(|offer| !is_of_block(&offer.shown));
        }
        self.found.dedup();
    }

    /// Adds an offer that may begin with a quote although the typed name has none.
    fn replace(&mut self, kept: usize, rest: &str, is_complete: bool, about: &str) {
        let kept_text = self.typed_part.get(..kept).unwrap_or_default();
        let word = format!("{kept_text}{rest}{}", if is_complete { " " } else { "" });
        if word.chars().all(is_plain) {
            let (shown, goes_on, about) = (rest.to_owned(), self.goes_on, about.to_owned());
            self.found.push(ShellOffer { shown, word, kept_letters: kept, goes_on, about });
        }
    }

    /// Adds files as a shell does: hidden ones only after a typed dot.
    fn files(&mut self, kept: usize) {
        let begun = self.typed_part.get(kept..).unwrap_or_default();
        let (folder, start) = begun.rfind('/').map_or(("", begun), |slash| begun.split_at(slash + 1));
        let looked_in = if folder.is_empty() { "./".into() } else { command::expand_home(folder) };
        let mut names = BTreeSet::new();
        for entry in std::fs::read_dir(looked_in).into_iter().flatten().flatten() {
            if let Ok(name) = entry.file_name().into_string()
                && name.starts_with(start)
                && (start.starts_with('.') || !name.starts_with('.'))
            {
                names.insert((name, std::fs::metadata(entry.path()).is_ok_and(|file| file.is_dir())));
            }
        }
        let kept = kept + folder.len();
        for (name, is_folder) in names {
            // Such a beginning would mean an option, the home of a user or a built-in command file.
            let here = if folder.is_empty() && name.starts_with(['-', '~', ':']) { "./" } else { "" };
            let name = format!("{here}{name}{}", if is_folder { "/" } else { "" });
            self.after(kept, &name, !is_folder, "");
        }
    }
}

/// Returns the summary of a command, or of a topic of the help.
fn about(before: &str, word: &str) -> &'static str {
    let before = before.trim();
    let name = format!("{} {word}", before.strip_prefix("help").unwrap_or(before));
    if let Some(command) = COMMANDS.abouts().find(|about| about.name.name == name.trim()) {
        return command.summary;
    }
    if before != "help" {
        return "";
    }
    let group = || Group::ALL.iter().find(|group| group.name() == word).map(|group| group.about());
    let subject = SUBJECTS.iter().find(|subject: &&Subject| subject.name == word);
    subject.map(|subject| subject.summary).or_else(group).unwrap_or_default()
}

/// An option in a command line.
struct GivenOption<'a> {
    id: String,
    takes_value: bool,
    /// The value after `=`, or after a short option in the same word.
    value: Option<&'a str>,
}

impl<'a> GivenOption<'a> {
    fn of(program: &Command, word: &'a str) -> Option<Self> {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let given = |option: &Arg, value| GivenOption {
            id: option.get_id().to_string(),
            takes_value: takes_values(option),
            value,
        };
        if let Some(option) = options(program).find(|option| spellings(option).iter().any(|one| one == name)) {
            return Some(given(option, value));
        }
        let glued = |option: &Arg| {
            let rest = word.strip_prefix('-')?.strip_prefix(option.get_short()?)?;
            takes_values(option).then_some(given(option, Some(rest)))
        };
        options(program).find_map(glued)
    }
}
