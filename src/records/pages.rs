//! Reads and decodes records of pages (`struct page`).

use super::bases::{self, Bases};
use super::ground::Ground;
use super::image::Image;
use super::layout::{Member, PageLayout};
use super::record::{FrameOwner, FrameRecord, PageOfFile, RecordParts};
use crate::access::{Error, Result};
use crate::kernel::{Device, FrameNumber, PageFlags};
use std::ops::Range;

/// The kernel's records of pages, with their place and layout.
pub(super) struct PageRecords {
    pub(super) image: Image,
    pub(super) layout: PageLayout,
    pub(super) page_bytes: u64,
    pub(super) bases: Bases,
}

/// The bytes of one record.
#[derive(Clone, Copy)]
pub(super) struct RawPage<'a> {
    pages: &'a PageRecords,
    bytes: &'a [u8],
}

/// The counts and other fields of a folio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FolioNumbers {
    pub(super) head: u64,
    pub(super) order: u8,
    pub(super) flags: PageFlags,
    pub(super) references: u32,
    /// The mappings of the folio as a whole.
    pub(super) entire: u64,
    pub(super) mapping: u64,
    pub(super) index: u64,
    /// The mappings of its first page alone.
    maps: u64,
    /// All mappings of a large folio, if the kernel keeps that count.
    all_maps: Option<u64>,
    /// The pins of a large folio.
    pub(super) pins: Option<u32>,
}

impl FolioNumbers {
    /// Returns whether `mapping` is the owner. Pages of the kernel may have other data there.
    pub(super) fn may_have_owner(&self) -> bool {
        let has_owner = PageFlags::LRU | PageFlags::UPTODATE | PageFlags::SWAPBACKED;
        self.flags.intersects(has_owner) && !self.flags.contains(PageFlags::SLAB)
    }
}

/// The number of frames in one read: some 64 KiB.
const READ_FRAMES: usize = 1024;

/// The largest order of a folio: 16 GiB of 4 KiB pages.
const LARGEST_ORDER: u8 = 22;

impl PageRecords {
    /// Finds the records. The direct map is where the random bytes of `ground` are.
    pub(super) fn find(image: Image, layout: PageLayout, ground: &dyn Ground) -> Result<PageRecords> {
        let page_bytes = ground.page_bytes();
        if image.info("SIZE(page)", 10).is_some_and(|size| size != layout.page) {
            return Err(unproved("VMCOREINFO and BTF differ on the size of struct page"));
        }
        let sample = ground.sample().ok_or_else(|| unproved("pmdb cannot see the frame of a page of its own"))?;
        let is_direct_map = |&memory: &u64| {
            let mut found = vec![0; sample.bytes.len()];
            let address = memory.wrapping_add(sample.frame.wrapping_mul(page_bytes)).wrapping_add(sample.offset);
            image.read(address, &mut found).is_some() && found == sample.bytes
        };
        let memory = bases::distances(&image).into_iter().find(is_direct_map);
        let memory = memory.ok_or_else(|| unproved("the page of pmdb's own with random bytes was not found in it"))?;
        let records = bases::record_bases(&image, memory, page_bytes, layout.page);
        let by_section = bases::by_section(&image, &layout, sample.frame, page_bytes);
        let is_likely = |&base: &u64| {
            let address = base.wrapping_add(sample.frame.wrapping_mul(layout.page));
            (by_section.is_empty() || by_section.contains(&base)) && image.word(address).is_some()
        };
        let records = records.into_iter().find(is_likely);
        let records = records.ok_or_else(|| unproved("its segments do not show where struct page is"))?;
        Ok(PageRecords { image, layout, page_bytes, bases: Bases { memory, records } })
    }

    /// Returns the ranges of frames in the direct map.
    pub(super) fn frame_ranges(&self) -> Vec<Range<u64>> {
        let ram = self.image.segments().iter().filter_map(|segment| {
            let physical = segment.physical.filter(|&at| segment.start.wrapping_sub(at) == self.bases.memory)?;
            Some(physical / self.page_bytes..physical.checked_add(segment.length)? / self.page_bytes)
        });
        ram.filter(|range| range.start < range.end).collect()
    }

    /// Returns the first frames of places that are spread over all memory.
    pub(super) fn places(&self, places: u64) -> Vec<u64> {
        let ranges = self.frame_ranges();
        let all: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        let first = |place: u64| {
            let mut skipped = all / places * place;
            ranges.iter().find_map(|range| {
                let length = range.end - range.start;
                let here = (skipped < length).then_some(range.start + skipped);
                skipped = skipped.saturating_sub(length);
                here
            })
        };
        (0..places).filter_map(first).collect()
    }

