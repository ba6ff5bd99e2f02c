//! From the tree back to a line that parses to the same tree.

mod expression;
mod filter;
mod operators;

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use super::lexer::escape;
use super::syntax::{
    Assignment, Command, Control, Expression, Format, Layout, Line, Name, Output, Pattern,
    Quantifier, Range, Rows, SettingValue, Shown, Summarized, TargetName, Until,
};
use super::words::{
    COLOR_CHOICES, GROUP_KEYS, ON_REQUEST, READINGS, REGION_ORDERS, SWITCH, UNITS, spelled,
};

/// " KEYWORD VALUE", or nothing.
fn clause(f: &mut Formatter<'_>, keyword: &str, value: Option<impl Display>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, " {keyword} {value}"))
}

/// " full", or nothing.
fn full(f: &mut Formatter<'_>, full: bool) -> fmt::Result {
    f.write_str(if full { " full" } else { "" })
}

impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Line::Empty => Ok(()),
            Line::Comment => f.write_str("#"),
            Line::Shell(text) => write!(f, "!{text}"),
            Line::Command { command, output } => write!(f, "{}{output}", command.node),
            Line::Control(control) => write!(f, "{control}"),
        }
    }
}

impl Display for Control {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Control::If(condition) => write!(f, "if {}", condition.node),
            Control::Else => f.write_str("else"),
            Control::End => f.write_str("end"),
            Control::While(condition) => write!(f, "while {}", condition.node),
            Control::Break => f.write_str("loop_break"),
            Control::Continue => f.write_str("loop_continue"),
            Control::Foreach { variable, rows } => {
                write!(f, "foreach ${} in ", variable.node)?;
                match rows {
                    Rows::Of(command) => write!(f, "{}", command.node),
                    Rows::Values(values) => {
                        let values: Vec<String> =
                            values.iter().map(|value| value.node.to_string()).collect();
                        f.write_str(&values.join(", "))
                    }
                }
            }
            Control::Define(name) => write!(f, "define {}", name.node),
            Control::Document(name) => write!(f, "document {}", name.node),
        }
    }
}

impl Display for Output {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Output::Screen => Ok(()),
            Output::Pipe(text) => write!(f, " | {}", text.node),
            Output::File { path, append } => {
                write!(
                    f,
                    " {} {}",
                    if *append { ">>" } else { ">" },
                    escape('"', &path.node)
                )
            }
        }
    }
}

