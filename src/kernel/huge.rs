//! The settings of transparent huge pages below `/sys/kernel/mm/transparent_hugepage`, and `/proc/buddyinfo`: the free
//! blocks of memory of each size.

use super::text::{self, BadLine};
use super::words::{Worded as _, worded};

worded! {
    /// A value of a setting of transparent huge pages.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum HugeChoice, word {
        /// All memory.
        Always = "always",
        /// As the setting for all sizes is.
        Inherit = "inherit",
        /// Shared memory, as far as its file is long.
        WithinSize = "within_size",
        /// Shared memory that the program has asked for (MADV_HUGEPAGE).
        Advise = "advise",
        /// Memory that the program has asked for (MADV_HUGEPAGE).
        Madvise = "madvise",
        /// No memory.
        Never = "never",
        /// No shared memory, whatever else is set.
        Deny = "deny",
        /// All shared memory, whatever else is set.
        Force = "force",
    }
}

impl HugeChoice {
    /// Parses the word in brackets: `always [madvise] never`.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let in_brackets = |word: &[u8]| Some(text::lossy(word.strip_prefix(b"[")?.strip_suffix(b"]")?));
        Self::from_word(&text::fields(text.trim_ascii_end()).find_map(in_brackets)?)
    }
}

/// The number of free blocks of each order, in all zones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FreeBlocks(Vec<u64>);

impl FreeBlocks {
    /// Decodes `/proc/buddyinfo`: `Node 0, zone   Normal   20826  20782 …`.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadLine> {
        let mut all = Vec::new();
        for line in text::lines(bytes) {
            let mut numbers = line.fields().skip(4).peekable();
            numbers.peek().ok_or_else(|| line.bad("buddyinfo"))?;
            for (order, number) in numbers.enumerate() {
                let number: u64 = text::decimal(number).ok_or_else(|| line.bad("buddyinfo"))?;
                all.resize(all.len().max(order + 1), 0);
                if let Some(sum) = all.get_mut(order) {
                    *sum = number.saturating_add(*sum);
                }
            }
        }
        Ok(FreeBlocks(all))
    }

    /// Returns how many blocks of `order` can be allocated without moving a page, including parts of larger blocks.
    pub fn of_order(&self, order: u8) -> u64 {
        let larger = self.0.iter().enumerate().skip(order.into());
        larger.fold(0, |sum, (of, count)| {
            let parts = u32::try_from(of).unwrap_or(u32::MAX) - u32::from(order);
            count.checked_shl(parts).unwrap_or(u64::MAX).saturating_add(sum)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_choice_is_in_brackets() {
        let parse = |text: &str| HugeChoice::parse(text.as_bytes());
        assert_eq!(parse("always [madvise] never\n"), Some(HugeChoice::Madvise));
        assert_eq!(parse("always inherit [within_size] advise never\n"), Some(HugeChoice::WithinSize));
        assert_eq!(parse("always madvise [never]\n"), Some(HugeChoice::Never));
        assert_eq!(parse("always madvise never\n"), None);
        assert_eq!(parse("[something]\n"), None);
    }

    #[test]
    fn larger_free_blocks_are_several_smaller_ones() {
        let text = "\
Node 0, zone      DMA      0      0      1
Node 0, zone   Normal      7      1      2
";
        let blocks = FreeBlocks::parse(text.as_bytes()).unwrap();
        assert_eq!([0, 1, 2, 3].map(|order| blocks.of_order(order)), [7 + 2 + 12, 1 + 6, 3, 0]);
        assert!(FreeBlocks::parse(b"Node 0, zone DMA\n").is_err());
        assert!(FreeBlocks::parse(b"Node 0, zone DMA x\n").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), order in 0..64_u8) {
            _ = HugeChoice::parse(&bytes);
            _ = FreeBlocks::parse(&bytes).map(|blocks| blocks.of_order(order));
        }
    }
}
