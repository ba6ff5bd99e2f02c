//! Lines and their parts as text that parses to the same.

use super::layout::{Format, Layout};
use super::lexer::escape;
use super::syntax::{Control, Line, Opening, Output, Rows};
use crate::lang::layout::{Count, Cut, Time};
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// " KEYWORD VALUE", or nothing.
pub(crate) fn clause(f: &mut Formatter<'_>, keyword: &str, value: Option<impl Display>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, " {keyword} {value}"))
}

/// " TEXT" in quotes, or nothing.
pub(crate) fn quoted(f: &mut Formatter<'_>, text: Option<&str>) -> fmt::Result {
    text.map_or(Ok(()), |text| write!(f, " {}", escape('"', text)))
}

/// " WORD" if it is given.
pub(crate) fn word_if(f: &mut Formatter<'_>, is_given: bool, word: &str) -> fmt::Result {
    if is_given { write!(f, " {word}") } else { Ok(()) }
}

/// " limit N", " top N", or nothing.
pub(crate) fn cut(f: &mut Formatter<'_>, cut: Option<&Cut>) -> fmt::Result {
    cut.map_or(Ok(()), |cut| clause(f, cut.which.word(), Some(&cut.rows.node)))
}

impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Line::Empty => Ok(()),
            Line::Comment => f.write_str("#"),
            Line::Shell(text) => write!(f, "!{text}"),
            Line::Command { command, output } => {
                write!(f, "{}{}", command.node, output)
            }
            Line::Control(control) => control.fmt(f),
        }
    }
}

impl Display for Control {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Control::Open(Opening::If(condition)) => write!(f, "if {}", condition.node),
            Control::Else => f.write_str("else"),
            Control::End => f.write_str("end"),
            Control::Open(Opening::While(condition)) => write!(f, "while {}", condition.node),
            Control::Break => f.write_str("loop_break"),
            Control::Continue => f.write_str("loop_continue"),
            Control::Open(Opening::Foreach { variable, rows }) => {
                write!(f, "foreach ${} in ", variable.node)?;
                match rows {
                    Rows::Of(command) => command.node.fmt(f),
                    Rows::Threads => f.write_str("threads"),
                    Rows::Values(values) => {
                        let values: Vec<String> = values.iter().map(|value| value.node.to_string()).collect();
                        match values.join(", ") {
                            // Alone it would be the rows of that name.
                            name if name == "threads" => f.write_str("'threads'"),
                            values => f.write_str(&values),
                        }
                    }
                }
            }
            Control::Open(Opening::Define(name)) => write!(f, "define {}", name.node),
            Control::Open(Opening::Document(name)) => write!(f, "document {}", name.node),
        }
    }
}

impl Display for Output {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Output::Screen => Ok(()),
            Output::Pipe(text) => write!(f, " | {}", text.node),
            Output::File { path, append } => {
                write!(f, " {} {}", if *append { ">>" } else { ">" }, escape('"', &path.node))
            }
        }
    }
}

impl Display for Count {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Count::Number(number) => write!(f, "{number}"),
            Count::Variable(name) => write!(f, "${name}"),
        }
    }
}

impl Display for Time {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Time::Duration(duration) => f.write_str(&time(*duration)),
            Time::Variable(name) => write!(f, "${name}"),
        }
    }
}

/// A duration without loss: `2s`, `100ms`, `0.0005s`.
fn time(duration: Duration) -> String {
    let nanoseconds = duration.subsec_nanos();
    if nanoseconds == 0 {
        format!("{}s", duration.as_secs())
    } else if duration.as_secs() == 0 && nanoseconds.is_multiple_of(1_000_000) {
        format!("{}ms", nanoseconds / 1_000_000)
    } else {
        let fraction = format!("{nanoseconds:09}");
        format!("{}.{}s", duration.as_secs(), fraction.trim_end_matches('0'))
    }
}

impl Display for Layout {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let layout = self;
        if *layout == Layout::default() {
            return Ok(());
        }
        f.write_str(if layout.backward { "/-" } else { "/" })?;
        layout.count.map_or(Ok(()), |count| write!(f, "{count}"))?;
        f.write_str(layout.format.map_or("", Format::letter))?;
        let unit = layout.unit.map(|unit| unit.letter());
        f.write_str(unit.unwrap_or_default())
    }
}
