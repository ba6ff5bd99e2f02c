//! Regions, whatever they are called, and the files behind them.

use super::support::{self, at, page_bytes, skip};
use super::target::{Target, announce, wait};
use super::{Scenario, Test};
use pmdb::kernel::Region;
use pmdb::target::Error;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

pub const TESTS: &[Test] = &[
    (
        "regions::region_at_is_what_maps_says",
        region_at_is_what_maps_says,
    ),
    (
        "regions::hostile_names_come_through",
        hostile_names_come_through,
    ),
    (
        "regions::files_are_opened_by_identity",
        files_are_opened_by_identity,
    ),
    (
        "regions::a_file_that_was_replaced_is_not_taken",
        a_file_that_was_replaced_is_not_taken,
    ),
    (
        "regions::no_device_and_no_nothing_is_opened",
        no_device_and_no_nothing_is_opened,
    ),
    ("regions::smaps_of_every_region", smaps_of_every_region),
    ("regions::vsyscall_and_vvar", vsyscall_and_vvar),
    ("regions::the_vdso_is_an_elf_file", the_vdso_is_an_elf_file),
    (
        "regions::by_path_the_same_file_is_found",
        by_path_the_same_file_is_found,
    ),
    (
        "regions::overlays_have_numbers_of_their_own",
        overlays_have_numbers_of_their_own,
    ),
    (
        "regions::shared_memory_is_known_by_its_device",
        shared_memory_is_known_by_its_device,
    ),
];

pub const SCENARIOS: &[Scenario] = &[
    ("files", files),
    ("shared", shared),
    ("overlay", overlay),
    ("without_admin", without_admin),
];

/// Names as a hostile program would choose them, each a file of one page with its number in it.
const NAMES: &[&[u8]] = &[
    b"plain",
    b"with blanks  and\ttab",
    b"new\nline",
    b"\x1b[31mred",
    b"\xff\xfe\x80",
    b"looks gone (deleted)",
    b"[heap]",
    b" ",
    b"\\134x",
];

/// Maps each file of a directory; deletes those whose names end in `plain`. Announces where each went.
fn files(arguments: &[String]) {
    let directory = Path::new(&arguments[0]);
    let mut line = String::new();
    for name in NAMES {
        let file = File::open(directory.join(OsStr::from_bytes(name))).expect("a file");
        // SAFETY: a fresh mapping of a file that nobody changes.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                page_bytes() as usize,
                ProtFlags::READ,
                MapFlags::PRIVATE,
                &file,
                0,
            )
        };
        line += &format!("{:p} ", start.expect("a mapping"));
    }
    announce(line);
    wait();
}

fn make_files(directory: &Path) {
    for (name, number) in NAMES.iter().zip(1u8..) {
        let contents = vec![number; page_bytes() as usize];
        std::fs::write(directory.join(OsStr::from_bytes(name)), contents).expect("a file");
    }
}

struct Files {
    directory: tempfile::TempDir,
    target: Target,
    starts: Vec<u64>,
}

fn mapped_files() -> Files {
    let directory = tempfile::tempdir().expect("a directory");
    make_files(directory.path());
    let mut target = Target::start("files", &[directory.path().to_str().expect("a plain path")]);
    let starts = target.numbers();
    Files {
        directory,
        target,
        starts,
    }
}

impl Files {
    fn path(&self, name: &[u8]) -> OsString {
        self.directory
            .path()
            .join(OsStr::from_bytes(name))
            .into_os_string()
    }
}

fn region(target: &pmdb::target::Target, address: u64) -> Region {
    let region = target.process.region_at(at(address)).expect("an answer");
    region.unwrap_or_else(|| panic!("no region at {address:#x}"))
}

fn region_at_is_what_maps_says() {
    let Files { target, .. } = &mapped_files();
    let attached = target.attach();
    let regions = attached.process.regions().expect("regions");
    let plain = support::plain_maps(target.pid());
    let ranges: Vec<_> = regions
        .iter()
        .map(|r| (r.range.start().get(), r.range.end().get()))
        .collect();
    assert_eq!(
        ranges,
        plain
            .iter()
            .map(|(start, end, _)| (*start, *end))
            .collect::<Vec<_>>()
    );
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
                assert_eq!(
                    attached.process.region_at(at(address)).expect("an answer"),
                    None
                );
            }
        }
        assert_eq!(
            attached.process.region_at(at(u64::MAX)).expect("an answer"),
            None
        );
        assert_eq!(attached.process.region_at(at(0)).expect("an answer"), None);
    }
}

