//! The source of `--how`: it wraps another, and logs what is read through it.
//!
//! It does not log how the kernel was built and set up (`info capabilities` shows that), nor the contents of mapped
//! files.

mod reads;

use super::{
    Answer, Asked, Backing, BackingRun, Cgroup, CgroupQuery, File, FileMappings, GroupText, Held, KernelRecords, List,
    Listed, Mapping, Notes, PageRegion, Place, Probe, Query, Question, Reply, Scan, Source,
};
use crate::access::log::{Log, LoggedRead};
use crate::access::{self, Result};
use crate::budget::{Budget, until_interrupted};
use crate::kernel::core_notes::CoreNotes;
use crate::kernel::mounts::{self, Controller};
use crate::kernel::{AddressRange, Name, PageSize, Region, TableEntry, VirtualAddress, WordFile};
use crate::records::{FrameRecord, Meanwhile, OwnerDetail, RecordParts, RecordedMapper, SwappedRange};
use reads::{count_of, result_words};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Wraps `source`: `log` gets the reads of it, and of the processes that it opens.
pub fn source(source: &Arc<dyn Source>, log: &Arc<Log>) -> Arc<dyn Source> {
    Arc::new(RecordedSource {
        pid: source.identity().pid,
        page: source.page_size(),
        source: Arc::clone(source),
        log: Arc::clone(log),
        lines: AtomicUsize::new(0),
    })
}

/// A [`Source`] around another.
struct RecordedSource {
    source: Arc<dyn Source>,
    log: Arc<Log>,
    pid: u32,
    page: PageSize,
    /// The number of lines of `maps` that were read since its beginning.
    lines: AtomicUsize,
}

impl RecordedSource {
    fn file(&self, name: &str) -> String {
        format!("/proc/{}/{name}", self.pid)
    }

    /// Logs a query of the object that a region maps.
    fn behind_region(&self, region: &Region, at: VirtualAddress, read: LoggedRead) {
        let read =
            LoggedRead { file: File::MappedFile(region.range).path(self.pid), offset: region.file_offset(at), ..read };
        self.log.add("map_files", read);
    }

    /// Returns the mount point of the hierarchy with a controller. The log names it, because inodes of other cgroup
    /// hierarchies may coincide.
    fn cgroup_mount(&self, controller: Controller) -> String {
        let mounts = self.source.fetch(File::OwnMounts).ok();
        let mounts = mounts.and_then(|text| access::mounts(&text, &mut until_interrupted()).ok());
        let mount = mounts.as_deref().and_then(|mounts| mounts::hierarchy(mounts, controller));
        mount.map_or("/sys/fs/cgroup".to_owned(), |mount| mount.point.to_string())
    }

    fn text(&self, file: File, budget: &mut Budget) -> Result<Vec<u8>> {
        let answer = self.source.get(file, budget);
        if let Some(kind) = reads::kind(file) {
            let found = result_words(&answer, |bytes| reads::contents(file, bytes));
            self.log.add_file(kind, file.path(self.pid), file.what(), found);
        }
        answer
    }

    fn group_text(&self, asked: GroupText<'_>, budget: &mut Budget) -> Result<Vec<u8>> {
        let answer = self.source.get(asked, budget);
        let GroupText { path, file } = asked;
        let file = format!("{}{}/{}", self.cgroup_mount(file.controller()), Name::copied(path), file.name());
        self.log.add("cgroup", reads::group_text(file, &answer));
        answer
    }

    fn groups(&self, which: CgroupQuery<'_>, budget: &mut Budget) -> Result<Vec<Cgroup>> {
        let answer = self.source.get(which, budget);
        let file = self.cgroup_mount(Controller::Memory);
        self.log.add("cgroup", reads::cgroups(which, &answer, file));
        answer
    }

    fn mapping(&self, question: Query, budget: &mut Budget) -> Result<Answer> {
        let answer = self.source.get(question, budget);
        // Without PROCMAP_QUERY nothing is read, and so nothing is logged.
        if !matches!(answer, Ok(Answer::Unavailable)) {
            self.log.add("maps", reads::query(question, self.file("maps"), &answer));
        }
        answer
    }

    fn file_mappings(&self, budget: &mut Budget) -> Result<Option<Vec<Mapping>>> {
        let answer = self.source.get(FileMappings, budget);
        self.log.add("map_files", reads::file_mappings(self.file("map_files"), &answer));
        answer
    }

    fn backing(&self, asked: Backing<'_>, budget: &mut Budget) -> Result<Vec<BackingRun>> {
        let answer = self.source.get(asked, budget);
        let Backing { region, range } = asked;
        let read = LoggedRead {
            length: Some(range.len()),
            what: format!("the page cache of {range} (SEEK_DATA, cachestat)"),
            found: Some(result_words(&answer, |runs| reads::runs(runs))),
            ..LoggedRead::default()
        };
        self.behind_region(region, range.start(), read);
        answer
    }

    fn notes(&self, budget: &mut Budget) -> Result<Option<Arc<CoreNotes>>> {
        let answer = self.source.get(Notes, budget);
        if let Ok(Some(notes)) = &answer {
            let found = count_of(notes.threads.len(), "thread", "threads");
            let (file, what) = ("the core file".to_owned(), "the notes of the process and its machine".to_owned());
            self.log.add("core", LoggedRead { file, what, found: Some(found), ..LoggedRead::default() });
        }
        answer
    }

    fn probe(&self, probe: Probe<'_>, budget: &mut Budget) -> Result<Vec<u64>> {
        let answer = self.source.get(probe, budget);
        if let Some(what) = reads::probe(probe) {
            let read = LoggedRead {
                file: "memfd_create".to_owned(),
                what: what.to_owned(),
                found: Some(result_words(&answer, |words| reads::devices(words))),
                ..LoggedRead::default()
            };
            self.log.add("probe", read);
        }
        answer
    }
}

