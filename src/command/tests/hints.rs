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

#[test]
fn hints_have_numbers_as_they_were_typed() {
    for (line, hint, respelled) in [
        ("walk frames,+1G", "write `walk *frames, +0x40000000`", "write `walk *frames, +1G`"),
        ("who 10396", "0x289c: `who pfn:0x289c`", "0x289c: `who pfn:10396`"),
        ("x 0x1000, +4K", "`x 0x1000, +0x1000` or `x 0x1000`", "`x 0x1000, +4K` or `x 0x1000`"),
        ("print 8", "`x9 8 0x8`, `'8'`", "`x9 8 8`, `'8'`"),
        ("account cgroup /a/1_024", "did you mean `/a/1024` or `/a/1024x`?", "did you mean `/a/1024` or `/a/1024x`?"),
        ("map 64K", "`sysctl vm.max_map_count=65536`", "`sysctl vm.max_map_count=65536`"),
    ] {
        assert_eq!(LANGUAGE.respelled(hint, line), respelled, "{line}");
    }
}

#[test]
fn the_beginning_of_a_command_that_is_typed_in_full_is_offered() {
    let hint = |line: &str| LANGUAGE.parse_line(line).expect_err(line).hint;
    assert_eq!(hint("acc").as_deref(), Some("did you mean `account`?"));
    assert_eq!(hint("hea").as_deref(), Some("did you mean `heap`?"));
    assert_eq!(hint("s9").as_deref(), None);
}
