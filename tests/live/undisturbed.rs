//! Commands do not signal the target through the leases that it holds, and read no file that they do not need.

use super::puppet::Puppet;
use super::support::{page_bytes, skip};
use super::target::{Target, announce, command_as, wait};
use super::{Scenario, Test};
use crate::executable;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use std::ffi::CString;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

pub const TESTS: &[Test] = &[
    ("undisturbed::no_command_breaks_a_lease", no_command_breaks_a_lease),
    (
        "undisturbed::a_leased_file_is_not_opened_and_the_reason_is_reported",
        a_leased_file_is_not_opened_and_the_reason_is_reported,
    ),
    ("undisturbed::what_needs_no_file_opens_none", what_needs_no_file_opens_none),
    ("undisturbed::one_answer_opens_a_mapped_file_once", one_answer_opens_a_mapped_file_once),
];

pub const SCENARIOS: &[Scenario] = &[("leaseholder", leaseholder)];

/// `F_SETSIG`, `DN_ACCESS` and `DN_MULTISHOT` (include/uapi/asm-generic/fcntl.h, include/uapi/linux/fcntl.h), which
/// libc lacks.
const SETSIG: libc::c_int = 10;
const DN_ACCESS: libc::c_int = 1;
const DN_MULTISHOT: libc::c_int = 1 << 31;

static SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

/// Maps the files that the arguments name, takes a write lease on each, and announces where it mapped them, or `0` and
/// the error number. Then answers each line with the number of signals that have come.
fn leaseholder(paths: &[String]) {
    for signal in [libc::SIGIO, libc::SIGUSR1] {
        let handler = count as extern "C" fn(libc::c_int) as libc::sighandler_t;
        // SAFETY: the handler only adds to a number.
        assert_ne!(unsafe { libc::signal(signal, handler) }, libc::SIG_ERR);
    }
    let bytes = page_bytes() as usize;
    let mut starts = Vec::new();
    for path in paths {
        // This process makes the copy: a child that the test forks at this moment would also have the file open.
        std::fs::copy("/proc/self/exe", path).expect("a copy");
        let options = std::fs::OpenOptions::new().read(true).write(true).open(path);
        let file = options.expect("a file of the test's");
        // SAFETY: a new mapping of a file of two pages or more, one of which is touched; the lease is on a number of
        // our own.
        let leased = unsafe {
            let (prot, flags) = (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE);
            let start = libc::mmap(std::ptr::null_mut(), 2 * bytes, prot, flags, file.as_raw_fd(), 0);
            assert_ne!(start, libc::MAP_FAILED);
            start.cast::<u8>().read_volatile();
            starts.push(start as u64);
            libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK)
        };
        if leased != 0 {
            let error = std::io::Error::last_os_error().raw_os_error();
            return announce(format_args!("0 {}", error.unwrap_or(0)));
        }
        // The lease ends with the file.
        std::mem::forget(file);
    }
    let folder = Path::new(&paths[0]).parent().expect("a folder");
    let watch = watch(folder);
    // dnotify signals reads of the files beside them, too.
    let folder = std::fs::File::open(folder).expect("a folder");
    // SAFETY: numbers, on a folder that stays open.
    unsafe {
        libc::fcntl(folder.as_raw_fd(), SETSIG, libc::SIGUSR1);
        let events = DN_ACCESS | DN_MULTISHOT;
        assert_eq!(libc::fcntl(folder.as_raw_fd(), libc::F_NOTIFY, events), 0);
    }
    let starts: Vec<String> = starts.iter().map(u64::to_string).collect();
    announce(starts.join(" "));
    let mut seen = 0;
    while wait().is_some() {
        seen += events(&watch);
        announce(format_args!("{} {seen}", SIGNALS.load(Ordering::Relaxed)));
    }
}

/// Watches the files of a folder being opened and read.
fn watch(folder: &Path) -> OwnedFd {
    let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).expect("inotify");
    // The kernel joins events that are alike and follow each other: closing a file stands between two that open it.
    let flags = WatchFlags::OPEN | WatchFlags::ACCESS | WatchFlags::CLOSE;
    inotify::add_watch(&watch, folder, flags).expect("a watch");
    watch
}

/// How many files were opened, read or closed since this was last asked; opening the folder itself does not count.
fn events(watch: &OwnedFd) -> usize {
    count_events(watch, inotify::ReadFlags::all())
}

/// How many of these events have come since this was last asked.
fn count_events(watch: &OwnedFd, which: inotify::ReadFlags) -> usize {
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(watch, &mut buffer);
    let mut seen = 0;
    while let Ok(event) = events.next() {
        let flags = event.events();
        let is_of_file = !flags.contains(inotify::ReadFlags::ISDIR);
        seen += usize::from(is_of_file && flags.intersects(which));
    }
    seen
}

/// A target that holds a lease on two files: an ELF file, which is searched for names, and its perf map.
struct Leaseholder {
    target: Target,
    starts: Vec<u64>,
    _folder: tempfile::TempDir,
}

impl Leaseholder {
    fn start() -> Result<Self, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("leased.so");
        let mut target = Target::start("leaseholder", &[path.to_str().expect("a plain path")]);
        let starts = target.numbers();
        match starts[..] {
            [0, error] => Err(format!("no lease can be had here: error {error}")),
            _ => Ok(Leaseholder { target, starts, _folder: folder }),
        }
    }

    /// How many signals have come, and how often a file was seen opened or read.
    fn disturbances(&mut self) -> Vec<u64> {
        self.target.send("how many");
        self.target.numbers()
    }
}

