//! A skip is printed and counted, and an unexpected one fails its test.

use crate::skips::{matches, skip};
use std::path::Path;
use std::process::{Command, Output};

#[test]
#[ignore = "skips; run by the next ones"]
fn one_that_skips() {
    skip("one_that_skips", "a reason");
}

/// Runs the test above.
fn run(expected: Option<&Path>) -> (Output, String) {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--ignored", "--exact", "skip_lists::one_that_skips"]);
    command.env_remove("PMDB_EXPECTED_SKIPS");
    command.envs(expected.map(|list| ("PMDB_EXPECTED_SKIPS", list)));
    let output = command.output().expect("its output");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

fn listed(text: &str) -> (Output, String) {
    let list = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(&list, text).expect("a list");
    run(Some(list.path()))
}

#[test]
fn a_skip_is_seen_and_counted() {
    let (output, said) = run(None);
    assert_eq!(said, "skipped: program::one_that_skips: a reason\nskipped in all: 1\n", "{output:?}");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_skip_that_is_not_listed_fails_its_test() {
    for text in [
        "",
        "program::another: a reason\n",
        "program::one_that_skips: another reason\n",
        "# program::one_that_skips: a reason\n",
    ] {
        let (output, _) = listed(text);
        assert!(!output.status.success(), "{text}: {output:?}");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.contains("unexpected skip, not in "), "{printed}");
    }
    let (output, _) = run(Some(Path::new("/nowhere/a-list")));
    assert!(!output.status.success(), "{output:?}");
}

#[test]
fn a_listed_skip_passes_and_one_that_did_not_happen_is_mentioned() {
    let list = "# here\nprogram::one_that_*: a reason\n\nprogram::another: *\nlive::another: *\n";
    let (output, said) = listed(list);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        said,
        "skipped: program::one_that_skips: a reason\n\
         expected to be skipped, but was not: program::another: *\nskipped in all: 1\n"
    );
}

#[test]
fn a_star_in_a_list_stands_for_any_text() {
    for (pattern, text) in [("*", ""), ("a*", "a"), ("*b", "aab"), ("a*c*e", "abcde"), ("é*", "éü")] {
        assert!(matches(pattern, text), "{pattern} {text}");
    }
    for (pattern, text) in [("", "a"), ("a", "ab"), ("a*", "b"), ("*b", "bc"), ("a*a", "a")] {
        assert!(!matches(pattern, text), "{pattern} {text}");
    }
}
