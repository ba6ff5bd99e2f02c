//! What `--complete` answers the scripts of the shells. How Tab uses it is in `tests/prompt/shells.rs`.

use crate::executable::{self, Running};
use crate::run::Home;

fn answer(words: &[&str]) -> Vec<String> {
    let home = Home::new();
    home.file("folder/file", "");
    let words: Vec<&str> = ["--complete"].iter().chain(words).copied().collect();
    let out = home.run(&words).is_fine().out.clone();
    assert!(!home.path("made").exists(), "run: {words:?}");
    out.lines().map(str::to_owned).collect()
}

/// The words that fish is offered behind `pmdb` and these, with their meanings.
fn offered(words: &[&str]) -> Vec<(String, String)> {
    let asked: Vec<&str> = ["fish", "pmdb"].iter().chain(words).copied().collect();
    let lines = answer(&asked).into_iter();
    lines
        .map(|line| line.split_once('\t').map(|(word, about)| (word.to_owned(), about.to_owned())).expect("a tab"))
        .collect()
}

fn words(words: &[&str]) -> Vec<String> {
    offered(words).into_iter().map(|(word, _)| word).collect()
}

/// A process whose name would run in a shell.
struct Hostile {
    process: Running,
    _home: Home,
}

impl Hostile {
    const NAME: &str = "$(>made)";

    fn new() -> Hostile {
        let home = Home::new();
        let program = home.path(Hostile::NAME);
        executable::copy("/bin/sleep", &program);
        Hostile { process: Running::sleep(program), _home: home }
    }
}

#[test]
fn options_their_values_topics_and_commands_are_offered() {
    for (line, all) in [
        (&["--keep"][..], &["--keep-going"][..]),
        (&["-ba"], &["-batch"]),
        (&["-n"], &["-n", "-nx", "-no-shell"]),
        (&["help", "filt"], &["filters"]),
        (&["demo", "wa"], &["walk", "watch"]),
        (&["self", "walk", "[st"], &["[stack]"]),
        (&["--color", "al"], &["always"]),
        (&["--color=al"], &["--color=always"]),
        (&["--generate", "complete-b"], &["complete-bash"]),
        (&["-x", ":fork-"], &[":fork-cost"]),
        (&["-x", "fold"], &["folder/"]),
        (&["--report", "folder/"], &["folder/file"]),
        (&["-p", "self", "-x", ":dma", "fold"], &["folder/"]),
        (&["self", "-ex", "walk all wh"], &["walk all where"]),
        (&["self", "--ex=walk all wh"], &["--ex=walk all where"]),
        (&["-p", "self", "info", "snap"], &["snapshots"]),
        (&["self", "info", "thr"], &["threads"]),
        (&["self", "-ex", "info reg"], &["info registers"]),
        (&["help", "inf"], &["info"]),
        (&["help", "info", "sn"], &["snapshots"]),
        (&["--", "--keep"], &[]),
        (&["-p"], &["-p", "-pid"]),
    ] {
        assert_eq!(words(line), all, "{line:?}");
    }
    for (line, one) in [
        (&["--generate", ""][..], "man-json"),
        (&["de"], "demo"),
        (&[""], "help"),
        (&["-p", "sel"], "self"),
        (&["-pself", "tra"], "translate"),
        (&["-p", "self", "walk", "all", "by", ""], "zone"),
        (&["--json", "self", "tra"], "translate"),
        (&["demo", "translate", "demo_buf"], "demo_buffer"),
        (&["-"], "-x"),
        (&["--"], "--serve"),
    ] {
        let offers = words(line);
        assert!(offers.iter().any(|offer| offer == one), "{one} for {line:?} in {offers:?}");
    }
}

