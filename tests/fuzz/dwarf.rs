//! Debug information in two versions: a function at [`TEXT`] with two functions inlined into it, one within the other.

use crate::program::{Section, TEXT};

/// An abbreviation: its code, its tag, whether it has children, its attributes with their forms.
fn abbreviation(into: &mut Vec<u8>, head: [u8; 3], attributes: &[u8]) {
    into.extend(head);
    into.extend(attributes);
    into.extend([0, 0]);
}

/// Writes the length of the rest into the first four bytes.
fn measured(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes.len() as u32 - 4;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// `.debug_abbrev` of version 4: unit, function, inlined function, abstract function.
fn abbreviations_4() -> Vec<u8> {
    let mut bytes = Vec::new();
    // name, comp_dir, low_pc, high_pc (data4), stmt_list.
    let unit = [0x03, 8, 0x1b, 8, 0x11, 1, 0x12, 6, 0x10, 0x17];
    abbreviation(&mut bytes, [1, 0x11, 1], &unit);
    abbreviation(&mut bytes, [2, 0x2e, 1], &[0x03, 8, 0x11, 1, 0x12, 6]);
    // abstract_origin (ref4), low_pc, high_pc, call_file, call_line.
    let inlined = [0x31, 0x13, 0x11, 1, 0x12, 6, 0x58, 0x0b, 0x59, 0x0b];
    abbreviation(&mut bytes, [3, 0x1d, 1], &inlined);
    // name, specification (ref4).
    abbreviation(&mut bytes, [4, 0x2e, 0], &[0x03, 8, 0x47, 0x13]);
    bytes.push(0);
    bytes
}

fn information_4() -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend(4u16.to_le_bytes());
    bytes.extend(0u32.to_le_bytes());
    bytes.push(8);
    let place = |bytes: &mut Vec<u8>, low: u64, size: u32| {
        bytes.extend(low.to_le_bytes());
        bytes.extend(size.to_le_bytes());
    };
    bytes.push(1);
    bytes.extend(b"server.c\0/src\0");
    place(&mut bytes, TEXT, 0x100);
    bytes.extend(0u32.to_le_bytes());
    let origin = bytes.len() as u32;
    bytes.push(4);
    bytes.extend(b"_ZN6shapes4areaEi\0");
    bytes.extend(origin.to_le_bytes());
    bytes.push(2);
    bytes.extend(b"main\0");
    place(&mut bytes, TEXT, 0x80);
    for (low, size) in [(TEXT + 0x10, 0x20), (TEXT + 0x14, 8)] {
        bytes.push(3);
        bytes.extend(origin.to_le_bytes());
        place(&mut bytes, low, size);
        bytes.extend([1, 12]);
    }
    bytes.extend([0, 0, 0, 0]);
    measured(bytes)
}

/// The start of every line program here: the sizes of its operations.
const OPERATIONS: [u8; 18] = [1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];

/// The operations themselves: an address, special ones, a change of file, a column, an advance, the end of the
/// sequence.
fn operations() -> Vec<u8> {
    let mut bytes = vec![0, 9, 2];
    bytes.extend(TEXT.to_le_bytes());
    bytes.extend([0x4b, 0x83, 4, 2, 5, 9, 0x91, 4, 1, 0xf3, 3, 0x7f, 1, 2, 0xa0, 1, 0, 1, 1]);
    bytes
}

fn rows_4() -> Vec<u8> {
    let mut header = OPERATIONS.to_vec();
    header.extend(b"include\0\0server.c\0\0\0\0shape.h\0\x01\0\0\0");
    let mut bytes = vec![0; 4];
    bytes.extend(4u16.to_le_bytes());
    bytes.extend((header.len() as u32).to_le_bytes());
    bytes.extend(header);
    bytes.extend(operations());
    measured(bytes)
}

