//! The files behind regions.

use super::support::{self, at, page_bytes, skip};
use super::target::{Target, announce, wait};
use super::{Scenario, Test};
use pmdb::kernel::Region;
use pmdb::process::Error;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

pub const TESTS: &[Test] = &[
    ("files::opened_by_identity", files_are_opened_by_identity),
    ("files::a_file_that_was_replaced_is_not_taken", a_file_that_was_replaced_is_not_taken),
    ("files::by_path_the_same_file_is_found", by_path_the_same_file_is_found),
    ("files::overlays_have_numbers_of_their_own", overlays_have_numbers_of_their_own),
    ("files::no_device_and_no_nothing_is_opened", no_device_and_no_nothing_is_opened),
    ("files::the_vdso_is_an_elf_file", the_vdso_is_an_elf_file),
];

pub const SCENARIOS: &[Scenario] = &[("files", files), ("overlay", overlay), ("without_admin", without_admin)];

/// Names as a hostile program would choose them, each a file of one page with its number in it.
pub const NAMES: &[&[u8]] = &[
    b"plain",
    b"with blanks  and\ttab",
    b"new\nline",
    b"\x1b[31mred",
    b"\xff\xfe\x80",
    b"looks gone (deleted)",
    b"[heap]",
    b" ",
    b"\\134x",
    b"back\\slash\\012",
    b"both\n\\012 (deleted)",
];

/// Maps each file of a folder, and announces where each went.
fn files(arguments: &[String]) {
    let directory = Path::new(&arguments[0]);
    let mut line = String::new();
    for name in NAMES {
        let file = File::open(directory.join(OsStr::from_bytes(name))).expect("a file");
        // SAFETY: a fresh mapping of a file that nobody changes.
        let start =
            unsafe { mmap(std::ptr::null_mut(), page_bytes() as usize, ProtFlags::READ, MapFlags::PRIVATE, &file, 0) };
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

pub struct Files {
    directory: tempfile::TempDir,
    pub target: Target,
    pub starts: Vec<u64>,
}

pub fn mapped_files() -> Files {
    let directory = tempfile::tempdir().expect("a directory");
    make_files(directory.path());
    let mut target = Target::start("files", &[directory.path().to_str().expect("a plain path")]);
    let starts = target.numbers();
    Files { directory, target, starts }
}

impl Files {
    pub fn path(&self, name: &[u8]) -> OsString {
        self.directory.path().join(OsStr::from_bytes(name)).into_os_string()
    }
}

pub fn region(target: &pmdb::process::Target, address: u64) -> Region {
    let region = target.process.region_at(at(address)).expect("an answer");
    region.unwrap_or_else(|| panic!("no region at {address:#x}"))
}

fn files_are_opened_by_identity() {
    let files = mapped_files();
    let attached = files.target.attach();
    for (&start, number) in files.starts.iter().zip(1u8..) {
        let region = region(&attached, start);
        let file = attached.modules.open(&region).unwrap_or_else(|error| panic!("{}: {error}", region.name));
        let mut bytes = [0; 3];
        assert_eq!(file.len(), page_bytes());
        assert_eq!(file.read_at(5, &mut bytes).expect("bytes"), 3);
        assert_eq!(bytes, [number; 3], "{}", region.name);
        assert_eq!(file.read_at(page_bytes() - 1, &mut bytes).expect("bytes"), 1);
        assert_eq!(file.read_at(page_bytes(), &mut bytes).expect("the end"), 0);
    }
}

fn a_file_that_was_replaced_is_not_taken() {
    let files = mapped_files();
    let attached = files.target.attach();
    let path = files.path(b"plain");
    std::fs::rename(&path, files.path(b"moved")).expect("to move it");
    std::fs::write(&path, [99; 64]).expect("another file in its place");
    let (mapped, second) = (region(&attached, files.starts[0]), region(&attached, files.starts[1]));
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
            // Root reaches the mapped file itself through map_files.
            Ok(file) => {
                let mut bytes = [0; 4];
                file.read_at(0, &mut bytes).expect("bytes");
                assert_eq!(bytes, [number; 4]);
            }
            Err(error) => {
                assert!(matches!(error, Error::NotPermitted { .. }), "{error:?}");
                assert!(!support::is_root(), "{error}");
            }
        }
    }
}

