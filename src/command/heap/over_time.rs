//! `heap every 1s`: how the heap grows. A leak grows what is in use, and fragmentation what is free.

use super::one::heaps;
use super::records::HeapSummary;
use super::rows::{SizeRow, known};
use crate::command::floor::{Context, Error, Outcome};
use crate::command::rows::{RowLimit, keep_shown, note_hidden_rows};
use crate::command::schedule::{SamplesEnd, Schedule};
use crate::command::snapshot::seconds;
use crate::inspect::heap::HeapArena;
use crate::render::Record;
use crate::render::columns::{Cell, Column, Table, amount, change};
use crate::render::text::Text;
use crate::render::text::changes::{TIME, time};
use crate::render::theme::Role;
use crate::render::units::difference;
use crate::report::Fact;
use crate::report::record::record;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime};

/// Time between two samples when none is given: a sample reads all of the heap.
const USUAL: Duration = Duration::from_secs(1);

record! {
    /// A sample of `heap every 1s`.
    pub struct HeapSample as "heap-sample" with why if any {
        /// Seconds since the epoch.
        time: f64,
        /// Resident bytes of the arenas.
        resident: Fact<u64>,
        /// Bytes of chunks in use.
        in_use: Fact<u64>,
        /// Bytes of free chunks, without the free chunk at the end of each arena.
        free: Fact<u64>,
        /// Bytes of free chunks that no trim gives back.
        between: Fact<u64>,
        /// Resident bytes that `malloc_trim(0)` would give back.
        trim: Fact<u64>,
        /// Bytes of large chunks that are mappings of their own.
        mapped: u64,
        /// Arenas that were not walked to their ends: their chunks are in no sum.
        incomplete: u64,
    }

    /// A class of chunk sizes that changed from the first to the last sample in which all arenas were walked.
    pub struct HeapGrowth as "heap-growth" {
        /// The smallest size of the class.
        smallest: u64,
        /// Bytes of chunks in use, in the first sample.
        in_use_before: u64,
        /// The same in the last.
        in_use: u64,
        /// Chunks in use, in the first sample.
        chunks_before: u64,
        /// The same in the last.
        chunks: u64,
        /// Bytes of free chunks, in the first sample.
        free_before: u64,
        /// The same in the last.
        free: u64,
    }
}

/// Chunks by the smallest size of their class.
type Sizes = BTreeMap<u64, SizeRow>;

/// Takes samples, and then shows which sizes changed.
pub(super) fn run(
    every: Option<Duration>,
    duration: Option<Duration>,
    cut: Option<RowLimit>,
    context: &mut Context,
) -> Outcome {
    let target = context.target()?;
    let mut schedule = Schedule::new(every.unwrap_or(USUAL), &target.process)?;
    let began = Instant::now();
    let mut samples = Samples::default();
    let mut gone = None;
    let reason = loop {
        let time = seconds(SystemTime::now());
        let (summary, arenas) = match heaps(&target, context) {
            Ok(found) => found,
            Err(error @ Error::Stopped(_)) => break SamplesEnd::of_error(error, context.sink)?,
            // The process went, or runs another program: the samples so far stand.
            Err(error) if error.status() == 3 && samples.count > 0 => {
                gone = Some(error);
                break SamplesEnd::Exited;
            }
            Err(error) => return Err(error),
        };
        let sample = samples.add(time, summary, &arenas);
        if let Err(stopped) = context.sink.emit(&sample) {
            break SamplesEnd::of_error(stopped.into(), context.sink)?;
        }
        let Some(pause) = schedule.pause(began.elapsed(), duration) else {
            break SamplesEnd::Duration;
        };
        if let Err(stopped) = context.sink.wait(pause) {
            break SamplesEnd::of_error(stopped.into(), context.sink)?;
        }
    };
    samples.show(schedule.missed, cut, context)?;
    gone.map_or_else(|| reason.outcome(false), Err)
}

/// What was sampled.
#[derive(Default)]
struct Samples {
    count: u64,
    /// Of the samples in which all arenas were walked: the first, and the last of those after it.
    first: Option<Sizes>,
    last: Option<Sizes>,
    /// Bytes of large chunks in the first sample and in the last.
    mapped: Option<(u64, u64)>,
}

impl Samples {
    /// Takes the next sample. Returns its record.
    fn add(&mut self, time: f64, summary: HeapSummary, arenas: &[HeapArena]) -> HeapSample {
        self.count += 1;
        let mapped = summary.mapped.unwrap_or_default();
        self.mapped = Some((self.mapped.map_or(mapped, |(first, _)| first), mapped));
        if summary.incomplete == 0 {
            let sizes = Some(SizeRow::all(arenas.iter()));
            *(if self.first.is_none() { &mut self.first } else { &mut self.last }) = sizes;
        }
        HeapSample {
            time,
            resident: summary.resident,
            in_use: summary.in_use,
            free: summary.free,
            between: summary.between,
            trim: summary.trim,
            mapped,
            incomplete: summary.incomplete,
        }
    }

