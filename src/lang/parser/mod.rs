//! Level 2 of the grammar: parses tokens to a tree, with nom.

mod combinators;
mod command;
mod expression;
mod fault;
pub(super) mod input;
mod names;

use super::error::{Span, Spanned, SyntaxError};
use super::expected::Expected;
use super::lexer;
use super::syntax::{Argument, Output, ParsedLine, Statement};
use crate::lang::error::Class;
use input::Notes;
use nom::Parser;
use nom::combinator::cut;

pub(crate) use super::lexer::{Token, TokenKind, unescape};
pub(crate) use combinators::{
    count, cut_or_name, cut_to, is_mark, many, mark, number, one_of, silent_mark, silent_word, time, variable,
    with_commas, word,
};
pub(crate) use command::{
    Raw, address, after, are_clauses, arguments as command_arguments, arguments_of, clause, command_name, each_once,
    end_of_text, format, hint_at_missing_with, hint_at_missing_with_of, is_clause, layout, list_once, listed, option,
    part, part_of_name, part_to_comma, pattern, range, raw, raw_text, search, snapshot_file, split_text, takes_all,
    text_to_end, value, watched, with_how,
};
pub(crate) use expression::{expression, filter, place, span_with};
pub(crate) use fault::short;
pub use input::{Advice, Failure, Fault, Language, OtherMeaning, OtherWords, Syntax};
pub(crate) use input::{Failed, Parsed, Tokens};
pub(crate) use names::{key, later, quoted_text, snapshot_name, symbol, text};

impl Language {
    /// Parses one line: a command with its output, a shell line, a comment, or nothing. If the line does not parse,
    /// words of another program at its beginning are replaced.
    ///
    /// # Errors
    /// Fails with a [`SyntaxError`] for a line that is not in the language.
    pub fn parse_line(self, line: &str) -> Result<ParsedLine, SyntaxError> {
        let tokens = lexer::tokens(self, line);
        parse_tokens(self, line, &tokens).or_else(|error| {
            let Some(found) = self.other_words(line) else {
                return Err(error);
            };
            match found.meaning {
                OtherMeaning::Nothing => Ok(ParsedLine::Comment),
                OtherMeaning::Refused(hint) => Err(SyntaxError {
                    at: found.at,
                    message: format!("pmdb has no `{}`", line.get(found.at.start..found.at.end).unwrap_or_default()),
                    expected: Vec::new(),
                    hint: Some(hint),
                    pasted: None,
                }),
                OtherMeaning::Ours(ours, hint) => parse_tokens(self, line, &instead(self, ours, found.at, &tokens))
                    .map_err(|error| error.or_hint(hint)),
            }
        })
    }

    fn other_words(self, line: &str) -> Option<OtherWords> {
        self.advice?.other_words(line)
    }

    /// Returns whether a line with these words of pmdb parses. Hints call it, so it makes no hints itself.
    pub(crate) fn accepts(self, line: &str) -> bool {
        let tokens = lexer::tokens(self, line);
        let notes = Notes::new(self, line, tokens.len());
        whole_line(notes.input(&tokens)).is_ok()
    }

    /// Parses the text after the name of a user-defined command: the arguments, and the output.
    ///
    /// # Errors
    /// Fails with a [`SyntaxError`] for an incomplete pipe or redirection.
    pub fn parse_call(self, text: &str) -> Result<(Vec<Spanned<Argument>>, Output), SyntaxError> {
        let tokens = lexer::tokens(self, text);
        let notes = Notes::new(self, text, tokens.len());
        let input = notes.input(&tokens);
        let arguments = command::arguments_of(input);
        let (_, behind) = command::split_text(input);
        let called = output(behind, false).and_then(|(behind, output)| {
            let (behind, ()) = end(behind)?;
            Ok((behind, output))
        });
        match called {
            Ok((_, output)) => Ok((arguments, output)),
            Err(_) => Err(fault::error(text, &tokens, &notes)),
        }
    }

    /// Parses a word of a shell as one argument: `buf, +4p` is a range. `None` if it is empty.
    pub fn parse_argument(self, text: &str) -> Option<Spanned<Argument>> {
        command::argument_of_text(self, text)
    }
}

fn parse_tokens(language: Language, line: &str, tokens: &[Token<'_>]) -> Result<ParsedLine, SyntaxError> {
    let notes = Notes::new(language, line, tokens.len());
    match whole_line(notes.input(tokens)) {
        Ok((_, parsed)) => Ok(parsed),
        Err(_) => Err(fault::error(line, tokens, &notes)),
    }
}

/// Returns the tokens of a line in which `ours` replaces the words at `at`.
fn instead<'a>(language: Language, ours: &'static str, at: Span, tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let ours = lexer::tokens(language, ours).into_iter().map(|token| Token { at, ..token });
    ours.chain(tokens.iter().filter(|token| token.at.start >= at.end).cloned()).collect()
}

