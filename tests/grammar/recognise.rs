//! Level 2 of the grammar, from the file alone: an Earley recogniser. It shares nothing with the parser.

use std::collections::{HashMap, HashSet};

use super::ebnf::{CommandWord, Grammar, Node, is_token};
use super::scan::{Scanner, Token};

/// A part of a production.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Symbol {
    Nonterminal(usize),
    Literal(String),
    /// A token of this rule, except these texts.
    Token(String, Vec<String>),
    /// Every token that is part of raw text, except these texts.
    AnyToken(Vec<String>),
    /// One of these spellings of a command word.
    Word(Vec<String>),
    /// No blank before the next token.
    Glue,
    /// The next token is none of these texts.
    NotBefore(Vec<String>),
}

/// The grammar as productions, and what accepts a line.
pub struct Recogniser {
    scanner: Scanner,
    productions: Vec<Vec<Vec<Symbol>>>,
    nullable: HashSet<usize>,
    start: usize,
}

/// Turns nodes into productions.
struct Builder<'a> {
    grammar: &'a Grammar,
    words: Vec<CommandWord>,
    names: HashMap<String, usize>,
    productions: Vec<Vec<Vec<Symbol>>>,
}

impl Recogniser {
    pub fn new(grammar: &Grammar) -> Recogniser {
        Self::of(grammar, "line")
    }

    /// For sentences of the rule `start`.
    pub fn of(grammar: &Grammar, start: &str) -> Recogniser {
        let mut builder =
            Builder { grammar, words: grammar.commands(), names: HashMap::new(), productions: Vec::new() };
        let start = builder.rule(start);
        let mut nullable = HashSet::new();
        loop {
            let is_null = |symbol: &Symbol| matches!(symbol, Symbol::Nonterminal(n) if nullable.contains(n));
            let more: Vec<usize> = (0..builder.productions.len())
                .filter(|n| !nullable.contains(n))
                .filter(|n| builder.productions[*n].iter().any(|production| production.iter().all(is_null)))
                .collect();
            if more.is_empty() {
                break;
            }
            nullable.extend(more);
        }
        Recogniser { scanner: Scanner::new(grammar), productions: builder.productions, nullable, start }
    }

    /// Whether the line is in the language.
    pub fn accepts(&self, line: &str) -> bool {
        self.accepts_tokens(&self.scanner.scan(line))
    }

    /// Whether the lines are in the language, for a recogniser of files.
    pub fn accepts_file(&self, text: &str) -> bool {
        let tokens: Vec<Token> = text
            .lines()
            .flat_map(|line| {
                let mut tokens = self.scanner.scan(line);
                tokens.push(Token { text: "\n".to_owned(), rule: Some("NEWLINE".to_owned()), glued: false });
                tokens
            })
            .collect();
        self.accepts_tokens(&tokens)
    }

