//! The memory cgroup that a frame is charged to, by path, in a cgroup of the test's own.

use super::Test;
use super::puppet::Puppet;
use super::support::{self, at, skip};
use super::system::{self, Changed};
use pmdb::inspect::{AddressSpace, frame_detail};
use pmdb::report::CgroupPath;
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub const TESTS: &[Test] = &[
    ("cgroup::a_frame_is_charged_to_a_path", a_frame_is_charged_to_a_path),
    (
        "cgroup::a_file_takes_no_memory_that_its_group_does_not_have",
        a_file_takes_no_memory_that_its_group_does_not_have,
    ),
    ("cgroup::who_has_no_group_is_not_looked_for", who_has_no_group_is_not_looked_for),
];

/// A cgroup of the test's own.
pub struct Cgroup {
    pub path: PathBuf,
    _made: Changed,
}

impl Cgroup {
    pub fn make() -> Result<Cgroup, String> {
        // A hostile name.
        let id = std::process::id().to_string();
        Self::called(&[b"pmdb live ", id.as_bytes(), b" \\\xff"].concat())
    }

    pub fn called(name: &[u8]) -> Result<Cgroup, String> {
        if !support::is_root() {
            return Err("only root makes cgroups".into());
        }
        let path = hierarchy()?.join(OsStr::from_bytes(name));
        let made = system::cgroup(&path)?;
        // In cgroup v2 a group has the controllers that its parent delegates.
        match fs::read_to_string(path.join("cgroup.controllers")) {
            Ok(controllers) if !controllers.split_whitespace().any(|one| one == "memory") => {
                Err("cgroups here do not account for memory".into())
            }
            _ => Ok(Cgroup { path, _made: made }),
        }
    }

    pub fn takes(&self, pid: u32) {
        fs::write(self.path.join("cgroup.procs"), pid.to_string()).expect("to move into it");
    }

    fn inode(&self) -> u64 {
        fs::metadata(&self.path).expect("the directory").ino()
    }
}

/// Where the hierarchy that accounts for memory is mounted.
pub fn hierarchy() -> Result<PathBuf, String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(|error| error.to_string())?;
    let find = |wanted: &dyn Fn(&str) -> bool| {
        let mount = mounts.lines().find(|line| line.split_once(" - ").is_some_and(|(_, what)| wanted(what)))?;
        Some(PathBuf::from(mount.split(' ').nth(4)?))
    };
    let first = |what: &str| what.starts_with("cgroup ") && what.split([' ', ',']).any(|word| word == "memory");
    find(&first).or_else(|| find(&|what| what.starts_with("cgroup2 "))).ok_or_else(|| "no cgroups are mounted".into())
}

fn a_frame_is_charged_to_a_path() {
    let name = "cgroup::a_frame_is_charged_to_a_path";
    if !support::is_root() {
        return skip(name, "frame numbers are hidden from this user");
    }
    let cgroup = match Cgroup::make() {
        Ok(cgroup) => cgroup,
        Err(reason) => return skip(name, &reason),
    };
    let mut puppet = Puppet::start();
    cgroup.takes(puppet.0.pid());
    let address = puppet.maps("anonymous", 1);
    puppet.writes(address, 1);
    let target = puppet.0.attach();
    let place = || {
        let space = AddressSpace::at(&target, at(address)).expect("a space");
        space.detail(at(address)).expect("a page").place
    };
    let path_of = |path: &Path| {
        let root = hierarchy().expect("it was there");
        let below = path.strip_prefix(root).expect("below it");
        let path = [b"/", below.as_os_str().as_bytes()].concat();
        CgroupPath::Path(pmdb::kernel::Name::new(path))
    };
    assert_eq!(place().cgroup, Ok(cgroup.inode()));
    assert_eq!(place().cgroup_path, Ok(path_of(&cgroup.path)));

    // A group below it is found as well, and the one above by its own path still.
    let inner = cgroup.path.join("inner");
    fs::create_dir(&inner).expect("a group below");
    let inode = fs::metadata(&inner).expect("the directory").ino();
    let found = target.machine.cgroup_path(inode).expect("the hierarchy");
    assert_eq!(found.map(CgroupPath::Path), Some(path_of(&inner)));
    fs::remove_dir(&inner).expect("to remove it again");
    assert_eq!(target.machine.cgroup_path(inode).expect("none"), None);
    assert_eq!(place().cgroup_path, Ok(path_of(&cgroup.path)));

    // Pages charged to a removed group count for the nearest ancestor that exists.
    let inode = cgroup.inode();
    drop(cgroup);
    let after = place();
    match after.cgroup {
        Ok(parent) if parent != inode => {
            let root = fs::metadata(hierarchy().expect("it was there")).expect("the root");
            assert_eq!(parent, root.ino());
            let top = CgroupPath::Path("/".into());
            assert_eq!(after.cgroup_path, Ok(top));
        }
        gone => {
            assert_eq!(gone, Ok(inode));
            assert_eq!(after.cgroup_path, Ok(CgroupPath::Gone(inode)));
        }
    }
    assert_eq!(target.machine.cgroup_path(inode).expect("none"), None);
}

