//! Captures of a made world, sound and damaged.

use super::*;
use crate::access::InMemory;
use crate::kernel::{AddressRange, Device, FrameNumber, PageFlags, PageMapEntry, VirtualAddress};
use crate::process::fake::{PAGE, World, region};
use crate::records::{NamedFile, OwnerDetail, PageOfFile};
use crate::sample::{self, sample};
use std::collections::HashMap;
use std::io::Write;
use std::sync::Mutex;

#[derive(Clone, Default)]
struct Bytes(Arc<Mutex<Vec<u8>>>);

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("a lock").write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The bytes of a capture of this world.
fn captured(world: World) -> Vec<u8> {
    let (_, target) = world.target();
    let bytes = Bytes::default();
    let capture = Capture::begin(&target, Box::new(bytes.clone()));
    let written = capture.write(&mut Budget::unlimited(), &mut |_, _| Ok(()), |_| Ok::<(), super::super::Error>(()));
    written.expect("a capture");
    let bytes = bytes.0.lock().expect("a lock");
    bytes.clone()
}

fn opened(bytes: &[u8]) -> Result<Target> {
    Target::of_capture(Box::new(InMemory::file(bytes.to_vec())), 0)
}

/// A region with pages here and there, a large one that is nearly empty, and a folio of which one page is mapped.
fn world() -> World {
    let mut world = World { soft_dirty: true, ..World::new([region(0x100, 50), region(1 << 20, 1 << 22)]) };
    world.maps(0x100, 3, 0x7000);
    world.maps(0x110, 1, 0x9005);
    world.maps((1 << 20) + 77, 2, 0x8000);
    for index in 0..8 {
        let flag = if index == 0 { PageFlags::COMPOUND_HEAD } else { PageFlags::COMPOUND_TAIL };
        world.flags.insert(0x9000 + index, (flag | PageFlags::ANON).bits());
    }
    world
}

/// What a target answers about its pages, as far as it answers.
fn answers(target: &Target) -> Vec<String> {
    let Target { process, machine, .. } = target;
    let mut said = vec![format!("{:?} {:?}", process.identity(), process.regions())];
    for first in [0x100, 0x120, 1 << 20, (1 << 20) + 70, 1 << 21] {
        let mut entries = [PageMapEntry::default(); 16];
        let read = process.entries(first, &mut entries);
        said.push(format!("{read:?} {entries:?}"));
    }
    said.push(format!("{:?}", process.entries((1 << 35) - 3, &mut [PageMapEntry::default(); 16])));
    let all = AddressRange::new(VirtualAddress::new(0), VirtualAddress::new((1 << 23) * PAGE)).expect("a range");
    // A damaged file may have very many.
    let stretches: Vec<_> = process.populated(all, process.categories()).take(1000).collect();
    said.push(format!("{stretches:?}"));
    for (first, count) in [(0x7000, 3), (0x8000, 2), (0x9000, 9)] {
        let mut flags = vec![PageFlags::empty(); count];
        let mut counts = vec![0; count];
        let read = machine.frame_flags(FrameNumber::new(first), &mut flags);
        let counted = machine.frame_counts(FrameNumber::new(first), &mut counts);
        said.push(format!("{read:?} {flags:?} {counted:?} {counts:?}"));
    }
    said.push(format!("{:?} {:?}", process.status(), process.threads()));
    said.push(format!("{:?} {:?} {:?}", machine.kernel(), machine.swaps(), machine.swap_layout()));
    said
}

#[test]
fn a_capture_answers_as_its_target_did() {
    for scans in [true, false] {
        let capture = opened(&captured(World { scans, ..world() })).expect("a capture");
        let (_, target) = World { scans, ..world() }.target();
        assert_eq!(answers(&capture), answers(&target), "scans: {scans}");
        assert!(capture.process.capture_times().is_some() && target.process.capture_times().is_none());
    }
}

#[test]
fn what_the_kernel_s_records_lead_to_is_left_out_with_the_names() {
    let file = PageOfFile { device: Device::default(), inode: 7, index: 0 };
    let (path, filesystem) = (Some(b"/secret/a".to_vec()), b"secret".to_vec());
    let detail = OwnerDetail::File(NamedFile { file, path, filesystem, is_deleted: false });
    let owners = [(5, detail.clone())].into();
    let (_, target) = World { records: Some(HashMap::new()), owners, ..world() }.target();
    assert_eq!(target.machine.owner_detail(FrameNumber::new(5)).expect("a file"), Some(detail));
    let refused = target.without_names().machine.owner_detail(FrameNumber::new(5)).expect_err("it has a name");
    assert_eq!(refused.to_string(), "the kernel's own records: left out of this capture (without names)");
}

/// The bytes of a capture of a family of three, of which one ends after so many answers, and what is missing.
fn captured_family(ending: u32, after: usize) -> (Vec<u8>, Vec<MissingProcess>) {
    let made = |pid: u32, space: u32| {
        let world = World { pid, space, ..world() };
        if pid == ending {
            *world.watched.answers_left.lock().expect("a lock") = Some(after);
        }
        world
    };
    let handles = [12, 13].map(|pid| ProcessHandle::of_numbers(pid, 11));
    let processes = handles.iter().map(|one| (one.clone(), Some(Arc::new(made(one.pid, 2))))).collect();
    let (_, target) = World { processes, ..made(11, 1) }.target();
    let bytes = Bytes::default();
    let capture = Capture::begin(&target, Box::new(bytes.clone())).with_family(&handles, Vec::new());
    let written = capture.write(&mut Budget::unlimited(), &mut |_, _| Ok(()), |_| Ok::<(), super::super::Error>(()));
    let content = written.expect("a capture without it");
    assert_eq!(content.processes as usize + content.missing.iter().filter(|one| !one.is_in_part).count(), 3);
    let bytes = bytes.0.lock().expect("a lock").clone();
    (bytes, content.missing)
}

