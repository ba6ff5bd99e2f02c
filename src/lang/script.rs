//! Command files as programs: builds blocks from lines.
//!
//! Lines arrive one by one, from a file, a pipe or the prompt. So a file can be read whole before it runs, and a block
//! runs as soon as its `end` has arrived. A line outside of blocks is not parsed here: its errors are reported when it
//! runs.

use std::rc::Rc;

use super::error::{Span, Spanned, SyntaxError};
use super::expression::Expression;
use super::parser::Language;
use super::syntax::{BlockLine, Control, Opening, ParsedLine, Resolved, Rows};

/// The deepest nesting of blocks.
pub const DEEPEST: usize = 64;

/// A list of statements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block(pub Vec<ScriptStatement>);

/// A line, or a block with the line that opens it.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptStatement {
    /// The number of the line, from 1.
    pub line: usize,
    /// The text of the line.
    pub text: Rc<str>,
    /// The kind of statement.
    pub node: Node,
}

/// The kind of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A line that is parsed when it runs.
    Text,
    /// A line of a block, parsed once for all its runs.
    ParsedLine(Box<ParsedLine>),
    /// `if E … else … end`
    If {
        /// The condition.
        condition: Spanned<Expression>,
        /// The statements if the condition is true.
        then: Block,
        /// The statements if the condition is false.
        otherwise: Block,
    },
    /// `while E … end`
    While {
        /// The condition, evaluated before each iteration.
        condition: Spanned<Expression>,
        /// The statements of an iteration.
        body: Block,
    },
    /// `foreach $NAME in ROWS … end`
    Foreach {
        /// The name of the variable, without the `$`.
        variable: String,
        /// The values of the variable, one for each iteration.
        rows: Rows,
        /// The statements of an iteration.
        body: Block,
    },
    /// `define NAME … end`
    Define {
        /// The name of the command.
        name: Spanned<String>,
        /// The statements of the command.
        body: Rc<Block>,
    },
    /// `document NAME … end`
    Document {
        /// The name of the command.
        name: Spanned<String>,
        /// The text that `help` shows.
        text: String,
    },
    /// `loop_break`
    Break,
    /// `loop_continue`
    Continue,
}

impl Node {
    /// Returns the blocks in the statement.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        let (first, second) = match self {
            Node::If { then, otherwise, .. } => (Some(then), Some(otherwise)),
            Node::While { body, .. } | Node::Foreach { body, .. } => (Some(body), None),
            Node::Define { body, .. } => (Some(&**body), None),
            Node::Text | Node::ParsedLine(_) | Node::Document { .. } | Node::Break | Node::Continue => (None, None),
        };
        first.into_iter().chain(second)
    }
}

/// An error in a block: a line that is not allowed at its place, or a block that is not closed.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockFault {
    /// The number of the line.
    pub line: usize,
    /// The text of the line.
    pub text: Rc<str>,
    /// The error.
    pub error: SyntaxError,
}

/// Builds statements from lines.
pub struct Builder {
    language: Language,
    open: Vec<OpenBlock>,
    /// The last line whose first word is no command, but resembles one that opens a block.
    misspelt: Option<BlockFault>,
}

/// A block that is not closed yet.
#[derive(Debug)]
struct OpenBlock {
    line: usize,
    text: Rc<str>,
    /// The place of its first word.
    word: Span,
    opening: Opening,
    body: Vec<ScriptStatement>,
    /// The statements before `else`, if there was one.
    before_else: Option<Vec<ScriptStatement>>,
}

impl Opening {
    fn is_loop(&self) -> bool {
        matches!(self, Opening::While(_) | Opening::Foreach { .. })
    }
}

/// Returns the first word of a line and its place, if the line begins with a word.
pub fn first_word(line: &str) -> Option<(&str, Span)> {
    let start = line.len() - line.trim_start().len();
    let rest = line.get(start..)?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '@');
    let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    let word = rest.get(..end).filter(|word| !word.is_empty())?;
    Some((word, Span::new(start, start + end)))
}

