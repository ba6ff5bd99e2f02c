//! The cells of records that are rows.

use super::block::{ANONYMOUS, missing, region_file_name, region_name, symbol_text};
use super::style::Style;
use super::tables::{self, SHARE, Table, is_reversed};
use super::words;
use crate::kernel::{Kind, Name, PageFlags, State};
use crate::render::columns::{Cell, Words};
use crate::render::theme::Role;
use crate::render::units::count;
use crate::report::*;

pub fn run(run: &Run) -> Vec<Cell<'_>> {
    vec![
        Cell::new(run.start),
        Cell::new(run.end),
        Cell::size(run.end.get().saturating_sub(run.start.get())),
        Cell::new(count(run.pages)),
        fact(&run.physical, |physical| Cell::new(*physical)),
        fact(&run.pfn, |frame| Cell::new(*frame)),
        state(run.state),
    ]
}

pub fn pages(pages: &Pages) -> Vec<Cell<'_>> {
    let (role, name) = match &pages.region {
        Some(name) => region_file_name(name),
        None => (Role::Dim, "-".into()),
    };
    vec![
        Cell::new(pages.start),
        Cell::new(pages.end),
        Cell::size(pages.end.get().saturating_sub(pages.start.get())),
        Cell::new(count(pages.pages)),
        state(pages.state),
        match (&pages.kind, &pages.huge) {
            // There is one page of zeros: the word says so.
            (Ok(kind), _) if pages.frames.is_some() && !is_of_zeros(*kind) => {
                let frames = match pages.frames {
                    Some(frames @ 2..) => format!("{} frames", count(frames)),
                    _ => "one frame".to_owned(),
                };
                Cell::new(format!("{}, {frames}", kind.word()))
            }
            (Ok(kind @ (Kind::Anonymous | Kind::File | Kind::Shmem)), Ok(true)) => {
                Cell::new(format!("{} huge", kind.word()))
            }
            (Ok(kind), _) => Cell::new(kind.word()),
            (Err(reason), _) => missing_cell(reason),
        },
        fact(&pages.pfn, |frame| Cell::new(*frame)),
        map_count(&pages.words),
        Cell::of(role, name),
        fact(&pages.words.flags, |flags| {
            flags_cell(*flags, pages.huge == Ok(true))
        }),
    ]
}

fn is_of_zeros(kind: Kind) -> bool {
    matches!(kind, Kind::Zero | Kind::HugeZero)
}

pub fn frames(frames: &Frames) -> Vec<Cell<'_>> {
    let unknown = || Cell::of(Role::Warn, "?");
    vec![
        Cell::new(frames.pfn),
        frames.physical.map_or_else(unknown, Cell::new),
        frames.bytes.map_or_else(unknown, Cell::size),
        Cell::new(count(frames.frames)),
        map_count(&frames.words),
        fact(&frames.zone, Cell::new),
        fact(&frames.node, |node| Cell::new(node.to_string())),
        fact(&frames.words.flags, |flags| flags_cell(*flags, false)),
    ]
}

pub fn group(group: &Group) -> Vec<Cell<'_>> {
    let second = group.second_by.zip(group.second_key.as_deref());
    let keys = std::iter::once((group.by, group.key.as_str())).chain(second);
    let mut keys: Vec<Cell<'_>> = keys.map(|(by, key)| key_cell(by, key)).collect();
    if is_reversed(group.by, group.second_by) {
        keys.reverse();
    }
    let sizes = [Cell::new(count(group.pages)), Cell::size(group.bytes)];
    sizes.into_iter().chain(keys).collect()
}

fn key_cell<'a>(by: &str, key: &'a str) -> Cell<'a> {
    let cell = match (by, State::from_word(key)) {
        ("region", _) if key.is_empty() => Cell::of(Role::Dim, ANONYMOUS),
        ("state", Some(state)) => Cell::of(words::state_role(state), key),
        _ => Cell::of(Role::Plain, key),
    };
    match (by, key.split_once(" /")) {
        ("region", Some((range, path))) => {
            let file = path.rsplit('/').next().unwrap_or(path);
            cell.or(format!("{range} {file}"))
        }
        ("flags", _) => cell.or(key.replace(',', ", ")),
        _ => cell,
    }
}

