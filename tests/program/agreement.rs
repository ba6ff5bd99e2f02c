//! Each fact about pages by `by`, `where`, `count()`, `print` and in the rows: the same value or the same reason, with
//! any rights, without the scan, without the kernel's records, with pages merged somewhere, of a process, of its
//! capture, and of frames.
//!
//! Some pairs differ by decision. `by state` shows the likeliest state where `where` is undecided. `by mapcount` shows
//! an average as `~N`, which no filter matches. `by` names pages whose frame or state is hidden, where `where` leaves
//! them out.

#![allow(unsafe_code)]

use crate::skips::skip;
use crate::standing::{Place, USER, is_root};
use pmdb::kernel::{Kind, PageFact, PageField, State, ValueType};
use pmdb::lang::FilterField;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::Stdio;

/// Areas of the demonstration process that nobody changes: private, copied, shared, untouched, a guard page, zeros.
const AREAS: [&str; 6] = ["$anonymous", "$buffer", "$shared", "$untouched", "$guard", "$zero"];

/// The records that a line is answered with, without its end and its notes.
type Answer = Vec<Value>;

/// What the answers to one question say.
#[derive(Debug, PartialEq)]
struct Groups {
    /// Pages by name of the group, of those whose value is known.
    known: BTreeMap<String, u64>,
    /// Pages by name of the group, and why it is unknown.
    unknown: BTreeMap<(String, String), u64>,
}

/// The reason in an error that says what cannot be determined.
fn refusal(answer: &Answer) -> Option<String> {
    let error = answer.iter().find(|object| object["type"] == "error")?;
    let message = error["message"].as_str().expect("a message");
    let (_, reason) = message.split_once(" cannot be determined")?;
    Some(reason.trim_start_matches(" here").trim_start_matches(": ").to_owned())
}

/// A reason, without its remedy.
fn reason(why: &Value) -> Option<String> {
    why.as_str().or_else(|| why["reason"].as_str()).map(str::to_owned)
}

fn groups(answer: &Answer, fact: &str) -> Groups {
    let mut groups = Groups { known: BTreeMap::new(), unknown: BTreeMap::new() };
    for row in answer.iter().filter(|object| object["type"] == "group") {
        let (key, pages) = (row["key"].as_str().expect("a key").to_owned(), row["pages"].as_u64().expect("pages"));
        match reason(&row["why"][fact]) {
            Some(reason) => *groups.unknown.entry((key, reason)).or_default() += pages,
            None => *groups.known.entry(key).or_default() += pages,
        }
    }
    groups
}

/// The pages that a filter keeps, those for which it is undecided, and why.
fn filtered(answer: &Answer) -> (u64, u64, Option<String>) {
    let is_summary = |object: &&Value| object["type"] == "walk-summary" || object["type"] == "frames-summary";
    let summary = answer.iter().find(is_summary).unwrap_or_else(|| panic!("no totals: {answer:?}"));
    let pages = summary["pages"].as_u64().or_else(|| summary["frames"].as_u64()).expect("pages");
    (pages, summary["undecided"].as_u64().expect("a number"), reason(&summary["why"]["undecided"]))
}

/// The values of a word, as filters that match each of them.
fn filters(field: PageField, groups: &Groups) -> Vec<(String, String)> {
    let word = field.name();
    let absent = |key: &str| key.starts_with("no ") || key.starts_with("in no ") || key == "charged to none";
    let of_value = |key: &String| match field.value_type() {
        ValueType::Boolean => unreachable!("asked apart"),
        ValueType::Text => format!("{word} == \"{}\"", key.split(" of node ").next().unwrap_or(key)),
        _ => format!("{word} == {key}"),
    };
    match field.value_type() {
        ValueType::Boolean => vec![(word.into(), word.into()), (format!("not {word}"), format!("not {word}"))],
        _ => {
            let keys = groups.known.keys().filter(|key| !absent(key) && !key.starts_with('~'));
            keys.map(|key| (key.clone(), of_value(key))).collect()
        }
    }
}

