//! `account frames`: every physical frame in one class, beside the kernel's counters.

use super::records::{bytes, share};
use super::{filesystems, objects};
use crate::command::floor::{Context, Error, Flow, Outcome};
use crate::command::rows::{RowLimit, finish, keep_shown, note_hidden_rows, pull};
use crate::command::summary::all_frames;
use crate::inspect;
use crate::inspect::account::{
    FrameAccountSums, counted_without_mark, counter, frame_account, memory_filesystems, unattached_segments,
};
use crate::kernel::swaps::Compressed;
use crate::process::{MemoryCounters, PoolCounters, SwapUse};
use crate::render::Record;
use crate::render::columns::{Cell, Column, Table};
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::text::words::frame_class;
use crate::render::theme::Role;
use crate::render::units::{count, size};
use crate::report::record::record;
use crate::report::{Fact, FrameClass, Reason};

record! {
    /// A row of `account frames`: frames of one class.
    pub struct AccountFrames as "account-frames" {
        /// The class.
        class: FrameClass,
        /// Bytes of its frames.
        bytes: u64,
        /// Bytes of all frames, for the share of this class.
        of: u64,
        /// Bytes of the class by the counters of the kernel.
        counted: Option<u64>,
        /// The fields of /proc/meminfo for it.
        counter: Option<&'static str>,
    }

    /// The sum of `account frames`.
    pub struct AccountMachine as "account-machine" with why {
        /// Bytes of all frames.
        bytes: u64,
        /// Bytes that the hypervisor has back (a balloon) or that are offline: MemTotal is without them.
        offline: u64,
        /// MemTotal: without what the kernel reserved when it started.
        total: Fact<u64>,
        /// Frame numbers that are no system memory: holes, and memory of devices.
        holes: u64,
        /// The hugetlb pool with pages of the default size; absent without one, or if `total` is unknown.
        [optional] pool: Option<HugetlbPool>,
        /// The memory in swap.
        swap: Fact<SwappedMemory>,
        /// Counters of memory whose frames have no mark.
        without_mark: Vec<MemoryCounter>,
        /// Whether the command was interrupted: the account is then of the first part.
        cut_short: bool,
    }

    /// Pages of a hugetlb pool that nothing uses.
    #[derive(Eq)]
    pub struct HugetlbPool {
        /// Bytes of a page.
        page: u64,
        /// Bytes of free pages.
        free: u64,
        /// Of these, bytes that are reserved for mappings and files, which have not touched them.
        reserved: u64,
    }

    /// Memory in swap, and the part of it that is compressed in memory.
    #[derive(Eq)]
    pub struct SwappedMemory within "swap" {
        /// Bytes in use of all swap areas.
        used: u64,
        /// Bytes, as they were, that zram and zswap hold.
        compressed: u64,
        /// The compressed size of these, in bytes. Their frames have no mark.
        memory: u64,
    }

    /// A field of /proc/meminfo, or free lists of processors (/proc/zoneinfo).
    #[derive(Eq)]
    pub struct MemoryCounter {
        /// As the kernel spells the field.
        name: &'static str,
        /// Bytes.
        bytes: u64,
    }
}

impl Record for AccountFrames {
    fn write(&self, text: &mut Text) {
        text.row(&FRAMES, self);
    }
}

static FRAMES: Table<AccountFrames> = Table::of(&[
    bytes("bytes").cell(|_, row| Cell::size(row.bytes)),
    Column::number("share", 6, Role::Plain).cell(|_, row| share(row.bytes, row.of)),
    Column::word("class", 26, Role::Plain).cell(|_, row| Cell::new(frame_class(row.class))),
    bytes("counted").cell(|_, row| row.counted.map_or_else(|| Cell::of(Role::Dim, "-"), Cell::size)),
    Column::word("in /proc/meminfo", 24, Role::Plain).cell(|_, row| Cell::new(row.counter.unwrap_or_default())),
]);

impl Record for AccountMachine {
    fn write(&self, text: &mut Text) {
        text.line(sum, self);
        text.notes();
    }
}

fn sum(lines: &mut Lines, machine: &AccountMachine) {
    let line = lines.line();
    line.indent(2).plain(format!("all frames: {}", size(machine.bytes)));
    if let Ok(total) = machine.total {
        line.plain(format!("; MemTotal is {}", size(total)));
        let missing = machine.bytes.saturating_sub(total).saturating_sub(machine.offline);
        if missing > 0 && !machine.cut_short {
            line.plain(format!(": the kernel reserved {} when it started", size(missing)));
        }
    }
    if !machine.without_mark.is_empty() {
        let known = machine.without_mark.iter().map(|counter| format!("{} {}", counter.name, size(counter.bytes)));
        let known = known.collect::<Vec<_>>().join(", ");
        lines.line().indent(2).plain(format!("counters of memory without a mark: {known}"));
    }
    if let Some(pool @ HugetlbPool { free: 1.., .. }) = &machine.pool {
        let line = lines.line();
        line.indent(2).plain(format!("hugetlb pool of {} pages: {} is free", size(pool.page), size(pool.free)));
        if pool.reserved > 0 {
            line.plain(format!(", {} of it reserved", size(pool.reserved)));
        }
    }
    if let Ok(swap @ SwappedMemory { used: 1.., .. }) = &machine.swap {
        let line = lines.line();
        line.indent(2).plain(format!("in swap: {}", size(swap.used)));
        if swap.compressed > 0 {
            let (bytes, memory) = (size(swap.compressed), size(swap.memory));
            line.plain(format!("; zram and zswap hold {bytes} in {memory} of memory without a mark"));
        }
    }
    if machine.holes > 0 {
        lines
            .line()
            .indent(2)
            .plain(format!("{} more frame numbers are holes or memory of devices", count(machine.holes)));
    }
    if machine.cut_short {
        lines.line().indent(2).word("", Role::Warn, "interrupted: the rest was not counted");
    }
}

