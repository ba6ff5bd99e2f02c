//! What pmdb says about a process equals the kernel's own words, page by page. The comparison uses no code of pmdb.
//!
//! Two C programs of `tests/guests` are built with `cc`, or, where `PMDB_DIFFERENTIAL` names a folder, taken from
//! there: `subject` makes memory in every state and says which, `words` writes the raw words of a process. They are
//! read before and after pmdb is asked; what changed meanwhile is not compared. In a guest of `scripts/guests` this
//! runs on the guest's kernel, and the lines that it prints are the guest's row in the table.

mod answers;
mod compare;
mod raw;
mod subject;

use crate::skips::skip;
use answers::Answers;
use compare::Tally;
use raw::Snapshot;
use std::path::{Path, PathBuf};
use std::process::Command;
use subject::Subject;

/// How often a difference is compared again: a flag may have changed and changed back while pmdb read it.
const TRIES: usize = 4;

/// The least number of pages to compare, so that the test cannot pass without comparing.
const LEAST_PAGES: usize = 5_000;

pub const TESTS: &[crate::Test] = &[("differential::every_word_agrees", every_word_agrees)];

fn every_word_agrees() {
    if !rustix::process::geteuid().is_root() {
        return skip("differential::every_word_agrees", "the words of frames are for root");
    }
    // The folder of the build is on a disk, but may be closed to this user.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"));
    let folder = folder.or_else(|_| tempfile::tempdir()).expect("a folder");
    let programs = match std::env::var_os("PMDB_DIFFERENTIAL") {
        Some(programs) => PathBuf::from(programs),
        None => match build(folder.path()) {
            Ok(()) => folder.path().to_owned(),
            Err(reason) => return skip("differential::every_word_agrees", &reason),
        },
    };
    let pmdb = std::env::var("PMDB_PROGRAM").unwrap_or(env!("CARGO_BIN_EXE_pmdb").to_owned());
    let subject = Subject::start(&programs.join("subject"), folder.path());
    let words = |subject: &Subject| Snapshot::take(&programs.join("words"), subject.pid());

    let mut before = words(&subject);
    let mut tally = Tally::default();
    for _ in 0..TRIES {
        let answers = Answers::ask(&pmdb, subject.pid(), &before.sample());
        let after = words(&subject);
        tally.compare(&before, &after, &answers, &subject);
        if !tally.differs() {
            break;
        }
        before = after;
    }
    tally.print();
    for line in &subject.impossible {
        println!("cannot be made: {line}");
    }
    assert!(!tally.differs(), "{}", tally.differences());
    assert!(tally.pages() >= LEAST_PAGES, "only {} pages", tally.pages());
}

/// Builds the two programs into that folder, or says why it cannot.
fn build(folder: &Path) -> Result<(), String> {
    for name in ["subject", "words"] {
        let source = format!("{}/tests/guests/{name}.c", env!("CARGO_MANIFEST_DIR"));
        let built = Command::new("cc")
            .args(["-static", "-O1", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(folder.join(name))
            .arg(source)
            .status();
        match built {
            Ok(status) => assert!(status.success(), "{name}.c does not build"),
            Err(error) => return Err(format!("cc: {error}")),
        }
    }
    Ok(())
}
