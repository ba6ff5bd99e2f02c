//! The public interface as text, so that a change of it is seen in the difference of a commit: what can be reached from
//! `lib.rs` and is not hidden from the documentation, with what it is made of. `PMDB_BLESS=1` writes it anew.
//!
//! What a macro of ours declares counts if it is written as Rust there; of the others, only the names are seen.

use super::{Source, is_colons, is_word, sources};
use proc_macro2::{Delimiter, Group, Ident, Punct, Spacing, TokenStream, TokenTree};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::PathBuf;

/// The most re-exports that are followed for a name.
const MOST_HOPS: usize = 8;

/// An item of a module, or a member of a type.
#[derive(Clone)]
struct Item {
    /// `fn`, `struct`, `use`, …
    kind: String,
    name: String,
    is_public: bool,
    is_hidden: bool,
    /// Derived traits and other attributes that users notice.
    attributes: Vec<String>,
    /// Without attributes and body.
    head: Vec<TokenTree>,
    /// Fields, variants or members; the path of a `use`.
    body: Vec<TokenTree>,
    /// Whether fields are public without `pub`.
    is_of_macro: bool,
}

/// The items among `tokens`.
fn items(tokens: &[TokenTree], is_of_macro: bool) -> Vec<Item> {
    let mut found = Vec::new();
    let mut rest = tokens;
    let mut attributes = Vec::new();
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (mark, [TokenTree::Group(attribute), after @ ..]) if is_mark(mark, '#') => {
                attributes.push(attribute.stream().to_string().replace(' ', ""));
                rest = after;
            }
            (TokenTree::Ident(word), [mark, TokenTree::Group(body), after @ ..]) if is_mark(mark, '!') => {
                let inside = bare(&Vec::from_iter(body.stream()));
                match items(&Vec::from_iter(body.stream()), true) {
                    _ if word == "macro_rules" => {}
                    // `number!(VirtualAddress, …)`
                    none if none.is_empty() => found.extend(inside.first().map(|name| declared(word, name))),
                    declared => found.extend(declared),
                }
                attributes.clear();
                rest = after;
            }
            (TokenTree::Ident(_), _) => {
                let begin = tokens.len() - after.len() - 1;
                let (item, length) = item(&tokens[begin..], std::mem::take(&mut attributes), is_of_macro);
                found.extend(item);
                rest = &tokens[begin + length.max(1)..];
            }
            _ => {}
        }
    }
    found
}

/// What the macro called `word` declares under that name.
fn declared(word: &Ident, name: &TokenTree) -> Item {
    Item {
        kind: "struct".to_owned(),
        name: name.to_string(),
        is_public: false,
        is_hidden: false,
        attributes: Vec::new(),
        head: vec![TokenTree::from(word.clone()), TokenTree::from(Punct::new('!', Spacing::Alone)), name.clone()],
        body: Vec::new(),
        is_of_macro: true,
    }
}

