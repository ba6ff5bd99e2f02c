//! The queue of requests from programs. A thread reads them, so that one can be cancelled while it runs.

use super::interrupt::{InterruptHandle, Interrupts};
use super::lines::{BinaryLine, LineReader, NoLine};
use crate::report::RequestId;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most bytes of waiting requests. A program that sends more blocks. Below the limit a cancellation overtakes all
/// waiting requests.
const WAITING: usize = 16 << 20;

/// The most cancellations that are kept for later requests, and the longest id of one.
const CANCELLED_BEFORE: usize = 1024;
const LONGEST_ID: usize = 1024;

/// How long a request may continue after each interrupt. An interrupt is the normal end of `watch`, and a loop around
/// it continues with the next one.
const PATIENCE: Duration = Duration::from_secs(1);

/// The content of a line in a protocol.
pub(super) trait Content: Send + Sized + 'static {
    /// Whether a line with a backslash at its end continues on the next, as in a command file.
    const GOES_ON: bool;

    /// Parses a request, or another meaning of the line. `number` is that of the line, from 1 on.
    fn parse(number: u64, line: Result<String, BinaryLine>) -> InputLine<Self>;

    /// Makes the end of an input that cannot be read.
    fn unreadable(why: String) -> Self;

    /// Returns the memory in use while it waits, in bytes, besides its own size.
    fn bytes(&self) -> usize;
}

/// A request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Request<T> {
    /// The id in its answer.
    pub(super) id: RequestId,
    /// The content to run, or why the request is invalid.
    pub(super) content: T,
}

/// The meaning of an input line.
pub(super) enum InputLine<T> {
    /// A request for the queue.
    Request(Request<T>),
    /// Cancels a request.
    Cancel(RequestId),
    /// A line without an answer, or one that is already answered.
    Nothing,
}

/// The waiting requests, and the state of the running one.
struct RequestState<T> {
    waiting: VecDeque<WaitingRequest<T>>,
    /// The memory of the waiting requests, in bytes.
    bytes: usize,
    /// Cancellations of later requests, the oldest first.
    cancelled_before: VecDeque<RequestId>,
    /// Whether the input has ended.
    is_at_end: bool,
    /// Whether answers have no reader any more.
    is_unread: bool,
    running: Option<RequestId>,
    /// The time at which the running request is interrupted (again).
    deadline: Option<Instant>,
    end: RequestEnd,
}

/// The way in which a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RequestEnd {
    /// By itself.
    Own,
    /// By its limit of time.
    Late,
    /// By a cancellation.
    Cancelled,
}

struct WaitingRequest<T> {
    request: Request<T>,
    is_cancelled: bool,
}

/// The queue of requests.
pub(super) struct Requests<T>(Arc<Shared<T>>);

struct Shared<T> {
    state: Mutex<RequestState<T>>,
    changed: Condvar,
    /// Interrupts the running request.
    raise: InterruptHandle,
}

