//! `--mcp`: what a language model may do, and that it may do no more.

use crate::run::{Home, Run};
use pmdb::command::LANGUAGE;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

fn call(id: usize, tool: &str, arguments: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments } })
}

/// Sends messages, and returns what comes back, by id.
fn exchange(home: &Home, arguments: &[&str], messages: &[Value]) -> Vec<Value> {
    let lines: String = messages.iter().map(|message| format!("{message}\n")).collect();
    let run = home.run_with(arguments, lines);
    run.is_fine();
    let mut answers = run.objects();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers
}

/// The texts of the answers to lines, and whether they are errors.
fn run_lines(home: &Home, arguments: &[&str], lines: &[&str]) -> Vec<(String, bool)> {
    let calls: Vec<Value> =
        lines.iter().enumerate().map(|(id, line)| call(id, "run", &json!({ "line": line }))).collect();
    let answers = exchange(home, arguments, &calls);
    assert_eq!(answers.len(), lines.len());
    let text = |answer: &Value| answer["result"]["content"][0]["text"].as_str().expect("text").to_owned();
    answers.iter().map(|answer| (text(answer), answer["result"]["isError"] == true)).collect()
}

#[test]
fn a_client_finds_the_tools_and_uses_them() {
    let home = Home::new();
    let hello = |version: &str| json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": version } });
    let asked = [
        hello("2025-06-18"),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }),
        call(2, "run", &json!({ "line": "print 6 * 7" })),
        call(3, "run", &json!({ "line": "print 6 * 7", "json": true })),
        call(4, "help", &json!({ "topic": "translate" })),
        call(5, "help", &json!({})),
        call(6, "run", &json!({ "line": "if 1\nprint 5\nend" })),
        json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" }),
    ];
    let answers = exchange(&home, &["--mcp"], &asked);
    let text = |at: usize| answers[at]["result"]["content"][0]["text"].as_str().expect("text");
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
    let tools: Vec<&Value> =
        answers[1]["result"]["tools"].as_array().expect("a list").iter().map(|tool| &tool["name"]).collect();
    assert_eq!(tools, ["run", "help"]);
    let lines: Vec<&str> = text(2).lines().collect();
    let mark = lines[0].strip_suffix(" begins").expect("a mark");
    assert_eq!(lines[1..], ["$1 = 42  (0x2a)", &format!("{mark} ends")]);
    assert!(answers[0]["result"]["instructions"].as_str().expect("text").contains("`data N begins`"));
    let record: Value = serde_json::from_str(text(3).lines().nth(1).expect("a record")).expect("JSON");
    assert_eq!(record["value"], "42");
    assert!(text(4).contains("usage: translate") || text(4).contains("translate ["), "{}", text(4));
    assert_eq!(text(5).trim_end(), home.run(&["help"]).out.trim_end());
    assert!(text(6).contains("$3 = 5"), "{}", text(6));
    assert_eq!(answers[7]["result"], json!({}));
    // A version that is not answered gets the one before it, or the newest. 2025-03-26 has batches.
    for (asked, answered) in [("2025-03-26", "2024-11-05"), ("2031-01-01", "2025-11-25"), ("1999-01-01", "2025-11-25")]
    {
        assert_eq!(exchange(&home, &["--mcp"], &[hello(asked)])[0]["result"]["protocolVersion"], answered);
    }
}

#[test]
fn what_is_no_call_is_an_error_and_the_next_one_is_answered() {
    let home = Home::new();
    for (message, code) in [
        (json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/list" }), -32601),
        (json!({ "jsonrpc": "2.0", "id": -1, "method": "ping" }), -32600),
        (call(1, "shell", &json!({})), -32602),
        (call(1, "run", &json!({})), -32602),
        (call(1, "run", &json!({ "line": "print 1", "shell": true })), -32602),
        (call(1, "help", &json!({ "topic": 1 })), -32602),
        (call(1, "run", &json!({ "line": "x".repeat(65 << 10) })), -32602),
        (json!({ "jsonrpc": "2.0", "id": 1 }), -32600),
        (json!("text"), -32700),
        (json!([]), -32700),
        // Neither a batch nor the fields in their order.
        (json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }]), -32700),
        (json!([1, "ping", {}]), -32700),
    ] {
        let answers = exchange(&home, &["--mcp"], &[message.clone(), call(2, "run", &json!({ "line": "print 1" }))]);
        assert_eq!(answers[0]["error"]["code"], code, "{message}");
        assert_eq!(answers[1]["result"]["isError"], false, "{message}");
    }
    // A backslash joins no message with the next one.
    let lines = format!("text\\\n{}\n", json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }));
    let run = home.run_with(&["--mcp"], lines);
    assert_eq!(run.objects()[1]["result"], json!({}), "{run:?}");
}

