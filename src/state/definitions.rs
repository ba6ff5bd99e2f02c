//! What a session has made: snapshots, displays, commands of `define`, `document` and `alias`, and the areas of the
//! demonstration. Its histories: the values of `print`, the typed lines, and the last `x`.

use crate::eval::{NamedSnapshot, Remark, Slip, Value};
use crate::kernel::{AddressRange, Name, VirtualAddress};
use crate::lang::script::Block;
use crate::lang::{DisplayContent, Format, HistoryReference, Unit, ValueFormat};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// An area of the demonstration process, which a variable of the same name holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DemoVariable {
    /// The name, without the `$`.
    pub name: String,
    /// The addresses of the area.
    pub range: AddressRange,
    /// A sentence on how the area was made.
    pub sentence: String,
}

/// The snapshots that were taken and not deleted. They remain when the target changes.
#[derive(Default)]
pub struct Snapshots(Vec<NamedSnapshot>);

impl Snapshots {
    /// Adds a snapshot, which replaces one of the same name.
    pub fn add(&mut self, snapshot: NamedSnapshot) {
        self.delete(&snapshot.name);
        self.0.push(snapshot);
    }

    /// Removes the snapshot of this name. Returns whether there was one.
    pub fn delete(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|one| one.name != name);
        self.0.len() < before
    }

    /// Returns all snapshots in the order in which they were taken.
    pub fn all(&self) -> &[NamedSnapshot] {
        &self.0
    }

    /// Returns the snapshots of the user in the order in which they were taken. Programs, such as `pmdb track` in gdb,
    /// use names that begin with `_`.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &NamedSnapshot> {
        self.0.iter().filter(|one| !one.name.starts_with('_'))
    }

    /// Returns the snapshot of this name.
    pub fn by_name(&self, name: &str) -> Option<&NamedSnapshot> {
        self.0.iter().find(|one| one.name == name)
    }

    /// Returns an unused name: `s1`, `s2` …
    pub fn free_name(&self) -> String {
        let names = (1u64..).map(|number| format!("s{number}"));
        let free = |name: &String| self.by_name(name).is_none();
        names.into_iter().find(free).unwrap_or_default()
    }
}

/// A display: what is shown at each prompt.
#[derive(Clone, PartialEq, Debug)]
pub struct DisplayEntry {
    /// The number for `undisplay`, which is never reused.
    pub number: u64,
    /// What the display shows.
    pub what: DisplayContent,
}

/// The displays in the order in which they were added.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Displays {
    displays: Vec<DisplayEntry>,
    last: u64,
}

impl Displays {
    /// Returns the number of the next display.
    pub fn next_number(&self) -> u64 {
        self.last + 1
    }

    /// Adds a display.
    pub fn add(&mut self, display: DisplayEntry) {
        self.last = display.number;
        self.displays.push(display);
    }

    /// Returns a copy of all displays.
    pub fn all(&self) -> Vec<DisplayEntry> {
        self.displays.clone()
    }

    /// Returns whether there is no display.
    pub fn is_empty(&self) -> bool {
        self.displays.is_empty()
    }

    /// Removes all displays.
    pub fn clear(&mut self) {
        self.displays.clear();
    }

    /// Removes the display of this number. Returns whether there was one.
    pub fn remove(&mut self, number: u64) -> bool {
        let before = self.displays.len();
        self.displays.retain(|one| one.number != number);
        self.displays.len() < before
    }
}

/// A command that the user has defined.
#[derive(Clone, Debug, Default)]
pub struct UserCommand {
    /// The lines of a command of `define`.
    pub body: Rc<Block>,
    /// The command file that defines it; `None` at the prompt.
    pub file: Option<Name>,
    /// The text that a command of `alias` stands for.
    pub alias: Option<String>,
    /// The help text from `document`.
    pub document: Option<String>,
}

/// The values that `print` has printed, numbered from 1 in their order.
#[derive(Clone, Debug, Default)]
pub struct ValueHistory {
    values: Vec<Value>,
}

impl ValueHistory {
    /// Adds a value. Returns its number.
    pub fn push(&mut self, value: Value) -> usize {
        self.values.push(value);
        self.values.len()
    }

