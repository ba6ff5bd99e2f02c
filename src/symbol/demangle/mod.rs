//! Demangles names within bounds, because the names are hostile; and compares typed names with those in files.
//!
//! The bounds are on work and not on time, so that a name is always written the same way. In a build with optimization
//! a name needs less than 5 ms of CPU time, or stays mangled.
//!
//! Demangling every name of a file for a comparison would last too long. The schemes of Rust and C++ contain
//! identifiers literally, each with its length before it, except for words with special codes. So names without the
//! longest identifier of the query are not demangled.

mod cost;

use super::elf::LONGEST_NAME;
use crate::kernel::Name;
use crate::kernel::text::unescape;
use cost::{DEEPEST, LONGEST_MANGLED};
use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};
use memchr::memmem;
use std::fmt::{self, Write};

/// The longest demangled name in bytes. Back references can make it grow exponentially.
const LONGEST_DEMANGLED: usize = 32 * 1024;
/// The most pieces of a demangled name: each piece can be at the end of a long chain of back references. Names in
/// libLLVM and in the JVM have up to 5,200 pieces.
const MOST_PIECES: usize = 12 * 1024;
/// The bytes whose reading costs as much as one piece. Before `rustc_demangle` writes `<`, it may have read the path of
/// an `impl` once more, without writing it.
const SKIPPED_BYTES_A_PIECE: usize = 128;

/// The form of a demangled C++ name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NameForm {
    /// With its parameters, as `nm -C` prints it.
    Full,
    /// Without parameters and return type: `shapes::area`.
    Path,
}

/// Returns the demangled form of a symbol name; `None` if it is not mangled, or exceeds the bounds. Rust names lose
/// their hash.
pub(super) fn demangle(mangled: &[u8], form: NameForm) -> Option<String> {
    if mangled.len() > LONGEST_MANGLED || !may_be_mangled(mangled) {
        return None;
    }
    let text = std::str::from_utf8(mangled).ok()?;
    if let Ok(rust) = rustc_demangle::try_demangle(text) {
        let mut out = BoundedText::new(mangled.len() / SKIPPED_BYTES_A_PIECE);
        write!(out, "{rust:#}").ok()?;
        return Some(out.text);
    }
    if !cost::is_bounded(mangled) {
        return None;
    }
    let mut out = BoundedText::new(0);
    let limits = ParseOptions::default().recursion_limit(DEEPEST);
    let (symbol, tail) = BorrowedSymbol::with_tail_and_options(mangled, &limits).ok()?;
    let mut options = DemangleOptions::new().recursion_limit(DEEPEST);
    if form == NameForm::Path {
        options = options.no_params().no_return_type();
    }
    symbol.structured_demangle(&mut out, &options).ok()?;
    let mut out = out.text;
    if let Some(spelled) = spell_as_others_do(mangled, &out) {
        out = spelled;
    }
    // An empty pack of arguments leaves a comma.
    for (with_comma, without) in [(", >", ">"), (", )", ")")] {
        if out.contains(with_comma) {
            out = out.replace(with_comma, without);
        }
    }
    for (cast, suffix) in NUMBERS {
        if out.contains(cast) {
            out = with_suffixes(&out, cast, suffix);
        }
    }
    if !tail.is_empty() {
        // Clones by GCC: `_Z3foov.cold`, `.part.0`, `.isra.1`.
        let clone = tail.strip_prefix(b".")?;
        if form == NameForm::Full {
            write!(out, " [clone .{}]", std::str::from_utf8(clone).ok()?).ok()?;
        }
    }
    Some(out)
}

/// Converts the spelling of vtables and thunks by `cpp_demangle` to that of `nm -C` and gdb.
fn spell_as_others_do(mangled: &[u8], text: &str) -> Option<String> {
    let inner = text.strip_prefix('{')?.strip_suffix(")}")?;
    if let Some(class) = inner.strip_prefix("vtable(") {
        return Some(format!("vtable for {class}"));
    }
    if let Some(class) = inner.strip_prefix("vtt(") {
        return Some(format!("VTT for {class}"));
    }
    let mut function = inner.strip_prefix("virtual override thunk(")?;
    while function.starts_with("{offset(") || function.starts_with("{virtual offset(") {
        function = function.split_once(")}, ")?.1;
    }
    let kind = match mangled.get(3) {
        Some(b'h') => "non-virtual thunk to",
        Some(b'c') => "covariant return thunk to",
        _ => "virtual thunk to",
    };
    Some(format!("{kind} {function}"))
}

