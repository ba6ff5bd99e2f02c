//! The input of parsers: tokens, their language, and the notes that all attempts at a line share.

use crate::lang::error::{Class, Span, Spanned, SyntaxError};
use crate::lang::expected::Expected;
use crate::lang::field::FilterSubject;
use crate::lang::lexer::token::{Token, TokenKind};
use crate::lang::syntax::{BlockLine, CommandName, ProcessNeed, Reach, Resolved, Statement, resolve};
use bitflags::bitflags;
use nom::IResult;
use nom::error::{ErrorKind, ParseError};
use std::cell::{Cell, RefCell};

/// The syntax of a command.
#[derive(Clone, Copy)]
pub struct Syntax {
    /// The name of the command, and how it may be typed.
    pub name: CommandName,
    /// Parses the line after the name.
    pub(crate) parse: for<'a> fn(Tokens<'a>) -> Parsed<'a, Statement>,
}

/// The command language, which is made of a list of commands.
#[derive(Clone, Copy)]
pub struct Language {
    /// The commands, in the order of the help.
    pub commands: &'static [Syntax],
    /// Hints for lines that do not parse.
    pub advice: Option<&'static dyn Advice>,
}

/// The fault of a line for which the parser makes the whole message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An unknown function.
    Function,
    /// A type that is unknown.
    Type,
    /// The format `i`.
    Instructions,
    /// Too many levels or operators.
    TooMuch,
    /// Anything else.
    Other,
}

/// The furthest failure of a line.
pub struct Failure<'a> {
    /// The language of the line.
    pub language: Language,
    /// The whole line.
    pub line: &'a str,
    /// The tokens of the line.
    pub tokens: &'a [Token<'a>],
    /// The index of the token that failed, or the number of tokens if the command is incomplete.
    pub position: usize,
    /// The alternatives at that place.
    pub expected: Vec<Expected>,
    /// The hint of the command's parser.
    pub hint: Option<String>,
    /// The fault and the error, if the parser made the whole message.
    pub fault: Option<(Fault, SyntaxError)>,
}

impl<'a> Failure<'a> {
    /// Returns the token that failed.
    pub fn token(&self) -> Option<&'a Token<'a>> {
        self.tokens.get(self.position)
    }

    /// Returns the token before it.
    pub fn before(&self) -> Option<&'a Token<'a>> {
        self.tokens.get(self.position.checked_sub(1)?)
    }

    /// Returns whether the line ends where a word is missing.
    pub fn is_incomplete(&self) -> bool {
        self.token().is_none_or(|token| token.kind == TokenKind::Comment)
    }

    /// Returns the first word in full, if a command begins with it.
    pub fn command(&self) -> Option<&'static str> {
        match self.language.resolve_first(self.tokens.first()?.text) {
            Resolved::One(command) => Some(command),
            _ => None,
        }
    }

    /// Returns whether `one` is among the alternatives.
    pub fn expects(&self, one: Expected) -> bool {
        self.expected.contains(&one)
    }

    /// Returns the words among the alternatives.
    pub fn words(&self) -> Vec<&'static str> {
        self.expected.iter().flat_map(|one| self.language.words(*one).into_iter().chain(one.functions())).collect()
    }

    /// Returns whether this word is among the alternatives.
    pub fn expects_word(&self, word: &str) -> bool {
        let is_it = |one: &Expected| matches!(one, Expected::Word(other) if *other == word);
        self.expected.iter().any(is_it)
    }

    /// Returns the line without the parentheses of a command that is called like a function of C: `quit(0)`.
    pub fn called(&self) -> Option<String> {
        let [name, open, .., close] = self.tokens else {
            return None;
        };
        let is_call = name.kind == TokenKind::Name && open.is_glued && (open.text, close.text) == ("(", ")");
        let inside = self.line.get(open.at.end..close.at.start).filter(|_| is_call)?;
        let meant = format!("{} {}", name.text, inside.trim());
        let meant = meant.trim_end();
        self.language.parse_line(meant).is_ok().then(|| meant.to_owned())
    }
}

