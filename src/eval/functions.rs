//! The functions of expressions: `pfn(A)`, `start(R)`, `symbol(A)` …

use super::error::{Error, Result};
use super::evaluator::{Evaluator, as_range, to_address};
use super::extent::Extent;
use super::{Integer, Origin, Spans, Value, slips};
use crate::kernel::{AddressRange, FrameNumber, PhysicalAddress, VirtualAddress};
use crate::lang::{FilterExpression, Function, PageField, Range, Spanned};

impl Evaluator<'_> {
    /// Evaluates `F(ARGUMENT)`.
    pub(super) fn call(
        &self,
        function: Function,
        argument: &Spanned<Range>,
        filter: Option<&Spanned<FilterExpression<PageField>>>,
    ) -> Result<Value> {
        let at = argument.at;
        let is_noted = self.note_argument(function, argument);
        let note_lone = |spans: &Spans| {
            if !is_noted && slips::is_lone(&argument.node, spans) {
                slips::note_lone(&argument.node, spans.start(), Some(function), "one page", self.scope);
            }
        };
        match function {
            Function::Start => Ok(self.range_argument(argument)?.start()),
            Function::End => Ok(match self.range_argument(argument)? {
                Extent::Addresses(spans) => Value::Address(spans.end()),
                Extent::Frames(frames) => Value::Frame(frames.end()),
            }),
            Function::Size => match self.range_argument(argument)? {
                Extent::Addresses(spans) => Ok(Integer::from(spans.size()).into()),
                Extent::Frames(frames) => self.bytes_of_pages(frames.frames(), at).map(Value::from),
            },
            Function::Pfn => self.pfn(self.single(argument)?).map(Value::Frame),
            Function::Phys => self.phys(self.single(argument)?).map(Value::Physical),
            Function::Page => self.page(self.single(argument)?),
            Function::Region => self.region(to_address(&self.single(argument)?)?, argument),
            Function::Symbol => self.symbol_text(to_address(&self.single(argument)?)?, at),
            Function::Type => {
                let value = match &argument.node {
                    Range::Expression(expression) => self.evaluate_at(expression, at)?,
                    _ => self.extent(argument)?.into(),
                };
                Ok(Value::Text(value.kind().word().to_owned()))
            }
            Function::State | Function::Kind => {
                let spans = self.pages_of(argument)?;
                self.page_word(function, &spans, at)
            }
            Function::Mapcount | Function::Exclusive | Function::PmdMapped => {
                let address = to_address(&self.single(argument)?)?;
                self.page_number(function, address, at)
            }
            Function::Name | Function::Perms => {
                let spans = self.spans(argument, function)?;
                self.mapping_word(function, &spans, at)
            }
            Function::Rss | Function::Pss | Function::Uss | Function::Swapped | Function::Huge => {
                let spans = self.spans(argument, function)?;
                note_lone(&spans);
                self.amount(function, &spans, filter, at)
            }
            Function::Count
            | Function::Bytes
            | Function::Runs
            | Function::Longest
            | Function::First
            | Function::Last => match self.extent(argument)? {
                Extent::Addresses(spans) => {
                    refuse_lone(function, argument, &spans)?;
                    note_lone(&spans);
                    self.count_pages(function, &spans, filter, at)
                }
                Extent::Frames(frames) => self.counted_frames(function, frames, filter, at),
            },
        }
    }

    /// Evaluates the argument of a function of the pages in a range.
    fn spans(&self, argument: &Spanned<Range>, function: Function) -> Result<Spans> {
        self.extent(argument)?.addresses(|| {
            let called = function.name();
            let message = format!("{called}() works on pages of a process, not on frames");
            let hint = "`count(pfn:A..pfn:B)`, `bytes()`, `first()` and `last()` work on frames";
            Error::new(argument.at, message).hint(hint)
        })
    }

    /// Evaluates the argument of a function of one place: a range converts to its first address.
    fn single(&self, argument: &Spanned<Range>) -> Result<Spanned<Value>> {
        let value = match &argument.node {
            Range::Expression(expression) => self.evaluate_at(expression, argument.at)?,
            _ => self.extent(argument)?.start(),
        };
        Ok(Spanned::new(value, argument.at))
    }

    /// Evaluates the argument of a function of one page, or of equal pages. As elsewhere in expressions a symbol is its
    /// address.
    fn pages_of(&self, argument: &Spanned<Range>) -> Result<Spans> {
        let value = match &argument.node {
            Range::Expression(expression) => self.evaluate_at(expression, argument.at)?,
            _ => self.extent(argument)?.into(),
        };
        if let Value::Range(spans) = value {
            return Ok(spans);
        }
        let at = argument.at;
        let address = to_address(&Spanned::new(value, at)).map_err(|error| match &argument.node {
            Range::Expression(expression) => as_range(expression, error),
            _ => error,
        })?;
        let page = self.scope.page_size();
        AddressRange::of_length(page.floor(address), page.bytes())
            .map(|page| Spans::one(page, Origin::Written))
            .ok_or_else(|| Error::new(at, format!("{address} is in the last possible page")))
    }

    /// Evaluates the argument of a function of a range: an address alone has no size.
    fn range_argument(&self, argument: &Spanned<Range>) -> Result<Extent> {
        let Range::Expression(expression) = &argument.node else {
            return self.extent(argument);
        };
        if let Some(spans) = self.named_extent(expression, argument.at)? {
            return Ok(Extent::Addresses(spans));
        }
        match self.evaluate_at(expression, argument.at)? {
            Value::Range(spans) | Value::Symbol(spans) => Ok(Extent::Addresses(spans)),
            Value::Frames(frames) => Ok(Extent::Frames(frames)),
            Value::Text(text) => Err(Error::new(argument.at, format!("the text \"{text}\" is no range"))
                .hint(format!("`print {text}` shows what is wrong with it"))),
            other => {
                let error = Error::new(argument.at, format!("{} has no size: a range is expected", other.phrase()))
                    .hint("`region(ADDRESS)` is the region of an address; `A..B` and `A, +LENGTH` are ranges");
                Err(as_range(expression, error))
            }
        }
    }

    fn pfn(&self, of: Spanned<Value>) -> Result<FrameNumber> {
        match of.node {
            Value::Frame(frame) => Ok(frame),
            Value::Frames(frames) => Ok(frames.start()),
            Value::Physical(address) => Ok(address.frame(self.scope.page_size())),
            _ => self.frame(to_address(&of)?, of.at),
        }
    }

    fn phys(&self, of: Spanned<Value>) -> Result<PhysicalAddress> {
        let page = self.scope.page_size();
        if let Value::Physical(address) = of.node {
            return Ok(address);
        }
        let offset = match of.node {
            Value::Frame(_) | Value::Frames(_) => 0,
            _ => page.offset(to_address(&of)?),
        };
        let at = of.at;
        self.pfn(of)?
            .physical(page)
            .and_then(|start| start.checked_add(offset))
            .ok_or_else(|| Error::new(at, "the frame lies beyond the last physical address, 2^64-1"))
    }

    fn page(&self, of: Spanned<Value>) -> Result<Value> {
        let page = self.scope.page_size();
        match of.node {
            Value::Physical(address) => {
                let start = address.get() - address.offset(page);
                Ok(Value::Physical(PhysicalAddress::new(start)))
            }
            _ => Ok(Value::Address(page.floor(to_address(&of)?))),
        }
    }

    fn region(&self, address: VirtualAddress, argument: &Spanned<Range>) -> Result<Value> {
        let at = argument.at;
        let target = self.target(at, "finding the region of an address")?;
        let region = target.process.region_at(address).map_err(|cause| Error::target(at, cause))?.ok_or_else(|| {
            Error::new(at, slips::in_no_region(address, &argument.node))
                .hint("`region ADDRESS` shows the nearest regions below and above")
        })?;
        Ok(Value::Range(Spans::one(region.range, Origin::Region(region.name))))
    }
}

/// Refuses a single address where the number of runs is asked for: it is one, or none.
fn refuse_lone(function: Function, argument: &Spanned<Range>, spans: &Spans) -> Result<()> {
    if !matches!(function, Function::Runs | Function::Longest) || !slips::is_lone(&argument.node, spans) {
        return Ok(());
    }
    let (name, address) = (function.name(), &argument.node);
    Err(Error::new(argument.at, format!("{name}() needs a range, and one address is one page"))
        .hint(format!("`{name}(region({address}))` is of its whole region")))
}
