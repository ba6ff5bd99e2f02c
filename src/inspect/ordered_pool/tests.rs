use super::*;
use crate::budget::OutOfBudget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;

type Square = dyn Fn(u64, &mut Budget) -> Result<u64> + Send + Sync;

/// Squares numbers, on whichever core.
struct Squares<const FINE: bool> {
    of: Arc<Square>,
    done: Arc<AtomicU64>,
}

impl<const FINE: bool> Work for Squares<FINE> {
    /// A number, and its square.
    type Task = (u64, u64);
    type Buffers = ();
    const SPREAD: Spread = if FINE { Spread::FINE } else { Spread::COARSE };
    fn work(&self, (of, is): &mut (u64, u64), _: &mut (), budget: &mut Budget) -> Result<()> {
        *is = (self.of)(*of, budget)?;
        self.done.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Ways to have tasks done, each with its worker threads and with the tasks that may be under way.
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

    /// Plans the numbers below `count` and pulls squares as long as `wants_more` says. Returns the squares, how
    /// many were computed, and how it ended.
    fn run(self, squares: &Arc<Square>, plan: Plan<'_>, budget: Budget, wants_more: Wants<'_>) -> Ran {
        let (of, done) = (Arc::clone(squares), Arc::<AtomicU64>::default());
        let found = match self {
            Way::Fine => {
                pull(Pool::new(Arc::new(Squares::<true> { of, done: Arc::clone(&done) }), budget), plan, wants_more)
            }
            _ => {
                let squares = Squares::<false> { of, done: Arc::clone(&done) };
                let mut pool = Pool::new(Arc::new(squares), budget);
                match self {
                    Way::Alone => pool.tasks_alone = None,
                    Way::OnThreads(threads) => pool.start(threads),
                    Way::Coarse | Way::Fine => {}
                }
                pull(pool, plan, wants_more)
            }
        };
        Ran { found: found.0, done: done.load(Ordering::Relaxed) as usize, ended: found.1 }
    }
}

type Plan<'a> = &'a dyn Fn(u64) -> Result<TaskSize>;
type Wants<'a> = &'a dyn Fn(u64) -> bool;

struct Ran {
    found: Vec<u64>,
    done: usize,
    ended: Result<()>,
}

fn pull<const FINE: bool>(
    mut pool: Pool<Squares<FINE>>,
    plan: Plan<'_>,
    wants_more: Wants<'_>,
) -> (Vec<u64>, Result<()>) {
    let mut planned = 0;
    let mut next = |task: &mut (u64, u64)| {
        task.0 = planned;
        planned += 1;
        plan(task.0)
    };
    let mut found = Vec::new();
    loop {
        match pool.next(&mut next) {
            Ok(None) => break (found, Ok(())),
            Err(error) => {
                assert!(matches!(pool.next(&mut next), Ok(None)), "it has ended");
                break (found, Err(error));
            }
            Ok(Some(&mut (of, is))) => {
                found.push(is);
                if !wants_more(of) {
                    break (found, Ok(()));
                }
            }
        }
    }
}

/// The same for all numbers below `count`. It gives up after a minute, however busy the machine is.
fn squares(
    way: Way,
    count: u64,
    of: impl Fn(u64, &mut Budget) -> Result<u64> + Send + Sync + 'static,
    wants_more: Wants<'_>,
) -> Ran {
    let of: Arc<Square> = Arc::new(of);
    let budget = Budget::unlimited().within(Duration::from_secs(60));
    way.run(&of, &below(count), budget, wants_more)
}

fn below(count: u64) -> impl Fn(u64) -> Result<TaskSize> {
    move |of| Ok(if of < count { TaskSize::Full } else { TaskSize::Nothing })
}

fn all(_: u64) -> bool {
    true
}

fn failed() -> Error {
    Error::Exited
}

#[test]
fn everything_comes_once_and_in_order() {
    for (way, count) in Way::ALL.into_iter().flat_map(|way| [0, 1, 4, 32, 33, 1000].map(|count| (way, count))) {
        // The first of some take the longest.
        let work = |of: u64, _: &mut Budget| {
            (0..(9 - of % 10) * 1000).for_each(|number| _ = std::hint::black_box(number));
            Ok(of * of)
        };
        let ran = squares(way, count, work, &all);
        assert!(ran.ended.is_ok());
        assert!(ran.found.into_iter().eq((0..count).map(|of| of * of)));
        assert_eq!(ran.done as u64, count);
    }
}

#[test]
fn the_first_error_in_order_ends_it() {
    for way in Way::ALL {
        let fails = |of: u64, _: &mut Budget| if of < 70 { Ok(of) } else { Err(failed()) };
        let ran = squares(way, 200, fails, &all);
        assert!(matches!(ran.ended, Err(Error::Exited)));
        assert!(ran.found.into_iter().eq(0..70));
    }
}

#[test]
fn pieces_planned_before_an_error_come_before_it() {
    for way in Way::ALL {
        let plan = |of| if of < 50 { Ok(TaskSize::Full) } else { Err(failed()) };
        let of: Arc<Square> = Arc::new(|of, _: &mut Budget| Ok(of));
        let ran = way.run(&of, &plan, Budget::unlimited(), &all);
        assert!(matches!(ran.ended, Err(Error::Exited)));
        assert!(ran.found.into_iter().eq(0..50));
    }
}

#[test]
fn little_is_done_that_nobody_wants() {
    for (way, last) in Way::ALL.into_iter().flat_map(|way| [2, 33, 500].map(|last| (way, last))) {
        let Ran { found, done, ended } = squares(way, 100_000, |of, _| Ok(of), &|of| of < last);
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
fn a_stop_reaches_pieces_under_way_and_they_come() {
    const BROKEN_OFF: u64 = 1 << 40;
    for way in Way::ALL {
        let (interrupt, delivered) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (flag, before) = (Arc::clone(&interrupt), Arc::clone(&delivered));
        let endless: Arc<Square> = Arc::new(move |of: u64, budget: &mut Budget| {
            if of < 70 {
                return Ok(of);
            }
            while budget.look().is_ok() {
                // Ctrl-C, once all before are there.
                if before.load(Ordering::Relaxed) == 70 {
                    flag.store(true, Ordering::Relaxed);
                }
                std::thread::yield_now();
            }
            // An error in what a stop broke off is a result of the stop.
            if of.is_multiple_of(2) { Ok(BROKEN_OFF) } else { Err(failed()) }
        });
        let wants_more = |_| {
            delivered.fetch_add(1, Ordering::Relaxed);
            true
        };
        let ran = way.run(&endless, &below(100_000), Budget::until(interrupt), &wants_more);
        assert!(matches!(ran.ended, Err(Error::OutOfBudget(OutOfBudget::Interrupted))), "{:?}", ran.ended);
        let whole = ran.found.iter().filter(|&&is| is != BROKEN_OFF);
        assert!(whole.copied().eq(0..70));
        assert!((71..=70 + way.threads()).contains(&ran.found.len()), "{}", ran.found.len());
    }
}

#[test]
fn a_deadline_and_steps_end_it_too() {
    for way in Way::ALL {
        for (budget, why) in [
            (Budget::unlimited().within(Duration::ZERO), OutOfBudget::Time),
            (Budget::unlimited().at_most(50), OutOfBudget::Steps),
        ] {
            let of: Arc<Square> = Arc::new(|of, _: &mut Budget| Ok(of));
            let ran = way.run(&of, &below(u64::MAX), budget, &all);
            assert!(matches!(ran.ended, Err(Error::OutOfBudget(ended)) if ended == why), "{:?}", ran.ended);
            assert!(ran.found.len() <= 50 + way.under_way());
        }
    }
}

#[test]
fn a_panic_is_passed_on_and_nobody_waits_for_it() {
    for (way, at) in Way::ALL.into_iter().flat_map(|way| [0, 50].map(|at| (way, at))) {
        let work = move |of: u64, _: &mut Budget| if of == at { panic!("as it is meant to") } else { Ok(of) };
        let all = AssertUnwindSafe(|| squares(way, 200, work, &all));
        assert!(catch_unwind(all).is_err(), "{way:?} {at}");
    }
}

#[test]
fn a_panic_of_the_caller_ends_pieces_under_way() {
    for way in Way::ALL {
        let endless = |of: u64, budget: &mut Budget| {
            while of > 50 && budget.look().is_ok() {
                std::thread::yield_now();
            }
            Ok(of)
        };
        let wants_more = |of| if of == 50 { panic!("as it is meant to") } else { true };
        let all = AssertUnwindSafe(|| squares(way, 200, endless, &wants_more));
        assert!(catch_unwind(all).is_err(), "{way:?}");
    }
}

#[test]
fn dropping_it_ends_pieces_under_way_and_their_threads() {
    for way in Way::ALL {
        let working = Arc::<()>::default();
        let here = Arc::clone(&working);
        let endless = move |of: u64, budget: &mut Budget| {
            let _here = &here;
            while of > 50 && budget.look().is_ok() {
                std::thread::yield_now();
            }
            Ok(of)
        };
        assert!(squares(way, 200, endless, &|of| of < 50).ended.is_ok());
        assert_eq!(Arc::strong_count(&working), 1, "{way:?}");
    }
}

#[test]
fn a_slow_piece_lets_the_others_run_ahead() {
    // The slow task ends once all that the other workers may have are done.
    let done = AtomicU64::new(0);
    let slow = move |of: u64, budget: &mut Budget| {
        let others = 2 * Spread::COARSE.depth as u64;
        while of == 0 && done.load(Ordering::Relaxed) < others && budget.look().is_ok() {
            std::thread::yield_now();
        }
        done.fetch_add(1, Ordering::Relaxed);
        Ok(of)
    };
    let ran = squares(Way::OnThreads(3), 100, slow, &all);
    assert!(ran.ended.is_ok());
    assert!(ran.found.into_iter().eq(0..100));
}

#[test]
fn results_do_not_wait_for_a_slow_piece_of_their_batch() {
    // The slow task ends once those before it in its batch were delivered.
    let delivered = Arc::<AtomicU64>::default();
    let before = Arc::clone(&delivered);
    let slow = move |of: u64, budget: &mut Budget| {
        while of == 37 && before.load(Ordering::Relaxed) < of && budget.look().is_ok() {
            std::thread::yield_now();
        }
        Ok(before.load(Ordering::Relaxed))
    };
    let wants_more = |_| {
        delivered.fetch_add(1, Ordering::Relaxed);
        true
    };
    let ran = squares(Way::Fine, 100, slow, &wants_more);
    assert!(ran.ended.is_ok());
    assert!(ran.found.get(37).is_some_and(|&delivered| delivered >= 37));
}
