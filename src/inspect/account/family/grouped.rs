//! The memory of a family in groups: by what regions map, by region, or by a fact of frames.

use super::super::objects::{ObjectCounter, ObjectIdentity};
use super::owners::{MappedFrames, OwnedFrame};
use crate::inspect::Result;
use crate::inspect::fact::{Answer, FactReader, Gap};
use crate::inspect::frames::{FrameRow, read_rows};
use crate::inspect::page::Evidence;
use crate::inspect::rows::Group;
use crate::kernel::{FrameNumber, Key, Name, PageField, Region};
use crate::process::Machine;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The memory of a class, or of a group.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct ClassSum {
    /// Bytes of different frames.
    pub bytes: u64,
    /// Bytes of their mappings by members, which the Rss of these adds up to.
    pub mapped: u64,
    /// Bytes of frames that other processes map too.
    pub outside: u64,
    /// Bytes of frames of which that is unknown.
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

/// What frames of a group have in common.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum FamilyGroupKey {
    /// An object or a file that regions map, or the name of regions without one.
    Mapping {
        /// Which one, where it is known: two objects may have one name, and one may have two.
        object: Option<ObjectIdentity>,
        /// The path by which it was found first, or the name of the regions.
        name: Name,
        /// Whether the file was deleted.
        is_deleted: bool,
    },
    /// A region of a member.
    Region {
        /// The process.
        pid: u32,
        /// Its region.
        region: Region,
    },
    /// A fact of frames.
    Fact(Group),
}

/// Memory of a family that has something in common.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FamilyGroup {
    /// What that is.
    pub key: FamilyGroupKey,
    /// Its frames.
    pub sum: ClassSum,
    /// Bytes of frames that only one of the members maps.
    pub in_one: u64,
    /// How many members map some of it, for mappings.
    pub members: Option<u64>,
}

/// What the memory of several processes can be grouped by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FamilyKey {
    /// The file or the object that regions map.
    Mapping,
    /// Each region of each process.
    Region,
    /// A fact of frames.
    Frames(PageField),
}

impl FamilyKey {
    /// The same as a key; `None` for those that only one process can be grouped by.
    pub fn of(key: Key) -> Option<Self> {
        match key {
            Key::Mapping => Some(FamilyKey::Mapping),
            Key::Region => Some(FamilyKey::Region),
            Key::Page(field) => Some(FamilyKey::Frames(field)),
            _ => None,
        }
    }
}

/// How frames are put into groups.
pub(super) enum Grouping {
    /// By what the region maps that a frame was found in first.
    Mapping(Mappings),
    /// By that region itself.
    Region(Vec<FamilyGroupKey>),
    /// By what is read of frames when all are known.
    Fact { key: Key, reader: FactReader, need: Evidence },
}

/// Which object it is, and its name where that does not tell.
type MappingKey = (Option<ObjectIdentity>, Option<Name>);

/// The groups by mapping.
#[derive(Default)]
pub(super) struct Mappings {
    /// By object, or by name where there is none. Where the namespace of a System V segment is unknown, its number is
    /// taken for an inode, which a memfd may have too.
    numbers: HashMap<MappingKey, u32>,
    found: Vec<(FamilyGroupKey, BTreeSet<usize>)>,
}

impl Mappings {
    /// The number of the group of a region, which a member maps.
    pub fn number(&mut self, region: &Region, objects: &ObjectCounter, member: usize) -> u32 {
        let object = objects.mapped_by(region);
        let is_named = object.is_none() || region.is_segment();
        let next = self.found.len() as u32;
        let key = (object.clone(), is_named.then(|| region.name.clone()));
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            let (name, is_deleted) = (region.name.clone(), region.is_deleted_file());
            self.found.push((FamilyGroupKey::Mapping { object, name, is_deleted }, BTreeSet::new()));
        }
        if let Some((_, members)) = self.found.get_mut(number as usize) {
            members.insert(member);
        }
        number
    }
}

impl Grouping {
    /// By a key.
    ///
    /// # Errors
    /// The fact cannot be known of frames here.
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

    /// The group of what a member, by its place and its process, maps in a region; `None` if the frames tell.
    pub fn number(&mut self, region: &Region, objects: &ObjectCounter, (member, pid): (usize, u32)) -> Option<u32> {
        match self {
            Grouping::Mapping(mappings) => Some(mappings.number(region, objects, member)),
            Grouping::Region(regions) => {
                // A sweep has the pages of a region one after another.
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

/// The sums of groups as frames come.
pub(super) struct GroupSums<'a> {
    grouping: &'a Grouping,
    machine: &'a Arc<Machine>,
    sums: BTreeMap<FamilyGroupKey, (ClassSum, u64)>,
    /// The sums by number, for mappings and regions.
    by_number: Vec<(ClassSum, u64)>,
}

impl<'a> GroupSums<'a> {
    pub fn new(grouping: &'a Grouping, machine: &'a Arc<Machine>) -> Self {
        let numbers = match grouping {
            Grouping::Mapping(mappings) => mappings.found.len(),
            Grouping::Region(regions) => regions.len(),
            Grouping::Fact { .. } => 0,
        };
        GroupSums { grouping, machine, sums: BTreeMap::new(), by_number: vec![Default::default(); numbers] }
    }

    /// Adds frames that were read together; `sum` is what a frame adds.
    pub fn add(&mut self, read: &MappedFrames, sum: impl Fn(OwnedFrame, Option<u64>) -> ClassSum) -> Result<()> {
        let add = |(all, in_one): &mut (ClassSum, u64), frame: OwnedFrame, count| {
            let sum = sum(frame, count);
            *in_one += if frame.owner.is_some() { sum.bytes } else { 0 };
            all.add(sum);
        };
        let Grouping::Fact { key, reader, need } = self.grouping else {
            for &(_, frame, count) in &read.mapped {
                let group = frame.group.and_then(|group| self.by_number.get_mut(group as usize));
                group.into_iter().for_each(|group| add(group, frame, count));
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
            add(self.sums.entry(FamilyGroupKey::Fact(group)).or_default(), frame, count);
        }
        Ok(())
    }

    /// The groups, the largest first.
    pub fn finish(self) -> Vec<FamilyGroup> {
        let mut groups: Vec<FamilyGroup> = Vec::new();
        for (key, (sum, in_one)) in self.sums {
            groups.push(FamilyGroup { key, sum, in_one, members: None });
        }
        let numbered: Vec<(&FamilyGroupKey, Option<u64>)> = match self.grouping {
            Grouping::Mapping(mappings) => {
                mappings.found.iter().map(|(key, members)| (key, Some(members.len() as u64))).collect()
            }
            Grouping::Region(regions) => regions.iter().map(|key| (key, None)).collect(),
            Grouping::Fact { .. } => Vec::new(),
        };
        for ((key, members), (sum, in_one)) in numbered.into_iter().zip(self.by_number) {
            groups.push(FamilyGroup { key: key.clone(), sum, in_one, members });
        }
        groups.retain(|group| group.sum.bytes > 0);
        groups.sort_by(|one, other| other.sum.bytes.cmp(&one.sum.bytes).then_with(|| one.key.cmp(&other.key)));
        groups
    }
}
