//! `changed(A, B in R where F)` and the other functions that count the pages that changed between two snapshots.
//!
//! They count what `diff` prints. If `diff` would add a remark, they fail, because a number cannot have a remark.

use super::error::{Call, Error, Result};
use super::evaluator::Evaluator;
use super::filter::page_filter;
use super::snapshots::{ComparisonRefusal, NamedSnapshot};
use super::{Integer, Origin, Spans, Value};
use crate::inspect::{AddressSpace, Change, Evidence, Question, Watcher};
use crate::kernel::AddressRange;
use crate::lang::{self, ChangeFunction, Changes, PageField, Span, Spanned};
use crate::render::units::counted;
use crate::report::{EventKind, Reason};

impl<'a> Evaluator<'a> {
    /// Counts the pages that changed in this way.
    pub(super) fn changes(&self, asked: &Changes) -> Result<Value> {
        let Spanned { node: function, at } = asked.function;
        let call = Call::of(function.name(), at);
        let target = self.target(at, &call.name)?;
        let failed = |cause| call.caused_by(cause);
        let from = self.snapshot(&asked.from)?;
        let refused = |refusal: ComparisonRefusal| Error::new(at, refusal.message).hint(refusal.hint);
        from.refuse_other(target).map_err(refused)?;
        let now;
        let to = match &asked.to {
            Some(name) => self.snapshot(name)?,
            None => {
                let open = from.now(target, self.scope.symbols()).map_err(failed)?;
                let mut open = open.with_budget(self.scope.budget());
                while let Some(progress) = open.advance().map_err(failed)? {
                    self.scope.progress(progress.done, progress.total, "pages");
                }
                now = open.finish().map_err(failed)?;
                &now
            }
        };
        to.refuse_other(target).map_err(refused)?;
        require_contents(function, from, to, at)?;
        let range = match &asked.range {
            Some(range) => Some((self.addresses(range)?, range.at)),
            None => None,
        };
        let compared = from.compared(to, range.as_ref().map(|(spans, _)| spans)).map_err(refused)?;
        if let (true, Some((_, at))) = (compared.is_part, &range) {
            let message = "only a part of the range is in both snapshots".to_owned();
            return Err(Error::new(*at, message));
        }
        let space = AddressSpace::in_ranges(target, from.snapshot.spans()).map_err(failed)?;
        let spans = compared.ranges.clone();
        let spans = spans.unwrap_or_else(|| from.snapshot.spans().to_vec());
        for (kind, reason) in Watcher::unobservable(&space, &spans, Evidence::empty()) {
            // A page that was swapped out without being seen still counts as removed.
            if counts(function, kind) && kind != EventKind::SwappedOut {
                let why = format!(", because not all pages that are {} are visible", kind.words());
                return Err(call.unknown(why, &reason));
            }
        }
        if function == ChangeFunction::Changed {
            require_writes(from, to, compared.ranges.as_deref(), at)?;
        }
        let mut within = compared.ranges;
        if let Some(filter) = &asked.filter {
            within = Some(self.matching_ranges(asked, filter, &space, spans, &call)?);
        }
        let mut counted = ChangeCollector { function, space: &space, pages: Vec::new(), gone: 0, uncertain: None };
        let mut budget = self.scope.budget();
        let changes = from.snapshot.changes(&to.snapshot, within.as_deref(), &space, &mut budget);
        changes.for_each(|change| counted.add(&change));
        budget.check().map_err(|why| failed(why.into()))?;
        if let Some(reason) = counted.uncertain {
            return Err(call.unknown(": the state of some pages is not certain", &reason));
        }
        // A page that changed in two ways has two rows.
        let pages = Spans::new(counted.pages, Origin::Written).map_or(0, |pages| pages.size());
        let pages = space.page_size().pages_in(pages) + counted.gone;
        Ok(Integer::from(pages).into())
    }

    fn snapshot(&self, name: &Spanned<String>) -> Result<&'a NamedSnapshot> {
        let all = self.scope.snapshots();
        let found = all.iter().find(|one| one.name == name.node);
        found.ok_or_else(|| unknown_snapshot(name, all))
    }

    fn addresses(&self, range: &Spanned<lang::Range>) -> Result<Spans> {
        let message = "a snapshot is of pages of the process, not of frames";
        self.extent(range)?.addresses(|| Error::new(range.at, message))
    }

    /// Returns the pages of `spans` that the filter keeps, as ranges in order.
    fn matching_ranges(
        &self,
        asked: &Changes,
        filter: &Spanned<lang::FilterExpression<PageField>>,
        space: &AddressSpace,
        spans: Vec<AddressRange>,
        call: &Call,
    ) -> Result<Vec<AddressRange>> {
        if asked.to.is_some() {
            let error = Error::new(filter.at, "`where` tests pages as they are now");
            let name = asked.function.node.name();
            let from = &asked.from.node;
            return Err(error.hint(format!("compare with the present: `{name}({from}, now where FILTER)`")));
        }
        let filter = page_filter(filter, space, self.scope)?;
        let Some(spans) = Spans::new(spans, Origin::Written) else {
            return Ok(Vec::new());
        };
        let question = Question::of_kept(&filter, Evidence::empty());
        let mut kept = Vec::new();
        let mut matching = self.pages(call, space, &spans, question);
        while let Some(pages) = matching.next()? {
            kept.extend(pages.filter_map(|page| page.range(space.page_size())));
        }
        matching.finish()?;
        let kept = Spans::new(kept, Origin::Written);
        Ok(kept.map_or(Vec::new(), |kept| kept.ranges().to_vec()))
    }
}

