//! Level 1 of the grammar, from its file only: splits a line into tokens.

use std::collections::HashMap;

use super::ebnf::{Grammar, Node};

/// A token: its characters, its rule (none for a mere literal), and whether it follows the one before without a blank.
#[derive(Clone, Debug)]
pub struct Token {
    pub text: String,
    pub rule: Option<String>,
    pub glued: bool,
}

/// The token rules, with every rule that they name.
pub struct Scanner {
    tokens: Vec<(String, Node)>,
    rules: HashMap<String, Node>,
    literals: Vec<Vec<char>>,
}

/// Where a match is tried.
struct Attempt<'a> {
    scanner: &'a Scanner,
    text: &'a [char],
    place: Place,
    known: HashMap<(*const Node, usize), Vec<usize>>,
}

/// The tokens before the place.
#[derive(Clone, Copy, Default)]
struct Place {
    first: bool,
    begins_command: bool,
    behind_command: bool,
    begins_arguments: bool,
    depth: usize,
    braces: usize,
    behind_value: bool,
    behind_blank: bool,
}

/// After the words of a command and its options, after `set $name =`, or after `in`.
fn begins_arguments(tokens: &[Token]) -> bool {
    const OPTIONS: &[&str] = &["HOW", "FAULT", "YES", "OVERWRITE", "FORMAT", "COUNT_OR_UNIT", "LAYOUT", "BACKWARD"];
    let rule = |token: &Token| token.rule.clone().unwrap_or_default();
    let is_option = |token: &&Token| OPTIONS.contains(&rule(token).as_str());
    let options = tokens.iter().rev().take_while(is_option).count();
    let before = &tokens[..tokens.len() - options];
    let texts: Vec<&str> = before.iter().map(|token| token.text.as_str()).collect();
    let is_name = |token: &Token| ["NAME", "COMMAND_NAME"].contains(&rule(token).as_str());
    match texts[..] {
        [_, .., "in"] => true,
        [_, _, "="] => rule(&before[1]) == "VARIABLE",
        ["i" | "in" | "inf" | "info" | "pi" | "pip" | "pipe" | "display", _] => is_name(&before[1]),
        [_] => is_name(&before[0]),
        _ => false,
    }
}

/// A `)`, a variable, a value of the history, or an element: what an element may follow.
fn may_have_elements(token: &Token) -> bool {
    token.text == ")" || matches!(token.rule.as_deref(), Some("VARIABLE" | "HISTORY" | "DIMENSION" | "SUBSCRIPT"))
}

impl Scanner {
    pub fn new(grammar: &Grammar) -> Scanner {
        let level_one = || grammar.names().take_while(|name| *name != "line");
        let rule = |name: &str| (name.to_owned(), simple(grammar, grammar.rule(name)));
        Scanner {
            tokens: grammar.tokens().map(rule).collect(),
            rules: level_one().map(rule).collect(),
            literals: grammar.literals().iter().map(|literal| literal.chars().collect()).collect(),
        }
    }

    /// The tokens of a line; every character is part of one or a blank, because OTHER takes what is left.
    pub fn scan(&self, line: &str) -> Vec<Token> {
        let text: Vec<char> = line.chars().collect();
        let mut tokens: Vec<Token> = Vec::new();
        let (mut position, mut depth, mut braces, mut glued) = (0, 0_usize, 0_usize, false);
        while position < text.len() {
            if self.is_blank(text[position]) {
                position += 1;
                glued = false;
                continue;
            }
            let first = tokens.is_empty();
            let words: Vec<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
            let behind_command = tokens.last().is_some_and(|word| word.rule.as_deref() == Some("NAME"))
                && match words[..] {
                    [_] | ["pi" | "pip" | "pipe", _] => true,
                    ["display", _] => glued,
                    _ => false,
                };
            let place = Place {
                first,
                begins_command: matches!(words[..], [] | ["pi" | "pip" | "pipe" | "display"]),
                behind_command,
                begins_arguments: begins_arguments(&tokens),
                depth,
                braces,
                behind_blank: !glued,
                behind_value: glued && tokens.last().is_some_and(may_have_elements),
            };
            let (length, rule) = self.longest(&text, position, place);
            let token: String = text[position..position + length].iter().collect();
            match token.as_str() {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                "{" => braces += 1,
                "}" => braces = braces.saturating_sub(1),
                _ => {}
            }
            // A format counts as glued to its command, even after blanks.
            let formats = ["FORMAT", "COUNT_OR_UNIT", "LAYOUT", "BACKWARD"];
            let is_format = rule.as_deref().is_some_and(|rule| formats.contains(&rule));
            tokens.push(Token { text: token, rule, glued: glued || is_format });
            glued = true;
            position += length;
        }
        tokens
    }

