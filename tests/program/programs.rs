//! What programs read: `--json` and `--serve`.

use crate::executable::Running;
use crate::run::{Home, NOBODY, PMDB};
use crate::skips::skip;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command};

fn kinds(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(|object| object["type"].as_str().expect("a type")).collect()
}

#[test]
fn json_is_an_object_a_line() {
    let run = Home::new().run(&["-json", "-batch", "-ex", "print 6*7", "-ex", "show width", "-ex", "echo a"]);
    let objects = run.objects();
    assert_eq!(run.is_fine().status, Some(0));
    assert_eq!(kinds(&objects), ["value", "setting", "text"]);
    assert_eq!(objects[0]["value"], json!("42"));
    assert_eq!(objects[2]["text"], json!("a\n"));
}

#[test]
fn errors_are_objects_too() {
    let home = Home::new();
    home.file("f", "\nfrobnicate\n");
    let run = home.run(&["--json", "-batch", "-x", "f"]);
    assert_eq!((run.status, run.err.as_str()), (Some(1), ""));
    let error = &run.objects()[0];
    assert_eq!(error["type"], "error");
    assert_eq!(error["where"]["file"], "f");
    assert_eq!((&error["where"]["line"], &error["where"]["column"]), (&json!(2), &json!(1)));
    let run = home.run(&["--json", "-p", NOBODY, "-batch"]);
    assert_eq!(run.status, Some(3));
    assert_eq!(kinds(&run.objects()), ["error"]);
}

#[test]
fn each_request_is_answered_and_closed() {
    let requests = b"print 1\nfrobnicate\n\n# nothing\n\xff\nprint 2\n";
    let run = Home::new().run_with(&["--serve"], requests);
    let objects = run.objects();
    run.is_fine();
    assert_eq!(
        kinds(&objects),
        ["hello", "end", "value", "end", "error", "end", "end", "end", "error", "end", "value", "end"]
    );
    let ends: Vec<(u64, &str)> = objects
        .iter()
        .filter(|object| object["type"] == "end")
        .map(|end| (end["id"].as_u64().unwrap(), end["status"].as_str().unwrap()))
        .collect();
    assert_eq!(ends, [(0, "ok"), (1, "ok"), (2, "error"), (3, "ok"), (4, "ok"), (5, "error"), (6, "ok")]);
}

#[test]
fn quit_ends_the_service_and_is_answered() {
    let run = Home::new().run_with(&["--serve"], "quit\nprint 1\n");
    let objects = run.objects();
    assert_eq!(run.is_fine().status, Some(0));
    assert_eq!(objects[1..], [0, 1].map(|id| json!({"type": "end", "id": id, "status": "ok", "code": null})));
}

#[test]
fn a_command_line_that_quits_is_not_followed_by_service() {
    let run = Home::new().run_with(&["--serve", "-ex", "quit 6"], "print 1\n");
    assert_eq!((run.status, kinds(&run.objects())), (Some(6), vec!["hello", "end"]));
}

#[test]
fn a_target_that_is_not_there_does_not_stop_the_service() {
    let run = Home::new().run_with(&["--serve", "-p", NOBODY], "print 1\n");
    let objects = run.objects();
    assert_eq!(run.is_fine().status, Some(0));
    assert_eq!(kinds(&objects), ["hello", "error", "end", "value", "end"]);
    assert_eq!(objects[2]["id"], 0);
}

#[test]
fn what_a_shell_command_prints_does_not_disturb_the_replies() {
    let run = Home::new().run_with(&["--serve"], "!echo loud; cat\nprint 1\n");
    assert_eq!(run.status, Some(0));
    assert_eq!(run.err, "loud\n");
    assert_eq!(kinds(&run.objects()), ["hello", "end", "end", "value", "end"]);
}

