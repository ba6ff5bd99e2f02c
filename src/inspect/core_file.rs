//! Writing an ELF core file: debuggers open it in place of a process.
//!
//! ```text
//! header            of 64 or 32 bits, in the byte order of the target
//! memory            each run of resident pages, from a page boundary on; and the whole vdso, which no file has
//! notes             CORE: the process, its threads, the auxiliary vector, the mapped files
//!                   PMDB: a text about this file, the text of maps, what decides what pages are, and the words of the page map
//! program headers   PT_NOTE, and PT_LOAD for each run: other pages have none
//! section header    the first alone has the number of program headers, if these are very many
//! ```

use super::Error;
use super::address_space::AddressSpace;
use super::classify::Backing;
use super::memory::{ResidentMemory, Unread, is_resident};
use crate::budget::Budget;
use crate::kernel::core_file::{self as core, CoreMapping, CoreNote, CoreProcess, CoreThread};
use crate::kernel::core_machine::CoreMachine;
use crate::kernel::elf::ElfForm;
use crate::kernel::smaps::Smaps;
use crate::kernel::status::ThreadState;
use crate::kernel::{AddressRange, Device, PageMapEntry, PageSize, Region};
use crate::process::{self, Categories, Target};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::io::{self, Seek, SeekFrom, Write};

/// What a core file has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CoreContents {
    /// Regions.
    pub regions: u64,
    /// Bytes of memory.
    pub bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Threads whose program counter and stack pointer are known.
    pub waiting: u64,
    /// Regions marked MADV_DONTDUMP, whose memory was left out.
    pub left_out: u64,
    /// Present memory that was not read.
    pub unread: Unread,
}

/// `ET_CORE`, `PT_LOAD`, `PT_NOTE`, and the number of program headers that stands in the first section header.
const CORE: u64 = 4;
const LOAD: u64 = 1;
const NOTE: u64 = 4;
const MANY: usize = 0xffff;
/// No vdso is larger.
const LARGEST_VDSO: u64 = 1 << 20;
/// Page-map entries of one read.
const ENTRIES: usize = 8192;

/// A program header.
struct Header {
    kind: u64,
    flags: u64,
    offset: u64,
    address: u64,
    size: u64,
}

/// A core file that is being written.
struct Writer<'a, W> {
    out: &'a mut W,
    form: ElfForm,
    page: PageSize,
    at: u64,
    headers: Vec<Header>,
}

fn write_error(error: &io::Error) -> process::Error {
    let error = Errno::from_io_error(error).unwrap_or(Errno::IO);
    process::Error::Io { what: "writing the core file".to_owned(), error }
}

/// Writes the resident memory of `spans`, and what is known of the process.
///
/// # Errors
/// It cannot be written, the target is gone, its memory may not be read, or its machine is not known.
pub fn write_core(
    target: &Target,
    spans: &[AddressRange],
    out: &mut (impl Write + Seek),
    budget: &mut Budget,
) -> Result<CoreContents, Error> {
    let process = &target.process;
    let layout = process.layout();
    let form = ElfForm { is_64: layout.pointer_bytes == 8, is_little: layout.is_little_endian };
    let machine = process.program_machine().filter(|&machine| core::is_known(machine, form));
    let machine = machine.ok_or_else(|| process::Error::NotAvailable {
        what: "the registers of this kind of machine have no known place in a core file".to_owned(),
    })?;
    let regions = process.regions_within(budget)?;
    let smaps = process.smaps(budget)?;
    let is_left_out =
        |region: &Region| Smaps::at(&smaps, region.range.start()).is_some_and(|found| found.has_flag("dd"));
    let mut writer = Writer { out, form, page: layout.page, at: 0, headers: Vec::new() };
    let mut contents = CoreContents { regions: regions.len() as u64, ..CoreContents::default() };
    writer.pad_to(layout.page.bytes())?;
    for region in &regions {
        let wanted: Vec<AddressRange> =
            if is_left_out(region) { Vec::new() } else { region.range.within(spans).collect() };
        if is_left_out(region) {
            contents.left_out += u64::from(is_resident(target, region.range)?);
        }
        writer.region(target, region, &wanted, &mut contents, budget)?;
    }
    let notes = writer.notes(target, machine, &regions, &mut contents, budget)?;
    writer.finish(machine, &notes)?;
    Ok(contents)
}

