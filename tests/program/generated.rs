//! What the program generates: manual pages, and completions for shells.

use crate::run::{Home, PMDB};
use serde_json::Value;
use std::process::Command;

fn generated(what: &str) -> String {
    Home::new().run(&["--generate", what]).is_fine().out.clone()
}

/// The page as man(1) shows it, where it is installed.
fn shown(page: &str) -> Option<(String, String)> {
    let home = Home::new();
    let path = home.file("page.1", page);
    let output = Command::new("groff").args(["-man", "-Tutf8", "-ww", "-K", "utf8"]).arg(path).output().ok()?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Some((text(output.stdout), text(output.stderr)))
}

#[test]
fn manual_pages_have_all_of_the_help() {
    let manual = generated("man");
    for word in [".TH PMDB 1", "\\-\\-keep\\-going", ".SH RIGHTS", "fBregions", "setcap"] {
        assert!(manual.contains(word), "{word}");
    }
    let language = generated("man-language");
    for word in ["pmd_mapped", ".SS walk", "walk           =", ".SH FILTERS"] {
        assert!(language.contains(word), "{word}");
    }
    let json = generated("man-json");
    for word in ["pfn_hidden", "protocol", "import json"] {
        assert!(json.contains(word), "{word}");
    }
    for page in [manual, language, json] {
        // A line that troff would take for a request of its own.
        let known = [".TH", ".SH", ".SS", ".PP", ".TP", ".nf", ".fi"];
        let requests = page.lines().filter(|line| line.starts_with(['.', '\'']));
        for line in requests {
            assert!(known.iter().any(|request| line.starts_with(request)), "{line}");
        }
        if let Some((text, complaints)) = shown(&page) {
            assert_eq!(complaints, "");
            assert!(text.contains("pmdb"));
        }
    }
}

#[test]
fn bash_completes_options_processes_topics_and_commands() {
    let home = Home::new();
    let script = home.file("complete", generated("complete-bash"));
    let folder = std::path::Path::new(PMDB).parent().expect("a folder");
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let offered = |words: &[&str]| {
        let asked = format!(
            "source '{}'; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _pmdb; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        let output = Command::new("bash")
            .args(["-c", &asked, "bash", "pmdb"])
            .args(words)
            .env("PATH", &path)
            .output()
            .expect("bash");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(offered(&["--keep"]), ["--keep-going"]);
    assert!(offered(&["de"]).contains(&"demo".to_owned()));
    assert_eq!(offered(&["help", "filt"]), ["filters"]);
    assert_eq!(offered(&["demo", "wa"]), ["walk", "watch"]);
    assert_eq!(offered(&["self", "walk", "[st"]), ["[stack]"]);
    assert!(offered(&["-p", "self", "walk", "all", "by", ""]).contains(&"zone".to_owned()));
    assert_eq!(offered(&["--color", "al"]), ["always"]);
}

#[test]
fn the_completions_of_other_shells_are_scripts_of_theirs() {
    let home = Home::new();
    for (what, shell, word) in [("complete-zsh", "zsh", "--keep-going"), ("complete-fish", "fish", "-l keep-going")] {
        let script = generated(what);
        assert!(script.contains(word) && !script.contains("S@"), "{what}");
        let file = home.file(what, script);
        if let Ok(output) = Command::new(shell).arg("-n").arg(file).output() {
            assert!(output.status.success(), "{what}: {output:?}");
        }
    }
}

#[test]
fn the_readme_can_be_read() {
    let text = include_str!("../../README.md");
    assert!(text.lines().count() <= 200, "{}", text.lines().count());
    for line in text.lines() {
        assert!(line.chars().count() <= 160, "{line}");
    }
}

/// The faults of a value, by the keywords that the schema uses.
fn faults(schema: &Value, value: &Value) -> Option<String> {
    let fault = |why: &str| Some(format!("{why}: {value}"));
    if let Some(any) = schema["anyOf"].as_array() {
        let mut least = None;
        for one in any {
            let found = faults(one, value)?;
            // What is wrong with the shape that it says to be.
            if least.is_none() || !found.starts_with("another") {
                least = Some(found);
            }
        }
        return least;
    }
    if let Some(wanted) = schema.get("const") {
        return if wanted == value { None } else { fault("another") };
    }
    let is_right = match schema["type"].as_str() {
        Some("boolean") => value.is_boolean(),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some("null") => value.is_null(),
        other => panic!("{other:?} in {schema}"),
    };
    if !is_right {
        return fault("of another type");
    }
    if let (Some("^0x[0-9a-f]+$"), Some(text)) = (schema["pattern"].as_str(), value.as_str()) {
        let digits = text.strip_prefix("0x").unwrap_or_default();
        let is_hex = |c: char| matches!(c, '0'..='9' | 'a'..='f');
        if digits.is_empty() || !digits.chars().all(is_hex) {
            return fault("no hexadecimal number");
        }
    }
    let items = value.as_array().into_iter().flatten();
    let of_items = items.filter_map(|item| faults(&schema["items"], item));
    let fields = value.as_object().into_iter().flatten();
    let of_fields = fields.filter_map(|(name, field)| {
        let schema = match &schema["properties"][name] {
            Value::Null => schema.get("additionalProperties")?,
            one => one,
        };
        faults(schema, field).map(|fault| if fault.starts_with("another") { fault } else { format!("{name}: {fault}") })
    });
    let required = schema["required"].as_array().into_iter().flatten();
    let missing = required
        .filter(|name| value.get(name.as_str().unwrap_or_default()).is_none())
        .map(|name| format!("without {name}: {value}"));
    of_fields.chain(of_items).chain(missing).next()
}

#[test]
fn the_schema_has_every_record() {
    let schema: Value = serde_json::from_str(&generated("json-schema")).expect("JSON");
    let golden = include_str!("../../src/render/tests/golden/records.jsonl");
    for line in golden.lines() {
        let record: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(faults(&schema, &record), None);
        // Every field that is always there is missed, and none may be of another type.
        let kind = record["type"].as_str().expect("a type");
        let shapes = schema["anyOf"].as_array().expect("shapes").iter();
        let mut shapes = shapes.filter(|shape| faults(shape, &record).is_none());
        let shape = shapes.next().expect("its shape");
        for name in shape["required"].as_array().expect("names") {
            let name = name.as_str().expect("a name");
            let mut other = record.clone();
            other.as_object_mut().expect("an object").remove(name);
            assert!(faults(&schema, &other).is_some(), "{kind} without {name}");
        }
        for name in shape["properties"].as_object().expect("fields").keys() {
            if record.get(name).is_some() {
                let mut other = record.clone();
                other[name] = serde_json::json!([[[]]]);
                assert!(faults(&schema, &other).is_some(), "{kind}: {name}");
            }
        }
    }
    let home = Home::new();
    let run = home.run(&[
        "--json",
        "-batch",
        "demo",
        "-ex",
        "regions full",
        "-ex",
        "walk all",
        "-ex",
        "explain $sp",
        "-ex",
        "map",
        "-ex",
        "watch demo_busy every 10ms for 50ms as timeline",
        "-ex",
        "help",
        "-ex",
        "show",
        "-ex",
        "info capabilities",
        "-ex",
        "summary",
        "-ex",
        "x/4s demo_buffer",
    ]);
    for record in run.objects() {
        assert_eq!(faults(&schema, &record), None);
    }
}
