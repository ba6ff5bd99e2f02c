//! `explain`: a paragraph about a page, and what the next accesses will do.

use super::lines::Lines;
use super::{Text, block, held, region, words};
use crate::kernel::{Kind, PageFlags, State};
use crate::render::Record;
use crate::render::text::footnotes::Footnotes;
use crate::render::text::lines::Line;
use crate::render::text::words::MLOCK_KEEPS;
use crate::render::theme::Role;
use crate::render::units::size;
use crate::report::{
    AccessOutcome, Effect, Explanation, Fact, Fault, Movable, Owner, Reason, SwapSlot, Translation, Why,
};
use std::borrow::Cow;

impl Record for Explanation {
    fn write(&self, text: &mut Text) {
        text.block(write, self);
    }
}

/// Writes it.
pub fn write(lines: &mut Lines, explanation: &Explanation) {
    let page = &explanation.page;
    address(lines, explanation);
    let line = lines.field("page");
    match &page.state {
        Ok(state) => line.push(words::state_role(*state), state.word()),
        Err(reason) => line.push(Role::Warn, block::word_for_missing(Some(reason)).1),
    };
    line.plain(": ").prose(Role::Plain, what(page));
    if page.huge == Ok(true) {
        line.plain("; ").prose(Role::Plain, "one entry maps the whole huge page");
    }
    freed(line, explanation);
    if let Some(owner) = explanation.owner {
        let line = lines.field("owner");
        // An average proves no exact number.
        let own = page.words.own_mappings.unwrap_or_default();
        let count = page.words.exact_map_count().map(|count| count.saturating_sub(own));
        let besides = if own > 0 { ", besides pmdb itself" } else { "" };
        line.prose(Role::Plain, format!("{}{besides}", whose(owner, page.kind, count)));
    }
    frame(lines, page);
    if let Ok(folio) = &page.folio {
        block::folio(lines, folio, page.huge.as_ref().ok().copied());
    }
    if let Some(record) = &page.kernel_record {
        held::write(lines, record);
    }
    if let Some(movable) = explanation.movable {
        let role = if movable == Movable::Pinned { Role::Note } else { Role::Plain };
        lines.field("moves").prose(role, moves(movable, page.kind));
    }
    locked(lines, explanation);
    block::place(lines, &page.place);
    explanation.advice.iter().for_each(|advice| region::write_advice(lines, advice));
    behind(lines, explanation);
    if let Some(room) = &explanation.room {
        let line = lines.field("room");
        line.plain("its file system has ").push(Role::Warn, size(room.left));
        line.plain(format!(" of {} left", size(room.bytes)));
    }
    group_limit(lines, explanation);
    access(lines, Access::Read, &explanation.next_read, page);
    access(lines, Access::Write, &explanation.next_write, page);
    // No sentence here depends on soft-dirty bits.
    let is_unexplained =
        |field: &str, reason: &Reason| field != "soft_dirty" && !matches!(reason, Reason::NotApplicable(_));
    Footnotes::of(&Why::of_record(page), is_unexplained).write(lines);
}

/// What MADV_FREE or MAP_DROPPABLE lets the kernel do with the page.
fn freed(line: &mut Line, explanation: &Explanation) {
    // The flags of a tail may not tell.
    let is_freed = explanation.page.words.flags.as_ref().is_ok_and(|flags| flags.is_lazily_freed());
    if is_freed || explanation.discardable == Ok(true) {
        let sentence = match explanation.discardable {
            Ok(true) if explanation.droppable => "droppable: the kernel may discard its contents at any time",
            Err(_) if explanation.page.words.exact_map_count().is_some_and(|count| count > 1) => {
                "freed with MADV_FREE: the kernel may discard its contents if no process has written to it since"
            }
            Ok(true) => "freed with MADV_FREE: until the next write, the kernel may discard its contents",
            Ok(false) => "freed with MADV_FREE, but written since: the kernel keeps its contents",
            Err(_) => "freed with MADV_FREE: the kernel may discard its contents if it was not written since",
        };
        line.plain("; ").prose(Role::Note, sentence);
    }
}

/// What locks the page in memory.
fn locked(lines: &mut Lines, explanation: &Explanation) {
    let is_locked = match &explanation.page.words.flags {
        Ok(flags) => flags.contains(PageFlags::MLOCKED),
        Err(_) => explanation.region_locked == Some(true),
    };
    if is_locked {
        let by_whom = match explanation.region_locked {
            Some(true) => "by the process",
            Some(false) => {
                "the frame, by another mapping of it, for example in a parent or child process; this region is not locked"
            }
            None => "the frame, here or in another process",
        };
        lines.field("locked").prose(Role::Plain, format!("{by_whom}; {MLOCK_KEEPS}"));
    }
}

