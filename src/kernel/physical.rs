//! Physical memory: zones and nodes (`/proc/zoneinfo`), and the use of physical addresses (`/proc/iomem`).

use super::text::{self, BadLine};
use super::{FrameNumber, Name, PageSize, PhysicalAddress};

/// The zones of a machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Zones {
    zones: Vec<Zone>,
    /// Runs of frames, in order and without gaps from frame 0 on. After the last there is no zone.
    spans: Vec<ZoneSpan>,
}

/// A run of frames in the same zones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneSpan {
    /// The frame after the last.
    pub end: FrameNumber,
    /// The zones that span these frames.
    pub spanned: ZoneLookup,
}

/// The zones that span a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneLookup {
    /// No zone.
    InNone,
    /// One zone, by its index in [`Zones::iter`].
    In(usize),
    /// Several zones, as where the memory of two nodes interleaves: which of them has the frame is unknown.
    InSeveral,
}

/// A memory zone: a range of frames on one node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Zone {
    /// NUMA node.
    pub node: u32,
    /// `DMA`, `DMA32`, `Normal`, …
    pub name: String,
    /// First frame.
    pub start: FrameNumber,
    /// Frames spanned.
    pub spanned: u64,
}

impl Zone {
    /// Returns whether the zone is for memory of devices, such as persistent memory.
    pub fn is_of_devices(&self) -> bool {
        self.name == "Device"
    }

    /// Returns the frame after the last one that the zone spans.
    pub fn end(&self) -> FrameNumber {
        FrameNumber::new(self.start.get().saturating_add(self.spanned))
    }
}

impl Zones {
    /// Decodes the headings, `spanned` and `start_pfn` of `/proc/zoneinfo`. Zones that span nothing are left out.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadLine> {
        let mut zones: Vec<Zone> = Vec::new();
        for line in text::lines(bytes) {
            let bad = || line.bad("zoneinfo");
            let mut fields = line.fields();
            // Most lines are skipped, so no list of their words is made.
            match (std::array::from_fn(|_| fields.next()), zones.last_mut()) {
                ([Some(b"Node"), Some(node), Some(b"zone"), Some(name), None], _) => zones.push(Zone {
                    node: node.strip_suffix(b",").and_then(text::decimal).ok_or_else(bad)?,
                    name: text::lossy(name),
                    start: FrameNumber::new(0),
                    spanned: 0,
                }),
                ([Some(b"spanned"), Some(frames), None, ..], Some(zone)) => {
                    zone.spanned = text::decimal(frames).ok_or_else(bad)?;
                }
                ([Some(b"start_pfn:"), Some(first), None, ..], Some(zone)) => {
                    zone.start = FrameNumber::new(text::decimal(first).ok_or_else(bad)?);
                }
                _ => {}
            }
        }
        zones.retain(|zone| zone.spanned > 0);
        Ok(Zones { spans: zone_spans(&zones), zones })
    }

    /// Returns the frames on the per-CPU free lists, by `/proc/zoneinfo`: `MemFree` does not include them, and no flag
    /// marks them.
    pub fn frames_of_processors(bytes: &[u8]) -> Result<u64, BadLine> {
        let mut frames: u64 = 0;
        for line in text::lines(bytes) {
            if let Some(count) = line.bytes.trim_ascii_start().strip_prefix(b"count:") {
                let count = text::decimal::<u64>(count.trim_ascii()).ok_or_else(|| line.bad("zoneinfo"))?;
                frames = frames.saturating_add(count);
            }
        }
        Ok(frames)
    }

    /// Returns the end of the last zone; `None` if there is no zone.
    pub fn end(&self) -> Option<FrameNumber> {
        self.zones.iter().map(Zone::end).max()
    }

    /// Returns the zone that spans `frame`; `None` if no zone or several zones do.
    pub fn of(&self, frame: FrameNumber) -> Option<&Zone> {
        match self.span_of(frame).spanned {
            ZoneLookup::In(index) => self.get(index),
            ZoneLookup::InNone | ZoneLookup::InSeveral => None,
        }
    }

    /// Returns the run of frames around `frame` in the same zones.
    pub fn span_of(&self, frame: FrameNumber) -> ZoneSpan {
        let after = self.spans.partition_point(|one| one.end <= frame);
        self.spans
            .get(after)
            .copied()
            .unwrap_or(ZoneSpan { end: FrameNumber::new(u64::MAX), spanned: ZoneLookup::InNone })
    }

    /// Returns the zone with this index in [`Zones::iter`].
    pub fn get(&self, index: usize) -> Option<&Zone> {
        self.zones.get(index)
    }

    /// Returns all zones, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Zone> {
        self.zones.iter()
    }
}

