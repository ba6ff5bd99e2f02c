//! The command line: rewrites gdb's spellings for clap, and parses them into [`Arguments`].

mod color;
mod command;
pub mod complete;
mod generate;

use clap::builder::styling::{Ansi256Color, Style, Styles};
use clap::error::ErrorKind;
use clap::{ArgAction, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, ValueEnum};
use color::{color_choice, help_color};
use generate::{EXAMPLES, GeneratedFile, USAGE};
use pmdb::command::LANGUAGE;
use pmdb::command::TargetName;
use pmdb::lang::ColorChoice;
use pmdb::report::EXIT_STATUSES;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// The options and arguments of the command line.
#[derive(Debug, Parser)]
#[command(
    name = "pmdb",
    version,
    long_version = LONG_VERSION,
    about = "A gdb-style prompt for the memory behind a Linux process",
    long_about = "A gdb-style prompt for the memory behind a Linux process. It shows the physical place of each byte, the state of each \
             page with its reason, the kernel's records about it, and its changes over time. pmdb reads /proc and the files that the process \
             has mapped. It never stops or traces the process, changes it only on request, and runs beside gdb.",
    after_help = "pmdb --help shows all options, pmdb help lists the commands, pmdb help NAME explains one",
    after_long_help = after_help(),
    override_usage = USAGE,
    // Readable on black and on white.
    styles = Styles::styled().header(Style::new().bold().underline()).literal(Ansi256Color(63).on_default())
)]
pub struct Arguments {
    /// Attach to a process: its PID, a thread id, its name, or `self`; `demo` starts a demonstration process
    #[arg(value_name = "PID | NAME | demo")]
    target: Option<String>,

    /// Run one command, as with -batch; with -x or -ex, pass these words as $arg0, $arg1 …
    #[arg(value_name = "COMMAND", requires = "target")]
    arguments: Vec<String>,

    /// Attach to this process (even if it is called demo)
    #[arg(short, long, value_name = "PID | NAME")]
    pid: Option<String>,

    /// Examine a capture or a core file in place of a process
    #[arg(short, long, value_name = "FILE", conflicts_with = "pid")]
    capture: Option<PathBuf>,

    #[command(flatten)]
    steps: Steps,

    /// Pass all remaining words to -x and -ex as $arg0, $arg1 …
    #[arg(long, hide_short_help = true, value_name = "ARGUMENT", num_args = 0.., allow_hyphen_values = true, conflicts_with = "arguments")]
    args: Vec<String>,

    /// Write the results of `assert` to a file, as JUnit XML
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// List the built-in command files (-x :NAME runs one, -x :NAME --help explains it)
    #[arg(long, hide_short_help = true)]
    pub list_scripts: bool,

    /// Print a generated text: man, man-language, man-json, help (all of it), json-schema, complete-bash, complete-zsh,
    /// complete-fish, gdb (the plugin); with DIR write it there, and `all DIR` writes them all
    #[arg(long, hide_short_help = true, value_names = ["WHAT", "DIR"], num_args = 1..=2)]
    generate: Vec<String>,

    /// Exit after the commands of -x and -ex, without prompt, pager and greeting
    #[arg(long)]
    pub batch: bool,

    /// Continue after errors (the exit status still reports them)
    #[arg(long, hide_short_help = true)]
    pub keep_going: bool,

    /// Do not run $XDG_CONFIG_HOME/pmdb/init first
    #[arg(short, long = "nx")]
    pub no_init: bool,

    /// Print no greeting at the prompt
    #[arg(short, long)]
    pub quiet: bool,

    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,

    /// Read requests from standard input, and reply with JSON Lines (for programs)
    #[arg(long, hide_short_help = true, conflicts_with = "batch")]
    pub serve: bool,

    /// Serve a language model (Model Context Protocol), which can only look; it opens captures in DIR alone
    #[arg(long, hide_short_help = true, value_name = "DIR", num_args = 0..=1, require_equals = true,
          conflicts_with_all = ["batch", "serve", "report", "json", "files", "commands", "args", "keep_going"])]
    pub mcp: Option<Option<PathBuf>>,

    /// Refuse to start programs and to write files: shell commands, pipes, `>`, logs, history (not --generate)
    #[arg(long, hide_short_help = true, conflicts_with = "report")]
    pub no_shell: bool,

    /// Colour the output: auto (on a terminal, unless NO_COLOR, CLICOLOR or CLICOLOR_FORCE decide), always, never
    #[arg(long, value_name = "WHEN", hide_possible_values = true, value_parser = color_choice())]
    pub color: Option<ColorChoice>,
}

