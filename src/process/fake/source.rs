//! The words, bytes and answers that a fake world makes.

use super::texts::stat;
use super::{HUGE, PAGE, PRESENT, World, none, region};
use crate::access::{Error, Identity, InMemory, Liveness, ReadAt, Result};
use crate::budget::Budget;
use crate::kernel::{AddressRange, Name, PageFlags, PageMapEntry, Region, VirtualAddress, WordFile};
use crate::process::{ProcessHandle, Target};
use crate::source::{
    Answer, Asked, Backing, FileLocation, Held, KernelRecords, List, Listed, Mapping, PageRegion, Place, Probe, Query,
    Question, RecordsOf, Reply, Scan, Source,
};
use crate::source::{BackingContent, BackingRun, Categories, CoreOrigin, Origin};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const EM_X86_64: u64 = 62;
const EM_AARCH64: u64 = 183;

/// The page index after the last of the page map: above is the kernel half.
const END: u64 = (1 << 47) / PAGE;

#[derive(Clone)]
pub(super) struct FakeSource(pub(super) Arc<World>);

fn refused(file: &str) -> Error {
    Error::not_permitted(format!("may not open {file}"), "run pmdb as root")
}

fn gone<T>() -> Result<T> {
    Err(Error::gone("gone"))
}

impl World {
    pub fn target(self) -> (Arc<World>, Target) {
        let world = Arc::new(self);
        let target = Target::new(Arc::new(FakeSource(Arc::clone(&world))));
        (world, target)
    }

    pub(super) fn is_exited(&self) -> bool {
        matches!(*self.watched.liveness.lock().expect("a lock"), Some(Liveness::Exited(_)))
    }

    /// Counts an answer about the process, and ends the process after the last one.
    pub(super) fn answer(&self) -> Result<()> {
        match self.watched.answers_left.lock().expect("a lock").as_mut() {
            Some(0) => {
                *self.watched.liveness.lock().expect("a lock") = Some(Liveness::Exited(None));
                return gone();
            }
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(())
    }

    fn entry(&self, page: u64) -> u64 {
        let entry = self.entries.get(&page).copied().unwrap_or_default();
        let gone = self.watched.gone_after_read.lock().expect("a lock");
        let was_read = self.watched.memory_reads.load(Ordering::Relaxed) > 0;
        let entry = match was_read && gone.contains(&page) {
            true => 0,
            false if self.hidden && entry & PRESENT != 0 => entry & !((1 << 55) - 1),
            false => entry,
        };
        entry | self.hole()
    }

    fn is_cleared(&self) -> bool {
        self.watched.soft_dirty_cleared.load(Ordering::Relaxed) > 0
    }

    /// Returns the entry of an empty page.
    fn hole(&self) -> u64 {
        u64::from(self.soft_dirty && !self.is_cleared()) << 55
    }

    /// Returns the categories that a scan reports for a page.
    fn categories(&self, page: u64) -> Categories {
        let raw = self.entry(page);
        let entry = PageMapEntry::new(raw);
        let is_huge = |start: &u64| (*start..start + HUGE).contains(&page);
        let mut categories = Categories::empty();
        categories.set(Categories::FILE, entry.is_file_or_shared());
        categories.set(Categories::PRESENT, entry.is_present());
        categories.set(Categories::SWAPPED, entry.is_swap_entry());
        // A scan reports it even if frames are hidden.
        let is_zero = self.entries.get(&page).is_some_and(|raw| raw << 9 >> 9 == 1);
        categories.set(Categories::ZERO, entry.is_present() && is_zero);
        categories.set(Categories::HUGE, self.huge.iter().any(is_huge));
        categories.set(Categories::SOFT_DIRTY, entry.is_soft_dirty());
        categories.set(Categories::GUARD, entry.is_guard());
        categories
    }
}

impl World {
    fn memory(&self, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        let Some(pages) = &self.memory else {
            return none();
        };
        self.watched.memory_reads.fetch_add(1, Ordering::Relaxed);
        let mut read = 0;
        for byte in into {
            let at = address.get() + read as u64;
            let page = pages.get(&(at / PAGE));
            match page.and_then(|page| page.get((at % PAGE) as usize)) {
                Some(value) => *byte = *value,
                None => break,
            }
            read += 1;
        }
        Ok(read)
    }