impl<T: Content> Requests<T> {
    /// Starts three threads: one reads requests, one interrupts late ones, and one watches whether `output` has a
    /// reader. `raise` interrupts the running request.
    pub(super) fn read(input: OwnedFd, output: OwnedFd, raise: InterruptHandle) -> std::io::Result<Self> {
        let state = RequestState {
            waiting: VecDeque::new(),
            bytes: 0,
            cancelled_before: VecDeque::new(),
            is_at_end: false,
            is_unread: false,
            running: None,
            deadline: None,
            end: RequestEnd::Own,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), raise });
        // A separate handler, so that Ctrl-C between two requests affects nothing else.
        let interrupts = Interrupts::listen()?;
        let [reading, watching, stopping] = [(); 3].map(|()| Arc::clone(&shared));
        std::thread::Builder::new().spawn(move || {
            read_all(LineReader::new(input), &interrupts, &reading);
            reading.change(|state| state.is_at_end = true);
        })?;
        std::thread::Builder::new().spawn(move || {
            wait_until_unread(&output);
            watching.change(|state| state.is_unread = true);
            watching.raise.raise();
        })?;
        std::thread::Builder::new().spawn(move || stopping.stop_late())?;
        Ok(Requests(shared))
    }

    /// Returns the next request, and whether it was cancelled before it ran; `None` at the end of the input, or if
    /// answers have no reader any more. From now on a cancellation or the end of `limit` interrupts the request.
    pub(super) fn next(&self, interrupts: &Interrupts, limit: Option<Duration>) -> Option<(Request<T>, bool)> {
        let state = self.0.lock();
        let is_idle = |state: &mut RequestState<T>| state.waiting.is_empty() && !state.is_at_end && !state.is_unread;
        let mut state = self.0.changed.wait_while(state, is_idle).unwrap_or_else(PoisonError::into_inner);
        let WaitingRequest { request, is_cancelled } = state.waiting.pop_front().filter(|_| !state.is_unread)?;
        state.bytes -= request.bytes();
        state.running = (!is_cancelled).then(|| request.id.clone());
        state.deadline = limit.and_then(|limit| Instant::now().checked_add(limit)).filter(|_| !is_cancelled);
        state.end = RequestEnd::Own;
        interrupts.forget();
        self.0.changed.notify_all();
        Some((request, is_cancelled))
    }

    /// Marks the running request as answered. Returns how it ended.
    pub(super) fn end(&self, interrupts: &Interrupts) -> RequestEnd {
        let mut state = self.0.lock();
        (state.running, state.deadline) = (None, None);
        interrupts.forget();
        state.end
    }

    /// Returns whether answers have no reader any more.
    pub(super) fn are_unread(&self) -> bool {
        self.0.lock().is_unread
    }
}

