//! Many small jobs on several cores, their results taken in the order of the jobs.

use crate::inspect::Result;
use crate::report::Stopped;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Scope, available_parallelism};
use std::time::Duration;

/// Jobs that are done before other cores are called to help: about a millisecond of work, where threads cost 0.1.
const ALONE: usize = 64;
/// Jobs that are handed to a core together.
const TOGETHER: usize = 8;
/// Hands that are of use: more would wait for whoever takes the results, and each holds files open.
const MOST: usize = 4;
/// Handfuls that a hand has before it, so that it does not wait.
const AHEAD: usize = 2;
/// How long it may take until a wish to stop is noticed.
const PATIENCE: Duration = Duration::from_millis(20);

/// Who does the jobs, on whatever core. In between it asks `check` whether to go on.
pub trait Work<J>: Sync {
    /// What comes of a job.
    type Result: Send;
    /// Room that a core uses again from job to job.
    type Room: Default;
    fn work(&self, job: &J, room: &mut Self::Room, check: &mut Check<'_>) -> Self::Result;
}

/// Whether to go on.
pub type Check<'a> = dyn FnMut() -> Result<(), Stopped> + 'a;

/// Who takes the results.
pub trait Take<J, R> {
    /// The next result; whether more are wanted.
    fn take(&mut self, job: &J, result: R) -> Result<ControlFlow<()>>;
    /// Whether to go on.
    fn check(&mut self) -> Result<(), Stopped>;
}

/// Has `jobs` done until `taker` wants no more, or is to stop: then jobs under way end early, and what came of them is still taken.
pub fn in_order<J: Sync, W: Work<J>>(
    jobs: &[J],
    worker: &W,
    taker: &mut dyn Take<J, W::Result>,
) -> Result<()> {
    let hands = available_parallelism().map_or(1, |cores| cores.get().min(MOST));
    let alone = match hands {
        1 => jobs.len(),
        _ => jobs.len().min(ALONE),
    };
    let (first, rest) = jobs.split_at(alone);
    let mut room = W::Room::default();
    for job in first {
        let result = worker.work(job, &mut room, &mut || taker.check());
        if taker.take(job, result)?.is_break() {
            return Ok(());
        }
    }
    match rest {
        [] => Ok(()),
        rest => on_several(rest, hands, worker, taker),
    }
}

/// A core's part: what it is to do, and what came of it.
struct Hand<'j, J, R> {
    to_do: SyncSender<&'j [J]>,
    done: Receiver<Vec<R>>,
}

impl<'scope, J: Sync, R: Send + 'scope> Hand<'scope, J, R> {
    fn start<W: Work<J, Result = R>>(
        scope: &'scope Scope<'scope, '_>,
        worker: &'scope W,
        halt: &'scope AtomicBool,
    ) -> Self {
        let (to_do, handfuls) = sync_channel::<&[J]>(AHEAD);
        let (hand_back, done) = sync_channel(AHEAD);
        scope.spawn(move || {
            let mut room = W::Room::default();
            let mut check = || match halt.load(Ordering::Relaxed) {
                true => Err(Stopped::Interrupted),
                false => Ok(()),
            };
            for jobs in handfuls {
                let results = jobs
                    .iter()
                    .map_while(|job| match halt.load(Ordering::Relaxed) {
                        true => None,
                        false => Some(worker.work(job, &mut room, &mut check)),
                    });
                // Nobody waits for them any more.
                if hand_back.send(results.collect()).is_err() {
                    break;
                }
            }
        });
        Hand { to_do, done }
    }
}

