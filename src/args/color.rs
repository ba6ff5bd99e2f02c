//! The option `--color`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use pmdb::lang::ColorChoice;
use pmdb::session;
use std::ffi::OsString;
use std::io::IsTerminal;

/// Parses the value of `--color`.
pub(super) fn color_choice() -> impl TypedValueParser<Value = ColorChoice> {
    let words = ColorChoice::ALL.iter().map(|choice| choice.word());
    PossibleValuesParser::new(words).try_map(|word| color_of(&word).ok_or("no such choice"))
}

fn color_of(word: &str) -> Option<ColorChoice> {
    let mut all = ColorChoice::ALL.iter().copied();
    all.find(|choice| choice.word() == word)
}

/// Returns the choice of colour for the help of clap. It looks for `--color` itself, before clap parses the command
/// line.
pub(super) fn help_color(words: &[OsString]) -> clap::ColorChoice {
    let mut choice = None;
    let mut words = words.iter().map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        match word.strip_prefix("--color") {
            Some("") => choice = words.next(),
            Some(value) => choice = value.strip_prefix('=').map(|value| value.to_owned().into()),
            None if word == "--" => break,
            None => {}
        }
    }
    let choice = choice.and_then(|word| color_of(&word));
    let choice = choice.unwrap_or(ColorChoice::Auto);
    if session::is_coloured(choice, std::io::stdout().is_terminal()) {
        clap::ColorChoice::Always
    } else {
        clap::ColorChoice::Never
    }
}