    /// Shows what changed between the first and the last.
    fn show(&self, missed: u64, cut: Option<RowLimit>, context: &mut Context) -> Result<(), Error> {
        match (&self.first, &self.last) {
            (Some(first), Some(last)) => show_growth(first, last, cut, context)?,
            _ => context.sink.note("growth is unknown: fewer than two samples have all arenas")?,
        }
        if let Some((before, now)) = self.mapped.filter(|(before, now)| before != now) {
            let difference = difference(before, now);
            context.sink.note(format!("large chunks, which are mappings of their own: {difference}"))?;
        }
        if missed > 0 {
            let due = self.count + missed;
            context.sink.note(format!("{} samples of the {due} that were due", self.count))?;
        }
        Ok(())
    }
}

/// The classes that changed, those that changed most in use first.
fn show_growth(first: &Sizes, last: &Sizes, cut: Option<RowLimit>, context: &mut Context) -> Result<(), Error> {
    let classes: BTreeSet<u64> = first.keys().chain(last.keys()).copied().collect();
    let rows = classes.into_iter().map(|smallest| {
        let of = |sizes: &Sizes| sizes.get(&smallest).copied().unwrap_or_else(|| SizeRow::new(smallest));
        let (before, now) = (of(first), of(last));
        HeapGrowth {
            smallest,
            in_use_before: before.in_use,
            in_use: now.in_use,
            chunks_before: before.chunks,
            chunks: now.chunks,
            free_before: before.free,
            free: now.free,
        }
    });
    let has_changed = |row: &HeapGrowth| row.in_use != row.in_use_before || row.free != row.free_before;
    let mut rows: Vec<HeapGrowth> = rows.filter(has_changed).collect();
    if rows.is_empty() {
        return Ok(context.sink.note("the arenas have the same sums in the first sample and in the last")?);
    }
    let moved = |row: &HeapGrowth| (row.in_use.abs_diff(row.in_use_before), row.free.abs_diff(row.free_before));
    rows.sort_by_cached_key(|row| std::cmp::Reverse(moved(row)));
    let more = keep_shown(&mut rows, cut, moved);
    for row in &rows {
        context.sink.emit(row)?;
    }
    note_hidden_rows(more, "size", context.sink)?;
    Ok(())
}

impl Record for HeapSample {
    fn write(&self, text: &mut Text) {
        text.row(&SAMPLES, self);
    }

    fn begins_stream(&self) -> bool {
        true
    }
}

/// `heap every DURATION`
static SAMPLES: Table<HeapSample> = Table::of(&[
    TIME.cell(|style, sample| time(style, sample.time)),
    bytes("resident").cell(|_, sample| known(&sample.resident).sampled()),
    bytes("in use").cell(|_, sample| known(&sample.in_use).sampled()),
    bytes("free").cell(|_, sample| known(&sample.free).sampled()),
    bytes("between").rank(2).cell(|_, sample| known(&sample.between).sampled()),
    bytes("trim").cell(|_, sample| known(&sample.trim).sampled()),
    bytes("mapped").rank(1).cell(|_, sample| amount(sample.mapped).sampled()),
    Column::word("walked", 8, Role::Plain).cell(|_, sample| match sample.incomplete {
        0 => Cell::new("complete"),
        _ => Cell::of(Role::Warn, "part"),
    }),
]);

impl Record for HeapGrowth {
    fn write(&self, text: &mut Text) {
        text.row(&GROWTH, self);
    }
}

/// The sizes that changed.
static GROWTH: Table<HeapGrowth> = Table::of(&[
    bytes("from").cell(|_, row| Cell::size(row.smallest)),
    bytes("in use").cell(|_, row| amount(row.in_use)),
    Column::number("change", 10, Role::Size).cell(|_, row| change(row.in_use_before, row.in_use)),
    Column::number("chunks", 9, Role::Size).cell(|_, row| Cell::count(row.chunks)),
    bytes("free").cell(|_, row| amount(row.free)),
    Column::number("change", 10, Role::Size).cell(|_, row| change(row.free_before, row.free)),
]);

const fn bytes(title: &'static str) -> Column {
    Column::number(title, 8, Role::Size)
}

/// Samples of its records.
#[cfg(test)]
pub(super) mod samples {
    use super::*;
    use crate::report::Reason;

    pub fn all() -> Vec<Box<dyn Record>> {
        let sample = |resident: Fact<u64>, incomplete| HeapSample {
            time: 1_700_000_000.25,
            trim: resident.clone().map(|bytes| bytes / 2),
            resident,
            in_use: Ok(60 << 20),
            free: Ok(240 << 20),
            between: Ok(50 << 20),
            mapped: 42 << 20,
            incomplete,
        };
        let unread = Err(Reason::NotInFile("a core file has no page map".into()));
        let growth = HeapGrowth {
            smallest: 64,
            in_use_before: 12 << 20,
            in_use: 20 << 20,
            chunks_before: 131_072,
            chunks: 218_453,
            free_before: 4096,
            free: 4096,
        };
        vec![Box::new(sample(Ok(300 << 20), 0)), Box::new(sample(unread, 1)), Box::new(growth)]
    }
}
