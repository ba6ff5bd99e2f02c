//! The types of C in casts: integers, floating-point numbers, and pointers to them.

use std::fmt::{self, Display, Formatter};

/// A type of C. Its size may depend on the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CType {
    /// `void`, only as the target of a pointer.
    Void,
    /// `bool`, `_Bool`
    Bool,
    /// `char`, which is signed only on some machines.
    Char,
    /// `int`, `unsigned long` and other integers.
    Integer {
        /// The size of the integer.
        width: Width,
        /// Whether the type is signed.
        is_signed: bool,
    },
    /// `float`
    Float,
    /// `double`
    Double,
    /// `T *`
    Pointer(Box<CType>),
    /// `T[N]`, only in a cast in braces.
    Array(Box<CType>, u64),
    /// A pasted type that is unknown to pmdb, as it was written: `(struct s *)`. In braces it is that of the value at
    /// the address.
    Other(String),
}

/// The size of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// This many bytes, on every machine with Linux.
    Bytes(u8),
    /// The size of a pointer: `long`, `size_t`.
    Word,
}

/// The types of one word. The first name of a type is the one that is printed.
const WORDS: &[(&str, CType)] = &[
    ("bool", CType::Bool),
    ("_Bool", CType::Bool),
    ("char", CType::Char),
    ("int", integer(Width::Bytes(4), true)),
    ("unsigned", integer(Width::Bytes(4), false)),
    ("signed", integer(Width::Bytes(4), true)),
    ("short", integer(Width::Bytes(2), true)),
    ("long", integer(Width::Word, true)),
    ("float", CType::Float),
    ("double", CType::Double),
    ("int8_t", integer(Width::Bytes(1), true)),
    ("int16_t", integer(Width::Bytes(2), true)),
    ("int32_t", integer(Width::Bytes(4), true)),
    ("int64_t", integer(Width::Bytes(8), true)),
    ("uint8_t", integer(Width::Bytes(1), false)),
    ("uint16_t", integer(Width::Bytes(2), false)),
    ("uint32_t", integer(Width::Bytes(4), false)),
    ("uint64_t", integer(Width::Bytes(8), false)),
    ("size_t", integer(Width::Word, false)),
    ("ssize_t", integer(Width::Word, true)),
    ("intptr_t", integer(Width::Word, true)),
    ("uintptr_t", integer(Width::Word, false)),
    ("ptrdiff_t", integer(Width::Word, true)),
    // Types of the kernel and of Rust.
    ("u8", integer(Width::Bytes(1), false)),
    ("u16", integer(Width::Bytes(2), false)),
    ("u32", integer(Width::Bytes(4), false)),
    ("u64", integer(Width::Bytes(8), false)),
    ("i8", integer(Width::Bytes(1), true)),
    ("i16", integer(Width::Bytes(2), true)),
    ("i32", integer(Width::Bytes(4), true)),
    ("i64", integer(Width::Bytes(8), true)),
    ("f32", CType::Float),
    ("f64", CType::Double),
];

/// Words without an effect on size and sign.
const QUALIFIERS: &[&str] = &["const", "volatile"];

/// The known types, for an error about another one.
pub const KNOWN_TYPES: &str = "a number of C, such as int, unsigned char or double, or a pointer to one";

/// Returns the message about an unknown type.
pub fn unknown_type(written: &str) -> String {
    format!("unknown type `{written}`")
}

/// Returns the types of one word.
pub fn type_words() -> impl Iterator<Item = &'static str> {
    WORDS.iter().map(|(word, _)| *word)
}

const fn integer(width: Width, signed: bool) -> CType {
    CType::Integer { width, is_signed: signed }
}

impl CType {
    /// Returns the type that words and `*` name.
    pub(super) fn of(parts: &[&str]) -> Option<CType> {
        let stars = parts.iter().position(|part| *part == "*").unwrap_or(parts.len());
        let (base, pointers) = parts.split_at(stars);
        let mut base = base;
        while let [first, rest @ ..] = base
            && QUALIFIERS.contains(first)
        {
            base = rest;
        }
        while let [rest @ .., last] = base
            && QUALIFIERS.contains(last)
        {
            base = rest;
        }
        let mut is = match base {
            ["void"] if !pointers.is_empty() => CType::Void,
            [word] => WORDS.iter().find(|(known, _)| known == word)?.1.clone(),
            words => integer_of(words)?,
        };
        for part in pointers {
            match *part {
                "*" => is = CType::Pointer(Box::new(is)),
                part if QUALIFIERS.contains(&part) => {}
                _ => return None,
            }
        }
        Some(is)
    }

    /// Makes the type `T[N][M]`: an array of N arrays of M elements.
    pub(super) fn array(self, dimensions: &[u64]) -> CType {
        dimensions.iter().rev().fold(self, |of, count| CType::Array(Box::new(of), *count))
    }

