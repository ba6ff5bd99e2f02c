//! Indexes of processes with many mappings, and of many processes.

use super::super::archive::{is_index_length, pack};
use super::super::index::{Answers, ProcessAnswers, StoredRun};
use super::super::stored::{BLOCK, CompressedBlock};
use super::*;
use crate::access::Error;
use crate::kernel::{AddressRange, Device, Name, Permissions, Region};
use crate::source::BackingContent;

/// As many mappings as Linux permits (vm.max_map_count), each of a page of a file of its own: an index with the
/// most answers for its length.
#[test]
fn a_process_with_many_mappings_of_files() {
    const PAGE: u64 = 4096;
    let mut process = ProcessAnswers::default();
    let mut answers = Answers::default();
    for number in 0..65_530u64 {
        let start = VirtualAddress::new((number + 1) * 2 * PAGE);
        let range = AddressRange::of_length(start, PAGE).expect("a range");
        let region = Region {
            range,
            permissions: Permissions::default(),
            offset: 0,
            device: Device { major: 0, minor: 1 },
            inode: number + 1,
            name: Name::default(),
            deleted: false,
        };
        let content = match number % 2 {
            0 => Ok(BackingContent::Contents { cached: true }),
            _ => Err(Error::not_available("x")),
        };
        let runs = StoredRun::all(&region, &[BackingRun { range, content }]);
        answers.put(Question::Backing(Backing { region: &region, range }).key(), Ok(runs));
        process.looks.insert(start.get(), (0, 0));
        let words = vec![0o100_600, 0, 0, 4096, 1, 4096, 0, 0, 0];
        answers.put(Question::Probe(Probe::MappedFile(&region)).key(), Ok(words));
        process.changed.push((number, 1));
    }
    process.answers = answers;
    let index = CaptureIndex { processes: vec![process], ..CaptureIndex::default() };
    let json = serde_json::to_vec(&index).expect("JSON");
    let (read, _) = read_index(&json).expect("a sound index");
    let count = |index: &CaptureIndex| {
        let answers = index.processes.first().map(|one| &one.answers);
        answers.map(|answers| <Vec<StoredRun> as Stored>::all(answers).len())
    };
    assert_eq!(count(&read), Some(65_530));
    // A part of it is left, for answers that are not known yet.
    let mut less = until_interrupted().holding(json.len() as u64 * INDEX_MEMORY * 3 / 4);
    let read = budgeted::read::<CaptureIndex>(&json, &mut less);
    assert!(read.is_ok(), "{:?}", read.err());
}

#[test]
fn lists_of_a_family_are_together_no_longer_than_a_text() {
    let populated = |blocks: u64| {
        let block = |number| CompressedBlock { offset: 100 * number, packed: 100, length: BLOCK as u32 };
        StoredText::Blocks((0..blocks).map(block).collect())
    };
    let family = |processes: usize| -> Vec<ProcessAnswers> {
        let one = |_| ProcessAnswers { populated: populated(4), ..ProcessAnswers::default() };
        (0..processes).map(one).collect()
    };
    let is_sound = |processes: usize| are_processes_sound(&family(processes), 4096, 10 * 4 * BLOCK as u64);
    assert!(is_sound(1) && is_sound(10));
    assert!(!is_sound(11), "the same blocks once more");
}

/// Without rights, nothing about memory without a path is known but the reason, once for each mapping.
#[test]
fn an_index_of_many_refusals_is_no_longer_than_an_index_may_be() {
    for mappings in [1000, 8000, 60_000] {
        let mut answers = Answers::default();
        for number in 0..mappings {
            let refused = Error::not_permitted(
                format!("may not open /memfd:m{number}, memory without a path"),
                "run pmdb with CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE: with sudo, or after `setcap \
                 cap_sys_admin,cap_sys_ptrace,cap_dac_read_search=p` on its file",
            );
            answers.put(format!("backing 00:01 {number:x} 0-1000"), Err::<Vec<StoredRun>, _>(&refused));
            answers.put(format!("probe mapped-file 00:01 {number:x}"), Err::<Vec<u64>, _>(&refused));
        }
        let process = ProcessAnswers { answers, ..ProcessAnswers::default() };
        let index = CaptureIndex { processes: vec![process], ..CaptureIndex::default() };
        let json = serde_json::to_vec(&index).expect("JSON");
        let packed = pack(&json, Vec::new()).expect("packed").len();
        assert!(is_index_length(json.len() as u64, packed as u64), "{mappings}: {} {packed}", json.len());
    }
}
