//! The sums of the count of a family.

use super::super::rests::FolioRest;
use super::grouped::{ClassSum, FamilyGroup, GroupSums};
use super::owners::{FrameHeap, FrameKind, OwnedFrame};
use super::{Family, FamilyMember};
use crate::inspect::{Error, Result};
use crate::kernel::FrameNumber;
use crate::report::{Fact, FamilyClass, Reason};

/// The sums of a family.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FamilySums {
    /// The classes that have any memory.
    pub classes: Vec<(FamilyClass, ClassSum)>,
    /// The address spaces of the family.
    pub members: Vec<FamilyMember>,
    /// The bytes of all frames, each once. Without frame numbers: the sum of Pss, which may be less.
    pub distinct: u64,
    /// Whether `distinct` is only a lower bound.
    pub is_lower_bound: bool,
    /// The sum of the Rss of all members.
    pub rss: u64,
    /// The bytes of frames that other processes map too.
    pub outside: Fact<u64>,
    /// The groups that were [asked for](Family::grouped), the largest first.
    pub groups: Vec<FamilyGroup>,
    /// The unmapped rests of large anonymous folios that are mapped in part, by the member in which they were found
    /// first.
    pub rests: Fact<Vec<FolioRest>>,
    /// Why there are no classes, if frame numbers are hidden.
    pub hidden: Option<Reason>,
}

impl Family {
    /// Returns the sums so far.
    ///
    /// # Errors
    /// Fails if map counts cannot be read, or the [budget](Family::with_budget) is used up.
    pub fn sums(&mut self) -> Result<FamilySums> {
        self.flush()?;
        let mut members = self.members.clone();
        let rss = members.iter().map(|member| member.rss).fold(0, u64::saturating_add);
        if self.hides_frames && (self.grouping.is_some() || self.finds_heaps) {
            return Err(Error::Unknown { what: "the frames of several processes", reason: Reason::FrameHidden });
        }
        if self.hides_frames {
            let shares = members.iter().any(|member| member.counts_shared);
            return Ok(FamilySums {
                classes: Vec::new(),
                distinct: members.iter().filter_map(|member| member.pss).fold(0, u64::saturating_add),
                is_lower_bound: shares,
                rss,
                outside: Err(Reason::FrameHidden),
                groups: Vec::new(),
                rests: Err(Reason::FrameHidden),
                hidden: Some(Reason::FrameHidden),
                members,
            });
        }
        let counts: Fact<()> = self.machine.frame_counts(FrameNumber::new(1), &mut [0]).map(drop).map_err(Reason::from);
        let mut sums = FrameSums::new(self.page_size().bytes(), members.len());
        let mut budget = self.budget.clone();
        let mut groups = self.grouping.as_ref().map(|grouping| GroupSums::new(grouping, &self.machine));
        for read in self.frames.mapped_frames(&self.machine, counts.is_ok()) {
            let read = read?;
            for &(_, frame, count) in &read.mapped {
                budget.go_on()?;
                sums.add(frame, count);
            }
            if let Some(groups) = &mut groups {
                groups.add(&read, |frame, count| sums.of_frame(frame, count))?;
            }
        }
        for (member, frames) in members.iter_mut().zip(&sums.members) {
            let known = sums.known(&counts, frames.unclear);
            member.alone = known.clone().map(|()| frames.alone);
            member.ends = known.map(|()| frames.ends);
        }
        let elsewhere = members.iter().map(|member| member.elsewhere).sum();
        sums.add_to(FamilyClass::Elsewhere, ClassSum { bytes: elsewhere, mapped: elsewhere, outside: 0, unclear: 0 });
        let all = sums.all();
        let classes = FamilyClass::ALL.iter().copied().zip(sums.classes);
        Ok(FamilySums {
            classes: classes.filter(|(_, sum)| sum.bytes > 0).collect(),
            members,
            distinct: all.bytes,
            is_lower_bound: false,
            rss,
            outside: sums.known(&counts, all.unclear).map(|()| all.outside),
            groups: groups.map(GroupSums::finish).unwrap_or_default(),
            rests: self.rests.rests(&self.machine),
            hidden: None,
        })
    }
}

