//! Accesses to pages of the hugetlb pool, and to large folios that a child has copied in part.

use super::super::Test;
use super::super::access::Felt;
use super::super::puppet::Puppet;
use super::super::support::{self, huge_page_bytes, page_bytes, plain_entry, pool_page_bytes, skip};
use super::super::system;
use super::Access::{self, Read, Write};
use super::{makes, said};
use pmdb::report::{Effect, Owner};

pub const TESTS: &[Test] = &[
    ("explain::the_huge_page_pool", the_huge_page_pool),
    ("explain::a_file_of_the_pool", a_file_of_the_pool),
    ("explain::a_pool_that_promised_nothing", a_pool_that_promised_nothing),
    ("explain::a_folio_copied_in_part", a_folio_copied_in_part),
    ("explain::a_huge_page_at_once", a_huge_page_at_once),
];

/// Has the puppet make an access, and compares the likeliest and all reported effects with what happened.
fn happens(puppet: &mut Puppet, what: &str, address: u64, access: Access, effects: &[Effect], is: Effect) {
    let target = puppet.0.attach();
    let (outcome, _) = said(&target, address, access);
    let before = plain_entry(puppet.0.pid(), address);
    let verb = match access {
        Read => "load",
        Write => "store",
    };
    let felt = Felt::from_answer(puppet.asks(verb, &[address]));
    println!("{what}: {access:?} said {:?}, felt {felt:?}", outcome.effects);
    if let Felt::Signal(signal) = felt {
        assert_eq!((signal, is), (libc::SIGBUS, Effect::PoolEmpty), "{what}");
    } else {
        let after = plain_entry(puppet.0.pid(), address);
        let stayed = before == after;
        let happened = match felt {
            Felt::Faults { minor: 0, major: 0 } if stayed => Effect::Nothing,
            Felt::Faults { minor: 1, major: 0 } if before.is_some_and(|entry| entry >> 63 == 0) => is,
            Felt::Faults { minor: 1, major: 0 } if stayed => Effect::Reuse,
            Felt::Faults { minor: 1, major: 0 } => Effect::Copy,
            other => panic!("{what}: {other:?}"),
        };
        assert_eq!(happened, is, "{what}");
    }
    assert!(outcome.effects.contains(&is), "{what}: {outcome:?}");
    if support::is_root() {
        assert_eq!(support::certain(&outcome.effects, effects), effects, "{what}");
    }
}

fn the_huge_page_pool() {
    const NAME: &str = "explain::the_huge_page_pool";
    let pool = match system::huge_pages() {
        Ok(pool) => pool,
        Err(reason) => return skip(NAME, &reason),
    };
    let Some(bytes) = huge_page_bytes() else {
        return skip(NAME, "no size of huge pages");
    };
    let mut puppet = Puppet::start();
    let answer = puppet.asks("hugetlb", &[bytes]);
    let Ok(memory) = u64::try_from(answer) else {
        return skip(NAME, &format!("error {}", -answer));
    };
    makes(&mut puppet, "hugetlb, untouched", memory, Write, Effect::Zeros);
    let tail = memory + 5 * page_bytes();
    let own: &[Effect] = &[Effect::Nothing, Effect::Reuse];
    let (_, owner) = said(&puppet.0.attach(), tail, Write);
    assert_eq!(owner, Some(Owner::Sole));
    happens(&mut puppet, "hugetlb", tail, Write, own, Effect::Nothing);
    let child = puppet.does("fork", &[memory, 0]);
    let owner = makes(&mut puppet, "hugetlb after fork", tail, Write, Effect::Copy);
    assert_eq!(owner, Some(Owner::CopyOnWrite));
    puppet.does("kill", &[child]);
    drop(puppet);
    drop(pool);
}

/// A page that the file has is mapped, and is no zero page. A private page that was only read is not writable yet.
fn a_file_of_the_pool() {
    const NAME: &str = "explain::a_file_of_the_pool";
    let pool = match system::huge_pages() {
        Ok(pool) => pool,
        Err(reason) => return skip(NAME, &reason),
    };
    let bytes = pool_page_bytes();
    let mut puppet = Puppet::start();
    let answer = puppet.asks("pooled", &[bytes, libc::MAP_SHARED as u64]);
    let Ok(first) = u64::try_from(answer) else {
        return skip(NAME, &format!("error {}", -answer));
    };
    let again = |puppet: &mut Puppet, flags: i32| puppet.does("pooled_again", &[bytes, flags as u64]);
    let second = again(&mut puppet, libc::MAP_SHARED);
    makes(&mut puppet, "nobody has it", first, Write, Effect::Zeros);
    makes(&mut puppet, "the file has it", second, Read, Effect::MapCached);
    let private = again(&mut puppet, libc::MAP_PRIVATE);
    makes(&mut puppet, "the file has it, private", private, Read, Effect::MapCached);
    drop(puppet);
    let mut puppet = Puppet::start();
    let memory = puppet.maps("hugetlb", bytes / page_bytes());
    makes(&mut puppet, "one's own, read", memory, Read, Effect::Zeros);
    let own: &[Effect] = &[Effect::Nothing, Effect::Reuse];
    happens(&mut puppet, "one's own, first write", memory, Write, own, Effect::Reuse);
    drop(puppet);
    drop(pool);
}

