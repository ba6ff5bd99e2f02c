//! The parts of [`Machine`] that differ for a capture or a core file.

use super::{Error, Machine};
use crate::access::when_capturing;
use crate::own::rights;
use crate::source::Probe;

impl Machine {
    /// Returns whether the machine is that of a capture. A capture has the words of the frames that were requested, and
    /// of few others.
    pub(crate) fn is_captured(&self) -> bool {
        self.source().origin().times().is_some()
    }

    /// Returns how the user can give pmdb these rights. For a capture, the pmdb that wrote it needed them.
    pub(crate) fn way_to(&self, needed: &str) -> String {
        if self.is_captured() { when_capturing(&format!("run pmdb with {needed}")) } else { rights::way_to(needed) }
    }

    /// Returns why it is unknown whether soft-dirty bits have a meaning.
    pub(crate) fn why_no_soft_dirty(&self) -> String {
        match self.source().fetch(Probe::OwnEntry) {
            Err(Error::NotAvailable { what }) if self.is_captured() => what,
            _ => "pmdb cannot determine whether this kernel tracks soft-dirty pages".to_owned(),
        }
    }
}
