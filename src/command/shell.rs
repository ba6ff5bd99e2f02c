//! The help of `shell`, `!`, `pipe` and redirection. The session runs them.

use super::floor::{About, CommandName, Group, example};

pub(super) const ABOUT_SHELL: About = About {
    name: CommandName::new("shell").short(&["!"]).detached(),
    group: Group::Language,
    summary: "run a shell command",
    text: "\
Runs the rest of the line with sh, and returns when it ends. A `!` at the beginning of a line does the same. An \
empty line never repeats it. With `--json` its output is written to standard error: standard output contains only \
records.",
    examples: &[example("shell date", "run date")],
};

pub(super) const ABOUT_PIPE: About = About {
    name: CommandName::new("pipe").detached(),
    group: Group::Language,
    summary: "send the output of a command to a shell command",
    text: "\
Sends the output to the input of a shell command, as in gdb, without colours and without stopping at each screen. \
The word pipe may be left out.

  COMMAND | SHELL-COMMAND  send the output to a shell command
  COMMAND > FILE           write the output to a file
  COMMAND >> FILE          append the output to a file

The path of a file begins with / ./ ../ ~/ or a quote. Anything else after > is a comparison: `walk heap where \
mapcount > 1` never makes a file. A file whose name ends in .svg gets a picture, from a command that draws (map). \
All other files get text, or JSON with `set json on`.",
    examples: &[
        example("pipe regions | head -3", "print the first three lines"),
        example("walk heap | wc -l", "count the lines; the word pipe is left out"),
    ],
};