/// The `-x` and `-ex` options; [`Arguments::parse`] puts them into the order in which they stand.
#[derive(Debug, Args)]
struct Steps {
    /// Run the commands of a file
    #[arg(short = 'x', long = "command", value_name = "FILE", action = ArgAction::Append)]
    files: Vec<PathBuf>,

    /// Run a command (can be repeated; -x and -ex run in order)
    #[arg(long = "ex", value_name = "COMMAND", action = ArgAction::Append, allow_hyphen_values = true)]
    commands: Vec<String>,

    #[arg(skip)]
    in_order: Vec<Step>,
}

/// A command or a command file to run before the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// `-x FILE`
    File(PathBuf),
    /// `-ex COMMAND`
    Command(String),
}

/// The initial target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InitialTarget {
    /// No target.
    Nothing,
    /// A process, by its name or id.
    Process(TargetName),
    /// The demonstration process, which is to be started.
    Demonstration,
    /// A capture or core file.
    Capture(PathBuf),
}

/// The version, and the other facts that a bug report needs.
const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit  ",
    env!("PMDB_COMMIT"),
    "\ntarget  ",
    env!("PMDB_TARGET"),
    "\nbuild   ",
    env!("PMDB_PROFILE")
);

/// Returns what follows the options in the help.
fn after_help() -> String {
    let statuses: String = EXIT_STATUSES.iter().map(|(status, meaning)| format!("\n  {status}  {meaning}")).collect();
    format!(
        "Examples:\n{EXAMPLES}\n\nOptions precede the process. Long options also work with one dash, as in gdb.\n\
         Standard input that is not a terminal is a command file.\n\nExit status:{statuses}\n\n\
         At the prompt, type `help` for the commands."
    )
}

/// An error that is complete: the usage would add nothing.
fn refusal(message: impl std::fmt::Display) -> clap::Error {
    clap::Error::raw(ErrorKind::InvalidValue, format!("{message}\n"))
}

impl Arguments {
    /// Returns whether `--generate` is given.
    pub fn generates(&self) -> bool {
        !self.generate.is_empty()
    }

