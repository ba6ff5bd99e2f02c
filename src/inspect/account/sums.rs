//! The sums of an account.

use crate::report::{AccountClass, AccountMark, BesideRss};
use bitflags::bitflags;

const CLASSES: usize = AccountClass::ALL.len();
const MARKS: usize = AccountMark::ALL.len();
const BESIDE: usize = BesideRss::ALL.len();

bitflags! {
    /// A set of [`AccountMark`]s, a bit for each in their order.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub(super) struct Marks: u8 {
        const HUGE = 1 << AccountMark::Huge as u8;
        const TO_COPY = 1 << AccountMark::ToCopy as u8;
        const LAZILY_FREED = 1 << AccountMark::LazilyFreed as u8;
        const LOCKED = 1 << AccountMark::Locked as u8;
        const DIRTY = 1 << AccountMark::Dirty as u8;
        const SEVERAL = 1 << AccountMark::Several as u8;
        const WITH_PMDB = 1 << AccountMark::WithPmdb as u8;
    }
}

/// The class of some pages in an account, and their marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccountEntry {
    pub(super) place: Place,
    pub(super) has: Marks,
    /// The marks that the pages may have.
    pub(super) may_have: Marks,
    /// Whether smaps counts the pages as private; `None` if that is unknown.
    pub(super) is_private: Option<bool>,
    /// The bytes of zero-filled subpages.
    pub(super) zeros: Amount,
}

/// A class of Rss, or a sum beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    Class(AccountClass),
    Beside(BesideRss),
}

impl AccountEntry {
    /// Returns the class of the pages; `None` if they are beside the sum.
    pub fn class(&self) -> Option<AccountClass> {
        match self.place {
            Place::Class(class) => Some(class),
            Place::Beside(_) => None,
        }
    }
}

/// The bytes with a property, and the bytes for which it is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Amount {
    pub known: u64,
    pub unknown: u64,
}

impl Amount {
    fn add(&mut self, other: Amount) {
        self.known = self.known.saturating_add(other.known);
        self.unknown = self.unknown.saturating_add(other.unknown);
    }

    /// Returns the amount for `bytes` of `all` bytes that have this amount.
    fn part(self, bytes: u64, all: u64) -> Amount {
        match self {
            whole if bytes == all => whole,
            Amount { known: 0, unknown: 0 } => self,
            Amount { known, unknown: 0 } if known == all => Amount { known: bytes, unknown: 0 },
            // The bytes with the property may be in either part.
            _ => Amount { known: 0, unknown: bytes },
        }
    }

    /// Returns the bytes, if none are unknown.
    pub fn get(self) -> Option<u64> {
        (self.unknown == 0).then_some(self.known)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct SumOfPlace {
    bytes: u64,
    marks: [Amount; MARKS],
}

impl SumOfPlace {
    fn add(&mut self, more: &SumOfPlace) {
        self.bytes = self.bytes.saturating_add(more.bytes);
        self.marks.iter_mut().zip(&more.marks).for_each(|(amount, more)| amount.add(*more));
    }
}

/// The memory of some pages in bytes: the classes of what Rss counts, and the sums of what it does not count.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Account {
    rows: [SumOfPlace; CLASSES],
    beside: [u64; BESIDE],
    /// The bytes that smaps counts as private.
    pub(super) private: Amount,
}

impl Account {
    /// Adds pages of `bytes` bytes.
    pub fn add(&mut self, counted: &AccountEntry, bytes: u64) {
        let class = match counted.place {
            Place::Class(class) => class,
            Place::Beside(beside) => return self.put_beside(beside, bytes),
        };
        let row = self.row_mut(class);
        row.bytes = row.bytes.saturating_add(bytes);
        // Most pages have no mark, and there may be a call for each page.
        let (has, may_have) = (counted.has.bits(), counted.may_have.bits());
        let mut left = has | may_have;
        while left != 0 {
            let (index, bit) = (left.trailing_zeros() as usize, left & left.wrapping_neg());
            let of = |set: u8| if set & bit != 0 { bytes } else { 0 };
            let amount = Amount { known: of(has), unknown: of(may_have) };
            row.marks.get_mut(index).into_iter().for_each(|mark| mark.add(amount));
            left &= left - 1;
        }
        row.marks.get_mut(AccountMark::Zeros as usize).into_iter().for_each(|zeros| zeros.add(counted.zeros));
        self.private.add(match counted.is_private {
            Some(true) => Amount { known: bytes, unknown: 0 },
            Some(false) => Amount::default(),
            None => Amount { known: 0, unknown: bytes },
        });
    }

