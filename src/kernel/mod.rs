//! Bytes into types: the kernel's page interfaces, decoded. Pure; no I/O.

pub mod address;

pub use address::{
    AddressRange, FrameNumber, FrameRange, PageSize, PhysicalAddress, VirtualAddress,
};
