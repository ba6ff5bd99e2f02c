//! Bytes that a mangled name must contain to demangle to a name that a user typed. Names without them need not be
//! demangled.
//!
//! The schemes of Rust and C++ spell identifiers out, each with its length before it, except for words with codes of
//! their own.

/// Words of demangled names that stand for a letter or two in the mangled ones (`std` is `St`), or for nothing.
const NOT_SPELLED_OUT: &str = "__float128 __int128 __restrict __vector _complex _float16 _imaginary \
    abi alias allocator anonymous array as atomic auto basic_iostream basic_istream \
    basic_ostream basic_string bfloat16_t bool char char16_t char32_t char8_t char_traits clone closure co_await complex const \
    const_cast construction covariant decimal128 decimal32 decimal64 decltype delete double dyn dynamic_cast enable_if extern f128 f16 f32 f64 false float fn \
    for function guard hidden i128 i16 i32 i64 i8 imaginary impl in init initialization int iostream isize istream \
    lambda long mut name namespace new noexcept non nullptr nullptr_t operator ostream reference reinterpret_cast \
    restrict return shim short signed sizeof static_cast std str string temporary throw thunk tls to transaction true \
    type typeid typeinfo typename u128 u16 u32 u64 u8 unnamed unsafe unsigned usize variable virtual void volatile \
    vtable vtt wchar_t wrapper";

/// Bytes that the mangled spelling of the whole name `text` contains; empty if none are certain.
pub(super) fn of_whole(text: &str) -> Vec<u8> {
    let word = longest(text, |_| true);
    // Rust's older scheme writes `<impl …>` as one identifier, and both of its schemes separate a leading underscore
    // from the length.
    if word.is_empty() || word.starts_with('_') || text.contains('<') {
        word.as_bytes().to_vec()
    } else {
        format!("{}{word}", word.len()).into_bytes()
    }
}

/// Bytes that the mangled spelling of any name that begins with `text` contains.
pub(super) fn of_beginning(text: &str) -> Vec<u8> {
    // The last word may be incomplete.
    let begins_one = |word: &str| {
        text.ends_with(word)
            && NOT_SPELLED_OUT.split_whitespace().any(|other| other.starts_with(&word.to_ascii_lowercase()))
    };
    longest(text, |word| !begins_one(word)).as_bytes().to_vec()
}

/// The longest word of `text` that is spelled out and that `counts`.
fn longest(text: &str, counts: impl Fn(&str) -> bool) -> &str {
    // Identifiers outside ASCII are spelled in punycode.
    if !text.is_ascii() {
        return "";
    }
    let (name, _clone) = text.split_once(" [").unwrap_or((text, ""));
    name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.starts_with(|c: char| c.is_ascii_digit()))
        .filter(|word| NOT_SPELLED_OUT.split_whitespace().all(|other| !other.eq_ignore_ascii_case(word)))
        .filter(|word| counts(word))
        .max_by_key(|word| word.len())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_word_that_is_spelled_out() {
        for (text, whole, beginning) in [
            ("main", "4main", "main"),
            ("shapes::area(unsigned long)", "6shapes", "shapes"),
            ("std::string", "", ""),
            ("std::stri", "4stri", ""),
            ("_start", "_start", "_start"),
            ("vtable for circle", "6circle", "circle"),
            ("<core::Other as Debug>::fmt", "Debug", "Debug"),
            ("f1() [clone .cold]", "2f1", "f1"),
            ("größe", "", ""),
            ("", "", ""),
            ("(anonymous namespace)::f1", "2f1", ""),
        ] {
            let text_of = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
            assert_eq!(text_of(of_whole(text)), whole, "{text}");
            assert_eq!(text_of(of_beginning(text)), beginning, "{text}");
        }
    }
}
