//! What the demonstration process sets up, one function an area.
#![allow(unsafe_code)]

use super::memory::{OwnPages, byte_range, during};
use super::protocol::Area;
use crate::kernel::AddressRange;
use crate::kernel::smaps::{self, Smaps};
use rustix::fs::MemfdFlags;
use rustix::mm::MapFlags;
use std::cell::UnsafeCell;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// Memory of the executable itself that is used only through [`Pages`]. The alignment is the largest base page size
/// in use, so that it begins with a page everywhere.
#[repr(C, align(65536))]
pub struct Static<const BYTES: usize>(UnsafeCell<[u8; BYTES]>);

// SAFETY: reached through `Pages` alone, by a process of one thread.
unsafe impl<const BYTES: usize> Sync for Static<BYTES> {}

const KIB: usize = 1024;

/// Initialised data: pages of the executable, until they are written to.
// SAFETY: nothing else in the program has this name; it is plain so that it can be asked for by it.
#[unsafe(no_mangle)]
pub static demo_buffer: Static<{ 64 * KIB }> = Static(UnsafeCell::new([b'.'; 64 * KIB]));

/// Zeroed data (`.bss`), touched only in part.
// SAFETY: as for `demo_buffer`.
#[unsafe(no_mangle)]
pub static demo_zeroed: Static<{ 256 * KIB }> = Static(UnsafeCell::new([0; 256 * KIB]));

/// Pages that come, go and move while one looks.
// SAFETY: as for `demo_buffer`.
#[unsafe(no_mangle)]
pub static demo_busy: Static<{ 512 * KIB }> = Static(UnsafeCell::new([0; 512 * KIB]));

/// How often `demo_busy` has been changed.
// SAFETY: as for `demo_buffer`.
#[unsafe(no_mangle)]
pub static demo_counter: AtomicU64 = AtomicU64::new(1);

impl<const BYTES: usize> Static<BYTES> {
    fn pages(&'static self, page: usize) -> OwnPages {
        // SAFETY: a static is there as long as the process and writable inside its cell; no reference into the cell is
        // ever made, and the only thread changes it.
        unsafe { OwnPages::whole_pages_of(self.0.get().cast(), BYTES, page) }
    }
}

/// Everything that has been set up.
pub(super) struct Areas {
    /// What to announce.
    pub(super) areas: Vec<Area>,
    /// What the forked child writes to.
    pub(super) copied: [OwnPages; 2],
    /// What the forked child reads, so that its page tables hold it too.
    pub(super) shared: OwnPages,
    /// What changes while one looks.
    pub(super) busy: Busy,
}

/// Sets everything up, in base pages of `page` bytes.
pub(super) fn set_up(page: usize) -> io::Result<Areas> {
    let mut areas = AnnouncedAreas(Vec::new());

    let buffer = demo_buffer.pages(page);
    let half = buffer.count().div_ceil(2);
    buffer.slice(0..half).write();
    buffer.slice(half..buffer.count()).read();
    areas.add("buffer", buffer, "demo_buffer (.data): first half written, rest read");

    let zeroed = demo_zeroed.pages(page);
    zeroed.slice(0..4).write();
    areas.add("zeroed", zeroed, "demo_zeroed (.bss): first 4 pages written");

    demo_counter.store(1, Ordering::Relaxed);
    areas.add_range(
        "counter",
        byte_range(demo_counter.as_ptr().cast(), size_of::<AtomicU64>()),
        "demo_counter: a number that grows with demo_busy",
    );

    let block: &'static mut [u8] = vec![0x5a; 48 * KIB].leak();
    areas.add_range("heap_block", byte_range(block.as_ptr(), block.len()), "48 KiB from malloc, all written");

    let program = File::open("/proc/self/exe")?;
    let private = OwnPages::of_file(program.as_fd(), MapFlags::PRIVATE, 16, page)?;
    private.read();
    private.slice(1..2).write();
    areas.add("private_file", private, "the executable, private: read, then written at +1p");

    let memory =
        rustix::fs::memfd_create("demo_shared", MemfdFlags::CLOEXEC).map_err(during("making a file in memory"))?;
    rustix::fs::ftruncate(&memory, 16 * page as u64).map_err(during("sizing a file in memory"))?;
    let shared = OwnPages::of_file(memory.as_fd(), MapFlags::SHARED, 16, page)?;
    let written = shared.slice(0..8);
    written.write();
    areas.add("shared", shared, "a memfd: 8 pages written, shared with a child");

    let anonymous = OwnPages::anonymous(64, page, c"demo_anonymous")?;
    anonymous.slice(0..16).write();
    areas.add("anonymous", anonymous, "anonymous: first 16 of 64 pages written");

    let zero = OwnPages::anonymous(8, page, c"demo_zero")?;
    zero.read();
    areas.add("zero", zero, "anonymous: only read, so it maps the zero page");

    let untouched = OwnPages::anonymous(256, page, c"demo_untouched")?;
    areas.add("untouched", untouched, "anonymous: never touched");

    set_up_huge(&mut areas, page)?;
    set_up_guard(&mut areas, page)?;

    let busy = Busy::new(demo_busy.pages(page).slice(0..8));
    areas.add("busy", busy.pages, "8 pages of demo_busy, mapped, moved and unmapped in turn");

    Ok(Areas { areas: areas.0, copied: [buffer.slice(0..2), anonymous.slice(0..4)], shared: written, busy })
}

