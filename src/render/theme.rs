//! Colours: one role a meaning, decided once. Call sites name a role, never a colour.

use crate::lang::ColorChoice;
use owo_colors::{OwoColorize, Style};
use std::fmt::Display;

/// What a piece of text is. Colour only repeats what the words say already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A virtual address.
    Address,
    /// A physical address.
    Physical,
    /// A page frame number.
    Frame,
    /// A raw word of the kernel, and its bits.
    Raw,
    /// The name of a flag.
    Flag,
    /// A state that is as one hopes: present.
    Good,
    /// A state or answer to look at twice: swapped, hidden.
    Warn,
    /// A state in which an access fails: guard, poisoned.
    Bad,
    /// A symbol.
    Symbol,
    /// A size or a count.
    Size,
    /// A name of a region, file or process.
    Name,
    /// What failed.
    Error,
    /// A remark.
    Note,
    /// What can be overlooked.
    Dim,
    /// Titles of columns and groups.
    Heading,
    /// The label of a line in a block.
    Label,
    /// The prompt.
    Prompt,
    /// A command, as typed or in help.
    Command,
    /// A word of the language other than a command.
    Keyword,
    /// Text in quotes.
    Quoted,
    /// Everything else.
    Plain,
}

/// What the decision about colours depends on besides the choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Surroundings<'a> {
    /// Whether the stream is a terminal.
    pub is_terminal: bool,
    /// The variable NO_COLOR; empty counts as not set (no-color.org).
    pub no_color: Option<&'a str>,
    /// The variable TERM.
    pub term: Option<&'a str>,
}

impl ColorChoice {
    /// Whether to colour. An explicit choice beats the surroundings.
    pub fn decide(self, surroundings: Surroundings<'_>) -> bool {
        match self {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                surroundings.is_terminal
                    && surroundings.no_color.is_none_or(str::is_empty)
                    && !matches!(surroundings.term, None | Some("" | "dumb"))
            }
        }
    }
}

/// The colours of all roles, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Theme {
    coloured: bool,
}

impl Theme {
    /// No colours.
    pub const PLAIN: Theme = Theme { coloured: false };

    /// With or without colours.
    pub const fn new(coloured: bool) -> Self {
        Theme { coloured }
    }

    /// Whether it colours at all.
    pub const fn is_coloured(self) -> bool {
        self.coloured
    }

    /// `text` in the colour of its role. The text is not escaped here.
    pub fn paint(self, role: Role, text: impl Display) -> String {
        let style = self.style(role);
        if style.is_plain() {
            text.to_string()
        } else {
            text.style(style).to_string()
        }
    }

    // The sixteen colours of the terminal's own palette, so that they suit light and dark backgrounds.
    fn style(self, role: Role) -> Style {
        let style = Style::new();
        if !self.coloured {
            return style;
        }
        match role {
            Role::Address => style.cyan(),
            Role::Physical => style.magenta(),
            Role::Frame => style.magenta().bold(),
            Role::Flag => style.green(),
            Role::Good => style.green(),
            Role::Warn => style.yellow(),
            Role::Bad => style.red(),
            Role::Symbol => style.yellow().bold(),
            Role::Error => style.red().bold(),
            Role::Note => style.blue(),
            Role::Dim => style.dimmed(),
            Role::Heading => style.bold().underline(),
            Role::Label => style.dimmed(),
            Role::Prompt => style.bold(),
            Role::Command => style.blue().bold(),
            Role::Keyword => style.blue(),
            Role::Quoted => style.green(),
            Role::Raw | Role::Size | Role::Name | Role::Plain => style,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMINAL: Surroundings<'static> = Surroundings {
        is_terminal: true,
        no_color: None,
        term: Some("xterm-256color"),
    };

    #[test]
    fn auto_colours_only_a_terminal_that_can_and_may() {
        let auto = |surroundings| ColorChoice::Auto.decide(surroundings);
        assert!(auto(TERMINAL));
        assert!(auto(Surroundings {
            no_color: Some(""),
            ..TERMINAL
        }));
        for no in [
            Surroundings {
                is_terminal: false,
                ..TERMINAL
            },
            Surroundings {
                no_color: Some("1"),
                ..TERMINAL
            },
            Surroundings {
                term: Some("dumb"),
                ..TERMINAL
            },
            Surroundings {
                term: None,
                ..TERMINAL
            },
        ] {
            assert!(!auto(no), "{no:?}");
        }
    }

    #[test]
    fn a_choice_beats_the_surroundings() {
        let bare = Surroundings {
            is_terminal: false,
            no_color: Some("1"),
            term: None,
        };
        assert!(ColorChoice::Always.decide(bare));
        assert!(!ColorChoice::Never.decide(TERMINAL));
    }

    #[test]
    fn a_plain_theme_adds_nothing() {
        assert_eq!(Theme::PLAIN.paint(Role::Error, "no"), "no");
        let painted = Theme::new(true).paint(Role::Error, "no");
        assert!(painted.starts_with('\x1b') && painted.ends_with('m') && painted.contains("no"));
    }
}
