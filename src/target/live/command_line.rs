//! The command line of a process. The kernel reads it out of the process's own memory and would bring that in, from swap or as a page of
//! zeros: so it is asked only where the page map says that all of it is there.

use super::directory::Directory;
use crate::kernel::{AddressRange, Name, PageMapEntry, PageSize};
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
    let mut entries = vec![PageMapEntry::default(); usize::try_from(arguments.pages(page)).ok()?];
    let read = sys::read_words(page_map, page.index(arguments.start()), &mut entries).ok()?;
    let resident = read == entries.len() && entries.iter().all(|entry| entry.is_present());
    let bytes = resident.then(|| directory.read(cmdline).ok())??;
    Some(parted(&bytes))
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
