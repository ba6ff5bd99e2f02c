//! Evaluates ranges, and the arguments of `translate`, `flags` and other commands.

use super::error::{Error, Result};
use super::evaluator::{COMMA_BEFORE_LENGTH, Evaluator, as_range, refuse_quotient, to_address};
use super::names::{NamedThing, spans_of};
use super::slips;
use super::{Origin, Spans, Value};
use crate::kernel::{AddressRange, FrameNumber, FrameRange, PageSize, PhysicalAddress, VirtualAddress};
use crate::lang::{BinaryOperator, Expression, Range, Span, Spanned, UnaryOperator};

/// An evaluated range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Extent {
    /// Memory of the target.
    Addresses(Spans),
    /// Physical page frames.
    Frames(FrameRange),
}

impl Extent {
    /// Returns the first address or frame.
    pub(super) fn start(&self) -> Value {
        match self {
            Extent::Addresses(spans) => Value::Address(spans.start()),
            Extent::Frames(frames) => Value::Frame(frames.start()),
        }
    }

    /// Returns the addresses; for frames, the error of `of_frames`.
    pub fn addresses(self, of_frames: impl FnOnce() -> Error) -> Result<Spans> {
        match self {
            Extent::Addresses(spans) => Ok(spans),
            Extent::Frames(_) => Err(of_frames()),
        }
    }
}

impl From<Extent> for Value {
    fn from(extent: Extent) -> Self {
        match extent {
            Extent::Addresses(spans) => Value::Range(spans),
            Extent::Frames(frames) => Value::Frames(frames),
        }
    }
}

