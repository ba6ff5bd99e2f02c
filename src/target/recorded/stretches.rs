//! What a scan of the page map found, in a few words.

use crate::target::{Categories, Populated};

/// Stretches that are named; of more there is a count.
const MOST: usize = 4;

/// The stretches of one scan.
#[derive(Default)]
pub(super) struct Stretches {
    first: Vec<Populated>,
    stretches: usize,
}

impl Stretches {
    pub(super) fn add(&mut self, stretch: Populated) {
        if self.first.len() < MOST {
            self.first.push(stretch);
        }
        self.stretches += 1;
    }

    /// `0x1000..0x3000 present file; and 3 more`
    pub(super) fn told(&self) -> String {
        let mut told: Vec<String> = self.first.iter().map(one).collect();
        match self.stretches - self.first.len() {
            0 if told.is_empty() => told.push("nothing".to_owned()),
            0 => {}
            more => told.push(format!("and {more} more")),
        }
        told.join("; ")
    }
}

fn one(stretch: &Populated) -> String {
    let (start, end) = (stretch.range.start(), stretch.range.end());
    let names = names(stretch.categories);
    match names.is_empty() {
        true => format!("{start}..{end}"),
        false => format!("{start}..{end} {names}"),
    }
}

/// As the kernel calls them, in small letters.
fn names(categories: Categories) -> String {
    let names = categories
        .iter_names()
        .map(|(name, _)| name.to_ascii_lowercase());
    names.collect::<Vec<_>>().join(" ")
}
