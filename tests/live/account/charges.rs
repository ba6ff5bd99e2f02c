//! What is charged to a cgroup adds up to what the kernel has charged to it.

use super::command::{of_type, records, records_of_file};
use super::*;
use crate::Scenario;
use crate::cgroup::Cgroup;
use crate::puppet::memfd;
use crate::support::{plain_entries, plain_maps};
use crate::target::{announce, wait};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::fs::{File, read_to_string};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

pub const SCENARIOS: &[Scenario] = &[("charged", |paths| charged(paths))];

/// Bytes of a memfd that is open only, of a file in memory that nobody has open, of a deleted file, and of memory.
const BYTES: [usize; 4] = [8 << 20, 3 << 20, 6 << 20, 12 << 20];

/// Fills these, once it is in its group, and maps a file whose pages are charged to another one.
fn charged(paths: &[String]) {
    announce("here");
    wait();
    let ring = File::from(memfd(BYTES[0]));
    ring.write_all_at(&vec![1; BYTES[0]], 0).expect("room in memory");
    std::fs::write(&paths[0], vec![1; BYTES[1]]).expect("room in memory");
    let deleted = File::options().create_new(true).write(true).open(&paths[1]).expect("a new file");
    deleted.write_all_at(&vec![1; BYTES[2]], 0).expect("room on the disk");
    std::fs::remove_file(&paths[1]).expect("to delete it");
    let memory = vec![1; BYTES[3]];
    let other = File::open(&paths[2]).expect("the file of the test");
    // SAFETY: new memory of a file that nobody cuts.
    let start = unsafe {
        use std::os::fd::AsRawFd;
        libc::mmap64(
            std::ptr::null_mut(),
            4 * page_bytes() as usize,
            libc::PROT_READ,
            libc::MAP_SHARED,
            other.as_raw_fd(),
            0,
        )
    };
    let start = crate::puppet::mapped(start) as usize;
    // SAFETY: memory of our own.
    crate::puppet::each_page(start, 4, |byte| _ = unsafe { byte.read_volatile() });
    announce("ready");
    wait();
    drop((ring, deleted, memory));
}

