//! `soft-dirty`: what is asked before anything changes.

use super::*;
use crate::command::{COMMANDS, nature};
use crate::lang::ParsedLine;

/// The heap, on a kernel that tracks soft-dirty pages.
fn tracked() -> Fake {
    Fake { soft_dirty: true, ..heap() }
}

fn cleared(fake: &Fake) -> usize {
    fake.watched.soft_dirty_cleared.load(Ordering::Relaxed)
}

#[test]
fn clearing_says_what_it_does_and_waits_for_a_yes() {
    let fake = tracked();
    let mut session = Session::on(fake.clone());
    let (records, flow) = session.run("soft-dirty clear", None);
    let Ok(Flow::Ask(question)) = flow else {
        panic!("no question: {flow:?}");
    };
    assert!(question.starts_with("Clear the soft-dirty bits of process 4321 ("));
    let report: &SoftDirtyReport = only(&records);
    assert_eq!((report.pages, report.hugetlb), (3, 0));
    assert_eq!(cleared(&fake), 0, "before an answer");

    let (records, flow) = session.run("soft-dirty clear", Some(Resume::Agreed));
    assert_eq!(flow.expect("it is done"), Flow::Done);
    let done: &SoftDirtyCleared = only(&records);
    assert_eq!((done.pages, cleared(&fake)), (0, 1));
}

#[test]
fn with_yes_it_is_said_first_and_done() {
    let fake = tracked();
    let mut session = Session::on(fake.clone());
    let written = |session: &mut Session| {
        let (records, flow) = session.run("soft-dirty heap", None);
        assert_eq!(flow.expect("a walk"), Flow::Done);
        let (note, totals): (&Note, &WalkSummary) = (first(&records), last(&records));
        (note.message.clone(), totals.pages)
    };
    let (note, pages) = written(&mut session);
    assert!(note.starts_with("pmdb has not cleared"), "{note}");
    assert!(pages >= 3, "{pages}");
    let (records, flow) = session.run("soft-dirty --how clear --yes", None);
    assert_eq!(flow.expect("it is done"), Flow::Done);
    first::<SoftDirtyReport>(&records);
    let write = all(&records).find(|read: &&KernelRead| read.file.ends_with("/clear_refs"));
    assert_eq!(write.and_then(|read| read.repeat.as_deref()), Some("echo 4 > /proc/4321/clear_refs"));
    assert_eq!(cleared(&fake), 1);
    let (note, pages) = written(&mut session);
    assert!(note.starts_with("written since pmdb cleared the soft-dirty bits, "));
    assert_eq!(pages, 0);
}

/// Such a kernel accepts the write and does nothing.
#[test]
fn nothing_is_written_where_the_kernel_has_no_such_bits() {
    let fake = heap();
    let mut session = Session::on(fake.clone());
    for line in ["soft-dirty", "soft-dirty clear", "soft-dirty clear --yes"] {
        let Error::Refused { message, hint } = session.refuses(line) else {
            panic!("{line}");
        };
        assert!(message.contains("soft-dirty pages"), "{message}");
        let hint = hint.expect("a remedy");
        assert!(hint.starts_with("`snapshot with content`, then `diff`"), "{hint}");
    }
    assert_eq!(cleared(&fake), 0);
}

/// Every other command of the help runs without it.
#[test]
fn no_other_command_clears_them() {
    for about in COMMANDS.abouts() {
        for example in about.examples {
            let is_it = example.line.starts_with("soft-dirty clear");
            if is_it || example.line.contains('\n') {
                continue;
            }
            let Ok(ParsedLine::Command { command, .. }) = COMMANDS.language.parse_line(example.line) else {
                continue;
            };
            assert!(!nature(&*command.node).changes_process, "{}", example.line);
        }
    }
}

#[test]
fn a_write_in_place_shows_only_on_a_page_whose_bit_was_clear() {
    let mut session = Session::on(tracked());
    session.says("snapshot set in heap");
    let said = session.says("diff set");
    assert!(said.contains("no change (writes in place cannot be seen)"), "{said}");
    let Error::Evaluation(error) = session.refuses("print changed(set, now in 0x500000, +2p)") else {
        panic!("it is not known");
    };
    assert!(error.message.starts_with("changed() is unknown: "), "{}", error.message);
    session.says("soft-dirty clear --yes");
    session.says("snapshot clear in heap");
    let said = session.says("diff clear");
    assert!(!said.contains("writes in place"), "{said}");
}
