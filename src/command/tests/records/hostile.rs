//! Whatever names and numbers a target makes up: nothing moves the terminal, nothing panics, JSON stays JSON.

use super::samples::*;
use super::{rendered, text};
use crate::command::decode::{BitMeaning, Decoded, DecodedEntry};
use crate::command::flags::samples::flags;
use crate::command::flags::{FlagMeaning, FlagsReport};
use crate::command::history::HistoryEntry;
use crate::command::line::samples::line;
use crate::command::line::{LineFrame, LineReport};
use crate::command::modules::ModuleReport;
use crate::command::modules::samples::module;
use crate::command::print::ValueReport;
use crate::command::print::samples::value;
use crate::command::process::samples::process;
use crate::command::process::{MemoryField, ProcessReport};
use crate::command::ps::ProcessRow;
use crate::command::ps::samples::process_row;
use crate::command::show::SettingReport;
use crate::command::symbol::SymbolReport;
use crate::command::symbol::samples::symbol;
use crate::command::symbols::samples::symbols_summary;
use crate::command::symbols::{SilentModule, SymbolRow, SymbolsSummary};
use crate::command::watch::records::samples::event;
use crate::command::watch::records::{Event, WatchStart};
use crate::kernel::text::is_plain;
use crate::kernel::*;
use crate::render::theme::Background;
use crate::render::{Json, Record, Text, Theme};
use crate::report::*;
use jiff::tz::TimeZone;
use proptest::prelude::*;

