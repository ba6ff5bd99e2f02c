//! The memory of a family in groups, by mapping, by region, or by a fact of frames.

use super::super::object_counter::ObjectCounter;
use super::super::objects::ObjectIdentity;
use super::owners::{MappedFrames, OwnedFrame};
use crate::inspect::Result;
use crate::inspect::fact::{Answer, FactReader, Gap};
use crate::inspect::frames::{FrameRow, read_rows};
use crate::inspect::page::{Evidence, InZone};
use crate::inspect::rows::Group;
use crate::kernel::physical::Zones;
use crate::kernel::{FrameNumber, Key, Name, PageField, Region};
use crate::process::Machine;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// The memory of a class, or of a group.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct ClassSum {
    /// The bytes of the different frames.
    pub bytes: u64,
    /// The bytes of all mappings by members: their sum is the Rss of the members.
    pub mapped: u64,
    /// The bytes of frames that other processes map too.
    pub outside: u64,
    /// The bytes of frames for which that is unknown.
    pub unclear: u64,
}

impl ClassSum {
    pub(super) fn add(&mut self, other: ClassSum) {
        self.bytes += other.bytes;
        self.mapped += other.mapped;
        self.outside += other.outside;
        self.unclear += other.unclear;
    }
}

/// The common property of the frames of a group.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum FamilyGroupKey {
    /// An object or a file that regions map, or the name of regions without one.
    Mapping {
        /// The object, if it is known: two objects may have the same name, and one may have two names.
        object: Option<ObjectIdentity>,
        /// The path under which the object was found first, or the name of the regions.
        name: Name,
        /// Whether the file was deleted.
        is_deleted: bool,
        /// Whether it is memory to which only the kernel gives a path.
        is_without_path: bool,
    },
    /// A region of a member.
    Region {
        /// The id of the process.
        pid: u32,
        /// The region.
        region: Region,
    },
    /// The value of a fact of frames.
    Fact(Group),
}

/// The memory of a family with a common property.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FamilyGroup {
    /// The property.
    pub key: FamilyGroupKey,
    /// The sums of the frames.
    pub sum: ClassSum,
    /// The bytes of frames that only one member maps.
    pub in_one: u64,
    /// The members that map a part of the object, by PID, in groups by mapping.
    pub members: Option<Vec<u32>>,
    /// The bytes of frames on each NUMA node, in groups by mapping. Frames of an unknown node are left out.
    pub nodes: BTreeMap<u32, u64>,
}

/// A key by which the memory of several processes can be grouped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FamilyKey {
    /// The file or the object that regions map.
    Mapping,
    /// Each region of each process.
    Region,
    /// The value of a fact of frames.
    Frames(PageField),
}

impl FamilyKey {
    /// Converts a key. Returns `None` for a key by which only one process can be grouped.
    pub fn of(key: Key) -> Option<Self> {
        match key {
            Key::Mapping => Some(FamilyKey::Mapping),
            Key::Region => Some(FamilyKey::Region),
            Key::Page(field) => Some(FamilyKey::Frames(field)),
            _ => None,
        }
    }
}

/// The way in which frames are assigned to groups.
pub(super) enum Grouping {
    /// By the file or object of the region in which the frame was found first.
    Mapping(Mappings),
    /// By the region in which the frame was found first.
    Region(Vec<FamilyGroupKey>),
    /// By a fact that is read once all frames are known.
    Fact { key: Key, reader: FactReader, need: Evidence },
}

/// The identity of an object, and its name if the identity is unknown or ambiguous.
type MappingKey = (Option<ObjectIdentity>, Option<Name>);

/// The groups by mapping.
#[derive(Default)]
pub(super) struct Mappings {
    /// The numbers of the groups. If the IPC namespace of a System V segment is unknown, its number is taken for an
    /// inode number, which a memfd may have too.
    numbers: HashMap<MappingKey, u32>,
    found: Vec<(FamilyGroupKey, BTreeSet<u32>)>,
}

impl Mappings {
    /// Returns the number of the group of a region that a member maps, whose PID this is.
    pub fn number(&mut self, region: &Region, objects: &ObjectCounter, member: u32) -> u32 {
        let object = objects.mapped_by(region);
        let is_named = object.is_none() || region.is_segment();
        let next = self.found.len() as u32;
        let key = (object.clone(), is_named.then(|| region.name.clone()));
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            let (name, is_deleted) = (region.name.clone(), region.is_deleted_file());
            let is_without_path = region.is_without_path();
            let key = FamilyGroupKey::Mapping { object, name, is_deleted, is_without_path };
            self.found.push((key, BTreeSet::new()));
        }
        if let Some((_, members)) = self.found.get_mut(number as usize) {
            members.insert(member);
        }
        number
    }
}

impl Grouping {
    /// Returns the grouping by a key.
    ///
    /// # Errors
    /// Fails if the fact cannot be known for frames.
    pub fn by(key: FamilyKey, machine: &Arc<Machine>) -> Result<Self> {
        let field = match key {
            FamilyKey::Mapping => return Ok(Grouping::Mapping(Mappings::default())),
            FamilyKey::Region => return Ok(Grouping::Region(Vec::new())),
            FamilyKey::Frames(field) => field,
        };
        let key = Key::Page(field);
        let reader = FactReader::of_frames(machine);
        let need = reader.require(field)?.unwrap_or_default();
        Ok(Grouping::Fact { key, reader, need })
    }

