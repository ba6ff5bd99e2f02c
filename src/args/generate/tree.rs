//! `--generate all DIR`: all files that a package installs beside the program, at their usual paths. `--generate WHAT
//! DIR`: one of them, in DIR itself.

use super::{GeneratedFile, text};
use clap::Command;
use pmdb::own::new_file;
use pmdb::session;
use std::path::Path;
use std::{fs, io};

/// The files, each with its path under the prefix.
const FILES: &[(GeneratedFile, &str)] = &[
    (GeneratedFile::Man, "share/man/man1/pmdb.1"),
    (GeneratedFile::ManLanguage, "share/man/man7/pmdb-language.7"),
    (GeneratedFile::ManJson, "share/man/man7/pmdb-json.7"),
    (GeneratedFile::CompleteBash, "share/bash-completion/completions/pmdb"),
    (GeneratedFile::CompleteZsh, "share/zsh/site-functions/_pmdb"),
    (GeneratedFile::CompleteFish, "share/fish/vendor_completions.d/pmdb.fish"),
    (GeneratedFile::JsonSchema, "share/pmdb/records.schema.json"),
    (GeneratedFile::Gdb, "share/pmdb/pmdb-gdb.py"),
];

fn write_file(path: &Path, text: &str) -> io::Result<()> {
    let parent = path.parent().map_or(Ok(()), fs::create_dir_all);
    let named = |error: io::Error| io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()));
    parent.map_err(named)?;
    new_file::write(path, text.as_bytes()).map_err(io::Error::other)
}

/// Writes one file into `directory`, under its usual name.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn write_one(directory: &Path, what: GeneratedFile, command: &Command) -> io::Result<()> {
    let usual = FILES.iter().find(|(one, _)| *one == what).and_then(|(_, path)| path.rsplit('/').next());
    write_file(&directory.join(usual.unwrap_or("pmdb-help.txt")), &text(what, command))
}

/// Writes the files under `prefix`.
///
/// # Errors
/// Fails if a file cannot be written.
pub fn write(prefix: &Path, command: &Command) -> io::Result<()> {
    let file = |path: &str, text: &str| write_file(&prefix.join(path), text);
    for (what, path) in FILES {
        file(path, &text(*what, command))?;
    }
    session::SCRIPTS.iter().try_for_each(|(name, text)| file(&format!("share/pmdb/scripts/{name}.pmdb"), text))
}