    /// Returns the kernel address of a frame's record.
    pub(super) fn address(&self, frame: u64) -> Option<u64> {
        self.bases.records.checked_add(frame.checked_mul(self.layout.page)?)
    }

    /// Returns the kernel address of a physical address.
    pub(super) fn memory_at(&self, physical: u64) -> Option<u64> {
        let is_there = self.frame_ranges().iter().any(|range| range.contains(&(physical / self.page_bytes)));
        is_there.then(|| self.bases.memory.wrapping_add(physical))
    }

    /// Returns the frame whose record is at a kernel address.
    fn frame_at(&self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.bases.records)?;
        offset.is_multiple_of(self.layout.page).then_some(offset / self.layout.page)
    }

    /// Reads the bytes of records; zeros for those that the kernel does not show.
    pub(super) fn read_bytes(&self, first: u64, frames: usize) -> Vec<u8> {
        let mut bytes = vec![0; frames * self.layout.page as usize];
        self.read_bytes_into(first, &mut bytes);
        bytes
    }

    fn read_bytes_into(&self, first: u64, bytes: &mut [u8]) {
        match self.address(first) {
            Some(address) => self.image.read_covered(address, bytes),
            None => bytes.fill(0),
        }
    }

    /// Returns the records in such bytes; `None` for zeros, which no record consists of, so that the kernel did not
    /// show it.
    pub(super) fn each<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = Option<RawPage<'a>>> {
        let records = bytes.chunks_exact(self.layout.page as usize);
        records.map(|bytes| bytes.iter().any(|&byte| byte != 0).then_some(RawPage { pages: self, bytes }))
    }

    /// Calls `look` with the record of one frame.
    pub(super) fn with<T>(&self, frame: u64, look: impl FnOnce(RawPage<'_>) -> Option<T>) -> Option<T> {
        let bytes = self.read_bytes(frame, 1);
        look(self.each(&bytes).next()??)
    }

    /// Returns the page cache of a frame: an address that only [`file`](Self::file) proves.
    pub(super) fn page_cache(&self, frame: u64) -> Option<u64> {
        let folio = self.folio(self.with(frame, |page| page.head(frame))?)?;
        (folio.may_have_owner() && folio.mapping & 3 == 0 && folio.mapping != 0).then_some(folio.mapping)
    }

    /// Reads the folio that begins with `head`.
    pub(super) fn folio(&self, head: u64) -> Option<FolioNumbers> {
        let bytes = self.read_bytes(head, 1);
        self.folio_of(self.each(&bytes).next()??, head, &[])
    }

    /// Decodes the folio that begins with this record, that of frame `head`. The records after it are read if they are
    /// not in `behind`.
    fn folio_of(&self, page: RawPage<'_>, head: u64, behind: &[u8]) -> Option<FolioNumbers> {
        let mut numbers = page.as_folio(head)?;
        if numbers.flags.contains(PageFlags::COMPOUND_HEAD) {
            let size = self.layout.page as usize;
            let records = self.layout.folio_records() - 1;
            let read = if behind.len() < records * size { self.read_bytes(head + 1, records) } else { Vec::new() };
            let behind = if read.is_empty() { behind } else { &read };
            let half = |member| {
                let at = usize::try_from(self.layout.at(member)?).ok()?;
                let (bytes, at) = at.checked_sub(size).map_or((page.bytes, at), |at| (behind, at));
                self.image.number(bytes, at, 4).map(|number| number as u32)
            };
            let pages = half(Member::Pages)?;
            let order = u8::try_from(pages.trailing_zeros()).ok()?;
            numbers.order =
                Some(order).filter(|&order| pages.is_power_of_two() && (1..=LARGEST_ORDER).contains(&order))?;
            numbers.entire = half(Member::EntireMaps).and_then(count).unwrap_or_default();
            numbers.all_maps = half(Member::AllMaps).and_then(count);
            // Before Linux 5.18 a folio of two pages had no room for the count (`hpage_pincount_available`).
            let has_room = order >= 2 || self.layout.at(Member::Pins).is_some_and(|at| at < 2 * self.layout.page);
            numbers.pins = half(Member::Pins).filter(|_| has_room);
        }
        let aligned = head & ((1u64 << numbers.order) - 1) == 0;
        aligned.then_some(numbers)
    }

    /// Returns the number of all mappings of a folio.
    pub(super) fn mappings(&self, folio: &FolioNumbers) -> Option<u64> {
        if folio.order == 0 {
            return Some(folio.maps);
        }
        if self.layout.at(Member::AllMaps).is_some() {
            return folio.all_maps;
        }
        let pages = 1u64 << folio.order;
        let mut sum = 0;
        for first in (0..pages).step_by(READ_FRAMES) {
            let frames = (pages - first).min(READ_FRAMES as u64) as usize;
            let bytes = self.read_bytes(folio.head + first, frames);
            for page in self.each(&bytes) {
                sum += page?.maps()?;
            }
        }
        // Up to Linux 6.1 the counts of the pages of a file's folio include its mappings as a whole. Those of an
        // anonymous folio that is mapped in both ways are one too high for each page (`total_mapcount` in
        // mm/huge_memory.c).
        let twice = match self.layout.double_map {
            // Pages of the hugetlb pool do not count mappings of single pages.
            _ if sum == 0 => 0,
            None => 0,
            Some(_) if !is_anonymous(folio.mapping) => folio.entire.checked_mul(pages)?,
            Some(bit) => {
                let second = self.with(folio.head + 1, |page| page.word(Member::Flags))?;
                (second >> bit & 1) * pages
            }
        };
        folio.entire.checked_add(sum)?.checked_sub(twice)
    }

    /// Decodes `mapping`.
    fn owner(&self, folio: &FolioNumbers, frame: u64, last: &mut Option<(u64, PageOfFile)>) -> Option<FrameOwner> {
        Some(match folio.mapping & 3 {
            _ if !folio.may_have_owner() => FrameOwner::Unrecorded,
            1 => FrameOwner::Anonymous,
            3 => FrameOwner::Merged,
            0 if folio.mapping != 0 => {
                let file = match *last {
                    Some((mapping, file)) if mapping == folio.mapping => file,
                    _ => self.file(folio.mapping)?,
                };
                *last = Some((folio.mapping, file));
                let index = folio.index.checked_add(frame - folio.head)?;
                FrameOwner::File(PageOfFile { index, ..file })
            }
            _ => FrameOwner::Unrecorded,
        })
    }

    /// Returns the file of a page cache. The address is accepted if the file has this page cache.
    pub(super) fn file(&self, mapping: u64) -> Option<PageOfFile> {
        let follow = |address: u64, member| self.image.word(address.checked_add(self.layout.at(member)?)?);
        let inode = follow(mapping, Member::Host)?;
        if follow(inode, Member::InodeMapping)? != mapping {
            return None;
        }
        let number = follow(inode, Member::InodeNumber)?;
        let filesystem = follow(inode, Member::InodeFilesystem)?;
        let device = self.image.half(filesystem.checked_add(self.layout.at(Member::FilesystemDevice)?)?)?;
        // The kernel's internal form of device numbers (MINORBITS in include/linux/kdev_t.h).
        let device = Device { major: device >> 20, minor: device & 0xf_ffff };
        Some(PageOfFile { device, inode: number, index: 0 })
    }

    /// Reads the records of the frames from `first` on. Only large folios need further reads.
    pub(super) fn read(&self, first: u64, parts: RecordParts, into: &mut [FrameRecord]) {
        let mut folio: Option<(FolioNumbers, FrameRecord)> = None;
        // The file of the last page of a file, by its page cache.
        let mut file = None;
        // Neighbouring frames mostly have the same flags.
        let mut flags = (0, self.layout.flags(0));
        let mut at = first;
        let mut bytes = vec![0; into.len().min(READ_FRAMES) * self.layout.page as usize];
        for part in into.chunks_mut(READ_FRAMES) {
            bytes.truncate(part.len() * self.layout.page as usize);
            self.read_bytes_into(at, &mut bytes);
            let mut behind = &bytes[..];
            for (record, page) in part.iter_mut().zip(self.each(&bytes)) {
                let frame = at;
                at += 1;
                behind = behind.get(self.layout.page as usize..).unwrap_or_default();
                let Some((page, head)) = page.and_then(|page| Some((page, page.head(frame)?))) else {
                    *record = FrameRecord::default();
                    continue;
                };
                let word = page.word(Member::Flags).unwrap_or_default();
                if word != flags.0 {
                    flags = (word, self.layout.flags(word));
                }
                if head == frame && !flags.1.contains(PageFlags::COMPOUND_HEAD) {
                    // Further frames cannot belong to this folio.
                    *record = FrameRecord::default();
                    if let Some(numbers) = page.with_flags(head, flags.1) {
                        *record = self.of_whole(&numbers, parts);
                        if parts.contains(RecordParts::OWNER) {
                            record.owner = self.owner(&numbers, frame, &mut file);
                        }
                    }
                    continue;
                }
                *record = FrameRecord::default();
                if folio.is_none_or(|(known, _)| known.head != head) {
                    let numbers = if head == frame { self.folio_of(page, head, behind) } else { self.folio(head) };
                    folio = numbers.map(|numbers| (numbers, self.of_whole(&numbers, parts)));
                }
                let Some((numbers, whole)) = &folio else {
                    continue;
                };
                // The folio was split since, and does not extend to this frame.
                if frame - head >= 1 << numbers.order {
                    continue;
                }
                *record = *whole;
                if parts.contains(RecordParts::OWNER) {
                    record.owner = self.owner(numbers, frame, &mut file);
                }
            }
        }
    }

    /// Returns the parts that all frames of a folio have in common.
    fn of_whole(&self, folio: &FolioNumbers, parts: RecordParts) -> FrameRecord {
        let is_asked = |part| parts.contains(part);
        let is_folio = is_asked(RecordParts::FOLIO);
        let of_this_size = if folio.order == 0 { RecordParts::MAPPINGS } else { RecordParts::LARGE_MAPPINGS };
        FrameRecord {
            head: is_folio.then_some(FrameNumber::new(folio.head)),
            order: is_folio.then_some(folio.order),
            flags: is_folio.then_some(folio.flags),
            references: is_asked(RecordParts::REFERENCES).then_some(folio.references),
            mappings: if is_asked(of_this_size) { self.mappings(folio) } else { None },
            pins: folio.pins.filter(|_| is_asked(RecordParts::PINS)),
            owner: None,
        }
    }
}

