//! What the program makes of itself: manual pages, completions of shells.

use crate::run::{Home, PMDB};
use std::process::Command;

fn generated(what: &str) -> String {
    Home::new().run(&["--generate", what]).is_fine().out.clone()
}

/// The page as man(1) shows it, where it is installed.
fn shown(page: &str) -> Option<(String, String)> {
    let home = Home::new();
    let path = home.file("page.1", page);
    let output = Command::new("groff")
        .args(["-man", "-Tutf8", "-ww", "-K", "utf8"])
        .arg(path)
        .output()
        .ok()?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Some((text(output.stdout), text(output.stderr)))
}

#[test]
fn manual_pages_have_all_of_the_help() {
    let manual = generated("man");
    for word in [
        ".TH PMDB 1",
        "\\-\\-keep\\-going",
        ".SH RIGHTS",
        "fBregions",
        "setcap",
    ] {
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
            assert!(
                known.iter().any(|request| line.starts_with(request)),
                "{line}"
            );
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
    for (what, shell, word) in [
        ("complete-zsh", "zsh", "--keep-going"),
        ("complete-fish", "fish", "-l keep-going"),
    ] {
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
