//! Mistakes whose answer would be about the wrong memory: a pointer variable in place of the memory to which it points,
//! a sum in place of a range, and the address of a variable in place of its value. The functions that evaluate ranges,
//! places and arguments check for them, so that commands need not.

use super::cast::LARGEST_ARRAY;
use super::error::Result;
use super::evaluator::Evaluator;
use super::scope::{Scope, Slip};
use super::value::Value;
use super::{Origin, Spans};
use crate::kernel::VirtualAddress;
use crate::lang::{BinaryOperator, CType, Expression, Function, Range, Span, Spanned, SymbolName, UnaryOperator};
use crate::process::Target;
use crate::symbol::SymbolKind;

/// The smallest number that counts as a length.
const SMALLEST_LENGTH: i128 = 4096;

/// A number that is a multiple of this is taken for a length, however the sum is written.
const ROUND_LENGTH: i128 = 64 << 10;

/// Notes pointer variables and sums in the range of a command, or of a function. Returns whether there was a note.
pub(super) fn note_range(range: &Spanned<Range>, of: Option<Function>, scope: &dyn Scope) -> bool {
    let expression = match &range.node {
        Range::Expression(expression) => expression,
        Range::Length { start, length } => {
            let length = format!(", +{}", length.node);
            return note(start, &|place| called(of, format!("{place}{length}")), &str::to_owned, scope);
        }
        _ => return false,
    };
    if is_sum_like_length(expression) {
        let cause = "a sum is one address: for a range, put a comma before the length, as in".to_owned();
        scope.note_slip(Slip { cause, written: expression.to_string(), meant: "A, +4M".to_owned() });
        return true;
    }
    let place = Spanned::new(expression.clone(), range.at);
    note(&place, &|place| called(of, place.to_owned()), &region_of, scope)
}

/// The argument as it is in a command, or in the call of a function.
fn called(of: Option<Function>, argument: String) -> String {
    match of {
        Some(function) => format!("{}({argument})", function.name()),
        None => argument,
    }
}

/// A range for which no length has to be known.
fn region_of(place: &str) -> String {
    format!("region({place})")
}

/// Notes, for the name of a variable with a mapped address in it, that the answer is about the variable.
pub(super) fn note_place(place: &Spanned<Expression>, scope: &dyn Scope) {
    note(place, &str::to_owned, &str::to_owned, scope);
}

/// Notes a place that is a pointer variable, or a sum with one. `argument` makes an argument of a place, and `meant`
/// what is right of the memory to which it points. Returns whether there was a note.
fn note(
    place: &Spanned<Expression>,
    argument: &dyn Fn(&str) -> String,
    meant: &dyn Fn(&str) -> String,
    scope: &dyn Scope,
) -> bool {
    // In C, `pointer + 4096` is an address in the memory to which it points.
    let (variable, sum) = match &place.node {
        Expression::Binary { operator, left, right }
            if matches!(operator.node, BinaryOperator::Add | BinaryOperator::Subtract) =>
        {
            (&**left, format!(" {} {}", operator.node.text(), right.node))
        }
        _ => (place, String::new()),
    };
    let Some((name, pointer)) = Evaluator::new(scope).mapped_pointer(variable) else {
        return false;
    };
    scope.note_slip(Slip {
        cause: format!("`{name}` points to {pointer}: for the memory there, write"),
        written: argument(&place.node.to_string()),
        meant: argument(&meant(&format!("*{name}{sum}"))),
    });
    true
}

/// Notes that the range of a command or of a function is a single address, and how to write its whole region. `unit` is
/// what the answer is about.
pub(super) fn note_lone(written: &Range, address: VirtualAddress, of: Option<Function>, unit: &str, scope: &dyn Scope) {
    let page = scope.page_size().bytes();
    let region = scope.target().and_then(|target| target.process.region_at(address).ok().flatten());
    if region.is_some_and(|region| region.range.len() > page) {
        let cause = format!("one address is {unit}: for its whole region, write");
        let [written, meant] = [written.to_string(), region_of(&written.to_string())].map(|range| called(of, range));
        scope.note_slip(Slip { cause, written, meant });
    }
}

