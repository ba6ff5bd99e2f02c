//! The prompt: the line editor with its keys, its help while typing, and the history file.

mod assistant;
mod offer_list;
mod terminal;

use crate::access::words;
use crate::command::LANGUAGE;
use crate::lang::script::BlockLines;
use crate::lang::{self, Editing};
use crate::own::ending::BeforeEnd;
use crate::own::own_file::{self, Links};
use crate::report::{ErrorCode, ErrorReport};
use crate::session::{LineOutcome, PROMPT, Session};
use assistant::{Assistant, SharedSession};
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Behavior, ColorMode, CompletionType, Config, EditMode, Editor, Helper};
use std::cell::RefCell;
use std::fs::{DirBuilder, File};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::rc::Rc;

/// Reads lines at the prompt and runs them, until `quit` or Ctrl-D.
pub fn run(session: &mut Session) -> LineOutcome {
    let shared = Rc::new(RefCell::new(session));
    let _discard = terminal::DiscardAtEnd;
    let outcome = Prompt::open(&shared).and_then(|mut prompt| prompt.run());
    outcome.unwrap_or_else(|error| {
        let message = format!("cannot read the terminal: {}", words(error));
        shared.borrow_mut().fail(ErrorReport::of(message).with_code(ErrorCode::Io))
    })
}

struct Prompt<'a> {
    session: SharedSession<'a>,
    editor: Editor<Assistant<'a>, FileHistory>,
    history: HistoryFile,
    /// The lines of an open block, or a line that continues in the next.
    block: BlockLines,
    /// What was typed while the terminal was asked for its background.
    typed_ahead: String,
    /// Gives the terminal back if a signal ends the program.
    _at_end: Option<BeforeEnd>,
}

impl<'a> Prompt<'a> {
    fn open(session: &SharedSession<'a>) -> Result<Self, ReadlineError> {
        let config = Config::builder()
            .completion_type(CompletionType::List)
            // The theme decides about colours; it knows NO_COLOR.
            .color_mode(ColorMode::Forced)
            // If standard output goes to another program, the prompt still belongs on the terminal.
            .behavior(if io::stdout().is_terminal() { Behavior::Stdio } else { Behavior::PreferTerm })
            .max_history_size(session.borrow().history_size())?
            .edit_mode(edit_mode(session.borrow().state().settings.editing))
            .build();
        let at_end = terminal::restore_terminal_at_signals()?;
        let typed_ahead = if session.borrow().wants_background() {
            let terminal::TerminalAnswer { background, typed } = terminal::ask_background();
            session.borrow_mut().set_background(background);
            text_of_keys(&typed)
        } else {
            String::new()
        };
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(Assistant::new(session)));
        let history = HistoryFile::load(&mut session.borrow_mut(), &mut editor);
        Ok(Prompt {
            session: Rc::clone(session),
            editor,
            history,
            block: BlockLines::new(LANGUAGE),
            typed_ahead,
            _at_end: at_end,
        })
    }

    fn run(&mut self) -> Result<LineOutcome, ReadlineError> {
        loop {
            self.session.borrow_mut().finish_answer_row();
            self.session.borrow_mut().report_target_change();
            if self.block.is_empty() {
                self.session.borrow_mut().show_displays();
            }
            let prompt = if self.block.is_empty() { PROMPT } else { BLOCK_PROMPT };
            match self.read(prompt) {
                Ok(text) => {
                    if let Some(ending) = self.run_lines(&text)? {
                        return Ok(ending);
                    }
                }
                Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => {
                    self.editor.helper().into_iter().for_each(Assistant::erase_hint);
                    self.block.take();
                }
                // Ctrl-D closes an open block, as in gdb; otherwise it leaves.
                Err(ReadlineError::Eof) if !self.block.is_empty() => {
                    self.session.borrow_mut().finish_prompt_row("end");
                    if let Some(ending) = self.run_lines("end")? {
                        return Ok(ending);
                    }
                }
                Err(ReadlineError::Eof) => {
                    self.session.borrow_mut().finish_prompt_row("quit");
                    return Ok(LineOutcome::Done);
                }
                Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => self.refuse_input(),
                Err(error) => return Err(error),
            }
        }
    }

    /// The next line: first the one that was typed to the pager, and those that were typed before the editor was there.
    fn read(&mut self, prompt: &str) -> Result<String, ReadlineError> {
        if let Some(line) = self.session.borrow_mut().take_line_of_pager() {
            writeln!(io::stdout(), "{prompt}{line}")?;
            return Ok(line);
        }
        let typed = std::mem::take(&mut self.typed_ahead);
        match typed.split_once('\n') {
            Some((line, rest)) => {
                rest.clone_into(&mut self.typed_ahead);
                writeln!(io::stdout(), "{prompt}{line}")?;
                Ok(line.to_owned())
            }
            None if typed.is_empty() => self.editor.readline(prompt),
            None => self.editor.readline_with_initial(prompt, (&typed, "")),
        }
    }

    /// Reports input that is no text. The editor has lost the line and whatever it had read after it, so what follows
    /// could begin in the middle of another line.
    fn refuse_input(&mut self) {
        terminal::discard_input();
        self.block.take();
        let message = "the input is not UTF-8 text: this line and all input after it were discarded";
        self.session.borrow_mut().fail(ErrorReport::of(message).with_code(ErrorCode::Syntax));
    }

    /// Runs what was typed or pasted, which may be several lines. Returns an outcome to leave with.
    fn run_lines(&mut self, text: &str) -> Result<Option<LineOutcome>, ReadlineError> {
        if self.block.is_empty() && text.trim().is_empty() {
            return Ok(outcome_at_end(self.session.borrow_mut().run_typed("")));
        }
        for line in lang::joined_rows(text).iter().filter(|line| !line.trim().is_empty()) {
            if let Some(begun) = line.strip_suffix('\\') {
                self.block.begin(begun);
                continue;
            }
            // A block is one entry of the history, to be edited whole.
            let Some(entry) = self.block.push(line) else {
                continue;
            };
            self.history.add(&mut self.session.borrow_mut(), &mut self.editor, &entry)?;
            let outcome = self.session.borrow_mut().run_typed(&entry);
            if let Some(ending) = outcome_at_end(outcome) {
                return Ok(Some(ending));
            }
            let size = self.session.borrow().history_size();
            self.editor.set_max_history_size(size)?;
            let editing = self.session.borrow().state().settings.editing;
            self.editor.set_edit_mode(edit_mode(editing));
        }
        Ok(None)
    }
}

