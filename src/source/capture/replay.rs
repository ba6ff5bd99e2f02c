//! A capture as a source.

use super::archive::{ArchiveReader, Head, damaged};
use super::budgeted;
use super::index::{
    Answers, CaptureIndex, CapturedRights, FileParts, MEMORY, OneGroup, OneListed, OneMissing, ProcessAnswers, Stored,
    StoredRun, group,
};
use super::recorder::{PIECE, file_key};
use super::stored::StoredText;
use super::words::BlockReader;
use crate::access::{Error, Identity, ReadAt, Result};
use crate::budget::{Budget, OutOfBudget, until_interrupted};
use crate::kernel::{VirtualAddress, WordFile};
use crate::records::RecordParts;
use crate::source::live::installed_debug_file;
use crate::source::{
    About, Asked, Backing, BackingRun, CaptureOrigin, FileLocation, Held, List, Listed, MissingProcess, Origin,
    PageRegion, PassedOver, Place, Probe, Question, RecordsOf, Reply, Scan, Source,
};
use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

/// Opens a capture. No other file is opened, whatever the capture contains.
///
/// # Errors
/// Fails if the file cannot be read, is no capture, or is damaged.
pub fn open(file: Box<dyn ReadAt>) -> Result<Arc<dyn Source>> {
    let (contents, head, index) = ArchiveReader::open(file)?;
    let (mut index, fields) = read_index(&index)?;
    let (page, longest) = (head.page.bytes(), contents.longest_text());
    let [begun, ended] = index.times;
    if begun > ended || ended > LAST_TIME {
        return Err(damaged("its time"));
    }
    let are_sound = index.frames.all().all(|(_, words)| words.is_in_order()) && index.machine.is_sound(page, longest);
    if !are_sound || !are_processes_sound(&index.processes, page, longest) {
        return Err(damaged("its index"));
    }
    let origins = take_origins(&mut index, head, PassedOver { fields, ..contents.passed_over() });
    let origin = origins.first().map(Arc::clone).ok_or_else(|| damaged("its index"))?;
    let contents = Arc::new(contents);
    let blocks = BlockReader::new(Arc::clone(&contents));
    let populated = index.processes.iter().map(|_| OnceLock::new()).collect();
    let capture = Arc::new(ReplayedCapture { contents, head, index, origins, blocks, populated });
    Ok(Arc::new(Replay { capture, process: 0, origin }))
}

/// Returns whether each process has the form that pmdb writes, and their lists of populated pages are together not
/// longer than a text may be. The lists are kept in memory, and several may refer to the same blocks.
fn are_processes_sound(processes: &[ProcessAnswers], page: u64, longest: u64) -> bool {
    let populated = processes.iter().map(|one| one.populated.length()).fold(0, u64::saturating_add);
    populated <= longest && processes.iter().all(|one| one.is_sound(page, longest))
}

/// The last second of the year 9999: later times are no dates.
const LAST_TIME: u64 = 253_402_300_799;

/// The memory for an index, in bytes for each byte of its text. Sound indexes need at most three quarters of it: the
/// largest are of processes with many mappings of few pages, each with an answer.
const INDEX_MEMORY: u64 = 6;
/// Additional memory, for small indexes.
const SMALL_INDEX: u64 = 1 << 20;

/// Reads the index, and the names of its unknown fields.
fn read_index(json: &[u8]) -> Result<(CaptureIndex, Vec<String>)> {
    let most = (json.len() as u64).saturating_mul(INDEX_MEMORY).saturating_add(SMALL_INDEX);
    match budgeted::read(json, &mut until_interrupted().holding(most)) {
        Ok(Some(read)) => Ok(read),
        Ok(None) => Err(damaged("its index")),
        Err(OutOfBudget::Bytes) => Err(Error::not_available("the index of this capture is too large")),
        Err(over) => Err(over.into()),
    }
}

