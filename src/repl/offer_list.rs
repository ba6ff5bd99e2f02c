//! The list of what Tab offers: words of the language in the first columns, names in columns of their own.

use rustyline::completion::Pair;
use unicode_width::UnicodeWidthStr;

/// The columns between two offers, as the editor has them.
const GAP: usize = 2;

/// The most offers that the editor lists without a question.
const MOST: usize = 100;

/// Returns the offers of each group. The editor fills columns from top to bottom: empty offers end the columns of a
/// group, and separate it from the next by an empty column if there is room.
pub(super) fn of_groups(groups: [Vec<Pair>; 2], width: usize) -> Vec<Pair> {
    let columns = columns(&groups, width);
    let [words, names] = groups;
    let Some((rows, gap)) = layout([words.len(), names.len()], columns) else {
        return [words, names].concat();
    };
    // It must not change what all offers begin with.
    let empty = Pair { display: String::new(), replacement: common_beginning(&[&words[..], &names].concat()) };
    let fill = |mut list: Vec<Pair>, length: usize| {
        list.resize(length.max(list.len()), empty.clone());
        list
    };
    let words_end = (words.len().div_ceil(rows) + gap) * rows;
    let list = [fill(words, words_end), names].concat();
    // With fewer, the editor would make fewer rows.
    let least = (rows - 1) * columns + 1;
    let list = fill(list, least);
    if list.len() > MOST { list.into_iter().filter(|one| !one.display.is_empty()).collect() } else { list }
}

/// Returns how many columns the editor makes.
fn columns(groups: &[Vec<Pair>; 2], width: usize) -> usize {
    let longest = groups.iter().flatten().map(|one| one.display.width()).max().unwrap_or(0);
    width / (longest + GAP).min(width.max(1))
}

/// Returns the rows of the list, and the empty columns between the groups; `None` if there is only one group, or one
/// column.
fn layout(groups: [usize; 2], columns: usize) -> Option<(usize, usize)> {
    if groups.contains(&0) || columns < 2 {
        return None;
    }
    let needed = |rows: usize| groups.iter().map(|group| group.div_ceil(rows)).sum::<usize>();
    let rows = (1..=groups.iter().sum()).find(|&rows| needed(rows) <= columns)?;
    Some((rows, usize::from(needed(rows) < columns)))
}

/// Returns what all of these begin with.
fn common_beginning(pairs: &[Pair]) -> String {
    let Some((first, others)) = pairs.split_first() else { return String::new() };
    let first = first.replacement.as_str();
    let shared = |other: &Pair| {
        let same = first.char_indices().zip(other.replacement.chars()).take_while(|((_, one), other)| one == other);
        same.last().map_or(0, |((at, c), _)| at + c.len_utf8())
    };
    let length = others.iter().map(shared).min().unwrap_or(first.len());
    first.get(..length).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(words: &str) -> Vec<Pair> {
        words.split_whitespace().map(|word| Pair { display: word.into(), replacement: word.into() }).collect()
    }

    /// The rows as the editor writes them.
    fn rows(list: &[Pair], width: usize) -> Vec<Vec<&str>> {
        let longest = list.iter().map(|one| one.display.width()).max().unwrap_or(0);
        let columns = width / (longest + GAP).min(width);
        let rows = list.len().div_ceil(columns);
        let cell = |row, column| list.get(column * rows + row).map_or("", |one: &Pair| one.display.as_str());
        (0..rows).map(|row| (0..columns).map(|column| cell(row, column)).collect()).collect()
    }

    #[test]
    fn groups_have_columns_of_their_own() {
        let list = of_groups([pairs("all by top"), pairs("main matrix")], 48);
        assert_eq!(rows(&list, 48), [["all", "by", "top", "", "main", "matrix"]]);
        let list = of_groups([pairs("all by top with"), pairs("main matrix")], 32);
        assert_eq!(rows(&list, 32), [["all", "top", "", "main"], ["by", "with", "", "matrix"]]);
        let list = of_groups([pairs("all by top with full"), pairs("main matrix")], 32);
        assert_eq!(rows(&list, 32), [["all", "top", "full", "main"], ["by", "with", "", "matrix"]]);
        for (words, names, width) in [("one two", "", 80), ("", "one two", 80), ("one", "two three", 9)] {
            assert_eq!(of_groups([pairs(words), pairs(names)], width).len(), pairs(words).len() + pairs(names).len());
        }
    }

    #[test]
    fn the_words_of_a_group_stay_together_for_each_width() {
        let (words, names) = (pairs("a bb ccc dddd eeeee f g h i j"), pairs("x yy zzz ww v"));
        for width in 8..120 {
            let list = of_groups([words.clone(), names.clone()], width);
            for row in rows(&list, width) {
                let shown: Vec<&str> = row.into_iter().filter(|cell| !cell.is_empty()).collect();
                let is_name = |cell: &&str| names.iter().any(|name| name.display == *cell);
                assert!(shown.is_sorted_by_key(is_name) || width < 14, "{width}: {shown:?}");
            }
        }
    }

    #[test]
    fn empty_offers_change_nothing_that_is_inserted() {
        let list = of_groups([pairs("stack start"), pairs("status")], 80);
        assert!(list.len() > 3);
        assert_eq!(common_beginning(&list), "sta");
        assert_eq!(common_beginning(&[]), "");
    }
}
