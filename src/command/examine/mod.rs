//! `x[/NFU] [ADDRESS]`: what memory holds, without bringing anything in.

mod backward;
mod records;
mod rows;

use super::named_pages::names_in;
use super::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, Resume, example, region};
use crate::eval;
use crate::inspect::AddressSpace;
use crate::kernel::{AddressRange, VirtualAddress};
use crate::lang::display::word_if;
use crate::lang::parser::{Parsed, Tokens, address, layout, option, with_how};
use crate::lang::{Expression, Format, Spanned, Statement, Unit, ValueFormat};
#[cfg(test)]
use crate::render::Record;
use crate::report::Shape;
use nom::Parser;
use nom::combinator::opt;
#[cfg(test)]
pub(super) use records::MemoryRow;
use rows::{Examination, LONGEST_TEXT};
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

With --fault the kernel maps the page of zeros, a page of the file, or the contents from swap. Shared memory gets a \
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

    fn run(&self, context: &mut Context) -> Outcome {
        let (layout, written) = (self.layout, self.address.as_ref());
        let target = context.target()?;
        if layout.count == Some(0) {
            return Err(Error::nothing_counted("x/0"));
        }
        let start = start(context, written)?;
        let process = target.process.layout();
        let pointer = match process.pointer_bytes {
            4 => Unit::Word,
            _ => Unit::GiantWord,
        };
        let goes_on = written.is_none();
        let (format, unit) = context.state.examined.settle(layout, pointer, goes_on);
        if (format, layout.unit) == (Format::Text, Some(Unit::GiantWord)) {
            let message = "text has no characters of 8 bytes (g): shown in bytes";
            context.sink.note(message)?;
        }
        if (format == Format::Text || unit == pointer)
            && let Some((name, size)) = written.and_then(|written| eval::variable(written, context.state))
            && size == u64::from(pointer.bytes())
        {
            let asked = if format == Format::Text { "x/s" } else { "x" };
            context.sink.note(format!("`{name}` has the size of a pointer: to follow it, write `{asked} *{name}`"))?;
        }
        let again = goes_on && layout == ValueFormat::default();
        let count = layout.count.unwrap_or(if again { context.state.examined.count } else { 1 });
        // As in gdb, an `x` without `-` goes forward again.
        context.state.examined.count = if layout.backward { 1 } else { count };
        // A text takes as many bytes as its contents tell.
        let units = if format == Format::Text { LONGEST_TEXT as u64 } else { 1 };
        let bytes = count.checked_mul(units * u64::from(unit.bytes()));
        let range = bytes.and_then(|bytes| {
            if layout.backward {
                AddressRange::new(VirtualAddress::new(start.get().checked_sub(bytes)?), start)
            } else {
                AddressRange::of_length(start, bytes)
            }
        });
        let space = match range {
            Some(range) if format != Format::Text || !layout.backward => AddressSpace::within(&target, &[range])?,
            // A text may follow memory that is not there, however much that is.
            _ => AddressSpace::of(&target)?,
        };
        let nearest = if layout.backward { VirtualAddress::new(start.get().saturating_sub(1)) } else { start };
        if let (None, Some(written)) = (space.region(nearest), written) {
            return Err(region::unmapped(written.at, nearest, &space)?);
        }
        let mut examination = Examination {
            symbols: names_in(&space, &context.state.symbols),
            space: &space,
            whole: None,
            layout: process,
            format,
            unit,
            may_fault: self.may_fault,
            next: start,
            last: None,
            faulted: 0,
        };
        let (count, rewound) = if layout.backward {
            let before = examination.before(count)?;
            examination.next = before.start;
            (before.count, Some(before.next))
        } else {
            (count, None)
        };
        let ended = match format {
            Format::Text => examination.texts(count, context.sink),
            _ => examination.units(count, context.sink),
        };
        let (last, faulted) = (examination.last, examination.faulted);
        let next = rewound.unwrap_or(examination.next);
        drop(examination);
        context.state.examined.next = Some(next);
        context.state.last_address = last;
        if faulted > 0 {
            let message = format!(
                "--fault: {faulted} {} not resident before, and may be now",
                if faulted == 1 { "page was" } else { "pages were" }
            );
            context.sink.note(message)?;
        }
        ended?;
        Ok(Flow::More(Resume::Address(next)))
    }
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
