//! The lines that blocks are made of: `if E`, `foreach $x in …`, `end`. The session runs them.

use super::floor::{About, Command as _, CommandName, Group, example};
use super::regions::Regions;
use super::walk;
use crate::lang::parser::{Failed, Parsed, TokenKind, Tokens, expression, listed, variable, with_commas, word};
use crate::lang::{BlockLine, Control, Expected, Opening, Rows, Spanned, Statement};
use crate::report::HelpExample;
use nom::Parser;
use nom::branch::alt;
use nom::combinator::{cut, map, peek};
use nom::sequence::terminated;
use std::rc::Rc;

const fn about(
    name: CommandName,
    summary: &'static str,
    text: &'static str,
    examples: &'static [HelpExample],
) -> About {
    About { name, group: Group::Scripts, summary, text, examples }
}

const IF_EXAMPLES: &[HelpExample] = &[example(
    "if count(demo_buffer where present) > 0\necho there\nelse\necho not there\nend",
    "print one of two texts",
)];

const WHILE_EXAMPLES: &[HelpExample] = &[example(
    "set $i = 0\nwhile 1\nset $i = $i + 1\nif $i == 2\nloop_continue\nend\nif $i > 3\nloop_break\nend\nprint $i\nend",
    "print 1 and 3",
)];

const DEFINE_EXAMPLES: &[HelpExample] = &[example(
    "define resident\nprint rss($arg0)\nend\ndocument resident\nThe resident bytes of a range.\nend\nresident demo_buffer",
    "define a command with its help, and run it",
)];

pub(super) const IF: About = about(
    CommandName::new("if").block(BlockLine::Opens),
    "run lines if a condition is true",
    "\
Runs the lines up to `else` or `end` if the expression is true (a number that is not zero). If it is false, runs the \
lines between `else` and `end`.

`and`, `or` and `not` join and negate comparisons, as `&&`, `||` and `!` do: if rss(heap) > 1M and not exclusive($sp). \
As in gdb, each word needs a line of its own.",
    IF_EXAMPLES,
);

pub(super) const ELSE: About = about(
    CommandName::new("else").block(BlockLine::Inside),
    "begin the lines for a false condition",
    "Separates the lines of an `if` for a true condition from those for a false one.",
    IF_EXAMPLES,
);

pub(super) const END: About = about(
    CommandName::new("end").block(BlockLine::Inside),
    "end a block",
    "Ends the last `if`, `while`, `foreach`, `define` or `document` that is still open. In an expression, end(RANGE) is a \
     function.",
    IF_EXAMPLES,
);

pub(super) const WHILE: About = about(
    CommandName::new("while").block(BlockLine::Opens),
    "run lines as long as a condition is true",
    "\
Runs the lines up to `end` again and again while the expression is true. `loop_break` leaves the loop, and \
`loop_continue` begins its next turn. Ctrl-C ends it at once.

`and`, `or` and `not` join and negate comparisons, as `&&`, `||` and `!` do.",
    WHILE_EXAMPLES,
);

pub(super) const LOOP_BREAK: About = about(
    CommandName::new("loop_break").block(BlockLine::Inside),
    "leave a loop",
    "Leaves the innermost `while` or `foreach` around it.",
    WHILE_EXAMPLES,
);

pub(super) const LOOP_CONTINUE: About = about(
    CommandName::new("loop_continue").block(BlockLine::Inside),
    "begin the next turn of a loop",
    "Skips the rest of this turn of the innermost `while` or `foreach` around it.",
    WHILE_EXAMPLES,
);

pub(super) const FOREACH: About = about(
    CommandName::new("foreach").block(BlockLine::Opens),
    "run lines for each region, each row of a walk, or each value",
    "\
Runs the lines up to `end` once for each of these, and sets a variable to it:

  in regions …      the range of each region, with the clauses of `regions`
  in walk RANGE …   the range of each row of the walk, with the clauses of `walk` except `by`
  in VALUE, VALUE   each value
  in threads        the stack pointer of each thread; $_thread is its id, and $pc and $sp are its registers

The list is made once, before the first iteration. `attach` and `detach` are not allowed. The kernel shows the stack \
pointer of a waiting thread only. A thread that runs all the time is left out, with a note, and counted in $_running.",
    &[
        example(
            "foreach $r in regions where writable and rss > 64K\nprint size($r)\nend",
            "print the size of each of these regions",
        ),
        example("foreach $p in walk demo_buffer where present\nprint $p\nend", "print the range of each row of a walk"),
    ],
);

