//! The index of a capture: the short answers, and the places of the long ones.

use super::encoded::EncodedBytes;
use super::stored::{CompressedBlock, StoredText};
use crate::access::{Error, Result, when_capturing};
use crate::kernel::text::one_line;
use crate::kernel::words::Worded;
use crate::kernel::{AddressRange, Name, Region, VirtualAddress, WordFile};
use crate::source::class::Argument;
use crate::source::{
    BackingContent, BackingRun, Cgroup, Credentials, Feature, Finding, List, Listed, MissingProcess, SourceAccess,
};
use rustix::io::Errno;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt::{self, Formatter};

/// The name of a field of the index.
struct FieldName(String);

impl<'de> Deserialize<'de> for FieldName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_identifier(FieldName(String::new()))
    }
}

impl Visitor<'_> for FieldName {
    type Value = FieldName;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> std::result::Result<FieldName, E> {
        Ok(FieldName(name.to_owned()))
    }
}

macro_rules! capture_index {
    ($($(#[doc = $about:literal])* $field:ident: $type:ty,)*) => {
        /// The contents of a capture, except long texts and words.
        #[derive(Default)]
        pub struct CaptureIndex {
            $($(#[doc = $about])* pub $field: $type,)*
            /// The words of frames, in separate fields of the index.
            pub frames: FrameWords,
        }

        impl Serialize for CaptureIndex {
            fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                let mut fields = serializer.serialize_map(None)?;
                $(fields.serialize_entry(stringify!($field), &self.$field)?;)*
                for (file, words) in self.frames.all() {
                    fields.serialize_entry(file.words(), words)?;
                }
                fields.end()
            }
        }

        impl<'de> Visitor<'de> for IndexFields {
            type Value = CaptureIndex;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("an index")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> std::result::Result<CaptureIndex, A::Error> {
                let mut index = CaptureIndex::default();
                while let Some(FieldName(name)) = fields.next_key()? {
                    let of_frames = WordFile::OF_FRAMES.into_iter().find(|file| file.words() == name);
                    match (&*name, of_frames) {
                        $((stringify!($field), _) => index.$field = fields.next_value()?,)*
                        (_, Some(file)) => index.frames.keep(file, fields.next_value()?),
                        (_, None) => _ = fields.next_value::<IgnoredAny>()?,
                    }
                }
                Ok(index)
            }
        }
    };
}

struct IndexFields;

impl<'de> Deserialize<'de> for CaptureIndex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_struct("CaptureIndex", &[], IndexFields)
    }
}

capture_index! {
    /// When the capture was begun and ended, in seconds since 1970.
    times: [u64; 2],
    /// The answers about the machine.
    machine: Answers,
    /// The processes: the file opens on the first.
    processes: Vec<ProcessAnswers>,
    /// The number of processes, from the first on, that were captured as a family; 0 if one process was captured.
    family: usize,
    /// Processes of the family that are not in `processes`, or that ended before all their answers were kept.
    missing: Vec<OneMissing>,
    /// Whether map counts and cgroups have one word for each word of the flags, and are indexed by these words, not by
    /// frames.
    by_flags: bool,
}

/// The words of frames of each file. Their fields in the index have the names of the words.
#[derive(Default)]
pub struct FrameWords([WordIndex; WordFile::OF_FRAMES.len()]);

impl FrameWords {
    /// Returns the words of one file, if it is a file with words of frames.
    pub fn of(&self, file: WordFile) -> Option<&WordIndex> {
        self.0.get(place_of(file)?)
    }

    /// Sets the words of one file.
    pub fn keep(&mut self, file: WordFile, words: WordIndex) {
        if let Some(place) = place_of(file).and_then(|place| self.0.get_mut(place)) {
            *place = words;
        }
    }

    /// Returns the words of each file.
    pub fn all(&self) -> impl Iterator<Item = (WordFile, &WordIndex)> {
        WordFile::OF_FRAMES.into_iter().zip(&self.0)
    }
}

fn place_of(file: WordFile) -> Option<usize> {
    WordFile::OF_FRAMES.iter().position(|one| *one == file)
}

/// Answers, by the written keys of their questions.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Answers {
    texts: BTreeMap<String, StoredText>,
    words: BTreeMap<String, Vec<u64>>,
    groups: BTreeMap<String, Vec<OneGroup>>,
    runs: BTreeMap<String, Vec<StoredRun>>,
    rights: BTreeMap<String, CapturedRights>,
    lists: BTreeMap<String, Vec<OneListed>>,
    files: BTreeMap<String, Option<FileParts>>,
    /// The errors of questions without an answer.
    failures: BTreeMap<String, RecordedFailure>,
}

