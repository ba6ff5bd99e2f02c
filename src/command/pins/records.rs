//! The records of `pins`.

use crate::kernel::descriptors::PinningDevice;
use crate::kernel::{Name, State, VirtualAddress};
use crate::render::Record;
use crate::render::columns::{Cell, Column, PAGES, PID, START, Table, none, optional, reason as reason_cell};
use crate::render::text::footnotes::Footnotes;
use crate::render::text::lines::Lines;
use crate::render::text::words::MLOCK_KEEPS;
use crate::render::text::{Text, pages, words};
use crate::render::theme::Role;
use crate::render::units::{count, counted, size};
use crate::report::json::words as words_of_json;
use crate::report::record::record;
use crate::report::{Fact, Holders, Why};

words_of_json!(PinningDevice => "pinning_device");

record! {
    /// A row of `pins`: neighbouring pages that are held alike.
    pub struct HeldPages as "held-pages" with why if any {
        /// First virtual address.
        start: VirtualAddress,
        /// The address after the last one.
        end: VirtualAddress,
        /// Pages in it.
        pages: u64,
        /// Their state.
        state: State,
        /// The size of the large folios that they are part of: a pin of one page holds the whole folio.
        [optional] folio_bytes: Option<u64>,
        /// References to the folio of each. A pin of a page that is no large folio counts as 1024.
        references: Fact<u64>,
        /// The references by holder.
        holders: Fact<Holders>,
        /// Pins of each: exact for large folios. Of other pages only 0 is certain, because any 1024 references look
        /// like a pin.
        pins: Fact<u64>,
        /// The most pins that the references allow, if the number is not known.
        [optional] pins_at_most: Option<u64>,
        /// Why a value is only the most likely one.
        [flat] why: Why,
    }

    /// A buffer that is registered with io_uring, or a file descriptor of a device, which may have pinned the pages.
    pub struct PinHolder as "pin-holder" {
        /// The process.
        pid: u32,
        /// Its short name.
        name: Name,
        /// `io_uring`, `rdma` or `vfio`.
        device: PinningDevice,
        /// Its file descriptor.
        descriptor: u32,
        /// The thread in whose own table the descriptor is; absent if it is that of the process.
        [optional] thread: Option<u32>,
        /// First byte of the buffer, in that process; `null` for a device, whose buffers the kernel does not list.
        start: Option<VirtualAddress>,
        /// Bytes of the buffer.
        bytes: Option<u64>,
    }

    /// The totals of `pins`.
    #[derive(Default)]
    pub struct PinsSummary as "pins-summary" with why if any {
        /// Pages that were looked at.
        pages: u64,
        /// Pinned pages.
        pinned: u64,
        /// Pages that may be pinned: their references are not explained.
        possibly_pinned: u64,
        /// Pages whose pins are unknown.
        unknown: u64,
        /// Pages that are or may be pinned, but are in no registered buffer that was found.
        unlisted: u64,
        /// Bytes that drivers account as pinned by the process (VmPin), where the pages are unknown. Pins of vmsplice,
        /// O_DIRECT and many drivers are not among them.
        [optional] vm_pin: Option<u64>,
        /// Pages of the range in regions that the process locked (mlock); `null` if unknown.
        locked: Option<u64>,
        /// Resident bytes of the hugetlb pool, which is never swapped out.
        hugetlb_bytes: u64,
        /// Number of buffers and file descriptors that may have pinned them.
        holders: u64,
        /// Number of processes whose file descriptors were searched.
        searched: u64,
        /// Whether Ctrl-C ended it before the end.
        cut_short: bool,
        /// Why pins are unknown: then only registered buffers and descriptors of devices are found.
        [flat] why: Why,
    }
}

impl Record for HeldPages {
    fn write(&self, text: &mut Text) {
        text.row_with_notes(&HELD, self);
    }
}

