//! The input of nom's combinators: tokens, and the notes that all attempts at parsing a line share.

use std::cell::{Cell, RefCell};

use bitflags::bitflags;
use nom::branch::alt;
use nom::combinator::cut;
use nom::error::{ErrorKind, ParseError};
use nom::sequence::preceded;
use nom::{IResult, Parser};

use crate::kernel::words::Worded;
use crate::lang::class::Class;
use crate::lang::error::SyntaxError;
use crate::lang::expected::Expected;
use crate::lang::expression::is_fixed;
use crate::lang::field::Subject;
use crate::lang::lexer::{Token, TokenKind};
use crate::lang::span::{Span, Spanned};
use crate::lang::syntax::{Count, Cut, Time};

/// Nesting deeper than this is an error: no line may exhaust the stack, in the parser or in code that walks the tree.
pub(super) const DEEPEST_NESTING: usize = 64;
/// More operators than this in a line are an error: a chain of them is a tree as deep as it is long.
pub(super) const MOST_OPERATORS: usize = 256;

/// What the attempts at parsing one line share.
///
/// nom drops the error of a missing optional part, and with it what could have stood there. So every failing token
/// notes here what was expected, and the notes of the furthest token are kept.
pub(super) struct Notes<'a> {
    pub line: &'a str,
    /// The number of tokens, which is the position of the end of the line.
    tokens: usize,
    furthest: RefCell<(usize, Vec<Expected>)>,
    fault: RefCell<Option<SyntaxError>>,
    depth: Cell<usize>,
    operators: Cell<usize>,
    raw_text: Cell<Option<(Expected, usize)>>,
    classes: RefCell<Vec<Spanned<Class>>>,
}

impl<'a> Notes<'a> {
    pub(super) fn new(line: &'a str, tokens: usize) -> Self {
        Notes {
            line,
            tokens,
            furthest: RefCell::default(),
            fault: RefCell::default(),
            depth: Cell::default(),
            operators: Cell::default(),
            raw_text: Cell::default(),
            classes: RefCell::default(),
        }
    }

    /// The tokens, all still to be parsed.
    pub(super) fn input(&'a self, tokens: &'a [Token<'a>]) -> Tokens<'a> {
        Tokens { rest: tokens, scope: Scope::Value, notes: self }
    }

    /// The furthest token that could not be taken, and what could have been.
    pub(super) fn furthest(&self) -> (usize, Vec<Expected>) {
        self.furthest.borrow().clone()
    }

    /// An error with a message of its own.
    pub(super) fn fault(&self) -> Option<SyntaxError> {
        self.fault.borrow().clone()
    }

    /// The raw text that goes up to the end of the line: what it is, and where it starts.
    pub(super) fn raw_text(&self) -> Option<(Expected, usize)> {
        self.raw_text.get()
    }

    /// What words were taken for, in the order of parsing.
    pub(super) fn classes(&self) -> Vec<Spanned<Class>> {
        self.classes.borrow().clone()
    }

    pub(super) fn note_class(&self, class: Class, at: Span) {
        self.classes.borrow_mut().push(Spanned::new(class, at));
    }

    pub(super) fn note_raw_text(&self, what: Expected, start: usize) {
        self.raw_text.set(Some((what, start)));
    }
}

/// What the bare words of an expression are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Symbols, regions and modules.
    Value,
    /// Fields, where a filter needs a part of one of these types.
    Filter(Subject, Types),
}

bitflags! {
    /// What a part of a filter may be.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct Types: u8 {
        /// True or false: `dirty`, `mapcount > 1`.
        const CONDITION = 1;
        /// Computed of fields and values.
        const NUMBER = 2;
        /// What text fields hold.
        const TEXT = 4;
    }
}

/// The tokens that are still to be parsed.
#[derive(Clone, Copy)]
pub(super) struct Tokens<'a> {
    pub rest: &'a [Token<'a>],
    pub scope: Scope,
    pub notes: &'a Notes<'a>,
}

/// The result of a parser over tokens.
pub(super) type Parsed<'a, T> = IResult<Tokens<'a>, T, Failed>;

/// An attempt has failed; [`Notes`] knows where and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failed;

impl ParseError<Tokens<'_>> for Failed {
    fn from_error_kind(_: Tokens<'_>, _: ErrorKind) -> Self {
        Failed
    }
    fn append(_: Tokens<'_>, _: ErrorKind, other: Self) -> Self {
        other
    }
}

impl<'a> Tokens<'a> {
    pub(super) fn first(&self) -> Option<&'a Token<'a>> {
        self.rest.first()
    }

