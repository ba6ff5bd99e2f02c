//! `account children`, `account of MEMBER, …`, `account "NAME"`, `account cgroup PATH`.

use super::charges;
use super::family_records::{
    AccountFamily, AccountFamilyClass, AccountFamilyGroup, AccountMember, BytesOnNode, answer,
};
use super::objects::{self, INTERRUPTED};
use super::records::{FREES_FILE_PAGES, FREES_KEPT_MEMORY, FREES_KERNEL_PAGES, FREES_SHARED_MEMORY, NO_HEAP};
use super::rests;
use crate::budget::Budget;
use crate::command::floor::{Context, Error, Flow, Outcome};
use crate::command::named_pages::name_of_mapping;
use crate::command::rows::{self, RowLimit, note_hidden_rows, pull};
use crate::command::{attach, help, who};
use crate::eval::{self, Value};
pub(in crate::command) use crate::inspect::account::descendants;
use crate::inspect::account::{
    self, ClassSum, Family, FamilyGroup, FamilyGroupKey, FamilyKey, FamilyStep, FamilySums, MemoryObjects,
    ObjectIdentity,
};
use crate::inspect::{self, FactReader, Step};
use crate::kernel::{Key, Name};
use crate::lang::display::write_quoted;
use crate::lang::field::FilterSubject;
use crate::lang::parser::{Parsed, Tokens, part_to_comma, pattern, place, text, with_commas, word};
use crate::lang::{self, Expected, Expression, Span, Spanned};
use crate::process::{self, CgroupMemory, Machine, ProcessHandle, Target};
use crate::render::units::counted;
use crate::render::{More, Sink};
use crate::report::{Fact, FamilyClass, Reason, Stopped, Why};
use nom::Parser;
use nom::branch::alt;
use nom::combinator::{map, opt};
use nom::sequence::preceded;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Formatter};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Several processes.
#[derive(Debug)]
pub(in crate::command) enum FamilyOf {
    /// The attached process and its descendants.
    Children,
    /// All processes of a name.
    Named(Spanned<Expression>),
    /// The processes of a memory cgroup and of the groups below it; without a path that of the attached process.
    Cgroup(Option<Spanned<String>>),
    /// All of these.
    Members(Vec<Member>),
}

/// A part of `of MEMBER, …`.
#[derive(Clone, Debug)]
pub(in crate::command) enum Member {
    /// A process id, or a variable that holds one or a name.
    Value(Spanned<Expression>),
    /// All processes of a name.
    Named(Spanned<String>),
}

/// The words that are no path after `cgroup`: a group of such a name is quoted.
const AFTER_CGROUP: [&str; 9] = ["by", "with", "without", "from", "every", "for", "top", "limit", "full"];

