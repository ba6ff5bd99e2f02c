//! `x[/NFU] [ADDRESS]`: what memory holds, without bringing anything in.

mod records;
mod rows;

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, Resume, example};
use super::named_pages::names_in;
use super::region;
use crate::eval;
use crate::inspect::examine::LONGEST_TEXT;
use crate::inspect::{AddressSpace, Step};
use crate::kernel::{AddressRange, VirtualAddress};
use crate::lang::display::word_if;
use crate::lang::parser::{Parsed, Tokens, address, layout, option, with_how};
use crate::lang::{Expression, Format, Reach, Spanned, Statement, Unit, ValueFormat};
use crate::process::{Target, WordLayout};
#[cfg(test)]
use crate::render::Record;
use crate::report::Shape;
use nom::Parser;
use nom::combinator::opt;
#[cfg(test)]
pub(super) use records::MemoryRow;
use rows::RowFormat;
use std::fmt::{self, Formatter};
use std::rc::Rc;

/// `x[/NFU] [ADDRESS]`
#[derive(Debug)]
pub struct Examine {
    /// Count, format and unit size; the parts that are absent stay as in the last `x`.
    pub(super) layout: ValueFormat,
    /// Whether to read pages that are not resident, which faults them in.
    pub(super) may_fault: bool,
    /// Where to begin; behind the last `x` if absent.
    pub(super) address: Option<Spanned<Expression>>,
}

impl Command for Examine {
    const RECORDS: &'static [Shape] = records::RECORDS;

