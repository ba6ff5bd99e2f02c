//! The process of an ELF core file, decoded from its notes and segments to the types that a running process has by the
//! files of `/proc`.

use super::core_file::{self, CoreMapping, CoreNote, CoreProcess, CoreThread};
use super::core_machine::CoreMachine;
use super::elf::{ElfForm, ProgramHeader};
use super::status::{Stat, Status};
use super::{AddressRange, Device, Name, PageSize, Permissions, Region, VirtualAddress, maps, text};
use crate::budget::{Budget, OutOfBudget};
use std::collections::HashMap;

const AT_PAGESZ: u64 = 6;
const AT_ENTRY: u64 = 9;
const AT_EXECFN: u64 = 31;
const AT_SYSINFO_EHDR: u64 = 33;

/// Why a note was not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoteFault {
    /// The part of the note that cannot be decoded.
    Damaged(&'static str),
    /// The budget ended, by Ctrl-C or a limit.
    OutOfBudget(OutOfBudget),
}

impl From<OutOfBudget> for NoteFault {
    fn from(over: OutOfBudget) -> Self {
        NoteFault::OutOfBudget(over)
    }
}

/// A segment of memory in a core file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoreSegment {
    /// The address of the first byte.
    pub start: u64,
    /// The address after the last byte.
    pub end: u64,
    /// The offset of the segment in the file.
    pub offset: u64,
    /// Bytes of the segment that the file contains.
    pub stored_bytes: u64,
    /// The rights, as in a program header; `None` if the core has no program header of the segment, and its mapped file
    /// does not show them.
    pub flags: Option<u32>,
}

impl CoreSegment {
    /// Returns the segment of a program header; `None` if it passes the last address.
    pub fn of(header: &ProgramHeader) -> Option<Self> {
        let &ProgramHeader { start, offset, stored, flags, .. } = header;
        let end = start.checked_add(header.size)?;
        Some(CoreSegment { start, end, offset, stored_bytes: stored, flags: Some(flags) })
    }

    fn permissions(&self) -> Permissions {
        let unknown = Permissions { is_unknown: true, sharing_unknown: true, ..Permissions::default() };
        self.flags.map_or(unknown, |flags| Permissions {
            read: flags & 4 != 0,
            write: flags & 2 != 0,
            execute: flags & 1 != 0,
            is_unknown: false,
            ..unknown
        })
    }
}

/// The process of a core file, as its notes describe it.
#[derive(Clone, Debug)]
pub struct CoreNotes {
    /// Byte order and word size of the file.
    pub form: ElfForm,
    /// The processor (`e_machine`).
    pub processor: u16,
    /// The page size of the process.
    pub page: PageSize,
    /// The segments of memory, in address order, without overlaps.
    pub segments: Vec<CoreSegment>,
    /// The threads in the order of the file.
    pub threads: Vec<CoreThread>,
    /// The index of each thread in `threads`, by its id.
    places: HashMap<u32, usize>,
    /// The signal that ended or stopped the first thread; 0 without one.
    signal: u16,
    /// The process.
    pub process: CoreProcess,
    /// The auxiliary vector.
    pub vector: Option<Vec<u8>>,
    /// The mappings of files, in address order. A damaged file may have mappings that overlap.
    pub mappings: Vec<CoreMapping>,
    /// The note of pmdb about the machine.
    pub machine: Option<CoreMachine>,
    /// Whether the file contains the text of `/proc/PID/maps`.
    pub has_maps: bool,
}

impl CoreNotes {
    /// Returns the description of a file without notes.
    pub fn new(form: ElfForm, processor: u16, segments: Vec<CoreSegment>) -> Self {
        CoreNotes {
            form,
            processor,
            page: PageSize::FOUR_KIB,
            segments,
            threads: Vec::new(),
            places: HashMap::new(),
            signal: 0,
            process: CoreProcess::default(),
            vector: None,
            mappings: Vec::new(),
            machine: None,
            has_maps: false,
        }
    }

