//! Records of `account`.

use crate::kernel::Name;
use crate::report::json::Numbers;
use crate::report::record::record;
use crate::report::{AccountClass, BesideRss, Fact};

record! {
    /// A row of `account`.
    pub struct AccountRow as "account" with why if any {
        /// The class.
        class: AccountClass,
        /// Bytes that are mapped: a frame that is mapped twice counts twice, as in Rss.
        bytes: u64,
        /// All bytes of the account, for the share of this class.
        of: u64,
        /// Of these, bytes mapped as huge pages, by one PMD each.
        huge: Fact<u64>,
        /// Bytes that the next write of this process copies.
        to_copy: Fact<u64>,
        /// Bytes freed with MADV_FREE. The mark stays if they are written again.
        lazily_freed: Fact<u64>,
        /// Bytes that are locked into memory, by this process or another one.
        locked: Fact<u64>,
        /// Bytes of files that are not on disk yet.
        dirty: Fact<u64>,
        /// Bytes of frames that this process maps several times.
        several: Fact<u64>,
        /// Bytes that no other process maps but pmdb itself.
        with_pmdb: Fact<u64>,
        /// Bytes of all-zero pieces of huge pages, with `with content`.
        zeros: Fact<u64>,
        /// The action that frees the memory.
        freed_by: &'static str,
    }

    /// A row of `account … by KEY`.
    pub struct AccountGroup as "account-group" {
        /// The key: `region`, `mapping`, …
        by: &'static str,
        /// Its value for this group.
        key: String,
        /// Bytes that are mapped.
        bytes: u64,
        /// All bytes of the account.
        of: u64,
        /// The bytes in each class that has any.
        classes: Numbers<AccountClass>,
    }

    /// The sum of `account`, and its comparison with the kernel's.
    pub struct AccountSummary as "account-summary" with why {
        /// The process.
        pid: u32,
        /// Its name.
        process: Name,
        /// The bytes of all classes.
        bytes: u64,
        /// Bytes of the different frames among them.
        distinct: Fact<u64>,
        /// Bytes that Rss does not count. Those of drivers are the addresses that they span.
        beside: Numbers<BesideRss>,
        /// Bytes of page tables, for a whole process.
        page_tables: Fact<u64>,
        /// Bytes that are marked as freed with MADV_FREE.
        lazily_freed: Fact<u64>,
        /// Of these, bytes that the kernel can reclaim now (LazyFree of smaps_rollup), for a whole process.
        lazy_free: Fact<u64>,
        /// The comparison with smaps_rollup, for a whole process.
        kernel: Fact<AccountProof>,
        /// Whether some sharing rests on map counts that are averages over large folios.
        map_count_average: bool,
        /// Whether regions changed during the command.
        changed: bool,
        /// Whether the command was interrupted: the account is then of the first part.
        cut_short: bool,
    }

    /// The account of a process compared with smaps_rollup.
    pub struct AccountProof within "kernel" {
        /// Rss before the count.
        before: u64,
        /// Rss after it.
        after: u64,
        /// VmRSS of status, whose counters the kernel updates in batches.
        vm_rss: Option<u64>,
        /// Whether the process was stopped.
        stopped: bool,
        /// The fields that were compared.
        compared: Vec<&'static str>,
        /// Those that differ.
        differing: Vec<AccountCheck>,
        /// Known causes of a difference.
        causes: Vec<String>,
    }

    /// An amount that differs from the kernel's.
    #[derive(Eq)]
    pub struct AccountCheck {
        /// The field of smaps, or the sum of several.
        field: &'static str,
        /// Bytes counted.
        counted: u64,
        /// Bytes of the kernel.
        kernel: u64,
    }
}
