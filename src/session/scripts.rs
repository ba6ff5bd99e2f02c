//! The built-in command files, and the help of command files.

use super::failure::words;
use super::interrupt::Interrupts;
use super::lines::{self, Lines};
use std::path::Path;

/// Name and text, in the order of `--list-scripts`. `-x :NAME` runs one.
pub static SCRIPTS: &[(&str, &str)] = &[
    ("cow", include_str!("../../scripts/cow.pmdb")),
    ("dma", include_str!("../../scripts/dma.pmdb")),
    ("fork-cost", include_str!("../../scripts/fork-cost.pmdb")),
    ("guard-stacks", include_str!("../../scripts/guard-stacks.pmdb")),
    ("huge-coverage", include_str!("../../scripts/huge-coverage.pmdb")),
    ("hugepages", include_str!("../../scripts/hugepages.pmdb")),
    ("leak", include_str!("../../scripts/leak.pmdb")),
    ("same-page", include_str!("../../scripts/same-page.pmdb")),
    ("swapped", include_str!("../../scripts/swapped.pmdb")),
    ("tour", include_str!("../../scripts/tour.pmdb")),
];

/// Whether a path is the name of a built-in file, such as `:dma`.
pub(super) fn is_built_in(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().starts_with(b":")
}

/// The text of the built-in file that a path like `:dma` names. `Err` lists the built-in files.
pub(super) fn built_in(path: &Path) -> Option<Result<&'static str, String>> {
    let name = path.to_str()?.strip_prefix(':')?;
    let found = SCRIPTS.iter().find(|(script, _)| *script == name);
    Some(found.map(|(_, text)| *text).ok_or_else(|| {
        let names: Vec<&str> = SCRIPTS.iter().map(|(name, _)| *name).collect();
        format!("no command file :{name} is built in; there are :{}", names.join(" :"))
    }))
}

/// A line for each built-in file: its name and the first line of its help.
pub fn list_of_scripts() -> String {
    let line = |(name, text): &(&str, &str)| {
        let help = help_of(text.lines());
        let first = help.lines().next().unwrap_or_default();
        format!(":{name:<14} {first}\n")
    };
    SCRIPTS.iter().map(line).collect()
}

/// The comments that a command file begins with: its help.
///
/// # Errors
/// It cannot be read, in words.
pub fn help_of_file(path: &Path) -> Result<String, String> {
    if let Some(built_in) = built_in(path) {
        return built_in.map(|text| help_of(text.lines()));
    }
    let said = |why: String| format!("{} cannot be read: {why}", path.display());
    let file = lines::open(path).map_err(said)?;
    let interrupts = Interrupts::listen().map_err(|error| said(words(error)))?;
    let mut lines = Lines::new(file);
    let mut comments = Vec::new();
    while let Ok(Some(line)) = lines.next(&interrupts) {
        match line.text {
            Ok(text) if text.starts_with('#') => comments.push(text),
            _ => break,
        }
    }
    match help_of(comments.iter().map(String::as_str)) {
        help if help.is_empty() => Err(format!("{} begins with no comment", path.display())),
        help => Ok(help),
    }
}

/// The first comments without their marks, and without the `#!` line.
fn help_of<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines
        .take_while(|line| line.starts_with('#'))
        .filter(|line| !line.starts_with("#!"))
        .map(|line| line.trim_start_matches('#'))
        .map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_comments_are_the_help() {
        let text = "#!/usr/bin/env -S pmdb -batch -x\n# One.\n#\n#     pmdb 1\necho\n# no";
        assert_eq!(help_of(text.lines()), "One.\n\n    pmdb 1\n");
    }

    #[test]
    fn every_built_in_file_has_a_help_and_is_listed() {
        let list = list_of_scripts();
        for (name, text) in SCRIPTS {
            assert!(help_of(text.lines()).lines().count() > 2, "{name}");
            assert!(list.contains(&format!(":{name} ")), "{list}");
            assert!(!list.contains(":\n"), "{list}");
            assert!(matches!(built_in(Path::new(&format!(":{name}"))), Some(Ok(_))));
        }
        assert!(matches!(built_in(Path::new(":none")), Some(Err(message)) if message.contains(":dma")));
        assert_eq!(built_in(Path::new("dma")), None);
    }
}
