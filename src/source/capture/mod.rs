//! Captures: the kernel's answers about a process, in one file that can be read later and on other machines.
//!
//! A capture is a [`Source`](super::Source): it returns the answers of the kernel, and the decoders do not notice that
//! they are old. Everything but pages is recorded while the decoders request it ([`Recorder`]), so that a capture has
//! what they need. Words of page maps and of frames are stored in runs.
//!
//! ```text
//! archive   a tar that is written as it goes, and members of compressed blocks
//! budgeted  JSON that takes memory out of a budget
//! encoded   bytes in JSON
//! index     what its last member says: the answers that are short, and where the long ones are
//! stored    where texts are
//! words     runs of words in blocks: writing, and reading those of a range
//! recorder  a source that keeps the answers of another
//! nameless  a source that gives those of another with numbers in place of names
//! replay    a source that gives them
//! ```

mod archive;
mod budgeted;
mod encoded;
mod index;
mod nameless;
mod recorder;
mod replay;
mod stored;
mod words;

pub use archive::{Archive, ArchiveWriter, Head, MACHINE};
pub use index::{CaptureIndex, OneMissing, ProcessAnswers, WordIndex};
pub use nameless::Nameless;
pub use recorder::{Recorder, SharedCapture};
pub use replay::open;
pub use words::WordWriter;
