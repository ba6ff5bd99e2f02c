//! `where` and `until`: compiles filters for many pages or regions.
//!
//! A condition on a field that a page lacks (the map count of a page without a frame) is neither true nor false, nor is
//! its `not`: the page is left out. A field that is unknown for all pages is an error that names it. If an unknown
//! field leaves the filter undecided for a page, the page is left out with the reason.

mod mistaken;
mod region_field;
#[cfg(test)]
mod tests;
mod unknown;

use super::error::{Error, Result};
use super::evaluator::{Evaluator, is_equality};
use super::names::did_you_mean;
use super::operators::{self, Operand, Space, regex};
use super::{Integer, Scope, Value};
use crate::inspect::{
    self, AddressSpace, Answer, AskedField, Evidence, FactReader, Page, RegionAmount, RegionStats, ViewedRegion,
};
use crate::kernel::page_flags::FLAGS;
use crate::kernel::text::{escape, unescape, unescape_quoted};
use crate::kernel::{Key, Name, PageFact, PageFlags};
use crate::lang::{
    self, BinaryOperator as Op, Expression, FilterField, PageField, RegionField, Span, Spanned, UnaryOperator,
    ValueType,
};
use crate::process::Machine;
use crate::report::Reason;
use mistaken::{EASILY_MISTAKEN, REGION_EASILY_MISTAKEN};
use regex_lite::Regex;
use region_field::RegionValue;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Compiles a filter of pages, for `walk` and `watch`. All that it needs must be known.
///
/// # Errors
/// Fails if a field or a flag is unknown, or an expression has no value. The error has the place.
pub fn page_filter(
    filter: &Spanned<lang::FilterExpression<PageField>>,
    space: &AddressSpace,
    scope: &dyn Scope,
) -> Result<inspect::Filter> {
    let mut fields = PageFields::of(FactReader::of_pages(space));
    let predicate = predicate(filter, &mut fields, scope)?;
    let is_used = |field: &PageField| fields.used.iter().any(|used| used.field == *field);
    for (_, _, note) in EASILY_MISTAKEN.iter().filter(|(field, other, _)| is_used(field) && !is_used(other)) {
        scope.note((*note).to_owned());
    }
    if let Some(field) = predicate.of_no_huge_page() {
        let name = field.name();
        scope.note(format!("pages without a frame are neither `{name}` nor `not {name}`: add `or not present`"));
    }
    Ok(compile(predicate, fields))
}

/// Compiles a filter of page frames without a process, for `walk pfn:A..pfn:B`. Frames of `machine` have flags, a map
/// count, a number, an address, a zone, and a cgroup. Other fields of pages are refused.
///
/// # Errors
/// Fails if frames do not have a field, a flag is unknown, or an expression has no value. The error has the place.
pub fn frame_filter(
    filter: &Spanned<lang::FilterExpression<PageField>>,
    machine: &Arc<Machine>,
    scope: &dyn Scope,
) -> Result<inspect::Filter> {
    let mut fields = PageFields::of(FactReader::of_frames(machine));
    let predicate = predicate(filter, &mut fields, scope)?;
    Ok(compile(predicate, fields))
}

fn predicate<F: FilterField>(
    filter: &Spanned<lang::FilterExpression<F>>,
    fields: &mut dyn Fields<F>,
    scope: &dyn Scope,
) -> Result<Predicate<F>> {
    Compiler { fields, evaluator: &Evaluator::new(scope) }.condition(&filter.node.condition, filter.at)
}

/// Makes the filter of pages of a process, or of frames without a process.
fn compile(predicate: Predicate<PageField>, fields: PageFields) -> inspect::Filter {
    let compiled = Arc::new((predicate, fields.reader));
    let (again, of_fields) = (Arc::clone(&compiled), Arc::clone(&compiled));
    let filter = inspect::Filter::with_unknown(
        fields.need,
        move |page, region| {
            let (predicate, reader) = &*compiled;
            predicate.holds(&PageAnswers { page, region, reader })
        },
        move |page, region| {
            let (predicate, reader) = &*again;
            let answers = PageAnswers { page, region, reader };
            if predicate.may_be(true, &answers) { predicate.why_unknown(&answers) } else { None }
        },
    );
    filter.asking(&fields.used, move |field, page, region| {
        PageAnswers { page, region, reader: &of_fields.1 }.is_known(field)
    })
}

