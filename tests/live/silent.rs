//! Storage that stops answering: a FUSE mount whose server takes requests and never replies.

use super::cgroup::Cgroup;
use super::puppet::Puppet;
use super::support::{page_bytes, skip};
use super::target::{Target, announce, command_as, enter_namespace, wait};
use super::{Scenario, Test};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    (
        "silent::what_needs_only_proc_is_answered_and_the_program_ends",
        what_needs_only_proc_is_answered_and_the_program_ends,
    ),
    ("silent::ctrl_c_ends_the_wait", ctrl_c_ends_the_wait),
    (
        "silent::a_silent_program_keeps_no_other_file_from_being_read",
        a_silent_program_keeps_no_other_file_from_being_read,
    ),
    ("silent::a_tmpfs_below_a_silent_server_is_said_once", a_tmpfs_below_a_silent_server_is_said_once),
    ("silent::a_tmpfs_on_an_overlay_of_a_silent_server", a_tmpfs_on_an_overlay_of_a_silent_server),
];

pub const SCENARIOS: &[Scenario] = &[("served", served), ("served-above", served_above)];

/// A file system of a directory and one file, which is this program; the protocol is that of include/uapi/linux/fuse.h.
struct Server {
    device: File,
    bytes: Vec<u8>,
    silent: Arc<AtomicBool>,
}

/// Words of the protocol, of 32 and of 64 bits.
#[derive(Clone)]
enum Part {
    Wide(u64),
    Narrow(u32),
}

use Part::{Narrow, Wide};

fn joined(parts: &[Part]) -> Vec<u8> {
    let bytes = parts.iter().map(|part| match part {
        Wide(word) => word.to_ne_bytes().to_vec(),
        Narrow(word) => word.to_ne_bytes().to_vec(),
    });
    bytes.flatten().collect()
}

impl Server {
    /// Node 1 is the root, node 2 the file, node 3 the directory: `struct fuse_attr`.
    fn attributes(&self, node: u64) -> Vec<Part> {
        let (mode, size) = match node {
            1 | 3 => (0o040_755, 0),
            _ => (0o100_755, self.bytes.len() as u64),
        };
        let mut parts = vec![Wide(node), Wide(size), Wide(size / 512), Wide(0), Wide(0), Wide(0)];
        parts.extend([0, 0, 0, mode, 1, 0, 0, 0, 4096, 0].map(Narrow));
        parts
    }

    /// The answer to a request: an error number, or bytes.
    fn answer(&self, operation: u32, node: u64, body: &[u8]) -> Result<Vec<u8>, i32> {
        let wide = |at: usize| u64::from_ne_bytes(body[at..at + 8].try_into().expect("a word"));
        let narrow = |at: usize| u32::from_ne_bytes(body[at..at + 4].try_into().expect("a word"));
        match operation {
            // FUSE_LOOKUP
            1 => {
                let node = match body {
                    b"file\0" => 2,
                    b"directory\0" => 3,
                    _ => return Err(libc::ENOENT),
                };
                let mut entry = vec![Wide(node), Wide(0), Wide(0), Wide(0), Narrow(0), Narrow(0)];
                entry.extend(self.attributes(node));
                Ok(joined(&entry))
            }
            // FUSE_GETATTR: not cached, so that each read asks again.
            3 => {
                let mut parts = vec![Wide(0), Narrow(0), Narrow(0)];
                parts.extend(self.attributes(node));
                Ok(joined(&parts))
            }
            // FUSE_OPEN, FUSE_OPENDIR: with FOPEN_KEEP_CACHE; otherwise each open would drop the page cache.
            14 | 27 => Ok(joined(&[Wide(0), Narrow(2), Narrow(0)])),
            // FUSE_READ
            15 => {
                let from = (wide(8) as usize).min(self.bytes.len());
                let end = (from + narrow(16) as usize).min(self.bytes.len());
                Ok(self.bytes[from..end].to_vec())
            }
            // FUSE_STATFS
            17 => {
                let mut parts = [1000u64; 5].map(Wide).to_vec();
                parts.extend([4096, 255, 4096, 0, 0, 0, 0, 0, 0, 0].map(Narrow));
                Ok(joined(&parts))
            }
            // FUSE_RELEASE, FUSE_FLUSH, FUSE_RELEASEDIR, FUSE_ACCESS
            18 | 25 | 29 | 34 => Ok(Vec::new()),
            // FUSE_INIT
            26 => {
                let mut parts = [7, 31, 65536, 0, 16 << 16 | 16, 65536, 1, 0].map(Narrow).to_vec();
                parts.extend([0; 8].map(Narrow));
                Ok(joined(&parts))
            }
            _ => Err(libc::ENOSYS),
        }
    }

