//! A language of a few commands, which only keep what follows their names.

use crate::hint::Hints;
use crate::lang::parser::{self, Parsed, Tokens, address, after, range, symbol, word};
use crate::lang::{
    CommandName, Expression, FilterExpression, Language, PageField, ParsedCommand, ParsedLine, Range, Reach,
    RegionField, Spanned, Statement, SymbolName, Syntax,
};
use nom::Parser;
use nom::combinator::opt;
use std::fmt::{self, Formatter};
use std::rc::Rc;

/// What follows the name of a command.
#[derive(Clone, Debug)]
pub enum Arguments {
    /// `print`, `translate`
    Range(Spanned<Range>),
    /// `walk`
    Pages(Spanned<Range>, Option<Spanned<FilterExpression<PageField>>>),
    /// `regions where`
    Regions(Spanned<FilterExpression<RegionField>>),
    /// `region`, `flags`
    Address(Spanned<Expression>),
    /// `info address`
    Symbol(Spanned<SymbolName>),
}

impl ParsedCommand for Arguments {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }

    fn reach(&self) -> Reach {
        Reach::Nothing
    }
}

static LANGUAGE: Language = Language {
    commands: &[
        Syntax { name: CommandName::new("print"), parse: whole },
        Syntax { name: CommandName::new("translate"), parse: whole },
        Syntax { name: CommandName::new("walk"), parse: pages },
        Syntax { name: CommandName::new("regions"), parse: regions },
        Syntax { name: CommandName::new("region"), parse: place },
        Syntax { name: CommandName::new("flags"), parse: place },
        Syntax { name: CommandName::new("info address"), parse: named },
    ],
    advice: Some(&Hints),
};

fn kept(behind: Tokens<'_>, arguments: Arguments) -> Parsed<'_, Statement> {
    Ok((behind, Statement::Command(Rc::new(arguments))))
}

fn whole(input: Tokens<'_>) -> Parsed<'_, Statement> {
    let (behind, range) = range(input)?;
    kept(behind, Arguments::Range(range))
}

fn pages(input: Tokens<'_>) -> Parsed<'_, Statement> {
    let (behind, (range, filter)) = (range, opt(after("where", parser::filter))).parse(input)?;
    kept(behind, Arguments::Pages(range, filter))
}

fn regions(input: Tokens<'_>) -> Parsed<'_, Statement> {
    let (behind, (_, filter)) = (word("where"), parser::filter).parse(input)?;
    kept(behind, Arguments::Regions(filter))
}

fn place(input: Tokens<'_>) -> Parsed<'_, Statement> {
    let (behind, address) = address(input)?;
    kept(behind, Arguments::Address(address))
}

fn named(input: Tokens<'_>) -> Parsed<'_, Statement> {
    let (behind, name) = symbol(input)?;
    kept(behind, Arguments::Symbol(name))
}

/// What follows the name of the command in a line.
pub fn arguments(line: &str) -> Arguments {
    let parsed = LANGUAGE.parse_line(line).unwrap_or_else(|error| panic!("{}", error.draw(line)));
    match &parsed {
        ParsedLine::Command { command, .. } => {
            command.node.downcast_ref::<Arguments>().expect("a command of these").clone()
        }
        _ => panic!("{line}: {parsed:?}"),
    }
}

/// The filter of pages in `where TEXT`.
pub fn page_filter(text: &str) -> Spanned<FilterExpression<PageField>> {
    match arguments(&format!("walk all where {text}")) {
        Arguments::Pages(_, Some(filter)) => filter,
        other => panic!("{text}: {other:?}"),
    }
}

/// The filter of regions in `where TEXT`.
pub fn region_filter(text: &str) -> Spanned<FilterExpression<RegionField>> {
    match arguments(&format!("regions where {text}")) {
        Arguments::Regions(filter) => filter,
        other => panic!("{text}: {other:?}"),
    }
}
