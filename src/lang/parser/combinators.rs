//! Combinators over tokens: words, marks, numbers, lists.

use super::input::{Failed, Parsed, Tokens};
use crate::kernel::words::Worded;
use crate::lang::error::{Class, Span, Spanned};
use crate::lang::expected::Expected;
use crate::lang::expression::is_fixed;
use crate::lang::lexer::token::{Token, TokenKind};
use crate::lang::syntax::{Count, LimitClause, Time};
use nom::Parser;
use nom::branch::alt;
use nom::combinator::cut;
use nom::sequence::preceded;

/// Parses exactly this word.
pub(crate) fn word<'a>(word: &'static str) -> impl Fn(Tokens<'a>) -> Parsed<'a, Span> {
    move |input| {
        let wanted = |token: &Token<'_>| (token.kind == TokenKind::Name && token.text == word).then_some(());
        let (rest, found) = input.accept(Expected::Word(word), wanted)?;
        input.notes.note_class(Class::Keyword, found.at);
        Ok((rest, found.at))
    }
}

/// Parses exactly this mark.
pub(crate) fn mark<'a>(mark: &'static str) -> impl Fn(Tokens<'a>) -> Parsed<'a, Span> {
    move |input| {
        let (rest, found) = input.accept(Expected::Mark(mark), |token| is_mark(token, mark).then_some(()))?;
        Ok((rest, found.at))
    }
}

/// Parses this mark. A failure is not recorded, because the caller records the alternatives.
pub(crate) fn silent_mark<'a>(mark: &'static str) -> impl Fn(Tokens<'a>) -> Parsed<'a, Span> {
    accept_silently(move |token| is_mark(token, mark))
}

/// Parses this word. A failure is not recorded.
pub(crate) fn silent_word<'a>(word: &'static str) -> impl Fn(Tokens<'a>) -> Parsed<'a, Span> {
    accept_silently(move |token| token.kind == TokenKind::Name && token.text == word)
}

fn accept_silently<'a>(wanted: impl Fn(&Token<'_>) -> bool) -> impl Fn(Tokens<'a>) -> Parsed<'a, Span> {
    move |input| match input.rest.split_first() {
        Some((token, rest)) if wanted(token) => Ok((Tokens { rest, ..input }, token.at)),
        _ => Err(nom::Err::Error(Failed)),
    }
}

/// Returns whether the token is this mark.
pub(crate) fn is_mark(token: &Token<'_>, mark: &str) -> bool {
    token.kind == TokenKind::Mark && token.text == mark
}

/// Returns whether the next token is this mark, without a blank before it.
pub(crate) fn glued(input: Tokens<'_>, text: &str) -> bool {
    input.first().is_some_and(|token| token.is_glued && is_mark(token, text))
}

/// Parses one of the words of `T`, and returns its meaning.
pub(crate) fn one_of<T: Worded>(input: Tokens<'_>) -> Parsed<'_, T> {
    for meaning in T::ALL {
        if let Ok((rest, _)) = word(meaning.word())(input) {
            return Ok((rest, *meaning));
        }
    }
    Err(nom::Err::Error(Failed))
}

/// Parses as many as there are, possibly none.
pub(crate) fn many<'a, T>(
    mut parser: impl Parser<Tokens<'a>, Output = T, Error = Failed>,
) -> impl FnMut(Tokens<'a>) -> Parsed<'a, Vec<T>> {
    move |mut input| {
        let mut found = Vec::new();
        loop {
            match parser.parse(input) {
                Ok((behind, one)) => {
                    found.push(one);
                    input = behind;
                }
                Err(nom::Err::Error(_)) => return Ok((input, found)),
                Err(failure) => return Err(failure),
            }
        }
    }
}

/// Parses at least one, with commas between them.
pub(crate) fn with_commas<'a, T: Clone>(
    parser: impl Fn(Tokens<'a>) -> Parsed<'a, T>,
) -> impl FnMut(Tokens<'a>) -> Parsed<'a, Vec<T>> {
    move |input| {
        let (input, first) = parser(input)?;
        let (input, more) = many(preceded(mark(","), cut(&parser)))(input)?;
        Ok((input, [vec![first], more].concat()))
    }
}

/// Parses an unsigned integer literal.
pub(crate) fn number(input: Tokens<'_>) -> Parsed<'_, u64> {
    let (behind, found) = spanned_number(input)?;
    Ok((behind, found.node))
}

pub(crate) fn spanned_number(input: Tokens<'_>) -> Parsed<'_, Spanned<u64>> {
    input.accept(Expected::Number, |token| match token.kind {
        TokenKind::Number(number) => Some(number),
        _ => None,
    })
}

/// Parses a count: a number, or a variable that has one.
pub(crate) fn count(input: Tokens<'_>) -> Parsed<'_, Spanned<Count>> {
    let number = spanned_number.map(|number| number.map(Count::Number));
    let variable = variable.map(|name| name.map(Count::Variable));
    alt((number, variable)).parse(input)
}

/// Parses a time: with a unit, or in a variable.
pub(crate) fn time<'a>(input: Tokens<'a>) -> Parsed<'a, Spanned<Time>> {
    let duration =
        |input: Tokens<'a>| input.accept(Expected::Duration, |token| token.kind.duration().map(Time::Duration));
    let variable = variable.map(|name| name.map(Time::Variable));
    alt((duration, variable)).parse(input)
}

/// Parses `limit COUNT` or `top COUNT`.
pub(crate) fn cut_to(input: Tokens<'_>) -> Parsed<'_, LimitClause> {
    let (behind, which) = one_of(input)?;
    let (behind, rows) = cut(count).parse(behind)?;
    Ok((behind, LimitClause { which, rows }))
}

/// Parses `limit COUNT` or `top COUNT` where the words may also be names.
pub(crate) fn cut_or_name(input: Tokens<'_>) -> Parsed<'_, LimitClause> {
    let (behind, (which, rows)) = (one_of, count).parse(input)?;
    Ok((behind, LimitClause { which, rows }))
}

/// Parses a variable that can be set.
pub(crate) fn variable(input: Tokens<'_>) -> Parsed<'_, Spanned<String>> {
    input.accept(Expected::Variable, |token| {
        let can_be_set = token.kind == TokenKind::Variable && !is_fixed(token.text);
        can_be_set.then(|| token.text.trim_start_matches('$').to_owned())
    })
}
