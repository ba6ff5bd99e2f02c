//! Text for a terminal: a colour for each role, decided once, and the last gate, which only printable text passes. Call
//! sites name a role, never a colour.

use crate::kernel::text::is_plain;
use crate::lang::{ColorChoice, StyleChoice};
use owo_colors::{OwoColorize, Style, XtermColors};
use std::borrow::Cow;
use std::fmt::{Display, Write};
use unicode_width::UnicodeWidthChar;

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
    /// Unknown: the terminal's own sixteen colours are used.
    Any,
    /// A dark one.
    Dark,
    /// A light one.
    Light,
}

impl StyleChoice {
    /// The background, chosen or reported by the terminal: `COLORFGBG` ends in the number of its colour.
    pub fn background(self, color_fg_bg: Option<&str>) -> Background {
        let number = color_fg_bg.and_then(|colors| colors.rsplit(';').next());
        match (self, number.and_then(|number| number.parse().ok())) {
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
            Some(hue) => hue.style(background),
            None => Style::new(),
        };
        match role {
            Role::Heading => style.bold().underline(),
            role if role.is_bold() => style.bold(),
            _ => style,
        }
    }
}

/// The colours of the roles. The background decides which of the terminal's colours each is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hue {
    Blue,
    Magenta,
    Green,
    Yellow,
    Red,
    Grey,
}

impl Hue {
    #[cfg(test)]
    const ALL: [Hue; 6] = [Hue::Blue, Hue::Magenta, Hue::Green, Hue::Yellow, Hue::Red, Hue::Grey];

    /// On a known background: a colour of the cube or a grey, because terminals redefine the first sixteen. It can be
    /// read on the backgrounds of common themes, and no two look alike, also with each kind of colour blindness.
    const fn number(self, is_dark: bool) -> u8 {
        let (dark, light) = match self {
            Hue::Blue => (153, 26),
            Hue::Magenta => (207, 90),
            Hue::Green => (40, 22),
            Hue::Yellow => (227, 94),
            Hue::Red => (210, 124),
            Hue::Grey => (247, 59),
        };
        if is_dark { dark } else { light }
    }

    /// On an unknown background the terminal's own colours: its theme is made to be read. Of the sixteen only these
    /// are safe: the bright ones are close to the background in some themes.
    fn style(self, background: Background) -> Style {
        match (background, self) {
            (Background::Dark, _) => Style::new().color(XtermColors::from(self.number(true))),
            (Background::Light, _) => Style::new().color(XtermColors::from(self.number(false))),
            (Background::Any, Hue::Blue) => Style::new().cyan(),
            (Background::Any, Hue::Magenta) => Style::new().magenta(),
            (Background::Any, Hue::Green) => Style::new().green(),
            (Background::Any, Hue::Yellow) => Style::new().yellow(),
            (Background::Any, Hue::Red) => Style::new().red(),
            (Background::Any, Hue::Grey) => Style::new().dimmed(),
        }
    }
}

impl Role {
    const fn is_bold(self) -> bool {
        matches!(
            self,
            Role::Physical | Role::Symbol | Role::Bad | Role::Error | Role::Prompt | Role::Command | Role::Heading
        )
    }
}

const fn hue(role: Role) -> Option<Hue> {
    Some(match role {
        Role::Address | Role::Command | Role::Keyword => Hue::Blue,
        Role::Physical | Role::Frame => Hue::Magenta,
        Role::Flag | Role::Good | Role::Quoted => Hue::Green,
        Role::Warn | Role::Symbol => Hue::Yellow,
        Role::Bad | Role::Error => Hue::Red,
        Role::Raw | Role::Note | Role::Dim | Role::Label => Hue::Grey,
        Role::Size | Role::Name | Role::Plain => return None,
        Role::Heading | Role::Prompt => return None,
    })
}

/// `text` with control characters and invisible or direction-changing characters escaped, as
/// [`Name`](crate::kernel::Name) does it; borrowed if there was nothing to escape. A backslash stays as it is, because
/// names are already escaped.
pub fn printable(text: &str) -> Cow<'_, str> {
    printable_and_width(text).0
}

/// The same, and the terminal columns that it takes.
pub fn printable_and_width(text: &str) -> (Cow<'_, str>, usize) {
    if is_ascii(text) {
        return (Cow::Borrowed(text), text.len());
    }
    if text.chars().all(is_plain) {
        return (Cow::Borrowed(text), columns(text));
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        push_printable(&mut out, c);
    }
    let columns = columns(&out);
    (Cow::Owned(out), columns)
}

