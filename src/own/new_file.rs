//! The files that a command writes. A regular file appears whole or not at all, and replaces only a regular file. A
//! pipe and a device are written into. Everything else is refused.

use super::ending::BeforeEnd;
use super::outlet::Outlet;
use crate::access::words;
use crate::budget::until_interrupted;
use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Gid, Mode, OFlags, Stat, Uid, fchown, flock, fstat, linkat, lstat, openat,
    renameat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The kinds of files that may already be at the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowed {
    /// Whether a regular file may be there; it is replaced.
    pub replaces_file: bool,
    /// Whether a pipe or a character device may be there; it is written into.
    pub writes_into: bool,
}

/// Why a file was not written.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum NewFileError {
    /// The path is empty.
    #[error("the name of the file is empty")]
    Empty,
    /// A file that may not be replaced is at the path.
    #[error("{} already exists", .0.display())]
    Exists(PathBuf),
    /// Neither a regular file nor an allowed pipe or device is at the path.
    #[error("cannot write {}: it is {what}", path.display())]
    NoFile {
        /// The path.
        path: PathBuf,
        /// The kind of file, with its article.
        what: &'static str,
    },
    /// The path is of a named pipe without a reader.
    #[error("cannot write {}: no program reads this pipe", .0.display())]
    NoReader(PathBuf),
    /// A system call failed.
    #[error("cannot write {}: {}", path.display(), words(*error))]
    Io {
        /// The path.
        path: PathBuf,
        /// The error of the system call.
        error: Errno,
    },
}

/// Writes a file that the command line names. A regular file is replaced; a pipe or a device is written into.
///
/// # Errors
/// Fails if something else is at `path`, or a system call fails.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), NewFileError> {
    let allowed = Allowed { replaces_file: true, writes_into: true };
    let file = NewFile::create(path, allowed, Mode::from_raw_mode(0o666))?;
    let failed = |error: io::Error| {
        let error = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        NewFileError::Io { path: path.to_owned(), error }
    };
    file.file().and_then(|out| Outlet::new(out, until_interrupted()).write_all(bytes)).map_err(failed)?;
    file.publish()
}

/// A file that is being written.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    path: PathBuf,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// A pipe, a device, or the file of a descriptor of this process.
    Stream,
    /// A file without a name (O_TMPFILE).
    Nameless { replaces: bool },
    /// A file with a hidden name in the same directory, where the file system lacks O_TMPFILE.
    Beside { replaces: bool, hidden: Hidden },
}

/// The hidden name of a file. Dropping the value removes the name.
#[derive(Debug)]
struct Hidden {
    path: PathBuf,
    _at_end: Option<BeforeEnd>,
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // The name cannot be removed, or was renamed: nothing is left to do.
        _ = unlinkat(CWD, &self.path, AtFlags::empty());
    }
}