    /// Returns the text of `--generate`. Of `all`, which writes files, it says where they are.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub fn generated(&self) -> io::Result<String> {
        let mut command = Arguments::command();
        command.build();
        match self.generate.as_slice() {
            [all, directory] if all == "all" => {
                let written = generate::tree::write(Path::new(directory), &command);
                written.map(|()| format!("all files are in {directory}/share\n"))
            }
            [what, directory] => {
                let what = GeneratedFile::from_str(what, false).map_err(io::Error::other)?;
                generate::tree::write_one(Path::new(directory), what, &command).map(|()| String::new())
            }
            [what] => {
                Ok(GeneratedFile::from_str(what, false).map(|what| generate::text(what, &command)).unwrap_or_default())
            }
            _ => Ok(String::new()),
        }
    }

    /// Parses a command line, whose first word is the name of the program.
    ///
    /// # Errors
    /// Returns what is wrong with the command line, or the text of `--help` and `--version`.
    pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
        let arguments = Arguments::parse_unchecked(words)?;
        arguments.check_files()?;
        Ok(arguments)
    }

    /// Parses a command line without a look at its command files.
    fn parse_unchecked(words: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
        let words = with_double_dashes(words);
        let command = Arguments::command().color(help_color(&words));
        let matches = command.try_get_matches_from(words)?;
        let mut arguments = Arguments::from_arg_matches(&matches)?;
        arguments.steps.in_order = in_order(&matches);
        arguments.check_generate()?;
        if let Some(words) = arguments.take_command()? {
            if arguments.mcp.is_some() {
                let message = format!("unexpected `{words}`: with --mcp the client sends the commands");
                return Err(refusal(message));
            }
            arguments.steps.in_order = vec![Step::Command(words)];
            arguments.batch = true;
        }
        arguments.check_target()?;
        Ok(arguments)
    }

    fn check_generate(&self) -> Result<(), clap::Error> {
        let refused = |message: String| Err(refusal(message));
        match self.generate.as_slice() {
            [] => Ok(()),
            [what, directory] if directory.is_empty() => {
                refused(format!("the directory of `--generate {what}` has no name: `.` is the current one"))
            }
            [all, _] if all == "all" => Ok(()),
            [all] if all == "all" => refused("`--generate all` needs a directory: --generate all DIR".to_owned()),
            [what, ..] if GeneratedFile::from_str(what, false).is_err() => {
                let all = GeneratedFile::value_variants().iter().filter_map(ValueEnum::to_possible_value);
                let all: Vec<String> = all.map(|value| value.get_name().to_owned()).collect();
                refused(format!("unknown `{what}`, expected one of: {}, all", all.join(", ")))
            }
            _ => Ok(()),
        }
    }

    /// Returns the command file whose help `-x FILE --help` asks for.
    pub fn file_to_explain(words: impl IntoIterator<Item = OsString>) -> Option<PathBuf> {
        let is_help = |word: &OsString| word == "--help" || word == "-help" || word == "-h";
        let words = words.into_iter().filter(|word| !is_help(word));
        let arguments = Arguments::parse_unchecked(words).ok()?;
        arguments.steps().iter().find_map(|step| match step {
            Step::File(path) => Some(path.clone()),
            Step::Command(_) => None,
        })
    }

    /// Returns the arguments of -x and -ex.
    pub fn arguments(&self) -> &[String] {
        if self.arguments.is_empty() { &self.args } else { &self.arguments }
    }

    /// Returns the initial target.
    pub fn subject(&self) -> InitialTarget {
        if let Some(path) = &self.capture {
            return InitialTarget::Capture(path.clone());
        }
        match (&self.pid, &self.target) {
            (Some(name), _) => InitialTarget::Process(TargetName::of(name)),
            (None, Some(name)) if name == "demo" => InitialTarget::Demonstration,
            (None, Some(name)) => InitialTarget::Process(TargetName::of(name)),
            (None, None) => InitialTarget::Nothing,
        }
    }

    /// Returns the `-x` and `-ex` options in their order.
    pub fn steps(&self) -> &[Step] {
        &self.steps.in_order
    }
}

/// Returns whether an option has this long name.
fn is_long(name: &str) -> bool {
    let options = Arguments::command();
    let mut options = options.get_arguments();
    options.any(|one| one.get_long() == Some(name))
}

/// Returns whether a word is an option of commands, such as `--how`, and none of pmdb.
fn is_of_command(word: &str) -> bool {
    word.strip_prefix("--").is_some_and(|name| {
        let name = name.split('=').next().unwrap_or(name);
        !name.is_empty() && !is_long(name) && !matches!(name, "help" | "version")
    })
}

/// Returns the name of the command that the words begin with.
fn full_name(words: &[String]) -> Option<String> {
    let first = words.first()?;
    let two = words.get(..2).unwrap_or_default().join(" ");
    let is_command = |name: &str| LANGUAGE.names().any(|command| command.name == name || command.short.contains(&name));
    [&two, first].into_iter().find(|name| is_command(name)).cloned()
}

fn in_order(matches: &ArgMatches) -> Vec<Step> {
    let places = |option| matches.indices_of(option).into_iter().flatten();
    let files = matches.get_many("files").into_iter().flatten();
    let files = files.cloned().map(Step::File);
    let commands = matches.get_many("commands").into_iter().flatten();
    let commands = commands.cloned().map(Step::Command);
    let files = places("files").zip(files);
    let mut steps: Vec<_> = files.chain(places("commands").zip(commands)).collect();
    steps.sort_by_cached_key(|(place, _)| *place);
    steps.into_iter().map(|(_, step)| step).collect()
}