fn hostile_names_come_through() {
    let files = mapped_files();
    let attached = files.target.attach();
    for (name, &start) in NAMES.iter().zip(&files.starts) {
        let region = region(&attached, start);
        let path = files.path(name).into_vec();
        match path.strip_suffix(b" (deleted)") {
            // The kernel's own mark for what is gone: the two cannot be told apart by name.
            Some(path) => assert_eq!((region.name.as_bytes(), region.deleted), (path, true)),
            None => assert_eq!((region.name.as_bytes(), region.deleted), (&*path, false)),
        }
        assert!(
            !region.name.to_string().contains(char::is_control),
            "{}",
            region.name
        );
    }
}

fn files_are_opened_by_identity() {
    let files = mapped_files();
    let attached = files.target.attach();
    for (&start, number) in files.starts.iter().zip(1u8..) {
        let region = region(&attached, start);
        let file = attached
            .modules
            .open(&region)
            .unwrap_or_else(|error| panic!("{}: {error}", region.name));
        let mut bytes = [0; 3];
        assert_eq!(file.len(), page_bytes());
        assert_eq!(file.read_at(5, &mut bytes).expect("bytes"), 3);
        assert_eq!(bytes, [number; 3], "{}", region.name);
        assert_eq!(
            file.read_at(page_bytes() - 1, &mut bytes).expect("bytes"),
            1
        );
        assert_eq!(file.read_at(page_bytes(), &mut bytes).expect("the end"), 0);
    }
}

fn a_file_that_was_replaced_is_not_taken() {
    let files = mapped_files();
    let attached = files.target.attach();
    let path = files.path(b"plain");
    std::fs::rename(&path, files.path(b"moved")).expect("to move it");
    std::fs::write(&path, [99; 64]).expect("another file in its place");
    let (mapped, second) = (
        region(&attached, files.starts[0]),
        region(&attached, files.starts[1]),
    );
    std::fs::remove_file(files.path(NAMES[1])).expect("to delete it");
    // The region as it was known before still names the path.
    for (region, number) in [(&mapped, 1), (&second, 2)] {
        let region = Region {
            name: match number {
                1 => pmdb::kernel::Name::new(path.clone().into_vec()),
                _ => region.name.clone(),
            },
            ..region.clone()
        };
        match attached.modules.open(&region) {
            // Root gets at the very file through map_files.
            Ok(file) => {
                let mut bytes = [0; 4];
                file.read_at(0, &mut bytes).expect("bytes");
                assert_eq!(bytes, [number; 4]);
            }
            Err(error) => {
                assert!(matches!(error, Error::NotAvailable { .. }), "{error:?}");
                assert!(!support::is_root(), "{error}");
            }
        }
    }
}

/// Shared anonymous memory, a memfd, and a device. Announces where each is.
fn shared(_: &[String]) {
    let page = page_bytes() as usize;
    let both = ProtFlags::READ | ProtFlags::WRITE;
    let memfd = rustix::fs::memfd_create("hostile\x1bname", rustix::fs::MemfdFlags::CLOEXEC)
        .expect("a memfd");
    rustix::fs::ftruncate(&memfd, page as u64).expect("a page");
    let zero = File::open("/dev/zero").expect("the device");
    // SAFETY: fresh mappings at no fixed address.
    let starts = unsafe {
        [
            mmap_anonymous(std::ptr::null_mut(), page, both, MapFlags::SHARED),
            mmap(
                std::ptr::null_mut(),
                page,
                both,
                MapFlags::SHARED,
                &memfd,
                0,
            ),
            mmap(
                std::ptr::null_mut(),
                page,
                ProtFlags::READ,
                MapFlags::PRIVATE,
                &zero,
                0,
            ),
        ]
    };
    let [anonymous, memfd, device] = starts.map(|start| start.expect("a mapping"));
    announce(format_args!("{anonymous:p} {memfd:p} {device:p}"));
    wait();
}

fn no_device_and_no_nothing_is_opened() {
    let mut target = Target::start("shared", &[]);
    let starts = target.numbers();
    let attached = target.attach();
    let device = region(&attached, starts[2]);
    let stack = attached
        .process
        .regions()
        .expect("regions")
        .into_iter()
        .find(|r| r.name.as_bytes() == b"[stack]");
    for region in [device, stack.expect("a stack")] {
        match attached.modules.open(&region) {
            Err(Error::NotAvailable { .. }) => {}
            Err(error) => panic!("{}: {error}", region.name),
            Ok(_) => panic!("{} was opened", region.name),
        }
    }
}

