//! Accesses to memory that is registered with a userfaultfd.

use super::super::Test;
use super::super::puppet::Puppet;
use super::super::support::{page_bytes, skip};
use super::Access::{Read, Write};
use super::makes;
use pmdb::report::Effect;

pub const TESTS: &[Test] = &[
    ("explain::userfaults_that_take_note", userfaults_that_take_note),
    ("explain::userfaults_with_a_handler", userfaults_with_a_handler),
    ("explain::userfaults_of_shared_memory", userfaults_of_shared_memory),
];

fn userfaults_that_take_note() {
    const NAME: &str = "explain::userfaults_that_take_note";
    let page = page_bytes();
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 4);
    puppet.writes(memory, 1);
    let zeros = memory + 2 * page;
    puppet.reads(zeros, 1);
    let answer = puppet.asks("uffd", &[memory, 4 * page, 3 * page]);
    if answer < 0 {
        return skip(NAME, &format!("userfaultfd: error {}", -answer));
    }
    makes(&mut puppet, "write-protected", memory, Read, Effect::Nothing);
    makes(&mut puppet, "write-protected", memory, Write, Effect::Unprotect);
    makes(&mut puppet, "write-protected, written", memory, Write, Effect::Nothing);
    makes(&mut puppet, "marker", memory + page, Read, Effect::Zeros);
    makes(&mut puppet, "write-protected zero page", zeros, Read, Effect::Nothing);
    makes(&mut puppet, "write-protected zero page", zeros, Write, Effect::Zeros);
    makes(&mut puppet, "write-protected zero page, written", zeros, Write, Effect::Nothing);
    let last = memory + 3 * page;
    makes(&mut puppet, "registered, not protected", last, Write, Effect::Zeros);
}

fn userfaults_with_a_handler() {
    const NAME: &str = "explain::userfaults_with_a_handler";
    for mode in [1, 2] {
        let mut puppet = Puppet::start();
        let memory = puppet.maps("anonymous", 2);
        if mode == 2 {
            puppet.writes(memory, 2);
        }
        let answer = puppet.asks("handled", &[memory, page_bytes(), mode]);
        if answer < 0 {
            return skip(NAME, &format!("userfaultfd: error {}", -answer));
        }
        match mode {
            1 => {
                makes(&mut puppet, "missing page", memory, Read, Effect::Notify);
            }
            _ => {
                makes(&mut puppet, "protected page", memory, Read, Effect::Nothing);
                makes(&mut puppet, "protected page", memory, Write, Effect::Notify);
                makes(&mut puppet, "no longer protected", memory, Write, Effect::Nothing);
            }
        }
    }
}

/// In shared memory a fault on a page that nobody has is missing; on a page that the object has it is minor.
fn userfaults_of_shared_memory() {
    const NAME: &str = "explain::userfaults_of_shared_memory";
    const MISSING: u64 = 1;
    const MINOR: u64 = 4;
    for mode in [MISSING, MINOR] {
        let mut puppet = Puppet::start();
        let memory = puppet.maps("memfd", 2);
        puppet.writes(memory, 1);
        puppet.advises(memory, 1, libc::MADV_DONTNEED).expect("to unmap the page");
        let answer = puppet.asks("handled", &[memory, 2 * page_bytes(), mode]);
        if answer < 0 {
            return skip(NAME, &format!("userfaultfd: error {}", -answer));
        }
        let (cached, hole) = match mode {
            MISSING => (Effect::MapCached, Effect::Notify),
            _ => (Effect::Notify, Effect::Zeros),
        };
        makes(&mut puppet, "cached", memory, Read, cached);
        let told = puppet.asks("told", &[]);
        assert_eq!(told > 0, mode == MINOR, "of what is cached: {told}");
        makes(&mut puppet, "a hole", memory + page_bytes(), Read, hole);
        assert_eq!(puppet.asks("told", &[]), 1);
    }
}