/// Whether the text is printable ASCII, as almost all is: then each character takes one column, and none is escaped.
pub fn is_ascii(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// Appends `c`, escaped if need be.
pub fn push_printable(out: &mut String, c: char) {
    match c {
        c if is_plain(c) => out.push(c),
        c if (c as u32) < 0x80 => _ = write!(out, "\\x{:02x}", c as u32),
        c => _ = write!(out, "\\u{{{:x}}}", c as u32),
    }
}

/// Terminal columns that printable text takes.
pub fn columns(text: &str) -> usize {
    if is_ascii(text) { text.len() } else { text.chars().map(char_columns).sum() }
}

/// Terminal columns that a printable character takes.
pub fn char_columns(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// Printable text cut to at most `limit` columns, with `…` at the cut; borrowed if it fits.
pub fn cut(text: &str, limit: usize) -> Cow<'_, str> {
    if columns(text) <= limit {
        return Cow::Borrowed(text);
    }
    let mut left = limit.saturating_sub(1);
    let kept: String = text
        .chars()
        .take_while(|&c| {
            let fits = char_columns(c) <= left;
            left = left.saturating_sub(char_columns(c));
            fits
        })
        .collect();
    if limit == 0 {
        return Cow::Borrowed("");
    }
    Cow::Owned(kept + "…")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::vision::{contrast, least_difference, parts};

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

    /// Backgrounds of common themes: black, Gruvbox, Solarized, Dracula, Nord, Ubuntu, VS Code, One Dark.
    const DARK: [u32; 8] = [0x000000, 0x282828, 0x002b36, 0x282a36, 0x2e3440, 0x300a24, 0x1e1e1e, 0x282c34];
    /// White, Solarized, Gruvbox, One Light, Tango.
    const LIGHT: [u32; 5] = [0xffffff, 0xfdf6e3, 0xfbf1c7, 0xfafafa, 0xeeeeec];

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

    #[test]
    fn every_colour_can_be_read_on_its_background() {
        for hue in Hue::ALL {
            for (is_dark, grounds) in [(true, &DARK[..]), (false, &LIGHT)] {
                for &ground in grounds {
                    let contrast = contrast(rgb(hue.number(is_dark)), parts(ground));
                    assert!(contrast >= 4.5, "{hue:?} on {ground:06x}: {contrast}");
                }
            }
        }
    }

    #[test]
    fn no_two_roles_look_alike_to_anybody() {
        // Roles that stand side by side in answers.
        let roles = [Role::Address, Role::Physical, Role::Good, Role::Warn, Role::Bad, Role::Raw];
        for is_dark in [true, false] {
            for (number, one) in roles.iter().enumerate() {
                for other in &roles[number + 1..] {
                    let colour = |role: &Role| rgb(hue(*role).expect("a hue").number(is_dark));
                    let least = least_difference(colour(one), colour(other));
                    let is_distinct = least >= 0.04 || one.is_bold() != other.is_bold();
                    assert!(is_distinct, "{one:?} and {other:?}, dark {is_dark}: {least}");
                }
            }
        }
    }

    #[test]
    fn the_background_is_as_chosen_or_as_the_terminal_says() {
        let auto = |color_fg_bg| StyleChoice::Auto.background(color_fg_bg);
        assert_eq!(auto(None), Background::Any);
        assert_eq!(auto(Some("15;0")), Background::Dark);
        assert_eq!(auto(Some("0;default;15")), Background::Light);
        assert_eq!(auto(Some("nonsense")), Background::Any);
        assert_eq!(StyleChoice::Light.background(Some("15;0")), Background::Light);
    }

    #[test]
    fn what_moves_a_terminal_is_escaped_and_the_rest_is_left() {
        assert_eq!(printable("plain \\ é 漢"), "plain \\ é 漢");
        assert_eq!(printable("a\x1b[2J\n\u{9b}\u{202e}"), "a\\x1b[2J\\x0a\\u{9b}\\u{202e}");
    }

    #[test]
    fn cutting_counts_columns_not_bytes() {
        assert_eq!(cut("libc.so.6", 9), "libc.so.6");
        assert_eq!(cut("libc.so.6", 6), "libc.…");
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut("漢字漢字", 4), "漢…");
        assert_eq!(cut("abc", 1), "…");
        assert_eq!(cut("abc", 0), "");
    }
}
