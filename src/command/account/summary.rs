//! The sum of `account`, and its comparison with the kernel's.

use super::objects::{bound, why};
use super::records::{AccountCheck, AccountProof, AccountSummary};
use super::rests;
use crate::inspect::account::{Account, AccountSums, MemoryObjects, checks};
use crate::inspect::{AddressSpace, Backing};
use crate::kernel::smaps::Smaps;
use crate::process;
use crate::report::{AccountClass, AccountMark, BesideRss, Fact, Numbers, Reason};

/// The sums of the kernel (smaps_rollup). The kernel holds the lock of the address space while it adds up a region, and
/// the threads of the process wait: so they are read only where they are needed.
pub(super) struct KernelSums {
    before: Fact<Smaps>,
    after: Fact<Smaps>,
    /// Why the account is not of a whole process.
    whole: Fact<()>,
}

impl KernelSums {
    /// None, for this reason.
    pub fn unread(why: &'static str) -> Self {
        let why = Reason::NotApplicable(why);
        KernelSums { before: Err(why.clone()), after: Err(why.clone()), whole: Err(why) }
    }

    /// Those of a whole process after the count, if they were read before it or tell what pages did not.
    pub fn of(before: Option<process::Result<Smaps>>, sums: &AccountSums) -> Self {
        let rollup = || sums.accounting().space().target().process.rollup().map_err(Reason::from);
        let unread = || Err(Reason::NotApplicable("only `account full` compares it with smaps_rollup"));
        let after = if before.is_some() || needs_rollup(sums) { rollup() } else { unread() };
        KernelSums { before: before.map_or_else(unread, |before| before.map_err(Reason::from)), after, whole: Ok(()) }
    }
}

/// Whether pages did not tell how much is lazily freed, resident or in swap. The page map does not show which shared
/// memory is in swap.
fn needs_rollup(sums: &AccountSums) -> bool {
    let space = sums.accounting().space();
    let may_be_swapped = || space.target().machine.swap_use().map_or(true, |swap| swap.used > 0);
    let mut regions = space.viewed_regions().iter();
    sums.all_marked(AccountMark::LazilyFreed) != Ok(0)
        || sums.all.of(AccountClass::Unclear) > 0
        || regions.any(|viewed| viewed.backing == Backing::Shmem) && may_be_swapped()
}

/// Of a process, with the sums of the kernel, and the bytes of objects that are not mapped.
pub(super) fn summary(
    sums: &AccountSums,
    kernel: &KernelSums,
    objects: &Fact<MemoryObjects>,
    cut_short: bool,
) -> AccountSummary {
    let space = sums.accounting().space();
    let (all, process) = (&sums.all, &space.target().process);
    let identity = process.identity();
    let status = process.status().map_err(Reason::from);
    let vm = |field: &str| {
        let memory = status.as_ref().ok()?.memory.iter();
        memory.clone().find(|(name, _)| name == field).map(|&(_, bytes)| bytes)
    };
    let of_kernel = |field| kernel.after.as_ref().map(|after| after.field(field)).map_err(Clone::clone);
    let in_swap = of_kernel("Swap").ok().flatten().unwrap_or(0);
    let beside = |what| match what {
        BesideRss::Swapped => all.beside(what).max(in_swap),
        _ => all.beside(what),
    };
    let is_as_rss = of_kernel("Rss") == Ok(Some(all.total()));
    let missing = |why: &str| Reason::NotOnThisKernel(why.to_owned());
    AccountSummary {
        pid: identity.pid,
        process: identity.name,
        bytes: all.total(),
        may_be_zeros: Some(all.of(AccountClass::Unclear)).filter(|&bytes| bytes > 0 && !is_as_rss),
        distinct: sums.distinct(),
        beside: Numbers(BesideRss::ALL.iter().map(|&what| (what, beside(what))).collect()),
        swap_compressed: compressed(beside(BesideRss::Swapped), space),
        page_tables: kernel.whole.clone().and_then(|()| {
            let tables = [vm("VmPTE"), vm("VmPMD")];
            let is_shown = tables.iter().any(Option::is_some);
            is_shown.then(|| tables.iter().flatten().sum()).ok_or_else(|| missing("/proc/PID/status does not show it"))
        }),
        unmapped: objects.as_ref().map_err(Clone::clone).and_then(MemoryObjects::unmapped),
        unmapped_bound: objects.as_ref().ok().and_then(bound),
        why: why(objects),
        deleted_files: objects.as_ref().ok().and_then(MemoryObjects::of_deleted_files),
        folio_rests: rests::sum(&sums.rests()),
        lazily_freed: sums.all_marked(AccountMark::LazilyFreed),
        lazily_freed_elsewhere: sums.lazily_freed_elsewhere(),
        droppable: sums.all_marked(AccountMark::Droppable),
        lazy_free: match (&kernel.after, sums.all_marked(AccountMark::LazilyFreed)) {
            (Err(_), Ok(0)) if kernel.whole.is_ok() => Ok(0),
            _ => of_kernel("LazyFree").and_then(|bytes| bytes.ok_or_else(|| missing("smaps has it since Linux 4.12"))),
        },
        zeros: sums.all_marked(AccountMark::Zeros),
        map_count_average: sums.accounting().is_average(),
        changed: !sums.accounting().changed_ranges().is_empty(),
        cut_short,
        kernel: kernel.before.clone().and_then(|before| {
            let after = kernel.after.as_ref().map_err(Clone::clone)?;
            let stopped = status.as_ref().is_ok_and(|status| status.state.starts_with(['T', 't']));
            Ok(proof(all, space, [&before, after], vm("VmRSS"), stopped))
        }),
    }
}

/// What so many bytes in swap are compressed to.
fn compressed(bytes: u64, space: &AddressSpace) -> Fact<u64> {
    if bytes == 0 {
        return Err(Reason::NotApplicable("nothing is in swap"));
    }
    let swap = space.target().machine.swap_use()?;
    let mixed = "less than nine tenths of what is in swap are compressed (zram, zswap)";
    swap.estimate(bytes).ok_or(Reason::NotApplicable(mixed))
}

/// The comparison with smaps_rollup before and after the count.
fn proof(
    all: &Account,
    space: &AddressSpace,
    [before, after]: [&Smaps; 2],
    vm_rss: Option<u64>,
    stopped: bool,
) -> AccountProof {
    let compared = checks(all, after, space.counts_zeros_as_merged());
    let differing: Vec<AccountCheck> = compared
        .iter()
        .filter(|check| check.counted != check.kernel)
        .map(|check| AccountCheck { field: check.field, counted: check.counted, kernel: check.kernel })
        .collect();
    let rss = |smaps: &Smaps| smaps.field("Rss").unwrap_or_default();
    let mut causes = Vec::new();
    if !differing.is_empty() {
        if before != after {
            causes.push("the kernel's sums changed during the count".to_owned());
        } else if !stopped {
            causes.push("the process was not stopped".to_owned());
        }
        if space.may_hide_copies() {
            causes.push("the page map does not show private copies of device pages, which smaps counts".to_owned());
        }
        if differing.iter().all(|check| matches!(check.field, "Private" | "Shared")) {
            causes.push("other processes mapped or unmapped the same pages during the count".to_owned());
        }
    }
    AccountProof {
        before: rss(before),
        after: rss(after),
        vm_rss,
        stopped,
        compared: compared.iter().map(|check| check.field).collect(),
        differing,
        causes,
    }
}