    fn is_blank(&self, character: char) -> bool {
        let text = [character];
        let mut attempt = Attempt { scanner: self, text: &text, place: Place::default(), known: HashMap::new() };
        !attempt.ends(&self.rules["blank"], 0).is_empty()
    }

    fn longest(&self, text: &[char], position: usize, place: Place) -> (usize, Option<String>) {
        let mut best = (0, None);
        let mut attempt = Attempt { scanner: self, text, place, known: HashMap::new() };
        for (name, rule) in &self.tokens {
            let length = attempt.ends(rule, position).last().map_or(0, |end| end - position);
            if length > best.0 {
                best = (length, Some(name.clone()));
            }
        }
        for literal in &self.literals {
            if literal.len() > best.0 && text[position..].starts_with(literal) {
                // A word is a whole NAME: a literal is not the beginning of a longer word.
                best = (literal.len(), None);
            }
        }
        best
    }
}

/// The node with every choice of single characters made one step.
fn simple(grammar: &Grammar, node: &Node) -> Node {
    let simple = |node: &Node| simple(grammar, node);
    let all = |nodes: &[Node]| nodes.iter().map(simple).collect::<Vec<Node>>();
    match node {
        Node::Span(first, last) => Node::Class(vec![(*first, *last)]),
        Node::Literal(text) => match *text.chars().collect::<Vec<char>>() {
            [one] => Node::Class(vec![(one, one)]),
            _ => node.clone(),
        },
        Node::Rule(name) if !super::ebnf::is_token(name) && !is_recursive(name) => match simple(grammar.rule(name)) {
            Node::Class(spans) => Node::Class(spans),
            _ => node.clone(),
        },
        Node::Choice(nodes) => {
            let nodes = all(nodes);
            let spans = nodes.iter().map(|node| match node {
                Node::Class(spans) => Some(spans.clone()),
                _ => None,
            });
            let spans: Option<Vec<_>> = spans.collect();
            spans.map_or_else(|| Node::Choice(nodes.clone()), |spans| Node::Class(spans.concat()))
        }
        Node::Sequence(nodes) => Node::Sequence(all(nodes)),
        Node::Optional(inner) => Node::Optional(Box::new(simple(inner))),
        Node::Repeat(inner) => Node::Repeat(Box::new(simple(inner))),
        Node::Any => Node::Class(vec![('\0', char::MAX)]),
        Node::Except(inner, without) => {
            let (inner, without) = (simple(inner), all(without));
            let is_class = |node: &Node| matches!(node, Node::Class(_));
            if is_class(&inner) && without.iter().all(is_class) {
                Node::Class(
                    without.iter().fold(spans(&inner), |left, out| {
                        spans(out).into_iter().fold(left, |left, out| minus(&left, out))
                    }),
                )
            } else {
                Node::Except(Box::new(inner), without)
            }
        }
        Node::Condition(inner, words) => Node::Condition(Box::new(simple(inner)), words.clone()),
        other => other.clone(),
    }
}

