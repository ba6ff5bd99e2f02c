//! The fields of filters: those of pages, which `kernel::page_fact` declares, and those of regions. Parser, evaluator
//! and completion use them. Each state, kind and flag is also a field. And the keys of `by`, as they are written, and
//! the keys that a command accepts.

use super::error::Spanned;
use crate::kernel::page_fact::FLAG_WORDS;
pub use crate::kernel::page_fact::{PageFact, PageField, ValueType};
use crate::kernel::{Key, Kind, State};
use std::fmt::{self, Display, Formatter};

/// A set of fields for filters: [`PageField`] or [`RegionField`].
pub trait FilterField: Copy + fmt::Debug + PartialEq + Eq + 'static {
    /// The subject with these fields.
    const SUBJECT: FilterSubject;
    /// Returns all fields.
    fn all() -> impl Iterator<Item = Self>;
    /// Returns the name of the field.
    fn name(self) -> &'static str;
    /// Returns the type of the field's value.
    fn value_type(self) -> ValueType;
    /// Returns whether this field can be compared with the boolean field `word`: `state == swapped`.
    fn takes(self, word: Self) -> bool;
    /// Returns other names that are accepted for the field.
    fn other_names(self) -> &'static [&'static str] {
        &[]
    }
    /// Returns all names of the field, the main one first.
    fn names(self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name()).chain(self.other_names().iter().copied())
    }
    /// Returns the field with this name. A boolean field and a number may share one.
    fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|field| field.names().any(|one| one == name))
    }
    /// Returns the number with this name, or the field that is not one: `shared > 1M` and `shared`.
    fn with_name(name: &str, is_number: bool) -> Option<Self> {
        Self::all().find(|field| field.is_integer() == is_number && field.names().any(|one| one == name))
    }
    /// Returns whether the field is a number.
    fn is_integer(self) -> bool {
        self.value_type() == ValueType::Integer
    }
}

/// The subject of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterSubject {
    /// A page, or a page frame.
    Page,
    /// A region.
    Region,
}

impl FilterSubject {
    /// Returns whether a field with this name is a condition by itself.
    pub fn has_condition(self, name: &str) -> bool {
        self.fields().contains(&(name, ValueType::Boolean))
    }

    /// Returns the names of its fields, with the type of each. A condition and a number may share a name.
    pub(super) fn fields(self) -> Vec<(&'static str, ValueType)> {
        fn of<F: FilterField>() -> Vec<(&'static str, ValueType)> {
            F::all().flat_map(|field| field.names().map(move |name| (name, field.value_type()))).collect()
        }
        match self {
            FilterSubject::Page => of::<PageField>(),
            FilterSubject::Region => of::<RegionField>(),
        }
    }

    /// Returns the conditions with which a field can be compared: those of `state == swapped`.
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
            /// Returns the meaning of the field, for the help.
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
        /// Resident bytes, without zero pages and the hugetlb pool.
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

/// A key as it is written. Whether a flag has the name is checked when the line runs.
#[derive(Clone, Debug, PartialEq)]
pub enum WrittenKey {
    /// A word.
    Key(Key),
    /// `flags(NAME)`
    Flag(Spanned<String>),
}

impl Display for WrittenKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            WrittenKey::Key(key) => key.fmt(f),
            WrittenKey::Flag(name) => write!(f, "flags({})", name.node),
        }
    }
}

/// The facts about pages that a command accepts as keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyFacts {
    /// No facts.
    None,
    /// The facts of frames.
    OfFrames,
    /// The facts of changes. All others that can be grouped by are parsed too, and the command's error names the right
    /// one.
    OfChanges,
    /// All facts that can be grouped by, and each state, kind and flag.
    All,
}

/// The keys that a command accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TakenKeys {
    /// The facts about a page.
    pub facts: KeyFacts,
    /// Keys that are not facts about a page, and single facts in addition.
    pub others: &'static [Key],
}

impl TakenKeys {
    /// Makes a set of keys that are not facts about a page.
    pub const fn only(others: &'static [Key]) -> Self {
        TakenKeys { facts: KeyFacts::None, others }
    }

    /// Returns whether `key` is in the set.
    pub fn takes(self, key: Key) -> bool {
        let is_taken_fact = |field: PageField| {
            let row = field.fact().row();
            row.is_key
                && match self.facts {
                    KeyFacts::None => false,
                    KeyFacts::OfFrames => row.is_of_frames,
                    KeyFacts::OfChanges => row.is_of_changes,
                    KeyFacts::All => true,
                }
        };
        matches!(key, Key::Page(field) if is_taken_fact(field)) || self.others.contains(&key)
    }

    /// Returns the keys that are words, in the order of the help.
    pub fn all(self) -> impl Iterator<Item = Key> {
        Key::all().filter(move |&key| self.takes(key))
    }

    /// Returns all words for the keys, including other accepted ones.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        self.all().flat_map(words_of)
    }

    /// Returns the key of a word, also of one that only the command itself refuses.
    pub fn from_word(self, word: &str) -> Option<Key> {
        let facts = if self.facts == KeyFacts::OfChanges { KeyFacts::All } else { self.facts };
        TakenKeys { facts, ..self }.all().find(|&key| words_of(key).any(|one| one == word))
    }
}

fn words_of(key: Key) -> impl Iterator<Item = &'static str> {
    let others: &[&str] = match key {
        Key::Page(field) => PageField::other_names(field),
        _ => &[],
    };
    std::iter::once(key.word()).chain(others.iter().copied())
}