/// Makes the origin of each process. Moves the runs of pages out of the index, because there may be many.
fn take_origins(index: &mut CaptureIndex, head: Head, passed_over: PassedOver) -> Vec<Arc<CaptureOrigin>> {
    let (times, passed_over) = (index.times, Arc::new(passed_over));
    let missing: Arc<[MissingProcess]> = index.missing.iter().map(OneMissing::process).collect();
    let origin = |one: &mut ProcessAnswers| CaptureOrigin {
        times,
        page: head.page,
        parts: one.take_parts(),
        left_out: std::mem::take(&mut one.left_out),
        changed: std::mem::take(&mut one.changed),
        passed_over: Arc::clone(&passed_over),
        missing: Arc::clone(&missing),
    };
    index.processes.iter_mut().map(|one| Arc::new(origin(one))).collect()
}

struct ReplayedCapture {
    contents: Arc<ArchiveReader>,
    head: Head,
    index: CaptureIndex,
    /// The origin of each process.
    origins: Vec<Arc<CaptureOrigin>>,
    blocks: BlockReader,
    /// The populated ranges of each process, read when they are first needed.
    populated: Vec<OnceLock<Result<Vec<PageRegion>>>>,
}

/// The number of words about the heap in one answer.
const HEAP_WORDS: usize = 8192;

/// A process of a capture, as a source.
struct Replay {
    capture: Arc<ReplayedCapture>,
    process: usize,
    origin: Arc<CaptureOrigin>,
}

fn not_captured<T>(what: &str) -> Result<T> {
    Err(Error::not_in("this capture", what))
}

impl Replay {
    fn answers(&self) -> &ProcessAnswers {
        static NONE: OnceLock<ProcessAnswers> = OnceLock::new();
        self.capture.index.processes.get(self.process).unwrap_or_else(|| NONE.get_or_init(ProcessAnswers::default))
    }

    /// Returns the entry about the end of the process, if it ended before all its answers were kept.
    fn end(&self) -> Option<&OneMissing> {
        let pid = self.answers().pid;
        self.capture.index.missing.iter().find(|one| one.pid == pid)
    }

    /// Returns the error for an answer about the process that the capture does not have.
    fn no_answer<T>(&self, what: &str) -> Result<T> {
        match self.end() {
            Some(OneMissing { pid, why, .. }) => {
                Err(Error::not_in(&format!("this capture, because process {pid} {why}"), what))
            }
            None => not_captured(what),
        }
    }

    /// Returns the order of two address spaces, as kcmp(2) numbers it.
    fn compare(&self, one: u32, other: u32) -> Option<u64> {
        let space = |pid: u32| self.capture.index.processes.iter().find(|process| process.pid == pid)?.space;
        Some(match space(one)?.cmp(&space(other)?) {
            Ordering::Equal => 0,
            Ordering::Less => 1,
            Ordering::Greater => 2,
        })
    }

    /// Returns an answer about the process. Converts the error that the process is gone, which is not true for a
    /// capture.
    fn of_process<T>(&self, answer: Result<T>, what: &str) -> Result<T> {
        match answer {
            Err(Error::Gone { .. }) => self.no_answer(what),
            answer => answer,
        }
    }

    /// Returns the answers about the process, or about its machine.
    fn about(&self, about: About) -> &Answers {
        match about {
            About::Machine => &self.capture.index.machine,
            About::Process => &self.answers().answers,
        }
    }

    /// Returns the kept answer to a question.
    fn kept<T: Stored>(&self, question: Question<'_>) -> Option<Result<&T>> {
        self.about(question.class().about).get(&question.key())
    }

    /// Returns the kept answer to a question, or the error that the capture does not have `what`.
    fn kept_or_lacks<T: Stored>(&self, question: Question<'_>, what: &str) -> Result<&T> {
        let about = question.class().about;
        match (self.kept(question), about) {
            (Some(kept), About::Process) => self.of_process(kept, what),
            (Some(kept), About::Machine) => kept,
            (None, About::Process) => self.no_answer(what),
            (None, About::Machine) => not_captured(what),
        }
    }

