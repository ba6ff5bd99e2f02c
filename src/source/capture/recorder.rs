//! A source that records the answers of another in a capture.

use super::archive::{Archive, MACHINE};
use super::encoded::EncodedBytes;
use super::index::{
    Answers, CaptureIndex, CapturedRights, FileParts, MEMORY, OneListed, ProcessAnswers, Stored, StoredRun, WordIndex,
};
use super::stored::StoredText;
use crate::access::{Error, Identity, ReadAt, Result};
use crate::budget::Budget;
use crate::kernel::{AddressRange, VirtualAddress};
use crate::source::class::Argument;
use crate::source::{
    About, Asked, Class, FileLocation, Kept, List, Listed, PageRegion, Place, Question, Reply, Scan, Source, Subject,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most bytes of a text in the index. A tar member would be larger than the text.
const SHORT: usize = 512;

/// The parts of a capture that all its recorders share.
pub struct SharedCapture {
    /// The file of the capture.
    pub archive: Mutex<Archive>,
    failure: Mutex<Option<Error>>,
    /// The answers about the machine, from any of its processes.
    machine: Arc<Mutex<Answers>>,
}

fn locked<T>(one: &Mutex<T>) -> MutexGuard<'_, T> {
    one.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedCapture {
    /// Wraps an archive.
    pub fn new(archive: Archive) -> Arc<Self> {
        Arc::new(SharedCapture { archive: Mutex::new(archive), failure: Mutex::default(), machine: Arc::default() })
    }

    /// Adds a text. An error of writing is reported at the end.
    fn store(&self, name: &str, bytes: &[u8]) -> StoredText {
        let stored = locked(&self.archive).text(name, bytes);
        stored.unwrap_or_else(|error| {
            locked(&self.failure).get_or_insert(error);
            StoredText::default()
        })
    }

    /// Writes the index. Returns the length of the file in bytes.
    ///
    /// # Errors
    /// Fails if a part could not be written.
    pub fn finish(self: Arc<Self>, index: CaptureIndex) -> Result<u64> {
        if let Some(error) = locked(&self.failure).take() {
            return Err(error);
        }
        let machine = std::mem::take(&mut *locked(&self.machine));
        let text = serde_json::to_vec(&CaptureIndex { machine, ..index }).unwrap_or_default();
        let shared = Arc::into_inner(self);
        let shared = shared.ok_or_else(|| Error::not_available("the capture is still being written"))?;
        shared.archive.into_inner().unwrap_or_else(PoisonError::into_inner).finish(&text)
    }
}

/// A source that records the answers of another. The writer of a capture keeps the pages, while it reads them.
pub struct Recorder {
    source: Arc<dyn Source>,
    shared: Arc<SharedCapture>,
    process: Mutex<ProcessAnswers>,
    /// The other answers about the process.
    answers: Arc<Mutex<Answers>>,
}

/// Returns the written key of an answer about a file, and what it is about. All regions of a file have the same key.
pub(super) fn file_key(place: FileLocation<'_>) -> (String, About) {
    let mut key = "file ".to_owned();
    let (word, about) = match place {
        FileLocation::Region(_) => ("region ", About::Machine),
        FileLocation::Path(_) => ("path ", About::Process),
        FileLocation::OwnPath(_) => ("own-path ", About::Machine),
        FileLocation::Trusted(..) => ("trusted ", About::Process),
        FileLocation::OwnVdso(_) => ("own-vdso ", About::Machine),
    };
    key.push_str(word);
    match place {
        FileLocation::Region(region) => (region, region.name.as_bytes()).write(&mut key),
        FileLocation::Path(path) | FileLocation::OwnPath(path) => path.write(&mut key),
        FileLocation::Trusted(path, user) => (user, path).write(&mut key),
        FileLocation::OwnVdso(region) => region.range.len().write(&mut key),
    }
    (key, about)
}

/// Returns the name of the member with the text of this key: the words of the key, or a number if it contains bytes.
fn member_of_key(key: &str, number: usize) -> String {
    let name = key.strip_prefix("text ").unwrap_or(key).replace(' ', "-");
    if name.contains(['%', '/']) { format!("text-{number}") } else { name }
}

impl Recorder {
    /// Makes a recorder of the answers of `source`.
    pub fn new(source: &Arc<dyn Source>, shared: &Arc<SharedCapture>) -> Arc<Self> {
        let Identity { pid, start_time, name } = source.identity();
        let name = EncodedBytes(name.as_bytes().to_vec());
        let process = Mutex::new(ProcessAnswers { pid, start_time, name, ..ProcessAnswers::default() });
        Arc::new(Recorder { source: Arc::clone(source), shared: Arc::clone(shared), process, answers: Arc::default() })
    }

    /// Returns the file of the capture.
    pub fn archive(&self) -> &Mutex<Archive> {
        &self.shared.archive
    }

    /// Requests all answers that a capture keeps about a subject, unless they are kept already.
    pub fn ask_all(&self, subject: Subject<'_>, budget: &mut Budget) {
        for question in Question::kept_of(subject) {
            let is_asked = locked(self.about(question.class().about)).is_asked(&question.key());
            // A refusal is kept too.
            _ = (!is_asked).then(|| self.ask(question, budget));
        }
    }

    fn process(&self) -> MutexGuard<'_, ProcessAnswers> {
        locked(&self.process)
    }

    fn about(&self, about: About) -> &Arc<Mutex<Answers>> {
        match about {
            About::Machine => &self.shared.machine,
            About::Process => &self.answers,
        }
    }

    /// Requests an answer, and keeps what `keep` makes of it and its key.
    fn kept<'a, Q: Asked<'a>, T: Stored>(
        &self,
        asked: Q,
        budget: &mut Budget,
        keep: impl FnOnce(&Q::Answer, &str) -> Option<T>,
    ) -> Result<Reply> {
        let question: Question<'a> = asked.into();
        let Class { about, kept, .. } = question.class();
        let answer = self.source.get(asked, budget);
        let key = question.key();
        if !matches!(kept, Kept::Elsewhere(_)) && !locked(self.about(about)).has::<T>(&key) {
            let stored = answer.as_ref().map(|answer| keep(answer, &key));
            if let Some(stored) = stored.transpose() {
                locked(self.about(about)).put(key, stored);
            }
        }
        asked.reply(answer)
    }

    /// Keeps the text of an answer.
    fn store(&self, about: About, key: &str, text: &[u8]) -> StoredText {
        if text.len() <= SHORT {
            return StoredText::Short(EncodedBytes(text.to_vec()));
        }
        let name = member_of_key(key, locked(self.about(about)).texts());
        match about {
            About::Machine => self.shared.store(&format!("{MACHINE}/{name}.gz"), text),
            About::Process => self.shared.store(&self.member(&name), text),
        }
    }

    fn member(&self, name: &str) -> String {
        format!("{}/{name}.gz", self.source.identity().pid)
    }

    /// Keeps the text of `maps`.
    pub fn keep_maps(&self, text: &[u8]) {
        self.process().maps = self.shared.store(&self.member("maps"), text);
    }

    /// Keeps the populated ranges, and the categories of the scan.
    pub fn keep_populated(&self, stretches: &[PageRegion], scannable: u64) {
        let words = stretches.iter().flat_map(|one| [one.start, one.end, one.categories]);
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        let stored = self.shared.store(&self.member("populated"), &bytes);
        let mut answers = self.process();
        (answers.populated, answers.scannable) = (stored, scannable);
    }

    /// Keeps memory of the process.
    pub fn keep_memory(&self, start: VirtualAddress, bytes: &[u8]) {
        let stored = self.shared.store(&self.member(&format!("mem-{:x}", start.get())), bytes);
        self.process().memory.insert(start.get(), stored);
    }

    /// Keeps words of the heap.
    pub fn keep_heap(&self, words: WordIndex) {
        self.process().heap = words;
    }

    /// Keeps the captured ranges, and the runs of mapped pages that are left out, in order: the first page, and the
    /// page after the last.
    pub fn keep_left_out(&self, parts: &[AddressRange], left_out: Vec<(u64, u64)>) {
        let mut answers = self.process();
        answers.parts = parts.iter().map(|part| (part.start().get(), part.end().get())).collect();
        answers.left_out = left_out;
    }

    /// Keeps the position of its address space in the order of the family.
    pub fn keep_space(&self, place: u64) {
        self.process().space = Some(place);
    }

    /// Keeps which pages changed during the capture.
    pub fn keep_changed(&self, changed: &[(u64, u64)]) {
        self.process().changed = changed.to_vec();
    }

    /// Ends the recording. Returns all answers, with the page map.
    pub fn finish(&self, page_map: WordIndex) -> ProcessAnswers {
        let answers = std::mem::take(&mut *locked(&self.answers));
        ProcessAnswers { page_map, answers, ..std::mem::take(&mut *self.process()) }
    }
}