/// Converts a key as it was written.
///
/// # Errors
/// Fails if no flag has this name.
pub fn key(written: &lang::WrittenKey) -> Result<Key> {
    match written {
        lang::WrittenKey::Key(key) => Ok(*key),
        lang::WrittenKey::Flag(name) => Ok(Key::Page(PageField::Flag(flag(name)?))),
    }
}

/// A filter of regions, for `regions`.
#[derive(Debug)]
pub struct RegionFilter {
    predicate: Predicate<RegionField>,
    asked: Vec<RegionField>,
}

/// Compiles a filter of regions.
///
/// # Errors
/// Fails if an expression has no value. The error has its place.
pub fn region_filter(filter: &Spanned<lang::FilterExpression<RegionField>>, scope: &dyn Scope) -> Result<RegionFilter> {
    let mut fields = RegionFields { asked: Vec::new() };
    let predicate = predicate(filter, &mut fields, scope)?;
    let is_used = |field: &RegionField| fields.asked.contains(field);
    for (_, _, note) in REGION_EASILY_MISTAKEN.iter().filter(|(field, other, _)| is_used(field) && !is_used(other)) {
        scope.note((*note).to_owned());
    }
    Ok(RegionFilter { predicate, asked: fields.asked })
}

impl RegionFilter {
    /// Returns the amounts of memory that [`RegionFilter::holds`] needs in `stats`.
    pub fn amounts(&self) -> Vec<RegionAmount> {
        self.asked.iter().filter_map(|&field| region_field::amount(field)).collect()
    }

    /// Returns the fields of the filter.
    pub fn fields(&self) -> &[RegionField] {
        &self.asked
    }

    /// Returns whether the filter is true for a region; `None` if a field has no value.
    pub fn holds(&self, region: &ViewedRegion, stats: Option<&RegionStats>) -> Option<bool> {
        self.predicate.holds(&RegionAnswers { region, stats })
    }
}

struct PageFields {
    reader: FactReader,
    need: Evidence,
    /// The fields of the filter, with their places.
    used: Vec<AskedField>,
}

impl PageFields {
    fn of(reader: FactReader) -> Self {
        PageFields { reader, need: Evidence::empty(), used: Vec::new() }
    }

    fn require(&mut self, field: PageField, at: Span, written: impl fmt::Display) -> Result<()> {
        let need = self.reader.require_compared(field).map_err(|cause| Error::inspection(at, &written, cause))?;
        self.need |= need.ok_or_else(|| {
            let message = format!("{written} works on pages of a process, not on frames");
            Error::new(at, message)
                .hint("for frames: `flags(NAME)`, `dirty`, `referenced` and the like, `mapcount`, `pfn`, `phys`")
        })?;
        Ok(())
    }
}

impl Fields<PageField> for PageFields {
    fn ask(&mut self, field: PageField, at: Span) -> Result<()> {
        self.require(field, at, format_args!("`{}`", field.name()))?;
        self.used.push(AskedField { field, at: Some(at.start..at.end) });
        Ok(())
    }

    fn ask_flag(&mut self, flag: PageFlags, at: Span) -> Result<()> {
        self.require(PageField::Flag(flag), at, "flags()")?;
        self.used.push(AskedField { field: PageField::Flag(flag), at: Some(at.start..at.end) });
        Ok(())
    }

    fn space(&self, field: PageField) -> Option<Space> {
        match field {
            PageField::Fact(PageFact::Pfn) => Some(Space::Frames),
            PageField::Fact(PageFact::Phys) => Some(Space::Physical),
            PageField::Fact(PageFact::Address) => Some(Space::Virtual),
            _ => None,
        }
    }

    fn texts(&self, field: PageField) -> Option<Vec<String>> {
        self.reader.texts(field.fact())
    }
}

struct PageAnswers<'p> {
    page: &'p Page,
    region: Option<&'p ViewedRegion>,
    reader: &'p FactReader,
}

