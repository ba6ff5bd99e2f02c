//! Work that several cores do at once, delivered in the order in which it was planned.
//!
//! The caller's thread plans pieces and delivers results. Each worker thread has a bounded channel for batches of
//! pieces and one for their results. Batches are dealt round robin and results are taken round robin, so they come in
//! order. A slow piece lets the other workers run ahead by the depth of their channels, and no further. Threads are
//! started only once enough work was done to be worth them.

use super::{Error, Result};
use crate::report::Stopped;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, Scope, available_parallelism};
use std::time::{Duration, Instant};

/// How long the caller's thread waits for a result before it checks whether to stop.
const PATIENCE: Duration = Duration::from_millis(20);

/// A batch that takes longer is handed over in parts.
const LONG: Duration = Duration::from_millis(1);

/// Whether to go on.
pub(super) type Check<'a> = dyn FnMut() -> Result<(), Stopped> + 'a;

/// What any core can do.
pub(super) trait Work: Sync {
    /// A part of the work with its result. It is used again for later parts.
    type Piece: Default + Send;
    /// Buffers that a worker uses again from piece to piece.
    type Scratch: Default;
    /// How its pieces are spread over threads.
    const SPREAD: Spread = Spread::COARSE;

    /// Does a piece. Work that takes longer than some milliseconds calls `check` in between.
    fn work(&self, piece: &mut Self::Piece, scratch: &mut Self::Scratch, check: &mut Check<'_>) -> Result<()>;
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

/// What the caller's thread alone does.
pub(super) trait Producer<P> {
    /// Makes `piece`, which may hold an earlier one, the next.
    fn plan(&mut self, piece: &mut P) -> Result<Planned>;

    /// Takes the next finished piece, in the order of planning, and returns whether more are wanted.
    fn deliver(&mut self, piece: &mut P) -> Result<ControlFlow<()>>;

    /// Whether to go on. It is called also while there is nothing to deliver.
    fn check(&mut self) -> Result<(), Stopped>;
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

/// Does and delivers all pieces that `producer` plans, until it wants no more.
///
/// Fails with the first error, in order; later pieces are dropped. When [`Producer::check`] says to stop, no piece is
/// begun, pieces under way end early, and their results are still delivered.
pub(super) fn run<W: Work>(work: &W, producer: &mut dyn Producer<W::Piece>) -> Result<()> {
    if run_alone(Some(W::SPREAD.alone), work, producer)?.is_break() {
        return Ok(());
    }
    // Asked only now: the answer is put together from files of cgroups.
    match available_parallelism().map_or(1, |cores| cores.get().min(W::SPREAD.threads)) {
        1 => run_alone(None, work, producer).map(drop),
        threads => run_on_threads(threads, work, producer),
    }
}

/// Does all pieces, or at most `most` full ones, on this thread. Returns whether there may be more to do.
fn run_alone<W: Work>(most: Option<u32>, work: &W, producer: &mut dyn Producer<W::Piece>) -> Result<ControlFlow<()>> {
    let (mut piece, mut scratch) = (W::Piece::default(), W::Scratch::default());
    let mut full = 0;
    while most != Some(full) {
        match producer.plan(&mut piece)? {
            Planned::Nothing => return Ok(ControlFlow::Break(())),
            Planned::Small => {}
            Planned::Full => full += 1,
        }
        let mut stopped = None;
        let result =
            work.work(&mut piece, &mut scratch, &mut || producer.check().inspect_err(|&why| stopped = Some(why)));
        if deliver(result, &mut piece, producer, stopped)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if let Some(why) = stopped {
            return Err(why.into());
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Delivers a finished piece. After a stop, an error in it is a result of the stop.
fn deliver<P>(
    result: Result<()>,
    piece: &mut P,
    producer: &mut dyn Producer<P>,
    stopped: Option<Stopped>,
) -> Result<ControlFlow<()>> {
    let delivered = result.and_then(|()| producer.deliver(piece));
    delivered.map_err(|error| stopped.map_or(error, Error::from))
}

fn run_on_threads<W: Work>(threads: usize, work: &W, producer: &mut dyn Producer<W::Piece>) -> Result<()> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // This user may have no more threads: then there are fewer workers, or none.
        let start = |_| Worker::start(scope, work, &stop);
        let workers: Vec<_> = (0..threads).map_while(start).collect();
        let pool = Pool { workers: &workers, spread: W::SPREAD, stop: &stop };
        if workers.is_empty() { run_alone(None, work, producer).map(drop) } else { pool.run(producer) }
    })
}

/// A worker thread, as the caller's thread sees it.
struct Worker<P> {
    pieces: SyncSender<Vec<P>>,
    results: Receiver<Vec<(P, Result<()>)>>,
}

impl<P: Send> Worker<P> {
    /// Starts a thread that works until there are no more pieces, or until `stop`; `None` if no thread can be had.
    fn start<'scope, W: Work<Piece = P>>(
        scope: &'scope Scope<'scope, '_>,
        work: &'scope W,
        stop: &'scope AtomicBool,
    ) -> Option<Self>
    where
        P: 'scope,
    {
        // Neither side ever waits to send: a worker has at most so many batches.
        let (pieces, to_do) = sync_channel::<Vec<P>>(W::SPREAD.depth);
        let (done, results) = sync_channel(W::SPREAD.depth * W::SPREAD.batch);
        let thread = move || {
            let mut scratch = W::Scratch::default();
            let finished = RefCell::new(Vec::new());
            let hand_over = || match finished.take() {
                nothing if nothing.is_empty() => true,
                results => done.send(results).is_ok(),
            };
            let begun = Cell::new(Instant::now());
            // Results do not wait for work that takes long.
            let mut check = || {
                let goes_on = begun.get().elapsed() < LONG || hand_over();
                if goes_on && !stop.load(Ordering::Relaxed) { Ok(()) } else { Err(Stopped::Interrupted) }
            };
            for batch in to_do {
                begun.set(Instant::now());
                for mut piece in batch {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let result = work.work(&mut piece, &mut scratch, &mut check);
                    finished.borrow_mut().push((piece, result));
                }
                if !hand_over() || stop.load(Ordering::Relaxed) {
                    return;
                }
            }
        };
        let started = Builder::new().spawn_scoped(scope, thread);
        started.is_ok().then_some(Worker { pieces, results })
    }
}

/// All workers, as long as there is something to do.
struct Pool<'w, P> {
    workers: &'w [Worker<P>],
    spread: Spread,
    /// No piece is begun, and pieces under way may end early.
    stop: &'w AtomicBool,
}

impl<P: Default> Pool<'_, P> {
    /// Deals pieces and delivers results.
    fn run(&self, producer: &mut dyn Producer<P>) -> Result<()> {
        let mut deal_to = self.workers.iter().cycle();
        let mut take_from = self.workers.iter().cycle();
        let most = self.spread.depth * self.workers.len();
        // How many pieces of each batch have not come back.
        let mut under_way: VecDeque<usize> = VecDeque::new();
        let mut from = take_from.next();
        let mut spare: Vec<P> = Vec::new();
        // Set once nothing more is planned. What was planned before an error is delivered first.
        let mut ended = None;
        let mut stopped = None;
        loop {
            while ended.is_none() && under_way.len() < most {
                let mut batch = Vec::with_capacity(self.spread.batch);
                while ended.is_none() && batch.len() < self.spread.batch {
                    let mut piece = spare.pop().unwrap_or_default();
                    match producer.plan(&mut piece) {
                        Ok(Planned::Nothing) => ended = Some(Ok(())),
                        Err(error) => ended = Some(Err(error)),
                        Ok(Planned::Small | Planned::Full) => batch.push(piece),
                    }
                }
                if !batch.is_empty() {
                    under_way.push_back(batch.len());
                    // A worker that panicked takes none. Its results end.
                    _ = deal_to.next().map(|worker| worker.pieces.send(batch));
                }
            }
            if under_way.front() == Some(&0) {
                under_way.pop_front();
                from = take_from.next();
                continue;
            }
            let worker = from.filter(|_| !under_way.is_empty());
            let result = worker.and_then(|worker| self.wait(worker, producer, &mut stopped));
            if stopped.is_some() {
                ended = Some(Ok(()));
            }
            // Nothing comes after the last piece, after a stop, and after a panic, which the end of the scope passes
            // on.
            let Some(results) = result else {
                return stopped.map_or(ended.unwrap_or(Ok(())), |why| Err(why.into()));
            };
            if let Some(left) = under_way.front_mut() {
                *left -= results.len();
            }
            for (mut piece, result) in results {
                if deliver(result, &mut piece, producer, stopped)?.is_break() {
                    return Ok(());
                }
                spare.push(piece);
            }
        }
    }