/// Version 4; `pack` compresses the sections, or not.
pub fn version_4(pack: fn(&'static str, Vec<u8>) -> Section) -> Vec<Section> {
    vec![pack(".debug_abbrev", abbreviations_4()), pack(".debug_info", information_4()), pack(".debug_line", rows_4())]
}

fn abbreviations_5() -> Vec<u8> {
    let mut bytes = Vec::new();
    // name (strx1), comp_dir (line_strp), stmt_list, str_offsets_base, addr_base, rnglists_base, low_pc, ranges
    // (rnglistx).
    let unit = [0x03, 0x25, 0x1b, 0x1f, 0x10, 0x17, 0x72, 0x17, 0x73, 0x17, 0x74, 0x17, 0x11, 1, 0x55, 0x23];
    abbreviation(&mut bytes, [1, 0x11, 1], &unit);
    // name (strp), low_pc (addrx), high_pc (udata).
    let function = [0x03, 0x0e, 0x11, 0x1b, 0x12, 0x0f];
    abbreviation(&mut bytes, [2, 0x2e, 1], &function);
    // abstract_origin (ref4), ranges (rnglistx), call_file (data1), call_line (the same constant for all).
    let inlined = [0x31, 0x13, 0x55, 0x23, 0x58, 0x0b, 0x59, 0x21, 12];
    abbreviation(&mut bytes, [3, 0x1d, 1], &inlined);
    // linkage_name (strx1), inline, a forward reference (ref_udata).
    let abstracted = [0x6e, 0x25, 0x20, 0x0b, 0x47, 0x15];
    abbreviation(&mut bytes, [4, 0x2e, 0], &abstracted);
    bytes.push(0);
    bytes
}

fn information_5() -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend(5u16.to_le_bytes());
    bytes.extend([1, 8]);
    bytes.extend(0u32.to_le_bytes());
    bytes.extend([1, 0]);
    // comp_dir, stmt_list, and where three tables begin behind their headers.
    bytes.extend([0u32, 0, 8, 8, 12].map(u32::to_le_bytes).concat());
    bytes.extend(0u64.to_le_bytes());
    bytes.push(0);
    let origin = bytes.len() as u32;
    bytes.extend([4, 1, 1, origin as u8]);
    bytes.push(2);
    bytes.extend(9u32.to_le_bytes());
    bytes.extend([0, 0x80, 1]);
    for list in [1, 2] {
        bytes.push(3);
        bytes.extend(origin.to_le_bytes());
        bytes.extend([list, 1]);
    }
    bytes.extend([0, 0, 0, 0]);
    measured(bytes)
}

/// Offsets into `.debug_str`, behind a header of eight bytes.
fn offsets() -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, 5, 0, 0, 0];
    bytes.extend([0u32, 14].map(u32::to_le_bytes).concat());
    measured(bytes)
}

fn addresses() -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, 5, 0, 8, 0];
    bytes.extend([TEXT, TEXT + 0x14].map(u64::to_le_bytes).concat());
    measured(bytes)
}

/// Three lists, reached by their offsets: begin and length; a base and offsets; an address by its number, and its
/// length.
fn ranges() -> Vec<u8> {
    let mut lists: Vec<u8> = Vec::new();
    let mut places: Vec<u32> = Vec::new();
    let first: Vec<u8> = [&[7][..], &TEXT.to_le_bytes(), &[0x80, 2, 0]].concat();
    for list in [&first[..], &[1, 0, 4, 0x10, 0x30, 0], &[3, 1, 8, 0]] {
        places.push(12 + lists.len() as u32);
        lists.extend(list);
    }
    let mut bytes = vec![0, 0, 0, 0, 5, 0, 8, 0, 3, 0, 0, 0];
    bytes.extend(places.into_iter().flat_map(u32::to_le_bytes));
    bytes.extend(lists);
    measured(bytes)
}

fn rows_5() -> Vec<u8> {
    let mut header = OPERATIONS.to_vec();
    // One folder, each told by a place in `.debug_line_str`; two files, each with the number of its folder.
    header.extend([1, 1, 0x1f, 1, 0, 0, 0, 0]);
    header.extend([2, 1, 0x1f, 2, 0x0b, 2, 5, 0, 0, 0, 0, 14, 0, 0, 0, 0]);
    let mut bytes = vec![0; 4];
    bytes.extend(5u16.to_le_bytes());
    bytes.extend([8, 0]);
    bytes.extend((header.len() as u32).to_le_bytes());
    bytes.extend(header);
    bytes.extend(operations());
    // The files are counted from 0: the second one is meant.
    let change = bytes.len() - 16;
    bytes[change] = 1;
    measured(bytes)
}

/// Version 5, with its tables of strings, addresses and ranges.
pub fn version_5() -> Vec<Section> {
    let new = |name, bytes| Section::plain(name, bytes);
    vec![
        new(".debug_abbrev", abbreviations_5()),
        new(".debug_info", information_5()),
        new(".debug_line", rows_5()),
        new(".debug_line_str", b"/src\0server.c\0shape.h\0".to_vec()),
        new(".debug_str", b"server.c\0main\0_ZN6shapes4areaEi\0".to_vec()),
        new(".debug_str_offsets", offsets()),
        new(".debug_addr", addresses()),
        new(".debug_rnglists", ranges()),
    ]
}
