//! The account of one process, or of a range of it.

use super::objects::{self, INTERRUPTED};
use super::records::{self, AccountGroup, AccountRow, NO_HEAP, freed_by};
use super::summary::{self, KernelSums};
use super::{AccountFor, AccountOf, AccountPart, family, rests};
use crate::command::floor::{Context, Error, Flow, Outcome};
use crate::command::heap_sentence;
use crate::command::named_pages::{PagesOfSymbols, name_of_mapping, names_in};
use crate::command::rows::{self, RowLimit, finish, name_of_range, note_hidden_rows, pull};
use crate::eval::{self, Origin, Spans};
use crate::inspect::account::{AccountSums, Accounting, MemoryObjects};
use crate::inspect::{AddressSpace, Evidence, Group};
use crate::kernel::status::LARGEST_PID;
use crate::kernel::{Device, Key, Name};
use crate::lang::{Expression, Range, Spanned};
use crate::process::Target;
use crate::render::{More, Sink};
use crate::report::{AccountClass, AccountMark, Fact, Numbers, Reason, Stopped, Why};
use std::cmp::Reverse;

/// What [`AccountPart::Heap`] splits off.
const OF_HEAPS: &[AccountClass] = &[AccountClass::HeapInUse, AccountClass::HeapFree, AccountClass::HeapUnclear];

/// Why the objects of a range are not searched.
const OF_WHOLE: &str = "objects in memory are searched only for a whole process";

impl AccountFor {
    pub(super) fn run_one(&self, cut: Option<RowLimit>, context: &mut Context) -> Outcome {
        let target = context.target()?;
        let part = self.part(&target, context)?;
        let space = match &part {
            Some(spans) => AddressSpace::in_ranges(&target, spans.ranges())?,
            None => AddressSpace::of(&target)?,
        };
        let by = self.key()?;
        // Before the sweep, which needs the walks over the arenas too.
        let asks_heaps = self.finds(AccountPart::Heap) && part.is_none();
        let heaps = asks_heaps.then(|| heap_sentence::about(&space, context.sink)).transpose()?;
        let more = self.evidence(by, &space)?;
        let ranges = part.as_ref().map_or_else(|| space.spans(), |spans| spans.ranges().to_vec());
        let before = (self.is_full && part.is_none()).then(|| target.process.rollup());
        let rollup = before.as_ref().and_then(|before| before.as_ref().ok());
        let accounting = space.account_beside(rollup, &ranges, more, self.finds(AccountPart::Content));
        let mut symbols = (by == Some(Key::Symbol))
            .then(|| PagesOfSymbols::new(names_in(&space, &context.state.symbols), space.page_size()));
        let written = self.range_as_written(context);
        let sink = &mut *context.sink;
        let accounting = accounting.opening_deleted_files(self.is_full);
        let (mut sums, stopped) = add_all(accounting, by, symbols.as_mut(), sink)?;
        let (objects, stopped) = match (&part, stopped) {
            (Some(_), stopped) => (Err(Reason::NotApplicable(OF_WHOLE)), stopped),
            (None, Some(stopped)) => (Err(Reason::NotApplicable(INTERRUPTED)), Some(stopped)),
            (None, None) => match sums.objects() {
                Ok(objects) => (Ok(objects), None),
                Err(error) => (Err(Reason::NotApplicable(INTERRUPTED)), rows::stop_of_sweep(Err(error.into()), sink)?),
            },
        };
        let kernel = match &part {
            _ if stopped.is_some() => KernelSums::unread(INTERRUPTED),
            Some(_) => KernelSums::unread("only a whole process is compared"),
            None => KernelSums::of(before, &sums),
        };
        let summary = summary::summary(&sums, &kernel, &objects, stopped.is_some());
        if stopped != Some(Stopped::Closed) {
            let range = part.as_ref().and(written);
            let most = by.is_none().then(|| largest_class(&sums)).flatten();
            sink.answer(match heaps.filter(|_| stopped.is_none()) {
                Some(heaps) => format!("{}. {heaps}", records::answer(None, &summary, None)),
                None => records::answer(range.as_deref(), &summary, most),
            })?;
            match by {
                None => self.emit_classes_and_objects(&sums, &objects, sink)?,
                Some(by) => {
                    emit_groups(&sums, by, cut, &|group| name(&sums, by, group, symbols.as_ref()), sink)?;
                    emit_objects(&sums, &objects, sink)?;
                }
            }
        }
        finish(&summary, stopped, sink)?;
        Ok(Flow::Done)
    }

