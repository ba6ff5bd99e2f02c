//! Files that are kept for long, such as those with symbols. A process may map more files than pmdb may have open. So a
//! file that was not read recently is closed, and opened again for the next read.

use super::module_file::ModuleFile;
use crate::access::ReadAt;
use crate::own::rights;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The most files that are open at the same time.
const MOST: usize = 4096;
/// The least number of files that may be open: one for each thread that reads, and one of each kind.
const LEAST: usize = 8;

/// Opens the file again; `None` if that fails.
type Again = Box<dyn Fn() -> Option<ModuleFile> + Send + Sync>;

/// A file that is open only when it is needed.
pub(super) struct KeptFile {
    place: Arc<OpenFile>,
    again: Again,
    length: u64,
    fingerprint: [u64; 4],
}

/// The place of a file while it is open.
struct OpenFile {
    file: Mutex<FileState>,
    /// Whether the file was read since it was last spared from closing.
    is_used: AtomicBool,
}

/// The open file, or its last change before it was closed.
enum FileState {
    Open(Arc<ModuleFile>),
    Closed {
        /// The ctime at that moment. An open file stays the same file, even if it is renamed. A name that is opened
        /// again may lead to another file with the same inode number and modification time.
        changed: (i128, i128),
    },
}

impl OpenFile {
    fn close(&self) {
        let mut state = lock(&self.file);
        if let FileState::Open(file) = &*state {
            let changed = file.change_time();
            *state = FileState::Closed { changed };
        }
    }
}

/// All open files, the last opened at the end.
static OPEN: Mutex<VecDeque<Weak<OpenFile>>> = Mutex::new(VecDeque::new());

impl KeptFile {
    /// Keeps a file, which `again` can open again.
    pub(super) fn new(file: ModuleFile, again: Again) -> KeptFile {
        let (length, fingerprint) = (file.len(), file.first_fingerprint());
        let place =
            Arc::new(OpenFile { file: Mutex::new(FileState::Open(Arc::new(file))), is_used: AtomicBool::new(true) });
        keep_open(&place, most());
        KeptFile { place, again, length, fingerprint }
    }

    /// Returns the file, opened again if it was closed. Fails if it was replaced or changed since, because earlier
    /// reads are invalid.
    fn open(&self) -> io::Result<Arc<ModuleFile>> {
        self.place.is_used.store(true, Ordering::Relaxed);
        let mut state = lock(&self.place.file);
        let before = match &*state {
            FileState::Open(file) => return Ok(Arc::clone(file)),
            FileState::Closed { changed } => *changed,
        };
        let is_same = |file: &ModuleFile| file.fingerprint() == self.fingerprint && file.change_time() == before;
        let file = (self.again)().filter(is_same);
        let changed = || io::Error::other("it was removed or changed since the last read");
        let file = Arc::new(file.ok_or_else(changed)?);
        *state = FileState::Open(Arc::clone(&file));
        drop(state);
        keep_open(&self.place, most());
        Ok(file)
    }
}

impl ReadAt for KeptFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.open()?.read_at(offset, into)
    }
    fn len(&self) -> u64 {
        self.length
    }
    fn fingerprint(&self) -> [u64; 4] {
        // A file that cannot be opened again has a different fingerprint.
        self.open().map_or([u64::MAX; 4], |file| file.fingerprint())
    }
}

/// Returns half of the number of files that this program may have open, so that the rest is left for other uses.
fn most() -> usize {
    (rights::open_files() / 2).clamp(LEAST, MOST)
}

/// Counts the file at `place`, which has just been opened, and closes others if there are more than `most`.
fn keep_open(place: &Arc<OpenFile>, most: usize) {
    let mut open = lock(&OPEN);
    open.push_back(Arc::downgrade(place));
    // Each file may be spared once.
    let mut patience = 2 * open.len();
    while open.len() > most && patience > 0 {
        patience -= 1;
        let Some(oldest) = open.pop_front() else {
            break;
        };
        let Some(place) = oldest.upgrade() else {
            continue;
        };
        if place.is_used.swap(false, Ordering::Relaxed) { open.push_back(oldest) } else { place.close() }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, OFlags, openat};
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    fn open(path: &Path) -> Option<ModuleFile> {
        let found = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        ModuleFile::open_unmapped(found).ok()
    }

    fn kept_file(path: &Path, later: PathBuf) -> KeptFile {
        let file = open(path).expect("a file");
        KeptFile::new(file, Box::new(move || open(&later)))
    }

    fn read(file: &KeptFile) -> Option<[u8; 3]> {
        let mut bytes = [0; 3];
        let read = file.read_at(0, &mut bytes).ok()?;
        (read == 3).then_some(bytes)
    }

    #[test]
    fn a_file_that_changed_while_it_was_closed_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        fs::write(&path, "one").expect("written");
        let file = kept_file(&path, path.clone());
        file.place.close();
        assert_eq!(read(&file).as_ref(), Some(b"one"), "nothing has changed");
        file.place.close();
        let before = fs::metadata(&path).expect("its times");
        let changed = |one: &fs::Metadata| (one.ctime(), one.ctime_nsec());
        // The clock of the filesystem may tick every few milliseconds.
        loop {
            fs::write(&path, "two").expect("written");
            let times = fs::FileTimes::new().set_modified(before.modified().expect("a time"));
            let again = fs::File::options().write(true).open(&path);
            again.and_then(|file| file.set_times(times)).expect("set");
            let now = fs::metadata(&path).expect("its times");
            assert_eq!((now.mtime(), now.ino()), (before.mtime(), before.ino()));
            if changed(&now) != changed(&before) {
                break;
            }
        }
        assert_eq!(read(&file), None);
        assert_eq!(file.fingerprint(), [u64::MAX; 4]);
    }

    #[test]
    fn it_may_be_renamed_while_it_is_open() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, later) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&path, "one").expect("written");
        let file = kept_file(&path, later.clone());
        let fingerprint = file.fingerprint();
        fs::rename(&path, &later).expect("renamed");
        assert_eq!(file.fingerprint(), fingerprint);
        file.place.close();
        assert_eq!(read(&file).as_ref(), Some(b"one"));
        assert_eq!(file.fingerprint(), fingerprint);
    }
}
