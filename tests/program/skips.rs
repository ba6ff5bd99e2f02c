//! What this machine or this user cannot do is skipped by name and reason, where everybody sees it, and the last line counts the skips.
#![allow(unsafe_code)]

use std::io::Write;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

static SKIPPED: AtomicUsize = AtomicUsize::new(0);

/// Says that a test cannot be done here, and why. `return skip(…)` ends it.
pub fn skip(name: &str, reason: &str) {
    static AT_EXIT: Once = Once::new();
    SKIPPED.fetch_add(1, Ordering::Relaxed);
    say(&format!("skipped: {name}: {reason}\n"));
    AT_EXIT.call_once(|| {
        // SAFETY: the function is there until the program ends, and does not unwind.
        unsafe { libc::atexit(count) };
    });
}

extern "C" fn count() {
    let skipped = SKIPPED.load(Ordering::Relaxed);
    say(&format!("skipped in all: {skipped}\n"));
}

/// What `println!` prints, the test harness keeps back of tests that pass.
fn say(line: &str) {
    // Nobody may be reading.
    _ = std::io::stderr().write_all(line.as_bytes());
}

#[test]
#[ignore = "skips; run by the next one"]
fn one_that_skips() {
    skip("one_that_skips", "a reason");
}

#[test]
fn a_skip_is_seen_and_counted() {
    let program = std::env::current_exe().expect("this program");
    let output = std::process::Command::new(program)
        .args(["--ignored", "--exact", "skips::one_that_skips"])
        .output()
        .expect("its output");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        said, "skipped: one_that_skips: a reason\nskipped in all: 1\n",
        "{output:?}"
    );
}