/// The item at the beginning of `tokens`, and its length.
fn item(tokens: &[TokenTree], attributes: Vec<String>, is_of_macro: bool) -> (Option<Item>, usize) {
    let restricted =
        matches!(tokens.get(1), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis);
    let is_public = is_word(tokens.first(), "pub") && !restricted;
    let is_over = |token: &TokenTree| {
        is_mark(token, ';') || matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
    };
    let is_fn = tokens.iter().take(6).take_while(|token| !is_over(token)).any(|token| is_word(Some(token), "fn"));
    let kinds = ["fn", "struct", "enum", "union", "trait", "type", "const", "static", "mod", "use", "impl"];
    let is_kind = |token: &TokenTree| kinds.iter().any(|kind| is_word(Some(token), kind) && !(is_fn && *kind != "fn"));
    let Some(at) = tokens.iter().take(6).position(is_kind) else {
        return (None, 1);
    };
    let kind = tokens[at].to_string();
    let ends_with_body = !matches!(kind.as_str(), "use" | "const" | "static" | "type");
    let is_end = |token: &TokenTree| {
        is_mark(token, ';')
            || ends_with_body && matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
    };
    let end = tokens.iter().position(is_end).unwrap_or(tokens.len() - 1);
    let is_value = matches!(kind.as_str(), "const" | "static");
    let cut = tokens[..end].iter().position(|token| is_value && is_mark(token, '=')).unwrap_or(end);
    let body = match (&tokens[end], kind.as_str()) {
        (TokenTree::Group(group), _) => Vec::from_iter(group.stream()),
        (_, "use") => tokens[at + 1..end].to_vec(),
        _ => Vec::new(),
    };
    let is_seen = |text: &String| {
        ["derive(", "must_use", "non_exhaustive", "cfg(feature"].iter().any(|one| text.starts_with(one))
    };
    let has = |wanted: &str| attributes.iter().any(|text| text == wanted);
    let item = Item {
        name: tokens.get(at + 1).map(ToString::to_string).unwrap_or_default(),
        is_public,
        is_hidden: has("doc(hidden)") || has("cfg(test)"),
        attributes: attributes.iter().filter(|text| is_seen(text)).cloned().collect(),
        head: tokens[..cut].to_vec(),
        kind,
        body,
        is_of_macro,
    };
    (Some(item), end + 1)
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

/// Without attributes, in groups too.
fn bare(tokens: &[TokenTree]) -> Vec<TokenTree> {
    let mut kept = Vec::new();
    let mut rest = tokens.iter().peekable();
    while let Some(token) = rest.next() {
        match token {
            mark if is_mark(mark, '#') && matches!(rest.peek(), Some(TokenTree::Group(_))) => _ = rest.next(),
            TokenTree::Group(group) => {
                let inside = bare(&Vec::from_iter(group.stream()));
                kept.push(TokenTree::Group(Group::new(group.delimiter(), TokenStream::from_iter(inside))));
            }
            token => kept.push(token.clone()),
        }
    }
    kept
}

fn text(tokens: &[TokenTree]) -> String {
    let mut text = TokenStream::from_iter(bare(tokens)).to_string();
    for (wide, narrow) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" ::", "::"),
        (" :", ":"),
        (" ,", ","),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        ("& ", "&"),
        (" (", "("),
        ("- >", "->"),
        ("->", " -> "),
        ("-> ", "-> "),
        ("  ", " "),
        ("' ", "'"),
        (" ?", "?"),
    ] {
        text = text.replace(wide, narrow);
    }
    text
}

/// Parts between commas that are not within angle brackets.
fn parts(tokens: &[TokenTree]) -> Vec<Vec<TokenTree>> {
    let mut parts = vec![Vec::new()];
    let mut depth = 0_i32;
    for token in tokens {
        depth += i32::from(is_mark(token, '<')) - i32::from(is_mark(token, '>'));
        match parts.last_mut() {
            Some(part) if !(depth <= 0 && is_mark(token, ',')) => part.push(token.clone()),
            _ => parts.push(Vec::new()),
        }
    }
    parts.retain(|part| !bare(part).is_empty());
    parts
}

/// All modules of the library, by their paths.
struct Library(HashMap<Vec<String>, Vec<Item>>);

impl Library {
    fn new(sources: &[Source]) -> Self {
        let module = |source: &Source| {
            let path = source.module().into_iter().map(str::to_owned).collect();
            (path, items(&source.tokens(), false))
        };
        Library(sources.iter().filter(|source| source.path != "main.rs").map(module).collect())
    }

    /// The names that a `use` brings into a module, each with the path from the root that it stands for.
    fn imports(tokens: &[TokenTree], before: &[String]) -> Vec<(String, Vec<String>)> {
        let mut found = Vec::new();
        for part in parts(tokens) {
            let mut path = before.to_vec();
            let mut name = None;
            let mut rest = &part[..];
            while let [first, after @ ..] = rest {
                rest = after;
                match first {
                    TokenTree::Ident(word) if word == "as" => name = after.first().map(ToString::to_string),
                    TokenTree::Ident(word) if name.is_none() => path.push(word.to_string()),
                    TokenTree::Group(group) => {
                        found.extend(Self::imports(&Vec::from_iter(group.stream()), &path));
                        path.clear();
                    }
                    mark if is_mark(mark, '*') => path.push("*".to_owned()),
                    _ => {}
                }
            }
            if path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            if let Some(last) = path.last() {
                found.push((name.unwrap_or_else(|| last.clone()), path));
            }
        }
        found
    }