    fn accepts_tokens(&self, tokens: &[Token]) -> bool {
        // An item: the nonterminal, which of its productions, how far in it, and where it began.
        type Item = (usize, usize, usize, usize);
        let mut sets: Vec<Vec<Item>> = vec![Vec::new(); tokens.len() + 1];
        let mut seen: Vec<HashSet<Item>> = vec![HashSet::new(); tokens.len() + 1];
        let mut waiting: Vec<HashMap<usize, Vec<Item>>> = vec![HashMap::new(); tokens.len() + 1];
        for production in 0..self.productions[self.start].len() {
            sets[0].push((self.start, production, 0, 0));
        }
        seen[0].extend(sets[0].iter().copied());

        for position in 0..=tokens.len() {
            let mut next = 0;
            while let Some(&item) = sets[position].get(next) {
                next += 1;
                let (nonterminal, production, dot, origin) = item;
                let advanced = (nonterminal, production, dot + 1, origin);
                let mut found = Vec::new();
                match self.productions[nonterminal][production].get(dot) {
                    None => {
                        let parents = waiting[origin].get(&nonterminal).cloned().unwrap_or_default();
                        found.extend(parents.into_iter().map(|(n, p, d, o)| (n, p, d + 1, o)));
                    }
                    Some(Symbol::Nonterminal(inner)) => {
                        waiting[position].entry(*inner).or_default().push(item);
                        found.extend((0..self.productions[*inner].len()).map(|p| (*inner, p, 0, position)));
                        if self.nullable.contains(inner) {
                            found.push(advanced);
                        }
                    }
                    Some(Symbol::Glue) => {
                        if tokens.get(position).is_some_and(|token| token.glued) {
                            found.push(advanced);
                        }
                    }
                    Some(Symbol::NotBefore(words)) => {
                        if tokens.get(position).is_none_or(|token| !words.contains(&token.text)) {
                            found.push(advanced);
                        }
                    }
                    Some(terminal) => {
                        if tokens.get(position).is_some_and(|token| matches(terminal, token))
                            && seen[position + 1].insert(advanced)
                        {
                            sets[position + 1].push(advanced);
                        }
                    }
                }
                for item in found {
                    if seen[position].insert(item) {
                        sets[position].push(item);
                    }
                }
            }
        }
        let whole = |(n, p, d, o): &Item| *n == self.start && *o == 0 && self.productions[*n][*p].len() == *d;
        sets[tokens.len()].iter().any(whole)
    }
}

fn matches(terminal: &Symbol, token: &Token) -> bool {
    match terminal {
        Symbol::Literal(text) => token.text == *text,
        Symbol::Token(rule, but) => token.rule.as_deref() == Some(rule) && !but.contains(&token.text),
        Symbol::AnyToken(but) => {
            let rule = token.rule.as_deref();
            let is_out = |out: &String| *out == token.text || Some(out.as_str()) == rule;
            !matches!(rule, Some("PIPE" | "REDIRECT" | "COMMENT" | "NEWLINE")) && !but.iter().any(is_out)
        }
        Symbol::Word(spellings) => spellings.contains(&token.text),
        Symbol::Nonterminal(_) | Symbol::Glue | Symbol::NotBefore(_) => false,
    }
}