impl NewFile {
    /// Begins to write a file for `path`. A new file gets the permissions `mode`.
    ///
    /// # Errors
    /// Fails if a file that `allowed` excludes is at `path`, or a system call fails.
    pub fn create(path: &Path, allowed: Allowed, mode: Mode) -> Result<NewFile, NewFileError> {
        let bytes = path.as_os_str().as_bytes();
        if bytes.is_empty() {
            return Err(NewFileError::Empty);
        }
        let no_file = |what| NewFileError::NoFile { path: path.to_owned(), what };
        let io = |error| NewFileError::Io { path: path.to_owned(), error };
        let (false, Some(name)) = (bytes.ends_with(b"/"), path.file_name()) else {
            return Err(no_file("a directory"));
        };
        match lstat(path) {
            Err(Errno::NOENT) => {}
            Err(error) => return Err(io(error)),
            Ok(there) => match file_type(&there) {
                FileType::RegularFile if allowed.replaces_file => {}
                FileType::RegularFile => return Err(NewFileError::Exists(path.to_owned())),
                FileType::Fifo | FileType::CharacterDevice if allowed.writes_into => {
                    return NewFile::stream(path, OFlags::NOFOLLOW);
                }
                // Such a link leads to a file that the program was given.
                FileType::Symlink if allowed.writes_into && is_own_descriptor(path) => {
                    // Appends to a regular file: others may have written to the descriptor before.
                    return NewFile::stream(path, OFlags::APPEND);
                }
                other => return Err(no_file(with_article(other))),
            },
        }
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        remove_leftovers(directory, name);
        let replaces = allowed.replaces_file;
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let (file, place) = match openat(CWD, directory, flags | OFlags::TMPFILE, mode) {
            Ok(file) => (File::from(file), Place::Nameless { replaces }),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let (file, hidden) = Hidden::create(path, mode).map_err(io)?;
                (file, Place::Beside { replaces, hidden })
            }
            Err(error) => return Err(io(error)),
        };
        // The lock shows that the file is no leftover, also to processes of other pid namespaces.
        _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        if let Some((user, group)) = invoking_user() {
            fchown(&file, Some(user), Some(group)).map_err(io)?;
        }
        Ok(NewFile { file, path: path.to_owned(), place })
    }

    fn stream(path: &Path, flags: OFlags) -> Result<NewFile, NewFileError> {
        // Non-blocking: opening a named pipe without a reader would wait, even after Ctrl-C.
        let flags = flags | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let file = openat(CWD, path, flags, Mode::empty()).map_err(|error| match error {
            Errno::NXIO => NewFileError::NoReader(path.to_owned()),
            error => NewFileError::Io { path: path.to_owned(), error },
        })?;
        let there = fstat(&file).map_err(|error| NewFileError::Io { path: path.to_owned(), error })?;
        match file_type(&there) {
            FileType::Fifo | FileType::CharacterDevice => {
                Ok(NewFile { file: file.into(), path: path.to_owned(), place: Place::Stream })
            }
            FileType::RegularFile if flags.contains(OFlags::APPEND) => {
                Ok(NewFile { file: file.into(), path: path.to_owned(), place: Place::Stream })
            }
            other => Err(NewFileError::NoFile { path: path.to_owned(), what: with_article(other) }),
        }
    }

    /// Returns a copy of the descriptor to write through. Writes to a pipe or a device do not block.
    ///
    /// # Errors
    /// Fails if the process has too many files open.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Returns whether the file is written in place: a pipe, a device, or a given descriptor.
    pub fn is_stream(&self) -> bool {
        matches!(self.place, Place::Stream)
    }

    /// Gives the file its name, once its contents are on the disk.
    ///
    /// # Errors
    /// Fails if a file that may not be replaced has appeared at the path, or a system call fails.
    pub fn publish(self) -> Result<(), NewFileError> {
        let path = &self.path;
        let failed = |error| match error {
            Errno::EXIST => NewFileError::Exists(path.clone()),
            error => NewFileError::Io { path: path.clone(), error },
        };
        if !self.is_stream() {
            rustix::fs::fsync(&self.file).map_err(failed)?;
        }
        match &self.place {
            Place::Stream => Ok(()),
            Place::Nameless { replaces: false } => self.link(path).map_err(failed),
            Place::Beside { replaces: false, hidden } => {
                linkat(CWD, &hidden.path, CWD, path, AtFlags::empty()).map_err(failed)
            }
            Place::Nameless { replaces: true } => {
                let ((), hidden) = Hidden::named(path, |hidden| self.link(hidden)).map_err(failed)?;
                renameat(CWD, &hidden.path, CWD, path).map_err(failed)
            }
            Place::Beside { replaces: true, hidden } => renameat(CWD, &hidden.path, CWD, path).map_err(failed),
        }
    }

    /// Gives a file without a name the name `path`.
    fn link(&self, path: &Path) -> Result<(), Errno> {
        use std::os::fd::AsRawFd;
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        linkat(CWD, own, CWD, path, AtFlags::SYMLINK_FOLLOW)
    }
}

