//! The packages of `scripts/dist`, each as a newcomer uses it: in an empty root, or on a copy of this system.
//!
//! PMDB_DIST is the directory with the packages. Without it these tests are skipped: a release takes minutes to build.

mod newcomer;

use crate::skips::skip;
use newcomer::{command, empty_root};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};
use tempfile::TempDir;

const CHECKOUT: &str = env!("CARGO_MANIFEST_DIR");

/// A tarball may have so many bytes when it is unpacked.
const MOST: u64 = 11 << 20;

/// Runs a test, which returns why it cannot run here.
fn run_or_skip(test: &str, run: impl FnOnce() -> Result<(), String>) {
    if let Err(reason) = run() {
        skip(test, &reason);
    }
}

/// The package in PMDB_DIST whose name ends so.
fn package(end: &str) -> Result<PathBuf, String> {
    let directory = env::var_os("PMDB_DIST").ok_or("PMDB_DIST names no packages")?;
    let entries = fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    let found = paths.find(|path| path.to_string_lossy().ends_with(end));
    found.ok_or_else(|| format!("there is no package *{end} here"))
}

fn tarball() -> Result<PathBuf, String> {
    package(&format!("{}-unknown-linux-gnu.tar.gz", env::consts::ARCH))
}

/// What a package is tested with must be there, and roots are for root.
fn needs(programs: &[&str]) -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("only root may use another root".into());
    }
    let is_missing = |program: &&&str| Command::new(program).arg("--version").output().is_err();
    match programs.iter().find(is_missing) {
        Some(missing) => Err(format!("there is no {missing} here")),
        None => Ok(()),
    }
}

/// Its standard output, if it succeeds.
fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Unpacks a tarball into a directory, without its first directory.
fn unpack(tarball: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    succeed(Command::new("tar").arg("-xzf").arg(tarball).arg("--strip-components=1").arg("-C").arg(to));
}

fn unpacked_in_a_root(tarball: &Path) -> TempDir {
    let root = empty_root();
    unpack(tarball, &root.path().join("usr"));
    root
}

/// The names of the files in an archive, without their directories, and without what makepkg adds and compresses.
fn names(archive: &Path) -> Vec<String> {
    let listed = succeed(Command::new("tar").arg("-tf").arg(archive));
    let names = listed.lines().filter_map(|path| path.rsplit('/').next()).map(|name| name.trim_end_matches(".gz"));
    let mut names: Vec<String> =
        names.filter(|name| !name.is_empty() && !name.starts_with('.')).map(str::to_owned).collect();
    names.sort();
    names
}

#[test]
fn a_tarball_has_all_files_and_its_checksum() {
    run_or_skip("a_tarball_has_all_files_and_its_checksum", || {
        let tarball = tarball()?;
        let directory = tarball.parent().expect("a directory");
        succeed(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(directory));
        let folder = tempfile::tempdir().expect("a directory");
        unpack(&tarball, folder.path());
        let size = succeed(Command::new("du").arg("-sb").arg(folder.path()));
        let size: u64 = size.split_whitespace().next().and_then(|size| size.parse().ok()).expect("a number");
        assert!(size <= MOST, "{size} bytes");
        for text in ["LICENSE-MIT", "LICENSE-APACHE", "LICENSES-OF-CRATES.gz", "language.ebnf.gz"] {
            assert!(folder.path().join("share/doc/pmdb").join(text).is_file(), "{text}");
        }
        Ok(())
    });
}

#[test]
fn a_tarball_in_an_empty_root() {
    run_or_skip("a_tarball_in_an_empty_root", || {
        let tarball = tarball()?;
        needs(&["unshare"])?;
        newcomer::in_an_empty_root(unpacked_in_a_root(&tarball).path(), &["/usr/bin/pmdb"], "");
        Ok(())
    });
}

/// The container file is followed as a builder follows it.
#[test]
fn the_image() {
    run_or_skip("the_image", || {
        let tarball = tarball()?;
        needs(&["unshare"])?;
        let context = tempfile::tempdir().expect("a directory");
        unpack(&tarball, context.path());
        let root = empty_root();
        let text = fs::read_to_string(format!("{CHECKOUT}/scripts/Containerfile")).expect("a text");
        let (mut variables, mut entry) = (String::new(), Vec::new());
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            match line.split_once(' ').unwrap_or_default() {
                ("FROM", "scratch") => {}
                ("COPY", paths) => {
                    let (from, to) = paths.split_once(' ').expect("two paths");
                    let to = root.path().join(to.trim_matches('/'));
                    fs::create_dir_all(&to).expect("a directory");
                    succeed(Command::new("cp").arg("-a").arg(context.path().join(from)).arg("-T").arg(to));
                }
                ("ENV", set) => variables = set.to_owned(),
                ("ENTRYPOINT", words) => entry = serde_json::from_str(words).expect("a list of words"),
                _ => panic!("unexpected in a container file: {line}"),
            }
        }
        let entry: Vec<&str> = entry.iter().map(String::as_str).collect();
        newcomer::in_an_empty_root(root.path(), &entry, &variables);
        Ok(())
    });
}

