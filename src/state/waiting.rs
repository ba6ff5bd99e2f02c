//! Whoever waits for a value that takes long to work out.

use std::rc::Rc;

type Show = dyn Fn(u64, u64, &'static str);

/// Is told how far long work has got: `done` of `total` `what`. Nobody waits unless the session says so.
#[derive(Clone, Default)]
pub struct Waiting(Option<Rc<Show>>);

impl Waiting {
    /// Tells it to `show`.
    pub fn new(show: impl Fn(u64, u64, &'static str) + 'static) -> Self {
        Waiting(Some(Rc::new(show)))
    }

    /// `done` of `total` `what` are done.
    pub fn show(&self, done: u64, total: u64, what: &'static str) {
        if let Some(show) = &self.0 {
            show(done, total, what);
        }
    }
}
