//! The account of each group of pages: of a region, a mapping, a symbol, or a value of a fact.

use super::super::Result;
use super::super::address_space::AddressSpace;
use super::super::by_symbol::{SymbolAt, parts_by_symbol};
use super::super::fact::FactReader;
use super::super::kept::Step;
use super::super::page::Evidence;
use super::super::rows::Group;
use super::accounting::Accounting;
use super::objects::MemoryObjects;
use super::rests::FolioRest;
use super::sums::{Account, AccountEntry};
use crate::kernel::{Key, VirtualAddress};
use crate::report::{AccountClass, AccountMark, Fact};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// A sweep that makes an account and those of its groups. Dropping it stops the worker threads.
///
/// ```
/// use pmdb::inspect::Group;
/// use pmdb::kernel::Key;
/// use pmdb::report::AccountClass;
/// use pmdb::{AddressSpace, Target};
///
/// let target = Target::attach(std::process::id())?;
/// let space = AddressSpace::of(&target)?;
/// let by = Key::Mapping;
/// let mut accounting = space.account(&space.spans(), space.need_of_group(by)?, false).grouped(Some(by));
/// while let Some(step) = accounting.next()? {
///     println!("{step:?}");
/// }
/// let sums = accounting.finish();
/// let groups = sums.named(|group| match group {
///     Group::Region(Some(index)) => space.viewed_regions()[index].region.name.to_string(),
///     other => format!("{other:?}"),
/// });
/// for (name, account) in &groups {
///     println!("{name}: {} bytes, of them {} anonymous", account.total(), account.of(AccountClass::Anonymous));
/// }
/// # assert_eq!(groups.iter().map(|(_, one)| one.total()).sum::<u64>(), sums.all.total());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct GroupedAccounting<'a> {
    sums: AccountSums,
    symbol_at: Option<SymbolAt<'a>>,
    /// The index of the region of the last page.
    region: usize,
    done: u64,
}

/// The sums of an account and of its groups.
pub struct AccountSums {
    /// The account of all pages.
    pub all: Account,
    space: AddressSpace,
    by: Option<Key>,
    reader: FactReader,
    /// The account of each group. Pages that begin in no symbol are in the group of their region.
    groups: BTreeMap<Group, Account>,
    accounting: Accounting,
}

impl AddressSpace {
    /// Returns the evidence of pages that a group by `key` needs.
    ///
    /// # Errors
    /// Fails if the key cannot be known here.
    pub fn need_of_group(&self, key: Key) -> Result<Evidence> {
        let Key::Page(field) = key else {
            return Ok(Evidence::empty());
        };
        Ok(FactReader::of_pages(self).require(field)?.unwrap_or_default())
    }
}

impl Accounting {
    /// Also sums up all pages, and each group `by` a key: [`Key::Region`], [`Key::Mapping`], [`Key::Symbol`], or a fact
    /// of pages, for which the account needs [`AddressSpace::need_of_group`].
    pub fn grouped<'a>(self, by: Option<Key>) -> GroupedAccounting<'a> {
        let space = self.space().clone();
        let reader = FactReader::of_pages(&space);
        let (all, groups) = (Account::default(), BTreeMap::new());
        let accounting = if matches!(by, Some(Key::Page(_) | Key::Symbol)) { self } else { self.without_pages() };
        let sums = AccountSums { all, space, by, reader, groups, accounting };
        GroupedAccounting { sums, symbol_at: None, region: 0, done: 0 }
    }
}

impl<'a> GroupedAccounting<'a> {
    /// Sets the source of symbols for [`Key::Symbol`]. `symbol_at` returns the number of the symbol in which the page
    /// at an address begins, and for how many pages from there on it is the same.
    pub fn with_symbols(self, symbol_at: impl FnMut(VirtualAddress) -> (Option<u32>, u64) + 'a) -> Self {
        GroupedAccounting { symbol_at: Some(Box::new(symbol_at)), ..self }
    }

