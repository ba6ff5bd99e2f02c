//! Totals under a table, in one sentence.

use super::lines::Lines;
use super::{Text, words};
use crate::kernel::PageSize;
use crate::render::Record;
use crate::render::svg::Svg;
use crate::render::theme::Role;
use crate::render::units::{count, counted, size};
use crate::report::{FramesSummary, WalkSummary};

impl Record for WalkSummary {
    fn write(&self, text: &mut Text) {
        text.end_pictures();
        text.line(walk_summary, self);
        text.notes();
    }

    fn totals(&self, _: PageSize) -> Vec<(&'static str, u64)> {
        vec![("_pages", self.pages), ("_bytes", self.bytes)]
    }

    fn draw(&self, picture: &mut Svg) -> bool {
        picture.end_pictures();
        false
    }
}

impl Record for FramesSummary {
    fn write(&self, text: &mut Text) {
        text.line(frames_summary, self);
        text.notes();
    }

    fn totals(&self, _: PageSize) -> Vec<(&'static str, u64)> {
        vec![("_pages", self.frames), ("_bytes", self.bytes)]
    }
}

/// `512 pages, 2 MiB: 500 present, 12 untouched`, and how contiguous they are.
pub fn walk_summary(lines: &mut Lines, summary: &WalkSummary) {
    let line = lines.line();
    line.indent(2).plain(total(summary.pages, "page", summary.bytes));
    let mut separator = ": ";
    for (state, pages) in summary.states.iter().filter(|(_, pages)| **pages > 0) {
        let text = format!("{} {}", count(*pages), state.word());
        line.word(separator, words::state_role(*state), text);
        separator = ", ";
    }
    if let (Some(runs), Some(longest)) = (summary.runs, summary.longest_run_bytes)
        && runs > 0
    {
        let runs = counted(runs, "physical run");
        line.word("; ", Role::Plain, runs).word(", ", Role::Plain, format!("the longest {}", size(longest)));
        if let Some(start) = summary.longest_run_start {
            line.plain(" at ").push(Role::Address, start);
        }
    }
    remarks(lines, summary.cut_short, summary.changed);
}

/// Notes that the totals are incomplete, or that regions changed meanwhile.
pub fn remarks(lines: &mut Lines, is_cut_short: bool, is_changed: bool) {
    if is_cut_short {
        cut_short(lines);
    }
    if is_changed {
        changed(lines, "the regions");
    }
}

/// `512 pages, 2 MiB`; `no page matches`.
pub fn total(number: u64, noun: &str, bytes: u64) -> String {
    match number {
        0 => format!("no {noun} matches"),
        _ => format!("{}, {}", counted(number, noun), size(bytes)),
    }
}

/// Notes that `what` changed during the command.
pub fn changed(lines: &mut Lines, what: &str) {
    let line = lines.line();
    line.prose(Role::Warn, format!("{what} changed meanwhile: run it again for a consistent picture"));
}

/// `512 frames, 2 MiB`, and where memory ends if the range goes past that.
pub fn frames_summary(lines: &mut Lines, summary: &FramesSummary) {
    let line = lines.line();
    line.indent(2).plain(total(summary.frames, "frame", summary.bytes));
    if let Some(end) = summary.memory_ends {
        line.plain("; physical memory ends before frame ").push(Role::Frame, end);
    }
    if summary.cut_short {
        cut_short(lines);
    }
}

/// Notes that a walk was not finished.
fn cut_short(lines: &mut Lines) {
    let line = lines.line();
    line.push(Role::Note, "stopped early: the totals cover only the first part");
}
