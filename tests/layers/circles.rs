//! Finds files that depend on each other.
//!
//! A file depends on another if it names something that is defined there. A `pub use` that only re-exports a name
//! depends on nothing: names are followed through re-exports to their definitions. Names in tests do not count.

use super::{Source, is_colons, is_word};
use proc_macro2::{Delimiter, TokenTree};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Keywords before the name of a definition.
const DEFINING: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];

/// A name that a `use` brings into a file.
struct Import {
    /// From the root on.
    path: Vec<String>,
    /// Its name here; `*` for everything.
    name: String,
    public: bool,
}

/// The names that a file uses and defines.
#[derive(Default)]
struct Reading {
    imports: Vec<Import>,
    /// Paths in the code: those that begin with `crate`, `super` or `self` from the root on, others as they stand.
    paths: Vec<Vec<String>>,
    words: HashSet<String>,
    defined: HashSet<String>,
}

impl Reading {
    fn of(source: &Source) -> Self {
        let mut reading = Reading::default();
        let module: Vec<String> = source.module().into_iter().map(str::to_owned).collect();
        reading.read(&source.tokens(), &module);
        reading
    }

    /// Reads tokens that stand in `module`.
    fn read(&mut self, tokens: &[TokenTree], module: &[String]) {
        let mut rest = tokens;
        while let [first, after @ ..] = rest {
            rest = after;
            if is_of_tests(first, after) {
                rest = after_item(&after[1..]);
            } else if is_word(Some(first), "use") {
                let public = is_public(&tokens[..tokens.len() - after.len() - 1]);
                let end = after.iter().position(is_semicolon).unwrap_or(after.len());
                self.read_use(&after[..end], module, &[], public);
                rest = &after[end..];
            } else if is_word(Some(first), "mod")
                && let [TokenTree::Ident(name), TokenTree::Group(body), after @ ..] = after
            {
                let inside = [module, &[name.to_string()]].concat();
                self.read(&Vec::from_iter(body.stream()), &inside);
                rest = after;
            } else if let TokenTree::Group(group) = first
                && is_word(group.stream().into_iter().next().as_ref(), "in")
            {
                // `pub(in crate::lang)` is a visibility, and uses nothing.
            } else if let TokenTree::Group(group) = first {
                self.read(&Vec::from_iter(group.stream()), module);
            } else if let TokenTree::Ident(word) = first {
                let word = word.to_string();
                if let Some(TokenTree::Ident(name)) = after.first()
                    && DEFINING.contains(&word.as_str())
                {
                    self.defined.insert(name.to_string());
                }
                let mut path = vec![word.clone()];
                while is_colons(rest)
                    && let Some(TokenTree::Ident(part)) = rest.get(2)
                {
                    path.push(part.to_string());
                    rest = &rest[3..];
                }
                self.words.insert(word);
                if path.len() > 1 {
                    self.paths.push(from_root(&path, module));
                }
            }
        }
    }

    /// Reads the tree of a `use`; `before` is the path that leads to these tokens.
    fn read_use(&mut self, tokens: &[TokenTree], module: &[String], before: &[String], public: bool) {
        // Behind a trailing comma nothing is left.
        for item in tokens.split(|token| is_mark(token, ',')).filter(|item| !item.is_empty()) {
            let mut path = before.to_vec();
            let mut name = None;
            let mut parts = item.iter();
            while let Some(part) = parts.next() {
                match part {
                    TokenTree::Ident(word) if word == "as" => {
                        name = parts.next().map(ToString::to_string);
                    }
                    TokenTree::Ident(word) => path.push(word.to_string()),
                    TokenTree::Group(group) => {
                        let inside = Vec::from_iter(group.stream());
                        self.read_use(&inside, module, &path, public);
                        path.clear();
                    }
                    part if is_mark(part, '*') => name = Some("*".to_owned()),
                    _ => {}
                }
            }
            if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            if let Some(last) = path.last().cloned() {
                self.imports.push(Import { path: from_root(&path, module), name: name.unwrap_or(last), public });
            }
        }
    }
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

fn is_semicolon(token: &TokenTree) -> bool {
    is_mark(token, ';')
}

/// Whether the tokens from `#` on are `#[cfg(test)]`.
fn is_of_tests(first: &TokenTree, after: &[TokenTree]) -> bool {
    is_mark(first, '#')
        && matches!(after.first(), Some(TokenTree::Group(group)) if group.to_string().replace(' ', "") == "[cfg(test)]")
}

/// The tokens after the item that begins here.
fn after_item(tokens: &[TokenTree]) -> &[TokenTree] {
    let ends = |token: &TokenTree| {
        is_semicolon(token) || matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
    };
    let end = tokens.iter().position(ends);
    end.map_or(&[], |end| &tokens[end + 1..])
}

/// Whether the tokens before a `use` are `pub` or `pub(…)`.
fn is_public(before: &[TokenTree]) -> bool {
    match before {
        [.., last] if is_word(Some(last), "pub") => true,
        [.., last, TokenTree::Group(_)] => is_word(Some(last), "pub"),
        _ => false,
    }
}

/// A path that begins with `crate`, `self` or `super` in `module`, from the root on. Other paths start below `module`,
/// if they are of this crate at all.
fn from_root(path: &[String], module: &[String]) -> Vec<String> {
    let mut base = module;
    let mut path = path;
    loop {
        match path.first().map(String::as_str) {
            Some("crate") => base = &[],
            Some("self") => {}
            Some("super") => base = &base[..base.len().saturating_sub(1)],
            _ => return [base, path].concat(),
        }
        path = &path[1..];
    }
}

/// All files, by the path of their module.
struct House {
    files: HashMap<Vec<String>, (String, Reading)>,
}

impl House {
    fn new<'a>(sources: impl IntoIterator<Item = &'a Source>) -> Self {
        let file = |source: &Source| {
            let module = source.module().into_iter().map(str::to_owned).collect();
            (module, (source.path.clone(), Reading::of(source)))
        };
        // The root only names the modules, and the program is above the library.
        let inside = |source: &&Source| source.path.contains('/');
        House { files: sources.into_iter().filter(inside).map(file).collect() }
    }

