//! Samples of `who` and `summary`.

use super::pages::{counter, data, pfn, va};
use crate::kernel::*;
use crate::report::*;

const FLAGS: PageFlags = PageFlags::from_bits_retain(0x400005868);

pub fn summary() -> SummaryRow {
    SummaryRow {
        flags: Ok(FLAGS),
        letters: Some(FLAGS.letters()),
        state: Some(State::Present),
        pages: 40_512,
        bytes: 40_512 << 12,
        why: Why::default(),
    }
}

pub fn summary_without_frame() -> SummaryRow {
    SummaryRow {
        flags: Err(Reason::NotApplicable("no frame is mapped here")),
        letters: None,
        state: Some(State::Swapped),
        pages: 12,
        bytes: 12 << 12,
        why: Why::default(),
    }
}

pub fn summary_unreadable() -> SummaryRow {
    let denied = Reason::not_permitted("/proc/kpageflags may be read by root alone");
    SummaryRow { state: Some(State::Present), flags: Err(denied), ..summary_without_frame() }
}

pub fn mapper() -> Mapper {
    Mapper {
        pid: 812,
        name: Name::from("demo"),
        address: va(0x555555558010),
        pages: 1,
        region: Some(data()),
        symbol: Some(counter()),
    }
}

pub fn mapper_gone() -> Mapper {
    Mapper {
        pid: 4_194_303,
        name: Name::new(*b"a\xff long nam"),
        address: va(0x7ffff7dc0000),
        pages: 194,
        region: None,
        symbol: None,
    }
}

pub fn who_counted() -> WhoSummary {
    WhoSummary {
        pfn: pfn(0x1a4eac),
        physical: Some(PhysicalAddress::new(0x1a4eac000)),
        words: FrameWords { flags: Ok(FLAGS), map_count: Ok(3), map_count_average: false, own_mappings: None },
        counts: WhoCounts {
            mappings: 3,
            left: 0,
            processes: 2,
            looked_at: 12,
            listed: 113,
            unreadable: 0,
            gone: 0,
            same_memory: 0,
        },
        ended: SearchEnd::Counted,
        because: None,
        moved: false,
        lists_all: true,
    }
}

pub fn who_searched() -> WhoSummary {
    WhoSummary {
        words: FrameWords { map_count: Ok(5), ..who_counted().words },
        counts: WhoCounts { left: 1, looked_at: 109, unreadable: 3, gone: 1, same_memory: 1, ..who_counted().counts },
        ended: SearchEnd::Searched,
        moved: true,
        ..who_counted()
    }
}

pub fn who_zero() -> WhoSummary {
    let because = "the kernel does not count who maps the page of zeros";
    WhoSummary {
        words: FrameWords {
            flags: Ok(PageFlags::ZERO_PAGE | PageFlags::RESERVED),
            map_count: Ok(0),
            map_count_average: false,
            own_mappings: None,
        },
        counts: WhoCounts { mappings: 12_000, processes: 1, looked_at: 113, ..who_counted().counts },
        ended: SearchEnd::Searched,
        because: Some(because.to_owned()),
        ..who_counted()
    }
}

pub fn who_limited() -> WhoSummary {
    WhoSummary {
        words: FrameWords { map_count: Ok(2_002), ..who_counted().words },
        ended: SearchEnd::Limit,
        ..who_counted()
    }
}

/// The kernel's count tells nothing, so nobody knows how many more there are.
pub fn who_limited_uncounted() -> WhoSummary {
    WhoSummary { ended: SearchEnd::Limit, ..who_zero() }
}

pub fn who_interrupted() -> WhoSummary {
    WhoSummary {
        words: FrameWords {
            flags: Err(Reason::not_permitted("/proc/kpageflags may be read by root alone")),
            map_count: Err(Reason::not_permitted("/proc/kpagecount may be read by root alone")),
            map_count_average: false,
            own_mappings: None,
        },
        counts: WhoCounts { mappings: 0, processes: 0, ..who_counted().counts },
        ended: SearchEnd::Interrupted,
        ..who_counted()
    }
}

pub fn who_nobody() -> WhoSummary {
    WhoSummary {
        words: FrameWords {
            flags: Ok(PageFlags::BUDDY),
            map_count: Ok(0),
            map_count_average: false,
            own_mappings: None,
        },
        counts: WhoCounts::default(),
        ended: SearchEnd::Nobody,
        because: Some("it is free".to_owned()),
        ..who_counted()
    }
}