impl Hidden {
    /// Calls `make` with hidden names in the directory of `path` until one is not taken.
    fn named<T>(path: &Path, mut make: impl FnMut(&Path) -> Result<T, Errno>) -> Result<(T, Hidden), Errno> {
        /// The most names that are tried. A taken one is of an earlier process with the same id, or of a process in
        /// another pid namespace.
        const MOST: usize = 100;
        for number in 0..MOST {
            let mut name = hidden_prefix(path.file_name().unwrap_or_default());
            name.push(format!("{}.{number}{SUFFIX}", std::process::id()));
            let hidden = path.with_file_name(name);
            match make(&hidden) {
                Ok(made) => {
                    let leftover = hidden.clone();
                    // If it cannot be registered, the next writer removes the file.
                    let at_end = BeforeEnd::new(move || _ = unlinkat(CWD, &leftover, AtFlags::empty())).ok();
                    return Ok((made, Hidden { path: hidden, _at_end: at_end }));
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Errno::BUSY)
    }

    fn create(path: &Path, mode: Mode) -> Result<(File, Hidden), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Hidden::named(path, |hidden| Ok(File::from(openat(CWD, hidden, flags, mode)?)))
    }
}

const SUFFIX: &str = ".part";

/// Returns the beginning of the hidden names of the file `name`.
fn hidden_prefix(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".");
    prefix
}

/// Removes hidden files that ended processes have left of a file `name`. Failures are ignored.
fn remove_leftovers(directory: &Path, name: &OsStr) {
    let prefix = hidden_prefix(name);
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.as_bytes().strip_prefix(prefix.as_bytes());
        let number = number.and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
        let Some(process) = number.and_then(process_of) else {
            continue;
        };
        // In a container, each run may have the same process id: a running writer has locked its file.
        let is_gone = rustix::process::test_kill_process(process) == Err(Errno::SRCH)
            || process.as_raw_pid().cast_unsigned() == std::process::id();
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let is_ours = entry.metadata().is_ok_and(|there| there.is_file());
        if is_gone
            && is_ours
            && let Ok(file) = openat(CWD, entry.path(), flags, Mode::empty())
            && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            _ = unlinkat(CWD, entry.path(), AtFlags::empty());
        }
    }
}

/// Returns the process whose id is in a hidden name: `812`, or `812.0`.
fn process_of(number: &[u8]) -> Option<rustix::process::Pid> {
    let number = std::str::from_utf8(number).ok()?;
    let (process, count) = number.split_once('.').unwrap_or((number, "0"));
    let are_digits =
        [process, count].iter().all(|part| !part.is_empty() && part.bytes().all(|one| one.is_ascii_digit()));
    let process: i32 = process.parse().ok().filter(|&process| are_digits && process > 0)?;
    rustix::process::Pid::from_raw(process)
}

/// Returns whether `path` is a link in `/proc/self/fd`, `/dev/fd` and the like to a descriptor of this process.
fn is_own_descriptor(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    let is_number = |rest: &[u8]| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit);
    matches!(bytes, b"/dev/stdout" | b"/dev/stderr")
        || [&b"/dev/fd/"[..], b"/proc/self/fd/"].iter().any(|folder| bytes.strip_prefix(*folder).is_some_and(is_number))
}

fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn with_article(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a regular file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice => "a device",
        FileType::BlockDevice => "a block device",
        FileType::Unknown => "no file",
    }
}