impl PageAnswers<'_> {
    #[inline]
    fn answer(&self, field: PageField) -> Answer {
        self.reader.answer(field, self.page, self.region)
    }
}

impl Answers<PageField> for PageAnswers<'_> {
    fn boolean(&self, field: PageField) -> Option<bool> {
        self.answer(field).holds()
    }
    fn integer(&self, field: PageField) -> Option<u64> {
        self.answer(field).value()
    }
    fn text_is(&self, field: PageField, is: &dyn Fn(&[u8]) -> bool) -> Option<bool> {
        self.reader.text_is(field.fact(), self.answer(field).value()?, is).ok()
    }
    fn flag(&self, flag: PageFlags) -> Option<bool> {
        self.boolean(PageField::Flag(flag))
    }
    fn why_unknown(&self, field: PageField) -> Option<Reason> {
        match self.answer(field) {
            Answer::Unknown(gap) if !gap.is_reported_apart() => Some(self.reader.reason(gap, self.region)),
            Answer::Is(value) if field.value_type() == ValueType::Text => {
                self.reader.text_is(field.fact(), value, &|_| true).err()
            }
            _ => None,
        }
    }
    fn why_flag_unknown(&self, flag: PageFlags) -> Option<Reason> {
        self.why_unknown(PageField::Flag(flag))
    }
}

struct RegionFields {
    asked: Vec<RegionField>,
}

impl Fields<RegionField> for RegionFields {
    fn ask(&mut self, field: RegionField, _: Span) -> Result<()> {
        self.asked.push(field);
        Ok(())
    }

    fn ask_flag(&mut self, _: PageFlags, at: Span) -> Result<()> {
        Err(Error::new(at, "regions have no page flags").hint("for pages: `walk RANGE where flags(NAME)`"))
    }

    fn space(&self, field: RegionField) -> Option<Space> {
        matches!(field, RegionField::Start | RegionField::End).then_some(Space::Virtual)
    }
}

struct RegionAnswers<'r> {
    region: &'r ViewedRegion,
    stats: Option<&'r RegionStats>,
}

impl RegionAnswers<'_> {
    fn value(&self, field: RegionField) -> RegionValue {
        region_field::value(field, self.region, self.stats)
    }
}

impl Answers<RegionField> for RegionAnswers<'_> {
    fn boolean(&self, field: RegionField) -> Option<bool> {
        match self.value(field) {
            RegionValue::Is(is) => Some(is),
            _ => None,
        }
    }
    fn integer(&self, field: RegionField) -> Option<u64> {
        match self.value(field) {
            RegionValue::Number(number) => Some(number),
            _ => None,
        }
    }
    fn bounds(&self, field: RegionField) -> Option<(u64, u64)> {
        match self.value(field) {
            RegionValue::AtMost(most) => Some((0, most)),
            _ => None,
        }
    }
    fn text_is(&self, field: RegionField, is: &dyn Fn(&[u8]) -> bool) -> Option<bool> {
        match self.value(field) {
            RegionValue::Texts(texts) => Some(texts.iter().any(|text| is(text.as_bytes()))),
            _ => None,
        }
    }
}

/// The values of fields for one page or region; `None` if it does not have the field.
pub(super) trait Answers<F> {
    fn boolean(&self, _: F) -> Option<bool> {
        None
    }
    fn integer(&self, _: F) -> Option<u64> {
        None
    }
    /// Returns the least and the greatest possible value of a field that [`Answers::integer`] does not know.
    fn bounds(&self, _: F) -> Option<(u64, u64)> {
        None
    }
    /// Returns whether `is` is true for the value of a text field.
    fn text_is(&self, _field: F, _is: &dyn Fn(&[u8]) -> bool) -> Option<bool> {
        None
    }
    fn flag(&self, _: PageFlags) -> Option<bool> {
        None
    }
    /// Returns why a field without a value is unknown; `None` if there is no such fact.
    fn why_unknown(&self, _: F) -> Option<Reason> {
        None
    }
    /// Returns why a page flag is unknown.
    fn why_flag_unknown(&self, _: PageFlags) -> Option<Reason> {
        None
    }
}