/// Lines that arrive one by one, and run together if they form a block.
pub struct BlockLines {
    builder: Builder,
    text: String,
    /// The offset of the last line, if it continues on the next one.
    begun: Option<usize>,
}

impl BlockLines {
    /// Makes an empty list.
    pub fn new(language: Language) -> Self {
        BlockLines { builder: Builder::new(language), text: String::new(), begun: None }
    }

    /// Adds the beginning of a line.
    pub fn begin(&mut self, part: &str) {
        self.begun.get_or_insert(self.text.len());
        self.text.push_str(part);
    }

    /// Adds a line, or the end of one. Returns all lines, unless they leave a block open. Lines with a fault are
    /// returned too, because running them reports it.
    pub fn push(&mut self, line: &str) -> Option<String> {
        let start = self.begun.take().unwrap_or(self.text.len());
        self.text.push_str(line);
        let pushed = self.builder.push(1, self.text.get(start..).unwrap_or_default());
        if pushed.is_ok() && self.builder.is_open() {
            self.text.push('\n');
            return None;
        }
        Some(self.take())
    }

    /// Returns whether no lines are waiting for their block to end.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the length of the lines in bytes.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Returns the lines, and removes them.
    pub fn take(&mut self) -> String {
        let new = BlockLines::new(self.builder.language);
        std::mem::replace(self, new).text
    }
}

impl Builder {
    /// Makes a builder of lines in this language.
    pub fn new(language: Language) -> Self {
        Builder { language, open: Vec::new(), misspelt: None }
    }

    /// Returns whether a block is open.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Adds the next line. Returns a statement once it is complete and in no block.
    ///
    /// # Errors
    /// Fails for a line that is not allowed here: an `end` too many, an `else` without an `if`, an invalid beginning of
    /// a block.
    pub fn push(&mut self, line: usize, text: &str) -> Result<Option<ScriptStatement>, BlockFault> {
        let first = first_word(text);
        let last = self.open.last().map(|open| &open.opening);
        if matches!(last, Some(Opening::Document(_))) && text.trim() != "end" {
            return Ok(self.add(line, text.into(), Node::Text));
        }
        let control = first.and_then(|(word, at)| Some((self.language.block_line(word)?, at)));
        let Some((does, word)) = control else {
            let node = if self.is_open() {
                self.language.parse_line(text).map_or(Node::Text, |line| Node::ParsedLine(line.into()))
            } else {
                Node::Text
            };
            let misspelt = first.and_then(|first| misspelt(self.language, line, text, first));
            self.misspelt = misspelt.or(self.misspelt.take());
            return Ok(self.add(line, text.into(), node));
        };
        let text: Rc<str> = text.into();
        self.control(line, &text, word).map_err(|error| {
            let fault = BlockFault { line, text: text.clone(), error };
            // The error is reported at the line that should have opened a block.
            match self.misspelt.take().filter(|_| does != BlockLine::Opens) {
                Some(misspelt) => misspelt,
                None => fault,
            }
        })
    }

