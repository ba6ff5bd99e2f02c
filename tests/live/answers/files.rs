//! Files on a disk: mapped, copied, past their end; deleted; replaced by another of the same name.

use super::super::Test;
use super::super::behind::{DiskFile, Held};
use super::super::puppet::Puppet;
use super::super::support::page_bytes;
use super::{Truth, says};
use std::os::fd::AsRawFd;

pub const TESTS: &[Test] =
    &[("answers::pages_of_files", pages_of_files), ("answers::deleted_and_replaced_files", deleted_and_replaced_files)];

const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;

fn pages_of_files() {
    // Two pages and a bit.
    let file = DiskFile::of(2 * page_bytes() + 1);
    let _held = Held::of(&file, 0, 3);
    let mut puppet = Puppet::start();
    let shared = puppet.maps_file(&file, 4, libc::PROT_READ, libc::MAP_SHARED);
    let private = puppet.maps_file(&file, 4, RW, libc::MAP_PRIVATE);
    puppet.writes(private + page_bytes(), 1);
    puppet.reads(private, 1);
    puppet.advises(private + 2 * page_bytes(), 1, libc::MADV_DONTNEED).expect("to unmap what was mapped besides");
    let pid = puppet.0.pid();
    let page = page_bytes();
    let mapped = Truth::present("file, read", "file").when_written("copy");
    says(pid, private, &mapped);
    let copied = Truth::present("file, private mapping, written", "private_copy");
    says(pid, private + page, &copied);
    let cached = Truth::absent("file, in the page cache, not mapped", "untouched", "map_cached");
    says(pid, private + 2 * page, &cached.behind("cached", "file"));
    let past = Truth::absent("file mapping past its end", "untouched", "past_end");
    says(pid, private + 3 * page, &past.behind("past_end", "file"));
    let past = Truth::absent("file mapping past its end, read-only", "untouched", "past_end");
    says(pid, shared + 3 * page, &past.behind("past_end", "file").when_written("protection"));
}

fn deleted_and_replaced_files() {
    for is_replaced in [false, true] {
        let file = DiskFile::of(page_bytes());
        let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let path = path.expect("its name");
        let mut puppet = Puppet::start();
        let memory = puppet.maps_file(&file, 1, RW, libc::MAP_SHARED);
        puppet.reads(memory, 1);
        std::fs::remove_file(&path).expect("to delete it");
        let what = if is_replaced {
            // It is shorter than the mapped file: by its length a page would be past the end.
            std::fs::write(&path, b"").expect("another");
            "file, replaced by another"
        } else {
            "file, deleted"
        };
        // Most filesystems are notified of the first write to a clean page.
        let truth = Truth::present(what, "file").when_written("reuse|nothing");
        let said = says(puppet.0.pid(), memory, &truth);
        let region = &said.translation["region"];
        let name = region["name"].as_str().expect("a name");
        assert!(name.starts_with(path.to_str().expect("a path")), "{region}");
        println!("{what}: {region}");
        assert!(said.text.contains("deleted"), "{}", said.text);
    }
}
