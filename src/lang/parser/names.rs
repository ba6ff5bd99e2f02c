//! Names, alone, in a module or before a line: `main`, `libc.so.6!malloc`, `libc.so.6!0x1149`, `server.c:210`; names of
//! snapshots; and values of a single token. In a filter bare words are fields, and its parts have types. The types of
//! fields decide which part it is, so that nothing is parsed twice: a parenthesis may contain a condition, `(dirty or
//! guard)`, or a number, `(pfn & 511) == 0`.

use super::combinators::{silent_mark, silent_word, word};
use super::input::{BareWords, Failed, ValueTypes};
use crate::kernel::words::Worded;
use crate::lang::ctype::CType;
use crate::lang::error::{Class, Span, Spanned, SyntaxError};
use crate::lang::expected::Expected;
use crate::lang::expression::{
    BinaryOperator as Op, ChangeFunction, Expression, Function, LAST_ADDRESS, Level, NOW, NumberType, Register,
    SymbolName, UnaryOperator, WrittenName, is_operator_word,
};
use crate::lang::field::{FilterSubject, ValueType};
use crate::lang::field::{KeyFacts, TakenKeys, WrittenKey};
use crate::lang::lexer::{Token, TokenKind};
use crate::lang::parser::combinators::{glued, is_mark, mark, spanned_number};
use crate::lang::parser::input::Fault;
use crate::lang::parser::input::{Parsed, Tokens};
use nom::Parser;
use nom::branch::alt;
use nom::combinator::{cut, map};

/// Returns the name in a token.
fn name(token: &Token<'_>) -> Option<WrittenName> {
    match &token.kind {
        TokenKind::Name => Some(WrittenName(token.text.to_owned())),
        TokenKind::Quoted(name) => Some(WrittenName(name.clone())),
        _ => None,
    }
}

/// Fails if a blank precedes the next token.
fn need_glue(input: Tokens<'_>, expected: Expected) -> Parsed<'_, ()> {
    if input.first().is_none_or(|token| token.is_glued) { Ok((input, ())) } else { input.fail(expected) }
}

/// Parses what follows a `!`, if one is directly here.
fn in_module<'a, T>(input: Tokens<'a>, inside: impl Fn(Tokens<'a>) -> Parsed<'a, T>) -> Parsed<'a, Option<T>> {
    if !glued(input, "!") {
        return Ok((input, None));
    }
    let (behind, _) = mark("!")(input)?;
    let (behind, ()) = cut(|input| need_glue(input, Expected::Symbol)).parse(behind)?;
    map(cut(inside), Some).parse(behind)
}

/// Parses a name, alone or before a `!`.
pub(crate) fn named(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let is_bare = |token: &Token<'_>| token.kind == TokenKind::Name;
    let is_word =
        |token: &Token<'_>| is_bare(token) && (is_operator_word(token.text) || input.is_clause_word(token.text));
    let (behind, first) = input.accept_operand(|token| name(token).filter(|_| !is_word(token)))?;
    let unquoted = input.first().is_some_and(is_bare);
    if unquoted && behind.first().is_some_and(|token| is_mark(token, "(")) {
        return unknown_function(input, &first);
    }
    if glued(behind, ":") {
        return source_line(behind, first);
    }
    let inside = |input| {
        let symbol = map(symbol_name, |symbol| (symbol.at, Inside::Symbol(symbol)));
        let address = map(spanned_number, |address| (address.at, Inside::Address(address)));
        alt((symbol, address)).parse(input)
    };
    let (behind, second) = in_module(behind, inside)?;
    let Some((at, second)) = second else {
        return Ok((behind, first.map(Expression::Name)));
    };
    let at = first.at.to(at);
    let module = first;
    let node = match second {
        Inside::Symbol(symbol) => Expression::ModuleSymbol { module, symbol },
        Inside::Address(address) => Expression::ModuleAddress { module, address },
    };
    Ok((behind, Spanned::new(node, at)))
}