    /// Ends the input.
    ///
    /// # Errors
    /// Fails at the line that opens the innermost block that is still open.
    pub fn finish(mut self) -> Result<(), BlockFault> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let word = open.text.get(open.word.start..open.word.end);
        let message = format!("this `{}` has no `end`", word.unwrap_or_default());
        Err(BlockFault { line: open.line, error: fault(open.word, message, "`end`"), text: open.text })
    }

    fn add(&mut self, line: usize, text: Rc<str>, node: Node) -> Option<ScriptStatement> {
        let statement = ScriptStatement { line, text, node };
        match self.open.last_mut() {
            Some(open) => {
                open.body.push(statement);
                None
            }
            None => Some(statement),
        }
    }

    fn control(&mut self, line: usize, text: &Rc<str>, word: Span) -> Result<Option<ScriptStatement>, SyntaxError> {
        let ParsedLine::Control(control) = self.language.parse_line(text)? else {
            return Ok(self.add(line, text.clone(), Node::Text));
        };
        let opening = match *control {
            Control::Open(Opening::Define(name) | Opening::Document(name)) if self.is_open() => {
                let message = "`define` and `document` are not allowed inside a block".to_owned();
                return Err(fault(name.at, message, "`end` of the block around it"));
            }
            Control::Open(opening) => opening,
            Control::Else => return self.begin_else(word).map(|()| None),
            Control::End => return self.end(word),
            Control::Break => return self.jump(line, text, word, Node::Break),
            Control::Continue => return self.jump(line, text, word, Node::Continue),
        };
        if self.open.len() >= DEEPEST {
            let message = format!("blocks are nested more than {DEEPEST} levels deep");
            return Err(fault(word, message, "`end`"));
        }
        self.open.push(OpenBlock { line, text: text.clone(), word, opening, body: Vec::new(), before_else: None });
        Ok(None)
    }

    fn begin_else(&mut self, word: Span) -> Result<(), SyntaxError> {
        match self.open.last_mut() {
            Some(OpenBlock { opening: Opening::If(_), body, before_else: before_else @ None, .. }) => {
                *before_else = Some(std::mem::take(body));
                Ok(())
            }
            _ => Err(fault(word, "this `else` belongs to no `if`".into(), "a command")),
        }
    }

    fn end(&mut self, word: Span) -> Result<Option<ScriptStatement>, SyntaxError> {
        let Some(open) = self.open.pop() else {
            let message = "there is no block for this `end`".into();
            return Err(fault(word, message, "a command"));
        };
        let body = Block(open.body);
        let node = match (open.opening, open.before_else) {
            (Opening::If(condition), None) => Node::If { condition, then: body, otherwise: Block::default() },
            (Opening::If(condition), Some(then)) => Node::If { condition, then: Block(then), otherwise: body },
            (Opening::While(condition), _) => Node::While { condition, body },
            (Opening::Foreach { variable, rows }, _) => Node::Foreach { variable: variable.node, rows, body },
            (Opening::Define(name), _) => Node::Define { name, body: Rc::new(body) },
            (Opening::Document(name), _) => {
                let lines = body.0.iter().flat_map(|line| [line.text.trim(), "\n"]);
                let text = lines.collect();
                Node::Document { name, text }
            }
        };
        Ok(self.add(open.line, open.text, node))
    }

    fn jump(
        &mut self,
        line: usize,
        text: &Rc<str>,
        word: Span,
        node: Node,
    ) -> Result<Option<ScriptStatement>, SyntaxError> {
        if self.open.iter().any(|open| open.opening.is_loop()) {
            Ok(self.add(line, text.clone(), node))
        } else {
            Err(fault(word, "there is no loop around it".into(), "`while` or `foreach` above it"))
        }
    }
}

/// Returns the fault of a line that was probably meant to open a block.
fn misspelt(language: Language, line: usize, text: &str, (word, at): (&str, Span)) -> Option<BlockFault> {
    if language.resolve_first(word) != Resolved::Unknown {
        return None;
    }
    // Words that are too short for `near`.
    let meant = match word {
        "If" | "IF" | "iff" => "if",
        "for" | "each" => "foreach",
        _ => super::near(word, language.opening_words()).first()?,
    };
    Some(BlockFault {
        line,
        text: text.into(),
        error: SyntaxError {
            hint: Some(format!("did you mean `{meant}`?")),
            expected: Vec::new(),
            ..fault(at, format!("there is no command `{word}`"), "a command")
        },
    })
}

fn fault(at: Span, message: String, expected: &str) -> SyntaxError {
    SyntaxError { at, message, expected: vec![expected.to_owned()], hint: None, pasted: None }
}
