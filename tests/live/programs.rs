//! Targets that run other programs.

use super::Test;
use super::support::{at, skip};
use crate::executable;
use pmdb::process::{Target, resolve};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

pub const TESTS: &[Test] = &[
    ("programs::a_32_bit_program", a_32_bit_program),
    ("programs::a_program_is_found_by_its_file_name", a_program_is_found_by_its_file_name),
];

/// An i386 program of one page that writes its first four bytes and waits for signals from then on.
fn program_that_waits() -> Vec<u8> {
    const BASE: u32 = 0x0804_8000;
    const HEADERS: u32 = 52 + 32;
    let code = [
        0xb8, 4, 0, 0, 0, // mov eax, 4 (write)
        0xbb, 1, 0, 0, 0, // mov ebx, 1
        0xb9, 0x00, 0x80, 0x04, 0x08, // mov ecx, BASE
        0xba, 4, 0, 0, 0, // mov edx, 4
        0xcd, 0x80, // int 0x80
        0xb8, 29, 0, 0, 0, // mov eax, 29 (pause)
        0xcd, 0x80, // int 0x80
        0xeb, 0xf7, // jmp back to the pause
    ];
    let size = HEADERS + code.len() as u32;
    let mut file = vec![0x7f, b'E', b'L', b'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let halves = |file: &mut Vec<u8>, numbers: &[u16]| {
        file.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    };
    let words = |file: &mut Vec<u8>, numbers: &[u32]| {
        file.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    };
    // Executable, i386; entry, program headers right behind this one, of which there is one.
    halves(&mut file, &[2, 3]);
    words(&mut file, &[1, BASE + HEADERS, 52, 0, 0]);
    halves(&mut file, &[52, 32, 1, 0, 0, 0]);
    // The whole file is loaded, to be read and run.
    words(&mut file, &[1, 0, BASE, BASE, size, size, 5, 0x1000]);
    file.extend(code);
    file
}

fn a_32_bit_program() {
    let name = "programs::a_32_bit_program";
    if !cfg!(target_arch = "x86_64") {
        return skip(name, "the program is for x86");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("waits");
    executable::write(&program, program_that_waits());
    let Ok(Program(child)) = &mut spawn(&program) else {
        return skip(name, "32-bit programs do not run here");
    };
    // `spawn` returns when the old program is gone, which may be before the new one runs.
    let mut mark = [0; 4];
    let output = child.stdout.as_mut().expect("its output");
    output.read_exact(&mut mark).expect("a sign of life");
    assert_eq!(&mark, b"\x7fELF");
    let target = Target::attach(child.id()).expect("to attach");
    let layout = target.process.layout();
    assert_eq!((layout.pointer_bytes, layout.is_little_endian), (4, true));
    let code = target.process.region_at(at(0x0804_8054)).expect("an answer").expect("its code");
    assert_eq!(code.name.as_bytes(), std::os::unix::ffi::OsStrExt::as_bytes(program.as_os_str()));
    let regions = target.process.regions().expect("regions");
    assert!(regions.iter().all(|region| region.range.end().get() <= 1 << 32));
    let mut code = [0; 5];
    assert_eq!(target.process.memory(at(0x0804_8054), &mut code).expect("its code"), 5);
    assert_eq!(code, [0xb8, 4, 0, 0, 0]);
    // Its page map ends with its own address space, not with that of pmdb.
    for scan in [true, false] {
        target.process.set_scan(scan);
        let everything = pmdb::kernel::AddressRange::new(at(0), at(u64::MAX)).expect("a range");
        let last = target.process.populated(everything, target.process.categories()).last();
        let last = last.expect("a stretch").expect("no error").range.end().get();
        assert!(last > 0 && last <= 1 << 32, "{last:#x}");
    }
}

/// A process that runs another program. It ends when this is dropped.
struct Program(std::process::Child);

impl Drop for Program {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Starts a program that was just written.
fn spawn(program: &std::path::Path) -> std::io::Result<Program> {
    loop {
        let mut command = Command::new(program);
        // A program of many commands (busybox) chooses one by its first argument.
        command.arg0("cat");
        match command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() {
            // A child that another test forks at this moment holds the file open for writing until its exec.
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {}
            spawned => return spawned.map(Program),
        }
    }
}

/// The kernel keeps 15 bytes of a name; the file of the program has all of it.
fn a_program_is_found_by_its_file_name() {
    let name = "programs::a_program_is_found_by_its_file_name";
    let directory = tempfile::tempdir().expect("a directory");
    let called = format!("pmdb-{}-with-a-long-name", std::process::id());
    let program = directory.path().join(&called);
    executable::copy("/bin/cat", &program);
    let Ok(Program(child)) = &mut spawn(&program) else {
        return skip(name, "nothing can be run from the folder for temporary files");
    };
    // cat prints its input.
    child.stdin.as_mut().expect("its input").write_all(b"x").expect("an open pipe");
    child.stdout.as_mut().expect("its output").read_exact(&mut [0]).expect("a sign of life");
    let name_kept = std::fs::read_to_string(format!("/proc/{}/comm", child.id()));
    if name_kept.expect("its name").trim_end() != &called[..15] {
        return skip(name, "/bin/cat gives itself another name");
    }
    for what in [&*called, &called[..15]] {
        let found = resolve(what).map(|found| found.pid);
        assert_eq!(found.expect("the copy"), child.id(), "{what}");
    }
    assert!(resolve(&called[..20]).is_err());
    // Even when its file is gone.
    std::fs::remove_file(&program).expect("to delete it");
    assert_eq!(resolve(&called).expect("the copy").pid, child.id());
}