/// Returns the tokens of a line in which pmdb's words replace those of another program; `None` if it has none.
fn as_parsed<'a>(language: Language, line: &str, tokens: &[Token<'a>]) -> Option<Vec<Token<'a>>> {
    let found = language.other_words(line)?;
    match found.meaning {
        OtherMeaning::Ours(ours, _) if parse_tokens(language, line, tokens).is_err() => {
            Some(instead(language, ours, found.at, tokens))
        }
        _ => None,
    }
}

/// Returns the alternatives after the tokens, and the kind and offset of raw text at the end of the line.
pub(super) fn expected_at_end(
    language: Language,
    line: &str,
    tokens: &[Token<'_>],
) -> (Vec<Expected>, Option<(Expected, usize)>) {
    let replaced = as_parsed(language, line, tokens);
    let tokens = replaced.as_deref().unwrap_or(tokens);
    let notes = Notes::new(language, line, tokens.len());
    notes.refuse_clause_words();
    let raw = match whole_line(notes.input(tokens)) {
        Ok(_) => notes.raw_text(),
        Err(_) => None,
    };
    match notes.furthest() {
        (position, expected) if position == tokens.len() && notes.fault().is_none() => (expected, raw),
        _ => (Vec::new(), raw),
    }
}

/// Returns the classes of the words in a line, and the place of its error.
pub(super) fn classes(language: Language, line: &str, tokens: &[Token<'_>]) -> (Vec<Spanned<Class>>, Option<Span>) {
    let replaced = as_parsed(language, line, tokens);
    let tokens = replaced.as_deref().unwrap_or(tokens);
    let notes = Notes::new(language, line, tokens.len());
    let parsed = whole_line(notes.input(tokens));
    let wrong = parsed.is_err().then(|| fault::error(line, tokens, &notes).at);
    (notes.classes(), wrong)
}

/// Parses the rule `line`.
fn whole_line(input: Tokens<'_>) -> Parsed<'_, ParsedLine> {
    match input.rest {
        [] => {
            input.expect(Expected::Command);
            Ok((input, ParsedLine::Empty))
        }
        [Token { kind: TokenKind::CommentLine | TokenKind::Comment, .. }] => Ok((input, ParsedLine::Comment)),
        [Token { kind: TokenKind::Shell(text), .. }] => Ok((input, ParsedLine::Shell(text.clone()))),
        _ => {
            let (behind, parsed) = cut(statement).parse(input)?;
            let (behind, ()) = end(behind)?;
            Ok((behind, parsed))
        }
    }
}

/// Parses the rule `statement`.
fn statement(input: Tokens<'_>) -> Parsed<'_, ParsedLine> {
    let (behind, name) = command::command_name(input)?;
    let (behind, name, must_pipe) = match name.node {
        "shell" => return behind.fail(Expected::ShellCommand),
        "pipe" => {
            let (behind, inner) = command::command_name(behind)?;
            if matches!(inner.node, "pipe" | "shell") || input.notes.language.block_line(inner.node).is_some() {
                return behind.fault(input::Fault::Other, fault::not_piped(&inner));
            }
            (behind, inner, true)
        }
        _ => (behind, name, false),
    };
    let start = input.place();
    let (behind, statement) = command::arguments(behind, name.node)?;
    let command = match statement {
        Statement::Command(command) => command,
        Statement::Control(control) => return Ok((behind, ParsedLine::Control(control.into()))),
    };
    let consumed = input.rest.len() - behind.rest.len();
    let last = consumed.checked_sub(1).and_then(|last| input.rest.get(last)).map_or(start, |token| token.at);
    let command = Spanned::new(command, start.to(last));
    let (behind, output) = output(behind, must_pipe)?;
    Ok((behind, ParsedLine::Command { command, output }))
}

/// Parses the output of a command: a pipe or a file.
fn output(input: Tokens<'_>, must_pipe: bool) -> Parsed<'_, Output> {
    let pipe = input.accept(Expected::Pipe, |token| {
        let end = token.at.end;
        match &token.kind {
            TokenKind::Pipe { text, offset } => {
                Some(Output::Pipe(Spanned::new(text.clone(), Span::new(token.at.start + offset, end))))
            }
            TokenKind::Redirect { append, path, offset } if !must_pipe => {
                let path = Spanned::new(path.clone(), Span::new(token.at.start + offset, end));
                Some(Output::File { path, append: *append })
            }
            _ => None,
        }
    });
    match pipe {
        Ok((behind, output)) => Ok((behind, output.node)),
        Err(_) if must_pipe => Err(nom::Err::Failure(Failed)),
        Err(_) => Ok((input, Output::Screen)),
    }
}

/// Parses the end of the line, or a comment.
fn end(input: Tokens<'_>) -> Parsed<'_, ()> {
    match input.rest {
        [] | [Token { kind: TokenKind::Comment, .. }] => {
            input.expect(Expected::End);
            Ok((input, ()))
        }
        _ => input.fail(Expected::End),
    }
}
