//! The contents of an ELF core file: memory, regions, threads, and the words of the page map.

use crate::access::{Error, ReadAt, Result};
use crate::budget::Budget;
use crate::kernel::core_file::{self as core, CoreMapping};
use crate::kernel::core_notes::{CoreNotes, CoreSegment, NoteFault};
use crate::kernel::elf::{ElfForm, ElfHeader, ProgramHeader};
use crate::kernel::{AddressRange, PageMapEntry, PageSize, Region, VirtualAddress};
use crate::own::memory;
use std::collections::HashMap;
use std::sync::Arc;

/// The most program headers that are read. Each resident run of a process has one.
const MOST_SEGMENTS: u64 = 1 << 22;
/// The most bytes of notes that are read: those of pmdb have 8 bytes for each page. All notes together are at most as
/// long as the file, so that many headers of the same bytes cannot multiply them.
const MOST_NOTES: u64 = 512 << 20;

/// The decoded contents of a core file.
pub(super) struct Core {
    file: Box<dyn ReadAt>,
    pub notes: Arc<CoreNotes>,
    /// The text of `/proc/PID/maps`; empty if the file does not have it.
    pub maps: Vec<u8>,
    pub pages: Option<PageMapWords>,
}

/// The words of a page map.
pub(super) struct PageMapWords {
    /// The runs: the first page, the number of pages, and the place of the words.
    pub runs: Vec<(u64, u64, usize)>,
    words: Vec<u8>,
}

fn bad(what: &str) -> Error {
    Error::not_available(format!("this core file is damaged: {what} cannot be read"))
}

pub(super) fn not_in_core<T>(what: &str) -> Result<T> {
    Err(Error::not_in("this core", what))
}

fn part(file: &dyn ReadAt, offset: u64, size: u64, what: &str) -> Result<Vec<u8>> {
    let is_within = offset.checked_add(size).is_some_and(|end| end <= file.len());
    let mut bytes = if is_within { memory::zeroed(size).map_err(|_| bad(what))? } else { return Err(bad(what)) };
    match file.read_up_to(offset, &mut bytes) {
        Ok(read) if read == bytes.len() => Ok(bytes),
        _ => Err(bad(what)),
    }
}

impl Core {
    pub fn read(file: Box<dyn ReadAt>, budget: &mut Budget) -> Result<Self> {
        let what = "its header";
        let head = part(&*file, 0, (ElfHeader::BYTES as u64).min(file.len()), what)?;
        let header = ElfHeader::parse(&head).ok_or_else(|| bad(what))?;
        let (form, processor, size) = (header.start.form, header.start.machine, u64::from(header.program_bytes));
        let count = match header.program_count {
            Some(count) => u64::from(count),
            None => {
                let first = part(&*file, header.sections, header.section_bytes(), "its first section header")?;
                header.count_in_section(&first).map_or(0, u64::from)
            }
        };
        if count > MOST_SEGMENTS || size < ProgramHeader::bytes(form).into() {
            return Err(bad("its program headers"));
        }
        let table = part(&*file, header.programs, count.saturating_mul(size), "its program headers")?;
        let (mut segments, mut notes) = (Vec::new(), Vec::new());
        for header in table.chunks_exact(size as usize) {
            budget.go_on()?;
            let header = ProgramHeader::parse(form, header).ok_or_else(|| bad("a program header"))?;
            let segment = CoreSegment::of(&header).ok_or_else(|| bad("a program header"))?;
            match header.kind {
                // In a truncated file a segment has only the bytes that are left.
                ProgramHeader::LOAD if segment.start < segment.end => {
                    let left = file.len().saturating_sub(segment.offset);
                    segments.push(CoreSegment { stored_bytes: segment.stored_bytes.min(left), ..segment });
                }
                ProgramHeader::NOTE
                    if segment.stored_bytes.saturating_add(notes.len() as u64) <= MOST_NOTES.min(file.len()) =>
                {
                    notes.extend(part(&*file, segment.offset, segment.stored_bytes, "its notes")?);
                }
                _ => {}
            }
        }
        segments.sort_by_cached_key(|segment| segment.start);
        if segments.windows(2).any(|pair| pair[0].end > pair[1].start) {
            return Err(bad("its list of segments"));
        }
        let mut of_process = CoreNotes::new(form, processor, segments);
        let (mut maps, mut pages) = (Vec::new(), None);
        for note in core::notes(form, &notes) {
            budget.look()?;
            match (note.name, note.kind) {
                (core::PMDB, core::MAPS) => maps = note.bytes.to_vec(),
                (core::PMDB, core::PAGE_MAP) => {
                    let words = PageMapWords::of(form, note.bytes, budget)?;
                    pages = Some(words.ok_or_else(|| bad("the note of its pages"))?);
                }
                _ => of_process.add(note, budget).map_err(|fault| match fault {
                    NoteFault::Damaged(what) => bad(what),
                    NoteFault::OutOfBudget(over) => over.into(),
                })?,
            }
        }
        of_process.end();
        of_process.has_maps = !maps.is_empty();
        let mut core = Core { file, notes: Arc::new(of_process), maps, pages };
        if !core.notes.has_maps {
            core.add_left_out(budget)?;
        }
        Ok(core)
    }

