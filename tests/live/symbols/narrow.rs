//! A 32-bit program on a 64-bit kernel. Compilers that make one are rarely installed, so it is written byte by byte.

use super::super::answers::program;
use super::super::support::skip;
use super::super::target::Target;
use crate::executable;
use serde_json::Value;
use std::process::{Command, Stdio};

const CODE: u32 = 0x0804_8000;
const DATA: u32 = 0x0804_9000;
/// Where the code begins: behind the headers.
const ENTRY: u32 = CODE + 0x100;
/// In the page of data: a text, two words, and a pointer to them.
const TEXT: u32 = DATA;
const WORDS: u32 = DATA + 0x10;
const POINTER: u32 = DATA + 0x20;
const READY: &[u8] = b"ready\n";

/// Says that it is ready, waits for a byte, and ends.
fn code() -> Vec<u8> {
    let set = |register: u8, value: u32| [&[0xb8 + register][..], &value.to_le_bytes()].concat();
    let (eax, ecx, edx, ebx) = (0, 1, 2, 3);
    let call = |number, first, second, third| {
        let int_0x80 = vec![0xcd, 0x80];
        let arguments = [set(ebx, first), set(ecx, second), set(edx, third)];
        [arguments.concat(), set(eax, number), int_0x80].concat()
    };
    let (write, read, exit) = (4, 3, 1);
    [call(write, 1, TEXT, READY.len() as u32), call(read, 0, DATA + 0x40, 1), call(exit, 0, 0, 0)].concat()
}

/// The whole file: headers and code, a page of data, and after them the parts that only debuggers read.
fn file() -> Vec<u8> {
    let words = |all: &[u32]| -> Vec<u8> { all.iter().flat_map(|one| one.to_le_bytes()).collect() };
    let code = code();
    let data = {
        let mut data = READY.to_vec();
        data.resize(0x10, 0);
        data.extend(words(&[0xdead_beef, 0x1234_5678, 0, 0, WORDS]));
        data.resize(0x80, 0);
        data
    };
    let mut names = vec![0];
    let mut table = vec![0; 16];
    for (name, address, size, kind, section) in [
        ("narrow_start", ENTRY, code.len() as u32, 2, 1u16),
        ("narrow_words", WORDS, 8, 1, 2),
        ("narrow_pointer", POINTER, 4, 1, 2),
    ] {
        table.extend(words(&[names.len() as u32, address, size]));
        table.extend([0x10 | kind, 0]);
        table.extend(section.to_le_bytes());
        names.extend(name.bytes().chain([0]));
    }
    let section_names = b"\0.text\0.data\0.symtab\0.strtab\0.shstrtab\0";
    let at_table = 0x1080;
    let at_names = at_table + table.len() as u32;
    let at_section_names = at_names + names.len() as u32;
    let at_sections = (at_section_names + section_names.len() as u32).next_multiple_of(4);

    let mut file = b"\x7fELF\x01\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([2u16, 3].map(u16::to_le_bytes).concat());
    file.extend(words(&[1, ENTRY, 52, at_sections, 0]));
    file.extend([52u16, 32, 2, 40, 6, 5].map(u16::to_le_bytes).concat());
    let in_code = 0x100 + code.len() as u32;
    file.extend(words(&[1, 0, CODE, CODE, in_code, in_code, 5, 0x1000]));
    file.extend(words(&[1, 0x1000, DATA, DATA, 0x80, 0x80, 6, 0x1000]));
    file.resize(0x100, 0);
    file.extend(&code);
    file.resize(0x1000, 0);
    file.extend([&data[..], &table, &names, section_names].concat());
    file.resize(at_sections as usize, 0);
    file.extend(words(&[0; 10]));
    // Name, kind, flags, address, offset, size, link, info, alignment, size of an entry.
    for section in [
        [1, 1, 6, ENTRY, 0x100, code.len() as u32, 0, 0, 4, 0],
        [7, 1, 3, DATA, 0x1000, 0x80, 0, 0, 4, 0],
        [13, 2, 0, 0, at_table, table.len() as u32, 4, 1, 4, 16],
        [21, 3, 0, 0, at_names, names.len() as u32, 0, 0, 1, 0],
        [29, 3, 0, 0, at_section_names, section_names.len() as u32, 0, 0, 1, 0],
    ] {
        file.extend(words(&section));
    }
    file
}

pub(super) fn names_of_a_32_bit_program() {
    let test = "symbols::names_of_a_32_bit_program";
    if !cfg!(target_arch = "x86_64") {
        return skip(test, "its code is that of x86");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("narrow");
    executable::write(&path, file());
    let tried = Command::new(&path).stdin(Stdio::null()).output();
    if !tried.is_ok_and(|output| output.stdout == READY) {
        return skip(test, "this kernel runs no 32-bit programs");
    }
    let mut target = Target::spawn(&mut Command::new(&path));
    assert_eq!(target.line(), "ready");
    let lines = [
        format!("info symbol {:#x}", ENTRY + 5),
        "info address narrow_words".to_owned(),
        "x/2wx narrow_words".to_owned(),
        "x/a narrow_pointer".to_owned(),
        "telescope narrow_pointer 1".to_owned(),
        "region narrow_words".to_owned(),
        "print *narrow_pointer".to_owned(),
        "info modules".to_owned(),
    ];
    let said = program(&[], target.pid(), true, &lines);
    let records = said.lines().map(serde_json::from_str::<Value>);
    let records: Vec<Value> = records.map(|one| one.expect("a record")).collect();
    let of = |kind: &str| -> Vec<&Value> {
        let records = records.iter();
        records.filter(|one| one["type"] == kind).collect()
    };
    let hexadecimal = |number: u32| Value::from(format!("{number:#x}"));
    let symbols = of("symbol");
    assert_eq!(symbols[0]["name"], "narrow_start", "{said}");
    assert_eq!(symbols[0]["offset"], 5);
    assert_eq!(symbols[1]["address"], hexadecimal(WORDS));
    assert_eq!(symbols[1]["size"], 8);
    let read = of("memory");
    assert_eq!(read[0]["values"], serde_json::json!(["0xdeadbeef", "0x12345678"]));
    // An address is four bytes wide, here and wherever pointers are followed.
    assert_eq!((&read[1]["length"], &read[1]["unit"]), (&4.into(), &4.into()));
    assert_eq!(read[1]["values"], serde_json::json!([hexadecimal(WORDS)]));
    let telescope = of("telescope")[0];
    assert_eq!(telescope["value"], hexadecimal(WORDS), "{telescope}");
    assert_eq!(telescope["chain"][0]["symbol"]["name"], "narrow_words");
    assert_eq!(telescope["chain"][0]["value"], "0xdeadbeef");
    let region = of("region")[0];
    assert_eq!(region["start"], hexadecimal(DATA));
    assert_eq!(region["at"]["symbol"]["name"], "narrow_words");
    assert_eq!(region["at"]["section"], ".data");
    assert_eq!(of("value")[0]["value"], hexadecimal(WORDS));
    let modules = of("module");
    let own = modules.iter().find(|one| one["start"] == hexadecimal(CODE));
    let own = own.expect("the program among its modules");
    assert_eq!((&own["answers"], &own["symbols"]), (&"file".into(), &3.into()));
    target.send("");
}
