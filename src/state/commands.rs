//! Commands that the user made: `define`, `document`, `alias`.

use crate::kernel::Name;
use crate::lang::script::Block;
use std::rc::Rc;

/// A command that the user made.
#[derive(Clone, Debug, Default)]
pub struct UserCommand {
    /// What it does, if `define` made it.
    pub body: Rc<Block>,
    /// The command file that it stands in; `None` at the prompt.
    pub file: Option<Name>,
    /// What stands for it, if `alias` made it.
    pub alias: Option<String>,
    /// What `document` says of it.
    pub document: Option<String>,
}
