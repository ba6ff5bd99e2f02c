//! Restores the terminal when a signal ends the program during line editing.

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::io::{self, IsTerminal, Write};

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
    _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
}
