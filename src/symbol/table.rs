//! The entries of a symbol table, read in one streaming pass; and their names in memory, while many of them are needed.
//!
//! Stubs and slots for calls of imported functions are in no table. Here they have gdb's names: the stub `malloc@plt`,
//! the slot `malloc@got.plt`. A stub of the procedure linkage table jumps through a slot of the global offset table,
//! and the relocation that fills the slot has the number of the function in the dynamic table. The jump contains the
//! place of the slot, so that stubs of all layouts are decoded in one way.

use super::NoSymbols;
use super::demangle::{GOT, NameQuery, PLT};
use super::elf::{BoundedFile, Elf, ElfFile, FileRange, LONGEST_NAME, Relocations, Section, SymbolTable, TablePass};
use super::files::Sources;
use crate::budget::Budget;
use crate::kernel::Name;
use crate::kernel::words::worded;
use object::pod::{self, Pod};
use object::read::elf::Sym;
use object::{Endianness, elf as format};
use std::collections::HashMap;

worded! {
    /// The kind of object that a symbol names.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum SymbolKind, word {
        /// Code.
        Function = "function",
        /// Code that the dynamic linker runs once to choose the implementation of a function (IFUNC).
        Indirect = "ifunc",
        /// Data.
        Object = "object",
        /// A variable of which each thread has its own copy.
        Tls = "tls",
        /// The file does not say: labels of assembler and linker.
        Untyped = "untyped",
    }
}

/// The rank among symbols with the same start; greater is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Rank {
    is_shared: bool,
    has_type: bool,
    has_full_table: bool,
}

/// A defined symbol with a name, from a table. The name stays in the file.
// The alignment prevents that a symbol extends over two cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Symbol {
    /// The file address of the first byte.
    pub(super) address: u64,
    /// The size in bytes, or 0.
    pub(super) size: u64,
    /// The offset of the name in the string table.
    pub(super) name: u32,
    /// The number of the section in the mapped file; `None` if the file has too many sections for the entry.
    pub(super) section: Option<u16>,
    /// The number of the symbol in its table.
    pub(super) number: u32,
    /// The number of the table in the module.
    pub(super) table: u8,
    pub(super) kind: SymbolKind,
    pub(super) is_local: bool,
}

impl Symbol {
    /// Returns whether the symbol has a size and contains `address`.
    pub(super) fn covers(&self, address: u64) -> bool {
        address.checked_sub(self.address).is_some_and(|into| into < self.size)
    }

    /// Returns the rank among symbols with the same start.
    pub(super) fn rank(&self) -> Rank {
        Rank { is_shared: !self.is_local, has_type: self.kind != SymbolKind::Untyped, has_full_table: self.table == 0 }
    }

    /// Returns whether the symbol may be `$x` or `$d`, which only its name shows.
    fn may_be_mapping_symbol(&self) -> bool {
        self.is_local && self.size == 0 && self.kind == SymbolKind::Untyped
    }
}

/// Symbols, each with its name as the file spells it.
pub(super) type NamedSymbols = Vec<(Symbol, Name)>;

/// Reads the symbols in the tables of a module, `.symtab` first. Undefined, absolute, section and file symbols are left
/// out.
pub(super) struct SymbolPass<'a> {
    sources: &'a Sources,
    /// Whether each table is read, by number. Later tables all are.
    wanted: Vec<bool>,
    /// The number of the current table.
    number: usize,
    entries: Option<EntryPass<'a>>,
    /// The last name that was checked, by its offset: thousands of symbols share the one string `$x`.
    mapping: (u32, bool),
}

impl<'a> SymbolPass<'a> {
    /// Makes a pass over all tables.
    pub(super) fn new(sources: &'a Sources) -> Self {
        SymbolPass::of_tables(sources, Vec::new())
    }

    /// Makes a pass over the `wanted` tables, by number.
    pub(super) fn of_tables(sources: &'a Sources, wanted: Vec<bool>) -> Self {
        SymbolPass { sources, wanted, number: 0, entries: None, mapping: (u32::MAX, false) }
    }

