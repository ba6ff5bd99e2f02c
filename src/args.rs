//! The command line: gdb's spellings, made into what clap understands, and then into [`Arguments`].

use clap::builder::styling::{AnsiColor, Styles};
use clap::error::ErrorKind;
use clap::{ArgAction, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, ValueEnum};
use pmdb::lang::{ColorChoice, TargetName};
use std::ffi::OsString;
use std::path::PathBuf;

/// What the command line asks for.
#[derive(Debug, Parser)]
#[command(
    name = "pmdb",
    version,
    about = "A gdb-style prompt for the memory behind a Linux process: where each byte physically lives, why a page is or is \
             not there, what the kernel thinks of it, and what changes while you look. pmdb reads /proc only: it never \
             stops, traces or changes the process, and runs beside gdb.",
    after_help = AFTER_HELP,
    override_usage = "pmdb [OPTIONS] [PID | NAME | demo] [ARGUMENT …]",
    styles = Styles::styled().header(AnsiColor::Green.on_default().bold()).literal(AnsiColor::Cyan.on_default())
)]
pub struct Arguments {
    /// Process to attach to: its PID, a thread id, its name, or `self`; `demo` starts a demonstration process
    #[arg(value_name = "PID | NAME | demo")]
    target: Option<String>,

    /// What follows the process is for the commands of -x and -ex: $arg0, $arg1 …
    #[arg(value_name = "ARGUMENT", requires = "target")]
    arguments: Vec<String>,

    /// Process to attach to, never taken for `demo`
    #[arg(short, long, value_name = "PID | NAME", conflicts_with = "target")]
    pid: Option<String>,

    #[command(flatten)]
    steps: Steps,

    /// The same where no process comes before them, as with -p; the last option of the line
    #[arg(long, value_name = "ARGUMENT", num_args = 0.., allow_hyphen_values = true, conflicts_with = "arguments")]
    args: Vec<String>,

    /// Write what came of `assert` to a file, as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// List the command files that are built in; -x :NAME runs one
    #[arg(long)]
    pub list_scripts: bool,

    /// Leave after the commands of -x and -ex; no prompt, no pager, no greeting
    #[arg(long)]
    pub batch: bool,

    /// Carry on after an error in a command file or among -ex commands; the exit status still tells of it
    #[arg(long)]
    pub keep_going: bool,

    /// Do not run $XDG_CONFIG_HOME/pmdb/init first
    #[arg(short, long = "nx")]
    pub no_init: bool,

    /// No greeting at the prompt
    #[arg(short, long)]
    pub quiet: bool,

    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,

    /// For programs: answer each line of standard input with JSON lines, the last of them {"type":"end",…}
    #[arg(long, conflicts_with = "batch")]
    pub serve: bool,

    /// When to colour what is printed: auto (on a terminal, unless NO_COLOR is set), always, never
    #[arg(long, value_name = "WHEN", hide_possible_values = true)]
    color: Option<Color>,
}

/// The `-x` and `-ex` options; [`Arguments::parse`] puts them into the order in which they stand.
#[derive(Debug, Args)]
struct Steps {
    /// Run the commands of a file
    #[arg(short = 'x', long = "command", value_name = "FILE", action = ArgAction::Append)]
    files: Vec<PathBuf>,

    /// Run a command; -x and -ex may be given often, and run in the order in which they stand
    #[arg(long = "ex", value_name = "COMMAND", action = ArgAction::Append, allow_hyphen_values = true)]
    commands: Vec<String>,

    #[arg(skip)]
    in_order: Vec<Step>,
}

/// What is run before the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// `-x FILE`
    File(PathBuf),
    /// `-ex COMMAND`
    Command(String),
}

/// What to look at from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Nothing yet.
    Nothing,
    /// A process.
    Process(TargetName),
    /// The demonstration process, which is still to be started.
    Demonstration,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

