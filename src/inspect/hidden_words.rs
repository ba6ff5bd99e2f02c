//! Frames whose words the kernel does not show. It gives 0 for the flags, the map count and the cgroup of every frame that
//! is not online system memory, mapped or not: memory of devices, persistent memory (DAX), offline blocks, holes.

use crate::kernel::{FrameNumber, WordFile};
use crate::process::{self, Machine, MemoryAt};
use crate::report::Reason;

/// Stands where there is no frame, or where the kernel does not show its word.
pub(in crate::inspect) const UNREAD: u64 = u64::MAX;

/// Makes [`UNREAD`] of the words of `file` for frames from `first` on which are not shown. Frames with flags are shown:
/// `flags` has them, as far as they were read. The block of a hole may be online, and then it has them too.
pub(super) fn hide(machine: &Machine, file: WordFile, first: FrameNumber, words: &mut [u64], flags: &[u64]) {
    // Up to this one, what is there is known.
    let (mut end, mut memory) = (0, MemoryAt::Online);
    for (at, (word, frame)) in words.iter_mut().zip(first.get()..).enumerate() {
        let flags = flags.get(at).map(|&flags| if flags == UNREAD { 0 } else { flags });
        if *word != 0 || flags.is_some_and(|flags| flags != 0) {
            continue;
        }
        if frame >= end {
            let (found, found_end) = machine.memory_at(FrameNumber::new(frame));
            (memory, end) = (found, found_end.get().max(frame + 1));
        }
        let has_no_flags = file == WordFile::FrameFlags || flags == Some(0);
        let is_hidden = match memory {
            MemoryAt::Online => false,
            MemoryAt::Offline | MemoryAt::Other if has_no_flags => true,
            _ => has_no_words(machine, FrameNumber::new(frame)),
        };
        if is_hidden {
            *word = UNREAD;
        }
    }
}

/// Why the words of a frame for which the kernel gives 0 are not shown; `None` if they are.
pub fn why_hidden(machine: &Machine, frame: FrameNumber) -> Option<Reason> {
    let reason = match machine.memory_at(frame).0 {
        MemoryAt::Unknown(error) => {
            let what = "all words of the frame are 0, and it may be one that the kernel shows none of";
            Some(Reason::NotOnThisKernel(format!("{what}: {error}")))
        }
        memory => no_memory(&memory),
    };
    reason.filter(|_| has_no_words(machine, frame))
}

/// The same for frames that are known to be no memory in use.
pub(super) fn why_no_memory(machine: &Machine, frame: FrameNumber) -> Option<Reason> {
    // This order: the words cost less than the blocks of memory.
    if has_no_words(machine, frame) { no_memory(&machine.memory_at(frame).0) } else { None }
}

/// Why there are no words in such memory, where that is known.
fn no_memory(memory: &MemoryAt) -> Option<Reason> {
    let place = match memory {
        MemoryAt::Offline => "in an offline block of memory",
        MemoryAt::Other => "that is not system memory (RAM)",
        MemoryAt::Online | MemoryAt::Unknown(_) => return None,
    };
    Some(Reason::NotOnThisKernel(format!("the kernel shows no words of a frame {place}")))
}

/// How many of so many frames from `first` on are in offline blocks of memory.
pub fn offline_frames(machine: &Machine, first: FrameNumber, frames: u64) -> u64 {
    let (mut next, last) = (first.get(), first.get().saturating_add(frames));
    let mut offline = 0;
    while next < last {
        let (memory, end) = machine.memory_at(FrameNumber::new(next));
        let end = end.get().clamp(next + 1, last);
        offline += if matches!(memory, MemoryAt::Offline) { end - next } else { 0 };
        next = end;
    }
    offline
}

/// Whether flags and map count are both 0: a mapped frame of system memory has one of them.
fn has_no_words(machine: &Machine, frame: FrameNumber) -> bool {
    [WordFile::FrameFlags, WordFile::FrameCounts].into_iter().all(|file| {
        let mut word = [0];
        machine.frame_words(file, frame, &mut word).is_err() || word == [0]
    })
}

