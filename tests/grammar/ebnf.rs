//! A small reader of the notation that `grammar/language.ebnf` explains.

use std::collections::HashMap;

/// What a rule is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// One after the other.
    Sequence(Vec<Node>),
    /// One of them.
    Choice(Vec<Node>),
    /// `a & b`: in any order.
    Interleave(Vec<Node>),
    Optional(Box<Node>),
    Repeat(Box<Node>),
    /// Exactly these characters.
    Literal(String),
    /// One character from the first to the second.
    Span(char, char),
    /// One character of one of these spans: what choices of characters are made into before scanning.
    Class(Vec<(char, char)>),
    /// `any` character.
    Any,
    /// The first but none of the others.
    Except(Box<Node>, Vec<Node>),
    /// Another rule.
    Rule(String),
    /// A command word.
    Command(CommandWord),
    /// Nothing between what was before and what follows.
    Glue,
    /// What stands before a `? … ?`, and the words in it.
    Condition(Box<Node>, String),
}

/// `x|y`: a command word, and how it may be shortened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommandWord {
    pub name: String,
    pub short: Vec<String>,
    /// `=x`: its last word counts only when it is typed whole.
    pub whole: bool,
}

/// The rules, by name, and their order.
pub struct Grammar {
    rules: HashMap<String, Node>,
    order: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum Lexeme {
    Word(String),
    Literal(String),
    Command(String),
    Condition(String),
    Mark(&'static str),
}

impl Grammar {
    /// Reads the file; a fault in it is a fault of the project.
    pub fn read(text: &str) -> Grammar {
        let lexemes = lexemes(text);
        let mut reader = Reader { lexemes: &lexemes, next: 0 };
        let mut grammar = Grammar { rules: HashMap::new(), order: Vec::new() };
        while reader.next < lexemes.len() {
            let Lexeme::Word(name) = reader.take() else { panic!("a rule must begin with its name") };
            assert_eq!(reader.take(), Lexeme::Mark("="), "after {name}");
            let node = reader.choice();
            assert_eq!(reader.take(), Lexeme::Mark(";"), "at the end of {name}");
            assert!(grammar.rules.insert(name.clone(), node).is_none(), "{name} is there twice");
            grammar.order.push(name);
        }
        grammar.fill_in_subjects();
        grammar
    }

    /// `name<page>` is `name<S>` with `page` for S, unless it has a rule of its own.
    fn fill_in_subjects(&mut self) {
        for name in self.order.iter().filter(|name| name.ends_with("<S>")) {
            for subject in ["page", "region"] {
                let node = with_subject(&self.rules[name], subject);
                self.rules.entry(name.replace("<S>", &format!("<{subject}>"))).or_insert(node);
            }
        }
    }

    /// The rule with that name.
    pub fn rule(&self, name: &str) -> &Node {
        self.rules.get(name).unwrap_or_else(|| panic!("there is no rule {name}"))
    }

    /// The names of rules in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.order.iter().map(String::as_str)
    }

    /// The names of token rules, those in capitals.
    pub fn tokens(&self) -> impl Iterator<Item = &str> {
        self.names().filter(|name| is_token(name))
    }

    /// Every command word in the file.
    pub fn commands(&self) -> Vec<CommandWord> {
        let mut found = Vec::new();
        for name in &self.order {
            collect(&self.rules[name], &mut |node| {
                if let Node::Command(word) = node {
                    found.push(word.clone());
                }
            });
        }
        found
    }

    /// Every literal of the syntax.
    pub fn literals(&self) -> Vec<String> {
        let level_two = self.order.iter().skip_while(|name| *name != "line");
        let mut found = Vec::new();
        for name in level_two {
            collect(&self.rules[name], &mut |node| {
                if let Node::Literal(text) = node
                    && !found.contains(text)
                {
                    found.push(text.clone());
                }
            });
        }
        found
    }

    /// All literals that a rule, with the rules it names, can be.
    pub fn words(&self, rule: &str) -> Vec<String> {
        let mut words = Vec::new();
        collect(self.rule(rule), &mut |node| match node {
            Node::Literal(text) => words.push(text.clone()),
            Node::Rule(name) => words.extend(self.words(name)),
            _ => {}
        });
        words
    }
}

/// Whether a rule is a token.
pub fn is_token(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
}

/// Calls `visit` for a node and all inside it.
fn collect(node: &Node, visit: &mut impl FnMut(&Node)) {
    visit(node);
    match node {
        Node::Sequence(inner) | Node::Choice(inner) | Node::Interleave(inner) => {
            inner.iter().for_each(|node| collect(node, visit));
        }
        Node::Optional(inner) | Node::Repeat(inner) | Node::Condition(inner, _) => collect(inner, visit),
        Node::Except(inner, _) => collect(inner, visit),
        _ => {}
    }
}

fn with_subject(node: &Node, subject: &str) -> Node {
    let all = |nodes: &[Node]| nodes.iter().map(|node| with_subject(node, subject)).collect();
    match node {
        Node::Sequence(inner) => Node::Sequence(all(inner)),
        Node::Choice(inner) => Node::Choice(all(inner)),
        Node::Interleave(inner) => Node::Interleave(all(inner)),
        Node::Optional(inner) => Node::Optional(Box::new(with_subject(inner, subject))),
        Node::Repeat(inner) => Node::Repeat(Box::new(with_subject(inner, subject))),
        Node::Rule(name) => Node::Rule(name.replace("<S>", &format!("<{subject}>"))),
        other => other.clone(),
    }
}

struct Reader<'a> {
    lexemes: &'a [Lexeme],
    next: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&Lexeme> {
        self.lexemes.get(self.next)
    }

