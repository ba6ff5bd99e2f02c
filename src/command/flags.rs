//! `flags WHERE`: the flags of one frame, each explained.

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use super::frames::require_frame;
use super::pointers::hint_frame;
use super::walk;
use crate::eval::{self, Location};
use crate::inspect::{AddressSpace, frame_detail, frame_words};
use crate::kernel::page_flags::{FlagContext, explain};
use crate::kernel::{FrameNumber, PageFlags, PhysicalAddress, VirtualAddress};
use crate::lang::parser::{Parsed, Tokens, address};
use crate::lang::{Expression, Spanned, WrittenName};
use crate::process::Machine;
use crate::render::Record;
use crate::render::text::block::{self, REMARK};
use crate::render::text::footnotes::Footnotes;
use crate::render::text::lines::Lines;
use crate::render::text::{Text, held, words};
use crate::render::theme::Role;
use crate::report::record::record;
use crate::report::{Declared, Fact, FolioReport, FramePlace, FrameWords, KernelRecord, Reason, Shape, Why};
use nom::Parser;
use nom::combinator::map;
use std::fmt::{self, Formatter};

/// `flags PLACE`: an address, `pfn:N` or `phys:N`.
#[derive(Debug)]
pub struct Flags(Spanned<Expression>);

impl Command for Flags {
    const RECORDS: &'static [Shape] = &[FlagsReport::SHAPE];
    const ABOUT: About = About {
        name: CommandName::new("flags").short(&["f"]).how().alone_before(&["pfn:", "phys:"]),
        group: Group::Look,
        summary: "explain each flag of a page frame",
        text: "\
Shows each bit of the frame in /proc/kpageflags by name, with its meaning for this page. A bit without a name is \
shown as bitNN.

Also shows the map count, the zone, the node, and the entries of /proc/iomem for this place. Ends with the memory \
cgroup that the frame is charged to: its path, or @INODE if its directory was removed.

`struct page` (/proc/kcore) names the owner of the frame, where it can be read. It is a file with its path, \
a free block with its order, a cache of the slab allocator, or a page pool, whose pages are buffers of network \
drivers. A path begins with … because the place where its filesystem is mounted is unknown.

ADDRESS is an address of the target, or a frame as pfn:N or phys:N. Frames need no target.",
        examples: &[
            example("flags demo_buffer", "explain the frame of a symbol"),
            example("flags pfn:0x1000", "explain a frame by its number"),
            example("flags phys:0x1000000", "explain the frame at a physical address"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

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
        let located = eval::location(place, context.state).map_err(|error| about_flag(error, place))?;
        if let Some(frame) = located.frame(machine.page_size()) {
            require_frame(&machine, frame, place.at)?;
        }
        let (frame, address, spans) = match located {
            Location::Frame(frame) => (Ok(frame), None, None),
            Location::Physical(physical) => (Ok(physical.frame(machine.page_size())), None, None),
            Location::Address(address, spans) => {
                context.state.last_address = Some(address);
                let (frame, own) = frame_at(context, place, address)?;
                own_mappings = own;
                (frame, Some(address), spans)
            }
        };
        let mut report = report(&machine, frame, address);
        match own_mappings {
            Ok(own) => report.words.own_mappings = Some(own).filter(|&own| own > 0),
            Err(reason) => context.sink.note(walk::own_mappings_unknown(&reason))?,
        }
        report.range_pages = eval::pages_of_range(spans.as_ref(), context.state);
        context.sink.emit(&report)?;
        Ok(Flow::Done)
    }
}

/// The error for a place, with a hint if this is the name of a flag.
fn about_flag(error: eval::Error, place: &Spanned<Expression>) -> eval::Error {
    match &place.node {
        Expression::Name(WrittenName(name)) if PageFlags::from_flag_name(name).is_some() => {
            error.hint(format!("`flags ADDRESS` shows the flags of a page; `help {name}` explains this one"))
        }
        _ => error,
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
            let message = format!("no flags for {address}: its page is {}", detail.page.state().phrase());
            Err(hint_frame(context, "flags", place, detail.page.state(), eval::Error::new(place.at, message)).into())
        }
        frame => Ok((frame, detail.own_mappings)),
    }
}

fn report(machine: &Machine, pfn: Fact<FrameNumber>, address: Option<VirtualAddress>) -> FlagsReport {
    let size = machine.page_size();
    let detail = frame_detail(machine, &pfn);
    let words = frame_words(machine, detail.flags, detail.map_count);
    let physical =
        |frame: FrameNumber| frame.physical(size).ok_or(Reason::NotApplicable("no physical address is that large"));
    FlagsReport {
        address,
        range_pages: None,
        physical: pfn.clone().and_then(physical),
        folio: pfn.clone().and_then(|frame| Ok(detail.folio?.report(frame, size))),
        pfn,
        kernel_record: detail.record,
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
    let context = FlagContext { kernel: machine.kernel().number, false_flags: machine.mistaken_flags() };
    flags
        .each()
        .map(|(bit, flag)| FlagMeaning {
            bit,
            name: flag.names().concat(),
            meaning: explain(flag, flags, context).to_owned(),
        })
        .collect()
}

record! {
    /// `flags`
    pub struct FlagsReport as "page-flags" with why {
        /// The virtual address in the request, if any.
        address: Option<VirtualAddress>,
        /// The pages of the range that was given, if it has several: this is the first of them.
        [optional] range_pages: Option<u64>,
        /// The frame. Unknown if the address has one, but its number is hidden.
        pfn: Fact<FrameNumber>,
        /// Its physical address: `phys` in filters.
        physical: Fact<PhysicalAddress>,
        /// Its words.
        [flat] words: FrameWords,
        /// The folio that it belongs to.
        folio: Fact<FolioReport>,
        /// The kernel's own record of the frame, where that can be read.
        [optional] kernel_record: Option<KernelRecord>,
        /// Its place.
        [flat] place: FramePlace,
        /// The meaning of each set bit for this frame.
        meanings: Vec<FlagMeaning>,
    }

    /// A flag and its meaning for this frame.
    #[derive(Eq)]
    pub struct FlagMeaning {
        /// Its bit.
        bit: u32,
        /// Its name.
        name: String,
        /// Its meaning here.
        meaning: String,
    }
}

impl Record for FlagsReport {
    fn write(&self, text: &mut Text) {
        text.block(write_block, self);
    }
}

/// Writes the facts of a frame.
fn write_block(lines: &mut Lines, report: &FlagsReport) {
    let line = lines.field("frame");
    match &report.pfn {
        Ok(frame) => line.push(Role::Frame, frame),
        Err(_) => line.push(Role::Warn, "hidden"),
    };
    line.indent_at(REMARK);
    if let Ok(physical) = &report.physical {
        line.plain("physical ").push(Role::Physical, physical);
    }
    if let Some(address) = report.address {
        line.word(", ", Role::Plain, "mapped at ").push(Role::Address, address);
    }
    block::first_page(line, report.range_pages);
    if let Ok(flags) = report.words.flags {
        raw_flags(lines, flags);
        write_meanings(lines, &report.meanings);
    }
    if let Ok(times) = report.words.map_count {
        let line = lines.field("mapped");
        line.plain(match times {
            0 if report.words.flags.as_ref().is_ok_and(|flags| flags.contains(PageFlags::ZERO_PAGE)) => {
                words::ZEROS_ARE_NOT_COUNTED.to_owned()
            }
            0 => "by no process".to_owned(),
            times => words::times(times, &report.words),
        });
    }
    if let Ok(folio) = &report.folio {
        block::folio(lines, folio, None);
    }
    if let Some(record) = &report.kernel_record {
        held::write(lines, record);
        held::write_owner(lines, record);
    }
    block::place(lines, &report.place);
    let is_unexplained = |field: &str, _: &Reason| !block::is_place_said(&report.place, field);
    Footnotes::of(&Why::of_record(report), is_unexplained).write(lines);
}

fn raw_flags(lines: &mut Lines, flags: PageFlags) {
    let line = lines.field("flags");
    line.push(Role::Raw, format!("{:#018x}", flags.bits()));
    if flags.is_empty() {
        line.indent_at(REMARK).push(Role::Dim, "none set");
    }
}

/// The columns of a bit's name and its meaning.
const BIT: usize = 10;
const NAME: usize = BIT + 11;
const MEANING: usize = NAME + 16;

pub(super) fn write_meanings(lines: &mut Lines, bits: &[FlagMeaning]) {
    for bit in bits {
        let number = format!("bit {}", bit.bit);
        bit_line(lines, &number, &bit.name, &bit.meaning);
    }
}

pub(super) fn bit_line(lines: &mut Lines, number: &str, name: &str, meaning: &str) {
    let line = lines.field("");
    line.push(Role::Dim, number).tab_to(NAME).push(Role::Flag, name).indent_at(MEANING).prose(Role::Plain, meaning);
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;
    use crate::command::tests::records::pages::{pa, pfn, place, va};
    use crate::kernel::{Device, Name};
    use crate::report::{CgroupPath, FilePage, Holders, RecordedOwner};

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![Box::new(flags())]
    }

    pub fn flags() -> FlagsReport {
        let flags = Ok(PageFlags::from_bits_retain(1 << 2 | 1 << 4 | 1 << 27));
        let meaning = |bit, name: &str, meaning: &str| FlagMeaning { bit, name: name.into(), meaning: meaning.into() };
        FlagsReport {
            address: Some(va(0x555555558010)),
            range_pages: Some(16),
            pfn: Ok(pfn(0x1a4eac)),
            physical: Ok(pa(0x1a4eac000)),
            words: FrameWords { flags, map_count: Ok(0), map_count_average: false, own_mappings: None },
            folio: Ok(FolioReport { order: 9, bytes: 2 << 20, head: pfn(0x1a4e00), index: 172, mapped: None }),
            kernel_record: Some(KernelRecord {
                references: Ok(517),
                holders: Ok(Holders { mappings: 0, page_cache: 512, swap_cache: 0, filesystem: 1, pins: 2, others: 2 }),
                pins: Ok(2),
                pins_at_most: None,
                owner: Ok(RecordedOwner::File),
                file_page: Some(FilePage {
                    device: Device { major: 8, minor: 1 },
                    inode: 131_074,
                    index: 172,
                    path: Ok(Name::from("/var/log/app\x1b.log")),
                    filesystem: Ok(Name::from("sda1")),
                    deleted: true,
                }),
                free_block: None,
                slab: None,
            }),
            place: FramePlace {
                iomem: Err(Reason::not_permitted("the addresses in /proc/iomem are hidden")),
                cgroup: Ok(6338),
                cgroup_path: Ok(CgroupPath::Gone(6338)),
                ..place()
            },
            meanings: vec![
                meaning(2, "referenced", "used since the last look by reclaim"),
                meaning(4, "dirty", "written to since it was last saved"),
                meaning(27, "bit27", "unknown to pmdb: this kernel is newer"),
            ],
        }
    }
}