    /// Returns the next symbol.
    pub(super) fn next(&mut self, budget: &mut Budget) -> Result<Option<Symbol>, NoSymbols> {
        loop {
            let number = u8::try_from(self.number).ok();
            let table = number.and_then(|number| Some((number, self.sources.table(number)?)));
            let Some((number, (source, table))) = table else {
                return if self.number == 0 { Err(self.sources.no_table()) } else { Ok(None) };
            };
            // A table that is not completely in the file is an error in any case.
            let is_left_out = self.wanted.get(self.number) == Some(&false) && source.file.holds(table.symbols);
            let entries = self.entries.get_or_insert_with(|| EntryPass::new(source, table.symbols));
            let entry = if is_left_out { None } else { entries.next(budget)? };
            let Some((position, entry)) = entry else {
                (self.number, self.entries) = (self.number + 1, None);
                continue;
            };
            let Some(mut symbol) = defined(entry, &source.elf, number, position) else {
                continue;
            };
            symbol.section =
                symbol.section.and_then(|section| self.sources.section_in_image(number, section, symbol.address));
            if source.elf.has_mapping_symbols() && symbol.may_be_mapping_symbol() {
                if self.mapping.0 != symbol.name {
                    let name = source.file.string(table.strings, symbol.name);
                    self.mapping = (symbol.name, name.as_deref().is_some_and(is_mapping_name));
                }
                if self.mapping.1 {
                    continue;
                }
            }
            return Ok(Some(symbol));
        }
    }
}

/// An entry of a symbol table, of either width.
#[derive(Clone, Copy)]
pub(super) struct SymbolEntry {
    /// The offset of the name.
    pub(super) name: u32,
    section: format::SymbolSection,
    kind: format::SymbolType,
    is_local: bool,
    address: u64,
    size: u64,
}

/// Reads the entries of a symbol table, defined or not.
pub(super) struct EntryPass<'a> {
    elf: &'a Elf,
    pass: TablePass<'a>,
    /// The entries of the current part, and the number of the next one in the table.
    part: std::vec::IntoIter<SymbolEntry>,
    next: u32,
}

impl<'a> EntryPass<'a> {
    /// Makes a pass over the entries in a range of a file.
    pub(super) fn new(ElfFile { file, elf }: &'a ElfFile, range: FileRange) -> Self {
        let bytes = usize::try_from(elf.symbol_bytes()).unwrap_or(usize::MAX);
        let pass = file.pass(range, bytes, "symbol table");
        EntryPass { elf, pass, part: Vec::new().into_iter(), next: 0 }
    }

    /// Returns the next entry, with its number in the range.
    pub(super) fn next(&mut self, budget: &mut Budget) -> Result<Option<(u32, SymbolEntry)>, NoSymbols> {
        while self.part.len() == 0 {
            let Some(bytes) = self.pass.next(budget)? else {
                return Ok(None);
            };
            let Elf { endian, is_64, .. } = *self.elf;
            let part = if is_64 {
                entries::<format::Sym64<_>>(bytes, endian)
            } else {
                entries::<format::Sym32<_>>(bytes, endian)
            };
            budget.spend(part.len() as u64)?;
            self.part = part.into_iter();
        }
        let number = self.next;
        self.next = number.wrapping_add(1);
        Ok(self.part.next().map(|entry| (number, entry)))
    }
}

fn entries<S: Sym<Endian = Endianness> + Pod>(bytes: &[u8], endian: Endianness) -> Vec<SymbolEntry> {
    let entries = pod::slice_from_all_bytes::<S>(bytes).unwrap_or_default();
    let one = |entry: &S| SymbolEntry {
        name: entry.st_name(endian),
        section: entry.st_shndx(endian),
        kind: entry.st_type(),
        is_local: entry.st_bind() == format::STB_LOCAL,
        address: entry.st_value(endian).into(),
        size: entry.st_size(endian).into(),
    };
    entries.iter().map(one).collect()
}