/// The rows.
static HELD: Table<HeldPages> = Table::of(&[
    START.cell(|_, row| Cell::new(&row.start)),
    PAGES.cell(|_, row| Cell::count(row.pages)),
    Column::number("folio", 7, Role::Size).rank(2).cell(|_, row| row.folio_bytes.map_or_else(none, Cell::size)),
    Column::number("pins", 7, Role::Size).cell(|_, row| match (&row.pins, row.pins_at_most) {
        (Ok(pins @ 1..), _) => Cell::of(Role::Note, count(*pins)),
        (Err(_), Some(most)) => Cell::of(Role::Note, format!("maybe {}", count(most))),
        (pins, _) => number(pins),
    }),
    Column::number("refs", 7, Role::Size).rank(3).cell(|_, row| number(&row.references)),
    Column::number("mapped", 6, Role::Size).rank(2).cell(|_, row| holders_cell(row, |holders| holders.mappings)),
    Column::number("cached", 6, Role::Size)
        .rank(2)
        .cell(|_, row| holders_cell(row, |holders| holders.page_cache + holders.swap_cache + holders.filesystem)),
    Column::number("other", 6, Role::Size).rank(2).cell(|_, row| holders_cell(row, |holders| holders.others)),
    Column::word("state", 10, Role::Plain)
        .rank(1)
        .cell(|_, row| Cell::of(words::state_role(row.state), row.state.word())),
]);

fn number<'a>(fact: &Fact<u64>) -> Cell<'a> {
    fact.as_ref().map_or_else(reason_cell, |&number| Cell::count(number))
}

fn holders_cell<'a>(row: &HeldPages, of: fn(&Holders) -> u64) -> Cell<'a> {
    row.holders.as_ref().map_or_else(reason_cell, |holders| Cell::count(of(holders)))
}

impl Record for PinHolder {
    fn write(&self, text: &mut Text) {
        text.row(&HOLDERS, self);
    }
}

/// What may have pinned them.
static HOLDERS: Table<PinHolder> = Table::of(&[
    PID.cell(|_, one| Cell::new(&one.pid)),
    Column::name("process", 15, Role::Name).cell(|_, one| Cell::new(&one.name)),
    Column::word("device", 8, Role::Plain).cell(|_, one| Cell::new(one.device.word())),
    Column::number("fd", 5, Role::Size).cell(|_, one| Cell::count(one.descriptor.into())),
    Column::word("buffer", 14, Role::Address).cell(|_, one| optional(&one.start)),
    Column::number("size", 8, Role::Size).rank(1).cell(|_, one| one.bytes.map_or_else(none, Cell::size)),
]);

impl Record for PinsSummary {
    fn write(&self, text: &mut Text) {
        text.answer_of_rows(summary, self);
        text.line(what_is_not_listed, self);
        text.notes();
    }
}

/// `16 pages: 8 pinned`, and what is unknown.
fn summary(lines: &mut Lines, summary: &PinsSummary) {
    let line = lines.line();
    line.indent(2).plain(counted(summary.pages, "page"));
    let mut before = ": ";
    let mut part = |role, text: String| _ = line.word(std::mem::replace(&mut before, ", "), role, text);
    match summary.pinned {
        // Those that are unknown may be.
        0 if summary.unknown > 0 || summary.vm_pin.is_some() && summary.possibly_pinned > 0 => {}
        0 => part(Role::Plain, "none pinned".to_owned()),
        pinned => part(Role::Note, format!("{} pinned", count(pinned))),
    }
    if summary.possibly_pinned > 0 {
        part(Role::Note, format!("{} possibly pinned", count(summary.possibly_pinned)));
    }
    if summary.unknown > 0 {
        let of =
            if summary.unknown == summary.pages { String::new() } else { format!(" of {}", count(summary.unknown)) };
        part(Role::Warn, format!("pins{of} unknown"));
    }
    match summary.locked {
        Some(0) => part(Role::Plain, "none locked by mlock".to_owned()),
        Some(locked) => part(Role::Plain, format!("{} locked by mlock; {MLOCK_KEEPS}", count(locked))),
        None => {}
    }
    if summary.hugetlb_bytes > 0 {
        let bytes = size(summary.hugetlb_bytes);
        line.plain(format!("; {bytes} of the hugetlb pool is never swapped out, but may migrate"));
    }
}