    /// Returns each value with its number.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Value)> {
        self.values.iter().enumerate().map(|(index, value)| (index + 1, value))
    }

    /// Returns the value of `$`, `$N`, `$$` or `$$N`, or why there is none.
    pub fn get(&self, reference: HistoryReference) -> Result<&Value, String> {
        let count = self.values.len() as u64;
        let number = match reference {
            HistoryReference::Number(number) => Some(number),
            HistoryReference::Last => Some(count),
            HistoryReference::Back(back) => count.checked_sub(back),
        };
        number
            .and_then(|number| number.checked_sub(1))
            .and_then(|index| usize::try_from(index).ok())
            .and_then(|index| self.values.get(index))
            .ok_or_else(|| match (count, reference) {
                (0, _) => "the value history is empty: `print` adds values".to_owned(),
                (1, _) => "the value history has only $1".to_owned(),
                _ => format!("the value history has $1 to ${count}"),
            })
    }
}

/// The typed lines in their order, numbered from 1. If there are too many, the oldest are dropped; the others keep
/// their numbers.
#[derive(Clone, Debug, Default)]
pub struct LineHistory {
    lines: VecDeque<String>,
    /// The number of dropped lines.
    dropped_count: usize,
}

impl LineHistory {
    /// Adds a line. Keeps at most `limit` lines.
    pub fn push(&mut self, line: impl Into<String>, limit: usize) {
        self.lines.push_back(line.into());
        self.truncate(limit);
    }

    /// Drops the oldest lines until at most `limit` are left.
    pub fn truncate(&mut self, limit: usize) {
        let surplus = self.lines.len().saturating_sub(limit);
        self.lines.drain(..surplus);
        self.dropped_count += surplus;
    }

    /// Returns the last `count` lines with their numbers, the oldest first.
    pub fn last(&self, count: usize) -> impl Iterator<Item = (usize, &str)> {
        let skipped = self.lines.len().saturating_sub(count);
        let first = self.dropped_count + skipped + 1;
        self.lines.iter().skip(skipped).enumerate().map(move |(index, line)| (first + index, line.as_str()))
    }
}

/// The state that the next `x` takes from the last one, as in gdb.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExamineState {
    /// The format of the last `x`.
    pub format: Format,
    /// The unit of the last `x`.
    pub unit: Unit,
    /// The count of the last `x`, for a next one with neither a format nor an address.
    pub count: u64,
    /// The address after the last unit that was shown.
    pub next: Option<VirtualAddress>,
}

impl Default for ExamineState {
    fn default() -> Self {
        ExamineState { format: Format::Hexadecimal, unit: Unit::Word, count: 1, next: None }
    }
}

impl ExamineState {
    /// Returns the format and unit for `layout`, and remembers both. A missing part is that of the last `x`, or the
    /// default of the format. `pointer` is the unit of an address of the target. `goes_on` means that `x` begins where
    /// the last one ended, so that a text keeps its character size.
    pub fn settle(&mut self, layout: ValueFormat, pointer: Unit, goes_on: bool) -> (Format, Unit) {
        let format = layout.format.unwrap_or(self.format);
        let last = match (self.format, layout.format) {
            (Format::Text, None) if goes_on => self.unit,
            // The character size holds for one text only, as in gdb.
            (Format::Text, _) => Unit::Byte,
            _ => self.unit,
        };
        let unit = layout.unit.unwrap_or(match (layout.format, last) {
            (None, unit) => unit,
            (Some(Format::Address), _) => pointer,
            (Some(Format::Float), unit @ (Unit::Word | Unit::GiantWord)) => unit,
            (Some(Format::Float), _) => Unit::GiantWord,
            (Some(Format::Character | Format::Text), _) => Unit::Byte,
            (Some(_), unit) => unit,
        });
        // A character is never of eight bytes.
        let unit = match (format, unit) {
            (Format::Text, Unit::GiantWord) => Unit::Byte,
            (_, unit) => unit,
        };
        (self.format, self.unit) = (format, unit);
        (format, unit)
    }
}

/// The remarks of the evaluations of one command, each once. Clones share the list.
#[derive(Clone, Default)]
pub struct Remarks(Rc<RemarkLists>);

