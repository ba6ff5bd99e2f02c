//! The questions to a source whose answers are data: one closed table, with the arguments, the answer, the key and the
//! class of each.

use super::class::{Argument, Class, Kept, Named, Subject, machine, process};
use super::question::{Answer, BackingRun, Mapping, Probe, Query};
use super::{Cgroup, CgroupQuery, File, GroupFile, RecordsOf, SourceAccess};
use crate::access::{Error, Result};
use crate::kernel::core_notes::CoreNotes;
use crate::kernel::{AddressRange, Region};
use std::fmt::Write;
use std::sync::Arc;

/// The arguments of a question. They decide the type of the answer, so that no source can reply with another one.
pub trait Asked<'a>: Copy + Into<Question<'a>> {
    /// The type of the answer.
    type Answer;

    /// Makes the reply of a source that has this answer.
    ///
    /// # Errors
    /// Fails with the error of the answer.
    fn reply(self, answer: Result<Self::Answer>) -> Result<Reply>;

    /// Returns the answer in a reply; `None` if the reply is to another question.
    fn answer(reply: Reply) -> Option<Self::Answer>;
}

/// The reply to a question. [`Asked::reply`] makes it.
#[derive(Debug)]
pub struct Reply(Data);

macro_rules! questions {
    ($($(#[$doc:meta])* $name:ident($asked:ident: $arguments:ty) -> $answer:ty = $word:literal, $class:expr;)*) => {
        /// A question with its arguments.
        #[derive(Clone, Copy, Debug)]
        pub enum Question<'a> {
            $($(#[$doc])* $name($arguments),)*
        }

        #[derive(Debug)]
        enum Data {
            $($name($answer),)*
        }

        impl<'a> Question<'a> {
            /// Returns what the question is about, how a capture keeps its answer, and which parts of that are names.
            pub fn class(self) -> Class {
                match self {
                    $(#[allow(unused_variables, reason = "of some the class does not depend on the arguments")]
                    Question::$name($asked) => $class,)*
                }
            }

            /// Returns the written form of the question: words, hexadecimal numbers, and percent-encoded bytes.
            pub fn key(self) -> String {
                let mut key = String::new();
                match self {
                    $(Question::$name(asked) => {
                        key.push_str($word);
                        key.push(' ');
                        asked.write(&mut key);
                    })*
                }
                // A question without arguments leaves a space.
                key.truncate(key.trim_end().len());
                key
            }

            /// Returns the words of all questions, and their classes.
            #[cfg(feature = "cli")]
            pub(super) fn classes() -> Vec<(String, Class)> {
                let mut all = Vec::new();
                $({
                    #[allow(unused_variables, reason = "of some the class does not depend on the arguments")]
                    let $asked = super::class::AnyArgument::default();
                    let of_argument = <$arguments>::classes();
                    all.extend(of_argument.into_iter().map(|(words, class)| (format!("{} {words}", $word), class)));
                    all.push(($word.to_owned(), $class));
                })*
                all
            }

            /// Returns all questions about this subject whose answers a capture keeps.
            pub fn kept_of(subject: Subject<'a>) -> Vec<Self> {
                let mut all: Vec<Self> = Vec::new();
                $(all.extend(<$arguments>::of(subject).into_iter().map(Question::$name));)*
                all.retain(|question| question.class().kept == subject.kept());
                all
            }
        }

        $(
            impl<'a> From<$arguments> for Question<'a> {
                fn from(arguments: $arguments) -> Self {
                    Question::$name(arguments)
                }
            }

            impl<'a> Asked<'a> for $arguments {
                type Answer = $answer;

                fn reply(self, answer: Result<$answer>) -> Result<Reply> {
                    answer.map(|answer| Reply(Data::$name(answer)))
                }

                fn answer(reply: Reply) -> Option<$answer> {
                    match reply.0 {
                        Data::$name(answer) => Some(answer),
                        _ => None,
                    }
                }
            }
        )*
    };
}

questions! {
    /// The contents of a file, or the target of a link. Each part of a long file costs one step.
    Text(file: File) -> Vec<u8> = "text", file.class();
    /// A file of a memory cgroup.
    GroupText(asked: GroupText<'a>) -> Vec<u8> = "cgroup-file", asked.file.class();
    /// Directories of the hierarchy of memory cgroups. A directory that was removed or that this user may not read is
    /// left out.
    Groups(which: CgroupQuery<'a>) -> Vec<Cgroup> = "cgroups", which.class();
    /// One mapping, by PROCMAP_QUERY (Linux 6.11).
    Mapping(query: Query) -> Answer = "mapping", query.class();
    /// The mappings of files.
    FileMappings(asked: FileMappings) -> Option<Vec<Mapping>> = "file-mappings",
        process(Kept::Never("the text of maps has them"), Named::LeftOut);
    /// The backing content of the pages of a region.
    Backing(asked: Backing<'a>) -> Vec<BackingRun> = "backing", process(Kept::EachRegion, Named::Nothing);
    /// The result of a trial, in words.
    Probe(probe: Probe<'a>) -> Vec<u64> = "probe", probe.class();
    /// What the source may read, found by trials; `None` if rights do not matter.
    Rights(asked: Rights) -> Option<SourceAccess> = "rights", machine(Kept::Once, Named::Nothing);
    /// The process of a core file, by its notes and segments; `None` for any other source.
    Notes(asked: Notes) -> Option<Arc<CoreNotes>> = "notes",
        process(Kept::Never("only a core has them"), Named::LeftOut);
    /// Words about the heap, from an index on; `None` unless the source is a capture that was written with them.
    HeapWords(asked: HeapWords) -> Option<Vec<u64>> = "heap",
        process(Kept::Elsewhere("`heap` of each process"), Named::Nothing);
    /// Whether these records of the kernel can be read, and are proved to be right. Otherwise the answer is an error.
    Records(of: RecordsOf) -> () = "records", of.class();
}

/// A file of the memory cgroup with this path below the mount.
#[derive(Clone, Copy, Debug)]
pub struct GroupText<'a> {
    /// The path of the group below the mount.
    pub path: &'a [u8],
    /// The file of the group.
    pub file: GroupFile,
}

/// The mappings of files in address order, found without decoding the text of all regions; `None` if no such list is
/// available, or it has changed during the reading. Each costs one step.
#[derive(Clone, Copy, Debug)]
pub struct FileMappings;

/// The backing content of the pages of `range`, a part of `region`, as runs in address order, without gaps. The object
/// is not read, and nothing is brought into memory. The number of system calls grows with the runs, not with the pages.
#[derive(Clone, Copy, Debug)]
pub struct Backing<'a> {
    /// The region whose object is queried.
    pub region: &'a Region,
    /// The queried part of the region.
    pub range: AddressRange,
}

/// The notes of a core file.
#[derive(Clone, Copy, Debug)]
pub struct Notes;

/// What a source may read.
#[derive(Clone, Copy, Debug)]
pub struct Rights;

/// Words about the heap that a capture has without memory, from this number on. No kernel has them: they are written
/// after a walk over the heap has proved them.
#[derive(Clone, Copy, Debug)]
pub struct HeapWords(pub u64);

/// Returns the answers without keys in a capture: the words of their questions, and where else the answers are, or why
/// they are not kept.
#[cfg(feature = "cli")]
pub(crate) fn kept_under_no_key() -> Vec<(String, String)> {
    let reason = |(words, class): (String, Class)| match class.kept {
        Kept::Elsewhere(place) => Some((words, format!("elsewhere: {place}"))),
        Kept::Never(why) => Some((words, why.to_owned())),
        _ => None,
    };
    let mut all: Vec<(String, String)> = Question::classes().into_iter().filter_map(reason).collect();
    all.dedup();
    all
}

/// Written as the controller, the path, and the file.
impl<'a> Argument<'a> for GroupText<'a> {
    fn write(&self, key: &mut String) {
        (self.file.controller(), (self.path, self.file)).write(key);
    }

    fn of(_: Subject<'a>) -> Vec<Self> {
        Vec::new()
    }

    #[cfg(feature = "cli")]
    fn classes() -> Vec<(String, Class)> {
        GroupFile::classes()
    }
}

impl Argument<'_> for FileMappings {
    fn write(&self, _: &mut String) {}

    fn of(_: Subject<'_>) -> Vec<Self> {
        vec![FileMappings]
    }
}

impl Argument<'_> for Rights {
    fn write(&self, _: &mut String) {}

    fn of(_: Subject<'_>) -> Vec<Self> {
        vec![Rights]
    }
}

impl Argument<'_> for Notes {
    fn write(&self, _: &mut String) {}

    fn of(_: Subject<'_>) -> Vec<Self> {
        vec![Notes]
    }
}

impl Argument<'_> for HeapWords {
    fn write(&self, key: &mut String) {
        self.0.write(key);
    }

    fn of(_: Subject<'_>) -> Vec<Self> {
        Vec::new()
    }
}