/// Makes hints for lines that do not parse.
pub trait Advice: Sync {
    /// Returns the words of another program with which the line begins.
    fn other_words(&self, line: &str) -> Option<OtherWords>;
    /// Adds a hint to the error of a failure.
    fn hint(&self, failed: &Failure<'_>, error: &mut SyntaxError);
}

/// Words of another program at the start of a line.
pub struct OtherWords {
    /// The place of the words.
    pub at: Span,
    /// The treatment of the words.
    pub meaning: OtherMeaning,
}

/// The treatment of another program's words.
pub enum OtherMeaning {
    /// The line is ignored.
    Nothing,
    /// These words of pmdb replace them. The hint is for a line that does not parse even so.
    Ours(&'static str, Option<&'static str>),
    /// The line is refused, with this hint.
    Refused(String),
}

impl Language {
    /// Returns the names of the commands.
    pub fn names(self) -> impl Iterator<Item = &'static CommandName> {
        self.commands.iter().map(|syntax| &syntax.name)
    }

    /// Returns the command with this name.
    pub(crate) fn command(self, name: &str) -> Option<&'static Syntax> {
        self.commands.iter().find(|syntax| syntax.name.name == name)
    }

    /// Returns the names of the commands that `pmdb NAME` runs without a process, and that need no second word for
    /// that.
    pub fn alone(self) -> impl Iterator<Item = &'static str> {
        self.names().map(|name| name.name).filter(move |name| self.is_alone(name, std::iter::empty()))
    }

    /// Returns whether `pmdb WORD BEHIND` runs a command without a process.
    pub fn is_alone<'w>(self, word: &str, behind: impl Iterator<Item = &'w str> + Clone) -> bool {
        let is_one = |next: &str, words: &[&str]| {
            let begins = |word: &&str| word.ends_with(['"', ':']) && next.starts_with(*word);
            words.iter().any(|word| next == *word || begins(word))
        };
        // An option before the words that decide: `who --how phys:0x1000`.
        let behind = behind.filter(|word| !word.starts_with("--"));
        self.names().any(|name| match name.process {
            ProcessNeed::Unused => {
                name.first() == word && (name.second().is_none() || name.second() == behind.clone().next())
            }
            ProcessNeed::UnusedBefore(words) => {
                name.name == word && behind.clone().next().is_some_and(|next| is_one(next, words))
            }
            ProcessNeed::UnusedBehind(words) => {
                name.name == word && behind.clone().skip(1).any(|next| is_one(next, words))
            }
            ProcessNeed::Required | ProcessNeed::Optional => false,
        })
    }

    /// Returns whether the command with this name accepts `--how`.
    pub fn takes_how(self, name: &str) -> bool {
        self.command(name).is_some_and(|syntax| syntax.name.takes_how)
    }

    /// Returns the effect of a line that begins with this unabbreviated word, if blocks consist of such lines.
    pub fn block_line(self, word: &str) -> Option<BlockLine> {
        self.command(word)?.name.block
    }

    /// Returns the words that open a block.
    pub fn opening_words(self) -> impl Iterator<Item = &'static str> {
        self.names().filter(|name| name.block == Some(BlockLine::Opens)).map(|name| name.name)
    }

    /// Returns whether `display` may run the command that begins with this word.
    pub fn is_displayed(self, word: &str) -> bool {
        self.command(word).is_some_and(|syntax| syntax.name.reach == Reach::Nothing)
            || match self.resolve_first(word) {
                Resolved::One(first) => self
                    .names()
                    .any(|name| name.reach == Reach::Nothing && name.second().is_some() && name.first() == first),
                _ => false,
            }
    }

    /// The functions that may begin a value where this is expected.
    pub fn functions(self, expected: Expected) -> Vec<&'static str> {
        expected.functions()
    }

    /// Returns the words of an alternative, as far as they do not depend on a target.
    pub fn words(self, expected: Expected) -> Vec<&'static str> {
        match expected {
            Expected::Command => self.first_words().collect(),
            other => other.words(),
        }
    }

    /// Returns the words with which a line may begin, each once.
    pub fn first_words(self) -> impl Iterator<Item = &'static str> {
        let words = self.names().enumerate().map(move |(at, name)| {
            // Only commands of two words share the first.
            let mut before = self.names().take(at);
            let is_new = name.second().is_none() || before.all(|other| other.first() != name.first());
            is_new.then_some(name.first())
        });
        words.flatten()
    }

    /// Returns the second words of commands whose first word is `first`; none for a command of one word.
    pub fn second_words(self, first: &str) -> impl Iterator<Item = &'static str> {
        self.names().filter(move |name| name.first() == first).filter_map(CommandName::second)
    }

    /// Resolves the first word of a command, or its abbreviation.
    pub fn resolve_first(self, word: &str) -> Resolved {
        match self.names().find(|name| name.short.contains(&word)) {
            Some(name) => Resolved::One(name.name),
            None => resolve(word, self.first_words(), |first| self.first_is_whole(first)),
        }
    }

    /// Returns whether a first word has no abbreviations: it has no subcommands, and its command must be typed in full.
    fn first_is_whole(self, first: &str) -> bool {
        self.names().filter(|name| name.first() == first).all(|name| name.is_whole && name.name == first)
    }

    /// Resolves the subcommand of `first`, or its abbreviation.
    pub fn resolve_second(self, first: &str, word: &str) -> Resolved {
        resolve(word, self.second_words(first), |second| {
            self.subcommand(first, second).is_some_and(|syntax| syntax.name.is_whole)
        })
    }

    /// Returns the command with these two words.
    pub(crate) fn subcommand(self, first: &str, second: &str) -> Option<&'static Syntax> {
        self.commands.iter().find(|syntax| syntax.name.name.split_once(' ') == Some((first, second)))
    }
}

