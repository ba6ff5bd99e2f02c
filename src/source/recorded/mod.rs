//! `--how`: a source that wraps another, and records what is read through it.
//!
//! It does not record how the kernel was built and set up (`info capabilities` tells that), nor the contents of mapped
//! files.

mod log;

pub use log::{Log, LoggedRead, Reads, dump_of_any};

use super::{
    Answer, Asked, Backing, BackingRun, Cgroup, CgroupQuery, File, FileMappings, FrameRecord, GroupText, Held,
    KernelRecords, List, Listed, Mapping, Meanwhile, OwnerDetail, PageRegion, Place, Probe, Query, Question,
    RecordParts, RecordedMapper, Reply, Result, Scan, Source, SwappedRange, WordFile,
};
use crate::budget::Budget;
use crate::kernel::mounts::{self, Controller};
use crate::kernel::{AddressRange, PageSize, Region, TableEntry, VirtualAddress};
use log::{WORD, count_of, dump, result_words};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Wraps `source`: `log` records what is read of it, and of the processes that it opens.
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
    /// Lines of `maps` that were read since its beginning.
    lines: AtomicUsize,
}

impl RecordedSource {
    fn file(&self, name: &str) -> String {
        format!("/proc/{}/{name}", self.pid)
    }

    /// Records a query of the object behind a region.
    fn behind_region(&self, region: &Region, at: VirtualAddress, read: LoggedRead) {
        let read =
            LoggedRead { file: File::MappedFile(region.range).path(self.pid), offset: region.file_offset(at), ..read };
        self.log.add("map_files", read);
    }

    /// The mount point of the hierarchy with a controller: inodes of other cgroup hierarchies may coincide.
    fn cgroup_mount(&self, controller: Controller) -> String {
        let mounts = self.source.fetch(File::OwnMounts).ok();
        let mounts = mounts.and_then(|text| super::mounts(&text, &mut super::live::until_interrupted()).ok());
        let mount = mounts.as_deref().and_then(|mounts| mounts::hierarchy(mounts, controller));
        mount.map_or("/sys/fs/cgroup".to_owned(), |mount| mount.point.to_string())
    }

    fn text(&self, file: File, budget: &mut Budget) -> Result<Vec<u8>> {
        let answer = self.source.get(file, budget);
        // Files that identify the process or the kernel are read once, and not for one answer.
        let is_written =
            !matches!(file, File::Release | File::Auxiliary | File::Uptime | File::OwnMaps | File::OwnSmaps);
        if is_written {
            let found = result_words(&answer, |bytes| log::contents(file, bytes));
            let path = file.path(self.pid);
            self.log.add_file(log::kind(file), path, file.what(), found);
        }
        answer
    }

    fn group_text(&self, asked: GroupText<'_>, budget: &mut Budget) -> Result<Vec<u8>> {
        let answer = self.source.get(asked, budget);
        let GroupText { path, file } = asked;
        let file =
            format!("{}{}/{}", self.cgroup_mount(file.controller()), crate::kernel::Name::copied(path), file.name());
        let found = result_words(&answer, |text| format!("{} bytes", text.len()));
        let repeat = Some(log::cat(&file));
        let read = LoggedRead {
            what: "a file of a cgroup".to_owned(),
            found: Some(found),
            repeat,
            file,
            ..LoggedRead::default()
        };
        self.log.add("cgroup", read);
        answer
    }

    fn groups(&self, which: CgroupQuery<'_>, budget: &mut Budget) -> Result<Vec<Cgroup>> {
        let answer = self.source.get(which, budget);
        let file = self.cgroup_mount(Controller::Memory);
        self.log.add("cgroup", log::cgroups(which, &answer, file));
        answer
    }

