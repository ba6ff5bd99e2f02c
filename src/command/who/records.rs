//! The records of `who`, and how they are written.

use crate::kernel::words::worded;
use crate::kernel::{FrameNumber, Name, PageFlags, PhysicalAddress, VirtualAddress};
use crate::render::Record;
use crate::render::columns::{self, Cell, Column, PERMISSIONS, PID, Table};
use crate::render::text::footnotes::Footnotes;
use crate::render::text::lines::Lines;
use crate::render::text::{Text, block, held, words};
use crate::render::theme::Role;
use crate::render::units::{count, counted};
use crate::report::json::words;
use crate::report::record::record;
use crate::report::{Declared, FrameWords, KernelRecord, RegionBrief, Shape, SymbolBrief, WhoCounts, Why};

/// The records that no other command emits.
pub(in crate::command) const RECORDS: &[Shape] = &[MapperRow::SHAPE, WhoSummary::SHAPE];

record! {
    /// A row of `who`.
    pub struct MapperRow as "mapper" {
        /// The process.
        pid: u32,
        /// Its short name.
        name: Name,
        /// The address at which the process maps the requested byte.
        address: VirtualAddress,
        /// Neighbouring pages that all map the frame.
        pages: u64,
        /// The region.
        region: Option<RegionBrief>,
        /// The symbol at the address.
        symbol: Option<SymbolBrief>,
    }

    /// The totals of `who`.
    pub struct WhoSummary as "who-summary" with why {
        /// The frame.
        pfn: FrameNumber,
        /// The pages of the range that was given, if it has several: this is the first of them.
        [optional] range_pages: Option<u64>,
        /// Its physical address (`phys` in filters); `null` if that does not fit 64 bits.
        physical: Option<PhysicalAddress>,
        /// Its words.
        [flat] words: FrameWords,
        /// The numbers of what was found and searched.
        [flat] counts: WhoCounts,
        /// The end of the search.
        ended: SearchEnd,
        /// Whether the reverse map of the kernel (/proc/kcore) named the processes, so that no other was searched.
        by_records: bool,
        /// Why nobody can map it, or why the map count could not end the search.
        [optional] because: Option<String>,
        /// The kernel's own record of the frame, if no mapping was found and it can be read.
        [optional] kernel_record: Option<KernelRecord>,
        /// Whether the page moved to another frame during the search.
        moved: bool,
        /// Whether /proc lists all processes of the machine: not in a pid namespace (container), nor with `hidepid`.
        lists_all: bool,
        /// Whether it is a capture, which has only the processes that were captured.
        [optional] in_capture: bool,
    }
}

worded! {
    /// How a search ended.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[non_exhaustive]
    pub enum SearchEnd, word {
        /// Such a frame cannot be mapped by a process.
        Nobody = "nobody",
        /// As many mappings were found as the kernel counts.
        Counted = "counted",
        /// Everything that could be searched was searched.
        Searched = "searched",
        /// At the `limit`.
        Limit = "limit",
        /// Ctrl-C.
        Interrupted = "interrupted",
    }
}

words!(SearchEnd => "search_end");

impl Record for MapperRow {
    fn write(&self, text: &mut Text) {
        text.row(&MAPPERS, self);
    }
}

/// The mappings.
pub static MAPPERS: Table<MapperRow> = Table::of(&[
    PID.cell(|_, mapper| Cell::new(&mapper.pid)),
    Column::name("process", 15, Role::Name).cell(|_, mapper| Cell::new(&mapper.name)),
    Column::word("address", 14, Role::Address).cell(|_, mapper| Cell::new(&mapper.address)),
    Column::number("pages", 5, Role::Size).rank(1).cell(|_, mapper| Cell::count(mapper.pages)),
    PERMISSIONS.rank(2).cell(|_, mapper| match &mapper.region {
        Some(region) => Cell::new(region.perms.letters()),
        None => Cell::new("-"),
    }),
    Column::name("region", 14, Role::Name).cell(|style, mapper| match &mapper.region {
        Some(region) => columns::region(style, &region.name, region.deleted, None, region.without_path),
        None => Cell::of(Role::Dim, "gone"),
    }),
    Column::name("symbol", 16, Role::Symbol).cell(|_, mapper| columns::symbol(&mapper.symbol)),
]);

impl Record for WhoSummary {
    fn write(&self, text: &mut Text) {
        text.answer_of_rows(answer, self);
        text.line(completeness, self);
    }
}

