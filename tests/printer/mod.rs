//! Prints a syntax tree as a line that parses to the same tree: so tests check that the tree has all that the line had.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use pmdb::lang::commands::is_displayed;
use pmdb::lang::{
    self, Account, Assignment, Command, Compare, Compared, Control, Count, Cut, Diff, Displayed, Examine, Expression,
    Find, Format, Layout, Line, Name, Opening, Output, Pattern, Ps, Quantifier, Range, Regions, Rows, Shown, Snapshot,
    SoftDirty, Summarized, TargetName, Time, Until, Walk, Watch, escape,
};

/// The line of a tree.
pub fn printed(line: &Line) -> String {
    Printed(line).to_string()
}

/// A part of the tree that only tests print.
struct Printed<'a, T>(&'a T);

/// " KEYWORD VALUE", or nothing.
fn clause(f: &mut Formatter<'_>, keyword: &str, value: Option<impl Display>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, " {keyword} {value}"))
}

/// " full", or nothing.
fn full(f: &mut Formatter<'_>, full: bool) -> fmt::Result {
    f.write_str(if full { " full" } else { "" })
}

impl Display for Printed<'_, Line> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Line::Empty => Ok(()),
            Line::Comment => f.write_str("#"),
            Line::Shell(text) => write!(f, "!{text}"),
            Line::Command { command, output } => {
                write!(f, "{}{}", Printed(&command.node), Printed(output))
            }
            Line::Control(control) => Printed(control.as_ref()).fmt(f),
        }
    }
}

impl Display for Printed<'_, Control> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Control::Open(Opening::If(condition)) => write!(f, "if {}", condition.node),
            Control::Else => f.write_str("else"),
            Control::End => f.write_str("end"),
            Control::Open(Opening::While(condition)) => write!(f, "while {}", condition.node),
            Control::Break => f.write_str("loop_break"),
            Control::Continue => f.write_str("loop_continue"),
            Control::Open(Opening::Foreach { variable, rows }) => {
                write!(f, "foreach ${} in ", variable.node)?;
                match rows {
                    Rows::Of(command) => Printed(&command.node).fmt(f),
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

impl Display for Printed<'_, Output> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Output::Screen => Ok(()),
            Output::Pipe(text) => write!(f, " | {}", text.node),
            Output::File { path, append } => {
                write!(f, " {} {}", if *append { ">>" } else { ">" }, escape('"', &path.node))
            }
        }
    }
}

