//! The index: the answers that are short, and where the long ones are.

use super::archive::{CompressedBlock, StoredText};
use crate::access::{Error, Result, when_capturing};
use crate::kernel::text::one_line;
use crate::kernel::{AddressRange, Name, VirtualAddress};
use crate::source::{
    BackingContent, BackingRun, Cgroup, Credentials, Feature, Finding, List, Listed, MissingProcess, SourceAccess,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An answer, or why there was none. A failure is large, and rare: most of the many answers are a number.
pub(super) type RecordedResult<T> = std::result::Result<T, Box<RecordedFailure>>;

/// All of a capture but its long texts and its words.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CaptureIndex {
    /// When it was begun and ended, in seconds since 1970.
    pub times: [u64; 2],
    /// The processes: the first is the one that was captured.
    pub processes: Vec<ProcessAnswers>,
    /// How many of the first of them were captured as a family; 0 if one process was asked for.
    pub family: usize,
    /// Processes of the family that are not among them, or have ended before all was asked.
    pub missing: Vec<OneMissing>,
    /// Whether `counts` and `cgroups` have a word for each of `flags` and are indexed by these, not by frames.
    pub are_by_flags: bool,
    /// The flags of its frames.
    pub flags: WordIndex,
    /// How often each is mapped.
    pub counts: WordIndex,
    /// The cgroups that they are charged to.
    pub cgroups: WordIndex,
}

/// A process that is missing, or of which answers are.
#[derive(Serialize, Deserialize)]
pub struct OneMissing {
    pub(super) pid: u32,
    name: Vec<u8>,
    /// What it did, as a verb.
    pub(super) why: String,
    in_part: bool,
}

impl OneMissing {
    /// As it is kept.
    pub fn of(one: &MissingProcess) -> Self {
        let MissingProcess { pid, name, why, is_in_part } = one;
        OneMissing { pid: *pid, name: name.as_bytes().to_vec(), why: why.clone(), in_part: *is_in_part }
    }

    pub(super) fn process(&self) -> MissingProcess {
        let missing = MissingProcess::new(self.pid, Name::new(self.name.clone()), one_line(&self.why));
        MissingProcess { is_in_part: self.in_part, ..missing }
    }
}

/// What one process was asked.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessAnswers {
    pub(super) pid: u32,
    pub(super) start_time: u64,
    pub(super) name: Vec<u8>,
    /// Of a family: the place of its address space in the order that the kernel has of them. Those that share one have
    /// the same place.
    pub(super) space: Option<u64>,
    /// `/proc/PID/maps`
    pub(super) maps: StoredText,
    /// Its page map.
    pub page_map: WordIndex,
    /// The only ranges that were asked for, from and to; empty if all was.
    pub(super) parts: Vec<(u64, u64)>,
    /// Mapped pages whose entries were left out: the first of each run, and the one after the last.
    pub(super) left_out: Vec<(u64, u64)>,
    /// Pages that changed during the capture: the first of each run, and how many.
    pub(super) changed: Vec<(u64, u64)>,
    /// The categories that the scan of its kernel knows; 0 if there is none.
    pub(super) scannable: u64,
    /// Populated stretches, as a scan gave them: starts, ends and categories in words of the machine.
    pub(super) populated: StoredText,
    /// Where a scan without conditions began, and what it found: regions that scans pass over.
    pub(super) looks: BTreeMap<u64, (usize, u64)>,
    pub(super) texts: BTreeMap<String, RecordedResult<StoredText>>,
    pub(super) probes: BTreeMap<String, RecordedResult<Vec<u64>>>,
    pub(super) lists: BTreeMap<String, RecordedResult<Vec<OneListed>>>,
    pub(super) groups: BTreeMap<String, RecordedResult<Vec<OneGroup>>>,
    pub(super) files: BTreeMap<String, RecordedResult<Option<FileParts>>>,
    pub(super) backing: Vec<BackingRuns>,
    /// Memory that the decoders needed: the vdso.
    pub(super) memory: BTreeMap<u64, StoredText>,
    pub(super) memory_failure: Option<RecordedFailure>,
    pub(super) access: Option<CapturedRights>,
    /// Why parts of the kernel's own records could not be read, by the parts that were asked for.
    pub(super) records: BTreeMap<String, RecordedFailure>,
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

/// Runs of the backing content of a region.
#[derive(Serialize, Deserialize)]
pub(super) struct BackingRuns {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The ends of each run, and its content: past the end, a hole, not cached, cached.
    pub(super) runs: RecordedResult<Vec<(u64, u64, RecordedResult<u8>)>>,
}

/// A process or thread of a listing.
#[derive(Serialize, Deserialize)]
pub(super) struct OneListed {
    pid: u32,
    stat: Vec<u8>,
    status: Vec<u8>,
    program: Option<Vec<u8>>,
}

/// A directory of the hierarchy of cgroups: its inode and path.
pub(super) type OneGroup = (u64, Vec<u8>);

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