/// Returns whether a range is a single address, without a length of its own.
pub(super) fn is_lone(written: &Range, spans: &Spans) -> bool {
    matches!(written, Range::Expression(_)) && spans.size() == 1 && *spans.origin() == Origin::Written
}

/// Returns `matrix` of `*matrix` if that pointer is null.
pub fn null_pointer(address: VirtualAddress, written: &Range) -> Option<String> {
    match written {
        Range::Expression(Expression::Unary { operator, operand })
            if operator.node == UnaryOperator::Dereference && address.get() == 0 =>
        {
            Some(operand.node.to_string())
        }
        _ => None,
    }
}

/// The error for an address in no region.
pub fn in_no_region(address: VirtualAddress, written: &Range) -> String {
    let pointer = null_pointer(address, written);
    let null = pointer.map_or_else(String::new, |pointer| format!(": `{pointer}` is a null pointer"));
    format!("{address} is in no region{null}")
}

/// Notes how to read the value of a variable whose address `print` shows.
pub fn note_address(written: &Spanned<Expression>, scope: &dyn Scope) {
    let Some((name, size)) = variable(written, scope) else {
        return;
    };
    let meant = match (Evaluator::new(scope).mapped_pointer(written), size) {
        (Some(_), _) => format!("*{name}"),
        (None, 8) => format!("(long long){name}"),
        (None, 1 | 2 | 4) => contents(&name, size),
        // An array or a structure, whose address is mostly meant.
        _ => return,
    };
    let cause = format!("this is the address of `{name}`: for its value, write");
    scope.note_slip(Slip { cause, written: written.node.to_string(), meant });
}

impl Evaluator<'_> {
    /// Returns the variable that is written as its name alone, and the mapped address in it.
    pub(super) fn mapped_pointer(&self, variable: &Spanned<Expression>) -> Option<(String, VirtualAddress)> {
        let process = &self.scope.target()?.process;
        let is_pointer = |(_, size): &(String, u64)| *size == u64::from(process.layout().pointer_bytes);
        let (name, _) = self::variable(variable, self.scope).filter(is_pointer)?;
        let operator = Spanned::new(UnaryOperator::Dereference, variable.at);
        let stored = Expression::Unary { operator, operand: Box::new(variable.clone()) };
        let Ok(Value::Address(pointer)) = self.evaluate_at(&stored, variable.at) else {
            return None;
        };
        process.region_at(pointer).is_ok_and(|region| region.is_some()).then_some((name, pointer))
    }

    /// Notes, for `(char)*NAME`, that this truncates the pointer, and how to read the memory to which it points.
    pub(super) fn note_cut_pointer(&self, to: &Spanned<CType>, operand: &Spanned<Expression>) {
        let Expression::Unary { operator, operand: variable } = &operand.node else {
            return;
        };
        let is_cut = self.size_of(&to.node).is_some_and(|size| size < u64::from(self.pointer_bytes()));
        if operator.node == UnaryOperator::Dereference
            && is_cut
            && let Some((name, pointer)) = self.mapped_pointer(variable)
        {
            self.scope.note_slip(Slip {
                cause: format!("`*{name}` is the pointer {pointer}: for what it points to, write"),
                written: format!("({}){}", to.node, operand.node),
                meant: format!("*({} *){name}", to.node),
            });
        }
    }

    /// Notes, for a function of the pages of its argument, that the argument is a pointer. Returns whether there was a
    /// note.
    pub(super) fn note_argument(&self, function: Function, argument: &Spanned<Range>) -> bool {
        use Function as F;
        match (function, &argument.node) {
            (F::Start | F::End | F::Size, _) => false,
            _ if function.takes_filter() => note_range(argument, Some(function), self.scope),
            (_, Range::Expression(place)) => {
                let place = Spanned::new(place.clone(), argument.at);
                let argument = |place: &str| called(Some(function), place.to_owned());
                note(&place, &argument, &str::to_owned, self.scope)
            }
            _ => false,
        }
    }

    /// Notes, for `(T *)NAME` of a variable without a mapped address in it, that it was read as a pointer.
    pub(super) fn note_array(&self, to: &CType, name: &str, pointer: VirtualAddress) {
        let is_mapped = |target: &Target| target.process.region_at(pointer).is_ok_and(|region| region.is_some());
        if pointer.get() == 0 || self.scope.target().is_none_or(is_mapped) {
            return;
        }
        let cause = format!(
            "`{name}` has the size of a pointer, so it is read as one: its own value is `(long){name}`; for an array, write"
        );
        self.scope.note_slip(Slip { cause, written: format!("({to}){name}"), meant: format!("({to})&{name}") });
    }

    /// Notes, for `*NAME` of an array or a structure, that its first bytes are no address of the process.
    pub(super) fn note_no_pointer(&self, operand: &Spanned<Expression>, read: &Result<Value>) {
        let Some(process) = self.scope.target().map(|target| &target.process) else {
            return;
        };
        let is_mapped = |address| process.region_at(address).is_ok_and(|region| region.is_some());
        let word = u64::from(process.layout().pointer_bytes);
        if !matches!(read, Ok(Value::Address(address)) if is_mapped(*address))
            && let Some((name, _)) = variable(operand, self.scope).filter(|(_, size)| *size > word)
        {
            let cause = format!("`{name}` is larger than a pointer, and begins with none: for its memory, write");
            self.scope.note_slip(Slip { cause, written: format!("*{name}"), meant: name });
        }
    }

    /// Notes, for `*&NAME` of a variable that is no pointer, that the bytes of an address were read.
    pub(super) fn note_read(&self, symbol: &SymbolName, at: Span) {
        let named = match symbol.module.clone() {
            Some(module) => Expression::ModuleSymbol { module, symbol: symbol.symbol.clone() },
            None => Expression::Name(symbol.symbol.node.clone()),
        };
        let word = self.scope.target().map_or(0, |target| target.process.layout().pointer_bytes.into());
        if let Some((name, size)) =
            variable(&Spanned::new(named, at), self.scope).filter(|(_, size)| *size > 0 && *size != word)
        {
            let cause =
                format!("`*` reads the {word} bytes of an address, and `{name}` has {size}: for its value, write");
            self.scope.note_slip(Slip { cause, written: format!("*&{name}"), meant: contents(&name, size) });
        }
    }
}

