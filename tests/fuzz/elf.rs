//! A small program with symbols and debug information, written field by field; and a target that has mapped it.

use pmdb::kernel::{AddressRange, Device, Name, Permissions, Region, VirtualAddress};
use pmdb::symbol::Symbols;
use pmdb::target::{Error, Modules, ReadAt, Result, Target, live};
use std::sync::Mutex;
use std::time::Duration;

/// Where the program's first byte is mapped.
const BASE: u64 = 0x5555_5555_4000;

/// An abbreviation: its code, its tag, whether it has children, its attributes with their forms.
fn abbreviation(into: &mut Vec<u8>, head: [u8; 3], attributes: &[[u8; 2]]) {
    into.extend(head);
    into.extend(attributes.iter().flatten());
    into.extend([0, 0]);
}

/// `.debug_abbrev`: unit, function, inlined function, abstract function.
fn abbreviations() -> Vec<u8> {
    let mut bytes = Vec::new();
    // name, comp_dir, low_pc, high_pc (data4), stmt_list.
    let unit = [
        [0x03, 0x08],
        [0x1b, 0x08],
        [0x11, 0x01],
        [0x12, 0x06],
        [0x10, 0x17],
    ];
    abbreviation(&mut bytes, [1, 0x11, 1], &unit);
    abbreviation(
        &mut bytes,
        [2, 0x2e, 1],
        &[[0x03, 0x08], [0x11, 0x01], [0x12, 0x06]],
    );
    // abstract_origin (ref4), low_pc, high_pc, call_file, call_line.
    let inlined = [
        [0x31, 0x13],
        [0x11, 0x01],
        [0x12, 0x06],
        [0x58, 0x0b],
        [0x59, 0x0b],
    ];
    abbreviation(&mut bytes, [3, 0x1d, 1], &inlined);
    // name, specification (ref4).
    abbreviation(&mut bytes, [4, 0x2e, 0], &[[0x03, 0x08], [0x47, 0x13]]);
    bytes.push(0);
    bytes
}

