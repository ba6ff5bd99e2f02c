//! The records of BTF: the header, the types, and the data after each type.

use crate::budget::{Budget, OutOfBudget};
use std::ops::Range;
use thiserror::Error;

pub(super) const INT: u8 = 1;
pub(super) const PTR: u8 = 2;
pub(super) const ARRAY: u8 = 3;
pub(super) const STRUCT: u8 = 4;
pub(super) const UNION: u8 = 5;
pub(super) const ENUM: u8 = 6;
const FWD: u8 = 7;
const TYPEDEF: u8 = 8;
const VOLATILE: u8 = 9;
const CONST: u8 = 10;
const RESTRICT: u8 = 11;
const FUNC: u8 = 12;
const FUNC_PROTO: u8 = 13;
const VAR: u8 = 14;
const DATASEC: u8 = 15;
pub(super) const FLOAT: u8 = 16;
const DECL_TAG: u8 = 17;
const TYPE_TAG: u8 = 18;
pub(super) const ENUM64: u8 = 19;

/// The size of the header without the fields of newer versions.
const HEADER_BYTES: u32 = 24;
/// The size of the header with the place of the sizes of kinds (`struct btf_layout`).
const HEADER_WITH_KINDS: u32 = 32;
/// The size of a type without the data after it.
const TYPE_BYTES: usize = 12;

