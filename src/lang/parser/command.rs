//! The name of a command, which may be abbreviated, and the parts that commands have in common: clauses after the
//! arguments; small arguments (formats, settings); raw text; ranges and values, also from pasted rows; and the
//! arguments of user-defined commands and of command files.

use crate::kernel::words::Worded;
use crate::lang::error::{Class, Span, Spanned, SyntaxError};
use crate::lang::expected::Expected;
use crate::lang::expression::{BinaryOperator, Expression, Range, WrittenName, is_fixed};
use crate::lang::lexer::{self, PastedText, Token, TokenKind};
use crate::lang::parser::combinators::{glued, is_mark, mark, one_of, with_commas, word};
use crate::lang::parser::expression::{expression, span, whole};
use crate::lang::parser::input::{Failed, Fault, Language, Notes, Parsed, Syntax, Tokens};
use crate::lang::syntax::{Argument, Format, How, Resolved, Statement, ValueFormat};
use nom::Parser;
use nom::branch::alt;
use nom::combinator::cut;
use nom::sequence::preceded;
use std::rc::Rc;

/// Parses the name of a command, and returns it in full.
pub(crate) fn command_name(input: Tokens<'_>) -> Parsed<'_, Spanned<&'static str>> {
    let language = input.notes.language;
    let (behind, typed) = typed_word(input, Expected::Command)?;
    let first = match language.resolve_first(typed.node) {
        Resolved::One(name) => name,
        Resolved::Ambiguous(candidates) => return input.fault(Fault::Other, ambiguous(&typed, &candidates)),
        Resolved::Unknown => return input.fail(Expected::Command),
    };
    if language.second_words(first).next().is_none() {
        return Ok((behind, Spanned::new(first, typed.at)));
    }
    for second in language.second_words(first) {
        behind.expect(Expected::Word(second));
    }
    let fallback = language.second_words(first).next().map_or(Expected::Command, Expected::Word);
    let (rest, typed) = cut(|input| typed_word(input, fallback)).parse(behind)?;
    let full = |second| language.subcommand(first, second).map_or(first, |syntax| syntax.name.name);
    match language.resolve_second(first, typed.node) {
        Resolved::One(second) => Ok((rest, Spanned::new(full(second), typed.at))),
        Resolved::Ambiguous(candidates) => behind.fault(Fault::Other, ambiguous(&typed, &candidates)),
        Resolved::Unknown => Err(nom::Err::Failure(Failed)),
    }
}

fn typed_word<'a>(input: Tokens<'a>, expected: Expected) -> Parsed<'a, Spanned<&'a str>> {
    let (behind, found) = input.accept(expected, |token| {
        matches!(token.kind, TokenKind::Name | TokenKind::CommandName).then_some(token.text)
    })?;
    input.notes.note_class(Class::Command, found.at);
    Ok((behind, found))
}

fn ambiguous(typed: &Spanned<&str>, candidates: &[&str]) -> SyntaxError {
    SyntaxError {
        at: typed.at,
        message: format!("`{}` is the beginning of several commands", typed.node),
        expected: candidates.iter().map(|name| format!("`{name}`")).collect(),
        hint: None,
        pasted: None,
    }
}

/// Parses the arguments of the command with this name, after `--how` if the command accepts it.
pub(crate) fn arguments<'a>(input: Tokens<'a>, name: &str) -> Parsed<'a, Statement> {
    let Some(Syntax { name, parse }) = input.notes.language.command(name) else {
        return input.fail(Expected::Command);
    };
    // The format of `x` precedes `--how`.
    if name.takes_how && name.name != "x" { with_how(input, parse) } else { parse(input) }
}

/// Parses an optional `--how`, and the arguments after it.
pub(crate) fn with_how<'a>(
    input: Tokens<'a>,
    arguments: impl FnOnce(Tokens<'a>) -> Parsed<'a, Statement>,
) -> Parsed<'a, Statement> {
    let (input, how) = option("--how")(input)?;
    let (behind, statement) = arguments(input)?;
    let statement = match statement {
        Statement::Command(command) if how => Statement::Command(Rc::new(How(command))),
        statement => statement,
    };
    Ok((behind, statement))
}

