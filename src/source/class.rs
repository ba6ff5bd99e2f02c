//! The properties of each question: its written key, what it is about, how a capture keeps its answer, and which parts
//! of that are names. `questions_of!` declares an enum of questions, so that none can lack a property.

use crate::kernel::mounts::Controller;
use crate::kernel::{AddressRange, Device, Region, VirtualAddress};
use crate::records::RecordParts;
use std::fmt::Write;

/// The object of a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum About {
    /// The machine: all its processes have the same answer.
    Machine,
    /// One process.
    Process,
}

/// How a capture keeps an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// Once for the machine.
    Once,
    /// For each process.
    EachProcess,
    /// For each region that maps a file.
    EachRegion,
    /// For each thread.
    EachThread,
    /// For each hugetlb pool whose pages a process may map.
    EachPool,
    /// For each node of each of these pools, if there are several nodes.
    EachNode,
    /// If it is requested while other answers are decoded: its arguments are in these.
    WhileDecoding,
    /// The same, in the capture of a cgroup only: it is about processes and files outside of other captures.
    OfCgroup,
    /// In another part of the file, which is named here.
    Elsewhere(&'static str),
    /// Never, for this reason. Nor is it answered during a capture.
    Never(&'static str),
}

/// The parts of an answer that are names, to be replaced in a capture without names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Named {
    /// No part.
    Nothing,
    /// The name of the process or thread in the text of `stat`.
    Stat,
    /// The name of the process or thread in the text of `status`.
    Status,
    /// The names of regions in the text of `maps` or `smaps`.
    Regions,
    /// The paths in the text of `cgroup`.
    Cgroups,
    /// The directories, sources and options in the text of `mountinfo`.
    Mounts,
    /// The whole answer, which is the target of a link.
    Link,
    /// The paths in the text of `/proc/swaps`.
    Swaps,
    /// Everything in the text of `numa_maps` but the addresses and policies.
    Policies,
    /// The whole answer, which is replaced by an empty one.
    Blanked,
    /// The whole answer, which is left out.
    LeftOut,
}

/// The properties of a question, apart from its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Class {
    /// The object of the question.
    pub about: About,
    /// How a capture keeps the answer.
    pub kept: Kept,
    /// The parts of the answer that are names.
    pub named: Named,
}

/// Returns the class of a question about the machine.
pub(super) const fn machine(kept: Kept, named: Named) -> Class {
    Class { about: About::Machine, kept, named }
}

/// Returns the class of a question about one process.
pub(super) const fn process(kept: Kept, named: Named) -> Class {
    Class { about: About::Process, kept, named }
}

/// A subject whose answers a capture keeps.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// The machine.
    Machine,
    /// A process.
    Process,
    /// A region of the process that maps a file.
    Region(&'a Region),
    /// A thread of the process.
    Thread(u32),
    /// The hugetlb pool with pages of this many bytes.
    Pool(u64),
    /// The part of a pool on a node: the node, and the page size in bytes.
    Node(u32, u64),
}

impl Subject<'_> {
    /// Returns how the answers about the subject are kept.
    pub(super) fn kept(self) -> Kept {
        match self {
            Subject::Machine => Kept::Once,
            Subject::Process => Kept::EachProcess,
            Subject::Region(_) => Kept::EachRegion,
            Subject::Thread(_) => Kept::EachThread,
            Subject::Pool(_) => Kept::EachPool,
            Subject::Node(..) => Kept::EachNode,
        }
    }
}

/// The argument of a question.
pub(super) trait Argument<'a>: Sized {
    /// Appends the argument to a key: words, hexadecimal numbers, and percent-encoded bytes.
    fn write(&self, key: &mut String);

    /// Returns all values of the argument in questions about `subject`; none if they depend on more.
    fn of(subject: Subject<'a>) -> Vec<Self>;

    /// Returns the words and classes of all values, if the argument is itself an enum of questions.
    #[cfg(feature = "cli")]
    fn classes() -> Vec<(String, Class)> {
        Vec::new()
    }
}

/// A placeholder for any argument, in classes that are those of an argument, which has its own rows.
#[cfg(feature = "cli")]
#[derive(Clone, Copy, Default)]
pub(super) struct AnyArgument {
    pub file: OfArgument,
}

#[cfg(feature = "cli")]
#[derive(Clone, Copy, Default)]
pub(super) struct OfArgument;

