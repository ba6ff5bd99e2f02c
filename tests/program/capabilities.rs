//! A program with file capabilities, for users who are not root.

use crate::executable;
use rustix::fs::{StatVfsMountFlags, XattrFlags, setxattr, statvfs};
use std::fs;
use std::path::Path;

/// `nobody`, as nearly every system has it.
pub const USER: u32 = 65534;

/// CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_SYS_ADMIN
const CAPABILITIES: u32 = 1 << 2 | 1 << 19 | 1 << 21;

/// Copies a program and gives the copy its capabilities, permitted only or effective too.
pub fn copy(program: &str, to: &Path, effective: bool) {
    executable::copy(program, to);
    // `security.capability` as the kernel stores it, version 2.
    let words = [0x0200_0000 | u32::from(effective), CAPABILITIES, 0, 0, 0];
    let value: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    setxattr(to, "security.capability", &value, XattrFlags::empty()).expect("root may do that");
}

/// Why the kernel would ignore the file capabilities of a program in this folder, if it would.
pub fn are_refused(folder: &Path) -> Option<&'static str> {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let bounding = field("CapBnd:").and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0);
    if !rustix::process::geteuid().is_root() {
        Some("only root may give a file capabilities")
    } else if field("NoNewPrivs:") == Some("1") {
        Some("this process may not gain rights (no_new_privs)")
    } else if bounding & u64::from(CAPABILITIES) != u64::from(CAPABILITIES) {
        Some("the capabilities are not in the bounding set")
    } else if statvfs(folder).is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::NOSUID)) {
        Some("the temporary folder is mounted nosuid")
    } else {
        None
    }
}
