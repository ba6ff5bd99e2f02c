//! A sweep with the batches read on several cores at once, and delivered in order.

use super::super::Result;
use super::super::filter::Question;
use super::super::view::View;
use super::batch::Batch;
use super::chunk::Chunk;
use super::next_batch;
use super::plan::Plan;
use crate::report::Stopped;
use crate::target;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, available_parallelism};

/// Readers that are of use: more wait for the visitor.
const MOST: usize = 8;
/// Batches that a reader has before it, so that it never waits for the visitor.
const AHEAD: usize = 2;

/// How many cores this program may use.
pub(super) fn available() -> usize {
    available_parallelism().map_or(1, |cores| cores.get().min(MOST))
}

/// A thread that fills batches, in the order in which it gets them.
struct Reader {
    empty: SyncSender<Batch>,
    filled: Receiver<(Batch, target::Result<()>)>,
}

impl Reader {
    fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        view: &'scope View<'_>,
        question: Question<'scope>,
    ) -> Reader {
        let (empty, to_fill) = sync_channel::<Batch>(AHEAD);
        let (done, filled) = sync_channel(AHEAD);
        scope.spawn(move || {
            for mut batch in to_fill {
                let result = batch.fill(view, question);
                // Nobody waits for it any more: the sweep was stopped.
                if done.send((batch, result)).is_err() {
                    break;
                }
            }
        });
        Reader { empty, filled }
    }
}

/// Does the rest of `plan`. Batches go to the readers in turn and are taken back in turn: so they are in order.
pub(super) fn sweep(
    plan: &mut Plan<'_>,
    view: &View<'_>,
    question: Question<'_>,
    check: &mut dyn FnMut() -> Result<(), Stopped>,
    visit: &mut dyn FnMut(&Chunk<'_>) -> Result<(), Stopped>,
) -> Result<()> {
    let need = question.need;
    std::thread::scope(|scope| {
        let readers: Vec<Reader> = (0..available())
            .map(|_| Reader::start(scope, view, question))
            .collect();
        let mut next = readers.iter().cycle();
        let mut under_way: VecDeque<&Reader> = VecDeque::new();
        let mut spare: Vec<Batch> = Vec::new();
        let mut planned = true;
        loop {
            while planned && under_way.len() < AHEAD * readers.len() {
                let mut batch = spare.pop().unwrap_or_default();
                planned = next_batch(plan, &mut batch, view, need)?;
                if let (true, Some(reader)) = (planned, next.next())
                    && reader.empty.send(batch).is_ok()
                {
                    under_way.push_back(reader);
                }
            }
            let Some((batch, result)) = under_way
                .pop_front()
                .and_then(|reader| reader.filled.recv().ok())
            else {
                return Ok(());
            };
            result?;
            check()?;
            batch.deliver(view, need, visit)?;
            spare.push(batch);
        }
    })
}