/// `frame 0x1a4eac at 0x1a4eac000: 3 mappings in 2 processes; the kernel counts 3`
fn answer(lines: &mut Lines, summary: &WhoSummary) {
    let line = lines.line();
    line.indent(2).plain("frame ").push(Role::Frame, summary.pfn);
    if let Some(physical) = summary.physical {
        line.plain(" at ").push(Role::Physical, physical);
    }
    block::first_page(line, summary.range_pages);
    if summary.ended == SearchEnd::Nobody {
        let why = summary.because.as_deref().unwrap_or_default();
        line.word(": ", Role::Plain, format!("no process maps it: {why}"));
        return;
    }
    let mappings = match summary.counts.mappings {
        0 => "no mapping found".to_owned(),
        mappings => format!("{} in {}", counted(mappings, "mapping"), counted(summary.counts.processes, "process")),
    };
    line.word(": ", Role::Plain, mappings);
    if let Some(own) = summary.words.own_mappings {
        line.word(", ", Role::Plain, format!("{} of them by pmdb itself", count(own)));
    }
    if let Ok(times) = summary.words.map_count {
        let times = words::map_count(count(times), summary.words.map_count_average);
        line.word("; ", Role::Plain, format!("the kernel counts {times}"));
    }
}

/// How complete that is.
fn completeness(lines: &mut Lines, summary: &WhoSummary) {
    if summary.ended == SearchEnd::Nobody {
        // The reason says the rest.
        if summary.kernel_record.as_ref().is_some_and(|record| record.free_block.is_some() || record.slab.is_some()) {
            write_owner(lines, summary);
        }
        write_moved(lines, summary);
        return write_reasons(lines, summary);
    }
    let looked_at = format!("searched {}", of(summary));
    let incomplete = match summary.ended {
        SearchEnd::Counted => None,
        SearchEnd::Limit => {
            let more = match mappings_not_found(summary) {
                Some(missing) => format!("the kernel counts {} more", counted(missing, "mapping")),
                None => "there may be more mappings".to_owned(),
            };
            Some((Role::Note, format!("{looked_at}, up to the limit: {more}")))
        }
        SearchEnd::Interrupted => Some((Role::Warn, format!("{looked_at}, then stopped: there may be more mappings"))),
        SearchEnd::Searched | SearchEnd::Nobody => Some((Role::Note, search_result(summary, looked_at))),
    };
    if let Some((role, text)) = incomplete {
        prose(lines, role, &text);
    }
    let is_shared_memory =
        |flags: &PageFlags| flags.contains(PageFlags::SWAPBACKED) && !flags.contains(PageFlags::ANON);
    let untouched = "shared memory: a process that has not touched this page yet is not among them";
    if summary.words.flags.as_ref().is_ok_and(is_shared_memory) && lines.style.is_news("who", untouched) {
        prose(lines, Role::Dim, untouched);
    }
    write_remarks(lines, summary);
    write_owner(lines, summary);
    write_moved(lines, summary);
    write_reasons(lines, summary);
}

/// What the search could not see, and what changed meanwhile.
fn write_remarks(lines: &mut Lines, summary: &WhoSummary) {
    let counts = &summary.counts;
    let mut remark = |role, number, noun, what: &str| {
        if number > 0 {
            prose(lines, role, &format!("{} {what}", counted(number, noun)));
        }
    };
    // If all mappings are found, unread processes do not matter.
    if summary.ended != SearchEnd::Counted {
        let what = "could not be read";
        remark(Role::Warn, counts.unreadable, "process", what);
    }
    let what = "not shown: they share the memory of a process shown above";
    remark(Role::Note, counts.same_memory, "process", what);
    let what = "shown above ended during the search: the frame is no longer mapped there";
    remark(Role::Warn, counts.left, "mapping", what);
    let is_open = summary.ended != SearchEnd::Counted && !are_all_found(summary);
    if !summary.lists_all && is_open && mappings_not_found(summary).is_none() {
        prose(lines, Role::Warn, &format!("not searched: processes {}", unlisted(summary)));
    }
}

fn write_reasons(lines: &mut Lines, summary: &WhoSummary) {
    Footnotes::of(&Why::of_row(summary), |_, _| true).write(lines);
}

/// Writes whose frame it is, if nobody maps it.
fn write_owner(lines: &mut Lines, summary: &WhoSummary) {
    if let Some((owner, more)) = summary.kernel_record.as_ref().and_then(held::owner) {
        let more = if more.is_empty() { more } else { format!(", {more}") };
        prose(lines, Role::Plain, &format!("owner: {owner}{more}"));
    }
}

fn write_moved(lines: &mut Lines, summary: &WhoSummary) {
    if summary.moved {
        let text = "the page moved to another frame during the search: run it again";
        prose(lines, Role::Warn, text);
    }
}

/// `12 of 113 processes`
fn of(summary: &WhoSummary) -> String {
    let counts = &summary.counts;
    format!("{} of {}", count(counts.looked_at), counted(counts.listed, "process"))
}

