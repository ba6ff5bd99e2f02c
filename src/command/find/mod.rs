//! `find[/UN] RANGE, PATTERN, … [in heap live] [where FILTER]`: where bytes stand in memory.

mod live;
mod records;

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use super::named_pages::names_in;
use super::rows::{self, SweepEnd, finish, say_undecided};
use super::translate;
use crate::eval::{self, Integer, Value};
use crate::hint;
use crate::inspect::find::{MemorySearch, SearchedMemory};
use crate::inspect::{AddressSpace, Question};
use crate::lang::display;
use crate::lang::parser::{
    Parsed, TokenKind, Tokens, after, clause, expression, filter, is_mark, mark, search, silent_mark, span_with,
    with_commas, word,
};
use crate::lang::{
    BinaryOperator, Expected, Expression, FilterExpression, PageField, Range, Spanned, UnaryOperator, Unit, ValueFormat,
};
use crate::process::{self, Target};
#[cfg(test)]
use crate::render::Record;
use crate::render::Sink;
use crate::report::{EveryState, Shape};
use nom::Parser;
use nom::combinator::{cut, opt};
use nom::sequence::preceded;
use records::{FindSummary, Match};
use std::fmt::{self, Formatter};

/// `find[/UN] RANGE, PATTERN, … [in heap live] [where FILTER]`
#[derive(Debug)]
pub struct Find {
    /// The size of numbers, and the most matches.
    layout: ValueFormat,
    /// Where to look.
    range: Spanned<Range>,
    /// What to look for, one behind the other; at least one.
    patterns: Vec<Spanned<Pattern>>,
    /// Whether matches count only in chunks in use.
    in_chunks: bool,
    /// In which pages; all if absent.
    filter: Option<Spanned<FilterExpression<PageField>>>,
}

/// A part of what `find` looks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// A number in the target's byte order, or the bytes of a text.
    Value(Expression),
    /// Bytes as they lie in memory.
    Bytes(Vec<u8>),
}

impl Command for Find {
    const RECORDS: &'static [Shape] = records::RECORDS;

