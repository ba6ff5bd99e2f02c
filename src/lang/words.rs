//! Words that are no commands, fields or settings.

use crate::kernel::words::Worded;

/// The words of blocks. They have no abbreviations.
pub(super) static CONTROL_WORDS: &[&str] = &[
    "if",
    "else",
    "end",
    "while",
    "foreach",
    "define",
    "document",
    "loop_break",
    "loop_continue",
];

/// The value of a switch.
impl Worded for bool {
    const ALL: &'static [Self] = &[true, false];

    fn word(self) -> &'static str {
        match self {
            true => "on",
            false => "off",
        }
    }

    fn about(self) -> &'static str {
        match self {
            true => "The setting is on.",
            false => "The setting is off.",
        }
    }
}
