//! Groups of pages and of frames: their keys, names and rows.

use super::Error;
use super::cut::{Cut, say_cut};
use crate::inspect::{self, GroupBy, GroupKey as Key, InZone, Keys, OfFrame};
use crate::kernel::words::worded;
use crate::kernel::{PageSize, Region};
use crate::lang::Which;
use crate::process::Machine;
use crate::render::Sink;
use crate::report::{Group, Reason, Stopped, Why};
use std::cmp::Reverse;

worded! {
    /// What `walk … by KEY` groups pages by.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum GroupKey, word {
        /// The state: present, swapped, guard, …
        State = "state",
        /// The kind: anonymous, file, shmem, …
        Kind = "kind",
        /// The set of page flags.
        Flags = "flags",
        /// The region.
        Region = "region",
        /// The run of physically consecutive frames.
        Run = "run",
        /// The order of the folio.
        Order = "order",
        /// The NUMA node.
        Node = "node",
        /// The memory zone.
        Zone = "zone",
        /// The memory cgroup.
        Cgroup = "cgroup",
        /// Mapped by one PMD as a huge page, or not.
        PmdMapped = "pmd_mapped",
        /// The number of mappings of the frame.
        MapCount = "mapcount",
        /// Mapped only here, or not.
        Exclusive = "exclusive",
        /// The symbol in which the page begins.
        Symbol = "symbol",
    }
}

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
    let refused = |message: &str| Error::refused(message, "write `walk RANGE by region, state`");
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

/// A row for each of the groups `by` these keys, as many as are wanted, and a note of the others.
pub(super) fn emit(
    by: &[GroupKey],
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
    let mut words = by.iter().map(|key| key.word());
    let (by, second_by) = (words.next().unwrap_or_default(), words.next());
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
        sink.emit(&Group { by, key, second_by, second_key, pages, bytes: pages.saturating_mul(size.bytes()), why })?;
    }
    say_cut(groups.len().saturating_sub(shown), "group", sink)
}

/// The name of a group `by region`, here and in `watch` and `diff`.
pub(super) fn region(region: &Region) -> String {
    let name = format!("{} {} {}", region.range, region.permissions, region.name);
    name.trim_end().to_owned()
}

/// The name of a group, and why its pages may not belong to it. Names of regions and symbols need an address space: for
/// these keys this is the name for pages in none.
pub(super) fn name(machine: &Machine, key: Key) -> (String, Why) {
    let changed = Reason::Changed;
    let is_or_not = |is: bool, word: &str| if is { word.to_owned() } else { format!("not {word}") };
    match key {
        Key::State(states) => (states.likeliest().word().to_owned(), states.why("state")),
        Key::Kind(Some(kind), _) => plain(kind.word()),
        Key::Kind(None, states) => {
            let why = states.map_or_else(Why::default, |states| states.why("kind"));
            ("unknown".to_owned(), why)
        }
        Key::Region(_) => plain("in no region"),
        Key::Symbol(_) => plain("no symbol"),
        Key::Flags(raw) => of_frame("flags", raw, changed, |_| match key.flags().unwrap_or_default().names() {
            names if names.is_empty() => "none set".to_owned(),
            names => names.join(","),
        }),
        Key::Order(order) => of_frame("order", order, changed, |order| order.to_string()),
        Key::Node(OfFrame::Unknown) | Key::Zone(OfFrame::Unknown) => plain("in no zone"),
        Key::Node(node) => of_frame("node", node, changed, |node| node.to_string()),
        Key::Zone(zone) => of_frame("zone", zone, changed, |zone| zone_name(machine, zone)),
        Key::Cgroup(OfFrame::Is(0)) => plain("charged to none"),
        Key::Cgroup(OfFrame::Is(inode)) => match inspect::cgroup_path(machine, inode) {
            Ok(path) => plain(&path.to_string()),
            Err(reason) => (format!("inode {inode}"), because("cgroup", reason)),
        },
        Key::Cgroup(inode) => of_frame("cgroup", inode, changed, |inode| inode.to_string()),
        Key::MapCount(count) => of_frame("mapcount", count, changed, |count| match count {
            (count, true) => format!("~{count}"),
            (count, false) => count.to_string(),
        }),
        Key::PmdMapped(is) => of_frame("pmd_mapped", is, inspect::no_scan(), |is| is_or_not(is, "pmd_mapped")),
        Key::Exclusive(is) => of_frame("exclusive", is, inspect::no_scan(), |is| is_or_not(is, "exclusive")),
    }
}

fn plain(name: &str) -> (String, Why) {
    (name.to_owned(), Why::default())
}

/// The name of a group by a fact about frames, or why it is unknown: `reason` if there is a frame.
fn of_frame<T>(field: &'static str, fact: OfFrame<T>, reason: Reason, name: impl FnOnce(T) -> String) -> (String, Why) {
    match fact {
        OfFrame::Is(fact) => plain(&name(fact)),
        OfFrame::Unknown => ("unknown".to_owned(), because(field, reason)),
        OfFrame::Hidden => {
            let reason = "the page map does not show the frames of device mappings (VM_PFNMAP)".to_owned();
            let why = because(field, Reason::NotOnThisKernel(reason));
            ("hidden".to_owned(), why)
        }
        OfFrame::None => plain("no frame"),
    }
}

/// One reason.
fn because(field: &'static str, reason: Reason) -> Why {
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
    if zones.iter().all(|other| other.node == zone.node) {
        name.to_owned()
    } else {
        format!("{name} of node {}", zone.node)
    }
}
