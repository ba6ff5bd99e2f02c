//! Small programs, written field by field. Their load bias is such that addresses equal file offsets.

use crate::dwarf;
use std::io::Write;

/// Where the code begins.
pub const TEXT: u64 = 0x200;
/// The slot of a stub, and the program's copy of a library's variable: both in a load segment.
const SLOT: u64 = TEXT + 0x110;
const COPIED: u64 = TEXT + 0xc0;

/// A section and the fields of its header. A loaded section has its file offset as its address.
pub struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    link: u32,
    entry: u64,
    alignment: u64,
    bytes: Vec<u8>,
}

const LOADED: u64 = 2;
const COMPRESSED: u64 = 0x800;

impl Section {
    /// A section without special fields.
    pub fn plain(name: &'static str, bytes: Vec<u8>) -> Section {
        Section { name, kind: 1, flags: 0, link: 0, entry: 0, alignment: 1, bytes }
    }

    fn loaded(name: &'static str, kind: u32, link: u32, entry: u64, bytes: Vec<u8>) -> Section {
        Section { kind, flags: LOADED, link, entry, alignment: 8, ..Section::plain(name, bytes) }
    }

    fn compressed(name: &'static str, method: u32, size: usize, packed: Vec<u8>) -> Section {
        let mut bytes = [method.to_le_bytes(), [0; 4]].concat();
        bytes.extend((size as u64).to_le_bytes());
        bytes.extend(1u64.to_le_bytes());
        bytes.extend(packed);
        Section { flags: COMPRESSED, ..Section::plain(name, bytes) }
    }
}

fn zlib(plain: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(plain).expect("memory takes it");
    packer.finish().expect("memory takes it")
}

fn with_zlib(name: &'static str, plain: Vec<u8>) -> Section {
    Section::compressed(name, 1, plain.len(), zlib(&plain))
}

fn with_zstd(name: &'static str, plain: Vec<u8>) -> Section {
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let packed = ruzstd::encoding::compress_to_vec(&plain[..], level);
    Section::compressed(name, 2, plain.len(), packed)
}

/// Compressed as binutils did before ELF defined compressed sections.
fn with_old_zlib(name: &'static str, plain: Vec<u8>) -> Section {
    let old = match name {
        ".debug_info" => ".zdebug_info",
        ".debug_line" => ".zdebug_line",
        _ => ".zdebug_abbrev",
    };
    let size = (plain.len() as u64).to_be_bytes();
    let bytes = [b"ZLIB".to_vec(), size.to_vec(), zlib(&plain)].concat();
    Section::plain(old, bytes)
}

/// A symbol table and its names: name, address, size, binding and kind, section.
fn symbols(all: &[(&str, u64, u64, u8, u16)]) -> (Vec<u8>, Vec<u8>) {
    let mut names = vec![0];
    let mut table = vec![0; 24];
    for &(name, value, size, kind, section) in all {
        table.extend((names.len() as u32).to_le_bytes());
        names.extend(name.bytes().chain([0]));
        table.extend([kind, 0]);
        table.extend(section.to_le_bytes());
        table.extend(value.to_le_bytes());
        table.extend(size.to_le_bytes());
    }
    (table, names)
}

fn text() -> Section {
    Section { flags: 6, ..Section::loaded(".text", 1, 0, 0, vec![0x90; 0x100]) }
}

/// `.symtab` and `.strtab`, to be the third and fourth section of the file.
fn table() -> [Section; 2] {
    let (table, names) = symbols(&[
        ("main", TEXT, 0x80, 0x12, 1),
        ("_ZN6shapes4areaEi", TEXT + 0x80, 0x20, 0x12, 1),
        ("data@@V1", COPIED, 0x10, 0x11, 1),
        ("without_size", TEXT + 0xd0, 0, 2, 1),
        ("_RNvCskwGfYPst2Cb_3foo16example_function", TEXT + 0xd0, 0, 0x12, 1),
        ("chosen", TEXT + 0xe0, 8, 0x1a, 1),
    ]);
    let symbols = Section { kind: 2, link: 4, entry: 24, ..Section::plain(".symtab", table) };
    let names = Section { kind: 3, ..Section::plain(".strtab", names) };
    [symbols, names]
}

fn build_id() -> Section {
    let note = b"\x04\0\0\0\x04\0\0\0\x03\0\0\0GNU\0\xab\xcd\xef\x01";
    Section::loaded(".note.gnu.build-id", 7, 0, 0, note.to_vec())
}

fn debug_link() -> Section {
    let link = b"server.debug\0\0\0\0\x01\x02\x03\x04";
    Section::plain(".gnu_debuglink", link.to_vec())
}

/// The sections for the dynamic linker, to be the second and following ones: symbols, names, versions, defined
/// versions, a hash table, relocations.
fn dynamic() -> Vec<Section> {
    let (table, mut names) =
        symbols(&[("malloc", 0, 0, 0x12, 0), ("environ", COPIED, 8, 0x11, 1), ("clock", TEXT + 0x40, 0x20, 0x12, 1)]);
    let version = names.len() as u32;
    names.extend(b"V_1.2\0");
    // Version 1, number 2, one name, its hash, the offset of the name's record, and no next entry.
    let mut defined = [1u16, 0, 2, 1].map(u16::to_le_bytes).concat();
    defined.extend([0u32, 20, 0, version, 0].map(u32::to_le_bytes).concat());
    let hash = [1u32, 4, 1, 0, 2, 3, 0].map(u32::to_le_bytes).concat();
    let relocation = |at: u64, symbol: u64, kind: u64| [at, symbol << 32 | kind, 0].map(u64::to_le_bytes).concat();
    let halves = [0u16, 1, 2, 0x8002].map(u16::to_le_bytes).concat();
    let jump = (SLOT as i32 - (TEXT + 0x106) as i32).to_le_bytes();
    let stub = [&[0xff, 0x25][..], &jump, &[0x90; 10]].concat();
    vec![
        Section::loaded(".plt", 1, 0, 16, stub),
        Section::loaded(".got.plt", 1, 0, 8, vec![0; 8]),
        Section::loaded(".dynsym", 11, 5, 24, table),
        Section::loaded(".dynstr", 3, 0, 0, names),
        Section::loaded(".gnu.version", 0x6fff_ffff, 4, 2, halves),
        Section::loaded(".gnu.version_d", 0x6fff_fffd, 5, 0, defined),
        Section::loaded(".hash", 5, 4, 4, hash),
        Section::loaded(".rela.plt", 4, 4, 24, relocation(SLOT, 1, 7)),
        Section::loaded(".rela.dyn", 4, 4, 24, relocation(COPIED, 2, 5)),
    ]
}

