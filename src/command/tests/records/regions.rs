//! Samples of records about regions, and of `watch`.

use super::pages::*;
use crate::kernel::*;
use crate::report::*;
use std::collections::BTreeMap;

/// A row of `regions`.
pub fn region_row() -> RegionReport {
    RegionReport {
        after: None,
        start: va(0x7ffff7dc0000),
        end: va(0x7ffff7de8000),
        perms: permissions("r"),
        offset: Hex(0),
        device: Some(Device { major: 8, minor: 2 }),
        inode: Some(1311),
        name: Name::from("/usr/lib/x86_64-linux-gnu/libc.so.6"),
        deleted: false,
        object: None,
        size: 160 << 10,
        present: Some(148 << 10),
        swapped: Some(0),
        shared: Some(148 << 10),
        shared_with_pmdb: Some(4 << 10),
        private: Some(0),
        zero: Some(0),
        huge: None,
        map_count_average: false,
        folios: None,
        states: BTreeMap::new(),
        at: None,
        pss: None,
        advice: Some(vec![VmFlag { code: "dd".into(), meaning: "left out of core dumps (MADV_DONTDUMP, drivers)" }]),
        vm_flags: None,
        protection_key: None,
        smaps: None,
        changed: false,
        why: why(&[("huge", Reason::NotOnThisKernel("Linux 6.7 and later show huge mappings".into()))]),
    }
}

/// `region ADDR full`
pub fn region_full() -> RegionReport {
    RegionReport {
        start: va(0x555555558000),
        end: va(0x555555578000),
        perms: permissions("rw"),
        offset: Hex(0x3000),
        name: Name::from("/usr/bin/demo"),
        deleted: true,
        size: 128 << 10,
        present: Some(12 << 10),
        shared: Some(4 << 10),
        private: Some(8 << 10),
        zero: Some(4 << 10),
        huge: Some(0),
        folios: Some(vec![
            LargeFolios { order: 9, size: 2 << 20, mapped: HowMapped::Pmd, bytes: 4 << 20, partly: 0, unaligned: 0 },
            LargeFolios {
                order: 4,
                size: 64 << 10,
                mapped: HowMapped::Pte,
                bytes: 100 << 10,
                partly: 36 << 10,
                unaligned: 64 << 10,
            },
        ]),
        states: BTreeMap::from([(State::Present, 3), (State::Untouched, 29)]),
        at: Some(RegionPlace {
            address: va(0x555555558010),
            region_offset: 0x10,
            file_offset: Some(Hex(0x3010)),
            section: Some(Name::from(".data")),
            symbol: Some(counter()),
        }),
        pss: Some(10 << 10),
        vm_flags: Some(vec![
            VmFlag { code: "rd".into(), meaning: "readable" },
            VmFlag { code: "wr".into(), meaning: "writable" },
            VmFlag { code: "ac".into(), meaning: "counted against the overcommit limit" },
        ]),
        protection_key: Some(1),
        smaps: Some(Numbers(vec![
            ("Size".into(), 128 << 10),
            ("Rss".into(), 12 << 10),
            ("Shared_Clean".into(), 0),
            ("Locked".into(), 0),
        ])),
        changed: true,
        why: Why::default(),
        ..region_row()
    }
}
