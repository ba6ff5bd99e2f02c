//! `translate ADDR`: all facts about one address, a line for each question.

use super::block::{self, REMARK};
use super::lines::Lines;
use super::{Text, held, words};
use crate::kernel::{Kind, PageMapEntry, State};
use crate::render::Record;
use crate::render::text::footnotes::Footnotes;
use crate::render::theme::Role;
use crate::render::units::size;
use crate::report::{Hex, NearestRegions, Reason, RegionBrief, TableEntryReport, Translation, Why};

impl Record for Translation {
    fn write(&self, text: &mut Text) {
        text.block(write, self);
    }
}

/// Writes the block.
pub fn write(lines: &mut Lines, t: &Translation) {
    address(lines, t);
    physical(lines, t);
    state(lines, t);
    entry(lines, t);
    if let Some(entry) = &t.table_entry {
        table_entry(lines, entry);
    }
    if let Ok(slot) = &t.swap {
        block::swap(lines, slot, "area");
    }
    flags(lines, t);
    write_map_count(lines, t);
    if let Ok(folio) = &t.folio {
        block::folio(lines, folio, t.huge.as_ref().ok().copied());
    }
    if let Some(record) = &t.kernel_record {
        held::write(lines, record);
    }
    block::place(lines, &t.place);
    if let Some(region) = &t.region {
        let line = lines.field("region");
        block::region(line, region);
    }
    if let Some(nearest) = &t.nearest {
        neighbours(lines, t, nearest);
    }
    // Where the state is unknown, all the rest is for the same reason.
    let is_repeated = |field: &str, reason: &Reason| {
        t.state.as_ref().err() == Some(reason) && !["state", "physical"].contains(&field)
    };
    let is_unexplained = |field: &str, reason: &Reason| !is_said(t, field, reason) && !is_repeated(field, reason);
    Footnotes::of(&Why::of_record(t), is_unexplained).write(lines);
}

/// Whether the block already explains a missing field, by the missing frame or by the state.
fn is_said(t: &Translation, field: &str, reason: &Reason) -> bool {
    matches!(reason, Reason::NotApplicable(_))
        && (field == "swap"
            || ["entry", "pfn_hidden", "uffd_wp", "file_mapped", "kernel_record.file_page.path"].contains(&field)
            || t.physical.as_ref().err() == Some(reason)
            || block::is_place_said(&t.place, field))
}

fn address(lines: &mut Lines, t: &Translation) {
    let line = lines.field("address");
    line.push(Role::Address, t.address);
    if let Some(symbol) = &t.symbol {
        line.indent_at(REMARK);
        block::symbol(line, symbol);
        line.plain(" in ").push(Role::Name, &symbol.module);
    }
}

fn physical(lines: &mut Lines, t: &Translation) {
    let line = lines.field("physical");
    match &t.physical {
        Ok(physical) => {
            line.push(Role::Physical, physical);
            if let Ok(frame) = t.pfn {
                line.indent_at(REMARK)
                    .plain("frame ")
                    .push(Role::Frame, frame)
                    .plain(format!(" + {:#x}", t.page_offset));
            }
        }
        // Only the number of the frame is hidden; the offset in it is known.
        Err(_) if t.pfn_hidden == Ok(true) => {
            line.push(Role::Warn, "hidden")
                .indent_at(REMARK)
                .plain(format!("{:#x} into a frame whose number is hidden", t.page_offset));
        }
        Err(Reason::NotApplicable(reason)) => {
            line.push(Role::Dim, "none").indent_at(REMARK).prose(Role::Dim, reason);
        }
        Err(reason) => {
            line.push(Role::Warn, block::word_for_missing(Some(reason)).1);
        }
    }
}

fn state(lines: &mut Lines, t: &Translation) {
    let line = lines.field("state");
    let Ok(state) = t.state else {
        let (role, text) = block::word_for_missing(t.state.as_ref().err());
        line.push(role, text);
        return;
    };
    line.push(words::state_role(state), state.word());
    if let Some(kind) = t.kind {
        line.plain(", ").plain(kind.word());
    }
    line.indent_at(REMARK);
    // For present and untouched pages the kind says more; otherwise the state does.
    let meaning = match (state, t.kind) {
        (State::Present, Some(kind)) => words::meaning(kind),
        (State::Untouched, Some(kind)) => words::untouched(kind),
        _ => words::state_in(state, t.region.as_ref()),
    };
    match t.why.of("state") {
        None => line.prose(Role::Plain, meaning),
        Some(_) => line.prose(Role::Warn, words::UNCERTAIN),
    };
    if t.huge == Ok(true) {
        line.prose(Role::Note, "(mapped huge: one page-table entry for the whole huge page)");
    }
}

