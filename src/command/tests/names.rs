//! Names that somebody else chose, completed: each is exactly one argument, or is not offered.

use crate::command::{Attach, BETWEEN_KEYS, LANGUAGE, Print, SourceScript, TargetName, complete};
use crate::kernel::Name;
use crate::kernel::text::is_plain;
use crate::lang::{Expression, ForeignName, Output, ParsedLine, Range, SymbolName, WrittenName, escape};
use crate::process;
use crate::process::fake::Fake;
use crate::sample::is_exhaustive;
use crate::state::DebugState;
use crate::symbol::tests::builder::{Builder, FUNCTION, GLOBAL, entry};
use proptest::prelude::*;

/// Bytes of which names are made that could mean something else: most of them are marks of the language, of a shell,
/// of gdb.
fn hostile_bytes() -> impl Strategy<Value = Vec<u8>> {
    let marks = prop::sample::select(&b"|><!#'\"\\$`{}[]()&;~:-/.,=*?%@^+ \n\t\x1b\x00\xffaw0_n"[..]);
    let words = prop::sample::select(vec![
        "all",
        "self",
        "demo",
        "where",
        "by",
        "in",
        "to",
        "limit",
        "not",
        "or",
        "and",
        "now",
        "pfn",
        "phys",
        "u8",
        "count",
        "heap",
        "[heap]",
        "[anon:x]|id>b",
        "--overwrite",
        "--how",
        "812",
        "007",
        "0x10",
        "$x",
        "~/x",
        ":tour",
        "-ex",
        "a b",
        "ww|id>b",
        "7ff0-7ff1",
        "#1 0x4",
        "hex\"00\"",
        "a::b",
        "é",
        "\u{202e}",
        "with content",
        "x]",
        "{$_shell(\"id\")}",
    ]);
    prop_oneof![
        20 => prop::collection::vec(prop_oneof![4 => marks, 1 => any::<u8>()], 1..24),
        20 => words.prop_map(|word| word.as_bytes().to_vec()),
        1 => prop::sample::select(&b"a|"[..]).prop_map(|letter| vec![letter; 4200]),
    ]
}

