//! The kernel's counters and limits of memory.

use super::status::age;
use super::{Machine, Result};
use crate::access::Error;
use crate::kernel::Name;
use crate::kernel::physical::Zones;
use crate::kernel::segments::{Segment, segments};
use crate::kernel::status::Stat;
use crate::kernel::swaps::{Compressed, SwapArea};
use crate::kernel::text::{BadLine, decimal};
use crate::source::{File, KernelSetting, List};
use procfs::FromBufRead;
use std::time::{SystemTime, UNIX_EPOCH};

/// The kernel's counters of its memory, in bytes; `None` if an older kernel does not have the counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct MemoryCounters {
    /// MemTotal: without the memory that the kernel reserved at boot.
    pub total: u64,
    /// MemFree.
    pub free: u64,
    /// AnonPages.
    pub anonymous: Option<u64>,
    /// Shmem.
    pub shared: Option<u64>,
    /// Buffers and Cached. Cached includes shared memory.
    pub cache: u64,
    /// Slab.
    pub slab: u64,
    /// PageTables.
    pub page_tables: Option<u64>,
    /// Hugetlb, including free pages of the pools.
    pub hugetlb: Option<u64>,
    /// The pool with pages of the default size (HugePages_Free, HugePages_Rsvd); `None` on a kernel without pools.
    pub pool: Option<PoolCounters>,
    /// HardwareCorrupted.
    pub poisoned: Option<u64>,
    /// KernelStack.
    pub kernel_stacks: Option<u64>,
    /// Percpu.
    pub per_processor: Option<u64>,
    /// VmallocUsed.
    pub vmalloc: u64,
    /// SecPageTables: page tables of virtual machines and of IOMMUs.
    pub second_page_tables: Option<u64>,
    /// Free pages on per-CPU lists, in bytes, which MemFree does not include (`/proc/zoneinfo`).
    pub free_of_processors: Option<u64>,
}

/// The counters of a hugetlb pool, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PoolCounters {
    /// The size of a page.
    pub page: u64,
    /// The free pages.
    pub free: u64,
    /// The free pages that are reserved for mappings and files, which have not touched them yet.
    pub reserved: u64,
}

/// The amount of memory in swap, and how much of it is compressed in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SwapUse {
    /// Bytes in use in all swap areas.
    pub used: u64,
    /// The part of `used` in zram and zswap.
    pub compressed: Compressed,
}

impl SwapUse {
    /// Estimates the memory that `bytes` bytes in swap use, by the average ratio. `None` unless at least nine tenths of
    /// all swapped memory is compressed.
    pub fn estimate(&self, bytes: u64) -> Option<u64> {
        let Compressed { bytes: of, memory } = self.compressed;
        let stands = of > 0 && of >= self.used / 10 * 9;
        let estimate = u128::from(bytes) * u128::from(memory) / u128::from(of.max(1));
        stands.then(|| u64::try_from(estimate).unwrap_or(u64::MAX))
    }
}

impl Machine {
    /// Reads the most mappings of a process (`vm.max_map_count`). Beyond it mmap(2) and mprotect(2) fail with ENOMEM.
    ///
    /// # Errors
    /// Fails if the source does not have the setting.
    pub fn most_mappings(&self) -> Result<u64> {
        let text = self.source().fetch(File::MostMappings)?;
        let number = decimal(text.trim_ascii());
        number.ok_or_else(|| Error::not_available("/proc/sys/vm/max_map_count holds no number"))
    }

    /// Reads the System V segments of pmdb's IPC namespace. Returns the name of the namespace, from its link, and the
    /// segments.
    ///
    /// # Errors
    /// Fails if the source does not have them.
    pub fn segments(&self) -> Result<(Name, Vec<Segment>)> {
        let namespace = Name::new(self.source().fetch(File::OwnIpcNamespace)?);
        let segments: std::result::Result<_, BadLine> = segments(&self.source().fetch(File::Segments)?).collect();
        Ok((namespace, segments?))
    }

    /// Returns whether the process that created a segment still runs; `None` if unknown. A process that started after
    /// the segment is another one with the same id.
    pub fn runs_creator(&self, segment: &Segment) -> Option<bool> {
        /// Seconds that the two times may differ, because each is truncated.
        const INEXACT: f64 = 2.0;
        let times = self.source().origin().times();
        let now = match times {
            Some([begun, _]) => begun as f64,
            None => SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs_f64(),
        };
        let creator = segment.creator?;
        let listed = self.source().list(List::One(creator)).unwrap_or_default();
        let Some(one) = listed.into_iter().find(|one| one.pid == creator) else {
            // A capture has only some processes.
            return times.is_none().then_some(false);
        };
        let started = now - age(self.source(), Stat::parse(&one.stat).ok()?.start_time)?;
        Some(started <= segment.changed as f64 + INEXACT)
    }

