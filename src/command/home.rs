//! `~/` in paths.

use std::path::{Path, PathBuf};

/// The path that the user meant: a leading `~/` is the home folder.
pub fn expand_home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) if !home.as_os_str().is_empty() => Path::new(&home).join(rest),
        _ => PathBuf::from(path),
    }
}
