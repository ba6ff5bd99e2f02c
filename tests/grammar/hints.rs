//! Each hint is a test: it is what is said about its line, and what it offers can be typed.

use crate::english::filled;
use pmdb::command::LANGUAGE;
use pmdb::hint;

/// What a hint offers: what stands in backticks and begins with a command, but for gdb's.
fn offered(text: &str) -> Vec<String> {
    let parts: Vec<&str> = text.split('`').collect();
    let quoted = parts.windows(2).skip(1).step_by(2).map(|pair| (pair[0], pair[1]));
    let of_pmdb = quoted.filter(|(offer, behind)| {
        let word = offer.split([' ', '/']).next().unwrap_or_default();
        let is_command = offer.contains(' ') && LANGUAGE.first_words().any(|known| known == word);
        is_command && !offer.contains('…') && !behind.starts_with(" in `gdb")
    });
    of_pmdb.map(|(offer, _)| filled(&offer.replace("FILTER", "dirty"))).collect()
}

#[test]
fn each_hint_is_said_about_its_line_and_can_be_typed() {
    let mut wrong = Vec::new();
    for hint in hint::all() {
        let error = match LANGUAGE.parse_line(hint.typed) {
            Err(error) => error,
            Ok(_) => {
                wrong.push(format!("{}: `{}` is a line of the language", hint.name, hint.typed));
                continue;
            }
        };
        let said = error.hint.unwrap_or_default();
        if said != hint.offered {
            wrong.push(format!("{}: {}\nsays  {said:?}", hint.name, hint.typed));
        }
        let refused = offered(&said).into_iter().filter(|line| LANGUAGE.parse_line(line).is_err());
        wrong.extend(refused.map(|line| format!("{}: `{line}` cannot be typed", hint.name)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn no_two_hints_have_the_same_name() {
    let mut names: Vec<&str> = hint::all().map(|hint| hint.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}