impl Source for RecordedSource {
    fn inner(&self) -> Option<&dyn Source> {
        Some(&*self.source)
    }

    fn ask(&self, question: Question<'_>, budget: &mut Budget) -> Result<Reply> {
        match question {
            Question::Text(file) => file.reply(self.text(file, budget)),
            Question::GroupText(asked) => asked.reply(self.group_text(asked, budget)),
            Question::Groups(which) => which.reply(self.groups(which, budget)),
            Question::Mapping(query) => query.reply(self.mapping(query, budget)),
            Question::FileMappings(asked) => asked.reply(self.file_mappings(budget)),
            Question::Backing(asked) => asked.reply(self.backing(asked, budget)),
            Question::Probe(probe) => probe.reply(self.probe(probe, budget)),
            Question::Notes(asked) => asked.reply(self.notes(budget)),
            Question::Rights(_) | Question::Records(_) | Question::HeapWords(_) => self.source.ask(question, budget),
        }
    }

    fn maps(&self, offset: u64, into: &mut Vec<u8>) -> Result<usize> {
        let before = into.len();
        let answer = self.source.maps(offset, into);
        if offset == 0 {
            self.lines.store(0, Ordering::Relaxed);
        }
        let read = into.get(before..).unwrap_or_default();
        let lines = memchr::memchr_iter(b'\n', read).count();
        let lines = lines + self.lines.fetch_add(lines, Ordering::Relaxed);
        // A text that is read in parts is logged once, at its end.
        if !matches!(answer, Ok(1..)) {
            let found = result_words(&answer, |_| count_of(lines, "region", "regions"));
            let what = "all regions (the text)";
            self.log.add_file("maps", self.file("maps"), what, found);
        }
        answer
    }

    fn words(&self, file: WordFile, first: u64, into: &mut [u64]) -> Result<usize> {
        let answer = self.source.words(file, first, into);
        let path = match file {
            WordFile::PageMap => self.file(file.name()),
            of_frames => format!("/proc/{}", of_frames.name()),
        };
        self.log.add(file.name(), reads::words(file, path, first, &answer, into, self.page));
        answer
    }

    fn kernel_records(&self) -> Result<&dyn KernelRecords> {
        self.source.kernel_records().map(|_| self as &dyn KernelRecords)
    }

    fn bytes(&self, place: Place<'_>, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        let answer = self.source.bytes(place, address, into);
        match place {
            Place::Memory => self.log.add("mem", reads::memory(self.file("mem"), address, &answer, into)),
            Place::PageCache(region) => {
                let read = LoggedRead {
                    length: Some(into.len() as u64),
                    what: format!("bytes of the page cache at {address}"),
                    found: Some(result_words(&answer, |read| format!("{read} bytes"))),
                    ..LoggedRead::default()
                };
                self.behind_region(region, address, read);
            }
        }
        answer
    }

    fn clear_soft_dirty(&self) -> Result<()> {
        let answer = self.source.clear_soft_dirty();
        self.log.add("clear_refs", reads::clear_soft_dirty(self.file("clear_refs"), &answer));
        answer
    }

    fn scan(&self, question: Scan, into: &mut [PageRegion]) -> Result<(usize, u64)> {
        let answer = self.source.scan(question, into);
        // A scan of an empty range only finds which categories the kernel has.
        if question.start < question.end {
            self.log.add("scan", reads::scan(self.file("pagemap"), question, &answer, into, self.page));
        }
        answer
    }

    fn list(&self, which: List) -> Result<Vec<Listed>> {
        let answer = self.source.list(which);
        let file = match which {
            List::Threads => self.file("task"),
            List::Descriptors => self.file("fd"),
            List::DescriptorsOf(thread) => self.file(&format!("task/{thread}/fd")),
            List::Held | List::All | List::One(_) => "/proc".to_owned(),
        };
        self.log.add("proc", reads::list(which, file, &answer));
        answer
    }

    fn open(&self, pid: u32, held: &Held) -> Result<Arc<dyn Source>> {
        Ok(source(&self.source.open(pid, held)?, &self.log))
    }
}

impl KernelRecords for RecordedSource {
    fn frames(&self, first: u64, parts: RecordParts, into: &mut [FrameRecord]) -> Result<()> {
        let answer = self.source.kernel_records()?.frames(first, parts, into);
        self.log.add("kcore", reads::records(first, parts, &answer, into));
        answer
    }

    fn mappers(&self, frame: u64, meanwhile: Meanwhile<'_>, budget: &mut Budget) -> Result<Vec<RecordedMapper>> {
        let answer = self.source.kernel_records()?.mappers(frame, meanwhile, budget);
        self.log.add("kcore", reads::mappers(frame, &answer));
        answer
    }

    fn owner_detail(&self, frame: u64) -> Result<Option<OwnerDetail>> {
        let answer = self.source.kernel_records()?.owner_detail(frame);
        self.log.add("kcore", reads::owner_detail(frame, &answer));
        answer
    }

    fn table_entries(&self, first: u64, into: &mut [Option<TableEntry>]) -> Result<()> {
        let answer = self.source.kernel_records()?.table_entries(first, into);
        let start = VirtualAddress::new(first.saturating_mul(self.page.bytes()));
        self.log.add("kcore", reads::table_entries(start, &answer, into));
        answer
    }

    fn slots(&self, region: &Region, range: AddressRange, budget: &mut Budget) -> Result<Vec<SwappedRange>> {
        let answer = self.source.kernel_records()?.slots(region, range, budget);
        self.log.add("kcore", reads::slots(range, &answer));
        answer
    }
}
