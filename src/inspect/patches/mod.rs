//! Code that differs from its file: executable pages of files that have become private copies, and code that other
//! memory has replaced.
//!
//! ```
//! use pmdb::inspect::Step;
//! use pmdb::symbol::Symbols;
//! use pmdb::{AddressSpace, Target};
//!
//! let target = Target::attach(std::process::id())?;
//! let space = AddressSpace::of(&target)?;
//! let symbols = Symbols::default();
//! let segments = symbols.over(&target, space.regions()).code()?;
//! let mut comparison = space.patches(&segments, None)?;
//! while let Some(step) = comparison.next()? {
//!     if let Step::Found(patch) = step {
//!         println!("{}: {}", patch.range, patch.breakpoint.unwrap_or("modified"));
//!     }
//! }
//! println!("{} pages were copied", comparison.finish().0.private_copies);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod code;
mod instructions;

use super::kept::{KeptPages, PageSums, Step};
use super::memory::read_resident;
use super::page::{Evidence, Page};
use super::{AddressSpace, Error, Result};
use crate::access::words;
use crate::budget::Budget;
use crate::kernel::elf::ElfStart;
use crate::kernel::{AddressRange, Kind, State, VirtualAddress};
use crate::process::{self, OpenedFile, Target};
use crate::report::{Fact, PagesByReason, Reason};
use crate::symbol::CodeSegment;
use code::{Code, FilePart};
use instructions::InstructionSet;
use std::collections::{BTreeMap, VecDeque};

const MAY_BE_OF_FILE: &str =
    "they may be the file's own: before Linux 6.11 the page map does not show it where a huge page may be mapped";

/// Code that was or may be modified.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Patch {
    /// The bytes that differ, or neighbouring pages of one region that equal the file.
    pub range: AddressRange,
    /// The bytes; `None` if they equal those of the file.
    pub bytes: Option<PatchedBytes>,
    /// The offset of the first byte in the file.
    pub file_offset: u64,
    /// The name of the breakpoint instruction, if the bytes in memory are nothing else.
    pub breakpoint: Option<&'static str>,
    /// Whether other memory is mapped in the place of the file.
    pub is_replaced: bool,
}

/// The bytes of a [`Patch`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatchedBytes {
    /// The bytes in memory.
    pub memory: Vec<u8>,
    /// The bytes in the file.
    pub file: Vec<u8>,
}

/// The counts of a comparison.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct PatchSums {
    /// Pages that are private copies of pages of files.
    pub private_copies: u64,
    /// Private copies and replaced pages that are the same as in the file.
    pub equal: u64,
    /// Pages that differ from the file only outside of the ranges.
    pub outside: u64,
    /// Number of stretches of bytes that differ.
    pub stretches: u64,
    /// Number of bytes that differ, in whole instructions on machines with one instruction size.
    pub bytes: u64,
    /// Number of stretches that are breakpoint instructions.
    pub breakpoints: u64,
    /// Pages of code in whose place other memory is mapped.
    pub replaced: u64,
    /// Pages that are or may be private copies or replaced, and could not be compared.
    pub uncompared: PagesByReason,
}

/// A comparison of code in memory and in its files, in address order.
#[must_use]
pub struct CodeComparison {
    space: AddressSpace,
    /// The code to compare.
    code: Vec<AddressRange>,
    /// The code that other memory has replaced, in address order.
    replaced: Vec<FilePart>,
    /// The code of programs within archives, and the offset at which each program begins there.
    archived: Vec<(AddressRange, u64)>,
    pages: KeptPages,
    /// The rest of the pages to compare.
    left: Option<AddressRange>,
    /// The files that are open, by the start of their region.
    files: BTreeMap<VirtualAddress, OpenedProgram>,
    /// The patches that were found and not returned yet.
    found: VecDeque<Patch>,
    /// Pages that equal the file, to which the next ones may be added.
    equal: Option<Patch>,
    sums: PatchSums,
    budget: Budget,
}