/// Parses an optional option such as `--how`, and returns whether it is there.
pub(crate) fn option<'a>(option: &'static str) -> impl Fn(Tokens<'a>) -> Parsed<'a, bool> {
    move |input| {
        let is_it = |token: &Token<'_>| (token.kind == TokenKind::Option && token.text == option).then_some(());
        let Ok((behind, found)) = input.accept(Expected::Option(option), is_it) else {
            return Ok((input, false));
        };
        input.notes.note_class(Class::Keyword, found.at);
        Ok((behind, true))
    }
}

/// Raw text, and whether it was in quotes.
pub(crate) struct Raw {
    pub text: String,
    pub is_quoted: bool,
}

/// Splits the tokens at the end of the command, before a pipe, redirection or comment.
pub(crate) fn split_text(input: Tokens<'_>) -> (&[Token<'_>], Tokens<'_>) {
    split_at_first(input, ends_command)
}

/// Returns whether `parser` accepts the whole command. Nothing is recorded.
pub(crate) fn takes_all<T>(input: Tokens<'_>, parser: impl for<'a> Fn(Tokens<'a>) -> Parsed<'a, T>) -> bool {
    let notes = input.notes.fresh();
    parser(Tokens { notes: &notes, ..input }).is_ok_and(|(behind, _)| split_text(behind).0.is_empty())
}

fn ends_command(token: &Token<'_>) -> bool {
    matches!(token.kind, TokenKind::Pipe { .. } | TokenKind::Redirect { .. } | TokenKind::Comment)
}

/// Splits the tokens before the first for which `is_end` is true. Later ones are not examined.
fn split_at_first<'a>(input: Tokens<'a>, is_end: impl Fn(&Token<'a>) -> bool) -> (&'a [Token<'a>], Tokens<'a>) {
    let length = input.rest.iter().position(is_end);
    let (tokens, rest) = input.rest.split_at(length.unwrap_or(input.rest.len()));
    (tokens, Tokens { rest, ..input })
}

/// Parses the end of the arguments.
pub(crate) fn end_of_text(input: Tokens<'_>) -> Parsed<'_, ()> {
    match split_text(input).0 {
        [] => Ok((input, ())),
        _ => Err(nom::Err::Error(super::input::Failed)),
    }
}

/// Parses the rule `raw`: text as typed, or one quoted token without its quotes.
pub(crate) fn raw<'a>(what: Expected) -> impl Fn(Tokens<'a>) -> Parsed<'a, Spanned<Raw>> {
    move |input| {
        let (tokens, behind) = split_text(input);
        if behind.rest.is_empty() {
            note_begun(input, what, tokens);
        }
        take_text(input, what, tokens, behind)
    }
}

/// Parses the rule `path`: raw text up to a blank, or one quoted token without its quotes. An option is not a path, nor
/// is a misspelt one.
pub(crate) fn pattern<'a>(what: Expected) -> impl Fn(Tokens<'a>) -> Parsed<'a, Spanned<String>> {
    move |input| {
        if input.first().is_some_and(|token| matches!(token.kind, TokenKind::Option | TokenKind::OtherOption)) {
            return input.fail(what);
        }
        let (tokens, behind) = up_to_blank(input);
        // After a blank another word has begun.
        if tokens.last().is_some_and(|last| last.at.end == input.notes.line.len()) {
            note_begun(input, what, tokens);
        }
        let (behind, raw) = take_text(input, what, tokens, behind)?;
        Ok((behind, raw.map(|raw| raw.text)))
    }
}

/// Parses a part of a region's name where words of the language are possible too: completion offers both. A word of
/// `clauses` ends the part, even without a blank before it, and does not begin one.
pub(crate) fn part_of_name<'a>(input: Tokens<'a>, clauses: &[&str]) -> Parsed<'a, Spanned<String>> {
    let (tokens, _) = up_to_blank(input);
    let is_clause = |token: &Token<'_>| clauses.contains(&token.text);
    let length = tokens.iter().skip(1).position(is_clause);
    let length = length.map_or(tokens.len(), |before| before + 1);
    let (tokens, rest) = input.rest.split_at(length);
    let behind = Tokens { rest, ..input };
    let may_begin = |token: &Token<'_>| match token.kind {
        TokenKind::Name => !is_clause(token),
        TokenKind::Quoted(_) | TokenKind::Text(_) | TokenKind::Bracketed => true,
        TokenKind::Variable => !is_fixed(token.text),
        _ => token.text == "/",
    };
    if !tokens.first().is_some_and(may_begin) {
        input.fail(Expected::RegionName)
    } else {
        Ok((behind, part(input, tokens).map(|raw| raw.text)))
    }
}

