//! Files of a tmpfs that nobody has open are charged to a cgroup.

use super::command::{of_type, records};
use super::*;
use crate::Scenario;
use crate::cgroup::Cgroup;
use crate::files::mount;
use crate::target::{announce, wait};
use std::fs::File;
use std::os::unix::fs::FileExt;

pub const SCENARIOS: &[Scenario] = &[("tmpfs_of_its_own", |paths| tmpfs_of_its_own(paths))];

/// Bytes of the file that stays open, and of the one that does not.
const HELD: usize = 2 << 20;
const CLOSED: usize = 9 << 20;
/// A directory whose name a terminal would obey.
const HOSTILE: &str = "a\n \u{1b}[31mb";

/// Mounts a tmpfs that ends with this process, and fills it. Says whether it could.
fn tmpfs_of_its_own(paths: &[String]) {
    announce("here");
    wait();
    let point = format!("{}/{HOSTILE}", paths[0]);
    std::fs::create_dir(&point).expect("a new directory");
    // SAFETY: a system call without memory; only this process sees the namespace.
    let is_alone = unsafe { libc::unshare(libc::CLONE_NEWNS) } == 0
        && mount("none", "/", "none", libc::MS_REC | libc::MS_PRIVATE, "")
        && mount("none", &point, "tmpfs", 0, "size=64m");
    if !is_alone {
        return announce("refused");
    }
    std::fs::write(format!("{point}/closed"), vec![1; CLOSED]).expect("room in memory");
    let open = File::options().create_new(true).write(true).open(format!("{point}/open")).expect("a new file");
    open.write_all_at(&vec![1; HELD], 0).expect("room in memory");
    announce("ready");
    wait();
    drop(open);
}

pub fn files_of_a_tmpfs_have_its_path() {
    const NAME: &str = "account::files_of_a_tmpfs_have_its_path";
    let name = format!("pmdb-tmpfs-{}", std::process::id());
    let cgroup = match Cgroup::called(name.as_bytes()) {
        Ok(cgroup) => cgroup,
        Err(reason) => return skip(NAME, &reason),
    };
    let folder = tempfile::tempdir().expect("a directory");
    let mut target = Target::start("tmpfs_of_its_own", &[folder.path().to_str().expect("text")]);
    assert_eq!(target.line(), "here");
    cgroup.takes(target.pid());
    target.send("go");
    if target.line() != "ready" {
        return skip(NAME, "no tmpfs can be mounted here");
    }
    let point = folder.path().join(HOSTILE);
    let seen = format!("/proc/{}/root{}", target.pid(), point.display());
    let plain = rustix::fs::statfs(&seen).expect("its counts");
    let used = (plain.f_blocks - plain.f_bfree) * plain.f_bsize as u64;
    assert!(used >= (HELD + CLOSED) as u64, "{used}");
    let line = format!("account cgroup /{name}");
    let all = records(target.pid(), &line);
    let charged = of_type(&all, "account-charge").into_iter().find(|row| row["class"] == "shared_memory");
    let charged = charged.unwrap_or_else(|| panic!("{all:?}"));
    let is_it = |row: &&serde_json::Value| row["path"].as_str().is_some_and(|path| path.contains("[31m"));
    let row = of_type(&all, "account-filesystem").into_iter().find(is_it).unwrap_or_else(|| panic!("{all:?}"));
    assert_eq!((&row["filesystem"], &row["used"], &row["held"]), (&"tmpfs".into(), &used.into(), &HELD.into()));
    assert_eq!(row["is_part"], false);
    let at_most = row["at_most"].as_u64().expect("a number");
    assert!((CLOSED as u64..=used - HELD as u64).contains(&at_most), "{row}");
    assert_eq!(row["of"], charged["bytes"]);
    assert!(charged["files"].as_u64().is_some_and(|files| files >= at_most), "{charged}");

    // The text has the path on one line, and nothing that a terminal obeys.
    let output = Command::new(env!("CARGO_BIN_EXE_pmdb"))
        .args(["-nx", "-q", "-batch", "-p", &target.pid().to_string(), "-ex", &line])
        .output()
        .expect("pmdb runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let is_row = |line: &str| line.contains(r"a\x0a \x1b[31mb ") && line.contains(" tmpfs ");
    assert!(text.lines().any(is_row), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
}