/// `children`, `of MEMBER, …`, `"NAME"`, `cgroup [PATH]`
pub(in crate::command) fn family(input: Tokens<'_>) -> Parsed<'_, FamilyOf> {
    input.expect(Expected::ProcessName);
    let children = map(word("children"), |_| FamilyOf::Children);
    let members = map(preceded(word("of"), with_commas(member)), FamilyOf::Members);
    let named = map(text, FamilyOf::Named);
    let cgroup = map(preceded(word("cgroup"), path_of_cgroup), FamilyOf::Cgroup);
    alt((children, members, named, cgroup)).parse(input)
}

fn path_of_cgroup(input: Tokens<'_>) -> Parsed<'_, Option<Spanned<String>>> {
    if input.first().is_some_and(|token| AFTER_CGROUP.contains(&token.text)) {
        input.expect(Expected::Cgroup);
        return Ok((input, None));
    }
    opt(pattern(Expected::Cgroup)).parse(input)
}

/// `member`: a process id, a variable, or a name up to a comma or a blank.
pub(in crate::command) fn member(input: Tokens<'_>) -> Parsed<'_, Member> {
    let (behind, name) = part_to_comma(input)?;
    match place(input) {
        Ok((after, value)) if after.rest.len() == behind.rest.len() && is_value(&value.node) => {
            Ok((behind, Member::Value(value)))
        }
        _ => Ok((behind, Member::Named(name))),
    }
}

fn is_value(value: &Expression) -> bool {
    matches!(value, Expression::Integer(_) | Expression::Variable(_))
}

impl FamilyOf {
    /// Whether it is a cgroup by its path from the root, which could be a division by what follows the slash.
    pub fn is_of_path(&self) -> bool {
        matches!(self, FamilyOf::Cgroup(Some(path)) if path.node.starts_with('/'))
    }

    /// Whether it is the cgroup of the attached process.
    pub fn is_own_cgroup(&self) -> bool {
        matches!(self, FamilyOf::Cgroup(None))
    }

    pub fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            FamilyOf::Children => f.write_str(" children"),
            FamilyOf::Named(name) => write!(f, " {}", name.node),
            FamilyOf::Cgroup(path) => {
                f.write_str(" cgroup")?;
                path.as_ref().map_or(Ok(()), |path| write_quoted(f, Some(&path.node)))
            }
            FamilyOf::Members(members) => {
                f.write_str(" of")?;
                members.iter().enumerate().try_for_each(|(index, member)| {
                    f.write_str(if index > 0 { "," } else { "" })?;
                    match member {
                        Member::Value(value) => write!(f, " {}", value.node),
                        Member::Named(name) => write_quoted(f, Some(&name.node)),
                    }
                })
            }
        }
    }

    /// Its processes, by number, and the memory of the cgroup that they are in.
    pub fn processes(&self, context: &mut Context) -> Result<(Vec<ProcessHandle>, Option<CgroupMemory>), Error> {
        match self {
            FamilyOf::Children => {
                let target = context.target()?;
                Ok((descendants(&target.machine, target.process.identity().pid)?, None))
            }
            FamilyOf::Named(name) => {
                let (Expression::Text(name) | Expression::EscapedText { text: name, .. }) = &name.node else {
                    return Err(Error::refused("expected the name of a process as a text", "`account of postgres`"));
                };
                Ok((called(name, context)?, None))
            }
            FamilyOf::Members(members) => {
                let mut seen = BTreeSet::new();
                // Each process once, by number.
                let mut processes = BTreeMap::new();
                for member in members {
                    let sought = member.sought(context)?;
                    if !seen.contains(&sought) {
                        let found = sought.processes(member.place(), context)?;
                        processes.extend(found.into_iter().map(|one| (one.pid, one)));
                        seen.insert(sought);
                    }
                }
                Ok((processes.into_values().collect(), None))
            }
            FamilyOf::Cgroup(path) => {
                let path = match path {
                    Some(path) => Name::from(path.node.as_str()),
                    None => {
                        let hint = "`account cgroup PATH` is of any cgroup";
                        let own = context.target().map_err(|_| {
                            Error::refused("`cgroup` without a path is that of the process, and none is attached", hint)
                        });
                        own?.process.memory_cgroup()?
                    }
                };
                let machine = context.state.machine();
                let found = account::of_cgroup(machine, path.as_bytes());
                let (processes, memory) = found.map_err(|error| attach::similar_cgroup(&path, error, machine))?;
                Ok((processes, Some(memory)))
            }
        }
    }

    /// Its account. With `heaps`, private memory is divided by what glibc's heaps have of it; with `deleted`, deleted
    /// files are opened.
    pub fn run(
        &self,
        by: Option<Key>,
        (heaps, deleted): (bool, bool),
        cut: Option<RowLimit>,
        context: &mut Context,
    ) -> Outcome {
        let (processes, cgroup) = self.processes(context)?;
        let (machine, scan) = (Arc::clone(context.state.machine()), context.state.settings.scan);
        let listed = processes.len() as u64;
        let sink = &mut *context.sink;
        let family = Family::new(&machine, processes, scan).with_budget(sink.budget()).with_heaps(heaps);
        let family = family.opening_deleted_files(deleted).with_filesystems(cgroup.is_some());
        let mut family = family.grouped(by.and_then(FamilyKey::of))?;
        let (mut done, mut began) = (0, Instant::now());
        sink.progress(0, listed, "processes")?;
        let progress = |step, sink: &mut dyn Sink| {
            match step {
                FamilyStep::Process(which, _) => (done, began) = (which - 1, Instant::now()),
                FamilyStep::Pages(pages, of) if began.elapsed() >= rows::LONG_STEP => {
                    return Ok(sink.progress(pages, of, "pages")?);
                }
                FamilyStep::Pages(..) => {}
            }
            Ok(sink.progress(done, listed, "processes")?)
        };
        let stopped = pull(sink, "processes", || Ok(family.next()?.map(Step::Found)), progress)?;
        let mut family = if stopped.is_some() { family.with_budget(after_interruption()) } else { family };
        let sums = sums_of(&mut family, sink)?;
        if sums.members.is_empty()
            && cgroup.is_none()
            && let Some(reason) = family.uncounted().reason.clone()
        {
            return Err(reason.into());
        }
        let objects = match (&sums.hidden, stopped) {
            (Some(reason), _) => Err(reason.clone()),
            (None, Some(_)) => Err(Reason::NotApplicable(INTERRUPTED)),
            (None, None) => Ok(family.objects()),
        };
        let summary = summary(&family, &sums, &objects, (listed, done), stopped);
        if stopped != Some(Stopped::Closed) {
            if let Some(cgroup) = cgroup {
                charges::emit(cgroup, &family, &sums, &objects, sink)?;
            }
            let largest = sums.classes.iter().copied().max_by_key(|(_, sum)| sum.bytes).filter(|_| by.is_none());
            sink.answer(answer(&summary, largest.map(|(class, sum)| (class, sum.bytes))))?;
            if let Some(by) = by {
                groups(&sums, by, cut, &machine, sink)?;
            } else {
                classes(&sums, heaps && stopped.is_none(), sink)?;
                members(&sums, cut, &machine, sink)?;
            }
            objects.iter().try_for_each(|objects| objects::emit(objects, listed > 1, sink))?;
            rests::emit_of_family(&sums, sink)?;
            sink.emit(&summary)?;
        }
        stopped.map_or(Ok(Flow::Done), |stopped| Err(stopped.into()))
    }
}

/// Returns the budget of the sums after an interruption: what was counted is shown, if that does not last long.
fn after_interruption() -> Budget {
    Budget::unlimited().within(Duration::from_secs(2))
}

fn sums_of(family: &mut Family, sink: &mut dyn Sink) -> Result<FamilySums, Error> {
    let sums = family.sums();
    if matches!(sums, Err(inspect::Error::OutOfBudget(_))) {
        sink.note("interrupted: all processes were read, but the sums were not finished")?;
    }
    Ok(sums?)
}

/// Whom a member names.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Sought {
    Number(i128),
    Name(String),
}

