//! Groups of pages and of frames: their keys, names and rows.

use super::Error;
use super::cut::{Cut, say_cut};
use super::page_sweep::flags_key;
use crate::inspect::{self, GroupBy, GroupKey as Key, InZone, Keys, OfFrame};
use crate::kernel::PageSize;
use crate::lang::{GroupKey, Which};
use crate::process::Machine;
use crate::report::{Group, Reason, Record, Sink, Stopped, Why};
use std::cmp::Reverse;

/// The grouping of a key; `None` for runs, which are a stream.
fn by(key: GroupKey) -> Option<GroupBy> {
    Some(match key {
        GroupKey::State => GroupBy::State,
        GroupKey::Kind => GroupBy::Kind,
        GroupKey::Flags => GroupBy::Flags,
        GroupKey::Region => GroupBy::Region,
        GroupKey::Order => GroupBy::Order,
        GroupKey::Node => GroupBy::Node,
        GroupKey::Zone => GroupBy::Zone,
        GroupKey::Cgroup => GroupBy::Cgroup,
        GroupKey::PmdMapped => GroupBy::PmdMapped,
        GroupKey::MapCount => GroupBy::MapCount,
        GroupKey::Exclusive => GroupBy::Exclusive,
        GroupKey::Symbol => GroupBy::Symbol,
        GroupKey::Run => return None,
    })
}

/// The grouping of `by KEY` or `by KEY, KEY`.
///
/// # Errors
/// Runs, which are a stream, beside another key; a key twice.
pub(super) fn parted(keys: &[GroupKey]) -> Result<Option<(GroupBy, Option<GroupBy>)>, Error> {
    let refused = |message: &str| Error::refused(message, "walk RANGE by region, state");
    match *keys {
        [one] => Ok(by(one).map(|one| (one, None))),
        [one, other] if one == other => Err(refused("the two keys of `by` are the same")),
        [one, other] => match (by(one), by(other)) {
            (Some(one), Some(other)) => Ok(Some((one, Some(other)))),
            _ => Err(refused("`run` cannot be combined with another key")),
        },
        _ => Ok(None),
    }
}

/// A row for each of the groups, as many as are wanted, and a note of the others.
pub(super) fn emit(
    (by, and): (GroupBy, Option<GroupBy>),
    mut groups: Vec<(Keys, u64)>,
    cut: Option<Cut>,
    size: PageSize,
    name: impl Fn(Key) -> (String, Why),
    sink: &mut dyn Sink,
) -> Result<(), Stopped> {
    if cut.is_some_and(|cut| cut.which == Which::Largest) {
        // Stable: among equals, the first stays first.
        groups.sort_by_key(|&(_, pages)| Reverse(pages));
    }
    let shown = cut.map_or(groups.len(), |cut| cut.rows());
    for &((first, second), pages) in groups.iter().take(shown) {
        let (key, mut why) = name(first);
        let second = second.map(&name);
        let second_key = second.map(|(second, reasons)| {
            for (field, reason) in reasons.iter() {
                why.note(field, reason);
            }
            second
        });
        sink.emit(Record::Group(Group {
            by: word(by),
            key,
            second_by: and.map(word),
            second_key,
            pages,
            bytes: pages.saturating_mul(size.bytes()),
            why,
        }))?;
    }
    say_cut(groups.len().saturating_sub(shown), "group", sink)
}

fn word(by: GroupBy) -> &'static str {
    match by {
        GroupBy::State => "state",
        GroupBy::Kind => "kind",
        GroupBy::Flags => "flags",
        GroupBy::Region => "region",
        GroupBy::Order => "order",
        GroupBy::Node => "node",
        GroupBy::Zone => "zone",
        GroupBy::Cgroup => "cgroup",
        GroupBy::PmdMapped => "pmd_mapped",
        GroupBy::MapCount => "mapcount",
        GroupBy::Exclusive => "exclusive",
        GroupBy::Symbol => "symbol",
    }
}