/// The casts that `cpp_demangle` writes before numbers among template arguments, and the suffixes that other demanglers
/// write after them: `get<1ul, int>`.
const NUMBERS: [(&str, &str); 5] = [
    ("(unsigned long long)", "ull"),
    ("(unsigned long)", "ul"),
    ("(unsigned int)", "u"),
    ("(long long)", "ll"),
    ("(long)", "l"),
];

fn with_suffixes(text: &str, cast: &str, suffix: &str) -> String {
    let mut parts = text.split(cast);
    let mut spelled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.strip_prefix('-').unwrap_or(part);
        let rest = digits.trim_start_matches(|digit: char| digit.is_ascii_digit());
        if rest.len() == digits.len() {
            spelled.extend([cast, part]);
        } else {
            let number = part.strip_suffix(rest).unwrap_or(part);
            spelled.extend([number, suffix, rest]);
        }
    }
    spelled
}

/// Returns whether the name has one of the prefixes of the Rust and C++ schemes.
pub(super) fn may_be_mangled(name: &[u8]) -> bool {
    [&b"_Z"[..], b"__Z", b"_R", b"___Z"].iter().any(|prefix| name.starts_with(prefix))
}

/// Splits off the version: returns `malloc` for `malloc@@GLIBC_2.2.5`, and whether the version is an old one (one `@`),
/// which plain `malloc` does not select.
pub(super) fn split_version(name: &[u8]) -> (&[u8], bool) {
    match name.iter().position(|&byte| byte == b'@') {
        Some(at) if at > 0 => (&name[..at], name.get(at + 1) != Some(&b'@')),
        _ => (name, false),
    }
}

/// The suffix of a stub of the procedure linkage table, through which another file calls the function.
pub(super) const PLT: &str = "@plt";
/// The suffix of a function's slot in another file's global offset table.
pub(super) const GOT: &str = "@got.plt";

/// Returns which of these suffixes a name has.
pub(super) fn plt_got_suffix(name: &[u8]) -> Option<&'static str> {
    let mut suffixes = [PLT, GOT].into_iter();
    suffixes.find(|suffix| name.ends_with(suffix.as_bytes()))
}

/// Returns the name for output: demangled, without a default version.
pub(super) fn readable(raw: &Name) -> Name {
    let (base, old_version) = split_version(raw.as_bytes());
    match demangle(base, NameForm::Full) {
        // A stub or slot keeps its suffix, because it is not the function itself.
        Some(demangled) => {
            let suffix = plt_got_suffix(raw.as_bytes());
            Name::new((demangled + suffix.unwrap_or_default()).into_bytes())
        }
        None if old_version => raw.clone(),
        None => Name::new(base),
    }
}

/// Text of limited size: an error ends the writing beyond it.
struct BoundedText {
    text: String,
    pieces_left: usize,
    /// The extra cost of `<`, in pieces.
    cost_of_list: usize,
}

impl BoundedText {
    fn new(cost_of_list: usize) -> Self {
        BoundedText { text: String::new(), pieces_left: MOST_PIECES, cost_of_list }
    }
}

impl Write for BoundedText {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let cost = 1 + self.cost_of_list * usize::from(piece == "<");
        self.pieces_left = self.pieces_left.checked_sub(cost).ok_or(fmt::Error)?;
        if self.text.len() + piece.len() > LONGEST_DEMANGLED {
            return Err(fmt::Error);
        }
        self.text.push_str(piece);
        Ok(())
    }
}

/// A typed name: mangled, demangled, or demangled without parameters; whole, or the beginning of one.
pub(super) struct NameQuery<'a> {
    text: &'a [u8],
    /// The raw bytes, if the text is an escaped form of them.
    displayed: Option<Vec<u8>>,
    squeezed: Vec<u8>,
    /// For `f@@V` and `f@V`: `f`, `V`, and whether only the current version is meant.
    version: Option<(&'a [u8], &'a [u8], bool)>,
    /// Bytes that the mangled spelling must contain: names without them are not demangled.
    needle: Vec<u8>,
}

impl<'a> NameQuery<'a> {
    /// Makes a query for a whole name.
    pub(super) fn whole(text: &'a str) -> Self {
        NameQuery::new(text, needle_of_whole(text))
    }

    /// Makes a query for the beginning of a name.
    pub(super) fn beginning(text: &'a str) -> Self {
        NameQuery::new(text, needle_of_beginning(text))
    }

