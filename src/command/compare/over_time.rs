//! `compare … every DURATION`: the cost of a fork as it grows.

use super::records::ComparisonSample;
use super::round::{ComparisonRound, FoundProcess};
use crate::command::floor::{Context, Error, Outcome};
use crate::command::schedule::{SamplesEnd, Schedule};
use crate::command::snapshot::seconds;
use crate::command::timeline::TimelineBuilder;
use crate::eval;
use crate::inspect::AddressSpace;
use crate::inspect::compare::{CopiesOverTime, SharedSums};
use crate::kernel::words::worded;
use crate::lang::parser::{Parsed, Tokens, count, mark, one_of};
use crate::lang::{Count, Spanned, listed};
use crate::render::Sink;
use crate::render::units::{counted, size};
use crate::report::SharedCounts;
use nom::Parser;
use nom::branch::alt;
use nom::combinator::map;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::time::{Duration, Instant, SystemTime};

/// Time between two samples when none is given: a sample reads the page maps of all processes.
const USUAL: Duration = Duration::from_secs(1);

worded! {
    /// What `until` compares, in bytes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CopyAmount, word {
        /// In the same frame.
        Shared = "shared",
        /// Copied by the next write of the attached process.
        ToCopy = "to_copy",
        /// In different frames.
        Copied = "copied",
    }
}

/// `until AMOUNT > BYTES`
#[derive(Clone, Debug, PartialEq)]
pub struct UntilCopied {
    amount: CopyAmount,
    /// The orders that end it.
    orders: (&'static str, &'static [Ordering]),
    bytes: Spanned<Count>,
}

/// The comparisons, the longer ones first.
const ORDERS: [(&str, &[Ordering]); 4] = [
    (">=", &[Ordering::Greater, Ordering::Equal]),
    ("<=", &[Ordering::Less, Ordering::Equal]),
    (">", &[Ordering::Greater]),
    ("<", &[Ordering::Less]),
];

/// What follows `until`.
pub(super) fn until_copied(input: Tokens<'_>) -> Parsed<'_, UntilCopied> {
    let [a, b, c, d] = ORDERS.map(|order| map(mark(order.0), move |_| order));
    let (behind, (amount, orders, bytes)) = (one_of, alt((a, b, c, d)), count).parse(input)?;
    Ok((behind, UntilCopied { amount, orders, bytes }))
}

impl Display for UntilCopied {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.amount.word(), self.orders.0, self.bytes.node)
    }
}

impl UntilCopied {
    fn holds(&self, counts: &SharedCounts, page_size: u64, bytes: u64) -> bool {
        let pages = match self.amount {
            CopyAmount::Shared => counts.shared,
            CopyAmount::ToCopy => counts.about_to_copy,
            CopyAmount::Copied => counts.copied,
        };
        self.orders.1.contains(&pages.saturating_mul(page_size).cmp(&bytes))
    }
}

/// When samples are taken, and until when.
pub(super) struct SampleTimes<'a> {
    pub every: Option<Duration>,
    pub duration: Option<Duration>,
    pub until: Option<&'a UntilCopied>,
}

/// What the samples so far found.
#[derive(Default)]
struct Samples {
    count: u64,
    /// What the last sample that found it tells of each process.
    last: Vec<FoundProcess>,
    /// Of the last sample that found a process: the sums, and the processes in them.
    sums: SharedCounts,
    in_sums: BTreeSet<u32>,
    /// The processes of the last sample.
    alive: BTreeSet<u32>,
}

impl Samples {
    /// Adds a sample. A process that has ended keeps what the last sample found.
    fn add(&mut self, found: Vec<FoundProcess>, counts: SharedCounts) {
        self.count += 1;
        self.alive = found.iter().map(|one| one.other.pid).collect();
        self.last.retain(|old| !self.alive.contains(&old.other.pid));
        self.last.extend(found);
        if !self.alive.is_empty() {
            (self.sums, self.in_sums) = (counts, self.alive.clone());
        }
    }

    /// Shows what was found last of each process, ended ones first, and the sums.
    fn show(self, round: &ComparisonRound, sink: &mut dyn Sink) -> Result<(), Error> {
        let Samples { count, mut last, mut sums, in_sums, alive } = self;
        if last.is_empty() && round.given.is_none() {
            sink.note(format!("no child was seen in {}", counted(count, "sample")))?;
        }
        last.sort_by_cached_key(|one| (in_sums.contains(&one.other.pid), one.other.pid));
        let ended = last.iter().filter(|one| !in_sums.contains(&one.other.pid)).count();
        let shown = last.len();
        let (mut over, mut most) = (Vec::new(), 0);
        for mut found in last {
            if !alive.contains(&found.other.pid) {
                over.push(found.other.pid);
                most = found.end(round.page_size()).max(most);
            }
            round.show(found, round.by.is_some(), None, sink)?;
        }
        if alive.is_empty() {
            sums.about_to_copy = 0;
        }
        round.show_total((shown - ended) as u64, ended as u64, sums, sink)?;
        if !over.is_empty() {
            sink.note(of_ended(&over, most, shown - ended > 1 && ended > 0))?;
        }
        Ok(())
    }
}

