//! `/proc/PID/syscall`: the program counter and stack pointer of a waiting thread.

use super::VirtualAddress;

/// The two registers that the kernel shows of a waiting thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registers {
    /// The address of the next instruction in user space.
    pub program_counter: VirtualAddress,
    /// The stack pointer in user space.
    pub stack_pointer: VirtualAddress,
}

/// What the file says of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreadState {
    /// On a processor, or about to be: its registers keep changing.
    Running,
    /// In the kernel, by a system call, a fault or a signal.
    Waiting(Registers),
}

impl ThreadState {
    /// Decodes `running`, `-1 SP PC` (waiting, but in no system call) or `NUMBER ARGUMENT*6 SP PC`.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.trim();
        if text == "running" {
            return Some(ThreadState::Running);
        }
        let mut words = text.split(' ').rev();
        let mut address = || {
            let digits = words.next()?.strip_prefix("0x")?;
            u64::from_str_radix(digits, 16).ok().map(VirtualAddress::new)
        };
        let program_counter = address()?;
        let stack_pointer = address()?;
        let number = match words.count() {
            // Only the number is left, or the number and six arguments.
            1 | 7 => text.split(' ').next()?,
            _ => return None,
        };
        number.parse::<i64>().ok()?;
        Some(ThreadState::Waiting(Registers { program_counter, stack_pointer }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_of_the_file() {
        let waiting = |stack, counter| {
            Some(ThreadState::Waiting(Registers {
                program_counter: VirtualAddress::new(counter),
                stack_pointer: VirtualAddress::new(stack),
            }))
        };
        assert_eq!(ThreadState::parse(b"running\n"), Some(ThreadState::Running));
        assert_eq!(
            ThreadState::parse(b"-1 0x7ffc0f0e7a58 0x7f5b1c2d4a1e\n"),
            waiting(0x7ffc_0f0e_7a58, 0x7f5b_1c2d_4a1e)
        );
        assert_eq!(
            ThreadState::parse(b"230 0x0 0x0 0x7ffd 0x7ffd 0x0 0x0 0x7ffdcc0 0x7f4e9\n"),
            waiting(0x7ff_dcc0, 0x7_f4e9)
        );
    }

    #[test]
    fn anything_else_is_nothing() {
        for text in ["", "running away", "-1 0x1", "-1 1 2", "0 0x1 0x2 0x3", "x 0x1 0x2", "-1 0x1 0x10000000000000000"]
        {
            assert_eq!(ThreadState::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(ThreadState::parse(b"\xff 0x1 0x2"), None);
    }
}