/// Every record that can carry text or a number from elsewhere, with `bytes` and `number` in all such places.
pub fn hostile(bytes: &[u8], number: u64) -> Vec<Box<dyn Record>> {
    let name = Name::new(bytes);
    let text = String::from_utf8_lossy(bytes).into_owned();
    let address = VirtualAddress::new(number);
    let frame = FrameNumber::new(number);
    let physical = PhysicalAddress::new(number);
    let flags = PageFlags::from_bits_retain(number);
    let place = FramePlace {
        zone: Ok(text.clone()),
        iomem: Ok(vec![name.clone(), name.clone()]),
        cgroup_path: Ok(CgroupPath::Path(name.clone())),
        ..FramePlace::unknown(&Reason::Changed)
    };
    let brief = RegionBrief {
        deleted: true,
        without_path: true,
        start: address,
        end: address,
        perms: permissions("rwx"),
        offset: Hex(number),
        name: name.clone(),
    };
    let symbol_brief = SymbolBrief { name: name.clone(), offset: number, module: name.clone() };
    let slot = SwapSlot {
        kind: 255,
        offset: number,
        byte_offset: number.checked_mul(4096).map(Hex),
        device: Ok(name.clone()),
    };
    let mut why = Why::default();
    why.note("zone", &Reason::not_permitted(text.clone()));
    let one = Translation {
        address,
        physical: Ok(physical),
        pfn: Ok(frame),
        entry: Ok(Hex(number)),
        page_offset: number,
        page_size: number,
        swap: Ok(slot.clone()),
        words: FrameWords { flags: Ok(flags), map_count: Ok(number), map_count_average: false, own_mappings: None },
        place: place.clone(),
        region: Some(brief.clone()),
        symbol: Some(symbol_brief.clone()),
        nearest: Some(NearestRegions { below: Some(brief.clone()), above: Some(brief.clone()) }),
        why: why.clone(),
        ..present()
    };
    let rows = PagesRow {
        start: address,
        pages: number,
        pfn: Ok(frame),
        words: FrameWords { flags: Ok(flags), map_count: Ok(number), map_count_average: false, own_mappings: None },
        region: Some(name.clone()),
        why: why.clone(),
        ..pages()
    };
    let free = Frames {
        pfn: frame,
        frames: number,
        bytes: Some(number),
        zone: Ok(text.clone()),
        words: FrameWords { flags: Ok(flags), ..frames().words },
        ..frames()
    };
    let summary = WalkSummary { pages: number, bytes: number, longest_run_bytes: Some(number), ..walk_summary() };
    let row = RegionReport {
        start: address,
        device: Some(Device { major: u32::MAX, minor: u32::MAX }),
        name: name.clone(),
        size: number,
        present: Some(number),
        after: Some(name.clone()),
        ..region_row()
    };
    let full = RegionReport {
        at: Some(RegionPlace {
            address,
            region_offset: number,
            file_offset: Some(Hex(number)),
            section: Some(name.clone()),
            symbol: Some(symbol_brief.clone()),
        }),
        vm_flags: Some(vec![VmFlag { code: text.clone(), meaning: "unknown" }]),
        smaps: Some(Numbers(vec![(text.clone(), number), (text.clone() + "2", 0)])),
        why: why.clone(),
        ..row.clone()
    };
    let frame_flags = FlagsReport {
        place,
        meanings: vec![FlagMeaning { bit: 63, name: text.clone(), meaning: text.clone() }],
        folio: Err(Reason::not_permitted(text.clone())),
        ..flags_report(number)
    };
    let decoded = Decoded::Entry(DecodedEntry {
        raw: Hex(number),
        state: Some(State::Swapped),
        pfn: Some(frame),
        physical: Some(physical),
        swap: Some(slot),
        bits: vec![BitMeaning { bits: text.clone(), name: "swap type", meaning: text.clone() }],
    });
    let change = Event {
        time: number as f64,
        address: Some(address),
        pages: number,
        region: Some(name.clone()),
        symbol: Some(symbol_brief.clone()),
        last_symbol: Some(SymbolBrief { offset: 1, ..symbol_brief.clone() }),
        detail: Some(text.clone()),
        ..event()
    };
    let blind = WatchStart {
        pages: number,
        every: number as f64,
        blind: vec![Blind { kind: EventKind::Moved, reason: text.clone() }],
    };
    let valued = ValueReport {
        name: Some(text.clone()),
        value: text.clone(),
        also: Some(text.clone()),
        symbol: Some(AsText(symbol_brief.clone())),
        region: Some(name.clone()),
        ..value()
    };
    let named = SymbolReport {
        name: name.clone(),
        mangled: Some(name.clone()),
        size: number,
        offset: number,
        section: Some(name.clone()),
        module: name.clone(),
        ..symbol()
    };
    let mapped = ModuleReport { name: name.clone(), debug_file: Some(name.clone()), ..module() };
    let silent = SymbolsSummary {
        silent: vec![SilentModule { module: name.clone(), reason: text.clone() }],
        ..symbols_summary()
    };
    let compiled = LineReport {
        symbol: Ok(symbol_brief.clone()),
        module: Ok(name.clone()),
        file: Ok(name.clone()),
        line: Ok(number),
        column: Ok(number),
        frames: vec![
            LineFrame {
                function: Ok(name.clone()),
                file: Ok(name.clone()),
                line: Ok(number),
                column: Ok(number),
                inlined: true,
            };
            2
        ],
        ..line()
    };
    let running = ProcessReport {
        name: name.clone(),
        state: text.clone(),
        executable: Some(name.clone()),
        command_line: Some(name.clone()),
        age: Some(number as f64),
        page_size: number,
        memory: vec![MemoryField { name: text.clone(), bytes: number, meaning: "unknown" }],
        ..process()
    };
    let listed = ProcessRow {
        memory: None,
        user_name: Ok(name.clone()),
        state: text.chars().next().unwrap_or('?'),
        resident: Some(number),
        name: name.clone(),
        command_line: Some(name.clone()),
        ..process_row()
    };
    let attached =
        TargetReport { name: name.clone(), executable: Some(name.clone()), remarks: vec![text.clone()], ..target() };
    let failure = ErrorReport {
        code: ErrorCode::Failed,
        message: text.clone(),
        place: Some(ErrorPlace {
            file: Some(name.clone()),
            line: Some(number as usize),
            column: Some(number as usize % 40),
            width: number as usize,
            text: text.clone(),
        }),
        callers: vec![ErrorPlace {
            file: Some(name.clone()),
            line: Some(1),
            column: Some(1),
            width: 1,
            text: text.clone(),
        }],
        expected: vec![text.clone(), text.clone()],
        hint: Some(text.clone()),
        nearest: vec![brief],
    };
    vec![
        Box::new(one),
        Box::new(rows),
        Box::new(free),
        Box::new(summary),
        Box::new(group(&text, number >> 12)),
        Box::new(row),
        Box::new(full),
        Box::new(frame_flags),
        Box::new(decoded),
        Box::new(blind),
        Box::new(TimelineRow {
            after: Some(name.clone()),
            row: number,
            start: address,
            end: address,
            pages: number,
            bytes: number,
            populated: Some(number),
            region: Some(name.clone()),
            symbol: Some(name.clone()),
            regions: number,
        }),
        Box::new(timeline_sample(&[(number, Mark::Anonymous, true)])),
        Box::new(change),
        Box::new(valued),
        Box::new(named.clone()),
        Box::new(SymbolRow { symbol: named }),
        Box::new(silent),
        Box::new(mapped),
        Box::new(compiled),
        Box::new(running),
        Box::new(listed),
        Box::new(attached),
        Box::new(SettingReport { name: text.clone(), value: text.clone(), meaning: text.clone() }),
        Box::new(HistoryEntry { number: number as usize, line: name }),
        Box::new(Answer { message: text.clone() }),
        Box::new(Note { message: text }),
        Box::new(failure),
    ]
}

