//! The values of filter fields for pages, frames and regions. [`crate::lang::field`] has their names. `None` is "no answer for this one",
//! which is neither true nor false. A page without a frame has no answer to any question about its frame.

use crate::inspect::{
    Backing, Need, Page, RegionStats, Result, Rules as _, View, ViewedRegion, cgroup_path,
    require_cgroup_paths, require_of_frames,
};
use crate::kernel::{FrameNumber, Kind, PageFlags, PageSize, State};
use crate::lang::{PageField, RegionField};
use crate::process::Machine;
use std::sync::{Arc, Mutex, PoisonError};

/// What a sweep has to find out for `field`.
pub fn need(field: PageField, view: &View<'_>) -> Need {
    use PageField as F;
    let available = view.availability();
    match field {
        F::Kind | F::Anonymous | F::Zero | F::PrivateCopy => Need::KINDS,
        // Of most pages bit 61 tells, and of the others what tells the zero page.
        F::File | F::Shmem | F::DeviceMemory
            if !view.huge_files_are_marked() && view.require(Need::KINDS).is_ok() =>
        {
            Need::KINDS
        }
        F::Ksm => Need::FLAGS,
        F::PmdMapped | F::Thp | F::Huge => Need::HUGE,
        // Bit 56 is wrong inside huge mappings; a map count never is. Without either nobody knows where these are.
        F::Exclusive if available.counts.is_ok() => counts(view.has_exact_counts()),
        F::Exclusive if view.regions().iter().any(|viewed| view.may_be_huge(viewed)) => Need::HUGE,
        F::SoftDirty => Need::SOFT_DIRTY,
        F::Cached | F::NotCached | F::PastEnd | F::MaybeSwapped => Need::BEHIND,
        F::MapCount => counts(view.has_exact_counts()),
        F::Order => Need::ORDER,
        F::Node | F::Zone => Need::ZONES,
        F::Cgroup => Need::CGROUPS,
        F::Pfn | F::Phys => Need::FRAMES.union(Need::EACH),
        F::Address => Need::EACH,
        F::State | F::Present | F::Swapped | F::Guard | F::Poisoned | F::Migrating => Need::empty(),
        F::UserfaultWriteProtected | F::HardwarePoisoned | F::Device => Need::empty(),
        F::Untouched | F::PfnMapped | F::Outside | F::Unmapped => Need::empty(),
        F::Readable | F::Writable | F::Executable | F::Private | F::Shared => Need::empty(),
        _ if frame_flag(field).is_some() => Need::FLAGS,
        _ => Need::ENTRIES,
    }
}

/// What map counts of single pages take: where some are averages over large folios, the flags tell which are not.
fn counts(exact: bool) -> Need {
    match exact {
        true => Need::COUNTS,
        false => Need::COUNTS.union(Need::FLAGS),
    }
}

/// What a sweep of frames has to find out for `field`; `None` if frames without a process have no such field.
///
/// Fails as [`require`] does.
pub fn require_for_frames(field: PageField, machine: &Machine) -> Result<Option<Need>> {
    let need = match field {
        PageField::MapCount => counts(machine.has_exact_map_counts() == Some(true)),
        PageField::Order => Need::ORDER,
        PageField::Node | PageField::Zone => Need::ZONES,
        PageField::Cgroup => Need::CGROUPS,
        PageField::Pfn | PageField::Phys => Need::EACH,
        _ => match frame_flag(field) {
            Some(_) => Need::FLAGS,
            None => return Ok(None),
        },
    };
    require_of_frames(need, machine)?;
    if field == PageField::Cgroup {
        require_cgroup_paths(machine)?;
    }
    Ok(Some(need))
}

/// What a sweep has to find out for `field`. Fails if that cannot be known here.
pub fn require(field: PageField, view: &View<'_>) -> Result<Need> {
    let need = need(field, view);
    view.require(need)?;
    if field == PageField::Cgroup {
        require_cgroup_paths(&view.target().machine)?;
    }
    Ok(need)
}