fn shared_memory_is_known_by_its_device() {
    let mut target = Target::start("shared", &[]);
    let starts = target.numbers();
    let attached = target.attach();
    for start in &starts[..2] {
        let region = region(&attached, *start);
        assert!(
            attached.machine.is_shared_memory(region.device),
            "{}",
            region.name
        );
    }
    assert!(
        !attached
            .machine
            .is_shared_memory(pmdb::kernel::Device { major: 8, minor: 1 })
    );
    assert!(
        !attached
            .machine
            .is_shared_memory(pmdb::kernel::Device::default())
    );
    if let Ok(shm) = std::fs::metadata("/dev/shm") {
        let device = std::os::unix::fs::MetadataExt::dev(&shm);
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        assert!(
            attached
                .machine
                .is_shared_memory(pmdb::kernel::Device { major, minor })
        );
    } else {
        skip(
            "regions::shared_memory_is_known_by_its_device (/dev/shm)",
            "there is none",
        );
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
            assert_eq!(
                attached
                    .process
                    .region_at(start)
                    .expect("an answer")
                    .as_ref(),
                Some(vsyscall)
            );
            assert!(support::entries(&*attached.process, start.get(), 1).is_empty());
            assert_eq!(
                attached.process.is_pfn_mapped(vsyscall).expect("an answer"),
                None
            );
        }
        None => skip(
            "regions::vsyscall_and_vvar ([vsyscall])",
            "this kernel has none",
        ),
    }
    let Some(vvar) = called(b"[vvar]") else {
        return skip(
            "regions::vsyscall_and_vvar ([vvar])",
            "this kernel has none",
        );
    };
    assert!(support::entries(&*attached.process, vvar.range.start().get(), 1)[0].raw() == 0);
    if attached.process.categories().is_empty() {
        return skip(
            "regions::vsyscall_and_vvar (scan)",
            "no PAGEMAP_SCAN on this kernel",
        );
    }
    let pfn_mapped = |region: &Region| attached.process.is_pfn_mapped(region).expect("an answer");
    // VmFlags of smaps say so too.
    let smaps =
        std::fs::read_to_string(format!("/proc/{}/smaps", target.pid())).expect("its smaps");
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
        let region = regions
            .iter()
            .find(|region| region.range.start().get() == start)
            .expect("the same regions");
        if region.name.as_bytes() != b"[vsyscall]" {
            assert_eq!(pfn_mapped(region), Some(expected), "{}", region.name);
            seen[usize::from(expected)] += 1;
        }
    }
    assert!(seen[0] > 5 && seen[1] > 0, "{seen:?}");
}

fn the_vdso_is_an_elf_file() {
    let mut target = Target::start("idle", &[]);
    target.line();
    let attached = target.attach();
    let regions = attached.process.regions().expect("regions");
    let Some(vdso) = regions
        .iter()
        .find(|region| region.name.as_bytes() == b"[vdso]")
    else {
        return skip("regions::the_vdso_is_an_elf_file", "this kernel has none");
    };
    let image = attached.modules.image(vdso).expect("an image");
    let mut start = [0; 4];
    assert_eq!(image.read_at(0, &mut start).expect("bytes"), 4);
    assert_eq!(&start, b"\x7fELF");
    assert_eq!(image.len(), vdso.range.len());
    assert_eq!(image.read_at(image.len(), &mut start).expect("the end"), 0);
}

fn smaps_of_every_region() {
    let Files { target, .. } = &mapped_files();
    target.stop();
    let process = target.attach().process;
    let regions = process.regions().expect("regions");
    let smaps = process.smaps().expect("smaps");
    assert_eq!(smaps.len(), regions.len());
    let mut resident = 0;
    for (region, smaps) in regions.iter().zip(&smaps) {
        assert_eq!(smaps.range, region.range, "{}", region.name);
        assert_eq!(
            smaps.field("Size"),
            Some(region.range.len()),
            "{}",
            region.name
        );
        let has = |code: &str| smaps.vm_flags.iter().any(|flag| flag == code);
        assert_eq!(has("wr"), region.permissions.write, "{}", region.name);
        assert_eq!(has("ex"), region.permissions.execute, "{}", region.name);
        resident += smaps.field("Rss").expect("Rss");
    }
    let rollup =
        std::fs::read_to_string(format!("/proc/{}/smaps_rollup", target.pid())).expect("its sum");
    let line = rollup
        .lines()
        .find_map(|line| line.strip_prefix("Rss:"))
        .expect("Rss");
    let kib: u64 = line
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number");
    assert_eq!(resident, kib << 10);
}

