//! The keys that edit a line: those of emacs or of vi.

use crate::lang::Editing;
use rustyline::EditMode;
use std::path::PathBuf;

/// The mode of the setting, or that of readline.
pub(super) fn edit_mode(editing: Editing) -> EditMode {
    match editing {
        Editing::Emacs => EditMode::Emacs,
        Editing::Vi => EditMode::Vi,
        Editing::Auto => {
            inputrc().and_then(|path| std::fs::read_to_string(path).ok()).map_or(EditMode::Emacs, |text| mode_in(&text))
        }
    }
}

/// The file in which readline keeps its settings.
fn inputrc() -> Option<PathBuf> {
    let named = std::env::var_os("INPUTRC").filter(|path| !path.is_empty());
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".inputrc"));
    named.map(PathBuf::from).or_else(home)
}

/// The last `set editing-mode` in it.
fn mode_in(text: &str) -> EditMode {
    let words = |line: &str| -> Option<EditMode> {
        let mut words = line.split_whitespace();
        let is = words.next() == Some("set") && words.next() == Some("editing-mode");
        match words.next().filter(|_| is)? {
            "vi" => Some(EditMode::Vi),
            _ => Some(EditMode::Emacs),
        }
    };
    text.lines().rev().find_map(words).unwrap_or(EditMode::Emacs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_what_the_file_says_last() {
        assert!(mode_in("") == EditMode::Emacs);
        assert!(mode_in("# set editing-mode vi\nset bell-style none\n") == EditMode::Emacs);
        assert!(mode_in("set editing-mode emacs\n  set editing-mode vi\n") == EditMode::Vi);
    }
}
