//! Mangled names into the names people write, with bounds: the names are somebody else's.

use crate::kernel::Name;
use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};
use std::fmt::{self, Write};

/// Longer mangled names are left as they are.
const LONGEST_MANGLED: usize = 8 * 1024;
/// A demangled name that grows longer than this (back references can grow exponentially) is given up.
const LONGEST_DEMANGLED: usize = 32 * 1024;
/// How deep types may nest within each other.
const DEEPEST: u32 = 96;

/// How much of a C++ name is wanted.
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
    let mut out = Bounded(String::new());
    if let Ok(rust) = rustc_demangle::try_demangle(text) {
        write!(out, "{rust:#}").ok()?;
        return Some(out.0);
    }
    let limits = ParseOptions::default().recursion_limit(DEEPEST);
    let (symbol, tail) = BorrowedSymbol::with_tail_and_options(mangled, &limits).ok()?;
    let mut options = DemangleOptions::new().recursion_limit(DEEPEST);
    if form == Form::Path {
        options = options.no_params().no_return_type();
    }
    symbol.structured_demangle(&mut out, &options).ok()?;
    if !tail.is_empty() {
        // GCC's clones: `_Z3foov.cold`, `.part.0`, `.isra.1`.
        let clone = tail.strip_prefix(b".")?;
        if form == Form::Full {
            write!(out, " [clone .{}]", std::str::from_utf8(clone).ok()?).ok()?;
        }
    }
    Some(out.0)
}

/// Whether the name has one of the prefixes of the Rust and C++ schemes.
pub(super) fn may_be_mangled(name: &[u8]) -> bool {
    [&b"_Z"[..], b"__Z", b"_R", b"___Z"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// The name without a version: `malloc` of `malloc@@GLIBC_2.2.5`, and whether it is a version that plain `malloc` does not mean
/// (one `@`: kept for old programs).
pub(super) fn split_version(name: &[u8]) -> (&[u8], bool) {
    match name.iter().position(|&byte| byte == b'@') {
        Some(at) if at > 0 => (&name[..at], name.get(at + 1) != Some(&b'@')),
        _ => (name, false),
    }
}

/// What a symbol is called in output: demangled, without a default version.
pub(super) fn readable(raw: &Name) -> Name {
    let (base, old_version) = split_version(raw.as_bytes());
    match demangle(base, Form::Full) {
        Some(demangled) => Name::new(demangled.into_bytes()),
        None if old_version => raw.clone(),
        None => Name::new(base),
    }
}

/// Text that fails instead of growing without end.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST_DEMANGLED {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}
