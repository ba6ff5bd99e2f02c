//! Numbers and text as gdb writes them, letter by letter.

use crate::lang::Format;
use std::fmt::Write;

/// A unit of memory of `bytes` bytes. In an address, smaller units are sign-extended to `pointer_bytes`.
pub fn unit(format: Format, bytes: u8, raw: u64, pointer_bytes: u8) -> String {
    let bits = 8 * usize::from(bytes);
    let signed = (raw as i64) << (64 - bits) >> (64 - bits);
    match format {
        Format::Hexadecimal | Format::PaddedHexadecimal => {
            format!("{raw:#0width$x}", width = 2 + bits / 4)
        }
        Format::Signed | Format::Text => signed.to_string(),
        Format::Unsigned => raw.to_string(),
        Format::Octal if raw == 0 => "0".to_owned(),
        Format::Octal => format!("0{raw:o}"),
        Format::Binary => format!("{raw:0bits$b}"),
        Format::Address if pointer_bytes == 4 => format!("{:#x}", signed as u32),
        Format::Address => format!("{signed:#x}"),
        Format::Character => {
            let byte = raw as u8;
            format!("{} {}", byte as i8, character(byte))
        }
        Format::Float => match bytes {
            4 => {
                let raw = raw as u32;
                float(f32::from_bits(raw).into(), 9, u64::from(raw & 0x7f_ffff))
            }
            8 => float(f64::from_bits(raw), 17, raw & 0xf_ffff_ffff_ffff),
            _ => signed.to_string(),
        },
    }
}

/// A floating-point number with so many digits, as C's `%g` writes it. gdb shows the `mantissa` of a NaN.
fn float(number: f64, digits: usize, mantissa: u64) -> String {
    let sign = if number.is_sign_negative() { "-" } else { "" };
    if number.is_nan() {
        return format!("{sign}nan({mantissa:#x})");
    }
    if number.is_infinite() {
        return format!("{sign}inf");
    }
    let written = format!("{number:.*e}", digits - 1);
    let (significand, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let last = digits as i32 - 1;
    if exponent < -4 || exponent > last {
        let sign = if exponent < 0 { '-' } else { '+' };
        let significand = without_zeros(significand);
        return format!("{significand}e{sign}{:02}", exponent.unsigned_abs());
    }
    let decimals = usize::try_from(last - exponent).unwrap_or(0);
    without_zeros(&format!("{number:.decimals$}")).to_owned()
}

/// Without zeros at the end of a fraction, and without a point at the end.
fn without_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// A byte as a character in quotes.
pub fn character(byte: u8) -> String {
    let mut shown = String::from("'");
    push_byte(&mut shown, byte, '\'');
    shown.push('\'');
    shown
}

/// A byte within `quote`s.
fn push_byte(text: &mut String, byte: u8, quote: char) {
    match byte {
        0x20..=0x7e => push_character(text, char::from(byte), quote),
        _ => match escape_letter(char::from(byte)) {
            Some(letter) => text.extend(['\\', letter]),
            None => {
                // Writing to a string does not fail.
                let _ = write!(text, "\\{byte:03o}");
            }
        },
    }
}

/// A character that can be shown, within `quote`s.
fn push_character(text: &mut String, character: char, quote: char) {
    if character == quote || character == '\\' {
        text.push('\\');
    }
    text.push(character);
}

/// The letter after the backslash in the escape of a control character.
fn escape_letter(character: char) -> Option<char> {
    Some(match character {
        '\x07' => 'a',
        '\x08' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\x0b' => 'v',
        '\x0c' => 'f',
        '\r' => 'r',
        _ => return None,
    })
}

/// Text in quotes, from units of one, two or four bytes: UTF-8, UTF-16 or UTF-32.
pub fn text(units: &[u64], bytes: u8) -> String {
    let mut shown = String::from(match bytes {
        2 => "u\"",
        4 => "U\"",
        _ => "\"",
    });
    match bytes {
        2 => {
            let units = units.iter().map(|&unit| unit as u16);
            for decoded in char::decode_utf16(units) {
                match decoded {
                    Ok(character) => push_wide(&mut shown, character, bytes),
                    Err(lone) => push_code(&mut shown, lone.unpaired_surrogate().into()),
                }
            }
        }
        4 => {
            for &unit in units {
                match u32::try_from(unit).ok().and_then(char::from_u32) {
                    Some(character) => push_wide(&mut shown, character, bytes),
                    None => push_code(&mut shown, unit),
                }
            }
        }
        _ => {
            let bytes: Vec<u8> = units.iter().map(|&unit| unit as u8).collect();
            for chunk in bytes.utf8_chunks() {
                for character in chunk.valid().chars() {
                    push_wide(&mut shown, character, 1);
                }
                for &byte in chunk.invalid() {
                    push_byte(&mut shown, byte, '"');
                }
            }
        }
    }
    shown.push('"');
    shown
}

/// A character; if it is not printable, the units of so many bytes that encode it.
fn push_wide(text: &mut String, character: char, bytes: u8) {
    match (u8::try_from(character), bytes) {
        // A digit behind `\x…` would be read as part of the escape.
        (Ok(byte), _) if byte.is_ascii_hexdigit() && ends_in_hexadecimal(text) => {
            push_code(text, byte.into());
        }
        (Ok(byte @ 0..=0x7f), _) => push_byte(text, byte, '"'),
        _ if crate::kernel::text::is_plain(character) => push_character(text, character, '"'),
        (_, 2) => {
            for unit in character.encode_utf16(&mut [0; 2]) {
                push_code(text, (*unit).into());
            }
        }
        (_, 4) => push_code(text, character.into()),
        _ => {
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                push_byte(text, byte, '"');
            }
        }
    }
}

