//! What the prompt and its assistant share.

use crate::session::Session;
use std::cell::RefCell;
use std::rc::Rc;

/// What the prompt shows.
pub(super) const PROMPT: &str = "(pmdb) ";

/// What the prompt shows while a block waits for its `end`.
pub(super) const BLOCK_PROMPT: &str = ">";

/// The session, shared by the prompt, which runs lines, and the assistant, which reads it while they are typed.
pub(super) type Shared<'a> = Rc<RefCell<&'a mut Session>>;