    /// The file that defines what a path leads to, if it is of this crate.
    fn home(&self, path: &[String]) -> Option<&str> {
        self.home_without(path, &mut HashSet::new())
    }

    /// The same, without following what was followed before: `*` of two modules may lead to each other.
    fn home_without(&self, path: &[String], followed: &mut HashSet<Vec<String>>) -> Option<&str> {
        let inside = (1..=path.len()).rev().find(|length| self.files.contains_key(&path[..*length]))?;
        let (file, reading) = self.files.get(&path[..inside])?;
        let Some(name) = path.get(inside) else {
            return Some(file);
        };
        if reading.defined.contains(name) || !followed.insert(path.to_vec()) {
            return Some(file);
        }
        let mut passed_on = reading.imports.iter().filter_map(|import| {
            let path = match import.name.as_str() {
                "*" => [&import.path[..], std::slice::from_ref(name)].concat(),
                own if own == name => import.path.clone(),
                _ => return None,
            };
            let home = self.home_without(&path, followed)?;
            (import.name != "*" || self.defines(home, name)).then_some(home)
        });
        Some(passed_on.next().unwrap_or(file))
    }

    fn defines(&self, file: &str, name: &str) -> bool {
        let mut files = self.files.values();
        files.any(|(path, reading)| path == file && reading.defined.contains(name))
    }

    /// The files that a file depends on.
    fn needs(&self, file: &str, reading: &Reading) -> BTreeSet<String> {
        let imported = reading
            .imports
            .iter()
            .filter(|import| !import.public || reading.words.contains(&import.name))
            .map(|import| &import.path);
        imported
            .chain(&reading.paths)
            .filter_map(|path| self.home(path))
            .filter(|home| *home != file)
            .map(str::to_owned)
            .collect()
    }

    /// The names that files in the listed room take from its list.
    fn climbs(&self) -> Vec<String> {
        let is_taken = |path: &&Vec<String>| {
            matches!(&path[..], [room, _, ..] if room == LISTED_ROOM) && !self.files.contains_key(&path[..2])
        };
        let mut climbs = Vec::new();
        for (module, (file, reading)) in &self.files {
            let is_inside = matches!(&module[..], [room, part, ..] if room == LISTED_ROOM && part != "tests");
            if is_inside {
                let imports = reading.imports.iter().map(|import| &import.path);
                let taken = imports.chain(&reading.paths).filter(is_taken);
                climbs.extend(taken.map(|path| format!("{file}: takes `{}` from the list of its room", path[1])));
            }
        }
        climbs.sort();
        climbs
    }

    /// The groups of files that depend on each other, each in the order of the paths.
    fn circles(&self) -> Vec<Vec<String>> {
        let needs: HashMap<&str, BTreeSet<String>> =
            self.files.values().map(|(file, reading)| (file.as_str(), self.needs(file, reading))).collect();
        let reached: HashMap<&str, HashSet<&str>> = needs
            .keys()
            .map(|file| {
                let mut reached = HashSet::new();
                let mut open = vec![*file];
                while let Some(next) = open.pop() {
                    let needed = needs.get(next).into_iter().flatten().map(String::as_str);
                    open.extend(needed.filter(|needed| reached.insert(*needed)));
                }
                (*file, reached)
            })
            .collect();
        let circles: BTreeSet<Vec<String>> = reached
            .iter()
            .filter(|(file, reach)| reach.contains(*file))
            .map(|(file, reach)| {
                let back = |other: &&&str| reached[**other].contains(file);
                let members: BTreeSet<&str> = reach.iter().filter(back).copied().collect();
                members.into_iter().map(str::to_owned).collect()
            })
            .collect();
        circles.into_iter().collect()
    }
}

