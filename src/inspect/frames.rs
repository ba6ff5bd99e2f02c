//! Physical page frames, without a process: `walk pfn:A..pfn:B`, `flags pfn:N`.

use super::Result;
use super::filter::Question;
use super::folio::Folio;
use super::hidden_words::{UNREAD, common_word, hide, why_hidden, why_no_memory};
use super::kept::Step;
use super::kernel_record::{self, BEYOND_MEMORY, kernel_record};
use super::ordered_pool::{Pool, TaskSize, Work};
use super::page::{Evidence, InZone, Page};
use super::sweep::{Column, Columns, Selection};
use crate::budget::Budget;
use crate::kernel::physical::{Zone, ZoneLookup, Zones};
use crate::kernel::{
    FrameNumber, FrameRange, Name, PageFlags, PageMapEntry, PhysicalAddress, State, VirtualAddress, WordFile,
};
use crate::process::{self, Machine};
use crate::report::{CgroupPath, Fact, FramePlace, FrameWords, KernelRecord, PagesByReason, Reason};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Neighbouring frames of one zone of which all that was asked for is the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FrameRow {
    /// The first.
    pub first: FrameNumber,
    /// How many.
    pub frames: u64,
    /// What is known of each, when asked for: a page without a process.
    pub facts: Page,
}

impl FrameRow {
    /// Of frames from `first` on, of which nothing is known yet.
    fn of(first: FrameNumber) -> Self {
        FrameRow { first, frames: 0, facts: Page::new(VirtualAddress::default(), State::Present.into()) }
    }

    /// Whether they differ only in `first` and `frames`.
    fn is_like(&self, other: &FrameRow) -> bool {
        self.facts == other.facts
    }

    /// The frames one by one.
    pub fn each(&self) -> impl Iterator<Item = FrameRow> + use<> {
        let all = *self;
        (0..all.frames).map(move |index| FrameRow {
            first: FrameNumber::new(all.first.get() + index),
            frames: 1,
            ..all
        })
    }

    /// A page without a process, for filters on frames.
    pub fn as_page(&self, machine: &Machine) -> Page {
        const PRESENT: u64 = 1 << 63;
        Page {
            pages: self.frames,
            entry: PageMapEntry::new(PRESENT | self.first.get()),
            count_is_average: is_average(machine, self.facts.flags, self.facts.map_count),
            ..self.facts
        }
    }
}

/// What is known of one frame.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FrameDetail {
    /// Its flags.
    pub flags: Fact<PageFlags>,
    /// How often it is mapped.
    pub map_count: Fact<u64>,
    /// The folio that it belongs to.
    pub folio: Fact<Folio>,
    /// The kernel's own record of it, where that can be read.
    pub record: Option<KernelRecord>,
    /// Where it lies, and the cgroup that it is charged to.
    pub place: FramePlace,
}

/// Frames of one read: 64 KiB.
const READ_FRAMES: u64 = 8192;

/// Rows of physical frames that a question keeps, in order. Dropping it ends what is under way.
///
/// ```
/// use pmdb::inspect::{Step, machine_frames};
/// use pmdb::kernel::FrameRange;
/// use pmdb::{Evidence, FrameNumber, Target};
///
/// let machine = Target::attach(std::process::id())?.machine;
/// let range = FrameRange::new(FrameNumber::new(0x1000), FrameNumber::new(0x2000)).ok_or("no frames")?;
/// let mut frames = machine_frames(&machine, range, Evidence::FLAGS);
/// let is_readable = std::fs::File::open("/proc/kpageflags").is_ok();
/// while is_readable && let Some(step) = frames.next()? {
///     match step {
///         Step::Found(row) => println!("{}: {} frames {:?}", row.first, row.frames, row.facts.flags),
///         Step::Visited { done, total } => println!("{done} of {total} frames were read"),
///     }
/// }
/// let frames = frames.finish().frames;
/// println!("{frames} frames");
/// # assert_eq!(frames > 0, is_readable);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct FrameSweep {
    machine: Arc<Machine>,
    question: Question,
    pool: Pool<FrameReader>,
    range: FrameRange,
    /// The frames that were not planned yet.
    next: u64,
    read: u64,
    /// The row being built: it may continue in the next batch.
    row: Option<FrameRow>,
    /// The rows that were not taken yet.
    rows: VecDeque<FrameRow>,
    /// How many rows may still be taken.
    left: u64,
    /// The frames in rows that were taken.
    frames: u64,
    selection: Selection,
    has_ended: bool,
}

/// What a sweep of frames counted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FrameSums {
    /// Frames in the rows that were taken.
    pub frames: u64,
    /// Whether frames of the range were left out.
    pub cut_short: bool,
    /// The frame at which memory ends, if that is within the range.
    pub memory_ends: Option<FrameNumber>,
    /// Frames that the filter can neither keep nor leave out.
    pub undecided: PagesByReason,
}

