//! The form of output, by the settings and the terminal: text, JSON, or a picture in a file whose name ends in `.svg`;
//! and the log.

use super::base::Session;
use super::outcome::words;
use super::shell::{LogWriter, OpenLog, ShellPermit};
use crate::command::{self, expand_home};
use crate::eval;
use crate::lang::{ColorChoice, Output, PagerChoice, ParsedCommand, ScreenSize, Spanned};
use crate::render::{self, Background, Renderer, Svg, Theme};
use crate::report::{ErrorCode, ErrorReport};
use std::io::{self, IsTerminal};
use std::rc::Rc;

impl Session {
    /// Returns the colours of standard output.
    pub fn theme(&self) -> Theme {
        self.theme_of(io::stdout().is_terminal())
    }

    /// Returns whether output is JSON.
    pub fn is_json(&self) -> bool {
        self.state().settings.json
    }

    /// Returns how many lines of input are kept.
    pub fn history_size(&self) -> usize {
        count(self.state().settings.history_size)
    }

    pub(super) fn theme_of(&self, is_terminal: bool) -> Theme {
        let settings = &self.state().settings;
        let background = match settings.style.background(variable("COLORFGBG").as_deref()) {
            Background::Any => self.background.unwrap_or(Background::Any),
            known => known,
        };
        Theme::new(is_coloured(settings.color, is_terminal).then_some(background))
    }

    /// Returns whether colours depend on the terminal's background, and it is unknown.
    pub fn wants_background(&self) -> bool {
        self.theme() == Theme::new(Some(Background::Any))
    }

    /// Records the background that the terminal reports.
    pub fn set_background(&mut self, background: Option<Background>) {
        self.background = background;
    }

    /// Returns the renderer for standard output, or for a pipe or file, which get no colours.
    pub(super) fn renderer(&self, is_screen: bool) -> Box<dyn Renderer> {
        if self.reply.is_some() && !self.is_json() {
            return Box::new(render::Text::new(Theme::PLAIN, None).with_remarks_once(Rc::clone(&self.remarks)));
        }
        if let Some(reply) = self.text_reply {
            let background = self.state().settings.style.background(None);
            let theme = Theme::new(reply.is_coloured.then_some(background));
            return if is_screen {
                Box::new(render::TextInJson {
                    text: render::Text::new(theme, reply.width),
                    has_error_records: reply.has_error_records,
                })
            } else {
                Box::new(render::Text::new(Theme::PLAIN, reply.width))
            };
        }
        if self.is_json() {
            let captured = self.state().target().and_then(|target| target.process.capture_times());
            if let Some([captured, _]) = captured {
                return Box::new(render::JsonOfCapture { captured });
            }
            return Box::new(render::Json);
        }
        let is_terminal = is_screen && io::stdout().is_terminal();
        let theme = if is_screen { self.theme_of(is_terminal) } else { Theme::PLAIN };
        self.text(theme, is_terminal, is_screen)
    }

    /// Returns the renderer for standard error.
    pub(super) fn error_renderer(&self) -> Box<dyn Renderer> {
        let is_terminal = io::stderr().is_terminal();
        self.text(self.theme_of(is_terminal), is_terminal, true)
    }

    /// Makes a text renderer for the width and the characters of the terminal, or for the width of the setting. If all
    /// answers of the session have the same destination, a remark is printed once in a session, otherwise once in each
    /// answer.
    fn text(&self, theme: Theme, is_terminal: bool, is_shared: bool) -> Box<dyn Renderer> {
        let is_set = self.state().settings.width != ScreenSize::Auto;
        let mut text = render::Text::new(theme, if is_set || is_terminal { self.width() } else { None });
        let can_go_up = is_terminal && !matches!(variable("TERM").as_deref(), None | Some("" | "dumb"));
        if can_go_up && let Some(height) = self.height().or_else(|| Some(screen_size()?.0)) {
            text = text.in_place(height);
        }
        text = text.continuing(Rc::clone(&self.text_column));
        // Output with the same destination is read together.
        text = text.with_remarks_once(if is_shared { Rc::clone(&self.remarks) } else { Rc::default() });
        if is_terminal && !shows_unicode() { Box::new(render::Ascii(text)) } else { Box::new(text) }
    }

