//! The notes of ELF core files: threads, their registers, the process, and the files that it mapped.
//!
//! `struct elf_prstatus` and `struct elf_prpsinfo` are declared in include/linux/elfcore.h, and in compat.h for 32-bit
//! programs.

use super::elf::ElfForm;
use super::{AddressRange, Registers, VirtualAddress};
use crate::budget::{Budget, OutOfBudget};

/// The name of the notes that the kernel writes.
pub const CORE: &[u8] = b"CORE";
/// `NT_PRSTATUS`: a thread.
pub const PRSTATUS: u32 = 1;
/// `NT_PRPSINFO`: the process.
pub const PRPSINFO: u32 = 3;
/// `NT_AUXV`: the auxiliary vector.
pub const AUXV: u32 = 6;
/// `NT_FILE`: the files that were mapped.
pub const FILE: u32 = 0x4649_4c45;
/// The name of pmdb's notes. Their kinds are large: gdb reads small ones as registers, whatever the name is.
pub const PMDB: &[u8] = b"PMDB";
/// A text about the contents of the file.
pub const ABOUT: u32 = 0x504d_4401;
/// The text of `/proc/PID/maps`.
pub const MAPS: u32 = 0x504d_4402;
/// Entries of the page map: the number of runs; for each run its first page and its number of pages; then all entries.
pub const PAGE_MAP: u32 = 0x504d_4403;
/// A text: [the facts about the machine](super::core_machine::CoreMachine) that decide states and kinds of pages.
pub const MACHINE: u32 = 0x504d_4404;

/// A note of an ELF file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoreNote<'a> {
    /// The name of the note's owner, without the NUL at its end.
    pub name: &'a [u8],
    /// The type of the note.
    pub kind: u32,
    /// The contents of the note.
    pub bytes: &'a [u8],
}

/// Returns the notes of a segment, up to the first that does not fit.
pub fn notes(form: ElfForm, bytes: &[u8]) -> impl Iterator<Item = CoreNote<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let size = |at| form.int(rest, at).map(|size| size as usize);
        let (name, length, kind) = (size(0)?, size(4)?, form.int(rest, 8)?);
        let begin = 12usize.checked_add(name.checked_next_multiple_of(4)?)?;
        let end = begin.checked_add(length)?;
        let of = rest.get(12..12usize.checked_add(name)?)?;
        let note = CoreNote { name: of.strip_suffix(b"\0").unwrap_or(of), kind, bytes: rest.get(begin..end)? };
        rest = rest.get(end.checked_next_multiple_of(4)?..).unwrap_or_default();
        Some(note)
    })
}

impl CoreNote<'_> {
    /// Appends the note to `into`.
    pub fn write(&self, form: ElfForm, into: &mut Vec<u8>) {
        for number in [self.name.len() + 1, self.bytes.len(), self.kind as usize] {
            into.extend(form.bytes(number as u64, 4));
        }
        for part in [&[self.name, b"\0"].concat(), self.bytes] {
            into.extend(part);
            into.resize(into.len().next_multiple_of(4), 0);
        }
    }
}

/// The places of registers in `pr_reg` of a machine.
struct RegisterPlaces {
    machine: u16,
    is_64: bool,
    /// The number of words in `pr_reg`.
    words: usize,
    /// The index of the program counter.
    counter: usize,
    /// The index of the stack pointer.
    stack: usize,
}

const fn places(machine: u16, is_64: bool, [words, counter, stack]: [usize; 3]) -> RegisterPlaces {
    RegisterPlaces { machine, is_64, words, counter, stack }
}

/// `elf_gregset_t` of arch/*/include/asm/elf.h, by `e_machine`.
const PLACES: [RegisterPlaces; 8] = [
    places(62, true, [27, 16, 19]),  // x86-64
    places(3, false, [17, 12, 15]),  // i386
    places(183, true, [34, 32, 31]), // AArch64
    places(40, false, [18, 15, 13]), // Arm
    places(243, true, [32, 0, 2]),   // RISC-V
    places(22, true, [27, 1, 17]),   // s390x: PSW mask and address, then the general registers
    places(21, true, [48, 32, 1]),   // PowerPC 64
    places(258, true, [45, 33, 3]),  // LoongArch
];

