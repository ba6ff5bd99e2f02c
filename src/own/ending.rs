//! What is done before a signal ends the program: the terminal is given back, half a file is removed.

use signal_hook::consts::{SIGALRM, SIGHUP, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The signals that end a program unless it handles them. Not among them are those of a fault of the program itself,
/// and SIGINT, which a session handles.
const SIGNALS: [i32; 10] = [SIGALRM, SIGHUP, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ];

type Deed = Box<dyn Fn() + Send>;

/// The deeds by number, the oldest first; `None` if the signals cannot be listened to.
#[derive(Default)]
struct Deeds {
    by_number: BTreeMap<u64, Deed>,
    next: u64,
}

static DEEDS: Mutex<Deeds> = Mutex::new(Deeds { by_number: BTreeMap::new(), next: 0 });

/// Whether the thread that waits for signals runs.
static LISTENS: OnceLock<bool> = OnceLock::new();

/// A deed that is still to be done. Dropped, it is not done any more.
#[derive(Debug)]
pub struct BeforeEnd(u64);

impl BeforeEnd {
    /// Does `deed` before a signal ends the program, in another thread.
    ///
    /// # Errors
    /// The signals cannot be listened to.
    pub fn new(deed: impl Fn() + Send + 'static) -> io::Result<BeforeEnd> {
        let number = {
            let mut deeds = DEEDS.lock().unwrap_or_else(PoisonError::into_inner);
            let number = deeds.next;
            deeds.next += 1;
            deeds.by_number.insert(number, Box::new(deed));
            number
        };
        let guard = BeforeEnd(number);
        if !*LISTENS.get_or_init(|| listen().is_ok()) {
            return Err(io::Error::other("signals cannot be listened to"));
        }
        Ok(guard)
    }
}

impl Drop for BeforeEnd {
    fn drop(&mut self) {
        DEEDS.lock().unwrap_or_else(PoisonError::into_inner).by_number.remove(&self.0);
    }
}

/// The signals that were ignored when the program began, a bit each: those of nohup, and of a shell for commands in the
/// background.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}

fn listen() -> io::Result<()> {
    let ignored = ignored();
    let mut signals = Signals::new(SIGNALS.iter().filter(|&&signal| ignored >> (signal - 1) & 1 == 0))?;
    let wait = move || {
        for signal in signals.forever() {
            let deeds = DEEDS.lock().unwrap_or_else(PoisonError::into_inner);
            deeds.by_number.values().rev().for_each(|deed| deed());
            _ = emulate_default_handler(signal);
        }
    };
    std::thread::Builder::new().spawn(wait)?;
    Ok(())
}
