//! Names as people type them, held against names as files spell them.

use super::demangle::{Form, demangle, may_be_mangled, split_version};

/// A name that somebody typed: mangled, demangled, or demangled without parameters; whole, or the beginning of one.
pub(super) struct Query<'a> {
    text: &'a [u8],
    squeezed: Vec<u8>,
    /// `f`, `V`, and whether only the current version is meant, of `f@@V` and `f@V`.
    version: Option<(&'a [u8], &'a [u8], bool)>,
    /// A part that the mangled spelling must hold too: only those names need to be demangled.
    needle: &'a [u8],
}

/// Words of demangled names that stand for a letter or two in the mangled ones (`std` is `St`), or for nothing.
const NOT_SPELLED_OUT: &[&str] = &[
    "abi",
    "alias",
    "allocator",
    "anonymous",
    "array",
    "as",
    "atomic",
    "auto",
    "basic_iostream",
    "basic_istream",
    "basic_ostream",
    "basic_string",
    "bool",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "char_traits",
    "clone",
    "closure",
    "complex",
    "const",
    "construction",
    "covariant",
    "decltype",
    "delete",
    "double",
    "dyn",
    "enable_if",
    "false",
    "float",
    "fn",
    "for",
    "function",
    "guard",
    "hidden",
    "imaginary",
    "impl",
    "init",
    "initialization",
    "int",
    "iostream",
    "istream",
    "lambda",
    "long",
    "mut",
    "namespace",
    "new",
    "noexcept",
    "non",
    "nullptr",
    "nullptr_t",
    "operator",
    "ostream",
    "reference",
    "restrict",
    "return",
    "shim",
    "short",
    "signed",
    "sizeof",
    "static_cast",
    "std",
    "str",
    "string",
    "temporary",
    "throw",
    "thunk",
    "to",
    "transaction",
    "true",
    "type",
    "typeid",
    "typeinfo",
    "typename",
    "unnamed",
    "unsafe",
    "unsigned",
    "variable",
    "virtual",
    "void",
    "volatile",
    "vtable",
    "wchar_t",
    "wrapper",
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
    "usize",
    "i8",
    "i16",
    "i32",
    "i64",
    "i128",
    "isize",
    "f32",
    "f64",
    "vtt",
    "tls",
    "extern",
    "co_await",
    "dynamic_cast",
    "const_cast",
    "reinterpret_cast",
];

impl<'a> Query<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let needle = text
            .split(|c: char| !is_word(c))
            .filter(|word| !word.starts_with(|c: char| c.is_ascii_digit()))
            .filter(|word| !NOT_SPELLED_OUT.contains(&word.to_ascii_lowercase().as_str()))
            .max_by_key(|word| word.len());
        Query {
            text: text.as_bytes(),
            squeezed: squeeze(text.as_bytes()),
            version: text
                .split_once('@')
                .filter(|(base, _)| !base.is_empty())
                .map(|(base, version)| match version.strip_prefix('@') {
                    Some(current) => (base.as_bytes(), current.as_bytes(), true),
                    None => (base.as_bytes(), version.as_bytes(), false),
                }),
            // Identifiers outside ASCII are spelled in punycode.
            needle: needle
                .filter(|_| text.is_ascii())
                .unwrap_or_default()
                .as_bytes(),
        }
    }

    /// Whether the bytes at the beginning of `rest` (a name, its end, and what follows) spell the query.
    pub(super) fn is_spelled_by(&self, rest: &[u8]) -> bool {
        let after = |beginning: &[u8]| {
            rest.strip_prefix(beginning)
                .map(|after| after.split_first())
        };
        match self.version {
            None => matches!(after(self.text), Some(Some((0 | b'@', _)))),
            // `f@V` means the current `f@@V` too.
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

    /// The version that is asked for, and whether only a current one is meant, if the name at the beginning of `rest` is otherwise
    /// the one that is asked for: its version then stands elsewhere in the file.
    pub(super) fn version_of(&self, rest: &[u8]) -> Option<(&[u8], bool)> {
        let (base, version, current_only) = self.version?;
        let spelled = matches!(rest.strip_prefix(base), Some([0, ..]));
        spelled.then_some((version, current_only))
    }

    /// Whether the demangled form of `name` is the query, with or without parameters.
    pub(super) fn is_meant_by(&self, name: &[u8]) -> bool {
        self.may_be_in(name)
            && [Form::Full, Form::Path].into_iter().any(|form| {
                demangle(split_version(name).0, form)
                    .is_some_and(|demangled| squeeze(demangled.as_bytes()) == self.squeezed)
            })
    }

    /// `name` as a person would type it, if it begins with the query.
    pub(super) fn completed_by(&self, name: &[u8]) -> Option<Vec<u8>> {
        let (base, _) = split_version(name);
        if self.may_be_in(base)
            && let Some(demangled) = demangle(base, Form::Path)
            && squeeze(demangled.as_bytes()).starts_with(&self.squeezed)
        {
            return Some(demangled.into_bytes());
        }
        // A mangled name is offered only to somebody who has begun to type one.
        let wanted = !may_be_mangled(base) || may_be_mangled(self.text);
        (wanted && base.starts_with(self.text)).then(|| base.to_vec())
    }

    fn may_be_in(&self, name: &[u8]) -> bool {
        may_be_mangled(name)
            && (self.needle.is_empty() || memchr::memmem::find(name, self.needle).is_some())
    }
}

/// Without blanks: `f(int, char)` and `f(int,char)` are one name.
fn squeeze(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|&byte| byte != b' ').collect()
}
