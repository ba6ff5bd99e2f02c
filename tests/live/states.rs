//! Each state and kind of page, made for real, as `inspect` sees it.

use super::Test;
use super::answers::large::in_huge_pages;
use super::puppet::Puppet;
use super::support::{self, at, huge_page_bytes, page_bytes, plain_entry, skip};
use pmdb::budget::Budget;
use pmdb::inspect::{AddressSpace, Evidence, Page, PageDetail};
use pmdb::kernel::mounts::FilesOn;
use pmdb::kernel::{AddressRange, Device, Kind, State};
use pmdb::process::Target;
use pmdb::report::Reason;

pub const TESTS: &[Test] = &[
    ("states::anonymous_memory", anonymous_memory),
    ("states::shared_memory", shared_memory),
    ("states::files_and_private_copies", files_and_private_copies),
    ("states::files_of_an_initramfs", files_of_an_initramfs),
    ("states::guard_pages", guard_pages),
    ("states::userfault_markers", userfault_markers),
    ("states::poisoned_pages", poisoned_pages),
    ("states::pages_in_swap", pages_in_swap),
    ("states::huge_pages", huge_pages),
    ("states::the_huge_zero_page", the_huge_zero_page),
    ("states::pages_of_the_hugetlb_pool", pages_of_the_hugetlb_pool),
    ("states::merged_pages", merged_pages),
    ("states::merged_pages_are_not_claimed", merged_pages_are_not_claimed),
    ("states::what_the_kernel_lends", what_the_kernel_lends),
    ("states::no_region", no_region),
    ("states::copy_on_write_after_fork", copy_on_write_after_fork),
    ("states::one_page_of_a_huge_one_copied", one_page_of_a_huge_one_copied),
];

/// The detail of one address; its raw entry is compared with a plain read.
pub fn detail(target: &Target, address: u64) -> PageDetail {
    let space = AddressSpace::at(target, at(address)).expect("a space");
    let detail = space.detail(at(address)).expect("its detail");
    let plain = plain_entry(target.process.identity().pid, address);
    assert_eq!(detail.entry.map(|entry| entry.raw()), plain, "at {address:#x}");
    // A query of one address and a sweep give the same.
    let swept = pages(
        target,
        &[(address / page_bytes() * page_bytes(), 1)],
        Evidence::KINDS | Evidence::FLAGS | Evidence::CONTENT,
    );
    match (&swept[..], &detail.region) {
        ([page], Some(_)) => assert_eq!((page.state(), page.kind), (detail.page.state(), detail.page.kind)),
        // A sweep skips addresses in no region.
        ([], None) => assert_eq!(detail.page.state(), State::Unmapped),
        (_, region) => panic!("{} pages in {region:?}", swept.len()),
    }
    detail
}

/// All pages of ranges, one by one, with as much of `need` as is available.
pub fn pages(target: &Target, ranges: &[(u64, u64)], need: Evidence) -> Vec<Page> {
    let space = AddressSpace::of(target).expect("a space");
    let spans: Vec<AddressRange> =
        ranges.iter().map(|&(start, pages)| support::range(start, pages * page_bytes())).collect();
    let need = space.obtainable(need) | Evidence::EACH;
    let mut all = Vec::new();
    let mut pages = space.pages(&spans, need);
    while let Some(chunk) = pages.next().expect("a sweep") {
        all.extend(chunk.pages());
    }
    all
}

fn state_and_kind(target: &Target, address: u64) -> (State, Option<Kind>) {
    let detail = detail(target, address);
    (detail.page.state(), detail.page.kind)
}