    /// Adds the mappings of files without a segment: gdb writes none if it leaves out the memory. Their rights are
    /// those of the file's program header, if exactly one is loaded at these addresses.
    fn add_left_out(&mut self, budget: &mut Budget) -> Result<()> {
        // The first mapping of the beginning of each file.
        let mut heads: HashMap<&[u8], &CoreMapping> = HashMap::new();
        for mapping in self.notes.mappings.iter().rev().filter(|mapping| mapping.offset == 0) {
            budget.go_on()?;
            heads.insert(&mapping.path, mapping);
        }
        let mut added = Vec::new();
        for mapping in &self.notes.mappings {
            budget.go_on()?;
            let (start, end) = (mapping.range.start().get(), mapping.range.end().get());
            let after = self.notes.segments.partition_point(|segment| segment.end <= start);
            if self.notes.segments.get(after).is_some_and(|segment| segment.start < end) {
                continue;
            }
            let flags = heads.get(&*mapping.path).and_then(|head| self.flags_in_file(mapping, head, budget));
            added.push(CoreSegment { start, end, offset: 0, stored_bytes: 0, flags });
            budget.check()?;
        }
        added.extend(self.notes.segments.iter().copied());
        added.sort_by_cached_key(|segment| segment.start);
        // A damaged file may have mappings that overlap.
        added.dedup_by(|next, one| next.start < one.end);
        Arc::make_mut(&mut self.notes).segments = added;
        Ok(())
    }

    /// Returns the flags of the file's segment that is mapped, if the header of the file is in memory, where `start`
    /// maps it.
    fn flags_in_file(&self, mapping: &CoreMapping, start: &CoreMapping, budget: &mut Budget) -> Option<u32> {
        let mut head = vec![0; PageSize::FOUR_KIB.bytes() as usize];
        let read = self.memory(start.range.start().get(), &mut head).ok()?;
        head.truncate(read);
        let header = ElfHeader::parse(&head)?;
        let (table, size) = (usize::try_from(header.programs).ok()?, usize::from(header.program_bytes));
        let headers = head.get(table..)?.chunks_exact(Some(size).filter(|&size| size > 0)?);
        let headers = headers.take(header.program_count?.into());
        budget.spend(headers.len() as u64).ok()?;
        let read = |bytes| {
            let header = ProgramHeader::parse(self.notes.form, bytes)?;
            Some((header.kind, CoreSegment::of(&header)?))
        };
        let of_file: Vec<_> = headers.filter_map(read).collect();
        // Two segments may share a page of the file, and each has that page at a different address.
        let floor = |address: u64| address - address % self.notes.page.bytes();
        let loaded = || of_file.iter().filter(|(kind, _)| *kind == ProgramHeader::LOAD).map(|(_, segment)| segment);
        let first = floor(loaded().find(|segment| floor(segment.offset) == 0)?.start);
        let into = mapping.range.start().get().checked_sub(start.range.start().get())?;
        let address = into.checked_add(first)?;
        let is_in = |one: &&CoreSegment| (floor(one.start)..one.end).contains(&address);
        let mut found = loaded().filter(is_in);
        let (Some(one), None) = (found.next(), found.next()) else {
            return None;
        };
        let is_there = address - floor(one.start) == mapping.offset.checked_sub(floor(one.offset))?;
        let may_have_changed = of_file.iter().any(|(kind, segment)| *kind == ProgramHeader::RELRO && is_in(&segment));
        one.flags.filter(|_| is_there && !may_have_changed)
    }

