//! The paths of pmdb's own files, by the XDG base directory specification.

use super::base::Session;
use std::path::PathBuf;

/// The init file, if there is one. Never a file of the current folder.
pub fn init_file() -> Option<PathBuf> {
    Some(folder("XDG_CONFIG_HOME", ".config")?.join("init")).filter(|path| path.exists())
}

impl Session {
    /// The file of lines typed at the prompt. There is none with `--no-shell`.
    pub fn history_file(&self) -> Option<PathBuf> {
        self.options.outside().ok()?;
        Some(folder("XDG_STATE_HOME", ".local/state")?.join("history"))
    }
}

fn folder(variable: &str, below_home: &str) -> Option<PathBuf> {
    let absolute = |value: std::ffi::OsString| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
    let base = std::env::var_os(variable).and_then(absolute).or_else(|| {
        let home = std::env::var_os("HOME").and_then(absolute)?;
        Some(home.join(below_home))
    })?;
    Some(base.join("pmdb"))
}
