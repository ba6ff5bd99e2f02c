//! Executables that a test makes and then runs.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

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
