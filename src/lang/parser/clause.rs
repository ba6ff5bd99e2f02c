//! Clauses after the arguments, and small arguments: formats, settings, names of snapshots.

use crate::kernel::words::Worded;
use crate::lang::error::SyntaxError;
use crate::lang::expected::Expected;
use crate::lang::expression::NOW;
use crate::lang::layout::{Format, Layout};
use crate::lang::lexer::{Token, TokenKind};
use crate::lang::parser::input::{Failed, Parsed, Tokens};
use crate::lang::parser::stream::{glued, is_mark, mark, number, one_of, with_commas, word};
use crate::lang::setting::{SETTINGS, Setting, SettingType, SettingValue};
use crate::lang::span::{Span, Spanned};
use nom::Parser;
use nom::branch::alt;
use nom::combinator::{cut, map};
use nom::sequence::preceded;

/// Takes a clause if it stands here and was not given yet. Returns whether it was taken.
pub(crate) fn clause<'a, T>(
    input: &mut Tokens<'a>,
    slot: &mut Option<T>,
    parser: impl Fn(Tokens<'a>) -> Parsed<'a, T>,
) -> Result<bool, nom::Err<Failed>> {
    if slot.is_some() {
        return Ok(false);
    }
    match parser(*input) {
        Ok((behind, found)) => {
            *input = behind;
            *slot = Some(found);
            Ok(true)
        }
        Err(nom::Err::Error(_)) => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// A word and what must follow it.
pub(crate) fn after<'a, T>(
    keyword: &'static str,
    parser: impl Fn(Tokens<'a>) -> Parsed<'a, T>,
) -> impl Fn(Tokens<'a>) -> Parsed<'a, T> {
    move |input| preceded(word(keyword), cut(&parser)).parse(input)
}

/// Says how to write one of the words `T` that stands here without `with`.
pub(crate) fn hint_at_missing_with<T: Worded>(input: Tokens<'_>) {
    let word = input.first().map(|token| token.text).filter(|word| T::from_word(word).is_some());
    if let Some(word) = word {
        input.hint(format!("put `with` before it: `with {word}`"));
    }
}

/// Words with commas between them, each kept once.
pub(crate) fn list_once<T: Worded + PartialEq>(input: Tokens<'_>) -> Parsed<'_, Vec<T>> {
    let (behind, kinds) = with_commas(one_of).parse(input)?;
    let mut once = Vec::new();
    for kind in kinds {
        if !once.contains(&kind) {
            once.push(kind);
        }
    }
    Ok((behind, once))
}

/// `/FMT` of `print`: a letter.
pub(crate) fn format(input: Tokens<'_>) -> Parsed<'_, Format> {
    slash(input, Expected::Format, |layout| match layout {
        Layout { count: None, backward: false, format, unit: None } => format,
        _ => None,
    })
}

/// `/UN` of `find`: a size, and how many matches at most.
pub(crate) fn search(input: Tokens<'_>) -> Parsed<'_, Layout> {
    slash(input, Expected::Search, |layout| {
        let is_search = layout.format.is_none() && !layout.backward;
        is_search.then_some(layout)
    })
}

/// `/NFU` of `x`.
pub(crate) fn layout(input: Tokens<'_>) -> Parsed<'_, Layout> {
    if let Some(place) = instructions(input) {
        return input.fault(SyntaxError {
            at: place,
            message: "`i` is gdb's format for instructions, which pmdb does not decode".into(),
            expected: vec![Expected::Layout.describe()],
            hint: Some("use `x/i` in `gdb -p PID`. Here `x/xb` shows the bytes".into()),
        });
    }
    slash(input, Expected::Layout, Some)
}

/// A format that `take` accepts.
fn slash<'a, T>(input: Tokens<'a>, expected: Expected, take: impl FnOnce(Layout) -> Option<T>) -> Parsed<'a, T> {
    if let Some(Token { kind: TokenKind::Format(layout), .. }) = input.first() {
        let (behind, found) = input.accept(expected, |_| take(*layout))?;
        return Ok((behind, found.node));
    }
    if !glued(input, "/") {
        return Err(nom::Err::Error(Failed));
    }
    // The error lies behind the slash.
    let (behind, _) = mark("/")(input)?;
    behind.expect(expected);
    Err(nom::Err::Failure(Failed))
}

/// Where `/i`, `/5i`, `/-5i` and the like stand.
fn instructions(input: Tokens<'_>) -> Option<Span> {
    let (slash, word) = match input.rest {
        [slash, minus, word, ..] if minus.glued && minus.text == "-" => (slash, word),
        [slash, word, ..] => (slash, word),
        _ => return None,
    };
    let letters = word.text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is = is_mark(slash, "/") && word.glued && letters.contains('i');
    let short = letters.chars().all(|c| "ibhwg".contains(c));
    (is && short).then(|| slash.at.to(word.at))
}

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

/// Words that cannot name a snapshot: they begin a clause of `snapshot` or `diff`, or mean the present.
const TAKEN: [&str; 8] = ["in", "with", "where", "by", "top", "limit", "delete", NOW];

pub(crate) fn snapshot_name(input: Tokens<'_>) -> Parsed<'_, Spanned<String>> {
    input.accept(Expected::Snapshot, |token| {
        let is_name = token.kind == TokenKind::Name && !TAKEN.contains(&token.text);
        is_name.then(|| token.text.to_owned())
    })
}

/// The later of two: a snapshot, or the present.
pub(crate) fn later(input: Tokens<'_>) -> Parsed<'_, Option<Spanned<String>>> {
    alt((map(word(NOW), |_| None), map(snapshot_name, Some))).parse(input)
}
