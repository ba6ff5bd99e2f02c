//! The fields of filters: those of pages, which `kernel::page_fact` declares, and those of regions. Parser, evaluator
//! and completion use them. Each state, kind and flag is a field under its own name.

use crate::kernel::page_fact::FLAG_WORDS;
pub use crate::kernel::page_fact::{PageFact, PageField, ValueType};
use crate::kernel::{Kind, State};
use std::fmt::Debug;

/// A set of fields that filters can be made of: [`PageField`] or [`RegionField`].
pub trait FilterField: Copy + Debug + PartialEq + Eq + 'static {
    /// What has these fields.
    const SUBJECT: FilterSubject;
    /// Every field.
    fn all() -> impl Iterator<Item = Self>;
    /// As it is written.
    fn name(self) -> &'static str;
    /// What it holds.
    fn value_type(self) -> ValueType;
    /// Whether this field can be compared with the boolean field `word`: `state == swapped`.
    fn takes(self, word: Self) -> bool;
    /// Names that are accepted in place of its own.
    fn other_names(self) -> &'static [&'static str] {
        &[]
    }
    /// All its names, its own first.
    fn names(self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name()).chain(self.other_names().iter().copied())
    }
    /// The field with that name. A boolean field and a number may share one.
    fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|field| field.names().any(|one| one == name))
    }
    /// The number of that name, or the field that is none: `shared > 1M` beside `shared`.
    fn with_name(name: &str, is_number: bool) -> Option<Self> {
        Self::all().find(|field| field.is_integer() == is_number && field.names().any(|one| one == name))
    }
    /// Whether it is a number.
    fn is_integer(self) -> bool {
        self.value_type() == ValueType::Integer
    }
}

/// What a filter is applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterSubject {
    /// A page, or a page frame.
    Page,
    /// A region.
    Region,
}

impl FilterSubject {
    /// Whether a field of this name is a condition by itself.
    pub fn has_condition(self, name: &str) -> bool {
        self.fields().contains(&(name, ValueType::Boolean))
    }

    /// The names of its fields, with what each holds. A condition and a number may share one.
    pub(super) fn fields(self) -> Vec<(&'static str, ValueType)> {
        fn of<F: FilterField>() -> Vec<(&'static str, ValueType)> {
            F::all().flat_map(|field| field.names().map(move |name| (name, field.value_type()))).collect()
        }
        match self {
            FilterSubject::Page => of::<PageField>(),
            FilterSubject::Region => of::<RegionField>(),
        }
    }

    /// The conditions that a field can be compared with: those of `state == swapped`.
    pub(super) fn words(self, name: &str) -> Vec<&'static str> {
        let compared = PageField::from_name(name).filter(|_| self == FilterSubject::Page);
        let is_taken = |word: &PageField| compared.is_some_and(|field| field.takes(*word));
        PageField::all().filter(is_taken).map(PageField::name).collect()
    }
}

impl FilterField for PageField {
    const SUBJECT: FilterSubject = FilterSubject::Page;

    fn all() -> impl Iterator<Item = Self> {
        let facts = PageFact::ALL.iter().map(|&fact| PageField::Fact(fact));
        let states = State::ALL.iter().map(|&state| PageField::State(state));
        let kinds = Kind::ALL.iter().map(|&kind| PageField::Kind(kind));
        let flags = FLAG_WORDS.iter().map(|&flag| PageField::Flag(flag));
        facts.filter(|fact| fact.stands_alone()).chain(states).chain(kinds).chain(flags)
    }

    fn name(self) -> &'static str {
        self.word()
    }

    fn other_names(self) -> &'static [&'static str] {
        match self {
            PageField::Fact(fact) => fact.row().accepted,
            _ => &[],
        }
    }

    fn value_type(self) -> ValueType {
        PageField::value_type(self)
    }

    fn takes(self, word: Self) -> bool {
        let is_word = matches!(word, PageField::State(_) | PageField::Kind(_));
        is_word && self == PageField::Fact(word.fact())
    }
}

/// The word for what a column of a table of pages shows.
pub fn word_of_title(title: &str) -> Option<&'static str> {
    let fact = PageFact::ALL.iter().find(|fact| fact.row().titles.contains(&title))?;
    Some(fact.row().word)
}

macro_rules! region_fields {
    (
        $(#[$about:meta])*
        $set:ident {
            $($(#[doc = $doc:literal])* $variant:ident $name:literal $kind:ident $(accepts $other:literal)?;)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $set {
            $($(#[doc = $doc])* $variant,)*
        }

        impl $set {
            /// Its meaning, for the help.
            pub fn doc(self) -> &'static str {
                match self {
                    $($set::$variant => concat!($($doc),*).trim_ascii_start(),)*
                }
            }
        }

        impl FilterField for $set {
            const SUBJECT: FilterSubject = FilterSubject::Region;

            fn all() -> impl Iterator<Item = Self> {
                [$($set::$variant),*].into_iter()
            }

            fn name(self) -> &'static str {
                match self {
                    $($set::$variant => $name,)*
                }
            }

            fn value_type(self) -> ValueType {
                match self {
                    $($set::$variant => ValueType::$kind,)*
                }
            }

            fn other_names(self) -> &'static [&'static str] {
                match self {
                    $($set::$variant => &[$($other)?],)*
                }
            }

            fn takes(self, _: Self) -> bool {
                false
            }
        }
    };
}

region_fields! {
    /// What a filter can ask of a region.
    RegionField {
        /// Length in bytes.
        Size "size" Integer;
        /// Resident bytes, without pages of zeros and the hugetlb pool.
        Rss "rss" Integer;
        /// Resident bytes.
        Present "present" Integer;
        /// Proportional share of `rss` in bytes: each page divided by the number of its mappings.
        Pss "pss" Integer;
        /// Bytes in swap.
        Swapped "swapped" Integer;
        /// Resident bytes that are also mapped elsewhere: shared > 1M.
        SharedBytes "shared" Integer;
        /// Bytes of exclusive pages, which are mapped only here: exclusive > 1M.
        ExclusiveBytes "exclusive" Integer accepts "private";
        /// Bytes mapped as huge pages.
        Huge "huge" Integer;
        /// First address.
        Start "start" Integer;
        /// Address after the last one.
        End "end" Integer;
        /// Offset in its file.
        Offset "offset" Integer;
        /// Inode of its file, 0 if there is none.
        Inode "inode" Integer;
        /// Name as in maps; the part after the last / is enough.
        Name "name" Text;
        /// Permissions as in maps: rw-p.
        Perms "perms" Text;
        /// Mapped readable.
        Readable "readable" Boolean;
        /// Mapped writable.
        Writable "writable" Boolean;
        /// Mapped executable.
        Executable "executable" Boolean;
        /// Mapped private (copy-on-write).
        Private "private" Boolean;
        /// Mapped shared.
        Shared "shared" Boolean;
        /// Not backed by a file.
        Anonymous "anonymous" Boolean;
        /// Backed by a file.
        File "file" Boolean;
        /// Backed by a file that was deleted.
        Deleted "deleted" Boolean;
    }
}