pub fn summary(row: &SummaryRow) -> Vec<Cell<'_>> {
    let none = || Cell::of(Role::Dim, "-");
    vec![
        Cell::new(count(row.pages)),
        Cell::size(row.bytes),
        row.flags.as_ref().map_or_else(
            |_| none(),
            |flags| Cell::new(format!("{:#018x}", flags.bits())),
        ),
        row.letters.as_ref().map_or_else(none, Cell::new),
        match (&row.flags, row.state) {
            // Beside page-types' letters, under the kernel's names.
            (Ok(flags), _) => flags_cell(*flags, true),
            (Err(_), Some(State::Present)) => Cell::of(Role::Warn, "?"),
            (Err(_), Some(state)) => Cell::of(words::state_role(state), state.word()),
            (Err(_), None) => none(),
        },
    ]
}

pub fn mapper<'a>(style: &Style, mapper: &'a Mapper) -> Vec<Cell<'a>> {
    let region = mapper.region.as_ref();
    vec![
        Cell::new(mapper.pid.to_string()),
        Cell::new(&mapper.name),
        Cell::new(mapper.address),
        Cell::new(count(mapper.pages)),
        region.map_or(Cell::new("-"), |region| Cell::new(region.perms.letters())),
        match region {
            Some(region) => named_region(style, &region.name, region.deleted),
            None => Cell::of(Role::Dim, "gone"),
        },
        match &mapper.symbol {
            Some(symbol) => Cell::new(symbol_text(symbol)),
            None => Cell::of(Role::Dim, "-"),
        },
    ]
}

pub fn symbol(symbol: &SymbolReport) -> Vec<Cell<'_>> {
    vec![
        Cell::new(symbol.address),
        match symbol.size {
            0 => Cell::of(Role::Dim, "-"),
            bytes => Cell::new(count(bytes)),
        },
        Cell::new(symbol.kind),
        Cell::new(&symbol.module),
        Cell::new(&symbol.name),
    ]
}

pub fn module<'a>(style: &Style, module: &'a ModuleReport) -> Vec<Cell<'a>> {
    let none = || Cell::of(Role::Dim, "-");
    let remark = match (&module.debug_file, module.why.of("symbols")) {
        (Some(path), _) => Cell::of(Role::Name, path),
        (None, Some(reason)) => Cell::of(Role::Warn, reason.cause()),
        // A module with only exported symbols shows why.
        (None, None) if module.answers == Some("dynamic") => {
            match (module.why.of("answers"), module.why.of("debug_file")) {
                (Some(reason), _) => Cell::of(Role::Warn, reason.cause()),
                (None, Some(reason)) => Cell::of(Role::Dim, reason.cause()),
                (None, None) => none(),
            }
        }
        _ => none(),
    };
    vec![
        Cell::new(module.start),
        Cell::new(module.end),
        module
            .symbols
            .map_or_else(none, |symbols| Cell::new(count(symbols))),
        module.answers.map_or_else(none, Cell::new),
        module.build_id.as_ref().map_or_else(none, Cell::new),
        named_region(style, &module.name, module.deleted),
        remark,
    ]
}

/// With the share of each page, where that was asked for.
pub fn region<'a>(style: &Style, region: &'a RegionReport) -> (Table, Vec<Cell<'a>>) {
    let part = |bytes: Option<u64>, field| match bytes {
        Some(0) => Cell::of(Role::Dim, Words::Size(0)),
        Some(bytes) => Cell::size(bytes),
        None => absent(&region.why, field, State::Present),
    };
    let mut cells = vec![
        Cell::new(region.start),
        Cell::new(region.end),
        Cell::new(region.perms.letters()),
        Cell::size(region.size),
        part(region.present, "present"),
        part(region.swapped, "swapped"),
        part(region.shared, "shared"),
        part(region.private, "private"),
        part(region.huge, "huge"),
        named_region(style, &region.name, region.deleted),
    ];
    if region.pss.is_some() || region.why.of("pss").is_some() {
        cells.insert(SHARE, part(region.pss, "pss"));
        return (tables::SHARES, cells);
    }
    (tables::REGIONS, cells)
}

/// The name of a region, without its folder if there is no room for that.
fn named_region<'a>(style: &Style, name: &'a Name, deleted: bool) -> Cell<'a> {
    let deleted = if deleted { " (deleted)" } else { "" };
    let (role, text) = region_name(name);
    let cell = Cell::of(role, text + deleted);
    match style.width {
        Some(_) => cell.or(region_file_name(name).1 + deleted),
        // Nothing is cut.
        None => cell,
    }
}

/// With what the kernel counts of its memory, where that was asked for.
pub fn process(process: &ProcessRow) -> (Table, Vec<Cell<'_>>) {
    match &process.memory {
        None => (tables::PROCESSES, process_cells(process)),
        Some(memory) => (tables::PROCESS_MEMORY, memory_cells(process, memory)),
    }
}

