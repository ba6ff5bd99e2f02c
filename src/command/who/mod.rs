//! `who PLACE [limit N]`: which processes map a frame, and where.

pub(super) mod records;

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use super::frames::require_frame;
use super::pointers::hint_frame;
use super::ps;
use super::rows::{finish, pull};
use crate::eval::{self, Location, Spans};
use crate::inspect::who::{self, EndCause, FrameQuestion, KnownMapping, SearchSummary};
use crate::inspect::{AddressNames, AddressSpace, frame_words, kernel_record};
use crate::kernel::{AddressRange, Device, FrameNumber, Kind, Name, PageSize, State, VirtualAddress};
use crate::lang::parser::{Parsed, Tokens, address, after, count};
use crate::lang::{Count, Expression, Spanned, display};
use crate::process::Machine;
#[cfg(test)]
use crate::render::Record;
use crate::render::Sink;
use crate::report::{Shape, SymbolBrief};
use crate::symbol::Symbols;
use nom::Parser;
use nom::combinator::opt;
use records::{MapperRow, SearchEnd, WhoSummary};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::{self, Formatter};
use std::sync::Arc;

/// `who PLACE [limit N]`: an address, `pfn:N` or `phys:N`.
#[derive(Debug)]
pub struct Who {
    /// Whose frame.
    place: Spanned<Expression>,
    /// At most so many rows.
    limit: Option<Spanned<Count>>,
}

