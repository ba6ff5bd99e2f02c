//! The layers of the crate: which modules each file under `src` uses, where `unsafe` is, how large files are, and that
//! no files depend on each other, how long functions are, and how small the seam of bytes is.
//!
//! The files are read as tokens, so that a path in a macro counts and one in a comment or a text does not.

mod circles;
mod functions;
mod hints;
mod interface;
mod seam;
mod texts;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms from the top. One may use those below it. `main.rs` stands above, as a crate of its own.
const FLOORS: [&str; 20] = [
    "args", "repl", "session", "demo", "command", "state", "eval", "inspect", "symbol", "process", "source", "render",
    "report", "hint", "lang", "records", "own", "access", "kernel", "budget",
];

/// The rooms above this one know no source of bytes: it decodes for them what sources give.
const DECODES_SOURCES: &str = "process";

/// The demonstration stands beside the house: of what is below it, it may use this and what is below this.
const DEMO_USES_FROM: &str = "process";

/// The files that may have `unsafe` code.
const UNSAFE_FILES: [&str; 3] = ["source/sys/mod.rs", "source/sys/own.rs", "demo/"];

/// The rooms that read and decode foreign bytes.
const READERS: [&str; 7] = ["symbol", "process", "source", "records", "own", "access", "kernel"];

/// Folders of their tests.
const TESTS: [&str; 2] = ["tests", "fake"];

/// What has no limit until its user gives one: a target of the library.
const UNLIMITED_FILES: [&str; 1] = ["process/target_process.rs"];

/// Without symbols it has one function less to ask.
const WITHOUT_A_FEATURE: &str = "inspect/who/visit.rs";

/// The most lines of a file: larger files hold more than one idea.
const LARGEST_FILE: usize = 24 * 1024;

/// The most columns of a line with a comment, as in `rustfmt.toml`, which does not hold comments to it.
const WIDEST_COMMENT: usize = 120;

/// A source file, its path relative to `src`.
struct Source {
    path: String,
    text: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    /// The path of its module: `command/watch.rs` is `command`, `watch`; `lib.rs` is the root.
    fn module(&self) -> Vec<&str> {
        let path = self.path.trim_end_matches(".rs");
        path.split('/').filter(|part| !matches!(*part, "mod" | "lib" | "main")).collect()
    }

    /// Whether it holds tests, or what they need.
    fn is_of_tests(&self) -> bool {
        self.module().iter().any(|part| TESTS.contains(part))
    }

    fn tokens(&self) -> Vec<TokenTree> {
        let tokens: TokenStream = self.text.parse().unwrap_or_else(|error| panic!("{}: {error}", self.path));
        tokens.into_iter().collect()
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = self.layer_faults();
        faults.extend(self.unsafe_faults());
        faults.extend(self.size_faults());
        faults.extend(self.width_faults());
        faults.extend(self.budget_faults());
        faults.extend(self.feature_faults());
        faults.extend(functions::faults(self));
        faults
    }

    /// A feature only adds code, so that the tests with all of them are the tests with each.
    fn feature_faults(&self) -> Vec<String> {
        let is_left_out = self.text.contains("cfg(not(feature") && self.path != WITHOUT_A_FEATURE;
        is_left_out.then(|| format!("{}: has code that a feature leaves out", self.path)).into_iter().collect()
    }

    /// Where foreign bytes are read, all work has a budget: at least Ctrl-C ends it, or a number of steps.
    fn budget_faults(&self) -> Vec<String> {
        let module = self.module();
        let is_reader = module.first().is_some_and(|room| READERS.contains(room));
        if !is_reader || self.is_of_tests() || UNLIMITED_FILES.contains(&self.path.as_str()) {
            return Vec::new();
        }
        let count = unlimited_budgets(&self.tokens());
        (0..count).map(|_| format!("{}: reads foreign bytes without a limit", self.path)).collect()
    }

