//! Pages that somebody holds, by each way that the kernel's record of a page shows.
//!
//! A target announces the address of its page, and how many references, pins and mappings the record must have: before
//! it is held, while it is, and afterwards. `/proc` shows only some of these. One reference more is possible at any
//! time: that of a batch for the LRU lists.

use super::answers::program;
use super::puppet::{answer, each_page, fork, huge, kill, mapped, memfd, stay_on_one_processor};
use super::states::{MADV_COLLAPSE, detail};
use super::support::{has_vm_flag, huge_page_bytes, is_root, page_bytes, plain_entry, release, skip};
use super::target::{Target, announce, wait};
use super::{Scenario, Test, huge::word};
use pmdb::{AddressRange, AddressSpace, Facts, VirtualAddress};
use serde_json::Value;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

pub const TESTS: &[Test] = &[
    ("held::registered_with_io_uring", || shows("held::registered_with_io_uring", "registered")),
    ("held::registered_in_the_page_cache", || shows("held::registered_in_the_page_cache", "cached")),
    ("held::a_part_of_a_huge_page_registered", || shows("held::a_part_of_a_huge_page_registered", "huge")),
    ("held::spliced_into_a_pipe", || shows("held::spliced_into_a_pipe", "spliced")),
    ("held::shared_by_a_fork", || shows("held::shared_by_a_fork", "forked")),
    ("held::locked", || shows("held::locked", "locked")),
    ("held::as_the_kernel_records_it", as_the_kernel_records_it),
];

pub const SCENARIOS: &[Scenario] = &[("holds", holds)];

/// A pin of a page that is no large folio counts as so many references (GUP_PIN_COUNTING_BIAS in include/linux/mm.h).
const REFERENCES_OF_A_PIN: u64 = 1024;

/// What a target says of its page.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub address: u64,
    pub references: u64,
    pub pins: u64,
    pub mappings: u64,
}

/// A target that holds a page.
pub struct Holder {
    pub target: Target,
    pub now: Held,
}

impl Holder {
    /// Starts one, which does not hold its page yet.
    pub fn start(way: &str) -> Holder {
        let mut target = Target::start("holds", &[way]);
        let now = Self::said(&mut target).expect("its page");
        Holder { target, now }
    }

    /// Has it take the next step: hold the page, or release it. The kernel may refuse that, with an error number.
    pub fn go_on(&mut self) -> Result<Held, i64> {
        self.target.send("go on");
        self.now = Self::said(&mut self.target)?;
        Ok(self.now)
    }

    /// Has it collapse its memory into a huge page, which the kernel does only if nobody else holds a page of it.
    fn collapses(&mut self) -> i64 {
        self.target.send("collapse");
        self.target.line().parse().expect("a number")
    }

    fn said(target: &mut Target) -> Result<Held, i64> {
        let line = target.line();
        let numbers: Vec<i64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
        match numbers[..] {
            [address, references, pins, mappings] => {
                let [address, references, pins, mappings] = [address, references, pins, mappings].map(|one| one as u64);
                Ok(Held { address, references, pins, mappings })
            }
            [error] => Err(-error),
            _ => panic!("not a page: {line}"),
        }
    }
}