/// The whole file. Without section headers it has a dynamic segment for its tables.
fn program(sections: Vec<Section>, has_headers: bool) -> Vec<u8> {
    let mut names = vec![0];
    let mut body = vec![0; TEXT as usize];
    let mut headers = vec![0; 64];
    let mut places = Vec::new();
    let count = sections.len() as u16 + 2;
    let last = Section { kind: 3, ..Section::plain(".shstrtab", Vec::new()) };
    for section in sections.into_iter().chain([last]) {
        let name = names.len() as u32;
        names.extend(section.name.bytes().chain([0]));
        let bytes = match section.name {
            ".shstrtab" => names.clone(),
            _ => section.bytes,
        };
        // Tables are unaligned on purpose, except those that are mapped.
        while !body.len().is_multiple_of(section.alignment as usize) {
            body.push(0);
        }
        let offset = body.len() as u64;
        places.push((section.name, offset, bytes.len() as u64));
        headers.extend([name.to_le_bytes(), section.kind.to_le_bytes()].concat());
        let address = if section.flags & LOADED != 0 { offset } else { 0 };
        for word in [section.flags, address, offset, bytes.len() as u64] {
            headers.extend(word.to_le_bytes());
        }
        headers.extend([section.link.to_le_bytes(), [0; 4]].concat());
        headers.extend([section.alignment, section.entry].map(u64::to_le_bytes).concat());
        body.extend(bytes);
    }
    let place = |name: &str| places.iter().find(|place| place.0 == name);
    let mut tags = Vec::new();
    for (tag, name) in [(6u64, ".dynsym"), (5, ".dynstr"), (4, ".hash"), (0x6fff_fff0, ".gnu.version")] {
        if let Some(&(_, offset, size)) = place(name) {
            tags.extend([tag, offset]);
            if tag == 5 {
                tags.extend([10, size]);
            }
        }
    }
    tags.extend([0, 0]);
    let dynamic = (body.len() as u64, tags.len() as u64 * 8);
    body.extend(tags.into_iter().flat_map(u64::to_le_bytes));
    let table = body.len() as u64;
    if has_headers {
        body.extend(headers);
    }
    let mut head = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    head.extend([3, 0, 62, 0, 1, 0, 0, 0]);
    let table = if has_headers { table } else { 0 };
    head.extend([TEXT, 64, table].map(u64::to_le_bytes).concat());
    head.extend([0u8; 4]);
    let counts = if has_headers { [64, count, count - 1] } else { [0; 3] };
    head.extend([64u16, 56, 3].map(u16::to_le_bytes).concat());
    head.extend(counts.map(u16::to_le_bytes).concat());
    let note = place(".note.gnu.build-id").map_or((0, 0), |place| (place.1, place.2));
    let whole = (0, body.len() as u64);
    for (kind, flags, (offset, size)) in [(1u32, 5u32, whole), (2, 6, dynamic), (4, 4, note)] {
        head.extend([kind.to_le_bytes(), flags.to_le_bytes()].concat());
        let words = [offset, offset, offset, size, size, 8];
        head.extend(words.map(u64::to_le_bytes).concat());
    }
    body[..head.len()].copy_from_slice(&head);
    body
}

/// A file in a section of another: `.gnu_debugdata`.
fn within() -> Section {
    let small = program([text(), build_id()].into_iter().chain(table()).collect(), true);
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut packer = lzma_rust2::XzWriter::new(Vec::new(), options).expect("sound options");
    packer.write_all(&small).expect("memory takes it");
    Section::plain(".gnu_debugdata", packer.finish().expect("memory takes it"))
}

/// Programs of every build: a description, and whether they have lines.
pub fn all() -> Vec<(&'static str, bool, Vec<u8>)> {
    let packed = |information: Vec<Section>| {
        let first = [text(), build_id()].into_iter().chain(table());
        program(first.chain(information).chain([debug_link()]).collect(), true)
    };
    let linked = |more: Vec<Section>, has_headers| {
        let first = [text()].into_iter().chain(dynamic());
        program(first.chain([build_id()]).chain(more).collect(), has_headers)
    };
    vec![
        ("plain", true, packed(dwarf::version_4(Section::plain))),
        ("zlib", true, packed(dwarf::version_4(with_zlib))),
        ("zstd", true, packed(dwarf::version_4(with_zstd))),
        ("old zlib", true, packed(dwarf::version_4(with_old_zlib))),
        ("version 5", true, packed(dwarf::version_5())),
        ("linked", false, linked(vec![debug_link()], true)),
        ("small table", false, linked(vec![within()], true)),
        ("without section headers, as a vdso", false, linked(Vec::new(), false)),
    ]
}
