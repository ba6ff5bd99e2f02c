//! `telescope ADDRESS [N]`: words of memory, and where they lead.

mod records;

pub(super) use records::Telescope;

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, Resume, example};
use super::translate;
use crate::eval;
use crate::inspect::chains::{Chain, ChainLink, Chains};
use crate::kernel::VirtualAddress;
use crate::lang::parser::{Parsed, Tokens, address, number};
use crate::lang::{Expression, Spanned};
#[cfg(test)]
use crate::render::Record;
use crate::render::gdb;
use crate::report::{Hex, Shape};
use crate::symbol::TargetSymbols;
use nom::Parser;
use nom::combinator::opt;
use records::Link;
use std::fmt::{self, Formatter};

/// `telescope ADDRESS [N]`
#[derive(Debug)]
pub struct TelescopeAt {
    /// Of the first word.
    address: Spanned<Expression>,
    /// How many words; some if absent.
    count: Option<u64>,
}

impl Command for TelescopeAt {
    const RECORDS: &'static [Shape] = records::RECORDS;

    const ABOUT: About = About {
        name: CommandName::new("telescope").how(),
        group: Group::Memory,
        summary: "follow words of memory as pointers",
        text: "\
Shows N words of pointer size, each with its address, its offset from the first word, and its value. If the value is \
an address, its region, its symbol and the next value follow. A page that is not resident is shown with its state. \
Press Enter to continue.

A chain ends at a value that is not an address, at a text, at a cycle, or after a few steps. It also ends at a page \
that is neither resident nor in the page cache (marked: file). Nothing is faulted in.",
        examples: &[
            example("telescope demo_counter 4", "follow four words"),
            example("telescope end([stack]) - 512 8", "follow the words at the beginning of the stack"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        records::samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (input, (address, count)) = (address, opt(number)).parse(input)?;
        Ok((input, TelescopeAt { address, count }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.address.node)?;
        self.count.map_or(Ok(()), |count| write!(f, " {count}"))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let TelescopeAt { address: written, count } = self;
        if *count == Some(0) {
            return Err(Error::nothing_counted("telescope … 0"));
        }
        let target = context.target()?;
        let first = eval::address(written, context.state)?;
        let chains = Chains::of(&target)?.with_budget(context.sink.budget());
        let symbols = context.state.symbols.on_demand(&target);
        let space = chains.space_at(first)?;
        if space.viewed_region(first).is_none() {
            return Err(super::region::unmapped(written.at, first, &space)?);
        }
        let size = u64::from(target.process.layout().pointer_bytes);
        let mut next = match context.resume {
            Some(Resume::Address(next)) => next,
            _ => first,
        };
        for _ in 0..count.unwrap_or(ROWS) {
            context.sink.check()?;
            let Some(behind) = next.checked_add(size) else {
                break;
            };
            let offset = next.get().saturating_sub(first.get());
            context.sink.emit(&row(next, offset, chains.follow(next)?, &symbols))?;
            context.state.last_address = Some(next);
            next = behind;
        }
        Ok(Flow::More(Resume::Address(next)))
    }
}

/// The default number of rows.
const ROWS: u64 = 8;

/// The record of a word, `offset` bytes after the first.
fn row(address: VirtualAddress, offset: u64, chain: Chain, symbols: &TargetSymbols<'_>) -> Telescope {
    let Chain { word, links, end, .. } = chain;
    Telescope {
        address,
        offset,
        symbol: translate::brief(symbols, address),
        value: word.value.map(Hex),
        state: word.state,
        source: word.source,
        chain: links.into_iter().map(|link| self::link(link, symbols)).collect(),
        ends: end,
        why: word.why,
    }
}

fn link(link: ChainLink, symbols: &TargetSymbols<'_>) -> Link {
    let ChainLink { address, region, word, text, .. } = link;
    let source = text.as_ref().map(|text| text.source).or(word.source);
    Link {
        address,
        region: (&region).into(),
        symbol: translate::brief(symbols, address),
        state: word.state,
        source,
        value: word.value.map(Hex),
        text: text.map(|text| {
            let units: Vec<u64> = text.bytes.iter().map(|&byte| byte.into()).collect();
            format!("{}{}", gdb::text(&units, 1), if text.is_cut { "..." } else { "" })
        }),
        why: word.why,
    }
}