    fn populated_regions(&self) -> Result<&[PageRegion]> {
        let read = || {
            let bytes = self.capture.contents.text(&self.answers().populated)?;
            let (words, _) = bytes.as_chunks();
            let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
            let (found, _) = words.as_chunks();
            let found: Vec<PageRegion> =
                found.iter().map(|&[start, end, categories]| PageRegion { start, end, categories }).collect();
            let is_whole = found.iter().all(|one| one.start < one.end);
            let is_in_order = found.windows(2).all(|pair| pair[0].end <= pair[1].start);
            if is_whole && is_in_order { Ok(found) } else { Err(damaged("the list of populated pages")) }
        };
        let kept = self.capture.populated.get(self.process).ok_or_else(|| damaged("its index"))?;
        kept.get_or_init(read).as_deref().map_err(Clone::clone)
    }

    fn text(&self, question: Question<'_>, what: &str) -> Result<Vec<u8>> {
        self.capture.contents.text(self.kept_or_lacks(question, what)?)
    }

    /// Returns the requested part of the runs of the whole region.
    fn backing(&self, asked: Backing<'_>) -> Result<Vec<BackingRun>> {
        let whole = Question::Backing(asked).whole();
        let Backing { region, range } = asked;
        let runs: &Vec<StoredRun> = self.kept_or_lacks(whole, &format!("the page cache of {}", region.range))?;
        Ok(StoredRun::within(runs, region, range))
    }

    fn probe(&self, probe: Probe<'_>) -> Result<Vec<u64>> {
        let Head { page, is_little } = self.capture.head;
        let question = Question::Probe(probe);
        match (probe, self.kept::<Vec<u64>>(question)) {
            (Probe::PageBytes, _) => Ok(vec![page.bytes()]),
            (Probe::LittleEndian, _) => Ok(vec![is_little.into()]),
            (Probe::Compare(one, other), _) if let Some(order) = self.compare(one, other) => Ok(vec![order]),
            (_, Some(kept)) => kept.cloned(),
            (_, None) => not_captured("this probe of the kernel"),
        }
    }

    fn require_records(&self, of: RecordsOf) -> Result<()> {
        let RecordsOf::Frames(parts) = of else {
            return not_captured(of.what());
        };
        let failure =
            |parts: RecordParts| self.about(About::Machine).failure(&Question::Records(RecordsOf::Frames(parts)).key());
        // If no part could be read, the same failure is that of all parts.
        match failure(parts).or_else(|| failure(RecordParts::empty())) {
            Some(failure) => Err(failure.error()),
            None => not_captured(of.what()),
        }
    }

    fn memory(&self, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        let answers = self.answers();
        if into.is_empty() {
            return answers.answers.failure(MEMORY).map_or(Ok(0), |failure| Err(failure.error()));
        }
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = address.get().saturating_add(done as u64);
            let below = answers.memory.range(..=at).next_back();
            let read = match below {
                Some((start, stored)) => self.capture.contents.read_text(stored, at - start, rest)?,
                None => 0,
            };
            match (read, done) {
                (0, 0) if self.end().is_none() => {
                    let kept = "`capture FILE with memory` keeps it";
                    return Err(Error::not_available(format!("memory at {address} is not in this capture: {kept}")));
                }
                (0, 0) => return self.no_answer(&format!("memory at {address}")),
                (0, _) => break,
                _ => done += read,
            }
        }
        Ok(done)
    }

    /// Returns words about the heap from this one on; `None` if they were not captured.
    fn heap(&self, first: u64) -> Result<Option<Vec<u64>>> {
        let words = &self.answers().heap;
        if words.is_empty() {
            return Ok(None);
        }
        let mut into = vec![0; HEAP_WORDS];
        let (read, known) = words.read(&self.capture.blocks, first, &mut into)?;
        if known != read as u64 {
            return Err(damaged("the sizes of its heap"));
        }
        into.truncate(read);
        Ok(Some(into))
    }

    /// Returns a list that was kept about the process, or about its machine.
    fn kept_list(&self, which: List) -> Option<Result<&Vec<OneListed>>> {
        self.about(which.class().about).get(&which.key())
    }
}

impl Source for Replay {
    fn identity(&self) -> Identity {
        let answers = self.answers();
        Identity { pid: answers.pid, start_time: answers.start_time, name: answers.name() }
    }

    fn origin(&self) -> Origin {
        Origin::Capture(Arc::clone(&self.origin))
    }

