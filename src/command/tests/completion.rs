//! What is offered on made-up processes.

use crate::command::COMMANDS;
use crate::command::completion::{BETWEEN_KEYS, complete};
use crate::kernel::Name as Bytes;
use crate::kernel::text::is_plain;
use crate::process;
use crate::process::fake::Fake;
use crate::state::DebugState;
use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn replacements(line: &str) -> Vec<String> {
    let state = DebugState::new(process::machine());
    complete(COMMANDS, &state, line, line.len(), BETWEEN_KEYS).1.into_iter().map(|offer| offer.typed).collect()
}

#[test]
fn comparisons_and_the_texts_of_a_field_are_completed() {
    assert_eq!(replacements("walk all where zone "), ["!= ", "== "]);
    let fake = Fake::new().region(0x40_1000, 0x40_2000, "r-xp", 7, "/bin/program");
    let mut state = DebugState::new(process::machine());
    state.attach(fake.target());
    for (line, text) in [("regions where name == ", "\"program\""), ("regions where name == \"pro", "\"program\"")] {
        let offers = complete(COMMANDS, &state, line, line.len(), BETWEEN_KEYS).1;
        assert!(offers.iter().any(|offer| offer.typed == text), "{line}");
    }
}

/// Returns a function that lists what is offered for a line in this process, as it is shown.
fn offered_with(fake: Fake) -> impl Fn(&str) -> Vec<String> {
    let mut state = DebugState::new(process::machine());
    state.attach(fake.target());
    move |line| {
        let offers = complete(COMMANDS, &state, line, line.len(), BETWEEN_KEYS).1;
        offers.into_iter().map(|offer| offer.shown).collect()
    }
}

/// A program with variables, one of them a pointer to its heap, and a library.
fn program_with_variables() -> Fake {
    use crate::symbol::tests::builder::{Builder, FUNCTION, GLOBAL, LOCAL, OBJECT, entry};
    let program = Builder::with(vec![
        entry("main", 0x1000, 0x20, GLOBAL, FUNCTION),
        entry("replay", 0x1040, 0x20, GLOBAL, FUNCTION),
        entry("frames", 0x2000, 8, GLOBAL, OBJECT),
        entry("total", 0x2008, 8, GLOBAL, OBJECT),
        entry("table", 0x2010, 0x100, GLOBAL, OBJECT),
        entry("__dso_handle", 0x2200, 8, LOCAL, OBJECT),
        entry("completed.0", 0x2208, 1, LOCAL, OBJECT),
    ]);
    let library = Builder::with(vec![
        entry("malloc", 0x1000, 0x40, GLOBAL, FUNCTION),
        entry("render", 0x1040, 0x10, GLOBAL, FUNCTION),
        entry("stdin", 0x2000, 8, GLOBAL, OBJECT),
    ]);
    let mut fake = Fake::new().region(0x50_0000, 0x51_0000, "rw-p", 0, "[heap]");
    for (at, inode, name) in [(0x40_0000, 7, "/bin/program"), (0x7f00_0000_0000, 8, "/lib/libc.so.6")] {
        fake = fake.region(at + 0x1000, at + 0x2000, "r-xp", inode, name);
        fake = fake.region(at + 0x2000, at + 0x3000, "rw-p", inode, name);
    }
    let values = [0x50_0000u64, 9].map(u64::to_le_bytes).concat();
    fake.page(0x40_2000, 30, &values).file("/bin/program", program.bytes()).file("/lib/libc.so.6", library.bytes())
}

/// A read would mark pages of the target as accessed.
#[test]
fn no_memory_is_read_for_a_completion() {
    let fake = program_with_variables();
    let watched = Arc::clone(&fake.watched);
    let offered = offered_with(fake);
    for line in ["walk ", "print *", "explain ", "info address "] {
        assert!(offered(line).iter().any(|shown| shown.contains("frames")), "{line}");
    }
    assert_eq!(watched.memory_reads.load(Ordering::Relaxed), 0);
}

