//! Files that are kept for long, as those that symbols are read from are, though a process may have mapped more of them than this
//! program may have open: one that was not read for a while is closed, and opened again when it is asked.

use super::module_file::ModuleFile;
use crate::target::ReadAt;
use rustix::process::{Resource, getrlimit};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Files that may be open at the same time, at most.
const MOST: usize = 4096;
/// As many may always be: one for each thread that reads, and one of each kind.
const LEAST: usize = 8;

/// Opens the file again; `None` if it is not to be had any more.
type Again = Box<dyn Fn() -> Option<ModuleFile> + Send + Sync>;

/// A file that is open when it is needed.
pub(super) struct KeptFile {
    place: Arc<Place>,
    again: Again,
    length: u64,
    fingerprint: [u64; 4],
}

/// Where a file is while it is open.
struct Place {
    file: Mutex<Option<Arc<ModuleFile>>>,
    /// Whether it was read since it was last passed over.
    used: AtomicBool,
}

/// All that are open, those that were opened last at the end.
static OPEN: Mutex<VecDeque<Weak<Place>>> = Mutex::new(VecDeque::new());

impl KeptFile {
    /// Keeps a file, which `again` opens once more.
    pub(super) fn new(file: ModuleFile, again: Again) -> KeptFile {
        let (length, fingerprint) = (file.len(), file.fingerprint());
        let place = Arc::new(Place {
            file: Mutex::new(Some(Arc::new(file))),
            used: AtomicBool::new(true),
        });
        keep_open(&place, most());
        KeptFile {
            place,
            again,
            length,
            fingerprint,
        }
    }

    /// The file, opened again if it was closed. Another, or one that has changed meanwhile, is an error: what was read of it is void.
    fn open(&self) -> io::Result<Arc<ModuleFile>> {
        self.place.used.store(true, Ordering::Relaxed);
        let mut held = lock(&self.place.file);
        if let Some(file) = &*held {
            return Ok(Arc::clone(file));
        }
        let file = (self.again)().filter(|file| file.fingerprint() == self.fingerprint);
        let changed = || io::Error::other("it is gone or has changed since it was closed");
        let file = Arc::new(file.ok_or_else(changed)?);
        *held = Some(Arc::clone(&file));
        drop(held);
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
        // What cannot be opened again has another than it had.
        self.open().map_or([u64::MAX; 4], |file| file.fingerprint())
    }
}

/// Half of what this program may have open: the rest is for everything else.
fn most() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    (limit.unwrap_or(MOST) / 2).clamp(LEAST, MOST)
}

/// Counts the file at `place`, which has just been opened, and closes others if there are more than `most`.
fn keep_open(place: &Arc<Place>, most: usize) {
    let mut open = lock(&OPEN);
    open.push_back(Arc::downgrade(place));
    // Each may be passed over once.
    let mut patience = 2 * open.len();
    while open.len() > most && patience > 0 {
        patience -= 1;
        let Some(oldest) = open.pop_front() else {
            break;
        };
        let Some(place) = oldest.upgrade() else {
            continue;
        };
        match place.used.swap(false, Ordering::Relaxed) {
            true => open.push_back(oldest),
            // Whoever reads it at this moment holds it until that is done.
            false => *lock(&place.file) = None,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