    const ABOUT: About = About {
        name: CommandName::new("x").how(),
        group: Group::Memory,
        summary: "show the contents of memory",
        text: "\
Shows the memory at an address. /NFU works as in gdb:

  N  the count; with a - before it, the units before the address
  F  the format: x, d, u, o, t, a, c, z, s or f (`help units`)
  U  the size of a unit: b 1, h 2, w 4, g 8 bytes

Options:

  --fault  also read pages that are not resident, which changes the target

Omitted parts of /NFU stay as in the last x. Without an address, x continues at the end of the last one, and so does \
an empty line. After a negative count it continues downward. $_ is the last address shown.

Reads memory only if the page map reports a resident page before and after the read. Otherwise the row shows <not \
resident: STATE>, and nothing is touched. A page of a file or of shared memory that is only in the page cache is \
read there (marked: file), without faulting it in. The kernel marks pages that are read as used: the flags \
referenced, active and idle of their frames may change.

With --fault the kernel maps the zero page, a page of the file, or the contents from swap. Shared memory gets a \
new page. A read of a page under userfaultfd waits for its handler. Device memory (pfn_mapped) is never read: a \
device may interpret a read as a command.",
        examples: &[
            example("x/8xb demo_buffer", "show eight bytes in hexadecimal"),
            example("x/2xg demo_buffer", "show two words of eight bytes"),
            example("x/3s demo_counter - 16", "show three texts, each up to its zero"),
            example("x/-4xb demo_buffer + 8", "show the four bytes before an address"),
            example("x/4a end([stack]) - 4096", "show addresses with their symbols"),
            example("x/4dw --fault demo_buffer", "show numbers, even if the page must be faulted in"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        records::samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (input, layout) = opt(layout).parse(input)?;
        behind_layout(input, layout.unwrap_or_default())
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.layout)?;
        word_if(f, self.may_fault, "--fault")?;
        self.address.as_ref().map_or(Ok(()), |address| write!(f, " {}", address.node))
    }

    fn statement(input: Tokens<'_>) -> Parsed<'_, Statement> {
        let (input, layout) = opt(layout).parse(input)?;
        with_how(input, |input| {
            let (behind, command) = behind_layout(input, layout.unwrap_or_default())?;
            Ok((behind, Statement::Command(Rc::new(command))))
        })
    }

    fn reach(&self) -> Reach {
        if self.may_fault { Reach::Outside } else { Self::ABOUT.name.reach }
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let written = self.address.as_ref();
        let target = context.target()?;
        if self.layout.count == Some(0) {
            return Err(Error::nothing_counted("x/0"));
        }
        let start = start(context, written)?;
        let (format, count) = self.settle(context, target.process.layout())?;
        let space = space(&target, start, &format, count, self.layout.backward)?;
        let nearest = if self.layout.backward { VirtualAddress::new(start.get().saturating_sub(1)) } else { start };
        if let (None, Some(written)) = (space.viewed_region(nearest), written) {
            return Err(region::unmapped(written.at, nearest, &space)?);
        }
        let (state, sink) = (&mut *context.state, &mut *context.sink);
        let examination = space.examine(start, format.shape()).limit(count).faulting(self.may_fault);
        let mut examination = examination.with_budget(sink.budget());
        let mut rewound = None;
        if self.layout.backward {
            let message = || "the count reaches below address 0".to_owned();
            let before = examination.go_back()?.ok_or_else(|| Error::Refused { message: message(), hint: None })?;
            rewound = Some(before.next);
        }
        let symbols = names_in(&space, &state.symbols);
        let mut last = None;
        let next = || Ok(examination.next()?.map(Step::Found));
        let stopped = super::rows::pull(sink, "units", next, |row, sink| {
            let address = format.last(&row);
            let record = format.record(row, &symbols)?;
            last = address;
            Ok(sink.emit(&record)?)
        });
        drop(symbols);
        let next = rewound.unwrap_or(examination.next_address());
        state.examined.next = Some(next);
        state.last_address = last;
        let faulted = examination.faulted();
        if faulted > 0 {
            let were = if faulted == 1 { "page was" } else { "pages were" };
            sink.note(format!("--fault: {faulted} {were} not resident before, and may be now"))?;
        }
        match stopped? {
            Some(stopped) => Err(stopped.into()),
            None => Ok(Flow::More(Resume::Address(next))),
        }
    }
}

impl Examine {
    /// The format, as written or as in the last `x`, and the count.
    fn settle(&self, context: &mut Context, layout: WordLayout) -> Result<(RowFormat, u64), Error> {
        let (asked, written) = (self.layout, self.address.as_ref());
        let pointer = match layout.pointer_bytes {
            4 => Unit::Word,
            _ => Unit::GiantWord,
        };
        let goes_on = written.is_none();
        let (format, unit) = context.state.examined.settle(asked, pointer, goes_on);
        if (format, asked.unit) == (Format::Text, Some(Unit::GiantWord)) {
            let message = "text has no characters of 8 bytes (g): shown in bytes";
            context.sink.note(message)?;
        }
        if (format == Format::Text || unit == pointer)
            && let Some((name, size)) = written.and_then(|written| eval::variable(written, context.state))
            && size == u64::from(pointer.bytes())
        {
            let x = if format == Format::Text { "x/s" } else { "x" };
            context.sink.note(format!("`{name}` has the size of a pointer: to follow it, write `{x} *{name}`"))?;
        }
        let again = goes_on && asked == ValueFormat::default();
        let count = asked.count.unwrap_or(if again { context.state.examined.count } else { 1 });
        // As in gdb, an `x` without `-` goes forward again.
        context.state.examined.count = if asked.backward { 1 } else { count };
        Ok((RowFormat { layout, format, unit }, count))
    }
}

/// The regions of the units, or all.
fn space(
    target: &Target,
    start: VirtualAddress,
    format: &RowFormat,
    count: u64,
    backward: bool,
) -> Result<AddressSpace, Error> {
    let is_text = format.format == Format::Text;
    // A text takes as many bytes as its contents tell.
    let units = if is_text { LONGEST_TEXT as u64 } else { 1 };
    let bytes = count.checked_mul(units * u64::from(format.unit.bytes()));
    let range = bytes.and_then(|bytes| {
        if backward {
            AddressRange::new(start.checked_sub(bytes)?, start)
        } else {
            AddressRange::of_length(start, bytes)
        }
    });
    Ok(match range {
        Some(range) if !is_text || !backward => AddressSpace::in_ranges(target, &[range])?,
        // A text may follow memory that is not there, however much that is.
        _ => AddressSpace::of(target)?,
    })
}

/// What follows the layout.
fn behind_layout(input: Tokens<'_>, layout: ValueFormat) -> Parsed<'_, Examine> {
    let (input, fault) = option("--fault")(input)?;
    let (behind, address) = opt(address).parse(input)?;
    Ok((behind, Examine { layout, may_fault: fault, address }))
}

/// Where to begin: at what is written, or where the last one ended.
fn start(context: &Context, written: Option<&Spanned<Expression>>) -> Result<VirtualAddress, Error> {
    match (context.resume, written) {
        (Some(Resume::Address(next)), _) => Ok(next),
        (_, Some(written)) => Ok(eval::address(written, context.state)?),
        (_, None) => {
            let state = &context.state;
            let next = state.examined.next.or(state.last_address);
            next.ok_or_else(|| Error::refused("x has no address to continue from", "add an address: `x/8xb ADDRESS`"))
        }
    }
}