#[test]
fn what_a_line_is_completed_with() {
    let mut state = DebugState::new(process::machine());
    state.attach(program_with_variables().target());
    let names = ["heap", "libc.so.6", "program"];
    let own = ["frames", "region(*frames)", "region(*total)", "table", "total"];
    let values = ["*frames", "*total", "frames", "table", "total"];
    let with = |before: &[&'static str], more: &[&'static str]| [before, more].concat();
    let table: Vec<(&str, Vec<&str>)> = vec![
        // Words, then what the program defines, then regions; a pointer for the memory there.
        ("walk ", with(&with(&["all", "pfn:", "phys:", "--how"], &own), &names)),
        ("huge in ", with(&with(&["all"], &own), &names)),
        ("walk region(", with(&with(&["all"], &values), &names)),
        ("explain ", with(&with(&["huge", "--how"], &values), &names)),
        ("walk *", vec!["frames", "total"]),
        ("huge region(*", vec!["frames", "total"]),
        ("print &", vec!["frames", "table", "total"]),
        ("info address ", vec!["frames", "table", "total"]),
        ("info line ", names.to_vec()),
        // Names of libraries are offered where nothing else begins so, and after the name of their module.
        ("print mai", vec!["main"]),
        ("print mal", vec!["malloc"]),
        ("print re", vec!["region(", "replay"]),
        ("print ru", vec!["runs("]),
        ("print libc.so.6!m", vec!["malloc"]),
        ("print libc.so.6!", vec!["malloc", "render", "stdin"]),
        ("walk h", vec!["huge(", "heap"]),
        ("walk [h", vec!["[heap]"]),
        // Frames, whose number is no name.
        ("who p", vec!["pfn:", "phys:", "page(", "perms(", "pmd_mapped(", "pss(", "program"]),
        ("who phy", vec!["phys:"]),
        ("print phy", vec!["phys("]),
        ("who phys:", vec![]),
        // A whole word, and what follows it.
        ("walk all", vec!["all"]),
        ("walk all ", vec!["by", "limit", "top", "where"]),
        ("walk all by state ", vec!["limit", "top", "where"]),
        ("walk all by state top 5 ", vec!["where"]),
        ("walk all where present ", vec!["and", "by", "limit", "or", "top"]),
        ("walk all where mapcount ", vec!["!=", "<", "<=", "==", ">", ">="]),
        ("account of program by mapping ", vec!["full", "limit", "top", "with"]),
        ("account by mapping top 5 ", vec!["from", "full", "with"]),
        ("account cgroup /a ", vec!["by", "full", "limit", "top", "with"]),
        ("account frames ", vec!["full", "limit", "top"]),
        ("account frames top 5 ", vec!["full"]),
        ("account from f ", vec!["by", "full", "limit", "top", "with"]),
        ("account children by node ", vec!["full", "limit", "top", "with"]),
        ("compare children every 1s ", vec!["as", "by", "for", "in", "limit", "top", "until"]),
        ("watch all every 1s for 5s ", vec!["as", "by", "count", "until", "with"]),
        ("regions full ", vec!["by", "limit", "top", "where"]),
        ("heap every ", vec!["100ms", "1s", "30s"]),
        ("watch all for 3", vec!["30s"]),
        ("help :o", vec![":oom"]),
        ("help oo", vec!["oom", "oom killer", "oom-killer"]),
        ("heap by size ", vec!["every", "for", "limit", "top"]),
        ("info symbols ^a ", vec!["limit", "top"]),
        ("ps by rss ", vec!["limit", "top"]),
        ("snapshot a with ", vec!["content", "counts", "flags"]),
        ("diff from f ", vec!["by", "in", "limit", "now", "top", "where"]),
        ("walk all limit ", vec![]),
    ];
    let mut others = String::new();
    for (line, wanted) in table {
        let offers = complete(COMMANDS, &state, line, line.len(), BETWEEN_KEYS).1;
        let shown: Vec<&str> = offers.iter().map(|offer| offer.shown.as_str()).collect();
        if shown != wanted {
            others.push_str(&format!("{line}\n  {shown:?}\n  wanted {wanted:?}\n"));
        }
    }
    assert!(others.is_empty(), "{others}");
    let typed = |line: &str| complete(COMMANDS, &state, line, line.len(), BETWEEN_KEYS).1[0].typed.clone();
    assert_eq!([typed("walk all"), typed("walk tot"), typed("walk total")], ["all ", "total", "total "]);
    assert!(state.remarks.take_notes().is_empty());
}

