//! `info symbol ADDRESS`, `info address SYMBOL`.

use super::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use crate::eval;
use crate::lang::parser::{Parsed, Tokens, address, symbol};
use crate::lang::{Expression, Name, Spanned, SymbolName};
use crate::report::SymbolReport;
use crate::symbol::SymbolAt;
use nom::Parser;
use nom::combinator::map;
use std::fmt::{self, Formatter};

/// `info symbol ADDRESS`: which symbol covers the address.
#[derive(Debug)]
pub struct InfoSymbol(Spanned<Expression>);

impl Command for InfoSymbol {
    const ABOUT: About = About {
        name: CommandName::new("info symbol").displayed(),
        group: Group::Memory,
        summary: "find the symbol at an address",
        text: "\
Shows the symbol that covers the address, the offset in it, its section and its module. Also shows its address in \
the file, as objdump prints it.",
        examples: &[example("info symbol demo_buffer + 16", "find the symbol at this address")],
    };

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
            let why = match symbols.module_at(address) {
                None => "it is not in a module".to_owned(),
                Some(module) => match symbols.reason(module) {
                    Some(reason) => format!("{}: {reason}", module.file_name()),
                    None => format!("no symbol of {} covers it", module.file_name()),
                },
            };
            let message = format!("no symbol at {address}: {why}");
            let error = eval::Error::new(expression.at, message);
            return Err(match symbols.file_address(address) {
                Some((module, in_file)) => {
                    let module = Name(module.file_name().to_string());
                    error.hint(format!("in its file it is {module}!{in_file}"))
                }
                None => error,
            }
            .into());
        };
        context.state.last_address = Some(address);
        context.sink.emit(&report(&symbol))?;
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
        let found = eval::symbols(&self.0.node, context.state)?;
        if let [only] = &found[..] {
            context.state.last_address = Some(only.start);
        }
        for symbol in &found {
            context.sink.emit(&report(symbol))?;
        }
        Ok(Flow::Done)
    }
}

pub(super) fn report(symbol: &SymbolAt) -> SymbolReport {
    let name = symbol.name();
    SymbolReport {
        mangled: (name != symbol.mangled).then(|| symbol.mangled.clone()),
        name,
        address: symbol.start,
        size: symbol.size,
        offset: symbol.offset,
        kind: symbol.kind.word(),
        section: symbol.section.clone(),
        module: symbol.module.file_name(),
        file_address: symbol.file_address,
    }
}
