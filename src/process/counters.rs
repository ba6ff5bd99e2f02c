//! Counters and limits of memory of the machine.

use super::{Machine, Result};
use crate::access::Error;
use crate::kernel::Name;
use crate::kernel::segments::{Segment, segments};
use crate::kernel::text::{BadLine, decimal};
use crate::source::File;
use procfs::FromBufRead;

/// What the kernel counts of its memory, in bytes; `None` for what an older kernel does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct MemoryCounters {
    /// MemTotal: without what the kernel reserved when it started.
    pub total: u64,
    /// MemFree.
    pub free: u64,
    /// AnonPages.
    pub anonymous: Option<u64>,
    /// Shmem.
    pub shared: Option<u64>,
    /// Buffers and Cached, which has shared memory too.
    pub cache: u64,
    /// Slab.
    pub slab: u64,
    /// PageTables.
    pub page_tables: Option<u64>,
    /// Hugetlb, with free pages of the pools.
    pub hugetlb: Option<u64>,
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
}

impl Machine {
    /// The number of mappings (`vm.max_map_count`) above which a process gets no more: mmap(2) and mprotect(2) fail
    /// with ENOMEM.
    ///
    /// # Errors
    /// The source does not have it.
    pub fn most_mappings(&self) -> Result<u64> {
        let text = self.source().fetch(File::MostMappings)?;
        let number = decimal(text.trim_ascii());
        number.ok_or_else(|| Error::not_available("/proc/sys/vm/max_map_count holds no number"))
    }

    /// The System V segments of the IPC namespace that pmdb runs in, and that namespace, as its link names it.
    ///
    /// # Errors
    /// The source does not have them.
    pub fn segments(&self) -> Result<(Name, Vec<Segment>)> {
        let namespace = Name::new(self.source().fetch(File::OwnIpcNamespace)?);
        let segments: std::result::Result<_, BadLine> = segments(&self.source().fetch(File::Segments)?).collect();
        Ok((namespace, segments?))
    }

    /// The kernel's counters of memory (`/proc/meminfo`) as they are now, in bytes.
    ///
    /// # Errors
    /// The source does not have them.
    pub fn memory_counters(&self) -> Result<MemoryCounters> {
        let text = self.source().fetch(File::MemoryCounters)?;
        let read = procfs::Meminfo::from_buf_read(&text[..]);
        let read = read.map_err(|_| Error::not_available("/proc/meminfo lacks a counter that all kernels have"))?;
        Ok(MemoryCounters {
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
}
