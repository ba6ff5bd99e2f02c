//! `explain ADDR`: what a page is, whose it is, and what the next access will do.

mod heap;

use super::floor::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use super::help;
use super::huge::Huge;
use super::region;
use super::translate::{self, note_shorter, translation};
use crate::eval;
use crate::inspect::{
    self, Access, AddressSpace, Consequences, Evidence, OwnerUnknown, PageDetail, kind_unknown, movable,
};
use crate::kernel::{Region, State, VirtualAddress};
use crate::lang::parser::{Parsed, Tokens, address, split_text, word};
use crate::lang::{Expression, Spanned, Statement, display};
use crate::process::Target;
#[cfg(test)]
use crate::render::Record;
use crate::report::{Declared, Explanation, FilePlace, Hex, ReachedLimit, Reason, RoomLeft, Shape};
use crate::symbol::Symbols;
use nom::Parser;
use nom::combinator::{map, opt};
use nom::sequence::preceded;
use std::fmt::{self, Formatter};
use std::rc::Rc;

/// `explain ADDR [with heap]`
#[derive(Debug)]
pub struct Explain {
    /// The address.
    place: Spanned<Expression>,
    /// Whether the chunk of the heap is looked for.
    with_heap: bool,
}

impl Command for Explain {
    const RECORDS: &'static [Shape] = &[heap::HeapChunk::SHAPE];

