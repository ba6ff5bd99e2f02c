//! `telescope ADDRESS [N]`: words of memory, and where they lead.

use super::{About, Context, Error, Example, Flow, Group, Outcome, Resume, format, translate};
use crate::eval;
use crate::inspect::{Contents, Source, View};
use crate::kernel::{AddressRange, Region, State, VirtualAddress};
use crate::lang::{Expression, Spanned};
use crate::report::{Link, Record, Telescope};
use crate::symbol;

pub(super) const ABOUT: About = About {
    name: "telescope",
    group: Group::Memory,
    summary: "words of memory, and where they lead as addresses",
    text: "A row for each word of the size of a pointer: its address, its distance from the first, its value, and, as long as \
           that is an address, what is there: region, symbol, the state of a page that is not resident, the next value. A chain \
           ends at what is no address, at a text, where it comes back to itself, after a few steps, or at a page that is \
           not resident: nothing is brought in. An empty line goes on behind the last row.",
    examples: &[
        Example {
            line: "telescope demo_counter 4",
            does: "four words",
        },
        Example {
            line: "telescope end([stack]) - 512 8",
            does: "what is at the beginning of the stack",
        },
    ],
};

/// Rows, where nothing else is said.
const ROWS: u64 = 8;

/// How many addresses are followed from one word on.
const DEEPEST: usize = 8;

/// Bytes of a text that are looked at.
const LONGEST_TEXT: usize = 64;

/// Characters that make a text of what else could be a number.
const SHORTEST_TEXT: usize = 4;

pub(super) fn run(
    context: &mut Context,
    written: &Spanned<Expression>,
    count: Option<u64>,
) -> Outcome {
    if count == Some(0) {
        return Err(Error::Refused {
            message: "`telescope … 0` asks for nothing".to_owned(),
            hint: Some("leave the count out, or write 1 or more".to_owned()),
        });
    }
    let target = context.target()?;
    let first = eval::address(written, context.state)?;
    let view = View::of(&target)?;
    if view.region(first).is_none() {
        return Err(super::region::unmapped(written, first, &view)?);
    }
    let regions: Vec<Region> = view
        .regions()
        .iter()
        .map(|one| one.region.clone())
        .collect();
    let chains = Chains {
        symbols: context.state.symbols.over(&target, &regions),
        view: &view,
    };
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
        context.sink.emit(Record::Telescope(Box::new(row)))?;
        context.state.last_address = Some(next);
        next = behind;
    }
    Ok(Flow::More(Resume::Address(next)))
}

/// Follows addresses.
struct Chains<'a> {
    view: &'a View<'a>,
    symbols: symbol::View<'a>,
}

impl Chains<'_> {
    fn row(&self, address: VirtualAddress, offset: u64) -> Result<Telescope, Error> {
        let (value, state) = self.word(address)?;
        let mut chain: Vec<Link> = Vec::new();
        let mut last = value;
        let ends = loop {
            let Some(raw) = last else {
                break "unread";
            };
            let pointed = VirtualAddress::new(raw);
            let Some(viewed) = self.view.region(pointed) else {
                break "value";
            };
            if pointed == address || chain.iter().any(|link| link.address == pointed) {
                break "cycle";
            }
            if chain.len() == DEEPEST {
                break "depth";
            }
            let (value, state) = self.word(pointed)?;
            let is_address = value.is_some_and(|raw| {
                let there = VirtualAddress::new(raw);
                self.view.region(there).is_some()
            });
            let text = match is_address {
                true => None,
                false => self.text(pointed)?,
            };
            last = value;
            let is_text = text.is_some();
            chain.push(Link {
                address: pointed,
                region: (&viewed.region).into(),
                symbol: translate::brief(&self.symbols, pointed),
                state,
                value,
                text,
            });
            if is_text {
                break "text";
            }
        };
        Ok(Telescope {
            address,
            offset,
            symbol: translate::brief(&self.symbols, address),
            value,
            state,
            chain,
            ends,
        })
    }

    /// The word at an address, if its pages are there, and the state of the first that is not.
    fn word(&self, address: VirtualAddress) -> Result<(Option<u64>, State), Error> {
        let layout = self.view.target().process.layout();
        let mut word = vec![0; layout.pointer_bytes.into()];
        let (read, state) = self.read(address, &mut word)?;
        let whole = read == word.len();
        Ok((whole.then(|| layout.number(&word)), state))
    }

    /// Reads as much as there is, and tells the state of the page that is missing, or of the first if none is.
    fn read(&self, address: VirtualAddress, into: &mut [u8]) -> Result<(usize, State), Error> {
        let mut done = 0;
        let mut state = State::Unmapped;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let wanted = address.checked_add(done as u64).and_then(|from| {
                let end = from.checked_add(rest.len() as u64)?;
                AddressRange::new(from, end)
            });
            let Some(wanted) = wanted else {
                break;
            };
            match self.view.contents(wanted, rest, false)? {
                Contents::Bytes { count, source } => {
                    if done == 0 {
                        state = match source {
                            Source::Memory => State::Present,
                            Source::File => State::Untouched,
                            Source::Faulted(before) => before,
                        };
                    }
                    done += count;
                }
                Contents::Absent(absent) => {
                    state = absent.state;
                    break;
                }
            }
        }
        Ok((done, state))
    }

    /// The text at an address, if there is one: some characters that can be shown, up to a zero or on and on.
    fn text(&self, address: VirtualAddress) -> Result<Option<String>, Error> {
        let mut bytes = [0; LONGEST_TEXT];
        let (read, _) = self.read(address, &mut bytes)?;
        let bytes = bytes.get(..read).unwrap_or_default();
        let end = memchr::memchr(0, bytes);
        let text = bytes.get(..end.unwrap_or(read)).unwrap_or_default();
        let shows = |&byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | 0x80..);
        let is_text = text.len() >= SHORTEST_TEXT
            && text.iter().all(shows)
            && std::str::from_utf8(text)
                .is_ok_and(|text| !text.chars().any(char::is_control) || text.is_ascii());
        if !is_text {
            return Ok(None);
        }
        let units: Vec<u64> = text.iter().map(|&byte| byte.into()).collect();
        let more = if end.is_none() { "..." } else { "" };
        Ok(Some(format!("{}{more}", format::text(&units, 1))))
    }
}