    /// Adds the sums of another account.
    pub fn merge(&mut self, other: &Account) {
        for (row, more) in self.rows.iter_mut().zip(&other.rows) {
            row.add(more);
        }
        self.beside.iter_mut().zip(&other.beside).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
        self.private.add(other.private);
    }

    /// Returns the bytes of all classes, which Rss counts.
    pub fn total(&self) -> u64 {
        self.rows.iter().fold(0, |sum, row| sum.saturating_add(row.bytes))
    }

    /// Returns the bytes of a class.
    pub fn of(&self, class: AccountClass) -> u64 {
        self.row(class).bytes
    }

    /// Returns the bytes of several classes.
    pub fn of_all(&self, classes: &[AccountClass]) -> u64 {
        classes.iter().fold(0, |sum, &class| sum.saturating_add(self.of(class)))
    }

    /// Returns the bytes of a class that have a mark; `None` if that is unknown for some.
    pub fn marked(&self, class: AccountClass, mark: AccountMark) -> Option<u64> {
        self.amount(class, mark).get()
    }

    /// Returns the bytes of all classes that have a mark; `None` if that is unknown for some.
    pub fn all_marked(&self, mark: AccountMark) -> Option<u64> {
        let mut all = Amount::default();
        AccountClass::ALL.iter().for_each(|&class| all.add(self.amount(class, mark)));
        all.get()
    }

    /// Returns the bytes of memory that Rss does not count.
    pub fn beside(&self, what: BesideRss) -> u64 {
        self.beside.get(what as usize).copied().unwrap_or_default()
    }

    pub(super) fn amount(&self, class: AccountClass, mark: AccountMark) -> Amount {
        self.row(class).marks.get(mark as usize).copied().unwrap_or_default()
    }

    pub(super) fn set_amount(&mut self, class: AccountClass, mark: AccountMark, to: Amount) {
        if let Some(amount) = self.row_mut(class).marks.get_mut(mark as usize) {
            *amount = to;
        }
    }

    pub(super) fn put_beside(&mut self, what: BesideRss, bytes: u64) {
        if let Some(sum) = self.beside.get_mut(what as usize) {
            *sum = sum.saturating_add(bytes);
        }
    }

    /// Moves bytes from one class to another, with their marks.
    pub(super) fn shift(&mut self, from: AccountClass, to: AccountClass, bytes: u64) {
        let moved = self.take(from, bytes);
        self.row_mut(to).add(&moved);
    }

    /// Removes bytes that are no memory from a class.
    pub(super) fn remove(&mut self, from: AccountClass, bytes: u64) {
        _ = self.take(from, bytes);
    }

    fn take(&mut self, from: AccountClass, bytes: u64) -> SumOfPlace {
        let row = self.row_mut(from);
        let bytes = bytes.min(row.bytes);
        let all = row.bytes;
        row.bytes -= bytes;
        let mut taken = SumOfPlace { bytes, ..SumOfPlace::default() };
        for (taken, left) in taken.marks.iter_mut().zip(&mut row.marks) {
            *taken = left.part(bytes, all);
            *left = left.part(all - bytes, all);
        }
        taken
    }

    fn row(&self, class: AccountClass) -> &SumOfPlace {
        const NONE: SumOfPlace = SumOfPlace { bytes: 0, marks: [Amount { known: 0, unknown: 0 }; MARKS] };
        self.rows.get(class as usize).unwrap_or(&NONE)
    }

    fn row_mut(&mut self, class: AccountClass) -> &mut SumOfPlace {
        let index = (class as usize).min(CLASSES - 1);
        &mut self.rows[index]
    }
}