/// What the numbers of these processes are, each of which may have copied `most` bytes since.
fn of_ended(pids: &[u32], most: u64, has_totals: bool) -> String {
    const FEW: usize = 4;
    let few: Vec<_> = pids.iter().take(FEW).map(u32::to_string).collect();
    let listed = match pids.len() - few.len() {
        0 => listed(&few, "and"),
        more => format!("{} and {more} more", few.join(", ")),
    };
    let ended = if pids.len() == 1 { "has ended: its numbers are" } else { "have ended: their numbers are" };
    let left_out = if has_totals { ", and the totals have only processes of the last sample" } else { "" };
    let copied = if most == 0 { String::new() } else { format!("; up to {} more may have been copied", size(most)) };
    format!("{listed} {ended} of the last sample before{copied}{left_out}")
}

/// Takes samples, and shows what the last of them found of each process. With a timeline, samples are drawn in it.
pub(super) fn run(
    round: &ComparisonRound,
    times: &SampleTimes<'_>,
    mut timeline: Option<TimelineBuilder>,
    context: &mut Context,
) -> Outcome {
    let &SampleTimes { every, duration, until } = times;
    let bytes = until.map(|until| eval::count(&until.bytes, context.state)).transpose()?.unwrap_or(0);
    let mut schedule = Schedule::new(every.unwrap_or(USUAL), &context.target()?.process)?;
    let page_size = round.page_size().bytes();
    let began = Instant::now();
    let mut copies = CopiesOverTime::new(round.page_size());
    let mut samples = Samples::default();
    let reason = loop {
        let (now, time) = (Instant::now(), seconds(SystemTime::now()));
        let others = round.find_others()?;
        let (found, sums) = match take(round, &others, timeline.as_mut(), context) {
            Ok(taken) => taken,
            Err(error @ Error::Stopped(_)) => break SamplesEnd::of_error(error, context.sink)?,
            // The attached process went: the last sample stands.
            Err(error) if error.status() == 3 => {
                samples.alive.clear();
                break SamplesEnd::Exited;
            }
            Err(error) => return Err(error),
        };
        let (counts, rate) = copies.add(now, sums);
        let processes = found.len() as u64;
        let in_bytes = counts.in_bytes(page_size);
        let emitted = match &mut timeline {
            Some(timeline) => timeline.emit_of(found.iter().map(|one| one.other.pid).collect(), context.sink),
            // Nothing is there to compare with, as before.
            None if processes == 0 && samples.count > 0 && samples.alive.is_empty() => Ok(()),
            None => context.sink.emit(&ComparisonSample { time, processes, page_size, rate, counts, in_bytes }),
        };
        samples.add(found, counts);
        if let Err(stopped) = emitted {
            break SamplesEnd::of_error(stopped.into(), context.sink)?;
        }
        if until.is_some_and(|until| processes > 0 && until.holds(&counts, page_size, bytes)) {
            break SamplesEnd::Until;
        }
        if processes == 0 && round.given.is_some() {
            break SamplesEnd::Exited;
        }
        let Some(pause) = schedule.pause(began.elapsed(), duration) else {
            break SamplesEnd::Duration;
        };
        if let Err(stopped) = context.sink.wait(pause) {
            break SamplesEnd::of_error(stopped.into(), context.sink)?;
        }
    };
    let count = samples.count;
    samples.show(round, context.sink)?;
    if schedule.missed > 0 {
        context.sink.note(format!("{count} samples of the {} that were due", count + schedule.missed))?;
    }
    reason.outcome(until.is_some())
}

/// Takes a sample: what it finds of each process, and the sums.
fn take(
    round: &ComparisonRound,
    others: &[u32],
    timeline: Option<&mut TimelineBuilder>,
    context: &mut Context,
) -> Result<(Vec<FoundProcess>, SharedSums), Error> {
    let space = AddressSpace::of(&round.target)?;
    let mut sample = round.sample(&space, timeline, context.state, context.sink)?;
    let mut found = Vec::new();
    sample.each(others, context.sink, |one, _| {
        found.push(one);
        Ok(())
    })?;
    Ok((found, sample.into_sums()))
}
