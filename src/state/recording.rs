//! A target whose reads are recorded, in the place of the target for as long as one command runs.

use super::DebugState;
use crate::process::{Machine, Target};
use crate::source::recorded::Log;
use std::sync::Arc;

/// What was looked at before, to be put back.
pub struct Unrecorded {
    target: Option<Arc<Target>>,
    here: Arc<Machine>,
}

impl DebugState {
    /// From now on, what is read of the target and of the machine is written into `log`. No file is opened anew.
    pub fn record(&mut self, log: &Arc<Log>) -> Unrecorded {
        let target = self.target.take();
        let here = self.here.recorded(log);
        self.target = target.as_ref().map(|target| Arc::new(target.recorded(log)));
        Unrecorded {
            target,
            here: std::mem::replace(&mut self.here, here),
        }
    }

    /// Ends what [`record`](Self::record) began.
    pub fn end_recording(&mut self, before: Unrecorded) {
        self.target = before.target;
        self.here = before.here;
    }
}