/// A thread of a core file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoreThread {
    /// The thread id.
    pub id: u32,
    /// The parent of its process.
    pub parent: u32,
    /// The registers of the thread; `None` if they are unknown.
    pub registers: Option<Registers>,
}

/// Returns whether the places of registers are known for this machine.
pub fn is_known(machine: u16, form: ElfForm) -> bool {
    CoreThread::places(machine, form).is_some()
}

/// Returns the `e_machine` of 32-bit programs that run on a machine.
pub fn machine_of(machine: u16, is_64: bool) -> u16 {
    match (machine, is_64) {
        (62, false) => 3,
        (183, false) => 40,
        _ => machine,
    }
}

impl CoreThread {
    /// Returns the offsets of the process ids and of `pr_reg`. Signals precede the four ids, and four times follow
    /// them.
    fn head(form: ElfForm) -> (usize, usize) {
        if form.is_64 { (32, 112) } else { (24, 72) }
    }

    fn places(machine: u16, form: ElfForm) -> Option<&'static RegisterPlaces> {
        PLACES.iter().find(|places| (places.machine, places.is_64) == (machine, form.is_64))
    }

    /// Decodes `NT_PRSTATUS`.
    pub fn parse(machine: u16, form: ElfForm, bytes: &[u8]) -> Option<Self> {
        let (ids, start) = Self::head(form);
        let registers = || {
            let places = Self::places(machine, form)?;
            let word = |place: usize| form.word(bytes, start + place * form.word_bytes()).map(VirtualAddress::new);
            let (program_counter, stack_pointer) = (word(places.counter)?, word(places.stack)?);
            (stack_pointer.get() != 0).then_some(Registers { program_counter, stack_pointer })
        };
        Some(CoreThread { id: form.int(bytes, ids)?, parent: form.int(bytes, ids + 4)?, registers: registers() })
    }

    /// Encodes `NT_PRSTATUS`; `None` for an unknown machine. Unknown fields are 0.
    pub fn bytes(&self, machine: u16, form: ElfForm) -> Option<Vec<u8>> {
        let places = Self::places(machine, form)?;
        let (ids, start) = Self::head(form);
        let word = form.word_bytes();
        let mut bytes = vec![0; start + (places.words + 1) * word];
        let mut put = |at: usize, number: u64, size: usize| {
            bytes.get_mut(at..at + size).unwrap_or_default().copy_from_slice(&form.bytes(number, size));
        };
        put(ids, self.id.into(), 4);
        put(ids + 4, self.parent.into(), 4);
        if let Some(registers) = self.registers {
            put(start + places.counter * word, registers.program_counter.get(), word);
            put(start + places.stack * word, registers.stack_pointer.get(), word);
        }
        Some(bytes)
    }
}

/// Returns the signal of `NT_PRSTATUS` (`pr_cursig`), which follows three 32-bit numbers.
pub fn signal(form: ElfForm, bytes: &[u8]) -> Option<u16> {
    form.short(bytes, 12)
}

/// The process of a core file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CoreProcess {
    /// The process id.
    pub id: u32,
    /// The process id of the parent.
    pub parent: u32,
    /// The user id.
    pub user: u32,
    /// The name (`comm`).
    pub name: Vec<u8>,
    /// The command line.
    pub command: Vec<u8>,
}

impl CoreProcess {
    /// Returns the offsets of the id, the name and the command line, and the size of the structure.
    fn at(form: ElfForm) -> (usize, usize, usize, usize) {
        if form.is_64 { (24, 40, 56, 136) } else { (12, 28, 44, 124) }
    }