/// The form in which an answer is kept.
pub(super) trait Stored: Sized {
    fn all(answers: &Answers) -> &BTreeMap<String, Self>;
    fn all_mut(answers: &mut Answers) -> &mut BTreeMap<String, Self>;
}

macro_rules! stored {
    ($($type:ty: $place:ident,)*) => {$(
        impl Stored for $type {
            fn all(answers: &Answers) -> &BTreeMap<String, Self> {
                &answers.$place
            }

            fn all_mut(answers: &mut Answers) -> &mut BTreeMap<String, Self> {
                &mut answers.$place
            }
        }
    )*};
}

stored! {
    StoredText: texts,
    Vec<u64>: words,
    Vec<OneGroup>: groups,
    Vec<StoredRun>: runs,
    CapturedRights: rights,
    Vec<OneListed>: lists,
    Option<FileParts>: files,
}

/// The key of a failure to open the memory of the process.
pub(super) const MEMORY: &str = "memory";

impl Answers {
    /// Returns whether there is an answer, and not a failure.
    pub(super) fn has<T: Stored>(&self, key: &str) -> bool {
        T::all(self).contains_key(key)
    }

    /// Keeps an answer. The first one remains, unless it was a failure.
    pub(super) fn put<T: Stored>(&mut self, key: String, answer: std::result::Result<T, &Error>) {
        match answer {
            _ if self.has::<T>(&key) => {}
            Ok(answer) => {
                self.failures.remove(&key);
                T::all_mut(self).insert(key, answer);
            }
            Err(error) => {
                self.failures.entry(key).or_insert_with(|| RecordedFailure::of(error));
            }
        }
    }

    /// Returns whether there is an answer or a failure.
    pub(super) fn is_asked(&self, key: &str) -> bool {
        fn has<T: Stored>(answers: &Answers, key: &str) -> bool {
            answers.has::<T>(key)
        }
        let kinds = [
            has::<StoredText>,
            has::<Vec<u64>>,
            has::<Vec<OneGroup>>,
            has::<Vec<StoredRun>>,
            has::<CapturedRights>,
            has::<Vec<OneListed>>,
        ];
        self.failures.contains_key(key) || kinds.into_iter().any(|has| has(self, key))
    }

    /// Returns the answer or the failure.
    pub(super) fn get<T: Stored>(&self, key: &str) -> Option<Result<&T>> {
        match T::all(self).get(key) {
            Some(answer) => Some(Ok(answer)),
            None => self.failure(key).map(|failure| Err(failure.error())),
        }
    }

    /// Returns the failure of a question.
    pub(super) fn failure(&self, key: &str) -> Option<&RecordedFailure> {
        self.failures.get(key)
    }

    /// Keeps the failure of a question.
    pub(super) fn fail(&mut self, key: &str, error: &Error) {
        self.failures.insert(key.to_owned(), RecordedFailure::of(error));
    }

    /// Returns the number of texts.
    pub(super) fn texts(&self) -> usize {
        self.texts.len()
    }

    /// Returns a file of which parts are kept.
    pub(super) fn file_mut(&mut self, key: &str) -> Option<&mut FileParts> {
        self.files.get_mut(key)?.as_mut()
    }

    /// Returns all texts.
    fn stored_texts(&self) -> impl Iterator<Item = &StoredText> {
        self.texts.values().chain(self.files.values().flatten().flat_map(|file| file.parts.values()))
    }

    /// Returns whether all answers have the form that pmdb writes: runs of whole pages inside the requested range, in
    /// order.
    pub(super) fn is_sound(&self, page: u64, longest: u64) -> bool {
        let are_sound = |(key, runs): (&String, &Vec<StoredRun>)| {
            let Some((first, end)) = part_of_key(key) else {
                return false;
            };
            let is_within = |run: &StoredRun| {
                run.0.is_multiple_of(page) && run.1.is_multiple_of(page) && first <= run.0 && run.1 <= end
            };
            are_runs(runs.iter().map(|run| (run.0, run.1))) && runs.iter().all(is_within)
        };
        let is_text = |text: &StoredText| text.is_regular() && text.length() <= longest;
        self.runs.iter().all(are_sound) && self.stored_texts().all(is_text)
    }
}

