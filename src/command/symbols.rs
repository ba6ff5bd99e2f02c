//! `info symbols REGEX [limit N|top N]`

use super::cut::{Cut, Largest, show_largest};
use super::{About, Command, CommandName, Context, Flow, Group, Outcome, example, symbol};
use crate::eval::{self, Scope, Value};
use crate::lang::parser::{Parsed, Tokens, cut_to, pattern};
use crate::lang::{self, Expected, Spanned, display};
use crate::report::{SilentModule, SymbolRow, SymbolsSummary};
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
    cut: Option<lang::Cut>,
}

impl Command for InfoSymbols {
    const ABOUT: About = About {
        name: CommandName::new("info symbols").displayed(),
        group: Group::Memory,
        summary: "list the symbols whose names match a regular expression",
        text: "\
Lists each symbol whose name matches, demangled or as the file spells it. The list is by module, sorted by name.

  limit N  the first N rows
  top N    the N largest symbols

Includes static functions. Leaves out thread-local variables, because they have no single address. Leaves out names \
that no file contains, such as malloc@plt (`info address` finds them). Put a pattern with blanks in \"double \
quotes\".",
        examples: &[
            example("info symbols ^demo_", "list the symbols that begin with demo_"),
            example("info symbols \"alloc|free\" limit 10", "list the first ten with one of these words"),
        ],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (input, (pattern, cut)) = (pattern(Expected::Regex), opt(cut_to)).parse(input)?;
        Ok((input, InfoSymbols { pattern, cut }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        display::quoted(f, Some(&self.pattern.node))?;
        display::cut(f, self.cut.as_ref())
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let cut = Cut::of(self.cut.as_ref(), context.state)?;
        let pattern = meant(context, &self.pattern);
        let regex = eval::regex(&pattern, false)?;
        let target = context.target()?;
        let regions = context.state.symbols.regions(&target)?;
        let symbols = context.state.symbols.over(&target, &*regions);
        let limit = Cut::limit(cut).unwrap_or(u64::MAX);
        let mut largest = Cut::top(cut).map(Largest::new);
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
pub(super) fn meant(context: &Context, pattern: &Spanned<String>) -> Spanned<String> {
    let variable = pattern.node.strip_prefix('$');
    match variable.and_then(|name| context.state.variable(name)) {
        Some(Value::Text(text)) => Spanned::new(text, pattern.at),
        _ => pattern.clone(),
    }
}
