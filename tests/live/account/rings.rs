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
/// Where a mapping has the submissions (`IORING_OFF_SQES`).
const SUBMISSIONS_AT: libc::off_t = 0x1000_0000;

/// Three rings: of the second one page is mapped, of the third all. Announces the descriptors and the bytes of one, or
/// nothing where the kernel gives none.
fn rings() {
    let mut parameters = [[0u32; 30]; 3];
    let made = parameters.each_mut().map(|parameters| {
        // SAFETY: the kernel reads and writes 120 bytes.
        unsafe { libc::syscall(libc::SYS_io_uring_setup, ENTRIES, parameters.as_mut_ptr()) as i32 }
    });
    if made.iter().any(|number| *number < 0) {
        return announce("");
    }
    let (page, [parameters, ..]) = (page_bytes(), parameters);
    let (submissions, array) = (u64::from(parameters[SUBMISSIONS]), u64::from(parameters[ARRAY]));
    let [ring, entries] = [array + 4 * submissions, 64 * submissions].map(|bytes| bytes.next_multiple_of(page));
    let maps = |descriptor: i32, bytes: u64, at: libc::off_t| {
        // SAFETY: new memory of a ring of our own.
        let start = unsafe {
            let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
            libc::mmap(std::ptr::null_mut(), bytes as usize, rights, flags, descriptor, at)
        };
        assert_ne!(start, libc::MAP_FAILED);
    };
    maps(made[1], page, 0);
    maps(made[2], ring, 0);
    maps(made[2], entries, SUBMISSIONS_AT);
    let numbers = made.map(|number| number.to_string()).join(" ");
    announce(format!("{numbers} {}", ring + entries));
    wait();
}

/// A ring has a row for what of it is not mapped; one that is mapped whole has none.
pub fn a_ring_that_is_not_mapped() {
    let name = "account::a_ring_that_is_not_mapped";
    let mut target = Target::start("rings", &[]);
    let &[lone, in_part, whole, bytes] = &target.numbers()[..] else {
        return skip(name, "the kernel gives no io_uring");
    };
    let found = records(target.pid(), "account");
    let rings: Vec<&Value> =
        of_type(&found, "account-object").into_iter().filter(|row| row["kind"] == "io_uring").collect();
    let of = |descriptor: u64| {
        let holds = |row: &&&Value| {
            row["holders"].as_array().is_some_and(|all| all.iter().any(|one| one["descriptor"] == descriptor))
        };
        rings.iter().find(holds)
    };
    assert_eq!(of(whole), None);
    let Some(row) = of(lone) else {
        let summary = of_type(&found, "account-summary")[0];
        assert!(support::release() < (5, 16), "{summary}");
        return skip(name, "the kernel does not show how many entries a ring has");
    };
    assert_eq!(row["mapped"], 0);
    let shown = super::command::bytes(row);
    assert!((bytes..=2 * bytes + 2 * page_bytes()).contains(&shown), "{shown} for {bytes}");
    assert_eq!(row["at_most"], true);
    let part = of(in_part).expect("a row");
    assert_eq!((&part["mapped"], &part["bytes"]), (&Value::from(page_bytes()), &row["bytes"]), "{part}");
}
