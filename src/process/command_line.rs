//! The command line of a process. The kernel reads it from the process's memory, and would fault absent pages in. So it
//! is read only where the page map says that all of it is resident.

use super::maps_text;
use crate::kernel::{AddressRange, Name, PageMapEntry, VirtualAddress};
use crate::source::{Answer, File, Query, Source, WordFile, as_words};

/// More pages than arguments can have (ARG_MAX): a program may claim any addresses (PR_SET_MM).
const MOST_PAGES: u64 = 4096;

/// The text of `cmdline`; `None` if it may not be read. `arguments` are the addresses from `stat`.
pub(super) fn read(source: &dyn Source, arguments: Option<AddressRange>) -> Option<Name> {
    let page = source.page_size();
    let arguments = arguments.filter(|arguments| arguments.pages(page) <= MOST_PAGES)?;
    let own = usize::try_from(arguments.pages(page)).ok()?;
    let title_end = arguments.start().checked_add(page.bytes())?;
    let read_by_kernel = AddressRange::new(arguments.start(), arguments.end().max(title_end))?;
    let pages = usize::try_from(read_by_kernel.pages(page)).ok()?;
    let mut entries = vec![PageMapEntry::default(); pages];
    let first = page.index(arguments.start());
    let read = source.words(WordFile::PageMap, first, as_words(&mut entries));
    entries.truncate(read.ok()?);
    let last = page.floor(VirtualAddress::new(title_end.get() - 1));
    let is_mapped = || match source.query(Query::At(last)) {
        Ok(Answer::Found(_)) => true,
        Ok(Answer::Nothing) => false,
        // Before Linux 6.11 only the text tells.
        _ => maps_text::read(source).map_or(true, |(regions, _)| regions.iter().any(|one| one.range.contains(last))),
    };
    let may = may_be_read(&entries, own, is_mapped);
    let bytes = may.then(|| source.whole(File::CommandLine).ok())??;
    Some(separated(&bytes))
}

/// Whether a read of the command line faults no page in. The first `own` entries belong to the pages of the arguments.
/// If the last argument does not end in a zero byte (setproctitle), the kernel reads a page's worth from the first
/// argument on (get_mm_proctitle in fs/proc/base.c). That may reach into one more page, which is harmless if it is
/// resident, or in no region.
fn may_be_read(entries: &[PageMapEntry], own: usize, next_is_mapped: impl FnOnce() -> bool) -> bool {
    let Some((arguments, next)) = entries.split_at_checked(own) else {
        return false;
    };
    arguments.iter().all(|entry| entry.is_present())
        && match next.first() {
            None => true,
            Some(next) => next.is_present() || (!next.is_swap_entry() && !next_is_mapped()),
        }
}

/// The arguments with blanks between them, in place of the zero bytes at their ends.
fn separated(bytes: &[u8]) -> Name {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let arguments = bytes.get(..end).unwrap_or_default();
    let separated = arguments.iter().map(|&byte| if byte == 0 { b' ' } else { byte });
    Name::new(separated.collect::<Vec<u8>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_after_the_arguments_must_be_resident_or_in_no_region() {
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
