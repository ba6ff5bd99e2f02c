//! The reasons why memory is not on huge pages: why a fault would map small pages at present, and why khugepaged would
//! not collapse them.
//!
//! ```text
//! sweep      the pages of ranges, huge page by huge page
//! tally      the bytes of each reason
//! rules      the kernel's rules, in its order
//! stretch    the place of one huge page: what is in it
//! ```

mod rules;
mod stretch;
mod sweep;
mod tally;
#[cfg(test)]
mod tests;

pub use sweep::{HugeSweep, HugeZeros};
pub use tally::{HugeCounts, HugeReason, HugeReport, HugeSizeUse, HugeStretch};
