//! The text files of `/proc`, as bytes: lines, fields, numbers, and names with hostile bytes.

use std::borrow::Cow;
use std::fmt::Write;
use std::io::BufRead;
use std::sync::Arc;
use std::{fmt, iter};
use thiserror::Error;

/// A line that does not have the kernel's format.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("cannot parse line {line} of {file}: `{text}`")]
pub struct BadLine {
    /// The name of the file, such as `maps`.
    pub file: &'static str,
    /// The number of the line, from 1 on.
    pub line: usize,
    /// The text of the line.
    pub text: Name,
}

/// One line, without its end.
#[derive(Clone, Copy)]
pub(crate) struct TextLine<'a> {
    number: usize,
    /// The bytes of the line.
    pub(crate) bytes: &'a [u8],
}

impl<'a> TextLine<'a> {
    /// Returns the error for this line of `file`.
    pub(crate) fn bad(self, file: &'static str) -> BadLine {
        BadLine { file, line: self.number, text: Name::new(self.bytes) }
    }
    /// Returns the fields of the line, separated by spaces and tabs.
    pub(crate) fn fields(self) -> impl Iterator<Item = &'a [u8]> {
        fields(self.bytes)
    }
}

/// Returns the lines of `bytes`, without empty ones.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = TextLine<'_>> {
    lines_from(0, bytes)
}

/// Returns the lines of `bytes`, numbered as if `before` lines preceded them.
pub(crate) fn lines_from(before: usize, bytes: &[u8]) -> impl Iterator<Item = TextLine<'_>> {
    let mut rest = bytes;
    let next = move || {
        let whole = rest;
        // `memchr` would first query the features of the processor. In a virtual machine that lasts 0.1 ms, a seventh
        // of a short answer.
        let length = rest.skip_until(b'\n').ok().filter(|&length| length > 0)?;
        let line = whole.get(..length)?;
        Some(line.strip_suffix(b"\n").unwrap_or(line))
    };
    let line = |(bytes, number)| TextLine { number, bytes };
    iter::from_fn(next).zip(before + 1..).map(line).filter(|line| !line.bytes.is_empty())
}

/// Returns the fields of `bytes`, separated by spaces and tabs.
pub(crate) fn fields(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| matches!(byte, b' ' | b'\t')).filter(|field| !field.is_empty())
}

/// Returns the bytes before and after the first `mark`.
pub(crate) fn split_once(bytes: &[u8], mark: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|&byte| byte == mark)?;
    Some((bytes.get(..at)?, bytes.get(at + 1..)?))
}

/// Parses a decimal number without a sign or other characters.
pub(crate) fn decimal<T: std::str::FromStr>(bytes: &[u8]) -> Option<T> {
    // `parse` would also accept a sign.
    let digits = !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(bytes).ok().filter(|_| digits)?.parse().ok()
}

/// Parses a number of kibibytes, and returns bytes.
pub(crate) fn kibibytes(bytes: &[u8]) -> Option<u64> {
    decimal(bytes).and_then(|number: u64| number.checked_mul(1024))
}

/// Decodes text of the kernel, which is UTF-8. A capture may contain any bytes.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    one_line(&String::from_utf8_lossy(bytes))
}

/// Replaces line ends and characters that move the cursor, so that the text stays on one line.
pub(crate) fn one_line(text: &str) -> String {
    text.replace(|c| c != '\t' && !is_plain(c), "\u{fffd}")
}

/// Parses a hexadecimal number without `0x` or other characters.
pub(crate) fn hexadecimal(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() {
        return None;
    }
    bytes.iter().try_fold(0, with_digit)
}

/// Parses the hexadecimal number (without `0x`) before the first `mark`, and returns it with the bytes after `mark`.
pub(crate) fn hexadecimal_before(mark: u8, bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate() {
        match *byte == mark {
            true if at == 0 => return None,
            true => return Some((number, bytes.get(at + 1..)?)),
            false => number = with_digit(number, byte)?,
        }
    }
    None
}

/// Appends a hexadecimal digit to `number`; `None` if `byte` is not one, or the number exceeds 64 bits.
#[inline]
fn with_digit(number: u64, byte: &u8) -> Option<u64> {
    let digit = match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        b'A'..=b'F' => byte - b'A' + 10,
        _ => return None,
    };
    (number >> 60 == 0).then_some(number << 4 | u64::from(digit))
}

/// Decodes `\NNN` (three octal digits), with which `seq_file` escapes the separators of lines and fields.
pub(crate) fn unescape_octal(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = match rest {
            [b'\\', digits @ ..] => digits.first_chunk::<3>().and_then(octal_byte),
            _ => None,
        };
        out.push(escaped.unwrap_or(first));
        rest = match escaped {
            Some(_) => rest.get(4..).unwrap_or_default(),
            None => tail,
        };
    }
    out
}

