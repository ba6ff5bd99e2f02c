//! `source PATH`

use super::{About, Context, Flow, Group, Outcome, example};
use crate::eval;
use crate::lang::{Argument, Spanned};

pub(super) const ABOUT: About = About {
    name: "source",
    group: Group::Language,
    summary: "run the commands of a file",
    text: "Runs the lines of the file one after the other. The first error ends the file, and is shown with file, line \
           and column, and with the lines that led there; `--keep-going` on pmdb's command line carries on instead. Files may source \
           others, but not themselves. A path with blanks goes in quotes; ~/ is your home folder. In a command file a path begins \
           in the directory of that file.\n\n\
           The arguments of the file follow its path, separated by blanks: $arg0, $arg1 … and their number $argc. Each \
           is a value: a range or an expression, evaluated once, or else text.\n\n\
           A regular file is read whole before its first line runs, so that a block without its `end` is an error at once. \
           With #!/usr/bin/env -S pmdb -batch -x as its first line a file is a program: ./FILE PID ARGUMENTS. Its first \
           comments are its help: pmdb -x FILE --help.",
    examples: &[example("source scripts/cow.pmdb", "runs a command file")],
};

pub(super) fn run(context: &mut Context, path: &str, arguments: &[Spanned<Argument>]) -> Outcome {
    let arguments =
        arguments.iter().map(|argument| eval::argument(argument, context.state)).collect::<Result<_, _>>()?;
    Ok(Flow::Source(path.into(), arguments))
}