/// The words of frames from a first one on. A folio may have been split or freed while a capture was written: then the
/// capture does not have the words of all of it, and they are unknown.
pub(super) fn known_words(
    machine: &Machine,
    file: WordFile,
    first: FrameNumber,
    into: &mut [u64],
) -> process::Result<usize> {
    match machine.frame_words(file, first, into) {
        Err(process::Error::NotAvailable { .. }) if machine.is_captured() => Ok(0),
        read => read,
    }
}

/// The word at `at`, if it was read. Cuts `frames` to those with the same word.
#[inline]
pub(super) fn common_word<T: Copy + PartialEq>(words: &[T], at: usize, frames: &mut usize) -> Option<T> {
    let words = words.get(at..)?;
    let first = words.first()?;
    let words = words.iter().take(*frames);
    *frames = words.take_while(|&word| word == first).count();
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::Step;
    use crate::inspect::frames::{frame_detail, machine_frames};
    use crate::inspect::{AddressSpace, Evidence};
    use crate::kernel::FrameRange;
    use crate::process::Target;
    use crate::process::fake::{File, KernelSetting};
    use crate::process::fake::{World, region};

    const IOMEM: &str = "00100000-3fffffff : System RAM\n40000000-7fffffff : Persistent Memory\n";
    /// Blocks of 128 MiB; the second is offline.
    const BLOCKS: [(KernelSetting, &str); 3] = [
        (KernelSetting::MemoryBlockBytes, "8000000\n"),
        (KernelSetting::MemoryBlock(0), "online\n"),
        (KernelSetting::MemoryBlock(1), "offline\n"),
    ];

    /// A process with a page of ordinary memory, one of persistent memory, and one in an offline block.
    fn target(iomem: Option<&str>, blocks: &[(KernelSetting, &str)]) -> Target {
        let mut world = World::new([region(0x100, 3)]);
        world.refused.clear();
        for (page, frame, words) in [(0x100, 0x200, Some(1 << 12)), (0x101, 0x4_0007, None), (0x102, 0x8001, None)] {
            world.maps(page, 1, frame);
            world.flags.insert(frame, words.unwrap_or(0));
            world.counts.insert(frame, words.map_or(0, |_| 1));
        }
        world.texts.extend(iomem.map(|text| (File::Iomem, text.to_owned())));
        world.texts.extend(blocks.iter().map(|&(setting, text)| (File::Setting(setting), text.to_owned())));
        world.target().1
    }

    /// Flags, map count, cgroup and `exclusive` of the three pages, of each by itself and in a walk.
    fn known(target: &Target) -> Vec<(bool, bool, bool, Option<bool>)> {
        let space = AddressSpace::of(target).expect("a space");
        let need = Evidence::FLAGS | Evidence::COUNTS | Evidence::CGROUPS | Evidence::HUGE | Evidence::EACH;
        let mut pages = space.pages(&space.spans(), need);
        let mut found = Vec::new();
        while let Some(chunk) = pages.next().expect("pages") {
            for page in chunk.pages().filter(|page| page.frame().is_some()) {
                let detail = space.detail(page.address).expect("a page");
                assert_eq!(detail.flags.is_ok(), page.flags.is_some(), "{detail:?}");
                assert_eq!(detail.map_count.is_ok(), page.map_count.is_some(), "{detail:?}");
                found.push((page.flags.is_some(), page.map_count.is_some(), page.cgroup.is_some(), page.exclusive()));
            }
        }
        found
    }

    /// Bit 56 shows what is mapped only here all the same.
    #[test]
    fn frames_that_are_not_online_have_no_words() {
        let (shown, hidden) = ((true, true, true, Some(true)), (false, false, false, Some(true)));
        assert_eq!(known(&target(Some(IOMEM), &BLOCKS)), [shown, hidden, hidden]);
        // Each of the two sources alone: resources do not show which blocks are offline.
        let is_zero = (true, true, true, Some(false));
        assert_eq!(known(&target(Some(IOMEM), &[])), [shown, hidden, is_zero]);
        // With neither of them, words that are all 0 may be hidden.
        assert_eq!(known(&target(None, &[])), [shown, hidden, hidden]);
        let online =
            [BLOCKS[0], (KernelSetting::MemoryBlock(1), "online\n"), (KernelSetting::MemoryBlock(8), "online")];
        assert_eq!(known(&target(None, &online)), [shown, is_zero, is_zero]);
        // A hole in an online block is reserved, and mapped by nobody that counts.
        let mut world = World::new([region(0x100, 1)]);
        world.refused.clear();
        world.maps(0x100, 1, 0x4_0007);
        world.flags.insert(0x4_0007, 1 << 32);
        world.counts.insert(0x4_0007, 0);
        world.texts.push((File::Iomem, IOMEM.to_owned()));
        assert_eq!(known(&world.target().1), [(true, true, true, Some(false))]);
    }

    /// A block that goes offline, and comes back, during a session.
    #[test]
    fn each_question_asks_anew_which_blocks_are_online() {
        let mut world = World::new([region(0x100, 1)]);
        world.refused.clear();
        world.maps(0x100, 1, 0x8001);
        world.flags.insert(0x8001, 0);
        world.counts.insert(0x8001, 0);
        world.texts.push((File::Iomem, IOMEM.to_owned()));
        world.texts.push((File::Setting(KernelSetting::MemoryBlockBytes), "8000000\n".to_owned()));
        let watched = std::sync::Arc::clone(&world.watched);
        let (_, target) = world.target();
        let range = FrameRange::new(FrameNumber::new(0x8000), FrameNumber::new(0x8002)).expect("frames");
        for state in ["online\n", "offline\n", "online\n"] {
            let block = File::Setting(KernelSetting::MemoryBlock(1));
            *watched.texts.lock().expect("texts") = vec![(block, state.to_owned())];
            let is_online = state == "online\n";
            assert_eq!(known(&target)[0].0, is_online, "{state}");
            let mut frames = machine_frames(&target.machine, range, Evidence::FLAGS);
            let mut rows = 0;
            while let Some(step) = frames.next().expect("frames") {
                if let Step::Found(row) = step {
                    assert_eq!(row.facts.flags.is_some(), is_online, "{state}");
                    rows += 1;
                }
            }
            assert!(rows > 0, "{state}");
            let detail = frame_detail(&target.machine, &Ok(FrameNumber::new(0x8001)));
            assert_eq!(detail.flags.is_ok(), is_online, "{state}");
        }
    }

    #[test]
    fn the_reason_names_what_is_there() {
        let of = |target: &Target, frame| {
            let detail = frame_detail(&target.machine, &Ok(FrameNumber::new(frame)));
            detail.flags.expect_err("no flags").to_string()
        };
        let both = target(Some(IOMEM), &BLOCKS);
        assert_eq!(of(&both, 0x4_0007), "the kernel shows no words of a frame that is not system memory (RAM)");
        assert_eq!(of(&both, 0x8001), "the kernel shows no words of a frame in an offline block of memory");
        let none = of(&target(None, &[]), 0x8001);
        assert!(
            none.contains("all words of the frame are 0") && none.matches("not in this world").count() == 2,
            "{none}"
        );
    }

    #[test]
    fn rows_of_frames_end_where_memory_does() {
        let target = target(Some(IOMEM), &BLOCKS);
        let range = FrameRange::new(FrameNumber::new(0x7ffe), FrameNumber::new(0x1_0002)).expect("frames");
        let mut frames = machine_frames(&target.machine, range, Evidence::FLAGS | Evidence::COUNTS);
        let (mut rows, mut offline) = (Vec::new(), 0);
        while let Some(step) = frames.next().expect("frames") {
            let Step::Found(row) = step else { continue };
            rows.push((row.first.get(), row.frames, row.facts.flags.is_some(), row.facts.map_count));
            if row.facts.flags.is_none() {
                offline += offline_frames(&target.machine, row.first, row.frames);
            }
        }
        let expected = [(0x7ffe, 2, true, Some(0)), (0x8000, 0x8000, false, None), (0x1_0000, 2, true, Some(0))];
        assert_eq!(rows, expected);
        assert_eq!(offline, 0x8000);
    }
}