    fn new(text: &'a str, needle: Vec<u8>) -> Self {
        let displayed = unescape(text);
        NameQuery {
            text: text.as_bytes(),
            displayed: Some(displayed).filter(|bytes| bytes != text.as_bytes()),
            squeezed: squeeze(text.as_bytes()),
            version: text.split_once('@').filter(|(base, _)| !base.is_empty()).map(|(base, version)| {
                match version.strip_prefix('@') {
                    Some(current) => (base.as_bytes(), current.as_bytes(), true),
                    None => (base.as_bytes(), version.as_bytes(), false),
                }
            }),
            needle,
        }
    }

    /// Returns whether `name`, which has no version, matches the query: raw, as displayed, or demangled.
    pub(super) fn is(&self, name: &[u8]) -> bool {
        self.spellings().any(|text| name == text) || self.is_meant_by(name)
    }

    /// Returns the bytes of names that match the query without demangling: raw, or as displayed.
    fn spellings(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(self.text).chain(self.displayed.as_deref())
    }

    /// Returns whether the bytes at the beginning of `rest` (a name, its end, and further bytes) spell the query.
    pub(super) fn is_spelled_by(&self, rest: &[u8]) -> bool {
        let after = |beginning: &[u8]| rest.strip_prefix(beginning).map(|after| after.split_first());
        match self.version {
            None => {
                let mut spellings = self.spellings();
                spellings.any(|text| matches!(after(text), Some(Some((0 | b'@', _)))))
            }
            // `f@V` also selects the current `f@@V`.
            Some((base, version, current_only)) => match after(base) {
                Some(Some((b'@', after))) => {
                    let current = after.strip_prefix(b"@");
                    let after = current.unwrap_or(after).strip_prefix(version);
                    (current.is_some() || !current_only) && matches!(after, Some([0, ..]))
                }
                _ => false,
            },
        }
    }

    /// Returns the version in the query, and whether it must be a current one, if the name at the beginning of `rest`
    /// is the query without its version. The symbol's version is then elsewhere in the file.
    pub(super) fn version_of(&self, rest: &[u8]) -> Option<(&[u8], bool)> {
        let (base, version, current_only) = self.version?;
        let spelled = matches!(rest.strip_prefix(base), Some([0, ..]));
        spelled.then_some((version, current_only))
    }

    /// Returns whether a part of a string table may contain the name or its end. This needs a hundredth of the time of
    /// a pass over the symbols. It also finds symbols that the hash tables of a file (`.gnu.hash`) lack: local symbols,
    /// those of separate debug files, and functions of C++ by a name without parameters.
    pub(super) fn may_be_among(&self, strings: &[u8]) -> bool {
        // A search for a long text needs much preparation, for each part anew.
        let has_room = |text: &[u8]| text.len() <= strings.len();
        let is_spelled = |text: &[u8]| {
            let after = |at: usize| strings.get(at + text.len());
            has_room(text) && memmem::find_iter(strings, text).any(|at| matches!(after(at), Some(0 | b'@')))
        };
        let without_version = self.version.map(|(base, ..)| base);
        let may_be_meant = || has_room(&self.needle) && memmem::find(strings, &self.needle).is_some();
        self.spellings().chain(without_version).any(is_spelled) || may_be_meant()
    }

    /// Returns how many bytes decide whether a name matches the query. Parts of a table that are searched separately
    /// must overlap by as many.
    pub(super) fn length(&self) -> usize {
        let spelled = self.spellings().map(<[u8]>::len);
        // One more byte shows that the name ends. Longer names are not read.
        1 + spelled.chain([self.needle.len()]).max().unwrap_or(0).min(LONGEST_NAME)
    }

    /// Returns whether the query is the demangled form of `name`, with or without parameters.
    pub(super) fn is_meant_by(&self, name: &[u8]) -> bool {
        let (base, _) = split_version(name);
        let demangled = |form| demangle(base, form).map(|text| squeeze(text.as_bytes()));
        if !self.may_be_in(base) {
            return false;
        }
        demangled(NameForm::Full).is_some_and(|full| {
            full == self.squeezed
                || (memmem::find(&full, &self.squeezed).is_some()
                    && demangled(NameForm::Path).is_some_and(|path| path == self.squeezed))
        })
    }

