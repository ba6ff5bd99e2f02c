//! Golden text and JSON of every record, and what holds for all of them.

pub(in crate::command) mod hostile;
pub(in crate::command) mod memory;
pub(in crate::command) mod pages;
pub(in crate::command) mod pictures;
pub(in crate::command) mod regions;
pub(in crate::command) mod samples;
pub(in crate::command) mod session;

use crate::command::ps::samples::process_row;
use crate::command::translate::samples::{hidden_run, run};
use crate::command::who::records::samples::who_counted;
use crate::command::who::records::{SearchEnd, WhoSummary};
use crate::command::{RECORDS, account, huge};
use crate::kernel::{Kind, Name, PageFlags, State};
use crate::render::{Json, More, Record, Renderer, Text, Theme, theme};
use crate::report::{
    AccessOutcome, Effect, ErrorPlace, ErrorReport, Explanation, FieldDescription, Note, Reason, RegionReport, Shape,
    Translation, WhoCounts,
};
use jiff::tz::TimeZone;
use samples::*;
use serde_json::Value;
use snapbox::{IntoData, assert_data_eq, file, str};
use std::collections::BTreeSet;

fn rendered(renderer: &mut dyn Renderer, records: &[Box<dyn Record>]) -> String {
    let mut out = Vec::new();
    for record in records {
        renderer.record(record.as_ref(), &mut out).unwrap();
    }
    renderer.finish(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn text(width: Option<usize>, records: &[Box<dyn Record>]) -> String {
    let mut renderer = Text::with_time_zone(Theme::PLAIN, width, TimeZone::UTC);
    rendered(&mut renderer, records)
}

/// The name of its type in JSON.
fn name(record: &dyn Record) -> String {
    record.json()["type"].as_str().unwrap().to_owned()
}

/// Every sample, sorted by its name.
fn all_by_name() -> Vec<Box<dyn Record>> {
    let mut samples = samples::all();
    samples.sort_by_key(|record| name(record.as_ref()));
    samples
}

/// Every sample by itself, under its name.
fn gallery(width: Option<usize>) -> String {
    let one = |record: Box<dyn Record>| format!("--- {}\n{}\n", name(record.as_ref()), text(width, &[record]));
    all_by_name().into_iter().map(one).collect()
}

#[test]
fn the_method_and_small_rows_come_with_full_only() {
    let samples =
        || account::records::samples::all().into_iter().chain(huge::records::samples::all()).collect::<Vec<_>>();
    let mut renderer = Text::new(Theme::PLAIN, None);
    renderer.show(More::All);
    let (full, plain) = (rendered(&mut renderer, &samples()), text(None, &samples()));
    for method in [
        "the sums equal smaps_rollup: Rss, Anonymous",
        "100 MiB is mapped twice",
        "[heap]         another part of the huge page has small pages already",
        "   64 KiB  madvise",
        "rules of Linux 6.18.44; a huge page has 2 MiB",
        "settings: memory madvise; ",
    ] {
        assert!(full.contains(method) && !plain.contains(method), "{method}\n{full}\n{plain}");
    }
    assert!(plain.contains("under 1 % each: another part of the huge page has small pages already 1 MiB\n"), "{plain}");
    assert!(plain.contains("under 1 % each: 1 row, 4 KiB (`full` lists them)\n"), "{plain}");
    // With `top` these rows were asked for.
    renderer.show(More::SmallRows);
    let top = rendered(&mut renderer, &samples());
    assert!(!top.contains("under 1 %") && !top.contains("the sums equal"), "{top}");
    // It is for one command.
    assert_eq!(rendered(&mut renderer, &samples()), plain);
}

#[test]
fn every_record_at_80_and_120_columns() {
    assert_data_eq!(gallery(Some(80)), file!["golden/80.txt"].raw());
    assert_data_eq!(gallery(Some(120)), file!["golden/120.txt"].raw());
}

#[test]
fn no_line_is_wider_than_its_terminal() {
    for width in [60, 72, 80, 100, 120, 140, 200] {
        for line in gallery(Some(width)).lines() {
            let columns = theme::columns(line);
            // A name without blanks may be longer than any line.
            let longest = line.split(' ').map(theme::columns).max();
            let is_one_word = longest.is_some_and(|word| word + 34 > width);
            assert!(columns <= width || is_one_word, "{width}: {line}");
        }
    }
}

#[test]
fn a_narrow_terminal_breaks_no_word() {
    const WIDTH: usize = 40;
    for line in gallery(Some(WIDTH)).lines() {
        // Lines of memory with their symbols are as in gdb.
        let is_memory = line.contains('<');
        let is_one_word = line.split(' ').any(|word| theme::columns(word) > WIDTH / 2);
        assert!(theme::columns(line) <= WIDTH || is_memory || is_one_word, "{line}");
    }
}

#[test]
fn every_record_in_a_pipe_is_whole() {
    assert_data_eq!(gallery(None), file!["golden/piped.txt"].raw());
}

#[test]
fn every_record_in_json() {
    let json = rendered(&mut Json, &all_by_name());
    assert_data_eq!(json, file!["golden/records.jsonl"].raw());
}

/// The fields of a type as they are described. Those in brackets are there only when they say something.
fn fields(shape: &Shape) -> Vec<String> {
    let written =
        |field: &FieldDescription| if field.is_optional { format!("[{}]", field.name) } else { field.name.to_owned() };
    shape.form.fields().iter().map(written).collect()
}

/// What the JSON interface promises: a change of this file is a change of the interface.
#[test]
fn the_fields_of_every_record() {
    let line = |shape: &Shape| format!("{}: {}\n", shape.name, fields(shape).join(" "));
    let all: String = RECORDS.iter().map(line).collect();
    assert_data_eq!(all, file!["golden/fields.txt"].raw());
    for shape in &*RECORDS {
        for field in shape.form.fields() {
            assert!(!field.about.is_empty(), "{} of {}", field.name, shape.name);
        }
    }
}

#[test]
fn json_has_the_described_fields_and_no_others() {
    let mut seen = BTreeSet::new();
    for record in all() {
        let json = record.json();
        let name = name(record.as_ref());
        let mut rest: BTreeSet<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        rest.remove("type");
        let shape = RECORDS.iter().find(|shape| shape.name == name).unwrap();
        for field in fields(shape) {
            let bare = field.trim_matches(['[', ']']);
            assert!(rest.remove(bare) || field != bare, "{name} lacks {field}");
        }
        assert!(rest.is_empty(), "{name} has also {rest:?}");
        seen.insert(name);
    }
    for shape in &*RECORDS {
        assert!(seen.contains(shape.name), "no sample of {}", shape.name);
    }
}

#[test]
fn an_address_of_the_kernel_is_no_vsyscall_page() {
    for (has_region, is_named) in [(true, true), (false, false)] {
        let mut page = absent(State::Outside, None, 0);
        page.region = page.region.filter(|_| has_region);
        let records: [Box<dyn Record>; 2] = [Box::new(explained(page.clone())), Box::new(page)];
        for record in records {
            let written = text(None, &[record]);
            assert!(written.contains("which ends with user space"), "{written}");
            assert_eq!(written.contains("the vsyscall page"), is_named, "{written}");
        }
    }
}

#[test]
fn every_state_and_kind_reads_as_words() {
    let records: Vec<Box<dyn Record>> = State::ALL
        .iter()
        .map(|&state| (state, None))
        .chain(Kind::ALL.iter().map(|&kind| (State::Untouched, Some(kind))))
        .map(|(state, kind)| Box::new(absent(state, kind, 0)) as Box<dyn Record>)
        .collect();
    let lines = text(None, &records);
    let states: Vec<&str> = lines.lines().filter(|line| line.starts_with("state")).collect();
    assert_data_eq!(
        states.join("\n"),
        str![[r#"
state     present                mapped to a page frame
state     swapped                in a swap area
state     guard                  a guard page (MADV_GUARD_INSTALL): any access raises SIGSEGV
state     poisoned               a poison marker (UFFDIO_POISON, or failed memory): any access raises SIGBUS
state     uffd_wp                no page, only a write-protection marker of userfaultfd
state     migrating              being moved to another frame by the kernel
state     hwpoison               in a frame that failed in hardware: any access raises SIGBUS
state     device                 in device memory, or reserved for a device: an access by the CPU brings it back
state     untouched              in a region, but not mapped yet, or no longer mapped
state     pfn_mapped             mapped straight to physical memory (VM_PFNMAP), which the page map does not show
state     outside                beyond the page map, which ends with user space: the vsyscall page
state     unmapped               in no region: an access raises SIGSEGV, unless it makes a stack grow
state     untouched, anonymous   nothing there yet: `explain` predicts what an access does
state     untouched, file        nothing mapped here: an access maps a page of the file
state     untouched, shmem       nothing mapped here: an access maps a page of the shared memory
state     untouched, private_copy  a private copy of a page of a file
state     untouched, zero        the shared zero page
state     untouched, huge_zero   the shared huge zero page
state     untouched, ksm         a page merged with equal pages (samepage merging)
state     untouched, hugetlb     nothing mapped here: an access maps the page of its file, or one from the hugetlb pool
state     untouched, vdso        code and data that the kernel provides to the process
state     untouched, device_memory  memory of a device
state     untouched, driver_memory  nothing mapped here: the driver may map a page of its own
state     untouched, secret      nothing mapped here: an access maps a page of the secret memory
state     untouched, cached      a page in the page cache: an access maps it without reading the file
state     untouched, not_cached  a page that is not in the page cache: an access reads the file
state     untouched, past_end    a page beyond the end of the file: an access raises SIGBUS
state     untouched, maybe_swapped  a page of shared memory with contents, but not in memory: swapped out
"#]]
        .raw()
    );
}

#[test]
fn hidden_frames_are_hidden_and_never_zero() {
    let translation = text(None, &[Box::new(hidden())]);
    assert!(translation.contains("physical  hidden"), "{translation}");
    assert_eq!(translation.matches("CAP_SYS_ADMIN").count(), 1, "{translation}");
    let records: [Box<dyn Record>; 2] = [Box::new(hidden_run()), Box::new(hidden_pages())];
    for record in records {
        let rows = text(None, &[record]);
        let row = rows.lines().nth(1).unwrap();
        assert!(row.contains("hidden"), "{rows}");
        assert!(!row.split_whitespace().any(|word| word == "0" || word == "0x0"), "{rows}");
    }
}

#[test]
fn a_mark_of_exclusive_that_a_map_count_contradicts_is_explained() {
    let clause = "not exclusive: bit 56 of the entry is that of the first page of the huge page";
    let of_huge_page = Translation { huge: Ok(true), exclusive: Ok(false), ..present() };
    let alike = Translation { exclusive: Ok(true), ..of_huge_page.clone() };
    for (translation, explained) in [(of_huge_page, true), (alike, false), (present(), false)] {
        let text = text(None, &[Box::new(translation)]);
        assert_eq!(text.contains(clause), explained, "{text}");
    }
}

#[test]
fn explain_says_what_is_special_of_a_page() {
    let with = |flags: PageFlags| {
        let mut page = present();
        page.words.flags = Ok(flags);
        text(None, &[Box::new(explained(page))])
    };
    let everyday = PageFlags::ANON | PageFlags::LRU;
    for (discardable, words) in [
        (Ok(true), "until the next write, the kernel may discard its contents"),
        (Ok(false), "written since: the kernel keeps its contents"),
        (Err(Reason::Changed), "may discard its contents if it was not written since"),
    ] {
        let mut page = present();
        page.words.flags = Ok(everyday);
        let written = text(None, &[Box::new(Explanation { discardable, ..explained(page) })]);
        assert!(written.replace("\n            ", " ").contains(words), "{written}");
    }
    // The flags of a tail do not tell on old kernels.
    let mut tail = present();
    tail.words.flags = Ok(PageFlags::ANON | PageFlags::COMPOUND_TAIL);
    let written = text(None, &[Box::new(Explanation { discardable: Ok(true), ..explained(tail) })]);
    assert!(written.contains("MADV_FREE"), "{written}");
    let given_up = with(everyday);
    assert!(given_up.contains("MADV_FREE"), "{given_up}");
    let kept = with(everyday | PageFlags::SWAPBACKED);
    assert!(!kept.contains("MADV_FREE"), "{kept}");
    // Part of a large folio.
    assert!(kept.contains("15 of them mapped in this region"), "{kept}");
}

#[test]
fn explain_says_which_mapping_is_locked() {
    for (region_locked, words) in [
        (Some(true), "by the process; mlock keeps a page in memory, but not in its frame"),
        (Some(false), "this region is not locked"),
        (None, "the frame, here or in another process"),
    ] {
        let mut page = present();
        page.words.flags = Ok(PageFlags::ANON | PageFlags::LRU | PageFlags::MLOCKED);
        let written = text(None, &[Box::new(Explanation { region_locked, ..explained(page) })]);
        assert!(written.replace("\n            ", " ").contains(words), "{written}");
    }
}

#[test]
fn a_copy_of_a_page_of_a_huge_mapping_is_small_and_splits_it() {
    let write_to = |huge, kind| {
        let page = Translation { huge: Ok(huge), kind: Some(kind), ..present() };
        let explanation = Explanation { next_write: Ok(AccessOutcome::of(&[Effect::Copy])), ..explained(page) };
        text(None, &[Box::new(explanation)])
    };
    let split = "a copy of these 4 KiB alone, and the huge mapping is split into small pages";
    let said = write_to(true, Kind::Anonymous);
    assert!(said.contains(split), "{said}");
    for (huge, kind) in [(false, Kind::Anonymous), (true, Kind::Hugetlb)] {
        let said = write_to(huge, kind);
        assert!(said.contains("a copy of the page"), "{said}");
    }
}

/// Its own mark decides about the copy, and only that of the first page is visible.
#[test]
fn a_later_page_of_a_folio_says_why_its_copy_is_uncertain() {
    let write_to = |flags, effects: &[Effect]| {
        let mut page = present();
        page.words.flags = Ok(PageFlags::ANON | flags);
        text(None, &[Box::new(Explanation { next_write: Ok(AccessOutcome::of(effects)), ..explained(page) })])
    };
    let uncertain = [Effect::Nothing, Effect::Reuse, Effect::Copy];
    let reason = "(its own mark decides, and the kernel shows only that of the first page of a folio)";
    let said = write_to(PageFlags::COMPOUND_TAIL, &uncertain);
    assert!(said.contains(reason), "{said}");
    for (flags, effects) in [
        (PageFlags::COMPOUND_HEAD, &uncertain[..]),
        (PageFlags::COMPOUND_TAIL, &[Effect::Copy]),
        (PageFlags::COMPOUND_TAIL, &[Effect::Nothing]),
    ] {
        let said = write_to(flags, effects);
        assert!(!said.contains("its own mark"), "{said}");
    }
    let bit = "(the write bit of its page-table entry decides)";
    for (effects, decides) in [
        (&[Effect::Nothing, Effect::Reuse][..], true),
        (&[Effect::Reuse, Effect::Nothing], true),
        (&uncertain, false),
        (&[Effect::Nothing], false),
    ] {
        let said = write_to(PageFlags::empty(), effects);
        assert_eq!(said.contains(bit), decides, "{said}");
    }
}

#[test]
fn once_all_mappings_are_found_it_does_not_matter_what_could_not_be_read() {
    let said = |ended| {
        let summary =
            WhoSummary { counts: WhoCounts { unreadable: 1, ..who_counted().counts }, ended, ..who_counted() };
        text(None, &[Box::new(summary)])
    };
    let unread = "could not be read";
    assert!(!said(SearchEnd::Counted).contains(unread));
    assert!(said(SearchEnd::Interrupted).contains(unread));
}

#[test]
fn a_walk_has_one_heading_and_says_each_reason_once() {
    let walk: [Box<dyn Record>; 6] = [
        Box::new(pages()),
        Box::new(hidden_pages()),
        Box::new(hidden_pages()),
        Box::new(huge_pages()),
        Box::new(untouched_pages()),
        Box::new(walk_summary()),
    ];
    assert_data_eq!(
        text(Some(120), &walk),
        str![[r#"
40,512 pages, 158 MiB: 40,000 present, 2 swapped, 510 untouched; 1201 physical runs, the longest 2 MiB at 0x555555558000
physical addresses 0xfffff000 to 0x4eb04ffff: some below 4 GiB, some not (4 zero pages left out)

start          end                size pages  state     kind            frame    mapcount  region      flags
0x7ffff7dc0000 0x7ffff7de8000  160 KiB    40  present   file            0x1a4eac       31  libc.so.6   RUlAM
0x7ffff7de8000 0x7ffff7de9000    4 KiB     1  present   file            hidden          ?  libc.so.6   ?
0x7ffff7de8000 0x7ffff7de9000    4 KiB     1  present   file            hidden          ?  libc.so.6   ?
0x7fffe0000000 0x7fffe0200000 2048 KiB   512  present   anonymous huge  0x13d400       ~1  (anonymous) UlAMabHtd
0x555555579000 0x555555679000 1024 KiB   256  untouched anonymous       -               -  [heap]      -
stopped early: the totals cover only the rows above
the regions changed during the command: run it again for a consistent answer
letters   `help flags` explains flags and their letters
hidden    frame: frame numbers are hidden without CAP_SYS_ADMIN (attach or capture with sudo, outside of containers:
          see `help rights`)
unknown   flags, map count, order: /proc/kpageflags may be read by root alone

"#]]
        .raw()
    );
}

#[test]
fn the_answer_to_rows_stands_before_them_unless_they_are_very_many() {
    let said = |rows: usize| {
        let mut walk: Vec<Box<dyn Record>> = (0..rows).map(|_| Box::new(pages()) as _).collect();
        walk.extend([Box::new(Note { message: "a remark".into() }) as Box<dyn Record>, Box::new(walk_summary())]);
        text(None, &walk)
    };
    let starts = |said: &str, with: &str| said.lines().next().is_some_and(|line| line.starts_with(with));
    let few = said(3);
    assert!(starts(&few, "40,512 pages") && few.contains("present   file"), "{few}");
    let remarks: Vec<&str> = few.lines().skip_while(|line| !line.starts_with("note: ")).collect();
    assert!(
        remarks.iter().any(|line| line.starts_with("stopped early: the totals cover only the rows above")),
        "{few}"
    );
    let many = said(40_000);
    assert!(starts(&many, "start ") && many.contains("\n40,512 pages"));
    assert!(starts(&said(0), "note: "));
}

#[test]
fn notes_of_a_table_stand_under_it_also_after_a_block() {
    let said: [Box<dyn Record>; 2] = [Box::new(present()), Box::new(hidden_run())];
    let text = text(Some(120), &said);
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
    assert!(at("0x7ffff7dc8000") < at("hidden    physical, frame: "), "{text}");
    assert_eq!(text.matches("hidden    physical").count(), 1, "{text}");
}

#[test]
fn what_is_unknown_of_frames_has_its_reason_under_the_table() {
    let mut unknown = frames();
    unknown.words.map_count = Err(crate::report::Reason::Changed);
    let said: [Box<dyn Record>; 2] = [Box::new(unknown), Box::new(frames_summary())];
    let text = text(Some(120), &said);
    let notes: Vec<&str> = text.lines().skip_while(|line| !line.contains("stopped")).collect();
    assert!(notes.len() == 2 && notes[1].starts_with("unknown   map count: "), "{text}");
}

#[test]
fn blocks_and_tables_stand_apart() {
    let said: [Box<dyn Record>; 4] =
        [Box::new(present()), Box::new(run()), Box::new(run()), Box::new(group("present", 12))];
    let said = text(None, &said);
    let blank: Vec<usize> =
        said.lines().enumerate().filter(|(_, line)| line.is_empty()).map(|(number, _)| number).collect();
    assert_eq!(blank, [12, 16], "{said}");
    assert!(!said.ends_with("\n\n"));
}

fn drawn(text_of_line: &str, column: usize, width: usize) -> String {
    let error = ErrorReport {
        message: "no".into(),
        place: Some(ErrorPlace { file: None, line: None, column: Some(column), width, text: text_of_line.into() }),
        ..ErrorReport::default()
    };
    text(Some(80), &[Box::new(error)])
}

#[test]
fn the_caret_stands_under_its_place_whatever_comes_before() {
    assert_eq!(drawn("t 漢 x", 5, 1), "error: no\n  t 漢 x\n       ^\n");
    assert_eq!(drawn("t\t\x1b x", 5, 1), "error: no\n  t \\x1b x\n         ^\n");
    assert_eq!(drawn("t \x07\x07", 3, 2), "error: no\n  t \\x07\\x07\n    ^~~~~~~~\n");
    // At the end of the line, and beyond it.
    assert_eq!(drawn("t ", 3, 0), "error: no\n  t\n    ^\n");
    assert_eq!(drawn("t", usize::MAX, usize::MAX), "error: no\n  t\n   ^\n");
}

#[test]
fn a_whole_line_is_shown_where_it_comes_from_a_file() {
    let shown = |file: Option<&str>| {
        let place = ErrorPlace {
            file: file.map(Name::from),
            line: Some(3),
            column: None,
            width: 0,
            text: format!(" translate\t$sp {}", "x".repeat(200_000)),
        };
        let error = ErrorReport { message: "no".into(), place: Some(place), ..ErrorReport::default() };
        text(Some(40), &[Box::new(error)])
    };
    assert_eq!(shown(Some("tour.pmdb")), "tour.pmdb:3: error: no\n  translate $sp xxxxxxxxxxxxxxxxxxxxx…\n");
    assert_eq!(shown(None), "error: no\n");
}

#[test]
fn of_an_endless_line_the_surroundings_are_drawn() {
    let line = "(".repeat(200_000);
    for column in [1, 100, 100_000, 200_001] {
        let drawing = drawn(&line, column, 1);
        let lines: Vec<&str> = drawing.lines().collect();
        assert!(lines[1].chars().count() <= 80, "{drawing}");
        let caret = lines[2].chars().position(|c| c == '^').unwrap();
        let above = lines[1].chars().nth(caret);
        assert_eq!(above.unwrap_or('('), '(', "{drawing}");
    }
    let marked = "x".repeat(500) + "!" + &"x".repeat(500);
    let drawing = drawn(&marked, 501, 1);
    let lines: Vec<&str> = drawing.lines().collect();
    let caret = lines[2].chars().position(|c| c == '^').unwrap();
    assert_eq!(lines[1].chars().nth(caret), Some('!'), "{drawing}");
}

#[test]
fn json_escapes_what_a_terminal_would_obey_and_loses_nothing() {
    let said = "\u{9b}2J \u{202e} \x7f \u{e0001} é \\ \"";
    let note = Box::new(crate::report::Note { message: said.into() });
    let line = rendered(&mut Json, &[note]);
    assert!(line.trim_end().chars().all(crate::kernel::text::is_plain), "{line:?}");
    let json: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(json["message"], said);
    // Names come escaped, as in text: two different ones never look the same.
    let mut row = process_row();
    row.name = Name::new(*b"\xff\\xff");
    let json: Value = serde_json::from_str(&rendered(&mut Json, &[Box::new(row)])).unwrap();
    assert_eq!(json["name"], "\\xff\\\\xff");
}

/// Addresses of the kernel's half have more digits than others.
#[test]
fn every_row_stands_under_its_titles() {
    let vsyscall = RegionReport {
        start: va(0xffff_ffff_ff60_0000),
        end: va(0xffff_ffff_ff60_1000),
        name: Name::from("[vsyscall]"),
        ..region_row()
    };
    let records = [region_row(), vsyscall].map(|row| Box::new(row) as Box<dyn Record>);
    for width in [60, 80, 100, 110, 120] {
        let shown = text(Some(width), &records);
        let mut titles = "";
        for line in shown.lines().skip_while(|line| !line.starts_with("start ")).take(3) {
            if line.starts_with("start ") {
                titles = line;
                continue;
            }
            let [name, perms] = ["name", "perms"].map(|title| titles.find(title));
            assert_eq!(line.find("r--p"), perms, "{shown}");
            let named = name.and_then(|name| line.get(name..)).expect("a name");
            assert!(!named.starts_with(' '), "{shown}");
            assert!(line.get(..name.unwrap()).unwrap().ends_with("  "), "{shown}");
        }
        assert_eq!(shown.matches("start ").count(), 1, "{shown}");
    }
}
