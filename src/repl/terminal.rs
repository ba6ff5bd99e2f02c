//! What the prompt has to do with the terminal itself: asks whether its background is dark or light (OSC 11, which
//! xterm introduced), and leaves it to the program that pmdb was started from, in its old mode, and without input that
//! was meant for pmdb.

use crate::own::ending::BeforeEnd;
use crate::render::Background;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetpgrp, tcsetattr};
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// A pause after which a paste has ended. A terminal sends a long paste in parts, as fast as they are read.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// How long the rest of a paste is discarded at most: a key that is held down never pauses.
const LONGEST_PASTE: Duration = Duration::from_secs(5);

/// When dropped, discards all input that was typed or pasted ahead: the shell would run it.
pub(super) struct DiscardAtEnd;

impl Drop for DiscardAtEnd {
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

/// Makes signals restore the terminal before they end the program, until this is dropped.
///
/// # Errors
/// The signals cannot be listened to.
pub(super) fn restore_terminal_at_signals() -> io::Result<Option<BeforeEnd>> {
    if !io::stdin().is_terminal() {
        return Ok(None);
    }
    let before = tcgetattr(io::stdin())?;
    BeforeEnd::new(move || restore(&before)).map(Some)
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

/// The colour of the background, and then the terminal's attributes: nearly every terminal answers the second question,
/// so that nobody waits for an answer to the first.
const QUESTION: &[u8] = b"\x1b]11;?\x07\x1b[c";

/// A terminal that has not answered by then is taken for one that does not.
const PATIENCE: Duration = Duration::from_millis(50);

/// More bytes than this are no answer.
const LONGEST_ANSWER: usize = 4096;

/// What the terminal said, and what was typed before it answered.
#[derive(PartialEq, Eq, Debug, Default)]
pub(super) struct TerminalAnswer {
    pub(super) background: Option<Background>,
    pub(super) typed: Vec<u8>,
}

/// Asks the terminal. Does not if input is waiting: it would stand before the answer.
pub(super) fn ask_background() -> TerminalAnswer {
    let (input, output) = (io::stdin(), io::stdout());
    let is_ours = input.is_terminal() && output.is_terminal() && tcgetpgrp(&input) == Ok(getpgrp());
    if !is_ours || !answers_at_once(|name| std::env::var(name).ok()) || has_input(input.as_fd(), Duration::ZERO) {
        return TerminalAnswer::default();
    }
    let Ok(before) = tcgetattr(&input) else {
        return TerminalAnswer::default();
    };
    // The answer is neither echoed nor held back until the end of a line.
    let mut silent = before.clone();
    silent.local_modes -= LocalModes::ECHO | LocalModes::ICANON;
    if tcsetattr(&input, OptionalActions::Now, &silent).is_err() {
        return TerminalAnswer::default();
    }
    let answer = ask_on(input.as_fd(), output, PATIENCE);
    _ = tcsetattr(&input, OptionalActions::Now, &before);
    answer
}

fn ask_on(input: BorrowedFd<'_>, mut output: impl Write, patience: Duration) -> TerminalAnswer {
    let asked = output.write_all(QUESTION).and_then(|()| output.flush());
    let mut read = Vec::new();
    let end = Instant::now() + patience;
    while asked.is_ok() && read.len() < LONGEST_ANSWER && attributes(&read).is_none() {
        if !has_input(input, end.saturating_duration_since(Instant::now())) {
            break;
        }
        let mut part = [0; 256];
        // Not through the buffer of `Stdin`: what the editor is to read must not stay in it.
        match rustix::io::read(input, &mut part) {
            Ok(count) if count > 0 => read.extend(part.iter().take(count)),
            _ => break,
        }
    }
    TerminalAnswer::in_bytes(&read)
}

/// Whether an answer comes before anybody waits for it, and no late one ends up in a line: not from far away, and not
/// from a console that does not know the question.
fn answers_at_once(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    let is_far = is_set("SSH_CONNECTION") || is_set("SSH_TTY");
    // tmux runs beside pmdb and answers by itself.
    let is_near = !is_far || is_set("TMUX");
    is_near && !matches!(variable("TERM").as_deref(), None | Some("" | "dumb" | "linux"))
}

fn has_input(input: BorrowedFd<'_>, wait: Duration) -> bool {
    let wait = Timespec::try_from(wait).ok();
    poll(&mut [PollFd::from_borrowed_fd(input, PollFlags::IN)], wait.as_ref()) == Ok(1)
}

/// Where a control sequence with this beginning stands in `bytes`, and where it ends.
fn sequence(bytes: &[u8], begins: &[u8], ends: impl Fn(&[u8]) -> Option<usize>) -> Option<(usize, usize)> {
    let start = memchr::memmem::find(bytes, begins)?;
    let rest = bytes.get(start + begins.len()..)?;
    Some((start, start + begins.len() + ends(rest)?))
}

/// The answer to the second question: `ESC [ ? … c`.
fn attributes(bytes: &[u8]) -> Option<(usize, usize)> {
    sequence(bytes, b"\x1b[?", |rest| {
        let end = rest.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b';'))?;
        (rest.get(end) == Some(&b'c')).then_some(end + 1)
    })
}

/// The answer to the first: `ESC ] 11 ; rgb:…`, ended by BEL or `ESC \`.
fn colour(bytes: &[u8]) -> Option<(usize, usize)> {
    sequence(bytes, b"\x1b]11;", |rest| {
        let end = rest.iter().position(|byte| matches!(byte, 0x07 | 0x1b))?;
        match (rest.get(end), rest.get(end + 1)) {
            (Some(0x07), _) => Some(end + 1),
            (_, Some(b'\\')) => Some(end + 2),
            _ => None,
        }
    })
}

