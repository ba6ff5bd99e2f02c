//! The command after the process, in words of a shell.

use super::{Arguments, LANGUAGE, Step, full_name, is_long, refusal};
use pmdb::command::command_alone;
use pmdb::lang::{CommandName, Output, ParsedLine, ProcessNeed};
use pmdb::session::Parameters;
use pmdb::{process, session};

impl Arguments {
    /// Takes the command from the words after the process, or from words that need no process (`help`, `ps`).
    pub(super) fn take_command(&mut self) -> Result<Option<String>, clap::Error> {
        let refused = |message: String| Err(refusal(message));
        if self.arguments.last().is_some_and(|last| last == "--help") {
            let words: Vec<String> = self.target.iter().chain(&self.arguments).cloned().collect();
            if let Some(name) = full_name(&words).or_else(|| full_name(&self.arguments)) {
                // `help` needs no process.
                (self.pid, self.target, self.capture, self.arguments) = (None, None, None, Vec::new());
                return Ok(Some(format!("help {name}")));
            }
        }
        let mut words = Vec::new();
        let behind = self.arguments.iter().map(String::as_str);
        // A complete command takes precedence over a process of that name, which `-p` names.
        let is_complete = self.target.as_deref().is_some_and(|word| {
            // The whole command may be one word of the shell.
            let whole = word.split_once(' ').filter(|_| self.arguments.is_empty());
            LANGUAGE.is_alone(word, behind)
                || whole.is_some_and(|(first, rest)| LANGUAGE.is_alone(first, rest.split(' ')))
        });
        if self.pid.is_some() || self.capture.is_some() || is_complete {
            words.extend(self.target.take());
        }
        let Some(first) = words.first().or(self.arguments.first()) else {
            return Ok(None);
        };
        if !self.steps().is_empty() {
            // With -x or -ex, words after a process are arguments.
            return match words.first() {
                None => Ok(None),
                Some(word) => {
                    refused(format!("unexpected argument `{word}`: put the arguments of a command file after --args"))
                }
            };
        }
        if first.starts_with(':') {
            return refused(format!(
                "`{first}` is a built-in command file: use -x before the process, as in `pmdb -batch -x :NAME PID ARGUMENTS`"
            ));
        }
        if let Some(message) = self.behind_command() {
            return refused(message);
        }
        if !first.starts_with(|c: char| c.is_alphabetic() || c == '?') {
            if let Some(command) = self.target.iter().find(|word| full_name(std::slice::from_ref(word)).is_some()) {
                return refused(self.without_process(command));
            }
            return refused(format!(
                "unexpected `{first}`, expected a command after the process, as in `pmdb 812 regions`"
            ));
        }
        words.append(&mut self.arguments);
        self.leave_ambiguous_process(&words);
        let text = words.join(" ");
        let parsed = LANGUAGE.parse_line(&text);
        if parsed.is_err()
            && let Some(option) = words.iter().find(|word| is_option(word))
        {
            let line: Vec<_> = self.target.iter().chain(&words).filter(|word| *word != option).cloned().collect();
            return refused(format!("options precede the process: `pmdb {option} {}`", line.join(" ")));
        }
        if self.is_lost_snapshot(&words) {
            return refused(format!("`{text}` ends with pmdb: write `capture FILE`, or open the prompt"));
        }
        match parsed {
            Ok(ParsedLine::Command { output: Output::Screen | Output::File { .. }, .. })
            | Ok(ParsedLine::Empty | ParsedLine::Comment)
            | Err(_) => Ok(Some(text)),
            Ok(ParsedLine::Control(_)) => {
                refused(format!("`{text}` needs a block of several lines: write the block into a command file for -x"))
            }
            Ok(_) => refused(format!(
                "`{text}` is not a single command: use the shell for pipes and shell commands, as in `pmdb 812 regions | less`"
            )),
        }
    }
}

impl Arguments {
    /// Returns whether a line takes a snapshot that nothing can use: it lasts as long as pmdb.
    fn is_lost_snapshot(&self, words: &[String]) -> bool {
        words.first().is_some_and(|first| first == "snapshot") && !words.iter().any(|word| word == "to")
    }

    /// Leaves out the name of several processes before a line that needs none.
    fn leave_ambiguous_process(&mut self, words: &[String]) {
        if let ([first, behind @ ..], Some(name)) = (words, &self.target)
            && LANGUAGE.is_alone(first, behind.iter().map(String::as_str))
            && matches!(process::resolve(name), Err(process::Error::Ambiguous { .. }))
        {
            self.target = None;
        }
    }

