//! Regions, with hostile names, deleted files and shared memory.

use super::files::{NAMES, mapped_files, region};
use super::support::{self, at, page_bytes, skip};
use super::target::{Target, announce, wait};
use super::{Scenario, Test};
use pmdb::budget::{Budget, OutOfBudget};
use pmdb::inspect::AddressSpace;
use pmdb::kernel::mounts::{FilesOn, MemoryFiles};
use pmdb::kernel::{AddressRange, Region};
use pmdb::process;
use pmdb::symbol::{ModuleRegions, Symbols, bss};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous};
use std::fs::File;
use std::os::unix::ffi::OsStringExt;

pub const TESTS: &[Test] = &[
    ("regions::region_at_is_what_maps_says", region_at_is_what_maps_says),
    ("regions::names_need_the_regions_of_modules_alone", names_need_the_regions_of_modules_alone),
    ("regions::those_asked_for_alone_are_those_of_maps", those_asked_for_alone_are_those_of_maps),
    ("regions::hostile_names_come_through", hostile_names_come_through),
    ("regions::deleted_is_what_is_deleted", deleted_is_what_is_deleted),
    ("regions::smaps_of_every_region", smaps_of_every_region),
    ("regions::vsyscall_and_vvar", vsyscall_and_vvar),
    ("regions::shared_memory_is_known_by_its_device", shared_memory_is_known_by_its_device),
];

pub const SCENARIOS: &[Scenario] = &[("shared", shared), ("many regions", many_regions)];

fn region_at_is_what_maps_says() {
    compare_regions(&mapped_files().target);
    let mut shared = Target::start("shared", &[]);
    shared.numbers();
    compare_regions(&shared);
}

fn compare_regions(target: &Target) {
    target.stop();
    let attached = target.attach();
    let regions = attached.process.regions().expect("regions");
    let plain = support::plain_maps(target.pid());
    let ranges: Vec<_> = regions.iter().map(|r| (r.range.start().get(), r.range.end().get())).collect();
    assert_eq!(ranges, plain.iter().map(|(start, end, _)| (*start, *end)).collect::<Vec<_>>());
    for (number, region) in regions.iter().enumerate() {
        const MOST: usize = 3;
        let start = region.range.start();
        let all: [fn(&Region) -> bool; 2] = [|_| false, |one| one.inode != 0];
        // Gaps of nothing, of the distance of segments, and of any size.
        for (gap, ends) in [1, 2 << 20, u64::MAX].into_iter().flat_map(|gap| all.map(|ends| (gap, ends))) {
            let below = attached.process.nearest_below(start, gap, MOST, ends);
            let Some(below) = below.expect("an answer") else {
                break;
            };
            let mut expected: Vec<&Region> = Vec::new();
            for one in regions[..number].iter().rev().take(MOST) {
                let above = expected.last().map_or(start, |above| above.range.start());
                if above.get() - one.range.end().get() >= gap || expected.last().is_some_and(|last| ends(last)) {
                    break;
                }
                expected.push(one);
            }
            let below: Vec<&Region> = below.iter().collect();
            assert_eq!(below, expected, "{gap:#x} below {region:?}");
        }
    }
    for scan in [true, false] {
        attached.process.set_scan(scan);
        for region in &regions {
            let (start, end) = (region.range.start().get(), region.range.end().get());
            for address in [start, start + (end - start) / 2, end - 1] {
                let found = attached.process.region_at(at(address)).expect("an answer");
                assert_eq!(found.as_ref(), Some(region), "{address:#x}, scan {scan}");
            }
        }
        for pair in ranges.windows(2).filter(|pair| pair[0].1 < pair[1].0) {
            for address in [pair[0].1, pair[1].0 - 1] {
                assert_eq!(attached.process.region_at(at(address)).expect("an answer"), None);
            }
        }
        assert_eq!(attached.process.region_at(at(u64::MAX)).expect("an answer"), None);
        assert_eq!(attached.process.region_at(at(0)).expect("an answer"), None);
    }
}

