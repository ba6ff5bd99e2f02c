//! Samples of `x`, `find` and `telescope`.

use super::pages::permissions;
use crate::kernel::{Kind, State, VirtualAddress};
use crate::report::*;
use std::collections::BTreeMap;

fn brief(name: &str, offset: u64) -> SymbolBrief {
    SymbolBrief { name: name.into(), offset, module: "libc.so.6".into() }
}

pub fn memory() -> Memory {
    let bytes: Vec<u8> = [0x7fff_f7de_80c0u64, 0x10].iter().flat_map(|word| word.to_le_bytes()).collect();
    Memory {
        address: VirtualAddress::new(0x7fff_f7fa_c010),
        symbol: Some(brief("__malloc_hook", 0)),
        length: 16,
        format: "a",
        unit: 8,
        bytes: Some(Bytes(bytes)),
        values: vec!["0x7ffff7de80c0".into(), "0x10".into()],
        symbols: vec![Some(brief("malloc", 16)), None],
        source: Some("memory"),
        faulted: false,
        state: State::Present,
        kind: None,
        unread: None,
        cut_by: None,
        why: Why::default(),
    }
}

pub fn memory_of_file() -> Memory {
    Memory {
        address: VirtualAddress::new(0x7fff_f7de_80c4),
        symbol: Some(brief("malloc", 20)),
        length: 4,
        format: "x",
        unit: 1,
        bytes: Some(Bytes(vec![0x48, 0x8b, 0x05, 0])),
        values: ["0x48", "0x8b", "0x05", "0x00"].map(str::to_owned).into(),
        symbols: Vec::new(),
        source: Some("file"),
        state: State::Untouched,
        ..memory()
    }
}

