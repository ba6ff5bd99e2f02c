//! Settings by name, from the table that lists them.

use nom::Parser;
use nom::combinator::{cut, map};

use super::stream::{Failed, Parsed, Tokens, number, one_of, word};
use crate::lang::setting::{SETTINGS, Setting, SettingType, SettingValue};
use crate::lang::syntax::Assignment;
use crate::lang::words::{COLOR_CHOICES, SWITCH};

/// The name of a setting, of one word or two.
pub(super) fn setting(input: Tokens<'_>) -> Parsed<'_, Setting> {
    for row in SETTINGS {
        let mut words = row.name.split(' ');
        let Some(first) = words.next() else { continue };
        if let Ok((mut behind, _)) = word(first)(input) {
            for next in words {
                (behind, _) = cut(word(next)).parse(behind)?;
            }
            return Ok((behind, row.setting));
        }
    }
    Err(nom::Err::Error(Failed))
}

/// A setting and a value of its type.
pub(super) fn setting_value(input: Tokens<'_>) -> Parsed<'_, Assignment> {
    let (behind, setting) = setting(input)?;
    let (behind, value) = match setting.info().takes {
        SettingType::Switch => map(cut(one_of(SWITCH)), SettingValue::Switch).parse(behind)?,
        SettingType::Color => map(cut(one_of(COLOR_CHOICES)), SettingValue::Color).parse(behind)?,
        SettingType::Number => map(cut(number), SettingValue::Number).parse(behind)?,
    };
    Ok((behind, Assignment::Setting { setting, value }))
}