/// The file of a region, and the instruction set of its program.
struct OpenedProgram {
    file: OpenedFile,
    machine: InstructionSet,
}

/// A page in memory, and its bytes in the file.
struct ComparedPage {
    range: AddressRange,
    memory: Vec<u8>,
    file: Vec<u8>,
    offset: u64,
    is_replaced: bool,
    machine: InstructionSet,
}

impl AddressSpace {
    /// Compares code with its file: that of private executable mappings of files, and that of `segments`, the code of
    /// programs and libraries ([`TargetSymbols::code`](crate::symbol::TargetSymbols::code)). If `ranges` are given (in
    /// order, disjoint), only what lies in them is compared.
    ///
    /// # Errors
    /// The target is a core, which has no page map.
    pub fn patches(&self, segments: &[CodeSegment], ranges: Option<&[AddressRange]>) -> Result<CodeComparison> {
        let Code { mapped, mut replaced } = Code::of(self, segments);
        let asked = |range: AddressRange| match ranges {
            None => vec![range],
            Some(ranges) => range.within(ranges).collect(),
        };
        replaced.retain(|part| !asked(part.range).is_empty());
        let all = mapped.into_iter().chain(replaced.iter().map(|part| part.range));
        let mut code: Vec<AddressRange> = all.flat_map(asked).collect();
        code.sort_by_cached_key(|range| range.start());
        Ok(CodeComparison {
            space: self.clone(),
            pages: self.kept_pages(&code, Evidence::ENTRIES)?,
            code,
            replaced,
            archived: segments.iter().filter(|one| one.start > 0).map(|one| (one.range, one.start)).collect(),
            left: None,
            files: BTreeMap::new(),
            found: VecDeque::new(),
            equal: None,
            sums: PatchSums::default(),
            budget: Budget::unlimited(),
        })
    }
}

impl CodeComparison {
    /// Limits the comparison by a budget.
    pub fn with_budget(self, budget: Budget) -> Self {
        CodeComparison { pages: self.pages.with_budget(budget.clone()), budget, ..self }
    }

    /// Returns the next step; `None` after the last.
    ///
    /// # Errors
    /// The target is gone, its memory may not be read, or the budget is over.
    pub fn next(&mut self) -> Result<Option<Step<Patch>>> {
        loop {
            if let Some(patch) = self.found.pop_front() {
                return Ok(Some(Step::Found(patch)));
            }
            if let Some(page) = self.next_page() {
                self.budget.look()?;
                match self.read(page)? {
                    Ok(page) => self.compare(page),
                    Err(reason) => self.sums.uncompared.add(1, reason),
                }
                continue;
            }
            let next = self.pages.find_map(|page, _, totals| {
                totals.add(page);
                Some(*page)
            })?;
            match next {
                Some(Step::Found(page)) => self.left = self.comparable(&page),
                Some(Step::Visited { done, total }) => return Ok(Some(Step::Visited { done, total })),
                None => return Ok(self.take_last().map(Step::Found)),
            }
        }
    }

    /// Returns the last pages that equal the file, to which others could have been added, if the comparison is given
    /// up.
    pub fn take_last(&mut self) -> Option<Patch> {
        self.equal.take()
    }

    /// Returns the counts, and the sums of the pages.
    pub fn finish(self) -> (PatchSums, PageSums) {
        (self.sums, self.pages.finish())
    }

    /// Returns the next page to compare.
    fn next_page(&mut self) -> Option<AddressRange> {
        let left = self.left.take()?;
        let end = left.start().checked_add(self.space.page_size().bytes())?;
        self.left = AddressRange::new(end, left.end());
        AddressRange::new(left.start(), end)
    }

    /// Returns the part of replaced code in a page; the first if there are several.
    fn replaced_in(&self, page: AddressRange) -> Option<&FilePart> {
        let first = self.replaced.partition_point(|part| part.range.end() <= page.start());
        self.replaced.get(first).filter(|part| part.range.intersection(page).is_some())
    }

