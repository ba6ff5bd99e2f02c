//! Page frames of the machine, without a process: `walk pfn:A..pfn:B`, `flags pfn:N`.

use super::Result;
use super::folio::Folio;
use super::page::{InZone, Need};
use super::view::reason;
use crate::kernel::zones::{Zone, Zones};
use crate::kernel::{FrameNumber, FrameRange, Name, PageFlags, PhysicalAddress};
use crate::report::{CgroupPath, Fact, FrameWords, PlaceFacts, Reason, Stopped};
use crate::target::{self, Machine};

/// Neighbouring frames of one zone with the same flags and map count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frames {
    /// The first.
    pub first: FrameNumber,
    /// How many.
    pub frames: u64,
    /// Their flags, when asked for.
    pub flags: Option<PageFlags>,
    /// How often each is mapped, when asked for.
    pub map_count: Option<u64>,
    /// The order of the folios that they are of, when asked for.
    pub order: Option<u8>,
    /// Their zone.
    pub zone: Option<InZone>,
    /// Inode of the memory cgroup that they are charged to, when asked for.
    pub cgroup: Option<u64>,
}

impl Frames {
    /// Whether all but where and how many is the same.
    fn is_like(&self, other: &Frames) -> bool {
        Frames {
            first: other.first,
            frames: other.frames,
            ..*self
        } == *other
    }
}

/// What is known of one frame.
#[derive(Clone, Debug)]
pub struct FrameDetail {
    /// The frame.
    pub frame: FrameNumber,
    /// Its flags.
    pub flags: Fact<PageFlags>,
    /// How often it is mapped.
    pub map_count: Fact<u64>,
    /// The folio that it is of.
    pub folio: Fact<Folio>,
    /// Where it lies, and who pays for it.
    pub place: PlaceFacts,
}

/// Frames of one read: 64 KiB.
const READ_FRAMES: u64 = 8192;

/// Has the frames of `range` delivered in order, neighbours that are the same together. Of `need`, [`Need::FLAGS`], [`Need::COUNTS`],
/// [`Need::ORDER`] and [`Need::CGROUPS`] count. `check` is told between reads how many frames were looked at, and says whether to go on. Ends early where physical memory does: what was looked at is given back.
///
/// Fails when a file cannot be read, and when `visit` or `check` say so.
pub fn sweep_frames(
    machine: &dyn Machine,
    range: FrameRange,
    need: Need,
    check: &mut dyn FnMut(u64) -> Result<(), Stopped>,
    visit: &mut dyn FnMut(&Frames) -> Result<(), Stopped>,
) -> Result<u64> {
    let zones = machine.zones().ok();
    let end = range.end().get();
    let mut flags = vec![PageFlags::empty(); READ_FRAMES as usize];
    let mut counts = vec![0; READ_FRAMES as usize];
    let mut cgroups = vec![0; READ_FRAMES as usize];
    let mut orders = vec![None; READ_FRAMES as usize];
    let mut last = None;
    let mut zone = None;
    let mut row: Option<Frames> = None;
    let mut zone_end = 0;
    let mut at = range.start().get();
    while at < end {
        check(at - range.start().get())?;
        let wanted = (end - at).min(READ_FRAMES) as usize;
        let first = FrameNumber::new(at);
        let mut read = wanted;
        if need.intersects(Need::FLAGS | Need::ORDER) {
            let into = flags.get_mut(..wanted).unwrap_or_default();
            read = read.min(machine.frame_flags(first, into)?);
        }
        if need.contains(Need::COUNTS) {
            let into = counts.get_mut(..wanted).unwrap_or_default();
            read = read.min(machine.frame_counts(first, into)?);
        }
        if need.contains(Need::CGROUPS) {
            let into = cgroups.get_mut(..wanted).unwrap_or_default();
            read = read.min(machine.frame_cgroups(first, into)?);
        }
        if need.contains(Need::ORDER) {
            orders.fill(None);
            let flags = |index: usize| flags.get(index).copied();
            Folio::each(machine, first, read, &flags, &mut last, &mut |at, folio| {
                let orders = orders.get_mut(at).unwrap_or_default();
                orders.fill(Some(folio.order));
            })?;
        }
        let words = flags.iter().zip(&counts).zip(orders.iter().zip(&cgroups));
        for (offset, ((flags, count), (order, cgroup))) in (0u64..).zip(words).take(read) {
            let frame = at + offset;
            if frame >= zone_end {
                let found = zones
                    .as_ref()
                    .and_then(|zones| zones.find(FrameNumber::new(frame)));
                zone = found.map(|(index, zone)| InZone {
                    node: zone.node,
                    index,
                });
                zone_end = found.map_or_else(
                    || next_zone(zones.as_deref(), frame),
                    |(_, zone)| zone.end().get(),
                );
            }
            let next = Frames {
                first: FrameNumber::new(frame),
                frames: 1,
                flags: need.contains(Need::FLAGS).then_some(*flags),
                map_count: need.contains(Need::COUNTS).then_some(*count),
                order: *order,
                zone,
                cgroup: need.contains(Need::CGROUPS).then_some(*cgroup),
            };
            match &mut row {
                Some(row) if row.is_like(&next) => row.frames += 1,
                row => {
                    if let Some(done) = row.replace(next) {
                        visit(&done)?;
                    }
                }
            }
        }
        at += read as u64;
        if read < wanted {
            break;
        }
    }
    if let Some(done) = row {
        visit(&done)?;
    }
    Ok(at - range.start().get())
}

