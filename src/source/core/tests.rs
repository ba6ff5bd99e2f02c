//! Core files of many parts.

use super::*;
use crate::access::InMemory;
use crate::budget::tests::whole_or_given_up;
use crate::kernel::core_file::CoreNote;
use crate::kernel::elf::ElfForm;
use crate::kernel::{AddressRange, Region};

/// A 64-bit core without memory: segments of a page each at these pages, and notes.
fn core(segments: &[u64], notes: &[CoreNote<'_>]) -> Vec<u8> {
    core_with_memory(segments, &[], notes)
}

/// The same, where the first segment has these bytes.
fn core_with_memory(segments: &[u64], memory: &[u8], notes: &[CoreNote<'_>]) -> Vec<u8> {
    let form = ElfForm { is_64: true, is_little: true };
    let mut note_bytes = Vec::new();
    notes.iter().for_each(|note| note.write(form, &mut note_bytes));
    let count = segments.len() as u64 + 1;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([4, 0, 62, 0, 1, 0, 0, 0]);
    file.extend([0, 64, 0].map(u64::to_le_bytes).concat());
    file.extend([0, 0, 0, 0, 64, 0, 56, 0]);
    file.extend([count, 0].map(|word| word as u16).map(u16::to_le_bytes).concat());
    file.resize(64, 0);
    let mut header = |kind: u32, offset: u64, at: u64, stored: u64, size: u64| {
        file.extend([kind, 4].map(u32::to_le_bytes).concat());
        file.extend([offset, at, 0, stored, size, 0].map(u64::to_le_bytes).concat());
    };
    header(ProgramHeader::NOTE, 64 + 56 * count, 0, note_bytes.len() as u64, 0);
    let behind = 64 + 56 * count + note_bytes.len() as u64;
    for (page, number) in segments.iter().zip(0..) {
        header(ProgramHeader::LOAD, behind, page << 12, if number == 0 { memory.len() as u64 } else { 0 }, 1 << 12);
    }
    file.extend(note_bytes);
    file.extend(memory);
    file
}

fn mapping(page: u64, path: &str) -> CoreMapping {
    let range = AddressRange::of_length(VirtualAddress::new(page << 12), 1 << 12).expect("a range");
    CoreMapping { range, offset: page << 12, path: path.as_bytes().to_vec() }
}

#[test]
fn it_is_read_whole_or_given_up_within_a_budget() {
    let form = ElfForm { is_64: true, is_little: true };
    let files: Vec<CoreMapping> = (1..100).map(|page| mapping(page, ["/b", "/a"][page as usize % 2])).collect();
    let files = core::mapping_bytes(form, 1 << 12, &files);
    let pages = [2, 1, 2, 7, 1, 3, 4, 5].map(u64::to_le_bytes).concat();
    let notes = [
        CoreNote { name: core::CORE, kind: core::FILE, bytes: &files },
        CoreNote { name: core::PMDB, kind: core::PAGE_MAP, bytes: &pages },
    ];
    let bytes = core(&[2, 3, 4, 200], &notes);
    let read = |mut budget| match Core::read(Box::new(InMemory::file(bytes.clone())), &mut budget) {
        Ok(core) => Ok((core.notes.regions(&mut budget)?, core.pages.map(|pages| pages.runs))),
        Err(Error::OutOfBudget(why)) => Err(why),
        Err(other) => panic!("{other}"),
    };
    let (regions, runs) = read(Budget::unlimited()).expect("a core");
    let line = |page: u64| {
        // The rights of what has no segment are unknown.
        let (rights, of) = (if (2..5).contains(&page) { "r--?" } else { "????" }, 2 - page % 2);
        format!("{page:x} {rights} {page:x} 0:0 {of} {}", if of == 1 { "/a" } else { "/b" })
    };
    let lines: Vec<String> = (1..100).map(line).chain(["c8 r--? 0 0:0 0 ".to_owned()]).collect();
    let line = |region: &Region| {
        assert_eq!((region.range.len(), region.deleted), (0x1000, false));
        let (page, offset, device) = (region.range.start().get() >> 12, region.offset >> 12, region.device);
        let (rights, at) = (region.permissions, format!("{}:{}", device.major, device.minor));
        format!("{page:x} {rights} {offset:x} {at} {} {}", region.inode, region.name)
    };
    assert_eq!(regions.iter().map(line).collect::<Vec<String>>(), lines);
    assert_eq!(runs, Some(vec![(1, 2, 0), (7, 1, 16)]));
    assert!(whole_or_given_up(read) > 50);
}

/// gdb leaves out what its file has, and the page of the file in which `.rodata` ends is that in which RELRO begins.
#[test]
fn rights_of_what_is_left_out_are_those_that_its_file_asks_for_there() {
    const READ: u32 = 4;
    let mut program = b"\x7fELF\x02\x01\x01".to_vec();
    program.resize(32, 0);
    program.extend(64u64.to_le_bytes());
    program.resize(54, 0);
    program.extend([56, 4, 0, 0, 0].map(u16::to_le_bytes).concat());
    let headers = [
        (ProgramHeader::LOAD, READ, 0, 0, 0x700),
        (ProgramHeader::LOAD, READ, 0x2000, 0x2000, 0x300),
        (ProgramHeader::LOAD, READ | 2, 0x2dd0, 0x3dd0, 0x400),
        (ProgramHeader::RELRO, READ, 0x2dd0, 0x3dd0, 0x230),
    ];
    for (kind, flags, offset, address, size) in headers {
        program.extend([kind, flags].map(u32::to_le_bytes).concat());
        program.extend([offset, address, 0, size, size, 0].map(u64::to_le_bytes).concat());
    }
    let mapped = [(0x10, 0), (0x12, 2), (0x13, 2), (0x14, 3), (0x50, 0), (0x60, 2)];
    let mapped = mapped.map(|(page, offset)| CoreMapping { offset: offset << 12, ..mapping(page, "/drv") });
    let files = core::mapping_bytes(ElfForm { is_64: true, is_little: true }, 1 << 12, &mapped);
    let bytes = core_with_memory(&[0x10], &program, &[CoreNote { name: core::CORE, kind: core::FILE, bytes: &files }]);
    let core = Core::read(Box::new(InMemory::file(bytes)), &mut Budget::unlimited()).expect("a core");
    let regions = core.notes.regions(&mut Budget::unlimited()).expect("the regions");
    let rights: Vec<&str> = regions.iter().map(|region| region.permissions.letters()).collect();
    assert_eq!(rights, ["r--?", "r--?", "????", "rw-?", "????", "????"], "{regions:?}");
}

/// Each of very many mappings and segments is looked up among the others.
#[test]
fn a_core_of_a_large_process_is_read_in_time() {
    let form = ElfForm { is_64: true, is_little: true };
    let files: Vec<CoreMapping> = (0..50_000).map(|page| mapping(2 * page + 1, &format!("/{page}"))).collect();
    let files = core::mapping_bytes(form, 1 << 12, &files);
    let note = CoreNote { name: core::CORE, kind: core::FILE, bytes: &files };
    let segments: Vec<u64> = (0..60_000).map(|page| 2 * page + 1).collect();
    let bytes = core(&segments, &[note]);
    let core = Core::read(Box::new(InMemory::file(bytes)), &mut Budget::unlimited()).expect("a core");
    assert_eq!(core.notes.regions(&mut Budget::unlimited()).map(|regions| regions.len()), Ok(segments.len()));
}

/// A path may have a newline, in cores of gdb escaped, end in the kernel's mark, or be very long.
#[test]
fn regions_of_a_mapping_have_the_name_of_its_file() {
    let form = ElfForm { is_64: true, is_little: true };
    let long = format!("/{}", "x".repeat(100_000));
    let names = ["/a\nb", "/a\\012b", "/c (deleted)", "/c (deleted) (deleted)", "[heap]", "/d", &long];
    let mut files: Vec<CoreMapping> = (1..).zip(names).map(|(page, name)| mapping(page, name)).collect();
    let last = files.last_mut().expect("a mapping");
    last.range = AddressRange::of_length(last.range.start(), 0x1000_0000).expect("a range");
    let files = core::mapping_bytes(form, 1 << 12, &files);
    let note = CoreNote { name: core::CORE, kind: core::FILE, bytes: &files };
    let segments: Vec<u64> = (1..20_000).collect();
    let core = Core::read(Box::new(InMemory::file(core(&segments, &[note]))), &mut Budget::unlimited());
    let regions = core.expect("a core").notes.regions(&mut Budget::unlimited()).expect("the regions");
    let found: Vec<(&[u8], bool)> =
        regions.iter().map(|region| (region.name.as_bytes(), region.deleted)).take(6).collect();
    let expected: [(&[u8], bool); 6] = [
        (b"/a\nb", false),
        (b"/a\nb", false),
        (b"/c", true),
        (b"/c (deleted)", true),
        (b"[heap]", false),
        (b"/d", false),
    ];
    assert_eq!(found, expected);
    // Of a long name there is one copy.
    let of_long: Vec<*const u8> = regions.iter().skip(6).map(|region| region.name.as_bytes().as_ptr()).collect();
    assert_eq!(of_long.len(), segments.len() - 6);
    assert!(of_long.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn only_the_debug_file_of_a_build_is_opened() {
    use crate::source::live::installed_debug_file;
    for path in [
        "/etc/passwd",
        "/usr/lib/debug/.build-id/../../../../etc/passwd",
        "/usr/lib/debug/.build-id/aa/../../../../../etc/passwd",
        "/usr/lib/debug/.build-id/aa/bb.debug",
        "/proc/self/exe",
    ] {
        assert!(matches!(installed_debug_file(path.as_bytes()), Ok(None)), "{path}");
    }
}

/// Units that are 0, or no power of two where only one is possible.
#[test]
fn a_core_whose_notes_have_no_unit_is_damaged() {
    let form = ElfForm { is_64: true, is_little: true };
    let read = |note: CoreNote<'_>| {
        let bytes = core(&[2], &[note]);
        let read = Core::read(Box::new(InMemory::file(bytes)), &mut Budget::unlimited());
        read.map(|core| (core.notes.page.bytes(), core.notes.mappings.len())).map_err(|error| error.to_string())
    };
    let files = |unit: u64| {
        let mut bytes = core::mapping_bytes(form, 1 << 12, &[mapping(2, "/a"), mapping(3, "/a")]);
        bytes[8..16].copy_from_slice(&unit.to_le_bytes());
        read(CoreNote { name: core::CORE, kind: core::FILE, bytes: &bytes })
    };
    assert_eq!((files(4096), files(1)), (Ok((4096, 2)), Ok((4096, 2))));
    assert!(files(0).unwrap_err().contains("damaged: the note of its mapped files"));
    let page = |size: u64| {
        let bytes = [6, size, 0, 0].map(u64::to_le_bytes).concat();
        read(CoreNote { name: core::CORE, kind: core::AUXV, bytes: &bytes })
    };
    assert_eq!(page(64 << 10), Ok((64 << 10, 0)));
    for size in [0, 4095, 1 << 40] {
        assert!(page(size).unwrap_err().contains("damaged: the size of a page"), "{size}");
    }
    let huge = |size: u64| {
        let text = format!("huge-page-bytes {size}\n");
        read(CoreNote { name: core::PMDB, kind: core::MACHINE, bytes: text.as_bytes() })
    };
    assert_eq!(huge(2 << 20), Ok((4096, 0)));
    assert!(huge(0).unwrap_err().contains("damaged: the size of a huge page"));
}

/// Notes are no longer than the file, however many headers say where the same bytes are.
#[test]
fn headers_of_the_same_notes_are_no_more_notes_than_a_file_has() {
    const STATUS: usize = 336;
    let note = CoreNote { name: core::CORE, kind: core::PRSTATUS, bytes: &[0; STATUS] };
    let segments: Vec<u64> = (2..1000).collect();
    let mut bytes = core_with_memory(&segments, &[], &[note]);
    let first = bytes[64..64 + 56].to_vec();
    for at in (64 + 56..).step_by(56).take(segments.len()) {
        bytes[at..at + 56].copy_from_slice(&first);
    }
    let read = |bytes: &[u8]| Core::read(Box::new(InMemory::file(bytes.to_vec())), &mut Budget::unlimited());
    let threads = read(&bytes).expect("a core").notes.threads.len();
    assert!((2..=bytes.len() / STATUS).contains(&threads), "{threads} of {} bytes", bytes.len());
    // A note that claims all bytes that there can be is passed over, as any other that is too long.
    bytes[64 + 56 + 32..64 + 56 + 40].fill(0xff);
    assert_eq!(read(&bytes).expect("a core").notes.threads.len(), threads);
}

/// The end of a core that `ulimit -c` has cut is in no segment, whatever the headers say.
#[test]
fn a_core_that_is_cut_short_has_the_memory_that_is_left() {
    let memory = [7; 0x1000];
    let whole = core_with_memory(&[0x10], &memory, &[]);
    let stored = |bytes: &[u8]| {
        let core = Core::read(Box::new(InMemory::file(bytes.to_vec())), &mut Budget::unlimited()).expect("a core");
        core.stored().iter().map(|range| range.len()).sum::<u64>()
    };
    assert_eq!(stored(&whole), 0x1000);
    assert_eq!(stored(&whole[..whole.len() - 0x300]), 0xd00);
}