impl Member {
    fn place(&self) -> Span {
        match self {
            Member::Value(value) => value.at,
            Member::Named(name) => name.at,
        }
    }

    fn sought(&self, context: &mut Context) -> Result<Sought, Error> {
        let value = match self {
            Member::Named(name) => return Ok(Sought::Name(name.node.clone())),
            Member::Value(value) => value,
        };
        let written = Spanned::new(lang::Range::Expression(value.node.clone()), value.at);
        Ok(match eval::value(&written, context.state)? {
            Value::Text(name) => Sought::Name(name),
            _ => Sought::Number(eval::integer(value, context.state)?.get()),
        })
    }
}

impl Sought {
    fn processes(&self, at: Span, context: &mut Context) -> Result<Vec<ProcessHandle>, Error> {
        let &number = match self {
            Sought::Name(name) => return called(name, context),
            Sought::Number(number) => number,
        };
        let machine = context.state.machine();
        if machine.is_captured() {
            let listed = machine.process_handles()?.processes.into_iter();
            let found: Vec<ProcessHandle> = listed.filter(|one| i128::from(one.pid) == number).collect();
            if found.is_empty() {
                let message = format!("this capture has no process {number}");
                return Err(eval::Error::new(at, message).hint("`ps` lists its processes").into());
            }
            return Ok(found);
        }
        Ok(vec![ProcessHandle::of_numbers(attach::resolve(&number.to_string(), context)?.pid, 0)])
    }
}

/// All processes of a name. Notes those of similar names.
fn called(name: &str, context: &mut Context) -> Result<Vec<ProcessHandle>, Error> {
    let machine = context.state.machine();
    let called = account::called(machine, name);
    let others = if machine.is_captured() { Vec::new() } else { process::similar_names(name) };
    let called = called.map_err(|error| match error {
        process::Error::Gone { what, .. } => {
            process::Error::no_such_process(what + &attach::guess(name, &others, std::iter::once("children")))
        }
        error => error,
    })?;
    if !others.is_empty() {
        let others = attach::spelled(&others);
        context.sink.note(format!("left out: processes with similar names ({others})"))?;
    }
    Ok(called)
}

/// What heaps divide private memory into.
const OF_HEAPS: &[FamilyClass] = &[FamilyClass::HeapInUse, FamilyClass::HeapFree, FamilyClass::HeapUnclear];