fn set_up_huge(areas: &mut AnnouncedAreas, page: usize) -> io::Result<()> {
    // 2 MiB where the kernel does not say: there are no huge pages then, and the area is one of ordinary pages.
    let bytes = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .filter(|bytes: &usize| bytes.is_power_of_two() && *bytes > page)
        .unwrap_or(2048 * KIB);
    let huge = OwnPages::anonymous(2 * bytes / page, page, c"demo_huge")?.aligned(bytes);
    let asked = huge.prefer_huge().is_ok();
    huge.slice(0..1).write();
    let given = asked && is_huge(huge)?;
    if !given {
        huge.write();
    }
    // A child that shared it would make its 512 map counts differ.
    huge.keep_from_children()?;
    let size = bytes / KIB;
    areas.add(
        "huge",
        huge,
        &if given {
            format!("anonymous: {size} KiB in one huge page")
        } else {
            "anonymous: huge page wanted, ordinary pages given".to_owned()
        },
    );
    Ok(())
}

/// Whether the region that holds these pages has a huge page, as the kernel's own account says.
fn is_huge(pages: OwnPages) -> io::Result<bool> {
    let account = std::fs::read("/proc/self/smaps")?;
    let regions: Vec<Smaps> = smaps::regions(&account).collect::<Result<_, _>>().map_err(io::Error::other)?;
    let range = pages.range();
    let region = range.and_then(|range| Smaps::at(&regions, range.start()));
    let huge = region.and_then(|region| region.field("AnonHugePages"));
    Ok(huge.is_some_and(|bytes| bytes > 0))
}

fn set_up_guard(areas: &mut AnnouncedAreas, page: usize) -> io::Result<()> {
    let pages = OwnPages::anonymous(3, page, c"demo_guard")?;
    pages.write();
    let guard = pages.slice(1..2);
    let sentence = if guard.guard()? {
        "a guard page between two ordinary pages"
    } else {
        "inaccessible: no guard pages before Linux 6.13"
    };
    areas.add("guard", guard, sentence);
    Ok(())
}

/// Areas to announce.
struct AnnouncedAreas(Vec<Area>);

impl AnnouncedAreas {
    fn add(&mut self, name: &str, pages: OwnPages, sentence: &str) {
        self.add_range(name, pages.range(), sentence);
    }

    fn add_range(&mut self, name: &str, range: Option<AddressRange>, sentence: &str) {
        self.0.extend(range.map(|range| Area { name: name.to_owned(), range, sentence: sentence.to_owned() }));
    }
}

/// The pages that change while one looks.
pub(super) struct Busy {
    pages: OwnPages,
    at: usize,
    goes: bool,
}

impl Busy {
    fn new(pages: OwnPages) -> Self {
        Busy { pages, at: 0, goes: false }
    }

    /// One change: a page moves to another frame while the next one comes, and then it goes; so it is the next one's
    /// turn.
    pub(super) fn change(&mut self) -> io::Result<()> {
        let next = (self.at + 1) % self.pages.count().max(1);
        let this = self.pages.slice(self.at..self.at + 1);
        this.give_back()?;
        if self.goes {
            self.at = next;
        } else {
            // The kernel hands out the frame freed last first: the next page gets it.
            self.pages.slice(next..next + 1).write();
            this.write();
        }
        self.goes = !self.goes;
        demo_counter.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
