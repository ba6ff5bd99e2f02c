//! Replaces the target, while one command runs, by one whose reads are recorded.

use super::DebugState;
use crate::process::{Machine, Target};
use crate::source::recorded::Log;
use std::sync::Arc;

/// The target and machine from before, to be restored.
pub struct Unrecorded {
    target: Option<Arc<Target>>,
    here: Arc<Machine>,
}

impl DebugState {
    /// From now on, `log` records what is read of the target and of the machine. No file is opened anew.
    pub fn record(&mut self, log: &Arc<Log>) -> Unrecorded {
        let target = self.target.take();
        let here = self.here.recorded(log);
        self.target = target.as_ref().map(|target| Arc::new(target.recorded(log)));
        Unrecorded { target, here: std::mem::replace(&mut self.here, here) }
    }

    /// Ends what [`record`](Self::record) began.
    pub fn end_recording(&mut self, before: Unrecorded) {
        self.target = before.target;
        self.here = before.here;
    }
}
