//! What could stand at the cursor.

use crate::command::{self, LANGUAGE};
use crate::lang::Expected;
use crate::lang::complete::Expectation;
use crate::process;
use crate::state::DebugState;

fn at_end(line: &str) -> Expectation {
    LANGUAGE.expectation(line, line.len())
}

fn kinds(line: &str) -> Vec<Expected> {
    at_end(line).kinds
}

#[test]
fn the_beginning_of_a_line_is_a_command() {
    assert_eq!(at_end(""), Expectation { start: 0, kinds: vec![Expected::Command], quote: None });
    assert_eq!(at_end("  wa"), Expectation { start: 2, kinds: vec![Expected::Command], quote: None });
    let second: Vec<Expected> = LANGUAGE.second_words("info").map(Expected::Word).collect();
    assert_eq!(kinds("info "), second);
    assert_eq!(kinds("pipe "), [Expected::Command]);
}

#[test]
fn arguments_are_what_the_parser_expects() {
    assert_eq!(kinds("walk "), [Expected::Option("--how"), Expected::Range, Expected::Expression]);
    assert_eq!(kinds("walk --how "), [Expected::Range, Expected::Expression]);
    assert_eq!(at_end("walk heap wh").start, 10);
    assert!(kinds("walk heap wh").contains(&Expected::Word("where")));
    assert!(kinds("walk heap where pres").contains(&Expected::PageField));
    assert!(!kinds("walk heap where pres").contains(&Expected::Expression));
    assert!(kinds("regions where ").contains(&Expected::RegionField));
    assert!(kinds("print 1 + ma").contains(&Expected::Expression));
    assert_eq!(kinds("walk heap by "), [Expected::Key(crate::command::walk::KEYS)]);
    assert!(kinds("set ").contains(&Expected::Word("pagination")));
    assert_eq!(kinds("set scan o"), [Expected::Word("on"), Expected::Word("off")]);
    assert_eq!(kinds("info address libc.so.6!mal"), [Expected::Symbol]);
}

#[test]
fn a_line_of_the_source_begins_with_the_path_of_its_file() {
    for line in ["info line ", "info line ser", "info line 'my ser", "info line server."] {
        assert!(kinds(line).contains(&Expected::SourceFile), "{line}");
        assert!(kinds(line).contains(&Expected::Expression), "{line}");
    }
    for line in ["info line src/ser", "info line src/", "info line /a/b-c/d.", "info line ../x"] {
        let path = at_end(line);
        assert_eq!((path.start, path.quote), (10, None), "{line}");
        assert_eq!(path.kinds, [Expected::SourceFile], "{line}");
    }
    for line in
        ["print src/ser", "info line *src/ser", "info line 2 + src/ser", "info line server.c:", "info symbol ser"]
    {
        assert!(!kinds(line).contains(&Expected::SourceFile), "{line}");
    }
}

#[test]
fn a_half_typed_how_is_no_minus_sign() {
    for half in ["-", "--", "--h", "--how"] {
        let found = at_end(&format!("region {half}"));
        assert_eq!((found.start, found.kinds), (7, vec![Expected::Option("--how")]));
    }
    assert_eq!(kinds("soft-dirty clear --"), [Expected::Option("--yes")]);
    for line in ["soft-", "soft-dir", "pipe soft-dir"] {
        assert_eq!(kinds(line), [Expected::Command], "{line}");
    }
    assert!(!kinds("print soft-dir").contains(&Expected::Command));
    assert!(!kinds("print --h").contains(&Expected::Option("--how")));
    assert!(!kinds("region 1 --h").contains(&Expected::Option("--how")));
}

#[test]
fn a_word_of_another_program_is_completed_as_a_command() {
    // Each is a whole line too.
    for line in ["info th", "info thr", "info reg", "pipe info r", "help info thr"] {
        let found = at_end(line);
        let before = &line[..line.len() - line.rsplit(' ').next().map_or(0, str::len)];
        assert_eq!(found, at_end(before), "{line}");
        assert!(!found.kinds.is_empty(), "{line}");
    }
    assert_eq!(kinds("info th "), kinds("info threads "));
}

