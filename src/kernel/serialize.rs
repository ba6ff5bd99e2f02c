//! The serialized forms: addresses as hexadecimal strings, because JSON numbers lose bits past 2^53; other types as
//! they are printed.

use super::{Device, FrameNumber, Name, PageFlags, Permissions, PhysicalAddress, VirtualAddress};
use serde::{Serialize, Serializer};

macro_rules! as_printed {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}

as_printed!(VirtualAddress, PhysicalAddress, Name, Device);

impl Serialize for FrameNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.get())
    }
}

impl Serialize for Permissions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.letters())
    }
}

/// A list of the names.
impl Serialize for PageFlags {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.names())
    }
}
