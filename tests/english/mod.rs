//! The rules of our English that a program can check.

/// Verbs of people. Programs print, need, end, contain, search and compare.
const OF_PEOPLE: &[&str] = &[
    "tell", "tells", "told", "say", "says", "said", "take", "takes", "took", "taken", "stand", "stands", "stood",
    "know", "knows", "knew", "go", "goes", "close", "closes", "closed", "ask", "asks", "asked", "wants", "lends",
];

/// Where one of these words is right.
const RIGHT: &[&str] = &[
    "pages that come and go",
    "regions as they come and go",
    "ask (pmdb stops",
    "otherwise ask)",
    "method ask",
    "ask again",
];

/// `behind` is a place in memory.
const PLACES: &[&str] = &["the memory behind a Linux process"];

/// The longest sentence, in words.
const WORDS: usize = 30;

/// The meaning in a row of a table, or the whole line.
pub fn meaning(line: &str) -> &str {
    if !line.starts_with(' ') {
        return line;
    }
    line.trim().rsplit_once("  ").map_or(line.trim(), |(_, meaning)| meaning)
}

/// Without the parts in backticks: those are typed.
fn unquoted(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

fn sentences(line: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    for word in unquoted(line).split_whitespace() {
        let last = sentences.last_mut().expect("one");
        last.push_str(word);
        last.push(' ');
        if word.ends_with(['.', '?', '!']) && !word.ends_with("..") {
            sentences.push(String::new());
        }
    }
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

fn is_word(line: &str, wanted: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').any(|word| word.eq_ignore_ascii_case(wanted))
}

/// Words that another word of the field has replaced.
const REPLACED: [(&str, &str); 9] = [
    ("page of zeros", "zero page"),
    ("pages of zeros", "zero pages"),
    ("all-zero pieces", "zero-filled subpages"),
    ("copies of files", "private file copies"),
    ("looking command", "read-only command"),
    ("program file", "executable"),
    ("per cent sign", "percent sign"),
    ("leave the blank out", "leave the space out"),
    ("separated by blanks", "separated by spaces"),
];

/// The faults of a line, by the rules of our English.
pub fn faults(line: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let first = line.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    // A real question may.
    if ["what", "whose", "where", "which", "how"].contains(&first.as_str()) && !line.ends_with('?') {
        faults.push(format!("begins with `{first}`"));
    }
    let mut rest = unquoted(line);
    RIGHT.iter().chain(PLACES).for_each(|right| rest = rest.replace(right, ""));
    if is_word(&rest, "behind") {
        faults.push("`behind` is a place: after?".to_owned());
    }
    let of_people = OF_PEOPLE.iter().filter(|verb| is_word(&rest, verb));
    faults.extend(of_people.map(|verb| format!("things do not `{verb}`")));
    for (old, new) in REPLACED {
        if line.to_lowercase().contains(old) {
            faults.push(format!("`{old}`: {new}"));
        }
    }
    if unquoted(line).matches("; ").count() > 1 {
        faults.push("two semicolons".to_owned());
    }
    for sentence in sentences(line) {
        let words = sentence.split_whitespace().count();
        if words > WORDS {
            faults.push(format!("{words} words: {sentence}"));
        }
        if sentence.matches(": ").count() > 1 {
            faults.push(format!("two colons: {sentence}"));
        }
    }
    faults
}

/// A line in which each placeholder has a value.
pub fn filled(line: &str) -> String {
    const VALUES: [(&str, &str); 14] = [
        ("RANGE", "heap"),
        ("ADDRESS", "0x1000"),
        ("FILTER", "dirty"),
        ("VALUE", "1"),
        ("COMMAND", "walk"),
        ("GROUP", "look"),
        ("SUBJECT", "filters"),
        ("WORD", "dirty"),
        ("NAME", "width"),
        ("FILE", "./f"),
        ("ROW", "0x1000"),
        ("N", "1"),
        ("PID", "1"),
        ("EXPRESSION", "1"),
    ];
    let words = line.split(' ').filter(|word| *word != "…");
    let words = words.map(|word| {
        let value = VALUES.iter().find(|(name, _)| *name == word);
        value.map_or(word, |(_, value)| value)
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_rules_find_faults() {
    for line in [
        "what a page is",
        "Where it lies.",
        "the bytes behind the slash",
        "The answer says so.",
        "one; two; three",
        "One: two: three.",
        "a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e",
        "Counts all-zero pieces.",
    ] {
        assert_eq!(faults(line).len(), 1, "{line}");
    }
    for line in ["a pager: `pager asks`; `behind`", "the memory behind a Linux process", "Prints it. Ends."] {
        assert!(faults(line).is_empty(), "{line}");
    }
}