fn process_cells(process: &ProcessRow) -> Vec<Cell<'_>> {
    vec![
        Cell::new(process.pid.to_string()),
        Cell::new(process.user.to_string()),
        Cell::new(process.state.to_string()),
        match process.resident {
            Some(bytes) => Cell::size(bytes),
            None => Cell::of(Role::Dim, "-"),
        },
        Cell::new(&process.name),
        match &process.command_line {
            Some(line) => Cell::new(line),
            None => Cell::of(Role::Warn, "?"),
        },
    ]
}

pub fn thread(thread: &ThreadRow) -> Vec<Cell<'_>> {
    vec![
        Cell::new(thread.id.to_string()),
        Cell::new(&thread.name),
        Cell::new(&thread.state),
        fact(&thread.sp, |address| Cell::new(*address)),
        fact(&thread.pc, |address| Cell::new(*address)),
        match &thread.symbol {
            Some(symbol) => Cell::new(symbol_text(symbol)),
            None => Cell::of(Role::Dim, "-"),
        },
    ]
}

fn memory_cells<'a>(process: &'a ProcessRow, memory: &ProcessMemory) -> Vec<Cell<'a>> {
    let amount = |bytes: Option<u64>| match bytes {
        Some(0) => Cell::of(Role::Dim, Words::Size(0)),
        Some(bytes) => Cell::size(bytes),
        None if !memory.hidden => Cell::of(Role::Dim, "-"),
        None => Cell::of(Role::Warn, "?"),
    };
    vec![
        Cell::new(process.pid.to_string()),
        Cell::new(process.user.to_string()),
        amount(process.resident),
        amount(memory.pss),
        amount(memory.uss),
        amount(memory.swapped),
        amount(memory.huge),
        Cell::new(&process.name),
        match &process.command_line {
            Some(line) => Cell::new(line),
            None => Cell::of(Role::Warn, "?"),
        },
    ]
}

pub fn setting(setting: &SettingReport) -> Vec<Cell<'_>> {
    vec![
        Cell::new(&setting.name),
        Cell::new(&setting.value),
        Cell::new(&setting.meaning),
    ]
}

pub fn history(entry: &HistoryEntry) -> Vec<Cell<'_>> {
    vec![Cell::new(entry.number.to_string()), Cell::new(&entry.line)]
}

fn state(state: State) -> Cell<'static> {
    Cell::of(words::state_role(state), state.word())
}

fn map_count(words: &FrameWords) -> Cell<'_> {
    fact(&words.map_count, |times| {
        Cell::new(words::map_count(count(*times), words.map_count_average))
    })
}

/// The cell of a fact, or the word for a missing one.
fn fact<'a, T>(fact: &'a Fact<T>, cell: impl FnOnce(&'a T) -> Cell<'a>) -> Cell<'a> {
    fact.as_ref().map_or_else(missing_cell, cell)
}

fn missing_cell<'a>(reason: &Reason) -> Cell<'a> {
    let (role, text) = missing(Some(reason));
    Cell::of(role, text)
}

/// The word for a missing value. Without a reason it is `?` if a present page has one, and `-` otherwise.
fn absent(why: &Why, field: &str, state: State) -> Cell<'static> {
    let (role, text) = match (why.of(field), state) {
        (None, State::Present) => (Role::Warn, "?"),
        (reason, _) => missing(reason),
    };
    Cell::of(role, text)
}

/// Flags of most pages in use, or implied by the kind. They stand last, so that a narrow terminal cuts them first.
const EVERYDAY: PageFlags = PageFlags::UPTODATE
    .union(PageFlags::LRU)
    .union(PageFlags::MMAP)
    .union(PageFlags::ANON)
    .union(PageFlags::SWAPBACKED)
    .union(PageFlags::COMPOUND_HEAD)
    .union(PageFlags::COMPOUND_TAIL);

/// Flags by name. If there is no room for all, `…` stands for the everyday ones.
fn flags_cell<'a>(flags: PageFlags, pmd_mapped: bool) -> Cell<'a> {
    let telling = words::flag_names(flags.difference(EVERYDAY), pmd_mapped);
    let everyday = flags.intersection(EVERYDAY).names();
    if flags.is_empty() {
        return Cell::of(Role::Dim, "none set");
    }
    let all = Cell::new([telling.as_slice(), &everyday].concat().join(" "));
    match telling.is_empty() {
        // Cut at the end rather than replaced by `…`.
        true => all,
        false => all.or([telling, vec!["…".into()]].concat().join(" ")),
    }
}