impl Evaluator<'_> {
    /// Evaluates a range. An address alone is a range of one byte, a frame alone one of that frame, and a name all
    /// addresses with that name: a symbol with a size has its bytes.
    pub(super) fn extent(&self, range: &Spanned<Range>) -> Result<Extent> {
        if let Range::Expression(expression) = &range.node {
            refuse_quotient(expression)?;
        }
        match &range.node {
            Range::All => self.all(range.at).map(Extent::Addresses),
            Range::Expression(expression) => match self.named_extent(expression, range.at)? {
                Some(spans) => Ok(Extent::Addresses(spans)),
                None => self
                    .lone(Spanned::new(self.evaluate_at(expression, range.at)?, range.at))
                    .map_err(|error| as_range(expression, error)),
            },
            Range::Span { start, end } => {
                refuse_truth(start)?;
                refuse_truth(end)?;
                let span = self.span(self.value_with_place(start)?, self.value_with_place(end)?, range.at);
                span.map_err(|error| if is_length(&end.node) { error.hint(COMMA_BEFORE_LENGTH) } else { error })
            }
            Range::Length { start, length } => {
                refuse_truth(start)?;
                self.length(self.value_with_place(start)?, length, range.at)
            }
        }
    }

    /// Returns the range of a region, a module, or a symbol with a size, if the expression is only its name.
    pub(super) fn named_extent(&self, expression: &Expression, at: Span) -> Result<Option<Spans>> {
        Ok(match self.resolve_name(expression, at)? {
            Some(NamedThing::Range(spans)) => Some(spans),
            Some(NamedThing::Symbol(symbol)) => spans_of(&symbol),
            None => None,
        })
    }

    /// Returns all regions, without the gaps between them.
    fn all(&self, at: Span) -> Result<Spans> {
        let regions = self.regions(at, "all")?;
        Spans::new(regions.iter().map(|region| region.range), Origin::All)
            .ok_or_else(|| Error::new(at, "the process has no regions"))
    }

    fn lone(&self, value: Spanned<Value>) -> Result<Extent> {
        match value.node {
            Value::Range(spans) | Value::Symbol(spans) => Ok(Extent::Addresses(spans)),
            Value::Frames(frames) => Ok(Extent::Frames(frames)),
            Value::Frame(_) | Value::Physical(_) => {
                let frame = self.whole_frame(&value)?;
                let end = frame.checked_add(1).unwrap_or(frame);
                frame_range(frame, end, value.at).map(Extent::Frames)
            }
            _ => {
                let start = to_address(&value)?;
                addresses(start, start.checked_add(1), value.at)
            }
        }
    }

    fn span(&self, start: Spanned<Value>, end: Spanned<Value>, at: Span) -> Result<Extent> {
        match (is_physical(&start.node), is_physical(&end.node)) {
            (false, false) => {
                let (start, end) = (to_address(&start)?, to_address(&end)?);
                addresses(start, Some(end), at)
            }
            // `pfn:0x1000..0x2000`: the end has the unit of the start.
            (true, false) => {
                let end = self.like(&start.node, &end)?;
                self.span(start, end, at)
            }
            (false, true) => Err(no_range(at, &start.node, &end.node)),
            (true, true) => {
                let first = self.whole_frame(&start)?;
                let end = self.frame_after(&end)?;
                frame_range(first, end, at).map(Extent::Frames)
            }
        }
    }

    fn length(&self, start: Spanned<Value>, length: &Spanned<Expression>, at: Span) -> Result<Extent> {
        let value = self.evaluate(length)?;
        let Some(bytes) = value.integer() else {
            let error = Error::new(length.at, format!("a length must be an integer, not {}", value.phrase()));
            return Err(match slips::variable(length, self.scope) {
                Some((name, _)) => error.hint(format!("`(long){name}` is its value, if it is a long")),
                None => error,
            });
        };
        let bytes = bytes.to_u64().filter(|&bytes| bytes > 0);
        let bytes = bytes.ok_or_else(|| Error::new(length.at, "a length must be more than zero"))?;
        if !is_physical(&start.node) {
            let start = to_address(&start)?;
            return addresses(start, start.checked_add(bytes), at);
        }
        let page = self.scope.page_size();
        if bytes % page.bytes() != 0 {
            return Err(Error::new(length.at, "a length of frames must be whole pages").hint("`+16p` is sixteen pages"));
        }
        let first = self.whole_frame(&start)?;
        let end = first.checked_add(page.pages_in(bytes)).ok_or_else(|| past_the_end(at))?;
        frame_range(first, end, at).map(Extent::Frames)
    }

    /// Converts a number to the unit of another value.
    fn like(&self, unit: &Value, number: &Spanned<Value>) -> Result<Spanned<Value>> {
        let Some(integer) = number.node.integer() else {
            return Err(no_range(number.at, unit, &number.node));
        };
        let raw = integer.to_u64().ok_or_else(|| Error::new(number.at, format!("{integer} is negative")))?;
        let value = match unit {
            Value::Physical(_) => Value::Physical(PhysicalAddress::new(raw)),
            _ => Value::Frame(FrameNumber::new(raw)),
        };
        Ok(Spanned::new(value, number.at))
    }

    /// Returns the frame in which a frame or physical address begins.
    fn whole_frame(&self, value: &Spanned<Value>) -> Result<FrameNumber> {
        match value.node {
            Value::Frame(frame) => Ok(frame),
            Value::Frames(frames) => Ok(frames.start()),
            Value::Physical(address) => Ok(address.frame(self.scope.page_size())),
            _ => Err(Error::new(value.at, format!("{} is not a page frame", value.node.phrase()))),
        }
    }

    /// Returns the first frame after a range up to a frame or physical address. A partial frame is included.
    fn frame_after(&self, end: &Spanned<Value>) -> Result<FrameNumber> {
        let frame = self.whole_frame(end)?;
        match end.node {
            Value::Physical(address) if address.offset(self.scope.page_size()) != 0 => {
                frame.checked_add(1).ok_or_else(|| past_the_end(end.at))
            }
            _ => Ok(frame),
        }
    }
}

