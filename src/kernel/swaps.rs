//! Swap areas (`/proc/swaps`) and the kernel's pseudo swap types.

use super::Name;

/// The rows of `/proc/swaps`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SwapAreas(pub Vec<SwapArea>);

/// One swap area.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SwapArea {
    /// Device or file.
    pub name: Name,
    /// `partition` or `file`.
    pub kind: String,
    /// Bytes.
    pub size: u64,
}

/// How a kernel lays out the swap types above the real areas (include/linux/swap.h); depends on its configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SwapLayout {
    /// CONFIG_MEMORY_FAILURE, CONFIG_MIGRATION, CONFIG_DEVICE_PRIVATE; `None` when the configuration cannot be read.
    pub options: Option<SwapOptions>,
    /// Whether the top type is the PTE marker (Linux 5.19).
    pub has_markers: bool,
}

/// The configuration options that decide the layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwapOptions {
    /// CONFIG_MEMORY_FAILURE
    pub memory_failure: bool,
    /// CONFIG_MIGRATION
    pub migration: bool,
    /// CONFIG_DEVICE_PRIVATE
    pub device_private: bool,
}

/// What a non-present entry really is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwapMeaning {
    /// A slot of the area with that number.
    Area,
    /// Failed memory; the offset is a frame number.
    Hwpoison,
    /// In migration; the offset is a frame number.
    Migration,
    /// Device-private or device-exclusive memory.
    Device,
    /// A PTE marker; the offset is a set of bits: 1 uffd-wp, 2 poisoned, 4 guard.
    Marker,
    /// One of hwpoison, migration, device: which, cannot be told without the kernel's configuration.
    Special,
}