/// Converts an entry, if it names something that this file defines.
fn defined(entry: SymbolEntry, elf: &Elf, table: u8, number: u32) -> Option<Symbol> {
    let SymbolEntry { name, section, kind, is_local, mut address, size } = entry;
    if name == 0 || (section.is_special() && section != format::SHN_XINDEX) {
        return None;
    }
    // Debug files of libraries contain the linker's warnings (`.gnu.warning.*`) as symbols, which no process has in
    // memory.
    let stands_in = section.index().and_then(|number| elf.sections.get(usize::from(number)));
    if stands_in.is_some_and(|section| !section.is_loaded()) {
        return None;
    }
    let kind = match kind {
        format::STT_FUNC => SymbolKind::Function,
        format::STT_GNU_IFUNC => SymbolKind::Indirect,
        format::STT_OBJECT => SymbolKind::Object,
        format::STT_TLS => SymbolKind::Tls,
        format::STT_NOTYPE => SymbolKind::Untyped,
        _ => return None,
    };
    if elf.machine == format::EM_ARM && matches!(kind, SymbolKind::Function | SymbolKind::Indirect) {
        // The lowest bit means Thumb, and the code begins at the even address.
        address &= !1;
    }
    Some(Symbol { address, size, name, section: section.index(), number, table, kind, is_local })
}

/// The first bytes of a symbol's name, and of what follows a shorter name.
pub(super) type NameBeginning = [u8; 48];

/// The beginning of a name that cannot be read.
pub(super) const NO_NAME: NameBeginning = [0; 48];

/// Reads the beginning of a symbol's name; zeros past the end.
pub(super) fn beginning_of_name(sources: &Sources, symbol: &Symbol) -> NameBeginning {
    let mut bytes = NO_NAME;
    if let Some((source, table)) = sources.table(symbol.table)
        && u64::from(symbol.name) < table.strings.size
        && let Some(at) = table.strings.offset.checked_add(symbol.name.into())
    {
        // A name that cannot be read remains zero.
        _ = source.file.read_up_to(at, &mut bytes);
    }
    bytes
}

/// Reads the name of a symbol from the file.
pub(super) fn name(sources: &Sources, symbol: &Symbol) -> Option<Vec<u8>> {
    let (source, table) = sources.table(symbol.table)?;
    source.file.string(table.strings, symbol.name)
}

/// Returns whether a name is `$a`, `$d`, `$t` or `$x`, alone or with a dotted tail; RISC-V adds the instruction set
/// (`$xrv64gc`).
fn is_mapping_name(name: &[u8]) -> bool {
    matches!(name, [b'$', b'a' | b'd' | b't'] | [b'$', b'x', ..] | [b'$', b'a' | b'd' | b't', b'.', ..])
}

/// The most bytes of a string table that is read or searched.
const LARGEST: u64 = 256 << 20;

/// The name of the tables in errors.
const WHAT: &str = "symbol names";

/// The place of a name: the number of its table, and the offset there.
#[derive(Clone, Copy)]
pub(super) struct Spot(u32);

/// The number of bits of the offset, which is below [`LARGEST`]; the number of the table is above them.
const OFFSET_BITS: u32 = LARGEST.trailing_zeros();
const OFFSET: u32 = (1 << OFFSET_BITS) - 1;

impl Spot {
    /// Returns the place of a symbol's name.
    pub(super) fn of(symbol: &Symbol) -> Spot {
        let table = u32::from(symbol.table);
        if symbol.name <= OFFSET && table < 1 << (u32::BITS - OFFSET_BITS) {
            Spot(table << OFFSET_BITS | symbol.name)
        } else {
            Spot(u32::MAX)
        }
    }
}

/// The string tables of a module, one for each symbol table.
pub(super) struct StringTables(Vec<Vec<u8>>);

impl StringTables {
    /// Reads all string tables.
    pub(super) fn read(sources: &Sources, budget: &mut Budget) -> Result<StringTables, NoSymbols> {
        StringTables::read_some(sources, &[], budget)
    }