#[test]
fn a_tarball_for_arm64_in_an_empty_root() {
    run_or_skip("a_tarball_for_arm64_in_an_empty_root", || {
        let tarball = package("aarch64-unknown-linux-gnu.tar.gz")?;
        needs(&["unshare"])?;
        let emulators = ["/usr/bin/qemu-aarch64-static", "/usr/bin/qemu-aarch64"];
        let emulator = emulators.into_iter().find(|path| fs::exists(path).is_ok_and(|exists| exists));
        let emulator = emulator.ok_or("there is no qemu-aarch64-static here")?;
        let root = unpacked_in_a_root(&tarball);
        fs::copy(emulator, root.path().join("emulator")).expect("a copy");
        let one_shot = ["/emulator", "/usr/bin/pmdb", "-nx", "-batch", "-ex", "print 6*7"];
        assert_eq!(succeed(&mut command(root.path(), "", "", &one_shot)), "$1 = 42  (0x2a)\n");
        Ok(())
    });
}

#[test]
fn a_tarball_under_usr_local() {
    run_or_skip("a_tarball_under_usr_local", || {
        let tarball = tarball()?;
        needs(newcomer::PROGRAMS)?;
        newcomer::install(&tarball, "tar -xzf /package --strip-components=1 -C /usr/local", "/usr/local", |_| ());
        Ok(())
    });
}

#[test]
fn the_debian_package() {
    run_or_skip("the_debian_package", || {
        let architecture = if env::consts::ARCH == "aarch64" { "arm64" } else { "amd64" };
        let (package, for_arm64) = (package(&format!("_{architecture}.deb"))?, package("_arm64.deb").ok());
        needs(&["lintian", "dpkg"])?;
        needs(newcomer::PROGRAMS)?;
        let mut lintian = Command::new("lintian");
        let complaints = succeed(lintian.arg("--allow-root").arg(&package).args(for_arm64));
        assert_eq!(complaints, "");
        newcomer::install(&package, "dpkg --install /package", "/usr", |system| {
            system.run("dpkg --remove pmdb");
            let left = system.run("find /usr -path /usr/local -prune -o -name '*pmdb*' -printf 'left'': %p\\n'");
            assert!(!left.contains("left: "), "{left}");
        });
        Ok(())
    });
}

/// makepkg runs all of PKGBUILD but the build.
#[test]
fn the_arch_package() {
    run_or_skip("the_arch_package", || {
        let tarball = tarball()?;
        needs(newcomer::PROGRAMS)?;
        needs(&["makepkg", "bsdtar"])?;
        let folder = tempfile::tempdir().expect("a directory");
        let path = |part: &str| folder.path().join(part);
        let built = path("build/pmdb/src/target/dist");
        unpack(&tarball, &path("tarball"));
        fs::create_dir_all(&built).expect("a directory");
        fs::rename(path("tarball/bin/pmdb"), built.join("pmdb")).expect("a program");
        // It refuses to run as root.
        let mut makepkg = Command::new("unshare");
        makepkg.args(["--user", "--map-user=1000", "makepkg", "--repackage", "--nodeps"]);
        makepkg.env("BUILDDIR", path("build")).env("PKGDEST", folder.path()).env("PKGEXT", ".pkg.tar.gz");
        // Debian has it without pacman.
        makepkg.env("PACMAN", "true");
        succeed(makepkg.current_dir(format!("{CHECKOUT}/scripts")));
        let entries = fs::read_dir(folder.path()).expect("a directory").map(|entry| entry.expect("an entry").path());
        let package = entries.into_iter().find(|path| path.to_string_lossy().ends_with(".pkg.tar.gz"));
        let package = package.expect("a package");
        assert_eq!(names(&package), names(&tarball));
        newcomer::install(&package, "tar -xzf /package -C / usr", "/usr", |_| ());
        Ok(())
    });
}