fn anonymous_memory() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 4);
    puppet.writes(memory, 1);
    puppet.reads(memory + page_bytes(), 1);
    let target = puppet.0.attach();
    let written = detail(&target, memory + 0x123 % page_bytes());
    assert_eq!((written.page.state(), written.page.kind), (State::Present, Some(Kind::Anonymous)));
    assert_eq!(written.exclusive, Ok(true));
    assert!(!written.huge.clone().unwrap_or(false));
    assert!(written.swap.is_err());
    if support::shows_frames() {
        let frame = written.frame.clone().expect("its frame").get();
        let physical = written.physical.clone().expect("its physical address");
        assert_eq!(physical.get(), frame * page_bytes() + 0x123 % page_bytes());
        assert_eq!(Some(frame), plain_entry(puppet.0.pid(), memory).map(|entry| entry & ((1 << 55) - 1)));
        assert!(written.place.zone.is_ok());
    } else {
        assert_eq!(written.frame, Err(Reason::FrameHidden));
        assert_eq!(written.physical, Err(Reason::FrameHidden));
    }
    if support::is_root() {
        assert_eq!(written.map_count, Ok(1));
    }
    let zero = detail(&target, memory + page_bytes());
    assert_eq!(zero.page.state(), State::Present);
    if target.process.categories().contains(pmdb::process::Categories::ZERO) || zero.flags.is_ok() {
        assert_eq!(zero.page.kind, Some(Kind::Zero))
    } else {
        assert_eq!(zero.page.kind, None)
    }
    let untouched = detail(&target, memory + 2 * page_bytes());
    assert_eq!((untouched.page.state(), untouched.page.kind), (State::Untouched, Some(Kind::Anonymous)));
    assert!(matches!(untouched.frame, Err(Reason::NotApplicable(_))));
}

fn shared_memory() {
    let mut puppet = Puppet::start();
    for verb in ["shared", "memfd"] {
        let memory = puppet.maps(verb, 2);
        puppet.writes(memory, 1);
        let target = puppet.0.attach();
        assert_eq!(state_and_kind(&target, memory), (State::Present, Some(Kind::Shmem)), "{verb}");
        let untouched = state_and_kind(&target, memory + page_bytes());
        assert_eq!(untouched, (State::Untouched, Some(Kind::Shmem)), "{verb}");
    }
}

fn files_and_private_copies() {
    let mut puppet = Puppet::start();
    let file = puppet.maps("program", 3);
    puppet.reads(file, 1);
    puppet.writes(file + page_bytes(), 1);
    let memfd = puppet.maps("copied", 1);
    puppet.writes(memfd, 1);
    let target = puppet.0.attach();
    // A program on tmpfs is shared memory.
    let device = AddressSpace::at(&target, at(file)).expect("a space").viewed_regions()[0].region.device;
    let own = match target.machine.files_on(device, &mut Budget::unlimited()) {
        Ok(FilesOn::Memory(_)) => Kind::Shmem,
        _ => Kind::File,
    };
    assert_eq!(state_and_kind(&target, file), (State::Present, Some(own)));
    let copy = (State::Present, Some(Kind::PrivateCopy));
    assert_eq!(state_and_kind(&target, file + page_bytes()), copy);
    assert_eq!(state_and_kind(&target, memfd), copy);
}

pub const MADV_COLLAPSE: i32 = 25;
pub const MADV_GUARD_INSTALL: i32 = 102;
pub const MADV_GUARD_REMOVE: i32 = 103;

/// The first filesystem is tmpfs or ramfs, whatever it is called: pages of tmpfs are backed by swap. A guest leaves a
/// program running from there.
fn files_of_an_initramfs() {
    const NAME: &str = "states::files_of_an_initramfs";
    const SWAPBACKED: u64 = 1 << 14;
    if !support::is_root() {
        return skip(NAME, "only root sees the flags of frames");
    }
    let pids = std::fs::read_dir("/proc").expect("processes");
    let mut compared = 0;
    for pid in pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()) {
        let mounts = std::fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
        let first = mounts.lines().find(|line| line.contains(" - rootfs "));
        let Some(device) = first.and_then(|line| line.split(' ').nth(2)) else { continue };
        // Kernel threads have no memory, and processes end.
        let Ok(target) = pmdb::process::Target::attach(pid) else { continue };
        let regions = target.process.regions().unwrap_or_default();
        let (major, minor) = device.split_once(':').expect("two numbers");
        let device = Device { major: major.parse().expect("a number"), minor: minor.parse().expect("a number") };
        for region in regions.iter().filter(|region| region.device == device) {
            let range = (region.range.start().get(), region.range.len() / page_bytes());
            for page in pages(&target, &[range], Evidence::ENTRIES) {
                let of_file = page.state() == State::Present && page.entry.is_file_or_shared();
                let Some(frame) = page.frame().filter(|_| of_file) else { continue };
                let flags = super::huge::word("/proc/kpageflags", frame.get());
                let kind = if flags & SWAPBACKED != 0 { Kind::Shmem } else { Kind::File };
                assert_eq!(page.kind, Some(kind), "{} of process {pid}, flags {flags:#x}: {mounts}", page.address);
                compared += 1;
            }
        }
    }
    println!("{compared} pages of the first filesystem compared");
    if compared == 0 {
        skip(NAME, "no process runs from the first filesystem");
    }
}