/// The answer of a field that stands alone; `None` for one that does not.
#[inline]
pub fn boolean(field: PageField, page: &Page, region: Option<&ViewedRegion>) -> Option<bool> {
    use PageField as F;
    let permissions = region.map(|viewed| viewed.region.permissions);
    let kind = |kind: Kind| page.kind.map(|is| is == kind);
    let state = |state: State| match page.doubt {
        Some(doubt) if doubt.may_be(state) => None,
        _ => Some(page.state == state),
    };
    match field {
        F::State | F::Kind | F::MapCount | F::Order | F::Node | F::Zone | F::Cgroup => None,
        F::Pfn | F::Phys | F::Address => None,
        F::Present => state(State::Present),
        F::Swapped => state(State::Swapped),
        F::Guard => state(State::Guard),
        F::Poisoned => state(State::Poisoned),
        F::UserfaultWriteProtected => state(State::UffdWp),
        F::Migrating => state(State::Migrating),
        F::HardwarePoisoned => state(State::Hwpoison),
        F::Device => state(State::Device),
        F::Untouched => state(State::Untouched),
        F::PfnMapped => state(State::PfnMapped),
        F::Outside => state(State::Outside),
        F::Unmapped => state(State::Unmapped),
        F::Anonymous => kind(Kind::Anonymous),
        F::File => kind(Kind::File),
        F::Shmem => kind(Kind::Shmem),
        F::PrivateCopy => kind(Kind::PrivateCopy),
        F::Zero => kind(Kind::Zero),
        F::HugeZero => kind(Kind::HugeZero),
        F::Ksm => kind(Kind::Ksm),
        F::Hugetlb => kind(Kind::Hugetlb),
        F::Vdso => kind(Kind::Vdso),
        F::DeviceMemory => kind(Kind::DeviceMemory),
        F::Cached => behind(page, Kind::Cached),
        F::NotCached => behind(page, Kind::NotCached),
        F::PastEnd => behind(page, Kind::PastEnd),
        F::MaybeSwapped => behind(page, Kind::MaybeSwapped),
        F::SoftDirty => Some(page.entry.is_soft_dirty()),
        F::Exclusive => page.exclusive(),
        F::PmdMapped | F::Thp => page.is_pmd_mapped(),
        F::Huge => page
            .huge
            .map(|huge| huge || (page.state == State::Present && page.kind == Some(Kind::Hugetlb))),
        F::Readable => permissions.map(|permissions| permissions.read),
        F::Writable => permissions.map(|permissions| permissions.write),
        F::Executable => permissions.map(|permissions| permissions.execute),
        F::Private => permissions.map(|permissions| !permissions.shared),
        F::Shared => permissions.map(|permissions| permissions.shared),
        F::Dirty
        | F::Referenced
        | F::Active
        | F::Locked
        | F::Writeback
        | F::Unevictable
        | F::Mlocked
        | F::Swapbacked
        | F::Idle => flag(frame_flag(field)?, page),
    }
}

/// Whether an untouched page is of a kind that only what is behind it tells; `None` where that was not told.
fn behind(page: &Page, kind: Kind) -> Option<bool> {
    match (page.state, page.kind, page.behind) {
        (State::Untouched, Some(Kind::File | Kind::Shmem), None) => None,
        (_, is, _) => Some(is == Some(kind)),
    }
}

/// Whether the frame has `flag`; `None` without a frame, and when its flags are not known.
#[inline]
pub fn flag(flag: PageFlags, page: &Page) -> Option<bool> {
    page.flags.map(|flags| flags.contains(flag))
}

/// The value of a field that is compared with numbers; `None` for other fields, and for a page that has none.
#[inline]
pub fn integer(field: PageField, page: &Page, size: PageSize) -> Option<u64> {
    match field {
        // An average is not the count of any page.
        PageField::MapCount => page.map_count.filter(|_| !page.count_is_average),
        PageField::Order => page.order.map(u64::from),
        PageField::Node => page.zone.map(|zone| zone.node.into()),
        PageField::Pfn => page.frame().map(|frame| frame.get()),
        PageField::Phys => page.physical(size).map(|physical| physical.get()),
        PageField::Address => Some(page.address.get()),
        _ => None,
    }
}

/// The same for a frame without a process, of which the entry is nothing but its number: 0 is a frame like others.
#[inline]
pub fn integer_of_frame(field: PageField, page: &Page, size: PageSize) -> Option<u64> {
    let frame = page.entry.frame_bits();
    match field {
        PageField::Pfn => Some(frame),
        PageField::Phys => Some(FrameNumber::new(frame).physical(size)?.get()),
        _ => integer(field, page, size),
    }
}

/// Names that stand for numbers of pages: of zones and of cgroups. Those of the page before are kept, as they mostly are those of the
/// next.
pub struct Names {
    machine: Arc<Machine>,
    cgroup: Mutex<Option<(u64, Option<String>)>>,
}

impl Names {
    /// Those of `machine`.
    pub fn of(machine: Arc<Machine>) -> Self {
        Names {
            machine,
            cgroup: Mutex::new(None),
        }
    }