fn classes(sums: &FamilySums, heaps: bool, sink: &mut dyn Sink) -> Result<(), Stopped> {
    let mut classes: Vec<_> = sums.classes.iter().collect();
    classes.sort_by_cached_key(|(_, sum)| Reverse(sum.bytes));
    for &(class, sum) in classes {
        sink.emit(&AccountFamilyClass {
            class,
            bytes: sum.bytes,
            of: sums.distinct,
            mapped: sum.mapped,
            outside: outside(sum, sums),
            freed_by: freed_by(class),
        })?;
    }
    if heaps && !sums.classes.iter().any(|(class, _)| OF_HEAPS.contains(class)) {
        sink.note(NO_HEAP)?;
    }
    Ok(())
}

/// The rows of the groups, the largest first.
fn groups(
    sums: &FamilySums,
    by: Key,
    cut: Option<RowLimit>,
    machine: &Arc<Machine>,
    sink: &mut dyn Sink,
) -> Result<(), Stopped> {
    let reader = FactReader::of_frames(machine);
    let mut shown: Vec<&FamilyGroup> = sums.groups.iter().collect();
    if cut.is_some() {
        sink.show(More::SmallRows);
    }
    let more = rows::keep_shown(&mut shown, cut.or_else(|| rows::usual_cut(by)), |group| group.sum.bytes);
    for group in shown {
        let mut pid = None;
        let (key, object) = match &group.key {
            FamilyGroupKey::Mapping { object, name, is_deleted, is_without_path } => {
                (name_of_mapping(name, *is_deleted, *is_without_path), object.as_ref().map(ObjectIdentity::numbers))
            }
            FamilyGroupKey::Region { pid: of, region } => {
                pid = Some(*of);
                (rows::name_of_region(region), None)
            }
            FamilyGroupKey::Fact(of) => (rows::name_of_group(&reader, by, *of, &mut Why::default()), None),
        };
        sink.emit(&AccountFamilyGroup {
            by: by.to_string(),
            key,
            pid,
            device: object.and_then(|(device, _)| device).map(|device| device.to_string()),
            inode: object.map(|(_, inode)| inode),
            bytes: group.sum.bytes,
            of: sums.distinct,
            mapped: group.sum.mapped,
            in_one: group.in_one,
            outside: outside(group.sum, sums),
            processes: group.members.as_ref().map(|members| members.len() as u64),
            pids: group.members.clone().filter(|members| members.len() <= MOST_NAMED),
            nodes: on_nodes(group),
        })?;
    }
    note_hidden_rows(more, "group", sink)
}

/// The most processes of a mapping that are named.
const MOST_NAMED: usize = 4;

/// The nodes of a group, those with the most of its memory first.
fn on_nodes(group: &FamilyGroup) -> Vec<BytesOnNode> {
    let mut nodes: Vec<_> = group.nodes.iter().map(|(&node, &bytes)| BytesOnNode { node, bytes }).collect();
    nodes.sort_by_key(|one| Reverse(one.bytes));
    nodes
}

/// Bytes of the frames of a sum that other processes map too.
fn outside(sum: ClassSum, sums: &FamilySums) -> Fact<u64> {
    match sum.unclear {
        0 => Ok(sum.outside),
        _ => Err(sums.outside.clone().err().unwrap_or(Reason::Changed)),
    }
}

/// The rows of the processes, those with the most memory of their own first.
fn members(sums: &FamilySums, cut: Option<RowLimit>, machine: &Machine, sink: &mut dyn Sink) -> Result<(), Stopped> {
    let names = sums.members.iter().map(|member| (&member.identity.name, member.identity.pid));
    let namesakes = who::namesakes(names);
    let mut rows: Vec<AccountMember> = sums
        .members
        .iter()
        .map(|member| AccountMember {
            pid: member.identity.pid,
            process: member.identity.name.clone(),
            command_line: None,
            rss: member.rss,
            alone: member.alone.clone(),
            ends: member.ends.clone(),
            pss: member.pss,
            same_memory: member.same_memory.clone(),
        })
        .collect();
    let size = |row: &AccountMember| row.alone.clone().unwrap_or(row.rss);
    rows.sort_by_cached_key(|row| Reverse((size(row), row.rss)));
    let more = rows::keep_shown(&mut rows, cut, size);
    for row in &mut rows {
        // Processes of one name are told apart by their command lines.
        if namesakes.contains(&row.pid) {
            row.command_line = machine.process_entry(row.pid).and_then(|entry| entry.command_line);
        }
        sink.emit(row)?;
    }
    note_hidden_rows(more, "process", sink)
}

