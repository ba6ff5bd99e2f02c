//! A page of pmdb's own, of which it knows what the kernel should say: that tells what the kernel keeps back or gets wrong.

use super::directory::Directory;
use super::frames::FrameFile;
use super::rights;
use crate::kernel::{PageFlags, PageMapEntry};
use crate::target::sys;

/// Whether the kernel hides frame numbers from this program. Root in a container or a user namespace has every right but this one, so
/// rights do not tell.
pub(super) fn are_frames_hidden() -> bool {
    match entry() {
        Some(entry) => entry.is_frame_hidden(),
        // Its own page map may be closed to a program that changed its ids; or the page is already in swap.
        None => !rights::has_sys_admin(),
    }
}

/// The flags of a private anonymous page that nobody else has.
pub(super) fn flags(file: &FrameFile) -> Option<PageFlags> {
    let mut flags = [PageFlags::empty()];
    let read = file.read(entry()?.frame()?, &mut flags).ok()?;
    let [flags] = flags;
    (read == 1).then_some(flags)
}

/// Those of the flags of such a page that cannot be true.
pub(super) fn false_flags(flags: PageFlags) -> PageFlags {
    flags & PageFlags::KSM
}

/// The page-map entry of such a page, if it is resident.
pub(super) fn entry() -> Option<PageMapEntry> {
    let page = std::hint::black_box(Box::new(std::process::id()));
    let entry = entry_at((&raw const *page).addr() as u64);
    std::hint::black_box(&page);
    entry.filter(|entry| entry.is_present())
}

/// The page-map entry of an address of this program.
pub(super) fn entry_at(address: u64) -> Option<PageMapEntry> {
    let own = Directory::open("/proc/self")
        .and_then(|own| own.file("pagemap"))
        .ok()?;
    let mut entry = [PageMapEntry::default()];
    let read = sys::read_words(
        &own,
        address / rustix::param::page_size() as u64,
        &mut entry,
    )
    .ok()?;
    let [entry] = entry;
    (read == 1).then_some(entry)
}
