//! Writes a capture: the pages of processes, the words of their frames, and all other data that the decoders request.

mod folios;
mod groups;
mod pages;

use super::handles::ProcessHandle;
use super::machine::Machine;
use super::processes::OpenedProcess;
use super::{Process, Result, Target};
use crate::access::Liveness;
use crate::budget::Budget;
use crate::kernel::{AddressRange, FrameNumber, Name, Region, VirtualAddress, WordFile};
use crate::source::capture::{
    Archive, ArchiveWriter, CaptureIndex, Head, MACHINE, OneMissing, ProcessAnswers, Recorder, SharedCapture,
    WordIndex, WordWriter,
};
use crate::source::{Held, MissingProcess, Probe, Source, Subject, covered_pages};
use folios::{Folios, join_frames};
use pages::{FirstAndCount, LeftOutPages, PageReader, RunReader};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Frames that are requested on any machine, to find out whether they may be read.
const FIRST: FirstAndCount = (0, 2);

/// A process that is being captured.
pub struct Member {
    /// The process, read through a recorder that keeps each answer.
    pub target: Target,
    /// The process, read directly.
    pub process: Target,
    recorder: Arc<Recorder>,
    /// The regions of the process in the capture.
    regions: Vec<Region>,
    /// How the process ended after its pages were read, as a verb, if it can no longer be read.
    end: Option<String>,
}

/// A capture that is being written.
pub struct Capture {
    /// The processes. The file opens on the first.
    members: Vec<Member>,
    /// Processes that could not be opened, or ended during the capture.
    missing: Vec<MissingProcess>,
    is_family: bool,
    /// The machine, read through a recorder that keeps each answer apart from those of processes.
    machine: Arc<Machine>,
    recorder: Arc<Recorder>,
    shared: Arc<SharedCapture>,
    index: CaptureIndex,
    /// Whether the words of all frames of the machine are kept.
    has_all_frames: bool,
    /// The only parts of the page map to keep, in order; `None` for all.
    ranges: Option<Vec<AddressRange>>,
}

/// The amounts in a capture.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CaptureContent {
    /// The length of the file in bytes.
    pub bytes: u64,
    /// Number of processes.
    pub processes: u64,
    /// Processes of the family that are missing or incomplete: they ended during the capture or could not be opened.
    pub missing: Vec<MissingProcess>,
    /// Number of regions of all processes.
    pub regions: u64,
    /// Number of pages whose page-map entries are not empty.
    pub pages: u64,
    /// Number of frames whose words were kept: those of the pages, and the rest of their folios.
    pub frames: u64,
    /// Number of pages that changed during the capture: the words of their frames may be of another page.
    pub changed: u64,
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Member {
    /// Makes a member that keeps what is read through its target. Answers about the machine are kept only if `machine`,
    /// which records them, is given.
    fn new(target: &Target, machine: Option<&Arc<Machine>>, shared: &Arc<SharedCapture>) -> Self {
        let recorder = Recorder::new(target.process.source(), shared);
        let source = Arc::clone(&recorder) as Arc<dyn Source>;
        let mut recorded = Target::new(source);
        if let Some(machine) = machine {
            recorded.machine = Arc::clone(machine);
        }
        Member { target: recorded, process: target.clone(), recorder, regions: Vec::new(), end: None }
    }

    /// Returns how the process ended, as a verb, if it can no longer be read.
    fn find_end(&self) -> Option<String> {
        match self.process.process.liveness() {
            Ok(Liveness::Alive) => None,
            Ok(Liveness::Exited(_)) => Some("ended".to_owned()),
            Ok(Liveness::Executed) => Some("executed another program".to_owned()),
            Err(error) => Some(format!("could not be read ({error})")),
        }
    }

    fn missing(&self, why: String) -> MissingProcess {
        let identity = self.process.process.identity();
        MissingProcess::new(identity.pid, identity.name, why)
    }

    /// Keeps words about the heap, as `write` gives them in order. Returns their size in the file in bytes.
    ///
    /// # Errors
    /// Fails if the capture cannot be written, and with the errors of `write`.
    pub fn keep_heap<E: From<super::Error>>(
        &self,
        write: impl FnOnce(&mut dyn FnMut(&[u64]) -> Result<()>) -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        let mut words = WordWriter::new(&format!("{}/heap", self.process.process.identity().pid));
        let archive = self.recorder.archive();
        let mut end = 0;
        write(&mut |added| {
            words.add(archive, end, added)?;
            end += added.len() as u64;
            Ok(())
        })?;
        let index = words.finish(archive, end)?;
        let bytes = index.packed();
        self.recorder.keep_heap(index);
        Ok(bytes)
    }

    /// Keeps memory that was read from the process.
    pub fn keep_memory(&self, start: VirtualAddress, bytes: &[u8]) {
        self.recorder.keep_memory(start, bytes);
    }
}