    /// Returns rows and columns of the screen, if long output stops at each screen.
    pub(super) fn pager_size(&self) -> Option<(usize, usize)> {
        let is_paging = self.options.is_interactive && !self.is_json() && self.state().settings.pagination;
        if !is_paging || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return None;
        }
        let screen = screen_size();
        let rows = self.height()?;
        // The terminal wraps at its width, not at that of the setting. If it does not report one, it is assumed not to
        // wrap.
        let columns = screen.map(|(_, columns)| columns).or(self.width());
        Some((rows, columns.unwrap_or(usize::MAX)))
    }

    /// Returns the program that shows long output, if the user has one.
    pub(super) fn pager_program(&self) -> Option<(String, ShellPermit)> {
        let permit = self.options.shell_permit().ok()?;
        let named = variable("PAGER").filter(|program| !program.trim().is_empty());
        let program = match self.state().settings.pager {
            PagerChoice::Ask => None,
            PagerChoice::Auto => named,
            PagerChoice::Program => named.or(Some("less".to_owned())),
        };
        Some((program?, permit))
    }

    /// Returns the rows of the screen, from the setting or the terminal.
    fn height(&self) -> Option<usize> {
        sized(self.state().settings.height, || screen_size().map(|(rows, _)| rows))
    }

    /// Returns the columns of a line, from the setting or the terminal.
    pub fn width(&self) -> Option<usize> {
        sized(self.state().settings.width, || screen_size().map(|(_, columns)| columns))
    }
}