fn on_several<J: Sync, W: Work<J>>(
    jobs: &[J],
    hands: usize,
    worker: &W,
    taker: &mut dyn Take<J, W::Result>,
) -> Result<()> {
    let halt = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // However this ends, nobody is to go on with what is not wanted.
        let _halted_at_the_end = HaltedAtTheEnd(&halt);
        let hands: Vec<Hand<'_, J, W::Result>> = (0..hands)
            .map(|_| Hand::start(scope, worker, &halt))
            .collect();
        let mut next = hands.iter().cycle();
        let mut handfuls = jobs.chunks(TOGETHER);
        let mut under_way = VecDeque::new();
        let mut stopped = None;
        loop {
            while stopped.is_none()
                && under_way.len() < AHEAD * hands.len()
                && let Some(jobs) = handfuls.next()
                && let Some(hand) = next.next()
                && hand.to_do.send(jobs).is_ok()
            {
                under_way.push_back((jobs, hand));
            }
            let Some((jobs, hand)) = under_way.pop_front() else {
                break;
            };
            let results = loop {
                match hand.done.recv_timeout(PATIENCE) {
                    Ok(results) => break results,
                    Err(RecvTimeoutError::Disconnected) => break Vec::new(),
                    Err(RecvTimeoutError::Timeout) => {
                        if let (None, Err(why)) = (stopped, taker.check()) {
                            stopped = Some(why);
                            halt.store(true, Ordering::Relaxed);
                        }
                    }
                }
            };
            for (job, result) in jobs.iter().zip(results) {
                match (taker.take(job, result), stopped) {
                    (Ok(ControlFlow::Continue(())), _) => {}
                    (Ok(ControlFlow::Break(())), _) => return Ok(()),
                    // What was broken off knows only that.
                    (Err(_), Some(why)) => return Err(why.into()),
                    (Err(error), None) => return Err(error),
                }
            }
        }
        stopped.map_or(Ok(()), |why| Err(why.into()))
    })
}

struct HaltedAtTheEnd<'a>(&'a AtomicBool);

impl Drop for HaltedAtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Doubles numbers; those from `endless` on only when it is told to stop.
    struct Double {
        endless: usize,
        done: Mutex<Vec<usize>>,
    }

    impl Work<usize> for Double {
        type Result = (usize, bool);
        type Room = ();
        fn work(&self, job: &usize, _: &mut (), check: &mut Check<'_>) -> (usize, bool) {
            let mut broken_off = false;
            while *job >= self.endless && !broken_off {
                std::thread::yield_now();
                broken_off = check().is_err();
            }
            self.done.lock().expect("a lock").push(*job);
            (job * 2, broken_off)
        }
    }

    struct Taken {
        results: Vec<(usize, bool)>,
        most: usize,
        patience: usize,
    }

    impl Take<usize, (usize, bool)> for Taken {
        fn take(&mut self, job: &usize, result: (usize, bool)) -> Result<ControlFlow<()>> {
            assert_eq!(job * 2, result.0);
            self.results.push(result);
            Ok(match self.results.len() >= self.most {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        }
        fn check(&mut self) -> Result<(), Stopped> {
            self.patience = self.patience.saturating_sub(1);
            match self.patience {
                0 => Err(Stopped::Closed),
                _ => Ok(()),
            }
        }
    }

    fn run(jobs: usize, endless: usize, most: usize) -> (Result<()>, Vec<(usize, bool)>, usize) {
        let jobs: Vec<usize> = (0..jobs).collect();
        let double = Double {
            endless,
            done: Mutex::default(),
        };
        let mut taken = Taken {
            results: Vec::new(),
            most,
            patience: 3,
        };
        let ended = match jobs.split_at_checked(ALONE) {
            // Whatever cores there are.
            Some((_, rest)) => on_several(rest, 3, &double, &mut taken),
            None => in_order(&jobs, &double, &mut taken),
        };
        let done = double.done.lock().expect("a lock").len();
        (ended, taken.results, done)
    }

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        for jobs in [0, 1, 10, ALONE + 1, ALONE + 1000] {
            let (ended, results, done) = run(jobs, usize::MAX, usize::MAX);
            assert!(ended.is_ok());
            let first = if jobs > ALONE { ALONE } else { 0 };
            let expected: Vec<_> = (first..jobs).map(|job| (job * 2, false)).collect();
            assert_eq!((results, done), (expected, jobs - first));
        }
    }

    #[test]
    fn little_is_done_that_nobody_wants() {
        let (ended, results, done) = run(10, usize::MAX, 4);
        assert!(ended.is_ok());
        assert_eq!((results.len(), done), (4, 4));
        let (ended, results, done) = run(100_000, usize::MAX, 4);
        assert!(ended.is_ok());
        assert_eq!(results.len(), 4);
        assert!(done < 1000, "{done}");
    }

    #[test]
    fn a_wish_to_stop_reaches_jobs_under_way_and_what_they_have_is_taken() {
        let endless = ALONE + 100;
        let (ended, results, _) = run(100_000, endless, usize::MAX);
        assert!(matches!(
            ended,
            Err(crate::inspect::Error::Stopped(Stopped::Closed))
        ));
        let whole = results.iter().filter(|(_, broken_off)| !broken_off).count();
        assert_eq!(whole, 100);
        assert!(results.len() > whole);
    }
}
