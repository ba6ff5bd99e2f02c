//! Random sentences of the grammar, and random mutations of them.

use std::collections::{HashMap, HashSet};

use super::ebnf::{Grammar, Node, is_token};

/// A small generator of random numbers (splitmix64): the same seed gives the same sentences everywhere.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).unwrap_or(0)
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// The characters for `any`: some with a meaning in the language, and some without.
const CHARACTERS: &str = "abcxz059_ .,:;!?'\"\\|<>()[]{}#$&%*+-/=~^@\té世";

/// A token, and whether it is glued to the one before.
pub type Glued = (String, bool);

/// A sentence that is being derived.
#[derive(Default)]
pub struct Derivation<'a> {
    pub tokens: Vec<Glued>,
    /// Whether the next token is glued to the last.
    glue: bool,
    /// The rules, and the parts of rules that could be left out, that it has: of its tokens too.
    pub productions: Productions<'a>,
}

type Productions<'a> = HashSet<ByPlace<'a>>;

impl Derivation<'_> {
    fn add(&mut self, text: String) {
        self.tokens.push((text, std::mem::take(&mut self.glue)));
    }
}

/// A part of the grammar, equal only to itself.
#[derive(Clone, Copy)]
pub struct ByPlace<'a>(&'a Node);

impl PartialEq for ByPlace<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for ByPlace<'_> {}

impl std::hash::Hash for ByPlace<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        std::ptr::hash(self.0, state);
    }
}

/// The characters of a token that is being derived, and the parts of its rules that it has.
struct Characters<'t, 'a> {
    text: &'t mut String,
    seen: &'t mut Productions<'a>,
}

impl<'a> Characters<'_, 'a> {
    fn part(&mut self, node: &'a Node) {
        self.seen.insert(ByPlace(node));
    }
}

/// Derives sentences.
pub struct Deriver<'a> {
    grammar: &'a Grammar,
    /// The least nesting of each rule.
    shortest: HashMap<String, usize>,
    literals: Vec<String>,
    /// Every word of the grammar: as names they must not steer the parser.
    words: Vec<String>,
}

impl<'a> Deriver<'a> {
    pub fn new(grammar: &'a Grammar) -> Deriver<'a> {
        let literals = grammar.literals();
        let words = literals.iter().filter(|word| word.starts_with(char::is_alphabetic)).cloned().collect();
        let mut deriver = Deriver { grammar, shortest: HashMap::new(), literals, words };
        deriver.find_shortest();
        deriver
    }

    /// A random sentence.
    pub fn sentence(&self, random: &mut Random) -> Derivation<'a> {
        // Most random lines would be comments and raw text: rules with more structure are chosen more often.
        const STARTS: &[&str] = &[
            "line",
            "statement",
            "statement",
            "walk",
            "walk",
            "walk",
            "watch",
            "regions",
            "print",
            "print",
            "translate",
        ];
        let mut sentence = Derivation::default();
        let depth = 24 + random.below(24);
        let start = *random.pick(STARTS);
        self.derive(self.grammar.rule(start), depth, random, &mut sentence);
        sentence
    }

    /// A random literal of the syntax.
    pub fn literal(&self, random: &mut Random) -> String {
        random.pick(&self.literals).clone()
    }