/// The one argument of a line that completion made; `None` if the command keeps it to itself.
fn argument(line: &str) -> Option<String> {
    let parsed = LANGUAGE.parse_line(line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
    let ParsedLine::Command { command, output } = parsed else {
        panic!("{line:?}: {parsed:?}");
    };
    if let Output::File { path, .. } = output {
        return Some(path.node);
    }
    assert!(matches!(output, Output::Screen), "{line:?}: {output:?}");
    if let Some(Attach(target)) = command.node.downcast_ref() {
        match &target.node {
            TargetName::Name(name) => Some(name.clone()),
            other => panic!("{line:?}: {other:?}"),
        }
    } else if let Some(SourceScript { path, .. }) = command.node.downcast_ref() {
        Some(path.node.clone())
    } else if let Some(Print { value, .. }) = command.node.downcast_ref() {
        match &value.node {
            Range::Expression(Expression::Name(WrittenName(name))) => Some(name.clone()),
            Range::Expression(Expression::BracketedRegion(name)) => Some(format!("[{name}]")),
            Range::Expression(Expression::ModuleSymbol { symbol, .. }) => Some(symbol.node.0.clone()),
            Range::Expression(Expression::AddressOf(SymbolName { symbol, .. })) => Some(symbol.node.0.clone()),
            Range::Expression(Expression::SourceLine { file, .. }) => Some(file.node.0.clone()),
            other => panic!("{line:?}: {other:?}"),
        }
    } else {
        None
    }
}

/// The line as the command that it is writes it.
fn written(line: &str) -> Option<String> {
    match LANGUAGE.parse_line(line) {
        Ok(ParsedLine::Command { command, output: Output::Screen }) => Some(command.node.to_string()),
        _ => None,
    }
}

proptest! {
    // Each case takes 50 ms, and each run takes other cases.
    #![proptest_config(ProptestConfig::with_cases(if is_exhaustive() { 1024 } else { 64 }))]

    #[test]
    fn a_name_is_written_as_one_argument_or_not_at_all(bytes in hostile_bytes()) {
        use ForeignName::{Path, Process, Symbol, Text};
        let name = match std::str::from_utf8(&bytes) {
            Ok(name) => name.to_owned(),
            Err(_) => Name::new(bytes).to_string(),
        };
        for (before, after, kind) in [
            ("attach ", "", Process),
            ("print ", "", Symbol),
            ("print lib!", "", Symbol),
            ("print &", "", Symbol),
            ("print ", ":1", Symbol),
            ("source ", "", Path('\'')),
            ("source ", "", Path('"')),
            ("capture ", "", Path('\'')),
            ("target capture ", "", Path('\'')),
            ("snapshot a to ", "", Path('\'')),
            ("snapshot a from ", "", Path('\'')),
            ("diff a from ", "", Path('\'')),
            ("export core ", "", Path('\'')),
            ("show > ", "", Path('\'')),
            ("regions where name == ", "", Text),
            ("walk all where zone == ", "", Text),
        ] {
            let Some(word) = LANGUAGE.write_name(before, &name, after, kind) else {
                continue;
            };
            prop_assert!(word.chars().all(is_plain), "{word:?}");
            let line = format!("{before}{word}{after}");
            match argument(&line) {
                Some(argument) => prop_assert_eq!(&argument, &name, "{}", line),
                // No quotes hold a longer one.
                None if name.len() > 4096 => prop_assert!(word == name),
                None => {
                    let quote = if kind == Text { '"' } else { '\'' };
                    let quoted = format!("{before}{}", escape(quote, &name));
                    prop_assert!(written(&line).is_some(), "{line}");
                    prop_assert_eq!(written(&line), written(&quoted), "{}", line);
                }
            }
        }
    }

    #[test]
    fn whatever_a_target_calls_its_regions_and_symbols_is_one_argument(bytes in hostile_bytes()) {
        let bytes: Vec<u8> = bytes.into_iter().filter(|byte| *byte != 0).collect();
        let symbol = String::from_utf8_lossy(&bytes).into_owned();
        let file = Builder::with(vec![entry(&format!("w{symbol}"), 0x1000, 0x10, GLOBAL, FUNCTION)]);
        let mut fake = Fake::new().region(0x40_1000, 0x40_2000, "r-xp", 7, "/bin/program");
        for (index, (begin, end)) in [("[w", "]"), ("/tmp/w", ""), ("[w", "]|id>b")].into_iter().enumerate() {
            let start = 0x10000 * (index as u64 + 1);
            fake = fake.region(start, start + 0x1000, "r--p", 20 + index as u64, "?");
            let name = [begin.as_bytes(), &bytes, end.as_bytes()].concat();
            fake.regions.last_mut().unwrap().name = Name::new(name);
        }
        let mut state = DebugState::new(process::machine());
        state.attach(fake.file("/bin/program", file.bytes()).target());
        for line in ["print w", "print [w", "print '[w", "print 'w", "print program!w"] {
            let (start, offers) = complete(&state, line, line.len(), BETWEEN_KEYS);
            for offer in offers {
                prop_assert!(offer.shown.chars().chain(offer.typed.chars()).all(is_plain), "{offer:?}");
                let whole = format!("{}{}", &line[..start], offer.typed);
                // Words of the language are among the offers: functions, and names before a line of the source.
                if offer.typed != offer.shown || offer.typed.starts_with('[') {
                    prop_assert_eq!(argument(&whole), Some(offer.shown), "{}", whole);
                }
            }
        }
    }
}

#[test]
fn a_name_that_would_run_a_command_is_quoted() {
    for (before, name, kind, word) in [
        ("attach ", "ww|id>b", ForeignName::Process, Some("'ww|id>b'")),
        ("attach ", "tmux: server", ForeignName::Process, Some("'tmux: server'")),
        ("attach ", "bash", ForeignName::Process, Some("bash")),
        ("attach ", "self", ForeignName::Process, Some("'self'")),
        ("attach ", "812", ForeignName::Process, Some("'812'")),
        ("walk ", "[anon:x]|id>/tmp/x", ForeignName::Symbol, Some("'[anon:x]|id>/tmp/x'")),
        ("walk ", "[anon:a {b}]", ForeignName::Symbol, Some("'[anon:a {b}]'")),
        ("walk ", "[anon: a b]", ForeignName::Symbol, Some("[anon: a b]")),
        ("walk ", "all", ForeignName::Symbol, Some("'all'")),
        ("walk ", "main", ForeignName::Symbol, Some("main")),
        ("snapshot a to ", "where", ForeignName::Path('\''), Some("'where'")),
        ("source ", "a\u{1b}b", ForeignName::Path('\''), None),
    ] {
        assert_eq!(LANGUAGE.write_name(before, name, "", kind).as_deref(), word, "{before}{name}");
    }
}