/// Those that are asked for by name, and those next to an address.
fn those_asked_for_alone_are_those_of_maps() {
    let mut many = Target::start("many regions", &[]);
    many.numbers();
    for target in [&many, &mapped_files().target] {
        target.stop();
        let attached = target.attach();
        let regions = attached.process.regions().expect("regions");
        let has_query = attached.process.query_region_at(at(0)).expect("an answer").is_some();
        for name in ["[heap]", "[stack]"] {
            let expected: Vec<Region> =
                regions.iter().filter(|one| one.name.as_bytes() == name.as_bytes()).cloned().collect();
            let called = attached.process.query_regions_called(name).expect("an answer");
            assert!(called.is_none() || called == Some(expected), "{name}: {called:?}");
            assert!(called.is_some() || !has_query || name == "[heap]", "{name} is not found");
        }
        assert_eq!(attached.process.query_regions_called("[vdso]").expect("an answer"), None);
        for three in regions.windows(3) {
            let spans = [three[0].range, three[2].range];
            let space = AddressSpace::in_ranges(&attached, &spans).expect("a space");
            let overlaps = |one: &&Region| spans.iter().any(|span| one.range.intersection(*span).is_some());
            assert!(space.regions().filter(overlaps).eq(regions.iter().filter(overlaps)), "{spans:?}");
        }
        for pair in regions.windows(2).filter(|pair| pair[0].range.end() < pair[1].range.start()) {
            let (below, above) = (Some(pair[0].clone()), Some(pair[1].clone()));
            for address in [pair[0].range.end(), at(pair[1].range.start().get() - 1)] {
                let (_, detail) = AddressSpace::detail_at(&attached, address).expect("an answer");
                assert_eq!(detail.nearest, Some((below.clone(), above.clone())), "{address}");
            }
        }
    }
}

/// A process with two thousand regions, of which a few are of modules.
fn many_regions(_: &[String]) {
    let page = page_bytes() as usize;
    for _ in 0..2000 {
        let (private, rights) = (MapFlags::PRIVATE, ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: nothing knows this memory but the kernel.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), 2 * page, rights, private) }.expect("memory");
        // SAFETY: the same memory; neighbours with other rights are not merged with it.
        unsafe { rustix::mm::mprotect(start, page, MprotectFlags::READ) }.expect("other rights");
    }
    announce(0);
    wait();
}