    /// Where the next token stands, or the end of the line.
    pub(super) fn place(&self) -> Span {
        let end = self.notes.line.trim_end().len();
        self.first().map_or(Span::new(end, end), |token| token.at)
    }

    /// Notes that `expected` could have stood here.
    pub(super) fn expect(&self, expected: Expected) {
        let position = self.notes.tokens - self.rest.len();
        let mut furthest = self.notes.furthest.borrow_mut();
        if position > furthest.0 {
            *furthest = (position, Vec::new());
        }
        if position == furthest.0 && !furthest.1.contains(&expected) {
            furthest.1.push(expected);
        }
    }

    /// Notes that an operand could have stood here.
    pub(super) fn expect_operand(&self) {
        let expected = match self.scope {
            Scope::Value => vec![Expected::Expression],
            Scope::Filter(_, Types::TEXT) => vec![Expected::QuotedText, Expected::Variable],
            Scope::Filter(subject, types) => {
                let condition = types.contains(Types::CONDITION).then(|| subject.condition());
                condition.into_iter().chain([subject.quantity()]).collect()
            }
        };
        expected.into_iter().for_each(|one| self.expect(one));
    }

    /// Takes the next token as an operand if `take` accepts it.
    pub(super) fn accept_operand<T>(self, take: impl FnOnce(&'a Token<'a>) -> Option<T>) -> Parsed<'a, Spanned<T>> {
        let taken = self.rest.split_first().and_then(|(token, rest)| Some((take(token)?, token.at, rest)));
        match taken {
            Some((found, at, rest)) => Ok((Tokens { rest, ..self }, Spanned::new(found, at))),
            None => {
                self.expect_operand();
                Err(nom::Err::Error(Failed))
            }
        }
    }

    /// The same tokens in another scope.
    pub(super) fn within(self, scope: Scope) -> Self {
        Tokens { scope, ..self }
    }

    /// What `parse` makes of the tokens in another scope.
    pub(super) fn parsed_within<T>(
        self,
        scope: Scope,
        parse: impl FnOnce(Tokens<'a>) -> Parsed<'a, T>,
    ) -> Parsed<'a, T> {
        let (behind, parsed) = parse(self.within(scope))?;
        Ok((behind.within(self.scope), parsed))
    }

    /// Fails because `expected` should have stood here.
    pub(super) fn fail<T>(self, expected: Expected) -> Parsed<'a, T> {
        self.expect(expected);
        Err(nom::Err::Error(Failed))
    }

    /// Fails for good, with an error of its own.
    pub(super) fn fault<T>(self, fault: SyntaxError) -> Parsed<'a, T> {
        self.notes.fault.borrow_mut().get_or_insert(fault);
        Err(nom::Err::Failure(Failed))
    }

    /// Takes the next token if `take` accepts it.
    pub(super) fn accept<T>(
        self,
        expected: Expected,
        take: impl FnOnce(&'a Token<'a>) -> Option<T>,
    ) -> Parsed<'a, Spanned<T>> {
        match self.rest.split_first() {
            Some((token, rest)) => match take(token) {
                Some(found) => Ok((Tokens { rest, ..self }, Spanned::new(found, token.at))),
                None => self.fail(expected),
            },
            None => self.fail(expected),
        }
    }

    /// One level of nesting around `inside`.
    pub(super) fn nested<T>(self, inside: impl FnOnce() -> Parsed<'a, T>) -> Parsed<'a, T> {
        let depth = self.notes.depth.get();
        if depth >= DEEPEST_NESTING {
            return self.too_much(format!("nested more than {DEEPEST_NESTING} levels deep"));
        }
        self.notes.depth.set(depth + 1);
        let result = inside();
        self.notes.depth.set(depth);
        result
    }

    /// Counts an operator.
    pub(super) fn count_operator(self) -> Parsed<'a, ()> {
        let count = self.notes.operators.get() + 1;
        self.notes.operators.set(count);
        if count <= MOST_OPERATORS {
            return Ok((self, ()));
        }
        self.too_much(format!("more than {MOST_OPERATORS} operators in one line"))
    }

    fn too_much<T>(self, message: String) -> Parsed<'a, T> {
        self.fault(SyntaxError {
            at: self.place(),
            message,
            expected: vec!["a simpler expression".into()],
            hint: Some("give a part of it a name: set $part = …".into()),
        })
    }
}