/// Asks everything about `field` in `range`. Fails unless all answers agree. `None` if the pages changed meanwhile.
fn compare(ask: &mut dyn FnMut(&[String]) -> Vec<Answer>, range: &str, field: PageField) -> Option<()> {
    let (word, fact) = (field.name(), field.fact().row().word);
    let what = format!("{word} of {range}");
    let by = format!("walk {range} by {word}");
    let first = ask(std::slice::from_ref(&by)).remove(0);
    if let Some(reason) = refusal(&first) {
        let same = match field.value_type() {
            ValueType::Integer => format!("{word} >= 0"),
            ValueType::Text => format!("{word} ~ \".\""),
            ValueType::Word => format!("{word} == {}", Kind::Anonymous.word()),
            _ => word.to_owned(),
        };
        let lines = [format!("walk {range} where {same}"), format!("print count({range} where {same})")];
        for answer in ask(&lines) {
            assert_eq!(refusal(&answer).as_deref(), Some(&*reason), "{what}: {answer:?}");
        }
        return Some(());
    }
    let before = groups(&first, fact);
    let filters = filters(field, &before);
    let mut lines = Vec::new();
    for (_, filter) in &filters {
        lines.extend([format!("walk {range} where {filter}"), format!("print count({range} where {filter})")]);
    }
    lines.extend([format!("walk {range}"), by]);
    let mut answers = ask(&lines);
    let after = answers.pop().expect("the last");
    let rows = answers.pop().expect("the rows");
    if groups(&after, fact) != before {
        return None;
    }
    for ((key, filter), answers) in filters.iter().zip(answers.chunks(2)) {
        let [walked, counted] = answers else { panic!("{answers:?}") };
        assert_eq!(refusal(walked), None, "{what}: {filter}");
        let (pages, undecided, why) = filtered(walked);
        assert_eq!(pages, before.known.get(key).copied().unwrap_or_default(), "{what}: {filter} beside {before:?}");
        let unknown: u64 = before.unknown.values().sum();
        assert!(undecided <= unknown, "{what}: {filter}: {undecided} undecided beside {before:?}");
        // Several reasons are one text, in `where` with the pages of each.
        let has_all = |why: &str, reason: &str| reason.split("; ").all(|one| why.contains(one));
        let is_told = |why: &String| before.unknown.keys().any(|(_, reason)| has_all(why, reason));
        assert!(why.as_ref().is_none_or(is_told), "{what}: {filter}: {why:?} beside {before:?}");
        match counted.iter().find(|object| object["type"] == "value") {
            Some(value) => {
                assert_eq!(undecided, 0, "{what}: {filter}: {value}");
                assert_eq!(value["as_number"].as_u64(), Some(pages), "{what}: {filter}");
            }
            None => assert!(undecided > 0, "{what}: {filter}: {counted:?}"),
        }
    }
    compare_rows(&rows, field, &before, &what);
    Some(())
}

/// The rows of `walk` have the same values, where a record has the fact.
fn compare_rows(rows: &Answer, field: PageField, groups: &Groups, what: &str) {
    let PageField::Fact(fact @ (PageFact::State | PageFact::Kind | PageFact::MapCount | PageFact::Order)) = field
    else {
        return;
    };
    if rows.iter().all(|object| object["type"] != "pages") {
        return;
    }
    let mut shown: BTreeMap<String, u64> = BTreeMap::new();
    for row in rows.iter().filter(|object| object["type"] == "pages") {
        let value = match &row[fact.row().json] {
            Value::String(word) => word.clone(),
            Value::Number(number) if row["map_count_average"] != true || fact != PageFact::MapCount => {
                number.to_string()
            }
            _ => continue,
        };
        *shown.entry(value).or_default() += row["pages"].as_u64().expect("pages");
    }
    let is_value = |key: &&String| shown.contains_key(*key) || key.bytes().all(|byte| byte.is_ascii_digit());
    let mut grouped: BTreeMap<String, u64> = groups.known.clone();
    // The likeliest state is shown in rows too.
    if fact == PageFact::State {
        groups.unknown.iter().for_each(|((key, _), pages)| *grouped.entry(key.clone()).or_default() += pages);
    }
    grouped.retain(|key, _| is_value(&key));
    assert_eq!(shown, grouped, "{what}");
}