/// The deepest nesting: no line may exhaust the stack, in the parser or in code that walks the tree.
const DEEPEST_NESTING: usize = 64;
/// The most operators in a line: a chain of them is a tree as deep as it is long.
const MOST_OPERATORS: usize = 256;

/// The notes that all attempts at parsing a line share.
///
/// nom drops the error of a missing optional part, with its alternatives. So every failing token records its
/// alternatives here, and those of the furthest token are kept.
pub struct Notes<'a> {
    pub language: Language,
    pub line: &'a str,
    /// The number of tokens, which is also the position of the end of the line.
    tokens: usize,
    furthest: RefCell<(usize, Vec<Expected>)>,
    fault: RefCell<Option<(Fault, SyntaxError)>>,
    depth: Cell<usize>,
    operators: Cell<usize>,
    raw_text: Cell<Option<(Expected, usize)>>,
    classes: RefCell<Vec<Spanned<Class>>>,
    hints: RefCell<Vec<(usize, String)>>,
    /// Whether words of clauses are no names: what follows them is completed.
    refuses_clause_words: Cell<bool>,
}

impl<'a> Notes<'a> {
    /// Makes empty notes for the same line.
    pub(crate) fn fresh(&self) -> Self {
        Notes::new(self.language, self.line, self.tokens)
    }

    pub(crate) fn new(language: Language, line: &'a str, tokens: usize) -> Self {
        Notes {
            language,
            line,
            tokens,
            furthest: RefCell::default(),
            fault: RefCell::default(),
            depth: Cell::default(),
            operators: Cell::default(),
            raw_text: Cell::default(),
            classes: RefCell::default(),
            hints: RefCell::default(),
            refuses_clause_words: Cell::default(),
        }
    }

    /// Makes the words of clauses no names.
    pub(crate) fn refuse_clause_words(&self) {
        self.refuses_clause_words.set(true);
    }

