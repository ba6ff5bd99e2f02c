//! A compiled filter: what is the same for all pages or regions is evaluated once. The rest asks for the values of
//! fields.

use crate::eval::error::{Error, Result};
use crate::eval::evaluator::Evaluator;
use crate::eval::names::did_you_mean;
use crate::eval::operators::{self, Operand, Space, regex};
use crate::eval::{Integer, Value};
use crate::kernel::page_flags::FLAGS;
use crate::kernel::text::unescape;
use crate::kernel::{Name, PageFlags};
use crate::lang::{self, BinaryOperator as Op, Expression, FilterField, Span, Spanned, UnaryOperator, ValueType};
use regex_lite::Regex;
use std::cmp::Ordering;

/// The values of fields for one page or region; `None` for what it does not have.
pub(super) trait Answers<F> {
    fn boolean(&self, _: F) -> Option<bool> {
        None
    }
    fn integer(&self, _: F) -> Option<u64> {
        None
    }
    /// The least and the greatest value that a field can have where [`Answers::integer`] does not know it.
    fn bounds(&self, _: F) -> Option<(u64, u64)> {
        None
    }
    /// Whether `is` holds for the value of a text field.
    fn text_is(&self, _field: F, _is: &dyn Fn(&[u8]) -> bool) -> Option<bool> {
        None
    }
    fn flag(&self, _: PageFlags) -> Option<bool> {
        None
    }
}

/// What compiling a filter has to know of the fields `F`.
pub(super) trait Fields<F> {
    /// Records that the filter uses `field`, or fails if its value cannot be known here.
    fn ask(&mut self, field: F, at: Span) -> Result<()>;
    /// Records that the filter uses a page flag.
    fn ask_flag(&mut self, at: Span) -> Result<()>;
    /// What the numbers of `field` count in.
    fn space(&self, field: F) -> Option<Space>;
}

/// A question with three answers: yes, no, and none.
#[derive(Debug)]
pub(super) enum Predicate<F> {
    /// Any of them. Flat, so that a chain of a thousand needs no deep stack.
    Any(Vec<Predicate<F>>),
    /// All of them.
    All(Vec<Predicate<F>>),
    Not(Box<Predicate<F>>),
    /// The same for all.
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
        /// The bytes of the name, should `text` be its escaped form copied from the output.
        printed: Vec<u8>,
    },
    /// A regular expression on the text as it is printed.
    Matches {
        field: F,
        regex: Regex,
    },
}

/// How to get a number.
#[derive(Debug)]
pub(super) enum Quantity<F> {
    /// The same for all.
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

/// Compiles a filter: evaluates what is the same for all, and records the fields that it uses.
pub(super) struct Compiler<'a, F> {
    pub(super) fields: &'a mut dyn Fields<F>,
    pub(super) evaluator: &'a Evaluator<'a>,
}

impl<F: FilterField> Compiler<'_, F> {
    /// A condition written at `at`.
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
                    let (left, left_space) = self.number(left)?;
                    let (right, right_space) = self.number(right)?;
                    operators::space_of_binary(left_space, operator, right_space)?;
                    Predicate::Compare { comparison, left, right }
                }
            },
            // The only operator before a condition is `not`.
            Expression::Unary { operand, .. } => Predicate::Not(Box::new(self.condition(&operand.node, operand.at)?)),
            Expression::Flag(name) => {
                let flag = flag(name)?;
                self.fields.ask_flag(at)?;
                Predicate::Flag(flag)
            }
            other => Predicate::Is(self.field(other, false, at)?),
        })
    }

    /// The links of `A or B or C …`, or of `A and B and C …`, which lean to the left.
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

    /// A text field, compared with a text that is the same for all.
    fn text(&self, field: F, comparison: Op, with: &Spanned<Expression>) -> Result<Predicate<F>> {
        let text = match self.evaluator.evaluate(with)? {
            Value::Text(text) => text,
            other => return Err(Error::new(with.at, format!("{} is not a text", other.phrase()))),
        };
        Ok(match comparison {
            Op::Matches => Predicate::Matches { field, regex: regex(&Spanned::new(text, with.at), false)? },
            _ => Predicate::Text {
                field,
                equal: comparison == Op::Equal,
                printed: unescape(&text),
                text: text.into_bytes(),
            },
        })
    }

    /// A number, and what it counts in.
    fn number(&mut self, number: &Spanned<Expression>) -> Result<(Quantity<F>, Option<Space>)> {
        if !number.node.has_fields() {
            let operand = Operand::of(&self.evaluator.placed(number)?)?;
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
    /// Whether it holds; `None` where a field has no value.
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

impl<F: Copy> Quantity<F> {
    /// The number for one page or region; `None` where a field has none, and where the operators have no result.
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

    /// The least and the greatest that it can be for one page or region.
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

/// The flag of that name, or the bit that `bitNN` means.
fn flag(name: &Spanned<String>) -> Result<PageFlags> {
    PageFlags::from_flag_name(&name.node).ok_or_else(|| {
        let error = Error::new(name.at, format!("no page flag is called '{}'", name.node));
        let names = FLAGS.iter().map(|info| info.name.to_owned());
        match lang::near(&name.node, names) {
            near if !near.is_empty() => error.hint(did_you_mean(near)),
            _ => error.hint("`flags ADDRESS` prints their names; any bit can be written as `bitNN`"),
        }
    })
}