/// The frames of `range` that the question keeps, in order, up to the end of physical memory. Neighbours that are the
/// same come together, unless it has [`Evidence::EACH`]. Other facts that count are [`Evidence::FLAGS`],
/// [`Evidence::COUNTS`], [`Evidence::ORDER`] and [`Evidence::CGROUPS`].
pub fn machine_frames(machine: &Arc<Machine>, range: FrameRange, question: impl Into<Question>) -> FrameSweep {
    let question = question.into();
    machine.forget_blocks();
    let reader = FrameReader { machine: Arc::clone(machine), zones: machine.zones().ok(), need: question.need() };
    FrameSweep {
        machine: Arc::clone(machine),
        question,
        pool: Pool::new(Arc::new(reader), Budget::unlimited()),
        range,
        next: range.start().get(),
        read: 0,
        row: None,
        rows: VecDeque::new(),
        left: u64::MAX,
        frames: 0,
        selection: Selection::default(),
        has_ended: false,
    }
}

impl FrameSweep {
    /// The same, with what it may take.
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.pool.set_budget(budget);
        self
    }

    /// The same, which ends after so many rows.
    pub fn limit(self, rows: u64) -> Self {
        FrameSweep { left: rows, ..self }
    }

    /// The next step; `None` after the last.
    ///
    /// # Errors
    /// A file cannot be read, the [budget](Self::with_budget) is over, and at the end, that a fact that the question
    /// asks is unknown of all frames that have it.
    pub fn next(&mut self) -> Result<Option<Step<FrameRow>>> {
        if self.more().is_some() {
            return Ok(None);
        }
        if let Some(row) = self.rows.pop_front() {
            self.left -= 1;
            self.frames += row.frames;
            return Ok(Some(Step::Found(row)));
        }
        if self.has_ended {
            self.selection.require_known()?;
            return Ok(None);
        }
        self.read_rows()?;
        Ok(Some(Step::Visited { done: self.read, total: self.range.frames() }))
    }

    /// Where the row begins that would be one too many.
    pub fn more(&self) -> Option<FrameNumber> {
        self.rows.front().filter(|_| self.left == 0).map(|row| row.first)
    }

    /// What was counted.
    pub fn finish(self) -> FrameSums {
        let is_whole = self.has_ended && self.rows.is_empty();
        let read = Some(self.read).filter(|&read| is_whole && read < self.range.frames());
        FrameSums {
            frames: self.frames,
            cut_short: !is_whole,
            memory_ends: read.and_then(|read| self.range.start().checked_add(read)),
            undecided: self.selection.undecided,
        }
    }

    /// Reads the next batch.
    fn read_rows(&mut self) -> Result<()> {
        let (next, end) = (&mut self.next, self.range.end().get());
        let pulled = self.pool.next(|batch| Ok(batch.plan(next, end)))?;
        if let Some(batch) = &pulled {
            for one in &batch.rows {
                match &mut self.row {
                    Some(row) if row.is_like(one) => row.frames += one.frames,
                    row => self.rows.extend(row.replace(*one)),
                }
            }
            self.read += batch.known as u64;
        }
        // Where memory ends in a batch, later ones are empty.
        self.has_ended = pulled.is_none_or(|batch| batch.known < batch.frames);
        if self.has_ended || self.question.need().contains(Evidence::EACH) {
            self.rows.extend(self.row.take());
        }
        if self.question.need().contains(Evidence::EACH) {
            self.rows = self.rows.iter().flat_map(FrameRow::each).collect();
        }
        if self.question.filter.is_some() {
            self.rows.retain(|frames| self.selection.keeps(&frames.as_page(&self.machine), None, &self.question));
        }
        Ok(())
    }
}

/// Frames that are read at once: neighbours that are the same in one row.
///
/// # Errors
/// The kernel refuses the words.
pub(super) fn read_rows(machine: &Machine, need: Evidence, frames: Range<u64>) -> process::Result<Vec<FrameRow>> {
    let count = usize::try_from(frames.end - frames.start).unwrap_or(usize::MAX);
    let mut batch = FrameBatch { first: frames.start, frames: count, ..FrameBatch::default() };
    batch.read(machine, machine.zones().ok().as_deref(), need)?;
    Ok(batch.rows)
}

/// Reads batches, on any thread.
struct FrameReader {
    machine: Arc<Machine>,
    zones: Option<Arc<Zones>>,
    need: Evidence,
}

impl Work for FrameReader {
    type Task = FrameBatch;
    type Buffers = ();