    /// Counts these pages. Returns their range if they are private copies or replaced, and can be compared.
    fn comparable(&mut self, page: &Page) -> Option<AddressRange> {
        let is_swapped = matches!(page.state(), State::Swapped | State::Migrating);
        let range = page.range(self.space.page_size());
        if range.is_some_and(|range| self.replaced_in(range).is_some()) {
            self.sums.replaced += page.pages;
        } else {
            // A merged page of a private mapping was a copy before.
            let is_copy = matches!(page.kind, Some(Kind::PrivateCopy | Kind::Ksm));
            // If only the kind is unknown, it is a copy.
            let is_unclear = page.kind.is_none() && !page.entry.is_file_or_shared();
            if !is_swapped && (page.state() != State::Present || !is_copy && !is_unclear) {
                return None;
            }
            let is_unmarked = |viewed| self.space.may_be_unmarked_file(viewed);
            if !is_swapped && is_unclear && self.space.viewed_region(page.address).is_none_or(is_unmarked) {
                self.sums.uncompared.add(page.pages, Reason::NotOnThisKernel(MAY_BE_OF_FILE.to_owned()));
                return None;
            }
            self.sums.private_copies += page.pages;
        }
        if page.state() != State::Present {
            let reason = Reason::NotInFile(format!("{} pages are not read", page.state().word()));
            self.sums.uncompared.add(page.pages, reason);
            return None;
        }
        range
    }

    /// Reads a page and its bytes in the file. Returns why it cannot be compared, if it cannot.
    fn read(&mut self, page: AddressRange) -> Result<Fact<ComparedPage>> {
        let mut memory = vec![0; usize::try_from(page.len()).unwrap_or_default()];
        let read = match read_resident(self.space.target(), page.start(), &mut memory) {
            Err(Error::Target(missing @ process::Error::NotAvailable { .. })) => {
                return Ok(Err(Reason::NotInFile(missing.to_string())));
            }
            read => read?,
        };
        Ok(if read.bytes < memory.len() { Err(Reason::Changed) } else { self.with_file(page, memory) })
    }

    /// Returns a page in memory with its bytes in the file.
    fn with_file(&mut self, page: AddressRange, memory: Vec<u8>) -> Fact<ComparedPage> {
        let region = &self.space.viewed_region(page.start()).ok_or(Reason::Changed)?.region;
        let replaced = self.replaced_in(page).cloned();
        let is_replaced = replaced.is_some();
        let part = replaced.unwrap_or_else(|| FilePart::mapped(region));
        let (offset, compared) = part.in_page(page).ok_or(Reason::Changed)?;
        let opened = self.files.entry(part.of_file.range.start());
        let opened = opened.or_insert_with(|| {
            let archived = self.archived.iter().find(|(code, _)| code.intersection(page).is_some());
            OpenedProgram::open(self.space.target(), &part, archived.map_or(0, |(_, start)| *start))
        });
        let opened_file = opened.file.as_ref().map_err(|error| Reason::from(error.clone()))?;
        // The parts of a file that a core has are the memory itself.
        if !opened_file.has_sections() {
            return Err(Reason::NotInFile("a core does not have the files, and pmdb opens none for it".into()));
        }
        let mut file = vec![0; memory.len()];
        // Bytes after the end of the file stay zero, as in memory.
        opened_file
            .read_up_to(offset, &mut file)
            .map_err(|error| Reason::NotInFile(format!("{}: {}", part.of_file.name.file_name(), words(error))))?;
        // The bytes beside the code of a segment may be anything: they do not differ.
        for outside in [0..compared.start, compared.end..memory.len()] {
            if let (Some(into), Some(from)) = (file.get_mut(outside.clone()), memory.get(outside)) {
                into.copy_from_slice(from);
            }
        }
        Ok(ComparedPage { range: page, memory, file, offset, is_replaced, machine: opened.machine })
    }

