//! A compiled filter: parts that do not depend on the page or region are evaluated once.

use super::ask::{Answers, Fields};
use super::quantity::Quantity;
use crate::eval::Value;
use crate::eval::error::{Error, Result};
use crate::eval::evaluator::Evaluator;
use crate::eval::{space, suggest};
use crate::kernel::name::unescape;
use crate::kernel::page_flags::FLAGS;
use crate::kernel::{Name, PageFlags};
use crate::lang::{self, BinaryOperator, Comparison, Filter, Spanned, TextComparison};
use regex_lite::{Regex, RegexBuilder};
use std::cmp::Ordering;
use std::mem::discriminant;

/// A question with three answers: yes, no, and none.
#[derive(Debug)]
pub(super) enum Predicate<F> {
    /// Any of them. Flat, so that a chain of a thousand needs no deep stack.
    Any(Vec<Predicate<F>>),
    /// All of them.
    All(Vec<Predicate<F>>),
    Not(Box<Predicate<F>>),
    Is(F),
    Flag(PageFlags),
    Compare {
        comparison: Comparison,
        left: Quantity<F>,
        right: Quantity<F>,
    },
    Text {
        field: F,
        equal: bool,
        text: Vec<u8>,
        /// The bytes of the name, should `text` be its escaped form copied from the output.
        printed: Vec<u8>,
    },
    /// A regular expression on the text as it is printed.
    Matches {
        field: F,
        regex: Regex,
    },
}

impl<F: Copy> Predicate<F> {
    /// Evaluates what is the same for all, and records the fields that it uses.
    pub(super) fn prepare(
        filter: &Spanned<Filter<F>>,
        fields: &mut dyn Fields<F>,
        evaluator: &Evaluator<'_>,
    ) -> Result<Self> {
        let at = filter.at;
        Ok(match &filter.node {
            Filter::Or(..) => Predicate::Any(Self::chain(filter, fields, evaluator)?),
            Filter::And(..) => Predicate::All(Self::chain(filter, fields, evaluator)?),
            Filter::Not(inner) => Predicate::Not(Box::new(Self::prepare(inner, fields, evaluator)?)),
            Filter::Is(field) => {
                fields.ask(*field, at)?;
                Predicate::Is(*field)
            }
            Filter::Flag(name) => {
                let flag = flag(name)?;
                fields.ask_flag(at)?;
                Predicate::Flag(flag)
            }
            Filter::Compare { comparison, left, right } => {
                let (left, left_space) = Quantity::prepare(left, fields, evaluator)?;
                let (right, right_space) = Quantity::prepare(right, fields, evaluator)?;
                let operator = Spanned::new(operator(*comparison), at);
                space::of_binary(left_space, &operator, right_space)?;
                Predicate::Compare { comparison: *comparison, left, right }
            }
            Filter::Text { field, comparison, text } => {
                fields.ask(*field, at)?;
                let place = text.at;
                let text = match evaluator.evaluate(text)? {
                    Value::Text(text) => text,
                    other => {
                        let message = format!("{} is not a text", other.phrase());
                        return Err(Error::new(text.at, message));
                    }
                };
                match comparison {
                    TextComparison::Matches => {
                        Predicate::Matches { field: *field, regex: regex(&Spanned::new(text, place), false)? }
                    }
                    _ => Predicate::Text {
                        field: *field,
                        equal: *comparison == TextComparison::Equal,
                        printed: unescape(&text),
                        text: text.into_bytes(),
                    },
                }
            }
        })
    }

    /// The links of `A or B or C …`, or of `A and B and C …`, which lean to the left.
    fn chain(filter: &Spanned<Filter<F>>, fields: &mut dyn Fields<F>, evaluator: &Evaluator<'_>) -> Result<Vec<Self>> {
        let mut links: Vec<&Spanned<Filter<F>>> = Vec::new();
        let mut leftmost = filter;
        while let Filter::Or(left, right) | Filter::And(left, right) = &leftmost.node
            && discriminant(&leftmost.node) == discriminant(&filter.node)
        {
            links.push(right);
            leftmost = left;
        }
        links.push(leftmost);
        links.into_iter().rev().map(|link| Self::prepare(link, fields, evaluator)).collect()
    }

    /// Whether it holds; `None` where a field has no value.
    pub(super) fn holds(&self, of: &dyn Answers<F>) -> Option<bool> {
        match self {
            Predicate::Any(links) => decide(links, of, true),
            Predicate::All(links) => decide(links, of, false),
            Predicate::Not(inner) => inner.holds(of).map(|holds| !holds),
            Predicate::Is(field) => of.boolean(*field),
            Predicate::Flag(flag) => of.flag(*flag),
            Predicate::Compare { comparison, left, right } => {
                let (least, most) = left.bounds(of)?;
                let (right_least, right_most) = right.bounds(of)?;
                // Numbers that are known exactly leave one order; others may leave all three.
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
            Predicate::Text { field, equal, text, printed } => {
                let same = |name: &[u8]| name == text.as_slice() || name == printed.as_slice();
                Some(of.text_is(*field, &same)? == *equal)
            }
            Predicate::Matches { field, regex } => {
                of.text_is(*field, &|name| regex.is_match(&Name::new(name).to_string()))
            }
        }
    }
}

/// `decisive` if any link is; otherwise `None` if any link is; otherwise the opposite.
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

fn is_so(comparison: Comparison, order: Ordering) -> bool {
    match comparison {
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
    }
}

fn operator(comparison: Comparison) -> BinaryOperator {
    match comparison {
        Comparison::Less => BinaryOperator::Less,
        Comparison::LessOrEqual => BinaryOperator::LessOrEqual,
        Comparison::Greater => BinaryOperator::Greater,
        Comparison::GreaterOrEqual => BinaryOperator::GreaterOrEqual,
        Comparison::Equal => BinaryOperator::Equal,
        Comparison::NotEqual => BinaryOperator::NotEqual,
    }
}

/// The flag of that name, or the bit that `bitNN` means.
fn flag(name: &Spanned<String>) -> Result<PageFlags> {
    PageFlags::from_flag_name(&name.node).ok_or_else(|| {
        let error = Error::new(name.at, format!("no page flag is called '{}'", name.node));
        let names = FLAGS.iter().map(|info| info.name.to_owned());
        match lang::near(&name.node, names) {
            near if !near.is_empty() => error.hint(suggest::did_you_mean(near)),
            _ => error.hint("flags ADDRESS prints their names; any bit can be written as bitNN"),
        }
    })
}

/// A regular expression that somebody typed.
///
/// # Errors
/// It is none, or one that would take too much memory.
pub fn regex(pattern: &Spanned<String>, any_case: bool) -> Result<Regex> {
    RegexBuilder::new(&pattern.node).case_insensitive(any_case).size_limit(1 << 20).build().map_err(|error| {
        let message = format!("not a regular expression: {error}");
        Error::new(pattern.at, message)
    })
}
