//! The values of filter fields for pages, frames and regions. [`crate::lang::field`] has their names. `None` is "no
//! answer for this one", which is neither true nor false. A page without a frame has no answer to any question about
//! its frame.

use crate::eval::operators::Space;
use crate::inspect::{
    AddressSpace, Backing, Facts, KernelBehaviour as _, Page, RegionStats, Result, ViewedRegion, cgroup_path,
    exclusive_unknown, kind_unknown, no_scan, require_cgroup_paths, require_of_frames,
};
use crate::kernel::{FrameNumber, Kind, PageFlags, PageSize, State, TableBits, page_flags};
use crate::lang::{PageField, RegionField};
use crate::process::{BackingContent, Machine};
use crate::report::{Fact, Reason};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// What a sweep has to find out for `field`.
pub fn need(field: PageField, space: &AddressSpace) -> Facts {
    use PageField as F;
    let available = space.availability();
    match field {
        F::AnyKind | F::Kind(Kind::Anonymous | Kind::Zero | Kind::PrivateCopy) => Facts::KINDS,
        // Bit 61 tells for most pages. For the others it takes what identifies the zero page.
        F::Kind(Kind::File | Kind::Shmem | Kind::DeviceMemory)
            if !space.huge_files_are_marked() && space.require(Facts::KINDS).is_ok() =>
        {
            Facts::KINDS
        }
        F::Kind(Kind::Ksm) => Facts::FLAGS,
        F::Kind(Kind::MaybeSwapped) => Facts::SHARED_CONTENT,
        F::Kind(kind) if of_content(kind) => Facts::CONTENT,
        F::Kind(_) => Facts::ENTRIES,
        F::PmdMapped | F::Thp | F::Huge => Facts::HUGE,
        // Bit 56 is wrong inside huge mappings; a map count never is. Without map counts, the huge mappings have to be
        // found.
        F::Exclusive if available.counts.is_ok() => counts(space.has_exact_counts()),
        F::Exclusive if space.regions().iter().any(|viewed| space.may_be_huge(viewed)) => {
            // The huge page of zeros is mapped huge, and is nobody's.
            Facts::HUGE | space.obtainable(Facts::KINDS)
        }
        F::Exclusive => Facts::ENTRIES,
        F::SoftDirty => Facts::SOFT_DIRTY,
        F::MapCount => counts(space.has_exact_counts()),
        F::Order => Facts::ORDER,
        F::Node | F::Zone => Facts::ZONES,
        F::Cgroup => Facts::CGROUPS,
        F::RefCount => Facts::REFERENCES,
        F::Pinned => Facts::PINS,
        F::Accessed | F::TableDirty => Facts::TABLES,
        F::Pfn | F::Phys => Facts::FRAMES.union(Facts::EACH),
        F::Address => Facts::EACH,
        // A page of shared memory may be in swap only if its object has contents that are not in memory.
        F::State(State::Swapped) if hides_swapped(space) => Facts::SHARED_CONTENT,
        F::AnyState | F::State(_) => Facts::empty(),
        F::Readable | F::Writable | F::Executable | F::Private | F::Shared => Facts::empty(),
        F::Flag(_) => Facts::FLAGS,
    }
}

/// Whether some pages of shared memory may be in swap, and nothing here shows which.
pub fn hides_swapped(space: &AddressSpace) -> bool {
    space.regions().iter().any(|viewed| space.hides_swapped(viewed))
}

/// What per-page map counts need. Where some are averages over large folios, the flags tell which are not.
fn counts(exact: bool) -> Facts {
    if exact { Facts::COUNTS } else { Facts::COUNTS.union(Facts::FLAGS) }
}

/// What a sweep of frames has to find out for `field`; `None` if frames without a process have no such field.
///
/// Fails as [`require`] does.
pub fn require_for_frames(field: PageField, machine: &Machine) -> Result<Option<Facts>> {
    let need = match field {
        PageField::MapCount => counts(machine.has_exact_map_counts() == Some(true)),
        PageField::Order => Facts::ORDER,
        PageField::Node | PageField::Zone => Facts::ZONES,
        PageField::Cgroup => Facts::CGROUPS,
        PageField::RefCount => Facts::REFERENCES,
        PageField::Pinned => Facts::PINS,
        PageField::Pfn | PageField::Phys => Facts::EACH,
        PageField::Flag(_) => Facts::FLAGS,
        _ => return Ok(None),
    };
    require_of_frames(need, machine)?;
    if field == PageField::Cgroup {
        require_cgroup_paths(machine)?;
    }
    Ok(Some(need))
}