    /// The path from the root on, of one in `module`.
    fn from_root(module: &[String], path: &[String]) -> Vec<String> {
        let (mut base, mut rest) = (module.to_vec(), path);
        while let [first, after @ ..] = rest {
            match first.as_str() {
                "crate" => base.clear(),
                "super" => _ = base.pop(),
                "self" => {}
                _ => break,
            }
            rest = after;
        }
        // Without such a word it is of this module, or of another crate.
        [&base[..], rest].concat()
    }

    /// Where `path` is defined: a module and its item.
    fn definition(&self, path: &[String], hops: usize) -> Option<(Vec<String>, &Item)> {
        let (name, module) = path.split_last()?;
        let items = self.0.get(module)?;
        let mut defined = items.iter().filter(|item| !matches!(item.kind.as_str(), "use" | "impl"));
        if let Some(item) = defined.find(|item| item.name == *name) {
            return Some((module.to_vec(), item));
        }
        let uses = items.iter().filter(|item| item.kind == "use" && hops > 0);
        uses.flat_map(|item| Self::imports(&item.body, &[])).find_map(|(local, path)| {
            let mut path = Self::from_root(module, &path);
            if path.last().is_some_and(|last| last == "*") {
                _ = path.pop();
                path.push(name.clone());
            } else if local != *name {
                return None;
            }
            self.definition(&path, hops - 1)
        })
    }

    /// Writes what users see of `module`, which they know as `shown`.
    fn write(&self, module: &[String], shown: &str, lines: &mut BTreeSet<String>) {
        for item in self.0.get(module).into_iter().flatten().filter(|item| item.is_public && !item.is_hidden) {
            match item.kind.as_str() {
                "mod" => {
                    let inside = [module, std::slice::from_ref(&item.name)].concat();
                    let path = format!("{shown}::{}", item.name);
                    lines.insert(format!("{path}: mod{}", described(&item.attributes)));
                    self.write(&inside, &path, lines);
                }
                "use" => {
                    for (name, path) in Self::imports(&item.body, &[]) {
                        let path = Self::from_root(module, &path);
                        match path.split_last() {
                            Some((last, inside)) if last == "*" => self.write(inside, shown, lines),
                            _ => self.write_named(&path, &format!("{shown}::{name}"), lines),
                        }
                    }
                }
                "impl" => {}
                _ => self.write_named(
                    &[module, std::slice::from_ref(&item.name)].concat(),
                    &format!("{shown}::{}", item.name),
                    lines,
                ),
            }
        }
    }

    fn write_named(&self, path: &[String], shown: &str, lines: &mut BTreeSet<String>) {
        let Some((module, item)) = self.definition(path, MOST_HOPS) else {
            lines.insert(format!("{shown}: of a macro or another crate"));
            return;
        };
        lines.insert(format!("{shown}: {}{}", text(&item.head), described(&item.attributes)));
        match item.kind.as_str() {
            "struct" | "union" => {
                let of_flags = items(&item.body, true).into_iter().filter(|one| one.kind == "const");
                let flags: Vec<_> = of_flags.map(|one| one.head).collect();
                let fields = if flags.is_empty() { parts(&item.body) } else { flags };
                for field in fields {
                    let field = bare(&field);
                    let is_restricted = matches!(field.get(1), Some(TokenTree::Group(_)));
                    if item.is_of_macro || is_word(field.first(), "pub") && !is_restricted {
                        lines.insert(format!("{shown}: . {}", text(&field)));
                    }
                }
            }
            "enum" => lines.extend(parts(&item.body).iter().map(|variant| format!("{shown}: | {}", text(variant)))),
            "trait" => {
                let members = items(&item.body, false);
                lines.extend(members.iter().map(|member| format!("{shown}: {}", text(&member.head))));
            }
            _ => return,
        }
        self.write_implementations(&module, &item.name, shown, lines);
    }

