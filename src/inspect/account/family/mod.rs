//! The memory of several processes: each frame once, and the memory that only one of them maps.
//!
//! The page map of each process is read once. The flags of frames, which show their kinds, are read once for all
//! processes. Finally, the map counts show which frames other processes map too. Without frame numbers, only the sums
//! of smaps_rollup are available.
//!
//! ```
//! use pmdb::Target;
//! use pmdb::inspect::account::{Family, called};
//!
//! let target = Target::attach(std::os::unix::process::parent_id())?;
//! let name = target.process.identity().name.to_string();
//! let mut family = Family::new(&target.machine, called(&target.machine, &name)?, true);
//! while family.next()?.is_some() {}
//! let sums = family.sums()?;
//! for (class, sum) in &sums.classes {
//!     println!("{} bytes {}, mapped as {} bytes", sum.bytes, class.word(), sum.mapped);
//! }
//! println!("{} bytes; the sum of Rss is {}", sums.distinct, sums.rss);
//! # assert!(sums.rss > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod charged_frames;
mod charges;
mod grouped;
mod members;
mod owners;
mod sums;

pub use charges::{ChargeSearch, GroupCharges};
pub use grouped::{ClassSum, FamilyGroup, FamilyGroupKey, FamilyKey};
pub use members::{called, descendants, of_cgroup};
pub(super) use owners::{read as read_words, stretches};
pub use sums::FamilySums;

use super::super::address_space::AddressSpace;
use super::super::classify::Backing;
use super::super::page::{Evidence, Page};
use super::super::sweep::Sweep;
use super::super::{Error, Result};
use super::filesystems::MemoryFilesystems;
use super::object_counter::ObjectCounter;
use super::object_regions::has_counted_parts;
use super::objects::MemoryObjects;
use super::rests::RestSearch;
use crate::access::Identity;
use crate::budget::Budget;
use crate::kernel::{FrameNumber, PageFlags, PageSize, State};
use crate::process::{self, FilesystemSearch, Machine, OpenedProcess, ProcessHandle, Target};
use crate::report::Fact;
use grouped::Grouping;
use owners::{FrameKind, FrameOwners, MOST_MEMBERS};
use std::sync::Arc;

/// The pages after which frames are looked up. It is large enough for long reads and small enough for little memory.
const TOGETHER: u64 = 1 << 16;

/// An address space of the family.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FamilyMember {
    /// The process, or the first of those that share the address space.
    pub identity: Identity,
    /// The ids of the other processes with this address space.
    pub same_memory: Vec<u32>,
    /// The bytes that the process maps, as Rss counts them.
    pub rss: u64,
    /// The bytes that no other process maps.
    pub alone: Fact<u64>,
    /// The private bytes among these, which are freed when the process ends.
    pub ends: Fact<u64>,
    /// Pss, if frame numbers are hidden.
    pub pss: Option<u64>,
    /// The bytes of the hugetlb pool that the process maps. Rss does not count them.
    pub hugetlb: u64,
    /// Whether smaps counts shared memory in the process, if frame numbers are hidden.
    counts_shared: bool,
    /// The bytes that are migrating or on devices.
    elsewhere: u64,
}

/// A step of the count.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FamilyStep {
    /// The number of visited processes, and of all.
    Process(u64, u64),
    /// The number of visited pages of the process, and of all.
    Pages(u64, u64),
}

/// Processes that could not be counted.
#[derive(Clone, Default, Debug)]
#[non_exhaustive]
pub struct UncountedProcesses {
    /// The number of processes that may not be examined.
    pub refused: u64,
    /// The number of processes that ended before or during the count.
    pub ended: u64,
    /// The number of kernel threads, which have no memory.
    pub kernel_threads: u64,
    /// Why the first of these processes could not be counted.
    pub reason: Option<Error>,
}