/// What a sweep has to find out for `field`. Fails if that cannot be known here.
pub fn require(field: PageField, space: &AddressSpace) -> Result<Facts> {
    let need = need(field, space);
    space.require(need)?;
    if field == PageField::Cgroup {
        require_cgroup_paths(&space.target().machine)?;
    }
    Ok(need)
}

/// The value of a boolean field; `None` for other fields, and for a page that has none.
#[inline]
pub fn boolean(field: PageField, page: &Page, region: Option<&ViewedRegion>) -> Option<bool> {
    use PageField as F;
    let permissions = region.map(|viewed| viewed.region.permissions);
    match field {
        F::AnyState | F::AnyKind | F::MapCount | F::RefCount | F::Order | F::Node | F::Zone | F::Cgroup => None,
        F::Pinned => page.holders?.is_pinned(),
        F::Accessed => Some(page.table?.contains(TableBits::ACCESSED)),
        F::TableDirty => Some(page.table?.contains(TableBits::DIRTY)),
        F::Pfn | F::Phys | F::Address => None,
        F::State(state) => page.states.is(state),
        F::Kind(kind) if of_content(kind) => match (page.state(), page.kind, page.content) {
            (State::Untouched, Some(Kind::File | Kind::Secret | Kind::Hugetlb), _) if kind == Kind::MaybeSwapped => {
                Some(false)
            }
            (State::Untouched, Some(Kind::File | Kind::Shmem | Kind::Secret | Kind::Hugetlb), None) => None,
            // Untouched pages of the pool have the kind of the pool, whatever their file has.
            (State::Untouched, Some(Kind::Hugetlb), Some(content)) => Some(match content {
                BackingContent::Hole => false,
                BackingContent::PastEnd => kind == Kind::PastEnd,
                BackingContent::Contents { .. } => kind == Kind::Cached,
            }),
            (_, is, _) => Some(is == Some(kind)),
        },
        F::Kind(kind) => page.kind.map(|is| is == kind),
        F::SoftDirty => (page.state() != State::Outside).then(|| page.entry.is_soft_dirty()),
        F::Exclusive => page.exclusive(),
        F::PmdMapped | F::Thp => page.is_pmd_mapped(),
        F::Huge => page.huge.map(|huge| huge || (page.state() == State::Present && page.kind == Some(Kind::Hugetlb))),
        F::Readable => permissions?.right(|rights| rights.read),
        F::Writable => permissions?.right(|rights| rights.write),
        F::Executable => permissions?.right(|rights| rights.execute),
        F::Private => permissions?.sharing().map(|shared| !shared),
        F::Shared => permissions?.sharing(),
        F::Flag(one) => flag(one, page),
    }
}

/// Whether this kind of an untouched page shows only in the page cache of its file or shared memory.
const fn of_content(kind: Kind) -> bool {
    matches!(kind, Kind::Cached | Kind::NotCached | Kind::PastEnd | Kind::MaybeSwapped)
}

/// Whether the frame has `flag`; `None` without a frame, and when its flags are not known.
#[inline]
pub fn flag(flag: PageFlags, page: &Page) -> Option<bool> {
    page.flags.map(|flags| page_flags::holds(flag, flags))
}