    fn serve(mut self) {
        let mut request = vec![0; 1 << 20];
        while let Ok(length) = self.device.read(&mut request) {
            let narrow = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().expect("a word"));
            let wide = |at: usize| u64::from_ne_bytes(request[at..at + 8].try_into().expect("a word"));
            let (operation, unique, node) = (narrow(4), wide(8), wide(16));
            // FUSE_FORGET, FUSE_INTERRUPT and FUSE_BATCH_FORGET want no reply.
            if matches!(operation, 2 | 36 | 42) || self.silent.load(Ordering::Relaxed) {
                continue;
            }
            let answer = self.answer(operation, node, &request[40..length]);
            let (error, body) = match answer {
                Ok(body) => (0, body),
                Err(error) => (-error, Vec::new()),
            };
            let head = [Narrow(16 + body.len() as u32), Narrow(error as u32), Wide(unique)];
            let reply = [joined(&head), body].concat();
            self.device.write_all(&reply).expect("a kernel that listens");
        }
    }
}

/// Mounts the file system in a mount namespace of its own. Once this is set, the server is silent; the mount ends with
/// this process.
fn serve_at(point: &str) -> Result<Arc<AtomicBool>, &'static str> {
    let device = File::options().read(true).write(true).open("/dev/fuse");
    let device = device.map_err(|_| "/dev/fuse cannot be opened")?;
    // SAFETY: takes no memory; only this process sees the namespace.
    let alone = unsafe { libc::unshare(libc::CLONE_NEWNS) } == 0;
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
    let private = libc::MS_REC | libc::MS_PRIVATE;
    if !alone
        || !super::files::mount("none", "/", "none", private, "")
        || !super::files::mount("pmdb", point, "fuse.pmdb", 0, &options)
    {
        return Err("FUSE cannot be mounted");
    }
    let silent = Arc::new(AtomicBool::new(false));
    let bytes = std::fs::read("/proc/self/exe").expect("this program");
    let server = Server { device, bytes, silent: Arc::clone(&silent) };
    std::thread::spawn(move || server.serve());
    Ok(silent)
}

/// Mounts a tmpfs below a directory of the file system, or of an overlay of that and another directory, and fills a
/// file there, which it closes. After the next line from the test the server is silent.
fn served_above(arguments: &[String]) {
    announce("here");
    wait();
    let silent = match serve_at(&arguments[0]) {
        Ok(silent) => silent,
        Err(why) => return announce(why),
    };
    let above = match arguments {
        [point, plain, merged] => {
            if !super::files::mount("none", merged, "overlay", 0, &format!("lowerdir={plain}:{point}")) {
                return announce("no overlay can be mounted here");
            }
            merged
        }
        _ => &arguments[0],
    };
    let below = format!("{above}/directory");
    assert!(super::files::mount("none", &below, "tmpfs", 0, "size=64m"), "{}", std::io::Error::last_os_error());
    std::fs::write(format!("{below}/closed"), vec![1; CLOSED as usize]).expect("room in memory");
    announce("ready");
    wait();
    silent.store(true, Ordering::Relaxed);
    announce("silent");
    wait();
}

/// Bytes of a file in memory that nobody has open.
const CLOSED: u64 = 9 << 20;

/// Maps the file of the file system as code, touches the first page, and announces where; or why not. After the next
/// line from the test the server is silent.
fn served(arguments: &[String]) {
    let point = &arguments[0];
    let silent = match serve_at(point) {
        Ok(silent) => silent,
        Err(why) => return announce(why),
    };
    let file = File::open(format!("{point}/file")).expect("the file");
    let bytes = page_bytes() as usize;
    // SAFETY: a new mapping of a file that stays as it is, of which one byte is read.
    let start = unsafe {
        let (prot, flags) = (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE);
        let start = libc::mmap(std::ptr::null_mut(), 4 * bytes, prot, flags, file.as_raw_fd(), 0);
        assert_ne!(start, libc::MAP_FAILED);
        start.cast::<u8>().read_volatile();
        start
    };
    // Closing it later would ask the server, which is in this process: the process could not end once the server is
    // silent. The mapping stays.
    drop(file);
    announce(start as u64);
    wait();
    silent.store(true, Ordering::Relaxed);
    announce("silent");
    wait();
}

/// A process that has mapped a file of such a mount, and where.
struct Served {
    target: Target,
    start: u64,
    point: tempfile::TempDir,
}

impl Served {
    fn start() -> Result<Self, String> {
        let point = tempfile::tempdir().expect("a folder");
        let mut target = Target::start("served", &[point.path().to_str().expect("a plain path")]);
        let line = target.line();
        match line.parse() {
            Ok(start) => Ok(Served { target, start, point }),
            Err(_) => Err(line),
        }
    }

    fn falls_silent(&mut self) {
        self.target.send("be silent");
        assert_eq!(self.target.line(), "silent");
    }