    fn layer_faults(&self) -> Vec<String> {
        let module = self.module();
        // The root only names the modules. What is above it uses the library by name.
        let room = match module.first() {
            Some(&room) => room,
            None if self.path == "main.rs" => "args",
            None => return Vec::new(),
        };
        let Some(floor) = floor_of(room) else {
            return vec![format!("{}: '{room}' has no floor", self.path)];
        };
        let mut used = Vec::new();
        uses_of_rooms(&self.tokens(), module.len(), &mut used);
        if floor_of(room) == Some(0) {
            used.extend(uses_of_library(&self.tokens()));
        }
        used.into_iter()
            // The skips and samples of tests.
            .filter(|used| used != room && !["sample", "skips"].contains(&used.as_str()))
            .filter_map(|used| match floor_of(&used) {
                None => Some(format!("{}: uses '{used}', which is no room", self.path)),
                Some(below) if below <= floor => Some(format!("{}: uses '{used}' from a floor above", self.path)),
                Some(_) if used == "source" && Some(floor) < floor_of(DECODES_SOURCES) => {
                    Some(format!("{}: uses a source of bytes past '{DECODES_SOURCES}'", self.path))
                }
                Some(below) if room == "demo" && Some(below) < floor_of(DEMO_USES_FROM) => {
                    Some(format!("{}: uses '{used}', which is not beside it", self.path))
                }
                Some(_) => None,
            })
            .collect()
    }

    fn unsafe_faults(&self) -> Vec<String> {
        let allowed = UNSAFE_FILES
            .iter()
            .any(|place| self.path == *place || place.ends_with('/') && self.path.starts_with(place));
        // The roots deny it to all.
        let words: &[&str] = match self.path.as_str() {
            "lib.rs" | "main.rs" => &["unsafe"],
            _ => &["unsafe", "unsafe_code"],
        };
        let tokens = self.tokens();
        words
            .iter()
            .filter(|word| !allowed && has_word(&tokens, word))
            .map(|word| format!("{}: '{word}' has no place here", self.path))
            .collect()
    }

    fn size_faults(&self) -> Vec<String> {
        let size = self.text.len();
        let fault = (size > LARGEST_FILE).then(|| format!("{}: {size} bytes, more than {LARGEST_FILE}", self.path));
        fault.into_iter().collect()
    }

    fn width_faults(&self) -> Vec<String> {
        let lines = self.text.lines().zip(1..);
        let wide = lines.filter(|(line, _)| line.contains("// ") && line.chars().count() > WIDEST_COMMENT);
        wide.filter(|(line, _)| !is_in_text(line))
            .map(|(_, number)| format!("{}:{number}: a comment wider than {WIDEST_COMMENT} columns", self.path))
            .collect()
    }
}

/// Whether the `//` of this line is part of a text, not of a comment.
fn is_in_text(line: &str) -> bool {
    let before = line.split("//").next().unwrap_or(line);
    before.matches('"').count() % 2 == 1
}

fn floor_of(room: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| *floor == room)
}

fn is_word(token: Option<&TokenTree>, word: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident == word)
}

fn is_colons(tokens: &[TokenTree]) -> bool {
    let colon = |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
    colon(tokens.first()) && colon(tokens.get(1))
}

fn has_word(tokens: &[TokenTree], word: &str) -> bool {
    tokens.iter().any(|token| match token {
        TokenTree::Group(group) => has_word(&Vec::from_iter(group.stream()), word),
        token => is_word(Some(token), word),
    })
}

/// How often these tokens take a budget without a limit, but for code of tests.
fn unlimited_budgets(tokens: &[TokenTree]) -> usize {
    let text = |token: &TokenTree| token.to_string().replace(' ', "");
    let mut count = 0;
    let mut rest = tokens;
    while let Some((token, after)) = rest.split_first() {
        rest = after;
        match token {
            TokenTree::Punct(punct)
                if punct.as_char() == '#' && after.first().map(text).as_deref() == Some("[cfg(test)]") =>
            {
                let is_end = |token: &TokenTree| match token {
                    TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                    token => text(token) == ";",
                };
                let end = after.iter().position(is_end).unwrap_or(after.len() - 1);
                rest = &after[end + 1..];
            }
            TokenTree::Group(group) => count += unlimited_budgets(&Vec::from_iter(group.stream())),
            token if is_word(Some(token), "unlimited") => {
                let next: Vec<String> = after.iter().take(3).map(text).collect();
                count += usize::from(next != ["()", ".", "at_most"]);
            }
            _ => {}
        }
    }
    count
}