/// Why the bytes are no valid BTF.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum BadBtf {
    /// The bytes do not begin with the magic number of BTF.
    #[error("not BTF")]
    NotBtf,
    /// The version is not 1, the only one that exists.
    #[error("unknown version of BTF: {0}")]
    Version(u8),
    /// This part extends beyond the end.
    #[error("BTF ends before its {0}")]
    CutShort(&'static str),
    /// This kind of type has an unknown size, so that later types cannot be found.
    #[error("BTF has a type of unknown kind {0}")]
    Kind(u8),
    /// The budget ended first.
    #[error(transparent)]
    GivenUp(#[from] OutOfBudget),
}

/// The types of one BTF file, whose bytes are kept unchanged.
#[derive(Clone, Debug)]
pub(super) struct TypeTable {
    bytes: Vec<u8>,
    pub(super) is_big_endian: bool,
    names: Range<usize>,
    /// The offset of each type in `bytes`. Type 1 is the first: number 0 is `void`.
    offsets: Vec<u32>,
    /// The numbers of structures, unions and enumerations with a name.
    named_types: Vec<u32>,
    /// The size of `long`, which is that of a pointer: BTF does not record it.
    pub(super) pointer_bytes: Option<u32>,
}

/// The ranges of bytes of the file that its header describes.
struct Parts {
    types: Range<usize>,
    names: Range<usize>,
    /// For each kind the size of the data after a type (`struct btf_layout`, in headers of 32 bytes).
    kinds: Range<usize>,
}

impl Parts {
    fn find(file: &TypeTable) -> Result<Parts, BadBtf> {
        let header = BadBtf::CutShort("header");
        match file.bytes.get(2).ok_or(header)? {
            1 => {}
            &version => return Err(BadBtf::Version(version)),
        }
        let [length] = file.words(4).ok_or(header)?;
        let part = |field, what| {
            let [offset, size] = file.words(field).ok_or(header)?;
            let end = |size: u32| usize::try_from(u64::from(length) + u64::from(offset) + u64::from(size));
            let range = end(0).ok().zip(end(size).ok()).map(|(start, end)| start..end);
            range.filter(|range| range.end <= file.bytes.len()).ok_or(BadBtf::CutShort(what))
        };
        if length < HEADER_BYTES {
            return Err(header);
        }
        let kinds = if length < HEADER_WITH_KINDS { 0..0 } else { part(24, "sizes of kinds")? };
        Ok(Parts { types: part(8, "types")?, names: part(16, "names")?, kinds })
    }

    /// Returns the offset after a type and its data.
    fn after(&self, file: &TypeTable, one: &Type) -> Result<usize, BadBtf> {
        let (fixed, each) = match one.kind {
            PTR | FWD | TYPEDEF | VOLATILE | CONST | RESTRICT | FUNC | FLOAT | TYPE_TAG => (0, 0),
            INT | VAR | DECL_TAG => (4, 0),
            ARRAY => (12, 0),
            ENUM | FUNC_PROTO => (0, 8),
            STRUCT | UNION | DATASEC | ENUM64 => (0, 12),
            kind => self.sizes_of_unknown(file, kind).ok_or(BadBtf::Kind(kind))?,
        };
        // At most 255 × 2²⁴, which cannot overflow 64 bits.
        let size = TYPE_BYTES as u64 + u64::from(fixed) + u64::from(each) * u64::from(one.count);
        let end = usize::try_from(size).ok().and_then(|size| one.at.checked_add(size));
        end.filter(|&end| end <= self.types.end).ok_or(BadBtf::CutShort("types"))
    }

    /// Returns the sizes of the fixed part and of each element after a type, for a kind that this program does not
    /// know.
    fn sizes_of_unknown(&self, file: &TypeTable, kind: u8) -> Option<(u8, u8)> {
        let rows = file.bytes.get(self.kinds.clone())?.as_chunks::<4>().0;
        let [fixed, each, ..] = rows.get(usize::from(kind)).filter(|_| kind != 0)?;
        Some((*fixed, *each))
    }
}

/// One type.
#[derive(Clone, Copy)]
pub(super) struct Type {
    /// The offset of the type in the file.
    pub(super) at: usize,
    /// The offset of the name among the strings.
    pub(super) name: u32,
    pub(super) kind: u8,
    /// `kind_flag`. Of a structure: the offsets of members include widths of bit fields. Of an enumeration: its values
    /// are signed.
    pub(super) flag: bool,
    /// The number of members, values or parameters after the type.
    pub(super) count: u32,
    /// The size of the type in bytes, or the number of the type that it refers to.
    pub(super) size: u32,
}

impl Type {
    pub(super) fn has_members(&self) -> bool {
        matches!(self.kind, STRUCT | UNION)
    }
}

/// The data after an integer type.
pub(super) struct Int {
    pub(super) is_signed: bool,
    pub(super) bit_offset: u8,
    pub(super) bits: u8,
}

impl TypeTable {
    /// Finds all types. Each costs one step.
    pub(super) fn parse(bytes: Vec<u8>, budget: &mut Budget) -> Result<TypeTable, BadBtf> {
        let is_big_endian = match bytes.as_slice() {
            [0x9f, 0xeb, ..] => false,
            [0xeb, 0x9f, ..] => true,
            _ => return Err(BadBtf::NotBtf),
        };
        let mut file = TypeTable {
            bytes,
            is_big_endian,
            names: 0..0,
            offsets: Vec::new(),
            named_types: Vec::new(),
            pointer_bytes: None,
        };
        let parts = Parts::find(&file)?;
        file.names = parts.names.clone();
        let mut at = parts.types.start;
        // `offsets` and `named_types` grow with the types read so far, to at most two thirds of the size of the file.
        while at < parts.types.end {
            budget.go_on()?;
            let one = file.type_at(at).ok_or(BadBtf::CutShort("types"))?;
            let offset = u32::try_from(at).map_err(|_| BadBtf::CutShort("types"))?;
            at = parts.after(&file, &one)?;
            file.offsets.push(offset);
            file.note(&one);
        }
        Ok(file)
    }

    fn words<const N: usize>(&self, at: usize) -> Option<[u32; N]> {
        let words = self.bytes.get(at..)?.as_chunks::<4>().0.first_chunk::<N>()?;
        Some(words.map(|word| if self.is_big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }))
    }

    fn type_at(&self, at: usize) -> Option<Type> {
        let [name, info, size] = self.words(at)?;
        // The upper bits of the kind and of the count were always 0, until newer kernels made both wider.
        let kind = (info >> 24 & 0x7f) as u8;
        Some(Type { at, name, kind, flag: info >> 31 == 1, count: info & 0xff_ffff, size })
    }

    fn type_of(&self, number: u32) -> Option<Type> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        self.type_at(usize::try_from(*self.offsets.get(index)?).ok()?)
    }

    /// Returns the structures, unions and enumerations with this name.
    pub(super) fn definitions(&self, name: &str) -> impl Iterator<Item = Type> {
        let all = self.named_types.iter().filter_map(|&number| self.type_of(number));
        all.filter(move |one| self.is_called(one.name, name))
    }

    /// Returns the type without typedefs, qualifiers and tags.
    pub(super) fn plain(&self, mut number: u32, budget: &mut Budget) -> Option<Type> {
        loop {
            budget.go_on().ok()?;
            let one = self.type_of(number)?;
            match one.kind {
                TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG => number = one.size,
                _ => return Some(one),
            }
        }
    }

    /// Returns one member of a structure, or one value of a 64-bit enumeration, as three words.
    pub(super) fn entry(&self, one: &Type, index: u32) -> Option<[u32; 3]> {
        self.words(one.at + TYPE_BYTES + 12 * usize::try_from(index).ok()?)
    }

    /// Returns the type and the number of the elements of an array.
    pub(super) fn array(&self, one: &Type) -> Option<(u32, u32)> {
        let [element, _, count] = self.words(one.at + TYPE_BYTES)?;
        Some((element, count))
    }

    pub(super) fn int(&self, one: &Type) -> Option<Int> {
        let [encoding] = self.words(one.at + TYPE_BYTES)?;
        let [bits, _, bit_offset, kinds] = encoding.to_le_bytes();
        Some(Int { is_signed: kinds & 1 == 1, bit_offset, bits })
    }

    /// Returns whether the type is a signed integer, or a structure that contains only one, as `atomic_t`.
    pub(super) fn is_signed(&self, mut one: Type, budget: &mut Budget) -> Option<bool> {
        while one.kind == STRUCT && one.count == 1 {
            let [_, number, _] = self.entry(&one, 0)?;
            let inner = self.plain(number, budget)?;
            if inner.size != one.size {
                return Some(false);
            }
            one = inner;
        }
        match one.kind {
            INT => Some(self.int(&one)?.is_signed),
            kind => Some(one.flag && matches!(kind, ENUM | ENUM64)),
        }
    }

    /// Returns the value that an enumeration gives to a name.
    pub(super) fn value_of(&self, one: &Type, name: &str) -> Option<i64> {
        (0..one.count).find_map(|index| {
            let (name_at, value) = if one.kind == ENUM64 {
                let [name_at, low, high] = self.entry(one, index)?;
                let value = u64::from(high) << 32 | u64::from(low);
                (name_at, if one.flag { Some(value as i64) } else { i64::try_from(value).ok() })
            } else {
                let [name_at, value] = self.words(one.at + TYPE_BYTES + 8 * usize::try_from(index).ok()?)?;
                (name_at, if one.flag { Some((value as i32).into()) } else { i32::try_from(value).ok().map(i64::from) })
            };
            self.is_called(name_at, name).then_some(value)
        })?
    }

    /// Lists a structure, union or enumeration with a name, and records the size of the first `long`.
    fn note(&mut self, one: &Type) {
        let number = self.offsets.len() as u32;
        match one.kind {
            STRUCT | UNION | ENUM | ENUM64 if !self.is_anonymous(one.name) => self.named_types.push(number),
            INT if self.pointer_bytes.is_none() && matches!(one.size, 4 | 8) && self.is_long(one.name) => {
                self.pointer_bytes = Some(one.size);
            }
            _ => {}
        }
    }

    fn name_from(&self, at: u32) -> Option<&[u8]> {
        self.bytes.get(self.names.clone())?.get(usize::try_from(at).ok()?..)
    }

    pub(super) fn is_called(&self, at: u32, name: &str) -> bool {
        let rest = self.name_from(at).and_then(|text| text.strip_prefix(name.as_bytes()));
        !name.is_empty() && matches!(rest, Some([0, ..]))
    }

    pub(super) fn is_anonymous(&self, at: u32) -> bool {
        matches!(self.name_from(at), Some([0, ..]))
    }

    /// Whether an integer is a `long`: compilers write `long unsigned int` and `unsigned long`.
    fn is_long(&self, at: u32) -> bool {
        ["long int", "long unsigned int", "long", "unsigned long"].iter().any(|name| self.is_called(at, name))
    }
}
