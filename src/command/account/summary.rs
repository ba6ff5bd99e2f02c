//! The sum of `account`, and its comparison with the kernel's.

use super::objects::bound;
use super::records::{AccountCheck, AccountProof, AccountSummary};
use super::rests;
use crate::inspect::AddressSpace;
use crate::inspect::account::{Account, AccountSums, MemoryObjects, checks};
use crate::kernel::smaps::Smaps;
use crate::report::{AccountClass, AccountMark, BesideRss, Fact, Numbers, Reason};

/// Of a process, with smaps_rollup before and after the count, and the bytes of objects that are not mapped.
pub(super) fn summary(
    sums: &AccountSums,
    space: &AddressSpace,
    kernel: Fact<(Smaps, Smaps)>,
    objects: &Fact<MemoryObjects>,
    cut_short: bool,
) -> AccountSummary {
    let (all, process) = (&sums.all, &space.target().process);
    let identity = process.identity();
    let status = process.status().map_err(Reason::from);
    let vm = |field: &str| {
        let memory = status.as_ref().ok()?.memory.iter();
        memory.clone().find(|(name, _)| name == field).map(|&(_, bytes)| bytes)
    };
    let of_kernel = |field| match &kernel {
        Ok((_, after)) => Ok(after.field(field)),
        Err(reason) => Err(reason.clone()),
    };
    // The page map does not show which shared memory is in swap.
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
        page_tables: kernel.as_ref().map_err(Clone::clone).and_then(|_| {
            let tables = [vm("VmPTE"), vm("VmPMD")];
            let is_shown = tables.iter().any(Option::is_some);
            is_shown.then(|| tables.iter().flatten().sum()).ok_or_else(|| missing("/proc/PID/status does not show it"))
        }),
        unmapped: objects.as_ref().map_err(Clone::clone).and_then(MemoryObjects::unmapped),
        unmapped_bound: objects.as_ref().ok().and_then(bound),
        folio_rests: rests::sum(&sums.rests()),
        lazily_freed: sums.all_marked(AccountMark::LazilyFreed),
        lazily_freed_elsewhere: sums.lazily_freed_elsewhere(),
        droppable: sums.all_marked(AccountMark::Droppable),
        lazy_free: of_kernel("LazyFree")
            .and_then(|bytes| bytes.ok_or_else(|| missing("smaps has it since Linux 4.12"))),
        zeros: sums.all_marked(AccountMark::Zeros),
        map_count_average: sums.accounting().is_average(),
        changed: !sums.accounting().changed_ranges().is_empty(),
        cut_short,
        kernel: kernel.map(|(before, after)| {
            let stopped = status.as_ref().is_ok_and(|status| status.state.starts_with(['T', 't']));
            proof(all, space, [&before, &after], vm("VmRSS"), stopped)
        }),
    }
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
