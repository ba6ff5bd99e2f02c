//! `info symbols REGEX [limit N|top N]`

use super::floor::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use super::rows::{Largest, RowLimit, show_largest};
use super::symbol;
use super::symbol::SymbolReport;
use crate::eval::{self, Scope, Value};
use crate::kernel::Name;
use crate::lang::parser::{Parsed, Tokens, cut_to, pattern};
use crate::lang::{self, Expected, Spanned, display};
use crate::render::Record;
use crate::render::columns::{Cell, Column, Table, none};
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::theme::Role;
use crate::render::units::counted;
use crate::report::record::record;
use crate::report::{Declared, Shape};
use crate::symbol::{MatchStep, NoSymbols};
use nom::Parser;
use nom::combinator::opt;
use std::fmt::{self, Formatter};

/// `info symbols REGEX [limit N|top N]`: the symbols whose names match.
#[derive(Debug)]
pub struct InfoSymbols {
    /// What the names must match.
    pattern: Spanned<String>,
    /// Which of them; all if absent.
    cut: Option<lang::LimitClause>,
}

impl Command for InfoSymbols {
    const RECORDS: &'static [Shape] = &[SymbolRow::SHAPE, SymbolsSummary::SHAPE];
    const ABOUT: About = About {
        name: CommandName::new("info symbols").displayed(),
        group: Group::Memory,
        summary: "list the symbols whose names match a regular expression",
        text: "\
Lists each symbol whose name matches, demangled or as the file spells it. The list is by module, sorted by name.

  limit N  the first N rows
  top N    the N largest symbols

Includes static functions. Leaves out thread-local variables, because they have no single address. Leaves out names \
that no file contains, such as malloc@plt (`info address` finds them). Put a pattern with spaces in \"double \
quotes\".",
        examples: &[
            example("info symbols ^demo_", "list the symbols that begin with demo_"),
            example("info symbols \"alloc|free\" limit 10", "list the first ten with one of these words"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (input, (pattern, cut)) = (pattern(Expected::Regex), opt(cut_to)).parse(input)?;
        Ok((input, InfoSymbols { pattern, cut }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        display::write_quoted(f, Some(&self.pattern.node))?;
        display::cut(f, self.cut.as_ref())
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let cut = RowLimit::of(self.cut.as_ref(), context.state)?;
        let pattern = pattern_text(context, &self.pattern);
        let regex = eval::regex(&pattern, false)?;
        let target = context.target()?;
        let regions = context.state.symbols.naming_regions(&target)?;
        let symbols = context.state.symbols.over(&target, &*regions);
        let limit = RowLimit::limit(cut).unwrap_or(u64::MAX);
        let mut largest = RowLimit::top(cut).map(Largest::new);
        let mut summary = SymbolsSummary { symbols: 0, cut_short: false, silent: Vec::new() };
        let is_match = |name: &str| regex.is_match(name);
        // One row more than wanted shows that there are more.
        for step in symbols.matching(&is_match, limit.saturating_add(1)) {
            match step? {
                MatchStep::Symbol(_) if summary.symbols >= limit => {
                    summary.cut_short = true;
                    break;
                }
                MatchStep::Symbol(found) => {
                    summary.symbols += 1;
                    let row = SymbolRow { symbol: symbol::report(&found) };
                    match &mut largest {
                        Some(largest) => {
                            largest.add(row.symbol.size, row);
                            context.sink.check()?;
                        }
                        None => context.sink.emit(&row)?,
                    }
                }
                // An executable mapping that is no ELF file never has symbols.
                MatchStep::Incomplete(_, NoSymbols::NotElf | NoSymbols::NotLoaded) => {}
                MatchStep::Incomplete(module, reason) => {
                    summary.silent.push(SilentModule { module: module.file_name(), reason: reason.to_string() });
                }
            }
        }
        show_largest(largest, "symbol", context.sink, |row, sink| sink.emit(row))?;
        context.sink.emit(&summary)?;
        Ok(Flow::Done)
    }
}

/// The pattern, or the text of the variable that it names: `$x` as a regular expression would match no name.
pub(super) fn pattern_text(context: &Context, pattern: &Spanned<String>) -> Spanned<String> {
    let variable = pattern.node.strip_prefix('$');
    match variable.and_then(|name| context.state.variable(name)) {
        Some(Value::Text(text)) => Spanned::new(text, pattern.at),
        _ => pattern.clone(),
    }
}

record! {
    /// A row of `info symbols`.
    pub struct SymbolRow as "symbol" {
        /// The symbol.
        [flat] symbol: SymbolReport,
    }

    /// The totals of `info symbols`.
    pub struct SymbolsSummary as "symbols-summary" {
        /// Symbols that matched and were shown.
        symbols: u64,
        /// Whether there are more: the limit was reached.
        cut_short: bool,
        /// Modules that gave no symbols.
        silent: Vec<SilentModule>,
    }

    /// A module that gave no symbols.
    pub struct SilentModule {
        /// Its file name.
        module: Name,
        /// Why.
        reason: String,
    }
}

impl Record for SymbolRow {
    fn write(&self, text: &mut Text) {
        text.row(&SYMBOLS, self);
    }
}

/// `info symbols`
static SYMBOLS: Table<SymbolRow> = Table::of(&[
    Column::word("address", 14, Role::Address).cell(|_, row| Cell::new(&row.symbol.address)),
    Column::number("size", 8, Role::Size).rank(1).cell(|_, row| match row.symbol.size {
        0 => none(),
        bytes => Cell::count(bytes),
    }),
    Column::word("kind", 8, Role::Plain).rank(2).cell(|_, row| Cell::new(row.symbol.kind.word())),
    Column::name("module", 14, Role::Name).uncut(24).cell(|_, row| Cell::new(&row.symbol.module)),
    Column::name("symbol", 24, Role::Symbol).cell(|_, row| Cell::new(&row.symbol.name)),
]);

impl Record for SymbolsSummary {
    fn write(&self, text: &mut Text) {
        text.answer_of_rows(write_summary, self);
        text.line(write_silent, self);
    }
}

/// `12 symbols`
fn write_summary(lines: &mut Lines, summary: &SymbolsSummary) {
    let line = lines.line();
    line.plain(counted(summary.symbols, "symbol"));
    if summary.cut_short {
        line.plain("; there are more: the limit is reached");
    }
}

/// The modules without symbols.
fn write_silent(lines: &mut Lines, summary: &SymbolsSummary) {
    for silent in &summary.silent {
        let line = lines.line();
        line.plain("no symbols of ")
            .push(Role::Name, &silent.module)
            .plain(": ")
            .indent(2)
            .prose(Role::Dim, &silent.reason);
    }
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![Box::new(symbol_row()), Box::new(symbols_summary())]
    }

    pub fn symbol_row() -> SymbolRow {
        SymbolRow { symbol: SymbolReport { offset: 0, ..symbol::samples::symbol() } }
    }

    pub fn symbols_summary() -> SymbolsSummary {
        SymbolsSummary {
            symbols: 12,
            cut_short: true,
            silent: vec![SilentModule {
                module: Name::from("libodd.so"),
                reason: "the file ends before its symbol table".into(),
            }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::columns::TableLayout;
    use crate::render::theme::Theme;

    #[test]
    fn symbols_keep_their_module_in_a_narrow_terminal() {
        for width in [60, 66, 70, 80] {
            let mut out = Vec::new();
            let columns = SYMBOLS.columns();
            let mut layout = TableLayout::new(Theme::PLAIN, columns, Some(width));
            layout.heading(&mut out);
            let heading = String::from_utf8(out).unwrap();
            assert!(heading.contains("module") && heading.contains("symbol"), "{width}: {heading}");
        }
    }
}