/// The rooms that `pmdb::…` paths name.
fn uses_of_library(tokens: &[TokenTree]) -> Vec<String> {
    let mut used = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => used.extend(uses_of_library(&Vec::from_iter(group.stream()))),
            token if is_word(Some(token), "pmdb") && is_colons(&tokens[at + 1..]) => {
                rooms_after_root(&tokens[at + 3..], &mut used);
            }
            _ => {}
        }
    }
    used
}

/// Finds the rooms that `crate::…` paths name, and `super::…` paths that climb to the root. `depth` is how many modules
/// lie between these tokens and the root.
fn uses_of_rooms(tokens: &[TokenTree], depth: usize, used: &mut Vec<String>) {
    let mut rest = tokens;
    while let Some((token, after)) = rest.split_first() {
        rest = after;
        if is_word(Some(token), "crate") && is_colons(rest) {
            rooms_after_root(&rest[2..], used);
        } else if is_word(Some(token), "super") {
            rest = climb(rest, depth - 1, used);
        } else if is_word(Some(token), "mod")
            && let [TokenTree::Ident(_), TokenTree::Group(body), after @ ..] = rest
        {
            uses_of_rooms(&Vec::from_iter(body.stream()), depth + 1, used);
            rest = after;
        } else if let TokenTree::Group(group) = token {
            uses_of_rooms(&Vec::from_iter(group.stream()), depth, used);
        }
    }
}

/// After a `super`, `depth` modules below the root: goes on through further ones, in braces too.
fn climb<'a>(tokens: &'a [TokenTree], depth: usize, used: &mut Vec<String>) -> &'a [TokenTree] {
    if !is_colons(tokens) {
        return tokens;
    }
    let rest = &tokens[2..];
    if depth == 0 {
        rooms_after_root(rest, used);
        return rest;
    }
    match rest {
        [token, after @ ..] if is_word(Some(token), "super") => climb(after, depth - 1, used),
        [TokenTree::Group(group), after @ ..] if group.delimiter() == Delimiter::Brace => {
            uses_of_rooms(&Vec::from_iter(group.stream()), depth, used);
            after
        }
        _ => rest,
    }
}

/// The first names of what follows the root: `kernel::Region`, or `{kernel::Region, lang}`.
fn rooms_after_root(tokens: &[TokenTree], used: &mut Vec<String>) {
    match tokens.first() {
        Some(TokenTree::Group(group)) => {
            let inside = Vec::from_iter(group.stream());
            for item in inside.split(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',')) {
                rooms_after_root(item, used);
            }
        }
        Some(TokenTree::Ident(room)) if room == "self" => {}
        Some(TokenTree::Ident(room)) => used.push(room.to_string()),
        // `crate::*` takes from every room.
        Some(token) => used.push(token.to_string()),
        None => {}
    }
}

fn sources(folder: &Path, below: &str, found: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("a plain name");
        let path = format!("{below}{name}");
        if entry.file_type().expect("a type").is_dir() {
            sources(&entry.path(), &format!("{path}/"), found);
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(entry.path()).expect("text");
            found.push(Source { path, text });
        }
    }
}

