//! Pages of the hugetlb pool that are reserved for a mapping and for a file, and not touched.

use super::command::{of_type, records};
use super::*;
use crate::Scenario;
use crate::puppet::mapped;
use crate::support::{is_root, pool_page_bytes};
use crate::target::{announce, wait};
use serde_json::Value;
use std::fs::File;
use std::os::fd::AsRawFd;

pub const SCENARIOS: &[Scenario] = &[("reserved-pages", |paths| reserved_pages(paths))];

/// Reserves a page for memory and one for a file of the pool; then the file gets its page.
fn reserved_pages(paths: &[String]) {
    let bytes = pool_page_bytes() as usize;
    let file = File::options().read(true).write(true).create_new(true).open(&paths[0]).expect("a file of the pool");
    file.set_len(bytes as u64).expect("its length");
    let maps = |flags: i32, file: i32| {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: new memory that nobody touches.
        mapped(unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, flags, file, 0) })
    };
    let memory = maps(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB, -1);
    let shared = maps(libc::MAP_SHARED, file.as_raw_fd());
    assert!(memory > 0 && shared > 0, "{memory} {shared}");
    announce("reserved");
    wait();
    // SAFETY: a file of our own.
    assert_eq!(unsafe { libc::fallocate64(file.as_raw_fd(), 0, 0, bytes as i64) }, 0);
    announce("allocated");
    wait();
}

/// Free and reserved pages of the pool.
fn plain_pool() -> [u64; 2] {
    let text = std::fs::read_to_string("/proc/meminfo").expect("counters");
    ["HugePages_Free:", "HugePages_Rsvd:"].map(|name| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a counter");
        line.trim().parse().expect("a number")
    })
}

/// The bytes of the object and of all classes of `account`, which the process has of the pool; and free and reserved
/// pages by `account frames`.
fn told(target: &Target) -> (Vec<(u64, u64)>, Option<[u64; 2]>) {
    let found = records(target.pid(), "account");
    let objects = of_type(&found, "account-object").into_iter().filter(|row| row["kind"] == "hugetlb");
    let number = |row: &Value, field: &str| row[field].as_u64().unwrap_or_else(|| panic!("no {field}: {row}"));
    let objects = objects.map(|row| (number(row, "bytes"), number(row, "mapped"))).collect();
    let pool = is_root().then(|| {
        let found = records(target.pid(), "account frames");
        let [machine] = of_type(&found, "account-machine")[..] else { panic!("{found:?}") };
        let pool = &machine["pool"];
        assert_eq!(number(pool, "page"), pool_page_bytes());
        ["free", "reserved"].map(|field| number(pool, field) / pool_page_bytes())
    });
    (objects, pool)
}

pub fn pages_that_are_reserved_are_nobodys() {
    const NAME: &str = "account::pages_that_are_reserved_are_nobodys";
    let folder = tempfile::tempdir().expect("a directory");
    let below = folder.path().join("pool");
    let pool = match crate::system::huge_files(&below) {
        Ok(pool) => pool,
        Err(reason) => return skip(NAME, &reason),
    };
    let before = plain_pool();
    let mut target = Target::start("reserved-pages", &[below.join("file").to_str().expect("text")]);
    assert_eq!(target.line(), "reserved");
    let expected = [before[0], before[1] + 2];
    assert_eq!(plain_pool(), expected);
    assert_eq!(told(&target), (Vec::new(), is_root().then_some(expected)));
    target.send("go");
    assert_eq!(target.line(), "allocated");
    let expected = [before[0] - 1, before[1] + 1];
    assert_eq!(plain_pool(), expected);
    assert_eq!(told(&target), (vec![(pool_page_bytes(), 0)], is_root().then_some(expected)));
    drop((target, pool));
}
