//! The values of expressions, and arrays of C, written as gdb does.

use super::{CInteger, Float, Integer, Spans};
use crate::kernel::words::worded;
use crate::kernel::{FrameNumber, FrameRange, PhysicalAddress, VirtualAddress};
use crate::lang::CType;
use crate::render::gdb;
use std::fmt::{self, Display, Formatter};

/// A typed value of the command language.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// An address of the target.
    Address(VirtualAddress),
    /// An address that a cast converted to a pointer.
    Pointer {
        /// The address.
        address: VirtualAddress,
        /// The type to which it points.
        to: CType,
    },
    /// The address of a symbol with a size: its first byte, or all its bytes where a range is expected.
    Symbol(Spans),
    /// A physical address.
    Physical(PhysicalAddress),
    /// A page frame.
    Frame(FrameNumber),
    /// A number.
    Integer(Integer),
    /// A number with a type of C.
    Typed(CInteger),
    /// A floating-point number.
    Float(Float),
    /// A range of addresses.
    Range(Spans),
    /// A range of page frames.
    Frames(FrameRange),
    /// The elements of an array.
    Array(Array<Value>),
    /// Text.
    Text(String),
}

worded! {
    /// The type of a value.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum ValueKind, word {
        /// A virtual address.
        Address = "address",
        /// A physical address.
        Physical = "physical",
        /// A page frame.
        Frame = "frame",
        /// Page frames.
        Frames = "frames",
        /// A whole number.
        Integer = "integer",
        /// A floating-point number.
        Float = "float",
        /// Several elements.
        Array = "array",
        /// Parts of the address space.
        Range = "range",
        /// A text.
        Text = "text",
        /// No value, as of variables that are not set yet.
        Void = "void",
    }
}

impl Value {
    /// Returns the address in the value, if it is one.
    pub fn address(&self) -> Option<VirtualAddress> {
        match self {
            Value::Address(address) | Value::Pointer { address, .. } => Some(*address),
            Value::Symbol(spans) => Some(spans.start()),
            _ => None,
        }
    }

    /// Returns the number of the value in arithmetic; `None` for text, arrays and floating-point numbers. A range
    /// converts to its first address, so that `libc.so.6 + 0x1000` has the expected meaning.
    pub fn number(&self) -> Option<Integer> {
        Some(match self {
            Value::Integer(number) => *number,
            Value::Typed(number) => number.get(),
            Value::Address(address) | Value::Pointer { address, .. } => address.get().into(),
            Value::Physical(address) => address.get().into(),
            Value::Frame(frame) => frame.get().into(),
            Value::Range(spans) | Value::Symbol(spans) => spans.start().get().into(),
            Value::Frames(frames) => frames.start().get().into(),
            Value::Float(_) | Value::Array(_) | Value::Text(_) => return None,
        })
    }

    /// Returns the type in one word, as in the JSON of `print`.
    pub fn kind(&self) -> ValueKind {
        match self {
            Value::Address(_) | Value::Pointer { .. } | Value::Symbol(_) => ValueKind::Address,
            Value::Physical(_) => ValueKind::Physical,
            Value::Frame(_) => ValueKind::Frame,
            Value::Integer(_) | Value::Typed(_) => ValueKind::Integer,
            Value::Float(_) => ValueKind::Float,
            Value::Range(_) => ValueKind::Range,
            Value::Frames(_) => ValueKind::Frames,
            Value::Array(_) => ValueKind::Array,
            Value::Text(_) => ValueKind::Text,
        }
    }

    /// Returns the type with an article, for a sentence.
    pub(in crate::eval) fn phrase(&self) -> &'static str {
        match self {
            Value::Address(_) | Value::Pointer { .. } | Value::Symbol(_) => "an address",
            Value::Physical(_) => "a physical address",
            Value::Frame(_) => "a page frame",
            Value::Integer(_) | Value::Typed(_) => "an integer",
            Value::Float(_) => "a floating-point number",
            Value::Range(_) => "a range",
            Value::Frames(_) => "a range of frames",
            Value::Array(_) => "an array",
            Value::Text(_) => "text",
        }
    }

    /// Returns the integer in the value, without its type.
    pub fn integer(&self) -> Option<Integer> {
        match self {
            Value::Integer(number) => Some(*number),
            Value::Typed(number) => Some(number.get()),
            _ => None,
        }
    }
}

