//! The file of a capture: it appears whole or not at all, and only its owner can read it.

use super::super::Error;
use crate::process;
use crate::render::Sink;
use crate::source::words;
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Uid, fchown, linkat, openat, renameat, unlinkat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

const BUFFER: usize = 256 << 10;

/// A file that is being written beside its place, under another name.
pub(super) struct CaptureFile {
    file: File,
    path: PathBuf,
    temporary: PathBuf,
    may_overwrite: bool,
    is_published: bool,
}

impl CaptureFile {
    /// Creates it. A file that is there already is refused unless it shall be replaced.
    pub(super) fn create(path: &Path, overwrite: bool) -> Result<Self, Error> {
        if path.as_os_str().as_encoded_bytes().starts_with(b"--") {
            let what = format!("{} is an option, not a file", path.display());
            return Err(Error::refused(what, format!("put it after the file: `FILE {}`", path.display())));
        }
        if !overwrite && path.symlink_metadata().is_ok() {
            return Err(exists(path));
        }
        let Some(name) = path.file_name() else {
            return Err(write_error(path, Errno::ISDIR));
        };
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.part", std::process::id()));
        let temporary = path.with_file_name(hidden);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file: OwnedFd =
            openat(CWD, &temporary, flags, Mode::RUSR | Mode::WUSR).map_err(|error| write_error(path, error))?;
        let created = CaptureFile {
            file: file.into(),
            path: path.to_owned(),
            temporary,
            may_overwrite: overwrite,
            is_published: false,
        };
        if let Some((user, group)) = invoking_user() {
            fchown(&created.file, Some(user), Some(group)).map_err(|error| write_error(path, error))?;
        }
        Ok(created)
    }

    /// What it is written through.
    pub(super) fn writer(&self) -> Result<Box<dyn Write + Send>, Error> {
        Ok(Box::new(BufWriter::with_capacity(BUFFER, self.file()?)))
    }

    /// The same, where what is written can be gone back to.
    pub(super) fn file(&self) -> Result<File, Error> {
        self.file.try_clone().map_err(|error| Error::refused(words(error), String::new()))
    }

    /// Gives it its name, and returns its size.
    pub(super) fn publish(mut self) -> Result<u64, Error> {
        self.file
            .sync_all()
            .map_err(|error| write_error(&self.path, Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
        let bytes = self.file.metadata().map_or(0, |metadata| metadata.len());
        let (from, to) = (&self.temporary, &self.path);
        let published = if self.may_overwrite {
            renameat(CWD, from, CWD, to)
        } else {
            linkat(CWD, from, CWD, to, AtFlags::empty())
        };
        match published {
            Ok(()) => {
                self.is_published = self.may_overwrite;
                Ok(bytes)
            }
            Err(Errno::EXIST) => Err(exists(to)),
            Err(error) => Err(write_error(to, error)),
        }
    }
}

impl Drop for CaptureFile {
    fn drop(&mut self) {
        if !self.is_published {
            // Nothing is left to do if it cannot be removed.
            _ = unlinkat(CWD, &self.temporary, AtFlags::empty());
        }
    }
}

/// What a capture is written through that becomes no file of its own.
pub(super) fn stream(sink: &mut dyn Sink) -> Result<Box<dyn Write + Send>, Error> {
    let hint = "a capture is binary: name a file, or a pipe as in `capture - | gzip > FILE`";
    let output = sink.take_output().map_err(|why| Error::refused(why, hint))?;
    Ok(Box::new(BufWriter::with_capacity(BUFFER, File::from(output))))
}

/// The user who ran sudo, and their group.
fn invoking_user() -> Option<(Uid, Gid)> {
    rustix::process::geteuid().is_root().then_some(())?;
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    Some((Uid::from_raw(number("SUDO_UID")?), Gid::from_raw(number("SUDO_GID")?)))
}

/// Opens a capture to read it. Only a regular file is one.
pub(super) fn open(path: &Path) -> Result<File, Error> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    if path == Path::new("-") {
        return Err(no_regular(path));
    }
    let file: OwnedFd = openat(CWD, path, flags, Mode::empty()).map_err(|error| unreadable(path, error))?;
    let file = File::from(file);
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(file),
        _ => Err(no_regular(path)),
    }
}

/// Refuses what cannot be read back.
pub(in crate::command) fn no_regular(path: impl AsRef<Path>) -> Error {
    Error::refused(format!("{} is not a regular file", path.as_ref().display()), "a capture is a regular file")
}

fn unreadable(path: &Path, error: Errno) -> Error {
    let what = format!("cannot open {}", path.display());
    process::Error::Io { what, error }.into()
}

fn write_error(path: &Path, error: Errno) -> Error {
    let what = format!("cannot write {}", path.display());
    process::Error::Io { what, error }.into()
}

fn exists(path: &Path) -> Error {
    Error::refused(format!("{} already exists", path.display()), "--overwrite replaces it")
}