/// The result of a search through everything.
fn search_result(summary: &WhoSummary, looked_at: String) -> String {
    if let Some(because) = &summary.because {
        if summary.counts.mappings == 0 && matches!(summary.words.map_count, Ok(0)) {
            return format!(
                "{looked_at}: a map count of 0 does not prove that nobody maps the frame, because {because}"
            );
        }
        return format!("{looked_at}; {because}, so there may be more");
    }
    let Some(missing) = mappings_not_found(summary) else {
        return looked_at;
    };
    let unlisted = unlisted(summary);
    let (it, belongs) = if missing == 1 { ("it", "belongs") } else { ("they", "belong") };
    let elsewhere = match (summary.counts.unreadable, summary.lists_all) {
        (0, true) => format!("{it} came or went during the search, or {belongs} to the kernel"),
        (0, false) => format!("{it} may be in a process {unlisted}"),
        (_, true) => format!("{it} may be in a process that could not be read"),
        (_, false) => format!("{it} may be in a process that could not be read, or in one {unlisted}"),
    };
    format!("{looked_at}: {} not found; {elsewhere}", counted(missing, "mapping"))
}

/// Which processes are not listed here.
fn unlisted(summary: &WhoSummary) -> &'static str {
    if summary.in_capture { "outside of this capture" } else { "outside of this pid namespace, or hidden by hidepid" }
}

/// Whether as many mappings were found as the kernel counts.
fn are_all_found(summary: &WhoSummary) -> bool {
    let WhoSummary { counts, words, because, .. } = summary;
    because.is_none() && words.map_count.as_ref().is_ok_and(|times| *times <= counts.mappings)
}

/// How many mappings the kernel counts beyond those that were found, if its count is exact.
fn mappings_not_found(summary: &WhoSummary) -> Option<u64> {
    let times = *summary.words.map_count.as_ref().ok()?;
    let missing = times.checked_sub(summary.counts.mappings)?;
    (missing > 0 && summary.because.is_none()).then_some(missing)
}

