//! `flags WHERE`: the flags of one frame, each explained.

use super::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example, walk};
use crate::eval::{self, Location};
use crate::inspect::{AddressSpace, frame_detail, frame_words};
use crate::kernel::page_flags::{FlagContext, explain};
use crate::kernel::{FrameNumber, PageFlags, VirtualAddress};
use crate::lang::parser::{Parsed, Tokens, address};
use crate::lang::{Expression, Spanned};
use crate::process::Machine;
use crate::report::{Fact, FlagMeaning, FlagsReport, Reason};
use nom::Parser;
use nom::combinator::map;
use std::fmt;
use std::fmt::Formatter;

/// `flags PLACE`: an address, `pfn:N` or `phys:N`.
#[derive(Debug)]
pub struct Flags(Spanned<Expression>);

impl Command for Flags {
    const ABOUT: About = About {
        name: CommandName::new("flags").short(&["f"]).how(),
        group: Group::Look,
        summary: "explain each flag of a page frame",
        text: "\
Shows each bit of the frame in /proc/kpageflags by name, with its meaning for this page. A bit without a name is \
shown as bitNN.

Also shows the map count, the zone, the node, and the entries of /proc/iomem for this place. Ends with the memory \
cgroup that the frame is charged to: its path, or @INODE if its directory was removed.

ADDRESS is an address of the target, or a frame as pfn:N or phys:N. Frames need no target.",
        examples: &[
            example("flags demo_buffer", "explain the frame of a symbol"),
            example("flags pfn:0x1000", "explain a frame by its number"),
            example("flags phys:0x1000000", "explain the frame at a physical address"),
        ],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        map(address, Flags).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.0.node)
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let Flags(place) = self;
        let machine = context.state.machine().clone();
        let mut own_mappings = Ok(0);
        let (frame, address) = match eval::location(place, context.state)? {
            Location::Frame(frame) => (Ok(frame), None),
            Location::Physical(physical) => (Ok(physical.frame(machine.page())), None),
            Location::Address(address) => {
                context.state.last_address = Some(address);
                let (frame, own) = frame_at(context, place, address)?;
                own_mappings = own;
                (frame, Some(address))
            }
        };
        let mut report = report(&machine, frame, address);
        match own_mappings {
            Ok(own) => report.words.own_mappings = Some(own).filter(|&own| own > 0),
            Err(reason) => context.sink.note(walk::own_mappings_unknown(&reason))?,
        }
        context.sink.emit(&report)?;
        Ok(Flow::Done)
    }
}

/// The frame behind an address, or the reason why its number is hidden, and how often pmdb itself maps it; an error if
/// there is no frame.
fn frame_at(
    context: &mut Context,
    place: &Spanned<Expression>,
    address: VirtualAddress,
) -> Result<(Fact<FrameNumber>, Fact<u64>), Error> {
    let target = context.target()?;
    let (_, detail) = AddressSpace::detail_at(&target, address)?;
    match detail.frame {
        Err(reason) if reason != Reason::FrameHidden => {
            let message = format!("no flags for {address}: its page is {}: {reason}", detail.page.state().word());
            Err(eval::Error::new(place.at, message).into())
        }
        frame => Ok((frame, detail.own_mappings)),
    }
}

fn report(machine: &Machine, pfn: Fact<FrameNumber>, address: Option<VirtualAddress>) -> FlagsReport {
    let size = machine.page();
    let detail = frame_detail(machine, &pfn);
    let words = frame_words(machine, detail.flags, detail.map_count);
    let physical =
        |frame: FrameNumber| frame.physical(size).ok_or(Reason::NotApplicable("no physical address is that large"));
    FlagsReport {
        address,
        physical: pfn.clone().and_then(physical),
        folio: pfn.clone().and_then(|frame| Ok(detail.folio?.report(frame, size))),
        pfn,
        place: detail.place,
        meanings: match &words.flags {
            Ok(flags) => meanings(*flags, machine),
            Err(_) => Vec::new(),
        },
        words,
    }
}

/// What each set flag means together with the others.
pub(super) fn meanings(flags: PageFlags, machine: &Machine) -> Vec<FlagMeaning> {
    let context = FlagContext { kernel: machine.kernel().number, false_flags: machine.false_flags() };
    flags
        .each()
        .map(|(bit, flag)| FlagMeaning {
            bit,
            name: flag.names().concat(),
            meaning: explain(flag, flags, context).to_owned(),
        })
        .collect()
}
