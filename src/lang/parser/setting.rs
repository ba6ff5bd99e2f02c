//! Settings by name, from the table that lists them.

use nom::Parser;
use nom::branch::alt;
use nom::combinator::{cut, map};
use nom::sequence::preceded;

use super::raw::pattern;
use super::stream::{Failed, Parsed, Tokens, number, one_of, word};
use crate::lang::expected::Expected;
use crate::lang::setting::{SETTINGS, Setting, SettingType, SettingValue};
use crate::lang::syntax::Assignment;

/// The name of a setting, of one word or two.
pub(super) fn setting(input: Tokens<'_>) -> Parsed<'_, Setting> {
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

/// `logging on`, `logging file PATH`, as in gdb.
pub(super) fn log(input: Tokens<'_>) -> Parsed<'_, Assignment> {
    let (behind, _) = word("logging")(input)?;
    let enabled = map(one_of, |on| Assignment::Setting { setting: Setting::Logging, value: SettingValue::Switch(on) });
    let file = map(preceded(word("file"), cut(pattern(Expected::File))), Assignment::LogFile);
    alt((enabled, file)).parse(behind)
}

/// A setting and a value of its type.
pub(super) fn setting_value(input: Tokens<'_>) -> Parsed<'_, Assignment> {
    let (behind, setting) = setting(input)?;
    let (behind, value) = match setting.info().takes {
        SettingType::Switch => map(cut(one_of), SettingValue::Switch).parse(behind)?,
        SettingType::Color => map(cut(one_of), SettingValue::Color).parse(behind)?,
        SettingType::Style => map(cut(one_of), SettingValue::Style).parse(behind)?,
        SettingType::Editing => map(cut(one_of), SettingValue::Editing).parse(behind)?,
        SettingType::Pager => map(cut(one_of), SettingValue::Pager).parse(behind)?,
        SettingType::Number => map(cut(number), SettingValue::Number).parse(behind)?,
    };
    Ok((behind, Assignment::Setting { setting, value }))
}
