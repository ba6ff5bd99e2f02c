//! Descriptions of kernel structures, and questions about them.

#[path = "../../src/kernel/btf/tests/made.rs"]
mod made;

use made::{Made, kernel};
use pmdb::budget::{Budget, OutOfBudget};
use pmdb::kernel::btf::{BadBtf, Layout};
use std::fmt::Write;

/// A small kernel in both byte orders, the same with the sizes of kinds and a kind that does not exist yet, and types
/// that refer to themselves.
fn all() -> Vec<(Vec<u8>, u32)> {
    let mut newer = kernel(false);
    newer.future();
    let mut cycles = Made::new(false);
    cycles.reference("page", 8, 1);
    cycles.array(2, 3);
    cycles.structure("page", 4, 8, &[("", 3, 0), ("flags", 1, 0), ("index", 2, 64)]);
    let plain = [kernel(false), kernel(true), cycles];
    let plain = plain.iter().map(|made| (made.bytes(), made.count()));
    plain.chain([(newer.with_kinds(), newer.count())]).collect()
}

pub fn seeds() -> Vec<Vec<u8>> {
    let seeds = all().into_iter().map(|(bytes, _)| bytes);
    let is_sound = |bytes: &Vec<u8>| Layout::parse(bytes.clone(), &mut Budget::unlimited()).is_ok();
    seeds.inspect(|bytes| assert!(is_sound(bytes))).collect()
}

/// Every question that a seed answers, and its answer.
fn answers(layout: &Layout) -> String {
    let mut text = String::new();
    let members = ["flags", "mapping", "_refcount.counter", "page.lru.prev", "slots", "low", "next", "field", "other"];
    for structure in ["page", "folio", "node", "packed", "old", "twice", "list_head"] {
        _ = write!(text, "{structure} {:?} ", layout.size_of(structure));
        for name in members {
            let member = layout.member(structure, name);
            let values = member.map(|member| [[0xa5; 64].as_slice(), &[]].map(|bytes| layout.value(member, bytes)));
            _ = write!(text, "{name} {member:?} {values:?} ");
        }
    }
    for (enumeration, name) in [("pageflags", "PG_head"), ("state", "GONE"), ("wide", "HIGH"), ("page", "flags")] {
        _ = write!(text, "{name} {:?} ", layout.enumerator(enumeration, name));
    }
    text
}

pub fn feed(bytes: &[u8]) {
    if let Ok(layout) = Layout::parse(bytes.to_vec(), &mut Budget::unlimited()) {
        _ = answers(&layout);
    }
}

/// With fewer steps than types there is no layout; with as many it is whole.
pub fn within_budget() {
    for (bytes, types) in all() {
        let parsed = |budget| Layout::parse(bytes.clone(), &mut { budget });
        let whole = answers(&parsed(Budget::unlimited()).expect("a layout"));
        for steps in 0..types {
            let error = parsed(Budget::unlimited().at_most(steps.into())).err();
            assert_eq!(error, Some(BadBtf::GivenUp(OutOfBudget::Steps)), "{steps} steps");
        }
        let layout = parsed(Budget::unlimited().at_most(types.into())).expect("a layout");
        assert_eq!(answers(&layout), whole);
    }
}