    /// pmdb, started with these lines.
    fn runs(&self, lines: &[&str]) -> Running {
        let address = format!("{:#x}", self.start);
        let lines: Vec<String> = lines.iter().map(|line| line.replace("ADDR", &address)).collect();
        Running::start(self.target.pid(), &lines)
    }
}

struct Running(Option<Child>);

impl Running {
    /// pmdb, attached to that process, with these lines.
    fn start(pid: u32, lines: &[String]) -> Self {
        Self::of(pmdb(pid, lines))
    }

    fn of(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(Some(command.spawn().expect("it starts")))
    }

    /// Its output until it ended, and the time it took. A program that does not end fails the test.
    fn ends(mut self) -> (String, Duration) {
        let (child, started) = (self.0.take().expect("a child"), Instant::now());
        let pid = child.id();
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(child.wait_with_output()));
        match is_done.recv_timeout(Duration::from_secs(120)) {
            Ok(output) => {
                let output = output.expect("its output");
                (String::from_utf8_lossy(&output.stdout).into_owned(), started.elapsed())
            }
            Err(_) => {
                let waits = waits(pid);
                // SAFETY: the number of a child that was not waited for.
                unsafe { libc::kill(pid as i32, libc::SIGKILL) };
                panic!("it does not end: {waits}");
            }
        }
    }
}

/// pmdb, which is to attach to that process and run these lines.
fn pmdb(pid: u32, lines: &[String]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pmdb"));
    command.args(["-nx", "-q", "-batch", "--json", "--keep-going", "-p", &pid.to_string()]);
    for line in lines {
        command.args(["-ex", line]);
    }
    command
}

/// Where the threads of a process wait.
fn waits(pid: u32) -> String {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("its threads");
    let wait = |thread: std::fs::DirEntry| {
        let read = |name| std::fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        format!("{} {} {}", read("comm"), read("syscall"), read("stack"))
    };
    threads.map(|thread| wait(thread.expect("a thread"))).collect()
}

fn records(text: &str) -> Vec<serde_json::Value> {
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{text}"));
    text.lines().map(parse).collect()
}

fn what_needs_only_proc_is_answered_and_the_program_ends() {
    const NAME: &str = "silent::what_needs_only_proc_is_answered_and_the_program_ends";
    let mut served = match Served::start() {
        Ok(served) => served,
        Err(why) => return skip(NAME, &why),
    };
    // As long as the server answers, its file is read like any other. On a busy machine it may answer late, and be
    // taken for silent.
    let ask =
        |served: &mut Served| served.runs(&["translate ADDR", "find ADDR, +4, 0x464c457f", "info modules"]).ends().0;
    let answers = (0..20).map(|_| ask(&mut served)).find(|said| !said.contains("does not respond"));
    let healthy = answers.expect("an answer of the server");
    let read = records(&healthy);
    assert_eq!(read[0]["state"], "present", "{healthy}");
    assert!(read[0]["why"]["symbol"].is_null(), "{healthy}");
    let module = read.iter().find(|record| record["name"].as_str().is_some_and(|name| name.ends_with("/file")));
    let module = module.unwrap_or_else(|| panic!("{healthy}"));
    assert!(module["symbols"].as_u64().is_some_and(|symbols| symbols > 0), "{module}");
    served.falls_silent();
    let lines = [
        "translate ADDR",
        "translate ADDR",
        "region ADDR",
        "walk ADDR..ADDR+0x4000",
        "explain ADDR",
        "x/2xg ADDR",
        "find ADDR, +0x4000, 1",
        "info symbol ADDR",
        "info modules",
        "regions",
        "summary",
    ];
    let (said, took) = served.runs(&lines).ends();
    assert!(took < Duration::from_secs(15), "{took:?}");
    let said_records = records(&said);
    for translation in &said_records[..2] {
        assert_eq!((&translation["type"], &translation["state"]), (&"translation".into(), &"present".into()), "{said}");
        let why = translation["why"]["symbol"].as_str().unwrap_or_default();
        assert!(why.contains("does not respond"), "{translation}");
    }
}

fn ctrl_c_ends_the_wait() {
    let mut served = match Served::start() {
        Ok(served) => served,
        Err(why) => return skip("silent::ctrl_c_ends_the_wait", &why),
    };
    served.falls_silent();
    let running = served.runs(&["translate ADDR"]);
    let pid = running.0.as_ref().expect("a child").id();
    // It waits once it has a child.
    let children = format!("/proc/{pid}/task/{pid}/children");
    while std::fs::read_to_string(&children).is_ok_and(|children| children.is_empty()) {
        std::thread::yield_now();
    }
    // SAFETY: the number of a child that was not waited for.
    unsafe { libc::kill(pid as i32, libc::SIGINT) };
    let (_, took) = running.ends();
    assert!(took < Duration::from_millis(1500), "{took:?}");
}

