//! Which facts can be known here: each is tried before a filter uses it.

use crate::kernel::{FrameNumber, PageFlags};
use crate::process::{self, Categories, Target};
use crate::report::{Fact, Reason};

/// Which facts can be known here, found out by trying. A filter on any other is refused before anything is read.
#[derive(Clone, Debug)]
pub struct Availability {
    /// Frame numbers.
    pub frames: Fact<()>,
    /// `/proc/kpageflags`, and frame numbers to look it up by.
    pub flags: Fact<()>,
    /// `/proc/kpagecount`, and frame numbers to look it up by.
    pub counts: Fact<()>,
    /// Soft-dirty bits.
    pub soft_dirty: Fact<()>,
    /// What PAGEMAP_SCAN tells; empty where there is none.
    pub categories: Categories,
}

impl Availability {
    /// Tries each.
    pub(super) fn of(target: &Target) -> Self {
        let machine = &*target.machine;
        let frames = if target.process.frames_hidden() { Err(Reason::FrameHidden) } else { Ok(()) };
        let probe = |read: process::Result<usize>| {
            read?;
            frames.clone()
        };
        Availability {
            flags: probe(machine.frame_flags(FrameNumber::new(1), &mut [PageFlags::empty()])),
            counts: probe(machine.frame_counts(FrameNumber::new(1), &mut [0])),
            frames,
            soft_dirty: match machine.has_soft_dirty() {
                Some(true) => Ok(()),
                Some(false) => Err(Reason::NotOnThisKernel(
                    "this kernel does not track soft-dirty pages (CONFIG_MEM_SOFT_DIRTY)".into(),
                )),
                None => Err(Reason::NotOnThisKernel(
                    "pmdb cannot determine whether this kernel tracks soft-dirty pages".into(),
                )),
            },
            categories: target.process.categories(),
        }
    }
}
