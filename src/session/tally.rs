//! The outcome of several lines, and whether the next line still runs.

use super::outcome::Outcome;
use std::ops::ControlFlow;

/// The outcome so far of lines that belong together: those of a file, or those of the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tally {
    keep_going: bool,
    outcome: Outcome,
}

impl Tally {
    /// No line yet. A failure ends the run unless `keep_going` is set.
    pub fn new(keep_going: bool) -> Self {
        Tally { keep_going, outcome: Outcome::Done }
    }

    /// Adds the outcome of a line; `Break` if the next line does not run.
    pub fn add(&mut self, outcome: Outcome) -> ControlFlow<()> {
        self.outcome = match (self.outcome, outcome) {
            (earlier, Outcome::Done) => earlier,
            // The first failure decides the status; a later `quit` with status 0 does not hide it.
            (Outcome::Failed(code), Outcome::Failed(_)) => Outcome::Failed(code),
            (Outcome::Failed(code), Outcome::Quit(0) | Outcome::Closed) => Outcome::Quit(code.status()),
            (_, later) => later,
        };
        match outcome {
            Outcome::Done => ControlFlow::Continue(()),
            Outcome::Failed(_) if self.keep_going => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    /// The outcome of all lines.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ErrorCode;

    #[test]
    fn a_failure_ends_the_run() {
        let mut tally = Tally::new(false);
        assert!(tally.add(Outcome::Done).is_continue());
        assert!(tally.add(Outcome::Failed(ErrorCode::Gone)).is_break());
        assert_eq!(tally.outcome(), Outcome::Failed(ErrorCode::Gone));
    }

    #[test]
    fn kept_going_the_first_failure_gives_the_status() {
        let mut tally = Tally::new(true);
        for outcome in [Outcome::Failed(ErrorCode::Hidden), Outcome::Done, Outcome::Failed(ErrorCode::Failed)] {
            assert!(tally.add(outcome).is_continue());
        }
        assert_eq!(tally.outcome(), Outcome::Failed(ErrorCode::Hidden));
        assert!(tally.add(Outcome::Quit(0)).is_break());
        assert_eq!(tally.outcome(), Outcome::Quit(4));
    }

    #[test]
    fn a_reader_that_leaves_hides_no_failure() {
        let mut tally = Tally::new(true);
        assert!(tally.add(Outcome::Failed(ErrorCode::Hidden)).is_continue());
        assert!(tally.add(Outcome::Closed).is_break());
        assert_eq!(tally.outcome(), Outcome::Quit(4));
    }

    #[test]
    fn who_asks_for_a_status_gets_it() {
        let mut tally = Tally::new(true);
        assert!(tally.add(Outcome::Failed(ErrorCode::Hidden)).is_continue());
        assert!(tally.add(Outcome::Quit(7)).is_break());
        assert_eq!(tally.outcome(), Outcome::Quit(7));
    }
}