fn entry(lines: &mut Lines, t: &Translation) {
    let Ok(Hex(raw)) = t.entry else {
        return;
    };
    let entry = PageMapEntry::new(raw);
    let line = lines.field("entry");
    line.push(Role::Raw, format!("{raw:#018x}")).indent_at(REMARK);
    for bit in entry.set_bits() {
        line.word(", ", Role::Plain, format!("{} {}", bit.number, bit.name));
    }
    if entry.is_present() {
        let frame = match entry.frame() {
            Some(_) => "0-54 frame",
            None => "0-54 frame hidden",
        };
        line.word(", ", Role::Plain, frame);
    } else if entry.is_swap_hidden() {
        line.word(", ", Role::Plain, "0-54 swap type and offset hidden");
    } else if let Some(swap) = entry.swap() {
        line.word(", ", Role::Plain, format!("0-4 swap type {}", swap.kind)).word(
            ", ",
            Role::Plain,
            format!("5-54 offset {:#x}", swap.offset),
        );
    } else if raw == 0 {
        line.push(Role::Dim, "no bit set");
    }
}

fn table_entry(lines: &mut Lines, entry: &TableEntryReport) {
    let level = match entry.level {
        1 => "level 1 (PTE)".to_owned(),
        2 => "level 2 (PMD)".to_owned(),
        3 => "level 3 (PUD)".to_owned(),
        level => format!("level {level}"),
    };
    let line = lines.field("table");
    line.plain(level).indent_at(REMARK);
    let bits = [
        (entry.present, "present", "no access"),
        (entry.write, "writable", "read-only"),
        (entry.user, "user", "kernel only"),
        (entry.accessed, "accessed", "not accessed"),
        (entry.dirty, "dirty", "clean"),
        (entry.no_execute, "no-execute", "executable"),
    ];
    for (is_set, set, clear) in bits {
        line.word(", ", Role::Plain, if is_set { set } else { clear });
    }
    if let Some(key @ 1..) = entry.protection_key {
        line.word(", ", Role::Plain, format!("protection key {key}"));
    }
}

fn flags(lines: &mut Lines, t: &Translation) {
    let Ok(flags) = t.words.flags else {
        return;
    };
    let line = lines.field("flags");
    line.push(Role::Raw, format!("{:#018x}", flags.bits())).indent_at(REMARK);
    let names = words::flag_names(flags, t.huge == Ok(true));
    if names.is_empty() {
        line.push(Role::Dim, "none set");
    }
    for name in names {
        line.word(" ", Role::Flag, name);
    }
}

fn write_map_count(lines: &mut Lines, t: &Translation) {
    let counted = t.words.map_count.as_ref().ok();
    let times = counted.map(|times| words::times(*times, &t.words));
    if let (Some(&0), Some(Kind::Zero | Kind::HugeZero)) = (counted, t.kind) {
        lines.field("mapped").plain(words::ZEROS_ARE_NOT_COUNTED);
        return;
    }
    let by = match t.exclusive {
        Ok(true) => Some("exclusive"),
        Ok(false) if t.words.is_once_besides_pmdb() => Some("not exclusive only because of pmdb itself"),
        Ok(false) if times.is_none() && t.words.own_mappings.is_some() => {
            Some("not exclusive: pmdb itself maps it too")
        }
        Ok(false) => Some("not exclusive"),
        Err(_) => None,
    };
    if times.is_none() && (by.is_none() || t.state != Ok(State::Present)) {
        return;
    }
    let line = lines.field("mapped");
    match (times, by) {
        (Some(times), Some(by)) => line.plain(times).indent_at(REMARK).plain(by),
        (Some(one), None) => line.plain(one),
        (None, Some(one)) => line.plain(one),
        (None, None) => line,
    };
    if is_of_first_page(t) {
        let clause = "bit 56 of the entry is that of the first page of the huge page";
        line.plain(": ").prose(Role::Plain, clause);
    }
}

/// Whether the kernel's exclusive bit, which is one for a whole huge page, is wrong for this page.
fn is_of_first_page(t: &Translation) -> bool {
    let (Ok(is), Ok(Hex(raw))) = (&t.exclusive, &t.entry) else {
        return false;
    };
    t.huge == Ok(true) && *is != PageMapEntry::new(*raw).is_exclusive()
}

fn neighbours(lines: &mut Lines, t: &Translation, near: &NearestRegions) {
    let address = t.address.get();
    let below = |region: &RegionBrief| {
        let distance = address.saturating_sub(region.end.get());
        match distance {
            0 => "ends right here".into(),
            _ => format!("ends {} ({distance:#x}) below", size(distance)),
        }
    };
    let above = |region: &RegionBrief| {
        let distance = region.start.get().saturating_sub(address);
        format!("starts {} ({distance:#x}) above", size(distance))
    };
    let sides = [
        ("below", &near.below, near.below.as_ref().map(below)),
        ("above", &near.above, near.above.as_ref().map(above)),
    ];
    for (label, region, distance) in sides {
        let line = lines.field(label);
        match (region, distance) {
            (Some(region), Some(distance)) => {
                block::region(line, region);
                line.new_line().push(Role::Dim, distance);
            }
            _ => _ = line.push(Role::Dim, "no region"),
        }
    }
}
