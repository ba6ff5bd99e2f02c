//! Reasons for what a table could not show, said once under it.

use super::Look;
use super::block;
use crate::report::{Reason, Why};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// A table's reasons come from a handful of causes; a target that makes up more is not given more memory.
const MOST: usize = 16;

/// The reasons seen, and the fields that they are about.
#[derive(Default, Debug)]
pub struct Footnotes(BTreeMap<String, Vec<&'static str>>);

impl Footnotes {
    /// Notes the reasons of a row. What has no answer by its nature needs none.
    pub fn collect(&mut self, why: &Why) {
        for (field, reason) in why.iter() {
            if matches!(reason, Reason::NotApplicable(_)) {
                continue;
            }
            let text = reason.to_string();
            if self.0.len() >= MOST && !self.0.contains_key(&text) {
                continue;
            }
            let fields = self.0.entry(text).or_default();
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
    }

    /// Writes them and forgets them.
    pub fn write(&mut self, look: &Look, out: &mut dyn Write) -> io::Result<()> {
        for (reason, fields) in std::mem::take(&mut self.0) {
            block::reason(look, "unknown", &fields, &reason, out)?;
        }
        Ok(())
    }
}
