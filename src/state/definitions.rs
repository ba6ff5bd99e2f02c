//! What was made in a session: snapshots, displays, commands of `define`, `document` and `alias`, and the areas of the
//! demonstration.

use crate::eval::NamedSnapshot;
use crate::kernel::{AddressRange, Name};
use crate::lang::Displayed;
use crate::lang::script::Block;
use std::rc::Rc;

/// An area of the demonstration process, which a variable of the same name holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Area {
    /// The name, without the `$`.
    pub name: String,
    /// Where it is.
    pub range: AddressRange,
    /// How it was made, in a sentence.
    pub sentence: String,
}

/// All that were taken and not deleted. They outlive the attachment.
#[derive(Default)]
pub struct Snapshots(Vec<NamedSnapshot>);

impl Snapshots {
    /// Adds one; it replaces one of the same name.
    pub fn add(&mut self, snapshot: NamedSnapshot) {
        self.delete(&snapshot.name);
        self.0.push(snapshot);
    }

    /// Removes one. Returns whether there was one.
    pub fn delete(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|one| one.name != name);
        self.0.len() < before
    }

    /// In the order in which they were taken.
    pub fn all(&self) -> &[NamedSnapshot] {
        &self.0
    }

    /// Those of the user, in the order in which they were taken: names that begin with `_` are a program's own, as of
    /// gdb's `pmdb track`.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &NamedSnapshot> {
        self.0.iter().filter(|one| !one.name.starts_with('_'))
    }

    /// The one of that name.
    pub fn by_name(&self, name: &str) -> Option<&NamedSnapshot> {
        self.0.iter().find(|one| one.name == name)
    }

    /// An unused name: `s1`, `s2` …
    pub fn free_name(&self) -> String {
        let names = (1u64..).map(|number| format!("s{number}"));
        let free = |name: &String| self.by_name(name).is_none();
        names.into_iter().find(free).unwrap_or_default()
    }
}

/// Something that is shown at each prompt.
#[derive(Clone, PartialEq, Debug)]
pub struct Display {
    /// The number for `undisplay`; never reused.
    pub number: u64,
    /// What is shown.
    pub what: Displayed,
}

/// All of them, in the order in which they were added.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Displays {
    displays: Vec<Display>,
    last: u64,
}

impl Displays {
    /// The number of the next one.
    pub fn next_number(&self) -> u64 {
        self.last + 1
    }

    /// Adds a display.
    pub fn add(&mut self, display: Display) {
        self.last = display.number;
        self.displays.push(display);
    }

    /// All of them.
    pub fn all(&self) -> Vec<Display> {
        self.displays.clone()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.displays.is_empty()
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.displays.clear();
    }

    /// Removes the one of this number. Returns whether there was one.
    pub fn remove(&mut self, number: u64) -> bool {
        let before = self.displays.len();
        self.displays.retain(|one| one.number != number);
        self.displays.len() < before
    }
}

/// A command that the user has defined.
#[derive(Clone, Debug, Default)]
pub struct UserCommand {
    /// Its lines, if it comes from `define`.
    pub body: Rc<Block>,
    /// The command file that defines it; `None` at the prompt.
    pub file: Option<Name>,
    /// The text that it stands for, if it comes from `alias`.
    pub alias: Option<String>,
    /// Its help text, from `document`.
    pub document: Option<String>,
}