fn prose(lines: &mut Lines, role: Role, text: &str) {
    let line = lines.line();
    line.indent(2).prose(role, text);
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;
    use crate::command::tests::records::pages::{counter, data, pfn, va};
    use crate::kernel::Device;
    use crate::report::{FilePage, FreeBlock, Holders, Reason, RecordedOwner, SlabPage};

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![
            Box::new(mapper()),
            Box::new(mapper_gone()),
            Box::new(who_counted()),
            Box::new(who_recorded()),
            Box::new(who_searched()),
            Box::new(who_captured()),
            Box::new(who_zero()),
            Box::new(who_limited()),
            Box::new(who_limited_uncounted()),
            Box::new(who_interrupted()),
            Box::new(who_nobody()),
            Box::new(who_free()),
            Box::new(who_slab()),
            Box::new(who_cached()),
            Box::new(who_unrecorded()),
            Box::new(WhoSummary { kernel_record: Some(record(1, RecordedOwner::PagePool)), ..who_unrecorded() }),
        ]
    }

    const FLAGS: PageFlags = PageFlags::from_bits_retain(0x400005868);

    pub fn mapper() -> MapperRow {
        MapperRow {
            pid: 812,
            name: Name::from("demo"),
            address: va(0x555555558010),
            pages: 1,
            region: Some(data()),
            symbol: Some(counter()),
        }
    }

    pub fn mapper_gone() -> MapperRow {
        MapperRow {
            pid: 4_194_303,
            name: Name::new(*b"a\xff long nam"),
            address: va(0x7ffff7dc0000),
            pages: 194,
            region: None,
            symbol: None,
        }
    }

    pub fn who_counted() -> WhoSummary {
        WhoSummary {
            pfn: pfn(0x1a4eac),
            range_pages: Some(16),
            physical: Some(PhysicalAddress::new(0x1a4eac000)),
            words: FrameWords { flags: Ok(FLAGS), map_count: Ok(3), map_count_average: false, own_mappings: None },
            counts: WhoCounts {
                mappings: 3,
                left: 0,
                processes: 2,
                looked_at: 12,
                listed: 113,
                unreadable: 0,
                gone: 0,
                same_memory: 0,
            },
            ended: SearchEnd::Counted,
            by_records: false,
            because: None,
            kernel_record: None,
            moved: false,
            lists_all: true,
            in_capture: false,
        }
    }

    pub fn who_recorded() -> WhoSummary {
        let counts = WhoCounts { looked_at: 2, listed: 2, ..who_counted().counts };
        WhoSummary { by_records: true, counts, ..who_counted() }
    }

    pub fn who_searched() -> WhoSummary {
        WhoSummary {
            words: FrameWords { map_count: Ok(5), ..who_counted().words },
            counts: WhoCounts {
                left: 1,
                looked_at: 109,
                unreadable: 3,
                gone: 1,
                same_memory: 1,
                ..who_counted().counts
            },
            ended: SearchEnd::Searched,
            moved: true,
            ..who_counted()
        }
    }

    /// Of a capture, which does not have all processes.
    pub fn who_captured() -> WhoSummary {
        WhoSummary {
            words: FrameWords { map_count: Ok(31), ..who_counted().words },
            counts: WhoCounts { looked_at: 2, listed: 2, mappings: 2, ..who_counted().counts },
            ended: SearchEnd::Searched,
            lists_all: false,
            in_capture: true,
            ..who_counted()
        }
    }

    pub fn who_zero() -> WhoSummary {
        let because = "the kernel does not count mappings of the zero page";
        WhoSummary {
            words: FrameWords {
                flags: Ok(PageFlags::ZERO_PAGE | PageFlags::RESERVED),
                map_count: Ok(0),
                map_count_average: false,
                own_mappings: None,
            },
            counts: WhoCounts { mappings: 12_000, processes: 1, looked_at: 113, ..who_counted().counts },
            ended: SearchEnd::Searched,
            because: Some(because.to_owned()),
            ..who_counted()
        }
    }

    pub fn who_limited() -> WhoSummary {
        WhoSummary {
            words: FrameWords { map_count: Ok(2_002), ..who_counted().words },
            ended: SearchEnd::Limit,
            ..who_counted()
        }
    }

    /// The kernel's count tells nothing, so nobody knows how many more there are.
    pub fn who_limited_uncounted() -> WhoSummary {
        WhoSummary { ended: SearchEnd::Limit, ..who_zero() }
    }

    pub fn who_interrupted() -> WhoSummary {
        WhoSummary {
            words: FrameWords {
                flags: Err(Reason::not_permitted("/proc/kpageflags may be read by root alone")),
                map_count: Err(Reason::not_permitted("/proc/kpagecount may be read by root alone")),
                map_count_average: false,
                own_mappings: None,
            },
            counts: WhoCounts { mappings: 0, processes: 0, ..who_counted().counts },
            ended: SearchEnd::Interrupted,
            ..who_counted()
        }
    }

    pub fn who_nobody() -> WhoSummary {
        WhoSummary {
            words: FrameWords {
                flags: Ok(PageFlags::BUDDY),
                map_count: Ok(0),
                map_count_average: false,
                own_mappings: None,
            },
            counts: WhoCounts::default(),
            ended: SearchEnd::Nobody,
            because: Some("it is free".to_owned()),
            ..who_counted()
        }
    }

    /// A record with an owner, and nothing that holds the frame.
    fn record(references: u64, owner: RecordedOwner) -> KernelRecord {
        let holders = Holders { mappings: 0, page_cache: 0, swap_cache: 0, filesystem: 0, pins: 0, others: references };
        KernelRecord {
            references: Ok(references),
            holders: Ok(holders),
            pins: Ok(0),
            pins_at_most: None,
            owner: Ok(owner),
            file_page: None,
            free_block: None,
            slab: None,
        }
    }

    fn who_free() -> WhoSummary {
        let free_block = Some(FreeBlock { order: Ok(9), head: Ok(pfn(0x1a4e00)) });
        WhoSummary {
            kernel_record: Some(KernelRecord { free_block, ..record(0, RecordedOwner::Free) }),
            ..who_nobody()
        }
    }

    /// Its cache was not proved.
    fn who_slab() -> WhoSummary {
        let reason = || Reason::NotOnThisKernel("the kernel's record of the slab cache was not proved".to_owned());
        let slab = Some(SlabPage { cache: Err(reason()), object_bytes: Err(reason()) });
        WhoSummary {
            words: FrameWords { flags: Ok(PageFlags::SLAB), ..who_nobody().words },
            because: Some("it belongs to the kernel's object allocator".to_owned()),
            kernel_record: Some(KernelRecord { slab, ..record(1, RecordedOwner::Slab) }),
            ..who_nobody()
        }
    }

    fn who_cached() -> WhoSummary {
        let file_page = Some(FilePage {
            device: Device { major: 8, minor: 1 },
            inode: 131_074,
            index: 172,
            path: Ok(Name::new(*b"/var/log/a\xff\x1b[2J")),
            filesystem: Ok(Name::from("sda1")),
            deleted: false,
        });
        WhoSummary {
            words: FrameWords { flags: Ok(PageFlags::UPTODATE | PageFlags::LRU), ..who_nobody().words },
            counts: WhoCounts { looked_at: 113, listed: 113, ..WhoCounts::default() },
            ended: SearchEnd::Searched,
            because: None,
            kernel_record: Some(KernelRecord { file_page, ..record(1, RecordedOwner::File) }),
            ..who_nobody()
        }
    }

    fn who_unrecorded() -> WhoSummary {
        let words = FrameWords { flags: Ok(PageFlags::empty()), ..who_cached().words };
        WhoSummary { words, kernel_record: Some(record(1, RecordedOwner::Unrecorded)), ..who_cached() }
    }
}
