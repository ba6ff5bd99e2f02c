//! What memory holds, on a target made of tables.

use super::super::{Context, Error, Flow, Resume, run};
use super::Kept;
use crate::kernel::VirtualAddress;
use crate::lang::{self, Line};
use crate::render::{Renderer, Text, Theme};
use crate::report::Record;
use crate::state::DebugState;
use crate::target::fake::Fake;
use std::sync::atomic::Ordering;

const SWAP_ENTRY: u64 = 1 << 62;

/// A heap of eight pages: 0x500000 and 0x501000 are there, then come one each that is swapped, guarded, untouched; 0x505000 is there.
fn heap() -> Fake {
    let first: Vec<u8> = (0..=255).cycle().take(4096).collect();
    let mut last = b"hi\0caf\xc3\xa9\n\xff\0".to_vec();
    last.resize(4090, b'x');
    last.extend(b"cross\0");
    Fake::new()
        .region(0x50_0000, 0x50_8000, "rw-p", 0, "[heap]")
        .page(0x50_0000, 0x1234, &first)
        .page(0x50_1000, 0x1300, &[1, 2, 3, 4])
        .entry(0x50_2000, SWAP_ENTRY | 77 << 5)
        .entry(0x50_3000, SWAP_ENTRY | 1 << 58)
        .page(0x50_5000, 0x1301, &last)
}

/// A session on a target.
struct Session(DebugState);

impl Session {
    fn on(fake: Fake) -> Session {
        let mut state = DebugState::new(fake.clone().target().machine);
        state.attach(fake.target());
        Session(state)
    }

    fn run(&mut self, line: &str, resume: Option<Resume>) -> (Vec<Record>, Result<Flow, Error>) {
        let Ok(Line::Command { command, .. }) = lang::parse_line(line) else {
            panic!("no command: {line}");
        };
        let mut sink = Kept {
            records: Vec::new(),
            stop_at: usize::MAX,
        };
        let mut context = Context {
            state: &mut self.0,
            sink: &mut sink,
            resume,
        };
        let flow = run(&command, &mut context);
        (sink.records, flow)
    }

    /// What a command writes, without line ends at the end of it.
    fn says(&mut self, line: &str) -> String {
        let (records, flow) = self.run(line, None);
        flow.unwrap_or_else(|error| panic!("{line}: {error:?}"));
        written(&records)
    }

    fn refuses(&mut self, line: &str) -> Error {
        let (_, flow) = self.run(line, None);
        match flow {
            Err(error) => error,
            Ok(flow) => panic!("{line}: {flow:?}"),
        }
    }
}

fn written(records: &[Record]) -> String {
    let mut text = Text::new(Theme::PLAIN, None);
    let mut out = Vec::new();
    for record in records {
        text.record(record, &mut out).expect("a buffer");
    }
    text.finish(&mut out).expect("a buffer");
    let written = String::from_utf8(out).expect("text");
    written.trim_end().to_owned()
}

#[test]
fn rows_are_laid_out_as_gdb_s() {
    let mut session = Session::on(heap());
    for (line, said) in [
        ("x 0x500000", "0x500000:       0x03020100"),
        (
            "x/9xb 0x500000",
            "0x500000:       0x00    0x01    0x02    0x03    0x04    0x05    0x06    0x07\n\
             0x500008:       0x08",
        ),
        ("x/2dh 0x5000fe", "0x5000fe:       -2      256"),
        ("x/xg", "0x500102:       0x0908070605040302"),
        (
            "x/3s 0x505000",
            "0x505000:       \"hi\"\n0x505003:       \"caf\u{e9}\\n\\377\"\n\
             0x50500b:       \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
             xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
             xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"...",
        ),
        ("print $_", "$1 = 0x50500b  in [heap]"),
    ] {
        assert_eq!(session.says(line), said, "{line}");
    }
}

#[test]
fn what_is_left_out_is_as_it_was_and_it_goes_on_where_it_ended() {
    let mut session = Session::on(heap());
    assert!(matches!(session.refuses("x"), Error::Refused { .. }));
    session.says("translate 0x500010");
    assert_eq!(session.says("x/2xb"), "0x500010:       0x10    0x11");
    assert_eq!(session.says("print $_ - 0"), "$1 = 0x500011  in [heap]");
    assert_eq!(session.says("x"), "0x500012:       0x12");
    let (records, flow) = session.run("x/2xb 0x500000", None);
    assert_eq!(records.len(), 1);
    let next = Resume::Address(VirtualAddress::new(0x50_0002));
    assert_eq!(flow.expect("a row"), Flow::More(next));
    // An empty line: the same again from there.
    let (records, _) = session.run("x/2xb 0x500000", Some(next));
    assert_eq!(written(&records), "0x500002:       0x02    0x03");
}

