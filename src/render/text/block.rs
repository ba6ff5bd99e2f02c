//! Blocks of labelled lines, and the parts that several blocks and lines share.

use crate::kernel::{Kind, Name, State, maps};
use crate::render::text::lines::{Line, Lines, VALUE};
use crate::render::text::words;
use crate::render::theme::Role;
use crate::render::units::{count, size};
use crate::report::{CgroupPath, FolioReport, FramePlace, Hex, Reason, RegionBrief, SwapSlot, SymbolBrief, Why};
use std::borrow::Cow;

/// The column of remarks behind values: the longest values are 64-bit numbers and `present, private_copy`.
pub const REMARK: usize = VALUE + 23;

/// `, page 1 of 16`, if an answer is about the first page of a range.
pub fn first_page(line: &mut Line, range_pages: Option<u64>) {
    if let Some(pages) = range_pages {
        line.word(", ", Role::Plain, format!("page 1 of {}", count(pages)));
    }
}

/// A symbol as gdb shows it: `<malloc+16>`.
pub fn symbol(line: &mut Line, symbol: &SymbolBrief) {
    line.push(Role::Symbol, symbol_text(symbol));
}

/// The same as plain text.
pub fn symbol_text(symbol: &SymbolBrief) -> String {
    format!("<{symbol}>")
}

/// Where a row lies: `<counter+16>`, or `<counter+16> to <table+31>` if it goes on beyond the symbol that it begins in.
pub fn symbols_text(first: Option<&SymbolBrief>, last: Option<&SymbolBrief>) -> Option<String> {
    let is_same = |a: &SymbolBrief, b: &SymbolBrief| a.name == b.name && a.module == b.module;
    Some(match (first, last) {
        (None, None) => return None,
        (Some(first), Some(last)) if is_same(first, last) => symbol_text(first),
        (Some(first), Some(last)) => format!("{} to {}", symbol_text(first), symbol_text(last)),
        (Some(first), None) => format!("begins in {}", symbol_text(first)),
        (None, Some(last)) => format!("up to {}", symbol_text(last)),
    })
}

/// The name of a region, or words for a region without one.
pub fn region_name(name: &Name) -> (Role, Cow<'_, str>) {
    name_or_dim(name.escaped())
}

/// The name of what a region maps. `is_without_path` is whether it is memory to which only the kernel gives a path.
pub fn mapped_name(name: &Name, is_without_path: bool) -> (Role, Cow<'_, str>) {
    if is_without_path && name.as_bytes() == b"/dev/zero" {
        return (Role::Dim, Cow::Borrowed(SHARED_ANONYMOUS));
    }
    region_name(name)
}

/// The same, with only the last part of a path.
pub fn region_file_name(name: &Name) -> (Role, Cow<'_, str>) {
    // `zero` would read as a zero page.
    if name.as_bytes() == b"/dev/zero" {
        return region_name(name);
    }
    name_or_dim(name.escaped_file_name())
}

/// The name of what a region maps, with only the last part of a path.
pub fn mapped_file_name(name: &Name, is_without_path: bool) -> (Role, Cow<'_, str>) {
    match mapped_name(name, is_without_path) {
        shared @ (_, Cow::Borrowed(SHARED_ANONYMOUS)) => shared,
        _ => region_file_name(name),
    }
}

fn name_or_dim(name: Cow<'_, str>) -> (Role, Cow<'_, str>) {
    match name.strip_suffix(DELETED) {
        _ if name.is_empty() => (Role::Dim, Cow::Borrowed(ANONYMOUS)),
        // The file itself is called so. The mark of a deleted one is printed after its name.
        Some(before) => (Role::Name, Cow::Owned(format!("{before}\\x20(deleted)"))),
        None => (Role::Name, name),
    }
}

/// `after worker`: what follows the words for a region without a name, if it lies after the data of a file.
pub fn after_file(file: &Name) -> String {
    format!("after {}", file.escaped_file_name())
}

/// The mark after the name of a file that was deleted.
pub const DELETED: &str = " (deleted)";

/// `, inode 1030`: which object, after a name that others may have too.
pub fn object_number(name: &[u8], number: Option<u64>) -> String {
    let word = if name.starts_with(maps::SEGMENT) { "shmid" } else { "inode" };
    number.map_or_else(String::new, |number| format!(", {word} {number}"))
}

/// What stands for a region without a name.
pub const ANONYMOUS: &str = "(anonymous)";

/// What stands for shared memory without a name. The kernel gives it that of a device, `/dev/zero`.
pub const SHARED_ANONYMOUS: &str = "(shared anonymous)";

/// A region: its range as the prompt takes it, rights, offset in the file, name.
pub fn region(line: &mut Line, region: &RegionBrief) {
    line.push(Role::Address, format!("{}..{}", region.start, region.end))
        .plain("  ")
        .plain(region.perms.to_string())
        .plain("  ");
    let (role, name) = mapped_name(&region.name, region.without_path);
    line.push(role, name);
    if region.deleted {
        line.push(Role::Warn, DELETED);
    }
    if region.offset != Hex(0) {
        let offset = format!("file offset {:#x}", region.offset.0);
        line.word("  ", Role::Plain, offset);
    }
}