    fn work(&self, batch: &mut FrameBatch, (): &mut (), _: &mut Budget) -> Result<()> {
        Ok(batch.read(&self.machine, self.zones.as_deref(), self.need)?)
    }
}

/// Frames that are read together, and what was read.
#[derive(Default)]
struct FrameBatch {
    first: u64,
    frames: usize,
    /// The frames before the end of physical memory.
    known: usize,
    columns: Columns,
    rows: Vec<FrameRow>,
}

impl FrameBatch {
    /// Takes the next frames of `next..end`.
    fn plan(&mut self, next: &mut u64, end: u64) -> TaskSize {
        let frames = end.saturating_sub(*next).min(READ_FRAMES);
        (self.first, self.frames) = (*next, frames as usize);
        *next += frames;
        match frames {
            0 => TaskSize::Nothing,
            READ_FRAMES => TaskSize::Full,
            _ => TaskSize::Small,
        }
    }

    fn read(&mut self, machine: &Machine, zones: Option<&Zones>, need: Evidence) -> process::Result<()> {
        let first = FrameNumber::new(self.first);
        self.known = self.frames;
        self.columns.clear();
        for (column, asked, file) in Column::of_files() {
            let asked = if column == Column::Flags { asked | Evidence::ORDER } else { asked };
            if !need.intersects(asked) {
                continue;
            }
            let mut words = std::mem::take(self.columns.begin(column, self.frames));
            let known = machine.frame_words(file, first, &mut words)?;
            words.truncate(known);
            hide(machine, file, first, &mut words, self.columns.of(Column::Flags));
            *self.columns.of_mut(column) = words;
            self.known = self.known.min(known);
        }
        if need.contains(Evidence::ORDER) {
            let mut orders = std::mem::take(self.columns.begin(Column::Orders, self.known));
            let words = self.columns.of(Column::Flags);
            let flags = |index: usize| {
                let word = words.get(index).filter(|&&word| word != UNREAD)?;
                Some(PageFlags::from_bits_retain(*word))
            };
            let known = first.get()..first.get() + self.known as u64;
            Folio::each(machine, known, &flags, &mut None, &mut |at, folio| {
                orders.get_mut(at).unwrap_or_default().fill(folio.order.into());
            })?;
            *self.columns.of_mut(Column::Orders) = orders;
        }
        if !need.contains(Evidence::FLAGS) {
            self.columns.of_mut(Column::Flags).clear();
        }
        if need.intersects(Evidence::RECORDS) {
            self.columns.holders.resize(self.known, None);
            kernel_record::read_holders(machine, first, need, &mut self.columns.holders)?;
        }
        self.find_rows(zones);
        Ok(())
    }

    fn find_rows(&mut self, zones: Option<&Zones>) {
        self.rows.clear();
        let columns = self.columns.slice(&(0..self.known), Evidence::empty());
        let mut at = 0;
        while at < self.known {
            let mut row = FrameRow::of(FrameNumber::new(self.first + at as u64));
            let (zone, zone_end) = zone_of(zones, row.first);
            let left = usize::try_from(zone_end - row.first.get()).unwrap_or(usize::MAX);
            let mut frames = left.min(self.known - at);
            columns.words_at(at, &mut frames).fill(&mut row.facts);
            row.facts.holders = common_word(columns.holders, at, &mut frames).flatten();
            (row.facts.zone, row.frames) = (zone, frames as u64);
            self.rows.push(row);
            at += frames;
        }
    }
}

/// The zone of a frame, and the first frame of the next zone.
fn zone_of(zones: Option<&Zones>, frame: FrameNumber) -> (Option<InZone>, u64) {
    let Some(zones) = zones else {
        return (None, u64::MAX);
    };
    let batch = zones.span_of(frame);
    (InZone::of(zones, batch.spanned), batch.end.get())
}

/// Whether a map count may be an average over the frame's large folio: the kernel averages, or may do so, and the flags
/// do not exclude a large folio.
pub fn is_average(machine: &Machine, flags: Option<PageFlags>, map_count: Option<u64>) -> bool {
    map_count.is_some_and(|times| times > 0)
        && flags.is_none_or(PageFlags::is_in_large_folio)
        && machine.has_exact_map_counts() != Some(true)
}

/// The words of one frame on `machine`, and whether its map count is an average.
pub fn frame_words(machine: &Machine, flags: Fact<PageFlags>, map_count: Fact<u64>) -> FrameWords {
    let known = (flags.as_ref().ok().copied(), map_count.as_ref().ok());
    FrameWords {
        map_count_average: is_average(machine, known.0, known.1.copied()),
        flags,
        map_count,
        own_mappings: None,
    }
}