    fn ask(&self, question: Question<'_>, budget: &mut Budget) -> Result<Reply> {
        budget.go_on()?;
        match question {
            Question::Text(file) => file.reply(self.text(question, file.what())),
            Question::GroupText(asked) => asked.reply(self.text(question, "this file of a cgroup")),
            Question::Groups(which) => {
                let groups = self.kept_or_lacks(question, "the hierarchy of cgroups");
                which.reply(groups.map(|all: &Vec<OneGroup>| all.iter().map(group).collect()))
            }
            Question::Backing(asked) => asked.reply(self.backing(asked)),
            Question::Probe(probe) => probe.reply(self.probe(probe)),
            Question::Rights(asked) => {
                let rights = self.kept::<CapturedRights>(question).and_then(Result::ok);
                asked.reply(Ok(rights.map(CapturedRights::access)))
            }
            Question::Records(of) => of.reply(self.require_records(of)),
            Question::HeapWords(asked) => asked.reply(self.heap(asked.0)),
            Question::Mapping(_) | Question::FileMappings(_) | Question::Notes(_) => question.unanswered(),
        }
    }

    fn maps(&self, offset: u64, into: &mut Vec<u8>) -> Result<usize> {
        let (before, room) = (into.len(), into.capacity() - into.len());
        into.resize(before + room.max(1), 0);
        let place = into.get_mut(before..).unwrap_or_default();
        let read = self.capture.contents.read_text(&self.answers().maps, offset, place);
        into.truncate(before + read.as_ref().map_or(0, |read| *read));
        read
    }

    fn words(&self, file: WordFile, first: u64, into: &mut [u64]) -> Result<usize> {
        let index = &self.capture.index;
        let words = match file {
            WordFile::PageMap => Some(&self.answers().page_map),
            of_frames => index.frames.of(of_frames),
        };
        let words = words.ok_or_else(|| Error::not_in("this capture", file.name()))?;
        if file == WordFile::PageMap {
            self.origin.require_entries(first, first.saturating_add(into.len() as u64))?;
        }
        into.fill(0);
        let blocks = &self.capture.blocks;
        let is_own = matches!(file, WordFile::PageMap | WordFile::FrameFlags);
        let (read, known) = match index.frames.of(WordFile::FrameFlags) {
            Some(flags) if index.by_flags && !is_own => words.read_by(flags, blocks, first, into)?,
            _ => words.read(blocks, first, into)?,
        };
        // Missing words of a page map are 0. Missing words of frames are unknown.
        if file != WordFile::PageMap && known < read as u64 {
            return not_captured(&format!("{} from frame {first}", file.name()));
        }
        Ok(read)
    }