impl Command for Who {
    const RECORDS: &'static [Shape] = records::RECORDS;
    const ABOUT: About = About {
        name: CommandName::new("who").how().alone_before(&["pfn:", "phys:"]),
        group: Group::Look,
        summary: "list the processes and addresses that map a frame",
        text: "\
Lists every process and address that map a frame, with region and symbol. The frame is that of an address, or is \
given as pfn:N or phys:N.

  limit N  stop after N rows, which is fast even among very many processes

The search begins at the likely places:

  page of a file    all mappings of that offset of the file
  anonymous memory  the same address in related processes, then in the others

If the reverse map of the kernel can be read (/proc/kcore), only the processes are read that it names. Of many \
children that map the frame alike, one is read.

The search ends when it has found as many mappings as the kernel counts. Otherwise it scans all resident memory of the \
processes. The last lines show how the search ended, and how many processes could not be read.

A frame that nobody maps may still have an owner, which these records show. It is a file, a free block, a cache of \
the slab allocator, or a page pool of the network stack.

The kernel does not count mappings of the zero page: the search for it covers every process. Threads share one \
address space, which is shown once. After `fork` a child maps the private pages of its parent. A process maps a page of \
a file or of shared memory only after its own first access. Processes that share a name are listed with their command \
lines, if there are at most 50.

Needs the right to see frame numbers (CAP_SYS_ADMIN).",
        examples: &[
            example("who demo_buffer", "list the mappings of the page of a symbol"),
            example("who $shared", "list the mappings of a shared page"),
            example("who pfn(demo_buffer)", "name the frame by its number"),
            example("who demo_buffer limit 1", "stop at the first mapping"),
            example("who phys:0x1000", "list the mappings of a physical address"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        records::samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (input, (place, limit)) = (address, opt(after("limit", count))).parse(input)?;
        Ok((input, Who { place, limit }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.place.node)?;
        display::clause(f, "limit", self.limit.as_ref().map(|limit| &limit.node))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let Who { place, limit } = self;
        let count = |limit| eval::count(limit, context.state);
        let limit = limit.as_ref().map(count).transpose()?;
        if limit == Some(0) {
            return Err(Error::nothing_wanted("limit"));
        }
        let machine = context.state.machine().clone();
        let (question, offset, spans) = question(context, place, machine.page_size())?;
        context.state.last_address = None;
        let question = FrameQuestion { limit, ..question };
        let mut listener = Listener::new(&question, offset, &machine, &context.state.symbols);
        let sink = &mut *context.sink;
        let mut search = who::who(&machine, &question)?.with_budget(sink.budget());
        let next = || search.next();
        let stopped = pull(sink, "processes", next, |mapper, sink| Ok(sink.emit(&listener.row(mapper))?));
        let Listener { own, own_mappings, named, last, .. } = listener;
        context.state.last_address = last;
        let stopped = stopped?;
        let mut summary = summary(search.summary(), &question, &machine);
        let is_target = own.is_some() && question.near == own;
        summary.words.own_mappings = Some(own_mappings).filter(|&own| own > 0 && !is_target);
        let is_unmapped = summary.counts.mappings == 0 && stopped.is_none();
        let record = || kernel_record(&machine, question.frame, &summary.words.flags);
        summary.kernel_record = if is_unmapped { record() } else { None };
        summary.range_pages = eval::pages_of_range(spans.as_ref(), context.state);
        summary.in_capture = machine.is_captured();
        if stopped.is_none() {
            let namesakes = namesakes(named.iter().map(|(name, pid)| (name, *pid)));
            list(&namesakes, &machine, sink)?;
        }
        finish(&summary, stopped, sink)?;
        Ok(Flow::Done)
    }
}

/// The question, the offset of the place in its page, and the range that the place is the start of.
fn question(
    context: &mut Context,
    place: &Spanned<Expression>,
    page: PageSize,
) -> Result<(FrameQuestion, u64, Option<Spans>), Error> {
    let located = eval::location(place, context.state)?;
    if let Some(frame) = located.frame(page) {
        require_frame(context.state.machine(), frame, place.at)?;
    }
    Ok(match located {
        Location::Frame(frame) => (by_frame(context, frame), 0, None),
        Location::Physical(physical) => (by_frame(context, physical.frame(page)), physical.offset(page), None),
        Location::Address(address, spans) => (by_address(context, place, address)?, page.offset(address), spans),
    })
}

fn by_frame(context: &Context, frame: FrameNumber) -> FrameQuestion {
    let target = context.state.target();
    FrameQuestion {
        frame,
        seen: None,
        near: target.map(|target| target.process.identity().pid),
        scan: context.state.settings.scan,
        limit: None,
    }
}

/// The frame behind an address; an error if there is none, or if its number is hidden.
fn by_address(
    context: &mut Context,
    place: &Spanned<Expression>,
    address: VirtualAddress,
) -> Result<FrameQuestion, Error> {
    let target = context.target()?;
    let (space, detail) = AddressSpace::detail_at(&target, address)?;
    if let (State::PfnMapped, Ok(frame)) = (detail.page.state(), &detail.frame) {
        let message = format!(
            "no search for the mappings of {address}: it is mapped to frame {frame} of a device, and page maps show no such \
             mappings"
        );
        return Err(eval::Error::new(place.at, message).into());
    }
    let frame = detail.frame.map_err(|reason| {
        let state = detail.page.state().phrase();
        if reason.is_refusal() {
            let what = format!("no search for the mappings of {address}");
            eval::Error::unknown(place.at, what, &reason)
        } else {
            let message = format!("{address} has no frame: its page is {state}");
            let error = eval::Error::new(place.at, message);
            match (detail.page.state(), &detail.region) {
                (State::Untouched, Some(region)) => {
                    let pages = match &place.node {
                        Expression::Name(_) | Expression::BracketedRegion(_) | Expression::ModuleRegion { .. } => {
                            place.node.to_string()
                        }
                        _ => region.range.to_string(),
                    };
                    let other = format!("for another page with a frame: `walk {pages} where present limit 1`");
                    error.hint(match detail.page.kind {
                        Some(Kind::File | Kind::Shmem | Kind::Cached) => {
                            format!("use `who` in a process that has touched it; {other}")
                        }
                        _ => other,
                    })
                }
                (state, _) => hint_frame(context, "who", place, state, error),
            }
        }
    })?;
    Ok(FrameQuestion {
        seen: Some(KnownMapping {
            pid: target.process.identity().pid,
            address: space.page_size().floor(address),
            region: detail.region,
        }),
        ..by_frame(context, frame)
    })
}

/// The most places whose names are searched among the variables of their process.
const MOST_PLACES: usize = 256;

/// A place that has the same symbol in every process.
#[derive(PartialEq, Eq, Hash)]
enum MappedPlace {
    /// An offset in a file.
    File(Device, u64, u64),
    /// An address in memory without a file: of processes of one name, in regions with one range. They map one frame
    /// there, because they are relatives, or because the kernel has merged what they do alike.
    Memory(Name, AddressRange, VirtualAddress),
}

/// Lists processes of the same name, so that their command lines tell them apart. A longer list would help nobody, and
/// reading it takes longer than the search.
fn list(namesakes: &BTreeSet<u32>, machine: &Machine, sink: &mut dyn Sink) -> Result<(), Error> {
    const MOST: usize = 50;
    if namesakes.len() > MOST {
        let message =
            format!("{} of these processes share a name with another: `ps` shows their command lines", namesakes.len());
        return Ok(sink.note(message)?);
    }
    // Command lines are read only where that brings in nothing: see `source::ProcessEntry`.
    let users = ps::users_of(machine);
    for entry in namesakes.iter().filter_map(|pid| machine.process_entry(*pid)) {
        sink.emit(&ps::row(&entry, &users))?;
    }
    Ok(())
}

/// The processes that share a name with another.
pub(super) fn namesakes<'a>(processes: impl Iterator<Item = (&'a Name, u32)>) -> BTreeSet<u32> {
    let mut named: BTreeMap<&Name, BTreeSet<u32>> = BTreeMap::new();
    for (name, pid) in processes {
        named.entry(name).or_default().insert(pid);
    }
    let several = named.into_values().filter(|pids| pids.len() > 1);
    several.flatten().collect()
}

struct Listener<'a> {
    /// The target, and the last address at which it has the page.
    target: Option<u32>,
    last: Option<VirtualAddress>,
    /// The process id of pmdb, and mappings by pmdb itself.
    own: Option<u32>,
    own_mappings: u64,
    /// The processes, with their names.
    named: BTreeSet<(Name, u32)>,
    symbols: &'a Symbols,
    known: HashMap<MappedPlace, Option<SymbolBrief>>,
    offset: u64,
}