    /// Adds the differences of a page.
    fn compare(&mut self, page: ComparedPage) {
        if page.memory == page.file {
            self.sums.equal += 1;
            self.add_equal(page.patch(page.range, None));
            return;
        }
        let before = self.sums.stretches;
        for (from, to) in stretches(&page.memory, &page.file, page.machine.unit) {
            let start = VirtualAddress::new(page.range.start().get() + from as u64);
            let end = VirtualAddress::new(page.range.start().get() + to as u64);
            let range = AddressRange::new(start, end);
            let Some(range) = range.filter(|range| range.within(&self.code).next().is_some()) else {
                continue;
            };
            let bytes = |all: &[u8]| all.get(from..to).unwrap_or_default().to_vec();
            let patch = page.patch(range, Some(PatchedBytes { memory: bytes(&page.memory), file: bytes(&page.file) }));
            self.sums.stretches += 1;
            self.sums.bytes += range.len();
            self.sums.breakpoints += u64::from(patch.breakpoint.is_some());
            self.found.extend(self.equal.take());
            self.found.push_back(patch);
        }
        self.sums.outside += u64::from(self.sums.stretches == before);
    }

    /// Adds a page that equals the file to its neighbours that do.
    fn add_equal(&mut self, page: Patch) {
        let viewed = self.space.viewed_region(page.range.start());
        let follows = |before: &Patch| {
            before.range.end() == page.range.start()
                && before.is_replaced == page.is_replaced
                && viewed.is_some_and(|viewed| viewed.range().contains(before.range.start()))
        };
        match &mut self.equal {
            Some(before) if follows(before) => {
                before.range = AddressRange::new(before.range.start(), page.range.end()).unwrap_or(before.range);
            }
            equal => self.found.extend(equal.replace(page)),
        }
    }
}

impl OpenedProgram {
    /// Opens the file of a part, with the program that begins at offset `start`.
    fn open(target: &Target, part: &FilePart, start: u64) -> OpenedProgram {
        let file = target.modules.open(&part.of_file);
        let mut first = [0; ElfStart::BYTES];
        let is_read = file.as_ref().is_ok_and(|file| file.read_up_to(start, &mut first).is_ok());
        // Without an ELF header the machine is unknown, and breakpoints get no names.
        let program = is_read.then(|| ElfStart::parse(&first)).flatten();
        OpenedProgram { file, machine: InstructionSet::of(program) }
    }
}

impl ComparedPage {
    /// Returns the patch for a part of the page, with its bytes if they differ.
    fn patch(&self, range: AddressRange, bytes: Option<PatchedBytes>) -> Patch {
        Patch {
            range,
            breakpoint: bytes.as_ref().and_then(|bytes| self.machine.breakpoint(&bytes.memory)),
            bytes,
            file_offset: self.offset + (range.start().get() - self.range.start().get()),
            is_replaced: self.is_replaced,
        }
    }
}

/// Returns the stretches of whole units that differ: start and end of each, as offsets.
fn stretches(left: &[u8], right: &[u8], unit: usize) -> Vec<(usize, usize)> {
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    let units = left.chunks(unit).zip(right.chunks(unit)).enumerate();
    for (index, (left, _)) in units.filter(|(_, (left, right))| left != right) {
        let (from, to) = (index * unit, index * unit + left.len());
        match stretches.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => stretches.push((from, to)),
        }
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_of_whole_instructions() {
        let file = [0, 1, 2, 3, 4, 5, 6, 7];
        let memory = [0, 9, 2, 9, 9, 5, 6, 7];
        assert_eq!(stretches(&memory, &file, 1), [(1, 2), (3, 5)]);
        assert_eq!(stretches(&memory, &file, 4), [(0, 8)]);
        assert_eq!(stretches(&memory, &file, 2), [(0, 6)]);
        assert_eq!(stretches(&file, &file, 1), []);
    }
}
