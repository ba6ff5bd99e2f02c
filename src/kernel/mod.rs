//! Decodes the kernel's interfaces for pages and processes: bytes to types, without I/O.

pub mod address;
#[doc(hidden)]
pub mod btf;
#[doc(hidden)]
pub mod core_file;
#[doc(hidden)]
pub mod core_machine;
#[doc(hidden)]
pub mod core_notes;
pub mod descriptors;
#[doc(hidden)]
pub mod elf;
pub mod huge;
pub mod mapped_file;
pub mod maps;
pub mod mounts;
pub mod numa;
pub mod page;
#[doc(hidden)]
pub mod page_fact;
pub mod page_flags;
#[doc(hidden)]
pub mod page_table;
pub mod physical;
pub mod segments;
#[cfg(feature = "serde")]
mod serialize;
pub mod smaps;
pub mod status;
pub mod swaps;
pub mod text;
mod word_file;
#[doc(hidden)]
pub mod words;

pub(crate) use address::joined;
pub use address::{AddressRange, FrameNumber, FrameRange, PageSize, PhysicalAddress, VirtualAddress};
pub use maps::{Device, Permissions, Region};
pub use page::{Kind, PageMapEntry, State, SwapEntry};
#[doc(hidden)]
pub use page_fact::{Key, PageFact, PageField, ValueType};
pub use page_flags::PageFlags;
pub use page_table::{TableBits, TableEntry};
pub use status::Registers;
pub use text::Name;
pub use word_file::WordFile;

#[cfg(test)]
mod tests;
