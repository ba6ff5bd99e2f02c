//! The entries of a symbol table, in one streaming pass; and their names in memory, while many of them are needed.
//!
//! Stubs and slots for calls of imported functions have gdb's names here, since no table has any: the stub `malloc@plt`,
//! the slot `malloc@got.plt`. A stub of the procedure linkage table jumps through a slot of the global offset table, and
//! the relocation that fills the slot gives the number of the function in the dynamic table. The jump gives the slot,
//! so stubs of every layout are decoded in one way.

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
    /// What a symbol names.
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

/// Decides between symbols with the same start; greater is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Rank {
    is_shared: bool,
    has_type: bool,
    has_full_table: bool,
}

/// A defined, named symbol of a table. Its name stays in the file.
// None lies across two cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Symbol {
    /// File address of its first byte.
    pub(super) address: u64,
    /// Bytes, or 0.
    pub(super) size: u64,
    /// Offset in the string table.
    pub(super) name: u32,
    /// Number of its section in the file that is mapped; `None` if the file has too many sections for the entry to hold
    /// it.
    pub(super) section: Option<u16>,
    /// Number in its table.
    pub(super) number: u32,
    /// Which of the module's tables.
    pub(super) table: u8,
    pub(super) kind: SymbolKind,
    pub(super) is_local: bool,
}

impl Symbol {
    /// Whether it has a size and `address` lies in it.
    pub(super) fn covers(&self, address: u64) -> bool {
        address.checked_sub(self.address).is_some_and(|into| into < self.size)
    }

    /// Its rank among symbols with the same start.
    pub(super) fn rank(&self) -> Rank {
        Rank { is_shared: !self.is_local, has_type: self.kind != SymbolKind::Untyped, has_full_table: self.table == 0 }
    }

    /// Whether it might be `$x` or `$d`: only its name tells.
    fn may_be_mapping_symbol(&self) -> bool {
        self.is_local && self.size == 0 && self.kind == SymbolKind::Untyped
    }
}

/// Symbols, each with its name as the file spells it.
pub(super) type NamedSymbols = Vec<(Symbol, Name)>;

/// The symbols of the tables of a module, `.symtab` first. Undefined, absolute, section and file symbols are left out.
pub(super) struct SymbolPass<'a> {
    sources: &'a Sources,
    /// Which tables are read, by number; those after them all are.
    wanted: Vec<bool>,
    /// The number of the table that is read, or will be.
    number: usize,
    entries: Option<EntryPass<'a>>,
    /// Thousands of symbols share the one string `$x`: the last answer is cached.
    mapping: (u32, bool),
}

impl<'a> SymbolPass<'a> {
    /// The symbols of all tables.
    pub(super) fn new(sources: &'a Sources) -> Self {
        SymbolPass::of_tables(sources, Vec::new())
    }

    /// The symbols of the `wanted` tables, by number.
    pub(super) fn of_tables(sources: &'a Sources, wanted: Vec<bool>) -> Self {
        SymbolPass { sources, wanted, number: 0, entries: None, mapping: (u32::MAX, false) }
    }

    /// The next symbol.
    pub(super) fn next(&mut self, budget: &mut Budget) -> Result<Option<Symbol>, NoSymbols> {
        loop {
            let number = u8::try_from(self.number).ok();
            let table = number.and_then(|number| Some((number, self.sources.table(number)?)));
            let Some((number, (source, table))) = table else {
                return if self.number == 0 { Err(self.sources.no_table()) } else { Ok(None) };
            };
            // That a table is not all in the file is an error in any case.
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
    /// The offset of its name.
    pub(super) name: u32,
    section: format::SymbolSection,
    kind: format::SymbolType,
    is_local: bool,
    address: u64,
    size: u64,
}

/// The entries of a symbol table, defined or not.
pub(super) struct EntryPass<'a> {
    elf: &'a Elf,
    pass: TablePass<'a>,
    /// The entries of one part, and the number of the next among all.
    part: std::vec::IntoIter<SymbolEntry>,
    next: u32,
}

impl<'a> EntryPass<'a> {
    /// The symbols in a range of a file.
    pub(super) fn new(ElfFile { file, elf }: &'a ElfFile, range: FileRange) -> Self {
        let bytes = usize::try_from(elf.symbol_bytes()).unwrap_or(usize::MAX);
        let pass = file.pass(range, bytes, "symbol table");
        EntryPass { elf, pass, part: Vec::new().into_iter(), next: 0 }
    }