    /// Reads the kernel's counters of memory (`/proc/meminfo`), in bytes.
    ///
    /// # Errors
    /// Fails if the source does not have them.
    pub fn memory_counters(&self) -> Result<MemoryCounters> {
        let read = self.meminfo()?;
        let zones = self.source().fetch(File::Zones).ok();
        let of_processors = zones.and_then(|zones| Zones::frames_of_processors(&zones).ok());
        let pool = |page: u64| {
            let bytes = |pages: Option<u64>| Some(pages?.saturating_mul(page));
            Some(PoolCounters { page, free: bytes(read.hugepages_free)?, reserved: bytes(read.hugepages_rsvd)? })
        };
        Ok(MemoryCounters {
            pool: read.hugepagesize.and_then(pool),
            free_of_processors: of_processors.map(|frames| frames.saturating_mul(self.page_size().bytes())),
            total: read.mem_total,
            free: read.mem_free,
            anonymous: read.anon_pages,
            shared: read.shmem,
            cache: read.buffers.saturating_add(read.cached),
            slab: read.slab,
            page_tables: read.page_tables,
            hugetlb: read.hugetlb,
            poisoned: read.hardware_corrupted,
            kernel_stacks: read.kernel_stack,
            per_processor: read.per_cpu,
            vmalloc: read.vmalloc_used,
            second_page_tables: read.secondary_page_tables,
        })
    }

    /// Returns how many pages were ever freed lazily (MADV_FREE) on the machine, since Linux 4.12. The kernel counts a
    /// page when it takes the flag away that shows it (`lru_lazyfree` in mm/swap.c).
    pub(crate) fn lazily_freed_pages(&self) -> Option<u64> {
        let text = self.source().fetch(File::EventCounters).ok()?;
        text.split(|&byte| byte == b'\n').find_map(|line| decimal(line.strip_prefix(b"pglazyfree ")?))
    }

    fn meminfo(&self) -> Result<procfs::Meminfo> {
        let text = self.source().fetch(File::MemoryCounters)?;
        procfs::Meminfo::from_buf_read(&text[..])
            .map_err(|_| Error::not_available("/proc/meminfo lacks a counter that all kernels have"))
    }

    /// Reads the amount of swapped memory, and its compressed size in zram or zswap.
    ///
    /// # Errors
    /// Fails if the source does not have it.
    pub fn swap_use(&self) -> Result<SwapUse> {
        let areas = self.swaps()?.0;
        let read = self.meminfo()?;
        // The fields of zswap exist since Linux 5.19.
        let zswap = read.z_swapped.zip(read.z_swap).map(|(bytes, memory)| Compressed { bytes, memory });
        let mut compressed = zswap.unwrap_or_default();
        for number in areas.iter().filter_map(SwapArea::zram) {
            let text = self.source().fetch(File::Setting(KernelSetting::Zram(number)))?;
            let zram = Compressed::of_zram(&text);
            let zram = zram.ok_or_else(|| Error::not_available("mm_stat of zram lacks a number"))?;
            compressed.bytes = compressed.bytes.saturating_add(zram.bytes);
            compressed.memory = compressed.memory.saturating_add(zram.memory);
        }
        let used = areas.iter().map(|area| area.used).fold(0, u64::saturating_add);
        if zswap.is_none() && used > compressed.bytes && self.version().number < (5, 19) {
            return Err(Error::not_available("the kernel shows the use of zswap since Linux 5.19"));
        }
        Ok(SwapUse { used, compressed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::fake::World;

    /// The fields that all kernels have, and these.
    fn counters(more: &str) -> String {
        let fields = "MemTotal MemFree Buffers Cached SwapCached Active Inactive SwapTotal SwapFree Dirty Writeback \
            Mapped Slab Committed_AS VmallocTotal VmallocUsed VmallocChunk";
        fields.split_whitespace().map(|field| format!("{field}: 0 kB\n")).collect::<String>() + more
    }

    #[test]
    fn what_is_compressed_in_swap() {
        let swap_use = |release, areas: &[(&str, u64)], zram: &str, zswap: &str| {
            let mut world = World::new([]);
            world.release = release;
            let rows: String = areas.iter().map(|(name, used)| format!("{name} partition 99999 {used} -2\n")).collect();
            world.texts.push((File::Swaps, format!("Filename Type Size Used Priority\n{rows}")));
            world.texts.push((File::MemoryCounters, counters(zswap)));
            world.texts.push((File::Setting(KernelSetting::Zram(1)), zram.to_owned()));
            let (_, target) = world.target();
            target.machine.swap_use().map(|found| (found, found.estimate(1 << 20))).map_err(|error| error.to_string())
        };
        let of = |used, bytes, memory| SwapUse { used, compressed: Compressed { bytes, memory } };
        let zswap = "Zswap: 250 kB\nZswapped: 1000 kB\n";
        let disk = ("/dev/sda2", 1000);
        assert_eq!(swap_use("6.1.0", &[disk], "", zswap), Ok((of(1_024_000, 1_024_000, 256_000), Some(1 << 18))));
        // Of areas that do not compress, one ratio says nothing.
        let found =
            swap_use("6.1.0", &[disk, ("/dev/zram1", 100)], "102400 1 51200 0", "Zswap: 0 kB\nZswapped: 0 kB\n");
        assert_eq!(found, Ok((of(1_126_400, 102_400, 51_200), None)));
        let found = swap_use("5.10.0", &[("/dev/zram1", 100)], "102400 1 51200 0", "");
        assert_eq!(found, Ok((of(102_400, 102_400, 51_200), Some(1 << 19))));
        assert!(swap_use("5.10.0", &[disk], "", "").is_err_and(|error| error.contains("zswap")));
        assert_eq!(swap_use("6.1.0", &[disk], "", ""), Ok((of(1_024_000, 0, 0), None)));
        assert!(swap_use("6.1.0", &[("/dev/zram1", 100)], "102400 1\n", "").is_err());
        assert_eq!(swap_use("6.1.0", &[], "", ""), Ok((of(0, 0, 0), None)));
    }
}