/// How much of its cgroup's limit is left for the page.
fn group_limit(lines: &mut Lines, explanation: &Explanation) {
    if let Some(limit) = &explanation.group_limit {
        let line = lines.field("limit");
        line.plain("its cgroup ").push(Role::Name, &limit.cgroup).plain(" has ");
        line.push(Role::Warn, size(limit.left)).plain(format!(" of {} left", size(limit.bytes)));
        let reclaimable = match limit.reclaimable {
            _ if explanation.page.kind == Some(Kind::Hugetlb) => None,
            Some(0) => Some("memory.stat shows nothing that reclaim could free".to_owned()),
            Some(bytes) if bytes.saturating_add(limit.left) < explanation.page.page_size => {
                Some(format!("memory.stat shows only {} that reclaim could free, less than a page", size(bytes)))
            }
            Some(bytes) => {
                Some(format!("the kernel first reclaims some of the {} that it can free there", size(bytes)))
            }
            None => Some("memory.stat cannot be read: what reclaim could free there is unknown".to_owned()),
        };
        if let Some(reclaimable) = reclaimable {
            line.plain("; ").prose(Role::Plain, reclaimable);
        }
    }
}

/// Whether it may get another frame, and what could do that.
fn moves(movable: Movable, kind: Option<Kind>) -> &'static str {
    match (movable, kind) {
        (Movable::Pinned, _) => {
            "no: it is pinned (but munmap, MADV_DONTNEED and truncation of the file can unmap it here)"
        }
        (Movable::PossiblyPinned, _) => "not while these references are held: they may be pins",
        (Movable::Held, _) => "not while the other references are held",
        (Movable::Never, Some(Kind::Secret)) => "never: the kernel moves no secret memory",
        (Movable::Never, _) => "never: it is a page of the kernel or of a driver",
        (Movable::Unreclaimable, Some(Kind::Hugetlb)) => "by migration between nodes; never swapped out",
        (Movable::Unreclaimable, _) => "by compaction and migration; locked memory is never swapped out",
        (Movable::UnlessBuffersHeld, _) => {
            "by compaction, migration and reclaim, unless the file system holds its buffers, for example for its journal"
        }
        (Movable::Freely, Some(Kind::File)) => "by compaction, migration and reclaim",
        (Movable::Freely, _) => "by compaction, migration, khugepaged and swap",
    }
}

fn address(lines: &mut Lines, explanation: &Explanation) {
    let page = &explanation.page;
    let line = lines.field("address");
    line.push(Role::Address, page.address);
    block::first_page(line, explanation.range_pages);
    if let Some(symbol) = &page.symbol {
        line.plain("  ");
        block::symbol(line, symbol);
        line.plain(" in ").push(Role::Name, &symbol.module);
    }
    if let Some(region) = &page.region {
        let (role, name) = block::mapped_name(&region.name, region.without_path);
        line.word("  ", role, name).plain(" ").plain(region.perms.to_string());
    }
}

/// What the page is.
fn what(page: &Translation) -> Cow<'static, str> {
    if page.why.of("state").is_some() {
        return words::UNCERTAIN.into();
    }
    let state = match &page.state {
        Ok(state) => *state,
        Err(reason) => return reason.cause().to_owned().into(),
    };
    let what = match (state, page.kind) {
        (State::Present, Some(kind)) => return words::meaning(kind),
        (State::Untouched, Some(kind)) => match kind {
            // The lines below explain what an access does.
            Kind::Anonymous | Kind::Hugetlb => "nothing is mapped here: never touched, or freed again",
            Kind::File => "this page of a file is not mapped here",
            Kind::Shmem => "this page of shared memory is not mapped here",
            Kind::Cached => "not mapped here, but its contents are in the page cache",
            Kind::NotCached => "not mapped here, and its contents are not in the page cache",
            Kind::PastEnd => "beyond the end of the file",
            Kind::MaybeSwapped => "not mapped here: shared memory that is swapped out",
            Kind::Secret => "this page of secret memory is not mapped here",
            Kind::DriverMemory => "memory of a driver, which has no page here",
            other => return words::untouched(other),
        },
        (State::Unmapped, _) => "in no region",
        (State::Guard, _) => "a guard page (MADV_GUARD_INSTALL)",
        (State::Poisoned, _) => "a poison marker",
        (state, _) => return words::state_in(state, page.region.as_ref()),
    };
    what.into()
}

