//! What the count of a family comes to.

use super::owners::{FrameKind, OwnedFrame};
use super::{Family, FamilyMember};
use crate::inspect::Result;
use crate::kernel::FrameNumber;
use crate::report::{Fact, FamilyClass, Reason};

/// The memory of one class.
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

/// The sums of a family.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FamilySums {
    /// Each class that has any memory.
    pub classes: Vec<(FamilyClass, ClassSum)>,
    /// Each address space.
    pub members: Vec<FamilyMember>,
    /// Bytes of all frames, each once. Without frame numbers: the sum of Pss, which may be less.
    pub distinct: u64,
    /// Whether that is no more than a lower bound.
    pub is_lower_bound: bool,
    /// The sum of the Rss of all members.
    pub rss: u64,
    /// Of the frames, bytes that other processes map too.
    pub outside: Fact<u64>,
    /// Why there are no classes, if frame numbers are hidden.
    pub hidden: Option<Reason>,
}

impl ClassSum {
    fn add(&mut self, other: ClassSum) {
        self.bytes += other.bytes;
        self.mapped += other.mapped;
        self.outside += other.outside;
        self.unclear += other.unclear;
    }
}

impl Family {
    /// The sums so far.
    ///
    /// # Errors
    /// Map counts cannot be read, or the [budget](Family::within) is over.
    pub fn sums(&mut self) -> Result<FamilySums> {
        self.flush()?;
        let mut members = self.members.clone();
        let rss = members.iter().map(|member| member.rss).sum();
        if self.hides_frames {
            let shares = members.iter().any(|member| member.counts_shared);
            return Ok(FamilySums {
                classes: Vec::new(),
                distinct: members.iter().filter_map(|member| member.pss).sum(),
                is_lower_bound: shares,
                rss,
                outside: Err(Reason::FrameHidden),
                hidden: Some(Reason::FrameHidden),
                members,
            });
        }
        let size = self.page().bytes();
        let counts: Fact<()> = self.machine.frame_counts(FrameNumber::new(1), &mut [0]).map(drop).map_err(Reason::from);
        let mut sums = [ClassSum::default(); FamilyClass::ALL.len()];
        let mut alone = vec![(0u64, 0u64); members.len()];
        let mut unclear = vec![0u64; members.len()];
        let mut is_hidden = false;
        let mut budget = self.budget.clone();
        let together = self.frames.mapped_frames(&self.machine, counts.is_ok());
        for mapped in together {
            for (frame, count) in mapped? {
                budget.go_on()?;
                let is_outside = count.map(|count| count > u64::from(frame.times));
                is_hidden |= frame.kind == FrameKind::Unknown && count.is_none();
                if let Some(sum) = sums.get_mut(class(frame) as usize) {
                    sum.add(ClassSum {
                        bytes: size,
                        mapped: u64::from(frame.times) * size,
                        outside: if is_outside == Some(true) { size } else { 0 },
                        unclear: if is_outside.is_none() { size } else { 0 },
                    });
                }
                let Some(owner) = frame.owner else {
                    continue;
                };
                match is_outside {
                    Some(true) => {}
                    Some(false) => {
                        let is_private = matches!(frame.kind, FrameKind::Private | FrameKind::PrivateInFolio);
                        if let Some((alone, ends)) = alone.get_mut(owner) {
                            *alone += size;
                            *ends += if is_private { size } else { 0 };
                        }
                    }
                    None => unclear.get_mut(owner).into_iter().for_each(|unclear| *unclear += size),
                }
            }
        }
        let average = "map counts of large folios are averages";
        let why_unclear = || if is_hidden { Reason::words_hidden() } else { Reason::NotOnThisKernel(average.into()) };
        for ((member, (alone, ends)), unclear) in members.iter_mut().zip(alone).zip(unclear) {
            let known = match &counts {
                Err(reason) => Err(reason.clone()),
                Ok(()) if unclear > 0 => Err(why_unclear()),
                Ok(()) => Ok(()),
            };
            member.alone = known.clone().map(|()| alone);
            member.ends = known.map(|()| ends);
        }
        let elsewhere = members.iter().map(|member| member.elsewhere).sum();
        if let Some(sum) = sums.get_mut(FamilyClass::Elsewhere as usize) {
            sum.add(ClassSum { bytes: elsewhere, mapped: elsewhere, outside: 0, unclear: 0 });
        }
        let classes: Vec<(FamilyClass, ClassSum)> = FamilyClass::ALL.iter().copied().zip(sums).collect();
        let all = classes.iter().fold(ClassSum::default(), |mut all, (_, sum)| {
            all.add(*sum);
            all
        });
        Ok(FamilySums {
            classes: classes.into_iter().filter(|(_, sum)| sum.bytes > 0).collect(),
            members,
            distinct: all.bytes,
            is_lower_bound: false,
            rss,
            outside: match counts {
                Err(reason) => Err(reason),
                Ok(()) if all.unclear > 0 => Err(why_unclear()),
                Ok(()) => Ok(all.outside),
            },
            hidden: None,
        })
    }
}

fn class(frame: OwnedFrame) -> FamilyClass {
    use FrameKind::{File, FileInFolio, Private, PrivateInFolio, Shmem, ShmemInFolio};
    let by_owner = |one, several| if frame.owner.is_some() { one } else { several };
    match frame.kind {
        Private | PrivateInFolio => by_owner(FamilyClass::PrivateOne, FamilyClass::PrivateSeveral),
        Shmem | ShmemInFolio => by_owner(FamilyClass::ShmemOne, FamilyClass::ShmemSeveral),
        File | FileInFolio => by_owner(FamilyClass::FileOne, FamilyClass::FileSeveral),
        FrameKind::Merged => FamilyClass::Merged,
        FrameKind::Kernel => FamilyClass::Kernel,
        FrameKind::Driver => FamilyClass::Driver,
        FrameKind::Secret => FamilyClass::Secret,
        FrameKind::Unread | FrameKind::Beside | FrameKind::Unknown => FamilyClass::Unclear,
    }
}
