//! An answer in memory, with limited size.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// The most bytes of an answer, some 20,000 words of a language model, without errors.
pub(super) const MOST: usize = 64 << 10;

/// An answer. Clones write to the same one.
#[derive(Clone, Debug, Default)]
pub(super) struct Reply(Rc<RefCell<ReplyText>>);

/// The parts of an answer.
#[derive(Debug, Default)]
pub(super) struct ReplyText {
    pub(super) output: Vec<u8>,
    pub(super) errors: Vec<u8>,
    /// Whether some of the output did not fit.
    pub(super) is_cut: bool,
}

impl Reply {
    /// Adds whole lines of output, as many as fit.
    ///
    /// # Errors
    /// Fails with `BrokenPipe` if no more fits, so that the command stops.
    pub(super) fn add(&self, text: &[u8]) -> io::Result<()> {
        let mut reply = self.0.borrow_mut();
        let room = MOST - reply.output.len();
        if text.len() <= room && !reply.is_cut {
            reply.output.extend_from_slice(text);
            return Ok(());
        }
        let fits = text.get(..room).unwrap_or_default();
        let lines = fits.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        if !reply.is_cut {
            reply.output.extend_from_slice(text.get(..lines).unwrap_or_default());
        }
        reply.is_cut = true;
        Err(io::ErrorKind::BrokenPipe.into())
    }

    /// Adds an error.
    pub(super) fn add_error(&self, text: &[u8]) {
        let mut reply = self.0.borrow_mut();
        let room = MOST - reply.errors.len();
        reply.errors.extend_from_slice(text.get(..room).unwrap_or(text));
        reply.is_cut |= text.len() > room;
    }

    /// Returns the answer, and empties it.
    pub(super) fn take(&self) -> ReplyText {
        self.0.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_cut_at_a_line() {
        let reply = Reply::default();
        reply.add(&[b'a'; MOST - 8]).expect("it fits");
        reply.add(b"bc\nde\nfgh\n").expect_err("it does not");
        reply.add(b"\n").expect_err("nothing comes after the cut");
        reply.add_error(b"error");
        let text = reply.take();
        assert!(text.output.ends_with(b"abc\nde\n") && text.is_cut);
        assert_eq!(text.errors, b"error");
        assert!(reply.take().output.is_empty());
        reply.add_error(&[b'a'; MOST + 1]);
        reply.add_error(b"b");
        let text = reply.take();
        assert!(text.errors == [b'a'; MOST] && text.is_cut);
    }
}
