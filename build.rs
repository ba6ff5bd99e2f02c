//! Links the unwinder into the program, where the C compiler has it as an archive, and tells the program what it is
//! built from.
//!
//! As a shared library it costs every start a tenth of a millisecond: it has to be loaded, and it asks the processor
//! what that can do, which is slow in a virtual machine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    tell_the_build();
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        // Uncompressed lines of the source are two thirds of the program.
        println!("cargo:rustc-link-arg-bins=-Wl,--compress-debug-sections=zlib");
    }
    let is = |name: &str, wanted: &str| env::var(name).is_ok_and(|value| value == wanted);
    let is_ours = is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && env::var("TARGET") == env::var("HOST");
    if let (true, Some(archive), Some(folder)) = (is_ours, archive(), env::var_os("OUT_DIR")) {
        // The standard library asks for `-lgcc_s`. What the linker finds under that name is a script of its own, which
        // names the archive.
        let script = Path::new(&folder).join("libgcc_s.so");
        if fs::write(script, format!("INPUT(\"{}\")\n", archive.display())).is_ok() {
            println!("cargo:rustc-link-search=native={}", folder.to_string_lossy());
        }
    }
}

/// The facts of `show version`.
fn tell_the_build() {
    let of = |name: &str| env::var(name).unwrap_or_default();
    let commit = match of("PROFILE").as_str() {
        // A commit would have everything built anew after each.
        "debug" => None,
        _ => commit(),
    };
    let commit = commit.unwrap_or_else(|| "not recorded".to_owned());
    println!("cargo:rustc-env=PMDB_COMMIT={commit}");
    println!("cargo:rustc-env=PMDB_TARGET={}", of("TARGET"));
    println!("cargo:rustc-env=PMDB_PROFILE={}", of("PROFILE"));
}

/// The commit of the source: what git says in a checkout, what cargo has written down in a package.
fn commit() -> Option<String> {
    const PACKAGE: &str = ".cargo_vcs_info.json";
    let in_package = fs::read_to_string(PACKAGE).ok();
    if let Some((_, behind)) = in_package.as_deref().and_then(|text| text.split_once("\"sha1\"")) {
        return behind.split('"').nth(1).map(str::to_owned);
    }
    // In a second working tree they are elsewhere. For a file that is not there cargo would build anew each time.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["--git-path", name])?;
        if Path::new(&path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    git(&["--short=12", "HEAD"])
}

/// What `git rev-parse` says.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("rev-parse").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| output.status.success() && !text.is_empty())
}

/// The archive, if there is one.
fn archive() -> Option<PathBuf> {
    let linker = env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let output = Command::new(linker).arg("-print-file-name=libgcc_eh.a").output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim_end());
    path.is_absolute().then_some(path).filter(|path| path.is_file())
}
