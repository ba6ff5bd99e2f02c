//! A source that keeps the answers of another in a capture.

use super::archive::{Archive, StoredText};
use super::index::{
    BackingRuns, CaptureIndex, CapturedRights, FileParts, OneListed, ProcessAnswers, RecordedFailure, record_answer,
};
use crate::access::{Identity, ReadAt, Result};
use crate::budget::Budget;
use crate::kernel::mounts::Controller;
use crate::kernel::{AddressRange, VirtualAddress};
use crate::source::{
    Asked, CgroupQuery, File, FileLocation, GroupText, List, Listed, PageRegion, Place, Probe, Question, RecordsOf,
    Reply, Scan, Source,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The capture that is being written.
pub struct SharedCapture {
    /// Where it is written.
    pub archive: Mutex<Archive>,
    failure: Mutex<Option<crate::access::Error>>,
    /// Files that were read, each in its parts.
    files: Mutex<BTreeMap<String, FileParts>>,
}

impl SharedCapture {
    /// For an archive.
    pub fn new(archive: Archive) -> Arc<Self> {
        Arc::new(SharedCapture { archive: Mutex::new(archive), failure: Mutex::default(), files: Mutex::default() })
    }

    /// Adds a text; a failure to write is reported at the end.
    fn store(&self, name: &str, bytes: &[u8]) -> StoredText {
        let stored = self.archive.lock().unwrap_or_else(PoisonError::into_inner).text(name, bytes);
        stored.unwrap_or_else(|error| {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            StoredText::default()
        })
    }
}

/// A source that keeps the answers of another. The writer of a capture keeps the pages, as it walks over them.
pub struct Recorder {
    source: Arc<dyn Source>,
    shared: Arc<SharedCapture>,
    answers: Mutex<ProcessAnswers>,
}

fn hex(path: &[u8]) -> String {
    path.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How an answer about a file is found again. One region stands for all that map the same file.
pub(super) fn place(place: FileLocation<'_>) -> String {
    match place {
        FileLocation::Region(region) => {
            format!("region {} {} {}", region.device, region.inode, hex(region.name.as_bytes()))
        }
        FileLocation::Path(path) => format!("path {}", hex(path)),
        FileLocation::OwnPath(path) => format!("own {}", hex(path)),
        FileLocation::Trusted(path, user) => format!("trusted {user} {}", hex(path)),
        FileLocation::OwnVdso(region) => format!("vdso {}", region.range.len()),
    }
}

/// How an answer of a probe is found again.
pub(super) fn probe_key(probe: Probe<'_>) -> String {
    match probe {
        Probe::IsNamed(region, path) => format!("IsNamed {} {:02x?}", region.range, path),
        // Of the file, which many regions may map.
        Probe::MappedFile(region) => format!("MappedFile {} {}", region.device, region.inode),
        // The order is kept with each process, and under this key only why it is unknown.
        Probe::Compare(..) => "Compare".to_owned(),
        Probe::CompareFiles(..) => "CompareFiles".to_owned(),
        Probe::Descriptor(thread, number) => format!("Descriptor {} {number}", thread.unwrap_or(0)),
        Probe::DescriptorMount(thread, number) => format!("DescriptorMount {} {number}", thread.unwrap_or(0)),
        probe => format!("{probe:?}"),
    }
}

/// How a text is found again.
pub(super) fn text_key(file: File, pid: u32) -> String {
    match file {
        File::MainStatus => format!("/proc/{pid}/task/{pid}/status"),
        file => file.path(pid).replace("$(uname -r)", "RELEASE"),
    }
}

pub(super) fn groups_key(which: CgroupQuery<'_>) -> String {
    format!("{which:?}")
}

/// How a file of a cgroup is found again.
pub(super) fn group_file_key(GroupText { path, file }: GroupText<'_>) -> String {
    let hierarchy = match file.controller() {
        Controller::Memory => "cgroup",
        other => other.name(),
    };
    format!("{hierarchy} {} {}", hex(path), file.name())
}

impl Recorder {
    /// Keeps what `source` answers.
    pub fn new(source: &Arc<dyn Source>, shared: &Arc<SharedCapture>) -> Arc<Self> {
        let Identity { pid, start_time, name } = source.identity();
        let answers = ProcessAnswers { pid, start_time, name: name.as_bytes().to_vec(), ..ProcessAnswers::default() };
        Arc::new(Recorder { source: Arc::clone(source), shared: Arc::clone(shared), answers: Mutex::new(answers) })
    }

    fn answers(&self) -> std::sync::MutexGuard<'_, ProcessAnswers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a text the first time that it is asked for. `name` names it by the number of texts before it.
    fn keep_text(&self, key: String, name: impl FnOnce(usize) -> String, answer: &Result<Vec<u8>>) {
        let texts = self.answers().texts.len();
        if !self.answers().texts.contains_key(&key) {
            let stored = record_answer(answer, |text| self.shared.store(&self.member(&name(texts)), text));
            self.answers().texts.insert(key, stored);
        }
    }

    fn member(&self, name: &str) -> String {
        format!("{}/{name}.gz", self.source.identity().pid)
    }

    /// Keeps the text of `maps`.
    pub fn keep_maps(&self, text: &[u8]) {
        self.answers().maps = self.shared.store(&self.member("maps"), text);
    }

    /// Keeps what is populated, and the categories that were asked for.
    pub fn keep_populated(&self, stretches: &[PageRegion], scannable: u64) {
        let words = stretches.iter().flat_map(|one| [one.start, one.end, one.categories]);
        let bytes: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
        let stored = self.shared.store(&self.member("populated"), &bytes);
        let mut answers = self.answers();
        (answers.populated, answers.scannable) = (stored, scannable);
    }

    /// Keeps memory of the process.
    pub fn keep_memory(&self, start: VirtualAddress, bytes: &[u8]) {
        let stored = self.shared.store(&self.member(&format!("mem-{:x}", start.get())), bytes);
        self.answers().memory.insert(start.get(), stored);
    }

    /// Keeps which parts alone were asked for, and which mapped pages are left out: runs in order, each with the page
    /// after its last one.
    pub fn keep_left_out(&self, parts: &[AddressRange], left_out: Vec<(u64, u64)>) {
        let mut answers = self.answers();
        answers.parts = parts.iter().map(|part| (part.start().get(), part.end().get())).collect();
        answers.left_out = left_out;
    }

    /// Keeps the place of its address space in the order of those of a family.
    pub fn keep_space(&self, place: u64) {
        self.answers().space = Some(place);
    }

    /// Keeps which pages changed during the capture.
    pub fn keep_changed(&self, changed: &[(u64, u64)]) {
        self.answers().changed = changed.to_vec();
    }

    /// Ends it: all answers, with the page map.
    pub fn finish(&self, page_map: super::WordIndex) -> ProcessAnswers {
        let mut answers = std::mem::take(&mut *self.answers());
        answers.page_map = page_map;
        let files = self.shared.files.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, file) in &mut answers.files {
            if let (Ok(Some(place)), Some(parts)) = (file, files.get(key)) {
                *place = parts.clone();
            }
        }
        answers
    }
}

impl SharedCapture {
    /// Writes the index. Returns the length of the file.
    ///
    /// # Errors
    /// Something could not be written.
    pub fn finish(self: Arc<Self>, index: &CaptureIndex) -> Result<u64> {
        if let Some(error) = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error);
        }
        let text = serde_json::to_vec(index).unwrap_or_default();
        let shared = Arc::into_inner(self);
        let shared = shared.ok_or_else(|| crate::access::Error::not_available("the capture is still being written"))?;
        shared.archive.into_inner().unwrap_or_else(PoisonError::into_inner).finish(&text)
    }
}