/// The facts about fields that compiling a filter needs.
pub(super) trait Fields<F> {
    /// Records that the filter has `field`, or fails if its value is always unknown.
    fn ask(&mut self, field: F, at: Span) -> Result<()>;
    /// Records that the filter has a page flag.
    fn ask_flag(&mut self, flag: PageFlags, at: Span) -> Result<()>;
    /// Returns the unit of a numeric field.
    fn space(&self, field: F) -> Option<Space>;
    /// Returns all possible values of `field`, if they are few.
    fn texts(&self, _: F) -> Option<Vec<String>> {
        None
    }
}

/// A compiled condition with three results: true, false, none.
#[derive(Debug)]
pub(super) enum Predicate<F> {
    /// True if one is true. A list, so that a chain of a thousand needs no deep stack.
    Any(Vec<Predicate<F>>),
    /// True if all are true.
    All(Vec<Predicate<F>>),
    Not(Box<Predicate<F>>),
    /// A result that is equal for all pages or regions.
    Known(bool),
    Is(F),
    Flag(PageFlags),
    Compare {
        comparison: Op,
        left: Quantity<F>,
        right: Quantity<F>,
    },
    Text {
        field: F,
        equal: bool,
        text: Vec<u8>,
    },
    /// Whether the text, as it is printed, matches a regular expression.
    Matches {
        field: F,
        regex: Regex,
    },
}

/// A compiled number.
#[derive(Debug)]
pub(super) enum Quantity<F> {
    /// A number that is equal for all pages or regions.
    Number(Integer),
    Field(F),
    Unary {
        operator: UnaryOperator,
        operand: Box<Quantity<F>>,
    },
    Binary {
        operator: Op,
        left: Box<Quantity<F>>,
        right: Box<Quantity<F>>,
    },
}

/// Compiles a filter: evaluates parts that are equal for all pages or regions, and records the fields.
pub(super) struct Compiler<'a, F> {
    pub(super) fields: &'a mut dyn Fields<F>,
    pub(super) evaluator: &'a Evaluator<'a>,
}