pub(super) fn run(cut: Option<RowLimit>, context: &mut Context) -> Outcome {
    let machine = context.state.machine().clone();
    let range = all_frames(&machine)?;
    let sink = &mut *context.sink;
    let mut account = frame_account(&machine, range).with_budget(sink.budget());
    let stopped = pull(sink, "frames", || account.next(), |_, _| Ok(()))?;
    let counters = machine.memory_counters().map_err(Reason::from);
    let FrameAccountSums { classes, holes, .. } = account.finish();
    let in_bytes = |frames: u64| frames << machine.page_size().shift();
    let all = in_bytes(classes.values().sum());
    let offline = in_bytes(classes.get(&FrameClass::Offline).copied().unwrap_or_default());
    let mut rows: Vec<AccountFrames> =
        classes.into_iter().map(|(class, frames)| row(class, in_bytes(frames), all, &counters)).collect();
    rows.sort_by_cached_key(|row| std::cmp::Reverse(row.bytes));
    let shared = rows.iter().find(|row| row.class == FrameClass::SharedMemory).map_or(0, |row| row.bytes);
    let more = keep_shown(&mut rows, cut, |row| row.bytes);
    rows.iter().try_for_each(|row| sink.emit(row)).map_err(Error::from)?;
    note_hidden_rows(more, "class", sink)?;
    if stopped.is_none() {
        if let Ok(lone) = unattached_segments(&machine) {
            objects::emit_rows(&lone, true, sink)?;
        }
        let filesystems = memory_filesystems(&machine, &mut sink.budget()).map_err(inspect::Error::from)?;
        filesystems::emit(&filesystems, false, shared, sink)?;
        filesystems::note_others(&filesystems, &[false], sink)?;
        sink.note("filesystems that only other mount namespaces have are not searched")?;
    }
    let last = AccountMachine {
        bytes: all,
        holes,
        offline,
        pool: counters.as_ref().ok().and_then(|counters| counters.pool.map(pool)),
        without_mark: counters.as_ref().map(without_mark).unwrap_or_default(),
        total: counters.map(|counters| counters.total),
        swap: machine.swap_use().map(swapped).map_err(Reason::from),
        cut_short: stopped.is_some(),
    };
    finish(&last, stopped, sink)?;
    Ok(Flow::Done)
}

fn row(class: FrameClass, bytes: u64, of: u64, counters: &Fact<MemoryCounters>) -> AccountFrames {
    let counted = counters.as_ref().ok().and_then(|counters| counter(class, counters));
    let (counter, counted) = counted.unzip();
    AccountFrames { class, bytes, of, counted, counter }
}

fn pool(of: PoolCounters) -> HugetlbPool {
    HugetlbPool { page: of.page, free: of.free, reserved: of.reserved }
}

fn swapped(swap: SwapUse) -> SwappedMemory {
    let Compressed { bytes, memory } = swap.compressed;
    SwappedMemory { used: swap.used, compressed: bytes, memory }
}

fn without_mark(counters: &MemoryCounters) -> Vec<MemoryCounter> {
    counted_without_mark(counters).into_iter().map(|(name, bytes)| MemoryCounter { name, bytes }).collect()
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        let machine = AccountMachine {
            bytes: 24 << 30,
            total: Ok(23 << 30),
            holes: 32_768,
            offline: 0,
            pool: Some(HugetlbPool { page: 2 << 20, free: 12 << 20, reserved: 4 << 20 }),
            swap: Ok(SwappedMemory { used: 1 << 30, compressed: 900 << 20, memory: 300 << 20 }),
            without_mark: vec![
                MemoryCounter { name: "KernelStack", bytes: 12 << 20 },
                MemoryCounter { name: "Percpu", bytes: 3 << 20 },
                MemoryCounter { name: "free lists of processors", bytes: 50 << 20 },
            ],
            cut_short: false,
        };
        let unknown = AccountMachine {
            total: Err(Reason::NotApplicable("this capture does not have it")),
            without_mark: Vec::new(),
            pool: None,
            swap: Err(Reason::NotApplicable("this capture does not have it")),
            holes: 0,
            cut_short: true,
            ..machine.clone()
        };
        let cache = AccountFrames {
            class: FrameClass::PageCache,
            bytes: 17 << 30,
            of: 24 << 30,
            counted: Some(17_300 << 20),
            counter: Some("Buffers + Cached - Shmem"),
        };
        let without =
            AccountFrames { class: FrameClass::NoMark, bytes: 1 << 30, counted: None, counter: None, ..cache.clone() };
        vec![Box::new(cache), Box::new(without), Box::new(machine), Box::new(unknown)]
    }
}