impl From<Integer> for Value {
    fn from(value: Integer) -> Self {
        Value::Integer(value)
    }
}

/// Prints addresses and frames in hexadecimal, integers in decimal, and text unchanged (a renderer escapes it).
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Address(address) | Value::Pointer { address, .. } => write!(f, "{address}"),
            Value::Symbol(spans) => write!(f, "{}", spans.start()),
            Value::Physical(address) => write!(f, "phys:{address}"),
            Value::Frame(frame) => write!(f, "pfn:{frame}"),
            Value::Integer(integer) => write!(f, "{integer}"),
            Value::Typed(number) => write!(f, "{}", number.get()),
            Value::Float(float) => write!(f, "{float}"),
            Value::Range(spans) => write!(f, "{spans}"),
            Value::Frames(range) => write!(f, "pfn:{}..pfn:{}", range.start(), range.end()),
            Value::Array(array) => write!(f, "{array}"),
            Value::Text(text) => f.write_str(text),
        }
    }
}

/// The most elements that gdb writes before it ends an array with `...`.
const MOST_WRITTEN: usize = 200;
/// The most equal consecutive elements that gdb writes one by one.
const MOST_EQUAL: usize = 10;

/// The elements of an array, which may be arrays too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Array<T> {
    elements: Vec<T>,
    /// The bytes of an array of characters; `None` for other arrays.
    text: Option<Vec<u8>>,
}

impl<T: Display + PartialEq> Array<T> {
    /// Makes an array; one of characters has its bytes too.
    pub(super) fn new(elements: Vec<T>, text: Option<&[u8]>) -> Self {
        Array { elements, text: text.map(<[u8]>::to_vec) }
    }

    /// Returns the elements.
    pub fn elements(&self) -> &[T] {
        &self.elements
    }

    /// Returns all elements in braces, each formatted by `element`.
    pub fn in_braces(&self, element: &dyn Fn(&T) -> String) -> String {
        let (runs, is_cut) = runs(&self.elements);
        let parts = runs.into_iter().flat_map(|(first, count)| match count {
            many if many > MOST_EQUAL => vec![format!("{} <repeats {many} times>", element(first))],
            few => vec![element(first); few],
        });
        let parts: Vec<String> = parts.collect();
        format!("{{{}{}}}", parts.join(", "), if is_cut { "..." } else { "" })
    }
}

/// Returns the first elements that gdb writes, each with the number of its consecutive occurrences, and whether there
/// are more.
fn runs<T: PartialEq>(elements: &[T]) -> (Vec<(&T, usize)>, bool) {
    let mut runs = Vec::new();
    let (mut rest, mut room) = (elements, MOST_WRITTEN);
    while let Some(first) = rest.first() {
        if room == 0 {
            return (runs, true);
        }
        let equal = rest.iter().take_while(|element| *element == first).count();
        // Many equal elements are one entry, which counts as those that would be written one by one.
        let (count, costs) = if equal > MOST_EQUAL { (equal, MOST_EQUAL) } else { (equal.min(room), equal) };
        runs.push((first, count));
        rest = rest.get(count..).unwrap_or_default();
        room = room.saturating_sub(costs);
    }
    (runs, false)
}

/// Formats characters in quotes. As in gdb, a zero at the end is not written.
fn text(bytes: &[u8]) -> String {
    let shown = match bytes {
        [before @ .., 0] if !before.is_empty() && bytes.len() <= MOST_WRITTEN => before,
        all => all,
    };
    let (runs, is_cut) = runs(shown);
    let (mut parts, mut plain): (Vec<String>, Vec<u64>) = (Vec::new(), Vec::new());
    for (byte, count) in runs {
        if count <= MOST_EQUAL {
            plain.extend(std::iter::repeat_n(u64::from(*byte), count));
            continue;
        }
        if !plain.is_empty() {
            parts.push(gdb::text(&std::mem::take(&mut plain), 1));
        }
        parts.push(format!("{} <repeats {count} times>", gdb::character(*byte)));
    }
    if !plain.is_empty() || parts.is_empty() {
        parts.push(gdb::text(&plain, 1));
    }
    format!("{}{}", parts.join(", "), if is_cut { "..." } else { "" })
}

impl<T: Display + PartialEq> Display for Array<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(bytes) => f.write_str(&text(bytes)),
            None => f.write_str(&self.in_braces(&T::to_string)),
        }
    }
}
