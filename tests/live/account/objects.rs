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
use std::path::Path;

pub const SCENARIOS: &[Scenario] = &[
    ("objects", |_| objects()),
    ("pool-object", |_| pool_object()),
    ("segment-object", |_| segment_object()),
    ("lone-segment", |_| lone_segment()),
    ("namesake-segments", |_| namesake_segments()),
    ("linked-object", |folder| linked_object(Path::new(&folder[0]))),
];

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

pub(super) fn writes(start: usize, pages: usize) {
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

/// A System V segment of six pages, of which the parent has two and a child the others, and a memfd; the number of the
/// segment, and of the descriptor.
fn segment_object() {
    let (page, pages) = (page_bytes() as usize, 6);
    // SAFETY: a new segment of our own.
    let segment = unsafe { libc::shmget(libc::IPC_PRIVATE, pages * page, libc::IPC_CREAT | 0o600) };
    if segment < 0 {
        return announce("");
    }
    // SAFETY: its memory, of which nobody else knows. It ends with the last mapping.
    let start = unsafe {
        let start = libc::shmat(segment, std::ptr::null(), 0);
        libc::shmctl(segment, libc::IPC_RMID, std::ptr::null_mut());
        start
    };
    let start = usize::try_from(mapped(start)).expect("memory");
    writes(start, 2);
    fork(start + 2 * page, 4);
    let file = filled(3);
    announce(format!("{segment} {}", file.as_raw_fd()));
    wait();
}

/// A segment with five pages in memory that nobody has attached: its number, or nothing.
fn lone_segment() {
    let page = page_bytes() as usize;
    // SAFETY: a new segment of our own, which the test removes.
    let segment = unsafe { libc::shmget(libc::IPC_PRIVATE, 8 * page, libc::IPC_CREAT | 0o600) };
    if segment < 0 {
        return announce("");
    }
    // SAFETY: its memory, of which nobody else knows.
    let start = unsafe { libc::shmat(segment, std::ptr::null(), 0) };
    writes(usize::try_from(mapped(start)).expect("memory"), 5);
    // SAFETY: nobody refers to it.
    assert_eq!(unsafe { libc::shmdt(start) }, 0);
    announce(segment);
    wait();
}

/// Two segments of one number and one name, each in an IPC namespace of its own: a child maps three pages of one, its
/// parent two of the other. Announces the child, or nothing where that cannot be made.
fn namesake_segments() {
    let page = page_bytes() as usize;
    let segment = |pages: usize| {
        // SAFETY: a namespace of this program alone, and a new segment, which ends with its last mapping.
        let start = unsafe {
            if libc::unshare(libc::CLONE_NEWIPC) != 0 {
                return None;
            }
            let segment = libc::shmget(libc::IPC_PRIVATE, pages * page, libc::IPC_CREAT | 0o600);
            if segment < 0 {
                return None;
            }
            let start = libc::shmat(segment, std::ptr::null(), 0);
            libc::shmctl(segment, libc::IPC_RMID, std::ptr::null_mut());
            start
        };
        let start = usize::try_from(mapped(start)).expect("memory");
        writes(start, pages);
        Some(start)
    };
    let Some(first) = segment(3) else {
        return announce("");
    };
    let child = fork(first, 3);
    // SAFETY: the child has it still.
    assert_eq!(unsafe { libc::shmdt(first as *const _) }, 0);
    segment(2).expect("a second namespace");
    announce(child);
    wait();
}

/// A file of four pages with two names, each mapped by one of two processes; the child, or nothing where the folder is
/// not in memory.
fn linked_object(folder: &Path) {
    let page = page_bytes() as usize;
    let [one, other] = ["one", "other"].map(|name| folder.join(name));
    std::fs::write(&one, vec![1; 4 * page]).expect("room in memory");
    std::fs::hard_link(&one, &other).expect("a second name");
    let open = |path| File::options().read(true).write(true).open(path).expect("a file of our own");
    let first = maps(&open(&one), 0, 4);
    writes(first, 3);
    let second = maps(&open(&other), 0, 4);
    announce(fork(second, 4));
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

/// The nodes with memory of a process, by numa_maps, or all nodes of the machine where the kernel has no such file.
fn plain_nodes(pid: u32) -> BTreeSet<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/numa_maps")).unwrap_or_else(|_| "N0=1".to_owned());
    let nodes = text.split_whitespace().filter_map(|word| word.strip_prefix('N')?.split_once('='));
    nodes.filter_map(|(node, _)| node.parse().ok()).collect()
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
    for row in of_type(&groups, "account-family-group") {
        let nodes = row["nodes"].as_array().expect("nodes");
        assert_eq!(nodes.iter().map(super::command::bytes).sum::<u64>(), super::command::bytes(row), "{row}");
    }
    let found: BTreeSet<u64> = of_type(&groups, "account-family-group")
        .into_iter()
        .flat_map(|row| row["nodes"].as_array().expect("nodes"))
        .map(|one| one["node"].as_u64().expect("a number"))
        .collect();
    assert_eq!(found, family.iter().flat_map(|&pid| plain_nodes(pid)).collect());
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

/// A segment has a number in place of an inode, and only `ipcrm` removes it.
pub fn a_segment_that_a_child_has_filled() {
    let name = "account::a_segment_that_a_child_has_filled";
    let mut target = Target::start("segment-object", &[]);
    let &[segment, descriptor] = &target.numbers()[..] else {
        return support::skip(name, "the kernel gives no System V segment");
    };
    let (pid, page) = (target.pid(), page_bytes());
    let found = records(pid, "account");
    let objects = of_type(&found, "account-object");
    match objects.iter().find(|row| row["device"].is_null() && row["inode"] == segment) {
        Some(row) => {
            assert_eq!(row["kind"], "system_v");
            // A child that reads a page brings its neighbours into its own tables, not into those of its parent.
            assert_eq!([&row["bytes"], &row["mapped"]], [&Value::from(6 * page), &Value::from(2 * page)]);
            assert_eq!(row["freed_by"], "detach", "{row}");
        }
        // Only a link in map_files leads to it, which an ordinary user may not follow.
        None => {
            let summary = of_type(&found, "account-summary")[0];
            assert_eq!(
                (support::is_root(), &summary["unmapped_bound"]),
                (false, &Value::from("at least")),
                "{summary}"
            );
        }
    }
    let inode = std::fs::metadata(format!("/proc/{pid}/fd/{descriptor}")).expect("its file").ino();
    let memfd = objects.iter().find(|row| row["device"] == "00:01" && row["inode"] == inode).expect("the memfd");
    assert_eq!([&memfd["bytes"], &memfd["mapped"]], [&Value::from(3 * page), &Value::from(0)]);
}

/// A segment that is removed when this ends.
struct LoneSegment(i32);

impl Drop for LoneSegment {
    fn drop(&mut self) {
        // SAFETY: it is of a process of this test, which has detached it.
        unsafe { libc::shmctl(self.0, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

/// Nobody has attached the segment, and its memory stays.
pub fn a_segment_that_nobody_has_attached() {
    let name = "account::a_segment_that_nobody_has_attached";
    let mut target = Target::start("lone-segment", &[]);
    let Some(&number) = target.numbers().first() else {
        return support::skip(name, "the kernel gives no System V segment");
    };
    let segment = LoneSegment(i32::try_from(number).expect("a number"));
    // SAFETY: plain numbers, which the kernel fills in.
    let attached = unsafe {
        let mut state = std::mem::zeroed::<libc::shmid_ds>();
        assert_eq!(libc::shmctl(segment.0, libc::IPC_STAT, &raw mut state), 0);
        state.shm_nattch
    };
    assert_eq!(attached, 0);
    let pid = target.pid();
    let row = |command: &str, of: u32| {
        let found = records(of, command);
        let rows = of_type(&found, "account-object").into_iter();
        let row = rows.filter(|row| row["kind"] == "system_v").find(|row| row["inode"] == number);
        row.unwrap_or_else(|| panic!("no row in {command}")).clone()
    };
    let mut commands = vec!["account"];
    commands.extend(support::is_root().then_some("account frames"));
    for command in commands {
        let row = row(command, pid);
        assert_eq!([&row["bytes"], &row["mapped"]], [&Value::from(5 * page_bytes()), &Value::from(0)], "{row}");
        assert_eq!([&row["creator"], &row["creator_runs"]], [&Value::from(pid), &Value::from(true)], "{row}");
        assert_eq!(row["freed_by"], format!("ipcrm -m {number}"));
    }
    // A process that ended is not named as if it ran.
    drop(target);
    if support::is_root() {
        let row = row("account frames", std::process::id());
        assert_eq!([&row["creator"], &row["creator_runs"]], [&Value::from(pid), &Value::from(false)], "{row}");
    }
}

/// Segments are counted apart from those of other namespaces that have their number.
pub fn segments_of_two_namespaces_are_two_groups() {
    let name = "account::segments_of_two_namespaces_are_two_groups";
    if !support::shows_frames() {
        return support::skip(name, "families need frame numbers");
    }
    let mut target = Target::start("namesake-segments", &[]);
    if target.numbers().is_empty() {
        return support::skip(name, "the kernel gives no System V segment of a namespace");
    }
    let groups = records(target.pid(), "account children by mapping");
    let groups = of_type(&groups, "account-family-group").into_iter();
    let segments = groups.filter(|row| row["key"].as_str().is_some_and(|name| name.starts_with("/SYSV")));
    let found: BTreeSet<(u64, u64)> = segments
        .inspect(|row| assert!(row["device"].is_null() && row["processes"] == 1, "{row}"))
        .map(|row| (row["inode"].as_u64().expect("a number"), super::command::bytes(row) / page_bytes()))
        .collect();
    assert_eq!(found, BTreeSet::from([(0, 2), (0, 3)]));
}

/// One file with two names is one row.
pub fn a_file_with_two_names_is_one_object() {
    let name = "account::a_file_with_two_names_is_one_object";
    if !support::shows_frames() {
        return support::skip(name, "families need frame numbers");
    }
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
    let mut target = Target::start("linked-object", &[folder.path().to_str().expect("UTF-8")]);
    target.line();
    let inode = std::fs::metadata(folder.path().join("one")).expect("the file").ino();
    let groups = records(target.pid(), "account children by mapping");
    let of_file = of_type(&groups, "account-family-group").into_iter().filter(|row| row["inode"] == inode);
    let rows: Vec<(u64, &Value)> = of_file.map(|row| (super::command::bytes(row), &row["processes"])).collect();
    assert_eq!(rows, [(4 * page_bytes(), &Value::from(2))]);
}

/// Every frame is in one class, and the classes agree with the counters as well as both stand still.
pub fn frames_add_up_beside_the_counters() {
    let name = "account::frames_add_up_beside_the_counters";
    if !support::is_root() {
        return support::skip(name, "only root may read /proc/kpageflags");
    }
    let counters = || {
        let text = std::fs::read_to_string("/proc/meminfo").expect("the counters");
        let fields = plain_fields(&format!("0-0 r\n{text}"));
        let mut fields = fields.into_values().next().expect("fields");
        // A virtual machine can count memory in MemFree that it has not given to any zone yet.
        let zones = std::fs::read_to_string("/proc/zoneinfo").expect("the zones");
        let free = zones.lines().filter_map(|line| line.trim().strip_prefix("nr_free_pages "));
        let free = free.map(|pages| pages.trim().parse::<u64>().expect("a number")).sum::<u64>();
        fields.insert("MemFree".to_owned(), free * page_bytes());
        fields
    };
    // Other tests take and free memory meanwhile, and frames wait in lists of processors between two uses: once they
    // must agree.
    let mut differing = Vec::new();
    for _ in 0..20 {
        let before = counters();
        let found = records(std::process::id(), "account frames");
        let after = counters();
        let rows = of_type(&found, "account-frames");
        let sum = of_type(&found, "account-machine")[0];
        let bytes = super::command::bytes;
        assert_eq!(rows.iter().map(|row| bytes(row)).sum::<u64>(), bytes(sum));
        assert_eq!(sum["total"], before["MemTotal"]);
        assert!(bytes(sum) >= before["MemTotal"], "the kernel counts what it has not reserved");
        let slack = before["MemTotal"] / 20;
        let counted = [("free", "MemFree"), ("anonymous", "AnonPages"), ("shared_memory", "Shmem"), ("slab", "Slab")];
        differing = counted
            .iter()
            .filter_map(|(class, field)| {
                let found = rows.iter().find(|row| row["class"] == *class).map_or(0, |row| bytes(row));
                let (low, high) = (before[*field].min(after[*field]), before[*field].max(after[*field]));
                let agrees = found + slack >= low && found <= high + slack;
                (!agrees).then(|| format!("{class}: {found}, {field} from {low} to {high}"))
            })
            .collect();
        if differing.is_empty() {
            return;
        }
    }
    panic!("{differing:?}");
}