/// A room whose `mod.rs` is the list of all that is in it, and stands above: what is inside does not even take names
/// that it passes on.
const LISTED_ROOM: &str = "command";

/// The faults of the files, taken together.
pub fn faults(sources: &[Source]) -> Vec<String> {
    let house = House::new(sources);
    let mut faults = house.climbs();
    faults.extend(house.circles().iter().map(|circle| format!("need each other: {}", circle.join(", "))));
    faults
}

#[track_caller]
fn circles<const N: usize>(files: [(&str, &str); N]) -> Vec<String> {
    let sources = files.map(|(path, text)| Source::new(path, text));
    let circles = House::new(&sources).circles();
    circles.iter().map(|circle| circle.join(" ")).collect()
}

#[test]
fn what_is_taken_from_a_list_is_found() {
    let climbs = |path: &str, text: &str| {
        let list = "mod a; pub mod b; pub use b::B; use crate::lang::L; pub static LIST: u8 = 0;";
        let files = [("command/mod.rs", list), ("command/b.rs", "pub struct B;"), (path, text)];
        House::new(&files.map(|(path, text)| Source::new(path, text))).climbs().len()
    };
    assert_eq!(climbs("command/a.rs", "use super::b::B; use crate::lang::L;"), 0);
    assert_eq!(climbs("command/a.rs", "use super::{b, B};"), 1);
    assert_eq!(climbs("command/a.rs", "fn f() { super::LIST }"), 1);
    assert_eq!(climbs("command/a/mod.rs", "use super::super::B; use super::C;"), 1);
    assert_eq!(climbs("command/tests/mod.rs", "use super::LIST;"), 0);
    assert_eq!(climbs("session/mod.rs", "use crate::command::B;"), 0);
}

#[test]
fn files_that_need_each_other_are_found() {
    assert_eq!(
        circles([
            ("eval/a.rs", "use super::b::B; struct A;"),
            ("eval/b.rs", "use crate::eval::{a::A, c}; struct B;"),
            ("eval/c.rs", "fn f() {}"),
        ]),
        ["eval/a.rs eval/b.rs"]
    );
    assert_eq!(
        circles([
            ("eval/a.rs", "fn f() -> super::b::B { g() }"),
            ("eval/b.rs", "use super::c; struct B;"),
            ("eval/c.rs", "mod deep { use super::super::a::f as other; }"),
        ]),
        ["eval/a.rs eval/b.rs eval/c.rs"]
    );
    assert_eq!(
        circles([
            ("eval/mod.rs", "mod a; struct Shared; fn f() { a::g() }"),
            ("eval/a.rs", "use super::Shared; fn g() {}"),
        ]),
        ["eval/a.rs eval/mod.rs"]
    );
}

#[test]
fn a_trailing_comma_in_a_use_names_nothing() {
    let [room, b] = [("eval/mod.rs", "mod a; mod b; fn f() { a::g() }"), ("eval/b.rs", "struct B;")];
    assert_eq!(circles([room, b, ("eval/a.rs", "use super::{b::{B,},}; fn g() {}")]), [""; 0]);
    assert_eq!(circles([room, b, ("eval/a.rs", "use super::{b::B, f,}; fn g() {}")]), ["eval/a.rs eval/mod.rs"]);
}

#[test]
fn names_are_followed_to_where_they_are_defined() {
    let through_the_room = "mod a; mod b; pub use a::A; pub use b::*;";
    assert_eq!(
        circles([
            ("eval/mod.rs", through_the_room),
            ("eval/a.rs", "use super::B; struct A;"),
            ("eval/b.rs", "use super::A; struct B;"),
        ]),
        ["eval/a.rs eval/b.rs"]
    );
    assert_eq!(
        circles([
            ("eval/mod.rs", through_the_room),
            ("eval/a.rs", "use super::B; struct A;"),
            ("eval/b.rs", "struct B;"),
        ]),
        [""; 0]
    );
    assert_eq!(
        circles([
            ("eval/mod.rs", "mod a; pub use a::A; fn f() -> A { g() }"),
            ("eval/a.rs", "use super::f; struct A;"),
        ]),
        ["eval/a.rs eval/mod.rs"]
    );
}

#[test]
fn names_in_tests_do_not_count() {
    assert_eq!(
        circles([
            ("eval/a.rs", "use super::b::B; struct A;"),
            ("eval/b.rs", "struct B; #[cfg(test)] mod tests { use crate::eval::a::A; }",),
            ("eval/c.rs", "// use super::d::D;\npub(in crate::eval::d) struct C;",),
            ("eval/d.rs", "use super::c::C; struct D;"),
        ]),
        [""; 0]
    );
}