/// Where the next zone begins after a frame that is in none.
fn next_zone(zones: Option<&Zones>, frame: u64) -> u64 {
    let starts = zones.into_iter().flat_map(Zones::iter);
    let starts = starts.map(|zone| zone.start.get());
    starts
        .filter(|&start| start > frame)
        .min()
        .unwrap_or(u64::MAX)
}

/// Whether a map count may be an average over the large folio that the frame is of: where the kernel counts so, or may do so, and the
/// flags do not say that it is a page by itself.
pub fn is_average(machine: &dyn Machine, flags: Option<PageFlags>, map_count: Option<u64>) -> bool {
    map_count.is_some_and(|times| times > 0)
        && flags.is_none_or(PageFlags::is_in_large_folio)
        && machine.has_exact_map_counts() != Some(true)
}

/// The words of one frame on `machine`, with the mark of a map count that is an average.
pub fn frame_words(
    machine: &dyn Machine,
    flags: Option<PageFlags>,
    map_count: Option<u64>,
) -> FrameWords {
    FrameWords {
        flags,
        map_count,
        map_count_average: is_average(machine, flags, map_count),
    }
}

/// All there is to know of one frame; each part says why when it is not known.
pub fn frame_detail(machine: &dyn Machine, frame: FrameNumber) -> FrameDetail {
    let mut cgroup = [0];
    let cgroup_read = machine.frame_cgroups(frame, &mut cgroup);
    let cgroup = one(cgroup_read, cgroup);
    let flags = flags_of(machine, frame);
    FrameDetail {
        frame,
        folio: flags.clone().and_then(|flags| folio(machine, frame, flags)),
        flags,
        map_count: count_of(machine, frame),
        place: PlaceFacts {
            zone: zone(machine, frame),
            iomem: frame
                .physical(machine.page())
                .ok_or(NO_RESOURCE)
                .and_then(|start| resources(machine, start)),
            cgroup_path: cgroup.clone().and_then(|inode| cgroup_path(machine, inode)),
            cgroup,
        },
    }
}

/// The flags of one frame.
pub(super) fn flags_of(machine: &dyn Machine, frame: FrameNumber) -> Fact<PageFlags> {
    let mut flags = [PageFlags::empty()];
    let read = machine.frame_flags(frame, &mut flags);
    one(read, flags)
}

/// How often one frame is mapped.
pub(super) fn count_of(machine: &dyn Machine, frame: FrameNumber) -> Fact<u64> {
    let mut count = [0];
    let read = machine.frame_counts(frame, &mut count);
    one(read, count)
}

/// The folio of a frame with these flags.
fn folio(machine: &dyn Machine, frame: FrameNumber, flags: PageFlags) -> Fact<Folio> {
    let found = Folio::find(machine, frame, flags);
    found
        .map_err(|error| reason(&error))?
        .ok_or(Reason::Changed)
}

fn zone(machine: &dyn Machine, frame: FrameNumber) -> Fact<Zone> {
    let none = Reason::NotApplicable("no memory zone spans this frame");
    let zones = machine.zones().map_err(|error| reason(&error))?;
    zones.of(frame).cloned().ok_or(none)
}

/// The resources of `/proc/iomem` that hold a physical address, the outermost first.
pub(super) fn resources(machine: &dyn Machine, address: PhysicalAddress) -> Fact<Vec<Name>> {
    let resources = machine.iomem().map_err(|error| reason(&error))?;
    match resources.at(address) {
        none if none.is_empty() => Err(NO_RESOURCE),
        nested => Ok(nested.into_iter().map(|one| one.name.clone()).collect()),
    }
}

const NO_RESOURCE: Reason = Reason::NotApplicable("no resource of /proc/iomem is there");

/// The path of the memory cgroup with this inode.
pub fn cgroup_path(machine: &dyn Machine, inode: u64) -> Fact<CgroupPath> {
    if inode == 0 {
        return Err(Reason::NotApplicable("it is charged to no memory cgroup"));
    }
    let path = machine.cgroup_path(inode).map_err(|error| reason(&error))?;
    Ok(path.map_or(CgroupPath::Gone(inode), CgroupPath::Path))
}

/// The word that was read, if one was.
fn one<T>(read: target::Result<usize>, [word]: [T; 1]) -> Fact<T> {
    match read {
        Ok(0) => Err(Reason::NotApplicable(
            "the frame number is beyond physical memory",
        )),
        Ok(_) => Ok(word),
        Err(error) => Err(reason(&error)),
    }
}
