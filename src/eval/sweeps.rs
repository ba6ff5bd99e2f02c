//! The functions that look at pages: `count(R where F)`, `rss(R)`, `state(A)` and their like.
//!
//! They see what `walk` and `regions` see. What those would say in a remark is an error here: a number cannot carry one.

use super::error::{Error, Result};
use super::evaluator::Evaluator;
use super::filter::page_filter;
use super::{Integer, Origin, Spans, Value};
use crate::inspect::{
    self, Need, Page, Question, RegionStats, Selection, Totals, View, kind_untold, span_stats,
};
use crate::kernel::{AddressRange, State, VirtualAddress};
use crate::lang::{Filter, Function, PageField, Place, Spanned};
use crate::report::{Fact, Stopped};
use std::ops::ControlFlow;

/// Whoever writes a range out sees what is not mapped in it; a name or `all` means what is.
fn holes(spans: &Spans) -> Need {
    match spans.origin() {
        Origin::Written => Need::HOLES,
        _ => Need::empty(),
    }
}

impl<'a> Evaluator<'a> {
    fn view(&self, function: Function, at: Place) -> Result<View<'a>> {
        let target = self.target(at, &called(function))?;
        View::of(target).map_err(|cause| Error::inspection(at, called(function), cause))
    }

    /// `count(R where F)` and its like.
    pub(super) fn counted(
        &self,
        function: Function,
        spans: &Spans,
        filter: Option<&Spanned<Filter<PageField>>>,
        at: Place,
    ) -> Result<Value> {
        let view = self.view(function, at)?;
        let filter = match filter {
            Some(filter) => Some(page_filter(filter, &view, self.scope)?),
            None => None,
        };
        let own = match function {
            // The zero page is no run of anybody's memory.
            Function::Runs | Function::Longest => Need::FRAMES | Need::KINDS,
            _ => Need::empty(),
        };
        view.require(own.difference(Need::KINDS))
            .map_err(|cause| Error::inspection(at, called(function), cause))?;
        let need = view.obtainable(own) | holes(spans);
        let question = match &filter {
            Some(filter) => Question::of_kept(filter, need),
            None => need.into(),
        };
        let mut totals = Totals::new(view.page(), question.need());
        let (mut first, mut last) = (None, None);
        self.pages(function, &view, spans, question, at, &mut |page| {
            totals.add(page);
            first = first.or(Some(page.address));
            last = Some(page.end(view.page()));
            match function {
                Function::First => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        })?;
        let none = || Error::new(at, format!("{}: no page is so", called(function)));
        Ok(match function {
            Function::Bytes => Integer::from(totals.bytes()).into(),
            Function::Runs => Integer::from(totals.runs().unwrap_or_default()).into(),
            Function::Longest => {
                let run = totals.longest_run().ok_or_else(none)?;
                Value::Range(Spans::one(run, Origin::Written))
            }
            Function::First => Value::Address(first.ok_or_else(none)?),
            Function::Last => {
                let end: VirtualAddress = last.ok_or_else(none)?;
                let start = end.get().saturating_sub(view.page().bytes());
                Value::Address(VirtualAddress::new(start))
            }
            _ => Integer::from(totals.pages).into(),
        })
    }

    /// Hands on the pages that a question keeps, until `each` has enough. That one can neither be kept nor left out is an error.
    fn pages(
        &self,
        function: Function,
        view: &View,
        spans: &Spans,
        question: Question<'_>,
        at: Place,
        each: &mut dyn FnMut(&Page) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut selection = Selection::default();
        let mut enough = false;
        let swept = inspect::sweep(
            view,
            spans.ranges(),
            question,
            &mut || self.scope.check(),
            &mut |chunk| {
                selection.take(chunk, question, |page| {
                    enough = each(page).is_break();
                    match enough {
                        true => Err(Stopped::Closed),
                        false => Ok(()),
                    }
                })
            },
        );
        match swept {
            Err(inspect::Error::Stopped(_)) if enough => {}
            Err(cause) => return Err(Error::inspection(at, called(function), cause)),
            Ok(_) => {}
        }
        let unknown = |pages, reason| {
            let plural = if pages == 1 { "" } else { "s" };
            let what = format!(
                "{} cannot be known: whether the filter holds for {pages} page{plural} is not certain",
                called(function)
            );
            Err(Error::unknown(at, what, &reason))
        };
        match (selection.undecided, selection.untold) {
            (Some((pages, doubt)), _) => unknown(pages, doubt.reason()),
            (None, Some((pages, reason))) => unknown(pages, reason),
            (None, None) => Ok(()),
        }
    }

    /// `rss(R)` and its like, in bytes: what `regions` adds up, of the part that lies in the range.
    pub(super) fn amount(&self, function: Function, spans: &Spans, at: Place) -> Result<Value> {
        let need = match function {
            Function::Pss | Function::Uss => Need::COUNTS,
            Function::Huge => Need::HUGE,
            _ => Need::empty(),
        };
        let view = self.view(function, at)?;
        let (mut sum, mut known) = (Ok(0u64), false);
        let mut hidden = None;
        let swept = span_stats(
            &view,
            spans.ranges(),
            need,
            &mut || self.scope.check(),
            &mut |_, stats| {
                // The kernel shows nothing of device mappings, and adds nothing for them either.
                match stats.hidden() {
                    Some(reason) => hidden = hidden.take().or(Some(reason)),
                    None => {
                        known = true;
                        let more = amount(function, stats);
                        sum = sum.clone().and_then(|sum| Ok(sum + more?));
                    }
                }
                Ok(())
            },
        );
        swept.map_err(|cause| Error::inspection(at, called(function), cause))?;
        let sum = match (known, hidden) {
            (false, Some(reason)) => Err(reason),
            _ => sum,
        };
        sum.map(|bytes| Integer::from(bytes).into())
            .map_err(|reason| {
                Error::unknown(
                    at,
                    format_args!("{} cannot be known", called(function)),
                    &reason,
                )
            })
    }

    /// `name(R)`, `perms(R)`: the same for every region of the range, or an error.
    pub(super) fn mapping_word(
        &self,
        function: Function,
        spans: &Spans,
        at: Place,
    ) -> Result<Value> {
        let word = called(function);
        let overlaps = |range: &AddressRange| {
            spans
                .ranges()
                .iter()
                .any(|span| span.start() < range.end() && range.start() < span.end())
        };
        let mut words = self
            .regions(at, &word)?
            .iter()
            .filter(|region| overlaps(&region.range))
            .map(|region| match function {
                Function::Name => region.name.to_string(),
                _ => region.permissions.to_string(),
            });
        let first = words
            .next()
            .ok_or_else(|| Error::new(at, format!("{word}: nothing is mapped there")))?;
        match words.find(|other| *other != first) {
            None => Ok(Value::Text(first)),
            Some(other) => {
                let message =
                    format!("{word}: the range has several, {first} and {other} among them");
                Err(Error::new(at, message).hint("foreach $r in regions takes them one by one"))
            }
        }
    }

    /// `state(A)`, `kind(A)`: a word as `walk` shows it.
    pub(super) fn page_word(
        &self,
        function: Function,
        address: VirtualAddress,
        at: Place,
    ) -> Result<Value> {
        let view = self.view(function, at)?;
        let start = view.page().floor(address);
        let page = start
            .checked_add(view.page().bytes())
            .and_then(|end| AddressRange::new(start, end))
            .ok_or_else(|| Error::new(at, format!("{address} is in the last page there can be")))?;
        let need = match function {
            Function::Kind => view.obtainable(Need::KINDS),
            _ => Need::empty(),
        };
        let spans = Spans::one(page, Origin::Written);
        let mut found: Option<Page> = None;
        let question = (need | holes(&spans)).into();
        self.pages(function, &view, &spans, question, at, &mut |page| {
            found = Some(*page);
            ControlFlow::Continue(())
        })?;
        let unknown = |reason| {
            let what = format!("{} cannot be known", called(function));
            Error::unknown(at, what, &reason)
        };
        let state = found.map_or(State::Unmapped, |page| page.state);
        if let Some(doubt) = found.and_then(|page| page.doubt) {
            return Err(unknown(doubt.reason()));
        }
        let word = match (function, found.and_then(|page| page.kind)) {
            (Function::State, _) => state.word(),
            (_, Some(kind)) => kind.word(),
            (_, None) => {
                return Err(match found.filter(|_| state != State::Unmapped) {
                    Some(page) => unknown(kind_untold(&page)),
                    None => Error::new(
                        at,
                        format!("{address} is in no region: its page has no kind"),
                    ),
                });
            }
        };
        Ok(Value::Text(word.to_owned()))
    }
}

fn called(function: Function) -> String {
    format!("{}()", function.name())
}

/// What a function asks of what is in a region.
fn amount(function: Function, stats: &RegionStats) -> Fact<u64> {
    match function {
        Function::Pss => stats.pss.clone(),
        Function::Uss => stats.private.clone(),
        Function::Huge => stats.huge.clone(),
        Function::Swapped => match stats.doubt.filter(|doubt| doubt.may_be(State::Swapped)) {
            Some(doubt) => Err(doubt.reason()),
            None => stats.swapped.clone(),
        },
        _ => Ok(stats.present),
    }
}