/// A slot of a swap area: where it lies in the area, and which that is. `number` is the word for its number.
pub fn swap(lines: &mut Lines, slot: &SwapSlot, number: &str) {
    let line = lines.field("swap");
    line.plain(format!("slot {:#x}", slot.offset)).indent_at(REMARK).plain(format!("{number} {}", slot.kind));
    if let Ok(device) = &slot.device {
        line.plain(", ").push(Role::Name, device);
    }
    if let Some(byte) = slot.byte_offset {
        line.plain(format!(", at byte {byte:#x}"));
    }
}

/// The folio that a frame belongs to, if it has more pages than one.
pub fn folio(lines: &mut Lines, folio: &FolioReport, huge: Option<bool>) {
    if folio.order == 0 {
        return;
    }
    let pages = 1u64 << folio.order;
    let line = lines.field("folio");
    line.plain(format!("{}, order {}", size(folio.bytes), folio.order))
        .indent_at(REMARK)
        .plain("frame ")
        .push(Role::Frame, folio.head)
        .plain(format!(" + {} of {pages}", folio.index));
    if let Some(mapping) = folio.mapped {
        let text = match (mapping.mapped_pages == pages, huge) {
            (true, Some(true)) => "mapped by one entry".to_owned(),
            (true, Some(false)) => "all of them mapped, page by page".to_owned(),
            (true, None) => "all of them mapped".to_owned(),
            (false, _) => format!("{} of them mapped in this region", count(mapping.mapped_pages)),
        };
        line.word(", ", Role::Dim, text);
        if !mapping.aligned {
            line.prose(Role::Note, "(its virtual address is not aligned to its size)");
        }
    }
}

/// Where a frame lies, and its cgroup; no line if nothing is known.
pub fn place(lines: &mut Lines, place: &FramePlace) {
    let resources = place.iomem.as_ref().ok().map(|names| {
        let names = names.iter().map(Name::to_string);
        names.collect::<Vec<_>>().join(" > ")
    });
    let cgroup = match (&place.cgroup, &place.cgroup_path) {
        (Ok(0), _) => Some("charged to no cgroup".to_owned()),
        (_, Ok(gone @ CgroupPath::Gone(_))) => Some(format!("cgroup {gone} (removed, or not shown here)")),
        (_, Ok(path)) => Some(format!("cgroup {path}")),
        (Ok(inode), Err(_)) => Some(format!("cgroup inode {inode}")),
        (Err(_), Err(_)) => None,
    };
    let parts = [
        place.zone.as_ref().ok().map(|zone| format!("zone {zone}")),
        place.node.as_ref().ok().map(|node| format!("node {node}")),
        resources,
        cgroup,
    ];
    if parts.iter().all(Option::is_none) {
        return;
    }
    let line = lines.field("memory");
    for part in parts.into_iter().flatten() {
        line.word(", ", Role::Plain, part);
    }
}

/// Whether [`place`] already explains a missing field: the frame is charged to no cgroup.
pub fn is_place_said(place: &FramePlace, field: &str) -> bool {
    field == "cgroup_path" && place.cgroup == Ok(0)
}

/// The word that stands for a missing value: `hidden`, `?` (not known here), `-` (there is none).
pub fn word_for_missing(reason: Option<&Reason>) -> (Role, &'static str) {
    match reason {
        Some(Reason::FrameHidden) => (Role::Warn, "hidden"),
        Some(Reason::NotApplicable(_)) => (Role::Dim, "-"),
        Some(Reason::NotPermitted { .. } | Reason::NotOnThisKernel(_) | Reason::NotInFile(_) | Reason::Changed) => {
            (Role::Warn, "?")
        }
        None => (Role::Dim, "-"),
    }
}

/// `<not resident: untouched>`
pub fn absent(line: &mut Line, state: State, kind: Option<Kind>, unread: Option<&str>, uncertain: bool) {
    let word = state.word();
    let mark = match (unread, kind) {
        (Some(why), _) => format!("<not read: {why}>"),
        // Mapped device memory: a read could be a command to the device.
        (None, _) if state == State::PfnMapped => format!("<not read: {word}>"),
        (None, _) if uncertain => format!("<not resident: most likely {word}>"),
        (None, Some(kind @ (Kind::Cached | Kind::NotCached | Kind::PastEnd | Kind::MaybeSwapped))) => {
            format!("<not resident: {word}, {}>", kind.word())
        }
        (None, _) => format!("<not resident: {word}>"),
    };
    line.push(words::state_role(state), mark);
}

pub fn of_region(line: &mut Line, region: &RegionBrief) {
    let name = region_file_name(&region.name).1;
    line.push(Role::Dim, format!("  {name} {}", region.perms));
}

/// Marks a word of the page cache that the process has not mapped.
pub fn of_file(line: &mut Line, is_of_file: bool) {
    if is_of_file {
        line.push(Role::Note, " (file)");
    }
}

pub fn is_uncertain(why: &Why) -> bool {
    why.of("state").is_some()
}
