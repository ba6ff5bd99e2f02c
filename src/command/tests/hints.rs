//! Each entry of the list of hints can occur: its line leads to it, and to no entry before it.

use crate::command::LANGUAGE;
use crate::hint::{self, Hint, Hints};
use crate::lang::{Advice, Failure, Language, OtherWords, SyntaxError};

/// Says the name of the hint in place of the hint.
struct Named;

impl Advice for Named {
    fn other_words(&self, line: &str) -> Option<OtherWords> {
        Hints.other_words(line)
    }

    fn hint(&self, failed: &Failure<'_>, error: &mut SyntaxError) {
        error.hint = hint::of(failed).map(|(hint, _)| hint.name.to_owned());
    }
}

#[test]
fn the_line_of_each_hint_leads_to_it() {
    let language = Language { advice: Some(&Named), ..LANGUAGE };
    let found = |hint: &Hint| language.parse_line(hint.typed).expect_err(hint.typed).hint;
    let lost = hint::all().filter(|hint| found(hint).as_deref() != Some(hint.name));
    assert_eq!(lost.map(|hint| (hint.name, found(hint))).collect::<Vec<_>>(), []);
}
