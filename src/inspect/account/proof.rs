//! The comparison of an account with the sums of the kernel for the same memory.

use super::settle::PRIVATE;
use super::sums::Account;
use crate::kernel::smaps::Smaps;
use crate::report::{AccountClass, AccountMark, BesideRss};

/// An amount as counted from pages, and as the kernel shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Check {
    /// The name of the amount, a field of smaps or the sum of several.
    pub field: &'static str,
    /// The bytes as counted from pages.
    pub counted: u64,
    /// The bytes as smaps_rollup shows them.
    pub kernel: u64,
}

/// Compares the account of a whole process with its `smaps_rollup`: all amounts that both have. Amounts with an unknown
/// part are left out. `KSM` is left out if it may include merged zero pages (`use_zero_pages`), unless it is 0 or the
/// process maps no zero pages.
pub fn checks(account: &Account, rollup: &Smaps, zeros_count_as_merged: bool) -> Vec<Check> {
    use AccountClass::{Merged, PrivateUnclear, Unclear};
    let kernel =
        |fields: &[&str]| fields.iter().try_fold(0_u64, |sum, field| Some(sum.saturating_add(rollup.field(field)?)));
    let known = |is: bool, bytes: u64| is.then_some(bytes);
    let is_clear = account.of(Unclear) == 0;
    let anonymous = account.of_all(&PRIVATE);
    let has_no_zeros = account.beside(BesideRss::ZeroPages) == 0;
    let is_merged_alone = !zeros_count_as_merged || has_no_zeros || rollup.field("KSM") == Some(0);
    let no_merged_open = is_clear && account.of(PrivateUnclear) == 0 && is_merged_alone;
    let private = account.private.get();
    let shared = private.map(|private| account.total().saturating_sub(private));
    let rows = [
        ("Rss", Some(account.total()), kernel(&["Rss"])),
        ("Anonymous", known(is_clear, anonymous), kernel(&["Anonymous"])),
        ("Private", private, kernel(&["Private_Clean", "Private_Dirty"])),
        ("Shared", shared, kernel(&["Shared_Clean", "Shared_Dirty"])),
        ("KSM", known(no_merged_open, account.of(Merged)), kernel(&["KSM"])),
        ("Huge", account.all_marked(AccountMark::Huge), kernel(&["AnonHugePages", "ShmemPmdMapped", "FilePmdMapped"])),
        ("Hugetlb", Some(account.beside(BesideRss::Hugetlb)), kernel(&["Shared_Hugetlb", "Private_Hugetlb"])),
    ];
    let check = |(field, counted, kernel): (&'static str, Option<u64>, Option<u64>)| {
        Some(Check { field, counted: counted?, kernel: kernel? })
    };
    rows.into_iter().filter_map(check).collect()
}
