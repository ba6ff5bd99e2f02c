//! The captures and core files that lines may open: all, those in one directory, or none (`--mcp`).

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The captures and core files that lines may open.
#[derive(Debug)]
pub enum ReadableFiles {
    /// All files that the user may read.
    All,
    /// Files in a directory. The handle stays valid if the directory is moved.
    Below {
        /// The path of the directory, for messages.
        path: PathBuf,
        /// The open directory.
        handle: OwnedFd,
    },
    /// No files.
    None,
}

impl ReadableFiles {
    /// Returns a value that allows the files in a directory and below it.
    ///
    /// # Errors
    /// Fails if the directory cannot be opened.
    pub fn below(path: &Path) -> Result<Self, Errno> {
        let path = path.canonicalize().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = openat(CWD, &path, flags, Mode::empty())?;
        Ok(ReadableFiles::Below { path, handle })
    }

    /// Opens a file to read it, without waiting. A relative path begins at the directory, if there is one.
    ///
    /// # Errors
    /// Fails with `XDEV` if lines may not open the file.
    pub fn open(&self, path: &Path) -> Result<File, Errno> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match self {
            ReadableFiles::All => openat(CWD, path, flags, Mode::empty()).map(File::from),
            ReadableFiles::Below { path: directory, handle } => {
                let inner = path.strip_prefix(directory).unwrap_or(path);
                // openat2(2) resolves the path, so that no link can lead out, even one that is made during the call.
                let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
                openat2(handle, inner, flags, Mode::empty(), within).map(File::from)
            }
            ReadableFiles::None => Err(Errno::XDEV),
        }
    }

    /// Returns why lines may not open a file, and the remedy; `None` if they may open all.
    pub fn refusal(&self, path: &Path) -> Option<(String, String)> {
        let path = path.display();
        match self {
            ReadableFiles::All => None,
            ReadableFiles::Below { path: directory, .. } => {
                let directory = directory.display();
                Some((format!("{path} is not in {directory}"), "--mcp opens files of its directory only".to_owned()))
            }
            ReadableFiles::None => {
                Some((format!("--mcp opens no file: {path}"), "start it with a directory: `pmdb --mcp=DIR`".to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_path_leads_out_of_the_directory() {
        let folder = tempfile::tempdir().expect("a directory");
        let (inside, outside) = (folder.path().join("inside"), folder.path().join("outside"));
        fs::create_dir(&inside).expect("a directory");
        for file in [&outside, &inside.join("file")] {
            fs::write(file, "text").expect("a file");
        }
        for (link, to) in [("out", "../outside"), ("absolute", "/etc/passwd"), ("in", "file")] {
            symlink(to, inside.join(link)).expect("a link");
        }
        let readable = ReadableFiles::below(&inside).expect("it is there");
        for path in ["file", "./file", "in"] {
            readable.open(Path::new(path)).expect(path);
        }
        readable.open(&inside.canonicalize().expect("a path").join("file")).expect("the whole path");
        for path in ["../outside", "out", "absolute", "/etc/passwd", "../inside/file", "/proc/self/root/etc/passwd"] {
            assert_eq!(readable.open(Path::new(path)).expect_err(path), Errno::XDEV, "{path}");
        }
        assert_eq!(readable.open(Path::new("none")).expect_err("no file"), Errno::NOENT);
        assert_eq!(ReadableFiles::None.open(&outside).expect_err("none"), Errno::XDEV);
    }
}
