//! Which symbol an address belongs to: the rule, and a one-pass look-up that needs no index.
//!
//! A symbol with a size covers `[address, address + size)`. If several cover an address, it belongs to the one that
//! starts last (an inner label, not the function around it). If none does, it belongs to the nearest symbol without a
//! size before it in the same section, unless a symbol with a size begins between them. Among symbols with the same
//! start, [`Rank`](super::table::Rank) decides, and then the plainest name: the fewest leading underscores, then a
//! current version, then the shortest (`malloc` rather than `__libc_malloc`, `sqrt` rather than `sqrtf32x`).

use super::NoSymbols;
use super::demangle::split_version;
use super::sources::Sources;
use super::table::{self, Beginning, Kind, Rank, Symbol};
use crate::budget::Budget;
use std::ops::ControlFlow;

/// The most symbols of equal start and rank whose names are compared.
const MOST_RIVALS: usize = 16;

/// The best symbols seen so far: equal in start and rank.
#[derive(Clone, Default)]
pub(super) struct Best {
    key: Option<(u64, Rank)>,
    rivals: Vec<Symbol>,
}

impl Best {
    /// Takes `symbol` unless a better one was seen, and returns whether it did. Offer symbols in the order of their
    /// tables.
    pub(super) fn offer(&mut self, symbol: Symbol) -> bool {
        let key = Some((symbol.address, symbol.rank()));
        if key > self.key {
            self.key = key;
            self.rivals.clear();
        }
        let taken = key == self.key && self.rivals.len() < MOST_RIVALS;
        if taken {
            self.rivals.push(symbol);
        }
        taken
    }

    /// The one with the plainest name; `beginning` reads the first bytes of a name.
    pub(super) fn choose(&self, mut beginning: impl FnMut(&Symbol) -> Beginning) -> Option<Symbol> {
        self.rivals
            .iter()
            .map(|symbol| (symbol, beginning(symbol)))
            .filter(|(_, name)| name.first() != Some(&0))
            .min_by_key(|(_, name)| {
                let underscores = name.iter().take_while(|&&byte| byte == b'_').count();
                let length = name.iter().take_while(|&&byte| byte != 0).count();
                let (base, is_old) = split_version(name.get(..length).unwrap_or_default());
                (underscores, is_old, base.len(), length)
            })
            .map(|(symbol, _)| *symbol)
    }
}

/// The nearest symbols before a place, in its section.
#[derive(Clone, Default)]
pub(super) struct Nearest {
    start: Option<u64>,
    has_size: bool,
    best: Best,
}

impl Nearest {
    /// Takes `symbol` unless a nearer one was seen.
    pub(super) fn offer(&mut self, symbol: Symbol) {
        let start = Some(symbol.address);
        if start > self.start {
            *self = Nearest { start, ..Nearest::default() };
        }
        if start == self.start {
            self.has_size |= symbol.size > 0;
            self.best.offer(symbol);
        }
    }

    /// The symbols without a size that reach on from here, if there are any.
    pub(super) fn reaching(&self) -> Option<&Best> {
        (!self.has_size).then_some(&self.best)
    }
}

/// Finds the symbol at a file address in one pass over the tables. It reads only the names of equal candidates.
pub(super) fn look_up(sources: &Sources, address: u64, budget: &mut Budget) -> Result<Option<Symbol>, NoSymbols> {
    let section = sources.image.elf.section_at(address);
    let mut covering = Best::default();
    let mut nearest = Nearest::default();
    table::visit(sources, budget, &mut |symbol| {
        if symbol.kind == Kind::Tls || symbol.address > address {
            return ControlFlow::Continue(());
        }
        if symbol.covers(address) {
            covering.offer(symbol);
        }
        if symbol.section.map(u32::from) == section && section.is_some() {
            nearest.offer(symbol);
        }
        ControlFlow::Continue(())
    })?;
    let beginning = |symbol: &Symbol| table::beginning_of_name(sources, symbol);
    Ok(covering.choose(beginning).or_else(|| nearest.reaching()?.choose(beginning)))
}
