//! A recorded source gives the answers of the source that it wraps, and the log has them.

use super::{Error, Target};
use crate::access;
use crate::access::log::{Log, Reads};
use crate::budget::OutOfBudget;
use crate::budget::tests::whole_or_given_up;
use crate::kernel::smaps::Smaps;
use crate::kernel::{AddressRange, Device, FrameNumber, PageFlags, PageMapEntry, Registers, VirtualAddress};
use crate::process::Categories;
use crate::process::fake::{Fake, World, region};
use std::collections::BTreeMap;
use std::sync::Arc;

const ADDRESS: u64 = 0x7000_0000_0000;

fn at(address: u64) -> VirtualAddress {
    VirtualAddress::new(address)
}

fn recorded(fake: Fake) -> (Target, Arc<Log>) {
    let log = Arc::new(Log::default());
    (fake.target().recorded(&log), log)
}

fn fake() -> Fake {
    Fake::new().region(ADDRESS, ADDRESS + 0x10_0000, "rw-p", 0, "[heap]").page(ADDRESS, 0x111, b"abc").page(
        ADDRESS + 0x1000,
        0x222,
        b"",
    )
}

#[test]
fn the_log_has_the_words_that_were_read() {
    let (target, log) = recorded(fake());
    let mut entries = [PageMapEntry::default(); 3];
    let first = ADDRESS / 4096;
    assert_eq!(target.process.entries(first, &mut entries).unwrap(), 3);
    assert!(entries[1].is_present());
    let Reads { kept, .. } = log.take();
    let [read] = kept.as_slice() else {
        panic!("{kept:?}");
    };
    assert_eq!(read.file, "/proc/4321/pagemap");
    assert_eq!(read.offset, Some(first * 8));
    assert_eq!(read.length, Some(24));
    assert_eq!(read.words, entries.map(PageMapEntry::raw));
    assert_eq!(read.found, None);
    let repeat = read.repeat.as_deref().unwrap();
    assert!(repeat.starts_with(&format!("xxd -s {:#x} -l 24 ", first * 8)));
    assert!(repeat.ends_with(" /proc/4321/pagemap"));
    assert_eq!(log.take(), Reads::default());
}

#[test]
fn flags_and_counts_of_frames_and_what_is_refused() {
    let mut fake = fake();
    fake.flags = Some(BTreeMap::from([(0x111, PageFlags::LRU)]));
    fake.counts = None;
    let (target, log) = recorded(fake);
    let frame = FrameNumber::new(0x111);
    let mut flags = [PageFlags::default()];
    target.machine.frame_flags(frame, &mut flags).unwrap();
    assert!(target.machine.frame_counts(frame, &mut [0]).is_err());
    let kept = log.take().kept;
    assert_eq!(kept[0].file, "/proc/kpageflags");
    assert_eq!(kept[0].offset, Some(0x111 * 8));
    assert_eq!(kept[0].words, [PageFlags::LRU.bits()]);
    assert_eq!(kept[0].what, "flags of frame 0x111");
    // A read that fails has no words, and no zero stands for them.
    assert!(kept[1].words.is_empty());
    assert!(kept[1].found.as_deref().unwrap().contains("kpagecount"));
}

#[test]
fn registers_are_described_in_words() {
    let mut fake = fake();
    fake.registers = Some(Registers { program_counter: at(0x40_1000), stack_pointer: at(0x7ffe_0000) });
    let (target, log) = recorded(fake);
    target.process.registers().expect("registers");
    assert_eq!(log.take().kept[0].found.as_deref(), Some("program counter 0x401000, stack pointer 0x7ffe0000"));
}

#[test]
fn a_short_read_says_where_the_file_ends() {
    let (target, log) = recorded(fake());
    let mut entries = [PageMapEntry::default(); 4];
    let last = (1 << 47) / 4096 - 1;
    assert_eq!(target.process.entries(last, &mut entries).unwrap(), 1);
    let read = &log.take().kept[0];
    assert_eq!(read.words.len(), 1);
    assert_eq!(read.found.as_deref(), Some("it ends after 1 of 4 words"));
}

#[test]
fn of_many_reads_the_first_are_kept_and_the_others_counted() {
    let (target, log) = recorded(fake());
    let mut entries = [PageMapEntry::default(); 100];
    let first = ADDRESS / 4096;
    target.process.entries(first, &mut entries).unwrap();
    target.process.entries(first + 100, &mut entries).unwrap();
    // Of another kind of file there is as much room.
    let mut flags = [PageFlags::default(); 3];
    target.machine.frame_flags(FrameNumber::new(7), &mut flags).unwrap();
    let reads = log.take();
    let words: Vec<usize> = reads.kept.iter().map(|read| read.words.len()).collect();
    assert_eq!(words, [64, 3]);
    assert_eq!(reads.kept[0].length, Some(800));
    assert!(reads.kept[0].repeat.as_deref().unwrap().contains("-l 512 "));
    assert_eq!((reads.more_reads, reads.more_words), (1, 36 + 100));
}

#[test]
fn repeated_reads_are_counted_and_kept_once() {
    let (target, log) = recorded(fake());
    for _ in 0..3 {
        target.process.entries(1, &mut [PageMapEntry::default()]).unwrap();
    }
    target.process.regions().unwrap();
    let kept = log.take().kept;
    let times: Vec<u64> = kept.iter().map(|read| read.times).collect();
    assert_eq!(times, [3, 1]);
    assert_eq!(kept[1].found.as_deref(), Some("1 region"));
}

