//! Casts to the types of C: gdb's meaning, by size and sign.

use super::error::{Error, Result};
use super::evaluator::{Evaluator, to_address};
use super::{Float, Integer, Value, operators};
use crate::eval::names::Named;
use crate::kernel::VirtualAddress;
use crate::lang::{self, BinaryOperator, CType, Expression, Span, Spanned, Width};
use crate::symbol::{Kind, SymbolAt};
use std::ffi::c_char;

impl Evaluator<'_> {
    /// `(T)E`. The name of a variable stands for its contents, as in gdb; `&name` for its address.
    pub(super) fn cast(&self, to: &Spanned<CType>, operand: &Spanned<Expression>, at: Span) -> Result<Value> {
        let value = match self.named(&operand.node, operand.at)? {
            Some(Named::Symbol(symbol)) if symbol.kind == Kind::Object => return self.variable_as(&symbol, to, at),
            Some(named) => Spanned::new(named.value(), operand.at),
            None => self.placed(operand)?,
        };
        self.converted(&value, to)
    }

    /// A variable of the program as a type. Only its size is known: an array is its address.
    fn variable_as(&self, symbol: &SymbolAt, to: &Spanned<CType>, at: Span) -> Result<Value> {
        let size = self.size_of(&to.node);
        if symbol.size == 0 || size == Some(symbol.size) {
            return self.contents(symbol.start, &to.node, at);
        }
        if let CType::Pointer(_) | CType::Other(_) = to.node {
            return self.converted(&Spanned::new(Value::Address(symbol.start), at), to);
        }
        let (name, has) = (symbol.name(), symbol.size);
        let message = format!("`{name}` has {has} bytes, and `{}` {}", to.node, size.unwrap_or(0));
        let hint = format!("*({} *)&{name} reads its first bytes", to.node);
        Err(Error::new(at, message).hint(hint))
    }

    /// A value as a type: cut to its size, with its sign.
    fn converted(&self, value: &Spanned<Value>, to: &Spanned<CType>) -> Result<Value> {
        let pointer = |pointee: &CType| {
            let address = match &value.node {
                Value::Integer(number) => VirtualAddress::new(cut(number.get(), self.pointer_bytes(), false) as u64),
                _ => to_address(value)?,
            };
            Ok(Value::Pointer { address, to: pointee.clone() })
        };
        match &to.node {
            CType::Pointer(pointee) => pointer(pointee),
            CType::Other(written) if written.starts_with('{') => Err(unknown(written, to.at)),
            other @ CType::Other(_) => pointer(other),
            CType::Void => Err(no_contents(to.at)),
            CType::Float => Ok(Value::Float(Float::Single(operators::float(value)? as f32))),
            CType::Double => Ok(Value::Float(Float::Double(operators::float(value)?))),
            CType::Bool => operators::truth(value).map(|truth| Integer::from(truth).into()),
            CType::Char => self.cut(value, 1, c_char::MIN != 0),
            CType::Integer { width, signed } => self.cut(value, self.bytes(*width), *signed),
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
        Integer::new(cut(number, bytes, signed))
            .map(Value::Integer)
            .ok_or_else(|| Error::new(value.at, "the result does not fit: integers go from -2^63 to 2^64-1"))
    }

    /// What lies at an address, as a type.
    pub(super) fn contents(&self, address: VirtualAddress, as_type: &CType, at: Span) -> Result<Value> {
        let Some(size) = self.size_of(as_type).filter(|_| *as_type != CType::Void) else {
            return Err(match as_type {
                CType::Other(written) => unknown(written, at),
                _ => no_contents(at),
            });
        };
        let word = self.word(address, size as usize, at)?;
        Ok(match as_type {
            CType::Pointer(to) => Value::Pointer { address: VirtualAddress::new(word), to: (**to).clone() },
            CType::Float => Value::Float(Float::Single(f32::from_bits(word as u32))),
            CType::Double => Value::Float(Float::Double(f64::from_bits(word))),
            _ => {
                let signed = match as_type {
                    CType::Char => c_char::MIN != 0,
                    CType::Integer { signed, .. } => *signed,
                    _ => false,
                };
                let number = cut(word.into(), size as u8, signed);
                Integer::new(number).unwrap_or_default().into()
            }
        })
    }

    /// `A op B`, where a pointer counts in what it points to.
    pub(super) fn combined(
        &self,
        left: &Spanned<Value>,
        operator: &Spanned<BinaryOperator>,
        right: &Spanned<Value>,
    ) -> Result<Value> {
        use BinaryOperator as Op;
        match (&left.node, operator.node, &right.node) {
            (Value::Pointer { to, .. }, Op::Add | Op::Subtract, Value::Integer(steps)) => {
                self.moved(left, to, operator, *steps, right.at)
            }
            (Value::Integer(steps), Op::Add, Value::Pointer { to, .. }) => {
                self.moved(right, to, operator, *steps, left.at)
            }
            (Value::Pointer { to, .. }, Op::Subtract, Value::Pointer { to: other, .. }) if to == other => {
                let size = self.step(to, left.at)?;
                match operators::binary(left, operator, right)? {
                    Value::Integer(bytes) => Ok(bytes.divide(size).unwrap_or_default().into()),
                    other => Ok(other),
                }
            }
            _ => operators::binary(left, operator, right),
        }
    }

    /// A pointer so many steps further on.
    fn moved(
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

    /// The bytes that a pointer moves by for each 1.
    fn step(&self, to: &CType, at: Span) -> Result<Integer> {
        match (to, self.size_of(to)) {
            (CType::Other(written), _) => Err(unknown(written, at)),
            (_, size) => Ok(Integer::from(size.unwrap_or(1))),
        }
    }

    /// The bytes of a type, of which only pasted ones are not known. As in gdb, `void` counts as one.
    fn size_of(&self, of: &CType) -> Option<u64> {
        Some(match of {
            CType::Void | CType::Bool | CType::Char => 1,
            CType::Integer { width, .. } => self.bytes(*width).into(),
            CType::Float => 4,
            CType::Double => 8,
            CType::Pointer(_) => self.pointer_bytes().into(),
            CType::Other(_) => return None,
        })
    }

    fn bytes(&self, width: Width) -> u8 {
        match width {
            Width::Bytes(bytes) => bytes,
            // `long` has the width of a pointer in every ABI of Linux but x32, of which `long long` is no larger.
            Width::Word => self.pointer_bytes(),
        }
    }

    /// Bytes of a pointer: of this machine where there is no target.
    fn pointer_bytes(&self) -> u8 {
        self.scope.target().map_or(size_of::<usize>() as u8, |target| target.process.layout().pointer_bytes)
    }
}

/// The lowest `bytes` bytes of a number.
fn cut(number: i128, bytes: u8, signed: bool) -> i128 {
    let unused = 128 - 8 * u32::from(bytes);
    if signed { number << unused >> unused } else { ((number as u128) << unused >> unused) as i128 }
}

fn unknown(written: &str, at: Span) -> Error {
    Error::new(at, lang::unknown_type(written)).hint(lang::UNKNOWN_TYPE_HINT)
}

fn no_contents(at: Span) -> Error {
    Error::new(at, "`void` has no size and no value").hint("cast to a pointer to what is there: *(int *)ADDRESS")
}