    /// Returns the offset and the size of the user id: 16 bits in the structure for 32-bit programs.
    fn user_at(form: ElfForm) -> (usize, usize) {
        if form.is_64 { (16, 4) } else { (8, 2) }
    }

    /// Decodes `NT_PRPSINFO`.
    pub fn parse(form: ElfForm, bytes: &[u8]) -> Option<Self> {
        let (id, name, command, end) = Self::at(form);
        let text = |from: usize, to: usize| {
            let text = bytes.get(from..to)?;
            text.split(|&byte| byte == 0).next().map(<[u8]>::to_vec)
        };
        let (user, size) = Self::user_at(form);
        Some(CoreProcess {
            id: form.int(bytes, id)?,
            parent: form.int(bytes, id + 4)?,
            user: form.number(bytes, user, size)? as u32,
            name: text(name, command)?,
            command: text(command, end)?,
        })
    }

    /// Encodes `NT_PRPSINFO`.
    pub fn bytes(&self, form: ElfForm) -> Vec<u8> {
        let (id, name, command, end) = Self::at(form);
        let mut bytes = vec![0; end];
        let mut put = |at: usize, to: usize, text: &[u8]| {
            // The last byte remains NUL.
            for (byte, &new) in bytes.get_mut(at..to - 1).unwrap_or_default().iter_mut().zip(text) {
                *byte = new;
            }
        };
        put(id, id + 5, &form.bytes(self.id.into(), 4));
        put(id + 4, id + 9, &form.bytes(self.parent.into(), 4));
        let (user, size) = Self::user_at(form);
        put(user, user + size + 1, &form.bytes(self.user.into(), size));
        put(name, command, &self.name);
        put(command, end, &self.command);
        bytes
    }
}

/// A mapping of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CoreMapping {
    /// The addresses of the mapping.
    pub range: AddressRange,
    /// The offset of the mapping in the file, in bytes.
    pub offset: u64,
    /// The path of the file.
    pub path: Vec<u8>,
}

/// Decodes `NT_FILE`; `None` if it is damaged.
pub fn mappings(form: ElfForm, bytes: &[u8], budget: &mut Budget) -> Result<Option<Vec<CoreMapping>>, OutOfBudget> {
    let word = form.word_bytes();
    let at = |index: usize| form.word(bytes, index.checked_mul(word)?);
    let table = || {
        let count = usize::try_from(at(0)?).ok()?;
        // The kernel counts offsets in pages, gdb in bytes. With a unit of 0 every offset would be 0.
        let unit = at(1).filter(|&unit| unit > 0 || count == 0)?;
        let names = count.checked_mul(3)?.checked_add(2)?.checked_mul(word)?;
        Some((count, unit, bytes.get(names..)?))
    };
    let Some((count, unit, names)) = table() else {
        return Ok(None);
    };
    let mut names = names.split(|&byte| byte == 0);
    let mut all = Vec::new();
    for index in 0..count {
        budget.go_on()?;
        let first = 2 + 3 * index;
        let (Some(start), Some(end), Some(path)) = (at(first), at(first + 1), names.next()) else {
            return Ok(None);
        };
        let Some(range) = AddressRange::new(VirtualAddress::new(start), VirtualAddress::new(end)) else {
            continue;
        };
        let Some(offset) = at(first + 2).and_then(|pages| pages.checked_mul(unit)) else {
            return Ok(None);
        };
        all.push(CoreMapping { range, offset, path: path.to_vec() });
    }
    Ok(Some(all))
}

