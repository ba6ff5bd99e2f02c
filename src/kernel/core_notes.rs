//! What the notes and the segments of an ELF core file say of its process, as the types that are made of the texts of
//! `/proc` for a process that runs.

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
    /// What cannot be read in it.
    Damaged(&'static str),
    /// Ctrl-C, or another limit.
    OutOfBudget(OutOfBudget),
}

impl From<OutOfBudget> for NoteFault {
    fn from(over: OutOfBudget) -> Self {
        NoteFault::OutOfBudget(over)
    }
}

/// A part of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoreSegment {
    /// The address of its first byte.
    pub start: u64,
    /// The address after its last byte.
    pub end: u64,
    /// Where it begins in the file.
    pub offset: u64,
    /// Bytes that the file has of it.
    pub stored_bytes: u64,
    /// Its rights, as a program header has them; `None` if the core has no program header of it, and its file does not
    /// tell.
    pub flags: Option<u32>,
}

impl CoreSegment {
    /// That of a program header; `None` if its end is no address.
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

/// What a core file says of its process.
#[derive(Clone, Debug)]
pub struct CoreNotes {
    /// How it writes numbers.
    pub form: ElfForm,
    /// The processor, as ELF files number them.
    pub processor: u16,
    /// The size of its pages.
    pub page: PageSize,
    /// Its memory, in address order, none above another.
    pub segments: Vec<CoreSegment>,
    /// Its threads, in the order of the file.
    pub threads: Vec<CoreThread>,
    /// The place of each thread, by its id.
    places: HashMap<u32, usize>,
    /// The signal that ended or stopped the first of them; 0 without one.
    signal: u16,
    /// The process.
    pub process: CoreProcess,
    /// The auxiliary vector.
    pub vector: Option<Vec<u8>>,
    /// In address order. A file may claim that they overlap.
    pub mappings: Vec<CoreMapping>,
    /// What pmdb wrote of the machine.
    pub machine: Option<CoreMachine>,
    /// Whether the file has the text of its regions, as `/proc` had it.
    pub has_maps: bool,
}

impl CoreNotes {
    /// Those of a file without notes.
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

    /// Adds what a note says. One of another kind is passed over.
    ///
    /// # Errors
    /// It is damaged, or the budget is over.
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

    /// The end of the notes: without one of the process, it is that of the first thread.
    pub fn end(&mut self) {
        if self.process.id == 0 {
            self.process.id = self.threads.first().map_or(0, |thread| thread.id);
        }
    }

    /// An entry of the auxiliary vector.
    fn auxiliary(&self, name: u64) -> Option<u64> {
        /// The kernel writes far fewer.
        const MOST: usize = 256;
        let vector = self.vector.as_deref()?;
        let most = MOST * 2 * self.form.word_bytes();
        entry(self.form, vector.get(..most).unwrap_or(vector), name)
    }

    /// The path of the program: that of the mapping with its entry point.
    pub fn program(&self) -> Option<&[u8]> {
        let entry = self.auxiliary(AT_ENTRY).map(VirtualAddress::new)?;
        let mapping = self.mappings.iter().find(|mapping| mapping.range.contains(entry));
        mapping.map(|mapping| &*mapping.path)
    }

    /// What `stat` would say: what is known is the name, the parent, and that it does not run.
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

    /// What `status` would say.
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

    /// The thread with this id.
    pub fn thread(&self, id: u32) -> Option<&CoreThread> {
        self.threads.get(*self.places.get(&id)?)
    }

    /// The regions of a file without their text: its segments, and the files that the kernel names. Each is a step.
    ///
    /// # Errors
    /// The budget is over.
    pub fn regions(&self, budget: &mut Budget) -> Result<Vec<Region>, OutOfBudget> {
        // A file has a number here, by which its mappings are known to belong together.
        let mut numbers: HashMap<&[u8], u64> = HashMap::new();
        for (number, mapping) in (1..).zip(&self.mappings) {
            budget.go_on()?;
            numbers.entry(&mapping.path).or_insert(number);
        }
        // The kernel puts the path of the program at the top of the stack.
        let special = [(AT_EXECFN, "[stack]"), (AT_SYSINFO_EHDR, "[vdso]")];
        let special = special.map(|(entry, name)| (self.auxiliary(entry).map(VirtualAddress::new), name));
        // Very many segments may lie in one mapping, and its path may be long.
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
                        // gdb takes the paths from the text of `maps`, in which newlines are escaped.
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
    /// That of its first mapping, from 1 on; 0 without a file.
    number: u64,
    name: Name,
    deleted: bool,
}

/// The letter of a thread that a tracer has stopped.
const STOPPED: char = 't';

/// The value of the first entry of an auxiliary vector with this name.
fn entry(form: ElfForm, vector: &[u8], name: u64) -> Option<u64> {
    let word = form.word_bytes();
    let pair = vector.chunks_exact(2 * word).find(|pair| form.word(pair, 0) == Some(name))?;
    form.word(pair, word)
}