    /// The error for `who 0x7f00`: the process is missing, or `phys:`.
    fn without_process(&self, command: &str) -> String {
        let words = self.arguments.join(" ");
        let of_process = format!("`pmdb PID {command} {words}`");
        let options = self.arguments.iter().take_while(|word| word.starts_with("--")).count();
        let (options, operand) = self.arguments.split_at(options);
        let before: String =
            std::iter::once(command).chain(options.iter().map(String::as_str)).map(|word| format!("{word} ")).collect();
        if LANGUAGE.is_alone(command, std::iter::once("phys:")) {
            return format!(
                "`{command}` needs `phys:` or a process: `pmdb {before}phys:{}` or {of_process}",
                operand.join(" ")
            );
        }
        format!("`{command}` needs a process: {of_process}")
    }

    /// The error for `heap billing`: the second word is a process, the name of several, or of none.
    fn behind_command(&self) -> Option<String> {
        let (command, process) = (self.target.as_ref()?, self.arguments.first()?);
        let find = |word: &str| process::resolve(word);
        let needs_none = |name: &CommandName| {
            name.name == command && matches!(name.process, ProcessNeed::Optional | ProcessNeed::Unused)
        };
        if LANGUAGE.names().any(needs_none) {
            return None;
        }
        if full_name(std::slice::from_ref(command)).is_none()
            || !matches!(find(command), Err(process::Error::Gone { .. }))
        {
            return None;
        }
        let line = |words: &[&str]| {
            let clauses = self.arguments.iter().skip(1).map(String::as_str);
            format!("`pmdb {}`", words.iter().copied().chain(clauses).collect::<Vec<_>>().join(" "))
        };
        match find(process) {
            Err(process::Error::Gone { .. }) if process.starts_with("phys:") || process.starts_with("pfn:") => {
                Some(format!("`{command}` needs a process; `pmdb who {process}` lists those that map the frame"))
            }
            Err(process::Error::Gone { .. }) => {
                let is_name =
                    process.starts_with(char::is_alphabetic) && LANGUAGE.parse_line(&self.arguments.join(" ")).is_err();
                is_name.then(|| {
                    format!(
                        "no process is called `{process}`, and the process comes first: {}",
                        line(&["PID", command])
                    )
                })
            }
            Err(process::Error::Ambiguous { candidates, .. })
                if LANGUAGE.is_alone(command, ["of", process].into_iter()) =>
            {
                let of_all = line(&[command, "of", process]);
                Some(format!("{} processes are called `{process}`: {of_all}", candidates.len()))
            }
            _ => Some(format!("the process comes first: {}", line(&[process, command]))),
        }
    }
}

impl Arguments {
    /// Refuses a command without its process, as in `pmdb regions`.
    pub(super) fn check_target(&self) -> Result<(), clap::Error> {
        let Some(word) = self.target.as_deref().filter(|word| *word != "demo") else {
            return Ok(());
        };
        match command_alone(word, LANGUAGE) {
            Some(message) if matches!(process::resolve(word), Err(process::Error::Gone { .. })) => {
                Err(refusal(message))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a command file that there is not, and arguments that are missing or that nothing reads. A command before
    /// a file may make it.
    pub(super) fn check_files(&self) -> Result<(), clap::Error> {
        let mut may_be_made = false;
        let mut takers = Vec::new();
        for step in self.steps() {
            takers.push(match step {
                Step::Command(line) => {
                    may_be_made = true;
                    Parameters::of_line("-ex", line)
                }
                Step::File(path) if may_be_made && !session::is_built_in(path) => Parameters::unknown(path),
                Step::File(path) => session::check_file(path, self.arguments().len()).map_err(refusal)?,
            });
        }
        if takers.is_empty() { Ok(()) } else { session::check_arguments(&takers, self.arguments()).map_err(refusal) }
    }

    /// Returns the line that examines all processes of the name of the target, if the command takes several.
    pub fn line_of_family(&self) -> Option<String> {
        let (name, [Step::Command(text)]) = (self.target.as_deref()?, self.steps()) else {
            return None;
        };
        let (command, clauses) = text.split_once(' ').unwrap_or((text, ""));
        let words = ["of", name].into_iter();
        let line = format!("{command} of {name} {clauses}");
        let is_line = LANGUAGE.is_alone(command, words) && LANGUAGE.parse_line(&line).is_ok();
        is_line.then(|| format!("pmdb {}", line.trim_end()))
    }
}

/// Returns whether a word is an option of pmdb.
fn is_option(word: &str) -> bool {
    let name = word.trim_start_matches('-');
    name != word && is_long(name)
}