    /// Whether a field of pages that is text is `text`; `None` for other fields, and for a page that has none.
    pub fn text_is(&self, field: PageField, page: &Page, text: &[u8]) -> Option<bool> {
        match field {
            PageField::Zone => {
                let zones = self.machine.zones().ok()?;
                let zone = zones.get(page.zone?.index)?;
                Some(zone.name.as_bytes() == text)
            }
            PageField::Cgroup => {
                // What is charged to none is in no group by that name.
                let inode = match page.cgroup? {
                    0 => return Some(false),
                    inode => inode,
                };
                let mut last = self.cgroup.lock().unwrap_or_else(PoisonError::into_inner);
                let name = match &*last {
                    Some((known, name)) if *known == inode => name.as_ref(),
                    _ => {
                        let name = cgroup_path(&self.machine, inode).ok();
                        let name = name.map(|path| path.to_string());
                        last.insert((inode, name)).1.as_ref()
                    }
                };
                name.map(|name| name.as_bytes() == text)
            }
            _ => None,
        }
    }
}

/// The flag of `/proc/kpageflags` that a field is named after.
fn frame_flag(field: PageField) -> Option<PageFlags> {
    use PageField as F;
    Some(match field {
        F::Dirty => PageFlags::DIRTY,
        F::Referenced => PageFlags::REFERENCED,
        F::Active => PageFlags::ACTIVE,
        F::Locked => PageFlags::LOCKED,
        F::Writeback => PageFlags::WRITEBACK,
        F::Unevictable => PageFlags::UNEVICTABLE,
        F::Mlocked => PageFlags::MLOCKED,
        F::Swapbacked => PageFlags::SWAPBACKED,
        F::Idle => PageFlags::IDLE,
        _ => return None,
    })
}

/// Whether a field of regions needs to know what is populated: the `stats` of [`region_integer`].
pub fn needs_stats(field: RegionField) -> bool {
    matches!(field, RegionField::Rss | RegionField::Swapped)
}

/// The answer of a field of regions that stands alone; `None` for one that does not.
pub fn region_boolean(field: RegionField, viewed: &ViewedRegion) -> Option<bool> {
    let region = &viewed.region;
    Some(match field {
        RegionField::Readable => region.permissions.read,
        RegionField::Writable => region.permissions.write,
        RegionField::Executable => region.permissions.execute,
        RegionField::Private => !region.permissions.shared,
        RegionField::Shared => region.permissions.shared,
        RegionField::Anonymous => region.inode == 0 && viewed.backing != Backing::Kernel,
        RegionField::File => region.inode != 0,
        RegionField::Deleted => region.is_deleted_file(),
        _ => return None,
    })
}

/// The least and the most that a field of regions can be where [`region_integer`] has no number: a region has no more bytes in
/// memory, nor in swap, than it is long. `None` for other fields.
pub fn region_bounds(field: RegionField, viewed: &ViewedRegion) -> Option<(u64, u64)> {
    match field {
        RegionField::Rss | RegionField::Swapped => Some((0, viewed.region.range.len())),
        _ => None,
    }
}

/// The value of a field of regions that is compared with numbers; `None` for others, when `stats` are missing, and where they rest on
/// states that are in doubt or hidden.
pub fn region_integer(
    field: RegionField,
    viewed: &ViewedRegion,
    stats: Option<&RegionStats>,
) -> Option<u64> {
    let region = &viewed.region;
    let stats = stats.filter(|stats| stats.hidden().is_none());
    match field {
        RegionField::Size => Some(region.range.len()),
        RegionField::Start => Some(region.range.start().get()),
        RegionField::End => Some(region.range.end().get()),
        RegionField::Offset => Some(region.offset),
        RegionField::Inode => Some(region.inode),
        RegionField::Rss => stats.map(|stats| stats.present),
        RegionField::Swapped => stats
            .filter(|stats| {
                !stats
                    .doubt
                    .is_some_and(|doubt| doubt.may_be(State::Swapped))
            })
            .and_then(|stats| stats.swapped.clone().ok()),
        _ => None,
    }
}

/// Whether a field of regions that is text is `text`; for names the part after the last slash is enough. `None` for other fields.
pub fn region_text_is(field: RegionField, viewed: &ViewedRegion, text: &[u8]) -> Option<bool> {
    let region = &viewed.region;
    match field {
        RegionField::Name => Some(region.names().any(|name| name.as_bytes() == text)),
        RegionField::Perms => Some(region.permissions.to_string().as_bytes() == text),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
