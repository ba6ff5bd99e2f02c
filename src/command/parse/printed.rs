//! Prints a command as a line that parses to the same.

use super::*;
use crate::lang::display as written;
use crate::lang::{Expression, Name, Range, escape};
use std::fmt::{self, Formatter};

impl Command {
    pub(super) fn written(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Command::Attach(target) => write!(f, "attach {}", target.node),
            Command::Ps(Ps { filter, by, cut }) => {
                quoted(f, "ps", filter.as_ref().map(|filter| filter.node.as_str()))?;
                written::clause(f, "by", by.map(|by| by.word()))?;
                written::cut(f, cut.as_ref())
            }
            Command::InfoProcess => f.write_str("info process"),
            Command::InfoCapabilities => f.write_str("info capabilities"),
            Command::InfoSymbol(address) => write!(f, "info symbol {}", address.node),
            Command::InfoAddress(symbol) => write!(f, "info address {}", symbol.node),
            Command::InfoSymbols { pattern, cut } => {
                quoted(f, "info symbols", Some(&pattern.node))?;
                written::cut(f, cut.as_ref())
            }
            Command::InfoModules => f.write_str("info modules"),
            Command::InfoThreads => f.write_str("info threads"),
            Command::InfoRegisters => f.write_str("info registers"),
            Command::InfoLine(address) => match address.node.to_string() {
                // The first star would be taken for gdb's.
                read if read.starts_with('*') => write!(f, "info line *{read}"),
                address => write!(f, "info line {address}"),
            },
            Command::Region { address, full: all } => {
                write!(f, "region {}", address.node)?;
                written::word_if(f, *all, "full")
            }
            Command::Regions(Regions { name, filter, by, cut, full: all }) => {
                quoted(f, "regions", name.as_ref().map(|name| name.node.as_str()))?;
                written::clause(f, "where", filter.as_ref().map(|filter| &filter.node))?;
                written::clause(f, "by", by.map(|by| by.word()))?;
                written::cut(f, cut.as_ref())?;
                written::word_if(f, *all, "full")
            }
            Command::Walk(Walk { range, filter, by, cut }) => {
                write!(f, "walk {}", range.node)?;
                written::clause(f, "where", filter.as_ref().map(|filter| &filter.node))?;
                let keys: Vec<&str> = by.iter().map(|key| key.word()).collect();
                written::clause(f, "by", (!keys.is_empty()).then(|| keys.join(", ")))?;
                written::cut(f, cut.as_ref())
            }
            Command::Explain(address) => write!(f, "explain {}", address.node),
            Command::Flags(place) => write!(f, "flags {}", place.node),
            Command::Who { place, limit } => {
                write!(f, "who {}", place.node)?;
                written::clause(f, "limit", limit.as_ref().map(|limit| &limit.node))
            }
            Command::Summary(Summarized::Process) => f.write_str("summary"),
            Command::Summary(Summarized::Frames) => f.write_str("summary frames"),
            Command::Summary(Summarized::Range(range)) => match &range.node {
                Range::Expression(Expression::Name(Name(name))) if name == "frames" => f.write_str("summary 'frames'"),
                range => write!(f, "summary {range}"),
            },
            Command::Decode { value, reading } => {
                write!(f, "decode {}", value.node)?;
                written::clause(f, "as", reading.map(|reading| reading.word()))
            }
            Command::Watch(Watch { range, by, every, duration, count, until, with, is_timeline }) => {
                write!(f, "watch {}", range.node)?;
                written::clause(f, "every", every.as_ref().map(|time| &time.node))?;
                written::clause(f, "for", duration.as_ref().map(|time| &time.node))?;
                written::clause(f, "count", count.as_ref().map(|count| &count.node))?;
                if let Some(Until { of, filter }) = until {
                    let of = match of {
                        Quantifier::Any => "",
                        Quantifier::All => "all ",
                        Quantifier::None => "none ",
                    };
                    write!(f, " until {of}{}", filter.node)?;
                }
                let kinds: Vec<&str> = with.iter().map(|kind| kind.word()).collect();
                written::clause(f, "with", (!kinds.is_empty()).then(|| kinds.join(", ")))?;
                written::clause(f, "as", is_timeline.then_some("timeline"))?;
                written::clause(f, "by", by.map(|by| by.word()))
            }
            Command::Snapshot(Snapshot { name, range, with }) => {
                f.write_str("snapshot")?;
                if let Some(name) = name {
                    write!(f, " {}", name.node)?;
                }
                written::clause(f, "in", range.as_ref().map(|range| &range.node))?;
                let kept: Vec<&str> = with.iter().map(|kept| kept.word()).collect();
                written::clause(f, "with", (!kept.is_empty()).then(|| kept.join(", ")))
            }
            Command::SnapshotDelete(name) => write!(f, "snapshot delete {}", name.node),
            Command::InfoSnapshots => f.write_str("info snapshots"),
            Command::Diff(diff) => {
                let Diff { from, to, range, filter, by, cut } = &**diff;
                f.write_str("diff")?;
                for name in [from, to].into_iter().flatten() {
                    write!(f, " {}", name.node)?;
                }
                written::clause(f, "in", range.as_ref().map(|range| &range.node))?;
                written::clause(f, "where", filter.as_ref().map(|filter| &filter.node))?;
                written::clause(f, "by", by.map(|by| by.word()))?;
                written::cut(f, cut.as_ref())
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
                written::clause(f, "in", range.as_ref().map(|range| &range.node))?;
                written::clause(f, "by", by.map(|by| by.word()))?;
                written::cut(f, cut.as_ref())
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
            Command::Examine(Examine { layout, fault, address }) => {
                write!(f, "x{}", layout)?;
                f.write_str(if *fault { " --fault" } else { "" })?;
                match address {
                    Some(address) => write!(f, " {}", address.node),
                    None => Ok(()),
                }
            }
            Command::Find(Find { layout, range, patterns, filter }) => {
                write!(f, "find{} {}", layout, range.node)?;
                patterns.iter().try_for_each(|pattern| write!(f, ", {}", pattern.node))?;
                written::clause(f, "where", filter.as_ref().map(|filter| &filter.node))
            }
            Command::Patched(None) => f.write_str("patched"),
            Command::Patched(Some(range)) => write!(f, "patched {}", range.node),
            Command::Telescope { address, count } => {
                write!(f, "telescope {}", address.node)?;
                count.map_or(Ok(()), |count| write!(f, " {count}"))
            }
        }
    }
}

impl fmt::Display for TargetName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TargetName::Id(id) => write!(f, "{id}"),
            TargetName::Name(name) => f.write_str(&escape('"', name)),
            TargetName::Itself => f.write_str("self"),
            TargetName::Variable(name) => write!(f, "${name}"),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
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

fn quoted(f: &mut Formatter<'_>, name: &str, text: Option<&str>) -> fmt::Result {
    f.write_str(name)?;
    written::quoted(f, text)
}
