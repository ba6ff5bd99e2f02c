//! Writes lines and their parts: expressions, ranges and filters, with as few parentheses as possible. The text parses
//! to the same tree. In a filter, `& ^ |` are always in parentheses, words join conditions, and names that are not
//! fields are in quotes.

use super::lexer::{escape, is_plain_name};
use super::syntax::{Control, Format, Opening, Output, ParsedLine, Rows, ValueFormat};
use crate::lang::ctype::CType;
use crate::lang::error::{Candidate, Spanned};
use crate::lang::expression::{
    BinaryOperator, Changes, Expression, FilterExpression, HistoryReference, LAST_ADDRESS, Level, NOW, Range,
    SymbolName, UnaryOperator, WrittenName, is_operator_word,
};
use crate::lang::syntax::{Count, LimitClause, Time};
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

impl Display for WrittenName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if is_plain_name(&self.0) && !is_operator_word(&self.0) {
            f.write_str(&self.0)
        } else {
            f.write_str(&escape('\'', &self.0))
        }
    }
}

/// Written as it is typed; a file without a name is `PROGRAM`.
impl Display for Candidate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let written = |name: &Option<String>| name.clone().map(|name| WrittenName(name).to_string());
        match self {
            Candidate::Address(address) | Candidate::Entry(address) => write!(f, "{address:#x}"),
            Candidate::Range(start, end) => write!(f, "{start:#x}..{end:#x}"),
            Candidate::InFile { module, address } => {
                write!(f, "{}!{address:#x}", written(module).unwrap_or_else(|| "PROGRAM".to_owned()))
            }
            Candidate::Offset { module, offset } => write!(f, "byte {offset:#x} of {}", WrittenName(module.clone())),
            Candidate::Symbol { module, name, offset } => {
                let module = written(module).map_or_else(String::new, |module| module + "!");
                write!(f, "{module}{}", WrittenName(name.clone()))?;
                if *offset == 0 { Ok(()) } else { write!(f, " + {offset}") }
            }
            Candidate::Frame { number, is_decimal: true } => write!(f, "pfn:{number}"),
            Candidate::Frame { number, is_decimal: false } => write!(f, "pfn:{number:#x}"),
            Candidate::Physical(address) => write!(f, "phys:{address:#x}"),
        }
    }
}

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
            Range::Expression(Expression::Name(WrittenName(name))) if name == "all" => f.write_str("'all'"),
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
            Expression::EscapedText { raw, .. } => write!(f, "\"{raw}\""),
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
            Expression::Unary { operator, operand } => match array_at(operator.node, &operand.node) {
                Some((array, operand)) => write!(f, "{{{array}}}{}", ExpressionText::value(operand).at(Level::Unary)),
                None => unary(f, operator.node, ExpressionText::value(&operand.node)),
            },
            Expression::Binary { .. } => ExpressionText::value(self).fmt(f),
            Expression::Field(field) => f.write_str(field),
            Expression::Flag(name) => write!(f, "flags({})", name.node),
            Expression::Fraction(value) => {
                let text = value.to_string();
                let point = if text.contains('.') { "" } else { ".0" };
                write!(f, "{text}{point}")
            }
            Expression::Cast { to, operand } => match (&to.node, &operand.node) {
                // Only a pasted address has such a type, and it must have enough digits to be one.
                (CType::Other(written), Expression::Integer(address)) => write!(f, "{written} {address:#07x}"),
                // Directly after the parenthesis `[5]` would be an element.
                (to, operand @ Expression::BracketedRegion(_)) => write!(f, "({to}) {operand}"),
                (to, operand) => write!(f, "({to}){}", ExpressionText::value(operand).at(Level::Unary)),
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

/// Returns type and address of a read array. The language has no type for C's pointer to an array.
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

/// The operand of `pfn:` and `phys:`: operators are in parentheses.
struct Primary<'a>(&'a Expression);

impl Display for Primary<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Expression::Unary { .. } | Expression::Cast { .. } | Expression::Element { .. } => {
                write!(f, "({})", self.0)
            }
            other => write!(f, "{}", ExpressionText::value(other).at(Level::Unary)),
        }
    }
}