impl TerminalAnswer {
    fn in_bytes(bytes: &[u8]) -> TerminalAnswer {
        let mut typed = bytes.to_vec();
        let mut background = None;
        if let Some((start, end)) = colour(&typed) {
            let answer: Vec<u8> = typed.drain(start..end).collect();
            background = std::str::from_utf8(&answer).ok().and_then(background_of);
        }
        if let Some((start, end)) = attributes(&typed) {
            typed.drain(start..end);
        }
        TerminalAnswer { background, typed }
    }
}

/// Dark or light, from `rgb:RRRR/GGGG/BBBB` with one to four digits a part.
fn background_of(answer: &str) -> Option<Background> {
    let (_, colour) = answer.split_once("rgb")?;
    let (_, parts) = colour.split_once(':')?;
    let parts = parts.trim_end_matches(['\x07', '\x1b', '\\']);
    let mut light = 0.0;
    // The weights of ITU-R BT.709.
    for (part, weight) in parts.split('/').zip([0.2126, 0.7152, 0.0722]) {
        let most = 16u32.checked_pow(u32::try_from(part.len()).ok()?)?.checked_sub(1).filter(|most| *most > 0)?;
        light += weight * f64::from(u32::from_str_radix(part, 16).ok()?) / f64::from(most);
    }
    (parts.split('/').count() >= 3).then_some(if light > 0.5 { Background::Light } else { Background::Dark })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(bytes: &[u8]) -> (Option<Background>, String) {
        let TerminalAnswer { background, typed } = TerminalAnswer::in_bytes(bytes);
        (background, String::from_utf8(typed).expect("text"))
    }

    #[test]
    fn the_answers_of_terminals() {
        let none = String::new;
        assert_eq!(answer(b"\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[?62;22c"), (Some(Background::Dark), none()));
        assert_eq!(answer(b"\x1b]11;rgb:fdfd/f6f6/e3e3\x07\x1b[?1;2c"), (Some(Background::Light), none()));
        assert_eq!(answer(b"\x1b]11;rgb:ff/ff/ff\x07\x1b[?1;2c"), (Some(Background::Light), none()));
        assert_eq!(answer(b"\x1b]11;rgba:2828/2a2a/3636/ffff\x07\x1b[?6c"), (Some(Background::Dark), none()));
        assert_eq!(answer(b"\x1b[?1;2c"), (None, none()), "it does not know its colour");
        assert_eq!(answer(b""), (None, none()));
    }

    #[test]
    fn what_was_typed_stays() {
        let dark = Some(Background::Dark);
        assert_eq!(answer(b"wa\x1b]11;rgb:0/0/0\x07lk\x1b[?6c he"), (dark, "walk he".into()));
        assert_eq!(answer(b"walk heap\r"), (None, "walk heap\r".into()));
        assert_eq!(answer(b"\x1b[A\x1b[?6c"), (None, "\x1b[A".into()), "a key");
        assert_eq!(answer(b"\x1b]11;rgb:0/0"), (None, "\x1b]11;rgb:0/0".into()), "not whole");
    }

    #[test]
    fn nonsense_is_no_colour() {
        for colour in ["rgb:", "rgb:0/0", "rgb:x/0/0", "rgb:fffffffff/0/0", "rgb://", "red", ""] {
            let bytes = format!("\x1b]11;{colour}\x07\x1b[?6c");
            assert_eq!(answer(bytes.as_bytes()), (None, String::new()), "{colour}");
        }
    }

    #[test]
    fn a_terminal_is_asked_and_believed() {
        use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
        let terminal = std::fs::File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal"));
        grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("a terminal");
        let line = ioctl_tiocgptpeer(&terminal, OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("its other end");
        let mut mode = tcgetattr(&line).expect("its mode");
        mode.make_raw();
        tcsetattr(&line, OptionalActions::Now, &mode).expect("to set it");
        let line = std::fs::File::from(line);
        let answers = |answer: &'static [u8], patience| {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut question = [0; QUESTION.len()];
                    std::io::Read::read_exact(&mut &terminal, &mut question).expect("a question");
                    assert_eq!(question, QUESTION);
                    (&terminal).write_all(answer).expect("to answer");
                });
                ask_on(line.as_fd(), &line, patience)
            })
        };
        let minute = Duration::from_secs(60);
        let answer = answers(b"pri\x1b]11;rgb:ffff/ffff/ffff\x1b\\nt 1\r\x1b[?1;2c", minute);
        assert_eq!(answer, TerminalAnswer { background: Some(Background::Light), typed: b"print 1\r".to_vec() });
        // One that does not answer is not waited for.
        assert_eq!(answers(b"", Duration::ZERO), TerminalAnswer::default());
    }

    #[test]
    fn only_terminals_that_answer_at_once_are_asked() {
        let asks = |variables: &[(&str, &str)]| {
            let find =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
            answers_at_once(find)
        };
        assert!(asks(&[("TERM", "xterm-256color")]));
        assert!(!asks(&[]));
        assert!(!asks(&[("TERM", "linux")]));
        assert!(!asks(&[("TERM", "xterm"), ("SSH_CONNECTION", "192.0.2.1 1 192.0.2.2 22")]));
        assert!(asks(&[("TERM", "tmux"), ("SSH_CONNECTION", "192.0.2.1 1 192.0.2.2 22"), ("TMUX", "/tmp/tmux,1,0")]));
    }
}
