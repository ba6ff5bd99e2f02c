//! `printf "FORMAT", VALUE, …`

use crate::command::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use crate::eval::{self, Value};
use crate::kernel::Name;
use crate::lang::parser::{Parsed, Tokens, listed, many, mark, quoted_text};
use crate::lang::{Range, Span, Spanned, escape};
use crate::render::units;
use crate::report::EchoedText;
use nom::Parser;
use nom::combinator::{cut, map};
use nom::sequence::preceded;
use std::fmt::{self, Formatter};

/// `printf "FORMAT", VALUE, …`
#[derive(Debug)]
pub struct Printf {
    /// Text with conversions such as `%d`, its escapes already replaced.
    format: Spanned<String>,
    /// A value for each conversion.
    values: Vec<Spanned<Range>>,
}

impl Command for Printf {
    const ABOUT: About = About {
        name: CommandName::new("printf").whole().displayed().detached(),
        group: Group::Scripts,
        summary: "print values in a format",
        text: "\
Prints the format with a value in the place of each conversion. Adds no line end: write \\n.

  %d %i %u %x %X %o  numbers and addresses
  %c                 a character
  %f                 a number with a fraction
  %s                 any value, as `print` shows it
  %p                 an address
  %B                 a size in bytes with its unit (pmdb's own)
  %%                 a percent sign

Flags (- + 0 # and a space), a width and a precision may follow the %, as in C. The letters l, ll, h and z are \
ignored. %s escapes control characters, because names may come from other users.",
        examples: &[
            example(
                "printf \"%d of %d pages\\n\", count(demo_buffer where present), count(demo_buffer)",
                "print two numbers in a sentence",
            ),
            example(
                "printf \"%-10s %10B at %p\\n\", name([stack]), rss([stack]), start([stack])",
                "print a name, a size and an address in columns",
            ),
        ],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let values = many(preceded(mark(","), cut(listed)));
        map((quoted_text, values), |(format, values)| Printf { format, values }).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", escape('"', &self.format.node))?;
        self.values.iter().try_for_each(|value| write!(f, ", {}", value.node))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let Printf { format, values: written } = self;
        let pieces = pieces(format)?;
        check_number(&pieces, format.at, written)?;
        let mut values = Vec::with_capacity(written.len());
        for value in written {
            values.push(Spanned::new(eval::value(value, context.state)?, value.at));
        }
        let text = fill_in(&pieces, &values)?;
        context.sink.emit(&EchoedText { text })?;
        Ok(Flow::Done)
    }
}

/// The widest field, and the most digits: more is a typing error.
const WIDEST: usize = 4096;

/// A part of a format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Piece {
    Text(String),
    Conversion(Conversion),
}

/// `%-10.3s` and its like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Conversion {
    letter: char,
    left: bool,
    plus: bool,
    blank: bool,
    zeros: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
}

/// The letters of the conversions.
const LETTERS: &str = "diuxXocfspB";

/// Cuts a format into its parts.
///
/// # Errors
/// An unknown conversion.
pub(super) fn pieces(format: &Spanned<String>) -> Result<Vec<Piece>, Error> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = format.node.as_str();
    while let Some(start) = rest.find('%') {
        let (before, behind) = rest.split_at(start);
        text.push_str(before);
        let behind = behind.get(1..).unwrap_or_default();
        if let Some(after) = behind.strip_prefix('%') {
            text.push('%');
            rest = after;
            continue;
        }
        let (conversion, after) = conversion(behind).map_err(|message| eval::Error::new(format.at, message))?;
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        pieces.push(Piece::Conversion(conversion));
        rest = after;
    }
    text.push_str(rest);
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