    /// Returns `name` as a user would type it, if it begins with the query.
    pub(super) fn completed_by(&self, name: &[u8]) -> Option<Vec<u8>> {
        let (base, _) = split_version(name);
        if self.may_be_in(base)
            && let Some(demangled) = demangle(base, NameForm::Path)
            && squeeze(demangled.as_bytes()).starts_with(&self.squeezed)
        {
            return Some(demangled.into_bytes());
        }
        // Mangled names are offered only if the query begins like one.
        let wanted = !may_be_mangled(base) || may_be_mangled(self.text);
        (wanted && base.starts_with(self.text)).then(|| base.to_vec())
    }

    fn may_be_in(&self, name: &[u8]) -> bool {
        may_be_mangled(name) && (self.needle.is_empty() || memmem::find(name, &self.needle).is_some())
    }
}

/// Removes spaces: `f(int, char)` and `f(int,char)` are the same name.
fn squeeze(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|&byte| byte != b' ').collect()
}

/// Words of demangled names that are one or two letters in the mangled ones (`std` is `St`), or are missing there.
const NOT_SPELLED_OUT: &str = "__float128 __int128 __restrict __vector _complex _float16 _imaginary \
    abi alias allocator anonymous array as atomic auto basic_iostream basic_istream \
    basic_ostream basic_string bfloat16_t bool char char16_t char32_t char8_t char_traits clone closure co_await complex const \
    const_cast construction covariant decimal128 decimal32 decimal64 decltype delete double dyn dynamic_cast enable_if extern f128 f16 f32 f64 false float fn \
    for function guard hidden i128 i16 i32 i64 i8 imaginary impl in init initialization int iostream isize istream \
    lambda long mut name namespace new noexcept non nullptr nullptr_t operator ostream reference reinterpret_cast \
    restrict return shim short signed sizeof static_cast std str string temporary throw thunk tls to transaction true \
    type typeid typeinfo typename u128 u16 u32 u64 u8 unnamed unsafe unsigned usize variable virtual void volatile \
    vtable vtt wchar_t wrapper";

/// Returns bytes that the mangled spelling of the whole name `text` contains; empty if none are certain.
fn needle_of_whole(text: &str) -> Vec<u8> {
    let word = longest(text, |_| true);
    // Rust's older scheme writes `<impl …>` as one identifier, and both of its schemes separate a leading underscore
    // from the length.
    if word.is_empty() || word.starts_with('_') || text.contains('<') {
        word.as_bytes().to_vec()
    } else {
        format!("{}{word}", word.len()).into_bytes()
    }
}

/// Returns bytes that the mangled spelling of any name that begins with `text` contains.
fn needle_of_beginning(text: &str) -> Vec<u8> {
    // The last word may be incomplete.
    let begins_one = |word: &str| {
        text.ends_with(word)
            && NOT_SPELLED_OUT.split_whitespace().any(|other| other.starts_with(&word.to_ascii_lowercase()))
    };
    longest(text, |word| !begins_one(word)).as_bytes().to_vec()
}

