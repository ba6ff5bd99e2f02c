//! The progress of an evaluation that takes long.

use std::rc::Rc;

type Show = dyn Fn(u64, u64, &'static str);

/// Receives the progress of long work: `done` of `total` `what`. By default nobody listens.
#[derive(Clone, Default)]
pub struct Waiting(Option<Rc<Show>>);

impl Waiting {
    /// Passes the progress to `show`.
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
