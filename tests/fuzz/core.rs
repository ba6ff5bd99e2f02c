//! ELF core files, of both byte orders and widths.

use crate::capture::{ask, is_sound};
use crate::made::BASE;
use pmdb::kernel::core_file::{self, CoreMapping, CoreNote, CoreProcess, CoreThread};
use pmdb::kernel::elf::ElfForm;
use pmdb::kernel::{AddressRange, Registers, VirtualAddress};

const PAGE: u64 = 0x1000;
/// Bytes before the notes.
const HEADS: usize = 512;

fn core(form: ElfForm, machine: u16, has_own: bool) -> Vec<u8> {
    let word = form.word_bytes();
    let address = VirtualAddress::new;
    let range = AddressRange::new(address(BASE), address(BASE + 2 * PAGE)).expect("a range");
    let registers = Registers { program_counter: address(BASE + 8), stack_pointer: address(BASE + 64) };
    let thread = CoreThread { id: 77, parent: 1, registers: Some(registers) };
    let process = CoreProcess { id: 77, parent: 1, user: 0, name: b"made".to_vec(), command: b"made -v".to_vec() };
    let files = [CoreMapping { range, offset: 0, path: b"/usr/bin/made".to_vec() }];
    let vector: Vec<u8> = [6, PAGE, 0, 0].into_iter().flat_map(|number| form.bytes(number, word)).collect();
    let maps = format!("{BASE:08x}-{:08x} r-xp 00000000 08:01 7 /usr/bin/made\n", BASE + 2 * PAGE);
    let words = [1, BASE / PAGE, 2, 1 << 63, 1 << 63 | 5].into_iter().flat_map(|number| form.bytes(number, 8));
    let mut notes = Vec::new();
    let mut note = |name: &[u8], kind, bytes: &[u8]| CoreNote { name, kind, bytes }.write(form, &mut notes);
    note(core_file::CORE, core_file::PRPSINFO, &process.bytes(form));
    note(core_file::CORE, core_file::PRSTATUS, &thread.bytes(machine, form).expect("a known machine"));
    note(core_file::CORE, core_file::AUXV, &vector);
    note(core_file::CORE, core_file::FILE, &core_file::mapping_bytes(form, PAGE, &files));
    if has_own {
        note(core_file::PMDB, core_file::MAPS, maps.as_bytes());
        note(core_file::PMDB, core_file::PAGE_MAP, &words.collect::<Vec<u8>>());
    }
    let memory = (HEADS + notes.len()) as u64;
    let header = |kind: u64, offset: u64, start: u64, stored: u64, size: u64| {
        let flags = [(5, 4)];
        let middle = [(offset, word), (start, word), (0, word), (stored, word), (size, word)];
        let (first, last) = if form.is_64 { (&flags[..], &[][..]) } else { (&[][..], &flags[..]) };
        let all = [&[(kind, 4)][..], first, &middle, last, &[(PAGE, word)]].concat();
        all.into_iter().flat_map(|(number, size)| form.bytes(number, size)).collect::<Vec<u8>>()
    };
    let (size, entry) = if form.is_64 { (64, 56) } else { (52, 32) };
    let mut file = b"\x7fELF".to_vec();
    file.extend([if form.is_64 { 2 } else { 1 }, if form.is_little { 1 } else { 2 }, 1]);
    file.resize(16, 0);
    let numbers =
        [(4, 2), (machine.into(), 2), (1, 4), (0, word), (size, word), (0, word), (0, 4), (size, 2), (entry, 2)];
    file.extend(numbers.into_iter().chain([(3, 2), (0, 2), (0, 2), (0, 2)]).flat_map(|(n, size)| form.bytes(n, size)));
    file.extend(header(4, HEADS as u64, 0, notes.len() as u64, 0));
    file.extend(header(1, memory, BASE, PAGE, PAGE));
    file.extend(header(1, memory + PAGE, BASE + PAGE, 0, PAGE));
    file.resize(HEADS, 0);
    file.extend(notes);
    // The program in memory is this file, as far as its header.
    let start = file.get(..64).expect("a header").to_vec();
    file.extend(start);
    file.resize(memory as usize + PAGE as usize, 7);
    file
}

pub fn seeds() -> Vec<Vec<u8>> {
    let form = |is_64, is_little| ElfForm { is_64, is_little };
    let machines = [(form(true, true), 62), (form(true, false), 22), (form(false, true), 40)];
    let cores = machines.into_iter().flat_map(|(form, machine)| [true, false].map(|own| core(form, machine, own)));
    cores.inspect(|core| is_sound(core)).collect()
}

pub fn feed(bytes: &[u8]) {
    ask(bytes.to_vec());
}