fn whose(owner: Owner, kind: Option<Kind>, map_count: Option<u64>) -> String {
    let others = match map_count {
        Some(count @ 2..) => format!("{count} mappings"),
        _ => "several mappings".to_owned(),
    };
    let object = if kind == Some(Kind::Secret) { "the secret memory" } else { "the page cache" };
    match (owner, map_count) {
        (Owner::Sole, _) => "exclusive: mapped once".into(),
        (Owner::CopyOnWrite, _) => {
            format!("copy-on-write: {others} share it until one of them writes")
        }
        (Owner::LeftOver, _) => "exclusive now: mapped once (it was shared after a fork)".into(),
        (Owner::Merged, _) => format!("merged with equal pages: {others} share it until one of them writes"),
        (Owner::Object, Some(0 | 1)) => format!("{object}, mapped only here"),
        (Owner::Object, Some(_)) => format!("{object}: {others} share it"),
        (Owner::Object, None) if kind == Some(Kind::Secret) => format!("{object}, for every process that maps it"),
        (Owner::Object, None) => "the page cache, for every process that maps the file or the shared memory".into(),
        (Owner::Kernel, _) => "the kernel: the same page for all processes".into(),
        (Owner::Device, _) => "a device".into(),
        (Owner::Driver, Some(2..)) => format!("a driver: {others} share it"),
        (Owner::Driver, _) => "a driver".into(),
    }
}

fn frame(lines: &mut Lines, page: &Translation) {
    let Ok(physical) = &page.physical else {
        if page.pfn_hidden == Ok(true) {
            lines.field("frame").push(Role::Warn, "hidden");
        }
        return;
    };
    let line = lines.field("frame");
    match &page.pfn {
        Ok(frame) => line.push(Role::Frame, frame).plain(", physical address "),
        Err(_) => line.plain("physical address "),
    };
    line.push(Role::Physical, physical);
}

/// The backing file and the swap slot.
fn behind(lines: &mut Lines, explanation: &Explanation) {
    if let Some(file) = &explanation.file {
        let line = lines.field("file");
        let region = explanation.page.region.as_ref();
        let is_without = region.is_some_and(|region| region.without_path);
        let (role, name) = block::mapped_name(&file.name, is_without);
        line.push(role, name).plain(format!(", byte {:#x}", file.offset));
        if file.deleted && !is_without {
            line.plain(", ").push(Role::Warn, "deleted");
        }
    }
    if let Ok(slot) = &explanation.page.swap {
        let line = lines.field("swap");
        swap(line, slot);
    }
}

fn swap(line: &mut Line, slot: &SwapSlot) {
    match &slot.device {
        Ok(device) => line.push(Role::Name, device),
        Err(_) => line.plain(format!("area {}", slot.kind)),
    };
    line.plain(format!(", slot {:#x}", slot.offset));
    if let Some(byte) = slot.byte_offset {
        line.plain(format!(", at byte {byte:#x}"));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// What an access does, its fault, and the other possible effects.
fn access(lines: &mut Lines, access: Access, outcome: &Fact<AccessOutcome>, page: &Translation) {
    let label = match access {
        Access::Read => "read",
        Access::Write => "write",
    };
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(reason) => {
            lines.field(label).push(Role::Warn, block::word_for_missing(Some(reason)).1);
            return;
        }
    };
    // The pool copies whole pages. Of all others one small page is copied and the PMD is split, whatever the folio
    // (since Linux 5.8: do_huge_pmd_wp_page in mm/huge_memory.c; for files wp_huge_pmd in mm/memory.c).
    let splits = page.huge == Ok(true) && page.kind != Some(Kind::Hugetlb);
    let what_it_does = |effect| match effect {
        Effect::Copy if splits => format!(
            "this process gets a copy of these {} alone, and the huge mapping is split into small pages",
            size(page.page_size)
        ),
        _ => does(effect, access == Access::Write, page.kind).to_owned(),
    };
    let line = lines.field(label);
    let mut copy = copy(outcome);
    for (index, &effect) in outcome.effects.iter().enumerate() {
        let (role, fault) = fault(effect);
        match index {
            0 => line.push(role, fault),
            _ => line.plain("; or ").prose(role, fault),
        };
        let does = what_it_does(effect);
        if !does.is_empty() {
            line.plain(": ").prose(Role::Plain, does);
        }
        if let Some(addition) = copy.take_if(|_| !effect.is_refusal()) {
            line.plain(", ").prose(Role::Plain, addition);
        }
    }
    let why = match access {
        Access::Write if is_mark_hidden(outcome, page) => {
            "(its own mark decides, and the kernel shows only that of the first page of a folio)"
        }
        Access::Write
            if outcome.effects.contains(&Effect::Copy) && outcome.effects.len() > 1 && page.words.flags.is_err() =>
        {
            "(the flags of its frame decide, and they are hidden here)"
        }
        Access::Write
            if matches!(&*outcome.effects, [Effect::Nothing, Effect::Reuse] | [Effect::Reuse, Effect::Nothing]) =>
        {
            "(the write bit of its page-table entry decides)"
        }
        _ => return,
    };
    line.plain(" ").prose(Role::Note, why);
}

/// Whether it is unknown if a later page of a folio is copied, because its own PG_anon_exclusive is not visible.
fn is_mark_hidden(outcome: &AccessOutcome, page: &Translation) -> bool {
    let is_tail = page.words.flags.as_ref().is_ok_and(|flags| flags.contains(PageFlags::COMPOUND_TAIL));
    is_tail && [Effect::Nothing, Effect::Copy].iter().all(|effect| outcome.effects.contains(effect))
}

/// The private copy that the access makes or may make besides the likeliest effect.
fn copy(outcome: &AccessOutcome) -> Option<&'static str> {
    match (outcome.effects.as_slice(), outcome.copies) {
        ([Effect::Copy, ..], _) => None,
        (_, Some(true)) => Some("and a private copy is made"),
        ([Effect::SwapIn, ..], None) => Some("and copied if the swap slot is shared"),
        _ => None,
    }
}