/// Parses the part of a file at the end of a key.
fn part_of_key(key: &str) -> Option<(u64, u64)> {
    let (first, end) = key.rsplit(' ').next()?.split_once('-')?;
    Some((u64::from_str_radix(first, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
}

/// A process that is missing from the capture, or of which answers are.
#[derive(Serialize, Deserialize)]
pub struct OneMissing {
    pub(super) pid: u32,
    name: EncodedBytes,
    /// How the process ended, as a verb.
    pub(super) why: String,
    in_part: bool,
}

impl OneMissing {
    /// Converts it to the form in the index.
    pub fn of(one: &MissingProcess) -> Self {
        let MissingProcess { pid, name, why, is_in_part } = one;
        OneMissing { pid: *pid, name: EncodedBytes(name.as_bytes().to_vec()), why: why.clone(), in_part: *is_in_part }
    }

    pub(super) fn process(&self) -> MissingProcess {
        let missing = MissingProcess::new(self.pid, Name::new(self.name.0.clone()), one_line(&self.why));
        MissingProcess { is_in_part: self.in_part, ..missing }
    }
}

/// The answers about one process.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessAnswers {
    pub(super) pid: u32,
    pub(super) start_time: u64,
    pub(super) name: EncodedBytes,
    /// For a family: the position of its address space in the kernel's order. Processes that share one have the same
    /// position.
    pub(super) space: Option<u64>,
    /// The text of `/proc/PID/maps`.
    pub(super) maps: StoredText,
    /// The page map of the process.
    pub page_map: WordIndex,
    /// The sizes of chunks in its heap, if they were captured.
    pub(super) heap: WordIndex,
    /// The captured ranges, as start and end addresses; empty if everything was captured.
    pub(super) parts: Vec<(u64, u64)>,
    /// Runs of mapped pages whose entries were left out: the first page, and the page after the last.
    pub(super) left_out: Vec<(u64, u64)>,
    /// Runs of pages that changed during the capture: the first page, and their number.
    pub(super) changed: Vec<(u64, u64)>,
    /// The categories of the kernel's scan; 0 if there is no scan.
    pub(super) scannable: u64,
    /// Populated runs as a scan returned them: start, end and categories of each.
    pub(super) populated: StoredText,
    /// The starts of scans without conditions, and their results, which show the regions that scans skip.
    pub(super) looks: BTreeMap<u64, (usize, u64)>,
    /// Memory that the decoders needed, such as the vdso.
    pub(super) memory: BTreeMap<u64, StoredText>,
    /// The other answers.
    pub(super) answers: Answers,
}

/// The places of the words of a file.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WordIndex {
    /// The error, if the file could not be read.
    pub(super) failure: Option<RecordedFailure>,
    /// The number of words that the file had.
    pub(super) end: u64,
    /// The first and last index and the place of each block.
    pub(super) blocks: Vec<(u64, u64, CompressedBlock)>,
    /// For the flags of frames: the number of words that the blocks before each block describe.
    pub(super) before: Vec<u64>,
}

/// The parts of a file that were read.
#[derive(Default, Clone, Serialize, Deserialize)]
pub(super) struct FileParts {
    pub(super) length: u64,
    pub(super) fingerprint: [u64; 4],
    pub(super) parts: BTreeMap<u64, StoredText>,
}

impl FileParts {
    /// Makes an entry for a file of this length and fingerprint, without parts.
    pub(super) fn new(length: u64, fingerprint: [u64; 4]) -> Self {
        FileParts { length, fingerprint, parts: BTreeMap::new() }
    }
}

/// A run of backing content: its first and last offset in the file, and the content.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredRun(u64, u64, StoredContent);

/// The object's content for the pages of a run.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StoredContent {
    PastEnd,
    Hole,
    Stored,
    Cached,
    Unknown(Box<RecordedFailure>),
}

impl StoredContent {
    fn of(content: &Result<BackingContent>) -> Self {
        match content {
            Ok(BackingContent::PastEnd) => StoredContent::PastEnd,
            Ok(BackingContent::Hole) => StoredContent::Hole,
            Ok(BackingContent::Contents { cached: false }) => StoredContent::Stored,
            Ok(BackingContent::Contents { cached: true }) => StoredContent::Cached,
            Err(error) => StoredContent::Unknown(Box::new(RecordedFailure::of(error))),
        }
    }

    fn content(&self) -> Result<BackingContent> {
        match self {
            StoredContent::PastEnd => Ok(BackingContent::PastEnd),
            StoredContent::Hole => Ok(BackingContent::Hole),
            StoredContent::Stored => Ok(BackingContent::Contents { cached: false }),
            StoredContent::Cached => Ok(BackingContent::Contents { cached: true }),
            StoredContent::Unknown(failure) => Err(failure.error()),
        }
    }
}

impl StoredRun {
    pub(super) fn all(region: &Region, runs: &[BackingRun]) -> Vec<Self> {
        let run = |run: &BackingRun| {
            let first = region.offset_of(run.range.start());
            StoredRun(first, first.saturating_add(run.range.len()), StoredContent::of(&run.content))
        };
        runs.iter().map(run).collect()
    }