/// `.debug_info`: a function at 0x1000 with two functions inlined into it, each within the other.
fn information() -> Vec<u8> {
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
    place(&mut bytes, 0x1000, 0x100);
    bytes.extend(0u32.to_le_bytes());
    let origin = bytes.len() as u32;
    bytes.push(4);
    bytes.extend(b"_ZN6shapes4areaEi\0");
    bytes.extend(origin.to_le_bytes());
    bytes.push(2);
    bytes.extend(b"main\0");
    place(&mut bytes, 0x1000, 0x80);
    for (low, size) in [(0x1010, 0x20), (0x1014, 8)] {
        bytes.push(3);
        bytes.extend(origin.to_le_bytes());
        place(&mut bytes, low, size);
        bytes.extend([1, 12]);
    }
    bytes.extend([0, 0, 0, 0]);
    let length = bytes.len() as u32 - 4;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// `.debug_line`: rows from 0x1000 to 0x1100.
fn rows() -> Vec<u8> {
    let mut header = vec![1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];
    header.extend(b"include\0\0server.c\0\0\0\0shape.h\0\x01\0\0\0");
    let mut bytes = vec![0; 4];
    bytes.extend(4u16.to_le_bytes());
    bytes.extend((header.len() as u32).to_le_bytes());
    bytes.extend(header);
    bytes.extend([0, 9, 2]);
    bytes.extend(0x1000u64.to_le_bytes());
    // Special opcodes, a change of file, a column, an advance, the end of the sequence.
    bytes.extend([
        0x4b, 0x83, 4, 2, 5, 9, 0x91, 4, 1, 0xf3, 3, 0x7f, 1, 2, 0xa0, 1, 0, 1, 1,
    ]);
    let length = bytes.len() as u32 - 4;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes
}

fn symbols() -> (Vec<u8>, Vec<u8>) {
    let mut names = vec![0];
    let mut table = vec![0; 24];
    for (name, value, size, kind) in [
        ("main", 0x1000u64, 0x80u64, 2),
        ("_ZN6shapes4areaEi", 0x1080, 0x20, 2),
        ("data@@V1", 0x10c0, 0x10, 1),
        ("_RNvCskwGfYPst2Cb_3foo16example_function", 0x10d0, 0, 2),
    ] {
        table.extend((names.len() as u32).to_le_bytes());
        names.extend(name.bytes().chain([0]));
        table.extend([0x10 | kind, 0]);
        table.extend(1u16.to_le_bytes());
        table.extend(value.to_le_bytes());
        table.extend(size.to_le_bytes());
    }
    (table, names)
}

/// Name, kind, flags, link, size of an entry, bytes.
type Section = (&'static str, u32, u64, u32, u64, Vec<u8>);

/// The whole file: headers, one load segment, the sections; `.debug_info` is said to be compressed if `compressed` is given.
fn program(compressed: bool) -> Vec<u8> {
    let (table, names) = symbols();
    let information = match compressed {
        false => information(),
        true => {
            let plain = information();
            let mut bytes = [1u32.to_le_bytes(), [0; 4]].concat();
            bytes.extend((plain.len() as u64).to_le_bytes());
            bytes.extend(1u64.to_le_bytes());
            // zlib: one stored block.
            bytes.extend([0x78, 1, 1]);
            bytes.extend((plain.len() as u16).to_le_bytes());
            bytes.extend((!(plain.len() as u16)).to_le_bytes());
            bytes.extend(&plain);
            bytes.extend(adler(&plain).to_be_bytes());
            bytes
        }
    };
    let sections: [Section; 9] = [
        (".text", 1, 6, 0, 0, vec![0x90; 0x100]),
        (".symtab", 2, 0, 3, 24, table),
        (".strtab", 3, 0, 0, 0, names),
        (".debug_abbrev", 1, 0, 0, 0, abbreviations()),
        (
            ".debug_info",
            1,
            if compressed { 0x800 } else { 0 },
            0,
            0,
            information,
        ),
        (".debug_line", 1, 0, 0, 0, rows()),
        (
            ".gnu_debuglink",
            1,
            0,
            0,
            0,
            b"server.debug\0\0\0\0\x01\x02\x03\x04".to_vec(),
        ),
        (
            ".note.gnu.build-id",
            7,
            0,
            0,
            0,
            b"\x04\0\0\0\x04\0\0\0\x03\0\0\0GNU\0\xab\xcd\xef\x01".to_vec(),
        ),
        (".shstrtab", 3, 0, 0, 0, Vec::new()),
    ];
    let mut section_names = vec![0];
    let mut body = vec![0; 120];
    let mut headers = vec![0; 64];
    let last = sections.len() - 1;
    for (number, (name, kind, flags, link, entry, bytes)) in sections.into_iter().enumerate() {
        let at = section_names.len() as u32;
        section_names.extend(name.bytes().chain([0]));
        let bytes = if number == last {
            section_names.clone()
        } else {
            bytes
        };
        while !body.len().is_multiple_of(16) {
            body.push(0);
        }
        headers.extend([at.to_le_bytes(), kind.to_le_bytes()].concat());
        let address: u64 = if number == 0 { 0x1000 } else { 0 };
        for word in [flags, address, body.len() as u64, bytes.len() as u64] {
            headers.extend(word.to_le_bytes());
        }
        headers.extend([link.to_le_bytes(), [0; 4]].concat());
        headers.extend([1u64.to_le_bytes(), entry.to_le_bytes()].concat());
        body.extend(bytes);
    }
    let table = body.len() as u64;
    body.extend(headers);
    let mut head = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    head.extend([3, 0, 62, 0, 1, 0, 0, 0]);
    head.extend([0x1000u64, 64, table].map(u64::to_le_bytes).concat());
    head.extend([0u8; 4]);
    head.extend([64u16, 56, 1, 64, 10, 9].map(u16::to_le_bytes).concat());
    // One load segment: the text, wherever it is in the file, at 0x1000.
    head.extend([1u32.to_le_bytes(), 5u32.to_le_bytes()].concat());
    let segment = [128u64, 0x1080 - 0x80, 0x1000, 0x100, 0x100, 0x1000];
    head.extend(segment.map(u64::to_le_bytes).concat());
    body[..120].copy_from_slice(&head);
    body
}

fn adler(bytes: &[u8]) -> u32 {
    let (mut low, mut high) = (1u32, 0u32);
    for &byte in bytes {
        low = (low + u32::from(byte)) % 65521;
        high = (high + low) % 65521;
    }
    high << 16 | low
}

/// Two programs, one with compressed debug information.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![program(false), program(true)]
}

struct Bytes(Vec<u8>);

impl ReadAt for Bytes {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        let mut rest = self.0.get(at..).unwrap_or_default();
        std::io::Read::read(&mut rest, into)
    }
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
    fn fingerprint(&self) -> [u64; 4] {
        [0, 0, self.len(), 0]
    }
}