fn guard_pages() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 4);
    puppet.writes(memory, 4);
    if let Err(error) = puppet.advises(memory + page_bytes(), 2, MADV_GUARD_INSTALL) {
        return skip("states::guard_pages", &format!("MADV_GUARD_INSTALL: error {error} (Linux 6.13)"));
    }
    let target = puppet.0.attach();
    let states = pages(&target, &[(memory, 4)], Evidence::ENTRIES);
    let states: Vec<State> = states.iter().map(|page| page.state()).collect();
    use State::{Guard, Present};
    assert_eq!(states, [Present, Guard, Guard, Present]);
    assert_eq!(detail(&target, memory + page_bytes()).page.state(), Guard);
}

fn userfault_markers() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 4);
    puppet.writes(memory, 1);
    let length = 4 * page_bytes();
    let answer = puppet.asks("uffd", &[memory, length, 2 * page_bytes()]);
    if answer < 0 {
        return skip("states::userfault_markers", &format!("userfaultfd: error {}", -answer));
    }
    let target = puppet.0.attach();
    let protected = detail(&target, memory);
    assert_eq!((protected.page.state(), protected.page.kind), (State::Present, Some(Kind::Anonymous)));
    assert!(protected.page.entry.is_uffd_wp());
    let marker = detail(&target, memory + page_bytes());
    let expected = if hides_markers(&target) { State::Swapped } else { State::UffdWp };
    assert_eq!(marker.page.state(), expected);
    assert_eq!(detail(&target, memory + 2 * page_bytes()).page.state(), State::Untouched);
}

/// Without CAP_SYS_ADMIN the kernel hides what distinguishes a marker from a swap slot.
fn hides_markers(target: &pmdb::process::Target) -> bool {
    let areas = target.machine.swaps();
    !support::shows_frames() && areas.is_ok_and(|areas| !areas.0.is_empty())
}

fn poisoned_pages() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 2);
    let answer = puppet.asks("poison", &[memory, page_bytes()]);
    if answer < 0 {
        return skip("states::poisoned_pages", &format!("UFFDIO_POISON: error {}", -answer));
    }
    let target = puppet.0.attach();
    let expected = if hides_markers(&target) { State::Swapped } else { State::Poisoned };
    assert_eq!(detail(&target, memory).page.state(), expected);
    assert_eq!(detail(&target, memory + page_bytes()).page.state(), State::Untouched);
}

fn pages_in_swap() {
    const NAME: &str = "states::pages_in_swap";
    let swap = match super::system::swap() {
        Ok(swap) => swap,
        Err(reason) => return skip(NAME, &reason),
    };
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 3);
    let copies = puppet.maps("program", 1);
    puppet.writes(memory, 2);
    puppet.writes(copies, 1);
    let pid = puppet.0.pid();
    if !puppet.pages_out(memory, 2) || !puppet.pages_out(copies, 1) {
        return skip(NAME, "the kernel kept the page");
    }
    let entry = plain_entry(pid, memory).expect("an entry");
    let target = puppet.0.attach();
    let swapped = detail(&target, memory);
    assert_eq!((swapped.page.state(), swapped.page.kind), (State::Swapped, Some(Kind::Anonymous)));
    let slot = swapped.swap.expect("its slot");
    assert_eq!((u64::from(slot.kind), slot.offset), (entry & 31, (entry >> 5) & ((1 << 50) - 1)));
    assert_eq!(state_and_kind(&target, copies), (State::Swapped, Some(Kind::PrivateCopy)));
    drop(puppet);
    drop(swap);
}

