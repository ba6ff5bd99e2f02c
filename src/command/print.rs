//! `print[/FMT] VALUE`: evaluates an expression.

use super::floor::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use super::translate::symbol_at;
use crate::eval::{self, Integer, Value, ValueKind};
use crate::kernel::{Name, VirtualAddress};
use crate::lang::parser::{Parsed, Tokens, format, range};
use crate::lang::{self, Expression, Format, Span, Spanned, ValueFormat};
use crate::render::text::Text;
use crate::render::text::block::{self, region_name};
use crate::render::text::lines::Lines;
use crate::render::theme::Role;
use crate::render::units::counted;
use crate::render::{Record, gdb};
use crate::report::json::{JsonForm, leaf, words};
use crate::report::record::record;
use crate::report::{self, AsText, Declared, Shape, SymbolBrief};
use crate::state::DebugState;
use nom::Parser;
use nom::combinator::{map, opt};
use serde::Serialize;
use std::fmt::{self, Formatter};

/// `print[/FMT] VALUE`
#[derive(Debug)]
pub struct Print {
    /// How integers and addresses are written; by their type if absent.
    format: Option<Format>,
    /// What to print.
    pub value: Spanned<lang::Range>,
}

impl Command for Print {
    const RECORDS: &'static [Shape] = &[ValueReport::SHAPE];
    const ABOUT: About = About {
        name: CommandName::new("print").of_session().short(&["p"]).detached(),
        group: Group::Memory,
        summary: "evaluate an expression and keep its value",
        text: "\
Prints the value of an expression and keeps it as $1, $2 and so on. $ is the last value, $$ the one before. `help \
values` explains types, names and functions.

  /x /d /u /o /t /a /c /z /s /f  integers and addresses in another format, as in gdb (`help units`)

/f uses the bits as a float, or as a double if there are more than 32.

*ADDRESS, u8(…) to f64(…) and casts as in C, such as *(int *)ADDRESS, read the target's memory. They read only \
resident pages: nothing is faulted in. As in gdb, the cast of a variable's name reads the variable: (int)counter. A \
cast of a number converts it: (unsigned char)300. A cast value keeps its type.

Functions give facts about an address or a range, and the counts of walk and regions: count(RANGE where FILTER). An \
unknown fact is an error with its reason. A symbol keeps its size, also in a variable: size($x) and `walk $x` cover \
all of it. &name is its address alone.",
        examples: &[
            example("print demo_buffer + 0x10", "add to the address of a symbol"),
            example("print size([stack])", "print the size of a region in bytes"),
            example("print u32(demo_counter)", "print four bytes of memory"),
            example("print *(int *)&demo_counter", "print the same as a signed number"),
            example("print/x 4p + 8", "convert pages to bytes"),
            example("print count(demo_buffer where present)", "count the resident pages"),
            example("print phys(demo_buffer)", "print a physical address"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        map((opt(format), range), |(format, value)| Print { format, value }).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", of_format(self.format), self.value.node)
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let value = eval::value(&self.value, context.state)?;
        if let lang::Range::Expression(written) = &self.value.node {
            eval::note_address(&Spanned::new(written.clone(), self.value.at), context.state);
        }
        let text = written_out(self.format, &value);
        if let Some(address) = value.address() {
            context.state.last_address = Some(address);
        }
        // A number that is shown as an address gets its symbol and region too.
        let number = value.integer().filter(|_| self.format == Some(Format::Address));
        let address = number.map(|number| VirtualAddress::new(as_unsigned(number))).or_else(|| value.address());
        let mut report = value_report(context.state, &value, text, address);
        // The number of bytes is read as a size: the hexadecimal number tells nobody anything.
        if let lang::Range::Expression(written) = &self.value.node
            && let Some(size) = eval::in_units(written, &value)
        {
            report.also = Some(size).filter(|text| *text != report.value);
        }
        report.number = Some(context.state.values.push(value));
        context.sink.emit(&report)?;
        Ok(Flow::Done)
    }
}

/// `output[/FMT] VALUE`: the value alone, without a line end, and not kept.
#[derive(Debug)]
pub struct OutputValue {
    /// How integers and addresses are written; by their type if absent.
    format: Option<Format>,
    /// What to print.
    pub value: Spanned<lang::Range>,
}

impl Command for OutputValue {
    const ABOUT: About = About {
        name: CommandName::new("output").of_session().whole().detached(),
        group: Group::Scripts,
        summary: "print a value and nothing else",
        text: "\
Prints a value as `print` does, but without its number and without a line end, and does not keep it. Useful in \
command files that build a line from parts.",
        examples: &[example("output/x size(demo_buffer)", "print the number alone")],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        map((opt(format), range), |(format, value)| OutputValue { format, value }).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", of_format(self.format), self.value.node)
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let value = eval::value(&self.value, context.state)?;
        let text = text_of(context.state, self.format, &value);
        context.sink.emit(&report::EchoedText { text })?;
        Ok(Flow::Done)
    }
}

/// A format without a count and a size.
fn of_format(format: Option<Format>) -> ValueFormat {
    ValueFormat { format, ..ValueFormat::default() }
}

/// A value with its symbol behind it, control characters escaped.
pub(super) fn text_of(state: &DebugState, format: Option<Format>, value: &Value) -> String {
    let text = Name::new(written_out(format, value).as_bytes()).to_string();
    match value_report(state, value, String::new(), value.address()).symbol {
        None => text,
        Some(AsText(SymbolBrief { name, offset: 0, .. })) => format!("{text} <{name}>"),
        Some(AsText(SymbolBrief { name, offset, .. })) => format!("{text} <{name}+{offset}>"),
    }
}

fn written_out(format: Option<Format>, value: &Value) -> String {
    match (format, value) {
        (Some(format), Value::Array(array)) if format != Format::Text => {
            array.in_braces(&|element| written_out(Some(format), element))
        }
        (None | Some(Format::Text), _) => value.to_string(),
        (Some(format), _) => match (raw(value), value) {
            (None, _) => value.to_string(),
            // Its bits, as in gdb.
            (Some(number), Value::Float(float)) => gdb::unit(format, float.bytes(), number, float.bytes()),
            // An address has the size of a pointer, and so the sign of a smaller number.
            (_, Value::Typed(typed)) if format == Format::Address => formatted(format, 8, as_unsigned(typed.get())),
            (Some(number), Value::Typed(typed)) => formatted(format, typed.bytes(), number),
            // As in gdb, where a small number is an int.
            (Some(number), _) if format == Format::Float && fits_32_bits(number) => {
                gdb::unit(format, 4, number & 0xffff_ffff, 4)
            }
            (Some(number), _) => formatted(format, 8, number),
        },
    }
}

/// The variables and the kept values, for `show convenience`. Variables that pmdb sets itself are listed even without a
/// value.
pub(super) fn kept_values(state: &DebugState) -> Vec<ValueReport> {
    let void = |name: &str| ValueReport {
        as_number: None,
        number: None,
        name: Some(name.to_owned()),
        kind: ValueKind::Void,
        value: "void".to_owned(),
        also: None,
        elements: None,
        symbol: None,
        region: None,
    };
    let last = match state.last_address.map(Value::Address) {
        Some(value) => ValueReport { name: Some("_".to_owned()), ..described_value(state, &value) },
        None => void("_"),
    };
    // Some have a value only when they are evaluated.
    let unset = eval::own_variables().filter(|name| !state.variables.contains_key(*name)).map(|name| {
        let variable = Spanned::new(Expression::Variable(name.to_owned()), Span::default());
        match eval::evaluate(&variable, state) {
            Ok(value) => ValueReport { name: Some(name.to_owned()), ..described_value(state, &value) },
            Err(_) => void(name),
        }
    });
    let own = std::iter::once(last).chain(unset);
    let variables = state
        .variables
        .iter()
        .map(|(name, value)| ValueReport { name: Some(name.clone()), ..described_value(state, value) });
    let values = state
        .values
        .iter()
        .map(|(number, value)| ValueReport { number: Some(number), ..described_value(state, value) });
    own.chain(variables).chain(values).collect()
}

/// The record of a value that is not in the history.
pub(super) fn described_value(state: &DebugState, value: &Value) -> ValueReport {
    value_report(state, value, value.to_string(), value.address())
}

/// The record of a value, with its other forms and what lies at `address`.
fn value_report(state: &DebugState, value: &Value, text: String, address: Option<VirtualAddress>) -> ValueReport {
    let mut report = ValueReport {
        as_number: match value {
            Value::Integer(number) => JsonNumber::of_integer(number.get()),
            Value::Typed(number) => JsonNumber::of_integer(number.get().get()),
            Value::Frame(frame) => JsonNumber::of_integer(frame.get().into()),
            Value::Float(number) => JsonNumber::of_float(number.get()),
            _ => None,
        },
        number: None,
        name: None,
        kind: value.kind(),
        also: also(value).filter(|also| *also != text),
        elements: match value {
            Value::Array(array) => Some(array.elements().iter().map(Value::to_string).collect()),
            _ => None,
        },
        value: text,
        symbol: None,
        region: None,
    };
    if let (Some(address), Some(target)) = (address, state.target())
        && let Ok(regions) = state.symbols.regions_at(target, address)
    {
        let region = regions.iter().find(|region| region.range.contains(address));
        report.region = region.map(|region| region.name.clone());
        let symbol = region.and_then(|_| symbol_at(&state.symbols, target, &regions, address));
        report.symbol = symbol.map(AsText);
    }
    report
}

/// The value in another base or unit.
fn also(value: &Value) -> Option<String> {
    match value {
        Value::Integer(number) => {
            let raw = as_unsigned(*number);
            (raw > 9).then(|| format!("{raw:#x}"))
        }
        Value::Typed(number) => (number.bits() > 9).then(|| format!("{:#x}", number.bits())),
        Value::Range(spans) => Some(counted(spans.size(), "byte")),
        Value::Frames(frames) => Some(counted(frames.frames(), "frame")),
        _ => None,
    }
}

/// The 64 bits of a value that is one number.
fn raw(value: &Value) -> Option<u64> {
    match value {
        Value::Range(_) | Value::Frames(_) => None,
        Value::Float(float) => Some(float.bits()),
        Value::Typed(number) => Some(number.bits()),
        _ => value.number().map(as_unsigned),
    }
}

/// Negative numbers as two's complement, as gdb's `/x` shows them.
fn as_unsigned(number: Integer) -> u64 {
    number.get() as u64
}

/// A number of so many bytes: only /z pads it. One without a type has eight.
fn formatted(format: Format, bytes: u8, raw: u64) -> String {
    match format {
        Format::Hexadecimal | Format::Address => format!("{raw:#x}"),
        Format::Binary => format!("{raw:b}"),
        _ => gdb::unit(format, bytes, raw, bytes),
    }
}

fn fits_32_bits(raw: u64) -> bool {
    u32::try_from(raw).is_ok() || i32::try_from(raw as i64).is_ok()
}

/// A number that every reader of JSON reads exactly.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum JsonNumber {
    /// A whole number, at most 2^53 in size.
    Integer(i64),
    /// A finite number with a fraction.
    Float(f64),
}

leaf!(JsonNumber => JsonForm::Number);

impl JsonNumber {
    /// The number, if it is not too large.
    pub fn of_integer(number: i128) -> Option<Self> {
        let number = i64::try_from(number).ok()?;
        (number.unsigned_abs() <= 1 << 53).then_some(JsonNumber::Integer(number))
    }