impl Source for Recorder {
    fn inner(&self) -> Option<&dyn Source> {
        Some(&*self.source)
    }

    fn ask(&self, question: Question<'_>, budget: &mut Budget) -> Result<Reply> {
        let Class { about, kept, .. } = question.class();
        // No capture has this answer, so questions that depend on it must see that during the recording too.
        if let Kept::Never(_) = kept {
            return question.unanswered();
        }
        match question {
            Question::Text(file) => self.kept(file, budget, |text, key| Some(self.store(about, key, text))),
            Question::GroupText(asked) => self.kept(asked, budget, |text, key| Some(self.store(about, key, text))),
            Question::Groups(which) => self.kept(which, budget, |all, _| {
                Some(all.iter().map(|one| (one.inode, EncodedBytes(one.path.clone()))).collect::<Vec<_>>())
            }),
            Question::Backing(asked) => self.kept(asked, budget, |runs, _| Some(StoredRun::all(asked.region, runs))),
            Question::Probe(probe) => self.kept(probe, budget, |words, _| Some(words.clone())),
            Question::Rights(asked) => self.kept(asked, budget, |access, _| access.as_ref().map(CapturedRights::of)),
            // A success is not kept: without the records it is of no use.
            Question::Records(of) => self.kept(of, budget, |(), _| None::<StoredText>),
            Question::Mapping(_) | Question::FileMappings(_) | Question::Notes(_) | Question::HeapWords(_) => {
                question.unanswered()
            }
        }
    }

