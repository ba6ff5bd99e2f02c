//! Objects in memory that have more pages than mappings show.

use super::command::{of_type, records};
use super::*;
use crate::Scenario;
use crate::puppet::{each_page, fork, mapped, memfd};
use crate::support::{plain_entries, plain_maps};
use crate::target::{announce, wait};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};

pub const SCENARIOS: &[Scenario] = &[("objects", |_| objects()), ("pool-object", |_| pool_object())];

/// Pages of the three memfds of one name.
const PAGES: [usize; 3] = [12, 5, 4];

/// A memfd with pages that were written through the descriptor.
fn filled(pages: usize) -> File {
    let file = File::from(memfd(pages * page_bytes() as usize));
    file.write_all_at(&vec![1; pages * page_bytes() as usize], 0).expect("room in memory");
    file
}

/// A mapping of some pages of it. A page that is read brings its neighbours in the same mapping along.
fn maps(file: &File, first: usize, pages: usize) -> usize {
    let page = page_bytes() as usize;
    let (rights, begin) = (libc::PROT_READ | libc::PROT_WRITE, (first * page) as i64);
    // SAFETY: new memory of a file of our own.
    let start =
        unsafe { libc::mmap64(std::ptr::null_mut(), pages * page, rights, libc::MAP_SHARED, file.as_raw_fd(), begin) };
    usize::try_from(mapped(start)).expect("memory")
}

fn writes(start: usize, pages: usize) {
    // SAFETY: memory of our own that nobody refers to.
    each_page(start, pages, |byte| unsafe { byte.write_volatile(2) });
}

/// Four processes with three memfds of one name: of the first the parent maps 3 pages and a child 4, one of them both;
/// the second is only open; of the third a child has all pages, and the parent none.
fn objects() {
    let [first, second, third] = PAGES.map(filled);
    let (of_first, again, of_third) = (maps(&first, 0, 3), maps(&first, 2, 4), maps(&third, 0, PAGES[2]));
    writes(of_first, 3);
    let children = [fork(again, 4), fork(of_third, PAGES[2]), fork(of_first, 0)];
    let descriptors = [&first, &second, &third].map(|file| file.as_raw_fd().to_string());
    announce(format!("{} {}", descriptors.join(" "), children.map(|child| child.to_string()).join(" ")));
    wait();
}

