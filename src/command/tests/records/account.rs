//! Samples of records of `account`.

use crate::kernel::Name;
use crate::report::*;

/// A row with marks.
pub fn account_row() -> AccountRow {
    let unknown = Reason::not_permitted("may not open /proc/kpageflags: it is for root");
    AccountRow {
        class: AccountClass::Forked,
        bytes: 1_610_612_736,
        of: 6 << 30,
        huge: Ok(1 << 30),
        to_copy: Ok(1_610_612_736),
        lazily_freed: Err(unknown.clone()),
        locked: Err(unknown),
        dirty: Ok(0),
        several: Ok(0),
        with_pmdb: Ok(0),
        zeros: Err(Reason::NotApplicable("contents were not looked at")),
        freed_by: "free or munmap in all processes that share it",
    }
}

/// A row of `by mapping`.
pub fn account_group() -> AccountGroup {
    AccountGroup {
        by: "mapping",
        key: "/usr/lib/x86_64-linux-gnu/libc.so.6".into(),
        bytes: 1_400_000,
        of: 6 << 30,
        classes: Numbers(vec![(AccountClass::PrivateCopies, 24 << 10), (AccountClass::FileOthers, 1_375_424)]),
    }
}

/// The sum of a stopped process.
pub fn account_summary() -> AccountSummary {
    let compared = vec!["Rss", "Anonymous", "Private", "Shared", "KSM", "Huge", "Hugetlb"];
    AccountSummary {
        pid: 812,
        process: Name::from("redis-server"),
        bytes: 6 << 30,
        distinct: Ok((6 << 30) - (100 << 20)),
        beside: Numbers(vec![(BesideRss::Hugetlb, 0), (BesideRss::Swapped, 3 << 20), (BesideRss::ZeroPages, 4096)]),
        page_tables: Ok(12 << 20),
        lazily_freed: Ok(300 << 20),
        lazy_free: Ok(280 << 20),
        kernel: Ok(AccountProof {
            before: 6 << 30,
            after: 6 << 30,
            vm_rss: Some((6 << 30) + 4096),
            stopped: true,
            compared,
            differing: Vec::new(),
            causes: Vec::new(),
        }),
        map_count_average: false,
        changed: false,
        cut_short: false,
    }
}

/// The sum of a process that ran meanwhile, without rights.
pub fn account_summary_differing() -> AccountSummary {
    let check = |field, counted, kernel| AccountCheck { field, counted, kernel };
    AccountSummary {
        distinct: Err(Reason::FrameHidden),
        beside: Numbers(Vec::new()),
        page_tables: Err(Reason::NotOnThisKernel("status does not show it".into())),
        lazily_freed: Err(Reason::FrameHidden),
        lazy_free: Ok(0),
        kernel: Ok(AccountProof {
            before: 5 << 30,
            after: 7 << 30,
            vm_rss: None,
            stopped: false,
            compared: vec!["Rss", "Anonymous"],
            differing: vec![check("Rss", 6 << 30, 7 << 30), check("Anonymous", 5 << 30, 6 << 30)],
            causes: vec!["the kernel's sums changed during the count".into()],
        }),
        map_count_average: true,
        changed: true,
        cut_short: true,
        ..account_summary()
    }
}
