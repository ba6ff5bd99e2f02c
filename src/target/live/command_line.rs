//! The command line of a process. The kernel reads it out of the process's own memory and would bring that in, from swap or as a page of
//! zeros: so it is asked only where the page map says that all of it is there.

use super::directory::Directory;
use crate::kernel::{AddressRange, Name, PageMapEntry, PageSize, VirtualAddress, maps};
use crate::target::sys;
use rustix::fd::AsFd;

/// More pages than arguments can have (ARG_MAX): a program may claim any addresses (PR_SET_MM).
const MOST_PAGES: u64 = 4096;

/// What `cmdline` below `directory` says; `None` if it may not be asked. `page_map` is of the same process, and `arguments` is where its
/// `stat` says that they lie.
pub(super) fn read(
    directory: &Directory,
    cmdline: &str,
    page_map: impl AsFd,
    arguments: Option<AddressRange>,
) -> Option<Name> {
    let page = PageSize::from_bytes(rustix::param::page_size() as u64)?;
    let arguments = arguments.filter(|arguments| arguments.pages(page) <= MOST_PAGES)?;
    let own = usize::try_from(arguments.pages(page)).ok()?;
    let title_end = arguments.start().checked_add(page.bytes())?;
    let read_by_kernel = AddressRange::new(arguments.start(), arguments.end().max(title_end))?;
    let pages = usize::try_from(read_by_kernel.pages(page)).ok()?;
    let mut entries = vec![PageMapEntry::default(); pages];
    let read = sys::read_words(page_map, page.index(arguments.start()), &mut entries).ok()?;
    entries.truncate(read);
    let is_mapped = || {
        let regions = directory.read("maps").ok();
        let regions = regions.and_then(|bytes| maps::parse(&bytes).ok());
        let last = page.floor(VirtualAddress::new(title_end.get() - 1));
        regions.is_none_or(|regions| regions.iter().any(|region| region.range.contains(last)))
    };
    let bytes = may_be_read(&entries, own, is_mapped).then(|| directory.read(cmdline).ok())??;
    Some(parted(&bytes))
}

/// Whether reading brings nothing in. `own` entries are of the arguments' pages; where the last argument does not end in a zero byte
/// (setproctitle), the kernel reads a page's worth from the first one on, which may reach into one page more (get_mm_proctitle in
/// fs/proc/base.c): harmless if that is there, or in no region.
fn may_be_read(
    entries: &[PageMapEntry],
    own: usize,
    next_is_mapped: impl FnOnce() -> bool,
) -> bool {
    let Some((arguments, next)) = entries.split_at_checked(own) else {
        return false;
    };
    arguments.iter().all(|entry| entry.is_present())
        && match next.first() {
            None => true,
            Some(next) => next.is_present() || (!next.is_swap_entry() && !next_is_mapped()),
        }
}

/// Arguments end in zero bytes; blanks part them here.
fn parted(bytes: &[u8]) -> Name {
    let end = bytes
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |last| last + 1);
    let arguments = bytes.get(..end).unwrap_or_default();
    let parted = arguments
        .iter()
        .map(|&byte| if byte == 0 { b' ' } else { byte });
    Name::new(parted.collect::<Vec<u8>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_page_more_than_the_arguments_must_be_there_or_nowhere() {
        let there = PageMapEntry::new(1 << 63 | 1);
        let swapped = PageMapEntry::new(1 << 62 | 0x20);
        let empty = PageMapEntry::default();
        for (entries, own, next_is_mapped, expected) in [
            (&[there][..], 1, true, true),
            (&[there, there], 1, true, true),
            (&[there, swapped], 1, true, false),
            (&[there, empty], 1, true, false),
            (&[there, empty], 1, false, true),
            (&[there, empty], 2, false, false),
            (&[swapped, there], 1, true, false),
            (&[], 1, false, false),
        ] {
            let may = may_be_read(entries, own, || next_is_mapped);
            assert_eq!(may, expected, "{entries:?} {own} {next_is_mapped}");
        }
    }
}