/// Two pages of the pool, one of them mapped; the number of the descriptor, or nothing.
fn pool_object() {
    let bytes = 2 * crate::support::pool_page_bytes() as usize;
    // SAFETY: a name that ends in zero.
    let number = unsafe { libc::memfd_create(c"pmdb-pool".as_ptr(), libc::MFD_HUGETLB) };
    if number < 0 {
        return announce("");
    }
    // SAFETY: the number is ours.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(number) });
    // SAFETY: a file of our own: both pages are taken from the pool now, or none.
    let given = unsafe { libc::fallocate64(number, 0, 0, bytes as i64) };
    if given != 0 {
        return announce("");
    }
    // SAFETY: new memory of that file.
    let start = unsafe {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap64(std::ptr::null_mut(), bytes, rights, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    writes(usize::try_from(mapped(start)).expect("memory"), 1);
    announce(number);
    wait();
}

/// What the rows of `account` must have of the objects behind these descriptors: inode, bytes and mapped bytes, read
/// without pmdb.
fn plain_objects(holder: u32, descriptors: &[u64], processes: &[u32]) -> BTreeSet<(u64, u64, u64)> {
    let of_one = |descriptor: &u64| {
        let file = std::fs::metadata(format!("/proc/{holder}/fd/{descriptor}")).expect("its file");
        let mut offsets = BTreeSet::new();
        for &pid in processes {
            for (start, end, rest) in plain_maps(pid) {
                let rest = String::from_utf8_lossy(&rest).into_owned();
                let mut fields = rest.split_whitespace().skip(1);
                let offset = u64::from_str_radix(fields.next().expect("an offset"), 16).expect("a number");
                if fields.nth(1) != Some(&file.ino().to_string()) {
                    continue;
                }
                let present = plain_entries(pid, start, end).into_iter().filter(|(_, word)| word >> 63 == 1);
                offsets.extend(present.map(|(page, _)| page * page_bytes() - start + offset));
            }
        }
        (file.ino(), file.blocks() * 512, offsets.len() as u64 * page_bytes())
    };
    descriptors.iter().map(of_one).collect()
}

fn rows(records: &[Value], inodes: &BTreeSet<(u64, u64, u64)>) -> BTreeSet<(u64, u64, u64)> {
    let number = |row: &Value, field: &str| row[field].as_u64().expect("a number");
    let rows = of_type(records, "account-object").into_iter();
    let rows = rows.map(|row| (number(row, "inode"), number(row, "bytes"), number(row, "mapped")));
    rows.filter(|(inode, ..)| inodes.iter().any(|(one, ..)| one == inode)).collect()
}

pub fn what_mappings_do_not_show() {
    let mut target = Target::start("objects", &[]);
    let numbers = target.numbers();
    let (descriptors, children) = numbers.split_at(3);
    let pid = target.pid();
    let page = page_bytes();
    let family: Vec<u32> = [pid].into_iter().chain(children.iter().map(|&child| child as u32)).collect();

    let alone = plain_objects(pid, descriptors, &[pid]);
    assert_eq!(alone.iter().map(|(.., mapped)| mapped / page).sum::<u64>(), 3);
    let found = records(pid, "account");
    assert_eq!(rows(&found, &alone), alone);
    let unmapped: u64 = alone.iter().map(|(_, bytes, mapped)| bytes - mapped).sum();
    let summary = of_type(&found, "account-summary")[0];
    assert!(summary["unmapped"].as_u64().expect("bytes") >= unmapped, "{summary}");
    let row = of_type(&found, "account-object").into_iter().find(|row| row["inode"] == alone.first().expect("one").0);
    assert_eq!(row.expect("its row")["kind"], "memfd");

    if !support::shows_frames() {
        return support::skip("account::what_mappings_do_not_show", "families need frame numbers");
    }
    let mut together = plain_objects(pid, descriptors, &family);
    assert_eq!(together.iter().map(|(.., mapped)| mapped / page).sum::<u64>(), 6 + PAGES[2] as u64);
    // Three memfds of one name are three rows, but the second is not mapped.
    let groups = records(pid, "account children by mapping");
    let of_memfds = of_type(&groups, "account-family-group").into_iter().filter_map(|row| {
        let inode = row["inode"].as_u64().filter(|inode| together.iter().any(|(one, ..)| one == inode))?;
        Some((inode, super::command::bytes(row), row["processes"].as_u64().expect("a number")))
    });
    // Of the first, the parent and one child have pages; of the third, one child.
    let expected =
        descriptors.iter().zip([2, 0, 1]).filter(|(_, processes)| *processes > 0).map(|(descriptor, processes)| {
            let (inode, _, mapped) = *plain_objects(pid, &[*descriptor], &family).first().expect("an object");
            (inode, mapped, processes)
        });
    assert_eq!(of_memfds.collect::<BTreeSet<_>>(), expected.collect());
    let summed = |by: &str| {
        let rows = records(pid, &format!("account children by {by}"));
        let sum: u64 = of_type(&rows, "account-family-group").into_iter().map(super::command::bytes).sum();
        (sum, super::command::bytes(of_type(&rows, "account-family")[0]))
    };
    for by in ["mapping", "node", "flags"] {
        let (sum, all) = summed(by);
        assert_eq!(sum, all, "by {by}");
    }

    // All pages of the third are mapped by one of them.
    together.retain(|(_, bytes, mapped)| bytes > mapped);
    let found = records(pid, "account children");
    assert_eq!(rows(&found, &together), together);
    let first =
        of_type(&found, "account-object").into_iter().find(|row| row["inode"] == together.first().expect("one").0);
    let holders = first.expect("its row")["holders"].as_array().expect("holders").len();
    assert!(holders >= family.len(), "each process has its descriptor");
}

/// Rss has no page of the pool, and its objects count all the same.
pub fn what_mappings_do_not_show_of_the_pool() {
    let name = "account::what_mappings_do_not_show_of_the_pool";
    let pool = match crate::system::huge_pages() {
        Ok(pool) => pool,
        Err(reason) => return support::skip(name, &reason),
    };
    let mut target = Target::start("pool-object", &[]);
    let Some(&descriptor) = target.numbers().first() else {
        return support::skip(name, "the hugetlb pool has no two free pages");
    };
    let pid = target.pid();
    let found = records(pid, "account");
    let rows = of_type(&found, "account-object");
    let inode = std::fs::metadata(format!("/proc/{pid}/fd/{descriptor}")).expect("its file").ino();
    let row = rows.into_iter().find(|row| row["inode"] == inode).expect("its row");
    let size = support::pool_page_bytes();
    assert_eq!(row["kind"], "hugetlb");
    assert_eq!([&row["bytes"], &row["mapped"]], [&Value::from(2 * size), &Value::from(size)]);
    drop((target, pool));
}