/// The hint if there is no snapshot.
pub const NO_SNAPSHOT_HINT: &str = "`snapshot NAME` makes one, which is lost when pmdb ends; \
    `diff from FILE` compares with a capture, or with a snapshot that `snapshot NAME to FILE` kept";

/// Makes the error that no snapshot has this name.
pub fn unknown_snapshot(name: &Spanned<String>, all: &[NamedSnapshot]) -> Error {
    let names: Vec<&str> = all.iter().map(|one| &*one.name).collect();
    let hint = if names.is_empty() { NO_SNAPSHOT_HINT.to_owned() } else { format!("there is {}", names.join(", ")) };
    Error::new(name.at, format!("no snapshot is called `{}`", name.node)).hint(hint)
}

/// Returns whether `function` counts this kind of change.
fn counts(function: ChangeFunction, kind: EventKind) -> bool {
    match function {
        ChangeFunction::Changed => kind.is_of_pages(),
        ChangeFunction::Came => kind == EventKind::Came,
        ChangeFunction::Went => kind == EventKind::Went,
        // A write to a merged page copies it.
        ChangeFunction::Copied => matches!(kind, EventKind::CopiedOnWrite | EventKind::Unmerged),
        ChangeFunction::Moved => matches!(kind, EventKind::Moved | EventKind::ChangedNode),
        ChangeFunction::Written => kind == EventKind::Written,
    }
}

/// Fails if contents must be compared, and one of the snapshots does not have those of all its pages.
fn require_contents(function: ChangeFunction, from: &NamedSnapshot, to: &NamedSnapshot, at: Span) -> Result<()> {
    if !matches!(function, ChangeFunction::Written | ChangeFunction::Changed) {
        return Ok(());
    }
    let without = [from, to].into_iter().find(|one| !one.snapshot.has_contents());
    if let (ChangeFunction::Written, Some(one)) = (function, without) {
        let message = format!("{}() compares contents, and the snapshot `{}` has none", function.name(), one.name);
        return Err(Error::new(at, message).hint("`snapshot NAME with content` keeps them"));
    }
    match to.snapshot.uncompared(&from.snapshot) {
        0 => Ok(()),
        pages => {
            let pages = counted(pages, "present page");
            let message = format!(
                "{}() is unknown: {pages} could not be read, so their contents were not compared",
                function.name()
            );
            Err(Error::new(at, message))
        }
    }
}

/// Fails if `changed` would have to count writes in place, and these are not visible.
fn require_writes(from: &NamedSnapshot, to: &NamedSnapshot, within: Option<&[AddressRange]>, at: Span) -> Result<()> {
    if !from.snapshot.hides_writes(&to.snapshot, within) {
        return Ok(());
    }
    let message = "changed() is unknown: writes in place do not show without the contents of pages";
    let hint = "`snapshot NAME with content` keeps contents; came(), went(), moved() and copied() need none";
    Err(Error::new(at, message).hint(hint))
}

/// Collects the pages that the function counts.
struct ChangeCollector<'a> {
    function: ChangeFunction,
    space: &'a AddressSpace,
    pages: Vec<AddressRange>,
    /// The number of pages that were removed with their region.
    gone: u64,
    uncertain: Option<Reason>,
}

impl ChangeCollector<'_> {
    fn add(&mut self, change: &Change) {
        if !change.kind.is_of_pages() {
            if counts(self.function, EventKind::Went) {
                self.gone += change.pages;
            }
            return;
        }
        if !counts(self.function, change.kind) {
            return;
        }
        let sides = [&change.before, &change.after].into_iter().flatten();
        let reason = sides.filter_map(|side| side.why.of("state")).next();
        self.uncertain = self.uncertain.take().or_else(|| reason.cloned());
        let bytes = change.pages << self.space.page_size().shift();
        let start = change.address;
        self.pages.extend(start.and_then(|start| AddressRange::of_length(start, bytes)));
    }
}