impl<'a> Listener<'a> {
    fn new(question: &FrameQuestion, offset: u64, machine: &Machine, symbols: &'a Symbols) -> Self {
        Listener {
            target: question.near,
            last: None,
            own: machine.own_number().ok().flatten(),
            own_mappings: 0,
            named: BTreeSet::new(),
            symbols,
            known: HashMap::new(),
            offset,
        }
    }

    fn row(&mut self, mapper: who::Mapper) -> MapperRow {
        let identity = mapper.process.clone();
        let address = VirtualAddress::new(mapper.address.get() + self.offset);
        if Some(identity.pid) == self.target {
            self.last = Some(address);
        }
        if Some(identity.pid) == self.own {
            self.own_mappings += mapper.pages;
        }
        let symbol = self.symbol(&mapper, address);
        self.named.insert((identity.name.clone(), identity.pid));
        MapperRow {
            pid: identity.pid,
            name: identity.name,
            address,
            pages: mapper.pages,
            region: mapper.region.as_ref().map(Into::into),
            symbol,
        }
    }

    fn symbol(&mut self, mapper: &who::Mapper, address: VirtualAddress) -> Option<SymbolBrief> {
        let region = mapper.region.as_ref()?;
        let place = match region.file_offset(address) {
            Some(offset) => MappedPlace::File(region.device, region.inode, offset),
            None => MappedPlace::Memory(mapper.process.name.clone(), region.range, address),
        };
        // JIT-compiled code has different names in each process.
        let is_alike = matches!(place, MappedPlace::File(..)) || !region.permissions.execute;
        if let Some(known) = self.known.get(&place).filter(|_| is_alike) {
            return known.clone();
        }
        let is_worth_it = AddressNames::may_be_pointed_to(region) && self.known.len() < MOST_PLACES;
        if matches!(place, MappedPlace::Memory(..)) && mapper.regions.is_none() && !is_worth_it {
            return None;
        }
        let target = mapper.target().ok()??;
        let regions = match &mapper.regions {
            Some(regions) => Arc::clone(regions),
            None => target.process.regions().ok()?.into(),
        };
        let named = AddressNames::new(self.symbols.over(&target, &*regions)).at(address);
        let symbol = named.map(|named| SymbolBrief { name: named.name, offset: named.offset, module: named.module });
        self.known.insert(place, symbol.clone());
        symbol
    }
}

fn summary(answer: SearchSummary, question: &FrameQuestion, machine: &Machine) -> WhoSummary {
    let uncounted = answer.uncounted.map(|reason| reason.to_string());
    let (ended, because) = match answer.end_cause {
        EndCause::Nobody(reason) => (SearchEnd::Nobody, Some(reason.to_owned())),
        EndCause::Counted => (SearchEnd::Counted, None),
        EndCause::Searched => (SearchEnd::Searched, uncounted),
        EndCause::Limit => (SearchEnd::Limit, uncounted),
        EndCause::Stopped => (SearchEnd::Interrupted, None),
    };
    WhoSummary {
        pfn: question.frame,
        range_pages: None,
        physical: question.frame.physical(machine.page_size()),
        words: frame_words(machine, answer.flags, answer.map_count),
        counts: answer.counts,
        ended,
        by_records: answer.by_records,
        because,
        kernel_record: None,
        moved: answer.has_moved,
        lists_all: answer.lists_all,
        in_capture: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_wanted_where_several_processes_have_a_name() {
        let (postgres, pmdb) = (Name::new("postgres"), Name::new("pmdb"));
        // Two mappings of one process.
        let named = [(&postgres, 7), (&pmdb, 5), (&postgres, 8), (&postgres, 9), (&pmdb, 5)];
        assert_eq!(namesakes(named.into_iter()), [7, 8, 9].into());
    }
}