    fn bytes(&self, place: Place<'_>, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        match place {
            Place::Memory => self.memory(address, into),
            Place::PageCache(_) => not_captured(&place.what()),
        }
    }

    fn clear_soft_dirty(&self) -> Result<()> {
        Err(Error::not_available("a capture does not run: its soft-dirty bits cannot be cleared"))
    }

    fn scan(&self, question: Scan, into: &mut [PageRegion]) -> Result<(usize, u64)> {
        let answers = self.answers();
        let is_known = answers.scannable != 0 && question.returned & !answers.scannable == 0;
        if !is_known {
            return not_captured("a scan of the page map");
        }
        if question.any_of == 0 {
            let found = answers.looks.get(&question.start);
            return match found {
                Some(&(count, stopped)) => Ok((count.min(into.len()), stopped)),
                // As for addresses that no scan reaches.
                None => Ok((0, question.start)),
            };
        }
        // A scan ends before the first page that was left out, and does not begin at one.
        let page = self.origin.page.bytes();
        let first = question.start / page;
        self.origin.require_entries(first, first.saturating_add(1))?;
        let left_out = self.origin.first_left_out(first, question.end.div_ceil(page));
        let end = left_out.map_or(question.end, |page_index| page_index.saturating_mul(page).min(question.end));
        scan(self.populated_regions()?, Scan { end, ..question }, into)
    }

    fn list(&self, which: List) -> Result<Vec<Listed>> {
        if let Some(kept) = self.kept_list(which) {
            let listed = kept.map(|all| all.iter().map(OneListed::listed).collect());
            return self.of_process(listed, which.what());
        }
        if matches!(which, List::Threads | List::Descriptors | List::DescriptorsOf(_)) {
            return self.no_answer(which.what());
        }
        let index = &self.capture.index;
        if matches!(which, List::One(_)) || index.family == 0 {
            let kept = "`capture FILE children` keeps a process and its children";
            return Err(Error::not_available(format!("{} are not in this capture: {kept}", which.what())));
        }
        // The processes of a family, each as it was listed alone.
        let members = index.processes.iter().take(index.family);
        let listed = members.filter_map(|member| self.kept_list(List::One(member.pid))?.ok());
        Ok(listed.flatten().map(OneListed::listed).collect())
    }

    fn open(&self, pid: u32, _: &Held) -> Result<Arc<dyn Source>> {
        let processes = self.capture.index.processes.iter().zip(&self.capture.origins).enumerate();
        match processes.into_iter().find(|(_, (one, _))| one.pid == pid) {
            Some((process, (_, origin))) => {
                Ok(Arc::new(Replay { capture: Arc::clone(&self.capture), process, origin: Arc::clone(origin) }))
            }
            None => match self.capture.index.missing.iter().find(|one| one.pid == pid) {
                Some(OneMissing { why, .. }) => {
                    Err(Error::not_in(&format!("this capture, because it {why}"), &format!("process {pid}")))
                }
                None => not_captured(&format!("process {pid}")),
            },
        }
    }

    fn file(&self, location: FileLocation<'_>) -> Result<Option<Box<dyn ReadAt>>> {
        let (key, about) = file_key(location);
        let file: Option<FileParts> = match self.about(about).get(&key) {
            Some(kept) => kept.cloned()?,
            None => match location {
                FileLocation::Region(region) => return not_captured(&region.name.to_string()),
                _ => None,
            },
        };
        match (file, location) {
            (Some(parts), _) => Ok(Some(Box::new(CapturedFile { parts, capture: Arc::clone(&self.capture) }))),
            (None, FileLocation::OwnPath(path)) => installed_debug_file(path),
            (None, _) => Ok(None),
        }
    }
}

/// Answers a scan from the ranges that one scan of everything returned.
fn scan(populated: &[PageRegion], question: Scan, into: &mut [PageRegion]) -> Result<(usize, u64)> {
    let from = populated.partition_point(|one| one.end <= question.start);
    let mut count = 0usize;
    for one in populated.get(from..).unwrap_or_default() {
        let (start, end) = (one.start.max(question.start), one.end.min(question.end));
        if start >= end {
            break;
        }
        if one.categories & question.any_of == 0 {
            continue;
        }
        let categories = one.categories & question.returned;
        match count.checked_sub(1).and_then(|last| into.get_mut(last)) {
            Some(last) if last.end == start && last.categories == categories => last.end = end,
            _ => match into.get_mut(count) {
                Some(place) => {
                    *place = PageRegion { start, end, categories };
                    count += 1;
                }
                None => return Ok((count, start)),
            },
        }
    }
    Ok((count, question.end))
}

/// A file of which a capture has parts.
struct CapturedFile {
    parts: FileParts,
    capture: Arc<ReplayedCapture>,
}

impl ReadAt for CapturedFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        if offset >= self.parts.length || into.is_empty() {
            return Ok(0);
        }
        let missing = || std::io::Error::other("this part of the file is not in this capture");
        let part: &StoredText = self.parts.parts.get(&(offset / PIECE)).ok_or_else(missing)?;
        let room = usize::try_from(self.parts.length - offset).unwrap_or(usize::MAX).min(into.len());
        let place = into.get_mut(..room).unwrap_or_default();
        match self.capture.contents.read_text(part, offset % PIECE, place).map_err(std::io::Error::other)? {
            0 => Err(missing()),
            read => Ok(read),
        }
    }

    fn len(&self) -> u64 {
        self.parts.length
    }

    fn fingerprint(&self) -> [u64; 4] {
        self.parts.fingerprint
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