    /// The number, if it is one.
    pub fn of_float(number: f64) -> Option<Self> {
        number.is_finite().then_some(JsonNumber::Float(number))
    }
}

record! {
    /// `print`
    pub struct ValueReport as "value" {
        /// The number in the value history: 1 for `$1`; `null` for values that are not kept.
        number: Option<usize>,
        /// The name of a variable, without the dollar.
        [optional] name: Option<String>,
        /// The type: `address`, `physical`, `frame`, `frames`, `integer`, `float`, `array`, `range`, `text`, or `void`.
        kind: ValueKind,
        /// The value in its usual form (hexadecimal for addresses, decimal for integers).
        value: String,
        /// The value as a number, if it is one that JSON can hold: integers up to 2^53 in size, frame numbers, floats.
        as_number: Option<JsonNumber>,
        /// The same in another base or unit, if that helps a reader.
        [optional] also: Option<String>,
        /// The elements of an array, each as `value` would show it.
        [optional] elements: Option<Vec<String>>,
        /// The symbol of an address; in JSON as `main+16`.
        symbol: Option<AsText<SymbolBrief>>,
        /// Name of the region, for an address in one.
        region: Option<Name>,
    }
}

words!(ValueKind => "value_kind");

impl Record for ValueReport {
    fn write(&self, text: &mut Text) {
        text.line(write_line, self);
    }
}

/// `$1 = 0x401136 <main+4> in demo`
fn write_line(lines: &mut Lines, value: &ValueReport) {
    let line = lines.line();
    if let Some(number) = value.number {
        line.push(Role::Dim, format!("${number} = "));
    } else if let Some(name) = &value.name {
        line.push(Role::Dim, format!("${name} = "));
    }
    let role = match value.kind {
        ValueKind::Address | ValueKind::Range => Role::Address,
        ValueKind::Physical => Role::Physical,
        ValueKind::Frame => Role::Frame,
        ValueKind::Text => Role::Quoted,
        _ => Role::Plain,
    };
    match value.value.as_str() {
        // The name of memory without one, for instance.
        "" => line.push(role, "\"\""),
        text => line.push(role, text),
    };
    if let Some(symbol) = &value.symbol {
        line.plain(" ");
        block::symbol(line, &symbol.0);
    }
    // A variable in `.bss` is in a region without a name.
    if let Some(region) = value.region.as_ref().filter(|region| value.symbol.is_none() || !region.is_empty()) {
        let (role, name) = region_name(region);
        line.plain("  in ").push(role, name);
    }
    if let Some(also) = &value.also {
        line.plain("  ").push(Role::Dim, format!("({also})"));
    }
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![Box::new(value())]
    }

