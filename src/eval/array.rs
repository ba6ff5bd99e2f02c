//! Arrays of C, written as gdb does.

use crate::render::gdb;
use std::fmt::{self, Display, Formatter};

/// The elements that gdb writes before it ends an array with `...`.
const MOST_WRITTEN: usize = 200;
/// The most equal elements in a row that gdb writes one by one.
const MOST_EQUAL: usize = 10;

/// The elements of an array, which may be arrays too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Array<T> {
    elements: Vec<T>,
    /// The bytes of an array of characters.
    text: Option<Vec<u8>>,
}

impl<T: Display + PartialEq> Array<T> {
    /// An array; one of characters has its bytes too.
    pub(super) fn new(elements: Vec<T>, text: Option<&[u8]>) -> Self {
        Array { elements, text: text.map(<[u8]>::to_vec) }
    }

    /// Its elements.
    pub fn elements(&self) -> &[T] {
        &self.elements
    }

    /// All elements in braces, each written by `element`.
    pub fn written(&self, element: &dyn Fn(&T) -> String) -> String {
        let (runs, is_cut) = runs(&self.elements);
        let parts = runs.into_iter().flat_map(|(first, count)| match count {
            many if many > MOST_EQUAL => vec![format!("{} <repeats {many} times>", element(first))],
            few => vec![element(first); few],
        });
        let parts: Vec<String> = parts.collect();
        format!("{{{}{}}}", parts.join(", "), if is_cut { "..." } else { "" })
    }
}

/// The first elements, each with how often it stands there in a row, as far as gdb writes them, and whether there are
/// more.
fn runs<T: PartialEq>(elements: &[T]) -> (Vec<(&T, usize)>, bool) {
    let mut runs = Vec::new();
    let (mut rest, mut room) = (elements, MOST_WRITTEN);
    while let Some(first) = rest.first() {
        if room == 0 {
            return (runs, true);
        }
        let equal = rest.iter().take_while(|element| *element == first).count();
        // Many equal ones are one entry, which counts as those that would be written one by one.
        let (count, costs) = if equal > MOST_EQUAL { (equal, MOST_EQUAL) } else { (equal.min(room), equal) };
        runs.push((first, count));
        rest = rest.get(count..).unwrap_or_default();
        room = room.saturating_sub(costs);
    }
    (runs, false)
}

/// Characters in quotes. As in gdb, a zero at the end is not written.
fn text(bytes: &[u8]) -> String {
    let shown = match bytes {
        [before @ .., 0] if !before.is_empty() && bytes.len() <= MOST_WRITTEN => before,
        all => all,
    };
    let (runs, is_cut) = runs(shown);
    let (mut parts, mut plain): (Vec<String>, Vec<u64>) = (Vec::new(), Vec::new());
    for (byte, count) in runs {
        if count <= MOST_EQUAL {
            plain.extend(std::iter::repeat_n(u64::from(*byte), count));
            continue;
        }
        if !plain.is_empty() {
            parts.push(gdb::text(&std::mem::take(&mut plain), 1));
        }
        parts.push(format!("{} <repeats {count} times>", gdb::character(*byte)));
    }
    if !plain.is_empty() || parts.is_empty() {
        parts.push(gdb::text(&plain, 1));
    }
    format!("{}{}", parts.join(", "), if is_cut { "..." } else { "" })
}

impl<T: Display + PartialEq> Display for Array<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(bytes) => f.write_str(&text(bytes)),
            None => f.write_str(&self.written(&T::to_string)),
        }
    }
}
