//! What memory holds, on a target made of tables.

mod find;
mod heap;
mod regions;
mod soft_dirty;

use super::super::floor::{Error, Flow, Resume};
use super::{Kept, all, attached, first, last, notes, only, run_line};
use crate::command::examine::MemoryRow;
use crate::command::how::KernelRead;
use crate::command::soft_dirty::{SoftDirtyCleared, SoftDirtyReport};
use crate::command::telescope::Telescope;
use crate::command::translate::ContiguousRun;
use crate::inspect::ByteSource;
use crate::kernel::VirtualAddress;
use crate::process::fake::Fake;
use crate::render::{Record, Renderer, Text, Theme};
use crate::report::{self, Note, RegionReport, WalkSummary};
use crate::state::DebugState;
use std::sync::atomic::Ordering;

const SWAP_ENTRY: u64 = 1 << 62;

/// A heap of eight pages: 0x500000 and 0x501000 are there, then come one each that is swapped, guarded, untouched;
/// 0x505000 is there.
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
        Session(attached(fake.target()))
    }

    fn run(&mut self, line: &str, resume: Option<Resume>) -> (Vec<Box<dyn Record>>, Result<Flow, Error>) {
        let mut sink = Kept { records: Vec::new(), stop_at: usize::MAX };
        let flow = run_line(&mut self.0, line, resume, &mut sink);
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

fn written(records: &[Box<dyn Record>]) -> String {
    let mut text = Text::new(Theme::PLAIN, None);
    let mut out = Vec::new();
    for record in records {
        text.record(record.as_ref(), &mut out).expect("a buffer");
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
    // As many again; with a format it is one.
    assert_eq!(session.says("x"), "0x500012:       0x12    0x13");
    assert_eq!(session.says("x/d"), "0x500014:       20");
    let (records, flow) = session.run("x/2xb 0x500000", None);
    assert_eq!(records.len(), 1);
    let next = Resume::Address(VirtualAddress::new(0x50_0002));
    assert_eq!(flow.expect("a row"), Flow::More(next));
    // An empty line: the same again from there.
    let (records, _) = session.run("x/2xb 0x500000", Some(next));
    assert_eq!(written(&records), "0x500002:       0x02    0x03");
}

#[test]
fn backward_it_is_what_is_before_an_address_and_the_next_goes_on_before_that() {
    let mut session = Session::on(heap());
    let cut = format!("0x505f38:       \"{}cross\"", "x".repeat(194));
    for (line, said) in [
        ("x/-3xh 0x500010", "0x50000a:       0x0b0a  0x0d0c  0x0f0e"),
        // As gdb: one, forward.
        ("x", "0x50000a:       0x0b0a"),
        ("x/-2xb", "0x50000a:       0x0a    0x0b"),
        ("print $_", "$1 = 0x50000b  in [heap]"),
        ("x/-x", "0x500009:       0x09"),
        ("x/-s 0x505003", "0x505003:       \"caf\u{e9}\\n\\377\""),
        ("x", "0x505002:       \"\""),
        // What cannot be read ends it, and counts.
        (
            "x/-4s 0x505008",
            "0x504000:       <not resident: untouched>  (4 KiB)\n0x505000:       \"hi\"\n\
             0x505003:       \"caf\u{e9}\\n\\377\"",
        ),
        // No text is where nothing can be read; and one is cut where gdb cuts it.
        ("x/-s 0x506000", &cut),
        ("x/-2xb 0x504001", "0x503fff:       <not resident: guard>\n0x504000:       <not resident: untouched>"),
        ("x/-xb 0x508000", "0x507fff:       <not resident: untouched>"),
    ] {
        assert_eq!(session.says(line), said, "{line}");
    }
    for line in ["x/-xb 0x500000", "x/-2xg 8", "x/-0x 0x500010"] {
        session.refuses(line);
    }
    let (_, flow) = session.run("x/-2xb 0x500010", None);
    let next = Resume::Address(VirtualAddress::new(0x50_000e));
    assert_eq!(flow.expect("a row"), Flow::More(next));
    let (records, _) = session.run("x/-2xb 0x500010", Some(next));
    assert_eq!(written(&records), "0x50000c:       0x0c    0x0d");
}

#[test]
fn the_target_s_own_order_and_width() {
    let mut fake = heap();
    fake.layout.is_little_endian = false;
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
    assert!(said.starts_with("0x505000:       u\"\u{6869}c\u{6166}\u{c3a9}"), "{said}");
}

#[test]
fn what_is_not_resident_is_not_touched() {
    let fake = heap();
    let watched = fake.watched.clone();
    let mut session = Session::on(fake);
    for (line, said) in [
        ("x/8xb 0x502000", "0x502000:       <not resident: swapped>  (8 B)"),
        ("x/8xb 0x503ff8", "0x503ff8:       <not resident: guard>  (8 B)"),
        ("x/xg 0x504000", "0x504000:       <not resident: untouched>"),
        ("x/s 0x504000", "0x504000:       <not resident: untouched>  (4 KiB)"),
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
        let row = record.downcast_ref::<MemoryRow>().unwrap_or_else(|| panic!("{record:?}"));
        assert_eq!(row.address.get(), next);
        next += row.length;
        assert_eq!(row.bytes.is_some(), row.source.is_some());
        if states.last() != Some(&row.state.word()) {
            states.push(row.state.word());
        }
    }
    assert_eq!(next, 0x50_8000);
    let expected = ["present", "swapped", "guard", "untouched", "present", "untouched"];
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
        "0x505ff8:       \"xxcross\"\n0x506000:       <not resident: untouched>  (8 KiB)"
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
    assert!(said.ends_with("0x508000:       <not resident: unmapped>"), "{said}");
    assert!(matches!(session.refuses("x/0x 0x500000"), Error::Refused { .. }));
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
    assert_eq!(session.says("x/2xb 0x504000"), "0x504000:       <not resident: untouched>  (2 B)");
    let said = session.says("x/2xb --fault 0x504000");
    assert!(
        said.starts_with("0x504000:       0x07    0x07  (faulted in: was untouched)\nnote: --fault: 1 page "),
        "{said}"
    );
    // Nothing comes: it is said to be as it is.
    assert_eq!(session.says("x/xb --fault 0x503000"), "0x503000:       <not resident: guard>");
}

#[test]
fn telescope_follows_addresses_to_their_ends() {
    let mut words = Vec::new();
    for word in [
        0x50_0010u64, // a number
        0x50_0018,    // itself, by way of what is there
        0x41,
        0x50_0008,
        0x50_5ffa, // a text that ends with its page
        0x50_2000, // swapped
        0x50_0038,
        0x50_0030, // in a circle
    ] {
        words.extend(word.to_le_bytes());
    }
    let mut session = Session::on(heap().page(0x50_0000, 0x1234, &words));
    let said = session.says("telescope 0x500000");
    let rows: Vec<&str> = said.lines().collect();
    assert_eq!(
        rows,
        [
            "0x500000        +0x000  0x500010  [heap] rw-p \u{2192} 0x41",
            "0x500008        +0x008  0x500018  [heap] rw-p \u{2192} 0x500008 (a cycle)",
            "0x500010        +0x010  0x41",
            "0x500018        +0x018  0x500008  [heap] rw-p \u{2192} 0x500018 (a cycle)",
            "0x500020        +0x020  0x505ffa  [heap] rw-p \u{2192} \"cross\"",
            "0x500028        +0x028  0x502000  [heap] rw-p \u{2192} <not resident: swapped>",
            "0x500030        +0x030  0x500038  [heap] rw-p \u{2192} 0x500030 (a cycle)",
            "0x500038        +0x038  0x500030  [heap] rw-p \u{2192} 0x500038 (a cycle)",
        ],
        "{said}"
    );
}

/// Besides the heap a file of four pages: the first is mapped in, the second only in the page cache, the others not
/// even there.
fn heap_and_file() -> Fake {
    let mut bytes = vec![b'.'; 4 << 12];
    bytes[0xffd..0x1004].copy_from_slice(b"abcdef\0");
    bytes[0x1010..0x1018].copy_from_slice(&0x60_1018u64.to_le_bytes());
    bytes[0x1018..0x1020].copy_from_slice(b"a text\0\0");
    bytes[0x1ffd..0x2000].copy_from_slice(b"xyz");
    let first = bytes[..0x1000].to_vec();
    let mut fake = heap()
        .region(0x60_0000, 0x60_4000, "r--p", 7, "/lib/file")
        .file("/lib/file", bytes)
        .page(0x60_0000, 0x1400, &first);
    fake.cached.push(0x601);
    fake
}

#[test]
fn bytes_of_several_sources_are_one_answer_and_the_weaker_source_is_named() {
    let mut session = Session::on(heap_and_file());
    for (line, said) in [
        ("x/s 0x600ffd", "0x600ffd:       \"abcdef\"  (file)"),
        ("x/xw 0x600ffe", "0x600ffe:       0x65646362  (file)"),
        (
            "x/2s 0x601ffd",
            "0x601ffd:       \"xyz\"<not resident: untouched>  (file)\n\
             0x602000:       <not resident: untouched, not_cached>  (8 KiB)",
        ),
        ("x/s 0x501ff0", "0x501ff0:       \"\""),
        ("telescope 0x601010 1", "0x601010        +0x000  0x601018 (file)  file r--p (file) \u{2192} \"a text\""),
        ("telescope 0x600ffa 1", "0x600ffa        +0x000  0x65646362612e2e2e (file)"),
    ] {
        assert_eq!(session.says(line), said, "{line}");
    }
    let (records, _) = session.run("telescope 0x601010 1", None);
    let row: &Telescope = only(&records);
    assert_eq!(row.source, Some(ByteSource::File));
    assert_eq!(row.chain[0].source, Some(ByteSource::File));
}

#[test]
fn telescope_says_why_a_page_cache_is_not_looked_into() {
    let fake = heap_and_file().region(0x70_0000, 0x70_3000, "rw-s", 7, "/hidden").page(
        0x50_5000,
        0x1301,
        &0x70_1000u64.to_le_bytes(),
    );
    let mut session = Session::on(fake);
    let row = session.says("telescope 0x700000 1");
    assert!(row.contains("<not resident: untouched>  ("), "{row}");
    let link = session.says("telescope 0x505000 1");
    assert!(link.contains("0x701000") && link.contains("<not resident: untouched>  ("), "{link}");
    assert!(!session.says("telescope 0x504000 1").contains(">  ("));
}

#[test]
fn an_uncertain_state_is_only_most_likely() {
    // Without CAP_SYS_ADMIN the rest of the entry is hidden.
    let mut last = heap().pages.get(&0x505).cloned().unwrap_or_default();
    last.splice(4091.., *b"whole");
    let fake = heap().page(0x50_5000, 0x1301, &last).entry(0x50_2000, SWAP_ENTRY).entry(0x50_6000, SWAP_ENTRY);
    let mut session = Session::on(fake);
    for (line, said) in [
        ("x/xg 0x502000", "0x502000:       <not resident: most likely poisoned>"),
        ("x/s 0x505ffb", "0x505ffb:       \"whole\"<not resident: most likely poisoned>"),
        ("telescope 0x502000 1", "0x502000        +0x000  <not resident: most likely poisoned>"),
    ] {
        assert_eq!(session.says(line), said, "{line}");
        let (records, _) = session.run(line, None);
        let whys = all(&records).map(|row: &MemoryRow| &row.why).chain(all(&records).map(|row: &Telescope| &row.why));
        let [why] = whys.collect::<Vec<_>>()[..] else {
            panic!("{records:?}");
        };
        let reasons: Vec<String> = why.iter().map(|(_, why)| why.to_string()).collect();
        assert_eq!(reasons.len(), 1);
        assert!(reasons[0].starts_with("not certain: "), "{reasons:?}");
    }
    let Error::Evaluation(error) = session.refuses("print *0x502000") else {
        panic!("no page is there");
    };
    assert!(error.message.ends_with("its page is most likely poisoned"), "{error:?}");
    let said = session.says("find [heap], \"not there\"");
    assert!(said.contains("not certain"), "{said}");
    // What is certain is said as such.
    assert_eq!(session.says("x/xg 0x503000"), "0x503000:       <not resident: guard>");
}

#[test]
fn memory_of_a_device_is_not_read_even_with_fault() {
    let mut fake = heap().region(0x70_0000, 0x70_1000, "rw-s", 0, "/dev/mem");
    fake.pages.insert(0x700, vec![7; 4096]);
    let watched = fake.watched.clone();
    let mut session = Session::on(fake);
    assert_eq!(session.says("x/xw --fault 0x700000"), "0x700000:       <not read: pfn_mapped>");
    assert_eq!(watched.memory_reads.load(Ordering::Relaxed), 0);
}

/// A kernel that tracks soft-dirty pages sets bit 55 everywhere, on holes too: nothing but the entry looks different.
#[test]
fn a_soft_dirty_bit_on_every_entry_changes_no_answer() {
    let fake = heap_and_file()
        .region(0x70_0000, 0x70_1000, "rw-s", 0, "/dev/mem")
        .region(0x71_0000, 0x71_4000, "rw-p", 0, "")
        .entry(0x71_0000, SWAP_ENTRY | 1 << 57 | 1 << 5 | 31)
        .entry(0x71_1000, SWAP_ENTRY | 2 << 5 | 31)
        .entry(0x71_2000, SWAP_ENTRY | 0x1234 << 5 | 26)
        .entry(0x71_3000, SWAP_ENTRY | 0x1234 << 5 | 23);
    let tracked = Fake { soft_dirty: true, ..fake.clone() };
    let pages = (0x50_0000..0x50_8000u64).step_by(0x1000);
    let others = [0x60_0000, 0x60_1000, 0x60_2000, 0x70_0000, 0x80_0000];
    let others = others.into_iter().chain((0x71_0000..0x71_4000).step_by(0x1000));
    let each = pages
        .chain(others)
        .flat_map(|page| ["translate", "explain", "x/600xg"].map(|command| format!("{command} {page:#x}")));
    let whole = [
        "walk all",
        "walk all by state",
        "walk all by kind",
        "regions",
        "find all, \"abcdef\"",
        "telescope 0x601010 1",
        "translate 0x500000..0x508000",
    ];
    for line in each.chain(whole.map(str::to_owned)) {
        let [plain, tracked] = [&fake, &tracked].map(|fake| {
            let (records, flow) = Session::on(fake.clone()).run(&line, None);
            let objects = records.iter().map(|record| {
                let mut object = record.json();
                let fields = object.as_object_mut().expect("an object");
                _ = (fields.remove("entry"), fields.remove("soft_dirty"));
                if let Some(why) = fields.get_mut("why") {
                    why.as_object_mut().expect("an object").remove("soft_dirty");
                }
                object
            });
            (objects.collect::<Vec<_>>(), format!("{flow:?}"))
        });
        assert_eq!(tracked, plain, "{line}");
    }
}

#[test]
fn print_says_where_the_contents_of_a_cached_page_are_shown() {
    let mut session = Session::on(heap_and_file());
    for (line, hint) in [
        ("print u64(0x601018)", "the process has no page there; to read the page cache of the file: `x/xg 0x601018`"),
        ("print *0x602000", "a read would fault it in, and so change the process"),
    ] {
        let Error::Evaluation(error) = session.refuses(line) else {
            panic!("{line}");
        };
        assert!(error.message.ends_with("its page is untouched"), "{line}");
        assert_eq!(error.hint.as_deref(), Some(hint), "{line}");
    }
}

#[test]
fn a_number_shown_as_an_address_has_what_lies_there() {
    let mut session = Session::on(heap());
    for (line, said) in [
        ("print/a u32(0x500000) * 0 + 0x500010", "0x500010  in [heap]"),
        ("print/a 0x500010", "0x500010  in [heap]"),
        // What is said already is not said again.
        ("print/x 255", "0xff"),
        ("print 255", "255  (0xff)"),
        ("print/d 255", "255  (0xff)"),
    ] {
        let said_of = session.says(line);
        let (_, value) = said_of.split_once(" = ").expect("a kept value");
        assert_eq!(value, said, "{line}");
    }
}

#[test]
fn text_has_no_characters_of_eight_bytes() {
    let mut session = Session::on(heap());
    let said = "note: text has no characters of 8 bytes (g): shown in bytes\n0x505000:       \"hi\"";
    assert_eq!(session.says("x/sg 0x505000"), said);
    assert_eq!(session.says("x/sb 0x505000"), "0x505000:       \"hi\"");
}

#[test]
fn the_size_of_characters_lasts_while_it_goes_on() {
    let text: Vec<u8> = "ab\0cd\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let fake = heap().page(0x50_5000, 0x1301, &text);
    let mut session = Session::on(fake);
    assert_eq!(session.says("x/sh 0x505000"), "0x505000:       u\"ab\"");
    assert_eq!(session.says("x"), "0x505006:       u\"cd\"");
    // Elsewhere it is of bytes again, as in gdb.
    assert_eq!(session.says("x 0x505000"), "0x505000:       \"a\"");
    session.says("x/sh 0x505000");
    assert_eq!(session.says("x/x 0x505000"), "0x505000:       0x61");
}

#[test]
fn echo_ends_its_line_once() {
    let mut session = Session::on(heap());
    for line in ["echo so", "echo so\\n"] {
        let (records, _) = session.run(line, None);
        let said: &report::EchoedText = only(&records);
        assert_eq!(said.text, "so\n", "{line}");
    }
}

#[test]
fn after_info_line_x_begins_at_that_line() {
    let mut session = Session::on(heap());
    session.says("x/xb 0x500010");
    session.says("info line 0x500020");
    assert_eq!(session.says("x/xb"), "0x500020:       0x20");
    assert_eq!(session.says("x/xb"), "0x500021:       0x21");
}

#[test]
fn info_line_of_a_file_alone_says_that_a_line_is_missing() {
    let mut session = Session::on(heap());
    for (line, hint) in [
        ("info line c.c", "add a line: `info line c.c:1`"),
        (
            "info line nothing",
            "`regions` lists the mapped regions; local variables, constants and types are only in gdb",
        ),
    ] {
        let Error::Evaluation(error) = session.refuses(line) else {
            panic!("{line}");
        };
        assert_eq!(error.hint.as_deref(), Some(hint), "{line}");
    }
}
