//! Work that several cores do at once, handed on in the order in which it was planned.

use super::Result;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

/// Cores that are of use: more wait for the one that hands on.
const MOST: usize = 8;
/// Large pieces that are done before other cores are called to help: some 0.5 ms of work, where a thread costs 0.05.
const ALONE: u32 = 4;
/// Pieces in the line for each core, so that none waits for the next to be planned.
const AHEAD: usize = 2;

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

type Plan<'a, P> = dyn FnMut(&mut P) -> Result<Planned> + 'a;
type Work<'a, P> = dyn Fn(&mut P) -> Result<()> + Sync + 'a;
type HandOn<'a, P> = dyn FnMut(&P) -> Result<()> + 'a;

/// Has all work done: `plan` makes its argument the next piece (it may have been another one before), `work` does a piece, on any core,
/// and `hand_on` is given all pieces in order. The caller's thread plans and hands on, and works while there is nothing to hand on.
///
/// Fails with the first error, in order. What was planned after that is dropped.
pub(super) fn in_order<P: Default + Send>(
    plan: &mut Plan<'_, P>,
    work: &Work<'_, P>,
    hand_on: &mut HandOn<'_, P>,
) -> Result<()> {
    let cores = available_parallelism().map_or(1, |cores| cores.get().min(MOST));
    let mut piece = P::default();
    let mut large = 0;
    while cores == 1 || large < ALONE {
        match plan(&mut piece)? {
            Planned::Nothing => return Ok(()),
            Planned::Little => {}
            Planned::Much => large += 1,
        }
        work(&mut piece)?;
        hand_on(&piece)?;
    }
    let team = Team {
        line: Mutex::new(Line::default()),
        changed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        for _ in 1..cores {
            scope.spawn(|| team.help(work));
        }
        team.lead(AHEAD * cores, plan, work, hand_on)
    })
}

/// Those who work on one line of pieces.
struct Team<P> {
    line: Mutex<Line<P>>,
    changed: Condvar,
}

/// The pieces that are under way, in order.
struct Line<P> {
    places: VecDeque<Place<P>>,
    /// Pieces that have left the line at its front: the number of the first in it.
    gone: usize,
    /// Nobody goes on: all is done, or something went wrong.
    closed: bool,
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
            closed: false,
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

impl<P> Team<P> {
    fn lock(&self) -> MutexGuard<'_, Line<P>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&'a self, line: MutexGuard<'a, Line<P>>) -> MutexGuard<'a, Line<P>> {
        let changed = self.changed.wait(line);
        changed.unwrap_or_else(PoisonError::into_inner)
    }

    /// Does a piece that was taken from the line.
    fn work(&self, (number, mut piece): (usize, P), work: &Work<'_, P>) {
        let result = work(&mut piece);
        self.lock().finish(number, piece, result);
        self.changed.notify_all();
    }

    /// Works until the line is closed.
    fn help(&self, work: &Work<'_, P>) {
        let _closing = Closing(self);
        loop {
            let mut line = self.lock();
            let piece = loop {
                if line.closed {
                    return;
                }
                match line.take() {
                    Some(piece) => break piece,
                    None => line = self.wait(line),
                }
            };
            drop(line);
            self.work(piece, work);
        }
    }

    /// Plans, hands on, and works where there is neither to do. At most `most` pieces are in the line.
    fn lead(
        &self,
        most: usize,
        plan: &mut Plan<'_, P>,
        work: &Work<'_, P>,
        hand_on: &mut HandOn<'_, P>,
    ) -> Result<()>
    where
        P: Default,
    {
        let _closing = Closing(self);
        let mut spare: Vec<P> = Vec::new();
        let mut more = true;
        loop {
            while more && self.lock().places.len() < most {
                let mut piece = spare.pop().unwrap_or_default();
                more = plan(&mut piece)? != Planned::Nothing;
                if more {
                    self.lock().places.push_back(Place::ToDo(piece));
                    self.changed.notify_all();
                }
            }
            let mut line = self.lock();
            if let Some((piece, result)) = line.pop() {
                drop(line);
                result?;
                hand_on(&piece)?;
                spare.push(piece);
            } else if let Some(piece) = line.take() {
                drop(line);
                self.work(piece, work);
            } else if line.places.is_empty() || line.closed {
                // Closed by a helper that panicked, which the end of the scope tells.
                return Ok(());
            } else {
                drop(self.wait(line));
            }
        }
    }
}

/// Closes the line when the one who holds this leaves, on whatever way.
struct Closing<'a, P>(&'a Team<P>);

impl<P> Drop for Closing<'_, P> {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::Error;
    use crate::report::Stopped;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[derive(Default)]
    struct Square {
        of: u64,
        is: u64,
    }

    /// Has the squares of the first `count` numbers computed; hands on as long as `until` says.
    fn squares(
        count: u64,
        work: &(dyn Fn(u64) -> Result<u64> + Sync),
        until: &dyn Fn(u64) -> Result<()>,
    ) -> (Vec<u64>, Result<()>) {
        let (mut planned, mut found) = (0, Vec::new());
        let result = in_order(
            &mut |square: &mut Square| {
                if planned == count {
                    return Ok(Planned::Nothing);
                }
                square.of = planned;
                planned += 1;
                Ok(Planned::Much)
            },
            &|square| {
                square.is = work(square.of)?;
                Ok(())
            },
            &mut |square| {
                until(square.of)?;
                found.push(square.is);
                Ok(())
            },
        );
        (found, result)
    }

    #[test]
    fn everything_comes_once_and_in_order() {
        for count in [0, 1, u64::from(ALONE), 1000] {
            // The first of some take the longest.
            let work = |of: u64| {
                (0..(9 - of % 10) * 1000).for_each(|number| _ = std::hint::black_box(number));
                Ok(of * of)
            };
            let (found, result) = squares(count, &work, &|_| Ok(()));
            assert!(result.is_ok());
            assert!(found.into_iter().eq((0..count).map(|of| of * of)));
        }
    }

    #[test]
    fn the_first_error_in_order_ends_it() {
        let stopped = || Error::from(Stopped::Interrupted);
        let fails = |of: u64| match of {
            70.. => Err(stopped()),
            of => Ok(of),
        };
        let (found, result) = squares(200, &fails, &|_| Ok(()));
        assert!(matches!(result, Err(Error::Stopped(_))));
        assert!(found.into_iter().eq(0..70));
        let until = |of| match of {
            33 => Err(stopped()),
            _ => Ok(()),
        };
        let (found, result) = squares(200, &|of| Ok(of), &until);
        assert!(matches!(result, Err(Error::Stopped(_))));
        assert!(found.into_iter().eq(0..33));
    }

    #[test]
    fn a_panic_is_passed_on_and_nobody_waits_for_it() {
        for at in [0, 50] {
            let work = |of: u64| match of == at {
                true => panic!("as it is meant to"),
                false => Ok(of),
            };
            let all = AssertUnwindSafe(|| squares(200, &work, &|_| Ok(())));
            assert!(catch_unwind(all).is_err(), "{at}");
        }
    }
}
