//! `account [RANGE] [by KEY] [with PART]`: where the memory is that Rss counts. `account children` and the like:
//! that of several processes, each frame once. `account from FILE`: how it changed since a capture.

mod change;
mod change_records;
mod charges;
pub(super) mod family;
pub(super) mod family_records;
mod machine;
mod objects;
pub(super) mod records;
mod rests;
mod summary;

use change_records::{AccountChange, AccountComparison};
use charges::AccountCharge;
use family::FamilyOf;
use family_records::{AccountCgroup, AccountFamily, AccountFamilyClass, AccountFamilyGroup, AccountMember};

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use super::named_pages::{PagesOfSymbols, name_among_symbols, name_of_mapping, names_in};
use super::rows::{self, RowLimit, finish, note_hidden_rows, pull};
use crate::eval::{self, Origin, Spans};
use crate::inspect::account::{AccountSums, Accounting, MemoryObjects};
use crate::inspect::{AddressSpace, Evidence, Group as PageGroup};
use crate::kernel::status::LARGEST_PID;
use crate::kernel::words::worded;
use crate::kernel::{Key, PageFact, PageField};
use crate::lang::lexer::TokenKind;
use crate::lang::parser::{
    Parsed, Tokens, are_clauses, clause, cut_or_name, key, list_once, range, snapshot_file, split_text, takes_all, word,
};
use crate::lang::{self, Expression, KeyFacts, Range, Spanned, TakenKeys, WrittenKey, WrittenName, display};
use crate::process::Target;
#[cfg(test)]
use crate::render::Record;
use crate::render::Sink;
use crate::report::{AccountClass, AccountMark, Declared, Fact, Numbers, Reason, Shape, Stopped, Why};
use machine::{AccountFrames, AccountMachine};
use nom::Parser;
use nom::combinator::opt;
use nom::sequence::preceded;
use objects::{AccountObject, INTERRUPTED};
use records::{AccountGroup, AccountRow, AccountSummary, freed_by};
use rests::AccountRest;
use std::cmp::Reverse;
use std::fmt::{self, Formatter};

/// The keys of `account … by`: by symbol, pages that begin in none are added up by region.
const KEYS: TakenKeys = TakenKeys {
    facts: KeyFacts::OfFrames,
    others: &[Key::Region, Key::Symbol, Key::Mapping, Key::Page(PageField::Fact(PageFact::Heap))],
};

/// The keys of the account of several processes.
const FAMILY_KEYS: TakenKeys = TakenKeys { facts: KeyFacts::OfFrames, others: &[Key::Region, Key::Mapping] };

/// `account [RANGE] [by KEY] [with PART, …] [from FILE] [top N | limit N] [full]`
#[derive(Debug)]
pub struct AccountFor {
    /// Of what; the whole process if absent.
    of: Option<AccountOf>,
    /// Group by this; by class if absent.
    by: Option<WrittenKey>,
    /// What is found in memory.
    with: Vec<AccountPart>,
    /// The capture to compare with; a leading `~/` is still as typed.
    file: Option<Spanned<String>>,
    /// Which rows.
    cut: Option<lang::LimitClause>,
    /// Whether the method and small classes are shown.
    is_full: bool,
}

worded! {
    /// What an account finds in memory, and not in page tables.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AccountPart, word {
        /// The zero-filled subpages of huge pages.
        Content = "content",
        /// What is in use of glibc's heaps, and what is free.
        Heap = "heap",
    }
}

/// What [`AccountPart::Heap`] splits off.
const OF_HEAPS: &[AccountClass] = &[AccountClass::HeapInUse, AccountClass::HeapFree, AccountClass::HeapUnclear];

/// What an account is of.
#[derive(Debug)]
enum AccountOf {
    Range(Spanned<Range>),
    Family(FamilyOf),
    /// All physical frames.
    Frames,
}