/// Decodes `\012`, the only escape in `maps`: any other backslash is literal.
pub(crate) fn unescape_newline(bytes: &[u8]) -> Cow<'_, [u8]> {
    if !bytes.contains(&b'\\') {
        return Cow::Borrowed(bytes);
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = rest.strip_prefix(b"\\012");
        out.push(if escaped.is_some() { b'\n' } else { first });
        rest = escaped.unwrap_or(tail);
    }
    Cow::Owned(out)
}

fn octal_byte(digits: &[u8; 3]) -> Option<u8> {
    digits.iter().try_fold(0u8, |value, digit| match digit {
        b'0'..=b'7' => value.checked_mul(8)?.checked_add(digit - b'0'),
        _ => None,
    })
}

/// A name from the kernel or an ELF file: any bytes. Clones share them.
///
/// Names reach a terminal only through [`Display`](fmt::Display) and JSON, and both escape them. Control characters,
/// invisible and direction-changing characters and bytes that are not UTF-8 become `\x1b`, `\u{202e}` and the like, and
/// a backslash becomes `\\`, so that two names never look the same.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Name(Arc<[u8]>);

impl Name {
    /// Makes a name of any bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        #[cfg(test)]
        NAMED_BYTES.set(NAMED_BYTES.get() + bytes.len());
        Name(bytes.into())
    }
    /// Makes a name of a copy of the bytes.
    pub fn copied(bytes: &[u8]) -> Self {
        match bytes {
            // The default allocates no memory.
            [] => Name::default(),
            bytes => Name(bytes.into()),
        }
    }
    /// Returns the bytes, unescaped.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
    /// Returns the printable form, borrowed if nothing has to be escaped.
    pub fn escaped(&self) -> Cow<'_, str> {
        escape(&self.0)
    }
    /// Returns whether the name has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Returns the part after the last slash, as the name of a library or a program.
    #[must_use]
    pub fn file_name(&self) -> Name {
        Name::new(self.tail())
    }
    /// Returns the printable form of the part after the last slash.
    pub fn escaped_file_name(&self) -> Cow<'_, str> {
        escape(self.tail())
    }
    /// Returns the bytes after the last slash.
    pub(crate) fn tail(&self) -> &[u8] {
        let bytes = &*self.0;
        memchr::memrchr(b'/', bytes).map_or(bytes, |slash| &bytes[slash + 1..])
    }
}

#[cfg(test)]
thread_local! {
    /// The bytes of all names that this thread has made.
    pub(crate) static NAMED_BYTES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&escape(&self.0))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({self})")
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Name::new(text.as_bytes())
    }
}

/// Returns the printable form of hostile bytes, borrowed if nothing has to be escaped.
pub fn escape(bytes: &[u8]) -> Cow<'_, str> {
    let is_plain_ascii = |byte: &u8| (b' '..=b'~').contains(byte) && *byte != b'\\';
    if let Ok(text) = std::str::from_utf8(bytes)
        && (bytes.iter().all(is_plain_ascii) || text.chars().all(|c| c != '\\' && is_plain(c)))
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                c if is_plain(c) => out.push(c),
                c if (c as u32) < 0x80 => _ = write!(out, "\\x{:02x}", c as u32),
                c => _ = write!(out, "\\u{{{:x}}}", c as u32),
            }
        }
        for byte in chunk.invalid() {
            _ = write!(out, "\\x{byte:02x}");
        }
    }
    Cow::Owned(out)
}

/// Returns the bytes that [`escape`] prints as `text`. A backslash that begins none of its escapes is literal.
pub fn unescape(text: &str) -> Vec<u8> {
    unescaped(text, |letter| (letter == b'\\').then_some(letter))
}

/// Returns the bytes that are written as `text` in quotes: the escapes of [`unescape`], and `\n`, `\t` and quotes after
/// a backslash.
pub fn unescape_quoted(text: &str) -> Vec<u8> {
    unescaped(text, |letter| match letter {
        b'n' => Some(b'\n'),
        b't' => Some(b'\t'),
        b'\\' | b'"' | b'\'' => Some(letter),
        _ => None,
    })
}

fn unescaped(text: &str, of_letter: impl Fn(u8) -> Option<u8>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        bytes.extend_from_slice(before.as_bytes());
        let letter = escape.as_bytes().get(1).and_then(|letter| of_letter(*letter));
        rest = if let Some(byte) = letter {
            bytes.push(byte);
            escape.get(2..).unwrap_or_default()
        } else if let Some((byte, after)) = escaped_byte(escape) {
            bytes.push(byte);
            after
        } else if let Some((character, after)) = escaped_character(escape) {
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            after
        } else {
            bytes.push(b'\\');
            escape.get(1..).unwrap_or_default()
        };
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

fn escaped_byte(text: &str) -> Option<(u8, &str)> {
    let (digits, behind) = text.strip_prefix("\\x")?.split_at_checked(2)?;
    Some((u8::try_from(hex_number(digits)?).ok()?, behind))
}

fn escaped_character(text: &str) -> Option<(char, &str)> {
    let (digits, behind) = text.strip_prefix("\\u{")?.split_once('}')?;
    Some((char::from_u32(hex_number(digits)?)?, behind))
}

/// Parses hexadecimal digits. The standard library would also accept a sign.
fn hex_number(digits: &str) -> Option<u32> {
    let all = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|_| all)
}