/// Returns how to read the value of a variable of this size as numbers.
fn contents(name: &str, size: u64) -> String {
    match size {
        1 => format!("(char){name}"),
        2 => format!("(short){name}"),
        4 => format!("(int){name}"),
        _ if size.is_multiple_of(4) && size <= LARGEST_ARRAY => format!("{{int[{}]}}&{name}", size / 4),
        _ => format!("{{char[{}]}}&{name}", size.min(LARGEST_ARRAY)),
    }
}

/// Returns the variable that is written as its name alone, with its size. No similar names are searched, because most
/// names of regions and modules are checked here too.
pub fn variable(written: &Spanned<Expression>, scope: &dyn Scope) -> Option<(String, u64)> {
    let (module, name, at) = match &written.node {
        Expression::Name(name) => (None, name, written.at),
        Expression::ModuleSymbol { module, symbol } => (Some(module.node.0.as_str()), &symbol.node, symbol.at),
        _ => return None,
    };
    let evaluator = Evaluator::new(scope);
    let found = evaluator.names(at, "").ok()?.find(module, &name.0).ok()?;
    let start = evaluator.one(&name.0, found.clone(), at).ok()?.start;
    let variable = found.iter().find(|one| one.start == start && one.kind == SymbolKind::Object)?;
    Some((written.node.to_string(), variable.size))
}

/// Returns whether the expression is `A +4M`, with a blank before the plus and none after it.
fn is_sum_like_length(expression: &Expression) -> bool {
    let Expression::Binary { operator, left, right } = expression else {
        return false;
    };
    // An offset is mostly written as `A+4096` or `A + 4096`.
    let has_sign = left.at.end < operator.at.start && operator.at.end == right.at.start;
    let is_length = match right.node {
        Expression::Integer(number) if has_sign => number >= SMALLEST_LENGTH,
        Expression::Integer(number) => number >= ROUND_LENGTH && number % ROUND_LENGTH == 0,
        Expression::Pages(_) => true,
        _ => false,
    };
    operator.node == BinaryOperator::Add && is_length
}
