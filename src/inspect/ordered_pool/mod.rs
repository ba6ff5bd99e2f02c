//! Work that several cores do at once, pulled in the order in which it was planned.
//!
//! The thread that pulls also plans the pieces. Each worker thread has a bounded channel for batches of pieces and a
//! queue of finished ones. Batches are dealt round robin and results are taken round robin, so they come in order. A
//! slow piece lets the other workers run ahead by the depth of their channels, and no further. Threads are started only
//! once enough work was done to be worth them.

#[cfg(test)]
mod tests;

use super::{Error, Result};
use crate::budget::Budget;
use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, available_parallelism, panicking};
use std::time::{Duration, Instant};

/// How long a pull waits for a result before it looks at its budget.
const PATIENCE: Duration = Duration::from_millis(20);

/// After so much work its results are announced, though their batch goes on.
const LONG: Duration = Duration::from_millis(1);

/// What any core can do.
pub(super) trait Work: Send + Sync + 'static {
    /// A part of the work with its result. It is used again for later parts.
    type Piece: Default + Send + 'static;
    /// Buffers that a worker uses again from piece to piece.
    type Scratch: Default;
    /// How its pieces are spread over threads.
    const SPREAD: Spread = Spread::COARSE;

    /// Does a piece. Work that takes longer than some milliseconds looks at `budget` in between.
    fn work(&self, piece: &mut Self::Piece, scratch: &mut Self::Scratch, budget: &mut Budget) -> Result<()>;
}

/// How pieces are spread over threads.
pub(super) struct Spread {
    /// The most worker threads that are of use.
    threads: usize,
    /// Full pieces done on the caller's thread before others are started: some 0.5 ms of work, where a thread costs
    /// 0.05.
    alone: u32,
    /// Pieces that are handed over together: waking a thread takes about as long as a small piece.
    batch: usize,
    /// Batches that each worker has, so that none waits for the next to be planned.
    depth: usize,
}

impl Spread {
    /// For pieces of some 0.1 ms or more.
    pub const COARSE: Spread = Spread { threads: 8, alone: 4, batch: 1, depth: 4 };
    /// For pieces of some 0.02 ms, of which each holds files open.
    pub const FINE: Spread = Spread { threads: 4, alone: 32, batch: 8, depth: 2 };
}

/// The size of what was planned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Planned {
    /// There is no more to do.
    Nothing,
    /// A piece too small to start threads for.
    Small,
    /// A piece as large as they get.
    Full,
}

/// Does all pieces that are planned. Dropping it ends pieces under way, and waits for its threads.
pub(super) struct Pool<W: Work> {
    work: Arc<W>,
    budget: Budget,
    /// The piece that was pulled last.
    piece: W::Piece,
    scratch: W::Scratch,
    spare: Vec<W::Piece>,
    /// Full pieces to be done on this thread before others are started; `None` for all of them.
    alone: Option<u32>,
    workers: Vec<Worker<W::Piece>>,
    /// No piece is begun, and pieces under way may end early.
    stop: Arc<AtomicBool>,
    /// How many pieces of each batch have not come back.
    under_way: VecDeque<usize>,
    /// The workers that get the next batch, and have the next result.
    deal_to: usize,
    take_from: usize,
    /// Set once nothing more is planned. What was planned before an error comes first.
    ended: Option<Result<()>>,
    is_closed: bool,
}

impl<W: Work> Pool<W> {
    pub fn new(work: Arc<W>, budget: Budget) -> Self {
        Pool {
            work,
            budget,
            piece: W::Piece::default(),
            scratch: W::Scratch::default(),
            spare: Vec::new(),
            alone: Some(W::SPREAD.alone),
            workers: Vec::new(),
            stop: Arc::default(),
            under_way: VecDeque::new(),
            deal_to: 0,
            take_from: 0,
            ended: None,
            is_closed: false,
        }
    }

    /// Sets what it may take. Worker threads have no steps of their own.
    pub fn set_budget(&mut self, budget: Budget) {
        self.budget = budget;
    }

    /// The piece that was pulled last.
    pub fn piece(&self) -> &W::Piece {
        &self.piece
    }

    /// Whether nothing more comes.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Pulls the next finished piece, in the order of planning; `None` after the last one. `plan` makes a piece, which
    /// may hold an earlier one, the next.
    ///
    /// Fails with the first error, in order; later pieces are dropped. When the budget is over, no piece is begun,
    /// pieces under way end early, and their results still come before the error.
    pub fn next(&mut self, mut plan: impl FnMut(&mut W::Piece) -> Result<Planned>) -> Result<Option<&mut W::Piece>> {
        if self.is_closed {
            return Ok(None);
        }
        match self.advance(&mut plan) {
            Ok(true) => Ok(Some(&mut self.piece)),
            Ok(false) => {
                self.close();
                Ok(None)
            }
            Err(error) => {
                self.close();
                // Once the budget is over, an error in a piece is a result of that.
                Err(self.budget.spend(0).err().map_or(error, Error::from))
            }
        }
    }

    /// Whether there is a next piece.
    fn advance(&mut self, plan: &mut dyn FnMut(&mut W::Piece) -> Result<Planned>) -> Result<bool> {
        if self.alone == Some(0) {
            self.alone = None;
            // Asked only now: the answer is put together from files of cgroups.
            let threads = available_parallelism().map_or(1, |cores| cores.get().min(W::SPREAD.threads));
            if threads > 1 {
                self.start(threads);
            }
        }
        if self.workers.is_empty() { self.work_alone(plan) } else { self.take(plan) }
    }

    /// Starts so many threads. This user may have no more: then there are fewer workers, or none.
    fn start(&mut self, threads: usize) {
        let start = |_| Worker::start(&self.work, &self.stop);
        self.workers = (0..threads).map_while(start).collect();
    }

