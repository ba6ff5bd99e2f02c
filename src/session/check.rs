//! Checks the blocks of a command file before its first line runs. The lines of a branch that is seldom executed, and
//! of a `define` that is seldom called, would otherwise fail only when they run.

use super::base::Session;
use super::job::resolve_beside;
use super::outcome::LineOutcome;
use super::script;
use crate::command::{Alias, LANGUAGE, SourceScript, expand_home};
use crate::kernel::Name;
use crate::lang::script::{Block, BlockFault, Node, ScriptStatement, first_word};
use crate::lang::{ParsedLine, Resolved};
use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::rc::Rc;

/// The most files that are read for the commands that they define.
const MOST_FILES: usize = 100;

/// The commands that a file may use, as far as they are known before it runs.
#[derive(Default)]
struct Definitions {
    names: HashSet<String>,
    read: HashSet<PathBuf>,
    /// The first sourced file that could not be read, which may define any command.
    unread: Option<String>,
}

impl Session {
    /// Reports the faults of lines in blocks: all with `--keep-going`, otherwise the first. In lines from a pipe an
    /// unknown command is no fault, because later lines may define it.
    pub(super) fn check_blocks(&mut self, statements: &[&ScriptStatement], name: &Name, is_pipe: bool) -> LineOutcome {
        let mut faults = Vec::new();
        for statement in statements {
            add_faults_of_blocks(statement, false, &mut faults);
        }
        if faults.is_empty() {
            return LineOutcome::Done;
        }
        let definitions = self.definitions(statements, name);
        let mut outcome = LineOutcome::Done;
        for fault in faults {
            let (word, _) = first_word(&fault.text).unwrap_or_default();
            let is_unknown = LANGUAGE.resolve_first(word) == Resolved::Unknown;
            match &definitions.unread {
                _ if definitions.names.contains(word) || is_unknown && is_pipe => {}
                Some(unread) if is_unknown => {
                    let line = fault.line;
                    self.note(format!("line {line} of {name} is not checked: {unread} may define `{word}`"));
                }
                _ => {
                    outcome = self.fail_with(name, fault);
                    if !self.options.keep_going {
                        break;
                    }
                }
            }
        }
        outcome
    }

    /// Returns the user's commands, and those that a file and the files that it sources define.
    fn definitions(&self, statements: &[&ScriptStatement], name: &Name) -> Definitions {
        let mut definitions = Definitions::default();
        for (word, command) in &self.state.commands {
            definitions.names.insert(word.clone());
            if let Some(alias) = &command.alias {
                self.add_line(alias, None, &mut definitions);
            }
            self.add_block(&command.body, command.file.as_ref(), &mut definitions);
        }
        for statement in statements {
            self.add_statement(statement, Some(name), &mut definitions);
        }
        definitions
    }

    fn add_block(&self, block: &Block, file: Option<&Name>, definitions: &mut Definitions) {
        for statement in &block.0 {
            self.add_statement(statement, file, definitions);
        }
    }

    fn add_statement(&self, statement: &ScriptStatement, file: Option<&Name>, definitions: &mut Definitions) {
        match &statement.node {
            Node::Text | Node::ParsedLine(_) => self.add_line(&statement.text, file, definitions),
            Node::Define { name, body } => {
                definitions.names.insert(name.node.clone());
                self.add_block(body, file, definitions);
            }
            node => node.blocks().for_each(|block| self.add_block(block, file, definitions)),
        }
    }

    /// Adds the command that `alias` defines, and those of the file that `source` names.
    fn add_line(&self, line: &str, file: Option<&Name>, definitions: &mut Definitions) {
        let first = first_word(line).map(|(word, _)| LANGUAGE.resolve_first(word));
        if !matches!(first, Some(Resolved::One("alias" | "source"))) {
            return;
        }
        let Ok(ParsedLine::Command { command, .. }) = LANGUAGE.parse_line(line) else {
            return;
        };
        if let Some(alias) = command.node.downcast_ref::<Alias>() {
            definitions.names.insert(alias.name.node.clone());
            self.add_line(&alias.text.node, file, definitions);
        } else if let Some(source) = command.node.downcast_ref::<SourceScript>()
            && !source.wants_help()
        {
            self.add_file(resolve_beside(file, expand_home(&source.path.node)), definitions);
        }
    }

    fn add_file(&self, path: PathBuf, definitions: &mut Definitions) {
        if definitions.read.len() >= MOST_FILES || !definitions.read.insert(path.clone()) {
            return;
        }
        let name = Name::new(path.as_os_str().as_bytes());
        match script::statements_of(&path, &name, &self.interrupts) {
            Some(statements) => {
                for statement in &statements {
                    self.add_statement(statement, Some(&name), definitions);
                }
            }
            None => {
                definitions.unread.get_or_insert_with(|| name.to_string());
            }
        }
    }
}

/// Adds the faults of the lines in the blocks of a statement. Lines outside of blocks report theirs when they run.
fn add_faults_of_blocks(statement: &ScriptStatement, is_in_foreach: bool, faults: &mut Vec<BlockFault>) {
    let is_in_foreach = is_in_foreach || matches!(statement.node, Node::Foreach { .. });
    for inner in statement.node.blocks().flat_map(|block| &block.0) {
        let error = match &inner.node {
            Node::Text => LANGUAGE.parse_line(&inner.text).err(),
            Node::ParsedLine(line) if is_in_foreach => super::block::fault_in_foreach(line),
            _ => None,
        };
        faults.extend(error.map(|error| BlockFault { line: inner.line, text: Rc::clone(&inner.text), error }));
        add_faults_of_blocks(inner, is_in_foreach, faults);
    }
}