/// The answer as it is kept.
pub(super) fn record_answer<T, U>(answer: &Result<T>, keep: impl FnOnce(&T) -> U) -> RecordedResult<U> {
    answer.as_ref().map(keep).map_err(|error| Box::new(RecordedFailure::of(error)))
}

/// The answer as it was given.
pub(super) fn replay_answer<T, U>(kept: &RecordedResult<T>, give: impl FnOnce(&T) -> U) -> Result<U> {
    kept.as_ref().map(give).map_err(|failure| failure.error())
}

impl OneListed {
    pub(super) fn of(one: &Listed) -> Self {
        OneListed { pid: one.pid, stat: one.stat.clone(), status: one.status.clone(), program: one.program.clone() }
    }

    pub(super) fn listed(&self) -> Listed {
        Listed {
            pid: self.pid,
            stat: self.stat.clone(),
            status: self.status.clone(),
            program: self.program.clone(),
            ..Listed::default()
        }
    }
}

pub(super) fn group((inode, path): &OneGroup) -> Cgroup {
    Cgroup { inode: *inode, path: path.clone() }
}

const CONTENTS: [BackingContent; 4] = [
    BackingContent::PastEnd,
    BackingContent::Hole,
    BackingContent::Contents { cached: false },
    BackingContent::Contents { cached: true },
];

/// Whether each of them has an end, and none begins before the end of the one before.
fn are_runs(mut runs: impl Iterator<Item = (u64, u64)>) -> bool {
    let mut before = 0;
    runs.all(|(start, end)| std::mem::replace(&mut before, end) <= start && start < end)
}

impl BackingRuns {
    /// Whether its runs are whole pages of it, in order.
    fn is_sound(&self, page: u64) -> bool {
        let runs = || self.runs.iter().flatten().map(|(start, end, _)| (*start, *end));
        let is_within = |(start, end): (u64, u64)| {
            let are_pages = start.is_multiple_of(page) && end.is_multiple_of(page);
            are_pages && self.start <= start && end <= self.end
        };
        self.start <= self.end && are_runs(runs()) && runs().all(is_within)
    }

    pub(super) fn of(range: AddressRange, answer: &Result<Vec<BackingRun>>) -> Self {
        let code = |content: &BackingContent| CONTENTS.iter().position(|one| one == content).unwrap_or(0) as u8;
        let run = |run: &BackingRun| {
            let ends = (run.range.start().get(), run.range.end().get());
            (ends.0, ends.1, record_answer(&run.content, code))
        };
        let runs = record_answer(answer, |runs| runs.iter().map(run).collect());
        BackingRuns { start: range.start().get(), end: range.end().get(), runs }
    }

    /// The runs within `range`.
    pub(super) fn within(&self, range: AddressRange) -> Result<Vec<BackingRun>> {
        replay_answer(&self.runs, |runs| {
            let run = |(start, end, content): &(u64, u64, RecordedResult<u8>)| {
                let whole = AddressRange::new(VirtualAddress::new(*start), VirtualAddress::new(*end))?;
                let content = replay_answer(content, |code| CONTENTS.get(usize::from(*code)).copied());
                let content = match content {
                    Ok(content) => Ok(content?),
                    Err(error) => Err(error),
                };
                Some(BackingRun { range: whole.intersection(range)?, content })
            };
            runs.iter().filter_map(run).collect()
        })
    }
}

/// The features by the names that captures have for them.
const FEATURES: [(Feature, &str); 21] = [
    (Feature::PageMap, "page_map"),
    (Feature::OtherUsers, "other_users"),
    (Feature::FrameNumbers, "frame_numbers"),
    (Feature::FrameFlags, "kpageflags"),
    (Feature::MapCounts, "kpagecount"),
    (Feature::ExactMapCounts, "exact_map_counts"),
    (Feature::FrameCgroups, "kpagecgroup"),
    (Feature::CgroupPaths, "cgroup_paths"),
    (Feature::Iomem, "iomem"),
    (Feature::MapFiles, "map_files"),
    (Feature::Memory, "memory"),
    (Feature::Scan, "scan"),
    (Feature::ScanZero, "scan_zero"),
    (Feature::ScanHuge, "scan_huge"),
    (Feature::ScanWriteTracked, "scan_write_tracked"),
    (Feature::MapsQuery, "maps_query"),
    (Feature::SoftDirty, "soft_dirty"),
    (Feature::GuardBit, "guard_bit"),
    (Feature::IdleBitmap, "idle_bitmap"),
    (Feature::KsmFlag, "ksm_flag"),
    (Feature::SwapTypes, "swap_types"),
];

