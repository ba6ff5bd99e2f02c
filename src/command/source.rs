//! `source FILE [ARGUMENT …]`, and paths that begin with `~`.

use crate::command::floor::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use crate::eval;
use crate::lang::display::write_quoted;
use crate::lang::parser::{Parsed, Tokens, arguments_of, pattern, split_text};
use crate::lang::{Argument, Expected, Spanned};
use std::fmt::{self, Formatter};
use std::path::{Path, PathBuf};

/// `source PATH ARGUMENT …`
#[derive(Debug)]
pub struct SourceScript {
    /// The command file; a leading `~/` is still as typed.
    pub path: Spanned<String>,
    /// Its `$arg0`, `$arg1` …
    arguments: Vec<Spanned<Argument>>,
}

impl Command for SourceScript {
    const ABOUT: About = About {
        name: CommandName::new("source").detached(),
        group: Group::Language,
        summary: "run the commands of a file",
        text: "\
Runs the lines of a file one after the other. The arguments that follow its path, separated by spaces, are $arg0, \
$arg1 and so on, and $argc is their number. Each is a value: a range or an expression, evaluated once, or otherwise \
a text.

The first error ends the file, and is shown with file, line and column, and with the lines that led there. \
`--keep-going` on pmdb's command line continues instead. A file may source other files, but not itself. A regular \
file is read whole before its first line runs: a block without its `end` is an error at once. So is a wrong line in a \
block, even if it would not run. An unknown command in a block is one too, unless the file, init or a sourced file \
defines it.

Put a path with spaces in quotes. ~/ is your home directory. In a command file a path begins in the directory of \
that file.

With #!/usr/bin/env -S pmdb -batch -x as its first line, a file is a program: ./FILE PID ARGUMENTS. Its first \
comments are its help, which `source FILE --help` prints, or in a shell `pmdb -x FILE --help`.",
        examples: &[
            example("source :hugepages", "run a built-in command file"),
            example("source :dma --help", "explain a built-in command file"),
        ],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (behind, path) = pattern(Expected::Script)(input)?;
        let arguments = arguments_of(behind);
        Ok((split_text(behind).1, SourceScript { path, arguments }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_quoted(f, Some(&self.path.node))?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {}", argument.node.text))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        if self.wants_help() {
            return Ok(Flow::Source(self.path.node.clone().into(), Vec::new()));
        }
        let arguments =
            self.arguments.iter().map(|argument| eval::argument(argument, context.state)).collect::<Result<_, _>>()?;
        Ok(Flow::Source(self.path.node.clone().into(), arguments))
    }
}

impl SourceScript {
    /// The arguments of the file, as they were typed.
    pub fn arguments(&self) -> &[Spanned<Argument>] {
        &self.arguments
    }

    /// Whether the comments at the beginning of the file are to be printed, instead of running it.
    pub fn wants_help(&self) -> bool {
        matches!(&self.arguments[..], [only] if only.node.text == "--help")
    }
}

/// Name and text, in the order of `--list-scripts`. `-x :NAME` runs one.
pub static SCRIPTS: &[(&str, &str)] = &[
    ("dma", include_str!("../../scripts/dma.pmdb")),
    ("fork-cost", include_str!("../../scripts/fork-cost.pmdb")),
    ("guard-stacks", include_str!("../../scripts/guard-stacks.pmdb")),
    ("hugepages", include_str!("../../scripts/hugepages.pmdb")),
    ("leak", include_str!("../../scripts/leak.pmdb")),
    ("oom", include_str!("../../scripts/oom.pmdb")),
    ("same-page", include_str!("../../scripts/same-page.pmdb")),
    ("swapped", include_str!("../../scripts/swapped.pmdb")),
    ("tour", include_str!("../../scripts/tour.pmdb")),
];

/// The path that the user meant: a leading `~/` is the home folder.
pub fn expand_home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) if !home.as_os_str().is_empty() => Path::new(&home).join(rest),
        _ => PathBuf::from(path),
    }
}
