//! The entries of a symbol table, in one streaming pass; and their names in memory, while many of them are needed.

use super::NoSymbols;
use super::elf::{BoundedFile, Elf, ElfFile, FileRange, LONGEST_NAME, SymbolTable, TablePass};
use super::files::Sources;
use crate::budget::Budget;
use crate::kernel::Name;
use object::pod::{self, Pod};
use object::read::elf::Sym;
use object::{Endianness, elf};

/// What a symbol names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Code; also functions that choose their implementation when they are first called (IFUNC).
    Function,
    /// Data.
    Object,
    /// A variable of which each thread has its own copy.
    Tls,
    /// The file does not say: labels of assembler and linker.
    Untyped,
}

impl Kind {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Function => "function",
            Kind::Object => "object",
            Kind::Tls => "tls",
            Kind::Untyped => "untyped",
        }
    }
}

/// Decides between symbols with the same start; greater is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Rank {
    shared: bool,
    typed: bool,
    full_table: bool,
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
    pub(super) kind: Kind,
    pub(super) local: bool,
}

impl Symbol {
    /// Whether it has a size and `address` lies in it.
    pub(super) fn covers(&self, address: u64) -> bool {
        address.checked_sub(self.address).is_some_and(|into| into < self.size)
    }

    /// Its rank among symbols with the same start.
    pub(super) fn rank(&self) -> Rank {
        Rank { shared: !self.local, typed: self.kind != Kind::Untyped, full_table: self.table == 0 }
    }

    /// Whether it might be `$x` or `$d`: only its name tells.
    fn may_be_mapping_symbol(&self) -> bool {
        self.local && self.size == 0 && self.kind == Kind::Untyped
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
    /// Those of all tables.
    pub(super) fn new(sources: &'a Sources) -> Self {
        SymbolPass::of_tables(sources, Vec::new())
    }

    /// Those of the `wanted` tables, by number.
    pub(super) fn of_tables(sources: &'a Sources, wanted: Vec<bool>) -> Self {
        SymbolPass { sources, wanted, number: 0, entries: None, mapping: (u32::MAX, false) }
    }

    /// The next symbol.
    pub(super) fn next(&mut self, budget: &mut Budget) -> Result<Option<Symbol>, NoSymbols> {
        loop {
            let number = u8::try_from(self.number).ok();
            let table = number.and_then(|number| Some((number, self.sources.table(number)?)));
            let Some((number, (source, table))) = table else {
                return if self.number == 0 { Err(NoSymbols::Stripped) } else { Ok(None) };
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
pub(super) struct Entry {
    /// The offset of its name.
    pub(super) name: u32,
    section: elf::SymbolSection,
    kind: elf::SymbolType,
    is_local: bool,
    address: u64,
    size: u64,
}

/// The entries of a symbol table, defined or not.
pub(super) struct EntryPass<'a> {
    elf: &'a Elf,
    pass: TablePass<'a>,
    /// Those of one part, and the number of the next among all.
    part: std::vec::IntoIter<Entry>,
    next: u32,
}

impl<'a> EntryPass<'a> {
    /// Those in a range of a file.
    pub(super) fn new(ElfFile { file, elf }: &'a ElfFile, range: FileRange) -> Self {
        let bytes = usize::try_from(elf.symbol_bytes()).unwrap_or(usize::MAX);
        let pass = file.pass(range, bytes, "symbol table");
        EntryPass { elf, pass, part: Vec::new().into_iter(), next: 0 }
    }

    /// The next entry, with its number in the range.
    pub(super) fn next(&mut self, budget: &mut Budget) -> Result<Option<(u32, Entry)>, NoSymbols> {
        while self.part.len() == 0 {
            let Some(bytes) = self.pass.next(budget)? else {
                return Ok(None);
            };
            let Elf { endian, is_64, .. } = *self.elf;
            let part =
                if is_64 { entries::<elf::Sym64<_>>(bytes, endian) } else { entries::<elf::Sym32<_>>(bytes, endian) };
            budget.spend(part.len() as u64)?;
            self.part = part.into_iter();
        }
        let number = self.next;
        self.next = number.wrapping_add(1);
        Ok(self.part.next().map(|entry| (number, entry)))
    }
}

fn entries<S: Sym<Endian = Endianness> + Pod>(bytes: &[u8], endian: Endianness) -> Vec<Entry> {
    let entries = pod::slice_from_all_bytes::<S>(bytes).unwrap_or_default();
    let one = |entry: &S| Entry {
        name: entry.st_name(endian),
        section: entry.st_shndx(endian),
        kind: entry.st_type(),
        is_local: entry.st_bind() == elf::STB_LOCAL,
        address: entry.st_value(endian).into(),
        size: entry.st_size(endian).into(),
    };
    entries.iter().map(one).collect()
}

/// The symbol, if it names something that this file defines.
fn defined(entry: Entry, elf: &Elf, table: u8, number: u32) -> Option<Symbol> {
    let Entry { name, section, kind, is_local, mut address, size } = entry;
    if name == 0 || (section.is_special() && section != elf::SHN_XINDEX) {
        return None;
    }
    // Debug files of libraries name the linker's warnings (`.gnu.warning.*`), which no process has in memory.
    let stands_in = section.index().and_then(|number| elf.sections.get(usize::from(number)));
    if stands_in.is_some_and(|section| !section.is_loaded()) {
        return None;
    }
    let kind = match kind {
        elf::STT_FUNC | elf::STT_GNU_IFUNC => Kind::Function,
        elf::STT_OBJECT => Kind::Object,
        elf::STT_TLS => Kind::Tls,
        elf::STT_NOTYPE => Kind::Untyped,
        _ => return None,
    };
    if elf.machine == elf::EM_ARM && kind == Kind::Function {
        // The lowest bit means Thumb; the code begins at the even address.
        address &= !1;
    }
    Some(Symbol { address, size, name, section: section.index(), number, table, kind, local: is_local })
}

/// The first bytes of a symbol's name and, if that is shorter, what follows it.
pub(super) type Beginning = [u8; 48];

/// The beginning of a name that cannot be read.
pub(super) const NO_NAME: Beginning = [0; 48];

/// Reads the beginning of a symbol's name; zeros where there is nothing.
pub(super) fn beginning_of_name(sources: &Sources, symbol: &Symbol) -> Beginning {
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
pub(super) struct Names(Vec<Vec<u8>>);

impl Names {
    /// Reads them whole.
    pub(super) fn read(sources: &Sources, budget: &mut Budget) -> Result<Names, NoSymbols> {
        Names::read_some(sources, &[], budget)
    }

    /// Reads those that are wanted, by the number of their table, and those after them. The others stay empty.
    pub(super) fn read_some(sources: &Sources, wanted: &[bool], budget: &mut Budget) -> Result<Names, NoSymbols> {
        let read = |(number, (source, table)): (u8, (&ElfFile, &SymbolTable))| {
            if wanted.get(usize::from(number)) != Some(&false) {
                strings(&source.file, table.strings, budget)
            } else {
                Ok(Vec::new())
            }
        };
        sources.numbered().map(read).collect::<Result<_, _>>().map(Names)
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
