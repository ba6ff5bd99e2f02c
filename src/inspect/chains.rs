//! Words of memory as pointers: where they lead, without bringing anything in.
//!
//! ```
//! use pmdb::inspect::chains::Chains;
//! use pmdb::{Target, VirtualAddress};
//!
//! let text = "a text in memory".to_owned();
//! let target = Target::attach(std::process::id())?;
//! let chain = Chains::of(&target)?.follow(VirtualAddress::of(&text))?;
//! for link in &chain.links {
//!     println!("{} in {}", link.address, link.region.name);
//! }
//! println!("{}", chain.end.word());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::contents::{Absent, ByteSource, Contents};
use super::{AddressSpace, Error, Result};
use crate::budget::Budget;
use crate::kernel::words::worded;
use crate::kernel::{AddressRange, Region, State, VirtualAddress};
use crate::process::{self, Target};
use crate::report::{Reason, Why};
use std::cell::RefCell;

/// How many addresses of a chain are followed.
const DEEPEST: usize = 8;

/// The most bytes of a text.
const LONGEST_TEXT: usize = 64;

/// The fewest characters of a text; fewer are taken for a number.
const SHORTEST_TEXT: usize = 4;

/// Follows addresses.
pub struct Chains {
    target: Target,
    /// All regions, or those that were needed so far.
    spaces: RefCell<Vec<AddressSpace>>,
    budget: Budget,
}

/// A word, and where it leads.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Chain {
    /// The word.
    pub word: MemoryWord,
    /// The addresses that the chain passes through.
    pub links: Vec<ChainLink>,
    /// Why it ends.
    pub end: ChainEnd,
}

/// An address that memory holds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChainLink {
    /// The address.
    pub address: VirtualAddress,
    /// The region it lies in.
    pub region: Region,
    /// The word there.
    pub word: MemoryWord,
    /// The text there, if it is one.
    pub text: Option<PointedText>,
}

worded! {
    /// Why a chain ends.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum ChainEnd, word {
        /// A word was not read.
        Unread = "unread",
        /// A value is not an address.
        Value = "value",
        /// An address was passed before.
        Cycle = "cycle",
        /// The chain is too long.
        Depth = "depth",
        /// At a text.
        Text = "text",
    }
}

/// A word of memory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemoryWord {
    /// Its value, if it was read.
    pub value: Option<u64>,
    /// The state of its page, or of the first page that was not read; `None` in a core file without a page map.
    pub state: Option<State>,
    /// Its source; `None` if it was not read.
    pub source: Option<ByteSource>,
    /// Why it was not read, and why the state is uncertain.
    pub why: Why,
}

/// Printable characters.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PointedText {
    /// Their bytes.
    pub bytes: Vec<u8>,
    /// Whether the text is longer.
    pub is_cut: bool,
    /// Where they come from.
    pub source: ByteSource,
}

/// The result of a read.
struct PartialRead {
    count: usize,
    /// The weakest source of the bytes; `None` without bytes.
    source: Option<ByteSource>,
    /// Why the read ended early.
    absent: Option<Absent>,
}

impl Chains {
    /// Of a process. Where single regions can be asked for, only those are read that are needed.
    ///
    /// # Errors
    /// The target is gone.
    pub fn of(target: &Target) -> Result<Self> {
        let has_query = target.process.query_region_at(VirtualAddress::new(0))?.is_some();
        let whole = if has_query { None } else { Some(AddressSpace::of(target)?) };
        let spaces = RefCell::new(whole.into_iter().collect());
        Ok(Chains { target: target.clone(), spaces, budget: Budget::unlimited() })
    }

    /// The same, with what it may take.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Self {
        Chains { budget, ..self }
    }

    /// The regions, as far as they are known, with the one that holds `address`, if there is one.
    ///
    /// # Errors
    /// The target is gone.
    pub fn space_at(&self, address: VirtualAddress) -> Result<AddressSpace> {
        let mut spaces = self.spaces.borrow_mut();
        let known = spaces.iter().find(|space| space.is_complete() || space.viewed_region(address).is_some());
        if let Some(known) = known {
            return Ok(known.clone());
        }
        let space = AddressSpace::at(&self.target, address)?;
        if space.viewed_region(address).is_some() {
            spaces.push(space.clone());
        }
        Ok(space)
    }

    /// Follows the word at an address.
    ///
    /// # Errors
    /// The target is gone, its memory may not be read, or the budget is over.
    pub fn follow(&self, address: VirtualAddress) -> Result<Chain> {
        self.budget.clone().look()?;
        let word = self.word(address)?;
        let mut links: Vec<ChainLink> = Vec::new();
        let mut last = word.value;
        let end = loop {
            let Some(pointed) = last.map(VirtualAddress::new) else {
                break ChainEnd::Unread;
            };
            let space = self.space_at(pointed)?;
            let Some(viewed) = space.viewed_region(pointed) else {
                break ChainEnd::Value;
            };
            if pointed == address || links.iter().any(|link| link.address == pointed) {
                break ChainEnd::Cycle;
            }
            if links.len() == DEEPEST {
                break ChainEnd::Depth;
            }
            let word = match self.word(pointed) {
                Err(Error::Target(error @ process::Error::NotAvailable { .. })) => {
                    self.missing(&space, pointed, &error)?
                }
                word => word?,
            };
            let text = if self.leads_on(&word)? { None } else { self.text(pointed)? };
            last = word.value;
            let is_text = text.is_some();
            links.push(ChainLink { address: pointed, region: viewed.region.clone(), word, text });
            if is_text {
                break ChainEnd::Text;
            }
        };
        Ok(Chain { word, links, end })
    }

    /// Whether a word is an address, or is missing in this capture, so that it is no text.
    fn leads_on(&self, word: &MemoryWord) -> Result<bool> {
        Ok(match word.value.map(VirtualAddress::new) {
            Some(there) => self.space_at(there)?.viewed_region(there).is_some(),
            None => word.source.is_none() && word.state.is_none(),
        })
    }

    /// A word that a capture or a core file lacks.
    fn missing(&self, space: &AddressSpace, address: VirtualAddress, error: &process::Error) -> Result<MemoryWord> {
        let has_state = self.target.process.has_page_map();
        let state = if has_state { Some(space.detail(address)?.page.state()) } else { None };
        let mut why = Why::default();
        why.note("source", &Reason::NotInFile(error.to_string()));
        Ok(MemoryWord { value: None, state, source: None, why })
    }

    /// The word at an address, if its pages are resident or in the page cache.
    fn word(&self, address: VirtualAddress) -> Result<MemoryWord> {
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
    fn read(&self, address: VirtualAddress, into: &mut [u8]) -> Result<PartialRead> {
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
    fn text(&self, address: VirtualAddress) -> Result<Option<PointedText>> {
        let mut bytes = [0; LONGEST_TEXT];
        let read = self.read(address, &mut bytes)?;
        let bytes = bytes.get(..read.count).unwrap_or_default();
        let end = memchr::memchr(0, bytes);
        let text = bytes.get(..end.unwrap_or(read.count)).unwrap_or_default();
        let shows = |&byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | 0x80..);
        let is_text = text.len() >= SHORTEST_TEXT
            && text.iter().all(shows)
            && std::str::from_utf8(text).is_ok_and(|text| !text.chars().any(char::is_control) || text.is_ascii());
        let source = read.source.filter(|_| is_text);
        Ok(source.map(|source| PointedText { bytes: text.to_vec(), is_cut: end.is_none(), source }))
    }
}