impl Capture {
    /// Begins a capture of `target`.
    pub fn begin(target: &Target, out: ArchiveWriter) -> Self {
        let time = now();
        let machine = &target.machine;
        let is_little = machine.source().word(Probe::LittleEndian) != Some(0);
        let shared = SharedCapture::new(Archive::new(out, time, Head { page: machine.page_size(), is_little }));
        let first = Member::new(target, None, &shared);
        Capture {
            missing: Vec::new(),
            is_family: false,
            machine: Arc::clone(&first.target.machine),
            recorder: Arc::clone(&first.recorder),
            members: vec![first],
            shared,
            index: CaptureIndex { times: [time, time], ..CaptureIndex::default() },
            has_all_frames: false,
            ranges: None,
        }
    }

    /// Adds these processes to the capture, and the `missing` ones of the family to its list. From now on the capture
    /// continues without processes that end.
    #[must_use]
    pub fn with_family(mut self, others: &[ProcessHandle], missing: Vec<MissingProcess>) -> Self {
        self.is_family = true;
        self.missing.extend(missing);
        let Some(machine) = self.members.first().map(|first| Arc::clone(&first.process.machine)) else {
            return self;
        };
        for one in others {
            match machine.open(one) {
                Ok(OpenedProcess { process, modules }) => {
                    let target = Target { process, machine: Arc::clone(&machine), modules };
                    self.members.push(Member::new(&target, Some(&self.machine), &self.shared));
                }
                Err(error) => self.missing.push(unopened(one.pid, &error)),
            }
        }
        self
    }

    /// Returns the processes. The first is that of [`begin`](Self::begin), unless it has ended.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Sets whether the words of all frames of the machine are kept.
    #[must_use]
    pub fn with_all_frames(self, has_all_frames: bool) -> Self {
        Capture { has_all_frames, ..self }
    }

    /// Limits the capture to these parts of the page map (in order, disjoint). They are extended to whole huge pages,
    /// because all pages of one are needed to find whether it is mapped as such.
    #[must_use]
    pub fn in_ranges(self, ranges: Option<&[AddressRange]>) -> Self {
        let machine = &self.machine;
        let bytes = machine.huge_page_bytes().unwrap_or(machine.page_size().bytes());
        let rounded = |range: &AddressRange| {
            let end = range.end().get().div_ceil(bytes).saturating_mul(bytes);
            AddressRange::new(VirtualAddress::new(range.start().get() / bytes * bytes), VirtualAddress::new(end))
        };
        let joined =
            |ranges: &[AddressRange]| AddressRange::joined(&ranges.iter().filter_map(rounded).collect::<Vec<_>>());
        Capture { ranges: ranges.map(joined), ..self }
    }

    /// Writes the capture. Calls `look` with the number of frame words read so far, and with the number of all. Calls
    /// `ask` for each process, to read what callers need besides, such as symbols.
    ///
    /// # Errors
    /// Fails if the capture cannot be written, the target is gone or the budget is over, and with the errors of `look`
    /// and `ask`.
    pub fn write<E: From<super::Error>>(
        mut self,
        budget: &mut Budget,
        look: &mut dyn FnMut(u64, u64) -> Result<()>,
        mut ask: impl FnMut(&Member) -> std::result::Result<(), E>,
    ) -> std::result::Result<CaptureContent, E> {
        let (page_maps, mut captured) = self.pages(budget, look)?;
        let own = self.capture_own_process(budget)?;
        self.ask_machine(budget)?;
        for member in &mut self.members {
            let Err(error) = member.questions(budget).map_err(E::from).and_then(|()| ask(member)) else {
                continue;
            };
            budget.check().map_err(super::Error::from)?;
            member.end = Some(member.find_end().filter(|_| self.is_family).ok_or(error)?);
        }
        if self.is_family {
            self.compare_spaces();
        }
        let mut processes = Vec::new();
        for (member, page_map) in self.members.iter().zip(page_maps) {
            let answers = member.recorder.finish(page_map);
            let found = || if answers.has_lost_answers() { member.find_end() } else { None };
            if let Some(why) = member.end.clone().or_else(found) {
                self.missing.push(MissingProcess { is_in_part: true, ..member.missing(why) });
            }
            processes.push(answers);
        }
        self.index.processes = processes.into_iter().chain(own).collect();
        self.index.missing = self.missing.iter().map(OneMissing::of).collect();
        self.index.times[1] = now();
        let Capture { members, machine, recorder, shared, index, missing, .. } = self;
        drop((members, machine, recorder));
        captured.bytes = shared.finish(index)?;
        Ok(CaptureContent { missing, ..captured })
    }

