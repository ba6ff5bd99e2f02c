//! Samples of `x`.

use crate::kernel::{Kind, State, VirtualAddress};
use crate::report::*;

fn brief(name: &str, offset: u64) -> SymbolBrief {
    SymbolBrief {
        name: name.into(),
        offset,
        module: "libc.so.6".into(),
    }
}

pub fn memory() -> Memory {
    let bytes: Vec<u8> = [0x7fff_f7de_80c0u64, 0x10]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    Memory {
        address: VirtualAddress::new(0x7fff_f7fa_c010),
        symbol: Some(brief("__malloc_hook", 0)),
        length: 16,
        format: "a",
        unit: 8,
        bytes: Some(bytes),
        values: vec!["0x7ffff7de80c0".into(), "0x10".into()],
        symbols: vec![Some(brief("malloc", 16)), None],
        source: Some("memory"),
        faulted: false,
        state: State::Present,
        kind: None,
        unread: None,
    }
}

pub fn memory_of_file() -> Memory {
    Memory {
        address: VirtualAddress::new(0x7fff_f7de_80c4),
        symbol: Some(brief("malloc", 20)),
        length: 4,
        format: "x",
        unit: 1,
        bytes: Some(vec![0x48, 0x8b, 0x05, 0]),
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
        bytes: Some(b"h\x1bllo\0".into()),
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
    Memory {
        faulted: true,
        source: Some("memory"),
        state: State::Swapped,
        ..memory_of_file()
    }
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
