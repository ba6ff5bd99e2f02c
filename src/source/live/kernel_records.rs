//! Opens `/proc/kcore` for the kernel's records of pages (`struct page`), and proves their layout on pages of pmdb.

use super::directory::Directory;
use super::memory::{self, FrameFiles};
use crate::access::{Error, Result};
use crate::budget::Budget;
use crate::kernel::btf::Layout;
use crate::kernel::{Device, FrameNumber, PageFlags, WordFile};
use crate::own::rights;
use crate::records::{Ground, Image, OWN_FILE, OwnFile, READERS, RandomBytes, ReadCore, Records};
use crate::source::sys::own::{self, OwnMemory, Sharer};
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, fstat, fstatfs, ftruncate, major, memfd_create, minor};
use rustix::io::{Errno, pread, retry_on_intr};
use rustix::pipe::pipe;
use std::fs::File;
use std::io::Read;
use std::sync::{Mutex, OnceLock, PoisonError, TryLockError};

/// Returns the records of the running kernel, opened once.
pub(super) fn records() -> Result<&'static Records> {
    static RECORDS: OnceLock<Result<Records>> = OnceLock::new();
    RECORDS.get_or_init(open).as_ref().map_err(Clone::clone)
}

fn open() -> Result<Records> {
    Records::prove(Image::open(core()?)?, &layout()?, Box::new(LiveGround::default()))
}

fn core() -> Result<ReadCore> {
    // Reads through one open file share an unlocked buffer in the kernel (`private_data` in fs/proc/kcore.c), so that a
    // thread may get the bytes that another one requested.
    let first = open_core()?;
    let more = (1..READERS).map_while(|_| open_core().ok());
    let files: Vec<Mutex<OwnedFd>> = std::iter::once(first).chain(more).map(Mutex::new).collect();
    Ok(Box::new(move |offset: u64, into: &mut [u8]| {
        let free = files.iter().find_map(|file| match file.try_lock() {
            Ok(file) => Some(file),
            Err(TryLockError::Poisoned(file)) => Some(file.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        });
        let file = free.or_else(|| Some(files.first()?.lock().unwrap_or_else(PoisonError::into_inner)));
        file.is_some_and(|file| read_exactly(&file, offset, into))
    }))
}

fn read_exactly(core: &OwnedFd, offset: u64, into: &mut [u8]) -> bool {
    let mut done = 0;
    while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let at = offset.checked_add(done as u64).filter(|&at| i64::try_from(at).is_ok());
        match at.map(|at| retry_on_intr(|| pread(core, &mut *rest, at))) {
            Some(Ok(read)) if read > 0 => done += read,
            _ => return false,
        }
    }
    true
}

const CORE: &str = "/proc/kcore";

fn open_core() -> Result<OwnedFd> {
    /// `PROC_SUPER_MAGIC`
    const PROC: u64 = 0x9fa0;
    let opened = rights::with_raw_memory(|| Directory::proc().and_then(|proc| proc.file("kcore")));
    let file = opened.map_err(|error| match error {
        Errno::NOENT => Error::not_available(format!(
            "there is no {CORE} (no CONFIG_PROC_KCORE, or this /proc is mounted with subset=pid)"
        )),
        Errno::ACCESS | Errno::PERM if is_locked_down() => {
            Error::not_available(format!("kernel lockdown (confidentiality) forbids reads of {CORE}"))
        }
        Errno::ACCESS | Errno::PERM => {
            Error::not_permitted(format!("may not open {CORE}: permission denied"), rights::way_to_raw_memory())
        }
        error => Error::io(format!("opening {CORE}"), error),
    })?;
    let kind = fstatfs(&file).map_err(|error| Error::io(format!("opening {CORE}"), error))?;
    match kind.f_type as u64 {
        PROC => Ok(file),
        _ => Err(Error::not_available(format!("something else is mounted over {CORE}, as containers do"))),
    }
}

fn is_locked_down() -> bool {
    let read = Directory::open("/sys").and_then(|sys| sys.read("kernel/security/lockdown"));
    read.is_ok_and(|text| text.windows(17).any(|word| word == b"[confidentiality]"))
}