    /// Records which of the processes share an address space.
    fn compare_spaces(&self) {
        let (mut firsts, mut alike): (Vec<u32>, Vec<Vec<&Member>>) = Default::default();
        // The kernel refuses comparisons with a process that has ended.
        for member in self.members.iter().filter(|member| member.end.is_none()) {
            let pid = member.process.process.identity().pid;
            match self.machine.find_memory(&firsts, pid) {
                Some(Ok(place)) => alike.get_mut(place).into_iter().for_each(|same| same.push(member)),
                Some(Err(place)) => {
                    firsts.insert(place, pid);
                    alike.insert(place, vec![member]);
                }
                None => {}
            }
        }
        for (place, members) in (0..).zip(&alike) {
            members.iter().for_each(|member| member.recorder.keep_space(place));
        }
    }

    /// Writes the pages of the processes and the words of their frames. Drops a process of the family that has ended.
    fn pages(
        &mut self,
        budget: &mut Budget,
        look: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<(Vec<WordIndex>, CaptureContent)> {
        let shared = Arc::clone(&self.shared);
        let processes: Vec<(Process, Arc<Recorder>)> =
            self.members.iter().map(|member| (member.target.process.clone(), Arc::clone(&member.recorder))).collect();
        let mut readers = Vec::new();
        for (process, recorder) in &processes {
            // Lists the process before its pages are read, so that each process with pages is in the list.
            _ = self.machine.process_entry(process.identity().pid);
            readers.push(self.read(process, recorder, &shared, budget));
        }
        let (readers, regions_of): (Vec<_>, Vec<_>) = readers
            .into_iter()
            .map(|read| match read {
                Ok((reader, regions)) => (Ok(reader), regions),
                Err(error) => (Err(error), Vec::new()),
            })
            .unzip();
        let regions = regions_of.iter().map(|regions| regions.len() as u64).sum();
        self.members.iter_mut().zip(regions_of).for_each(|(member, regions)| member.regions = regions);
        let frames: Vec<FirstAndCount> = readers.iter().flatten().flat_map(|reader| reader.frames()).collect();
        let frames = self.frames(frames.into_iter(), budget, look)?;
        let mut captured = CaptureContent { regions, frames, ..CaptureContent::default() };
        let mut page_maps = Vec::new();
        let mut remaining = Vec::new();
        for ((reader, (_, recorder)), member) in readers.into_iter().zip(&processes).zip(self.members.drain(..)) {
            let finished = reader.and_then(|reader| {
                let changed = reader.find_changed(budget)?;
                recorder.keep_changed(&changed);
                let counts = (reader.pages, changed.iter().map(|(_, count)| count).sum::<u64>());
                Ok((reader.finish(recorder)?, counts))
            });
            match finished {
                Ok((page_map, (pages, changed))) => {
                    captured.pages += pages;
                    captured.changed += changed;
                    page_maps.push(page_map);
                    remaining.push(member);
                }
                Err(error) => {
                    budget.check()?;
                    let end = member.find_end().filter(|_| self.is_family).ok_or(error)?;
                    self.missing.push(member.missing(end));
                }
            }
        }
        if remaining.is_empty() {
            return Err(super::Error::gone("all processes ended during the capture"));
        }
        captured.processes = remaining.len() as u64;
        self.index.family = if self.is_family { remaining.len() } else { 0 };
        self.members = remaining;
        Ok((page_maps, captured))
    }

    /// Reads the pages of a process. Returns its regions too.
    fn read<'a>(
        &self,
        process: &'a Process,
        recorder: &'a Recorder,
        shared: &'a SharedCapture,
        budget: &mut Budget,
    ) -> Result<(PageReader<'a>, Vec<Region>)> {
        let (regions, text) = process.regions_and_text(budget)?;
        recorder.keep_maps(text.bytes());
        let mut reader = PageReader::new(process, &**process.source(), shared);
        let mut left_out = LeftOutPages::new(process.layout().page);
        for region in &regions {
            let mut left = Some(region.range);
            for wanted in self.ranges.iter().flatten().filter_map(|range| range.intersection(region.range)) {
                left_out.add(left.and_then(|left| AddressRange::new(left.start(), wanted.start())));
                reader.region(wanted, budget)?;
                left = AddressRange::new(wanted.end(), region.range.end());
            }
            match &self.ranges {
                Some(_) => left_out.add(left),
                None => reader.region(region.range, budget)?,
            }
        }
        recorder.keep_left_out(self.ranges.as_deref().unwrap_or_default(), left_out.runs);
        Ok((reader, regions))
    }