const AFTER_HELP: &str = "\
Examples:
  pmdb 812                                       attach to process 812 and open the prompt
  pmdb demo                                      start a demonstration process and attach to it
  pmdb -p 812 -batch -ex 'translate 0x7ffe1000'  one answer, for scripts
  pmdb -p sshd -x look.pmdb -batch               run a command file
  pmdb --json -p 812 -batch -ex 'walk heap'      one JSON object a line
  pmdb -batch -x :huge-coverage 812 80           a built-in command file with an argument; --help after it explains it

Long options may be written with one dash, as in gdb. Standard input that is not a terminal is a command file.
Exit status: 0 success, 1 error, 2 wrong command line, 3 no such target or it is gone, 4 not permitted,
5 what `watch … until` waits for did not come in time, 6 a shell command failed.
At the prompt: `help`.";

/// Long options that are also understood with a single dash.
const SINGLE_DASH: &[&str] = &[
    "args",
    "batch",
    "color",
    "command",
    "ex",
    "help",
    "json",
    "keep-going",
    "list-scripts",
    "nx",
    "pid",
    "quiet",
    "report",
    "serve",
    "version",
];

impl Arguments {
    /// Reads a command line, program name first.
    ///
    /// # Errors
    /// What is wrong with it, or the text that `--help` and `--version` ask for.
    pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
        let matches = Arguments::command().try_get_matches_from(with_double_dashes(words))?;
        let mut arguments = Arguments::from_arg_matches(&matches)?;
        arguments.steps.in_order = in_order(&matches);
        // Without a command to give them to, a second word is a mistake.
        if let (Some(first), true) = (arguments.arguments.first(), arguments.steps().is_empty()) {
            let message =
                format!("unexpected argument '{first}' found: there is no -x or -ex to give it to");
            return Err(Arguments::command().error(ErrorKind::UnknownArgument, message));
        }
        Ok(arguments)
    }

    /// The command file whose help is asked for: `-x FILE --help`.
    pub fn file_to_explain(words: impl IntoIterator<Item = OsString>) -> Option<PathBuf> {
        let is_help = |word: &OsString| word == "--help" || word == "-help" || word == "-h";
        let words = words.into_iter().filter(|word| !is_help(word));
        let arguments = Arguments::parse(words).ok()?;
        arguments.steps().iter().find_map(|step| match step {
            Step::File(path) => Some(path.clone()),
            Step::Command(_) => None,
        })
    }

    /// What the commands of -x and -ex are given.
    pub fn arguments(&self) -> &[String] {
        match self.arguments.is_empty() {
            true => &self.args,
            false => &self.arguments,
        }
    }

    /// What to look at from the start.
    pub fn subject(&self) -> Subject {
        match (&self.pid, &self.target) {
            (Some(name), _) => Subject::Process(target_name(name)),
            (None, Some(name)) if name == "demo" => Subject::Demonstration,
            (None, Some(name)) => Subject::Process(target_name(name)),
            (None, None) => Subject::Nothing,
        }
    }

    /// The `-x` and `-ex` options in the order in which they stand.
    pub fn steps(&self) -> &[Step] {
        &self.steps.in_order
    }

    /// `--color`, if it is given.
    pub fn color(&self) -> Option<ColorChoice> {
        Some(match self.color? {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        })
    }
}

fn target_name(text: &str) -> TargetName {
    match text.parse::<u32>() {
        // As at the prompt: a process called 007 is a name.
        Ok(id) if id.to_string() == text => TargetName::Id(id),
        _ if text == "self" => TargetName::Itself,
        _ => TargetName::Name(text.to_owned()),
    }
}

fn in_order(matches: &ArgMatches) -> Vec<Step> {
    let files = matches
        .indices_of("files")
        .into_iter()
        .flatten()
        .zip(matches.get_many::<PathBuf>("files").into_iter().flatten())
        .map(|(place, file)| (place, Step::File(file.clone())));
    let commands = matches
        .indices_of("commands")
        .into_iter()
        .flatten()
        .zip(matches.get_many::<String>("commands").into_iter().flatten())
        .map(|(place, command)| (place, Step::Command(command.clone())));
    let mut steps: Vec<_> = files.chain(commands).collect();
    steps.sort_by_key(|(place, _)| *place);
    steps.into_iter().map(|(_, step)| step).collect()
}