impl Builder<'_> {
    fn rule(&mut self, name: &str) -> usize {
        if let Some(known) = self.names.get(name) {
            return *known;
        }
        let number = self.fresh();
        self.names.insert(name.to_owned(), number);
        let node = self.grammar.rule(name);
        self.productions[number] = self.choices(node);
        number
    }

    fn fresh(&mut self) -> usize {
        self.productions.push(Vec::new());
        self.productions.len() - 1
    }

    fn choices(&mut self, node: &Node) -> Vec<Vec<Symbol>> {
        match node {
            Node::Choice(nodes) => nodes.iter().map(|node| self.symbols(node)).collect(),
            other => vec![self.symbols(other)],
        }
    }

    fn symbols(&mut self, node: &Node) -> Vec<Symbol> {
        match node {
            Node::Sequence(nodes) => nodes.iter().flat_map(|node| self.symbols(node)).collect(),
            Node::Literal(text) => vec![Symbol::Literal(text.clone())],
            Node::Rule(name) if name == "ANY" => vec![Symbol::AnyToken(Vec::new())],
            Node::Except(inner, without) => {
                let Node::Rule(name) = &**inner else {
                    panic!("only a rule may leave words out: {inner:?}");
                };
                let words = without.iter().map(|node| match node {
                    Node::Literal(text) => text.clone(),
                    Node::Rule(token) if is_token(token) => token.clone(),
                    other => panic!("a rule leaves words out: {other:?}"),
                });
                let words = words.collect();
                match name.as_str() {
                    "ANY" => vec![Symbol::AnyToken(words)],
                    _ if is_token(name) => vec![Symbol::Token(name.clone(), words)],
                    _ => vec![Symbol::NotBefore(words), Symbol::Nonterminal(self.rule(name))],
                }
            }
            Node::Rule(name) if is_token(name) => vec![Symbol::Token(name.clone(), Vec::new())],
            Node::Rule(name) => vec![Symbol::Nonterminal(self.rule(name))],
            Node::Glue => vec![Symbol::Glue],
            Node::Command(word) => self.command(word),
            Node::Choice(_) => {
                let number = self.fresh();
                self.productions[number] = self.choices(node);
                vec![Symbol::Nonterminal(number)]
            }
            Node::Optional(inner) => {
                let number = self.fresh();
                let mut productions = self.choices(inner);
                productions.push(Vec::new());
                self.productions[number] = productions;
                vec![Symbol::Nonterminal(number)]
            }
            Node::Repeat(inner) => {
                let number = self.fresh();
                let mut productions = vec![Vec::new()];
                for mut production in self.choices(inner) {
                    production.insert(0, Symbol::Nonterminal(number));
                    productions.push(production);
                }
                self.productions[number] = productions;
                vec![Symbol::Nonterminal(number)]
            }
            Node::Interleave(parts) => {
                let parts: Vec<Vec<Symbol>> = parts
                    .iter()
                    .map(|part| match part {
                        Node::Optional(inner) => self.symbols(inner),
                        other => panic!("only optional parts may stand in any order: {other:?}"),
                    })
                    .collect();
                vec![Symbol::Nonterminal(self.any_order(&parts, (1 << parts.len()) - 1, &mut HashMap::new()))]
            }
            other => panic!("{other:?} in the syntax"),
        }
    }

    /// Those of the parts whose bit is set, each at most once, in any order.
    fn any_order(&mut self, parts: &[Vec<Symbol>], left: usize, known: &mut HashMap<usize, usize>) -> usize {
        if let Some(number) = known.get(&left) {
            return *number;
        }
        let number = self.fresh();
        known.insert(left, number);
        let mut productions = vec![Vec::new()];
        for (bit, part) in parts.iter().enumerate().filter(|(bit, _)| left & (1 << bit) != 0) {
            let mut production = part.clone();
            production.push(Symbol::Nonterminal(self.any_order(parts, left & !(1 << bit), known)));
            productions.push(production);
        }
        self.productions[number] = productions;
        number
    }

    /// All spellings of a command, a symbol for each of its words.
    fn command(&self, command: &CommandWord) -> Vec<Symbol> {
        let split = |command: &CommandWord| -> Vec<String> { command.name.split(' ').map(str::to_owned).collect() };
        let taken: HashSet<&str> = self.words.iter().flat_map(|word| &word.short).map(String::as_str).collect();
        let words = split(command);
        let mut symbols = Vec::new();
        for (index, word) in words.iter().enumerate() {
            // A word that counts only when it is typed whole makes no abbreviation ambiguous.
            let is_whole = |other: &CommandWord, length: usize| other.whole && length == index + 1;
            let rivals: HashSet<String> = self
                .words
                .iter()
                .map(|other| (other, split(other)))
                .filter(|(other, words)| !is_whole(other, words.len()))
                .filter(|(_, other)| other.len() > index && other[..index] == words[..index])
                .map(|(_, other)| other[index].clone())
                .collect();
            let is_clear = |prefix: &&str| {
                *prefix == word
                    || !is_whole(command, words.len())
                        && rivals.iter().filter(|rival| rival.starts_with(*prefix)).count() == 1
            };
            let prefixes = (1..=word.len()).map(|length| &word[..length]).filter(is_clear);
            let mut spellings: Vec<String> =
                prefixes.filter(|prefix| index > 0 || !taken.contains(prefix)).map(str::to_owned).collect();
            if index == 0 {
                spellings.extend(command.short.iter().cloned());
            }
            symbols.push(Symbol::Word(spellings));
        }
        symbols
    }
}
