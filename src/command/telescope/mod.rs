//! `telescope ADDRESS [N]`: words of memory, and where they lead.

mod records;

pub(super) use records::Telescope;

use super::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, Resume, example, translate};
use crate::eval;
use crate::inspect::{Absent, AddressSpace, ByteSource, Contents};
use crate::kernel::{AddressRange, State, VirtualAddress};
use crate::lang::parser::{Parsed, Tokens, address, number};
use crate::lang::{Expression, Spanned};
use crate::process::{self, Target};
#[cfg(test)]
use crate::render::Record;
use crate::render::gdb;
use crate::report::{Hex, Reason, Shape, Why};
use crate::symbol::{self, Symbols};
use nom::Parser;
use nom::combinator::opt;
use records::Link;
use std::cell::RefCell;
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
        let chains = Chains::of(&target, &context.state.symbols)?;
        let space = chains.space_at(first)?;
        if space.region(first).is_none() {
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
            let row = chains.row(next, next.get().saturating_sub(first.get()))?;
            context.sink.emit(&row)?;
            context.state.last_address = Some(next);
            next = behind;
        }
        Ok(Flow::More(Resume::Address(next)))
    }
}

/// The default number of rows.
const ROWS: u64 = 8;

/// How many addresses of a chain are followed.
const DEEPEST: usize = 8;

/// The most bytes of a text.
const LONGEST_TEXT: usize = 64;

/// The fewest characters of a text; fewer are taken for a number.
const SHORTEST_TEXT: usize = 4;

/// Follows addresses.
struct Chains<'a> {
    target: &'a Target,
    /// All regions, or those that were needed so far.
    spaces: RefCell<Vec<AddressSpace>>,
    symbols: symbol::TargetSymbols<'a>,
}

impl<'a> Chains<'a> {
    fn of(target: &'a Target, symbols: &'a Symbols) -> Result<Self, Error> {
        let has_query = target.process.query_region_at(VirtualAddress::new(0))?.is_some();
        let whole = if has_query { None } else { Some(AddressSpace::of(target)?) };
        Ok(Chains { target, spaces: RefCell::new(whole.into_iter().collect()), symbols: symbols.on_demand(target) })
    }

    /// The regions, as far as they are known, with the one that holds `address`, if there is one.
    fn space_at(&self, address: VirtualAddress) -> Result<AddressSpace, Error> {
        let mut spaces = self.spaces.borrow_mut();
        let known = spaces.iter().find(|space| space.is_complete() || space.region(address).is_some());
        if let Some(known) = known {
            return Ok(known.clone());
        }
        let space = AddressSpace::at(self.target, address)?;
        if space.region(address).is_some() {
            spaces.push(space.clone());
        }
        Ok(space)
    }

    fn row(&self, address: VirtualAddress, offset: u64) -> Result<Telescope, Error> {
        let first = self.word(address)?;
        let mut chain: Vec<Link> = Vec::new();
        let mut last = first.value;
        let ends = loop {
            let Some(raw) = last else {
                break "unread";
            };
            let pointed = VirtualAddress::new(raw);
            let space = self.space_at(pointed)?;
            let Some(viewed) = space.region(pointed) else {
                break "value";
            };
            if pointed == address || chain.iter().any(|link| link.address == pointed) {
                break "cycle";
            }
            if chain.len() == DEEPEST {
                break "depth";
            }
            let word = match self.word(pointed) {
                Err(error @ Error::Target(process::Error::NotAvailable { .. })) => {
                    self.missing(&space, pointed, &error)?
                }
                word => word?,
            };
            let is_address = match word.value.map(VirtualAddress::new) {
                Some(there) => self.space_at(there)?.region(there).is_some(),
                None => false,
            };
            let text = if is_address || word.value.is_none() && word.source.is_none() && word.state.is_none() {
                None
            } else {
                self.text(pointed)?
            };
            last = word.value;
            let is_text = text.is_some();
            let (text, source) = match text {
                Some((text, source)) => (Some(text), Some(source)),
                None => (None, word.source),
            };
            chain.push(Link {
                address: pointed,
                region: (&viewed.region).into(),
                symbol: translate::brief(&self.symbols, pointed),
                state: word.state,
                source: source.map(ByteSource::word),
                value: word.value.map(Hex),
                text,
                why: word.why,
            });
            if is_text {
                break "text";
            }
        };
        Ok(Telescope {
            address,
            offset,
            symbol: translate::brief(&self.symbols, address),
            value: first.value.map(Hex),
            state: first.state,
            source: first.source.map(ByteSource::word),
            chain,
            ends,
            why: first.why,
        })
    }