/// What holds pages and is in no row.
fn what_is_not_listed(lines: &mut Lines, summary: &PinsSummary) {
    if let Some(bytes) = summary.vm_pin {
        let text = format!("VmPin: {}; vmsplice, O_DIRECT and many drivers are not counted", size(bytes));
        lines.line().indent(2).prose(Role::Plain, &text);
    }
    if summary.holders == 0 && summary.unlisted > 0 {
        let among = match summary.searched {
            0 => "the file descriptors may not be read".to_owned(),
            1 => "none of the registered buffers of this process has them".to_owned(),
            more => {
                format!("none of the registered buffers of the {} processes that were searched has them", count(more))
            }
        };
        lines.line().indent(2).prose(Role::Note, &among);
    }
    pages::remarks(lines, summary.cut_short, false);
    Footnotes::of(&summary.why, |_, _| true).write(lines);
}

/// Samples of its records.
#[cfg(test)]
pub(super) mod samples {
    use super::*;
    use crate::report::Reason;

    pub fn all() -> Vec<Box<dyn Record>> {
        let address = VirtualAddress::new;
        let pinned = Holders { mappings: 1, page_cache: 0, swap_cache: 0, filesystem: 0, pins: 1024, others: 0 };
        let large = HeldPages {
            start: address(0x7f00_0000_1000),
            end: address(0x7f00_0000_3000),
            pages: 2,
            state: State::Present,
            folio_bytes: Some(2 << 20),
            references: Ok(516),
            holders: Ok(Holders { page_cache: 512, pins: 3, ..pinned }),
            pins: Ok(3),
            pins_at_most: None,
            why: Why::default(),
        };
        let small = HeldPages {
            folio_bytes: None,
            references: Ok(1025),
            holders: Ok(Holders { pins: 0, others: 1024, ..pinned }),
            pins: Err(Reason::NotOnThisKernel("1024 references look like one pin".into())),
            pins_at_most: Some(1),
            ..large.clone()
        };
        let unclear = HeldPages {
            references: Ok(3000),
            holders: Ok(Holders { pins: 0, others: 2999, ..pinned }),
            pins: Err(Reason::NotOnThisKernel("1024 references look like one pin".into())),
            pins_at_most: Some(2),
            ..small.clone()
        };
        let absent = || Reason::NotApplicable("no frame is mapped here");
        let untouched = HeldPages {
            state: State::Untouched,
            references: Err(absent()),
            holders: Err(absent()),
            pins: Err(absent()),
            pins_at_most: None,
            ..small.clone()
        };
        let buffer = PinHolder {
            pid: 812,
            name: "server".into(),
            device: PinningDevice::IoUring,
            descriptor: 6,
            thread: None,
            start: Some(address(0x7f00_0000_1000)),
            bytes: Some(8192),
        };
        let device = PinHolder {
            device: PinningDevice::Vfio,
            descriptor: 7,
            thread: Some(814),
            start: None,
            bytes: None,
            ..buffer.clone()
        };
        let found = PinsSummary {
            pages: 8,
            pinned: 4,
            possibly_pinned: 2,
            holders: 2,
            locked: Some(8),
            ..PinsSummary::default()
        };
        let unlisted =
            PinsSummary { unknown: 1, unlisted: 4, holders: 0, searched: 3, cut_short: true, ..found.clone() };
        let mut unknown = Why::default();
        unknown.note("pins", &Reason::NotOnThisKernel("there is no /proc/kcore".into()));
        let listed = PinsSummary {
            pages: 8,
            possibly_pinned: 2,
            unknown: 6,
            vm_pin: Some(8192),
            holders: 1,
            why: unknown,
            ..PinsSummary::default()
        };
        vec![
            Box::new(listed),
            Box::new(small),
            Box::new(large),
            Box::new(unclear),
            Box::new(untouched),
            Box::new(buffer),
            Box::new(device),
            Box::new(found),
            Box::new(unlisted),
            Box::new(PinsSummary { pages: 512, locked: Some(0), hugetlb_bytes: 2 << 20, ..PinsSummary::default() }),
        ]
    }
}