    /// What is read of each page beside what classes need.
    pub(super) fn evidence(&self, by: Option<Key>, space: &AddressSpace) -> Result<Evidence, Error> {
        let grouped = by.map_or(Ok(Evidence::empty()), |by| space.need_of_group(by))?;
        if !self.finds(AccountPart::Heap) {
            return Ok(grouped);
        }
        space.require(Evidence::HEAP)?;
        Ok(grouped | Evidence::HEAP)
    }

    fn emit_classes_and_objects(
        &self,
        sums: &AccountSums,
        objects: &Fact<MemoryObjects>,
        sink: &mut dyn Sink,
    ) -> Result<(), Stopped> {
        emit_classes(sums, sink)?;
        if self.finds(AccountPart::Heap) && sums.all.of_all(OF_HEAPS) + sums.all.of(AccountClass::PrivateUnclear) == 0 {
            sink.note(NO_HEAP)?;
        }
        emit_objects(sums, objects, sink)
    }

    /// The part of the process that is asked for; `None` for all of it.
    fn part(&self, target: &Target, context: &mut Context) -> Result<Option<Spans>, Error> {
        let Some(AccountOf::Range(range)) = &self.of else {
            return Ok(None);
        };
        let subject = eval::subject(range, context.state).map_err(|error| family::meant(range, target, error))?;
        let spans = subject.spans(range.at, &range_meant(range))?;
        if let Some(note) = family::also_processes(range).filter(|_| !target.machine.is_captured()) {
            context.sink.note(note)?;
        }
        Ok(Some(spans).filter(|spans| *spans.origin() != Origin::All))
    }

    /// The range, for the answer.
    fn range_as_written(&self, context: &Context) -> Option<String> {
        match &self.of {
            Some(AccountOf::Range(range)) => Some(name_of_range(range, context.commands.language, &context.state.line)),
            _ => None,
        }
    }

    /// What it groups by.
    pub(super) fn key(&self) -> Result<Option<Key>, Error> {
        Ok(match &self.by {
            Some(by) => Some(eval::key(by)?),
            // Classes are few: the largest rows are those of regions.
            None => (self.cut.is_some() && self.file.is_none()).then_some(Key::Region),
        })
    }
}

/// The rows beside the sum.
fn emit_objects(sums: &AccountSums, objects: &Fact<MemoryObjects>, sink: &mut dyn Sink) -> Result<(), Stopped> {
    objects.iter().try_for_each(|objects| objects::emit(objects, false, sink))?;
    rests::emit(&sums.rests(), sums.accounting().space(), sink)
}

/// The hint for one address in the place of a range: a small number is probably a process, as in `compare PID`.
fn range_meant(range: &Spanned<Range>) -> String {
    match range.node {
        // The number of a process is no address in one in practice.
        Range::Expression(Expression::Integer(pid)) if (1..=LARGEST_PID.into()).contains(&pid) => {
            format!("for process {pid} `attach {pid}`, then `account`; for all of one name `account of NAME`")
        }
        _ => "`account heap`, `account A..B`".to_owned(),
    }
}

/// Adds everything up. Returns the sums, and why it was stopped, if it was.
pub(super) fn add_all(
    accounting: Accounting,
    by: Option<Key>,
    symbols: Option<&mut PagesOfSymbols<'_>>,
    sink: &mut dyn Sink,
) -> Result<(AccountSums, Option<Stopped>), Error> {
    let mut accounting = accounting.with_budget(sink.budget()).grouped(by);
    if let Some(symbols) = symbols {
        accounting = accounting.with_symbols(|address| symbols.at(address));
    }
    let stopped = pull(sink, "pages", || accounting.next(), |(), _| Ok(()))?;
    Ok((accounting.finish(), stopped))
}

/// The classes that have anything, the largest first.
fn classes(sums: &AccountSums) -> Vec<AccountClass> {
    let mut classes: Vec<_> = AccountClass::ALL.iter().copied().filter(|&class| sums.all.of(class) > 0).collect();
    classes.sort_by_cached_key(|&class| Reverse(sums.all.of(class)));
    classes
}