/// In a process with many regions, names are found among those of modules, with the same answers.
fn names_need_the_regions_of_modules_alone() {
    let mut target = Target::start("many regions", &[]);
    target.numbers();
    target.stop();
    let attached = target.attach();
    let all = attached.process.regions().expect("regions");
    let of_modules = |one: &&Region| one.inode != 0 || one.name.as_bytes() == b"[vdso]";
    let expected: Vec<&Region> = all.iter().filter(of_modules).collect();
    let symbols = Symbols::default();
    let ModuleRegions::Some(asked) = symbols.module_regions(&attached).expect("regions") else {
        let name = "regions::names_need_the_regions_of_modules_alone";
        return skip(name, "this kernel cannot be asked for one region");
    };
    assert_eq!(asked.iter().collect::<Vec<_>>(), expected);
    assert!(all.len() > 2000 && asked.len() < 100, "{} of {}", asked.len(), all.len());
    let by_name = |regions: &[Region]| {
        let found = symbols.over(&attached, regions).find(None, "main").expect("a program");
        found.into_iter().map(|one| (one.start, one.size)).collect::<Vec<_>>()
    };
    assert_eq!(by_name(&asked), by_name(&all));
    // The regions in the memory of a module are enough to find its .bss.
    let names = symbols.over(&attached, &*asked);
    let mut bss_bytes = 0;
    for module in names.modules() {
        let memory = names.memory_of(&module.name).expect("its memory");
        let of_one = |memory: AddressRange| {
            let few = attached.process.query_regions_in(memory, 100).expect("regions").expect("few");
            bss(memory, &few).collect::<Vec<_>>()
        };
        let found: Vec<AddressRange> = memory.into_iter().flat_map(of_one).collect();
        bss_bytes += found.iter().map(|range| range.len()).sum::<u64>();
        assert_eq!(Ok(found), symbols.over(&attached, &all).bss_of(&module.name), "{}", module.name);
    }
    assert!(bss_bytes > 0, "no module has any");
    // `info modules` lists them with the same ranges.
    let naming = symbols.naming_regions(&attached).expect("regions");
    assert!(naming.len() < 200, "{}", naming.len());
    let surveyed = |regions: &[Region]| -> Vec<_> {
        let names = symbols.over(&attached, regions);
        let surveys = names.surveys().map(|survey| survey.expect("no limit"));
        surveys.map(|survey| (survey.module.name.clone(), survey.copies)).collect()
    };
    assert_eq!(surveyed(&naming), surveyed(&all));
    // What follows a module may be its .bss, which has names too.
    let in_program = all.iter().rposition(|one| one.name == expected[0].name).expect("the program");
    for region in all.iter().take(in_program + 3).chain(all.iter().rev().take(30)) {
        let some = symbols.regions_for(&attached, region).expect("regions");
        let (start, end) = (region.range.start().get(), region.range.end().get());
        for address in [start, start + (end - start) / 2, end - 1].map(at) {
            let named = |regions: &[Region]| {
                let found = symbols.over(&attached, regions).at(address);
                found.map(|one| (one.name(), one.offset))
            };
            assert_eq!(named(&some), named(&all), "{address} in {region:?}");
            let on_demand = symbols.on_demand(&attached).at(address).map(|one| (one.name(), one.offset));
            assert_eq!(on_demand, named(&all), "{address} in {region:?}");
        }
    }
    // Nor does an answer about one address read them all, also where a word is no address at all.
    let data = all.iter().find(|one| one.inode != 0 && one.permissions.write).expect("data of the program");
    let place = data.range.start();
    let at_place = ["x/8xg", "x/3s", "explain", "telescope"].map(|command| format!("{command} --how {place}"));
    for command in at_place.into_iter().chain(["patched --how".to_owned()]) {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_pmdb"))
            .args(["-nx", "--json", "-batch", "-p", &target.pid().to_string(), "-ex", &command])
            .output()
            .expect("pmdb runs");
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(text.contains("PROCMAP_QUERY"), "{command}: {text}");
        assert!(!text.contains("all regions"), "{command}: {text}");
    }
    // Without that query all regions are read.
    attached.process.set_scan(false);
    assert!(matches!(symbols.module_regions(&attached), Ok(ModuleRegions::All(_))));
}

fn hostile_names_come_through() {
    let files = mapped_files();
    let attached = files.target.attach();
    for (name, &start) in NAMES.iter().zip(&files.starts) {
        let region = region(&attached, start);
        let path = files.path(name).into_vec();
        assert_eq!((region.name.as_bytes(), region.deleted), (&*path, false));
        assert!(!region.name.to_string().contains(char::is_control), "{}", region.name);
    }
}

/// A region is marked as deleted if and only if its file is, even if another file has its name by now.
fn deleted_is_what_is_deleted() {
    let files = mapped_files();
    let attached = files.target.attach();
    let marked = b"looks gone (deleted)";
    let find = |name: &[u8]| {
        let index = NAMES.iter().position(|one| *one == name);
        files.starts[index.expect("one of them")]
    };
    let check = |name: &[u8], deleted: bool| {
        let start = at(find(name));
        let regions = attached.process.regions().expect("regions");
        let listed = regions.iter().find(|one| one.range.contains(start));
        let asked = attached.process.region_at(start).expect("an answer");
        assert_eq!(listed, asked.as_ref());
        let path = files.path(name).into_vec();
        let found = asked.map(|region| (region.name.as_bytes().to_vec(), region.deleted));
        assert_eq!(found, Some((path, deleted)));
    };
    check(marked, false);
    check(b"plain", false);
    for name in [b"plain".as_slice(), marked, b"new\nline"] {
        std::fs::remove_file(files.path(name)).expect("to delete it");
        check(name, true);
    }
    // Another file has the name with the mark at its end.
    std::fs::write(files.path(b"plain (deleted)"), [99; 64]).expect("a file");
    std::fs::write(files.path(marked), [99; 64]).expect("a file");
    check(b"plain", true);
    check(marked, true);
}

