//! Golden text and JSON of every record, and what holds for all of them.

mod hostile;
mod memory;
mod pages;
mod pictures;
mod reads;
mod regions;
mod samples;
mod session;
mod snapshots;
mod who;

use super::{Json, Renderer, Text, Theme, printable};
use crate::kernel::{Kind, Name, PageFlags, State};
use crate::report::{
    Effect, ErrorPlace, ErrorReport, Explanation, FieldDescription, Outcome, RECORDS, Record,
    RegionReport, SearchEnd, Translation, WhoCounts, WhoSummary,
};
use jiff::tz::TimeZone;
use samples::*;
use serde_json::Value;
use snapbox::{IntoData, assert_data_eq, file, str};
use std::collections::BTreeSet;

fn rendered(renderer: &mut dyn Renderer, records: &[Record]) -> String {
    let mut out = Vec::new();
    for record in records {
        renderer.record(record, &mut out).unwrap();
    }
    renderer.finish(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn text(width: Option<usize>, records: &[Record]) -> String {
    let mut renderer = Text::with_time_zone(Theme::PLAIN, width, TimeZone::UTC);
    rendered(&mut renderer, records)
}

/// Every sample by itself, under its name.
fn gallery(width: Option<usize>) -> String {
    let one = |(name, record)| format!("--- {name}\n{}\n", text(width, &[record]));
    samples::all().into_iter().map(one).collect()
}

#[test]
fn every_record_in_a_wide_terminal() {
    assert_data_eq!(gallery(Some(140)), file!["golden/wide.txt"].raw());
}

#[test]
fn every_record_in_a_narrow_terminal() {
    assert_data_eq!(gallery(Some(80)), file!["golden/narrow.txt"].raw());
}

#[test]
fn every_record_at_60_100_120_and_200_columns() {
    assert_data_eq!(gallery(Some(60)), file!["golden/60.txt"].raw());
    assert_data_eq!(gallery(Some(100)), file!["golden/100.txt"].raw());
    assert_data_eq!(gallery(Some(120)), file!["golden/120.txt"].raw());
    assert_data_eq!(gallery(Some(200)), file!["golden/200.txt"].raw());
}

#[test]
fn no_line_is_wider_than_its_terminal() {
    for width in [60, 72, 80, 100, 120, 200] {
        for line in gallery(Some(width)).lines() {
            let columns = printable::columns(line);
            // A name without blanks may be longer than any line.
            let longest = line.split(' ').map(printable::columns).max();
            let is_one_word = longest.is_some_and(|word| word + 34 > width);
            assert!(columns <= width || is_one_word, "{width}: {line}");
        }
    }
}

#[test]
fn every_record_in_a_pipe_is_whole() {
    assert_data_eq!(gallery(None), file!["golden/piped.txt"].raw());
}

#[test]
fn every_record_in_json() {
    let records: Vec<Record> = all().into_iter().map(|(_, record)| record).collect();
    let json = rendered(&mut Json, &records);
    assert_data_eq!(json, file!["golden/records.jsonl"].raw());
}

/// The fields that the JSON interface promises, by type. Those in brackets are there only when they say something.
const FIELDS: &[(&str, &str)] = &[
    (
        "translation",
        "pid address physical pfn pfn_hidden state kind entry page_offset page_size soft_dirty exclusive uffd_wp guard \
         file_mapped huge swap flags flags_raw map_count [map_count_average] folio zone node iomem cgroup \
         cgroup_path region symbol [nearest] why",
    ),
    (
        "explanation",
        "pid address physical pfn pfn_hidden state kind entry page_offset page_size soft_dirty exclusive uffd_wp guard \
         file_mapped huge swap flags flags_raw map_count [map_count_average] folio zone node iomem cgroup \
         cgroup_path region symbol [nearest] why owner file next_read next_write",
    ),
    ("run", "start end physical pfn pages state [why]"),
    (
        "pages",
        "start end pages state kind pfn [frames] flags flags_raw map_count [map_count_average] order huge region [why]",
    ),
    (
        "frames",
        "pfn physical frames bytes flags flags_raw map_count [map_count_average] zone node [why]",
    ),
    (
        "walk-summary",
        "pages bytes runs longest_run_bytes longest_run_start changed cut_short present swapped guard poisoned uffd_wp migrating hwpoison \
         device untouched pfn_mapped outside unmapped",
    ),
    ("frames-summary", "frames bytes cut_short memory_ends"),
    ("group", "by key [second_by] [second_key] pages bytes [why]"),
    ("map-region", "start end perms name pages cell_pages cells"),
    ("summary", "flags flags_raw letters state pages bytes [why]"),
    ("mapper", "pid name address pages region symbol"),
    (
        "who-summary",
        "pfn physical flags flags_raw map_count [map_count_average] mappings left processes looked_at listed unreadable gone same_memory ended \
         [because] moved why",
    ),
    (
        "region",
        "start end perms offset device inode name deleted size present swapped shared private zero huge [map_count_average] [folios] [states] [at] [pss] \
         [vm_flags] [smaps] [changed] why",
    ),
    (
        "regions-summary",
        "regions size present swapped changed cut_short",
    ),
    (
        "capabilities",
        "kernel pid user rights first_user_namespace capabilities",
    ),
    (
        "page-flags",
        "address pfn physical flags flags_raw map_count [map_count_average] folio zone node iomem cgroup cgroup_path meanings why",
    ),
    (
        "decoded",
        "as raw [state] [pfn] [physical] [swap] [flags] bits",
    ),
    (
        "event",
        "time address pages kind before after region symbol [detail]",
    ),
    ("watch-start", "pages every blind"),
    ("timeline-row", "row start end pages region regions"),
    ("timeline-sample", "time cells"),
    ("event-group", "by key pages samples events"),
    ("watch-summary", "samples seconds events rows ended"),
    (
        "snapshot",
        "name pid process time pages swapped with unread memory",
    ),
    (
        "diff-summary",
        "from to seconds changes came went cut uncompared blind",
    ),
    (
        "change",
        "change start end pages before after region symbol [detail]",
    ),
    ("change-group", "by key pages came went"),
    (
        "comparison",
        "other start end region shared copied only_here only_there about_to_copy",
    ),
    (
        "comparison-group",
        "other symbol shared copied only_here only_there about_to_copy",
    ),
    ("soft-dirty", "pid process pages huge hugetlb [why]"),
    ("soft-dirty-cleared", "pid process seconds pages"),
    (
        "comparison-summary",
        "pid other process page_size [memory] shared copied only_here only_there about_to_copy",
    ),
    ("read", "file offset length words what found times repeat"),
    ("reads-summary", "reads more_reads more_words repeat"),
    (
        "memory",
        "address symbol length format unit bytes values [symbols] source [faulted] state kind [unread] \
         [cut_by] [why]",
    ),
    ("match", "address symbol region source"),
    (
        "find-summary",
        "matches searched unread cached cache_unread cut_short present swapped guard poisoned uffd_wp migrating hwpoison device untouched \
         pfn_mapped outside unmapped [why]",
    ),
    (
        "patch",
        "address length symbol memory file file_offset breakpoint region",
    ),
    (
        "patched-summary",
        "private_copies equal stretches bytes breakpoints uncompared cut_short [why]",
    ),
    (
        "telescope",
        "address offset symbol value state source chain ends [why]",
    ),
    ("value", "number [name] kind value [also] symbol region"),
    (
        "symbol",
        "name mangled address size offset kind section module file_address",
    ),
    ("symbols-summary", "symbols cut_short silent"),
    (
        "module",
        "start end name deleted build_id answers debug_file symbols [why]",
    ),
    (
        "process",
        "pid parent name state threads user tracer executable command_line age page_size pointer_bytes memory \
         frames_hidden",
    ),
    (
        "process-entry",
        "pid user state resident [memory] name command_line",
    ),
    ("thread", "id name state sp pc symbol [why]"),
    (
        "line",
        "address start end module symbol file line column [first] frames why",
    ),
    ("target", "event pid name executable regions [remarks]"),
    ("display", "number expression value [reason]"),
    ("setting", "name value meaning"),
    ("history", "number line"),
    ("text", "text"),
    (
        "help",
        "topic [name] [about] [commands] [short] [usage] [summary] [text] [examples]",
    ),
    ("note", "message"),
    ("assertion", "expression holds message values where"),
    ("assertions-summary", "held failed unknown"),
    ("error", "message where [expected] hint [nearest]"),
    ("hello", "program version protocol"),
    ("end", "id status"),
];

#[test]
fn json_has_the_promised_fields_and_no_others() {
    let mut seen = BTreeSet::new();
    for (name, record) in all() {
        let json: Value = serde_json::from_str(&rendered(&mut Json, &[record])).unwrap();
        let object = json.as_object().unwrap();
        assert_eq!(object["type"], name);
        let (_, promised) = FIELDS.iter().find(|(of, _)| *of == name).unwrap();
        let mut rest: BTreeSet<&str> = object.keys().map(String::as_str).collect();
        rest.remove("type");
        for field in promised.split_whitespace() {
            let bare = field.trim_matches(['[', ']']);
            assert!(rest.remove(bare) || field != bare, "{name} lacks {field}");
        }
        assert!(rest.is_empty(), "{name} has also {rest:?}");
        seen.insert(name);
    }
    for (name, _) in FIELDS {
        assert!(seen.contains(name), "no sample of {name}");
    }
}

/// The reference that is made of the declarations says the same.
#[test]
fn the_description_of_each_record_has_the_promised_fields() {
    for (name, promised) in FIELDS {
        let mut described: Vec<FieldDescription> = Vec::new();
        for shape in RECORDS.iter().filter(|shape| shape.name == *name) {
            described = shape.form.fields();
        }
        let described: BTreeSet<String> = described
            .iter()
            .map(|field| match field.is_optional {
                true => format!("[{}]", field.name),
                false => field.name.to_owned(),
            })
            .collect();
        let promised: BTreeSet<String> = promised.split_whitespace().map(str::to_owned).collect();
        assert_eq!(described, promised, "{name}");
    }
    for shape in RECORDS {
        assert!(
            FIELDS.iter().any(|(name, _)| *name == shape.name),
            "{}",
            shape.name
        );
        for field in shape.form.fields() {
            assert!(!field.about.is_empty(), "{} of {}", field.name, shape.name);
        }
    }
}

#[test]
fn every_state_and_kind_reads_as_words() {
    let records: Vec<Record> = State::ALL
        .iter()
        .map(|&state| (state, None))
        .chain(Kind::ALL.iter().map(|&kind| (State::Untouched, Some(kind))))
        .map(|(state, kind)| Record::Translation(Box::new(absent(state, kind, 0))))
        .collect();
    let lines = text(None, &records);
    let states: Vec<&str> = lines
        .lines()
        .filter(|line| line.starts_with("state"))
        .collect();
    assert_data_eq!(states.join("\n"), str![[r#"
state     present                a page frame is mapped here
state     swapped                its contents are in a swap area
state     guard                  a guard page: any access is SIGSEGV
state     poisoned               a poison marker: any access is SIGBUS
state     uffd_wp                nothing there but a write-protection marker of userfaultfd
state     migrating              on its way to another frame
state     hwpoison               the frame failed in hardware: an access is SIGBUS
state     device                 in device memory: an access by the CPU brings it back
state     untouched              nothing is mapped here yet, or no longer
state     pfn_mapped             mapped straight to physical memory: the page map does not show it
state     outside                beyond the page map, which ends where user space does
state     unmapped               in no region: an access is SIGSEGV, but for one that makes a stack grow
state     untouched, anonymous   nothing there yet: a read maps the page of zeros, a write a new page
state     untouched, file        nothing mapped here: an access maps a page of the file
state     untouched, shmem       nothing mapped here: an access maps a page of the shared memory
state     untouched, private_copy  a private copy of a page of a file
state     untouched, zero        the shared page of zeros: a write brings a page of its own
state     untouched, huge_zero   the shared huge page of zeros
state     untouched, ksm         merged with equal pages by samepage merging
state     untouched, hugetlb     nothing there yet: an access takes a page from the hugetlb pool
state     untouched, vdso        code that the kernel lends to the process
state     untouched, device_memory  memory of a device
state     untouched, cached      in the page cache: an access maps it without reading the file
state     untouched, not_cached  not in the page cache: an access reads the file
state     untouched, past_end    beyond the end of the file: an access is SIGBUS
state     untouched, maybe_swapped  shared memory that has contents, but not in memory: swapped out
"#]].raw());
}

#[test]
fn hidden_frames_are_hidden_and_never_zero() {
    let translation = text(None, &[Record::Translation(Box::new(hidden()))]);
    assert!(translation.contains("physical  hidden"), "{translation}");
    assert_eq!(
        translation.matches("CAP_SYS_ADMIN").count(),
        1,
        "{translation}"
    );
    for record in [Record::Run(hidden_run()), Record::Pages(hidden_pages())] {
        let rows = text(None, &[record]);
        let row = rows.lines().nth(1).unwrap();
        assert!(row.contains("hidden"), "{rows}");
        assert!(
            !row.split_whitespace()
                .any(|word| word == "0" || word == "0x0"),
            "{rows}"
        );
    }
}

#[test]
fn a_mark_of_exclusive_that_a_map_count_contradicts_is_explained() {
    let clause = "not exclusive: bit 56 of the entry is judged by the first page of the huge one";
    let of_huge_page = Translation {
        huge: Ok(true),
        exclusive: Ok(false),
        ..present()
    };
    let alike = Translation {
        exclusive: Ok(true),
        ..of_huge_page.clone()
    };
    for (translation, explained) in [(of_huge_page, true), (alike, false), (present(), false)] {
        let text = text(None, &[Record::Translation(Box::new(translation))]);
        assert_eq!(text.contains(clause), explained, "{text}");
    }
}

#[test]
fn explain_says_what_is_special_of_a_page() {
    let with = |flags: PageFlags| {
        let mut page = present();
        page.words.flags = Ok(flags);
        text(None, &[Record::Explanation(Box::new(explained(page)))])
    };
    let everyday = PageFlags::ANON | PageFlags::LRU;
    let given_up = with(everyday);
    assert!(given_up.contains("MADV_FREE"), "{given_up}");
    let kept = with(everyday | PageFlags::SWAPBACKED);
    assert!(!kept.contains("MADV_FREE"), "{kept}");
    // Part of a large folio.
    assert!(kept.contains("15 of them mapped here"), "{kept}");
}

#[test]
fn a_copy_of_a_page_of_a_huge_mapping_is_small_and_splits_it() {
    let write_to = |huge, kind| {
        let page = Translation {
            huge: Ok(huge),
            kind: Some(kind),
            ..present()
        };
        let explanation = Explanation {
            next_write: Outcome::of(&[Effect::Copy]),
            ..explained(page)
        };
        text(None, &[Record::Explanation(Box::new(explanation))])
    };
    let split = "a copy of these 4 KiB alone, and the huge mapping is split into small pages";
    let said = write_to(true, Kind::Anonymous);
    assert!(said.contains(split), "{said}");
    for (huge, kind) in [(false, Kind::Anonymous), (true, Kind::Hugetlb)] {
        let said = write_to(huge, kind);
        assert!(said.contains("a copy of the page"), "{said}");
    }
}

#[test]
fn once_all_mappings_are_found_it_does_not_matter_what_could_not_be_read() {
    let said = |ended| {
        let summary = WhoSummary {
            counts: WhoCounts {
                unreadable: 1,
                ..who_counted().counts
            },
            ended,
            ..who_counted()
        };
        text(None, &[Record::WhoSummary(summary)])
    };
    let unread = "could not be read";
    assert!(!said(SearchEnd::Counted).contains(unread));
    assert!(said(SearchEnd::Interrupted).contains(unread));
}

#[test]
fn a_walk_has_one_heading_and_says_each_reason_once() {
    let walk = [
        Record::Pages(pages()),
        Record::Pages(hidden_pages()),
        Record::Pages(hidden_pages()),
        Record::Pages(huge_pages()),
        Record::Pages(untouched_pages()),
        Record::WalkSummary(walk_summary()),
    ];
    assert_data_eq!(text(Some(120), &walk), str![[r#"
start          end                size  pages  state      kind           frame     count  region       flags
0x7ffff7dc0000 0x7ffff7de8000  160 KiB     40  present    file           0x1a4eac     31  libc.so.6    referenced activ…
0x7ffff7de8000 0x7ffff7de9000    4 KiB      1  present    file           hidden        ?  libc.so.6    ?
0x7ffff7de8000 0x7ffff7de9000    4 KiB      1  present    file           hidden        ?  libc.so.6    ?
0x7fffe0000000 0x7fffe0200000    2 MiB    512  present    anonymous huge 0x13d400     ~1  (anonymous)  active thp owner…
0x555555579000 0x555555679000    1 MiB    256  untouched  anonymous      -             -  [heap]       -
40,512 pages, 158 MiB: 40,000 present, 2 swapped, 510 untouched; 1201 physical runs, the longest 2 MiB at 0x555555558000
stopped early: the totals are of what was looked at
the regions changed meanwhile: run it again for a consistent picture
hidden    frame: frame numbers are hidden without CAP_SYS_ADMIN (run pmdb as root outside of containers, or give it
          that capability with setcap)
unknown   flags, map count, order: /proc/kpageflags may be read by root alone

"#]].raw());
}

#[test]
fn notes_of_a_table_stand_under_it_also_after_a_block() {
    let said = [
        Record::Translation(Box::new(present())),
        Record::Run(hidden_run()),
    ];
    let text = text(Some(120), &said);
    let at = |words: &str| {
        text.find(words)
            .unwrap_or_else(|| panic!("{words}: {text}"))
    };
    assert!(
        at("0x7ffff7dc8000") < at("hidden    physical, frame: "),
        "{text}"
    );
    assert_eq!(text.matches("hidden    physical").count(), 1, "{text}");
}

#[test]
fn blocks_and_tables_stand_apart() {
    let said = [
        Record::Translation(Box::new(present())),
        Record::Run(run()),
        Record::Run(run()),
        Record::Group(group("present", 12)),
    ];
    let said = text(None, &said);
    let blank: Vec<usize> = said
        .lines()
        .enumerate()
        .filter(|(_, line)| line.is_empty())
        .map(|(number, _)| number)
        .collect();
    assert_eq!(blank, [10, 14], "{said}");
    assert!(!said.ends_with("\n\n"));
}

fn drawn(text_of_line: &str, column: usize, width: usize) -> String {
    let error = ErrorReport {
        message: "no".into(),
        place: Some(ErrorPlace {
            file: None,
            line: None,
            column: Some(column),
            width,
            text: text_of_line.into(),
        }),
        ..ErrorReport::default()
    };
    text(Some(80), &[Record::Error(error)])
}

#[test]
fn the_caret_stands_under_its_place_whatever_comes_before() {
    assert_eq!(drawn("t 漢 x", 5, 1), "error: no\n  t 漢 x\n       ^\n");
    assert_eq!(
        drawn("t\t\x1b x", 5, 1),
        "error: no\n  t \\x1b x\n         ^\n"
    );
    assert_eq!(
        drawn("t \x07\x07", 3, 2),
        "error: no\n  t \\x07\\x07\n    ^~~~~~~~\n"
    );
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
        let error = ErrorReport {
            message: "no".into(),
            place: Some(place),
            ..ErrorReport::default()
        };
        text(Some(40), &[Record::Error(error)])
    };
    assert_eq!(
        shown(Some("tour.pmdb")),
        "tour.pmdb:3: error: no\n  translate $sp xxxxxxxxxxxxxxxxxxxxx…\n"
    );
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
    let note = Record::Note(crate::report::Note {
        message: said.into(),
    });
    let line = rendered(&mut Json, &[note]);
    assert!(
        line.trim_end().chars().all(crate::kernel::name::is_plain),
        "{line:?}"
    );
    let json: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(json["message"], said);
    // Names come escaped, as in text: two different ones never look the same.
    let mut row = process_row();
    row.name = Name::new(*b"\xff\\xff");
    let json: Value =
        serde_json::from_str(&rendered(&mut Json, &[Record::ProcessEntry(row)])).unwrap();
    assert_eq!(json["name"], "\\xff\\\\xff");
}

/// Addresses of the kernel's half have more digits than others: the titles come anew above them.
#[test]
fn every_row_stands_under_its_titles() {
    let vsyscall = RegionReport {
        start: va(0xffff_ffff_ff60_0000),
        end: va(0xffff_ffff_ff60_1000),
        name: Name::from("[vsyscall]"),
        ..region_row()
    };
    let records = [region_row(), vsyscall].map(|row| Record::Region(Box::new(row)));
    for width in [60, 80, 100, 110, 120] {
        let shown = text(Some(width), &records);
        let mut titles = "";
        for line in shown.lines().take(4) {
            if line.starts_with("start ") {
                titles = line;
                continue;
            }
            let [name, perms] = ["name", "perms"].map(|title| titles.find(title));
            assert_eq!(line.find("r--p"), perms, "{shown}");
            let named = name.and_then(|name| line.get(name..)).expect("a name");
            assert!(!named.starts_with(' '), "{shown}");
            assert!(
                line.get(..name.unwrap()).unwrap().ends_with("  "),
                "{shown}"
            );
        }
        assert_eq!(shown.matches("start ").count(), 2, "{shown}");
    }
}
