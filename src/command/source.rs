//! `source PATH`

use super::{About, Context, Example, Flow, Group, Outcome};

pub(super) const ABOUT: About = About {
    name: "source",
    group: Group::Language,
    summary: "run the commands of a file",
    text: "Runs the lines of the file one after the other. The first error ends the file, and is shown with file, line \
           and column; `--keep-going` on pmdb's command line carries on instead. Files may source others, but not \
           themselves. A path with blanks goes in quotes; ~/ is your home folder.",
    examples: &[Example {
        line: "source scripts/cow.pmdb",
        does: "runs a command file",
    }],
};

pub(super) fn run(_context: &mut Context, path: &str) -> Outcome {
    Ok(Flow::Source(path.into()))
}
