//! Mangled names into the names people write, with bounds: the names are somebody else's.
//!
//! The bounds count work and do not ask a clock, so that a name is always spelled alike: with optimisation a name takes
//! less than 5 ms of CPU time, or stays mangled.

mod cost;

use self::cost::{DEEPEST, LONGEST_MANGLED};
use crate::kernel::Name;
use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};
use std::fmt::{self, Write};

/// A demangled name that grows longer than this (back references can grow exponentially) is given up.
const LONGEST_DEMANGLED: usize = 32 * 1024;
/// A demangled name of more pieces than this is given up: a piece can stand at the end of a long chain of back
/// references. Names in libLLVM and in the JVM have up to 5,200 pieces.
const MOST_PIECES: usize = 12 * 1024;
/// Before it writes `<`, `rustc_demangle` may have read the path of an `impl` once more, without writing it. Reading
/// this many bytes takes as long as one piece.
const SKIPPED_BYTES_A_PIECE: usize = 128;

/// The form of a demangled C++ name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// With its parameters, as `nm -C` prints it.
    Full,
    /// Without parameters and return type: `shapes::area`.
    Path,
}

/// The demangled form of a symbol name, or `None` if it is not mangled (or not in bounds). Rust names lose their hash.
pub(super) fn demangle(mangled: &[u8], form: Form) -> Option<String> {
    if mangled.len() > LONGEST_MANGLED || !may_be_mangled(mangled) {
        return None;
    }
    let text = std::str::from_utf8(mangled).ok()?;
    if let Ok(rust) = rustc_demangle::try_demangle(text) {
        let mut out = Bounded::new(mangled.len() / SKIPPED_BYTES_A_PIECE);
        write!(out, "{rust:#}").ok()?;
        return Some(out.text);
    }
    if !cost::is_bounded(mangled) {
        return None;
    }
    let mut out = Bounded::new(0);
    let limits = ParseOptions::default().recursion_limit(DEEPEST);
    let (symbol, tail) = BorrowedSymbol::with_tail_and_options(mangled, &limits).ok()?;
    let mut options = DemangleOptions::new().recursion_limit(DEEPEST);
    if form == Form::Path {
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
        // GCC's clones: `_Z3foov.cold`, `.part.0`, `.isra.1`.
        let clone = tail.strip_prefix(b".")?;
        if form == Form::Full {
            write!(out, " [clone .{}]", std::str::from_utf8(clone).ok()?).ok()?;
        }
    }
    Some(out)
}

/// `cpp_demangle` has its own spelling for vtables and thunks: this is that of `nm -C` and gdb.
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

/// The cast that `cpp_demangle` writes before numbers among template arguments, and the suffix that others write after
/// them: `get<1ul, int>`.
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

/// Whether the name has one of the prefixes of the Rust and C++ schemes.
pub(super) fn may_be_mangled(name: &[u8]) -> bool {
    [&b"_Z"[..], b"__Z", b"_R", b"___Z"].iter().any(|prefix| name.starts_with(prefix))
}

/// The name without its version (`malloc` for `malloc@@GLIBC_2.2.5`), and whether that is an old version, which plain
/// `malloc` does not mean (one `@`).
pub(super) fn split_version(name: &[u8]) -> (&[u8], bool) {
    match name.iter().position(|&byte| byte == b'@') {
        Some(at) if at > 0 => (&name[..at], name.get(at + 1) != Some(&b'@')),
        _ => (name, false),
    }
}

/// Suffix of a stub of the procedure linkage table, through which another file calls the function.
pub(super) const PLT: &str = "@plt";
/// Suffix of a function's slot in another file's global offset table.
pub(super) const GOT: &str = "@got.plt";

/// Which of them a name ends with.
pub(super) fn plt_got_suffix(name: &[u8]) -> Option<&'static str> {
    let mut suffixes = [PLT, GOT].into_iter();
    suffixes.find(|suffix| name.ends_with(suffix.as_bytes()))
}

/// What a symbol is called in output: demangled, without a default version.
pub(super) fn readable(raw: &Name) -> Name {
    let (base, old_version) = split_version(raw.as_bytes());
    match demangle(base, Form::Full) {
        // A stub or slot is not the function itself.
        Some(demangled) => {
            let suffix = plt_got_suffix(raw.as_bytes());
            Name::new((demangled + suffix.unwrap_or_default()).into_bytes())
        }
        None if old_version => raw.clone(),
        None => Name::new(base),
    }
}

/// Text of limited size: writing more fails.
struct Bounded {
    text: String,
    pieces_left: usize,
    /// The extra cost of `<`, in pieces.
    cost_of_list: usize,
}

impl Bounded {
    fn new(cost_of_list: usize) -> Self {
        Bounded { text: String::new(), pieces_left: MOST_PIECES, cost_of_list }
    }
}

impl Write for Bounded {
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

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(demangle(mangled.as_bytes(), Form::Full).as_deref(), Some(name));
        }
        assert_eq!(demangle(b"_Z1fILm1EEvv", Form::Path).as_deref(), Some("f<1ul>"));
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
            let path = demangle(mangled.as_bytes(), Form::Path);
            assert_eq!(path.as_deref(), Some(expected), "{mangled}");
        }
    }
}