/// Why a field without a value is unknown; `None` if the page has no such fact. `counts` is whether map counts can be
/// known.
pub fn why_unknown(
    field: PageField,
    page: &Page,
    region: Option<&ViewedRegion>,
    names: &NameCache,
    counts: &Fact<()>,
) -> Option<Reason> {
    use PageField as F;
    if matches!(field, F::Private | F::Shared) {
        let what = "whether regions are shared: not in this core";
        return region.map(|_| Reason::NotInFile(what.to_owned()));
    }
    if matches!(field, F::Readable | F::Writable | F::Executable) {
        return region.map(|_| Reason::NotInFile("the rights of its region: not in this core".to_owned()));
    }
    // What is unknown of other pages is their state, or what the page cache has of them.
    if page.state() != State::Present {
        return None;
    }
    match field {
        F::Kind(_) => Some(kind_unknown(page)),
        F::Exclusive => Some(exclusive_unknown(page, counts)),
        F::PmdMapped | F::Thp | F::Huge => Some(no_scan()),
        F::MapCount if page.count_is_average => Some(exclusive_unknown(page, counts)),
        F::Flag(_) => why_flags_unknown(page),
        // The page of zeros is in no record.
        F::RefCount | F::Pinned if page.is_zero() => None,
        F::Pinned => page.holders.map_or(Some(Reason::Changed), |holders| holders.pins().err()),
        F::Cgroup => match page.cgroup {
            Some(inode) => cgroup_path(&names.machine, inode).err(),
            None => Some(Reason::words_hidden()),
        },
        F::MapCount => Some(Reason::words_hidden()),
        F::RefCount | F::Order | F::Accessed | F::TableDirty => Some(Reason::Changed),
        _ => None,
    }
}

/// Whether a page that the page map shows as empty may be in swap, where [`hides_swapped`]: one of shared memory whose
/// contents are not in memory, or are not known.
#[inline]
pub fn may_be_swapped(page: &Page, region: Option<&ViewedRegion>) -> bool {
    let is_empty = page.state() == State::Untouched && region.is_some_and(|viewed| viewed.backing == Backing::Shmem);
    is_empty && matches!(page.content, None | Some(BackingContent::Contents { cached: false }))
}

/// Why the flags of a page are unknown; `None` without a frame.
pub fn why_flags_unknown(page: &Page) -> Option<Reason> {
    (page.state() == State::Present && page.flags.is_none()).then(Reason::words_hidden)
}

/// The value of a number field; `None` for other fields, and for a page that has none.
#[inline]
pub fn integer(field: PageField, page: &Page, size: PageSize) -> Option<u64> {
    match field {
        // An average is not the count of any page.
        PageField::MapCount => page.map_count.filter(|_| !page.count_is_average),
        PageField::RefCount => page.holders.map(|holders| holders.references.into()),
        PageField::Order => page.order.map(u64::from),
        PageField::Node => page.zone.map(|zone| zone.node.into()),
        PageField::Pfn => page.frame().map(|frame| frame.get()),
        PageField::Phys => page.physical(size).map(|physical| physical.get()),
        PageField::Address => Some(page.address.get()),
        _ => None,
    }
}

/// The same for a frame without a process. Its entry is only its number, and frame 0 is a frame like others.
#[inline]
pub fn integer_of_frame(field: PageField, page: &Page, size: PageSize) -> Option<u64> {
    let frame = page.entry.frame_bits();
    match field {
        PageField::Pfn => Some(frame),
        PageField::Phys => Some(FrameNumber::new(frame).physical(size)?.get()),
        _ => integer(field, page, size),
    }
}

/// The names of zones and cgroups, of which pages hold only numbers. The last cgroup's is cached: the next page mostly
/// has the same.
pub struct NameCache {
    machine: Arc<Machine>,
    cgroup: Mutex<Option<(u64, Option<String>)>>,
}

impl NameCache {
    /// The names on `machine`.
    pub fn of(machine: Arc<Machine>) -> Self {
        NameCache { machine, cgroup: Mutex::new(None) }
    }

    /// Whether `is` holds for the value of a text field; `None` for other fields, and for a page that has none.
    pub fn text_is(&self, field: PageField, page: &Page, is: &dyn Fn(&[u8]) -> bool) -> Option<bool> {
        match field {
            PageField::Zone => {
                let zones = self.machine.zones().ok()?;
                let zone = zones.get(page.zone?.index)?;
                Some(is(zone.name.as_bytes()))
            }
            PageField::Cgroup => {
                // Charged to no cgroup: no name matches.
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
                name.map(|name| is(name.as_bytes()))
            }
            _ => None,
        }
    }
}