impl<F: FilterField> Compiler<'_, F> {
    /// Compiles a condition written at `at`.
    pub(super) fn condition(&mut self, condition: &Expression, at: Span) -> Result<Predicate<F>> {
        if !condition.has_fields() {
            let value = self.evaluator.evaluate_at(condition, at)?;
            return Ok(Predicate::Known(operators::truth(&Spanned::new(value, at))?));
        }
        Ok(match condition {
            Expression::Binary { operator, left, right } => match (operator.node, field_of::<F>(&left.node, false)) {
                (Op::Or, _) => Predicate::Any(self.links(Op::Or, left, right)?),
                (Op::And, _) => Predicate::All(self.links(Op::And, left, right)?),
                (_, Some(field)) if field.value_type() == ValueType::Text => {
                    self.fields.ask(field, left.at)?;
                    self.text(field, operator.node, right)?
                }
                (comparison, _) => {
                    let sides = [left, right];
                    let (left, left_space) = self.number(left)?;
                    let (right, right_space) = self.number(right)?;
                    operators::space_of_binary(left_space, operator, right_space)?;
                    self.refuse_as_count(sides[0], right_space)?;
                    self.refuse_as_count(sides[1], left_space)?;
                    if is_equality(comparison) {
                        self.refuse_unknown_number(&left, &right, sides[1].at)?;
                        self.refuse_unknown_number(&right, &left, sides[0].at)?;
                    }
                    Predicate::Compare { comparison, left, right }
                }
            },
            // The only prefix operator of a condition is `not`.
            Expression::Unary { operand, .. } => Predicate::Not(Box::new(self.condition(&operand.node, operand.at)?)),
            Expression::Flag(name) => {
                let flag = flag(name)?;
                self.fields.ask_flag(flag, at)?;
                Predicate::Flag(flag)
            }
            other => Predicate::Is(self.field(other, false, at)?),
        })
    }

    /// Compiles `A or B or C …`, or `A and B and C …`, whose trees lean to the left.
    fn links(
        &mut self,
        joint: Op,
        left: &Spanned<Expression>,
        right: &Spanned<Expression>,
    ) -> Result<Vec<Predicate<F>>> {
        let (mut links, mut leftmost) = (vec![right], left);
        while let Expression::Binary { operator, left, right } = &leftmost.node
            && operator.node == joint
        {
            links.push(right);
            leftmost = left;
        }
        links.push(leftmost);
        links.into_iter().rev().map(|link| self.condition(&link.node, link.at)).collect()
    }

    /// Compiles the comparison of a text field with a constant text.
    fn text(&self, field: F, comparison: Op, with: &Spanned<Expression>) -> Result<Predicate<F>> {
        let text = match self.evaluator.evaluate(with)? {
            Value::Text(text) => text,
            other => return Err(Error::new(with.at, format!("{} is not a text", other.phrase()))),
        };
        let bytes = match &with.node {
            Expression::EscapedText { raw, .. } => unescape_quoted(raw),
            Expression::Text(_) => text.clone().into_bytes(),
            _ => printed_bytes(&text),
        };
        if comparison != Op::Matches {
            self.refuse_unknown(field, &text, with.at)?;
        }
        Ok(match comparison {
            Op::Matches => Predicate::Matches { field, regex: regex(&Spanned::new(text, with.at), false)? },
            _ => Predicate::Text { field, equal: comparison == Op::Equal, text: bytes },
        })
    }

    /// Fails for a text that no page of this machine can equal.
    fn refuse_unknown(&self, field: F, value: &str, at: Span) -> Result<()> {
        let Some(known) = self.fields.texts(field).filter(|known| !known.iter().any(|one| one == value)) else {
            return Ok(());
        };
        let quote = if field.value_type() == ValueType::Text { "\"" } else { "" };
        let error = Error::new(at, format!("no {} is {quote}{value}{quote}", field.name()));
        Err(error.hint(format!("here: {}", known.join(", "))))
    }

    fn refuse_unknown_number(&self, side: &Quantity<F>, other: &Quantity<F>, at: Span) -> Result<()> {
        match (side, other) {
            (Quantity::Field(field), Quantity::Number(number)) => self.refuse_unknown(*field, &number.to_string(), at),
            _ => Ok(()),
        }
    }

    /// Compiles a number, and returns it with its unit.
    fn number(&mut self, number: &Spanned<Expression>) -> Result<(Quantity<F>, Option<Space>)> {
        if !number.node.has_fields() {
            let operand = Operand::of(&self.evaluator.value_with_place(number)?)?;
            return Ok((Quantity::Number(operand.number), operand.space));
        }
        Ok(match &number.node {
            Expression::Unary { operator, operand } => {
                let (operand, inner) = self.number(operand)?;
                let space = operators::space_of_unary(operator, inner)?;
                (Quantity::Unary { operator: operator.node, operand: Box::new(operand) }, space)
            }
            Expression::Binary { operator, left, right } => {
                let (left, left_space) = self.number(left)?;
                let (right, right_space) = self.number(right)?;
                let space = operators::space_of_binary(left_space, operator, right_space)?;
                let (left, right) = (Box::new(left), Box::new(right));
                (Quantity::Binary { operator: operator.node, left, right }, space)
            }
            other => {
                let field = self.field(other, true, number.at)?;
                (Quantity::Field(field), self.fields.space(field))
            }
        })
    }

    /// Fails for `pages > counter`, as outside of filters.
    fn refuse_as_count(&self, side: &Spanned<Expression>, other: Option<Space>) -> Result<()> {
        if side.node.has_fields() {
            return Ok(());
        }
        operators::refuse_as_count(&self.evaluator.value_with_place(side)?, other)
    }

    fn field(&mut self, written: &Expression, is_number: bool, at: Span) -> Result<F> {
        let field = field_of(written, is_number).ok_or_else(|| Error::no_page(at))?;
        self.fields.ask(field, at)?;
        Ok(field)
    }
}

fn field_of<F: FilterField>(written: &Expression, is_number: bool) -> Option<F> {
    match written {
        Expression::Field(name) => F::with_name(name, is_number),
        _ => None,
    }
}