impl Source for Recorder {
    fn inner(&self) -> Option<&dyn Source> {
        Some(&*self.source)
    }

    fn ask(&self, question: Question<'_>, budget: &mut Budget) -> Result<Reply> {
        let source = &*self.source;
        match question {
            Question::Text(file) => {
                let answer = source.get(file, budget);
                let key = text_key(file, self.identity().pid);
                let name = key.trim_start_matches('/').replace('/', "_");
                self.keep_text(key, |_| name, &answer);
                file.reply(answer)
            }
            Question::GroupText(asked) => {
                let answer = source.get(asked, budget);
                let name = |number| format!("cgroup-{number}-{}", asked.file.name());
                self.keep_text(group_file_key(asked), name, &answer);
                asked.reply(answer)
            }
            Question::Groups(which) => {
                let answer = source.get(which, budget);
                let groups =
                    record_answer(&answer, |all| all.iter().map(|one| (one.inode, one.path.clone())).collect());
                self.answers().groups.insert(groups_key(which), groups);
                which.reply(answer)
            }
            // A capture has the text alone, so what depends on the difference is asked as it will be there.
            Question::Mapping(_) | Question::FileMappings(_) => question.unanswered(),
            Question::Backing(asked) => {
                let answer = source.get(asked, budget);
                self.answers().backing.push(BackingRuns::of(asked.range, &answer));
                asked.reply(answer)
            }
            Question::Probe(probe) => {
                let answer = source.get(probe, budget);
                if !matches!((probe, &answer), (Probe::Compare(..), Ok(_))) {
                    self.answers().probes.insert(probe_key(probe), record_answer(&answer, Clone::clone));
                }
                probe.reply(answer)
            }
            Question::Rights(asked) => {
                let answer = source.get(asked, budget);
                self.answers().access = answer.iter().flatten().next().map(CapturedRights::of);
                asked.reply(answer)
            }
            Question::Records(of) => {
                let answer = source.get(of, budget);
                if let (RecordsOf::Frames(parts), Err(error)) = (of, &answer) {
                    self.answers().records.insert(format!("{parts:?}"), RecordedFailure::of(error));
                }
                of.reply(answer)
            }
        }
    }