fn layout() -> Result<Layout> {
    const FILE: &str = "kernel/btf/vmlinux";
    /// The most types of a BTF file: several times those of the largest kernels.
    const MOST_TYPES: u64 = 4_000_000;
    let bytes = Directory::open("/sys").and_then(|sys| sys.read(FILE)).map_err(|error| match error {
        Errno::NOENT => Error::not_available(format!("there is no /sys/{FILE} (no CONFIG_DEBUG_INFO_BTF)")),
        error => Error::io(format!("reading /sys/{FILE}"), error),
    })?;
    let mut budget = Budget::unlimited().at_most(MOST_TYPES);
    Layout::parse(bytes, &mut budget).map_err(|error| Error::not_available(format!("/sys/{FILE}: {error}")))
}

/// The facts that prove the layout: the pages of pmdb, and the files of `/proc` about all pages.
struct LiveGround {
    frame_files: FrameFiles,
    page: usize,
}

impl Default for LiveGround {
    fn default() -> Self {
        LiveGround { frame_files: FrameFiles::default(), page: rustix::param::page_size() }
    }
}

fn frame_of(address: u64) -> Option<u64> {
    memory::own_entry_at(address)?.frame().map(FrameNumber::get)
}

/// Starts a second process that shares the memory of this one, unless a fork of so much memory would disturb a program
/// that uses pmdb as a library.
fn sharer() -> Option<Sharer> {
    const MOST: u64 = 256 << 20;
    let text = Directory::proc().and_then(|proc| proc.read("self/statm")).ok()?;
    let resident: u64 = String::from_utf8(text).ok()?.split(' ').nth(1)?.parse().ok()?;
    if resident.saturating_mul(rustix::param::page_size() as u64) > MOST {
        return None;
    }
    Sharer::start().ok()
}

impl LiveGround {
    /// Allocates an anonymous page, and writes to it.
    fn own_page(&self, bytes: &[u8]) -> Option<OwnMemory> {
        let memory = OwnMemory::anonymous(self.page).ok()?;
        memory.write(0, bytes).ok()?;
        Some(memory)
    }

    /// Allocates memory that may become a huge page, and returns the place of that in it.
    fn own_huge_page(&self) -> Option<(OwnMemory, usize, usize)> {
        /// The most bytes of a huge page: clearing larger ones lasts too long.
        const MOST: usize = 64 << 20;
        let text = Directory::open("/sys").and_then(|sys| sys.read("kernel/mm/transparent_hugepage/hpage_pmd_size"));
        let huge: usize = String::from_utf8(text.ok()?).ok()?.trim().parse().ok()?;
        let huge = Some(huge).filter(|&huge| huge.is_power_of_two() && (self.page..=MOST).contains(&huge))?;
        let memory = OwnMemory::anonymous(2 * huge).ok()?;
        let begin = usize::try_from(memory.address().next_multiple_of(huge as u64) - memory.address()).ok()?;
        memory.advise_huge(begin, huge).ok()?;
        memory.write(begin, &[1]).ok()?;
        let mut flags = [0];
        self.words(WordFile::FrameFlags, frame_of(memory.address() + begin as u64)?, &mut flags)?;
        if !PageFlags::from_bits_retain(flags[0]).contains(PageFlags::COMPOUND_HEAD) {
            // Before that the kernel empties the batches of all processors (`madvise_collapse` in mm/khugepaged.c).
            _ = memory.collapse(begin, huge);
        }
        Some((memory, begin, huge))
    }
}

impl Ground for LiveGround {
    fn page_bytes(&self) -> u64 {
        self.page as u64
    }

    fn sample(&self) -> Option<RandomBytes> {
        let mut bytes = vec![0; 64];
        File::open("/dev/urandom").ok()?.read_exact(&mut bytes).ok()?;
        let memory = self.own_page(&bytes)?;
        let frame = frame_of(memory.address())?;
        Some(RandomBytes { frame, offset: 0, bytes, _page: Box::new(memory) })
    }

    fn words(&self, file: WordFile, first: u64, into: &mut [u64]) -> Option<()> {
        (self.frame_files.read(file, first, into).ok()? == into.len()).then_some(())
    }