pub(super) const DEFINE: About = about(
    CommandName::new("define").block(BlockLine::Opens),
    "define a command",
    "\
Defines a command from the lines up to `end`. Call it by its whole name, with arguments separated by spaces. $arg0, \
$arg1 and so on are their values, and $argc is their number. Arguments are values, never text that is put into lines. \
One that no line reads is an error, unless a line reads $argc.

`document` writes its help. The name cannot be that of a pmdb command.",
    DEFINE_EXAMPLES,
);

pub(super) const DOCUMENT: About = about(
    CommandName::new("document").block(BlockLine::Opens),
    "write the help of a user-defined command",
    "Reads the help of the command from the lines up to one that is only `end`. `help NAME` shows them, and lists show \
     the first of them.",
    DEFINE_EXAMPLES,
);

fn opening_line(opened: Parsed<'_, Opening>) -> Parsed<'_, Statement> {
    opened.map(|(behind, opening)| (behind, Statement::Control(Control::Open(opening))))
}

pub(super) fn if_line(input: Tokens<'_>) -> Parsed<'_, Statement> {
    opening_line(map(cut(expression), Opening::If).parse(input))
}

pub(super) fn while_line(input: Tokens<'_>) -> Parsed<'_, Statement> {
    opening_line(map(cut(expression), Opening::While).parse(input))
}

pub(super) fn foreach_line(input: Tokens<'_>) -> Parsed<'_, Statement> {
    let (input, (variable, _, rows)) = (cut(variable), cut(word("in")), cut(rows)).parse(input)?;
    opening_line(Ok((input, Opening::Foreach { variable, rows })))
}

pub(super) fn define_line(input: Tokens<'_>) -> Parsed<'_, Statement> {
    opening_line(map(cut(new_name), Opening::Define).parse(input))
}

pub(super) fn document_line(input: Tokens<'_>) -> Parsed<'_, Statement> {
    opening_line(map(cut(new_name), Opening::Document).parse(input))
}

pub(super) fn else_line(input: Tokens<'_>) -> Parsed<'_, Statement> {
    Ok((input, Statement::Control(Control::Else)))
}

pub(super) fn end_line(input: Tokens<'_>) -> Parsed<'_, Statement> {
    Ok((input, Statement::Control(Control::End)))
}

pub(super) fn loop_break_line(input: Tokens<'_>) -> Parsed<'_, Statement> {
    Ok((input, Statement::Control(Control::Break)))
}

pub(super) fn loop_continue_line(input: Tokens<'_>) -> Parsed<'_, Statement> {
    Ok((input, Statement::Control(Control::Continue)))
}

/// A name for a new command.
pub(super) fn new_name(input: Tokens<'_>) -> Parsed<'_, Spanned<String>> {
    input.accept(Expected::NewCommand, |token| (token.kind == TokenKind::Name).then(|| token.text.to_owned()))
}

/// `rows`. A symbol may be called `regions` or `walk`: what follows decides. A symbol called `threads` needs quotes.
fn rows(input: Tokens<'_>) -> Parsed<'_, Rows> {
    let commands = alt((
        terminated(region_rows, peek(end)),
        terminated(page_rows, peek(end)),
        terminated(map(word("threads"), |_| Rows::Threads), peek(end)),
    ))
    .parse(input);
    let failure = match commands {
        Ok(found) => return Ok(found),
        Err(failure) => failure,
    };
    let values = map(with_commas(listed), Rows::Values);
    match terminated(values, peek(end)).parse(input) {
        Err(nom::Err::Error(_)) => Err(failure),
        values => values,
    }
}

fn end(input: Tokens<'_>) -> Parsed<'_, ()> {
    match input.first().map(|token| &token.kind) {
        None | Some(TokenKind::Comment) => Ok((input, ())),
        _ => Err(nom::Err::Error(Failed)),
    }
}

fn region_rows(input: Tokens<'_>) -> Parsed<'_, Rows> {
    let (behind, at) = word("regions")(input)?;
    let (behind, command) = Regions::parse(behind)?;
    Ok((behind, Rows::Of(Spanned::new(Rc::new(command), at))))
}

fn page_rows(input: Tokens<'_>) -> Parsed<'_, Rows> {
    let (behind, at) = word("walk")(input)?;
    let (behind, command) = walk::walk_rows(behind)?;
    Ok((behind, Rows::Of(Spanned::new(Rc::new(command), at))))
}