#[test]
fn the_house_is_kept() {
    let mut found = Vec::new();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src");
    sources(&folder, "", &mut found);
    assert!(found.iter().any(|source| source.path == "lib.rs"));
    assert!(found.iter().any(|source| source.path.starts_with("kernel/")));
    let mut faults: Vec<String> = found.iter().flat_map(Source::faults).collect();
    faults.extend(circles::faults(&found));
    let mut tests = Vec::new();
    sources(&folder.with_file_name("tests"), "tests/", &mut tests);
    faults.extend(tests.iter().flat_map(Source::width_faults));
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// Every file and folder that the map in `lib.rs` names is there, and it names every command that is a folder.
#[test]
fn the_map_is_true() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("src/lib.rs")).expect("text");
    let (_, map) = text.split_once("// # The modules").expect("a map");
    let lines = map.lines().map_while(|line| line.strip_prefix("//").or(line.is_empty().then_some("")));
    let map = lines.map(str::trim).collect::<Vec<_>>().join(" ");
    let mut room = "";
    let mut named = 0;
    for bullet in map.split(" - ") {
        room = bullet.strip_prefix("**`").and_then(|rest| rest.split('`').next()).unwrap_or(room);
        for word in bullet.split('`').skip(1).step_by(2).map(|word| word.trim_end_matches('/')) {
            let is_path = word.contains('/') || word.ends_with(".rs");
            // Folders of commands have one each.
            if word == "records.rs"
                || word.contains([' ', ':'])
                || word.contains("NAME")
                || word.contains("PID")
                || !is_path
                || word.starts_with('/')
            {
                continue;
            }
            named += 1;
            let places = [root.join("src").join(room).join(word), root.join("src").join(word), root.join(word)];
            assert!(places.iter().any(|place| place.exists()), "{word}, named under {room}");
        }
    }
    assert!(named > 20, "{named}");
    let folders = fs::read_dir(root.join("src/command")).expect("the commands").flatten();
    let folders =
        folders.filter(|entry| entry.path().is_dir()).map(|entry| entry.file_name().into_string().expect("a name"));
    let mut folders: Vec<_> = folders.filter(|name| !["floor", "subjects", "tests"].contains(&name.as_str())).collect();
    folders.sort();
    assert!(map.contains(&format!("{}. The trait", folders.join(", "))), "{folders:?}");
}

#[track_caller]
fn faulty(path: &str, text: &str) {
    assert!(!Source::new(path, text).faults().is_empty(), "{path}: {text}");
}

#[track_caller]
fn sound(path: &str, text: &str) {
    assert_eq!(Source::new(path, text).faults(), Vec::<String>::new(), "{text}");
}

#[test]
fn a_floor_above_is_a_fault() {
    faulty("kernel/region.rs", "use crate::source::Process;");
    faulty("kernel/region.rs", "pub use crate::source;");
    faulty("kernel/mod.rs", "fn f() -> crate::lang::Line { line() }");
    faulty("source/live.rs", "use crate::{kernel::Region, symbol::{Table, Name}};");
    faulty("source/live.rs", "use crate::{\n    kernel::Region,\n    symbol,\n};");
    faulty("report/sink.rs", "fn f() { println!(\"{}\", crate::render::text()) }");
    faulty("lang/mod.rs", "mod tests { mod deep { use crate::session::Session; } }");
    faulty("symbol/mod.rs", "macro_rules! m { () => { $crate::command::run() } }");
}

#[test]
fn a_source_above_the_room_that_decodes_it_is_a_fault() {
    faulty("inspect/find.rs", "use crate::source::Source;");
    faulty("symbol/elf/file.rs", "fn f() -> crate::source::File { file() }");
    faulty("session/mod.rs", "mod tests { use super::super::source; }");
    faulty("main.rs", "use pmdb::{process, source};");
    faulty("args/mod.rs", "fn f() { pmdb::source::live::machine() }");
    sound("process/mod.rs", "use crate::source::Source;");
    sound("source/live/mod.rs", "use crate::source::Source;");
    sound("inspect/find.rs", "use crate::access::ReadAt;");
    sound("args/mod.rs", "use pmdb::own::new_file; use crate::args::tree;");
}

#[test]
fn a_floor_below_is_not() {
    sound("command/watch.rs", "use crate::{inspect::{watch, Event}, kernel::Region};");
    sound("command/watch.rs", "use crate::command::Context; use super::Flow;");
    sound("command/watch.rs", "// use crate::repl::Editor;\nconst A: &str = \"crate::repl\";");
    sound("command/watch.rs", "/// See [`crate::repl`].\nfn f() {}");
    sound("lib.rs", "pub mod kernel; pub mod repl;");
    sound("main.rs", "mod args; use pmdb::session::Session;");
}

