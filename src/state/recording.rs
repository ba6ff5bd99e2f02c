//! A target whose reads are recorded, in the place of the target for as long as one command runs.

use super::DebugState;
use crate::target::recorded::{self, Log};
use crate::target::{Machine, Target};
use std::sync::Arc;

/// What was looked at before, to be put back.
pub struct Unrecorded {
    target: Option<Arc<Target>>,
    here: Arc<dyn Machine>,
}

impl DebugState {
    /// From now on, what is read of the target and of the machine is written into `log`. Nothing that is known is forgotten, and no
    /// file is opened anew.
    pub fn record(&mut self, log: &Arc<Log>) -> Unrecorded {
        let target = self.target.take();
        let here = recorded::machine(&self.here, log);
        self.target = target
            .as_ref()
            .map(|target| Arc::new(recorded::target(target, log)));
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