pub fn memory_of_text() -> Memory {
    Memory {
        address: VirtualAddress::new(0x7fff_ffff_e010),
        symbol: None,
        length: 6,
        format: "s",
        unit: 1,
        bytes: Some(Bytes(b"h\x1bllo\0".into())),
        values: vec![r#""h\033llo""#.into()],
        symbols: Vec::new(),
        ..memory()
    }
}

pub fn memory_untouched() -> Memory {
    Memory {
        address: VirtualAddress::new(0x5555_5557_9000),
        symbol: None,
        length: 8192,
        bytes: None,
        values: Vec::new(),
        symbols: Vec::new(),
        source: None,
        state: State::Untouched,
        kind: Some(Kind::Anonymous),
        ..memory_of_file()
    }
}

pub fn memory_faulted() -> Memory {
    Memory { faulted: true, source: Some("memory"), state: State::Swapped, ..memory_of_file() }
}

pub fn memory_unread() -> Memory {
    Memory {
        length: 1,
        state: State::Present,
        kind: Some(Kind::DeviceMemory),
        unread: Some("the kernel does not read it"),
        ..memory_untouched()
    }
}

fn why_uncertain(field: &'static str) -> Why {
    let mut why = Why::default();
    let reason = Reason::not_permitted("not certain: the entry is hidden; it may be in swap");
    why.note(field, &reason);
    why
}

pub fn uncertain_memory() -> Memory {
    Memory { state: State::Swapped, kind: None, why: why_uncertain("state"), ..memory_untouched() }
}

pub fn memory_of_text_cut() -> Memory {
    Memory {
        bytes: Some(Bytes(b"h\x1bllo".into())),
        length: 5,
        cut_by: Some(State::Swapped),
        why: why_uncertain("cut_by"),
        ..memory_of_text()
    }
}

fn libc() -> RegionBrief {
    RegionBrief {
        start: VirtualAddress::new(0x7fff_f7dc_0000),
        end: VirtualAddress::new(0x7fff_f7de_9000),
        perms: permissions("rx"),
        offset: Hex(0),
        name: "/usr/lib/libc.so.6".into(),
        deleted: false,
        without_path: false,
    }
}

pub fn place_found() -> Match {
    Match {
        address: VirtualAddress::new(0x7fff_f7de_80c4),
        symbol: Some(brief("malloc", 20)),
        region: Some(libc()),
        source: "memory",
    }
}

pub fn place_found_in_file() -> Match {
    Match { source: "file", ..place_found() }
}

pub fn patch() -> Patch {
    Patch {
        address: VirtualAddress::new(0x7fff_f7de_80c4),
        length: 1,
        symbol: Some(brief("malloc", 20)),
        memory: Some(Bytes(vec![0xcc])),
        file: Some(Bytes(vec![0x55])),
        file_offset: Hex(0x280c4),
        breakpoint: Some("int3"),
        region: libc(),
    }
}

pub fn patch_of_many() -> Patch {
    Patch {
        length: 20,
        memory: Some(Bytes(vec![0x90; 20])),
        file: Some(Bytes((0..20).collect())),
        breakpoint: None,
        ..patch()
    }
}

pub fn patch_taken_back() -> Patch {
    Patch {
        address: VirtualAddress::new(0x7fff_f7de_8000),
        length: 8192,
        symbol: None,
        memory: None,
        file: None,
        file_offset: Hex(0x28000),
        breakpoint: None,
        ..patch()
    }
}

pub fn patched_summary() -> PatchedSummary {
    let mut why = Why::default();
    let reason = Reason::NotInFile("swapped pages are not read".into());
    why.note("uncompared", &reason);
    PatchedSummary {
        private_copies: 4,
        equal: 2,
        stretches: 2,
        bytes: 21,
        breakpoints: 1,
        uncompared: 1,
        cut_short: true,
        why,
    }
}

pub fn find_summary() -> FindSummary {
    FindSummary {
        matches: 1,
        searched: 132 << 10,
        unread: 0,
        cached: 4,
        cache_unread: 0,
        why: Why::default(),
        cut_short: false,
        states: EveryState(BTreeMap::from([(State::Present, 33), (State::Untouched, 31), (State::Swapped, 1)])),
    }
}

pub fn find_summary_early() -> FindSummary {
    FindSummary {
        matches: 4096,
        unread: 2,
        cached: 0,
        cache_unread: 3,
        why: cache_unread(),
        cut_short: true,
        states: EveryState(BTreeMap::from([(State::Present, 35), (State::Untouched, 3)])),
        ..find_summary()
    }
}

fn cache_unread() -> Why {
    let mut why = Why::default();
    let reason = Reason::not_permitted("may not ask what the page cache holds of libc.so.6");
    why.note("cache_unread", &reason);
    why
}

fn link(symbol: Option<SymbolBrief>, address: u64, value: Option<u64>) -> Link {
    Link {
        address: VirtualAddress::new(address),
        region: libc(),
        symbol,
        state: State::Present,
        source: Some("memory"),
        value: value.map(Hex),
        text: None,
        why: Why::default(),
    }
}

pub fn telescope() -> Telescope {
    Telescope {
        address: VirtualAddress::new(0x7fff_ffff_e010),
        offset: 8,
        symbol: None,
        value: Some(Hex(0x7fff_f7de_80c0)),
        state: State::Present,
        source: Some("memory"),
        chain: vec![
            link(Some(brief("malloc", 16)), 0x7fff_f7de_80c0, Some(0x7fff_f7de_8000)),
            link(None, 0x7fff_f7de_8000, Some(0x41)),
        ],
        ends: "value",
        why: Why::default(),
    }
}

pub fn telescope_text() -> Telescope {
    let mut row = telescope();
    row.chain.truncate(1);
    if let Some(link) = row.chain.last_mut() {
        link.text = Some(r#""hello\n""#.into());
    }
    row.ends = "text";
    row
}

pub fn telescope_of_file() -> Telescope {
    let mut row = telescope();
    (row.source, row.state) = (Some("file"), State::Untouched);
    if let Some(link) = row.chain.last_mut() {
        (link.source, link.state) = (Some("file"), State::Untouched);
    }
    row
}

pub fn telescope_cycle() -> Telescope {
    let mut row = telescope();
    if let Some(link) = row.chain.last_mut() {
        link.value = Some(Hex(0x7fff_f7de_80c0));
    }
    row.ends = "cycle";
    row
}

pub fn telescope_swapped() -> Telescope {
    let mut row = telescope();
    if let Some(link) = row.chain.last_mut() {
        link.value = None;
        link.source = None;
        link.state = State::Swapped;
        link.why = why_uncertain("state");
    }
    row.ends = "unread";
    row
}
