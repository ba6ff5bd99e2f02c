//! `--no-shell`: no request and no option starts a program or writes a file.

use crate::run::{Home, Run};
use pmdb::command::LANGUAGE;
use pmdb::lang::Setting;
use serde_json::{Value, json};
use std::fs;

/// The lines that the grammar's tests accept, without the trees under them.
pub fn accepted_lines() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/grammar/accept");
    let files = fs::read_dir(folder).expect("the grammar").map(|file| file.expect("a file").path());
    let texts = files.map(|file| fs::read_to_string(file).expect("text"));
    let is_line = |line: &&str| !line.starts_with([' ', '#']) && !line.is_empty();
    texts.flat_map(|text| text.lines().filter(is_line).map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Answers requests, with a file to come for everything that could start or write one.
fn serve(home: &Home, requests: &[String]) -> Run {
    let lines: String = requests.iter().map(|line| format!("{}\n", json!({ "line": line }))).collect();
    home.run_with(&["-nx", "--serve", "--no-shell"], lines)
}

/// The errors of each request, in order.
fn errors(run: &Run) -> Vec<Vec<String>> {
    let mut errors = vec![Vec::new()];
    for record in run.objects() {
        match record["type"].as_str() {
            Some("error") => errors.last_mut().unwrap().push(record["message"].as_str().unwrap().to_owned()),
            Some("end") => errors.push(Vec::new()),
            _ => {}
        }
    }
    // The first answer is that of the command line.
    errors[1..errors.len() - 1].to_vec()
}

pub fn has_written_nothing(home: &Home) {
    let files: Vec<_> = fs::read_dir(home.path("")).expect("the home").map(|file| file.unwrap().file_name()).collect();
    assert!(files.is_empty(), "{files:?}");
}

#[test]
fn no_command_writes_a_file_or_starts_a_program() {
    let home = Home::new();
    // A broken test must not attach to what has this number here, and `quit` ends the requests.
    let lines = accepted_lines().into_iter().filter(|line| !line.starts_with("attach") && !line.starts_with("quit"));
    let outputs = ["> ./f", ">> ./f", "> './f'", "| tee ./f"];
    let requests: Vec<String> = lines.flat_map(|line| outputs.map(|output| format!("{line} {output}"))).collect();
    let run = serve(&home, &requests);
    let errors = errors(&run);
    assert_eq!(errors.len(), requests.len());
    let mut refused: Vec<&str> = Vec::new();
    for (request, errors) in requests.iter().zip(&errors) {
        if errors.iter().any(|error| error.contains("--no-shell")) {
            refused.push(request);
        }
    }
    // Those that have no output of their own, or take the rest of the line as text.
    let blocks = ["if", "else", "end", "while", "loop_break", "loop_continue", "foreach", "define", "document"];
    let unseen = LANGUAGE.names().map(|command| command.name);
    let unseen = unseen.filter(|name| !refused.iter().any(|request| request.starts_with(name)));
    assert_eq!(unseen.collect::<Vec<_>>(), [&["attach"], &blocks[..], &["quit"]].concat());
    has_written_nothing(&home);
}

/// The settings that write no file and start no program, whatever their value.
const HARMLESS: &[&str] = &[
    "color",
    "editing",
    "height",
    "history size",
    "json",
    "kernel records",
    "logging overwrite",
    "logging redirect",
    "pager",
    "pagination",
    "perf maps",
    "scan",
    "shell errors",
    "style",
    "trace commands",
    "width",
];

#[test]
fn no_setting_writes_a_file() {
    let home = Home::new();
    let values = ["on", "off", "0", "1", "auto", "always", "program", "ask", "dark", "emacs", "vi", "./f", "file ./f"];
    let each = Setting::ALL.iter().flat_map(|setting| values.map(|value| format!("set {} {value}", setting.name())));
    // A name that is set is a file only once the log is on.
    let mut requests = vec!["set logging file ./f".to_owned()];
    for setting in each {
        // The answers must stay records.
        if !setting.starts_with("set json") {
            requests.extend([setting, "print 1".to_owned()]);
        }
    }
    let errors = errors(&serve(&home, &requests));
    let of = |line: &str| &errors[requests.iter().position(|request| *request == line).expect("a request")];
    assert!(of("set logging enabled on")[0].contains("--no-shell"), "{:?}", of("set logging enabled on"));
    // Each other setting is known to write nothing: a new one that is not refused needs a decision here.
    let refused = |name: &str| {
        let begins = format!("set {name} ");
        let mut answers = requests.iter().zip(&errors).filter(|(request, _)| request.starts_with(&begins));
        answers.any(|(_, errors)| errors.iter().any(|error| error.contains("--no-shell")))
    };
    let harmless = Setting::ALL.iter().map(|setting| setting.name()).filter(|name| !refused(name));
    assert_eq!(harmless.collect::<Vec<_>>(), HARMLESS);
    has_written_nothing(&home);
}

#[test]
fn commands_of_the_user_write_no_file_and_start_no_program() {
    let home = Home::new();
    let lines = ["define two\nprint 1\nprint 2\nend", "two > ./f", "two >> ./f", "two | tee ./f", "two", "!touch f"];
    let inside = ["define three\nprint 1 | tee ./f\nend", "three", "if 1\nprint 1 > ./f\nend", "shell touch f"];
    let requests: Vec<String> = lines.iter().chain(&inside).map(|&line| line.to_owned()).collect();
    let errors = errors(&serve(&home, &requests));
    let refused: Vec<bool> = errors.iter().map(|errors| errors.iter().any(|e| e.contains("--no-shell"))).collect();
    assert_eq!(refused, [false, true, true, true, false, true, false, true, true, true], "{errors:?}");
    has_written_nothing(&home);
}

#[test]
fn a_report_is_a_file_too() {
    let home = Home::new();
    let run = home.run(&["-nx", "--no-shell", "--report", "f", "-ex", "assert 1", "-batch"]);
    run.failed(2, "--no-shell");
    has_written_nothing(&home);
}

#[test]
fn command_files_that_write_fail_at_the_place() {
    let home = Home::new();
    let run = home.run(&["-nx", "--no-shell", "-batch", "-ex", "set logging on"]);
    run.failed(1, "--no-shell refuses");
    let objects: Vec<Value> = home.run(&["-nx", "--no-shell", "--json", "-batch", "-ex", "show logging"]).objects();
    assert_eq!(objects[0]["value"], "off");
    has_written_nothing(&home);
}

/// perf may print addresses in a file: nothing is mapped there.
#[test]
fn a_row_of_perf_that_shows_no_mapped_address_is_refused() {
    let home = Home::new();
    for (row, hint) in [
        ("1316 touch+0x8 (/opt/app/pmdb)", "this is an address in a file: `translate pmdb!0x1316`"),
        ("\t    1316 touch+0x8 (/opt/app/other)", "this text has no address of the process"),
    ] {
        home.run(&["-batch", "-ex", &format!("translate {row}"), "demo"])
            .failed(1, hint)
            .failed(1, "0x1316 is in no region");
    }
    home.run(&["-batch", "-ex", "echo 1316 touch+0x8 (/opt/app/pmdb)"]).is_fine();
}
