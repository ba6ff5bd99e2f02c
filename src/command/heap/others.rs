//! Other allocators of a process: they are named, so that nobody takes a heap that is not read for an empty one.

use super::super::floor::{Context, Error};
use crate::inspect::AddressSpace;
use crate::kernel::words::worded;
use crate::process::Target;

worded! {
    /// An allocator other than glibc's.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum OtherAllocator, word {
        /// Jemalloc: call `malloc_stats_print`, or set MALLOC_CONF=stats_print:true.
        Jemalloc = "jemalloc",
        /// TCMalloc: call `MallocExtension::GetStats`.
        Tcmalloc = "tcmalloc",
        /// Mimalloc: call `mi_stats_print`, or set MIMALLOC_SHOW_STATS=1.
        Mimalloc = "mimalloc",
        /// Musl: it keeps no sums.
        Musl = "musl",
        /// The heap of Go: read runtime.MemStats.
        Go = "Go",
        /// The Java heap: `jcmd PID GC.heap_info`.
        Java = "Java",
    }
}

impl OtherAllocator {
    /// How the file of its library begins.
    const fn file_prefix(self) -> Option<&'static str> {
        match self {
            OtherAllocator::Jemalloc => Some("libjemalloc"),
            OtherAllocator::Tcmalloc => Some("libtcmalloc"),
            OtherAllocator::Mimalloc => Some("libmimalloc"),
            OtherAllocator::Musl => Some("ld-musl"),
            OtherAllocator::Java => Some("libjvm.so"),
            OtherAllocator::Go => None,
        }
    }

    /// Symbols of programs that have it within.
    const fn symbols(self) -> &'static [&'static str] {
        match self {
            OtherAllocator::Jemalloc => &["je_malloc", "_rjem_malloc", "malloc_stats_print"],
            OtherAllocator::Tcmalloc => &["tc_malloc", "TCMallocInternalMalloc"],
            OtherAllocator::Mimalloc => &["mi_malloc"],
            OtherAllocator::Go => &["runtime.mallocgc"],
            OtherAllocator::Musl => &["__malloc_alloc_meta", "__malloc_replaced", "__expand_heap"],
            OtherAllocator::Java => &[],
        }
    }
}

/// Allocators that libraries or symbols of the program show.
pub(super) fn found(
    context: &mut Context,
    target: &Target,
    space: &AddressSpace,
) -> Result<Vec<OtherAllocator>, Error> {
    let is_library = |library: &str| {
        space.regions().any(|region| {
            let file = region.name.as_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            file.starts_with(library.as_bytes())
        })
    };
    let names = context.state.symbols.over(target, space.regions());
    let program = target.process.executable().map(|name| name.to_string());
    let is_symbol = |name: &&str| {
        program.as_deref().is_some_and(|program| names.find(Some(program), name).is_ok_and(|found| !found.is_empty()))
    };
    let mut all = Vec::new();
    for &allocator in OtherAllocator::ALL {
        context.sink.check()?;
        if allocator.file_prefix().is_some_and(is_library) || allocator.symbols().iter().any(is_symbol) {
            all.push(allocator);
        }
    }
    Ok(all)
}
