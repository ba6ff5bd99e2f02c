//! Processes of a family that a capture does not have, or has only in part.

use crate::kernel::Name;
use crate::process::MissingProcess;
use crate::render::units::counted;
use crate::report::record::record;

record! {
    /// A process of the family that is not in the capture, or only in part.
    #[derive(Eq)]
    pub struct LostProcess {
        /// Process id.
        pid: u32,
        /// Its short name; `null` if it could not be opened.
        name: Option<Name>,
        /// The reason, as a verb: `ended`.
        why: String,
        /// Whether its pages are in the capture, and only later answers are not.
        in_part: bool,
    }
}

impl LostProcess {
    pub fn of(one: MissingProcess) -> Self {
        let MissingProcess { pid, name, why, is_in_part, .. } = one;
        LostProcess { pid, name: Some(name).filter(|name| !name.as_bytes().is_empty()), why, in_part: is_in_part }
    }

    /// A sentence. `file` is what it is missing in.
    pub fn sentence(&self, file: &str) -> String {
        let LostProcess { pid, name, why, in_part } = self;
        let name = name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        let what = if *in_part { "only a part of it is in" } else { "it is not in" };
        format!("process {pid}{name} {why}: {what} {file}")
    }

    /// Sentences for the first of these, and how many more there are.
    pub fn sentences(all: &[LostProcess], file: &str) -> Vec<String> {
        const MOST: usize = 5;
        let first = all.iter().take(MOST).map(|one| one.sentence(file));
        let more = all.len().saturating_sub(MOST) as u64;
        let rest = (more > 0).then(|| format!("and {}", counted(more, "more process")));
        first.chain(rest).collect()
    }
}
