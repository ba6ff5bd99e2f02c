//! The codes of errors: each is reached, stands in the record and at the end of the request, and gives its exit status.

use crate::executable::Running;
use crate::run::{Home, NOBODY, Run};
use serde_json::Value;

/// A line that fails, the code of its error, and the exit status.
const FAILING: &[(&[&str], &str, &str, i32)] = &[
    (&[], "walk heap wher", "syntax", 1),
    (&["self"], "print nowhere", "evaluation", 1),
    (&["self"], "print 1 / 0", "evaluation", 1),
    (&[], "translate 0x1000", "no_target", 1),
    (&[], "regions", "no_target", 1),
    (&["self"], "region 0x10", "unmapped", 1),
    (&["self"], "snapshot a in b, +0", "evaluation", 1),
    (&["self"], "diff", "failed", 1),
    (&["self"], "assert 1 == 2", "assertion", 1),
    (&[], "source nothing.pmdb", "io", 1),
    (&[], "print 1 > ./nothing/there", "io", 1),
    (&[], "attach nobody-is-called-so", "no_such_process", 3),
    (&[], "attach 2147483647", "no_such_process", 3),
    (&["demo"], "watch demo_buffer every 10ms for 20ms until guard", "timeout", 5),
    (&[], "!exit 3", "shell", 6),
];

fn errors(run: &Run) -> Vec<Value> {
    run.objects().into_iter().filter(|object| object["type"] == "error").collect()
}

#[test]
fn each_failure_has_its_code_and_its_exit_status() {
    for (target, line, code, status) in FAILING {
        let home = Home::new();
        let batch = [&["--json", "-batch"], *target, &["-ex", line]].concat();
        let run = home.run(&batch);
        let found = errors(&run);
        assert_eq!(found.len(), 1, "{line}: {run:?}");
        assert_eq!((found[0]["code"].as_str(), run.status), (Some(*code), Some(*status)), "{line}: {run:?}");

        let serve = [&["--serve"], *target].concat();
        let run = home.run_with(&serve, format!("{line}\nprint 1\n"));
        let ends: Vec<_> = run.objects().into_iter().filter(|object| object["type"] == "end").collect();
        let codes: Vec<_> = ends.iter().map(|end| end["code"].as_str()).collect();
        assert_eq!(codes, [None, Some(*code), None], "{line}: {run:?}");
        assert_eq!(errors(&run)[0]["code"], *code, "{line}");
    }
}

#[test]
fn a_process_that_has_ended_is_gone_and_one_that_never_was_is_not() {
    let mut child = Running::sleep("sleep");
    let home = Home::new();
    let kill = format!("!kill -9 {}", child.id());
    let line = format!("attach {}\nset shell errors off\n{kill}\nwatch all for 20s\nregions\n", child.id());
    let run = home.run_with(&["--serve"], line);
    let _ = child.wait();
    let last = errors(&run).pop().expect("an error");
    assert_eq!(last["code"], "gone", "{run:?}");
    let run = home.run(&["--json", "-batch", "-p", NOBODY]);
    assert_eq!((errors(&run)[0]["code"].as_str(), run.status), (Some("no_such_process"), Some(3)));
}

#[test]
fn a_request_that_is_cancelled_ends_as_interrupted() {
    let run = Home::new()
        .run_with(&["--serve", "self"], "{\"id\":\"w\",\"line\":\"watch all for 30s\"}\n{\"cancel\":\"w\"}\n");
    let objects = run.objects();
    let end = objects.iter().find(|object| object["type"] == "end" && object["id"] == "w").expect("its end");
    assert_eq!((end["status"].as_str(), end["code"].as_str()), (Some("interrupted"), Some("interrupted")));
}

#[test]
fn the_help_has_every_code_with_its_exit_status() {
    let home = Home::new();
    let help = home.run(&["help", "codes"]).is_fine().out.clone();
    let schema: Value = serde_json::from_str(&home.run(&["--generate", "json-schema"]).out).expect("JSON");
    let codes = schema["$defs"]["word-code"]["enum"].as_array().expect("the codes").clone();
    assert!(codes.len() > 10, "{codes:?}");
    for code in &codes {
        let code = code.as_str().expect("a word");
        let row = help.lines().find(|line| line.split_whitespace().next() == Some(code));
        let row = row.unwrap_or_else(|| panic!("{code} is not in the help"));
        if let Some((_, _, _, status)) = FAILING.iter().find(|failing| failing.2 == code) {
            assert!(row.contains(&format!("  {status}: ")), "{row}");
        }
    }
    for (_, line, code, _) in FAILING {
        assert!(codes.iter().any(|known| known == code), "{line}: {code}");
    }
}

#[test]
fn a_value_is_a_text_and_a_number_where_json_can_hold_it() {
    let of = |value: &str| {
        let run = Home::new().run(&["--json", "-batch", "-ex", &format!("print {value}")]);
        let object = run.objects().remove(0);
        assert!(object["value"].is_string(), "{object}");
        object["as_number"].clone()
    };
    assert_eq!(of("4p"), 16384);
    assert_eq!(of("-3"), -3);
    assert_eq!(of("1 << 53"), 1_i64 << 53);
    assert_eq!(of("(1 << 53) + 1"), Value::Null);
    assert_eq!(of("0 - (1 << 53) - 1"), Value::Null);
    assert_eq!(of("pfn:7"), 7);
    assert_eq!(of("(unsigned char)300"), 44);
    assert_eq!(of("\"12\""), Value::Null);
}
