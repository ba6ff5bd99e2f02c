//! Captures: how long one takes to write and to open, and how large it is.

use super::measure::in_turn;
use super::subject::Subject;
use super::table::{Required, Table};
use super::{Size, floor, ours};
use std::time::Duration;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// (k) A capture of 4 GiB of 4 KiB pages, whose frames follow each other, or lie in no order: then their words compress
/// as badly as they can.
pub fn captures(size: &Size, table: &mut Table) {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("one.capture");
    let path = file.to_str().expect("a path");
    for (order, scenario, most) in [("in order", "in_order", 4), ("shuffled", "shuffled", 12)] {
        let subject = Subject::start(scenario, &[size.of(4 * GIB, 2 * MIB)]);
        let (pid, whole) = (subject.pid(), subject.range());
        let runs = floor::frame_runs(pid, whole);
        let write = format!("capture {path} --overwrite");
        let [raw, written] = in_turn(
            size.rounds,
            [&mut || floor::three_files(pid, whole, &runs), &mut || assert!(ours::program(pid, &write))],
        );
        let three = "pread of three files, by frame";
        table.row(&format!("(k) writing, {order}"), &written, three, &raw, Required::Time(Duration::from_secs(2)));
        let [start, opened] = in_turn(
            size.rounds,
            [&mut || assert!(ours::alone(&["-ex", "print 1"])), &mut || {
                assert!(ours::alone(&["-c", path, "-ex", "print 1"]));
            }],
        );
        let question = format!("(k) opening, {order}");
        table.row(&question, &opened, "start without a target", &start, Required::Time(Duration::from_millis(50)));
        // The requirement leaves out symbols.
        assert!(ours::program(pid, &format!("{write} without names")));
        let bytes = file.metadata().expect("a file").len();
        table.bytes(&format!("(k) size without symbols, {order}"), bytes, Required::Bytes(most * MIB));
    }
}
