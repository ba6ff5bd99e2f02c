//! The name of an address: of the symbol that it is in, or of the variable that points to its memory.

use super::pointed::{self, PointedMemory, PointedRange};
#[cfg(feature = "cli")]
use crate::kernel::AddressRange;
use crate::kernel::{Name, Region, VirtualAddress};
use crate::symbol::{SymbolAt, TargetSymbols};
use std::sync::OnceLock;

/// The names of the addresses of one target while one command runs. The variables are read when the name of anonymous
/// memory is first asked for, and only where they are resident.
pub struct AddressNames<'a> {
    symbols: TargetSymbols<'a>,
    pointed: OnceLock<PointedMemory>,
}

/// The name of an address.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AddressName {
    /// The demangled name of a symbol, or `*name` for anonymous memory whose address the variable `name` holds. If it
    /// is a part of a larger object, the name is `*(name+16)`.
    pub name: Name,
    /// The file name of the module that defines the symbol or the variable.
    pub module: Name,
    /// The first address with this name.
    pub start: VirtualAddress,
    /// Bytes from the start of the symbol, or from the address that the variable holds.
    pub offset: u64,
    /// Bytes from the address to the end of what has this name.
    pub left: u64,
}

impl<'a> AddressNames<'a> {
    /// Makes the names of a target from its symbols.
    pub fn new(symbols: TargetSymbols<'a>) -> Self {
        AddressNames { symbols, pointed: OnceLock::new() }
    }

    /// Returns whether memory in `region` may have the name of a variable that points to it.
    pub fn may_be_pointed_to(region: &Region) -> bool {
        pointed::is_unnamed(region)
    }

    /// Returns the name of `address`.
    pub fn at(&self, address: VirtualAddress) -> Option<AddressName> {
        self.or_unnamed(address).ok()
    }

    /// Returns the name of `address`, or the number of bytes from there on that are known to have none; 0 if only this
    /// address is known.
    ///
    /// # Errors
    /// Fails if it has no name.
    pub fn or_unnamed(&self, address: VirtualAddress) -> Result<AddressName, u64> {
        let unnamed = self.symbols.unnamed_bytes(address);
        if unnamed == 0 {
            return self.symbols.at(address).map(AddressName::of_symbol).ok_or(0);
        }
        let pointed = self.pointed();
        let name = pointed.at(address).and_then(|range| self.of_pointed(range, address));
        name.ok_or_else(|| unnamed.min(pointed.bytes_before_next(address)))
    }

    /// As [`AddressNames::or_unnamed`], for groups: memory that many words of one variable name has one name,
    /// `*name[..]`, and one `start`.
    #[cfg(feature = "cli")]
    pub(crate) fn group_or_unnamed(&self, address: VirtualAddress) -> Result<AddressName, u64> {
        let name = self.or_unnamed(address)?;
        Ok(match self.group_at(address) {
            Some((start, group)) => AddressName { name: group, start, ..name },
            None => name,
        })
    }

    /// Returns the name that memory shares with others that words of the same variable point to, and where the first of
    /// them begins.
    #[cfg(feature = "cli")]
    fn group_at(&self, address: VirtualAddress) -> Option<(VirtualAddress, Name)> {
        if self.symbols.unnamed_bytes(address) == 0 {
            return None;
        }
        let pointed = self.pointed().at(address)?;
        let variable = self.symbols.at(pointed.word)?;
        Some((pointed.first_of_many?, Name::new([b"*", variable.name().as_bytes(), b"[..]"].concat())))
    }

    /// Returns `range` in parts, so that one variable points to all of a part, or none.
    #[cfg(feature = "cli")]
    pub(crate) fn parts(&self, range: AddressRange) -> Vec<AddressRange> {
        let named = self.pointed().within(range);
        let mut parts: Vec<AddressRange> = range.outside(&named).chain(named.iter().copied()).collect();
        parts.sort_unstable();
        parts
    }

    /// Returns the name of the variable that points to the memory at `address`, as groups have it.
    #[cfg(feature = "cli")]
    pub(crate) fn pointer_to(&self, address: VirtualAddress) -> Option<Name> {
        if let Some((_, group)) = self.group_at(address) {
            return Some(group);
        }
        let pointed = self.pointed().at(address)?;
        Some(self.of_pointed(pointed, address)?.name)
    }

