//! The help of `shell`, `!`, `pipe` and redirection. The session runs them.

use super::{About, Group, example};

pub(super) const ABOUT_SHELL: About = About {
    name: "shell",
    group: Group::Language,
    summary: "run a shell command",
    text: "Runs the rest of the line with sh, and comes back when it ends; `!` first on a line does the same. An empty line never \
           repeats it. With `--json` its output goes to standard error: standard output has records alone.",
    examples: &[example("shell date", "runs date")],
};

pub(super) const ABOUT_PIPE: About = About {
    name: "pipe",
    group: Group::Language,
    summary: "send the output of a command to a shell command",
    text: "`pipe COMMAND | SHELL COMMAND`, or just `COMMAND | SHELL COMMAND`, as gdb has it: the output goes to the shell \
           command's input, without colours and without stopping at each screen.\n\n\
           `COMMAND > FILE` writes it to a file and `>> FILE` adds it, when the path begins with / ./ ../ ~/ or a quote; \
           anything else after > is a comparison, so that `walk heap where mapcount > 1` never makes a file. A file \
           whose name ends in .svg gets a picture, which only commands that draw can write (map); all other files get text, \
           or with `set json on` JSON.",
    examples: &[
        example("pipe regions | head -3", "the first three lines"),
        example("walk heap | wc -l", "the same without the word"),
    ],
};