/// The conversion behind a `%`, and what follows it.
fn conversion(text: &str) -> Result<(Conversion, &str), String> {
    let mut conversion = Conversion::default();
    let mut rest = text;
    while let Some(flag) = rest.chars().next().filter(|flag| "-+0# ".contains(*flag)) {
        match flag {
            '-' => conversion.left = true,
            '+' => conversion.plus = true,
            '0' => conversion.zeros = true,
            '#' => conversion.alternate = true,
            _ => conversion.blank = true,
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    let number = |rest: &str| -> Result<(usize, usize), String> {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number = rest.get(..digits).unwrap_or_default();
        let value = match number {
            "" => 0,
            number => number.parse().unwrap_or(usize::MAX),
        };
        if value > WIDEST { Err(format!("`%{text}`: a width is at most {WIDEST}")) } else { Ok((value, digits)) }
    };
    let (width, digits) = number(rest)?;
    conversion.width = width;
    rest = rest.get(digits..).unwrap_or_default();
    if let Some(behind) = rest.strip_prefix('.') {
        let (precision, digits) = number(behind)?;
        conversion.precision = Some(precision);
        rest = behind.get(digits..).unwrap_or_default();
    }
    rest = rest.trim_start_matches(['l', 'h', 'z']);
    match rest.chars().next() {
        Some(letter) if LETTERS.contains(letter) => {
            conversion.letter = letter;
            Ok((conversion, rest.get(1..).unwrap_or_default()))
        }
        Some('*') => Err("a width from an argument (`*`) is not supported".to_owned()),
        Some(letter) => {
            Err(format!("there is no conversion `%{letter}`; there are %d %i %u %x %X %o %c %f %s %p %B and %%"))
        }
        None => Err("the format ends within a conversion; write a percent sign as %%".to_owned()),
    }
}

/// Checks that there is a value for each conversion, and no more.
///
/// # Errors
/// At the first value too many, or at the format.
pub(super) fn check_number(pieces: &[Piece], at: Span, written: &[Spanned<Range>]) -> Result<(), Error> {
    let conversions = pieces.iter().filter(|piece| matches!(piece, Piece::Conversion(_))).count();
    if conversions == written.len() {
        return Ok(());
    }
    let message = format!(
        "the format has {}, and the line {}",
        units::counted(conversions as u64, "conversion"),
        units::counted(written.len() as u64, "value")
    );
    let at = written.get(conversions).map_or(at, |extra| extra.at);
    Err(eval::Error::new(at, message).into())
}

/// The text with each value in its place.
///
/// # Errors
/// At a value that does not fit its conversion.
pub(super) fn fill_in(pieces: &[Piece], values: &[Spanned<Value>]) -> Result<String, Error> {
    let mut values = values.iter();
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(part) => text.push_str(part),
            Piece::Conversion(conversion) => {
                if let Some(value) = values.next() {
                    text.push_str(&conversion.format_value(value)?);
                }
            }
        }
    }
    Ok(text)
}

impl Conversion {
    fn format_value(self, value: &Spanned<Value>) -> Result<String, Error> {
        let number = || number(self.letter, value);
        let prefix = |prefix| if self.alternate { prefix } else { "" };
        Ok(match self.letter {
            'd' | 'i' => {
                let number = number()?;
                self.digits(self.sign(number < 0), &number.unsigned_abs().to_string())
            }
            'u' => self.digits("", &bits(number()?).to_string()),
            'x' => self.digits(prefix("0x"), &format!("{:x}", bits(number()?))),
            'X' => self.digits(prefix("0X"), &format!("{:X}", bits(number()?))),
            'o' => self.digits(prefix("0"), &format!("{:o}", bits(number()?))),
            'p' => self.digits("0x", &format!("{:x}", bits(number()?))),
            'f' => {
                let number = match value.node {
                    Value::Float(float) => float.get(),
                    _ => number()? as f64,
                };
                let decimals = self.precision.unwrap_or(6);
                let digits = format!("{:.decimals$}", number.abs());
                Conversion { precision: None, ..self }.digits(self.sign(number.is_sign_negative()), &digits)
            }
            'B' => self.padded(&units::size(bits(number()?))),
            'c' => {
                let number = number()?;
                let character = u32::try_from(number).ok().and_then(char::from_u32);
                let character = character
                    .ok_or_else(|| eval::Error::new(value.at, format!("{number} is not the code of a character")))?;
                self.padded(&escaped(&character.to_string()))
            }
            _ => {
                let text = escaped(&value.node.to_string());
                match self.precision {
                    Some(most) => self.padded(&text.chars().take(most).collect::<String>()),
                    None => self.padded(&text),
                }
            }
        })
    }

