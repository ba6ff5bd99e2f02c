//! Files that pmdb reads from a fixed place: the init file, the history, the user's settings of the editor. No command
//! names them, so other users must not be able to write them.

use crate::access::words;
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat, stat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::os::fd::OwnedFd;
use std::path::Path;

/// The largest size in bytes of such a file.
const LARGEST: i64 = 16 << 20;

/// Whether the last component of the path may be a symbolic link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Links {
    /// Allowed, as for a directory of settings that is kept elsewhere.
    Followed,
    /// Refused, as for a file that pmdb writes to.
    Refused,
}

/// Opens a file that only the user of pmdb or root can have written. Returns `None` if there is no file. Never waits.
///
/// # Errors
/// Returns what is wrong with the file, as a clause: `it is a named pipe`.
pub fn open(path: &Path, links: Links) -> Result<Option<OwnedFd>, String> {
    let file = match regular(path, links)? {
        Some((file, found)) => match fault(&found) {
            None => file,
            Some(fault) => return Err(format!("it {fault}")),
        },
        None => return Ok(None),
    };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match stat(directory) {
        Ok(found) => fault(&found).map_or(Ok(Some(file)), |fault| Err(format!("its directory {fault}"))),
        Err(error) => Err(words(error)),
    }
}

/// Opens a regular file of at most 16 MiB, whoever can write it. Returns `None` if there is no file. Never waits.
///
/// # Errors
/// Returns what is wrong with the file, as a clause.
pub fn regular(path: &Path, links: Links) -> Result<Option<(OwnedFd, Stat)>, String> {
    let mut flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    flags.set(OFlags::NOFOLLOW, links == Links::Refused);
    let file = match openat(CWD, path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(Errno::LOOP) => return Err("it is a symbolic link".to_owned()),
        Err(Errno::NXIO) => return Err("it is a socket".to_owned()),
        Err(error) => return Err(words(error)),
    };
    let found = fstat(&file).map_err(words)?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile if found.st_size <= LARGEST => Ok(Some((file, found))),
        FileType::RegularFile => Err(format!("it is larger than {} MiB", LARGEST >> 20)),
        FileType::Directory => Err("it is a directory".to_owned()),
        FileType::Fifo => Err("it is a named pipe".to_owned()),
        _ => Err("it is a device".to_owned()),
    }
}

/// Returns who else may write the file, as a verb; `None` if only the user of pmdb or root may.
fn fault(found: &Stat) -> Option<String> {
    let user = geteuid().as_raw();
    let (owner, of_group, mode) = (found.st_uid, found.st_gid, Mode::from_raw_mode(found.st_mode));
    // A group with the number of the user is taken for one without other members; the members of others are unknown.
    let is_own_group = of_group == owner;
    if owner != user && owner != 0 {
        Some(format!("belongs to user {owner}, and pmdb runs as user {user}"))
    } else if mode.contains(Mode::WOTH) {
        Some("can be written by every user".to_owned())
    } else if mode.contains(Mode::WGRP) && !is_own_group {
        Some(format!("can be written by group {of_group}"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skips::skip;
    use rustix::fs::{Gid, Uid, chmod, chown, ftruncate, mknodat};
    use std::fs;

    #[test]
    fn only_what_the_user_or_root_can_have_written_is_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("init");
        assert!(open(&path, Links::Followed).expect("nothing is wrong").is_none());
        fs::write(&path, "").expect("a file");
        let set = |mode| chmod(&path, Mode::from_raw_mode(mode)).expect("its mode");
        set(0o644);
        assert!(open(&path, Links::Followed).expect("it is ours").is_some());
        set(0o666);
        assert_eq!(open(&path, Links::Followed).expect_err("all"), "it can be written by every user");
        set(0o664);
        assert!(open(&path, Links::Followed).is_ok(), "a group of its own");
        set(0o600);
        chmod(folder.path(), Mode::from_raw_mode(0o777)).expect("its mode");
        assert_eq!(open(&path, Links::Followed).expect_err("all"), "its directory can be written by every user");
        chmod(folder.path(), Mode::from_raw_mode(0o700)).expect("its mode");
        if !geteuid().is_root() {
            return skip("only_what_the_user_or_root_can_have_written_is_opened", "only root gives a file away");
        }
        chown(&path, Some(Uid::from_raw(65534)), None).expect("its owner");
        let why = open(&path, Links::Followed).expect_err("another user");
        assert_eq!(why, "it belongs to user 65534, and pmdb runs as user 0");
        chown(&path, Some(Uid::ROOT), Some(Gid::from_raw(12345))).expect("its group");
        set(0o660);
        assert_eq!(open(&path, Links::Followed).expect_err("a group"), "it can be written by group 12345");
    }

    #[test]
    fn what_is_no_file_or_too_large_is_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        mknodat(CWD, path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        fs::create_dir(path("folder")).expect("a folder");
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).expect("a socket");
        ftruncate(fs::File::create(path("large")).expect("a file"), 1 << 40).expect("a hole");
        fs::write(path("file"), "").expect("a file");
        std::os::unix::fs::symlink("file", path("link")).expect("a link");
        for (name, why) in [
            ("pipe", "it is a named pipe"),
            ("folder", "it is a directory"),
            ("socket", "it is a socket"),
            ("large", "it is larger than 16 MiB"),
            ("link", "it is a symbolic link"),
        ] {
            assert_eq!(open(&path(name), Links::Refused).expect_err(name), why);
        }
        assert!(open(&path("link"), Links::Followed).is_ok());
        assert_eq!(regular(Path::new("/dev/null"), Links::Followed).expect_err("a device"), "it is a device");
    }
}