#[test]
fn keys_come_before_flags_and_no_clause_before_them() {
    let offered = offered_with(Fake::new());
    let keys = offered("account by ");
    assert_eq!(keys[..3], ["cgroup", "flags", "heap"], "{keys:?}");
    assert!(keys.ends_with(&["writeback".to_owned()]) && !keys.contains(&"top".to_owned()), "{keys:?}");
    let orders = offered("ps by ");
    assert!(orders.contains(&"rss".to_owned()) && !orders.contains(&"top".to_owned()), "{orders:?}");
}

#[test]
fn words_come_before_names_and_functions_when_they_are_begun() {
    let offered = offered_with(Fake::new().region(0x40_1000, 0x40_2000, "r-xp", 7, "/bin/program"));
    let all = offered("account ");
    let place = |word: &str| all.iter().position(|one| one == word);
    assert!(place("with") < place("program") && place("program").is_some(), "{all:?}");
    assert_eq!(place("count"), None, "{all:?}");
    assert_eq!(offered("account cou"), ["count("]);
    assert_eq!(offered("explain hug"), ["huge"], "the word, and not the function too");
}

#[test]
fn words_of_clauses_are_no_names_before_what_follows_them() {
    let offered = offered_with(Fake::new().region(0x40_1000, 0x40_2000, "r-xp", 7, "/bin/program"));
    for line in ["account by ", "account of ", "heap by ", "walk all by "] {
        let all = offered(line);
        let clauses = ["by", "from", "full", "limit", "top", "with"];
        assert!(!all.is_empty() && !all.iter().any(|word| clauses.contains(&word.as_str())), "{line}: {all:?}");
    }
    // A variable may hold a number, and an address is none.
    for line in ["account by limit ", "walk all limit ", "who phys:", "walk pfn:"] {
        let all = offered(line);
        assert!(!all.iter().any(|word| word == "program" || word.starts_with('[')), "{line}: {all:?}");
    }
    assert!(offered("walk all limit ").is_empty());
}

#[test]
fn many_names_of_what_is_mapped_do_not_hold_up_the_next_key() {
    let mut fake = Fake::new();
    for index in 0..3000u64 {
        let start = 0x10000 * (index + 1);
        fake = fake.region(start, start + 0x1000, "r--p", 7 + index, "?");
        fake.regions.last_mut().unwrap().name = Bytes::new(format!("/memfd:sealed-{index} (deleted)").as_bytes());
    }
    let mut state = DebugState::new(process::machine());
    state.attach(fake.target());
    for line in ["walk ", "walk 'memfd:sealed-1", "regions where name == ", "regions where name == \"memfd:sealed-19"] {
        let begun = std::time::Instant::now();
        let offers = complete(COMMANDS, &state, line, line.len(), BETWEEN_KEYS).1;
        assert!(!offers.is_empty() && offers.len() < 1000, "{line}: {} offers", offers.len());
        assert!(begun.elapsed() < 20 * BETWEEN_KEYS, "{line}: {:?}", begun.elapsed());
    }
}

#[test]
fn commands_are_completed_with_a_blank() {
    assert_eq!(replacements("wal"), ["walk "]);
    assert_eq!(replacements("info p"), ["process "]);
    assert!(replacements("").contains(&"translate ".to_owned()));
}

#[test]
fn clause_words_and_fields_come_where_they_may_stand() {
    assert_eq!(replacements("walk all wh"), ["where "]);
    assert!(replacements("walk all where mapc").contains(&"mapcount".to_owned()));
    assert!(replacements("walk all by sta").contains(&"state ".to_owned()));
}

#[test]
fn files_are_completed_below_folders_and_quoted_where_they_must_be() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().to_str().unwrap();
    fs::create_dir(folder.path().join("sub folder")).unwrap();
    fs::write(folder.path().join("script.pmdb"), "").unwrap();
    fs::write(folder.path().join(".hidden"), "").unwrap();
    assert_eq!(replacements(&format!("source {base}/scr")), [format!("{base}/script.pmdb")]);
    assert_eq!(replacements(&format!("source {base}/su")), [format!("'{base}/sub folder/")]);
    assert_eq!(replacements(&format!("source {base}/")).len(), 2);
    assert_eq!(replacements(&format!("show > {base}/scr")), [format!("{base}/script.pmdb")]);
}