/// Parses the name of a process up to a comma or a blank, or one quoted token without its quotes.
pub(crate) fn part_to_comma(input: Tokens<'_>) -> Parsed<'_, Spanned<String>> {
    let begins = |token: &Token<'_>| match token.kind {
        TokenKind::Number(_) | TokenKind::Name | TokenKind::Quoted(_) | TokenKind::Text(_) => true,
        TokenKind::Variable => !is_fixed(token.text),
        _ => false,
    };
    input.expect(Expected::Process);
    let is_whole = |token: &Token<'_>| matches!(token.kind, TokenKind::Quoted(_) | TokenKind::Text(_));
    let (tokens, behind) = match input.first() {
        Some(token) if is_whole(token) => split_at_first(input, |next| next.at != token.at),
        _ => up_to_blank_or(input, |token| is_mark(token, ",")),
    };
    if !tokens.first().is_some_and(begins) {
        return input.fail(Expected::Process);
    }
    Ok((behind, part(input, tokens).map(|raw| raw.text)))
}

fn up_to_blank(input: Tokens<'_>) -> (&[Token<'_>], Tokens<'_>) {
    up_to_blank_or(input, |_| false)
}

fn up_to_blank_or<'a>(input: Tokens<'a>, is_end: impl Fn(&Token<'a>) -> bool) -> (&'a [Token<'a>], Tokens<'a>) {
    let first = input.rest.first().map(|token| token.at);
    let is_behind_blank = |token: &Token<'_>| !token.is_glued && Some(token.at) != first;
    split_at_first(input, |token| ends_command(token) || is_behind_blank(token) || is_end(token))
}

/// Returns the text of some tokens, at least one.
pub(crate) fn part(input: Tokens<'_>, tokens: &[Token<'_>]) -> Spanned<Raw> {
    let first = tokens.first().map_or(input.place(), |token| token.at);
    let at = first.to(tokens.last().map_or(first, |token| token.at));
    input.notes.note_class(Class::Text, at);
    let raw = match tokens {
        [Token { kind: TokenKind::Quoted(text) | TokenKind::Text(text), .. }] => {
            Raw { text: text.clone(), is_quoted: true }
        }
        _ => match slice(input.notes.line, at) {
            // No name is empty, so these are two tokens.
            empty if empty == "''" => Raw { text: String::new(), is_quoted: true },
            text => Raw { text, is_quoted: false },
        },
    };
    Spanned::new(raw, at)
}

fn take_text<'a>(
    input: Tokens<'a>,
    what: Expected,
    tokens: &[Token<'_>],
    behind: Tokens<'a>,
) -> Parsed<'a, Spanned<Raw>> {
    if tokens.is_empty() {
        return input.fail(what);
    }
    Ok((behind, part(input, tokens)))
}

/// Notes that raw text goes on to the end of the line.
fn note_begun(input: Tokens<'_>, what: Expected, tokens: &[Token<'_>]) {
    if let Some(first) = tokens.first() {
        input.notes.note_raw_text(what, first.at.start);
    }
}

/// Parses the rule `raw`, and returns only its text.
pub(crate) fn raw_text<'a>(what: Expected) -> impl Fn(Tokens<'a>) -> Parsed<'a, Spanned<String>> {
    move |input| {
        let (behind, raw) = raw(what)(input)?;
        Ok((behind, raw.map(|raw| raw.text)))
    }
}

/// `raw_text`, with the blanks at the end of the line.
pub(crate) fn text_to_end<'a>(what: Expected) -> impl Fn(Tokens<'a>) -> Parsed<'a, Spanned<String>> {
    move |input| {
        let (behind, raw) = raw(what)(input)?;
        let blanks = input.notes.line.get(raw.at.end..).filter(|rest| !raw.node.is_quoted && rest.trim().is_empty());
        Ok((behind, raw.map(|raw| raw.text + blanks.unwrap_or_default())))
    }
}

fn slice(line: &str, at: Span) -> String {
    line.get(at.start..at.end).unwrap_or_default().to_owned()
}

