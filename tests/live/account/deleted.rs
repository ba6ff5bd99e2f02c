//! Deleted files on disks that descriptors hold.

use super::command::{of_type, records};
use super::*;
use crate::Scenario;
use crate::puppet::mapped;
use crate::support::{plain_entries, plain_maps};
use crate::target::{announce, wait};
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;

pub const SCENARIOS: &[Scenario] = &[("deleted-files", |folder| deleted_files(Path::new(&folder[0])))];

/// Pages of the file, and those of them that are written. The others are a hole that nobody reads.
const PAGES: u64 = 256;
const WRITTEN: u64 = 100;

fn deleted(folder: &Path, name: &str) -> File {
    let path = folder.join(name);
    let mut file = File::options().read(true).write(true).create_new(true).open(&path).expect("a new file");
    file.write_all(&vec![7; (WRITTEN * page_bytes()) as usize]).expect("to write");
    file.set_len(PAGES * page_bytes()).expect("a hole");
    file.sync_all().expect("to save");
    std::fs::remove_file(&path).expect("to delete");
    file
}

/// Bytes of a file in the page cache, by mincore(2) of a mapping that is gone afterwards.
fn cached(file: &File) -> u64 {
    let length = (PAGES * page_bytes()) as usize;
    let mut residency = vec![0u8; PAGES as usize];
    // SAFETY: a new mapping of a file of our own without access, which nobody else refers to.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), length, libc::PROT_NONE, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_eq!(libc::mincore(start, length, residency.as_mut_ptr()), 0);
        libc::munmap(start, length);
    }
    residency.iter().filter(|byte| **byte & 1 != 0).count() as u64 * page_bytes()
}

/// Two deleted files: of one, pages are mapped and others are not cached; on the other is a lease. Announces the
/// descriptors, or 0 for the second, and for each line the cached bytes of the first.
fn deleted_files(folder: &Path) {
    let file = deleted(folder, "open");
    let leased = deleted(folder, "leased");
    // SAFETY: a new mapping, of which one page is read.
    unsafe {
        let page = page_bytes() as usize;
        let start = libc::mmap(std::ptr::null_mut(), 4 * page, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        std::ptr::with_exposed_provenance::<u8>(usize::try_from(mapped(start)).expect("memory")).read_volatile();
    }
    // SAFETY: a number of our own. SIGIO ends this process.
    let has_lease = unsafe { libc::fcntl(leased.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) } == 0;
    let second = if has_lease { leased.as_raw_fd() } else { 0 };
    announce(format!("{} {second}", file.as_raw_fd()));
    while wait().is_some() {
        announce(cached(&file));
    }
}

/// Bytes of a deleted file that a page table of the process has, found without pmdb.
fn in_page_tables(pid: u32, inode: u64) -> u64 {
    let of_file = plain_maps(pid).into_iter().filter(|(.., rest)| {
        let rest = String::from_utf8_lossy(rest);
        rest.split_whitespace().nth(3) == Some(&inode.to_string())
    });
    let present = of_file.flat_map(|(start, end, _)| plain_entries(pid, start, end));
    present.filter(|(_, word)| word >> 63 == 1).count() as u64 * page_bytes()
}

/// Only `full` opens them. A file with a lease on it is not opened.
pub fn what_deleted_files_have_in_the_page_cache() {
    let name = "account::what_deleted_files_have_in_the_page_cache";
    let folder = tempfile::tempdir().expect("a folder");
    let mut target = Target::start("deleted-files", &[folder.path().to_str().expect("UTF-8")]);
    let &[file, leased] = &target.numbers()[..] else {
        panic!("two descriptors");
    };
    let pid = target.pid();
    let mut cached = || {
        target.send("cached");
        target.numbers()[0]
    };
    let inode = |descriptor| {
        std::os::unix::fs::MetadataExt::ino(
            &std::fs::metadata(format!("/proc/{pid}/fd/{descriptor}")).expect("its file"),
        )
    };
    let of = |records: &[Value], inode: u64| {
        let mut rows = of_type(records, "account-object").into_iter();
        rows.find(|row| row["inode"] == inode).cloned()
    };
    let found = records(pid, "account");
    assert_eq!(of(&found, inode(file)).filter(|row| row["kind"] == "deleted_file"), None);
    // The kernel may reclaim pages at any time.
    let looks = (0..10).map(|_| (cached(), records(pid, "account full"), cached()));
    let mut looks = looks.filter(|(before, _, after)| before == after);
    let Some((cached, full, _)) = looks.next() else {
        return skip(name, "the kernel reclaims the page cache");
    };
    let Some(row) = of(&full, inode(file)).filter(|row| row["kind"] == "deleted_file") else {
        assert!(of(&found, inode(file)).is_some(), "neither a file of a disk nor one in memory");
        return skip(name, "the folder for files is in memory");
    };
    assert!(cached > page_bytes() && cached < PAGES * page_bytes(), "{cached}");
    assert_eq!(row["bytes"], cached, "{row}");
    let mapped = in_page_tables(pid, inode(file));
    assert!(mapped > 0);
    if row["at_most"] == false {
        assert_eq!(row["mapped"], mapped, "{row}");
    }
    assert_eq!(row["holders"].as_array().map(Vec::len), Some(1), "{row}");
    // The sum has no page cache of files.
    let sum = |records: &[Value]| of_type(records, "account-summary")[0]["unmapped"].clone();
    assert_eq!(sum(&found), sum(&full));
    if leased > 0 {
        assert_eq!(of(&full, inode(leased)), None);
        let notes: Vec<String> = of_type(&full, "note").iter().map(ToString::to_string).collect();
        let expected = format!("process {pid} holds a lease");
        assert!(notes.iter().any(|note| note.contains("1 deleted file") && note.contains(&expected)), "{notes:?}");
        assert_eq!(of_type(&records(pid, "account children full"), "account-family").len(), 1, "it lives on");
    }
}