/// Returns whether a character prints as one visible mark or a space, and moves nothing else.
pub fn is_plain(c: char) -> bool {
    let hidden = matches!(c as u32,
        0x00ad | 0x034f | 0x061c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f | 0x200b..=0x200f
        | 0x2028..=0x202f | 0x205f..=0x206f | 0x3164 | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfffb
        | 0xe0000..=0xe0fff);
    c.is_ascii_graphic() || c == ' ' || (!c.is_control() && !hidden && is_assigned(c))
}

/// Returns whether a character is assigned, and not for private use. How a terminal shows others is unknown.
fn is_assigned(c: char) -> bool {
    // The debug form of text in the standard library has the table. It also escapes spaces, and a combining mark that
    // follows no letter.
    let behind_a_letter = format!("a{c}");
    let shown = behind_a_letter.escape_debug();
    c.is_whitespace() || shown.eq(behind_a_letter.chars())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn octal_escapes() {
        for (text, plain) in
            [("a\\040b", "a b"), ("\\012", "\n"), ("\\01", "\\01"), ("\\777", "\\777"), ("\\\\134x", "\\\\x"), ("", "")]
        {
            assert_eq!(unescape_octal(text.as_bytes()), plain.as_bytes(), "{text}");
        }
    }

    #[test]
    fn numbers_have_no_signs_blanks_or_prefixes() {
        for bad in ["", "+1", "-1", " 1", "1 ", "0x1", "18446744073709551616"] {
            assert_eq!(decimal::<u64>(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(hexadecimal(b"ffffffffff600000"), Some(0xffff_ffff_ff60_0000));
        assert_eq!(hexadecimal(b"10000000000000000"), None);
        assert_eq!(hexadecimal(b"+f"), None);
        assert_eq!(hexadecimal_before(b'-', b"1f-2"), Some((0x1f, &b"2"[..])));
        for bad in ["", "-", "1f", "1g-", "10000000000000000-"] {
            assert_eq!(hexadecimal_before(b'-', bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_sentence_has_one_line() {
        assert_eq!(
            one_line("gr\u{f6}\u{df}e\t\n(pmdb) \u{1b}[2J\r\u{85}"),
            "gr\u{f6}\u{df}e\t\u{fffd}(pmdb) \u{fffd}[2J\u{fffd}\u{fffd}"
        );
        assert_eq!(lossy(b"6.1\nx\xff"), "6.1\u{fffd}x\u{fffd}");
    }

    #[test]
    fn what_is_escaped() {
        for (bytes, printed) in [
            (&b"plain name"[..], "plain name"),
            ("größe 木".as_bytes(), "größe 木"),
            (b"a\nb\tc\x1b[31m\x7f", "a\\x0ab\\x09c\\x1b[31m\\x7f"),
            (b"back\\slash", "back\\\\slash"),
            (b"\xff\xfe", "\\xff\\xfe"),
            ("a\u{202e}b\u{feff}".as_bytes(), "a\\u{202e}b\\u{feff}"),
            ("\u{85}".as_bytes(), "\\u{85}"),
            (b"", ""),
        ] {
            assert_eq!(escape(bytes), printed);
        }
    }

    #[test]
    fn what_was_escaped_is_read_back() {
        for bytes in [&b"a\x1b[31m\x7f\n"[..], b"\xff\xfe", "a\u{202e}b\u{feff}".as_bytes(), b"a\\x0ab\\", b""] {
            assert_eq!(unescape(&escape(bytes)), bytes);
        }
        assert_eq!(unescape_quoted("a\\x0ab\\n\\\\x0a\\\""), b"a\nb\n\\x0a\"");
        for plain in ["\\d+", "\\x1", "\\x+1", "\\u{}", "\\u{110000}", "\\u{41", "a\\", "\\x\u{e4}\u{e4}"] {
            assert_eq!(unescape(plain), plain.as_bytes());
        }
    }

    #[test]
    fn file_names() {
        for (path, name) in [("/usr/lib/libc.so.6", "libc.so.6"), ("plain", "plain"), ("/a/", ""), ("", "")] {
            assert_eq!(Name::from(path).file_name(), Name::from(name));
        }
    }

    proptest! {
        #[test]
        fn nothing_raw_gets_out(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert!(!escape(&bytes).contains(char::is_control));
        }

        #[test]
        fn two_names_never_look_the_same(
            one in proptest::collection::vec(prop_oneof![Just(b'\\'), Just(b'x'), Just(b'0'), Just(0xffu8), Just(b'\n')], 0..6),
            two in proptest::collection::vec(prop_oneof![Just(b'\\'), Just(b'x'), Just(b'0'), Just(0xffu8), Just(b'\n')], 0..6),
        ) {
            prop_assert_eq!(escape(&one) == escape(&two), one == two);
        }
    }
}