#[test]
fn names_that_could_move_the_cursor_are_not_offered() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().to_str().unwrap();
    for name in ["evil\u{1b}[2J", "evil\u{202e}", "evil\n", "evil"] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    assert_eq!(replacements(&format!("source {base}/ev")), [format!("{base}/evil")]);
}

#[test]
fn hostile_names_of_what_is_mapped_are_offered_as_they_are_listed_and_mean_it() {
    use crate::command::Print;
    use crate::eval::{Value, evaluate};
    use crate::lang::{ParsedLine, Range, Spanned};
    let names: [&[u8]; 5] = [
        b"/tmp/esc\x1b[31mred",
        b"/tmp/esc\xffbytes",
        b"/tmp/esc\nnext",
        "/tmp/esc\u{202e}back\\slash's".as_bytes(),
        b"/tmp/escape room",
    ];
    let mut fake = Fake::new();
    for (index, name) in names.iter().enumerate() {
        let start = 0x10000 * (index as u64 + 1);
        fake = fake.region(start, start + 0x1000, "r--p", 7 + index as u64, "?");
        fake.regions.last_mut().unwrap().name = Bytes::new(*name);
    }
    let mut state = DebugState::new(process::machine());
    state.attach(fake.target());
    let line = "region 'esc";
    let (start, offers) = complete(COMMANDS, &state, line, line.len(), BETWEEN_KEYS);
    assert_eq!((start, offers.len()), (7, names.len()));
    let mut found = BTreeSet::new();
    for offer in offers {
        assert!(offer.shown.chars().all(is_plain), "{:?}", offer.shown);
        assert!(offer.typed.chars().all(is_plain));
        let line = COMMANDS.language.parse_line(&format!("print {}", offer.typed)).unwrap();
        let ParsedLine::Command { command, .. } = line else {
            panic!("{line:?}");
        };
        let Some(Print { value, .. }) = command.node.downcast_ref() else {
            panic!("{command:?}");
        };
        let Range::Expression(name) = &value.node else {
            panic!("{value:?}");
        };
        let name = Spanned::new(name.clone(), value.at);
        match evaluate(&name, &state).unwrap() {
            Value::Range(spans) => found.insert(spans.to_string()),
            other => panic!("{other:?}"),
        };
    }
    assert_eq!(found.len(), names.len(), "{found:?}");
    let typed = "region 'esc\\x1b";
    let offers = complete(COMMANDS, &state, typed, typed.len(), BETWEEN_KEYS).1;
    assert_eq!(offers[0].typed, "'esc\\x1b[31mred'");
}

#[test]
fn behind_two_colons_come_the_names_of_the_path() {
    use crate::symbol::tests::builder::{Builder, FUNCTION, GLOBAL, entry};
    let file = Builder::with(vec![
        entry("_ZN2rs4main17h0123456789abcdefE", 0x1000, 0x10, GLOBAL, FUNCTION),
        entry("_ZN2rs5inner4work17h0123456789abcdefE", 0x1020, 0x10, GLOBAL, FUNCTION),
        entry("rsync", 0x1040, 0x10, GLOBAL, FUNCTION),
    ]);
    let fake = Fake::new().region(0x40_1000, 0x40_2000, "r-xp", 7, "/bin/rs");
    let mut state = DebugState::new(process::machine());
    state.attach(fake.file("/bin/rs", file.bytes()).target());
    let offered = |line: &str| {
        let (start, pairs) = complete(COMMANDS, &state, line, line.len(), BETWEEN_KEYS);
        let pairs = pairs.into_iter().map(|offer| offer.typed);
        (start, pairs.collect::<Vec<_>>())
    };
    let both = vec!["rs::inner::work".to_owned(), "rs::main".to_owned()];
    assert_eq!(offered("print rs::"), (6, both.clone()));
    assert_eq!(offered("info address rs!rs::"), (16, both));
    assert_eq!(offered("print 1 + rs::inner::"), (10, vec!["rs::inner::work".to_owned()]));
}

