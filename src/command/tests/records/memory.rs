//! Samples of `x`, `find` and `telescope`.

use super::pages::permissions;
use crate::kernel::VirtualAddress;
use crate::report::*;

pub fn brief(name: &str, offset: u64) -> SymbolBrief {
    SymbolBrief { name: name.into(), offset, module: "libc.so.6".into() }
}

pub fn why_uncertain(field: &'static str) -> Why {
    let mut why = Why::default();
    let reason = Reason::not_permitted("not certain: the entry is hidden; it may be in swap");
    why.note(field, &reason);
    why
}

pub fn libc() -> RegionBrief {
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
