//! `info symbol ADDRESS`, `info address SYMBOL`.

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use crate::eval;
use crate::inspect::{self, AddressName, AddressNames};
use crate::kernel::{Name as TargetName, VirtualAddress};
use crate::lang::parser::{Parsed, Tokens, address, symbol};
use crate::lang::{Expression, Spanned, SymbolName, WrittenName};
use crate::process::Target;
use crate::render::Record;
use crate::render::text::Text;
use crate::render::text::lines::{Line, Lines};
use crate::render::theme::Role;
use crate::render::units::{counted, size};
use crate::report::json::words;
use crate::report::record::record;
use crate::report::{Declared, Shape};
use crate::symbol::{SymbolAt, SymbolKind, Symbols, TargetSymbols};
use nom::Parser;
use nom::combinator::map;
use std::fmt::{self, Formatter};

/// `info symbol ADDRESS`: which symbol covers the address.
#[derive(Debug)]
pub struct InfoSymbol(Spanned<Expression>);

impl Command for InfoSymbol {
    const RECORDS: &'static [Shape] = &[SymbolReport::SHAPE, PointedReport::SHAPE];
    const ABOUT: About = About {
        name: CommandName::new("info symbol").displayed(),
        group: Group::Memory,
        summary: "find the symbol at an address",
        text: "\
Shows the symbol that covers the address, the offset in it, its section and its module. Also shows its address in \
the file, as objdump prints it. In anonymous memory without a name it shows the variable that points there.",
        examples: &[example("info symbol demo_buffer + 16", "find the symbol at this address")],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        map(address, InfoSymbol).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.0.node)
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let InfoSymbol(expression) = self;
        let target = context.target()?;
        let address = eval::address(expression, context.state)?;
        let regions = context.state.symbols.regions_at(&target, address)?;
        let symbols = context.state.symbols.over(&target, &*regions);
        let Some(symbol) = symbols.at(address) else {
            if let Some(report) = pointed(&context.state.symbols, &target, address)? {
                context.state.last_address = Some(address);
                context.sink.emit(&report)?;
                return Ok(Flow::Done);
            }
            let why = match symbols.module_at(address) {
                None => "it is not in a module".to_owned(),
                Some(module) => match symbols.reason(module) {
                    Some(reason) => format!("{}: {reason}", module.file_name()),
                    None if symbols.is_stripped(module) => {
                        let file = module.file_name();
                        format!("{file} has no symbol table (stripped), and none of its exported symbols covers it")
                    }
                    None => format!("no symbol of {} covers it", module.file_name()),
                },
            };
            let message = format!("no symbol at {address}: {why}");
            let error = eval::Error::new(expression.at, message);
            return Err(match symbols.file_address(address) {
                Some((module, in_file)) => {
                    let module = WrittenName(module.file_name().to_string());
                    error.hint(format!("in its file it is {module}!{in_file}"))
                }
                None => error,
            }
            .into());
        };
        let report = SymbolReport { implementation: implementation(&target, &symbols, &symbol)?, ..report(&symbol) };
        context.state.last_address = Some(address);
        context.sink.emit(&report)?;
        Ok(Flow::Done)
    }
}

/// `info address SYMBOL`: where a symbol lies.
#[derive(Debug)]
pub struct InfoAddress(Spanned<SymbolName>);

impl Command for InfoAddress {
    const ABOUT: About = About {
        name: CommandName::new("info address").displayed(),
        group: Group::Memory,
        summary: "find the address of a symbol",
        text: "\
Lists every place of a symbol with that name, with size, section and module. A module before the name limits the \
search to it, as in `info address libc.so.6!malloc`.",
        examples: &[example("info address demo_buffer", "find the address of a symbol")],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        map(symbol, InfoAddress).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.0.node)
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let symbols = eval::symbols(&self.0.node, context.state)?;
        let mut reports: Vec<SymbolReport> = symbols.iter().map(report).collect();
        if symbols.iter().any(|symbol| symbol.kind == SymbolKind::Indirect) {
            let target = context.target()?;
            for (report, symbol) in reports.iter_mut().zip(&symbols) {
                let regions = context.state.symbols.regions_at(&target, symbol.start)?;
                let symbols = context.state.symbols.over(&target, &*regions);
                report.implementation = implementation(&target, &symbols, symbol)?;
            }
        }
        if let [only] = &symbols[..] {
            context.state.last_address = Some(only.start);
        }
        for report in &reports {
            context.sink.emit(report)?;
        }
        Ok(Flow::Done)
    }
}

