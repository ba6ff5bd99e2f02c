//! Pictures as SVG.

use super::super::{Json, Svg};
use super::samples::*;
use super::{hostile, rendered};
use crate::report::Record;
use proptest::prelude::*;
use roxmltree::{Document, Node};
use serde_json::Value;
use snapbox::assert_data_eq;

fn map() -> [Record; 2] {
    [
        Record::MapRegion(map_region()),
        Record::WalkSummary(walk_summary()),
    ]
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
    let svg = rendered(&mut Svg::new("demo (4242): map heap"), &map());
    assert_data_eq!(svg, snapbox::file!["golden/map.svg"].raw());
}

/// Cells that stand in two rows come apart there, and are joined for the comparison.
#[test]
fn a_picture_has_the_cells_of_the_record() {
    let svg = rendered(&mut Svg::new("demo"), &map());
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
        let what = match cells["mixed"].as_bool().unwrap() {
            true => format!("{mark}, and others"),
            false => mark.to_owned(),
        };
        (std::mem::replace(&mut start, end), end, what)
    });
    assert_eq!(drawn, wanted.collect::<Vec<_>>());
    assert_eq!(start, number(&json["end"]));
}

#[test]
fn nothing_is_written_for_a_command_that_said_nothing() {
    assert_eq!(rendered(&mut Svg::new("demo"), &[]), "");
}

proptest! {
    #[test]
    fn a_picture_is_well_formed_whatever_names_say(bytes in hostile::names(), number in hostile::numbers()) {
        let title = String::from_utf8_lossy(&bytes);
        let svg = rendered(&mut Svg::new(title), &hostile::hostile(&bytes, number));
        let document = Document::parse(&svg);
        prop_assert!(document.is_ok(), "{:?} {}", document, svg);
        prop_assert!(svg.chars().all(|c| c == '\n' || crate::kernel::name::is_plain(c)));
    }
}
