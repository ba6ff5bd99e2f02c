//! The frames that a process may share, as a set: to find them in another process, wherever that maps them.

use super::words::SampledPage;
use crate::kernel::FrameNumber;

/// Runs that are collected before those that overlap or adjoin are joined.
const FIRST_JOIN: usize = 1 << 16;

/// A set of frames: sorted runs that neither overlap nor adjoin, as first frame and end. One frame may be mapped by
/// very many pages (the page of zeros, merged pages), so memory follows the runs of different frames.
#[derive(Default)]
pub struct SharedFrames(Vec<(u64, u64)>);

impl SharedFrames {
    /// The frames of `pages`, without those that no other process can map: bit 56 excludes it, except inside what one
    /// PMD maps, where it is that of the first page. The page of zeros belongs to nobody and is left out too.
    pub fn of(pages: impl Iterator<Item = SampledPage>) -> Self {
        let mut frames = SharedFrames::default();
        let mut full = FIRST_JOIN;
        for page in pages.filter(|page| !page.zero && (page.huge || !page.entry.is_exclusive())) {
            let Some(frame) = page.entry.frame().map(FrameNumber::get) else {
                continue;
            };
            match frames.0.last_mut() {
                Some((_, end)) if *end == frame => *end += 1,
                _ => frames.0.push((frame, frame + 1)),
            }
            if frames.0.len() > full {
                frames.join();
                full = FIRST_JOIN.max(2 * frames.0.len());
            }
        }
        frames.join();
        frames
    }

    fn join(&mut self) {
        self.0.sort_unstable();
        self.0.dedup_by(|next, run| {
            let joins = next.0 <= run.1;
            if joins {
                run.1 = run.1.max(next.1);
            }
            joins
        });
    }

    /// Whether the frame of a page is among them.
    pub fn contains_frame_of(&self, page: SampledPage) -> bool {
        let Some(frame) = page.entry.frame().map(FrameNumber::get) else {
            return false;
        };
        let after = self.0.partition_point(|(first, _)| *first <= frame);
        let run = after.checked_sub(1).and_then(|index| self.0.get(index));
        run.is_some_and(|(_, end)| frame < *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::PageMapEntry;

    const PRESENT: u64 = 1 << 63;
    const EXCLUSIVE: u64 = 1 << 56;

    fn page(raw: u64, huge: bool) -> SampledPage {
        SampledPage { entry: PageMapEntry::new(raw), huge, ..SampledPage::default() }
    }

    #[test]
    fn frames_are_kept_once_in_runs_unless_one_process_alone_can_map_them() {
        let raws = [9, 10, 4, 5, 6, 10, 11, 4, 20];
        let all = raws.map(|frame| page(PRESENT | frame, false));
        let zeros = SampledPage { zero: true, ..page(PRESENT | 7, false) };
        assert!(!SharedFrames::of([zeros].into_iter()).contains_frame_of(zeros));
        let alone = page(PRESENT | EXCLUSIVE | 30, false);
        let first_of_huge = page(PRESENT | EXCLUSIVE | 40, true);
        let swapped = page(1 << 62 | 50, false);
        let frames = SharedFrames::of(all.into_iter().chain([alone, first_of_huge, swapped]));
        assert_eq!(frames.0, [(4, 7), (9, 12), (20, 21), (40, 41)]);
        for (frame, is_in) in [(3, false), (4, true), (6, true), (7, false), (11, true), (12, false), (40, true)] {
            assert_eq!(frames.contains_frame_of(page(PRESENT | frame, false)), is_in, "{frame}");
        }
        assert!(
            !frames.contains_frame_of(page(0, false))
                && !SharedFrames::default().contains_frame_of(page(PRESENT | 4, false))
        );
    }

    #[test]
    fn one_frame_that_very_many_pages_map_takes_little_memory() {
        let zeros = (0..8 * FIRST_JOIN as u64).map(|nth| page(PRESENT | (7 * (nth % 2)), false));
        let frames = SharedFrames::of(zeros);
        assert!(frames.0.capacity() <= 4 * FIRST_JOIN, "{}", frames.0.capacity());
    }
}