fn huge_pages() {
    const NAME: &str = "states::huge_pages";
    let Some(bytes) = huge_page_bytes() else {
        return skip(NAME, "no transparent huge pages");
    };
    let pages_in = bytes / page_bytes();
    let mut puppet = Puppet::start();
    let memory = puppet.maps("huge", 2 * pages_in);
    puppet.writes(memory, 2 * pages_in);
    for half in 0..2 {
        _ = puppet.advises(memory + half * bytes, pages_in, MADV_COLLAPSE);
    }
    let target = puppet.0.attach();
    let scans = target.process.categories().contains(pmdb::process::Categories::HUGE);
    let first = detail(&target, memory + 5 * page_bytes());
    if !scans {
        // For small pages it is still known.
        let is_small = in_huge_pages(puppet.0.pid(), memory) == 0;
        let is_known = first.huge == Ok(false) && is_small;
        assert!(is_known || matches!(first.huge, Err(Reason::NotOnThisKernel(_))));
        return skip(NAME, "no PAGEMAP_SCAN");
    }
    if first.huge != Ok(true) {
        return skip(NAME, "the kernel gave no huge page");
    }
    assert_eq!(first.page.kind, Some(Kind::Anonymous));
    let all = pages(&target, &[(memory, 2 * pages_in)], Evidence::HUGE | Evidence::FLAGS | Evidence::COUNTS);
    assert_eq!(all.len() as u64, 2 * pages_in);
    for (index, page) in all.iter().enumerate() {
        let address = memory + index as u64 * page_bytes();
        let plain = plain_entry(puppet.0.pid(), address).expect("an entry");
        assert_eq!(page.address, at(address));
        const SURE: u64 = !(1 << 56);
        assert_eq!(page.entry.raw() & SURE, plain & SURE, "page {index}");
        if support::is_root() {
            let flags = page.flags.expect("its flags");
            use pmdb::kernel::PageFlags;
            assert_eq!(flags.contains(PageFlags::COMPOUND_HEAD), (index as u64).is_multiple_of(pages_in));
            assert_eq!(page.map_count, Some(1));
        }
    }
    // One page less, and small entries map the rest.
    const MADV_DONTNEED: i32 = 4;
    puppet.advises(memory, 1, MADV_DONTNEED).expect("to drop a page");
    assert_eq!(detail(&target, memory).page.state(), State::Untouched);
    assert_eq!(detail(&target, memory + page_bytes()).huge, Ok(false));
    assert_eq!(detail(&target, memory + bytes).huge, Ok(true));
}

fn the_huge_zero_page() {
    const NAME: &str = "states::the_huge_zero_page";
    let Some(bytes) = huge_page_bytes() else {
        return skip(NAME, "no transparent huge pages");
    };
    let _machine = super::system::as_it_is();
    let mut puppet = Puppet::start();
    let memory = puppet.maps("huge", bytes / page_bytes());
    puppet.reads(memory, 1);
    let entry = plain_entry(puppet.0.pid(), memory + page_bytes()).expect("an entry");
    if entry >> 63 == 0 {
        return skip(NAME, "the kernel gave a small page");
    }
    let target = puppet.0.attach();
    let kind = (State::Present, Some(Kind::HugeZero));
    assert_eq!(state_and_kind(&target, memory), kind);
    assert_eq!(state_and_kind(&target, memory + bytes - 1), kind);
}

