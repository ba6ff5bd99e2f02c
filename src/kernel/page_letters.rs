//! Page flags as a row of letters, the way the kernel's own tool page-types writes them.

use super::PageFlags;
use super::page_flags::FLAGS;

/// A letter for each flag of [`FLAGS`]. They are those of page-types (tools/mm/page-types.c), but for `arch_2`, which
/// it gives the letter of the first page of a folio, and `arch_3`, which it does not know.
const LETTERS: &str = "LERUDlASWIBMasbHTGuXnxtozigrmdPpOhcf23";

impl PageFlags {
    /// One place for each known flag: its letter if it is set, `_` if not. A `+` behind them stands for flags without a
    /// name.
    pub fn letters(self) -> String {
        let mut rest = self;
        let mut row: String = FLAGS
            .iter()
            .zip(LETTERS.chars())
            .map(|(info, letter)| {
                rest.remove(info.flag);
                if self.contains(info.flag) { letter } else { '_' }
            })
            .collect();
        if !rest.is_empty() {
            row.push('+');
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_flag_has_a_letter_of_its_own() {
        assert_eq!(LETTERS.chars().count(), FLAGS.len());
        let different: BTreeSet<char> = LETTERS.chars().collect();
        assert_eq!(different.len(), FLAGS.len());
        let letter = |flag: PageFlags| flag.letters().replace('_', "");
        assert_eq!(letter(PageFlags::REFERENCED), "R");
        assert_eq!(letter(PageFlags::MMAP), "M");
        assert_eq!(letter(PageFlags::COMPOUND_TAIL), "T");
        assert_eq!(letter(PageFlags::PGTABLE), "g");
        assert_eq!(letter(PageFlags::RESERVED), "r");
        assert_eq!(letter(PageFlags::OWNER_2), "d");
        assert_eq!(letter(PageFlags::SOFTDIRTY), "f");
    }

    #[test]
    fn rows_stand_under_each_other() {
        let flags = PageFlags::UPTODATE | PageFlags::LRU | PageFlags::ANON | PageFlags::MMAP;
        assert_eq!(flags.letters(), "___U_l_____Ma_________________________");
        assert_eq!(PageFlags::empty().letters().len(), LETTERS.len());
        let newer = PageFlags::from_bits_retain(1 << 27);
        assert_eq!(newer.letters(), format!("{}+", "_".repeat(LETTERS.len())));
    }
}
