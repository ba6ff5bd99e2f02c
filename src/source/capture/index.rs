//! The index: the answers that are short, and where the long ones are.

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

/// The name of a field.
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
        /// All of a capture but its long texts and its words.
        #[derive(Default)]
        pub struct CaptureIndex {
            $($(#[doc = $about])* pub $field: $type,)*
            /// The words of its frames: fields of their own.
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
    /// When it was begun and ended, in seconds since 1970.
    times: [u64; 2],
    /// What the machine was asked.
    machine: Answers,
    /// The processes: the first is the one that was captured.
    processes: Vec<ProcessAnswers>,
    /// How many of the first of them were captured as a family; 0 if one process was asked for.
    family: usize,
    /// Processes of the family that are not among them, or have ended before all was asked.
    missing: Vec<OneMissing>,
    /// Whether the other words of frames have one for each of the flags and are indexed by these, not by frames.
    by_flags: bool,
}

/// The words of frames in each file: fields of the index under what the words are called.
#[derive(Default)]
pub struct FrameWords([WordIndex; WordFile::OF_FRAMES.len()]);

impl FrameWords {
    /// Those of one file, which has words of frames.
    pub fn of(&self, file: WordFile) -> Option<&WordIndex> {
        self.0.get(place_of(file)?)
    }

    /// Keeps those of one file.
    pub fn keep(&mut self, file: WordFile, words: WordIndex) {
        if let Some(place) = place_of(file).and_then(|place| self.0.get_mut(place)) {
            *place = words;
        }
    }

    /// Those of each file.
    pub fn all(&self) -> impl Iterator<Item = (WordFile, &WordIndex)> {
        WordFile::OF_FRAMES.into_iter().zip(&self.0)
    }
}

fn place_of(file: WordFile) -> Option<usize> {
    WordFile::OF_FRAMES.iter().position(|one| *one == file)
}

/// Answers by the written keys of their questions.
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
    /// Why there was no answer.
    failures: BTreeMap<String, RecordedFailure>,
}

/// What an answer is kept as.
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

/// The key under which a failure to open the memory of the process is kept.
pub(super) const MEMORY: &str = "memory";

impl Answers {
    /// Whether there is an answer that is no failure.
    pub(super) fn has<T: Stored>(&self, key: &str) -> bool {
        T::all(self).contains_key(key)
    }

    /// Keeps an answer; the first one stays, unless it was a failure.
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

    /// Whether there is an answer, or a failure.
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

    /// The answer that was given.
    pub(super) fn get<T: Stored>(&self, key: &str) -> Option<Result<&T>> {
        match T::all(self).get(key) {
            Some(answer) => Some(Ok(answer)),
            None => self.failure(key).map(|failure| Err(failure.error())),
        }
    }

    /// Why there was no answer.
    pub(super) fn failure(&self, key: &str) -> Option<&RecordedFailure> {
        self.failures.get(key)
    }

    /// Keeps why there was none.
    pub(super) fn fail(&mut self, key: &str, error: &Error) {
        self.failures.insert(key.to_owned(), RecordedFailure::of(error));
    }

    /// How many texts it has.
    pub(super) fn texts(&self) -> usize {
        self.texts.len()
    }

    /// A file of which parts are kept.
    pub(super) fn file_mut(&mut self, key: &str) -> Option<&mut FileParts> {
        self.files.get_mut(key)?.as_mut()
    }

    /// All texts that it names.
    fn stored_texts(&self) -> impl Iterator<Item = &StoredText> {
        self.texts.values().chain(self.files.values().flatten().flat_map(|file| file.parts.values()))
    }

    /// Whether all that is in it has the form that a capture has: runs are whole pages of what was asked for, in order.
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

/// The part of a file that a key ends in.
fn part_of_key(key: &str) -> Option<(u64, u64)> {
    let (first, end) = key.rsplit(' ').next()?.split_once('-')?;
    Some((u64::from_str_radix(first, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
}

/// A process that is missing, or of which answers are.
#[derive(Serialize, Deserialize)]
pub struct OneMissing {
    pub(super) pid: u32,
    name: EncodedBytes,
    /// What it did, as a verb.
    pub(super) why: String,
    in_part: bool,
}

impl OneMissing {
    /// As it is kept.
    pub fn of(one: &MissingProcess) -> Self {
        let MissingProcess { pid, name, why, is_in_part } = one;
        OneMissing { pid: *pid, name: EncodedBytes(name.as_bytes().to_vec()), why: why.clone(), in_part: *is_in_part }
    }

    pub(super) fn process(&self) -> MissingProcess {
        let missing = MissingProcess::new(self.pid, Name::new(self.name.0.clone()), one_line(&self.why));
        MissingProcess { is_in_part: self.in_part, ..missing }
    }
}

/// What one process was asked.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessAnswers {
    pub(super) pid: u32,
    pub(super) start_time: u64,
    pub(super) name: EncodedBytes,
    /// Of a family: the place of its address space in the order that the kernel has of them. Those that share one have
    /// the same place.
    pub(super) space: Option<u64>,
    /// `/proc/PID/maps`
    pub(super) maps: StoredText,
    /// Its page map.
    pub page_map: WordIndex,
    /// Its heap: the sizes of chunks, if they were asked for.
    pub(super) heap: WordIndex,
    /// The only ranges that were asked for, from and to; empty if all was.
    pub(super) parts: Vec<(u64, u64)>,
    /// Mapped pages whose entries were left out: the first of each run, and the one after the last.
    pub(super) left_out: Vec<(u64, u64)>,
    /// Pages that changed during the capture: the first of each run, and how many.
    pub(super) changed: Vec<(u64, u64)>,
    /// The categories that the scan of its kernel knows; 0 if there is none.
    pub(super) scannable: u64,
    /// Populated stretches, as a scan gave them: the start, the end and the categories of each.
    pub(super) populated: StoredText,
    /// Where a scan without conditions began, and what it found: regions that scans pass over.
    pub(super) looks: BTreeMap<u64, (usize, u64)>,
    /// Memory that the decoders needed: the vdso.
    pub(super) memory: BTreeMap<u64, StoredText>,
    /// The other answers.
    pub(super) answers: Answers,
}

/// Where the words of a file are.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WordIndex {
    /// Why there are none.
    pub(super) failure: Option<RecordedFailure>,
    /// The number of words that the file had.
    pub(super) end: u64,
    /// The first and the last word of each block.
    pub(super) blocks: Vec<(u64, u64, CompressedBlock)>,
    /// Of the flags of frames: for each block, the number of words that the blocks before it describe.
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
    /// Of a file of this length and fingerprint, of which nothing was read yet.
    pub(super) fn new(length: u64, fingerprint: [u64; 4]) -> Self {
        FileParts { length, fingerprint, parts: BTreeMap::new() }
    }
}

/// A run of backing content: where it begins and ends in the file, and what it is.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredRun(u64, u64, StoredContent);

/// What the object behind a mapping has for the pages of a run.
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

    /// Those of the pages of `range`, which lies in `region`.
    pub(super) fn within(runs: &[Self], region: &Region, range: AddressRange) -> Vec<BackingRun> {
        let run = |StoredRun(first, end, content): &StoredRun| {
            let start = region.range.start().checked_add(first.checked_sub(region.offset)?)?;
            let whole = AddressRange::of_length(start, end.checked_sub(*first)?)?;
            Some(BackingRun { range: whole.intersection(range)?, content: content.content() })
        };
        runs.iter().filter_map(run).collect()
    }
}

/// A process or thread of a listing.
#[derive(Serialize, Deserialize)]
pub(super) struct OneListed {
    pid: u32,
    stat: EncodedBytes,
    status: EncodedBytes,
    program: Option<EncodedBytes>,
}

/// A directory of the hierarchy of cgroups: its inode and path.
pub(super) type OneGroup = (u64, EncodedBytes);

/// What the capturing pmdb might read.
#[derive(Serialize, Deserialize)]
pub(super) struct CapturedRights {
    findings: Vec<(String, Option<bool>, String, Option<String>)>,
    user: u32,
    rights: Vec<String>,
    in_first_user_namespace: Option<bool>,
}

/// Why there was no answer.
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

/// Whether each of them has an end, and none begins before the end of the one before.
fn are_runs(mut runs: impl Iterator<Item = (u64, u64)>) -> bool {
    let mut before = 0;
    runs.all(|(start, end)| std::mem::replace(&mut before, end) <= start && start < end)
}

/// Names that older captures have for features.
const OLDER_NAMES: [(&str, Feature); 3] =
    [("scan", Feature::Scan), ("scan_write_tracked", Feature::ScanWriteTracked), ("maps_query", Feature::MapsQuery)];

/// The feature of this name.
fn feature(name: &str) -> Option<Feature> {
    let older = || OLDER_NAMES.iter().find(|(one, _)| *one == name).map(|(_, feature)| *feature);
    Feature::from_word(name).or_else(older)
}

/// The rights that are known by name.
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
    /// How it is written.
    pub(super) fn key(self) -> String {
        let mut key = "list ".to_owned();
        self.write(&mut key);
        key
    }

    /// What a file that lacks it lacks.
    pub(in crate::source) fn what(self) -> &'static str {
        match self {
            List::Held | List::All | List::One(_) => "the processes of the machine",
            List::Threads => "the threads of the process",
            List::Descriptors | List::DescriptorsOf(_) => "the links of /proc/PID/fd",
        }
    }
}

