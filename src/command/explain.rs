//! `explain ADDR`: what a page is, whose it is, and what the next access will do.

use super::translate::{note_shorter, translation};
use super::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use crate::eval;
use crate::inspect::{AddressSpace, OwnerUnknown, PageDetail, kind_unknown};
use crate::kernel::{Region, State, VirtualAddress};
use crate::lang::parser::{Parsed, Tokens, address};
use crate::lang::{Expression, Spanned};
use crate::process::Target;
use crate::report::{Explanation, FilePlace, Hex, Reason};
use crate::symbol::Symbols;
use nom::Parser;
use nom::combinator::map;
use std::fmt::{self, Formatter};

/// `explain ADDR`: what a page is and what the next access will do.
#[derive(Debug)]
pub struct Explain(Spanned<Expression>);

impl Command for Explain {
    const ABOUT: About = About {
        name: CommandName::new("explain").short(&["e"]).how(),
        group: Group::Look,
        summary: "describe a page, its owner and the effect of the next access",
        text: "\
Describes the page at an address in sentences:

  state    the state and the kind of the page
  owner    this mapping alone, several mappings until one of them writes, or a file
  place    the frame, the zone and the node in the machine
  backing  the byte of the file (except in `.bss`), or the slot of the swap area
  symbol   the symbol of the address

Then predicts the target's next read and next write. An access can map a page of zeros, copy the page, reuse it, map \
a cached page, read the file or swap in. It can also raise SIGSEGV or SIGBUS, with the cause, wait for a userfaultfd \
handler, or have no effect beyond itself. If several effects are possible, the likeliest comes first and the others \
follow.

The prediction is for an access now: another thread or reclaim may change the page first. Memory with a protection \
key may refuse any access, because the rights of a thread are in registers that pmdb cannot see. Changes nothing.",
        examples: &[
            example("explain demo_buffer", "explain the page of a symbol"),
            example("e [stack]", "explain the lowest page of the stack"),
            example("explain libc.so.6", "explain the first page of a library"),
        ],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        map(address, Explain).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.0.node)
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let Explain(place) = self;
        let target = context.target()?;
        let address = eval::address(place, context.state)?;
        context.state.last_address = Some(address);
        let (space, detail) = AddressSpace::detail_at(&target, address)?;
        let consequences = space.consequences(&detail, &mut context.sink.budget())?;
        let file = detail
            .region
            .as_ref()
            .filter(|region| !is_zeroed(&context.state.symbols, &target, region, address))
            .and_then(|region| file_place(region, address));
        let unknown = consequences.owner.err().and_then(|unknown| reason(unknown, &detail));
        let mut page = translation(&space, detail, &context.state.symbols);
        if let Some(reason) = unknown {
            page.why.note("owner", &reason);
        }
        let is_outside = page.state == State::Outside && page.region.is_none();
        let explanation = Explanation {
            page,
            owner: consequences.owner.ok(),
            file,
            discardable: consequences.discardable,
            protection_key: consequences.protection_key,
            next_read: consequences.read,
            next_write: consequences.write,
        };
        context.sink.emit(&explanation)?;
        if is_outside {
            note_shorter(context, &target, address)?;
        }
        Ok(Flow::Done)
    }
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
        && symbols.regions(target).is_ok_and(|regions| symbols.over(target, &*regions).is_zeroed(address))
}

/// Which byte of which file the region maps at an address.
fn file_place(region: &Region, address: VirtualAddress) -> Option<FilePlace> {
    let into = address.get().checked_sub(region.range.start().get())?;
    (region.inode != 0).then(|| FilePlace {
        name: region.name.clone(),
        offset: Hex(region.offset.saturating_add(into)),
        deleted: region.is_deleted_file(),
    })
}