/// Typed bytes as text for the editor: without keys that are no characters.
fn text_of_keys(typed: &[u8]) -> String {
    let text = std::str::from_utf8(typed).unwrap_or_default().replace('\r', "\n");
    text.chars().filter(|&c| c == '\n' || !c.is_control()).collect()
}

fn outcome_at_end(outcome: LineOutcome) -> Option<LineOutcome> {
    matches!(outcome, LineOutcome::Quit(_) | LineOutcome::Closed).then_some(outcome)
}

/// What the prompt shows while a block waits for its `end`.
pub(super) const BLOCK_PROMPT: &str = ">";

/// Where typed lines are kept.
pub(super) struct HistoryFile {
    /// `None` once a failure was reported: then lines last only as long as the session.
    file: Option<PathBuf>,
}

impl HistoryFile {
    /// Reads the lines of earlier sessions. A failure is reported once, and is never fatal.
    pub(super) fn load<H: Helper>(session: &mut Session, editor: &mut Editor<H, FileHistory>) -> Self {
        let mut history = HistoryFile { file: session.history_file() };
        let Some(path) = &history.file else {
            return history;
        };
        let found = make_directory(path).map_err(words).and_then(|()| own_file::open(path, Links::Refused));
        let loaded = match found {
            Ok(Some(_)) => editor.load_history(path).map_err(words),
            Ok(None) => Ok(()),
            Err(why) => Err(why),
        };
        if let Err(why) = loaded {
            history.stop_saving(session, &format!("cannot use {}: {why}", path.display()));
        }
        let size = session.history_size();
        for line in editor.history() {
            session.state_mut().lines.push(line.as_str(), size);
        }
        history
    }

    /// Adds a line to the history and at once to the file, because a session may end in any way.
    pub(super) fn add<H: Helper>(
        &mut self,
        session: &mut Session,
        editor: &mut Editor<H, FileHistory>,
        line: &str,
    ) -> Result<(), ReadlineError> {
        let size = session.history_size();
        session.state_mut().lines.push(line, size);
        editor.add_history_entry(line)?;
        if let Some(path) = &self.file
            && let Err(error) = editor.append_history(path)
        {
            let why = format!("cannot write {}: {}", path.display(), words(error));
            self.stop_saving(session, &why);
        }
        Ok(())
    }

    /// Stops keeping lines, and says why.
    fn stop_saving(&mut self, session: &mut Session, why: &str) {
        self.file = None;
        session.note(format!("the history is not kept: {why}"));
    }
}

fn make_directory(file: &std::path::Path) -> io::Result<()> {
    match file.parent() {
        Some(folder) => DirBuilder::new().recursive(true).mode(0o700).create(folder),
        None => Ok(()),
    }
}

/// The mode of the setting, or that of readline.
pub(super) fn edit_mode(editing: Editing) -> EditMode {
    match editing {
        Editing::Emacs => EditMode::Emacs,
        Editing::Vi => EditMode::Vi,
        Editing::Auto => {
            let text = inputrc().and_then(|path| {
                let (file, _) = own_file::regular(&path, Links::Followed).ok()??;
                io::read_to_string(File::from(file)).ok()
            });
            text.map_or(EditMode::Emacs, |text| mode_in(&text))
        }
    }
}

/// The file in which readline keeps its settings.
fn inputrc() -> Option<PathBuf> {
    let named = std::env::var_os("INPUTRC").filter(|path| !path.is_empty());
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".inputrc"));
    named.map(PathBuf::from).or_else(home)
}

/// The last `set editing-mode` in it.
fn mode_in(text: &str) -> EditMode {
    let words = |line: &str| -> Option<EditMode> {
        let mut words = line.split_whitespace();
        let is_setting = words.next() == Some("set") && words.next() == Some("editing-mode");
        match words.next().filter(|_| is_setting)? {
            "vi" => Some(EditMode::Vi),
            _ => Some(EditMode::Emacs),
        }
    };
    text.lines().rev().find_map(words).unwrap_or(EditMode::Emacs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_what_the_file_says_last() {
        assert!(mode_in("") == EditMode::Emacs);
        assert!(mode_in("# set editing-mode vi\nset bell-style none\n") == EditMode::Emacs);
        assert!(mode_in("set editing-mode emacs\n  set editing-mode vi\n") == EditMode::Vi);
    }
}