/// All facts about one frame, each with a reason if it is unknown. If the number of the frame is unknown, that reason
/// holds for all.
pub fn frame_detail(machine: &Machine, frame: &Fact<FrameNumber>) -> FrameDetail {
    machine.forget_blocks();
    let frame = match frame {
        Ok(frame) => *frame,
        Err(reason) => {
            return FrameDetail {
                flags: Err(reason.clone()),
                map_count: Err(reason.clone()),
                folio: Err(reason.clone()),
                record: None,
                place: FramePlace::unknown(reason),
            };
        }
    };
    let cgroup = word_of(machine, WordFile::FrameCgroups, frame);
    let flags = flags_of(machine, frame);
    let zone = zone(machine, frame);
    FrameDetail {
        folio: flags.clone().and_then(|flags| folio(machine, frame, flags)),
        record: kernel_record(machine, frame, &flags),
        flags,
        map_count: count_of(machine, frame),
        place: FramePlace {
            node: zone.as_ref().map(|zone| zone.node).map_err(Clone::clone),
            zone: zone.map(|zone| zone.name),
            iomem: frame.physical(machine.page_size()).ok_or(NO_RESOURCE).and_then(|start| resources(machine, start)),
            cgroup_path: cgroup.clone().and_then(|inode| cgroup_path(machine, inode)),
            cgroup,
        },
    }
}

/// The flags of one frame.
pub(super) fn flags_of(machine: &Machine, frame: FrameNumber) -> Fact<PageFlags> {
    word_of(machine, WordFile::FrameFlags, frame).map(PageFlags::from_bits_retain)
}

/// How often one frame is mapped.
pub(super) fn count_of(machine: &Machine, frame: FrameNumber) -> Fact<u64> {
    word_of(machine, WordFile::FrameCounts, frame)
}

fn word_of(machine: &Machine, file: WordFile, frame: FrameNumber) -> Fact<u64> {
    let mut word = [0];
    match machine.frame_words(file, frame, &mut word)? {
        // The frames of devices may be after the last one that the kernel has words for.
        0 if frame.physical(machine.page_size()).is_some_and(|start| resources(machine, start).is_ok()) => {
            Err(why_hidden(machine, frame).unwrap_or(BEYOND_MEMORY))
        }
        0 => Err(BEYOND_MEMORY),
        _ if word == [0] => why_hidden(machine, frame).map_or(Ok(0), Err),
        _ => Ok(word[0]),
    }
}

/// The folio of a frame with these flags.
fn folio(machine: &Machine, frame: FrameNumber, flags: PageFlags) -> Fact<Folio> {
    Folio::find(machine, frame, flags)?.ok_or(Reason::Changed)
}

/// The memory zone of a frame. A zone also spans holes, which belong to none.
pub fn zone(machine: &Machine, frame: FrameNumber) -> Fact<Zone> {
    let zones = machine.zones()?;
    match zones.span_of(frame).spanned {
        ZoneLookup::In(index) => match (zones.get(index), why_no_memory(machine, frame)) {
            (Some(zone), Some(reason)) if !zone.is_of_devices() => Err(reason),
            (zone, _) => zone.cloned().ok_or(Reason::Changed),
        },
        ZoneLookup::InNone => Err(Reason::NotApplicable("no memory zone spans this frame")),
        ZoneLookup::InSeveral => Err(Reason::NotOnThisKernel(
            "several memory zones span this frame, and /proc/zoneinfo does not show which one holds it".into(),
        )),
    }
}

/// The resources of `/proc/iomem` that hold a physical address, the outermost first.
pub(super) fn resources(machine: &Machine, address: PhysicalAddress) -> Fact<Vec<Name>> {
    let resources = machine.iomem()?;
    match resources.at(address) {
        none if none.is_empty() => Err(NO_RESOURCE),
        nested => Ok(nested.into_iter().map(|one| one.name.clone()).collect()),
    }
}

/// Returns whether a frame does not exist: it is beyond physical memory, and no device has it either. Not where that
/// is hidden.
pub fn is_no_frame(machine: &Machine, frame: FrameNumber) -> bool {
    // This order: flags cost less than the list of resources.
    flags_of(machine, frame).is_err_and(|reason| reason == BEYOND_MEMORY)
        && frame.physical(machine.page_size()).is_none_or(|start| resources(machine, start) == Err(NO_RESOURCE))
}

const NO_RESOURCE: Reason = Reason::NotApplicable("no resource of /proc/iomem is there");

/// The path of the memory cgroup with this inode.
pub fn cgroup_path(machine: &Machine, inode: u64) -> Fact<CgroupPath> {
    if inode == 0 {
        return Err(Reason::NotApplicable("it is charged to no memory cgroup"));
    }
    let path = machine.cgroup_path(inode)?;
    Ok(path.map_or(CgroupPath::Gone(inode), CgroupPath::Path))
}