/// The spans of a choice of single characters.
fn spans(node: &Node) -> Vec<(char, char)> {
    match node {
        Node::Class(spans) => spans.clone(),
        _ => Vec::new(),
    }
}

/// The spans without the characters of another.
fn minus(spans: &[(char, char)], (first, last): (char, char)) -> Vec<(char, char)> {
    let before = (0..u32::from(first)).rev().find_map(char::from_u32);
    let behind = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32);
    let parts = spans.iter().flat_map(|(from, to)| {
        let low = before.map(|before| (*from, before.min(*to)));
        let high = behind.map(|behind| (behind.max(*from), *to));
        [low, high]
    });
    parts.flatten().filter(|(from, to)| from <= to).collect()
}

/// The rules of level 1 that name themselves, or one that does: brackets in brackets.
fn is_recursive(name: &str) -> bool {
    matches!(name, "bracketed_cast" | "bracketed_part" | "cast_part" | "angle")
}

impl Attempt<'_> {
    /// All places where a match of `node` that begins at `start` can end, in order.
    fn ends(&mut self, node: &Node, start: usize) -> Vec<usize> {
        match node {
            Node::Literal(literal) => {
                let literal: Vec<char> = literal.chars().collect();
                let found = self.text[start..].starts_with(&literal);
                if found { vec![start + literal.len()] } else { Vec::new() }
            }
            Node::Span(first, last) => self.one(start, |c| (*first..=*last).contains(&c)),
            Node::Class(spans) => self.one(start, |c| spans.iter().any(|(first, last)| (*first..=*last).contains(&c))),
            Node::Any => self.one(start, |_| true),
            Node::Except(node, without) => {
                let excluded: Vec<usize> = without.iter().flat_map(|node| self.ends(node, start)).collect();
                let mut ends = self.ends(node, start);
                ends.retain(|end| !excluded.contains(end));
                ends
            }
            Node::Sequence(nodes) => {
                let mut starts = vec![start];
                for node in nodes {
                    starts = self.each(node, &starts);
                }
                starts
            }
            Node::Choice(nodes) => {
                let mut ends: Vec<usize> = nodes.iter().flat_map(|node| self.ends(node, start)).collect();
                ends.sort_unstable();
                ends.dedup();
                ends
            }
            Node::Optional(node) => {
                let mut ends = self.ends(node, start);
                ends.insert(0, start);
                ends.dedup();
                ends
            }
            Node::Repeat(node) if matches!(**node, Node::Class(_)) => {
                let mut ends = vec![start];
                while let Some(end) = self.ends(node, ends[ends.len() - 1]).first() {
                    ends.push(*end);
                }
                ends
            }
            Node::Repeat(node) => {
                let (mut ends, mut frontier) = (vec![start], vec![start]);
                while !frontier.is_empty() {
                    frontier = self.each(node, &frontier);
                    // Mostly each is after all others: then there is nothing to look up.
                    frontier.retain(|end| ends.last().is_some_and(|last| end > last) || !ends.contains(end));
                    ends.extend(&frontier);
                }
                ends.sort_unstable();
                ends
            }
            Node::Rule(name) => {
                let scanner = self.scanner;
                let rule = scanner.rules.get(name).unwrap_or_else(|| panic!("{name} is no rule of level 1"));
                let key = (std::ptr::from_ref(rule), start);
                if let Some(known) = self.known.get(&key) {
                    return known.clone();
                }
                let ends = self.ends(rule, start);
                self.known.insert(key, ends.clone());
                ends
            }
            Node::Condition(_, words) if !self.may_hold(words) => Vec::new(),
            Node::Condition(node, words) => {
                let mut ends = self.ends(node, start);
                ends.retain(|end| self.holds(words, start, *end));
                ends
            }
            Node::Command(..) | Node::Glue | Node::Interleave(_) => panic!("{node:?} in a token"),
        }
    }

    fn each(&mut self, node: &Node, starts: &[usize]) -> Vec<usize> {
        let mut ends: Vec<usize> = starts.iter().flat_map(|start| self.ends(node, *start)).collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    fn one(&self, start: usize, wanted: impl Fn(char) -> bool) -> Vec<usize> {
        if self.text.get(start).is_some_and(|c| wanted(*c)) { vec![start + 1] } else { Vec::new() }
    }

    fn goes_on(&self, end: usize) -> bool {
        let next = self.text.get(end);
        next.is_some_and(|c| c.is_ascii_alphanumeric() || "_.:".contains(*c))
    }

    /// Whether a condition can hold here, judged by the tokens before.
    fn may_hold(&self, words: &str) -> bool {
        match words {
            "first on the line" => self.place.first,
            "a word where a command begins" => self.place.begins_command,
            "outside parentheses" => self.place.depth == 0,
            "below 2^64, outside braces" => self.place.braces == 0,
            "below 2^64, in braces" => self.place.braces > 0,
            "below 2^64, behind a value" => self.place.behind_value,
            "of a command" => self.place.behind_command,
            "behind a blank" => self.place.behind_blank,
            "where the arguments of a command begin" => self.place.begins_arguments,
            _ => true,
        }
    }

    /// The conditions that the grammar states in words.
    fn holds(&self, words: &str, start: usize, end: usize) -> bool {
        let text: String = self.text[start..end].iter().collect();
        match words {
            "first on the line"
            | "outside parentheses"
            | "behind a blank"
            | "where the arguments of a command begin" => true,
            "at the end of the line" => end == self.text.len(),
            "none of $_ $pc $sp" => !["$_", "$pc", "$sp"].contains(&text.as_str()),
            "no word goes on behind it" | "a word where a command begins" => !self.goes_on(end),
            "of a command" => !self.goes_on(end),
            "no digit follows" => !self.text.get(end).is_some_and(char::is_ascii_digit),
            "no hexadecimal digit follows" => !self.text.get(end).is_some_and(char::is_ascii_hexdigit),
            "at most 4096 characters, 64 brackets deep" => end - start <= 4096 && depth(&text) <= 64,
            "at most 4096 characters" => end - start <= 4096,
            "below 4096 characters" => end - start < 4096,
            "below 2^64" | "below 2^64, outside braces" | "below 2^64, in braces" | "below 2^64, behind a value" => {
                number(&text).is_none_or(|value| value < 1 << 64)
            }
            "in KiB below 2^64" => number(&text).is_none_or(|value| value < 1 << 54),
            "hexadecimal below 2^64" => u128::from_str_radix(&text, 16).is_ok_and(|value| value < 1 << 64),
            other => panic!("the grammar states a condition that this test does not know: {other}"),
        }
    }
}

/// The most brackets that are open at once.
fn depth(text: &str) -> usize {
    let mut open = 0_usize;
    let depths = text.chars().map(|character| {
        match character {
            '(' | '{' => open += 1,
            ')' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        open
    });
    depths.max().unwrap_or_default()
}

/// The number in a token, whatever surrounds it: `$$5`, `name[5]`, `5K`, `5KiB`, `5p`, `1.5s`. None if there is none.
fn number(text: &str) -> Option<u128> {
    let inner = text.rsplit_once('[').map_or(text, |(_, index)| index.trim_end_matches(']'));
    let inner = inner.trim_start_matches('$').replace('_', "");
    let huge = |digits: &str, radix| Some(u128::from_str_radix(digits, radix).unwrap_or(u128::MAX));
    let (digits, radix) = match inner.get(..2) {
        Some("0x" | "0X") => (&inner[2..], 16),
        Some("0b") => (&inner[2..], 2),
        _ => (inner.as_str(), 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    if end == 0 {
        return None;
    }
    let factor = match digits[end..].trim_end_matches("iB") {
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        _ => 1,
    };
    huge(&digits[..end], radix).map(|value| value.saturating_mul(factor))
}
