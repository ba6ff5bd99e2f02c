//! What the program generates: manual pages and the schema.

use crate::run::Home;
use crate::sample::sample;
use crate::skips::skip;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

fn generated(what: &str) -> String {
    Home::new().run(&["--generate", what]).is_fine().out.clone()
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// A page as `program` shows it, and what the program says against it.
fn shown(program: &[&str], page: &str) -> (String, String) {
    let home = Home::new();
    let path = home.file("page", page);
    let output = Command::new(program[0]).args(&program[1..]).arg(path).output().expect("it is installed");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(output.stdout), text(output.stderr))
}

/// The programs that show manual pages, and how each does it.
const FORMATTERS: [&[&str]; 2] = [&["groff", "-man", "-Tascii", "-ww", "-P-cbou"], &["mandoc", "-Tascii"]];

/// A line without its bold letters, which a backspace makes.
fn letters_of(line: &str) -> String {
    let mut letters = String::new();
    for letter in line.chars() {
        match letter {
            '\u{8}' => _ = letters.pop(),
            letter => letters.push(letter),
        }
    }
    letters
}

/// Letters alone, as they stand in the pages, where a backspace makes bold ones.
fn letters(text: &str) -> String {
    let mut letters = String::new();
    for letter in text.replace('\u{2026}', "...").replace('\u{d7}', "x").chars() {
        match letter {
            '\u{8}' => _ = letters.pop(),
            letter if letter.is_whitespace() => {}
            letter => letters.push(letter),
        }
    }
    letters
}

#[test]
fn manual_pages_lose_no_word_of_the_help() {
    let pages: [(&str, &[&str]); 3] = [
        ("man", &["cookbook", "scripts", "gdb", "keys", "rights", "traces", "files", "faq"]),
        (
            "man-language",
            &["language", "values", "ranges", "filters", "units", "settings", "terms", "walk", "find", "watch"],
        ),
        ("man-json", &["json", "records", "serve", "mcp", "codes", "python", "jq"]),
    ];
    for formatter in FORMATTERS {
        if !is_installed(formatter[0]) {
            let reason = format!("there is no {} here", formatter[0]);
            skip("manual_pages_lose_no_word_of_the_help", &reason);
            continue;
        }
        for (what, topics) in pages {
            let page = generated(what);
            assert!(page.is_ascii(), "{what}: lost in the C locale");
            let (text, complaints) = shown(formatter, &page);
            assert_eq!(complaints, "", "{what}");
            if formatter[0] == "mandoc" {
                let (lint, _) = shown(&["mandoc", "-Tlint", "-Wstyle"], &page);
                // A term of a list stands in one line, and a reference to a page that is not installed here is right.
                let lint =
                    lint.lines().filter(|line| !line.contains("\\fB") && !line.contains("referenced manual not found"));
                assert_eq!(lint.collect::<String>(), "", "{what}");
                let widest = text.lines().map(|line| letters_of(line).chars().count()).max();
                assert!(widest <= Some(80), "{what}: {widest:?}");
            }
            let text = letters(&text);
            for topic in topics {
                let help = Home::new().run(&["help", topic]).is_fine().out.clone();
                let mut rest = text.as_str();
                // Without headings, and without the usage and the examples of commands.
                let lines = help.lines().skip(1).skip_while(|line| !line.is_empty());
                let lines = lines.filter(|line| !line.starts_with(&format!("{topic}: ")));
                for line in lines.take_while(|line| *line != "examples") {
                    let wanted = letters(line);
                    let at = rest.find(&wanted).unwrap_or_else(|| panic!("{formatter:?}: {topic}: {line}"));
                    rest = &rest[at + wanted.len()..];
                }
            }
        }
    }
}