impl Display for Command {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Command::Attach(target) => write!(f, "attach {}", target.node),
            Command::Detach => f.write_str("detach"),
            Command::Ps { filter } => quoted(f, "ps", filter.as_deref()),
            Command::InfoProcess => f.write_str("info process"),
            Command::InfoCapabilities => f.write_str("info capabilities"),
            Command::InfoSymbol(address) => write!(f, "info symbol {}", address.node),
            Command::InfoAddress(symbol) => write!(f, "info address {}", symbol.node),
            Command::InfoSymbols { pattern, limit } => {
                quoted(f, "info symbols", Some(&pattern.node))?;
                clause(f, "limit", *limit)
            }
            Command::InfoModules => f.write_str("info modules"),
            Command::InfoLine(address) => match address.node.to_string() {
                // The first star would be taken for gdb's.
                read if read.starts_with('*') => write!(f, "info line *{read}"),
                address => write!(f, "info line {address}"),
            },
            Command::Translate { range, limit } => {
                write!(f, "translate {}", range.node)?;
                clause(f, "limit", limit.as_ref())
            }
            Command::Region { address, full: all } => {
                write!(f, "region {}", address.node)?;
                full(f, *all)
            }
            Command::Regions {
                filter,
                by,
                full: all,
            } => {
                f.write_str("regions")?;
                clause(f, "where", filter.as_ref().map(|filter| &filter.node))?;
                clause(f, "by", by.map(|by| spelled(REGION_ORDERS, &by)))?;
                full(f, *all)
            }
            Command::Walk {
                range,
                filter,
                by,
                limit,
            } => {
                write!(f, "walk {}", range.node)?;
                clause(f, "where", filter.as_ref().map(|filter| &filter.node))?;
                clause(f, "by", by.map(|by| spelled(GROUP_KEYS, &by)))?;
                clause(f, "limit", *limit)
            }
            Command::Explain { address } => write!(f, "explain {}", address.node),
            Command::Flags { place } => write!(f, "flags {}", place.node),
            Command::Who { place, limit } => {
                write!(f, "who {}", place.node)?;
                clause(f, "limit", *limit)
            }
            Command::Summary(Summarized::Process) => f.write_str("summary"),
            Command::Summary(Summarized::Frames) => f.write_str("summary frames"),
            Command::Summary(Summarized::Range(range)) => match &range.node {
                Range::Expression(Expression::Name(Name(name))) if name == "frames" => {
                    f.write_str("summary 'frames'")
                }
                range => write!(f, "summary {range}"),
            },
            Command::How(command) => {
                let text = command.to_string();
                match text.split_once(' ') {
                    Some((name, arguments)) => write!(f, "{name} --how {arguments}"),
                    None => write!(f, "{text} --how"),
                }
            }
            Command::Decode { value, reading } => {
                write!(f, "decode {}", value.node)?;
                clause(f, "as", reading.map(|reading| spelled(READINGS, &reading)))
            }
            Command::Watch {
                range,
                every,
                duration,
                count,
                until,
                with,
            } => {
                write!(f, "watch {}", range.node)?;
                clause(f, "every", every.map(time))?;
                clause(f, "for", duration.map(time))?;
                clause(f, "count", *count)?;
                if let Some(Until { of, filter }) = until {
                    let of = match of {
                        Quantifier::Any => "",
                        Quantifier::All => "all ",
                        Quantifier::None => "none ",
                    };
                    write!(f, " until {of}{}", filter.node)?;
                }
                let kinds: Vec<&str> = with.iter().map(|kind| spelled(ON_REQUEST, kind)).collect();
                clause(f, "with", (!kinds.is_empty()).then(|| kinds.join(", ")))
            }
            Command::Print { format, value } => {
                let format = *format;
                let layout = Layout {
                    format,
                    ..Layout::default()
                };
                write!(f, "print{layout} {}", value.node)
            }
            Command::Examine {
                layout,
                fault,
                address,
            } => {
                write!(f, "x{layout}")?;
                f.write_str(if *fault { " --fault" } else { "" })?;
                match address {
                    Some(address) => write!(f, " {}", address.node),
                    None => Ok(()),
                }
            }
            Command::Find {
                layout,
                range,
                patterns,
            } => {
                write!(f, "find{layout} {}", range.node)?;
                patterns
                    .iter()
                    .try_for_each(|pattern| write!(f, ", {}", pattern.node))
            }
            Command::Telescope { address, count } => {
                write!(f, "telescope {}", address.node)?;
                count.map_or(Ok(()), |count| write!(f, " {count}"))
            }
            Command::Set(assignment) => write!(f, "set {assignment}"),
            Command::Show(Shown::All) => f.write_str("show"),
            Command::Show(Shown::Setting(setting)) => write!(f, "show {}", setting.name()),
            Command::Show(Shown::Convenience) => f.write_str("show convenience"),
            Command::Echo(text) => quoted(f, "echo", (!text.is_empty()).then_some(text)),
            Command::Source { path, arguments } => {
                quoted(f, "source", Some(&path.node))?;
                arguments
                    .iter()
                    .try_for_each(|argument| write!(f, " {}", argument.node.text))
            }
            Command::Assert { condition, message } => {
                write!(f, "assert {}", condition.node)?;
                message
                    .as_ref()
                    .map_or(Ok(()), |message| write!(f, ", {}", escape('"', message)))
            }
            Command::Alias { name, text } => {
                write!(f, "alias {} = {}", name.node, escape('"', &text.node))
            }
            Command::History { limit } => {
                f.write_str("history")?;
                limit.map_or(Ok(()), |limit| write!(f, " {limit}"))
            }
            Command::Help { topic } => {
                quoted(f, "help", topic.as_ref().map(|topic| topic.node.as_str()))
            }
            Command::Apropos(regex) => quoted(f, "apropos", Some(&regex.node)),
            Command::Quit { status } => {
                f.write_str("quit")?;
                status
                    .as_ref()
                    .map_or(Ok(()), |status| write!(f, " {}", status.node))
            }
        }
    }
}

/// A command and its text in quotes.
fn quoted(f: &mut Formatter<'_>, name: &str, text: Option<&str>) -> fmt::Result {
    f.write_str(name)?;
    text.map_or(Ok(()), |text| write!(f, " {}", escape('"', text)))
}

impl Display for TargetName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TargetName::Id(id) => write!(f, "{id}"),
            TargetName::Name(name) => f.write_str(&escape('"', name)),
            TargetName::Itself => f.write_str("self"),
        }
    }
}

impl Display for Assignment {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Assignment::Variable { name, value } => write!(f, "${} = {}", name.node, value.node),
            Assignment::Setting { setting, value } => write!(f, "{} {value}", setting.name()),
        }
    }
}

impl Display for SettingValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            SettingValue::Switch(on) => f.write_str(spelled(SWITCH, on)),
            SettingValue::Number(number) => write!(f, "{number}"),
            SettingValue::Color(choice) => f.write_str(spelled(COLOR_CHOICES, choice)),
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
        if *self == Layout::default() {
            return Ok(());
        }
        f.write_str(if self.backward { "/-" } else { "/" })?;
        self.count.map_or(Ok(()), |count| write!(f, "{count}"))?;
        f.write_str(self.format.map_or("", Format::letter))?;
        let unit = self.unit.map(|unit| spelled(UNITS, &unit));
        f.write_str(unit.unwrap_or_default())
    }
}

impl Display for Pattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Value(value) => {
                let text = value.to_string();
                // Behind a comma a plus would begin a length.
                match text.starts_with('+') {
                    true => write!(f, "({text})"),
                    false => f.write_str(&text),
                }
            }
            Pattern::Bytes(bytes) => {
                f.write_str("hex\"")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("\"")
            }
        }
    }
}