#[cfg(feature = "cli")]
impl AnyArgument {
    pub(super) fn class(self) -> Class {
        self.file.class()
    }
}

#[cfg(feature = "cli")]
impl OfArgument {
    pub(super) fn class(self) -> Class {
        machine(Kept::WhileDecoding, Named::Nothing)
    }
}

/// Appends bytes as text. `%`, and bytes that are not plain, are percent-encoded.
pub(super) fn percent_encode(bytes: &[u8], is_plain: impl Fn(u8) -> bool, into: &mut String) {
    for &byte in bytes {
        match byte {
            _ if byte != b'%' && is_plain(byte) => into.push(char::from(byte)),
            _ => _ = write!(into, "%{byte:02X}"),
        }
    }
}

/// Appends bytes. Graphic ASCII characters are plain, and `-` is an empty sequence.
fn write_bytes(bytes: &[u8], key: &mut String) {
    match bytes {
        b"" => key.push('-'),
        b"-" => key.push_str("%2D"),
        _ => percent_encode(bytes, |byte| byte.is_ascii_graphic(), key),
    }
}

/// Appends a number in hexadecimal.
fn write_number(number: u64, key: &mut String) {
    _ = write!(key, "{number:x}");
}

impl Argument<'_> for u32 {
    fn write(&self, key: &mut String) {
        write_number((*self).into(), key);
    }

    fn of(subject: Subject<'_>) -> Vec<Self> {
        match subject {
            Subject::Thread(number) | Subject::Node(number, _) => vec![number],
            Subject::Machine | Subject::Process | Subject::Region(_) | Subject::Pool(_) => Vec::new(),
        }
    }
}

impl Argument<'_> for u64 {
    fn write(&self, key: &mut String) {
        write_number(*self, key);
    }

    fn of(subject: Subject<'_>) -> Vec<Self> {
        match subject {
            Subject::Pool(bytes) | Subject::Node(_, bytes) => vec![bytes],
            Subject::Machine | Subject::Process | Subject::Region(_) | Subject::Thread(_) => Vec::new(),
        }
    }
}

/// Written as a number, or `-`.
impl Argument<'_> for Option<u32> {
    fn write(&self, key: &mut String) {
        match self {
            Some(number) => number.write(key),
            None => key.push('-'),
        }
    }

    fn of(_: Subject<'_>) -> Vec<Self> {
        Vec::new()
    }
}

impl Argument<'_> for VirtualAddress {
    fn write(&self, key: &mut String) {
        write_number(self.get(), key);
    }

    fn of(_: Subject<'_>) -> Vec<Self> {
        Vec::new()
    }
}

impl Argument<'_> for Device {
    fn write(&self, key: &mut String) {
        _ = write!(key, "{self}");
    }

    fn of(_: Subject<'_>) -> Vec<Self> {
        Vec::new()
    }
}

/// Written as both ends.
impl Argument<'_> for AddressRange {
    fn write(&self, key: &mut String) {
        _ = write!(key, "{:x}-{:x}", self.start().get(), self.end().get());
    }

    fn of(subject: Subject<'_>) -> Vec<Self> {
        <&Region>::of(subject).into_iter().map(|region| region.range).collect()
    }
}

/// Written as the mapped file: its device and inode.
impl<'a> Argument<'a> for &'a Region {
    fn write(&self, key: &mut String) {
        _ = write!(key, "{} {:x}", self.device, self.inode);
    }

    fn of(subject: Subject<'a>) -> Vec<Self> {
        match subject {
            Subject::Region(region) => vec![region],
            Subject::Machine | Subject::Process | Subject::Thread(_) | Subject::Pool(_) | Subject::Node(..) => {
                Vec::new()
            }
        }
    }
}

impl<'a> Argument<'a> for &'a [u8] {
    fn write(&self, key: &mut String) {
        write_bytes(self, key);
    }

    fn of(_: Subject<'a>) -> Vec<Self> {
        Vec::new()
    }
}

/// Written as bits, one for each part.
impl Argument<'_> for RecordParts {
    fn write(&self, key: &mut String) {
        write_number(self.bits().into(), key);
    }

    /// No parts: the question is whether any can be read.
    fn of(_: Subject<'_>) -> Vec<Self> {
        vec![RecordParts::empty()]
    }
}

