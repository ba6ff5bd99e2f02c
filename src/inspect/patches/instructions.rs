//! The instructions of an architecture, as far as the description of modified code needs them.

use crate::kernel::elf::ElfStart;

/// A breakpoint instruction: its bytes, a mask of the bits that count, and its name.
type Breakpoint = (&'static [u8], &'static [u8], &'static str);

/// The instructions of an architecture: their alignment, and the breakpoint instructions.
#[derive(Clone, Copy)]
pub(super) struct InstructionSet {
    /// The alignment of instructions in bytes: so many are compared at a time.
    pub(super) unit: usize,
    /// The breakpoint instructions, with the least significant byte first.
    breakpoints: &'static [Breakpoint],
    is_little_endian: bool,
}

impl InstructionSet {
    /// Returns the instructions for the machine of a program, if it is known.
    pub(super) fn of(program: Option<ElfStart>) -> InstructionSet {
        const ALL: &[u8] = &[0xff; 4];
        let (unit, breakpoints): (usize, &'static [Breakpoint]) = match program.map_or(0, |program| program.machine) {
            // i386 and x86-64
            3 | 62 => (1, &[(&[0xcc], ALL, "int3")]),
            // AArch64: the 16-bit operand does not count.
            183 => (4, &[(&[0, 0, 0x20, 0xd4], &[0x1f, 0, 0xe0, 0xff], "brk")]),
            // Arm and Thumb: the breakpoints of the kernel (arch/arm/kernel/ptrace.c).
            40 => (
                2,
                &[
                    (&[0xf0, 0x01, 0xf0, 0xe7], ALL, "udf"),
                    (&[0xf0, 0xf7, 0x00, 0xa0], ALL, "udf"),
                    (&[0x01, 0xde], ALL, "udf"),
                ],
            ),
            // RISC-V
            243 => (2, &[(&[0x02, 0x90], ALL, "ebreak"), (&[0x73, 0x00, 0x10, 0x00], ALL, "ebreak")]),
            // PowerPC
            20 | 21 => (4, &[(&[0x08, 0x00, 0xe0, 0x7f], ALL, "trap")]),
            // S/390: an invalid instruction.
            22 => (2, &[(&[0x01, 0x00], ALL, "trap")]),
            // MIPS, LoongArch: the operand of the break does not count.
            8 => (4, &[(&[0x0d, 0, 0, 0], &[0x3f, 0, 0, 0xfc], "break")]),
            258 => (4, &[(&[0, 0, 0x2a, 0], &[0, 0x80, 0xff, 0xff], "break")]),
            _ => (1, &[]),
        };
        InstructionSet { unit, breakpoints, is_little_endian: program.is_none_or(|program| program.form.is_little) }
    }

    /// Returns the name of the breakpoint instruction, if the bytes are exactly one.
    pub(super) fn breakpoint(self, bytes: &[u8]) -> Option<&'static str> {
        let is_breakpoint = |(code, mask, _): &&(&[u8], &[u8], &str)| {
            let mut chunks = bytes.chunks_exact(code.len());
            let same = chunks.by_ref().all(|chunk| {
                let byte = |index: usize| {
                    if self.is_little_endian { chunk.get(index) } else { chunk.get(chunk.len() - 1 - index) }
                };
                let bits = code.iter().zip(mask.iter()).enumerate();
                bits.into_iter().all(|(index, (code, mask))| byte(index).is_some_and(|byte| byte & mask == *code))
            });
            same && chunks.remainder().is_empty()
        };
        let found = self.breakpoints.iter().find(is_breakpoint);
        found.filter(|_| !bytes.is_empty()).map(|(_, _, name)| *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::elf::ElfForm;

    fn machine(number: u16, big_endian: bool) -> InstructionSet {
        let form = ElfForm { is_64: true, is_little: !big_endian };
        InstructionSet::of(Some(ElfStart { form, kind: 2, machine: number }))
    }

    #[test]
    fn breakpoints_have_the_names_of_their_machine() {
        let cases: &[(u16, bool, &[u8], Option<&str>)] = &[
            (62, false, &[0xcc], Some("int3")),
            (3, false, &[0xcc, 0xcc], Some("int3")),
            (62, false, &[0xcc, 0x90], None),
            (62, false, &[0xe9], None),
            (183, false, &[0x00, 0x00, 0x20, 0xd4], Some("brk")),
            (183, false, &[0x40, 0x02, 0x20, 0xd4], Some("brk")),
            (183, false, &[0x00, 0x00, 0x00, 0xd4], None),
            (243, false, &[0x02, 0x90], Some("ebreak")),
            (243, false, &[0x73, 0x00, 0x10, 0x00], Some("ebreak")),
            (21, true, &[0x7f, 0xe0, 0x00, 0x08], Some("trap")),
            (21, false, &[0x08, 0x00, 0xe0, 0x7f], Some("trap")),
            (22, true, &[0x00, 0x01], Some("trap")),
            (8, true, &[0x00, 0x05, 0x00, 0x0d], Some("break")),
            (258, false, &[0x05, 0x00, 0x2a, 0x00], Some("break")),
            (0, false, &[0xcc], None),
            (62, false, &[], None),
        ];
        for (number, big_endian, bytes, name) in cases {
            let found = machine(*number, *big_endian).breakpoint(bytes);
            assert_eq!(found, *name, "{number} {bytes:x?}");
        }
    }
}
