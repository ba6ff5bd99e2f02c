//! Where pmdb's own files lie, as the XDG base directory specification says.

use std::path::PathBuf;

/// The file of commands that is run first, if there is one. Nothing is ever run from the current folder by itself.
pub fn init_file() -> Option<PathBuf> {
    Some(folder("XDG_CONFIG_HOME", ".config")?.join("init")).filter(|path| path.exists())
}

/// Where the lines typed at the prompt are kept.
pub fn history_file() -> Option<PathBuf> {
    Some(folder("XDG_STATE_HOME", ".local/state")?.join("history"))
}

fn folder(variable: &str, below_home: &str) -> Option<PathBuf> {
    let absolute =
        |value: std::ffi::OsString| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
    let base = std::env::var_os(variable).and_then(absolute).or_else(|| {
        let home = std::env::var_os("HOME").and_then(absolute)?;
        Some(home.join(below_home))
    })?;
    Some(base.join("pmdb"))
}