fn holds(arguments: &[String]) {
    let [way] = arguments else { panic!("a way to hold a page") };
    stay_on_one_processor();
    let page = page_bytes() as usize;
    // So much that it can become a huge page.
    let whole = huge_page_bytes().map_or(page, |bytes| bytes as usize);
    let start = if way == "cached" { shared(whole) } else { huge(whole) } as usize;
    let address = start + whole / 2 / page * page;
    let advise = |advice| {
        // SAFETY: the mapping made just now, all of which is this target's.
        answer(unsafe { libc::madvise(start as *mut _, whole, advice) }.into())
    };
    let write = |start, pages| {
        // SAFETY: within the mapping.
        each_page(start, pages, |byte| unsafe { byte.write_volatile(1) })
    };
    let mut references = 1;
    match way.as_str() {
        "huge" => {
            write(start, whole / page);
            // Where it was not huge from the start.
            _ = advise(MADV_COLLAPSE);
        }
        "cached" => {
            write(address, 1);
            references += 1;
        }
        _ => {
            advise(libc::MADV_NOHUGEPAGE);
            write(address, 1);
        }
    }
    let say = |references, pins, mappings| {
        announce(format!("{address} {references} {pins} {mappings}"));
        loop {
            match wait().as_deref() {
                Some("collapse") => {
                    advise(libc::MADV_HUGEPAGE);
                    announce(advise(MADV_COLLAPSE));
                }
                Some(_) => break,
                None => std::process::exit(0),
            }
        }
    };
    say(references, 0, 1);
    match way.as_str() {
        "registered" | "cached" | "huge" => {
            let ring = registered(address, page).unwrap_or_else(refused);
            say(references + if way == "huge" { 1 } else { REFERENCES_OF_A_PIN }, 1, 1);
            unregister(&ring);
        }
        "spliced" => {
            let _pipe = spliced(address).unwrap_or_else(refused);
            say(references + 1, 0, 1);
        }
        "forked" => {
            let child = fork(address, 0);
            say(references + 1, 0, 2);
            kill(child as usize);
        }
        "locked" => {
            // SAFETY: memory of its own.
            let done = answer(unsafe { libc::mlock(address as *const _, page) }.into());
            if done != 0 {
                refused(done)
            }
            say(references, 0, 1);
            // SAFETY: as above.
            unsafe { libc::munlock(address as *const _, page) };
        }
        _ => panic!("unknown: {way}"),
    }
    say(references, 0, 1);
}

/// Ends because the kernel has refused something, with its negative error number.
fn refused<T>(error: i64) -> T {
    announce(error);
    wait();
    std::process::exit(0)
}

fn shared(bytes: usize) -> i64 {
    let (fd, rw) = (memfd(bytes), libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: a new mapping at an address of the kernel's choice, which keeps the file.
    mapped(unsafe { libc::mmap(std::ptr::null_mut(), bytes, rw, libc::MAP_SHARED, fd.as_raw_fd(), 0) })
}

/// A new io_uring with memory of this process registered as its only buffer; or the negative error number.
fn registered(address: usize, bytes: usize) -> Result<OwnedFd, i64> {
    /// IORING_REGISTER_BUFFERS (include/uapi/linux/io_uring.h).
    const REGISTER: usize = 0;
    // struct io_uring_params has 120 bytes.
    let mut parameters = [0u64; 15];
    // SAFETY: room for the structure, which the kernel fills in.
    let ring = answer(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) } as i64);
    if ring < 0 {
        return Err(ring);
    }
    // SAFETY: a new descriptor.
    let ring = unsafe { OwnedFd::from_raw_fd(ring as i32) };
    let buffer = libc::iovec { iov_base: address as *mut _, iov_len: bytes };
    // SAFETY: one iovec, of memory that nobody else uses.
    let done = unsafe { libc::syscall(libc::SYS_io_uring_register, ring.as_raw_fd(), REGISTER, &raw const buffer, 1) };
    if done == 0 { Ok(ring) } else { Err(answer(done as i64)) }
}