/// The target runs a program of such a mount, and maps another file.
fn a_silent_program_keeps_no_other_file_from_being_read() {
    // Dropped after the file system: as long as that is silent, a fault in the program cannot be killed.
    let mut puppet = None;
    let mut served = match Served::start() {
        Ok(served) => served,
        Err(why) => {
            let name = "silent::a_silent_program_keeps_no_other_file_from_being_read";
            return skip(name, &why);
        }
    };
    let (pid, point) = (served.target.pid(), served.point.path().display());
    let program = format!("/proc/{pid}/root{point}/file");
    let puppet = puppet.insert(Puppet::run(&mut command_as(program.as_ref(), "puppet")));
    let mut file = tempfile::tempfile().expect("a file");
    let page = page_bytes();
    file.write_all(&vec![b'x'; page as usize]).expect("written");
    let memory = puppet.maps_file(&file, 1, libc::PROT_READ, libc::MAP_PRIVATE);
    served.falls_silent();
    let line = format!("find {memory:#x}, +{page}, \"nowhere in it\"");
    let (said, took) = Running::start(puppet.0.pid(), &[line]).ends();
    assert!(took < Duration::from_secs(15), "{took:?}");
    assert_eq!(records(&said)[0]["cached"], 1, "{said}");
}

fn a_tmpfs_below_a_silent_server_is_said_once() {
    let point = tempfile::tempdir().expect("a directory");
    is_said_once("silent::a_tmpfs_below_a_silent_server_is_said_once", &[point.path()]);
}

fn a_tmpfs_on_an_overlay_of_a_silent_server() {
    let [point, plain, merged] = std::array::from_fn(|_| tempfile::tempdir().expect("a directory"));
    let paths = [point.path(), plain.path(), merged.path()];
    is_said_once("silent::a_tmpfs_on_an_overlay_of_a_silent_server", &paths);
}

/// A tmpfs below the last of the paths is known by its mount alone: in pmdb's own mount namespace, and only in that of
/// a process of the cgroup.
fn is_said_once(test: &str, paths: &[&Path]) {
    let name = format!("pmdb-silent-{}-{}", std::process::id(), paths.len());
    let cgroup = match Cgroup::called(name.as_bytes()) {
        Ok(cgroup) => cgroup,
        Err(reason) => return skip(test, &reason),
    };
    let paths: Vec<&str> = paths.iter().map(|path| path.to_str().expect("a plain path")).collect();
    let mut other = Target::start("idle", &[]);
    assert_eq!(other.line(), "ready");
    let mut served = Target::start("served-above", &paths);
    assert_eq!(served.line(), "here");
    for pid in [other.pid(), served.pid()] {
        cgroup.takes(pid);
    }
    served.send("go");
    match &*served.line() {
        "ready" => {}
        why => return skip(test, why),
    }
    let (server, lines) = (served.pid(), [format!("account cgroup /{name}")]);
    let inside = |pid| {
        let mut command = pmdb(pid, &lines);
        enter_namespace(&mut command, server, "mnt");
        Running::of(command)
    };
    let below = format!("{}/directory", paths.last().expect("a path"));
    let filesystem = |said: &str, path: &str| {
        let rows = records(said).into_iter().filter(|one| one["type"] == "account-filesystem");
        rows.filter(|row| row["path"] == path).map(|row| row["used"].as_u64().expect("bytes")).next()
    };
    // On a busy machine the server may answer late, and be taken for silent.
    let healthy = (0..20).map(|_| Running::start(other.pid(), &lines).ends().0);
    let healthy = healthy.map(|said| filesystem(&said, &format!("/proc/{server}/root{below}")));
    assert_eq!(healthy.flatten().next(), Some(CLOSED));
    served.send("be silent");
    assert_eq!(served.line(), "silent");
    for running in [Running::start(other.pid(), &lines), Running::start(server, &lines), inside(other.pid())] {
        let (said, took) = running.ends();
        assert!(took < Duration::from_secs(30), "{took:?}");
        let all = records(&said);
        let row = |kind: &str| all.iter().find(|row| row["type"] == kind).unwrap_or_else(|| panic!("{said}"));
        let shared = all.iter().find(|row| row["class"] == "shared_memory").unwrap_or_else(|| panic!("{said}"));
        assert!(shared["bytes"].as_u64().is_some_and(|bytes| bytes >= CLOSED), "{said}");
        assert!(row("account-cgroup")["found"].as_u64() > shared["bytes"].as_u64(), "{said}");
        assert_eq!(said.matches(&format!("the storage of {below} does not respond")).count(), 1, "{said}");
        assert_eq!(said.matches("does not respond").count(), 1, "{said}");
    }
}
