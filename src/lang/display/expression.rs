//! Values and ranges, with as few parentheses as their meaning needs.

use std::fmt::{self, Display, Formatter};

use super::operators::{Tree, unary};
use crate::lang::ctype::CType;
use crate::lang::expression::{Changes, Expression, HistoryReference, LAST_ADDRESS, NOW, Name, Range, SymbolName};
use crate::lang::lexer::escape;
use crate::lang::operators::Level;
use crate::lang::span::Spanned;
use crate::lang::syntax::UnaryOperator;

impl Display for SymbolName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(module) = &self.module {
            write!(f, "{}!", module.node)?;
        }
        write!(f, "{}", self.symbol.node)
    }
}

impl Display for Range {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Range::All => f.write_str("all"),
            Range::Expression(Expression::Name(Name(name))) if name == "all" => f.write_str("'all'"),
            Range::Expression(expression) => write!(f, "{expression}"),
            Range::Span { start, end } => write!(f, "{}..{}", start.node, end.node),
            Range::Length { start, length } => write!(f, "{}, +{}", start.node, length.node),
        }
    }
}

impl Display for Expression {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Expression::Integer(value) if *value < 4096 => write!(f, "{value}"),
            Expression::Integer(value) => write!(f, "{value:#x}"),
            Expression::Pages(count) => write!(f, "{count}p"),
            Expression::Text(text) => f.write_str(&escape('"', text)),
            Expression::Name(name) => write!(f, "{name}"),
            Expression::ModuleSymbol { module, symbol } => {
                write!(f, "{}!{}", module.node, symbol.node)
            }
            Expression::ModuleAddress { module, address } => {
                write!(f, "{}!{:#x}", module.node, address.node)
            }
            Expression::SourceLine { file, line } => match file.node.0.as_str() {
                // Without quotes this would be a frame or a physical address.
                name @ ("pfn" | "phys") => write!(f, "'{name}':{}", line.node),
                _ => write!(f, "{}:{}", file.node, line.node),
            },
            Expression::ModuleRegion { module, index } => {
                write!(f, "{}[{}]", module.node, index.node)
            }
            Expression::BracketedRegion(name) => write!(f, "[{name}]"),
            Expression::AddressOf(symbol) => write!(f, "&{symbol}"),
            Expression::Frame(operand) => write!(f, "pfn:{}", Primary(&operand.node)),
            Expression::Physical(operand) => write!(f, "phys:{}", Primary(&operand.node)),
            Expression::Variable(name) => write!(f, "${name}"),
            Expression::History(HistoryReference::Last) => f.write_str("$"),
            Expression::History(HistoryReference::Number(number)) => write!(f, "${number}"),
            Expression::History(HistoryReference::Back(number)) => write!(f, "$${number}"),
            Expression::LastAddress => f.write_str(LAST_ADDRESS),
            Expression::Register(register) => f.write_str(register.text()),
            Expression::Element { of, index } => match of.node {
                Expression::Variable(_) | Expression::History(_) | Expression::Element { .. } => {
                    write!(f, "{}[{}]", of.node, index.node)
                }
                _ => write!(f, "({})[{}]", of.node, index.node),
            },
            Expression::Unary { operator, operand }
                if let Some((array, operand)) = array_at(operator.node, &operand.node) =>
            {
                write!(f, "{{{array}}}{}", Tree::value(operand).at(Level::Unary))
            }
            Expression::Unary { operator, operand } => unary(f, operator.node, Tree::value(&operand.node)),
            Expression::Binary { .. } => Tree::value(self).fmt(f),
            Expression::Field(field) => f.write_str(field),
            Expression::Flag(name) => write!(f, "flags({})", name.node),
            Expression::Fraction(value) => {
                let text = value.to_string();
                let point = if text.contains('.') { "" } else { ".0" };
                write!(f, "{text}{point}")
            }
            Expression::Cast { to, operand } => match (&to.node, &operand.node) {
                // Only a pasted address has such a type: as many digits as make it one.
                (CType::Other(written), Expression::Integer(address)) => write!(f, "{written} {address:#07x}"),
                // Right behind the parenthesis `[5]` would be an element.
                (to, operand @ Expression::BracketedRegion(_)) => write!(f, "({to}) {operand}"),
                (to, operand) => write!(f, "({to}){}", Tree::value(operand).at(Level::Unary)),
            },
            Expression::Read { as_type, address } => {
                write!(f, "{}({})", as_type.name(), address.node)
            }
            Expression::Changes(asked) => changes(f, asked),
            Expression::Call { function, argument, filter } => {
                write!(f, "{}({}", function.name(), argument.node)?;
                if let Some(filter) = filter {
                    write!(f, " where {}", filter.node)?;
                }
                f.write_str(")")
            }
        }
    }
}

/// The array that is read, and where: C's type of a pointer to it is no type of the language.
fn array_at(operator: UnaryOperator, operand: &Expression) -> Option<(&CType, &Expression)> {
    match (operator, operand) {
        (UnaryOperator::Dereference, Expression::Cast { to: Spanned { node: CType::Pointer(to), .. }, operand }) => {
            matches!(**to, CType::Array(..)).then_some((&**to, &operand.node))
        }
        _ => None,
    }
}

fn changes(f: &mut Formatter<'_>, asked: &Changes) -> fmt::Result {
    let (name, from) = (asked.function.node.name(), &asked.from.node);
    let to = asked.to.as_ref().map_or(NOW, |to| &to.node);
    write!(f, "{name}({from}, {to}")?;
    if let Some(range) = &asked.range {
        write!(f, " in {}", range.node)?;
    }
    if let Some(filter) = &asked.filter {
        write!(f, " where {}", filter.node)?;
    }
    f.write_str(")")
}

/// What `pfn:` and `phys:` take: no operator outside parentheses.
struct Primary<'a>(&'a Expression);

impl Display for Primary<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Expression::Unary { .. } | Expression::Cast { .. } | Expression::Element { .. } => {
                write!(f, "({})", self.0)
            }
            other => write!(f, "{}", Tree::value(other).at(Level::Unary)),
        }
    }
}