    /// Writes the mappings of pmdb, because the map counts include them.
    fn capture_own_process(&self, budget: &mut Budget) -> Result<Option<ProcessAnswers>> {
        let Ok(Some(number)) = self.machine.own_number() else {
            return Ok(None);
        };
        if self.members.iter().any(|member| member.process.process.identity().pid == number) {
            return Ok(None);
        }
        let Ok(source) = self.machine.source().open(number, &Held::default()) else {
            return Ok(None);
        };
        let recorder = Recorder::new(&source, &self.shared);
        let process = Process::new(Arc::clone(&recorder) as Arc<dyn Source>);
        let (regions, text) = process.regions_and_text(budget)?;
        recorder.keep_maps(text.bytes());
        let mut reader = PageReader::new(&process, &*source, &self.shared);
        for region in regions.iter().filter(|region| region.maps_object()) {
            reader.region(region.range, budget)?;
        }
        let page_map = reader.finish(&recorder)?;
        Ok(Some(recorder.finish(page_map)))
    }

    /// Writes the words of these frames, and of the rest of their folios. Returns the number of frames.
    fn frames(
        &mut self,
        frames: impl Iterator<Item = FirstAndCount>,
        budget: &mut Budget,
        look: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<u64> {
        let machine = Arc::clone(&self.machine);
        let source = machine.source();
        let end = self.end_of(WordFile::FrameFlags);
        let runs = match end {
            Ok(end) if self.has_all_frames => vec![(0, end)],
            _ => join_frames(frames.chain([FIRST]).collect()),
        };
        // Each frame has a word in each file.
        let all = runs.iter().fold(0u64, |all, (_, count)| all.saturating_add(*count));
        let (mut done, total) = (0u64, all.saturating_mul(WordFile::OF_FRAMES.len() as u64));
        let mut read = |(_, count): FirstAndCount| {
            done = done.saturating_add(count).min(total);
            look(done, total)
        };
        let mut whole = Vec::new();
        let flags = match end {
            Ok(end) => {
                let words = Self::writer(WordFile::FrameFlags).leading();
                self.index.by_flags = true;
                let mut folios = Folios::new(source, &self.shared, words);
                for run in runs {
                    folios.run(run, budget)?;
                    read(run)?;
                }
                whole = folios.whole;
                folios.words.finish(&self.shared.archive, end)?
            }
            Err(error) => {
                whole.extend(runs);
                read((0, all))?;
                WordIndex::refused(&error)
            }
        };
        self.index.frames.keep(WordFile::FrameFlags, flags);
        let mut groups = BTreeSet::new();
        for file in WordFile::OF_FRAMES.into_iter().filter(|file| *file != WordFile::FrameFlags) {
            let words = self.words_of(file, &whole, budget, &mut read, &mut |words| {
                let alike = words.chunk_by(|one, other| one == other).filter(|_| file == WordFile::FrameCgroups);
                groups.extend(alike.filter_map(|alike| alike.first().copied()));
            })?;
            self.index.frames.keep(file, words);
        }
        // Reads whether the frames are online memory, block by block.
        for &(first, count) in &whole {
            let (mut next, end) = (first, first.saturating_add(count));
            while next < end {
                next = machine.memory_at(FrameNumber::new(next)).1.get().max(next + 1);
            }
        }
        for inode in groups {
            _ = machine.cgroup_path(inode);
        }
        let has_none = self.index.frames.all().all(|(_, words)| words.is_refused());
        Ok(if has_none { 0 } else { whole.iter().map(|(_, count)| count).sum() })
    }

    /// Returns the number of words in a file about frames.
    fn end_of(&self, file: WordFile) -> Result<u64> {
        let source = self.machine.source();
        covered_pages(self.machine.page_size(), |index| Ok(source.words(file, index, &mut [0])? == 1))
    }

    fn writer(file: WordFile) -> WordWriter {
        WordWriter::new(&format!("{MACHINE}/{}", file.name()))
    }

    /// Writes the words of these runs of frames in a file with a word for each frame. Calls `done` after each run, and
    /// `look` with the number of its words.
    fn words_of(
        &self,
        file: WordFile,
        runs: &[FirstAndCount],
        budget: &mut Budget,
        done: &mut dyn FnMut(FirstAndCount) -> Result<()>,
        look: &mut dyn FnMut(&[u64]),
    ) -> Result<WordIndex> {
        let end = match self.end_of(file) {
            Ok(end) => end,
            Err(error) => {
                done((0, runs.iter().map(|(_, count)| count).sum()))?;
                return Ok(WordIndex::refused(&error));
            }
        };
        let mut words = Self::writer(file);
        let mut before = 0;
        for &run in runs {
            let mut parts = RunReader::new(self.machine.source(), file, run);
            while let Some((first, found)) = parts.next(budget)? {
                look(found);
                let at = if self.index.by_flags { before + (first - run.0) } else { first };
                words.add(&self.shared.archive, at, found)?;
            }
            before += run.1;
            done(run)?;
        }
        words.finish(&self.shared.archive, end)
    }

    /// Reads all about the machine that a capture keeps, and what the decoders of other answers request.
    fn ask_machine(&self, budget: &mut Budget) -> Result<()> {
        let machine = &self.machine;
        _ = (machine.findings(), machine.swap_layout(), machine.huge_settings(), machine.cgroup_mount());
        _ = (machine.partly_mapped_sizes(), machine.swap_use());
        self.recorder.ask_all(Subject::Machine, budget);
        if let Some(bytes) = machine.huge_page_bytes() {
            Self::ask_pool(machine, &self.recorder, bytes, budget);
        }
        Ok(budget.check()?)
    }

    /// Reads what a capture keeps of the hugetlb pool with pages of `bytes` bytes, and of its nodes if there are
    /// several.
    fn ask_pool(machine: &Machine, recorder: &Recorder, bytes: u64, budget: &mut Budget) {
        recorder.ask_all(Subject::Pool(bytes), budget);
        let nodes = machine.nodes();
        for node in nodes.iter().filter(|_| nodes.len() > 1) {
            recorder.ask_all(Subject::Node(*node, bytes), budget);
        }
    }
}

/// Makes the entry for a process of a family that could not be opened.
pub fn unopened(pid: u32, error: &super::Error) -> MissingProcess {
    let why = match error {
        super::Error::Gone { .. } => "ended".to_owned(),
        error => format!("could not be opened ({error})"),
    };
    MissingProcess::new(pid, Name::default(), why)
}

impl Member {
    /// Reads all about the process that a capture keeps (also of its regions, threads and hugetlb pools), and what the
    /// decoders of other answers request.
    fn questions(&self, budget: &mut Budget) -> Result<()> {
        let Target { process, machine, modules } = &self.target;
        let recorder = &*self.recorder;
        _ = modules.perf_map().map(drop);
        _ = (process.status(), process.findings(), process.memory_descriptors(budget), process.memory_limits());
        let smaps = process.smaps(budget);
        if machine.nodes().len() > 1 {
            _ = process.may_use_node(VirtualAddress::new(0), 0);
        }
        recorder.ask_all(Subject::Process, budget);
        for thread in process.threads().unwrap_or_default() {
            recorder.ask_all(Subject::Thread(thread.id), budget);
        }
        let sizes =
            smaps.iter().flatten().filter_map(|one| one.fields.iter().find(|(name, _)| name == "KernelPageSize"));
        let sizes: BTreeSet<u64> = sizes.map(|(_, bytes)| *bytes).collect();
        for bytes in sizes {
            Capture::ask_pool(machine, recorder, bytes, budget);
            _ = process.pool_limits(bytes);
        }
        for region in &self.regions {
            budget.go_on()?;
            // Records whether the kernel hides the pages of the region.
            _ = process.is_pfn_mapped(region);
            if region.maps_object() {
                recorder.ask_all(Subject::Region(region), budget);
            }
        }
        Ok(budget.check()?)
    }
}

#[cfg(test)]
mod tests;
