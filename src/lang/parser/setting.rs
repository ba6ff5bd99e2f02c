//! Settings by name, from the table that lists them.

use nom::Parser;
use nom::combinator::{cut, map};

use super::input::{Failed, Parsed, Tokens};
use super::stream::{number, one_of, word};
use crate::lang::setting::{SETTINGS, Setting, SettingType, SettingValue};

/// The name of a setting, of one word or two.
pub(crate) fn setting(input: Tokens<'_>) -> Parsed<'_, Setting> {
    let mut is_begun = false;
    for row in SETTINGS {
        let (first, second) = row.name.split_once(' ').unwrap_or((row.name, ""));
        let Ok((behind, _)) = word(first)(input) else {
            continue;
        };
        if second.is_empty() {
            return Ok((behind, row.setting));
        }
        match word(second)(behind) {
            Ok((behind, _)) => return Ok((behind, row.setting)),
            Err(_) => is_begun = true,
        }
    }
    Err(if is_begun { nom::Err::Failure(Failed) } else { nom::Err::Error(Failed) })
}

/// A setting and a value of its type.
pub(crate) fn setting_value(input: Tokens<'_>) -> Parsed<'_, (Setting, SettingValue)> {
    let (behind, setting) = setting(input)?;
    let (behind, value) = match setting.info().takes {
        SettingType::Switch => map(cut(one_of), SettingValue::Switch).parse(behind)?,
        SettingType::Color => map(cut(one_of), SettingValue::Color).parse(behind)?,
        SettingType::Style => map(cut(one_of), SettingValue::Style).parse(behind)?,
        SettingType::Editing => map(cut(one_of), SettingValue::Editing).parse(behind)?,
        SettingType::Pager => map(cut(one_of), SettingValue::Pager).parse(behind)?,
        SettingType::Number => map(cut(number), SettingValue::Number).parse(behind)?,
    };
    Ok((behind, (setting, value)))
}