    const ABOUT: About = About {
        name: CommandName::new("explain").short(&["e", "ex", "exp"]).how(),
        group: Group::Look,
        summary: "describe a page, its owner and the next access",
        text: "\
Describes the page at an address in sentences:

  state    the state and the kind of the page
  owner    this mapping alone, several mappings until one of them writes, or a file
  place    the frame, the zone and the node in the machine
  held     its references by holder, and its pins (needs /proc/kcore)
  moves    whether the kernel may move it to another frame, and by what (needs these records too)
  backing  the byte of the file (except in `.bss`), or the slot of the swap area
  symbol   the symbol of the address

  with heap  also the chunk of glibc's heap: whether it is in use, its size and its neighbours (walks over the heap)

Then predicts the target's next read and next write. An access can map a zero page, copy the page, reuse it, map \
a cached page, read the file or swap in. Or it raises SIGSEGV or SIGBUS (the cause is shown), waits for a userfaultfd \
handler, or has no further effect. If several effects are possible, the likeliest comes first and the others follow.

A new page may be refused: a file system without room raises SIGBUS, as does a cgroup at its limit on the hugetlb pool. \
At a limit on all memory, the kernel reclaims first. The OOM killer is named if memory.stat shows nothing to reclaim.

The prediction is for an access now: another thread or reclaim may change the page first. Memory with a protection \
key may refuse any access, because the rights of a thread are in registers that pmdb cannot see. Changes nothing.

`explain huge` is `huge`: why memory is not on huge pages.",
        examples: &[
            example("explain demo_buffer", "explain the page of a symbol"),
            example("e [stack]", "explain the lowest page of the stack"),
            example("explain libc.so.6", "explain the first page of a library"),
            example("explain [heap] with heap", "find the chunk of the heap at an address"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        heap::samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let with_heap = opt(preceded(word("with"), word("heap")));
        let explain = |(place, heap): (_, Option<_>)| Explain { place, with_heap: heap.is_some() };
        map((address, with_heap), explain).parse(input)
    }

    /// `explain huge …` is `huge …`. A symbol of that name is `&huge`.
    fn statement(input: Tokens<'_>) -> Parsed<'_, Statement> {
        if let Ok((behind, _)) = word("huge")(input)
            && let Ok((behind, huge)) = Huge::statement(behind)
            && split_text(behind).0.is_empty()
        {
            return Ok((behind, huge));
        }
        let (behind, explain) = Self::parse(input)?;
        Ok((behind, Statement::Command(Rc::new(explain))))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.place.node)?;
        display::word_if(f, self.with_heap, "with heap")
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let Explain { place, with_heap } = self;
        let (address, spans) = eval::place_and_spans(place, context.state)
            .map_err(|error| help::word_meant(&place.node.to_string(), error))?;
        let target = context.target()?;
        context.state.last_address = Some(address);
        if let Err(error) = target.process.require_page_map() {
            without_page(context, &target, address, &error.into())?;
            return if *with_heap {
                heap::emit(&target, address, context).map(|()| Flow::Done)
            } else {
                Ok(Flow::Done)
            };
        }
        let (space, detail) = AddressSpace::detail_at(&target, address)?;
        let consequences = space.predict_access(&detail, &mut context.sink.budget())?;
        let file = detail
            .region
            .as_ref()
            .filter(|region| !is_zeroed(&context.state.symbols, &target, region, address))
            .and_then(|region| file_place(region, address));
        let mut explanation = explanation(&space, detail, consequences, file, &context.state.symbols);
        explanation.range_pages = eval::pages_of_range(spans.as_ref(), context.state);
        explanation.advice = region::advice(&space, address);
        let is_outside = explanation.page.state == Ok(State::Outside) && explanation.page.region.is_none();
        context.sink.emit(&explanation)?;
        if *with_heap {
            heap::emit(&target, address, context)?;
        }
        if is_outside {
            note_shorter(context, &target, address)?;
        }
        Ok(Flow::Done)
    }
}

/// The page, what is known of it, and what the next access does.
fn explanation(
    space: &AddressSpace,
    detail: PageDetail,
    consequences: Consequences,
    file: Option<FilePlace>,
    symbols: &Symbols,
) -> Explanation {
    let limits = consequences.limits;
    let unknown = [
        ("owner", consequences.owner.err().and_then(|unknown| reason(unknown, &detail))),
        ("room", limits.room.as_ref().err().cloned()),
        ("group_limit", limits.group.as_ref().err().cloned()),
    ];
    let mut page = translation(space, detail, symbols);
    let known = unknown.iter().filter_map(|(field, reason)| Some((*field, reason.as_ref()?)));
    known.for_each(|(field, reason)| page.why.note(field, reason));
    if let (Ok(_), None, Err(inspect::Error::Unknown { reason, .. })) =
        (&page.pfn, &page.kernel_record, space.require(Evidence::REFERENCES))
    {
        page.why.note("kernel_record", &reason);
        page.why.note("movable", &reason);
    }
    let flags = page.words.flags.as_ref().ok().copied();
    Explanation {
        owner: consequences.owner.ok(),
        movable: page.kernel_record.as_ref().and_then(|record| movable(page.kind, flags, record)),
        page,
        range_pages: None,
        file,
        discardable: consequences.discardable,
        droppable: consequences.is_droppable,
        room: limits.room.ok().flatten().map(|left| RoomLeft { bytes: left.bytes, left: left.available }),
        group_limit: limits.group.ok().flatten().map(|group| ReachedLimit {
            bytes: group.limit,
            left: group.left(),
            reclaimable: group.reclaimable,
            cgroup: group.path,
        }),
        protection_key: consequences.protection_key,
        region_locked: consequences.region_locked,
        advice: None,
        next_read: Ok(consequences.read),
        next_write: Ok(consequences.write),
    }
}

/// Explains an address of a core file without a page map: what its region alone tells.
fn without_page(context: &mut Context, target: &Target, address: VirtualAddress, reason: &Reason) -> Outcome {
    let space = AddressSpace::at(target, address)?;
    let mut page = translate::without_page(&space, address, &context.state.symbols, reason)?;
    let region = space.viewed_region(address).map(|viewed| &viewed.region);
    let file = region.filter(|region| !is_zeroed(&context.state.symbols, target, region, address));
    let is_mapped = region.is_some();
    if is_mapped {
        page.why.note("owner", reason);
    }
    let outcome = |access| space.outcome_of_region(address, access).ok_or_else(|| reason.clone());
    let nothing = Reason::NotApplicable("no page is mapped here");
    context.sink.emit(&Explanation {
        owner: None,
        range_pages: None,
        movable: None,
        file: file.and_then(|region| file_place(region, address)),
        discardable: Err(if is_mapped { reason.clone() } else { nothing }),
        droppable: false,
        room: None,
        group_limit: None,
        protection_key: None,
        region_locked: None,
        advice: None,
        next_read: outcome(Access::Read),
        next_write: outcome(Access::Write),
        page,
    })?;
    Ok(Flow::Done)
}

/// Why the owner of a mapped page is unknown.
fn reason(unknown: OwnerUnknown, detail: &PageDetail) -> Option<Reason> {
    let limit = |text: &str| Some(Reason::NotOnThisKernel(text.into()));
    match unknown {
        OwnerUnknown::NoPage => None,
        OwnerUnknown::Kind => Some(kind_unknown(&detail.page)),
        OwnerUnknown::Exclusive => detail.exclusive.clone().err(),
        OwnerUnknown::SwapCache => {
            limit("it is in the swap cache, and the kernel does not show whether another process uses the slot")
        }
        OwnerUnknown::MarkOfFolio => {
            limit("it is mapped only here, but in a large folio only the first page shows whether it was shared")
        }
    }
}

/// Whether the loader cleared these bytes of the file.
fn is_zeroed(symbols: &Symbols, target: &Target, region: &Region, address: VirtualAddress) -> bool {
    symbols.may_name(target, region)
        && symbols.regions_for(target, region).is_ok_and(|regions| symbols.over(target, &*regions).is_zeroed(address))
}

/// Which byte of which file the region maps at an address.
fn file_place(region: &Region, address: VirtualAddress) -> Option<FilePlace> {
    let into = address.get().checked_sub(region.range.start().get())?;
    region.maps_object().then(|| FilePlace {
        name: region.name.clone(),
        offset: Hex(region.offset.saturating_add(into)),
        deleted: region.is_deleted_file(),
    })
}