/// The text of an expression, in a filter or outside of one.
#[derive(Clone, Copy)]
struct ExpressionText<'a> {
    root: &'a Expression,
    is_in_filter: bool,
}

impl<F> Display for FilterExpression<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        ExpressionText { root: &self.condition, is_in_filter: true }.fmt(f)
    }
}

impl<'a> ExpressionText<'a> {
    /// Makes the text of an expression outside of filters.
    fn value(root: &'a Expression) -> Self {
        ExpressionText { root, is_in_filter: false }
    }

    fn part(self, root: &'a Expression) -> Self {
        ExpressionText { root, ..self }
    }

    /// Returns the level of the outermost operator, if it is binary; otherwise [`Level::Unary`].
    fn level(self) -> Level {
        match self.root {
            Expression::Binary { operator, .. } => operator.node.level(),
            // `not` negates the whole comparison after it.
            Expression::Unary { operator, .. } if self.is_in_filter && operator.node == UnaryOperator::Not => {
                Level::BitOr
            }
            _ => Level::Unary,
        }
    }

    /// Returns whether the text has parentheses of its own. Without them `|` would be a pipe, and `>` before a quote a
    /// redirection.
    fn always_parenthesised(self) -> bool {
        let Expression::Binary { operator, right, .. } = self.root else {
            return false;
        };
        match operator.node {
            BinaryOperator::BitOr => true,
            BinaryOperator::BitXor | BinaryOperator::BitAnd => self.is_in_filter,
            BinaryOperator::Greater | BinaryOperator::ShiftRight => {
                let right = self.part(&right.node).after(operator.node.level()).to_string();
                right.starts_with(['\'', '"'])
            }
            _ => false,
        }
    }

    /// Makes an operand that must bind at least as tightly as `level`.
    fn at(self, level: Level) -> WrittenOperand<'a> {
        WrittenOperand { is_loose: self.level() < level, tree: self }
    }

    /// Makes a right operand, which must bind more tightly than `level`, because operators are left-associative.
    fn after(self, level: Level) -> WrittenOperand<'a> {
        WrittenOperand { is_loose: self.level() <= level, tree: self }
    }
}

/// An operand, written in parentheses if it binds too loosely and its text has none.
struct WrittenOperand<'a> {
    tree: ExpressionText<'a>,
    is_loose: bool,
}

impl Display for WrittenOperand<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let tree = self.tree;
        if self.is_loose && !tree.always_parenthesised() { write!(f, "({tree})") } else { write!(f, "{tree}") }
    }
}

impl Display for ExpressionText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.root {
            Expression::Binary { operator, left, right } => {
                let (level, operator) = (self.level(), operator.node);
                let (left, right) = (self.part(&left.node).at(level), self.part(&right.node).after(level));
                let sign = operator.as_word().filter(|_| self.is_in_filter).unwrap_or(operator.text());
                let (open, close) = if self.always_parenthesised() { ("(", ")") } else { ("", "") };
                write!(f, "{open}{left} {sign} {right}{close}")
            }
            Expression::Unary { operator, operand } if self.is_in_filter => match operator.node {
                UnaryOperator::Not => write!(f, "not {}", self.part(&operand.node).at(Level::BitOr)),
                UnaryOperator::Dereference => self.root.fmt(f),
                sign => unary(f, sign, self.part(&operand.node)),
            },
            Expression::Name(WrittenName(name)) if self.is_in_filter => f.write_str(&escape('\'', name)),
            other => other.fmt(f),
        }
    }
}

/// Writes an operator before its operand.
fn unary(f: &mut Formatter<'_>, operator: UnaryOperator, operand: ExpressionText<'_>) -> fmt::Result {
    let (sign, operand) = (operator.text(), operand.at(Level::Unary).to_string());
    // Two consecutive minus signs would look like the start of `--how`.
    let blank = if sign == "-" && operand.starts_with('-') { " " } else { "" };
    write!(f, "{sign}{blank}{operand}")
}

