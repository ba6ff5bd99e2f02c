//! Work that several cores do at once, handed on in the order in which it was planned.
//!
//! One thread leads: it plans pieces, hands them on, and works while there is nothing to hand on. Once enough was done to be worth it,
//! other cores help, each with one piece of the line at a time.

use super::{Error, Result};
use crate::report::Stopped;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, available_parallelism};
use std::time::Duration;

/// Large pieces that are done before other cores are called to help: some 0.5 ms of work, where a thread costs 0.05.
const ALONE: u32 = 4;
/// Pieces in the line for each core, so that none waits for the next to be planned.
const AHEAD: usize = 2;
/// How long the leader waits for others until it looks whether it is to stop.
const PATIENCE: Duration = Duration::from_millis(20);

/// Whether to go on.
pub(super) type Check<'a> = dyn FnMut() -> Result<(), Stopped> + 'a;

/// What any core can do.
pub(super) trait Work: Sync {
    /// A part of the work and what comes of it; it is used again for later parts.
    type Piece: Default + Send;
    /// Room that a core uses again from piece to piece.
    type Room: Default;
    /// Cores that are of use: more would wait for the one that hands on.
    const CORES: usize = 8;

    /// Does a piece. What takes longer than some milliseconds asks `check` in between whether to go on.
    fn work(
        &self,
        piece: &mut Self::Piece,
        room: &mut Self::Room,
        check: &mut Check<'_>,
    ) -> Result<()>;
}

/// What the leading thread alone does.
pub(super) trait Lead<P> {
    /// Makes `piece`, which may have been another one before, the next.
    fn plan(&mut self, piece: &mut P) -> Result<Planned>;

    /// Takes the next piece that is done, in the order of planning; whether more are wanted.
    fn hand_on(&mut self, piece: &mut P) -> Result<ControlFlow<()>>;

    /// Whether to go on; asked also while there is nothing to hand on.
    fn check(&mut self) -> Result<(), Stopped>;
}

/// What was planned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Planned {
    /// There is no more to do.
    Nothing,
    /// A piece too small to call for help.
    Little,
    /// A piece as large as they get.
    Much,
}

/// Has everything done that `lead` plans, until it wants no more.
///
/// Fails with the first error, in order; what was planned after that is dropped. Where [`Lead::check`] says to stop, no more is begun,
/// pieces under way end early, and what came of them is still handed on.
pub(super) fn in_order<W: Work>(worker: &W, lead: &mut dyn Lead<W::Piece>) -> Result<()> {
    if on_one(Some(ALONE), worker, lead)?.is_break() {
        return Ok(());
    }
    // Asked where it matters: the answer is put together from files of cgroups.
    match available_parallelism().map_or(1, |cores| cores.get().min(W::CORES)) {
        1 => on_one(None, worker, lead).map(drop),
        cores => on_several(cores, worker, lead),
    }
}