/// The rights that are known by name.
const RIGHTS: [&str; 4] = ["CAP_SYS_ADMIN", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH", "CAP_CHECKPOINT_RESTORE"];

impl CapturedRights {
    pub(super) fn of(access: &SourceAccess) -> Self {
        let named = |one: &Finding| {
            let (_, name) = FEATURES.iter().find(|(feature, _)| *feature == one.feature)?;
            Some(((*name).to_owned(), one.available, one.found.clone(), one.remedy.clone()))
        };
        let credentials = &access.credentials;
        CapturedRights {
            findings: access.findings.iter().filter_map(named).collect(),
            user: credentials.user,
            rights: credentials.rights.iter().map(|&right| right.to_owned()).collect(),
            in_first_user_namespace: credentials.in_first_user_namespace,
        }
    }

    pub(super) fn access(&self) -> SourceAccess {
        let finding = |(name, available, found, remedy): &(String, Option<bool>, String, Option<String>)| {
            let (feature, _) = FEATURES.iter().find(|(_, one)| one == name)?;
            Some(Finding {
                feature: *feature,
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

/// Whether a probe or list of this key is about the machine, and not about one process.
pub(super) fn is_about_machine(key: &str) -> bool {
    !["Follow(", "IsNamed ", "MappedFile ", "Threads", "Descriptor"]
        .iter()
        .any(|of_process| key.starts_with(of_process))
}

impl List {
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
        Name::new(self.name.clone())
    }

    /// Takes the only ranges whose entries it has; empty if it has all.
    pub(super) fn take_parts(&mut self) -> Vec<AddressRange> {
        let range = |(start, end)| AddressRange::new(VirtualAddress::new(start), VirtualAddress::new(end));
        std::mem::take(&mut self.parts).into_iter().filter_map(range).collect()
    }

    /// Whether the process could not answer a question, because it was gone.
    pub fn has_lost_answers(&self) -> bool {
        let is_loss = |failure: Option<&RecordedFailure>| matches!(failure, Some(RecordedFailure::Gone(_)));
        let texts = self.texts.values().map(|kept| kept.as_ref().err().map(|failure| &**failure));
        let lists = self.lists.values().map(|kept| kept.as_ref().err().map(|failure| &**failure));
        let runs = self.backing.iter().map(|one| one.runs.as_ref().err().map(|failure| &**failure));
        texts.chain(lists).chain(runs).chain([self.memory_failure.as_ref()]).any(is_loss)
    }

    /// Adds what the machine was asked through a process that is not in the capture.
    pub fn add_machine(&mut self, other: ProcessAnswers) {
        let own = format!("/proc/{}/", other.pid);
        let texts = other.texts.into_iter().filter(|(key, _)| !key.starts_with(&own));
        texts.for_each(|(key, text)| _ = self.texts.entry(key).or_insert(text));
        let probes = other.probes.into_iter().filter(|(key, _)| is_about_machine(key));
        probes.for_each(|(key, words)| _ = self.probes.entry(key).or_insert(words));
        let lists = other.lists.into_iter().filter(|(key, _)| is_about_machine(key));
        lists.for_each(|(key, list)| _ = self.lists.entry(key).or_insert(list));
        other.groups.into_iter().for_each(|(key, groups)| _ = self.groups.entry(key).or_insert(groups));
        other.files.into_iter().for_each(|(key, file)| _ = self.files.entry(key).or_insert(file));
        other.records.into_iter().for_each(|(key, failure)| _ = self.records.entry(key).or_insert(failure));
        self.access = self.access.take().or(other.access);
    }

    /// All texts that it names.
    fn stored_texts(&self) -> impl Iterator<Item = &StoredText> {
        let texts = self.texts.values().flatten().chain(self.memory.values()).chain([&self.maps, &self.populated]);
        texts.chain(self.files.values().flatten().flatten().flat_map(|file| file.parts.values()))
    }

    /// Whether all that is in it has the form that a capture has: what follows a number of it comes to an end.
    pub(super) fn is_sound(&self, page: u64) -> bool {
        let is_at_page = |address: &u64| address.is_multiple_of(page);
        self.page_map.is_in_order()
            && are_runs(self.left_out.iter().copied())
            && self.parts.iter().all(|(start, end)| start <= end)
            && self.changed.iter().all(|(first, count)| first.checked_add(*count).is_some())
            && self.looks.iter().all(|(start, (_, stopped))| start <= stopped && is_at_page(stopped))
            && self.backing.iter().all(|one| one.is_sound(page))
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
        let missing = OneMissing { pid: 1, name: Vec::new(), why: text(), in_part: false };
        assert!(!missing.process().why.contains('\n'));
        let feature = FEATURES.first().map(|(_, name)| (*name).to_owned()).expect("a feature");
        let findings = vec![(feature, None, text(), Some(text()))];
        let rights = CapturedRights { findings, user: 0, rights: Vec::new(), in_first_user_namespace: None };
        let said = rights.access().findings.into_iter().flat_map(|one| [Some(one.found), one.remedy]).flatten();
        assert_eq!(said.filter(|text| !text.contains('\n')).count(), 2);
    }
}