/// The words of all frames from the first on.
fn words(path: &str) -> Vec<u64> {
    let (file, mut all, mut buffer) = (File::open(path).expect("words"), Vec::new(), vec![0; 1 << 20]);
    while let Ok(read @ 1..) = file.read_at(&mut buffer, all.len() as u64 * 8) {
        all.extend(buffer[..read].chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes"))));
    }
    all
}

/// The frames of a group in classes, and the frames that a process maps of other groups, read without pmdb.
fn plain_charges(inode: u64, pid: u32) -> (BTreeMap<&'static str, u64>, u64) {
    const ZERO: u64 = 1 << 24;
    let groups = words("/proc/kpagecgroup");
    let [flags, counts] = ["/proc/kpageflags", "/proc/kpagecount"].map(|path| File::open(path).expect("words"));
    let word = |file: &File, index: usize| {
        let mut word = [0; 8];
        file.read_exact_at(&mut word, index as u64 * 8).map_or(0, |()| u64::from_ne_bytes(word))
    };
    let mut mapped = HashSet::new();
    for (start, end, rest) in plain_maps(pid) {
        let rest = String::from_utf8_lossy(&rest).into_owned();
        if rest.contains("[vvar") || rest.contains("[vsyscall]") {
            continue;
        }
        let present = plain_entries(pid, start, end).into_iter().filter(|(_, entry)| entry >> 63 == 1);
        mapped.extend(present.map(|(_, entry)| (entry & ((1 << 55) - 1)) as usize));
    }
    mapped.retain(|&frame| word(&flags, frame) & ZERO == 0);
    let elsewhere = mapped.iter().filter(|&&frame| groups[frame] != inode).count() as u64 * page_bytes();
    let mut classes = BTreeMap::new();
    for frame in (0..groups.len()).filter(|&frame| groups[frame] == inode) {
        let bit = |bit: u32| word(&flags, frame) >> bit & 1 == 1;
        let is_cached = [3, 4, 5, 8].into_iter().any(bit);
        let class = match () {
            () if mapped.contains(&frame) => "mapped",
            () if word(&counts, frame) > 0 && (bit(12) || bit(14) || is_cached) => "mapped_outside",
            () if bit(26) || bit(7) => continue,
            () if bit(12) => "anonymous",
            () if bit(14) => "shared_memory",
            () if is_cached => "page_cache",
            () => continue,
        };
        *classes.entry(class).or_default() += page_bytes();
    }
    (classes, elsewhere)
}

/// A number in a file of the group, under either of its names.
fn number(cgroup: &Cgroup, names: [&str; 2]) -> Option<u64> {
    let text = names.iter().find_map(|name| read_to_string(cgroup.path.join(name)).ok())?;
    text.lines().find_map(|line| line.strip_prefix("kernel ").unwrap_or(line).trim().parse().ok())
}

/// The charges of the cgroup in a capture of its processes and of all frames.
fn charges_of_capture(pid: u32, name: &str, folder: &Path) -> Vec<Value> {
    let file = folder.join("group.capture");
    let file = file.to_str().expect("text");
    records(pid, &format!("capture {file} cgroup /{name} with frames"));
    records_of_file(file, &format!("account cgroup /{name}"))
}

/// The bytes of each class.
fn by_class(all: &[Value]) -> BTreeMap<&str, u64> {
    let rows = of_type(all, "account-charge").into_iter();
    rows.map(|row| (row["class"].as_str().expect("a class"), super::command::bytes(row))).collect()
}

pub fn charges_add_up_to_the_group() {
    const NAME: &str = "account::charges_add_up_to_the_group";
    let name = format!("pmdb-charges-{}", std::process::id());
    let cgroup = match Cgroup::called(name.as_bytes()) {
        Ok(cgroup) => cgroup,
        Err(reason) => return skip(NAME, &reason),
    };
    let (folder, in_memory) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir_in("/dev/shm"));
    let in_memory = in_memory.as_ref().map_or(folder.path(), |folder| folder.path());
    let path = |folder: &Path, name: &str| folder.join(name).to_str().expect("text").to_owned();
    let outside = path(folder.path(), "outside");
    std::fs::write(&outside, vec![1; 4 * page_bytes() as usize]).expect("room");
    let mut target = Target::start("charged", &[&path(in_memory, "kept"), &path(folder.path(), "deleted"), &outside]);
    assert_eq!(target.line(), "here");
    cgroup.takes(target.pid());
    target.send("go");
    assert_eq!(target.line(), "ready");
    target.stop();
    let inode = std::fs::metadata(&cgroup.path).expect("the directory").ino();
    let processors = std::thread::available_parallelism().expect("processors").get() as u64;
    let mut differing = String::new();
    // The kernel writes dirty pages and drains its batches meanwhile.
    for _ in 0..20 {
        let (plain, elsewhere) = plain_charges(inode, target.pid());
        let all = records(target.pid(), &format!("account cgroup /{name}"));
        let again = plain_charges(inode, target.pid());
        let [group] = of_type(&all, "account-cgroup")[..] else { panic!("{all:?}") };
        let mut rows = by_class(&all);
        let found: u64 = rows.values().sum();
        assert_eq!(group["found"], found);
        let kernel = rows.remove("kernel");
        let kmem = number(&cgroup, ["memory.kmem.usage_in_bytes", "memory.stat"]);
        rows.remove("sockets");
        let current = number(&cgroup, ["memory.current", "memory.usage_in_bytes"]).expect("a number");
        let slack = (current / 100).max(processors * (64 * page_bytes()));
        differing = format!("{rows:?} {kernel:?}; plain {plain:?} {kmem:?} {elsewhere}; {group}");
        let is_same = rows == plain && group["charged_elsewhere"] == elsewhere && again == (plain, elsewhere);
        if is_same && kernel.zip(kmem).is_none_or(|(one, other)| one == other) {
            let captured = charges_of_capture(target.pid(), &name, folder.path());
            let captured = by_class(&captured);
            if ["mapped", "shared_memory"].iter().any(|class| captured.get(class) != rows.get(class)) {
                differing = format!("captured {captured:?}; {differing}");
                continue;
            }
            assert!(found.abs_diff(current) <= slack, "{found} of {current}: {differing}");
            let unmapped = rows.get("shared_memory").unwrap_or(&0) + rows.get("page_cache").unwrap_or(&0);
            let planted: usize = BYTES[..3].iter().sum();
            assert!(unmapped >= planted as u64, "{differing}");
            assert!(rows["mapped"] >= BYTES[3] as u64 && elsewhere >= 4 * page_bytes(), "{differing}");
            return;
        }
    }
    panic!("{differing}");
}
