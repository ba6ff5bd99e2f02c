//! The questions whose answers are data: one closed table, with the arguments and the answer of each.

use super::question::{Answer, BackingRun, File, Mapping, Probe, Query};
use super::{RecordsOf, SourceAccess};
use crate::access::{Error, Result};
use crate::kernel::group_file::GroupFile;
use crate::kernel::{AddressRange, Region};

/// The arguments of a question, which decide what type its answer has: no source can reply with another one.
pub trait Asked<'a>: Copy + Into<Question<'a>> {
    /// The answer.
    type Answer;

    /// The reply of a source that has this answer.
    ///
    /// # Errors
    /// Those of the answer.
    fn reply(self, answer: Result<Self::Answer>) -> Result<Reply>;

    /// The answer in a reply; `None` if it is that to another question.
    fn answer(reply: Reply) -> Option<Self::Answer>;
}

/// The reply to a question. [`Asked::reply`] makes it.
#[derive(Debug)]
pub struct Reply(Data);

macro_rules! questions {
    ($($(#[$doc:meta])* $name:ident($arguments:ty) -> $answer:ty;)*) => {
        /// A question with its arguments.
        #[derive(Clone, Copy, Debug)]
        pub enum Question<'a> {
            $($(#[$doc])* $name($arguments),)*
        }

        #[derive(Debug)]
        enum Data {
            $($name($answer),)*
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
    /// The contents of a file, or where a link leads. Each part of a long file is a step.
    Text(File) -> Vec<u8>;
    /// A file of a memory cgroup.
    GroupText(GroupText<'a>) -> Vec<u8>;
    /// Directories of the hierarchy of memory cgroups. One that is gone or closed to this user is left out.
    Groups(CgroupQuery<'a>) -> Vec<Cgroup>;
    /// One mapping, by PROCMAP_QUERY (Linux 6.11).
    Mapping(Query) -> Answer;
    /// The mappings of files.
    FileMappings(FileMappings) -> Option<Vec<Mapping>>;
    /// What the object behind a region has for pages.
    Backing(Backing<'a>) -> Vec<BackingRun>;
    /// Tries something, and gives the resulting words.
    Probe(Probe<'a>) -> Vec<u64>;
    /// What the source may read, found out by trying; `None` where rights do not matter.
    Rights(Rights) -> Option<SourceAccess>;
    /// Whether these records of the kernel can be read, and are proved to be right. If not, that is an error.
    Records(RecordsOf) -> ();
}

/// Which directories of the hierarchy of memory cgroups are listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CgroupQuery<'a> {
    /// All of them.
    All,
    /// The one with this path below the mount.
    At(&'a [u8]),
}

/// A memory cgroup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cgroup {
    /// The inode of its directory.
    pub inode: u64,
    /// Its path below the mount of the hierarchy.
    pub path: Vec<u8>,
}

/// A file of the memory cgroup with this path below the mount.
#[derive(Clone, Copy, Debug)]
pub struct GroupText<'a> {
    /// The path.
    pub path: &'a [u8],
    /// The file.
    pub file: GroupFile,
}

/// The mappings of files in address order, without a walk over the text of all; `None` if that list cannot be had, or
/// has changed meanwhile. Each is a step.
#[derive(Clone, Copy, Debug)]
pub struct FileMappings;

/// The backing content of the pages of `range`, which lies in `region`: runs in address order, without gaps. The object
/// is not read, and nothing is brought into memory. The number of system calls follows the number of runs, not of
/// pages.
#[derive(Clone, Copy, Debug)]
pub struct Backing<'a> {
    /// The region.
    pub region: &'a Region,
    /// A part of it.
    pub range: AddressRange,
}

/// What a source may read.
#[derive(Clone, Copy, Debug)]
pub struct Rights;

impl Question<'_> {
    /// The reply of a source that does not know the answer.
    ///
    /// # Errors
    /// What the source lacks, if that is no answer by itself.
    pub fn unanswered(self) -> Result<Reply> {
        let what = match self {
            Question::Mapping(query) => return query.reply(Ok(Answer::Unavailable)),
            Question::FileMappings(asked) => return asked.reply(Ok(None)),
            Question::Rights(asked) => return asked.reply(Ok(None)),
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
