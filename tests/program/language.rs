//! Every sentence of `grammar/accept` against a real process, and every one of `grammar/reject`: answers or errors,
//! never a panic.

use crate::run::Home;
use crate::sample::sample;
use pmdb::command::LANGUAGE;
use pmdb::lang::script::Builder;
use std::fs;
use std::path::Path;

/// Commands that would leave, wait, change the target or touch something that is not the test's own.
const LEFT_OUT: [&str; 6] = ["Quit", "Watch", "Attach", "Detach", "Source", "Set(Setting"];

/// The time of examples, which would take most of the time of the test.
const LONG: &str = "every 1s for 30s";
const SHORT: &str = "every 10ms for 30ms";

fn texts(folder: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("grammar").join(folder);
    let files = fs::read_dir(folder).expect("the grammar");
    files.map(|file| fs::read_to_string(file.expect("a file").path()).expect("text")).collect()
}

/// The sentences that are in the language; what each means is indented below it.
fn accepted() -> Vec<String> {
    let mut found = Vec::new();
    for text in texts("accept") {
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let means = lines.peek().copied().unwrap_or_default().trim_start();
            let skipped = LEFT_OUT.iter().any(|left_out| means.contains(&format!("command: {left_out}")));
            let on_screen = means.contains("output: Screen");
            // It goes on until Ctrl-C.
            let is_endless = means.contains("command: Display") && means.contains("every: Some");
            if !line.starts_with([' ', '#']) && on_screen && !skipped && !is_endless {
                found.push(line.replace(LONG, SHORT));
            }
        }
    }
    assert!(found.iter().any(|line| line.contains(SHORT)), "no sentence has {LONG}");
    found
}

/// The sentences that are not; each begins a paragraph, the rest of which is the message.
fn rejected() -> Vec<String> {
    let text = texts("reject").join("\n\n");
    let first =
        |paragraph: &str| paragraph.lines().find(|line| !line.starts_with("#!") && !line.is_empty()).map(str::to_owned);
    // A line that no block can hold is an error before anything runs; tests of blocks have those.
    let is_alone = |line: &String| Builder::new(LANGUAGE).push(1, line).is_ok();
    let sentences = text.split("\n\n").filter_map(first);
    sentences.filter(is_alone).collect()
}

/// One part of the sentences of two, against this process.
fn answers(part: usize) {
    let half = |sentences: Vec<String>| {
        let (first, second) = sentences.split_at(sentences.len() / 2);
        if part == 0 { first.to_vec() } else { second.to_vec() }
    };
    // Neighbours have a subject in common.
    let some = |sentences: Vec<String>| sample(half(sentences), 4).collect::<Vec<_>>();
    let (accepted, rejected) = (some(accepted()), some(rejected()));
    assert!(accepted.len() > 50 && rejected.len() > 20, "{} {}", accepted.len(), rejected.len());
    let home = Home::new();
    // The first error decides the status, and some accepted sentences name processes that are not there.
    home.file("sentences", [rejected.clone(), accepted].concat().join("\n"));
    let run = home.run(&["--json", "--keep-going", "-batch", "-p", "self", "-x", "sentences"]);
    assert_eq!((run.status, run.err.as_str()), (Some(1), ""), "{run:?}");
    let objects = run.objects();
    let errors = objects.iter().filter(|object| object["type"] == "error").count();
    assert!(errors >= rejected.len() && errors < objects.len(), "{errors} errors");
}

#[test]
fn the_first_half_of_the_sentences_has_answers() {
    answers(0);
}

#[test]
fn the_second_half_of_the_sentences_has_answers() {
    answers(1);
}

/// In text, and without a target.
#[test]
fn every_sentence_has_an_answer_without_a_target() {
    let (accepted, rejected) = (accepted(), rejected());
    let home = Home::new();
    home.file("sentences", [accepted.clone(), rejected.clone()].concat().join("\n"));
    let text = home.run(&["--keep-going", "-batch", "-x", "sentences"]);
    assert_eq!(text.status, Some(1));
    let errors = text.err.matches(": error: ").count();
    assert!(errors > rejected.len() + accepted.len() / 2 && !text.err.contains("panicked"), "{}", text.err);
}