/// Parses a clause, if it is there and was not given yet. Returns whether it was parsed.
pub(crate) fn clause<'a, T>(
    input: &mut Tokens<'a>,
    slot: &mut Option<T>,
    parser: impl Fn(Tokens<'a>) -> Parsed<'a, T>,
) -> Result<bool, nom::Err<Failed>> {
    if slot.is_some() {
        return Ok(false);
    }
    match parser(*input) {
        Ok((behind, found)) => {
            *input = behind;
            *slot = Some(found);
            Ok(true)
        }
        Err(nom::Err::Error(_)) => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// Parses a word, and what must follow it.
pub(crate) fn after<'a, T>(
    keyword: &'static str,
    parser: impl Fn(Tokens<'a>) -> Parsed<'a, T>,
) -> impl Fn(Tokens<'a>) -> Parsed<'a, T> {
    move |input| preceded(word(keyword), cut(&parser)).parse(input)
}

/// Adds a hint if one of the words of `T` is here without `with`.
pub(crate) fn hint_at_missing_with<T: Worded>(input: Tokens<'_>) {
    hint_at_missing_with_of(input, |word| T::from_word(word).is_some());
}

/// Adds a hint if a word for which `is` is true is here without `with`.
pub(crate) fn hint_at_missing_with_of(input: Tokens<'_>, is: impl Fn(&str) -> bool) {
    if let Some(word) = input.first().map(|token| token.text).filter(|word| is(word)) {
        input.hint(format!("put `with` before it: `with {word}`"));
    }
}

/// Parses words with commas between them, and keeps each once.
pub(crate) fn list_once<T: Worded + PartialEq>(input: Tokens<'_>) -> Parsed<'_, Vec<T>> {
    each_once(one_of)(input)
}

/// Returns whether the tokens before `behind` are clauses, and not the text of an argument: there are some, and nothing
/// follows `full`.
pub(crate) fn are_clauses(input: Tokens<'_>, behind: Tokens<'_>, is_full: bool) -> bool {
    behind.rest.len() < input.rest.len() && (!is_full || split_text(behind).0.is_empty())
}

/// Parses items with commas between them, and keeps each once.
pub(crate) fn each_once<'a, T: Clone + PartialEq>(
    parser: impl Fn(Tokens<'a>) -> Parsed<'a, T>,
) -> impl Fn(Tokens<'a>) -> Parsed<'a, Vec<T>> {
    move |input| {
        let (behind, kinds) = with_commas(&parser).parse(input)?;
        let mut once = Vec::new();
        for kind in kinds {
            if !once.contains(&kind) {
                once.push(kind);
            }
        }
        Ok((behind, once))
    }
}

/// Parses `/FMT` of `print`: a letter.
pub(crate) fn format(input: Tokens<'_>) -> Parsed<'_, Format> {
    slash(input, Expected::Format, |layout| match layout {
        ValueFormat { count: None, backward: false, format, unit: None } => format,
        _ => None,
    })
}

/// Parses `/UN` of `find`: a size, and the most matches.
pub(crate) fn search(input: Tokens<'_>) -> Parsed<'_, ValueFormat> {
    slash(input, Expected::Search, |layout| {
        let is_search = layout.format.is_none() && !layout.backward;
        is_search.then_some(layout)
    })
}

/// Parses `/NFU` of `x`.
pub(crate) fn layout(input: Tokens<'_>) -> Parsed<'_, ValueFormat> {
    if let Some(place) = instructions(input) {
        let message = "`i` is gdb's format for instructions, which pmdb does not decode".into();
        let error = SyntaxError { at: place, message, expected: Vec::new(), hint: None, pasted: None };
        return input.fault(Fault::Instructions, error);
    }
    slash(input, Expected::Layout, Some)
}

/// Parses a format that `take` accepts.
fn slash<'a, T>(input: Tokens<'a>, expected: Expected, take: impl FnOnce(ValueFormat) -> Option<T>) -> Parsed<'a, T> {
    if let Some(Token { kind: TokenKind::Format(layout), .. }) = input.first() {
        let (behind, found) = input.accept(expected, |_| take(*layout))?;
        return Ok((behind, found.node));
    }
    if !glued(input, "/") {
        return Err(nom::Err::Error(Failed));
    }
    // The error is after the slash.
    let (behind, _) = mark("/")(input)?;
    behind.expect(expected);
    Err(nom::Err::Failure(Failed))
}

/// Returns the place of `/i`, `/5i`, `/-5i` and the like, if it is here.
fn instructions(input: Tokens<'_>) -> Option<Span> {
    let (slash, word) = match input.rest {
        [slash, minus, word, ..] if minus.is_glued && minus.text == "-" => (slash, word),
        [slash, word, ..] => (slash, word),
        _ => return None,
    };
    let letters = word.text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_instruction = is_mark(slash, "/") && word.is_glued && letters.contains('i');
    let short = letters.chars().all(|c| "ibhwg".contains(c));
    (is_instruction && short).then(|| slash.at.to(word.at))
}

/// Words that begin a clause after any pasted row.
const CLAUSES: [&str; 8] = ["where", "by", "limit", "top", "every", "until", "with", "full"];
/// Words that begin a clause only in some commands: rows contain them too, for instance in names of Rust functions.
const RARE_CLAUSES: [&str; 3] = ["for", "count", "as"];

/// Returns whether a clause begins with this word.
pub(crate) fn is_clause(word: &str) -> bool {
    word == "in" || CLAUSES.contains(&word) || RARE_CLAUSES.contains(&word)
}

/// Parses the path of a file for a snapshot. It does not begin with a word of a clause, which may follow a pasted
/// range.
pub(crate) fn snapshot_file(input: Tokens<'_>) -> Parsed<'_, Spanned<String>> {
    if input.rest.first().is_some_and(|token| CLAUSES.contains(&token.text)) {
        return input.accept(Expected::File, |_| None);
    }
    pattern(Expected::File)(input)
}

/// Parses the rule `range`.
pub(crate) fn range(input: Tokens<'_>) -> Parsed<'_, Spanned<Range>> {
    input.expect(Expected::Range);
    alt((pasted_row(&[]), span)).parse(input)
}

/// Parses the rule `watched`.
pub(crate) fn watched(input: Tokens<'_>) -> Parsed<'_, Spanned<Range>> {
    input.expect(Expected::Range);
    alt((pasted_row(&RARE_CLAUSES), span)).parse(input)
}

/// Parses the rule `address`.
pub(crate) fn address(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    alt((pasted_row(&[]).map_opt(start), expression)).parse(input)
}

/// Parses the rule `value`.
pub(crate) fn value(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    alt((pasted_row(&RARE_CLAUSES).map_opt(start), expression)).parse(input)
}

/// Returns the start of a pasted range.
fn start(range: Spanned<Range>) -> Option<Spanned<Expression>> {
    match range.node {
        Range::Span { start, .. } | Range::Length { start, .. } => Some(start),
        Range::Expression(expression) => Some(Spanned::new(expression, range.at)),
        Range::All => None,
    }
}

/// Parses a pasted row to a range. The rest of the row is skipped, up to a clause.
fn pasted_row<'a>(words: &'static [&'static str]) -> impl Fn(Tokens<'a>) -> Parsed<'a, Spanned<Range>> {
    move |input| {
        let (behind, range) = row(input)?;
        Ok((behind_row(behind, words), range))
    }
}

/// Returns the tokens after a pasted row: the clauses of the command.
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

/// Parses the token `PASTED_ROW`.
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

/// Makes the expression of a symbol in a row, plus an offset.
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

/// Parses a value, or `A..B`.
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

/// Parses a text as one argument, with all its blanks; `None` if it is empty.
pub(crate) fn argument_of_text(language: Language, text: &str) -> Option<Spanned<Argument>> {
    let tokens = lexer::tokens(language, text);
    argument(&tokens, &Notes::new(language, text, tokens.len()))
}

/// Parses the arguments up to the end of the command, separated by blanks outside parentheses.
pub(crate) fn arguments_of(input: Tokens<'_>) -> Vec<Spanned<Argument>> {
    let (mut rest, _) = split_text(input);
    let mut arguments = Vec::new();
    while !rest.is_empty() {
        let (group, behind) = rest.split_at(length(rest));
        arguments.extend(argument(group, input.notes));
        rest = behind;
    }
    arguments
}

/// Returns the number of tokens in the first argument.
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

/// Makes an argument: a range or an expression if all of it is one, otherwise text.
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