    fn read_cached(&self, region: &Region, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        let world = self;
        let bytes = world.files.get(&region.name).cloned().unwrap_or_default();
        let offset = region.file_offset(address).unwrap_or(u64::MAX);
        let first = address.get() / PAGE;
        let pages = (first..).take_while(|page| world.cached.contains(page));
        let end = (first + pages.count() as u64) * PAGE;
        let most = (end.saturating_sub(address.get()) as usize).min(into.len());
        let into = into.get_mut(..most).unwrap_or_default();
        let read = InMemory::file(bytes).read_at(offset, into);
        read.map_err(|_| refused("the page cache"))
    }
}

impl FakeSource {
    fn mapping(&self, question: Query) -> Result<Answer> {
        if !self.0.queries {
            return Ok(Answer::Unavailable);
        }
        let regions = self.0.regions.lock().expect("a lock");
        let mut regions = regions.iter();
        let found = match question {
            Query::At(address) => regions.find(|one| one.range.contains(address)),
            Query::From(address) => regions.find(|one| one.range.end() > address),
        };
        Ok(found.map_or(Answer::Nothing, |region| {
            let letters = region.permissions;
            let mark: &[u8] = if region.deleted { b" (deleted)" } else { b"" };
            Answer::Found(Mapping {
                start: region.range.start().get(),
                end: region.range.end().get(),
                flags: u64::from(letters.read)
                    | u64::from(letters.write) << 1
                    | u64::from(letters.execute) << 2
                    | u64::from(letters.shared) << 3,
                offset: region.offset,
                inode: region.inode,
                device: (region.device.major, region.device.minor),
                name: [region.name.as_bytes(), mark].concat(),
            })
        }))
    }

    fn backing(&self, Backing { region, range }: Backing<'_>) -> Result<Vec<BackingRun>> {
        let world = &*self.0;
        world.behind_asked.fetch_add(1, Ordering::Relaxed);
        match world.asks_files {
            true if !world.files.contains_key(&region.name) => {
                return Err(refused(&region.name.to_string()));
            }
            false if region.deleted => return none(),
            _ => {}
        }
        let pages = range.start().get() / PAGE..range.end().get() / PAGE;
        let asked = pages.end - pages.start;
        world.behind_pages.fetch_add(asked, Ordering::Relaxed);
        let mut runs: Vec<BackingRun> = Vec::new();
        for page in pages {
            let content = if !world.asks_files {
                world.content.get(&page).copied().unwrap_or(BackingContent::Hole)
            } else {
                BackingContent::Contents { cached: world.cached.contains(&page) }
            };
            let range = self::region(page, 1).range;
            match runs.last_mut() {
                Some(last) if last.content.as_ref().ok() == Some(&content) => {
                    let both = AddressRange::new(last.range.start(), range.end());
                    last.range = both.expect("pages");
                }
                _ => runs.push(BackingRun { range, content: Ok(content) }),
            }
        }
        Ok(runs)
    }

    fn probe(&self, probe: Probe<'_>) -> Result<Vec<u64>> {
        let space = |pid: u32| {
            if pid == self.0.pid {
                return Some(self.0.space);
            }
            let mut all = self.0.processes.iter();
            let (_, world) = all.find(|(one, _)| one.pid == pid)?;
            Some(world.as_ref()?.space)
        };
        match probe {
            Probe::PageBytes => Ok(vec![PAGE]),
            Probe::Machine if self.0.layout.is_char_signed => Ok(vec![EM_X86_64]),
            Probe::Machine => Ok(vec![EM_AARCH64]),
            Probe::LittleEndian => Ok(vec![u64::from(self.0.layout.is_little_endian)]),
            // The entry of a page that pmdb has just written to.
            Probe::OwnEntry if self.0.soft_dirty => {
                let frame = u64::from(!self.0.hidden);
                Ok(vec![PRESENT | 1 << 55 | frame])
            }
            Probe::OwnFlags if self.0.merged_pages > 0 => Ok(vec![(PageFlags::ANON | PageFlags::KSM).bits()]),
            Probe::OwnNumber if self.0.own.is_some() => Ok(self.0.own.into_iter().map(u64::from).collect()),
            Probe::SharedMemory => match self.0.shared_memory {
                Some(device) => Ok(vec![device.major.into(), device.minor.into()]),
                None => none(),
            },
            Probe::Filesystem(..) | Probe::OwnFilesystem(..) => {
                self.0.statfs.map_or_else(none, |words| Ok(words.into()))
            }
            Probe::FrameRight => Ok(vec![u64::from(!self.0.hidden)]),
            Probe::Compare(one, other) => match space(one).zip(space(other)) {
                Some((one, other)) if one == other => Ok(vec![0]),
                Some((one, other)) => Ok(vec![if one < other { 1 } else { 2 }]),
                None => none(),
            },
            _ => none(),
        }
    }