    /// Returns the runs in `range`, a part of `region`.
    pub(super) fn within(runs: &[Self], region: &Region, range: AddressRange) -> Vec<BackingRun> {
        let run = |StoredRun(first, end, content): &StoredRun| {
            let start = region.range.start().checked_add(first.checked_sub(region.offset)?)?;
            let whole = AddressRange::of_length(start, end.checked_sub(*first)?)?;
            Some(BackingRun { range: whole.intersection(range)?, content: content.content() })
        };
        runs.iter().filter_map(run).collect()
    }
}

/// A process or thread in a list.
#[derive(Serialize, Deserialize)]
pub(super) struct OneListed {
    pid: u32,
    stat: EncodedBytes,
    status: EncodedBytes,
    program: Option<EncodedBytes>,
}

/// A directory of the hierarchy of cgroups: its inode and path.
pub(super) type OneGroup = (u64, EncodedBytes);

/// The rights of the pmdb that wrote the capture.
#[derive(Serialize, Deserialize)]
pub(super) struct CapturedRights {
    findings: Vec<(String, Option<bool>, String, Option<String>)>,
    user: u32,
    rights: Vec<String>,
    in_first_user_namespace: Option<bool>,
}

/// The error of a question without an answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RecordedFailure {
    Gone(String),
    NotPermitted(String, String),
    NotAvailable(String),
    Io(String, i32),
}

impl RecordedFailure {
    pub(super) fn of(error: &Error) -> Self {
        match error {
            Error::Gone { what, .. } => RecordedFailure::Gone(what.clone()),
            Error::NotPermitted { what, remedy } => RecordedFailure::NotPermitted(what.clone(), remedy.clone()),
            Error::Io { what, error } => RecordedFailure::Io(what.clone(), error.raw_os_error()),
            other => RecordedFailure::NotAvailable(other.to_string()),
        }
    }

    pub(super) fn error(&self) -> Error {
        match self {
            RecordedFailure::Gone(what) => Error::gone(one_line(what)),
            RecordedFailure::NotPermitted(what, remedy) if remedy.is_empty() => {
                Error::not_permitted(one_line(what), "")
            }
            RecordedFailure::NotPermitted(what, remedy) => {
                Error::not_permitted(one_line(what), when_capturing(&one_line(remedy)))
            }
            RecordedFailure::NotAvailable(what) => Error::not_available(one_line(what)),
            RecordedFailure::Io(what, error) => {
                Error::io(one_line(what), Errno::from_raw_os_error((*error).clamp(1, 4095)))
            }
        }
    }
}

impl OneListed {
    pub(super) fn of(one: &Listed) -> Self {
        let bytes = |bytes: &[u8]| EncodedBytes(bytes.to_vec());
        OneListed {
            pid: one.pid,
            stat: bytes(&one.stat),
            status: bytes(&one.status),
            program: one.program.as_deref().map(bytes),
        }
    }

    pub(super) fn listed(&self) -> Listed {
        Listed {
            pid: self.pid,
            stat: self.stat.0.clone(),
            status: self.status.0.clone(),
            program: self.program.as_ref().map(|program| program.0.clone()),
            ..Listed::default()
        }
    }
}

pub(super) fn group((inode, path): &OneGroup) -> Cgroup {
    Cgroup { inode: *inode, path: path.0.clone() }
}

/// Returns whether each run has an end, and none begins before the end of the run before it.
fn are_runs(mut runs: impl Iterator<Item = (u64, u64)>) -> bool {
    let mut before = 0;
    runs.all(|(start, end)| std::mem::replace(&mut before, end) <= start && start < end)
}

/// The names of features in older captures.
const OLDER_NAMES: [(&str, Feature); 3] =
    [("scan", Feature::Scan), ("scan_write_tracked", Feature::ScanWriteTracked), ("maps_query", Feature::MapsQuery)];

/// Returns the feature with this name.
fn feature(name: &str) -> Option<Feature> {
    let older = || OLDER_NAMES.iter().find(|(one, _)| *one == name).map(|(_, feature)| *feature);
    Feature::from_word(name).or_else(older)
}

