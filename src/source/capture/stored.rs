//! The places of texts: blocks of the file, or the index itself for short ones.

use super::encoded::EncodedBytes;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Formatter};

/// The size of a block before compression, in bytes.
pub(super) const BLOCK: usize = 64 << 10;

/// A compressed block in the file, written as offset, compressed length, and length.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(from = "(u64, u32, u32)", into = "(u64, u32, u32)")]
pub(super) struct CompressedBlock {
    pub(super) offset: u64,
    pub(super) packed: u32,
    pub(super) length: u32,
}

impl From<(u64, u32, u32)> for CompressedBlock {
    fn from((offset, packed, length): (u64, u32, u32)) -> Self {
        CompressedBlock { offset, packed, length }
    }
}

impl From<CompressedBlock> for (u64, u32, u32) {
    fn from(block: CompressedBlock) -> Self {
        (block.offset, block.packed, block.length)
    }
}

/// A text in the file or in the index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum StoredText {
    /// A short text, in the index.
    Short(EncodedBytes),
    /// The blocks of a text in a tar member.
    Blocks(Vec<CompressedBlock>),
}

impl Default for StoredText {
    fn default() -> Self {
        StoredText::Blocks(Vec::new())
    }
}

impl StoredText {
    /// Returns the blocks of a text in a tar member.
    pub(super) fn blocks(&self) -> &[CompressedBlock] {
        match self {
            StoredText::Short(_) => &[],
            StoredText::Blocks(blocks) => blocks,
        }
    }

    /// Returns the length of a text in a tar member, in bytes.
    pub(super) fn length(&self) -> u64 {
        self.blocks().iter().map(|block| u64::from(block.length)).sum()
    }

    /// Returns whether the blocks are regular: full ones, and a last one, each after the block before it. Otherwise one
    /// block in the list many times would be expanded many times.
    pub(super) fn is_regular(&self) -> bool {
        let follows = |pair: &[CompressedBlock]| match pair {
            [one, next] => one.offset.checked_add(one.packed.into()) == Some(next.offset),
            _ => true,
        };
        if !self.blocks().windows(2).all(follows) {
            return false;
        }
        let mut lengths = self.blocks().iter().map(|block| block.length as usize).rev();
        lengths.next().is_none_or(|last| last <= BLOCK) && lengths.all(|length| length == BLOCK)
    }
}

/// Written as a string for a short text, otherwise as a list of blocks.
impl Serialize for StoredText {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            StoredText::Short(text) => text.serialize(to),
            StoredText::Blocks(blocks) => blocks.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for StoredText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct TextOrBlocks;
        impl<'de> Visitor<'de> for TextOrBlocks {
            type Value = StoredText;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("a text or its blocks")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<StoredText, E> {
                EncodedBytes::decoded(text).map(StoredText::Short)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, blocks: A) -> Result<StoredText, A::Error> {
                Vec::<CompressedBlock>::deserialize(SeqAccessDeserializer::new(blocks)).map(StoredText::Blocks)
            }
        }
        from.deserialize_any(TextOrBlocks)
    }
}