impl Display for Printed<'_, Command> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Command::Attach(target) => write!(f, "attach {}", Printed(&target.node)),
            Command::Detach => f.write_str("detach"),
            Command::Ps(Ps { filter, by, cut }) => {
                quoted(f, "ps", filter.as_ref().map(|filter| filter.node.as_str()))?;
                clause(f, "by", by.map(|by| by.word()))?;
                rows(f, cut.as_ref())
            }
            Command::InfoProcess => f.write_str("info process"),
            Command::InfoCapabilities => f.write_str("info capabilities"),
            Command::InfoSymbol(address) => write!(f, "info symbol {}", address.node),
            Command::InfoAddress(symbol) => write!(f, "info address {}", symbol.node),
            Command::InfoSymbols { pattern, cut } => {
                quoted(f, "info symbols", Some(&pattern.node))?;
                rows(f, cut.as_ref())
            }
            Command::InfoModules => f.write_str("info modules"),
            Command::Map { range, filter } => {
                f.write_str("map")?;
                if let Some(range) = range {
                    write!(f, " {}", range.node)?;
                }
                clause(f, "where", filter.as_ref().map(|filter| &filter.node))
            }
            Command::InfoThreads => f.write_str("info threads"),
            Command::InfoRegisters => f.write_str("info registers"),
            Command::InfoLine(address) => match address.node.to_string() {
                // The first star would be taken for gdb's.
                read if read.starts_with('*') => write!(f, "info line *{read}"),
                address => write!(f, "info line {address}"),
            },
            Command::Translate { range, cut } => {
                write!(f, "translate {}", range.node)?;
                rows(f, cut.as_ref())
            }
            Command::Region { address, full: all } => {
                write!(f, "region {}", address.node)?;
                full(f, *all)
            }
            Command::Regions(Regions { name, filter, by, cut, full: all }) => {
                quoted(f, "regions", name.as_ref().map(|name| name.node.as_str()))?;
                clause(f, "where", filter.as_ref().map(|filter| &filter.node))?;
                clause(f, "by", by.map(|by| by.word()))?;
                rows(f, cut.as_ref())?;
                full(f, *all)
            }
            Command::Walk(Walk { range, filter, by, cut }) => {
                write!(f, "walk {}", range.node)?;
                clause(f, "where", filter.as_ref().map(|filter| &filter.node))?;
                let keys: Vec<&str> = by.iter().map(|key| key.word()).collect();
                clause(f, "by", (!keys.is_empty()).then(|| keys.join(", ")))?;
                rows(f, cut.as_ref())
            }
            Command::Explain(address) => write!(f, "explain {}", address.node),
            Command::Flags(place) => write!(f, "flags {}", place.node),
            Command::Who { place, limit } => {
                write!(f, "who {}", place.node)?;
                clause(f, "limit", limit.as_ref().map(|limit| Printed(&limit.node)))
            }
            Command::Summary(Summarized::Process) => f.write_str("summary"),
            Command::Summary(Summarized::Frames) => f.write_str("summary frames"),
            Command::Summary(Summarized::Range(range)) => match &range.node {
                Range::Expression(Expression::Name(Name(name))) if name == "frames" => f.write_str("summary 'frames'"),
                range => write!(f, "summary {range}"),
            },
            Command::How(command) => {
                let text = Printed(command.as_ref()).to_string();
                match text.split_once(' ') {
                    Some((name, arguments)) => write!(f, "{name} --how {arguments}"),
                    None => write!(f, "{text} --how"),
                }
            }
            Command::Decode { value, reading } => {
                write!(f, "decode {}", value.node)?;
                clause(f, "as", reading.map(|reading| reading.word()))
            }
            Command::Watch(Watch { range, by, every, duration, count, until, with, is_timeline }) => {
                write!(f, "watch {}", range.node)?;
                clause(f, "every", every.as_ref().map(|time| Printed(&time.node)))?;
                clause(f, "for", duration.as_ref().map(|time| Printed(&time.node)))?;
                clause(f, "count", count.as_ref().map(|count| Printed(&count.node)))?;
                if let Some(Until { of, filter }) = until {
                    let of = match of {
                        Quantifier::Any => "",
                        Quantifier::All => "all ",
                        Quantifier::None => "none ",
                    };
                    write!(f, " until {of}{}", filter.node)?;
                }
                let kinds: Vec<&str> = with.iter().map(|kind| kind.word()).collect();
                clause(f, "with", (!kinds.is_empty()).then(|| kinds.join(", ")))?;
                clause(f, "as", is_timeline.then_some("timeline"))?;
                clause(f, "by", by.map(|by| by.word()))
            }
            Command::Snapshot(Snapshot { name, range, with }) => {
                f.write_str("snapshot")?;
                if let Some(name) = name {
                    write!(f, " {}", name.node)?;
                }
                clause(f, "in", range.as_ref().map(|range| &range.node))?;
                let kept: Vec<&str> = with.iter().map(|kept| kept.word()).collect();
                clause(f, "with", (!kept.is_empty()).then(|| kept.join(", ")))
            }
            Command::SnapshotDelete(name) => write!(f, "snapshot delete {}", name.node),
            Command::InfoSnapshots => f.write_str("info snapshots"),
            Command::Diff(diff) => {
                let Diff { from, to, range, filter, by, cut } = &**diff;
                f.write_str("diff")?;
                for name in [from, to].into_iter().flatten() {
                    write!(f, " {}", name.node)?;
                }
                clause(f, "in", range.as_ref().map(|range| &range.node))?;
                clause(f, "where", filter.as_ref().map(|filter| &filter.node))?;
                clause(f, "by", by.map(|by| by.word()))?;
                rows(f, cut.as_ref())
            }
            Command::Account(Account { range, by, content, cut }) => {
                f.write_str("account")?;
                if let Some(range) = range {
                    write!(f, " {}", range.node)?;
                }
                clause(f, "by", by.map(|by| by.word()))?;
                if *content {
                    f.write_str(" with content")?;
                }
                rows(f, cut.as_ref())
            }
            Command::Compare(Compare { with, range, by, cut }) => {
                f.write_str("compare")?;
                match with {
                    Compared::Children => f.write_str(" children")?,
                    Compared::Processes(processes) => {
                        for process in processes {
                            write!(f, " {}", process.node)?;
                        }
                    }
                }
                clause(f, "in", range.as_ref().map(|range| &range.node))?;
                clause(f, "by", by.map(|by| by.word()))?;
                rows(f, cut.as_ref())
            }
            Command::SoftDirty(SoftDirty::Clear { yes }) => {
                let yes = if *yes { " --yes" } else { "" };
                write!(f, "soft-dirty clear{yes}")
            }
            Command::SoftDirty(SoftDirty::Written(None)) => f.write_str("soft-dirty"),
            Command::SoftDirty(SoftDirty::Written(Some(range))) => match &range.node {
                Range::Expression(Expression::Name(Name(name))) if name == "clear" => f.write_str("soft-dirty 'clear'"),
                range => write!(f, "soft-dirty {range}"),
            },
            Command::Print { format, value } => {
                write!(f, "print{} {}", Printed(&of_format(*format)), value.node)
            }
            Command::Examine(Examine { layout, fault, address }) => {
                write!(f, "x{}", Printed(layout))?;
                f.write_str(if *fault { " --fault" } else { "" })?;
                match address {
                    Some(address) => write!(f, " {}", address.node),
                    None => Ok(()),
                }
            }
            Command::Find(Find { layout, range, patterns, filter }) => {
                write!(f, "find{} {}", Printed(layout), range.node)?;
                patterns.iter().try_for_each(|pattern| write!(f, ", {}", Printed(&pattern.node)))?;
                clause(f, "where", filter.as_ref().map(|filter| &filter.node))
            }
            Command::Patched(None) => f.write_str("patched"),
            Command::Patched(Some(range)) => write!(f, "patched {}", range.node),
            Command::Telescope { address, count } => {
                write!(f, "telescope {}", address.node)?;
                count.map_or(Ok(()), |count| write!(f, " {count}"))
            }
            Command::Set(assignment) => write!(f, "set {}", Printed(assignment)),
            Command::Show(Shown::All) => f.write_str("show"),
            Command::Show(Shown::Setting(setting)) => write!(f, "show {}", setting.name()),
            Command::Show(Shown::Convenience) => f.write_str("show convenience"),
            Command::Show(Shown::Version) => f.write_str("show version"),
            Command::Show(Shown::Logging) => f.write_str("show logging"),
            Command::Printf { format, values } => {
                write!(f, "printf {}", escape('"', &format.node))?;
                values.iter().try_for_each(|value| write!(f, ", {}", value.node))
            }
            Command::Output { format, value } => {
                write!(f, "output{} {}", Printed(&of_format(*format)), value.node)
            }
            Command::Display(lang::Display { what, every, count }) => {
                f.write_str("display")?;
                match what {
                    None => {}
                    Some(Displayed::Command { command, .. }) => {
                        write!(f, " {}", Printed(&command.node))?;
                    }
                    Some(Displayed::Value { layout, value }) => {
                        let value = no_command(&value.node.to_string());
                        write!(f, "{} {value}", Printed(layout))?;
                    }
                }
                clause(f, "every", every.as_ref().map(|time| Printed(&time.node)))?;
                clause(f, "count", count.as_ref().map(|count| Printed(&count.node)))
            }
            Command::Undisplay(numbers) => {
                f.write_str("undisplay")?;
                numbers.iter().try_for_each(|number| write!(f, " {number}"))
            }
            Command::InfoDisplay => f.write_str("info display"),
            Command::Echo(text) => quoted(f, "echo", (!text.is_empty()).then_some(text)),
            Command::Source { path, arguments } => {
                quoted(f, "source", Some(&path.node))?;
                arguments.iter().try_for_each(|argument| write!(f, " {}", argument.node.text))
            }
            Command::Assert { condition, message } => {
                write!(f, "assert {}", condition.node)?;
                message.as_ref().map_or(Ok(()), |message| write!(f, ", {}", escape('"', message)))
            }
            Command::Alias { name, text } => {
                write!(f, "alias {} = {}", name.node, escape('"', &text.node))
            }
            Command::History(limit) => {
                f.write_str("history")?;
                limit.map_or(Ok(()), |limit| write!(f, " {limit}"))
            }
            Command::Complete(text) => quoted(f, "complete", (!text.is_empty()).then_some(text)),
            Command::Help(topic) => quoted(f, "help", topic.as_ref().map(|topic| topic.node.as_str())),
            Command::Apropos(regex) => quoted(f, "apropos", Some(&regex.node)),
            Command::Quit(status) => {
                f.write_str("quit")?;
                status.as_ref().map_or(Ok(()), |status| write!(f, " {}", status.node))
            }
        }
    }
}