/// Exactly this word.
pub(super) fn word<'a>(word: &'static str) -> impl Fn(Tokens<'a>) -> Parsed<'a, Span> {
    move |input| {
        let wanted = |token: &Token<'_>| (token.kind == TokenKind::Name && token.text == word).then_some(());
        let (rest, found) = input.accept(Expected::Word(word), wanted)?;
        input.notes.note_class(Class::Keyword, found.at);
        Ok((rest, found.at))
    }
}

/// Exactly this mark.
pub(super) fn mark<'a>(mark: &'static str) -> impl Fn(Tokens<'a>) -> Parsed<'a, Span> {
    move |input| {
        let (rest, found) = input.accept(Expected::Mark(mark), |token| is_mark(token, mark).then_some(()))?;
        Ok((rest, found.at))
    }
}

/// This mark. A failure is not noted, because the caller notes what could stand here.
pub(super) fn silent_mark<'a>(mark: &'static str) -> impl Fn(Tokens<'a>) -> Parsed<'a, Span> {
    silent(move |token| is_mark(token, mark))
}

/// This word; a failure is not noted.
pub(super) fn silent_word<'a>(word: &'static str) -> impl Fn(Tokens<'a>) -> Parsed<'a, Span> {
    silent(move |token| token.kind == TokenKind::Name && token.text == word)
}

fn silent<'a>(wanted: impl Fn(&Token<'_>) -> bool) -> impl Fn(Tokens<'a>) -> Parsed<'a, Span> {
    move |input| match input.rest.split_first() {
        Some((token, rest)) if wanted(token) => Ok((Tokens { rest, ..input }, token.at)),
        _ => Err(nom::Err::Error(Failed)),
    }
}

/// Whether the token is this mark.
pub(super) fn is_mark(token: &Token<'_>, mark: &str) -> bool {
    token.kind == TokenKind::Mark && token.text == mark
}

/// Whether the next token is this mark with nothing before it.
pub(super) fn glued(input: Tokens<'_>, text: &str) -> bool {
    input.first().is_some_and(|token| token.glued && is_mark(token, text))
}

/// One of these words, with what it stands for.
pub(super) fn one_of<T: Worded>(input: Tokens<'_>) -> Parsed<'_, T> {
    for meaning in T::ALL {
        if let Ok((rest, _)) = word(meaning.word())(input) {
            return Ok((rest, *meaning));
        }
    }
    Err(nom::Err::Error(Failed))
}

/// As many as stand here, also none.
pub(super) fn many<'a, T>(
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

/// At least one, with commas between them.
pub(super) fn with_commas<'a, T: Clone>(
    parser: impl Fn(Tokens<'a>) -> Parsed<'a, T>,
) -> impl FnMut(Tokens<'a>) -> Parsed<'a, Vec<T>> {
    move |input| {
        let (input, first) = parser(input)?;
        let (input, more) = many(preceded(mark(","), cut(&parser)))(input)?;
        Ok((input, [vec![first], more].concat()))
    }
}

/// A number, as a count.
pub(super) fn number(input: Tokens<'_>) -> Parsed<'_, u64> {
    let (behind, found) = spanned_number(input)?;
    Ok((behind, found.node))
}

pub(super) fn spanned_number(input: Tokens<'_>) -> Parsed<'_, Spanned<u64>> {
    input.accept(Expected::Number, |token| match token.kind {
        TokenKind::Number(number) => Some(number),
        _ => None,
    })
}

/// A count: a number, or a variable that holds one.
pub(super) fn count(input: Tokens<'_>) -> Parsed<'_, Spanned<Count>> {
    let number = spanned_number.map(|number| number.map(Count::Number));
    let variable = variable.map(|name| name.map(Count::Variable));
    alt((number, variable)).parse(input)
}

/// A time: with a unit, in seconds without one, or in a variable.
pub(super) fn time<'a>(input: Tokens<'a>) -> Parsed<'a, Spanned<Time>> {
    let duration =
        |input: Tokens<'a>| input.accept(Expected::Duration, |token| token.kind.duration().map(Time::Duration));
    let variable = variable.map(|name| name.map(Time::Variable));
    alt((duration, variable)).parse(input)
}

/// `limit COUNT`, `top COUNT`
pub(super) fn cut_to(input: Tokens<'_>) -> Parsed<'_, Cut> {
    let (behind, which) = one_of(input)?;
    let (behind, rows) = cut(count).parse(behind)?;
    Ok((behind, Cut { which, rows }))
}

/// A variable that can be set.
pub(super) fn variable(input: Tokens<'_>) -> Parsed<'_, Spanned<String>> {
    input.accept(Expected::Variable, |token| {
        let can_be_set = token.kind == TokenKind::Variable && !is_fixed(token.text);
        can_be_set.then(|| token.text.trim_start_matches('$').to_owned())
    })
}
