//! Captures without names: a name is planted wherever a process can have one, and none of them is in the file.

use super::capture::all_bytes;
use super::cgroup::Cgroup;
use super::executable;
use super::support::{page_bytes, skip};
use super::target::{Target, announce, command_as, wait};
use super::{Scenario, Test};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};
use std::fs::File;
use std::path::Path;
use std::process::Command;

pub const TESTS: &[Test] = &[("capture_names::no_planted_name_is_in_it", no_planted_name_is_in_it)];
pub const SCENARIOS: &[Scenario] = &[("planted-names", planted_names)];

const FOLDER: &str = "zyxqfolder";
const PROGRAM: &str = "zyxqprogram";
const COMM: &str = "zyxqcomm";
const THREAD: &str = "zyxqthread";
const ARGUMENT: &str = "zyxqargument";
const MEMFD: &str = "zyxqmemfd";
const ANONYMOUS: &str = "zyxqanonymous";
const MAPPED: &str = "zyxqmapped";
const DELETED: &str = "zyxqdeleted";
const OPEN: &str = "zyxqopen";
const SHARED: &str = "zyxqshared";
const GROUP: &str = "zyxqgroup";
/// The key of a System V segment.
const KEY: i32 = 0x7a79_7871;

/// The key of a segment that belongs to this test, not to the process.
const OTHER_KEY: i32 = 1_234_598_761;

/// A segment that nobody has attached, until this ends; `None` where the kernel gives none.
struct Segment(i32);

impl Segment {
    fn new() -> Option<Self> {
        // SAFETY: plain numbers.
        let number = unsafe { libc::shmget(OTHER_KEY, page_bytes() as usize, 0o600 | libc::IPC_CREAT) };
        (number >= 0).then_some(Segment(number))
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: it is of this test, and nobody has attached it.
        unsafe { libc::shmctl(self.0, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

/// Takes all these names. The argument is the folder for files.
fn planted_names(arguments: &[String]) {
    let folder = Path::new(&arguments[0]);
    let page = page_bytes() as usize;
    let both = ProtFlags::READ | ProtFlags::WRITE;
    let file = |path: &Path| {
        std::fs::write(path, vec![1; page]).expect("a file");
        File::options().read(true).write(true).open(path).expect("the file")
    };
    let memfd = rustix::fs::memfd_create(MEMFD, rustix::fs::MemfdFlags::CLOEXEC).expect("a memfd");
    rustix::fs::ftruncate(&memfd, page as u64).expect("a page");
    let shared = Path::new("/dev/shm").join(SHARED);
    let files = [file(&folder.join(MAPPED)), file(&folder.join(DELETED)), file(&shared), File::from(memfd)];
    let _open = file(&folder.join(OPEN));
    for file in &files {
        // SAFETY: a fresh mapping at no fixed address.
        unsafe { mmap(std::ptr::null_mut(), page, both, MapFlags::SHARED, file, 0) }.expect("a mapping");
    }
    std::fs::remove_file(folder.join(DELETED)).expect("to delete it");
    std::fs::remove_file(shared).expect("to delete it");
    // SAFETY: fresh mappings at no fixed address, a name for one of them, and a segment that goes with its last user.
    unsafe {
        let named = mmap_anonymous(std::ptr::null_mut(), page, both, MapFlags::PRIVATE).expect("a mapping");
        let name = std::ffi::CString::new(ANONYMOUS).expect("a name");
        libc::prctl(libc::PR_SET_VMA, libc::PR_SET_VMA_ANON_NAME, named, page, name.as_ptr());
        let id = libc::shmget(KEY, page, 0o600 | libc::IPC_CREAT);
        libc::shmat(id, std::ptr::null(), 0);
        libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut());
    }
    rustix::thread::set_name(&std::ffi::CString::new(COMM).expect("a name")).expect("a name");
    std::thread::Builder::new().name(THREAD.to_owned()).spawn(std::thread::park).expect("a thread");
    announce("ready");
    wait();
}

fn captured(pid: u32, file: &Path, words: &[&str]) -> Vec<u8> {
    let path = file.to_str().expect("a path");
    let mut command = Command::new(env!("CARGO_BIN_EXE_pmdb"));
    let run = command.args(["-nx", "-p", &pid.to_string(), "capture", path]).args(words).output().expect("pmdb runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    all_bytes(file)
}

fn no_planted_name_is_in_it() {
    const NAME: &str = "capture_names::no_planted_name_is_in_it";
    let folder = tempfile::Builder::new().prefix(FOLDER).tempdir().expect("a directory");
    let program = folder.path().join(PROGRAM);
    executable::copy(std::env::current_exe().expect("this program"), &program);
    let mut command = command_as(&program, "planted-names");
    let mut target = Target::spawn(command.arg(folder.path()).arg(ARGUMENT));
    assert_eq!(target.line(), "ready");
    let (key, other_key) = (format!("{KEY:x}"), OTHER_KEY.to_string());
    let mut planted =
        vec![FOLDER, PROGRAM, COMM, THREAD, ARGUMENT, MEMFD, ANONYMOUS, MAPPED, DELETED, OPEN, SHARED, &key];
    let segment = Segment::new();
    planted.extend(segment.is_some().then_some(&*other_key));
    let group = Cgroup::called(GROUP.as_bytes());
    match &group {
        Ok(group) => {
            group.takes(target.pid());
            planted.push(GROUP);
        }
        Err(why) => skip(NAME, why),
    }
    // Elsewhere: the name of the file is not one of the process.
    let files = tempfile::tempdir().expect("a directory");
    let named = captured(target.pid(), &files.path().join("named"), &[]);
    let nameless = captured(target.pid(), &files.path().join("nameless"), &["without", "names"]);
    let finds = |bytes: &[u8], name: &str| memchr::memmem::find(bytes, name.as_bytes()).is_some();
    for name in planted {
        // What has no name on this kernel, and is no descriptor of memory.
        let may_lack = [ANONYMOUS, OPEN].contains(&name);
        assert!(finds(&named, name) || may_lack, "{name}: the search finds names where they are");
        let as_numbers = name.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(",");
        let as_digits: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
        for form in [name, &as_numbers, &as_digits] {
            assert!(!finds(&nameless, form), "{form} ({name})");
        }
    }
    assert!(!finds(&nameless, "zyxq"));
}
