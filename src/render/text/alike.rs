//! Neighbours that repeat, such as alternating guards and stacks: on a terminal a long run of them is one line.

use crate::render::columns::{Cell, CellText, Column};
use crate::render::units::count;

/// The most repeated neighbours with lines of their own.
const SHOWN: u64 = 6;
/// The most that have lines of their own after these: they are hardly longer than a line about them.
const FEW: usize = 8;

/// Records of one form in a row, each of which begins where the one before it ends, and is otherwise like the one
/// before that. `W` writes one of them.
pub(super) struct AlikeRun<F, W> {
    form: Option<F>,
    /// What the last two show besides their addresses.
    keys: [String; 2],
    /// The end of the last one.
    end: u64,
    repeats: u64,
    /// The first of those without lines.
    held: Vec<W>,
    /// Number of the others.
    more: u64,
}

/// What is to be written of those without lines.
pub(super) enum HeldBack<W> {
    Each(Vec<W>),
    /// A line in their place.
    Remark(String),
}

impl<F: PartialEq, W> AlikeRun<F, W> {
    /// Before the first record.
    pub(super) fn new() -> Self {
        AlikeRun { form: None, keys: Default::default(), end: 0, repeats: 0, held: Vec::new(), more: 0 }
    }

    /// Whether a record of the form that begins at `start` and shows `key` goes on with the run.
    pub(super) fn goes_on(&self, form: &F, start: u64, key: &str) -> bool {
        self.is_of(form) && self.end == start && self.keys[0] == key
    }

    /// Whether its records have this form.
    pub(super) fn is_of(&self, form: &F) -> bool {
        self.form.as_ref() == Some(form)
    }

    /// Adds a record, and returns it if it is to be written at once.
    pub(super) fn add(&mut self, form: F, (start, end): (u64, u64), key: String, write: W) -> Option<W> {
        self.repeats = if self.goes_on(&form, start, &key) { self.repeats + 1 } else { 0 };
        self.keys.swap(0, 1);
        self.keys[1] = key;
        (self.form, self.end) = (Some(form), end);
        match self.held.len() {
            _ if self.repeats <= SHOWN => return Some(write),
            ..FEW => self.held.push(write),
            _ => self.more += 1,
        }
        None
    }

    /// Takes those without lines, before something else follows.
    pub(super) fn take_held(&mut self) -> HeldBack<W> {
        let (held, more) = (std::mem::take(&mut self.held), std::mem::take(&mut self.more));
        self.form = None;
        if more == 0 {
            return HeldBack::Each(held);
        }
        let like = if self.keys[0] == self.keys[1] { "like this" } else { "like these two in turn" };
        let number = count(more.saturating_add(held.len() as u64));
        HeldBack::Remark(format!("… {number} more {like}, up to {:#x}", self.end))
    }
}

/// The addresses of a row with a start and an end, and what it shows besides.
pub(super) fn of_cells(columns: &[Column], cells: &[Cell<'_>]) -> Option<((u64, u64), String)> {
    let place = |title: &str| columns.iter().position(|column| column.title == title);
    let (start, end) = (place("start")?, place("end")?);
    let address = |place: usize| match cells.get(place)?.words {
        CellText::Hexadecimal(address) => Some(address),
        _ => None,
    };
    let others = cells.iter().enumerate().filter(|(place, _)| ![start, end].contains(place));
    let key = others.map(|(_, cell)| format!("{:?};", cell.words)).collect();
    Some(((address(start)?, address(end)?), key))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the records that are written, and of a remark its words.
    fn written(keys: &[&str]) -> (Vec<usize>, String) {
        let (mut run, mut written, mut remarks) = (AlikeRun::new(), Vec::new(), String::new());
        let mut take = |held: HeldBack<usize>, written: &mut Vec<usize>| match held {
            HeldBack::Each(all) => written.extend(all),
            HeldBack::Remark(text) => remarks.push_str(&text),
        };
        for (index, key) in keys.iter().enumerate() {
            let (start, end) = (index as u64, index as u64 + 1);
            if !run.goes_on(&'r', start, key) {
                take(run.take_held(), &mut written);
            }
            written.extend(run.add('r', (start, end), (*key).to_owned(), index));
        }
        take(run.take_held(), &mut written);
        (written, remarks)
    }

    #[test]
    fn many_alternating_neighbours_are_one_line() {
        let all: Vec<&str> = ["a", "b"].into_iter().cycle().take(100).chain(["c"]).collect();
        let (rows, remark) = written(&all);
        assert_eq!(rows, [0, 1, 2, 3, 4, 5, 6, 7, 100]);
        assert_eq!(remark, "… 92 more like these two in turn, up to 0x64");
    }

    #[test]
    fn a_few_have_lines_of_their_own() {
        for number in 1..17 {
            let (rows, remark) = written(&vec!["a"; number]);
            assert_eq!((rows.len(), remark.as_str()), (number, ""));
        }
        assert_eq!(written(&["a"; 17]).1, "… 9 more like this, up to 0x11");
    }
}
