//! The memory cgroup that a frame is charged to, by path, in a cgroup of the test's own.

use super::Test;
use super::puppet::Puppet;
use super::support::{self, at, skip};
use super::system::{self, Changed};
use pmdb::inspect::{View, frame_detail};
use pmdb::report::CgroupPath;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub const TESTS: &[Test] = &[
    ("cgroup::a_frame_is_charged_to_a_path", a_frame_is_charged_to_a_path),
    ("cgroup::who_has_no_group_is_not_looked_for", who_has_no_group_is_not_looked_for),
];

/// A cgroup of the test's own.
struct Cgroup {
    path: PathBuf,
    _made: Changed,
}

impl Cgroup {
    fn make() -> Result<Cgroup, String> {
        // A hostile name.
        let id = std::process::id().to_string();
        let name = [b"pmdb live ", id.as_bytes(), b" \\\xff"].concat();
        let path = hierarchy()?.join(OsStr::from_bytes(&name));
        let made = system::cgroup(&path)?;
        // In cgroup v2 a group has the controllers that its parent delegates.
        match fs::read_to_string(path.join("cgroup.controllers")) {
            Ok(controllers) if !controllers.split_whitespace().any(|one| one == "memory") => {
                Err("cgroups here do not account for memory".into())
            }
            _ => Ok(Cgroup { path, _made: made }),
        }
    }

    fn takes(&self, pid: u32) {
        fs::write(self.path.join("cgroup.procs"), pid.to_string()).expect("to move into it");
    }

    fn inode(&self) -> u64 {
        fs::metadata(&self.path).expect("the directory").ino()
    }
}

/// Where the hierarchy that accounts for memory is mounted.
fn hierarchy() -> Result<PathBuf, String> {
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
        let view = View::at(&target, at(address)).expect("a view");
        view.detail(at(address)).expect("a page").place
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

/// The page of zeros is everybody's.
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
