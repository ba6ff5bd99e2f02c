//! Tests that this machine or this user cannot run are skipped, by name and reason, in the output. The last line counts
//! the skips.
//!
//! `PMDB_EXPECTED_SKIPS` names a list of the skips that are expected here: each line is what a skip prints after
//! `skipped: `, with `*` for any text; `#` starts a comment. With a list, a skip that is not in it fails its test. One
//! that is in it and did not happen is mentioned at the end.
#![allow(unsafe_code)]

use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, Once};

static SKIPPED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Reports that a test cannot run here, and why. `return skip(…)` ends it.
pub fn skip(name: &str, reason: &str) {
    count_at_exit();
    let skipped = format!("{}{name}: {reason}", program());
    say(&format!("skipped: {skipped}\n"));
    if let Some((list, expected)) = expected() {
        let listed = expected.iter().any(|pattern| matches(pattern, &skipped));
        assert!(listed, "unexpected skip, not in {}: {skipped}", list.display());
    }
    let mut all = SKIPPED.lock().unwrap_or_else(|poison| poison.into_inner());
    all.push(skipped);
}

/// Prints the last line when this program ends, even without skips.
pub fn count_at_exit() {
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| {
        // SAFETY: the function is there until the program ends, and does not unwind.
        unsafe { libc::atexit(count) };
    });
}

extern "C" fn count() {
    let skipped = SKIPPED.lock().unwrap_or_else(|poison| poison.into_inner());
    // A list that cannot be read has failed the first skip.
    let expected = std::panic::catch_unwind(expected).ok().flatten();
    for pattern in expected.iter().flat_map(|(_, patterns)| patterns) {
        let happened = skipped.iter().any(|skipped| matches(pattern, skipped));
        if pattern.starts_with(&program()) && !happened {
            say(&format!("expected to be skipped, but was not: {pattern}\n"));
        }
    }
    say(&format!("skipped in all: {}\n", skipped.len()));
}

/// The prefix of this program's skips.
fn program() -> String {
    format!("{}::", env!("CARGO_CRATE_NAME"))
}

/// The list of expected skips, where there is one, and its patterns.
fn expected() -> Option<(PathBuf, Vec<String>)> {
    let list = PathBuf::from(std::env::var_os("PMDB_EXPECTED_SKIPS")?);
    let text = std::fs::read_to_string(&list)
        .unwrap_or_else(|error| panic!("PMDB_EXPECTED_SKIPS={}: {error}", list.display()));
    let lines = text.lines().map(str::trim);
    let patterns = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let patterns = patterns.map(String::from).collect();
    Some((list, patterns))
}

/// Whether `text` matches `pattern`, where `*` stands for any text.
pub fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            let mut places = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            places.any(|at| matches(after, &rest[at..]))
        }),
    }
}

/// Written directly: the test harness hides what passing tests print with `println!`.
fn say(line: &str) {
    // Nobody may be reading.
    _ = std::io::stderr().write_all(line.as_bytes());
}