/// What may follow the range.
fn clauses(mut input: Tokens<'_>, range: Option<Spanned<Range>>) -> Parsed<'_, AccountFor> {
    let (mut by, mut with, mut file, mut cut, mut full) = (None, None, None, None, None);
    while clause(&mut input, &mut by, |input| preceded(word("by"), key(KEYS)).parse(input))?
        || clause(&mut input, &mut with, |input| preceded(word("with"), list_once::<AccountPart>).parse(input))?
        || clause(&mut input, &mut file, |input| preceded(word("from"), snapshot_file).parse(input))?
        || clause(&mut input, &mut cut, cut_or_name)?
        || clause(&mut input, &mut full, word("full"))?
    {}
    let of = range.map(AccountOf::Range);
    Ok((input, AccountFor { of, by, with: with.unwrap_or_default(), file, cut, is_full: full.is_some() }))
}

fn of_range(input: Tokens<'_>) -> Parsed<'_, AccountFor> {
    let (behind, range) = opt(range).parse(input)?;
    clauses(behind, range)
}

fn of_family(input: Tokens<'_>) -> Parsed<'_, AccountFor> {
    let (mut input, family) = family::family(input)?;
    let (mut by, mut cut, mut full) = (None, None, None);
    while clause(&mut input, &mut by, |input| preceded(word("by"), key(FAMILY_KEYS)).parse(input))?
        || clause(&mut input, &mut cut, cut_or_name)?
        || clause(&mut input, &mut full, word("full"))?
    {}
    let (of, is_full) = (Some(AccountOf::Family(family)), full.is_some());
    Ok((input, AccountFor { of, by, with: Vec::new(), file: None, cut, is_full }))
}

/// Whether a name follows the slash of `cgroup /NAME` without a blank: nobody writes a division so.
fn begins_path(input: Tokens<'_>) -> bool {
    matches!(input.rest, [_, slash, name, ..] if !slash.is_glued && name.is_glued && name.kind == TokenKind::Name)
}

impl AccountFor {
    fn finds(&self, part: AccountPart) -> bool {
        self.with.contains(&part)
    }

    /// What is read of each page beside what classes need.
    fn evidence(&self, by: Option<Key>, space: &AddressSpace) -> Result<Evidence, Error> {
        let grouped = by.map_or(Ok(Evidence::empty()), |by| space.need_of_group(by))?;
        if !self.finds(AccountPart::Heap) {
            return Ok(grouped);
        }
        space.require(Evidence::HEAP)?;
        Ok(grouped | Evidence::HEAP)
    }

    fn is_of_path(&self) -> bool {
        matches!(&self.of, Some(AccountOf::Family(of)) if of.is_of_path())
    }
}

impl Command for AccountFor {
    const RECORDS: &'static [Shape] = &[
        AccountRow::SHAPE,
        AccountObject::SHAPE,
        AccountRest::SHAPE,
        AccountGroup::SHAPE,
        AccountSummary::SHAPE,
        AccountFamilyClass::SHAPE,
        AccountFamilyGroup::SHAPE,
        AccountMember::SHAPE,
        AccountFamily::SHAPE,
        AccountCharge::SHAPE,
        AccountCgroup::SHAPE,
        AccountFrames::SHAPE,
        AccountMachine::SHAPE,
        AccountChange::SHAPE,
        AccountComparison::SHAPE,
    ];

    const ABOUT: About = About {
        name: CommandName::new("account").of_session().whole().alone_before(&["cgroup", "of", "\"", "frames"]),
        group: Group::Look,
        summary: "add up resident memory by class",
        text: "\
Adds up the resident memory of the process, or of a range. Each page that Rss counts is in the first class that \
applies, so the classes add up to Rss:

  migrating, device, failed  entries without memory here
  of the kernel              the vdso
  of drivers                 rings and buffers that a driver has mapped: no reclaim frees them
  secret memory              memory of memfd_secret
  merged                     pages merged with equal ones (KSM)
  anonymous, exclusive       memory without a file, mapped once: heap, stacks, buffers
  private copies, exclusive  pages of private file mappings that were written
  shared since a fork        anonymous memory and private file copies that others map too
  shared memory              memfd, tmpfs, System V and shared anonymous memory
  file pages                 the page cache, for as long as it is mapped
  …, exclusive               no other process maps them
  …, with others             other processes map them too
  here or shared, unknown    without frame numbers: amounts that cannot be divided

These choose the memory:

  RANGE         only this range
  children      the process and its descendants, each frame once
  of A, B, …    these processes: each a PID, a variable or a name
  \"NAME\"        all processes that `ps` shows by this name, or whose executable has it
  cgroup PATH   the processes of a memory cgroup and of those below it
  frames        all physical frames by their flags, beside the counters of /proc/meminfo
  from FILE     compare with a capture, also of another process or machine: before and after a deployment
  with content  read huge pages, and count their zero-filled subpages
  with heap     split exclusive anonymous memory by what glibc's heaps have of it

These choose the rows:

  by region     a row for each region; of several processes each frame in the first region that maps it
  by mapping    a row for each file or name, with all its regions; of several processes also how many map it
  by symbol     a row for each symbol in which pages begin
  by node       a row for each NUMA node
  by cgroup     a row for each memory cgroup that pages are charged to
  by heap       a row for pages of glibc's heaps that are in use (`live`), free and kept (`free`, `top`), or `both`
  by KEY        a row for each value of another fact of frames: mapcount, order, flags(NAME) … (`help language`)
  top N         the N largest groups: regions, without `by`
  limit N       the first N groups
  full          also classes under 1 %, and how the sums compare with the kernel's

Words of the answer:

  of which          parts of a row, which may overlap
  locked            in regions that this process has locked: a child does not inherit locks
  lazily freed      marked by MADV_FREE, also if written since; the summary adds how much the kernel can reclaim now
  heap, in use      pages of glibc's heaps that hold a chunk in use (`with heap`)
  heap, free        other pages of these heaps; `heap` lists chunks and other allocators
  heap or not       anonymous memory that may belong to a heap that was not walked to its end
  dirty             written to disk before it is freed; clean file pages can be dropped at any time
  free              freed when the allocator returns it: a setting of most allocators, and malloc_trim in glibc
  own               exclusive anonymous memory and private file copies
  forked            shared with a parent or child
  other             merged and kernel pages, entries without memory, and amounts that cannot be divided
  unmapped          pages of objects that none of the processes maps: a memfd, a file of tmpfs, shared memory
  large folios      huge pages and the like: if only a part is mapped, all of it is in use, and Rss counts the part
  at least          more is unknown: an object cannot be examined
  at most           the pages are unknown: secret memory, virtual machines, and the zero pages of a core
  in rss            the sum of the Rss of all processes
  in one of these   mapped by one of the counted processes, and perhaps by others
  freed at exit     private memory that the kernel frees when the process exits, unless a driver holds it
  charged           memory charged to the cgroup, also what none of its processes maps

Shared memory is freed when its file is deleted and its last mapping and descriptor are gone. Rss leaves out hugetlb \
pages, page tables, swap, zero pages, guard pages, device frames and [vvar]. The summary lists them.

The sums of a whole process are compared with smaps_rollup, and are equal if the process is stopped. Page flags are \
read only of files, shared memory and drivers if smaps_rollup shows that nothing is merged or lazily freed.

Processes that ended, or that you may not examine, are left out and counted. Processes with one address space are one \
row. Without frame numbers the sum of Pss is shown: it is exact if no other process maps the same memory.",
        examples: &[
            example("account", "add up the memory of the whole process"),
            example("account full", "compare the sums with the kernel's"),
            example("account by mapping top 5", "list the files and names with the most memory"),
            example("account [heap] with content", "find zero-filled subpages of huge pages in the heap"),
            example("account with heap", "show how much of the sum is freed memory that glibc keeps"),
            example("capture demo.capture --overwrite\naccount by mapping from demo.capture", "compare with a capture"),
            example("account children", "count the memory of a process and its descendants once"),
            example("account cgroup /", "show what is charged to a memory cgroup, with its limit and OOM kills"),
            example("account children by mapping", "list which files and objects in memory they share"),
            example("account children by region top 10", "list the largest regions of all of them"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        let of_family = family_records::samples::all();
        [
            records::samples::all(),
            objects::samples::all(),
            rests::samples::all(),
            of_family,
            change_records::samples::all(),
            charges::samples::all(),
            machine::samples::all(),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Where no clause follows them, `by`, `with`, `top` and `limit` are names like any other, and so is `full` if more
    /// follows.
    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (behind, whole) = clauses(input, None)?;
        if are_clauses(input, behind, whole.is_full) {
            return Ok((behind, whole));
        }
        if let Ok((behind, full)) = preceded(word("frames"), opt(word("full"))).parse(input)
            && split_text(behind).0.is_empty()
        {
            let (of, is_full) = (Some(AccountOf::Frames), full.is_some());
            return Ok((behind, AccountFor { of, by: None, with: Vec::new(), file: None, cut: None, is_full }));
        }
        let found = of_family(input).ok();
        // `cgroup / 2` could be a division, if all of the line is one.
        let is_family = |(behind, account): &(Tokens<'_>, AccountFor)| {
            let is_path = || begins_path(input) || !takes_all(input, of_range);
            split_text(*behind).0.is_empty() || account.is_of_path() && is_path()
        };
        found.filter(is_family).map_or_else(|| of_range(input), Ok)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.of {
            Some(AccountOf::Range(range)) => match &range.node {
                // Unquoted they are words.
                Range::Expression(Expression::Name(WrittenName(name)))
                    if matches!(name.as_str(), "frames" | "full") =>
                {
                    write!(f, " '{name}'")?
                }
                range => write!(f, " {range}")?,
            },
            Some(AccountOf::Frames) => f.write_str(" frames")?,
            Some(AccountOf::Family(family)) => family.write(f)?,
            None => {}
        }
        display::clause(f, "by", self.by.as_ref())?;
        let with: Vec<&str> = self.with.iter().map(|part| part.word()).collect();
        display::clause(f, "with", (!with.is_empty()).then(|| with.join(", ")))?;
        if let Some(file) = &self.file {
            f.write_str(" from")?;
            display::write_quoted(f, Some(&file.node))?;
        }
        display::cut(f, self.cut.as_ref())?;
        display::word_if(f, self.is_full, "full")
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let cut = RowLimit::of(self.cut.as_ref(), context.state)?;
        if self.is_full {
            context.sink.show_full();
        }
        if matches!(self.of, Some(AccountOf::Frames)) {
            return machine::run(context);
        }
        if let Some(AccountOf::Family(family)) = &self.of {
            let by = self.by.as_ref().map(eval::key).transpose()?;
            return family.run(by, cut, context);
        }
        if let Some(file) = &self.file {
            return self.run_change(file, cut, context);
        }
        let target = context.target()?;
        let part = self.part(&target, context)?;
        let space = match &part {
            Some(spans) => AddressSpace::in_ranges(&target, spans.ranges())?,
            None => AddressSpace::of(&target)?,
        };
        let by = self.key()?;
        let more = self.evidence(by, &space)?;
        let ranges = part.as_ref().map_or_else(|| space.spans(), |spans| spans.ranges().to_vec());
        let before = part.is_none().then(|| target.process.rollup());
        let rollup = before.as_ref().and_then(|before| before.as_ref().ok());
        let accounting = space.account_beside(rollup, &ranges, more, self.finds(AccountPart::Content));
        let mut symbols = (by == Some(Key::Symbol))
            .then(|| PagesOfSymbols::new(names_in(&space, &context.state.symbols), space.page_size()));
        let sink = &mut *context.sink;
        let (mut sums, stopped) = add_all(accounting, by, symbols.as_mut(), sink)?;
        let (objects, stopped) = match (&part, stopped) {
            (Some(_), stopped) => (Err(Reason::NotApplicable(OF_WHOLE)), stopped),
            (None, Some(stopped)) => (Err(Reason::NotApplicable(INTERRUPTED)), Some(stopped)),
            (None, None) => match sums.objects() {
                Ok(objects) => (Ok(objects), None),
                Err(error) => (Err(Reason::NotApplicable(INTERRUPTED)), rows::stop_of_sweep(Err(error.into()), sink)?),
            },
        };
        let kernel = match before {
            _ if stopped.is_some() => Err(Reason::NotApplicable(INTERRUPTED)),
            None => Err(Reason::NotApplicable("only a whole process is compared")),
            Some(before) => before.and_then(|before| Ok((before, target.process.rollup()?))).map_err(Reason::from),
        };
        let summary = summary::summary(&sums, &space, kernel, &objects, stopped.is_some());
        if stopped != Some(Stopped::Closed) {
            sink.answer(records::answer(&summary, by.is_none().then(|| largest_class(&sums)).flatten()))?;
            match by {
                None => self.emit_classes_and_objects(&sums, &objects, sink)?,
                Some(by) => emit_groups(&sums, by, cut, &|group| name(&sums, by, group, symbols.as_ref()), sink)?,
            }
        }
        finish(&summary, stopped, sink)?;
        Ok(Flow::Done)
    }
}

/// Why the objects of a range are not searched.
const OF_WHOLE: &str = "objects in memory are searched only for a whole process";

impl AccountFor {
    fn emit_classes_and_objects(
        &self,
        sums: &AccountSums,
        objects: &Fact<MemoryObjects>,
        sink: &mut dyn Sink,
    ) -> Result<(), Stopped> {
        emit_classes(sums, sink)?;
        if self.finds(AccountPart::Heap) && sums.all.of_all(OF_HEAPS) + sums.all.of(AccountClass::PrivateUnclear) == 0 {
            sink.note("no page of it is in a heap of glibc: try `heap`, which names other allocators")?;
        }
        objects.iter().try_for_each(|objects| objects::emit(objects, false, sink))?;
        rests::emit(&sums.rests(), sums.accounting().space(), sink)
    }

    /// The part of the process that is asked for; `None` for all of it.
    fn part(&self, target: &Target, context: &mut Context) -> Result<Option<Spans>, Error> {
        let Some(AccountOf::Range(range)) = &self.of else {
            return Ok(None);
        };
        let subject = eval::subject(range, context.state).map_err(|error| family::meant(range, error))?;
        let spans = subject.spans(range.at, &range_meant(range))?;
        if let Some(note) = family::also_processes(range).filter(|_| !target.machine.is_captured()) {
            context.sink.note(note)?;
        }
        Ok(Some(spans).filter(|spans| *spans.origin() != Origin::All))
    }

    /// What it groups by.
    fn key(&self) -> Result<Option<Key>, Error> {
        Ok(match &self.by {
            Some(by) => Some(eval::key(by)?),
            // Classes are few: the largest rows are those of regions.
            None => (self.cut.is_some() && self.file.is_none()).then_some(Key::Region),
        })
    }
}

/// The hint for one address in the place of a range: a small number is probably a process, as in `compare PID`.
fn range_meant(range: &Spanned<Range>) -> String {
    match range.node {
        // The number of a process is no address in one in practice.
        Range::Expression(Expression::Integer(pid)) if (1..=LARGEST_PID.into()).contains(&pid) => {
            format!("for process {pid} `attach {pid}`, then `account`; for all of one name `account \"NAME\"`")
        }
        _ => "`account heap`, `account A..B`".to_owned(),
    }
}

/// Adds everything up. Returns the sums, and why it was stopped, if it was.
fn add_all(
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

/// The rows of the groups, the largest first; regions by address.
fn emit_groups(
    sums: &AccountSums,
    by: Key,
    cut: Option<RowLimit>,
    name: &dyn Fn(PageGroup) -> String,
    sink: &mut dyn Sink,
) -> Result<(), Stopped> {
    let mut rows = sums.named(name);
    let more = rows::keep_shown(&mut rows, cut.or_else(|| rows::usual_cut(by)), |(_, account)| account.total());
    for (key, account) in rows {
        let classes = AccountClass::ALL.iter().map(|&class| (class, account.of(class)));
        sink.emit(&AccountGroup {
            by: by.to_string(),
            key,
            bytes: account.total(),
            of: sums.all.total(),
            classes: Numbers(classes.filter(|(_, bytes)| *bytes > 0).collect()),
        })?;
    }
    note_hidden_rows(more, "group", sink)
}

/// The name of a group.
fn name(sums: &AccountSums, by: Key, group: PageGroup, symbols: Option<&PagesOfSymbols<'_>>) -> String {
    let named = match group {
        PageGroup::Region(index) => {
            let viewed = index.and_then(|index| sums.accounting().space().viewed_regions().get(index));
            viewed.map(|viewed| match by {
                Key::Region => rows::name_of_region(&viewed.region),
                Key::Mapping => name_of_mapping(&viewed.region.name, viewed.region.is_deleted_file()),
                _ => name_among_symbols(&viewed.region.name),
            })
        }
        PageGroup::Symbol(symbol) => symbols.zip(symbol).map(|(symbols, symbol)| symbols.name(symbol)),
        known => Some(rows::name_of_group(sums.reader(), by, known, &mut Why::default())),
    };
    named.unwrap_or_default()
}