impl<W: Write + Seek> Writer<'_, W> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), process::Error> {
        self.out.write_all(bytes).map_err(|error| write_error(&error))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn pad_to(&mut self, unit: u64) -> Result<(), process::Error> {
        let missing = self.at.next_multiple_of(unit) - self.at;
        // The header is written last.
        let missing = if self.at == 0 { unit } else { missing };
        self.put(&vec![0; usize::try_from(missing).unwrap_or_default()])
    }

    /// Adds memory. Debuggers take a segment for zeros where the file has none of it: what is missing gets none.
    fn segment(&mut self, region: &Region, range: AddressRange, offset: u64) {
        let permissions = region.permissions;
        let flag = |is: bool, bit: u64| if is { bit } else { 0 };
        let flags = flag(permissions.read, 4) | flag(permissions.write, 2) | flag(permissions.execute, 1);
        self.headers.push(Header { kind: LOAD, flags, offset, address: range.start().get(), size: range.len() });
    }

    fn region(
        &mut self,
        target: &Target,
        region: &Region,
        wanted: &[AddressRange],
        contents: &mut CoreContents,
        budget: &mut Budget,
    ) -> Result<(), Error> {
        let first = self.headers.len();
        if let Some(image) = image_of_vdso(target, region, wanted) {
            self.segment(region, region.range, self.at);
            self.put(&image)?;
            contents.bytes += image.len() as u64;
            return Ok(());
        }
        for &range in wanted {
            let mut memory = ResidentMemory::of(target, range.to_pages(self.page))?;
            while let Some((start, bytes)) = memory.next(budget)? {
                let Some(found) = AddressRange::of_length(start, bytes.len() as u64) else {
                    continue;
                };
                let offset = self.at;
                self.put(bytes)?;
                contents.bytes += bytes.len() as u64;
                let has_one = self.headers.len() > first;
                match self.headers.last_mut().filter(|_| has_one) {
                    Some(last) if last.address + last.size == start.get() => last.size += found.len(),
                    _ => self.segment(region, found, offset),
                }
            }
            contents.unread.changed += memory.unread.changed;
            contents.unread.unreadable += memory.unread.unreadable;
        }
        Ok(())
    }

    fn notes(
        &self,
        target: &Target,
        machine: u16,
        regions: &[Region],
        contents: &mut CoreContents,
        budget: &mut Budget,
    ) -> Result<Vec<u8>, Error> {
        let (process, form) = (&target.process, self.form);
        let identity = process.identity();
        let entry = target.machine.process_entry(identity.pid);
        let command = entry.and_then(|entry| entry.command_line).unwrap_or_else(|| identity.name.clone());
        let status = process.status().unwrap_or_default();
        let of_process = CoreProcess {
            id: identity.pid,
            parent: status.parent,
            user: status.user,
            name: identity.name.as_bytes().to_vec(),
            command: command.as_bytes().to_vec(),
        };
        let mut all = Vec::new();
        let mut note = |name: &[u8], kind: u32, bytes: &[u8]| CoreNote { name, kind, bytes }.write(form, &mut all);
        note(core::CORE, core::PRPSINFO, &of_process.bytes(form));
        // The process itself comes first: debuggers begin there.
        let mut threads = process.threads()?;
        threads.sort_by_cached_key(|thread| (thread.id != identity.pid, thread.id));
        let mut running = Vec::new();
        for thread in threads {
            let registers = match process.thread_state(thread.id) {
                Ok(ThreadState::Waiting(registers)) => Some(registers),
                _ => None,
            };
            contents.threads += 1;
            contents.waiting += u64::from(registers.is_some());
            running.extend(registers.is_none().then_some(thread.id.to_string()));
            let thread = CoreThread { id: thread.id, parent: 0, registers };
            note(core::CORE, core::PRSTATUS, &thread.bytes(machine, form).unwrap_or_default());
        }
        if let Ok(vector) = process.auxiliary_vector() {
            note(core::CORE, core::AUXV, &vector);
        }
        let of_file = |region: &Region| CoreMapping {
            range: region.range,
            offset: region.offset,
            path: region.name.as_bytes().to_vec(),
        };
        let mappings: Vec<CoreMapping> = regions.iter().filter(|region| region.maps_object()).map(of_file).collect();
        note(core::CORE, core::FILE, &core::mapping_bytes(form, self.page.bytes(), &mappings));
        note(core::PMDB, core::ABOUT, about(&running).as_bytes());
        let space = AddressSpace::of(&target.clone().with_budget(budget.clone()))?;
        note(core::PMDB, core::MAPS, space.maps_text().bytes());
        note(core::PMDB, core::MACHINE, machine_of(&space).text().as_bytes());
        note(core::PMDB, core::PAGE_MAP, &self.page_map(target, regions, budget)?);
        Ok(all)
    }

    /// The words of the page map where it is populated.
    fn page_map(&self, target: &Target, regions: &[Region], budget: &mut Budget) -> Result<Vec<u8>, Error> {
        let process = &target.process;
        let (mut runs, mut all): (Vec<(u64, u64)>, Vec<PageMapEntry>) = (Vec::new(), Vec::new());
        for region in regions {
            for found in process.populated(region.range, Categories::empty()) {
                let range = found?.range;
                let (mut first, mut left) = (self.page.index(range.start()), range.pages(self.page));
                while left > 0 {
                    budget.go_on()?;
                    let mut entries =
                        vec![PageMapEntry::default(); usize::try_from(left).unwrap_or(ENTRIES).min(ENTRIES)];
                    let read = process.entries(first, &mut entries)?;
                    if read == 0 {
                        break;
                    }
                    match runs.last_mut() {
                        Some((start, pages)) if *start + *pages == first => *pages += read as u64,
                        _ => runs.push((first, read as u64)),
                    }
                    all.extend(entries.iter().take(read));
                    (first, left) = (first + read as u64, left - read as u64);
                }
            }
        }
        let heads = runs.iter().flat_map(|&(first, pages)| [first, pages]);
        let numbers = [runs.len() as u64].into_iter().chain(heads).chain(all.iter().map(|entry| entry.raw()));
        Ok(numbers.flat_map(|number| self.form.bytes(number, 8)).collect())
    }

    /// Writes the notes, the headers, and at last the beginning of the file.
    fn finish(&mut self, machine: u16, notes: &[u8]) -> Result<(), process::Error> {
        let form = self.form;
        let word = form.word_bytes();
        self.pad_to(4)?;
        let offset = self.at;
        self.put(notes)?;
        self.headers.insert(0, Header { kind: NOTE, flags: 0, offset, address: 0, size: notes.len() as u64 });
        self.pad_to(8)?;
        let table = self.at;
        let headers = std::mem::take(&mut self.headers);
        let alignment = self.page.bytes();
        for header in &headers {
            let Header { kind, flags, offset, address, size } = *header;
            let in_memory = if kind == LOAD { size } else { 0 };
            let alignment = if kind == LOAD { alignment } else { 4 };
            // The flags have another place in 32 bits.
            let (first, last) = if form.is_64 { (Some(flags), None) } else { (None, Some(flags)) };
            let parts = [first.map(|flags| (flags, 4)), Some((offset, word)), Some((address, word)), Some((0, word))];
            let rest =
                [Some((size, word)), Some((in_memory, word)), last.map(|flags| (flags, 4)), Some((alignment, word))];
            let numbers = [Some((kind, 4))].into_iter().chain(parts).chain(rest).flatten();
            let bytes: Vec<u8> = numbers.flat_map(|(number, size)| form.bytes(number, size)).collect();
            self.put(&bytes)?;
        }
        let sections = self.at;
        let is_many = headers.len() >= MANY;
        if is_many {
            // Name, kind, flags, address, offset, size, link, info, alignment, size of an entry.
            let count = headers.len() as u64;
            let numbers =
                [(0, 4), (0, 4), (0, word), (0, word), (0, word), (0, word), (0, 4), (count, 4), (0, word), (0, word)];
            let bytes: Vec<u8> = numbers.into_iter().flat_map(|(number, size)| form.bytes(number, size)).collect();
            self.put(&bytes)?;
        }
        let count = headers.len().min(MANY) as u64;
        let (header, program, section) = if form.is_64 { (64, 56, 64) } else { (52, 32, 40) };
        let of_sections = if is_many { [sections, section, 1] } else { [0, 0, 0] };
        let mut bytes = b"\x7fELF".to_vec();
        bytes.extend([if form.is_64 { 2 } else { 1 }, if form.is_little { 1 } else { 2 }, 1]);
        bytes.resize(16, 0);
        let numbers = [
            (CORE, 2),
            (machine.into(), 2),
            (1, 4),
            (0, word),
            (table, word),
            (of_sections[0], word),
            (0, 4),
            (header, 2),
            (program, 2),
            (count, 2),
            (of_sections[1], 2),
            (of_sections[2], 2),
            (0, 2),
        ];
        bytes.extend(numbers.into_iter().flat_map(|(number, size)| form.bytes(number, size)));
        let done = self.out.seek(SeekFrom::Start(0)).and_then(|_| self.out.write_all(&bytes));
        done.and_then(|()| self.out.flush()).map_err(|error| write_error(&error))
    }
}