impl ProcessAnswers {
    /// Its name.
    pub(super) fn name(&self) -> Name {
        Name::new(self.name.0.clone())
    }

    /// Takes the only ranges whose entries it has; empty if it has all.
    pub(super) fn take_parts(&mut self) -> Vec<AddressRange> {
        let range = |(start, end)| AddressRange::new(VirtualAddress::new(start), VirtualAddress::new(end));
        std::mem::take(&mut self.parts).into_iter().filter_map(range).collect()
    }

    /// Whether the process could not answer a question, because it was gone.
    pub fn has_lost_answers(&self) -> bool {
        let is_loss = |(key, failure): (&String, &RecordedFailure)| {
            let is_of_all = ["text ", "list ", "backing ", MEMORY].iter().any(|begins| key.starts_with(begins));
            is_of_all && matches!(failure, RecordedFailure::Gone(_))
        };
        self.answers.failures.iter().any(is_loss)
    }

    /// The texts that it names beside those of its answers.
    fn stored_texts(&self) -> impl Iterator<Item = &StoredText> {
        self.memory.values().chain([&self.maps, &self.populated])
    }

    /// Whether all that is in it has the form that a capture has: what follows a number of it comes to an end.
    /// No text is longer than `longest`, but for memory, which is read in parts.
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
