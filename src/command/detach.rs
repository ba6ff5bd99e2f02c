//! `detach`: let go of the target.

use super::{About, Context, Error, Flow, Group, Outcome, example};
use crate::report::TargetReport;

pub(super) const ABOUT: About = About {
    name: "detach",
    group: Group::Target,
    summary: "detach from the process",
    text: "Stops examining the process. The process itself is not affected.",
    examples: &[example("detach", "detach from the process")],
};

pub(super) fn run(context: &mut Context) -> Outcome {
    let Some(target) = context.state.detach() else {
        return Err(Error::no_target());
    };
    let identity = target.process.identity();
    context.sink.emit(&TargetReport {
        event: "detached",
        pid: identity.pid,
        name: identity.name,
        executable: None,
        regions: None,
        remarks: Vec::new(),
    })?;
    Ok(Flow::Done)
}