fn unregister(ring: &OwnedFd) {
    /// IORING_UNREGISTER_BUFFERS
    const UNREGISTER: usize = 1;
    let none = std::ptr::null::<u8>();
    // SAFETY: a system call without memory.
    let done = unsafe { libc::syscall(libc::SYS_io_uring_register, ring.as_raw_fd(), UNREGISTER, none, 0) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// A pipe with one byte in it, which is still in its page; or the negative error number.
fn spliced(address: usize) -> Result<(OwnedFd, OwnedFd), i64> {
    let (output, input) = rustix::pipe::pipe().expect("a pipe");
    let byte = libc::iovec { iov_base: address as *mut _, iov_len: 1 };
    // SAFETY: one iovec, of memory that nobody writes to until the pipe is closed.
    let moved = unsafe { libc::vmsplice(input.as_raw_fd(), &raw const byte, 1, 0) };
    if moved == 1 { Ok((output, input)) } else { Err(answer(moved as i64)) }
}

/// A field of `/proc/PID/status` in KiB.
fn status(pid: u32, field: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let value = text.lines().find_map(|line| line.strip_prefix(field)?.split_whitespace().next()?.parse().ok());
    value.unwrap_or_else(|| panic!("no {field}"))
}

/// The buffers that it has registered with io_uring, as `fdinfo` has them: address, `/`, length.
fn registered_buffers(pid: u32) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fdinfo")).expect("its descriptors").flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        let after = text.lines().skip_while(|line| !line.starts_with("UserBufs:")).skip(1);
        let rows =
            after.map_while(|line| line.split_once(": ").filter(|(number, _)| number.trim().parse::<u32>().is_ok()));
        found.extend(rows.map(|(_, buffer)| buffer.to_owned()));
    }
    found
}

/// What `/proc` shows of a page now.
fn check(way: &str, holder: &Holder, is_held: bool) {
    let (pid, now) = (holder.target.pid(), holder.now);
    let entry = plain_entry(pid, now.address).expect("its entry");
    assert!(entry >> 63 == 1, "{way}: {now:?}");
    // Linux 7.2 counts no registered buffer of root there; 6.18 did.
    if release() < (7, 0) || now.pins == 0 {
        assert_eq!(status(pid, "VmPin:") > 0, now.pins > 0, "{way}: {now:?}");
    }
    let is_locked = way == "locked" && is_held;
    assert_eq!(status(pid, "VmLck:") > 0, is_locked, "{way}: {now:?}");
    let buffers = registered_buffers(pid);
    let buffer = format!("{:#x}/{}", now.address, page_bytes());
    assert_eq!(buffers, if now.pins > 0 { vec![buffer] } else { Vec::new() }, "{way}: {now:?}");
    if is_locked {
        assert!(has_vm_flag(pid, now.address, "lo"));
    }
    if is_root() {
        assert_eq!(word("/proc/kpagecount", entry & ((1 << 55) - 1)), now.mappings, "{way}: {now:?}");
    }
}

/// One way to hold a page, step by step.
fn shows(name: &str, way: &str) {
    let mut holder = Holder::start(way);
    if way == "huge" && detail(&holder.target.attach(), holder.now.address).huge != Ok(true) {
        return skip(name, "the kernel gave no huge page, or cannot say");
    }
    check(way, &holder, false);
    let before = holder.now;
    match holder.go_on() {
        Ok(held) => assert_eq!(held.address, before.address),
        Err(error) => return skip(name, &format!("the kernel refuses it: error {error}")),
    }
    check(way, &holder, true);
    // MADV_COLLAPSE came with Linux 6.1. What is huge already, and what is of a file, it treats otherwise.
    let can_collapse = release() >= (6, 1) && huge_page_bytes().is_some() && !matches!(way, "huge" | "cached");
    if can_collapse && holder.now.references > holder.now.mappings {
        assert_ne!(holder.collapses(), 0, "{way}: a page that is held was moved");
    }
    let after = holder.go_on().expect("to release a page");
    check(way, &holder, false);
    assert_eq!((after.references, after.pins, after.mappings), (before.references, before.pins, before.mappings));
    // A page may wait in a batch of another processor, which holds it too.
    if can_collapse && !(0..20).any(|_| holder.collapses() == 0) {
        skip(name, "the kernel makes no huge page even of memory that nobody holds");
    }
}