/// Words whose value another process or the kernel changes at any time.
fn is_restless(field: PageField) -> bool {
    use pmdb::kernel::PageFlags as F;
    let restless = [F::IDLE, F::REFERENCED, F::ACTIVE, F::LOCKED, F::WRITEBACK];
    matches!(field, PageField::Flag(flag) if restless.contains(&flag))
        || matches!(field, PageField::Fact(PageFact::Accessed | PageFact::RefCount | PageFact::TableDirty))
}

fn words(wanted: impl Fn(PageField) -> bool) -> Vec<PageField> {
    PageField::all().filter(|field| field.fact().row().is_key && wanted(*field)).collect()
}

/// Compares all words on the areas of a living process, in the circumstances that `begin` makes.
fn compare_alive(wrapper: &[&str], begin: &[&str]) {
    let place = Place::new();
    let few = |field| match field {
        PageField::State(state) => matches!(state, State::Present | State::Swapped | State::Untouched | State::Guard),
        PageField::Kind(kind) => matches!(kind, Kind::Anonymous | Kind::File | Kind::Shmem | Kind::Ksm | Kind::Zero),
        other => !is_restless(other),
    };
    let mut session = Session::new(&place, wrapper, begin);
    for field in words(few) {
        for area in AREAS {
            let is_still = (0..10).any(|_| compare(&mut |lines| session.ask(lines), area, field).is_some());
            assert!(is_still, "{} of {area} never stood still", field.name());
        }
    }
}

/// One run of the program, which answers many questions.
struct Session {
    child: std::process::Child,
    keys: std::process::ChildStdin,
    lines: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
}

impl Session {
    fn new(place: &Place, wrapper: &[&str], begin: &[&str]) -> Self {
        use std::io::BufRead;
        let mut command = place.command(wrapper, &["--serve", "-nx", "demo"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let keys = child.stdin.take().expect("its input");
        let lines = std::io::BufReader::new(child.stdout.take().expect("its output")).lines();
        let mut session = Session { child, keys, lines };
        session.answer();
        let begin: Vec<String> = begin.iter().map(|line| (*line).to_owned()).collect();
        for answer in session.ask(&begin) {
            assert!(answer.iter().all(|object| object["type"] != "error"), "{answer:?}");
        }
        session
    }

    /// The next answer.
    fn answer(&mut self) -> Answer {
        let mut answer = Answer::new();
        loop {
            let line = self.lines.next().expect("an answer").expect("text");
            let object: Value = serde_json::from_str(&line).expect("JSON");
            match object["type"].as_str() {
                Some("end") => return answer,
                Some("note" | "hello" | "target") => {}
                _ => answer.push(object),
            }
        }
    }

    fn ask(&mut self, lines: &[String]) -> Vec<Answer> {
        for line in lines {
            writeln!(self.keys, "{line}").expect("it reads");
        }
        lines.iter().map(|_| self.answer()).collect()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = writeln!(self.keys, "quit");
        let _ = self.child.wait();
    }
}

#[test]
fn facts_are_the_same_however_they_are_asked() {
    compare_alive(&[], &[]);
}

#[test]
fn facts_are_the_same_without_the_scan_and_the_records() {
    compare_alive(&[], &["set scan off"]);
    compare_alive(&[], &["set kernel records off"]);
}

#[test]
fn facts_are_the_same_for_an_ordinary_user() {
    let wrapper: &[&str] = if is_root() { &AS_USER } else { &[] };
    match Place::new().cannot(wrapper).filter(|_| is_root()) {
        Some(reason) => skip("facts_are_the_same_for_an_ordinary_user", &reason),
        None => {
            compare_alive(wrapper, &[]);
            compare_alive(wrapper, &["set scan off"]);
        }
    }
}

/// Equal pages of this program, which the kernel has merged.
struct Merged {
    memory: *mut u8,
}

impl Merged {
    const BYTES: usize = 64 << 12;

    /// Asks for the merging, and waits for it; the error is why nothing was merged.
    fn new() -> Result<Merged, String> {
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), Merged::BYTES, prot, flags, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED, "no memory");
        let merged = Merged { memory: memory.cast() };
        // SAFETY: within the mapping.
        unsafe { merged.memory.write_bytes(0xb5, Merged::BYTES) };
        // SAFETY: advice about memory of its own.
        if unsafe { libc::madvise(memory, Merged::BYTES, libc::MADV_MERGEABLE) } != 0 {
            return Err(format!("MADV_MERGEABLE: {}", std::io::Error::last_os_error()));
        }
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let are_some =
            || std::fs::read_to_string("/sys/kernel/mm/ksm/pages_shared").is_ok_and(|text| text.trim() != "0");
        while !are_some() {
            if std::time::Instant::now() > deadline {
                return Err("the kernel merged nothing in 20 seconds".into());
            }
            std::thread::yield_now();
        }
        Ok(merged)
    }
}

