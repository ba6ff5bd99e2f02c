//! The entries of a symbol table, in one streaming pass; and their names in memory, while many of them are needed.

use super::NoSymbols;
use super::elf::{BoundedFile, Elf, ElfFile, FileRange, LONGEST_NAME, SymbolTable};
use super::files::Sources;
use crate::budget::Budget;
use crate::kernel::Name;
use object::pod::Pod;
use object::read::elf::Sym;
use object::{Endianness, elf};
use std::ops::ControlFlow;

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

/// Visits the symbols of every table of a module, `.symtab` first, until `visit` breaks. Undefined, absolute, section
/// and file symbols are left out.
pub(super) fn visit(
    sources: &Sources,
    budget: &mut Budget,
    visit: &mut dyn FnMut(Symbol) -> ControlFlow<()>,
) -> Result<(), NoSymbols> {
    visit_some(sources, &|_| true, budget, visit)
}

/// The same for the tables that are wanted, by number.
pub(super) fn visit_some(
    sources: &Sources,
    is_wanted: &dyn Fn(u8) -> bool,
    budget: &mut Budget,
    visit: &mut dyn FnMut(Symbol) -> ControlFlow<()>,
) -> Result<(), NoSymbols> {
    let mut is_stripped = true;
    for (number, (source, table)) in sources.numbered() {
        is_stripped = false;
        // That a table is not all in the file is an error in any case.
        if source.file.holds(table.symbols) && !is_wanted(number) {
            continue;
        }
        let flow = if source.elf.is_64 {
            visit_table::<elf::Sym64<Endianness>>(sources, source, table, number, budget, visit)?
        } else {
            visit_table::<elf::Sym32<Endianness>>(sources, source, table, number, budget, visit)?
        };
        if flow.is_break() {
            break;
        }
    }
    if is_stripped { Err(NoSymbols::Stripped) } else { Ok(()) }
}

fn visit_table<S: Sym<Endian = Endianness> + Pod>(
    sources: &Sources,
    source: &ElfFile,
    table: &SymbolTable,
    number: u8,
    budget: &mut Budget,
    visit: &mut dyn FnMut(Symbol) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, NoSymbols> {
    let ElfFile { file, elf } = source;
    let mut positions = 0..;
    // Thousands of symbols share the one string `$x`: the last answer is cached.
    let mut mapping = (u32::MAX, false);
    let mut one = |entry: &S, position: u32| {
        let Some(mut symbol) = defined(entry, elf, number, position) else {
            return ControlFlow::Continue(());
        };
        symbol.section = symbol.section.and_then(|section| sources.section_in_image(number, section, symbol.address));
        if elf.has_mapping_symbols() && symbol.may_be_mapping_symbol() {
            if mapping.0 != symbol.name {
                let name = file.string(table.strings, symbol.name);
                mapping = (symbol.name, name.as_deref().is_some_and(is_mapping_name));
            }
            if mapping.1 {
                return ControlFlow::Continue(());
            }
        }
        visit(symbol)
    };
    file.pass::<S>(table.symbols, "symbol table", budget, &mut |entries, budget| {
        for (entry, position) in entries.iter().zip(&mut positions) {
            budget.go_on()?;
            if one(entry, position).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// Visits the name offset of each symbol in `range` of a table, defined or not, in order.
pub(super) fn visit_names(
    source: &ElfFile,
    range: FileRange,
    budget: &mut Budget,
    visit: &mut dyn FnMut(u32) -> ControlFlow<()>,
) -> Result<(), NoSymbols> {
    fn each<S: Sym<Endian = Endianness> + Pod>(
        ElfFile { file, elf }: &ElfFile,
        range: FileRange,
        budget: &mut Budget,
        visit: &mut dyn FnMut(u32) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, NoSymbols> {
        file.pass::<S>(range, "symbol table", budget, &mut |entries, budget| {
            budget.spend(entries.len() as u64)?;
            let mut names = entries.iter().map(|one| one.st_name(elf.endian));
            Ok(names.try_for_each(&mut *visit))
        })
    }
    let passed = if source.elf.is_64 {
        each::<elf::Sym64<Endianness>>(source, range, budget, visit)
    } else {
        each::<elf::Sym32<Endianness>>(source, range, budget, visit)
    };
    passed.map(|_| ())
}

/// The symbol, if it names something that this file defines.
fn defined<S: Sym<Endian = Endianness>>(entry: &S, elf: &Elf, table: u8, number: u32) -> Option<Symbol> {
    let endian = elf.endian;
    let name = entry.st_name(endian);
    let section = entry.st_shndx(endian);
    if name == 0 || (section.is_special() && section != elf::SHN_XINDEX) {
        return None;
    }
    // Debug files of libraries name the linker's warnings (`.gnu.warning.*`), which no process has in memory.
    let stands_in = section.index().and_then(|number| elf.sections.get(usize::from(number)));
    if stands_in.is_some_and(|section| !section.is_loaded()) {
        return None;
    }
    let kind = match entry.st_type() {
        elf::STT_FUNC | elf::STT_GNU_IFUNC => Kind::Function,
        elf::STT_OBJECT => Kind::Object,
        elf::STT_TLS => Kind::Tls,
        elf::STT_NOTYPE => Kind::Untyped,
        _ => return None,
    };
    let mut address: u64 = entry.st_value(endian).into();
    if elf.machine == elf::EM_ARM && kind == Kind::Function {
        // The lowest bit means Thumb; the code begins at the even address.
        address &= !1;
    }
    Some(Symbol {
        address,
        size: entry.st_size(endian).into(),
        name,
        section: section.index(),
        number,
        table,
        kind,
        local: entry.st_bind() == elf::STB_LOCAL,
    })
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
        Names::read_some(sources, &|_| true, budget)
    }

    /// Reads those that are wanted, by the number of their table. The others stay empty.
    pub(super) fn read_some(
        sources: &Sources,
        is_wanted: &dyn Fn(u8) -> bool,
        budget: &mut Budget,
    ) -> Result<Names, NoSymbols> {
        let read = |(number, (source, table)): (u8, (&ElfFile, &SymbolTable))| {
            if is_wanted(number) { strings(&source.file, table.strings, budget) } else { Ok(Vec::new()) }
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
    // The end of one part and the beginning of the next.
    let mut joint = Vec::new();
    let flow = file.pass::<u8>(range, WHAT, budget, &mut |part, _| {
        joint.extend(part.iter().take(length));
        let found = is_there(part) || is_there(&joint);
        joint.clear();
        joint.extend(part.get(part.len().saturating_sub(length)..).unwrap_or(part));
        Ok(if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(flow.is_break())
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
