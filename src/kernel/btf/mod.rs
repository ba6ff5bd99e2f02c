//! BTF: the kernel's description of its own structures (`/sys/kernel/btf/vmlinux`, Documentation/bpf/btf.rst). It gives
//! the place of a member in the bytes of its structure, and the values of enumerations.
//!
//! A kernel has more than 100,000 types. Only the offset of each is remembered, and names are compared while searching.
//!
//! Every count, offset and type number may be false. [`Layout::parse`] checks that each type is inside the file. A
//! lookup follows at most `MOST_STEPS` members and links, so that cycles and deep nesting end.

#[cfg(test)]
mod tests;
mod types;

pub use types::BadBtf;

use crate::budget::Budget;
use types::{ARRAY, ENUM, ENUM64, FLOAT, INT, PTR, STRUCT, Type, TypeTable, UNION};

/// The most members and links that one lookup follows. The largest structures of a kernel have some hundred members.
const MOST_STEPS: u64 = 1 << 16;

/// The structures and enumerations of one kernel.
///
/// A kernel may have several structures of one name, each private to a source file. A lookup of such a name has an
/// answer only if it is the same for all of them.
#[derive(Clone, Debug)]
pub struct Layout(TypeTable);

/// The place of a member in its structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberPlace {
    /// Bits from the beginning of the structure to the member. In a big-endian kernel the first bit of a byte is its
    /// most significant one.
    pub bit_offset: u64,
    /// The width of the member in bits; for an array, that of all elements.
    pub bits: u64,
    /// Whether the member is a signed integer, or a structure that contains only one, as `atomic_t`.
    pub is_signed: bool,
    /// Whether the member is a bit field.
    pub is_bit_field: bool,
}

impl MemberPlace {
    /// Returns the offset of the member in bytes; `None` for a bit field.
    pub fn byte_offset(&self) -> Option<u64> {
        (!self.is_bit_field && self.bit_offset.is_multiple_of(8)).then_some(self.bit_offset / 8)
    }
}

impl Layout {
    /// Finds all types. Each costs one step.
    ///
    /// # Errors
    /// If the bytes are damaged, or the budget ends.
    pub fn parse(bytes: Vec<u8>, budget: &mut Budget) -> Result<Layout, BadBtf> {
        TypeTable::parse(bytes, budget).map(Layout)
    }

    /// The size of a structure or union in bytes.
    pub fn size_of(&self, structure: &str) -> Option<u64> {
        self.agreed_answer(structure, &[STRUCT, UNION], |one, _| Some(u64::from(one.size)))
    }

    /// Returns the place of a member. `path` is its name, or several with dots between them: `folio` has `page.flags`.
    /// Members of anonymous structures and unions belong to the enclosing structure, as in C. Pointers are not
    /// followed.
    pub fn member(&self, structure: &str, path: &str) -> Option<MemberPlace> {
        self.agreed_answer(structure, &[STRUCT, UNION], |one, budget| self.place(*one, path, budget))
    }

    /// Returns the value of a name in an enumeration. Older BTF does not record signs: `None` also if the value may be
    /// negative.
    pub fn enumerator(&self, enumeration: &str, name: &str) -> Option<i64> {
        self.agreed_answer(enumeration, &[ENUM, ENUM64], |one, _| self.0.value_of(one, name))
    }

    /// Returns the value of a member of at most 64 bits, from the bytes of its structure. A member that is a structure
    /// of one number has the value of that number.
    pub fn value(&self, member: MemberPlace, structure: &[u8]) -> Option<i128> {
        let bits = u32::try_from(member.bits).ok().filter(|bits| (1..=64).contains(bits))?;
        let start = usize::try_from(member.bit_offset / 8).ok()?;
        let before = (member.bit_offset % 8) as u32;
        let length = (before + bits).div_ceil(8);
        let bytes = structure.get(start..)?.get(..length as usize)?;
        let joined = |sum: u128, byte: &u8| sum << 8 | u128::from(*byte);
        let shifted = if self.0.is_big_endian {
            bytes.iter().fold(0, joined) >> (length * 8 - before - bits)
        } else {
            bytes.iter().rev().fold(0, joined) >> before
        };
        let unused = 128 - bits;
        let at_top = shifted << unused;
        Some(if member.is_signed { at_top as i128 >> unused } else { (at_top >> unused) as i128 })
    }

