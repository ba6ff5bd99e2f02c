//! Which needs can be met here, and what else has to be read for them.

use super::address_space::AddressSpace;
use super::kernel_behaviour::KernelBehaviour;
use super::page::Facts;
use super::reason::no_scan;
use super::{Error, Result};
use crate::kernel::FrameNumber;
use crate::process::{self, Categories, Machine};
use crate::report::Reason;

/// How errors name [`Facts::ZONES`] and [`Facts::CGROUPS`].
const ZONES: &str = "zones and nodes of frames";
const CGROUPS: &str = "memory cgroups of frames";

impl AddressSpace {
    /// Fails if part of `need` cannot be known here, and names it. Filters call this before a walk.
    pub fn require(&self, need: Facts) -> Result<()> {
        let available = self.availability();
        let kinds = if available.categories.contains(Categories::ZERO) { Ok(()) } else { available.flags.clone() };
        // Without a scan, flags show that a page is in no large folio, so that no PMD maps it. Other pages are left out
        // and counted.
        let huge = if available.categories.contains(Categories::HUGE) || available.flags.is_ok() {
            Ok(())
        } else {
            Err(no_scan())
        };
        let zones = if need.contains(Facts::ZONES) {
            available.frames.clone().and_then(|()| self.zones().map(drop).map_err(Reason::from))
        } else {
            Ok(())
        };
        let cgroups = if need.contains(Facts::CGROUPS) {
            available.frames.clone().and_then(|()| {
                let machine = &self.target().machine;
                let read = machine.frame_cgroups(FrameNumber::new(1), &mut [0]);
                read.map(drop).map_err(Reason::from)
            })
        } else {
            Ok(())
        };
        let facts = [
            (Facts::ORDER, "the orders of folios", &available.flags),
            (Facts::ZONES, ZONES, &zones),
            (Facts::CGROUPS, CGROUPS, &cgroups),
            (Facts::FRAMES, "frame numbers", &available.frames),
            (Facts::FLAGS, "page flags", &available.flags),
            (Facts::COUNTS, "map counts", &available.counts),
            (Facts::OWNERS, "map counts", &available.counts),
            (Facts::SOFT_DIRTY, "soft-dirty bits", &available.soft_dirty),
            (Facts::KINDS, "the zero page", &kinds),
            (Facts::HUGE, "huge mappings", &huge),
        ];
        for (asked, what, fact) in facts {
            if let (true, Err(reason)) = (need.contains(asked), fact) {
                return Err(Error::Unknown { what, reason: reason.clone() });
            }
        }
        Ok(())
    }

    /// `need` with what has to be read for it. Everything but states needs entries, and orders need flags. Where pages
    /// are merged, only flags tell which.
    pub(super) fn with_implied(&self, need: Facts) -> Facts {
        let need = if need.has_entries() { need | Facts::ENTRIES } else { need };
        if need.contains(Facts::FLAGS) {
            return need;
        }
        let are_known = || self.availability().flags.is_ok();
        // Without marked entries, only flags distinguish a page that a PMD maps from a copy.
        let tell_kinds =
            need.contains(Facts::KINDS) && are_known() && (self.is_merging() || !self.huge_files_are_marked());
        let tell_huge =
            need.intersects(Facts::HUGE | Facts::OWNERS) && !self.target().process.has_scan() && are_known();
        if tell_kinds || tell_huge || need.contains(Facts::ORDER) { need | Facts::FLAGS } else { need }
    }

    /// As much of `need` as can be known here, for commands that show what is available.
    pub fn obtainable(&self, need: Facts) -> Facts {
        Facts::all()
            .iter()
            .filter(|&one| need.contains(one))
            .filter(|&one| one == Facts::KINDS || self.require(one).is_ok())
            .collect()
    }
}

/// Fails if a sweep of frames needs zones or cgroups, and `machine` does not show them.
pub fn require_of_frames(need: Facts, machine: &Machine) -> Result<()> {
    if need.contains(Facts::ZONES) {
        known(ZONES, machine.zones())?;
    }
    if need.contains(Facts::CGROUPS) {
        let read = machine.frame_cgroups(FrameNumber::new(1), &mut [0]);
        known(CGROUPS, read)?;
    }
    Ok(())
}

/// Fails if `machine` does not show the paths of cgroups.
pub fn require_cgroup_paths(machine: &Machine) -> Result<()> {
    /// The inode of no cgroup: the kernel counts them from 1.
    const NO_CGROUP: u64 = 0;
    known("the paths of memory cgroups", machine.cgroup_path(NO_CGROUP))
}

fn known<T>(what: &'static str, answer: process::Result<T>) -> Result<()> {
    let unknown = |error: process::Error| Error::Unknown { what, reason: error.into() };
    answer.map(drop).map_err(unknown)
}
