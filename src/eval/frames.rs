//! `count(pfn:A..pfn:B where F)` and its like: of frames, without a process.

use super::error::{Call, Error, Result};
use super::evaluator::Evaluator;
use super::filter::frame_filter;
use super::{Integer, Value};
use crate::inspect::{self, Facts, Question, sweep_frames};
use crate::kernel::FrameRange;
use crate::lang::{Filter, Function, PageField, Span, Spanned};
use crate::report::Stopped;

impl Evaluator<'_> {
    /// What `walk pfn:A..pfn:B` would count.
    pub(super) fn counted_frames(
        &self,
        function: Function,
        range: FrameRange,
        filter: Option<&Spanned<Filter<PageField>>>,
        at: Span,
    ) -> Result<Value> {
        let call = Call::of(function.name(), at);
        let called = &call.called;
        if matches!(function, Function::Runs | Function::Longest) {
            let message = format!("{called} looks at pages of a process, not at frames");
            let hint = "count(pfn:A..pfn:B where FILTER) counts frames";
            return Err(Error::new(at, message).hint(hint));
        }
        let machine = self.scope.machine().ok_or_else(|| Error::no_target(at, called))?;
        let filter = filter.map(|filter| frame_filter(filter, machine, self.scope)).transpose()?;
        // Flags are read of every frame, whatever the filter uses: they show which frames exist.
        let question = Question::new(filter.as_ref(), Facts::FLAGS);
        let (mut frames, mut first, mut last) = (0u64, None, None);
        let swept = sweep_frames(
            machine,
            range,
            question,
            &mut |done| self.scope.progress(done, range.frames(), "frames"),
            &mut |one| {
                frames += one.frames;
                first = first.or(Some(one.first));
                last = one.first.checked_add(one.frames - 1);
                match function {
                    Function::First => Err(Stopped::Closed),
                    _ => Ok(()),
                }
            },
        );
        match swept {
            // `first` has enough.
            Ok(_) | Err(inspect::Error::Stopped(Stopped::Closed)) => {}
            Err(cause) => return Err(call.failed(cause)),
        }
        let found = |frame: Option<_>| {
            let none = || call.error("no frame of the range matches");
            frame.map(Value::Frame).ok_or_else(none)
        };
        match function {
            Function::First => found(first),
            Function::Last => found(last),
            Function::Bytes => self.bytes_of_pages(frames, at).map(Value::from),
            _ => Ok(Integer::from(frames).into()),
        }
    }
}