/// Splits all frames into runs, at the beginning and end of each zone.
fn zone_spans(zones: &[Zone]) -> Vec<ZoneSpan> {
    let bounds = |zone: &Zone| [zone.start, zone.end()];
    let mut ends: Vec<FrameNumber> = zones.iter().flat_map(bounds).collect();
    ends.sort_unstable();
    ends.dedup();
    ends.retain(|end| end.get() > 0);
    let mut start = FrameNumber::new(0);
    ends.into_iter()
        .map(|end| {
            let spans = |(_, zone): &(usize, &Zone)| zone.start <= start && end <= zone.end();
            let mut by = zones.iter().enumerate().filter(spans);
            let spanned = match (by.next(), by.next()) {
                (None, _) => ZoneLookup::InNone,
                (Some((index, _)), None) => ZoneLookup::In(index),
                (Some(_), Some(_)) => ZoneLookup::InSeveral,
            };
            start = end;
            ZoneSpan { end, spanned }
        })
        .collect()
}

/// The physical address space (`/proc/iomem`), divided into nested resources.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Resources {
    rows: Vec<Resource>,
    /// First and last byte of each range of system memory, in order, with gaps between them.
    system: Vec<(u64, u64)>,
}

/// A range of physical addresses, and its use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resource {
    /// The number of resources around this one.
    pub depth: usize,
    /// The first byte.
    pub first: PhysicalAddress,
    /// The last byte, inclusive: no address follows the last one of the address space.
    pub last: PhysicalAddress,
    /// The use: `System RAM`, `Kernel code`, a device.
    pub name: Name,
}

impl Resources {
    /// Decodes `/proc/iomem`: a row `first-last : name` for each resource, indented by two spaces for each resource
    /// around it.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadLine> {
        let rows = text::lines(bytes);
        let rows = rows.map(|line| resource(line.bytes).ok_or_else(|| line.bad("iomem")));
        let rows: Vec<Resource> = rows.collect::<Result<_, _>>()?;
        let system = system_memory(&rows);
        Ok(Resources { rows, system })
    }

    /// Returns whether all of `frame` is system memory, and the first later frame for which that may differ. Memory
    /// that was added later is inside the resource of its device: `System RAM (kmem)`, `System RAM (virtio_mem)`.
    pub fn is_system_memory(&self, frame: FrameNumber, page: PageSize) -> (bool, FrameNumber) {
        // A frame that is only partly system memory does not count.
        let frames = |&(first, last): &(u64, u64)| {
            let is_whole = page.bytes() - 1 - last % page.bytes() == 0;
            (first.div_ceil(page.bytes()), (last >> page.shift()) + u64::from(is_whole))
        };
        let next = self.system.partition_point(|stretch| frames(stretch).1 <= frame.get());
        let (is_system, end) = match self.system.get(next).map(frames) {
            Some((first, end)) if first <= frame.get() => (true, end),
            Some((first, _)) => (false, first),
            None => (false, u64::MAX),
        };
        (is_system, FrameNumber::new(end))
    }

    /// Returns whether the kernel hides the addresses: without CAP_SYS_ADMIN all are 0 (Linux 4.6).
    pub fn are_hidden(&self) -> bool {
        let nowhere = |resource: &Resource| (resource.first.get(), resource.last.get()) == (0, 0);
        !self.rows.is_empty() && self.rows.iter().all(nowhere)
    }

    /// Returns whether the file has no rows. No machine is so, but containers mount an empty file over this one.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the resources that contain `address`, the outermost first.
    pub fn at(&self, address: PhysicalAddress) -> Vec<&Resource> {
        let mut nested: Vec<&Resource> = Vec::new();
        for resource in &self.rows {
            let holds = resource.first <= address && address <= resource.last;
            if holds && resource.depth == nested.len() {
                nested.push(resource);
            }
        }
        nested
    }
}

