//! Answers within a budget of steps: each is whole, or says that it was given up. A shorter answer would be taken for
//! a whole one.

use crate::elf::{BASE, LENT, region, with_names};
use crate::program::{self, TEXT};
use pmdb::budget::Budget;
use pmdb::kernel::VirtualAddress;
use pmdb::symbol::{Symbols, TargetSymbols};
use std::fmt::Debug;

/// An answer as text, or `None` if it was given up.
type Answer = Option<String>;

/// The text of an answer, unless it says that something was given up.
fn whole(answer: impl Debug) -> Answer {
    Some(format!("{answer:?}")).filter(|text| !text.contains("TooCostly"))
}

/// Every question, and for each its answer in a new session: what one question has read is not kept for the next.
fn answers(bytes: &[u8], steps: Option<u64>) -> Vec<(String, Answer)> {
    let regions = [region(BASE, 77, "/usr/bin/server"), region(LENT, 0, "[vdso]")];
    let ask = |question: &dyn Fn(&TargetSymbols) -> Answer| {
        let budget = steps.map_or(Budget::unlimited(), |steps| Budget::unlimited().at_most(steps));
        with_names(bytes, &Symbols::with_budget(budget), &regions, question)
    };
    let mut all = Vec::new();
    for (base, into) in [(BASE, 0), (BASE, 0x16), (BASE, 0x40), (BASE, 0x100), (BASE, 0x113), (LENT, 0x40)] {
        let address = VirtualAddress::new(base + TEXT + into);
        // Of one address only a name tells that the search was not given up.
        all.push((format!("the symbol at {address}"), ask(&|names| whole(names.at(address)?))));
        all.push((format!("the section of {address}"), ask(&|names| whole(names.section_at(address)?))));
        all.push((format!("the line of {address}"), ask(&|names| whole(names.line_at(address).ok()?))));
    }
    for name in ["shapes::area", "clock", "clock@V_1.2", "environ", "malloc", "clock@plt", "clock@got.plt", "none"] {
        all.push((format!("places of {name}"), ask(&|names| whole(names.find(None, name)))));
    }
    all.push(("a version".into(), ask(&|names| whole(names.find(Some("server"), "data@V1")))));
    all.push(("a file address".into(), ask(&|names| whole(names.address_in("server", TEXT)))));
    for file in ["server.c", "/src/server.c"] {
        all.push((format!("a line of {file}"), ask(&|names| whole(names.find_line(file, 3, 10).ok()?))));
    }
    let matching = ask(&|names| {
        let is_wanted = |name: &str| name.contains('a');
        whole(names.matching(&is_wanted, 100).collect::<Result<Vec<_>, _>>().ok()?)
    });
    all.push(("all names".into(), matching));
    let surveyed = ask(&|names| whole(names.surveys().collect::<Result<Vec<_>, _>>().ok()?));
    all.push(("the modules".into(), surveyed));
    all
}

pub fn run() {
    for (what, _, bytes) in program::all() {
        let unlimited = answers(&bytes, None);
        let mut given_up = 0;
        let mut steps = 0;
        loop {
            let mut is_whole = true;
            for ((question, answer), (_, whole)) in answers(&bytes, Some(steps)).iter().zip(&unlimited) {
                assert!(
                    answer.is_none() || answer == whole,
                    "{what}, {question}, {steps} steps: {answer:?}, not {whole:?}"
                );
                given_up += u64::from(answer.is_none() && whole.is_some());
                is_whole &= answer == whole;
            }
            if is_whole {
                break;
            }
            assert!(steps < 1 << 24, "{what}: never enough steps");
            steps += 1 + steps / 16;
        }
        assert!(given_up > 100, "{what}: few steps were enough");
    }
}
