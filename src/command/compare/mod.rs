//! `compare PID …`: compares the attached process with others, page by page.

mod over_time;
mod records;
mod round;

use over_time::{SampleTimes, UntilCopied, until_copied};

use super::account::family::{Member, member};
use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Nature, Outcome, example};
use super::rows::RowLimit;
use super::timeline::TimelineBuilder;
use super::{attach, ps, snapshot};
use crate::eval::{self, Value};
use crate::inspect::AddressSpace;
use crate::kernel::{Key, Name};
use crate::lang::parser::{Parsed, Tokens, after, clause, cut_to, key, many, mark, range, time, word};
use crate::lang::{self, Expected, Expression, Spanned, TakenKeys, Time, WrittenKey, display};
use crate::process;
#[cfg(test)]
use crate::render::Record;
use crate::report::Shape;
use nom::Parser;
use nom::branch::alt;
use nom::combinator::{map, opt};
use nom::sequence::preceded;
use round::ComparisonRound;
use std::collections::BTreeSet;
use std::fmt::{self, Formatter};
use std::path::Path;

/// The keys of `compare … by`: by symbol, pages that begin in none are added up by region.
const KEYS: TakenKeys = TakenKeys::only(&[Key::Region, Key::Symbol]);

/// `compare PID …|children [in RANGE] [by KEY] [top N | limit N] [every DURATION] [for DURATION] [until TEST]
/// [as timeline]`
#[derive(Debug)]
pub struct Compare {
    /// With which processes.
    with: OtherProcess,
    /// Of what; all if absent.
    range: Option<Spanned<lang::Range>>,
    /// By what the pages add up; by region if absent.
    by: Option<WrittenKey>,
    /// Which rows.
    cut: Option<lang::LimitClause>,
    /// Time between two samples.
    every: Option<Spanned<Time>>,
    /// Stop after this time.
    duration: Option<Spanned<Time>>,
    /// Stop when this holds.
    until: Option<UntilCopied>,
    /// Whether to draw a timeline instead of a line for each sample.
    is_timeline: bool,
}

/// Which process `compare` compares with.
#[derive(Clone, Debug, PartialEq)]
pub enum OtherProcess {
    /// Each of these: a process id, or a text that is the name of a process.
    Processes(Vec<Spanned<Expression>>),
    /// Each child of the attached process.
    Children,
}

/// The words that are no bare names of processes: those that begin a clause, and slips with a hint of their own.
const NO_NAMES: [&str; 12] =
    ["children", "in", "by", "top", "limit", "every", "for", "until", "as", "parent", "child", "from"];

/// `process`: a process id, or a name as in `account of NAME`.
fn other_process(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    if input.first().is_some_and(|token| NO_NAMES.contains(&token.text)) {
        return input.fail(Expected::Process);
    }
    match member(input)? {
        (behind, Member::Value(value)) => Ok((behind, value)),
        (behind, Member::Named(name)) => Ok((behind, name.map(Expression::Text))),
    }
}

impl Command for Compare {
    const RECORDS: &'static [Shape] = records::RECORDS;