impl RawPage<'_> {
    /// Returns the number of `size` bytes at this offset.
    pub(super) fn number(&self, at: u64, size: usize) -> Option<u64> {
        self.pages.image.number(self.bytes, usize::try_from(at).ok()?, size)
    }

    pub(super) fn word(&self, member: Member) -> Option<u64> {
        self.number(self.pages.layout.at(member)?, 8)
    }

    pub(super) fn half(&self, member: Member) -> Option<u32> {
        Some(self.number(self.pages.layout.at(member)?, 4)? as u32)
    }

    pub(super) fn flags(&self) -> Option<PageFlags> {
        self.word(Member::Flags).map(|word| self.pages.layout.flags(word))
    }

    /// Returns the mappings of this page alone.
    pub(super) fn maps(&self) -> Option<u64> {
        // Pages that page tables do not map have another number there, which is negative.
        Some(count(self.half(Member::Maps)?).unwrap_or(0))
    }

    /// Returns the first frame of the folio to which this record, that of `frame`, belongs.
    pub(super) fn head(&self, frame: u64) -> Option<u64> {
        let info = self.word(Member::Compound)?;
        if info & 1 == 0 {
            return Some(frame);
        }
        let pages = self.pages;
        let first =
            |address: u64| pages.frame_at(address).filter(|&head| head < frame && frame - head < 1 << LARGEST_ORDER);
        // The link is an address, or since Linux 7.1 a mask of addresses.
        first(info - 1).or_else(|| {
            let mask = info & !1 | 1;
            let is_mask = (!info | 1).wrapping_add(1).is_power_of_two();
            first(pages.address(frame)? & mask).filter(|_| is_mask)
        })
    }

    /// Decodes the folio that begins with this record, as if it were a single page.
    fn as_folio(&self, head: u64) -> Option<FolioNumbers> {
        self.with_flags(head, self.flags()?)
    }

    /// Decodes the folio of a record with these flags, as if it were a single page.
    fn with_flags(&self, head: u64, flags: PageFlags) -> Option<FolioNumbers> {
        (self.word(Member::Compound)? & 1 == 0).then_some(())?;
        Some(FolioNumbers {
            head,
            order: 0,
            flags,
            references: self.half(Member::References)?,
            entire: 0,
            mapping: self.word(Member::Mapping)?,
            index: self.word(Member::Index).unwrap_or_default(),
            maps: self.maps()?,
            all_maps: None,
            pins: None,
        })
    }
}

/// Converts a count that begins at -1.
fn count(raw: u32) -> Option<u64> {
    u64::try_from(i64::from(raw as i32) + 1).ok()
}

fn is_anonymous(mapping: u64) -> bool {
    mapping & 1 != 0
}

pub(super) fn unproved(what: &str) -> Error {
    Error::not_available(format!("the layout of /proc/kcore was not proved: {what}"))
}