#[test]
fn offers_have_meanings() {
    let means = |line: &[&str], wanted: &str, means: &str| {
        let offers = offered(line);
        let (_, about) =
            offers.iter().find(|(word, _)| word == wanted).unwrap_or_else(|| panic!("{wanted}: {offers:?}"));
        assert!(about.contains(means), "{wanted}: {about}");
    };
    means(&["-"], "--batch", "without prompt");
    means(&["-x", ":"], ":dma", "buffer");
    means(&["help", ""], "filters", "fields of `where`");
    means(&["help", "info", ""], "snapshots", "list the snapshots");
    means(&["self", ""], "walk", "list the pages");
    means(&["self", "info", ""], "snapshots", "list the snapshots");
    means(&["self", "-ex", "wal"], "walk", "list the pages");
    means(&["--generate", ""], "man", "pmdb(1)");
    let process = std::process::id().to_string();
    means(&["-p", &process], &process, "program");
}

#[test]
fn ranges_that_need_no_brackets_are_offered_as_they_are_written() {
    assert!(words(&["self", "walk", "hea"]).contains(&"heap".to_owned()));
    assert!(words(&["self", "walk", "sta"]).contains(&"stack".to_owned()));
    assert!(words(&["self", "walk", "al"]).contains(&"all".to_owned()));
}

#[test]
fn processes_that_can_be_examined_are_offered_by_name_and_number() {
    // This thread is not the first one, and has its own name.
    let mine = std::fs::read_to_string(format!("/proc/{}/comm", std::process::id())).expect("a name");
    let hostile = Hostile::new();
    let number = hostile.process.id().to_string();
    let offers = offered(&["-p", ""]);
    let has = |name: &str| offers.iter().any(|(word, _)| word == name);
    for name in [Hostile::NAME, &number, mine.trim_end(), "self"] {
        assert!(has(name), "{name} in {offers:?}");
    }
    // Kernel threads have no memory: they are offered only to whom asks for them.
    assert!(!has("kthreadd"), "{offers:?}");
    if std::fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim_end() == "kthreadd") {
        assert_eq!(words(&["-p", "kthrea"]), ["kthreadd"]);
    }
    drop(hostile);
}

#[test]
fn bash_gets_what_replaces_its_part_of_the_word() {
    let bash = |text: &str, line: &str| answer(&["bash", "9", text, line]);
    assert_eq!(bash("al", "pmdb --color=al"), ["always "]);
    assert_eq!(bash("fork-", "pmdb -x :fork-"), ["fork-cost "]);
    assert_eq!(bash("[st", "pmdb self region [st"), ["\\[stack\\]"]);
    assert_eq!(bash("walk all wh", "pmdb self -ex \"walk all wh"), ["walk all where ", "walk all where …"]);
    assert_eq!(bash("region [st", "pmdb self -ex 'region [st"), ["region [stack]", "region [stack]…"]);
    let list = answer(&["bash", "63", "wa", "pmdb demo wa"]);
    assert_eq!(list.len(), 2);
    assert!(list[0].starts_with("walk   list the pages"), "{list:?}");
}

#[test]
fn zsh_gets_what_follows_the_letters_that_stay() {
    let zsh = |words: &[&str]| answer(&[&["zsh"], words].concat());
    let walk = "walk  list the pages of a range, or page frames";
    assert_eq!(zsh(&["", "pmdb", "self", "wal"]), ["0".to_owned(), format!("+walk\t{walk}")]);
    assert_eq!(zsh(&["\"", "pmdb", "self", "-ex", "wal"]), ["0".to_owned(), format!("-walk \t{walk}")]);
    assert_eq!(zsh(&["", "pmdb", "self", "-ex", "walk\\ é,\\ wh"])[0], "0");
    assert_eq!(zsh(&["", "pmdb", "self", "-ex", "walk\\ all\\ wh"]), ["11", "+where\twhere"]);
    assert_eq!(zsh(&["", "pmdb", "-x", "folder/f"]), ["7", "+file\tfile"]);
}

#[test]
fn what_no_script_asks_has_no_answer() {
    for words in [&[][..], &["tcsh", "pmdb", ""], &["bash", "9"], &["fish"], &["zsh"], &["zsh", "\""]] {
        assert!(answer(words).is_empty(), "{words:?}");
    }
    for line in [
        "'print x\" | touch made #",
        "'print x\\\" | touch made #'",
        "print $(touch made)",
        "!touch made",
        "x | touch made",
    ] {
        words(&["self", "-ex", line]);
        words(&["self", line, "wa"]);
    }
}