fn pages_of_the_hugetlb_pool() {
    const NAME: &str = "states::pages_of_the_hugetlb_pool";
    let pool = match super::system::huge_pages() {
        Ok(pool) => pool,
        Err(reason) => return skip(NAME, &reason),
    };
    let mut puppet = Puppet::start();
    let bytes = support::pool_page_bytes();
    let memory = puppet.maps("hugetlb", 2 * bytes / page_bytes());
    puppet.writes(memory, 1);
    let target = puppet.0.attach();
    let hugetlb = |state| (state, Some(Kind::Hugetlb));
    for address in [memory, memory + bytes - 1] {
        assert_eq!(state_and_kind(&target, address), hugetlb(State::Present));
        let detail = detail(&target, address);
        assert_eq!(detail.exclusive, Ok(true));
        assert_eq!(detail.huge, Ok(true), "the pool has no other pages");
    }
    let untouched = memory + bytes;
    assert_eq!(state_and_kind(&target, untouched), hugetlb(State::Untouched));
    let pages_in = bytes / page_bytes();
    let need = Evidence::HUGE | Evidence::FLAGS | Evidence::COUNTS;
    let all = pages(&target, &[(memory, 2 * pages_in)], need);
    for (index, page) in all.iter().enumerate() {
        let address = memory + index as u64 * page_bytes();
        let plain = plain_entry(puppet.0.pid(), address).expect("an entry");
        assert_eq!(page.entry.raw(), plain, "page {index}");
    }
    drop(puppet);
    drop(pool);
}

/// A puppet with 64 equal pages that are merged, and their address. Merging goes on until the setting is dropped, which
/// has to be after the puppet. An error says why nothing was merged.
pub fn merged() -> Result<(super::system::Changed, Puppet, u64), String> {
    let (merging, mut puppet, memory) = to_be_merged()?;
    merge(&mut puppet, memory)?;
    Ok((merging, puppet, memory))
}

/// A puppet with 64 equal pages that nobody has offered for merging.
pub fn to_be_merged() -> Result<(super::system::Changed, Puppet, u64), String> {
    let merging = super::system::merging()?;
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 64);
    puppet.writes(memory, 64);
    Ok((merging, puppet, memory))
}

/// Offers these pages for merging, and waits until all have one frame.
pub fn merge(puppet: &mut Puppet, memory: u64) -> Result<(), String> {
    if let Err(error) = puppet.advises(memory, 64, libc::MADV_MERGEABLE) {
        return Err(format!("MADV_MERGEABLE: error {error}"));
    }
    // The kernel merges after a while: then all pages have one frame.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let frame = |page: u64| {
        let entry = plain_entry(puppet.0.pid(), memory + page * page_bytes());
        entry.expect("an entry") & ((1 << 55) - 1)
    };
    while frame(0) == 0 || (1..64).any(|page| frame(page) != frame(0)) {
        if std::time::Instant::now() > deadline {
            return Err("the kernel merged nothing in 20 seconds".into());
        }
        std::thread::yield_now();
    }
    Ok(())
}

fn merged_pages() {
    let (merging, puppet, memory) = match merged() {
        Ok(made) => made,
        Err(reason) => return skip("states::merged_pages", &reason),
    };
    let target = puppet.0.attach();
    for page in [0, 63] {
        let merged = detail(&target, memory + page * page_bytes());
        let kind = (merged.page.state(), merged.page.kind);
        assert_eq!(kind, (State::Present, Some(Kind::Ksm)));
        assert_eq!(merged.exclusive, Ok(false));
        assert!(merged.map_count.expect("its map count") > 1);
    }
    drop(puppet);
    drop(merging);
}

/// Memory that was not offered for merging: some kernels flag every anonymous page as merged.
fn merged_pages_are_not_claimed() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 64);
    puppet.writes(memory, 64);
    let target = puppet.0.attach();
    for page in pages(&target, &[(memory, 64)], Evidence::KINDS | Evidence::FLAGS) {
        assert_eq!(page.kind, Some(Kind::Anonymous), "{page:?}");
    }
}

