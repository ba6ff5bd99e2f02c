//! How long functions are, and how many arguments they take: a function is one thought.

use super::{Source, is_word};
use proc_macro2::{Delimiter, TokenTree};

/// The most lines of a function.
const LONGEST: usize = 80;

/// The rooms with shorter functions: a reader takes in at a glance what a command runs, and what it asks.
const SHORT_ROOMS: [&str; 2] = ["command", "inspect"];

/// The most lines of a function in these.
const LONGEST_IN_SHORT_ROOMS: usize = 60;

/// The most arguments of a function in these, without `self`.
const MOST_ARGUMENTS: usize = 5;

/// Functions that are too long or take too much. Code of tests does not count.
pub(super) fn faults(source: &Source) -> Vec<String> {
    if source.is_of_tests() {
        return Vec::new();
    }
    let is_short = source.module().first().is_some_and(|room| SHORT_ROOMS.contains(room));
    let longest = if is_short { LONGEST_IN_SHORT_ROOMS } else { LONGEST };
    let path = &source.path;
    let mut faults = Vec::new();
    for (name, lines) in lengths(&source.text) {
        if lines > longest {
            faults.push(format!("{path}: `{name}` has {lines} lines, more than {longest}"));
        }
    }
    if is_short {
        let mut counts = Vec::new();
        arguments(&source.tokens(), &mut counts);
        for (name, count) in counts.into_iter().filter(|(_, count)| *count > MOST_ARGUMENTS) {
            faults.push(format!("{path}: `{name}` takes {count} arguments, more than {MOST_ARGUMENTS}"));
        }
    }
    faults
}

/// The functions of a formatted text up to its tests, each with its lines: it ends at the brace of its own indentation.
fn lengths(text: &str) -> Vec<(&str, usize)> {
    let tests = text.match_indices("\n#[cfg(test)]\n").map(|(at, _)| at);
    let mut tests = tests.filter(|at| text[at + 2..].lines().nth(1).is_some_and(|line| line.ends_with('{')));
    let lines: Vec<&str> = text[..tests.next().unwrap_or(text.len())].lines().collect();
    let mut functions = Vec::new();
    for (first, line) in lines.iter().enumerate() {
        let indentation = line.len() - line.trim_start().len();
        let Some(name) = name(line) else { continue };
        let is_end =
            |line: &&str| line.trim_end_matches([',', ';']) == format!("{}}}", &line[..indentation.min(line.len())]);
        let is_over = |line: &&str| line.len() - line.trim_start().len() == indentation && is_end(line);
        let declaration = lines[first..].iter().position(|line| line.ends_with('{') || line.ends_with(['}', ';']));
        let has_body = declaration.is_some_and(|end| lines[first + end].ends_with('{'));
        if let Some(length) = lines[first..].iter().position(is_over).filter(|_| has_body) {
            functions.push((name, length + 1));
        }
    }
    functions
}

/// The name of the function that a line begins.
fn name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let qualifiers = ["pub", "const", "unsafe", "async"];
    let is_declaration = before
        .split_whitespace()
        .all(|word| qualifiers.contains(&word) || word.starts_with("pub(") || word.ends_with(')'));
    let name = after.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (is_declaration && !name.is_empty()).then_some(name)
}

/// The functions of these tokens, each with the number of its arguments.
fn arguments(tokens: &[TokenTree], counts: &mut Vec<(String, usize)>) {
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            arguments(&Vec::from_iter(group.stream()), counts);
        }
        let (true, Some(TokenTree::Ident(name))) = (is_word(Some(token), "fn"), tokens.get(at + 1)) else {
            continue;
        };
        let list = tokens[at + 2..].iter().find_map(|token| match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => Some(group.stream()),
            _ => None,
        });
        counts.push((name.to_string(), list.map_or(0, |list| count(&Vec::from_iter(list)))));
    }
}

/// The arguments between these parentheses. Commas between angle brackets are of a type.
fn count(list: &[TokenTree]) -> usize {
    let mut depth = 0_i32;
    let mut before = ' ';
    let mut arguments = vec![Vec::new()];
    for token in list {
        let mark = match token {
            TokenTree::Punct(punct) => punct.as_char(),
            _ => ' ',
        };
        match mark {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            ',' if depth == 0 => arguments.push(Vec::new()),
            _ => arguments.last_mut().expect("a first").push(token),
        }
        before = mark;
    }
    let is_self = |argument: &[&TokenTree]| argument.iter().any(|token| is_word(Some(token), "self"));
    arguments.into_iter().filter(|argument| !argument.is_empty() && !is_self(argument)).count()
}

#[test]
fn a_long_function_is_a_fault() {
    let function = |lines: usize| {
        format!("impl A {{\n    fn f(\n        a: u8,\n    ) {{\n{}    }}\n}}\n", "        a();\n".repeat(lines))
    };
    let long = |path: &str, lines: usize| !faults(&Source::new(path, &function(lines))).is_empty();
    assert!(long("command/echo.rs", LONGEST_IN_SHORT_ROOMS - 3));
    assert!(!long("command/echo.rs", LONGEST_IN_SHORT_ROOMS - 4));
    assert!(long("lang/mod.rs", LONGEST - 3));
    assert!(!long("lang/mod.rs", LONGEST - 4));
    assert!(!long("lang/tests/mod.rs", LONGEST));
    let tests = format!("struct A;\n#[cfg(test)]\nmod tests {{\n{}}}\n", function(LONGEST));
    assert_eq!(faults(&Source::new("lang/mod.rs", &tests)), Vec::<String>::new());
}

#[test]
fn many_arguments_are_a_fault() {
    let most = "a: A<u8, u8>, b: B, c: (u8, u8), d: [D; 4], e: impl Fn(u8, u8) -> u8";
    let function = |more: &str| format!("impl A {{ pub fn f<T: C<u8>>(&mut self, {most}{more}) -> u8 {{ 0 }} }}");
    let given = |path: &str, more: &str| faults(&Source::new(path, &function(more))).len();
    assert_eq!(given("inspect/mod.rs", ""), 0);
    assert_eq!(given("inspect/mod.rs", ","), 0);
    assert_eq!(given("inspect/mod.rs", ", f: &dyn F"), 1);
    assert_eq!(given("lang/mod.rs", ", f: &dyn F"), 0);
}