    pub(super) fn require_records(&self, of: RecordsOf) -> Result<()> {
        let is_there = match of {
            RecordsOf::Frames(_) if self.0.records.is_none() => return Err(refused("/proc/kcore")),
            RecordsOf::Frames(_) => true,
            RecordsOf::PageTables => self.0.tables.is_some(),
            RecordsOf::Slots => self.0.slots.is_some(),
        };
        if is_there { Ok(()) } else { none() }
    }
}

impl Source for FakeSource {
    fn identity(&self) -> Identity {
        Identity { pid: self.0.pid, start_time: self.0.start_time, name: "fake".into() }
    }

    fn liveness(&self) -> Result<Liveness> {
        let mut liveness = self.0.watched.liveness.lock().expect("a lock");
        // Each exec is reported once.
        Ok(match *liveness {
            Some(Liveness::Executed) => liveness.take().unwrap_or(Liveness::Alive),
            other => other.unwrap_or(Liveness::Alive),
        })
    }

    fn origin(&self) -> Origin {
        if self.0.refused.contains(&WordFile::PageMap) {
            Origin::Core(Arc::new(CoreOrigin { time: 0, stored: Some(Vec::new()) }))
        } else {
            Origin::Live(None)
        }
    }

    fn ask(&self, question: Question<'_>, budget: &mut Budget) -> Result<Reply> {
        match question {
            Question::Text(file) => file.reply(self.0.text_of(file, budget)),
            Question::GroupText(asked) => asked.reply(self.0.group_text(asked)),
            Question::Mapping(query) => query.reply(self.mapping(query)),
            Question::Backing(asked) => asked.reply(self.backing(asked)),
            Question::Probe(probe) => probe.reply(self.probe(probe)),
            Question::Records(of) => of.reply(self.require_records(of)),
            Question::Groups(asked) if !self.0.cgroups.is_empty() => asked.reply(Ok(self.0.cgroups.clone())),
            Question::Groups(_)
            | Question::FileMappings(_)
            | Question::Notes(_)
            | Question::HeapWords(_)
            | Question::Rights(_) => question.unanswered(),
        }
    }

    fn maps(&self, offset: u64, into: &mut Vec<u8>) -> Result<usize> {
        /// The size of one read in a comparison.
        const LITTLE: usize = 8 << 10;
        if self.0.is_exited() {
            return gone();
        }
        self.0.answer()?;
        let room = into.capacity() - into.len();
        if offset == 0 && room > LITTLE {
            self.0.watched.region_reads.fetch_add(1, Ordering::Relaxed);
        }
        let text = self.0.maps_text();
        let rest = text.get(offset as usize..).unwrap_or_default();
        let read = rest.get(..room).unwrap_or(rest);
        into.extend_from_slice(read);
        Ok(read.len())
    }

    fn words(&self, file: WordFile, first: u64, into: &mut [u64]) -> Result<usize> {
        let world = &*self.0;
        if world.refused.contains(&file) {
            let process = if file == WordFile::PageMap { "4321/" } else { "" };
            return Err(refused(&format!("/proc/{process}{}", file.name())));
        }
        let (table, read) = match file {
            WordFile::PageMap => {
                world.answer()?;
                let count = END.saturating_sub(first).min(into.len() as u64);
                let into = into.get_mut(..count as usize).unwrap_or_default();
                into.fill(world.hole());
                for (&page, _) in world.entries.range(first..first + count) {
                    into[(page - first) as usize] = world.entry(page);
                }
                world.entries_read.fetch_add(count, Ordering::Relaxed);
                if let Some(then) = world.then.lock().expect("a lock").take() {
                    *world.regions.lock().expect("a lock") = then;
                }
                return Ok(count as usize);
            }
            WordFile::FrameFlags => (&world.flags, &world.flags_read),
            WordFile::FrameCgroups => (&world.charged, &world.charges_read),
            WordFile::FrameCounts => (&world.counts, &world.counts_read),
        };
        read.fetch_add(into.len() as u64, Ordering::Relaxed);
        for (frame, word) in (first..).zip(into.iter_mut()) {
            *word = table.get(&frame).copied().unwrap_or_default();
        }
        Ok(into.len())
    }

    fn kernel_records(&self) -> Result<&dyn KernelRecords> {
        Ok(self)
    }

    fn bytes(&self, place: Place<'_>, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        match place {
            Place::Memory => self.0.memory(address, into),
            Place::PageCache(region) => self.0.read_cached(region, address, into),
        }
    }

