//! Pictures as SVG.

use super::samples::*;
use super::{hostile, rendered, text};
use crate::command::map::samples::map_region;
use crate::command::watch::records::samples::{watch_start, watch_summary};
use crate::render::Record;
use crate::render::{Json, Svg, Text, Theme};
use crate::report::Mark;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use roxmltree::{Document, Node};
use serde_json::Value;
use snapbox::assert_data_eq;

fn map() -> [Box<dyn Record>; 2] {
    [Box::new(map_region()), Box::new(walk_summary())]
}

/// What the cells are said to be, in order: start, end, and what is there.
fn cells(svg: &str) -> Vec<(u64, u64, String)> {
    let document = Document::parse(svg).expect("well-formed");
    let titles = document
        .descendants()
        .filter(|node| node.has_tag_name("g"))
        .filter_map(|cells| cells.first_element_child().filter(is_title));
    let title = |title: Node| {
        let (range, what) = title.text()?.split_once(": ")?;
        let (start, end) = range.split_once("..")?;
        let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
        Some((number(start)?, number(end)?, what.to_owned()))
    };
    titles.filter_map(title).collect()
}

fn is_title(node: &Node) -> bool {
    node.has_tag_name("title")
}

#[test]
fn a_map_as_svg() {
    let svg = rendered(&mut Svg::new("demo (4242): map heap", None), &map());
    assert_data_eq!(svg, snapbox::file!["golden/map.svg"].raw());
}

/// Cells that stand in two rows come apart there, and are joined for the comparison.
#[test]
fn a_picture_has_the_cells_of_the_record() {
    let svg = rendered(&mut Svg::new("demo", None), &map());
    let mut drawn: Vec<(u64, u64, String)> = Vec::new();
    for (start, end, what) in cells(&svg) {
        match drawn.last_mut() {
            Some(last) if last.1 == start && last.2 == what => last.1 = end,
            _ => drawn.push((start, end, what)),
        }
    }
    let json: Value = serde_json::from_str(&rendered(&mut Json, &map()[..1])).unwrap();
    let number = |value: &Value| {
        let text = value.as_str().unwrap().trim_start_matches("0x");
        u64::from_str_radix(text, 16).unwrap()
    };
    let mut start = number(&json["start"]);
    let cell = json["cell_pages"].as_u64().unwrap() * 4096;
    let wanted = json["cells"].as_array().unwrap().iter().map(|cells| {
        let end = start + cells["cells"].as_u64().unwrap() * cell;
        let mark = cells["mark"].as_str().unwrap();
        let what = if cells["mixed"].as_bool().unwrap() { format!("{mark}, and others") } else { mark.to_owned() };
        (std::mem::replace(&mut start, end), end, what)
    });
    assert_eq!(drawn, wanted.collect::<Vec<_>>());
    assert_eq!(start, number(&json["end"]));
}

/// A page that comes, is copied, and goes to swap; six rows stay empty, and in the end a region comes.
fn timeline(samples: u64) -> Vec<Box<dyn Record>> {
    let mut records: Vec<Box<dyn Record>> = vec![Box::new(watch_start())];
    records.extend((0..8).map(|row| Box::new(timeline_row(row)) as Box<dyn Record>));
    for sample in 0..samples {
        let first = match sample {
            0..2 => (1, Mark::Untouched, false),
            2 => (1, Mark::Anonymous, true),
            7 => (1, Mark::Anonymous, true),
            3..20 => (1, Mark::Anonymous, false),
            20.. => (1, Mark::Swapped, sample == 20),
        };
        let mut rows = vec![first, (5, Mark::Untouched, false), (2, Mark::File, false)];
        if sample == 30 {
            records.push(Box::new(timeline_row(8)));
        }
        if sample >= 30 {
            rows.push((1, Mark::PrivateCopy, false));
        }
        records.push(Box::new(timeline_sample(&rows)));
    }
    records.push(Box::new(watch_summary()));
    records
}

#[test]
fn a_timeline_in_pieces_of_the_width() {
    let both = |samples| format!("{}\n---\n{}", text(Some(60), &timeline(samples)), text(None, &timeline(samples)));
    assert_data_eq!(both(45), snapbox::file!["golden/timeline.txt"].raw());
}

#[test]
fn a_timeline_as_svg() {
    let svg = rendered(&mut Svg::new("demo (4242): watch heap as timeline", None), &timeline(24));
    Document::parse(&svg).expect("well-formed");
    assert_data_eq!(svg, snapbox::file!["golden/timeline.svg"].raw());
}