    /// What is implemented for `name`, which `home` defines.
    fn write_implementations(&self, home: &[String], name: &str, shown: &str, lines: &mut BTreeSet<String>) {
        for (module, items) in &self.0 {
            let is_it = |module: &[String]| {
                let path = [module, &[name.to_owned()]].concat();
                self.definition(&path, MOST_HOPS).is_some_and(|(found, _)| found == home)
            };
            for item in items.iter().filter(|item| item.kind == "impl" && !item.is_hidden) {
                let (of_trait, of_type) = implemented(&item.head);
                if of_type != name || !is_it(module) {
                    continue;
                }
                if of_trait.is_some() {
                    lines.insert(format!("{shown}: {}{}", text(&item.head), described(&item.attributes)));
                    continue;
                }
                for member in self::items(&item.body, false).iter().filter(|one| one.is_public && !one.is_hidden) {
                    lines.insert(format!("{shown}: {}{}", text(&member.head), described(&member.attributes)));
                }
            }
        }
    }
}

/// The trait of an `impl`, if it is of one, and the name of the type.
fn implemented(head: &[TokenTree]) -> (Option<String>, String) {
    let place = head.iter().position(|token| is_word(Some(token), "for"));
    let after = &head[place.map_or(1, |place| place + 1)..];
    let mut depth = 0_i32;
    let mut name = String::new();
    for (at, token) in after.iter().enumerate() {
        depth += i32::from(is_mark(token, '<')) - i32::from(is_mark(token, '>'));
        match token {
            TokenTree::Ident(word) if depth == 0 && word != "dyn" && name.is_empty() => {
                name = word.to_string();
                if is_colons(&after[at + 1..]) {
                    name.clear();
                }
            }
            _ => {}
        }
    }
    (place.map(|place| text(&head[1..place])), name)
}

fn described(attributes: &[String]) -> String {
    attributes.iter().map(|text| format!(" #[{text}]")).collect()
}

#[test]
fn the_public_interface_is_as_written_down() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    sources(&root.join("src"), "", &mut found);
    let mut lines = BTreeSet::new();
    Library::new(&found).write(&[], "pmdb", &mut lines);
    let now: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let path = root.join("tests/layers/interface.txt");
    if std::env::var_os("PMDB_BLESS").is_some() {
        fs::write(&path, &now).expect("to write it");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let written: BTreeSet<String> = written.lines().map(str::to_owned).collect();
    let gone = written.difference(&lines).map(|line| format!("- {line}\n"));
    let new = lines.difference(&written).map(|line| format!("+ {line}\n"));
    let changes: String = gone.chain(new).collect();
    assert!(changes.is_empty(), "the interface changed; if users are to see that: PMDB_BLESS=1\n{changes}");
}

/// What a library of these files shows.
#[track_caller]
fn shows(files: &[(&str, &str)], expected: &[&str]) {
    let files: Vec<Source> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
    let mut lines = BTreeSet::new();
    Library::new(&files).write(&[], "pmdb", &mut lines);
    assert_eq!(lines.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn what_is_reached_from_the_root_is_shown() {
    let root = "pub mod a; #[doc(hidden)] pub mod b; mod c; pub use c::Inner as Outer;";
    let a = "mod d; pub use d::{One, f}; pub(crate) fn g() {} #[must_use] pub const fn h(x: &[u8]) -> bool { true }";
    let d = "/// Doc.\n#[derive(Clone, Copy)] pub struct One { /// A.\n pub a: Vec<(u8, u8)>, b: u8 }
        impl One { pub fn new() -> Self { One } fn own(&self) {} #[doc(hidden)] pub fn hidden(&self) {} }
        impl std::fmt::Display for One { fn fmt(&self) {} } pub fn f() {} pub fn not_exported() {}";
    let b = "pub struct Hidden;";
    let c = "record! { /// Doc.\n pub struct Inner { /// A.\n x: u8, } } pub enum E { A }";
    shows(
        &[("lib.rs", root), ("a/mod.rs", a), ("a/d.rs", d), ("b.rs", b), ("c.rs", c)],
        &[
            "pmdb::Outer: . x: u8",
            "pmdb::Outer: pub struct Inner",
            "pmdb::a: mod",
            "pmdb::a::One: . pub a: Vec<(u8, u8)>",
            "pmdb::a::One: impl std::fmt::Display for One",
            "pmdb::a::One: pub fn new() -> Self",
            "pmdb::a::One: pub struct One #[derive(Clone,Copy)]",
            "pmdb::a::f: pub fn f()",
            "pmdb::a::h: pub const fn h(x: &[u8]) -> bool #[must_use]",
        ],
    );
}