    fn clear_soft_dirty(&self) -> Result<()> {
        let cleared = &self.0.watched.soft_dirty_cleared;
        cleared.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn scan(&self, question: Scan, into: &mut [PageRegion]) -> Result<(usize, u64)> {
        let world = &*self.0;
        if !world.scans {
            return none();
        }
        let (first, end) = (question.start / PAGE, question.end.div_ceil(PAGE));
        let returned = Categories::from_bits_retain(question.returned);
        let any_of = Categories::from_bits_retain(question.any_of);
        if any_of.is_empty() {
            // Each page of a region that is not of a driver.
            let at = VirtualAddress::new(question.start);
            let regions = world.regions.lock().expect("a lock");
            let mut regions = regions.iter();
            let is_there = regions.any(|one| one.range.contains(at) && !is_of_driver(one));
            return Ok((usize::from(is_there && !into.is_empty()), question.end));
        }
        let (mut count, most) = (0usize, into.len());
        let mut stopped = question.end;
        for (&page, _) in world.entries.range(first..end) {
            let categories = world.categories(page);
            if !categories.intersects(any_of) {
                continue;
            }
            let (start, shown) = (page * PAGE, (categories & returned).bits());
            let last = count.checked_sub(1);
            match last.and_then(|last| into.get_mut(last)) {
                Some(last) if last.end == start && last.categories == shown => {
                    last.end = start + PAGE;
                }
                _ if count == most => return Ok((count, start)),
                _ => {
                    if count > 0 && count.is_multiple_of(world.scan_buffer) {
                        stopped = start;
                    }
                    into[count] = PageRegion { start, end: start + PAGE, categories: shown };
                    count += 1;
                }
            }
            world.scanned.fetch_add(1, Ordering::Relaxed);
        }
        Ok((count, stopped))
    }

    fn list(&self, which: List) -> Result<Vec<Listed>> {
        if which == List::Descriptors && self.0.descriptors_fail {
            return Err(Error::not_permitted("cannot open /proc/1/fd", ""));
        }
        if which == List::Descriptors {
            let links = (0..).zip(&self.0.descriptors);
            let listed = links.map(|(number, (link, _))| Listed {
                pid: number,
                program: Some(link.as_bytes().to_vec()),
                ..Listed::default()
            });
            return Ok(listed.collect());
        }
        let listed = |(one, _): &(ProcessHandle, _)| Listed {
            pid: one.pid,
            stat: stat(one.pid, one.parent, 0),
            status: Vec::new(),
            program: None,
            held: Held::default(),
        };
        Ok(self.0.processes.iter().map(listed).collect())
    }

    fn open(&self, pid: u32, _: &Held) -> Result<Arc<dyn Source>> {
        let mut all = self.0.processes.iter();
        match all.find(|(one, _)| one.pid == pid) {
            Some((_, Some(world))) if world.is_exited() => gone(),
            Some((_, Some(world))) => Ok(Arc::new(FakeSource(world.clone()))),
            Some((_, None)) => Err(Error::not_permitted("refused", "")),
            None => gone(),
        }
    }

    fn file(&self, place: FileLocation<'_>) -> Result<Option<Box<dyn ReadAt>>> {
        let path = match place {
            FileLocation::Region(region) => region.name.as_bytes(),
            FileLocation::Path(path) | FileLocation::Trusted(path, _) => path,
            FileLocation::OwnPath(_) | FileLocation::OwnVdso(_) => return Ok(None),
        };
        let file = self.0.files.get(&Name::new(path));
        let file = file.map(|bytes| Box::new(InMemory::file(bytes.clone())) as Box<dyn ReadAt>);
        if let FileLocation::Region(region) = place {
            self.0.watched.files_opened.fetch_add(1, Ordering::Relaxed);
            return match file {
                Some(file) => Ok(Some(file)),
                None => Err(refused(&region.name.to_string())),
            };
        }
        Ok(file)
    }
}

fn is_of_driver(region: &Region) -> bool {
    let name = region.name.as_bytes();
    name == b"/dev/mem" || name.starts_with(b"/sys/")
}

/// A source with the same file at every path.
#[cfg(feature = "symbols")]
pub(crate) struct Everywhere<F>(pub(crate) F);

#[cfg(feature = "symbols")]
impl<F: Fn() -> Box<dyn ReadAt> + Send + Sync> Source for Everywhere<F> {
    fn file(&self, _: FileLocation<'_>) -> Result<Option<Box<dyn ReadAt>>> {
        Ok(Some((self.0)()))
    }
}