/// The function that runs when an indirect one is called, if a slot of it in resident memory has its address.
fn implementation(
    target: &Target,
    symbols: &TargetSymbols<'_>,
    symbol: &SymbolAt,
) -> Result<Option<Implementation>, Error> {
    let layout = target.process.layout();
    for slot in symbols.slots_of(symbol)? {
        let mut bytes = vec![0; layout.pointer_bytes.into()];
        if inspect::read_resident(target, slot, &mut bytes)?.bytes < bytes.len() {
            continue;
        }
        // A slot that was not filled yet has the address of a stub, or one in the file.
        let address = VirtualAddress::new(layout.number(&bytes));
        let is_stub = || symbols.section_at(address).is_none_or(|section| section.as_bytes().starts_with(b".plt"));
        if address == symbol.start || !symbols.is_code(address) || is_stub() {
            continue;
        }
        let name = symbols.at(address).filter(|one| one.offset == 0).map(|one| one.name());
        return Ok(Some(Implementation { address, name }));
    }
    Ok(None)
}

/// The anonymous memory at an address, if a variable points to it.
fn pointed(symbols: &Symbols, target: &Target, address: VirtualAddress) -> Result<Option<PointedReport>, Error> {
    let regions = symbols.regions(target)?;
    let names = AddressNames::new(symbols.over(target, &*regions));
    let report = |AddressName { name, module, start, offset, left, .. }| {
        let end = VirtualAddress::new(address.get().saturating_add(left));
        PointedReport { name, offset, module, start, end }
    };
    Ok(names.at(address).map(report))
}

pub(super) fn report(symbol: &SymbolAt) -> SymbolReport {
    let name = symbol.name();
    SymbolReport {
        mangled: (name != symbol.mangled).then(|| symbol.mangled.clone()),
        name,
        address: symbol.start,
        size: symbol.size,
        offset: symbol.offset,
        kind: symbol.kind,
        section: symbol.section.clone(),
        module: symbol.module.file_name(),
        file_address: symbol.file_address,
        implementation: None,
    }
}

record! {
    /// `info symbol`, `info address`
    pub struct SymbolReport as "symbol" {
        /// Demangled name.
        name: TargetName,
        /// The name as the file has it, if that differs.
        mangled: Option<TargetName>,
        /// Its first address in the process.
        address: VirtualAddress,
        /// Bytes, 0 when the file gives none.
        size: u64,
        /// Bytes from the start of the symbol to the requested address.
        offset: u64,
        /// The kind of symbol: `function`, `object`, `tls`, `untyped`, or `ifunc` for the resolver of an indirect
        /// function, which only chooses its implementation.
        kind: SymbolKind,
        /// ELF section.
        section: Option<TargetName>,
        /// The module that defines it.
        module: TargetName,
        /// The address that it is linked at, as objdump shows it.
        file_address: VirtualAddress,
        /// The implementation of an indirect function, if a slot of its module has its address.
        [optional] implementation: Option<Implementation>,
    }

    /// `info symbol` of anonymous memory that a variable points to.
    pub struct PointedReport as "pointed" {
        /// `*name` is the memory whose start the variable `name` holds.
        name: TargetName,
        /// Bytes from the address that the variable holds to the requested one.
        offset: u64,
        /// The module that defines the variable.
        module: TargetName,
        /// The first address of the memory, in whole pages.
        start: VirtualAddress,
        /// The address after the last one.
        end: VirtualAddress,
    }

    /// The implementation of an indirect function.
    pub struct Implementation {
        /// Its first address in the process.
        address: VirtualAddress,
        /// Demangled name, if it has a symbol.
        name: Option<TargetName>,
    }
}