/// Gives gdb's `-ex`, `-batch` and so on their second dash. The value that follows an option is left as it is.
fn with_double_dashes(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut changed = Vec::new();
    let mut is_value = true; // the program's name
    let mut options_ended = false;
    for word in words {
        if is_value || options_ended {
            is_value = false;
            changed.push(word);
            continue;
        }
        options_ended = word == "--" || word == "--args" || word == "-args";
        let text = word.to_string_lossy();
        let name = text.trim_start_matches('-');
        let option = name.split('=').next().unwrap_or(name);
        let single = text.starts_with('-') && !text.starts_with("--");
        is_value = text.starts_with('-')
            && matches!(
                name,
                "ex" | "x" | "command" | "p" | "pid" | "color" | "report"
            );
        changed.push(if single && SINGLE_DASH.contains(&option) {
            format!("-{text}").into()
        } else {
            word
        });
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[&str]) -> Result<Arguments, clap::Error> {
        Arguments::parse(
            std::iter::once("pmdb")
                .chain(line.iter().copied())
                .map(OsString::from),
        )
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn gdb_spellings_are_understood() {
        let arguments = parse(&[
            "-q",
            "-nx",
            "-p",
            "812",
            "-batch",
            "-ex",
            "-batch",
            "-x",
            "f",
            "--ex=echo",
        ])
        .unwrap();
        assert!(arguments.quiet && arguments.no_init && arguments.batch);
        assert_eq!(arguments.subject(), Subject::Process(TargetName::Id(812)));
        let expected = [
            Step::Command("-batch".into()),
            Step::File("f".into()),
            Step::Command("echo".into()),
        ];
        assert_eq!(arguments.steps(), expected);
    }

    #[test]
    fn targets_are_ids_names_self_or_the_demonstration() {
        assert_eq!(parse(&[]).unwrap().subject(), Subject::Nothing);
        assert_eq!(parse(&["demo"]).unwrap().subject(), Subject::Demonstration);
        assert_eq!(
            parse(&["self"]).unwrap().subject(),
            Subject::Process(TargetName::Itself)
        );
        let name = Subject::Process(TargetName::Name("demo".into()));
        assert_eq!(parse(&["-p", "demo"]).unwrap().subject(), name);
        // Too large for a process id: a name like any other, and no process has it.
        let name = Subject::Process(TargetName::Name("99999999999".into()));
        assert_eq!(parse(&["99999999999"]).unwrap().subject(), name);
    }

    #[test]
    fn what_follows_the_process_or_args_is_for_the_commands() {
        let given = |line: &[&str]| parse(line).unwrap().arguments().to_vec();
        assert_eq!(
            given(&["-batch", "-x", "f", "812", "80", "a b"]),
            ["80", "a b"]
        );
        assert_eq!(
            given(&["-p", "812", "-x", "f", "-args", "-1", "--json"]),
            ["-1", "--json"]
        );
        assert!(given(&["-x", "f", "812"]).is_empty());
        assert_eq!(
            parse(&["-x", "f", "--args", "1"]).unwrap().subject(),
            Subject::Nothing
        );
        let explained = |line: &[&str]| Arguments::file_to_explain(line.iter().map(OsString::from));
        assert_eq!(
            explained(&["pmdb", "-batch", "-x", "f", "--help"]),
            Some("f".into())
        );
        assert_eq!(explained(&["pmdb", "--help"]), None);
    }

    #[test]
    fn after_two_dashes_nothing_is_an_option() {
        let words = ["pmdb", "--", "-batch"].map(OsString::from);
        assert_eq!(with_double_dashes(words.clone()), words);
    }

    #[test]
    fn nonsense_is_refused() {
        for line in [
            &["-frobnicate"][..],
            &["1", "2"],
            &["1", "-p", "2"],
            &["-ex"],
            &["--color", "pink"],
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line:?}");
        }
    }
}