/// Gives up the rights to `map_files`, then opens the file behind each of the regions that the arguments name, and announces its
/// first byte, or why it cannot.
fn without_admin(arguments: &[String]) {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let mut rights = capabilities(None).expect("its rights");
    let kept = !(CapabilitySet::SYS_ADMIN | CapabilitySet::CHECKPOINT_RESTORE);
    rights.permitted &= kept;
    rights.effective &= kept;
    set_capabilities(None, rights).expect("to give them up");
    let [pid, addresses @ ..] = arguments else {
        panic!("a number and addresses");
    };
    let target = pmdb::target::live::attach(pid.parse().expect("a number")).expect("to attach");
    for address in addresses {
        match target
            .modules
            .open(&region(&target, address.parse().expect("a number")))
        {
            Ok(file) => {
                let mut byte = [0];
                file.read_at(0, &mut byte).expect("a byte");
                announce(byte[0]);
            }
            Err(Error::NotAvailable { .. }) => announce("not available"),
            Err(error) => announce(format_args!("{error:?}")),
        }
    }
    wait();
}

fn observe_without_admin(target: &Target, addresses: &[u64]) -> Vec<String> {
    let mut arguments = vec![target.pid().to_string()];
    arguments.extend(addresses.iter().map(u64::to_string));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut observer = Target::start("without_admin", &arguments);
    addresses.iter().map(|_| observer.line()).collect()
}

fn by_path_the_same_file_is_found() {
    let files = mapped_files();
    std::fs::rename(files.path(b"plain"), files.path(b"moved")).expect("to move it");
    std::fs::remove_file(files.path(NAMES[1])).expect("to delete it");
    std::fs::write(files.path(NAMES[1]), [99; 64]).expect("another file in its place");
    let said = observe_without_admin(&files.target, &files.starts);
    // A file that was moved is known by its new name; a deleted one is nowhere.
    let expected = (1..=NAMES.len()).map(|number| match number {
        2 => "not available".to_owned(),
        number => number.to_string(),
    });
    assert_eq!(said, expected.collect::<Vec<_>>());
}

/// Mounts an overlay in a mount namespace of its own and maps a file of it. Announces where, or `0` if it may not mount.
///
/// Its lower layer is of another filesystem than the upper one: `stat` then gives other device numbers than `maps`.
fn overlay(arguments: &[String]) {
    let part = |name: &str| {
        let path = Path::new(&arguments[0]).join(name);
        std::fs::create_dir(&path).expect("a directory");
        path.into_os_string().into_string().expect("a plain path")
    };
    let (lower, upper, work, merged) = (part("lower"), part("upper"), part("work"), part("merged"));
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    // SAFETY: takes no memory; only this process sees the namespace.
    let alone = unsafe { libc::unshare(libc::CLONE_NEWNS) } == 0;
    if !alone
        || !mount("none", "/", "none", libc::MS_REC | libc::MS_PRIVATE, "")
        || !mount("lower", &lower, "tmpfs", 0, "")
    {
        return announce(0);
    }
    let contents = vec![42; page_bytes() as usize];
    std::fs::write(Path::new(&lower).join("file"), contents).expect("a file");
    if !mount("overlay", &merged, "overlay", 0, &options) {
        return announce(0);
    }
    let file = File::open(Path::new(&merged).join("file")).expect("a file");
    // SAFETY: a fresh mapping of a file that nobody changes.
    let start = unsafe {
        mmap(
            std::ptr::null_mut(),
            page_bytes() as usize,
            ProtFlags::READ,
            MapFlags::PRIVATE,
            &file,
            0,
        )
    };
    announce(format_args!("{:p}", start.expect("a mapping")));
    wait();
}

fn mount(source: &str, point: &str, kind: &str, flags: libc::c_ulong, options: &str) -> bool {
    let texts = [source, point, kind, options];
    let [source, point, kind, options] =
        texts.map(|text| std::ffi::CString::new(text).expect("no zero byte"));
    // SAFETY: strings that outlive the call.
    let result = unsafe {
        libc::mount(
            source.as_ptr(),
            point.as_ptr(),
            kind.as_ptr(),
            flags,
            options.as_ptr().cast(),
        )
    };
    result == 0
}

fn overlays_have_numbers_of_their_own() {
    let name = "regions::overlays_have_numbers_of_their_own";
    if !support::is_root() {
        return skip(name, "only root may mount");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let mut target = Target::start(
        "overlay",
        &[directory.path().to_str().expect("a plain path")],
    );
    let start = target.numbers()[0];
    if start == 0 {
        return skip(name, "no overlay can be mounted here");
    }
    assert_eq!(observe_without_admin(&target, &[start]), ["42"]);
    let attached = target.attach();
    let file = attached
        .modules
        .open(&region(&attached, start))
        .expect("through map_files");
    let mut byte = [0];
    file.read_at(0, &mut byte).expect("a byte");
    assert_eq!(byte, [42]);
}