/// The count of a family. Dropping it stops the worker threads.
#[must_use]
pub struct Family {
    machine: Arc<Machine>,
    /// Whether PAGEMAP_SCAN may be used.
    may_scan: bool,
    budget: Budget,
    processes: Vec<ProcessHandle>,
    next: usize,
    members: Vec<FamilyMember>,
    /// The members, sorted by their address spaces in the order of kcmp(2).
    by_memory: Vec<(u32, usize)>,
    /// Whether the kernel can compare address spaces.
    can_compare: bool,
    /// Whether frame numbers are hidden.
    hides_frames: bool,
    frames: FrameOwners,
    grouping: Option<Grouping>,
    /// Whether private memory is divided by its use in heaps.
    finds_heaps: bool,
    false_flags: PageFlags,
    current: Option<(AddressSpace, Sweep)>,
    /// The number of visited pages of the current member, and of all.
    looked_at: (u64, u64),
    /// The mappings of the current member that were not added yet. `pages` is the number of their pages.
    runs: Vec<(FrameNumber, u64)>,
    pages: u64,
    objects: ObjectCounter,
    /// The filesystems in memory, if they are requested.
    filesystems: Option<FilesystemSearch>,
    rests: RestSearch,
    uncounted: UncountedProcesses,
}

impl Family {
    /// Returns the count of the family of `processes`. `scan` is whether PAGEMAP_SCAN may be used.
    pub fn new(machine: &Arc<Machine>, processes: Vec<ProcessHandle>, scan: bool) -> Self {
        Family {
            machine: Arc::clone(machine),
            may_scan: scan,
            budget: Budget::unlimited(),
            processes,
            next: 0,
            members: Vec::new(),
            by_memory: Vec::new(),
            can_compare: true,
            hides_frames: false,
            frames: FrameOwners::default(),
            grouping: None,
            finds_heaps: false,
            false_flags: machine.false_flags().unwrap_or_default(),
            current: None,
            looked_at: (0, 0),
            runs: Vec::new(),
            pages: 0,
            objects: ObjectCounter::default(),
            filesystems: None,
            rests: RestSearch::of(machine),
            uncounted: UncountedProcesses::default(),
        }
    }

    /// Limits the count by a budget.
    pub fn with_budget(self, budget: Budget) -> Self {
        Family { budget, ..self }
    }

    /// Also counts [groups](FamilySums::groups) `by` a key, if there is one.
    ///
    /// # Errors
    /// Fails if the fact cannot be known for frames.
    pub fn grouped(self, by: Option<FamilyKey>) -> Result<Self> {
        let grouping = by.map(|by| Grouping::by(by, &self.machine)).transpose()?;
        Ok(Family { grouping, ..self })
    }

    /// Counts the memory of glibc's heaps in separate classes if `finds_heaps` is set.
    pub fn with_heaps(self, finds_heaps: bool) -> Self {
        Family { finds_heaps, ..self }
    }

    /// Adds deleted files on disks to the [objects](Self::objects) if `open` is set. These files are opened.
    pub fn opening_deleted_files(mut self, open: bool) -> Self {
        if open {
            self.objects.with_deleted_files();
        }
        self
    }

    /// Adds the filesystems in memory that pmdb and the processes see to the [objects](Self::objects) if `find` is set.
    pub fn with_filesystems(self, find: bool) -> Self {
        Family { filesystems: find.then(FilesystemSearch::default), ..self }
    }

    /// Returns the next step; `None` after the last one.
    ///
    /// # Errors
    /// Fails if the kernel refuses a read, or the [budget](Self::with_budget) is used up. Processes that end or may not
    /// be examined are [left out](Self::uncounted).
    pub fn next(&mut self) -> Result<Option<FamilyStep>> {
        let Some((space, mut sweep)) = self.current.take() else {
            self.budget.look()?;
            if let Some(filesystems) = self.filesystems.as_mut().filter(|_| self.next == 0) {
                filesystems.add_own(&self.machine, &mut self.budget)?;
            }
            let Some(process) = self.processes.get(self.next).cloned() else {
                return Ok(None);
            };
            self.next += 1;
            let step = FamilyStep::Process(self.next as u64, self.processes.len() as u64);
            self.begin(&process).or_else(|error| self.leave_out(error))?;
            return Ok(Some(step));
        };
        match self.pull(&space, &mut sweep) {
            Ok(true) => self.current = Some((space, sweep)),
            Ok(false) => self.flush()?,
            Err(error) => {
                self.flush()?;
                self.objects.end_early();
                self.leave_out(error)?;
            }
        }
        let (done, of) = self.looked_at;
        Ok(Some(FamilyStep::Pages(done, of)))
    }