    /// Returns the result of `answer` for all definitions of this name, if it is the same for each.
    fn agreed_answer<T: PartialEq>(
        &self,
        name: &str,
        kinds: &[u8],
        mut answer: impl FnMut(&Type, &mut Budget) -> Option<T>,
    ) -> Option<T> {
        let mut budget = Budget::unlimited().at_most(MOST_STEPS);
        let mut wanted = self.0.definitions(name).filter(|one| kinds.contains(&one.kind));
        let first = answer(&wanted.next()?, &mut budget)?;
        wanted.all(|one| answer(&one, &mut budget).as_ref() == Some(&first)).then_some(first)
    }

    /// Returns the place of a member in this definition of its structure.
    fn place(&self, structure: Type, path: &str, budget: &mut Budget) -> Option<MemberPlace> {
        let mut inside = structure;
        let mut offset = 0u64;
        let (parents, last) = path.rsplit_once('.').map_or((None, path), |(parents, last)| (Some(parents), last));
        for name in parents.into_iter().flat_map(|parents| parents.split('.')) {
            let found = self.find(inside, name, budget)?;
            offset = offset.checked_add(found.bit_offset)?;
            inside = self.0.plain(found.number, budget).filter(Type::has_members)?;
        }
        let found = self.find(inside, last, budget)?;
        self.whole(found, offset, budget)
    }

    /// Finds the member with this name, also inside anonymous structures and unions.
    fn find(&self, structure: Type, name: &str, budget: &mut Budget) -> Option<MemberEntry> {
        let mut pending = vec![(structure, 0u64)];
        while let Some((inside, start)) = pending.pop() {
            for index in 0..inside.count {
                budget.go_on().ok()?;
                let [name_at, number, place] = self.0.entry(&inside, index)?;
                // With `kind_flag` the upper 8 bits of the offset are the width of a bit field.
                let (place, bits) = if inside.flag { (place & 0xff_ffff, place >> 24) } else { (place, 0) };
                let bit_offset = start.checked_add(place.into())?;
                if self.0.is_called(name_at, name) {
                    return Some(MemberEntry { number, bit_offset, bits });
                }
                if self.0.is_anonymous(name_at) {
                    let inner = self.0.plain(number, budget).filter(Type::has_members);
                    pending.extend(inner.map(|inner| (inner, bit_offset)));
                }
            }
        }
        None
    }

    /// Adds the width to a member. `offset` is that of the structure in which it was found.
    fn whole(&self, found: MemberEntry, offset: u64, budget: &mut Budget) -> Option<MemberPlace> {
        let mut bit_offset = offset.checked_add(found.bit_offset)?;
        let mut elements = 1u64;
        let mut one = self.0.plain(found.number, budget)?;
        while one.kind == ARRAY {
            let (element, count) = self.0.array(&one)?;
            elements = elements.checked_mul(count.into())?;
            one = self.0.plain(element, budget)?;
        }
        let bytes = match one.kind {
            PTR => self.0.pointer_bytes?,
            INT | STRUCT | UNION | ENUM | ENUM64 | FLOAT => one.size,
            _ => return None,
        };
        let whole = u64::from(bytes) * 8;
        let mut bits = u64::from(found.bits);
        if one.kind == INT && bits == 0 {
            // Without `kind_flag` a bit field has an integer type with the offset and width of the field.
            let int = self.0.int(&one)?;
            if (u64::from(int.bits), int.bit_offset) != (whole, 0) {
                bits = int.bits.into();
                bit_offset = bit_offset.checked_add(int.bit_offset.into())?;
            }
        }
        let is_signed = self.0.is_signed(one, budget)?;
        let is_bit_field = bits != 0;
        if !is_bit_field {
            bits = whole.checked_mul(elements)?;
        } else if bits > whole || elements != 1 {
            return None;
        }
        Some(MemberPlace { bit_offset, bits, is_signed, is_bit_field })
    }
}

/// A member as its structure records it.
struct MemberEntry {
    /// The number of the member's type.
    number: u32,
    bit_offset: u64,
    /// The width of a bit field; 0 for other members.
    bits: u32,
}
