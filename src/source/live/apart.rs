//! Work on storage that may not answer (FUSE, network) in a child process, which can be abandoned; and files on such
//! storage.
//!
//! A system call on such storage may block for ever, and not even SIGKILL ends every wait (a FUSE request that the
//! server has accepted). A blocked thread would prevent the exit of pmdb; a child process does not. Nor does pmdb hold
//! such a file open, because closing it sends another request to the storage (`fuse_flush`). So a child process opens,
//! reads and closes the file for each part of it.

use super::directory::Directory;
use super::module_file::ModuleFile;
use crate::access::{Error, ReadAt, Result};
use crate::budget::until_interrupted;
use crate::kernel::{Device, Name};
use crate::source::sys;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsRawFd, OwnedFd, RawFd};
use rustix::fs::FileType;
use rustix::io::{Errno, read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long pmdb waits for storage before it gives up.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// How long storage that did not respond is not asked again. One command may need many files on it. So at most a tenth
/// of its time is spent on waiting, and storage that responds again is found soon.
const SILENCE: Duration = Duration::from_secs(20);

/// Storage that did not respond, and children that are about to end.
#[derive(Default)]
struct Children {
    silent: HashMap<Device, Silence>,
    ending: Vec<Pid>,
}

/// Until when storage is not asked again.
struct Silence {
    until: Instant,
    /// The child that asked, until it has ended. Another one would wait too.
    child: Option<Pid>,
}

impl Silence {
    fn has_ended(&mut self) -> bool {
        self.child = self.child.filter(|&child| !has_ended(child));
        self.child.is_none() && self.until <= Instant::now()
    }
}

fn children() -> MutexGuard<'static, Children> {
    static CHILDREN: OnceLock<Mutex<Children>> = OnceLock::new();
    let children = CHILDREN.get_or_init(Mutex::default);
    children.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` in a child process, and returns its answer. `work` may read only files on `storage`. Fails with
/// [`Errno::TIMEDOUT`] if the storage does not answer, and at once if it recently did not.
pub(super) fn ask(storage: Device, work: impl FnOnce() -> Vec<u8>) -> rustix::io::Result<Vec<u8>> {
    {
        let mut children = children();
        children.ending.retain(|&child| !has_ended(child));
        if children.silent.get_mut(&storage).is_some_and(|silence| !silence.has_ended()) {
            return Err(Errno::TIMEDOUT);
        }
        children.silent.remove(&storage);
    }
    let (answer, pen) = pipe_with(PipeFlags::CLOEXEC)?;
    let child = sys::in_child(|| {
        close_all_streams_but(pen.as_raw_fd());
        let answer = work();
        let length = (answer.len() as u64).to_ne_bytes();
        _ = write_all(&pen, &length).and_then(|()| write_all(&pen, &answer));
    })?;
    drop(pen);
    let asked = Instant::now();
    let answer_bytes = read_answer(&answer);
    let mut children = children();
    match answer_bytes {
        // The child may wait for the storage again at its end, when its files are closed.
        Ok(_) => children.ending.push(child),
        Err(_) => {
            _ = kill_process(child, Signal::KILL);
            // Ctrl-C ends the wait earlier, and says nothing about the storage.
            let pause = if asked.elapsed() < PATIENCE { Duration::ZERO } else { SILENCE };
            let silence = Silence { until: Instant::now() + pause, child: Some(child) };
            let earlier = children.silent.insert(storage, silence);
            children.ending.extend(earlier.and_then(|earlier| earlier.child));
        }
    }
    answer_bytes
}

fn has_ended(child: Pid) -> bool {
    !matches!(waitpid(Some(child), WaitOptions::NOHANG), Ok(None))
}

/// Closes all pipes and other streams of the child but one. The reader of a pipe sees no end while the child keeps it
/// open.
fn close_all_streams_but(kept: RawFd) {
    let own = Directory::open("/proc/self").and_then(|own| own.numbers("fd"));
    for number in own.unwrap_or_default() {
        let Ok(number) = RawFd::try_from(number) else {
            continue;
        };
        if number != kept {
            sys::close_if(number, |kind| kind != FileType::RegularFile && kind != FileType::Directory);
        }
    }
}

fn write_all(pen: &OwnedFd, mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        let written = write(pen, bytes)?;
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}

/// Reads the length of an answer, then its bytes. The timeout begins anew with each part.
fn read_answer(from: &OwnedFd) -> rustix::io::Result<Vec<u8>> {
    let mut length = [0; size_of::<u64>()];
    read_fully(from, &mut length)?;
    let length = usize::try_from(u64::from_ne_bytes(length)).map_err(|_| Errno::NOMEM)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).map_err(|_| Errno::NOMEM)?;
    bytes.resize(length, 0);
    read_fully(from, &mut bytes)?;
    Ok(bytes)
}

fn read_fully(from: &OwnedFd, into: &mut [u8]) -> rustix::io::Result<()> {
    const BETWEEN_LOOKS: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    let mut done = 0;
    let mut end = Instant::now() + PATIENCE;
    while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let is_interrupted = || until_interrupted().look().is_err();
        let mut fds = [PollFd::new(from, PollFlags::IN)];
        match poll(&mut fds, Some(&BETWEEN_LOOKS)) {
            Ok(1..) => match read(from, rest)? {
                0 => return Err(Errno::IO),
                read => {
                    done += read;
                    end = Instant::now() + PATIENCE;
                }
            },
            Ok(0) | Err(Errno::INTR) if is_interrupted() || Instant::now() >= end => {
                return Err(Errno::TIMEDOUT);
            }
            Ok(0) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Bytes that are read at a time, because each part needs a child process.
const PART: u64 = 1 << 18;
/// Parts in the cache. Tables are read in smaller steps, a table of symbols alternates with its names, and a name may
/// extend over two parts.
const CACHED: usize = 4;

/// Opens a file; `None` if there is none.
type OpenModule = Box<dyn Fn() -> Result<Option<ModuleFile>> + Send + Sync>;

/// A file on such storage, which pmdb itself never holds open.
pub(super) struct DistantFile {
    storage: Device,
    name: Name,
    open: OpenModule,
    length: u64,
    fingerprint: [u64; 4],
    /// The parts in the cache: offset and bytes, the last used at the end.
    parts: Mutex<Vec<(u64, Vec<u8>)>>,
}

impl DistantFile {
    /// Opens the file that `open` opens, if `storage` answers. `name` is for errors. `None` if there is no file.
    pub(super) fn open(storage: Device, name: &Name, open: OpenModule) -> Result<Option<DistantFile>> {
        let found = look(storage, name, &open)?;
        Ok(found.map(|(length, fingerprint)| DistantFile {
            storage,
            name: name.clone(),
            open,
            length,
            fingerprint,
            parts: Mutex::default(),
        }))
    }

    /// Reads up to `length` bytes from `offset` on. Fails if the file has changed.
    fn fetch(&self, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        let failed = |error| Error::not_available(format!("reading {}: {error}", self.name));
        let bytes = answer(self.storage, &self.name, || {
            let file = (self.open)()?.filter(|file| file.fingerprint() == self.fingerprint);
            let changed = || failed(io::Error::other("it was removed or changed since it was opened"));
            let file = file.ok_or_else(changed)?;
            let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
            let read = file.read_up_to(offset, &mut bytes).map_err(failed)?;
            bytes.truncate(read);
            Ok(bytes)
        });
        bytes.map_err(io::Error::other)
    }
}

/// Returns the current length and fingerprint of the file.
fn look(storage: Device, name: &Name, open: &OpenModule) -> Result<Option<(u64, [u64; 4])>> {
    let answer_bytes = answer(storage, name, || {
        let Some(file) = open()? else {
            return Ok(Vec::new());
        };
        let [a, b, c, d] = file.fingerprint();
        Ok([file.len(), a, b, c, d].map(u64::to_ne_bytes).concat())
    })?;
    let words: Vec<u64> = words(&answer_bytes).collect();
    match words[..] {
        [] => Ok(None),
        [length, a, b, c, d] => Ok(Some((length, [a, b, c, d]))),
        _ => Err(no_answer(name, Errno::IO)),
    }
}

/// Returns the answer of `work`, which reads the file `name` on `storage`.
pub(super) fn answer(storage: Device, name: &Name, work: impl FnOnce() -> Result<Vec<u8>>) -> Result<Vec<u8>> {
    const DONE: u8 = 1;
    let mut answer_bytes = ask(storage, || match work() {
        Ok(mut bytes) => {
            bytes.push(DONE);
            bytes
        }
        Err(error) => in_bytes(&error),
    })
    .map_err(|error| no_answer(name, error))?;
    match answer_bytes.pop() {
        Some(DONE) => Ok(answer_bytes),
        _ => Err(error_from_bytes(&answer_bytes)),
    }
}

/// Decodes consecutive 64-bit words.
pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks().0.iter().copied().map(u64::from_ne_bytes)
}

/// Encodes an error for [`error_from_bytes`]: its text, a zero byte, its remedy, and a zero byte.
fn in_bytes(error: &Error) -> Vec<u8> {
    let remedy = error.remedy().unwrap_or_default();
    format!("{error}\0{remedy}\0").into_bytes()
}

/// Decodes an error whose text and remedy have a zero byte between them.
pub(super) fn error_from_bytes(bytes: &[u8]) -> Error {
    let text = String::from_utf8_lossy(bytes);
    match text.split_once('\0') {
        Some((what, remedy)) if !remedy.trim_end_matches('\0').is_empty() => {
            Error::not_permitted(what, remedy.trim_end_matches('\0'))
        }
        Some((what, _)) => Error::not_available(what),
        None => Error::not_available(text.into_owned()),
    }
}

/// Makes the error that the storage of a file did not answer, or that the call failed.
fn no_answer(name: &Name, error: Errno) -> Error {
    match error {
        Errno::TIMEDOUT => Error::not_available(format!("the storage of {name} does not respond")),
        error => Error::io(format!("requesting {name}"), error),
    }
}

impl ReadAt for DistantFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut parts = self.parts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let begins = offset / PART * PART;
        let part = match parts.iter().position(|(start, _)| *start == begins) {
            Some(cached) => parts.remove(cached),
            None => (begins, self.fetch(begins, PART)?),
        };
        if parts.len() == CACHED {
            parts.remove(0);
        }
        let at = usize::try_from(offset - begins).unwrap_or(usize::MAX);
        let mut there = part.1.get(at..).unwrap_or_default();
        let read = there.read(into)?;
        if !part.1.is_empty() {
            parts.push(part);
        }
        Ok(read)
    }
    fn len(&self) -> u64 {
        self.length
    }
    fn fingerprint(&self) -> [u64; 4] {
        // A file that no longer answers has a different fingerprint.
        let found = look(self.storage, &self.name, &self.open).ok().flatten();
        found.map_or([u64::MAX; 4], |(_, fingerprint)| fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;
    use std::path::PathBuf;

    fn storage_of(minor: u32) -> Device {
        Device { major: 0, minor }
    }

    #[test]
    fn an_answer_comes_back_whole() {
        let answer: Vec<u8> = (0..300_000u32).flat_map(u32::to_ne_bytes).collect();
        assert_eq!(ask(storage_of(u32::MAX), || answer.clone()), Ok(answer.clone()));
        assert_eq!(ask(storage_of(u32::MAX), Vec::new), Ok(Vec::new()));
    }

    /// Waits for ever.
    fn hang() -> Vec<u8> {
        loop {
            std::thread::park();
        }
    }

    #[test]
    fn silent_storage_is_asked_again_after_a_while() {
        let silent = storage_of(u32::MAX - 1);
        let asked = Instant::now();
        assert_eq!(ask(silent, hang), Err(Errno::TIMEDOUT));
        assert!(asked.elapsed() >= PATIENCE);
        let asked = Instant::now();
        assert_eq!(ask(silent, hang), Err(Errno::TIMEDOUT));
        assert!(asked.elapsed() < PATIENCE, "it is not asked again");
        // Other storage still answers.
        assert_eq!(ask(storage_of(u32::MAX - 2), || vec![1]), Ok(vec![1]));
        let until = |until| children().silent.get_mut(&silent).expect("a silence").until = until;
        until(Instant::now());
        let patience = Instant::now() + PATIENCE;
        // It may be asked once the child has ended, by SIGKILL.
        while ask(silent, || vec![2]) != Ok(vec![2]) {
            assert!(Instant::now() < patience, "it does not end");
            std::thread::yield_now();
        }
        assert!(!children().silent.contains_key(&silent));
    }

    #[test]
    fn a_child_that_still_waits_is_alone() {
        let waits = sys::in_child(|| drop(hang())).expect("a child");
        let storage = storage_of(u32::MAX - 4);
        let silence = Silence { until: Instant::now(), child: Some(waits) };
        children().silent.insert(storage, silence);
        assert_eq!(ask(storage, || vec![1]), Err(Errno::TIMEDOUT));
        kill_process(waits, Signal::KILL).expect("to end it");
        while ask(storage, || vec![1]) != Ok(vec![1]) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_is_read_in_turn_is_asked_for_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name| -> PathBuf { folder.path().join(name) };
        let file = File::create(path("file")).expect("a file");
        file.set_len(5 * PART).expect("its length");
        // It is opened in children, which share only files with this process.
        let opened = File::create(path("opened")).expect("a file");
        let counter = opened.try_clone().expect("the same file");
        let found = path("file");
        let open = move || {
            (&counter).write_all(b"1").expect("to count");
            let file = File::open(&found).expect("the file");
            Ok(ModuleFile::open_unmapped(file.into()).ok())
        };
        let storage = Device { major: 0, minor: u32::MAX - 3 };
        let file = DistantFile::open(storage, &Name::from("file"), Box::new(open));
        let file = file.expect("an answer").expect("the file");
        for _ in 0..20 {
            for part in 0..CACHED as u64 {
                assert_eq!(file.read_at(part * PART, &mut [1; 4]).expect("bytes"), 4);
            }
        }
        let times = || opened.metadata().expect("its length").len();
        // Once for its length, and once for each part.
        assert_eq!(times(), 5);
        // One part more takes the place of the first.
        for part in [4, 0] {
            assert_eq!(file.read_at(part * PART, &mut [1; 4]).expect("bytes"), 4);
        }
        assert_eq!(times(), 7);
    }
}
