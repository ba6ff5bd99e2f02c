//! The account of each group of pages: of a region, a mapping, a symbol, or of pages with one value of a fact.

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

/// An account that adds everything up, and each group of pages. Dropping it ends what is under way.
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

/// The sums of an account, and of its groups.
pub struct AccountSums {
    /// Of everything.
    pub all: Account,
    space: AddressSpace,
    by: Option<Key>,
    reader: FactReader,
    /// Pages that begin in no symbol are in the group of their region.
    groups: BTreeMap<Group, Account>,
    accounting: Accounting,
}

impl AddressSpace {
    /// What has to be found out about pages to group them by `key`.
    ///
    /// # Errors
    /// It cannot be known here.
    pub fn need_of_group(&self, key: Key) -> Result<Evidence> {
        let Key::Page(field) = key else {
            return Ok(Evidence::empty());
        };
        Ok(FactReader::of_pages(self).require(field)?.unwrap_or_default())
    }
}

impl Accounting {
    /// The same with the sums of everything, and of each group `by` a key: [`Key::Region`], [`Key::Mapping`],
    /// [`Key::Symbol`], or a fact of pages, for which the account needs [`AddressSpace::need_of_group`].
    pub fn grouped<'a>(self, by: Option<Key>) -> GroupedAccounting<'a> {
        let space = self.space().clone();
        let reader = FactReader::of_pages(&space);
        let (all, groups) = (Account::default(), BTreeMap::new());
        let sums = AccountSums { all, space, by, reader, groups, accounting: self };
        GroupedAccounting { sums, symbol_at: None, region: 0, done: 0 }
    }
}

impl<'a> GroupedAccounting<'a> {
    /// The same with symbols, for [`Key::Symbol`]: `symbol_at` gives the symbol in which the page at an address begins
    /// a number, and tells of how many pages from there on that is so.
    pub fn with_symbols(self, symbol_at: impl FnMut(VirtualAddress) -> (Option<u32>, u64) + 'a) -> Self {
        GroupedAccounting { symbol_at: Some(Box::new(symbol_at)), ..self }
    }

    /// Goes on. Returns how many pages it has looked at; `None` after the last one.
    ///
    /// # Errors
    /// Those of [`Accounting::next`].
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

    /// The sums so far.
    pub fn finish(self) -> AccountSums {
        self.sums
    }
}

impl AccountSums {
    /// The rest of large anonymous folios that are mapped in part.
    pub fn rests(&self) -> Fact<Vec<FolioRest>> {
        self.accounting.rests()
    }

    /// The bytes of one class that have a mark.
    ///
    /// # Errors
    /// Why that is unknown of some.
    pub fn marked(&self, class: AccountClass, mark: AccountMark) -> Fact<u64> {
        self.all.marked(class, mark).ok_or_else(|| self.accounting.why_unknown(mark))
    }

    /// The bytes of all classes that have a mark.
    ///
    /// # Errors
    /// Why that is unknown of some.
    pub fn all_marked(&self, mark: AccountMark) -> Fact<u64> {
        self.all.all_marked(mark).ok_or_else(|| self.accounting.why_unknown(mark))
    }

    /// Bytes of the different frames: see [`Accounting::distinct`].
    ///
    /// # Errors
    /// Frames are hidden.
    pub fn distinct(&self) -> Fact<u64> {
        self.accounting.distinct(&self.all)
    }

    /// The bytes marked as freed with MADV_FREE that other processes map too.
    ///
    /// # Errors
    /// Why that is unknown of some.
    pub fn lazily_freed_elsewhere(&self) -> Fact<u64> {
        let elsewhere = self.marked(AccountClass::Forked, AccountMark::LazilyFreed)?;
        match self.marked(AccountClass::PrivateUnclear, AccountMark::LazilyFreed)? {
            0 => Ok(elsewhere),
            _ => Err(self.accounting.why_unknown(AccountMark::ToCopy)),
        }
    }

    /// Objects in memory that have more pages than the process has in its page tables: see [`Accounting::objects`].
    ///
    /// # Errors
    /// The budget is over.
    pub fn objects(&mut self) -> Result<MemoryObjects> {
        self.accounting.objects()
    }

    /// The account that was added up.
    pub fn accounting(&self) -> &Accounting {
        &self.accounting
    }

    /// What read the facts of the groups.
    pub fn reader(&self) -> &FactReader {
        &self.reader
    }

    /// The groups with memory by their names, the largest first; regions by address. Groups of one name are one, except
    /// regions.
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