impl<T: Content> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, RequestState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut RequestState<T>)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Adds a request, when there is room for it.
    fn add(&self, request: Request<T>) {
        let bytes = request.bytes();
        let is_full = |state: &mut RequestState<T>| {
            !state.waiting.is_empty() && state.bytes + bytes > WAITING && !state.is_unread
        };
        let mut state = self.changed.wait_while(self.lock(), is_full).unwrap_or_else(PoisonError::into_inner);
        state.bytes += bytes;
        let before = state.cancelled_before.len();
        state.cancelled_before.retain(|cancelled| *cancelled != request.id);
        let is_cancelled = state.cancelled_before.len() < before;
        state.waiting.push_back(WaitingRequest { request, is_cancelled });
        drop(state);
        self.changed.notify_all();
    }

    /// Cancels the running request, a waiting one, or a later one.
    fn cancel(&self, id: RequestId) {
        let mut state = self.lock();
        if state.running.as_ref() == Some(&id) {
            state.end = RequestEnd::Cancelled;
            state.deadline = Some(Instant::now());
            self.changed.notify_all();
        } else if let Some(waiting) = state.waiting.iter_mut().find(|one| one.request.id == id && !one.is_cancelled) {
            waiting.is_cancelled = true;
        } else if id.bytes() <= LONGEST_ID {
            if state.cancelled_before.len() == CANCELLED_BEFORE {
                state.cancelled_before.pop_front();
            }
            state.cancelled_before.push_back(id);
        }
    }

    /// Interrupts each late request, until answers have no reader any more.
    fn stop_late(&self) {
        let mut state = self.lock();
        while !state.is_unread {
            let left = state.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            state = match left {
                Some(Duration::ZERO) => {
                    state.deadline = Instant::now().checked_add(PATIENCE);
                    if state.end == RequestEnd::Own {
                        state.end = RequestEnd::Late;
                    }
                    // The lock is held, so the request cannot have ended.
                    self.raise.raise();
                    state
                }
                Some(left) => {
                    self.changed.wait_timeout(state, left).map_or_else(|error| error.into_inner().0, |(state, _)| state)
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

impl<T: Content> Request<T> {
    /// Returns the memory in use while it waits, in bytes.
    fn bytes(&self) -> usize {
        size_of::<WaitingRequest<T>>() + self.id.bytes() + self.content.bytes()
    }
}

/// Returns when the other end of a pipe, socket or terminal is closed.
fn wait_until_unread(output: &OwnedFd) {
    loop {
        // Even with no event requested, poll reports a missing reader.
        let mut outputs = [PollFd::new(output, PollFlags::empty())];
        match poll(&mut outputs, None) {
            Err(Errno::INTR) => {}
            _ => return,
        }
    }
}

fn read_all<T: Content>(mut lines: LineReader, interrupts: &Interrupts, requests: &Shared<T>) {
    loop {
        let line = if T::GOES_ON { lines.next(interrupts) } else { lines.next_of_file(interrupts) };
        let parsed = match line {
            Ok(Some(line)) => T::parse(line.number as u64, line.text),
            Ok(None) => return,
            Err(NoLine::Stopped(_)) => {
                interrupts.forget();
                continue;
            }
            Err(NoLine::Failed(error)) => {
                let content = T::unreadable(super::outcome::words(error));
                requests.add(Request { id: RequestId::Number(0), content });
                return;
            }
        };
        match parsed {
            InputLine::Cancel(id) => requests.cancel(id),
            InputLine::Request(request) => requests.add(request),
            InputLine::Nothing => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;

    impl Content for String {
        const GOES_ON: bool = true;

        fn parse(number: u64, line: Result<String, BinaryLine>) -> InputLine<Self> {
            let (id, content) = (RequestId::Number(number), line.expect("text"));
            if content == "cancel" {
                InputLine::Cancel(RequestId::Number(1))
            } else {
                InputLine::Request(Request { id, content })
            }
        }

        fn unreadable(why: String) -> Self {
            panic!("{why}");
        }

        fn bytes(&self) -> usize {
            self.len()
        }
    }

    fn requests() -> (Interrupts, Requests<String>, File, OwnedFd) {
        let interrupts = Interrupts::listen().expect("a pipe");
        let ((input, lines), (reader, output)) =
            (rustix::pipe::pipe().expect("two"), rustix::pipe::pipe().expect("two"));
        let requests = Requests::read(input, output, interrupts.raiser()).expect("threads");
        (interrupts, requests, File::from(lines), reader)
    }

    fn is_interrupted(interrupts: &Interrupts) -> bool {
        interrupts.wait_for(Duration::from_secs(60), None).is_err()
    }

    #[test]
    fn a_late_request_is_interrupted_until_it_ends() {
        let (interrupts, requests, mut lines, _reader) = requests();
        writeln!(lines, "one\ntwo").expect("written");
        for limit in [Some(Duration::from_millis(1)), None] {
            let (request, was_cancelled) = requests.next(&interrupts, limit).expect("a request");
            assert!(!was_cancelled, "{}", request.content);
            let Some(_) = limit else {
                assert_eq!((requests.end(&interrupts), interrupts.check()), (RequestEnd::Own, Ok(())));
                continue;
            };
            // The first interrupt is the normal end of something inside.
            assert!(is_interrupted(&interrupts));
            interrupts.forget();
            assert!(is_interrupted(&interrupts));
            assert_eq!(requests.end(&interrupts), RequestEnd::Late);
            assert!(interrupts.check().is_ok(), "the next request begins without an interrupt");
        }
    }

    #[test]
    fn a_cancelled_request_is_interrupted() {
        let (interrupts, requests, mut lines, _reader) = requests();
        writeln!(lines, "one").expect("written");
        requests.next(&interrupts, Some(Duration::from_secs(3600))).expect("a request");
        writeln!(lines, "cancel").expect("written");
        assert!(is_interrupted(&interrupts));
        assert_eq!(requests.end(&interrupts), RequestEnd::Cancelled);
    }
}
