//! The file of a capture: it appears whole or not at all, and only its owner can read it.

use super::super::floor::Error;
use crate::access::words;
use crate::budget::Budget;
use crate::own::new_file::{Allowed, NewFile, NewFileError};
use crate::own::outlet::Outlet;
use crate::process;
use crate::render::Sink;
use crate::state::ReadableFiles;
use rustix::fs::Mode;
use rustix::io::Errno;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

const BUFFER: usize = 256 << 10;

/// The file of a capture or a core.
pub(super) struct CaptureFile(NewFile);

impl CaptureFile {
    /// Begins it. A file that is there already is refused unless it shall be replaced. A pipe or a device is written
    /// into if `may_stream`, unless it shall be replaced.
    pub(super) fn create(path: &Path, overwrite: bool, may_stream: bool) -> Result<Self, Error> {
        if path.as_os_str().as_encoded_bytes().starts_with(b"--") {
            let what = format!("{} is an option, not a file", path.display());
            return Err(Error::refused(what, format!("put it after the file: `FILE {}`", path.display())));
        }
        let allowed = Allowed { replaces_file: overwrite, writes_into: may_stream && !overwrite };
        NewFile::create(path, allowed, Mode::RUSR | Mode::WUSR).map(CaptureFile).map_err(refused)
    }

    /// What it is written through.
    pub(super) fn writer(&self, budget: Budget) -> Result<Box<dyn Write + Send>, Error> {
        Ok(Box::new(BufWriter::with_capacity(BUFFER, Outlet::new(self.file()?, budget))))
    }

    /// The same, where what is written can be gone back to.
    pub(super) fn file(&self) -> Result<File, Error> {
        self.0.file().map_err(|error| Error::refused(words(error), String::new()))
    }

    /// Gives it its name, and returns its size.
    pub(super) fn publish(self) -> Result<u64, Error> {
        let bytes = self.file()?.metadata().map_or(0, |metadata| metadata.len());
        self.0.publish().map_err(refused)?;
        Ok(bytes)
    }
}

fn refused(error: NewFileError) -> Error {
    match error {
        NewFileError::Io { path, error } => {
            process::Error::Io { what: format!("cannot write {}", path.display()), error }.into()
        }
        NewFileError::Exists(_) => Error::refused(error.to_string(), "--overwrite replaces it"),
        NewFileError::NoFile { what: "a symbolic link", .. } => {
            Error::refused(error.to_string(), "name the file that it leads to")
        }
        _ => Error::Refused { message: error.to_string(), hint: None },
    }
}

/// What a capture is written through that becomes no file of its own.
pub(super) fn stream(sink: &mut dyn Sink) -> Result<Box<dyn Write + Send>, Error> {
    let hint = "a capture is binary: name a file, or a pipe as in `capture - | gzip > FILE`";
    let output = sink.take_output().map_err(|why| Error::refused(why, hint))?;
    Ok(Box::new(BufWriter::with_capacity(BUFFER, File::from(output))))
}

/// Opens a capture to read it. Only a regular file is one.
pub(super) fn open(path: &Path, readable: &ReadableFiles) -> Result<File, Error> {
    if path == Path::new("-") {
        return Err(no_regular(path));
    }
    let file = readable.open(path).map_err(|error| match (error, readable.refusal(path)) {
        (Errno::XDEV, Some((why, hint))) => Error::refused(why, hint),
        (error, _) => unreadable(path, error),
    })?;
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