/// What a terminal shows in the end, of which only the escapes that pictures use are known.
fn screen(written: &str) -> Vec<String> {
    let (mut lines, mut row) = (vec![String::new()], 0);
    let mut rest = written;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\n' => row += 1,
            '\r' => {}
            '\x1b' => {
                let end = rest.find(|c: char| c.is_ascii_alphabetic()).expect("an escape");
                let number = rest[1..end].parse::<usize>();
                match &rest[end..=end] {
                    "A" => row -= number.expect("rows"),
                    "K" => {}
                    "J" => lines.truncate(row),
                    other => panic!("{other}"),
                }
                // Whatever is written next stands at the beginning of its line.
                if &rest[end..=end] == "A" {
                    lines[row..].iter_mut().for_each(String::clear);
                }
                rest = &rest[end + 1..];
            }
            c => lines[row].push(c),
        }
        if lines.len() <= row {
            lines.resize(row + 1, String::new());
        }
    }
    lines
}

#[test]
fn on_a_terminal_the_last_samples_stand_in_one_place() {
    let records = timeline(45);
    let mut renderer = Text::with_time_zone(Theme::PLAIN, Some(60), TimeZone::UTC).in_place(24);
    let shown = screen(&rendered(&mut renderer, &records));
    // As many columns as there is room for, with the last sample at the right.
    let heads: Vec<&String> = shown.iter().filter(|line| line.starts_with("samples ")).collect();
    assert_eq!(heads.len(), 1, "{shown:#?}");
    assert!(heads[0].starts_with("samples 21 to 45, "), "{shown:#?}");
    let heap = shown.iter().find(|line| line.contains("[heap]"));
    assert!(heap.is_some_and(|line| line.ends_with("wwwwwwww")), "{shown:#?}");
    // On a low terminal neighbouring rows share one.
    let rows = |height| {
        let mut renderer = Text::with_time_zone(Theme::PLAIN, Some(60), TimeZone::UTC).in_place(height);
        let shown = screen(&rendered(&mut renderer, &records));
        shown.iter().filter(|line| line.starts_with("0x")).count()
    };
    assert!(rows(8) <= 2, "{}", rows(8));
}

/// The width is what `set width` says: text, cells, samples and the legend keep to it.
#[test]
fn a_picture_is_as_wide_as_it_was_asked_to_be() {
    let width = |columns: usize, records: &[Box<dyn Record>]| {
        let svg = rendered(&mut Svg::new("demo", Some(columns)), records);
        let document = Document::parse(&svg).expect("well-formed");
        let width = document.root_element().attribute("width");
        width.and_then(|width| width.parse::<usize>().ok()).unwrap()
    };
    for columns in [60, 80, 110, 160] {
        // A character has 7.2, and there is a margin on each side.
        let most = columns * 72 / 10 + 2 * 16;
        for records in [&map()[..], &timeline(150)] {
            let width = width(columns, records);
            assert!(width <= most, "{columns} columns: {width} and not {most}");
        }
    }
    assert!(width(160, &timeline(150)) > width(80, &timeline(150)));
}

/// What fails has no summary.
#[test]
fn a_picture_without_a_summary_has_its_legend_once() {
    let mut broken = timeline(24);
    broken.pop();
    for records in [&broken[..], &map()[..1], &timeline(24)[..], &map()[..]] {
        let svg = rendered(&mut Svg::new("demo", None), records);
        for shown in [text(Some(80), records), svg] {
            assert_eq!(shown.matches("legend:").count(), 1, "{shown}");
        }
    }
}

#[test]
fn nothing_is_written_for_a_command_that_said_nothing() {
    assert_eq!(rendered(&mut Svg::new("demo", None), &[]), "");
}

proptest! {
    #[test]
    fn a_picture_is_well_formed_whatever_names_say(bytes in hostile::names(), number in hostile::numbers()) {
        let title = String::from_utf8_lossy(&bytes);
        let svg = rendered(&mut Svg::new(title, None), &hostile::hostile(&bytes, number));
        let document = Document::parse(&svg);
        prop_assert!(document.is_ok(), "{:?} {}", document, svg);
        prop_assert!(svg.chars().all(|c| c == '\n' || crate::kernel::text::is_plain(c)));
    }
}