#[test]
fn scans_and_regions_say_what_they_found() {
    let (target, log) = recorded(fake());
    let range = AddressRange::new(at(ADDRESS), at(ADDRESS + 0x8000)).unwrap();
    let found = target.process.populated(range, Categories::PRESENT);
    assert_eq!(found.map(|found| found.unwrap().range.len() / 4096).sum::<u64>(), 2);
    assert!(target.process.region_at(at(ADDRESS)).unwrap().is_some());
    assert!(target.process.region_at(at(1)).unwrap().is_none());
    let kept = log.take().kept;
    assert_eq!(kept[0].found.as_deref(), Some("0x700000000000..0x700000002000 present"));
    assert_eq!(kept[0].offset, Some(ADDRESS / 4096 * 8));
    assert_eq!(kept[0].length, Some(64));
    assert!(kept[1].found.as_deref().unwrap().ends_with("[heap]"));
    let repeat = "grep ^700000000000-700000100000 /proc/4321/maps";
    assert_eq!(kept[1].repeat.as_deref(), Some(repeat));
    assert_eq!(kept[2].found.as_deref(), Some("none"));
}

#[test]
fn no_stretch_comes_twice_from_a_scan_that_says_it_stopped_too_early() {
    let mut world = World::new([region(0x1000, 400)]);
    world.scan_buffer = 32;
    for stretch in 0..100 {
        world.maps(0x1000 + 3 * stretch, 1, 70 + 5 * stretch);
    }
    let (_, target) = world.target();
    let range = AddressRange::new(at(0x1000 * 4096), at(0x1190 * 4096)).unwrap();
    let found = target.process.populated(range, Categories::PRESENT);
    let starts: Vec<u64> = found.map(|found| found.unwrap().range.start().get() / 4096).collect();
    let expected: Vec<u64> = (0..100).map(|stretch| 0x1000 + 3 * stretch).collect();
    assert_eq!(starts, expected);
}

/// The kernel searches upwards only: the region next below is found in few steps, whatever lies between.
#[test]
fn the_regions_next_to_a_range() {
    let regions = [region(0x10, 2), region(0x12, 1), region(0x20, 1), region(0x400, 9), region(0x40_0000, 5)];
    let (_, target) = World { queries: true, ..World::new(regions.clone()) }.target();
    let edges =
        [0x1, 0x10, 0x11, 0x12, 0x13, 0x14, 0x20, 0x21, 0x22, 0x3ff, 0x400, 0x409, 0x3f_ffff, 0x40_0005, 0x90_0000];
    for (index, start) in edges.iter().enumerate() {
        for end in edges.iter().skip(index + 1) {
            let range = region(*start, end - start).range;
            let inside: Vec<_> = regions.iter().filter(|one| one.range.intersection(range).is_some()).collect();
            let (from, to) = match (inside.first(), inside.last()) {
                (Some(first), Some(last)) => {
                    (first.range.start().min(range.start()), last.range.end().max(range.end()))
                }
                _ => (range.start(), range.end()),
            };
            let is_open = inside.first().is_none_or(|first| first.range.start() > range.start());
            let below = regions.iter().rfind(|one| one.range.end() <= from && is_open);
            let above = regions.iter().find(|one| one.range.start() >= to);
            let expected: Vec<_> = below.into_iter().chain(inside).chain(above).cloned().collect();
            assert_eq!(target.process.query_regions_around(range, 9).unwrap(), Some(expected), "{range}");
        }
    }
}

#[test]
fn regions_are_read_whole_or_not_at_all_within_a_budget() {
    let regions = (0..300).map(|number| ADDRESS + number * 0x2000);
    let fake = regions.fold(Fake::new(), |fake, start| fake.region(start, start + 0x1000, "rw-p", 0, ""));
    let process = fake.target().process;
    let given_up = whole_or_given_up(|budget| process.clone().with_budget(budget).regions().map_err(why));
    assert!(given_up > 50, "{given_up}");
}

/// Why something was given up.
fn why(error: Error) -> OutOfBudget {
    match error {
        Error::OutOfBudget(why) => why,
        other => panic!("{other}"),
    }
}

#[test]
fn mounts_and_smaps_are_read_whole_or_not_at_all_within_a_budget() {
    let (tmpfs, other) = (Device { major: 0, minor: 30 }, Device { major: 0, minor: 31 });
    let (_, target) = World { tmpfs: Some(tmpfs), ..World::new([]) }.target();
    for device in [tmpfs, other] {
        let given_up = whole_or_given_up(|mut budget| target.machine.files_on(device, &mut budget));
        assert!(given_up > 0, "{given_up}");
    }
    let mounts = "25 1 0:30 / /mnt rw - tmpfs none rw\n".repeat(300);
    let given_up = whole_or_given_up(|mut budget| access::mounts(mounts.as_bytes(), &mut budget).map_err(why));
    assert!(given_up > 50, "{given_up}");
    let smaps = (0..300).map(|number| Smaps::of(region(2 * number, 1).range)).collect();
    let (_, target) = World { smaps, ..World::new([]) }.target();
    let given_up = whole_or_given_up(|mut budget| target.process.smaps(&mut budget).map_err(why));
    assert!(given_up > 50, "{given_up}");
}