/// Encodes `NT_FILE`.
pub fn mapping_bytes(form: ElfForm, page: u64, all: &[CoreMapping]) -> Vec<u8> {
    let size = form.word_bytes();
    let mut bytes: Vec<u8> = [all.len() as u64, page].into_iter().flat_map(|word| form.bytes(word, size)).collect();
    for one in all {
        let words = [one.range.start().get(), one.range.end().get(), one.offset / page];
        bytes.extend(words.into_iter().flat_map(|word| form.bytes(word, size)));
    }
    for one in all {
        bytes.extend(one.path.iter().filter(|&&byte| byte != 0));
        bytes.push(0);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::tests::whole_or_given_up;

    const FORMS: [ElfForm; 4] = [
        ElfForm { is_64: true, is_little: true },
        ElfForm { is_64: true, is_little: false },
        ElfForm { is_64: false, is_little: true },
        ElfForm { is_64: false, is_little: false },
    ];

    #[test]
    fn notes_are_read_as_they_are_written() {
        for form in FORMS {
            let all = [
                CoreNote { name: CORE, kind: PRSTATUS, bytes: &[1, 2, 3] },
                CoreNote { name: PMDB, kind: MAPS, bytes: b"" },
                CoreNote { name: b"LINUX", kind: 9, bytes: &[7; 8] },
            ];
            let mut bytes = Vec::new();
            all.iter().for_each(|note| note.write(form, &mut bytes));
            assert_eq!(notes(form, &bytes).collect::<Vec<_>>(), all);
            for length in 0..bytes.len() {
                assert!(notes(form, &bytes[..length]).count() <= 3);
            }
        }
    }

    #[test]
    fn threads_processes_and_mappings_are_read_as_they_are_written() {
        let range =
            |start, end| AddressRange::new(VirtualAddress::new(start), VirtualAddress::new(end)).expect("a range");
        for form in FORMS {
            for places in PLACES.iter().filter(|places| places.is_64 == form.is_64) {
                let registers = Registers {
                    program_counter: VirtualAddress::new(0x40_1136),
                    stack_pointer: VirtualAddress::new(0x7fff_0010),
                };
                for registers in [Some(registers), None] {
                    let thread = CoreThread { id: 812, parent: 1, registers };
                    let bytes = thread.bytes(places.machine, form).expect("a known machine");
                    assert_eq!(CoreThread::parse(places.machine, form, &bytes), Some(thread));
                }
            }
            let (name, command) = (b"a server's name".to_vec(), b"server -v".to_vec());
            let process = CoreProcess { id: 812, parent: 1, user: 1000, name, command };
            assert_eq!(CoreProcess::parse(form, &process.bytes(form)), Some(process));
            let files = vec![
                CoreMapping { range: range(0x1000, 0x3000), offset: 0x2000, path: b"/usr/bin/a b".to_vec() },
                CoreMapping { range: range(0x5000, 0x6000), offset: 0, path: b"/x".to_vec() },
            ];
            let bytes = mapping_bytes(form, 0x1000, &files);
            let decode = |bytes: &[u8], mut budget| mappings(form, bytes, &mut budget);
            assert_eq!(decode(&bytes, Budget::unlimited()), Ok(Some(files)));
            assert_eq!(whole_or_given_up(|budget| decode(&bytes, budget)), 2);
            for length in 0..bytes.len() {
                _ = decode(&bytes[..length], Budget::unlimited());
            }
        }
        let mut no_unit = mapping_bytes(FORMS[0], 0x1000, &[]);
        assert_eq!(mappings(FORMS[0], &no_unit, &mut Budget::unlimited()), Ok(Some(Vec::new())));
        no_unit[8..].fill(0);
        assert_eq!(mappings(FORMS[0], &no_unit, &mut Budget::unlimited()), Ok(Some(Vec::new())));
        // The sizes of `struct elf_prstatus` on x86-64, i386 and AArch64.
        let thread = CoreThread { id: 1, parent: 0, registers: None };
        for (machine, form, size) in
            [(62, FORMS[0], 336), (3, FORMS[2], 144), (183, FORMS[0], 392), (22, FORMS[1], 336)]
        {
            assert_eq!(thread.bytes(machine, form).map(|bytes| bytes.len()), Some(size), "{machine}");
        }
    }
}