    /// Makes the next step. Returns the progress; `None` after the last step.
    ///
    /// # Errors
    /// Fails like [`Accounting::next`].
    pub fn next(&mut self) -> Result<Option<Step<()>>> {
        let AccountSums { all, space, by, reader, groups, accounting } = &mut self.sums;
        let total = accounting.total_pages();
        let Some(step) = accounting.next()? else {
            return Ok(None);
        };
        if let Some((index, account)) = step.region {
            all.merge(account);
            if matches!(by, Some(Key::Region | Key::Mapping)) {
                groups.entry(Group::Region(Some(index))).or_default().merge(account);
            }
        }
        let size = space.page_size();
        let mut add = |group, entry: &AccountEntry, pages: u64| {
            groups.entry(group).or_default().add(entry, pages * size.bytes());
        };
        for (page, entry) in step.counted.iter().filter(|(_, entry)| entry.class().is_some()) {
            // Pages come in address order.
            let regions = space.viewed_regions().iter().skip(self.region);
            self.region += regions.take_while(|viewed| viewed.range().end() <= page.address).count();
            let region = Some(self.region);
            match (*by, &mut self.symbol_at) {
                (Some(key @ Key::Page(_)), _) => add(reader.group(key, page, region, None), entry, page.pages),
                (Some(Key::Symbol), Some(symbol_at)) => {
                    for (_, pages, symbol) in parts_by_symbol(size, page.address, page.pages, symbol_at) {
                        let group = symbol.map_or(Group::Region(region), |symbol| Group::Symbol(Some(symbol)));
                        add(group, entry, pages);
                    }
                }
                _ => {}
            }
        }
        self.done = self.done.saturating_add(step.pages);
        Ok(Some(Step::Visited { done: self.done, total }))
    }

    /// Returns the sums so far.
    pub fn finish(self) -> AccountSums {
        self.sums
    }
}

impl AccountSums {
    /// Returns the unmapped rests of the large anonymous folios that are mapped in part.
    pub fn rests(&self) -> Fact<Vec<FolioRest>> {
        self.accounting.rests()
    }

    /// Returns the bytes of a class that have a mark.
    ///
    /// # Errors
    /// Returns the reason if it is unknown for some bytes.
    pub fn marked(&self, class: AccountClass, mark: AccountMark) -> Fact<u64> {
        self.all.marked(class, mark).ok_or_else(|| self.accounting.why_unknown(mark))
    }

    /// Returns the bytes of all classes that have a mark.
    ///
    /// # Errors
    /// Returns the reason if it is unknown for some bytes.
    pub fn all_marked(&self, mark: AccountMark) -> Fact<u64> {
        self.all.all_marked(mark).ok_or_else(|| self.accounting.why_unknown(mark))
    }

    /// Returns the bytes of the different frames, as [`Accounting::distinct`] does.
    ///
    /// # Errors
    /// Fails if frame numbers are hidden.
    pub fn distinct(&self) -> Fact<u64> {
        self.accounting.distinct(&self.all)
    }

    /// Returns the bytes that are freed with MADV_FREE and mapped by other processes too.
    ///
    /// # Errors
    /// Returns the reason if it is unknown for some bytes.
    pub fn lazily_freed_elsewhere(&self) -> Fact<u64> {
        let elsewhere = self.marked(AccountClass::Forked, AccountMark::LazilyFreed)?;
        match self.marked(AccountClass::PrivateUnclear, AccountMark::LazilyFreed)? {
            0 => Ok(elsewhere),
            _ => Err(self.accounting.why_unknown(AccountMark::ToCopy)),
        }
    }

    /// Returns the objects in memory with more pages than the page tables of the process, as [`Accounting::objects`]
    /// does.
    ///
    /// # Errors
    /// Fails if the budget is used up.
    pub fn objects(&mut self) -> Result<MemoryObjects> {
        self.accounting.objects()
    }

    /// Returns the sweep of the account.
    pub fn accounting(&self) -> &Accounting {
        &self.accounting
    }

    /// Returns the reader of the facts of groups.
    pub fn reader(&self) -> &FactReader {
        &self.reader
    }

    /// Returns the groups with memory by their names, the largest first; regions by address. Groups with the same name
    /// are added, except regions.
    pub fn named<K: Clone + Eq + Hash>(&self, name: impl Fn(Group) -> K) -> Vec<(K, Account)> {
        let is_by_region = self.by == Some(Key::Region);
        let mut rows: Vec<(K, Account)> = Vec::new();
        let mut numbers: HashMap<K, usize> = HashMap::new();
        let mut groups: Vec<_> = self.groups.iter().filter(|(_, account)| account.total() > 0).collect();
        groups.sort_by_cached_key(|(group, _)| matches!(group, Group::Region(_)));
        for (group, account) in groups {
            let name = name(*group);
            match numbers.get(&name).and_then(|&number| rows.get_mut(number)) {
                Some((_, sum)) if !is_by_region => sum.merge(account),
                _ => {
                    numbers.insert(name.clone(), rows.len());
                    rows.push((name, account.clone()));
                }
            }
        }
        if !is_by_region {
            rows.sort_by_cached_key(|(_, account)| Reverse(account.total()));
        }
        rows
    }
}