impl Argument<'_> for Controller {
    fn write(&self, key: &mut String) {
        key.push_str(self.name());
    }

    fn of(_: Subject<'_>) -> Vec<Self> {
        vec![Controller::Memory, Controller::Pool]
    }
}

impl<'a, A: Argument<'a>> Argument<'a> for (A,) {
    fn write(&self, key: &mut String) {
        self.0.write(key);
    }

    fn of(subject: Subject<'a>) -> Vec<Self> {
        A::of(subject).into_iter().map(|one| (one,)).collect()
    }
}

impl<'a, A: Argument<'a> + Copy, B: Argument<'a>> Argument<'a> for (A, B) {
    fn write(&self, key: &mut String) {
        self.0.write(key);
        key.push(' ');
        self.1.write(key);
    }

    fn of(subject: Subject<'a>) -> Vec<Self> {
        let with_second = |one: A| B::of(subject).into_iter().map(move |second| (one, second));
        A::of(subject).into_iter().flat_map(with_second).collect()
    }
}

/// Declares an enum of questions, with the arguments, the written word and the class of each.
macro_rules! questions_of {
    ($(#[$meta:meta])* pub enum $name:ident<'a> { $($rows:tt)* }) => {
        questions_of! { @enum [$(#[$meta])*] $name [$name<'a>] [$name<'_>] { $($rows)* } }
    };
    ($(#[$meta:meta])* pub enum $name:ident { $($rows:tt)* }) => {
        questions_of! { @enum [$(#[$meta])*] $name [$name] [$name] { $($rows)* } }
    };
    (
        @enum [$($meta:tt)*] $name:ident [$($full:tt)*] [$($short:tt)*] {
            $($(#[$doc:meta])* $variant:ident $(($($argument:ident: $type:ty),+))? = $word:literal => $class:expr,)*
        }
    ) => {
        $($meta)*
        pub enum $($full)* {
            $($(#[$doc])* $variant $(($($type),+))?,)*
        }

        impl $($short)* {
            /// Returns the class of the question.
            #[allow(unused_imports, unused_variables, reason = "few classes depend on an argument")]
            #[cfg_attr(not(feature = "cli"), allow(dead_code, reason = "of a list only captures need it"))]
            pub(crate) fn class(self) -> $crate::source::Class {
                use $crate::source::class::Kept::*;
                use $crate::source::class::{Named::*, machine, process};
                match self {
                    $($name::$variant $(($($argument),+))? => $class,)*
                }
            }
        }

        impl<'a> $crate::source::class::Argument<'a> for $($full)* {
            fn write(&self, key: &mut String) {
                match *self {
                    $($name::$variant $(($($argument),+))? => {
                        key.push_str($word);
                        $(
                            key.push(' ');
                            $crate::source::class::Argument::write(&($($argument,)+), key);
                        )?
                    })*
                }
            }

            fn of(subject: $crate::source::class::Subject<'a>) -> Vec<Self> {
                let mut all = Vec::new();
                $(questions_of! { @each all subject $name $variant $(($($argument: $type),+))? })*
                all
            }

            #[cfg(feature = "cli")]
            fn classes() -> Vec<(String, $crate::source::Class)> {
                #[allow(unused_imports, reason = "not each enum has all of them")]
                use $crate::source::class::{Kept::*, Named::*, machine, process};
                let mut all = Vec::new();
                $({
                    $($(
                        #[allow(unused_variables, reason = "few classes depend on an argument")]
                        let $argument = $crate::source::class::AnyArgument::default();
                        let of_argument = <$type as $crate::source::class::Argument>::classes();
                        all.extend(of_argument.into_iter().map(|(words, class)| (format!("{} {words}", $word), class)));
                    )+)?
                    all.push(($word.to_owned(), $class));
                })*
                all
            }
        }
    };
    (@each $all:ident $subject:ident $name:ident $variant:ident) => {
        $all.extend([$name::$variant]);
    };
    (@each $all:ident $subject:ident $name:ident $variant:ident ($($argument:ident: $type:ty),+)) => {
        let arguments = <($($type,)+) as $crate::source::class::Argument>::of($subject);
        $all.extend(arguments.into_iter().map(|($($argument,)+)| $name::$variant($($argument),+)));
    };
}
pub(super) use questions_of;