    fn sign(self, negative: bool) -> &'static str {
        match (negative, self.plus, self.blank) {
            (true, ..) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            (false, false, false) => "",
        }
    }

    /// A number: at least as many digits as the precision, and zeros up to the width with the flag 0.
    fn digits(self, prefix: &str, digits: &str) -> String {
        let least = self.precision.unwrap_or(if self.zeros && !self.left {
            self.width.saturating_sub(prefix.len())
        } else {
            0
        });
        self.padded(&format!("{prefix}{digits:0>least$}"))
    }

    fn padded(self, text: &str) -> String {
        let width = self.width;
        if self.left { format!("{text:<width$}") } else { format!("{text:>width$}") }
    }
}

/// Control characters and the like as their escapes.
fn escaped(text: &str) -> String {
    Name::new(text.as_bytes()).to_string()
}

/// The number that a value is, as in arithmetic.
fn number(letter: char, value: &Spanned<Value>) -> Result<i128, Error> {
    match value.node.number() {
        Some(number) => Ok(number.get()),
        None => {
            let (kind, hint) = match value.node {
                Value::Float(_) => ("an integer, not a floating-point number", "%f prints it"),
                _ => ("a number, not text", "%s prints text"),
            };
            let error = eval::Error::new(value.at, format!("%{letter} needs {kind}"));
            Err(error.hint(hint).into())
        }
    }
}

/// Its 64 bits: negative numbers as two's complement, as in C.
fn bits(number: i128) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::Integer;

    fn printed(format: &str, values: &[Value]) -> Result<String, String> {
        let at = Span::default();
        let values: Vec<_> = values.iter().map(|value| Spanned::new(value.clone(), at)).collect();
        pieces(&Spanned::new(format.to_owned(), at))
            .and_then(|pieces| fill_in(&pieces, &values))
            .map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn conversions_are_c_s() {
        let number = |number: i64| Value::Integer(Integer::from(number));
        let text = |text: &str| Value::Text(text.to_owned());
        for (format, value, expected) in [
            ("%d|", number(-5), "-5|"),
            ("%5d|%%", number(5), "    5|%"),
            ("%-5d|", number(5), "5    |"),
            ("%05d|", number(-5), "-0005|"),
            ("%+d|", number(5), "+5|"),
            ("% d|", number(5), " 5|"),
            ("%.3d|", number(5), "005|"),
            ("%llu|", number(-1), "18446744073709551615|"),
            ("%#x|", number(255), "0xff|"),
            ("%08lx|", number(255), "000000ff|"),
            ("%X|", number(255), "FF|"),
            ("%#o|", number(8), "010|"),
            ("%p|", number(4096), "0x1000|"),
            ("%c|", number(65), "A|"),
            ("%.1f|", number(3), "3.0|"),
            ("%s|", number(3), "3|"),
            ("%B|", number(4096), "4 KiB|"),
            ("%-6.2s|", text("abc"), "ab    |"),
            ("%s|", text("a\u{1b}[31m"), "a\\x1b[31m|"),
        ] {
            assert_eq!(printed(format, &[value]).as_deref(), Ok(expected), "{format}");
        }
        for format in ["%", "%q", "%*d", "%99999d", "%5"] {
            assert!(printed(format, &[number(1)]).is_err(), "{format}");
        }
        assert!(printed("%d", &[text("a")]).is_err());
    }
}