/// Whatever is opened has these bytes.
struct OneFile(Vec<u8>);

impl Modules for OneFile {
    fn open(&self, _: &Region) -> Result<Box<dyn ReadAt>> {
        Ok(Box::new(Bytes(self.0.clone())))
    }
    fn at_path(&self, path: &[u8]) -> Result<Option<Box<dyn ReadAt>>> {
        match path.ends_with(b".debug") {
            true => Ok(Some(Box::new(Bytes(self.0.clone())))),
            false => Ok(None),
        }
    }
    fn image(&self, region: &Region) -> Result<Box<dyn ReadAt>> {
        Err(Error::NotAvailable {
            what: format!("no image of {}", region.range),
        })
    }
}

fn region(start: u64, length: u64, offset: u64, execute: bool) -> Region {
    let at = VirtualAddress::new(start);
    Region {
        range: AddressRange::new(at, VirtualAddress::new(start + length)).expect("a range"),
        permissions: Permissions {
            read: true,
            write: false,
            execute,
            shared: false,
        },
        offset,
        device: Device { major: 8, minor: 1 },
        inode: 77,
        name: Name::from("/usr/bin/server"),
        deleted: false,
    }
}

/// This process, with other files behind its regions: only these are asked.
static TARGET: Mutex<Option<Target>> = Mutex::new(None);

/// Asks everything that can be asked of a program with these bytes; whether a line was found.
fn ask(bytes: &[u8]) -> bool {
    let mut kept = TARGET
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let target =
        kept.get_or_insert_with(|| live::attach(std::process::id()).expect("this process"));
    target.modules = Box::new(OneFile(bytes.to_vec()));
    let symbols = Symbols::default();
    let regions = [
        region(BASE, 0x1000, 0, true),
        region(BASE + 0x1000, 0x1000, 0, true),
    ];
    let names = symbols.over(target, &regions);
    let mut found = false;
    for offset in [0, 0x1000, 0x1016, 0x1018, 0x1085, 0x10d4, 0x1fff] {
        let address = VirtualAddress::new(BASE + offset);
        if let Some(symbol) = names.at(address) {
            _ = symbol.name().to_string();
        }
        _ = names.section_at(address);
        _ = names.file_address(address);
        let line = names
            .line_at(address, &mut || Ok(()))
            .expect("nobody stops it");
        for frame in &line.frames {
            found |= frame.line.is_some();
            _ = (frame.name(), frame.file.as_ref().map(Name::to_string));
        }
        _ = line.missing.map(|why| why.to_string());
    }
    for file in ["server.c", "shape.h", "/src/server.c"] {
        let lines = names.find_line(file, 3, &mut || Ok(()));
        _ = lines.expect("nobody stops it");
    }
    _ = names.find(None, "shapes::area");
    _ = names.find(Some("server"), "data@V1");
    _ = names.names(None, "", 100, Duration::from_secs(1));
    for module in names.modules() {
        _ = names.reason(module).map(|why| why.to_string());
    }
    found
}

pub fn feed(bytes: &[u8]) {
    ask(bytes);
}

/// The seeds are sound: otherwise nothing behind the first check would be reached.
pub fn sound_seeds() -> Vec<Vec<u8>> {
    let seeds = seeds();
    for (number, seed) in seeds.iter().enumerate() {
        assert!(ask(seed), "no line is found in seed {number}");
    }
    seeds
}