fn summary(
    family: &Family,
    sums: &FamilySums,
    objects: &Fact<MemoryObjects>,
    (listed, done): (u64, u64),
    stopped: Option<Stopped>,
) -> AccountFamily {
    let left_out = family.uncounted();
    let again: usize = sums.members.iter().map(|member| member.same_memory.len()).sum();
    AccountFamily {
        processes: sums.members.len() as u64 + again as u64,
        address_spaces: sums.members.len() as u64,
        bytes: sums.distinct,
        lower_bound: sums.is_lower_bound,
        rss: sums.rss,
        outside: sums.outside.clone(),
        unmapped: objects.as_ref().map_err(Clone::clone).and_then(MemoryObjects::unmapped),
        unmapped_bound: objects.as_ref().ok().and_then(objects::bound),
        why: objects::why(objects),
        deleted_files: objects.as_ref().ok().and_then(MemoryObjects::of_deleted_files),
        folio_rests: rests::sum(&sums.rests),
        hugetlb: sums.members.iter().map(|member| member.hugetlb).fold(0, u64::saturating_add),
        hidden: sums.hidden.is_some(),
        refused: left_out.refused,
        ended: left_out.ended,
        kernel_threads: left_out.kernel_threads,
        compared: family.compares(),
        not_counted: if stopped.is_some() { listed.saturating_sub(done) } else { 0 },
    }
}

/// What gives the memory of a class back.
fn freed_by(class: FamilyClass) -> &'static str {
    match class {
        FamilyClass::PrivateOne => "the end of its process",
        FamilyClass::PrivateSeveral | FamilyClass::HeapUnclear | FamilyClass::Merged => "the end of all of them",
        FamilyClass::HeapInUse => "free; malloc_trim in each too, but for large chunks",
        FamilyClass::HeapFree => "malloc_trim in each",
        FamilyClass::ShmemOne | FamilyClass::ShmemSeveral => FREES_SHARED_MEMORY,
        FamilyClass::FileOne | FamilyClass::FileSeveral => FREES_FILE_PAGES,
        FamilyClass::Kernel => FREES_KERNEL_PAGES,
        FamilyClass::Driver | FamilyClass::Secret => FREES_KEPT_MEMORY,
        _ => "munmap",
    }
}

/// The error, with a hint if the word is the name of processes, from which a shell has taken the quotes, or begins a
/// clause; or that of a cgroup, without its path.
pub(super) fn meant(range: &Spanned<lang::Range>, target: &Target, error: eval::Error) -> eval::Error {
    let name = range.node.to_string();
    if name.strip_prefix("cgroup").is_some_and(|behind| behind.trim_start().starts_with('/')) {
        return error.hint("a clause follows the path: `account cgroup /system.slice by mapping top 5`");
    }
    if let Some(hint) = clause_meant(&name) {
        let is_family = name == "children";
        let refused = || eval::Error::new(range.at, "this clause is for one process, and not for `children`");
        return if is_family { refused() } else { error }.hint(hint);
    }
    match process::processes_called(&name) {
        _ if FilterSubject::Page.has_condition(&name) => error.hint(format!(
            "`{name}` is a condition on pages: `walk all where {name}`; `account by mapping` lists files and (anonymous)"
        )),
        Ok(found) if !found.is_empty() => error.hint(format!(
            "for the processes of this name: `account of {name}`"
        )),
        _ => match attach::cgroup_called(&name, &target.machine) {
            Some(path) => error.hint(format!("for the cgroup: `account cgroup {path}`")),
            None => help::word_meant(&name, error),
        },
    }
}

/// The note on a name of memory that processes have too.
pub(super) fn also_processes(range: &Spanned<lang::Range>) -> Option<String> {
    let lang::Range::Expression(Expression::Name(name)) = &range.node else {
        return None;
    };
    let processes = counted(process::processes_called(&name.0).ok()?.len() as u64, "process");
    let name = &range.node;
    Some(format!("`{name}` is memory of this process here; for {processes} of this name: `account of {name}`"))
}

/// The hint for a word that begins a clause, where it could only be a name.
fn clause_meant(word: &str) -> Option<&'static str> {
    Some(match word {
        "of" => "add it: `account of NAME`",
        "by" => "add what to group by: `account by region`",
        "from" => "add a capture: `account from before.capture`",
        "with" => "add what to find in memory: `account with heap` or `account with content`",
        "top" | "limit" => "add what to group by, and a number: `account by region top 5`",
        "children" => "write `account children by mapping`, `account children with heap` or `account children top 5`",
        _ => return None,
    })
}
