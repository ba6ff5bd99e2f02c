//! Work that several cores do at once, pulled in the order in which it was planned.
//!
//! The thread that pulls also plans the tasks. Each worker thread has a bounded channel for batches of tasks and a
//! queue of finished ones. Batches are dealt round robin and results are taken round robin, so they come in order. A
//! slow task lets the other workers run ahead by the depth of their channels, and no further. Threads are started only
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
    type Task: Default + Send + 'static;
    /// Buffers that a worker uses again from task to task.
    type Buffers: Default;
    /// How its tasks are spread over threads.
    const SPREAD: Spread = Spread::COARSE;

    /// Does a task. Work that takes longer than some milliseconds looks at `budget` in between.
    fn work(&self, task: &mut Self::Task, buffers: &mut Self::Buffers, budget: &mut Budget) -> Result<()>;
}

/// How tasks are spread over threads.
pub(super) struct Spread {
    /// The most worker threads that are of use.
    threads: usize,
    /// Full tasks done on the caller's thread before others are started: some 0.5 ms of work, where a thread costs
    /// 0.05.
    tasks_alone: u32,
    /// Tasks that are handed over together: waking a thread takes about as long as a small task.
    batch: usize,
    /// Batches that each worker has, so that none waits for the next to be planned.
    depth: usize,
}

impl Spread {
    /// For tasks of some 0.1 ms or more.
    pub const COARSE: Spread = Spread { threads: 8, tasks_alone: 4, batch: 1, depth: 4 };
    /// For tasks of some 0.02 ms, of which each holds files open.
    pub const FINE: Spread = Spread { threads: 4, tasks_alone: 32, batch: 8, depth: 2 };
}

/// The size of what was planned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TaskSize {
    /// There is no more to do.
    Nothing,
    /// A task too small to start threads for.
    Small,
    /// A task as large as they get.
    Full,
}

/// Does all tasks that are planned. Dropping it ends tasks under way, and waits for its threads.
pub(super) struct Pool<W: Work> {
    work: Arc<W>,
    budget: Budget,
    /// The task that was pulled last.
    task: W::Task,
    buffers: W::Buffers,
    spare: Vec<W::Task>,
    /// Full tasks to be done on this thread before others are started; `None` for all of them.
    tasks_alone: Option<u32>,
    workers: Vec<Worker<W::Task>>,
    /// No task is begun, and tasks under way may end early.
    stop: Arc<AtomicBool>,
    /// How many tasks of each batch have not come back.
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
            task: W::Task::default(),
            buffers: W::Buffers::default(),
            spare: Vec::new(),
            tasks_alone: Some(W::SPREAD.tasks_alone),
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

    /// The task that was pulled last.
    pub fn task(&self) -> &W::Task {
        &self.task
    }

    /// Whether nothing more comes.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Pulls the next finished task, in the order of planning; `None` after the last one. `plan` makes a task, which
    /// may hold an earlier one, the next.
    ///
    /// Fails with the first error, in order; later tasks are dropped. When the budget is over, no task is begun, tasks
    /// under way end early, and their results still come before the error.
    pub fn next(&mut self, mut plan: impl FnMut(&mut W::Task) -> Result<TaskSize>) -> Result<Option<&mut W::Task>> {
        if self.is_closed {
            return Ok(None);
        }
        match self.advance(&mut plan) {
            Ok(true) => Ok(Some(&mut self.task)),
            Ok(false) => {
                self.close();
                Ok(None)
            }
            Err(error) => {
                self.close();
                // Once the budget is over, an error in a task is a result of that.
                Err(self.budget.spend(0).err().map_or(error, Error::from))
            }
        }
    }

