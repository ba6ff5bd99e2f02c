//! The machine of a capture or of a core file.

use super::{Error, Machine};
use crate::access::when_capturing;
use crate::own::rights;
use crate::source::Probe;

impl Machine {
    /// Whether it is the machine of a capture, which has the words of frames that were asked for, and of few others.
    pub(crate) fn is_captured(&self) -> bool {
        self.source().origin().times().is_some()
    }

    /// How the user can give pmdb these rights. In a capture those of the pmdb that wrote it count.
    pub(crate) fn way_to(&self, needed: &str) -> String {
        if self.is_captured() { when_capturing(&format!("run pmdb with {needed}")) } else { rights::way_to(needed) }
    }

    /// Why it is unknown whether soft-dirty bits mean something.
    pub(crate) fn why_no_soft_dirty(&self) -> String {
        match self.source().fetch(Probe::OwnEntry) {
            Err(Error::NotAvailable { what }) if self.is_captured() => what,
            _ => "pmdb cannot determine whether this kernel tracks soft-dirty pages".to_owned(),
        }
    }
}