/// A value whose first word `display` would take for a command, with that in quotes.
fn no_command(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '@');
    let (word, rest) = text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()));
    if is_displayed(word) { format!("'{word}'{rest}") } else { text.to_owned() }
}

/// A format without a count and a size.
fn of_format(format: Option<Format>) -> Layout {
    Layout { format, ..Layout::default() }
}

/// " limit N", " top N", or nothing.
fn rows(f: &mut Formatter<'_>, cut: Option<&Cut>) -> fmt::Result {
    cut.map_or(Ok(()), |cut| write!(f, " {} {}", cut.which.word(), Printed(&cut.rows.node)))
}

impl Display for Printed<'_, Count> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Count::Number(number) => write!(f, "{number}"),
            Count::Variable(name) => write!(f, "${name}"),
        }
    }
}

impl Display for Printed<'_, Time> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Time::Duration(duration) => f.write_str(&time(*duration)),
            Time::Variable(name) => write!(f, "${name}"),
        }
    }
}

/// A command and its text in quotes.
fn quoted(f: &mut Formatter<'_>, name: &str, text: Option<&str>) -> fmt::Result {
    f.write_str(name)?;
    text.map_or(Ok(()), |text| write!(f, " {}", escape('"', text)))
}

impl Display for Printed<'_, TargetName> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            TargetName::Id(id) => write!(f, "{id}"),
            TargetName::Name(name) => f.write_str(&escape('"', name)),
            TargetName::Itself => f.write_str("self"),
            TargetName::Variable(name) => write!(f, "${name}"),
        }
    }
}

impl Display for Printed<'_, Assignment> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Assignment::Variable { name, value } => write!(f, "${} = {}", name.node, value.node),
            Assignment::Setting { setting, value } => write!(f, "{} {value}", setting.name()),
            Assignment::LogFile(path) => {
                write!(f, "logging file {}", escape('"', &path.node))
            }
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

impl Display for Printed<'_, Layout> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Printed(layout) = self;
        if **layout == Layout::default() {
            return Ok(());
        }
        f.write_str(if layout.backward { "/-" } else { "/" })?;
        layout.count.map_or(Ok(()), |count| write!(f, "{count}"))?;
        f.write_str(layout.format.map_or("", Format::letter))?;
        let unit = layout.unit.map(|unit| unit.letter());
        f.write_str(unit.unwrap_or_default())
    }
}

impl Display for Printed<'_, Pattern> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Pattern::Value(value) => {
                let text = value.to_string();
                // Behind a comma a plus would begin a length.
                if text.starts_with('+') { write!(f, "({text})") } else { f.write_str(&text) }
            }
            Pattern::Bytes(bytes) => {
                f.write_str("hex\"")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("\"")
            }
        }
    }
}