    fn derive(&self, node: &'a Node, depth: usize, random: &mut Random, sentence: &mut Derivation<'a>) {
        match node {
            Node::Literal(text) => sentence.add(text.clone()),
            Node::Glue => sentence.glue = true,
            Node::Command(command) => {
                let words: Vec<&str> = command.name.split(' ').collect();
                if !command.short.is_empty() && random.chance(30) {
                    return sentence.add(random.pick(&command.short).clone());
                }
                for word in words {
                    let length =
                        if command.whole || random.chance(80) { word.len() } else { 1 + random.below(word.len()) };
                    sentence.add(word[..length].to_owned());
                }
            }
            Node::Rule(name) if name == "ANY" => {
                let literal = random.chance(50).then(|| random.pick(&self.words).clone());
                let text = literal.unwrap_or_else(|| self.token("NAME", random, &mut sentence.productions));
                sentence.add(text);
            }
            Node::Rule(name) if is_token(name) => {
                let token = self.token(name, random, &mut sentence.productions);
                sentence.add(token);
            }
            // Such a word begins few of its sentences, and the recogniser has the last word.
            Node::Except(inner, _) if matches!(&**inner, Node::Rule(name) if name != "ANY" && !is_token(name)) => {
                self.derive(inner, depth, random, sentence);
            }
            Node::Except(inner, without) => {
                let Node::Rule(name) = &**inner else {
                    panic!("only a rule may leave words out: {inner:?}");
                };
                let is_out = |text: &str| {
                    let leaves_out = |node: &Node| matches!(node, Node::Literal(word) if word == text);
                    without.iter().any(leaves_out)
                };
                let rule = if name == "ANY" { "NAME" } else { name };
                let mut tokens = (0..200).map(|_| self.token(rule, random, &mut sentence.productions));
                let token = tokens.find(|token| !is_out(token)).expect("something is left");
                sentence.add(token);
            }
            Node::Rule(name) => {
                let node = self.grammar.rule(name);
                sentence.productions.insert(ByPlace(node));
                self.derive(node, depth.saturating_sub(1), random, sentence);
            }
            Node::Sequence(nodes) => {
                nodes.iter().for_each(|node| self.derive(node, depth, random, sentence));
            }
            Node::Choice(nodes) => {
                let short: Vec<&'a Node> = nodes.iter().filter(|node| self.length(node) <= depth).collect();
                let shortest = nodes.iter().min_by_key(|node| self.length(node)).expect("a choice of something");
                let chosen = if short.is_empty() { shortest } else { *random.pick(&short) };
                sentence.productions.insert(ByPlace(chosen));
                self.derive(chosen, depth, random, sentence);
            }
            Node::Optional(inner) => {
                if self.length(inner) <= depth && random.chance(45) {
                    sentence.productions.insert(ByPlace(inner));
                    self.derive(inner, depth, random, sentence);
                }
            }
            Node::Repeat(inner) => {
                let mut percent = 18;
                while self.length(inner) <= depth && random.chance(percent) {
                    sentence.productions.insert(ByPlace(inner));
                    self.derive(inner, depth, random, sentence);
                    percent = 40;
                }
            }
            Node::Interleave(parts) => {
                let mut parts: Vec<&'a Node> = parts.iter().collect();
                while !parts.is_empty() {
                    let part = parts.remove(random.below(parts.len()));
                    self.derive(part, depth, random, sentence);
                }
            }
            other => panic!("{other:?} in the syntax"),
        }
    }

    /// A random token of a rule of level 1.
    fn token(&self, rule: &str, random: &mut Random, seen: &mut Productions<'a>) -> String {
        if rule == "NAME" && random.chance(35) {
            return random.pick(&self.words).clone();
        }
        let mut text = String::new();
        self.characters(self.grammar.rule(rule), 11, random, &mut Characters { text: &mut text, seen });
        text
    }

    fn characters(&self, node: &'a Node, depth: usize, random: &mut Random, made: &mut Characters<'_, 'a>) {
        match node {
            Node::Literal(literal) => made.text.push_str(literal),
            Node::Span(first, last) => {
                let span: Vec<char> = (*first..=*last).collect();
                made.text.push(*random.pick(&span));
            }
            Node::Any => {
                let all: Vec<char> = CHARACTERS.chars().collect();
                made.text.push(*random.pick(&all));
            }
            Node::Except(node, without) => {
                let mut excluded = Vec::new();
                without.iter().for_each(|node| self.single_characters(node, &mut excluded));
                let one = (0..200).find_map(|_| {
                    let mut one = String::new();
                    self.characters(node, depth, random, &mut Characters { text: &mut one, seen: made.seen });
                    (!excluded.contains(&one)).then_some(one)
                });
                made.text.push_str(&one.expect("something is left"));
            }
            Node::Sequence(nodes) => nodes.iter().for_each(|node| self.characters(node, depth, random, made)),
            Node::Choice(nodes) => {
                let fitting: Vec<&'a Node> = nodes.iter().filter(|node| self.length(node) <= depth).collect();
                if let Some(node) = fitting.get(random.below(fitting.len())) {
                    made.part(node);
                    self.characters(node, depth, random, made);
                }
            }
            Node::Optional(inner) => {
                if depth > 0 && random.chance(40) {
                    made.part(inner);
                    self.characters(inner, depth, random, made);
                }
            }
            Node::Repeat(inner) => {
                while depth > 1 && self.length(inner) < depth && random.chance(55) {
                    made.part(inner);
                    self.characters(inner, depth, random, made);
                }
            }
            Node::Rule(name) => self.characters(self.grammar.rule(name), depth.saturating_sub(1), random, made),
            Node::Condition(inner, _) => self.characters(inner, depth, random, made),
            Node::Command(..) | Node::Glue | Node::Interleave(_) | Node::Class(_) => {
                panic!("{node:?} in a token")
            }
        }
    }