/// MAP_NORESERVE takes pages that are not reserved, and there are none.
fn a_pool_that_promised_nothing() {
    const NAME: &str = "explain::a_pool_that_promised_nothing";
    let pool = match system::huge_pages() {
        Ok(pool) => pool,
        Err(reason) => return skip(NAME, &reason),
    };
    let bytes = pool_page_bytes();
    let mut puppet = Puppet::start();
    // All pages are reserved for another mapping.
    while puppet.asks("hugetlb", &[bytes]) > 0 {}
    let memory = match puppet.maps_unreserved(bytes) {
        Ok(memory) => memory,
        Err(error) => return skip(NAME, &format!("error {error}")),
    };
    let empty: &[Effect] = &[Effect::PoolEmpty, Effect::Zeros];
    happens(&mut puppet, "nothing to spare", memory, Write, empty, Effect::PoolEmpty);
    drop(puppet);
    drop(pool);
}

/// While the child maps any page of it, no page is reused.
fn a_folio_copied_in_part() {
    const NAME: &str = "explain::a_folio_copied_in_part";
    let (mut puppet, memory, _) = match Puppet::with_huge_page() {
        Ok(made) => made,
        Err(reason) => return skip(NAME, reason),
    };
    if !support::is_root() {
        return skip(NAME, "inside huge pages it takes flags and counts to tell");
    }
    puppet.does("fork", &[memory, 1]);
    makes(&mut puppet, "the child copied it and has the rest", memory, Write, Effect::Copy);
}

/// One access to one page, and all of the huge page is there; after a read, of the huge zero page.
fn a_huge_page_at_once() {
    const NAME: &str = "explain::a_huge_page_at_once";
    const SETTING: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    let Some(bytes) = huge_page_bytes() else {
        return skip(NAME, "no transparent huge pages");
    };
    let _machine = system::as_it_is();
    let setting = std::fs::read_to_string(SETTING).unwrap_or_default();
    if setting.contains("[never]") {
        return skip(NAME, "transparent huge pages are switched off");
    }
    let pages = bytes / page_bytes();
    let first: &[Effect] = &[Effect::HugeZeros, Effect::Zeros];
    let mut puppet = Puppet::start();
    let pid = puppet.0.pid();
    let is_there = |page: u64| plain_entry(pid, page).is_some_and(|entry| entry >> 63 == 1);
    let written = puppet.maps("huge", pages);
    let read = puppet.maps("huge", pages);
    let mut came = 0;
    for (what, memory, access) in
        [("first touch, a read", read, Read), ("after the read", read, Write), ("first touch, a write", written, Write)]
    {
        let at = memory + 9 * page_bytes();
        let (outcome, _) = said(&puppet.0.attach(), at, access);
        let before = plain_entry(pid, at);
        let verb = match access {
            Read => "load",
            Write => "store",
        };
        let felt = Felt::from_answer(puppet.asks(verb, &[at]));
        let whole = (0..pages).all(|page| is_there(memory + page * page_bytes()));
        println!("{what}: said {:?}, felt {felt:?}, whole {whole}", outcome.effects);
        assert_eq!(felt, Felt::Faults { minor: 1, major: 0 }, "{what}");
        assert_ne!(plain_entry(pid, at), before, "{what}");
        // After a read that brought the small zero page, nothing huge can come.
        match (access, memory == read, came) {
            (Write, true, 0) => assert_eq!(outcome.effects, [Effect::Zeros], "{what}"),
            // Without the right to flags and map counts the huge zero page looks like others.
            (Write, true, _) if !support::is_root() => {
                assert!(outcome.effects.contains(&Effect::HugeZeros) || !support::has_scan());
            }
            (Write, true, _) => assert!(outcome.effects.contains(&Effect::Zeros), "{what}"),
            _ => assert_eq!(outcome.effects, first, "{what}"),
        }
        came += usize::from(whole);
    }
    // A stretch with a small page gets no huge page.
    let (outcome, _) = said(&puppet.0.attach(), written + page_bytes(), Write);
    assert!(came > 0 || !outcome.effects.contains(&Effect::HugeZeros));
    if came == 0 {
        skip(NAME, "no huge page was free");
    }
}