    /// Reads the wanted string tables, by number, and those after them. The others stay empty.
    pub(super) fn read_some(
        sources: &Sources,
        wanted: &[bool],
        budget: &mut Budget,
    ) -> Result<StringTables, NoSymbols> {
        let read = |(number, (source, table)): (u8, (&ElfFile, &SymbolTable))| {
            if wanted.get(usize::from(number)) != Some(&false) {
                strings(&source.file, table.strings, budget)
            } else {
                Ok(Vec::new())
            }
        };
        sources.numbered_tables().map(read).collect::<Result<_, _>>().map(StringTables)
    }

    /// Returns a string table by number.
    pub(super) fn of_table(&self, number: u8) -> &[u8] {
        self.0.get(usize::from(number)).map_or(&[], Vec::as_slice)
    }

    /// Returns the string table from the beginning of a symbol's name on, for a comparison of its first bytes.
    pub(super) fn from(&self, symbol: &Symbol) -> &[u8] {
        self.behind(Spot::of(symbol)).unwrap_or_default()
    }

    fn behind(&self, Spot(spot): Spot) -> Option<&[u8]> {
        let names = self.0.get(usize::try_from(spot >> OFFSET_BITS).ok()?)?;
        names.get(usize::try_from(spot & OFFSET).ok()?..)
    }

    /// Returns the name at this place; `None` if it is too long.
    pub(super) fn at(&self, spot: Spot) -> Option<&[u8]> {
        up_to_end(self.behind(spot)?)
    }

    /// Returns a symbol's name; `None` if it is too long.
    pub(super) fn get(&self, symbol: &Symbol) -> Option<&[u8]> {
        self.at(Spot::of(symbol))
    }
}

/// Returns whether `is_there` finds its text, of at most `length` bytes, in one of the parts of a string table. The
/// table is not kept: allocating memory for a large one lasts longer than searching it.
pub(super) fn has(
    file: &BoundedFile,
    range: FileRange,
    length: usize,
    is_there: &dyn Fn(&[u8]) -> bool,
    budget: &mut Budget,
) -> Result<bool, NoSymbols> {
    check_size(range)?;
    let mut pass = file.pass(range, 1, WHAT);
    // The end of one part and the beginning of the next.
    let mut joint = Vec::new();
    while let Some(part) = pass.next(budget)? {
        joint.extend(part.iter().take(length));
        if is_there(part) || is_there(&joint) {
            return Ok(true);
        }
        joint.clear();
        joint.extend(part.get(part.len().saturating_sub(length)..).unwrap_or(part));
    }
    Ok(false)
}

/// Reads a whole string table.
pub(super) fn strings(file: &BoundedFile, range: FileRange, budget: &mut Budget) -> Result<Vec<u8>, NoSymbols> {
    check_size(range)?;
    file.read(range, WHAT, budget)
}

fn check_size(range: FileRange) -> Result<(), NoSymbols> {
    if range.size > LARGEST { Err(NoSymbols::Damaged("symbol names of implausible size")) } else { Ok(()) }
}

/// Returns the string at the beginning of `rest`; `None` if it is too long.
pub(super) fn up_to_end(rest: &[u8]) -> Option<&[u8]> {
    let within = rest.get(..LONGEST_NAME).unwrap_or(rest);
    let end = memchr::memchr(0, within)?;
    within.get(..end)
}

/// The size and alignment of stubs; those in `.plt.got` have half of it.
const STUB_BYTES: u64 = 16;
/// The most bytes of stubs, in all sections together, that are searched for a name: programs have some thousands of
/// stubs.
const MOST_BYTES: u64 = 16 << 20;

/// A stub or a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PltOrGot {
    Stub,
    Slot,
}