/// The name of a group, and why its pages may not belong to it. Names of regions and symbols need a view: for these keys this is
/// the name for pages in none.
pub(super) fn name(machine: &Machine, key: Key) -> (String, Why) {
    let unknown = |field, reason: Reason| ("unknown".to_owned(), because(field, reason));
    let name = match key {
        Key::State(states) => {
            return (states.likeliest().word().to_owned(), states.why("state"));
        }
        Key::Kind(Some(kind), _) => kind.word().to_owned(),
        Key::Kind(None, states) => {
            let why = states.map_or_else(Why::default, |states| states.why("kind"));
            return ("unknown".to_owned(), why);
        }
        Key::Region(_) => "in no region".to_owned(),
        Key::Flags(OfFrame::Is(_)) => flags_key(key.flags().unwrap_or_default()),
        Key::Order(OfFrame::Is(order)) => order.to_string(),
        Key::Node(OfFrame::Is(node)) => node.to_string(),
        Key::Zone(OfFrame::Is(zone)) => zone_name(machine, zone),
        Key::PmdMapped(OfFrame::Is(true)) => "pmd_mapped".to_owned(),
        Key::PmdMapped(OfFrame::Is(false)) => "not pmd_mapped".to_owned(),
        Key::MapCount(OfFrame::Is((count, true))) => format!("~{count}"),
        Key::MapCount(OfFrame::Is((count, false))) => count.to_string(),
        Key::Exclusive(OfFrame::Is(true)) => "exclusive".to_owned(),
        Key::Exclusive(OfFrame::Is(false)) => "not exclusive".to_owned(),
        Key::Symbol(_) => "no symbol".to_owned(),
        Key::Cgroup(OfFrame::Is(0)) => "charged to none".to_owned(),
        Key::Cgroup(OfFrame::Is(inode)) => match inspect::cgroup_path(machine, inode) {
            Ok(path) => path.to_string(),
            Err(reason) => return (format!("inode {inode}"), because("cgroup", reason)),
        },
        Key::Node(OfFrame::Untold) | Key::Zone(OfFrame::Untold) => "in no zone".to_owned(),
        Key::Flags(OfFrame::Untold) => return unknown("flags", Reason::Changed),
        Key::Order(OfFrame::Untold) => return unknown("order", Reason::Changed),
        Key::Cgroup(OfFrame::Untold) => return unknown("cgroup", Reason::Changed),
        Key::MapCount(OfFrame::Untold) => return unknown("mapcount", Reason::Changed),
        Key::Exclusive(OfFrame::Untold) => return unknown("exclusive", inspect::no_scan()),
        Key::MapCount(OfFrame::Hidden) => return hidden("mapcount"),
        Key::Exclusive(OfFrame::Hidden) => return hidden("exclusive"),
        Key::MapCount(OfFrame::None) | Key::Exclusive(OfFrame::None) => "no frame".to_owned(),
        Key::PmdMapped(OfFrame::Untold) => return unknown("pmd_mapped", inspect::no_scan()),
        Key::Flags(OfFrame::Hidden) => return hidden("flags"),
        Key::Order(OfFrame::Hidden) => return hidden("order"),
        Key::Node(OfFrame::Hidden) => return hidden("node"),
        Key::Zone(OfFrame::Hidden) => return hidden("zone"),
        Key::Cgroup(OfFrame::Hidden) => return hidden("cgroup"),
        Key::PmdMapped(OfFrame::Hidden) => return hidden("pmd_mapped"),
        Key::Flags(OfFrame::None) | Key::Order(OfFrame::None) | Key::Node(OfFrame::None) => {
            "no frame".to_owned()
        }
        Key::Zone(OfFrame::None) | Key::Cgroup(OfFrame::None) | Key::PmdMapped(OfFrame::None) => {
            "no frame".to_owned()
        }
    };
    (name, Why::default())
}

fn hidden(field: &'static str) -> (String, Why) {
    let reason = "the page map does not show the frames of device mappings (VM_PFNMAP)";
    let why = because(field, Reason::NotOnThisKernel(reason.to_owned()));
    ("hidden".to_owned(), why)
}

/// One reason.
pub(super) fn because(field: &'static str, reason: Reason) -> Why {
    let mut why = Why::default();
    why.note(field, &reason);
    why
}

/// The name of a zone; with its node, where there are several.
fn zone_name(machine: &Machine, zone: InZone) -> String {
    let Ok(zones) = machine.zones() else {
        return String::new();
    };
    let name = zones.get(zone.index).map_or("", |zone| &zone.name);
    match zones.iter().all(|other| other.node == zone.node) {
        true => name.to_owned(),
        false => format!("{name} of node {}", zone.node),
    }
}