    fn mapping(&self, question: Query, budget: &mut Budget) -> Result<Answer> {
        let answer = self.source.get(question, budget);
        // Without this query nothing was read.
        if !matches!(answer, Ok(Answer::Unavailable)) {
            let file = self.file("maps");
            self.log.add(
                "maps",
                LoggedRead {
                    what: match question {
                        Query::At(address) => format!("the region at {address} (PROCMAP_QUERY)"),
                        Query::From(address) => {
                            format!("the region at {address} or next above (PROCMAP_QUERY)")
                        }
                    },
                    repeat: Some(match &answer {
                        Ok(Answer::Found(mapping)) => {
                            format!("grep ^{:08x}-{:08x} {file}", mapping.start, mapping.end)
                        }
                        _ => format!("cat {file}"),
                    }),
                    found: Some(result_words(&answer, log::mapping)),
                    file,
                    ..LoggedRead::default()
                },
            );
        }
        answer
    }

    fn file_mappings(&self, budget: &mut Budget) -> Result<Option<Vec<Mapping>>> {
        let answer = self.source.get(FileMappings, budget);
        let found = result_words(&answer, |all| count_of(all.iter().flatten().count(), "region", "regions"));
        let file = self.file("map_files");
        self.log.add(
            "map_files",
            LoggedRead {
                what: "the regions that map files".to_owned(),
                repeat: Some(format!("ls {file}")),
                found: Some(found),
                file,
                ..LoggedRead::default()
            },
        );
        answer
    }

    fn backing(&self, asked: Backing<'_>, budget: &mut Budget) -> Result<Vec<BackingRun>> {
        let answer = self.source.get(asked, budget);
        let Backing { region, range } = asked;
        let read = LoggedRead {
            length: Some(range.len()),
            what: format!("the page cache of {range} (SEEK_DATA, cachestat)"),
            found: Some(result_words(&answer, |runs| log::runs(runs))),
            ..LoggedRead::default()
        };
        self.behind_region(region, range.start(), read);
        answer
    }