/// Written as the mapped file, and the part of it.
impl<'a> Argument<'a> for Backing<'a> {
    fn write(&self, key: &mut String) {
        let first = self.region.offset_of(self.range.start());
        self.region.write(key);
        _ = write!(key, " {first:x}-{:x}", first.wrapping_add(self.range.len()));
    }

    fn of(subject: Subject<'a>) -> Vec<Self> {
        <&Region>::of(subject).into_iter().map(|region| Backing { region, range: region.range }).collect()
    }
}

impl Question<'_> {
    /// Returns the question whose answer contains that to this one: about a whole region instead of a part.
    #[must_use]
    pub fn whole(self) -> Self {
        match self {
            Question::Backing(asked) => Question::Backing(Backing { range: asked.region.range, ..asked }),
            Question::Text(_)
            | Question::GroupText(_)
            | Question::Groups(_)
            | Question::Mapping(_)
            | Question::FileMappings(_)
            | Question::Probe(_)
            | Question::Rights(_)
            | Question::Notes(_)
            | Question::HeapWords(_)
            | Question::Records(_) => self,
        }
    }

    /// Returns the reply of a source that does not have the answer.
    ///
    /// # Errors
    /// Fails with the name of what the source lacks, unless having nothing is an answer too.
    pub fn unanswered(self) -> Result<Reply> {
        let what = match self {
            Question::Mapping(query) => return query.reply(Ok(Answer::Unavailable)),
            Question::FileMappings(asked) => return asked.reply(Ok(None)),
            Question::Rights(asked) => return asked.reply(Ok(None)),
            Question::Notes(asked) => return asked.reply(Ok(None)),
            Question::HeapWords(asked) => return asked.reply(Ok(None)),
            Question::Text(file) => file.what().to_owned(),
            Question::GroupText(_) => "the files of cgroups".to_owned(),
            Question::Groups(_) => "the hierarchy of cgroups".to_owned(),
            Question::Backing(asked) => format!("the page cache of {}", asked.region.range),
            Question::Probe(_) => "this probe of the kernel".to_owned(),
            Question::Records(of) => of.what().to_owned(),
        };
        Err(Error::not_available(format!("this target does not hold {what}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Device, Name, Permissions, VirtualAddress};
    use crate::records::RecordParts;
    use crate::source::{ConfigPlace, KernelSetting, OnMount};
    use std::collections::BTreeSet;

    fn region() -> Region {
        Region {
            range: AddressRange::of_length(VirtualAddress::new(0x7000), 0x4000).expect("a range"),
            permissions: Permissions::default(),
            offset: 0x1000,
            device: Device { major: 8, minor: 1 },
            inode: 0x4d2,
            name: Name::from("/a b"),
            deleted: false,
        }
    }

    #[test]
    fn keys_are_words_numbers_and_encoded_bytes() {
        let region = region();
        let range = AddressRange::of_length(VirtualAddress::new(0x8000), 0x1000).expect("a range");
        let group = |path| GroupText { path, file: GroupFile::PoolMax(2 << 20) };
        let questions: [(Question<'_>, &str); 14] = [
            (File::Stat.into(), "text stat"),
            (File::ThreadSyscall(0x3627).into(), "text syscall 3627"),
            (File::Config(ConfigPlace::Boot).into(), "text config boot"),
            (
                File::Setting(KernelSetting::FreePoolPagesOf(1, 2 << 20)).into(),
                "text setting free-hugepages-of-node 1 200000",
            ),
            (group(b"/a b%").into(), "cgroup-file hugetlb /a%20b%25 hugetlb.max 200000"),
            (group(b"").into(), "cgroup-file hugetlb - hugetlb.max 200000"),
            (CgroupQuery::At(b"-").into(), "cgroups at %2D"),
            (Query::From(VirtualAddress::new(16)).into(), "mapping from 10"),
            (FileMappings.into(), "file-mappings"),
            (Backing { region: &region, range }.into(), "backing 08:01 4d2 2000-3000"),
            (Probe::Follow(range).into(), "probe follow 8000-9000"),
            (Probe::IsNamed(&region, b"/a\n").into(), "probe is-named 08:01 4d2 /a%0A"),
            (
                Probe::Descriptor(None, OnMount { number: 31, mount: Some(25), answers: true }).into(),
                "probe descriptor - 1f",
            ),
            (RecordsOf::Frames(RecordParts::OWNER).into(), "records frames 10"),
        ];
        for (question, key) in questions {
            assert_eq!(question.key(), key);
        }
        assert_eq!(Question::from(Backing { region: &region, range }).whole().key(), "backing 08:01 4d2 1000-5000");
    }

    #[test]
    fn no_two_questions_have_one_key() {
        let region = region();
        let subjects = [
            Subject::Machine,
            Subject::Process,
            Subject::Region(&region),
            Subject::Thread(7),
            Subject::Pool(2 << 20),
            Subject::Node(1, 2 << 20),
        ];
        let all: Vec<String> =
            subjects.into_iter().flat_map(Question::kept_of).map(|question| question.key()).collect();
        assert!(all.len() > 50, "{all:?}");
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{all:?}");
        for (subject, key) in subjects.into_iter().zip([
            "text zoneinfo",
            "text smaps",
            "probe mapped-file 08:01 4d2",
            "text syscall 7",
            "text setting resv-hugepages 200000",
            "text setting free-hugepages-of-node 1 200000",
        ]) {
            assert!(Question::kept_of(subject).iter().any(|question| question.key() == key), "{key}");
        }
    }
}