impl PltOrGot {
    fn suffix(self) -> &'static str {
        match self {
            PltOrGot::Stub => PLT,
            PltOrGot::Slot => GOT,
        }
    }

    /// Returns whether a section has stubs or slots, and the size of each. Only the stubs of x86-64 are recognized.
    fn in_section(elf: &Elf, number: u32, section: &Section) -> Option<(PltOrGot, u64)> {
        let has_stubs = elf.machine == format::EM_X86_64 && elf.is_64;
        Some(match elf.section_name(number)? {
            b".got" | b".got.plt" => (PltOrGot::Slot, elf.pointer_bytes()),
            b".plt" | b".plt.sec" | b".plt.bnd" if has_stubs => (PltOrGot::Stub, STUB_BYTES),
            b".plt.got" if has_stubs && section.alignment == STUB_BYTES / 2 => (PltOrGot::Stub, STUB_BYTES / 2),
            b".plt.got" if has_stubs => (PltOrGot::Stub, STUB_BYTES),
            _ => return None,
        })
    }

    /// Makes the symbol and the name of a function's stub or slot.
    fn named_stub(self, source: &ElfFile, place: (u64, u64), function: &Import) -> (Symbol, Name) {
        let kind = match self {
            PltOrGot::Stub => SymbolKind::Function,
            PltOrGot::Slot => SymbolKind::Object,
        };
        function.plt_or_got(source, place, kind, self.suffix())
    }
}

/// Returns the stub or slot that contains a file address, and its name.
pub(super) fn import_at(
    source: &ElfFile,
    relocations: &Relocations,
    address: u64,
    budget: &mut Budget,
) -> Option<(Symbol, Name)> {
    let ElfFile { file, elf } = source;
    let number = elf.section_at(address)?;
    let section = elf.sections.get(usize::try_from(number).ok()?)?;
    let (part, size) = PltOrGot::in_section(elf, number, section)?;
    let into = address.checked_sub(section.address)? / size * size;
    let start = section.address.checked_add(into)?;
    let place = match part {
        PltOrGot::Stub => {
            let stub = file.read(section.in_file().part(into, size)?, "stub", budget);
            slot(&stub.ok()?, start)?
        }
        PltOrGot::Slot => start,
    };
    let targets = relocations.of(source, budget).ok()?;
    let slot = targets.slots.get(&place)?;
    if part == PltOrGot::Slot && !slot.is_jump {
        return None;
    }
    let function = Import::of(source, slot.function, budget)?;
    Some(part.named_stub(source, (start, size), &function))
}

/// Returns the stubs or slots that `name` selects.
pub(super) fn imports_called(
    source: &ElfFile,
    relocations: &Relocations,
    name: &str,
    budget: &mut Budget,
) -> Result<NamedSymbols, NoSymbols> {
    let stripped = |part: PltOrGot| Some((part, name.strip_suffix(part.suffix())?));
    let Some((part, function)) = [PltOrGot::Stub, PltOrGot::Slot].into_iter().find_map(stripped) else {
        return Ok(Vec::new());
    };
    let functions = Import::imports_by_slot(source, function, budget)?;
    if functions.is_empty() {
        return Ok(Vec::new());
    }
    let ElfFile { file, elf } = source;
    let slots = &relocations.of(source, budget)?.slots;
    if part == PltOrGot::Slot {
        let size = elf.pointer_bytes();
        let jumps = slots.iter().filter(|(_, slot)| slot.is_jump);
        let found = jumps.filter_map(|(&start, slot)| {
            let function = functions.get(&slot.function)?;
            Some(part.named_stub(source, (start, size), function))
        });
        return Ok(found.collect());
    }
    let mut imports = Vec::new();
    let mut room = MOST_BYTES;
    for (number, section) in (0..).zip(&elf.sections) {
        let Some((PltOrGot::Stub, size)) = PltOrGot::in_section(elf, number, section) else {
            continue;
        };
        room = match room.checked_sub(section.size) {
            Some(rest) => rest,
            None => break,
        };
        let stubs = file.read(section.in_file(), "stubs", budget)?;
        let mut start = section.address;
        for stub in stubs.chunks_exact(usize::try_from(size).unwrap_or(usize::MAX)) {
            budget.go_on()?;
            let function = slot(stub, start).and_then(|place| functions.get(&slots.get(&place)?.function));
            imports.extend(function.map(|one| part.named_stub(source, (start, size), one)));
            start = start.saturating_add(size);
        }
    }
    Ok(imports)
}