fn largest_class(sums: &AccountSums) -> Option<(AccountClass, u64)> {
    classes(sums).first().map(|&class| (class, sums.all.of(class)))
}

/// The rows of the classes.
fn emit_classes(sums: &AccountSums, sink: &mut dyn Sink) -> Result<(), Stopped> {
    let all = &sums.all;
    for class in classes(sums) {
        let marked = |mark| sums.marked(class, mark);
        sink.emit(&AccountRow {
            class,
            bytes: all.of(class),
            of: all.total(),
            huge: marked(AccountMark::Huge),
            to_copy: marked(AccountMark::ToCopy),
            lazily_freed: marked(AccountMark::LazilyFreed),
            droppable: marked(AccountMark::Droppable),
            locked: marked(AccountMark::Locked),
            dirty: marked(AccountMark::Dirty),
            several: marked(AccountMark::Several),
            with_pmdb: marked(AccountMark::WithPmdb),
            zeros: marked(AccountMark::Zeros),
            freed_by: freed_by(class),
        })?;
    }
    Ok(())
}

/// The rows of the groups, the largest first; with `limit` the first regions.
fn emit_groups(
    sums: &AccountSums,
    by: Key,
    cut: Option<RowLimit>,
    name: &dyn Fn(Group) -> String,
    sink: &mut dyn Sink,
) -> Result<(), Stopped> {
    let mut rows = sums.named(|group| (name(group), object(sums, by, group), file_before(sums, by, group)));
    if cut.is_some() {
        sink.show(More::SmallRows);
    } else if by == Key::Region {
        rows.sort_by_cached_key(|(_, account)| Reverse(account.total()));
    }
    let more = rows::keep_shown(&mut rows, cut.or_else(|| rows::usual_cut(by)), |(_, account)| account.total());
    for ((key, object, after), account) in rows {
        let classes = AccountClass::ALL.iter().map(|&class| (class, account.of(class)));
        sink.emit(&AccountGroup {
            by: by.to_string(),
            key,
            device: object.and_then(|(device, _)| device).map(|device| device.to_string()),
            inode: object.map(|(_, inode)| inode),
            after,
            bytes: account.total(),
            of: sums.all.total(),
            classes: Numbers(classes.filter(|(_, bytes)| *bytes > 0).collect()),
        })?;
    }
    note_hidden_rows(more, "group", sink)
}

/// What a group by mapping maps, by its device, if it is a file, and its inode or the number of the segment.
fn object(sums: &AccountSums, by: Key, group: Group) -> Option<(Option<Device>, u64)> {
    let Group::Region(Some(index)) = group else {
        return None;
    };
    let region = &sums.accounting().space().viewed_regions().get(index)?.region;
    let is_object = by == Key::Mapping && region.maps_object();
    is_object.then(|| (Some(region.device).filter(|_| !region.is_segment()), region.inode))
}

/// The file after which the region of a group by region lies.
fn file_before(sums: &AccountSums, by: Key, group: Group) -> Option<Name> {
    match (by, group) {
        (Key::Region, Group::Region(Some(index))) => {
            sums.accounting().space().viewed_regions().get(index)?.after.clone()
        }
        _ => None,
    }
}

/// The name of a group.
pub(super) fn name(sums: &AccountSums, by: Key, group: Group, symbols: Option<&PagesOfSymbols<'_>>) -> String {
    let named = match group {
        Group::Region(index) => {
            let viewed = index.and_then(|index| sums.accounting().space().viewed_regions().get(index));
            viewed.map(|viewed| match by {
                Key::Region => rows::name_of_region(&viewed.region),
                _ => {
                    let (region, is_file) = (&viewed.region, by == Key::Mapping);
                    name_of_mapping(&region.name, is_file && region.is_deleted_file(), region.is_without_path())
                }
            })
        }
        Group::Symbol(symbol) => symbols.zip(symbol).map(|(symbols, symbol)| symbols.name(symbol)),
        known => Some(rows::name_of_group(sums.reader(), by, known, &mut Why::default())),
    };
    named.unwrap_or_default()
}