#[test]
fn replies_come_while_the_conversation_goes_on() {
    use std::io::{BufRead, BufReader, Write};
    let home = Home::new();
    let mut child = home.command(&["--serve"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut requests = child.stdin.take().unwrap();
    let mut replies = BufReader::new(child.stdout.take().unwrap()).lines();
    let hello: Value = serde_json::from_str(&replies.next().unwrap().unwrap()).unwrap();
    assert_eq!((&hello["type"], &hello["protocol"]), (&json!("hello"), &json!(1)));
    assert!(replies.next().unwrap().unwrap().contains("\"end\""));
    for id in 1..=3 {
        writeln!(requests, "print {id}").unwrap();
        let value: Value = serde_json::from_str(&replies.next().unwrap().unwrap()).unwrap();
        assert_eq!(value["value"], json!(id.to_string()));
        let end: Value = serde_json::from_str(&replies.next().unwrap().unwrap()).unwrap();
        assert_eq!(end, json!({"type": "end", "id": id, "status": "ok", "code": null}));
    }
    drop(requests);
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_end_of_the_target_is_told_in_the_request_that_meets_it() {
    use std::io::{BufRead, BufReader, Write};
    let mut target = Running::sleep("sleep");
    let home = Home::new();
    let mut child =
        home.command(&["--serve", "-p", &target.id().to_string()]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut requests = child.stdin.take().unwrap();
    let mut replies = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut until_end = move || -> Vec<Value> {
        let mut objects = Vec::new();
        loop {
            let object: Value = serde_json::from_str(&replies.next().unwrap().unwrap()).unwrap();
            let ended = object["type"] == "end";
            objects.push(object);
            if ended {
                return objects;
            }
        }
    };
    assert_eq!(kinds(&until_end()), ["hello", "target", "end"]);
    writeln!(requests, "print 1").unwrap();
    assert_eq!(kinds(&until_end()), ["value", "end"]);
    target.kill().unwrap();
    target.wait().unwrap();
    // A client that shows errors in its own way gets this as a record too.
    writeln!(requests, r#"{{"line":"translate 0x1000","as":"text","errors":"json"}}"#).unwrap();
    let said = until_end();
    assert_eq!(kinds(&said), ["target", "error", "end"]);
    assert_eq!((&said[0]["event"], &said[2]["status"]), (&json!("exited"), &json!("error")));
    writeln!(requests, "translate 0x1000").unwrap();
    assert_eq!(kinds(&until_end()), ["error", "end"]);
    // How it ended is known, or it is not said.
    writeln!(requests, "print $_exitsignal").unwrap();
    let said = until_end();
    match kinds(&said)[0] {
        "value" => assert_eq!(said[0]["value"], "9"),
        _ => assert!(said[0]["message"].as_str().unwrap().contains("not known")),
    }
    drop(requests);
    assert!(child.wait().unwrap().success());
}

#[test]
fn replies_stay_json_for_a_program() {
    let run = Home::new().run_with(&["--serve"], "set json off\nset json on\nprint 1\n");
    let objects = run.objects();
    run.is_fine();
    assert_eq!(kinds(&objects[2..]), ["error", "end", "end", "value", "end"]);
    let message = objects[2]["message"].as_str().unwrap();
    assert!(message.contains("--serve replies in JSON"), "{message}");
}

/// What is answered to these requests, without the greeting.
fn answers(arguments: &[&str], requests: &str) -> Vec<Value> {
    let arguments = [&["--serve"], arguments].concat();
    let run = Home::new().run_with(&arguments, requests);
    let objects = run.objects();
    assert_eq!(run.status, Some(0), "{}", run.err);
    let begins = objects.iter().position(|object| object["type"] == "end");
    objects[begins.expect("the end of the greeting") + 1..].to_vec()
}

#[test]
fn a_request_may_be_an_object_with_an_id_a_form_and_several_lines() {
    let block = r#"{"id":"b","line":"if 1\nprint 7\nend\nprint 8"}"#;
    let text = r#"{"id":5,"line":"show","as":"text","width":60}"#;
    let requests = format!("{block}\n{text}\nprint 9\n{{\"line\":1}}\n");
    let objects = answers(&[], &requests);
    let kinds = kinds(&objects);
    assert_eq!(kinds[..3], ["value", "value", "end"]);
    assert_eq!(objects[2], json!({"type": "end", "id": "b", "status": "ok", "code": null}));
    let ends: Vec<&Value> = objects.iter().filter(|object| object["type"] == "end").collect();
    assert_eq!(ends[1]["id"], 5);
    assert_eq!((&ends[2]["id"], &ends[3]["id"]), (&json!(3), &json!(4)));
    assert_eq!(ends[3]["status"], "error");
    let shown: String = objects.iter().filter_map(|object| object["text"].as_str()).collect();
    assert!(shown.contains("pagination"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 60), "{shown}");
}

#[test]
fn a_request_goes_on_where_the_same_line_stopped_whatever_came_in_between() {
    let target = Running::sleep("sleep");
    let again = r#"{"line":"x/2xb $sp","continue":true}"#;
    let requests = format!("x/2xb $sp\nprint 1\n{again}\n{again}\nx/2xb $sp\n");
    let objects = answers(&["-p", &target.id().to_string()], &requests);
    drop(target);
    let rows = objects.iter().filter_map(|object| object["address"].as_str());
    let rows: Vec<u64> = rows.map(|at| u64::from_str_radix(&at[2..], 16).unwrap()).collect();
    let Some(&first) = rows.first() else { panic!("{objects:?}") };
    assert_eq!(rows, [first, first + 2, first + 4, first]);
}

#[test]
fn a_request_that_reached_its_end_begins_again() {
    let target = Running::sleep("sleep");
    let below = "start(region($sp)) - 2p";
    let requests = [
        &format!("set $r = {below}..end(region($sp))"),
        "walk $r limit 1",
        &format!("set $r = {below}..{below} + 1p"),
        "walk $r limit 1",
        r#"{"line":"walk $r limit 1","continue":true}"#,
    ];
    let objects = answers(&["-p", &target.id().to_string()], &format!("{}\n", requests.join("\n")));
    drop(target);
    let rows = objects.iter().filter(|object| object["type"] == "pages");
    let starts: Vec<&Value> = rows.map(|row| &row["start"]).collect();
    assert!(matches!(starts[..], [first, again, last] if first == again && again == last), "{starts:?}: {objects:?}");
}

#[test]
fn text_for_people_has_errors_and_colours() {
    let ask = |color: &str| {
        let line = format!(r#"{{"line":"frobnicate","as":"text","color":{color}}}"#);
        let objects = answers(&[], &format!("{line}\n"));
        assert_eq!(objects[1]["status"], "error");
        objects[0]["text"].as_str().expect("a text").to_owned()
    };
    let plain = ask("false");
    assert!(plain.starts_with("error: there is no command"), "{plain}");
    assert!(ask("true").contains("\u{1b}["));
    let request = r#"{"line":"frobnicate","as":"text","width":20,"errors":"json"}"#;
    let objects = answers(&[], &format!("{request}\n"));
    assert_eq!(kinds(&objects), ["error", "end"]);
    assert_eq!(objects[0]["message"], "there is no command `frobnicate`");
}

/// A server beside this test, which is its process: its input, and its records behind those of the command line.
fn server(home: &Home, options: &[&str]) -> (Child, ChildStdin, impl FnMut() -> Value + use<>) {
    let own = std::process::id().to_string();
    let arguments = [&["--serve", "-p", &own], options].concat();
    let mut child = home.command(&arguments).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let requests = child.stdin.take().unwrap();
    let mut replies = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = move || -> Value { serde_json::from_str(&replies.next().unwrap().unwrap()).unwrap() };
    while next()["type"] != "end" {}
    (child, requests, next)
}

#[test]
fn a_request_can_be_cancelled_while_it_runs_and_before() {
    let (mut child, mut requests, mut next) = server(&Home::new(), &[]);
    writeln!(requests, r#"{{"id":1,"line":"watch $sp every 1h"}}"#).unwrap();
    while next()["type"] != "watch-start" {}
    for line in [r#"{"cancel":2}"#, r#"{"id":2,"line":"print 2"}"#, r#"{"cancel":1}"#, r#"{"id":3,"line":"print 3"}"#] {
        writeln!(requests, "{line}").unwrap();
    }
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let record = next();
        match record["type"].as_str() {
            Some("end") => seen.push((record["id"].as_u64(), record["status"].clone())),
            Some("value") => assert_eq!(record["value"], "3"),
            _ => {}
        }
    }
    let expected = [(1, "interrupted"), (2, "interrupted"), (3, "ok")];
    assert_eq!(seen, expected.map(|(id, status)| (Some(id), json!(status))));
    drop(requests);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_cancelled_request_ends_as_interrupted_whatever_failed_in_it() {
    let (mut child, mut requests, mut next) = server(&Home::new(), &["--keep-going"]);
    writeln!(requests, r#"{{"id":"a","line":"if 1\nassert 0 == 1\nwatch $sp every 1h\nend"}}"#).unwrap();
    while next()["type"] != "watch-start" {}
    writeln!(requests, r#"{{"cancel":"a"}}"#).unwrap();
    let end = std::iter::repeat_with(next).find(|record| record["type"] == "end").unwrap();
    assert_eq!((&end["id"], &end["status"]), (&json!("a"), &json!("interrupted")));
    drop(requests);
    assert!(child.wait().unwrap().success());
}

#[test]
fn whatever_a_request_waits_for_a_cancellation_or_sigint_ends_it() {
    let home = Home::new();
    let (mut child, mut requests, mut next) = server(&home, &[]);
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).expect("a number");
    // Each says that it runs with a file. `while 1` with `!true` is waiting nearly always.
    for line in [
        "!echo > ready; sleep 600",
        "!trap '' INT; echo > ready; while :; do sleep 600; done",
        "print 1 | (echo > ready; sleep 600)",
        "print 1 | (trap '' INT; echo > ready; sleep 600; sleep 600)",
        "walk all | (echo > ready; sleep 600)",
        "while 1\n!echo > ready\nend",
        "while 1\nprint 1 | (cat; echo > ready) > /dev/null\nend",
    ] {
        for is_cancelled in [true, false] {
            writeln!(requests, "{}", json!({"id": "a", "line": line})).unwrap();
            let ready = home.path("ready");
            while !ready.exists() {
                std::thread::yield_now();
            }
            if is_cancelled {
                writeln!(requests, r#"{{"cancel":"a"}}"#).unwrap();
            } else {
                rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
            }
            let mut error = Value::Null;
            let end = loop {
                let record = next();
                match record["type"].as_str() {
                    Some("end") => break record,
                    Some("error") => error = record,
                    _ => {}
                }
            };
            assert_eq!(end["status"], "interrupted", "{line}, cancelled: {is_cancelled}: {error}");
            _ = std::fs::remove_file(ready);
        }
    }
    drop(requests);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_cancellation_passes_all_requests_that_wait() {
    let (mut child, mut requests, mut next) = server(&Home::new(), &[]);
    writeln!(requests, r#"{{"id":"a","line":"watch $sp every 1h"}}"#).unwrap();
    while next()["type"] != "watch-start" {}
    let many = 20_000;
    requests.write_all("#\n".repeat(many).as_bytes()).unwrap();
    writeln!(requests, r#"{{"cancel":"a"}}"#).unwrap();
    let mut ends = std::iter::repeat_with(next).filter(|record| record["type"] == "end");
    assert_eq!(ends.next().map(|end| end["status"].clone()), Some(json!("interrupted")));
    // The end of the input ends the server after the requests that were read.
    drop(requests);
    assert_eq!(ends.take(many).filter(|end| end["status"] == "ok").count(), many);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_server_whose_answers_nobody_reads_ends_at_once() {
    for line in ["", r#"{"id":1,"line":"watch $sp every 1h"}"#, r#"{"id":1,"line":"!sleep 600"}"#] {
        let (mut child, mut requests, next) = server(&Home::new(), &[]);
        writeln!(requests, "{line}").unwrap();
        drop(next);
        assert!(child.wait().unwrap().success(), "{line}");
        drop(requests);
    }
}

#[test]
fn half_a_block_in_a_request_says_how_to_send_all_of_it() {
    let objects = answers(&[], "{\"line\":\"if 1\"}\n");
    assert_eq!(kinds(&objects), ["error", "end"]);
    let hint = objects[0]["hint"].as_str().expect("a hint");
    assert!(hint.contains(r#""line":"if …\nend""#), "{hint}");
    let run = Home::new().run(&["-batch", "-ex", "if 1"]);
    run.failed(1, "`if` needs a block").failed(1, "-x");
}

#[test]
fn a_long_line_or_block_costs_no_long_time() {
    let lines = "print 1\n".repeat(3000);
    let words = "abc ".repeat(1 << 18);
    let long = "x".repeat((1 << 20) + 1);
    let objects = answers(&[], &format!("if 1\n{lines}end\nhelp {words}\n{long}\nprint 2\n"));
    assert_eq!(objects.iter().filter(|object| object["value"] == "1").count(), 3000);
    let errors: Vec<&str> = objects.iter().filter_map(|object| object["message"].as_str()).collect();
    assert!(errors.len() == 2 && errors[1] == "the line is longer than 1 MiB", "{} errors", errors.len());
    assert_eq!(kinds(&objects[objects.len() - 4..]), ["error", "end", "value", "end"]);
}

#[test]
fn with_json_shell_commands_print_to_standard_error() {
    let home = Home::new();
    let run = home.run(&["--json", "-batch", "-ex", "!echo one", "-ex", "shell echo two", "-ex", "print 1 | cat"]);
    assert_eq!((run.status, run.err.as_str()), (Some(0), "one\ntwo\n"));
    assert_eq!(kinds(&run.objects()), ["value"]);
    let run = home.run(&["-batch", "-ex", "!echo one", "-ex", "set json on", "-ex", "!echo two"]);
    assert_eq!((run.out.as_str(), run.err.as_str()), ("one\n", "two\n"));
}

#[test]
fn the_filters_of_the_help_work() {
    if Command::new("jq").arg("--version").output().is_err() {
        return skip("the_filters_of_the_help_work", "there is no jq here");
    }
    // Frames and map counts are for root.
    let is_root = rustix::process::geteuid().is_root();
    let folder = Path::new(PMDB).parent().expect("a folder");
    let filters = code("jq");
    let filters: Vec<&str> = filters.lines().filter(|line| !line.is_empty()).collect();
    assert!(filters.len() >= 5, "{filters:?}");
    for filter in filters {
        if !is_root && (filter.contains("mapcount") || filter.contains("physical")) {
            skip("the_filters_of_the_help_work", "only root sees frames and map counts");
            continue;
        }
        let path = format!("{}:/usr/bin:/bin", folder.display());
        let output = Command::new("bash").args(["-c", filter]).env("PATH", path).output().expect("a shell");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(&output.stderr), "", "{filter}");
        let said = text(&output.stdout);
        assert!(!said.trim().is_empty(), "{filter}");
        assert!(said.lines().all(|line| !line.contains("null") && !line.is_empty()), "{filter}: {said}");
    }
}

#[test]
fn without_a_shell_nothing_leaves_the_protocol() {
    let lines = ["!touch f", "print 1 | tee f", "print 1 > ./f", "capture f", "print 1"];
    let objects = answers(&["--no-shell"], &(lines.join("\n") + "\n"));
    assert_eq!(kinds(&objects), ["error", "end", "error", "end", "error", "end", "error", "end", "value", "end"]);
    for error in objects.iter().filter(|object| object["type"] == "error") {
        assert_eq!(error["code"], "failed");
        assert!(error["message"].as_str().unwrap().contains("--no-shell"));
    }
}

/// The lines of a subject of the help that stand as they are, without their indent.
fn code(subject: &str) -> String {
    let run = Home::new().run(&["--json", "help", subject]);
    let text = run.objects()[0]["text"].as_str().expect("a text").to_owned();
    let lines = text.lines().filter(|line| line.is_empty() || line.starts_with("  "));
    lines.map(|line| format!("{}\n", line.get(2..).unwrap_or_default())).collect()
}

#[test]
fn the_client_of_the_help_works() {
    let home = Home::new();
    let client = code("python").replace("program=\"pmdb\"", &format!("program={:?}", PMDB));
    assert!(client.trim().lines().count() <= 50, "short enough to be read");
    let client = home.file("client.py", client);
    let output = Command::new("python3").arg(client).output();
    let Ok(output) = output else {
        return skip("the_client_of_the_help_works", "there is no python3 here");
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.starts_with("run "), "{said}");
    assert!(said.contains("[stack]"), "{said}");
}
