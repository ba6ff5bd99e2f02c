//! Casts to the types of C: gdb's meaning, by size and sign.

use super::c_number::{CInteger, IntegerType};
use super::error::{Error, Result};
use super::evaluator::{Evaluator, to_address};
use super::{Array, Float, Integer, Value, operators};
use crate::eval::names::NamedThing;
use crate::hint;
use crate::kernel::VirtualAddress;
use crate::lang::{self, BinaryOperator, CType, Expression, Span, Spanned, Width};
use crate::process::WordLayout;
use crate::symbol::{SymbolAt, SymbolKind};

/// The most bytes of an array, as in gdb.
pub(super) const LARGEST_ARRAY: u64 = 65536;

impl Evaluator<'_> {
    /// Evaluates `(T)E`. The name of a variable means its contents, as in gdb, and `&name` its address.
    pub(super) fn cast(&self, to: &Spanned<CType>, operand: &Spanned<Expression>, at: Span) -> Result<Value> {
        let value = match self.resolve_name(&operand.node, operand.at)? {
            Some(NamedThing::Symbol(symbol)) if symbol.kind == SymbolKind::Object => {
                return self.variable_as(&symbol, &operand.node.to_string(), to, at);
            }
            Some(named) => Spanned::new(named.value(), operand.at),
            None => self.value_with_place(operand)?,
        };
        self.note_cut_pointer(to, operand);
        self.convert(&value, to)
    }

    /// Reads a variable of the program as a type. Of its own type only the size is known, and an array converts to its
    /// address.
    fn variable_as(&self, symbol: &SymbolAt, written: &str, to: &Spanned<CType>, at: Span) -> Result<Value> {
        let size = self.size_of(&to.node);
        if symbol.size == 0 || size == Some(symbol.size) {
            let value = self.contents(symbol.start, &to.node, at)?;
            if let Value::Pointer { address, .. } = value {
                self.note_array(&to.node, written, address);
            }
            return Ok(value);
        }
        if let CType::Pointer(_) | CType::Other(_) = to.node {
            return self.convert(&Spanned::new(Value::Address(symbol.start), at), to);
        }
        let (name, has) = (symbol.name(), symbol.size);
        let message = format!("`{name}` has {has} bytes, and `{}` {}", to.node, size.unwrap_or(0));
        let hint = format!("to read its first bytes: `*({} *)&{name}`", to.node);
        Err(Error::new(at, message).hint(hint))
    }

    /// Returns whether a cast to a pointer reads this variable, by its size: the type is unknown.
    pub(super) fn is_like_pointer(&self, symbol: &SymbolAt) -> bool {
        symbol.kind == SymbolKind::Object && [0, self.pointer_bytes().into()].contains(&symbol.size)
    }

    /// Converts a value to a type: truncates it to the size, with the sign of the type.
    fn convert(&self, value: &Spanned<Value>, to: &Spanned<CType>) -> Result<Value> {
        let pointer = |pointee: &CType| {
            let address = match &value.node {
                Value::Integer(_) | Value::Typed(_) => {
                    let number = operators::Operand::of(value)?.number.get();
                    let word = IntegerType::new(self.pointer_bytes(), false);
                    VirtualAddress::new(CInteger::cut(number, word).bits())
                }
                _ => to_address(value)?,
            };
            Ok(Value::Pointer { address, to: pointee.clone() })
        };
        match &to.node {
            CType::Pointer(pointee) => pointer(pointee),
            CType::Other(written) if written.starts_with('{') => Err(no_such_type(written, to.at)),
            other @ CType::Other(_) => pointer(other),
            CType::Void => Err(no_contents(to.at)),
            CType::Float => Ok(Value::Float(Float::Single(operators::float(value)? as f32))),
            CType::Double => Ok(Value::Float(Float::Double(operators::float(value)?))),
            CType::Bool => {
                let truth = operators::truth(value)?;
                Ok(Value::Typed(CInteger::cut(truth.into(), IntegerType::new(1, false))))
            }
            CType::Char => self.cut(value, 1, self.layout().is_char_signed),
            CType::Integer { width, is_signed: signed } => self.cut(value, self.bytes(*width), *signed),
            array @ CType::Array(..) => Err(Error::new(to.at, "cannot cast to an array")
                .hint(format!("to read one from memory: `{{{array}}}ADDRESS`"))),
        }
    }

    fn cut(&self, value: &Spanned<Value>, bytes: u8, signed: bool) -> Result<Value> {
        let number = match value.node {
            Value::Float(float) => {
                let whole = float.get().trunc();
                let (least, most) = if signed { (-1, 8 * bytes - 1) } else { (0, 8 * bytes) };
                let fits = whole >= f64::from(least) * 2f64.powi(most.into()) && whole < 2f64.powi(most.into());
                if !fits {
                    return Err(Error::new(value.at, format!("{float} does not fit {bytes} bytes")));
                }
                whole as i128
            }
            _ => operators::Operand::of(value)?.number.get(),
        };
        Ok(Value::Typed(CInteger::cut(number, IntegerType::new(bytes, signed))))
    }

    /// Reads the value of a type at an address.
    pub(super) fn contents(&self, address: VirtualAddress, as_type: &CType, at: Span) -> Result<Value> {
        let Some(size) = self.size_of(as_type).filter(|_| *as_type != CType::Void) else {
            return Err(match as_type {
                CType::Other(written) => no_such_type(written, at),
                _ => no_contents(at),
            });
        };
        if size > LARGEST_ARRAY {
            let message = format!("`{as_type}` has {size} bytes: an array ends at {LARGEST_ARRAY}");
            return Err(Error::new(at, message).hint("for more, use `x` with a count and a size: `x/8xg ADDRESS`"));
        }
        let bytes = self.bytes_at(address, size as usize, at)?;
        Ok(self.of_bytes(&bytes, as_type))
    }

    /// Decodes bytes as a type of the same size.
    fn of_bytes(&self, bytes: &[u8], as_type: &CType) -> Value {
        let word = || self.layout().number(bytes);
        let integer = |signed| {
            let of = IntegerType::new(bytes.len() as u8, signed);
            Value::Typed(CInteger::cut(word().into(), of))
        };
        match as_type {
            CType::Pointer(to) => Value::Pointer { address: VirtualAddress::new(word()), to: (**to).clone() },
            CType::Float => Value::Float(Float::Single(f32::from_bits(word() as u32))),
            CType::Double => Value::Float(Float::Double(f64::from_bits(word()))),
            CType::Char => integer(self.layout().is_char_signed),
            CType::Integer { is_signed: signed, .. } => integer(*signed),
            CType::Array(of, count) => {
                let size = bytes.len() / usize::try_from(*count).unwrap_or(usize::MAX).max(1);
                let elements = bytes.chunks_exact(size.max(1)).map(|element| self.of_bytes(element, of));
                let is_text = matches!(**of, CType::Char | CType::Integer { width: Width::Bytes(1), .. });
                Value::Array(Array::new(elements.collect(), is_text.then_some(bytes)))
            }
            CType::Bool | CType::Void | CType::Other(_) => integer(false),
        }
    }

    /// Evaluates `A[N]`: an element of an array, or of the memory to which a pointer points.
    pub(super) fn element(&self, of: &Spanned<Expression>, index: &Spanned<u64>, at: Span) -> Result<Value> {
        let value = self.value_with_place(of)?;
        match &value.node {
            Value::Pointer { to, .. } => {
                let operator = Spanned::new(BinaryOperator::Add, index.at);
                let moved = self.step_pointer(&value, to, &operator, index.node.into(), index.at)?;
                self.contents(to_address(&Spanned::new(moved, at))?, to, at)
            }
            Value::Array(array) => {
                let elements = array.elements();
                let element = usize::try_from(index.node).ok().and_then(|index| elements.get(index));
                element.cloned().ok_or_else(|| {
                    let message = format!("the array has {} elements, the first of which is [0]", elements.len());
                    Error::new(index.at, message)
                })
            }
            other => {
                let message = format!("{} has no elements: its type is not known", other.phrase());
                Err(Error::new(value.at, message).hint(format!("((int *)ADDRESS)[{}]", index.node)))
            }
        }
    }

    /// Computes `A op B` with a pointer, whose unit is the type to which it points.
    pub(super) fn combine_pointers(
        &self,
        left: &Spanned<Value>,
        operator: &Spanned<BinaryOperator>,
        right: &Spanned<Value>,
    ) -> Result<Value> {
        use BinaryOperator as Op;
        if let (Value::Pointer { to, .. }, Op::Add | Op::Subtract) = (&left.node, operator.node)
            && let Some(steps) = right.node.integer()
        {
            return self.step_pointer(left, to, operator, steps, right.at);
        }
        if let (Op::Add, Value::Pointer { to, .. }) = (operator.node, &right.node)
            && let Some(steps) = left.node.integer()
        {
            return self.step_pointer(right, to, operator, steps, left.at);
        }
        match (&left.node, operator.node, &right.node) {
            (Value::Pointer { to, .. }, Op::Subtract, Value::Pointer { to: other, .. }) if to == other => {
                let size = self.step(to, left.at)?;
                match operators::binary(left, operator, right)? {
                    Value::Integer(bytes) => Ok(bytes.divide(size).unwrap_or_default().into()),
                    other => Ok(other),
                }
            }
            (Value::Pointer { to, .. }, Op::Subtract, Value::Pointer { to: other, .. }) => {
                let message = format!("`{to} *` and `{other} *` cannot be subtracted: their types differ");
                Err(Error::new(operator.at, message).hint("for the distance in bytes: `(char *)A - (char *)B`"))
            }
            _ => operators::binary(left, operator, right),
        }
    }

    /// Moves a pointer by a number of steps.
    fn step_pointer(
        &self,
        pointer: &Spanned<Value>,
        to: &CType,
        operator: &Spanned<BinaryOperator>,
        steps: Integer,
        at: Span,
    ) -> Result<Value> {
        let bytes = steps.times(self.step(to, pointer.at)?);
        let bytes = bytes.ok_or_else(|| Error::new(at, "so many steps pass 2^64-1 bytes"))?;
        let moved = operators::binary(pointer, operator, &Spanned::new(bytes.into(), at))?;
        let address = to_address(&Spanned::new(moved, pointer.at))?;
        Ok(Value::Pointer { address, to: to.clone() })
    }

    /// Returns by how many bytes a step moves a pointer.
    fn step(&self, to: &CType, at: Span) -> Result<Integer> {
        match (to, self.size_of(to)) {
            (CType::Other(written), _) => Err(no_such_type(written, at)),
            (_, size) => Ok(Integer::from(size.unwrap_or(1))),
        }
    }

    /// Returns the size of a type in bytes; `None` for pasted types, which are unknown. As in gdb, `void` has one byte.
    pub(super) fn size_of(&self, of: &CType) -> Option<u64> {
        Some(match of {
            CType::Void | CType::Bool | CType::Char => 1,
            CType::Integer { width, .. } => self.bytes(*width).into(),
            CType::Float => 4,
            CType::Double => 8,
            CType::Pointer(_) => self.pointer_bytes().into(),
            CType::Array(of, count) => return self.size_of(of)?.checked_mul(*count),
            CType::Other(_) => return None,
        })
    }

    fn bytes(&self, width: Width) -> u8 {
        match width {
            Width::Bytes(bytes) => bytes,
            // `long` has the size of a pointer in every ABI of Linux.
            Width::Word => self.pointer_bytes(),
        }
    }

    pub(super) fn pointer_bytes(&self) -> u8 {
        self.layout().pointer_bytes
    }

    /// Returns the layout of the target, or of this machine without a target.
    fn layout(&self) -> WordLayout {
        self.scope.target().map_or_else(WordLayout::own, |target| target.process.layout())
    }
}

fn no_such_type(written: &str, at: Span) -> Error {
    Error::new(at, lang::unknown_type(written)).hint(hint::UNKNOWN_TYPE)
}

fn no_contents(at: Span) -> Error {
    Error::new(at, "`void` has no size and no value").hint("cast to a pointer with a type: `*(int *)ADDRESS`")
}
