//! Links the unwinder into the program, where the C compiler has it as an archive.
//!
//! As a shared library it costs every start a tenth of a millisecond: it has to be loaded, and it asks the processor what that can do,
//! which is slow in a virtual machine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, wanted: &str| env::var(name).is_ok_and(|value| value == wanted);
    let is_ours = is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && env::var("TARGET") == env::var("HOST");
    if let (true, Some(archive), Some(folder)) = (is_ours, archive(), env::var_os("OUT_DIR")) {
        // The standard library asks for `-lgcc_s`. What the linker finds under that name is a script of its own, which names the archive.
        let script = Path::new(&folder).join("libgcc_s.so");
        if fs::write(script, format!("INPUT(\"{}\")\n", archive.display())).is_ok() {
            println!(
                "cargo:rustc-link-search=native={}",
                folder.to_string_lossy()
            );
        }
    }
}

/// The archive, if there is one.
fn archive() -> Option<PathBuf> {
    let linker = env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let output = Command::new(linker)
        .arg("-print-file-name=libgcc_eh.a")
        .output()
        .ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim_end());
    path.is_absolute()
        .then_some(path)
        .filter(|path| path.is_file())
}
