//! Paths of source files, as in debug information and as users type them.

use super::sections::SectionReader;
use crate::kernel::Name;
use gimli::{AttributeValue, Dwarf, Unit};

/// The longest path, in bytes.
const LONGEST: usize = 16 * 1024;

/// Returns the path of a unit's file: compilation directory, directory and name, as far as they are known. `None` if
/// there is no such file.
pub(super) fn of_file(dwarf: &Dwarf<SectionReader<'_>>, unit: &Unit<SectionReader<'_>>, number: u64) -> Option<Name> {
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

/// Returns the files of a unit, each with number and path; `None` in place of the path if the file name is not wanted.
pub(super) fn files<'u>(
    dwarf: &'u Dwarf<SectionReader<'_>>,
    unit: &'u Unit<SectionReader<'_>>,
    wants: impl Fn(&[u8]) -> bool + 'u,
) -> impl Iterator<Item = Option<(u64, Name)>> + 'u {
    let header = unit.line_program.as_ref().map(|program| program.header());
    header.into_iter().flat_map(|header| (u64::from(header.version() <= 4)..).zip(header.file_names())).map(
        move |(number, file)| {
            let name = text(dwarf, unit, file.path_name()).unwrap_or_default();
            let path = wants(file_name(name)).then(|| of_file(dwarf, unit, number));
            Some((number, path.flatten()?))
        },
    )
}

/// Returns the string of an attribute.
pub(super) fn text<'a>(
    dwarf: &Dwarf<SectionReader<'a>>,
    unit: &Unit<SectionReader<'a>>,
    value: AttributeValue<SectionReader<'a>>,
) -> Option<&'a [u8]> {
    dwarf.attr_string(unit, value).ok().map(|text| text.slice())
}

pub(super) fn push(path: &mut Vec<u8>, part: &[u8]) {
    if path.len().saturating_add(part.len()) > 2 * LONGEST {
        // The path is too long to be shown, and must remain too long.
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

/// Returns whether `wanted` selects `path`: the last parts are equal, raw or as displayed.
pub(super) fn is_meant(path: &Name, wanted: &[u8]) -> bool {
    ends_with(path.as_bytes(), wanted) || (is_escaped(wanted) && ends_with(path.escaped().as_bytes(), wanted))
}

/// Returns whether `wanted` may select a file with this `name`.
pub(super) fn may_be_meant(name: &[u8], wanted: &[u8]) -> bool {
    is_escaped(wanted) || file_name(name) == file_name(wanted)
}

/// Returns whether the name may be escaped, so that it contains a backslash.
fn is_escaped(wanted: &[u8]) -> bool {
    wanted.contains(&b'\\')
}

fn ends_with(path: &[u8], wanted: &[u8]) -> bool {
    let wanted = wanted.strip_prefix(b"./").unwrap_or(wanted);
    path.strip_suffix(wanted)
        .is_some_and(|before| before.is_empty() || (before.ends_with(b"/") && !wanted.starts_with(b"/")))
        && !wanted.is_empty()
}

/// Returns the ends of `path` that begin with `begun`: without a slash in `begun` only the last part, otherwise as many
/// parts as needed.
pub(super) fn ends_begun<'a>(path: &'a str, begun: &str) -> impl Iterator<Item = &'a str> {
    let last = path.rfind('/').map_or(0, |slash| slash + 1);
    let first = if begun.contains('/') { 0 } else { last };
    let starts = path.match_indices('/').map(|(slash, _)| slash + 1);
    [0].into_iter()
        .chain(starts)
        .filter(move |&start| start >= first && start <= last)
        .filter_map(|start| path.get(start..))
        .filter(move |end| end.starts_with(begun) && !end.is_empty())
}

/// Returns the part after the last slash.
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
            let is_found = is_meant(&Name::from(path), wanted.as_bytes());
            assert_eq!(is_found, expected, "{wanted} for {path}");
        }
    }

    #[test]
    fn hostile_names_match_raw_and_as_displayed() {
        let path = Name::new(b"/src/esc\x1b\xff.c");
        let displayed = path.to_string();
        let displayed = displayed.strip_prefix("/src/").expect("the folder");
        for wanted in [&b"esc\x1b\xff.c"[..], displayed.as_bytes()] {
            assert!(is_meant(&path, wanted) && may_be_meant(path.as_bytes(), wanted));
        }
        assert!(!is_meant(&path, b"\\x1b.c"));
    }

    #[test]
    fn ends_are_offered_by_their_prefix() {
        for (begun, expected) in [
            ("ma", &["main.c"][..]),
            ("main.c", &["main.c"]),
            ("src", &[]),
            ("src/", &["src/a/src/main.c", "src/main.c"]),
            ("src/m", &["src/main.c"]),
            ("/s", &["/src/a/src/main.c"]),
            ("/m", &[]),
        ] {
            let ends: Vec<&str> = ends_begun("/src/a/src/main.c", begun).collect();
            assert_eq!(ends, expected, "{begun}");
        }
        assert_eq!(ends_begun("main.c", "m").collect::<Vec<_>>(), ["main.c"]);
        assert_eq!(ends_begun("src/", "").count(), 0);
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
