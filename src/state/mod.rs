//! What a debugging session holds: target, variables, history, settings.

use crate::target::{Machine, Target};
use std::sync::Arc;

/// Everything that lasts from one line to the next.
pub struct DebugState {
    /// What is looked at, if anything.
    pub target: Option<Arc<Target>>,
    /// The machine, target or no target.
    pub machine: Arc<dyn Machine>,
}
