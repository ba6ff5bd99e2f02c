//! Cleanup before a signal ends the program: it restores the terminal and removes an incomplete file.

use signal_hook::consts::{SIGALRM, SIGHUP, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The signals whose default action ends a program, but for those of its own faults (SIGSEGV) and for SIGINT, which a
/// session handles.
const SIGNALS: [i32; 10] = [SIGALRM, SIGHUP, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ];

type Deed = Box<dyn Fn() + Send>;

/// The registered deeds by number, the oldest first.
#[derive(Default)]
struct Deeds {
    by_number: BTreeMap<u64, Deed>,
    next: u64,
}

static DEEDS: Mutex<Deeds> = Mutex::new(Deeds { by_number: BTreeMap::new(), next: 0 });

/// Whether the thread that waits for signals could be started.
static LISTENS: OnceLock<bool> = OnceLock::new();

/// A registered deed. Dropping the value removes the deed without doing it.
#[derive(Debug)]
pub struct BeforeEnd(u64);

impl BeforeEnd {
    /// Registers `deed`, which a thread does before a signal ends the program; the latest deed first.
    ///
    /// # Errors
    /// Fails if no thread can be started or no handler installed.
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

/// Returns the signals that were ignored when the program began (`SigIgn`), one bit each: nohup ignores SIGHUP, and a
/// shell ignores some for commands in the background.
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