/// The second part of `MODULE!SYMBOL`: a symbol or an address.
enum Inside {
    Symbol(Spanned<WrittenName>),
    Address(Spanned<u64>),
}

/// Parses the `:` after the name of a source file, and the line.
fn source_line<'a>(input: Tokens<'a>, file: Spanned<WrittenName>) -> Parsed<'a, Spanned<Expression>> {
    let (behind, _) = mark(":")(input)?;
    let (behind, ()) = cut(|input| need_glue(input, Expected::Number)).parse(behind)?;
    let (behind, line) = cut(spanned_number).parse(behind)?;
    let at = file.at.to(line.at);
    let node = Expression::SourceLine { file, line };
    Ok((behind, Spanned::new(node, at)))
}

fn unknown_function<'a, T>(input: Tokens<'a>, name: &Spanned<WrittenName>) -> Parsed<'a, T> {
    let known = Function::words().chain(ChangeFunction::words());
    let known: Vec<&str> = known.chain(NumberType::words()).collect();
    let error = SyntaxError {
        at: name.at,
        message: format!("there is no function `{}`", name.node.0),
        hint: SyntaxError::did_you_mean(&name.node.0, known.iter().copied()),
        expected: known.iter().map(|name| format!("`{name}`")).collect(),
        pasted: None,
    };
    input.fault(Fault::Function, error)
}

