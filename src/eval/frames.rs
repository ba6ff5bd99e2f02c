//! `count(pfn:A..pfn:B where F)` and its like: of frames, without a process.

use super::error::{Call, Error, Result};
use super::evaluator::Evaluator;
use super::filter::frame_filter;
use super::{Integer, Value};
use crate::inspect::{Facts, Question, machine_frames};
use crate::kernel::FrameRange;
use crate::lang::{Filter, Function, PageField, Span, Spanned};

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
        let mut swept = machine_frames(machine, range, question).within(self.scope.budget());
        'frames: while let Some(rows) = swept.next().map_err(|cause| call.failed(cause))? {
            for one in rows {
                frames += one.frames;
                first = first.or(Some(one.first));
                last = one.first.checked_add(one.frames - 1);
                if function == Function::First {
                    break 'frames;
                }
            }
            self.scope.progress(swept.read(), range.frames(), "frames");
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