    /// The next entry, with its number in the range.
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

/// The symbol, if it names something that this file defines.
fn defined(entry: SymbolEntry, elf: &Elf, table: u8, number: u32) -> Option<Symbol> {
    let SymbolEntry { name, section, kind, is_local, mut address, size } = entry;
    if name == 0 || (section.is_special() && section != format::SHN_XINDEX) {
        return None;
    }
    // Debug files of libraries name the linker's warnings (`.gnu.warning.*`), which no process has in memory.
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
        // The lowest bit means Thumb; the code begins at the even address.
        address &= !1;
    }
    Some(Symbol { address, size, name, section: section.index(), number, table, kind, is_local })
}

/// The first bytes of a symbol's name and, if that is shorter, what follows it.
pub(super) type NameBeginning = [u8; 48];

/// The beginning of a name that cannot be read.
pub(super) const NO_NAME: NameBeginning = [0; 48];

/// Reads the beginning of a symbol's name; zeros where there is nothing.
pub(super) fn beginning_of_name(sources: &Sources, symbol: &Symbol) -> NameBeginning {
    let mut bytes = NO_NAME;
    if let Some((source, table)) = sources.table(symbol.table)
        && u64::from(symbol.name) < table.strings.size
        && let Some(at) = table.strings.offset.checked_add(symbol.name.into())
    {
        // A name that cannot be read stays zero.
        _ = source.file.read_up_to(at, &mut bytes);
    }
    bytes
}

/// The name of a symbol, read from the file.
pub(super) fn name(sources: &Sources, symbol: &Symbol) -> Option<Vec<u8>> {
    let (source, table) = sources.table(symbol.table)?;
    source.file.string(table.strings, symbol.name)
}

/// `$a`, `$d`, `$t`, `$x`, alone or with a dotted tail; RISC-V adds the instruction set (`$xrv64gc`).
fn is_mapping_name(name: &[u8]) -> bool {
    matches!(name, [b'$', b'a' | b'd' | b't'] | [b'$', b'x', ..] | [b'$', b'a' | b'd' | b't', b'.', ..])
}

/// String tables larger than this are never held in memory, and never searched.
const LARGEST: u64 = 256 << 20;

/// What is read, for errors.
const WHAT: &str = "symbol names";

/// Where a name begins: the number of its table, and the offset there.
#[derive(Clone, Copy)]
pub(super) struct Spot(u32);

/// The bits of the offset, below [`LARGEST`]; the number of the table is above them.
const OFFSET_BITS: u32 = LARGEST.trailing_zeros();
const OFFSET: u32 = (1 << OFFSET_BITS) - 1;

impl Spot {
    /// Where the name of a symbol begins.
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
    /// Reads them whole.
    pub(super) fn read(sources: &Sources, budget: &mut Budget) -> Result<StringTables, NoSymbols> {
        StringTables::read_some(sources, &[], budget)
    }

    /// Reads those that are wanted, by the number of their table, and those after them. The others stay empty.
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

    /// A string table.
    pub(super) fn of_table(&self, number: u8) -> &[u8] {
        self.0.get(usize::from(number)).map_or(&[], Vec::as_slice)
    }

    /// The string table from the beginning of a symbol's name on, for comparing only its first bytes.
    pub(super) fn from(&self, symbol: &Symbol) -> &[u8] {
        self.behind(Spot::of(symbol)).unwrap_or_default()
    }

    fn behind(&self, Spot(spot): Spot) -> Option<&[u8]> {
        let names = self.0.get(usize::try_from(spot >> OFFSET_BITS).ok()?)?;
        names.get(usize::try_from(spot & OFFSET).ok()?..)
    }

    /// The name there; `None` if it is too long.
    pub(super) fn at(&self, spot: Spot) -> Option<&[u8]> {
        up_to_end(self.behind(spot)?)
    }

    /// A symbol's name; `None` if it is too long.
    pub(super) fn get(&self, symbol: &Symbol) -> Option<&[u8]> {
        self.at(Spot::of(symbol))
    }
}

/// Whether `is_there` finds what it looks for, which has `length` bytes at most, in one of the parts of a string table.
/// The table is not kept: to make room for a large one takes longer than to search it.
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

/// A string table, read whole.
pub(super) fn strings(file: &BoundedFile, range: FileRange, budget: &mut Budget) -> Result<Vec<u8>, NoSymbols> {
    check_size(range)?;
    file.read(range, WHAT, budget)
}

fn check_size(range: FileRange) -> Result<(), NoSymbols> {
    if range.size > LARGEST { Err(NoSymbols::Damaged("symbol names of implausible size")) } else { Ok(()) }
}

/// The string at the beginning of `rest`; `None` if it is too long.
pub(super) fn up_to_end(rest: &[u8]) -> Option<&[u8]> {
    let within = rest.get(..LONGEST_NAME).unwrap_or(rest);
    let end = memchr::memchr(0, within)?;
    within.get(..end)
}

/// The size and alignment of stubs; those in `.plt.got` have half of it.
const STUB_BYTES: u64 = 16;
/// Bytes of stubs, in all sections together, that are searched for a name: programs have some thousands of stubs.
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

    /// Whether a section has stubs or slots, and the size of each. Only the stubs of x86-64 are known.
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

    /// The symbol and name of a function's stub or slot.
    fn named_stub(self, source: &ElfFile, place: (u64, u64), function: &Import) -> (Symbol, Name) {
        let kind = match self {
            PltOrGot::Stub => SymbolKind::Function,
            PltOrGot::Slot => SymbolKind::Object,
        };
        function.plt_or_got(source, place, kind, self.suffix())
    }
}

/// The stub or slot that holds a file address, and its name.
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

/// The stubs or slots that `name` means.
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

/// The slot that the stub at `start` jumps through: `jmp *DISTANCE(%rip)` is `ff 25` and the distance from the next
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
    /// The offset of its name in the string table.
    offset: u32,
    name: Vec<u8>,
}

impl Import {
    /// The function with a number.
    pub(super) fn of(source: &ElfFile, number: u32, budget: &mut Budget) -> Option<Import> {
        let table = dynamic(source)?;
        let size = source.elf.symbol_bytes();
        let entry = table.symbols.part(u64::from(number) * size, size)?;
        let (_, entry) = EntryPass::new(source, entry).next(budget).ok()??;
        let offset = entry.name;
        Some(Import { number, offset, name: source.file.string(table.strings, offset)? })
    }

    /// All functions that `name` means, by number.
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

    /// Its stub or slot at an address in the file, with the name of that.
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

/// The table that the dynamic linker uses.
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