/// Fails for `A == B..C`, which is `(A == B)..C`: the result of a comparison is no address.
fn refuse_truth(bound: &Spanned<Expression>) -> Result<()> {
    use BinaryOperator as Op;
    refuse_quotient(&bound.node)?;
    let operator = match &bound.node {
        Expression::Binary { operator, .. } => operator,
        _ => return Ok(()),
    };
    match operator.node {
        Op::Equal | Op::NotEqual | Op::Less | Op::LessOrEqual | Op::Greater | Op::GreaterOrEqual | Op::And | Op::Or => {
            let message = format!("a range cannot start or end with a result of `{}`", operator.node.text());
            Err(Error::new(bound.at, message).hint("to compare a range, compare `start(RANGE)` and `size(RANGE)`"))
        }
        _ => Ok(()),
    }
}

/// Returns whether the expression is written as a length, with a leading plus.
fn is_length(end: &Expression) -> bool {
    matches!(end, Expression::Unary { operator, .. } if operator.node == UnaryOperator::Plus)
}

fn is_physical(value: &Value) -> bool {
    matches!(value, Value::Frame(_) | Value::Frames(_) | Value::Physical(_))
}

fn addresses(start: VirtualAddress, end: Option<VirtualAddress>, at: Span) -> Result<Extent> {
    let end = end.ok_or_else(|| past_the_end(at))?;
    AddressRange::new(start, end)
        .map(|range| Extent::Addresses(Spans::one(range, Origin::Written)))
        .ok_or_else(|| not_ascending(at, &start, &end, start == end))
}

/// Makes a range of frames. The place is for the error of an empty or reversed one.
fn frame_range(start: FrameNumber, end: FrameNumber, at: Span) -> Result<FrameRange> {
    FrameRange::new(start, end)
        .ok_or_else(|| not_ascending(at, &format!("pfn:{start}"), &format!("pfn:{end}"), start == end))
}

fn no_range(at: Span, start: &Value, end: &Value) -> Error {
    let (start, end) = (start.phrase(), end.phrase());
    Error::new(at, format!("{start} and {end} do not form a range"))
}

fn past_the_end(at: Span) -> Error {
    Error::new(at, "the range passes 2^64-1, the last address there is")
}

/// Makes the error of an empty or reversed range.
fn not_ascending(at: Span, start: &dyn std::fmt::Display, end: &dyn std::fmt::Display, empty: bool) -> Error {
    if empty {
        Error::new(at, format!("the range from {start} to {end} is empty"))
            .hint("the end of a range is not part of it; for a length, write `A, +LENGTH`")
    } else {
        Error::new(at, format!("the range is reversed: {start} lies after {end}"))
            .hint(format!("did you mean `{end}..{start}`?"))
    }
}

impl Evaluator<'_> {
    /// Evaluates `pfn:E`.
    pub(super) fn frame_number(&self, number: &Spanned<Expression>) -> Result<Value> {
        let value = self.number_behind(number)?;
        match value.node {
            Value::Frame(_) => Ok(value.node),
            Value::Integer(_) | Value::Typed(_) => {
                self.like(&Value::Frame(FrameNumber::default()), &value).map(|value| value.node)
            }
            _ => Err(Error::new(value.at, format!("pfn: needs a number, not {}", value.node.phrase()))
                .hint("`pfn(ADDRESS)` is the frame of an address")),
        }
    }

    /// Evaluates the number of `pfn:` and `phys:`. A name that stands for nothing was meant as a number.
    fn number_behind(&self, number: &Spanned<Expression>) -> Result<Spanned<Value>> {
        match (self.value_with_place(number), &number.node) {
            (Err(error), Expression::Name(name)) if error.stopped.is_none() => {
                let message = format!("`{name}` is not a hexadecimal number");
                let is_hexadecimal = name.0.chars().all(|letter| letter.is_ascii_hexdigit());
                let example = if is_hexadecimal { &name.0 } else { "4e965" };
                Err(Error::new(number.at, message).hint(format!("write hexadecimal as `0x{example}`")))
            }
            (value, _) => value,
        }
    }

    /// Evaluates `phys:E`.
    pub(super) fn physical(&self, number: &Spanned<Expression>) -> Result<Value> {
        let value = self.number_behind(number)?;
        match value.node {
            Value::Physical(_) => Ok(value.node),
            Value::Integer(_) | Value::Typed(_) => {
                self.like(&Value::Physical(PhysicalAddress::default()), &value).map(|value| value.node)
            }
            _ => Err(Error::new(value.at, format!("phys: needs a number, not {}", value.node.phrase()))
                .hint("`phys(ADDRESS)` is the physical address of an address")),
        }
    }
}

