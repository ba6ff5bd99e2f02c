//! The snapshots of a session, in the order in which they were taken.

use crate::eval::NamedSnapshot;

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
    pub fn called(&self, name: &str) -> Option<&NamedSnapshot> {
        self.0.iter().find(|one| one.name == name)
    }

    /// An unused name: `s1`, `s2` …
    pub fn free_name(&self) -> String {
        let names = (1u64..).map(|number| format!("s{number}"));
        let free = |name: &String| self.called(name).is_none();
        names.into_iter().find(free).unwrap_or_default()
    }
}
