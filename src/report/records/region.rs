//! The record of a region, for `region` and `regions`.

use super::SymbolBrief;
use crate::kernel::{Device, Name, Permissions, State, VirtualAddress};
use crate::report::json::{Hex, Numbers};
use crate::report::record::record;
use crate::report::{LargeFolios, Why};
use std::collections::BTreeMap;

record! {
    /// `region`, and a row of `regions`.
    pub struct RegionReport as "region" with why {
        /// First address.
        start: VirtualAddress,
        /// The address after the last one.
        end: VirtualAddress,
        /// Permissions, as `maps` writes them: `rw-p`.
        perms: Permissions,
        /// Offset in the file of its first byte.
        offset: Hex,
        /// Device of the file: `08:02`.
        device: Device,
        /// Inode of the file; 0 without one.
        inode: u64,
        /// Name, as in `maps`.
        name: Name,
        /// Whether its file was deleted.
        deleted: bool,
        /// Bytes it spans.
        size: u64,
        /// Bytes with a frame mapped.
        present: Option<u64>,
        /// Bytes in swap.
        swapped: Option<u64>,
        /// Present bytes that are mapped elsewhere too.
        shared: Option<u64>,
        /// Of these, bytes that nobody else but pmdb itself maps: it maps libraries too.
        [optional] shared_with_pmdb: Option<u64>,
        /// Present bytes that are mapped only here.
        private: Option<u64>,
        /// Present bytes that are the zero page: they count neither as shared nor as private.
        zero: Option<u64>,
        /// Bytes mapped as huge pages, by a PMD or from the hugetlb pool.
        huge: Option<u64>,
        /// Whether shared, private and pss rest on map counts that are averages over large folios.
        [optional] map_count_average: bool,
        /// For `region`: large folios by size and by how they are mapped.
        [optional] folios: Option<Vec<LargeFolios>>,
        /// For `region`: pages in each state. Text shows a report with them as a block, and one without as a row.
        [optional] states: BTreeMap<State, u64>,
        /// For `region ADDR`: the requested address.
        [optional] at: Option<RegionPlace>,
        /// For `region`, and with `full`: proportional share (PSS) in bytes; `null` for the hugetlb pool, which has
        /// none.
        [optional] pss: Option<u64>,
        /// With `full`: VmFlags, two letters and words each.
        [optional] vm_flags: Option<Vec<VmFlag>>,
        /// The protection key (with `full`, if the machine has such keys); 0 is the default.
        [optional] protection_key: Option<u64>,
        /// With `full`: the fields of smaps as the kernel spells them, in bytes.
        [optional] smaps: Option<Numbers<String>>,
        /// For `region`: whether the region changed or vanished during the command, so that numbers may be
        /// inconsistent.
        [optional] changed: bool,
        /// Reasons for what is `null`.
        [flat] why: Why,
    }

    /// One VmFlag of smaps.
    #[derive(Eq)]
    pub struct VmFlag {
        /// Two letters.
        code: String,
        /// Their meanings.
        meaning: &'static str,
    }

    /// Where in a region the address of `region ADDR` lies.
    #[derive(Eq)]
    pub struct RegionPlace {
        /// The address.
        address: VirtualAddress,
        /// Bytes from the start of the region.
        region_offset: u64,
        /// Offset in the file.
        file_offset: Option<Hex>,
        /// ELF section.
        section: Option<Name>,
        /// Symbol.
        symbol: Option<SymbolBrief>,
    }
}