    fn own_frames(&self) -> Vec<u64> {
        /// The number of pages that are checked around each place.
        const AROUND: u64 = 24;
        // The stack, the heap, the executable and the C library.
        let (on_stack, on_heap) = (0u8, Box::new(0u8));
        let places = [
            (&raw const on_stack).addr(),
            (&raw const *on_heap).addr(),
            frame_of as *const () as usize,
            libc::getpid as *const () as usize,
        ];
        let page = self.page as u64;
        let pages = |place: usize| {
            let first = place as u64 / page;
            (first.saturating_sub(AROUND)..first + AROUND).map(move |index| index * page)
        };
        places.into_iter().flat_map(pages).filter_map(frame_of).collect()
    }

    fn take_references(&self, taken: u32, look: &mut dyn FnMut(u64)) {
        let mut steps = || {
            let memory = self.own_page(&[1])?;
            let frame = frame_of(memory.address())?;
            look(frame);
            let (out, into) = pipe().ok()?;
            for _ in 0..taken {
                memory.lend(0, &into).ok()?;
            }
            look(frame);
            drop((out, into));
            look(frame);
            Some(())
        };
        _ = steps();
    }

    fn own_files(&self, look: &mut dyn FnMut(OwnFile)) {
        let mut file = |index: u64| {
            let file = memfd_create(OWN_FILE, MemfdFlags::CLOEXEC).ok()?;
            let length = self.page * (index as usize + 1);
            ftruncate(&file, length as u64).ok()?;
            let memory = OwnMemory::of_file(&file, length).ok()?;
            let offset = self.page * index as usize;
            memory.write(offset, &[1]).ok()?;
            let stat = fstat(&file).ok()?;
            let device = Device { major: major(stat.st_dev), minor: minor(stat.st_dev) };
            let frame = frame_of(memory.address() + offset as u64)?;
            look(OwnFile { frame, device, inode: stat.st_ino, index });
            Some(())
        };
        // The last index makes the tree of the page cache have several levels.
        for index in [2, 7, 70] {
            _ = file(index);
        }
    }

    fn huge_page(&self, look: &mut dyn FnMut(u64, bool)) {
        let mut steps = || {
            let (memory, begin, _) = self.own_huge_page()?;
            let inside = begin + 5 * self.page;
            memory.write(inside, &[1]).ok()?;
            let frame = || frame_of(memory.address() + inside as u64);
            look(frame()?, false);
            if let Some(_sharer) = sharer() {
                look(frame()?, true);
            }
            // A change of its protection makes the kernel map it page by page.
            memory.protect(begin, self.page).ok()?;
            look(frame()?, false);
            Some(())
        };
        _ = steps();
    }

    fn pin_huge_page(&self, taken: u32, look: &mut dyn FnMut(u64)) {
        let mut steps = || {
            let (memory, begin, _) = self.own_huge_page()?;
            let ring = own::io_uring().ok()?;
            let frame = frame_of(memory.address() + begin as u64)?;
            look(frame);
            memory.pin(&ring, begin, taken as usize, self.page).ok()?;
            look(frame);
            own::unpin(&ring).ok()?;
            look(frame);
            Some(())
        };
        _ = steps();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::RecordParts;
    use crate::records::tests::tape::{Recording, Tape};

    /// With PMDB_TAPE, writes what was read to that file: such are the tapes of the tests of `records`.
    #[test]
    fn the_layout_of_this_kernel_is_proved() {
        let core = match core() {
            Ok(core) => core,
            Err(error) => return crate::skips::skip("source::the_layout_of_this_kernel", &error.to_string()),
        };
        let tape = Tape::default();
        let ground = Recording { tape: tape.clone(), ground: LiveGround::default() };
        let image = Image::open(tape.recording(core)).expect("headers");
        let records = Records::prove(image, &layout().expect("a layout"), Box::new(ground)).expect("a proof");
        tape.keep_layout(&records);
        let pins = records.require(RecordParts::PINS);
        if let Some(path) = std::env::var_os("PMDB_TAPE") {
            std::fs::write(path, tape.pack()).expect("a file");
        }
        records.require(RecordParts::all() - RecordParts::PINS).expect("every part");
        pins.expect("pins");
    }
}