impl Record for SymbolReport {
    fn write(&self, text: &mut Text) {
        text.line(write_symbol, self);
    }
}

/// `*matrix+4096 of billing`, then where the memory lies.
impl Record for PointedReport {
    fn write(&self, text: &mut Text) {
        text.line(write_pointed, self);
    }
}

fn write_pointed(lines: &mut Lines, pointed: &PointedReport) {
    let line = lines.line();
    write_name(line, &pointed.name, pointed.offset);
    line.plain(" of ").push(Role::Name, &pointed.module);
    let line = lines.line();
    line.plain("  in ").push(Role::Address, format!("{}..{}", pointed.start, pointed.end));
    line.plain(", ").plain(size(pointed.end.get() - pointed.start.get()));
}

/// `malloc+16`
fn write_name(line: &mut Line, name: &TargetName, offset: u64) {
    line.push(Role::Symbol, name);
    if offset != 0 {
        line.push(Role::Symbol, format!("+{offset}"));
    }
}

/// `malloc+16 in section .text of libc.so.6`, then where and how big.
fn write_symbol(lines: &mut Lines, symbol: &SymbolReport) {
    let line = lines.line();
    write_name(line, &symbol.name, symbol.offset);
    if let Some(section) = &symbol.section {
        line.plain(format!(" in section {section}"));
    }
    line.plain(" of ").push(Role::Name, &symbol.module);
    let line = lines.line();
    line.plain("  at ").push(Role::Address, symbol.address).indent(2).word(", ", Role::Plain, kind_words(symbol.kind));
    if symbol.size > 0 {
        line.word(", ", Role::Plain, counted(symbol.size, "byte"));
    }
    line.word(", ", Role::Plain, format!("linked at {}", symbol.file_address));
    if let Some(mangled) = &symbol.mangled {
        line.word(", ", Role::Plain, format!("mangled {mangled}"));
    }
    if let Some(Implementation { address, name }) = &symbol.implementation {
        let line = lines.line();
        line.plain("  implemented by ");
        if let Some(name) = name {
            line.push(Role::Symbol, name).plain(" at ");
        }
        line.push(Role::Address, address);
    }
}

fn kind_words(kind: SymbolKind) -> &'static str {
    match kind {
        SymbolKind::Tls => "thread-local",
        SymbolKind::Indirect => "the resolver of an indirect function",
        SymbolKind::Untyped => "a symbol without a type",
        SymbolKind::Function | SymbolKind::Object => kind.word(),
    }
}

words!(SymbolKind => "symbol_kind");

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;
    use crate::command::tests::records::pages::va;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![Box::new(symbol()), Box::new(indirect()), Box::new(pointed())]
    }

    pub fn pointed() -> PointedReport {
        PointedReport {
            name: TargetName::from("*matrix"),
            offset: 4096,
            module: TargetName::from("demo"),
            start: va(0x7ffff5000000),
            end: va(0x7ffff7800000),
        }
    }

    pub fn symbol() -> SymbolReport {
        SymbolReport {
            name: TargetName::from("core::fmt::write"),
            mangled: Some(TargetName::from("_ZN4core3fmt5writeE")),
            address: va(0x555555555139),
            size: 45,
            offset: 16,
            kind: SymbolKind::Function,
            section: Some(TargetName::from(".text")),
            module: TargetName::from("demo"),
            file_address: va(0x1139),
            implementation: None,
        }
    }

    pub fn indirect() -> SymbolReport {
        SymbolReport {
            name: TargetName::from("memcpy"),
            mangled: None,
            address: va(0x7ffff7ea2c40),
            size: 255,
            offset: 0,
            kind: SymbolKind::Indirect,
            section: Some(TargetName::from(".text")),
            module: TargetName::from("libc.so.6"),
            file_address: va(0xa2c40),
            implementation: Some(Implementation {
                address: va(0x7ffff7f6ac00),
                name: Some(TargetName::from("__memmove_avx_unaligned_erms")),
            }),
        }
    }
}