impl Drop for Merged {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made.
        unsafe { libc::munmap(self.memory.cast(), Merged::BYTES) };
    }
}

/// Without flags, any private page may be a merged one.
#[test]
fn facts_are_the_same_where_pages_are_merged() {
    const NAME: &str = "facts_are_the_same_where_pages_are_merged";
    if !is_root() {
        return skip(NAME, "only root may have pages merged");
    }
    let merging = match crate::system::merging() {
        Ok(merging) => merging,
        Err(reason) => return skip(NAME, &reason),
    };
    match Merged::new() {
        Err(reason) => skip(NAME, &reason),
        Ok(_merged) => {
            compare_alive(&[], &[]);
            compare_alive(&[], &["set scan off"]);
            match Place::new().cannot(&AS_USER) {
                Some(reason) => skip(&format!("{NAME} (an ordinary user)"), &reason),
                None => compare_alive(&AS_USER, &[]),
            }
        }
    }
    drop(merging);
}

/// The words before a program that make an ordinary user run it.
const AS_USER: [&str; 6] = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"];

/// A capture stands still: all words, also those that the kernel changes, on all memory.
#[test]
fn facts_of_a_capture_are_the_same() {
    compare_captured(&[]);
    if is_root() {
        match Place::new().cannot(&AS_USER) {
            Some(reason) => skip("facts_of_a_capture_are_the_same", &reason),
            None => compare_captured(&AS_USER),
        }
    }
}

fn compare_captured(wrapper: &[&str]) {
    let place = Place::new();
    place.open_to_all();
    let mut session = Session::new(&place, wrapper, &["capture ./c", "target capture ./c"]);
    for field in words(|_| true) {
        let same = compare(&mut |lines| session.ask(lines), "all", field);
        assert!(same.is_some(), "{} of a capture changed", field.name());
    }
}

/// Frames have some of the facts, without a process.
#[test]
fn facts_of_frames_are_the_same() {
    let place = Place::new();
    let mut session = Session::new(&place, &[], &[]);
    let shown = session.ask(&["translate $anonymous".to_owned()]).remove(0);
    let Some(first) = shown.iter().find_map(|object| object["pfn"].as_u64()) else {
        return skip("facts_of_frames_are_the_same", "frame numbers are hidden from this user");
    };
    let range = format!("pfn:{first}..pfn:{}", first + 1);
    for field in words(|field| field.fact().row().is_of_frames && !is_restless(field)) {
        let is_still = (0..10).any(|_| compare(&mut |lines| session.ask(lines), &range, field).is_some());
        assert!(is_still, "{} of {range} never stood still", field.name());
    }
}
