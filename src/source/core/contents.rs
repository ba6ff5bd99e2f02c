//! What an ELF core file has: memory, regions, threads, and the words of the page map.

use crate::access::{Error, ReadAt, Result};
use crate::budget::Budget;
use crate::kernel::core_file::{self as core, CoreMapping, CoreNote, CoreProcess, CoreThread};
use crate::kernel::core_machine::CoreMachine;
use crate::kernel::elf::{ElfForm, ElfHeader, ProgramHeader};
use crate::kernel::{AddressRange, PageMapEntry, PageSize, Region, VirtualAddress};
use crate::own::memory;
use crate::source::File;
use std::collections::HashMap;

/// More program headers are not read: each resident run of a process has one.
const MOST_SEGMENTS: u64 = 1 << 22;
/// Larger notes are not read: those of pmdb have 8 bytes for each page.
const MOST_NOTES: u64 = 512 << 20;

/// A part of memory.
#[derive(Clone, Copy)]
struct CoreSegment {
    start: u64,
    end: u64,
    offset: u64,
    /// Bytes that the file has of it.
    stored_bytes: u64,
    /// Its rights; `None` if the core has no program header of it, and its file does not tell.
    flags: Option<u32>,
}

/// What a core file has.
pub(super) struct Core {
    file: Box<dyn ReadAt>,
    pub machine: u16,
    pub form: ElfForm,
    pub page: u64,
    /// In address order, none above another.
    segments: Vec<CoreSegment>,
    pub threads: Vec<CoreThread>,
    /// The place of each thread, by its id.
    places: HashMap<u32, usize>,
    /// The signal that ended or stopped the first of them; 0 without one.
    signal: u16,
    pub process: CoreProcess,
    pub vector: Option<Vec<u8>>,
    /// In address order. A file may claim that they overlap.
    pub mappings: Vec<CoreMapping>,
    pub maps: Vec<u8>,
    pub pages: Option<PageMapWords>,
    /// What pmdb wrote of the machine.
    pub of_machine: Option<CoreMachine>,
}