/// Writes " KEYWORD VALUE", or nothing.
pub(crate) fn clause(f: &mut Formatter<'_>, keyword: &str, value: Option<impl Display>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, " {keyword} {value}"))
}

/// Writes " TEXT" in quotes, or nothing.
pub(crate) fn write_quoted(f: &mut Formatter<'_>, text: Option<&str>) -> fmt::Result {
    text.map_or(Ok(()), |text| write!(f, " {}", escape('"', text)))
}

/// Writes " WORD" if it is given.
pub(crate) fn word_if(f: &mut Formatter<'_>, is_given: bool, word: &str) -> fmt::Result {
    if is_given { write!(f, " {word}") } else { Ok(()) }
}

/// Writes " limit N", " top N", or nothing.
pub(crate) fn cut(f: &mut Formatter<'_>, cut: Option<&LimitClause>) -> fmt::Result {
    cut.map_or(Ok(()), |cut| clause(f, cut.which.word(), Some(&cut.rows.node)))
}

impl Display for ParsedLine {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ParsedLine::Empty => Ok(()),
            ParsedLine::Comment => f.write_str("#"),
            ParsedLine::Shell(text) => write!(f, "!{text}"),
            ParsedLine::Command { command, output } => {
                write!(f, "{}{}", command.node, output)
            }
            ParsedLine::Control(control) => control.fmt(f),
        }
    }
}

impl Display for Control {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Control::Open(Opening::If(condition)) => write!(f, "if {}", condition.node),
            Control::Else => f.write_str("else"),
            Control::End => f.write_str("end"),
            Control::Open(Opening::While(condition)) => write!(f, "while {}", condition.node),
            Control::Break => f.write_str("loop_break"),
            Control::Continue => f.write_str("loop_continue"),
            Control::Open(Opening::Foreach { variable, rows }) => {
                write!(f, "foreach ${} in ", variable.node)?;
                match rows {
                    Rows::Of(command) => command.node.fmt(f),
                    Rows::Threads => f.write_str("threads"),
                    Rows::Values(values) => {
                        let values: Vec<String> = values.iter().map(|value| value.node.to_string()).collect();
                        match values.join(", ") {
                            // Without quotes it would be the rows with that name.
                            name if name == "threads" => f.write_str("'threads'"),
                            values => f.write_str(&values),
                        }
                    }
                }
            }
            Control::Open(Opening::Define(name)) => write!(f, "define {}", name.node),
            Control::Open(Opening::Document(name)) => write!(f, "document {}", name.node),
        }
    }
}

impl Display for Output {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Output::Screen => Ok(()),
            Output::Pipe(text) => write!(f, " | {}", text.node),
            Output::File { path, append } => {
                write!(f, " {} {}", if *append { ">>" } else { ">" }, escape('"', &path.node))
            }
        }
    }
}

impl Display for Count {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Count::Number(number) => write!(f, "{number}"),
            Count::Variable(name) => write!(f, "${name}"),
        }
    }
}

impl Display for Time {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Time::Duration(duration) => f.write_str(&time(*duration)),
            Time::Variable(name) => write!(f, "${name}"),
        }
    }
}

/// Formats a duration without loss: `2s`, `100ms`, `0.0005s`.
fn time(duration: Duration) -> String {
    let nanoseconds = duration.subsec_nanos();
    if nanoseconds == 0 {
        format!("{}s", duration.as_secs())
    } else if duration.as_secs() == 0 && nanoseconds.is_multiple_of(1_000_000) {
        format!("{}ms", nanoseconds / 1_000_000)
    } else {
        let fraction = format!("{nanoseconds:09}");
        format!("{}.{}s", duration.as_secs(), fraction.trim_end_matches('0'))
    }
}

impl Display for ValueFormat {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let layout = self;
        if *layout == ValueFormat::default() {
            return Ok(());
        }
        f.write_str(if layout.backward { "/-" } else { "/" })?;
        layout.count.map_or(Ok(()), |count| write!(f, "{count}"))?;
        f.write_str(layout.format.map_or("", Format::letter))?;
        let unit = layout.unit.map(|unit| unit.letter());
        f.write_str(unit.unwrap_or_default())
    }
}