#[test]
fn a_family_is_captured_though_one_of_it_ends() {
    for ending in [11, 12, 13] {
        let mut seen = [false; 3];
        for after in 0.. {
            let (bytes, missing) = captured_family(ending, after);
            let capture = opened(&bytes).expect("a capture");
            assert_eq!(capture.process.missing_processes(), missing);
            for pid in [11, 12, 13].into_iter().filter(|pid| *pid != ending) {
                let (_, live) = World { pid, ..world() }.target();
                let member = capture.member(pid).expect("a process that lives");
                assert_eq!(answers(&member)[..11], answers(&live)[..11], "{ending} {after} {pid}");
            }
            match &missing[..] {
                [] => {
                    seen[2] = true;
                    break;
                }
                [one] if one.is_in_part => {
                    seen[1] = true;
                    let (_, live) = World { pid: ending, ..world() }.target();
                    let member = capture.member(ending).expect("its pages");
                    assert_eq!(answers(&member)[..8], answers(&live)[..8], "{ending} {after}");
                    let whys =
                        [member.process.status().map(drop), member.process.smaps(&mut Budget::unlimited()).map(drop)];
                    for error in whys.into_iter().filter_map(std::result::Result::err) {
                        let expected = format!("not in this capture, because process {ending} ended");
                        assert!(error.to_string().ends_with(&expected), "{error}");
                    }
                }
                [one] => {
                    seen[0] = true;
                    assert_eq!((one.pid, &*one.why), (ending, "ended"));
                    let error = capture.member(ending).map(drop).expect_err("it ended");
                    assert!(error.to_string().ends_with("not in this capture, because it ended"), "{error}");
                }
                more => panic!("{more:?}"),
            }
        }
        assert_eq!(seen, [true; 3], "{ending}");
    }
}

#[test]
fn processes_with_one_address_space_are_known() {
    let (bytes, _) = captured_family(0, 0);
    let machine = opened(&bytes).expect("a capture").machine;
    assert_eq!(machine.find_memory(&[12], 13), Some(Ok(0)));
    assert_eq!(machine.find_memory(&[11], 13), Some(Err(1)));
    assert_eq!(machine.find_memory(&[12], 11), Some(Err(0)));
    assert_eq!(machine.find_memory(&[12], 99), None);
}

#[test]
fn frames_that_were_not_read_are_no_zeros() {
    let capture = opened(&captured(world())).expect("a capture");
    let flags = |first| capture.machine.frame_flags(FrameNumber::new(first), &mut [PageFlags::empty(); 4]);
    assert!(flags(0x9000).is_ok());
    for missing in [0x6fff, 0x7100, 0x9007] {
        let error = flags(missing).expect_err("not captured");
        assert!(error.to_string().ends_with("not in this capture"), "{error}");
    }
}

#[test]
fn counts_follow_the_flags_through_many_blocks() {
    const RUNS: u64 = 6_000;
    let mut world = World::new([region(0x1000, 3 * RUNS)]);
    for run in 0..RUNS {
        // Gaps that are not read along, and now and then two frames.
        let (page, frame, pages) = (0x1000 + 3 * run, 0x10_0000 + 13 * run, 1 + run % 2);
        world.maps(page, pages, frame);
        for one in frame..frame + pages {
            world.counts.insert(one, 1 + one % 7);
        }
    }
    let capture = opened(&captured(world)).expect("a capture");
    for run in (0..RUNS).step_by(17).chain(RUNS - 2..RUNS) {
        let (first, count) = (0x10_0000 + 13 * run, 1 + run % 2);
        let mut counts = vec![0; count as usize];
        capture.machine.frame_counts(FrameNumber::new(first), &mut counts).expect("counts");
        assert_eq!(counts, (first..first + count).map(|one| 1 + one % 7).collect::<Vec<_>>(), "{run}");
    }
    let error = capture.machine.frame_counts(FrameNumber::new(0x10_0000 + 5), &mut [0; 2]).expect_err("not captured");
    assert!(error.to_string().ends_with("not in this capture"), "{error}");
}

#[test]
fn a_capture_that_is_cut_short_is_an_error_at_every_length() {
    let whole = captured(world());
    for length in (0..whole.len()).step_by(61).chain(whole.len() - 2000..whole.len()) {
        assert!(opened(&whole[..length]).is_err(), "{length}");
    }
    let error = opened(&whole[..whole.len() / 2]).map(drop).expect_err("cut");
    assert!(error.to_string().contains("members are whole"), "{error}");
}

#[test]
fn a_damaged_capture_gives_answers_or_errors() {
    let whole = captured(world());
    let bits_of = |at: usize| (8 * at..8 * at + 8).collect::<Vec<_>>();
    // One bit of each byte, and all of the text that says where everything is.
    let day = sample::number() as usize;
    let bits = sample(0..whole.len(), 28).map(|at| 8 * at + (at + day) % 8);
    let last = whole.len() - 3 * 512;
    let text = (last..whole.len()).take_while(|at| whole[*at] != 0).flat_map(bits_of);
    for bit in bits.chain(text) {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        if let Ok(target) = opened(&damaged) {
            _ = answers(&target);
        }
    }
}