    /// Returns the number of the group of a region, given the index and the id of the member; `None` if each frame has
    /// its own group.
    pub fn number(&mut self, region: &Region, objects: &ObjectCounter, pid: u32) -> Option<u32> {
        match self {
            Grouping::Mapping(mappings) => Some(mappings.number(region, objects, pid)),
            Grouping::Region(regions) => {
                // The pages of a region come one after another in a sweep.
                let key = FamilyGroupKey::Region { pid, region: region.clone() };
                if regions.last() != Some(&key) {
                    regions.push(key);
                }
                Some(regions.len() as u32 - 1)
            }
            Grouping::Fact { .. } => None,
        }
    }
}

/// The sums of the frames of a group.
#[derive(Clone, Default)]
struct GroupSum {
    all: ClassSum,
    in_one: u64,
    nodes: BTreeMap<u32, u64>,
}

impl GroupSum {
    /// Adds a frame and its sums.
    fn add(&mut self, frame: OwnedFrame, sum: ClassSum) {
        self.in_one += if frame.owner.is_some() { sum.bytes } else { 0 };
        self.all.add(sum);
    }
}

/// Sums up the frames of each group.
pub(super) struct GroupSums<'a> {
    grouping: &'a Grouping,
    machine: &'a Arc<Machine>,
    sums: BTreeMap<FamilyGroupKey, GroupSum>,
    /// The sums by number of the group, for mappings and regions.
    by_number: Vec<GroupSum>,
    /// Looks up NUMA nodes, for mappings; `None` if the zones are unknown.
    nodes: Option<NodeOfFrames>,
}

/// Looks up the NUMA nodes of frames, mostly in ascending order.
struct NodeOfFrames {
    zones: Arc<Zones>,
    /// The frames for which `node` is valid.
    known: Range<u64>,
    node: Option<u32>,
}

impl NodeOfFrames {
    /// Returns the node of a frame; `None` if zones of several nodes span it, or none.
    fn of(&mut self, frame: u64) -> Option<u32> {
        if !self.known.contains(&frame) {
            let span = self.zones.span_of(FrameNumber::new(frame));
            self.known = frame..span.end.get();
            self.node = InZone::of(&self.zones, span.spanned).map(|zone| zone.node);
        }
        self.node
    }
}

impl<'a> GroupSums<'a> {
    pub fn new(grouping: &'a Grouping, machine: &'a Arc<Machine>) -> Self {
        let numbers = match grouping {
            Grouping::Mapping(mappings) => mappings.found.len(),
            Grouping::Region(regions) => regions.len(),
            Grouping::Fact { .. } => 0,
        };
        let zones = matches!(grouping, Grouping::Mapping(_)).then(|| machine.zones().ok()).flatten();
        let nodes = zones.map(|zones| NodeOfFrames { zones, known: 0..0, node: None });
        GroupSums { grouping, machine, sums: BTreeMap::new(), by_number: vec![Default::default(); numbers], nodes }
    }

    /// Adds frames that were read together. `sum` returns the sums of one frame.
    pub fn add(&mut self, read: &MappedFrames, sum: impl Fn(OwnedFrame, Option<u64>) -> ClassSum) -> Result<()> {
        let Grouping::Fact { key, reader, need } = self.grouping else {
            for &(number, frame, count) in &read.mapped {
                let Some(group) = frame.group.and_then(|group| self.by_number.get_mut(group as usize)) else {
                    continue;
                };
                let sum = sum(frame, count);
                group.add(frame, sum);
                if let Some(node) = self.nodes.as_mut().and_then(|nodes| nodes.of(number)) {
                    *group.nodes.entry(node).or_default() += sum.bytes;
                }
            }
            return Ok(());
        };
        let mut rows = read_rows(self.machine, *need, read.frames.clone())?.into_iter().peekable();
        let end = |row: &FrameRow| row.first.get() + row.frames;
        let mut last: Option<(FrameNumber, Group)> = None;
        for &(number, frame, count) in &read.mapped {
            while rows.next_if(|row| end(row) <= number).is_some() {}
            // Memory may have been taken offline since.
            let group = match (rows.peek(), last) {
                (Some(row), Some((first, group))) if first == row.first => group,
                (Some(row), _) => reader.group(*key, &row.as_page(self.machine), None, None),
                (None, _) => Group::Known(Answer::Unknown(Gap::Hidden)),
            };
            last = rows.peek().map(|row| (row.first, group));
            self.sums.entry(FamilyGroupKey::Fact(group)).or_default().add(frame, sum(frame, count));
        }
        Ok(())
    }

    /// Returns the groups, the largest first.
    pub fn finish(self) -> Vec<FamilyGroup> {
        let mut groups = Vec::new();
        let group =
            |key, members, GroupSum { all: sum, in_one, nodes }| FamilyGroup { key, sum, in_one, members, nodes };
        groups.extend(self.sums.into_iter().map(|(key, sum)| group(key, None, sum)));
        let numbered: Vec<(&FamilyGroupKey, Option<Vec<u32>>)> = match self.grouping {
            Grouping::Mapping(mappings) => {
                mappings.found.iter().map(|(key, members)| (key, Some(members.iter().copied().collect()))).collect()
            }
            Grouping::Region(regions) => regions.iter().map(|key| (key, None)).collect(),
            Grouping::Fact { .. } => Vec::new(),
        };
        let numbered = numbered.into_iter().zip(self.by_number);
        groups.extend(numbered.map(|((key, members), sum)| group(key.clone(), members, sum)));
        groups.retain(|group| group.sum.bytes > 0);
        groups.sort_by(|one, other| other.sum.bytes.cmp(&one.sum.bytes).then_with(|| one.key.cmp(&other.key)));
        groups
    }
}
