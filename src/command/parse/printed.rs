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

fn quoted(f: &mut Formatter<'_>, name: &str, text: Option<&str>) -> fmt::Result {
    f.write_str(name)?;
    written::quoted(f, text)
}