    /// A word that a capture or a core file lacks.
    fn missing(&self, space: &AddressSpace, address: VirtualAddress, error: &Error) -> Result<MemoryWord, Error> {
        let has_state = self.target.process.has_page_map();
        let state = if has_state { Some(space.detail(address)?.page.state()) } else { None };
        let mut why = Why::default();
        why.note("source", &Reason::NotInFile(error.message()));
        Ok(MemoryWord { value: None, state, source: None, why })
    }

    /// The word at an address, if its pages are resident or in the page cache.
    fn word(&self, address: VirtualAddress) -> Result<MemoryWord, Error> {
        let layout = self.target.process.layout();
        let mut word = vec![0; layout.pointer_bytes.into()];
        let read = self.read(address, &mut word)?;
        let value = (read.count == word.len()).then(|| layout.number(&word));
        Ok(match (read.absent, read.source) {
            (None, Some(source)) => {
                MemoryWord { value, state: Some(source.state()), source: Some(source), why: Why::default() }
            }
            (Some(absent), _) => MemoryWord {
                value: None,
                state: Some(absent.states.likeliest()),
                source: None,
                why: absent.why("state", "source"),
            },
            // The word would pass the last address.
            (None, None) => MemoryWord { value: None, state: Some(State::Unmapped), source: None, why: Why::default() },
        })
    }

    /// Reads as many bytes as can be read.
    fn read(&self, address: VirtualAddress, into: &mut [u8]) -> Result<PartialRead, Error> {
        let mut read = PartialRead { count: 0, source: None, absent: None };
        while let Some(rest) = into.get_mut(read.count..).filter(|rest| !rest.is_empty()) {
            let from = address.checked_add(read.count as u64);
            let wanted = from.and_then(|from| AddressRange::of_length(from, rest.len() as u64));
            let Some(wanted) = wanted else {
                break;
            };
            match self.space_at(wanted.start())?.contents(wanted, rest, false)? {
                Contents::Bytes { count, source } => {
                    read.count += count;
                    read.source = Some(read.source.map_or(source, |before| before.weaker(source)));
                }
                Contents::Absent(absent) => {
                    read.absent = Some(absent);
                    break;
                }
            }
        }
        Ok(read)
    }

    /// The text at an address, if there is one: printable characters, up to a zero or the limit.
    fn text(&self, address: VirtualAddress) -> Result<Option<(String, ByteSource)>, Error> {
        let mut bytes = [0; LONGEST_TEXT];
        let read = self.read(address, &mut bytes)?;
        let bytes = bytes.get(..read.count).unwrap_or_default();
        let end = memchr::memchr(0, bytes);
        let text = bytes.get(..end.unwrap_or(read.count)).unwrap_or_default();
        let shows = |&byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | 0x80..);
        let is_text = text.len() >= SHORTEST_TEXT
            && text.iter().all(shows)
            && std::str::from_utf8(text).is_ok_and(|text| !text.chars().any(char::is_control) || text.is_ascii());
        let Some(source) = read.source.filter(|_| is_text) else {
            return Ok(None);
        };
        let units: Vec<u64> = text.iter().map(|&byte| byte.into()).collect();
        let more = if end.is_none() { "..." } else { "" };
        let text = format!("{}{more}", gdb::text(&units, 1));
        Ok(Some((text, source)))
    }
}

/// The result of a read.
struct PartialRead {
    count: usize,
    /// The weakest source of the bytes; `None` without bytes.
    source: Option<ByteSource>,
    /// Why the read ended early.
    absent: Option<Absent>,
}

/// A word of memory.
struct MemoryWord {
    value: Option<u64>,
    /// The state of its page, or of the first page that was not read; `None` in a core file without a page map.
    state: Option<State>,
    /// Its source; `None` if it was not read.
    source: Option<ByteSource>,
    /// Why it was not read, and why the state is uncertain.
    why: Why,
}