/// Has all done, or `most` large pieces and what lies between them; whether there may be more to do.
fn on_one<W: Work>(
    most: Option<u32>,
    worker: &W,
    lead: &mut dyn Lead<W::Piece>,
) -> Result<ControlFlow<()>> {
    let (mut piece, mut room) = (W::Piece::default(), W::Room::default());
    let mut stopped = None;
    let mut large = 0;
    while most != Some(large) {
        match lead.plan(&mut piece)? {
            Planned::Nothing => return Ok(ControlFlow::Break(())),
            Planned::Little => {}
            Planned::Much => large += 1,
        }
        let result = worker.work(&mut piece, &mut room, &mut asking(lead, &mut stopped));
        if handed_on(result, &mut piece, lead, stopped)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if let Some(why) = stopped {
            return Err(why.into());
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Asks the leader whether to go on, and remembers why not.
fn asking<P>(
    lead: &mut dyn Lead<P>,
    stopped: &mut Option<Stopped>,
) -> impl FnMut() -> Result<(), Stopped> {
    move || {
        lead.check().inspect_err(|&why| {
            stopped.get_or_insert(why);
        })
    }
}

/// Hands on a piece that is done. After a stop, what was broken off knows only that.
fn handed_on<P>(
    result: Result<()>,
    piece: &mut P,
    lead: &mut dyn Lead<P>,
    stopped: Option<Stopped>,
) -> Result<ControlFlow<()>> {
    let handed = result.and_then(|()| lead.hand_on(piece));
    handed.map_err(|error| stopped.map_or(error, Error::from))
}

fn on_several<W: Work>(cores: usize, worker: &W, lead: &mut dyn Lead<W::Piece>) -> Result<()> {
    let team = Team {
        worker,
        line: Mutex::new(Line::default()),
        changed: Condvar::new(),
        closed: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        // This user may have no more threads: then fewer help, or nobody.
        let may_help = |_: &usize| Builder::new().spawn_scoped(scope, || team.help()).is_ok();
        let helpers = (1..cores).take_while(may_help).count();
        team.lead(AHEAD * (1 + helpers), lead)
    })
}

/// Those who work on one line of pieces.
struct Team<'w, W: Work> {
    worker: &'w W,
    line: Mutex<Line<W::Piece>>,
    changed: Condvar,
    /// No more is begun, and what is under way may end early.
    closed: AtomicBool,
}

/// The pieces that are under way, in order.
struct Line<P> {
    places: VecDeque<Place<P>>,
    /// Pieces that have left the line at its front: the number of the first in it.
    gone: usize,
    /// Somebody panicked, so that a piece may never be done.
    broken: bool,
}

enum Place<P> {
    ToDo(P),
    UnderWay,
    Done(P, Result<()>),
}

impl<P> Default for Line<P> {
    fn default() -> Self {
        Line {
            places: VecDeque::new(),
            gone: 0,
            broken: false,
        }
    }
}

impl<P> Line<P> {
    /// The first piece that nobody does yet, with its number.
    fn take(&mut self) -> Option<(usize, P)> {
        let is_to_do = |place: &Place<P>| matches!(place, Place::ToDo(_));
        let index = self.places.iter().position(is_to_do)?;
        let place = self.places.get_mut(index)?;
        match std::mem::replace(place, Place::UnderWay) {
            Place::ToDo(piece) => Some((self.gone + index, piece)),
            Place::UnderWay | Place::Done(..) => None,
        }
    }

    fn finish(&mut self, number: usize, piece: P, result: Result<()>) {
        let index = number.checked_sub(self.gone);
        if let Some(place) = index.and_then(|index| self.places.get_mut(index)) {
            *place = Place::Done(piece, result);
        }
    }

    /// The first piece of all, if it is done.
    fn pop(&mut self) -> Option<(P, Result<()>)> {
        let Some(Place::Done(..)) = self.places.front() else {
            return None;
        };
        let Some(Place::Done(piece, result)) = self.places.pop_front() else {
            return None;
        };
        self.gone += 1;
        Some((piece, result))
    }
}

impl<W: Work> Team<'_, W> {
    fn lock(&self) -> MutexGuard<'_, Line<W::Piece>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing more is begun.
    fn close(&self) {
        let mut line = self.lock();
        self.closed.store(true, Ordering::Relaxed);
        // They are taken in order, so these are the last.
        line.places.retain(|place| !matches!(place, Place::ToDo(_)));
        drop(line);
        self.changed.notify_all();
    }

    /// Does a piece that was taken from the line.
    fn work(
        &self,
        (number, mut piece): (usize, W::Piece),
        room: &mut W::Room,
        check: &mut Check<'_>,
    ) {
        let result = self.worker.work(&mut piece, room, check);
        self.lock().finish(number, piece, result);
        self.changed.notify_all();
    }

    /// Works until the line is closed.
    fn help(&self) {
        let _leaving = Leaving(self);
        let mut room = W::Room::default();
        let mut check = || match self.closed.load(Ordering::Relaxed) {
            true => Err(Stopped::Interrupted),
            false => Ok(()),
        };
        while let Some(taken) = self.next() {
            self.work(taken, &mut room, &mut check);
        }
    }

    /// Waits for a piece to do; `None` when the line is closed.
    fn next(&self) -> Option<(usize, W::Piece)> {
        let mut line = self.lock();
        while !self.closed.load(Ordering::Relaxed) {
            if let Some(taken) = line.take() {
                return Some(taken);
            }
            let changed = self.changed.wait(line);
            line = changed.unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Plans, hands on, and works where there is neither to do. At most `most` pieces are in the line.
    fn lead(&self, most: usize, lead: &mut dyn Lead<W::Piece>) -> Result<()> {
        let _leaving = Leaving(self);
        let (mut spare, mut room) = (Vec::new(), W::Room::default());
        let mut more = true;
        let mut stopped = None;
        // What was planned before an error is handed on before it is told.
        let mut planned = Ok(());
        loop {
            while more && self.lock().places.len() < most {
                let mut piece = spare.pop().unwrap_or_default();
                match lead.plan(&mut piece) {
                    Ok(Planned::Nothing) => more = false,
                    Ok(Planned::Little | Planned::Much) => {
                        self.lock().places.push_back(Place::ToDo(piece));
                        self.changed.notify_all();
                    }
                    Err(error) => (more, planned) = (false, Err(error)),
                }
            }
            let mut line = self.lock();
            if line.broken {
                // The end of the scope tells by what.
                return Ok(());
            }
            if let Some((mut piece, result)) = line.pop() {
                drop(line);
                if handed_on(result, &mut piece, lead, stopped)?.is_break() {
                    return Ok(());
                }
                spare.push(piece);
            } else if let Some(taken) = line.take() {
                drop(line);
                self.work(taken, &mut room, &mut asking(lead, &mut stopped));
            } else if line.places.is_empty() {
                return stopped.map_or(planned, |why| Err(why.into()));
            } else {
                let waited = self.changed.wait_timeout(line, PATIENCE);
                let (line, waited) = waited.unwrap_or_else(PoisonError::into_inner);
                drop(line);
                if waited.timed_out() {
                    _ = asking(lead, &mut stopped)();
                }
            }
            if stopped.is_some() && !self.closed.load(Ordering::Relaxed) {
                more = false;
                self.close();
            }
        }
    }
}

/// Closes the line when the leader leaves, on whatever way, and when anybody panics.
struct Leaving<'t, 'w, W: Work>(&'t Team<'w, W>);

impl<W: Work> Drop for Leaving<'_, '_, W> {
    fn drop(&mut self) {
        self.0.lock().broken |= std::thread::panicking();
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;

    /// What is done to numbers, by whichever core.
    struct Squares<F> {
        of: F,
        done: Mutex<usize>,
    }

    #[derive(Default)]
    struct Square {
        of: u64,
        is: u64,
    }

    impl<F: Fn(u64, &mut Check<'_>) -> Result<u64> + Sync> Work for Squares<F> {
        type Piece = Square;
        type Room = ();
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

    impl Lead<Square> for Taker<'_> {
        fn plan(&mut self, piece: &mut Square) -> Result<Planned> {
            if self.planned == self.count {
                return Ok(Planned::Nothing);
            }
            piece.of = self.planned;
            self.planned += 1;
            Ok(Planned::Much)
        }
        fn hand_on(&mut self, piece: &mut Square) -> Result<ControlFlow<()>> {
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

    /// Has the squares of the first `count` numbers computed: by one core and by three. The numbers found, how many were computed, and
    /// how it ended.
    fn squares(
        count: u64,
        of: &(dyn Fn(u64, &mut Check<'_>) -> Result<u64> + Sync),
        until: &dyn Fn(u64) -> Result<ControlFlow<()>>,
    ) -> [(Vec<u64>, usize, Result<()>); 2] {
        [1, 3].map(|cores| {
            let worker = Squares {
                of,
                done: Mutex::new(0),
            };
            let mut taker = Taker {
                planned: 0,
                count,
                until,
                patience: 5,
                found: Vec::new(),
            };
            let ended = match cores {
                1 => on_one(None, &worker, &mut taker).map(|more| assert!(more.is_break())),
                _ => on_several(cores, &worker, &mut taker),
            };
            let done = *worker.done.lock().expect("a lock");
            (taker.found, done, ended)
        })
    }

    fn all(_: u64) -> Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }

    fn stopped() -> Error {
        Error::from(Stopped::Interrupted)
    }

    #[test]
    fn everything_comes_once_and_in_order() {
        for count in [0, 1, u64::from(ALONE), 1000] {
            // The first of some take the longest.
            let work = |of: u64, _: &mut Check<'_>| {
                (0..(9 - of % 10) * 1000).for_each(|number| _ = std::hint::black_box(number));
                Ok(of * of)
            };
            for (found, done, ended) in squares(count, &work, &all) {
                assert!(ended.is_ok());
                assert!(found.into_iter().eq((0..count).map(|of| of * of)));
                assert_eq!(done as u64, count);
            }
        }
    }

    #[test]
    fn the_first_error_in_order_ends_it() {
        let fails = |of: u64, _: &mut Check<'_>| match of {
            70.. => Err(stopped()),
            of => Ok(of),
        };
        for (found, _, ended) in squares(200, &fails, &all) {
            assert!(matches!(ended, Err(Error::Stopped(_))));
            assert!(found.into_iter().eq(0..70));
        }
        let until = |of| match of {
            33 => Err(stopped()),
            _ => Ok(ControlFlow::Continue(())),
        };
        for (found, _, ended) in squares(200, &|of, _| Ok(of), &until) {
            assert!(matches!(ended, Err(Error::Stopped(_))));
            assert!(found.into_iter().eq(0..33));
        }
    }

    /// Takes squares, of which from one on none can be planned.
    struct Unplannable<'a>(Taker<'a>);

    impl Lead<Square> for Unplannable<'_> {
        fn plan(&mut self, piece: &mut Square) -> Result<Planned> {
            match self.0.planned {
                50 => Err(stopped()),
                _ => self.0.plan(piece),
            }
        }
        fn hand_on(&mut self, piece: &mut Square) -> Result<ControlFlow<()>> {
            self.0.hand_on(piece)
        }
        fn check(&mut self) -> Result<(), Stopped> {
            Ok(())
        }
    }

    #[test]
    fn what_was_planned_before_an_error_comes_before_it() {
        for cores in [1, 3] {
            let worker = Squares {
                of: |of, _: &mut Check<'_>| Ok(of),
                done: Mutex::new(0),
            };
            let mut lead = Unplannable(Taker {
                planned: 0,
                count: u64::MAX,
                until: &all,
                patience: 0,
                found: Vec::new(),
            });
            let ended = match cores {
                1 => on_one(None, &worker, &mut lead).map(drop),
                _ => on_several(cores, &worker, &mut lead),
            };
            assert!(matches!(ended, Err(Error::Stopped(_))));
            assert!(lead.0.found.into_iter().eq(0..50));
        }
    }

    #[test]
    fn little_is_done_that_nobody_wants() {
        let until = |of| {
            Ok(match of {
                33 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
        };
        for (found, done, ended) in squares(100_000, &|of, _| Ok(of), &until) {
            assert!(ended.is_ok());
            assert!(found.into_iter().eq(0..=33));
            assert!(done <= 34 + AHEAD * 3, "{done}");
        }
    }

    #[test]
    fn a_wish_to_stop_reaches_what_is_under_way_and_that_is_handed_on() {
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
        for (found, _, ended) in squares(100_000, &endless, &all) {
            assert!(matches!(ended, Err(Error::Stopped(Stopped::Closed))));
            let whole = found.iter().filter(|&&is| is != BROKEN_OFF);
            assert!(whole.copied().eq(0..70));
            assert!(matches!(found.len(), 71..=73), "{}", found.len());
        }
    }

    #[test]
    fn a_panic_is_passed_on_and_nobody_waits_for_it() {
        for at in [0, 50] {
            let work = |of: u64, _: &mut Check<'_>| match of == at {
                true => panic!("as it is meant to"),
                false => Ok(of),
            };
            let all = AssertUnwindSafe(|| squares(200, &work, &all));
            assert!(catch_unwind(all).is_err(), "{at}");
        }
    }
}