/// Shared anonymous memory, a memfd, a System V segment, and a device. Announces where each is. Private memory with a
/// name is there too, where the kernel gives names.
fn shared(_: &[String]) {
    let page = page_bytes() as usize;
    let both = ProtFlags::READ | ProtFlags::WRITE;
    let memfd = rustix::fs::memfd_create("hostile\x1bname", rustix::fs::MemfdFlags::CLOEXEC).expect("a memfd");
    rustix::fs::ftruncate(&memfd, page as u64).expect("a page");
    let zero = File::open("/dev/zero").expect("the device");
    let null = std::ptr::null_mut;
    // SAFETY: fresh mappings at no fixed address.
    let starts = unsafe {
        [
            mmap_anonymous(null(), page, both, MapFlags::SHARED),
            mmap(null(), page, both, MapFlags::SHARED, &memfd, 0),
            mmap(null(), page, ProtFlags::READ, MapFlags::PRIVATE, &zero, 0),
            mmap_anonymous(null(), page, both, MapFlags::PRIVATE),
        ]
    };
    let [anonymous, memfd, device, named] = starts.map(|start| start.expect("a mapping"));
    // SAFETY: a segment of its own, gone with its last user; a name for a mapping of its own.
    let segment = unsafe {
        let id = libc::shmget(libc::IPC_PRIVATE, page, 0o600);
        let segment = libc::shmat(id, std::ptr::null(), 0);
        libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut());
        let name = c"given (by) {me} (deleted)";
        libc::prctl(libc::PR_SET_VMA, libc::PR_SET_VMA_ANON_NAME, named, page, name.as_ptr());
        segment
    };
    announce(format_args!("{anonymous:p} {memfd:p} {segment:p} {device:p} {named:p}"));
    wait();
}

fn shared_memory_is_known_by_its_device() {
    let mut target = Target::start("shared", &[]);
    let starts = target.numbers();
    let attached = target.attach();
    for (start, name) in starts.iter().zip(["/dev/zero", "/memfd:hostile\x1bname", "/SYSV00000000"]) {
        let region = region(&attached, *start);
        assert_eq!((region.name.as_bytes(), region.deleted), (name.as_bytes(), true));
        assert!(region.permissions.shared);
        assert!(
            attached.machine.files_on(region.device, &mut Budget::unlimited())
                == Ok(FilesOn::Memory(MemoryFiles::Shared)),
            "{}",
            region.name
        );
    }
    // In text it is named as what it is. A private mapping of the device is something else.
    let pmdb = std::process::Command::new(env!("CARGO_BIN_EXE_pmdb"))
        .args(["-nx", "-q", "-batch", "-p", &target.pid().to_string(), "-ex", "regions"])
        .output()
        .expect("pmdb runs");
    let text = String::from_utf8_lossy(&pmdb.stdout);
    let row = |start: u64| text.lines().find(|line| line.starts_with(&format!("{start:#x} "))).unwrap_or_default();
    assert!(row(starts[0]).contains("(shared anonymous), inode "), "{text}");
    assert!(row(starts[3]).ends_with("/dev/zero"), "{text}");
    let disk = pmdb::kernel::Device { major: 8, minor: 1 };
    for (device, expected) in [(disk, FilesOn::Storage), (pmdb::kernel::Device::default(), FilesOn::NoMount)] {
        assert_eq!(attached.machine.files_on(device, &mut Budget::unlimited()), Ok(expected));
    }
    let named = region(&attached, starts[4]);
    if named.name.is_empty() {
        skip("regions::shared_memory_is_known_by_its_device (name)", "this kernel gives no names");
    } else {
        assert_eq!(named.name.as_bytes(), b"[anon:given (by) {me} (deleted)]");
        assert!(!named.deleted);
    }
    if let Ok(shm) = std::fs::metadata("/dev/shm") {
        let device = std::os::unix::fs::MetadataExt::dev(&shm);
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let device = pmdb::kernel::Device { major, minor };
        assert_eq!(
            attached.machine.files_on(device, &mut Budget::unlimited()),
            Ok(FilesOn::Memory(MemoryFiles::Shared))
        );
    } else {
        skip("regions::shared_memory_is_known_by_its_device (/dev/shm)", "there is none");
    }
}