/// The argument WHERE: an address of the target, or a frame by number or physical address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Location {
    /// An address of the target, with the range of which it is the first, if it is one.
    Address(VirtualAddress, Option<Spans>),
    /// A page frame.
    Frame(FrameNumber),
    /// A physical address.
    Physical(PhysicalAddress),
}

impl Location {
    /// Returns the frame that is named by its number or by a physical address.
    pub fn frame(&self, page: PageSize) -> Option<FrameNumber> {
        match self {
            Location::Address(..) => None,
            Location::Frame(frame) => Some(*frame),
            Location::Physical(physical) => Some(physical.frame(page)),
        }
    }
}

/// The argument of `translate`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AddressOrRange {
    /// One address, to be translated in detail.
    Address(VirtualAddress),
    /// A symbol with a size: its first byte is translated in detail, and its runs if it has several pages. The spans
    /// contain that byte.
    Sized(Spans),
    /// A range, whose runs are translated.
    Range(Spans),
}

impl AddressOrRange {
    /// Returns the spans; `hint` is the remedy for a single address at `at`.
    ///
    /// # Errors
    /// Fails for a single address.
    pub fn spans(self, at: Span, hint: &str) -> Result<Spans> {
        match self {
            AddressOrRange::Sized(spans) | AddressOrRange::Range(spans) => Ok(spans),
            AddressOrRange::Address(_) => Err(Error::new(at, "one address is not a range").hint(hint)),
        }
    }
}

impl Evaluator<'_> {
    pub(super) fn location(&self, expression: &Spanned<Expression>) -> Result<Location> {
        let value = self.value_with_place(expression)?;
        Ok(match value.node {
            Value::Frame(frame) => Location::Frame(frame),
            Value::Frames(frames) => Location::Frame(frames.start()),
            Value::Physical(address) => Location::Physical(address),
            _ => {
                let (address, spans) = Self::to_place(value, expression)?;
                Location::Address(address, spans)
            }
        })
    }

    pub(super) fn subject(&self, range: &Spanned<Range>) -> Result<AddressOrRange> {
        if let Range::Expression(expression) = &range.node {
            refuse_quotient(expression)?;
            match self.resolve_name(expression, range.at)? {
                Some(NamedThing::Range(spans)) => return Ok(AddressOrRange::Range(spans)),
                Some(NamedThing::Symbol(symbol)) => {
                    return Ok(match spans_of(&symbol) {
                        Some(spans) => AddressOrRange::Sized(spans),
                        None => AddressOrRange::Address(symbol.start),
                    });
                }
                None => {}
            }
            let value = Spanned::new(self.evaluate_at(expression, range.at)?, range.at);
            return match value.node {
                Value::Range(spans) => Ok(AddressOrRange::Range(spans)),
                Value::Symbol(spans) => Ok(AddressOrRange::Sized(spans)),
                _ => to_address(&value).map(AddressOrRange::Address).map_err(|error| as_range(expression, error)),
            };
        }
        let spans = self.extent(range)?.addresses(|| {
            let message = "page frames are already physical";
            Error::new(range.at, message).hint("`walk pfn:A..pfn:B` lists frames, and `flags pfn:N` describes one")
        });
        spans.map(AddressOrRange::Range)
    }
}