fn pmdb(pid: u32, command: &str) -> std::process::Output {
    let pid = pid.to_string();
    let mut program = Command::new(env!("CARGO_BIN_EXE_pmdb"));
    program.args(["-nx", "-q", "-batch", "--json", "-p", &pid, "-ex", command]);
    program.stdin(Stdio::null()).output().expect("it runs")
}

/// Commands that inspect `address`, in every way.
pub fn looks(address: u64) -> Vec<String> {
    let with = [
        "translate ADDR",
        "translate --how ADDR",
        "translate ADDR..ADDR+0x2000",
        "region ADDR",
        "region ADDR full",
        "flags ADDR",
        "who ADDR",
        "explain ADDR",
        "x/2xg ADDR",
        "x/a ADDR",
        "x/s ADDR",
        "x/2xg ADDR + 0x1000",
        "telescope ADDR",
        "patched",
        "print symbol(ADDR)",
        "print *ADDR",
        "info symbol ADDR",
        "info line *ADDR",
        "walk ADDR..ADDR+0x2000",
        "walk ADDR..ADDR+0x2000 where cached",
        "watch ADDR..ADDR+0x2000 for 50ms",
        "find ADDR..ADDR+0x2000, 0x464c457f",
    ];
    let alone = [
        "info process",
        "info capabilities",
        "ps",
        "regions",
        "regions full",
        "summary",
        "walk all by kind",
        "translate all limit 3",
        "info address main",
        "info symbols ^main$",
        "info modules",
        "find all, \"hunter2hunter2\"",
        "print $pc",
        "print &main",
        "'leased.so'!main",
        "info line main",
        "translate leased.so",
        "who leased.so",
    ];
    let with = with.iter().map(|line| line.replace("ADDR", &format!("{address:#x}")));
    with.chain(alone.iter().map(|line| line.to_string())).collect()
}

fn no_command_breaks_a_lease() {
    let mut holder = match Leaseholder::start() {
        Ok(holder) => holder,
        Err(why) => return skip("undisturbed::no_command_breaks_a_lease", &why),
    };
    let pid = holder.target.pid();
    for command in looks(holder.starts[0]) {
        let output = pmdb(pid, &command);
        assert_eq!(holder.disturbances(), [0, 0], "{command}: {output:?}");
    }
    // The signal does come when the file is opened: without waiting, as the open would wait for the target to end.
    let path = holder._folder.path().join("leased.so");
    let path = CString::new(path.to_str().expect("a path")).expect("no zero byte");
    // SAFETY: a path that ends in zero.
    let opened = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_NONBLOCK) };
    assert_eq!(opened, -1);
    assert_eq!(holder.disturbances(), [1, 0]);
}

fn a_leased_file_is_not_opened_and_the_reason_is_reported() {
    let mut holder = match Leaseholder::start() {
        Ok(holder) => holder,
        Err(why) => {
            return skip("undisturbed::a_leased_file_is_not_opened_and_the_reason_is_reported", &why);
        }
    };
    let pid = holder.target.pid();
    let output = pmdb(pid, &format!("translate {:#x}", holder.starts[0]));
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a record");
    assert_eq!(record["state"], "present", "{record}");
    assert!(record["symbol"].is_null(), "{record}");
    let why = record["why"]["symbol"].as_str().unwrap_or_default();
    let expected = format!("process {pid} holds a lease on ");
    assert!(why.contains(&expected), "{record}");
    assert_eq!(holder.disturbances(), [0, 0]);
}

fn what_needs_no_file_opens_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    executable::copy(std::env::current_exe().expect("this program"), &program);
    let mut puppet = Puppet::run(&mut command_as(&program, "puppet"));
    let memory = puppet.maps_far();
    puppet.writes(memory, 1);
    let pid = puppet.0.pid();
    let watch = watch(folder.path());
    for command in [
        "translate ADDR",
        "walk ADDR..ADDR+0x2000",
        "flags ADDR",
        "region ADDR",
        "x/2xg ADDR",
        "print *ADDR",
        "info process",
        "regions",
        "explain ADDR",
        "summary",
    ] {
        let output = pmdb(pid, &command.replace("ADDR", &format!("{memory:#x}")));
        assert!(output.status.success(), "{command}: {output:?}");
        assert_eq!(events(&watch), 0, "{command}");
    }
    // The watch does see a file that is read.
    _ = std::fs::read(&program).expect("its bytes");
    assert!(events(&watch) > 0);
}

/// Every other page of the file has a private copy: the bytes of the others are in the page cache, each in a stretch of
/// its own.
fn one_answer_opens_a_mapped_file_once() {
    const PAGES: u64 = 32;
    let page = page_bytes();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("data");
    std::fs::write(&path, vec![b'x'; (PAGES * page) as usize]).expect("a file");
    let file = std::fs::File::open(&path).expect("the file");
    let mut puppet = Puppet::start();
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
    let memory = puppet.maps_file(&file, PAGES, prot, flags);
    puppet.writes(memory, PAGES);
    for dropped in (0..PAGES).step_by(2) {
        let advised = puppet.advises(memory + dropped * page, 1, libc::MADV_DONTNEED);
        assert_eq!(advised, Ok(()));
    }
    let watch = watch(folder.path());
    let find = format!("find {memory:#x}, +{}, \"nowhere in it\"", PAGES * page);
    let output = pmdb(puppet.0.pid(), &find);
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one record");
    assert_eq!(summary["cached"], PAGES / 2, "{summary}");
    assert_eq!(count_events(&watch, inotify::ReadFlags::OPEN), 1);
}
