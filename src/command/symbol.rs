//! `info symbol ADDRESS`, `info address SYMBOL`.

use super::{About, CommandName, Context, Flow, Group, Outcome, example};
use crate::eval;
use crate::lang::{Expression, Name, Spanned, SymbolName};
use crate::report::SymbolReport;
use crate::symbol::SymbolAt;

pub(super) const ABOUT_SYMBOL: About = About {
    name: CommandName::new("info symbol").displayed(),
    group: Group::Memory,
    summary: "find the symbol at an address",
    text: "\
Shows the symbol that covers the address, the offset in it, its section and its module. Also shows its address in \
the file, as objdump prints it.",
    examples: &[example("info symbol demo_buffer + 16", "find the symbol at this address")],
};

pub(super) const ABOUT_ADDRESS: About = About {
    name: CommandName::new("info address").displayed(),
    group: Group::Memory,
    summary: "find the address of a symbol",
    text: "\
Lists every place of a symbol with that name, with size, section and module. A module before the name limits the \
search to it, as in `info address libc.so.6!malloc`.",
    examples: &[example("info address demo_buffer", "find the address of a symbol")],
};

pub(super) fn run_symbol(context: &mut Context, expression: &Spanned<Expression>) -> Outcome {
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

pub(super) fn run_address(context: &mut Context, name: &Spanned<SymbolName>) -> Outcome {
    let found = eval::symbols(&name.node, context.state)?;
    if let [only] = &found[..] {
        context.state.last_address = Some(only.start);
    }
    for symbol in &found {
        context.sink.emit(&report(symbol))?;
    }
    Ok(Flow::Done)
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