fn vsyscall_and_vvar() {
    let mut target = Target::start("idle", &[]);
    target.line();
    let attached = target.attach();
    let regions = attached.process.regions().expect("regions");
    let called = |name: &[u8]| regions.iter().find(|region| region.name.as_bytes() == name);
    match called(b"[vsyscall]") {
        Some(vsyscall) => {
            let start = vsyscall.range.start();
            assert_eq!(attached.process.region_at(start).expect("an answer").as_ref(), Some(vsyscall));
            assert!(support::entries(&attached.process, start.get(), 1).is_empty());
            assert_eq!(attached.process.is_pfn_mapped(vsyscall).expect("an answer"), None);
        }
        None => skip("regions::vsyscall_and_vvar ([vsyscall])", "this kernel has none"),
    }
    let Some(vvar) = called(b"[vvar]") else {
        return skip("regions::vsyscall_and_vvar ([vvar])", "this kernel has none");
    };
    let is_hidden = support::has_vm_flag(target.pid(), vvar.range.start().get(), "pf");
    let entry = support::entries(&attached.process, vvar.range.start().get(), 1)[0];
    assert!(entry.is_empty() || !is_hidden, "{entry:?}");
    if !support::has_scan() {
        return skip("regions::vsyscall_and_vvar (scan)", "no PAGEMAP_SCAN on this kernel");
    }
    let pfn_mapped = |region: &Region| attached.process.is_pfn_mapped(region).expect("an answer");
    // VmFlags of smaps say so too.
    let smaps = std::fs::read_to_string(format!("/proc/{}/smaps", target.pid())).expect("its smaps");
    let mut names = Vec::new();
    let mut range = (0, 0);
    for line in smaps.lines() {
        let first = line.split_whitespace().next().unwrap_or_default();
        if let Some((start, end)) = first.split_once('-') {
            let number = |digits| u64::from_str_radix(digits, 16).expect("a number");
            range = (number(start), number(end));
        }
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            names.push((range.0, flags.split_whitespace().any(|flag| flag == "pf")));
        }
    }
    let mut seen = [0, 0];
    for (start, expected) in names {
        let region = regions.iter().find(|region| region.range.start().get() == start).expect("the same regions");
        // What the page map does not cover cannot be scanned: [vsyscall], and [vectors] of 32-bit Arm.
        if support::plain_entry(target.pid(), start).is_some() {
            assert_eq!(pfn_mapped(region), Some(expected), "{}", region.name);
            seen[usize::from(expected)] += 1;
        }
    }
    // Later kernels have an ordinary [vvar], and a process need not have another device mapping.
    assert!(seen[0] > 5, "{seen:?}");
    assert!(seen[1] > 0 || support::release() >= (7, 0), "{seen:?}");
}

fn smaps_of_every_region() {
    let target = &mapped_files().target;
    target.stop();
    let process = target.attach().process;
    let regions = process.regions().expect("regions");
    let smaps = process.smaps(&mut Budget::unlimited()).expect("smaps");
    assert_eq!(smaps.len(), regions.len());
    // Each part of the text and each region is a step.
    for steps in [0, 1, 5, regions.len() as u64] {
        let some = process.smaps(&mut Budget::unlimited().at_most(steps));
        assert!(matches!(some, Err(process::Error::OutOfBudget(OutOfBudget::Steps))), "{steps}");
    }
    let mut resident = 0;
    for (region, smaps) in regions.iter().zip(&smaps) {
        assert_eq!(smaps.range, region.range, "{}", region.name);
        assert_eq!(smaps.field("Size"), Some(region.range.len()), "{}", region.name);
        let has = |code: &str| smaps.vm_flags.iter().any(|flag| flag == code);
        assert_eq!(has("wr"), region.permissions.write, "{}", region.name);
        assert_eq!(has("ex"), region.permissions.execute, "{}", region.name);
        resident += smaps.field("Rss").expect("Rss");
    }
    let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", target.pid())).expect("its sum");
    let line = rollup.lines().find_map(|line| line.strip_prefix("Rss:")).expect("Rss");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    assert_eq!(resident, kib << 10);
}