/// Returns the slot of the stub at `start`: `jmp *DISTANCE(%rip)` is `ff 25` and the distance from the next
/// instruction.
fn slot(stub: &[u8], start: u64) -> Option<u64> {
    let at = memchr::memmem::find(stub, &[0xff, 0x25])?;
    let distance = stub.get(at + 2..)?.first_chunk::<4>()?;
    let next = start.checked_add(at as u64 + 6)?;
    Some(next.wrapping_add_signed(i32::from_le_bytes(*distance).into()))
}

/// A function of the dynamic table.
#[derive(Clone)]
pub(super) struct Import {
    number: u32,
    /// The offset of the name in the string table.
    offset: u32,
    name: Vec<u8>,
}

impl Import {
    /// Returns the function with this number.
    pub(super) fn of(source: &ElfFile, number: u32, budget: &mut Budget) -> Option<Import> {
        let table = dynamic(source)?;
        let size = source.elf.symbol_bytes();
        let entry = table.symbols.part(u64::from(number) * size, size)?;
        let (_, entry) = EntryPass::new(source, entry).next(budget).ok()??;
        let offset = entry.name;
        Some(Import { number, offset, name: source.file.string(table.strings, offset)? })
    }

    /// Returns all functions that `name` selects, by number.
    pub(super) fn imports_by_slot(
        source: &ElfFile,
        name: &str,
        budget: &mut Budget,
    ) -> Result<HashMap<u32, Import>, NoSymbols> {
        let mut by_slot = HashMap::new();
        let Some(table) = dynamic(source) else {
            return Ok(by_slot);
        };
        let query = NameQuery::whole(name);
        let strings = strings(&source.file, table.strings, budget)?;
        let mut entries = EntryPass::new(source, table.symbols);
        while let Some((number, entry)) = entries.next(budget)? {
            let offset = entry.name;
            let rest = usize::try_from(offset).ok().and_then(|at| strings.get(at..));
            let name = rest.and_then(up_to_end);
            if let Some(called) = name.filter(|called| query.is(called)) {
                by_slot.insert(number, Import { number, offset, name: called.to_vec() });
            }
        }
        Ok(by_slot)
    }

    /// Makes the symbol of its stub or slot at a file address, with the name.
    fn plt_or_got(
        &self,
        source: &ElfFile,
        (address, size): (u64, u64),
        kind: SymbolKind,
        suffix: &str,
    ) -> (Symbol, Name) {
        let section = source.elf.section_at(address);
        let symbol = Symbol {
            address,
            size,
            name: self.offset,
            section: section.and_then(|number| u16::try_from(number).ok()),
            number: self.number,
            table: 0,
            kind,
            is_local: true,
        };
        let name = [&self.name, suffix.as_bytes()].concat();
        (symbol, Name::new(name))
    }
}

/// Returns the table that the dynamic linker uses.
fn dynamic(source: &ElfFile) -> Option<&SymbolTable> {
    source.elf.tables.iter().find(|table| !table.is_full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jump_gives_the_slot() {
        // With lazy binding, and behind `endbr64` and `bnd`.
        let lazy = [0xff, 0x25, 0xe2, 0x2f, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0xe0, 0xff, 0xff, 0xff];
        assert_eq!(slot(&lazy, 0x1030), Some(0x4018));
        let marked = [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x75, 0x2f, 0, 0, 0x0f, 0x1f, 0x44, 0, 0];
        assert_eq!(slot(&marked, 0x1050), Some(0x3fd0));
        assert_eq!(slot(&[0x90; 16], 0x1000), None);
        assert_eq!(slot(&[0xff, 0x25, 1], 0x1000), None);
        let back = [0xff, 0x25, 0xfa, 0xff, 0xff, 0xff];
        assert_eq!(slot(&back, 0x1000), Some(0x1000));
    }
}
