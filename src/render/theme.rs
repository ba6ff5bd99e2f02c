//! Colours: one for each role, decided once. Call sites name a role, never a colour.

use crate::lang::{ColorChoice, StyleChoice};
use owo_colors::{OwoColorize, Style, XtermColors};
use std::fmt::Display;

/// The meaning of a piece of text. Colour only repeats what the words already say.
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
    /// A good state: present.
    Good,
    /// A state or answer that needs attention: swapped, hidden.
    Warn,
    /// A state in which an access fails: guard, poisoned.
    Bad,
    /// A symbol.
    Symbol,
    /// A size or a count.
    Size,
    /// A name of a region, file or process.
    Name,
    /// A failure.
    Error,
    /// A remark.
    Note,
    /// Less important text.
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

/// What decides about colours besides the choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ColorContext<'a> {
    /// Whether the stream is a terminal.
    pub is_terminal: bool,
    /// The variable NO_COLOR; empty counts as not set (no-color.org).
    pub no_color: Option<&'a str>,
    /// The variable CLICOLOR_FORCE; "0" and empty count as not set (bixense.com/clicolors).
    pub force: Option<&'a str>,
    /// The variable CLICOLOR: "0" says no.
    pub clicolor: Option<&'a str>,
    /// The variable TERM.
    pub term: Option<&'a str>,
}

impl ColorChoice {
    /// Whether to colour. An explicit choice beats the context.
    pub fn decide(self, context: ColorContext<'_>) -> bool {
        let is_set = |variable: Option<&str>| variable.is_some_and(|value| !value.is_empty());
        let ColorContext { no_color, force, clicolor, .. } = context;
        match self {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto if is_set(no_color) => false,
            ColorChoice::Auto if is_set(force) && force != Some("0") => true,
            ColorChoice::Auto => {
                context.is_terminal && clicolor != Some("0") && !matches!(context.term, None | Some("" | "dumb"))
            }
        }
    }
}

/// The background on which colours must be readable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Background {
    /// Unknown.
    Any,
    /// A dark one.
    Dark,
    /// A light one.
    Light,
}

impl StyleChoice {
    /// The background, chosen or reported by the terminal: `COLORFGBG` ends in the number of its colour.
    pub fn background(self, color_fg_bg: Option<&str>) -> Background {
        let told = color_fg_bg.and_then(|told| told.rsplit(';').next());
        match (self, told.and_then(|number| number.parse().ok())) {
            (StyleChoice::Dark, _) | (StyleChoice::Auto, Some(0u8..=6 | 8)) => Background::Dark,
            (StyleChoice::Light, _) | (StyleChoice::Auto, Some(7 | 15)) => Background::Light,
            (StyleChoice::Auto, _) => Background::Any,
        }
    }
}

/// The colours of all roles, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Theme(Option<Background>);

impl Theme {
    /// No colours.
    pub const PLAIN: Theme = Theme(None);

    /// With colours for this background, or without colours.
    pub const fn new(background: Option<Background>) -> Self {
        Theme(background)
    }

    /// Whether it colours at all.
    pub const fn is_coloured(self) -> bool {
        self.0.is_some()
    }

    /// `text` in the colour of its role. The text is not escaped here.
    pub fn paint(self, role: Role, text: impl Display) -> String {
        let style = self.style(role);
        if style.is_plain() { text.to_string() } else { text.style(style).to_string() }
    }

    fn style(self, role: Role) -> Style {
        let Some(background) = self.0 else {
            return Style::new();
        };
        let style = match hue(role) {
            Some(hue) => Style::new().color(XtermColors::from(hue.number(background))),
            None => Style::new(),
        };
        match role {
            Role::Heading => style.bold().underline(),
            Role::Frame | Role::Symbol | Role::Error | Role::Prompt | Role::Command => style.bold(),
            _ => style,
        }
    }
}

/// A hue; the background decides which of the terminal's 256 colours it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hue {
    Blue,
    Cyan,
    Magenta,
    Green,
    Yellow,
    Red,
    Violet,
    Grey,
}

impl Hue {
    /// A colour with a contrast of at least 4.5 : 1 to the background. It is one of the colour cube or of the greys,
    /// because terminals redefine the first sixteen. Only six of them are readable on both black and white.
    const fn number(self, background: Background) -> u8 {
        let (any, dark, light) = match self {
            Hue::Blue => (63, 75, 20),
            Hue::Cyan => (63, 80, 24),
            Hue::Magenta => (163, 176, 90),
            Hue::Green => (29, 114, 22),
            Hue::Yellow => (98, 221, 94),
            Hue::Red => (131, 203, 124),
            Hue::Violet => (98, 147, 92),
            Hue::Grey => (243, 246, 242),
        };
        match background {
            Background::Any => any,
            Background::Dark => dark,
            Background::Light => light,
        }
    }
}