impl Session {
    /// Opens or closes the log, by the current settings.
    pub(super) fn apply_logging(&mut self) -> Result<(), String> {
        let is_wanted = self.state.settings.logging;
        match (&self.log, is_wanted) {
            (None, true) => {
                let path = self.state.log_file.clone();
                let overwrite = self.state.settings.logging_overwrite;
                let opened = self.options.shell_permit().map_err(str::to_owned).and_then(|permit| {
                    let opened = OpenLog::open(&path, overwrite, permit);
                    opened.map_err(|why| format!("{path} cannot be written: {why}"))
                });
                match opened {
                    Ok(log) => {
                        let how =
                            if self.state.settings.logging_redirect { "is written to" } else { "is also written to" };
                        self.note(format!("output {how} {path}"));
                        self.log = Some(log);
                    }
                    Err(message) => {
                        self.state.settings.logging = false;
                        return Err(message);
                    }
                }
            }
            (Some(OpenLog { path, .. }), false) => {
                let message = format!("output is no longer written to {path}");
                self.log = None;
                self.note(message);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the log's writer for the records of one command, if there is a log.
    pub(super) fn log_writer(&self) -> Option<LogWriter> {
        let log = self.log.as_ref()?;
        let renderer: Box<dyn Renderer> =
            if self.is_json() { Box::new(render::Json) } else { Box::new(render::Text::new(Theme::PLAIN, None)) };
        Some(log.writer(renderer, self.state.settings.logging_redirect))
    }

    /// Ends a log that can no longer be written, with a note.
    pub(super) fn end_failed_log(&mut self, error: io::Error) {
        let Some(OpenLog { path, .. }) = self.log.take() else {
            return;
        };
        self.state.settings.logging = false;
        let message = format!("{path} cannot be written: {}; logging is off", words(error));
        self.print_error(ErrorReport::of(message).with_code(ErrorCode::Io));
    }
}

fn count(setting: u64) -> usize {
    usize::try_from(setting).unwrap_or(usize::MAX)
}

/// Returns rows and columns of the terminal on standard output or standard error, if it reports them.
fn screen_size() -> Option<(usize, usize)> {
    let size =
        rustix::termios::tcgetwinsize(io::stdout()).or_else(|_| rustix::termios::tcgetwinsize(io::stderr())).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then(|| (size.ws_row.into(), size.ws_col.into()))
}

/// Returns the columns of the terminal on standard output, if it is one and reports them.
pub fn terminal_width() -> Option<usize> {
    let screen = if io::stdout().is_terminal() { screen_size() } else { None };
    screen.map(|(_, columns)| columns)
}

/// Returns whether a stream gets colours, by the rules for all output of pmdb.
pub fn is_coloured(choice: ColorChoice, is_terminal: bool) -> bool {
    let names = ["NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "TERM"];
    let [no_color, force, clicolor, term] = names.map(variable);
    choice.decide(render::ColorContext {
        is_terminal,
        no_color: no_color.as_deref(),
        force: force.as_deref(),
        clicolor: clicolor.as_deref(),
        term: term.as_deref(),
    })
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns whether the locale uses UTF-8: the first of these variables that is not empty decides, as in setlocale(3).
fn shows_unicode() -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let mut set = names.into_iter().filter_map(variable);
    let locale = set.find(|locale| !locale.is_empty()).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// Returns the path of the output, if it is that of a picture.
fn svg(output: &Output) -> Option<(&Spanned<String>, bool)> {
    let Output::File { path, append } = output else {
        return None;
    };
    extension(&path.node).is_some_and(|extension| extension == "svg").then_some((path, *append))
}

/// Returns the part after the last dot of a path, in lower case.
fn extension(path: &str) -> Option<String> {
    expand_home(path).extension().map(|extension| extension.to_string_lossy().to_lowercase())
}

/// Fails for a name of a picture to which text would be written.
fn other_format(output: &Output) -> eval::Result<()> {
    const FORMATS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "pdf"];
    let Output::File { path, .. } = output else {
        return Ok(());
    };
    match extension(&path.node).filter(|extension| FORMATS.contains(&extension.as_str())) {
        Some(format) => {
            let message = format!("`.{format}` is a picture in a format that pmdb does not write");
            Err(eval::Error::new(path.at, message).hint("write `map > ./FILE.svg`"))
        }
        None => Ok(()),
    }
}

/// Fails for one picture with the output of several commands.
pub(super) fn refuse_several(output: &Output) -> eval::Result<()> {
    let Some((path, _)) = svg(output) else {
        return Ok(());
    };
    let message = "an SVG file holds the picture of one command; here several commands write";
    let hint = "write `> FILE.svg` after the command that draws";
    Err(eval::Error::new(path.at, message).hint(hint))
}

impl Session {
    /// Returns the renderer of the picture, if the command writes one.
    pub(super) fn picture(
        &self,
        text: &str,
        command: &Spanned<Rc<dyn ParsedCommand>>,
        output: &Output,
    ) -> eval::Result<Option<Box<dyn Renderer>>> {
        let Some((path, append)) = svg(output) else {
            return other_format(output).map(|()| None);
        };
        if !command::nature(&*command.node).draws {
            let message = "this command draws no picture, so it cannot write an SVG file";
            let hint = "`map … > FILE.svg` draws; for text, choose a name that does not end in .svg";
            return Err(eval::Error::new(path.at, message).hint(hint));
        }
        if append {
            let message = "an SVG file holds one picture, so >> cannot add to it";
            return Err(eval::Error::new(path.at, message).hint("write `>` instead of `>>`"));
        }
        let at = command.at;
        let line = text.get(at.start..at.end).unwrap_or_default();
        let target = self.state.target().map(|target| target.process.identity());
        let title = match target {
            Some(identity) => format!("{} ({}): {line}", identity.name, identity.pid),
            None => line.to_owned(),
        };
        let columns = sized(self.state().settings.width, || None);
        Ok(Some(Box::new(Svg::new(title, columns))))
    }
}

/// Returns a size from the setting, or from the terminal; `None` for no limit.
fn sized(setting: ScreenSize, reported: impl FnOnce() -> Option<usize>) -> Option<usize> {
    match setting {
        ScreenSize::Auto => reported(),
        ScreenSize::Unlimited => None,
        ScreenSize::Of(size) => Some(count(size)),
    }
}