/// Whether a text ends with a unit written as `\x…`, rather than with an escaped backslash and letters.
fn ends_in_hexadecimal(text: &str) -> bool {
    let digits = |c: char| c.is_ascii_hexdigit();
    let before = text.trim_end_matches(digits);
    let Some(before) = before.strip_suffix("\\x").filter(|_| before.len() < text.len()) else {
        return false;
    };
    let backslashes = before.len() - before.trim_end_matches('\\').len();
    backslashes.is_multiple_of(2)
}

/// A unit that is no printable character: in octal if three digits are enough.
fn push_code(text: &mut String, unit: u64) {
    // Writing to a string does not fail.
    let _ = match unit {
        0..=0o777 => write!(text, "\\{unit:03o}"),
        _ => write!(text, "\\x{unit:x}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_as_gdb_writes_them() {
        for (format, bytes, raw, expected) in [
            (Format::Hexadecimal, 2, 0x302, "0x0302"),
            (Format::PaddedHexadecimal, 4, 1, "0x00000001"),
            (Format::Signed, 4, 0xfeff_8180, "-16809600"),
            (Format::Unsigned, 4, 0xfeff_8180, "4278157696"),
            (Format::Octal, 4, 0x0302_0100, "0300400400"),
            (Format::Octal, 4, 0, "0"),
            (Format::Binary, 1, 5, "00000101"),
            (Format::Address, 4, 0xfeff_8180, "0xfffffffffeff8180"),
            (Format::Character, 4, 0x0706_0504, "4 '\\004'"),
            (Format::Character, 1, 0x1b, "27 '\\033'"),
            (Format::Character, 1, b'\''.into(), "39 '\\''"),
            (Format::Character, 1, 0x80, "-128 '\\200'"),
            (Format::Float, 1, 0xff, "-1"),
            (Format::Float, 4, 0x3dcc_cccd, "0.100000001"),
            (Format::Float, 4, 0x0302_0100, "3.82047143e-37"),
            (Format::Float, 4, 0x7fc0_0000, "nan(0x400000)"),
            (Format::Float, 8, 0x3fb9_9999_9999_999a, "0.10000000000000001"),
            (Format::Float, 8, 0x7f1b_0d0c_0b0a_0908, "1.8550618780552368e+304"),
            (Format::Float, 8, 0x7ff8 << 48, "nan(0x8000000000000)"),
            (Format::Float, 8, 0xfff0 << 48, "-inf"),
            (Format::Float, 8, 1 << 63, "-0"),
            (Format::Float, 8, 0x4059 << 48, "100"),
        ] {
            assert_eq!(unit(format, bytes, raw, 8), expected, "{format:?}");
        }
        assert_eq!(unit(Format::Address, 4, 0xfeff_8180, 4), "0xfeff8180");
    }

    #[test]
    fn text_is_escaped_as_gdb_does() {
        let of = |bytes: &[u8]| {
            let units: Vec<u64> = bytes.iter().map(|&byte| byte.into()).collect();
            text(&units, 1)
        };
        assert_eq!(of(b"\x01\x07\r\x1b\x7f\xffAb'\"\\"), r#""\001\a\r\033\177\377Ab'\"\\""#);
        assert_eq!(of("\u{e4}x".as_bytes()), "\"\u{e4}x\"");
        assert_eq!(of(b"\xc3("), r#""\303(""#);
        assert_eq!(of("\u{202e}".as_bytes()), r#""\342\200\256""#);
        assert_eq!(text(&[0x61, 0xd800, 0x4e00], 2), "u\"a\\xd800\u{4e00}\"");
        assert_eq!(text(&[0x61, 0x0302_0100], 4), "U\"a\\x3020100\"");
    }

    #[test]
    fn characters_that_cannot_be_shown_are_the_units_they_are_stored_in() {
        // Not assigned, for private use, no character at all, invisible.
        let hidden = [0x0a64, 0xf489, 0xffff, 0x206f, 0x85];
        for (bytes, expected) in [(2, r#"u"\xa64\xf489\xffff\x206f\205""#), (4, r#"U"\xa64\xf489\xffff\x206f\205""#)] {
            assert_eq!(text(&hidden, bytes), expected);
        }
        // A digit behind one would be read as a part of it.
        for (units, expected) in [
            (&[0xd800, 0x64, 0x67, 0x31][..], r#"u"\xd800\144g1""#),
            (&[0xd800, 0x31, 0x31], r#"u"\xd800\0611""#),
            (&[0x5c, 0x78, 0x31, 0x31], r#"u"\\x11""#),
            (&[1, 0x31], r#"u"\0011""#),
        ] {
            assert_eq!(text(units, 2), expected);
        }
        let private_plane = [0xdbc0, 0xdc00];
        assert_eq!(text(&private_plane, 2), r#"u"\xdbc0\xdc00""#);
        let utf8: Vec<u64> = "\u{ffff}".bytes().map(u64::from).collect();
        assert_eq!(text(&utf8, 1), r#""\357\277\277""#);
        // What can be shown is, blanks and marks over letters too.
        assert_eq!(text(&[0xa0, 0x65, 0x301, 0x3000], 2), "u\"\u{a0}e\u{301}\u{3000}\"");
    }
}