#[test]
fn the_target_s_own_order_and_width() {
    let mut fake = heap();
    fake.layout.little_endian = false;
    fake.layout.pointer_bytes = 4;
    let mut session = Session::on(fake);
    for (line, said) in [
        ("x/xw 0x500000", "0x500000:       0x00010203"),
        ("x/xh 0x500080", "0x500080:       0x8081"),
        ("x/a 0x5000fc", "0x5000fc:       0xfcfdfeff"),
        ("x/x 0x500000", "0x500000:       0x00010203"),
        ("x/dg 0x5000f8", "0x5000f8:       -506097522914230529"),
    ] {
        assert_eq!(session.says(line), said, "{line}");
    }
    let said = session.says("x/sh 0x505000");
    assert!(
        said.starts_with("0x505000:       u\"\u{6869}c\u{6166}\u{c3a9}"),
        "{said}"
    );
}

#[test]
fn what_is_not_resident_is_not_touched() {
    let fake = heap();
    let watched = fake.watched.clone();
    let mut session = Session::on(fake);
    for (line, said) in [
        (
            "x/8xb 0x502000",
            "0x502000:       <not resident: swapped>  8 B",
        ),
        (
            "x/8xb 0x503ff8",
            "0x503ff8:       <not resident: guard>  8 B",
        ),
        ("x/xg 0x504000", "0x504000:       <not resident: untouched>"),
        (
            "x/s 0x504000",
            "0x504000:       <not resident: untouched>  4 KiB",
        ),
    ] {
        assert_eq!(session.says(line), said, "{line}");
    }
    assert_eq!(watched.memory_reads.load(Ordering::Relaxed), 0);
    // All of it: every stretch in its own rows, and nothing between them is left out.
    let (records, flow) = session.run("x/4096xg 0x500000", None);
    flow.expect("rows");
    let mut next = 0x50_0000;
    let mut states = Vec::new();
    for record in &records {
        let Record::Memory(row) = record else {
            panic!("{record:?}");
        };
        assert_eq!(row.address.get(), next);
        next += row.length;
        assert_eq!(row.bytes.is_some(), row.source.is_some());
        if states.last() != Some(&row.state.word()) {
            states.push(row.state.word());
        }
    }
    assert_eq!(next, 0x50_8000);
    let expected = [
        "present",
        "swapped",
        "guard",
        "untouched",
        "present",
        "untouched",
    ];
    assert_eq!(states, expected);
}

#[test]
fn a_unit_across_two_pages_needs_both() {
    let mut session = Session::on(heap());
    assert_eq!(session.says("x/xw 0x500ffe"), "0x500ffe:       0x0201fffe");
    let said = session.says("x/3xw 0x501ffa");
    assert_eq!(
        said,
        "0x501ffa:       0x00000000\n\
         0x501ffe:       <not resident: swapped>\n\
         0x502002:       <not resident: swapped>"
    );
    // A text that runs into what is not there: as much of it as is.
    assert_eq!(
        session.says("x/2s 0x505ffa - 2"),
        "0x505ff8:       \"xxcross\"\n0x506000:       <not resident: untouched>  8 KiB"
    );
}

#[test]
fn where_nothing_is_mapped() {
    let mut session = Session::on(heap());
    let Error::Unmapped { nearest, .. } = session.refuses("x/8xb 0x100") else {
        panic!("nothing is there");
    };
    assert_eq!(nearest.len(), 1);
    let said = session.says("x/2xg 0x507ff8");
    assert!(
        said.ends_with("0x508000:       <not resident: unmapped>"),
        "{said}"
    );
    assert!(matches!(
        session.refuses("x/0x 0x500000"),
        Error::Refused { .. }
    ));
}

#[test]
fn a_page_that_goes_away_meanwhile_is_no_answer() {
    let fake = heap();
    fake.watched.gone_after_read.lock().unwrap().push(0x500);
    let mut session = Session::on(fake);
    let said = session.says("x/xg 0x500000");
    assert!(said.starts_with("0x500000:       <not re"), "{said}");
}

#[test]
fn only_an_explicit_word_reads_through() {
    let mut fake = heap();
    // What a fault would bring in.
    fake.pages.insert(0x504, vec![7; 4096]);
    let mut session = Session::on(fake);
    assert_eq!(
        session.says("x/2xb 0x504000"),
        "0x504000:       <not resident: untouched>  2 B"
    );
    let said = session.says("x/2xb --fault 0x504000");
    assert!(
        said.starts_with(
            "0x504000:       0x07    0x07  (faulted in: was untouched)\nnote: --fault: 1 page "
        ),
        "{said}"
    );
    // Nothing comes: it is said to be as it is.
    assert_eq!(
        session.says("x/xb --fault 0x503000"),
        "0x503000:       <not resident: guard>"
    );
}