    fn bytes(&self, place: Place<'_>, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        let answer = self.source.bytes(place, address, into);
        match (place, &answer) {
            (Place::PageCache(_), _) | (_, Ok(0)) => {}
            (Place::Memory, Ok(read)) => {
                let bytes = into.get(..*read).unwrap_or_default();
                self.keep_memory(address, bytes);
            }
            (Place::Memory, Err(error)) => self.answers().memory_failure = Some(RecordedFailure::of(error)),
        }
        answer
    }

    fn scan(&self, question: Scan, into: &mut [PageRegion]) -> Result<(usize, u64)> {
        let answer = self.source.scan(question, into);
        if question.any_of == 0
            && question.start < question.end
            && let Ok(found) = &answer
        {
            self.answers().looks.insert(question.start, *found);
        }
        answer
    }

    fn list(&self, which: List) -> Result<Vec<Listed>> {
        let answer = self.source.list(which);
        let listed = record_answer(&answer, |all| all.iter().map(OneListed::of).collect());
        self.answers().lists.insert(format!("{which:?}"), listed);
        answer
    }

    fn file(&self, place: FileLocation<'_>) -> Result<Option<Box<dyn ReadAt>>> {
        let key = self::place(place);
        let answer = self.source.file(place);
        self.answers()
            .files
            .insert(key.clone(), record_answer(&answer, |file| file.as_ref().map(|_| FileParts::default())));
        Ok(answer?.map(|file| {
            let parts = FileParts { length: file.len(), fingerprint: file.fingerprint(), parts: BTreeMap::new() };
            self.shared.files.lock().unwrap_or_else(PoisonError::into_inner).entry(key.clone()).or_insert(parts);
            Box::new(RecordedFile { file, key, shared: Arc::clone(&self.shared) }) as Box<dyn ReadAt>
        }))
    }
}

/// A file of which the parts that are read are kept.
struct RecordedFile {
    file: Box<dyn ReadAt>,
    key: String,
    shared: Arc<SharedCapture>,
}

/// Parts of a file are kept in pieces that begin at multiples of this.
pub(super) const PIECE: u64 = 64 << 10;

impl ReadAt for RecordedFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(offset, into)?;
        let (first, end) = (offset / PIECE, (offset + read as u64).div_ceil(PIECE));
        for piece in first..end {
            let lock = || self.shared.files.lock().unwrap_or_else(PoisonError::into_inner);
            let number = match lock().get(&self.key) {
                Some(file) if file.parts.contains_key(&piece) => continue,
                Some(file) => file.fingerprint[1],
                None => continue,
            };
            let mut bytes = vec![0; PIECE as usize];
            let length = self.file.read_up_to(piece * PIECE, &mut bytes)?;
            let name = format!("files/{number}-{piece:06}.gz");
            let stored = self.shared.store(&name, bytes.get(..length).unwrap_or_default());
            if let Some(file) = lock().get_mut(&self.key) {
                file.parts.insert(piece, stored);
            }
        }
        Ok(read)
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    fn fingerprint(&self) -> [u64; 4] {
        self.file.fingerprint()
    }
}