fn flags_report(number: u64) -> FlagsReport {
    FlagsReport {
        words: FrameWords {
            flags: Ok(PageFlags::from_bits_retain(number)),
            map_count: Ok(number),
            map_count_average: false,
            own_mappings: None,
        },
        place: FramePlace {
            cgroup: Ok(number),
            cgroup_path: Ok(CgroupPath::Gone(number)),
            ..FramePlace::unknown(&Reason::Changed)
        },
        ..flags()
    }
}

/// Takes the colours off, and nothing else.
fn without_colours(text: &str) -> String {
    let colour = regex_lite::Regex::new("\x1b\\[[0-9;]*m").unwrap();
    colour.replace_all(text, "").into_owned()
}

pub fn numbers() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), Just(0), Just(u64::MAX), (0u32..64).prop_map(|bit| 1 << bit)]
}

/// Bytes with plenty of what does harm.
pub fn names() -> impl Strategy<Value = Vec<u8>> {
    let nasty = prop::sample::select(vec![
        "\x1b[2J",
        "\n",
        "\r",
        "\t",
        "\u{9b}31m",
        "\u{202e}",
        "\u{200b}",
        "\x7f",
        "\\",
        " (deleted)",
        "漢",
        "é",
        "[heap]",
        "/",
        "\"",
        "<",
        "&",
        "]]>",
    ]);
    let piece = prop_oneof![
        nasty.prop_map(|text| text.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..6),
        "[a-z ]{0,12}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn text_never_moves_the_terminal(
        bytes in names(),
        number in numbers(),
        width in prop::option::of(0usize..200),
        coloured: bool,
    ) {
        let theme = Theme::new(coloured.then_some(Background::Any));
        let mut renderer = Text::with_time_zone(theme, width, TimeZone::UTC);
        let shown = rendered(&mut renderer, &hostile(&bytes, number));
        let plain = without_colours(&shown);
        let bad = plain.chars().find(|&c| c != '\n' && !is_plain(c));
        prop_assert_eq!(bad, None, "{}", plain);
        if !coloured {
            prop_assert_eq!(shown, plain);
        }
    }

    #[test]
    fn colours_change_no_text(bytes in names(), number in numbers(), width in prop::option::of(0usize..200)) {
        let mut coloured = Text::with_time_zone(Theme::new(Some(Background::Any)), width, TimeZone::UTC);
        let records = hostile(&bytes, number);
        let shown = without_colours(&rendered(&mut coloured, &records));
        prop_assert_eq!(shown, text(width, &records));
    }

    #[test]
    fn json_is_one_printable_line_that_parses(bytes in names(), number in numbers()) {
        for record in hostile(&bytes, number) {
            let line = rendered(&mut Json, &[record]);
            let body = line.strip_suffix('\n').unwrap();
            prop_assert!(body.chars().all(is_plain), "{}", body);
            let json: serde_json::Value = serde_json::from_str(body).unwrap();
            prop_assert!(json["type"].is_string());
        }
    }
}