    /// Opens a process, unless its address space was already counted.
    fn begin(&mut self, process: &ProcessHandle) -> Result<()> {
        let place = self.place(process.pid);
        if let Some(Ok(same)) = place {
            return self.add_to(same, process);
        }
        let OpenedProcess { process: opened, modules } = match self.machine.open(process) {
            Err(error @ process::Error::NotAvailable { .. }) if !self.machine.is_captured() => {
                self.uncounted.kernel_threads += 1;
                self.uncounted.reason.get_or_insert(error.into());
                return Ok(());
            }
            opened => opened?,
        };
        opened.set_scan(self.may_scan);
        self.hides_frames |= opened.are_frames_hidden();
        let opened = opened.with_budget(self.budget.clone());
        let target = Target { process: opened, machine: Arc::clone(&self.machine), modules };
        let mut member = FamilyMember {
            identity: target.process.identity(),
            same_memory: Vec::new(),
            rss: 0,
            alone: Ok(0),
            ends: Ok(0),
            pss: None,
            hugetlb: 0,
            counts_shared: false,
            elsewhere: 0,
        };
        if self.hides_frames {
            let rollup = target.process.rollup()?;
            member.rss = rollup.field("Rss").unwrap_or_default();
            member.alone = Ok(rollup.uss());
            member.ends = Err(crate::report::Reason::FrameHidden);
            member.pss = rollup.field("Pss");
            member.hugetlb = rollup.hugetlb();
            member.counts_shared = rollup.shared() > 0;
        } else if self.members.len() < MOST_MEMBERS {
            let space = AddressSpace::of(&target)?;
            let need = self.need(&space)?;
            self.objects.enter(&space);
            self.objects.add_process(&space, &mut self.budget)?;
            if let Some(filesystems) = &mut self.filesystems {
                filesystems.add_process(&target.process, &mut self.budget)?;
            }
            let spans = space.spans();
            self.looked_at = (0, spans.iter().map(|span| span.pages(space.page_size())).sum());
            let sweep = space.pages(&spans, need).with_budget(self.budget.clone());
            self.current = Some((space, sweep));
        }
        match place {
            Some(Err(place)) => {
                self.by_memory.insert(place.min(self.by_memory.len()), (process.pid, self.members.len()))
            }
            _ => self.can_compare = false,
        }
        self.members.push(member);
        Ok(())
    }

    /// Searches an address space among those of the members: its index, or the place to insert it; `None` if the kernel
    /// does not compare it.
    fn place(&mut self, pid: u32) -> Option<std::result::Result<usize, usize>> {
        let machine = Arc::clone(&self.machine);
        let search = |members: &[(u32, usize)]| {
            machine.find_memory(&members.iter().map(|(member, _)| *member).collect::<Vec<_>>(), pid)
        };
        search(&self.by_memory).or_else(|| {
            // A member that has ended since is compared with nothing.
            self.by_memory.retain(|&(member, _)| machine.find_memory(&[member], member).is_some());
            search(&self.by_memory)
        })
    }

    /// Returns the evidence that is read of each page of a process.
    fn need(&self, space: &AddressSpace) -> Result<Evidence> {
        let need = Evidence::FRAMES | Evidence::ENTRIES;
        if !self.finds_heaps {
            return Ok(need);
        }
        // Fails here, so that a process whose memory may not be read is left out as a whole.
        space.heap_uses()?;
        Ok(need | Evidence::HEAP)
    }

    /// Adds a process that shares the address space of another one.
    fn add_to(&mut self, same: usize, process: &ProcessHandle) -> Result<()> {
        let member = self.by_memory.get(same).and_then(|(_, member)| self.members.get_mut(*member));
        if let Some(member) = member {
            member.same_memory.push(process.pid);
        }
        // The process may have a separate table of descriptors.
        if let Ok(opened) = self.machine.open(process) {
            self.objects.add_descriptors(&opened.process, &mut self.budget)?;
        }
        Ok(())
    }