    fn take(&mut self) -> Lexeme {
        let lexeme = self.peek().expect("the grammar ends in the middle of a rule").clone();
        self.next += 1;
        lexeme
    }

    fn skip(&mut self, mark: &'static str) -> bool {
        let found = self.peek() == Some(&Lexeme::Mark(mark));
        self.next += usize::from(found);
        found
    }

    fn choice(&mut self) -> Node {
        let mut nodes = vec![self.interleave()];
        while self.skip("|") {
            nodes.push(self.interleave());
        }
        if nodes.len() == 1 { nodes.remove(0) } else { Node::Choice(nodes) }
    }

    fn interleave(&mut self) -> Node {
        let mut nodes = vec![self.sequence()];
        while self.skip("&") {
            nodes.push(self.sequence());
        }
        if nodes.len() == 1 { nodes.remove(0) } else { Node::Interleave(nodes) }
    }

    fn sequence(&mut self) -> Node {
        let mut nodes = Vec::new();
        loop {
            match self.peek() {
                Some(Lexeme::Mark("|" | "&" | ")" | "]" | "}" | ";")) | None => break,
                Some(Lexeme::Condition(words)) => {
                    let words = words.clone();
                    self.next += 1;
                    nodes = vec![Node::Condition(Box::new(Node::Sequence(nodes)), words)];
                }
                Some(Lexeme::Mark("~")) => {
                    self.next += 1;
                    nodes.push(Node::Glue);
                }
                Some(_) => {
                    let item = self.item();
                    let mut without = Vec::new();
                    while self.skip("-") {
                        without.push(self.item());
                    }
                    nodes.push(if without.is_empty() { item } else { Node::Except(Box::new(item), without) });
                }
            }
        }
        if nodes.len() == 1 { nodes.remove(0) } else { Node::Sequence(nodes) }
    }

    fn item(&mut self) -> Node {
        match self.take() {
            Lexeme::Literal(text) if self.skip("..") => {
                let Lexeme::Literal(last) = self.take() else { panic!("a span must end with a character") };
                let one = |text: &str| text.chars().next().expect("a span is of characters");
                Node::Span(one(&text), one(&last))
            }
            Lexeme::Literal(text) => Node::Literal(text),
            Lexeme::Word(word) if word == "any" => Node::Any,
            Lexeme::Word(word) => Node::Rule(word),
            Lexeme::Command(text) => {
                let (whole, forms) = match text.strip_prefix('=') {
                    Some(forms) => (true, forms),
                    None => (false, text.as_str()),
                };
                let mut forms = forms.split('|').map(str::to_owned);
                let name = forms.next().expect("a command word has a name");
                Node::Command(CommandWord { name, short: forms.collect(), whole })
            }
            Lexeme::Mark("(") => self.closed(")"),
            Lexeme::Mark("[") => Node::Optional(Box::new(self.closed("]"))),
            Lexeme::Mark("{") => Node::Repeat(Box::new(self.closed("}"))),
            other => panic!("{other:?} cannot stand there"),
        }
    }

    fn closed(&mut self, close: &'static str) -> Node {
        let node = self.choice();
        assert!(self.skip(close), "a {close} is missing near lexeme {}", self.next);
        node
    }
}

fn lexemes(text: &str) -> Vec<Lexeme> {
    const MARKS: &[&str] = &["..", "=", ";", "|", "&", "~", "-", "(", ")", "[", "]", "{", "}"];
    let mut lexemes = Vec::new();
    let mut rest = text.trim_start();
    let until = |rest: &str, close: &str| {
        let (inner, behind) = rest.split_once(close).unwrap_or_else(|| panic!("{close} is missing"));
        (inner.to_owned(), behind.len())
    };
    while !rest.is_empty() {
        let behind = if let Some(comment) = rest.strip_prefix("(*") {
            until(comment, "*)").1
        } else if let Some(quoted) = rest.strip_prefix('"') {
            // "\\" and "\"" are the only literals with a backslash before something that could end them
            let end = if quoted.starts_with('\\') { 2 } else { quoted.find('"').expect("a quote is not closed") };
            let literal = &quoted[..end];
            let plain = match literal {
                "\\t" => "\t",
                "\\r" => "\r",
                "\\n" => "\n",
                "\\\\" => "\\",
                plain => plain,
            };
            lexemes.push(Lexeme::Literal(plain.to_owned()));
            quoted.len() - end - 1
        } else if let Some(quoted) = rest.strip_prefix('\'') {
            let (literal, behind) = until(quoted, "'");
            lexemes.push(Lexeme::Literal(literal));
            behind
        } else if let Some(command) = rest.strip_prefix('`') {
            let (words, behind) = until(command, "`");
            lexemes.push(Lexeme::Command(words));
            behind
        } else if let Some(condition) = rest.strip_prefix('?') {
            let (words, behind) = until(condition, "?");
            lexemes.push(Lexeme::Condition(words.trim().to_owned()));
            behind
        } else if let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(**mark)) {
            lexemes.push(Lexeme::Mark(mark));
            rest.len() - mark.len()
        } else {
            let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '<' | '>');
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            assert!(end > 0, "what is this: {}", &rest[..rest.len().min(20)]);
            lexemes.push(Lexeme::Word(rest[..end].to_owned()));
            rest.len() - end
        };
        rest = rest[rest.len() - behind..].trim_start();
    }
    lexemes
}
