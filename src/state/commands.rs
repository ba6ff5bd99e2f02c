//! Commands that the user has defined: `define`, `document`, `alias`.

use crate::kernel::Name;
use crate::lang::script::Block;
use std::rc::Rc;

/// A command that the user has defined.
#[derive(Clone, Debug, Default)]
pub struct UserCommand {
    /// Its lines, if it comes from `define`.
    pub body: Rc<Block>,
    /// The command file that defines it; `None` at the prompt.
    pub file: Option<Name>,
    /// The text that it stands for, if it comes from `alias`.
    pub alias: Option<String>,
    /// Its help text, from `document`.
    pub document: Option<String>,
}