    /// Does the next piece on this thread.
    fn work_alone(&mut self, plan: &mut dyn FnMut(&mut W::Piece) -> Result<Planned>) -> Result<bool> {
        self.budget.look()?;
        match plan(&mut self.piece)? {
            Planned::Nothing => return Ok(false),
            Planned::Small => {}
            Planned::Full => self.alone = self.alone.map(|left| left - 1),
        }
        self.work.work(&mut self.piece, &mut self.scratch, &mut self.budget)?;
        Ok(true)
    }

    /// Takes the next piece from the workers.
    fn take(&mut self, plan: &mut dyn FnMut(&mut W::Piece) -> Result<Planned>) -> Result<bool> {
        self.look();
        self.deal(plan);
        let mut goes_on = true;
        loop {
            let (Some(worker), Some(left)) = (self.workers.get(self.take_from), self.under_way.front_mut()) else {
                return self.ended.take().unwrap_or(Ok(())).map(|()| false);
            };
            if let Some((piece, result)) = worker.finished() {
                *left -= 1;
                if *left == 0 {
                    self.under_way.pop_front();
                    self.take_from = (self.take_from + 1) % self.workers.len();
                }
                self.spare.push(std::mem::replace(&mut self.piece, piece));
                return result.map(|()| true);
            }
            if !goes_on {
                // Nothing comes after a stop, and after a panic, which is passed on here.
                self.close();
                return self.ended.take().unwrap_or(Ok(())).map(|()| false);
            }
            match worker.woken.recv_timeout(PATIENCE) {
                Ok(()) => {}
                Err(RecvTimeoutError::Disconnected) => goes_on = false,
                Err(RecvTimeoutError::Timeout) => self.look(),
            }
        }
    }

    /// Has the workers stop once the budget is over.
    fn look(&mut self) {
        if let Err(why) = self.budget.look() {
            self.stop.store(true, Ordering::Relaxed);
            self.ended = Some(Err(why.into()));
        }
    }

    /// Gives the workers as much as they may have.
    fn deal(&mut self, plan: &mut dyn FnMut(&mut W::Piece) -> Result<Planned>) {
        while self.ended.is_none() && self.under_way.len() < W::SPREAD.depth * self.workers.len() {
            let mut batch = Vec::with_capacity(W::SPREAD.batch);
            while self.ended.is_none() && batch.len() < W::SPREAD.batch {
                let mut piece = self.spare.pop().unwrap_or_default();
                match plan(&mut piece) {
                    Ok(Planned::Nothing) => self.ended = Some(Ok(())),
                    Err(error) => self.ended = Some(Err(error)),
                    Ok(Planned::Small | Planned::Full) => batch.push(piece),
                }
            }
            if let (Some(worker), false) = (self.workers.get(self.deal_to), batch.is_empty()) {
                self.under_way.push_back(batch.len());
                // A worker that panicked takes none. Its results end.
                _ = worker.pieces.send(batch);
                self.deal_to = (self.deal_to + 1) % self.workers.len();
            }
        }
    }

    /// Ends what is under way and waits for the threads. Passes on their panics.
    fn close(&mut self) {
        self.is_closed = true;
        self.stop.store(true, Ordering::Relaxed);
        let threads: Vec<_> = self.workers.drain(..).map(|worker| worker.thread).collect();
        let panics: Vec<_> = threads.into_iter().filter_map(|thread| thread.join().err()).collect();
        if let Some(panic) = panics.into_iter().next()
            && !panicking()
        {
            resume_unwind(panic);
        }
    }
}

impl<W: Work> Drop for Pool<W> {
    fn drop(&mut self) {
        self.close();
    }
}

type Finished<P> = Mutex<VecDeque<(P, Result<()>)>>;

/// A worker thread, as the caller's thread sees it.
struct Worker<P> {
    pieces: SyncSender<Vec<P>>,
    finished: Arc<Finished<P>>,
    /// Something was finished since the queue was seen to be empty. That is announced after each batch and after long
    /// pieces: waking takes about as long as a small piece. Before a long piece nobody knows that it is long, so the
    /// caller's thread also wakes by itself.
    woken: Receiver<()>,
    thread: JoinHandle<()>,
}

impl<P: Send + 'static> Worker<P> {
    /// Starts a thread that works until there are no more pieces, or until `stop`; `None` if no thread can be had.
    fn start<W: Work<Piece = P>>(work: &Arc<W>, stop: &Arc<AtomicBool>) -> Option<Self> {
        // Nobody ever waits to send: a worker has at most so many batches.
        let (pieces, to_do) = sync_channel::<Vec<P>>(W::SPREAD.depth);
        let (wake, woken) = sync_channel(1);
        let finished: Arc<Finished<P>> = Arc::default();
        let (work, stop, done) = (Arc::clone(work), Arc::clone(stop), Arc::clone(&finished));
        let thread = move || {
            let mut scratch = W::Scratch::default();
            let mut budget = Budget::until(Arc::clone(&stop));
            for batch in to_do {
                let mut begun = Instant::now();
                for mut piece in batch {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let result = work.work(&mut piece, &mut scratch, &mut budget);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push_back((piece, result));
                    if begun.elapsed() >= LONG {
                        begun = Instant::now();
                        // It need not be woken twice.
                        _ = wake.try_send(());
                    }
                }
                _ = wake.try_send(());
            }
        };
        let thread = Builder::new().spawn(thread).ok()?;
        Some(Worker { pieces, finished, woken, thread })
    }

    /// The next finished piece, if there is one.
    fn finished(&self) -> Option<(P, Result<()>)> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}