fn what_the_kernel_lends() {
    let puppet = Puppet::start();
    let target = puppet.0.attach();
    for (start, end, line) in support::plain_maps(puppet.0.pid()) {
        let is = |name: &[u8]| line.ends_with(name);
        let (state, kind) = match () {
            // Not every page of it has been used.
            () if is(b"[vdso]") => match plain_entry(puppet.0.pid(), start) {
                Some(entry) if entry >> 63 == 1 => (State::Present, Kind::Vdso),
                _ => (State::Untouched, Kind::Vdso),
            },
            // From Linux 7.0 on it is VM_MIXEDMAP, and shows what is in it.
            () if is(b"[vvar]") && support::has_vm_flag(puppet.0.pid(), start, "pf") => (State::PfnMapped, Kind::Vdso),
            () if is(b"[vsyscall]") => (State::Outside, Kind::Vdso),
            () => continue,
        };
        for address in [start, (start + 1).min(end - 1)] {
            let detail = detail(&target, address);
            assert_eq!((detail.page.state(), detail.page.kind), (state, Some(kind)), "{start:#x}");
            assert_eq!(detail.entry.is_none(), state == State::Outside);
            assert_eq!(detail.physical.is_err(), state != State::Present || detail.frame.is_err());
        }
    }
}

fn no_region() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 3);
    puppet.unmaps(memory + page_bytes(), 1);
    let target = puppet.0.attach();
    let detail = detail(&target, memory + page_bytes());
    assert_eq!((detail.page.state(), detail.page.kind), (State::Unmapped, None));
    let (below, above) = detail.nearest.expect("its neighbours");
    assert_eq!(below.expect("one below").range.end(), at(memory + page_bytes()));
    assert_eq!(above.expect("one above").range.start(), at(memory + 2 * page_bytes()));
    let spans = [(memory, 3)];
    let without = pages(&target, &spans, Evidence::ENTRIES);
    assert_eq!(without.len(), 2);
    let with = pages(&target, &spans, Evidence::HOLES);
    let states: Vec<State> = with.iter().map(|page| page.state()).collect();
    assert_eq!(states, [State::Untouched, State::Unmapped, State::Untouched]);
}

fn copy_on_write_after_fork() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 2);
    puppet.writes(memory, 2);
    let child = puppet.does("fork", &[memory, 1]) as u32;
    let parent = puppet.0.attach();
    let child = pmdb::process::Target::attach(child).expect("to attach to its child");
    let shared = [&parent, &child].map(|target| detail(target, memory + page_bytes()));
    assert_eq!(shared[0].exclusive, Ok(false));
    assert_eq!(shared[1].exclusive, Ok(false));
    assert_eq!(shared[0].frame, shared[1].frame);
    let own = [&parent, &child].map(|target| detail(target, memory));
    assert_eq!((own[0].exclusive.clone(), own[1].exclusive.clone()), (Ok(true), Ok(true)));
    if support::shows_frames() {
        assert_ne!(own[0].frame, own[1].frame);
    }
    if support::is_root() {
        assert_eq!((shared[0].map_count.clone(), own[0].map_count.clone()), (Ok(2), Ok(1)));
    }
}

fn one_page_of_a_huge_one_copied() {
    const NAME: &str = "states::one_page_of_a_huge_one_copied";
    let Some(bytes) = huge_page_bytes() else {
        return skip(NAME, "no transparent huge pages");
    };
    let pages_in = bytes / page_bytes();
    let mut puppet = Puppet::start();
    let memory = puppet.maps("huge", pages_in);
    puppet.writes(memory, pages_in);
    _ = puppet.advises(memory, pages_in, MADV_COLLAPSE);
    let copied = 7;
    puppet.does("fork", &[memory + copied * page_bytes(), 1]);
    let target = puppet.0.attach();
    if detail(&target, memory).huge != Ok(true) {
        return skip(NAME, "the kernel gave no huge page, or cannot say");
    }
    let exclusive: Vec<_> = (0..pages_in).map(|page| detail(&target, memory + page * page_bytes()).exclusive).collect();
    if !support::is_root() {
        assert!(exclusive.iter().all(|one| one.is_err()), "nothing here can tell");
        return;
    }
    let swept = pages(&target, &[(memory, pages_in)], Evidence::HUGE | Evidence::COUNTS);
    for (index, (exclusive, page)) in exclusive.iter().zip(&swept).enumerate() {
        let alone = index as u64 == copied;
        assert_eq!(*exclusive, Ok(alone), "page {index}");
        assert_eq!(page.map_count, Some(if alone { 1 } else { 2 }), "page {index}");
    }
    assert_eq!(swept.len() as u64, pages_in);
}
