//! What a state, a kind or a field is, in words for a person.

use crate::kernel::words::{Worded, fragment};
use crate::kernel::{Key, Kind, PageFlags, State};
use crate::render::theme::Role;
use crate::report::{FrameClass, FrameWords, RegionBrief};
use std::borrow::Cow;

/// What mlock does for a page.
pub const MLOCK_KEEPS: &str = "mlock keeps a page in memory, but not in its frame";

/// The role of a state's word.
pub fn state_role(state: State) -> Role {
    match state {
        State::Present => Role::Good,
        State::Swapped | State::UffdWp | State::Migrating | State::Device => Role::Warn,
        State::Guard | State::Poisoned | State::Hwpoison | State::Unmapped => Role::Bad,
        State::PfnMapped | State::Outside => Role::Note,
        State::Untouched => Role::Dim,
    }
}

/// The note on a state that is only the likeliest.
pub const UNCERTAIN: &str = "most likely; the other possible states are below";

/// The meaning of a state or a kind, in the form that follows its word.
pub fn meaning(of: impl Worded) -> Cow<'static, str> {
    fragment(of.about()).into()
}

/// The meaning of the state of a page of `region`. Only in `[vsyscall]` one beyond user space is the vsyscall page.
pub fn state_in(state: State, region: Option<&RegionBrief>) -> Cow<'static, str> {
    match (state, region) {
        (State::Outside, None) => "beyond the page map, which ends with user space".into(),
        _ => meaning(state),
    }
}

/// What touching an untouched page would do.
pub fn untouched(kind: Kind) -> Cow<'static, str> {
    let does = match kind {
        Kind::Anonymous => "nothing there yet: `explain` predicts what an access does",
        Kind::File => "nothing mapped here: an access maps a page of the file",
        Kind::Shmem => "nothing mapped here: an access maps a page of the shared memory",
        Kind::Hugetlb => "nothing mapped here: an access maps the page of its file, or one from the hugetlb pool",
        Kind::Secret => "nothing mapped here: an access maps a page of the secret memory",
        Kind::DriverMemory => "nothing mapped here: the driver may map a page of its own",
        other => return meaning(other),
    };
    does.into()
}

/// A map count; one that may be an average over a large folio is marked.
pub fn map_count(times: impl std::fmt::Display, average: bool) -> String {
    format!("{}{times}", if average { "~" } else { "" })
}

/// How often a frame is mapped, and how often of that by pmdb itself.
pub fn times(times: u64, words: &FrameWords) -> String {
    let all = match (times, words.map_count_average) {
        (1, false) => "once".to_owned(),
        (1, true) => "~1 time (an average over its folio)".to_owned(),
        (times, true) => format!("~{times} times (an average over its folio)"),
        (times, false) => format!("{times} times"),
    };
    match words.own_mappings {
        None | Some(0) => all,
        Some(1) => format!("{all}, once by pmdb itself"),
        Some(own) => format!("{all}, {own} times by pmdb itself"),
    }
}

/// The kernel keeps no count for the zero page, however many page tables hold it.
pub const ZEROS_ARE_NOT_COUNTED: &str = "not counted, as always for the zero page";

/// The place of a field in blocks.
pub fn rank(name: &str) -> usize {
    const ORDER: [&str; 18] = [
        "physical",
        "pfn",
        "kind",
        "entry",
        "swap",
        "flags",
        "flags_raw",
        "map_count",
        "exclusive",
        "soft_dirty",
        "huge",
        "zone",
        "node",
        "iomem",
        "cgroup",
        "cgroup_path",
        "region",
        "symbol",
    ];
    ORDER.iter().position(|field| *field == name).unwrap_or(ORDER.len())
}

/// The end of the names of [fields](field) that other rows or the sum may have. Of several names it is said once.
pub const IN_ROWS: &str = " in some rows";

/// The heading of a column of groups by this key. Of the variables in a page, only the one that it begins in has it.
pub fn key_heading(by: &'static str) -> &'static str {
    if by == "symbol" { PAGE_BEGINS_IN } else { by }
}

/// The heading of a column of groups, of which single flags have no word.
pub fn group_heading(by: &str) -> &'static str {
    let word = Key::all().map(Key::word).find(|word| *word == by);
    key_heading(word.unwrap_or(if by == "class" { "class" } else { "flag" }))
}

/// The heading of a column of symbols in which pages begin.
pub const PAGE_BEGINS_IN: &str = "page begins in";

/// What a field of a record is called in text.
pub fn field(name: &str) -> &str {
    match name {
        "pfn" => "frame",
        "flags_raw" => "flags",
        "map_count" => "map count",
        "kernel_record" => "who holds or pins it",
        "kernel_record.file_page.path" => "path",
        "kernel_record.file_page.filesystem" => "filesystem",
        "kernel_record.free_block.order" | "kernel_record.free_block.head" => "free block",
        "kernel_record.slab.cache" | "kernel_record.slab.object_bytes" => "slab cache",
        "table_entry" => "page-table entry",
        "movable" => "whether it may move",
        "own_mappings" => "mappings by pmdb",
        "several" => "pages with several mappings here",
        "with_pmdb" => "mapped only here and by pmdb",
        "alone" => "uss",
        "private" => "exclusive",
        "ends" => "freed at exit",
        "to_copy" => "to copy",
        // Of all rows together, smaps may show it.
        "lazily_freed" => "lazily freed in some rows",
        "locked" => "locked in some rows",
        "dirty" => "dirty in some rows",
        "lazy_free" => "LazyFree",
        "page_tables" => "page tables",
        "free_blocks" => "free blocks",
        "soft_dirty" => "soft-dirty",
        "huge" => "huge mapping",
        "page_size" => "page size",
        "longest_run_bytes" => "longest run",
        "vm_flags" => "VmFlags",
        "cgroup_path" => "cgroup path",
        "file_offset" => "file offset",
        other => other,
    }
}

/// Flags by name. The kernel sets THP on every large folio, however it is mapped. On a page that is not PMD-mapped the
/// flag is shown as `large_folio`, so that it is not taken for `pmd_mapped`.
pub fn flag_names(flags: PageFlags, pmd_mapped: bool) -> Vec<Cow<'static, str>> {
    let mut names = flags.names();
    if let [thp] = PageFlags::THP.names().as_slice()
        && !pmd_mapped
    {
        for name in names.iter_mut().filter(|name| *name == thp) {
            *name = "large_folio".into();
        }
    }
    names
}

/// A class of frames in a few words.
pub fn frame_class(class: FrameClass) -> &'static str {
    match class {
        FrameClass::Anonymous => "anonymous memory",
        FrameClass::Merged => "merged (KSM)",
        FrameClass::SharedMemory => "shared memory",
        FrameClass::PageCache => "page cache",
        FrameClass::Hugetlb => "hugetlb pools",
        FrameClass::Driver => "mapped by drivers",
        FrameClass::Slab => "slab objects",
        FrameClass::PageTables => "page tables",
        FrameClass::Zero => "zero page",
        FrameClass::Free => "free",
        FrameClass::Offline => "offline",
        FrameClass::Poisoned => "hardware errors",
        FrameClass::Reserved => "reserved at start",
        FrameClass::NoMark => "without a mark",
    }
}