    /// Returns the memory that variables point to. Memory that may not be read gives no names.
    fn pointed(&self) -> &PointedMemory {
        self.pointed.get_or_init(|| {
            let find = |names: &TargetSymbols<'_>| PointedMemory::find(names, &mut self.symbols.budget());
            self.symbols.over_all(find).ok().and_then(Result::ok).unwrap_or_default()
        })
    }

    fn of_pointed(&self, pointed: &PointedRange, address: VirtualAddress) -> Option<AddressName> {
        let variable = self.symbols.at(pointed.word)?;
        let name = variable.name();
        let name = match variable.offset {
            0 => [b"*", name.as_bytes()].concat(),
            offset => [b"*(", name.as_bytes(), b"+", offset.to_string().as_bytes(), b")"].concat(),
        };
        Some(AddressName {
            name: Name::new(name),
            module: variable.module.file_name(),
            start: pointed.range.start(),
            offset: address.get().saturating_sub(pointed.held.get()),
            left: pointed.range.end().get() - address.get(),
        })
    }
}

impl AddressName {
    fn of_symbol(symbol: SymbolAt) -> AddressName {
        AddressName {
            name: symbol.name(),
            module: symbol.module.file_name(),
            start: symbol.start,
            offset: symbol.offset,
            left: symbol.size.saturating_sub(symbol.offset),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::fake::{Fake, World};
    use crate::symbol::Symbols;
    use crate::symbol::tests::builder::{Builder, Entry, GLOBAL, OBJECT, entry};
    use std::collections::BTreeMap;

    const PROGRAM: &str = "/usr/bin/program";
    /// The address of `.bss`, which the program has at 0x3000.
    const BSS: u64 = 0x40_3000;
    /// A region that the program has mapped.
    const MAPPED: u64 = 0x7f00_0000_0000;
    /// A region of two chunks and another mapping.
    const MERGED: u64 = 0x7f10_0000_0000;

    /// A program with a variable for each entry, and the words in `.bss`.
    fn program(variables: Vec<Entry>, words: &[(u64, u64)]) -> Fake {
        let mut bss = vec![0; 0x800];
        for &(address, word) in words {
            let at = (address - 0x3000) as usize;
            bss[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        let head = |size: u64| [0, size | 2].map(u64::to_le_bytes).concat();
        let fake = Fake::new()
            .region(0x40_1000, 0x40_2000, "r-xp", 7, PROGRAM)
            .region(0x40_2000, BSS, "rw-p", 7, PROGRAM)
            .region(BSS, BSS + 0x1000, "rw-p", 0, "")
            .region(0x50_0000, 0x50_4000, "rw-p", 0, "[heap]")
            .region(MAPPED, MAPPED + 0x8000, "rw-p", 0, "")
            .region(MERGED, MERGED + 0x8000, "rw-p", 0, "")
            .page(0x40_2000, 30, &[])
            .page(BSS, 31, &bss)
            .page(MAPPED, 32, &[])
            .page(MERGED, 33, &head(0x3000))
            .page(MERGED + 0x3000, 34, &head(0x3000));
        let fake = fake.file(PROGRAM, Builder::with(variables).bytes());
        Fake { executable: Some(PROGRAM.into()), ..fake }
    }

    fn variable(name: &str, address: u64, size: u64) -> Entry {
        entry(name, address, size, GLOBAL, OBJECT)
    }

    /// The names of addresses, with offsets.
    fn names_of(fake: Fake, addresses: &[u64]) -> Vec<String> {
        let (target, symbols) = (fake.target(), Symbols::default());
        let names = AddressNames::new(symbols.on_demand(&target));
        let name = |named: AddressName| match named.offset {
            0 => named.name.to_string(),
            offset => format!("{}+{offset:#x}", named.name),
        };
        addresses.iter().map(|&at| names.at(VirtualAddress::new(at)).map_or_else(String::new, name)).collect()
    }

    #[test]
    fn a_pointer_to_the_start_of_a_region_names_it() {
        let variables = || vec![variable("matrix", 0x3010, 8), variable("other", 0x3018, 8)];
        let fake = |other| program(variables(), &[(0x3010, MAPPED), (0x3018, other)]);
        let ends = [MAPPED, MAPPED + 0x1008, MAPPED + 0x7fff, MAPPED + 0x8000, MAPPED - 1];
        let whole = ["*matrix", "*matrix+0x1008", "*matrix+0x7fff", "", ""];
        assert_eq!(names_of(fake(0), &ends), whole);
        // A pointer to the middle of a page names nothing.
        assert_eq!(names_of(fake(MAPPED + 0x1010), &ends), whole);
    }

    /// The kernel joins neighbouring mappings to one region.
    #[test]
    fn a_pointer_to_a_page_inside_of_a_region_begins_a_part() {
        let variables = vec![variable("matrix", 0x3010, 8), variable("other", 0x3018, 8)];
        let fake = program(variables, &[(0x3010, MAPPED), (0x3018, MAPPED + 0x4000)]);
        let at = [0, 0x3fff, 0x4000, 0x7fff, 0x8000].map(|at| MAPPED + at);
        assert_eq!(names_of(fake, &at), ["*matrix", "*matrix+0x3fff", "*other", "*other+0x3fff", ""]);
        // A word outside of all variables ends a part too, but names nothing.
        let fake = program(vec![variable("matrix", 0x3010, 8)], &[(0x3010, MAPPED), (0x3018, MAPPED + 0x4000)]);
        assert_eq!(names_of(fake, &at), ["*matrix", "*matrix+0x3fff", "", "", ""]);
    }

    #[test]
    fn a_chunk_that_is_a_mapping_is_named_where_the_kernel_joined_it_with_others() {
        let variables = vec![variable("first", 0x3010, 8), variable("second", 0x3018, 8)];
        let words = [(0x3010, MERGED + 0x10), (0x3018, MERGED + 0x3010)];
        let at = [0, 0x10, 0x2fff, 0x3000, 0x5fff, 0x6000].map(|at| MERGED + at);
        let expected = ["*first", "*first", "*first+0x2fef", "*second", "*second+0x2fef", ""];
        assert_eq!(names_of(program(variables, &words), &at), expected);
        // What another variable holds after a chunk begins there.
        let variables = || vec![variable("second", 0x3018, 8), variable("after", 0x3020, 8)];
        let words = [(0x3018, MERGED + 0x3010), (0x3020, MERGED + 0x6000)];
        let expected = ["", "", "", "*second", "*second+0x2fef", "*after"];
        assert_eq!(names_of(program(variables(), &words), &at), expected);
        // So it does if no variable holds the chunks, which begin with the region.
        let expected = ["", "", "", "", "", "*after"];
        assert_eq!(names_of(program(variables(), &words[1..]), &at), expected);
        // Only the second is held by a variable, and a page of it by another one.
        let variables = || vec![variable("second", 0x3018, 8), variable("cursor", 0x3020, 8)];
        let words = [(0x3018, MERGED + 0x3010), (0x3020, MERGED + 0x4000)];
        let expected = ["", "", "", "*second", "*second+0x2fef", ""];
        assert_eq!(names_of(program(variables(), &words), &at), expected);
        // The head of another chunk, or of none.
        let words = [(0x3018, MERGED + 0x2010), (0x3020, MERGED + 0x3020)];
        assert_eq!(names_of(program(variables(), &words), &at), [""; 6]);
    }

    #[test]
    fn a_chunk_has_its_name_in_all_regions_that_advice_made_of_it() {
        let mut fake = program(vec![variable("first", 0x3010, 8)], &[(0x3010, MERGED + 0x10)]);
        let split = |at: u64, end: u64| Fake::new().region(MERGED + at, MERGED + end, "rw-p", 0, "").regions.remove(0);
        fake.regions.pop();
        fake.regions.extend([split(0, 0x1000), split(0x1000, 0x2000), split(0x2000, 0x8000)]);
        let at = [0, 0x1010, 0x2010, 0x3000].map(|at| MERGED + at);
        assert_eq!(names_of(fake, &at), ["*first", "*first+0x1000", "*first+0x2000", ""]);
    }

    #[test]
    fn user_data_with_an_alignment_begins_later_in_its_mapping() {
        let mut fake = program(vec![variable("aligned", 0x3010, 8)], &[(0x3010, MERGED + 0x1000)]);
        let mut page = vec![0; 0x1000];
        page[0xff0..].copy_from_slice(&[0xff0, 0x2010 | 2u64].map(u64::to_le_bytes).concat());
        fake = fake.page(MERGED, 33, &page);
        let at = [MERGED, MERGED + 0x1004, MERGED + 0x2fff, MERGED + 0x3000];
        assert_eq!(names_of(fake, &at), ["*aligned", "*aligned+0x4", "*aligned+0x1fff", ""]);
    }

    #[test]
    fn a_variable_that_is_only_a_pointer_goes_before_one_in_an_object() {
        let state = || variable("state", 0x3010, 0x40);
        let words = [(0x3020, MAPPED), (0x3060, MAPPED), (0x3068, MAPPED), (0x3010, MERGED + 0x10)];
        let at = [MAPPED + 0x1000, MERGED + 0x1000];
        let of = |variables| names_of(program(variables, &words), &at);
        assert_eq!(of(vec![state()]), ["*(state+16)+0x1000", "*state+0xff0"]);
        let pointers = || vec![state(), variable("a", 0x3060, 8), variable("b", 0x3068, 8)];
        assert_eq!(of(pointers()), ["*a+0x1000", "*state+0xff0"]);
        // A symbol without a size may be the end of another one.
        assert_eq!(of(vec![variable("_edata", 0x3000, 0)]), [""; 2]);
    }

    #[test]
    fn memory_with_a_name_keeps_it() {
        let variables = || vec![variable("one", 0x3010, 8), variable("two", 0x3018, 8)];
        let at = [BSS + 0x700, 0x50_0000, MAPPED];
        let words = [(0x3010, BSS), (0x3018, 0x50_0000)];
        assert_eq!(names_of(program(variables(), &words), &at), [""; 3]);
        let mut named = program(variables(), &[(0x3010, MAPPED)]);
        named.regions.iter_mut().for_each(|region| region.name = "[anon:arena]".into());
        assert_eq!(names_of(named, &at), [""; 3]);
    }

    #[test]
    fn the_variables_of_the_program_go_before_those_of_libraries() {
        let library = |fake: Fake, name: &str| {
            let fake = fake
                .region(0x30_1000, 0x30_2000, "r-xp", 8, name)
                .region(0x30_2000, 0x30_3000, "rw-p", 8, name)
                .region(0x30_3000, 0x30_4000, "rw-p", 0, "");
            let mut bss = vec![0; 0x20];
            bss[..8].copy_from_slice(&MAPPED.to_le_bytes());
            bss[8..16].copy_from_slice(&(MERGED + 0x10).to_le_bytes());
            let variables = vec![variable("mine", 0x3000, 8), variable("too", 0x3008, 8)];
            fake.page(0x30_3000, 41, &bss).file(name, Builder::with(variables).bytes())
        };
        let fake = program(vec![variable("matrix", 0x3010, 8)], &[(0x3010, MAPPED)]);
        assert_eq!(names_of(library(fake, "/lib/one.so"), &[MAPPED, MERGED]), ["*matrix", "*too"]);
    }

    #[test]
    fn both_widths() {
        let mut fake = program(Vec::new(), &[]);
        fake.layout.pointer_bytes = 4;
        let bytes = Builder { is_64: false, ..Builder::with(vec![variable("buffer", 0x3014, 4)]) }.bytes();
        fake = fake.file(PROGRAM, bytes).region(0x6000_0000, 0x6000_4000, "rw-p", 0, "");
        let mut bss = vec![0; 0x14];
        bss.extend(0x6000_1008u32.to_le_bytes());
        let head = [0, 0x2000 | 2u32].map(u32::to_le_bytes).concat();
        fake = fake.page(BSS, 31, &bss).page(0x6000_1000, 35, &head);
        let at = [0x6000_0fff, 0x6000_1000, 0x6000_1009, 0x6000_2fff, 0x6000_3000];
        assert_eq!(names_of(fake, &at), ["", "*buffer", "*buffer+0x1", "*buffer+0x1ff7", ""]);
    }

    #[cfg(feature = "cli")]
    #[test]
    fn a_range_is_divided_where_what_variables_point_to_begins_and_ends() {
        let variables = vec![variable("second", 0x3018, 8), variable("matrix", 0x3020, 8)];
        let words = [(0x3018, MERGED + 0x3010), (0x3020, MAPPED)];
        let (target, symbols) = (program(variables, &words).target(), Symbols::default());
        let names = AddressNames::new(symbols.on_demand(&target));
        let range = |start, bytes| AddressRange::of_length(VirtualAddress::new(start), bytes).expect("bytes");
        let parts = |at, bytes| {
            let parts = names.parts(range(at, bytes)).into_iter();
            let name = |at| names.pointer_to(at).map(|name| name.to_string()).unwrap_or_default();
            parts.map(|part| (part.start().get() - at, part.len(), name(part.start()))).collect::<Vec<_>>()
        };
        let (none, second, matrix) = (String::new, || "*second".to_owned(), || "*matrix".to_owned());
        let all = [(0, 0x3000, none()), (0x3000, 0x3000, second()), (0x6000, 0x2000, none())];
        assert_eq!(parts(MERGED, 0x8000), all);
        assert_eq!(parts(MERGED + 0x4000, 0x1000), [(0, 0x1000, second())]);
        assert_eq!(parts(MAPPED, 0x8000), [(0, 0x8000, matrix())]);
        assert_eq!(parts(BSS, 0x1000), [(0, 0x1000, none())]);
    }

    /// An array of many pointers, whose memory lies in two regions.
    #[cfg(feature = "cli")]
    #[test]
    fn memory_that_many_words_of_one_variable_name_is_one_group() {
        let named = |words: u64| {
            let held = |word| (0x3010 + word * 8, if word == 0 { MERGED + 0x10 } else { MAPPED + word * 0x1000 });
            let words: Vec<(u64, u64)> = (0..words).map(held).collect();
            let (target, symbols) =
                (program(vec![variable("hoard", 0x3010, 0x40)], &words).target(), Symbols::default());
            let names = AddressNames::new(symbols.on_demand(&target));
            let at = [MERGED, MAPPED + 0x1000, MAPPED + 0x2000].map(VirtualAddress::new);
            let exact = at.map(|at| names.at(at).map(|one| one.name.to_string()).unwrap_or_default());
            assert_eq!(exact, ["*hoard", "*(hoard+8)", "*(hoard+16)"]);
            let whole = AddressRange::of_length(VirtualAddress::new(MAPPED), 0x8000).expect("bytes");
            let groups = at.map(|at| names.group_or_unnamed(at).expect("a name"));
            let (starts, groups) = (groups.clone().map(|one| one.start.get()), groups.map(|one| one.name.to_string()));
            assert_eq!(at.map(|at| names.pointer_to(at).expect("a name").to_string()), groups);
            (groups, starts, names.parts(whole).len())
        };
        let alone = ["*hoard", "*(hoard+8)", "*(hoard+16)"].map(str::to_owned);
        assert_eq!(named(4), (alone, [MERGED, MAPPED + 0x1000, MAPPED + 0x2000], 4));
        let group = ["*hoard[..]"; 3].map(str::to_owned);
        assert_eq!(named(5), (group, [MAPPED + 0x1000; 3], 2));
    }

    #[test]
    fn hidden_memory_has_no_names_and_is_no_error() {
        let fake = program(vec![variable("matrix", 0x3010, 8)], &[(0x3010, MAPPED)]);
        let entries: BTreeMap<u64, u64> = fake.entries.iter().map(|(&page, entry)| (page, entry.raw())).collect();
        let (files, executable) = (fake.files, fake.executable);
        let world = World { entries, files, executable, memory: None, ..World::new(fake.regions) };
        let (target, symbols) = (world.target().1, Symbols::default());
        let names = AddressNames::new(symbols.on_demand(&target));
        assert!(names.at(VirtualAddress::new(MAPPED)).is_none());
        assert_eq!(
            names.at(VirtualAddress::new(BSS + 0x10)).map(|named| named.name.to_string()),
            Some("matrix".into())
        );
    }

    #[test]
    fn variables_are_read_only_for_the_name_of_anonymous_memory() {
        let fake = program(vec![variable("matrix", 0x3010, 8)], &[(0x3010, MAPPED)]);
        let (watched, symbols) = (fake.watched.clone(), Symbols::default());
        let target = fake.target();
        let names = AddressNames::new(symbols.on_demand(&target));
        let reads = || watched.memory_reads.load(std::sync::atomic::Ordering::Relaxed);
        names.at(VirtualAddress::new(BSS + 0x10));
        assert_eq!(reads(), 0);
        names.at(VirtualAddress::new(MAPPED));
        let first = reads();
        assert!(first > 0);
        names.at(VirtualAddress::new(MERGED));
        assert_eq!(reads(), first);
    }
}