/// What the numbers of `field` count in.
pub(super) fn space(field: PageField) -> Option<Space> {
    match field {
        PageField::Pfn => Some(Space::Frames),
        PageField::Phys => Some(Space::Physical),
        PageField::Address => Some(Space::Virtual),
        _ => None,
    }
}

/// All texts that `field` can be on this machine, if they are few: the names of its zones.
pub fn texts(field: PageField, machine: &Machine) -> Option<Vec<String>> {
    let zones = machine.zones().ok().filter(|_| field == PageField::Zone)?;
    let names: BTreeSet<String> = zones.iter().map(|zone| zone.name.to_string()).collect();
    Some(names.into_iter().collect())
}

/// Whether a field of regions needs to know what is populated: the `stats` of [`region_integer`].
pub fn needs_stats(field: RegionField) -> bool {
    use RegionField as F;
    matches!(field, F::Rss | F::Present | F::Pss | F::Swapped | F::SharedBytes | F::PrivateBytes | F::Huge)
}

/// The value of a boolean field of regions; `None` for other fields, and where a core file does not tell.
pub fn region_boolean(field: RegionField, viewed: &ViewedRegion) -> Option<bool> {
    use RegionField as F;
    let region = &viewed.region;
    Some(match field {
        F::Size | F::Start | F::End => return None,
        F::Rss | F::Present | F::Pss | F::Swapped | F::SharedBytes | F::PrivateBytes | F::Huge => return None,
        F::Offset | F::Inode | F::Name | F::Perms => return None,
        F::Readable => return region.permissions.right(|rights| rights.read),
        F::Writable => return region.permissions.right(|rights| rights.write),
        F::Executable => return region.permissions.right(|rights| rights.execute),
        F::Private => return region.permissions.sharing().map(|shared| !shared),
        F::Shared => return region.permissions.sharing(),
        F::Anonymous => region.inode == 0 && viewed.backing != Backing::Kernel,
        F::File => region.inode != 0,
        F::Deleted => region.is_deleted_file(),
    })
}

/// The least and the greatest value that a field of regions can have where [`region_integer`] has none: no more bytes
/// are in memory or in swap than the region is long. `None` for other fields.
pub fn region_bounds(field: RegionField, viewed: &ViewedRegion) -> Option<(u64, u64)> {
    needs_stats(field).then(|| (0, viewed.region.range.len()))
}

/// The value of a number field of regions; `None` for other fields, without `stats`, and where these rest on states
/// that are uncertain or hidden.
pub fn region_integer(field: RegionField, viewed: &ViewedRegion, stats: Option<&RegionStats>) -> Option<u64> {
    let region = &viewed.region;
    let stats = stats.filter(|stats| stats.why_hidden().is_none());
    match field {
        RegionField::Size => Some(region.range.len()),
        RegionField::Start => Some(region.range.start().get()),
        RegionField::End => Some(region.range.end().get()),
        RegionField::Offset => Some(region.offset),
        RegionField::Inode => Some(region.inode),
        RegionField::Rss => stats.and_then(|stats| stats.rss.clone().ok()),
        RegionField::Present => stats.map(|stats| stats.present),
        RegionField::SharedBytes => stats.and_then(|stats| stats.shared.clone().ok()),
        RegionField::PrivateBytes => stats.and_then(|stats| stats.private.clone().ok()),
        RegionField::Pss => stats.and_then(|stats| stats.pss.clone().ok()),
        RegionField::Huge => stats.and_then(|stats| stats.huge.clone().ok()),
        RegionField::Swapped => stats.and_then(|stats| stats.certainly_swapped().ok()),
        _ => None,
    }
}

/// Whether `is` holds for the value of a text field of regions, or for the part of a name after the last slash. `None`
/// for other fields.
pub fn region_text_is(field: RegionField, viewed: &ViewedRegion, is: &dyn Fn(&[u8]) -> bool) -> Option<bool> {
    let region = &viewed.region;
    match field {
        RegionField::Name => Some(region.names().any(|name| is(name.as_bytes()))),
        RegionField::Perms => region.permissions.right(|_| true).map(|_| is(region.permissions.letters().as_bytes())),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