#[test]
fn raw_text_and_files_begin_where_they_begin() {
    assert_eq!(at_end("source ~/a"), Expectation { start: 7, kinds: vec![Expected::Script], quote: None });
    assert_eq!(at_end("source "), Expectation { start: 7, kinds: vec![Expected::Script], quote: None });
    assert_eq!(at_end("walk heap > /tm"), Expectation { start: 12, kinds: vec![Expected::File], quote: None });
    assert_eq!(at_end("attach fire"), Expectation { start: 7, kinds: vec![Expected::Process], quote: None });
    assert_eq!(kinds("walk heap | gr"), [Expected::ShellCommand]);
}

#[test]
fn behind_a_joint_the_whole_name_is_what_is_typed() {
    for (line, start) in [
        ("print rs::", 6),
        ("print rs::inner::", 6),
        ("print 1 + rs::", 10),
        ("print malloc@", 6),
        ("print malloc@got.", 6),
        ("x/gx f@@", 5),
        ("print libc.so.", 6),
    ] {
        let path = at_end(line);
        assert_eq!(path.start, start, "{line}");
        assert!(path.kinds.contains(&Expected::Expression), "{line}");
    }
    let in_module = at_end("info address program!rs::");
    assert_eq!((in_module.start, in_module.kinds), (21, vec![Expected::Symbol]));
    // One colon stands before a line of the source.
    assert_eq!(at_end("info line main:").kinds, [Expected::Number]);
    assert_eq!(kinds("print rs ::"), []);
}

#[test]
fn an_open_quote_or_bracket_is_what_is_typed() {
    let open = at_end("translate 'ld-linux");
    assert_eq!((open.start, open.quote), (10, Some('\'')));
    assert!(open.kinds.contains(&Expected::Expression));
    assert_eq!(at_end("translate [he").start, 10);
}

#[test]
fn nothing_is_expected_behind_an_error() {
    assert_eq!(kinds("walk 1 2 "), []);
    assert_eq!(kinds("nonsense "), []);
}

/// What Tab would offer, without a process.
fn offers(line: &str) -> Vec<String> {
    let state = DebugState::new(process::machine());
    command::complete(&state, line, line.len(), command::BETWEEN_KEYS).1.into_iter().map(|offer| offer.typed).collect()
}

#[test]
fn names_of_processes_are_offered_as_each_command_takes_them() {
    let own = std::fs::read_to_string("/proc/self/comm").expect("the name of this process");
    let (own, begun) = (own.trim_end(), &own[..4]);
    for (before, typed) in [
        ("account ", format!("\"{begun}")),
        ("account ", begun.to_owned()),
        ("heap ", format!("\"{begun}")),
        ("account of ", begun.to_owned()),
        ("account of 1, ", begun.to_owned()),
        ("compare ", begun.to_owned()),
        ("compare ", format!("\"{begun}")),
        ("compare 1, ", format!("\"{begun}")),
        ("attach ", begun.to_owned()),
    ] {
        let offers = offers(&format!("{before}{typed}"));
        let offer = offers.iter().find(|offer| offer.trim_matches(['\'', '"']) == own);
        let offer = offer.unwrap_or_else(|| panic!("{before}{typed}: {offers:?}"));
        assert!(LANGUAGE.parse_line(&format!("{before}{offer}")).is_ok(), "{before}{offer}");
    }
}

#[test]
fn topics_and_built_in_command_files_are_offered() {
    assert_eq!(offers("help su"), ["summary"]);
    assert!(offers("help to").contains(&"topics".to_owned()));
    assert_eq!(offers("source :t"), [":tour"]);
    assert!(offers("source ").contains(&":dma".to_owned()));
}