    const ABOUT: About = About {
        name: CommandName::new("compare").of_session().whole(),
        group: Group::Time,
        summary: "compare the memory of two processes, as after a fork",
        text: "\
Compares the attached process with another one, region by region, and adds up pages:

  shared         both map the same frame
  yet to copy    shared pages that the next write of the attached process copies
  copied         both have the page, in different frames
  only attached  only the attached process maps the page
  only other     only the other process maps the page

After a fork, `copied` is the cost of copy-on-write so far, and `yet to copy` the cost still possible. Without a fork \
between the two, pages in different frames count as `only attached` and `only other`. So does a page of a file or of \
shared memory, until the other process accesses it too.

  A, B, …    these processes: each a PID, a variable or a name
  children   all child processes
  in RANGE   only this part
  by region  a row for each region
  by symbol  a row for each symbol, with the pages that begin in it
  limit N    the first N rows
  top N      the N rows of which most was copied

With one of these options it compares again and again, and prints a line for each sample:

  every DURATION         the time between samples (default 1s)
  for DURATION           end after this time
  until copied > AMOUNT  end as soon as so many bytes are copied; also `shared` and `to_copy`, and <, <= and >=
  as timeline            a picture: a row for each part of private memory, a column for each sample, and marks where a
                         process forked or ended; parts with under 1 % of the copied pages share one row

`help copies` explains the rules of counting, for files, siblings and several processes. $_shared, $_copied and $_about_to_copy are the bytes of all.

Needs frame numbers (CAP_SYS_ADMIN).",
        examples: &[
            example("compare children", "compare with each child"),
            example("compare children by symbol", "list the variables that a fork has copied"),
            example("compare children in heap", "compare the heap with that of each child"),
            example("compare children every 100ms for 300ms", "show how the copied memory grows"),
            example("compare children every 50ms for 300ms as timeline", "show where it is copied"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        records::samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let children = map(word("children"), |_| OtherProcess::Children);
        let processes = (other_process, many(preceded(opt(mark(",")), other_process)))
            .map(|(first, more)| [vec![first], more].concat());
        let processes = map(processes, OtherProcess::Processes);
        let (mut input, with) = alt((children, processes)).parse(input)?;
        let (mut in_, mut by, mut cut, mut every, mut duration, mut until) = (None, None, None, None, None, None);
        let mut timeline = None;
        while clause(&mut input, &mut in_, after("in", range))?
            || clause(&mut input, &mut by, after("by", key(KEYS)))?
            || clause(&mut input, &mut cut, cut_to)?
            || clause(&mut input, &mut every, after("every", time))?
            || clause(&mut input, &mut duration, after("for", time))?
            || clause(&mut input, &mut until, after("until", until_copied))?
            || clause(&mut input, &mut timeline, after("as", word("timeline")))?
        {}
        Ok((input, Compare { with, range: in_, by, cut, every, duration, until, is_timeline: timeline.is_some() }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.with {
            OtherProcess::Children => f.write_str(" children")?,
            OtherProcess::Processes(processes) => {
                // Without a comma, an address and the text behind it are one value, as gdb prints it.
                let listed: Vec<String> = processes.iter().map(|process| process.node.to_string()).collect();
                write!(f, " {}", listed.join(", "))?;
            }
        }
        display::clause(f, "in", self.range.as_ref().map(|range| &range.node))?;
        display::clause(f, "by", self.by.as_ref())?;
        display::cut(f, self.cut.as_ref())?;
        display::clause(f, "every", self.every.as_ref().map(|time| &time.node))?;
        display::clause(f, "for", self.duration.as_ref().map(|time| &time.node))?;
        display::clause(f, "until", self.until.as_ref())?;
        display::clause(f, "as", self.is_timeline.then_some("timeline"))
    }

    fn nature(&self) -> Nature {
        Nature { draws: self.is_timeline, ends_by_interrupt: self.is_over_time(), ..Nature::default() }
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let round = self.begin(context)?;
        if self.is_over_time() {
            let time = |time| eval::time(time, context.state);
            let every = self.every.as_ref().map(time).transpose()?;
            let duration = self.duration.as_ref().map(time).transpose()?;
            let timeline = self.is_timeline.then(|| TimelineBuilder::of_copies(round.page_size()));
            return over_time::run(
                &round,
                &SampleTimes { every, duration, until: self.until.as_ref() },
                timeline,
                context,
            );
        }
        let others = round.find_others()?;
        if others.is_empty() {
            return Err(no_children(round.mine));
        }
        let is_single = others.len() == 1;
        let mut is_any = false;
        let is_shown = self.by.is_some() || is_single;
        if !is_shown && self.cut.is_some() {
            let rows = "of several processes only the sums are shown: `by region` adds the rows that the limit counts";
            context.sink.note(rows)?;
        }
        let space = AddressSpace::of(&round.target)?;
        let mut sample = round.sample(&space, None, context.state, context.sink)?;
        sample.each(&others, context.sink, |found, sink| {
            is_any = true;
            let memory = (!is_single).then(|| ps::memory(&round.target.machine, found.other.pid));
            round.show(found, is_shown, memory, sink)
        })?;
        let sums = sample.into_sums();
        round.show_total(sums.processes(), 0, sums.finish().0, context.sink)?;
        if is_any { Ok(Flow::Done) } else { Err(no_children(round.mine)) }
    }
}

impl Compare {
    fn is_over_time(&self) -> bool {
        self.every.is_some() || self.duration.is_some() || self.until.is_some() || self.is_timeline
    }

    /// What holds for all samples.
    fn begin(&self, context: &mut Context) -> Result<ComparisonRound, Error> {
        if let (Some(cut), None, true) = (&self.cut, &self.by, self.is_over_time()) {
            let message = format!("`{}` counts the rows of `by`, and there is no `by`", cut.which.word());
            let hint = "add `by region`: its rows follow the last sample";
            return Err(eval::Error::new(cut.rows.at, message).hint(hint).into());
        }
        let cut = RowLimit::of(self.cut.as_ref(), context.state)?;
        let target = context.target()?;
        let mine = target.process.identity().pid;
        let given = match &self.with {
            OtherProcess::Processes(given) => {
                let mut named = BTreeSet::new();
                let mut pids = Vec::new();
                for value in given {
                    let pid = pid(value, context)?;
                    // Each process once, in the order in which they are named.
                    if named.insert(pid) {
                        pids.push(pid);
                    }
                }
                Some(pids)
            }
            OtherProcess::Children => None,
        };
        if given.as_ref().is_some_and(|given| given.contains(&mine)) {
            return Err(Error::refused(
                format!("process {mine} is the attached one: expected another process"),
                "`ps` lists the processes",
            ));
        }
        let spans = self.range.as_ref().map(|range| snapshot::spans(range, context.state)).transpose()?;
        let by = self.by.as_ref().map(eval::key).transpose()?;
        Ok(ComparisonRound { target, mine, given, spans, by, cut, is_over_time: self.is_over_time() })
    }
}

/// A process id that was written as a value.
fn pid(value: &Spanned<lang::Expression>, context: &mut Context) -> Result<u32, Error> {
    let as_range = Spanned::new(lang::Range::Expression(value.node.clone()), value.at);
    if let Value::Text(name) = eval::value(&as_range, context.state)? {
        if context.target()?.machine.is_captured() {
            let message = format!("no process is found by its name in a capture: {}", Name::from(&*name));
            return Err(Error::refused(message, "`ps` lists the processes of a capture by number"));
        }
        return match attach::resolve(&name, context) {
            Err(Error::Target(error @ process::Error::Ambiguous { .. })) => {
                Err(eval::Error::target(value.at, error).hint("`compare PID` compares with one of them").into())
            }
            Err(error) if Path::new(&name).is_file() => match error {
                Error::Target(error) => {
                    let hint = format!("for a capture of this process: `diff from {}`", Name::from(&*name));
                    Err(eval::Error::target(value.at, error).hint(hint).into())
                }
                error => Err(error),
            },
            Err(Error::Target(error @ process::Error::Gone { .. })) => {
                Err(eval::Error::target(value.at, error).of_unknown_name().into())
            }
            found => Ok(found?.pid),
        };
    }
    let number = eval::integer(value, context.state)?.get();
    u32::try_from(number).map_err(|_| {
        eval::Error::new(value.at, format!("{number} is not a process id")).hint("`ps` lists the processes").into()
    })
}

fn no_children(parent: u32) -> Error {
    Error::refused(format!("process {parent} has no children"), "`compare children every 1s` waits for a fork")
}
