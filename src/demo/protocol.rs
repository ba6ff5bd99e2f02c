//! What the demonstration process says on its standard output while it sets up: a line each, ending with `ready`.

use crate::kernel::{AddressRange, VirtualAddress};
use std::fmt;

/// A stretch of memory that the demonstration process has set up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Area {
    /// A short name that can be the name of a variable: `huge`.
    pub name: String,
    /// Where it is.
    pub range: AddressRange,
    /// What was done there, in a sentence without the full stop.
    pub sentence: String,
}

/// A line of the demonstration process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Announcement {
    /// An area that was set up.
    Area(Area),
    /// The child that was forked.
    Child(u32),
    /// Everything is as it was announced.
    Ready,
    /// The areas could not be set up, and why.
    Failed(String),
}

impl fmt::Display for Announcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Announcement::Area(area) => {
                write!(f, "area {} {:#x} {} {}", area.name, area.range.start().get(), area.range.len(), area.sentence)
            }
            Announcement::Child(pid) => write!(f, "child {pid}"),
            Announcement::Ready => f.write_str("ready"),
            Announcement::Failed(what) => write!(f, "failed {}", what.replace('\n', " ")),
        }
    }
}

impl Announcement {
    /// Reads a line back; `None` if it is none of these.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "area" => {
                let mut fields = rest.splitn(4, ' ');
                let name = fields.next()?.to_owned();
                let start = u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok()?;
                let length = fields.next()?.parse().ok()?;
                let sentence = fields.next()?.to_owned();
                let start = VirtualAddress::new(start);
                let range = AddressRange::new(start, start.checked_add(length)?)?;
                Some(Announcement::Area(Area { name, range, sentence }))
            }
            "child" => rest.parse().ok().map(Announcement::Child),
            "ready" if rest.is_empty() => Some(Announcement::Ready),
            "failed" => Some(Announcement::Failed(rest.to_owned())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_parse_back() {
        let start = VirtualAddress::new(0x7f00_0000_0000);
        let end = VirtualAddress::new(0x7f00_0001_0000);
        let said = [
            Announcement::Area(Area {
                name: "huge".to_owned(),
                range: AddressRange::new(start, end).expect("a range"),
                sentence: "one huge page, and more words".to_owned(),
            }),
            Announcement::Child(4711),
            Announcement::Ready,
            Announcement::Failed("mmap: out of memory".to_owned()),
        ];
        for announcement in said {
            let line = announcement.to_string();
            assert_eq!(Announcement::parse(&line), Some(announcement), "{line}");
        }
    }

    #[test]
    fn other_lines_are_no_announcements() {
        let lines = [
            "",
            "area",
            "area a 0x1000 4096",
            "area a 4096 4096 decimal start",
            "area a 0xffffffffffffffff 4096 past the end",
            "child",
            "child -1",
            "ready now",
            "hello",
        ];
        for line in lines {
            assert_eq!(Announcement::parse(line), None, "{line}");
        }
    }
}
