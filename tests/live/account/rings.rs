//! Memory of rings (io_uring).

use super::command::{of_type, records};
use super::*;
use crate::Scenario;
use crate::target::{announce, wait};
use serde_json::Value;

pub const SCENARIOS: &[Scenario] = &[("rings", |_| rings())];

/// Entries of each ring.
const ENTRIES: u32 = 4096;
/// Fields of `struct io_uring_params`: the number of submissions, and where the array of their numbers begins, which
/// is the last part of the ring.
const SUBMISSIONS: usize = 0;
const ARRAY: usize = 16;

/// Two rings, of which the second is mapped. Announces the descriptors and the bytes of one, or nothing where the
/// kernel gives none.
fn rings() {
    let mut parameters = [[0u32; 30]; 2];
    let made = parameters.each_mut().map(|parameters| {
        // SAFETY: the kernel reads and writes 120 bytes.
        unsafe { libc::syscall(libc::SYS_io_uring_setup, ENTRIES, parameters.as_mut_ptr()) as i32 }
    });
    if made.iter().any(|number| *number < 0) {
        return announce("");
    }
    let (page, [parameters, _]) = (page_bytes(), parameters);
    let (submissions, array) = (u64::from(parameters[SUBMISSIONS]), u64::from(parameters[ARRAY]));
    let bytes = (array + 4 * submissions).next_multiple_of(page) + (64 * submissions).next_multiple_of(page);
    // SAFETY: new memory of a ring of our own.
    let start = unsafe {
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        libc::mmap(std::ptr::null_mut(), page as usize, rights, flags, made[1], 0)
    };
    assert_ne!(start, libc::MAP_FAILED);
    announce(format!("{} {} {bytes}", made[0], made[1]));
    wait();
}

/// A ring that is not mapped has a row; another one is counted where it is mapped.
pub fn a_ring_that_is_not_mapped() {
    let name = "account::a_ring_that_is_not_mapped";
    let mut target = Target::start("rings", &[]);
    let &[lone, mapped, bytes] = &target.numbers()[..] else {
        return skip(name, "the kernel gives no io_uring");
    };
    let found = records(target.pid(), "account");
    let rings: Vec<&Value> =
        of_type(&found, "account-object").into_iter().filter(|row| row["kind"] == "io_uring").collect();
    let of = |descriptor: u64| {
        let holds = |row: &&&Value| row["holders"].as_array().is_some_and(|all| all[0]["descriptor"] == descriptor);
        rings.iter().find(holds)
    };
    assert_eq!(of(mapped), None);
    let Some(row) = of(lone) else {
        let summary = of_type(&found, "account-summary")[0];
        assert!(support::release() < (5, 16), "{summary}");
        return skip(name, "the kernel does not show how many entries a ring has");
    };
    let shown = super::command::bytes(row);
    assert!((bytes..=2 * bytes + 2 * page_bytes()).contains(&shown), "{shown} for {bytes}");
    assert_eq!(row["at_most"], true);
}
