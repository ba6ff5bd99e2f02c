//! pmdb's own mappings of the target's pages. A library that both map is mapped once more while pmdb runs, and so is
//! the program file when the target is another pmdb: the kernel's counts and its exclusive bit include that.

use crate::kernel::{PageMapEntry, PageSize, Region, VirtualAddress};
use crate::process::{Process, Relation, Target};

/// The files that pmdb maps, and its page map.
pub struct Observer {
    process: Option<Process>,
    /// Its regions that map files.
    regions: Vec<Region>,
}

impl Observer {
    /// For pages of `target`. If that is pmdb itself, its mappings are the target's.
    pub fn of(target: &Target) -> Self {
        let own = std::process::id();
        let is_apart = target.process.identity().pid != own;
        let opened = is_apart.then(|| target.machine.open(&Relation::of_numbers(own, 0)).ok());
        let process = opened.flatten().map(|opened| opened.process);
        let regions = process.as_ref().and_then(|process| process.regions().ok()).unwrap_or_default();
        Observer { process, regions: regions.into_iter().filter(|region| region.inode != 0).collect() }
    }

    /// Adds to `counts` how often pmdb maps the page of each of `entries`, the first of which is that of `start` in
    /// `region`. Each of its mappings of that part of the file takes one read.
    pub fn count(
        &self,
        region: &Region,
        start: VirtualAddress,
        entries: &[PageMapEntry],
        page: PageSize,
        counts: &mut [u64],
    ) {
        let (Some(process), Some(offset)) = (&self.process, region.file_offset(start)) else {
            return;
        };
        let end = offset.saturating_add((entries.len() as u64) << page.shift());
        for own in self.of_file(region) {
            let first = own.offset.max(offset);
            let last = own.offset.saturating_add(own.range.len()).min(end);
            let (Some(length), Some(at)) =
                (last.checked_sub(first), own.range.start().checked_add(first.saturating_sub(own.offset)))
            else {
                continue;
            };
            let mut read = vec![PageMapEntry::default(); (length >> page.shift()) as usize];
            let known = process.entries(page.index(at), &mut read).unwrap_or_default();
            let skipped = ((first - offset) >> page.shift()) as usize;
            let both = entries.iter().zip(counts.iter_mut()).skip(skipped).zip(read.iter().take(known));
            for ((entry, count), own) in both {
                *count += u64::from(is_same_page(*entry, *own));
            }
        }
    }

    /// Whether pmdb maps a part of the file of `region`.
    pub fn maps(&self, region: &Region) -> bool {
        self.of_file(region).next().is_some()
    }

    fn of_file(&self, region: &Region) -> impl Iterator<Item = &Region> {
        let file = (region.device, region.inode);
        self.regions.iter().filter(move |own| (own.device, own.inode) == file)
    }
}

/// Whether the entries of two mappings of one page of a file have the same frame. Where frames are hidden, both have it
/// if neither has a copy of its own.
fn is_same_page(one: PageMapEntry, other: PageMapEntry) -> bool {
    match (one.frame(), other.frame()) {
        (Some(one), Some(other)) => one == other,
        (None, None) => {
            let is_of_file = |entry: PageMapEntry| entry.is_present() && entry.is_file_or_shared();
            is_of_file(one) && is_of_file(other)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_the_same_by_frame_or_where_frames_are_hidden_unless_one_was_copied() {
        const PRESENT: u64 = 1 << 63;
        const FILE: u64 = 1 << 61;
        for (one, other, is_same) in [
            (PRESENT | FILE | 7, PRESENT | FILE | 7, true),
            (PRESENT | FILE | 7, PRESENT | FILE | 8, false),
            (PRESENT | FILE | 7, FILE, false),
            (PRESENT | FILE, PRESENT | FILE, true),
            (PRESENT | FILE, PRESENT, false),
            (PRESENT | FILE, 0, false),
            (0, 0, false),
        ] {
            assert_eq!(is_same_page(PageMapEntry::new(one), PageMapEntry::new(other)), is_same, "{one:#x} {other:#x}");
        }
    }
}