/// The kernel's own record of the page, as pmdb reads it.
fn is_recorded(way: &str, holder: &Holder, is_held: bool) {
    let (now, detail) = (holder.now, detail(&holder.target.attach(), holder.now.address));
    let record = detail.record.expect("a record");
    let known = record.references.as_ref().ok().copied();
    assert!(known == Some(now.references) || known == Some(now.references + 1), "{way}: {now:?}, {record:?}");
    assert_eq!(record.pins, Ok(now.pins), "{way}: {now:?}, {record:?}");
    let holders = record.holders.expect("holders");
    assert_eq!(holders.mappings, now.mappings, "{way}: {now:?}, {holders:?}");
    assert!(holders.others <= 1 + u64::from(way == "spliced"), "{way}: {now:?}, {holders:?}");
    let owner = if way == "cached" { "file" } else { "anonymous" };
    assert_eq!(record.owner, Ok(owner), "{way}");
    let pid = holder.target.pid();
    let said = program(&[], pid, true, &[format!("pins {:#x}, +{}", now.address, page_bytes())]);
    let said: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |kind: &str| said.iter().filter(|one| one["type"] == kind).collect::<Vec<_>>();
    let (rows, holders) = (of("held-pages"), of("pin-holder"));
    assert_eq!(rows.len(), 1, "{way}: {said:?}");
    assert_eq!((&rows[0]["pins"], &rows[0]["pages"]), (&now.pins.into(), &1.into()), "{way}: {said:?}");
    assert_eq!(rows[0]["folio_bytes"].is_null(), way != "huge", "{way}: {said:?}");
    let found: Vec<_> = holders.iter().map(|one| (&one["pid"], &one["device"], &one["start"], &one["bytes"])).collect();
    let buffer = (pid.into(), "io_uring".into(), format!("{:#x}", now.address).into(), page_bytes().into());
    let expected = if now.pins > 0 { vec![(&buffer.0, &buffer.1, &buffer.2, &buffer.3)] } else { Vec::new() };
    assert_eq!(found, expected, "{way}: {said:?}");
    let said = program(&[], pid, true, &[format!("explain {:#x}", now.address)]);
    let explained: Value = serde_json::from_str(said.lines().next().expect("an explanation")).expect("JSON");
    let movable = explained["movable"].as_str().expect("a word");
    match way {
        _ if now.pins > 0 => assert_eq!(movable, "pinned", "{way}: {explained}"),
        "spliced" if now.references > now.mappings => assert_eq!(movable, "held", "{way}: {explained}"),
        // One reference more is possible at any time.
        "locked" if is_held => assert!(["unreclaimable", "held"].contains(&movable), "{way}: {explained}"),
        _ => assert!(["freely", "held"].contains(&movable), "{way}: {explained}"),
    }
    // A sweep finds the same.
    let page = AddressRange::new(VirtualAddress::new(now.address), VirtualAddress::new(now.address + page_bytes()));
    let space = AddressSpace::of(&holder.target.attach()).expect("its regions");
    let mut pages = space.pages(page.as_slice(), Facts::PINS);
    let swept = pages.next().expect("a sweep").expect("a page").pages().next().and_then(|page| page.holders);
    let swept = swept.expect("holders");
    assert_eq!(swept.is_pinned(), Some(now.pins > 0), "{way}: {now:?}, {swept:?}");
    assert_eq!(swept.holders().map(|swept| swept.mappings), Some(now.mappings), "{way}: {now:?}, {swept:?}");
}

fn as_the_kernel_records_it() {
    const NAME: &str = "held::as_the_kernel_records_it";
    if let Err(error) = pmdb::process::machine().require_records(pmdb::process::RecordParts::all()) {
        return skip(NAME, &error.to_string());
    }
    for way in ["registered", "cached", "huge", "spliced", "forked", "locked"] {
        let name = format!("{NAME} ({way})");
        let mut holder = Holder::start(way);
        if way == "huge" && detail(&holder.target.attach(), holder.now.address).huge != Ok(true) {
            skip(&name, "the kernel gave no huge page, or cannot say");
            continue;
        }
        is_recorded(way, &holder, false);
        match holder.go_on() {
            Ok(_) => is_recorded(way, &holder, true),
            Err(error) => {
                skip(&name, &format!("the kernel refuses it: error {error}"));
                continue;
            }
        }
        holder.go_on().expect("to release a page");
        is_recorded(way, &holder, false);
    }
}