fn fault(effect: Effect) -> (Role, &'static str) {
    match effect.fault() {
        Fault::None => (Role::Good, "no fault"),
        Fault::Minor => (Role::Plain, "minor fault"),
        Fault::Major => (Role::Warn, "major fault"),
        Fault::Userfault => (Role::Warn, "userfault"),
        Fault::Segv => (Role::Bad, "SIGSEGV"),
        Fault::Bus => (Role::Bad, "SIGBUS"),
        Fault::Kill => (Role::Bad, "SIGKILL"),
    }
}

fn does(effect: Effect, is_write: bool, kind: Option<Kind>) -> &'static str {
    match effect {
        Effect::Nothing => "",
        // Only anonymous memory has a zero page that is shared: a hole of an object gets a page with the first
        // access.
        Effect::Zeros if kind == Some(Kind::Shmem) => "a new page, filled with zeros, is added to the shared memory",
        Effect::Zeros if kind == Some(Kind::Secret) => "a new page, filled with zeros, is added to the secret memory",
        Effect::Zeros if kind == Some(Kind::Hugetlb) => "a new page of the pool, filled with zeros, is mapped",
        Effect::Zeros if is_write => "a new page, filled with zeros, is mapped",
        Effect::Zeros => "the shared zero page is mapped",
        Effect::HugeZeros if kind == Some(Kind::Shmem) => {
            "a new huge page, filled with zeros, is added to the shared memory"
        }
        Effect::HugeZeros if is_write => "a new huge page, filled with zeros, is mapped",
        Effect::HugeZeros => "the shared huge zero page is mapped",
        Effect::Copy => "this process gets a copy of the page",
        Effect::Reuse => "made writable in place, without a copy",
        Effect::MapCached if kind == Some(Kind::Secret) => "the page of the secret memory is mapped",
        Effect::MapCached => "the page is mapped from the page cache, without I/O",
        Effect::ReadFile => "the file is read from disk (a hole needs no read)",
        Effect::SwapIn => "the page is read back from swap (a minor fault if the swap cache still has it)",
        Effect::FromDevice => "the page is brought back from the device",
        Effect::Map => "a driver or the kernel maps its own page",
        Effect::Unprotect => "the kernel records the write for userfaultfd and lets it pass",
        Effect::Notify => "the thread waits until the handler of a userfaultfd has answered",
        Effect::Wait => "the thread waits until the page has moved",
        Effect::StackGrows => "the stack above grows to here",
        Effect::NoRegion => "there is no region here",
        Effect::Protection => "the region does not permit it",
        Effect::ProtectionKey => {
            "if the thread has no such right for the protection key of the region (its rights are in a register)"
        }
        Effect::Guard => "a guard page",
        Effect::PastEnd => "the file ends before this page",
        Effect::NoSpace if matches!(kind, Some(Kind::Shmem | Kind::Hugetlb)) => {
            "its file system, or a quota, has no room for a page"
        }
        Effect::NoSpace => "its file system, or a quota, has no room for a block, if the file has a hole here",
        Effect::NoDriverPage => "the driver has inserted no page here",
        Effect::DriverRefuses => "the driver refuses it",
        Effect::NoKernelPage => "the kernel has no such page on this machine",
        Effect::PoolEmpty => "the hugetlb pool has no page left",
        Effect::PoolLimit => "the limit of its cgroup on the hugetlb pool is reached",
        Effect::WaitForMemory => "the thread waits until its cgroup has memory again (its OOM killer is off)",
        Effect::OutOfMemory => "the OOM killer ends a process of its cgroup",
        Effect::Poisoned => "the page is poisoned",
        Effect::Hwpoison => "the memory of the page has failed",
    }
}
