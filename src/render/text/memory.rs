//! What memory holds: rows as gdb's `x` has them.

use super::block::region_file_name;
use super::words;
use crate::kernel::{Kind, State};
use crate::render::line::Line;
use crate::render::theme::Role;
use crate::report::{RegionBrief, Why};

/// `<not resident: untouched>`
pub fn absent(line: &mut Line, state: State, kind: Option<Kind>, unread: Option<&str>, uncertain: bool) {
    let word = state.word();
    let told = match (unread, kind) {
        (Some(why), _) => format!("<not read: {why}>"),
        // Mapped device memory: a read could be a command to the device.
        (None, _) if state == State::PfnMapped => format!("<not read: {word}>"),
        (None, _) if uncertain => format!("<not resident: most likely {word}>"),
        (None, Some(kind @ (Kind::Cached | Kind::NotCached | Kind::PastEnd | Kind::MaybeSwapped))) => {
            format!("<not resident: {word}, {}>", kind.word())
        }
        (None, _) => format!("<not resident: {word}>"),
    };
    line.push(words::state_role(state), told);
}

pub fn of_region(line: &mut Line, region: &RegionBrief) {
    let name = region_file_name(&region.name).1;
    line.push(Role::Dim, format!("  {name} {}", region.perms));
}

/// Marks a word of the page cache that the process has not mapped.
pub fn of_file(line: &mut Line, source: Option<&str>) {
    if source == Some("file") {
        line.push(Role::Note, " (file)");
    }
}

pub fn is_uncertain(why: &Why) -> bool {
    why.of("state").is_some()
}
