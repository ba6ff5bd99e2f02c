//! The sum of `account`, and its comparison with the kernel's.

use super::AccountSum;
use super::records::{AccountCheck, AccountProof, AccountSummary};
use crate::inspect::account::{Accounting, checks};
use crate::kernel::smaps::Smaps;
use crate::process::Target;
use crate::report::{AccountClass, AccountMark, BesideRss, Fact, Numbers, Reason};

impl AccountSum<'_> {
    pub(super) fn summary(
        &self,
        accounting: &Accounting,
        target: &Target,
        kernel: Fact<(Smaps, Smaps)>,
        cut_short: bool,
    ) -> AccountSummary {
        let all = &self.all;
        let identity = target.process.identity();
        let status = target.process.status().map_err(Reason::from);
        let vm = |field: &str| {
            let memory = status.as_ref().ok()?.memory.iter();
            memory.clone().find(|(name, _)| name == field).map(|&(_, bytes)| bytes)
        };
        let is_whole = kernel.as_ref().map(drop).map_err(Clone::clone);
        // The page map does not show which shared memory is in swap.
        let in_swap = kernel.as_ref().ok().and_then(|(_, after)| after.field("Swap")).unwrap_or(0);
        let beside = |what| match what {
            BesideRss::Swapped => all.beside(what).max(in_swap),
            _ => all.beside(what),
        };
        let lazily_freed = |class| all.marked(class, AccountMark::LazilyFreed);
        let is_as_rss = kernel.as_ref().is_ok_and(|(_, after)| after.field("Rss") == Some(all.total()));
        AccountSummary {
            pid: identity.pid,
            process: identity.name,
            bytes: all.total(),
            may_be_zeros: Some(all.of(AccountClass::Unclear)).filter(|&bytes| bytes > 0 && !is_as_rss),
            distinct: accounting.distinct(all),
            beside: Numbers(BesideRss::ALL.iter().map(|&what| (what, beside(what))).collect()),
            page_tables: is_whole.clone().and_then(|()| {
                let tables = [vm("VmPTE"), vm("VmPMD")];
                let told = tables.iter().any(Option::is_some);
                let missing = || Reason::NotOnThisKernel("/proc/PID/status does not show it".to_owned());
                told.then(|| tables.iter().flatten().sum()).ok_or_else(missing)
            }),
            lazily_freed: all
                .all_marked(AccountMark::LazilyFreed)
                .ok_or_else(|| accounting.why_unknown(AccountMark::LazilyFreed)),
            lazily_freed_elsewhere: match (
                lazily_freed(AccountClass::Forked),
                lazily_freed(AccountClass::PrivateUnclear),
            ) {
                (Some(elsewhere), Some(0)) => Ok(elsewhere),
                (Some(_), Some(_)) => Err(accounting.why_unknown(AccountMark::ToCopy)),
                _ => Err(accounting.why_unknown(AccountMark::LazilyFreed)),
            },
            droppable: all
                .all_marked(AccountMark::Droppable)
                .ok_or_else(|| accounting.why_unknown(AccountMark::Droppable)),
            lazy_free: kernel.as_ref().map_err(Clone::clone).and_then(|(_, after)| {
                let missing = || Reason::NotOnThisKernel("smaps has it since Linux 4.12".to_owned());
                after.field("LazyFree").ok_or_else(missing)
            }),
            zeros: all.all_marked(AccountMark::Zeros).ok_or_else(|| accounting.why_unknown(AccountMark::Zeros)),
            kernel: kernel.map(|(before, after)| {
                let state = status.as_ref().map(|status| status.state.clone()).unwrap_or_default();
                self.proof(&before, &after, vm("VmRSS"), state.starts_with(['T', 't']))
            }),
            map_count_average: accounting.is_average(),
            changed: !accounting.changed_ranges().is_empty(),
            cut_short,
        }
    }

    fn proof(&self, before: &Smaps, after: &Smaps, vm_rss: Option<u64>, stopped: bool) -> AccountProof {
        let compared = checks(&self.all, after, self.space.counts_zeros_as_merged());
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
            if self.space.may_hide_copies() {
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
}
