//! pmdb's own mappings of the target's pages. A library that both map is mapped once more while pmdb runs, and so is
//! the program file when the target is another pmdb: the kernel's counts and its exclusive bit include that.

use crate::kernel::{PageMapEntry, PageSize, Region, VirtualAddress};
use crate::process::{self, Process, Target};

/// The files that pmdb maps, and its page map.
pub struct Observer {
    process: Option<Process>,
    /// Its regions that map files.
    regions: Vec<Region>,
}

impl Observer {
    /// For pages of `target`. If that is pmdb itself, its mappings are the target's. Where pmdb does not run, it has
    /// none.
    ///
    /// # Errors
    /// pmdb's own mappings cannot be read: then they are unknown.
    pub fn of(target: &Target) -> process::Result<Self> {
        let is_apart = |own: &Process| !own.identity().is_same_process(&target.process.identity());
        let process = target.machine.own_process()?.filter(is_apart);
        let regions = process.as_ref().map_or(Ok(Vec::new()), Process::regions)?;
        Ok(Observer { process, regions: regions.into_iter().filter(|region| region.inode != 0).collect() })
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
    use crate::inspect::AddressSpace;
    use crate::process::Relation;
    use crate::process::fake::{PAGE, World, region};
    use std::sync::Arc;

    /// Which process pmdb is, `/proc` tells: its number may be that of another pid namespace.
    #[test]
    fn own_mappings_are_those_of_the_process_that_proc_calls_self() {
        let file = || Region { inode: 7, name: "/lib/shared".into(), ..region(0x100, 1) };
        let mapping = |mut world: World| {
            world.entries.insert(0x100, 1 << 63 | 1 << 61 | 0x700);
            world.counts.insert(0x700, 2);
            world
        };
        for (own, may_open, expected) in
            [(None, true, Some(0)), (Some(77), true, Some(1)), (Some(77), false, None), (Some(78), true, None)]
        {
            let other = Arc::new(mapping(World { pid: 77, ..World::new([file()]) }));
            let processes = vec![(Relation::of_numbers(77, 1), may_open.then_some(other))];
            let (_, target) = mapping(World { own, processes, ..World::new([file()]) }).target();
            let address = VirtualAddress::new(0x100 * PAGE);
            let (space, detail) = AddressSpace::detail_at(&target, address).expect("a page");
            assert_eq!(detail.own_mappings.clone().ok(), expected, "{own:?} {may_open}");
            assert_eq!(space.own_mappings_unknown().is_some(), expected.is_none());
            assert_eq!(detail.page.own_mappings, expected.unwrap_or(0));
        }
    }

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
