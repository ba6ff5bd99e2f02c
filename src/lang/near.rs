//! Words that may have been meant: the one rule for near misses in commands, fields, names and topics.

/// How many near words are worth showing.
const MOST: usize = 3;

/// Shorter words are near to too many others: `py` is not `ps`, `all` is not `walk`.
const SHORTEST: usize = 4;

/// The words nearest to `typed`, best first: those that begin with it, those that lack only its last one or two
/// letters, and those that differ in one letter (two if `typed` has eight or more). Brackets and case do not count.
pub fn near<W: AsRef<str> + Ord>(typed: &str, words: impl IntoIterator<Item = W>) -> Vec<W> {
    let bare = |word: &str| word.trim_matches(['[', ']']).to_lowercase();
    let wanted = bare(typed);
    let length = wanted.chars().count();
    if length < SHORTEST {
        return Vec::new();
    }
    let farthest = if length < 8 { 1 } else { 2 };
    let mut near: Vec<(usize, W)> = words
        .into_iter()
        .filter(|word| !word.as_ref().is_empty() && word.as_ref() != typed)
        .filter_map(|word| {
            let other = bare(word.as_ref());
            let is_beginning = other.starts_with(&wanted)
                || (other.len() >= SHORTEST && wanted.strip_prefix(&other).is_some_and(|rest| rest.len() <= 2));
            let distance =
                if is_beginning && other != wanted { 1 } else { strsim::damerau_levenshtein(&wanted, &other) };
            (distance <= farthest).then_some((distance, word))
        })
        .collect();
    // The shortest of those that begin alike lacks the least.
    near.sort_by(|(a, one), (b, other)| {
        let length = |word: &W| word.as_ref().len();
        (a, length(one), one).cmp(&(b, length(other), other))
    });
    near.dedup();
    near.truncate(MOST);
    near.into_iter().map(|(_, word)| word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [&str; 9] = ["walk", "watch", "print", "pipe", "ps", "[heap]", "translate", "swapcache", "swapped"];

    #[test]
    fn a_letter_more_less_or_other_and_a_beginning_are_near() {
        for (typed, meant) in [
            ("wlak", &["walk"][..]),
            ("printf", &["print"]),
            ("haep", &["[heap]"]),
            ("HEAP", &["[heap]"]),
            ("tran", &["translate"]),
            ("swap", &["swapped", "swapcache"]),
            ("walker", &["walk"]),
            ("tarnslat", &["translate"]),
        ] {
            assert_eq!(near(typed, WORDS), meant, "{typed}");
        }
    }

    #[test]
    fn short_words_and_two_letters_of_five_are_not_near() {
        for typed in ["py", "all", "ptype", "pip", "wa", "zzzz", ""] {
            assert_eq!(near(typed, WORDS), [""; 0], "{typed}");
        }
    }
}
