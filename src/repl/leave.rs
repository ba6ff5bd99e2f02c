//! Leaves the terminal to the program that pmdb was started from: in its old mode, and without input that was meant for
//! pmdb.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios};
use rustix::termios::{tcflush, tcgetattr, tcgetpgrp, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// A pause after which a paste has ended. A terminal sends a long paste in parts, as fast as they are read.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// How long the rest of a paste is discarded at most: a key that is held down never pauses.
const LONGEST_PASTE: Duration = Duration::from_secs(5);

/// When dropped, discards all input that was typed or pasted ahead: the shell would run it.
pub(super) struct RestOfInput;

impl Drop for RestOfInput {
    fn drop(&mut self) {
        discard_input();
    }
}

/// Discards all input that was typed or pasted ahead, until it pauses.
pub(super) fn discard_input() {
    let terminal = io::stdin();
    // In the background, the input belongs to another program.
    let Ok(before) = tcgetattr(&terminal) else { return };
    if tcgetpgrp(&terminal) != Ok(getpgrp()) {
        return;
    }
    // No byte of the rest is echoed, and none is a key that stops or ends pmdb.
    let mut silent = before.clone();
    silent.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
    _ = tcsetattr(&terminal, OptionalActions::Now, &silent);
    let begun = Instant::now();
    while begun.elapsed() < LONGEST_PASTE {
        _ = tcflush(&terminal, QueueSelector::IFlush);
        let mut input = [PollFd::new(&terminal, PollFlags::IN)];
        match poll(&mut input, Some(&PAUSE)) {
            Ok(1) if input.iter().all(|input| input.revents() == PollFlags::IN) => {}
            Err(Errno::INTR) => {}
            _ => break,
        }
    }
    _ = tcsetattr(&terminal, OptionalActions::Now, &before);
}

/// Makes these signals restore the terminal before they end the program.
///
/// # Errors
/// The signals cannot be listened to.
pub(super) fn restoring_terminal() -> io::Result<()> {
    if !io::stdin().is_terminal() {
        return Ok(());
    }
    let before = tcgetattr(io::stdin())?;
    let mut signals = Signals::new([SIGHUP, SIGQUIT, SIGTERM])?;
    let wait = move || {
        for signal in signals.forever() {
            restore(&before);
            _ = emulate_default_handler(signal);
        }
    };
    std::thread::Builder::new().spawn(wait)?;
    Ok(())
}

fn restore(before: &Termios) {
    // The editor has switched bracketed paste on.
    const NO_BRACKETED_PASTE: &[u8] = b"\x1b[?2004l\r\n";
    let mut out = io::stdout();
    if out.is_terminal() {
        _ = out.write_all(NO_BRACKETED_PASTE);
        _ = out.flush();
    }
    discard_input();
    _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
}