/// Returns the user who ran sudo, and their group.
fn invoking_user() -> Option<(Uid, Gid)> {
    rustix::process::geteuid().is_root().then_some(())?;
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    Some((Uid::from_raw(number("SUDO_UID")?), Gid::from_raw(number("SUDO_GID")?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::mknodat;
    use std::os::unix::fs::{FileTypeExt, symlink};
    use std::{fs, os};

    const OWN: Mode = Mode::from_raw_mode(0o600);
    const ASKED: Allowed = Allowed { replaces_file: true, writes_into: false };
    const NOT_ASKED: Allowed = Allowed { replaces_file: false, writes_into: true };

    fn written(path: &Path, allowed: Allowed) -> Result<(), NewFileError> {
        let file = NewFile::create(path, allowed, OWN)?;
        file.file().and_then(|mut out| out.write_all(b"new")).expect("written");
        file.publish()
    }

    fn names(folder: &Path) -> usize {
        fs::read_dir(folder).expect("a folder").count()
    }

    #[test]
    fn only_a_file_is_replaced_and_only_if_asked() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        written(&path("file"), NOT_ASKED).expect("a new file");
        assert_eq!(written(&path("file"), NOT_ASKED), Err(NewFileError::Exists(path("file"))));
        written(&path("file"), ASKED).expect("it is replaced");
        written(&path("another"), ASKED).expect("a new file");
        symlink(path("file"), path("link")).expect("a link");
        symlink(path("nowhere"), path("loose")).expect("a link");
        fs::create_dir(path("folder")).expect("a folder");
        let _socket = os::unix::net::UnixListener::bind(path("socket")).expect("a socket");
        for name in ["link", "loose", "folder", "socket", "folder/", ".", "..", "folder/.."] {
            for allowed in [ASKED, NOT_ASKED] {
                let refused = written(&path(name), allowed);
                assert!(matches!(refused, Err(NewFileError::NoFile { .. })), "{name}: {refused:?}");
            }
        }
        assert_eq!(written(Path::new(""), ASKED), Err(NewFileError::Empty));
        assert!(!path("nowhere").exists());
        assert_eq!(names(folder.path()), 6, "nothing else is left");
    }

    #[test]
    fn a_pipe_is_written_into_and_never_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, OWN, 0).expect("a pipe");
        assert_eq!(written(&pipe, ASKED), Err(NewFileError::NoFile { path: pipe.clone(), what: "a named pipe" }));
        assert_eq!(written(&pipe, NOT_ASKED), Err(NewFileError::NoReader(pipe.clone())));
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let reader = File::from(openat(CWD, &pipe, flags, Mode::empty()).expect("a reader"));
        written(&pipe, NOT_ASKED).expect("it is written into");
        assert_eq!(io::read_to_string(reader).expect("read"), "new");
        assert!(fs::symlink_metadata(&pipe).expect("there").file_type().is_fifo());
        assert_eq!(names(folder.path()), 1);
    }

    #[test]
    fn no_half_file_stays_where_files_need_a_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let (file, hidden) = Hidden::create(&path, OWN).expect("a file");
        assert_eq!(names(folder.path()), 1);
        let begun = NewFile { file, path: path.clone(), place: Place::Beside { replaces: false, hidden } };
        begun.publish().expect("its name");
        assert_eq!(names(folder.path()), 1);
        let (file, hidden) = Hidden::create(&path, OWN).expect("a file");
        NewFile { file, path, place: Place::Beside { replaces: true, hidden } }.publish().expect("its name");
        assert_eq!(names(folder.path()), 1);
        drop(Hidden::create(&folder.path().join("other"), OWN).expect("a file"));
        assert_eq!(names(folder.path()), 1, "what is not published goes");
    }

    #[test]
    fn what_a_process_that_is_gone_has_left_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut child = std::process::Command::new("true").spawn().expect("a process");
        child.wait().expect("it ends");
        let path = |name: String| folder.path().join(name);
        let own = std::process::id();
        let left = |name: String| {
            let path = path(name);
            fs::write(&path, "half").expect("written");
            path
        };
        // One of an earlier process with the same number, as in a container; and names that others may have chosen.
        let leftovers = [left(format!(".file.{}.part", child.id())), left(format!(".file.{own}.0.part"))];
        let others = ["other.1", "file.-5", "file.+1", "file.0", "file.1.", "file.99999999999", "file.1.x", "file."];
        let others = others.map(|name| left(format!(".{name}.part")));
        // The file of a process that writes.
        let (file, hidden) = Hidden::create(&path("file".to_owned()), OWN).expect("a file");
        _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        written(&path("file".to_owned()), NOT_ASKED).expect("a new file");
        written(&path("file".to_owned()), ASKED).expect("it is replaced");
        assert!(leftovers.iter().all(|left| !left.exists()));
        assert!(others.iter().all(|other| other.exists()));
        assert!(hidden.path.exists());
    }
}