#[test]
fn manual_pages_have_all_of_the_help() {
    let manual = generated("man");
    for word in [".TH PMDB 1", "\\-\\-keep\\-going", ".SH RIGHTS", "fBregions", "setcap"] {
        assert!(manual.contains(word), "{word}");
    }
    let language = generated("man-language");
    for word in ["pmd_mapped", ".SS walk", "language.ebnf", ".SH FILTERS"] {
        assert!(language.contains(word), "{word}");
    }
    let json = generated("man-json");
    for word in ["pfn_hidden", "protocol", "import json"] {
        assert!(json.contains(word), "{word}");
    }
    for page in [manual, language, json] {
        // A line that troff would take for a request of its own.
        let known = [".TH", ".SH", ".SS", ".PP", ".TP", ".HP", ".RS", ".RE", ".nf", ".fi", ".nh", ".ad l"];
        let requests = page.lines().filter(|line| line.starts_with(['.', '\'']));
        for line in requests {
            assert!(known.iter().any(|request| line.starts_with(request)), "{line}");
        }
    }
}

#[test]
fn the_help_in_one_file_has_every_topic_and_command() {
    let (file, home) = (generated("help"), Home::new());
    for question in home.run(&["help"]).is_fine().out.lines().take(9) {
        let line = question.trim().split("  ").next().expect("a line");
        assert!(file.contains(&format!("`{line}`")), "{line}");
    }
    let words = |text: &str| letters(&text.replace('`', ""));
    let all = words(&file);
    for topic in ["cookbook", "mcp", "filters", "walk", "info process"] {
        let help = home.run(&["help", topic]).is_fine().out.clone();
        let lines = help.lines().skip(1).skip_while(|line| !line.is_empty()).take_while(|line| *line != "examples");
        for line in lines.filter(|line| !line.starts_with(&format!("{topic}: "))) {
            assert!(all.contains(&words(line)), "{topic}: {line}");
        }
    }
}

#[test]
fn everything_is_written_where_packages_expect_it() {
    let home = Home::new();
    let run = home.run(&["--generate", "all", "usr"]);
    assert_eq!(run.is_fine().out, "all files are in usr/share\n");
    for (path, what) in [
        ("usr/share/man/man1/pmdb.1", "man"),
        ("usr/share/man/man7/pmdb-language.7", "man-language"),
        ("usr/share/man/man7/pmdb-json.7", "man-json"),
        ("usr/share/bash-completion/completions/pmdb", "complete-bash"),
        ("usr/share/zsh/site-functions/_pmdb", "complete-zsh"),
        ("usr/share/fish/vendor_completions.d/pmdb.fish", "complete-fish"),
        ("usr/share/pmdb/records.schema.json", "json-schema"),
        ("usr/share/pmdb/pmdb-gdb.py", "gdb"),
    ] {
        assert_eq!(home.read(path), generated(what), "{path}");
    }
    assert_eq!(home.read("usr/share/pmdb/scripts/tour.pmdb"), include_str!("../../scripts/tour.pmdb"));
    home.file("taken", "");
    home.run(&["--generate", "all", "taken"]).failed(1, ": taken is not a directory\n");
    home.run(&["--generate", "all", ""]).failed(2, "has no name");
    home.run(&["--generate", "all"]).failed(2, "needs a directory");
    home.run(&["--generate", "man", "pages"]).is_fine();
    assert_eq!(home.read("pages/pmdb.1"), generated("man"));
    home.run(&["--generate", "man", "taken"]).failed(1, "taken/pmdb.1: taken is not a directory\n");
    home.run(&["--generate", "woman"]).failed(2, "man-json");
}

#[test]
fn the_readme_can_be_read() {
    let text = include_str!("../../README.md");
    assert!(text.lines().count() <= 150, "{}", text.lines().count());
    let mut in_code = false;
    for line in text.lines() {
        in_code ^= line.starts_with("```");
        let widest = if in_code { 110 } else { 132 };
        assert!(line.chars().count() <= widest || line.starts_with("!["), "{line}");
    }
    let checkout = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(checkout.join(link).exists(), "{link}");
    }
}

