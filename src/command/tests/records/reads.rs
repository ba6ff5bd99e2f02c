//! Samples of `--how`.

use crate::report::*;

pub fn read_of_words() -> KernelRead {
    KernelRead {
        file: "/proc/812/pagemap".into(),
        offset: Some(Hex(0x2aaaaaaac0)),
        length: Some(16),
        words: vec![Hex(0x8100_0000_001a_4eac), Hex(0)],
        what: "page-map entries from 0x555555558000 on".into(),
        found: None,
        times: 1,
        repeat: Some("xxd -s 0x2aaaaaaac0 -l 16 -c 8 -g 8 -e /proc/812/pagemap".into()),
    }
}

pub fn read_of_text() -> KernelRead {
    KernelRead {
        file: "/proc/zoneinfo".into(),
        offset: None,
        length: None,
        words: Vec::new(),
        what: "zones and nodes of frames".into(),
        found: Some("3 zones".into()),
        times: 2,
        repeat: Some("cat /proc/zoneinfo".into()),
    }
}

pub fn read_of_behind() -> KernelRead {
    KernelRead {
        file: "/proc/812/map_files/7ffff7dc0000-7ffff7de8000".into(),
        offset: Some(Hex(0x3000)),
        length: Some(4096),
        words: Vec::new(),
        what: "what is behind 0x7ffff7dc3000..0x7ffff7dc4000 (SEEK_DATA, cachestat)".into(),
        found: Some("contents, cached".into()),
        times: 1,
        repeat: None,
    }
}

pub fn reads_summary() -> ReadsSummary {
    ReadsSummary { reads: 3, more_reads: 0, more_words: 0, repeat: "xxd -s OFFSET -l 8 -c 8 -g 8 -e FILE".into() }
}

pub fn reads_summary_of_many() -> ReadsSummary {
    ReadsSummary { more_reads: 12, more_words: 40_000, ..reads_summary() }
}
