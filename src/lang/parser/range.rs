//! Ranges and values, and the arguments of user-defined commands and of command files.

use crate::lang::error::{Span, Spanned};
use crate::lang::expected::Expected;
use crate::lang::expression::{BinaryOperator, Expression, Range, WrittenName};
use crate::lang::lexer::{self, PastedText, Token, TokenKind};
use crate::lang::parser::command::split_text;
use crate::lang::parser::expression::{expression, span, whole};
use crate::lang::parser::input::{Failed, Language, Notes, Parsed, Tokens, mark};
use crate::lang::syntax::Argument;
use nom::Parser;
use nom::branch::alt;
use nom::combinator::cut;

/// Words that begin a clause behind every pasted row.
const CLAUSES: [&str; 8] = ["where", "by", "limit", "top", "every", "until", "with", "full"];
/// Words that do so only in commands that have these clauses: rows contain them too, for instance in names of Rust
/// functions.
const RARE_CLAUSES: [&str; 3] = ["for", "count", "as"];

/// Whether a clause begins with this word.
pub(crate) fn is_clause(word: &str) -> bool {
    word == "in" || CLAUSES.contains(&word) || RARE_CLAUSES.contains(&word)
}

/// `range`
pub(crate) fn range(input: Tokens<'_>) -> Parsed<'_, Spanned<Range>> {
    input.expect(Expected::Range);
    alt((pasted(&[]), span)).parse(input)
}

/// `watched`
pub(crate) fn watched(input: Tokens<'_>) -> Parsed<'_, Spanned<Range>> {
    input.expect(Expected::Range);
    alt((pasted(&RARE_CLAUSES), span)).parse(input)
}

/// `address`
pub(crate) fn address(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    alt((pasted(&[]).map_opt(start), expression)).parse(input)
}

/// `value`
pub(crate) fn value(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    alt((pasted(&RARE_CLAUSES).map_opt(start), expression)).parse(input)
}

/// The start of a pasted range.
fn start(range: Spanned<Range>) -> Option<Spanned<Expression>> {
    match range.node {
        Range::Span { start, .. } | Range::Length { start, .. } => Some(start),
        Range::Expression(expression) => Some(Spanned::new(expression, range.at)),
        Range::All => None,
    }
}

/// The range that a pasted row shows. The rest of the row is skipped, up to a clause.
fn pasted<'a>(words: &'static [&'static str]) -> impl Fn(Tokens<'a>) -> Parsed<'a, Spanned<Range>> {
    move |input| {
        let (behind, range) = row(input)?;
        Ok((behind_row(behind, words), range))
    }
}

/// The tokens after a pasted row: the clauses of the command.
fn behind_row<'a>(input: Tokens<'a>, words: &[&str]) -> Tokens<'a> {
    let (text, behind) = split_text(input);
    let next = text.get(1);
    let continues = text.first().is_some_and(|first| match first.text {
        "+" | "*" | "," | ".." => true,
        // A negative number and `---p` belong to rows.
        "-" => !next.is_some_and(|next| next.is_glued),
        _ => false,
    });
    let is_clause = |(index, token): (usize, &Token<'_>)| {
        (index == 0 || !token.is_glued) && (CLAUSES.contains(&token.text) || words.contains(&token.text))
    };
    let passed_over = if continues { Some(0) } else { text.iter().enumerate().position(is_clause) };
    passed_over.map_or(behind, |length| Tokens { rest: input.rest.get(length..).unwrap_or_default(), ..input })
}

/// `PASTED_ROW`
fn row(input: Tokens<'_>) -> Parsed<'_, Spanned<Range>> {
    let Some((token, rest)) = input.rest.split_first() else {
        return Err(nom::Err::Error(Failed));
    };
    let TokenKind::PastedRow(pasted) = &token.kind else {
        return Err(nom::Err::Error(Failed));
    };
    let spanned = |value| Spanned::new(integer(value), token.at);
    let range = match pasted {
        PastedText::Address(address) => Range::Expression(integer(*address)),
        PastedText::Span(start, end) => Range::Span { start: spanned(*start), end: spanned(*end) },
        PastedText::Length { start, length } => Range::Length { start: spanned(*start), length: spanned(*length) },
        PastedText::Symbol { module, name, offset } => {
            Range::Expression(symbol(module.as_deref(), name, *offset, token.at))
        }
    };
    Ok((Tokens { rest, ..input }, Spanned::new(range, token.at)))
}

fn integer(value: u64) -> Expression {
    Expression::Integer(i128::from(value))
}

/// A symbol that a row names, plus an offset.
fn symbol(module: Option<&str>, name: &str, offset: u64, at: Span) -> Expression {
    let name = WrittenName(name.to_owned());
    let symbol = match module {
        None => Expression::Name(name),
        Some(module) => Expression::ModuleSymbol {
            module: Spanned::new(WrittenName(module.to_owned()), at),
            symbol: Spanned::new(name, at),
        },
    };
    if offset == 0 {
        return symbol;
    }
    Expression::Binary {
        operator: Spanned::new(BinaryOperator::Add, at),
        left: Box::new(Spanned::new(symbol, at)),
        right: Box::new(Spanned::new(integer(offset), at)),
    }
}

/// A value, or `A..B`.
pub(crate) fn listed(input: Tokens<'_>) -> Parsed<'_, Spanned<Range>> {
    let (behind, start) = expression(input)?;
    match mark("..")(behind) {
        Ok((behind, _)) => {
            let (behind, end) = cut(expression).parse(behind)?;
            let at = start.at.to(end.at);
            Ok((behind, Spanned::new(Range::Span { start, end }, at)))
        }
        Err(_) => Ok((behind, whole(start, true))),
    }
}

/// A text that is one argument, whatever blanks it has; `None` if it is empty.
pub(crate) fn whole_text(language: Language, text: &str) -> Option<Spanned<Argument>> {
    let tokens = lexer::tokens(language, text);
    argument(&tokens, &Notes::new(language, text, tokens.len()))
}

/// The arguments up to the end of the command. Blanks outside parentheses separate them.
pub(crate) fn of_tokens(input: Tokens<'_>) -> Vec<Spanned<Argument>> {
    let (mut rest, _) = split_text(input);
    let mut arguments = Vec::new();
    while !rest.is_empty() {
        let (group, behind) = rest.split_at(length(rest));
        arguments.extend(argument(group, input.notes));
        rest = behind;
    }
    arguments
}

/// How many tokens the first argument has.
fn length(tokens: &[Token<'_>]) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        if index > 0 && depth == 0 && !token.is_glued {
            return index;
        }
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    tokens.len()
}

/// A range or an expression if all of it is one, else text.
fn argument(group: &[Token<'_>], all: &Notes<'_>) -> Option<Spanned<Argument>> {
    let at = group.first()?.at.to(group.last()?.at);
    let notes = Notes::new(all.language, all.line, group.len());
    let value = match range(notes.input(group)) {
        Ok((behind, range)) if behind.rest.is_empty() => Some(range),
        _ => None,
    };
    let text = all.line.get(at.start..at.end)?.to_owned();
    Some(Spanned::new(Argument { text, value }, at))
}