/// The faults of a value, by the keywords that the schema uses. `whole` is the whole schema.
fn faults(whole: &Value, schema: &Value, value: &Value) -> Option<String> {
    let fault = |why: &str| Some(format!("{why}: {value}"));
    if let Some(place) = schema["$ref"].as_str() {
        let name = place.strip_prefix("#/$defs/").expect("a definition");
        let definition = &whole["$defs"][name];
        assert!(definition["title"].is_string(), "{name} has no title");
        return faults(whole, definition, value);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let mut least = None;
        for one in any {
            let found = faults(whole, one, value)?;
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
        None if schema["type"].is_array() => {
            let of_type = |one: &Value| {
                let mut schema = schema.clone();
                schema["type"] = one.clone();
                schema
            };
            let types = schema["type"].as_array().into_iter().flatten().map(of_type);
            return faults(whole, &serde_json::json!({ "anyOf": types.collect::<Vec<_>>() }), value);
        }
        Some("boolean") => value.is_boolean(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_i64() || value.is_u64(),
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
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        return fault("none of the words");
    }
    let items = value.as_array().into_iter().flatten();
    let of_items = items.filter_map(|item| faults(whole, &schema["items"], item));
    let fields = value.as_object().into_iter().flatten();
    let of_fields = fields.filter_map(|(name, field)| {
        let schema = match &schema["properties"][name] {
            Value::Null => schema.get("additionalProperties")?,
            one => one,
        };
        faults(whole, schema, field)
            .map(|fault| if fault.starts_with("another") { fault } else { format!("{name}: {fault}") })
    });
    let required = schema["required"].as_array().into_iter().flatten();
    let missing = required
        .filter(|name| value.get(name.as_str().unwrap_or_default()).is_none())
        .map(|name| format!("without {name}: {value}"));
    of_fields.chain(of_items).chain(missing).next()
}

/// The fields of each record that has one shape are those of the golden file; in brackets are those that may be
/// missing.
fn has_the_fields_of_the_golden_file(schema: &Value) {
    let golden = include_str!("../../src/command/tests/records/golden/fields.txt");
    for (name, fields) in golden.lines().filter_map(|line| line.split_once(": ")) {
        let Some(shape) = schema["$defs"].get(name) else {
            assert!(["decoded", "help"].contains(&name), "no {name}");
            continue;
        };
        let fields = || std::iter::once("type").chain(fields.split(' '));
        let all: BTreeSet<&str> = fields().map(|field| field.trim_matches(['[', ']'])).collect();
        let always: BTreeSet<&str> = fields().filter(|field| !field.starts_with('[')).collect();
        let properties = shape["properties"].as_object().expect("fields").keys();
        let required = shape["required"].as_array().expect("names").iter().filter_map(Value::as_str);
        assert_eq!(properties.map(String::as_str).collect::<BTreeSet<_>>(), all, "{name}");
        assert_eq!(required.collect::<BTreeSet<_>>(), always, "{name}");
    }
}

#[test]
fn the_schema_has_every_record() {
    let schema: Value = serde_json::from_str(&generated("json-schema")).expect("JSON");
    has_the_fields_of_the_golden_file(&schema);
    let golden = include_str!("../../src/command/tests/records/golden/records.jsonl");
    for line in sample(golden.lines(), 3) {
        let record: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(faults(&schema, &schema, &record), None);
        // Every field that is always there is missed, and none may be of another type.
        let kind = record["type"].as_str().expect("a type");
        let shapes = schema["anyOf"].as_array().expect("shapes").iter();
        let mut shapes = shapes.filter(|shape| faults(&schema, shape, &record).is_none());
        let shape = shapes.next().expect("its shape");
        let shape = &schema["$defs"][shape["$ref"].as_str().expect("a definition").trim_start_matches("#/$defs/")];
        for name in shape["required"].as_array().expect("names") {
            let name = name.as_str().expect("a name");
            let mut other = record.clone();
            other.as_object_mut().expect("an object").remove(name);
            assert!(faults(&schema, &schema, &other).is_some(), "{kind} without {name}");
        }
        for name in shape["properties"].as_object().expect("fields").keys() {
            if record.get(name).is_some() {
                let mut other = record.clone();
                other[name] = serde_json::json!([[[]]]);
                assert!(faults(&schema, &schema, &other).is_some(), "{kind}: {name}");
            }
        }
    }
    let home = Home::new();
    let run = home.run_with(&["--serve"], "print 1\n{\"id\":\"a text\",\"line\":\"print 2\"}\n");
    for record in run.objects() {
        assert_eq!(faults(&schema, &schema, &record), None);
    }
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
        assert_eq!(faults(&schema, &schema, &record), None);
    }
}