#[test]
fn no_line_changes_a_file_or_a_process() {
    let home = Home::new();
    let lines = crate::outside::accepted_lines();
    let lines: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !line.starts_with("attach")).collect();
    let answers = run_lines(&home, &["--mcp"], &lines);
    let refused = lines.iter().zip(&answers).filter(|(_, (text, _))| text.contains("error: --mcp r"));
    let refused: Vec<&str> = refused.map(|(line, _)| *line).collect();
    for line in ["soft-dirty clear", "x --fault heap", "quit", "capture before.capture", "shell ls", "source f"] {
        assert!(refused.iter().any(|refused| refused.starts_with(line)) || !lines.contains(&line), "{line} ran");
    }
    // Of these commands no line runs; each new one that may do more than look needs a decision here.
    let names = LANGUAGE.names().map(|command| command.name).filter(|name| {
        let mut own = lines.iter().filter(|line| line.split([' ', '/']).next() == name.split(' ').next()).peekable();
        own.peek().is_some() && own.all(|line| refused.contains(line))
    });
    assert_eq!(names.collect::<Vec<_>>(), ["capture", "export core", "source", "complete", "shell", "pipe", "quit"]);
    crate::outside::has_written_nothing(&home);
    for line in
        ["x --fault $sp", "soft-dirty clear --yes", "snapshot a to f", "print 1 > ./f", "print 1 | cat", "!touch f"]
    {
        let (text, is_error) = &run_lines(&home, &["--mcp"], &[line])[0];
        assert!(*is_error && text.contains("--mcp r"), "{line}: {text}");
    }
    crate::outside::has_written_nothing(&home);
}

#[test]
fn captures_are_opened_below_the_directory_alone() {
    let home = Home::new();
    home.file("inside/none", "");
    let made = home.run(&["-nx", "-batch", "self", "capture inside/one.capture"]);
    made.is_fine();
    std::fs::copy(home.path("inside/one.capture"), home.path("two.capture")).expect("a copy");
    std::os::unix::fs::symlink("../two.capture", home.path("inside/link")).expect("a link");
    let whole = format!("target capture {}", home.path("inside/one.capture").display());
    for (directory, line, is_opened) in [
        ("--mcp=inside", "target capture one.capture", true),
        ("--mcp=inside", whole.as_str(), true),
        ("--mcp=inside", "target capture ../two.capture", false),
        ("--mcp=inside", "target capture link", false),
        ("--mcp=inside", "snapshot a from ../two.capture", false),
        ("--mcp", "target capture two.capture", false),
    ] {
        let answers = run_lines(&home, &[directory], &[line, "info process"]);
        assert_eq!(!answers[0].1, is_opened, "{directory} {line}: {answers:?}");
        assert_eq!(!answers[1].1, is_opened && line.starts_with("target"), "{directory} {line}: {answers:?}");
    }
    // What the user has named at the start may be anywhere.
    let answers = run_lines(&home, &["--mcp", "-c", "two.capture"], &["info process"]);
    assert!(!answers[0].1, "{answers:?}");
    home.run(&["--mcp=absent"]).failed(1, "cannot open absent");
}

#[test]
fn an_answer_is_cut_and_a_call_is_cancelled() {
    let home = Home::new();
    let long = format!("printf \"%s\\n\", \"{}\"", "a".repeat(1000));
    let block = format!("while 1\n{long}\nend");
    let answers = run_lines(&home, &["--mcp"], &[&block, "print 1"]);
    assert!(answers[0].0.len() < 66 << 10 && answers[0].0.contains("cut at 64 KiB"), "{}", answers[0].0.len());
    assert!(answers[1].0.contains("$1 = 1"), "{}", answers[1].0);

    let mut child = home.command(&["--mcp"]).stdin(Stdio::piped()).spawn().expect("it starts");
    let mut requests = child.stdin.take().expect("its input");
    let mut answers = BufReader::new(child.stdout.take().expect("its output")).lines();
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    // A display ends normally by an interrupt, and the loop around it begins the next.
    let endless = call(1, "run", &json!({ "line": "while 1\ndisplay 1 every 1h\nend" }));
    for message in [
        endless,
        json!({ "jsonrpc": "2.0", "id": 9, "method": "ping" }),
        cancel,
        call(2, "run", &json!({ "line": "print 2" })),
    ] {
        writeln!(requests, "{message}").expect("it reads");
    }
    let mut next = || serde_json::from_str::<Value>(&answers.next().expect("an answer").expect("text")).expect("JSON");
    assert_eq!(next()["id"], 9, "a ping is answered while a call runs");
    let second = next();
    assert_eq!(
        (&second["id"], &second["result"]["isError"]),
        (&json!(2), &json!(false)),
        "the cancelled call has none"
    );
    drop(requests);
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn what_would_print_beside_the_protocol_is_refused() {
    let home = Home::new();
    for arguments in
        [&["--mcp", "-ex", "print 1"][..], &["--mcp", "812", "regions"], &["--mcp", "ps"], &["--mcp", "--serve"]]
    {
        let run: Run = home.run(arguments);
        assert_eq!((run.status, run.out.as_str()), (Some(2), ""), "{arguments:?}: {run:?}");
    }
    home.run(&["--mcp", crate::run::NOBODY]).failed(3, "no such process");
}