/// The names of rights that are known.
const RIGHTS: [&str; 4] = ["CAP_SYS_ADMIN", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH", "CAP_CHECKPOINT_RESTORE"];

impl CapturedRights {
    pub(super) fn of(access: &SourceAccess) -> Self {
        let named =
            |one: &Finding| (one.feature.word().to_owned(), one.available, one.found.clone(), one.remedy.clone());
        let credentials = &access.credentials;
        CapturedRights {
            findings: access.findings.iter().map(named).collect(),
            user: credentials.user,
            rights: credentials.rights.iter().map(|&right| right.to_owned()).collect(),
            in_first_user_namespace: credentials.in_first_user_namespace,
        }
    }

    pub(super) fn access(&self) -> SourceAccess {
        let finding = |(name, available, found, remedy): &(String, Option<bool>, String, Option<String>)| {
            Some(Finding {
                feature: feature(name)?,
                available: *available,
                found: one_line(found),
                remedy: remedy.as_deref().map(one_line),
            })
        };
        SourceAccess {
            findings: self.findings.iter().filter_map(finding).collect(),
            credentials: Credentials {
                user: self.user,
                rights: RIGHTS.into_iter().filter(|right| self.rights.iter().any(|one| one == right)).collect(),
                in_first_user_namespace: self.in_first_user_namespace,
            },
        }
    }
}

impl List {
    /// Returns the written key of the list.
    pub(super) fn key(self) -> String {
        let mut key = "list ".to_owned();
        self.write(&mut key);
        key
    }

    /// Returns the name of the list, for the error of a file that lacks it.
    pub(in crate::source) fn what(self) -> &'static str {
        match self {
            List::Held | List::All | List::One(_) => "the processes of the machine",
            List::Threads => "the threads of the process",
            List::Descriptors | List::DescriptorsOf(_) => "the links of /proc/PID/fd",
        }
    }
}

impl ProcessAnswers {
    /// Returns the name of the process.
    pub(super) fn name(&self) -> Name {
        Name::new(self.name.0.clone())
    }

    /// Moves the captured ranges out of the entry; empty if everything was captured.
    pub(super) fn take_parts(&mut self) -> Vec<AddressRange> {
        let range = |(start, end)| AddressRange::new(VirtualAddress::new(start), VirtualAddress::new(end));
        std::mem::take(&mut self.parts).into_iter().filter_map(range).collect()
    }

    /// Returns whether a question had no answer because the process had ended.
    pub fn has_lost_answers(&self) -> bool {
        let is_loss = |(key, failure): (&String, &RecordedFailure)| {
            let is_of_all = ["text ", "list ", "backing ", MEMORY].iter().any(|begins| key.starts_with(begins));
            is_of_all && matches!(failure, RecordedFailure::Gone(_))
        };
        self.answers.failures.iter().any(is_loss)
    }

    /// Returns the texts that are not in `answers`.
    fn stored_texts(&self) -> impl Iterator<Item = &StoredText> {
        self.memory.values().chain([&self.maps, &self.populated])
    }

    /// Returns whether all parts have the form that pmdb writes, so that loops over its numbers end. No text is longer
    /// than `longest`, except memory, which is read in parts.
    pub(super) fn is_sound(&self, page: u64, longest: u64) -> bool {
        let is_at_page = |address: &u64| address.is_multiple_of(page);
        self.page_map.is_in_order()
            && self.heap.is_in_order()
            && are_runs(self.left_out.iter().copied())
            && self.parts.iter().all(|(start, end)| start <= end)
            && self.changed.iter().all(|(first, count)| first.checked_add(*count).is_some())
            && self.looks.iter().all(|(start, (_, stopped))| start <= stopped && is_at_page(stopped))
            && self.answers.is_sound(page, longest)
            && self.maps.length() <= longest
            && self.stored_texts().all(StoredText::is_regular)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_a_capture_begins_a_line_of_its_own() {
        let text = || "gone\n(pmdb) quit\u{1b}[2J".to_owned();
        for failure in [
            RecordedFailure::Gone(text()),
            RecordedFailure::NotPermitted(text(), text()),
            RecordedFailure::NotAvailable(text()),
            RecordedFailure::Io(text(), 2),
        ] {
            let said = format!("{:?} {}", failure.error(), failure.error());
            assert!(!said.contains(['\n', '\u{1b}']) && !said.contains("\\n"), "{said}");
        }
        let missing = OneMissing { pid: 1, name: EncodedBytes::default(), why: text(), in_part: false };
        assert!(!missing.process().why.contains('\n'));
        let findings = vec![(Feature::Memory.word().to_owned(), None, text(), Some(text()))];
        let rights = CapturedRights { findings, user: 0, rights: Vec::new(), in_first_user_namespace: None };
        let said = rights.access().findings.into_iter().flat_map(|one| [Some(one.found), one.remedy]).flatten();
        assert_eq!(said.filter(|text| !text.contains('\n')).count(), 2);
    }
}
