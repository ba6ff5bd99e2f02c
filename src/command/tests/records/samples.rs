//! One record of each type, as a real session gives them.

pub use super::pages::*;
pub use super::regions::*;
pub use super::session::*;
use crate::command::{COMMANDS, how};
use crate::render::Record;
use crate::report::*;

/// One record of each type at least.
pub fn all() -> Vec<Box<dyn Record>> {
    let text = EchoedText { text: "hello\n".into() };
    let answer = Answer { message: "redis-server (812) has 6 GiB in memory".into() };
    let note = Note { message: "frames are hidden: they need CAP_SYS_ADMIN".into() };
    let hello = Hello { program: "pmdb", version: "0.1.0", protocol: 1 };
    let end = End { id: RequestId::Number(1), status: EndStatus::Ok, code: None };
    let mut all: Vec<Box<dyn Record>> = vec![
        Box::new(present()),
        Box::new(hidden()),
        Box::new(of_core()),
        Box::new(swapped()),
        Box::new(untouched()),
        Box::new(unmapped()),
        Box::new(explained(present())),
        Box::new(explained(hidden())),
        Box::new(explained(swapped())),
        Box::new(explained(unmapped())),
        Box::new(explained(of_core())),
        Box::new(pages()),
        Box::new(hidden_pages()),
        Box::new(huge_pages()),
        Box::new(untouched_pages()),
        Box::new(frames()),
        Box::new(walk_summary()),
        Box::new(undecided_summary()),
        Box::new(frames_summary()),
        Box::new(group("present", 40_000)),
        Box::new(region_row()),
        Box::new(region_full()),
        Box::new(timeline_row(0)),
        Box::new(TimelineSample {
            came: vec![1024],
            went: vec![812],
            ..timeline_sample(&[(1, Mark::Anonymous, true)])
        }),
        Box::new(target()),
        Box::new(text),
        Box::new(help_overview()),
        Box::new(help_questions()),
        Box::new(help_group()),
        Box::new(help_command()),
        Box::new(help_subject()),
        Box::new(answer),
        Box::new(note),
        Box::new(assertion()),
        Box::new(assertions()),
        Box::new(error()),
        Box::new(hello),
        Box::new(end),
    ];
    all.extend(how::samples::all());
    all.extend(COMMANDS.entries.iter().flat_map(|entry| (entry.samples)()));
    all
}