/// Returns the ranges of system memory, joined. Resources inside (`Kernel code`) are system memory too.
fn system_memory(rows: &[Resource]) -> Vec<(u64, u64)> {
    let is_system = |row: &&Resource| row.name.as_bytes().starts_with(b"System RAM");
    let mut all: Vec<(u64, u64)> = rows.iter().filter(is_system).map(|row| (row.first.get(), row.last.get())).collect();
    all.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (first, last) in all.into_iter().filter(|(first, last)| first <= last) {
        match merged.last_mut() {
            Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
            _ => merged.push((first, last)),
        }
    }
    merged
}

fn resource(line: &[u8]) -> Option<Resource> {
    let indent = line.iter().take_while(|&&byte| byte == b' ').count();
    let (range, name) = text::split_once(line.get(indent..)?, b' ')?;
    let (first, last) = text::split_once(range, b'-')?;
    Some(Resource {
        depth: indent / 2,
        first: PhysicalAddress::new(text::hexadecimal(first)?),
        last: PhysicalAddress::new(text::hexadecimal(last)?),
        name: Name::new(name.strip_prefix(b": ")?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ZONEINFO: &[u8] = b"Node 0, zone      DMA
  per-node stats
      nr_inactive_anon 2789
  pages free     3840
        boost    0
        spanned  4095
        present  3998
        protection: (0, 3019, 7627, 7627, 7627)
  node_unreclaimable:  0
  start_pfn:           1
Node 0, zone   Normal
  pages free     0
        spanned  1044480
        present  782336
  start_pfn:           4096
Node 1, zone  Movable
  pages free     0
        spanned  0
        present  0
  start_pfn:           0
Node 1, zone   Device
  pages free     0
        spanned  10
  start_pfn:           1048576
";

    #[test]
    fn zone_and_node_of_a_frame() {
        let zones = Zones::parse(ZONEINFO).expect("zones");
        let of = |frame| zones.of(FrameNumber::new(frame)).map(|zone| (zone.node, &*zone.name));
        assert_eq!(of(0), None);
        assert_eq!(of(1), Some((0, "DMA")));
        assert_eq!(of(4095), Some((0, "DMA")));
        assert_eq!(of(4096), Some((0, "Normal")));
        assert_eq!(of(1_048_575), Some((0, "Normal")));
        assert_eq!(of(1_048_585), Some((1, "Device")));
        assert_eq!(of(1_048_586), None);
        assert_eq!(of(u64::MAX), None);
        assert_eq!(zones.iter().count(), 3);
    }

    /// Node 1 has frames 100 to 199 in the midst of those of node 0.
    #[test]
    fn where_nodes_interleave_the_zone_is_unknown() {
        let text = b"Node 0, zone Normal\n spanned 290\n start_pfn: 10\n\
            Node 1, zone Normal\n spanned 100\n start_pfn: 100\n";
        let zones = Zones::parse(text).expect("zones");
        let of = |frame| {
            let span = zones.span_of(FrameNumber::new(frame));
            (span.spanned, span.end.get())
        };
        assert_eq!(of(9), (ZoneLookup::InNone, 10));
        assert_eq!(of(10), (ZoneLookup::In(0), 100));
        assert_eq!(of(150), (ZoneLookup::InSeveral, 200));
        assert_eq!(of(299), (ZoneLookup::In(0), 300));
        assert_eq!(of(300), (ZoneLookup::InNone, u64::MAX));
        assert_eq!(zones.of(FrameNumber::new(150)), None);
    }

    #[test]
    fn free_frames_of_processors_are_added_up() {
        let text = "Node 0, zone      DMA\n  pages free     3840\n  pagesets\n    cpu: 0\n              count:    0\n\
            Node 0, zone   Normal\n    cpu: 0\n              count:    2581\n              high:     337141\n    cpu: 1\n\
            \x20             count:    4920\n";
        assert_eq!(Zones::frames_of_processors(text.as_bytes()).ok(), Some(7501));
        assert!(Zones::frames_of_processors(b"  count: many\n").is_err());
    }

    #[test]
    fn a_bad_number_of_zoneinfo_is_named() {
        let error = Zones::parse(b"Node 0, zone DMA\n  spanned many\n").expect_err("a bad line");
        assert_eq!(error.line, 2);
    }

    proptest! {
        #[test]
        fn no_bytes_make_zones_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            _ = Zones::parse(&bytes);
        }
    }

    const IOMEM: &[u8] = b"00000000-00000fff : Reserved
00001000-0009fbff : System RAM
00100000-bfffffff : System RAM
  01000000-0220bb07 : Kernel code
  03000000-0327c13f : Kernel data
eec00000-febfffff : Reserved
  eec00000-eecfffff : PCI ECAM 0000 [bus 00-00]
    eec00000-eecfffff : PCI Bus 0000:00
100000000-ffffffffffffffff : System RAM
";

    #[test]
    fn resources_of_an_address() {
        let resources = Resources::parse(IOMEM).expect("rows");
        assert!(!resources.are_hidden());
        let at = |address| {
            let nested = resources.at(PhysicalAddress::new(address));
            let names = nested.iter().map(|resource| resource.name.to_string());
            names.collect::<Vec<_>>()
        };
        assert_eq!(at(0), ["Reserved"]);
        assert_eq!(at(0xfff), ["Reserved"]);
        assert_eq!(at(0x1000), ["System RAM"]);
        assert!(at(0x9_fc00).is_empty());
        assert_eq!(at(0x100_0000), ["System RAM", "Kernel code"]);
        assert_eq!(at(0x220_bb07), ["System RAM", "Kernel code"]);
        assert_eq!(at(0x220_bb08), ["System RAM"]);
        let deep = ["Reserved", "PCI ECAM 0000 [bus 00-00]", "PCI Bus 0000:00"];
        assert_eq!(at(0xeec0_0000), deep);
        assert_eq!(at(u64::MAX), ["System RAM"]);
    }

    #[test]
    fn system_memory_is_found_by_frame() {
        let text = b"00001000-0009fbff : System RAM\n00100000-bfffffff : System RAM\n  01000000-0220bb07 : Kernel code\n\
            100000000-13fffffff : System RAM\n140000000-17fffffff : Persistent Memory\n  140000000-14fffffff : namespace0.0\n\
            180000000-1ffffffff : dax0.0\n  180000000-1ffffffff : System RAM (kmem)\n";
        let resources = Resources::parse(text).expect("rows");
        let at = |frame| {
            let (is, end) = resources.is_system_memory(FrameNumber::new(frame), PageSize::FOUR_KIB);
            (is, end.get())
        };
        assert_eq!(at(0), (false, 1));
        assert_eq!(at(1), (true, 0x9f));
        // A part of a page is none.
        assert_eq!(at(0x9f), (false, 0x100));
        assert_eq!(at(0x1000), (true, 0xc_0000));
        assert_eq!(at(0xc_0000), (false, 0x10_0000));
        assert_eq!(at(0x10_0000), (true, 0x14_0000));
        assert_eq!(at(0x14_0000), (false, 0x18_0000));
        assert_eq!(at(0x18_0000), (true, 0x20_0000));
        assert_eq!(at(0x20_0000), (false, u64::MAX));
        let whole = Resources::parse(b"0-ffffffffffffffff : System RAM\n5-3 : System RAM\n").expect("rows");
        assert!(whole.is_system_memory(FrameNumber::new(1 << 51), PageSize::FOUR_KIB).0);
    }

    #[test]
    fn hidden_addresses() {
        let hidden = b"00000000-00000000 : Reserved\n  00000000-00000000 : Kernel code\n";
        assert!(Resources::parse(hidden).expect("rows").are_hidden());
        let none = Resources::parse(b"").expect("no rows");
        assert!(none.is_empty() && !none.are_hidden());
    }

    #[test]
    fn a_bad_line_of_iomem_is_named() {
        for bad in ["0-f Reserved", "0 : Reserved", "-f : Reserved", "0-g : x"] {
            let text = format!("0-f : Reserved\n{bad}\n");
            let error = Resources::parse(text.as_bytes()).expect_err("a bad line");
            assert_eq!((error.file, error.line), ("iomem", 2), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_resources_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), address: u64) {
            if let Ok(resources) = Resources::parse(&bytes) {
                resources.at(PhysicalAddress::new(address));
                let frame = FrameNumber::new(address);
                assert!(resources.is_system_memory(frame, PageSize::FOUR_KIB).1 > frame || address == u64::MAX);
            }
        }
    }
}