/// The words of a page map.
pub(super) struct PageMapWords {
    /// For each run its first page, how many it has, and where its words begin.
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
        let (form, machine, size) = (header.start.form, header.start.machine, u64::from(header.program_bytes));
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
                // Of a file that is cut short, a segment has what is left.
                ProgramHeader::LOAD if segment.start < segment.end => {
                    let left = file.len().saturating_sub(segment.offset);
                    segments.push(CoreSegment { stored_bytes: segment.stored_bytes.min(left), ..segment });
                }
                ProgramHeader::NOTE if notes.len() as u64 + segment.stored_bytes <= MOST_NOTES => {
                    notes.extend(part(&*file, segment.offset, segment.stored_bytes, "its notes")?);
                }
                _ => {}
            }
        }
        segments.sort_by_key(|segment| segment.start);
        if segments.windows(2).any(|pair| pair[0].end > pair[1].start) {
            return Err(bad("its list of segments"));
        }
        let mut core = Core {
            file,
            machine,
            form,
            page: PageSize::FOUR_KIB.bytes(),
            segments,
            threads: Vec::new(),
            places: HashMap::new(),
            signal: 0,
            process: CoreProcess::default(),
            vector: None,
            mappings: Vec::new(),
            maps: Vec::new(),
            pages: None,
            of_machine: None,
        };
        for note in core::notes(form, &notes) {
            budget.look()?;
            core.take(note, budget)?;
        }
        if core.process.id == 0 {
            core.process.id = core.threads.first().map_or(0, |thread| thread.id);
        }
        if core.maps.is_empty() {
            core.add_left_out(budget)?;
            core.maps = core.made_maps(budget)?;
        }
        Ok(core)
    }

    fn take(&mut self, note: CoreNote<'_>, budget: &mut Budget) -> Result<()> {
        let form = self.form;
        match (note.name, note.kind) {
            (core::CORE, core::PRSTATUS) => {
                if self.threads.is_empty() {
                    self.signal = core::signal(form, note.bytes).unwrap_or_default();
                }
                if let Some(thread) = CoreThread::parse(self.machine, form, note.bytes) {
                    self.places.entry(thread.id).or_insert(self.threads.len());
                    self.threads.push(thread);
                }
            }
            (core::CORE, core::PRPSINFO) => {
                self.process = CoreProcess::parse(form, note.bytes).ok_or_else(|| bad("the note of its process"))?;
            }
            (core::CORE, core::AUXV) => {
                let word = form.word_bytes();
                let entry = |pair: &[u8]| Some((form.word(pair, 0)?, form.word(pair, word)?));
                let size = note.bytes.chunks_exact(2 * word).filter_map(entry).find(|(name, _)| *name == AT_PAGESZ);
                if let Some((_, bytes)) = size {
                    let page = PageSize::of_base(bytes).ok_or_else(|| bad("the size of a page"))?;
                    self.page = page.bytes();
                }
                self.vector = Some(note.bytes.to_vec());
            }
            (core::CORE, core::FILE) => {
                let mappings = core::mappings(form, note.bytes, budget)?;
                self.mappings = mappings.ok_or_else(|| bad("the note of its mapped files"))?;
                self.mappings.sort_by_key(|mapping| mapping.range.start());
            }
            (core::PMDB, core::MAPS) => self.maps = note.bytes.to_vec(),
            (core::PMDB, core::MACHINE) => {
                let machine = CoreMachine::parse(note.bytes);
                if machine.huge_page_bytes.is_some_and(|bytes| !bytes.is_power_of_two()) {
                    return Err(bad("the size of a huge page"));
                }
                self.of_machine = Some(machine);
            }
            (core::PMDB, core::PAGE_MAP) => {
                let pages = PageMapWords::of(form, note.bytes, budget)?;
                self.pages = Some(pages.ok_or_else(|| bad("the note of its pages"))?);
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds the mappings of files that have no segment: gdb writes none where it leaves the memory out. Their rights
    /// are those that a program header of the file asks for, if one alone is loaded at these addresses.
    fn add_left_out(&mut self, budget: &mut Budget) -> Result<()> {
        // The first mapping of the beginning of each file.
        let mut heads: HashMap<&[u8], &CoreMapping> = HashMap::new();
        for mapping in self.mappings.iter().rev().filter(|mapping| mapping.offset == 0) {
            budget.go_on()?;
            heads.insert(&mapping.path, mapping);
        }
        let mut added = Vec::new();
        for mapping in &self.mappings {
            budget.go_on()?;
            let (start, end) = (mapping.range.start().get(), mapping.range.end().get());
            let after = self.segments.partition_point(|segment| segment.end <= start);
            if self.segments.get(after).is_some_and(|segment| segment.start < end) {
                continue;
            }
            let flags = heads.get(&*mapping.path).and_then(|head| self.flags_in_file(mapping, head, budget));
            added.push(CoreSegment { start, end, offset: 0, stored_bytes: 0, flags });
            budget.check()?;
        }
        added.extend(self.segments.iter().copied());
        added.sort_by_key(|segment| segment.start);
        // A file may claim that its mappings overlap.
        added.dedup_by(|next, one| next.start < one.end);
        self.segments = added;
        Ok(())
    }

    /// The flags of the segment of its file that a mapping is of, if the header of the file is in memory, where `start`
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
            let header = ProgramHeader::parse(self.form, bytes)?;
            Some((header.kind, CoreSegment::of(&header)?))
        };
        let of_file: Vec<_> = headers.filter_map(read).collect();
        // Two of them may share a page of the file, and each then has the page at an address of its own.
        let floor = |address: u64| address - address % self.page;
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

    /// A text of regions, where the file has none: its segments, and the files that the kernel names.
    fn made_maps(&self, budget: &mut Budget) -> Result<Vec<u8>> {
        // A file has a number here, by which its mappings are known to belong together.
        let mut numbers: HashMap<&[u8], usize> = HashMap::new();
        for (number, mapping) in (1..).zip(&self.mappings) {
            budget.go_on()?;
            numbers.entry(&mapping.path).or_insert(number);
        }
        // The kernel puts the path of the program at the top of the stack.
        let named = [(AT_EXECFN, "[stack]"), (AT_SYSINFO_EHDR, "[vdso]")];
        let named = named.map(|(entry, name)| (self.auxiliary(entry), name));
        let mut text = Vec::new();
        for segment in &self.segments {
            budget.go_on()?;
            let start = VirtualAddress::new(segment.start);
            let after = self.mappings.partition_point(|mapping| mapping.range.start() <= start);
            let mapping = after.checked_sub(1).and_then(|at| self.mappings.get(at));
            let mapping = mapping.filter(|mapping| mapping.range.contains(start));
            let bit = |bit, letter| match segment.flags {
                Some(flags) if flags & bit != 0 => letter,
                Some(_) => '-',
                None => '?',
            };
            let offset =
                mapping.map_or(0, |mapping| mapping.offset.saturating_add(segment.start - mapping.range.start().get()));
            let (r, w, x) = (bit(4, 'r'), bit(2, 'w'), bit(1, 'x'));
            let inode = mapping.and_then(|one| numbers.get(&*one.path)).copied().unwrap_or_default();
            text.extend(
                format!("{:08x}-{:08x} {r}{w}{x}? {offset:08x} 00:00 {inode} ", segment.start, segment.end).bytes(),
            );
            let holds = |address: Option<u64>| address.is_some_and(|at| (segment.start..segment.end).contains(&at));
            let special = named.iter().find(|(address, _)| holds(*address)).map_or("", |(_, name)| name);
            let name = mapping.map_or(special.as_bytes(), |mapping| &mapping.path);
            text.extend(name.iter().flat_map(|&byte| if byte == b'\n' { b"\\012".to_vec() } else { vec![byte] }));
            text.push(b'\n');
        }
        Ok(text)
    }

    /// Whether the file behind a region has this path. In its list of mapped files pmdb writes the path of a deleted
    /// file without the kernel's mark, and the kernel with it: only a core of pmdb tells.
    pub fn is_named(&self, region: &Region, path: &[u8]) -> Result<Vec<u64>> {
        let from = self.mappings.partition_point(|mapping| mapping.range.start() < region.range.start());
        let mut mappings = self.mappings.iter().skip(from);
        let mapping = mappings.find(|one| one.range == region.range || one.range.start() > region.range.start());
        let mapping = mapping.filter(|one| one.range == region.range);
        match mapping.filter(|_| self.pages.is_some()) {
            Some(mapping) => Ok(vec![(mapping.path == path).into()]),
            None => not_in_core("whether the file of this region was deleted"),
        }
    }

    /// The ranges whose memory the file has, in order.
    pub fn stored(&self) -> Vec<AddressRange> {
        let stored = |segment: &CoreSegment| {
            let length = segment.stored_bytes.min(segment.end - segment.start);
            AddressRange::of_length(VirtualAddress::new(segment.start), length)
        };
        self.segments.iter().filter_map(stored).collect()
    }

    /// Reads memory, as far as the file has it.
    pub fn memory(&self, address: u64, into: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = address.saturating_add(done as u64);
            let above = self.segments.partition_point(|segment| segment.start <= at);
            let segment = above.checked_sub(1).and_then(|below| self.segments.get(below));
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

    /// An entry of the auxiliary vector.
    fn auxiliary(&self, name: u64) -> Option<u64> {
        /// The kernel writes far fewer.
        const MOST: usize = 256;
        let word = self.form.word_bytes();
        let mut entries = self.vector.as_ref()?.chunks_exact(2 * word).take(MOST);
        let entry = entries.find(|entry| self.form.word(entry, 0) == Some(name))?;
        self.form.word(entry, word)
    }

    /// The path of the program: that of the mapping with its entry point.
    pub fn program(&self) -> Result<Vec<u8>> {
        let entry = self.auxiliary(AT_ENTRY).map(VirtualAddress::new);
        let mapping = entry.and_then(|entry| self.mappings.iter().find(|mapping| mapping.range.contains(entry)));
        mapping.map_or_else(|| not_in_core(File::Program.what()), |mapping| Ok(mapping.path.clone()))
    }

    /// The line of `stat` of a thread: what is known is its number, its parent, and that it does not run.
    pub fn stat(&self, id: u32, parent: u32) -> Vec<u8> {
        let (name, threads) = (&self.process.name, self.threads.len());
        let numbers = format!(") t {parent}{} {threads}{}", " 0".repeat(15), " 0".repeat(32));
        [format!("{id} (").as_bytes(), name, numbers.as_bytes()].concat()
    }

    pub fn status(&self) -> Vec<u8> {
        let CoreProcess { id, user, .. } = self.process;
        let why = if self.signal == 0 { String::new() } else { format!("; signal {}", self.signal) };
        format!("State:\tt (in a core file{why})\nTgid:\t{id}\nTracerPid:\t0\nUid:\t{user}\n").into_bytes()
    }

    pub fn thread(&self, id: u32) -> Result<Vec<u8>> {
        let thread = self.places.get(&id).and_then(|place| self.threads.get(*place));
        match thread.map(|thread| thread.registers) {
            Some(Some(found)) => Ok(format!("-1 {} {}\n", found.stack_pointer, found.program_counter).into_bytes()),
            Some(None) => not_in_core(&format!("the registers of thread {id}")),
            None => not_in_core(&format!("thread {id}")),
        }
    }
}

const AT_PAGESZ: u64 = 6;
const AT_ENTRY: u64 = 9;
const AT_EXECFN: u64 = 31;
const AT_SYSINFO_EHDR: u64 = 33;

impl CoreSegment {
    /// `None` if its end is no address.
    fn of(header: &ProgramHeader) -> Option<Self> {
        let &ProgramHeader { start, offset, stored, flags, .. } = header;
        let end = start.checked_add(header.size)?;
        Some(CoreSegment { start, end, offset, stored_bytes: stored, flags: Some(flags) })
    }
}

impl PageMapWords {
    /// Whether the kernel showed frame numbers to the process that wrote the core.
    pub fn has_frames(&self, form: ElfForm) -> bool {
        let entries =
            (0..self.words.len()).step_by(8).filter_map(|at| form.long(&self.words, at)).map(PageMapEntry::new);
        entries.filter(|entry| entry.is_present()).map(|entry| !entry.is_frame_hidden()).next().unwrap_or(true)
    }

    /// `None` if the note is damaged.
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
