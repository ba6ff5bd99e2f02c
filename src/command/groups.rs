//! Groups of pages and of frames: by what, what they are called, and their rows.

use super::through::flags_key;
use crate::inspect::{self, GroupBy, GroupKey as Key, InZone};
use crate::kernel::{Kind, PageSize};
use crate::lang::GroupKey;
use crate::report::{CgroupPath, Group, Note, Record, Sink, Stopped};
use crate::target::Machine;

/// By what `by KEY` groups; `None` for runs, which are a stream.
pub(super) fn by(key: GroupKey) -> Option<GroupBy> {
    Some(match key {
        GroupKey::State => GroupBy::State,
        GroupKey::Kind => GroupBy::Kind,
        GroupKey::Flags => GroupBy::Flags,
        GroupKey::Region => GroupBy::Region,
        GroupKey::Order => GroupBy::Order,
        GroupKey::Node => GroupBy::Node,
        GroupKey::Zone => GroupBy::Zone,
        GroupKey::Cgroup => GroupBy::Cgroup,
        GroupKey::Run => return None,
    })
}

/// A row for each of the first `limit` groups, and a note of the others.
pub(super) fn emit(
    by: GroupBy,
    groups: &[(Key, u64)],
    limit: Option<u64>,
    size: PageSize,
    name: impl Fn(Key) -> String,
    sink: &mut dyn Sink,
) -> Result<(), Stopped> {
    let shown = limit.map_or(groups.len(), |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    });
    for &(key, pages) in groups.iter().take(shown) {
        sink.emit(Record::Group(Group {
            by: word(by),
            key: name(key),
            pages,
            bytes: pages.saturating_mul(size.bytes()),
        }))?;
    }
    if let Some(more) = groups.len().checked_sub(shown).filter(|&more| more > 0) {
        let message = format!("{more} more groups; the totals are of all of them");
        sink.emit(Record::Note(Note { message }))?;
    }
    Ok(())
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
    }
}

/// What a group is called. Regions are known to a view alone: of them this is what pages in none are called.
pub(super) fn name(machine: &dyn Machine, key: Key) -> String {
    match key {
        Key::State(state) => state.word().to_owned(),
        Key::Kind(kind) => kind.map_or("unknown", Kind::word).to_owned(),
        Key::Flags(Some(_)) => flags_key(key.flags().unwrap_or_default()),
        Key::Order(Some(order)) => order.to_string(),
        Key::Node(Some(node)) => node.to_string(),
        Key::Zone(Some(zone)) => zone_name(machine, zone),
        Key::Cgroup(Some(0)) => "charged to none".to_owned(),
        Key::Cgroup(Some(inode)) => inspect::cgroup_path(machine, inode)
            .unwrap_or(CgroupPath::Gone(inode))
            .to_string(),
        Key::Flags(None) | Key::Order(None) | Key::Node(None) => "no frame".to_owned(),
        Key::Zone(None) | Key::Cgroup(None) => "no frame".to_owned(),
        Key::Region(_) => "in no region".to_owned(),
    }
}

/// The name of a zone; with its node, where there are several.
fn zone_name(machine: &dyn Machine, zone: InZone) -> String {
    let Ok(zones) = machine.zones() else {
        return String::new();
    };
    let name = zones.get(zone.index).map_or("", |zone| &zone.name);
    match zones.iter().all(|other| other.node == zone.node) {
        true => name.to_owned(),
        false => format!("{name} of node {}", zone.node),
    }
}