    /// Whether there is a next task.
    fn advance(&mut self, plan: &mut dyn FnMut(&mut W::Task) -> Result<TaskSize>) -> Result<bool> {
        if self.tasks_alone == Some(0) {
            self.tasks_alone = None;
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

    /// Does the next task on this thread.
    fn work_alone(&mut self, plan: &mut dyn FnMut(&mut W::Task) -> Result<TaskSize>) -> Result<bool> {
        self.budget.look()?;
        match plan(&mut self.task)? {
            TaskSize::Nothing => return Ok(false),
            TaskSize::Small => {}
            TaskSize::Full => self.tasks_alone = self.tasks_alone.map(|left| left - 1),
        }
        self.work.work(&mut self.task, &mut self.buffers, &mut self.budget)?;
        Ok(true)
    }

    /// Takes the next task from the workers.
    fn take(&mut self, plan: &mut dyn FnMut(&mut W::Task) -> Result<TaskSize>) -> Result<bool> {
        self.check_budget();
        self.deal(plan);
        let mut goes_on = true;
        loop {
            let (Some(worker), Some(left)) = (self.workers.get(self.take_from), self.under_way.front_mut()) else {
                return self.ended.take().unwrap_or(Ok(())).map(|()| false);
            };
            if let Some((task, result)) = worker.next_finished() {
                *left -= 1;
                if *left == 0 {
                    self.under_way.pop_front();
                    self.take_from = (self.take_from + 1) % self.workers.len();
                }
                self.spare.push(std::mem::replace(&mut self.task, task));
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
                Err(RecvTimeoutError::Timeout) => self.check_budget(),
            }
        }
    }

    /// Has the workers stop once the budget is over.
    fn check_budget(&mut self) {
        if let Err(why) = self.budget.look() {
            self.stop.store(true, Ordering::Relaxed);
            self.ended = Some(Err(why.into()));
        }
    }

    /// Gives the workers as much as they may have.
    fn deal(&mut self, plan: &mut dyn FnMut(&mut W::Task) -> Result<TaskSize>) {
        while self.ended.is_none() && self.under_way.len() < W::SPREAD.depth * self.workers.len() {
            let mut batch = Vec::with_capacity(W::SPREAD.batch);
            while self.ended.is_none() && batch.len() < W::SPREAD.batch {
                let mut task = self.spare.pop().unwrap_or_default();
                match plan(&mut task) {
                    Ok(TaskSize::Nothing) => self.ended = Some(Ok(())),
                    Err(error) => self.ended = Some(Err(error)),
                    Ok(TaskSize::Small | TaskSize::Full) => batch.push(task),
                }
            }
            if let (Some(worker), false) = (self.workers.get(self.deal_to), batch.is_empty()) {
                self.under_way.push_back(batch.len());
                // A worker that panicked takes none. Its results end.
                _ = worker.tasks.send(batch);
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

type FinishedTasks<P> = Mutex<VecDeque<(P, Result<()>)>>;

/// A worker thread, as the caller's thread sees it.
struct Worker<P> {
    tasks: SyncSender<Vec<P>>,
    finished: Arc<FinishedTasks<P>>,
    /// Something was finished since the queue was seen to be empty. That is announced after each batch and after long
    /// tasks: waking takes about as long as a small task. Before a long task nobody knows that it is long, so the
    /// caller's thread also wakes by itself.
    woken: Receiver<()>,
    thread: JoinHandle<()>,
}

impl<P: Send + 'static> Worker<P> {
    /// Starts a thread that works until there are no more tasks, or until `stop`; `None` if no thread can be had.
    fn start<W: Work<Task = P>>(work: &Arc<W>, stop: &Arc<AtomicBool>) -> Option<Self> {
        // Nobody ever waits to send: a worker has at most so many batches.
        let (tasks, to_do) = sync_channel::<Vec<P>>(W::SPREAD.depth);
        let (wake, woken) = sync_channel(1);
        let finished: Arc<FinishedTasks<P>> = Arc::default();
        let (work, stop, done) = (Arc::clone(work), Arc::clone(stop), Arc::clone(&finished));
        let thread = move || {
            let mut buffers = W::Buffers::default();
            let mut budget = Budget::until(Arc::clone(&stop));
            for batch in to_do {
                let mut begun = Instant::now();
                for mut task in batch {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let result = work.work(&mut task, &mut buffers, &mut budget);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push_back((task, result));
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
        Some(Worker { tasks, finished, woken, thread })
    }

    /// The next finished task, if there is one.
    fn next_finished(&self) -> Option<(P, Result<()>)> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}
