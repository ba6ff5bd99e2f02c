//! What programs read: `--json` and `--serve`.

use crate::run::{Home, NOBODY};
use serde_json::{Value, json};

fn kinds(objects: &[Value]) -> Vec<&str> {
    objects
        .iter()
        .map(|object| object["type"].as_str().expect("a type"))
        .collect()
}

#[test]
fn json_is_an_object_a_line() {
    let run = Home::new().run(&[
        "-json",
        "-batch",
        "-ex",
        "print 6*7",
        "-ex",
        "show width",
        "-ex",
        "echo a",
    ]);
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
    assert_eq!(
        (&error["where"]["line"], &error["where"]["column"]),
        (&json!(2), &json!(1))
    );
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
        [
            "value", "end", "error", "end", "end", "end", "error", "end", "value", "end"
        ]
    );
    let ends: Vec<(u64, &str)> = objects
        .iter()
        .filter(|object| object["type"] == "end")
        .map(|end| (end["id"].as_u64().unwrap(), end["status"].as_str().unwrap()))
        .collect();
    assert_eq!(
        ends,
        [
            (1, "ok"),
            (2, "error"),
            (3, "ok"),
            (4, "ok"),
            (5, "error"),
            (6, "ok")
        ]
    );
}

#[test]
fn quit_ends_the_service_and_is_answered() {
    let run = Home::new().run_with(&["--serve"], "quit\nprint 1\n");
    let objects = run.objects();
    assert_eq!(run.is_fine().status, Some(0));
    assert_eq!(objects, [json!({"type": "end", "id": 1, "status": "ok"})]);
}

#[test]
fn a_command_line_that_quits_is_not_followed_by_service() {
    let run = Home::new().run_with(&["--serve", "-ex", "quit 6"], "print 1\n");
    assert_eq!((run.status, kinds(&run.objects())), (Some(6), vec!["end"]));
}

#[test]
fn a_target_that_is_not_there_does_not_stop_the_service() {
    let run = Home::new().run_with(&["--serve", "-p", NOBODY], "print 1\n");
    let objects = run.objects();
    assert_eq!(run.is_fine().status, Some(0));
    assert_eq!(kinds(&objects), ["error", "end", "value", "end"]);
    assert_eq!(objects[1]["id"], 0);
}

#[test]
fn what_a_shell_command_prints_does_not_disturb_the_replies() {
    let run = Home::new().run_with(&["--serve"], "!echo loud; cat\nprint 1\n");
    assert_eq!(run.status, Some(0));
    assert_eq!(run.err, "loud\n");
    assert_eq!(kinds(&run.objects()), ["end", "value", "end"]);
}

#[test]
fn replies_come_while_the_conversation_goes_on() {
    use std::io::{BufRead, BufReader, Write};
    let home = Home::new();
    let mut child = home
        .command(&["--serve"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut requests = child.stdin.take().unwrap();
    let mut replies = BufReader::new(child.stdout.take().unwrap()).lines();
    for id in 1..=3 {
        writeln!(requests, "print {id}").unwrap();
        let value: Value = serde_json::from_str(&replies.next().unwrap().unwrap()).unwrap();
        assert_eq!(value["value"], json!(id.to_string()));
        let end: Value = serde_json::from_str(&replies.next().unwrap().unwrap()).unwrap();
        assert_eq!(end, json!({"type": "end", "id": id, "status": "ok"}));
    }
    drop(requests);
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_end_of_the_target_is_told_in_the_request_that_meets_it() {
    use std::io::{BufRead, BufReader, Write};
    let mut target = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    let home = Home::new();
    let mut child = home
        .command(&["--serve", "-p", &target.id().to_string()])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
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
    writeln!(requests, "print 1").unwrap();
    assert_eq!(kinds(&until_end()), ["target", "value", "end"]);
    target.kill().unwrap();
    target.wait().unwrap();
    writeln!(requests, "translate 0x1000").unwrap();
    let said = until_end();
    assert_eq!(kinds(&said), ["target", "error", "end"]);
    assert_eq!(
        (&said[0]["event"], &said[2]["status"]),
        (&json!("exited"), &json!("error"))
    );
    writeln!(requests, "translate 0x1000").unwrap();
    assert_eq!(kinds(&until_end()), ["error", "end"]);
    drop(requests);
    assert!(child.wait().unwrap().success());
}

#[test]
fn replies_stay_json_for_a_program() {
    let run = Home::new().run_with(&["--serve"], "set json off\nset json on\nprint 1\n");
    let objects = run.objects();
    run.is_fine();
    assert_eq!(kinds(&objects), ["error", "end", "end", "value", "end"]);
    let message = objects[0]["message"].as_str().unwrap();
    assert!(message.contains("--serve replies in JSON"), "{message}");
}
