//! Paths of source files: how debug information spells them, and how people do.

use super::sections::Bytes;
use crate::kernel::Name;
use gimli::{AttributeValue, Dwarf, Unit};

/// Longer paths are not put together.
const LONGEST: usize = 16 * 1024;

/// The path of a file of a unit: folder of the compilation, folder, name, as far as they are told. `None` if there is no such file.
pub(super) fn of_file(
    dwarf: &Dwarf<Bytes<'_>>,
    unit: &Unit<Bytes<'_>>,
    number: u64,
) -> Option<Name> {
    let header = unit.line_program.as_ref()?.header();
    // Before DWARF 5 files count from 1, and 0 means that there is none.
    if header.version() <= 4 && number == 0 {
        return None;
    }
    let file = header.file(number)?;
    let mut path = Vec::new();
    if let Some(folder) = &unit.comp_dir {
        push(&mut path, folder.slice());
    }
    if let Some(folder) = file.directory(header) {
        push(&mut path, text(dwarf, unit, folder)?);
    }
    push(&mut path, text(dwarf, unit, file.path_name())?);
    (!path.is_empty() && path.len() <= LONGEST).then(|| Name::new(path))
}

/// The string that an attribute stands for.
pub(super) fn text<'a>(
    dwarf: &Dwarf<Bytes<'a>>,
    unit: &Unit<Bytes<'a>>,
    value: AttributeValue<Bytes<'a>>,
) -> Option<&'a [u8]> {
    dwarf.attr_string(unit, value).ok().map(|text| text.slice())
}

pub(super) fn push(path: &mut Vec<u8>, part: &[u8]) {
    if path.len().saturating_add(part.len()) > 2 * LONGEST {
        // Too long to be shown; it stays too long.
        path.resize(LONGEST + 1, b'/');
        return;
    }
    if part.starts_with(b"/") {
        path.clear();
    } else if !path.is_empty() && !path.ends_with(b"/") && !part.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(part);
}

/// Whether somebody who writes `wanted` means `path`: its last parts are the same.
pub(super) fn is_meant(path: &[u8], wanted: &[u8]) -> bool {
    let wanted = wanted.strip_prefix(b"./").unwrap_or(wanted);
    path.strip_suffix(wanted).is_some_and(|before| {
        before.is_empty() || (before.ends_with(b"/") && !wanted.starts_with(b"/"))
    }) && !wanted.is_empty()
}

/// The part behind the last slash.
pub(super) fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_path_is_enough() {
        for (path, wanted, expected) in [
            ("/src/server.c", "server.c", true),
            ("/src/server.c", "src/server.c", true),
            ("/src/server.c", "/src/server.c", true),
            ("/src/server.c", "./server.c", true),
            ("/src/server.c", "erver.c", false),
            ("/src/server.c", "", false),
            ("server.c", "server.c", true),
            ("server.c", "/server.c", false),
            ("/a/src/server.c", "/src/server.c", false),
        ] {
            let is = is_meant(path.as_bytes(), wanted.as_bytes());
            assert_eq!(is, expected, "{wanted} for {path}");
        }
    }

    #[test]
    fn parts_are_put_together() {
        let join = |parts: &[&str]| {
            let mut path = Vec::new();
            for part in parts {
                push(&mut path, part.as_bytes());
            }
            String::from_utf8(path).expect("text")
        };
        assert_eq!(join(&["/build", "src", "a.c"]), "/build/src/a.c");
        assert_eq!(join(&["/build", "/usr/include", "a.h"]), "/usr/include/a.h");
        assert_eq!(join(&["/build", "", "a.c"]), "/build/a.c");
        let long = "x".repeat(LONGEST);
        assert!(join(&["/", &long, &long, &long, "a.c"]).len() > LONGEST);
    }
}