    pub fn value() -> ValueReport {
        ValueReport {
            as_number: None,
            number: Some(1),
            name: None,
            kind: ValueKind::Address,
            value: "0x555555558010".into(),
            also: Some("93824992247824".into()),
            elements: None,
            symbol: Some(AsText(SymbolBrief { name: Name::from("counter"), offset: 16, module: Name::from("demo") })),
            region: Some(Name::from("/usr/bin/demo")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_gdb_s() {
        for (format, raw, expected) in [
            (Format::Hexadecimal, 255, "0xff"),
            (Format::Signed, u64::MAX, "-1"),
            (Format::Unsigned, u64::MAX, "18446744073709551615"),
            (Format::Octal, 8, "010"),
            (Format::Octal, 0, "0"),
            (Format::Binary, 5, "101"),
            (Format::PaddedHexadecimal, 1, "0x0000000000000001"),
            (Format::Character, 0x41, "65 'A'"),
            (Format::Character, 0x1b, "27 '\\033'"),
            (Format::Character, 0xff, "-1 '\\377'"),
            (Format::Float, 1, "1.40129846e-45"),
            (Format::Float, 1078530011, "3.14159274"),
            (Format::Float, 0x3ff0 << 48, "1"),
            (Format::Float, (-1i64) as u64, "-nan(0x7fffff)"),
        ] {
            let number = Value::Integer(Integer::from(raw));
            assert_eq!(written_out(Some(format), &number), expected);
        }
    }
}