impl<F: Copy> Predicate<F> {
    /// Returns whether the condition is true; `None` if a field has no value.
    pub(super) fn holds(&self, of: &dyn Answers<F>) -> Option<bool> {
        match self {
            Predicate::Any(links) => decide(links, of, true),
            Predicate::All(links) => decide(links, of, false),
            Predicate::Not(inner) => inner.holds(of).map(|holds| !holds),
            Predicate::Known(holds) => Some(*holds),
            Predicate::Is(field) => of.boolean(*field),
            Predicate::Flag(flag) => of.flag(*flag),
            Predicate::Compare { comparison, left, right } => {
                let (least, most) = left.bounds(of)?;
                let (right_least, right_most) = right.bounds(of)?;
                // Exactly known numbers have one order; others may have all three.
                let mut possible = [
                    (Ordering::Less, least < right_most),
                    (Ordering::Equal, least <= right_most && right_least <= most),
                    (Ordering::Greater, most > right_least),
                ]
                .into_iter()
                .filter(|(_, possible)| *possible)
                .map(|(order, _)| is_so(*comparison, order));
                let holds = possible.next()?;
                possible.all(|other| other == holds).then_some(holds)
            }
            Predicate::Text { field, equal, text } => Some(of.text_is(*field, &|name| name == *text)? == *equal),
            Predicate::Matches { field, regex } => {
                of.text_is(*field, &|name| regex.is_match(&Name::new(name).to_string()))
            }
        }
    }
}

impl<F: Copy> Quantity<F> {
    /// Returns the number for one page or region; `None` if a field or an operator has no result.
    fn number(&self, of: &dyn Answers<F>) -> Option<Integer> {
        match self {
            Quantity::Number(number) => Some(*number),
            Quantity::Field(field) => of.integer(*field).map(Integer::from),
            Quantity::Unary { operator, operand } => operators::invert(*operator, operand.number(of)?),
            Quantity::Binary { operator, left, right } => {
                operators::calculate(*operator, left.number(of)?, right.number(of)?)
            }
        }
    }

    /// Returns the least and the greatest possible number for one page or region.
    fn bounds(&self, of: &dyn Answers<F>) -> Option<(Integer, Integer)> {
        match (self.number(of), self) {
            (Some(number), _) => Some((number, number)),
            (None, Quantity::Field(field)) => {
                let (least, most) = of.bounds(*field)?;
                Some((Integer::from(least), Integer::from(most)))
            }
            (None, _) => None,
        }
    }
}

/// Returns the bytes of a computed text. Names, such as the result of `name(A)`, are escaped.
fn printed_bytes(text: &str) -> Vec<u8> {
    let bytes = unescape(text);
    if escape(&bytes) == text { bytes } else { text.as_bytes().to_vec() }
}

/// Returns `decisive` if a link has this result, otherwise `None` if one has none, otherwise the opposite.
fn decide<F: Copy>(links: &[Predicate<F>], of: &dyn Answers<F>, decisive: bool) -> Option<bool> {
    let mut answer = Some(!decisive);
    for link in links {
        match link.holds(of) {
            Some(holds) if holds == decisive => return Some(decisive),
            Some(_) => {}
            None => answer = None,
        }
    }
    answer
}

fn is_so(comparison: Op, order: Ordering) -> bool {
    match comparison {
        Op::Less => order.is_lt(),
        Op::LessOrEqual => order.is_le(),
        Op::Greater => order.is_gt(),
        Op::GreaterOrEqual => order.is_ge(),
        Op::Equal => order.is_eq(),
        Op::NotEqual => order.is_ne(),
        _ => false,
    }
}

/// Returns the flag with this name, or the bit that `bitNN` means.
fn flag(name: &Spanned<String>) -> Result<PageFlags> {
    PageFlags::from_flag_name(&name.node).ok_or_else(|| {
        let error = Error::new(name.at, format!("no page flag is called `{}`", name.node));
        let names = FLAGS.iter().map(|info| info.name.to_owned());
        match lang::near(&name.node, names) {
            near if !near.is_empty() => error.hint(did_you_mean(near)),
            _ => error.hint("`flags ADDRESS` prints their names; any bit can be written as `bitNN`"),
        }
    })
}