impl Role {
    /// The colour of a role on a background, as red, green and blue; `None` for the default colour.
    pub fn rgb(self, background: Background) -> Option<[u8; 3]> {
        hue(self).map(|hue| rgb(hue.number(background)))
    }
}

/// Red, green and blue of a colour of the cube or of the greys, as terminals have them.
fn rgb(number: u8) -> [u8; 3] {
    let step = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
    match number {
        232.. => [8 + 10 * (number - 232); 3],
        _ => {
            let cube = number.saturating_sub(16);
            [step(cube / 36), step(cube / 6 % 6), step(cube % 6)]
        }
    }
}

const fn hue(role: Role) -> Option<Hue> {
    Some(match role {
        Role::Address => Hue::Cyan,
        Role::Physical | Role::Frame => Hue::Magenta,
        Role::Flag | Role::Good | Role::Quoted => Hue::Green,
        Role::Warn | Role::Symbol => Hue::Yellow,
        Role::Bad | Role::Error => Hue::Red,
        Role::Note => Hue::Violet,
        Role::Dim | Role::Label => Hue::Grey,
        Role::Command | Role::Keyword => Hue::Blue,
        Role::Raw | Role::Size | Role::Name | Role::Plain => return None,
        Role::Heading | Role::Prompt => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMINAL: ColorContext<'static> =
        ColorContext { is_terminal: true, no_color: None, force: None, clicolor: None, term: Some("xterm-256color") };

    #[test]
    fn auto_colours_only_a_terminal_that_can_and_may() {
        let auto = |context| ColorChoice::Auto.decide(context);
        assert!(auto(TERMINAL));
        assert!(auto(ColorContext { no_color: Some(""), ..TERMINAL }));
        for no in [
            ColorContext { is_terminal: false, ..TERMINAL },
            ColorContext { no_color: Some("1"), ..TERMINAL },
            ColorContext { term: Some("dumb"), ..TERMINAL },
            ColorContext { term: None, ..TERMINAL },
            ColorContext { clicolor: Some("0"), ..TERMINAL },
            ColorContext { no_color: Some("1"), force: Some("1"), ..TERMINAL },
            ColorContext { force: Some("0"), ..ColorContext::default() },
        ] {
            assert!(!auto(no), "{no:?}");
        }
        assert!(auto(ColorContext { force: Some("1"), clicolor: Some("0"), ..ColorContext::default() }));
    }

    #[test]
    fn a_choice_beats_the_surroundings() {
        let bare = ColorContext { is_terminal: false, no_color: Some("1"), ..ColorContext::default() };
        assert!(ColorChoice::Always.decide(bare));
        assert!(!ColorChoice::Never.decide(TERMINAL));
    }

    #[test]
    fn a_plain_theme_adds_nothing() {
        assert_eq!(Theme::PLAIN.paint(Role::Error, "no"), "no");
        let painted = Theme::new(Some(Background::Any)).paint(Role::Error, "no");
        assert!(painted.starts_with('\x1b') && painted.ends_with('m') && painted.contains("no"));
    }

    /// The contrast of two colours, as WCAG has it.
    fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
        let luminance = |colour: [u8; 3]| {
            let linear = colour.map(|part| match f64::from(part) / 255.0 {
                low if low <= 0.03928 => low / 12.92,
                high => ((high + 0.055) / 1.055).powf(2.4),
            });
            0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        };
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn every_colour_can_be_read_on_its_background() {
        let (black, white) = ([0; 3], [255; 3]);
        let hues = [Hue::Blue, Hue::Cyan, Hue::Magenta, Hue::Green, Hue::Yellow, Hue::Red, Hue::Violet, Hue::Grey];
        for hue in hues {
            for (background, grounds) in
                [(Background::Any, &[black, white][..]), (Background::Dark, &[black]), (Background::Light, &[white])]
            {
                for ground in grounds {
                    let contrast = contrast(rgb(hue.number(background)), *ground);
                    assert!(contrast >= 4.5, "{hue:?} {background:?}: {contrast}");
                }
            }
        }
    }

    #[test]
    fn the_background_is_as_chosen_or_as_the_terminal_says() {
        let auto = |told| StyleChoice::Auto.background(told);
        assert_eq!(auto(None), Background::Any);
        assert_eq!(auto(Some("15;0")), Background::Dark);
        assert_eq!(auto(Some("0;default;15")), Background::Light);
        assert_eq!(auto(Some("nonsense")), Background::Any);
        assert_eq!(StyleChoice::Light.background(Some("15;0")), Background::Light);
    }
}