    /// The literals that a node of level 1 can be.
    fn single_characters(&self, node: &Node, found: &mut Vec<String>) {
        match node {
            Node::Literal(text) => found.push(text.clone()),
            Node::Rule(name) => self.single_characters(self.grammar.rule(name), found),
            Node::Choice(nodes) => nodes.iter().for_each(|node| self.single_characters(node, found)),
            other => panic!("{other:?} is taken from a set of characters"),
        }
    }

    fn length(&self, node: &Node) -> usize {
        match node {
            Node::Rule(name) if name == "ANY" => 0,
            Node::Rule(name) => self.shortest.get(name).map_or(usize::MAX / 2, |length| length + 1),
            Node::Sequence(nodes) => nodes.iter().map(|node| self.length(node)).max().unwrap_or(0),
            Node::Choice(nodes) => nodes.iter().map(|node| self.length(node)).min().unwrap_or(0),
            Node::Except(node, _) | Node::Condition(node, _) => self.length(node),
            _ => 0,
        }
    }

    /// Repeats until nothing gets shorter. Templates have an entry for each subject.
    fn find_shortest(&mut self) {
        let names: Vec<String> = self
            .grammar
            .names()
            .flat_map(|name| ["page", "region"].map(|subject| name.replace("<S>", &format!("<{subject}>"))))
            .collect();
        loop {
            let mut changed = false;
            for name in &names {
                let length = self.length(self.grammar.rule(name));
                if length < usize::MAX / 2 && self.shortest.get(name).is_none_or(|known| length < *known) {
                    self.shortest.insert(name.clone(), length);
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }
}

/// Tokens as a line: glued where they must be, elsewhere with a blank and now and then without.
pub fn join(tokens: &[Glued], random: &mut Random) -> String {
    let mut line = String::new();
    for (text, glued) in tokens {
        if !line.is_empty() && !*glued && !random.chance(4) {
            line.push_str(if random.chance(5) { " \t " } else { " " });
        }
        line.push_str(text);
    }
    line
}

/// The tokens with one mutation, which may be valid too.
pub fn mutate(tokens: &[Glued], deriver: &Deriver<'_>, random: &mut Random) -> Vec<Glued> {
    let mut tokens = tokens.to_vec();
    let place = random.below(tokens.len());
    match random.below(8) {
        0 if !tokens.is_empty() => {
            tokens.remove(place);
        }
        1 if !tokens.is_empty() => {
            let same = tokens[place].clone();
            tokens.insert(place, same);
        }
        2 if !tokens.is_empty() => {
            let other = random.below(tokens.len());
            tokens.swap(place, other);
        }
        3 if !tokens.is_empty() => tokens[place].0 = deriver.literal(random),
        4 => tokens.insert(place, (deriver.literal(random), random.chance(30))),
        5 if !tokens.is_empty() => tokens.truncate(place),
        6 if !tokens.is_empty() => tokens[place].1 = !tokens[place].1,
        _ if !tokens.is_empty() => {
            let mut characters: Vec<char> = tokens[place].0.chars().collect();
            let at = random.below(characters.len());
            let palette: Vec<char> = CHARACTERS.chars().collect();
            if random.chance(50) && !characters.is_empty() {
                characters.remove(at);
            } else {
                characters.insert(at, *random.pick(&palette));
            }
            tokens[place].0 = characters.into_iter().collect();
        }
        _ => {}
    }
    tokens
}