    fn probe(&self, probe: Probe<'_>, budget: &mut Budget) -> Result<Vec<u64>> {
        let answer = self.source.get(probe, budget);
        if let Some(what) = log::probe(probe) {
            let read = LoggedRead {
                file: "memfd_create".to_owned(),
                what: what.to_owned(),
                found: Some(result_words(&answer, |words| log::devices(words))),
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
            Question::Rights(_) | Question::Records(_) => self.source.ask(question, budget),
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
        // A text that is read piece by piece is recorded only once, at its end.
        if !matches!(answer, Ok(1..)) {
            let found = result_words(&answer, |_| count_of(lines, "region", "regions"));
            let what = "all regions (the text)";
            self.log.add_file("maps", self.file("maps"), what, found);
        }
        answer
    }

    fn words(&self, file: WordFile, first: u64, into: &mut [u64]) -> Result<usize> {
        let answer = self.source.words(file, first, into);
        let asked = into.len();
        let (words, found) = match &answer {
            Ok(read) if *read < asked => {
                let ends = format!("it ends after {read} of {asked} words");
                (into.get(..*read), Some(ends))
            }
            Ok(_) => (Some(&*into), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let words = words.unwrap_or_default().to_vec();
        let path = match file {
            WordFile::PageMap => self.file(file.name()),
            _ => format!("/proc/{}", file.name()),
        };
        let offset = first.saturating_mul(WORD);
        self.log.add(
            file.name(),
            LoggedRead {
                repeat: Some(dump(&path, offset, words.len())),
                file: path,
                offset: Some(offset),
                length: Some(asked as u64 * WORD),
                words,
                what: log::words(file, first, asked, self.page),
                found,
                ..LoggedRead::default()
            },
        );
        answer
    }

    fn kernel_records(&self) -> Result<&dyn KernelRecords> {
        self.source.kernel_records().map(|_| self as &dyn KernelRecords)
    }

    fn bytes(&self, place: Place<'_>, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        let answer = self.source.bytes(place, address, into);
        let length = into.len() as u64;
        match place {
            Place::Memory => {
                let file = self.file("mem");
                self.log.add(
                    "mem",
                    LoggedRead {
                        repeat: Some(format!("xxd -s {address} -l {length} {file}")),
                        file,
                        offset: Some(address.get()),
                        length: Some(length),
                        what: format!("memory at {address}"),
                        found: Some(result_words(&answer, |&read| log::bytes(into.get(..read).unwrap_or_default()))),
                        ..LoggedRead::default()
                    },
                );
            }
            Place::PageCache(region) => {
                let read = LoggedRead {
                    length: Some(length),
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
        let file = self.file("clear_refs");
        self.log.add(
            "clear_refs",
            LoggedRead {
                what: "written to: clears the soft-dirty bits of all pages".to_owned(),
                found: Some(result_words(&answer, |()| "done".to_owned())),
                repeat: Some(format!("echo 4 > {file}")),
                file,
                ..LoggedRead::default()
            },
        );
        answer
    }

    fn scan(&self, question: Scan, into: &mut [PageRegion]) -> Result<(usize, u64)> {
        let answer = self.source.scan(question, into);
        // A scan of an empty range only finds out which categories the kernel knows.
        if question.start < question.end {
            let (start, end) = (VirtualAddress::new(question.start), VirtualAddress::new(question.end));
            let (offset, bytes) = (self.page.index(start) * 8, end.get() - start.get());
            let found = result_words(&answer, |&(found, _)| log::stretches(into.get(..found).unwrap_or_default()));
            self.log.add(
                "scan",
                LoggedRead {
                    file: self.file("pagemap"),
                    offset: Some(offset),
                    length: Some(bytes.div_ceil(self.page.bytes()) * 8),
                    what: match question.any_of {
                        0 => format!("PAGEMAP_SCAN: whether the region at {start} is passed over"),
                        _ => format!("PAGEMAP_SCAN: the populated pages of {start}..{end}"),
                    },
                    found: Some(found),
                    ..LoggedRead::default()
                },
            );
        }
        answer
    }

    fn list(&self, which: List) -> Result<Vec<Listed>> {
        let answer = self.source.list(which);
        let (file, what, one) = match which {
            List::Threads => (self.file("task"), "the threads", ("thread", "threads")),
            List::Descriptors => (self.file("fd"), "the file descriptors", ("descriptor", "descriptors")),
            List::DescriptorsOf(thread) => {
                let table = self.file(&format!("task/{thread}/fd"));
                (table, "the file descriptors of a thread", ("descriptor", "descriptors"))
            }
            _ => ("/proc".to_owned(), "the processes", ("process", "processes")),
        };
        let found = result_words(&answer, |all| count_of(all.len(), one.0, one.1));
        self.log.add(
            "proc",
            LoggedRead {
                what: what.to_owned(),
                found: Some(found),
                repeat: Some(format!("ls {file}")),
                file,
                ..LoggedRead::default()
            },
        );
        answer
    }

    fn open(&self, pid: u32, held: &Held) -> Result<Arc<dyn Source>> {
        Ok(source(&self.source.open(pid, held)?, &self.log))
    }
}

impl KernelRecords for RecordedSource {
    fn frames(&self, first: u64, parts: RecordParts, into: &mut [FrameRecord]) -> Result<()> {
        let answer = self.source.kernel_records()?.frames(first, parts, into);
        self.log.add("kcore", log::records(first, parts, &answer, into));
        answer
    }

    fn mappers(&self, frame: u64, meanwhile: Meanwhile<'_>, budget: &mut Budget) -> Result<Vec<RecordedMapper>> {
        let answer = self.source.kernel_records()?.mappers(frame, meanwhile, budget);
        self.log.add("kcore", log::mappers(frame, &answer));
        answer
    }

    fn owner_detail(&self, frame: u64) -> Result<Option<OwnerDetail>> {
        let answer = self.source.kernel_records()?.owner_detail(frame);
        self.log.add("kcore", log::owner_detail(frame, &answer));
        answer
    }

    fn table_entries(&self, first: u64, into: &mut [Option<TableEntry>]) -> Result<()> {
        let answer = self.source.kernel_records()?.table_entries(first, into);
        let start = VirtualAddress::new(first.saturating_mul(self.page.bytes()));
        self.log.add("kcore", log::table_entries(start, &answer, into));
        answer
    }

    fn slots(&self, region: &Region, range: AddressRange, budget: &mut Budget) -> Result<Vec<SwappedRange>> {
        let answer = self.source.kernel_records()?.slots(region, range, budget);
        self.log.add("kcore", log::slots(range, &answer));
        answer
    }
}
