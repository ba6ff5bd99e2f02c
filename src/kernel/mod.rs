//! Bytes into types: the kernel's page interfaces, decoded. Pure; no I/O.

pub mod address;
pub mod auxiliary;
pub mod config;
pub mod explain;
pub mod iomem;
pub mod locks;
pub mod maps;
pub mod mounts;
pub mod name;
pub mod page;
pub mod page_flags;
mod page_letters;
pub mod page_map;
pub mod region;
pub mod registers;
#[cfg(feature = "serde")]
mod serialize;
pub mod smaps;
pub mod status;
pub mod swaps;
pub mod text;
pub mod words;
pub mod zones;

pub use address::{AddressRange, FrameNumber, FrameRange, PageSize, PhysicalAddress, VirtualAddress};
pub use name::Name;
pub use page::{Kind, State};
pub use page_flags::PageFlags;
pub use page_map::{PageMapEntry, SwapEntry};
pub use region::{Device, Permissions, Region};
pub use registers::Registers;

#[cfg(test)]
mod tests;