/// Adds a second dash to long options with one dash as in gdb, `-ex` and `-batch`. Values of options and the command
/// after the process are left alone.
fn with_double_dashes(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut changed = Vec::new();
    let mut is_value = true; // the program's name
    let mut options_ended = false;
    let (mut has_process, mut has_steps) = (false, false);
    let mut first = None;
    let mut words = words.into_iter().collect::<Vec<_>>().into_iter();
    while let Some(word) = words.next() {
        if is_value || options_ended {
            is_value = false;
            changed.push(word);
            continue;
        }
        if !word.to_string_lossy().starts_with('-') {
            // A command has its own options, also one that lacks its process.
            let mut behind = words.as_slice().iter().filter_map(|next| next.to_str());
            let is_command = word.to_str().is_some_and(|word| {
                LANGUAGE.is_alone(word, behind.clone())
                    || behind.next().is_some_and(is_of_command) && full_name(&[word.to_owned()]).is_some()
            });
            options_ended = !has_steps && (has_process || is_command);
            has_process = true;
            first.get_or_insert_with(|| word.to_string_lossy().into_owned());
            if options_ended {
                changed.push("--".into());
            }
            changed.push(word);
            continue;
        }
        // `walk --help` asks for the help of the command.
        if (word == "--help" || word == "-help")
            && let Some(name) = full_name(first.as_slice())
        {
            return ["pmdb", "help", &name].map(OsString::from).into();
        }
        options_ended = word == "--" || word == "--args" || word == "-args";
        let text = word.to_string_lossy();
        let name = text.trim_start_matches('-');
        let option = name.split('=').next().unwrap_or(name);
        let single = text.starts_with('-') && !text.starts_with("--");
        let is_target = matches!(name, "p" | "pid" | "c" | "capture");
        is_value = is_target || matches!(name, "ex" | "x" | "command" | "color" | "report" | "generate");
        has_process |= is_target || matches!(option, "pid" | "capture") || (single && name.starts_with('p'));
        has_steps |= matches!(option, "ex" | "x" | "command");
        let is_known = is_long(option) || matches!(option, "help" | "version");
        changed.push(if single && is_known { format!("-{text}").into() } else { word });
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[&str]) -> Result<Arguments, clap::Error> {
        Arguments::parse(std::iter::once("pmdb").chain(line.iter().copied()).map(OsString::from))
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn gdb_spellings_are_understood() {
        let arguments = parse(&["-q", "-nx", "-p", "812", "-batch", "-ex", "-batch", "-x", "f", "--ex=echo"]).unwrap();
        assert!(arguments.quiet && arguments.no_init && arguments.batch);
        assert_eq!(arguments.subject(), InitialTarget::Process(TargetName::Id(812)));
        let expected = [Step::Command("-batch".into()), Step::File("f".into()), Step::Command("echo".into())];
        assert_eq!(arguments.steps(), expected);
    }

    #[test]
    fn targets_are_ids_names_self_or_the_demonstration() {
        assert_eq!(parse(&[]).unwrap().subject(), InitialTarget::Nothing);
        assert_eq!(parse(&["demo"]).unwrap().subject(), InitialTarget::Demonstration);
        assert_eq!(parse(&["self"]).unwrap().subject(), InitialTarget::Process(TargetName::Itself));
        let name = InitialTarget::Process(TargetName::Name("demo".into()));
        assert_eq!(parse(&["-p", "demo"]).unwrap().subject(), name);
        // Too large for a process id: a name like any other, and no process has it.
        let name = InitialTarget::Process(TargetName::Name("99999999999".into()));
        assert_eq!(parse(&["99999999999"]).unwrap().subject(), name);
    }

    #[test]
    fn what_follows_the_process_or_args_is_for_the_commands() {
        // There is no such file.
        let parse = |line: &[&str]| Arguments::parse_unchecked(["pmdb"].iter().chain(line).map(OsString::from));
        let given = |line: &[&str]| parse(line).unwrap().arguments().to_vec();
        assert_eq!(given(&["-batch", "-x", "f", "812", "80", "a b"]), ["80", "a b"]);
        assert_eq!(given(&["-p", "812", "-x", "f", "-args", "-1", "--json"]), ["-1", "--json"]);
        assert!(given(&["-x", "f", "812"]).is_empty());
        assert_eq!(parse(&["-x", "f", "--args", "1"]).unwrap().subject(), InitialTarget::Nothing);
        let explained = |line: &[&str]| Arguments::file_to_explain(line.iter().map(OsString::from));
        assert_eq!(explained(&["pmdb", "-batch", "-x", "f", "--help"]), Some("f".into()));
        // The help of a file needs none of its arguments.
        for (name, _) in pmdb::session::SCRIPTS {
            let file = format!(":{name}");
            assert_eq!(explained(&["pmdb", "-x", &file, "--help"]), Some(file.into()));
        }
        assert_eq!(explained(&["pmdb", "--help"]), None);
        for line in [&["--help"][..], &["bash", "--help"]] {
            assert_eq!(parse(line).expect_err("the help of the program").kind(), ErrorKind::DisplayHelp, "{line:?}");
        }
    }

    #[test]
    fn after_two_dashes_nothing_is_an_option() {
        let words = ["pmdb", "--", "-batch"].map(OsString::from);
        assert_eq!(with_double_dashes(words.clone()), words);
    }

    #[test]
    fn what_follows_the_process_is_one_command() {
        let run = |line: &[&str]| {
            let arguments = parse(line).unwrap();
            assert!(arguments.batch && arguments.arguments().is_empty(), "{line:?}");
            (arguments.subject(), arguments.steps().to_vec())
        };
        let process = || InitialTarget::Process(TargetName::Id(812));
        let step = |text: &str| vec![Step::Command(text.to_owned())];
        for (line, subject, text) in [
            (&["812", "walk", "--how", "heap"][..], process(), "walk --how heap"),
            (&["-p", "812", "walk", "--how", "heap"], process(), "walk --how heap"),
            (&["-c", "f", "walk", "--how", "heap"], InitialTarget::Capture("f".into()), "walk --how heap"),
            (&["-p812", "regions"], process(), "regions"),
            (&["--json", "demo", "p", "1 + 1"], InitialTarget::Demonstration, "p 1 + 1"),
            (&["help"], InitialTarget::Nothing, "help"),
            (&["apropos", "--how"], InitialTarget::Nothing, "apropos --how"),
            (&["help", "info", "symbol"], InitialTarget::Nothing, "help info symbol"),
            (&["ps", "by", "rss"], InitialTarget::Nothing, "ps by rss"),
            (&["--json", "decode", "0x44"], InitialTarget::Nothing, "decode 0x44"),
            (&["show"], InitialTarget::Nothing, "show"),
            (&["info", "capabilities"], InitialTarget::Nothing, "info capabilities"),
            (&["summary", "frames", "--how"], InitialTarget::Nothing, "summary frames --how"),
            (&["summary", "--how", "frames"], InitialTarget::Nothing, "summary --how frames"),
            (&["who", "--how", "phys:0x1000"], InitialTarget::Nothing, "who --how phys:0x1000"),
            (&["--json", "flags", "--how", "pfn:1"], InitialTarget::Nothing, "flags --how pfn:1"),
            (&["812", "info", "symbol", "--help"], InitialTarget::Nothing, "help info symbol"),
            (&["812", "walk", "heap", "--help"], InitialTarget::Nothing, "help walk"),
            (&["-p", "812", "walk", "heap", "--help"], InitialTarget::Nothing, "help walk"),
            (&["walk", "heap", "--help"], InitialTarget::Nothing, "help walk"),
            (&["walk", "--help"], InitialTarget::Nothing, "help walk"),
            (&["t", "--help"], InitialTarget::Nothing, "help t"),
            (&["info", "symbol", "--help"], InitialTarget::Nothing, "help info symbol"),
            (&["capture", "/tmp/file", "cgroup", "/x"], InitialTarget::Nothing, "capture /tmp/file cgroup /x"),
            (&["812", "regions", ">", "/tmp/file"], process(), "regions > /tmp/file"),
            (&["812", "map > ./map.svg"], process(), "map > ./map.svg"),
        ] {
            assert_eq!(run(line), (subject, step(text)), "{line:?}");
        }
        let named = InitialTarget::Process(TargetName::Name("ps".into()));
        assert_eq!(run(&["-p", "ps", "show"]), (named, step("show")));
        // One word of two is no command.
        assert_eq!(parse(&["info"]).unwrap_err().exit_code(), 2);
        for line in [
            &["812", "regions", "|", "cat"][..],
            &["812", "!ls"],
            &["812", "shell", "ls"],
            &["-p", "812", "-x", "f", "walk"],
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line:?}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for line in [
            &["-p", "1", "-c", "f", "walk"],
            &["-frobnicate"][..],
            &["1", "2"],
            &["1", "-p", "2"],
            &["-ex"],
            &["--color", "pink"],
            &["translate"],
            &["walk", "heap"],
            &["-x", ":nope"],
            &["-batch", "-x", ":nope", "self"],
            &["-batch", "-x", ":dma", "self"],
            &["-batch", "-x", ":oom", "regions", "1M"],
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line:?}");
        }
    }
}