    /// The next results of a worker; `None` if there will be none. Sets `stopped` if the producer says to stop.
    fn wait(
        &self,
        worker: &Worker<P>,
        producer: &mut dyn Producer<P>,
        stopped: &mut Option<Stopped>,
    ) -> Option<Vec<(P, Result<()>)>> {
        loop {
            match worker.results.recv_timeout(PATIENCE) {
                Ok(result) => return Some(result),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) if stopped.is_none() => {
                    if let Err(why) = producer.check() {
                        *stopped = Some(why);
                        self.stop.store(true, Ordering::Relaxed);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl<P> Drop for Pool<'_, P> {
    /// However the caller's thread leaves, also by a panic, workers end what is under way.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;

    /// Squares numbers, on whichever core.
    struct Squares<F, const FINE: bool> {
        of: F,
        done: Mutex<usize>,
    }

    #[derive(Default)]
    struct Square {
        of: u64,
        is: u64,
    }

    impl<F, const FINE: bool> Work for Squares<F, FINE>
    where
        F: Fn(u64, &mut Check<'_>) -> Result<u64> + Sync,
    {
        type Piece = Square;
        type Scratch = ();
        const SPREAD: Spread = if FINE { Spread::FINE } else { Spread::COARSE };
        fn work(&self, piece: &mut Square, _: &mut (), check: &mut Check<'_>) -> Result<()> {
            piece.is = (self.of)(piece.of, check)?;
            *self.done.lock().expect("a lock") += 1;
            Ok(())
        }
    }

    /// Plans the numbers below `count`, and takes squares as long as `until` says.
    struct Taker<'a> {
        planned: u64,
        count: u64,
        until: &'a dyn Fn(u64) -> Result<ControlFlow<()>>,
        /// How often it may be asked whether to go on.
        patience: u32,
        found: Vec<u64>,
    }

    impl Producer<Square> for Taker<'_> {
        fn plan(&mut self, piece: &mut Square) -> Result<Planned> {
            if self.planned == self.count {
                return Ok(Planned::Nothing);
            }
            piece.of = self.planned;
            self.planned += 1;
            Ok(Planned::Full)
        }
        fn deliver(&mut self, piece: &mut Square) -> Result<ControlFlow<()>> {
            let more = (self.until)(piece.of)?;
            self.found.push(piece.is);
            Ok(more)
        }
        fn check(&mut self) -> Result<(), Stopped> {
            self.patience = self.patience.saturating_sub(1);
            match self.patience {
                0 => Err(Stopped::Closed),
                _ => Ok(()),
            }
        }
    }

    /// Ways to have pieces done, each with its worker threads and with the pieces that may be under way.
    #[derive(Clone, Copy, Debug)]
    enum Way {
        Alone,
        OnThreads(usize),
        Coarse,
        Fine,
    }

    impl Way {
        const ALL: [Way; 4] = [Way::Alone, Way::OnThreads(3), Way::Coarse, Way::Fine];

        fn threads(self) -> usize {
            match self {
                Way::Alone => 1,
                Way::OnThreads(threads) => threads,
                Way::Coarse => Spread::COARSE.threads,
                Way::Fine => Spread::FINE.threads,
            }
        }

        fn under_way(self) -> usize {
            match self {
                Way::Alone => 0,
                Way::OnThreads(_) | Way::Coarse => self.threads() * Spread::COARSE.depth,
                Way::Fine => self.threads() * Spread::FINE.depth * Spread::FINE.batch,
            }
        }

        /// Returns also how many squares were computed.
        fn run(
            self,
            of: impl Fn(u64, &mut Check<'_>) -> Result<u64> + Sync,
            producer: &mut dyn Producer<Square>,
        ) -> (usize, Result<()>) {
            let done = Mutex::new(0);
            if let Way::Fine = self {
                let squares = Squares::<_, true> { of, done };
                let ended = run(&squares, producer);
                return (squares.done.into_inner().expect("a lock"), ended);
            }
            let squares = Squares::<_, false> { of, done };
            let ended = match self {
                Way::Alone => run_alone(None, &squares, producer).map(|more| assert!(more.is_break())),
                Way::OnThreads(threads) => run_on_threads(threads, &squares, producer),
                Way::Coarse | Way::Fine => run(&squares, producer),
            };
            (squares.done.into_inner().expect("a lock"), ended)
        }
    }

    /// Computes the squares of the first `count` numbers in one way: the numbers found, how many were computed, and how
    /// it ended.
    fn squares(
        way: Way,
        count: u64,
        of: &(dyn Fn(u64, &mut Check<'_>) -> Result<u64> + Sync),
        until: &dyn Fn(u64) -> Result<ControlFlow<()>>,
    ) -> (Vec<u64>, usize, Result<()>) {
        // Waits of a minute together, however busy the machine is.
        squares_until(3000, way, count, of, until)
    }

    /// The same; the producer says to stop when it is asked for the `patience`th time.
    fn squares_until(
        patience: u32,
        way: Way,
        count: u64,
        of: &(dyn Fn(u64, &mut Check<'_>) -> Result<u64> + Sync),
        until: &dyn Fn(u64) -> Result<ControlFlow<()>>,
    ) -> (Vec<u64>, usize, Result<()>) {
        let mut taker = Taker { planned: 0, count, until, patience, found: Vec::new() };
        let (done, ended) = way.run(of, &mut taker);
        (taker.found, done, ended)
    }

    fn all(_: u64) -> Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }

    fn stopped() -> Error {
        Error::from(Stopped::Interrupted)
    }

    #[test]
    fn everything_comes_once_and_in_order() {
        for (way, count) in Way::ALL.into_iter().flat_map(|way| [0, 1, 4, 32, 33, 1000].map(|count| (way, count))) {
            // The first of some take the longest.
            let work = |of: u64, _: &mut Check<'_>| {
                (0..(9 - of % 10) * 1000).for_each(|number| _ = std::hint::black_box(number));
                Ok(of * of)
            };
            let (found, done, ended) = squares(way, count, &work, &all);
            assert!(ended.is_ok());
            assert!(found.into_iter().eq((0..count).map(|of| of * of)));
            assert_eq!(done as u64, count);
        }
    }

    #[test]
    fn the_first_error_in_order_ends_it() {
        for way in Way::ALL {
            let fails = |of: u64, _: &mut Check<'_>| match of {
                70.. => Err(stopped()),
                of => Ok(of),
            };
            let (found, _, ended) = squares(way, 200, &fails, &all);
            assert!(matches!(ended, Err(Error::Stopped(_))));
            assert!(found.into_iter().eq(0..70));
            let until = |of| match of {
                33 => Err(stopped()),
                _ => Ok(ControlFlow::Continue(())),
            };
            let (found, _, ended) = squares(way, 200, &|of, _| Ok(of), &until);
            assert!(matches!(ended, Err(Error::Stopped(_))));
            assert!(found.into_iter().eq(0..33));
        }
    }

    /// Takes squares, of which from one on none can be planned.
    struct Unplannable<'a>(Taker<'a>);

    impl Producer<Square> for Unplannable<'_> {
        fn plan(&mut self, piece: &mut Square) -> Result<Planned> {
            match self.0.planned {
                50 => Err(stopped()),
                _ => self.0.plan(piece),
            }
        }
        fn deliver(&mut self, piece: &mut Square) -> Result<ControlFlow<()>> {
            self.0.deliver(piece)
        }
        fn check(&mut self) -> Result<(), Stopped> {
            Ok(())
        }
    }

    #[test]
    fn pieces_planned_before_an_error_are_delivered_before_it() {
        for way in Way::ALL {
            let mut producer =
                Unplannable(Taker { planned: 0, count: u64::MAX, until: &all, patience: 0, found: Vec::new() });
            let (_, ended) = way.run(|of, _| Ok(of), &mut producer);
            assert!(matches!(ended, Err(Error::Stopped(_))));
            assert!(producer.0.found.into_iter().eq(0..50));
        }
    }

    #[test]
    fn little_is_done_that_nobody_wants() {
        for (way, last) in Way::ALL.into_iter().flat_map(|way| [2, 33, 500].map(|last| (way, last))) {
            let until = |of| Ok(if of == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) });
            let (found, done, ended) = squares(way, 100_000, &|of, _| Ok(of), &until);
            assert!(ended.is_ok());
            assert!(found.into_iter().eq(0..=last));
            let wanted = 1 + usize::try_from(last).expect("a number");
            assert!(done <= wanted + way.under_way(), "{done}");
            // The first are done one by one.
            let is_alone = matches!(way, Way::Coarse | Way::Fine) && wanted <= 4;
            assert!(done == wanted || !is_alone, "{done}");
        }
    }

    #[test]
    fn a_stop_reaches_pieces_under_way_and_they_are_delivered() {
        const BROKEN_OFF: u64 = 1 << 40;
        let endless = |of: u64, check: &mut Check<'_>| {
            if of < 70 {
                return Ok(of);
            }
            while check().is_ok() {
                std::thread::yield_now();
            }
            Ok(BROKEN_OFF)
        };
        for way in Way::ALL {
            let (found, _, ended) = squares_until(5, way, 100_000, &endless, &all);
            assert!(matches!(ended, Err(Error::Stopped(Stopped::Closed))));
            let whole = found.iter().filter(|&&is| is != BROKEN_OFF);
            assert!(whole.copied().eq(0..70));
            assert!((71..=70 + way.threads()).contains(&found.len()), "{}", found.len());
        }
    }

