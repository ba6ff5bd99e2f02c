//! Records of `--how`.

use crate::report::json::Hex;
use crate::report::record::record;

record! {
    /// `--how`: a read that the answer used.
    pub struct KernelRead as "read" {
        /// The file: `/proc/812/pagemap`.
        file: String,
        /// Offset in bytes; `null` if the file was read whole, or without an offset.
        offset: Option<Hex>,
        /// Requested bytes.
        length: Option<u64>,
        /// The words that were read, if the file has a word for each page.
        words: Vec<Hex>,
        /// The meaning of the words, or the question.
        what: String,
        /// The answer where it is not words, or the error of a read that failed.
        found: Option<String>,
        /// Number of its reads, each time with the same result.
        times: u64,
        /// A shell command that reads the same; `null` where there is none.
        repeat: Option<String>,
    }

    /// The totals of the reads.
    pub struct ReadsSummary as "reads-summary" {
        /// Reads that are shown.
        reads: u64,
        /// Reads that are not.
        more_reads: u64,
        /// Words that were read and are not shown.
        more_words: u64,
        /// A command that reads any of the words again, with its OFFSET and FILE.
        repeat: String,
    }
}