    /// Returns the tokens as input.
    pub(crate) fn input(&'a self, tokens: &'a [Token<'a>]) -> Tokens<'a> {
        Tokens { rest: tokens, scope: BareWords::Value, notes: self }
    }

    /// Returns the furthest token that failed, and the alternatives there.
    pub(crate) fn furthest(&self) -> (usize, Vec<Expected>) {
        self.furthest.borrow().clone()
    }

    /// Returns the fault and the error, if the parser made the whole message.
    pub(crate) fn fault(&self) -> Option<(Fault, SyntaxError)> {
        self.fault.borrow().clone()
    }

    /// Returns the kind and the offset of the raw text at the end of the line.
    pub(crate) fn raw_text(&self) -> Option<(Expected, usize)> {
        self.raw_text.get()
    }

    /// Returns the hint of a command's parser for the token at this position.
    pub(crate) fn hint(&self, position: usize) -> Option<String> {
        let hints = self.hints.borrow();
        hints.iter().find(|(at, _)| *at == position).map(|(_, hint)| hint.clone())
    }

    /// Returns the classes of words, in the order of parsing.
    pub(crate) fn classes(&self) -> Vec<Spanned<Class>> {
        self.classes.borrow().clone()
    }

    pub(crate) fn note_class(&self, class: Class, at: Span) {
        self.classes.borrow_mut().push(Spanned::new(class, at));
    }

    pub(crate) fn note_raw_text(&self, what: Expected, start: usize) {
        self.raw_text.set(Some((what, start)));
    }
}

/// The meaning of the bare words in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BareWords {
    /// Symbols, regions and modules.
    Value,
    /// Fields. The filter needs a part of one of these types.
    Filter(FilterSubject, ValueTypes),
}

bitflags! {
    /// The possible types of a part of a filter.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ValueTypes: u8 {
        /// True or false: `dirty`, `mapcount > 1`.
        const CONDITION = 1;
        /// A number, computed from fields and values.
        const NUMBER = 2;
        /// A text, as the value of a field.
        const TEXT = 4;
    }
}

/// The tokens that remain to be parsed.
#[derive(Clone, Copy)]
pub struct Tokens<'a> {
    pub rest: &'a [Token<'a>],
    pub scope: BareWords,
    pub notes: &'a Notes<'a>,
}

/// The result of a parser over tokens.
pub type Parsed<'a, T> = IResult<Tokens<'a>, T, Failed>;

/// The failure of an attempt. [`Notes`] has the place and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

impl ParseError<Tokens<'_>> for Failed {
    fn from_error_kind(_: Tokens<'_>, _: ErrorKind) -> Self {
        Failed
    }
    fn append(_: Tokens<'_>, _: ErrorKind, other: Self) -> Self {
        other
    }
}

impl<'a> Tokens<'a> {
    /// Returns whether a word begins a clause, and can be no name here: only where a value is completed.
    pub(crate) fn is_clause_word(self, word: &str) -> bool {
        const WORDS: [&str; 13] =
            ["by", "every", "for", "from", "full", "in", "limit", "of", "top", "until", "where", "with", "without"];
        self.notes.refuses_clause_words.get() && self.scope == BareWords::Value && WORDS.contains(&word)
    }

    pub(crate) fn first(&self) -> Option<&'a Token<'a>> {
        self.rest.first()
    }

    /// Returns the place of the next token, or of the end of the line.
    pub(crate) fn place(&self) -> Span {
        let end = self.notes.line.trim_end().len();
        self.first().map_or(Span::new(end, end), |token| token.at)
    }

    /// Records that `expected` is an alternative here.
    pub(crate) fn expect(&self, expected: Expected) {
        let position = self.notes.tokens - self.rest.len();
        let mut furthest = self.notes.furthest.borrow_mut();
        if position > furthest.0 {
            *furthest = (position, Vec::new());
        }
        if position == furthest.0 && !furthest.1.contains(&expected) {
            furthest.1.push(expected);
        }
    }