    /// Returns whether the file of a region has this path. In its list of mapped files, pmdb writes the path of a
    /// deleted file without the kernel's mark, and the kernel writes it with the mark: only a core of pmdb has the
    /// answer.
    pub fn is_named(&self, region: &Region, path: &[u8]) -> Result<Vec<u64>> {
        let from = self.notes.mappings.partition_point(|mapping| mapping.range.start() < region.range.start());
        let mut mappings = self.notes.mappings.iter().skip(from);
        let mapping = mappings.find(|one| one.range == region.range || one.range.start() > region.range.start());
        let mapping = mapping.filter(|one| one.range == region.range);
        match mapping.filter(|_| self.pages.is_some()) {
            Some(mapping) => Ok(vec![(mapping.path == path).into()]),
            None => not_in_core("whether the file of this region was deleted"),
        }
    }

    /// Returns the ranges of memory in the file, in order.
    pub fn stored(&self) -> Vec<AddressRange> {
        let stored = |segment: &CoreSegment| {
            let length = segment.stored_bytes.min(segment.end - segment.start);
            AddressRange::of_length(VirtualAddress::new(segment.start), length)
        };
        self.notes.segments.iter().filter_map(stored).collect()
    }

    /// Reads memory, as far as the file contains it.
    pub fn memory(&self, address: u64, into: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = address.saturating_add(done as u64);
            let above = self.notes.segments.partition_point(|segment| segment.start <= at);
            let segment = above.checked_sub(1).and_then(|below| self.notes.segments.get(below));
            let Some((segment, left)) = segment.and_then(|segment| {
                let left = segment.stored_bytes.min(segment.end - segment.start).checked_sub(at - segment.start)?;
                (left > 0).then_some((segment, left))
            }) else {
                break;
            };
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
            let place = segment.offset.saturating_add(at - segment.start);
            let read = self.file.read_up_to(place, rest.get_mut(..length).unwrap_or_default());
            let read = read.map_err(|_| bad("memory"))?;
            done += read;
            if read < length {
                break;
            }
        }
        Ok(done)
    }
}

impl PageMapWords {
    /// Returns whether the kernel showed frame numbers to the process that wrote the core.
    pub fn has_frames(&self, form: ElfForm) -> bool {
        let entries =
            (0..self.words.len()).step_by(8).filter_map(|at| form.long(&self.words, at)).map(PageMapEntry::new);
        entries.filter(|entry| entry.is_present()).map(|entry| !entry.is_frame_hidden()).next().unwrap_or(true)
    }

    /// Decodes the note of the page map; `None` if it is damaged.
    fn of(form: ElfForm, bytes: &[u8], budget: &mut Budget) -> Result<Option<Self>> {
        let count = form.long(bytes, 0).and_then(|count| usize::try_from(count).ok());
        let parts = count.and_then(|count| bytes.get(8..)?.split_at_checked(count.checked_mul(16)?));
        let Some((table, words)) = parts else {
            return Ok(None);
        };
        let (mut runs, mut at, mut last) = (Vec::new(), 0usize, 0);
        let mut add = |run: &[u8]| {
            let (first, pages) = (form.long(run, 0)?, form.long(run, 8)?);
            (first >= last).then_some(())?;
            last = first.checked_add(pages)?;
            runs.push((first, pages, at));
            at = at.checked_add(usize::try_from(pages).ok()?.checked_mul(8)?)?;
            (at <= words.len()).then_some(())
        };
        for run in table.chunks_exact(16) {
            budget.go_on()?;
            if add(run).is_none() {
                return Ok(None);
            }
        }
        Ok(Some(PageMapWords { runs, words: words.to_vec() }))
    }

    pub fn read(&self, form: ElfForm, first: u64, into: &mut [u64]) {
        let end = first.saturating_add(into.len() as u64);
        let from = self.runs.partition_point(|(start, pages, _)| start + pages <= first);
        for &(start, pages, at) in self.runs.get(from..).unwrap_or_default().iter().take_while(|run| run.0 < end) {
            for page in start.max(first)..(start + pages).min(end) {
                let word = form.long(&self.words, at + 8 * (page - start) as usize);
                if let (Some(place), Some(word)) = (into.get_mut((page - first) as usize), word) {
                    *place = word;
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
