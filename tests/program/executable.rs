//! Executables that a test makes and then runs, and processes that end with a test.

use std::ffi::OsStr;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Copies a program. A child of its own writes the copy: a file that this process has open for writing is also open in
/// each child that another test forks at that moment, and the kernel runs no file that anyone may write to
/// (`ETXTBSY`).
pub fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let status = Command::new("cp").arg("--").args([from.as_ref(), to.as_ref()]).status().expect("cp");
    assert!(status.success(), "{} to {}", from.as_ref().display(), to.as_ref().display());
}

/// Makes a program of these bytes.
#[allow(dead_code, reason = "not every test program writes one")]
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
    let original = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(original.path(), bytes).expect("its bytes");
    copy(original.path(), &path);
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("its mode");
}

/// A process that ends with the test. It has none of the test's outputs: a pipe of `cargo test` would wait for its end.
pub struct Running(Child);

impl Running {
    pub fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Running(command.spawn().expect("it starts"))
    }

    /// Starts `sleep`, or a copy of it.
    #[allow(dead_code, reason = "the live tests have other targets")]
    pub fn sleep(program: impl AsRef<OsStr>) -> Self {
        Self::start(Command::new(program).arg("600"))
    }
}

impl Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}
