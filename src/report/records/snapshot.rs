//! Records of `snapshot`, `diff` and `compare`.

use super::{Blind, ProcessMemory, SymbolBrief};
use crate::kernel::{Name, VirtualAddress};
use crate::report::json::Numbers;
use crate::report::record::record;
use crate::report::{EventKind, Fact, NetEffect, PageFacts};

record! {
    /// `snapshot`, and a row of `info snapshots`.
    pub struct SnapshotRow as "snapshot" {
        /// Its name.
        name: String,
        /// The process.
        pid: u32,
        /// The name of the process.
        process: Name,
        /// Its time, in seconds since the epoch.
        time: f64,
        /// Pages that were present.
        pages: u64,
        /// Pages that were in swap, as far as the page map shows.
        swapped: u64,
        /// The facts that it has besides the page map: `flags`, `counts`, `content`.
        with: Vec<&'static str>,
        /// Present pages whose contents could not be read; 0 without `content`.
        unread: u64,
        /// Bytes of pmdb's own memory that it uses.
        memory: u64,
    }

    /// A row of `diff`.
    pub struct ChangeRow as "change" {
        /// The change.
        change: EventKind,
        /// Its first address.
        start: VirtualAddress,
        /// The address after the last byte.
        end: VirtualAddress,
        /// Pages; for a region that went or shrank, those that were in memory or in swap.
        pages: u64,
        /// The first page as it was.
        before: Option<PageFacts>,
        /// The first page as it is.
        after: Option<PageFacts>,
        /// Name of the region.
        region: Option<Name>,
        /// The symbol at the first byte.
        symbol: Option<SymbolBrief>,
        /// The symbol at the last byte of the pages.
        [optional] last_symbol: Option<SymbolBrief>,
        /// More, in words: what became of a region.
        [optional] detail: Option<String>,
    }

    /// A row of `diff … by KEY`.
    pub struct ChangeGroup as "change-group" {
        /// The key: `region`, `symbol`, `change`.
        by: &'static str,
        /// The group. Of a region: its addresses, permissions and name.
        key: String,
        /// By region: its name.
        [optional] region: Option<Name>,
        /// Pages that changed. A page that changed in two ways counts twice.
        pages: u64,
        /// Changes of regions, counted one by one.
        regions: u64,
        /// Pages of each kind of change; for changes of regions, regions. Pages that went with their region count as
        /// gone.
        changes: Numbers<EventKind>,
        /// Bytes that came and went.
        [flat] effect: NetEffect,
    }

    /// The totals of `diff`, printed first.
    pub struct DiffSummary as "diff-summary" {
        /// The earlier snapshot.
        from: String,
        /// The later one, or `now`.
        to: String,
        /// Seconds between them.
        seconds: f64,
        /// Pages of each kind of change; for changes of regions, regions.
        changes: Numbers<EventKind>,
        /// Bytes that came and went.
        [flat] effect: NetEffect,
        /// Rows that `limit` or `top` left out.
        cut: u64,
        /// Present pages whose contents could not be compared, where both snapshots have contents.
        uncompared: u64,
        /// Kinds of change that the snapshots cannot show, each with the reason.
        blind: Vec<Blind>,
    }

    /// The expected effect of `soft-dirty clear`.
    pub struct SoftDirtyReport as "soft-dirty" with why if noted {
        /// The process.
        pid: u32,
        /// Its name.
        process: Name,
        /// Pages that are soft-dirty and writable: they are write-protected, and the next write to each is a page
        /// fault.
        pages: u64,
        /// Those of them that are mapped as huge pages: one fault for each whole huge page.
        huge: Fact<u64>,
        /// Hugetlb pages, which have no bits of their own: after the clearing they never show as soft-dirty.
        hugetlb: u64,
    }

    /// The effect of `soft-dirty clear`.
    pub struct SoftDirtyCleared as "soft-dirty-cleared" {
        /// The process.
        pid: u32,
        /// Its name.
        process: Name,
        /// Seconds that the kernel needed, while faults of the process waited.
        seconds: f64,
        /// Writable pages that are soft-dirty again, or still.
        pages: u64,
    }

    /// How the attached process and another one share pages, in one region or in all. A page in swap counts for the
    /// processes that have it.
    #[derive(Copy, Default)]
    pub struct SharedCounts {
        /// Pages that both map in the same frame.
        shared: u64,
        /// Of these, pages whose frame the other process maps only at other addresses (merged pages, for example).
        shared_elsewhere: u64,
        /// Pages that both have, in different frames.
        copied: u64,
        /// Pages that only the attached process has.
        only_here: u64,
        /// Pages that only the other process has. Those in a frame that the attached one maps elsewhere are left out.
        only_there: u64,
        /// Shared pages that the next write of the attached process copies.
        about_to_copy: u64,
    }

    /// A row of `compare`: a region.
    pub struct Comparison as "comparison" {
        /// The other process.
        other: u32,
        /// First address of the region, in the process that has it.
        start: VirtualAddress,
        /// The address after its last byte.
        end: VirtualAddress,
        /// Its name.
        region: Name,
        /// Pages by how both share them.
        [flat] counts: SharedCounts,
    }

    /// A row of `compare … by symbol`.
    pub struct ComparisonGroup as "comparison-group" {
        /// The other process.
        other: u32,
        /// The symbol, or the name of the region where pages begin in no symbol.
        symbol: String,
        /// Pages by how both share them.
        [flat] counts: SharedCounts,
    }

    /// The totals of `compare`.
    pub struct ComparisonSummary as "comparison-summary" {
        /// The attached process.
        pid: u32,
        /// The other process.
        other: u32,
        /// The name of the other process.
        process: Name,
        /// Bytes in a page.
        page_size: u64,
        /// The kernel's own amounts of the other process, where several are compared.
        [optional] memory: Option<ProcessMemory>,
        /// Pages by how both share them.
        [flat] counts: SharedCounts,
    }
}
