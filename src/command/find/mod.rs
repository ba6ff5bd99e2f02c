//! `find[/UN] RANGE, PATTERN, …`: where bytes stand in memory.

mod records;

use super::named_pages::names_in;
use super::rows::{self, PageSweep, finish, say_undecided, stop_of_sweep};
use super::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example, translate};
use crate::eval::{self, Integer, Spans, Value};
use crate::hint;
use crate::inspect::{self, AFTER_END, AddressSpace, ByteSource, Evidence, MemoryReader, Question};
use crate::kernel::{AddressRange, Kind, State, VirtualAddress};
use crate::lang::display::clause;
use crate::lang::parser::{
    Parsed, TokenKind, Tokens, expression, is_mark, mark, page_filter, search, silent_mark, span_with, with_commas,
};
use crate::lang::{
    BinaryOperator, Expected, Expression, FilterExpression, PageField, Range, Spanned, UnaryOperator, Unit, ValueFormat,
};
use crate::process::{self, Target};
#[cfg(test)]
use crate::render::Record;
use crate::render::Sink;
use crate::report::{EveryState, PagesByReason, Reason, Shape};
use crate::symbol;
use memchr::memmem::Finder;
use nom::Parser;
use nom::combinator::{cut, opt};
use nom::sequence::preceded;
use records::{FindSummary, Match};
use std::fmt::{self, Formatter};

/// `find[/UN] RANGE, PATTERN, …`
#[derive(Debug)]
pub struct Find {
    /// The size of numbers, and the most matches.
    layout: ValueFormat,
    /// Where to look.
    range: Spanned<Range>,
    /// What to look for, one behind the other; at least one.
    patterns: Vec<Spanned<Pattern>>,
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

Without /U a number has 4 bytes, or 8 if it does not fit; with a cast it has those of the type. An address has the \
size of a pointer. $_ is the last match, $numfound the number of matches. For gdb's `find A, B, VALUE` write `find A..B, VALUE`.

Does not touch pages that are not resident. The last line counts them by state. A page of a file or of shared memory \
that is only in the page cache is searched there (marked: file), without faulting it in. The kernel marks pages that \
are read as used: the flags referenced, active and idle of their frames may change.",
        examples: &[
            example("find [stack], \"PATH=\"", "search the stack for a text"),
            example("find/b demo_buffer, 1, 2", "search for two consecutive bytes"),
            example("find/g1 all, demo_buffer", "find the first pointer to a buffer, anywhere"),
            example("find all, \"demo\" where writable", "search only writable pages"),
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
        let (input, filter) = page_filter(input)?;
        Ok((input, Find { layout: layout.unwrap_or_default(), range, patterns, filter }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.layout, self.range.node)?;
        self.patterns.iter().try_for_each(|pattern| write!(f, ", {}", pattern.node))?;
        clause(f, "where", self.filter.as_ref().map(|filter| &filter.node))
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
        let space = AddressSpace::within(&target, spans.ranges())?;
        let filter = self.filter.as_ref().map(|filter| eval::page_filter(filter, &space, context.state)).transpose()?;
        let mut search = MemorySearch {
            symbols: names_in(&space, &context.state.symbols),
            space: &space,
            finder: Finder::new(&wanted),
            reader: MemoryReader::default(),
            buffer: Vec::new(),
            filled: 0,
            next: None,
            last: None,
            most: layout.count.unwrap_or(u64::MAX),
            of_file: Vec::new(),
            cache_unread: PagesByReason::default(),
            missing: None,
            has_memory: false,
            summary: FindSummary::default(),
        };
        let ended = search.through(&spans, filter.as_ref(), context.sink);
        let (matches, last) = (search.summary.matches, search.last);
        drop(search);
        let count = Value::Integer(Integer::from(matches));
        context.state.variables.insert("numfound".to_owned(), count);
        context.state.last_address = last;
        ended?;
        if matches == 0 && layout.unit.is_none() && self.patterns.iter().any(is_like_byte) {
            context
                .sink
                .note("a number that fits a byte was searched as 4 bytes: `find/b` searches for single bytes")?;
        }
        Ok(Flow::Done)
    }
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

/// Bytes that are read at a time.
const CHUNK: usize = 1 << 20;

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

/// Adds a part of memory to those before it. Neighbours are one, so that they are read together.
fn add_part(parts: &mut Vec<(AddressRange, ByteSource)>, part: AddressRange, source: ByteSource) {
    if let Some((last, of_last)) = parts.last_mut()
        && (last.end(), *of_last) == (part.start(), source)
        && let Some(together) = AddressRange::new(last.start(), part.end())
    {
        *last = together;
    } else {
        parts.push((part, source));
    }
}

/// One search.
struct MemorySearch<'a> {
    space: &'a AddressSpace,
    symbols: symbol::TargetSymbols<'a>,
    finder: Finder<'a>,
    reader: MemoryReader,
    /// In its first `filled` bytes are the last ones up to `next`: a match may begin in them that goes on after `next`.
    buffer: Vec<u8>,
    filled: usize,
    /// Where the filled part of the buffer ends.
    next: Option<VirtualAddress>,
    last: Option<VirtualAddress>,
    most: u64,
    /// The parts of the buffer that come from the page cache.
    of_file: Vec<AddressRange>,
    /// Pages of the page cache that could not be read.
    cache_unread: PagesByReason,
    /// Why the first page that a capture or a core lacks was not read.
    missing: Option<process::Error>,
    /// Whether memory was read that not every capture has, as it has that of the vdso.
    has_memory: bool,
    summary: FindSummary,
}

impl MemorySearch<'_> {
    /// Searches all resident pages.
    fn through(&mut self, spans: &Spans, filter: Option<&inspect::Filter>, sink: &mut dyn Sink) -> Result<(), Error> {
        let process = &self.space.target().process;
        if !process.has_page_map() && filter.is_none() {
            return self.all_memory(spans, sink);
        }
        let need = spans.holes() | Evidence::CONTENT;
        let question = Question::new(filter, need);
        let ended =
            rows::sweep(self.space, spans.ranges(), question, sink, |sweep, sink| self.pages(sweep, spans, sink))?;
        let mut summary = self.summary.clone();
        self.refuse_nothing(&mut summary)?;
        if let Some(reason) = self.cache_unread.reason() {
            summary.why.note("cache_unread", &reason);
        }
        summary.cache_unread = self.cache_unread.pages();
        summary.cut_short = self.is_enough() || ended.stopped.is_some();
        summary.states = EveryState(ended.totals.states().map());
        ended.say_uncertain(sink)?;
        summary.undecided = say_undecided(&ended.selection.undecided, "page", sink)?.pages;
        if let Some(reason) = ended.selection.undecided.reason() {
            summary.why.note("undecided", &reason);
        }
        finish(&summary, ended.stopped, sink)
    }