    /// Adds the contents of a note. Notes of unknown kinds are skipped.
    ///
    /// # Errors
    /// Fails if the note is damaged, or the budget is used up.
    pub fn add(&mut self, note: CoreNote<'_>, budget: &mut Budget) -> Result<(), NoteFault> {
        let form = self.form;
        match (note.name, note.kind) {
            (core_file::CORE, core_file::PRSTATUS) => {
                if self.threads.is_empty() {
                    self.signal = core_file::signal(form, note.bytes).unwrap_or_default();
                }
                if let Some(thread) = CoreThread::parse(self.processor, form, note.bytes) {
                    self.places.entry(thread.id).or_insert(self.threads.len());
                    self.threads.push(thread);
                }
            }
            (core_file::CORE, core_file::PRPSINFO) => {
                let process = CoreProcess::parse(form, note.bytes);
                self.process = process.ok_or(NoteFault::Damaged("the note of its process"))?;
            }
            (core_file::CORE, core_file::AUXV) => {
                self.vector = Some(note.bytes.to_vec());
                if let Some(bytes) = entry(form, note.bytes, AT_PAGESZ) {
                    self.page = PageSize::of_base(bytes).ok_or(NoteFault::Damaged("the size of a page"))?;
                }
            }
            (core_file::CORE, core_file::FILE) => {
                let mappings = core_file::mappings(form, note.bytes, budget)?;
                self.mappings = mappings.ok_or(NoteFault::Damaged("the note of its mapped files"))?;
                self.mappings.sort_by_cached_key(|mapping| mapping.range.start());
            }
            (core_file::PMDB, core_file::MACHINE) => {
                let machine = CoreMachine::parse(note.bytes);
                if machine.huge_page_bytes.is_some_and(|bytes| !bytes.is_power_of_two()) {
                    return Err(NoteFault::Damaged("the size of a huge page"));
                }
                self.machine = Some(machine);
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends the notes. Without a note of the process its id is that of the first thread.
    pub fn end(&mut self) {
        if self.process.id == 0 {
            self.process.id = self.threads.first().map_or(0, |thread| thread.id);
        }
    }

    /// Returns the value of an entry of the auxiliary vector.
    fn auxiliary(&self, name: u64) -> Option<u64> {
        /// The most entries that are searched. The kernel writes far fewer.
        const MOST: usize = 256;
        let vector = self.vector.as_deref()?;
        let most = MOST * 2 * self.form.word_bytes();
        entry(self.form, vector.get(..most).unwrap_or(vector), name)
    }

    /// Returns the path of the executable: the file of the mapping with the entry point.
    pub fn program(&self) -> Option<&[u8]> {
        let entry = self.auxiliary(AT_ENTRY).map(VirtualAddress::new)?;
        let mapping = self.mappings.iter().find(|mapping| mapping.range.contains(entry));
        mapping.map(|mapping| &*mapping.path)
    }

    /// Returns the fields of `/proc/PID/stat` that are known: name, parent, and that the process does not run.
    pub fn stat(&self) -> Stat {
        Stat {
            name: Name::copied(&self.process.name),
            state: STOPPED,
            parent: self.process.parent,
            is_kernel_thread: false,
            threads: u32::try_from(self.threads.len()).unwrap_or(u32::MAX),
            start_time: 0,
            resident_pages: 0,
            arguments: None,
            heap: None,
            stack: None,
            exit_code: 0,
        }
    }

    /// Returns the fields of `/proc/PID/status` that are known.
    pub fn status(&self) -> Status {
        let CoreProcess { id, user, .. } = self.process;
        let why = if self.signal == 0 { String::new() } else { format!("; signal {}", self.signal) };
        Status {
            state: format!("{STOPPED} (in a core file{why})"),
            process: id,
            own_number: id,
            tracer: 0,
            user,
            users: vec![user],
            groups: Vec::new(),
            permitted: 0,
            effective: 0,
            memory: Vec::new(),
            may_be_huge: None,
            allowed_nodes: None,
        }
    }

    /// Returns the thread with this id.
    pub fn thread(&self, id: u32) -> Option<&CoreThread> {
        self.threads.get(*self.places.get(&id)?)
    }

    /// Makes the regions of a file without the text of `maps`, from its segments and mappings. Each costs one step.
    ///
    /// # Errors
    /// The budget is over.
    pub fn regions(&self, budget: &mut Budget) -> Result<Vec<Region>, OutOfBudget> {
        // Mappings of one path have the same number, so that they are known to be of one file.
        let mut numbers: HashMap<&[u8], u64> = HashMap::new();
        for (number, mapping) in (1..).zip(&self.mappings) {
            budget.go_on()?;
            numbers.entry(&mapping.path).or_insert(number);
        }
        // The kernel puts the path of the program at the top of the stack.
        let special = [(AT_EXECFN, "[stack]"), (AT_SYSINFO_EHDR, "[vdso]")];
        let special = special.map(|(entry, name)| (self.auxiliary(entry).map(VirtualAddress::new), name));
        // Many segments may be in one mapping, and its path may be long: it is decoded once.
        let mut last: Option<(&CoreMapping, MappedFile)> = None;
        let mut regions = Vec::with_capacity(self.segments.len());
        for segment in &self.segments {
            budget.go_on()?;
            let start = VirtualAddress::new(segment.start);
            let Some(range) = AddressRange::new(start, VirtualAddress::new(segment.end)) else {
                continue;
            };
            let after = self.mappings.partition_point(|mapping| mapping.range.start() <= start);
            let mapping = after.checked_sub(1).and_then(|at| self.mappings.get(at));
            let (file, offset) = match mapping.filter(|mapping| mapping.range.contains(start)) {
                Some(mapping) => {
                    let is_it = |of: &CoreMapping| std::ptr::eq(of, mapping) || of.path == mapping.path;
                    let file = last.take().filter(|(of, _)| is_it(of)).map(|(_, file)| file);
                    let file = file.unwrap_or_else(|| {
                        // gdb writes paths as in `maps`, with escaped newlines.
                        let (name, deleted) = maps::name(&text::unescape_newline(&mapping.path));
                        MappedFile { number: numbers.get(&*mapping.path).copied().unwrap_or_default(), name, deleted }
                    });
                    let within = segment.start - mapping.range.start().get();
                    (last.insert((mapping, file)).1.clone(), mapping.offset.saturating_add(within))
                }
                None => {
                    let found = special.iter().find(|(address, _)| address.is_some_and(|at| range.contains(at)));
                    let name = found.map_or_else(Name::default, |(_, name)| Name::from(*name));
                    (MappedFile { number: 0, name, deleted: false }, 0)
                }
            };
            regions.push(Region {
                range,
                permissions: segment.permissions(),
                offset,
                device: Device { major: 0, minor: 0 },
                inode: file.number,
                name: file.name,
                deleted: file.deleted,
            });
        }
        Ok(regions)
    }
}

/// The file of a region.
#[derive(Clone)]
struct MappedFile {
    /// The number of its first mapping, from 1 on; 0 without a file.
    number: u64,
    name: Name,
    deleted: bool,
}

/// The letter of a thread that a tracer has stopped.
const STOPPED: char = 't';

/// Returns the value of the first entry of an auxiliary vector with this name.
fn entry(form: ElfForm, vector: &[u8], name: u64) -> Option<u64> {
    let word = form.word_bytes();
    let pair = vector.chunks_exact(2 * word).find(|pair| form.word(pair, 0) == Some(name))?;
    form.word(pair, word)
}
