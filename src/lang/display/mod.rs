//! Writes expressions, ranges, filters and the values of settings. What is written parses to the same tree.

mod expression;
mod operators;

use std::fmt::{self, Display, Formatter};

use super::expression::Name;
use super::lexer::{escape, is_plain_name};
use super::operators::is_operator_word;
use super::setting::SettingValue;
use crate::kernel::words::Worded;

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if is_plain_name(&self.0) && !is_operator_word(&self.0) {
            f.write_str(&self.0)
        } else {
            f.write_str(&escape('\'', &self.0))
        }
    }
}

impl Display for SettingValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            SettingValue::Switch(on) => f.write_str(on.word()),
            SettingValue::Number(number) => write!(f, "{number}"),
            SettingValue::Color(choice) => f.write_str(choice.word()),
            SettingValue::Style(style) => f.write_str(style.word()),
            SettingValue::Editing(editing) => f.write_str(editing.word()),
            SettingValue::Pager(pager) => f.write_str(pager.word()),
        }
    }
}
