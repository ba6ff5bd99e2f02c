//! Many small jobs, which the cores do by the handful; their results are taken in the order of the jobs.

pub(in crate::inspect) use crate::inspect::cores::Check;

use crate::inspect::Result;
use crate::inspect::cores::{self, Lead, Planned};
use crate::report::Stopped;
use std::marker::PhantomData;
use std::ops::ControlFlow;

/// Jobs that are done one by one: the first often tell enough.
const ALONE: usize = 32;
/// Jobs of a handful: about 0.2 ms of work.
const TOGETHER: usize = 8;

/// Who does the jobs, on whatever core. In between it asks `check` whether to go on.
pub trait Work<J>: Sync {
    /// What comes of a job.
    type Result: Send;
    /// Room that a core uses again from job to job.
    type Room: Default;
    fn work(&self, job: &J, room: &mut Self::Room, check: &mut Check<'_>) -> Self::Result;
}

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
    let crew = Crew {
        worker,
        jobs: PhantomData,
    };
    let mut giver = Giver {
        left: jobs,
        given: 0,
        taker,
    };
    cores::in_order(&crew, &mut giver)
}

/// Jobs that one core does, and their results: fewer, if it was told to stop.
struct Handful<'j, J, R> {
    jobs: &'j [J],
    results: Vec<R>,
}

impl<J, R> Default for Handful<'_, J, R> {
    fn default() -> Self {
        Handful {
            jobs: &[],
            results: Vec::new(),
        }
    }
}

struct Crew<'j, J, W> {
    worker: &'j W,
    jobs: PhantomData<&'j [J]>,
}

impl<'j, J: Sync, W: Work<J>> cores::Work for Crew<'j, J, W> {
    type Piece = Handful<'j, J, W::Result>;
    type Room = W::Room;
    /// Each holds files open.
    const CORES: usize = 4;

    fn work(
        &self,
        handful: &mut Self::Piece,
        room: &mut W::Room,
        check: &mut Check<'_>,
    ) -> Result<()> {
        handful.results.clear();
        for job in handful.jobs {
            if check().is_err() {
                break;
            }
            handful.results.push(self.worker.work(job, room, check));
        }
        Ok(())
    }
}

/// Gives out the jobs, and has the results taken.
struct Giver<'j, 't, J, R> {
    left: &'j [J],
    given: usize,
    taker: &'t mut dyn Take<J, R>,
}

impl<'j, J, R> Lead<Handful<'j, J, R>> for Giver<'j, '_, J, R> {
    fn plan(&mut self, handful: &mut Handful<'j, J, R>) -> Result<Planned> {
        let (together, planned) = match self.given < ALONE {
            true => (1, Planned::Little),
            false => (TOGETHER, Planned::Much),
        };
        (handful.jobs, self.left) = self.left.split_at(together.min(self.left.len()));
        self.given += handful.jobs.len();
        Ok(match handful.jobs {
            [] => Planned::Nothing,
            _ => planned,
        })
    }

    fn hand_on(&mut self, handful: &mut Handful<'j, J, R>) -> Result<ControlFlow<()>> {
        for (job, result) in handful.jobs.iter().zip(handful.results.drain(..)) {
            if self.taker.take(job, result)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn check(&mut self) -> Result<(), Stopped> {
        self.taker.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Doubles numbers; those from `endless` on only when it is told to stop.
    struct Double {
        endless: usize,
        has_begun: AtomicBool,
        done: Mutex<Vec<usize>>,
    }

    impl Work<usize> for Double {
        type Result = (usize, bool);
        type Room = ();
        fn work(&self, job: &usize, (): &mut (), check: &mut Check<'_>) -> (usize, bool) {
            let mut broken_off = false;
            while *job >= self.endless && !broken_off {
                self.has_begun.store(true, Ordering::Relaxed);
                std::thread::yield_now();
                broken_off = check().is_err();
            }
            self.done.lock().expect("a lock").push(*job);
            (job * 2, broken_off)
        }
    }

    /// Wants no more after `most`, and stops when one has begun that has no end.
    struct Taken<'a> {
        results: Vec<(usize, bool)>,
        most: usize,
        double: &'a Double,
    }

    impl Take<usize, (usize, bool)> for Taken<'_> {
        fn take(&mut self, job: &usize, result: (usize, bool)) -> Result<ControlFlow<()>> {
            assert_eq!(job * 2, result.0);
            self.results.push(result);
            Ok(match self.results.len() >= self.most {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        }
        fn check(&mut self) -> Result<(), Stopped> {
            match self.double.has_begun.load(Ordering::Relaxed) {
                true => Err(Stopped::Closed),
                false => Ok(()),
            }
        }
    }

    fn run(jobs: usize, endless: usize, most: usize) -> (Result<()>, Vec<(usize, bool)>, usize) {
        let jobs: Vec<usize> = (0..jobs).collect();
        let double = Double {
            endless,
            has_begun: AtomicBool::new(false),
            done: Mutex::default(),
        };
        let mut taken = Taken {
            results: Vec::new(),
            most,
            double: &double,
        };
        let ended = in_order(&jobs, &double, &mut taken);
        let results = taken.results;
        let done = double.done.lock().expect("a lock").len();
        (ended, results, done)
    }

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        for jobs in [0, 1, 10, ALONE + 1, ALONE + 1000] {
            let (ended, results, done) = run(jobs, usize::MAX, usize::MAX);
            assert!(ended.is_ok());
            let expected: Vec<_> = (0..jobs).map(|job| (job * 2, false)).collect();
            assert_eq!((results, done), (expected, jobs));
        }
    }

    #[test]
    fn little_is_done_that_nobody_wants() {
        for jobs in [10, 100_000] {
            let (ended, results, done) = run(jobs, usize::MAX, 4);
            assert!(ended.is_ok());
            assert_eq!((results.len(), done), (4, 4));
        }
        let (ended, results, done) = run(100_000, usize::MAX, 500);
        assert!(ended.is_ok());
        assert_eq!(results.len(), 500);
        assert!(done < 1000, "{done}");
    }

    #[test]
    fn a_wish_to_stop_reaches_jobs_under_way_and_what_they_have_is_taken() {
        for endless in [10, ALONE + 100] {
            let (ended, results, _) = run(100_000, endless, usize::MAX);
            assert!(matches!(
                ended,
                Err(crate::inspect::Error::Stopped(Stopped::Closed))
            ));
            let whole = results.iter().filter(|(_, broken_off)| !broken_off).count();
            assert!(
                whole <= endless && whole + 8 * TOGETHER > endless,
                "{whole}"
            );
            assert!(results.len() > whole);
        }
    }
}