    const ABOUT: About = About {
        name: CommandName::new("find").displayed(),
        group: Group::Memory,
        summary: "search memory for bytes",
        text: "\
Searches the resident pages of a range for a sequence of values. Matches may overlap.

  RANGE         A..B or A, +LENGTH, a region, a symbol with a size, or all
  VALUE         a number in the target's byte order, the bytes of a \"text\" (without a zero at its end), or \
                hex\"bytes\"
  /N            stop after N matches
  /U            the size of a number: b 1, h 2, w 4, g 8 bytes
  where FILTER  only pages that match, as in walk; the last line counts only those
  in heap live  only matches that lie in one chunk in use of glibc's malloc

Without /U a number has 4 bytes, or 8 if it does not fit; with a cast it has those of the type. An address has the \
size of a pointer. $_ is the last match, $numfound the number of matches. For gdb's `find A, B, VALUE` write `find A..B, VALUE`.

Chunks are found before the search, as `heap` finds them. Chunks that were freed and kept in tcache or a fastbin count as in use.

Does not touch pages that are not resident. The last line counts them by state. A page of a file or of shared memory \
that is only in the page cache is searched there (marked: file), without faulting it in. The kernel marks pages that \
are read as used: the flags referenced, active and idle of their frames may change.",
        examples: &[
            example("find [stack], \"PATH=\"", "search the stack for a text"),
            example("find/b demo_buffer, 1, 2", "search for two consecutive bytes"),
            example("find/g1 all, demo_buffer", "find the first pointer to a buffer, anywhere"),
            example("find all, \"demo\" where writable", "search only writable pages"),
            example("find all, \"key\" in heap live", "search what the program has from malloc, without freed memory"),
            example("find demo_buffer, +4p, hex\"7f 45 4c 46\"", "search for bytes in hexadecimal"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        records::samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (input, layout) = opt(search).parse(input)?;
        let (input, range) = span_with(input, length)?;
        let (input, patterns) = cut(preceded(mark(","), with_commas(pattern))).parse(input)?;
        let (mut input, mut chunks, mut where_) = (input, None, None);
        while clause(&mut input, &mut chunks, after("in", heap_live))?
            || clause(&mut input, &mut where_, after("where", filter))?
        {}
        let layout = layout.unwrap_or_default();
        Ok((input, Find { layout, range, patterns, in_chunks: chunks.is_some(), filter: where_ }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.layout, self.range.node)?;
        self.patterns.iter().try_for_each(|pattern| write!(f, ", {}", pattern.node))?;
        display::word_if(f, self.in_chunks, "in heap live")?;
        display::clause(f, "where", self.filter.as_ref().map(|filter| &filter.node))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let layout = self.layout;
        let target = context.target()?;
        if layout.count == Some(0) {
            return Err(Error::nothing_counted("find/0"));
        }
        if let [only] = self.patterns.as_slice()
            && let Pattern::Value(Expression::Unary { operator, .. }) = &only.node
            && operator.node == UnaryOperator::Plus
        {
            let error = eval::Error::new(only.at, "this is a length, and the value to search for is missing");
            return Err(error.hint("write `find A, +LENGTH, VALUE`").into());
        }
        if let Some(error) = self.range_of_gdb(context) {
            return Err(error.into());
        }
        let hint = "write `find A..B, VALUE` or `find A, +LENGTH, VALUE`";
        let spans = eval::subject(&self.range, context.state)?.spans(self.range.at, hint)?;
        let mut wanted = Vec::new();
        for pattern in &self.patterns {
            wanted.extend(bytes(pattern, layout, context, &target)?);
        }
        if wanted.is_empty() || wanted.len() > LONGEST {
            let message = match wanted.len() {
                0 => "no bytes to search for".to_owned(),
                _ => format!("more than {LONGEST} bytes to search for"),
            };
            return Err(Error::Refused { message, hint: None });
        }
        let space = AddressSpace::in_ranges(&target, spans.ranges())?;
        let filter = self.filter.as_ref().map(|filter| eval::page_filter(filter, &space, context.state)).transpose()?;
        let search = space.find(spans.ranges(), Question::new(filter.as_ref(), spans.holes()), &wanted)?;
        let search = if self.in_chunks { search.in_chunks(live::chunks(&target, context)?) } else { search };
        let matches = search_memory(context, &space, search.limit(layout.count.unwrap_or(u64::MAX)))?;
        if matches == 0 && layout.unit.is_none() && self.patterns.iter().any(is_like_byte) {
            context
                .sink
                .note("a number that fits a byte was searched as 4 bytes: `find/b` searches for single bytes")?;
        }
        Ok(Flow::Done)
    }
}

/// Shows the matches and the totals. Returns how many matches there are.
fn search_memory(context: &mut Context, space: &AddressSpace, search: MemorySearch) -> Result<u64, Error> {
    let (state, sink) = (&mut *context.state, &mut *context.sink);
    let names = names_in(space, &state.symbols);
    let mut search = search.with_budget(sink.budget());
    let mut last = None;
    let stopped = rows::pull(
        sink,
        "pages",
        || search.next(),
        |found, sink| {
            last = Some(found.address);
            Ok(sink.emit(&Match {
                address: found.address,
                symbol: translate::brief(&names, found.address),
                region: space.viewed_region(found.address).map(|viewed| (&viewed.region).into()),
                source: found.source,
            })?)
        },
    );
    let matches = search.matches();
    state.variables.insert("numfound".to_owned(), Value::Integer(Integer::from(matches)));
    state.last_address = last;
    let stopped = stopped?;
    let cut_short = search.is_enough() || stopped.is_some();
    let summary = FindSummary { cut_short, ..summary(search.finish()?, sink)? };
    finish(&summary, stopped, sink)?;
    Ok(matches)
}

/// The totals, and notes of what is uncertain.
fn summary(found: SearchedMemory, sink: &mut dyn Sink) -> Result<FindSummary, Error> {
    let SearchedMemory { matches, outside, unclear, searched, unread, cached, cache_unread, missing, pages, .. } =
        found;
    let mut summary = FindSummary {
        matches,
        not_live: outside,
        live_unclear: unclear,
        searched,
        unread,
        cached,
        ..FindSummary::default()
    };
    summary.cache_unread = cache_unread.pages();
    let mut undecided = None;
    if let Some(pages) = pages {
        summary.states = EveryState(pages.totals.states().map());
        let ended = SweepEnd::of(pages, None);
        ended.say_uncertain(sink)?;
        summary.undecided = say_undecided(&ended.selection.undecided, "page", sink)?.pages;
        undecided = ended.selection.undecided.reason();
    }
    let reasons = [("unread", missing), ("cache_unread", cache_unread.reason()), ("undecided", undecided)];
    let known = reasons.iter().filter_map(|(field, reason)| Some((*field, reason.as_ref()?)));
    known.for_each(|(field, reason)| summary.why.note(field, reason));
    Ok(summary)
}

impl Find {
    /// The error of `find A, A + LENGTH, VALUE`, which is gdb's: here A is all of the range, if it has a size.
    fn range_of_gdb(&self, context: &Context) -> Option<eval::Error> {
        let (Range::Expression(start), [end, values @ ..]) = (&self.range.node, self.patterns.as_slice()) else {
            return None;
        };
        let Pattern::Value(Expression::Binary { operator, left, right }) = &end.node else {
            return None;
        };
        if operator.node != BinaryOperator::Add || left.node != *start || values.is_empty() {
            return None;
        }
        // A variable of the program stands for its address here, and for its contents in gdb.
        let first = match eval::value(&self.range, context.state) {
            Ok(Value::Symbol(_)) => hint::pointer_to("char", &start.to_string()),
            Ok(Value::Range(_)) => start.to_string(),
            _ => return None,
        };
        let values: Vec<String> = values.iter().map(|value| value.node.to_string()).collect();
        let message = format!("`{start}` is the range to search here, and `{}` a value", end.node);
        let error = eval::Error::new(end.at, message);
        let layout = self.layout;
        Some(error.hint(format!(
            "put a plus before a length: `find{layout} {first}, +{}, {}`",
            right.node,
            values.join(", ")
        )))
    }
}

/// A `, +` may also begin the first pattern: it is a length only if another comma follows.
fn length(input: Tokens<'_>) -> Parsed<'_, Option<Spanned<Expression>>> {
    let length = preceded((silent_mark(","), silent_mark("+")), expression).parse(input);
    match length {
        Ok((behind, length)) if behind.first().is_some_and(|next| is_mark(next, ",")) => Ok((behind, Some(length))),
        _ => Ok((input, None)),
    }
}

/// `"heap" "live"`
fn heap_live(input: Tokens<'_>) -> Parsed<'_, ()> {
    preceded(word("heap"), word("live")).map(|_| ()).parse(input)
}

/// `sought`
fn pattern(input: Tokens<'_>) -> Parsed<'_, Spanned<Pattern>> {
    let bytes = input.accept(Expected::Pattern, |token| match &token.kind {
        TokenKind::HexBytes(bytes) => Some(Pattern::Bytes(bytes.clone())),
        _ => None,
    });
    match bytes {
        Ok(found) => Ok(found),
        Err(_) => {
            let (behind, value) = expression(input)?;
            Ok((behind, value.map(Pattern::Value)))
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Value(value) => {
                let text = value.to_string();
                // Behind a comma a plus would begin a length.
                if text.starts_with('+') { write!(f, "({text})") } else { f.write_str(&text) }
            }
            Pattern::Bytes(bytes) => {
                f.write_str("hex\"")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("\"")
            }
        }
    }
}

/// The most bytes of a search.
const LONGEST: usize = 64 << 10;

/// The bytes of a pattern.
fn bytes(
    pattern: &Spanned<Pattern>,
    layout: ValueFormat,
    context: &Context,
    target: &Target,
) -> Result<Vec<u8>, Error> {
    let expression = match &pattern.node {
        Pattern::Bytes(bytes) => return Ok(bytes.clone()),
        Pattern::Value(expression) => Spanned::new(expression.clone(), pattern.at),
    };
    let value = eval::evaluate(&expression, context.state).map_err(|error| with_quotes(error, &expression.node))?;
    let words = target.process.layout();
    if let Value::Text(text) = &value {
        return Ok(text.clone().into_bytes());
    }
    if let Value::Float(float) = value {
        return Ok(words.bytes(float.bits(), float.bytes()));
    }
    let number = eval::integer(&expression, context.state)?.get();
    let usual = match value {
        Value::Address(_) | Value::Pointer { .. } | Value::Symbol(_) => words.pointer_bytes,
        Value::Typed(typed) => typed.bytes(),
        _ if fits(number, 4) => 4,
        _ => 8,
    };
    let size = layout.unit.map_or(usual, Unit::bytes);
    if !fits(number, size) {
        let noun = if size == 1 { "byte" } else { "bytes" };
        let message = format!("{number} does not fit {size} {noun}");
        let error = eval::Error::new(pattern.at, message);
        let larger = [(2, 'h'), (4, 'w'), (8, 'g')].into_iter().find(|(bytes, _)| fits(number, *bytes));
        return Err(match larger {
            None => error,
            Some((bytes, letter)) => error.hint(format!("for {bytes} bytes, put {letter} after the slash")),
        }
        .into());
    }
    Ok(process::WordLayout::bytes(words, number as u64, size))
}

/// A number that one byte can hold, and that was written without a type.
fn is_like_byte(pattern: &Spanned<Pattern>) -> bool {
    matches!(pattern.node, Pattern::Value(Expression::Integer(number)) if fits(number, 1))
}

/// Adds a hint to an unknown name, which is probably meant as text.
fn with_quotes(error: eval::Error, pattern: &Expression) -> eval::Error {
    match pattern {
        Expression::Name(word) if error.cause.is_none() => {
            let quotes = format!("text needs double quotes: `\"{}\"`", word.0);
            let hint = match &error.hint {
                Some(meant) if meant.starts_with("did you mean") || meant.starts_with("a hexadecimal") => {
                    format!("{quotes}; {meant}")
                }
                _ => quotes,
            };
            error.hint(hint)
        }
        _ => error,
    }
}

/// Whether a number fits so many bytes, signed or unsigned.
fn fits(number: i128, bytes: u8) -> bool {
    let bits = 8 * u32::from(bytes);
    (-(1i128 << (bits - 1))..1i128 << bits).contains(&number)
}
