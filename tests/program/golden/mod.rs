//! Command files with what they print, to the letter: `golden/NAME.pmdb`, `NAME.out` and, for errors, `NAME.err`.
//!
//! `SNAPSHOTS=overwrite cargo test --test program golden` writes the files anew, to be read before they are kept.

use crate::run::Home;
use snapbox::{Assert, Data};
use std::fs;
use std::path::Path;

fn matches(name: &str, status: i32) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/golden");
    let home = Home::new();
    let file = format!("{name}.pmdb");
    home.file(&file, fs::read(folder.join(&file)).expect("a command file"));
    let run = home.run(&["-batch", "--keep-going", "-x", &file]);
    assert_eq!(run.status, Some(status), "{run:?}");
    let expected = |kind: &str| Data::read_from(&folder.join(format!("{name}.{kind}")), None).raw();
    let exactly = Assert::new().action_env("SNAPSHOTS");
    exactly.eq(Data::text(run.out).raw(), expected("out"));
    if status == 0 {
        assert_eq!(run.err, "");
    } else {
        exactly.eq(Data::text(run.err).raw(), expected("err"));
    }
}

#[test]
fn values() {
    matches("values", 0);
}

#[test]
fn words() {
    matches("words", 0);
}

#[test]
fn errors() {
    matches("errors", 1);
}