/// Parses the rule `symbol`.
pub(crate) fn symbol(input: Tokens<'_>) -> Parsed<'_, Spanned<SymbolName>> {
    let (behind, first) = symbol_name(input)?;
    let (behind, second) = in_module(behind, symbol_name)?;
    let at = first.at;
    let (at, module, symbol) = match second {
        Some(symbol) => (at.to(symbol.at), Some(first), symbol),
        None => (at, None, first),
    };
    Ok((behind, Spanned::new(SymbolName { module, symbol }, at)))
}

fn symbol_name(input: Tokens<'_>) -> Parsed<'_, Spanned<WrittenName>> {
    input.accept(Expected::Symbol, name)
}

/// Parses a number with a decimal point.
pub(crate) fn fraction(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept_operand(|token| match &token.kind {
        TokenKind::Fraction(value) => Some(Expression::Fraction(*value)),
        _ => None,
    })
}

/// Parses numbers, and words that begin with `$`.
pub(crate) fn constant(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept_operand(|token| match &token.kind {
        TokenKind::Number(value) | TokenKind::PastedValue(value) | TokenKind::PastedAddress(value) => {
            Some(Expression::Integer(i128::from(*value)))
        }
        TokenKind::PastedCast { to, reads, address } => {
            let address = Spanned::new(Expression::Integer(i128::from(*address)), token.at);
            Some(cast(Spanned::new(to.clone(), token.at), *reads, address))
        }
        TokenKind::Pages(count) => Some(Expression::Pages(*count)),
        TokenKind::History(reference) => Some(Expression::History(*reference)),
        TokenKind::Variable => Some(match token.text {
            LAST_ADDRESS => Expression::LastAddress,
            text => match Register::from_word(text) {
                Some(register) => Expression::Register(register),
                None => Expression::Variable(text.trim_start_matches('$').to_owned()),
            },
        }),
        _ => None,
    })
}

/// Makes the expression `(T)E`, or `{T}E`, which is `*(T *)E`.
pub(crate) fn cast(to: Spanned<CType>, reads: bool, operand: Spanned<Expression>) -> Expression {
    let at = to.at;
    let to = if reads { to.map(|to| CType::Pointer(Box::new(to))) } else { to };
    let cast = Expression::Cast { to, operand: Box::new(operand) };
    if !reads {
        return cast;
    }
    Expression::Unary {
        operator: Spanned::new(UnaryOperator::Dereference, at),
        operand: Box::new(Spanned::new(cast, at)),
    }
}

pub(crate) fn text(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept_operand(|token| match &token.kind {
        TokenKind::Text(text) => {
            let raw = token.text.strip_prefix('"').and_then(|raw| raw.strip_suffix('"'));
            let raw = raw.filter(|raw| raw.contains("\\x") || raw.contains("\\u{"));
            let text = text.clone();
            Some(match raw {
                Some(raw) => Expression::EscapedText { text, raw: raw.to_owned() },
                None => Expression::Text(text),
            })
        }
        _ => None,
    })
}

pub(crate) fn bracketed(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept_operand(|token| {
        let inner = token.text.strip_prefix('[')?.strip_suffix(']')?;
        (token.kind == TokenKind::Bracketed).then(|| Expression::BracketedRegion(inner.to_owned()))
    })
}

pub(crate) fn indexed(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept_operand(|token| match &token.kind {
        TokenKind::Indexed { module, module_length, index } => {
            let middle = token.at.start + module_length;
            Some(Expression::ModuleRegion {
                module: Spanned::new(WrittenName(module.clone()), Span::new(token.at.start, middle)),
                index: Spanned::new(*index, Span::new(middle + 1, token.at.end - 1)),
            })
        }
        _ => None,
    })
}

impl FilterSubject {
    /// Returns the types of the fields with this name. `shared` of regions is a condition and a number.
    fn types(self, name: &str) -> ValueTypes {
        let named = self.fields().into_iter().filter(|(field, _)| *field == name);
        let types = named.map(|(_, holds)| match holds {
            ValueType::Integer => ValueTypes::NUMBER,
            ValueType::Text => ValueTypes::TEXT,
            ValueType::Boolean | ValueType::Word | ValueType::Set => ValueTypes::CONDITION,
        });
        types.fold(ValueTypes::empty(), ValueTypes::union)
    }

    /// Returns the possible types of a part of a filter.
    fn types_of(self, part: &Expression) -> ValueTypes {
        match part {
            Expression::Field(name) => self.types(name),
            Expression::Flag(_) => ValueTypes::CONDITION,
            Expression::Text(_) | Expression::EscapedText { .. } => ValueTypes::TEXT,
            Expression::Unary { operator, .. } if operator.node == UnaryOperator::Not => ValueTypes::CONDITION,
            Expression::Unary { operator, .. } if operator.node != UnaryOperator::Dereference => ValueTypes::NUMBER,
            Expression::Binary { operator, .. } => match operator.node.level() {
                level if level.joins() || level.compares() => ValueTypes::CONDITION,
                _ => ValueTypes::NUMBER,
            },
            // A value without fields.
            _ => ValueTypes::NUMBER | ValueTypes::TEXT,
        }
    }
}

impl BareWords {
    /// Returns whether a part of one of these types is possible here.
    pub(crate) fn takes(self, types: ValueTypes) -> bool {
        matches!(self, BareWords::Filter(_, wanted) if wanted.intersects(types))
    }

    /// Returns whether an operator is possible after `left`.
    pub(crate) fn takes_behind(self, left: &Expression, operator: Op) -> bool {
        let BareWords::Filter(subject, _) = self else {
            return true;
        };
        let left_is = |types| subject.types_of(left).intersects(types);
        match operator.level() {
            level if level.joins() => left_is(ValueTypes::CONDITION),
            level if level.compares() && !self.takes(ValueTypes::CONDITION) => false,
            Level::Equality if operator == Op::Matches => left_is(ValueTypes::TEXT),
            Level::Equality => left_is(ValueTypes::NUMBER | ValueTypes::TEXT),
            // A condition contains these operators only in parentheses, where a number is possible too.
            Level::BitOr | Level::BitXor | Level::BitAnd => {
                left_is(ValueTypes::NUMBER) && self.takes(ValueTypes::NUMBER)
            }
            _ => left_is(ValueTypes::NUMBER) && self.takes(ValueTypes::CONDITION | ValueTypes::NUMBER),
        }
    }

    /// Returns which of the `wanted` operators are possible after `left`.
    pub(super) fn expected_behind(self, left: &Expression, wanted: impl Fn(Level) -> bool) -> Vec<Expected> {
        let BareWords::Filter(subject, _) = self else {
            return vec![Expected::Operator];
        };
        let types = subject.types_of(left);
        let signs: &[(Op, Expected)] = if types.contains(ValueTypes::CONDITION) {
            &[(Op::And, Expected::Word("and")), (Op::Or, Expected::Word("or"))]
        } else if types == ValueTypes::TEXT {
            &[Op::Equal, Op::NotEqual, Op::Matches].map(|operator| (operator, Expected::Mark(operator.text())))
        } else {
            &[(Op::Multiply, Expected::Operator), (Op::Equal, Expected::Comparison)]
        };
        let takes = |(operator, _): &&(Op, Expected)| wanted(operator.level()) && self.takes_behind(left, *operator);
        signs.iter().filter(takes).map(|(_, expected)| *expected).collect()
    }

    /// Returns the scope of the right operand.
    pub(crate) fn right_of(self, left: &Expression, operator: Op) -> Self {
        let BareWords::Filter(subject, _) = self else {
            return self;
        };
        BareWords::Filter(
            subject,
            match operator {
                Op::And | Op::Or => ValueTypes::CONDITION,
                Op::Matches => ValueTypes::TEXT,
                Op::Equal | Op::NotEqual => subject.types_of(left) - ValueTypes::CONDITION,
                _ => ValueTypes::NUMBER,
            },
        )
    }

    /// Returns the scope of the operand after this operator.
    pub(crate) fn behind(self, operator: UnaryOperator) -> Self {
        match (self, operator) {
            (BareWords::Value, _) | (_, UnaryOperator::Dereference) => BareWords::Value,
            (BareWords::Filter(subject, _), UnaryOperator::Not) => BareWords::Filter(subject, ValueTypes::CONDITION),
            (BareWords::Filter(subject, _), _) => BareWords::Filter(subject, ValueTypes::NUMBER),
        }
    }

    /// Returns the scope inside parentheses.
    pub(crate) fn parenthesised(self) -> Self {
        match self {
            BareWords::Value => BareWords::Value,
            BareWords::Filter(subject, _) => BareWords::Filter(subject, ValueTypes::CONDITION | ValueTypes::NUMBER),
        }
    }
}

/// Checks that a part has a type that its scope accepts.
pub(crate) fn part_of_scope(input: Tokens<'_>, part: Spanned<Expression>) -> Parsed<'_, Spanned<Expression>> {
    let BareWords::Filter(subject, wanted) = input.scope else {
        return Ok((input, part));
    };
    match subject.types_of(&part.node) {
        types if wanted.intersects(types) => Ok((input, part)),
        ValueTypes::CONDITION => {
            let error = SyntaxError {
                at: part.at,
                message: "unexpected condition".into(),
                expected: vec![subject.quantity().describe()],
                hint: Some("join conditions with `and`, `or`, `not`".into()),
                pasted: None,
            };
            input.fault(Fault::Other, error)
        }
        // A number or a text alone is no condition. The missing comparison was recorded before.
        _ => Err(nom::Err::Failure(Failed)),
    }
}

/// Parses a field of the filter, `flags(NAME)`, or `state == swapped`.
pub(crate) fn field(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let BareWords::Filter(subject, wanted) = input.scope else {
        return Err(nom::Err::Error(Failed));
    };
    let is_condition = wanted.contains(ValueTypes::CONDITION);
    if subject == FilterSubject::Page
        && is_condition
        && let Ok((behind, (at, _))) = (silent_word("flags"), cut(mark("("))).parse(input)
    {
        let (behind, (flag, close)) = (cut(flag_name), cut(mark(")"))).parse(behind)?;
        return Ok((behind, Spanned::new(Expression::Flag(flag), at.to(close))));
    }
    let (behind, name) = input.accept_operand(|token| {
        let fields = subject.fields().into_iter().filter(|_| token.kind == TokenKind::Name);
        let mut names = fields.map(|(name, _)| name).filter(|name| *name == token.text);
        names.find(|name| is_condition || subject.types(name).intersects(wanted & ValueTypes::NUMBER))
    })?;
    input.notes.note_class(Class::Field, name.at);
    let words = subject.words(name.node);
    if words.is_empty() {
        return Ok((behind, name.map(Expression::Field)));
    }
    let (behind, not) = cut(equality).parse(behind)?;
    let (behind, word) = cut(|input| one_word(input, &words)).parse(behind)?;
    let equal = Spanned::new(Expression::Field(word.node), name.at.to(word.at));
    Ok((behind, not.map_or(equal.clone(), |operator| negated(operator, equal))))
}

fn negated(operator: Spanned<UnaryOperator>, operand: Spanned<Expression>) -> Spanned<Expression> {
    let at = operand.at;
    Spanned::new(Expression::Unary { operator, operand: Box::new(operand) }, at)
}

/// Parses a key of `by`: one of the words that a command accepts, or `flags(NAME)`.
pub(crate) fn key<'a>(keys: TakenKeys) -> impl Fn(Tokens<'a>) -> Parsed<'a, WrittenKey> {
    move |input| {
        let takes_flags = keys.facts != KeyFacts::None;
        if takes_flags && let Ok((behind, _)) = (silent_word("flags"), silent_mark("(")).parse(input) {
            let (behind, (flag, _)) = (cut(flag_name), cut(mark(")"))).parse(behind)?;
            return Ok((behind, WrittenKey::Flag(flag)));
        }
        if !takes_flags {
            let mut words = keys.all().map(|key| word(key.word())(input).map(|(behind, _)| (behind, key)));
            let found = words.find_map(Result::ok).ok_or(nom::Err::Error(Failed))?;
            return Ok((found.0, WrittenKey::Key(found.1)));
        }
        let wanted = |token: &Token<'_>| keys.from_word(token.text).filter(|_| token.kind == TokenKind::Name);
        let (behind, key) = input.accept(Expected::Key(keys), wanted)?;
        input.notes.note_class(Class::Keyword, key.at);
        Ok((behind, WrittenKey::Key(key.node)))
    }
}

fn flag_name(input: Tokens<'_>) -> Parsed<'_, Spanned<String>> {
    input.accept(Expected::FlagName, |token| (token.kind == TokenKind::Name).then(|| token.text.to_owned()))
}

pub(crate) fn quoted_text(input: Tokens<'_>) -> Parsed<'_, Spanned<String>> {
    input.accept(Expected::QuotedText, |token| match &token.kind {
        TokenKind::Text(text) => Some(text.clone()),
        _ => None,
    })
}

/// Parses `==`, or `!=` as a negation.
fn equality(input: Tokens<'_>) -> Parsed<'_, Option<Spanned<UnaryOperator>>> {
    let not = mark("!=").map(|at| Some(Spanned::new(UnaryOperator::Not, at)));
    alt((mark("==").map(|_| None), not)).parse(input)
}

/// Parses one of the words with which a field is compared.
fn one_word<'a>(input: Tokens<'a>, words: &[&'static str]) -> Parsed<'a, Spanned<&'static str>> {
    let found = words.iter().find_map(|one| word(one)(input).ok().map(|(behind, at)| (behind, Spanned::new(*one, at))));
    found.ok_or(nom::Err::Error(Failed))
}

/// Words that cannot name a snapshot: they begin a clause of `snapshot` or `diff`, or mean the present.
const TAKEN: [&str; 10] = ["from", "to", "in", "with", "where", "by", "top", "limit", "delete", NOW];

pub(crate) fn snapshot_name(input: Tokens<'_>) -> Parsed<'_, Spanned<String>> {
    input.accept(Expected::Snapshot, |token| {
        let is_name = token.kind == TokenKind::Name && !TAKEN.contains(&token.text);
        is_name.then(|| token.text.to_owned())
    })
}

/// Parses the later snapshot of two, or the word for the present.
pub(crate) fn later(input: Tokens<'_>) -> Parsed<'_, Option<Spanned<String>>> {
    alt((map(word(NOW), |_| None), map(snapshot_name, Some))).parse(input)
}