/// A program whose debug information is small in the file and larger than its group's limit when it is decompressed.
/// It reads standard input.
fn hostile_program(folder: &Path) -> Result<PathBuf, String> {
    let path = |name: &str| folder.join(name);
    // 16 times smaller in the file.
    let names: Vec<u8> = (0u32..1 << 20)
        .flat_map(|number| format!("{:08x}{}\0", number.wrapping_mul(2_654_435_761), "a".repeat(119)).into_bytes())
        .collect();
    fs::write(path("names"), names).expect("the names");
    // An empty unit of DWARF 5.
    fs::write(path("unit"), b"\x0b\0\0\0\x05\0\x01\x08\0\0\0\0\0\0\0").expect("a unit");
    fs::write(path("abbreviations"), b"\0").expect("abbreviations");
    let objcopy = |words: &[&str]| {
        let copied = Command::new("objcopy").args(words).current_dir(folder).output();
        copied.is_ok_and(|copied| copied.status.success()).then_some(()).ok_or("objcopy does not work here")
    };
    let sections = ["--add-section", ".debug_info=unit", "--add-section", ".debug_abbrev=abbreviations"];
    objcopy(&[&sections[..], &["--add-section", ".debug_str=names", "/bin/cat", "large"]].concat())?;
    objcopy(&["--compress-debug-sections=zlib", "large", "hostile"])?;
    Ok(path("hostile"))
}

/// The target must not be ended because pmdb, beside it in one group, reads its files.
fn a_file_takes_no_memory_that_its_group_does_not_have() {
    let name = "cgroup::a_file_takes_no_memory_that_its_group_does_not_have";
    let cgroup = match Cgroup::make() {
        Ok(cgroup) => cgroup,
        Err(reason) => return skip(name, &reason),
    };
    let folder = tempfile::tempdir().expect("a directory");
    let program = match hostile_program(folder.path()) {
        Ok(program) => program,
        Err(reason) => return skip(name, &reason),
    };
    let limit = ["memory.max", "memory.limit_in_bytes"].map(|name| cgroup.path.join(name));
    let limit = limit.iter().find(|limit| limit.exists()).expect("one of them");
    fs::write(limit, "96M").expect("a limit");
    let mut target = Command::new(&program);
    let mut target = target.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut input = target.stdin.take().expect("its input");
    input.write_all(b"x").expect("it reads");
    target.stdout.as_mut().expect("its output").read_exact(&mut [0]).expect("it runs");
    cgroup.takes(target.id());
    let mut pmdb = Command::new("sh");
    pmdb.args([
        "-c",
        "echo $$ > \"$GROUP\"/cgroup.procs; exec \"$PMDB\" -nx -batch -p \"$PID\" -ex 'info line hostile!0x4000'",
    ]);
    pmdb.env("GROUP", &cgroup.path).env("PMDB", env!("CARGO_BIN_EXE_pmdb")).env("PID", target.id().to_string());
    let run = pmdb.output().expect("it runs");
    let said = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.signal(), None, "{said}");
    assert!(said.contains("too little free memory"), "{said}");
    let killed = ["memory.events", "memory.oom_control"].map(|name| fs::read_to_string(cgroup.path.join(name)));
    let killed = killed.into_iter().find_map(Result::ok).expect("one of them");
    assert!(killed.lines().any(|line| line == "oom_kill 0"), "{killed}");
    drop(input);
    assert!(target.wait().expect("it ends").success());
}

/// The zero page is everybody's.
fn who_has_no_group_is_not_looked_for() {
    let name = "cgroup::who_has_no_group_is_not_looked_for";
    let mut puppet = Puppet::start();
    let address = puppet.maps("anonymous", 1);
    puppet.reads(address, 1);
    let target = puppet.0.attach();
    let entry = support::entries(&target.process, address, 1)[0];
    let Some(frame) = entry.frame() else {
        return skip(name, "frame numbers are hidden from this user");
    };
    let place = frame_detail(&target.machine, &Ok(frame)).place;
    match place.cgroup {
        Ok(inode) => assert_eq!(inode, 0),
        Err(reason) => return skip(name, &reason.to_string()),
    }
    let why = place.cgroup_path.expect_err("no path").to_string();
    assert!(why.contains("no memory cgroup"), "{why}");
}