    /// Records that an operand is an alternative here.
    fn expect_operand(&self) {
        let expected = match self.scope {
            BareWords::Value => vec![Expected::Expression],
            BareWords::Filter(_, ValueTypes::TEXT) => vec![Expected::QuotedText, Expected::Variable],
            BareWords::Filter(subject, types) => {
                let condition = types.contains(ValueTypes::CONDITION).then(|| subject.condition());
                condition.into_iter().chain([subject.quantity()]).collect()
            }
        };
        expected.into_iter().for_each(|one| self.expect(one));
    }

    /// Parses the next token as an operand if `take` accepts it.
    pub(crate) fn accept_operand<T>(self, take: impl FnOnce(&'a Token<'a>) -> Option<T>) -> Parsed<'a, Spanned<T>> {
        let taken = self.rest.split_first().and_then(|(token, rest)| Some((take(token)?, token.at, rest)));
        match taken {
            Some((found, at, rest)) => Ok((Tokens { rest, ..self }, Spanned::new(found, at))),
            None => {
                self.expect_operand();
                Err(nom::Err::Error(Failed))
            }
        }
    }

    /// Returns the same tokens in another scope.
    pub(crate) fn in_scope(self, scope: BareWords) -> Self {
        Tokens { scope, ..self }
    }

    /// Calls `parse` with the tokens in another scope.
    pub(crate) fn parsed_in<T>(
        self,
        scope: BareWords,
        parse: impl FnOnce(Tokens<'a>) -> Parsed<'a, T>,
    ) -> Parsed<'a, T> {
        let (behind, parsed) = parse(self.in_scope(scope))?;
        Ok((behind.in_scope(self.scope), parsed))
    }

    /// Records a hint for the case that the next token fails.
    pub(crate) fn hint(&self, hint: String) {
        let position = self.notes.tokens - self.rest.len();
        self.notes.hints.borrow_mut().push((position, hint));
    }

    /// Fails, and records `expected` as the alternative.
    pub(crate) fn fail<T>(self, expected: Expected) -> Parsed<'a, T> {
        self.expect(expected);
        Err(nom::Err::Error(Failed))
    }

    /// Fails for all attempts, with this error.
    pub(crate) fn fault<T>(self, fault: Fault, error: SyntaxError) -> Parsed<'a, T> {
        self.notes.fault.borrow_mut().get_or_insert((fault, error));
        Err(nom::Err::Failure(Failed))
    }

    /// Parses the next token if `take` accepts it.
    pub(crate) fn accept<T>(
        self,
        expected: Expected,
        take: impl FnOnce(&'a Token<'a>) -> Option<T>,
    ) -> Parsed<'a, Spanned<T>> {
        match self.rest.split_first() {
            Some((token, rest)) => match take(token) {
                Some(found) => Ok((Tokens { rest, ..self }, Spanned::new(found, token.at))),
                None => self.fail(expected),
            },
            None => self.fail(expected),
        }
    }

    /// Calls `inside` one level of nesting deeper.
    pub(crate) fn nested<T>(self, inside: impl FnOnce() -> Parsed<'a, T>) -> Parsed<'a, T> {
        let depth = self.notes.depth.get();
        if depth >= DEEPEST_NESTING {
            return self.too_much(format!("nested more than {DEEPEST_NESTING} levels deep"));
        }
        self.notes.depth.set(depth + 1);
        let result = inside();
        self.notes.depth.set(depth);
        result
    }

    /// Counts an operator, and fails if there are too many.
    pub(crate) fn count_operator(self) -> Parsed<'a, ()> {
        let count = self.notes.operators.get() + 1;
        self.notes.operators.set(count);
        if count <= MOST_OPERATORS {
            return Ok((self, ()));
        }
        self.too_much(format!("more than {MOST_OPERATORS} operators in one line"))
    }

    fn too_much<T>(self, message: String) -> Parsed<'a, T> {
        let error = SyntaxError { at: self.place(), message, expected: Vec::new(), hint: None, pasted: None };
        self.fault(Fault::TooMuch, error)
    }
}
