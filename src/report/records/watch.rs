//! Records of `watch`.

use crate::report::EventKind;
use crate::report::record::record;

record! {
    /// A kind of event that cannot be seen.
    #[derive(Eq)]
    pub struct Blind {
        /// The kind.
        kind: EventKind,
        /// Why not.
        reason: String,
    }
}