#[test]
fn source_files_are_completed_before_a_line_and_read_only_where_one_is_asked_for() {
    use crate::symbol::tests::compiled::compiled_from;
    let program = compiled_from(&[b"main.c", b"man/page.c", b"my-file.c", b"main.c", b"/abs/x.c"]);
    let library = compiled_from(&[b"malloc.c"]);
    let fake = Fake::new().region(0x40_1000, 0x40_2000, "r-xp", 7, "/bin/program").region(
        0x7000_1000,
        0x7000_2000,
        "r-xp",
        8,
        "/lib/library.so",
    );
    let fake = fake.file("/bin/program", program.bytes()).file("/lib/library.so", library.bytes());
    let mut state = DebugState::new(process::machine());
    state.attach(fake.target());
    let offered = |line: &str| -> (usize, Vec<String>) {
        let (start, pairs) = complete(COMMANDS, &state, line, line.len(), BETWEEN_KEYS);
        let sources = pairs.into_iter().map(|offer| offer.typed);
        (start, sources.filter(|typed| typed.ends_with(':')).collect())
    };
    let named = |start: usize, names: &[&str]| (start, names.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(offered("print ma"), named(6, &[]), "nothing was asked of a line");
    // The library was not asked before, and is not now.
    assert_eq!(offered("info line ma"), named(10, &["main.c:"]));
    assert_eq!(offered("print 1 + ma"), named(10, &["main.c:"]));
    assert_eq!(offered("info line m"), named(10, &["main.c:", "'my-file.c':"]));
    assert_eq!(offered("info line man/p"), named(10, &["'man/page.c':"]));
    assert_eq!(offered("info line 'man/p"), named(10, &["'man/page.c':"]));
    assert_eq!(
        offered("info line /"),
        named(10, &["'/abs/x.c':", "'/src/main.c':", "'/src/man/page.c':", "'/src/my-file.c':"])
    );
    assert_eq!(offered("info line src/main"), named(10, &["'src/main.c':"]));
    assert_eq!(offered("info line "), named(10, &[]));
    assert_eq!(offered("info line program!ma"), named(18, &[]));
}

#[test]
fn hostile_names_of_source_files_are_offered_as_they_are_displayed_and_mean_it() {
    use crate::command::line::InfoLine;
    use crate::lang::{Expression, ParsedLine};
    use crate::symbol::tests::compiled::compiled_from;
    let names: [&[u8]; 6] = [
        b"esc\x1b[31mred.c",
        b"esc\xffbytes.c",
        b"esc\nnext.c",
        "esc\u{202e}back\\slash's.c".as_bytes(),
        b"esc ape.c",
        b"escape.c",
    ];
    let fake = Fake::new().region(0x40_1000, 0x40_2000, "r-xp", 7, "/bin/program");
    let fake = fake.file("/bin/program", compiled_from(&names).bytes());
    let mut state = DebugState::new(process::machine());
    state.attach(fake.target());
    for line in ["info line 'esc", "info line 'src/esc"] {
        let offers = complete(COMMANDS, &state, line, line.len(), BETWEEN_KEYS).1;
        assert_eq!(offers.len(), names.len());
        for offer in offers {
            assert!(offer.shown.chars().all(is_plain), "{:?}", offer.shown);
            assert!(offer.typed.chars().all(is_plain));
            let whole = format!("info line {}1", offer.typed);
            let Ok(ParsedLine::Command { command, .. }) = COMMANDS.language.parse_line(&whole) else {
                panic!("{whole}");
            };
            let Some(InfoLine(place)) = command.node.downcast_ref() else {
                panic!("{command:?}");
            };
            let Expression::SourceLine { file, line } = &place.node else {
                panic!("{place:?}");
            };
            let target = state.target().unwrap();
            let regions = target.process.regions().unwrap();
            let space = state.symbols.over(target, &regions);
            let found = space.find_line(&file.node.0, line.node, 0);
            assert!(found.unwrap().has_file, "{}", offer.typed);
        }
    }
}