#[derive(Default)]
struct RemarkLists {
    slips: RefCell<Vec<Slip>>,
    notes: RefCell<Vec<String>>,
}

impl Remarks {
    /// Adds a remark unless it is already there.
    pub fn add(&self, remark: Remark) {
        match remark {
            Remark::Slip(slip) => add_new(&self.0.slips, slip),
            Remark::Note(note) => add_new(&self.0.notes, note),
        }
    }

    /// Removes and returns the slips.
    pub fn take_slips(&self) -> Vec<Slip> {
        self.0.slips.take()
    }

    /// Removes and returns the notes.
    pub fn take_notes(&self) -> Vec<String> {
        self.0.notes.take()
    }

    /// Removes all remarks.
    pub fn clear(&self) {
        self.take_slips();
        self.take_notes();
    }
}

fn add_new<T: PartialEq>(list: &RefCell<Vec<T>>, one: T) {
    let mut list = list.borrow_mut();
    if !list.contains(&one) {
        list.push(one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::Integer;

    #[test]
    fn references_count_as_in_gdb() {
        let mut history = ValueHistory::default();
        assert!(history.get(HistoryReference::Last).is_err());
        let value = |number: u64| Value::Integer(Integer::from(number));
        for number in 1..=3 {
            assert_eq!(history.push(value(number * 10)) as u64, number);
        }
        for (reference, expected) in [
            (HistoryReference::Last, 30),
            (HistoryReference::Back(0), 30),
            (HistoryReference::Back(1), 20),
            (HistoryReference::Back(2), 10),
            (HistoryReference::Number(1), 10),
        ] {
            assert_eq!(history.get(reference), Ok(&value(expected)));
        }
        for reference in [
            HistoryReference::Number(0),
            HistoryReference::Number(4),
            HistoryReference::Number(u64::MAX),
            HistoryReference::Back(3),
            HistoryReference::Back(u64::MAX),
        ] {
            assert!(history.get(reference).is_err(), "{reference:?}");
        }
    }

    #[test]
    fn the_oldest_go_and_numbers_stay() {
        let mut history = LineHistory::default();
        for line in ["a", "b", "c", "d"] {
            history.push(line, 3);
        }
        assert_eq!(history.lines.len(), 3);
        assert_eq!(history.last(2).collect::<Vec<_>>(), [(3, "c"), (4, "d")]);
        assert_eq!(history.last(9).next(), Some((2, "b")));
        history.truncate(0);
        assert!(history.lines.is_empty());
    }

    /// The form and size of each of these in turn, as gdb 13 has them.
    #[test]
    fn omitted_parts_are_as_in_gdb() {
        use Format::*;
        use Unit::*;
        let mut examined = ExamineState::default();
        for (format, unit, expected) in [
            (None, None, (Hexadecimal, Word)),
            (Some(Signed), None, (Signed, Word)),
            (None, Some(GiantWord), (Signed, GiantWord)),
            (Some(Text), None, (Text, Byte)),
            (None, None, (Text, Byte)),
            (Some(Hexadecimal), None, (Hexadecimal, Byte)),
            (Some(Address), None, (Address, GiantWord)),
            (Some(Hexadecimal), None, (Hexadecimal, GiantWord)),
            (Some(Character), None, (Character, Byte)),
            (Some(Float), None, (Float, GiantWord)),
            (Some(Float), Some(Word), (Float, Word)),
            (Some(Float), None, (Float, Word)),
            (Some(Text), Some(GiantWord), (Text, Byte)),
            (Some(Text), Some(HalfWord), (Text, HalfWord)),
            // The size of characters does not last.
            (None, None, (Text, Byte)),
            (Some(Text), Some(Word), (Text, Word)),
            (Some(Hexadecimal), None, (Hexadecimal, Byte)),
        ] {
            let layout = ValueFormat { format, unit, ..ValueFormat::default() };
            assert_eq!(examined.settle(layout, GiantWord, false), expected, "{layout:?}");
        }
        let address = ValueFormat { format: Some(Address), ..ValueFormat::default() };
        assert_eq!(examined.settle(address, Word, false), (Address, Word));
    }
}