    /// Parses a type in braces, which may be an array.
    pub(crate) fn parse_in_braces(text: &str) -> Option<CType> {
        let (of, dimensions) = text.split_at(text.find('[').unwrap_or(text.len()));
        let counts: Option<Vec<u64>> = dimensions.split_terminator(']').map(dimension).collect();
        let is_closed = dimensions.is_empty() || dimensions.ends_with(']');
        CType::parse(of).filter(|_| is_closed).zip(counts).map(|(of, counts)| of.array(&counts))
    }

    /// Parses a type.
    pub(crate) fn parse(text: &str) -> Option<CType> {
        let spaced = text.replace('*', " * ");
        let parts: Vec<&str> = spaced.split([' ', '\t', '\r', '\n']).filter(|part| !part.is_empty()).collect();
        CType::of(&parts)
    }
}

/// Parses `[N`.
fn dimension(text: &str) -> Option<u64> {
    text.trim_start_matches(' ').strip_prefix('[')?.trim_matches(' ').parse().ok().filter(|count| *count > 0)
}

/// Parses an integer type of several words, in the orders of C that gdb and DWARF write.
fn integer_of(words: &[&str]) -> Option<CType> {
    let (sign, sized) = match words {
        [sign @ ("signed" | "unsigned"), sized @ ..] => (Some(*sign), sized.to_vec()),
        [size, sign @ ("signed" | "unsigned")] => (Some(*sign), vec![*size]),
        [size, sign @ ("signed" | "unsigned"), "int"] => (Some(*sign), vec![*size, "int"]),
        ["long", "long", sign @ ("signed" | "unsigned")] => (Some(*sign), vec!["long", "long"]),
        ["long", "long", sign @ ("signed" | "unsigned"), "int"] => (Some(*sign), vec!["long", "long", "int"]),
        other => (None, other.to_vec()),
    };
    let is_first = matches!(words, ["signed" | "unsigned", ..]);
    let width = match sized[..] {
        ["char"] if is_first => Width::Bytes(1),
        ["int"] if is_first => Width::Bytes(4),
        ["short"] | ["short", "int"] => Width::Bytes(2),
        ["long"] | ["long", "int"] => Width::Word,
        ["long", "long"] | ["long", "long", "int"] => Width::Bytes(8),
        _ => return None,
    };
    Some(integer(width, sign != Some("unsigned")))
}

impl Display for CType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = match self {
            CType::Void => "void",
            CType::Bool => "bool",
            CType::Char => "char",
            CType::Integer { width, is_signed: signed } => match (width, signed) {
                (Width::Bytes(1), true) => "signed char",
                (Width::Bytes(1), false) => "unsigned char",
                (Width::Bytes(2), true) => "short",
                (Width::Bytes(2), false) => "unsigned short",
                (Width::Bytes(4), true) => "int",
                (Width::Bytes(4), false) => "unsigned int",
                (Width::Bytes(_), true) => "long long",
                (Width::Bytes(_), false) => "unsigned long long",
                (Width::Word, true) => "long",
                (Width::Word, false) => "unsigned long",
            },
            CType::Float => "float",
            CType::Double => "double",
            CType::Pointer(to) => {
                let blank = if matches!(**to, CType::Pointer(_)) { "" } else { " " };
                return write!(f, "{to}{blank}*");
            }
            CType::Array(..) => {
                let (mut of, mut dimensions) = (self, String::new());
                while let CType::Array(element, count) = of {
                    dimensions.push_str(&format!("[{count}]"));
                    of = element;
                }
                return write!(f, "{of}{dimensions}");
            }
            CType::Other(written) => written,
        };
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_spelling_has_its_size_and_sign_and_is_printed_as_itself() {
        for (written, printed) in [
            ("int", "int"),
            ("unsigned", "unsigned int"),
            ("long unsigned int", "unsigned long"),
            ("unsigned long long int", "unsigned long long"),
            ("long long unsigned", "unsigned long long"),
            ("short unsigned int", "unsigned short"),
            ("signed char", "signed char"),
            ("const char *", "char *"),
            ("char const*volatile*", "char **"),
            ("void **", "void **"),
            ("uint16_t *", "unsigned short *"),
            ("size_t", "unsigned long"),
        ] {
            let parsed = CType::parse(written).unwrap_or_else(|| panic!("{written}"));
            assert_eq!(parsed.to_string(), printed);
            assert_eq!(CType::parse(printed), Some(parsed));
        }
        for other in ["", "*", "void", "struct s *", "long char", "char unsigned", "int int", "int[4]", "long double"] {
            assert_eq!(CType::parse(other), None, "{other}");
        }
    }
}