/// Returns the longest word of `text` that mangled names contain literally and that `counts`.
fn longest(text: &str, counts: impl Fn(&str) -> bool) -> &str {
    // Identifiers outside ASCII are mangled in punycode.
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
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn arguments_of_templates_are_spelled_as_nm_does() {
        for (mangled, name) in [
            ("_Z1fILj1EEvv", "void f<1u>()"),
            ("_Z1fILm1EEvv", "void f<1ul>()"),
            ("_Z1fILx1EEvv", "void f<1ll>()"),
            ("_Z1fILy1EEvv", "void f<1ull>()"),
            ("_Z1fILl1EEvv", "void f<1l>()"),
            ("_Z1fILln5EEvv", "void f<-5l>()"),
            ("_Z1fILi5EEvv", "void f<5>()"),
            ("_Z1fILm1ELm23EEvm", "void f<1ul, 23ul>(unsigned long)"),
            ("_Z1fPFvlE", "f(void (*)(long))"),
            ("_Z1fIiJEEvT_DpT0_", "void f<int>(int)"),
            ("_Z1fIJEEviDpT_", "void f<>(int)"),
            ("_ZSt3getILm1E1aJEERT0_RSt5tupleIJS1_DpT1_EE", "a& std::get<1ul, a>(std::tuple<a>&)"),
        ] {
            assert_eq!(demangle(mangled.as_bytes(), NameForm::Full).as_deref(), Some(name));
        }
        assert_eq!(demangle(b"_Z1fILm1EEvv", NameForm::Path).as_deref(), Some("f<1ul>"));
    }

    #[test]
    fn readable_names() {
        for (raw, expected) in [
            ("main", "main"),
            ("malloc@@GLIBC_2.2.5", "malloc"),
            ("memcpy@GLIBC_2.2.5", "memcpy@GLIBC_2.2.5"),
            ("@odd", "@odd"),
            ("getpid@plt", "getpid@plt"),
            ("_Z1fv@plt", "f()@plt"),
            ("_Z1fv@got.plt", "f()@got.plt"),
            ("_ZN6shapes4areaERKNS_6circleE", "shapes::area(shapes::circle const&)"),
            ("_ZTV3foo", "vtable for foo"),
            ("_ZTT3foo", "VTT for foo"),
            ("_ZTv0_n24_N3foo3barEv", "virtual thunk to foo::bar()"),
            ("_ZTI3foo", "typeinfo for foo"),
            ("_ZGVZ1fvE1x", "guard variable for f()::x"),
            ("_Z1fv.cold", "f() [clone .cold]"),
            ("_ZN3std2rt10lang_start17h0123456789abcdefE", "std::rt::lang_start"),
            ("_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function"),
            ("_ZNKSt5ctypeIcE8do_widenEc@@GLIBCXX_3.4", "std::ctype<char>::do_widen(char) const"),
            ("_Zfoo", "_Zfoo"),
            ("_Z", "_Z"),
        ] {
            let name = readable(&Name::from(raw));
            assert_eq!(name.as_bytes(), expected.as_bytes(), "{raw}: {name}");
        }
    }

    #[test]
    fn paths_leave_parameters_out() {
        for (mangled, expected) in [
            ("_ZN6shapes4areaERKNS_6circleE", "shapes::area"),
            ("_ZN1aIiE1bIdEET_S2_", "a<int>::b<double>"),
            ("_ZNKSt5ctypeIcE8do_widenEc", "std::ctype<char>::do_widen"),
            ("_Z1fv.cold", "f"),
        ] {
            let path = demangle(mangled.as_bytes(), NameForm::Path);
            assert_eq!(path.as_deref(), Some(expected), "{mangled}");
        }
    }

    #[test]
    fn a_name_may_be_typed_as_it_is_displayed() {
        for (name, typed) in [
            (&b"plain"[..], "plain"),
            (b"esc\x1b[31m\xff", "esc\\x1b[31m\\xff"),
            (b"esc\x1b[31m", "esc\x1b[31m"),
            ("right\u{202e}left".as_bytes(), "right\\u{202e}left"),
            (b"back\\x41", "back\\x41"),
        ] {
            let query = NameQuery::whole(typed);
            let in_table = [name, b"\0next"].concat();
            assert!(query.is(name) && query.is_spelled_by(&in_table), "{typed}");
            let longer = [name, b"r\0"].concat();
            assert!(!query.is(b"other") && !query.is_spelled_by(&longer), "{typed}");
        }
    }

    proptest! {
        /// What a search passes over cannot have the name.
        #[test]
        fn a_name_that_is_meant_may_be_among_the_strings(
            words in vec("[a-c_]{1,3}", 1..4),
            scheme in 0..5,
            typed in prop_oneof!["[a-c_]{1,3}", "[a-c_]{1,2}(::[a-c]{1,2}){0,2}", "[a-c]{1,2}@{1,2}[A-C]"],
        ) {
            let spelled: String = words.iter().map(|word| format!("{}{word}", word.len())).collect();
            let name = match scheme {
                0 => words.concat(),
                1 => format!("{}@@{}", words[0], words.concat().to_uppercase()),
                2 => format!("_ZN{spelled}Ei"),
                3 => format!("_Z{}{}v", words[0].len(), words[0]),
                _ => format!("_ZN{spelled}17h0123456789abcdefE"),
            };
            let table = ["other", &name, "last", ""].join("\0").into_bytes();
            let rest = table.get(6..).expect("its name");
            let demangled = |form| demangle(name.as_bytes(), form).unwrap_or_default();
            for typed in [typed, name.clone(), demangled(NameForm::Full), demangled(NameForm::Path), words[0].clone()] {
                let query = NameQuery::whole(&typed);
                let is_found = query.is_spelled_by(rest)
                    || query.version_of(rest).is_some()
                    || (may_be_mangled(rest) && query.is_meant_by(name.as_bytes()));
                prop_assert!(!is_found || query.may_be_among(&table), "{typed} {name}");
            }
        }
    }

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
            assert_eq!(text_of(needle_of_whole(text)), whole, "{text}");
            assert_eq!(text_of(needle_of_beginning(text)), beginning, "{text}");
        }
    }
}