    fn bytes(&self, place: Place<'_>, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        let answer = self.source.bytes(place, address, into);
        match (place, &answer) {
            (Place::PageCache(_), _) | (_, Ok(0)) => {}
            (Place::Memory, Ok(read)) => self.keep_memory(address, into.get(..*read).unwrap_or_default()),
            (Place::Memory, Err(error)) => locked(&self.answers).fail(MEMORY, error),
        }
        answer
    }

    fn scan(&self, question: Scan, into: &mut [PageRegion]) -> Result<(usize, u64)> {
        let answer = self.source.scan(question, into);
        if question.any_of == 0
            && question.start < question.end
            && let Ok(found) = &answer
        {
            self.process().looks.insert(question.start, *found);
        }
        answer
    }

    fn list(&self, which: List) -> Result<Vec<Listed>> {
        let answer = self.source.list(which);
        let listed = answer.as_ref().map(|all| all.iter().map(OneListed::of).collect::<Vec<_>>());
        locked(self.about(which.class().about)).put(which.key(), listed);
        answer
    }

    fn file(&self, place: FileLocation<'_>) -> Result<Option<Box<dyn ReadAt>>> {
        let (key, about) = file_key(place);
        let answer = self.source.file(place);
        let parts = |file: &dyn ReadAt| FileParts::new(file.len(), file.fingerprint());
        let kept = answer.as_ref().map(|file| file.as_deref().map(parts));
        let answers = self.about(about);
        locked(answers).put(key.clone(), kept);
        Ok(answer?.map(|file| {
            let (answers, shared) = (Arc::clone(answers), Arc::clone(&self.shared));
            Box::new(RecordedFile { file, key, answers, shared }) as Box<dyn ReadAt>
        }))
    }
}

/// A file that keeps the parts that are read.
struct RecordedFile {
    file: Box<dyn ReadAt>,
    key: String,
    answers: Arc<Mutex<Answers>>,
    shared: Arc<SharedCapture>,
}

/// The size of a piece in bytes. Pieces begin at multiples of it.
pub(super) const PIECE: u64 = 64 << 10;

impl ReadAt for RecordedFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(offset, into)?;
        let (first, end) = (offset / PIECE, (offset + read as u64).div_ceil(PIECE));
        for piece in first..end {
            let number = match locked(&self.answers).file_mut(&self.key) {
                Some(file) if file.parts.contains_key(&piece) => continue,
                Some(file) => file.fingerprint[1],
                None => continue,
            };
            let mut bytes = vec![0; PIECE as usize];
            let length = self.file.read_up_to(piece * PIECE, &mut bytes)?;
            let name = format!("files/{number}-{piece:06}.gz");
            let stored = self.shared.store(&name, bytes.get(..length).unwrap_or_default());
            if let Some(file) = locked(&self.answers).file_mut(&self.key) {
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
