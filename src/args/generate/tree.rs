//! `--generate all DIR`: all files that a package installs beside the program, at their usual paths. `--generate WHAT
//! DIR`: one of them, in DIR itself.

use super::{GeneratedFile, text};
use clap::{Command, ValueEnum as _};
use pmdb::own::new_file;
use pmdb::{access, session};
use std::path::Path;
use std::{fs, io};

impl GeneratedFile {
    /// Returns the usual name of the file.
    fn file_name(self) -> &'static str {
        match self {
            GeneratedFile::Man => "pmdb.1",
            GeneratedFile::ManLanguage => "pmdb-language.7",
            GeneratedFile::ManJson => "pmdb-json.7",
            GeneratedFile::Help => "pmdb-help.txt",
            GeneratedFile::CompleteBash => "pmdb",
            GeneratedFile::CompleteZsh => "_pmdb",
            GeneratedFile::CompleteFish => "pmdb.fish",
            GeneratedFile::JsonSchema => "records.schema.json",
            GeneratedFile::Gdb => "pmdb-gdb.py",
        }
    }

    /// Returns the directory under the prefix in which a package installs it; `None` if it installs none.
    fn directory(self) -> Option<&'static str> {
        match self {
            GeneratedFile::Man => Some("share/man/man1"),
            GeneratedFile::ManLanguage | GeneratedFile::ManJson => Some("share/man/man7"),
            GeneratedFile::Help => None,
            GeneratedFile::CompleteBash => Some("share/bash-completion/completions"),
            GeneratedFile::CompleteZsh => Some("share/zsh/site-functions"),
            GeneratedFile::CompleteFish => Some("share/fish/vendor_completions.d"),
            GeneratedFile::JsonSchema | GeneratedFile::Gdb => Some("share/pmdb"),
        }
    }
}

fn write_file(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|error| {
            let file = parent.ancestors().find(|one| one.is_file());
            let why = match file {
                Some(file) => format!("{} is not a directory", file.display()),
                None => access::words(error),
            };
            io::Error::other(format!("cannot write {}: {why}", path.display()))
        })?;
    }
    new_file::write(path, text.as_bytes()).map_err(io::Error::other)
}

/// Writes one file into `directory`, under its usual name.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn write_one(directory: &Path, what: GeneratedFile, command: &Command) -> io::Result<()> {
    write_file(&directory.join(what.file_name()), &text(what, command))
}

/// Writes the files under `prefix`.
///
/// # Errors
/// Fails if a file cannot be written.
pub fn write(prefix: &Path, command: &Command) -> io::Result<()> {
    for &what in GeneratedFile::value_variants() {
        if let Some(directory) = what.directory() {
            write_one(&prefix.join(directory), what, command)?;
        }
    }
    let scripts = prefix.join("share/pmdb/scripts");
    session::SCRIPTS.iter().try_for_each(|(name, text)| write_file(&scripts.join(format!("{name}.pmdb")), text))
}
