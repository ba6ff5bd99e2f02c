//! The help of blocks: `if`, `while`, `foreach`, `define` and their other words. The session runs them.

use super::{About, Group, example};
use crate::report::HelpExample;

const fn about(
    name: &'static str,
    summary: &'static str,
    text: &'static str,
    examples: &'static [HelpExample],
) -> About {
    About { name, group: Group::Scripts, summary, text, examples }
}

const IF_EXAMPLES: &[HelpExample] =
    &[example("if count(demo_buffer where present) > 0\necho there\nelse\necho not there\nend", "one of two")];

const WHILE_EXAMPLES: &[HelpExample] = &[example(
    "set $i = 0\nwhile 1\nset $i = $i + 1\nif $i == 2\nloop_continue\nend\nif $i > 3\nloop_break\nend\nprint $i\nend",
    "prints 1 and 3",
)];

const DEFINE_EXAMPLES: &[HelpExample] = &[example(
    "define resident\nprint rss($arg0)\nend\ndocument resident\nThe resident bytes of a range.\nend\nresident demo_buffer",
    "a command of your own, with its help",
)];

pub(super) const IF: About = about(
    "if",
    "run lines if a condition holds",
    "The lines up to `end`, or up to `else`, run if the expression is true (a number that is not zero); those between `else` \
     and `end` run if it is false. Comparisons are joined with && and ||, and ! negates one: if rss(heap) > 1M && !exclusive($sp). \
     As in gdb each word has a line of its own.",
    IF_EXAMPLES,
);

pub(super) const ELSE: About = about(
    "else",
    "the other lines of an if",
    "Separates the lines of an `if` for a true condition from those for a false one.",
    IF_EXAMPLES,
);

pub(super) const END: About = about(
    "end",
    "the end of a block",
    "Closes the last `if`, `while`, `foreach`, `define` or `document` that is still open. `end(RANGE)` in an expression is a \
     function.",
    IF_EXAMPLES,
);

pub(super) const WHILE: About = about(
    "while",
    "run lines as long as a condition holds",
    "The lines up to `end` run again and again while the expression is true. `loop_break` leaves the loop, `loop_continue` \
     begins its next turn; Ctrl-C ends it at once. Comparisons are joined with && and ||, and ! negates one.",
    WHILE_EXAMPLES,
);

pub(super) const LOOP_BREAK: About =
    about("loop_break", "leave a loop", "Leaves the innermost `while` or `foreach` around it.", WHILE_EXAMPLES);

pub(super) const LOOP_CONTINUE: About = about(
    "loop_continue",
    "begin the next turn of a loop",
    "Skips the rest of this turn of the innermost `while` or `foreach` around it.",
    WHILE_EXAMPLES,
);

pub(super) const FOREACH: About = about(
    "foreach",
    "run lines for each row of a walk, each region, each value",
    "`foreach $r in regions …` sets $r to the range of each region, `foreach $p in walk RANGE …` sets $p to the range of each row of the \
     walk, with the clauses that the commands have (but no groups of `walk`), and `foreach $s in VALUE, VALUE` goes through values. \
     `foreach $t in threads` sets $t to the stack pointer of each thread, and $_thread to its id. The kernel shows the stack \
     pointer of a waiting thread only: a thread that runs all the time is left out, with a note, and counted in $_running. The rows come from one \
     sweep before the first turn. The lines may not attach or detach.",
    &[
        example(
            "foreach $r in regions where writable and rss > 64K\nprint size($r)\nend",
            "the size of some regions, one by one",
        ),
        example("foreach $p in walk demo_buffer where present\nprint $p\nend", "the range of each row of a walk"),
    ],
);

pub(super) const DEFINE: About = about(
    "define",
    "make a command of your own",
    "The lines up to `end` are what the command does. It is called by its whole name; $arg0, $arg1 … are the values of its \
     arguments, separated by blanks, and $argc is their number. Arguments are values, never text that is put into lines. \
     `document` gives it a help. It cannot have the name of a pmdb command.",
    DEFINE_EXAMPLES,
);

pub(super) const DOCUMENT: About = about(
    "document",
    "write the help of a command of your own",
    "`help NAME` shows the lines up to one that is only `end`; lists show the first of them.",
    DEFINE_EXAMPLES,
);