fn no_device_and_no_nothing_is_opened() {
    let mut target = Target::start("shared", &[]);
    let starts = target.numbers();
    let attached = target.attach();
    let device = region(&attached, starts[3]);
    let stack = attached.process.regions().expect("regions").into_iter().find(|r| r.name.as_bytes() == b"[stack]");
    for region in [device, stack.expect("a stack")] {
        match attached.modules.open(&region) {
            Err(Error::NotAvailable { .. }) => {}
            Err(error) => panic!("{}: {error}", region.name),
            Ok(_) => panic!("{} was opened", region.name),
        }
    }
}

fn the_vdso_is_an_elf_file() {
    let mut target = Target::start("idle", &[]);
    target.line();
    let attached = target.attach();
    let regions = attached.process.regions().expect("regions");
    let Some(vdso) = regions.iter().find(|region| region.name.as_bytes() == b"[vdso]") else {
        return skip("regions::the_vdso_is_an_elf_file", "this kernel has none");
    };
    let image = attached.modules.image(vdso).expect("an image");
    let mut start = [0; 4];
    assert_eq!(image.read_at(0, &mut start).expect("bytes"), 4);
    assert_eq!(&start, b"\x7fELF");
    assert_eq!(image.len(), vdso.range.len());
    assert_eq!(image.read_at(image.len(), &mut start).expect("the end"), 0);
}

/// Drops the rights to `map_files`, then opens the file behind each region that the arguments name, and announces its
/// first byte, or the error.
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
    let target = pmdb::process::Target::attach(pid.parse().expect("a number")).expect("to attach");
    for address in addresses {
        match target.modules.open(&region(&target, address.parse().expect("a number"))) {
            Ok(file) => {
                let mut byte = [0];
                file.read_at(0, &mut byte).expect("a byte");
                announce(byte[0]);
            }
            Err(Error::NotAvailable { .. }) => announce("not available"),
            Err(Error::NotPermitted { .. }) => announce("not permitted"),
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
    // A moved file has its new name; a deleted one has no path.
    let expected = (1..=NAMES.len()).map(|number| match number {
        2 => "not permitted".to_owned(),
        number => number.to_string(),
    });
    assert_eq!(said, expected.collect::<Vec<_>>());
}

/// Mounts an overlay in a mount namespace of its own and maps a file of it. Announces where, or `0` if it may not
/// mount.
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
    let start =
        unsafe { mmap(std::ptr::null_mut(), page_bytes() as usize, ProtFlags::READ, MapFlags::PRIVATE, &file, 0) };
    announce(format_args!("{:p}", start.expect("a mapping")));
    wait();
}

pub fn mount(source: &str, point: &str, kind: &str, flags: libc::c_ulong, options: &str) -> bool {
    let texts = [source, point, kind, options];
    let [source, point, kind, options] = texts.map(|text| std::ffi::CString::new(text).expect("no zero byte"));
    // SAFETY: strings that outlive the call.
    let result = unsafe { libc::mount(source.as_ptr(), point.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast()) };
    result == 0
}

fn overlays_have_numbers_of_their_own() {
    let name = "regions::overlays_have_numbers_of_their_own";
    if !support::is_root() {
        return skip(name, "only root may mount");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let mut target = Target::start("overlay", &[directory.path().to_str().expect("a plain path")]);
    let start = target.numbers()[0];
    if start == 0 {
        return skip(name, "no overlay can be mounted here");
    }
    assert_eq!(observe_without_admin(&target, &[start]), ["42"]);
    let attached = target.attach();
    let file = attached.modules.open(&region(&attached, start)).expect("through map_files");
    let mut byte = [0];
    file.read_at(0, &mut byte).expect("a byte");
    assert_eq!(byte, [42]);
}
