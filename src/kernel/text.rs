//! The text files of `/proc`, as bytes: lines, fields and numbers.

use super::Name;
use std::borrow::Cow;
use std::io::BufRead;
use std::iter;
use thiserror::Error;

/// A line that does not have the form that the kernel gives it.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("line {line} of {file} is not understood: '{text}'")]
pub struct BadLine {
    /// The file, as a word: `maps`.
    pub file: &'static str,
    /// Counted from 1.
    pub line: usize,
    /// What it says.
    pub text: Name,
}

/// One line, without its end.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    number: usize,
    /// Its bytes.
    pub(crate) bytes: &'a [u8],
}

impl<'a> Line<'a> {
    /// The error for this line of `file`.
    pub(crate) fn bad(self, file: &'static str) -> BadLine {
        BadLine { file, line: self.number, text: Name::new(self.bytes) }
    }
    /// Its fields, separated by blanks and tabs.
    pub(crate) fn fields(self) -> impl Iterator<Item = &'a [u8]> {
        fields(self.bytes)
    }
}

/// The lines of `bytes`, without empty ones.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    lines_from(0, bytes)
}

/// The same, after `before` earlier lines.
pub(crate) fn lines_from(before: usize, bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut rest = bytes;
    let next = move || {
        let whole = rest;
        // `memchr` would first ask the processor what it can do. In a virtual machine that takes 0.1 ms, a seventh of
        // a short answer.
        let length = rest.skip_until(b'\n').ok().filter(|&length| length > 0)?;
        let line = whole.get(..length)?;
        Some(line.strip_suffix(b"\n").unwrap_or(line))
    };
    let line = |(bytes, number)| Line { number, bytes };
    iter::from_fn(next).zip(before + 1..).map(line).filter(|line| !line.bytes.is_empty())
}

/// The fields of `bytes`, separated by blanks and tabs.
pub(crate) fn fields(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| matches!(byte, b' ' | b'\t')).filter(|field| !field.is_empty())
}

/// What stands before and after the first `mark`.
pub(crate) fn split_once(bytes: &[u8], mark: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|&byte| byte == mark)?;
    Some((bytes.get(..at)?, bytes.get(at + 1..)?))
}

/// A decimal number and nothing else.
pub(crate) fn decimal<T: std::str::FromStr>(bytes: &[u8]) -> Option<T> {
    // `parse` would also take a sign.
    let digits = !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(bytes).ok().filter(|_| digits)?.parse().ok()
}

/// A number of units of 1024 bytes, in bytes.
pub(crate) fn kibibytes(bytes: &[u8]) -> Option<u64> {
    decimal(bytes).and_then(|number: u64| number.checked_mul(1024))
}

/// Text of the kernel's own, which is UTF-8.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A hexadecimal number without `0x`, and nothing else.
pub(crate) fn hexadecimal(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() {
        return None;
    }
    bytes.iter().try_fold(0, with_digit)
}

/// A hexadecimal number without `0x` before the first `mark`, and the rest after it.
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

/// `number` with one more hexadecimal digit; `None` if it is none, or one too many.
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

/// Undoes `\NNN` (three octal digits), as `seq_file` writes what would break a line or a field.
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

/// Undoes `\012`, the only thing that `maps` escapes: every other backslash stands for itself.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