    /// Searches all memory that a core without a page map has.
    fn all_memory(&mut self, spans: &Spans, sink: &mut dyn Sink) -> Result<(), Error> {
        let regions = self.space.regions().iter().flat_map(|viewed| viewed.range().within(spans.ranges()));
        let regions: Vec<AddressRange> = regions.collect();
        let process = &self.space.target().process;
        let stored = process.captured_parts();
        let parts: Vec<AddressRange> = regions.iter().flat_map(|range| range.within(&stored)).collect();
        // What was reserved and never written can be a million times larger.
        for absent in regions.iter().flat_map(|range| range.outside(&stored)) {
            if let (None, Err(missing)) = (&self.missing, process.memory(absent.start(), &mut [0])) {
                self.missing = Some(missing);
            }
            self.summary.unread += absent.pages(self.space.page());
        }
        let mut searched = || parts.iter().try_for_each(|range| self.range(*range, ByteSource::Memory, sink));
        let stopped = stop_of_sweep(searched(), sink)?;
        let mut summary = self.summary.clone();
        self.refuse_nothing(&mut summary)?;
        summary.cut_short = self.is_enough() || stopped.is_some();
        finish(&summary, stopped, sink)
    }

    /// An error if nothing was found and nothing was read, because a capture or core does not have it. Otherwise notes
    /// why pages were not read.
    fn refuse_nothing(&mut self, summary: &mut FindSummary) -> Result<(), Error> {
        match self.missing.take() {
            Some(missing) if summary.matches == 0 && !self.has_memory => Err(missing.into()),
            Some(missing) => {
                summary.why.note("unread", &missing.into());
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Searches the resident and the cached pages, up to the last match that is wanted.
    fn pages(&mut self, sweep: &mut PageSweep, spans: &Spans, sink: &mut dyn Sink) -> Result<(), Error> {
        while let Some(kept) = sweep.next(sink)? {
            let mut parts = Vec::new();
            let viewed = kept.region.and_then(|index| self.space.regions().get(index));
            for page in kept.pages {
                kept.totals.add(&page);
                if let (State::Untouched, None, Some(viewed)) = (page.state(), page.content, viewed)
                    && let Some(reason) = viewed.why_content_unknown()
                {
                    self.cache_unread.add(page.pages, reason.clone());
                }
                let source = match (page.state(), page.kind) {
                    (State::Present, _) => ByteSource::Memory,
                    (State::Untouched, Some(Kind::Cached)) => ByteSource::File,
                    _ => continue,
                };
                let pages = page.range(self.space.page());
                let within = pages.into_iter().flat_map(|pages| pages.within(spans.ranges()));
                within.for_each(|part| add_part(&mut parts, part, source));
            }
            for (part, source) in parts {
                self.range(part, source, sink)?;
                if self.is_enough() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn is_enough(&self) -> bool {
        self.summary.matches >= self.most
    }

    /// Searches a range that was just resident or in the page cache.
    fn range(&mut self, range: AddressRange, source: ByteSource, sink: &mut dyn Sink) -> Result<(), Error> {
        let page = self.space.page();
        let mut from = range.start();
        while from < range.end() && !self.is_enough() {
            sink.check()?;
            if self.next != Some(from) {
                self.filled = 0;
                self.of_file.clear();
            }
            let kept = self.filled;
            let left = range.end().get() - from.get();
            // To the end of a page.
            let most = match source {
                ByteSource::File => CHUNK,
                _ => CHUNK.min((self.reader.pages() * page.bytes()) as usize),
            };
            let most = most - page.offset(from) as usize;
            let wanted = usize::try_from(left).map_or(most, |left| left.min(most));
            self.buffer.resize(self.buffer.len().max(kept + wanted), 0);
            let into = self.buffer.get_mut(kept..kept + wanted).unwrap_or_default();
            let (read, missed) = match source {
                ByteSource::File => match self.space.read_cached(from, into)? {
                    Ok(read) => (read, false),
                    Err(reason) => {
                        // A change meanwhile, and the end of a file, concern this page only.
                        let pages = match reason {
                            Reason::Changed | AFTER_END => 1,
                            _ => (page.offset(from) + wanted as u64).div_ceil(page.bytes()),
                        };
                        if reason != AFTER_END {
                            self.cache_unread.add(pages, reason);
                        }
                        let behind = page.floor(from).checked_add(pages * page.bytes());
                        (self.next, from) = (None, behind.unwrap_or(range.end()));
                        continue;
                    }
                },
                _ => match self.reader.read(self.space.target(), from, into) {
                    Ok(read) => {
                        let is_vdso =
                            || self.space.region(from).is_some_and(|viewed| viewed.region.name.as_bytes() == b"[vdso]");
                        self.has_memory |= read.bytes > 0 && !is_vdso();
                        (read.bytes, read.ended.is_some())
                    }
                    Err(inspect::Error::Target(missing @ process::Error::NotAvailable { .. })) => {
                        self.missing.get_or_insert(missing);
                        (0, true)
                    }
                    Err(error) => return Err(error.into()),
                },
            };
            self.filled = kept + read;
            self.summary.searched += read as u64;
            self.summary.unread += u64::from(missed);
            let end = VirtualAddress::new(from.get() + read as u64);
            if let (ByteSource::File, Some(read)) = (source, AddressRange::new(from, end)) {
                self.summary.cached += read.pages(page);
                self.of_file.push(read);
            }
            let begins = VirtualAddress::new(from.get() - kept as u64);
            self.matches_in_buffer(begins, sink)?;
            // What a match could begin with that goes on behind.
            let keep = self.finder.needle().len().saturating_sub(1);
            let surplus = self.filled.saturating_sub(keep);
            self.buffer.copy_within(surplus..self.filled, 0);
            self.filled -= surplus;
            let begins = VirtualAddress::new(begins.get() + surplus as u64);
            self.of_file.retain(|range| range.end() > begins);
            self.next = Some(end);
            from = end;
            if missed || read == 0 {
                // The page that ended it is passed over.
                let behind = page.floor(from).checked_add(page.bytes());
                from = behind.unwrap_or(range.end());
            }
        }
        Ok(())
    }

    /// Reports the matches in the buffer, which begins at `begins`.
    fn matches_in_buffer(&mut self, begins: VirtualAddress, sink: &mut dyn Sink) -> Result<(), Error> {
        let mut from = 0;
        while !self.is_enough() {
            let rest = self.buffer.get(from..self.filled).unwrap_or_default();
            let Some(found) = self.finder.find(rest) else {
                break;
            };
            let address = VirtualAddress::new(begins.get() + (from + found) as u64);
            self.summary.matches += 1;
            self.last = Some(address);
            let region = self.space.region(address);
            let end = address.get() + self.finder.needle().len() as u64;
            let touches = |range: &AddressRange| range.start().get() < end && range.end() > address;
            let source = if self.of_file.iter().any(touches) { ByteSource::File } else { ByteSource::Memory };
            sink.emit(&Match {
                address,
                symbol: translate::brief(&self.symbols, address),
                region: region.map(|viewed| (&viewed.region).into()),
                source: source.word(),
            })?;
            from += found + 1;
        }
        Ok(())
    }
}