    /// Adds the next pages of the current member. Returns false after the last ones.
    fn pull(&mut self, space: &AddressSpace, sweep: &mut Sweep) -> Result<bool> {
        let Some(chunk) = sweep.next()? else {
            return Ok(false);
        };
        self.looked_at.0 += chunk.pages;
        let size = space.page_size();
        let backing = chunk.region.map(|viewed| viewed.backing);
        let is_kernel = backing == Some(Backing::Kernel);
        // Frames of the kernel and of drivers have the flags of a file page or none. Flags decide all other kinds.
        let own_kind = match backing {
            Some(Backing::Kernel) => Some(FrameKind::Kernel),
            Some(Backing::Driver) => Some(FrameKind::Driver),
            Some(Backing::Secret) => Some(FrameKind::Secret),
            _ => None,
        };
        let object = chunk.region.filter(|viewed| has_counted_parts(viewed)).map(|viewed| &viewed.region);
        let pid = self.members.last().map_or(0, |member| member.identity.pid);
        let mut of_region: Option<Option<u32>> = None;
        for page in chunk.pages() {
            if let Some(region) = object {
                self.objects.add_page(region, &page, size);
            }
            let frame = match (page.state(), page.frame(), own_kind) {
                (State::Present, ..) if backing == Some(Backing::Hugetlb) => {
                    if let Some(member) = self.members.last_mut() {
                        member.hugetlb += page.bytes(size);
                    }
                    continue;
                }
                _ if backing == Some(Backing::Hugetlb) => continue,
                // An ordinary page of the kernel has an entry like that of a file.
                (State::Present, Some(frame), Some(kind)) if page.entry.is_file_or_shared() => {
                    self.frames.set_kind(frame, page.pages, kind)?;
                    frame
                }
                (State::Present, Some(_), _) if is_kernel => continue,
                (State::Present, Some(frame), _) => frame,
                (State::Migrating | State::Device, ..) => {
                    if let Some(member) = self.members.last_mut() {
                        member.elsewhere += page.bytes(size);
                        member.rss += page.bytes(size);
                    }
                    continue;
                }
                _ => continue,
            };
            self.push(frame, &page)?;
            let grouping = self.grouping.as_mut().zip(chunk.region);
            let objects = &self.objects;
            let number = || grouping.and_then(|(by, viewed)| by.number(&viewed.region, objects, pid));
            if let Some(group) = *of_region.get_or_insert_with(number) {
                self.frames.set_group(frame, page.pages, group)?;
            }
        }
        if self.pages >= TOGETHER {
            self.flush()?;
        }
        Ok(true)
    }

    fn push(&mut self, frame: FrameNumber, page: &Page) -> Result<()> {
        let pages = page.pages;
        self.pages += pages;
        if let Some(heap) = page.heap {
            self.frames.set_heap(frame, pages, heap.into())?;
        }
        if !page.entry.is_file_or_shared() {
            self.rests.add(frame, pages);
        }
        match self.runs.last_mut() {
            Some((first, count)) if first.checked_add(*count) == Some(frame) => *count += pages,
            _ => self.runs.push((frame, pages)),
        }
        Ok(())
    }

    /// Adds the collected mappings.
    fn flush(&mut self) -> Result<()> {
        let index = self.members.len().saturating_sub(1);
        let counted = self.frames.add(&self.runs, index, self.false_flags, &self.machine)?;
        self.rests.search(index, &self.machine, &mut self.budget)?;
        if let Some(member) = self.members.last_mut() {
            member.rss += counted << self.machine.page_size().shift();
        }
        self.runs.clear();
        self.pages = 0;
        Ok(())
    }

    /// Leaves out a process that has ended or may not be examined. Returns other errors.
    fn leave_out(&mut self, error: Error) -> Result<()> {
        match error {
            Error::Target(process::Error::NotPermitted { .. }) => self.uncounted.refused += 1,
            Error::Target(process::Error::Gone { .. }) | Error::Executed | Error::Exited => self.uncounted.ended += 1,
            error => return Err(error),
        }
        self.uncounted.reason.get_or_insert(error);
        Ok(())
    }

    /// Returns the objects in memory that the processes map or have a descriptor of, and that have more pages than the
    /// page tables of these processes. It is called once, after the last step. Returns none if frame numbers are
    /// hidden.
    pub fn objects(&mut self) -> MemoryObjects {
        let counter = std::mem::take(&mut self.objects);
        let search = self.filesystems.take().unwrap_or_default();
        let filesystems = MemoryFilesystems::of(search, |device| Some(counter.bytes_on(device)));
        MemoryObjects { filesystems, ..counter.finish(&self.machine) }
    }

    /// Returns the machine of the processes.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    /// Returns the processes that could not be counted, or not completely.
    pub fn uncounted(&self) -> &UncountedProcesses {
        &self.uncounted
    }

    /// Returns whether the kernel could compare all address spaces.
    pub fn compares(&self) -> bool {
        self.can_compare
    }

    /// Returns the page size.
    fn page_size(&self) -> PageSize {
        self.machine.page_size()
    }
}
