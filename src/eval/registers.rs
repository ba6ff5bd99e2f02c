//! `$rip`, `$rsp`: each machine's names for its program counter and stack pointer; and registers that the kernel does
//! not show.

use crate::lang::Register;

/// Machines by Rust's name for them, and gdb's names for the two registers of each.
const MACHINES: &[(&str, &[&str], &[&str])] = &[
    ("x86_64", &["rip", "eip"], &["rsp", "esp"]),
    ("x86", &["eip"], &["esp"]),
    ("arm", &["r15"], &["r13"]),
    ("powerpc64", &["nip"], &["r1"]),
    ("powerpc", &["nip"], &["r1"]),
    ("s390x", &["pswa"], &["r15"]),
    ("riscv64", &[], &["x2"]),
    ("loongarch64", &[], &["r3"]),
    ("mips64", &[], &["r29"]),
];

/// Other registers that gdb knows on some machine.
const OTHERS: &[&str] = &[
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rip", "rsp", "eax", "ebx", "ecx", "edx", "esi", "edi", "ebp",
    "eip", "esp", "eflags", "cs", "ss", "ds", "es", "fs", "gs", "fs_base", "gs_base", "orig_rax", "fp", "lr", "ra",
    "cpsr", "tpidr", "ps",
];

/// Which of the two registers this is on the machine that pmdb runs on.
pub(super) fn named(name: &str) -> Option<Register> {
    of_machine(std::env::consts::ARCH, name)
}

fn of_machine(machine: &str, name: &str) -> Option<Register> {
    let (_, counters, pointers) = MACHINES.iter().find(|(known, ..)| *known == machine)?;
    if counters.contains(&name) {
        return Some(Register::ProgramCounter);
    }
    let is_pointer = pointers.contains(&name);
    is_pointer.then_some(Register::StackPointer)
}

/// Whether gdb would know a register of this name.
pub(super) fn is_register(name: &str) -> bool {
    let numbered = name.strip_prefix(['r', 'x', 'w', 'f', 'v']);
    let is_number = |rest: &str| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit());
    OTHERS.contains(&name) || numbered.is_some_and(is_number) || name.strip_prefix("xmm").is_some_and(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_machine_has_its_own_names() {
        let pointer = Some(Register::StackPointer);
        assert_eq!(of_machine("x86_64", "rsp"), pointer);
        assert_eq!(of_machine("s390x", "r15"), pointer);
        assert_eq!(of_machine("x86_64", "r15"), None);
        assert_eq!(of_machine("aarch64", "rsp"), None);
        assert_eq!(of_machine("arm", "r15"), Some(Register::ProgramCounter));
        assert!(is_register("rax") && is_register("x30") && is_register("xmm0"));
        assert!(!is_register("r") && !is_register("range") && !is_register("x1y"));
    }
}