    #[test]
    fn a_panic_is_passed_on_and_nobody_waits_for_it() {
        for (way, at) in Way::ALL.into_iter().flat_map(|way| [0, 50].map(|at| (way, at))) {
            let work = |of: u64, _: &mut Check<'_>| if of == at { panic!("as it is meant to") } else { Ok(of) };
            let all = AssertUnwindSafe(|| squares(way, 200, &work, &all));
            assert!(catch_unwind(all).is_err(), "{way:?} {at}");
        }
    }

    #[test]
    fn a_panic_in_delivery_ends_pieces_under_way() {
        for way in Way::ALL {
            let endless = |of: u64, check: &mut Check<'_>| {
                while of > 50 && check().is_ok() {
                    std::thread::yield_now();
                }
                Ok(of)
            };
            let until = |of| match of {
                50 => panic!("as it is meant to"),
                _ => Ok(ControlFlow::Continue(())),
            };
            let all = AssertUnwindSafe(|| squares(way, 200, &endless, &until));
            assert!(catch_unwind(all).is_err(), "{way:?}");
        }
    }

    #[test]
    fn a_slow_piece_lets_the_others_run_ahead() {
        // The slow piece ends once all that the other workers may have are done.
        let done = Mutex::new(0);
        let slow = |of: u64, check: &mut Check<'_>| {
            let others = 2 * Spread::COARSE.depth;
            while of == 0 && *done.lock().expect("a lock") < others && check().is_ok() {
                std::thread::yield_now();
            }
            *done.lock().expect("a lock") += 1;
            Ok(of)
        };
        let (found, _, ended) = squares(Way::OnThreads(3), 100, &slow, &all);
        assert!(ended.is_ok());
        assert!(found.into_iter().eq(0..100));
    }
}
