//! Records of `--how`.

use super::wire::{hex_words, optional_hex};
use serde::Serialize;

/// A read behind an answer.
#[derive(Clone, Debug, Serialize)]
pub struct KernelRead {
    /// The file: `/proc/812/pagemap`.
    pub file: String,
    /// Where in it, in bytes; `None` if it was read whole, or asked in another way.
    #[serde(serialize_with = "optional_hex")]
    pub offset: Option<u64>,
    /// Bytes that were asked for.
    pub length: Option<u64>,
    /// What stood there, where it is a word for each page.
    #[serde(serialize_with = "hex_words")]
    pub words: Vec<u64>,
    /// Whose words they are, or what was asked.
    pub what: String,
    /// The answer where it is no words, or the error of a read that failed.
    pub found: Option<String>,
    /// How often it was read, each time with the same result.
    pub times: u64,
    /// A shell command that reads the same; `None` where there is none.
    pub repeat: Option<String>,
}

/// What closes the reads.
#[derive(Clone, Debug, Serialize)]
pub struct ReadsSummary {
    /// Reads that are shown.
    pub reads: u64,
    /// Reads that are not.
    pub more_reads: u64,
    /// Words that were read and are not shown.
    pub more_words: u64,
    /// How any of the words is read again, with its own OFFSET and FILE.
    pub repeat: String,
}