/// The bytes of the vdso, if all of it is wanted and can be read. The kernel writes it into its cores too: only memory
/// has its symbols.
fn image_of_vdso(target: &Target, region: &Region, wanted: &[AddressRange]) -> Option<Vec<u8>> {
    if region.name.as_bytes() != b"[vdso]" || wanted != [region.range] {
        return None;
    }
    let image = target.modules.image(region).ok()?;
    let mut bytes = vec![0; usize::try_from(region.range.len().min(LARGEST_VDSO)).ok()?];
    let read = image.read_up_to(0, &mut bytes).ok()?;
    (read as u64 == region.range.len()).then_some(bytes)
}

/// What decides what the pages are, for a machine that does not have this kernel and its filesystems.
fn machine_of(space: &AddressSpace) -> CoreMachine {
    let devices = |backing| {
        let mapped =
            space.viewed_regions().iter().filter(|viewed| viewed.region.maps_object() && viewed.backing == backing);
        let devices: BTreeSet<Device> = mapped.map(|viewed| viewed.region.device).collect();
        devices.into_iter().collect()
    };
    let machine = &space.target().machine;
    CoreMachine {
        release: machine.kernel().release,
        huge_page_bytes: machine.huge_page_bytes(),
        merged_pages: machine.merging().shared_pages,
        shared_memory: devices(Backing::Shmem),
        pools: devices(Backing::Hugetlb),
    }
}

/// What debuggers cannot know: the registers of a core usually are all there.
fn about(running: &[String]) -> String {
    let mut text = "pmdb core 1\nKnown registers: the program counter and the stack pointer of threads that waited.\n\
                    Unknown, and 0 in NT_PRSTATUS: all other registers.\n"
        .to_owned();
    if !running.is_empty() {
        text += &format!("Unknown too, as they were running: both registers of threads {}.\n", running.join(", "));
    }
    text
}