#[test]
fn climbing_to_the_root_is_seen() {
    faulty("kernel/mod.rs", "use super::source::Process;");
    faulty("kernel/region.rs", "use super::super::source::Process;");
    faulty("kernel/region.rs", "use super::{Name, super::source::Process};");
    faulty("kernel/maps/line.rs", "use super::super::super::lang;");
    faulty("kernel/region.rs", "mod tests { use super::super::super::lang; }");
    sound("kernel/region.rs", "use super::Name; mod tests { use super::*; use super::super::source; }");
    sound("kernel/maps/mod.rs", "use super::source_like::Thing;");
}

#[test]
fn everything_at_once_and_unknown_rooms_are_faults() {
    faulty("command/watch.rs", "use crate::*;");
    faulty("command/watch.rs", "use crate::utils::helper;");
    faulty("utils/mod.rs", "pub fn helper() {}");
    faulty("utils.rs", "pub fn helper() {}");
}

#[test]
fn reading_without_a_budget_is_a_fault() {
    faulty("process/machine.rs", "fn f(s: &S) { s.read(File::Zones, &mut Budget::unlimited()) }");
    faulty("symbol/elf/file.rs", "use crate::budget::Budget as B; fn f() { g(Budget::unlimited) }");
    sound("process/machine.rs", "fn f(s: &S) { s.read(File::Zones, &mut Budget::unlimited().at_most(9)) }");
    sound("process/machine.rs", "#[cfg(test)]\nmod tests { fn f() { g(&mut Budget::unlimited()) } }");
    sound(
        "process/machine.rs",
        "#[cfg(test)] fn f() { g(Budget::unlimited()) } #[cfg(test)] use crate::budget::Budget;",
    );
    faulty("process/machine.rs", "#[cfg(test)] fn f() {} fn g() { h(Budget::unlimited()) }");
    sound("inspect/watch/mod.rs", "fn new() -> W { W { budget: Budget::unlimited() } }");
}

#[test]
fn code_that_a_feature_leaves_out_is_a_fault() {
    faulty("inspect/page.rs", "#[cfg(not(feature = \"cli\"))]\nfn f() {}");
    sound("inspect/page.rs", "#[cfg(feature = \"cli\")]\nfn f() {}");
}

#[test]
fn the_demonstration_stands_beside() {
    sound("demo/mod.rs", "use crate::access::Error; use crate::kernel::Region;");
    faulty("demo/mod.rs", "use crate::symbol::Table;");
    faulty("demo/mod.rs", "use crate::command::Flow;");
    faulty("demo/mod.rs", "use crate::session::Session;");
    sound("session/mod.rs", "use crate::demo;");
    faulty("source/mod.rs", "use crate::demo;");
    faulty("command/attach.rs", "use crate::demo;");
}

#[test]
fn unsafe_elsewhere_is_a_fault() {
    let code = "fn f() { unsafe { libc::fork() }; }";
    faulty("source/live.rs", code);
    faulty("source/sys/other.rs", code);
    faulty("demonstration.rs", code);
    faulty("main.rs", code);
    faulty("lib.rs", "unsafe impl Sync for A {}");
    faulty("session/mod.rs", "#[unsafe(no_mangle)] static A: u8 = 0;");
    faulty("session/mod.rs", "#![allow(unsafe_code)]");
    faulty("session/mod.rs", "fn f() { m!({ unsafe { g() } }) }");
    sound("source/sys/mod.rs", code);
    sound("demo/child.rs", code);
    sound("lib.rs", "#![deny(unsafe_code)]");
    sound("main.rs", "#![deny(unsafe_code)]");
    sound("session/mod.rs", "// unsafe\nconst A: &str = \"unsafe\";");
}

#[test]
fn a_large_file_is_a_fault() {
    let line = "//! A line.\n";
    sound("lang/large.rs", &line.repeat(LARGEST_FILE / line.len()));
    faulty("lang/large.rs", &line.repeat(LARGEST_FILE / line.len() + 1));
}

#[test]
fn a_wide_comment_is_a_fault() {
    let comment = format!("// {}\n", "x".repeat(WIDEST_COMMENT - 3));
    sound("lang/mod.rs", &comment);
    faulty("lang/mod.rs", &format!("//{comment}"));
    faulty("lang/mod.rs", &format!("use crate::kernel; {comment}"));
    sound("lang/mod.rs", &format!("const A: &str = \"{}\";", comment.trim_end()));
}