/// Sums up frames.
struct FrameSums {
    /// The bytes of a frame.
    size: u64,
    classes: [ClassSum; FamilyClass::ALL.len()],
    members: Vec<MemberFrames>,
    /// Whether the words of some frames are unknown.
    is_hidden: bool,
}

/// The bytes of the frames that only one member maps.
#[derive(Clone, Copy, Default)]
struct MemberFrames {
    /// The bytes that no other process maps.
    alone: u64,
    /// The private bytes among these.
    ends: u64,
    /// The bytes for which it is unknown whether other processes map them.
    unclear: u64,
}

impl FrameSums {
    fn new(size: u64, members: usize) -> Self {
        FrameSums {
            size,
            classes: [ClassSum::default(); FamilyClass::ALL.len()],
            members: vec![MemberFrames::default(); members],
            is_hidden: false,
        }
    }

    /// Adds a frame, with its map count if that is known.
    fn add(&mut self, frame: OwnedFrame, count: Option<u64>) {
        let size = self.size;
        let is_outside = is_outside(frame, count);
        self.is_hidden |= frame.kind == FrameKind::Unknown && count.is_none();
        self.add_to(class(frame), self.of_frame(frame, count));
        let Some(member) = frame.owner.and_then(|owner| self.members.get_mut(owner)) else {
            return;
        };
        match is_outside {
            Some(true) => {}
            Some(false) => {
                let is_private = matches!(frame.kind, FrameKind::Private | FrameKind::PrivateInFolio);
                member.alone += size;
                member.ends += if is_private { size } else { 0 };
            }
            None => member.unclear += size,
        }
    }

    /// Returns the sums of one frame.
    fn of_frame(&self, frame: OwnedFrame, count: Option<u64>) -> ClassSum {
        let is_outside = is_outside(frame, count);
        ClassSum {
            bytes: self.size,
            mapped: u64::from(frame.times) * self.size,
            outside: if is_outside == Some(true) { self.size } else { 0 },
            unclear: if is_outside.is_none() { self.size } else { 0 },
        }
    }

    fn add_to(&mut self, class: FamilyClass, sum: ClassSum) {
        if let Some(of_class) = self.classes.get_mut(class as usize) {
            of_class.add(sum);
        }
    }

    /// Returns the sum of all classes.
    fn all(&self) -> ClassSum {
        let mut all = ClassSum::default();
        self.classes.iter().for_each(|sum| all.add(*sum));
        all
    }

    /// Checks that sums with `unclear` bytes are known. `counts` is whether map counts can be read.
    fn known(&self, counts: &Fact<()>, unclear: u64) -> Fact<()> {
        counts.clone()?;
        match (unclear, self.is_hidden) {
            (0, _) => Ok(()),
            (_, true) => Err(Reason::words_hidden()),
            (_, false) => Err(Reason::NotOnThisKernel("map counts of large folios are averages".into())),
        }
    }
}

/// Returns whether processes outside of the family also map a frame; `None` if its map count is unknown.
fn is_outside(frame: OwnedFrame, count: Option<u64>) -> Option<bool> {
    count.map(|count| count > u64::from(frame.times))
}

fn class(frame: OwnedFrame) -> FamilyClass {
    use FrameKind::{File, FileInFolio, Private, PrivateInFolio, Shmem, ShmemInFolio};
    let by_owner = |one, several| if frame.owner.is_some() { one } else { several };
    match frame.kind {
        Private | PrivateInFolio => match frame.heap {
            FrameHeap::InUse => FamilyClass::HeapInUse,
            FrameHeap::Free => FamilyClass::HeapFree,
            FrameHeap::Unclear => FamilyClass::HeapUnclear,
            FrameHeap::None => by_owner(FamilyClass::PrivateOne, FamilyClass::PrivateSeveral),
        },
        Shmem | ShmemInFolio => by_owner(FamilyClass::ShmemOne, FamilyClass::ShmemSeveral),
        File | FileInFolio => by_owner(FamilyClass::FileOne, FamilyClass::FileSeveral),
        FrameKind::Merged => FamilyClass::Merged,
        FrameKind::Kernel => FamilyClass::Kernel,
        FrameKind::Driver => FamilyClass::Driver,
        FrameKind::Secret => FamilyClass::Secret,
        FrameKind::Unread | FrameKind::Beside | FrameKind::Unknown => FamilyClass::Unclear,
    }
}
